"""What the commands that fuse have in common: where results go, what is said of them, and which failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from raterscope.algorithms.progress import Watch, part
from raterscope.app.command_line.terminal import one_line
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.export import distinct, safe
from raterscope.app.outcome import Answer, Outcome
from raterscope.app.study.places import digest_of_file

__all__ = [
    "LISTED", "by_item", "failures", "files_and_digests", "folders_of", "make_folder", "tell", "tell_files",
    "where",
]  # fmt: skip

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
