"""Experiments of the robust fusion paper at its own sizes: volumes, raters and cases as in Table 3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.simulation.raters import SimulatedCase, gather_raters, simulate_case
from raterscope.app.papers.experiments import Better, Experiment, Measures, Row
from raterscope.app.papers.masks import TABLE_4, TABLE_5, alike, compared, named, table_rows, weights

__all__ = ["LARGE_PROSTATES", "NODULES", "PROSTATE_RATERS"]

_PROSTATE, _SPACING = (160, 500, 500), (0.75, 0.6, 0.6)
"""Section 4.1: typically 160 x 500 x 500 voxels, slices of 0.5 to 1.0 mm, pixels of 0.4 to 0.8 mm."""

_CUBE = 48
"""Section 4.1: nodules in cubes of 48 mm, voxels of 1 mm."""


def _prostate(run: int, raters: int, wider: int = 0) -> SimulatedCase:
    crowd = gather_raters(raters, run, wider=wider)
    return simulate_case(run, _PROSTATE, _SPACING, crowd, subject="prostate")


def _nodule(cell: str, run: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Compare nine raters of a nodule with the truth, in a cube about it."""
    case = simulate_case(run, (96, 96, 96), (1.0, 1.0, 1.0), gather_raters(9, run))
    centre = np.round([at.mean() for at in np.nonzero(case.truth)]).astype(int)
    cube = tuple(slice(int(at) - _CUBE // 2, int(at) + _CUBE // 2) for at in centre)
    return compared(named(case.masks[(slice(None), *cube)], case.spacing), case.truth[cube])


NODULES = Experiment(
    name="masks-table-4-sizes",
    title="Table 4 and Figure 13: 34 nodules, nine raters, simulated",
    cells=("nine raters",),
    measure=_nodule,
    rows=table_rows("nine raters", TABLE_4),
    runs=34, quick=1,
    method="Simulated nodules of about 13 mm in cubes of 48 x 48 x 48 voxels of 1 mm, nine simulated raters, "
    "one of whom leaks, against the true outline.",
    command="raterscope papers -o x --only masks --full",
    remark="Simulated raters are better than the paper's networks, so that all figures are better.",
    instead="The outputs of the nine networks (NoduleNet) are not published. Simulated nodules and raters.",
)  # fmt: skip


def _large(cell: str, run: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    case = _prostate(run, 5)
    return compared(named(case.masks, case.spacing), case.truth)


LARGE_PROSTATES = Experiment(
    name="masks-table-5-sizes",
    title="Table 5 and Figure 14: seven prostates of 160 x 500 x 500 voxels, five raters, simulated",
    cells=("five raters",),
    measure=_large,
    rows=table_rows("five raters", TABLE_5),
    runs=7, quick=0,
    method="Seven simulated prostates of the paper's size, with the five raters of `raterscope simulate "
    "prostate --raters 5`, against the true outline.",
    command="raterscope simulate prostate --raters 5 -o x && raterscope fuse masks "
    "x/prostate_reader_*.nii.gz --structure prostate --truth x/prostate_truth.nii.gz -o x/fused",
    remark="Simulated raters are better than the paper's networks, so that all figures are better.",
    instead="The outputs of the five networks (ProstateNet) are not published. Simulated raters.",
)  # fmt: skip


def _raters(cell: str, run: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Measure seven raters of a prostate: local weights, and who follows the same consensus at two slopes."""
    school = _prostate(run, 7, wider=2)
    plain = replace(
        school, raters=tuple(replace(one, wider=False) for one in school.raters[:5]), masks=school.masks[:5]
    )
    found = dict(weights(plain))
    for slope in ("5", "1"):
        found |= {f"slope {slope} {name}": value for name, value in alike(school, {"slope": slope}).items()}
        alone = alike(plain, {"slope": slope})
        found |= {f"slope {slope} alone {name}": value for name, value in alone.items()}
    return found


_APART: tuple[tuple[str, str, str, Better], ...] = (
    ("alone printed apart", "one outline: share of cases in which a rater is set apart",
     "0.05 at slope 5, more at slope 1", "lower"),
    ("printed apart", "two schools: share of cases in which some are set apart", "-", "higher"),
    ("printed pairs", "two schools: pairs of raters that are rightly together or apart", "-", "higher"),
)  # fmt: skip

PROSTATE_RATERS = Experiment(
    name="masks-figures-5-7-18-sizes",
    title="Figures 5 to 7 and 18: 40 prostates of 160 x 500 x 500 voxels, seven raters, simulated",
    cells=("seven raters",),
    measure=_raters,
    rows=(
        Row("weight of the rater who leaks, inside the leak over elsewhere at the outline", "seven raters",
            "printed weight", words="lower inside", default="default weight", better="lower"),
        Row("uncertainty where raters disagree over where all agree", "seven raters", "printed uncertainty",
            words="above 1", default="default uncertainty", better="", digits=2),
        *(
            Row(f"slope {slope}: {words}", "seven raters", f"slope {slope} {measure}", words=says,
                default=f"slope {slope} {measure.replace('printed', 'default')}", better=better)
            for slope in ("5", "1")
            for measure, words, says, better in _APART
        ),
    ),
    runs=40, quick=0,
    method="40 simulated prostates of the paper's size with seven raters, of whom one leaks and two follow a "
    "wider outline; where nobody is to be set apart, those two are left out. Slopes of 5 and 1 as in Figure "
    "18.",
    command="raterscope simulate prostate --wider 2 -o x && raterscope fuse masks x/prostate_reader_*.nii.gz "
    "--structure prostate --algorithm mixture --set slope=1 -o x/fused",
    instead="The prostate scans and the seven radiologists' outlines (ProstateBin) are not published. "
    "Simulated CT and raters.",
)  # fmt: skip
