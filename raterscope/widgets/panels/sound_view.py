"""A sound: its waveform, with the position that is played. Space plays and pauses, a click goes there."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QHideEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QShortcut,
)
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton, KeyHelp
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import enlarge, pixels

_HEIGHT, _TICK_MS, _STEP = 140, 40, 5.0


class Player(Protocol):
    """Plays a sound."""

    @property
    def position(self) -> float:
        """Seconds that were played."""

    @property
    def playing(self) -> bool:
        """Return whether the sound is being played."""

    def play(self, start: float) -> None:
        """Play from a time on. Raises OSError if there is no sound device."""

    def pause(self) -> None:
        """Stop where it is."""


class SoundView(QWidget):
    """Waveform of a sound with a key that plays it."""

    KEY_HELP = KeyHelp("On a sound", (("Space", "play, pause"), ("Left, Right", "5 seconds back, on")))

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.wave = _Waveform(self)
        self.button = KeyButton("Space", "play", "accent", "Play or pause the sound")
        self.button.clicked.connect(self.toggle)
        self.words = plain_label("", "second")
        self.problem = plain_label("", "rejected", wrap=True)
        vertical(
            self.wave,
            horizontal(self.button, self.words, STRETCH, spacing=12),
            self.problem,
            inside=self,
            spacing=6,
        )
        QShortcut(QKeySequence(Qt.Key.Key_Space), self, self.toggle)  # of the window, while this is shown
        self._player: Player | None = None
        self._seconds = self._position = 0.0
        self._timer = QTimer(self, interval=_TICK_MS)
        self._timer.timeout.connect(self._follow)
        self.show_sound(None, np.empty((0, 2), dtype=np.float32), 0.0)

    def show_sound(self, player: Player | None, levels: NDArray[np.float32], seconds: float) -> None:
        """Show another sound, or none."""
        self.stop()
        self._player, self._seconds, self._position = player, seconds, 0.0
        self.problem.hide()
        self.wave.show_levels(levels)
        self._show_position()

    def toggle(self) -> None:
        """Play, or pause."""
        player = self._player
        if player is None:
            return
        if player.playing:
            self._position = player.position
            self.stop()
        else:
            self._play(0.0 if self._position >= self._seconds - 0.01 else self._position)

    def stop(self) -> None:
        """Stop playing."""
        self._timer.stop()
        if self._player is not None:
            self._player.pause()
        self.button.set_word("play", "accent", "Play the sound")

    def go_to(self, seconds: float) -> None:
        """Go to a time, and play on if the sound is being played."""
        self._position = min(max(seconds, 0.0), self._seconds)
        if self._player is not None and self._player.playing:
            self._player.pause()
            self._play(self._position)
        self._show_position()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop when another task or view is shown."""
        super().hideEvent(event)
        self.stop()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go back or on with the arrow keys."""
        steps = {Qt.Key.Key_Left: -_STEP, Qt.Key.Key_Right: _STEP}
        if event.key() in steps:
            self.go_to(self._position + steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    @property
    def seconds(self) -> float:
        """Length of the sound."""
        return self._seconds

    def _play(self, start: float) -> None:
        assert self._player is not None
        try:
            self._player.play(start)
        except OSError as error:
            self.problem.setText(f"The sound cannot be played: {error}")
            self.problem.show()
            return
        self.button.set_word("pause", "accent", "Pause the sound")
        self._timer.start()

    def _follow(self) -> None:
        player = self._player
        if player is None:
            return
        self._position = min(player.position, self._seconds)
        if not player.playing:
            self._position = self._seconds
            self.stop()
        self._show_position()

    def _show_position(self) -> None:
        self.words.setText(f"{_clock(self._position)} of {_clock(self._seconds)}")
        self.wave.show_share(self._position / self._seconds if self._seconds else 0.0)
        self.setAccessibleName(f"Sound of {self._seconds:.0f} s")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class _Waveform(QWidget):
    """Levels over time, with a line at the position."""

    def __init__(self, view: SoundView) -> None:
        super().__init__()
        self._view = view
        self._levels = np.empty((0, 2), dtype=np.float32)
        self._share = 0.0
        self.setMinimumHeight(pixels(_HEIGHT))
        self.setAccessibleName("Waveform")

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        return QSize(pixels(400), pixels(_HEIGHT))

    def show_levels(self, levels: NDArray[np.float32]) -> None:
        """Show other levels, lowest and highest by column."""
        self._levels = levels
        self.update()

    def show_share(self, share: float) -> None:
        """Show the position as a share of the length."""
        self._share = share
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the time under the pointer."""
        self._view.go_to(event.position().x() / max(self.width(), 1) * self._view.seconds)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the waveform."""
        with QPainter(self) as painter:
            palette, box = theme.current(), enlarge(painter, self.rect())
            painter.fillRect(box, QColor(theme.DARK.canvas))
            count = len(self._levels)
            if not count:
                return
            middle, half = box.center().y(), box.height() / 2 - 4
            x = np.linspace(box.left(), box.right(), count)
            top, bottom = middle - half * self._levels[:, 1], middle - half * self._levels[:, 0]
            points = [QPointF(*point) for point in zip(x.tolist(), top.tolist(), strict=True)]
            points += [QPointF(*point) for point in zip(x[::-1].tolist(), bottom[::-1].tolist(), strict=True)]
            painter.setPen(QPen(QColor(theme.DARK.accent), 1))
            painter.setBrush(QColor(theme.DARK.accent))
            painter.drawPolygon(QPolygonF(points))
            at = box.left() + self._share * box.width()
            painter.setPen(QPen(QColor(palette.disputed if palette.dark else theme.DARK.disputed), 2))
            painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()))
