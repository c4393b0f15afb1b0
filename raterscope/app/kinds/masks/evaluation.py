"""Evaluation of masks: calibration of probabilities and bands, and changes between runs.

True outlines and the expert's decisions measure the probability of the true outline. Raters left out in turn
measure the probability of another rater and the bands: see `calibration.calibrate`, part of every fusion.
The voxels of one outline depend on each other: cases (of decisions, regions) are the units of all tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy

from raterscope.algorithms.evaluation import Calibration as Counted
from raterscope.algorithms.masks.calibration import BINS, LEVELS, TWO_RATERS, Calibration, count_in_bins
from raterscope.algorithms.masks.data import OPEN as UNSETTLED
from raterscope.algorithms.masks.data import BoolArray, FloatArray, MaskFusion, Settled
from raterscope.algorithms.masks.disputes import min_volume, tolerance_of
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.masks.gold_cases import judge_with_truth, near_outline
from raterscope.algorithms.masks.metrics import in_common_frame
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.assessment import (
    FEW,
    LEVEL,
    MIN_ERROR,
    Box,
    ComparedItem,
    Differences,
    Trust,
    comparable_in_words,
)
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.runs import crop_truth
from raterscope.app.review import Region, ReviewState, SampledItem, known_voxels
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import mask_entries, read_masks, settled_of
from raterscope.text import counted, percent

FEWEST = 5
"""Minimum number of cases for a conclusion; for decided regions, `FEW`."""

_RANGES = 3
"""Number of ranges of the probability to test."""

SUSPECT = 0.05
"""P value below which probabilities are called doubtful, though not contradicted."""

_MIN_SPREAD = 0.01
"""Minimum standard deviation between cases in a test."""

Measure = Literal["truth", "decisions", "raters", ""]
_UNITS = {"truth": "case", "decisions": "region", "raters": "case", "": "case"}


@dataclass(frozen=True, eq=False, kw_only=True)
class MasksTrust(Trust):
    """Probabilities of voxels compared with true outlines, decisions, or raters left out in turn."""

    measure: Measure  # "truth", "decisions", "raters", or nothing
    # (C, B, 3): by case and bin: sum of the probabilities, number of voxels inside, number of voxels
    bins: FloatArray
    # (C, 3): by case: share of the outlines of left-out raters within the bands of `LEVELS`
    held: FloatArray
    pairs: bool = False  # whether cases have only two raters, so that none can be left out

    independent: ClassVar[bool] = False

    @property
    def units(self) -> int:
        """Number of cases, or decided regions, that were compared."""
        return len(self.bins)

    @property
    def p_value(self) -> float:
        """P value of the mean differences in `_RANGES` ranges, by case; NaN with fewer than two.

        A case without such voxels, on which all raters agree, does not count.
        """
        bins = self.bins[self.bins[:, :, 2].sum(axis=1) > 0]
        if len(bins) < 2:
            return np.nan
        apart = (bins[:, :, 1] - bins[:, :, 0]) / bins[:, :, 2].sum(axis=1, keepdims=True)
        return _least_p(apart.reshape(len(bins), _RANGES, -1).sum(axis=2))

    @property
    def _fewest(self) -> int:
        return FEW if self.measure == "decisions" else FEWEST

    @property
    def bands_contradicted(self) -> bool:
        """Whether left-out raters contradict the bands."""
        if len(self.held) < FEWEST:
            return False
        apart = self.held - np.array(LEVELS)
        return _least_p(apart) < LEVEL and float(np.abs(apart.mean(axis=0)).max()) > MIN_ERROR

    @property
    def voxels_contradicted(self) -> bool:
        """Whether truths or decisions contradict the probability of voxels."""
        return self.units >= self._fewest and self.p_value < LEVEL and self.calibration.error > MIN_ERROR

    @property
    def contradicted(self) -> bool:
        """Whether truths, decisions or left-out raters contradict probabilities or bands."""
        return self.voxels_contradicted or self.bands_contradicted

    def in_words(self) -> str:
        """Describe the comparison in a few sentences."""
        sentences = []
        if self.judged:
            sentences.append(
                f"{self._compared().format(percent(self.share))}; the mean probability is "
                f"{percent(self.expected)}, the expected calibration error {self.calibration.error:.2f}."
            )
        if len(self.held):
            low, middle, high = map(percent, self.held.mean(axis=0))
            sentences.append(
                f"The bands of 50, 80 and 95 % contained {low}, {middle} and {high} of the outlines of "
                f"raters left out in turn ({counted(len(self.held), 'case')})."
            )
        elif self.pairs:
            sentences.append(f"With two raters, none can be left out. {TWO_RATERS}")
        if self.voxels_contradicted:
            sentences.append(f"The probabilities are {self._gap_in_words()}: do not rely on them.")
        if self.bands_contradicted:
            sentences.append("The bands are wrong on these cases: do not rely on them.")
        if not self.contradicted and (self.judged or len(self.held)):
            if self.units < self._fewest and len(self.held) < FEWEST:
                sentences.append("That is too few to judge.")
            elif self.p_value < SUSPECT and self.calibration.error > MIN_ERROR:
                sentences.append(f"The probabilities may be {self._gap_in_words()}.")
            else:
                sentences.append("This does not contradict them.")
        if self.comparable:
            sentences.append(self.comparable)
        if self.measure != "truth":
            sentences.append("The true outline cannot be confirmed by masks alone.")
        return " ".join(sentences)

    def doubt_in_words(self) -> str:
        """Describe the contradictions in a short sentence; empty without any."""
        if self.voxels_contradicted:
            by = {"truth": "True outlines", "decisions": "Your decisions"}.get(
                self.measure, "Left-out raters"
            )
            return f"{by} contradict the probabilities: {self._gap_in_words()}."
        return "Left-out raters contradict the bands." if self.bands_contradicted else ""

    def _compared(self) -> str:
        units = counted(self.units, _UNITS[self.measure])
        if self.measure == "truth":
            return f"Of the voxels near the outline in {units} with a known true outline, {{}} are inside it"
        if self.measure == "decisions":
            return f"Of the voxels of {units} that you decided, {{}} are inside"
        return f"Of the voxels that raters dispute in {units}, each rater left out in turn included {{}}"


def trust_in_masks(study: Study, cases: Sequence[int], watch: Watch = silent) -> MasksTrust | None:
    """Compare the runs shown of some cases with true outlines, decisions or left-out raters, in this order.

    None without a run.
    """
    names = {entry.id: entry.name for entry in study.images()}
    runs: dict[int, RunEntry] = {}
    for case in cases:
        number = study.shown.run(case, "masks")
        if number is not None:
            runs[case] = study.runs.get(number)
    if not runs:
        return None
    rater_counts = [
        len({mask_entry.annotator for mask_entry in mask_entries(study, case, run)} - {None})
        for case, run in runs.items()
    ]
    logged = {
        run.id: {image_log.get("image"): image_log for image_log in run.log.get("images", ())}
        for run in {run.id: run for run in runs.values()}.values()
    }
    logs = [log for case, run in runs.items() for log in _left_out_logs(logged[run.id].get(names[case], {}))]
    measure: Measure = "truth"
    bins = _by_truth(study, runs, watch)
    if not bins:
        measure, bins = "decisions", _by_decisions(study, runs, watch)
    if len(bins) < FEW and logs and measure == "decisions":
        measure, bins = "raters", [_bins_of(log) for log in logs]
    bands_held = [[float(log["bands_held"][f"{level:g}"]) for level in LEVELS] for log in logs]
    tables = np.array(bins).reshape(-1, BINS, 3)
    return MasksTrust(
        noun="voxel",
        by_truth=measure == "truth",
        calibration=_sum_cases(tables),
        comparable=""
        if len(bins) >= FEWEST
        else comparable_in_words("masks", float(np.mean(rater_counts)), ("rater", "case")),
        axes=("probability", "share inside"),
        measure=measure if bins else "",
        bins=tables,
        held=np.array(bands_held).reshape(-1, len(LEVELS)),
        pairs=max(rater_counts) == 2,
    )


def _left_out_logs(logged: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the log entries of left-out raters of a case, for each structure."""
    logs = [
        (structure_log.get("calibration") or {}).get("left_out_raters")
        for structure_log in logged.get("structures", ())
    ]
    return [log for log in logs if log]


def _bins_of(logged: dict[str, Any]) -> FloatArray:
    columns = (logged["probability_sums"], logged["voxels_included"], logged["voxels"])
    return np.array(columns, dtype=float).T


def _sum_cases(bins: FloatArray) -> Counted:
    """Pool cases with equal weight."""
    sizes = bins[:, :, 2].sum(axis=1)
    bins = bins[sizes > 0]
    voxels = int(sizes.sum())
    mean = (bins / bins[:, :, 2].sum(axis=1)[:, None, None]).sum(axis=0) * (voxels / max(len(bins), 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        posterior, share = mean[:, 0] / mean[:, 2], mean[:, 1] / mean[:, 2]
    error = float(np.abs(mean[:, 0] - mean[:, 1]).sum() / voxels) if voxels else float("nan")
    return Counted(posterior, share, np.round(mean[:, 2]).astype(np.int64), error)


def _least_p(apart: FloatArray) -> float:
    """Return the p value for zero means of (C, K) differences, of K tests together (Bonferroni)."""
    from scipy.special import stdtr  # `scipy.stats` takes a second to import

    cases, tests = apart.shape
    error = np.maximum(apart.std(axis=0, ddof=1), _MIN_SPREAD) / np.sqrt(cases)
    p_values = 2 * stdtr(cases - 1, -np.abs(apart.mean(axis=0)) / error)
    return float(min(1.0, tests * p_values.min()))


def _by_truth(study: Study, runs: dict[int, RunEntry], watch: Watch) -> list[FloatArray]:
    """Compare with true outlines; offset and correlation are estimated from the other cases."""
    known_cases = {
        mask_entry.image for mask_entry in mask_entries(study) if mask_entry.annotator is None
    } & runs.keys()
    calibrations: list[Calibration] = []
    truths: list[BoolArray | None] = []
    for done, case in enumerate(sorted(known_cases)):
        watch(done / len(known_cases), "comparing with true outlines")
        result = study.runs.result(runs[case].id, case)
        for fusion, report in zip(result.fusions, result.reports, strict=True):
            truth = read_masks(study, case, fusion.structures[0], truth=True)
            if report.calibration is not None and truth:
                probability, right = near_outline(
                    report.calibration, crop_truth(truth["truth"], report.calibration)
                )
                if right.size:
                    calibrations.append(probability)
                    truths.append(right)
    return [
        count_in_bins(chance.astype(float), right) for chance, right in judge_with_truth(calibrations, truths)
    ]


def _by_decisions(study: Study, runs: dict[int, RunEntry], watch: Watch) -> list[FloatArray]:
    """Compare with the voxels of regions that the expert decided.

    The probability of the true outline depends on masks alone: decisions made before the run count too.
    """
    state = study.review_state()
    decided = {
        case: [
            region for region in state.regions(case) if region.voxels is not None and not region.subject.whole
        ]
        for case in runs
    }
    judged = []
    for done, (case, regions) in enumerate(decided.items()):
        watch(done / len(decided), "comparing with your decisions")
        result = study.runs.result(runs[case].id, case) if regions else None
        if result is None:
            continue
        for fusion, report in zip(result.fusions, result.reports, strict=True):
            if report.calibration is None:
                continue
            chance = report.calibration.unsettled().true_outline()
            for region in regions:
                if region.subject.structure == fusion.structures[0] and region.voxels is not None:
                    sample = _settled_voxels(report.calibration, chance, study.settled(region.voxels))
                    if len(sample[0]):
                        judged.append(count_in_bins(*sample))
    return judged


def _settled_voxels(
    calibration: Calibration, chance: np.ndarray, settled: Settled
) -> tuple[FloatArray, BoolArray]:
    """Return the probability of decided voxels, and whether they are inside."""
    at = np.argwhere(settled.value >= 0)
    inside = settled.value[tuple(at.T)] == 1
    at = at + np.subtract(settled.origin, calibration.origin)
    in_map = ((at >= 0) & (at < chance.shape)).all(axis=1)
    return chance[tuple(at[in_map].T)].astype(float), inside[in_map]


def compare_runs(at: ComparedItem, differences: Differences) -> None:
    """Compare an item's results in two runs and fill in the differences."""
    old_result, new_result = at.then, at.now
    assert isinstance(old_result, CaseResult)
    assert isinstance(new_result, CaseResult)
    differences.disputed_before += sum(len(report.disputes) for report in old_result.reports)
    differences.disputed_after += sum(len(report.disputes) for report in new_result.reports)
    regions = at.state.regions(at.item)
    settled = settled_of(at.study, regions)
    differences.decided += len(_decided_regions(at, regions))
    old_fusions = {case_fusion.structures[0]: case_fusion for case_fusion in old_result.fusions}
    for fusion in new_result.fusions:
        structure = fusion.structures[0]
        old_fusion = old_fusions.get(structure)
        if old_fusion is None:
            continue
        low, was_inside, inside = in_common_frame(old_fusion, fusion)
        differs = inside != was_inside
        known_values = known_voxels(regions, settled, structure, low, inside.shape)
        if known_values is not None:
            differs &= known_values == UNSETTLED
        labels, _ = scipy.ndimage.label(differs, structure=np.ones((3, 3, 3)))
        sizes = np.bincount(labels.ravel())
        boxes = scipy.ndimage.find_objects(labels)
        small = np.flatnonzero((sizes < _least_voxels(fusion, old_fusion)) & (sizes > 0))
        small = small[small > 0]
        if len(small):
            largest = boxes[int(small[np.argmax(sizes[small])]) - 1]
            start, size = _corner_and_size(largest, low)
            text = f"{counted(int(sizes[small].sum()), 'voxel')} in {counted(len(small), 'small region')}"
            text += f", {plain(structure)}"
            differences.changes.append(
                at.change(text, int(sizes[small].sum()), name=structure, box=(start, size), count=len(small))
            )
        for number in np.setdiff1d(np.arange(1, len(boxes) + 1), small).tolist():
            box = boxes[number - 1]
            changed_voxels = labels[box] == number
            added = int((inside[box] & changed_voxels).sum())
            removed = int(sizes[number]) - added
            text = " and ".join(
                f"{counted(voxel_count, 'voxel')} {text}"
                for voxel_count, text in ((added, "now inside"), (removed, "now outside"))
                if voxel_count
            )
            start, size = _corner_and_size(box, low)
            text += f", {plain(structure)}, slice {start[0] + size[0] // 2 + 1}"
            differences.changes.append(at.change(text, int(sizes[number]), name=structure, box=(start, size)))


def _decided_regions(at: ComparedItem, regions: Sequence[Region]) -> set[tuple[str, int | None]]:
    """Return structure and number of the earlier run's regions that the expert has decided."""
    return {
        (region.subject.structure, region.subject.number)
        for region in regions
        if region.run == at.earlier.id and region.subject.number is not None and region.voxels is not None
    }


def _corner_and_size(box: tuple[slice, ...], low: tuple[int, ...]) -> tuple[Box, Box]:
    """Return the origin of a box in the whole image, and its size."""
    first, second, third = (int(span.start + at) for span, at in zip(box, low, strict=True))
    depth, height, width = (int(span.stop - span.start) for span in box)
    return (first, second, third), (depth, height, width)


def _least_voxels(fusion: MaskFusion, old_fusion: MaskFusion) -> float:
    """Return the smallest size of a changed region that is listed, as for disputed regions."""
    inside = next(
        (case_fusion.mask[0] > 0 for case_fusion in (fusion, old_fusion) if case_fusion.mask[0].any()), None
    )
    if inside is None:
        return 0.0
    voxel = float(np.prod(fusion.spacing))
    tolerance = tolerance_of(inside, fusion.spacing)
    flat = fusion.frame[0] == 1
    return min_volume(tolerance, fusion.spacing, inside.sum() * voxel, flat=flat) / voxel


def undecided_regions(study: Study, state: ReviewState, watch: Watch = silent) -> list[SampledItem]:
    """List the disputed regions of the runs shown that the expert has not decided."""
    listed = []
    for image, step in steps_of(watch, study.items()["masks"]):
        step(0.0, "listing regions")
        shown = study.shown.result(image.id, "masks")
        if shown is None:
            continue
        run, result = shown
        regions = [region for region in state.regions(image.id) if region.voxels is not None]
        whole = {region.subject.structure for region in regions if region.subject.whole}
        settled = {(region.subject.structure, region.run, region.subject.number) for region in regions}
        for structure, report in zip(result.structures(), result.reports, strict=True):
            listed += [
                SampledItem(item=image.id, name=structure, number=number, run=run.id)
                for number in range(1, len(report.disputes) + 1)
                if structure not in whole and (structure, run.id, number) not in settled
            ]
    return listed
