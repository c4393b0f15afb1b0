"""Panel for choosing an algorithm and its settings, starting a run, and choosing the run shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from raterscope.algorithms.settings import Algorithm, Settings
from raterscope.resources.bibliography import cite
from raterscope.text import time_left
from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, horizontal, rule, scroll_area, vertical
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, ElidedLabel, Header, plain_label, plain_tip
from raterscope.widgets.theme import pixels, set_lengths


class AlgorithmPicker(QWidget):
    """List of algorithms, a description of the selected one, and its settings form.

    Settings are kept when another algorithm is selected.
    """

    changed = Signal()

    def __init__(self, title: str, algorithms: Mapping[str, Algorithm]) -> None:
        super().__init__()
        self._algorithms = dict(algorithms)
        self._forms: dict[str, SettingsForm] = {}
        titles = {name: algorithm.title for name, algorithm in self._algorithms.items()}
        self.choice = ChoiceBox(title, titles)
        self._summary = plain_label("", "small", wrap=True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(plain_label(title.upper(), "caption"))
        self._column.addWidget(self.choice)
        self._column.addWidget(self._summary)
        self.choice.currentIndexChanged.connect(self._on_choice)
        self._show(self.algorithm)

    @property
    def algorithm(self) -> str:
        """Name of the selected algorithm."""
        return str(self.choice.key)

    @property
    def form(self) -> SettingsForm:
        """Settings form of the selected algorithm."""
        return self._forms[self.algorithm]

    def settings(self) -> Settings:
        """Return the entered settings; raises SettingsError for an invalid value."""
        return self.form.settings()

    def error(self) -> str:
        """Return the error message of the form, empty if all values are valid."""
        return self.form.error()

    def build(self) -> None:
        """Build the rows of the selected algorithm's form."""
        self.form.build()

    def default(self, algorithm: str) -> tuple[str, Settings]:
        """Return an algorithm with its default settings; for an unknown name, the first one."""
        name = algorithm if algorithm in self._algorithms else next(iter(self._algorithms))
        return name, self._algorithms[name].settings()

    def choose(self, algorithm: str, settings: Settings | None = None) -> None:
        """Select an algorithm and fill its form."""
        index = self.choice.findData(algorithm)
        if index < 0:
            raise KeyError(algorithm)
        self.choice.setCurrentIndex(index)
        if settings is not None:
            self.form.set_settings(settings)
            self.changed.emit()

    def _on_choice(self) -> None:
        self._show(self.algorithm)
        self.changed.emit()

    def _show(self, name: str) -> None:
        algorithm = self._algorithms[name]
        source = cite(algorithm.source)
        self._summary.setText(algorithm.summary)
        self._summary.setToolTip(plain_tip(source))
        self.choice.setToolTip(plain_tip(f"{algorithm.summary} {source}"))
        if name not in self._forms:
            form = SettingsForm(algorithm.settings)
            form.changed.connect(self.changed)
            self._forms[name] = form
            self._column.addWidget(form)
        for other_form, form in self._forms.items():
            form.setVisible(other_form == name)


@dataclass(frozen=True, slots=True)
class RunLine:
    """List entry for one run."""

    key: object
    title: str  # "OEM + DEM"
    text: str  # "12:01, 340 images, 4.2 s"
    shown: bool = False  # True for the run on screen
    stale: bool = False  # whether decisions or exclusions were made since


class RunList(QWidget):
    """Runs, the latest first.

    `all_compared`: whether all runs are compared, without check boxes.
    """

    chosen = Signal(object)
    delete_requested = Signal(object)
    compare_requested = Signal(object)  # tuple of the checked keys, two or more; all keys with `all_compared`

    def __init__(self, *, all_compared: bool = False) -> None:
        super().__init__()
        self._all_compared = all_compared
        header = Header("Runs")
        self.compare = QPushButton("Compare")
        theme.set_role(self.compare, "link")
        selection_text = "" if all_compared else " that are ticked (two or more)"
        self.compare.setToolTip(f"Compare the runs{selection_text}")
        self.compare.clicked.connect(self._on_compare)
        header.row.addWidget(self.compare)
        self._nothing = plain_label("No runs yet. Press Run to fuse.", "second")
        self._rows: list[_RunRow] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addWidget(header)
        self._column.addWidget(self._nothing)
        self.set_runs(())

    def set_runs(self, runs: Sequence[RunLine]) -> None:
        """Replace the runs; checked runs stay checked."""
        if runs and [row.line for row in self._rows] == list(runs):
            return
        ticked = set(self.ticked())
        for row in self._rows:
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = [_RunRow(line, line.key in ticked, self) for line in runs]
        for row in self._rows:
            row.chosen.connect(self.chosen)
            row.delete_requested.connect(self.delete_requested)
            row.ticked.connect(self._settle)
            row.tick.setHidden(self._all_compared)
            self._column.addWidget(row)
        self._nothing.setVisible(not runs)
        self._settle()

    def ticked(self) -> tuple[object, ...]:
        """Return the keys of the checked runs."""
        return tuple(row.line.key for row in self._rows if row.tick.isChecked() or self._all_compared)

    def _settle(self) -> None:
        self.compare.setVisible(len(self._rows) > 1)
        self.compare.setEnabled(len(self.ticked()) > 1)

    def _on_compare(self) -> None:
        self.compare_requested.emit(self.ticked())


class _RunRow(QWidget):
    chosen = Signal(object)
    delete_requested = Signal(object)
    ticked = Signal()

    def __init__(self, line: RunLine, ticked: bool, parent: QWidget) -> None:
        super().__init__(parent)
        self.line = line
        self.tick = QCheckBox()
        self.tick.setChecked(ticked)
        self.tick.setToolTip("Tick two or more runs to compare them")
        self.tick.setAccessibleName(f"Compare {line.title}, {line.text}")
        self.tick.toggled.connect(self.ticked)
        title = ElidedLabel(line.title, "accent" if line.shown else "")
        words = ElidedLabel(line.text + (", older than your last decision" if line.stale else ""), "small")
        texts = vertical(title, words)
        show = QPushButton("Shown" if line.shown else "Show")
        show.setEnabled(not line.shown)
        show.clicked.connect(self._on_show)
        delete = QPushButton("Delete")
        delete.clicked.connect(self._on_delete)
        for button, verb in ((show, "Show"), (delete, "Delete")):
            theme.set_role(button, "link")
            button.setAccessibleName(f"{verb} {line.title}, {line.text}")
        horizontal(self.tick, (texts, 1), show, delete, inside=self, margins=(0, 2, 0, 2), spacing=8)

    def _on_show(self) -> None:
        self.chosen.emit(self.line.key)

    def _on_delete(self) -> None:
        self.delete_requested.emit(self.line.key)


STEPS = 1000
WIDTH = 480


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for a run: algorithm, settings and scope.

    `algorithm`, `detector`: names in the catalogues; the detector is empty if there is only one step.
    `settings`, `detection`, `assignment`: settings of the steps; None for a missing step.
    """

    algorithm: str
    settings: Settings
    detector: str = ""
    detection: Settings | None = None
    assignment: Settings | None = None
    all_items: bool = True  # all items, or the one on screen
    hold_truth: bool = False  # whether imported truth is held fixed, as decisions are


class FusePanel(QWidget):
    """Panel for a fusion: algorithm, settings, start, progress, comparison of runs.

    `algorithms`, `detectors`: the two steps of a fusion, in which imported truth can be held fixed; without
    detectors there is one step. `between`: settings of the step between the two, or after a single step.
    `titles`: titles of the choices. `item`: noun for the item of a fusion: "image", "case". `all_compared`:
    whether all runs are compared, without check boxes.
    """

    run_requested = Signal(object)
    cancel_requested = Signal()
    settings_changed = Signal()
    size_changed = Signal()  # the content needs another height

    def __init__(
        self,
        algorithms: Mapping[str, Algorithm],
        detectors: Mapping[str, Algorithm] | None = None,
        between: type[Settings] | None = None,
        *,
        titles: tuple[str, ...] = ("Cluster the clicks with", "Detect with"),
        item: str = "image",
        all_compared: bool = False,
    ) -> None:
        super().__init__()
        theme.set_role(self, "popover")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_lengths(self, minimumWidth=420)
        self._item = item
        self._several = True
        self.edited = False
        """Whether a setting was changed since the last run or `set_request`."""
        self.algorithm = AlgorithmPicker(titles[0], algorithms)
        self.detector = AlgorithmPicker(titles[1], detectors) if detectors else None
        self.assignment = SettingsForm(between) if between else None
        self.hold_truth = QCheckBox("Hold imported ground truth fixed")
        self.hold_truth.setToolTip(
            "Like your decisions. Turn off to evaluate the result against the ground truth."
        )
        if not detectors:
            self.hold_truth.hide()
        self.runs = RunList(all_compared=all_compared)
        self._changes = plain_label("", "disputed", wrap=True)
        self._changes.hide()
        inner = QWidget()
        area = scroll_area(inner)
        body = vertical(self.algorithm, inside=inner, margins=(16, 16, 16, 16), spacing=12)
        if self.assignment is not None:
            body.addWidget(self.assignment)
        if self.detector is not None:
            body.addWidget(rule())
            body.addWidget(self.detector)
        body.addWidget(rule())
        body.addWidget(self.runs)
        body.addStretch(1)
        self._body = inner
        inner.installEventFilter(self)
        self._footer = self._make_footer()
        vertical((area, 1), rule(), self._footer, inside=self, margins=(1, 1, 1, 1))
        for form in self._forms():
            form.changed.connect(self._on_changed)
        self.setFocusProxy(self.algorithm.choice)
        self.set_progress(None)
        self.defaults = self.request()
        """Request for a study without runs."""

    def setVisible(self, visible: bool) -> None:
        """Show or hide the panel; the forms are built first, because its size depends on them."""
        if visible:
            for form in self._forms():
                form.build()
        super().setVisible(visible)

    def sizeHint(self) -> QSize:
        """Return a size that fits everything except folded parts."""
        footer = self._footer.sizeHint().height()
        return QSize(pixels(WIDTH), self._body.sizeHint().height() + footer + 3)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Report that the height of settings or runs has changed."""
        if event.type() == QEvent.Type.LayoutRequest:
            self.size_changed.emit()
        return super().eventFilter(watched, event)

    def set_changes(self, text: str) -> None:
        """Show the changes since the last run; empty for none."""
        self._changes.setText(text)
        self._changes.setVisible(bool(text))

    def set_scope(self, name: str, items: int) -> None:
        """Set the name of the item on screen (empty for none) and the number of items."""
        self.this_item.setText(f"this {self._item}" if name else f"no {self._item}")
        self.this_item.setEnabled(bool(name))
        self.all_items.setText(f"all {items:,} {self._item}s")
        if not name:
            self.all_items.setChecked(True)
        self._several = items != 1
        self._offer_scope()

    def _offer_scope(self) -> None:
        """Offer the choice between one item and all, if there are several and no run is in progress."""
        for button in (self.this_item, self.all_items):
            button.setVisible(self._several and not self.run.isHidden())

    def set_progress(
        self, text: str | None, fraction: float = 0.0, seconds_left: float | None = None
    ) -> None:
        """Show the progress of a run; None if none is in progress."""
        busy = text is not None
        self._busy.setVisible(busy)
        self.run.setVisible(not busy)
        self._offer_scope()
        if text is not None:
            left = time_left(seconds_left)
            self._label.setText(", ".join(part for part in (text, left) if part))
            self._bar.setValue(round(STEPS * min(max(fraction, 0.0), 1.0)))
            self._bar.setAccessibleName(self._label.text())
        else:
            self.cancel.setEnabled(True)
            self.cancel.setText("Cancel")

    def _make_footer(self) -> QVBoxLayout:
        self.all_items = QRadioButton(f"all {self._item}s")
        self.this_item = QRadioButton(f"this {self._item}")
        self.this_item.setToolTip(
            f"Each {self._item} is fused by itself in either way"
            if self.detector is None
            else f"Only this {self._item}. What other {self._item}s show about the annotators is ignored"
        )
        self.all_items.setChecked(True)
        group = QButtonGroup(self)
        group.addButton(self.all_items)
        group.addButton(self.this_item)
        self.run = QPushButton("Run", autoDefault=True)  # Return presses it, as in a dialog
        theme.set_role(self.run, "primary")
        set_lengths(self.run, minimumWidth=112)
        self.run.setToolTip("Fuse with these settings (Ctrl+Return)")
        self.run.setShortcut("Ctrl+Return")
        self.run.clicked.connect(self._on_run)
        self.cancel = QPushButton("Cancel")
        self.cancel.clicked.connect(self._on_cancel)
        self._label = ElidedLabel("", "small")
        self._bar = QProgressBar(minimum=0, maximum=STEPS, textVisible=False)
        self._busy = QWidget()
        texts = vertical(self._label, self._bar, spacing=4)
        horizontal((texts, 1), self.cancel, inside=self._busy, spacing=12)
        row = horizontal(self.all_items, self.this_item, STRETCH, self.run, spacing=16)
        return vertical(self._changes, self.hold_truth, row, self._busy, margins=(16, 12, 16, 12), spacing=8)

    def _forms(self) -> list[AlgorithmPicker | SettingsForm]:
        return [form for form in (self.algorithm, self.assignment, self.detector) if form is not None]

    def request(self) -> RunRequest:
        """Return the entered request; raises SettingsError for an invalid value."""
        return RunRequest(
            algorithm=self.algorithm.algorithm,
            settings=self.algorithm.settings(),
            detector=self.detector.algorithm if self.detector is not None else "",
            detection=self.detector.settings() if self.detector is not None else None,
            assignment=self.assignment.settings() if self.assignment is not None else None,
            all_items=self.all_items.isChecked(),
            hold_truth=self.hold_truth.isChecked(),
        )

    def set_defaults(self, algorithm: str, detector: str) -> None:
        """Set the algorithms for a study without runs; the first one replaces an unknown name."""
        shown = not self.edited and self.request() == self.defaults
        name, settings = self.algorithm.default(algorithm)
        self.defaults = replace(self.defaults, algorithm=name, settings=settings)
        if self.detector is not None:
            name, settings = self.detector.default(detector)
            self.defaults = replace(self.defaults, detector=name, detection=settings)
        if shown:
            self.set_request(self.defaults)

    def set_request(self, request: RunRequest) -> None:
        """Set algorithms and settings as in a request; the scope is kept."""
        self.algorithm.choose(request.algorithm, request.settings)
        if self.detector is not None:
            self.detector.choose(request.detector, request.detection)
        if self.assignment is not None and request.assignment is not None:
            self.assignment.set_settings(request.assignment)
        self.hold_truth.setChecked(request.hold_truth)
        self._on_changed()
        self.edited = False

    def _on_changed(self) -> None:
        self.edited = True
        self.run.setEnabled(not any(form.error() for form in self._forms()))
        self.settings_changed.emit()

    def _on_run(self) -> None:
        self.edited = False
        self.run_requested.emit(self.request())

    def _on_cancel(self) -> None:
        self.cancel.setEnabled(False)
        self.cancel.setText("Cancelling")
        self.cancel_requested.emit()
