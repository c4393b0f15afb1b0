"""Colours of the program by meaning, and outlines of the symbols of annotators, communities and points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal


@dataclass(frozen=True, slots=True)
class Theme:
    """Theme of the program; every value but the first two is a hexadecimal colour."""

    name: str
    dark: bool
    # window, surface, raised, line: backgrounds, from back to front, and separators
    window: str
    surface: str
    raised: str
    line: str
    canvas: str  # background of an image: dark in every theme
    # text, second, third: three text colours; each has a contrast of at least 4.5 : 1 on all backgrounds
    text: str
    second: str
    third: str
    accent: str  # selection, accepted, certain
    rejected: str  # rejected, biased; always with a cross or dashes
    disputed: str  # doubt; always with dashes
    on_accent: str  # text on the accent
    # painting by the expert into an image; distinct from all other colours, also for colour-blind users
    painted: str


DARK = Theme(
    name="dark",
    dark=True,
    window="#15181c",
    surface="#1c2026",
    raised="#252b32",
    line="#343c45",
    canvas="#0d0f11",
    text="#e6e9ec",
    second="#a6b0ba",
    third="#8a96a2",
    accent="#4aa3ff",
    rejected="#f07a2b",
    disputed="#ffd166",
    on_accent="#0d0f11",
    painted="#22ffbb",
)

LIGHT = Theme(
    name="light",
    dark=False,
    window="#f4f5f7",
    surface="#ffffff",
    raised="#eef0f3",
    line="#d5dae0",
    canvas="#0d0f11",
    text="#15181c",
    second="#4a5561",
    third="#5f6a75",
    accent="#1668c7",
    rejected="#8a0f00",
    disputed="#ba4700",
    on_accent="#ffffff",
    painted="#22ffbb",
)

ANNOTATOR_COLOURS = (
    "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#bbbbbb",
)  # fmt: skip
"""The palette of Okabe and Ito; a grey that is visible on dark backgrounds replaces its black."""

ANNOTATOR_SYMBOLS: tuple[Symbol, ...] = ("disc", "square", "triangle", "diamond", "star")

UNNAMED = "#8a96a2"
"""Colour of annotators when all combinations of colour and symbol are used."""

_READABLE = 4.5
_COMMUNITY, _PALETTE = "community ", "palette "


def colour_of(ink: str, palette: Theme) -> str:
    """Return the hexadecimal colour of an ink.

    `ink`: a hexadecimal colour, a token of the theme such as "accent", "community 3" or "palette 3", counted
    from 0.
    """
    if ink.startswith("#"):
        return ink
    if ink.startswith(_COMMUNITY):
        return community_colour_on(palette, int(ink.removeprefix(_COMMUNITY)))
    if ink.startswith(_PALETTE):
        number = int(ink.removeprefix(_PALETTE))
        return readable(ANNOTATOR_COLOURS[number % len(ANNOTATOR_COLOURS)], palette)
    return str(getattr(palette, ink))


def community_colour(number: int) -> str:
    """Return a community's colour: from the palette of Okabe and Ito, grey after its eight colours."""
    return ANNOTATOR_COLOURS[number] if 0 <= number < len(ANNOTATOR_COLOURS) else UNNAMED


def readable(hue: str, palette: Theme) -> str:
    """Return a colour of the palette that is readable on the theme's background: darker on a light one."""
    if palette.dark:
        return hue
    return "#" + "".join(f"{round(255 * part / 1.25):02x}" for part in _parts(hue))


@lru_cache(maxsize=128)
def community_colour_on(palette: Theme, number: int) -> str:
    """Return a community's colour, mixed with the text colour until it is readable."""
    hue, words = community_colour(number), palette.text
    for share in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        parts = zip(_parts(hue), _parts(words), strict=True)
        candidate = "#" + "".join(
            f"{round(255 * ((1 - share) * first + share * second)):02x}" for first, second in parts
        )
        if contrast_of(candidate, palette.raised) >= _READABLE:
            return candidate
    return words


def contrast_of(first: str, second: str) -> float:
    """Return the contrast of two colours, 1 to 21, as the accessibility guidelines (WCAG 2.1) define it.

    Examples
    --------
    >>> contrast_of("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in _parts(colour))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


Symbol = Literal["disc", "square", "triangle", "diamond", "star", "cross", "tick"]


def _ring(*radii: float) -> tuple[tuple[float, float], ...]:
    """Return corners at equal angles from the top, at given distances from the origin."""
    angles = [2 * math.pi * corner / len(radii) for corner in range(len(radii))]
    return tuple(
        (radius * math.sin(angle), -radius * math.cos(angle))
        for radius, angle in zip(radii, angles, strict=True)
    )


OUTLINES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)),
    "triangle": _ring(*[1.3] * 3),
    "diamond": _ring(*[1.2] * 4),
    "star": _ring(*[1.4, 0.6] * 5),
}
"""Corners of symbols around the origin; each has the visual weight of a disc of radius 1."""


_DARKEST = (22, 104, 199)


def tint(weight: float) -> tuple[str, str]:
    """Return background and text colour of a cell on paper, white at 0 and darkest at 1."""
    weight = min(max(weight, 0.0), 1.0)
    ground = [round(255 + weight * (part - 255)) for part in _DARKEST]
    ink = LIGHT.surface if weight > 0.75 else LIGHT.text
    return "#" + "".join(f"{part:02x}" for part in ground), ink
