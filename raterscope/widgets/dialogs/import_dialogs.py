"""Import dialogs: column mapping and annotators of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.forms import FormDialog
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.theme import pixels

ROWS_SHOWN = 6
LONGEST_CELL = 30
NOT_USED = ""


@dataclass(frozen=True, slots=True)
class MappingField:
    """Field that a column may be mapped to."""

    name: str  # internal name: "annotator"
    label: str  # displayed name
    required: bool = True
    repeats: bool = False  # whether several columns may hold it


@dataclass(frozen=True, slots=True)
class TableKind:
    """Type of table with its fields."""

    label: str  # displayed name
    fields: tuple[MappingField, ...]  # fields of the columns
    guess: Mapping[str, str]  # by column: initial mapping


class ColumnChoices(QWidget):
    """The first rows of a table, with a choice of field above each column, and a choice of the table's type.

    `header`: names of the columns. `kinds`: possible types of the table; a single type is not offered as a
    choice. `chosen`: index of the initial type.
    """

    changed = Signal()

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        kinds: Sequence[TableKind],
        chosen: int = 0,
    ) -> None:
        super().__init__()
        self.header, self._kinds = tuple(header), tuple(kinds)
        self.kind = QComboBox()
        self.kind.setAccessibleName("The table holds")
        self.kind.addItems([kind.label for kind in kinds])
        self.kind.setCurrentIndex(chosen)
        self._table = QTableWidget(min(len(rows), ROWS_SHOWN) + 1, len(header))
        self._table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self._table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._table.setTabKeyNavigation(False)  # Tab leaves the last choice
        self._table.setAccessibleName("The first rows")
        self._table.verticalHeader().hide()
        self._table.setHorizontalHeaderLabels([_short(name) for name in header])
        head = self._table.horizontalHeader()
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setMinimumSectionSize(130)
        self.choices: list[ChoiceBox] = []
        for column, name in enumerate(header):
            choice = ChoiceBox(f"Column {name} holds")
            self._table.setCellWidget(0, column, choice)
            self.choices.append(choice)
            for row, cells in enumerate(rows[:ROWS_SHOWN], start=1):
                cell = cells[column] if column < len(cells) else ""
                item = QTableWidgetItem(_short(cell))
                if item.text() != cell:
                    item.setToolTip(cell)
                self._table.setItem(row, column, item)
        self._table.verticalHeader().setDefaultSectionSize(pixels(26))
        self._table.setRowHeight(0, pixels(34))
        self._problem = plain_label("", "rejected", wrap=True)
        kinds_offered = horizontal(plain_label("The table holds", "second"), self.kind, STRETCH, spacing=None)
        vertical(
            *([kinds_offered] if len(kinds) > 1 else []),
            (self._table, 1),
            self._problem,
            inside=self,
            spacing=8,
        )
        self._offer()
        self.kind.currentIndexChanged.connect(self._offer)
        for choice in self.choices:
            choice.currentIndexChanged.connect(self._settle)

    @property
    def mapping(self) -> dict[str, str]:
        """Field of each used column."""
        pairs = zip(self.header, self.choices, strict=True)
        return {name: choice.currentData() for name, choice in pairs if choice.currentData() != NOT_USED}

    def problem(self) -> str:
        """Return the error message: a missing or repeated field; empty if the mapping is valid."""
        used = list(self.mapping.values())
        fields = self._kinds[self.kind.currentIndex()].fields
        missing = [field for field in fields if field.required and field.name not in used]
        if missing:
            *first, last = (field.label.partition(",")[0] for field in missing)  # without its unit
            return f"No column is selected for {', '.join(first)}{' and ' if first else ''}{last}."
        repeated = [field.label for field in fields if used.count(field.name) > 1 and not field.repeats]
        return f"Two columns are selected for {repeated[0]}. Select one." if repeated else ""

    def _offer(self) -> None:
        """Offer the fields of the selected type of table."""
        kind = self._kinds[self.kind.currentIndex()]
        for name, choice in zip(self.header, self.choices, strict=True):
            with QSignalBlocker(choice):
                choice.clear()
                choice.addItem("not used", NOT_USED)
                for field in kind.fields:
                    text = field.label if field.required else f"{field.label} (optional)"
                    choice.addItem(text, field.name)
                choice.setCurrentIndex(max(0, choice.findData(kind.guess.get(name, NOT_USED))))
        self._settle()

    def _settle(self) -> None:
        problem = self.problem()
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        self.changed.emit()


class ColumnMappingDialog(FormDialog):
    """Dialog with a choice above each column; open it with ``open()`` and read `mapping` when accepted.

    `header`, `rows`, `kinds`, `chosen`: see `ColumnChoices`. `title`: name of the file. `problem`: why
    recognised columns must be confirmed. `skippable`: whether a button skips this file and imports others.
    """

    skipped = Signal()

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        kinds: Sequence[TableKind],
        chosen: int = 0,
        title: str = "",
        problem: str = "",
        parent: QWidget | None = None,
        *,
        skippable: bool = False,
    ) -> None:
        super().__init__("Assign columns", parent, width=0)
        self.resize(720, 380)
        self.columns = ColumnChoices(header, rows, kinds, chosen)
        heading = title or "A table with an unknown header"
        about = f"{problem}. " if problem else ""
        about += "Select what each column holds. Other columns are ignored."
        box = self.lay_out(heading, about, (self.columns, 1), accept="Import")
        if skippable:
            skip = box.addButton("Skip this file", QDialogButtonBox.ButtonRole.ActionRole)
            skip.setAutoDefault(False)
            skip.clicked.connect(self._skip)
        self._settle()
        self.columns.changed.connect(self._settle)

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.columns.header

    @property
    def mapping(self) -> dict[str, str]:
        """Field of each used column."""
        return self.columns.mapping

    def _settle(self) -> None:
        self.accepting.setEnabled(not self.columns.problem())

    def _skip(self) -> None:
        self.hide()  # not rejected: the other files are imported
        self.skipped.emit()
        self.deleteLater()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 1] + "…"


FILE, ANNOTATOR, TRUTH = range(3)
ENTERED = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsSelectable


class AnnotatorNamesDialog(FormDialog):
    """Dialog for the annotator of each file; open it with ``open()`` and read `names` when accepted.

    `files`: displayed file names. `guess`: initial name of each. `by_pattern`: returns the annotator that a
    pattern finds in the name of the file with a number, or None; raises ValueError for an invalid pattern.
    `detections`: files with detections exported from a study; they are preset as ground truth.
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
        left_here = bool(detections) and all(detections)
        title = "Ground truth, or an annotator's clicks?" if left_here else "Who marked these files?"
        super().__init__(title, parent, width=0)
        self.resize(640, 420)
        self._by_pattern = by_pattern
        self._replaced: dict[int, tuple[str, bool, str]] = {}
        """Of each row that the pattern names: name and tick before, and the name that it gave."""
        self._settling = True
        self.pattern_field = QLineEdit(placeholderText="{item}_{annotator}")
        self.pattern_field.setAccessibleName("Pattern of the names")
        self.pattern_field.textEdited.connect(self._on_pattern)
        self.table = QTableWidget(len(files), 3)
        self.table.setTabKeyNavigation(False)
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
        fields = {"Pattern, or one name for all": self.pattern_field}
        about = _explained(detections)
        self.lay_out(title, about, fields, (self.table, 1), self._problem, accept="Import")
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
        """The pattern, empty for none."""
        text = self.pattern_field.text().strip()
        return text if "{" in text else ""

    def problem(self) -> str:
        """Return the error message: a missing name; empty if all names are valid."""
        missing = [row for row, name in enumerate(self.names) if name == ""]
        if not missing:
            return ""
        file = self._cell(missing[0], FILE).text()
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        return f"Name an annotator for {file}{more}."

    def _cell(self, row: int, column: int) -> QTableWidgetItem:
        item = self.table.item(row, column)
        assert item is not None
        return item

    def _name(self, row: int) -> str:
        return " ".join(self._cell(row, ANNOTATOR).text().split())

    def _on_pattern(self, text: str) -> None:
        text, rows = text.strip(), range(self.table.rowCount())
        self._settling = True
        for row, (name, ticked, given) in self._replaced.items():
            if self._cell(row, ANNOTATOR).text() == given:  # not edited since
                self._cell(row, ANNOTATOR).setText(name)
                self.truths[row].setChecked(ticked)
        self._replaced.clear()
        problem = ""
        try:
            annotators = [self._by_pattern(row, text) if "{" in text else text for row in rows]
        except ValueError as error:
            annotators, problem = [], str(error)
        for row, annotator in enumerate(annotators):
            if annotator:
                cell, truth = self._cell(row, ANNOTATOR), self.truths[row]
                self._replaced[row] = cell.text(), truth.isChecked(), annotator
                cell.setText(annotator)
                truth.setChecked(False)
        self._settling = False
        self._settle()
        if problem:
            self._problem.setText(problem)
            self.accepting.setEnabled(False)

    def _settle(self) -> None:
        if self._settling:
            return
        self._settling = True
        for row, truth in enumerate(self.truths):
            cell, palette = self._cell(row, ANNOTATOR), theme.current()
            cell.setFlags(Qt.ItemFlag.NoItemFlags if truth.isChecked() else ENTERED)
            cell.setForeground(QColor(palette.third if truth.isChecked() else palette.text))
        self._settling = False
        problem = self.problem()
        self._problem.setText(problem)
        self.accepting.setEnabled(not problem)


def _explained(detections: Sequence[bool]) -> str:
    """Explain why an answer is needed."""
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
