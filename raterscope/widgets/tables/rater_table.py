"""Whom to trust with a contour: every rater's weight, bias and agreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QContextMenuEvent, QFont, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QHeaderView,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_rater, rater_colour, readable
from raterscope.widgets.menu import Menu
from raterscope.widgets.painting import paint_bar, paint_words
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.tables.rater_model import FIGURES, RaterModel, RaterRow
from raterscope.widgets.tables.row_keys import RowKeys, keys_in
from raterscope.widgets.tables.rows import ROW, Index, row_view
from raterscope.widgets.text_size import enlarge, pixels, set_lengths

__all__ = ["RaterRow", "RaterTable"]

NOTHING = "Import the masks of several raters to compare them here."
WIDTHS = {
    "weight": 60, "bias mm": 68, "spread": 58, "dof": 44, "Dice": 46, "HD95": 50, "HD": 46, "sens.": 50,
    "spec.": 50,
}  # fmt: skip
NAME_WIDTH, NOTE_WIDTH = 92, 84
EDGES = 24
"""Above, between and below the titles and the raters."""
MOST_IN_SIGHT = 9
"""Of the raters, those whom the table asks room for."""
LAST_KEPT = ("weight", "bias mm", "Dice", "HD95", "spread", "dof", "sens.", "spec.", "HD")
"""The columns by what they are worth: where the room ends, the rest is in the name's tooltip."""


class RaterTable(QWidget):
    """Sort and select; Return shows a rater alone, Space hides, Delete leaves out; the menu does so too.

    Columns that know nothing are not shown, nor those that there is no room for.

    Signals
    -------
    rater_chosen, exclude_requested, include_requested : str
        Name of a rater.
    soloed : str or None
        Whose outline is to be seen alone.
    hidden_changed : set of str
        Whose outlines are hidden.
    """

    rater_chosen = Signal(str)
    exclude_requested = Signal(str)
    include_requested = Signal(str)
    soloed = Signal(object)
    hidden_changed = Signal(object)

    def __init__(self, title: str = "Raters", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header(title)
        self._header.row.setContentsMargins(12, 0, 12, 0)
        self.model = RaterModel(self)
        self.view = row_view(self.model, _RaterDelegate(), title)
        header = self.view.horizontalHeader()
        set_lengths(header, minimumSectionSize=min(WIDTHS.values()))
        header.setSortIndicator(0, Qt.SortOrder.AscendingOrder)
        self.view.setSortingEnabled(True)
        header.setSortIndicatorShown(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._nothing = plain_label(NOTHING, "second", wrap=True)
        self._nothing.setContentsMargins(12, 0, 12, 0)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(self.view)
        self._solo = self._action("Show alone", self.toggle_solo)
        self._hide = self._action("Hide", self.toggle_hidden)
        self._exclude = self._action("Exclude…", self._on_exclude)
        self._everybody = QAction("Show all raters", self)
        self._everybody.triggered.connect(self.show_everybody)
        RowKeys(self.view, self._solo, self._hide, self._exclude, self._has_current)
        self.setFocusProxy(self.view)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._header)
        column.addWidget(self._pages, 1)
        self._quiet = False
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._set_widths)
        self._set_widths()

    def set_rows(self, rows: Sequence[RaterRow], unit: str = "mm") -> None:
        """Show raters, lengths in a unit; order and what is selected stay."""
        current = self.current
        self._quiet = True
        self.model.unit = unit
        self.model.set_rows(tuple(rows))
        self._quiet = False
        self.select(current)
        self._settle()
        self.updateGeometry()

    def set_nothing(self, why: str = "") -> None:
        """Say why nothing is seen here; by default what belongs here."""
        self._nothing.setText(why or NOTHING)

    def select(self, name: str | None) -> None:
        """Select a rater without a signal; None selects none."""
        row = self.model.row_of(name)
        self._quiet = True
        if row < 0:
            self.view.clearSelection()
            self.view.setCurrentIndex(QModelIndex())
        else:
            self.view.selectRow(row)
            self.view.scrollTo(self.model.index(row, 0))
        self._quiet = False

    @property
    def current(self) -> str | None:
        """Name of the rater selected."""
        index = self.view.currentIndex()
        return self.model.at(index.row()).name if index.isValid() else None

    def columns_shown(self) -> list[str]:
        """Give the columns that have something to say and room to say it."""
        return [name for i, name in enumerate(self.model.columns) if not self.view.isColumnHidden(i)]

    def sizeHint(self) -> QSize:
        """Be as high as the raters, to a limit."""
        hint = super().sizeHint()
        if self.model.rows:
            lines = self.view.verticalHeader()
            rows = min(lines.length(), MOST_IN_SIGHT * lines.defaultSectionSize())
            heads = self._header.sizeHint().height() + self.view.horizontalHeader().sizeHint().height()
            hint.setHeight(EDGES + heads + rows)
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many columns as there is room for."""
        super().resizeEvent(event)
        self._settle()
        self.view.scrollTo(self.view.currentIndex())

    OWN_KEYS = keys_in("In the rater table")

    def toggle_solo(self, name: str) -> None:
        """Show a rater's outline alone, or everybody's again."""
        solo = None if self.model.solo == name else name
        self._set_shown(self.model.hidden, solo)
        self.soloed.emit(solo)

    def toggle_hidden(self, name: str) -> None:
        """Hide a rater's outline, or show it again."""
        self._set_shown(self.model.hidden ^ {name}, self.model.solo)
        self.hidden_changed.emit(self.model.hidden)

    def show_everybody(self) -> None:
        """Show all outlines again."""
        self._set_shown(frozenset(), None)
        self.hidden_changed.emit(self.model.hidden)
        self.soloed.emit(None)

    def leave_solo(self) -> None:
        """Show nobody alone any more, without a signal."""
        self._set_shown(self.model.hidden, None)

    def _set_shown(self, hidden: frozenset[str], solo: str | None) -> None:
        self.model.set_shown(hidden, solo)
        self._settle()

    def _has_current(self) -> bool:
        return self.current is not None

    def _action(self, words: str, slot: Callable[[str], object]) -> QAction:
        action = QAction(words, self)
        action.triggered.connect(partial(self._on_action, slot))
        return action

    def _on_action(self, slot: Callable[[str], object], _checked: bool = False) -> None:
        if self.current is not None:
            slot(self.current)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer what Delete does."""
        name = self.current
        if name is None:
            return
        out = self.model.at(self.model.row_of(name)).excluded
        self._solo.setText("Show all raters" if self.model.solo == name else "Show alone")
        self._hide.setText("Show" if name in self.model.hidden else "Hide")
        self._exclude.setText(f"Restore {name}" if out else f"Exclude {name}…")
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self._solo, self._hide, self._exclude])
        if self.model.hidden:
            menu.addAction(self._everybody)
        menu.popup(event.globalPos())

    def _on_exclude(self, name: str) -> None:
        out = self.model.at(self.model.row_of(name)).excluded
        (self.include_requested if out else self.exclude_requested).emit(name)

    def _on_current(self, index: QModelIndex) -> None:
        if not self._quiet and index.isValid():
            self.rater_chosen.emit(self.model.at(index.row()).name)

    def _set_widths(self) -> None:
        for name, width in WIDTHS.items():
            self.view.setColumnWidth(self.model.columns.index(name), pixels(width))
        self._settle()

    def _settle(self) -> None:
        self._pages.setCurrentIndex(int(bool(self.model.rows)))
        hidden = len(self.model.hidden & {row.name for row in self.model.rows})
        aside = f"{hidden} hidden" if hidden else "1-9: show one alone"
        self._header.set_aside(aside if self.model.rows else "")
        name_width = NAME_WIDTH + (NOTE_WIDTH if any(row.note for row in self.model.rows) else 0)
        room = self.width() - pixels(name_width) - self.view.verticalScrollBar().sizeHint().width()
        for name in LAST_KEPT:
            known = self.model.known(name)
            room -= pixels(WIDTHS[name]) if known else 0
            self.view.setColumnHidden(self.model.columns.index(name), not known or room < 0)


class _RaterDelegate(QStyledItemDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: RaterRow = index.data(ROW)
        look, column = theme.current(), (("rater", *FIGURES))[index.column()]
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen:
            painter.fillRect(box, QColor(look.raised))
        font = QFont(theme.font())
        font.setStrikeOut(row.excluded and column == "rater")
        painter.setFont(font)
        model = index.model()
        assert isinstance(model, RaterModel)
        shown = model.shown(row.name)
        tone = look.third if row.excluded or not shown else look.text
        if column == "rater":
            sample = QRectF(box.left() + 12, box.top(), 18, box.height())
            if shown:
                paint_rater(painter, sample, row.number)
            name = box.adjusted(38, 0, -4, 0)
            if row.note:
                paint_words(painter, name, row.note, look.disputed, side=Qt.AlignmentFlag.AlignRight)
                name.setRight(name.right() - NOTE_WIDTH)
            paint_words(painter, name, row.name, tone, elide=Qt.TextElideMode.ElideMiddle)
        elif column == "weight" and row.weight == row.weight:
            bar = QRectF(box.left() + 8, box.center().y() - 3, box.width() - 16, 6)
            hue = look.third if row.excluded else readable(rater_colour(row.number)).name()
            paint_bar(painter, bar, row.weight, hue)
        else:
            room = box.adjusted(2, 0, -8, 0)
            side = Qt.AlignmentFlag.AlignLeft if column == "weight" else Qt.AlignmentFlag.AlignRight
            paint_words(painter, room, str(index.data()), tone, side=side)
        painter.restore()
