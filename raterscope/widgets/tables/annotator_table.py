"""Whom to trust: every annotator with what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QLineEdit, QVBoxLayout, QWidget

from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.menu import Menu
from raterscope.widgets.parts import Header
from raterscope.widgets.tables.annotator_delegate import AnnotatorDelegate
from raterscope.widgets.tables.annotator_model import COLUMNS, AnnotatorModel, AnnotatorRow
from raterscope.widgets.tables.row_keys import RowKeys, keys_in
from raterscope.widgets.tables.rows import row_view
from raterscope.widgets.text_size import pixels, set_lengths

__all__ = ["AnnotatorRow", "AnnotatorTable"]

WIDTHS = {"annotator": 104, "clicks": 76, "by image": 92, "weight": 120}
NARROWEST = 76


class AnnotatorTable(QWidget):
    """Sort, filter, solo, hide, exclude, down-weigh.

    Return shows one annotator alone, Space hides or shows, Delete excludes or takes back; the menu says so.

    Signals
    -------
    soloed : int or None
    hidden_changed : set of int
    exclude_requested, weigh_requested, include_requested : int
    selected : int or None
    """

    soloed = Signal(object)
    hidden_changed = Signal(object)
    exclude_requested = Signal(int)
    weigh_requested = Signal(int)
    include_requested = Signal(int)
    selected = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Annotators")
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter")
        self.filter.setClearButtonEnabled(True)
        set_lengths(self.filter, minimumWidth=70)
        set_lengths(self.filter, maximumWidth=160)
        self.filter.setAccessibleName("Filter annotators by name or reason")
        self._header.row.insertWidget(1, self.filter)
        self.model = AnnotatorModel(self)
        self.view = row_view(self.model, AnnotatorDelegate(), "Annotators")
        header = self.view.horizontalHeader()
        set_lengths(header, minimumSectionSize=NARROWEST)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSortIndicator(COLUMNS.index("clicks"), Qt.SortOrder.DescendingOrder)
        self.view.setSortingEnabled(True)
        header.setSortIndicatorShown(False)  # the head of the column says it
        for column, name in enumerate(COLUMNS):
            if name not in WIDTHS:
                header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._on_menu)
        self.setFocusProxy(self.view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        top = QHBoxLayout()
        top.setContentsMargins(12, 8, 12, 0)
        top.addWidget(self._header)
        layout.addLayout(top)
        layout.addWidget(self.view, 1)
        self._quiet = False
        self._make_actions()
        self.filter.textChanged.connect(self._on_filter)
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._set_widths)
        self._set_widths()
        self._settle()

    def _set_widths(self) -> None:
        for name, width in WIDTHS.items():
            self.view.setColumnWidth(COLUMNS.index(name), pixels(width))

    def set_rows(self, rows: Sequence[AnnotatorRow]) -> None:
        """Show annotators; order, filter and what is selected stay."""
        self._keeping_selection(lambda: self.model.set_rows(tuple(rows)))

    def select(self, annotator: int | None, other: int | None = None) -> None:
        """Select an annotator without a signal, and another to be compared with."""
        self._quiet = True
        row = -1 if annotator is None else self.model.row_of(annotator)
        if row < 0:
            self.view.clearSelection()
            self.view.setCurrentIndex(QModelIndex())
        else:
            self.view.selectRow(row)
            self.view.scrollTo(self.model.index(row, 0))
            if other is not None and (beside := self.model.row_of(other)) >= 0:
                flags = QItemSelectionModel.SelectionFlag
                self.view.selectionModel().select(self.model.index(beside, 0), flags.Select | flags.Rows)
        self._quiet = False

    def set_shown(self, hidden: set[int], solo: int | None) -> None:
        """Say who is hidden or alone, without a signal."""
        self.model.set_shown(frozenset(hidden), solo)
        self._settle()

    @property
    def current(self) -> int | None:
        """The annotator selected."""
        index = self.view.currentIndex()
        return self.model.at(index.row()).index if index.isValid() else None

    def toggle_solo(self, annotator: int) -> None:
        """Show an annotator alone, or everybody again."""
        solo = None if self.model.solo == annotator else annotator
        self.set_shown(set(self.model.hidden), solo)
        self.soloed.emit(solo)

    def toggle_hidden(self, annotator: int) -> None:
        """Hide an annotator's clicks, or show them again."""
        hidden = set(self.model.hidden) ^ {annotator}
        self.set_shown(hidden, self.model.solo)
        self.hidden_changed.emit(hidden)

    OWN_KEYS = keys_in("In the annotator table")

    def _make_actions(self) -> None:
        self._solo = QAction("Show alone", self)
        self._hide = QAction("Hide", self)
        self._exclude = QAction("Exclude…", self)
        self._weigh = QAction("Down-weight…", self)
        self._fully = QAction("Restore annotator", self)
        self._everybody = QAction("Show all annotators", self)
        self._solo.triggered.connect(self._on_solo)
        self._hide.triggered.connect(self._on_hide)
        self._exclude.triggered.connect(self.exclude_current)
        self._weigh.triggered.connect(self._on_weigh)
        self._fully.triggered.connect(self._on_fully)
        self._everybody.triggered.connect(self._on_everybody)
        RowKeys(self.view, self._solo, self._hide, self._exclude, self._has_current)

    def _has_current(self) -> bool:
        return self.current is not None

    def _on_menu(self, place: QPoint) -> None:
        row = self.view.indexAt(place)
        if row.isValid():
            self.view.selectRow(row.row())
        annotator = self.current
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if annotator is not None:
            row_of = self.model.at(self.model.row_of(annotator))
            self._solo.setText("Show all annotators" if self.model.solo == annotator else "Show alone")
            self._hide.setText("Show clicks" if annotator in self.model.hidden else "Hide clicks")
            self._exclude.setText("Restore annotator" if row_of.excluded else "Exclude…")
            menu.addActions([self._solo, self._hide])
            menu.addSeparator()
            menu.addActions([self._exclude, self._weigh])
            if not row_of.excluded and row_of.part:
                menu.addAction(self._fully)
        if self.model.hidden or self.model.solo is not None:
            menu.addAction(self._everybody)
        menu.popup(self.view.viewport().mapToGlobal(place))

    def _on_solo(self) -> None:
        if self.current is not None:
            self.toggle_solo(self.current)

    def _on_hide(self) -> None:
        if self.current is not None:
            self.toggle_hidden(self.current)

    def exclude_current(self) -> None:
        """Ask for the annotator selected to be excluded, or to be taken back in."""
        annotator = self.current
        if annotator is None:
            return
        if self.model.at(self.model.row_of(annotator)).excluded:
            self.include_requested.emit(annotator)
        else:
            self.exclude_requested.emit(annotator)

    def _on_weigh(self) -> None:
        if self.current is not None:
            self.weigh_requested.emit(self.current)

    def _on_fully(self) -> None:
        if self.current is not None:
            self.include_requested.emit(self.current)

    def _on_everybody(self) -> None:
        self.set_shown(set(), None)
        self.hidden_changed.emit(set())
        self.soloed.emit(None)

    def _on_filter(self, text: str) -> None:
        self._keeping_selection(lambda: self.model.choose(text))

    def _on_current(self, index: QModelIndex) -> None:
        if not self._quiet:
            self.selected.emit(self.model.at(index.row()).index if index.isValid() else None)

    def _keeping_selection(self, change: Callable[[], object]) -> None:
        current = self.current
        self._quiet = True
        change()
        self._quiet = False
        self.select(current)
        self._settle()

    def _settle(self) -> None:
        # Its room belongs to the figures as long as all count fully.
        self.view.setColumnHidden(COLUMNS.index("weight"), not any(row.part for row in self.model.rows))
        by_image = any(row.course is not None for row in self.model.rows)
        self.view.setColumnHidden(COLUMNS.index("by image"), not by_image)
        total, excluded = len(self.model.rows), sum(row.excluded for row in self.model.rows)
        weighed = sum(0 < row.weight < 1 for row in self.model.rows)
        words = [count(total, "annotator")] if total else []
        words += [f"{excluded} excluded"] if excluded else []
        words += [f"{weighed} down-weighted"] if weighed else []
        words += [f"{len(self.model.hidden)} hidden"] if self.model.hidden else []
        words += ["one shown alone"] if self.model.solo is not None else []
        self._header.set_aside(", ".join(words))
