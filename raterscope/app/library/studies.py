"""Studies opened from notebooks and scripts: their contents, exports as tables, and fusions."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from raterscope.algorithms.clicks.robustness import run_notices
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.exports import Request, write_export
from raterscope.app.formats.labels.columns import clean_name
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS, exports, find_export
from raterscope.app.library.frames import Frame, frame_as_html, make_frame, read_frame, stack_frames
from raterscope.app.library.fusion import label_result, mask_result, pair_result
from raterscope.app.library.inputs import DataError, plain_errors
from raterscope.app.library.results import ClickResult, Result
from raterscope.app.study import Study
from raterscope.text import counted


def open_study(path: str | Path) -> OpenStudy:
    """Open a study to read it; nothing in it changes, and no other program can change it until it is closed.

    Parameters
    ----------
    path : str or Path
        A file NAME.rscope.

    Returns
    -------
    OpenStudy
        Also a context manager, which closes the study.

    Raises
    ------
    DataError
        If the file is no study, or cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import raterscope as rs
    >>> from raterscope.app.study import Study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "empty.rscope"
    ...     Study.create(path).close()
    ...     with rs.open_study(path) as study:
    ...         study.kinds
    ()
    """
    with plain_errors():
        return OpenStudy(Study.open(Path(path), to_read=True))


class OpenStudy:
    """A study that is open for reading; `open_study` returns it."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the study."""
        self._study.close()

    @property
    def path(self) -> Path:
        """The file."""
        return self._study.path

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of annotations in the study: clicks, masks, labels, pairs."""
        return tuple(kind.name for kind in KINDS.values() if kind.items(self._study))

    def items(self, kind: str) -> tuple[str, ...]:
        """Name the images or questions with annotations of a kind."""
        return tuple(item.name for item in self._kind(kind).items(self._study))

    @property
    def exports(self) -> tuple[str, ...]:
        """Tables that `to_frame` can return for the kinds in the study; some need a run first."""
        present = set(self.kinds)
        names = [e.what for e in exports() if "csv" in e.formats and present.intersection(e.kinds)]
        return tuple(dict.fromkeys(names))

    def to_frame(
        self, export: str, *, kind: str | None = None, item: str | None = None, run: int | None = None
    ) -> Frame:
        """Return an export as a dictionary of column to NumPy array, with the expert's decisions applied.

        Parameters
        ----------
        export : str
            One of `exports`: detections, labels, ranking, annotators, decisions and others.
        kind : str, optional
            Where several kinds have the export; by default the first.
        item : str, optional
            An image or question; by default all. Several questions are stacked, with a column question.
        run : int, optional
            Number of a run; by default the run that the window shows.

        Raises
        ------
        DataError
            If there is no such export, or nothing to export yet.
        """
        kinds = self.kinds if kind is None else (self._kind(kind).name,)
        with plain_errors():
            chosen = find_export(export, kinds or tuple(KINDS))
            if "csv" not in chosen.formats:
                raise InputError(f"{plain(export)} is no table; expected one of {', '.join(self.exports)}")
            of = next(name for name in kinds or tuple(KINDS) if name in chosen.kinds)
            names = {entry.name: entry.id for entry in KINDS[of].items(self._study)}
            if item is not None and item not in names:
                raise InputError(f"there is no {KINDS[of].item} {plain(item)}; expected {plain_names(names)}")
            if chosen.by_question and item is None and len(names) > 1:
                frames = {name: self._export(chosen, (number,), run) for name, number in names.items()}
                return stack_frames(frames, "question")
            return self._export(chosen, () if item is None else (names[item],), run)

    def fuse(
        self, kind: str, *, algorithm: str | None = None, items: Sequence[str] = (), **settings: object
    ) -> Result:
        """Fuse annotations of the study as the window does; the result is not stored.

        The expert's decisions are held fixed, and excluded annotators are left out.

        Parameters
        ----------
        kind : {"clicks", "masks", "labels", "pairs"}
        algorithm : str, optional
            By default the recommended one.
        items : sequence of str
            Images or questions; by default all.
        **settings
            Settings of the algorithm.

        Raises
        ------
        DataError
            For an unknown kind, item, algorithm or setting, and where nothing can be fused.
        """
        record = self._kind(kind)
        with plain_errors():
            names = {entry.name: entry.id for entry in record.items(self._study)}
            unknown = [name for name in items if name not in names]
            if unknown or not names:
                raise InputError(
                    f"there is no {record.item} {plain(unknown[0])}; expected {plain_names(names)}"
                    if unknown
                    else f"the study has no {kind}"
                )
            functions = record.functions
            texts = {name: str(value) for name, value in settings.items()}
            plan = functions.make_plan(algorithm or self._usual(record), texts)
            numbers = [names[name] for name in items] or list(names.values())
            answer: Any = functions.fuse(
                functions.gather(numbers, self._study, plan, False, _watch), plan, 1, _watch
            )
            if not answer.fusions:
                raise InputError(next(iter(answer.outcomes.values())).problem)
            if kind == "labels":
                return label_result(answer, texts)
        if kind == "clicks":
            notices = tuple(run_notices(list(answer.fusions.values())))
            return ClickResult(notices, answer.inputs.given, answer.plan, answer.outcomes)
        return mask_result(answer, {}) if kind == "masks" else pair_result(answer)

    def __repr__(self) -> str:
        return f"<OpenStudy {self.path.name}: {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return the number of items and runs of each kind, escaped, for a notebook."""
        runs = list(self._study.runs.all())
        frame = make_frame(
            ("kind", "items", "runs"),
            [
                list(self.kinds),
                [len(self.items(kind)) for kind in self.kinds],
                [sum(run.kind == kind for run in runs) for kind in self.kinds],
            ],
        )
        return frame_as_html(frame, self.path.name, [self._summary()])

    def _summary(self) -> str:
        parts = [f"{kind} on {counted(len(self.items(kind)), KINDS[kind].item)}" for kind in self.kinds]
        return ", ".join(parts) or "empty"

    def _kind(self, name: str) -> Kind:
        if name not in KINDS:
            raise DataError(f"{plain(name)} is no kind; expected one of {', '.join(KINDS)}.")
        return KINDS[name]

    @staticmethod
    def _usual(kind: Kind) -> str:
        return next(iter(kind.catalogues[0].algorithms))

    def _export(self, chosen: Any, items: tuple[int, ...], run: int | None) -> Frame:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "export.csv"
            request = Request(chosen.what, "csv", path, items=items, run=run)
            written = write_export(chosen, self._study, request)
            with written.files[0].open(newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
        names = {"left", "right", "choice"} if chosen.what == "pairs" else set()
        cells = ([clean_name(cell) for cell in row] for row in rows)
        return read_frame([clean_name(name) for name in header], cells, texts=names)


def _watch(*_progress: object, **_details: object) -> None:
    """Ignore progress."""
