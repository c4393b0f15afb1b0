"""Exports of a study's masks, maps and tables, with the expert's decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import OPEN, BoolArray, MaskFusion
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.coding import NOTHING_CODED, Coding, merged
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, description_of, files_for
from raterscope.app.formats.cvat import CvatImage, CvatShape, mask_geometry, write_cvat_file
from raterscope.app.formats.masks.deidentify import Deidentifier, identifying_words
from raterscope.app.formats.masks.export import (
    OF_SERIES,
    check_geometry,
    write_dicom_images,
    write_masks,
    write_nifti_image,
)
from raterscope.app.formats.masks.naming import image_stem
from raterscope.app.formats.masks.terminology import Measure, Structure, file_names, suggest_coding
from raterscope.app.formats.output_files import write_table
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.formats.volumes.dicom_headers import read_dataset
from raterscope.app.kinds.masks.annotators import Row, excluded_rows, tables_of
from raterscope.app.kinds.masks.case_output import on_whole_image, products_of
from raterscope.app.kinds.masks.excluded_raters import compare_excluded
from raterscope.app.kinds.masks.kind import MASKS
from raterscope.app.kinds.masks.variability import (
    difference_statistics,
    measure_differences,
    measure_variability,
    variability_statistics,
)
from raterscope.app.page.variability import COLUMNS, statistic_rows
from raterscope.app.review import Region, known_voxels
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.masks import chosen_codings, imported_codings, settled_of
from raterscope.app.study.new_study import export_key
from raterscope.app.study.references import uneven_slices_note, volume_of


def codings_of(study: Study) -> Callable[[str], Coding]:
    """Return a function that gives each structure's coding; see `known_coding`."""
    chosen, imported = chosen_codings(study), imported_codings(study)
    return lambda structure: known_coding(chosen, imported, structure)


def known_coding(chosen: Mapping[str, Coding], imported: Mapping[str, Coding], structure: str) -> Coding:
    """Return the coding of one structure: the expert's, else the files', else suggested by its name.

    Other programs write "tissue" if no code was chosen: a usual name is more specific.
    """
    if structure in chosen:
        return chosen[structure]
    return merged(imported.get(structure, NOTHING_CODED), suggest_coding(structure))


def coding_source(chosen: Mapping[str, Coding], imported: Mapping[str, Coding], structure: str) -> str:
    """Return the origin of a structure's codes: "chosen", "file", "name", or "" without any."""
    if structure in chosen:
        return "chosen"
    of_files, of_name = imported.get(structure, NOTHING_CODED), suggest_coding(structure)
    if of_files.specific or (of_files.type is not None and of_name.type is None):
        return "file"
    return "name" if of_name.type is not None else ""


def deidentifier_of(study: Study) -> Deidentifier:
    """Make the de-identifier of a study: its key, and its annotators as rater-1, rater-2 ...

    Raises `StudyError` for a study without a key; see `export_key`.
    """
    names = {name: f"rater-{number}" for number, name in enumerate(study.annotators(), start=1)}
    return Deidentifier(export_key(study), names)


def case_pseudonym(entry: ImageEntry) -> str:
    """Name a case by its number in the study: case-001."""
    return f"case-{entry.id:03d}"


def with_pseudonyms(result: CaseResult, by: Deidentifier) -> CaseResult:
    """Return a result with other names for its raters and programs."""
    fusions = tuple(
        replace(fusion, annotators=tuple(by.names[name] for name in fusion.annotators))
        for fusion in result.fusions
    )
    reports = tuple(
        report
        if (programs := report.programs) is None
        else replace(
            report, programs=replace(programs, names=tuple(by.names[name] for name in programs.names))
        )
        for report in result.reports
    )
    return replace(result, fusions=fusions, reports=reports)


_COLOURS = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0))

_Make = Callable[[], np.ndarray]
_PRODUCTS = ("another-rater", "true-outline", "uncertainty")


@dataclass(frozen=True, eq=False)
class LazyMap:
    """A structure's name, its coding, the function that makes its map, and values for structured reports."""

    name: str
    coding: Coding
    make: _Make
    measures: Sequence[Measure] = ()


@dataclass(frozen=True, eq=False)
class FusedCase:
    """An image with the result shown and the expert's decisions."""

    entry: ImageEntry
    run: RunEntry
    result: CaseResult
    regions: Sequence[Region]
    identifying: frozenset[str] = frozenset()
    """Names and numbers that must not appear in written files."""


def export_maps(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write consensus, probability, uncertainty, weights, tau or alternatives, as files for each image.

    Several images go into a folder. See `exports.Writer`. Raises `InputError` if nothing was fused yet, the
    run has no such map, or the format cannot store it.
    """
    by = deidentifier_of(study) if request.deidentify else None
    cases = {case: _structures(study, case, request) for case in fused_cases(study, request.items, by)}
    empty = [case for case, structures in cases.items() if not structures]
    if len(empty) == len(cases) or (empty and request.items):
        name = plain(empty[0].entry.name)
        raise InputError(f"the run shown of {name} has no {request.what}; {_suggest_export(request.what)}")
    if request.format == "cvat":
        return [_write_cvat(cases, request, by, watch)]
    full = [(case, case_stem(case.entry, by)) for case, structures in cases.items() if structures]
    forms = {case: request.formats.get(case.entry.id, request.format) for case, _ in full}
    sources = {case: find_source(study, case.entry, needed=form in OF_SERIES) for case, form in forms.items()}
    formats = next(export.formats for export in MASKS.exports if export.what == request.what)
    for case, form in forms.items():
        file = request.path if len(full) == 1 else Path(case.entry.name)
        grid = case.entry.lattice
        check_geometry(file, form, grid, sources[case], resample=request.resample, formats=formats)
    files: list[Path] = []
    for case, path, step in files_for(request, full, watch, forms):
        share = 0.5 if request.with_images else 1.0
        own, source = replace(request, format=forms[case]), sources[case]
        files += _write_case(case, cases[case], own, path, by, source, part(step, 0.0, share))
        if request.with_images and by is not None:
            files += _write_images(study, case.entry, own, path.parent, by, part(step, share, 1.0))
    return files


def export_table(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write annotators, agreement or disputed regions of all images in one table; see `exports.Writer`.

    Of images with and without a voxel size, each unit has columns of its own, empty for the other images.
    """
    by = deidentifier_of(study) if request.deidentify else None
    watch(0.0, f"writing {request.what}")
    tables: dict[bool, Sequence[str]] = {}
    rows: list[dict[str, object]] = []
    for case in fused_cases(study, request.items, by):
        columns, rows_of = tables_of(case.entry.lattice)[request.what]
        columns = tables[case.entry.lattice.calibrated] = ("image", "structure", *columns)
        pairs = zip(case.result.fusions, case.result.reports, strict=True)
        for number, (fusion, report) in enumerate(pairs, start=1):
            head = _title(case.entry, by), clean_name(case, fusion.structures[0], number, by)
            own = list(rows_of(fusion, report))
            if request.what == "annotators":
                own += _excluded(study, case, number - 1, by)
            rows += (dict(zip(columns, (*head, *row), strict=True)) for row in own)
    every = list(dict.fromkeys(chain.from_iterable(zip(*tables.values(), strict=True))))
    return [write_table(request.path, every, ([row.get(name) for name in every] for row in rows))]


def _excluded(study: Study, case: FusedCase, at: int, by: Deidentifier | None) -> list[Row]:
    """Return the rows of annotators.csv for the excluded raters of a structure."""
    raters = compare_excluded(study, case.entry.id, case.run, case.result.fusions[at], case.entry.lattice)
    return list(excluded_rows({name if by is None else by.names[name]: of for name, of in raters.items()}))


def export_variability(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the observer variability of volumes and outlines over the cases; see `exports.Writer`."""
    by = deidentifier_of(study) if request.deidentify else None
    volumes = measure_variability(study, request.items, part(watch, 0.0, 0.1))
    outlines = measure_differences(study, request.items, watch=part(watch, 0.1, 1.0))
    if not volumes and not outlines:
        raise InputError("contains no structure that two raters marked", file=study.path)
    statistics = [statistic for variability in volumes for statistic in variability_statistics(variability)]
    statistics += [statistic for differences in outlines for statistic in difference_statistics(differences)]
    rows = statistic_rows(statistics, None if by is None else by.names)
    return [write_table(request.path, COLUMNS, rows)]


def settled_consensus(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> BoolArray:
    """Return the consensus of one structure on the whole image, (Z, Y, X), with decisions applied."""
    mask: BoolArray = on_whole_image(fusion, fusion.mask[0])
    known_values = _known(study, fusion, regions)
    return mask if known_values is None else np.where(known_values == OPEN, mask, known_values == 1)


def _known(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> np.ndarray | None:
    origin = (0, 0, 0)
    return known_voxels(regions, settled_of(study, regions), fusion.structures[0], origin, fusion.frame)


def fused_cases(study: Study, items: Sequence[int], by: Deidentifier | None = None) -> Iterator[FusedCase]:
    """Read the requested cases with their results, all without `items`.

    Raises `InputError` for a requested case without result, or if no case has one.
    """
    state = study.review_state()
    has_run = False
    for entry in study.images():
        shown_result = study.shown.result(entry.id, "masks") if not items or entry.id in items else None
        if shown_result is not None:
            has_run = True
            (run, result), no_structures = shown_result, frozenset[str]()
            if by is not None:
                result = with_pseudonyms(result, by)
                no_structures = _identifying(find_source(study, entry, needed=False))
            yield FusedCase(entry, run, result, state.regions(entry.id), no_structures)
        elif entry.id in items:
            raise InputError(f"has no run yet on {plain(entry.name)}; fuse its masks first", file=study.path)
    if not has_run:
        raise InputError("has no run of masks yet; `raterscope run` makes one", file=study.path)


def _suggest_export(export: str) -> str:
    if export in _PRODUCTS:
        return "fuse again: needs two raters and a marked voxel"
    return "another algorithm may have it"


def case_stem(entry: ImageEntry, by: Deidentifier | None) -> str:
    """Name a case's files by its image; by its number if de-identified."""
    return image_stem(entry.name) if by is None else case_pseudonym(entry)


def _title(entry: ImageEntry, by: Deidentifier | None) -> str:
    return entry.name if by is None else case_pseudonym(entry)


def clean_name(case: FusedCase, name: str, number: int, by: Deidentifier | None) -> str:
    """Remove raters' names from a structure's name; replace one with the patient's by a number."""
    return name if by is None else by.text(name, case.identifying, f"structure {number}")


def _write_case(
    case: FusedCase,
    structures: Sequence[LazyMap],
    request: Request,
    path: Path,
    by: Deidentifier | None,
    source: VolumeFile | None,
    watch: Watch,
) -> list[Path]:
    structures = [
        replace(
            structure,
            name=clean_name(case, structure.name, number, by),
            coding=replace(structure.coding, label=clean_name(case, structure.coding.label, number, by)),
        )
        for number, structure in enumerate(structures, start=1)
    ]
    several = request.format == "nifti" and request.what != "consensus" and len(structures) > 1
    # Maps are made one at a time: the maps of all raters may exceed the memory.
    groups = [[structure] for structure in structures] if several else [structures]
    paths = file_names(path, ".nii.gz", [structure.name for structure in structures]) if several else [path]
    files = []
    for step, (file, group) in enumerate(zip(paths, groups, strict=True)):
        watch(step / len(groups), f"writing {plain(file.name)}")
        prepared = [
            Structure(
                structure.name,
                structure.make(),
                _COLOURS[(step + at) % len(_COLOURS)],
                structure.coding,
                structure.measures,
            )
            for at, structure in enumerate(group)
        ]
        files += write_masks(
            file,
            request.format,
            prepared,
            case.entry.lattice,
            source=source,
            deidentify=by,
            resample=request.resample,
            description=description_of(case.run, deidentify=request.deidentify),
        )
    return files


def _write_cvat(
    cases: Mapping[FusedCase, Sequence[LazyMap]], request: Request, by: Deidentifier | None, watch: Watch
) -> Path:
    """Write all cases into one file, because CVAT replaces all annotations of a task by those of a file."""
    labels: dict[str, str] = {}
    pictures = []
    for (case, structures), step in steps_of(watch, cases.items()):
        title = _title(case.entry, by)
        step(0.0, f"writing {plain(title)}")
        slices, height, width = case.entry.lattice.shape
        if slices > 1:
            raise InputError(
                f"{plain(title)} has {slices:,} slices; CVAT for images holds pictures. Export NIfTI or DICOM"
            )
        shapes = []
        for number, structure in enumerate(structures, start=1):
            name, mask = clean_name(case, structure.name, number, by), structure.make()[0]
            labels[name] = "mask"
            if mask.any():
                shapes.append(CvatShape("mask", name, is_manual=False, geometry=mask_geometry(mask)))
        pictures.append(CvatImage(title, (width, height), shapes))
    runs = {description_of(case.run, deidentify=request.deidentify) for case in cases}
    return write_cvat_file(request.path, pictures, labels, "; ".join(sorted(runs)))


def _write_images(
    study: Study, entry: ImageEntry, request: Request, folder: Path, by: Deidentifier, watch: Watch
) -> list[Path]:
    """Write a case's images de-identified: as DICOM if they are DICOM, else as NIfTI."""
    source = find_source(study, entry, needed=True, images=True)
    if source is None:
        raise InputError(f"has no image of {case_pseudonym(entry)}; export its masks alone", file=study.path)
    stem = folder / case_pseudonym(entry)
    if request.format in OF_SERIES:
        image_files, warnings = write_dicom_images(stem.with_name(f"{stem.name}_images"), source, by, watch)
    else:
        file = stem.with_name(f"{stem.name}_image.nii.gz")
        image_files, warnings = write_nifti_image(file, source, watch, resample=request.resample)
    for sentence in warnings:
        request.say(sentence)
    return image_files


def _identifying(source: VolumeFile | None) -> frozenset[str]:
    """List the identifying names and numbers of a DICOM series."""
    return frozenset() if source is None else identifying_words(read_dataset(source.files[0], pixels=False))


def _structures(study: Study, case: FusedCase, request: Request) -> list[LazyMap]:
    coding_of = codings_of(study)
    return [
        later
        for fusion, report in zip(case.result.fusions, case.result.reports, strict=True)
        for later in maps_of_structure(study, case, fusion, report, request, coding_of(fusion.structures[0]))
    ]


def maps_of_structure(
    study: Study, case: FusedCase, fusion: MaskFusion, report: Report, request: Request, coding: Coding
) -> list[LazyMap]:
    """Return the maps of one structure to write."""
    name = fusion.structures[0]
    several = len(case.result.fusions) > 1
    if request.what == "consensus":
        mask = LazyMap(name, coding, lambda: settled_consensus(study, fusion, case.regions))
        return [replace(mask, measures=_agreement(report))]
    if request.what == "probability":
        return [LazyMap(name, coding, lambda: _settled_probability(study, fusion, case.regions))]
    if request.what in _PRODUCTS:
        make = products_of(fusion, report).get(request.what.replace("-", "_"))
        return [] if make is None else [LazyMap(name, coding, make)]
    if request.what == "alternatives":
        unnamed, title = replace(coding, label=""), coding.label or name
        return [
            LazyMap(
                f"{title} {number} ({100 * alternative.weight:.0f} %)",
                unnamed,
                _lazy_map(fusion, alternative.mask[0]),
            )
            for number, alternative in enumerate(fusion.alternatives, start=1)
        ]
    values, largest = (
        (fusion.tau, np.float32(1)) if request.what == "tau" else (fusion.weight, np.float32(255))
    )
    if values is None:
        return []
    return [
        LazyMap(
            f"{name} {rater}" if several else rater, NOTHING_CODED, _lazy_map(fusion, values[0, p], largest)
        )
        for p, rater in enumerate(fusion.annotators)
    ]


def _agreement(report: Report) -> tuple[Measure, ...]:
    """Return the agreement between raters: means over all pairs, except pairs of two empty masks.

    The distance to an empty mask is infinite; an infinite mean is not written.
    """
    pairs = np.triu_indices(len(report.pair_dice), 1)
    dice, distances = (
        values[pairs][~np.isnan(values[pairs])] for values in (report.pair_dice, report.pair_hausdorff_95)
    )
    text = "95th percentile Hausdorff distance of pairs of raters"
    measures = [Measure("RATERS", "Number of raters", len(report.pair_dice))] if pairs[0].size else []
    if dice.size:
        measures.append(Measure("PAIR_DICE", "Mean Dice coefficient of pairs of raters", float(dice.mean())))
    if distances.size:
        measures.append(Measure("PAIR_HD95", f"Mean {text}", float(distances.mean()), "mm"))
    return tuple(measures)


def _lazy_map(fusion: MaskFusion, values: np.ndarray, largest: np.float32 | None = None) -> _Make:
    return lambda: on_whole_image(fusion, values if largest is None else values.astype(np.float32) / largest)


def _settled_probability(study: Study, fusion: MaskFusion, regions: Sequence[Region]) -> np.ndarray:
    values = on_whole_image(fusion, fusion.probability[0])
    known_values = _known(study, fusion, regions)
    return (
        values
        if known_values is None
        else np.where(known_values == OPEN, values, (known_values == 1).astype(np.float32))
    )


def find_source(study: Study, entry: ImageEntry, *, needed: bool, images: bool = False) -> VolumeFile | None:
    """Find the DICOM series of an image, for references; with `images`, any image."""
    if not (needed or entry.identifier):
        return None
    path = study.locate(entry)
    if path is None and entry.path is not None and needed:
        raise InputError(
            f"was moved or deleted, and the export refers to it; find {plain(entry.path)}", file=entry.name
        )
    if path is None or not (images or entry.identifier):
        return None
    volumes = [volume for volume in find_volumes(path) if volume.identifier == entry.identifier]
    same = volume_of(entry, volumes)
    if same is None and (reason := uneven_slices_note(entry, volumes)):
        raise InputError(f"is no longer on the grid of its series{reason}", file=entry.name)
    return same
