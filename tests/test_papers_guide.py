"""The guide's pages on the papers: no part is missing, and all that they name exists."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

from raterscope import resources
from raterscope.app.cli.program import COMMANDS
from raterscope.app.kinds.registry import KINDS

GUIDE = Path(resources.__path__[0]) / "guide"
TESTS = Path(__file__).parent
ENTRY = re.compile(
    r"^- \*\*(.+?)\*\* \*Code:\* (.+?)\. \*Fidelity:\* (.+?)\. \*See:\* (.+?)\. \*Test:\* (.+?)\.$"
)


def _entries():
    results = []
    for path in sorted((GUIDE / "papers").glob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("- **"):
                entry = ENTRY.match(line)
                assert entry, f"{path.name}: {line[:80]}"
                results.append((path.stem, *entry.groups()))
    return results


def _numbers(words, kind, prefix=""):
    """Return the numbers in "eqs. 3 to 9" or "Figures 15 and 16", of those that begin with a prefix."""
    results = set()
    number = re.escape(prefix) + r"(\d+)(?:\([a-d]\))?"
    for listed in re.findall(rf"\b(?:{kind})s?\.? ((?:{number}(?:, | and | to )?)+)", words):
        text = listed[0]
        for first, last in re.findall(rf"{number}(?: to {number})?", text):
            results |= set(range(int(first), int(last or first) + 1))
    return results


def _all_numbers(paper, kind, prefix=""):
    words = [entry[1] for entry in _entries() if entry[0] == paper]
    return set().union(*(_numbers(item, kind, prefix) for item in words))


NUMBERED = (
    ("clicks", "[Ee]q", "", 40), ("clicks", "Figure", "", 16), ("clicks", "Table", "", 1),
    ("clicks", "Algorithm", "", 3), ("clicks", "Figure", "A.", 23), ("clicks", "[Ss]ection", "", 7),
    ("thesis", "[Ee]q", "2.", 17), ("thesis", "[Ee]q", "3.", 20), ("thesis", "[Ee]q", "5.", 6),
    ("thesis", "Figure", "2.", 10), ("thesis", "Figure", "3.", 4), ("thesis", "Figure", "5.", 6),
    ("thesis", "Figure", "4.", 2), ("thesis", "Table", "2.", 3), ("thesis", "Table", "4.", 1),
    ("thesis", "Algorithm", "", 5), ("thesis", "[Ss]ection", "3.", 4),
    ("labels", "[Ee]q", "", 94), ("labels", "Figure", "", 13), ("labels", "[Ss]ection", "7.", 7),
    ("labels", "[Ss]ection", "3.", 3),
    ("masks", "[Ee]q", "", 34), ("masks", "[Ee]q", "A.", 18), ("masks", "[Ee]q", "B.", 21),
    ("masks", "[Ee]q", "C.", 10), ("masks", "Figure", "", 18), ("masks", "Table", "", 5),
    ("masks", "Table", "B.", 7), ("masks", "Algorithm", "", 1), ("masks", "[Ss]ection", "2.3.", 5),
    ("masks", "[Ss]ection", "4.", 3),
    ("pairs", "[Ee]q", "", 11), ("pairs", "Table", "", 8), ("pairs", "Figure", "", 2),
    ("pairs", "Algorithm", "", 1), ("pairs", "Theorem", "", 2), ("pairs", "[Ss]ection", "3.2.", 4),
)  # fmt: skip
"""Paper, kind, prefix and last number."""


def test_every_equation_algorithm_table_and_figure_has_an_entry():
    first = {("clicks", "A.", "Figure"): 17, ("masks", "B.", "Table"): 6, ("clicks", "", "[Ss]ection"): 2}
    for paper, kind, prefix, last in NUMBERED:
        begin = first.get((paper, prefix, kind), 1)
        missing = set(range(begin, last + 1)) - _all_numbers(paper, kind, prefix)
        assert missing == set(), (paper, kind, prefix)


def test_code_that_is_named_exists():
    for page, part, code, *_ in _entries():
        named = re.findall(r"`([\w.]+):(\w+)`", code)
        assert named, (page, part)
        for module, name in named:
            assert hasattr(importlib.import_module(f"raterscope.{module}"), name), (page, part, module, name)


@cache
def _functions(file):
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}


def test_tests_that_are_named_exist():
    for page, part, *_, tests in _entries():
        named = re.findall(r"`([\w/.]+)::(\w+)`", tests)
        assert named, (page, part)
        for file, name in named:
            assert name in _functions(file), (file, name)


def test_every_entry_names_its_place_on_screen():
    catalogues = [catalogue for kind in KINDS.values() for catalogue in kind.catalogues]
    algorithms = [algorithm for catalogue in catalogues for algorithm in catalogue.algorithms.values()]
    labels = {spec.label for algorithm in algorithms for spec in algorithm.settings.specs()}
    for page, part, _, _, shown_at, _ in _entries():
        if "setting" in shown_at:
            assert {*re.findall(r"\*\*(.+?)\*\*", shown_at)} <= labels, (page, part, shown_at)
        for link in re.findall(r"\]\(([\w/.]+)\)", shown_at):
            assert (GUIDE / "papers" / link).is_file(), (page, part, link)
        for command in re.findall(r"`raterscope (.+?)`", shown_at):
            assert command.split()[0] in COMMANDS, (page, part, command)
