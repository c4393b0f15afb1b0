"""Conversion of spots, clicks and decisions to the values that widgets draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.app.kinds.clicks.runs import plan_of
from raterscope.app.review import Decision, is_bookmarked
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.spots import ImageResult, Spot, describe_sources, explain_weights
from raterscope.text import counted, with_minus
from raterscope.widgets.canvas.viewport import ClickMarks, DetectionMarks
from raterscope.widgets.panels.class_bars import ClassBar, keys_of
from raterscope.widgets.panels.evidence_panel import Evidence, EvidenceLine, VoterLine

CONTEXT = 6.0  # standard deviations
NARROWEST = 16.0
NEAR, MAX_NEAR = 6.0, 12
"""Maximum distance of neighbours, in half widths of a spot's crop, and their maximum number."""
CAPTION = "posterior probability of a structure"


def click_marks(
    scene: Scene, numbers: Mapping[str, int], spots: Sequence[Spot] = (), *, blind: bool = False
) -> ClickMarks:
    """Return the clicks with the numbers of their annotators; with a fusion, outliers are marked.

    In blind mode, return only clicks on decided spots.
    """
    clicks, fusion = scene.clicks, scene.fusion
    number = np.array([numbers[name] for name in clicks.annotators], dtype=np.int64)
    outlier = None
    if fusion is not None:
        plan = None if scene.run is None else plan_of(scene.run)
        threshold = (plan or FusionPlan()).assignment.outlier_threshold
        outlier = fusion.clustering.inlier[fusion.mark] < threshold
    annotator = number[clicks.annotator] if len(number) else clicks.annotator
    if not blind:
        return ClickMarks(clicks.x, clicks.y, annotator, outlier)
    if fusion is None or outlier is None:
        return ClickMarks.none()
    decided = np.zeros(len(fusion.clustering) + 1, dtype=bool)  # the last one stands for no cluster
    decided[[spot.cluster for spot in spots if spot.cluster is not None and spot.decided]] = True
    shown = decided[fusion.clustering.nearest[fusion.mark]]
    return ClickMarks(clicks.x[shown], clicks.y[shown], annotator[shown], outlier[shown])


def detection_marks(
    spots: Sequence[Spot], bookmarks: Sequence[Decision] = (), *, blind: bool = False
) -> DetectionMarks:
    """Return the spots with ellipses and states; in blind mode without results of undecided ones."""
    if not spots:
        return DetectionMarks.none()
    hidden = [blind and not spot.decided for spot in spots]
    return DetectionMarks(
        x=np.array([spot.x for spot in spots]),
        y=np.array([spot.y for spot in spots]),
        covariance=np.array([spot.covariance for spot in spots]),
        posterior=np.where(hidden, np.nan, [spot.posterior for spot in spots]),
        state=tuple("undecided" if hide else spot.state for spot, hide in zip(spots, hidden, strict=True)),
        number=np.array([spot.number for spot in spots], dtype=np.int64),
        votes=None if blind else np.array([spot.votes for spot in spots], dtype=np.int64),
        annotators=spots[0].looked,
        labels=tuple("" if hide else spot.class_name for spot, hide in zip(spots, hidden, strict=True)),
        bookmarked=frozenset(
            spot.number for spot in spots if bookmarks and is_bookmarked(bookmarks, spot.subject)
        ),
    )


def evidence(
    spot: Spot,
    result: ImageResult,
    numbers: Mapping[str, int],
    crop: NDArray[np.uint8] | None,
    radius: float,
    coverage: float,
    neighbours: Sequence[EvidenceLine] = (),
    programs: Sequence[str] = (),
) -> Evidence:
    """Return the evidence for a spot: votes, annotators, explanation of the weights.

    `programs` are those of `Clicks`.
    """
    fusion, annotators, weights = result.fusion, result.annotators, result.weights
    voters: list[VoterLine] = []
    if spot.cluster is not None and fusion is not None:
        marked = fusion.marked[:, spot.cluster]
        reliability = fusion.rates.reliability[:, 0]
        order = np.lexsort((np.where(np.isfinite(reliability), -reliability, np.inf), ~marked))
        voters = [
            VoterLine(
                annotator=numbers[annotators[row]],
                name=annotators[row],
                clicked=bool(marked[row]),
                reliability=float(reliability[row]),
                weight=1.0 if weights is None else float(weights[row]),
            )
            for row in order
        ]
    return Evidence(
        title=f"Spot {spot.number}",
        state=spot.state,
        probability=spot.posterior,
        low=np.nan if spot.held else spot.low,
        high=np.nan if spot.held else spot.high,
        caption=CAPTION,
        votes=spot.votes,
        annotators=spot.looked,
        lines=tuple(voters),
        says=describe_sources(spot, fusion),
        why=explain_weights(spot, fusion, programs),
        neighbours=tuple(neighbours),
        crop=crop,
        crop_radius=float(np.ceil(radius)),
        covariance=spot.covariance,
        coverage=coverage,
        classes=class_bars(spot),
    )


def class_bars(spot: Spot, *, hidden: bool = False) -> tuple[ClassBar, ...]:
    """Return the classes of a spot with their digit keys; optionally without results."""
    digits = keys_of([entry.name for entry in spot.classes])
    return tuple(
        ClassBar(
            index, entry.name, np.nan if hidden else entry.share,
            "accent" if entry.name == spot.class_name and not hidden else "plain",
            "decided" if entry.name == spot.label else "", digit, votes=-1 if hidden else entry.votes,
        )
        for index, (entry, digit) in enumerate(zip(spot.classes, digits, strict=True))
    )  # fmt: skip


def covered(
    spot: Spot, crop: NDArray[np.uint8] | None, radius: float, coverage: float, before: str
) -> Evidence:
    """Return a spot without its evidence, for blind mode."""
    return Evidence(
        title=f"Spot {spot.number}", state="undecided", probability=np.nan, low=np.nan, high=np.nan,
        caption="", votes=0, annotators=0, crop=crop, crop_radius=float(np.ceil(radius)), covered=True,
        covariance=spot.covariance, coverage=coverage, before=before, classes=class_bars(spot, hidden=True),
    )  # fmt: skip


def neighbours(
    spots: Sequence[Spot], index: int, pixel_size: float | None, *, blind: bool
) -> list[EvidenceLine]:
    """List the neighbours of a spot, the nearest first."""
    spot = spots[index]
    away = np.hypot([other.x - spot.x for other in spots], [other.y - spot.y for other in spots])
    away[index] = np.inf
    near = np.argsort(away, kind="stable")[:MAX_NEAR]
    lines = []
    for row in near[away[near] <= NEAR * radius_of(spot)]:
        other, hidden = spots[row], blind and not spots[row].decided
        figure = "" if hidden or not np.isfinite(other.posterior) else f"{other.posterior:.2f}"
        state = "undecided" if hidden else other.state
        detail = length(float(away[row]), pixel_size)
        text = ", ".join(part for part in (f"spot {other.number}", f"{detail} away", figure, state) if part)
        lines.append(EvidenceLine(int(row), f"spot {other.number}", detail, figure, state, text))
    return lines


def common_size(sizes: Sequence[float | None]) -> float | None:
    """Return the median pixel size in micrometres; None unless all images state one."""
    sizes_known = [size for size in sizes if size is not None]
    return float(np.median(sizes_known)) if sizes_known and len(sizes_known) == len(sizes) else None


def length(pixels: float, pixel_size: float | None) -> str:
    """Format a length on an image: "14 px", or "2.8 µm" if the pixel size is known."""
    return f"{pixels:.0f} px" if pixel_size is None else f"{pixels * pixel_size:.1f} µm"


def place_in_words(x: float, y: float, pixel_size: float | None) -> str:
    """Format a position: "x 104.0, y 58.5 px"; also in micrometres if the pixel size is known."""
    text = f"x {x:.1f}, y {y:.1f} px"
    text += "" if pixel_size is None else f" ({x * pixel_size:.1f}, {y * pixel_size:.1f} µm)"
    return with_minus(text)


def status(scene: Scene, spots: Sequence[Spot]) -> str:
    """Describe the image and the run on screen for the status line."""
    words = [scene.image.name, f"{scene.image.width:g} x {scene.image.height:g} px", _clicks(scene)]
    outside = int(scene.clicks.outside.sum())
    if outside:
        words.append(f"{outside:,} outside the image")
    if scene.path is None and scene.image.path is not None:
        words.append("image file missing")
    if scene.run is not None and scene.fusion is not None:
        ended = "converged" if scene.fusion.clustering.trace.converged else "did not converge"
        words.append(f"{run_title(scene.run)}, {ended}")
        words.append(_disputed(spots))
        if scene.later:
            words.append(f"{counted(scene.later, 'click')} imported since: fuse again (F5)")
    elif scene.stream_note:
        words += [scene.stream_note, _disputed(spots)]
    else:
        words.append("not fused yet")
    return "  |  ".join(words)


def _clicks(scene: Scene) -> str:
    """Count the clicks as the report does: repeated clicks of an annotator at one position count once."""
    clicks = len(scene.clicks)
    used = clicks if scene.fusion is None else int(scene.fusion.rates.clicks.sum())
    duplicates = f", {counted(clicks - used, 'duplicate')} not counted" if clicks > used else ""
    return f"{counted(used, 'click')} by {counted(len(scene.clicks.annotators), 'annotator')}{duplicates}"


def _disputed(spots: Sequence[Spot]) -> str:
    return f"{sum(spot.state == 'disputed' for spot in spots)} of {len(spots)} spots disputed"


def radius_of(spot: Spot) -> float:
    """Return the half width in pixels of the crop of a spot and its surroundings."""
    return max(NARROWEST, CONTEXT * float(np.sqrt(max(spot.covariance[0, 0], spot.covariance[1, 1]))))
