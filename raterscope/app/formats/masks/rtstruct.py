"""DICOM RT structure sets: contours in millimetres on the slices of a series.

Contours of one structure on one slice are combined by the even-odd rule, so that a contour within another is
a hole. A contour that the file repeats is read once. Contours that overlap in part are listed.

Written contours follow the edges of the voxels. Filled by the even-odd rule at voxel centres they reproduce
the masks; holes and separate parts are separate contours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope import __version__
from raterscope.algorithms.masks.data import box_around
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.coding import Coding
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.masks.collector import (
    crop,
    find_series_volume,
    image_of,
    may_fit,
    missing_series_error,
    notices_of_patient,
    notices_of_run,
    origins_of,
    refuse_total,
    run_in_description,
)
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentify_dataset
from raterscope.app.formats.masks.naming import NO_NAMES, NameParts, parse_name
from raterscope.app.formats.masks.shapes import Drawing, draw_outlines, find_crossing, trace_outlines
from raterscope.app.formats.masks.terminology import (
    Structure,
    add_codes,
    missing_uids,
    require_masks,
    require_source,
    roi_coding,
)
from raterscope.app.formats.output_files import write_together
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import file_errors, text_of
from raterscope.app.formats.volumes.dicom_headers import read_dataset

Planes = dict[int, Drawing]
"""Filled contours of a structure on each slice."""


@dataclass(frozen=True, eq=False, slots=True)
class _Placed:
    """A contour on a slice."""

    title: str
    off: float  # mm from the slice, along the normal
    outline: NDArray[np.float64]  # (N, 2): column and row
    is_off: bool  # beyond the slab of the slice that it refers to
    is_referred: bool
    is_xor: bool  # to be combined by the even-odd rule


_CLOSED = ("CLOSED_PLANAR", "CLOSEDPLANAR_XOR")
_KINDS = {"POINT": "points", "OPEN_PLANAR": "open contours", "OPEN_NONPLANAR": "open contours"}
_OFF_SLICE = 0.05
"""Distance of a contour from its slice, as a share of the nominal slice distance, above which it is between
slices.
"""

_LISTED = 30
"""Maximum number of contours listed in a notice."""

_FINEST = 128.0
"""Number of steps per pixel to which coordinates are rounded, because decimals in the file are truncated."""


def read_rtstruct(
    path: Path, volumes: tuple[VolumeFile, ...] = (), names: NameParts = NO_NAMES, naming: str | None = None,
    watch: Watch = silent,
) -> MaskTable:  # fmt: skip
    """Read each structure's contours as a mask on the series on which they were drawn.

    Contours on another series are read if every contour fits the only volume, unless `may_fit` excludes
    it. The annotator is parsed from the structure's name by a pattern, or is the structure's
    interpreter, the file's operator, or the given name, in this order. Raises `InputError` if the series is
    not available, and for a file without closed contours.
    """
    with file_errors(path):
        dataset = read_dataset(path, pixels=False)
        series, instances = _references(dataset)
        volume = find_series_volume(volumes, series, instances)
        if volume is not None:
            names = names._replace(item=names.item or image_of(volume, volumes, instances))
            return _read(path, dataset, volume, names, naming, watch)
        frames = _frames_of_reference(dataset)
        if (
            len(volumes) != 1
            or not may_fit(volumes[0], dataset, frames)
            or not _fits(dataset, volumes[0].grid)
        ):
            raise missing_series_error(path, series, volumes)
        table = _read(path, dataset, volumes[0], names, naming, watch)
        message = (
            f"Refers to another series than {plain(volumes[0].name, 60)}, but every contour fits its slices."
        )
        return replace(table, notices=(message, *table.notices))


def _references(dataset: Any) -> tuple[list[str], set[str]]:
    """Return the UIDs of the series and slices that the contours refer to."""
    series: dict[str, None] = {}
    instances: set[str] = set()
    for frame in dataset.get("ReferencedFrameOfReferenceSequence") or ():
        for study in frame.get("RTReferencedStudySequence") or ():
            for series_item in study.get("RTReferencedSeriesSequence") or ():
                series[str(series_item.get("SeriesInstanceUID", ""))] = None
                instances.update(
                    str(image.get("ReferencedSOPInstanceUID", ""))
                    for image in series_item.get("ContourImageSequence") or ()
                )
    for roi in dataset.get("ROIContourSequence") or ():
        for contour in roi.get("ContourSequence") or ():
            instances.update(
                str(image.get("ReferencedSOPInstanceUID", ""))
                for image in contour.get("ContourImageSequence") or ()
            )
    return [uid for uid in series if uid], instances - {""}


def _frames_of_reference(dataset: Any) -> set[str]:
    """Return the UIDs of the frames of reference of structures and series."""
    names = ("StructureSetROISequence", "ReferencedFrameOfReferenceSequence")
    return {
        str(item.get(name) or "")
        for items in names
        for item in dataset.get(items) or ()
        for name in ("ReferencedFrameOfReferenceUID", "FrameOfReferenceUID")
    }


def _contour_numbers(contour: Any) -> NDArray[np.float64]:
    """Read the numbers of a contour, as bytes because pydicom would check each number."""
    raw = contour.get_item("ContourData") if "ContourData" in contour else None
    if raw is not None and isinstance(raw.value, bytes):
        return np.array([float(value) for value in raw.value.rstrip(b" \0").split(b"\\")])
    return np.array([float(value) for value in contour.get("ContourData") or ()])


def _fits(dataset: Any, grid: Grid) -> bool:
    """Return whether every closed contour is on a slice and within it."""
    ends = np.array(grid.shape[1:]) - 0.49
    for roi in dataset.get("ROIContourSequence") or ():
        for contour in roi.get("ContourSequence") or ():
            if str(contour.get("ContourGeometricType") or "") in _CLOSED:
                points = _contour_numbers(contour)
                if not len(points) or len(points) % 3 or not np.isfinite(points).all():
                    return False
                heights = grid.heights(points.reshape(-1, 3))
                at_slice = grid.slice_at(float(heights.mean()))
                if at_slice is None:
                    return False
                distance = np.abs(heights - grid.positions[at_slice]).max()
                index = grid.on_slice(points.reshape(-1, 3), at_slice)
                if distance > _OFF_SLICE * grid.spacing[0] or (index < -0.51).any() or (index > ends).any():
                    return False
    return True


def _read(
    path: Path, dataset: Any, volume: VolumeFile, names: NameParts, naming: str | None, watch: Watch
) -> MaskTable:
    left_out: Counter[str] = Counter()
    observed = {
        int(item.ReferencedROINumber): item for item in dataset.get("RTROIObservationsSequence") or ()
    }
    interpreters = {
        number: text_of(str(item.get("ROIInterpreter") or "")) for number, item in observed.items()
    }
    operator = text_of(str(dataset.get("OperatorsName") or "").replace("^", " "))
    listed = list(dataset.get("StructureSetROISequence") or ())
    titles = {int(item.ROINumber): text_of(str(item.get("ROIName") or "")) for item in listed}
    if len(titles) < len(listed):
        raise InputError("has several structures of one number", file=path, field="ROINumber")
    unplaced: dict[tuple[str, str], list[tuple[str, str]]] = {}
    rois = list(dataset.get("ROIContourSequence") or ())
    unread: list[str] = []
    drawn: list[tuple[str | None, str, Coding, Planes]] = []
    for at, roi in enumerate(rois):
        number = int(roi.ReferencedROINumber)
        contours = list(roi.get("ContourSequence") or ())
        title = titles.get(number) or f"structure {number}"
        parts = (parse_name(title, naming) if naming else None) or NO_NAMES
        annotator = (
            parts.annotator or interpreters.get(number, "").replace("^", " ") or operator or names.annotator
        )
        structure = parts.structure or title
        owner = plain(f"{structure} by {annotator}" if annotator else structure)
        step = part(watch, 0.5 * at / len(rois), 0.5 * (at + 1) / len(rois))
        planes = _planes(path, contours, volume, left_out, unplaced, owner, step)
        if planes:
            drawn.append((annotator, structure, roi_coding(roi, observed.get(number)), planes))
        else:
            unread.append(owner)
    refuse_total(path, sum(math.prod(_around(planes)[1]) for *_, planes in drawn))
    masks = []
    item = names.item or volume.identifier or volume.name
    for (annotator, structure, coding, planes), step in steps_of(part(watch, 0.5, 1.0), drawn):
        origin, mask = _fill_planes(planes, step)
        masks.append(RaterMask(annotator, item, structure, volume.grid, origin, mask, coding))
    moved = left_out.pop(_MOVED, 0)
    if not masks:
        reasons = [f"{text} {n:,}" for text, n in left_out.items()]
        reasons += [f"{len(contours):,} {words[len(contours) > 1]}" for words, contours in unplaced.items()]
        reason = f" ({'; '.join(reasons)})" if reasons else ""
        raise InputError(f"has no closed contours on {plain(volume.name, 60)}{reason}", file=path)
    messages = []
    if moved:
        text = "contour is between slices and was" if moved == 1 else "contours are between slices and were"
        messages.append(f"{moved:,} {text} moved to the nearest slice.")
    if unread:
        messages.append(
            f"Not read, because no contour marks a pixel: {plain_names(unread, _LISTED, 60)}. A rater "
            "without a mask of a structure does not count in its fusion."
        )
    messages += [_list_contours(text, contours) for text, contours in unplaced.items()]
    if left_out:
        messages.append(f"Skipped: {', '.join(f'{text} {n:,}' for text, n in left_out.items())}.")
    messages = [*notices_of_patient(dataset, volume, _frames_of_reference(dataset)), *messages]
    run = run_in_description(dataset)
    return MaskTable(path, tuple(masks), (*messages, *notices_of_run(run)), run, origins_of(dataset))


_MOVED = "moved"
_SAME = 1e-6
_NO_SLICE = (
    "contour could not be placed: the image has no slice there",
    "contours could not be placed: the image has no slice there",
)
_BEYOND = (
    "contour could not be placed: it is beyond the image's slices",
    "contours could not be placed: they are beyond the image's slices",
)
_OUTSIDE = (
    "contour could not be placed: it is outside the image",
    "contours could not be placed: they are outside the image",
)
_REPEATED = (
    "contour occurs a second time in the file and was read once",
    "contours occur a second time in the file and were read once",
)
_ELSEWHERE = (
    "contour is off the slice that it refers to, and was placed on that slice",
    "contours are off the slices that they refer to, and were placed on those slices",
)


_CROSSING = (
    "contour overlaps another in part",
    "contours of one structure and slice overlap in part. The overlap is read as outside, like a hole: if it "
    "is inside, unite the contours in the program that drew them, and import again",
)


def _list_contours(words: tuple[str, str], contours: list[tuple[str, str]]) -> str:
    """Return a notice that lists contours by structure and rater, each with its number and position."""
    if len(contours) == 1:
        return f"1 {words[0]} ({', '.join(contours[0])})."
    by_owner: dict[str, list[str]] = {}
    for owner, contour in contours[:_LISTED]:
        by_owner.setdefault(owner, []).append(contour)
    listed = "; ".join(f"{owner}: {', '.join(some)}" for owner, some in by_owner.items())
    more = f"; and {len(contours) - _LISTED:,} more" if len(contours) > _LISTED else ""
    return f"{len(contours):,} {words[1]}. {listed}{more}."


def _slices_by_uid(volume: VolumeFile) -> dict[tuple[str, int | None], int]:
    """Map UIDs, and the frame (from 1) in a file of several frames, to slices."""
    if volume.frames:
        pairs = zip(volume.instances, volume.frames, strict=False)
        return {(uid, frame + 1): at for at, (uid, frame) in enumerate(pairs)}
    return {(uid, None): at for at, uid in enumerate(volume.instances) if uid}


def _referred_slice(contour: Any, slices: dict[tuple[str, int | None], int]) -> tuple[int | None, bool]:
    """Find the slice that a contour refers to, None unless it is exactly one, and whether it is missing."""
    slices_found: set[int | None] = set()
    for image in contour.get("ContourImageSequence") or ():
        uid = str(image.get("ReferencedSOPInstanceUID", ""))
        frames = image.get("ReferencedFrameNumber")
        single = isinstance(frames, (int, str)) and str(frames).isdigit()
        slices_found.add(slices.get((uid, None), slices.get((uid, int(str(frames)))) if single else None))
    is_missing = slices_found == {None} and bool(slices)
    return slices_found.pop() if len(slices_found) == 1 else None, is_missing


def _planes(
    path: Path, contours: list[Any], volume: VolumeFile, left_out: Counter[str],
    unplaced: dict[tuple[str, str], list[tuple[str, str]]], owner: str, watch: Watch,
) -> Planes:  # fmt: skip
    """Return the filled contours of a structure on each slice."""
    grid, slices = volume.grid, _slices_by_uid(volume)
    tolerance = _OFF_SLICE * grid.spacing[0]
    ends = np.array(grid.shape[:0:-1]) - 0.5
    placed: dict[int, list[_Placed]] = {}
    read: set[bytes] = set()
    for number, contour in enumerate(contours, 1):
        watch(number / len(contours), "reading contours")
        kind = str(contour.get("ContourGeometricType") or "")
        if kind not in _CLOSED:
            left_out[_KINDS.get(kind, "contours of an unknown kind")] += 1
            continue
        points = _contour_numbers(contour)
        if not len(points) or len(points) % 3 or not np.isfinite(points).all():
            raise InputError("has a contour whose numbers are not points", file=path, field="ContourData")
        points = points.reshape(-1, 3)
        heights = grid.heights(points)
        middle = float(heights.mean())
        title = f"contour {number} at {float(grid.levels(points).mean()):.2f} mm"
        if kind == "CLOSED_PLANAR" and points.tobytes() in read:  # twice by the even-odd rule is nothing
            unplaced.setdefault(_REPEATED, []).append((owner, title))
            continue
        read.add(points.tobytes())
        at_slice, is_missing = _referred_slice(contour, slices)
        is_referred = at_slice is not None
        if at_slice is None:
            at_slice = grid.slice_at(middle)
        off = math.inf if at_slice is None else middle - float(grid.positions[at_slice])
        if is_missing and abs(off) > tolerance:
            at_slice = None
        if np.abs(heights - middle).max() > grid.spacing[0] / 2:
            left_out["contours across the slices"] += 1
        elif at_slice is None:
            beyond = middle < grid.bounds[0, 0] or middle > grid.bounds[-1, 1]
            unplaced.setdefault(_BEYOND if beyond else _NO_SLICE, []).append((owner, title))
        else:
            low, high = grid.bounds[at_slice]
            room = abs(off) * _SAME
            is_off = is_referred and not low - room <= middle <= high + room
            outline = np.rint(grid.on_slice(points, at_slice)[:, ::-1] * _FINEST) / _FINEST
            if (outline.max(axis=0) < -0.5).any() or (outline.min(axis=0) > ends).any():
                unplaced.setdefault(_OUTSIDE, []).append((owner, title))
            is_xor = kind != "CLOSED_PLANAR"
            placed.setdefault(at_slice, []).append(_Placed(title, off, outline, is_off, is_referred, is_xor))
    planes = {}
    for at_slice, drawn in placed.items():
        # Contours of two planes on one slice would cut holes into each other: only those of the nearer plane
        # are kept.
        nearest = min((0.0 if contour.is_referred else contour.off for contour in drawn), key=abs)
        kept = []
        for contour in drawn:
            if not contour.is_referred and abs(contour.off - nearest) > tolerance:
                unplaced.setdefault(_NO_SLICE, []).append((owner, contour.title))
                continue
            kept.append(contour)
            if contour.is_off:
                text = f"{contour.title}, {abs(contour.off):.2f} mm from the slice"
                unplaced.setdefault(_ELSEWHERE, []).append((owner, text))
            else:
                left_out[_MOVED] += abs(contour.off) > tolerance
        united = [contour for contour in kept if not contour.is_xor]
        for at in find_crossing([contour.outline for contour in united], grid.shape[1:]):
            unplaced.setdefault(_CROSSING, []).append((owner, united[at].title))
        drawing = draw_outlines([contour.outline for contour in kept], grid.shape[1:])
        if drawing.pixels:
            planes[at_slice] = drawing
    return planes


def _around(planes: Planes) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the first voxel and the shape of the box around a structure."""
    drawn = [(at_slice, drawing.box) for at_slice, drawing in planes.items() if drawing.pixels]
    boxes = [((z, y, x), (1, rows, columns)) for z, (y, x, rows, columns) in drawn]
    return box_around(boxes) if boxes else ((0, 0, 0), (0, 0, 0))


def _fill_planes(planes: Planes, watch: Watch) -> tuple[tuple[int, int, int], NDArray[np.bool_]]:
    low, shape = _around(planes)
    filled = np.zeros(shape, dtype=np.bool_)
    for at, (at_slice, drawing) in enumerate(planes.items()):
        watch(at / len(planes), "filling contours")
        if (patch := drawing.draw()) is not None:
            top, left, mask = patch[0] - low[1], patch[1] - low[2], patch[2]
            filled[at_slice - low[0], top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    return crop(filled, low)


_CLASS = "1.2.840.10008.5.1.4.1.1.481.3"
_STUDY_CLASS = "1.2.840.10008.3.1.2.3.1"
_OF_PATIENT = (
    "SpecificCharacterSet", "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID",
    "StudyDate", "StudyTime", "StudyID", "AccessionNumber", "ReferringPhysicianName", "StudyDescription",
    "FrameOfReferenceUID", "PositionReferenceIndicator",
)  # fmt: skip
_LONGEST_NAME = 64
_Slice = tuple[Any, int | None]
"""Header of a file, and number of the frame from 1; None for a file with one image."""
_PLACES = 0x30060050
_SERIES_NUMBER = 910


def write_rtstruct(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write each mask as a structure. See `export.write_masks`."""
    source = require_source(path, source, grid)
    require_masks(path, structures, "DICOM SEG or NIfTI")
    if not source.grid.calibrated:
        raise InputError("cannot be written: its series has no position; write NIfTI", file=path)
    file = path if path.suffix.casefold() == ".dcm" else path.with_name(path.name + ".dcm")
    heads = [read_dataset(file_path, pixels=False) for file_path in source.files]
    slices = _slices(heads, source)
    dataset = _structure_set(structures, grid, heads, slices, description or "Raterscope")
    if deidentify is not None:
        dataset = deidentify_dataset(dataset, deidentify)
    with write_together([file]) as (draft,):
        dataset.save_as(draft, enforce_file_format=True)
    return [file]


def _structure_set(
    structures: Sequence[Structure],
    grid: Grid,
    heads: Sequence[Any],
    slices: Sequence[_Slice],
    description: str,
) -> Any:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ImplicitVRLittleEndian, generate_uid

    first, now = heads[0], datetime.now()
    dataset = Dataset()
    for keyword in _OF_PATIENT:
        if keyword in first:
            dataset[keyword] = first[keyword]
        elif keyword not in ("SpecificCharacterSet", "StudyDescription"):
            setattr(dataset, keyword, None)
    dataset.FrameOfReferenceUID, dataset.StudyInstanceUID = missing_uids(first)
    dataset.SOPClassUID, dataset.SOPInstanceUID = _CLASS, generate_uid(prefix=None)
    dataset.SeriesInstanceUID, dataset.SeriesNumber = generate_uid(prefix=None), _SERIES_NUMBER
    dataset.Modality, dataset.OperatorsName, dataset.InstanceNumber = "RTSTRUCT", None, 1
    dataset.Manufacturer = dataset.ManufacturerModelName = "Raterscope"
    dataset.SoftwareVersions = __version__
    dataset.SeriesDescription = dataset.StructureSetDescription = description[:_LONGEST_NAME]
    dataset.StructureSetLabel = "Raterscope"
    dataset.StructureSetDate, dataset.StructureSetTime = now.strftime("%Y%m%d"), now.strftime("%H%M%S")
    dataset.ApprovalStatus = "UNAPPROVED"
    dataset.ReferencedFrameOfReferenceSequence = [_reference(dataset, heads)]
    dataset.StructureSetROISequence, dataset.ROIContourSequence = [], []
    dataset.RTROIObservationsSequence = []
    for number, structure in enumerate(structures, start=1):
        _add(dataset, number, structure, grid, slices)
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = _CLASS
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    # Implicit, because explicit text elements are limited to 64 kB, and a contour may be longer.
    dataset.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian
    return dataset


def _slices(heads: Sequence[Any], source: VolumeFile) -> list[_Slice]:
    """Return the image of each slice: the only image of a file, or a frame."""
    if source.frames:
        return [(heads[0], frame + 1) for frame in source.frames]
    return [(head, None) for head in heads]


def _image(head: Any, frame: int | None = None) -> Any:
    from pydicom.dataset import Dataset

    image = Dataset()
    image.ReferencedSOPClassUID, image.ReferencedSOPInstanceUID = head.SOPClassUID, head.SOPInstanceUID
    if frame is not None:
        image.ReferencedFrameNumber = frame
    return image


def _reference(dataset: Any, heads: Sequence[Any]) -> Any:
    from pydicom.dataset import Dataset

    series, study, frame = Dataset(), Dataset(), Dataset()
    series.SeriesInstanceUID = heads[0].SeriesInstanceUID
    series.ContourImageSequence = [_image(head) for head in heads]
    study.ReferencedSOPClassUID, study.ReferencedSOPInstanceUID = _STUDY_CLASS, dataset.StudyInstanceUID
    study.RTReferencedSeriesSequence = [series]
    frame.FrameOfReferenceUID = dataset.FrameOfReferenceUID
    frame.RTReferencedStudySequence = [study]
    return frame


def _add(dataset: Any, number: int, structure: Structure, grid: Grid, slices: Sequence[_Slice]) -> None:
    from pydicom.dataset import Dataset

    roi, contours, observation = Dataset(), Dataset(), Dataset()
    roi.ROINumber, roi.ReferencedFrameOfReferenceUID = number, dataset.FrameOfReferenceUID
    roi.ROIName = plain(structure.title, _LONGEST_NAME).replace("\\", "/") or f"structure {number}"
    roi.ROIGenerationAlgorithm = "SEMIAUTOMATIC"
    contours.ROIDisplayColor = list(structure.shade)
    contours.ReferencedROINumber = number
    contours.ContourSequence = []
    for at in np.flatnonzero(structure.values.any(axis=(1, 2))).tolist():
        for outline in trace_outlines(np.asarray(structure.values[at], dtype=np.bool_)):
            contours.ContourSequence.append(_contour(outline, at, grid, slices[at]))
    observation.ObservationNumber = observation.ReferencedROINumber = number
    observation.RTROIInterpretedType, observation.ROIInterpreter = structure.coding.role, None
    add_codes(observation, structure.coding)
    dataset.StructureSetROISequence.append(roi)
    dataset.ROIContourSequence.append(contours)
    dataset.RTROIObservationsSequence.append(observation)


def _contour(outline: NDArray[np.float64], at: int, grid: Grid, image: _Slice) -> Any:
    from pydicom.dataelem import RawDataElement
    from pydicom.dataset import Dataset
    from pydicom.tag import Tag

    index = np.column_stack([np.full(len(outline), float(at)), outline[:, ::-1]])
    contour = Dataset()
    contour.ContourImageSequence = [_image(*image)]
    contour.ContourGeometricType = "CLOSED_PLANAR"
    contour.NumberOfContourPoints = len(outline)
    # As bytes, because pydicom would check each of perhaps a million numbers.
    text = "\\".join(f"{value:.4f}" for value in grid.to_patient(index).ravel().tolist())
    content = (text + " " * (len(text) % 2)).encode()
    contour[_PLACES] = RawDataElement(Tag(_PLACES), "DS", len(content), content, 0, True, True)
    return contour
