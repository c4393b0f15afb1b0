"""Record the kernels that the algorithms of each kind compile, with the types of their arguments.

Run it after a change of a kernel's arguments: it fuses small simulated data by every algorithm, and writes
raterscope/resources/kernels.json, from which `raterscope prepare` and the window compile in advance. Rare
kernels stay in the table if they still take these arguments.

With --rare it replaces them by the kernels that are stored beside the modules, as after a run of the tests:
those for large crowds, uneven slices and other data than the simulated ones. They are compiled last.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

RARE = "--rare" in sys.argv
if not RARE:
    # Compiled again in an empty folder: this also records the kernels that kernels call.
    COMPILED = tempfile.TemporaryDirectory()
    os.environ["NUMBA_CACHE_DIR"] = COMPILED.name

from numba.core.dispatcher import Dispatcher  # noqa: E402

import raterscope  # noqa: E402
from raterscope.algorithms.compiling import parse_types, signature_text  # noqa: E402
from raterscope.app import compiled  # noqa: E402
from raterscope.app.cli import main  # noqa: E402
from raterscope.app.kinds.registry import KINDS  # noqa: E402
from raterscope.app.simulation.setups import find_setup  # noqa: E402
from raterscope.app.simulation.simulate import commands_in_words, simulate  # noqa: E402

PACKAGE = Path(raterscope.__file__).parent
TABLE = Path(__file__).parents[1] / "raterscope" / "resources" / "kernels.json"
Table = dict[str, dict[str, list[list[str]]]]
SETUPS = {
    "clicks": ("separated", {"annotators": 10, "components": 5}),
    "masks": (
        "prostate",
        {"slices": 24, "rows": 64, "columns": 64, "thickness": 3.0, "pixel": 2.0, "raters": 3},
    ),
    "labels": ("crowd", {"tasks": 60, "annotators": 40}),
    "pairs": ("bias", {"good": 6, "biased": 3, "items": 6}),
}  # fmt: skip

Call = tuple[str, str, str]

_compile = Dispatcher.compile
_init = Dispatcher.__init__
dispatchers: list[Any] = []
calls: dict[Call, None] = {}
"""Kernels that Python called, in order."""
callees: dict[Call, dict[Call, None]] = {}
"""Kernels that each kernel calls: they are compiled with it where no process has compiled them before."""


class Compilations(threading.local):
    """What each thread is compiling at the moment, callers before their callees."""

    def __init__(self) -> None:
        self.stack: list[Call | None] = []


compilations = Compilations()


def _made(dispatcher: Any, *arguments: Any, **options: Any) -> None:
    _init(dispatcher, *arguments, **options)
    dispatchers.append(dispatcher)


def _recorded(dispatcher: Any, types: Any) -> Any:
    function, stack = dispatcher.py_func, compilations.stack
    call = None
    if function.__module__.startswith("raterscope.") and "<locals>" not in function.__qualname__:
        text = signature_text(dispatcher, tuple(types))
        if text is None:
            sys.stderr.write(f"not recorded: {function.__module__}.{function.__name__}: {types}\n")
        else:
            call = function.__module__, function.__name__, text
            parent = next(filter(None, reversed(stack)), None)
            (calls if parent is None else callees.setdefault(parent, {})).setdefault(call)
    stack.append(call)
    try:
        return _compile(dispatcher, types)
    finally:
        stack.pop()


def _ordered(reached: Iterable[Call]) -> Iterator[Call]:
    """Yield kernels from the last to the first, callees before their callers, as helpers compile them."""
    for call in reversed(list(reached)):
        yield from _ordered(callees.get(call, {}))
        yield call


def record(folder: Path) -> Table:
    """Fuse by the default (recorded under ""), its variants and every algorithm of each kind."""
    Dispatcher.compile = _recorded
    compiled.processors = lambda: 1  # no helpers: callees that they compile would be loaded, not recorded
    table: Table = {}
    for kind, (name, values) in SETUPS.items():
        setup = find_setup(name)
        drawn = simulate(setup, setup.settings(**values), folder / kind)
        words = shlex.split(commands_in_words(setup, drawn, folder / kind)[0])
        (at,) = (index for index, word in enumerate(words) if "*" in word) if kind == "masks" else (None,)
        if at is not None:
            words[at : at + 1] = map(str, sorted((folder / kind).glob("prostate_reader_*.nii.gz")))
        if kind == "clicks":
            _add_image(folder / kind / "clicks.csv")
        option = "--path" if kind == "pairs" else "--algorithm"
        catalogues = [catalogue for catalogue in KINDS[kind].catalogues if catalogue.chosen_by_run]
        words, variants = _variants(kind, words)
        commands = {"": words, **variants}
        for catalogue in catalogues:
            commands |= {name: [*words, option, name] for name in catalogue.algorithms}
        table[kind] = {}
        for algorithm, command in commands.items():
            calls.clear()
            # Kernels that were loaded are not compiled again: forget them, so that each is recorded.
            for dispatcher in dispatchers:
                dispatcher._reset_overloads()
            status = main(command[1:])
            sys.stderr.write(f"{kind} {algorithm or 'default'}: status {status}, {len(calls)} kernels\n")
            if not status:
                # Those for deep disputes last: few data have them.
                ordered = sorted(
                    dict.fromkeys(_ordered(calls)), key=lambda call: call[0].endswith("_flood_kernels")
                )
                table[kind][algorithm] = list(map(list, ordered))
    return table


def _add_image(table: Path) -> None:
    """Repeat the clicks on a second image, so that images learn from each other."""
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    with table.open("a", newline="") as lines:
        csv.DictWriter(lines, list(rows[0])).writerows(row | {"image": "second"} for row in rows)


def _variants(kind: str, words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the command without truth, and commands that reach further kernels."""
    variants, plain = {}, words
    if "--truth" in words:
        index = words.index("--truth")
        plain = [*words[:index], *words[index + 2 :]]
        variants["with truth"] = words
    if kind == "clicks":
        with Path(next(word for word in words if word.endswith("clicks.csv"))).open(newline="") as lines:
            annotator = next(csv.DictReader(lines))["annotator"]
        variants["with weights"] = [*plain, "--weight", f"{annotator}=0.5"]
    return plain, variants


def stored_kernels() -> Iterator[Call]:
    """Yield the kernels that are stored beside the modules, those that others call first."""
    for file in sorted(PACKAGE.rglob("_*kernels.py")):
        module = import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
        for name, kernel in sorted(vars(module).items()):
            if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__:
                for types, *_ in kernel._cache._cache_file._load_index():
                    text = signature_text(kernel, tuple(types))
                    if text is not None:
                        yield module.__name__, name, text


def still_taken(calls: Iterable[list[str]]) -> Iterator[Call]:
    """Yield those of some calls whose kernel exists and has as many arguments of such types."""
    for module, name, text in calls:
        try:
            kernel = getattr(import_module(module), name)
            types, parameters = parse_types(kernel, text), signature(kernel.py_func).parameters
        except (ImportError, AttributeError, KeyError, ValueError):
            continue
        if len(types) == len(parameters) and kernel.py_func.__module__ == module:
            yield module, name, text


def add_rare(table: Table, rare: Iterable[Call]) -> Table:
    """Add those of some calls that no algorithm of the table has, as kernels of a kind named rare."""
    known = {tuple(call) for algorithms in table.values() for calls in algorithms.values() for call in calls}
    return table | {"rare": {"rare": [list(call) for call in rare if call not in known]}}


if __name__ == "__main__":
    stored = json.loads(TABLE.read_text())
    rare = stored.pop("rare")["rare"]
    if RARE:
        result = add_rare(stored, stored_kernels())
    else:
        Dispatcher.__init__ = _made
        with tempfile.TemporaryDirectory() as folder:
            result = record(Path(folder))
        result = add_rare(result, still_taken(rare))
    TABLE.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
