"""DICOM segmentations: binary, fractional and label maps, frame by frame."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope import __version__
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.coding import TISSUE, Code
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.collector import (
    describe_unknown,
    find_series_volume,
    image_of,
    make_mask,
    may_fit,
    missing_series_error,
    notices_of_patient,
    notices_of_run,
    origins_of,
    refuse_total,
    run_in_description,
)
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentify_dataset
from raterscope.app.formats.masks.naming import NO_NAMES, NameParts
from raterscope.app.formats.masks.terminology import (
    Structure,
    code_item,
    missing_uids,
    reference_errors,
    require_source,
    segment_coding,
)
from raterscope.app.formats.output_files import write_together
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.untrusted import check_shape, file_errors, text_of
from raterscope.app.formats.volumes.dicom_headers import read_dataset

_MAX_FRAMES = 200_000
_SAME = 1e-3
_UNEVEN = 0.05
_FLAT_TURN = 1e-4
_BESIDE = 0.5
"""Maximum in-plane distance of a frame from the image that it refers to, pixels."""

_UPRIGHT = 0.1
"""Maximum gantry tilt with which frames lie above each other, degrees."""
_LISTED = 10
"""Maximum number of positions listed in a notice."""


@dataclass(frozen=True)
class _Frame:
    segment: int | None
    position: NDArray[np.float64] | None
    turn: tuple[float, ...] | None
    spacing: tuple[float, float] | None
    between: float | None
    source: str | None
    """UID of the image on which it was drawn, if known."""


def read_dicom_seg(
    path: Path, volumes: tuple[VolumeFile, ...] = (), names: NameParts = NO_NAMES, watch: Watch = silent
) -> MaskTable:
    """Read each segment as a structure.

    The grid is that of the series on which the segments were drawn, if it is available and its slices match:
    by position or, for uneven slices, by the image that each frame refers to. Frames of slices that are
    missing from the series are skipped with a notice. A file that names no series belongs to the only one in
    its frame of reference. Otherwise the grid is computed from the frames' positions, and slices without a
    frame are empty. The annotator is the content's creator, otherwise the algorithm's name unless the segment
    is manual, otherwise the given name. Raises `InputError` for frames
    that are not one volume, tiles of a slide, and segments that were drawn on another series than the
    volumes, in another frame of reference, but fit one of them.
    """
    with file_errors(path), path.open("rb") as file:
        dataset = read_dataset(path, file, pixels=False)
        if "TotalPixelMatrixColumns" in dataset or str(
            dataset.get("DimensionOrganizationType", "")
        ).startswith("TILED"):
            raise InputError("has segments of tiles of a slide, which cannot be read", file=path)
        count, rows, columns = (int(dataset.get(name) or 0) for name in ("NumberOfFrames", "Rows", "Columns"))
        if count > _MAX_FRAMES:
            raise InputError(f"claims {count:,} frames; expected {_MAX_FRAMES:,} at most", file=path)
        check_shape(path, (max(count, 1), rows, columns))
        frames = _frames(dataset, max(count, 1))
        total = len(frames)
        sources = {frame.source for frame in frames if frame.source}
        volume = find_series_volume(volumes, _series(dataset), sources)
        frame = {str(dataset.get("FrameOfReferenceUID") or "")}
        alike = [other for other in volumes if may_fit(other, dataset, frame)]
        if volume is None and len(alike) == 1 and not (sources or _series(dataset)):
            volume = alike[0]
        available = volume or next(iter(alike or volumes), None)
        grid, slices = _grid(path, dataset, frames, (rows, columns), available)
        if available is not None and volume is None and not alike and grid is available.grid:
            raise missing_series_error(path, _series(dataset), volumes)
        item = next(iter(_series(dataset)), "") or names.item
        if volume is not None and volume.identifier and grid is volume.grid:
            item = image_of(volume, volumes, sources)
        notices = _missing_slices(frames, slices, grid)
        if available is not None and grid is available.grid:
            notices = (*notices_of_patient(dataset, available, frame), *notices)
        kept = [at for at, which in enumerate(slices) if which >= 0]
        frames, slices = [frames[at] for at in kept], [slices[at] for at in kept]
        refuse_total(path, len(frames) * rows * columns)
        if _kind(dataset) != "LABELMAP":
            chosen = _frames_by_segment(_numbers(dataset), frames)
            refuse_total(path, sum(_count_slices(some, slices) for some in chosen.values()) * rows * columns)
        watch(0.1, "decoding frames")
        pixels = _pixels(path, file, (total, rows, columns))
        pixels = pixels if len(kept) == total else pixels[kept]
        names = names._replace(item=item)
        table = _table(path, dataset, frames, pixels, grid, slices, names, part(watch, 0.5, 1.0))
        return replace(table, notices=(*notices, *table.notices))


def _frames(dataset: Any, count: int) -> list[_Frame]:
    shared = (dataset.get("SharedFunctionalGroupsSequence") or [None])[0]
    own = list(dataset.get("PerFrameFunctionalGroupsSequence") or ())
    if len(own) not in (0, count):
        raise ValueError("frames without a description")
    return [_frame(own[at] if own else None, shared) for at in range(count)]


def _frame(own: Any, shared: Any) -> _Frame:
    def group(name: str) -> Any:
        for source in (own, shared):
            sequence = source.get(name) if source is not None else None
            if sequence:
                return sequence[0]
        return {}

    position = group("PlanePositionSequence").get("ImagePositionPatient")
    turn = group("PlaneOrientationSequence").get("ImageOrientationPatient")
    measures = group("PixelMeasuresSequence")
    spacing = measures.get("PixelSpacing")
    between = measures.get("SpacingBetweenSlices") or measures.get("SliceThickness")
    segment = group("SegmentIdentificationSequence").get("ReferencedSegmentNumber")
    return _Frame(
        None if segment is None else int(segment),
        None if not position else np.array(position, dtype=float),
        None if not turn else tuple(float(value) for value in turn),
        None if not spacing else (float(spacing[0]), float(spacing[1])),
        None if not between else float(between),
        _source(group("DerivationImageSequence")),
    )


def _source(derivation: Any) -> str | None:
    images = list(derivation.get("SourceImageSequence") or ())
    return str(images[0].get("ReferencedSOPInstanceUID", "")) if len(images) == 1 else None


def _grid(
    path: Path, dataset: Any, frames: list[_Frame], shape: tuple[int, int], volume: VolumeFile | None
) -> tuple[Grid, list[int]]:
    """Return the grid, and each frame's slice, -1 for slices that the series lacks."""
    first = frames[0]
    if first.position is None or first.turn is None or first.spacing is None:
        if any(frame.position is not None for frame in frames):
            raise InputError("has frames without a position; expected one for each", file=path)
        segments = [frame.segment for frame in frames]
        if len(set(segments)) < len(segments):
            raise InputError("has frames without a position; expected one for each", file=path)
        return Grid.plain((1, *shape)), [0] * len(frames)
    for frame in frames:
        if frame.position is None or frame.turn is None or frame.spacing is None:
            raise InputError("has frames without a position; expected one for each", file=path)
        if not (np.allclose(frame.turn, first.turn, atol=_FLAT_TURN)
                and np.allclose(frame.spacing, first.spacing, rtol=_SAME)):  # fmt: skip
            raise InputError("has frames that are not parallel; expected slices of one volume", file=path)
    if volume is not None:
        slices = _slices_by_position(frames, shape, volume)
        if slices is None or min(slices) < 0:
            present = slices if volume.identifier in _series(dataset) else None
            slices = _referred_slices(frames, shape, volume) or present
        if slices is not None and max(slices) >= 0:
            return volume.grid, slices
    return _own_grid(path, frames, shape)


def _has_same_rows(first: _Frame, shape: tuple[int, int], volume: VolumeFile) -> bool:
    """Return whether frames have the rows and columns of a volume."""
    assert first.turn is not None
    assert first.spacing is not None
    across, down = np.array(first.turn[:3]) * first.spacing[1], np.array(first.turn[3:]) * first.spacing[0]
    plane = np.column_stack([across, down])
    return volume.grid.shape[1:] == shape and np.allclose(
        volume.grid.matrix[:3, :2], plane, atol=_UNEVEN / max(shape)
    )


def _slices_by_position(frames: list[_Frame], shape: tuple[int, int], volume: VolumeFile) -> list[int] | None:
    """Find each frame's slice by its position, -1 where it is missing; None if a frame is between slices.

    A slice is missing if the volume does not extend there, or if its frame refers to a missing image.
    """
    if not _has_same_rows(frames[0], shape, volume):
        return None
    positions = np.stack([frame.position for frame in frames if frame.position is not None])
    grid = volume.grid
    present, slices = set(volume.instances), []
    for frame, position, height in zip(frames, positions, grid.heights(positions).tolist(), strict=True):
        at = grid.slice_at(height)
        if at is not None and abs(height - float(grid.positions[at])) > _UNEVEN * grid.spacing[0]:
            if not frame.source or frame.source in present:
                return None
            at = None
        if at is not None and np.abs(grid.on_slice(position[None], at)[0]).max() > _UNEVEN:
            return None
        slices.append(-1 if at is None else at)
    return slices


def _missing_slices(frames: list[_Frame], slices: list[int], grid: Grid) -> tuple[str, ...]:
    """Return a notice that lists the positions of frames whose slices are missing."""
    lost = [frame.position for frame, at in zip(frames, slices, strict=True) if at < 0]
    if not lost:
        return ()
    levels = np.unique(np.round(grid.levels(np.array(lost)), 2)).tolist()
    text = ", ".join(f"{level:.2f}" for level in levels[:_LISTED])
    more = f" and {len(levels) - _LISTED:,} more" if len(levels) > _LISTED else ""
    noun = "frame" if len(lost) == 1 else "frames"
    return (f"{len(lost):,} {noun} could not be placed: the image has no slice there (at {text} mm{more}).",)


def _referred_slices(frames: list[_Frame], shape: tuple[int, int], volume: VolumeFile) -> list[int] | None:
    """Find each frame's slice by the image that it refers to; None unless all match.

    Programs that support only one slice distance write frames that are displaced from their images along the
    slices' normal, and for tilted slices also within the plane.
    """
    number = {instance: at for at, instance in enumerate(volume.instances)}
    slices = [number.get(frame.source or "", -1) for frame in frames]
    if min(slices) < 0 or not _has_same_rows(frames[0], shape, volume):
        return None
    grid = volume.grid
    for frame, at in zip(frames, slices, strict=True):
        assert frame.position is not None
        off = np.abs(grid.on_slice(frame.position[None], at)).max()
        if grid.tilt <= _UPRIGHT and off > _BESIDE:
            return None
    return slices


def _own_grid(path: Path, frames: list[_Frame], shape: tuple[int, int]) -> tuple[Grid, list[int]]:
    first = frames[0]
    assert first.position is not None
    assert first.turn is not None
    assert first.spacing is not None
    across, down = np.array(first.turn[:3]), np.array(first.turn[3:])
    normal = np.cross(across, down)
    positions = np.stack([frame.position for frame in frames if frame.position is not None])
    along = positions @ normal
    different = np.unique(np.round(along / _SAME).astype(np.int64)) * _SAME
    steps = np.diff(different)
    # The smallest step, because a file that omits empty slices also has larger steps.
    step = float(steps.min()) if len(steps) else first.between or 1.0
    if first.between and len(steps) and np.allclose(steps / first.between, np.rint(steps / first.between),
                                                   atol=_UNEVEN):  # fmt: skip
        step = first.between
    number = (along - along.min()) / step
    slices = np.rint(number).astype(int)
    lowest = int(np.argmin(along))
    direction = normal * step
    if len(steps):
        highest = int(np.argmax(along))
        direction = (positions[highest] - positions[lowest]) / int(slices.max())
    off = np.abs(positions - (positions[lowest] + slices[:, None] * direction)).max()
    if np.abs(number - slices).max() > _UNEVEN or off > _UNEVEN * min(step, *first.spacing) + _SAME:
        raise InputError("has frames at uneven distances; add the folder of their series first", file=path)
    grid_shape = (int(slices.max()) + 1, *shape)
    check_shape(path, grid_shape)
    matrix = np.column_stack(
        [across * first.spacing[1], down * first.spacing[0], direction, positions[lowest]]
    )
    return Grid.from_matrix(grid_shape, matrix), slices.tolist()


def _series(dataset: Any) -> list[str]:
    return [str(item.get("SeriesInstanceUID", "")) for item in dataset.get("ReferencedSeriesSequence") or ()]


def _pixels(path: Path, file: BinaryIO, shape: tuple[int, int, int]) -> NDArray[Any]:
    """Decode the frames; bits become one byte each."""
    dataset = read_dataset(path, file, pixels=True)
    if not dataset.file_meta.TransferSyntaxUID.is_compressed:
        bits = int(dataset.BitsAllocated)
        if len(dataset.PixelData) * 8 < np.prod(shape, dtype=object) * bits:
            raise InputError("is cut short: frames are missing", file=path)
    return np.asarray(dataset.pixel_array).reshape(shape)


def _kind(dataset: Any) -> str:
    return str(dataset.get("SegmentationType", "BINARY"))


def _numbers(dataset: Any) -> list[int]:
    """Return the numbers of the segments, without the background of a label map."""
    numbers = [int(segment.SegmentNumber) for segment in dataset.SegmentSequence]
    if _kind(dataset) == "LABELMAP":
        return [number for number in numbers if number not in (0, dataset.get("PixelPaddingValue"))]
    return numbers


def _frames_by_segment(numbers: list[int], frames: list[_Frame]) -> dict[int, list[int]]:
    """Return the frames of each segment; a frame without a segment belongs to all."""
    frames_of: dict[int, list[int]] = {number: [] for number in numbers}
    for at, frame in enumerate(frames):
        for number in frames_of if frame.segment is None else [frame.segment]:
            if number in frames_of:
                frames_of[number].append(at)
    return frames_of


def _frames_by_label(numbers: list[int], pixels: NDArray[Any]) -> dict[int, list[int]]:
    """Return the frames of a label map on which each segment occurs."""
    frames_of: dict[int, list[int]] = {number: [] for number in numbers}
    for at, plane in enumerate(pixels):
        for number in np.unique(plane).tolist():
            if number in frames_of:
                frames_of[number].append(at)
    return frames_of


def _count_slices(chosen: list[int], slices: list[int]) -> int:
    """Count the slices from the first to the last of some frames."""
    return max(slices[at] for at in chosen) - min(slices[at] for at in chosen) + 1 if chosen else 0


def _table(
    path: Path, dataset: Any, frames: list[_Frame], pixels: NDArray[Any], grid: Grid, slices: list[int],
    names: NameParts, watch: Watch,
) -> MaskTable:  # fmt: skip
    kind, numbers = _kind(dataset), _numbers(dataset)
    if len(set(numbers)) < len(numbers):
        raise InputError("has several segments of one number", file=path, field="SegmentNumber")
    creator = text_of(str(dataset.get("ContentCreatorName") or "").replace("^", " ").strip())
    largest = float(dataset.get("MaximumFractionalValue") or 255)
    frames_of = (
        _frames_by_label(numbers, pixels) if kind == "LABELMAP" else _frames_by_segment(numbers, frames)
    )
    total = sum(_count_slices(some, slices) for some in frames_of.values())
    refuse_total(path, total * grid.shape[1] * grid.shape[2])
    masks: list[RaterMask] = []
    for order, segment in enumerate(dataset.SegmentSequence):
        watch(order / len(dataset.SegmentSequence), "reading segments")
        number = int(segment.SegmentNumber)
        if number not in frames_of:
            continue
        label = text_of(str(segment.get("SegmentLabel") or "")) or f"segment {number}"
        chosen = frames_of[number]
        low = min((slices[at] for at in chosen), default=0)
        values: NDArray[Any] = np.zeros(
            (_count_slices(chosen, slices), *grid.shape[1:]),
            dtype=np.float32 if kind == "FRACTIONAL" else np.bool_,
        )
        for at in chosen:
            plane = pixels[at]
            if kind == "FRACTIONAL":
                shares = np.clip(plane.astype(np.float32) / np.float32(largest), 0.0, 1.0)
            else:
                shares = plane == number if kind == "LABELMAP" else plane != 0
            values[slices[at] - low] = np.maximum(values[slices[at] - low], shares)
        algorithm = text_of(str(segment.get("SegmentAlgorithmName") or ""))
        algorithm_type = str(segment.get("SegmentAlgorithmType", ""))
        annotator = creator or ("" if algorithm_type == "MANUAL" else algorithm) or names.annotator
        coding = segment_coding(segment)
        masks.append(make_mask(annotator, names.item or None, label, grid, values, (low, 0, 0), coding))
    run = run_in_description(dataset)
    notices = (*_unknown_segments(dataset, frames, pixels), *notices_of_run(run))
    return MaskTable(path, tuple(masks), notices, run, origins_of(dataset))


def _unknown_segments(dataset: Any, frames: list[_Frame], pixels: NDArray[Any]) -> Iterator[str]:
    """Name segments of frames or pixels that the file does not describe."""
    known = {int(segment.SegmentNumber) for segment in dataset.SegmentSequence}
    if _kind(dataset) == "LABELMAP":
        used = set(np.unique(pixels).tolist()) - {0, dataset.get("PixelPaddingValue")}
    else:
        used = {frame.segment for frame in frames if frame.segment is not None}
    if used - known:
        yield describe_unknown("segment", used - known)


_STEPS = 255
_LONGEST_LABEL = 64
_SERIES_NUMBER = 900
_REQUIRED = (
    "PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID", "StudyDate",
    "StudyTime", "ReferringPhysicianName",
)  # fmt: skip


def write_dicom_seg(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write masks as a binary segmentation, or probabilities as a fractional segmentation, accurate to 1/510.

    If there are both, each kind has its own file. Segments may overlap; slices without a segment have no
    frame. See `export.write_masks`.
    """
    source = require_source(path, source, grid)
    masks = [structure for structure in structures if structure.values.dtype == np.bool_]
    maps = [structure for structure in structures if structure.values.dtype != np.bool_]
    for structure in maps:
        low, high = float(structure.values.min()), float(structure.values.max())
        if not (low >= 0.0 and high <= 1.0):
            raise InputError(
                f"{plain(structure.name)} has values from {low:g} to {high:g}; expected probabilities,"
                " or NIfTI",
                file=path,
            )
    file = path if path.suffix.casefold() == ".dcm" else path.with_name(path.name + ".dcm")
    files, kinds = [file], [masks or maps]
    if masks and maps:
        files, kinds = [file, file.with_name(f"{file.stem}_probability.dcm")], [masks, maps]
    heads = _complete_heads([read_dataset(file_path, pixels=False) for file_path in source.files], grid)
    with write_together(files) as drafts:
        for number, (draft, some) in enumerate(zip(drafts, kinds, strict=True)):
            dataset = _segmentation(path, heads, some, number, grid, description or "Raterscope")
            if deidentify is not None:
                dataset = deidentify_dataset(dataset, deidentify)
            dataset.save_as(draft, enforce_file_format=True)
    return files


def make_segmentation(
    path: Path, masks: Sequence[Structure], grid: Grid, source: VolumeFile | None, description: str
) -> tuple[list[Any], Any]:
    """Make a binary segmentation; return the headers of its slices, and the segmentation."""
    source = require_source(path, source, grid)
    heads = _complete_heads([read_dataset(file_path, pixels=False) for file_path in source.files], grid)
    return heads, _segmentation(path, heads, masks, 0, grid, description or "Raterscope")


def _complete_heads(heads: list[Any], grid: Grid) -> list[Any]:
    """Add attributes that the standard requires and scanners omit to the headers of the slices."""
    frame, study = missing_uids(heads[0])
    for head in heads:
        for keyword in _REQUIRED:
            if keyword not in head:
                setattr(head, keyword, None)
        if not head.get("SliceThickness"):
            head.SliceThickness = f"{grid.spacing[0]:.6g}"
        if not head.get("SpecificCharacterSet"):
            head.pop("SpecificCharacterSet", None)
        head.FrameOfReferenceUID, head.StudyInstanceUID = frame, study
    return heads


def _positions(grid: Grid) -> list[Any]:
    import highdicom

    return [
        highdicom.PlanePositionSequence(
            highdicom.CoordinateSystemNames.PATIENT, grid.to_patient(np.array([at, 0.0, 0.0])).tolist()
        )
        for at in range(grid.shape[0])
    ]


def _describe_segment(number: int, structure: Structure, method: Any) -> Any:
    """Describe a segment; an unknown structure is coded as tissue."""
    import highdicom
    from pydicom.sr.coding import Code as Concept

    def concept(code: Code) -> Any:
        return Concept(code.value, code.scheme, code.meaning)

    coding = structure.coding
    described = highdicom.seg.SegmentDescription(
        segment_number=number,
        segment_label=plain(structure.title, _LONGEST_LABEL).replace("\\", "/") or f"structure {number}",
        segmented_property_category=concept(coding.category or TISSUE),
        segmented_property_type=concept(coding.type or TISSUE),
        algorithm_type=highdicom.seg.SegmentAlgorithmTypeValues.SEMIAUTOMATIC,
        algorithm_identification=method,
        anatomic_regions=None if coding.region is None else [concept(coding.region)],
        display_color=highdicom.color.CIELabColor.from_rgb(*structure.shade),
    )
    if coding.modifier is not None:
        kind = described.SegmentedPropertyTypeCodeSequence[0]
        kind.SegmentedPropertyTypeModifierCodeSequence = [code_item(coding.modifier)]
    return described


def _segmentation(
    path: Path,
    heads: Sequence[Any],
    structures: Sequence[Structure],
    number: int,
    grid: Grid,
    description: str,
) -> Any:
    import highdicom
    from pydicom.sr.codedict import codes
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    method = highdicom.AlgorithmIdentificationSequence(
        name=description[:_LONGEST_LABEL], family=codes.cid7162.ClusterAnalysis, version=__version__
    )
    segments = [_describe_segment(at, structure, method) for at, structure in enumerate(structures, start=1)]
    binary = structures[0].values.dtype == np.bool_
    kinds = highdicom.seg.SegmentationTypeValues
    with warnings.catch_warnings(), reference_errors(path, "a segmentation"):
        warnings.simplefilter("ignore")  # about oddities of the series, which were reported when it was read
        segmentation = highdicom.seg.Segmentation(
            source_images=list(heads),
            pixel_array=np.stack([structure.values for structure in structures], axis=-1),
            segmentation_type=kinds.BINARY if binary else kinds.FRACTIONAL,
            segment_descriptions=segments,
            series_instance_uid=generate_uid(prefix=None),
            series_number=_SERIES_NUMBER + number,
            sop_instance_uid=generate_uid(prefix=None),
            instance_number=1,
            manufacturer="Raterscope",
            manufacturer_model_name="Raterscope",
            software_versions=__version__,
            device_serial_number="0",
            max_fractional_value=_STEPS,
            transfer_syntax_uid=ExplicitVRLittleEndian,
            content_label="CONSENSUS",
            series_description=description[:_LONGEST_LABEL],
            content_description=description[:_LONGEST_LABEL],
            # With all slices in one file their order may differ from the grid's.
            plane_positions=None if len(heads) == grid.shape[0] else _positions(grid),
            omit_empty_frames=any(bool(structure.values.any()) for structure in structures),
        )
    _measure_frames(segmentation, heads)
    return segmentation


def _measure_frames(segmentation: Any, heads: Sequence[Any]) -> None:
    """Set the thickness of each frame's slice if slices differ; highdicom uses that of the first."""
    names = ("SliceThickness", "SpacingBetweenSlices")
    stated = {str(head.SOPInstanceUID): [head.get(name) for name in names] for head in heads}
    if all(values == stated[str(heads[0].SOPInstanceUID)] for values in stated.values()):
        return
    shared = segmentation.SharedFunctionalGroupsSequence[0]
    measures = shared.PixelMeasuresSequence
    del shared.PixelMeasuresSequence
    for frame in segmentation.PerFrameFunctionalGroupsSequence:
        frame.PixelMeasuresSequence = copy.deepcopy(measures)
        source = frame.DerivationImageSequence[0].SourceImageSequence[0]
        for name, value in zip(names, stated[str(source.ReferencedSOPInstanceUID)], strict=True):
            frame.PixelMeasuresSequence[0].pop(name, None)
            if value is not None:
                setattr(frame.PixelMeasuresSequence[0], name, value)
