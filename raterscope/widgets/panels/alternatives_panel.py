"""Alternative consensuses, side by side: what each looks like, and who stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QVBoxLayout, QWidget

from raterscope.text.numbers import percent
from raterscope.widgets import theme
from raterscope.widgets.glyphs import paint_rater
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.card_row import CardRow
from raterscope.widgets.parts import Header, plain_label, plain_tip
from raterscope.widgets.text_size import enlarge, set_lengths

__all__ = ["AlternativeCard", "AlternativesPanel"]

PICTURE, ROW, PAD = 112, 18, 10
WIDTH = 280
MOST_NAMED = 5


NOTHING = "Fuse with more than one consensus to separate raters who drew different structures."


@dataclass(frozen=True, eq=False)
class AlternativeCard:
    """One consensus of several.

    Attributes
    ----------
    title : str
        "Consensus 1".
    weight : float
        Its share of the mixture, 0 to 1.
    members : sequence of (name, number, responsibility)
        The raters, and how far each belongs to it, 0 to 1; those who belong most first.
    picture : QImage, optional
    """

    title: str
    weight: float
    members: Sequence[tuple[str, int, float]]
    picture: QImage | None = None


class AlternativesPanel(QWidget):
    """A card a consensus; a click, or Space, shows it in the views.

    Signals
    -------
    alternative_chosen : int
        Place of the card.
    """

    alternative_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Alternatives")
        self._nothing = plain_label(NOTHING, "second", wrap=True)
        self._group = QButtonGroup(self)
        self._row = CardRow[_Card]()
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addWidget(self._header)
        column.addWidget(self._nothing)
        column.addWidget(self._row, 1)
        column.addStretch(0)
        self.set_alternatives(())

    @property
    def cards(self) -> Sequence[_Card]:
        """The cards shown."""
        return self._row.cards

    def set_alternatives(self, alternatives: Sequence[AlternativeCard]) -> None:
        """Show consensuses; the first is the one in the views."""
        for card in self.cards:
            self._group.removeButton(card)
        self._row.set_cards([_Card(alternative) for alternative in alternatives])
        for place, card in enumerate(self.cards):
            self._group.addButton(card, place)
            card.clicked.connect(partial(self.alternative_chosen.emit, place))
        self.select(0)
        self._nothing.setVisible(not self.cards)
        number = len(self.cards)
        self._header.set_aside(f"{number} consensuses" if number > 1 else "one consensus" if number else "")

    def set_nothing(self, why: str = "") -> None:
        """Say why nothing is seen here; by default what belongs here."""
        self._nothing.setText(why or NOTHING)

    def select(self, place: int) -> None:
        """Mark the consensus that the views show, without a signal."""
        if 0 <= place < len(self.cards):
            self.cards[place].setChecked(True)


class _Card(QAbstractButton):
    def __init__(self, alternative: AlternativeCard) -> None:
        super().__init__()
        self._shown = alternative
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        members = ", ".join(f"{name} {percent(share)}" for name, _, share in alternative.members)
        words = f"{alternative.title}, weight {alternative.weight:.2f}: {members}"
        self.setAccessibleName(words)
        self.setToolTip(plain_tip(words))
        set_lengths(self, width=WIDTH, height=28 + PICTURE + PAD)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        look, shown, box = theme.current(), self._shown, enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        lit = self.isChecked() or self.hasFocus()
        painter.setPen(QPen(QColor(look.accent if lit else look.line), 2 if self.isChecked() else 1))
        painter.setBrush(QColor(look.raised))
        painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
        inner = box.adjusted(PAD, 4, -PAD, -4)
        painter.setFont(theme.font(bold=self.isChecked()))
        top = QRectF(inner.left(), inner.top(), inner.width(), 22)
        paint_words(painter, top.adjusted(0, 0, -44, 0), shown.title, look.text)
        painter.setFont(theme.font(theme.CAPTION))
        paint_words(painter, top, f"{shown.weight:.2f}", look.second, side=Qt.AlignmentFlag.AlignRight)
        picture = QRectF(inner.left(), top.bottom() + 2, PICTURE, PICTURE)
        painter.fillRect(picture, QColor(look.canvas))
        if shown.picture is not None and not shown.picture.isNull():
            size = shown.picture.size().toSizeF().scaled(picture.size(), Qt.AspectRatioMode.KeepAspectRatio)
            place = QRectF(0, 0, size.width(), size.height())
            place.moveCenter(picture.center())
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(place, shown.picture)
        self._paint_members(
            painter, QRectF(picture.right() + 10, picture.top(), WIDTH - PICTURE - 3 * PAD, ROW)
        )

    def _paint_members(self, painter: QPainter, line: QRectF) -> None:
        look, members = theme.current(), self._shown.members
        for name, number, share in members[:MOST_NAMED]:
            belongs = share >= 0.5
            paint_rater(painter, QRectF(line.left(), line.top(), 16, line.height()), number)
            tone = look.text if belongs else look.third
            paint_words(painter, line.adjusted(22, 0, -44, 0), name, tone, elide=Qt.TextElideMode.ElideMiddle)
            paint_words(painter, line, percent(share), tone, side=Qt.AlignmentFlag.AlignRight)
            line = line.translated(0, ROW)
        if len(members) > MOST_NAMED:
            paint_words(painter, line, f"{len(members) - MOST_NAMED} more", look.second)
