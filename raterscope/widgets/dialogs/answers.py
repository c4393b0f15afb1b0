"""Dialog for the answers to a question: their order, their classes, and the prior confusion rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractItemModel, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from raterscope.algorithms.labels.data import OPEN, Confusion, Labels, PriorSettings, prior_of
from raterscope.algorithms.labels.rates import credible
from raterscope.algorithms.settings import Settings, SettingsError
from raterscope.text import decimals
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import ink_on, paint_cell, rate_table
from raterscope.widgets.forms import FormDialog
from raterscope.widgets.layouts import STRETCH, horizontal, scroll_area, vertical
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, Header, plain_label, plain_tip
from raterscope.widgets.tables.rows import Index, TableModel
from raterscope.widgets.theme import enlarge, pixels, set_lengths

LEAST, MOST = 1e-6, 1e8
"""Range of a pseudo-count."""

CELL = QSize(84, 62)
ROWS_SEEN = 4
WIDEST_NAME = 120

NOTHING = "no class"


class PriorMatrix(QTableView):
    """Prior matrix: a row per true class, a column per answer.

    A digit, F2 or a double click edits a pseudo-count.
    """

    edited = Signal()  # the user edited a pseudo-count
    refused = Signal(str)  # why an edit was refused, in a sentence

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
        """Return a size with room for a few rows."""
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
        text = (
            f"true {self.classes[index.row()]}, answer {self.outputs[index.column()]}: {mean:.2f} "
            f"({low:.2f} to {high:.2f}), {votes_text(self.counts[index.row(), index.column()])}"
        )
        return plain_tip(text) if role == Qt.ItemDataRole.ToolTipRole else text

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
        votes = votes_text(model.counts[index.row(), index.column()])
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


def votes_text(count: float) -> str:
    """Format a pseudo-count: "2 votes"."""
    text = f"{count:.3g}" if not 100 <= count < 1e7 else f"{count:,.0f}"
    return f"{text} vote" if text == "1" else f"{text} votes"


MatrixOf = Callable[[Settings], NDArray[np.floating]]
"""Function that returns the pseudo-counts (J, L) for settings."""


class PriorForm(QWidget):
    """Form that sets the prior matrix; an edited cell overrides it until Reset.

    `settings_class`: class of the settings.
    """

    # the edited matrix (J, L); None if it follows from the settings (see `settings`)
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

        `classes`, `outputs`: J and L names. `by_hand`: (J, L), the edited matrix.
        """
        self._labels, self._matrix_of, self._by_hand = (classes, outputs), matrix_of, by_hand is not None
        if by_hand is not None:
            self.matrix.show_counts(classes, outputs, by_hand)
        else:
            self._show_meant()
        self._settle()

    def set_settings(self, settings: Settings) -> None:
        """Fill the fields, without a signal; an edited matrix is kept."""
        self.form.set_settings(settings)
        if not self._by_hand:
            self._show_meant()

    def settings(self) -> Settings:
        """Return the settings entered.

        Raises `SettingsError` with the message that the form shows.
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
            return  # the form shows the error; the previous matrix is kept
        self.matrix.show_counts(*self._labels, counts)

    def _settle(self) -> None:
        known = self._matrix_of is not None
        self._nothing.setVisible(not known)
        self._help.setVisible(known)
        self.matrix.setVisible(known)
        self.form.setEnabled(not self._by_hand)
        self.reset.setVisible(self._by_hand)
        self._header.set_subtitle("edited" if self._by_hand else "", "accent" if self._by_hand else "small")

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


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers, classes, meaning of the answers, and prior of a question."""

    # outputs, classes: tuple of L and J names
    outputs: tuple[str, ...]
    classes: tuple[str, ...]
    meaning: tuple[int, ...]  # (L,): the class that each output stands for, -1 for none
    prior: NDArray[np.float64] | None = None  # (J, L): pseudo-counts set for this question
    ordered: bool = False  # whether the classes are grades, from the first to the last


class AnswersDialog(FormDialog):
    """Dialog for the answers to a question; open it with ``open()`` and read `answers` when accepted."""

    def __init__(self, question: str, answers: Answers, parent: QWidget | None = None) -> None:
        super().__init__("Answers", parent, width=0)
        self.resize(760, 640)
        self._quiet = False
        self.outputs = QTableWidget(0, 2)
        self.outputs.setAccessibleName("Answers of the annotators")
        self.outputs.setTabKeyNavigation(False)
        self.outputs.setHorizontalHeaderLabels(["answer", "class"])
        self.outputs.horizontalHeader().setStretchLastSection(True)
        self.outputs.verticalHeader().hide()
        self.outputs.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.outputs.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.outputs.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.classes = QListWidget()
        self.classes.setAccessibleName("Classes")
        self.ordered = QCheckBox("ordered, from the lowest grade to the highest")
        self.ordered.setChecked(answers.ordered)
        self.prior = PriorForm(PriorSettings)
        self._error = plain_label("", "error", wrap=True)
        self._put_in_place(question)
        for name in answers.classes:
            self._add_class(name)
        self._fill(answers.outputs, [self._name(answers.classes, row) for row in answers.meaning])
        self.classes.itemChanged.connect(self._on_renamed)
        self.outputs.setCurrentCell(0, 0)
        self._show_prior(answers.prior)
        self.prior.changed.connect(self._check)
        self._check()

    @property
    def answers(self) -> Answers:
        """Answers and classes entered in the dialog."""
        classes = self._classes()
        meaning = tuple(classes.index(name) if name in classes else OPEN for name in self._meanings())
        return Answers(self._outputs(), classes, meaning, self._prior(), self.ordered.isChecked())

    def _put_in_place(self, question: str) -> None:
        of_outputs = _buttons(
            ("Up", "Move up", partial(self._move_output, -1)),
            ("Down", "Move down", partial(self._move_output, 1)),
        )
        of_classes = _buttons(
            ("Up", "Move up", partial(self._move_class, -1)),
            ("Down", "Move down", partial(self._move_class, 1)),
            ("Add", "Add a class", self._on_add),
            ("Remove", "Remove the selected class", self._on_remove),
        )
        left = vertical(plain_label("ANSWERS", "caption"), (self.outputs, 1), of_outputs, spacing=4)
        right = vertical(
            plain_label("CLASSES", "caption"), (self.classes, 1), of_classes, self.ordered, spacing=4
        )
        inner = QWidget()
        area = scroll_area(inner)
        vertical(self.prior, inside=inner, margins=(12, 8, 8, 8))
        tables = horizontal((left, 3), (right, 2), spacing=16)
        heading = f"Meaning of the answers to “{question}”"
        self.lay_out(heading, "", (tables, 2), (area, 3), self._error, accept="Apply")

    def _outputs(self) -> tuple[str, ...]:
        items = (self.outputs.item(row, 0) for row in range(self.outputs.rowCount()))
        return tuple(item.text() for item in items if item is not None)

    def _meanings(self) -> list[str]:
        boxes = [self.outputs.cellWidget(row, 1) for row in range(self.outputs.rowCount())]
        return [str(box.key) for box in boxes if isinstance(box, ChoiceBox)]

    def _classes(self) -> tuple[str, ...]:
        return tuple(self.classes.item(row).text().strip() for row in range(self.classes.count()))

    @staticmethod
    def _name(classes: tuple[str, ...], row: int) -> str:
        return classes[row] if row != OPEN else ""

    def _fill(self, outputs: tuple[str, ...], meanings: list[str]) -> None:
        """List outputs in a given order, each with its class."""
        self.outputs.setRowCount(len(outputs))
        classes = self._classes()
        for row, (output, name) in enumerate(zip(outputs, meanings, strict=True)):
            self.outputs.setItem(row, 0, QTableWidgetItem(output))
            entries = {**dict(zip(classes, classes, strict=True)), "": NOTHING}
            box = ChoiceBox(f"Class of answer {output}", entries)
            box.choose(name if name in classes else "")
            box.currentIndexChanged.connect(self._on_meaning)
            self.outputs.setCellWidget(row, 1, box)

    def _add_class(self, name: str) -> None:
        item = QListWidgetItem(name)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
        item.setData(Qt.ItemDataRole.UserRole, name)
        self.classes.addItem(item)

    def _move_output(self, by: int) -> None:
        row = self.outputs.currentRow()
        target = row + by
        names, meanings = list(self._outputs()), self._meanings()
        if not (0 <= row < len(names) and 0 <= target < len(names)):
            return
        names[row], names[target] = names[target], names[row]
        meanings[row], meanings[target] = meanings[target], meanings[row]
        self._fill(tuple(names), meanings)
        self.outputs.setCurrentCell(target, 0)
        self._show_prior()

    def _move_class(self, by: int) -> None:
        row = self.classes.currentRow()
        target = row + by
        if not 0 <= target < self.classes.count() or row < 0:
            return
        self.classes.insertItem(target, self.classes.takeItem(row))
        self.classes.setCurrentRow(target)
        self._classes_changed()

    def _on_add(self) -> None:
        existing, number = self._classes(), self.classes.count() + 1
        while f"class {number}" in existing:
            number += 1
        self._add_class(f"class {number}")
        self.classes.setCurrentRow(self.classes.count() - 1)
        self._classes_changed()
        self.classes.editItem(self.classes.currentItem())

    def _on_remove(self) -> None:
        if self.classes.count() > 1 and self.classes.currentRow() >= 0:
            self.classes.takeItem(self.classes.currentRow())
            self._classes_changed()

    def _on_renamed(self, item: QListWidgetItem) -> None:
        if self._quiet:
            return
        before = str(item.data(Qt.ItemDataRole.UserRole))
        self._quiet = True
        item.setData(Qt.ItemDataRole.UserRole, item.text().strip())
        self._quiet = False
        meanings = [item.text().strip() if name == before else name for name in self._meanings()]
        self._fill(self._outputs(), meanings)
        self._show_prior()

    def _classes_changed(self) -> None:
        self._fill(self._outputs(), self._meanings())
        self._show_prior()

    def _on_meaning(self) -> None:
        self._show_prior()

    def _show_prior(self, by_hand: NDArray[np.float64] | None = None) -> None:
        """Show the prior for other labels; an edited prior belongs to the old labels and is discarded."""
        self._check()
        if not self._error.text():
            outputs, classes, meaning = self.answers.outputs, self.answers.classes, self.answers.meaning
            self.prior.set_labels(classes, outputs, partial(_meant, outputs, classes, meaning), by_hand)

    def _prior(self) -> NDArray[np.float64] | None:
        """Return the pseudo-counts edited by the user or set by the fields; None for the default."""
        by_hand = self.prior.by_hand()
        if by_hand is not None or self.prior.form.error():
            return by_hand
        settings = self.prior.settings()
        if settings == PriorSettings():
            return None
        classes = self._classes()
        meaning = tuple(classes.index(name) if name in classes else OPEN for name in self._meanings())
        return _meant(self._outputs(), classes, meaning, settings)

    def _check(self) -> None:
        classes = self._classes()
        wrong = ""
        if not all(classes):
            wrong = "A class has no name."
        elif len(set(classes)) != len(classes):
            wrong = "Two classes have the same name."
        self._error.setText(wrong)
        self._error.setVisible(bool(wrong))
        self.accepting.setEnabled(not wrong and not self.prior.form.error())


def _meant(
    outputs: tuple[str, ...], classes: tuple[str, ...], meaning: tuple[int, ...], settings: Settings
) -> NDArray[np.float64]:
    assert isinstance(settings, PriorSettings)
    none = np.empty(0, dtype=np.int32)
    labels = Labels(
        none, none, none.astype(np.int16), (), (), outputs, classes, np.array(meaning, dtype=np.int16)
    )
    return prior_of(labels, settings)


def _buttons(*described: tuple[str, str, object]) -> QHBoxLayout:
    buttons = []
    for words, tip, slot in described:
        button = QPushButton(words)
        button.setToolTip(tip)
        button.setAutoDefault(False)
        button.clicked.connect(slot)
        buttons.append(button)
    return horizontal(*buttons, STRETCH, spacing=8)
