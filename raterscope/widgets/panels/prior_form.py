"""Form and matrix of the prior confusion rates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractItemModel, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from raterscope.algorithms.labels.data import Confusion
from raterscope.algorithms.labels.rates import credible
from raterscope.algorithms.settings import Settings, SettingsError
from raterscope.text import decimals
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import ink_on, paint_cell, rate_table
from raterscope.widgets.layouts import vertical
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import Header, plain_label, plain_tip
from raterscope.widgets.tables.rows import Index, TableModel
from raterscope.widgets.theme import enlarge, pixels, set_lengths

LEAST, MOST = 1e-6, 1e8
"""Range of a pseudo-count."""

CELL = QSize(84, 62)
ROWS_SEEN = 4
WIDEST_NAME = 120


class PriorMatrix(QTableView):
    """Prior matrix: a row per true class, a column per answer.

    A digit, F2 or a double click edits a pseudo-count.
    """

    edited = Signal()  # a pseudo-count was set by hand
    refused = Signal(str)  # why one was not, in a sentence

    def __init__(self) -> None:
        super().__init__()
        self._model = _MatrixModel(self)
        self.setModel(self._model)
        self.setItemDelegate(_CellDelegate(self))
        triggers = QAbstractItemView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed | triggers.AnyKeyPressed)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setCornerButtonEnabled(False)
        self.setAccessibleName("Prior pseudo-counts, true classes down and answers across")
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setHighlightSections(False)
            header.setSectionsClickable(False)
            header.setStyleSheet("QHeaderView, QHeaderView::section { border: none; }")
        set_lengths(self.horizontalHeader(), defaultSectionSize=CELL.width())
        set_lengths(self.verticalHeader(), defaultSectionSize=CELL.height())
        self.verticalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._model.edited.connect(self.edited)
        self._model.refused.connect(self.refused)

    def sizeHint(self) -> QSize:
        """Ask for room for a few rows."""
        rows = min(self._model.rowCount(), ROWS_SEEN)
        return QSize(pixels(3 * CELL.width() + WIDEST_NAME), pixels(rows * CELL.height() + 40))

    def show_counts(
        self, classes: tuple[str, ...], outputs: tuple[str, ...], counts: NDArray[np.floating]
    ) -> None:
        """Show pseudo-counts (J, L), all above 0."""
        same_labels = (classes, outputs) == (self._model.classes, self._model.outputs)
        self._model.show_counts(classes, outputs, np.array(counts, dtype=float), same_labels=same_labels)
        if not same_labels:
            metrics = QFontMetrics(theme.font(theme.CAPTION))
            longest = max(metrics.horizontalAdvance(name) for name in classes)
            set_lengths(self.verticalHeader(), width=min(longest + 36, WIDEST_NAME))
            set_lengths(self, minimumHeight=min(len(classes), 2) * CELL.height() + 36)
            self.updateGeometry()

    def counts(self) -> NDArray[np.float64]:
        """Return the pseudo-counts shown, (J, L)."""
        return self._model.counts.copy()


class _MatrixModel(TableModel):
    edited = Signal()
    refused = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.classes: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()
        self.counts: NDArray[np.float64] = np.empty((0, 0))
        self._low = self._high = np.empty((0, 0))

    def show_counts(
        self,
        classes: tuple[str, ...],
        outputs: tuple[str, ...],
        counts: NDArray[np.float64],
        *,
        same_labels: bool,
    ) -> None:
        if not same_labels:
            self.beginResetModel()
        self.classes, self.outputs, self.counts = classes, outputs, counts
        self._measure()
        if not same_labels:
            self.endResetModel()
        self._emit_changed()

    def estimate(self, index: Index) -> tuple[float, float, float]:
        """Return the expected rate of a cell and its 95 % interval."""
        row, column = index.row(), index.column()
        mean = self.counts[row, column] / self.counts[row].sum()
        return float(mean), float(self._low[row, column]), float(self._high[row, column])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.classes), len(self.outputs)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        across = orientation == Qt.Orientation.Horizontal
        name = (self.outputs if across else self.classes)[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return name
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"answer: {name}" if across else f"true: {name}")
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.EditRole:
            return f"{self.counts[index.row(), index.column()]:.6g}"
        if role not in (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.AccessibleTextRole,
            Qt.ItemDataRole.ToolTipRole,
        ):
            return None
        mean, low, high = self.estimate(index)
        words = (
            f"true {self.classes[index.row()]}, answer {self.outputs[index.column()]}: {mean:.2f} "
            f"({low:.2f} to {high:.2f}), {votes_words(self.counts[index.row(), index.column()])}"
        )
        return plain_tip(words) if role == Qt.ItemDataRole.ToolTipRole else words

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole:
            return False
        try:
            count = float(str(value).strip().replace(",", "."))
        except ValueError:
            count = math.nan
        if not LEAST <= count <= MOST:
            self.refused.emit(
                f"A pseudo-count is {str(value)!r}; expected a number above 0, at most {MOST:g}."
            )
            return False
        self.refused.emit("")
        if f"{count:.6g}" != self.data(index, Qt.ItemDataRole.EditRole):
            self.counts[index.row(), index.column()] = count
            self._measure()
            self._emit_changed()
            self.edited.emit()
        return True

    def _measure(self) -> None:
        low, high = credible(Confusion(self.counts[None], self.counts))
        self._low, self._high = low[0], high[0]

    def _emit_changed(self) -> None:
        if self.counts.size:
            last = self.index(len(self.classes) - 1, len(self.outputs) - 1)
            self.dataChanged.emit(self.index(0, 0), last)


class _CellDelegate(QStyledItemDelegate):
    """Delegate that paints rate, interval and pseudo-count, and edits the pseudo-count as text."""

    def createEditor(self, parent: QWidget, _option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent, maxLength=24)
        editor.setAccessibleName(f"Pseudo-count, {index.data()}")
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        assert isinstance(editor, QLineEdit)
        editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))
        editor.selectAll()

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        assert isinstance(editor, QLineEdit)
        model.setData(index, editor.text(), Qt.ItemDataRole.EditRole)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, _index: Index) -> None:
        height = editor.sizeHint().height()
        editor.setGeometry(
            option.rect.left() + 2, option.rect.center().y() - height // 2, option.rect.width() - 4, height
        )

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        assert isinstance(model, _MatrixModel)
        palette = theme.current()
        mean, low, high = model.estimate(index)
        ground = QColor(*map(int, rate_table()[round(255 * min(max(mean, 0.0), 1.0))]))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = enlarge(painter, option.rect).adjusted(2, 2, -2, -2)
        paint_cell(painter, box, ground)
        ink = ink_on(ground)
        digits = max(decimals(low, high), 1) if high > low else 2
        votes = votes_words(model.counts[index.row(), index.column()])
        for text, size, top, height in (
            (f"{mean:.{digits}f}", theme.FIGURE, 3, 20),
            (f"{low:.{digits}f} to {high:.{digits}f}", theme.CAPTION, 23, 15),
            (votes, theme.CAPTION, 39, 15),
        ):
            painter.setFont(theme.font(size, bold=size == theme.FIGURE))
            painter.setPen(ink)
            room = QRectF(box.left(), box.top() + top, box.width(), height)
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter, text)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            focused = option.state & QStyle.StateFlag.State_HasFocus
            painter.setPen(QPen(QColor(palette.text if focused else palette.line), 2))
            painter.drawRoundedRect(box, 3, 3)
        painter.restore()


def votes_words(count: float) -> str:
    """Format a pseudo-count: "2 votes"."""
    text = f"{count:.3g}" if not 100 <= count < 1e7 else f"{count:,.0f}"
    return f"{text} vote" if text == "1" else f"{text} votes"


MatrixOf = Callable[[Settings], NDArray[np.floating]]
"""Function that returns the pseudo-counts (J, L) for settings."""


class PriorForm(QWidget):
    """Form that sets the prior matrix; an edited cell overrides it until Reset.

    `settings_class`: class of the settings.
    """

    # the matrix (J, L) edited; None where it is what the settings mean (see `settings`)
    changed = Signal(object)

    def __init__(self, settings_class: type[Settings]) -> None:
        super().__init__()
        self.setAccessibleName("Prior")
        self._matrix_of: MatrixOf | None = None
        self._labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._by_hand = False
        self.form = SettingsForm(settings_class)
        self.matrix = PriorMatrix()
        self._header = Header("Prior confusion matrix")
        self.reset = QPushButton("Reset")
        theme.set_role(self.reset, "link")
        self.reset.setToolTip("Reset to the matrix of the fields")
        self._header.row.addWidget(self.reset)
        self._help = plain_label(
            "Assumed answers of every annotator before the first vote: the rate, its 95 % interval, and "
            "the votes it counts for. Type in a cell to set its votes.", "hint", wrap=True,
        )  # fmt: skip
        self._nothing = plain_label("Import labels to set the prior for their classes.", "second", wrap=True)
        self._error = plain_label("", "error", wrap=True)
        self._error.hide()
        vertical(
            self.form,
            self._header,
            self._help,
            self._nothing,
            self._error,
            (self.matrix, 1),
            inside=self,
            spacing=8,
        )
        self.form.changed.connect(self._on_form)
        self.matrix.edited.connect(self._on_edited)
        self.matrix.refused.connect(self._on_refused)
        self.reset.clicked.connect(self._on_reset)
        self._settle()

    def set_labels(
        self,
        classes: tuple[str, ...],
        outputs: tuple[str, ...],
        matrix_of: MatrixOf,
        by_hand: NDArray[np.floating] | None = None,
    ) -> None:
        """Set the prior for other labels, without a signal.

        `classes`, `outputs`: J and L names. `by_hand`: (J, L), the matrix that was edited.
        """
        self._labels, self._matrix_of, self._by_hand = (classes, outputs), matrix_of, by_hand is not None
        if by_hand is not None:
            self.matrix.show_counts(classes, outputs, by_hand)
        else:
            self._show_meant()
        self._settle()

    def set_settings(self, settings: Settings) -> None:
        """Fill the fields, without a signal; an edited matrix stays."""
        self.form.set_settings(settings)
        if not self._by_hand:
            self._show_meant()

    def settings(self) -> Settings:
        """Return the settings entered.

        Raises `SettingsError` with the sentence that the form shows.
        """
        return self.form.settings()

    def by_hand(self) -> NDArray[np.float64] | None:
        """Return the edited matrix; None if it follows the settings."""
        return self.matrix.counts() if self._by_hand else None

    def _show_meant(self) -> None:
        if self._matrix_of is None:
            return
        try:
            counts = self._matrix_of(self.form.settings())
        except SettingsError:
            return  # the form says what will not do; the matrix of before stays
        self.matrix.show_counts(*self._labels, counts)

    def _settle(self) -> None:
        known = self._matrix_of is not None
        self._nothing.setVisible(not known)
        self._help.setVisible(known)
        self.matrix.setVisible(known)
        self.form.setEnabled(not self._by_hand)
        self.reset.setVisible(self._by_hand)
        self._header.set_aside("edited" if self._by_hand else "", "accent" if self._by_hand else "small")

    def _on_form(self) -> None:
        self._show_meant()
        if not self.form.error():
            self.changed.emit(None)

    def _on_edited(self) -> None:
        self._by_hand = True
        self._settle()
        self.changed.emit(self.matrix.counts())

    def _on_reset(self) -> None:
        self._by_hand = False
        self._on_refused("")
        self._show_meant()
        self._settle()
        self.changed.emit(None)

    def _on_refused(self, sentence: str) -> None:
        self._error.setText(sentence)
        self._error.setVisible(bool(sentence))
