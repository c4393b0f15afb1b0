"""Photographs: PNG, JPEG and TIFF of 8 and 16 bit, grey and colour."""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from raterscope.app.errors import InputError
from raterscope.app.formats.records import ImageFile, refuse_special
from raterscope.app.formats.sources import IMAGES, SNIFFED, File, Source, image_kind, open_source
from raterscope.app.formats.tiff_pages import channels_of, mixed, tiff_levels, tiff_orientation
from raterscope.app.formats.untrusted import in_a_sentence, opened

__all__ = [
    "JPEG_COMPRESSIONS",
    "LARGEST",
    "MOST_PIXELS",
    "ImageHead",
    "Pages",
    "as_shown",
    "contrast",
    "is_image",
    "kind_of_file",
    "load_image",
    "open_photograph",
    "orientation",
    "pillow_pixels",
    "read_image",
    "read_image_head",
    "refuse_bomb",
    "sentences",
    "stretched",
    "tiff_page",
    "turned",
]


MOST_PIXELS = 179_000_000
"""Of an image that is decoded as a whole."""

LARGEST = 400_000_000
"""Pixels of an image that is decoded once to be cut into tiles."""

JPEG_COMPRESSIONS = frozenset((6, 7, 34892, 33007))
"""Of TIFF tiles: the decoder gives RGB, and they may lack tables that stand elsewhere in the file."""

_SEPARATED, _YCBCR = 5, 6
_MIDDLE = 128 / 255
_BAND = 256
_UNSEEN = (4, 8, 9, 10)
"""Photometric interpretations that are no pictures here: masks for transparency, CIE Lab."""

_DARKEST, _BRIGHTEST = 0.1, 99.9
_SAMPLE = 1_000_000
_ORIENTATION = 0x0112
_LONGEST_EXIF = 1 << 16

# Pillow warns at half the size at which it refuses; these modules say themselves what is too large.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
# tifffile writes to the terminal what is odd about a file; whether it can be shown is said here.
logging.getLogger("tifffile").setLevel(logging.CRITICAL)


def kind_of_file(path: Path, file: BinaryIO | None = None) -> str:
    """Tell PNG, JPEG or TIFF by a file's first bytes, read from `file` if it is open already.

    Raises
    ------
    InputError
        For a file that is none of them, or is empty.
    """
    refuse_special(path)
    with opened(path, file) as stream:
        start = stream.read(SNIFFED)
        stream.seek(0)
    if not start:
        raise InputError("is empty; expected an image", file=path)
    kind = image_kind(start)
    if not kind:
        raise InputError("is no image that Raterscope reads; expected PNG, JPEG or TIFF", file=path)
    return kind


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Turn whatever a decoder says of a damaged file into a sentence."""
    with in_a_sentence(path, "an image"):
        try:
            yield
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise InputError(_too_large(MOST_PIXELS), file=path) from error


def refuse_bomb(path: Path, *lengths: int, most: int = MOST_PIXELS) -> None:
    """Refuse an image that claims no pixels, or more than `most`.

    Raises
    ------
    InputError
    """
    if min(lengths) < 1:
        raise InputError("has no pixels", file=path)
    if math.prod(lengths) > most:
        raise InputError(_too_large(most), file=path)


def _too_large(most: int) -> str:
    instead = "a pyramidal TIFF may be larger" if most == LARGEST else "cut it into smaller images"
    return f"claims more than {most // 1_000_000} million pixels; {instead}"


def open_photograph(path: Path | BinaryIO, kind: str) -> Image.Image:
    """Read the head of a PNG or JPEG, of any size: `Image.open` refuses what is read here by tiles."""
    return PngImageFile(path) if kind == "PNG" else JpegImageFile(path)


def orientation(image: Image.Image) -> int:
    """Give the orientation, 1 to 8, that the EXIF of a PNG or JPEG asks for, before its pixels are read."""
    try:
        if isinstance(image, PngImageFile):
            # Asked itself, Pillow decodes all of a PNG to see whether EXIF follows.
            exif = Image.Exif()
            exif.load(_png_exif(image.fp))
            turn = exif.get(_ORIENTATION) or _xmp_orientation(image)
        else:
            turn = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF does not make the pixels worse
        return 1
    return turn if turn in range(1, 9) else 1


def _png_exif(file: IO[bytes] | None) -> bytes:
    if file is None:
        return b""
    position = file.tell()
    try:
        file.seek(8)
        while len(head := file.read(8)) == 8:
            length = int.from_bytes(head[:4], "big")
            if head[4:] == b"eXIf":
                return file.read(min(length, _LONGEST_EXIF))
            file.seek(length + 4, 1)
        return b""
    finally:
        file.seek(position)


def _xmp_orientation(image: Image.Image) -> int:
    found = re.search(r'tiff:Orientation(="|>)([1-8])', str(image.info.get("XML:com.adobe.xmp", "")))
    return int(found[2]) if found else 1


def pillow_pixels(image: Image.Image) -> NDArray[Any]:
    """Decode an image to grey or RGB, its transparency dropped."""
    if image.mode.startswith(("I", "F")):
        return np.asarray(image)
    grey = image.mode in ("1", "L", "LA", "La")
    return np.asarray(image.convert("L" if grey else "RGB"))


@contextmanager
def tiff_page(
    path: Path, most: int = MOST_PIXELS, *, pyramids: bool = False, file: BinaryIO | None = None
) -> Iterator[Any]:
    """Open a TIFF's first page, having looked at what it claims.

    Parameters
    ----------
    path : Path
    most : int
        Pixels that it may have; what is decoded at once has at most `MOST_PIXELS`.
    pyramids : bool
        Let a pyramid of tiles have more.
    file : BinaryIO, optional
        The file where it is open already.

    Raises
    ------
    InputError
    """
    import tifffile

    with tifffile.TiffFile(path if file is None else file) as tiff:
        page = tiff.pages[0]
        samples = page.samplesperpixel
        if not (pyramids and tiff_levels(page)):
            refuse_bomb(path, page.imagewidth, page.imagelength, page.imagedepth, most=most)
        if page.is_tiled or page.compression != 1:
            refuse_bomb(path, *page.chunks[: 2 if len(page.chunks) > 2 else None])
        if page.imagedepth != 1:
            raise InputError("is a volume; expected an image of one plane", file=path)
        if samples not in (1, 2, 3, 4):
            raise InputError(f"has {samples} channels; expected grey or RGB", file=path)
        if page.photometric in _UNSEEN:
            raise InputError(f"is in {page.photometric.name}; expected grey or RGB", file=path)
        if page.compression not in tifffile.TIFF.DECOMPRESSORS:
            way = getattr(page.compression, "name", page.compression)
            raise InputError(f"is compressed in a way that is not read here, {way}", file=path)
        if page.dtype is None or page.dtype.kind not in "bui f" or page.dtype.itemsize > 8:
            raise InputError("has pixels of an unknown type; expected 8 or 16 bit", file=path)
        yield page


def as_shown(page: Any, pixels: NDArray[Any]) -> NDArray[Any]:
    """Turn a page's samples into grey where more is brighter, or into colours.

    Parameters
    ----------
    page : tifffile.TiffPage
    pixels : (height, width) or (height, width, samples)
        The whole page or a piece of it.
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


def _in_bands(pixels: NDArray[Any], turn: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
    """Turn samples into RGB of their own depth; the floats of a whole image would be eight times its size."""
    most = np.iinfo(pixels.dtype).max
    found = np.empty((*pixels.shape[:2], 3), dtype=pixels.dtype)
    for row in range(0, len(pixels), _BAND):
        rgb = turn(pixels[row : row + _BAND].astype(np.float32) / most)
        found[row : row + _BAND] = np.rint(np.clip(rgb, 0, 1) * most)
    return found


def _from_inks(inks: NDArray[Any]) -> NDArray[Any]:
    """Turn cyan, magenta, yellow and black, 0 to 1, into red, green and blue."""
    return np.asarray((1 - inks[..., :3]) * (1 - inks[..., 3:]))


def _from_luminance(told: NDArray[Any]) -> NDArray[Any]:
    """Turn luminance and two differences of colour, 0 to 1, into red, green and blue (ITU-R BT.601)."""
    y, blue, red = told[..., 0], told[..., 1] - _MIDDLE, told[..., 2] - _MIDDLE
    return np.stack([y + 1.402 * red, y - 0.344136 * blue - 0.714136 * red, y + 1.772 * blue], axis=-1)


def contrast(pixels: NDArray[Any]) -> tuple[float, float]:
    """Find which values are shown black and white: a regular sample's darkest and brightest thousandth."""
    step = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // _SAMPLE))
    sample = pixels[::step, ::step].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    if not len(sample):
        return 0.0, 0.0
    low, high = np.percentile(sample, [_DARKEST, _BRIGHTEST])
    if high <= low:
        low, high = sample.min(), sample.max()
    return float(low), float(high)


def stretched(pixels: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Map to 8 bit, `low` to black and `high` to white; bytes stay as they are."""
    if pixels.dtype == np.uint8:
        return pixels
    if high <= low:
        return np.zeros(pixels.shape, dtype=np.uint8)
    mapped = np.empty(pixels.shape, dtype=np.uint8)
    for row in range(0, len(pixels), _BAND):  # the floats of a whole image would be eight times its size
        band = (pixels[row : row + _BAND].astype(np.float64) - low) * (255.0 / (high - low))
        mapped[row : row + _BAND] = np.rint(np.clip(np.nan_to_num(band), 0.0, 255.0))
    return mapped


def turned(pixels: NDArray[Any], turn: int) -> NDArray[Any]:
    """Turn pixels as the EXIF orientation 1 to 8 asks."""
    if turn in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if turn in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if turn in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels


_LONGEST_DESCRIPTION = 100_000
_MICROMETRES = {
    "micron": 1.0, "microns": 1.0, "um": 1.0, "µm": 1.0, "μm": 1.0, "\\u00B5m": 1.0, "&#181;m": 1.0,
    "nm": 1e-3, "mm": 1e3, "cm": 1e4, "m": 1e6,
}  # fmt: skip
"""Of a unit, as ImageJ and OME call it."""

_OF_RESOLUTION = {2: 25_400.0, 3: 10_000.0}
"""Micrometres of the unit that a TIFF's resolution is told in: inch, centimetre."""

_FINER_THAN_PRINTERS = 5.0
"""Micrometres: a resolution below it is a microscope's; printers and scanners of paper have coarser ones."""


@dataclass(frozen=True)
class Pages:
    """Pages of a TIFF: slices, and their distances (slice, row, column) in mm where the file has them."""

    slices: int
    steps: tuple[float, float, float] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageHead:
    """Header of an image.

    Attributes
    ----------
    file : ImageFile
    rows, columns : int
        As stored, before an orientation is applied.
    channels : int
    is_compressed : bool
    pages : Pages, InputError or None
        Of a TIFF; or why its pages make no volume.
    """

    file: ImageFile
    rows: int
    columns: int
    channels: int
    is_compressed: bool
    pages: Pages | InputError | None = None

    def checked_pages(self) -> Pages | None:
        """Give the pages of a TIFF, None for another format, or raise the problem."""
        if isinstance(self.pages, InputError):
            raise self.pages.with_traceback(None)
        return self.pages


def is_image(file: File) -> bool:
    """Tell by a file's first bytes whether it is an image of a kind that is read here."""
    try:
        return open_source(file).format in IMAGES
    except InputError:
        return False


def read_image(file: File) -> ImageFile:
    """Read the head of an image: its size as shown, an orientation that it asks for applied.

    Raises
    ------
    InputError
        For a file that is no PNG, JPEG or TIFF, is damaged, or claims more than 400 million pixels and is no
        pyramid.
    """
    if isinstance(file, Source):
        return file.image().file
    return read_image_head(Path(file)).file


def read_image_head(path: Path, file: BinaryIO | None = None, *, pages: bool = False) -> ImageHead:
    """Read the head of an image, from `file` if it is open already.

    Parameters
    ----------
    path : Path
    file : BinaryIO, optional
    pages : bool
        Look for slices among the pages of a TIFF, unless it is too large to be one.

    Raises
    ------
    InputError
        As `read_image`.
    """
    from raterscope.app.formats.pyramids.slide_source import SlideSource, is_slide

    pixel_size, found, channels, is_compressed = None, None, 1, True
    with sentences(path), opened(path, file) as stream:
        kind = kind_of_file(path, stream)
        if is_slide(path):
            slide, turn = SlideSource(path), 1
            (columns, rows), pixel_size, channels = slide.pyramid.levels[0], slide.pixel_size, 3
        elif kind == "TIFF":
            with tiff_page(path, LARGEST, pyramids=True, file=stream) as page:
                columns, rows, turn = page.imagewidth, page.imagelength, tiff_orientation(page)
                channels, is_compressed = int(page.samplesperpixel), int(page.compression) != 1
                pixel_size = _micrometres(page)
                if pages and columns * rows <= MOST_PIXELS:
                    found = _pages(path, page.parent)
        else:
            with open_photograph(stream, kind) as image:
                (columns, rows), turn = image.size, orientation(image)
                channels = 1 if image.mode == "P" else len(image.getbands())
            refuse_bomb(path, columns, rows, most=LARGEST)
    width, height = (rows, columns) if turn >= 5 else (columns, rows)
    image_file = ImageFile(name=path.name, path=path, width=width, height=height, pixel_size=pixel_size)
    return ImageHead(image_file, rows, columns, channels, is_compressed, found)


def _pages(path: Path, file: Any) -> Pages | InputError:
    from raterscope.app.formats.volumes.stacks import read_pages

    try:
        with sentences(path):
            return read_pages(path, file)
    except InputError as error:
        error.__cause__ = error.__context__ = None  # whose frames hold the file
        return error


def load_image(path: Path | str) -> NDArray[np.uint8]:
    """Read the pixels for showing.

    Returns
    -------
    (height, width) or (height, width, 3) uint8
        More than 8 bit are mapped so that the darkest thousandth is black and the brightest is white, the
        same for all three colours. Transparency is dropped. Channels that lie page by page are laid over one
        another in their colours, each with a contrast of its own.

    Raises
    ------
    InputError
        As `read_image`, and for more than 179 million pixels, which are shown by tiles instead
        (`raterscope.app.formats.pyramids`).
    """
    path = Path(path)
    with sentences(path):
        kind = kind_of_file(path)
        if kind == "TIFF":
            with tiff_page(path) as page:
                pixels, turn = _tiff_pixels(path, page), tiff_orientation(page)
                if channels := channels_of(page.parent):
                    pages = (page.parent.pages[one.page] for one in channels)
                    pixels = mixed([_stretched(as_shown(one, one.asarray())) for one in pages], channels)
        else:
            with open_photograph(path, kind) as image:
                refuse_bomb(path, *image.size)
                turn = orientation(image)
                pixels = pillow_pixels(image)
        return np.ascontiguousarray(turned(_stretched(pixels), turn))


def _stretched(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    return pixels if pixels.dtype == np.uint8 else stretched(pixels, *contrast(pixels))


def _tiff_pixels(path: Path, page: Any) -> NDArray[Any]:
    pixels = np.asarray(page.asarray())
    axes = page.axes
    if set(axes) not in ({"Y", "X"}, {"Y", "X", "S"}):
        raise InputError(f"has the axes {axes}; expected one plane, grey or RGB", file=path)
    if "S" in axes:
        pixels = np.moveaxis(pixels, axes.index("S"), -1)
    return as_shown(page, pixels)


def _micrometres(page: Any) -> float | None:
    """Read the size of a pixel as ImageJ or OME writes it, else by a resolution that no printer has."""
    text = str(page.description or "")[:_LONGEST_DESCRIPTION]
    resolution = page.tags.get(282)
    pixels, length = resolution.value if resolution is not None else (0, 0)
    along = length / pixels if pixels else 0.0
    if text.startswith("ImageJ="):
        unit = re.search(r"^unit=(.*)$", text, re.MULTILINE)
        size = along * _MICROMETRES.get(unit.group(1).strip(), 0.0) if unit is not None else 0.0
    elif found := re.search(r'<Pixels\b[^>]*\bPhysicalSizeX="([0-9.eE+-]+)"', text):
        unit = re.search(r'<Pixels\b[^>]*\bPhysicalSizeXUnit="([^"]*)"', text)
        size = float(found.group(1)) * (1.0 if unit is None else _MICROMETRES.get(unit.group(1), 0.0))
    else:
        told = page.tags.get(296)
        size = along * _OF_RESOLUTION.get(2 if told is None else told.value, 0.0)
        size = size if size < _FINER_THAN_PRINTERS else 0.0
    return size if 0.0 < size < 1e6 else None
