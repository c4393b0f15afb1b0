"""Table of the annotators of all kinds: one row each, with values of every kind, and what is unusual.

Changes from one run to the next concern undecided items: a decision of the expert is not a change.

A value is compared with the crowd's median in robust standard deviations. It counts as unusual if its whole
interval is farther from the ideal than the median, also after the correction of Benjamini and Hochberg for
the number of annotators; without an interval it does not. The order includes the value's own uncertainty: an
annotator with three votes does not precede one with three hundred. The table decides nothing. Usual
annotators differ, too. The p-value of an annotator is therefore the larger of two: that of the median, given
the interval, and that of a distance as large among usual annotators, who are normally distributed with the
crowd's robust standard deviation. Shares are compared by the arcsine of their root, since the binomial
distribution of a share near the ideal is skewed, and its tail is longer than a normal one [anscombe1948]_.

References
----------
.. [anscombe1948] F. J. Anscombe, "The transformation of Poisson, binomial and negative-binomial data",
   Biometrika 35 (1948) 246-254, doi:10.1093/biomet/35.3-4.246.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.reliability import (
    AnnotatorReliability,
    annotator_reliability,
    from_interval,
)
from raterscope.algorithms.pairs.selection import benjamini_hochberg
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.annotator_evidence import AnnotatorFunctions, Consequences, Course, Evidence, Measure
from raterscope.app.assessment import Change, ComparedItem, Differences
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import ReviewState, all_names, groups
from raterscope.app.study import RunEntry, Study
from raterscope.text import counted, figure

MAX_LISTED = 500
"""Maximum number of changes listed; all are counted."""


@dataclass(frozen=True)
class Changes:
    """Changes from one run to another."""

    kind: str
    before: RunEntry  # the chosen run, else that of the most items
    after: RunEntry
    # disputed_before, disputed_after: disputed items; of pairs, flagged annotators
    disputed_before: int
    disputed_after: int
    count: int  # number of changed items: detections, regions, classes, flags
    newly_disputed: int  # number of items with the same result that are disputed now
    listed: tuple[Change, ...]  # the first `MAX_LISTED` by size
    ranks: int = 0  # of pairs: items that changed their place in the corrected ranking
    # number of items that were disputed before and that the expert has decided since; of pairs, of annotators
    # that the expert has flagged or cleared since
    decided: int = 0

    def in_words(self) -> str:
        """Describe the changes in one line: "12 -> 3 disputed (5 decided), 4 detections changed"."""
        arrow = "\N{RIGHTWARDS ARROW}"
        kind = KINDS[self.kind]
        noun = kind.nouns.detail
        many = f"{counted(self.count, noun)} changed" if self.count else f"no {noun} changed"
        decided = f" ({self.decided:,} decided)" if self.decided else ""
        together = sum(change.count for change in self.listed if change.count > 1)
        small = "all" if together == self.count else f"{together:,} of them"
        many += f" ({small} small, listed together)" if together else ""
        text = f"{self.disputed_before:,} {arrow} {self.disputed_after:,} {kind.doubt}{decided}, {many}"
        if self.newly_disputed:
            text += f", {self.newly_disputed:,} newly disputed"
        return text + (f", {counted(self.ranks, 'item')} changed rank" if self.ranks else "")


def previous_run(runs: Sequence[RunEntry], run: RunEntry, chosen: int | None) -> dict[int, RunEntry]:
    """Find the run of each item that was shown before a run; items without one are omitted.

    `runs`: all runs of the study, the oldest first. `chosen`: the run that was chosen to be shown when the
    fusion began.
    """
    earlier = [other for other in runs if other.kind == run.kind and other.id < run.id]
    earlier.sort(key=lambda other: other.id == chosen)
    return {item: other for other in earlier for item in other.items if item in run.items}


def changes_of_run(number: int, chosen: int | None, study: Study, watch: Watch = silent) -> Changes | None:
    """Compare a run with the runs shown before it, item by item; None if there were none.

    `number`: number of the run. `chosen`: see `previous_run`.
    """
    run = study.runs.get(number)
    before = previous_run(study.runs.all(), run, chosen)
    if not before:
        return None
    state = study.review_state(run.known)
    names = {entry.id: entry.name for entry in KINDS[run.kind].items(study)}
    differences = Differences()
    compare = KINDS[run.kind].functions.compare_runs
    for done, (item, earlier) in enumerate(before.items()):
        watch(done / len(before), "comparing with the run before")
        then, now = study.runs.result(earlier.id, item), study.runs.result(run.id, item)
        if then is not None and now is not None:
            where = f", {plain(names.get(item, ''))}" if len(names) > 1 else ""
            compare(ComparedItem(study, state, item, where, earlier, run, then, now), differences)
    differences.changes.sort(key=lambda change: -change.size)
    items = Counter(other.id for other in before.values())
    return Changes(
        kind=run.kind,
        before=max(before.values(), key=lambda other: (other.id == chosen, items[other.id], other.id)),
        after=run,
        disputed_before=differences.disputed_before,
        disputed_after=differences.disputed_after,
        count=sum(change.count for change in differences.changes) - differences.newly_disputed,
        newly_disputed=differences.newly_disputed,
        listed=tuple(differences.changes[:MAX_LISTED]),
        ranks=differences.ranks,
        decided=differences.decided,
    )


Column = NDArray[Any]
"""Numbers or texts of all rows."""


@dataclass(frozen=True)
class Value:
    """One value of one annotator, with its interval; NaN where unknown."""

    kind: str
    measure: Measure
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class AnnotatorTable:
    """The N annotators of a study, in the order of their import."""

    names: tuple[str, ...]  # (N,): main names
    # by main name: all names of each joined annotator, the main name first
    aliases: Mapping[str, tuple[str, ...]]
    excluded: Mapping[str, str]  # by name
    weighed: Mapping[str, tuple[float, str]]  # by name: down-weighted annotators
    evidence: tuple[Evidence, ...]  # of each kind with results
    numbers: NDArray[np.int64]  # (N,): numbers in the study, which determine colour and symbol
    across: AnnotatorReliability | None = None  # reliability over all kinds; with two kinds or more
    # by name: annotators who are marked for attention
    flagged: Mapping[str, str] = field(default_factory=dict)
    programs: frozenset[str] = frozenset()  # annotators that are programs

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The row of each main name."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], ...]:
        """By kind, the row of each annotator in the evidence, (N,); -1 for none."""
        rows_by_kind = []
        for evidence in self.evidence:
            rows = np.full(len(self.names), -1, dtype=np.int64)
            for at, name in enumerate(evidence.names):
                if name in self.index:
                    rows[self.index[name]] = at
            rows_by_kind.append(rows)
        return tuple(rows_by_kind)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """All columns by name, each (N,): numbers are NaN and texts empty where unknown.

        An interval has the columns NAME_low and NAME_high beside its value.
        """
        columns: dict[str, Column] = {
            "annotator": np.array(self.names, dtype=object),
            "aliases": np.array([", ".join(self.aliases.get(name, ())[1:]) for name in self.names], object),
            "marks": self._summed("marks"),
        }
        for evidence, rows in zip(self.evidence, self._rows, strict=True):
            present = rows >= 0
            counted = [evidence.kind, evidence.marks_are]
            columns["_".join(dict.fromkeys(counted))] = _numbers(evidence.marks, rows)
            columns[f"{evidence.kind}_items"] = _numbers(evidence.items, rows)
            for at, measure in enumerate(evidence.measures):
                for end, suffix in enumerate(("", "_low", "_high")):
                    column = _numbers(evidence.values[:, at, end], rows)
                    if end == 0 or np.isfinite(column).any():
                        columns[f"{evidence.kind}_{measure.name}{suffix}"] = column
            for name, texts in evidence.words.items():
                words = np.full(len(rows), "", dtype=object)
                words[present] = np.array(texts, dtype=object)[rows[present]]
                columns[f"{evidence.kind}_{name}"] = words
        if self.across is not None:
            columns["reliability"] = self.across.score
            columns["reliability_low"] = self.across.score_low
            columns["reliability_high"] = self.across.score_high
        columns["accepted"], columns["rejected"] = self._summed("accepted"), self._summed("rejected")
        columns["excluded"] = np.array([float(name in self.excluded) for name in self.names])
        columns["program"] = np.array([float(name in self.programs) for name in self.names])
        columns["weight"] = np.array([self.weight(name) for name in self.names])
        columns["reason"] = np.array([self.reason(name) for name in self.names], dtype=object)
        columns["flagged"] = np.array([float(name in self.flagged) for name in self.names])
        columns["flag_reason"] = np.array([self.flagged.get(name, "") for name in self.names], dtype=object)
        return columns

    @cached_property
    def searched(self) -> Column:
        """The text of each row that a filter searches, in lower case."""
        texts = [column for column in self.columns.values() if column.dtype == object]
        return np.array([" ".join(row).casefold() for row in zip(*texts, strict=True)], dtype=object)

    def _summed(self, amount: str) -> Column:
        total = np.zeros(len(self.names))
        for evidence, rows in zip(self.evidence, self._rows, strict=True):
            total += np.nan_to_num(_numbers(getattr(evidence, amount), rows))
        return total

    def weight(self, name: str) -> float:
        """Return the weight of an annotator in a fusion; 0 if excluded."""
        return 0.0 if name in self.excluded else self.weighed.get(name, (1.0, ""))[0]

    def reason(self, name: str) -> str:
        """Return why an annotator is excluded or down-weighted."""
        return self.excluded.get(name) or self.weighed.get(name, (1.0, ""))[1]

    def all_names(self, name: str) -> tuple[str, ...]:
        """Return all names of an annotator, the main name first."""
        return self.aliases.get(name, (name,))

    def values(self, name: str) -> Sequence[Value]:
        """Return all values of an annotator, kind by kind."""
        values = []
        for evidence, rows in zip(self.evidence, self._rows, strict=True):
            row = int(rows[self.index[name]])
            for at, measure in enumerate(evidence.measures if row >= 0 else ()):
                values.append(Value(evidence.kind, measure, *evidence.values[row, at].tolist()))
        return values

    def of_kind(self, name: str, kind: str) -> tuple[Evidence, int] | None:
        """Return the evidence of a kind, and the annotator's row in it; None without any."""
        for evidence, rows in zip(self.evidence, self._rows, strict=True):
            row = int(rows[self.index[name]])
            if evidence.kind == kind and row >= 0:
                return evidence, row
        return None

    def with_review(self, state: ReviewState) -> AnnotatorTable | None:
        """Return the table with other exclusions and weights; None if other names are joined."""
        if groups(state.aliases) != self.aliases:
            return None
        return AnnotatorTable(
            self.names, self.aliases, dict(state.excluded), _weighed(state), self.evidence, self.numbers,
            self.across, dict(state.flagged), state.programs,
        )  # fmt: skip


def _numbers(values: NDArray[Any], rows: NDArray[np.int64]) -> Column:
    numbers = np.full(len(rows), np.nan)
    present = rows >= 0
    numbers[present] = values[rows[present]]
    return numbers


def _weighed(state: ReviewState) -> dict[str, tuple[float, str]]:
    return {name: (weighed.weight, weighed.reason) for name, weighed in state.weighed.items()}


def kinds_of(study: Study, watch: Watch) -> Iterator[tuple[Kind, AnnotatorFunctions, Watch]]:
    """Yield the kinds of a study that have values of annotators, with their functions and a watch each."""
    kinds = [(kind, kind.load_annotators) for kind in KINDS.values() if kind.items(study)]
    for (kind, load), step in steps_of(watch, kinds):
        if load is not None:
            yield kind, load(), step


def read_annotators(study: Study, watch: Watch = silent) -> AnnotatorTable:
    """Read the evidence of all kinds on the annotators of a study, from the runs shown."""
    state = study.review_state()
    by_kind = [functions.evidence(study, step) for _, functions, step in kinds_of(study, watch)]
    names = [(number, name) for number, name in enumerate(study.annotators()) if name not in state.aliases]
    table = AnnotatorTable(
        names=tuple(name for _, name in names),
        aliases=groups(state.aliases),
        excluded=dict(state.excluded),
        weighed=_weighed(state),
        evidence=tuple(evidence for evidence in by_kind if evidence is not None),
        numbers=np.array([number for number, _ in names], dtype=np.int64),
        flagged=dict(state.flagged),
        programs=state.programs,
    )
    return replace(table, across=relate_kinds(table, watch))


def read_courses(names: Collection[str], study: Study, watch: Watch = silent) -> tuple[Course, ...]:
    """Read the courses of the annotator with these names, of all kinds."""
    return tuple(
        course
        for _, functions, step in kinds_of(study, watch)
        for course in functions.courses(study, names, step)
    )


def preview_change(
    names: Sequence[str], weight: float | None, study: Study, watch: Watch = silent
) -> tuple[Consequences, ...]:
    """Fuse all kinds again without some annotators, or with a weight, and list what changes.

    `weight`: None excludes them.
    """
    every = frozenset(all_names(names, study.review_state().aliases))
    by_kind = [
        functions.preview(study, every, weight, part(step, 0.0, 1.0, f"{kind.title}: "))
        for kind, functions, step in kinds_of(study, watch)
    ]
    return tuple(consequences for consequences in by_kind if consequences is not None)


def relate_kinds(table: AnnotatorTable, watch: Watch = silent) -> AnnotatorReliability | None:
    """Relate the reliability of annotators across kinds; None with fewer than two kinds.

    A kind takes part if its measure of reliability has intervals.
    """
    kinds, values, errors = [], [], []
    for kind, measure in [
        (evidence.kind, measure.name)
        for evidence in table.evidence
        for measure in evidence.measures
        if measure.is_reliability
    ]:
        ends = [table.columns.get(f"{kind}_{measure}{end}") for end in ("_low", "_high")]
        if ends[0] is None or ends[1] is None:
            continue
        value, error = from_interval(np.asarray(ends[0], dtype=float), np.asarray(ends[1], dtype=float))
        if np.isfinite(value).any():
            kinds.append(kind)
            values.append(value)
            errors.append(error)
    if len(kinds) < 2:
        return None
    return annotator_reliability(np.array(values).T, np.array(errors).T, kinds, watch)


def effects_of_exclusion(names: Collection[str], study: Study, watch: Watch = silent) -> tuple[str, ...]:
    """Describe what the first fusion without an annotator changed, one sentence per kind.

    Other decisions that were made before that fusion changed it too, and are named as such.
    """
    firsts = [run for kind in KINDS for run in _first_without(names, kind, study)]
    sentences = []
    for run, step in steps_of(watch, firsts):
        changes = changes_of_run(run.id, None, study, step)
        if changes is not None:
            others = run.known - changes.before.known > 1
            also = " (with other decisions since)" if others else ""
            sentences.append(
                f"{KINDS[run.kind].title}, run {run.id} without them{also}: {changes.in_words()}."
            )
    return tuple(sentences)


def _first_without(names: Collection[str], kind: str, study: Study) -> list[RunEntry]:
    """Return the first run of a kind that excludes an annotator since they last counted; none without."""
    first: list[RunEntry] = []
    counted = False
    for run in study.runs.all():
        if run.kind != kind:
            continue
        if set(names).isdisjoint(run.excluded):
            first, counted = [], True
        elif counted and not first:
            first = [run]
    return first


FAR = 3.0
"""Distance from the median, in robust standard deviations, from which a value is unusual."""
FEWEST = 4
"""Minimum number of annotators with a value to compare annotators."""
FALSE_SHARE = 0.1
"""Maximum expected share of usual annotators among those with an unusual value of a measure."""
LEVEL = 0.05
"""Probability, over the whole crowd, of reporting a change for any annotator who did not change."""
FLAGGED = 4.0
"""Minimum deviation of an annotator flagged for position bias or copying, in robust standard deviations."""
MAD = 1.4826
WIDTH = 3.92
"""Width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Unusual:
    """What is unusual about each of N annotators."""

    # (N,): deviations z of the most unusual value as z / (1 + z), 0 where nothing is unusual
    score: NDArray[np.float64]
    words: tuple[str, ...]  # (N,): "accuracy 0.55, crowd 0.88"; empty without unusual values
    # (N,): column of the most unusual value, or of the group that may copy; empty where nothing is unusual
    columns: tuple[str, ...]
    marked: Mapping[str, NDArray[np.bool_]]  # by column: values that are unusual


def find_unusual(table: AnnotatorTable) -> Unusual:
    """Compare every annotator with the crowd."""
    count = len(table)
    best, words, where = np.zeros(count), [""] * count, [""] * count
    marked = {}
    for evidence in table.evidence:
        for measure in evidence.measures:
            column = f"{evidence.kind}_{measure.name}"
            deviations, phrases = _deviations(table, evidence, measure)
            marked[column] = deviations > 0
            for row in np.flatnonzero(deviations > best).tolist():
                best[row], where[row] = deviations[row], column
                words[row] = phrases[row]
        column = f"{evidence.kind}_copy_group"
        if column in table.columns:
            groups = table.columns[column]
            marked[column] = groups != ""
            for row in np.flatnonzero(marked[column] & (best < FLAGGED)).tolist():
                best[row], where[row], words[row] = (
                    FLAGGED,
                    column,
                    f"may copy from others (group {groups[row]})",
                )
    return Unusual(best / (1 + best), tuple(words), tuple(where), marked)


def _deviations(
    table: AnnotatorTable, evidence: Evidence, measure: Measure
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the deviations of a measure, (N,), 0 where it is usual, and a phrase for each."""
    from scipy.special import ndtr

    column = f"{evidence.kind}_{measure.name}"
    value = table.columns[column]
    none = np.full(len(value), np.nan)
    low = table.columns.get(f"{column}_low", none)
    high = table.columns.get(f"{column}_high", none)
    known = np.isfinite(value)
    bounded = known & np.isfinite(low) & np.isfinite(high)
    deviations, phrases = np.zeros(len(value)), [""] * len(value)
    if measure.name == "change_p":
        changed = known & (np.nan_to_num(value, nan=1.0) < LEVEL / max(int(known.sum()), 1))
        deviations[changed] = FAR
        return deviations, ["changed over time"] * len(value)
    if measure.ideal is None or known.sum() < FEWEST:
        return deviations, phrases
    away = np.abs(value - measure.ideal)
    ends = np.abs(np.stack([low, high]) - measure.ideal)
    nearest = np.where((low <= measure.ideal) & (measure.ideal <= high), 0.0, ends.min(axis=0))
    # Where most have the ideal value, as with a few votes each, the median does not describe the others.
    middle = float(np.median(away[known])) or float(away[known].mean())
    spread = max(MAD * float(np.median(np.abs(away[known] - middle))), 0.2 * middle, 1e-9)
    z = np.where(known, (away - middle) / spread, 0.0)
    # a normal approximation on the side towards the median
    error = np.maximum(away - nearest, 1e-9) / (WIDTH / 2)
    p = ndtr(-np.where(bounded, (away - middle) / error, -np.inf))
    p = np.maximum(p, _share_of_usual(away, known, middle, spread, measure.is_share))
    is_farther = np.zeros(len(value), dtype=bool)
    is_farther[bounded] = benjamini_hochberg(p[bounded], FALSE_SHARE)
    unusual = (z > FAR) & (nearest > middle) & is_farther
    own = np.where(bounded, (high - low) / WIDTH, 0.0)
    z *= spread / np.hypot(spread, own)
    if measure.flag:
        flagged = table.columns[f"{evidence.kind}_{measure.flag}"] != ""
        z, unusual = np.where(flagged, np.maximum(z, FLAGGED), z), unusual | flagged
    deviations[unusual] = z[unusual]
    crowd = float(np.median(value[known]))
    unit = f" {measure.unit}" if measure.unit else ""
    for row in np.flatnonzero(unusual).tolist():
        phrases[row] = f"{measure.title} {figure(float(value[row]))}{unit}, crowd {figure(crowd)}{unit}"
    return deviations, phrases


def _share_of_usual(
    away: NDArray[np.float64], known: NDArray[np.bool_], middle: float, spread: float, is_share: bool
) -> NDArray[np.float64]:
    """Return the share of usual annotators, (N,), who are at least as far from the ideal; 1 where unknown."""
    from scipy.special import ndtr

    if is_share:
        away = np.arcsin(np.sqrt(np.clip(away, 0.0, 1.0)))
        middle = float(np.median(away[known]))
        spread = max(MAD * float(np.median(np.abs(away[known] - middle))), 1e-9)
    return np.where(known, ndtr((middle - away) / spread), 1.0)
