"""The feedback page of one annotator: strengths, values with intervals, clearest mistakes, course over time.

It has no other annotator's name: the crowd appears as medians.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from raterscope import __version__
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.annotator_evidence import Course
from raterscope.app.annotators.table import AnnotatorTable, Value, find_unusual, read_annotators, read_courses
from raterscope.app.errors import InputError, plain, refuse_unknown
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import Contents, Gallery, Picture, Prose, Section, Table, draw_lines
from raterscope.app.report import check_report_name, write_page
from raterscope.app.study import Study
from raterscope.figures.description import Line
from raterscope.text import counted

FEWEST = 4
"""Annotators with a value that make a crowd."""


def write_feedback(study: Study, name: str, path: Path, watch: Watch = silent) -> Path:
    """Write the feedback page of an annotator as HTML or PDF.

    Raises `InputError` if there is no such annotator, nothing of theirs was fused, or the file cannot be
    written.

    `name`: any name of the annotator.
    """
    check_report_name(path)
    table = read_annotators(study, part(watch, 0.0, 0.4))
    mains = {alias: main for main, aliases in table.aliases.items() for alias in aliases}
    main = mains.get(name, name)
    refuse_unknown([main], table.index, "report on")
    values = [value for value in table.values(main) if math.isfinite(value.value)]
    if not values:
        raise InputError(f"has nothing fused of {plain(name, 60)}; fuse first", file=study.path)
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
    """Return the median of a value over all annotators; NaN of few."""
    column = np.asarray(table.columns[f"{value.kind}_{value.measure.name}"], dtype=float)
    known = column[np.isfinite(column)]
    return float(np.median(known)) if len(known) >= FEWEST else math.nan


def _strengths(table: AnnotatorTable, main: str, values: Sequence[Value]) -> list[Section]:
    """Return the values that are as good as most, and those that are unusual."""
    unusual = find_unusual(table)
    row = table.index[main]
    good: list[tuple[str, str]] = []
    worse: list[tuple[str, str]] = []
    for value in values:
        ideal, crowd = value.measure.ideal, _crowd(table, value)
        if ideal is None or not math.isfinite(crowd):
            continue
        words = f"{value.measure.title} {_words(value)}, median of all {value.measure.in_words(crowd)}."
        if unusual.marked[f"{value.kind}_{value.measure.name}"][row]:
            worse.append((KINDS[value.kind].title, words))
        elif abs(value.value - ideal) <= abs(crowd - ideal):
            good.append((KINDS[value.kind].title, words))
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
    """Draw a share by blocks, with its band."""
    x = np.arange(1, len(course.values) + 1, dtype=float)
    value, low, high = course.values.T
    line = Line(title=course.measure.title, x=x, y=value, low=low, high=high, ink="#2f6fbf")
    title = f"{KINDS[course.kind].title}: {course.measure.title}"
    return draw_lines([line], f"{course.across}, in order", course.measure.title, title, limit=float(len(x)))
