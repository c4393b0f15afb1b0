"""Colours that mean something differ for those who do not see all colours; shapes tell the same."""

import itertools

import numpy as np
import pytest

from raterscope.figures.colours import ANNOTATOR_COLOURS, UNNAMED
from raterscope.widgets import theme

LEAST = 10.0
"""CIEDE2000; 1 is just noticed side by side, 10 at a glance."""

SEEN_AS = {
    "all": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""Machado, Oliveira and Fernandes 2009, table 1, severity 1.0; of linear RGB."""

TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(colour, vision):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    relative = TO_XYZ @ np.clip(SEEN_AS[vision] @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(first, second):
    """CIEDE2000 of two colours in CIELAB."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    middle = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(middle**7 / (middle**7 + 25**7))
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180
    hue, light, chroma = (h1 + turn / 2) % 360, (l1 + l2) / 2, (c1 + c2) / 2
    apart = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    wave = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    lightness = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    saturation = (c2 - c1) / (1 + 0.045 * chroma)
    turned = apart / (1 + 0.015 * chroma * wave)
    blue = -np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    blue *= 2 * np.sqrt(chroma**7 / (chroma**7 + 25**7))
    return np.sqrt(lightness**2 + saturation**2 + turned**2 + blue * saturation * turned)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_measure_is_that_of_its_authors_examples(first, second, expected):
    # Sharma, Wu and Dalal 2005, table 1
    assert difference(first, second) == pytest.approx(expected, abs=1e-4)


def _least(colours, vision):
    seen_as = [lab(colour, vision) for colour in colours]
    return min(difference(first, second) for first, second in itertools.combinations(seen_as, 2))


@pytest.mark.parametrize("vision", list(SEEN_AS))
def test_annotators_differ_in_colour(vision):
    assert _least(ANNOTATOR_COLOURS, vision) >= LEAST


@pytest.mark.parametrize("vision", list(SEEN_AS))
@pytest.mark.parametrize("look", [theme.DARK, theme.LIGHT], ids=lambda look: look.name)
def test_accepted_rejected_and_disputed_differ_in_colour_too(look, vision):
    assert _least((look.accent, look.rejected, look.disputed), vision) >= LEAST


@pytest.mark.parametrize("vision", list(SEEN_AS))
def test_what_is_painted_looks_like_no_rater_and_no_consensus(vision):
    look = theme.DARK
    painted = lab(look.painted, vision)
    others = (*ANNOTATOR_COLOURS, UNNAMED, "#ffffff", "#000000", look.accent, look.rejected, look.disputed)
    assert min(difference(painted, lab(other, vision)) for other in others) >= LEAST
