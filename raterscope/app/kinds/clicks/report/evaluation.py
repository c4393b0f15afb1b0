"""Images of clicks against ground truth: what was found, and whether probabilities are what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.evaluation import Evaluation, calibration, compare, curves_of, evaluate
from raterscope.algorithms.labels.assessment import wilson
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.clicks.accuracy import evaluate_fusion, judged_spots
from raterscope.app.kinds.clicks.report.counted_image import CountedImage
from raterscope.app.page.charts import LINES, draw_lines, paper_line
from raterscope.app.page.contents import Block, Gallery, Table, shortened
from raterscope.app.page.units import NONE, share
from raterscope.text.numbers import estimate

__all__ = ["against_truth"]


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
