"""Images as volumes: single images, the pages of a TIFF, and numbered images of a folder."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.images import Pages, detect_image_format, load_image, read_image
from raterscope.app.formats.records import Volume, VolumeFile
from raterscope.app.formats.sources import File, Source, open_source
from raterscope.app.formats.tiff_pages import find_channels, series_of
from raterscope.app.formats.untrusted import check_shape, file_errors, refuse_packed
from raterscope.app.formats.volumes.voxel_files import convert_for_display

_LONGEST_DESCRIPTION = 100_000
_UNITS = {
    "mm": 1.0, "millimeter": 1.0, "cm": 10.0, "m": 1000.0, "nm": 1e-6,
    "micron": 1e-3, "microns": 1e-3, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "\\u00b5m": 1e-3, "&#181;m": 1e-3,
}  # fmt: skip
_MICROMETRE = 1e-3
_SMALLEST_PAGE = 18
"""Bytes of the directory of a TIFF page with one field."""
_MOST_PAGES = 100_000


def image_file(file: File) -> VolumeFile:
    """Describe an image as a volume of one slice, or of the pages of a TIFF.

    An image has no position in a patient, but a TIFF of ImageJ or OME may contain the size of a voxel. Raises
    `InputError` for any other file, a damaged one, and one that claims more than 2^30 voxels, or 179 million
    pixels per plane.
    """
    head = open_source(file).image()
    image, pages = head.file, head.checked_pages()
    path = image.path
    shape, steps = (1, image.height, image.width), (1.0, 1.0, 1.0)
    notices: tuple[str, ...] = ()
    if image.pixel_size is not None:
        steps = (1.0, image.pixel_size * _MICROMETRE, image.pixel_size * _MICROMETRE)
    if pages is not None and pages.slices > 1:
        shape = (pages.slices, image.height, image.width)
        steps, notices = pages.steps or steps, pages.notices
    check_shape(path, shape)
    messages = tuple(f"{plain(path.name, 200)}: {notice}." for notice in notices)
    return VolumeFile(
        path.name,
        path,
        Grid.plain(shape, steps),
        files=(path,),
        notices=messages,
        pixel_size=image.pixel_size,
    )


def find_stack(sources: Sequence[Source], folder: Path) -> VolumeFile | None:
    """Combine images of one size whose names differ only by a number to a volume; None for other images.

    Raises `InputError` for an image that cannot be read.
    """
    patterns = {re.sub(r"\d+", "#", source.path.name.casefold()) for source in sources}
    if len(sources) < 2 or len(patterns) > 1 or "#" not in next(iter(patterns)):
        return None
    ordered = sorted(
        sources, key=lambda source: [int(digits) for digits in re.findall(r"\d+", source.path.name)]
    )
    files = [image_file(source) for source in ordered]
    if any(file.grid.shape != files[0].grid.shape for file in files) or files[0].grid.shape[0] > 1:
        return None
    shape = (len(files), *files[0].grid.shape[1:])
    check_shape(folder, shape)
    words = (
        f"{plain(folder.name)}: {len(files)} numbered images of one size are slices of a volume; "
        "open them one by one to keep them separate."
    )
    grid = Grid.plain(shape, files[0].grid.spacing)
    return VolumeFile(
        folder.name, folder, grid, files=tuple(source.path for source in ordered), notices=(words,)
    )


def load_stack(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read the pixels of a volume from `image_file` or `find_stack`.

    One image is read like `load_image`, but more than 8 bit are not scaled. The volume is in colour if any
    slice is in colour. Raises `InputError` as `image_file`.
    """
    planes = len(file.files)
    if planes == 1 and _is_tiff(file.path) and not file.grid.flat:
        with file_errors(file.path):
            values = _load_pages(file.path, watch)
    else:
        slices = []
        for done, path in enumerate(file.files):
            watch(done / planes, f"reading {plain(path.name)}")
            slices.append(_plane(path))
        grey = [plane if plane.ndim == 2 else None for plane in slices]
        if any(plane is None for plane in grey):
            slices = [p if p.ndim == 3 else np.repeat(p[..., None], 3, axis=2) for p in slices]
        if any(plane.shape != slices[0].shape for plane in slices):
            raise InputError("has changed since it was opened; open it again", file=file.path)
        values = np.stack(slices)
    if values.shape[:3] != file.grid.shape:
        raise InputError("has changed since it was opened; open it again", file=file.path)
    return Volume(convert_for_display(values), file.grid)


def _plane(path: Path) -> NDArray[Any]:
    """Read one image, with all its bits if it is grey."""
    if _is_tiff(path):
        deep = _deep_page(path)
        return load_image(path) if deep is None else deep
    read_image(path)  # checks the claimed size
    with file_errors(path), Image.open(path, formats=("PNG", "JPEG", "BMP", "GIF")) as image:
        if image.mode.startswith("I") and image.getexif().get(0x0112, 1) == 1:
            return np.asarray(image).copy()
    return load_image(path)


def _deep_page(path: Path) -> NDArray[Any] | None:
    """Read a grey TIFF of more than 8 bit; None for all others."""
    import tifffile

    read_image(path)
    with file_errors(path), tifffile.TiffFile(path) as file:
        page = file.pages[0]
        is_rotated = page.tags.get(274) is not None and page.tags[274].value != 1
        if (
            find_channels(file)
            or page.axes != "YX"
            or page.dtype.itemsize == 1
            or page.photometric == 3
            or is_rotated
        ):
            return None
        pixels = np.asarray(page.asarray())
        return _invert(pixels) if page.photometric == 0 else pixels


def _is_tiff(path: Path) -> bool:
    return detect_image_format(path) == "TIFF"


def read_pages(path: Path, file: Any) -> Pages:
    """Find the slices among the pages of an open TIFF.

    Raises `InputError` for pages that are not a volume.
    """
    if find_channels(file):
        return Pages(1)
    _refuse_endless(path, file)
    all_series = series_of(file)
    series = all_series[0]
    axis, notices = _slice_axis(path, series)
    if len(all_series) > 1:
        notices = (*notices, "holds images of several sizes; only those like the first are shown")
    slices = 1 if axis is None else int(series.shape[axis])
    return Pages(slices, _steps(file), notices)


def _refuse_endless(path: Path, file: Any) -> None:
    """Refuse a file whose pages refer to each other in a circle: reading them would not end."""
    most = min(path.stat().st_size // _SMALLEST_PAGE, _MOST_PAGES)
    if any(number >= most for number, _ in enumerate(file.pages)):
        raise InputError(
            f"claims more pages than fit in it, or than {_MOST_PAGES:,}; expected a stack of images",
            file=path,
        )


def _slice_axis(path: Path, series: Any) -> tuple[int | None, tuple[str, ...]]:
    """Find the slice axis of a TIFF's array."""
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


def _load_pages(path: Path, watch: Watch) -> NDArray[Any]:
    import tifffile

    with tifffile.TiffFile(path) as file:
        series = series_of(file)[0]
        axis, _ = _slice_axis(path, series)
        assert axis is not None
        outer = [k for k, name in enumerate(series.axes) if name not in "YXS"]
        # If an axis is inside the pages (planar storage), there are fewer pages than index positions.
        if len(series.pages) == math.prod(series.shape[k] for k in outer) and series.axes[
            : len(outer)
        ] == "".join(series.axes[k] for k in outer):
            lengths = [series.shape[k] for k in outer]
            selected = [
                number
                for number, index in enumerate(itertools.product(*map(range, lengths)))
                if all(at == 0 for k, at in zip(outer, index, strict=True) if k != axis)
            ]
            values: NDArray[Any] | None = None
            for done, number in enumerate(selected):
                watch(done / len(selected), f"reading slice {done + 1} of {len(selected)}")
                page = series.pages[number]
                if page is None:
                    raise InputError("lacks some of its pages", file=path)
                plane = np.asarray(page.asarray())
                if values is None:
                    values = np.empty((len(selected), *plane.shape), dtype=plane.dtype)
                values[done] = plane
            assert values is not None
            order = [name for name in series.axes if name in "YXS"]
        else:
            watch(0.0, f"reading {plain(path.name)}")
            pixels = np.asarray(series.asarray())
            pick = tuple(slice(None) if k == axis or k not in outer else 0 for k in range(pixels.ndim))
            values = pixels[pick]
            remaining = [name for k, name in enumerate(series.axes) if k == axis or k not in outer]
            values = np.moveaxis(values, remaining.index(series.axes[axis]), 0)
            order = [name for name in remaining if name in "YXS"]
        if "S" in order:
            values = np.moveaxis(values, 1 + order.index("S"), -1)
            values = values[..., :3] if values.shape[-1] >= 3 else values[..., 0]
            if values.ndim == 4 and values.dtype != np.uint8:
                raise InputError(f"holds colours of {values.dtype}; expected 8 bit", file=path)
        return _invert(values) if file.pages[0].photometric == 0 else values


def _invert(pixels: NDArray[Any]) -> NDArray[Any]:
    """Invert values whose lowest is white."""
    if pixels.dtype.kind in "iu":
        return ~pixels
    return ~pixels if pixels.dtype.kind == "b" else np.nanmax(pixels) - pixels
