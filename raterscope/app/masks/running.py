"""A run over the masks of a study: each case's masks read, fused and reported on, and kept whole."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raterscope.algorithms.masks.data import FloatArray, MaskFusion, Masks, MasksError, Settled
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.report import CaseResult, report_on
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import outcome
from raterscope.app.outcome import Outcome, versions
from raterscope.app.review import Region, fold
from raterscope.app.study import RunRecord, Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks, settled_of
from raterscope.app.study.records import MaskRecord

__all__ = ["MARGIN", "Answer", "Case", "Draft", "Inputs", "fuse_case", "fuse_cases", "gather", "keep"]

MARGIN = 3.0
"""mm about all masks that are fused: more than the distances' default clip."""

_FUSED = 0.8  # share of a case's time, the rest is measuring


@dataclass(frozen=True, eq=False)
class Case:
    """The masks of one image, as they are stored; laid together only while they are fused.

    Attributes
    ----------
    name : str
    grid : Grid
    records : mapping of structure to the annotators' masks
    regions : sequence of Region
        What the expert decided.
    settled : mapping of `Region.voxels` to Settled
    """

    name: str
    grid: Grid
    records: Mapping[str, Mapping[str, MaskRecord]]
    regions: Sequence[Region] = ()
    settled: Mapping[int, Settled] = field(default_factory=dict)

    def masks(self, structure: str, margin: float = MARGIN) -> Masks:
        """Lay the masks of a structure together, what was settled held fixed."""
        return assemble(
            self.records[structure], self.grid, structure, margin=margin, regions=self.regions,
            settled=self.settled,
        )  # fmt: skip


Inputs = outcome.Inputs[Case]
Draft = outcome.Draft[MaskFusion]
Answer = outcome.Answer[MaskPlan, Case, CaseResult]


def gather(images: Sequence[int], study: Study, watch: Watch = silent) -> Inputs:
    """Read the masks on images of a study, in this order; images without any are left out."""
    decisions = study.decisions()
    state = fold(decisions)
    names = {entry.id: entry for entry in study.images()}
    cases: dict[str, Case] = {}
    numbers: dict[str, int] = {}
    for done, image in enumerate(images):
        entry = names[image]
        watch(done / len(images), f"reading the masks of {entry.name}")
        marked = {one.structure: None for one in mask_entries(study, image) if one.annotator is not None}
        found = {structure: read_masks(study, image, structure) for structure in marked}
        records = {
            structure: {name: one for name, one in raters.items() if name not in state.excluded}
            for structure, raters in found.items()
        }
        if any(records.values()):
            regions = state.regions(image)
            cases[entry.name] = Case(
                entry.name,
                entry.lattice,
                {structure: raters for structure, raters in records.items() if raters},
                regions,
                settled_of(study, regions),
            )
            numbers[entry.name] = image
    if not cases:
        raise MasksError("There are no masks to fuse here.")
    return Inputs(
        items=numbers,
        given=cases,
        decision=decisions[-1].id if decisions else 0,
        imported=study.last_import(),
        excluded=tuple(sorted(state.excluded)),
    )


def fuse_case(case: Case, plan: MaskPlan, watch: Watch = silent) -> CaseResult:
    """Fuse every structure of a case by itself, and measure the raters against what comes out."""
    fusions, reports = [], []
    for step, structure in enumerate(case.records):
        here = part(watch, step / len(case.records), (step + 1) / len(case.records))
        masks = case.masks(structure)
        fusions.append(fuse(masks, plan, watch=part(here, 0.0, _FUSED)))
        reports.append(report_on(fusions[-1], masks, part(here, _FUSED, 1.0)))
    return CaseResult(tuple(fusions), tuple(reports))


def fuse_cases(
    inputs: Inputs, plan: MaskPlan, watch: Watch = silent, *, each: Callable[..., CaseResult] = fuse_case
) -> Answer:
    """Fuse one case after the other, all processors on each; none is lost because another fails.

    ``each(case, plan, watch)`` fuses one.
    """
    return outcome.one_by_one(inputs, plan, each, watch)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run whole, without the cases that failed; gives its number."""
    plan, inputs = answer.plan, answer.inputs
    record = RunRecord(
        kind="masks",
        algorithm=plan.algorithm,
        settings=plan.as_dict(),
        versions=versions(),
        digest=digest_of(inputs.given.values()),
        started=answer.started,
        seconds=answer.seconds,
        log={"images": [case_record(one) for one in answer.outcomes.values()]},
        known=inputs.decision,
        imported=inputs.imported,
        excluded=inputs.excluded,
    )
    return study.add_run(record, answer.kept, watch)


def case_record(ended: Outcome[CaseResult]) -> dict[str, Any]:
    """Say how the fusion of a case went, ready for JSON: iterations, bound, doubt, agreement, seconds."""
    record: dict[str, Any] = {"image": ended.item, "seconds": round(ended.seconds, 4)}
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
                "pair_dice": _rounded(report.pair_dice),
                "iterations": len(trace.objective),
                "converged": trace.converged,
                "objective": float(trace.objective[-1]) if len(trace.objective) else None,
                "notices": list(fusion.notices),
            }
        )
    return record | {"structures": structures}


def _rounded(table: FloatArray) -> list[list[float | None]]:
    return [[round(value, 6) if math.isfinite(value) else None for value in row] for row in table.tolist()]


def digest_of(cases: Iterable[Case]) -> str:
    """Compute the SHA-256 of the masks of some cases, what was settled included."""
    machine = hashlib.sha256()

    def take(*texts: str) -> None:
        for text in texts:
            machine.update(len(text.encode()).to_bytes(8, "little") + text.encode())

    for case in sorted(cases, key=lambda one: one.name):
        take(case.name, str(case.grid.shape), repr(case.grid.affine))
        for structure, raters in sorted(case.records.items()):
            for name, record in raters.items():
                take(structure, name, str(record.origin), str(record.values.shape), str(record.values.dtype))
                machine.update(np.ascontiguousarray(record.values).tobytes())
        for number in sorted(case.settled):
            take(str(case.settled[number].origin), str(case.settled[number].value.shape))
            machine.update(np.ascontiguousarray(case.settled[number].value).tobytes())
    return f"sha256:{machine.hexdigest()}"
