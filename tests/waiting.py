"""Waiting in tests with Qt: as long as a busy machine needs, and no longer than that."""

import contextlib

import pytest
from pytestqt.qtbot import QtBot

__all__ = ["LONG", "qtbot"]

LONG = 120_000
"""Milliseconds that a test waits at most: on a busy machine a thread may rest for a minute."""

_FIRST_PAUSES = (1, 1, *(2,) * 100)


class PatientBot(QtBot):
    """Looks often at first, and gives up late: no test depends on how fast the machine is."""

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
