"""Measures of clicks in a report: counts on an image, ground truth, and the number of annotators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks.crowd_size import (
    DETECTORS_PUBLISHED,
    CrowdSizeCurve,
    CrowdSizeSettings,
)
from raterscope.algorithms.clicks.data import BoolArray
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.evaluation import Evaluation, calibration, compare, curves_of, evaluate
from raterscope.algorithms.labels.assessment import wilson
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.disputes import DISPUTED
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.clicks.accuracy import evaluate_fusion, judged_spots
from raterscope.app.kinds.clicks.crowd_size import kept_crowd_sizes, measure_images, read_crowds
from raterscope.app.kinds.clicks.deciding import Decided, decided_on
from raterscope.app.page.charts import LINES, draw_lines, paper_line
from raterscope.app.page.contents import Block, Gallery, Picture, Section, Swatch, Table, shortened
from raterscope.app.page.units import NONE, share
from raterscope.app.review import Spot
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.records import TruePoints
from raterscope.text.numbers import estimate


@dataclass(frozen=True, eq=False)
class CountedImage:
    """What is found on one image: the fusion's clusters with the expert's word in place of the posterior.

    Attributes
    ----------
    entry : ImageEntry
    run : RunEntry
    fusion : Fusion
    annotators : tuple of str
        Who looked.
    spots : Decided
    judged : tuple of Spot
        What the expert decided.
    truth : TruePoints
    """

    entry: ImageEntry
    run: RunEntry
    fusion: Fusion
    annotators: tuple[str, ...]
    spots: Decided
    judged: tuple[Spot, ...]
    truth: TruePoints

    @property
    def disputed(self) -> BoolArray:
        """Which spots are in dispute, (M,)."""
        low, high = DISPUTED
        return ~self.spots.decided & (self.spots.posterior > low) & (self.spots.posterior < high)


def read_counted(study: Study, entry: ImageEntry, spots: Sequence[Spot]) -> CountedImage | None:
    """Read the fusion shown of an image and lay the expert's decisions over it; None without one."""
    shown = study.shown.result(entry.id)
    if shown is None:
        return None
    run, fusion = shown
    return CountedImage(
        entry=entry,
        run=run,
        fusion=fusion,
        annotators=study.clicks(entry.id, run).annotators,
        spots=decided_on(fusion, spots),
        judged=tuple(spots),
        truth=study.truth(entry.id),
    )


def against_truth(found: Sequence[CountedImage], radius: float) -> list[Block]:
    """Compare with ground truth within a radius, on the images that have some; nothing without."""
    known = [one for one in found if one.truth.known]
    if not known:
        return []
    fused = [evaluate_fusion(one.fusion, one.truth.places, radius) for one in known]
    decided = [
        evaluate(np.column_stack([one.spots.x, one.spots.y])[one.spots.present], one.truth.places, radius)
        for one in known
    ]
    rows = shortened([_row(plain(one.entry.name), [each]) for one, each in zip(known, decided, strict=True)])
    if len(known) > 1:
        rows.append(_row("all images", decided))
    if any(len(one.judged) for one in known):
        rows.append(_row("all images, before the expert", fused))
    held = sorted({one.run.id for one in known if one.run.log.get("truth_held")})
    note = (
        f"A spot that was found matches a true position within {radius:g} px, one to one. Sensitivity: share "
        "of the true positions that were found; precision: share of what was found that is known; F1: both "
        "in one. 95 % intervals are Wilson's, as if spots were independent of each other."
    )
    if len(known) > 1:
        (mean,) = compare({"mean": fused})
        note += (
            " The mean over images, before the expert, as the comparison of runs shows it: sensitivity "
            f"{share(mean.sensitivity)}, precision {share(mean.precision)}, F1 {share(mean.f_one)}."
        )
    if held:
        runs = " and ".join(str(number) for number in held)
        note += f" Ground truth were held fixed in run {runs}: the figures say little of the method."
    columns = ("Image", "Known", "Found", "Matched", "Sensitivity", "Precision", "F1")
    return [Table("Against ground truth", columns, rows, note), _curves(known, radius)]


def _row(name: str, every: Sequence[Evaluation]) -> tuple[str, ...]:
    hits, false, missed = (
        sum(getattr(one, each) for one in every)
        for each in ("true_positive", "false_positive", "false_negative")
    )
    whole = 2 * hits + false + missed
    return (
        name,
        f"{hits + missed:,}",
        f"{hits + false:,}",
        f"{hits:,}",
        _share(hits, hits + missed),
        _share(hits, hits + false),
        share(2 * hits / whole if whole else float("nan")),
    )


def _share(part: int, whole: int) -> str:
    return estimate(part / whole, *wilson(part, whole)) if whole else NONE


def _curves(known: Sequence[CountedImage], radius: float) -> Gallery:
    """Draw precision over sensitivity and the calibration of all spots together, before the expert."""
    posterior, true = judged_spots([(one.fusion, one.truth.places) for one in known], radius)
    drawn, sure = (
        curves_of(posterior, true, sum(len(one.truth) for one in known)),
        calibration(posterior, true),
    )
    filled = sure.count > 0
    pictures = [
        draw_lines(
            [paper_line(drawn.sensitivity, drawn.precision, LINES[0])], "sensitivity", "precision",
            "Precision and sensitivity", f"average precision {share(drawn.average_precision)}",
        ),
        draw_lines(
            [paper_line(sure.posterior[filled], sure.share[filled], LINES[0], dots=True)],
            "probability of a spot", "share that is known", "Calibration",
            f"expected error {share(sure.error)}; on the diagonal a probability is what it says",
            diagonal=True,
        ),
    ]  # fmt: skip
    many = counted(len(posterior), "spot")
    return Gallery(
        "Probabilities against ground truth", pictures, (), f"{many}, before the expert's decisions."
    )


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
