"""Small pictures of red blood cells that never were: with a parasite at some stage, or without one.

They are the tasks of simulated crowds: see `label_crowds`. What is drawn is a thin film, stained and
photographed as in `smears`, one cell in the middle of each picture. In a hard one a parasite is faint and the
picture less sharp, or a cell without any has something on it that looks like one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from raterscope.algorithms.simulation.smears import (
    CHROMATIN,
    CYTOPLASM,
    FILM,
    PIGMENT,
    Canvas,
    Plane,
    draw_platelet,
    draw_precipitate,
    draw_ring,
    draw_trophozoite,
    grain,
    outline,
    photograph,
    soft,
)

__all__ = ["STAGES", "draw_cell"]

STAGES = ("uninfected", "ring", "trophozoite", "schizont", "gametocyte")

_RADIUS = 27.0
"""Of a cell, in pixels: 0.14 micrometres each."""


def draw_cell(seed: int, stage: str, difficulty: float = 0.0, size: int = 80) -> NDArray[np.uint8]:
    """Draw a red blood cell.

    Parameters
    ----------
    seed : int
        The same arguments give the same picture.
    stage : str
        One of `STAGES`.
    difficulty : float
        0 for what is plain to see, to 1.
    size : int
        Pixels along a side, at least 64.

    Returns
    -------
    (size, size, 3) uint8
        Red, green and blue.

    Raises
    ------
    ValueError
        For another stage, difficulty or size.
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
    """Draw one or two cells that reach into the picture from its edge."""
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
