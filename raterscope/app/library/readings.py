"""Reading files of reader studies, read and answered from notebooks and scripts, such as by a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.library.inputs import DataError, plain_errors
from raterscope.app.reader_studies.assignment import locate_picture
from raterscope.app.reader_studies.collected_marks import draw_strokes, pack_stroke
from raterscope.app.reader_studies.reading_file import ReadingFile


@dataclass(frozen=True)
class ReadingTask:
    """A case at its position in a reader's order."""

    position: int
    session: int  # from 1
    pictures: tuple[Path | None, ...]  # of a pair left and right; None for a missing file
    texts: dict[str, str]  # by field; of a pair the prompt of both items
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
        """What is marked: clicks, masks, labels or pairs."""
        return self._file.assignment.kind

    @property
    def structures(self) -> tuple[str, ...]:
        """Structures to draw, of masks."""
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
        """Draw a mask of a structure, (row, column) or (slice, row, column); it replaces what was drawn."""
        with self._marking(position, "masks") as case:
            name = self._choose_name(structure, self.structures, "structure")
            shape = case.pictures[0].shape
            values = np.asarray(mask) != 0
            values = values[None] if values.ndim == 2 else values
            if values.shape != shape:
                raise InputError(f"the mask has the shape {values.shape}; the picture has {shape}")
            self._file.record(position, "stroke", pack_stroke(name, (0, 0, 0), values.astype(np.int8)))

    def answer(self, position: int, answer: str, question: str | None = None) -> None:
        """Answer a question; of pairs "left", "right" or, where it is allowed, "tie"."""
        with self._marking(position, "labels", "pairs"):
            name = self._choose_name(question, tuple(self.questions), "question")
            if answer not in self.questions[name]:
                raise InputError(
                    f"{plain(answer)} is no answer; expected {plain_names(self.questions[name])}"
                )
            self._file.record(position, "answer", {"question": name, "answer": answer})

    def complete(self, position: int) -> None:
        """Mark a case of clicks or masks as done, also if nothing is marked."""
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
        """Yield the case at a position; refuse another kind of mark."""
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
