"""Large images without tiles, read in bands of rows without holding the complete image in memory."""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.image_display import default_range, mix_channels, to_bytes
from raterscope.algorithms.progress import Watch, steps_of
from raterscope.app.errors import InputError
from raterscope.app.formats.image_structure import Channel, find_channels, tiff_orientation
from raterscope.app.formats.images import (
    LARGEST,
    apply_orientation,
    check_pixel_count,
    convert_samples,
    decode_pixels,
    detect_image_format,
    image_errors,
    open_image,
    open_tiff_page,
    read_orientation,
)
from raterscope.app.formats.pyramids.pyramid import Pixels

_SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}
_HEAD = 33
_BLOCK = 1 << 20
_PNG_ROWS = 256


def png_form(file: IO[bytes]) -> tuple[int, np.dtype[Any]] | None:
    """Return the number and type of a pixel's samples; None for palettes, single bits and interlaced rows."""
    file.seek(0)
    head = file.read(_HEAD)
    depth, colour, interlaced = head[24], head[25], head[28]
    if depth not in (8, 16) or colour not in _SAMPLES or interlaced:
        return None
    return _SAMPLES[colour], np.dtype(np.uint8 if depth == 8 else ">u2")


def png_rows(file: IO[bytes], width: int, height: int) -> Iterator[NDArray[Any]]:
    """Decode a PNG that `png_form` supports, from the top, in arrays (rows, width, samples).

    Raises `ValueError` for a file that is damaged or cut short.
    """
    from raterscope.app.formats._kernels import unfilter

    form = png_form(file)
    if form is None:
        raise ValueError("not a PNG with consecutive rows")
    samples, kind = form
    step = samples * kind.itemsize
    above = np.zeros(width * step, dtype=np.uint8)
    rows_left = height
    size = min(_PNG_ROWS, rows_left) * (1 + len(above))
    buffer = bytearray()
    for piece in _inflate(file, size):
        buffer += piece
        while rows_left and len(buffer) >= size:
            rows = np.frombuffer(bytes(buffer[:size]), np.uint8).reshape(-1, 1 + len(above)).copy()
            del buffer[:size]
            if not unfilter(rows, above, step):
                raise ValueError("an unknown filter")
            rows_left -= len(rows)
            size = min(_PNG_ROWS, rows_left) * (1 + len(above))
            yield np.ascontiguousarray(rows[:, 1:]).view(kind).reshape(len(rows), width, samples)
    if rows_left:
        raise ValueError(f"{rows_left} rows are missing")


def _inflate(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield the decompressed image data, at most `most` bytes at a time."""
    decompressor = zlib.decompressobj()
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, name = int.from_bytes(head[:4], "big"), head[4:]
        if name != b"IDAT":
            file.seek(length + 4, 1)
            continue
        while length > 0 and (data := file.read(min(length, _BLOCK))):
            length -= len(data)
            while data:
                yield decompressor.decompress(data, most)
                data = decompressor.unconsumed_tail
        file.seek(4, 1)


_LARGEST_PIECE = 256 << 20
"""Maximum size of a TIFF's strip or tile that is decoded at once, bytes."""

_THREADS = 2
_AHEAD = 16 << 20
"""Number of bytes of a TIFF that are read ahead of decoding."""

_ROWS = 100
"""Number of rows of a sample that are read before memory is released."""

_RELEASE = 0.05
"""Interval between releases of the memory that a decoder has written, seconds."""


class Flat:
    """Image whose pixels are on the disk; width and height as shown."""

    def __init__(self, pixels: NDArray[Any], turn: int, page: Any, mapped: mmap.mmap) -> None:
        self._pixels = apply_orientation(pixels, turn)
        self._page = page
        self._mapped = mapped
        self.height, self.width = self._pixels.shape[:2]
        first = self._convert(self._pixels[:1, :1])
        self.colour = first.ndim == 3
        self._range = default_range(first if first.dtype == np.uint8 else self._sample())

    def band(self, top: int, bottom: int) -> Pixels:
        """Read some rows, (bottom - top, width[, 3])."""
        rows = to_bytes(self._convert(self._pixels[top:bottom]), shown=self._range)
        rows = np.array(rows, order="C")  # a copy, because the memory of the file's rows is released
        _release(self._mapped)
        return rows

    def _sample(self) -> NDArray[Any]:
        """Return a regular sample of pixels, without holding the rows between them."""
        step = max(1, min(self.width, self.height) // 2000)
        pieces = []
        for top in range(0, self.height, step * _ROWS):
            pieces.append(np.array(self._convert(self._pixels[top : top + step * _ROWS : step, ::step])))
            _release(self._mapped)
        return np.concatenate(pieces)

    def _convert(self, pixels: NDArray[Any]) -> NDArray[Any]:
        if self._page is not None:
            return convert_samples(self._page, pixels)
        if pixels.ndim == 3:
            return pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., 0]
        return pixels


class MixedFlat:
    """Channels of one plane, added up; attributes as in `Flat`."""

    colour = True

    def __init__(self, planes: Sequence[Flat], channels: Sequence[Channel]) -> None:
        self._planes, self._channels = planes, channels
        self.width, self.height = planes[0].width, planes[0].height

    def band(self, top: int, bottom: int) -> Pixels:
        """Read some rows, (bottom - top, width, 3)."""
        colours = [channel.colour for channel in self._channels]
        return mix_channels([plane.band(top, bottom) for plane in self._planes], colours)


@contextmanager
def open_flat(path: Path, room: Path, watch: Watch) -> Iterator[Flat | MixedFlat]:
    """Decode an image into a temporary file of this context, or read it in place if possible.

    Raises `InputError` as `read_image`, for a TIFF that is compressed in one large piece, and if the disk is
    full.

    `room`: folder for the temporary file.
    """
    watch(0.0, "decoding the image")
    with image_errors(path):
        kind = detect_image_format(path)
        if kind == "TIFF":
            with open_tiff_page(path, LARGEST) as page:
                channels, turn = find_channels(page.parent), tiff_orientation(page)
                pages = [page.parent.pages[channel.page] for channel in channels] or [page]
                planes = []
                for plane_page, step in steps_of(watch, pages):
                    pixels, mapped = _decode_tiff(path, plane_page, room, step)
                    planes.append(Flat(pixels, turn, plane_page, mapped))
                yield MixedFlat(planes, channels) if channels else planes[0]
        else:
            with open_image(path, kind) as image:
                check_pixel_count(path, *image.size, most=LARGEST)
                turn = read_orientation(image)
                pixels, mapped = _decode_image(path, kind, image, room, watch)
            yield Flat(pixels, turn, None, mapped)


def _decode_image(
    path: Path, kind: str, image: Any, room: Path, watch: Watch
) -> tuple[NDArray[Any], mmap.mmap]:
    width, height = image.size
    file = image.fp
    if kind == "PNG" and (form := png_form(file)) is not None:
        samples, depth = form
        pixels, mapped = _scratch(path, (height, width, samples), depth, room)
        top = 0
        for rows in png_rows(file, width, height):
            pixels[top : top + len(rows)] = rows
            top += len(rows)
            _release(mapped)
            watch(top / height, "decoding the image")
    elif kind == "JPEG" and image.mode in ("L", "RGB"):
        from imagecodecs import jpeg8_decode

        shape = (height, width, 3) if image.mode == "RGB" else (height, width)
        pixels, mapped = _scratch(path, shape, np.dtype(np.uint8), room)
        with path.open("rb") as file, _release_repeatedly(mapped):
            jpeg8_decode(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), out=pixels)
    else:
        check_pixel_count(path, width, height)  # only Pillow reads such colours, and it decodes into memory
        file.seek(0)
        decoded = decode_pixels(image)
        pixels, mapped = _scratch(path, decoded.shape, decoded.dtype, room)
        pixels[...] = decoded
    return pixels, mapped


def _decode_tiff(path: Path, page: Any, room: Path, watch: Watch) -> tuple[NDArray[Any], mmap.mmap]:
    shape = (page.imagelength, page.imagewidth, page.samplesperpixel)
    planes = page.samplesperpixel if page.planarconfig == 2 else 1
    if page.is_memmappable and planes == 1:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        kind = page.dtype.newbyteorder(page.parent.byteorder)
        pixels = np.ndarray(shape, kind, mapped, page.dataoffsets[0])
    else:
        if math.prod(page.chunks) * page.dtype.itemsize > _LARGEST_PIECE:
            raise InputError("is compressed in one large piece; save it in tiles or strips", file=path)
        pixels, mapped = _scratch(path, shape, page.dtype, room)
        done, count = 0, len(page.dataoffsets)
        for segment, (plane, _, top, left, _), size in page.segments(maxworkers=_THREADS, buffersize=_AHEAD):
            done += 1
            watch(done / count, "decoding the image")
            if segment is None:
                continue
            height = min(size[1], shape[0] - top)
            width = min(size[2], shape[1] - left)
            samples = slice(plane, plane + 1) if planes > 1 else slice(None)
            pixels[top : top + height, left : left + width, samples] = segment[0, :height, :width]
            if done % 64 == 0:
                _release(mapped)
    return (pixels[..., 0] if shape[2] == 1 else pixels), mapped


def _scratch(
    path: Path, shape: tuple[int, ...], kind: np.dtype[Any], room: Path
) -> tuple[NDArray[Any], mmap.mmap]:
    """Create an array in a temporary file without a name."""
    size = math.prod(shape) * kind.itemsize
    free = shutil.disk_usage(room).free
    if size > free:
        raise InputError(
            f"needs {size / 1e9:.1f} GB in {room}, which has {free / 1e9:.1f} GB free", file=path
        )
    with tempfile.TemporaryFile(dir=room) as file:
        if hasattr(os, "posix_fallocate"):  # otherwise a full disk would end the program
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    return np.ndarray(shape, kind, mapped), mapped


def _release(mapped: mmap.mmap) -> None:
    """Release the pages in memory; their content remains in the file."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


@contextmanager
def _release_repeatedly(mapped: mmap.mmap) -> Iterator[None]:
    """Release pages repeatedly while a decoder without callbacks writes them."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(_RELEASE):
            _release(mapped)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _release(mapped)
