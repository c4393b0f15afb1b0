"""The kinds of annotation that the program knows, registered once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raterscope.app.kinds.clicks.kind import CLICKS
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.labels.kind import LABELS
from raterscope.app.kinds.masks.kind import MASKS
from raterscope.app.kinds.pairs.kind import PAIRS

__all__ = ["KINDS", "registered"]

KINDS: dict[str, Kind] = {kind.name: kind for kind in (CLICKS, MASKS, LABELS, PAIRS)}
"""By name, in the order of tabs and reports."""


@contextmanager
def registered(kind: Kind) -> Iterator[None]:
    """Register another kind for a while.

    Raises
    ------
    ValueError
        Where a kind of this name is registered.
    """
    if kind.name in KINDS:
        raise ValueError(f"a kind named {kind.name} is registered")
    KINDS[kind.name] = kind
    try:
        yield
    finally:
        del KINDS[kind.name]
