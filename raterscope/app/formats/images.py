"""Photographs: PNG, JPEG and TIFF of 8 and 16 bit, grey and colour.

What a file claims is looked at before a pixel is decoded: a few hundred bytes can claim a gigabyte.
"""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.app.errors import InputError
from raterscope.app.formats.records import ImageFile, refuse_study

__all__ = ["MOST_PIXELS", "is_image", "load_image", "read_image"]

MOST_PIXELS = 179_000_000
_DARKEST, _BRIGHTEST = 0.1, 99.9
_SAMPLE = 1_000_000
_LONGEST_DESCRIPTION = 100_000
_MICROMETRE = ("micron", "microns", "um", "µm", "μm", "\\u00B5m", "&#181;m")
_ORIENTATION = 0x0112
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
}

# Pillow warns at half the size at which it refuses; this module says itself what is too large.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
# tifffile writes to the terminal what is odd about a file; whether it can be shown is said here.
logging.getLogger("tifffile").setLevel(logging.CRITICAL)


def is_image(path: Path) -> bool:
    """Tell by a file's first bytes whether it is an image of a kind that is read here."""
    try:
        return _kind(_start(path)) is not None
    except (OSError, InputError):
        return False


def read_image(path: Path | str) -> ImageFile:
    """Read the head of an image: its size as shown, an orientation that it asks for applied.

    Raises
    ------
    InputError
        For a file that is no PNG, JPEG or TIFF, is damaged, or claims more than 179 million pixels.
    """
    path = Path(path)
    pixel_size = None
    with _sentences(path):
        if _kind_of_file(path) == "TIFF":
            with _tiff_page(path) as page:
                width, height, turn = page.imagewidth, page.imagelength, _tiff_orientation(page)
                pixel_size = _micrometres(page)
        else:
            with Image.open(path, formats=("PNG", "JPEG")) as image:
                (width, height), turn = image.size, _orientation(image)
                _refuse_bomb(path, width, height)
    if turn >= 5:
        width, height = height, width
    return ImageFile(name=path.name, path=path, width=width, height=height, pixel_size=pixel_size)


def load_image(path: Path | str) -> NDArray[np.uint8]:
    """Read the pixels for showing.

    Returns
    -------
    (height, width) or (height, width, 3) uint8
        More than 8 bit are mapped so that the darkest thousandth is black and the brightest is white, the
        same for all three colours. Transparency is dropped.

    Raises
    ------
    InputError
        As `read_image`.
    """
    path = Path(path)
    with _sentences(path):
        if _kind_of_file(path) == "TIFF":
            with _tiff_page(path) as page:
                pixels, turn = _tiff_pixels(path, page), _tiff_orientation(page)
        else:
            with Image.open(path, formats=("PNG", "JPEG")) as image:
                _refuse_bomb(path, *image.size)
                turn = _orientation(image)
                pixels = _pillow_pixels(image)
        if pixels.dtype != np.uint8:
            pixels = _stretched(pixels)
        return np.ascontiguousarray(_turned(pixels, turn))


def _kind(start: bytes) -> str | None:
    return next((kind for signature, kind in _SIGNATURES.items() if start.startswith(signature)), None)


def _start(path: Path) -> bytes:
    refuse_study(path)
    with path.open("rb") as file:
        return file.read(8)


def _kind_of_file(path: Path) -> str:
    start = _start(path)
    if not start:
        raise InputError("is empty; expected an image", file=path)
    kind = _kind(start)
    if kind is None:
        raise InputError("is no image that Raterscope reads; expected PNG, JPEG or TIFF", file=path)
    return kind


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turn whatever a decoder says of a damaged file into a sentence."""
    try:
        yield
    except InputError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InputError(_too_large(), file=path) from error
    except FileNotFoundError as error:
        raise InputError("is not there", file=path) from error
    except IsADirectoryError as error:
        raise InputError("is a folder; expected an image", file=path) from error
    except PermissionError as error:
        raise InputError("cannot be read: you lack the permission", file=path) from error
    except MemoryError as error:
        raise InputError("does not fit into this computer's memory", file=path) from error
    except Exception as error:  # decoders of strangers' files raise anything
        raise InputError("cannot be read: the image is damaged or cut short", file=path) from error


def _too_large() -> str:
    return f"claims more than {MOST_PIXELS // 1_000_000} million pixels; cut it into smaller images"


def _refuse_bomb(path: Path, *lengths: int) -> None:
    if min(lengths) < 1:
        raise InputError("has no pixels", file=path)
    if math.prod(lengths) > MOST_PIXELS:
        raise InputError(_too_large(), file=path)


def _orientation(image: Image.Image) -> int:
    try:
        turn = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF does not make the pixels worse
        return 1
    return turn if turn in range(1, 9) else 1


def _pillow_pixels(image: Image.Image) -> NDArray[Any]:
    if image.mode.startswith(("I", "F")):
        return np.asarray(image)
    grey = image.mode in ("1", "L", "LA", "La")
    return np.asarray(image.convert("L" if grey else "RGB"))


@contextmanager
def _tiff_page(path: Path) -> Iterator[Any]:
    import tifffile

    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        samples = page.samplesperpixel
        _refuse_bomb(path, page.imagewidth, page.imagelength, page.imagedepth)
        _refuse_bomb(path, *page.chunks[: 2 if len(page.chunks) > 2 else None])
        if page.imagedepth != 1:
            raise InputError("is a volume; expected an image of one plane", file=path)
        if samples not in (1, 2, 3, 4):
            raise InputError(f"has {samples} channels; expected grey or RGB", file=path)
        if page.dtype is None or page.dtype.kind not in "bui f" or page.dtype.itemsize > 8:
            raise InputError("has pixels of an unknown type; expected 8 or 16 bit", file=path)
        yield page


def _tiff_pixels(path: Path, page: Any) -> NDArray[Any]:
    pixels = np.asarray(page.asarray())
    axes = page.axes
    if set(axes) not in ({"Y", "X"}, {"Y", "X", "S"}):
        raise InputError(f"has the axes {axes}; expected one plane, grey or RGB", file=path)
    if "S" in axes:
        pixels = np.moveaxis(pixels, axes.index("S"), -1)
        pixels = pixels[..., :3] if pixels.shape[-1] >= 3 else pixels[..., 0]
    elif page.photometric == 3 and page.colormap is not None:
        return np.moveaxis((page.colormap >> 8).astype(np.uint8)[:, pixels], 0, -1)
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * 255
    if page.photometric == 0:
        pixels = pixels.max() - pixels if pixels.dtype.kind == "f" else np.iinfo(pixels.dtype).max - pixels
    return pixels


def _tiff_orientation(page: Any) -> int:
    tag = page.tags.get(274)
    return tag.value if tag is not None and tag.value in range(1, 9) else 1


def _micrometres(page: Any) -> float | None:
    """Read the size of a pixel as ImageJ or OME writes it; resolutions for printers tell nothing of it."""
    text = str(page.description or "")[:_LONGEST_DESCRIPTION]
    if text.startswith("ImageJ="):
        unit = re.search(r"^unit=(.*)$", text, re.MULTILINE)
        tag = page.tags.get(282)
        if unit is None or tag is None or unit.group(1).strip() not in _MICROMETRE:
            return None
        pixels, length = tag.value
        size = length / pixels if pixels else 0.0
    else:
        found = re.search(r'<Pixels\b[^>]*\bPhysicalSizeX="([0-9.eE+-]+)"', text)
        unit = re.search(r'<Pixels\b[^>]*\bPhysicalSizeXUnit="([^"]*)"', text)
        if found is None or (unit is not None and unit.group(1) not in _MICROMETRE):
            return None
        size = float(found.group(1))
    return size if 0.0 < size < 1e6 else None


def _stretched(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Map to 8 bit by robust percentiles of a regular sample."""
    step = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // _SAMPLE))
    sample = pixels[::step, ::step].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    if not len(sample):
        return np.zeros(pixels.shape, dtype=np.uint8)
    low, high = np.percentile(sample, [_DARKEST, _BRIGHTEST])
    if high <= low:
        low, high = float(sample.min()), float(sample.max())
    if high <= low:
        return np.zeros(pixels.shape, dtype=np.uint8)
    mapped = np.empty(pixels.shape, dtype=np.uint8)
    for row in range(
        0, len(pixels), 256
    ):  # in bands: the floats of a whole image would be eight times its size
        band = (pixels[row : row + 256].astype(np.float64) - low) * (255.0 / (high - low))
        mapped[row : row + 256] = np.rint(np.clip(np.nan_to_num(band), 0.0, 255.0))
    return mapped


def _turned(pixels: NDArray[np.uint8], turn: int) -> NDArray[np.uint8]:
    """Turn pixels as the EXIF orientation 1 to 8 asks."""
    if turn in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if turn in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if turn in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels
