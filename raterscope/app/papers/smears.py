"""Experiments of the OEM-DEM paper on simulated smears: crowds as large as the paper's, 11 to 51 annotators.

The paper has ten images of MalariaSpot: five taken with a cellphone, where annotators miss faint parasites
and take artefacts for parasites, and five taken with standard technology. Simulated smears stand for both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.crowd_size import first_annotators
from raterscope.algorithms.clicks.fusion import fuse
from raterscope.algorithms.clicks.stream import StreamPlan, advance, begin
from raterscope.algorithms.simulation.crowds import click_on, gather
from raterscope.algorithms.simulation.smears import Smear, render_smear
from raterscope.app.papers.clicks import CROWDS, TABLE_1, plans, scores, stages
from raterscope.app.papers.experiments import Better, Chart, Experiment, Measures, Row
from raterscope.app.papers.open_data import ClickedImage

__all__ = ["SIZES", "STREAMED"]

_RADIUS = 8.0
"""Pixels: about the radius of a simulated ring."""

_POOL = 200
"""Annotators of an image; the paper had more than 5,000."""

_KINDS = {"cellphone": (0.45, 1.5, 24), "standard": (1.6, 0.5, 6)}
"""Of either kind of image, powers of clarity and allure, and the number of artefacts: cellphone images are
less plain, and have more that looks like a parasite."""

_IMAGES = {"cellphone": slice(0, 5), "standard": slice(5, 10)}
"""Of Table 1: Images 1 to 5, and 6 to 10."""

_SIMULATED = (
    "Simulated smears with 20 parasites stand for the images of MalariaSpot: five with faint parasites and "
    "24 artefacts for those taken with a cellphone, five with plain parasites and 6 artefacts for standard "
    "technology. 200 simulated annotators click on each."
)


@lru_cache(maxsize=10)
def _image(kind: str, number: int) -> tuple[Smear, ClickedImage]:
    """Simulate an image and the clicks of all annotators on it."""
    clarity, allure, artefacts = _KINDS[kind]
    smear = render_smear(100 * len(kind) + number, parasites=20, artefacts=artefacts)
    smear = replace(smear, clarity=smear.clarity ** (1 / clarity), allure=smear.allure ** (1 / allure))
    clicks = click_on(smear, gather(_POOL, number), number)
    return smear, ClickedImage(f"{kind} {number}", clicks, smear.parasites)


def _drawn(kind: str, run: int, count: int) -> tuple[ClickedImage, list[int]]:
    """Draw annotators of an image at random."""
    _, image = _image(kind, run % 5)
    order = np.random.default_rng([run, count, 7]).permutation(_POOL).tolist()[:count]
    return image, order


def _measured(cell: str, run: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    kind, size = cell.split()
    image, order = _drawn(kind, run, int(size))
    return stages(image._replace(clicks=first_annotators(image.clicks, order, int(size))), _RADIUS)


_LINES = {"OEM, DEM": "OEM, DEM", "OEM, majority": "OEM, majority", "default": "this program's default"}

SIZES = Experiment(
    name="clicks-figures-7-14-sizes",
    title="Table 1 and Figures 7 to 14: the paper's numbers of annotators, simulated smears",
    cells=tuple(f"{kind} {size}" for kind in _KINDS for size in CROWDS),
    measure=_measured,
    rows=(
        *(
            Row(
                f"Table 1, R = 31, {kind}, {name}: F2", f"{kind} 31",
                f"{name} F2" if "," in name else f"{name} clusters F2",
                paper=float(np.mean(values[_IMAGES[kind]])),
                default="default F2" if "," in name else "default clusters F2",
            )
            for kind in _KINDS
            for name, values in TABLE_1.items()
        ),
        *(
            Row(
                f"Figures 11 and 12, R = {size}, {kind}, {name}: {words}", f"{kind} {size}",
                f"{name} {letter}", words="-", default=f"default {letter}",
            )
            for kind in _KINDS
            for size in CROWDS
            for name in ("OEM, DEM", "OEM, majority")
            for letter, words in (("S", "sensitivity"), ("P", "precision"))
        ),
    ),
    charts=tuple(
        Chart(
            f"{words} after detection, {kind}", "annotators", words.lower(),
            tuple(
                (line, tuple((float(size), f"{kind} {size}", f"{name} {letter}") for size in CROWDS))
                for name, line in _LINES.items()
            ),
        )
        for kind in _KINDS
        for letter, words in (("S", "Sensitivity"), ("P", "Precision"))
    ),
    runs=300, quick=1, paper_runs=300,
    method="R of 200 simulated annotators drawn at random, 300 times for each R and kind of image, matched "
    "within 8 pixels.",
    command="raterscope papers -o x --only clicks --full",
    instead=_SIMULATED,
)  # fmt: skip


def _streamed(cell: str, run: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Let annotators join one by one from R(0) = 11 to 51, beside the batch of as many."""
    image, order = _drawn(cell, run, CROWDS[-1])
    found: dict[str, float] = {}
    batch = plans()["OEM, DEM"]
    printed = StreamPlan.from_dict(batch.as_dict() | {"stream": {"update": "printed"}})
    for kind, plan in (("printed", printed), ("default", StreamPlan())):
        state = begin(first_annotators(image.clicks, order, CROWDS[0]), plan)
        for count in range(CROWDS[0] + 1, CROWDS[-1] + 1):
            clicks = first_annotators(image.clicks, order, count)
            state = advance(state, clicks, plan)
            if count in (31, 51):
                both = {"stream": state.fusion, "batch": fuse(clicks, plan.fusion)}
                now: dict[str, float] = {}
                for name, fusion in both.items():
                    now |= dict(scores(name, fusion, image, _RADIUS))
                found |= {f"{kind} {count} {name}": value for name, value in now.items()}
                for letter in ("S", "P"):
                    gap = abs(now[f"stream {letter}"] - now[f"batch {letter}"])
                    found[f"{kind} {count} gap {letter}"] = gap
    return found


_SHOWN: tuple[tuple[str, str, Better], ...] = (
    ("stream", "follows the batch", "higher"),
    ("gap", "about 0", "lower"),
)

STREAMED = Experiment(
    name="clicks-figures-15-16-sizes",
    title="Figures 15 and 16: annotators join one by one from 11 to 51, simulated smears",
    cells=tuple(_KINDS),
    measure=_streamed,
    rows=tuple(
        Row(
            f"R = {count}, {kind}, {words}", kind, f"printed {count} {name} {letter}", words=says,
            default=f"default {count} {name} {letter}", better=better,
        )
        for kind in _KINDS
        for count in (31, 51)
        for name, says, better in _SHOWN
        for letter, words in (
            ("S", "sensitivity" if name == "stream" else "distance from the batch, sensitivity"),
            ("P", "precision" if name == "stream" else "distance from the batch, precision"),
        )
    ),
    runs=100, quick=0, paper_runs=100,
    method="41 steps of one annotator each, 100 times for each kind of image.",
    command="raterscope papers -o x --only clicks --full",
    instead=_SIMULATED,
)  # fmt: skip
