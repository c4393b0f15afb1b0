"""The colours of the program, by what they mean."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANNOTATOR_COLOURS", "ANNOTATOR_SYMBOLS", "DARK", "LIGHT", "UNNAMED", "Theme"]


@dataclass(frozen=True, slots=True)
class Theme:
    """One look of the whole program; every value is a hexadecimal colour but the first two.

    Attributes
    ----------
    name : str
    dark : bool
    window, surface, raised, line : str
        Grounds, from the back to the front, and what parts them.
    canvas : str
        Ground of an image. Images are judged on dark, whatever the theme.
    text, second, third : str
        Three weights of words; each keeps a contrast of 4.5 : 1 on all grounds.
    accent : str
        Selection, accepted, certain.
    rejected : str
        Rejected, biased; always with a cross or dashes.
    disputed : str
        Doubt; always with dashes.
    on_accent : str
        Words on the accent.
    painted : str
        What the expert paints into an image; no annotator's colour, nor any other, in anybody's eyes.
    """

    name: str
    dark: bool
    window: str
    surface: str
    raised: str
    line: str
    canvas: str
    text: str
    second: str
    third: str
    accent: str
    rejected: str
    disputed: str
    on_accent: str
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
    rejected="#7d2a00",
    disputed="#8a6100",
    on_accent="#ffffff",
    painted="#22ffbb",
)

ANNOTATOR_COLOURS = (
    "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#bbbbbb",
)  # fmt: skip
"""The palette of Okabe and Ito, its black replaced by a grey that is seen on a dark ground."""

ANNOTATOR_SYMBOLS = ("o", "s", "t1", "d", "star")
"""Disc, square, triangle, diamond, star, by pyqtgraph's names."""

UNNAMED = "#8a96a2"
"""Of annotators beyond all combinations of colour and symbol."""
