"""Changes of communities of annotators over time (the dynamic combination paper, sections 9 and 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.communities import Communities, CommunitySettings, communities
from raterscope.algorithms.annotators.similarity import SCALE, hellinger_similarity
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["EVENTS", "CommunitiesOverTime", "follow", "over_time"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EVENTS = ("begins", "ends", "splits off", "joins")
"""What the second column of `CommunitiesOverTime.events` means."""

_BEGINS, _ENDS, _SPLITS, _JOINS = range(4)

_SAME_MEMBERS = 0.2
_SAME_BEHAVIOUR = 0.5
"""A community goes on where it shares so many of the members of both, or behaves so much alike."""


@dataclass(frozen=True, eq=False)
class CommunitiesOverTime:
    """Communities at T moments, and which of them are the same.

    Attributes
    ----------
    moments : tuple of T Communities
    identity : tuple of T arrays, (C_t,) int16
        The lasting number of each community of a moment: the same from one moment to the next where it goes
        on; a number is never given again.
    flows : tuple of T - 1 arrays, (C_t + 1, C_t+1 + 1) int64
        How many annotators went from each community to each, by their numbers within the two moments; the
        last row and column count those who are in none.
    events : (E, 4) int32
        Moment, kind (index into `EVENTS`), lasting number, and the lasting number of the community that it
        splits off or joins, -1 for none. A split is seen at the later moment, as a beginning is, and an end
        or a joining at the first moment without it.
    annotators : int
        K.
    """

    moments: tuple[Communities, ...]
    identity: tuple[NDArray[np.int16], ...]
    flows: tuple[IntArray, ...]
    events: NDArray[np.int32]
    annotators: int

    @property
    def count(self) -> int:
        """Of lasting numbers."""
        return 1 + max((int(each.max()) for each in self.identity if len(each)), default=-1)

    def of(self, moment: int) -> NDArray[np.int16]:
        """Return the lasting number of every annotator's community at a moment, (K,), -1 for none."""
        every = np.full(self.annotators, -1, dtype=np.int16)
        now = self.moments[moment]
        every[now.members] = self.identity[moment][now.community]
        return every

    def path(self, number: int) -> tuple[IntArray, FloatArray]:
        """Return the moments at which a community is there, (n,), and its prototypes then, (n, J, L)."""
        at = [
            (t, int(np.flatnonzero(each == number)[0]))
            for t, each in enumerate(self.identity)
            if number in each
        ]
        result = np.array([t for t, _ in at], dtype=np.int64)
        shape = self.moments[0].prototype.shape[1:] if self.moments else (0, 0)
        matrices = [self.moments[t].prototype[c] for t, c in at]
        return result, np.array(matrices).reshape(len(at), *shape)

    def latest(self) -> FloatArray:
        """Return the last prototype of each lasting number, (count, J, L), to name them by."""
        last = [self.path(number)[1][-1] for number in range(self.count)]
        return np.array(last).reshape(len(last), *(self.moments[0].prototype.shape[1:] if last else (0, 0)))

    def told(self, names: Sequence[str], moments: Sequence[str] = ()) -> tuple[str, ...]:
        """Describe what happened, a sentence an event.

        Parameters
        ----------
        names : sequence of str
            Of the lasting numbers.
        moments : sequence of str, optional
            What to call the moments: "at moment 1" by default.
        """
        messages = []
        for moment, kind, number, other in self.events.tolist():
            rest = "" if other < 0 else f" {'from ' if kind == _SPLITS else ''}{names[other]}"
            when = moments[moment] if moments else f"at moment {moment + 1}"
            messages.append(f"{when[:1].upper()}{when[1:]} {names[number]} {EVENTS[kind]}{rest}.")
        return tuple(messages)


def over_time(
    means: Sequence[ArrayLike],
    votes: Sequence[ArrayLike],
    settings: CommunitySettings | None = None,
    watch: Watch = silent,
) -> CommunitiesOverTime:
    """Find the communities at several moments, and follow them from each to the next.

    Parameters
    ----------
    means : sequence of T arrays, (K, J, L)
        Every annotator's expected confusion matrix as of each moment.
    votes : sequence of T arrays, (K,)
        How many votes each had given by then; those with fewer than the least are in no community yet.
    settings : CommunitySettings, optional
    watch : Watch

    Raises
    ------
    ValueError
        For moments of different annotators or classes.
    """
    shapes = {np.shape(each) for each in means}
    if len(shapes) > 1 or len(means) != len(votes):
        raise ValueError(
            f"moments of {sorted(shapes)}; expected the same annotators at each, and their votes."
        )
    moments = [
        communities(mean, counts, settings, part(watch, at / len(means), (at + 1) / len(means)))
        for at, (mean, counts) in enumerate(zip(means, votes, strict=True))
    ]
    return follow(moments, next(iter(shapes))[0] if shapes else 0)


def follow(moments: Sequence[Communities], annotators: int) -> CommunitiesOverTime:
    """Match the communities of neighbouring moments, one to one.

    Of all ways to match them the one is taken that has the most in common: for each pair the share of their
    members who are in both, and how alike their prototypes are (`hellinger_similarity`), since members move
    between communities that stay as they are, and communities move with their members. A pair that has
    neither a fifth of its members nor half of its behaviour in common is not matched.

    Parameters
    ----------
    moments : sequence of Communities
        Of the same annotators.
    annotators : int
        K.
    """
    identity: list[NDArray[np.int16]] = []
    flows: list[IntArray] = []
    events: list[tuple[int, int, int, int]] = []
    number = 0
    for at, now in enumerate(moments):
        if at == 0:
            identity.append(np.arange(now.count, dtype=np.int16))
            number = now.count
            continue
        before = moments[at - 1]
        flow = _flow(before, now, annotators)
        match = _matched(before, now, flow[:-1, :-1])
        mine = np.full(now.count, -1, dtype=np.int16)
        for old, new in match:
            mine[new] = identity[-1][old]
        for new in np.flatnonzero(mine < 0).tolist():
            mine[new] = number
            number += 1
        events += _events(at, match, flow, identity[-1], mine)
        identity.append(mine)
        flows.append(flow)
    table = np.array(events, dtype=np.int32).reshape(-1, 4)
    return CommunitiesOverTime(tuple(moments), tuple(identity), tuple(flows), table, annotators)


def _flow(before: Communities, now: Communities, annotators: int) -> IntArray:
    old, new = before.of(annotators).astype(np.int64), now.of(annotators).astype(np.int64)
    old[old < 0], new[new < 0] = before.count, now.count
    counts = np.bincount(old * (now.count + 1) + new, minlength=(before.count + 1) * (now.count + 1))
    return counts.reshape(before.count + 1, now.count + 1)


def _matched(before: Communities, now: Communities, common: IntArray) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    union = before.sizes()[:, None] + now.sizes() - common
    members = common / np.maximum(union, 1)
    behaviour = np.zeros(common.shape)
    if common.size and before.prototype.size:
        every = np.concatenate([before.prototype, now.prototype])
        scale = now.scale or SCALE
        behaviour = hellinger_similarity(every, scale)[: before.count, before.count :].astype(np.float64)
    same = (members >= _SAME_MEMBERS) | (behaviour >= _SAME_BEHAVIOUR)
    rows, columns = linear_sum_assignment(np.where(same, members + behaviour, 0.0), maximize=True)
    return [(int(old), int(new)) for old, new in zip(rows, columns, strict=True) if same[old, new]]


def _events(
    at: int,
    match: list[tuple[int, int]],
    flow: IntArray,
    old_number: NDArray[np.int16],
    new_number: NDArray[np.int16],
) -> list[tuple[int, int, int, int]]:
    """Find where most members of unmatched communities came from or went to; this may be none."""
    stayed, known = {old for old, _ in match}, {new for _, new in match}
    events = []
    for old in range(len(old_number)):
        if old not in stayed:
            went = _most(flow[old])
            other = int(new_number[went]) if 0 <= went < len(new_number) else -1
            events.append((at, _ENDS if other < 0 else _JOINS, int(old_number[old]), other))
    for new in range(len(new_number)):
        if new not in known:
            came = _most(flow[:, new])
            other = int(old_number[came]) if 0 <= came < len(old_number) else -1
            events.append((at, _BEGINS if other < 0 else _SPLITS, int(new_number[new]), other))
    return events


def _most(counts: IntArray) -> int:
    """Return where more than half are, -1 where there is no such place."""
    return int(counts.argmax()) if counts.size and 2 * counts.max() > counts.sum() > 0 else -1
