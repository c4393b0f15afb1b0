"""Programs among the raters of masks: combined with the consensus of all cases of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from raterscope.algorithms.masks.data import MaskFusion, Masks
from raterscope.algorithms.masks.fusion import CaseResult, Report, report_on
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
from raterscope.app.errors import InputError, refuse_unknown
from raterscope.app.kinds.masks.case import Answer, Case, on_box
from raterscope.app.outcome import finite_or_none
from raterscope.app.study.records import MaskRecord

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
