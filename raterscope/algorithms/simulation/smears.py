"""Simulated images of thick blood smears with known objects, and images of single cells.

The simulation follows a microscope: stains absorb light (Beer-Lambert law), the objective blurs, the
illumination is uneven and the camera adds noise. Giemsa colours the lysed film pinkish lilac, cytoplasm blue
and chromatin dark purple. The image contains the film with ghosts of erythrocytes, leukocytes, platelets,
stain debris, malaria parasites (rings and trophozoites), and artefacts easily mistaken for parasites.

Images of single red cells are the tasks of `label_crowds`: a thin film, stained and photographed in the same
way, with one cell in the middle, infected or not. In difficult images the parasite is faint and the image
less sharp, or an uninfected cell has something that looks like a parasite.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from raterscope.algorithms.clicks.data import FloatArray

Plane = NDArray[np.float32]
Place = tuple[float, float]

FILM, CYTOPLASM, CHROMATIN, PIGMENT = range(4)
_ABSORBANCE = np.array(  # of red, green and blue light, for one unit of each stain
    [[0.15, 0.29, 0.17], [0.74, 0.50, 0.17], [0.58, 1.02, 0.40], [0.72, 0.88, 0.98]], dtype=np.float32
)
_LAMP = np.array([236.0, 231.0, 233.0], dtype=np.float32)
_BLUR = (0.95, 0.8, 1.0)  # pixels; an objective is sharpest in green
_MARGIN = 24.0


class Canvas:
    """Amounts of each stain, (4, height, width), and the random generator."""

    def __init__(self, rng: np.random.Generator, width: int, height: int) -> None:
        self.rng = rng
        self.width = width
        self.height = height
        self.stain = np.zeros((4, height, width), dtype=np.float32)

    def noise(self, scale: float) -> Plane:
        """Make noise with mean 0, standard deviation 1 and grains of `scale` pixels, (height, width)."""
        step = max(1, int(scale / 3))
        shape = (self.height // step + 3, self.width // step + 3)
        coarse = ndimage.gaussian_filter(
            self.rng.standard_normal(shape, dtype=np.float32), scale / step, mode="wrap"
        )
        fine = _enlarged(_enlarged(coarse.T, step, self.width).T, step, self.height)
        return np.asarray((fine - fine.mean()) / (fine.std() + 1e-9), dtype=np.float32)

    def stamp(
        self, x: float, y: float, reach: float, paint: Callable[[Plane, Plane], dict[int, Plane]]
    ) -> None:
        """Add the result of `paint`, a function of the offsets from a position, to the stains around it."""
        left, right = max(0, int(x - reach)), min(self.width, int(x + reach) + 2)
        top, bottom = max(0, int(y - reach)), min(self.height, int(y + reach) + 2)
        if left >= right or top >= bottom:
            return
        dx, dy = np.meshgrid(
            np.arange(left, right, dtype=np.float32) + np.float32(0.5 - x),
            np.arange(top, bottom, dtype=np.float32) + np.float32(0.5 - y),
        )
        for stain, amount in paint(dx, dy).items():
            plane = self.stain[stain, top:bottom, left:right]
            np.maximum(plane + amount, 0.0, out=plane)


def _enlarged(coarse: Plane, step: int, size: int) -> Plane:
    """Interpolate linearly between rows at a distance of `step`, and return the first `size` rows."""
    position = np.arange(size) * ((len(coarse) - 1) / (len(coarse) * step - 1))
    below = position.astype(np.intp)
    share = (position - below).astype(np.float32)[:, None]
    result, change = coarse[below], np.diff(coarse, axis=0)[below]
    change *= share
    result += change
    return result


def draw_positions(
    canvas: Canvas, count: int, apart: float, occupied: list[tuple[Place, float]]
) -> list[Place]:
    """Draw positions at least `apart` from each other, and at given distances from occupied ones."""
    result: list[Place] = []
    for _ in range(200 * count):
        if len(result) == count:
            break
        x = float(canvas.rng.uniform(_MARGIN, canvas.width - _MARGIN))
        y = float(canvas.rng.uniform(_MARGIN, canvas.height - _MARGIN))
        free = all(np.hypot(x - a, y - b) >= apart for a, b in result)
        if free and all(np.hypot(x - a, y - b) >= far for (a, b), far in occupied):
            result.append((x, y))
    return result


def outline(rng: np.random.Generator, radius: float, roughness: float) -> Callable[[Plane, Plane], Plane]:
    """Make an irregular closed outline, as its approximate signed distance in pixels, positive inside."""
    orders = np.arange(2, 7)
    sizes = roughness * rng.standard_normal(len(orders)) / orders
    waves = (sizes * np.exp(1j * rng.uniform(0, 2 * np.pi, len(orders)))).astype(np.complex64)

    def inside(dx: Plane, dy: Plane) -> Plane:
        away = np.hypot(dx, dy)
        # Powers of a complex number are much faster than cosines of multiples of its angle.
        turn = (dx + np.complex64(1j) * dy) / np.maximum(away, np.float32(1e-6))
        total = np.full_like(turn, waves[-1])
        for wave in waves[-2::-1]:
            total *= turn
            total += wave
        total *= turn * turn
        return np.asarray(radius * (1 + total.real) - away, dtype=np.float32)

    return inside


def soft(distance: Plane, softness: float) -> Plane:
    """Convert a signed distance to a coverage, 0 to 1."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(-distance / softness, -30, 30))), dtype=np.float32)


def grain(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Plane:
    """Make noise with mean 0 and standard deviation 1 with grains of `scale` pixels, for a small window."""
    noise = ndimage.gaussian_filter(rng.standard_normal(shape).astype(np.float32), scale)
    return np.asarray(noise / (noise.std() + 1e-6), dtype=np.float32)


def photograph(canvas: Canvas) -> NDArray[np.uint8]:
    """Render the stains: transmit light, blur, and add the camera's noise."""
    rng = canvas.rng
    across, down = (
        (np.arange(size, dtype=np.float32) - size * np.float32(rng.uniform(0.40, 0.60))) / canvas.width
        for size in (canvas.width, canvas.height)
    )
    light = 1.0 - float(rng.uniform(0.26, 0.42)) * (across**2 + down[:, None] ** 2)
    light *= 1.0 + float(rng.normal(0, 0.03)) * across + float(rng.normal(0, 0.03)) * down[:, None]
    warmth = _LAMP * (1.0 + 0.012 * rng.standard_normal(3).astype(np.float32))
    picture = np.empty((canvas.height, canvas.width, 3), dtype=np.uint8)
    for band in range(3):
        passed = warmth[band] * light * np.exp(-np.tensordot(_ABSORBANCE[:, band], canvas.stain, axes=1))
        passed = ndimage.gaussian_filter(passed, _BLUR[band])
        noise = rng.standard_normal(passed.shape, dtype=np.float32)
        passed += noise * np.sqrt(np.clip(passed, 1.0, None)) * np.float32(0.15)
        picture[..., band] = np.clip(np.rint(passed), 0, 255).astype(np.uint8)
    return picture


@dataclass(frozen=True, eq=False)
class Smear:
    """Simulated smear and its objects."""

    image: NDArray[np.uint8]  # (height, width, 3): red, green and blue
    parasites: FloatArray  # (P, 2): their centres x, y in pixels, y down
    clarity: FloatArray  # (P,): visibility of each parasite, 0 to 1: a faint ring is missed more often
    artefacts: FloatArray  # (A, 2): centres of artefacts that look like parasites
    allure: FloatArray  # (A,): similarity of each artefact to a parasite, 0 to 1

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the image."""
        return 0.0, 0.0, float(self.image.shape[1]), float(self.image.shape[0])


def render_smear(
    seed: int, *, parasites: int = 14, artefacts: int = 9, width: int = 1280, height: int = 960
) -> Smear:
    """Draw a smear at about 0.14 micrometres per pixel; a ring has a diameter of about 20 pixels.

    Raises `ValueError` for an image that is too small or a count below zero.

    `seed`: the same seed and counts give the same image. `parasites`, `artefacts`: numbers to draw; fewer if
    the image is too small. `width`, `height`: in pixels, at least 64.
    """
    if width < 64 or height < 64:
        raise ValueError(f"a smear of {width} x {height} pixels is too small; expected at least 64 x 64.")
    if parasites < 0 or artefacts < 0:
        raise ValueError("a smear cannot have fewer than 0 parasites or artefacts.")
    rng = np.random.default_rng(seed)
    share = width * height / (1280 * 960)
    canvas = Canvas(rng, width, height)
    _draw_film(canvas, share)
    cells = draw_positions(canvas, max(1, round(rng.integers(4, 8) * share)), 95.0, [])
    for x, y in cells:
        _draw_leukocyte(canvas, x, y)
    occupied = [(cell, 75.0) for cell in cells]
    result = draw_positions(canvas, parasites, 30.0, occupied)
    occupied += [(position, 42.0) for position in result]
    decoys = draw_positions(canvas, artefacts, 42.0, occupied)
    occupied += [(position, 30.0) for position in decoys]
    clarity = rng.beta(1.9, 1.3, len(result))
    for (x, y), plain in zip(result, clarity, strict=True):
        draw = draw_ring if rng.random() < 0.68 else draw_trophozoite
        draw(canvas, x, y, 0.45 + 0.6 * float(plain))
    allure = np.sort(rng.beta(1.6, 2.0, len(decoys)))
    for (x, y), likeness in zip(decoys, allure, strict=True):
        _DECOYS[int(rng.integers(len(_DECOYS)))](canvas, x, y, 0.55 + 0.5 * float(likeness))
    for x, y in draw_positions(canvas, round(rng.integers(22, 40) * share), 18.0, occupied):
        draw_platelet(canvas, x, y, float(rng.uniform(0.2, 0.55)))
    _draw_debris(canvas, share, occupied)
    return Smear(
        image=photograph(canvas),
        parasites=np.array(result, dtype=np.float64).reshape(-1, 2),
        clarity=clarity,
        artefacts=np.array(decoys, dtype=np.float64).reshape(-1, 2),
        allure=allure,
    )


def _draw_film(canvas: Canvas, share: float) -> None:
    """Draw the lysed film: clouds, mottles, fibrin fibres and ghosts of erythrocytes."""
    rng, film = canvas.rng, canvas.stain[FILM]
    film += float(rng.uniform(0.52, 0.74))
    for scale, depth in ((190.0, 0.09), (60.0, 0.07), (17.0, 0.085), (6.0, 0.08), (2.2, 0.075)):
        film += depth * canvas.noise(scale)
    ridges = np.exp(-np.abs(canvas.noise(11.0)) * 5.0)
    film += 0.16 * ridges * np.clip(0.6 + 0.7 * canvas.noise(80.0), 0.0, 1.6)
    canvas.stain[CYTOPLASM] += np.clip(0.05 + 0.025 * canvas.noise(90.0), 0.0, None)
    for _ in range(round(rng.integers(260, 420) * share)):
        _draw_ghost(canvas, float(rng.uniform(0, canvas.width)), float(rng.uniform(0, canvas.height)))
    np.maximum(film, 0.12, out=film)


def _draw_ghost(canvas: Canvas, x: float, y: float) -> None:
    rng = canvas.rng
    radius = float(rng.normal(25.0, 2.6))
    inside = outline(rng, radius, float(rng.uniform(0.05, 0.22)))
    body = float(rng.choice([rng.normal(0.13, 0.07), rng.normal(-0.11, 0.05)]))
    rim, softness = float(rng.uniform(0.04, 0.17)), float(rng.uniform(1.5, 3.5))

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        distance = inside(dx, dy)
        pallor = 1.0 - 0.35 * np.exp(-((np.hypot(dx, dy) / (0.45 * radius)) ** 2))
        edge = np.exp(-(((distance - 2.0) / 2.6) ** 2))
        return {FILM: np.asarray(body * pallor * soft(distance, softness) + rim * edge, dtype=np.float32)}

    canvas.stamp(x, y, radius * 1.5, paint)


def _draw_leukocyte(canvas: Canvas, x: float, y: float) -> None:
    """Draw a lymphocyte with its round nucleus, or a neutrophil with three or four lobes."""
    rng = canvas.rng
    lobed = rng.random() < 0.6
    radius = float(rng.uniform(40, 50) if lobed else rng.uniform(30, 38))
    cell = outline(rng, radius, 0.10)
    lobes = _lobes(rng, radius) if lobed else [(0.0, 0.0, outline(rng, 0.78 * radius, 0.10))]

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        cover = soft(cell(dx, dy), 2.5)
        nucleus = np.max([soft(inside(dx - u, dy - v), 1.2) for u, v, inside in lobes], axis=0)
        chromatin = 1.0 + 0.16 * grain(rng, dx.shape, 3.2) + 0.08 * grain(rng, dx.shape, 1.2)
        granules = np.clip(grain(rng, dx.shape, 1.3) - 0.6, 0.0, None)
        return {
            CHROMATIN: np.asarray(1.25 * nucleus * chromatin + 0.07 * cover * granules, dtype=np.float32),
            CYTOPLASM: np.asarray((0.16 if lobed else 0.34) * cover + 0.30 * nucleus, dtype=np.float32),
            FILM: np.asarray(-0.20 * soft(cell(dx, dy) + 7.0, 5.0), dtype=np.float32),
        }

    canvas.stamp(x, y, radius * 1.6, paint)


def _lobes(
    rng: np.random.Generator, radius: float
) -> list[tuple[float, float, Callable[[Plane, Plane], Plane]]]:
    count = int(rng.integers(3, 5))
    start, turn = float(rng.uniform(0, 2 * np.pi)), float(rng.choice([-1.0, 1.0]))
    lobes = []
    for i in range(count):
        angle = start + turn * i * float(rng.uniform(1.05, 1.35))
        away = radius * float(rng.uniform(0.36, 0.46))
        size = radius * float(rng.uniform(0.29, 0.37))
        lobes.append((away * np.cos(angle), away * np.sin(angle), outline(rng, size, 0.16)))
    bridges = []
    for (a, b, _), (c, d, _) in itertools.pairwise(lobes):
        bridges.append(((a + c) / 2, (b + d) / 2, outline(rng, radius * 0.17, 0.1)))
    return lobes + bridges


def _clearing(dx: Plane, dy: Plane, radius: float, depth: float) -> Plane:
    """Lighten the film around a parasite."""
    inside = np.asarray(radius - np.hypot(dx, dy), dtype=np.float32)
    return np.asarray(-depth * soft(inside, 2.5), dtype=np.float32)


def draw_ring(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw a young trophozoite: a thin ring of blue cytoplasm, often open, one or two dots of chromatin."""
    rng = canvas.rng
    radius = float(rng.uniform(6.3, 9.2))
    squeeze, tilt = float(rng.uniform(0.78, 1.0)), float(rng.uniform(0, np.pi))
    gap, opening = float(rng.uniform(0, 2 * np.pi)), float(rng.choice([0.0, rng.uniform(0.5, 1.2)]))
    width = float(rng.uniform(1.5, 2.1))
    where = gap + np.pi + float(rng.uniform(-0.8, 0.8))
    dots = [where] + ([where + float(rng.uniform(0.7, 1.3))] if rng.random() < 0.22 else [])
    size = float(rng.uniform(2.3, 3.1)) * (0.85 if len(dots) == 2 else 1.0)

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        u = dx * np.cos(tilt) + dy * np.sin(tilt)
        v = (dy * np.cos(tilt) - dx * np.sin(tilt)) / squeeze
        away, angle = np.hypot(u, v), np.arctan2(v, u)
        turn = np.abs((angle - gap + np.pi) % (2 * np.pi) - np.pi)
        thick = width * (1.0 + 0.55 * np.cos(angle - where) ** 2 * (np.cos(angle - where) > 0))
        ring = np.exp(-(((away - radius) / thick) ** 2)) * np.clip((turn - opening) / 0.3 + 0.5, 0.0, 1.0)
        dot = np.zeros_like(dx)
        for at in dots:
            far = np.hypot(u - radius * np.cos(at), v - radius * np.sin(at))
            dot = np.maximum(dot, soft(np.asarray(size - far, dtype=np.float32), 0.55))
        return {
            CYTOPLASM: np.asarray(strength * 0.62 * ring, dtype=np.float32),
            CHROMATIN: np.asarray(strength * (1.75 * dot + 0.16 * ring), dtype=np.float32),
            FILM: _clearing(dx, dy, radius + 4.0, 0.16),
        }

    canvas.stamp(x, y, radius + 14, paint)


def draw_trophozoite(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw a grown trophozoite: an irregular blue body, chromatin at its edge, grains of pigment."""
    rng = canvas.rng
    radius = float(rng.uniform(6.5, 9.0))
    body = outline(rng, radius, 0.38)
    side = float(rng.uniform(0, 2 * np.pi))
    u, v = 0.5 * radius * np.cos(side), 0.5 * radius * np.sin(side)
    nucleus = outline(rng, float(rng.uniform(3.0, 4.0)), 0.15)
    hole = float(rng.uniform(0.0, 0.7))

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        cover = soft(body(dx, dy), 0.9)
        vacuole = 1.0 - hole * np.exp(-(((dx + 0.5 * u) ** 2 + (dy + 0.5 * v) ** 2) / 9.0))
        mottle = 1.0 + 0.18 * grain(rng, dx.shape, 1.6)
        grains = np.clip(grain(rng, dx.shape, 0.8) - 1.5, 0.0, None)
        dot = soft(nucleus(np.asarray(dx - u, np.float32), np.asarray(dy - v, np.float32)), 0.7)
        return {
            CYTOPLASM: np.asarray(strength * 0.66 * cover * vacuole * mottle, dtype=np.float32),
            CHROMATIN: np.asarray(strength * (1.55 * dot + 0.22 * cover), dtype=np.float32),
            PIGMENT: np.asarray(strength * 0.30 * cover * grains, dtype=np.float32),
            FILM: _clearing(dx, dy, radius + 4.0, 0.14),
        }

    canvas.stamp(x, y, radius + 14, paint)


def draw_platelet(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw a platelet: pale lilac, with purple granules in the middle and no nucleus."""
    rng = canvas.rng
    radius = float(rng.uniform(6.0, 10.0))
    body = outline(rng, radius, 0.28)

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        cover = soft(body(dx, dy), 1.4)
        middle = np.exp(-((np.hypot(dx, dy) / (0.6 * radius)) ** 2))
        granules = np.clip(0.5 + 0.55 * grain(rng, dx.shape, 1.4), 0.0, None)
        return {
            CHROMATIN: np.asarray(strength * (0.22 * cover + 0.95 * middle * granules), dtype=np.float32),
            CYTOPLASM: np.asarray(strength * 0.22 * cover, dtype=np.float32),
        }

    canvas.stamp(x, y, radius * 2, paint)


def _draw_clump(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw an artefact: two or three platelets that stick together, dark where they overlap."""
    for _ in range(int(canvas.rng.integers(2, 4))):
        u, v = canvas.rng.normal(0.0, 4.0, 2)
        draw_platelet(canvas, x + float(u), y + float(v), 0.62 * strength)


def draw_precipitate(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw an artefact: a grain of stain with the size of a parasite, blackish and with a sharp edge."""
    rng = canvas.rng
    grains = [(*rng.normal(0, 3.2, 2), float(rng.uniform(1.8, 4.2))) for _ in range(int(rng.integers(2, 5)))]
    shapes = [(u, v, outline(rng, size, 0.3)) for u, v, size in grains]

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        cover = np.max([soft(inside(dx - u, dy - v), 0.5) for u, v, inside in shapes], axis=0)
        return {
            PIGMENT: np.asarray(strength * 0.55 * cover, dtype=np.float32),
            CHROMATIN: np.asarray(strength * 0.85 * cover, dtype=np.float32),
        }

    canvas.stamp(x, y, 24, paint)


def _draw_bubble(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw an artefact: a bubble with a speck on its rim, with the outline but not the colours of a ring."""
    rng = canvas.rng
    radius = float(rng.uniform(6.0, 9.0))
    at = float(rng.uniform(0, 2 * np.pi))

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        away = np.hypot(dx, dy)
        rim = np.exp(-(((away - radius) / 1.3) ** 2))
        speck = np.exp(-(((dx - radius * np.cos(at)) ** 2 + (dy - radius * np.sin(at)) ** 2) / 5.0))
        return {
            FILM: np.asarray(strength * (0.9 * rim - 0.4 * (away < radius - 1)), dtype=np.float32),
            CHROMATIN: np.asarray(strength * (0.20 * rim + 0.55 * speck), dtype=np.float32),
            PIGMENT: np.asarray(strength * 0.30 * speck, dtype=np.float32),
        }

    canvas.stamp(x, y, radius + 10, paint)


def _draw_fragment(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw an artefact: a fragment of a leukocyte's nucleus, evenly purple and without blue."""
    rng = canvas.rng
    body = outline(rng, float(rng.uniform(4.5, 7.5)), 0.35)

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        cover = soft(body(dx, dy), 1.3) * (1.0 + 0.15 * grain(rng, dx.shape, 1.5))
        return {CHROMATIN: np.asarray(strength * 0.80 * cover, dtype=np.float32)}

    canvas.stamp(x, y, 24, paint)


_DECOYS = (_draw_clump, draw_precipitate, _draw_bubble, _draw_fragment)


def _draw_debris(canvas: Canvas, share: float, occupied: list[tuple[tuple[float, float], float]]) -> None:
    """Draw specks of stain, too small to be mistaken for parasites, and one or two fibres."""
    rng = canvas.rng
    for x, y in draw_positions(canvas, round(rng.integers(40, 80) * share), 4.0, occupied):
        size, dark = float(rng.gamma(3.0, 0.32)), float(rng.uniform(0.2, 0.8))

        def speck(dx: Plane, dy: Plane, size: float = size, dark: float = dark) -> dict[int, Plane]:
            cover = soft(np.asarray(size - np.hypot(dx, dy), dtype=np.float32), 0.5)
            return {PIGMENT: np.asarray(dark * 0.7 * cover), CHROMATIN: np.asarray(dark * 0.4 * cover)}

        canvas.stamp(x, y, 8, speck)
    for _ in range(int(rng.integers(0, 2))):
        _draw_fibre(canvas)


def _draw_fibre(canvas: Canvas) -> None:
    rng = canvas.rng
    heading = float(rng.uniform(0, 2 * np.pi))
    x, y = float(rng.uniform(0, canvas.width)), float(rng.uniform(0, canvas.height))
    bend, dark = float(rng.normal(0, 0.012)), float(rng.uniform(0.05, 0.12))

    def dab(dx: Plane, dy: Plane) -> dict[int, Plane]:
        return {PIGMENT: np.asarray(dark * np.exp(-(dx**2 + dy**2) / 2.0), dtype=np.float32)}

    for _ in range(int(rng.integers(60, 160))):
        canvas.stamp(x, y, 5, dab)
        bend += float(rng.normal(0, 0.003))
        heading += bend
        x, y = x + 1.4 * np.cos(heading), y + 1.4 * np.sin(heading)


STAGES = ("uninfected", "ring", "trophozoite", "schizont", "gametocyte")

_RADIUS = 27.0
"""Radius of a cell in pixels of 0.14 micrometres."""


def draw_cell(seed: int, stage: str, difficulty: float = 0.0, size: int = 80) -> NDArray[np.uint8]:
    """Draw a red blood cell. Raises `ValueError` for another stage, difficulty or size.

    `seed`: the same arguments give the same image.
    `stage`: one of `STAGES`.
    `difficulty`: 0 (clear) to 1.
    `size`: pixels along a side, at least 64.
    The picture has shape (size, size, 3).
    """
    if stage not in STAGES or not 0.0 <= difficulty <= 1.0 or size < 64:
        raise ValueError(f"a {stage} of difficulty {difficulty} cannot be drawn on {size} pixels.")
    rng = np.random.default_rng([seed, 7])
    canvas = Canvas(rng, size, size)
    canvas.stain[FILM] += float(rng.uniform(0.02, 0.06)) + 0.008 * canvas.noise(5.0)
    _draw_neighbours(canvas)
    x, y = (float(size / 2 + rng.normal(0.0, 1.5)) for _ in range(2))
    _draw_erythrocyte(canvas, x, y)
    strength = 1.05 - 0.72 * difficulty
    angle, away = float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.15, 0.5)) * _RADIUS
    u, v = x + away * np.cos(angle), y + away * np.sin(angle)
    if stage == "ring":
        draw_ring(canvas, u, v, strength)
    elif stage == "trophozoite":
        draw_trophozoite(canvas, u, v, strength)
    elif stage == "schizont":
        _draw_schizont(canvas, x, y, strength)
    elif stage == "gametocyte":
        _draw_gametocyte(canvas, x, y, strength)
    elif difficulty > 0:
        decoy = draw_platelet if rng.random() < 0.6 else draw_precipitate
        decoy(canvas, u, v, 0.25 + 0.6 * difficulty)
    picture = photograph(canvas)
    if difficulty > 0:
        blurred = ndimage.gaussian_filter(picture.astype(np.float32), (1.3 * difficulty,) * 2 + (0,))
        picture = np.clip(np.rint(blurred), 0, 255).astype(np.uint8)
    return picture


def _draw_neighbours(canvas: Canvas) -> None:
    """Draw one or two neighbouring cells at the edge of the image."""
    rng = canvas.rng
    middle = canvas.width / 2
    turn = float(rng.uniform(0, 2 * np.pi))
    for number in range(int(rng.integers(1, 4))):
        angle = turn + number * float(rng.uniform(1.7, 2.4))
        away = float(rng.uniform(2.05, 2.4)) * _RADIUS
        _draw_erythrocyte(canvas, middle + away * np.cos(angle), middle + away * np.sin(angle))


def _draw_erythrocyte(canvas: Canvas, x: float, y: float) -> None:
    """Draw a red blood cell: a disc that is paler in its middle."""
    rng = canvas.rng
    radius = float(rng.normal(_RADIUS, 1.2))
    inside = outline(rng, radius, 0.05)
    body, hollow = float(rng.uniform(0.62, 0.8)), float(rng.uniform(0.25, 0.5))

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        distance = inside(dx, dy)
        pallor = 1.0 - hollow * np.exp(-((np.hypot(dx, dy) / (0.48 * radius)) ** 2))
        rim = np.exp(-(((distance - 1.5) / 1.6) ** 2))
        mottle = 1.0 + 0.03 * grain(rng, dx.shape, 2.0)
        film = body * pallor * mottle * soft(distance, 0.7) + 0.10 * rim
        return {FILM: np.asarray(film, dtype=np.float32)}

    canvas.stamp(x, y, radius * 1.3, paint)


def _draw_schizont(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw a schizont: many dots of chromatin around a clump of pigment."""
    rng = canvas.rng
    body = outline(rng, float(rng.uniform(0.62, 0.75)) * _RADIUS, 0.08)
    count = int(rng.integers(9, 17))
    turns = np.arange(count) * 2.4 + float(rng.uniform(0, 2 * np.pi))
    away = np.sqrt(np.linspace(0.12, 1.0, count)) * 0.52 * _RADIUS + rng.normal(0, 0.8, count)
    spots = [(a * np.cos(t), a * np.sin(t)) for a, t in zip(away, turns, strict=True)]
    sizes = rng.uniform(2.0, 2.7, count)

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        cover = soft(body(dx, dy), 1.0)
        dots = np.zeros_like(dx)
        for (u, v), size in zip(spots, sizes, strict=True):
            far = np.hypot(dx - np.float32(u), dy - np.float32(v))
            dots = np.maximum(dots, soft(np.asarray(size - far, dtype=np.float32), 0.55))
        clump = np.exp(-((np.hypot(dx, dy) / 3.2) ** 2)) * (1 + 0.3 * grain(rng, dx.shape, 1.0))
        return {
            CYTOPLASM: np.asarray(strength * 0.34 * cover, dtype=np.float32),
            CHROMATIN: np.asarray(strength * (1.3 * dots + 0.10 * cover), dtype=np.float32),
            PIGMENT: np.asarray(strength * 0.55 * clump, dtype=np.float32),
        }

    canvas.stamp(x, y, _RADIUS, paint)


def _draw_gametocyte(canvas: Canvas, x: float, y: float, strength: float) -> None:
    """Draw a gametocyte: a crescent as long as the cell, chromatin and pigment in its middle."""
    rng = canvas.rng
    tilt, bend = float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.010, 0.018))
    half, thick = float(rng.uniform(0.86, 0.98)) * _RADIUS, float(rng.uniform(0.22, 0.28)) * _RADIUS

    def paint(dx: Plane, dy: Plane) -> dict[int, Plane]:
        u = dx * np.float32(np.cos(tilt)) + dy * np.float32(np.sin(tilt))
        v = (
            dy * np.float32(np.cos(tilt))
            - dx * np.float32(np.sin(tilt))
            - bend * (u * u - 0.35 * half * half)
        )
        width = thick * np.sqrt(np.clip(1 - (u / half) ** 2, 0.0, None))
        cover = soft(np.asarray(width - np.abs(v), dtype=np.float32), 0.6) * (np.abs(u) < half)
        middle = np.exp(-((np.hypot(u / 1.8, v) / 4.0) ** 2))
        grains = np.clip(grain(rng, dx.shape, 0.9) - 0.8, 0.0, None)
        return {
            CYTOPLASM: np.asarray(strength * 0.62 * cover, dtype=np.float32),
            CHROMATIN: np.asarray(strength * cover * (0.95 * middle + 0.12), dtype=np.float32),
            PIGMENT: np.asarray(strength * 0.5 * cover * middle * grains, dtype=np.float32),
        }

    canvas.stamp(x, y, _RADIUS * 1.4, paint)
