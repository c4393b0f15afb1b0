"""Who changed, when and how: a line an annotator."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_annotator
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList

__all__ = ["ChangeLine", "ChangeList"]


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """An annotator who changed.

    Attributes
    ----------
    key : int
        What a line gone to stands for.
    annotator : int
        Gives colour and shape.
    name : str
    when : str
        "vote 241 of 400, 2026-03-01".
    how : str
        "where ring is true: ring 0.88 → 0.34".
    """

    key: int
    annotator: int
    name: str
    when: str
    how: str


class ChangeList(LineList[ChangeLine]):
    """Those who changed, in the order given.

    Signals
    -------
    chosen : int
        Key of the line clicked, or gone to by Return.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_ChangeKind(), "Annotators who changed", parent)
        self.clicked.connect(self._on_chosen)
        self.activated.connect(self._on_chosen)

    def _on_chosen(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.lines[index.row()].key)


class _ChangeKind(LineKind[ChangeLine]):
    height = 40

    def key(self, line: ChangeLine) -> Hashable:
        return line.key

    def words(self, line: ChangeLine) -> str:
        return f"{line.name}, {line.when}: {line.how}"

    def paint_line(self, painter: QPainter, box: QRectF, line: ChangeLine) -> None:
        look = theme.current()
        paint_annotator(painter, QPointF(box.left() + 8, box.top() + 12), line.annotator, 4)
        left, right = box.left() + 20, box.right() - 8
        painter.setFont(theme.font(theme.CAPTION))
        wide = min(QFontMetrics(painter.font()).horizontalAdvance(line.when) + 2.0, 0.65 * (right - left))
        when = QRectF(right - wide, box.top() + 3, wide, 18)
        paint_words(painter, when, line.when, look.second, side=Qt.AlignmentFlag.AlignRight)
        how = QRectF(left, box.top() + 20, right - left, 16)
        paint_words(painter, how, line.how, look.second)
        painter.setFont(theme.font())
        name = QRectF(left, box.top() + 3, right - wide - left - 8, 18)
        paint_words(painter, name, line.name, look.text, elide=Qt.TextElideMode.ElideMiddle)
