"""From spots, clicks, decisions and jobs to what the widgets draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.spots import Spot, why
from raterscope.widgets.canvas.marks import ClickMarks, DetectionMarks
from raterscope.widgets.panels.evidence_panel import Evidence, VoterLine

__all__ = ["click_marks", "detection_marks", "evidence", "radius_of", "status"]

CONTEXT = 6.0  # standard deviations
NARROWEST = 16.0
CAPTION = "posterior probability of a structure"


def click_marks(scene: Scene, numbers: Mapping[str, int]) -> ClickMarks:
    """Give the clicks in the annotators' lasting colours, outliers apart where a fusion tells them."""
    clicks, fusion = scene.clicks, scene.fusion
    number = np.array([numbers[name] for name in clicks.annotators], dtype=np.int64)
    inlier = None if fusion is None else fusion.clustering.inlier[fusion.mark]
    annotator = number[clicks.annotator] if len(number) else clicks.annotator
    return ClickMarks(clicks.x, clicks.y, annotator, inlier)


def detection_marks(spots: Sequence[Spot]) -> DetectionMarks:
    """Give the spots with their ellipses and states."""
    if not spots:
        return DetectionMarks.none()
    return DetectionMarks(
        x=np.array([spot.x for spot in spots]),
        y=np.array([spot.y for spot in spots]),
        covariance=np.array([spot.covariance for spot in spots]),
        posterior=np.array([spot.posterior for spot in spots]),
        state=tuple(spot.state for spot in spots),
        number=np.array([spot.number for spot in spots], dtype=np.int64),
        votes=np.array([spot.votes for spot in spots], dtype=np.int64),
        annotators=spots[0].looked,
    )


def evidence(
    spot: Spot,
    scene: Scene,
    numbers: Mapping[str, int],
    crop: NDArray[np.uint8] | None,
    radius: float,
    coverage: float,
) -> Evidence:
    """Give what is said of a spot: its number, its votes, who marked it, why it is disputed."""
    voters: list[VoterLine] = []
    if spot.cluster is not None and scene.fusion is not None:
        marked = scene.fusion.marked[:, spot.cluster]
        reliability = scene.fusion.rates.reliability[:, 0]
        order = np.argsort(np.where(np.isfinite(reliability), -reliability, np.inf), kind="stable")
        voters = [
            VoterLine(
                annotator=numbers[scene.clicks.annotators[place]],
                name=scene.clicks.annotators[place],
                clicked=bool(marked[place]),
                reliability=float(reliability[place]),
            )
            for place in order
        ]
    return Evidence(
        title=f"Spot {spot.number}",
        state=spot.state,
        probability=spot.posterior,
        low=spot.low,
        high=spot.high,
        caption=CAPTION,
        votes=spot.votes,
        annotators=spot.looked,
        lines=tuple(voters),
        why=why(spot, scene.fusion),
        crop=crop,
        crop_radius=float(np.ceil(radius)),
        covariance=spot.covariance,
        coverage=coverage,
    )


def status(scene: Scene | None, spots: Sequence[Spot]) -> str:
    """Say in the status line what is shown, which run, how it ended."""
    if scene is None:
        return ""
    words = [
        scene.image.name,
        f"{scene.image.width:g} x {scene.image.height:g} px",
        f"{len(scene.clicks):,} clicks by {len(scene.clicks.annotators):,} annotators",
    ]
    outside = int(scene.clicks.outside.sum())
    if outside:
        words.append(f"{outside:,} outside the image")
    if scene.path is None and scene.image.path is not None:
        words.append("image file missing")
    if scene.run is not None and scene.fusion is not None:
        ended = "converged" if scene.fusion.clustering.trace.converged else "stopped before it converged"
        words.append(f"{scene.run.algorithm.upper()}, {ended}")
        words.append(_disputed(spots))
    elif scene.told:
        words += [scene.told, _disputed(spots)]
    else:
        words.append("not fused yet")
    return "  |  ".join(words)


def _disputed(spots: Sequence[Spot]) -> str:
    return f"{sum(spot.state == 'disputed' for spot in spots)} of {len(spots)} spots disputed"


def radius_of(spot: Spot) -> float:
    """Give the half width, pixels, of the square in which a spot is judged: itself and what it touches."""
    return max(NARROWEST, CONTEXT * float(np.sqrt(max(spot.covariance[0, 0], spot.covariance[1, 1]))))
