"""Large images, read tile by tile."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.formats.image_structure import find_channels, find_levels
from raterscope.app.formats.images import detect_image_format, image_errors
from raterscope.app.formats.pyramids.container import DamagedError, PyramidCache, write_pyramid
from raterscope.app.formats.pyramids.pyramid import (
    ChannelSource,
    Pixels,
    Pyramid,
    PyramidReader,
    SlideSource,
    Source,
    TiffSource,
    channel_pages,
    is_slide,
)

__all__ = [
    "WHOLE_UP_TO",
    "DamagedError",
    "Pyramid",
    "PyramidCache",
    "PyramidReader",
    "Source",
    "crop_of",
    "is_large",
    "open_pyramid",
]  # fmt: skip

WHOLE_UP_TO = 40_000_000
"""Maximum number of pixels of an image that is held in memory completely, with four bytes per pixel on
screen.
"""

_DECODING = 0.4
"""Share of the total time before the first tile is written."""


def is_large(width: float, height: float) -> bool:
    """Return whether an image of this size is shown tile by tile."""
    return width * height > WHOLE_UP_TO


def crop_of(image: Pixels | PyramidReader | None, x: float, y: float, radius: float) -> Pixels | None:
    """Crop the square around a position, black beyond the image; None if it contains no pixel."""
    if image is None:
        return None
    half = int(np.ceil(radius))
    top, left = round(y) - half, round(x) - half
    if isinstance(image, np.ndarray):
        inside = image[max(top, 0) : max(top + 2 * half, 0), max(left, 0) : max(left + 2 * half, 0)]
    else:
        inside = image.region(0, left, top, 2 * half, 2 * half)
    if not inside.size:
        return None
    crop = np.zeros((2 * half, 2 * half, *inside.shape[2:]), dtype=np.uint8)
    from_top, from_left = max(-top, 0), max(-left, 0)
    crop[from_top : from_top + inside.shape[0], from_left : from_left + inside.shape[1]] = inside
    return crop


def open_pyramid(
    path: Path, digest: str | None = None, watch: Watch = silent, *, cache: PyramidCache | None = None
) -> PyramidReader:
    """Open a large image for reading by tiles.

    A pyramidal TIFF or OME-TIFF is read directly, and a whole slide if OpenSlide is installed. For any other
    image a pyramid is built and cached, unless it is in the cache. Raises `InputError` as `read_image`, for a
    TIFF that is compressed in one large piece, and if the disk is full.

    `digest`: digest of the file's content, if the caller has verified it. Without it, the file's path, size
    and time identify its content. `watch`: called while a pyramid is built. `cache`: by default the user's
    cache.
    """
    source = _open_tiled(path)
    if source is None:
        source = _from_cache(path, digest, watch, cache or PyramidCache.of_user())
    return PyramidReader(source)


def _open_tiled(path: Path) -> Source | None:
    import tifffile

    with image_errors(path):
        kind = detect_image_format(path)
        if is_slide(path):
            return SlideSource(path)
        if kind == "TIFF":
            with tifffile.TiffFile(path) as file:
                channels = channel_pages(file)
                tiled = not find_channels(file) and bool(find_levels(file.pages[0]))
            if channels:
                return ChannelSource(path, channels)
            if tiled:
                return TiffSource(path)
    return None


def _from_cache(path: Path, digest: str | None, watch: Watch, cache: PyramidCache) -> Source:
    from raterscope.app.formats.pyramids.flat import open_flat

    with image_errors(path):
        cached = cache.find(path, digest)
    if cached is not None:
        return cached
    with open_flat(path, cache.room(), part(watch, 0.0, _DECODING)) as flat:
        pyramid = Pyramid(flat.width, flat.height, flat.colour)

        def report(share: float) -> None:
            watch(_DECODING + (1 - _DECODING) * share, "building smaller copies of the image")

        return cache.make(path, digest, lambda file: write_pyramid(file, pyramid, flat.band, report))
