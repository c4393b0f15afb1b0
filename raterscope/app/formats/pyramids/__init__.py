"""Large images, of which only the tiles in sight are read."""

from __future__ import annotations

from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.formats.images import detect_image_format, image_errors
from raterscope.app.formats.pyramids.container import DamagedError, PyramidCache, write_pyramid
from raterscope.app.formats.pyramids.pyramid import Pixels, Pyramid, PyramidReader, Source

__all__ = [
    "WHOLE_UP_TO",
    "DamagedError",
    "Pyramid",
    "PyramidCache",
    "PyramidReader",
    "Source",
    "is_large",
    "load_overview",
    "open_pyramid",
]  # fmt: skip

WHOLE_UP_TO = 40_000_000
"""Pixels of an image that is kept in memory as a whole, which takes it four bytes a pixel on screen."""

_DECODING = 0.4
"""Share of the time that goes by before the first tile is written."""


def is_large(width: float, height: float) -> bool:
    """Tell whether an image of this size is shown by tiles."""
    return width * height > WHOLE_UP_TO


def open_pyramid(
    path: Path, digest: str | None = None, watch: Watch = silent, *, cache: PyramidCache | None = None
) -> PyramidReader:
    """Open a large image for reading by tiles.

    A pyramidal TIFF or OME-TIFF is read as it is, a whole slide too where OpenSlide is installed. Of any
    other image a pyramid is made and kept, unless one is there already.

    Parameters
    ----------
    path : Path
    digest : str, optional
        Of the file's content, where the caller has made sure of it; without one, the file's place, size and
        time tell whether it is still the same.
    watch : callable
        Told while a pyramid is made.
    cache : PyramidCache, optional
        The user's without one.

    Raises
    ------
    InputError
        As `read_image`; for a TIFF that is compressed in one large piece; where the disk has no room.
    """
    source = _by_its_own_tiles(path)
    if source is None:
        source = _from_cache(path, digest, watch, cache or PyramidCache.of_user())
    return PyramidReader(source)


def load_overview(path: Path, longest: int, digest: str | None = None) -> Pixels:
    """Read an image as finely as it takes to show it with `longest` pixels along its longer side.

    Parameters
    ----------
    path : Path
    longest : int
    digest : str, optional
        As `open_pyramid` takes it, for large images.

    Returns
    -------
    (height, width) or (height, width, 3) uint8
        The whole image or a smaller copy of it.

    Raises
    ------
    InputError
        As `load_image` and `open_pyramid`.
    """
    from raterscope.app.formats.images import load_image, read_image

    file = read_image(path)
    if is_large(file.width, file.height):
        return open_pyramid(path, digest).overview(longest)
    return load_image(path)


def _by_its_own_tiles(path: Path) -> Source | None:
    import tifffile

    from raterscope.app.formats.pyramids.slide_source import SlideSource, is_slide
    from raterscope.app.formats.pyramids.tiff_source import ChannelSource, TiffSource, channel_pages
    from raterscope.app.formats.tiff_pages import find_channels, find_levels

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
        found = cache.find(path, digest)
    if found is not None:
        return found
    with open_flat(path, cache.room(), part(watch, 0.0, _DECODING)) as flat:
        pyramid = Pyramid(flat.width, flat.height, flat.colour)

        def told(share: float) -> None:
            watch(_DECODING + (1 - _DECODING) * share, "making smaller copies of the image")

        return cache.make(path, digest, lambda file: write_pyramid(file, pyramid, flat.band, told))
