"""Tour of a workspace: one region after the other, highlighted, with a sentence each."""

from __future__ import annotations

from typing import Any, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QWidget

from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import pixels

_WIDTH, _GAP = 340, 12


_WORDS = (
    (
        "The queue",
        "What to review next, the most disputed first. Tab goes on to the next; what is decided sinks.",
    ),
    (
        "The evidence",
        "All annotations, as large as the window allows. The wheel zooms, a click selects.",
    ),
    (
        "Why",
        "The selected result with its probability and its votes, and the keys that decide. Ctrl+Z undoes.",
    ),
    ("History", "Every decision is saved as it is made. History lists all of them."),
    (
        "Fuse",
        "Press Fuse (F5) to combine all annotations again. Your decisions are kept. F1 explains the view, "
        "Ctrl+K finds every command.",
    ),
)


class Step(NamedTuple):
    """A region with what it is for."""

    region: QWidget
    title: str
    words: str


class Tour(QWidget):
    """Covers the window but for one region; Enter goes on, Esc leaves."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._steps: list[Step] = []
        self._at = 0
        self.box = QWidget(self)
        theme.set_role(self.box, "popover")
        self.box.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.title = plain_label("", "title")
        self.words = plain_label("", wrap=True)
        self.count = plain_label("", "second")
        self.leave_button, self.next_button = QPushButton("Leave"), QPushButton("Next")
        theme.set_role(self.next_button, "primary")
        self.leave_button.clicked.connect(self.leave)
        self.next_button.clicked.connect(self.go_on)
        buttons = horizontal(self.count, STRETCH, self.next_button, self.leave_button, spacing=8)
        vertical(self.title, self.words, buttons, inside=self.box, margins=(16, 12, 16, 12), spacing=8)
        self.hide()
        window.installEventFilter(self)

    def start(self, workspace: Any, bar: QWidget) -> None:
        """Begin with the queue of a workspace."""
        regions = (workspace.queue, workspace.canvas, workspace.evidence, workspace.left_tabs, bar)
        steps = [Step(region, *words) for region, words in zip(regions, _WORDS, strict=True)]
        self._steps = [step for step in steps if step.region.isVisible()]
        self._at = 0
        self.setGeometry(self._window.rect())
        self.show()
        self.raise_()
        self._show_step()

    def go_on(self) -> None:
        """Show the next region, or leave after the last."""
        self._at += 1
        if self._at < len(self._steps):
            self._show_step()
        else:
            self.leave()

    def leave(self) -> None:
        """End the tour."""
        self.hide()
        if self._steps:
            self._steps[0].region.setFocus()
        self._steps = []

    def eventFilter(self, _window: QObject, event: QEvent) -> bool:
        """Follow the size of the window."""
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self.setGeometry(self._window.rect())
            self._place_box()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go on with Enter, Space and Right; leave with Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Right, Qt.Key.Key_Space):
            self.go_on()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Darken everything but the region."""
        if not self._steps:
            return
        with QPainter(self) as painter:
            palette, hole = theme.current(), QRectF(self._region())
            outside = QPainterPath()
            outside.addRect(QRectF(self.rect()))
            outside.addRect(hole)
            painter.fillPath(outside, theme.colour(theme.DARK.window, 150))
            painter.setPen(QPen(QColor(palette.accent), 2))
            painter.drawRect(hole.adjusted(1, 1, -1, -1))

    def _region(self) -> QRect:
        region = self._steps[self._at].region
        return QRect(region.mapTo(self._window, QPoint(0, 0)), region.size()).intersected(self.rect())

    def _show_step(self) -> None:
        step = self._steps[self._at]
        self.title.setText(step.title)
        self.words.setText(step.words)
        self.count.setText(f"{self._at + 1} of {len(self._steps)}")
        self.next_button.setText("Next" if self._at + 1 < len(self._steps) else "Done")
        self.setAccessibleName(f"{step.title}. {step.words}")
        self._place_box()
        self.setFocus()
        self.update()

    def _place_box(self) -> None:
        """Put the words beside the region: to its right, left, below or above, or within it."""
        width = min(pixels(_WIDTH), self.width())
        self.box.setFixedWidth(width)
        self.box.adjustSize()
        height, hole, gap = self.box.height(), self._region(), pixels(_GAP)
        corners = (
            (hole.right() + gap, hole.center().y() - height // 2),
            (hole.left() - gap - width, hole.center().y() - height // 2),
            (hole.center().x() - width // 2, hole.bottom() + gap),
            (hole.center().x() - width // 2, hole.top() - gap - height),
        )
        fits = next(
            (
                (x, y)
                for x, y in corners
                if x >= 0 and y >= 0 and x + width <= self.width() and y + height <= self.height()
            ),
            (hole.center().x() - width // 2, hole.center().y() - height // 2),
        )
        self.box.move(*fits)
