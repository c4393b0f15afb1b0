"""Clock of the reading mode: seconds that a case is on screen while the window is active."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

TICK_MS = 250
SAVED_EVERY = 2.0
"""Seconds after which the time is written."""


class CaseClock(QObject):
    """Measures the time of the case on screen.

    Parameters
    ----------
    active : callable
        Returns whether the reader sees the case now.
    clock : callable
        Returns seconds.

    Signals
    -------
    elapsed : (int, float)
        A position and seconds to add to its time.
    """

    elapsed = Signal(int, float)

    def __init__(
        self, active: Callable[[], bool], parent: QObject, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self._active, self.clock = active, clock
        self._position: int | None = None
        self._since: float | None = None
        self._seconds = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)

    def start(self, position: int) -> None:
        """Measure another case."""
        self.stop()
        self._position = position
        self._timer.start()
        self.tick()

    def stop(self) -> None:
        """Report what was measured, and measure nothing."""
        self.tick()
        self.report()
        self._timer.stop()
        self._position = self._since = None

    def tick(self) -> None:
        """Count the time since the last tick if the case was on screen at both."""
        if self._position is None:
            return
        now = self.clock()
        if self._since is not None:
            self._seconds += now - self._since
        self._since = now if self._active() else None
        if self._seconds >= SAVED_EVERY:
            self.report()

    def report(self) -> None:
        """Report what was measured so far."""
        if self._position is not None and self._seconds > 0:
            self.elapsed.emit(self._position, self._seconds)
        self._seconds = 0.0
