"""Comparison of raters that a run excludes with the consensus of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.masks.data import MaskFusion, Masks, box_around
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, compare_all
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.kinds.masks.runs import on_box
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import read_masks

HALF = 0.5


@dataclass(frozen=True)
class ExcludedRater:
    """An excluded rater's mask of a structure, compared as in `Report` with the consensus of the others."""

    # offset, spread: mm; NaN if the mask or the consensus is empty
    offset: float
    spread: float
    compared: Comparison
    volume_ml: float


def compare_excluded(
    study: Study, image: int, run: RunEntry, fusion: MaskFusion, grid: Grid, watch: Watch = silent
) -> dict[str, ExcludedRater]:
    """Compare the raters of one structure that a run excludes, by name, with its consensus."""
    if not run.excluded:
        return {}
    structure = fusion.structures[0]
    drawn = read_masks(study, image, structure, replace(run, excluded=(), programs=()))
    records = {name: record for name, record in drawn.items() if name in run.excluded}
    if not records:
        return {}
    pieces = [(record.origin, record.values.shape) for record in records.values() if record.values.size]
    origin, shape = box_around([(fusion.origin, fusion.shape), *pieces])
    values = np.stack([on_box(record, origin, shape) > HALF for record in records.values()])
    masks = Masks(
        values, tuple(records), grid.spacing, (structure,), origin, grid.shape,
        slice_positions=grid.uneven_positions,
    )  # fmt: skip
    compared, _, offset, spread = compare_all(masks, fusion, watch)
    figures = zip(
        offset.tolist(), spread.tolist(), compared, (masks.volumes(values) / 1000).tolist(), strict=True
    )
    return {name: ExcludedRater(*of) for name, of in zip(records, figures, strict=True)}
