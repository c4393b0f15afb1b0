"""What a fusion of masks is written as: maps on the whole grid, tables, and the record of how it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import BoolArray, Box, Float32Array, MaskFusion
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, compare
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.formats.output_files import (
    distinct,
    drafting,
    safe,
    shortest,
    take_away,
    write_record,
    write_table,
)
from raterscope.app.kinds.masks.running import Answer, case_record, digest_of
from raterscope.app.outcome import record_of
from raterscope.app.study.records import MaskRecord

Row = Sequence[object]

AGREEMENT = ("annotator", "other", "dice", "hausdorff95")
DISPUTES = (
    "region", "first_slice", "last_slice", "first_row", "last_row", "first_column", "last_column", "ml",
    "doubt_ml", "beyond", "short", "farthest", "reach", "weight",
)  # fmt: skip
EVALUATION = (
    "annotator", "dice", "jaccard", "hausdorff", "hausdorff95", "mean_surface_distance",
    "volume_difference_ml", "sensitivity", "specificity",
)  # fmt: skip
CONSENSUS = "consensus"
"""In evaluation.csv, in the place of an annotator."""


@dataclass(frozen=True, eq=False)
class CaseOutput:
    """All that the folder of one case holds.

    Attributes
    ----------
    grid : Grid
        The whole image's.
    result : CaseResult
    masks : mapping of structure to the annotators' masks
    record : dict
        For run.json.
    truth : mapping of structure to MaskRecord
        Where it is known.
    """

    grid: Grid
    result: CaseResult
    masks: Mapping[str, Mapping[str, MaskRecord]]
    record: Mapping[str, Any]
    truth: Mapping[str, MaskRecord] = field(default_factory=dict)


def write_case(folder: Path, output: CaseOutput, watch: Watch = silent) -> list[Path]:
    """Write maps, tables and run.json into a folder that is there; gives the files.

    With several structures the names of the maps say which, and the tables begin with it. Names of files are
    made of what raters and structures are called; run.json says of which each map is. Each file replaces one
    that is there, whole or not at all. run.json comes last, and goes first where there is one: where it is,
    all that it tells of is there.
    """
    result = output.result
    several = len(result.fusions) > 1
    written: list[Path] = []
    take_away(folder / "run.json")
    taken: set[str] = set()
    maps: dict[str, dict[str, str]] = {}
    for step, (fusion, report) in enumerate(zip(result.fusions, result.reports, strict=True)):
        here = part(watch, step / len(result.fusions), (step + 1) / len(result.fusions))
        ending = f"_{safe(fusion.structures[0])}" if several else ""
        for path, what, rater in _write_maps(folder, ending, fusion, report, output.grid, taken, here):
            written.append(path)
            of_whom = {} if rater is None else {"annotator": rater}
            meaning = PRODUCTS.get(what, "") if rater is None else BY_RATER[what.partition("_")[0]]
            if meaning:
                of_whom["holds"] = meaning.format(unit="mm" if output.grid.calibrated else "pixels")
            maps[path.name] = {"structure": fusion.structures[0], **of_whom}
    pairs = list(zip(result.fusions, result.reports, strict=True))
    tables = [
        ("annotators.csv", annotator_columns(calibrated=output.grid.calibrated), annotator_rows),
        ("agreement.csv", AGREEMENT, agreement_rows),
        ("disputes.csv", DISPUTES, dispute_rows),
    ]
    for name, columns, rows_of in tables:
        rows = ((f.structures[0], row) for f, report in pairs for row in rows_of(f, report))
        written.append(_table(folder / name, columns, rows, several))
    if output.truth:
        judged = ((s, row) for s in output.truth for row in _evaluation_rows(output, s))
        written.append(_table(folder / "evaluation.csv", EVALUATION, judged, several))
    else:
        take_away(folder / "evaluation.csv")
    return [*written, write_record(folder / "run.json", {**output.record, "maps": maps})]


def run_record(answer: Answer, name: str, inputs: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Make the contents of run.json: all that is needed to make a case's results again, and how it went."""
    outcome = answer.outcomes[name]
    record = record_of(
        answer.plan, seed=getattr(answer.plan.settings, "seed", None),
        digest=digest_of([answer.inputs.given[name]]), inputs=inputs, started=answer.started,
        seconds=outcome.seconds,
    )  # fmt: skip
    if outcome.fusion is not None:
        calibrated = answer.inputs.given[name].grid.calibrated
        record["uncertainty"] = uncertainty_words(outcome.fusion.reports[0], calibrated=calibrated)
    return record | {"images": [case_record(outcome, answer.inputs.given[name])]}


def products_of(fusion: MaskFusion, report: Report) -> dict[str, Callable[[], Float32Array]]:
    """Give what makes the calibrated maps on the whole image, by name; none for a single rater."""
    found = report.calibration
    if found is None:
        return {}
    return {
        name: partial(_placed, fusion.frame, found.origin, make) for name, make in _makers(report).items()
    }


def _makers(report: Report) -> dict[str, Callable[[], Float32Array]]:
    """Give what makes the calibrated maps on the part of the image that was calibrated."""
    found = report.calibration
    if found is None:
        return {}
    return {
        "another_rater": found.another_rater,
        "true_outline": found.true_outline,
        "uncertainty": found.half_width,
    }


def _placed(frame: Box, origin: Box, make: Callable[[], Float32Array]) -> Float32Array:
    return _whole(frame, origin, make())


PRODUCTS = {
    "consensus": "probability of the model; not calibrated",
    "another_rater": "probability that another rater of this crowd includes the voxel",
    "true_outline": "probability that the true outline includes the voxel, under the assumption that "
    "`calibration` states",
    "uncertainty": "half-width of the 95 % band of another rater's outline, {unit}; pointwise",
}
"""What each map holds, by name."""

BY_RATER = {
    "weight": "the rater's share of what the consensus rests on, 0 to 1",
    "tau": "the model's local scale of the rater, by which it divides the rater's Sigma: low where the rater "
    "is far from the consensus; 0 outside of what was fused",
}
"""What the maps of each rater hold, by the beginning of their names."""


def uncertainty_words(report: Report, *, calibrated: bool) -> str:
    """Say what the map of uncertainty holds."""
    if report.calibration is None:
        return "not written: it takes two raters and a mark"
    return PRODUCTS["uncertainty"].format(unit="mm" if calibrated else "pixels")


def whole(fusion: MaskFusion, values: NDArray[Any]) -> NDArray[Any]:
    """Put a map of a fusion, (Z, Y, X), onto the whole image, 0 where nothing was fused."""
    return _whole(fusion.frame, fusion.origin, values)


def _whole(frame: Box, origin: Box, values: NDArray[Any]) -> NDArray[Any]:
    found = np.zeros(frame, dtype=values.dtype)
    ends = zip(origin, values.shape, strict=True)
    found[tuple(slice(at, at + n) for at, n in ends)] = values
    return found


def whole_record(record: MaskRecord, grid: Grid) -> BoolArray:
    """Put a mask onto the whole image; probabilities count as marked above one half."""
    found = np.zeros(grid.shape, dtype=np.bool_)
    ends = zip(record.origin, record.values.shape, strict=True)
    found[tuple(slice(at, at + n) for at, n in ends)] = record.values > 0.5
    return found


def annotator_columns(*, calibrated: bool) -> tuple[str, ...]:
    """Name the columns of annotators.csv; lengths are in mm, or in pixels where no voxel size is known.

    The bias is that of window and report: how far the rater's outline lies beyond the consensus's on average
    along it (`Report.offset`), above 0 for a rater who marks more. The model's bias is another quantity,
    estimated over all voxels, most of which lie where all raters agree; so are Sigma (its square root), the
    standard deviation, the degrees of freedom and the scale tau (`MaskFusion`).
    """
    unit = "mm" if calibrated else "px"
    return (
        "annotator", f"bias_{unit}", f"spread_{unit}", f"model_bias_{unit}", f"model_sigma_{unit}",
        f"model_sd_{unit}", "dof", "tau", "dice", "hausdorff", "hausdorff95", "sensitivity", "specificity",
    )  # fmt: skip


def annotator_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Give the rows of annotators.csv for one structure; see `annotator_columns`."""
    unknown = np.full(len(fusion.annotators), np.nan)
    sigma = unknown if fusion.sigma is None else np.sqrt(fusion.sigma[0])
    tau = unknown if report.tau is None else report.tau
    for p, name in enumerate(fusion.annotators):
        model = (report.offset[p], report.spread[p], fusion.bias[0, p], sigma[p],
                 np.sqrt(fusion.variance[0, p]), fusion.dof[0, p], tau[p])  # fmt: skip
        compared = report.compared[p]
        figures = (compared.dice, compared.hausdorff, compared.hausdorff_95)
        shares = (fusion.sensitivity[0, p], fusion.specificity[0, p])
        yield (name, *map(shortest, (*model, *figures, *shares)))


def agreement_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Give the rows of agreement.csv for one structure: every pair of raters once."""
    for p, name in enumerate(fusion.annotators):
        for q in range(p + 1, len(fusion.annotators)):
            figures = (report.pair_dice[p, q], report.pair_hausdorff_95[p, q])
            yield (name, fusion.annotators[q], *map(shortest, figures))


def dispute_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Give the rows of disputes.csv for one structure; voxels count from 0, the last belongs to the box."""
    names = fusion.annotators
    for number, one in enumerate(report.disputes, start=1):
        box = [v for at, n in zip(one.origin, one.shape, strict=True) for v in (at, at + n - 1)]
        figures = (one.volume_ml, one.doubt_ml)
        beyond, short = ("; ".join(names[p] for p in who) for who in (one.beyond, one.short))
        rest = (names[one.leader], shortest(one.reach), shortest(one.weight))
        yield (number, *box, *map(shortest, figures), beyond, short, *rest)


def _evaluation_rows(output: CaseOutput, structure: str) -> Iterator[Row]:
    """Compare the consensus and everybody with the truth, over the whole image."""
    truth = whole_record(output.truth[structure], output.grid)
    spacing, positions = output.grid.spacing, output.grid.uneven_positions
    fusion = next(one for one in output.result.fusions if one.structures[0] == structure)
    yield (CONSENSUS, *_figures(compare(whole(fusion, fusion.mask[0]), truth, spacing, positions)))
    for name, record in output.masks[structure].items():
        yield (name, *_figures(compare(whole_record(record, output.grid), truth, spacing, positions)))


def _figures(one: Comparison) -> Iterator[str]:
    return map(shortest, (one.dice, one.jaccard, one.hausdorff, one.hausdorff_95, one.mean_surface_distance,
                         one.volume_difference, one.sensitivity, one.specificity))  # fmt: skip


def _table(path: Path, columns: Sequence[str], rows: Iterator[tuple[str, Row]], several: bool) -> Path:
    if several:
        return write_table(path, ("structure", *columns), ((name, *row) for name, row in rows))
    return write_table(path, columns, (row for _, row in rows))


def _write_maps(
    folder: Path, ending: str, fusion: MaskFusion, report: Report, grid: Grid, taken: set[str], watch: Watch
) -> Iterator[tuple[Path, str, str | None]]:
    """Write the maps of one structure; gives each file, what it holds, and the rater where it is of one."""
    maps: list[tuple[str, str | None, Box, Callable[[], NDArray[Any]]]] = [
        ("consensus", None, fusion.origin, lambda: fusion.probability[0]),
        ("consensus_mask", None, fusion.origin, lambda: fusion.mask[0].view(np.uint8)),
    ]
    makers = _makers(report)
    if report.calibration is not None:
        maps += [(what, None, report.calibration.origin, make) for what, make in makers.items()]
    if fusion.weight is not None:
        maps += [
            (f"weight_{safe(name)}", name, fusion.origin, partial(_shares, weight))
            for name, weight in zip(fusion.annotators, fusion.weight[0], strict=True)
        ]
    if fusion.tau is not None:
        maps += [
            (f"tau_{safe(name)}", name, fusion.origin, partial(tau.astype, np.float32))
            for name, tau in zip(fusion.annotators, fusion.tau[0], strict=True)
        ]
    for number, one in enumerate(fusion.alternatives, start=1):
        mask = one.mask[0].view(np.uint8)
        maps.append((f"alternative_{number}_mask", None, fusion.origin, mask.view))
    for step, (what, rater, origin, make) in enumerate(maps):
        watch(step / len(maps), f"writing {what}")
        path = folder / f"{distinct(what + ending, taken)}.nii.gz"
        yield _write_map(path, make(), origin, grid), what, rater
    for what in PRODUCTS:
        if what not in makers and what != "consensus":
            take_away(folder / f"{what}{ending}.nii.gz")


def _shares(weight: NDArray[np.uint8]) -> Float32Array:
    return np.asarray(weight / np.float32(255), dtype=np.float32)


def _write_map(path: Path, values: NDArray[Any], origin: Box, grid: Grid) -> Path:
    from raterscope.app.formats.masks.export import write_array
    from raterscope.app.formats.volumes.resampling import regular_grid, resample, why_not_regular

    if why_not_regular(grid):
        regular = regular_grid(grid)
        values, grid = resample(_whole(grid.shape, origin, values), grid, regular), regular
        origin = (0, 0, 0)
    with drafting([path]) as (draft,):
        write_array(draft, values, grid, origin=origin)
    return path
