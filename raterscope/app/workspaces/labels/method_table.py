"""Table of methods: every run of a question and the majority vote, measured against known truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from raterscope.algorithms.labels.assessment import Assessment, mean_curve
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.app.study import RunEntry
from raterscope.figures.evaluation import Curve
from raterscope.text import count
from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.parts import plain_label, plain_tip
from raterscope.widgets.tables.comparison_table import ComparisonRow, ComparisonTable, Measure

_LONGEST = 120
"""Largest number of letters of a notice beside the table."""

NAN = float("nan")
NOTHING = "Import true classes or mark gold tasks (G) to measure every run and the majority vote."
MEASURES = (
    Measure("accuracy", "Share of the tasks with known truth whose most probable class is correct"),
    Measure("AUC", "Probability that a task of a class ranks above one of another class, mean over classes"),
    Measure("log loss", "Mean of -ln posterior of the true class: confident errors cost most", "lowest"),
    Measure(
        "ECE",
        "Expected calibration error: mean difference of posteriors and the share correct",
        "lowest",
    ),
)


@dataclass(frozen=True, eq=False)
class MeasuredMethod:
    """Assessment of a run, or with None of the majority vote, and the weight of a vote in it."""

    run: RunEntry | None
    found: Assessment
    power: float = 1.0


class MethodTable(QWidget):
    """Table of methods, and advice on how far to trust the model."""

    run_chosen = Signal(object)  # key of the selected run
    part_wanted = Signal()  # votes should be down-weighted

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.table = ComparisonTable(MEASURES, NOTHING)
        self.table.header.set_title("Methods")
        self.advice = plain_label("", "disputed", wrap=True)
        self.advice.setContentsMargins(12, 0, 12, 8)
        self.advice.hide()
        self.in_part = QPushButton("Down-weight votes")
        self.in_part.setToolTip("Fuse with the weight of a vote that predicts held-out votes best")
        self.in_part.hide()
        row = horizontal(self.in_part, STRETCH, margins=(12, 0, 12, 8), spacing=None)
        vertical((self.table, 1), self.advice, row, inside=self)
        self.in_part.clicked.connect(self.part_wanted)
        self.table.run_chosen.connect(self._on_chosen)

    def set_advice(self, sentences: Sequence[str], *, err_together: bool = False) -> None:
        """Show advice on how far to trust the model; hidden without any."""
        self.in_part.setVisible(err_together)
        brief = [abbreviate(sentence) for sentence in sentences[: 1 if err_together else 2]]
        self.advice.setText(" ".join(brief))
        self.advice.setToolTip(plain_tip(" ".join(sentences)))
        self.advice.setAccessibleDescription(" ".join(sentences))
        self.advice.setVisible(bool(sentences))

    def show_runs(self, runs: Sequence[MeasuredMethod]) -> None:
        """Show the assessments of runs and the vote."""
        judged = max((run.found.judged for run in runs), default=0)
        self.table.set_rows(tuple(map(_row, runs)), f"{count(judged, 'known task')}" if runs else "")

    def _on_chosen(self, key: object) -> None:
        if key is not None:
            self.run_chosen.emit(key)


def abbreviate(sentence: str) -> str:
    """Shorten a notice to the part before its first colon or bracket; the tooltip shows all of it."""
    end = min((at for mark in (": ", " (", "; ") if (at := sentence.find(mark)) > 0), default=len(sentence))
    brief = sentence[:end]
    if len(brief) > _LONGEST:
        brief = brief[:_LONGEST].rsplit(" ", 1)[0]
    return sentence if len(brief) == len(sentence) else f"{brief} …"


def _row(measured: MeasuredMethod) -> ComparisonRow:
    assessment = measured.found
    figures = (
        (assessment.accuracy, assessment.accuracy_low, assessment.accuracy_high),
        (assessment.area, NAN, NAN),
        (assessment.log_loss, NAN, NAN),
        (assessment.calibration.error, NAN, NAN),
    )
    if measured.run is None:
        return ComparisonRow(None, "the vote", "", figures, "Shares of the votes, with equal weights")
    started = measured.run.started.astimezone().strftime("%H:%M")
    about = measured.run.settings.get("about", {})
    words = {"hold": ", truths held", "folds": ", in folds"}.get(str(about.get("truths")), "")
    if about.get("counting", "full") != "full":
        words += f", vote weight {measured.power:.2g}"
    return ComparisonRow(
        measured.run.id, labeller_title(measured.run.algorithm), f"{started}{words}", figures
    )


def curves_of(name: str, assessment: Assessment) -> tuple[Curve, ...]:
    """Return the ROC and precision-recall curves of an assessment: of two classes for the last one.

    Of more classes a mean, and a curve for each class with known truths.
    """
    curves = assessment.curves[1:] if len(assessment.curves) == 2 else assessment.curves
    drawn = []
    for curve in curves:
        if not np.isfinite(curve.area):
            continue
        others = assessment.judged - curve.count
        hits, false = curve.sensitivity * curve.count, curve.false_positive_rate * others
        with np.errstate(invalid="ignore"):
            precision = np.where(hits + false > 0, hits / (hits + false), 1.0)
        drawn.append(
            Curve(
                title=name,
                false_positive_rate=curve.false_positive_rate,
                true_positive_rate=curve.sensitivity,
                recall=curve.sensitivity,
                precision=precision,
                area=curve.area,
                of="" if len(curves) == 1 else f"{curve.name}, {count(curve.count, 'task')}",
            )
        )
    return (_mean(name, drawn), *drawn) if len(drawn) > 1 else tuple(drawn)


def _mean(name: str, curves: Sequence[Curve]) -> Curve:
    """Return the mean curve of classes with equal weights; its area is the AUC of the table."""
    rate, hits = mean_curve([(curve.false_positive_rate, curve.true_positive_rate) for curve in curves])
    recall, precision = mean_curve([(curve.recall, curve.precision) for curve in curves])
    area = float(np.mean([curve.area for curve in curves]))
    return Curve(name, rate, hits, recall, precision, area, of=f"mean of {len(curves)} classes")
