"""Where another vote is worth most, and whom to ask for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures import count
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import Header, plain_label

__all__ = ["AskLine", "AskList"]

WHO, GAIN = 0.42, 76.0


@dataclass(frozen=True, slots=True)
class AskLine:
    """One more vote.

    Attributes
    ----------
    task : int
    name : str
        The task's.
    who : str
        Whom to ask: "v-5103", "somebody new".
    gain : float
        What the vote is expected to tell of the task, in bits.
    gain_of_new : float
        What that of somebody new is.
    """

    task: int
    name: str
    who: str
    gain: float
    gain_of_new: float


NOTHING = "Fuse first: then this says which task needs another vote most, and whom to ask."


class AskList(QWidget):
    """Votes to ask for, the one that tells most first.

    Signals
    -------
    chosen : int
        The task of a line gone to.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.header = Header("Ask next")
        self.list: LineList[AskLine] = LineList(_AskKind(), "Votes to ask for")
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

    def show_lines(self, lines: Sequence[AskLine], nothing: str = NOTHING) -> None:
        """Show votes to ask for, or say why there are none."""
        self._nothing.setText(nothing)
        self.list.set_lines(lines)
        self.list.setVisible(bool(lines))
        self._nothing.setVisible(not lines)
        self.header.set_aside(f"{count(len(lines), 'vote')}, expected information" if lines else "")

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.list.lines[index.row()].task)


class _AskKind(LineKind[AskLine]):
    def key(self, line: AskLine) -> Hashable:
        return line.task, line.who

    def words(self, line: AskLine) -> str:
        return f"{line.name}: ask {line.who}, {line.gain:.2f} bit"

    def tip(self, line: AskLine) -> str:
        return (
            f"{self.words(line)} expected. Somebody of whom nothing is known would tell "
            f"{line.gain_of_new:.2f} bit."
        )

    def paint_line(self, painter: QPainter, box: QRectF, line: AskLine) -> None:
        look = theme.current()
        painter.setFont(theme.font(theme.BODY))
        middle = box.left() + WHO * box.width()
        right = box.right() - GAIN
        left = QRectF(box.left() + 6, box.top(), middle - box.left() - 14, box.height())
        paint_words(painter, left, line.name, look.text)
        whom = QRectF(middle, box.top(), right - middle - 8, box.height())
        paint_words(painter, whom, f"ask {line.who}", look.second)
        figure = QRectF(right, box.top(), GAIN - 6, box.height())
        paint_words(painter, figure, f"{line.gain:.2f} bit", look.text, side=Qt.AlignmentFlag.AlignRight)
