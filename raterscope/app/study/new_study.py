"""Studies made to be filled: what another program made is never removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raterscope.app.study.study import Study

__all__ = ["new_study"]


@contextmanager
def new_study(path: Path) -> Iterator[Study]:
    """Make a study to be filled; where that fails, the file that was made here is removed again.

    Raises
    ------
    StudyError
        When something of that name exists, however late it came, or the folder cannot be written.
    """
    with Study.create(path) as study:
        try:
            yield study
        except BaseException:
            study.discard()
            raise
