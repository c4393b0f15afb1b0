"""Inks, dashes and names of the behaviours of annotators."""

from __future__ import annotations

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.figures.colours import colour_of
from raterscope.figures.description import Key
from raterscope.widgets import theme

__all__ = [
    "BAD", "BEHAVIOUR_DASHES", "BEHAVIOUR_INKS", "BEHAVIOUR_KEYS", "BEHAVIOUR_WORDS", "GOOD", "UGLY",
    "UNDECIDABLE", "behaviour_colour",
]  # fmt: skip

GOOD, UGLY, BAD, UNDECIDABLE = range(len(BEHAVIOUR_WORDS))
BEHAVIOUR_INKS = ("third", "disputed", "rejected", "third")
BEHAVIOUR_DASHES: tuple[tuple[float, ...], ...] = ((), (3.0, 2.0), (), (1.0, 2.0))
"""In widths of the line."""
SHORT_WORDS = ("no bias", "leaning", "one-sided", "undecidable")
BEHAVIOUR_KEYS = tuple(
    Key(words, ink, dashes, "cross" if behaviour == BAD else None, short=short)
    for behaviour, (words, ink, dashes, short) in enumerate(
        zip(BEHAVIOUR_WORDS, BEHAVIOUR_INKS, BEHAVIOUR_DASHES, SHORT_WORDS, strict=True)
    )
)
"""Legend; short words are used in a narrow plot."""


def behaviour_colour(behaviour: int) -> str:
    """Return the colour of a behaviour in the theme in use."""
    return colour_of(BEHAVIOUR_INKS[behaviour], theme.current())
