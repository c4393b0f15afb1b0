"""Pixels of images that may be masks: greys, indices of a palette, numbers of colours, transparency."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.image_structure import tiff_orientation
from raterscope.app.formats.images import MAX_PIXELS, apply_orientation, open_image, read_orientation
from raterscope.app.formats.signatures import SNIFFED, image_kind
from raterscope.app.formats.untrusted import check_shape, file_errors, refuse_packed, refuse_special

_MAX_COLOURS = 64

_BAND = 256
"""Number of rows of one band."""

_CLUSTER = 32
"""Maximum distance of a JPEG's greys from black or white, apart from its edges."""


_OPAQUE = ("Its pixels have one colour; the opaque ones are the mask.",)


class MaskPixels(NamedTuple):
    """Values of an image, (1, pages, rows, columns), and red, green and blue of each colour, (C,)."""

    values: NDArray[Any]
    colours: NDArray[np.uint32] | None = None  # None: values are greys, or indices of a palette
    notices: tuple[str, ...] = ()


def read_pixels(path: Path) -> MaskPixels:
    """Read the values of an image, turned as its orientation says.

    A JPEG is split into black and white. If all pixels have one colour, their opacity is read.
    Raises `InputError` for an image that cannot be read, or has colours or greys that are no labels.
    """
    refuse_special(path)
    with file_errors(path), path.open("rb") as file:
        if path.suffix.casefold() in (".tif", ".tiff"):
            return _tiff(path, file)
        kind = image_kind(file.read(SNIFFED))
        if kind in ("", "TIFF"):
            raise InputError("is not a PNG, JPEG, BMP, GIF or TIFF image", file=path)
        file.seek(0)
        with open_image(file, kind) as image:
            turn = read_orientation(image)
        if kind == "JPEG":
            return _turned(_jpeg(path, file), turn)
        pixels = _png_colours(path, file) or _in_colours(path, _pillow(path, file))
        opacity = _opacity(file, kind) if pixels.values.min() == pixels.values.max() else None
        if opacity is not None:
            pixels = MaskPixels(opacity[None, None], notices=_OPAQUE)
        return _turned(pixels, turn)


def _turned(pixels: MaskPixels, turn: int) -> MaskPixels:
    if turn == 1 or pixels.values.shape[1] > 1:
        return pixels
    values = np.ascontiguousarray(apply_orientation(pixels.values[0, 0], turn))
    return pixels._replace(values=values[None, None])


def _opacity(file: BinaryIO, kind: str) -> NDArray[np.uint8] | None:
    """Read the transparency of an image, 255 for opaque; None without differences."""
    file.seek(0)
    with open_image(file, kind) as image:
        if image.mode not in ("RGBA", "LA"):
            return None
        opacity = np.asarray(image.getchannel("A"))
    return opacity if opacity.min() < opacity.max() else None


def _jpeg(path: Path, file: BinaryIO) -> MaskPixels:
    """Read a mask in black and white, or another grey, that JPEG has blurred."""
    file.seek(0)
    with open_image(file, "JPEG") as image:
        _refuse_large(path, image.width * image.height, MAX_PIXELS // 4)
        bands = np.asarray(image.convert("YCbCr"))
    values = bands[..., 0]
    is_coloured = (np.abs(bands[..., 1:].astype(np.int16) - 128) > _CLUSTER).any()
    white = None if is_coloured else split_black_white(values)
    if white is None:
        raise InputError(
            "is a JPEG with colours or greys, which compression has changed; a mask in JPEG can be read only "
            "if it is black and white (save it as PNG)",
            file=path,
        )
    blurred = bool(((values > 0) & (values < values.max())).any())
    notices = ("Its edges are blurred by JPEG: pixels that are at least half white are the mask.",)
    return MaskPixels((white * np.uint8(255))[None, None], notices=notices if blurred else ())


def split_black_white(values: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return the white pixels of an image in black and white with blurred edges; None for other images."""
    bright = values > values.max(initial=0) / 2
    level = float(np.median(values[bright])) if bright.any() else 255.0
    black, white = values <= _CLUSTER, np.abs(values - level) <= _CLUSTER
    blurred = values.size - np.count_nonzero(black) - np.count_nonzero(white)
    if level < 4 * _CLUSTER or 2 * blurred > np.count_nonzero(white):
        return None
    return np.asarray(values >= level / 2)


def _in_colours(path: Path, pages: NDArray[Any]) -> MaskPixels:
    """Replace the colours of pages, (pages, rows, columns, 3), by numbers; greys stay as they are."""
    if pages.ndim == 3:
        return MaskPixels(pages[None])
    if all((band[..., :1] == band).all() for band in bands(pages)):
        return MaskPixels(pages[None, ..., 0])
    colours, count = np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int64)
    for band in bands(pages):
        packed = _pack_colours(band).ravel()
        first, lengths = _runs(packed)
        colours, index = np.unique(np.concatenate([colours, packed[first]]), return_inverse=True)
        count = np.bincount(index, weights=np.concatenate([count, lengths])).astype(np.int64)
        if len(colours) > _MAX_COLOURS:
            raise InputError(_too_many_colours(), file=path)
    rank, chosen = _rank_colours(colours, count)
    values = np.empty(pages.shape[:-1], dtype=np.uint8)
    for into, band in zip(bands(values, 2), bands(pages), strict=True):
        into[...] = rank[np.searchsorted(colours, _pack_colours(band))]
    return MaskPixels(values[None], chosen)


def _runs(packed: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the begin and length of each run of one colour; a mask has few runs per row."""
    first = np.flatnonzero(np.concatenate([[True], packed[1:] != packed[:-1]]))
    return first, np.diff(np.append(first, len(packed)))


def _rank_colours(
    colours: NDArray[np.uint32], count: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Rank sorted colours, 0 for the background (black, or else the commonest); return ranks and order."""
    background = 0 if colours[0] == 0 else int(np.argmax(count))
    order = np.concatenate([[background], np.delete(np.arange(len(colours)), background)])
    rank = np.empty(len(order), dtype=np.uint8)
    rank[order] = np.arange(len(order))
    return rank, colours[order]


def bands(pages: NDArray[Any], inner: int = 3) -> Iterator[NDArray[Any]]:
    """Yield an image in bands of rows of a page; `inner` axes belong to one page."""
    for page in pages.reshape(-1, *pages.shape[-inner:]) if pages.size else ():
        for row in range(0, len(page), _BAND):
            yield page[row : row + _BAND]


def _pack_colours(pixels: NDArray[Any]) -> NDArray[np.uint32]:
    """Combine red, green and blue to one number."""
    red, green, blue = (pixels[..., channel].astype(np.uint32) for channel in range(3))
    return np.asarray(red << 16 | green << 8 | blue, dtype=np.uint32)


def _png_colours(path: Path, file: BinaryIO) -> MaskPixels | None:
    """Read a colour PNG in bands of rows; None for any other image.

    A few kB may contain 169 million pixels; each is stored as one byte.
    """
    from raterscope.app.formats.pyramids.flat import png_form, png_rows

    file.seek(0)
    with Image.open(file, formats=("PNG", "BMP", "GIF")) as image:
        width, height, kind, mode = *image.size, image.format, image.mode
    _refuse_large(path, width * height, MAX_PIXELS)
    form = png_form(file) if kind == "PNG" and mode in ("RGB", "RGBA") else None
    if form is None or form[1] != np.uint8:
        return None
    numbers = np.zeros((1, 1, height, width), dtype=np.uint8)
    colours, count = np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int64)
    row = 0
    for band in png_rows(file, width, height):
        packed = _pack_colours(band).ravel()
        first, lengths = _runs(packed)
        band_colours, index = np.unique(packed[first], return_inverse=True)
        colours = np.concatenate([colours, band_colours[~np.isin(band_colours, colours)]])
        if len(colours) > _MAX_COLOURS and not _is_grey(colours).all():
            raise InputError(_too_many_colours(), file=path)
        order = np.argsort(colours)
        number = order[np.searchsorted(colours, band_colours, sorter=order)][index]
        count = np.concatenate([count, np.zeros(len(colours) - len(count), dtype=np.int64)])
        count += np.bincount(number, weights=lengths, minlength=len(colours)).astype(np.int64)
        numbers[0, 0, row : row + len(band)] = np.repeat(number, lengths).reshape(band.shape[:2])
        row += len(band)
    if _is_grey(colours).all():
        rank = (colours & 255).astype(np.uint8)
        chosen = None
    else:
        order = np.argsort(colours)
        ranked, chosen = _rank_colours(colours[order], count[order])
        rank = np.empty(len(colours), dtype=np.uint8)
        rank[order] = ranked
    for rows in bands(numbers, 2):
        rows[...] = rank[rows]
    return MaskPixels(numbers, chosen)


def _is_grey(colours: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return np.asarray((colours & 255) * np.uint32(0x010101) == colours)


def _too_many_colours() -> str:
    return f"has more than {_MAX_COLOURS} colours; expected a mask with one colour per structure"


def _refuse_large(path: Path, pixels: int, most: int) -> None:
    if pixels > most:
        raise InputError(f"claims more than {most // 1_000_000} million pixels", file=path)


def _pillow(path: Path, file: BinaryIO) -> NDArray[Any]:
    """Read a complete image; a colour image may have at most a quarter of the pixels."""
    file.seek(0)
    with Image.open(file, formats=("PNG", "BMP", "GIF")) as image:
        if image.mode in ("RGB", "RGBA"):
            _refuse_large(path, image.width * image.height, MAX_PIXELS // 4)
            colours = np.empty((1, image.height, image.width, 3), dtype=np.uint8)
            for row in range(0, image.height, _BAND):
                band = image.crop((0, row, image.width, min(row + _BAND, image.height)))
                colours[0, row : row + _BAND] = np.asarray(band)[..., :3]
            return colours
        if image.mode == "1":
            return np.asarray(image).astype(np.uint8)[None]
        return np.asarray(image.getchannel(0) if image.mode == "LA" else image)[None]


def _tiff(path: Path, file: BinaryIO) -> MaskPixels:
    """Read the pages of a TIFF, as `read_pixels` does."""
    import tifffile

    with tifffile.TiffFile(file) as tiff:
        first = tiff.pages[0]
        sizes = (len(tiff.pages), first.imagelength, first.imagewidth)
        check_shape(path, (*sizes, first.samplesperpixel))
        check_shape(path, tuple(first.chunks))
        if first.dtype is None or first.dtype.kind not in "buif" or first.imagedepth != 1:
            raise InputError("has pixels of an unknown type; expected masks", file=path)
        refuse_packed(path, math.prod((*sizes, first.samplesperpixel)) * first.dtype.itemsize)
        pages = []
        for page in tiff.pages:
            if page.shape != first.shape or page.dtype != first.dtype or page.chunks != first.chunks:
                raise InputError("has pages of different sizes; expected masks of one volume", file=path)
            pages.append(np.asarray(page.asarray()))
        axes = first.axes
        if axes not in ("YX", "YXS", "SYX"):
            raise InputError(f"has the axes {plain(axes)}; expected pages of rows and columns", file=path)
        stack = np.stack(pages)
        if axes == "SYX":
            stack = np.moveaxis(stack, 1, -1)
        is_opacity = False
        if stack.ndim == 4:
            colours, last = stack[..., : 3 if stack.shape[-1] >= 3 else 1], stack[..., -1]
            is_plain = stack.shape[-1] in (2, 4) and (colours == colours[0, 0, 0]).all()
            is_opacity = bool(is_plain and last.min() < last.max())
            stack = last if is_opacity else colours if colours.shape[-1] == 3 else colours[..., 0]
        if stack.dtype == np.bool_:
            stack = stack.astype(np.uint8)
        if first.photometric == 0 and not is_opacity:
            stack = stack.max() - stack
        pixels = _in_colours(path, stack)
        return _turned(pixels._replace(notices=_OPAQUE) if is_opacity else pixels, tiff_orientation(first))
