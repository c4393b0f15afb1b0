"""Tables of a case of masks in a report: raters of a structure, model, bands, Dice and disputes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from raterscope.algorithms.masks.calibration import LEVELS
from raterscope.algorithms.masks.data import FloatArray
from raterscope.algorithms.masks.disputes import Dispute, in_words
from raterscope.algorithms.masks.fusion import Report
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.report.slices import StructureFigures, colour_of
from raterscope.app.page.contents import NONE, Cell, Table, Units, share, signed
from raterscope.app.review import Region
from raterscope.figures.colours import tint
from raterscope.text import percent, small_figure

_PALEST = 0.5
"""Dice coefficient at and below which a cell is white."""

_SIDES = (("left", "right"), ("posterior", "anterior"), ("superior", "inferior"))
"""The patient's sides in positive and negative direction of each axis."""


def raters_table(
    figures: StructureFigures, units: Units, numbers: Mapping[str, int], excluded: Mapping[str, str]
) -> Table:
    """Compare each rater's mask with the consensus: bias with its direction, overlap, exclusion."""
    fusion, report = figures.fusion, figures.report
    unit = units.length
    columns: dict[str, list[str]] = {
        f"Bias, {unit}": [_bias(value) for value in report.offset],
        f"Spread, {unit}": [units.mm(value) for value in report.spread],
        "Dice": [share(comparison.dice) for comparison in report.compared],
        f"HD95, {unit}": [units.mm(comparison.hausdorff_95) for comparison in report.compared],
        f"HD, {unit}": [units.mm(comparison.hausdorff) for comparison in report.compared],
        "Sens.": [share(comparison.sensitivity) for comparison in report.compared],
        "Spec.": [share(comparison.specificity) for comparison in report.compared],
        units.extent: units.amounts(figures.volumes.tolist()),
        "Difference": [
            units.difference(comparison.volume_difference, report.volume_ml) for comparison in report.compared
        ],
    }
    if figures.truth is not None:
        columns["Dice, truth"] = [share(rater.dice) for rater in figures.truth.raters]
        columns[f"HD95, truth, {unit}"] = [units.mm(rater.hausdorff_95) for rater in figures.truth.raters]
    rows: list[list[Cell | str]] = []
    for p, name in enumerate(fusion.annotators):
        cell = _named(name, numbers, since=name in excluded, nothing=not figures.volumes[p])
        rows.append([cell, *(cells[p] for cells in columns.values())])
    if report.programs is not None:
        rows += [
            _program_row(name, at, report, units, numbers, list(columns))
            for at, name in enumerate(report.programs.names)
        ]
    for name in figures.absent:
        rows.append([_named(name, numbers, nothing=True), *[NONE] * len(columns)])
    for name, rater in figures.left_out.items():
        reason = plain(excluded.get(name, "")) or "no reason given"
        displayed_name = _named(name, numbers)
        own, compared = [_bias(rater.offset), units.mm(rater.spread)], rater.compared
        own += [share(compared.dice), units.mm(compared.hausdorff_95), units.mm(compared.hausdorff)]
        own += [share(compared.sensitivity), share(compared.specificity), *units.amounts([rater.volume_ml])]
        own.append(units.difference(compared.volume_difference, report.volume_ml))
        rows.append(
            [
                Cell(f"{displayed_name.text} (excluded: {reason})", swatch=displayed_name.swatch),
                *own,
                *[NONE] * (len(columns) - len(own)),
            ]
        )
    note = (
        "Against the consensus as it was fused. Bias: how far the rater's outline lies beyond the "
        "consensus's (+, marks more) or short of it (\N{MINUS SIGN}, marks less), on average along it; "
        f"spread: the standard deviation of that. Specificity is over the {_box(figures)}."
    )
    return Table("Raters against the consensus", ("Rater", *columns), rows, note)


def _program_row(
    name: str, at: int, report: Report, units: Units, numbers: Mapping[str, int], columns: Sequence[str]
) -> list[Cell | str]:
    """Compare a program with the consensus, and state the number of raters that it counts as."""
    assert report.programs is not None
    compared = report.programs_compared[at]
    known = {
        "Dice": share(compared.dice),
        f"HD95, {units.length}": units.mm(compared.hausdorff_95),
        f"HD, {units.length}": units.mm(compared.hausdorff),
        "Sens.": share(compared.sensitivity),
        "Spec.": share(compared.specificity),
    }
    counts = f"counts as {report.programs.near[at]:.1f} raters" if report.programs.used else "not used"
    cell = _named(name, numbers)
    return [
        Cell(f"{cell.text} (program, {counts})", swatch=cell.swatch),
        *(known.get(column, NONE) for column in columns),
    ]


def model_table(figures: StructureFigures, units: Units, numbers: Mapping[str, int]) -> Table | None:
    """List the model's estimates of each rater; None for a method without any."""
    fusion, report = figures.fusion, figures.report
    unit, undefined = units.length, np.full(len(figures.fusion.annotators), np.nan)
    sigma = undefined if fusion.sigma is None else np.sqrt(fusion.sigma[0])
    columns: dict[str, list[str]] = {
        "Weight": [f"{100 * value:.0f} %" if math.isfinite(value) else NONE for value in report.weight],
        f"Model bias, {unit}": [_finely(value, sign="+") for value in fusion.bias[0]],
        f"√Σ, {unit}": [_finely(value) for value in sigma],
        f"SD, {unit}": [_finely(value) for value in np.sqrt(fusion.variance[0])],
        "Degrees of freedom": [_dof(value) for value in fusion.dof[0]],
        "τ": [_finely(value) for value in (undefined if report.tau is None else report.tau)],
    }
    if any(len(trace.objective) for trace in fusion.traces):  # majority voting has no iterations
        columns["Model sensitivity"] = [share(value) for value in fusion.sensitivity[0]]
        columns["Model specificity"] = [share(value) for value in fusion.specificity[0]]
    columns = {name: cells for name, cells in columns.items() if any(cell != NONE for cell in cells)}
    if not columns:
        return None
    rows: list[list[Cell | str]] = [
        [_named(name, numbers), *(cells[p] for cells in columns.values())]
        for p, name in enumerate(fusion.annotators)
    ]
    biases = {
        "Weight": "Weight: mean share of the consensus where raters differ.",
        f"Model bias, {unit}": "Model bias: b of the model, the mean of the rater's distances less the "
        "consensus's over all voxels, most of which lie where all raters agree; the bias along the outline "
        "is in the table above.",
        f"√Σ, {unit}": "√Σ: square root of the model's Sigma, not comparable between algorithms.",
        f"SD, {unit}": "SD: standard deviation of the rater's distances about the consensus by the model, "
        "comparable between algorithms.",
        "τ": "τ: the local scale by which the model divides Sigma, median over the voxels where raters "
        "differ; low where the rater is far from the consensus.",
    }
    note = " ".join(words for name, words in biases.items() if name in columns)
    return Table("Raters by the model", ("Rater", *columns), rows, note)


def band_table(figures: StructureFigures, units: Units) -> Table | None:
    """List the bands of another rater's outline and their basis; None without them."""
    calibration = figures.report.calibration
    if calibration is None:
        return None
    near = np.abs(calibration.ratio) < 1
    width = float(np.median(calibration.scale[near])) if near.any() else math.nan
    rows: list[tuple[str, ...]] = [
        (
            f"{100 * level:.0f} %",
            f"{calibration.multiplier(level):.2f}",
            units.mm(width * calibration.multiplier(level)),
        )
        for level in LEVELS
    ]
    columns: tuple[str, ...] = ("Band", "Multiplier of the spread", f"Median half-width, {units.length}")
    if calibration.covered is not None:
        columns = (*columns, "Held for left-out raters")
        rows = [(*row, percent(covered)) for row, covered in zip(rows, calibration.covered, strict=True)]
    basis = ""
    if calibration.cases:
        of_run = "1 structure" if calibration.cases == 1 else f"{calibration.cases} structures"
        basis = f"Multipliers from {of_run} of this run, a rater left out in turn."
    return Table(
        "Band of another rater's outline", columns, rows, " ".join([basis, *calibration.notices()]).strip()
    )


def dice_table(figures: StructureFigures, numbers: Mapping[str, int]) -> Table:
    """Show each rater's Dice with every other rater, darker for more agreement."""
    names, dice = figures.fusion.annotators, figures.report.pair_dice
    rows = []
    for p, name in enumerate(names):
        cells = [_shaded(value, p == q) for q, value in enumerate(dice[p])]
        rows.append([_named(name, numbers), *cells, _shaded(figures.report.compared[p].dice)])
    values = dice[np.triu_indices(len(dice), 1)]
    off_diagonal = values[np.isfinite(values)]
    note = f"White at {_PALEST:g} and below, darkest at 1."
    if len(off_diagonal):
        note = (
            f"Mean of all pairs {share(float(off_diagonal.mean()))}, from {share(float(off_diagonal.min()))} "
            f"to {share(float(off_diagonal.max()))}. {note}"
        )
    heads = [plain(name, 24) for name in names]
    return Table("Dice, pair by pair", ("", *heads, "consensus"), rows, note)


def disputes_table(figures: StructureFigures, units: Units) -> Table:
    """List the disputed regions, the most disputed first: position, differing raters, decision."""
    fusion, grid = figures.fusion, figures.entry.lattice
    names = [plain(name) for name in fusion.annotators]
    middle = _middle(fusion.mask[0], fusion.origin, grid)
    verdicts = figures.latest_verdicts()
    disputes = figures.report.disputes
    sizes = zip(
        units.amounts([dispute.volume_ml for dispute in disputes]),
        units.amounts([dispute.doubt_ml for dispute in disputes]),
        strict=True,
    )
    rows = [
        (
            str(number),
            *amounts,
            _where(dispute, middle, grid, units),
            in_words(dispute, names) if grid.calibrated else in_words(dispute, names).replace(" mm ", " px "),
            _verdict(verdicts.get(number)),
        )
        for number, (dispute, amounts) in enumerate(zip(disputes, sizes, strict=True), start=1)
    ]
    note = (
        "Where a rater's outline is farther from the consensus's than the tolerance. "
        f"{units.extent}: of the region; doubt: that times its mean doubt."
    )
    columns = ("No.", units.extent, "Doubt", "Where", "Who", "Expert")
    return Table("Disputed regions", columns, rows, note, frozenset({3, 4, 5}))


def alternatives_table(figures: StructureFigures, units: Units) -> Table | None:
    """List the consensuses of a mixture and their followers; None for a single one."""
    alternatives = figures.fusion.alternatives
    if len(alternatives) < 2:
        return None
    volumes = [float(figures.fusion.volumes(alternative.mask[0])) / 1000.0 for alternative in alternatives]
    sizes = units.amounts(volumes)
    rows = []
    for number, (alternative, size) in enumerate(zip(alternatives, sizes, strict=True), start=1):
        followers = [
            f"{plain(name)} ({share(float(chance), 2)})"
            for name, chance in zip(figures.fusion.annotators, alternative.responsibility, strict=True)
            if chance > 0.05
        ]
        rows.append((str(number), f"{100 * alternative.weight:.0f} %", size, ", ".join(followers)))
    return Table(
        "Alternative consensuses",
        ("Consensus", "Share of raters", units.extent, "Followed by (probability)"),
        rows,
        text_columns=frozenset({3}),
    )


def _verdict(region: Region | None) -> str:
    """Describe the expert's decision on a disputed region."""
    if region is None:
        return "undecided"
    if region.verb == "take":
        return f"as {plain(region.subject.rater)} has it"
    if region.verb == "reopen":
        return f"experts differ: {plain(region.reason)}"
    return {"accept": "consensus accepted", "paint": "drawn by the expert", "skip": "passed over"}[
        region.verb
    ]


def _named(name: str, numbers: Mapping[str, int], *, since: bool = False, nothing: bool = False) -> Cell:
    swatch = colour_of(numbers[name]) if name in numbers else ""
    words = [word for word, holds in (("excluded since", since), ("drew nothing", nothing)) if holds]
    return Cell(plain(name, 40) + (f" ({', '.join(words)})" if words else ""), swatch=swatch)


def _bias(value: float) -> str:
    text = signed(value, digits=1 if abs(value) >= 0.95 else 2)
    if text.startswith("+"):
        return f"{text} beyond"
    return f"{text} short" if text[:1] == "\N{MINUS SIGN}" else text


def _finely(value: float, sign: str = "") -> str:
    return NONE if math.isnan(value) else small_figure(value, sign)


def _dof(value: float) -> str:
    if math.isnan(value):
        return NONE
    return f"{value:.1f}" if value < 100 else "over 100"


def _box(figures: StructureFigures) -> str:
    sizes = figures.masks.shape[1:] if figures.entry.lattice.flat else figures.masks.shape
    return f"box that was fused ({' x '.join(str(size) for size in sizes)})"


def _shaded(value: float, same: bool = False) -> Cell:
    if same or not math.isfinite(value):
        return Cell("" if same else NONE)
    return Cell(share(value), *tint((value - _PALEST) / (1 - _PALEST)))


def _middle(mask: np.ndarray, origin: Sequence[int], grid: Grid) -> FloatArray:
    """Return the centre of mass (slice, row, column); slices are weighted by thickness."""
    slabs = slice(origin[0], origin[0] + len(mask))
    areas = mask * np.diff(grid.bounds[slabs])[:, :, None]
    total = areas.sum()
    if not total:
        return np.array(mask.shape) / 2 + origin
    slices = areas.sum(axis=(1, 2))
    height = slices @ grid.positions[slabs] / total
    rows, columns = areas.sum(axis=0).sum(axis=1), areas.sum(axis=0).sum(axis=0)
    row, column = (along @ np.arange(len(along)) / total for along in (rows, columns))
    at = np.interp(height, grid.positions, np.arange(len(grid.positions)))
    return np.array([at, row + origin[1], column + origin[2]])


def _where(dispute: Dispute, middle: FloatArray, grid: Grid, units: Units) -> str:
    """Describe slices, and distances and directions from the structure's middle."""
    centre = _middle(dispute.voxels(), dispute.origin, grid)
    first, last = dispute.origin[0] + 1, dispute.origin[0] + dispute.shape[0]
    words = []
    if not grid.flat:
        words.append(f"slice {first}" if first == last else f"slices {first}\N{EN DASH}{last}")
    if not grid.calibrated:
        words.append(f"row {centre[1] + 1:.0f}, column {centre[2] + 1:.0f}")
        return "; ".join(words)
    away = grid.to_patient(centre) - grid.to_patient(middle)
    order = np.argsort(-np.abs(away))[:2]
    far = float(np.linalg.norm(away))
    parts = [
        f"{abs(away[axis]):.0f} {units.length} {_SIDES[axis][0 if away[axis] > 0 else 1]}"
        for axis in order
        if abs(away[axis]) >= max(0.5, 0.35 * far)
    ]
    words.append(f"{' and '.join(parts)} of the centroid" if parts else "at the centroid")
    return ", ".join(words)
