"""How far to trust the maps and bands of masks: what comparable crowds of raters came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.evaluation import Calibration
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from raterscope.app.trust.comparable import comparable_in_words
from raterscope.app.trust.shape import Trust

__all__ = ["MasksTrust", "trust_in_masks"]


@dataclass(frozen=True, eq=False)
class MasksTrust(Trust):
    """What was measured on comparable crowds; nothing of this run is known."""

    def in_words(self) -> str:
        """Say it in a few sentences."""
        return (
            "The probability that another rater includes a voxel, and the band, were measured with left-out "
            f"raters. {self.comparable} The true outline cannot be confirmed by masks alone."
        )


def trust_in_masks(study: Study, cases: Sequence[int]) -> MasksTrust | None:
    """Say what was measured with as many raters a case; None where no case has a run."""
    many = []
    for case in cases:
        run = study.run_shown(case, "masks")
        if run is not None:
            many.append(len({one.annotator for one in mask_entries(study, case, study.run(run))}))
    if not many:
        return None
    nothing = np.empty(0)
    return MasksTrust(
        noun="voxel",
        by_truth=False,
        calibration=Calibration(nothing, nothing, np.empty(0, dtype=np.int64), float("nan")),
        comparable=comparable_in_words("masks", float(np.mean(many))),
    )
