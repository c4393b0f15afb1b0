"""Where another answer is worth most, and whom to ask for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import Header, plain_label

__all__ = ["AskLine", "AskList"]

WHO, GAIN, BARE_GAIN = 0.42, 76.0, 48.0
"""Share of a line for a name; room in pixels for what is gained, with a unit and without."""


@dataclass(frozen=True, slots=True)
class AskLine:
    """One more answer to ask for.

    Attributes
    ----------
    key : hashable
        What a line gone to stands for.
    name : str
        Its name, or an annotator's: "cell-004", "w-0412".
    why : str
        Whom to ask, or why: "ask v-5103", "finds 0.94 of what is there".
    gain : float
        What the answer is expected to bring, in the list's unit.
    more : str
        What else the tooltip tells, a sentence.
    """

    key: Hashable
    name: str
    why: str
    gain: float
    more: str = ""


class AskList(QWidget):
    """Answers to ask for, the one that brings most first.

    Parameters
    ----------
    noun : str
        What is asked for: "vote".
    measure, unit : str
        What it brings and in what: "expected information", "bit"; no unit for a number.
    nothing : str
        What belongs here.

    Signals
    -------
    chosen : object
        Key of a line gone to.
    """

    chosen = Signal(object)

    def __init__(
        self, noun: str, measure: str, unit: str, nothing: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._noun, self._measure, self._empty = noun, measure, nothing
        self.header = Header("Ask next")
        self.list: LineList[AskLine] = LineList(_AskKind(unit), f"{noun.capitalize()}s to ask for")
        self._nothing = plain_label("", "second", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addWidget(self._nothing, 1)
        column.addWidget(self.list, 1)
        self.setFocusProxy(self.list)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.show_lines(())

    def show_lines(self, lines: Sequence[AskLine], nothing: str = "") -> None:
        """Show what to ask for, or say why there is nothing."""
        self._nothing.setText(nothing or self._empty)
        self.list.set_lines(lines)
        self.list.setVisible(bool(lines))
        self._nothing.setVisible(not lines)
        self.header.set_aside(f"{count(len(lines), self._noun)}, {self._measure}" if lines else "")

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.list.lines[index.row()].key)


class _AskKind(LineKind[AskLine]):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def key(self, line: AskLine) -> Hashable:
        return line.key

    def words(self, line: AskLine) -> str:
        return f"{line.name}: {line.why}, {self._gain(line)}"

    def tip(self, line: AskLine) -> str:
        return f"{self.words(line)} expected. {line.more}".strip()

    def paint_line(self, painter: QPainter, box: QRectF, line: AskLine) -> None:
        look = theme.current()
        painter.setFont(theme.font(theme.BODY))
        gain = self._gain(line)
        middle = box.left() + WHO * box.width()
        least = GAIN if self._unit else BARE_GAIN
        right = box.right() - max(least, QFontMetrics(painter.font()).horizontalAdvance(gain) + 14)
        left = QRectF(box.left() + 6, box.top(), middle - box.left() - 14, box.height())
        paint_words(painter, left, line.name, look.text, elide=Qt.TextElideMode.ElideMiddle)
        why = QRectF(middle, box.top(), right - middle - 8, box.height())
        paint_words(painter, why, line.why, look.second)
        figure = QRectF(right, box.top(), box.right() - right - 6, box.height())
        paint_words(painter, figure, gain, look.text, side=Qt.AlignmentFlag.AlignRight)

    def _gain(self, line: AskLine) -> str:
        return f"{line.gain:.2f} {self._unit}".rstrip()
