"""Display of images: value range, gamma, colour and visibility of each channel, as bytes for the screen.

References
----------
J. L. Pech-Pacheco, G. Cristobal, J. Chamorro-Martinez and J. Fernandez-Valdivia, "Diatom autofocusing in
brightfield microscopy: a comparative study", International Conference on Pattern Recognition, 3, 314-317,
2000, doi:10.1109/ICPR.2000.903548 (focus).

M. Macenko, M. Niethammer, J. S. Marron, D. Borland, J. T. Woosley, X. Guan, C. Schmitt and N. E. Thomas, "A
method for normalizing histology slides for quantitative analysis", IEEE International Symposium on Biomedical
Imaging, 1107-1110, 2009, doi:10.1109/ISBI.2009.5193250 (stains).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

GREY, COLOUR = "grey", "colour"
"""Channel names of images with one channel: grey images, and images in red, green and blue."""

LOWEST_GAMMA, HIGHEST_GAMMA = 0.1, 10.0
BINS = 128
_DARKEST, _BRIGHTEST = 0.1, 99.9
_SAMPLE = 1_000_000
_BAND = 256
_FULL_SCALES = frozenset(1 << bits for bits in range(8, 17))
_TABLES = frozenset(np.dtype(kind) for kind in ("u1", "i2", "u2"))
"""Types with few values, for which a lookup table is faster than arithmetic on each pixel."""


@dataclass(frozen=True, slots=True)
class ChannelDisplay:
    """Display of a channel."""

    shown: bool = True
    colour: Colour | None = None  # none for the colour in the file
    # low, high: values shown as black and as full brightness; None for the default: bytes unchanged,
    # otherwise the darkest and the brightest thousandth
    low: float | None = None
    high: float | None = None
    gamma: float = 1.0  # exponent of the brightness; below 1, dark parts are brighter
    stain: Stain | None = None  # stain that an image in red, green and blue of 8 bit is normalised to

    def __post_init__(self) -> None:
        if not LOWEST_GAMMA <= self.gamma <= HIGHEST_GAMMA:
            raise ValueError(f"gamma {self.gamma}; expected {LOWEST_GAMMA} to {HIGHEST_GAMMA}")
        for value in (self.low, self.high, *(self.stain or ())):
            if value is not None and not math.isfinite(value):
                raise ValueError("a value range that is not finite")
        if self.colour is not None and not all(0 <= part <= 255 for part in self.colour):
            raise ValueError(f"colour {self.colour}; expected 0 to 255")


DEFAULT = ChannelDisplay()
Displays = Mapping[str, ChannelDisplay]
"""Displays by channel name; missing channels have the default."""


@dataclass(frozen=True, eq=False)
class ChannelPlane:
    """A channel with its values."""

    name: str
    # (height, width), or (height, width, 3): the latter for an image in red, green and blue, named `COLOUR`
    values: NDArray[Any]
    colour: Colour | None = None  # colour in the file; None for grey, and for an image in red, green and blue


@dataclass(frozen=True)
class ChannelRange:
    """Statistics of a channel's values for choosing its display."""

    name: str
    colour: Colour | None
    # low, high: values shown as black and white by default
    low: float
    high: float
    automatic: tuple[float, float]  # the darkest and the brightest thousandth
    # lowest, highest: extent of the histogram
    lowest: float
    highest: float
    histogram: tuple[int, ...]  # pixels of a sample, in bins of equal width


def find_contrast(pixels: NDArray[Any]) -> tuple[float, float]:
    """Find the values shown as black and white: the darkest and brightest thousandth of a regular sample."""
    sample = _sample(pixels)
    if not len(sample):
        return 0.0, 0.0
    low, high = np.percentile(sample, [_DARKEST, _BRIGHTEST])
    if high <= low:
        low, high = sample.min(), sample.max()
    return float(low), float(high)


def _sample(pixels: NDArray[Any]) -> NDArray[np.float64]:
    step = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // _SAMPLE))
    sample = pixels[::step, ::step].astype(np.float64).ravel()
    return sample[np.isfinite(sample)]


def default_range(pixels: NDArray[Any]) -> tuple[float, float]:
    """Return the values shown as black and white by default."""
    return (0.0, 255.0) if pixels.dtype == np.uint8 else find_contrast(pixels)


def describe_channel(plane: ChannelPlane, *, shown: tuple[float, float] | None = None) -> ChannelRange:
    """Describe the values of a channel; `shown` is its default range, if already known."""
    values, (low, high) = plane.values, shown or default_range(plane.values)
    sample = _sample(values)
    lowest, highest = (float(sample.min()), float(sample.max())) if len(sample) else (0.0, 0.0)
    if values.dtype == np.uint8:
        lowest, highest = 0.0, 255.0
    lowest, highest = min(lowest, low), max(highest, high)
    if highest <= lowest:
        highest = lowest + 1.0
    bins = np.histogram(sample, BINS, (lowest, highest))[0]
    return ChannelRange(
        plane.name, plane.colour, low, high, find_contrast(values), lowest, highest, tuple(bins.tolist())
    )


def stretch(pixels: NDArray[Any], low: float, high: float, gamma: float = 1.0) -> NDArray[np.uint8]:
    """Map values to bytes, `low` to black and `high` to white; NaN are black."""
    if high <= low:
        return np.where(pixels > low, np.uint8(255), np.uint8(0))
    if pixels.dtype in _TABLES and pixels.size > 65_536:
        count = 1 << 8 * pixels.dtype.itemsize
        every = np.arange(count, dtype=f"u{pixels.dtype.itemsize}")
        # Negative values are indexed by their bits, read as unsigned integers.
        table = _mapped(every.view(pixels.dtype), low, high, gamma)
        return np.take(table, np.ascontiguousarray(pixels).view(every.dtype))
    mapped = np.empty(pixels.shape, dtype=np.uint8)
    for row in range(0, len(pixels), _BAND):  # all as floats would need eight times the memory
        mapped[row : row + _BAND] = _mapped(pixels[row : row + _BAND], low, high, gamma)
    return mapped


def _mapped(pixels: NDArray[Any], low: float, high: float, gamma: float) -> NDArray[np.uint8]:
    values = (pixels.astype(np.float64) - low) * (255.0 / (high - low))
    np.nan_to_num(values, copy=False)
    np.clip(values, 0.0, 255.0, out=values)
    if gamma != 1.0:
        values = 255.0 * (values / 255.0) ** gamma
    return np.rint(values).astype(np.uint8)


def to_bytes(
    values: NDArray[Any], display: ChannelDisplay = DEFAULT, *, shown: tuple[float, float] | None = None
) -> NDArray[np.uint8]:
    """Convert the values of a channel to bytes; `shown` is its default range, if already known."""
    if values.dtype == np.uint8 and replace(display, shown=True, colour=None) == DEFAULT:
        return values
    if display.stain is not None and values.dtype == np.uint8 and values.ndim == 3:
        values = normalise_stain(values, display.stain)
    low, high = display.low, display.high
    if low is None or high is None:
        default = shown or default_range(values)
        low, high = default[0] if low is None else low, default[1] if high is None else high
    return stretch(values, low, high, display.gamma)


def mix_channels(planes: Sequence[NDArray[np.uint8]], colours: Sequence[Colour]) -> NDArray[np.uint8]:
    """Add up channels, (height, width), each in its colour, to (height, width, 3)."""
    height, width = planes[0].shape
    mixed = np.empty((height, width, 3), dtype=np.uint8)
    for part in range(3):
        light = np.zeros((height, width), dtype=np.uint16)
        for plane, colour in zip(planes, colours, strict=True):
            if colour[part]:
                light += plane if colour[part] == 255 else _dim(plane, colour[part])
        mixed[..., part] = np.minimum(light, 255)
    return mixed


def _dim(plane: NDArray[np.uint8], share: int) -> NDArray[np.uint16]:
    return (plane.astype(np.uint16) * np.uint16(share) // 255).astype(np.uint16)


def render(planes: Sequence[ChannelPlane], displays: Displays) -> NDArray[np.uint8]:
    """Render an image for the screen, (height, width) or (height, width, 3)."""
    return combine(
        [(plane.name, plane.colour) for plane in planes],
        [to_bytes(plane.values, displays.get(plane.name, DEFAULT)) for plane in planes],
        displays,
    )


def combine(
    channels: Sequence[tuple[str, Colour | None]], planes: Sequence[NDArray[np.uint8]], displays: Displays
) -> NDArray[np.uint8]:
    """Combine the bytes of the visible channels, given by name and colour."""
    chosen = [displays.get(name, DEFAULT) for name, _ in channels]
    if len(planes) == 1:
        colour = chosen[0].colour
        if colour is None or planes[0].ndim == 3:
            return planes[0]
        return mix_channels(planes, [colour])
    lit = [
        (plane, display.colour or colour or (255, 255, 255))
        for plane, display, (_, colour) in zip(planes, chosen, channels, strict=True)
        if display.shown
    ]
    if not lit:
        return np.zeros((*planes[0].shape, 3), dtype=np.uint8)
    return mix_channels([plane for plane, _ in lit], [colour for _, colour in lit])


def measure_focus(pixels: NDArray[Any]) -> float:
    """Return the variance of the Laplacian of an image, (height, width) or (height, width, 3).

    The Laplacian has four neighbours; pixels at the border do not count. Colours are averaged. The value is
    comparable between images of the same field only. It is 0 for an image of fewer than 3 pixels a side.
    """
    grey = pixels.astype(np.float32) if pixels.ndim == 2 else pixels.mean(axis=2, dtype=np.float32)
    if min(grey.shape) < 3:
        return 0.0
    neighbours = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float(np.var(neighbours - 4 * grey[1:-1, 1:-1], dtype=np.float64))


def measure_saturation(pixels: NDArray[Any]) -> float | None:
    """Return the share of saturated pixels of an image, (height, width) or (height, width, 3).

    A pixel is saturated if its value, or that of one of its colours, is the highest of 8 to 16 bits: 255,
    511, 1023 and so on. The number of bits is the camera's, whatever the type in the file. None for
    fractions.
    """
    if pixels.dtype.kind not in "iu" or not pixels.size:
        return None
    highest = int(pixels.max())
    if highest + 1 not in _FULL_SCALES:
        return 0.0
    full = pixels == highest
    return float(np.mean(full if full.ndim == 2 else full.any(axis=2)))


Stain = tuple[float, float, float, float, float, float, float, float]
"""Optical densities of two stains in red, green and blue (three each), and the strength of each stain."""

_STAINED = 0.15
"""Minimum optical density of a stained pixel, in all three colours."""
_ENDS = (1.0, 99.0)
_FEWEST = 200
_STAIN_SAMPLE = 200_000
_STAIN_BAND = 256
_SMALLEST_ANGLE = 0.02
"""Minimum angle between the colours of two stains, radians; below it there is only one stain."""


def estimate_stain(pixels: NDArray[np.uint8]) -> Stain | None:
    """Estimate the two stains of an image, (height, width, 3); None if it does not have two.

    The stain with more density in red, which is the bluer one, comes first.
    """
    step = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // _STAIN_SAMPLE))
    density = _densities()[pixels[::step, ::step].reshape(-1, 3)]
    density = density[(density > _STAINED).all(axis=1)].astype(np.float64)
    if len(density) < _FEWEST:
        return None
    axes = np.linalg.eigh(np.cov(density.T))[1][:, [2, 1]]
    axes *= np.where(axes.sum(axis=0) < 0, -1.0, 1.0)
    flat = density @ axes
    angles = np.arctan2(flat[:, 1], flat[:, 0])
    ends = np.percentile(angles, _ENDS)
    if ends[1] - ends[0] < _SMALLEST_ANGLE:
        return None
    vectors = np.array([axes @ (np.cos(angle), np.sin(angle)) for angle in ends])
    vectors = np.maximum(vectors, 0.0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors[np.argsort(-vectors[:, 0])]
    strength = np.percentile(density @ np.linalg.pinv(vectors), _ENDS[1], axis=0)
    if not (np.isfinite(vectors).all() and (strength > 0).all()):
        return None
    first, second = (tuple(vector) for vector in vectors.tolist())
    return (*first, *second, float(strength[0]), float(strength[1]))


def normalise_stain(pixels: NDArray[np.uint8], reference: Stain) -> NDArray[np.uint8]:
    """Normalise the stains of an image to a reference; an image without two stains is unchanged."""
    own = estimate_stain(pixels)
    if own is None:
        return pixels
    (vectors, strength), (aim, aimed) = _parts(own), _parts(reference)
    mixing = (np.linalg.pinv(vectors) * (aimed / strength) @ aim).astype(np.float32)
    table, shown = _densities(), np.empty_like(pixels)
    for row in range(0, len(pixels), _STAIN_BAND):
        density = table[pixels[row : row + _STAIN_BAND]] @ mixing
        shown[row : row + _STAIN_BAND] = np.clip(np.rint(256.0 * np.exp(-density) - 1.0), 0, 255)
    return shown


def _densities() -> NDArray[np.float32]:
    """Return the optical density of each byte."""
    return -np.log((np.arange(256, dtype=np.float32) + 1) / 256)


def _parts(stain: Stain) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    numbers = np.array(stain)
    return numbers[:6].reshape(2, 3), numbers[6:]
