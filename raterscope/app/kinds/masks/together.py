"""Several structures of a case fused as the classes of one model, which do not overlap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from raterscope.algorithms.masks.data import MaskFusion, Masks, MasksError
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.report import CaseResult, report_on
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.kinds.masks.running import MARGIN, Case
from raterscope.app.study.masks import assemble

__all__ = ["fuse_together", "stacked"]

_FUSED = 0.8  # share of the time, the rest is measuring
_ROUNDED = 1e-3


def stacked(case: Case, margin: float = MARGIN) -> Masks:
    """Lay the masks of all structures together, as labels; as probabilities where any are such.

    Who marked some of the structures is taken to have seen none of the others. What is settled is not held.

    Raises
    ------
    MasksError
        Where somebody marked a voxel as two structures.
    """
    names = tuple(dict.fromkeys(name for raters in case.records.values() for name in raters))
    keys = [(structure, name) for structure, raters in case.records.items() for name in raters]
    every = {f"{n}": case.records[structure][name] for n, (structure, name) in enumerate(keys)}
    laid = assemble(every, case.grid, "all", margin=margin)
    structures, shape = tuple(case.records), laid.shape
    values: Any
    if laid.values.dtype == np.float32:
        values = np.zeros((len(names), len(structures), *shape), dtype=np.float32)
        for (structure, name), layer in zip(keys, laid.values, strict=True):
            values[names.index(name), structures.index(structure)] = layer
        twice = values.sum(axis=1).max() > 1 + _ROUNDED
    else:
        values, twice = np.zeros((len(names), *shape), dtype=np.uint8), False
        for (structure, name), layer in zip(keys, laid.values, strict=True):
            labels = values[names.index(name)]
            twice = twice or bool(labels[layer].any())
            labels[layer] = structures.index(structure) + 1
    if twice:
        raise MasksError("somebody marked a voxel as two structures; fuse each structure by itself.")
    return Masks(
        values, names, case.grid.spacing, structures, laid.origin, case.grid.shape,
        slice_positions=laid.slice_positions,
    )  # fmt: skip


def fuse_together(case: Case, plan: MaskPlan, watch: Watch = silent) -> CaseResult:
    """Fuse the structures of a case as classes of one model, and measure each by itself."""
    masks = stacked(case)
    reports = []
    count = len(masks.structures)
    if plan.algorithm == "mixture":  # which groups the raters of each structure by itself
        steps = [part(watch, _FUSED * s / count, _FUSED * (s + 1) / count) for s in range(count)]
        fusions = [fuse(_of(masks, s), plan, watch=steps[s]) for s in range(count)]
    else:
        fusion = fuse(masks, plan, watch=part(watch, 0.0, _FUSED))
        fusions = [_one(fusion, s) for s in range(count)]
    for s in range(count):
        here = part(watch, _FUSED + (1 - _FUSED) * s / count, _FUSED + (1 - _FUSED) * (s + 1) / count)
        reports.append(report_on(fusions[s], _of(masks, s), here))
    return CaseResult(tuple(fusions), tuple(reports))


def _of(masks: Masks, structure: int) -> Masks:
    values: Any = masks.values[:, structure] if masks.values.ndim == 5 else masks.values == structure + 1
    return replace(masks, values=np.ascontiguousarray(values), structures=(masks.structures[structure],))


def _one(fusion: MaskFusion, structure: int) -> MaskFusion:
    """Take one structure out of a fusion of several."""
    here = slice(structure, structure + 1)
    maps: dict[str, Any] = {
        name: None if (values := getattr(fusion, name)) is None else values[here]
        for name in ("mask", "probability", "distance", "deviation", "weight", "bias", "variance", "dof",
                     "sensitivity", "specificity", "tau", "sigma")
    }  # fmt: skip
    traces = fusion.traces[here] if len(fusion.traces) == len(fusion.structures) else fusion.traces
    return replace(fusion, structures=(fusion.structures[structure],), traces=traces, **maps)
