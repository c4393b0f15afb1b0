"""Plugins: algorithms, formats and exports of other packages, found by their entry points.

A plugin that cannot be loaded, or has a name that exists, is skipped; `problems` lists the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import TypeVar

from raterscope.algorithms.settings import Algorithm, Settings

Loaded = TypeVar("Loaded")

_problems: dict[tuple[str, str], str] = {}


def problems() -> tuple[str, ...]:
    """List the skipped plugins of the loaded groups with the reasons, a sentence each."""
    return tuple(_problems.values())


def load(group: str, expected: type[Loaded]) -> dict[str, Loaded]:
    """Load the plugins of a group.

    Parameters
    ----------
    group : str
        Group of entry points: "raterscope.formats".
    expected : type
        Class of the objects that the entry points name.

    Returns
    -------
    dict of str to object
        By the entry point's name.
    """
    loaded = {}
    for name, value in _loaded(group).items():
        if isinstance(value, expected):
            loaded[name] = value
        else:
            _leave_out(group, name, f"it is of class {type(value).__name__}; expected {expected.__name__}")
    return loaded


class Catalogue(Mapping[str, Algorithm]):
    """Algorithms by name: the program's own, then those of plugins, which are loaded at the first use.

    Parameters
    ----------
    kind : str
        Part before the dot in the names of the entry points: "labels" in ``labels.median``.
    """

    def __init__(self, kind: str, own: Iterable[Algorithm]) -> None:
        self._kind = kind
        self._own = {algorithm.name: algorithm for algorithm in own}

    @cached_property
    def _all(self) -> dict[str, Algorithm]:
        catalogue = dict(self._own)
        for name, algorithm in load("raterscope.algorithms", Algorithm).items():
            if name.partition(".")[0] != self._kind:
                continue
            if algorithm.name in catalogue:
                reason = f"there is an algorithm {algorithm.name} for {self._kind}"
                _leave_out("raterscope.algorithms", name, reason)
            elif not (isinstance(algorithm.settings, type) and issubclass(algorithm.settings, Settings)):
                _leave_out("raterscope.algorithms", name, "its settings are no class of Settings")
            else:
                catalogue[algorithm.name] = algorithm
        return catalogue

    def __getitem__(self, name: str) -> Algorithm:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


@cache
def _loaded(group: str) -> dict[str, object]:
    from importlib.metadata import entry_points  # takes 10 ms, and the window starts without plugins

    loaded = {}
    for point in entry_points(group=group):
        try:
            loaded[point.name] = point.load()
        except (Exception, SystemExit) as error:  # code of others may raise anything
            _leave_out(group, point.name, f"{type(error).__name__}: {error}")
    return loaded


def _leave_out(group: str, name: str, reason: str) -> None:
    sort = group.rpartition(".")[2].removesuffix("s")
    _problems[group, name] = f"The plugin {name} ({sort}) cannot be used: {reason.rstrip('.')}."
