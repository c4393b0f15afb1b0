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
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar

from raterscope.algorithms.progress import Watch, steps_of
from raterscope.app.errors import InputError, plain, system_reason
from raterscope.text import counted, percent

if TYPE_CHECKING:
    from raterscope.app.outcome import Answer, Outcome

_EVERY = 0.1  # seconds
_BAR = 24


def has_display() -> bool:
    """Return whether there is a display."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def one_line(text: str) -> str:
    """Make one line of printable text, safe for terminals."""
    line = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)


class ProgressLine:
    """A watch that draws a progress line on a terminal, and clears it at the end.

    If the stream is not a terminal, nothing is written.
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

    def __call__(self, fraction: float, text: str, **_more: Any) -> None:
        """Draw, at most ten times a second."""
        time_now = time.monotonic()
        if self._stream is None or time_now - self._drawn < _EVERY:
            return
        self._drawn = time_now
        filled = round(_BAR * min(max(fraction, 0.0), 1.0))
        bar = "#" * filled + "." * (_BAR - filled)
        room = max(20, _columns(self._stream) - _BAR - 10)
        self._stream.write(f"\r\x1b[K{bar} {percent(fraction):>5} {one_line(text)[:room]}")
        self._stream.flush()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


LISTED = 12
"""Maximum number of files, questions or images listed; beyond it, their number is printed."""

Result = TypeVar("Result")


def files_and_digests(paths: Iterable[Path]) -> list[dict[str, object]]:
    """Name the files that results are made from, for run.json."""
    from raterscope.app.study.references import digest_of_file

    return [{"file": path.name, "digest": digest_of_file(path)} for path in paths]


def folders_of(
    answer: Answer[Any, Any, Result], folder: Path, watch: Watch
) -> Iterator[tuple[str, Result, Path, Watch]]:
    """Make a folder for each item's results, below the given one if there are several.

    Yields the item's name, its result, the folder and the watch for writing there.
    """
    from raterscope.app.formats.output_files import file_name_part, unique_name

    names_in_use: set[str] = set()
    for (name, outcome), step in steps_of(watch, answer.outcomes.items()):
        if outcome.fusion is None:
            continue
        item_folder = folder
        if len(answer.outcomes) > 1:
            item_folder = folder / unique_name(file_name_part(name), names_in_use)
            make_folder(item_folder)
        yield name, outcome.fusion, item_folder, step


def where(answer: Answer[Any, Any, Any], name: str) -> str:
    """Return the prefix of a line about an item: its name if there are several."""
    return f"{plain(name)}: " if len(answer.outcomes) > 1 else ""


def by_item(
    answer: Answer[Any, Any, Result], say: Callable[[str, Result], Iterable[str]], most: int | None = None
) -> Iterator[str]:
    """Yield the lines of `say` on each item's result.

    Beyond `most`, the number is printed.
    """
    results = answer.fusions
    for name in list(results)[:most]:
        for words in say(name, results[name]):
            yield where(answer, name) + words
    if most is not None and len(results) > most:
        yield f"and {len(results) - most:,} more questions"


def print_results(notices: Iterable[str], lines: Iterable[str]) -> None:
    """Print notices to stderr and result lines to stdout."""
    for notice in notices:
        print(f"note: {one_line(notice)}", file=sys.stderr)
    for line in lines:
        print(one_line(line))


def print_files(paths: Sequence[Path], folder: Path) -> None:
    """Print which files were written below a folder."""
    folders = {path.parent for path in paths}
    if len(folders) > 1:
        print(f"{counted(len(paths), 'file')} in {counted(len(folders), 'folder')} of {folder}")
    elif paths:
        names = [path.name for path in paths]
        few = names if len(names) <= LISTED else [*names[:3], f"{len(names) - 4} more", names[-1]]
        print(f"{', '.join(few)} in {paths[0].parent}")


def raise_failures(outcomes: Mapping[str, Outcome[Any]]) -> None:
    """Raise an `InputError` with the first failed item and the number of others, if any failed."""
    failed = [outcome for outcome in outcomes.values() if outcome.fusion is None]
    if not failed:
        return
    if os.environ.get("RATERSCOPE_DEBUG"):
        sys.stderr.write("".join(outcome.details for outcome in failed))
    first = f"{plain(failed[0].item)}: {failed[0].problem}"
    remainder = ", the others were" if len(failed) < len(outcomes) else ""
    raise InputError(f"{len(failed):,} of {len(outcomes):,} could not be fused{remainder}; {first}")


def make_folder(folder: Path) -> None:
    """Make the folder of the results before the work, so that no result is lost."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; expected a folder for the results", file=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".raterscope-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot be written to: {system_reason(error)}", file=folder) from error


Written = TypeVar("Written")


@dataclass(frozen=True)
class WriteOutcome(Generic[Written]):
    """Result of writing, its path, and why this is not the intended path; empty if it is."""

    answer: Written
    path: Path
    why: str = ""

    def check_path(self, contents: str) -> None:
        """Raise an `InputError` with the path unless the result is at its intended path."""
        if self.why:
            raise InputError(f"{self.why} {contents} {self.path}.")


def write_with_fallback(
    write: Callable[[Path], Written], path: Path, elsewhere: Callable[[Path], Written] | None = None
) -> WriteOutcome[Written]:
    """Write results, to an alternative path if the intended path fails.

    `path`: the intended path.
    `elsewhere`: writes to an alternative path, which does not exist yet; `write` by default.
    If no alternative path works either, raises the `InputError` or `OSError` of `path`.
    """
    try:
        return WriteOutcome(write(path), path)
    except (InputError, OSError) as refused:
        for alternative in _others(path):
            with suppress(InputError, OSError):
                return WriteOutcome((elsewhere or write)(alternative), alternative, _sentence(refused))
        raise


def write_in_folder(write: Callable[[Path], Written], folder: Path) -> WriteOutcome[Written]:
    """Write files into an existing folder, or into a new one elsewhere if that fails."""

    def elsewhere(alternative: Path) -> Written:
        alternative.mkdir(parents=True)
        return write(alternative)

    return write_with_fallback(write, folder, elsewhere)


def _sentence(refused: Exception) -> str:
    if isinstance(refused, OSError) and refused.filename:
        return f"{refused.filename}: {system_reason(refused)}."
    return str(refused)


def _others(path: Path) -> Iterator[Path]:
    """Yield unused paths in the current, home and temporary folders."""
    for folder in dict.fromkeys((Path.cwd(), Path.home(), Path(tempfile.gettempdir()))):
        names = (f"{path.stem}-rescued{number}{path.suffix}" for number in ("", *range(2, 1000)))
        yield next(folder / name for name in names if not os.path.lexists(folder / name))
