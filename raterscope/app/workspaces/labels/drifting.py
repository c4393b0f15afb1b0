"""From an answer's drift to what the drift panel draws: one annotator's way, and who changed."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from raterscope.algorithms.labels import drift
from raterscope.algorithms.progress import Watch
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.view import name_of, time_of
from raterscope.widgets.figures import count
from raterscope.widgets.panels.change_list import ChangeLine
from raterscope.widgets.plots.drift_view import DriftView

__all__ = ["Changed", "change_line", "drift_view", "who_changed"]

LEAST, MOST = 10, 2_000
"""Who has fewer votes cannot be seen to change; so many who have the most are looked at."""

MISTAKEN = 0.2
"""So many are expected to be named, of all, where nobody changes: their Bayes factors ask for it (Markov)."""

MOST_TOLD = 3


@dataclass(frozen=True)
class Changed:
    """An annotator and what changed most of its rows."""

    annotator: int
    change: drift.ChangePoint
    changes: int


def drift_view(scene: Scene, annotator: int) -> DriftView | None:
    """Give an annotator's way; None for one without votes, or an answer without time."""
    fusion = scene.fusion
    if fusion is None or fusion.drift is None:
        return None
    way = drift.row_over_time(fusion.drift, annotator)
    steps = len(way.mean)
    if not steps:
        return None
    about = fusion.drift, scene.labels, fusion, annotator
    changes = drift.change_points(*about)
    return DriftView(
        classes=fusion.classes,
        outputs=fusion.outputs,
        mean=way.mean,
        low=way.low,
        high=way.high,
        informed=drift.aligned(*about).informed,
        changes=tuple((one.step, one.true, _words(one, fusion.outputs)) for one in changes),
        step=steps - 1,
        summary=_summary(scene, annotator, (*changes, *(() if changes else drift.turns(*about)))),
    )


def who_changed(scene: Scene, analysis: Analysis, watch: Watch) -> tuple[Changed, ...]:
    """Find who changed beyond chance, of those with the most votes; who changed most comes first."""
    fusion = scene.fusion
    assert fusion is not None
    assert fusion.drift is not None
    about = fusion.drift, scene.labels, fusion
    many = np.argsort(-analysis.votes_of, kind="stable")[:MOST]
    many = many[analysis.votes_of[many] >= LEAST]
    wanted = log(max(len(many), 1) * (len(fusion.classes) + 1) / MISTAKEN)
    found = []
    for at, annotator in enumerate(many.tolist()):
        watch(at / len(many), "looking for who changed")
        rows, right = drift.change_points(*about, annotator), drift.turns(*about, annotator)
        sure = [one for one in (*rows, *right) if one.evidence >= wanted]
        if sure:
            # What one row says is told rather than all together, where it changed by as much.
            largest = max(sure, key=lambda one: (one.size, one.true))
            found.append(Changed(annotator, largest, max(len(rows), 1)))
    return tuple(sorted(found, key=lambda one: -one.change.size))


def change_line(scene: Scene, one: Changed, *, blind: bool) -> ChangeLine:
    """Give the line of an annotator who changed."""
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    votes = len(scene.fusion.drift.vote[scene.fusion.drift.steps(one.annotator)])
    return ChangeLine(
        key=one.annotator,
        annotator=int(scene.people[one.annotator]),
        name=name_of(scene, one.annotator, blind=blind),
        when=f"vote {one.change.step + 1:,} of {votes:,}",
        how=_row(scene, one.change)
        + (f"; {count(one.changes - 1, 'change')} more" if one.changes > 1 else ""),
    )


def _summary(scene: Scene, annotator: int, changes: tuple[drift.ChangePoint, ...]) -> str:
    """Say when an annotator changed most, and how: "Changed at vote 241 (2026-03-01): where ring ..."."""
    if not changes:
        return "No change beyond chance."
    largest = max(changes, key=lambda one: one.evidence)
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    vote = int(scene.fusion.drift.vote[scene.fusion.drift.steps(annotator)][largest.step])
    day = time_of(scene.labels.time, vote)
    when = f"vote {largest.step + 1:,}" + (f" ({day})" if day else "")
    others = [f"{one.step + 1:,}" for one in changes if one is not largest]
    more = f" and {len(others) - MOST_TOLD:,} more" if len(others) > MOST_TOLD else ""
    beside = f"; changes too at vote {', '.join(others[:MOST_TOLD])}{more}" if others else ""
    return f"Changed at {when}: {_row(scene, largest)}{beside}."


def _row(scene: Scene, change: drift.ChangePoint) -> str:
    """Say the two outputs of a row that changed most: "where ring is true: ring 0.88 → 0.34"."""
    assert scene.fusion is not None
    if change.true == drift.RIGHT:
        return f"right {change.before[0]:.2f} → {change.after[0]:.2f}"
    most = np.argsort(-np.abs(change.after - change.before), kind="stable")[:2]
    said = ", ".join(
        f"{scene.fusion.outputs[at]} {change.before[at]:.2f} → {change.after[at]:.2f}" for at in most.tolist()
    )
    return f"where {scene.fusion.classes[change.true]} is true: {said}"


def _words(change: drift.ChangePoint, outputs: tuple[str, ...]) -> str:
    """Say what is said more often since, and what less: "says 3 more often, 1 less"."""
    moved = change.after - change.before
    more, less = outputs[int(moved.argmax())], outputs[int(moved.argmin())]
    return f"says {more} more often, {less} less"
