"""From an answer's drift to what the drift panel draws."""

from __future__ import annotations

from raterscope.algorithms.labels import drift
from raterscope.app.workspaces.labels.scene import Scene
from raterscope.widgets.plots.drift_view import DriftView

__all__ = ["drift_view"]


def drift_view(scene: Scene, annotator: int) -> DriftView | None:
    """Give an annotator's way; None for one without votes, or an answer without time."""
    fusion = scene.fusion
    if fusion is None or fusion.drift is None:
        return None
    way = drift.row_over_time(fusion.drift, annotator)
    steps = len(way.mean)
    if not steps:
        return None
    changes = drift.change_points(fusion.drift, scene.labels, fusion, annotator)
    return DriftView(
        classes=fusion.classes,
        outputs=fusion.outputs,
        mean=way.mean,
        low=way.low,
        high=way.high,
        informed=drift.aligned(fusion.drift, scene.labels, fusion, annotator).informed,
        changes=tuple((one.step, one.true, _words(one, fusion.outputs)) for one in changes),
        step=steps - 1,
    )


def _words(change: drift.ChangePoint, outputs: tuple[str, ...]) -> str:
    """Say what is said more often since, and what less: "says 3 more often, 1 less"."""
    moved = change.after - change.before
    more, less = outputs[int(moved.argmax())], outputs[int(moved.argmin())]
    return f"says {more} more often, {less} less"
