"""Methods on crowds of several sizes: measured on images with ground truth, written as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.crowd_size import (
    STAGES,
    CrowdSizeCurve,
    CrowdSizeSettings,
    measure_crowd_sizes,
)
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, counted
from raterscope.app.formats.output_files import shortest, take_away, write_table
from raterscope.app.kinds.clicks.accuracy import truths_of
from raterscope.app.outcome import finite_or_none
from raterscope.app.review import fold
from raterscope.app.study import Study

COLUMNS = (
    "stage", "method", "annotators", "crowds", "sensitivity", "sensitivity_error", "precision",
    "precision_error",
)  # fmt: skip

NO_TRUTH = "no image has ground truth to measure crowds of several sizes against"

Curves = tuple[CrowdSizeCurve, ...]

Crowds = tuple[dict[str, Clicks], dict[str, FloatArray]]
"""Clicks and true places of images, by name."""


_FIGURES = ("sensitivity", "precision", "sensitivity_error", "precision_error")
_COUNTS = ("annotators", "draws")


@dataclass(frozen=True, eq=False)
class CrowdSizes:
    """Curves of a study as they were measured last.

    Attributes
    ----------
    curves : tuple of CrowdSizeCurve
    facts : str
        When, on how many images, within which radius, which crowds: a sentence.
    """

    curves: Curves
    facts: str


def measure_images(
    clicks: Mapping[str, Clicks],
    truth: Mapping[str, FloatArray],
    radius: float,
    plan: FusionPlan,
    settings: CrowdSizeSettings,
    watch: Watch = silent,
) -> Curves:
    """Measure on the images of which the true places are known.

    Raises
    ------
    InputError
        Where there is none.
    """
    known = [(clicks[name], places) for name, places in truth.items() if name in clicks and len(places)]
    if not known:
        raise InputError(NO_TRUTH)
    return measure_crowd_sizes(known, radius, plan, settings, watch)


def read_crowds(images: Sequence[int], study: Study, watch: Watch = silent) -> Crowds:
    """Read clicks and true places of the images that have some, by the image's name.

    Annotators whom the expert excluded are left out; what the expert decided on spots is not used.

    Raises
    ------
    InputError
        Where no image has ground truth.
    """
    names = {entry.id: entry.name for entry in study.images()}
    excluded = set(fold(study.decisions()).excluded)
    truth = {image: places for image, places in truths_of(study).items() if image in images and len(places)}
    if not truth:
        raise InputError(NO_TRUTH)
    clicks = {}
    for done, image in enumerate(truth):
        watch(done / len(truth), "reading clicks")
        clicks[names[image]] = study.clicks(image).without(excluded)
    return clicks, {names[image]: places for image, places in truth.items()}


def keep_crowd_sizes(
    curves: Curves,
    images: int,
    radius: float,
    settings: CrowdSizeSettings,
    study: Study,
    watch: Watch = silent,
) -> CrowdSizes:
    """Keep curves in the study, in place of those before."""
    watch(0.0, "keeping what was measured")
    day = datetime.now(UTC).astimezone().date().isoformat()
    facts = f"Measured {day} on {counted(images, 'image')} within {radius:g} px: {settings.in_words()}."
    record = {
        "facts": facts,
        "curves": [
            {"method": one.method, "stage": one.stage}
            | {name: getattr(one, name).tolist() for name in _COUNTS}
            | {name: list(map(finite_or_none, getattr(one, name).tolist())) for name in _FIGURES}
            for one in curves
        ],
    }
    study.settings.keep_crowd_sizes(record)
    return CrowdSizes(curves, facts)


def kept_crowd_sizes(study: Study, watch: Watch = silent) -> CrowdSizes | None:
    """Give the curves that a study keeps; None where there are none, or none that can be read."""
    watch(0.0, "reading what was measured")
    record = study.settings.crowd_sizes()
    if record is None:
        return None
    try:
        curves = tuple(_curve_of(one) for one in record["curves"])
        return CrowdSizes(curves, str(record["facts"])) if curves else None
    except (KeyError, TypeError, ValueError):
        return None


def _curve_of(record: Mapping[str, Any]) -> CrowdSizeCurve:
    sizes, draws = (np.array(record[name], dtype=np.int64) for name in _COUNTS)
    figures = [
        np.array([math.nan if one is None else one for one in record[name]], dtype=np.float64)
        for name in _FIGURES
    ]
    if not len(sizes) or any(one.shape != (len(sizes),) for one in (sizes, draws, *figures)):
        raise ValueError("figures of unlike length")
    if record["stage"] not in STAGES:
        raise ValueError("no stage")
    sensitivity, precision, sensitivity_error, precision_error = figures
    return CrowdSizeCurve(
        str(record["method"]), record["stage"], sizes, sensitivity, precision, sensitivity_error,
        precision_error, draws,
    )  # fmt: skip


def write_crowd_sizes(folder: Path, curves: Curves) -> list[Path]:
    """Write crowd_size.csv into a folder; without curves, take away one that is there."""
    path = folder / "crowd_size.csv"
    if not curves:
        take_away(path)
        return []
    return [write_table(path, COLUMNS, _rows(curves))]


def _rows(curves: Curves) -> Iterator[tuple[object, ...]]:
    for curve in curves:
        figures = (curve.sensitivity, curve.sensitivity_error, curve.precision, curve.precision_error)
        for at, (size, draws) in enumerate(zip(curve.annotators, curve.draws, strict=True)):
            yield (
                curve.stage,
                curve.method,
                int(size),
                int(draws),
                *(shortest(float(one[at])) for one in figures),
            )


def in_words(curves: Curves) -> Iterator[str]:
    """Say how each method does with the smallest and the largest crowd, a line each."""
    for curve in curves:
        ends = " to ".join(
            f"{curve.sensitivity[at]:.3f}/{curve.precision[at]:.3f}" for at in dict.fromkeys((0, -1))
        )
        sizes = " to ".join(str(int(curve.annotators[at])) for at in dict.fromkeys((0, -1)))
        yield f"after {curve.stage}, {curve.method}: sensitivity/precision {ends} with {sizes} annotators"
