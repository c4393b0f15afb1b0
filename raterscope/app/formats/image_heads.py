"""Headers of image files (size, pixel size, pages of a TIFF), and overviews of images of any size."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from raterscope.algorithms.image_display import Displays
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.image_structure import (
    find_channels,
    lacks_end,
    lacks_pixels,
    read_chunks,
    series_of,
    tiff_orientation,
)
from raterscope.app.formats.images import (
    LARGEST,
    MAX_PIXELS,
    check_pixel_count,
    detect_image_format,
    image_errors,
    load_image,
    open_image,
    open_tiff_page,
    read_orientation,
)
from raterscope.app.formats.pyramids import is_large, open_pyramid
from raterscope.app.formats.pyramids.pyramid import Pixels, SlideSource, is_slide
from raterscope.app.formats.records import ImageFile
from raterscope.app.formats.untrusted import check_shape, open_file, refuse_packed

_LONGEST_DESCRIPTION = 100_000
_UNITS = {
    "mm": 1.0, "millimeter": 1.0, "cm": 10.0, "m": 1000.0, "nm": 1e-6,
    "micron": 1e-3, "microns": 1e-3, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "\\u00b5m": 1e-3, "\\u00B5m": 1e-3,
    "&#181;m": 1e-3,
}  # fmt: skip
"""Length of a unit in mm, by its name in ImageJ and OME."""

_MICROMETRE = 1e-3
_RESOLUTION_UNITS = {2: 25_400.0, 3: 10_000.0}
"""Length in micrometres of the units of a TIFF's resolution: inch, centimetre."""

_FINER_THAN_PRINTERS = 5.0
"""Maximum pixel size, micrometres, of a microscope; larger pixels are those of a scanner or printer."""

_SMALLEST_PAGE = 18
"""Size of the directory of a TIFF page with one field, bytes."""

_MAX_PAGES = 100_000


@dataclass(frozen=True)
class Pages:
    """Pages of a TIFF: slices, and their distances (slice, row, column) in mm if the file has them."""

    slices: int
    steps: tuple[float, float, float] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageHead:
    """Header of an image."""

    file: ImageFile
    # rows, columns: as stored, before an orientation is applied
    rows: int
    columns: int
    channels: int
    is_compressed: bool
    pages: Pages | InputError | None = None  # pages of a TIFF, or the reason why they are not a volume

    def checked_pages(self) -> Pages | None:
        """Return the pages of a TIFF, None for another format, or raise the error."""
        if isinstance(self.pages, InputError):
            raise self.pages.with_traceback(None)
        return self.pages


def read_image(path: Path) -> ImageFile:
    """Read the header of an image; the size is that after applying its orientation.

    Raises `InputError` for a file that is no image of `IMAGES`, is damaged, or claims more than 400 million
    pixels and is not a pyramid.
    """
    return read_image_head(path).file


def read_image_head(path: Path, file: BinaryIO | None = None, *, pages: bool = False) -> ImageHead:
    """Read the header of an image, from `file` if it is already open. Raises `InputError` as `read_image`.

    `pages`: whether to look for slices among the pages of a TIFF.
    """
    pixel_size, slices, channels, is_compressed, digest, is_cut_short = None, None, 1, True, None, False
    with image_errors(path), open_file(path, file) as stream:
        kind = detect_image_format(path, stream)
        if is_slide(path):
            slide, turn = SlideSource(path), 1
            (columns, rows), pixel_size, channels = slide.pyramid.levels[0], slide.pixel_size, 3
        elif kind == "TIFF":
            with open_tiff_page(path, LARGEST, pyramids=True, file=stream) as page:
                columns, rows, turn = page.imagewidth, page.imagelength, tiff_orientation(page)
                channels, is_compressed = int(page.samplesperpixel), int(page.compression) != 1
                pixel_size, is_cut_short = _micrometres(page), lacks_pixels(page)
                if pages and columns * rows <= MAX_PIXELS:
                    slices = _pages(path, page.parent)
        else:
            chunks = read_chunks(stream) if kind == "PNG" else None
            digest = None if chunks is None else chunks.digest
            is_cut_short = digest is None and lacks_end(stream, kind)
            with open_image(stream, kind) as image:
                (columns, rows), turn = image.size, read_orientation(image, chunks)
                channels = 1 if image.mode == "P" else len(image.getbands())
                is_compressed = kind != "BMP"
            check_pixel_count(path, columns, rows, most=LARGEST)
    width, height = (rows, columns) if turn >= 5 else (columns, rows)
    image_file = ImageFile(path.name, path, width, height, pixel_size, digest, is_cut_short)
    return ImageHead(image_file, rows, columns, channels, is_compressed, slices)


def load_overview(
    path: Path, longest: int, digest: str | None = None, displays: Displays = MappingProxyType({})
) -> Pixels:
    """Read an image at the resolution for a display of `longest` pixels along its longer side.

    Raises `InputError` as `load_image` and `open_pyramid`.

    `digest`: as for `open_pyramid`, for large images. `displays`: displays of channels that differ from the
    default. The result, (height, width) or (height, width, 3), is the image or a smaller copy of it.
    """
    file = read_image(path)
    if is_large(file.width, file.height):
        return open_pyramid(path, digest).with_displays(displays).overview(longest)
    return load_image(path, displays)


def _pages(path: Path, file: Any) -> Pages | InputError:
    try:
        with image_errors(path):
            return read_pages(path, file)
    except InputError as error:
        error.__cause__ = error.__context__ = None  # their frames hold the file
        return error


def read_pages(path: Path, file: Any) -> Pages:
    """Find the slices among the pages of an open TIFF.

    Raises `InputError` for pages that are not a volume.
    """
    if find_channels(file):
        return Pages(1)
    _refuse_endless(path, file)
    all_series = series_of(file)
    series = all_series[0]
    axis, notices = find_slice_axis(path, series)
    if len(all_series) > 1:
        notices = (*notices, "holds images of several sizes; only those like the first are shown")
    slices = 1 if axis is None else int(series.shape[axis])
    return Pages(slices, _steps(file), notices)


def _refuse_endless(path: Path, file: Any) -> None:
    """Refuse a file whose pages refer to each other in a cycle, which reading could never leave."""
    most = min(path.stat().st_size // _SMALLEST_PAGE, _MAX_PAGES)
    if any(number >= most for number, _ in enumerate(file.pages)):
        raise InputError(
            f"claims more pages than fit in it, or than {_MAX_PAGES:,}; expected a stack of images",
            file=path,
        )


def find_slice_axis(path: Path, series: Any) -> tuple[int | None, tuple[str, ...]]:
    """Find the slice axis of a TIFF's array, None for a single slice; also return notices on other axes."""
    axes, shape = series.axes, series.shape
    if "Y" not in axes or "X" not in axes:
        raise InputError(f"has the axes {plain(axes)}; expected planes of rows and columns", file=path)
    check_shape(path, tuple(shape))
    refuse_packed(path, math.prod(shape) * np.dtype(series.dtype).itemsize)
    longer = [k for k, name in enumerate(axes) if name not in "YXS" and shape[k] > 1]
    if not longer:
        return None, ()
    depth = next((k for k in longer if axes[k] == "Z"), None)
    if depth is None:
        depth = next((k for k in longer if axes[k] not in "CS"), longer[0])
    others = [axes[k] for k in longer if k != depth]
    if not others:
        return depth, ()
    words = {"C": "channel", "T": "time point"}
    named = " and ".join(words.get(name, f"position on axis {plain(name)}") for name in others)
    return depth, (f"holds several volumes; masks are shown on the first {named}",)


def _steps(file: Any) -> tuple[float, float, float] | None:
    """Read a voxel's size (slice, row, column) in mm as written by ImageJ or OME."""
    page = file.pages[0]
    text = str(page.description or "")[:_LONGEST_DESCRIPTION]
    if text.startswith("ImageJ="):
        facts = dict(line.partition("=")[::2] for line in text.splitlines())
        unit = _UNITS.get(facts.get("unit", "").strip())
        sizes = [page.tags.get(code) for code in (283, 282)]
        if unit is None or any(tag is None or not tag.value[0] for tag in sizes):
            return None
        along, across = (tag.value[1] / tag.value[0] * unit for tag in sizes)
        steps = (_number(facts.get("spacing")) * unit, along, across)
    else:
        physical = [_physical(text, axis) for axis in "ZYX"]
        if physical[1] is None or physical[2] is None:
            return None
        steps = (physical[0] or 1.0, physical[1], physical[2])
    return steps if all(0.0 < step < 1e6 for step in steps) else None


def _number(word: str | None) -> float:
    try:
        value = float(word or 1.0)
    except ValueError:
        return 1.0
    return value if math.isfinite(value) and value > 0 else 1.0


def _physical(text: str, axis: str) -> float | None:
    size = re.search(rf'<Pixels\b[^>]*\bPhysicalSize{axis}="([0-9.eE+-]+)"', text)
    unit = re.search(rf'<Pixels\b[^>]*\bPhysicalSize{axis}Unit="([^"]*)"', text)
    scale = _UNITS.get(unit.group(1).casefold()) if unit else _MICROMETRE
    return _number(size.group(1)) * scale if size and scale else None


def _micrometres(page: Any) -> float | None:
    """Read the pixel size written by ImageJ or OME, or else from a resolution finer than a printer's."""
    text = str(page.description or "")[:_LONGEST_DESCRIPTION]
    resolution = page.tags.get(282)
    pixels, length = resolution.value if resolution is not None else (0, 0)
    spacing = length / pixels if pixels else 0.0
    if text.startswith("ImageJ="):
        unit = re.search(r"^unit=(.*)$", text, re.MULTILINE)
        size = spacing * _UNITS.get(unit.group(1).strip(), 0.0) * 1e3 if unit is not None else 0.0
    elif size_match := re.search(r'<Pixels\b[^>]*\bPhysicalSizeX="([0-9.eE+-]+)"', text):
        unit = re.search(r'<Pixels\b[^>]*\bPhysicalSizeXUnit="([^"]*)"', text)
        scale = 1.0 if unit is None else _UNITS.get(unit.group(1).casefold(), 0.0) * 1e3
        size = float(size_match.group(1)) * scale
    else:
        unit_tag = page.tags.get(296)
        size = spacing * _RESOLUTION_UNITS.get(2 if unit_tag is None else unit_tag.value, 0.0)
        size = size if size < _FINER_THAN_PRINTERS else 0.0
    return size if 0.0 < size < 1e6 else None
