"""Camera of the 3-D view: parallel projection, turned about the patient's long axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_ZOOMS = 0.2, 40.0
_DEPTH = 8.0
"""Depth of the scene in radii: slices and wireframes reach beyond the surface."""


@dataclass(frozen=True)
class Camera:
    """Direction and part of the scene; from the front, with the head up, at the beginning.

    Attributes
    ----------
    azimuth, elevation : float
        Degrees to the patient's left and to the head.
    centre : (x, y, z)
        Millimetres, in the middle of the view.
    radius : float
        Millimetres from the centre to the edge of the view at zoom 1.
    """

    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 1.0
    azimuth: float = 0.0
    elevation: float = 0.0
    zoom: float = 1.0

    @property
    def axes(self) -> FloatArray:
        """(3, 3): unit vectors to the right, up, and to the eye."""
        (sine, cosine), (up, level) = _wave(self.azimuth), _wave(self.elevation)
        right = np.array([cosine, sine, 0.0])
        eye = np.array([sine * level, -cosine * level, up])
        return np.stack([right, np.cross(eye, right), eye])

    def turned(self, azimuth: float, elevation: float) -> Camera:
        """Turn by some degrees, at most to straight above or below."""
        return replace(
            self,
            azimuth=(self.azimuth + azimuth) % 360.0,
            elevation=min(max(self.elevation + elevation, -90.0), 90.0),
        )

    def zoomed(self, factor: float) -> Camera:
        """Zoom about the centre."""
        return replace(self, zoom=min(max(self.zoom * factor, _ZOOMS[0]), _ZOOMS[1]))

    def panned(self, right: float, down: float, size: tuple[int, int]) -> Camera:
        """Move the scene by some pixels."""
        across, up, _ = self.axes
        moved = np.array(self.centre) + (down * up - right * across) / self.scale(size)
        return replace(self, centre=(float(moved[0]), float(moved[1]), float(moved[2])))

    def scale(self, size: tuple[int, int]) -> float:
        """Return the pixels of a millimetre, for (width, height) of a view."""
        return self.zoom * min(size) / (2.0 * self.radius)

    def project(self, positions: NDArray[np.floating], size: tuple[int, int]) -> FloatArray:
        """Convert (N, 3) millimetres to x and y in pixels and the depth, which grows towards the eye."""
        seen = (np.asarray(positions, dtype=float) - self.centre) @ self.axes.T
        scale = self.scale(size)
        return np.stack(
            [size[0] / 2 + seen[:, 0] * scale, size[1] / 2 - seen[:, 1] * scale, seen[:, 2]], axis=1
        )

    def unproject(self, x: float, y: float, depth: float, size: tuple[int, int]) -> FloatArray:
        """Convert pixels and a depth to millimetres: the inverse of `project`."""
        scale = self.scale(size)
        seen = np.array([(x - size[0] / 2) / scale, (size[1] / 2 - y) / scale, depth])
        return np.asarray(self.centre + seen @ self.axes)

    def matrix(self, size: tuple[int, int]) -> FloatArray:
        """(4, 4): millimetres to OpenGL's clip coordinates."""
        scale = self.scale(size)
        stretch = np.array([2 * scale / size[0], 2 * scale / size[1], -1 / (_DEPTH * self.radius)])
        turned = stretch[:, None] * self.axes
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = turned, -turned @ np.array(self.centre)
        return matrix


def _wave(degrees: float) -> tuple[float, float]:
    angle = np.radians(degrees)
    return float(np.sin(angle)), float(np.cos(angle))
