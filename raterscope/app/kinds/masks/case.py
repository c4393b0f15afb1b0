"""Masks of one image as a fusion takes them, the answer of a run over many, and programs among the raters.

Programs are combined with the consensus of all cases of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import Calibration
from raterscope.algorithms.masks.data import BoolArray, Box, MaskFusion, Masks, Settled, overlap
from raterscope.algorithms.masks.fusion import CaseResult, MaskPlan, Report, report_on
from raterscope.algorithms.masks.grid import Grid
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
from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app import outcome
from raterscope.app.errors import InputError, refuse_unknown
from raterscope.app.outcome import finite_or_none
from raterscope.app.review import Region
from raterscope.app.study.masks import assemble
from raterscope.app.study.records import MaskRecord

MARGIN = 3.0
"""mm about all masks that are fused: more than the distances' default clip."""


@dataclass(frozen=True, eq=False)
class Case:
    """The masks of one image as stored; assembled only while they are fused."""

    name: str
    grid: Grid
    records: Mapping[str, Mapping[str, MaskRecord]]  # by structure
    regions: Sequence[Region] = ()  # the expert's decisions
    settled: Mapping[int, Settled] = field(default_factory=dict)  # by `Region.voxels`
    # by structure: where the true outline is known. No consensus depends on it: it calibrates the probability
    # of the true outline.
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
    """Return a mask on a part of the image."""
    out = np.zeros(shape, dtype=mask.values.dtype)
    if mask.values.size:
        to, take = overlap(origin, shape, mask.origin, mask.values.shape)
        out[to] = mask.values[take]
    return out


def crop_truth(truth: MaskRecord, calibration: Calibration) -> BoolArray:
    """Return a true outline on the calibrated part of the grid."""
    return on_box(truth, calibration.origin, calibration.ratio.shape) > 0.5


_GATHERED = 0.4  # share of the time


def with_programs(cases: Mapping[str, Case], names: Collection[str]) -> dict[str, Case]:
    """Return cases in which raters with these names are programs.

    Structures and cases that only programs outlined are left out. Raises `InputError` for unknown names, and
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
            if people := {name: mask for name, mask in masks.items() if name not in names}:
                records[structure] = people
                programs[structure] = {name: mask for name, mask in masks.items() if name in names}
        if records:
            used = {structure: masks for structure, masks in programs.items() if masks}
            divided[key] = replace(case, records=records, programs=used)
    if not divided:
        raise InputError("there are only masks of programs; expected masks of raters too")
    return divided


def combine_programs(answer: Answer, watch: Watch) -> Answer:
    """Combine the consensuses of all cases with programs, each structure with weights of its own."""
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


def program_record(weights: ProgramWeights) -> dict[str, Any]:
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


def _programs(case: Case, structure: str, masks: Masks) -> list[Program]:
    """Return the programs of a case on the grid of the raters' masks."""
    records: Mapping[str, MaskRecord] = case.programs.get(structure, {})
    return [Program(name, on_box(record, masks.origin, masks.shape)) for name, record in records.items()]
