"""Who marked these files? One line a file, with a pattern that fills them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QFormLayout,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.parts import plain_label

__all__ = ["WhoMarkedDialog"]

FILE, ANNOTATOR, TRUTH = range(3)
ENTERED = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsSelectable


class WhoMarkedDialog(QDialog):
    """Asks for an annotator for each file; open it with ``open()`` and read `names` when accepted.

    Parameters
    ----------
    files : sequence of str
        The files, as they are shown.
    guess : sequence of str
        A name for each to begin with.
    by_pattern : callable
        ``by_pattern(number, pattern)`` gives the annotator that a pattern finds in the name of a file, or
        None. Raises ValueError, in a sentence, for a pattern that is none.
    detections : sequence of bool, optional
        Which of the files hold detections that a study gave: they are preset to be the truth.
    """

    def __init__(
        self,
        files: Sequence[str],
        guess: Sequence[str],
        by_pattern: Callable[[int, str], str | None],
        *,
        detections: Sequence[bool] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        left_here = bool(detections) and all(detections)
        title = "Ground truth, or an annotator's clicks?" if left_here else "Who marked these files?"
        self.setWindowTitle(title)
        self.resize(640, 420)
        self._by_pattern = by_pattern
        self._settling = True
        self.pattern_field = QLineEdit()
        self.pattern_field.setPlaceholderText("{item}_{annotator}")
        self.pattern_field.setAccessibleName("Pattern of the names")
        self.pattern_field.textEdited.connect(self._on_pattern)
        self.table = QTableWidget(len(files), 3)
        self.table.setHorizontalHeaderLabels(["File", "Annotator", "Ground truth"])
        self.table.setAccessibleName("Annotator of each file")
        self.truths: list[QCheckBox] = []
        self.table.verticalHeader().hide()
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.AllEditTriggers)
        head = self.table.horizontalHeader()
        head.setSectionResizeMode(FILE, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(ANNOTATOR, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(TRUTH, QHeaderView.ResizeMode.ResizeToContents)
        for row, (file, name) in enumerate(zip(files, guess, strict=True)):
            shown = QTableWidgetItem(file)
            shown.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self.table.setItem(row, FILE, shown)
            self.table.setItem(row, ANNOTATOR, QTableWidgetItem(name))
            truth = QCheckBox()
            truth.setAccessibleName(f"{file} is ground truth")
            truth.setChecked(any(detections[row : row + 1]))
            truth.toggled.connect(self._settle)
            self.table.setCellWidget(row, TRUTH, truth)
            self.truths.append(truth)
        self.table.itemChanged.connect(self._settle)
        self._problem = plain_label("", "rejected", wrap=True)
        form = QFormLayout()
        form.addRow("Pattern, or one name for all", self.pattern_field)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label(title, "title"))
        column.addWidget(plain_label(_explained(detections), "second", wrap=True))
        column.addLayout(form)
        column.addWidget(self.table, 1)
        column.addWidget(self._problem)
        self.read = add_buttons(self, column, "Import")
        self._settling = False
        self._settle()
        self.pattern_field.setFocus()

    @property
    def names(self) -> list[str | None]:
        """The annotator of each file; None for the truth."""
        return [
            None if self.truths[row].isChecked() else self._name(row) for row in range(self.table.rowCount())
        ]

    @property
    def pattern(self) -> str:
        """The pattern, empty where there is none."""
        text = self.pattern_field.text().strip()
        return text if "{" in text else ""

    def problem(self) -> str:
        """Give the sentence that says what is missing, empty where the names will do."""
        missing = [row for row, name in enumerate(self.names) if name == ""]
        if not missing:
            return ""
        file = self._cell(missing[0], FILE).text()
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        return f"Name an annotator for {file}{more}."

    def _cell(self, row: int, column: int) -> QTableWidgetItem:
        found = self.table.item(row, column)
        assert found is not None
        return found

    def _name(self, row: int) -> str:
        return " ".join(self._cell(row, ANNOTATOR).text().split())

    def _on_pattern(self, text: str) -> None:
        text = text.strip()
        if not text:
            return
        found: list[str | None] = [text] * self.table.rowCount()
        if "{" in text:
            try:
                found = [self._by_pattern(row, text) for row in range(len(found))]
            except ValueError as error:
                self._problem.setText(str(error))
                self.read.setEnabled(False)
                return
        self._settling = True
        for row, name in enumerate(found):
            if name:
                self._cell(row, ANNOTATOR).setText(name)
                self.truths[row].setChecked(False)
        self._settling = False
        self._settle()

    def _settle(self) -> None:
        if self._settling:
            return
        self._settling = True
        for row, truth in enumerate(self.truths):
            cell, look = self._cell(row, ANNOTATOR), theme.current()
            cell.setFlags(Qt.ItemFlag.NoItemFlags if truth.isChecked() else ENTERED)
            cell.setForeground(QColor(look.third if truth.isChecked() else look.text))
        self._settling = False
        problem = self.problem()
        self._problem.setText(problem)
        self.read.setEnabled(not problem)


def _explained(detections: Sequence[bool]) -> str:
    """Say why it is asked."""
    if not any(detections):
        return "The files do not name their annotators. Enter a name for each file, or tick ground truth."
    if all(detections):
        return (
            "These files are detections exported from Raterscope. Ticked files are imported as ground truth, "
            "others as clicks of the named annotator."
        )
    return (
        "Ticked files are detections exported from Raterscope: they are imported as ground truth. "
        "Name the annotators of the other files."
    )
