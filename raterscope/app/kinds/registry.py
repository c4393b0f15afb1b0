"""The kinds of annotation that the program knows, registered once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Export, write_decisions
from raterscope.app.kinds.clicks.kind import CLICKS
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.labels.kind import LABELS
from raterscope.app.kinds.masks.kind import MASKS
from raterscope.app.kinds.pairs.kind import PAIRS

__all__ = ["KINDS", "exports", "find_export", "registered"]

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


def exports() -> tuple[Export, ...]:
    """List everything that can be exported, kind by kind, and the decisions, which are of all kinds."""
    decisions = Export("decisions", tuple(KINDS), "Decisions", ("csv",), write_decisions, of_run=False)
    return (*(export for kind in KINDS.values() for export in kind.exports), decisions)


def find_export(what: str, kinds: Sequence[str]) -> Export:
    """Find an export of some kinds by its name, the first kind's first.

    Raises
    ------
    InputError
        Where none of the kinds has it.
    """
    for kind in kinds:
        for export in exports():
            if export.what == what and kind in export.kinds:
                return export
    raise InputError(f"there is no {plain(what)} of {' or '.join(kinds)}")
