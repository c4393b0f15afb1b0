"""Images as volumes: single images, the pages of a TIFF, and numbered images of a folder."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.image_heads import find_slice_axis, read_image
from raterscope.app.formats.image_structure import find_channels, series_of
from raterscope.app.formats.images import detect_image_format, load_image
from raterscope.app.formats.records import Volume, VolumeFile
from raterscope.app.formats.untrusted import file_errors
from raterscope.app.formats.volumes.voxel_files import convert_for_display


def load_stack(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read the pixels of a volume from one image, or from images that are its slices.

    An image is read like `load_image`, but more than 8 bit are not scaled. The volume is in colour if any
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
    """Read a grey TIFF of more than 8 bit; None for any other image."""
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


def _load_pages(path: Path, watch: Watch) -> NDArray[Any]:
    import tifffile

    with tifffile.TiffFile(path) as file:
        series = series_of(file)[0]
        axis, _ = find_slice_axis(path, series)
        assert axis is not None
        outer = [k for k, name in enumerate(series.axes) if name not in "YXS"]
        lengths = [series.shape[k] for k in outer]
        # If an axis is inside the pages (planar storage), there are fewer pages than index positions.
        if len(series.pages) == math.prod(lengths) and outer == [*range(len(outer))]:
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
    """Invert values if the lowest is white."""
    if pixels.dtype.kind in "iu":
        return ~pixels
    return ~pixels if pixels.dtype.kind == "b" else np.nanmax(pixels) - pixels
