"""A check of the tests of algorithms and kinds: `raterscope prepare` compiles every kernel they call."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import raterscope
from raterscope.app import compiled

_PACKAGE = Path(raterscope.__file__).parent


@cache
def modules_of_kernels() -> frozenset[str]:
    """Return the names of all modules of kernels."""
    files = _PACKAGE.rglob("_*kernels.py")
    return frozenset(".".join(file.relative_to(_PACKAGE.parent).with_suffix("").parts) for file in files)


@cache
def kernels_of(module: str) -> dict[tuple[str, str], Any]:
    """Return the kernels of a module that is loaded, by module and name."""
    return {
        (module, name): value
        for name, value in vars(sys.modules[module]).items()
        if hasattr(value, "overloads") and value.py_func.__module__ == module
    }


@cache
def listed_kernels() -> frozenset[compiled.Kernel]:
    """Return the kernels that are compiled in advance."""
    return frozenset(compiled._kernels(compiled._table()))


def kernels_in_use() -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the kernels of all modules that are loaded."""
    for module in modules_of_kernels() & sys.modules.keys():
        yield from kernels_of(module).items()


@pytest.fixture(autouse=True)
def kernels_are_listed() -> Iterator[None]:
    """Fail a test that calls a kernel with types that resources/kernels.json lacks.

    Users would wait for its compilation, and so would each process of the tests.
    """
    before = {name: len(kernel.overloads) for name, kernel in kernels_in_use()}
    yield
    missing = []
    for name, kernel in kernels_in_use():
        for types in list(kernel.overloads)[before.get(name, 0) :]:
            from raterscope.algorithms.compiling import signature_text

            call = *name, signature_text(kernel, tuple(types))
            missing += [] if call in listed_kernels() else [call]
    assert not missing, "run `python scripts/record_kernels.py --rare`"
