"""Fusion runs over cases of masks: gather the masks of an image, fuse one by one or together, and keep.

Programs among the raters are combined with the consensus of all cases of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import read_notices
from raterscope.algorithms.masks.calibration import (
    LEVELS,
    Calibration,
    check_leave_one_out,
    pool_calibrations,
)
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import (
    BoolArray,
    Box,
    FloatArray,
    MaskFusion,
    Masks,
    MasksError,
    Settled,
    marked,
    overlap,
)
from raterscope.algorithms.masks.distance import skipped_slices
from raterscope.algorithms.masks.fusion import CaseResult, MaskPlan, Report, fuse, fuse_measured, report_on
from raterscope.algorithms.masks.gold_cases import calibrate_with_truth
from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.algorithms.masks.metrics import compare
from raterscope.algorithms.masks.programs import (
    Evidence,
    Program,
    ProgramWeights,
    combine,
    combine_calibrated,
    gather_evidence,
    weigh,
)
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app import outcome
from raterscope.app.errors import InputError, plain, refuse_unknown
from raterscope.app.outcome import Outcome, finite_or_none
from raterscope.app.review import Region, ReviewState, current_names
from raterscope.app.study import Study
from raterscope.app.study.arrays import Fingerprint
from raterscope.app.study.masks import assemble, mask_entries, read_masks, settled_of
from raterscope.app.study.records import ImageEntry, MaskRecord
from raterscope.text import listed

LARGE = 50
"""Minimum number of voxels of identical masks that are a copy, and no chance."""

MARGIN = 3.0
"""Margin in mm around all masks to fuse: more than the default clip of distances."""

_FUSED = 0.8  # share of a case's time, the rest is measuring


Draft = outcome.Draft[MaskFusion]
plan_of = partial(outcome.read_plan, MaskPlan.from_dict)


@dataclass(frozen=True, eq=False)
class Case:
    """The masks of one image as stored; they are assembled only during their fusion."""

    name: str
    grid: Grid
    records: Mapping[str, Mapping[str, MaskRecord]]  # by structure
    regions: Sequence[Region] = ()  # the expert's decisions
    settled: Mapping[int, Settled] = field(default_factory=dict)  # by `Region.voxels`
    # by structure: the known true outline. It calibrates the probability of the true outline; no consensus
    # depends on it.
    truth: Mapping[str, MaskRecord] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)  # the reduced weights of annotators
    # by structure: masks of programs, which are combined with the consensus of the raters
    programs: Mapping[str, Mapping[str, MaskRecord]] = field(default_factory=dict)

    def masks(self, structure: str, check: Callable[[], object] = lambda: None) -> Masks:
        """Assemble the masks of a structure, with decisions held fixed; see `assemble`."""
        return assemble(
            self.records[structure], self.grid, structure, margin=MARGIN, regions=self.regions,
            settled=self.settled, check=check,
        ).with_weights(self.weights)  # fmt: skip


Inputs = outcome.Inputs[Case]
Answer = outcome.Answer[MaskPlan, Inputs, CaseResult]


def on_box(mask: MaskRecord, origin: Box, shape: Box) -> NDArray[Any]:
    """Return the part of a mask within a box of the image."""
    out = np.zeros(shape, dtype=mask.values.dtype)
    if mask.values.size:
        to, take = overlap(origin, shape, mask.origin, mask.values.shape)
        out[to] = mask.values[take]
    return out


def crop_truth(truth: MaskRecord, calibration: Calibration) -> BoolArray:
    """Return the part of a true outline within the calibrated part of the grid."""
    return on_box(truth, calibration.origin, calibration.ratio.shape) > 0.5


_GATHERED = 0.4  # share of the time


def with_programs(cases: Mapping[str, Case], names: Collection[str]) -> dict[str, Case]:
    """Return cases in which raters with these names are programs.

    Structures and cases that only programs outlined are omitted. Raises `InputError` for unknown names, and
    if nothing is left.
    """
    raters = [name for case in cases.values() for masks in case.records.values() for name in masks]
    refuse_unknown(names, raters, "use as a program")
    if not names:
        return dict(cases)
    divided = {}
    for key, case in cases.items():
        records, programs = {}, {}
        for structure, masks in case.records.items():
            if annotators := {name: mask for name, mask in masks.items() if name not in names}:
                records[structure] = annotators
                programs[structure] = {name: mask for name, mask in masks.items() if name in names}
        if records:
            used = {structure: masks for structure, masks in programs.items() if masks}
            divided[key] = replace(case, records=records, programs=used)
    if not divided:
        raise InputError("there are only masks of programs; expected masks of raters too")
    return divided


def _combine_structure(answer: Answer, structure: str, watch: Watch) -> Answer:
    cases = {
        name: case
        for name, case in answer.inputs.given.items()
        if structure in case.programs and name in answer.fusions
    }
    names = tuple(dict.fromkeys(name for case in cases.values() for name in case.programs[structure]))
    evidence: list[Evidence] = []
    for case, step in steps_of(part(watch, 0.0, _GATHERED), cases.values()):
        masks = case.masks(structure)
        present = {program.name: program for program in _programs(case, structure, masks)}
        truth = case.truth.get(structure)
        known = None if truth is None else on_box(truth, masks.origin, masks.shape) > 0.5
        gathered = gather_evidence(masks, [present.get(name) for name in names], known, step)
        evidence += [] if gathered is None else [gathered]
    weights = weigh(names, evidence, part(watch, _GATHERED, 0.5))
    outcomes = dict(answer.outcomes)
    for (name, case), step in steps_of(part(watch, 0.5, 1.0), cases.items()):
        result = outcomes[name].fusion
        assert result is not None
        at = result.structures().index(structure)
        fusion, report = _combine_case(case, structure, result, at, weights, step)
        fusions = (*result.fusions[:at], fusion, *result.fusions[at + 1 :])
        reports = (*result.reports[:at], report, *result.reports[at + 1 :])
        outcomes[name] = replace(outcomes[name], fusion=CaseResult(fusions, reports))
    return replace(answer, outcomes=outcomes)


def _combine_case(
    case: Case, structure: str, result: CaseResult, at: int, weights: ProgramWeights, watch: Watch
) -> tuple[MaskFusion, Report]:
    before, report = result.fusions[at], result.reports[at]
    masks = case.masks(structure)
    fusion, calibration = combine_calibrated(
        before, report.calibration, masks, _programs(case, structure, masks), weights, part(watch, 0.0, 0.5)
    )
    if fusion is not before:
        report = replace(report_on(fusion, masks, part(watch, 0.5, 1.0)), calibration=calibration)
    own = weights.of(tuple(case.programs[structure]))
    fusion = replace(fusion, notices=(*fusion.notices, own.in_words()))
    compared = tuple(
        compare(
            on_box(record, fusion.origin, fusion.shape) > 0.5,
            fusion.mask[0],
            case.grid.spacing,
            fusion.positions,
        )
        for record in case.programs[structure].values()
    )
    return fusion, replace(report, programs=own, programs_compared=compared)


def combine_in_case(
    fusion: MaskFusion, case: Case, masks: Masks, weights: ProgramWeights, watch: Watch
) -> MaskFusion:
    """Combine the consensus of one structure of a case with its programs; see `combine`."""
    programs = _programs(case, fusion.structures[0], masks)
    return combine(fusion, masks, programs, weights, watch)


def _programs(case: Case, structure: str, masks: Masks) -> list[Program]:
    """Return the programs of a case on the grid of the raters' masks."""
    records: Mapping[str, MaskRecord] = case.programs.get(structure, {})
    return [Program(name, on_box(record, masks.origin, masks.shape)) for name, record in records.items()]


def gather(images: Sequence[int], study: Study, watch: Watch = silent) -> Inputs:
    """Read the masks on images of a study, in the given order; images without masks are skipped."""
    entries = {entry.id: entry for entry in study.images()}

    def read(image: int, state: ReviewState) -> Case | None:
        return read_case(entries[image], study, state)

    names = {image: entries[image].name for image in images}
    inputs = outcome.gather(names, study, read, watch, text="reading the masks of")
    if not inputs.given:
        raise MasksError("There are no masks to fuse here. Import the masks of several raters (Ctrl+I).")
    return inputs


def read_case(entry: ImageEntry, study: Study, state: ReviewState) -> Case | None:
    """Read the masks on an image without those of excluded annotators; None if all are by programs."""
    image, regions = entry.id, state.regions(entry.id)
    marked = {
        mask_entry.structure: None
        for mask_entry in mask_entries(study, image)
        if mask_entry.annotator is not None
    }
    records, programs = {}, {}
    for structure in marked:
        masks = read_masks(study, image, structure)
        joined = current_names(masks, state.aliases)
        counted = {
            name: mask for name, mask in masks.items() if name not in state.excluded and name not in joined
        }
        records[structure] = {name: mask for name, mask in counted.items() if name not in state.programs}
        programs[structure] = {name: mask for name, mask in counted.items() if name in state.programs}
    records = {structure: raters for structure, raters in records.items() if raters}
    if not records:
        return None
    truths = {structure: read_masks(study, image, structure, truth=True) for structure in records}
    truth = {structure: true_masks["truth"] for structure, true_masks in truths.items() if true_masks}
    settled = settled_of(study, regions)
    programs = {structure: masks for structure, masks in programs.items() if masks and structure in records}
    return Case(entry.name, entry.lattice, records, regions, settled, truth, state.weights, programs)


def fuse_case(case: Case, plan: MaskPlan, watch: Watch = silent) -> CaseResult:
    """Fuse every structure of a case separately, and compare the raters with the result."""
    fusions, reports = [], []
    for structure, step_watch in steps_of(watch, case.records):
        masks = case.masks(structure, partial(step_watch, 0.0, "assembling the masks"))
        fusion, calibration = fuse_measured(masks, plan, watch=part(step_watch, 0.0, _FUSED))
        report = report_on(fusion, masks, part(step_watch, _FUSED, 1.0), calibration)
        notices = (*_on_pairs(masks, report), *fusion.notices, *skipped_slices(masks))
        fusions.append(replace(fusion, notices=(*notices, *read_notices(masks.annotators))))
        reports.append(report)
    return CaseResult(tuple(fusions), tuple(reports))


def _on_pairs(masks: Masks, report: Report) -> Iterator[str]:
    """Warn of raters whose masks have no voxel in common, or are identical."""
    shared = np.nan_to_num(report.pair_dice) * ~np.eye(len(masks.annotators), dtype=np.bool_)
    size = np.array([np.count_nonzero(marked(layer)) for layer in masks.values])
    copies = np.triu(shared == 1) & (size >= LARGE)
    for first in np.flatnonzero(copies.any(axis=1) & ~copies.any(axis=0)):
        names = [plain(masks.annotators[at], 40) for at in (first, *np.flatnonzero(copies[first]))]
        yield (
            f"Masks of these raters are identical: {listed(names, 6)}. They are copies, or results of one "
            "program, but count as independent. Exclude all but one."
        )
    if not shared.any() and np.count_nonzero(size) > 1:
        yield (
            f"No two raters marked a common voxel of {plain(masks.structures[0])}, so the consensus is no "
            "agreement: check that all masks are of this image and structure."
        )


def fuse_inputs(
    inputs: Inputs, plan: MaskPlan, watch: Watch = silent, *, fuse_each: Callable[..., CaseResult] = fuse_case
) -> Answer:
    """Fuse the cases one after the other, each on all processors; if one fails, the others are kept.

    ``fuse_each(case, plan, watch)`` fuses one. The bands' multipliers are then estimated from all cases, and
    the consensuses are combined with programs.
    """
    programs = any(case.programs for case in inputs.given.values())
    answer = outcome.one_by_one(inputs, plan, fuse_each, part(watch, 0.0, 0.6) if programs else watch)
    answer = _recalibrate(answer, lambda crowd, _: pool_calibrations(check_leave_one_out(crowd)))
    if programs:
        answer = _combine_programs(answer, part(watch, 0.6, 1.0))
    return _recalibrate(answer, calibrate_with_truth)


def _recalibrate(
    answer: Answer,
    change: Callable[[Sequence[Calibration], Sequence[BoolArray | None]], Sequence[Calibration]],
) -> Answer:
    """Replace the calibrations of all cases by ``change(calibrations, true outlines)``."""
    cases = answer.inputs.given
    calibrations, truths = [], []
    for name, case_outcome in answer.outcomes.items():
        if case_outcome.fusion is None:
            continue
        for fusion, report in zip(case_outcome.fusion.fusions, case_outcome.fusion.reports, strict=True):
            if report.calibration is not None:
                calibrations.append(report.calibration)
                truth = cases[name].truth.get(fusion.structures[0])
                truths.append(None if truth is None else crop_truth(truth, report.calibration))
    calibrated = iter(change(calibrations, truths))

    def again(report: Report) -> Report:
        return report if report.calibration is None else replace(report, calibration=next(calibrated))

    outcomes = {
        name: case_outcome
        if case_outcome.fusion is None
        else replace(
            case_outcome,
            fusion=replace(case_outcome.fusion, reports=tuple(again(r) for r in case_outcome.fusion.reports)),
        )
        for name, case_outcome in answer.outcomes.items()
    }
    return replace(answer, outcomes=outcomes)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run without the cases that failed; return its number."""
    return outcome.keep(
        answer,
        study,
        watch,
        kind="masks",
        algorithm=answer.plan.algorithm,
        digest=digest_of(answer.inputs.given.values()),
        log={
            "images": [
                case_record(case_outcome, answer.inputs.given[case_outcome.item])
                for case_outcome in answer.outcomes.values()
            ]
        },
    )


def case_record(ended: Outcome[CaseResult], case: Case) -> dict[str, Any]:
    """Describe the fusion of a case, ready for JSON: iterations, bound, dispute, agreement, seconds."""
    record: dict[str, Any] = {"image": ended.item, "seconds": round(ended.seconds, 4)}
    if sentences := describe_slices(case.grid):
        record["notices"] = list(sentences)
    if ended.fusion is None:
        return record | {"problem": ended.problem}
    structures = []
    for fusion, report in zip(ended.fusion.fusions, ended.fusion.reports, strict=True):
        trace = fusion.traces[0]
        structures.append(
            {
                "structure": fusion.structures[0],
                "raters": list(fusion.annotators),
                "origin": list(fusion.origin),
                "shape": list(fusion.shape),
                "volume_ml": round(report.volume_ml, 6),
                "disputed_ml": [float(f"{region.doubt_ml:.6g}") for region in report.disputes],
                "disputed_wrong": [round(chance, 4) for chance in report.chances_wrong(fusion)],
                "pair_dice": _rounded(report.pair_dice),
                "iterations": len(trace.objective),
                "converged": trace.converged,
                "objective": float(trace.objective[-1]) if len(trace.objective) else None,
                "notices": list(fusion.notices),
                "calibration": _calibration_record(report),
            }
        )
        if report.programs is not None:
            structures[-1]["programs"] = _program_record(report.programs)
        if (follows := followed_consensus(fusion)) is not None:
            structures[-1]["follows"] = follows
    return record | {"structures": structures}


def followed_consensus(fusion: MaskFusion) -> list[int] | None:
    """Return each rater's consensus, 0 for the one with the largest weight; None without a mixture."""
    if fusion.algorithm != "mixture":
        return None
    if not fusion.alternatives:
        return [0] * len(fusion.annotators)
    follows: list[int] = np.argmax(
        [alternative.responsibility for alternative in fusion.alternatives], axis=0
    ).tolist()
    return follows


def _calibration_record(report: Report) -> dict[str, Any] | None:
    """Describe the basis of the maps of another rater, the true outline and the uncertainty."""
    calibration = report.calibration
    if calibration is None:
        return None
    return {
        "band_multipliers": {
            f"{level:g}": k for level, k in zip(LEVELS, calibration.multipliers, strict=True)
        },
        "band_cases": calibration.cases,
        "band": "pointwise, another rater's outline",
        "true_outline_correlation": calibration.correlation,
        "true_outline_offset": calibration.offset,
        "true_outline_gold_cases": calibration.gold,
        "left_out_raters": _left_out_record(calibration),
        "notices": list(calibration.notices()),
    }


def _left_out_record(calibration: Calibration) -> dict[str, Any] | None:
    """Describe how well bands and probabilities predicted raters left out in turn."""
    if calibration.covered is None or calibration.bins is None:
        return None
    coverage = zip(LEVELS, calibration.covered.tolist(), strict=True)
    claimed, marked, voxels = calibration.bins.T
    return {
        "bands_held": {f"{level:g}": round(share, 4) for level, share in coverage},
        "probability_sums": [round(value, 3) for value in claimed.tolist()],
        "voxels_included": [int(value) for value in marked],
        "voxels": [int(value) for value in voxels],
    }


def _rounded(table: FloatArray) -> list[list[float | None]]:
    return [[round(value, 6) if math.isfinite(value) else None for value in row] for row in table.tolist()]


def digest_of(cases: Iterable[Case]) -> str:
    """Compute the SHA-256 of the masks of cases, with the expert's decisions."""
    fingerprint = Fingerprint()
    for case in sorted(cases, key=lambda other: other.name):
        fingerprint.texts(case.name, str(case.grid.shape), repr(case.grid.affine))
        if case.grid.uneven:
            fingerprint.texts(repr(case.grid.slice_offsets))
        for structure, raters in sorted(case.records.items()):
            for name, record in raters.items():
                values = record.values
                fingerprint.texts(structure, name, str(record.origin), str(values.shape), str(values.dtype))
                fingerprint.arrays(values)
        for structure, record in sorted(case.truth.items()):
            fingerprint.texts("truth", structure, str(record.origin), str(record.values.shape))
            fingerprint.arrays(record.values)
        for structure, programs in sorted(case.programs.items()):
            for name, record in programs.items():
                fingerprint.texts("program", structure, name, str(record.origin), str(record.values.shape))
                fingerprint.arrays(record.values)
        weighed = [f"{name} {weight!r}" for name, weight in sorted(case.weights.items()) if weight < 1]
        if weighed:
            fingerprint.texts(*weighed)
        for number in sorted(case.settled):
            fingerprint.texts(str(case.settled[number].origin), str(case.settled[number].value.shape))
            fingerprint.arrays(case.settled[number].value)
    return str(fingerprint)


_FUSED_TOGETHER = 0.8  # share of the time, the rest is measuring
_ROUNDED = 1e-3


def stack_structures(case: Case) -> Masks:
    """Combine the masks of all structures as labels, or as probabilities if any mask has them.

    A structure that a rater did not mark counts as absent for this rater. Decisions are not held fixed.
    Raises `MasksError` if a rater marked a voxel as two structures.
    """
    names = tuple(dict.fromkeys(name for raters in case.records.values() for name in raters))
    keys = [(structure, name) for structure, raters in case.records.items() for name in raters]
    all_masks = {f"{n}": case.records[structure][name] for n, (structure, name) in enumerate(keys)}
    assembled = assemble(all_masks, case.grid, "all", margin=MARGIN)
    structures, shape = tuple(case.records), assembled.shape
    values: Any
    if assembled.values.dtype == np.float32:
        values = np.zeros((len(names), len(structures), *shape), dtype=np.float32)
        for (structure, name), layer in zip(keys, assembled.values, strict=True):
            values[names.index(name), structures.index(structure)] = layer
        is_repeated = values.sum(axis=1).max() > 1 + _ROUNDED
    else:
        values, is_repeated = np.zeros((len(names), *shape), dtype=np.uint8), False
        for (structure, name), layer in zip(keys, assembled.values, strict=True):
            labels = values[names.index(name)]
            is_repeated = is_repeated or bool(labels[layer].any())
            labels[layer] = structures.index(structure) + 1
    if is_repeated:
        raise MasksError("a rater marked a voxel as two structures; fuse each structure separately.")
    return Masks(
        values, names, case.grid.spacing, structures, assembled.origin, case.grid.shape,
        slice_positions=assembled.slice_positions,
    ).with_weights(case.weights)  # fmt: skip


def fuse_together(case: Case, plan: MaskPlan, watch: Watch = silent) -> CaseResult:
    """Fuse the structures of a case as classes of one model, and compare the raters for each."""
    masks = stack_structures(case)
    reports = []
    count = len(masks.structures)
    if plan.algorithm == "mixture":  # the mixture groups the raters of each structure separately
        steps = steps_of(part(watch, 0.0, _FUSED_TOGETHER), range(count))
        fusions = [fuse(_of(masks, s), plan, watch=step) for s, step in steps]
    else:
        fusion = fuse(masks, plan, watch=part(watch, 0.0, _FUSED_TOGETHER))
        fusions = [_extract_structure(fusion, s) for s in range(count)]
    for s, step in steps_of(part(watch, _FUSED_TOGETHER, 1.0), range(count)):
        reports.append(report_on(fusions[s], _of(masks, s), step))
    return CaseResult(tuple(fusions), tuple(reports))


def _of(masks: Masks, structure: int) -> Masks:
    values: Any = masks.values[:, structure] if masks.values.ndim == 5 else masks.values == structure + 1
    return replace(masks, values=np.ascontiguousarray(values), structures=(masks.structures[structure],))


def _extract_structure(fusion: MaskFusion, structure: int) -> MaskFusion:
    """Extract one structure from a fusion of several."""
    rows = slice(structure, structure + 1)
    maps: dict[str, Any] = {
        name: None if (values := getattr(fusion, name)) is None else values[rows]
        for name in ("mask", "probability", "distance", "deviation", "weight", "bias", "variance", "dof",
                     "sensitivity", "specificity", "tau", "sigma")
    }  # fmt: skip
    traces = fusion.traces[rows] if len(fusion.traces) == len(fusion.structures) else fusion.traces
    return replace(fusion, structures=(fusion.structures[structure],), traces=traces, **maps)


def explain_not_converged(fusion: MaskFusion, plan: Mapping[str, Any]) -> str:
    """Report that a fusion did not converge, with advice; empty if it did.

    `plan`: algorithm and settings, as stored with the run.
    """
    counts = [len(trace.objective) for trace in fusion.traces if not trace.converged]
    return outcome.explain_limit(FUSERS.get(str(plan.get("algorithm"))), plan.get("settings"), counts)


def _combine_programs(answer: Answer, watch: Watch) -> Answer:
    """Combine the consensuses of all cases with programs, with separate weights for each structure."""
    cases = answer.inputs.given
    structures = dict.fromkeys(
        structure
        for name, result in answer.fusions.items()
        for structure in result.structures()
        if structure in cases[name].programs
    )
    for structure, step in steps_of(watch, structures):
        answer = _combine_structure(answer, structure, step)
    return answer


def _program_record(weights: ProgramWeights) -> dict[str, Any]:
    """Describe the weights of programs, ready for JSON."""
    return {
        "counts_as": {
            name: {"near": round(near, 4), "elsewhere": round(elsewhere, 4)}
            for name, near, elsewhere in zip(
                weights.names, weights.near.tolist(), weights.elsewhere.tolist(), strict=True
            )
        },
        "gain": finite_or_none(weights.gain),
        "gain_error": finite_or_none(weights.error),
        "known_parts": weights.known,
    }
