"""Masks, maps and tables of a study for the next program: what the latest run says, settled voxels on top."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import OPEN, BoolArray, MaskFusion
from raterscope.algorithms.masks.report import CaseResult, Report
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.export import write_table
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.naming import bare
from raterscope.app.formats.masks.structures import Structure, file_names
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.masks.results import (
    AGREEMENT,
    ANNOTATORS,
    DISPUTES,
    Row,
    agreement_rows,
    annotator_rows,
    dispute_rows,
    uncertainty_of,
    whole,
)
from raterscope.app.review import Region, fold, known_voxels
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.masks import settled_of

__all__ = ["export_maps", "export_table", "settled_consensus"]

_COLOURS = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0))

_Make = Callable[[], np.ndarray]
_Later = tuple[str, _Make]
"""A structure's name, and what makes its map when it is written."""

Rows = Callable[[MaskFusion, Report], Iterator[Row]]
_ROWS: dict[str, tuple[tuple[str, ...], Rows]] = {
    "annotators": (ANNOTATORS, annotator_rows),
    "agreement": (AGREEMENT, agreement_rows),
    "disputes": (DISPUTES, dispute_rows),
}


@dataclass(frozen=True, eq=False)
class _Fused:
    """An image with what its latest run says, and what the expert settled."""

    entry: ImageEntry
    result: CaseResult
    regions: Sequence[Region]


def export_maps(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write consensus, probability, uncertainty, weights or alternatives, a file or a few for each image.

    Several images go into a folder. See `exports.Writer`.

    Raises
    ------
    InputError
        When nothing was fused yet, the run has no such map, or the format does not hold it.
    """
    cases = {case: _structures(study, case, request) for case in _fused(study, request.items)}
    empty = [case for case, structures in cases.items() if not structures]
    if len(empty) == len(cases) or (empty and request.items):
        name = plain(empty[0].entry.name)
        raise InputError(f"the latest run on {name} has no {request.what}; another algorithm may have")
    full = [(case, bare(Path(case.entry.name))) for case, structures in cases.items() if structures]
    written: list[Path] = []
    for case, path, here in files_for(request, full, watch):
        written += _write_case(study, case, cases[case], request, path, here)
    return written


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write annotators, agreement or disputed regions of all images in one table; see `exports.Writer`."""
    columns, rows_of = _ROWS[request.what]
    rows = (
        (case.entry.name, fusion.structures[0], *row)
        for case in _fused(study, request.items)
        for fusion, report in zip(case.result.fusions, case.result.reports, strict=True)
        for row in rows_of(fusion, report)
    )
    watch(0.0, f"writing {request.what}")
    first = next(rows, None)
    every = [] if first is None else [first, *rows]
    return [write_table(request.path, ("image", "structure", *columns), every)]


def settled_consensus(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> BoolArray:
    """Give the consensus of one structure on the whole image, (Z, Y, X), what the expert settled on top."""
    mask: BoolArray = whole(fusion, fusion.mask[0])
    known = _known(study, fusion, regions)
    return mask if known is None else np.where(known == OPEN, mask, known == 1)


def _known(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> np.ndarray | None:
    origin = (0, 0, 0)
    return known_voxels(regions, settled_of(study, regions), fusion.structures[0], origin, fusion.frame)


def _fused(study: Study, items: Sequence[int]) -> Iterator[_Fused]:
    state = fold(study.decisions())
    found = False
    for entry in study.images():
        latest = study.latest_result(entry.id, "masks") if not items or entry.id in items else None
        if latest is not None:
            found = True
            yield _Fused(entry, latest[1], state.regions(entry.id))
        elif entry.id in items:
            raise InputError(f"has no run yet on {plain(entry.name)}; fuse its masks first", file=study.path)
    if not found:
        raise InputError("has no run of masks yet; `raterscope run` makes one", file=study.path)


def _write_case(
    study: Study, case: _Fused, structures: Sequence[_Later], request: Request, path: Path, watch: Watch
) -> list[Path]:
    source = _source(study, case.entry) if request.format in ("dicom-seg", "rtstruct") else None
    several = request.format == "nifti" and request.what != "consensus" and len(structures) > 1
    # Maps are made one at a time: those of all raters may not fit into memory together.
    groups = [[one] for one in structures] if several else [structures]
    paths = file_names(path, ".nii.gz", [name for name, _ in structures]) if several else [path]
    written = []
    for step, (file, group) in enumerate(zip(paths, groups, strict=True)):
        watch(step / len(groups), f"writing {plain(file.name)}")
        made = [
            Structure(name, make(), _COLOURS[(step + at) % len(_COLOURS)])
            for at, (name, make) in enumerate(group)
        ]
        written += write_masks(
            file,
            request.format,
            made,
            case.entry.lattice,
            source=source,
            deidentify=request.deidentify,
            resample=request.resample,
        )
    return written


def _structures(study: Study, case: _Fused, request: Request) -> list[_Later]:
    return [one for fusion in case.result.fusions for one in _of_structure(study, case, fusion, request)]


def _of_structure(study: Study, case: _Fused, fusion: MaskFusion, request: Request) -> list[_Later]:
    """Name what is to be written of one structure, each with what makes it."""
    name = fusion.structures[0]
    several = len(case.result.fusions) > 1
    if request.what == "consensus":
        return [(name, lambda: settled_consensus(study, fusion, case.regions))]
    if request.what == "probability":
        return [(name, lambda: _settled_probability(study, fusion, case.regions))]
    if request.what == "uncertainty":
        return [(name, lambda: whole(fusion, uncertainty_of(fusion)))]
    if request.what == "alternatives":
        return [
            (f"{name} {number} ({100 * one.weight:.0f} %)", _later(fusion, one.mask[0]))
            for number, one in enumerate(fusion.alternatives, start=1)
        ]
    if fusion.weight is None:
        return []
    return [
        (f"{name} {rater}" if several else rater, _later(fusion, fusion.weight[0, p], np.float32(255)))
        for p, rater in enumerate(fusion.annotators)
    ]


def _later(fusion: MaskFusion, values: np.ndarray, most: np.float32 | None = None) -> _Make:
    return lambda: whole(fusion, values if most is None else values.astype(np.float32) / most)


def _settled_probability(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> np.ndarray:
    values = whole(fusion, fusion.probability[0])
    known = _known(study, fusion, regions)
    return values if known is None else np.where(known == OPEN, values, (known == 1).astype(np.float32))


def _source(study: Study, entry: ImageEntry) -> VolumeFile | None:
    """Find the DICOM series that an image is, which a DICOM file refers to."""
    from raterscope.app.formats.volumes import find_volumes

    place = study.locate(entry)
    if place is None and entry.path is not None:
        raise InputError(
            f"is not where it was; the export refers to it: find {plain(entry.path)}", file=entry.name
        )
    if place is None or not entry.identifier:
        return None
    found = [one for one in find_volumes(place) if one.identifier == entry.identifier]
    return next((one for one in found if one.grid.same_as(entry.lattice)), None)
