"""Timers that Python makes, to ask which of them run.

Qt finds those of a window by making a Python object of each of its 1,800 parts.
"""

from weakref import WeakSet

from PySide6.QtCore import QTimer
from shiboken6 import isValid

_made: WeakSet[QTimer] = WeakSet()
_initialise = QTimer.__init__


def _note(timer, *args, **options):
    _initialise(timer, *args, **options)
    _made.add(timer)


QTimer.__init__ = _note


def running() -> list[QTimer]:
    """Return the timers that run."""
    return [timer for timer in list(_made) if isValid(timer) and timer.isActive()]
