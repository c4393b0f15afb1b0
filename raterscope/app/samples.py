"""What the samples of all kinds have in common: studies that are there whole, and runs that are kept once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raterscope.app.outcome import versions
from raterscope.app.study import Study

__all__ = ["BEGUN", "is_kept", "made_whole"]

BEGUN = 1_772_442_000.0
"""When the simulated crowds began, in seconds: the morning of 2 March 2026."""


@contextmanager
def made_whole(path: Path) -> Iterator[Study]:
    """Give a new study to be filled, which takes its name when that is done.

    What one that was cut short has left is removed.
    """
    unfinished = path.with_name(f"unfinished-{path.name}")
    for ending in ("", "-wal", "-shm"):  # the database's own files beside it
        unfinished.with_name(unfinished.name + ending).unlink(missing_ok=True)
    with Study.create(unfinished) as study:
        yield study
    unfinished.replace(path)


def is_kept(study: Study, digest: str, settings: Mapping[str, Any]) -> bool:
    """Tell whether the study has this very run already: the demo may be shown many times."""
    return any(
        (run.digest, run.settings, run.versions) == (digest, settings, versions()) for run in study.runs()
    )
