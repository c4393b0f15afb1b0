"""Layout of the labels screen, with its table of methods; `workspace` implements its behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from raterscope.algorithms.labels.assessment import Assessment, mean_curve
from raterscope.algorithms.labels.catalogue import LABELLERS, labeller_title
from raterscope.algorithms.labels.fusion import QuestionSettings
from raterscope.app.study import RunEntry
from raterscope.app.workspaces.labels.scene import LabelsSession
from raterscope.app.workspaces.layout import split_widgets
from raterscope.app.workspaces.screen import WorkspaceCore, WorkspacePart, WorkspaceScreen
from raterscope.figures.evaluation import Curve
from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.figures.community_flow import CommunityFlow
from raterscope.widgets.figures.community_plots import CommunityTriangles, ParticipationBars
from raterscope.widgets.figures.confusion_wall import ConfusionWall
from raterscope.widgets.figures.evaluation_plots import ConvergencePlot, CurvesPlot, DecisionPlot
from raterscope.widgets.figures.similarity_matrix import SimilarityMatrix
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import STRETCH, TabPages, horizontal, vertical
from raterscope.widgets.panels.card_panels import CommunityCards, TaskGrid, TaskList
from raterscope.widgets.panels.drift_panel import ConfusionPanel, DriftPanel
from raterscope.widgets.panels.evaluation_panels import CostPanel, FoldsPanel, TrustPanel, scrolled
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.lists import SuggestionList
from raterscope.widgets.panels.task_content import TaskContentView
from raterscope.widgets.panels.task_panel import TaskPanel
from raterscope.widgets.parts import ChoiceBox, ElidedLabel, ScrolledText
from raterscope.widgets.tables.comparison_tables import ComparisonRow, ComparisonTable, Measure

BESIDE_RUNS, BESIDE_NOTHING = 3, 99
"""Maximum number of lines of advice beside the table of runs, which has priority, and without it."""

NAN = float("nan")
NOTHING = "Import true classes or mark gold tasks (G) to measure every run and the majority vote."
MEASURES = (
    Measure("accuracy", "Share of the tasks with known truth whose most probable class is correct"),
    Measure("AUC", "Probability that a task of a class ranks above one of another class, mean over classes"),
    Measure("log loss", "Mean of -ln posterior of the true class: confident errors cost most", "lowest"),
    Measure(
        "ECE", "Expected calibration error: mean difference of posteriors and the share correct", "lowest"
    ),
)


@dataclass(frozen=True, eq=False)
class MeasuredMethod:
    """Assessment of a run (None: the majority vote), and its weight of a vote."""

    run: RunEntry | None
    assessment: Assessment
    power: float = 1.0


class MethodTable(QWidget):
    """Table of methods, and advice on trust in the model."""

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.table = ComparisonTable(MEASURES, NOTHING)
        self.table.header.set_title("Methods")
        self.advice = ScrolledText("Advice", "disputed")
        self.advice.hide()
        self.in_part = QPushButton("Down-weight votes")
        self.in_part.setToolTip("Fuse with the weight of a vote that predicts held-out votes best")
        self.in_part.hide()
        row = horizontal(self.in_part, STRETCH, margins=(12, 0, 12, 8), spacing=None)
        advice = horizontal((self.advice, 1), margins=(12, 0, 0, 8))
        vertical((self.table, 1), advice, row, inside=self)

    def set_advice(self, sentences: Sequence[str], *, err_together: bool = False) -> None:
        """Show advice on trust in the model; hidden without any."""
        self.in_part.setVisible(err_together)
        self.advice.set_text("\n".join(sentences))
        self.advice.setVisible(bool(sentences))

    def show_runs(self, runs: Sequence[MeasuredMethod]) -> None:
        """Show the assessments of runs and the vote."""
        self.advice.max_lines = BESIDE_RUNS if runs else BESIDE_NOTHING
        self.advice.updateGeometry()
        judged = max((run.assessment.judged for run in runs), default=0)
        self.table.set_rows(tuple(map(_row, runs)), f"{counted(judged, 'known task')}" if runs else "")


def _row(measured: MeasuredMethod) -> ComparisonRow:
    assessment = measured.assessment
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
    text = {"hold": ", truths held", "folds": ", in folds"}.get(str(about.get("truths")), "")
    if about.get("counting", "full") != "full":
        text += f", vote weight {measured.power:.2g}"
    return ComparisonRow(measured.run.id, labeller_title(measured.run.algorithm), f"{started}{text}", figures)


def curves_of(name: str, assessment: Assessment) -> tuple[Curve, ...]:
    """Return the ROC and precision-recall curves of an assessment.

    With two classes, those of the last class; with more, the mean, and a curve for each class with known
    truths.
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
                of="" if len(curves) == 1 else f"{curve.name}, {counted(curve.count, 'task')}",
            )
        )
    return (_mean(name, drawn), *drawn) if len(drawn) > 1 else tuple(drawn)


def _mean(name: str, curves: Sequence[Curve]) -> Curve:
    """Return the mean curve of classes with equal weights; its area is the AUC of the table."""
    rate, hits = mean_curve([(curve.false_positive_rate, curve.true_positive_rate) for curve in curves])
    recall, precision = mean_curve([(curve.recall, curve.precision) for curve in curves])
    area = float(np.mean([curve.area for curve in curves]))
    return Curve(name, rate, hits, recall, precision, area, of=f"mean of {len(curves)} classes")


NO_VOTES = "Press Fuse (F5) to see which tasks need another vote, and which annotator to ask."
NO_TRUST = "Press Fuse (F5) to see how far to trust the consensus."

EXCLUDE = ("exclude…", "rejected", "Show which labels would change")
RESTORE = ("restore", "accent", "Count their votes again in the next fusion")


class LabelsScreen(WorkspaceScreen):
    """Widgets of the labels workspace."""

    queue: TaskList

    CANVAS_SCROLLS = True
    FOLDED = ("whole", "upper")
    CRAMPED_BOTTOM = 0.65
    """See `WorkspaceLayout`; the task and its keys are at the bottom."""

    def build(self) -> Iterator[None]:
        """Make the widgets."""
        self.middle_tabs = TabPages()
        self.matrix, self.drift = ConfusionPanel(), DriftPanel()
        yield
        self.exclude_key, self.excluded = KeyButton("X", *EXCLUDE), ElidedLabel("", "small")
        self.exclusion = QWidget()
        theme.set_role(self.exclusion, "panel")
        horizontal(
            self.exclude_key, (self.excluded, 1), inside=self.exclusion, margins=(12, 8, 12, 8), spacing=12
        )
        self.evidence_split = split_widgets(
            Qt.Orientation.Vertical, (self.matrix, self.drift, self.exclusion)
        )
        yield
        queue, self.task_panel = TaskList(), TaskPanel()
        yield
        fuse_panel = FusePanel(
            LABELLERS, None, QuestionSettings, titles=("Fuse the labels with",), item="question",
            all_compared=True,
        )  # fmt: skip
        yield
        yield from self.lay_out(
            queue, self.middle_tabs, self.evidence_split, (self.task_panel,), fuse_panel, (1, 1)
        )
        self.wall, self.cards = ConfusionWall(), CommunityCards()
        annotator_split = split_widgets(Qt.Orientation.Vertical, (self.wall, self.cards))
        self.middle_tabs.addTab(annotator_split, "Annotators")
        yield
        self.content = TaskContentView()
        shown = self.content.picture.KEY_HELP  # 0 decides for a class
        self.content.picture.KEY_HELP = replace(shown, keys=tuple(key for key in shown.keys if key[0] != "0"))
        self.middle_tabs.addTab(self.content, "Task")
        yield
        self.similarity, self.participation = SimilarityMatrix(), ParticipationBars()
        similarity_split = split_widgets(Qt.Orientation.Horizontal, (self.similarity, self.participation))
        self.middle_tabs.addTab(similarity_split, "Similarity")
        self.flow, self.triangles = CommunityFlow(), CommunityTriangles()
        self.middle_tabs.addTab(self.flow, "Over time")
        self.middle_tabs.addTab(self.triangles, "Triangles")
        yield
        self.cell_tasks = TaskGrid()
        self.middle_tabs.addTab(self.cell_tasks, "Tasks")
        yield
        self.folds = FoldsPanel()
        self.middle_tabs.addTab(scrolled(self.folds, "Cross-validation"), "Cross-validation")
        yield
        self.cost = CostPanel()
        self.middle_tabs.addTab(scrolled(self.cost, "Cost"), "Cost")
        yield
        self.describe = QPushButton("Answers…")
        theme.set_role(self.describe, "link")
        self.describe.setToolTip("Order of the labels, their classes, and the prior")
        self.middle_tabs.setCornerWidget(_beside_tabs(self.describe))
        self.middle_tabs.setFocusProxy(self.wall)
        self.question = ChoiceBox("Question", letters=8)
        self.queue.add_above(self.question)
        yield
        self.method_table = MethodTable()
        self.curves = CurvesPlot("Import known truths to see ROC curves.")
        self.trust = TrustPanel(("posterior", "share right"), NO_TRUST)
        yield
        self.ask = SuggestionList("vote", "expected information", "bit", NO_VOTES, budgeted=True)
        self.decisions = DecisionPlot()
        self.progress = ConvergencePlot("bound", "Press Fuse (F5) to see convergence.")
        for index, (title, plot) in enumerate(
            (
                ("Methods", self.method_table),
                ("ROC", self.curves),
                ("Trust", self.trust),
                ("Ask next", self.ask),
                ("Rates", self.decisions),
                ("Convergence", self.progress),
            )
        ):
            self.left_tabs.insertTab(index, plot, title)
        self.left_tabs.setCurrentIndex(0)
        self.middle_tabs.tabBar().setAccessibleName("Views of the annotators")
        self.put_first_below()
        for index in (0, 1):
            self.bottom.setStretchFactor(index, 1)
        self.divisions |= {
            annotator_split: [380, 240],
            similarity_split: [520, 300],
            self.evidence_split: [264, 300, 52],
            self.bottom: [600, 600],
        }
        yield


LabelsCore = WorkspaceCore[LabelsScreen, LabelsSession]
LabelsPart = WorkspacePart[LabelsScreen, LabelsSession]


def _beside_tabs(widget: QWidget) -> QWidget:
    bar = QWidget()
    horizontal(widget, inside=bar, margins=(8, 0, 12, 0))
    return bar
