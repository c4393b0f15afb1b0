"""Which column holds what, asked with the first rows in sight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.parts import plain_label

__all__ = ["ColumnMappingDialog", "MappingField", "TableKind"]

ROWS_SHOWN = 6
LONGEST_CELL = 60
NOT_USED = ""


@dataclass(frozen=True, slots=True)
class MappingField:
    """Something that a column may hold.

    Attributes
    ----------
    name : str
        The program's word: "annotator".
    label : str
        For people.
    required : bool
    """

    name: str
    label: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class TableKind:
    """Something that a table may hold.

    Attributes
    ----------
    label : str
        For people.
    fields : tuple of MappingField
        What its columns hold.
    guess : mapping of column to field
        What to begin with.
    """

    label: str
    fields: tuple[MappingField, ...]
    guess: Mapping[str, str]


class ColumnMappingDialog(QDialog):
    """One choice above each column; open it with ``open()`` and read `mapping` when accepted.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        The first rows.
    kinds : sequence of TableKind
        What the table may hold; where there is one alone, it is not asked about.
    chosen : int
        The kind to begin with.
    title : str
        Name of the file.
    """

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        kinds: Sequence[TableKind],
        chosen: int = 0,
        title: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Assign columns")
        self.resize(720, 380)
        self.header, self._kinds = tuple(header), tuple(kinds)
        self.kind = QComboBox()
        self.kind.setAccessibleName("The table holds")
        self.kind.addItems([kind.label for kind in kinds])
        self.kind.setCurrentIndex(chosen)
        self._table = QTableWidget(min(len(rows), ROWS_SHOWN) + 1, len(header))
        self._table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self._table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._table.setAccessibleName("The first rows")
        self._table.verticalHeader().hide()
        self._table.setHorizontalHeaderLabels([_short(name) for name in header])
        self._table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._table.horizontalHeader().setMinimumSectionSize(130)
        self.choices: list[QComboBox] = []
        for column, name in enumerate(header):
            choice = QComboBox()
            choice.setAccessibleName(f"Column {name} holds")
            self._table.setCellWidget(0, column, choice)
            self.choices.append(choice)
            for row, cells in enumerate(rows[:ROWS_SHOWN], start=1):
                item = QTableWidgetItem(_short(cells[column]) if column < len(cells) else "")
                self._table.setItem(row, column, item)
        self._table.setRowHeight(0, 34)
        self._problem = plain_label("", "rejected", wrap=True)
        column_box = QVBoxLayout(self)
        column_box.setContentsMargins(16, 16, 16, 16)
        column_box.setSpacing(8)
        column_box.addWidget(plain_label(title or "A table with an unknown header", "title"))
        column_box.addWidget(
            plain_label("Select what each column holds. Other columns are ignored.", "second")
        )
        if len(kinds) > 1:
            line = QHBoxLayout()
            line.addWidget(plain_label("The table holds", "second"))
            line.addWidget(self.kind)
            line.addStretch(1)
            column_box.addLayout(line)
        column_box.addWidget(self._table, 1)
        column_box.addWidget(self._problem)
        self.read = add_buttons(self, column_box, "Import")
        self._offer()
        self.kind.currentIndexChanged.connect(self._offer)
        for choice in self.choices:
            choice.currentIndexChanged.connect(self._settle)

    @property
    def mapping(self) -> dict[str, str]:
        """Field of each column that is used."""
        pairs = zip(self.header, self.choices, strict=True)
        return {name: choice.currentData() for name, choice in pairs if choice.currentData() != NOT_USED}

    def problem(self) -> str:
        """Give the sentence that says what is missing or twice, empty where the mapping will do."""
        used = list(self.mapping.values())
        fields = self._kinds[self.kind.currentIndex()].fields
        missing = [field for field in fields if field.required and field.name not in used]
        if missing:
            *first, last = (field.label.partition(",")[0] for field in missing)  # without its unit
            return f"No column is selected for {', '.join(first)}{' and ' if first else ''}{last}."
        twice = [field.label for field in fields if used.count(field.name) > 1]
        return f"Two columns are selected for {twice[0]}. Select one." if twice else ""

    def _offer(self) -> None:
        """Offer what the columns of the chosen kind of table hold."""
        kind = self._kinds[self.kind.currentIndex()]
        for name, choice in zip(self.header, self.choices, strict=True):
            with QSignalBlocker(choice):
                choice.clear()
                choice.addItem("not used", NOT_USED)
                for field in kind.fields:
                    words = field.label if field.required else f"{field.label} (optional)"
                    choice.addItem(words, field.name)
                choice.setCurrentIndex(max(0, choice.findData(kind.guess.get(name, NOT_USED))))
        self._settle()

    def _settle(self) -> None:
        problem = self.problem()
        self._problem.setText(problem)
        self.read.setEnabled(not problem)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 1] + "…"
