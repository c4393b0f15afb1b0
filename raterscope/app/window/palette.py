"""The palette of commands: a few letters, and what they mean is done."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QFontMetrics, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QLineEdit, QStyle, QVBoxLayout, QWidget

from raterscope.app.window.commands import Command
from raterscope.widgets import theme
from raterscope.widgets.key_help import cap_width, paint_key
from raterscope.widgets.names import Typed
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import pixels, set_lengths

__all__ = ["Palette"]

WIDTH, ROWS, FROM_TOP = 640, 12, 64
MOST = 100
"""Lines shown at once: whoever wants others types another letter."""
STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: ROWS, Qt.Key.Key_PageUp: -ROWS}


class Palette(QFrame):
    """A line to type in above what it finds, over the middle of a window; it goes when it is left.

    Parameters
    ----------
    commands : sequence of Command
    window : QWidget
    """

    def __init__(self, commands: Sequence[Command], window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName("Commands")
        theme.set_role(self, "popover")
        self._window = window
        self._commands = [one for one in commands if one.possible]
        self._texts = [f"{one.words} {one.where}".casefold() for one in self._commands]
        self._came_from = QApplication.focusWidget()
        self.line = QLineEdit()
        self.line.setPlaceholderText("A command, an image, an annotator, a run, a page of the guide")
        self.line.setAccessibleName("Search commands, images, annotators, runs and guide pages")
        self._kind = _CommandKind()
        self.view: LineList[Command] = LineList(self._kind, "Matches")
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._nothing = plain_label("No matches", "second")
        self._nothing.setContentsMargins(8, 4, 8, 4)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        for part in (self.line, self.view, self._nothing):
            column.addWidget(part)
        self.line.textChanged.connect(self._find)
        self.line.installEventFilter(self)
        self.view.clicked.connect(self._do)
        self._find("")
        window.installEventFilter(self)
        self._place()
        self.show()
        self.raise_()
        self.line.setFocus()

    @property
    def chosen(self) -> Command | None:
        """What Return would do."""
        row = self.view.currentIndex().row()
        return self.view.lines[row] if row >= 0 else None

    def _find(self, text: str) -> None:
        typed = Typed(text)
        found = typed.best(self._texts, MOST)
        self._kind.typed = typed
        self.view.viewport().update()
        self.view.set_lines([self._commands[place] for place in found])
        self.view.setVisible(bool(found))
        self._nothing.setVisible(not found)
        if found:
            self.view.setCurrentIndex(self.view.model().index(0, 0))
            self.view.scrollToTop()
        self._place()

    def _place(self) -> None:
        window = self._window
        rows = min(ROWS, len(self.view.lines))
        set_lengths(self.view, height=rows * self._kind.height + 2 * self.view.frameWidth())
        width = min(pixels(WIDTH), window.width() - 32)
        self.setGeometry((window.width() - width) // 2, FROM_TOP, width, self.sizeHint().height())

    def _do(self) -> None:
        chosen = self.chosen
        self.leave()
        if chosen is not None:
            chosen.do()

    def leave(self) -> None:
        """Go, and give the keys back to where they were."""
        came_from, self._came_from = self._came_from, None
        self.line.removeEventFilter(self)
        self.close()
        if came_from is not None and came_from.isVisible():
            came_from.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Walk with the arrows while one types; go when the line is left; stay in the middle."""
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._on_key(Qt.Key(event.key()))
        if watched is self.line and isinstance(event, QFocusEvent) and event.lostFocus():
            if event.reason() not in (
                Qt.FocusReason.PopupFocusReason,
                Qt.FocusReason.ActiveWindowFocusReason,
            ):
                self._came_from = None
                self.leave()
        elif watched is self._window and isinstance(event, QResizeEvent):
            self._place()
        return super().eventFilter(watched, event)

    def _on_key(self, key: Qt.Key) -> bool:
        if key in STEPS:
            last = len(self.view.lines) - 1
            row = min(max(self.view.currentIndex().row() + STEPS[key], 0), last)
            self.view.setCurrentIndex(self.view.model().index(row, 0))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._do()
        elif key == Qt.Key.Key_Escape:
            self.leave()
        else:
            return key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)
        return True


class _CommandKind(LineKind[Command]):
    height = 30
    typed = Typed("")

    def words(self, line: Command) -> str:
        keys = f", {line.keys}" if line.keys else ""
        return f"{line.words}, {line.where}{keys}"

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        super().paint_ground(painter, box, state)
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(QRectF(box.left(), box.top(), 3, box.height()), QColor(theme.current().accent))

    def paint_line(self, painter: QPainter, box: QRectF, line: Command) -> None:
        look, right = theme.current(), box.right() - 8
        for key in reversed(line.keys.split(", ") if line.keys else []):
            width = cap_width(key)
            paint_key(painter, QRectF(right - width, box.center().y() - 11, width, 22), key)
            right -= width + 6
        painter.setFont(theme.font(theme.CAPTION))
        where = QFontMetrics(painter.font()).horizontalAdvance(line.where) + 12
        side = QRectF(right - where, box.top(), where, box.height())
        painter.setPen(QColor(look.third))
        painter.drawText(side, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignHCenter, line.where)
        painter.setFont(theme.font())
        room = box.adjusted(12, 0, side.left() - box.right() - 8, 0)
        paint_words(painter, room, line.words, look.text)
        self._underline(painter, room, line.words)

    def _underline(self, painter: QPainter, room: QRectF, words: str) -> None:
        """Underline the letters that were typed, as far as they are in sight."""
        metrics = QFontMetrics(theme.font())
        under = room.center().y() + metrics.ascent() / 2 + 3
        painter.setPen(QColor(theme.current().accent))
        for place in self.typed.places(words):
            left = room.left() + metrics.horizontalAdvance(words[:place])
            right = room.left() + metrics.horizontalAdvance(words[: place + 1])
            if right <= room.right():
                painter.drawLine(round(left), round(under), round(right) - 1, round(under))
