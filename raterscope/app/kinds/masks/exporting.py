"""Masks, maps and tables of a study for the next program: what the run shown says, settled voxels on top."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import OPEN, BoolArray, MaskFusion
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.coding import NOTHING_CODED, Coding, merged
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, files_for
from raterscope.app.formats.masks.deidentify import Deidentifier, identifying_words
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.naming import bare
from raterscope.app.formats.masks.terminology import Structure, file_names, suggested
from raterscope.app.formats.output_files import write_table
from raterscope.app.formats.records import VolumeFile
from raterscope.app.kinds.masks.result_files import (
    AGREEMENT,
    DISPUTES,
    Row,
    agreement_rows,
    annotator_columns,
    annotator_rows,
    dispute_rows,
    products_of,
    whole,
)
from raterscope.app.provenance import description_of
from raterscope.app.review import Region, fold, known_voxels
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.masks import chosen_codings, imported_codings, settled_of
from raterscope.app.study.new_study import export_key
from raterscope.app.study.references import uneven_slices_note


def codings_of(study: Study) -> Callable[[str], Coding]:
    """Give what tells each structure's coding: as the expert chose, else as files and its name say."""
    chosen, imported = chosen_codings(study), imported_codings(study)
    return lambda structure: known_coding(chosen, imported, structure)


def known_coding(chosen: Mapping[str, Coding], imported: Mapping[str, Coding], structure: str) -> Coding:
    """Give the coding of one structure: the expert's, else what files say, else what its name suggests.

    That something is tissue is what programs state where nobody chose a code: a usual name tells more.
    """
    if structure in chosen:
        return chosen[structure]
    return merged(imported.get(structure, NOTHING_CODED), suggested(structure))


def source_of(chosen: Mapping[str, Coding], imported: Mapping[str, Coding], structure: str) -> str:
    """Say where a structure's codes come from: "chosen", "file", "name", or "" for none."""
    if structure in chosen:
        return "chosen"
    of_files, of_name = imported.get(structure, NOTHING_CODED), suggested(structure)
    if of_files.specific or (of_files.type is not None and of_name.type is None):
        return "file"
    return "name" if of_name.type is not None else ""


def deidentifier_of(study: Study) -> Deidentifier:
    """Make the de-identifier of a study: its key, and its annotators as rater-1, rater-2 ...

    Raises
    ------
    StudyError
        For a study without a key; see `export_key`.
    """
    names = {name: f"rater-{number}" for number, name in enumerate(study.annotators(), start=1)}
    return Deidentifier(export_key(study), names)


def case_pseudonym(entry: ImageEntry) -> str:
    """Name a case by its number in the study: case-001."""
    return f"case-{entry.id:03d}"


def with_pseudonyms(fusion: MaskFusion, by: Deidentifier) -> MaskFusion:
    """Give a fusion whose raters have other names."""
    return replace(fusion, annotators=tuple(by.names[name] for name in fusion.annotators))


_COLOURS = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0))

_Make = Callable[[], np.ndarray]
_PRODUCTS = ("another-rater", "true-outline", "uncertainty")
_DICOM = ("dicom-seg", "rtstruct")


@dataclass(frozen=True, eq=False)
class _Later:
    """A structure's name, what it stands for, and what makes its map when it is written."""

    name: str
    coding: Coding
    make: _Make


Rows = Callable[[MaskFusion, Report], Iterator[Row]]
_ROWS: dict[str, Rows] = {
    "annotators": annotator_rows,
    "agreement": agreement_rows,
    "disputes": dispute_rows,
}
_COLUMNS = {"agreement": AGREEMENT, "disputes": DISPUTES}


@dataclass(frozen=True, eq=False)
class _Fused:
    """An image with what the run shown says, and what the expert settled."""

    entry: ImageEntry
    run: RunEntry
    result: CaseResult
    regions: Sequence[Region]
    identifying: frozenset[str] = frozenset()
    """Names and numbers that must not stand in what is written."""


def export_maps(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write consensus, probability, uncertainty, weights, tau or alternatives, files for each image.

    Several images go into a folder. See `exports.Writer`.

    Raises
    ------
    InputError
        When nothing was fused yet, the run has no such map, or the format does not hold it.
    """
    by = deidentifier_of(study) if request.deidentify else None
    cases = {case: _structures(study, case, request) for case in _fused(study, request.items, by)}
    empty = [case for case, structures in cases.items() if not structures]
    if len(empty) == len(cases) or (empty and request.items):
        name = plain(empty[0].entry.name)
        raise InputError(f"the run shown of {name} has no {request.what}; {_way_out(request.what)}")
    full = [(case, _file_stem(case.entry, by)) for case, structures in cases.items() if structures]
    written: list[Path] = []
    for case, path, here in files_for(request, full, watch):
        share = 0.5 if request.with_images else 1.0
        written += _write_case(study, case, cases[case], request, path, by, part(here, 0.0, share))
        if request.with_images and by is not None:
            written += _write_images(study, case.entry, request, path.parent, by, part(here, share, 1.0))
    return written


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write annotators, agreement or disputed regions of all images in one table; see `exports.Writer`."""
    rows_of = _ROWS[request.what]
    by = deidentifier_of(study) if request.deidentify else None
    grids = (one.lattice for one in study.images() if not request.items or one.id in request.items)
    columns = _COLUMNS.get(request.what) or annotator_columns(calibrated=any(g.calibrated for g in grids))
    rows = (
        (_title(case.entry, by), _clean(case, fusion.structures[0], number, by), *row)
        for case in _fused(study, request.items, by)
        for number, (fusion, report) in enumerate(
            zip(case.result.fusions, case.result.reports, strict=True), start=1
        )
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


def _fused(study: Study, items: Sequence[int], by: Deidentifier | None = None) -> Iterator[_Fused]:
    state = fold(study.decisions())
    found = False
    for entry in study.images():
        shown = study.shown.result(entry.id, "masks") if not items or entry.id in items else None
        if shown is not None:
            found = True
            (run, result), known = shown, frozenset[str]()
            if by is not None:
                fusions = tuple(with_pseudonyms(fusion, by) for fusion in result.fusions)
                result = replace(result, fusions=fusions)
                known = _identifying(_source(study, entry, needed=False))
            yield _Fused(entry, run, result, state.regions(entry.id), known)
        elif entry.id in items:
            raise InputError(f"has no run yet on {plain(entry.name)}; fuse its masks first", file=study.path)
    if not found:
        raise InputError("has no run of masks yet; `raterscope run` makes one", file=study.path)


def _way_out(what: str) -> str:
    if what in _PRODUCTS:
        return "fuse again: it takes two raters and a mark"
    return "another algorithm may have"


def _file_stem(entry: ImageEntry, by: Deidentifier | None) -> str:
    return bare(Path(entry.name)) if by is None else case_pseudonym(entry)


def _title(entry: ImageEntry, by: Deidentifier | None) -> str:
    return entry.name if by is None else case_pseudonym(entry)


def _clean(case: _Fused, name: str, number: int, by: Deidentifier | None) -> str:
    """Take raters' names out of a structure's name; one that holds the patient's becomes its number."""
    return name if by is None else by.text(name, case.identifying, f"structure {number}")


def _write_case(
    study: Study,
    case: _Fused,
    structures: Sequence[_Later],
    request: Request,
    path: Path,
    by: Deidentifier | None,
    watch: Watch,
) -> list[Path]:
    source = _source(study, case.entry, needed=request.format in _DICOM)
    structures = [
        replace(
            one,
            name=_clean(case, one.name, number, by),
            coding=replace(one.coding, label=_clean(case, one.coding.label, number, by)),
        )
        for number, one in enumerate(structures, start=1)
    ]
    several = request.format == "nifti" and request.what != "consensus" and len(structures) > 1
    # Maps are made one at a time: those of all raters may not fit into memory together.
    groups = [[one] for one in structures] if several else [structures]
    paths = file_names(path, ".nii.gz", [one.name for one in structures]) if several else [path]
    written = []
    for step, (file, group) in enumerate(zip(paths, groups, strict=True)):
        watch(step / len(groups), f"writing {plain(file.name)}")
        made = [
            Structure(one.name, one.make(), _COLOURS[(step + at) % len(_COLOURS)], one.coding)
            for at, one in enumerate(group)
        ]
        written += write_masks(
            file,
            request.format,
            made,
            case.entry.lattice,
            source=source,
            deidentify=by,
            resample=request.resample,
            description=description_of(case.run, deidentify=request.deidentify),
        )
    return written


def _write_images(
    study: Study, entry: ImageEntry, request: Request, folder: Path, by: Deidentifier, watch: Watch
) -> list[Path]:
    """Write a case's images without what could tell the patient: DICOM beside DICOM, else NIfTI."""
    from raterscope.app.formats.masks.export import write_dicom_images, write_nifti_image

    source = _source(study, entry, needed=True, images=True)
    if source is None:
        raise InputError(f"has no image of {case_pseudonym(entry)}; export its masks alone", file=study.path)
    stem = folder / case_pseudonym(entry)
    if request.format in _DICOM:
        written, warnings = write_dicom_images(stem.with_name(f"{stem.name}_images"), source, by, watch)
    else:
        file = stem.with_name(f"{stem.name}_image.nii.gz")
        written, warnings = write_nifti_image(file, source, watch, resample=request.resample)
    for sentence in warnings:
        request.say(sentence)
    return written


def _identifying(source: VolumeFile | None) -> frozenset[str]:
    """List the names and numbers that identify somebody in a DICOM series."""
    from raterscope.app.formats.volumes.dicom_headers import read_dataset

    return frozenset() if source is None else identifying_words(read_dataset(source.files[0], pixels=False))


def _structures(study: Study, case: _Fused, request: Request) -> list[_Later]:
    coding_of = codings_of(study)
    return [
        one
        for fusion, report in zip(case.result.fusions, case.result.reports, strict=True)
        for one in _of_structure(study, case, fusion, report, request, coding_of(fusion.structures[0]))
    ]


def _of_structure(
    study: Study, case: _Fused, fusion: MaskFusion, report: Report, request: Request, coding: Coding
) -> list[_Later]:
    """Name what is to be written of one structure, each with what makes it."""
    name = fusion.structures[0]
    several = len(case.result.fusions) > 1
    if request.what == "consensus":
        return [_Later(name, coding, lambda: settled_consensus(study, fusion, case.regions))]
    if request.what == "probability":
        return [_Later(name, coding, lambda: _settled_probability(study, fusion, case.regions))]
    if request.what in _PRODUCTS:
        make = products_of(fusion, report).get(request.what.replace("-", "_"))
        return [] if make is None else [_Later(name, coding, make)]
    if request.what == "alternatives":
        unnamed, title = replace(coding, label=""), coding.label or name
        return [
            _Later(f"{title} {number} ({100 * one.weight:.0f} %)", unnamed, _later(fusion, one.mask[0]))
            for number, one in enumerate(fusion.alternatives, start=1)
        ]
    every, most = (fusion.tau, np.float32(1)) if request.what == "tau" else (fusion.weight, np.float32(255))
    if every is None:
        return []
    return [
        _Later(
            f"{name} {rater}" if several else rater,
            NOTHING_CODED,
            _later(fusion, every[0, p], most),
        )
        for p, rater in enumerate(fusion.annotators)
    ]


def _later(fusion: MaskFusion, values: np.ndarray, most: np.float32 | None = None) -> _Make:
    return lambda: whole(fusion, values if most is None else values.astype(np.float32) / most)


def _settled_probability(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> np.ndarray:
    values = whole(fusion, fusion.probability[0])
    known = _known(study, fusion, regions)
    return values if known is None else np.where(known == OPEN, values, (known == 1).astype(np.float32))


def _source(study: Study, entry: ImageEntry, *, needed: bool, images: bool = False) -> VolumeFile | None:
    """Find the DICOM series that an image is, which a DICOM file refers to; with `images` any image."""
    from raterscope.app.formats.volumes import find_volumes

    if not (needed or entry.identifier):
        return None
    place = study.locate(entry)
    if place is None and entry.path is not None and needed:
        raise InputError(
            f"is not where it was; the export refers to it: find {plain(entry.path)}", file=entry.name
        )
    if place is None or not (images or entry.identifier):
        return None
    found = [one for one in find_volumes(place) if one.identifier == entry.identifier]
    same = next((one for one in found if one.grid.same_as(entry.lattice)), None)
    if same is None and (why := uneven_slices_note(entry, found)):
        raise InputError(f"is no longer on the grid of its series{why}", file=entry.name)
    return same
