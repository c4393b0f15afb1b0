"""Lengths and areas of the image on screen, and how large its pixels are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QPainter
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.own_keys import OwnKeys
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import ElidedLabel, Header, plain_label
from raterscope.widgets.text_size import set_lengths
from raterscope.widgets.wrapping import WrappingRow

__all__ = ["MeasurePanel", "ShapeLine"]

NOTHING = "Draw a line or an outline on the image. Measurements are listed here and saved."


@dataclass(frozen=True, slots=True)
class ShapeLine:
    """A line or an outline that was measured.

    Attributes
    ----------
    key : hashable
        What it is known by.
    title : str
        "area 3".
    value : str
        "12.4 µm²".
    detail : str
        What else is to be said: "outline 13.1 µm".
    cells : tuple of str
        What a copy of it holds.
    """

    key: Hashable
    title: str
    value: str
    detail: str
    cells: tuple[str, ...]


class MeasurePanel(QWidget):
    """The scale in words, what draws, and what was drawn.

    Signals
    -------
    mode_requested : str
        "scale", "length" or "area".
    unscale_requested
        What the file says of the scale is to hold again.
    shape_chosen : object
        Key of the line gone to; None for none.
    delete_requested : object
    """

    mode_requested = Signal(str)
    unscale_requested = Signal()
    shape_chosen = Signal(object)
    delete_requested = Signal(object)

    OWN_KEYS = OwnKeys(
        "On the selected measurement",
        (
            ("Arrows", "move on the image; with Shift: ten times as far"),
            (".", "select next point"),
            (",", "select previous point"),
            ("Del", "delete"),
            ("Ctrl+C", "copy as a table"),
        ),
    )

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Measure")
        self.scale_words = ElidedLabel("", "second")
        self.scale = KeyButton("L", "set scale", "second", "Draw along a known length and enter it")
        self.unscale = QPushButton("Use the file's scale")
        self.unscale.setToolTip("Remove your scale and use the one in the image file, if any")
        self.length = KeyButton("D", "length", "second", "Draw a line")
        self.area = KeyButton("O", "area", "second", "Draw an outline")
        self.list: LineList[ShapeLine] = LineList(_ShapeKind(), "Measurements")
        set_lengths(self.list, minimumHeight=48)
        self._columns: tuple[str, ...] = ()
        self._nothing = plain_label(NOTHING, "second", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        for part in (
            self._header,
            self.scale_words,
            WrappingRow((self.scale, self.length, self.area, self.unscale), 12, 4),
        ):
            column.addWidget(part)
        column.addWidget(self._nothing, 1)
        column.addWidget(self.list, 1)
        self.setFocusProxy(self.list)
        for button in (self.scale, self.length, self.area):
            button.clicked.connect(self._on_mode)
        self.unscale.clicked.connect(self.unscale_requested)
        self.delete = self._action("Delete", QKeySequence.StandardKey.Delete, self._on_delete)
        self.copy = self._action("Copy as a table", QKeySequence.StandardKey.Copy, self.copy_table)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.show_scale("", can_go_back=False)
        self.show_lines((), ())

    def show_scale(self, words: str, *, can_go_back: bool) -> None:
        """Say how large a pixel is and who says so, and whether the file may have the word again."""
        self.scale_words.setText(words)
        self.unscale.setVisible(can_go_back)

    def show_lines(self, columns: Sequence[str], lines: Sequence[ShapeLine]) -> None:
        """Show what was measured; the columns are those of a copy."""
        self._columns = tuple(columns)
        self.list.set_lines(lines)
        self.list.setVisible(bool(lines))
        self._nothing.setVisible(not lines)
        self._header.set_aside(f"{len(lines):,} on this image" if lines else "")
        self._on_current()

    def choose(self, key: Hashable) -> None:
        """Go to a line; None goes to none."""
        self.list.setCurrentIndex(self.list.index_of(key))

    def copy_table(self) -> None:
        """Copy all lines as a table that a spreadsheet takes."""
        rows = [self._columns, *(line.cells for line in self.list.lines)]
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in rows) + "\n")

    @property
    def current(self) -> ShapeLine | None:
        """The line gone to."""
        row = self.list.currentIndex().row()
        return self.list.lines[row] if 0 <= row < len(self.list.lines) else None

    def _action(self, words: str, keys: QKeySequence.StandardKey, slot: Callable[[], None]) -> QAction:
        action = QAction(words, self.list)
        action.setShortcut(keys)
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(slot)
        self.list.addAction(action)
        return action

    def _on_mode(self) -> None:
        modes = {self.scale: "scale", self.length: "length", self.area: "area"}
        self.mode_requested.emit(next(mode for button, mode in modes.items() if button is self.sender()))

    def _on_current(self, _index: QModelIndex | None = None) -> None:
        current = self.current
        self.delete.setEnabled(current is not None)
        self.shape_chosen.emit(None if current is None else current.key)

    def _on_delete(self) -> None:
        if self.current is not None:
            self.delete_requested.emit(self.current.key)


class _ShapeKind(LineKind[ShapeLine]):
    height = 24

    def key(self, line: ShapeLine) -> Hashable:
        return line.key

    def words(self, line: ShapeLine) -> str:
        return ", ".join(part for part in (line.title, line.value, line.detail) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: ShapeLine) -> None:
        look = theme.current()
        painter.setFont(theme.font())
        third = box.width() / 3
        left = QRectF(box.left() + 6, box.top(), third - 12, box.height())
        paint_words(painter, left, line.title, look.second)
        middle = QRectF(box.left() + 0.75 * third, box.top(), third, box.height())
        paint_words(painter, middle, line.value, look.text, side=Qt.AlignmentFlag.AlignRight)
        painter.setFont(theme.font(theme.CAPTION))
        right = QRectF(middle.right() + 12, box.top(), box.right() - middle.right() - 18, box.height())
        paint_words(painter, right, line.detail, look.third)
