"""The examples in docstrings of the algorithms run and print what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import raterscope

ROOT = Path(raterscope.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if "\n    >>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_print_what_they_show(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for docstring in doctest.DocTestFinder().find(importlib.import_module(name)):
        if docstring.examples:  # each run looks at all files that Python has read
            runner.run(docstring)
    assert runner.tries
    assert not runner.failures
