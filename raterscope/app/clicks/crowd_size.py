"""Methods on crowds of several sizes: measured on images with ground truth, written as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings, measure_crowd_sizes
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.clicks.accuracy import truths_of
from raterscope.app.errors import InputError
from raterscope.app.formats.export import shortest, take_away, write_table
from raterscope.app.review import fold
from raterscope.app.study import Study

__all__ = ["COLUMNS", "Crowds", "in_words", "measure_images", "read_crowds", "write_crowd_sizes"]

COLUMNS = (
    "stage", "method", "annotators", "crowds", "sensitivity", "sensitivity_error", "precision",
    "precision_error",
)  # fmt: skip

NO_TRUTH = "no image has ground truth to measure crowds of several sizes against"

Curves = tuple[CrowdSizeCurve, ...]

Crowds = tuple[dict[str, Clicks], dict[str, FloatArray]]
"""Clicks and true places of images, by name."""


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
