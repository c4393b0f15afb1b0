"""The kinds of annotation that the program knows, registered once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from raterscope.algorithms.plugins import load
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import (
    Export,
    Request,
    Writer,
    write_decisions,
    write_reading,
    write_samples,
    write_sessions,
)
from raterscope.app.kinds.clicks.kind import CLICKS
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.labels.kind import LABELS
from raterscope.app.kinds.masks.kind import MASKS
from raterscope.app.kinds.pairs.kind import PAIRS
from raterscope.app.nouns import NOUNS

if TYPE_CHECKING:
    from raterscope.algorithms.progress import Watch
    from raterscope.app.study import Study


KINDS: dict[str, Kind] = {kind.name: kind for kind in (CLICKS, MASKS, LABELS, PAIRS)}
"""Kinds by name, in the order of tabs and reports."""


@contextmanager
def registered(kind: Kind) -> Iterator[None]:
    """Register another kind within a `with` block. Raises `ValueError` if the name is registered already."""
    from raterscope.app.study.kinds import stored

    if kind.name in KINDS:
        raise ValueError(f"a kind named {kind.name} is registered")
    KINDS[kind.name], NOUNS[kind.name] = kind, kind.nouns
    try:
        with nullcontext() if kind.load_storage is None else stored(kind.load_storage()):
            yield
    finally:
        del KINDS[kind.name], NOUNS[kind.name]


def exports() -> tuple[Export, ...]:
    """List all exports: kind by kind, then decisions and reads of all kinds."""
    of_kinds = (
        replace(export, kinds=(kind.name,), write=partial(_write, kind))
        for kind in KINDS.values()
        for export in kind.exports
    )
    of_study = partial(Export, of_run=False, of_study=True, kinds=tuple(KINDS))
    decisions = of_study("decisions", "Decisions", write=write_decisions)
    reading = of_study("reading", "Reads of a reader study", of_readers=True, write=write_reading)
    samples = of_study("acceptance", "Acceptance samples", write=write_samples)
    sessions = of_study("sessions", "Review sessions", write=write_sessions)
    of_plugins = (
        replace(export, write=partial(_write_plugin, name, export.write))
        for name, export in load("raterscope.exports", Export).items()
        if export.write is not None
    )
    return *of_kinds, decisions, sessions, samples, reading, *of_plugins


def _write(kind: Kind, study: Study, request: Request, watch: Watch) -> list[Path]:
    return kind.functions.writers[request.what](study, request, watch)


def _write_plugin(name: str, write: Writer, study: Study, request: Request, watch: Watch) -> list[Path]:
    try:
        return write(study, request, watch)
    except (InputError, Cancelled, OSError, MemoryError):
        raise
    except Exception as error:  # third-party code may raise any exception
        raise InputError(f"the plugin {name} failed: {error!r}") from error


def find_export(what: str, kinds: Sequence[str]) -> Export:
    """Find an export by its name, in the order of the kinds.

    Raises `InputError` if none of the kinds has it.
    """
    for kind in kinds:
        for export in exports():
            if export.what == what and kind in export.kinds:
                return export
    raise InputError(f"there is no {plain(what)} of {' or '.join(kinds)}")
