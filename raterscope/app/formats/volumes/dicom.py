"""DICOM series as volumes: images are grouped and sorted along their normal; pixels are decoded and rescaled.

Codecs are C libraries that damaged files can crash. They run in separate processes, so that a crash becomes
an error message. A process decodes file after file until one of them is damaged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.records import Volume, VolumeFile
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.untrusted import check_shape, file_errors
from raterscope.app.formats.volumes.dicom_headers import (
    NATIVE,
    DicomFile,
    NoImageError,
    SliceHead,
    as_suv,
    read_dataset,
    read_dicom,
    read_heads,
)
from raterscope.app.workers import KeptWorkers, processors

_SAME_POSITION = 1e-3
"""Maximum distance along the normal of slices with the same position, mm."""

_EXACT = 1e-4
"""Maximum distance of a slice from its even position, mm; otherwise all slices keep their own positions."""

_UNEVEN = 0.01
"""Maximum distance of a slice from its even position, as a share of the mean slice distance; otherwise the
median distance is nominal.
"""

_SHIFTED = 0.1
"""Maximum in-plane distance of a slice from the line through the first and the last slice, mm."""

_NAMED = 3
_MAX_LISTED = 100_000


def find_own_series(file: DicomFile, sources: Sources, watch: Watch = silent) -> tuple[VolumeFile, ...]:
    """Find the volumes of the series of a DICOM file among the files in its folder.

    Raises `InputError` for a file that contains no image, or cannot be read.
    """
    path, heads = file.path, file.images()
    if heads[0].frames > 1 or not heads[0].series:
        return _volumes(heads, path)
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    more, _ = _read_many(others, watch, sources)
    own = [*heads, *(head for head in more if head.series == heads[0].series and head.frames == 1)]
    volumes = _volumes(own, path.parent)
    return tuple(volume for volume in volumes if path in volume.files) or volumes


def find_series(
    paths: Sequence[Path | DicomFile], folder: Path, watch: Watch = silent
) -> tuple[VolumeFile, ...]:
    """Find all volumes in DICOM files, the largest first; known headers are not read again.

    Files without an image are skipped. Unreadable files are reported in the first volume's notices. Raises
    `InputError` if no file contains an image, with the reason for the first.
    """
    heads, refused = _read_many(paths, watch)
    if not heads:
        if refused:
            raise refused[0]
        raise InputError("holds DICOM files without an image; expected a series of images", file=folder)
    volumes = _volumes(heads, folder)
    unreadable = [error for error in refused if not isinstance(error, NoImageError)]
    if unreadable:
        more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        text = f"Skipped: {unreadable[0]}".rstrip(".")
        volumes = (replace(volumes[0], notices=(*volumes[0].notices, f"{text}{more}.")), *volumes[1:])
    return volumes


def read_dicomdir(path: Path) -> tuple[Path, ...]:
    """Return the existing images that a DICOMDIR lists.

    Raises `InputError` for a DICOMDIR that names no image, or one outside its own folder.
    """
    with file_errors(path):
        data = read_dataset(path, pixels=False)
        files: list[Path] = []
        folder = path.parent.resolve()
        for record in (data.get("DirectoryRecordSequence") or ())[:_MAX_LISTED]:
            name = record.get("ReferencedFileID")
            if not name:
                continue
            parts = [name] if isinstance(name, str) else [str(part) for part in name]
            relative = PurePosixPath(*parts)
            if (
                relative.is_absolute()
                or ".." in relative.parts
                or any(set(part) & set("/\\:") for part in parts)
            ):
                raise InputError(f"names {plain(relative)}; expected files in its own folder", file=path)
            for spelled in (parts, [part.lower() for part in parts]):
                file = folder.joinpath(*spelled)
                if file.is_file():
                    if not file.resolve().is_relative_to(folder):
                        raise InputError(
                            f"names {plain(relative)}; expected files in its own folder", file=path
                        )
                    files.append(path.parent.joinpath(*spelled))
                    break
        if not files:
            raise InputError("lists no existing file; expected images in its folder", file=path)
        return tuple(files)


def _read_many(
    files: Sequence[Path | DicomFile], watch: Watch, sources: Sources | None = None
) -> tuple[list[SliceHead], list[InputError]]:
    heads: list[SliceHead] = []
    refused: list[InputError] = []
    for done, entry in enumerate(files):
        try:
            if isinstance(entry, Path):
                watch(done / len(files), f"reading {plain(entry.name)}")
                file = read_dicom(entry) if sources is None else sources.open(entry).dicom()
            else:
                file = entry
            heads += () if file is None else file.images()
        except InputError as error:
            refused.append(error)
    return heads, refused


def _volumes(heads: Iterable[SliceHead], folder: Path) -> tuple[VolumeFile, ...]:
    by_series: dict[str, list[SliceHead]] = {}
    for head in heads:
        by_series.setdefault(head.series or str(head.path), []).append(head)
    volumes = [file for series in by_series.values() for file in _split_series(series, folder)]
    return tuple(sorted(volumes, key=lambda file: -math.prod(file.grid.shape)))


def _split_series(heads: list[SliceHead], folder: Path) -> list[VolumeFile]:
    """Split a series into volumes by patient, modality and geometry, then by repeats at the same position."""
    kinds: list[list[SliceHead]] = []
    for head in heads:
        group = next((kind for kind in kinds if _is_compatible(head, kind[0])), None)
        if group is None:
            kinds.append([head])
        else:
            group.append(head)
    notices: list[str] = []
    if len(kinds) > 1:
        patients, modalities = ({getattr(h, of) for h in heads} for of in ("patient", "modality"))
        of = "different shapes, orientations or spacings"
        if len(patients) > 1:
            of = f"{len(patients)} patients"
        elif len(modalities) > 1:
            of = f"several modalities ({plain_names(sorted(modalities), 4, 16)})"
        notices.append(f"mixes images of {of}: it is {len(kinds)} volumes")
    turns: list[tuple[list[SliceHead], list[str]]] = []
    for kind in kinds:
        turns += _turns(kind)
    return [
        _file(
            turn, (*notices, *turn_notices), folder, f" ({number} of {len(turns)})" if len(turns) > 1 else ""
        )
        for number, (turn, turn_notices) in enumerate(turns, 1)
    ]


def _is_compatible(head: SliceHead, other: SliceHead) -> bool:
    if (head.patient, head.modality, head.shape, head.colour, head.position is None) != (
        other.patient,
        other.modality,
        other.shape,
        other.colour,
        other.position is None,
    ):
        return False
    pairs = ((head.orientation, other.orientation, 1e-3), (head.spacing, other.spacing, 1e-3))
    for ours, theirs, tolerance in pairs:
        if (ours is None) != (theirs is None):
            return False
        if ours and theirs and max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) > tolerance:
            return False
    return True


def _turns(heads: list[SliceHead]) -> list[tuple[list[SliceHead], list[str]]]:
    """Sort slices by position; slices with the same position are copies, or repeats of a scan."""
    notices: list[str] = []
    named: dict[tuple[str, int, tuple[float, ...] | None], SliceHead] = {}
    for head in heads:
        named.setdefault((head.instance or str(head.path), head.frame, head.position), head)
    once = list(named.values())
    if len(once) < len(heads):
        copies = len(heads) - len(once)
        text = "1 file is a copy of another" if copies == 1 else f"{copies} files are copies of others"
        notices.append(f"{text}, skipped")
    identified = {(head.instance, head.frame) for head in once if head.instance}
    if len(identified) < sum(bool(head.instance) for head in once):
        notices.append("images at different positions have one identifier (SOP Instance UID)")
    if once[0].position is None or once[0].orientation is None:
        return [(sorted(once, key=lambda head: (head.order, head.path.name)), notices)]
    along = _along(once)
    groups: list[list[int]] = []
    for index in np.argsort(along, kind="stable"):
        if groups and along[index] - along[groups[-1][0]] <= _SAME_POSITION:
            groups[-1].append(int(index))
        else:
            groups.append([int(index)])
    stacks = [sorted((once[i] for i in group), key=lambda h: (h.order, h.path.name)) for group in groups]
    most = max(map(len, stacks))
    if most == 1:
        return [([stack[0] for stack in stacks], notices)]
    if min(map(len, stacks)) == most:
        notices.append(f"{most} images have the same position everywhere: it is {most} volumes")
        return [([stack[turn] for stack in stacks], notices) for turn in range(most)]
    doubled = [_along(stack)[0] for stack in stacks if len(stack) > 1]
    extra = len(once) - len(stacks)
    text = "1 slice has" if extra == 1 else f"{extra} slices have"
    notices.append(f"{text} the position of another, {_at(doubled)}; the first in order is used")
    return [([stack[0] for stack in stacks], notices)]


def _along(heads: Sequence[SliceHead]) -> NDArray[np.float64]:
    """Compute positions along the slices' common normal, in millimetres."""
    orientation = heads[0].orientation
    assert orientation is not None
    normal = np.cross(orientation[:3], orientation[3:])
    return np.asarray(np.array([head.position for head in heads], dtype=float) @ normal)


def _file(heads: list[SliceHead], notices: Sequence[str], folder: Path, suffix: str) -> VolumeFile:
    first, middle = heads[0], as_suv(heads)[len(heads) // 2]
    with file_errors(first.path):
        check_shape(first.path, (len(heads), *first.shape))
        grid, geometry_notices = _geometry(heads)
    packed = next((head for head in heads if head.syntax not in (*_UNPACKED, *_CODECS)), None)
    if packed is not None:
        geometry_notices.append(f"{_explain_compression(packed)}; its pixels are not shown")
    problem = next((head.scale_problem for head in heads if head.scale_problem), "")
    if problem:
        geometry_notices.append(f"{problem}; slope 1 is used, check the values")
    if first.mosaic:
        geometry_notices.append("holds many slices as tiles of one image, and is shown as that image")
    paths = tuple(head.path for head in heads)
    is_single = len(set(paths)) == 1
    if not is_single:
        folder = Path(os.path.commonpath([path.parent for path in paths]))
    name = first.title + suffix
    return VolumeFile(
        name=name,
        path=paths[0] if is_single else folder,
        grid=grid,
        modality=first.modality,
        files=paths[:1] if is_single else paths,
        frames=tuple(head.frame for head in heads) if first.frames > 1 else (),
        identifier=first.series,
        instances=tuple(head.instance for head in heads),
        window=_shown_window(middle),
        notices=tuple(f"{name}: {notice}." for notice in (*notices, *geometry_notices)),
        patient=first.patient,
        frame_of_reference=first.frame_of_reference,
    )


def _shown_window(head: SliceHead) -> tuple[float, float] | None:
    """Return the display window; for inverted values its centre is also inverted."""
    if head.window is None or head.photometric != "MONOCHROME1":
        return head.window
    stored = head.bits[1]
    ends = -1.0 if head.signed else 2.0**stored - 1.0
    return head.slope * ends + 2.0 * head.intercept - head.window[0], head.window[1]


def _geometry(heads: list[SliceHead]) -> tuple[Grid, list[str]]:
    first = heads[0]
    shape = (len(heads), *first.shape)
    step = first.thickness or 1.0
    if first.position is None or first.orientation is None:
        text = "does not contain the positions of its images in the patient"
        order = "; they are sorted by their numbers" if len(heads) > 1 else ""
        rows, columns = first.spacing or (1.0, 1.0)
        steps = (step, rows, columns) if first.spacing else (1.0, 1.0, 1.0)
        return Grid.plain(shape, (steps[0], steps[1], steps[2])), [text + order]
    notices: list[str] = []
    if first.spacing is None:
        notices.append("does not contain the size of a pixel, which is assumed to be one millimetre")
    rows, columns = first.spacing or (1.0, 1.0)
    row, column = np.array(first.orientation[:3]), np.array(first.orientation[3:])
    down = np.cross(row, column)
    offsets = None
    positions = np.array([head.position for head in heads], dtype=float)
    if len(heads) == 1:
        if first.thickness is None:
            notices.append("does not contain the slice thickness, which is assumed to be one millimetre")
        down = down * step
    else:
        down, offsets, step_notices = _steps(positions, _along(heads))
        notices += step_notices
    matrix = np.column_stack([row * columns, column * rows, down, positions[0]])
    grid = Grid.from_matrix(shape, matrix, calibrated=first.spacing is not None, slice_offsets=offsets)
    return grid, [*(sentence.rstrip(".") for sentence in describe_slices(grid)), *notices]


def _steps(
    positions: NDArray[np.float64], along: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[float, ...] | None, list[str]]:
    """Compute the nominal step from slice to slice (mm), and the slices' offsets if they are not even."""
    notices: list[str] = []
    direction = (positions[-1] - positions[0]) / (along[-1] - along[0])  # of length 1 along the normal
    step = float((along[-1] - along[0]) / (len(along) - 1))
    deviation = float(np.abs(along - np.linspace(along[0], along[-1], len(along))).max())
    offsets = None
    if deviation > _EXACT:
        offsets = tuple((along - along[0]).tolist())
    if deviation > _UNEVEN * step:
        step = float(np.median(np.diff(along)))
    shift = float(np.abs(positions - positions[0] - np.outer(along - along[0], direction)).max())
    if shift > _SHIFTED:
        notices.append(f"its slices are shifted against each other by up to {shift:.2g} mm")
    return step * direction, offsets, notices


def _at(positions: Sequence[float]) -> str:
    named = ", ".join(f"{position:.2f}" for position in positions[:_NAMED])
    more = f" and {len(positions) - _NAMED} more positions" if len(positions) > _NAMED else ""
    return f"at {named} mm{more}"


_RLE = "1.2.840.10008.1.2.5"
_CODECS = {
    "1.2.840.10008.1.2.4.50": "jpeg_decode",
    "1.2.840.10008.1.2.4.51": "jpeg_decode",
    "1.2.840.10008.1.2.4.57": "ljpeg_decode",
    "1.2.840.10008.1.2.4.70": "ljpeg_decode",
    "1.2.840.10008.1.2.4.80": "jpegls_decode",
    "1.2.840.10008.1.2.4.81": "jpegls_decode",
    "1.2.840.10008.1.2.4.90": "jpeg2k_decode",
    "1.2.840.10008.1.2.4.91": "jpeg2k_decode",
    "1.2.840.10008.1.2.4.201": "jpeg2k_decode",
    "1.2.840.10008.1.2.4.202": "jpeg2k_decode",
    "1.2.840.10008.1.2.4.203": "jpeg2k_decode",
}
_UNPACKED = (*NATIVE, "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.1.99", _RLE)
"""Compressed transfer syntaxes that pydicom decodes."""

_DECODERS = KeptWorkers()
_AT_ONCE = 8
_PROCESSES = 2
_WORTH_ANOTHER = 1 << 22
"""Minimum number of values for a second decoder process, which takes time to start."""


def load_series(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read the pixels of a series.

    Values are rescaled as each file specifies; those of MONOCHROME1 are inverted so that high is bright. CT
    values with an integer scale are Hounsfield units as int16, clipped to its range. PET values are SUV if
    dose, weight and times are stated. Other values have the smallest type of uint8, int16 and uint16 that can
    represent them, otherwise float32; colours have uint8. Raises `InputError` for a file that has changed
    since it was found, is damaged, or has an unknown compression.
    """
    heads = as_suv(_heads(file, watch))
    colour = heads[0].colour
    shape = (*file.grid.shape, 3) if colour else file.grid.shape
    kind = np.dtype(np.uint8) if colour else _kind(heads)
    with file_errors(file.path):
        values = np.empty(shape, dtype=kind)
    packed = [k for k, head in enumerate(heads) if not _is_native(head)]
    for k, head in enumerate(heads):
        if _is_native(head):
            watch(0.1 + 0.9 * k / len(heads), f"reading slice {k + 1} of {len(heads)}")
            with file_errors(head.path):
                values[k] = _rescale(head, _read_native(head), kind)
    if packed:
        _unpack(heads, packed, values, watch)
    return Volume(values, file.grid, file.modality, file.window, heads[0].unit)


def _heads(file: VolumeFile, watch: Watch) -> list[SliceHead]:
    slices = len(file.instances)
    paths = file.files * slices if len(file.files) == 1 else file.files
    frames = file.frames or (0,) * slices
    known: dict[Path, tuple[SliceHead, ...]] = {}
    heads = []
    for done, (path, frame) in enumerate(zip(paths, frames, strict=True)):
        if path not in known:
            watch(0.1 * done / slices, f"reading {plain(path.name)}")
            known[path] = read_heads(path)
        if frame >= len(known[path]) or known[path][frame].shape != file.grid.shape[1:]:
            raise InputError("has changed since it was opened; open it again", file=path)
        heads.append(known[path][frame])
    if any(head.colour != heads[0].colour for head in heads):
        raise InputError("has changed since it was opened; open it again", file=file.path)
    return heads


def _kind(heads: Sequence[SliceHead]) -> np.dtype[Any]:
    """Choose a type that can represent the values of all slices."""
    ends = []
    for head in heads:
        is_integer = float(head.slope).is_integer() and float(head.intercept).is_integer()
        if not is_integer or head.table or head.bits[0] > 16:
            return np.dtype(np.float32)
        bits = head.bits[1]
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if head.signed else (0, 2**bits - 1)
        ends += [head.slope * low + head.intercept, head.slope * high + head.intercept]
    if heads[0].modality == "CT":
        return np.dtype(np.int16)
    for kind in (np.uint8, np.int16, np.uint16):
        if np.iinfo(kind).min <= min(ends) and max(ends) <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.float32)


def _is_native(head: SliceHead) -> bool:
    """Return whether pixels can be read without a decoder."""
    grey = head.photometric in ("MONOCHROME1", "MONOCHROME2")
    return grey and not head.table and head.offset is not None and head.bits[0] in (8, 16, 32)


def _read_native(head: SliceHead) -> NDArray[Any]:
    rows, columns = head.shape
    dtype = np.dtype(f"<u{head.bits[0] // 8}")
    assert head.offset is not None
    begin = head.offset + head.frame * rows * columns * dtype.itemsize
    pixels = np.fromfile(head.path, dtype=dtype, count=rows * columns, offset=begin)
    return _extract_bits(pixels.reshape(rows, columns), head.bits, head.signed)


def _extract_bits(pixels: NDArray[Any], bits: tuple[int, int, int], signed: bool) -> NDArray[Any]:
    """Extract the value's bits and sign from a word, whose other bits may contain overlays."""
    allocated, stored, highest = bits
    kind = np.dtype(f"{'i' if signed else 'u'}{allocated // 8}")
    if stored == allocated:
        return pixels.view(kind)
    up = np.left_shift(pixels, allocated - 1 - highest)
    return np.asarray(np.right_shift(up.view(kind), allocated - stored))


def _rescale(head: SliceHead, pixels: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Convert stored values to real values."""
    if head.colour:
        return pixels
    if head.photometric == "MONOCHROME1" and pixels.dtype.kind in "iu":
        pixels = ~pixels if head.signed else (2 ** head.bits[1] - 1) - pixels
    if head.table:
        return np.asarray(pixels, dtype=kind)
    slope, intercept = head.slope, head.intercept
    if (slope, intercept) == (1.0, 0.0):
        return pixels if kind.kind == "f" or pixels.dtype == kind else _clip(pixels, kind)
    if kind.kind == "f":
        return np.asarray(pixels * np.float64(slope) + intercept, dtype=kind)
    return _clip(pixels.astype(np.int64 if abs(slope) > 1 else np.int32) * int(slope) + int(intercept), kind)


def _clip(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    ends, stored = np.iinfo(kind), np.iinfo(values.dtype)
    clipped = np.clip(values, max(ends.min, stored.min), min(ends.max, stored.max))
    return np.asarray(clipped, dtype=kind)


def _unpack(heads: Sequence[SliceHead], packed: list[int], values: NDArray[Any], watch: Watch) -> None:
    """Decode slices in separate processes."""
    for k in packed:
        if heads[k].syntax not in _UNPACKED and heads[k].syntax not in _CODECS:
            raise InputError(_explain_compression(heads[k]), file=heads[k].path)
    tasks: dict[str, tuple[str, list[int]]] = {}
    slices: dict[str, list[int]] = {}
    by_path: dict[Path, list[int]] = {}
    for k in packed:
        by_path.setdefault(heads[k].path, []).append(k)
    for path, own in by_path.items():
        for start in range(0, len(own), _AT_ONCE):
            name, some = f"{path} {start}", own[start : start + _AT_ONCE]
            tasks[name], slices[name] = (str(path), [heads[k].frame for k in some]), some

    def tick(done: int) -> None:
        watch(0.1 + 0.9 * done / len(tasks), f"unpacking {len(packed)} slices")

    jobs = min(_PROCESSES, processors()) if values.size >= _WORTH_ANOTHER else 1
    answers: dict[str, list[NDArray[Any]] | str] = {}
    decoders = _DECODERS.take(jobs)
    try:
        answers = decoders.answer(decode_frames, tasks, tick)
    finally:
        # A damaged file may leave a decoder damaged.
        if answers.keys() == tasks.keys() and not any(isinstance(answer, str) for answer in answers.values()):
            _DECODERS.give(decoders)
        else:
            decoders.end()
    for name, some in slices.items():
        answer = answers.get(name)
        head = heads[some[0]]
        if answer is None:
            raise InputError("crashed its decoder: the pixels are damaged", file=head.path)
        if isinstance(answer, str):
            raise InputError(answer, file=head.path)
        with file_errors(head.path):
            for k, pixels in zip(some, answer, strict=True):
                values[k] = _rescale(heads[k], pixels, values.dtype)


def decode_frames(path: str, frames: list[int]) -> list[NDArray[Any]] | str:
    """Decode frames of a file: return their stored values, or the error message. Runs in a process."""
    try:
        with file_errors(Path(path)):
            heads = read_heads(Path(path))
            data = read_dataset(Path(path), pixels=True)
            return [_decode_frame(heads[frame], data) for frame in frames]
    except InputError as error:
        return error.what


def _decode_frame(head: SliceHead, data: Any) -> NDArray[Any]:
    pixels = _by_pydicom(head, data) if head.syntax in _UNPACKED else _by_codec(head, data)
    shape = (*head.shape, 3) if head.colour else head.shape
    if pixels.shape != shape:
        raise InputError(f"holds pixels of shape {pixels.shape}, but its header says {shape}", file=head.path)
    if head.table:
        from pydicom.pixels import apply_modality_lut

        return np.asarray(apply_modality_lut(pixels, data), dtype=np.float32)
    if head.colour and pixels.dtype != np.uint8:
        return np.asarray(pixels >> max(0, head.bits[1] - 8), dtype=np.uint8)
    return pixels


def _by_pydicom(head: SliceHead, data: Any) -> NDArray[Any]:
    from pydicom.pixels import apply_color_lut, pixel_array

    pixels = np.asarray(pixel_array(data, index=head.frame))
    if head.photometric == "PALETTE COLOR":
        colours = apply_color_lut(pixels, data)[..., :3]
        return np.asarray(colours >> 8 if colours.dtype == np.uint16 else colours, dtype=np.uint8)
    return pixels


def _by_codec(head: SliceHead, data: Any) -> NDArray[Any]:
    import imagecodecs
    from pydicom.encaps import get_frame

    stream = get_frame(data.PixelData, head.frame, number_of_frames=head.frames)
    if declared_shape(stream) not in (None, head.shape):
        raise InputError("holds pixels of another shape than its header says", file=head.path)
    name = _CODECS[head.syntax]
    decode: Callable[..., Any] = getattr(imagecodecs, name)
    # DICOM decides whether a JPEG's colours are YBR or RGB; its own markers may differ.
    options = {"colorspace": "RGB", "outcolorspace": "RGB"} if name == "jpeg_decode" and head.colour else {}
    pixels = np.asarray(decode(stream, **options))
    if head.photometric in ("YBR_FULL", "YBR_FULL_422") and name != "jpeg2k_decode" and pixels.ndim == 3:
        from pydicom.pixels import convert_color_space

        return np.asarray(convert_color_space(pixels, "YBR_FULL", "RGB"))
    if head.colour:
        return pixels
    stored = head.bits[1]
    if head.signed and pixels.dtype.kind == "u":
        room = 8 * pixels.dtype.itemsize
        return _extract_bits(pixels, (room, min(stored, room), min(stored, room) - 1), True)
    return pixels


def declared_shape(stream: bytes) -> tuple[int, int] | None:
    """Read the rows and columns that a JPEG, JPEG-LS or JPEG 2000 stream claims; None if there are none."""
    start = stream.find(b"\xff\x4f\xff\x51")
    if start >= 0 and not stream.startswith(b"\xff\xd8"):
        right, bottom, left, top = (
            int.from_bytes(stream[start + at : start + at + 4], "big") for at in (8, 12, 16, 20)
        )
        return bottom - top, right - left
    at = 2
    while at + 9 <= len(stream):
        marker = stream[at + 1]
        if (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)) or marker == 0xF7:
            rows, columns = (int.from_bytes(stream[at + k : at + k + 2], "big") for k in (5, 7))
            return rows, columns
        at += 1 if marker == 0xFF else 2 + int.from_bytes(stream[at + 2 : at + 4], "big")
    return None


def _explain_compression(head: SliceHead) -> str:
    from pydicom.uid import UID_dictionary

    name = plain(UID_dictionary.get(head.syntax, (head.syntax,))[0])
    expected = "expected uncompressed images, RLE, JPEG, JPEG-LS or JPEG 2000"
    return f"has the unsupported compression {name}; {expected}"
