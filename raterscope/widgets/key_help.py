"""Key caps, and help on keys that a widget handles itself."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.text_size import enlarge, pixels

__all__ = [
    "KeyButton",
    "KeyHelp",
    "cap_width",
    "key_help_in",
    "paint_key",
]


@dataclass(frozen=True, slots=True)
class KeyHelp:
    """Keys of one widget, given by its class attribute ``KEY_HELP``.

    Attributes
    ----------
    where : str
        Scope: "On the image".
    keys : tuple of (str, str)
        Key caps and their actions.
    """

    where: str
    keys: tuple[tuple[str, str], ...]


def key_help_in(parent: QWidget) -> tuple[KeyHelp, ...]:
    """List the key help of all widgets in a parent, each class once, in layout order."""
    key_helps = dict.fromkeys(
        key_help
        for widget in (parent, *parent.findChildren(QWidget))
        if isinstance(key_help := getattr(widget, "KEY_HELP", None), KeyHelp)
    )
    return tuple(key_helps)


GAP = 8
FEWEST_LETTERS = 6  # a word cut to less says nothing that the key does not


def paint_key(painter: QPainter, box: QRectF, key: str, *, enabled: bool = True, lit: bool = False) -> None:
    """Paint one key cap."""
    look = theme.current()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(look.accent if lit else look.line), 1))
    painter.setBrush(QColor(look.raised))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
    painter.setPen(QColor(look.text if enabled else look.third))
    painter.setFont(_key_font(key))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, key)


def cap_width(key: str) -> int:
    """Return the width of a key cap, in unscaled pixels."""
    return max(26, QFontMetrics(_key_font(key)).horizontalAdvance(key) + 14)


class KeyButton(QAbstractButton):
    """Button with a key cap and a word.

    The key is drawn, not bound: the window binds it, so that it works wherever the focus is. While the button
    is checked, key and word are highlighted.

    Parameters
    ----------
    key : str
        Key cap: "A", "Ctrl+Z".
    word : str
        Action: "accept".
    tone : {"accent", "rejected", "second"}
        Colour of the word.
    tip : str
        What it does, in a sentence.
    """

    def __init__(
        self, key: str, word: str, tone: str = "second", tip: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._key, self._word, self._tone = key, word, tone
        self.setText(word)
        self.setAccessibleName(f"{word} ({key})")
        self.set_tip(tip)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def set_tip(self, tip: str) -> None:
        """Set the tooltip, as plain text."""
        self.setToolTip(plain_tip(f"{tip} ({self._key})" if tip else ""))

    def set_word(self, word: str, tone: str, tip: str) -> None:
        """Set the word of the action."""
        self._word, self._tone = word, tone
        self.setText(word)
        self.setAccessibleName(f"{word} ({self._key})")
        self.set_tip(tip)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of key and word."""
        words = QFontMetrics(theme.font()).horizontalAdvance(self._word)
        return QSize(pixels(cap_width(self._key) + GAP + words + 4), pixels(28))

    def minimumSizeHint(self) -> QSize:
        """Return the full size: the button is never cut."""
        return self.sizeHint()

    def changeEvent(self, event: QEvent) -> None:
        """Repaint when enabled or disabled."""
        super().changeEvent(event)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint key and word."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        width, box = cap_width(self._key), enlarge(painter, self.rect())
        lit = self.hasFocus() or self.underMouse() or self.isDown() or self.isChecked()
        paint_key(painter, QRectF(0, (box.height() - 26) / 2, width, 26), self._key,
                  enabled=self.isEnabled(), lit=lit and self.isEnabled())  # fmt: skip
        look = theme.current()
        tones = {"accent": look.accent, "rejected": look.rejected, "second": look.second}
        tone = look.accent if self.isChecked() else tones[self._tone]
        painter.setPen(QColor(tone if self.isEnabled() else look.third))
        painter.setFont(theme.font())
        room = box.adjusted(width + GAP, 0, 0, 0)
        short = QFontMetrics(theme.font()).elidedText(
            self._word, Qt.TextElideMode.ElideRight, int(room.width())
        )
        if short == self._word or len(short) >= FEWEST_LETTERS:
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, short)


def _key_font(key: str) -> QFont:
    return theme.font(theme.BODY if len(key) == 1 else theme.CAPTION, bold=True)
