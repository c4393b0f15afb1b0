"""From an answer's drift to what the drift panel draws: one annotator's way, and who changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.labels import drift
from raterscope.algorithms.labels.drift import FALSE_ALARMS, LEAST_VOTES, main_change
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.labels.community_charts import aligned_steps
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.view import name_of, time_of
from raterscope.text.numbers import count
from raterscope.widgets.figures.row_lines import DriftView
from raterscope.widgets.panels.change_list import ChangeLine

__all__ = ["Changed", "change_line", "drift_view", "who_changed"]

MOST_TOLD = 3
ALIGNED = 5
"""Steps at which the rows of all classes are joined."""
LEAST_P = 0.001
"""Smaller ones are not written out."""


@dataclass(frozen=True)
class Changed:
    """An annotator and what changed most of its rows."""

    annotator: int
    change: drift.ChangePoint
    changes: int
    p: float


def drift_view(scene: Scene, analysis: Analysis, annotator: int) -> DriftView | None:
    """Give an annotator's way; None for one without votes, or an answer without time."""
    fusion = scene.fusion
    if fusion is None or fusion.drift is None:
        return None
    way = drift.row_over_time(fusion.drift, annotator)
    steps = len(way.mean)
    if not steps:
        return None
    about = fusion.drift, scene.labels, fusion, annotator
    found = analysis.constancy
    named = found is not None and found.p[annotator] < FALSE_ALARMS
    changes = drift.change_points(*about) if named else ()
    return DriftView(
        classes=fusion.classes,
        outputs=fusion.outputs,
        mean=way.mean,
        low=way.low,
        high=way.high,
        informed=drift.aligned(*about).informed,
        changes=tuple((one.step, one.true, _words(one, fusion.outputs)) for one in changes),
        step=steps - 1,
        summary=_summary(scene, analysis, annotator, changes),
        together=_together(scene, annotator),
    )


def _together(scene: Scene, annotator: int) -> tuple[tuple[int, str], ...]:
    """Give steps at which rows are aligned, with the votes of all annotators until then."""
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    found = aligned_steps(scene.labels, scene.fusion.drift, annotator, ALIGNED)
    return tuple((step, f"{votes:,}") for step, votes in zip(*(one.tolist() for one in found), strict=True))


def who_changed(scene: Scene, analysis: Analysis, watch: Watch) -> tuple[Changed, ...]:
    """Describe those whom the test against constancy names; who changed most comes first."""
    fusion, found = scene.fusion, analysis.constancy
    assert fusion is not None
    assert fusion.drift is not None
    assert found is not None
    changed = []
    named = found.changed().tolist()
    for at, annotator in enumerate(named):
        watch(at / len(named), "looking for who changed")
        rows = drift.change_points(fusion.drift, scene.labels, fusion, annotator)
        largest = main_change(found, scene.labels, fusion, annotator)
        changed.append(Changed(annotator, largest, max(len(rows), 1), float(found.p[annotator])))
    return tuple(changed)


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


def _summary(scene: Scene, analysis: Analysis, annotator: int, changes: tuple[drift.ChangePoint, ...]) -> str:
    """Say when an annotator changed most, and how: "Changed at vote 241 (2026-03-01): where ring ..."."""
    found = analysis.constancy
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    if found is None or not np.isfinite(found.p[annotator]):
        return f"Too few votes to see a change: at least {LEAST_VOTES} are needed."
    p = float(found.p[annotator])
    chance = f"p {'<' if p < LEAST_P else '='} {max(p, LEAST_P):.2g}"
    if p >= FALSE_ALARMS:
        return f"No change beyond chance ({chance})."
    largest = main_change(found, scene.labels, scene.fusion, annotator)
    vote = int(scene.fusion.drift.vote[scene.fusion.drift.steps(annotator)][largest.step])
    day = time_of(scene.labels.time, vote)
    when = f"vote {largest.step + 1:,}" + (f" ({day})" if day else "")
    others = [f"{one.step + 1:,}" for one in changes if one.step != largest.step]
    more = f" and {len(others) - MOST_TOLD:,} more" if len(others) > MOST_TOLD else ""
    beside = f"; changes too at vote {', '.join(others[:MOST_TOLD])}{more}" if others else ""
    return f"Changed at {when}: {_row(scene, largest)}{beside} ({chance})."


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
