"""Result folder of one case: maps, tables, comparison with the truth, and run.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import BoolArray, Box, Float32Array, MaskFusion, slices_of
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, compare
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.formats.output_files import (
    file_name_part,
    format_number,
    remove_file,
    unique_name,
    write_record,
    write_table,
    write_together,
)
from raterscope.app.kinds.masks.annotators import (
    tables_of,
    units_per_ml,
    volume_unit,
)
from raterscope.app.kinds.masks.runs import Answer, case_record, digest_of
from raterscope.app.outcome import curve_record, record_of
from raterscope.app.study.records import MaskRecord

Row = Sequence[object]

_WRITERS = 2
"""Number of maps written in parallel."""

CONSENSUS = "consensus"
"""Name of the consensus among the annotators of evaluation.csv."""


@dataclass(frozen=True, eq=False)
class CaseOutput:
    """Contents of the folder of one case."""

    grid: Grid  # grid of the whole image
    result: CaseResult
    masks: Mapping[str, Mapping[str, MaskRecord]]  # by structure: of raters and programs
    record: Mapping[str, Any]  # for run.json
    truth: Mapping[str, MaskRecord] = field(default_factory=dict)  # by structure with known truth


def write_case(folder: Path, output: CaseOutput, watch: Watch = silent) -> list[Path]:
    """Write maps, tables and run.json into an existing folder; return the files.

    With several structures, the names of the maps contain the structure, and the tables begin with it. File
    names contain the names of raters and structures; run.json describes each map. Each file replaces an
    existing one completely or not at all. run.json is removed first and written last: if it exists, all files
    that it describes exist.
    """
    result = output.result
    several = len(result.fusions) > 1
    files: list[Path] = []
    remove_file(folder / "run.json")
    used_names: set[str] = set()
    maps: dict[str, dict[str, str]] = {}
    pairs = list(zip(result.fusions, result.reports, strict=True))
    for (fusion, report), step in steps_of(watch, pairs):
        ending = f"_{file_name_part(fusion.structures[0])}" if several else ""
        for path, product, rater in _write_maps(
            folder, ending, fusion, report, output.grid, used_names, step
        ):
            files.append(path)
            of_whom = {} if rater is None else {"annotator": rater}
            meaning = PRODUCTS.get(product, "") if rater is None else BY_RATER[product.partition("_")[0]]
            if meaning:
                of_whom["holds"] = meaning.format(unit="mm" if output.grid.calibrated else "pixels")
            maps[path.name] = {"structure": fusion.structures[0], **of_whom}
    for name, (columns, rows_of) in tables_of(output.grid).items():
        rows = ((f.structures[0], row) for f, report in pairs for row in rows_of(f, report))
        files.append(_table(folder / f"{name}.csv", columns, rows, several))
    if output.truth:
        judged = ((s, row) for s in output.truth for row in _evaluation_rows(output, s))
        files.append(_table(folder / "evaluation.csv", _evaluation_columns(output.grid), judged, several))
    else:
        remove_file(folder / "evaluation.csv")
    return [*files, write_record(folder / "run.json", {**output.record, "maps": maps})]


def run_record(answer: Answer, name: str, inputs: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Return the contents of run.json: all that is needed to reproduce the results, and the fusion's log."""
    outcome = answer.outcomes[name]
    record = record_of(
        answer.plan, seed=getattr(answer.plan.settings, "seed", None),
        digest=digest_of([answer.inputs.given[name]]), inputs=inputs, started=answer.started,
        seconds=outcome.seconds,
    )  # fmt: skip
    case = answer.inputs.given[name]
    if outcome.fusion is not None:
        record["uncertainty"] = uncertainty_text(outcome.fusion.reports[0], calibrated=case.grid.calibrated)
    record["weights"] = dict(answer.inputs.weights)
    record["programs"] = list(answer.inputs.programs)
    of_case = _in_known_units(case_record(outcome, case), case.grid)
    fusions = () if outcome.fusion is None else outcome.fusion.fusions
    for structure, fusion in zip(of_case.get("structures", ()), fusions, strict=True):
        structure["objective_by_iteration"] = curve_record(fusion.traces[0].objective)
    return record | {"images": [of_case]}


def _in_known_units(record: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """Replace volumes in ml by voxels where their size is not known."""
    if not grid.calibrated:
        per_ml = units_per_ml(grid)
        for structure in record.get("structures", ()):
            structure["volume_voxels"] = round(structure.pop("volume_ml") * per_ml)
            structure["disputed_voxels"] = [round(ml * per_ml, 3) for ml in structure.pop("disputed_ml")]
    return record


def products_of(fusion: MaskFusion, report: Report) -> dict[str, Callable[[], Float32Array]]:
    """Return functions that make the calibrated maps on the whole image; empty for a single rater."""
    calibration = report.calibration
    if calibration is None:
        return {}
    return {
        name: partial(_placed, fusion.frame, calibration.origin, make)
        for name, make in _makers(report).items()
    }


def _makers(report: Report) -> dict[str, Callable[[], Float32Array]]:
    """Return functions that make the calibrated maps on the calibrated part of the image."""
    calibration = report.calibration
    if calibration is None:
        return {}
    return {
        "another_rater": calibration.another_rater,
        "true_outline": calibration.true_outline,
        "uncertainty": calibration.half_width,
    }


def _placed(frame: Box, origin: Box, make: Callable[[], Float32Array]) -> Float32Array:
    return _on_whole_image(frame, origin, make())


PRODUCTS = {
    "consensus": "probability of the model; not calibrated",
    "another_rater": "probability that another rater of this crowd includes the voxel",
    "true_outline": "probability that the true outline includes the voxel, under the assumption that "
    "`calibration` states",
    "uncertainty": "half-width of the 95 % band of another rater's outline, {unit}; pointwise",
}
"""Content of each map, by name."""

BY_RATER = {
    "weight": "the rater's share in the consensus, 0 to 1",
    "tau": "the model's local scale of the rater, by which it divides the rater's Sigma: low where the rater "
    "is far from the consensus; 0 outside the fused region",
}
"""Content of the maps of each rater, by the prefix of their names."""


def uncertainty_text(report: Report, *, calibrated: bool) -> str:
    """Describe the map of uncertainty."""
    if report.calibration is None:
        return "not written: needs two raters and a marked voxel"
    return PRODUCTS["uncertainty"].format(unit="mm" if calibrated else "pixels")


def on_whole_image(fusion: MaskFusion, values: NDArray[Any]) -> NDArray[Any]:
    """Place a map of a fusion, (Z, Y, X), in the whole image, with 0 elsewhere."""
    return _on_whole_image(fusion.frame, fusion.origin, values)


def _on_whole_image(frame: Box, origin: Box, values: NDArray[Any]) -> NDArray[Any]:
    framed = np.zeros(frame, dtype=values.dtype)
    framed[slices_of(origin, values.shape)] = values
    return framed


def record_on_whole_image(record: MaskRecord, grid: Grid) -> BoolArray:
    """Place a mask in the whole image; probabilities above 0.5 count as marked."""
    return _on_whole_image(grid.shape, record.origin, record.values > 0.5)


def _evaluation_columns(grid: Grid) -> tuple[str, ...]:
    return (
        "annotator", "dice", "jaccard", "hausdorff", "hausdorff95", "mean_surface_distance",
        f"volume_difference_{volume_unit(calibrated=grid.calibrated)}", "sensitivity", "specificity",
    )  # fmt: skip


def _evaluation_rows(output: CaseOutput, structure: str) -> Iterator[Row]:
    """Compare the consensus and each rater with the truth, over the whole image."""
    truth = record_on_whole_image(output.truth[structure], output.grid)
    spacing, positions = output.grid.spacing, output.grid.uneven_positions
    fusion = next(
        case_fusion for case_fusion in output.result.fusions if case_fusion.structures[0] == structure
    )
    per_ml = units_per_ml(output.grid)
    consensus = compare(on_whole_image(fusion, fusion.mask[0]), truth, spacing, positions)
    yield (CONSENSUS, *_figures(consensus, per_ml))
    for name, record in output.masks[structure].items():
        compared = compare(record_on_whole_image(record, output.grid), truth, spacing, positions)
        yield (name, *_figures(compared, per_ml))


def _figures(comparison: Comparison, per_ml: float) -> Iterator[str]:
    figures = (
        comparison.dice, comparison.jaccard, comparison.hausdorff, comparison.hausdorff_95,
        comparison.mean_surface_distance, comparison.volume_difference * per_ml, comparison.sensitivity,
        comparison.specificity,
    )  # fmt: skip
    return map(format_number, figures)


def _table(path: Path, columns: Sequence[str], rows: Iterator[tuple[str, Row]], several: bool) -> Path:
    if several:
        return write_table(path, ("structure", *columns), ((name, *row) for name, row in rows))
    return write_table(path, columns, (row for _, row in rows))


def _write_maps(
    folder: Path,
    ending: str,
    fusion: MaskFusion,
    report: Report,
    grid: Grid,
    used_names: set[str],
    watch: Watch,
) -> Iterator[tuple[Path, str, str | None]]:
    """Write the maps of one structure; yield each file, its content, and its rater if any."""
    maps: list[tuple[str, str | None, Box, Callable[[], NDArray[Any]]]] = [
        ("consensus", None, fusion.origin, lambda: fusion.probability[0]),
        ("consensus_mask", None, fusion.origin, lambda: fusion.mask[0].view(np.uint8)),
    ]
    makers = _makers(report)
    if report.calibration is not None:
        maps += [(product, None, report.calibration.origin, make) for product, make in makers.items()]
    if fusion.weight is not None:
        maps += [
            (f"weight_{file_name_part(name)}", name, fusion.origin, partial(_shares, weight))
            for name, weight in zip(fusion.annotators, fusion.weight[0], strict=True)
        ]
    if fusion.tau is not None:
        maps += [
            (f"tau_{file_name_part(name)}", name, fusion.origin, partial(tau.astype, np.float32))
            for name, tau in zip(fusion.annotators, fusion.tau[0], strict=True)
        ]
    for number, alternative in enumerate(fusion.alternatives, start=1):
        mask = alternative.mask[0].view(np.uint8)
        maps.append((f"alternative_{number}_mask", None, fusion.origin, mask.view))
    with ThreadPoolExecutor(_WRITERS) as pool:  # one map is compressed while another is written
        try:
            waiting = []
            for product, _, origin, make in maps:
                path = folder / f"{unique_name(product + ending, used_names)}.nii.gz"
                write = partial(_write_map, path, make, origin, grid)
                waiting.append(pool.submit(copy_context().run, write))
            for step, (written, (product, rater, _, _)) in enumerate(zip(waiting, maps, strict=True)):
                watch(step / len(maps), f"writing {product}")
                yield written.result(), product, rater
        finally:
            pool.shutdown(cancel_futures=True)
    for product in PRODUCTS:
        if product not in makers and product != "consensus":
            remove_file(folder / f"{product}{ending}.nii.gz")


def _shares(weight: NDArray[np.uint8]) -> Float32Array:
    return np.asarray(weight / np.float32(255), dtype=np.float32)


def _write_map(path: Path, make: Callable[[], NDArray[Any]], origin: Box, grid: Grid) -> Path:
    from raterscope.app.formats.masks.export import write_array
    from raterscope.app.formats.volumes.resampling import explain_irregularity, regular_grid, resample

    values = make()
    if explain_irregularity(grid):
        regular = regular_grid(grid)
        values, grid = resample(_on_whole_image(grid.shape, origin, values), grid, regular), regular
        origin = (0, 0, 0)
    with write_together([path]) as (draft,):
        write_array(draft, values, grid, origin=origin)
    return path
