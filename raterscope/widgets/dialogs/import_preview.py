"""Dialog before an import: interpretation of the files, first rows, names, and skipped contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QWidget,
)

from raterscope.widgets.dialogs.import_dialogs import ColumnChoices, TableKind
from raterscope.widgets.forms import FormDialog
from raterscope.widgets.layouts import STRETCH, horizontal, stacked, vertical
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import pixels, set_lengths

MAX_NAMES = 500
"""Maximum number of names in the dialog, the most frequent first."""

_LARGEST = 1_000_000
_STUDIES = "Raterscope studies (*.rscope)"


@dataclass(frozen=True, slots=True)
class TableOffer:
    """A table that was read."""

    title: str  # name of the file
    header: Sequence[str]
    rows: Sequence[Sequence[str]]  # sequence of sequences of str: the first rows
    # possible types of the table; the guess of the chosen type is the current interpretation
    kinds: Sequence[TableKind]
    chosen: int


@dataclass(frozen=True, slots=True)
class NamesOffer:
    """Names of one kind that can be changed."""

    kind: str  # internal name: "structure"
    title: str  # title of the tab
    names: Mapping[str, int]  # by name
    new: Mapping[str, str]  # by name: proposed changes
    programs: Set[str] | None = None  # annotators that are programs; None for names of another kind


@dataclass(frozen=True, slots=True)
class ImportOffer:
    """Contents of the dialog."""

    contents: Sequence[str]  # phrases that describe the contents
    tables: Sequence[TableOffer] = ()
    names: Sequence[NamesOffer] = ()
    joined: str = ""  # description of joined names; empty for none
    # title to list that is only shown: images, masks
    listed: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = field(default_factory=dict)
    # files that may be masks or images, and whether they were read as masks
    are_masks: Sequence[tuple[str, bool]] = ()
    notices: Sequence[str] = ()  # skipped contents and assumptions, with reasons
    study: Path | None = None  # proposed file of a new study; None to import into the open one
    target: str = ""  # name of the open study
    unsized: int = 0  # number of images of unknown size; `extent` is the proposed size
    extent: tuple[int, int] = (1, 1)
    # interpretation of structure names that end with the rater; empty if none seem to. `has_raters`: whether
    # it was applied
    rater_example: str = ""
    has_raters: bool = False
    labelled: bool = False  # whether the classes are of labels, which may be grades or have parents


class ImportDialog(FormDialog):
    """Interpretation of an import; Enter imports. Open it with ``open()`` and read its answers when accepted.

    If the meaning of columns or structure names was changed, the files must be read again: `needs_reading`.
    """

    def __init__(self, offer: ImportOffer, parent: QWidget | None = None) -> None:
        super().__init__("Import", parent, width=0)
        self.resize(min(pixels(820), 1240), min(pixels(560), 680))
        self._offer = offer
        self.tables = [
            ColumnChoices(table.header, table.rows, table.kinds, table.chosen) for table in offer.tables
        ]
        self._read_as = [table.mapping for table in self.tables]
        self.names = {names.kind: _NamesTable(names) for names in offer.names if names.names}
        self.scale = _ClassScale(self)
        self.scale.setVisible(offer.labelled and "class" in self.names)
        example = offer.rater_example.replace("&", "&&")
        self.raters = QCheckBox(f"Structure names end with the rater: {example}", self)
        self.raters.setChecked(offer.has_raters)
        self.raters.setVisible(bool(offer.rater_example))
        self.width_field, self.height_field = _length_field("Width", self), _length_field("Height", self)
        self.width_field.setValue(offer.extent[0])
        self.height_field.setValue(offer.extent[1])
        self.study_field = QLineEdit("" if offer.study is None else str(offer.study), self)
        self.study_field.setAccessibleName("File of the study")
        self.types = _types_table(offer.are_masks)
        self.tabs = QTabWidget()
        self._fill_tabs(offer)
        self._problem = plain_label("", "rejected", wrap=True)
        contents = [plain_label(words, wrap=True) for words in offer.contents]
        joined = [plain_label(offer.joined, "accent", wrap=True)] if offer.joined else []
        self.lay_out(
            "Ready to import",
            "",
            vertical(*contents, *joined, spacing=2),
            (self.tabs, 1),
            *self._size_row(offer),
            self._study_row(offer),
            self._problem,
            accept="Import",
        )
        for table in self.tables:
            table.changed.connect(self._settle)
        for names in self.names.values():
            names.itemChanged.connect(self._settle)
        self.types.itemChanged.connect(self._settle)
        self.raters.toggled.connect(self._settle)
        self.scale.grades.textChanged.connect(self._settle)
        self.scale.separator.textChanged.connect(self._on_separator)
        self.study_field.textChanged.connect(self._settle)
        self._settle()

    @property
    def needs_reading(self) -> bool:
        """Return whether the meaning of columns, files or raters was changed."""
        return bool(self.mappings or self.declared) or self.raters.isChecked() != self._offer.has_raters

    @property
    def declared(self) -> dict[int, bool]:
        """By index of a file whose type was changed, whether it is a mask."""
        changed = {}
        for row in range(self.types.rowCount()):
            item, (_, was_mask) = self.types.item(row, 1), self._offer.are_masks[row]
            if item is not None and (item.checkState() == Qt.CheckState.Checked) != was_mask:
                changed[row] = not was_mask
        return changed

    @property
    def offers_raters(self) -> bool:
        """Return whether the names of structures seem to end with the rater."""
        return bool(self._offer.rater_example)

    @property
    def mappings(self) -> dict[int, dict[str, str]]:
        """By index of a table with a changed mapping, field of each column."""
        changed = {}
        for at, (table, before) in enumerate(zip(self.tables, self._read_as, strict=True)):
            if table.mapping != before or table.kind.currentIndex() != self._offer.tables[at].chosen:
                changed[at] = dict.fromkeys(table.header, "ignore") | table.mapping
        return changed

    @property
    def study(self) -> Path | None:
        """File of the new study; None to import into the open study."""
        if self._offer.study is None:
            return None
        path = Path(self.study_field.text().strip()).expanduser()
        return path if path.suffix == ".rscope" else path.with_name(f"{path.name}.rscope")

    @property
    def extent(self) -> tuple[float, float] | None:
        """Size of images of unknown size; None if there are none."""
        if not self._offer.unsized:
            return None
        return float(self.width_field.value()), float(self.height_field.value())

    def new_names(self, kind: str) -> dict[str, str]:
        """Return the new name of each name of a kind that was changed."""
        if kind not in self.names:
            return {}
        table = self.names[kind]
        unlisted = self._class_names.keys() - table.listed if kind == "class" else ()
        return self.scale.paths(unlisted) | table.changes()

    @property
    def class_order(self) -> tuple[str, ...]:
        """Grades from the lowest to the highest, by their new names; empty to detect them."""
        return self.scale.order() if self._offer.labelled and "class" in self.names else ()

    @property
    def _class_names(self) -> Mapping[str, int]:
        return next((names.names for names in self._offer.names if names.kind == "class"), {})

    @property
    def programs(self) -> set[str]:
        """Annotators that are programs, by their names in the files."""
        return self.names["annotator"].programs() if "annotator" in self.names else set()

    def problem(self) -> str:
        """Return the error message; empty if the answers are valid."""
        broken = next((words for table in self.tables if (words := table.problem())), "")
        unnamed = any(
            not name
            for kind, names in self.names.items()
            if kind != "class"
            for name in names.changes().values()
        )
        if broken or unnamed:
            return broken or "A name is empty."
        changes = self.new_names("class")
        classes = {changes.get(name, name) for name in self._class_names}
        order = self.class_order
        unknown = next((name for name in order if name not in classes), None)
        if unknown is not None:
            return f"There is no class {unknown}: write the grades as they are imported, with commas."
        if len(set(order)) < len(order):
            return "The order of grades names a class twice."
        no_study = self._offer.study is not None and not self.study_field.text().strip()
        return "Enter the file of the study." if no_study else ""

    def showEvent(self, event: QShowEvent) -> None:
        """Let Enter import."""
        super().showEvent(event)
        self.accepting.setFocus()

    def _on_separator(self) -> None:
        if "class" in self.names:
            self.names["class"].propose(self.scale.paths(self._class_names))
        self._settle()

    def _settle(self) -> None:
        problem = self.problem()
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        self.accepting.setEnabled(not problem)
        self.accepting.setText("Read again" if self.needs_reading else "Import")

    def _fill_tabs(self, offer: ImportOffer) -> None:
        self.tabs.setAccessibleName("Details of the import")
        if self.tables:
            self.tabs.addTab(self._tables_page(offer), "Columns")
        for title, (header, rows) in offer.listed.items():
            self.tabs.addTab(_fixed_table(title, header, rows), f"{title} ({len(rows):,})")
        if offer.are_masks:
            self.tabs.addTab(self.types, f"Types ({len(offer.are_masks):,})")
        for names in offer.names:
            if names.kind not in self.names:
                continue
            page = QWidget()
            table = self.names[names.kind]
            extra: list[QWidget] = [self.raters] if names.kind == "structure" else []
            extra += [self.scale] if names.kind == "class" else []
            more = len(names.names) - MAX_NAMES
            if more > 0:
                extra.append(plain_label(f"{more:,} less frequent names are not listed.", "second"))
            vertical(*extra, (table, 1), inside=page, margins=(0, 8, 0, 0), spacing=8)
            at = self.tabs.addTab(page, "")
            count = partial(self._count_names, at, names)
            table.itemChanged.connect(count)
            count()
            if names.new:
                self.tabs.setCurrentIndex(at)
        if offer.notices:
            notices = _fixed_table("Notices", ("Skipped or assumed",), [(words,) for words in offer.notices])
            self.tabs.addTab(notices, f"Notices ({len(offer.notices):,})")
        self.tabs.setVisible(self.tabs.count() > 0)

    def _count_names(self, tab: int, offer: NamesOffer, *_: object) -> None:
        """Show on a tab the number of names, and the number of names after the import."""
        joined = len(offer.names) - self.names[offer.kind].joined()
        as_many = f" as {joined:,}" if joined < len(offer.names) else ""
        self.tabs.setTabText(tab, f"{offer.title} ({len(offer.names):,}{as_many})")

    def _tables_page(self, offer: ImportOffer) -> QWidget:
        page, pages = QWidget(), stacked(*self.tables)
        choice = QComboBox()
        choice.setAccessibleName("Table")
        choice.addItems([table.title for table in offer.tables])
        choice.currentIndexChanged.connect(pages.setCurrentIndex)
        choices = [horizontal(plain_label("Table", "second"), choice, STRETCH, spacing=8)]
        vertical(
            *(choices if len(self.tables) > 1 else []),
            (pages, 1),
            inside=page,
            margins=(0, 8, 0, 0),
            spacing=8,
        )
        return page

    def _size_row(self, offer: ImportOffer) -> list[QWidget]:
        for editor in (self.width_field, self.height_field):
            editor.setVisible(offer.unsized > 0)
        if not offer.unsized:
            return []
        images = "1 image" if offer.unsized == 1 else f"{offer.unsized:,} images"
        row = QWidget()
        horizontal(
            plain_label(f"Size of {images} without a file, pixels"),
            self.width_field,
            plain_label("×"),
            self.height_field,
            plain_label("at least the extent of the clicks", "second"),
            STRETCH,
            inside=row,
            spacing=8,
        )
        return [row]

    def _study_row(self, offer: ImportOffer) -> QWidget:
        row = QWidget()
        self.study_field.setVisible(offer.study is not None)
        if offer.study is None:
            horizontal(plain_label(f"Into {offer.target}", "second"), STRETCH, inside=row)
            return row
        chooser = QPushButton("Choose…")
        chooser.setAccessibleName("Choose the file of the study")
        chooser.setAutoDefault(False)
        chooser.clicked.connect(self._choose)
        horizontal(plain_label("New study"), (self.study_field, 1), chooser, inside=row, spacing=8)
        return row

    def _choose(self) -> None:
        name, _ = QFileDialog.getSaveFileName(
            self, "Save the new study as", self.study_field.text(), _STUDIES
        )
        if name:
            self.study_field.setText(name)


class _ClassScale(QWidget):
    """Order of grades, and separator between a parent and its classes."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.grades, self.separator = QLineEdit(), QLineEdit()
        self.grades.setAccessibleName("Grades, from the lowest to the highest")
        self.grades.setPlaceholderText("low, medium, high; empty: detected")
        self.separator.setAccessibleName("Separator of parent and class")
        self.separator.setPlaceholderText("/")
        set_lengths(self.separator, maximumWidth=48)
        horizontal(
            plain_label("Grades, lowest first", "second"),
            (self.grades, 1),
            plain_label("Separator of parent and class", "second"),
            self.separator,
            inside=self,
            spacing=8,
        )

    def order(self) -> tuple[str, ...]:
        """Return the grades, separated by semicolons if there are any, otherwise by commas."""
        text = self.grades.text()
        parts = (part.strip() for part in text.split(";" if ";" in text else ","))
        return tuple(part for part in parts if part)

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        """Return the new names of classes with the separator: "bird/owl" for "bird > owl"."""
        separator = self.separator.text().strip()
        if not separator:
            return {}
        split = {name: [part.strip() for part in name.split(separator)] for name in names}
        return {name: "/".join(parts) for name, parts in split.items() if len(parts) > 1 and all(parts)}


def _length_field(name: str, parent: QWidget) -> QSpinBox:
    editor = QSpinBox(parent, minimum=1, maximum=_LARGEST)
    editor.setAccessibleName(f"{name} of images without a file, pixels")
    return editor


def _fixed_table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> QTableWidget:
    table = QTableWidget(min(len(rows), MAX_NAMES), len(header))
    table.setAccessibleName(name)
    table.setHorizontalHeaderLabels(list(header))
    table.verticalHeader().hide()
    table.setTabKeyNavigation(False)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    for row, cells in enumerate(rows[:MAX_NAMES]):
        for column, text in enumerate(cells):
            table.setItem(row, column, QTableWidgetItem(text))
    head = table.horizontalHeader()
    head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    head.setStretchLastSection(True)
    if len(header) == 1:
        table.setWordWrap(True)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    return table


def _types_table(files: Sequence[tuple[str, bool]]) -> QTableWidget:
    """Create a table of files that are masks where they are checked, otherwise images."""
    table = _fixed_table("Types", ("File", "Mask"), [(name, "") for name, _ in files])
    for row, (_, is_mask) in enumerate(files[:MAX_NAMES]):
        table.setItem(row, 1, _check_item(is_mask, "mask", "Checked: a mask; otherwise an image or a volume"))
    return table


NAME, COUNT, NEW, PROGRAM = range(4)


_OF_PROGRAM = "A fusion calibrates a program by the votes of the others, and does not count it as one"


def _check_item(is_checked: bool, name: str, tip: str) -> QTableWidgetItem:
    item = QTableWidgetItem()
    item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable)
    item.setCheckState(Qt.CheckState.Checked if is_checked else Qt.CheckState.Unchecked)
    item.setToolTip(tip)
    item.setData(Qt.ItemDataRole.AccessibleTextRole, name)
    return item


class _OrderedItem(QTableWidgetItem):
    """Cell that is sorted by a key."""

    def __init__(self, text: str, key: Any) -> None:
        super().__init__(text)
        self._key = key

    def __lt__(self, other: QTableWidgetItem) -> bool:
        return bool(self._key < other._key) if isinstance(other, _OrderedItem) else super().__lt__(other)


class _NamesTable(QTableWidget):
    """Names with the number of their annotations, and the names under which they are imported."""

    def __init__(self, offer: NamesOffer) -> None:
        listed = sorted(offer.names, key=lambda name: -offer.names[name])[:MAX_NAMES]
        keys: dict[int, Callable[[str], Any]] = {NAME: str.casefold, COUNT: lambda name: -offer.names[name]}
        super().__init__(len(listed), 3 if offer.programs is None else 4)
        self.setAccessibleName(offer.title)
        self.setTabKeyNavigation(False)
        self.setHorizontalHeaderLabels(["Name in the files", "Annotations", "Imported as", "Program"])
        self.verticalHeader().hide()
        self.setEditTriggers(QAbstractItemView.EditTrigger.AllEditTriggers)
        for row, name in enumerate(listed):
            for column, text in ((NAME, name), (COUNT, f"{offer.names[name]:,}")):
                item = _OrderedItem(text, keys[column](name))
                item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
                if column == COUNT:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(row, column, item)
            self.setItem(row, NEW, QTableWidgetItem(offer.new.get(name, name)))
            if offer.programs is not None:
                self.setItem(row, PROGRAM, _check_item(name in offer.programs, "program", _OF_PROGRAM))
        head = self.horizontalHeader()
        head.setSectionsClickable(True)
        head.sectionClicked.connect(self._sort)
        head.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(COUNT, QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(NEW, QHeaderView.ResizeMode.Stretch)
        if offer.programs is not None:
            head.setSectionResizeMode(PROGRAM, QHeaderView.ResizeMode.ResizeToContents)
        self._programs = frozenset(offer.programs or ())
        self.listed = frozenset(listed)
        self._proposed = dict(offer.new)
        self._offered = offer.new

    def _sort(self, column: int) -> None:
        if column in (NAME, COUNT):
            self.sortItems(column)

    def joined(self) -> int:
        """Return how many of the listed names share a new name with another."""
        rows = range(self.rowCount())
        return len(rows) - len({" ".join(self._text(row, NEW).split()) for row in rows})

    def propose(self, new: Mapping[str, str]) -> None:
        """Fill in proposed new names, except where the user changed them."""
        proposed = {**self._offered, **new}
        for row in range(self.rowCount()):
            name, item = self._text(row, NAME), self.item(row, NEW)
            if item is not None and item.text() == self._proposed.get(name, name):
                item.setText(proposed.get(name, name))
        self._proposed = proposed

    def changes(self) -> dict[str, str]:
        """Return the new name of each name that was changed."""
        pairs = ((self._text(row, NAME), self._text(row, NEW)) for row in range(self.rowCount()))
        return {name: " ".join(new.split()) for name, new in pairs if name != new}

    def programs(self) -> set[str]:
        """Return the names that are checked as programs."""
        checked = {
            self._text(row, NAME)
            for row in range(self.rowCount())
            if (item := self.item(row, PROGRAM)) is not None and item.checkState() == Qt.CheckState.Checked
        }
        return checked | (self._programs - self.listed)

    def _text(self, row: int, column: int) -> str:
        item = self.item(row, column)
        return "" if item is None else item.text()
