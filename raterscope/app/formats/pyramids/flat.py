"""Large images in one piece, whose rows can be had band by band without holding the whole."""

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

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import InputError
from raterscope.app.formats.images import (
    LARGEST,
    apply_orientation,
    check_pixel_count,
    convert_samples,
    decode_pixels,
    detect_image_format,
    find_contrast,
    image_errors,
    open_image,
    open_tiff_page,
    read_orientation,
    stretch,
)
from raterscope.app.formats.pyramids.pyramid import Pixels
from raterscope.app.formats.tiff_pages import Channel, find_channels, mix_channels, tiff_orientation

__all__ = [
    "Flat",
    "MixedFlat",
    "open_flat",
    "png_form",
    "png_rows",
]


_SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}
_HEAD = 33
_BLOCK = 1 << 20
_PNG_ROWS = 256


def png_form(file: IO[bytes]) -> tuple[int, np.dtype[Any]] | None:
    """Tell how many samples of which kind a pixel has; None for palettes, single bits and interlaced rows."""
    file.seek(0)
    head = file.read(_HEAD)
    depth, colour, interlaced = head[24], head[25], head[28]
    if depth not in (8, 16) or colour not in _SAMPLES or interlaced:
        return None
    return _SAMPLES[colour], np.dtype(np.uint8 if depth == 8 else ">u2")


def png_rows(file: IO[bytes], width: int, height: int) -> Iterator[NDArray[Any]]:
    """Decode an image of which `png_form` tells, from the top, in arrays (rows, width, samples).

    Raises
    ------
    ValueError
        For what is damaged or cut short.
    """
    from raterscope.app.formats.pyramids._kernels import unfilter

    form = png_form(file)
    if form is None:
        raise ValueError("no PNG whose rows follow each other")
    samples, kind = form
    step = samples * kind.itemsize
    above = np.zeros(width * step, dtype=np.uint8)
    left = height
    size = min(_PNG_ROWS, left) * (1 + len(above))
    gathered = bytearray()
    for piece in _inflated(file, size):
        gathered += piece
        while left and len(gathered) >= size:
            rows = np.frombuffer(bytes(gathered[:size]), np.uint8).reshape(-1, 1 + len(above)).copy()
            del gathered[:size]
            if not unfilter(rows, above, step):
                raise ValueError("an unknown filter")
            left -= len(rows)
            size = min(_PNG_ROWS, left) * (1 + len(above))
            yield np.ascontiguousarray(rows[:, 1:]).view(kind).reshape(len(rows), width, samples)
    if left:
        raise ValueError(f"{left} rows are missing")


def _inflated(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Give what the image's chunks hold, at most so many bytes at a time."""
    machine = zlib.decompressobj()
    file.seek(8)
    while len(head := file.read(8)) == 8:
        length, name = int.from_bytes(head[:4], "big"), head[4:]
        if name != b"IDAT":
            file.seek(length + 4, 1)
            continue
        while length > 0 and (data := file.read(min(length, _BLOCK))):
            length -= len(data)
            while data:
                yield machine.decompress(data, most)
                data = machine.unconsumed_tail
        file.seek(4, 1)


_LARGEST_PIECE = 256 << 20
"""Bytes of a TIFF's compressed piece that is decoded at once."""

_THREADS = 2
_AHEAD = 16 << 20
"""Bytes of a TIFF that are read before they are decoded."""

_ROWS = 100
"""Rows of a sample that are read before what lies between them is let go."""

_RELEASE = 0.05
"""Seconds after which what a decoder has written is let go to the disk."""


class Flat:
    """An image whose pixels lie on the disk.

    Attributes
    ----------
    width, height : int
        As shown.
    colour : bool
    """

    def __init__(self, pixels: NDArray[Any], turn: int, page: Any, mapped: mmap.mmap) -> None:
        self._pixels = apply_orientation(pixels, turn)
        self._page = page
        self._mapped = mapped
        self.height, self.width = self._pixels.shape[:2]
        first = self._shown(self._pixels[:1, :1])
        self.colour = first.ndim == 3
        self._contrast = (0.0, 0.0)
        if first.dtype != np.uint8:
            self._contrast = find_contrast(self._sample())

    def band(self, top: int, bottom: int) -> Pixels:
        """Read some rows, (bottom - top, width[, 3])."""
        rows = stretch(self._shown(self._pixels[top:bottom]), *self._contrast)
        rows = np.array(rows, order="C")  # a copy: the rows in the file are let go
        _release(self._mapped)
        return rows

    def _sample(self) -> NDArray[Any]:
        """Give every so many pixels of every so many rows, without holding the rows between."""
        step = max(1, min(self.width, self.height) // 2000)
        pieces = []
        for top in range(0, self.height, step * _ROWS):
            pieces.append(np.array(self._shown(self._pixels[top : top + step * _ROWS : step, ::step])))
            _release(self._mapped)
        return np.concatenate(pieces)

    def _shown(self, pixels: NDArray[Any]) -> NDArray[Any]:
        if self._page is not None:
            return convert_samples(self._page, pixels)
        if pixels.ndim == 3:
            return pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., 0]
        return pixels


class MixedFlat:
    """Channels of one plane, laid over one another; attributes as of `Flat`."""

    colour = True

    def __init__(self, planes: Sequence[Flat], channels: Sequence[Channel]) -> None:
        self._planes, self._channels = planes, channels
        self.width, self.height = planes[0].width, planes[0].height

    def band(self, top: int, bottom: int) -> Pixels:
        """Read some rows, (bottom - top, width, 3)."""
        return mix_channels([plane.band(top, bottom) for plane in self._planes], self._channels)


@contextmanager
def open_flat(path: Path, room: Path, watch: Watch) -> Iterator[Flat | MixedFlat]:
    """Decode an image into a file that is gone when the context is left; or read it in place where it can be.

    Parameters
    ----------
    path : Path
    room : Path
        Folder for what is decoded.
    watch : callable

    Raises
    ------
    InputError
        As `read_image`; where the disk has no room; for a TIFF that is compressed in one large piece.
    """
    watch(0.0, "decoding the image")
    with image_errors(path):
        kind = detect_image_format(path)
        if kind == "TIFF":
            with open_tiff_page(path, LARGEST) as page:
                channels, turn = find_channels(page.parent), tiff_orientation(page)
                pages = [page.parent.pages[one.page] for one in channels] or [page]
                found = []
                for number, one in enumerate(pages):
                    step = part(watch, number / len(pages), (number + 1) / len(pages))
                    pixels, mapped = _tiff(path, one, room, step)
                    found.append(Flat(pixels, turn, one, mapped))
                yield MixedFlat(found, channels) if channels else found[0]
        else:
            with open_image(path, kind) as image:
                check_pixel_count(path, *image.size, most=LARGEST)
                turn = read_orientation(image)
                pixels, mapped = _photograph(path, kind, image, room, watch)
            yield Flat(pixels, turn, None, mapped)


def _photograph(
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
        with path.open("rb") as file, _letting_go(mapped):
            jpeg8_decode(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), out=pixels)
    else:
        check_pixel_count(path, width, height)  # only Pillow knows such colours, and it decodes into memory
        file.seek(0)
        decoded = decode_pixels(image)
        pixels, mapped = _scratch(path, decoded.shape, decoded.dtype, room)
        pixels[...] = decoded
    return pixels, mapped


def _tiff(path: Path, page: Any, room: Path, watch: Watch) -> tuple[NDArray[Any], mmap.mmap]:
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
    """Make an array in a file without a name, which is gone with it."""
    size = math.prod(shape) * kind.itemsize
    free = shutil.disk_usage(room).free
    if size > free:
        raise InputError(
            f"needs {size / 1e9:.1f} GB in {room} to be made ready, which has {free / 1e9:.1f} free",
            file=path,
        )
    with tempfile.TemporaryFile(dir=room) as file:
        if hasattr(os, "posix_fallocate"):  # else a disk that fills up ends the program
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    return np.ndarray(shape, kind, mapped), mapped


def _release(mapped: mmap.mmap) -> None:
    """Let go of the pages in memory; what was written to them stays in the file."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


@contextmanager
def _letting_go(mapped: mmap.mmap) -> Iterator[None]:
    """Let go of pages again and again while a decoder that cannot be asked writes them."""
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
