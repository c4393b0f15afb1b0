"""The glass and the light of a simulated smear: amounts of stain, shapes to paint with, the photograph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

__all__ = [
    "CHROMATIN",
    "CYTOPLASM",
    "FILM",
    "PIGMENT",
    "Brush",
    "Canvas",
    "Place",
    "Plane",
    "grain",
    "outline",
    "photograph",
    "places",
    "soft",
]

Plane = NDArray[np.float32]
Place = tuple[float, float]
Brush = Callable[[Plane, Plane], dict[int, Plane]]

FILM, CYTOPLASM, CHROMATIN, PIGMENT = range(4)
_ABSORBANCE = np.array(  # of red, green and blue light, for one unit of each stain
    [[0.15, 0.29, 0.17], [0.74, 0.50, 0.17], [0.58, 1.02, 0.40], [0.72, 0.88, 0.98]], dtype=np.float32
)
_LAMP = np.array([236.0, 231.0, 233.0], dtype=np.float32)
_BLUR = (0.95, 0.8, 1.0)  # pixels; an objective is sharpest in green
_MARGIN = 24.0


class Canvas:
    """Amounts of each stain, (4, height, width), and the generator that everything is drawn with."""

    def __init__(self, rng: np.random.Generator, width: int, height: int) -> None:
        self.rng = rng
        self.width = width
        self.height = height
        self.stain = np.zeros((4, height, width), dtype=np.float32)

    def noise(self, scale: float) -> Plane:
        """Smooth noise of mean 0 and deviation 1, (height, width), with grains of `scale` pixels."""
        step = max(1, int(scale / 3))
        shape = (self.height // step + 3, self.width // step + 3)
        coarse = ndimage.gaussian_filter(
            self.rng.standard_normal(shape, dtype=np.float32), scale / step, mode="wrap"
        )
        fine = ndimage.zoom(coarse, step, order=1)[: self.height, : self.width] if step > 1 else coarse
        fine = fine[: self.height, : self.width]
        return np.asarray((fine - fine.mean()) / (fine.std() + 1e-9), dtype=np.float32)

    def stamp(
        self, x: float, y: float, reach: float, paint: Callable[[Plane, Plane], dict[int, Plane]]
    ) -> None:
        """Add to the stains around a place what `paint` gives for the offsets from it."""
        left, right = max(0, int(x - reach)), min(self.width, int(x + reach) + 2)
        top, bottom = max(0, int(y - reach)), min(self.height, int(y + reach) + 2)
        if left >= right or top >= bottom:
            return
        dy, dx = np.mgrid[top:bottom, left:right].astype(np.float32)
        for stain, amount in paint(dx + np.float32(0.5 - x), dy + np.float32(0.5 - y)).items():
            plane = self.stain[stain, top:bottom, left:right]
            np.maximum(plane + amount, 0.0, out=plane)


def places(
    canvas: Canvas,
    count: int,
    apart: float,
    taken: list[tuple[Place, float]],
) -> list[Place]:
    """Throw darts that keep `apart` from each other and the given distances from what is taken."""
    found: list[Place] = []
    for _ in range(200 * count):
        if len(found) == count:
            break
        x = float(canvas.rng.uniform(_MARGIN, canvas.width - _MARGIN))
        y = float(canvas.rng.uniform(_MARGIN, canvas.height - _MARGIN))
        free = all(np.hypot(x - a, y - b) >= apart for a, b in found)
        if free and all(np.hypot(x - a, y - b) >= far for (a, b), far in taken):
            found.append((x, y))
    return found


def outline(rng: np.random.Generator, radius: float, roughness: float) -> Callable[[Plane, Plane], Plane]:
    """Make a wobbly closed outline; it gives the signed distance (positive inside), roughly, in pixels."""
    orders = np.arange(2, 7)
    sizes = roughness * rng.standard_normal(len(orders)) / orders
    phases = rng.uniform(0, 2 * np.pi, len(orders))

    def inside(dx: Plane, dy: Plane) -> Plane:
        angle = np.arctan2(dy, dx)
        edge = np.ones_like(angle)
        for order, size, phase in zip(orders, sizes, phases, strict=True):
            edge += np.float32(size) * np.cos(order * angle + np.float32(phase))
        return np.asarray(radius * edge - np.hypot(dx, dy), dtype=np.float32)

    return inside


def soft(distance: Plane, softness: float) -> Plane:
    """Turn a signed distance into a share of cover, 0 to 1."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(-distance / softness, -30, 30))), dtype=np.float32)


def grain(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Plane:
    """Make noise of mean 0 and deviation 1 with grains of `scale` pixels, for a small window."""
    noise = ndimage.gaussian_filter(rng.standard_normal(shape).astype(np.float32), scale)
    return np.asarray(noise / (noise.std() + 1e-6), dtype=np.float32)


def photograph(canvas: Canvas) -> NDArray[np.uint8]:
    """Shine the lamp through the stains, blur, add the camera's noise."""
    rng = canvas.rng
    down, across = np.mgrid[0 : canvas.height, 0 : canvas.width].astype(np.float32)
    across = (across - canvas.width * np.float32(rng.uniform(0.40, 0.60))) / canvas.width
    down = (down - canvas.height * np.float32(rng.uniform(0.40, 0.60))) / canvas.width
    light = 1.0 - float(rng.uniform(0.26, 0.42)) * (across**2 + down**2)
    light *= 1.0 + float(rng.normal(0, 0.03)) * across + float(rng.normal(0, 0.03)) * down
    warmth = _LAMP * (1.0 + 0.012 * rng.standard_normal(3).astype(np.float32))
    picture = np.empty((canvas.height, canvas.width, 3), dtype=np.uint8)
    for band in range(3):
        passed = warmth[band] * light * np.exp(-np.tensordot(_ABSORBANCE[:, band], canvas.stain, axes=1))
        passed = ndimage.gaussian_filter(passed, _BLUR[band])
        noise = rng.standard_normal(passed.shape, dtype=np.float32)
        passed += noise * np.sqrt(np.clip(passed, 1.0, None)) * np.float32(0.15)
        picture[..., band] = np.clip(np.rint(passed), 0, 255).astype(np.uint8)
    return picture
