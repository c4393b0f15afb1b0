"""Studies, and reading files of reader studies, opened from notebooks and scripts."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np

from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.exports import Request, write_export
from raterscope.app.formats.labels.columns import clean_name
from raterscope.app.kinds.clicks.runs import click_notices
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS, exports, find_export
from raterscope.app.library.fusion import label_result, mask_result, pair_result
from raterscope.app.library.inputs import (
    DataError,
    Frame,
    frame_as_html,
    make_frame,
    plain_errors,
    read_frame,
    stack_frames,
)
from raterscope.app.library.results import ClickResult, Result
from raterscope.app.reader_studies.collecting import draw_strokes, pack_stroke
from raterscope.app.reader_studies.protocol import locate_picture
from raterscope.app.reader_studies.reading_file import ReadingFile
from raterscope.app.study import Study
from raterscope.text import counted


def open_study(path: str | Path) -> OpenStudy:
    """Open a study to read it; no other program can change it until it is closed.

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
    r"""A study that is open for reading; `open_study` returns it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import raterscope as rs
    >>> from raterscope.app.cli.program import main  # the command `raterscope`
    >>> with TemporaryDirectory() as folder:
    ...     votes, path = f"{folder}/votes.csv", f"{folder}/cells.rscope"
    ...     rows = ["task,annotator,label", "cell 1,anna,ring", "cell 1,ben,ring", "cell 2,anna,smear"]
    ...     _ = Path(votes).write_text("\n".join(rows))
    ...     status = main(["import", path, votes])
    ...     with rs.open_study(path) as study:
    ...         study.items("labels")
    ...         study.to_frame("votes")["label"].tolist()
    ...         study.fuse("labels", algorithm="majority").to_frame()["label"].tolist()
    votes.csv: 3 votes by 2 annotators on 2 tasks.
    ('labels',)
    ['ring', 'ring', 'smear']
    ['ring', 'smear']
    """

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
            Needed if several kinds have the export; by default the first.
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
                raise InputError(
                    f"there is no {KINDS[of].nouns.item} {plain(item)}; expected {plain_names(names)}"
                )
            if chosen.by_question and item is None and len(names) > 1:
                frames = {name: self._export(chosen, (number,), run) for name, number in names.items()}
                return stack_frames(frames, "question")
            return self._export(chosen, () if item is None else (names[item],), run)

    def fuse(
        self, kind: str, *, algorithm: str | None = None, items: Sequence[str] = (), **settings: object
    ) -> Result:
        """Fuse annotations of the study as the window does; the result is not stored.

        The expert's decisions are held fixed, and excluded annotators are omitted.

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
                    f"there is no {record.nouns.item} {plain(unknown[0])}; expected {plain_names(names)}"
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
            notices = tuple(click_notices(answer.inputs.given, answer.outcomes.values()))
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
        parts = [f"{kind} on {counted(len(self.items(kind)), KINDS[kind].nouns.item)}" for kind in self.kinds]
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


@dataclass(frozen=True)
class ReadingTask:
    """A case, and its position in a reader's order."""

    position: int
    session: int  # from 1
    pictures: tuple[Path | None, ...]  # left and right for a pair; None for a missing file
    texts: dict[str, str]  # by field; for a pair, the common prompt
    sides: tuple[dict[str, str], ...]  # texts of the left and the right item of a pair; else empty
    done: bool


def open_reading(path: str | Path) -> OpenReading:
    r"""Open one reader's file of a reader study, to answer it.

    Parameters
    ----------
    path : str or Path
        A file NAME.rsread, as `raterscope reader-study new` makes one for each reader.

    Returns
    -------
    OpenReading
        Also a context manager, which closes the file.

    Raises
    ------
    DataError
        If the file is no reading file, or cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import raterscope as rs
    >>> from raterscope.app.cli import main
    >>> protocol = '''
    ... name = "Tone"
    ... kind = "labels"
    ... readers = ["program"]
    ... cases = ["answers.csv"]
    ... questions = [{ name = "tone", classes = ["kind", "rude"] }]
    ... '''
    >>> with TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
    ...     texts = "task,text\na,Thank you\nb,Go away\n"
    ...     _ = Path(folder, "answers.csv").write_text(texts)
    ...     _ = Path(folder, "protocol.toml").write_text(protocol)
    ...     _ = main(["reader-study", "new", f"{folder}/protocol.toml", "-o", f"{folder}/out"])
    ...     (file,) = Path(folder, "out").rglob("*.rsread")
    ...     with rs.open_reading(file) as reading:
    ...         for task in reading.tasks():
    ...             reading.answer(task.position, "kind" if "Thank" in task.texts["text"] else "rude")
    ...         print(len(reading), all(task.done for task in reading.tasks()))
    2 cases, 2 reads by each reader
    ...
    2 True
    """
    with plain_errors():
        return OpenReading(ReadingFile.open(Path(path)))


class OpenReading:
    """A reading file that is open; `open_reading` returns it. Every change is on disk at once."""

    def __init__(self, file: ReadingFile) -> None:
        self._file = file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __len__(self) -> int:
        return len(self._file.assignment.places)

    @property
    def kind(self) -> str:
        """Kind of annotation: clicks, masks, labels or pairs."""
        return self._file.assignment.kind

    @property
    def structures(self) -> tuple[str, ...]:
        """Structures to draw, for masks."""
        return self._file.assignment.structures

    @property
    def questions(self) -> dict[str, tuple[str, ...]]:
        """Answers that each question allows."""
        return {question.name: question.classes for question in self._file.assignment.questions}

    def tasks(self) -> tuple[ReadingTask, ...]:
        """Return the cases in the reader's order."""
        assignment = self._file.assignment
        tasks = []
        for position, scheduled in enumerate(assignment.places):
            case = assignment.case(scheduled.case)
            pictures = [locate_picture(picture, self._file.path) for picture in case.pictures]
            sides = [side.texts for side in case.sides]
            if scheduled.swapped:
                pictures, sides = pictures[::-1], sides[::-1]
            done = self._file.completes(self._file.marks(position))
            tasks.append(
                ReadingTask(position, scheduled.session, tuple(pictures), case.texts, tuple(sides), done)
            )
        return tuple(tasks)

    def click(self, position: int, x: float, y: float) -> None:
        """Mark a structure, in pixels from the picture's corner."""
        with self._marking(position, "clicks") as case:
            picture = case.pictures[0]
            if not (0 <= x <= picture.width and 0 <= y <= picture.height):
                raise InputError(
                    f"({x:g}, {y:g}) is not on the picture of {picture.width} x {picture.height}"
                )
            self._file.record(position, "click", {"x": float(x), "y": float(y)})

    def draw(self, position: int, mask: Any, structure: str | None = None) -> None:
        """Draw a mask of a structure, (row, column) or (slice, row, column); it replaces the earlier one."""
        with self._marking(position, "masks") as case:
            name = self._choose_name(structure, self.structures, "structure")
            shape = case.pictures[0].shape
            values = np.asarray(mask) != 0
            values = values[None] if values.ndim == 2 else values
            if values.shape != shape:
                raise InputError(f"the mask has the shape {values.shape}; the picture has {shape}")
            self._file.record(position, "stroke", pack_stroke(name, (0, 0, 0), values.astype(np.int8)))

    def answer(self, position: int, answer: str, question: str | None = None) -> None:
        """Answer a question; for pairs "left", "right" or, if allowed, "tie"."""
        with self._marking(position, "labels", "pairs"):
            name = self._choose_name(question, tuple(self.questions), "question")
            if answer not in self.questions[name]:
                raise InputError(
                    f"{plain(answer)} is no answer; expected {plain_names(self.questions[name])}"
                )
            self._file.record(position, "answer", {"question": name, "answer": answer})

    def complete(self, position: int) -> None:
        """Mark a case of clicks or masks as done, even without marks."""
        with self._marking(position, "clicks", "masks"):
            self._file.record(position, "done", {})

    def undo(self, position: int) -> bool:
        """Undo the last mark on a case; return whether there was one."""
        with self._marking(position, self.kind):
            return self._file.undo(position)

    def masks(self, position: int) -> dict[str, np.ndarray]:
        """Return the masks that are drawn on a case, by structure."""
        with self._marking(position, "masks") as case:
            return dict(draw_strokes(self._file.marks(position).strokes, case.pictures[0].shape))

    def clicks(self, position: int) -> list[tuple[float, float]]:
        """Return the marks on a case."""
        with self._marking(position, "clicks"):
            return [(x, y) for x, y, _ in self._file.marks(position).clicks]

    def answers(self, position: int) -> dict[str, str]:
        """Return the answers on a case, by question."""
        with self._marking(position, "labels", "pairs"):
            return dict(self._file.marks(position).answers)

    def finish(self, session: int = 1) -> None:
        """Lock a session; its marks cannot be changed any more."""
        with plain_errors():
            if not 1 <= session <= self._file.assignment.sessions:
                raise InputError(f"there is no session {session}")
            self._file.finish(session)

    def __repr__(self) -> str:
        return f"<OpenReading {self._file.path.name}: {self.kind} of {len(self):,} cases>"

    @contextmanager
    def _marking(self, position: int, *kinds: str) -> Iterator[Any]:
        """Yield the case at a position; refuse marks of another kind."""
        if self.kind not in kinds:
            raise DataError(f"This reader study asks for {self.kind}, not for {' or '.join(kinds)}.")
        if not 0 <= position < len(self):
            raise DataError(f"There is no case at position {position}; the last is {len(self) - 1}.")
        with plain_errors():
            yield self._file.assignment.case(self._file.assignment.places[position].case)

    @staticmethod
    def _choose_name(name: str | None, names: tuple[str, ...], noun: str) -> str:
        if name is None and len(names) == 1:
            return names[0]
        if name not in names:
            raise InputError(f"name the {noun}: one of {plain_names(names)}")
        return name
