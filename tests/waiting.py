"""Waiting in tests with Qt: as long as a busy machine needs, and no longer than that."""

import contextlib

import pytest
from PySide6.QtCore import QEventLoop, QTimer
from pytestqt.qtbot import QtBot

__all__ = ["LONG", "qtbot"]

LONG = 120_000
"""Milliseconds that a test waits at most: on a busy machine a thread may rest for a minute."""

_FIRST_PAUSES = (1, 1, *(2,) * 100)


class PatientBot(QtBot):
    """Looks often at first, and gives up late: no test depends on how fast the machine is."""

    def __init__(self, request):
        super().__init__(request)
        self._loop, self._pause = QEventLoop(), QTimer(singleShot=True)
        self._pause.timeout.connect(self._loop.quit)

    def wait(self, ms):
        """Wait as the base class does, without making a loop, a timer and connections each time."""
        if self._loop.isRunning():
            super().wait(ms)
        else:
            self._pause.start(ms)
            self._loop.exec()

    def waitUntil(self, callback, *, timeout=LONG):
        for pause in _FIRST_PAUSES:
            with contextlib.suppress(AssertionError):
                if callback() in (None, True):
                    return
            self.wait(pause)
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal, *, timeout=LONG, **more):
        return super().waitSignal(signal, timeout=timeout, **more)

    def waitSignals(self, signals, *, timeout=LONG, **more):
        return super().waitSignals(signals, timeout=timeout, **more)

    def waitActive(self, widget, *, timeout=LONG):
        return super().waitActive(widget, timeout=timeout)

    def waitExposed(self, widget, *, timeout=LONG):
        return super().waitExposed(widget, timeout=timeout)


@pytest.fixture
def qtbot(qapp, request):
    return PatientBot(request)
