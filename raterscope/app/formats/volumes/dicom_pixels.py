"""The pixels of DICOM images, as stored or packed by a codec, and their real values.

Codecs are libraries in C that strangers' bytes can bring down: they run in processes of their own, whose
end is a sentence and not the end of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.untrusted import sentences
from raterscope.app.formats.volumes.dicom_headers import NATIVE, SliceHead, read_dataset, read_heads
from raterscope.app.formats.volumes.records import Volume, VolumeFile
from raterscope.app.workers import in_processes, processors

__all__ = ["load_series"]

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
"""What pydicom reads by itself."""

_AT_ONCE = 8
_PROCESSES = 2


def load_series(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read the pixels of a series.

    Values are rescaled as each file says, those of MONOCHROME1 turned so that high is bright. A CT whose
    scale is of whole numbers comes in Hounsfield units as int16, clipped to its range; other values in the
    smallest of uint8, int16 and uint16 that is sure to hold them, else in float32; colours in uint8.

    Raises
    ------
    InputError
        For a file that has changed since it was found, is damaged, or is packed by an unknown codec.
    """
    heads = _heads(file, watch)
    colour = heads[0].colour
    shape = (*file.grid.shape, 3) if colour else file.grid.shape
    kind = np.dtype(np.uint8) if colour else _kind(heads)
    with sentences(file.path):
        values = np.empty(shape, dtype=kind)
    packed = [k for k, head in enumerate(heads) if not _as_it_is(head)]
    for k, head in enumerate(heads):
        if _as_it_is(head):
            watch(0.1 + 0.9 * k / len(heads), f"reading slice {k + 1} of {len(heads)}")
            with sentences(head.path):
                values[k] = _real(head, _native(head), kind)
    if packed:
        _unpack(heads, packed, values, watch)
    return Volume(values, file.grid, file.modality, file.window)


def _heads(file: VolumeFile, watch: Watch) -> list[SliceHead]:
    slices = len(file.instances)
    paths = file.files * slices if len(file.files) == 1 else file.files
    frames = file.frames or (0,) * slices
    known: dict[Path, tuple[SliceHead, ...]] = {}
    heads = []
    for done, (path, frame) in enumerate(zip(paths, frames, strict=True)):
        if path not in known:
            watch(0.1 * done / slices, f"looking at {plain(path.name)}")
            known[path] = read_heads(path)
        if frame >= len(known[path]) or known[path][frame].shape != file.grid.shape[1:]:
            raise InputError("has changed since it was looked at; open it again", file=path)
        heads.append(known[path][frame])
    if any(head.colour != heads[0].colour for head in heads):
        raise InputError("has changed since it was looked at; open it again", file=file.path)
    return heads


def _kind(heads: Sequence[SliceHead]) -> np.dtype[Any]:
    """Choose a type that holds the values of all slices."""
    ends = []
    for head in heads:
        whole = float(head.slope).is_integer() and float(head.intercept).is_integer()
        if not whole or head.table or head.bits[0] > 16:
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


def _as_it_is(head: SliceHead) -> bool:
    """Tell whether pixels can be read without a decoder."""
    grey = head.photometric in ("MONOCHROME1", "MONOCHROME2")
    return grey and not head.table and head.offset is not None and head.bits[0] in (8, 16, 32)


def _native(head: SliceHead) -> NDArray[Any]:
    rows, columns = head.shape
    dtype = np.dtype(f"<u{head.bits[0] // 8}")
    assert head.offset is not None
    begin = head.offset + head.frame * rows * columns * dtype.itemsize
    pixels = np.fromfile(head.path, dtype=dtype, count=rows * columns, offset=begin)
    return _meant(pixels.reshape(rows, columns), head.bits, head.signed)


def _meant(pixels: NDArray[Any], bits: tuple[int, int, int], signed: bool) -> NDArray[Any]:
    """Take the bits that are the value out of a word: others may hold overlays; then the sign."""
    allocated, stored, highest = bits
    kind = np.dtype(f"{'i' if signed else 'u'}{allocated // 8}")
    if stored == allocated:
        return pixels.view(kind)
    up = np.left_shift(pixels, allocated - 1 - highest)
    return np.asarray(np.right_shift(up.view(kind), allocated - stored))


def _real(head: SliceHead, pixels: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Take stored values to real ones."""
    if head.colour:
        return pixels
    if head.photometric == "MONOCHROME1" and pixels.dtype.kind in "iu":
        pixels = ~pixels if head.signed else (2 ** head.bits[1] - 1) - pixels
    if head.table:
        return np.asarray(pixels, dtype=kind)
    slope, intercept = head.slope, head.intercept
    if (slope, intercept) == (1.0, 0.0):
        return pixels if kind.kind == "f" or pixels.dtype == kind else _clipped(pixels, kind)
    if kind.kind == "f":
        return np.asarray(pixels * np.float64(slope) + intercept, dtype=kind)
    return _clipped(
        pixels.astype(np.int64 if abs(slope) > 1 else np.int32) * int(slope) + int(intercept), kind
    )


def _clipped(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    ends, own = np.iinfo(kind), np.iinfo(values.dtype)
    clipped = np.clip(values, max(ends.min, own.min), min(ends.max, own.max))
    return np.asarray(clipped, dtype=kind)


def _unpack(heads: Sequence[SliceHead], packed: list[int], values: NDArray[Any], watch: Watch) -> None:
    """Decode slices in processes of their own."""
    for k in packed:
        if heads[k].syntax not in _UNPACKED and heads[k].syntax not in _CODECS:
            raise InputError(
                f"is packed as {_named(heads[k].syntax)}, which is not read; expected uncompressed images, "
                "RLE, JPEG, JPEG-LS or JPEG 2000",
                file=heads[k].path,
            )
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

    answers = in_processes(decoded, tasks, min(_PROCESSES, processors()), tick)
    for name, some in slices.items():
        answer = answers.get(name)
        head = heads[some[0]]
        if answer is None:
            raise InputError("broke its decoder: the pixels are damaged", file=head.path)
        if isinstance(answer, str):
            raise InputError(answer, file=head.path)
        with sentences(head.path):
            for k, pixels in zip(some, answer, strict=True):
                values[k] = _real(heads[k], pixels, values.dtype)


def decoded(path: str, frames: list[int]) -> list[NDArray[Any]] | str:
    """Decode frames of a file: their stored values, or why they cannot be had. Runs in a process."""
    try:
        with sentences(Path(path)):
            heads = read_heads(Path(path))
            data = read_dataset(Path(path), pixels=True)
            return [_decoded(heads[frame], data) for frame in frames]
    except InputError as error:
        return error.what


def _decoded(head: SliceHead, data: Any) -> NDArray[Any]:
    pixels = _by_pydicom(head, data) if head.syntax in _UNPACKED else _by_codec(head, data)
    shape = (*head.shape, 3) if head.colour else head.shape
    if pixels.shape != shape:
        raise InputError(
            f"holds pixels of another shape, {pixels.shape}, than its header says, {shape}", file=head.path
        )
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
    if declared(stream) not in (None, head.shape):
        raise InputError("holds pixels of another shape than its header says", file=head.path)
    name = _CODECS[head.syntax]
    decode: Callable[..., Any] = getattr(imagecodecs, name)
    # Whether a JPEG's colours are YBR or RGB is DICOM's to say; its own markers may say otherwise.
    told = {"colorspace": "RGB", "outcolorspace": "RGB"} if name == "jpeg_decode" and head.colour else {}
    pixels = np.asarray(decode(stream, **told))
    if head.photometric in ("YBR_FULL", "YBR_FULL_422") and name != "jpeg2k_decode" and pixels.ndim == 3:
        from pydicom.pixels import convert_color_space

        return np.asarray(convert_color_space(pixels, "YBR_FULL", "RGB"))
    if head.colour:
        return pixels
    stored = head.bits[1]
    if head.signed and pixels.dtype.kind == "u":
        room = 8 * pixels.dtype.itemsize
        return _meant(pixels, (room, min(stored, room), min(stored, room) - 1), True)
    return pixels


def declared(stream: bytes) -> tuple[int, int] | None:
    """Read the rows and columns that a JPEG, JPEG-LS or JPEG 2000 stream claims; None where it tells none."""
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


def _named(syntax: str) -> str:
    from pydicom.uid import UID_dictionary

    return plain(UID_dictionary.get(syntax, (syntax,))[0])
