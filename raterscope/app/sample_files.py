"""Sample studies: files, studies created completely or not at all, runs stored once."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.output_files import draft_for
from raterscope.app.outcome import Answer, Outcome, versions
from raterscope.app.study import Study
from raterscope.app.study.new_study import new_study
from raterscope.app.study.opening import give_name, translated_errors

Kept = TypeVar("Kept", bound=Answer[Any, Any, Any])

BEGUN = 1_772_442_000.0
"""Start time of the simulated crowds, in seconds since 1970: the morning of 2 March 2026."""


class Demonstrated(NamedTuple):
    """Result of making a sample."""

    study: Path
    words: list[str]  # results, one line each
    outcomes: list[Outcome[Any]]  # of all items, including failed ones


class ImportFiles(Protocol):
    """Function that reads files into a study."""

    def __call__(
        self, study: Study, paths: Sequence[Path], watch: Watch = silent, *, structure: str | None = None
    ) -> object:
        """Read files; `structure`: name of the masks' structure."""


class WriteReport(Protocol):
    """Function that writes the report of a study."""

    def __call__(self, study: Study, path: Path, watch: Watch = silent) -> object:
        """Write it as HTML or PDF, by the suffix of the name."""


class Tools(NamedTuple):
    """Steps of a demo that are the same for every kind."""

    import_files: ImportFiles
    write_report: WriteReport


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table of the sample."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


def write_picture(path: Path, picture: NDArray[np.uint8], description: str) -> None:
    """Write a picture with a note that it is simulated."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Description", f"A simulated {description}, drawn by Raterscope")
    Image.fromarray(picture).save(path, compress_level=3, pnginfo=note)


def write_pictures(
    folder: Path, names: Sequence[str], draw: Callable[[int], NDArray[np.uint8]], watch: Watch
) -> list[Path]:
    """Write pictures of red blood cells; ``draw(number)`` draws one. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, name in enumerate(names):
        watch(number / len(names), f"drawing cell {number + 1} of {len(names)}")
        paths.append(folder / f"{name}.png")
        write_picture(paths[-1], draw(number), "red blood cell")
    return paths


@contextmanager
def made_whole(path: Path) -> Iterator[Study]:
    """Create a study under a temporary name; it gets its final name when it is filled.

    If another process finished the same sample meanwhile, this one is dropped.
    """
    draft = draft_for(path)
    try:
        with new_study(draft) as study:
            yield study
        if not os.path.lexists(path):
            with translated_errors(path, "created"):
                give_name(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def keep_once(
    study: Study, answer: Kept, digest: str, keep: Callable[[Kept, Study, Watch], int], watch: Watch = silent
) -> None:
    """Store a run, unless the study contains the same run already: the demo may be repeated."""
    new = digest, answer.plan.as_dict(), versions()
    if all((run.digest, run.settings, run.versions) != new for run in study.runs.all()):
        keep(answer, study, watch)
