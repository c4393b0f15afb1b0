"""Methods to compare: which, on which cases, and what came out as plot, table and outlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import Leaving
from raterscope.widgets.figures.evaluation_plots import MethodBoxes
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.glyphs import paint_rater
from raterscope.widgets.parts import ChoiceBox, ElidedLabel, plain_tip
from raterscope.widgets.tables.comparison_table import ComparisonTable
from raterscope.widgets.text_size import set_lengths

__all__ = ["MethodsPanel"]

SCOPES = {
    "one": ("this case", "Only the case on screen"),
    "all": ("all cases", "All cases of the study"),
}
VIEWS = {"plot": ("plot", "Box plots"), "table": ("table", "Medians with quartiles")}
REFERENCES = {
    "truth": ("truth", "Against the ground truth"),
    "raters": ("raters", "Against each rater. Every consensus includes all raters"),
}
NOTHING = "Tick methods and press Compare to see how they differ on these masks."
FORM_WIDTH = 222
ICON = QSize(18, 12)


class MethodsPanel(QWidget):
    """Ticks for methods with a button, and beside them what was measured.

    Parameters
    ----------
    methods : mapping of str to (str, str)
        Name of every method, its title and a sentence about it.
    figures : mapping of str to str
        What they are compared by.
    ticked : sequence of str
        Those that are ticked at first.

    Signals
    -------
    requested : tuple of str, str
        Methods, and "one" for the case on screen or "all".
    cancelled
    view_changed
        Another figure or reference is to be shown.
    outlines_toggled : bool
        Whether the consensuses of the methods are to be drawn over the image.
    """

    requested = Signal(object, str)
    cancelled = Signal()
    view_changed = Signal()
    outlines_toggled = Signal(bool)

    def __init__(
        self,
        methods: Mapping[str, tuple[str, str]],
        figures: Mapping[str, str],
        ticked: Sequence[str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.ticks = {name: QCheckBox(title) for name, (title, _) in methods.items()}
        self._numbers = {name: number for number, name in enumerate(methods)}
        for name, tick in self.ticks.items():
            tick.setToolTip(plain_tip(methods[name][1]))
            tick.setChecked(name in ticked)
            tick.toggled.connect(self._on_ticked)
        self.scope = ModeSwitch(SCOPES)
        self.button = QPushButton("Compare")
        self.words = ElidedLabel("", "small")
        self.outlines = QCheckBox("Show outlines")
        self.outlines.setToolTip(
            plain_tip("Draw the consensuses of the ticked methods instead of the raters' outlines")
        )
        self.outlines.setEnabled(False)
        self.plot, self.table = MethodBoxes(), ComparisonTable((), NOTHING, subject="method")
        self.table.header.set_title("Methods")
        self.figure = ChoiceBox()
        self.figure.setAccessibleName("Reference for the comparison")
        for key, words in figures.items():
            self.figure.addItem(words, key)
        self.figure.setMinimumContentsLength(9)
        self.reference, self.view = ModeSwitch(REFERENCES), ModeSwitch(VIEWS)
        self.export = QPushButton("CSV…")
        self.export.setToolTip(plain_tip("Save all values of all methods, cases and raters as a table"))
        theme.set_role(self.export, "link")
        self.export.setEnabled(False)
        self._all: PlotTable | None = None
        self._pages = QStackedWidget()
        self._pages.addWidget(self.plot)
        self._pages.addWidget(self.table)
        self._busy = False
        self._lay_out()
        self.setFocusProxy(self.button)
        self.button.clicked.connect(self._on_clicked)
        self.export.clicked.connect(self._on_export)
        self.view.chosen.connect(self._on_view)
        self.figure.currentIndexChanged.connect(self._on_view)
        self.reference.chosen.connect(self._on_view)
        self.outlines.toggled.connect(self._on_outlines)
        theme.notifier().changed.connect(self._show_colours)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(6)
        top.addWidget(self.button)
        top.addWidget(self.words, 1)
        inner = QWidget()
        theme.set_role(inner, "panel")
        inner.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 8, 8, 8)
        column.setSpacing(4)
        column.addLayout(top)
        column.addWidget(self.scope)
        column.addWidget(self.outlines)
        for tick in self.ticks.values():
            column.addWidget(tick)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inner)
        set_lengths(area, width=FORM_WIDTH)
        choices = QHBoxLayout()
        choices.setContentsMargins(8, 6, 8, 0)
        choices.setSpacing(6)
        choices.addWidget(self.figure, 1)
        for part in (self.reference, self.view, self.export):
            choices.addWidget(part)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addLayout(choices)
        right.addWidget(self._pages, 1)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(area)
        whole.addLayout(right, 1)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The methods that are ticked."""
        return tuple(name for name, tick in self.ticks.items() if tick.isChecked())

    @property
    def measure(self) -> str:
        """What the plot is to show."""
        return str(self.figure.currentData())

    def number(self, method: str) -> int:
        """Give the number of a method, which is that of its colour."""
        return self._numbers[method]

    def set_busy(self, busy: bool) -> None:
        """Tell whether methods are at work; the button then cancels."""
        self._busy = busy
        self.button.setText("Cancel" if busy else "Compare")
        self.words.setText("")
        self._on_ticked()

    def set_progress(self, words: str) -> None:
        """Say how far the work is."""
        self.words.setText(words)

    def set_compared(self, table: PlotTable | None, *, truth: bool) -> None:
        """Take the results: the table of all figures, None where there are none."""
        self._all = table
        self.export.setEnabled(table is not None)
        self.reference.set_available("truth", truth or table is None, "No case has ground truth")
        if table is not None and not truth:
            self.reference.set_mode("raters")
        if table is None:
            self.set_outlines_available(False)

    def set_outlines_available(self, available: bool) -> None:
        """Tell whether the case on screen was compared."""
        self.outlines.setEnabled(available)
        if not available:
            self.outlines.setChecked(False)

    def _on_view(self) -> None:
        self._pages.setCurrentIndex(int(self.view.mode == "table"))
        self.figure.setEnabled(self.view.mode == "plot")
        self.view_changed.emit()

    def _on_ticked(self) -> None:
        self.button.setEnabled(self._busy or bool(self.chosen))
        if self.outlines.isChecked():
            self.outlines_toggled.emit(True)

    def _on_outlines(self, on: bool) -> None:
        self._show_colours()
        self.outlines_toggled.emit(on)

    def _show_colours(self) -> None:
        """Let the ticks be the legend while outlines are drawn."""
        for name, tick in self.ticks.items():
            tick.setIconSize(ICON)
            tick.setIcon(_sample(self._numbers[name]) if self.outlines.isChecked() else QIcon())

    def _on_clicked(self) -> None:
        if self._busy:
            self.cancelled.emit()
        else:
            self.requested.emit(self.chosen, self.scope.mode)

    def _on_export(self) -> None:
        if self._all is not None:
            self.plot.menu.leaving.emit(Leaving("methods", ".csv", self._all))


def _sample(number: int) -> QIcon:
    picture = QPixmap(ICON * 2)
    picture.fill(Qt.GlobalColor.transparent)
    with QPainter(picture) as painter:
        painter.scale(2, 2)
        paint_rater(painter, QRectF(0, 0, ICON.width(), ICON.height()), number)
    return QIcon(picture)
