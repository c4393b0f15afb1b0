"""Catalogues of algorithms, and the plugins of other packages: algorithms, formats and exports.

Plugins are found by their entry points. A plugin that cannot be loaded, or whose name already exists, is
skipped; `problems` lists the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, TypeVar

from raterscope.algorithms.progress import Cancelled, RefusedError, Watch, silent
from raterscope.algorithms.settings import Algorithm, Settings

Loaded = TypeVar("Loaded")


class PluginError(RefusedError):
    """Error of a plugin's algorithm while it runs; the cause has the traceback."""


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
        The objects, by entry point name.
    """
    loaded = {}
    for name, value in _loaded(group).items():
        if isinstance(value, expected):
            loaded[name] = value
        else:
            _leave_out(group, name, f"it is of class {type(value).__name__}; expected {expected.__name__}")
    return loaded


class Catalogue(Mapping[str, Algorithm]):
    """Algorithms by name: first the program's own, then those of plugins, which are loaded at the first use.

    Parameters
    ----------
    kind : str
        Part before the dot in the names of the entry points: "labels" in ``labels.median``.
    result : type
        Class of the results of its algorithms.
    """

    def __init__(self, kind: str, result: type, own: Iterable[Algorithm]) -> None:
        self._kind = kind
        self._result = result
        self._own = {algorithm.name: algorithm for algorithm in own}

    @cached_property
    def _all(self) -> dict[str, Algorithm]:
        catalogue = dict(self._own)
        for name, algorithm in load("raterscope.algorithms", Algorithm).items():
            if name.partition(".")[0] != self._kind:
                continue
            if algorithm.name in catalogue:
                reason = f"there already is an algorithm {algorithm.name} for {self._kind}"
                _leave_out("raterscope.algorithms", name, reason)
            elif not (isinstance(algorithm.settings, type) and issubclass(algorithm.settings, Settings)):
                _leave_out("raterscope.algorithms", name, "its settings are not a subclass of Settings")
            else:
                run = partial(_run_plugin, name, algorithm.run, self._result)
                catalogue[algorithm.name] = replace(algorithm, run=run)
        return catalogue

    def __getitem__(self, name: str) -> Algorithm:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _run_plugin(
    name: str,
    run: Callable[..., Any],
    expected: type,
    data: object,
    settings: Settings | None = None,
    watch: Watch = silent,
) -> object:
    try:
        result = run(data, settings, watch=watch)
    except (Cancelled, RefusedError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # code of others may raise anything
        raise PluginError(f"the plugin {name} failed: {type(error).__name__}: {error}.") from error
    if not isinstance(result, expected):
        raise PluginError(
            f"the plugin {name} failed: its result is of class {type(result).__name__}; "
            f"expected {expected.__name__}."
        )
    return result


@cache
def _entry_points() -> Any:
    """Return `importlib.metadata.EntryPoints` of all packages; reading them takes tens of milliseconds."""
    from importlib.metadata import entry_points  # takes 10 ms, and the window starts without plugins

    return entry_points()


@cache
def _loaded(group: str) -> dict[str, object]:
    loaded = {}
    for point in _entry_points().select(group=group):
        try:
            loaded[point.name] = point.load()
        except (Exception, SystemExit) as error:  # code of others may raise anything
            _leave_out(group, point.name, f"{type(error).__name__}: {error}")
    return loaded


def _leave_out(group: str, name: str, reason: str) -> None:
    sort = group.rpartition(".")[2].removesuffix("s")
    _problems[group, name] = f"The plugin {name} ({sort}) cannot be used: {reason.rstrip('.')}."
