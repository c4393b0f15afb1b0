"""The study: one file with everything in it but the pixels."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, ClicksError, FloatArray
from raterscope.algorithms.clicks.results import Fusion
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.masks.data import Settled
from raterscope.algorithms.masks.report import CaseResult
from raterscope.algorithms.pairs.data import PairFusion
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.review import Decision
from raterscope.app.study import places
from raterscope.app.study.importing import assign_images, kind_of, write_marks
from raterscope.app.study.misfits import (
    misfit_of_clicks,
    misfit_of_labels,
    misfit_of_masks,
    misfit_of_pairs,
    misfit_of_settled,
)
from raterscope.app.study.objects import read_object, write_object
from raterscope.app.study.opening import told
from raterscope.app.study.records import (
    ImageEntry,
    ImportSummary,
    Item,
    RunEntry,
    StudyError,
    TruePoints,
    user_name,
)
from raterscope.app.study.references import (
    add_file,
    add_size,
    add_volume,
    point_to,
    read_image_entries,
    refuse_other_size,
    volume_again,
)
from raterscope.app.study.rows import (
    DECISION,
    decision_of,
    decision_row,
    read_imports,
    read_marks,
)
from raterscope.app.study.shown import StudyShown

__all__ = ["Study"]


class Study(StudyShown):
    """An open study. Used by one thread at a time; every change is on disk when the method returns.

    Every method raises StudyError, in a sentence, when the file does not do what is asked.
    """

    # Images

    def images(self) -> list[ImageEntry]:
        """List the images in the order in which they came."""
        with self.sound():
            return read_image_entries(self._connection, self.path)

    def names(self) -> dict[tuple[str, int], str]:
        """Give the name of every item, by its kind and number."""
        return {(kind, one.id): one.name for kind, of in self.items().items() for one in of}

    def image(self, image_id: int) -> ImageEntry:
        """Give one image."""
        with self.sound():
            found = read_image_entries(self._connection, self.path, image_id)
        if not found:
            raise StudyError(f"has no image number {image_id}", file=self.path)
        return found[0]

    def items(self) -> dict[str, tuple[Item, ...]]:
        """List what each kind of annotation is about.

        An image without annotations belongs to masks where it has a geometry, else to clicks; one that shows
        a task to neither.
        """
        with self.sound():
            marked, masked, shown = (
                {image for (image,) in self._connection.execute(f"SELECT DISTINCT image FROM {table}")}
                for table in ("marks", "masks", "pictures")
            )
            entries = read_image_entries(self._connection, self.path)
        bare = {entry.id for entry in entries} - marked - masked - shown
        solid = {entry.id for entry in entries if entry.id in bare and entry.grid is not None}
        return {
            "clicks": tuple(entry for entry in entries if entry.id in marked | (bare - solid)),
            "masks": tuple(entry for entry in entries if entry.id in masked | solid),
            "labels": self.questions(),
            "pairs": self.pair_questions(),
        }

    def add_images(self, files: Sequence[ImageFile], watch: Watch = silent) -> list[ImageEntry]:
        """Take up references to images: path, size, digest. One that is there already is not taken twice.

        An image whose size alone was known, from a table of clicks, gets its file.

        Raises
        ------
        StudyError
            When a file cannot be read, or has another size than the clicks' table said.
        """
        digests = []
        for index, file in enumerate(files):
            step = part(watch, index / len(files), (index + 1) / len(files))
            with told(file.path, "read"):
                digests.append(places.digest_of_file(file.path, step, f"reading {plain(file.name)}"))
        added = []
        with self.change():
            names = places.Names(self.images())
            for file, digest in zip(files, digests, strict=True):
                entry = add_file(self._connection, self.path, file, digest, names)
                names.add(entry)
                added.append(entry)
        return added

    def add_volumes(self, files: Sequence[VolumeFile], watch: Watch = silent) -> list[ImageEntry]:
        """Take up references to volumes with their geometry; see `add_images`."""
        digests = []
        for index, file in enumerate(files):
            step = part(watch, index / len(files), (index + 1) / len(files))
            with told(file.path, "read"):
                digests.append(places.digest_of_files(file.files, step, f"reading {plain(file.name)}"))
        added = []
        with self.change():
            names = places.Names(self.images())
            for file, digest in zip(files, digests, strict=True):
                entry = add_volume(self._connection, self.path, file, digest, names)
                names.add(entry)
                added.append(entry)
        return added

    def locate(self, entry: ImageEntry) -> Path | None:
        """Find an image's file: where it was, else beside the study; None where it is in neither place."""
        return places.locate(entry, self.path)

    def relocate(self, image_id: int, path: Path | str) -> ImageEntry:
        """Note where an image's file has gone.

        Raises
        ------
        InputError
            When it is no image, or not the same.
        """
        place, digest = _found_again(self.image(image_id), Path(path))
        with self.change():
            return point_to(self._connection, self.path, image_id, place, digest)

    def relocate_all(self, folder: Path | str) -> list[ImageEntry]:
        """Look in a folder for every image that is missing, by name and content, and note those found."""
        found = []
        for entry in self.images():
            if entry.path is None or self.locate(entry) is not None:
                continue
            place = Path(folder) / Path(entry.path).name
            try:
                if not place.exists() or places.size_of(place) != entry.size:
                    continue
                place, digest = _found_again(entry, place)
            except (InputError, OSError):  # it is called as the image was, and is another
                continue
            with self.change():
                found.append(point_to(self._connection, self.path, entry.id, place, digest))
        return found

    # Annotators and what they marked

    def add_clicks(
        self,
        table: ClickTable,
        watch: Watch = silent,
        *,
        extent: tuple[float, float] | None = None,
        leave_out_unknown: bool = False,
    ) -> ImportSummary:
        """Take up a table of clicks, whole or not at all.

        Parameters
        ----------
        table : ClickTable
        watch : Watch
        extent : (width, height), optional
            Size in pixels of the images that neither the study nor the table knows the size of.
        leave_out_unknown : bool
            Leave out the clicks on images that the study does not have and whose size nothing tells, as long
            as others of the table are on images that it has.

        Raises
        ------
        StudyError
            For an image that the study does not have and whose size nothing tells.
        """
        with self.change() as connection:
            return self.store_marks(connection, table, watch, extent, leave_out_unknown)

    def add_truth(
        self,
        table: PointTable,
        watch: Watch = silent,
        *,
        extent: tuple[float, float] | None = None,
        leave_out_unknown: bool = False,
    ) -> ImportSummary:
        """Take up a table of true points or a program's detections, whole or not at all; see `add_clicks`."""
        with self.change() as connection:
            return self.store_marks(connection, table, watch, extent, leave_out_unknown)

    def clicks(self, image_id: int, run: RunEntry | None = None) -> Clicks:
        """Give all clicks on an image, without known spots.

        Parameters
        ----------
        image_id : int
        run : RunEntry, optional
            Give the clicks that went into this run: none imported later, none of who was excluded, and the
            weights of then. The rows and annotators of its results are these.
        """
        entry = self.image(image_id)
        with self.sound():
            last = None if run is None else run.imported
            marks = read_marks(self._connection, self.path, image_id, "clicks", last)
            scores = self.scores(image_id, last)
            names = self.annotators()
        looked = np.union1d(marks.looked, marks.annotator)
        if len(looked) and not 0 <= looked[0] <= looked[-1] < len(names):
            raise StudyError("is damaged: a mark is by nobody", file=self.path)
        try:
            clicks = Clicks(
                x=marks.x,
                y=marks.y,
                annotator=np.searchsorted(looked, marks.annotator),
                annotators=tuple(names[number] for number in looked.tolist()),
                extent=entry.extent,
                time=marks.time,
                scores=scores,
            )
        except ClicksError as error:
            raise StudyError(f"is damaged: {error}", file=self.path) from error
        if run is None or not (run.excluded or run.weights):
            return clicks
        return clicks.without(set(run.excluded)).weighed(run.weights)

    def scores(self, image_id: int, last: int | None = None) -> FloatArray | None:
        """Give a program's detections on an image: x, y and score, (K, 3).

        Of several imports the last counts, or the last up to a number. None where no program searched it.
        """
        with self.sound():
            imports = read_imports(self._connection, self.path, image_id, "scores", last=last)
        if not imports:
            return None
        _, found = imports[-1]
        assert found.score is not None
        return np.column_stack([found.x, found.y, found.score])

    def truth(self, image_id: int) -> TruePoints:
        """Give the imported true points of an image."""
        with self.sound():
            imports = read_imports(self._connection, self.path, image_id, "truth")
        points = np.concatenate([np.empty((0, 2)), *(np.column_stack([one.x, one.y]) for _, one in imports)])
        _, first = np.unique(points, axis=0, return_index=True)
        points = points[np.sort(first)]
        return TruePoints(points[:, 0].copy(), points[:, 1].copy(), known=bool(imports))

    def store_marks(
        self,
        connection: sqlite3.Connection,
        table: ClickTable | PointTable,
        watch: Watch = silent,
        extent: tuple[float, float] | None = None,
        leave_out_unknown: bool = False,
    ) -> ImportSummary:
        """Take up a table within the present transaction; for the modules of this package."""
        kind = kind_of(table)
        self.forget_names()
        names = places.Names(self.images())
        add = partial(add_size, connection, self.path)
        entries, notices = assign_images(table, names, add, extent, leave_out_unknown)
        present = partial(read_marks, connection, self.path, kind=kind)
        return write_marks(connection, table, entries, present, notices, watch)

    # Decisions

    def record(self, decision: Decision) -> Decision:
        """Write a decision at the journal's end; it is on disk when this returns.

        Returns
        -------
        Decision
            With its number, its time, the user's name where `who` was empty, and `voxels` in place of
            `settled`.
        """
        with self.change():
            (number,) = self._connection.execute("SELECT ifnull(max(id), 0) + 1 FROM decisions").fetchone()
            if decision.undoes is not None:
                self._refuse_vain_undo(decision.undoes, number)
            settled = decision.settled
            written = replace(
                decision, id=number, at=datetime.now(UTC), who=decision.who or user_name(), settled=None,
                voxels=None if settled is None else write_object(self._connection, settled),
            )  # fmt: skip
            self._connection.execute(
                f"INSERT INTO decisions({', '.join(DECISION)}) VALUES ({', '.join('?' * len(DECISION))})",
                decision_row(written),
            )
        return written

    def decisions(self) -> list[Decision]:
        """List all decisions, oldest first."""
        with self.sound():
            rows = self._connection.execute(f"SELECT {', '.join(DECISION)} FROM decisions ORDER BY id")
            return [decision_of(row, self.path) for row in rows]

    def settled(self, voxels: int) -> Settled:
        """Give the voxels that a decision settled, by `Decision.voxels`."""
        with self.sound():
            settled = read_object(self._connection, voxels, Settled, self.path)
            by = self._connection.execute("SELECT item FROM decisions WHERE voxels = ?", (voxels,)).fetchone()
        frame = None if by is None or by[0] is None else self.image(by[0]).lattice.shape
        wrong = misfit_of_settled(settled, frame)
        if wrong is not None:
            raise StudyError(f"is damaged: objects, row {voxels}: {wrong}", file=self.path)
        return settled

    def misfit(self, run: RunEntry, item: int, result: object) -> str | None:
        """Say why a result cannot be one of an item as it was when the run began; None where it can."""
        if isinstance(result, Fusion):
            return misfit_of_clicks(result, self.clicks(item, run))
        if isinstance(result, CaseResult):
            return misfit_of_masks(result, self.image(item).lattice.shape, self._raters(item, run.imported))
        if isinstance(result, PairFusion):
            bench = self.bench(item, run.imported)
            return misfit_of_pairs(result, len(bench.people), len(bench.items))
        assert isinstance(result, LabelResult)
        crowd = self.crowd(item, run.imported)
        return misfit_of_labels(result, len(crowd.tasks), len(crowd.people), len(crowd.task))

    def _raters(self, image: int, last: int | None) -> dict[str, set[str]]:
        """Give who drew each structure of an image, up to an import."""
        names, found = self.annotators(), dict[str, set[str]]()
        with self.sound() as connection:
            for structure, who in connection.execute(
                "SELECT DISTINCT structure, annotator FROM masks WHERE image = ? AND import <= ?",
                (image, 2**62 if last is None else last),
            ):
                if 0 <= who < len(names):
                    found.setdefault(structure, set()).add(names[who])
        return found

    def name_of(self, kind: str, item: int) -> str:
        """Give the name of an item."""
        if kind in ("labels", "pairs"):
            return self.names()[kind, item]
        return self.image(item).name

    def _refuse_vain_undo(self, target: int, number: int) -> None:
        """Refuse to undo what is not there or does not stand: one redo could not take back two undos."""
        if not 0 < target < number:
            raise StudyError(f"has no decision number {target} to undo", file=self.path)
        dead: set[int] = set()
        for undo, undoes in self._connection.execute(
            "SELECT id, undoes FROM decisions WHERE undoes IS NOT NULL ORDER BY id DESC"
        ):
            if undo not in dead:
                dead.add(undoes)
        if target in dead:
            raise StudyError(f"has decision number {target} undone already", file=self.path)


def _found_again(entry: ImageEntry, path: Path) -> tuple[Path, str]:
    """Give where an image's file is now and its digest, which is the image's own."""
    if entry.grid is None:
        from raterscope.app.formats.images import read_image

        file = read_image(path)
        with told(path, "read"):
            digest = places.digest_of_file(path)
        if entry.digest is None:
            refuse_other_size(file, entry)
    else:
        path, digest = volume_again(entry, path)
    if entry.digest not in (None, digest):
        name = plain(entry.name)
        raise StudyError(
            f"is another image than {name} was when it was added: its content differs", file=path
        )
    return path, digest
