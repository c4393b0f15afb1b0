"""What Fuse opens: algorithm, settings, scope, Run, and the runs made. Drawn from catalogues alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.settings import Settings
from raterscope.widgets import theme
from raterscope.widgets.figures import duration
from raterscope.widgets.panels.algorithm_picker import AlgorithmPicker
from raterscope.widgets.panels.run_list import RunLine, RunList
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ElidedLabel, plain_label, rule

__all__ = ["FusePanel", "RunLine", "RunRequest"]

STEPS = 1000
WIDTH = 480


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What is to be run.

    Attributes
    ----------
    algorithm, detector : str
        Names in the catalogues; the second is empty where there is one step.
    settings, detection, assignment : Settings
        Of the two and of what lies between; None where there is no such step.
    all_images : bool
        All of them, or the one on screen.
    hold_truth : bool
        Whether imported truth is held fixed, as decisions are.
    """

    algorithm: str
    settings: Settings
    detector: str = ""
    detection: Settings | None = None
    assignment: Settings | None = None
    all_images: bool = True
    hold_truth: bool = False


class FusePanel(QWidget):
    """Choose, set, run, watch, compare.

    Parameters
    ----------
    clusterers, detectors : mapping of str to Algorithm
        The two steps of a fusion; without detectors there is one step.
    between : type of Settings, optional
        Of what lies between the two.

    Signals
    -------
    run_requested : RunRequest
    cancel_requested
    run_chosen, run_delete_requested : object
        Key of a run.
    compare_requested : object
        Tuple of keys.
    settings_changed
    """

    run_requested = Signal(object)
    cancel_requested = Signal()
    run_chosen = Signal(object)
    run_delete_requested = Signal(object)
    compare_requested = Signal(object)
    settings_changed = Signal()

    def __init__(
        self,
        clusterers: Mapping[str, Algorithm],
        detectors: Mapping[str, Algorithm] | None = None,
        between: type[Settings] | None = None,
        *,
        titles: tuple[str, str] = ("Cluster the clicks with", "Detect by"),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        theme.set_role(self, "popover")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(420)
        self.clusterer = AlgorithmPicker(titles[0], clusterers)
        self.detector = AlgorithmPicker(titles[1], detectors) if detectors else None
        self.assignment = SettingsForm(between) if between else None
        self.hold_truth = QCheckBox("hold imported truth fixed")
        self.hold_truth.setToolTip(
            "As your decisions are. Leave it off to measure the answer against that truth."
        )
        self.runs = RunList()
        self._changes = plain_label("", "disputed", wrap=True)
        self._changes.hide()
        inner = QWidget()
        theme.set_role(inner, "panel")
        body = QVBoxLayout(inner)
        body.setContentsMargins(16, 16, 16, 16)
        body.setSpacing(12)
        body.addWidget(self.clusterer)
        if self.detector is not None:
            if self.assignment is not None:
                body.addWidget(self.assignment)
            body.addWidget(rule())
            body.addWidget(self.detector)
        body.addWidget(rule())
        body.addWidget(self.runs)
        body.addStretch(1)
        self._body = inner
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 1)
        column.setSpacing(0)
        column.addWidget(area, 1)
        column.addWidget(rule())
        self._foot = self._make_foot()
        column.addLayout(self._foot)
        for form in self._forms():
            form.changed.connect(self._on_changed)
        self.runs.chosen.connect(self.run_chosen)
        self.runs.delete_requested.connect(self.run_delete_requested)
        self.runs.compare_requested.connect(self.compare_requested)
        self.setFocusProxy(self.clusterer.choice)
        self.set_progress(None)

    def sizeHint(self) -> QSize:
        """Ask for room for everything but what is folded."""
        foot = self._foot.sizeHint().height()
        return QSize(WIDTH, self._body.sizeHint().height() + foot + 3)

    def set_changes(self, text: str) -> None:
        """Say what changed since the last run, empty for nothing."""
        self._changes.setText(text)
        self._changes.setVisible(bool(text))

    def set_runs(self, runs: Sequence[RunLine]) -> None:
        """Show the runs made."""
        self.runs.set_runs(runs)

    def set_scope(self, image: str, images: int) -> None:
        """Name the image on screen and say how many there are."""
        self.this_image.setText("this image" if image else "no image")
        self.this_image.setEnabled(bool(image))
        self.all_images.setText(f"all {images:,} images" if images != 1 else "the only image")
        if not image:
            self.all_images.setChecked(True)

    def set_progress(
        self, words: str | None, fraction: float = 0.0, seconds_left: float | None = None
    ) -> None:
        """Show a run under way, or with None that there is none."""
        busy = words is not None
        self._busy.setVisible(busy)
        self.run.setVisible(not busy)
        for button in (self.this_image, self.all_images):
            button.setVisible(not busy)
        if words is not None:
            left = f"{duration(seconds_left)} left" if seconds_left is not None else ""
            self._words.setText(", ".join(part for part in (words, left) if part))
            self._bar.setValue(round(STEPS * min(max(fraction, 0.0), 1.0)))
            self._bar.setAccessibleName(self._words.text())
        else:
            self.cancel.setEnabled(True)
            self.cancel.setText("Cancel")

    def _make_foot(self) -> QVBoxLayout:
        self.all_images = QRadioButton("all images")
        self.this_image = QRadioButton("this image")
        self.this_image.setToolTip("Alone: without what the other images say of the annotators")
        self.all_images.setChecked(True)
        group = QButtonGroup(self)
        group.addButton(self.all_images)
        group.addButton(self.this_image)
        self.run = QPushButton("Run")
        theme.set_role(self.run, "primary")
        self.run.setMinimumWidth(112)
        self.run.setToolTip("Fuse with these settings (Ctrl+Return)")
        self.run.setShortcut("Ctrl+Return")
        self.run.clicked.connect(self._on_run)
        self.cancel = QPushButton("Cancel")
        self.cancel.clicked.connect(self._on_cancel)
        self._words = ElidedLabel("", "small")
        self._bar = QProgressBar()
        self._bar.setRange(0, STEPS)
        self._bar.setTextVisible(False)
        self._busy = QWidget()
        busy = QHBoxLayout(self._busy)
        busy.setContentsMargins(0, 0, 0, 0)
        busy.setSpacing(12)
        texts = QVBoxLayout()
        texts.setSpacing(4)
        texts.addWidget(self._words)
        texts.addWidget(self._bar)
        busy.addLayout(texts, 1)
        busy.addWidget(self.cancel)
        row = QHBoxLayout()
        row.setSpacing(16)
        row.addWidget(self.all_images)
        row.addWidget(self.this_image)
        row.addStretch(1)
        row.addWidget(self.run)
        foot = QVBoxLayout()
        foot.setContentsMargins(16, 12, 16, 12)
        foot.setSpacing(8)
        foot.addWidget(self._changes)
        foot.addWidget(self.hold_truth)
        foot.addLayout(row)
        foot.addWidget(self._busy)
        return foot

    def _forms(self) -> list[AlgorithmPicker | SettingsForm]:
        return [form for form in (self.clusterer, self.assignment, self.detector) if form is not None]

    def _on_changed(self) -> None:
        self.run.setEnabled(not any(form.error() for form in self._forms()))
        self.settings_changed.emit()

    def _on_run(self) -> None:
        self.run_requested.emit(
            RunRequest(
                algorithm=self.clusterer.algorithm,
                settings=self.clusterer.settings(),
                detector=self.detector.algorithm if self.detector is not None else "",
                detection=self.detector.settings() if self.detector is not None else None,
                assignment=self.assignment.settings() if self.assignment is not None else None,
                all_images=self.all_images.isChecked(),
                hold_truth=self.hold_truth.isChecked(),
            )
        )

    def _on_cancel(self) -> None:
        self.cancel.setEnabled(False)
        self.cancel.setText("Cancelling")
        self.cancel_requested.emit()
