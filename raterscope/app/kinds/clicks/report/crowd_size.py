"""Clicks in a report: sensitivity and precision of methods against the number of annotators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.clicks.crowd_size import (
    DETECTORS_PUBLISHED,
    CrowdSizeCurve,
    CrowdSizeSettings,
)
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import counted
from raterscope.app.kinds.clicks.crowd_size import kept_crowd_sizes, measure_images, read_crowds
from raterscope.app.page.charts import LINES, draw_lines, paper_line
from raterscope.app.page.contents import Gallery, Picture, Section, Swatch, Table
from raterscope.app.page.units import NONE
from raterscope.app.study import RunEntry, Study

__all__ = ["crowd_size_section", "kept_section"]

MEASURES = ("sensitivity", "precision")


def crowd_size_section(
    study: Study,
    images: Sequence[int],
    run: RunEntry,
    settings: CrowdSizeSettings,
    watch: Watch = silent,
) -> Section:
    """Measure crowds of several sizes on images with ground truth, and draw what comes of it.

    Parameters
    ----------
    study : Study
    images : sequence of int
    run : RunEntry
        Its plan is the chosen method.
    settings : CrowdSizeSettings
    watch : Watch

    Raises
    ------
    InputError
        Where no image has ground truth.
    """
    try:
        plan = FusionPlan.from_dict(run.settings)
    except SettingsError:  # of an older version
        plan = FusionPlan()
    radius = study.settings.matching_radius()
    clicks, truth = read_crowds(images, study, part(watch, 0.0, 0.05))
    curves = measure_images(clicks, truth, radius, plan, settings, part(watch, 0.05, 1.0))
    facts = (
        f"On {counted(len(truth), 'image')} with ground truth, within {radius:g} px: {settings.in_words()}."
    )
    return _section(curves, facts)


def kept_section(study: Study) -> Section | None:
    """Draw the curves that the study keeps; None where there are none."""
    kept = kept_crowd_sizes(study)
    return None if kept is None else _section(kept.curves, kept.facts)


def _section(curves: Sequence[CrowdSizeCurve], facts: str) -> Section:
    colours = _colours(curves)
    pictures = [
        _picture(curves, stage, measure, colours)
        for stage in ("clustering", "detection")
        for measure in MEASURES
    ]
    legend = [Swatch(colour, name) for name, colour in colours.items()]
    note = (
        f"{facts} Crowds are drawn at random from the annotators of each image, and each image is fused by "
        "itself. After detection a line has the colour of its clustering: with dots for DEM, without for "
        "majority voting (OEM-DEM paper, figures 2 and 7 to 16)."
    )
    return Section(
        "Number of annotators", [Gallery("Crowds of several sizes", pictures, legend, note), _table(curves)]
    )


def _colours(curves: Sequence[CrowdSizeCurve]) -> dict[str, str]:
    names = dict.fromkeys(_clustering(curve.method) for curve in curves)
    return {name: LINES[at % len(LINES)] for at, name in enumerate(names)}


def _clustering(method: str) -> str:
    """Give a method's name without that of a published detector."""
    for detector in DETECTORS_PUBLISHED:
        method = method.removesuffix(f", {detector}")
    return method


def _picture(curves: Sequence[CrowdSizeCurve], stage: str, measure: str, colours: dict[str, str]) -> Picture:
    lines = []
    for curve in curves:
        if curve.stage == stage:
            mean, error = getattr(curve, measure), np.nan_to_num(getattr(curve, f"{measure}_error"))
            dots = not curve.method.endswith("majority vote")
            at = curve.annotators.astype(np.float64)
            lines.append(
                paper_line(at, mean, colours[_clustering(curve.method)], dots, mean - error, mean + error)
            )
    most = max(float(curve.annotators.max()) for curve in curves)
    return draw_lines(
        lines, "annotators", measure, f"{measure.capitalize()} after {stage}",
        "mean, shaded by a standard error to each side", most=most,
    )  # fmt: skip


def _table(curves: Sequence[CrowdSizeCurve]) -> Table:
    sizes = curves[0].annotators
    ends = list(dict.fromkeys((0, len(sizes) // 2, len(sizes) - 1)))
    rows = []
    for curve in curves:
        cells = [
            _figure(getattr(curve, measure)[at], getattr(curve, f"{measure}_error")[at])
            for at in ends
            for measure in MEASURES
        ]
        rows.append([f"{curve.method}, after {curve.stage}", *cells])
    columns = [f"{measure[:4]}. {sizes[at]}" for at in ends for measure in MEASURES]
    return Table(
        "Methods by number of annotators", ("Method", *columns), rows,
        "Mean with its standard error; the numbers above are those of the annotators.",
    )  # fmt: skip


def _figure(value: float, error: float) -> str:
    if not np.isfinite(value):
        return NONE
    return f"{value:.3f}" + (f" \N{PLUS-MINUS SIGN} {error:.3f}" if np.isfinite(error) else "")
