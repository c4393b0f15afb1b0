"""Who clicked and who did not, with how far each is to be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_annotator
from raterscope.widgets.parts import plain_tip

__all__ = ["VoterLine", "VoterList"]

ROW_HEIGHT = 24
BAR = 96
Index = QModelIndex | QPersistentModelIndex
LINE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class VoterLine:
    """One annotator's word on a spot.

    Attributes
    ----------
    annotator : int
        Index that gives colour and symbol.
    name : str
    clicked : bool
    reliability : float
        0 to 1, NaN where not known.
    """

    annotator: int
    name: str
    clicked: bool
    reliability: float


class VoterList(QListView):
    """Annotators of one spot.

    Signals
    -------
    chosen : int
        Index of the annotator gone to.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = _VoterModel(self)
        self.setModel(self._model)
        self.setItemDelegate(_VoterDelegate(self))
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Who clicked")
        self.selectionModel().currentChanged.connect(self._on_current)

    def set_lines(self, lines: Sequence[VoterLine]) -> None:
        """Show other lines."""
        self._model.set_lines(tuple(lines))

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self._model.lines[index.row()].annotator)


class _VoterModel(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.lines: tuple[VoterLine, ...] = ()

    def set_lines(self, lines: tuple[VoterLine, ...]) -> None:
        self.beginResetModel()
        self.lines = lines
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line = self.lines[index.row()]
        if role == LINE:
            return line
        if role == Qt.ItemDataRole.DisplayRole:
            return line.name
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            said = "clicked" if line.clicked else "did not click"
            known = f"reliability {line.reliability:.2f}" if math.isfinite(line.reliability) else ""
            words = ", ".join(part for part in (line.name, said, known) if part)
            return plain_tip(words) if role == Qt.ItemDataRole.ToolTipRole else words
        return None


class _VoterDelegate(QStyledItemDelegate):
    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(120, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        line: VoterLine = index.data(LINE)
        look = theme.current()
        box = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(look.raised))
        paint_annotator(painter, QPointF(box.left() + 8, box.center().y()), line.annotator, 4)
        left, right = box.left() + 20, box.right() - 8
        bar_left = right - 36 - BAR
        said = "clicked" if line.clicked else "did not"
        painter.setFont(theme.font())
        metrics = QFontMetrics(painter.font())
        said_left = bar_left - metrics.horizontalAdvance("clicked") - 12
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(look.text))
        name = metrics.elidedText(line.name, Qt.TextElideMode.ElideMiddle, int(said_left - left - 8))
        painter.drawText(QRectF(left, box.top(), said_left - left, box.height()), middle, name)
        painter.setPen(QColor(look.text if line.clicked else look.third))
        painter.drawText(QRectF(said_left, box.top(), 80, box.height()), middle, said)
        bar = QRectF(bar_left, box.center().y() - 3, BAR, 6)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(look.line))
        painter.drawRoundedRect(bar, 3, 3)
        known = math.isfinite(line.reliability)
        if known:
            bar.setWidth(BAR * min(max(line.reliability, 0.0), 1.0))
            painter.setBrush(QColor(theme.annotator_style(line.annotator)[0]))
            painter.drawRoundedRect(bar, 3, 3)
        painter.setPen(QColor(look.text if known else look.third))
        words = f"{line.reliability:.2f}" if known else "–"
        end = Qt.AlignmentFlag.AlignRight | middle
        painter.drawText(QRectF(right - 34, box.top(), 34, box.height()), end, words)
        painter.restore()
