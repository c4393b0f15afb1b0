"""What the commands that fuse have in common: where results go, and which images failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raterscope.app.errors import InputError, plain
from raterscope.app.outcome import Outcome

__all__ = ["failures", "make_folder"]


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".raterscope-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"cannot be written to: {error.strerror}", file=folder) from error
