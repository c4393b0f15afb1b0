"""DICOM RT structure sets: contours in millimetres on the slices of a series.

Contours of one structure on one slice are combined by even-odd, so that one within another is a hole.

The contours that are written run along the edges of the voxels. Filled by even-odd at voxels' centres they
give the same masks again: holes and separate parts are contours of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.coding import Coding
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.collector import cropped, refuse_total, series_among, wanted
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentified
from raterscope.app.formats.masks.naming import NOTHING, Named, by_pattern
from raterscope.app.formats.masks.shapes import Drawing, outlined, outlines
from raterscope.app.formats.masks.terminology import (
    Structure,
    add_codes,
    missing_uids,
    refuse_maps,
    required_source,
    roi_coding,
)
from raterscope.app.formats.output_files import write_together
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import file_errors, text_of
from raterscope.app.formats.volumes.dicom_headers import read_dataset

__all__ = [
    "read_rtstruct",
    "write_rtstruct",
]


Planes = dict[int, Drawing]
"""What a structure's contours fill on each slice."""

_CLOSED = ("CLOSED_PLANAR", "CLOSEDPLANAR_XOR")
_KINDS = {"POINT": "points", "OPEN_PLANAR": "open contours", "OPEN_NONPLANAR": "open contours"}
_OFF_SLICE = 0.05
"""Of the nominal slice distance: a contour further than that from its slice lies between slices."""

_LISTED = 30
"""Contours that are named one by one in a notice."""

_FINEST = 128.0
"""To a pixel: decimals of a millimetre are cut in the file, and are not taken for more than that."""


def read_rtstruct(
    path: Path, volumes: tuple[VolumeFile, ...] = (), names: Named = NOTHING, naming: str | None = None,
    watch: Watch = silent,
) -> MaskTable:  # fmt: skip
    """Read each structure's contours as a mask on the series that they were drawn on.

    The annotator is what a pattern takes from the structure's name, else who interpreted the structure, else
    the operator of the file, else the one given.

    Raises
    ------
    InputError
        When the series is not at hand, and for a file without closed contours.
    """
    with file_errors(path):
        dataset = read_dataset(path, pixels=False)
        series, instances = _references(dataset)
        volume = series_among(volumes, series, instances)
        if volume is not None:
            return _read(path, dataset, volume, names, naming, watch)
        if len(volumes) != 1 or not _fits(dataset, volumes[0].grid):
            raise wanted(path, series, volumes)
        table = _read(path, dataset, volumes[0], names, naming, watch)
        said = (
            f"Refers to another series than {plain(volumes[0].name, 60)}, but every contour fits its slices."
        )
        return replace(table, notices=(said, *table.notices))


def _references(dataset: Any) -> tuple[list[str], set[str]]:
    """Give the UIDs of the series and slices that the contours refer to."""
    series: dict[str, None] = {}
    instances: set[str] = set()
    for frame in dataset.get("ReferencedFrameOfReferenceSequence") or ():
        for study in frame.get("RTReferencedStudySequence") or ():
            for one in study.get("RTReferencedSeriesSequence") or ():
                series[str(one.get("SeriesInstanceUID", ""))] = None
                instances.update(
                    str(image.get("ReferencedSOPInstanceUID", ""))
                    for image in one.get("ContourImageSequence") or ()
                )
    for roi in dataset.get("ROIContourSequence") or ():
        for contour in roi.get("ContourSequence") or ():
            instances.update(
                str(image.get("ReferencedSOPInstanceUID", ""))
                for image in contour.get("ContourImageSequence") or ()
            )
    return [uid for uid in series if uid], instances - {""}


def _places(contour: Any) -> NDArray[np.float64]:
    """Read the numbers of a contour; as bytes, for pydicom would look at each of them."""
    raw = contour.get_item("ContourData") if "ContourData" in contour else None
    if raw is not None and isinstance(raw.value, bytes):
        return np.array([float(value) for value in raw.value.rstrip(b" \0").split(b"\\")])
    return np.array([float(value) for value in contour.get("ContourData") or ()])


def _fits(dataset: Any, grid: Grid) -> bool:
    """Tell whether every closed contour lies on a slice and within it."""
    ends = np.array(grid.shape[1:]) - 0.49
    for roi in dataset.get("ROIContourSequence") or ():
        for contour in roi.get("ContourSequence") or ():
            if str(contour.get("ContourGeometricType") or "") in _CLOSED:
                places = _places(contour)
                if not len(places) or len(places) % 3 or not np.isfinite(places).all():
                    return False
                heights = grid.heights(places.reshape(-1, 3))
                which = grid.slice_at(float(heights.mean()))
                if which is None:
                    return False
                off = np.abs(heights - grid.positions[which]).max()
                index = grid.on_slice(places.reshape(-1, 3), which)
                if off > _OFF_SLICE * grid.spacing[0] or (index < -0.51).any() or (index > ends).any():
                    return False
    return True


def _read(
    path: Path, dataset: Any, volume: VolumeFile, names: Named, naming: str | None, watch: Watch
) -> MaskTable:
    left_out: Counter[str] = Counter()
    observed = {int(one.ReferencedROINumber): one for one in dataset.get("RTROIObservationsSequence") or ()}
    who = {number: text_of(str(one.get("ROIInterpreter") or "")) for number, one in observed.items()}
    operator = text_of(str(dataset.get("OperatorsName") or "").replace("^", " "))
    titles = {
        int(one.ROINumber): text_of(str(one.get("ROIName") or ""))
        for one in dataset.get("StructureSetROISequence") or ()
    }
    unplaced: dict[tuple[str, str], list[str]] = {}
    rois = list(dataset.get("ROIContourSequence") or ())
    drawn: list[tuple[str | None, str, Coding, Planes]] = []
    for at, roi in enumerate(rois):
        number = int(roi.ReferencedROINumber)
        contours = list(roi.get("ContourSequence") or ())
        title = titles.get(number) or f"structure {number}"
        taken = (by_pattern(title, naming) if naming else None) or NOTHING
        annotator = taken.annotator or who.get(number, "").replace("^", " ") or operator or names.annotator
        structure = taken.structure or title
        whose = plain(f"{structure} by {annotator}" if annotator else structure)
        step = part(watch, 0.5 * at / len(rois), 0.5 * (at + 1) / len(rois))
        planes = _planes(path, contours, volume, left_out, unplaced, whose, step)
        if planes is not None:
            drawn.append((annotator, structure, roi_coding(roi, observed.get(number)), planes))
    refuse_total(path, sum(math.prod(_around(planes)[1]) for *_, planes in drawn))
    found = []
    item = names.item or volume.identifier or volume.name
    for at, (annotator, structure, coding, planes) in enumerate(drawn):
        step = part(watch, 0.5 + 0.5 * at / len(drawn), 0.5 + 0.5 * (at + 1) / len(drawn))
        origin, mask = _filled(planes, step)
        found.append(RaterMask(annotator, item, structure, volume.grid, origin, mask, coding))
    if not found:
        reason = f" ({', '.join(f'{what} {n:,}' for what, n in left_out.items())})" if left_out else ""
        raise InputError(f"has no closed contours on {plain(volume.name, 60)}{reason}", file=path)
    moved = left_out.pop(_MOVED, 0)
    said = []
    if moved:
        words = (
            "contour lies between slices and was" if moved == 1 else "contours lie between slices and were"
        )
        said.append(f"{moved:,} {words} taken to the nearest.")
    said += [_listed(what, contours) for what, contours in unplaced.items()]
    if left_out:
        said.append(f"Left out: {', '.join(f'{what} {n:,}' for what, n in left_out.items())}.")
    return MaskTable(path, tuple(found), tuple(said))


_MOVED = "moved"
_SAME = 1e-6
_NO_SLICE = (
    "contour could not be placed: the image has no slice there",
    "contours could not be placed: the image has no slice there",
)
_BEYOND = (
    "contour could not be placed: it lies beyond the image's slices",
    "contours could not be placed: they lie beyond the image's slices",
)
_ELSEWHERE = (
    "contour lies off the slice that it refers to, and was placed on that slice",
    "contours lie off the slices that they refer to, and were placed on those slices",
)


def _listed(what: tuple[str, str], contours: list[str]) -> str:
    """Name the contours of a notice, each with structure, rater, number and position."""
    more = f"; and {len(contours) - _LISTED:,} more" if len(contours) > _LISTED else ""
    return f"{len(contours):,} {what[len(contours) > 1]} ({'; '.join(contours[:_LISTED])}{more})."


def _slices_by_uid(volume: VolumeFile) -> dict[tuple[str, int | None], int]:
    """Give each slice by its UID and, in a file of several frames, by the frame (from 1)."""
    if volume.frames:
        pairs = zip(volume.instances, volume.frames, strict=False)
        return {(uid, frame + 1): at for at, (uid, frame) in enumerate(pairs)}
    return {(uid, None): at for at, uid in enumerate(volume.instances) if uid}


def _referred_slice(contour: Any, slices: dict[tuple[str, int | None], int]) -> int | None:
    """Find the one slice that a contour refers to."""
    found: set[int | None] = set()
    for image in contour.get("ContourImageSequence") or ():
        uid = str(image.get("ReferencedSOPInstanceUID", ""))
        frames = image.get("ReferencedFrameNumber")
        single = isinstance(frames, (int, str)) and str(frames).isdigit()
        found.add(slices.get((uid, None), slices.get((uid, int(str(frames)))) if single else None))
    return found.pop() if len(found) == 1 else None


def _planes(
    path: Path, contours: list[Any], volume: VolumeFile, left_out: Counter[str],
    unplaced: dict[tuple[str, str], list[str]], whose: str, watch: Watch,
) -> Planes | None:  # fmt: skip
    """Give what a structure's contours fill on each slice; None where it has no closed ones."""
    grid, slices = volume.grid, _slices_by_uid(volume)
    planes: dict[int, list[NDArray[np.float64]]] = {}
    closed = 0
    for number, contour in enumerate(contours, 1):
        watch(number / len(contours), "reading contours")
        kind = str(contour.get("ContourGeometricType") or "")
        if kind not in _CLOSED:
            left_out[_KINDS.get(kind, "contours of an unknown kind")] += 1
            continue
        places = _places(contour)
        if not len(places) or len(places) % 3 or not np.isfinite(places).all():
            raise InputError("has a contour whose places are no points", file=path, field="ContourData")
        closed += 1
        places = places.reshape(-1, 3)
        heights = grid.heights(places)
        middle = float(heights.mean())
        where = f"{whose}, contour {number} at {float(grid.levels(places).mean()):.2f} mm"
        which = _referred_slice(contour, slices)
        referred = which is not None
        if which is None:
            which = grid.slice_at(middle)
        if np.abs(heights - middle).max() > grid.spacing[0] / 2:
            left_out["contours across the slices"] += 1
        elif which is None:
            beyond = middle < grid.bounds[0, 0] or middle > grid.bounds[-1, 1]
            unplaced.setdefault(_BEYOND if beyond else _NO_SLICE, []).append(where)
        else:
            off = abs(middle - float(grid.positions[which]))
            low, high = grid.bounds[which]
            if referred and not low - off * _SAME <= middle <= high + off * _SAME:
                unplaced.setdefault(_ELSEWHERE, []).append(f"{where}, {off:.2f} mm from the slice")
            else:
                left_out[_MOVED] += off > _OFF_SLICE * grid.spacing[0]
            outline = np.rint(grid.on_slice(places, which)[:, ::-1] * _FINEST) / _FINEST
            planes.setdefault(which, []).append(outline)
    if not closed:
        return None
    return {which: outlined(outlines, grid.shape[1:]) for which, outlines in planes.items()}


def _around(planes: Planes) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Give the first voxel and the shape of the box around a structure."""
    boxes = [(which, *one.box) for which, one in planes.items() if one.pixels]
    if not boxes:
        return (0, 0, 0), (0, 0, 0)
    low = np.min([box[:3] for box in boxes], axis=0).tolist()
    high = np.max([(z + 1, y + rows, x + columns) for z, y, x, rows, columns in boxes], axis=0).tolist()
    return (low[0], low[1], low[2]), (high[0] - low[0], high[1] - low[1], high[2] - low[2])


def _filled(planes: Planes, watch: Watch) -> tuple[tuple[int, int, int], NDArray[np.bool_]]:
    low, shape = _around(planes)
    whole = np.zeros(shape, dtype=np.bool_)
    for at, (which, drawing) in enumerate(planes.items()):
        watch(at / len(planes), "filling contours")
        if (patch := drawing.draw()) is not None:
            top, left, mask = patch[0] - low[1], patch[1] - low[2], patch[2]
            whole[which - low[0], top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    return cropped(whole, low)


_CLASS = "1.2.840.10008.5.1.4.1.1.481.3"
_STUDY_CLASS = "1.2.840.10008.3.1.2.3.1"
_OF_PATIENT = (
    "SpecificCharacterSet", "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID",
    "StudyDate", "StudyTime", "StudyID", "AccessionNumber", "ReferringPhysicianName", "StudyDescription",
    "FrameOfReferenceUID", "PositionReferenceIndicator",
)  # fmt: skip
_LONGEST_NAME = 64
_Slice = tuple[Any, int | None]
"""A file's head, and which of its frames from 1; None for a file of one image."""
_PLACES = 0x30060050
_SERIES_NUMBER = 910


def write_rtstruct(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write each mask as a structure. See `export.write_masks`."""
    source = required_source(path, source, grid)
    refuse_maps(path, structures, "DICOM SEG or NIfTI")
    if not source.grid.calibrated:
        raise InputError("cannot be written: its series does not tell where it lies; write NIfTI", file=path)
    file = path if path.suffix.casefold() == ".dcm" else path.with_name(path.name + ".dcm")
    heads = [read_dataset(one, pixels=False) for one in source.files]
    slices = _slices(heads, source)
    dataset = _structure_set(structures, grid, heads, slices, description or "Raterscope")
    if deidentify is not None:
        dataset = deidentified(dataset, deidentify)
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

    from raterscope import __version__

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
    for number, one in enumerate(structures, start=1):
        _add(dataset, number, one, grid, slices)
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = _CLASS
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    # Implicit: in the explicit form an element of text ends at 64 kB, which a contour may exceed.
    dataset.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian
    return dataset


def _slices(heads: Sequence[Any], source: VolumeFile) -> list[_Slice]:
    """Give the image that each slice is: a file's only one, or a frame."""
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
        for outline in outlines(np.asarray(structure.values[at], dtype=np.bool_)):
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
    # As bytes: pydicom would look at each of what may be a million numbers.
    text = "\\".join(f"{value:.4f}" for value in grid.to_patient(index).ravel().tolist())
    places = (text + " " * (len(text) % 2)).encode()
    contour[_PLACES] = RawDataElement(Tag(_PLACES), "DS", len(places), places, 0, True, True)
    return contour
