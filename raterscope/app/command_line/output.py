"""Output of the commands: progress and text in the terminal, folders of results, and failures."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.export import distinct, safe
from raterscope.app.outcome import Answer, Outcome
from raterscope.app.study.digests import digest_of_file

_EVERY = 0.1  # seconds
_BAR = 24


def has_display() -> bool:
    """Return whether a window could be seen."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def one_line(text: str) -> str:
    """Make one line of printable text; what strangers wrote shall not steer the terminal."""
    line = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)


class ProgressLine:
    """A watch that draws progress on a terminal, in one line that is wiped at the end.

    Where the stream is no terminal nothing is written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._drawn = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(
        self,
        fraction: float,
        words: str,
        *,
        objective: float | None = None,  # noqa: ARG002 - a terminal shows no curves
        partial: Callable[[], object] | None = None,  # noqa: ARG002 - nor a partial result
    ) -> None:
        """Draw, at most ten times a second."""
        now = time.monotonic()
        if self._stream is None or now - self._drawn < _EVERY:
            return
        self._drawn = now
        done = round(_BAR * min(max(fraction, 0.0), 1.0))
        bar = "#" * done + "." * (_BAR - done)
        room = max(20, _columns(self._stream) - _BAR - 10)
        self._stream.write(f"\r\x1b[K{bar} {fraction:4.0%} {one_line(words)[:room]}")
        self._stream.flush()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


LISTED = 12
"""Files, or questions, or images; of more, the number is said."""

Result = TypeVar("Result")


def files_and_digests(paths: Iterable[Path]) -> list[dict[str, object]]:
    """Name the files that results are made from, for run.json."""
    return [{"file": path.name, "digest": digest_of_file(path)} for path in paths]


def folders_of(
    answer: Answer[Any, Any, Result], folder: Path, watch: Watch
) -> Iterator[tuple[str, Result, Path, Watch]]:
    """Make a folder for the results of each item, below the given one where there are several.

    Gives the item's name, what was fused, the folder and the watch for writing there.
    """
    taken: set[str] = set()
    for done, (name, outcome) in enumerate(answer.outcomes.items()):
        if outcome.fusion is None:
            continue
        here = folder
        if len(answer.outcomes) > 1:
            here = folder / distinct(safe(name), taken)
            make_folder(here)
        step = part(watch, done / len(answer.outcomes), (done + 1) / len(answer.outcomes))
        yield name, outcome.fusion, here, step


def where(answer: Answer[Any, Any, Any], name: str) -> str:
    """Begin what is said of an item: with its name, where there are several."""
    return f"{plain(name)}: " if len(answer.outcomes) > 1 else ""


def by_item(
    answer: Answer[Any, Any, Result],
    say: Callable[[str, Result], Iterable[str]],
    most: int | None = None,
) -> Iterator[str]:
    """Say something of what came out for each item; ``say(name, result)`` gives the words, a line each.

    Of more than `most` the number is said.
    """
    results = {name: one.fusion for name, one in answer.outcomes.items() if one.fusion is not None}
    for name in list(results)[:most]:
        for words in say(name, results[name]):
            yield where(answer, name) + words
    if most is not None and len(results) > most:
        yield f"and {len(results) - most:,} more questions"


def tell(notices: Iterable[str], lines: Iterable[str]) -> None:
    """Print what has to be noted, and what came out."""
    for notice in notices:
        print(f"note: {one_line(notice)}", file=sys.stderr)
    for line in lines:
        print(one_line(line))


def tell_files(written: Sequence[Path], folder: Path) -> None:
    """Print which files were written below a folder."""
    folders = {path.parent for path in written}
    if len(folders) > 1:
        print(f"{counted(len(written), 'file')} in {counted(len(folders), 'folder')} of {folder}")
    elif written:
        names = [path.name for path in written]
        few = names if len(names) <= LISTED else [*names[:3], f"{len(names) - 4} more", names[-1]]
        print(f"{', '.join(few)} in {written[0].parent}")


def failures(outcomes: Mapping[str, Outcome[Any]]) -> None:
    """Say in one sentence which images failed; the others are not lost.

    Raises
    ------
    InputError
        Where any failed.
    """
    failed = [outcome for outcome in outcomes.values() if outcome.fusion is None]
    if not failed:
        return
    if os.environ.get("RATERSCOPE_DEBUG"):
        sys.stderr.write("".join(outcome.details for outcome in failed))
    first = f"{plain(failed[0].item)}: {failed[0].problem}"
    others = ", the others were" if len(failed) < len(outcomes) else ""
    raise InputError(f"{len(failed):,} of {len(outcomes):,} could not be fused{others}; {first}")


def make_folder(folder: Path) -> None:
    """Make the folder of the results before the work, so that it is not done in vain."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; expected a folder for the results", file=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".raterscope-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot be written to: {error.strerror}", file=folder) from error


Written = TypeVar("Written")


@dataclass(frozen=True)
class Rescued(Generic[Written]):
    """What came of writing, where, and why not in the place that was meant; empty where it was there."""

    answer: Written
    place: Path
    why: str = ""

    def tell(self, what: str) -> None:
        """Say that something is in another place than was meant, in words before that place.

        Raises
        ------
        InputError
            Where it is.
        """
        if self.why:
            raise InputError(f"{self.why} {what} {self.place}.")


def rescued(
    write: Callable[[Path], Written], place: Path, elsewhere: Callable[[Path], Written] | None = None
) -> Rescued[Written]:
    """Write something, in another place if it must be.

    Parameters
    ----------
    write : callable
        ``write(place)`` gives what came of it.
    place : Path
        Where it is meant to be.
    elsewhere : callable, optional
        What is done in another place, which is not there yet, where that is not the same.

    Raises
    ------
    InputError, OSError
        Why it could not be written where it was meant, when no other place takes it either.
    """
    try:
        return Rescued(write(place), place)
    except (InputError, OSError) as refused:
        for other in _others(place):
            with suppress(InputError, OSError):
                return Rescued((elsewhere or write)(other), other, _sentence(refused))
        raise


def write_in_folder(write: Callable[[Path], Written], folder: Path) -> Rescued[Written]:
    """Write files into a folder that is there, or into one that is made elsewhere."""

    def elsewhere(other: Path) -> Written:
        other.mkdir(parents=True)
        return write(other)

    return rescued(write, folder, elsewhere)


def _sentence(refused: Exception) -> str:
    if isinstance(refused, OSError) and refused.filename:
        return f"{refused.filename}: {refused.strerror}."
    return str(refused)


def _others(place: Path) -> Iterator[Path]:
    """Name a place that is not taken in the folder one is in, in one's own, in that for temporary files."""
    for folder in dict.fromkeys((Path.cwd(), Path.home(), Path(tempfile.gettempdir()))):
        names = (f"{place.stem}-rescued{number}{place.suffix}" for number in ("", *range(2, 1000)))
        yield next(folder / name for name in names if not os.path.lexists(folder / name))
