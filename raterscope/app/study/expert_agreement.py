"""Measures of experts' decisions: agreement between experts, and pace and self-agreement of each.

Experts who decided on the same subjects are compared by kappa, alpha, and Dice for settled voxels. Intervals
of kappa and alpha are from the bootstrap over subjects, those of Dice from the jackknife over the structures
of all cases.

A pause of more than 15 minutes ends a session. Self-agreement is the share of spots, tasks and annotators of
pairs with the same decision of an expert again: in a later session, or after an acceptance sample was drawn.
A decision after an undo or a reopening is a correction, and does not count.

References
----------
.. [cohen1960] J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
   Measurement 20 (1960) 37-46, doi:10.1177/001316446002000104.
.. [krippendorff2018] K. Krippendorff, "Content analysis: an introduction to its methodology", 4th edition,
   Sage (2018) (chapter 12).
.. [dice1945] L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26
   (1945) 297-302, doi:10.2307/1932409.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement import cohen_kappa, kappa_interval
from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.masks.data import OPEN, box_around
from raterscope.app.review import (
    REVIEWED,
    BiasSubject,
    CommentSubject,
    Decision,
    Region,
    RegionSubject,
    SampleSubject,
    SpotSubject,
    TaskSubject,
    fold,
    known_voxels,
)
from raterscope.app.review.decision import one_by_one
from raterscope.app.study.masks import settled_of
from raterscope.app.study.study import Study
from raterscope.text import percent

_DRAWS = 2000
_MORE = 2.0
"""Number of units added to a table before the bootstrap, because few units may all agree by chance."""

_NONE = float("nan")


class Interval(NamedTuple):
    """Estimate with its 95 % interval; NaN where it is unknown."""

    value: float = _NONE
    low: float = _NONE
    high: float = _NONE

    def in_words(self) -> str:
        """Describe the estimate: "0.81 (95 % interval 0.62 to 0.95)"; empty if unknown."""
        if np.isnan(self.value):
            return ""
        text = f"{self.value:.2f}"
        if np.isnan(self.low):
            return text
        return f"{text} (95 % interval {self.low:.2f} to {self.high:.2f})"


_UNKNOWN = Interval()


class Overlap(NamedTuple):
    """Numbers of voxels of a structure that two experts settled."""

    settled: int  # by both
    shared: int  # inside for both
    marked: int  # inside for one and for the other, added
    alike: int


@dataclass(frozen=True)
class ExpertAgreement:
    """Agreement of two experts on one kind."""

    count: int  # subjects that both decided; for masks, voxels that both settled
    alike: float  # share of them on which both agree
    # kappa, alpha: Cohen's kappa and Krippendorff's alpha; unknown if both gave only one verdict, and for
    # masks
    kappa: Interval = _UNKNOWN
    alpha: Interval = _UNKNOWN
    dice: Interval = _UNKNOWN  # of the settled voxels, for masks

    def in_words(self) -> str:
        """Describe it: "40 decided by both, 95 % alike, kappa 0.81 (95 % interval 0.62 to 0.95)"."""
        voxels = "" if np.isnan(self.dice.value) else " voxels"
        words = [f"{self.count:,}{voxels} decided by both", f"{percent(self.alike)} alike"]
        for name in ("kappa", "alpha", "dice"):
            value = getattr(self, name).in_words()
            if value:
                words.append(f"{'Dice' if name == 'dice' else name} {value}")
        return ", ".join(words)


def agreement_of(verdicts: Sequence[tuple[str, str]]) -> ExpertAgreement:
    """Return the agreement on subjects, given the two verdicts on each.

    Examples
    --------
    >>> verdicts = [("accept", "accept")] * 6 + [("reject", "reject")] * 3 + [("accept", "reject")]
    >>> result = agreement_of(verdicts)
    >>> round(result.kappa.value, 2), round(result.alpha.value, 2)
    (0.78, 0.79)
    """
    names, codes = np.unique(np.array(verdicts), return_inverse=True)
    first, second = codes.reshape(-1, 2).T
    alike = float((first == second).mean())
    kappa = float(cohen_kappa(first, second))
    if len(names) < 2 or np.isnan(kappa):
        return ExpertAgreement(len(verdicts), alike)
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (first, second), 1)
    return ExpertAgreement(
        len(verdicts), alike, Interval(kappa, *kappa_interval(first, second)), _alpha_of(table)
    )


def _alpha_of(table: NDArray[np.float64]) -> Interval:
    """Return alpha with an interval; two units are spread over the table, as for kappa."""
    value, count = float(_alpha(table[None])[0]), int(table.sum())
    chance = (table + _MORE / table.size) / (count + _MORE)
    draws = np.random.default_rng(0).multinomial(count, chance.ravel(), _DRAWS)
    alphas = _alpha(draws.reshape(-1, *table.shape).astype(float))
    low, high = np.quantile(alphas[np.isfinite(alphas)], (0.025, 0.975))
    return Interval(value, min(float(low), value), max(float(high), value))


def _alpha(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Krippendorff's nominal alpha of two raters from tables of their verdicts."""
    count = tables.sum(axis=(1, 2))
    of_name = tables.sum(axis=1) + tables.sum(axis=2)
    observed = 1.0 - np.trace(tables, axis1=1, axis2=2) / count
    pairs = 2.0 * count * (2.0 * count - 1.0)
    expected = 1.0 - (of_name * (of_name - 1.0)).sum(axis=1) / pairs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(expected > 0, 1.0 - observed / expected, np.nan))


def agreement_on_voxels(overlaps: Sequence[Overlap]) -> ExpertAgreement:
    """Return the agreement on settled voxels, given the overlap of each structure of each case."""
    table = np.array(overlaps, dtype=float)
    settled, *_, alike = table.sum(axis=0)
    dice = _dice_of(2.0 * table[:, 1], table[:, 2])
    return ExpertAgreement(int(settled), alike / settled, dice=dice)


def _dice_of(shared: NDArray[np.float64], marked: NDArray[np.float64]) -> Interval:
    """Return Dice over all structures with an interval of Student's t on the logit.

    The standard error is the jackknife's of a ratio. The degrees of freedom are those of the effective number
    of structures of equal size, so that a large structure does not hide that there are few. There is no
    interval for a single structure, nor for perfect or no agreement.
    """
    from scipy.special import expit, logit, stdtrit

    shared, marked = shared[marked > 0], marked[marked > 0]
    if not len(marked):
        return _UNKNOWN
    total, share = float(marked.sum()), marked / marked.sum()
    dice = float(shared.sum()) / total
    if len(marked) < 2 or not 0 < dice < 1:
        return Interval(dice)
    residual = (shared - dice * marked) / (1.0 - share)
    error = float(np.sqrt((len(marked) - 1) / len(marked) * np.square(residual).sum())) / total
    freedom = max(1.0 / float(np.square(share).sum()) - 1.0, 1.0)
    half = float(stdtrit(freedom, 0.975)) * error / (dice * (1.0 - dice))
    return Interval(dice, float(expit(logit(dice) - half)), float(expit(logit(dice) + half)))


def overlap_of(first: NDArray[np.int8], second: NDArray[np.int8]) -> Overlap | None:
    """Compare the voxels that two experts settled; None if both settled no common voxel."""
    both = (first != OPEN) & (second != OPEN)
    if not both.any():
        return None
    first_inside, second_inside = first[both] == 1, second[both] == 1
    return Overlap(
        int(both.sum()),
        int((first_inside & second_inside).sum()),
        int(first_inside.sum() + second_inside.sum()),
        int((first_inside == second_inside).sum()),
    )


def read_agreement(study: Study) -> Iterator[tuple[str, str, str, ExpertAgreement]]:
    """Yield kind, two experts and their agreement, from the journal of a merged study.

    Each expert's last verdict on a subject counts. A decision after the subject was reopened settles a
    difference, and does not count.
    """
    verdicts, regions = _first_reads(study.decisions())
    for kind in REVIEWED:
        experts = [who for of, who in verdicts if of == kind]
        for first, second in combinations(experts, 2):
            own, other = verdicts[kind, first], verdicts[kind, second]
            both = [(own[subject], other[subject]) for subject in own if subject in other]
            if both:
                yield kind, first, second, agreement_of(both)
    for first, second in combinations(regions, 2):
        overlaps = list(_overlaps(study, regions[first], regions[second]))
        if overlaps:
            yield "masks", first, second, agreement_on_voxels(overlaps)


VERDICTS = {"reject": "reject", "accept": "accept", "move": "accept", "flag": "flag", "clear": "clear"}
SubjectKey = tuple[int | None, str]
Spots = dict[tuple[int | None, int, int], SubjectKey]
"""Keys of the spots that were decided on, by image, column and row."""

_Verdicts = dict[tuple[str, str], dict[SubjectKey, str]]
_Regions = dict[str, dict[int, list[Region]]]


def _first_reads(journal: Sequence[Decision]) -> tuple[_Verdicts, _Regions]:
    """Return the verdicts of each expert by kind, and the settled regions of each by image."""
    withdrawn = withdrawn_decisions(journal)
    verdicts: _Verdicts = {}
    regions: _Regions = {}
    reopened: set[tuple[str, SubjectKey]] = set()
    spots: Spots = {}
    for recorded in journal:
        for decision in one_by_one(recorded):
            subject, verb = decision.subject, decision.verb
            kind, key, verdict = verdict_of(decision, spots)
            if verb == "reopen":
                reopened.add((kind, key))
            elif (kind, key) in reopened or recorded.id in withdrawn or not decision.who:
                continue
            elif verdict:
                verdicts.setdefault((kind, decision.who), {})[key] = verdict
            elif isinstance(subject, RegionSubject) and decision.voxels is not None and decision.item:
                if decision.reason.startswith(AGREED):
                    continue
                region = Region(decision.id, verb, subject, decision.run, decision.voxels)
                regions.setdefault(decision.who, {}).setdefault(decision.item, []).append(region)
    return verdicts, regions


def verdict_of(decision: Decision, spots: Spots) -> tuple[str, SubjectKey, str]:
    """Return the kind and key of a decision's subject, and the verdict; empty for other decisions."""
    subject, verdict = decision.subject, VERDICTS.get(decision.verb, "")
    if isinstance(subject, TaskSubject):
        return "labels", (decision.item, subject.task), subject.label
    if isinstance(subject, BiasSubject):
        return "pairs", (decision.item, subject.annotator), verdict
    if isinstance(subject, SpotSubject):
        return "clicks", spot_key(spots, decision, subject), verdict
    if isinstance(subject, RegionSubject):
        return "masks", (decision.item, subject.structure), ""
    return "", (None, ""), ""


AGREED = "agreed by both"
"""Prefix of the reason of a decision that settles voxels on which two experts agree."""


def withdrawn_decisions(journal: Sequence[Decision]) -> frozenset[int]:
    """Return the decisions undone by their experts; unlike these, undos by merging have a reason."""
    by_hand = [decision for decision in journal if not (decision.verb == "undo" and decision.reason)]
    state = fold(by_hand)
    return frozenset(decision.id for decision in by_hand if not state.stands(decision.id))


def spot_key(spots: Spots, decision: Decision, subject: SpotSubject) -> SubjectKey:
    """Return the key of a spot: decisions within a pixel are about the same spot."""
    x = subject.x if subject.from_x is None else subject.from_x
    y = subject.y if subject.from_y is None else subject.from_y
    column, row = round(x), round(y)
    for right in (0, -1, 1):
        for down in (0, -1, 1):
            known = spots.get((decision.item, column + right, row + down))
            if known is not None:
                return known
    return spots.setdefault((decision.item, column, row), (decision.item, f"{x:.1f}, {y:.1f}"))


def _overlaps(
    study: Study, first: dict[int, list[Region]], second: dict[int, list[Region]]
) -> Iterator[Overlap]:
    for image in first.keys() & second.keys():
        sides = first[image], second[image]
        structures = [{region.subject.structure for region in side} for side in sides]
        for structure in sorted(structures[0] & structures[1]):
            of = [[region for region in side if region.subject.structure == structure] for side in sides]
            settled = [settled_of(study, side) for side in of]
            origin, shape = box_around(
                (piece.origin, piece.value.shape) for side in settled for piece in side.values()
            )
            known = [
                known_voxels(side, values, structure, origin, shape)
                for side, values in zip(of, settled, strict=True)
            ]
            overlap = None if known[0] is None or known[1] is None else overlap_of(known[0], known[1])
            if overlap is not None:
                yield overlap


PAUSE = timedelta(minutes=15)
"""Maximum pause within a session, seconds."""

_SHORTEST = 60.0
"""Minimum length of a session with a rate, seconds."""

_NO_DECISION = float("nan")


@dataclass(frozen=True)
class Session:
    """Decisions of an expert without a long pause, or those of several sessions."""

    ends: tuple[datetime, datetime]  # (datetime, datetime): first and last decision
    # decisions, items: numbers without undo and redo; a decision on several spots is one decision on several
    # items
    decisions: int
    items: int
    seconds: float  # from the first to the last decision of each session
    gaps: tuple[float, ...]  # seconds between decisions of a session

    @property
    def per_hour(self) -> float:
        """Decisions per hour; NaN for less than a minute."""
        return 3600 * len(self.gaps) / self.seconds if self.seconds >= _SHORTEST else _NO_DECISION

    @property
    def median_seconds(self) -> float:
        """Median time between decisions, seconds; NaN for a single decision."""
        return median(self.gaps) if self.gaps else _NO_DECISION


@dataclass(frozen=True)
class ExpertSessions:
    """Sessions of an expert, and self-agreement."""

    expert: str
    sessions: tuple[Session, ...]
    repeated: int  # items that they decided again
    same: int  # of these, decided alike

    @property
    def whole(self) -> Session:
        """All sessions together."""
        return Session(
            (self.sessions[0].ends[0], self.sessions[-1].ends[1]),
            sum(session.decisions for session in self.sessions),
            sum(session.items for session in self.sessions),
            sum(session.seconds for session in self.sessions),
            tuple(gap for session in self.sessions for gap in session.gaps),
        )

    @property
    def alike(self) -> tuple[float, float, float]:
        """Share of repeated items with equal decisions, with Wilson's 95 % interval; NaN without any."""
        if not self.repeated:
            return _NO_DECISION, _NO_DECISION, _NO_DECISION
        low, high = wilson(self.same, self.repeated)
        return self.same / self.repeated, float(low), float(high)


def read_sessions(journal: Sequence[Decision]) -> tuple[ExpertSessions, ...]:
    """Return the sessions of each expert, by their first decision; comments and bookmarks do not count."""
    timed: dict[str, list[Decision]] = {}
    for decision in journal:
        is_note = decision.verb == "undo" or isinstance(decision.subject, CommentSubject)
        if decision.at is not None and not is_note:
            timed.setdefault(decision.who, []).append(decision)
    session_of: dict[int, int] = {}
    repeats: dict[str, list[bool]] = {}
    parts = {expert: list(_sessions(decisions)) for expert, decisions in timed.items()}
    for sessions in parts.values():
        session_of.update({row.id: number for number, rows in enumerate(sessions) for row in rows})
    for expert, same in _repeats(journal, session_of):
        repeats.setdefault(expert, []).append(same)
    return tuple(
        ExpertSessions(
            expert, tuple(map(_summarise, sessions)),
            len(repeats.get(expert, ())), sum(repeats.get(expert, ())),
        )
        for expert, sessions in parts.items()
    )  # fmt: skip


def _sessions(decisions: Sequence[Decision]) -> Iterator[list[Decision]]:
    rows: list[Decision] = []
    for decision in sorted(decisions, key=_time):
        if rows and _time(decision) - _time(rows[-1]) > PAUSE:
            yield rows
            rows = []
        rows.append(decision)
    if rows:
        yield rows


def _summarise(rows: Sequence[Decision]) -> Session:
    gaps = tuple((_time(later) - _time(earlier)).total_seconds() for earlier, later in pairwise(rows))
    items = sum(len(one_by_one(row)) for row in rows)
    return Session((_time(rows[0]), _time(rows[-1])), len(rows), items, sum(gaps), gaps)


def _time(decision: Decision) -> datetime:
    assert decision.at is not None
    return decision.at


def _repeats(journal: Sequence[Decision], session_of: dict[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield the expert of each repeated item, and whether both verdicts are the same."""
    withdrawn = withdrawn_decisions(journal)
    spots: Spots = {}
    last: dict[tuple[str, SubjectKey], dict[str, tuple[tuple[int, int], str, str]]] = {}
    samples = 0
    for recorded in journal:
        samples += isinstance(recorded.subject, SampleSubject)
        if recorded.id in withdrawn or recorded.id not in session_of:
            continue
        for decision in one_by_one(recorded):
            kind, key, verdict = verdict_of(decision, spots)
            label = decision.subject.label if isinstance(decision.subject, SpotSubject) else ""
            if decision.verb == "move":
                continue  # another position, not another look
            if decision.verb == "reopen":
                last.pop((kind, key), None)
            elif verdict:
                part, by = (samples, session_of[recorded.id]), last.setdefault((kind, key), {})
                if decision.who in by and by[decision.who][0] != part:
                    _, before, before_label = by[decision.who]
                    labels = {label, before_label} - {""}
                    yield decision.who, verdict == before and len(labels) <= 1
                by[decision.who] = part, verdict, label
