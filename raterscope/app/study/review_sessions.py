"""Review sessions of experts from the journal: decisions per hour, seconds per decision, self-agreement.

A pause of more than 15 minutes ends a session. Self-agreement is the share of spots, tasks and annotators of
pairs that an expert decided alike again: in a later session, or after an acceptance sample was drawn. What
was undone or reopened in between is a correction, and is not counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from raterscope.algorithms.annotators.proportions import wilson
from raterscope.app.review import BiasSubject, Decision, SampleSubject, SpotSubject, TaskSubject
from raterscope.app.review.decision import one_by_one
from raterscope.app.study.expert_agreement import VERDICTS, SubjectKey, spot_key, withdrawn_decisions

PAUSE = timedelta(minutes=15)
"""A longer pause ends a session."""

_SHORTEST = 60.0
"""Seconds below which a session has no rate."""

_NO_DECISION = float("nan")


@dataclass(frozen=True)
class Session:
    """Decisions of an expert without a long pause, or those of several sessions."""

    ends: tuple[datetime, datetime]  # (datetime, datetime): first and last decision
    # decisions, items: without undo and redo; a decision on several spots is one decision on several items
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
        """Median time from one decision to the next; NaN for a single decision."""
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
        """Share of repeated items decided alike, with Wilson's 95 % interval; NaN without any."""
        if not self.repeated:
            return _NO_DECISION, _NO_DECISION, _NO_DECISION
        low, high = wilson(self.same, self.repeated)
        return self.same / self.repeated, float(low), float(high)


def read_sessions(journal: Sequence[Decision]) -> tuple[ExpertSessions, ...]:
    """Return the sessions of each expert, by their first decision."""
    timed: dict[str, list[Decision]] = {}
    for decision in journal:
        if decision.at is not None and decision.verb != "undo":
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
    spots: dict[tuple[int | None, int, int], SubjectKey] = {}
    last: dict[Hashable, dict[str, tuple[tuple[int, int], str, str]]] = {}
    samples = 0
    for recorded in journal:
        samples += isinstance(recorded.subject, SampleSubject)
        if recorded.id in withdrawn or recorded.id not in session_of:
            continue
        for decision in one_by_one(recorded):
            subject, verb, label = decision.subject, decision.verb, ""
            if isinstance(subject, TaskSubject):
                key, verdict = (decision.item, "task", subject.task), subject.label
            elif isinstance(subject, BiasSubject):
                key, verdict = (decision.item, "bias", subject.annotator), VERDICTS.get(verb, "")
            elif isinstance(subject, SpotSubject):
                key = (decision.item, "spot", spot_key(spots, decision, subject)[1])
                verdict, label = VERDICTS.get(verb, ""), subject.label
            else:
                continue
            if verb == "move":
                continue  # another position, not another look
            if verb == "reopen":
                last.pop(key, None)
            elif verdict:
                part, by = (samples, session_of[recorded.id]), last.setdefault(key, {})
                if decision.who in by and by[decision.who][0] != part:
                    _, before, before_label = by[decision.who]
                    labels = {label, before_label} - {""}
                    yield decision.who, verdict == before and len(labels) <= 1
                by[decision.who] = part, verdict, label
