"""Images: PNG, JPEG and TIFF of 8 and 16 bit, BMP and GIF, grey and colour.

Only the first picture of an animated GIF is read.

The claimed size is checked before pixels are decoded, because a few hundred bytes can claim a gigabyte.
"""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile as ImageFileReader
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from raterscope.algorithms.image_display import COLOUR, GREY, ChannelPlane, Colour, Displays, render
from raterscope.app.errors import InputError
from raterscope.app.formats.image_structure import (
    Chunks,
    find_channels,
    find_levels,
    find_page_stack,
    read_chunks,
    tiff_orientation,
)
from raterscope.app.formats.signatures import IMAGES_IN_WORDS, SNIFFED, image_kind
from raterscope.app.formats.untrusted import input_errors, open_file, refuse_special

MAX_PIXELS = 179_000_000
"""Maximum number of pixels of an image that is decoded at once."""

LARGEST = 400_000_000
"""Maximum number of pixels of an image that is decoded once and divided into tiles."""

JPEG_COMPRESSIONS = frozenset((6, 7, 34892, 33007))
"""TIFF compressions whose tiles decode to RGB, and may need tables from elsewhere in the file."""

_SEPARATED, _YCBCR = 5, 6
_MIDDLE = 128 / 255
_BAND = 256
_UNSUPPORTED = (4, 8, 9, 10)
"""Photometric interpretations that are not read: masks for transparency, CIE Lab."""

_ORIENTATION = 0x0112

# Pillow warns at half the size that it refuses; this module has its own limits.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
# tifffile logs irregularities to the terminal; this module itself reports whether a file can be read.
logging.getLogger("tifffile").setLevel(logging.CRITICAL)


def detect_image_format(path: Path, file: BinaryIO | None = None) -> str:
    """Detect the format of an image by its first bytes, read from `file` if it is already open.

    Raises `InputError` for any other file, and for an empty one.
    """
    refuse_special(path)
    with open_file(path, file) as stream:
        start = stream.read(SNIFFED)
        stream.seek(0)
    if not start:
        raise InputError("is empty; expected an image", file=path)
    kind = image_kind(start)
    if not kind:
        raise InputError(f"is not an image; expected {IMAGES_IN_WORDS}", file=path)
    return kind


@contextmanager
def image_errors(path: Path) -> Iterator[None]:
    """Convert any exception of an image decoder to an InputError."""
    with input_errors(path, "an image"):
        try:
            yield
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise InputError(_too_large(MAX_PIXELS), file=path) from error


def check_pixel_count(path: Path, *lengths: int, most: int = MAX_PIXELS) -> None:
    """Refuse an image that claims no pixels, or more than `most`."""
    if min(lengths) < 1:
        raise InputError("has no pixels", file=path)
    if math.prod(lengths) > most:
        raise InputError(_too_large(most), file=path)


def _too_large(most: int) -> str:
    instead = "a pyramidal TIFF may be larger" if most == LARGEST else "cut it into smaller images"
    return f"claims more than {most // 1_000_000} million pixels; {instead}"


_READERS: dict[str, type[ImageFileReader]] = {
    "PNG": PngImageFile, "JPEG": JpegImageFile, "BMP": BmpImageFile, "GIF": GifImageFile
}  # fmt: skip


def open_image(path: Path | BinaryIO, kind: str) -> Image.Image:
    """Read the header of an image except TIFF; unlike `Image.open`, it accepts any size."""
    return _READERS[kind](path)


def read_orientation(image: Image.Image, chunks: Chunks | None = None) -> int:
    """Read the EXIF orientation of an image except TIFF, 1 to 8, before its pixels are read."""
    try:
        if isinstance(image, PngImageFile):
            # Pillow would decode the complete PNG to find EXIF data after the pixels.
            if chunks is None and image.fp is not None:
                chunks = read_chunks(image.fp)
            exif = Image.Exif()
            if chunks is not None and chunks.exif:
                exif.load(chunks.exif)
            turn = exif.get(_ORIENTATION) or _xmp_orientation(image)
        else:
            turn = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF does not affect the pixels
        return 1
    return turn if turn in range(1, 9) else 1


def _xmp_orientation(image: Image.Image) -> int:
    match = re.search(r'tiff:Orientation(="|>)([1-8])', str(image.info.get("XML:com.adobe.xmp", "")))
    return int(match[2]) if match else 1


def decode_pixels(image: Image.Image) -> NDArray[Any]:
    """Decode an image to grey or RGB, its transparency dropped."""
    if image.mode.startswith(("I", "F")):
        return np.asarray(image)
    palette = np.reshape((image.mode == "P" and image.getpalette()) or [0, 1, 2], (-1, 3))
    grey = image.mode in ("1", "L", "LA", "La") or bool((palette == palette[:, :1]).all())
    return np.asarray(image.convert("L" if grey else "RGB"))


@contextmanager
def open_tiff_page(
    path: Path, most: int = MAX_PIXELS, *, pyramids: bool = False, file: BinaryIO | None = None
) -> Iterator[Any]:
    """Open a TIFF's first page, after checking its claimed size and type.

    `most`: maximum number of pixels; `MAX_PIXELS` for an image that is decoded at once. `pyramids`: whether
    a pyramid of tiles may have more. `file`: the file, if already open. Raises `InputError` if it cannot be
    used.
    """
    import tifffile

    with tifffile.TiffFile(path if file is None else file) as tiff:
        page = tiff.pages[0]
        samples = page.samplesperpixel
        if not (pyramids and find_levels(page)):
            check_pixel_count(path, page.imagewidth, page.imagelength, page.imagedepth, most=most)
        if page.is_tiled or page.compression != 1:
            check_pixel_count(path, *page.chunks[: 2 if len(page.chunks) > 2 else None])
        if page.imagedepth != 1:
            raise InputError("is a volume; expected an image of one plane", file=path)
        if samples not in (1, 2, 3, 4):
            raise InputError(f"has {samples} channels; expected grey or RGB", file=path)
        if page.photometric in _UNSUPPORTED:
            raise InputError(f"is in {page.photometric.name}; expected grey or RGB", file=path)
        if page.compression not in tifffile.TIFF.DECOMPRESSORS:
            method = getattr(page.compression, "name", page.compression)
            raise InputError(f"has an unsupported compression, {method}", file=path)
        if page.dtype is None or page.dtype.kind not in "bui f" or page.dtype.itemsize > 8:
            raise InputError("has pixels of an unknown type; expected 8 or 16 bit", file=path)
        yield page


def convert_samples(page: Any, pixels: NDArray[Any]) -> NDArray[Any]:
    """Convert a page's samples to grey, where more is brighter, or to colours.

    `pixels`: (height, width) or (height, width, samples), the complete page or a part of it.
    """
    if pixels.ndim == 3 and page.photometric == _SEPARATED and pixels.shape[-1] == 4:
        return _in_bands(pixels, _from_inks)
    if pixels.ndim == 3 and page.photometric == _YCBCR and page.compression not in JPEG_COMPRESSIONS:
        return _in_bands(pixels, _from_luminance)
    if pixels.ndim == 3:
        pixels = pixels[..., :3] if pixels.shape[-1] >= 3 else pixels[..., 0]
    elif page.photometric == 3 and page.colormap is not None:
        return np.moveaxis((page.colormap >> 8).astype(np.uint8)[:, pixels], 0, -1)
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * 255
    if page.photometric == 0:
        pixels = -pixels if pixels.dtype.kind == "f" else np.iinfo(pixels.dtype).max - pixels
    return pixels


def _in_bands(pixels: NDArray[Any], convert: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
    """Convert samples to RGB of the same depth in bands, which needs an eighth of the memory."""
    most = np.iinfo(pixels.dtype).max
    converted = np.empty((*pixels.shape[:2], 3), dtype=pixels.dtype)
    for row in range(0, len(pixels), _BAND):
        rgb = convert(pixels[row : row + _BAND].astype(np.float32) / most)
        converted[row : row + _BAND] = np.rint(np.clip(rgb, 0, 1) * most)
    return converted


def _from_inks(inks: NDArray[Any]) -> NDArray[Any]:
    """Convert cyan, magenta, yellow and black, 0 to 1, to red, green and blue."""
    return np.asarray((1 - inks[..., :3]) * (1 - inks[..., 3:]))


def _from_luminance(samples: NDArray[Any]) -> NDArray[Any]:
    """Convert luminance and two colour differences, 0 to 1, to red, green and blue (ITU-R BT.601)."""
    y, blue, red = samples[..., 0], samples[..., 1] - _MIDDLE, samples[..., 2] - _MIDDLE
    return np.stack([y + 1.402 * red, y - 0.344136 * blue - 0.714136 * red, y + 1.772 * blue], axis=-1)


def apply_orientation(pixels: NDArray[Any], turn: int) -> NDArray[Any]:
    """Apply the EXIF orientation 1 to 8 to pixels."""
    if turn in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if turn in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if turn in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels


def load_image(path: Path | str, displays: Displays = MappingProxyType({})) -> NDArray[np.uint8]:
    """Read the pixels for display.

    Raises `InputError` as `load_planes`.

    `displays`: displays of channels that differ from the default. The result has shape (height, width) or
    (height, width, 3). By default, samples of more than 8 bit are mapped so that the darkest thousandth is
    black and the brightest is white, the same for all three colours. Channels stored page by page are added
    up in their colours, each with its own contrast.
    """
    path = Path(path)
    planes = load_planes(path)
    with image_errors(path):
        return np.ascontiguousarray(render(planes, displays))


def load_planes(path: Path) -> tuple[ChannelPlane, ...]:
    """Read the channels with the depth of the file; for a stack, those of the first focal plane.

    Transparency is dropped. Raises `InputError` as `read_image`, and for more than 179 million pixels, which
    are shown by tiles instead (`raterscope.app.formats.pyramids`).
    """
    with open_planes(path) as reader:
        return reader.read()


_ReadChannels = Callable[[int, int], list[tuple[str, Colour | None, NDArray[Any]]]]


class PlaneReader:
    """Reader of focal planes and times of an open image; most images have one of each.

    `read`: called with time and plane, returns the name, colour and pixels of each channel.
    """

    def __init__(self, read: _ReadChannels, turn: int, times: int = 1, planes: int = 1) -> None:
        self._read, self._turn, self.times, self.planes = read, turn, times, planes

    def read(self, time: int = 0, plane: int = 0) -> tuple[ChannelPlane, ...]:
        """Read the channels of a focal plane at a time point, both counted from 0."""
        return tuple(
            ChannelPlane(
                name or (COLOUR if pixels.ndim == 3 else GREY),
                np.ascontiguousarray(apply_orientation(pixels, self._turn)),
                colour,
            )
            for name, colour, pixels in self._read(time, plane)
        )


@contextmanager
def open_planes(path: Path) -> Iterator[PlaneReader]:
    """Open an image for reading its focal planes. Raises `InputError` as `load_planes`."""
    with image_errors(path):
        kind = detect_image_format(path)
        if kind == "TIFF":
            with open_tiff_page(path) as page:
                yield _tiff_planes(path, page)
        else:
            with open_image(path, kind) as image:
                check_pixel_count(path, *image.size)
                turn = read_orientation(image)
                yield PlaneReader(lambda _time, _plane: [("", None, decode_pixels(image))], turn)


def _tiff_planes(path: Path, page: Any) -> PlaneReader:
    stack = find_page_stack(page.parent)
    if stack is None:
        channels, pages = find_channels(page.parent), np.full((1, 1, 1), page)
        if channels:
            pages = np.array([page.parent.pages[channel.page] for channel in channels], object)[None, None]
    else:
        channels, pages = stack.channels, stack.pages
    described: list[tuple[str, Colour | None]] = [(channel.name, channel.colour) for channel in channels]

    def read(time: int, plane: int) -> list[tuple[str, Colour | None, NDArray[Any]]]:
        chosen = pages[time, plane]
        if any(each is None for each in chosen):
            raise InputError(f"lacks focal plane {plane + 1} of time {time + 1}", file=path)
        return [
            (name, colour, _tiff_pixels(path, page, np.asarray(each.asarray())))
            for (name, colour), each in zip(described or [("", None)], chosen, strict=True)
        ]

    return PlaneReader(read, tiff_orientation(page), *pages.shape[:2])


def _tiff_pixels(path: Path, page: Any, pixels: NDArray[Any]) -> NDArray[Any]:
    axes = page.axes
    if set(axes) not in ({"Y", "X"}, {"Y", "X", "S"}):
        raise InputError(f"has the axes {axes}; expected one plane, grey or RGB", file=path)
    if "S" in axes:
        pixels = np.moveaxis(pixels, axes.index("S"), -1)
    return convert_samples(page, pixels)
