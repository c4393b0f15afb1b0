"""Conversion of a case, its regions and decisions to the values that widgets draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.catalogue import fuser_title
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.disputes import in_words
from raterscope.app.kinds.masks.excluded_raters import ExcludedRater
from raterscope.app.review import Decision, is_bookmarked
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.masks.scene import DisputedRegion, Piece, Scene, amount_of
from raterscope.text import counted
from raterscope.widgets.painting import BOOKMARK, rater_colour
from raterscope.widgets.panels.region_panel import RegionEvidence, RegionVote
from raterscope.widgets.panels.task_panel import PROGRAM
from raterscope.widgets.tables.rater_table import ModelRow, RaterRow
from raterscope.widgets.volume.overlay import RegionBox
from raterscope.widgets.volume.scene import HeatMap, Outline

CONSENSUS, TRUTH, DRAWN = "the consensus", "the truth", "what you drew"
"""Keys of outlines without an annotator, used after a line break, because no name contains one."""
HIDDEN = "Hidden until you accept your drawing (A). Press H to show it."
DREW_NOTHING = "drew nothing"
EXCLUDED = " (excluded)"
_WHITE, _TRUTH_COLOUR = "#ffffff", "#8a96a2"
_SAMPLE = 100_000
"""Maximum number of voxels for the estimate of a map's scale."""
_ENOUGH, _NEAR = 20_000, 0.5
"""Number of voxels sufficient for the scale of tau, and maximum relative distance from the outline."""
_CONSENSUS_WIDTH, _RATER_WIDTH, _CHOSEN_WIDTH = 2.2, 1.3, 2.0


def outlines(
    scene: Scene, structure: str, consensus: Piece | None, numbers: Mapping[str, int], chosen: str | None
) -> list[Outline]:
    """Return the raters' outlines in their colours, the consensus in white above them.

    Programs, the truth and raters that the run excludes are dashed.
    """
    outlines_drawn = []
    notes = dict.fromkeys(scene.programs.get(structure, {}), PROGRAM)
    excluded = scene.excluded.get(structure, {})
    notes |= dict.fromkeys(excluded, EXCLUDED)
    for name, record in {**excluded, **scene.drawn(structure)}.items():
        if record.values.size:
            outlines_drawn.append(
                Outline(
                    name, f"{name}{notes.get(name, '')}", rater_colour(numbers.get(name, 0)), record.values,
                    record.origin, _CHOSEN_WIDTH if name == chosen else _RATER_WIDTH, dashed=name in notes,
                )
            )  # fmt: skip
    truth = scene.truth.get(structure)
    if truth is not None and truth.values.size:
        outlines_drawn.append(
            Outline(f"\n{TRUTH}", TRUTH, _TRUTH_COLOUR, truth.values, truth.origin, _RATER_WIDTH, dashed=True)
        )
    if consensus is not None and consensus.values.any():
        outlines_drawn.append(consensus_outline(consensus))
    return outlines_drawn


def consensus_outline(consensus: Piece) -> Outline:
    """Return the outline of a consensus."""
    key = f"\n{CONSENSUS}"
    return Outline(key, CONSENSUS, _WHITE, consensus.values, consensus.origin, _CONSENSUS_WIDTH)


def drawn_outline(drawn: Piece | None) -> list[Outline]:
    """Return the outline of the expert's drawing, the only one shown while the others are hidden."""
    if drawn is None or not drawn.values.any():
        return []
    return [Outline(f"\n{DRAWN}", DRAWN, _WHITE, drawn.values, drawn.origin, _CONSENSUS_WIDTH)]


def rater_rows(
    scene: Scene, structure: str, numbers: Mapping[str, int], excluded: Mapping[str, str]
) -> list[RaterRow]:
    """Return a row for each rater: estimates of the model, and measures against the consensus.

    Raters of the case without the structure are listed too, then programs.
    """
    fusion, report = scene.fusion(structure), scene.report(structure)
    rows: list[RaterRow] = []
    drawn = scene.masks.get(structure, {})
    nothing = scene.nothing.get(structure, ())
    heaviest = 1.0 if report is None else float(np.max(report.weight))
    for name in drawn:
        number, out = numbers.get(name, 0), name in excluded
        note = DREW_NOTHING if name in nothing else ""
        if fusion is None or report is None or name not in fusion.annotators:
            rows.append(
                RaterRow(number, name, excluded=out, excluded_reason=excluded.get(name, ""), note=note)
            )
            continue
        p = fusion.annotators.index(name)
        compared = report.compared[p]
        rows.append(
            RaterRow(
                number=number,
                name=name,
                weight=float(report.weight[p] / heaviest),
                bias_mm=float(report.offset[p]),
                deviation_mm=float(report.spread[p]),
                dof=float(fusion.dof[0, p]),
                dice=compared.dice,
                hausdorff95=compared.hausdorff_95,
                hausdorff=compared.hausdorff,
                sensitivity=compared.sensitivity,
                specificity=compared.specificity,
                excluded=out,
                excluded_reason=excluded.get(name, ""),
                note=note,
            )
        )
    rows += [
        RaterRow(numbers.get(name, 0), name, excluded=name in excluded,
                 excluded_reason=excluded.get(name, ""), note=DREW_NOTHING)
        for name in nothing if name not in drawn
    ]  # fmt: skip
    rows += _program_rows(scene, structure, numbers, excluded)
    names = {row.name for row in rows}
    for name, rater in scene.excluded_raters.get(structure, {}).items():
        if name not in names and name in excluded:
            row = RaterRow(numbers[name], name, excluded=True, excluded_reason=excluded[name])
            rows.append(_compared_row(row, rater))
    return sorted(rows, key=lambda row: row.number)  # as they are shown, and counted by the digits


def _compared_row(row: RaterRow, rater: ExcludedRater) -> RaterRow:
    """Return the row of an excluded rater with the comparison with the consensus of the others."""
    compared = rater.compared
    return replace(
        row, bias_mm=rater.offset, deviation_mm=rater.spread, dice=compared.dice,
        hausdorff95=compared.hausdorff_95, hausdorff=compared.hausdorff, sensitivity=compared.sensitivity,
        specificity=compared.specificity,
    )  # fmt: skip


def _program_rows(
    scene: Scene, structure: str, numbers: Mapping[str, int], excluded: Mapping[str, str]
) -> list[RaterRow]:
    """Return a row for each program: measures against the consensus, and its weight in raters."""
    report = scene.report(structure)
    weights = None if report is None else report.programs
    rows = []
    for name in scene.programs.get(structure, {}):
        row = RaterRow(
            numbers.get(name, 0), name, excluded=name in excluded, excluded_reason=excluded.get(name, ""),
            note="program",
        )  # fmt: skip
        if report is not None and weights is not None and name in weights.names:
            at = weights.names.index(name)
            compared, near = report.programs_compared[at], float(weights.near[at])
            row = replace(
                row, dice=compared.dice, hausdorff95=compared.hausdorff_95, hausdorff=compared.hausdorff,
                sensitivity=compared.sensitivity, specificity=compared.specificity,
                counts_as=f"counts as {near:.1f} raters" if weights.used else "not used: no clear gain",
            )  # fmt: skip
        rows.append(row)
    return rows


def model_rows(
    scene: Scene, structure: str, numbers: Mapping[str, int], at: tuple[int, int, int]
) -> list[ModelRow]:
    """Return a row for each rater: estimates of the model, with tau at a voxel; none without a model."""
    fusion, report = scene.fusion(structure), scene.report(structure)
    if fusion is None or report is None or not np.isfinite(fusion.variance).any():
        return []
    position = tuple(a - b for a, b in zip(at, fusion.origin, strict=True))
    inside = all(0 <= a < n for a, n in zip(position, fusion.shape, strict=True))
    unknown = np.full(len(fusion.annotators), np.nan)
    sigma = unknown if fusion.sigma is None else fusion.sigma[0]
    tau = unknown if report.tau is None else report.tau
    tau_here = unknown if fusion.tau is None or not inside else fusion.tau[0][:, *position]
    return [
        ModelRow(
            numbers.get(name, 0), name, float(fusion.bias[0, p]), float(np.sqrt(sigma[p])),
            float(np.sqrt(fusion.variance[0, p])), float(fusion.dof[0, p]), float(tau[p]), float(tau_here[p]),
        )
        for p, name in enumerate(fusion.annotators)
    ]  # fmt: skip


def region_boxes(
    regions: Sequence[DisputedRegion],
    selected: DisputedRegion | None,
    names: Sequence[str],
    bookmarks: Sequence[Decision] = (),
    run: int | None = None,
    *,
    blind: bool = False,
) -> list[RegionBox]:
    """Return the boxes of a run's regions, the selected one with its description; a star is a bookmark.

    In blind mode, return only the selected box without description, because others reveal where raters drew.
    """
    boxes = []
    for region in regions:
        is_selected = region is selected
        if is_selected or not blind:
            title = str(region.number) if region.unsettled else f"{region.number} {region.state}"
            title = f"{region.number} contested" if region.contested and not blind else title
            title = f"region {region.number} of {len(regions)}" if is_selected else title
            title += f" {BOOKMARK}" if is_bookmarked(bookmarks, region.subject, run) else ""
            line = _line(region, names) if is_selected and not blind else ""
            at, shape = region.dispute.origin, region.dispute.shape
            boxes.append(RegionBox(region.number, at, shape, title, line, settled=not region.unsettled))
    return boxes


def covered(region: DisputedRegion, scene: Scene) -> RegionEvidence:
    """Return the position of a region without its evidence, for blind mode."""
    return RegionEvidence(
        f"Region {region.number}", region.state, float("nan"), position=_slice_text(region, scene)
    )


def _slice_text(region: DisputedRegion, scene: Scene) -> str:
    first, last = region.dispute.origin[0] + 1, region.dispute.origin[0] + region.dispute.shape[0]
    if scene.image.lattice.flat:
        return ""
    return f"slice {first}" if first == last else f"slices {first} to {last}"


def evidence(region: DisputedRegion, scene: Scene, numbers: Mapping[str, int]) -> RegionEvidence:
    """Return the evidence for a region."""
    fusion = scene.fusion(region.structure)
    names = () if fusion is None else fusion.annotators
    dispute = region.dispute
    doubt, unit = amount_of(dispute.doubt_ml, scene.image.lattice.size_unit)
    of_raters = bool(names) and dispute.leader >= 0
    sentence = in_words(dispute, names, scene.image.lattice.length_unit) if of_raters else ""
    if region.contested:
        sentence = f"Experts differ: {region.contested}.\n{sentence}".rstrip()
    return RegionEvidence(
        title=f"Region {region.number}",
        state="contested" if region.contested else region.state,
        doubt=doubt,
        unit=unit,
        sentence=sentence,
        votes=_votes(region, scene, names, numbers),
        taken_from=region.rater,
        position=_slice_text(region, scene),
    )


def local_weight(
    scene: Scene, structure: str, rater: str, about: DisputedRegion | None, at: int, measure: str = "weight"
) -> tuple[NDArray[np.float32], tuple[int, int]] | None:
    """Return a slice of a rater's weight or tau around a region or in the whole fused box, and its corner.

    The values, (H, W), are weights from 0 to 1, or tau. The corner is row and column of the first pixel in
    the image. The result is None if there are no weights.
    """
    fusion = scene.fusion(structure)
    layers = None if fusion is None else fusion.tau if measure == "tau" else fusion.weight
    if fusion is None or layers is None or rater not in fusion.annotators:
        return None
    layer = layers[0, fusion.annotators.index(rater)]
    z = at - fusion.origin[0]
    if not 0 <= z < len(layer):
        return None
    rows = columns = slice(None)
    if about is not None:
        rows, columns = (
            slice(
                max(0, about.dispute.origin[axis] - fusion.origin[axis] - about.dispute.shape[axis]),
                about.dispute.origin[axis] - fusion.origin[axis] + 2 * about.dispute.shape[axis],
            )
            for axis in (1, 2)
        )
    scale = np.float32(255 if measure == "weight" else 1)
    values = np.asarray(layer[z, rows, columns] / scale, dtype=np.float32)
    corner = (fusion.origin[1] + (rows.start or 0), fusion.origin[2] + (columns.start or 0))
    return (values, corner) if values.size else None


def _method(fusion: MaskFusion) -> str:
    title = fuser_title(fusion.algorithm)
    return title[:1].upper() + title[1:]


def no_model(fusion: MaskFusion) -> str:
    """Return the message that a method has no estimates of raters."""
    return f"{_method(fusion)} estimates no bias, Sigma or tau."


def no_iterations(fusion: MaskFusion) -> str:
    """Return the message that a method does not iterate."""
    return f"{_method(fusion)} takes no iterations."


def no_weight(fusion: MaskFusion) -> str:
    """Return the message that a method has no local weights."""
    return f"{_method(fusion)} gives each rater one weight for the whole image, no local weights."


def no_tau(fusion: MaskFusion) -> str:
    """Return why there is no local tau."""
    with_tau = ("laplace", "student", "gdp")
    if fusion.algorithm in with_tau:
        return "This run was made before tau was stored. Press Fuse (F5) again."
    titles = [fuser_title(name) for name in with_tau]
    return f"{_method(fusion)} has no local scale tau: {', '.join(titles[:-1])} and {titles[-1]} have."


def nothing_local(fusion: MaskFusion | None, measure: str) -> str:
    """Return why there is no local weight or tau; empty if there is one."""
    if fusion is None:
        return "Press Fuse (F5), then select a rater, to see where the consensus follows that rater."
    if (fusion.tau if measure == "tau" else fusion.weight) is not None:
        return ""
    return no_tau(fusion) if measure == "tau" else no_weight(fusion)


def highest_tau(fusion: MaskFusion) -> float:
    """Return the upper end of the colour scale of tau, the same for all raters.

    One in ten voxels near the outline exceeds it. Far from the outline, where all raters agree, tau is much
    larger and not informative.
    """
    if fusion.tau is None or fusion.distance is None:
        return 1.0
    step = max(1, fusion.distance[0].size // _ENOUGH)
    away = np.abs(fusion.distance[0].ravel()[::step])
    tau = fusion.tau[0].reshape(len(fusion.tau[0]), -1)[:, ::step]
    near = tau[:, away < _NEAR * away.max()].astype(np.float32)
    return float(np.percentile(near, 90)) if near.size else 1.0


def difference(scene: Scene, structure: str, first: str, second: str) -> HeatMap | None:
    """Return the difference of two raters: above 0 where only the first rater marks."""
    masks = scene.drawn(structure)
    if first not in masks or second not in masks or first == second:
        return None
    pair = [masks[first], masks[second]]
    sized = [record for record in pair if record.values.size]
    if not sized:
        return None
    low = np.min([record.origin for record in sized], axis=0)
    high = np.max([np.add(record.origin, record.values.shape) for record in sized], axis=0)
    values = np.zeros(tuple(high - low), dtype=np.float32)
    for record, sign in zip(pair, (1.0, -1.0), strict=True):
        corner = np.subtract(record.origin, low)
        if record.values.size:
            box = tuple(slice(at, at + n) for at, n in zip(corner, record.values.shape, strict=True))
            values[box] += sign * (record.values > 0.5)
    origin = int(low[0]), int(low[1]), int(low[2])
    return HeatMap(values, origin, -1.0, 1.0, "difference", f"{first} alone +1, {second} alone −1")


def heat_map(
    scene: Scene, structure: str, name: str, rater: str | None, pair: tuple[str, str] | None
) -> tuple[HeatMap | None, str]:
    """Make a map, or return why there is none.

    The reason is a sentence; it is empty if there is a map, or none was requested.
    """
    fusion = scene.fusion(structure)
    if name == "none":
        return None, ""
    if name == "difference":
        heat = None if pair is None else difference(scene, structure, *pair)
        return heat, "" if heat else "Select two raters in the agreement matrix to see their difference."
    if name == "disagreement" and structure in scene.votes:
        votes = scene.votes[structure]
        text = "disagreement of the raters"
        return HeatMap(votes.disagreement, votes.origin, 0.0, 1.0, "doubt", text), ""
    if fusion is None:
        return None, "Press Fuse (F5) to show the uncertainty of the consensus."
    if name == "doubt":
        return HeatMap(fusion.doubt()[0], fusion.origin, 0.0, 1.0, "doubt", "doubt of the model"), ""
    if name == "probability":
        text = "probability of the model, not calibrated"
        return HeatMap(fusion.probability[0], fusion.origin, 0.0, 1.0, "probability", text), ""
    if name in ("another", "truth", "uncertainty"):
        return _calibrated(scene, structure, name)
    layers = fusion.tau if name == "tau" else fusion.weight
    if layers is None:
        return None, nothing_local(fusion, name)
    if rater not in fusion.annotators:
        return None, "Select a rater in the table to see where the model follows that rater."
    layer = layers[0, fusion.annotators.index(rater)]
    if name == "tau":
        top = highest_tau(fusion)
        return HeatMap(layer.astype(np.float32), fusion.origin, 0.0, top, "weight", f"tau of {rater}"), ""
    top = min(1.0, 2 / len(fusion.annotators))  # twice the weight of each rater if all weights are equal
    return HeatMap(layer, fusion.origin, 0.0, top, "weight", f"weight of {rater}", 1 / 255), ""


def _calibrated(scene: Scene, structure: str, name: str) -> tuple[HeatMap | None, str]:
    """Make a map from the raters' spread, or return why there is none."""
    report = scene.report(structure)
    calibration = None if report is None else report.calibration
    if calibration is None:
        return (
            None,
            "This run has no such map: it needs two raters and a marked voxel. Press Fuse (F5) again.",
        )
    if name == "uncertainty":
        values = calibration.half_width()
        some = values.ravel()[:: max(1, values.size // _SAMPLE)]
        text = f"half-width of another rater's 95 % band, {scene.image.lattice.length_unit}"
        return HeatMap(
            values, calibration.origin, 0.0, float(np.percentile(some, 99)) or 1.0, "doubt", text
        ), ""
    values = calibration.another_rater() if name == "another" else calibration.true_outline()
    reason = "" if name == "another" else calibration.notices()[-1] if calibration.assumed else ""
    text = "probability that another rater includes it"
    if name == "truth":
        text = "probability that the true outline includes it"
    return HeatMap(values, calibration.origin, 0.0, 1.0, "probability", text), reason


def status(scene: Scene, structure: str, regions: Sequence[DisputedRegion] | None) -> str:
    """Describe the case and the run on screen for the status line; regions are None while hidden."""
    words = [scene.image.name]
    if len(scene.structures) > 1:
        words.append(structure)
    words.append(scene.image.lattice.in_words())
    raters = len(scene.masks.get(structure, {}))
    words.append(counted(raters, "rater"))
    if scene.path is None and scene.image.path is not None:
        words.append("volume's file missing")
    fusion = scene.fusion(structure)
    if fusion is None or scene.run is None:
        words.append("not fused yet")
        return "  |  ".join(words)
    trace = fusion.traces[0]
    method = run_title(scene.run)
    if len(trace.objective):
        ended = "converged" if trace.converged else "did not converge"
        method += f", {ended} in {len(trace.objective)} iterations"
    logged = scene.run.log.get("images", ())
    case: dict[str, Any] = next((case for case in logged if case.get("image") == scene.image.name), {})
    words.append(f"{method}, {case.get('seconds', scene.run.seconds):.1f} s")
    if regions is not None:
        disputed = sum(region.unsettled for region in regions)
        words.append(
            f"{disputed} of {counted(len(regions), 'region')} disputed" if regions else "nothing disputed"
        )
    return "  |  ".join(words)


def _line(region: DisputedRegion, names: Sequence[str]) -> str:
    dispute = region.dispute
    beyond, short = (
        [rater for rater in side if rater < len(names)] for side in (dispute.beyond, dispute.short)
    )
    if not beyond and not short:
        return "the experts differ" if dispute.leader < 0 else "the model is uncertain"
    if len(beyond) + len(short) == 1:
        return f"{names[(*beyond, *short)[0]]} alone"
    parts = ((len(beyond), "beyond"), (len(short), "short of it"))
    return ", ".join(f"{number} {text}" for number, text in parts if number)


def _votes(
    region: DisputedRegion, scene: Scene, names: Sequence[str], numbers: Mapping[str, int]
) -> tuple[RegionVote, ...]:
    dispute, unit = region.dispute, scene.image.lattice.length_unit
    inside = dispute.voxels()
    voxels = max(int(inside.sum()), 1)
    votes = []
    programs = scene.programs.get(region.structure, {})
    drawn = scene.drawn(region.structure)
    for p, name in enumerate((*names, *programs)):
        record, is_program = drawn.get(name), p >= len(names)
        if record is None:
            continue
        marked = 0
        low = np.maximum(dispute.origin, record.origin)
        high = np.minimum(np.add(dispute.origin, dispute.shape), np.add(record.origin, record.values.shape))
        if (high > low).all():
            in_mask = tuple(
                slice(a, b) for a, b in zip(low - record.origin, high - record.origin, strict=True)
            )
            in_region = tuple(
                slice(a, b) for a, b in zip(low - dispute.origin, high - dispute.origin, strict=True)
            )
            values = record.values[in_mask]
            if values.dtype != np.bool_:
                values = values > 0.5
            marked = int(np.count_nonzero(np.logical_and(values, inside[in_region])))
        share = marked / voxels
        away = dispute.away[p] if dispute.away and not is_program else float("nan")
        if not dispute.away and p == dispute.leader:
            away = dispute.reach if p in dispute.beyond else -dispute.reach
        weight = dispute.weight if p == dispute.leader else float("nan")
        votes.append(RegionVote(numbers.get(name, 0), name, share, away, weight, unit, is_program))
    return tuple(
        sorted(votes, key=lambda vote: (vote.program, -abs(np.nan_to_num(vote.distance_mm)), -vote.inside))
    )
