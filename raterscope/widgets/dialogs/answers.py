"""Dialog for the answers to a question: their order, their classes, and the prior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from raterscope.algorithms.labels.data import OPEN, Labels, PriorSettings, prior_of
from raterscope.algorithms.settings import Settings
from raterscope.widgets.dialogs.parts import FormDialog
from raterscope.widgets.layouts import STRETCH, horizontal, scroll_area, vertical
from raterscope.widgets.panels.prior_form import PriorForm
from raterscope.widgets.parts import ChoiceBox, plain_label

NOTHING = "no class"


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
    """Open it with ``open()`` and read `answers` when accepted."""

    def __init__(self, question: str, answers: Answers, parent: QWidget | None = None) -> None:
        super().__init__("Answers", parent, width=0)
        self.resize(760, 640)
        self._quiet = False
        self.outputs = QTableWidget(0, 2)
        self.outputs.setAccessibleName("Answers of the annotators")
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
        meaning = tuple(classes.index(name) if name in classes else OPEN for name in self._stands())
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

    def _stands(self) -> list[str]:
        boxes = [self.outputs.cellWidget(row, 1) for row in range(self.outputs.rowCount())]
        return [str(box.key) for box in boxes if isinstance(box, ChoiceBox)]

    def _classes(self) -> tuple[str, ...]:
        return tuple(self.classes.item(row).text().strip() for row in range(self.classes.count()))

    @staticmethod
    def _name(classes: tuple[str, ...], row: int) -> str:
        return classes[row] if row != OPEN else ""

    def _fill(self, outputs: tuple[str, ...], stands: list[str]) -> None:
        """List outputs in an order, each with its class."""
        self.outputs.setRowCount(len(outputs))
        classes = self._classes()
        for row, (output, name) in enumerate(zip(outputs, stands, strict=True)):
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
        names, stands = list(self._outputs()), self._stands()
        if not (0 <= row < len(names) and 0 <= target < len(names)):
            return
        names[row], names[target] = names[target], names[row]
        stands[row], stands[target] = stands[target], stands[row]
        self._fill(tuple(names), stands)
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
        stands = [item.text().strip() if name == before else name for name in self._stands()]
        self._fill(self._outputs(), stands)
        self._show_prior()

    def _classes_changed(self) -> None:
        self._fill(self._outputs(), self._stands())
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
        """Return the pseudo-counts set by hand or by the fields; None for the default."""
        by_hand = self.prior.by_hand()
        if by_hand is not None or self.prior.form.error():
            return by_hand
        settings = self.prior.settings()
        if settings == PriorSettings():
            return None
        classes = self._classes()
        meaning = tuple(classes.index(name) if name in classes else OPEN for name in self._stands())
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
