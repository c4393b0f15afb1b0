"""Masks of one image as a fusion takes them, and the answer of a run over many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import Calibration
from raterscope.algorithms.masks.data import BoolArray, Box, Masks, Settled, overlap
from raterscope.algorithms.masks.fusion import CaseResult, MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app import outcome
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
