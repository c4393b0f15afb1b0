"""A few words of which one holds: how a figure is to be read."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.text_size import enlarge, pixels

__all__ = ["ModeSwitch"]


class ModeSwitch(QWidget):
    """The first mode holds until another is chosen, by click or arrow keys.

    Parameters
    ----------
    modes : mapping of str to (str, str)
        Name of every mode, its word and its tooltip.

    Signals
    -------
    chosen : str
        Name of the mode.
    """

    chosen = Signal(str)

    def __init__(self, modes: Mapping[str, tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._group = QButtonGroup(self)
        self._tips = {name: tip for name, (_, tip) in modes.items()}
        self.buttons = {name: _Word(word) for name, (word, _) in modes.items()}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for name, button in self.buttons.items():
            button.setObjectName(name)
            button.setToolTip(plain_tip(self._tips[name]))
            self._group.addButton(button)
            row.addWidget(button)
        next(iter(self.buttons.values())).setChecked(True)
        self._group.buttonToggled.connect(self._on_toggled)

    @property
    def mode(self) -> str:
        """Name of the mode that holds."""
        return next(name for name, button in self.buttons.items() if button.isChecked())

    def set_mode(self, name: str) -> None:
        """Choose a mode, with the signal of a click."""
        self.buttons[name].setChecked(True)

    def set_available(self, name: str, available: bool, why_not: str = "") -> None:
        """Enable or disable a mode, with a reason; the first one replaces a disabled mode."""
        button = self.buttons[name]
        button.setEnabled(available)
        button.setToolTip(plain_tip(self._tips[name] if available else why_not))
        if not available and button.isChecked():
            next(iter(self.buttons.values())).setChecked(True)

    def _on_toggled(self, button: QAbstractButton, on: bool) -> None:
        if on:
            self.chosen.emit(button.objectName())


class _Word(QAbstractButton):
    def __init__(self, word: str) -> None:
        super().__init__()
        self.setText(word)
        self.setCheckable(True)
        self.setAccessibleName(word)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def sizeHint(self) -> QSize:
        words = QFontMetrics(theme.font(theme.CAPTION)).horizontalAdvance(self.text())
        return QSize(pixels(words + 14), pixels(20))

    def paintEvent(self, _event: QPaintEvent) -> None:
        look = theme.current()
        with QPainter(self) as painter:
            box = enlarge(painter, self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(look.accent), 1) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.raised) if self.isChecked() else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)
            tone = look.text if self.isChecked() else look.second if self.isEnabled() else look.line
            painter.setPen(QColor(tone))
            painter.setFont(theme.font(theme.CAPTION))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.text())
