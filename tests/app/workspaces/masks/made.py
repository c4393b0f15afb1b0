"""Masks of four raters, one of which is too large."""

import numpy as np

SHAPE = (16, 40, 40)
SPACING = (2.0, 1.0, 1.0)
READERS = ("ann", "ben", "cat", "dan")


def ball(radius: float, centre: tuple[float, float, float] = (16.0, 20.0, 20.0)) -> np.ndarray:
    z, y, x = (axis * step for axis, step in zip(np.mgrid[:16, :40, :40], SPACING, strict=True))
    return np.sqrt((z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2) <= radius


def drawn() -> dict[str, np.ndarray]:
    """Return the masks of four readers: similar, but one goes far beyond in one place."""
    masks = {name: ball(8.0 + 0.25 * number) for number, name in enumerate(READERS)}
    masks["dan"] = masks["dan"] | ball(5.0, (16.0, 20.0, 30.0))
    return masks
