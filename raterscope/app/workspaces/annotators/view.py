"""Conversion of the table of annotators for the widgets: grid, queue, card and courses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.annotator_evidence import Course, Evidence, Measure
from raterscope.app.annotators.table import AnnotatorTable, Unusual, Value, find_unusual
from raterscope.app.kinds.registry import KINDS
from raterscope.text import counted, estimate, figure, part_of_one
from raterscope.widgets.figures.agreement_plots import AnnotatorCourse, CourseView
from raterscope.widgets.panels.annotator_card import CardLine, CardView
from raterscope.widgets.panels.queue_items import QueuedItems, QueueItem
from raterscope.widgets.tables.annotator_grid import AnnotatorGrid, Form, GridColumn

SHOWN = {1: 9, 2: 3}
"""By number of kinds, initial number of visible columns per kind; one with more kinds."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Prepared data of the table of annotators, for the screen."""

    table: AnnotatorTable
    unusual: Unusual
    grid: AnnotatorGrid
    queued: QueuedItems
    shown: tuple[str, ...]  # names on screen, by row: numbers while names are hidden


def prepare(table: AnnotatorTable, hidden: bool, watch: Watch) -> Prepared:
    """Compare all annotators, and make grid and queue; called in another thread."""
    watch(0.0, "comparing annotators")
    unusual = find_unusual(table)
    shown = table.names
    if hidden:
        shown = tuple(f"no. {number + 1}" for number in table.numbers.tolist())
    return Prepared(table, unusual, _grid(table, unusual, shown), _queue(table, unusual, shown), shown)


def _grid(table: AnnotatorTable, unusual: Unusual, shown: Sequence[str]) -> AnnotatorGrid:
    excluded = table.columns["excluded"] > 0
    several = len(table.evidence) > 1
    states = np.array([_state(table, name) for name in table.names], dtype=object)
    columns = [
        GridColumn("annotator", "", "annotator", "Colour and shape are the same in all views", "annotator",
                   np.array(shown, dtype=object)),
        GridColumn("state", "", "state", "Programs; excluded, down-weighted or flagged annotators, and the "
                   "reason", "words", states, shown=bool((states != "").any())),
        GridColumn("marks", "", "marks", "Clicks, masks, votes and comparisons that count in the runs shown",
                   "count", _known_marks(table)),
    ]  # fmt: skip
    if "reliability" in table.columns:
        columns.append(
            GridColumn("reliability", "", "all kinds", _ACROSS, "signed", table.columns["reliability"])
        )
    for evidence in table.evidence:
        group = evidence.kind if several else ""
        for at, measure in enumerate(evidence.measures):
            known = bool(np.isfinite(evidence.values[:, at, 0]).any())
            shown_first = known and at < SHOWN.get(len(table.evidence), 1)
            columns.append(_column(table, unusual, evidence, measure, group, shown_first))
        for name in evidence.words:
            key = f"{evidence.kind}_{name}"
            shown_first = any(evidence.words[name]) and (not several or name == "flag")
            columns.append(
                GridColumn(key, group, _TITLES.get(name, name), _WORDS_HELP.get(name, ""), "words",
                           table.columns[key], marked=unusual.marked.get(key), shown=shown_first)
            )  # fmt: skip
    judged = bool(table.columns["accepted"].any() or table.columns["rejected"].any())
    for key, help_text, texts, shown_first in (
        ("aliases", "Names that you joined with this one (J)", table.columns["aliases"], bool(table.aliases)),
        ("verdicts", "Marks that agree with your decisions, and marks that contradict one", _verdicts(table),
         judged),
    ):  # fmt: skip
        columns.append(GridColumn(key, "", key, help_text, "words", texts, shown=shown_first))
    return AnnotatorGrid(table.names, table.numbers, excluded, tuple(columns))


_ACROSS = (
    "Reliability over all kinds, in standard deviations of the crowd; a kind informs another as far as the "
    "data support it"
)

_TITLES = {"worst_class": "worst class is", "copy_group": "copy group"}

_WORDS_HELP = {
    "worst_class": "The class on which the share of right votes is lowest",
    "community": "Community of annotators, where the run has found any",
    "copy_group": "Annotators with the same number may copy from each other",
    "flag": "Flagged for position bias, by the run or by you",
    "verdict": "Your decision on the annotator's position bias",
}


def _column(
    table: AnnotatorTable, unusual: Unusual, evidence: Evidence, measure: Measure, group: str, shown: bool
) -> GridColumn:
    key = f"{evidence.kind}_{measure.name}"
    form: Form = "share" if measure.is_share else "p" if measure.unit == "p" else "value"
    form = "count" if measure.is_count else form
    if measure.is_signed:
        form = "signed"
    return GridColumn(
        key, group, measure.title, measure.help, form, table.columns[key],
        table.columns.get(f"{key}_low"), table.columns.get(f"{key}_high"), unusual.marked.get(key),
        measure.unit, shown,
    )  # fmt: skip


def _known_marks(table: AnnotatorTable) -> np.ndarray:
    """Return the marks of each annotator, NaN for those without fused marks."""
    marks = table.columns["marks"].astype(np.float64)
    return np.where(marks > 0, marks, np.nan)


def _verdicts(table: AnnotatorTable) -> np.ndarray:
    pairs = zip(table.columns["accepted"].tolist(), table.columns["rejected"].tolist(), strict=True)
    texts = [f"{right:,.0f} right, {wrong:,.0f} wrong" if right or wrong else "" for right, wrong in pairs]
    return np.array(texts, dtype=object)


def _state(table: AnnotatorTable, name: str) -> str:
    weight, reason = table.weight(name), table.reason(name)
    states = [("", "program")] if name in table.programs else []
    if weight != 1:
        states.append((reason, "excluded" if weight == 0 else f"counts as {part_of_one(weight)}"))
    if name in table.flagged:
        states.append((table.flagged[name], "flagged"))
    return "; ".join(f"{state}: {reason}" if reason else state for reason, state in states)


def _queue(table: AnnotatorTable, unusual: Unusual, shown: Sequence[str]) -> QueuedItems:
    """List the annotators, the most unusual first, then those with the most marks; excluded ones last."""
    order = np.lexsort((-table.columns["marks"], -unusual.score)).tolist()
    items = []
    for row in order:
        name, score = table.names[row], float(unusual.score[row])
        marks = int(table.columns["marks"][row])
        detail = unusual.words[row] or (counted(marks, "mark") if marks else "not fused yet")
        out = name in table.excluded
        text = _state(table, name) if out else detail
        is_measured = 0 < score < 1 and not unusual.columns[row].endswith("_copy_group")
        deviations = f"{score / (1 - score):.1f} SD" if is_measured else ""
        flag = table.flagged.get(name)
        items.append(QueueItem(name, shown[row], text, score or None, done=out, flag=flag, amount=deviations))
    return QueuedItems(items)


def card(prepared: Prepared, names: Sequence[str]) -> CardView | None:
    """Return the card of the first of the selected annotators, or of two side by side."""
    table = prepared.table
    selected = [name for name in names if name in table.index]
    if not selected:
        return None
    compared = selected[:2] if len(selected) == 2 else selected[:1]
    rows = [table.index[name] for name in compared]
    first, shown = rows[0], tuple(prepared.shown[row] for row in rows)
    common = {
        "lines": _lines(prepared, compared),
        "out": all(name in table.excluded for name in selected),
        "selected": len(selected),
        "joined": any(name in table.aliases for name in selected),
        "flagged": all(name in table.flagged for name in selected),
        "program": all(name in table.programs for name in selected),
    }
    if len(compared) == 2:
        return CardView(shown, **common)  # type: ignore[arg-type]
    column, text = prepared.unusual.columns[first], prepared.unusual.words[first]
    value = _deciding(table, compared[0], column)
    number, caption, interval = "", "no result yet", ""
    if value is not None:
        number = value.measure.in_words(value.value, value.low, value.high, brief=True)
        caption = f"{value.measure.title}, {value.kind}"
        if math.isfinite(value.low):
            low, high = (figure(end, value.low, value.high) for end in (value.low, value.high))
            interval = f"{low} to {high}, 95 %"
    sentences = [f"Unusual: {text}."] if text else []
    if len(selected) > 1:
        sentences.append(f"{len(selected):,} annotators are selected.")
    aliases = table.all_names(compared[0])[1:]
    if aliases and prepared.shown is table.names:
        sentences.append(f"Also: {', '.join(aliases)}.")
    state = _state(table, compared[0])
    if table.across is not None and math.isfinite(table.across.score[first]):
        across = table.across
        figures = (float(end[first]) for end in (across.score, across.score_low, across.score_high))
        sentences.append(
            f"Over all kinds: {estimate(*figures)} standard deviations of the crowd. {across.sentence()}"
        )
    tone = "rejected" if text or state not in ("", "program") else "plain"
    return CardView(
        shown, state.partition(":")[0], tone, number, caption, interval,
        tuple(sentences), **common,  # type: ignore[arg-type]
    )  # fmt: skip


def _deciding(table: AnnotatorTable, name: str, column: str) -> Value | None:
    """Return the most unusual value, or the first value of the kind with the most marks."""
    known = [value for value in table.values(name) if math.isfinite(value.value)]
    unusual = [value for value in known if f"{value.kind}_{value.measure.name}" == column]
    if unusual or not known:
        return unusual[0] if unusual else None

    def marks(value: Value) -> int:
        row = table.of_kind(name, value.kind)
        return 0 if row is None else int(row[0].marks[row[1]])

    return max(known, key=marks)


def _lines(prepared: Prepared, names: Sequence[str]) -> tuple[CardLine, ...]:
    table, lines = prepared.table, []
    for evidence in table.evidence:
        known_of_kind = [_known(table.of_kind(name, evidence.kind)) for name in names]
        if all(each is None for each in known_of_kind):
            continue
        counts = ["none" if each is None else _counts(each[0], each[1]) for each in known_of_kind]
        lines.append(CardLine(KINDS[evidence.kind].title, tuple(counts), heading=True))
        for at, measure in enumerate(evidence.measures):
            lines.append(_value_line(prepared, evidence, at, measure, names))
        for word in evidence.words:
            texts = tuple(str(table.columns[f"{evidence.kind}_{word}"][table.index[name]]) for name in names)
            if any(texts):
                lines.append(CardLine(_TITLES.get(word, word), texts, help=_WORDS_HELP.get(word, "")))
        verdicts = [each and (each[0].accepted[each[1]], each[0].rejected[each[1]]) for each in known_of_kind]
        if any(each is not None and any(each) for each in verdicts):
            texts = tuple(
                "" if each is None else f"{each[0]:,} right, {each[1]:,} wrong" for each in verdicts
            )
            lines.append(CardLine("your verdicts", texts, help="Marks that agree with your decisions"))
    return tuple(lines)


def _known(row_of_kind: tuple[Evidence, int] | None) -> tuple[Evidence, int] | None:
    """Return the row if it has marks or values, else None; an excluded annotator may have neither."""
    if row_of_kind is None:
        return None
    evidence, row = row_of_kind
    return row_of_kind if evidence.marks[row] or np.isfinite(evidence.values[row]).any() else None


def _counts(evidence: Evidence, row: int) -> str:
    noun = KINDS[evidence.kind].nouns.item
    marks = counted(int(evidence.marks[row]), evidence.marks_are.removesuffix("s"))
    return f"{marks}, {counted(int(evidence.items[row]), noun)}"


def _value_line(
    prepared: Prepared, evidence: Evidence, at: int, measure: Measure, names: Sequence[str]
) -> CardLine:
    table, key = prepared.table, f"{evidence.kind}_{measure.name}"
    texts, figures, marked = [], [], []
    for name in names:
        of_kind = table.of_kind(name, evidence.kind)
        value = (math.nan,) * 3 if of_kind is None else tuple(of_kind[0].values[of_kind[1], at].tolist())
        texts.append(measure.in_words(*value, brief=len(names) > 1))
        figures.append(value)
        marked.append(bool(prepared.unusual.marked[key][table.index[name]]))
    bars = tuple(figures) if measure.is_share else ()
    return CardLine(measure.title, tuple(texts), bars, tuple(marked), help=f"{measure.help}.")


def courses(
    courses_of: Mapping[str, Sequence[Course]], prepared: Prepared, names: Sequence[str]
) -> tuple[CourseView, ...]:
    """Return the courses of one annotator, or of two in one plot, kind by kind."""
    views: dict[str, CourseView] = {}
    for name in names:
        row = prepared.table.index[name]
        for course in courses_of.get(name, ()):
            measure = course.measure
            title = f"{course.kind}: {measure.title}"
            line = AnnotatorCourse(
                prepared.shown[row], int(prepared.table.numbers[row]), course.points, course.values
            )
            before = views[title].lines if title in views else ()
            label = f"{measure.title}, {measure.unit}" if measure.unit else measure.title
            views[title] = CourseView(
                title, label, course.across, measure.ideal, measure.is_share, (*before, line)
            )
    return tuple(views.values())
