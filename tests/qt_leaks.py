"""A test that leaves a widget, a thread or a running timer behind fails; theme and text size are restored.

So does one that defines a class of Qt outside the window's thread, see `WorkspaceKind.load_in_steps`.
"""

import builtins
import gc
import threading
import time

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QApplication

from raterscope.widgets import theme
from raterscope.widgets.theme import set_text_size, text_size
from tests.timers import running
from tests.waiting import LONG

_elsewhere: list[str] = []
"""Classes of Qt that another thread than the window's defined."""


@pytest.fixture(scope="session", autouse=True)
def classes_are_watched():
    define = builtins.__build_class__

    def watched(*args, **options):
        defined = define(*args, **options)
        if isinstance(defined, type(QObject)) and threading.current_thread() is not threading.main_thread():
            _elsewhere.append(defined.__name__)
        return defined

    builtins.__build_class__ = watched
    yield
    builtins.__build_class__ = define


def _settle() -> None:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()


def _widgets() -> set[str]:
    return {
        f"{type(widget).__name__} {widget.objectName()!r} at {id(widget):#x}"
        for widget in QApplication.topLevelWidgets()
    }


def _timers() -> set[str]:
    return {
        f"timer of {timer.interval()} ms, parent {timer.parent()!r}, at {id(timer):#x}" for timer in running()
    }


def _look(qapp):
    return theme.current(), text_size(), qapp.styleSheet(), qapp.font(), qapp.palette()


def _restore(qapp, look) -> None:
    """Take off a theme that a test put on: a window is made in half of the time without a style sheet."""
    if look[:3] == _look(qapp)[:3]:
        return
    _settle()  # otherwise all widgets of the test are styled once more
    kind, size, sheet, font, palette = look
    set_text_size(size)
    theme.apply_theme(qapp, kind)
    qapp.setStyleSheet(sheet)
    qapp.setFont(font)
    qapp.setPalette(palette)


@pytest.fixture(autouse=True)
def nothing_is_left(request):
    """Compare widgets, threads and timers before and after a test with Qt; others take less than looking."""
    if "qapp" not in request.fixturenames:
        yield
        return
    qapp = request.getfixturevalue("qapp")
    _settle()
    # What is there now stays: to look through it again and again took half of the suite's time.
    gc.freeze()
    widgets, timers, threads = _widgets(), _timers(), set(threading.enumerate())
    look = _look(qapp)
    yield
    _restore(qapp, look)
    deadline = time.monotonic() + LONG / 2000
    while time.monotonic() < deadline:
        qapp.processEvents()
        _settle()
        left = [
            *sorted(_widgets() - widgets),
            *sorted(_timers() - timers),
            *(thread.name for thread in set(threading.enumerate()) - threads),
        ]
        if not left:
            assert not _elsewhere, f"defined outside the window's thread: {', '.join(_elsewhere)}"
            return
        time.sleep(0.002)
    pytest.fail("left behind: " + "; ".join(left))
