"""Export of the annotators of all kinds as one table, rules that select its rows, and feedback pages.

A rule, such as ``accuracy < .6 and votes >= 50``, is parsed and never run as code. It consists of
comparisons, joined by `and`, `or` and `not`, with parentheses. The left side names a column; the end of a
column's name is enough where it is unique. The right side is a number, or a text, in quotes if it has spaces.
Text without a comparison selects rows that contain all its words.

The feedback page shows strengths, values with intervals, the clearest mistakes, and a course over time. It
names no other annotator: the crowd appears as medians.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterscope import __version__
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.annotator_evidence import Course
from raterscope.app.annotators.table import (
    AnnotatorTable,
    Column,
    Value,
    find_unusual,
    read_annotators,
    read_courses,
)
from raterscope.app.errors import InputError, plain, refuse_unknown
from raterscope.app.exports import Export, Request
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import Contents, Gallery, Picture, Prose, Section, Table, draw_lines
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.app.report import check_report_name, write_page
from raterscope.app.study import Study
from raterscope.figures.description import Line
from raterscope.text import counted

Mask = NDArray[np.bool_]
Columns = Mapping[str, NDArray[Any]]

DEEPEST = 50
"""Maximum depth of nested parentheses and negations."""

_UNITS = ("", "_mm", "_px")

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_TOKEN = re.compile(
    r"""\s*(?:(?P<compare><=|>=|==|!=|<|>|=)|(?P<bracket>[()])|"(?P<quoted>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<word>[^\s()<>=!"']+))"""
)


class RuleError(ValueError):
    """A rule that cannot be read; the message says what was expected."""


class _Token(NamedTuple):
    kind: str
    text: str


def select_rows(text: str, columns: Columns, searched: NDArray[Any]) -> Mask:
    """Return which of N rows a filter selects.

    `text`: a rule or words; empty for all rows.
    `columns`: numbers, or texts as objects, by name.
    `searched`: (N,), text of each row in which words are searched, in lower case.
    Raises `RuleError` if a rule cannot be read.

    Examples
    --------
    >>> columns = {"labels_accuracy": np.array([0.5, 0.9, np.nan]), "labels_votes": np.array([80, 90, 10])}
    >>> names = np.array(["kim", "lee", "max"], dtype=object)
    >>> select_rows("accuracy < .6 and votes >= 50", columns, names).tolist()
    [True, False, False]
    >>> select_rows("le", columns, names).tolist()
    [False, True, False]
    """
    if not is_rule(text):
        words = text.casefold().split()
        return np.array([all(word in row for word in words) for row in searched], dtype=bool)
    parser = _Parser(list(_tokens(text)), columns, len(searched))
    return parser.rule()


def is_rule(text: str) -> bool:
    """Return whether a text has a comparison outside of quotes."""
    return bool(re.search(r"[<>=]", re.sub(r""""[^"]*"|'[^']*'""", "", text)))


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuleError(f"{text[at:].strip()[:1]} is not understood.")
        kind = str(match.lastgroup)
        yield _Token("text" if kind in ("quoted", "single") else kind, match[kind])
        at = match.end()


class _Parser:
    """Recursive descent over the tokens of a rule."""

    def __init__(self, tokens: list[_Token], columns: Columns, rows: int) -> None:
        self._tokens, self._columns, self._rows = tokens, columns, rows
        self._at = self._depth = 0

    def rule(self) -> Mask:
        mask = self._any()
        if self._at < len(self._tokens):
            raise RuleError(f"Expected and, or, or the end before {self._tokens[self._at].text}.")
        return mask

    def _any(self) -> Mask:
        mask = self._all()
        while self._took("or"):
            mask = mask | self._all()
        return mask

    def _all(self) -> Mask:
        mask = self._term()
        while self._took("and"):
            mask = mask & self._term()
        return mask

    def _term(self) -> Mask:
        self._depth += 1
        if self._depth > DEEPEST:
            raise RuleError("Too many parentheses.")
        try:
            if self._took("not"):
                return ~self._term()
            if self._took("("):
                mask = self._any()
                if not self._took(")"):
                    raise RuleError("A parenthesis is not closed.")
                return mask
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Mask:
        name = self._next("a column", ("word",)).text
        sign = self._next("a comparison such as < or =", ("compare",)).text
        value = self._next(f"a value after {sign}", ("word", "text"))
        column = self._columns[self._column(name)]
        compare = _COMPARE[sign]
        if column.dtype == object:
            if sign not in ("=", "==", "!="):
                raise RuleError(f"{name} is a text: compare it with = or !=.")
            requested = value.text.casefold()
            same = np.array([str(text).casefold() == requested for text in column], dtype=bool)
            return same if compare is operator.eq else ~same
        number = self._number(name, value)
        with np.errstate(invalid="ignore"):
            holds = np.asarray(compare(column.astype(np.float64), number), dtype=bool)
        return holds & np.isfinite(column)  # no comparison holds for an unknown value

    def _column(self, name: str) -> str:
        """Return the column with this name, or whose name, or name without the unit, ends with it."""
        requested = name.casefold()
        if requested in self._columns:
            return requested
        ends = tuple(f"_{requested}{unit}" for unit in _UNITS)
        ending = [column for column in self._columns if column.casefold().endswith(ends)]
        if len(ending) == 1:
            return ending[0]
        if len(ending) > 1:
            raise RuleError(f"{name} is {' or '.join(ending[:4])}: write one of them.")
        near = [column for column in self._columns if requested in column.casefold()][:4]
        known = ", ".join(near or list(self._columns)[:6])
        raise RuleError(f"There is no column {name}. Columns: {known}.")

    def _number(self, name: str, token: _Token) -> float:
        text = token.text.casefold()
        if text in ("yes", "true"):
            return 1.0
        if text in ("no", "false"):
            return 0.0
        try:
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise RuleError(f"{name} is a number: compare it with a number, not with {token.text}.")
        return number

    def _next(self, expected: str, kinds: tuple[str, ...]) -> _Token:
        if self._at >= len(self._tokens):
            raise RuleError(f"Expected {expected} at the end.")
        token = self._tokens[self._at]
        if token.kind not in kinds or (
            token.kind == "word" and token.text.casefold() in ("and", "or", "not")
        ):
            raise RuleError(f"Expected {expected} before {token.text}.")
        self._at += 1
        return token

    def _took(self, text: str) -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        if token.kind == "text" or token.text.casefold() != text:
            return False
        self._at += 1
        return True


def _write(study: Study, request: Request, watch: Watch) -> list[Path]:
    return [write_annotators(request.path, [(study.path, read_annotators(study, watch))])]


ALL_ANNOTATORS = Export(
    "annotators", "Annotators of all kinds", of_run=False, kinds=tuple(KINDS), write=_write
)
"""Export of one study, as `export --what annotators --kind all`."""


def find_studies(paths: Sequence[Path]) -> list[Path]:
    """Return the studies among paths: files as given, and all studies in folders and their subfolders.

    Raises `InputError` where there is none.
    """
    studies: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            studies |= dict.fromkeys(sorted(path.rglob(f"*{STUDY_SUFFIX}")))
        else:
            studies[path] = None
    if not studies:
        raise InputError(f"contains no study, no file that ends in {STUDY_SUFFIX}", file=paths[0])
    return list(studies)


def read_studies(
    paths: Sequence[Path], say: Callable[[str], object], watch: Watch = silent
) -> list[tuple[Path, AnnotatorTable]]:
    """Read the annotators of several studies. A study that cannot be read is named and skipped.

    Raises `InputError` where none can be read.
    """
    tables = []
    problems: list[InputError] = []
    for path, step in steps_of(watch, paths):
        try:
            with Study.open(path, to_read=True) as study:
                tables.append((path, read_annotators(study, step)))
        except InputError as error:
            problems.append(error)
            say(f"skipped: {error}")
    if not tables:
        raise problems[0]
    return tables


def write_annotators(path: Path, tables: Sequence[tuple[Path, AnnotatorTable]], where: str = "") -> Path:
    """Write one row per annotator and study, with all columns that any of the studies has.

    Raises `InputError` if it cannot be written, or the rule cannot be read.

    `where`: rule that selects rows; see above. A column that a study lacks is unknown there.
    """
    named = len(tables) > 1
    columns = list(dict.fromkeys(name for _, table in tables for name in table.columns))
    last = ("accepted", "rejected", "excluded", "weight", "reason", "flagged", "flag_reason")
    columns = [name for name in columns if name not in last] + list(last)
    chosen = [_selected(table, where, tables) for _, table in tables]
    return write_table(path, [*(["study"] if named else []), *columns], _rows(tables, chosen, columns, named))


def _selected(
    table: AnnotatorTable, where: str, tables: Sequence[tuple[Path, AnnotatorTable]]
) -> NDArray[np.bool_]:
    columns = dict(table.columns)
    for _, other in tables:
        for name, column in other.columns.items():
            unknown = "" if column.dtype == object else np.nan
            columns.setdefault(name, np.full(len(table), unknown, dtype=column.dtype))
    try:
        return select_rows(where, columns, table.searched)
    except RuleError as error:
        raise InputError(f"the rule {plain(where)} cannot be read: {error}") from error


def _rows(
    tables: Sequence[tuple[Path, AnnotatorTable]],
    chosen: Sequence[NDArray[np.bool_]],
    columns: Sequence[str],
    named: bool,
) -> Iterator[Sequence[object]]:
    for (study, table), rows in zip(tables, chosen, strict=True):
        cells = [_texts(table.columns.get(name), rows) for name in columns]
        for row in zip(*cells, strict=True):
            yield (str(study), *row) if named else row


def _texts(column: Column | None, rows: NDArray[np.bool_]) -> list[str]:
    if column is None:
        return [""] * int(rows.sum())
    column = column[rows]
    if column.dtype == object:
        return [str(value) for value in column.tolist()]
    return [_text(value) for value in column.tolist()]


def _text(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) and value == int(value) else format_number(value)


FEWEST = 4
"""Minimum number of annotators with a value for a median of the crowd."""


def write_feedback(study: Study, name: str, path: Path, watch: Watch = silent) -> Path:
    """Write the feedback page of an annotator as HTML or PDF.

    Raises `InputError` if there is no such annotator, none of their annotations were fused, or the file
    cannot be written.

    `name`: any name of the annotator.
    """
    check_report_name(path)
    table = read_annotators(study, part(watch, 0.0, 0.4))
    mains = {alias: main for main, aliases in table.aliases.items() for alias in aliases}
    main = mains.get(name, name)
    refuse_unknown([main], table.index, "report on")
    values = [value for value in table.values(main) if math.isfinite(value.value)]
    if not values:
        raise InputError(f"has no results of {plain(name, 60)}; fuse first", file=study.path)
    names = frozenset(table.all_names(main))
    sections = [*_strengths(table, main, values), _values(table, main, values)]
    several = len({value.kind for value in values}) > 1
    for evidence in table.evidence:
        kind = KINDS[evidence.kind]
        if kind.load_annotators is not None and table.of_kind(main, kind.name) is not None:
            find = kind.load_annotators().mistakes
            for section in () if find is None else find(study, names, part(watch, 0.4, 0.7)):
                title = f"{section.title}, {kind.title.lower()}" if several else section.title
                sections.append(replace(section, title=title))
    courses = read_courses(names, study, part(watch, 0.7, 0.9))
    charts = [_chart(course) for course in courses if course.measure.is_share and len(course.values) > 1]
    if charts:
        sections.append(Section("Over time", [Gallery("", charts)]))
    facts = [("Annotator", plain(main, 200)), ("Study", plain(study.path.stem, 200))]
    marks = [
        counted(int(of[0].marks[of[1]]), of[0].marks_are.removesuffix("s"))
        for evidence in table.evidence
        if (of := table.of_kind(main, evidence.kind)) is not None and of[0].marks[of[1]]
    ]
    facts.append(("Marks", ", ".join(marks)))
    facts.append(("Written", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by Raterscope {__version__}"))
    contents = Contents(f"Feedback for {plain(main, 200)}", facts, sections)
    return write_page(contents, path, part(watch, 0.9, 1.0))


def _crowd(table: AnnotatorTable, value: Value) -> float:
    """Return the median of a value over all annotators; NaN with fewer than `FEWEST`."""
    column = np.asarray(table.columns[f"{value.kind}_{value.measure.name}"], dtype=float)
    known = column[np.isfinite(column)]
    return float(np.median(known)) if len(known) >= FEWEST else math.nan


def _strengths(table: AnnotatorTable, main: str, values: Sequence[Value]) -> list[Section]:
    """Return the values that are as good as those of most annotators, and the unusual ones."""
    unusual = find_unusual(table)
    row = table.index[main]
    good: list[tuple[str, str]] = []
    worse: list[tuple[str, str]] = []
    for value in values:
        ideal, crowd = value.measure.ideal, _crowd(table, value)
        if ideal is None or not math.isfinite(crowd):
            continue
        text = f"{value.measure.title} {_words(value)}, median of all {value.measure.in_words(crowd)}."
        if unusual.marked[f"{value.kind}_{value.measure.name}"][row]:
            worse.append((KINDS[value.kind].title, text))
        elif abs(value.value - ideal) <= abs(crowd - ideal):
            good.append((KINDS[value.kind].title, text))
    sections = []
    if good:
        sections.append(Section("What you do well", [Prose(good)]))
    if worse:
        sections.append(Section("Where you differ from the others", [Prose(worse)]))
    return sections


def _values(table: AnnotatorTable, main: str, values: Sequence[Value]) -> Section:
    rows = []
    for value in values:
        crowd = _crowd(table, value)
        rows.append(
            (
                f"{KINDS[value.kind].title}: {value.measure.title}", _words(value),
                value.measure.in_words(crowd), f"{value.measure.help}.",
            )
        )  # fmt: skip
    note = "With 95 % intervals where known. Measured against the results of all annotators together."
    verdicts = [
        f"{of[0].accepted[of[1]]:,} of your {of[0].marks_are} agree with decisions of the expert, "
        f"{of[0].rejected[of[1]]:,} contradict them."
        for evidence in table.evidence
        if (of := table.of_kind(main, evidence.kind)) is not None
        and of[0].accepted[of[1]] + of[0].rejected[of[1]]
    ]
    heads = ("Value", "You", "Median of all", "Meaning")
    return Section("Your values", [Table("", heads, rows, " ".join([note, *verdicts]), frozenset({3}))])


def _words(value: Value) -> str:
    return value.measure.in_words(value.value, value.low, value.high)


def _chart(course: Course) -> Picture:
    """Draw a share by blocks of marks, with its confidence band."""
    x = np.arange(1, len(course.values) + 1, dtype=float)
    value, low, high = course.values.T
    line = Line(title=course.measure.title, x=x, y=value, low=low, high=high, ink="#2f6fbf")
    title = f"{KINDS[course.kind].title}: {course.measure.title}"
    return draw_lines([line], f"{course.across}, in order", course.measure.title, title, limit=float(len(x)))
