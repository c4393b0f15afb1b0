"""What the window would ask, the command line says in one sentence with the option that answers it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns
from raterscope.app.masks.placing import OtherGrid
from raterscope.app.masks.raters import UnknownAnnotators

__all__ = ["by_option"]


@contextlib.contextmanager
def by_option() -> Iterator[None]:
    """Say by which option is told what a file leaves open."""
    try:
        yield
    except UnknownColumns as unknown:
        raise InputError(f"{unknown.what}, by --map column=field", file=unknown.file) from unknown
    except UnknownAnnotators as unknown:
        words = f"{unknown.what}; tell by --annotator NAME, or by --naming how names are made up, as in "
        raise InputError(words + "{item}_{annotator}", file=unknown.file) from unknown
    except OtherGrid as other:
        words = "; --resample takes it there" if other.resamplable else ""
        raise InputError(other.what + words, file=other.file) from other
