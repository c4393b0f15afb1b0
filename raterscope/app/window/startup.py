"""Start of the program with a window: from its application until the window is closed."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer, qInstallMessageHandler
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QWidget

from raterscope import __version__, resources
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.jobs import Job, Jobs
from raterscope.app.window import preferences
from raterscope.app.window.main_window import MainWindow
from raterscope.app.window.preferences import SystemThemeFollower, apply_chosen_theme
from raterscope.app.workspaces.catalogue import WORKSPACES

__all__ = ["SWITCH_SECONDS", "main", "prepare_algorithms", "share_heaps"]


SWITCH_SECONDS = 0.0005
HEAPS = 2
_HEAPS_AT_MOST = -8
"""The parameter's number in glibc's malloc.h."""


def main(paths: Sequence[Path] = ()) -> int:
    """Show the window and work until it is closed; gives the exit status.

    Raises
    ------
    InputError
        When there is no display that Qt can open.
    """
    share_heaps()
    application = _make_application()
    application.setApplicationName("Raterscope")
    application.setApplicationVersion(__version__)
    application.setWindowIcon(QIcon(str(Path(resources.__path__[0]) / "icons" / "raterscope.svg")))
    apply_chosen_theme(preferences.chosen_theme())
    SystemThemeFollower(application)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    window = MainWindow()
    # Beside a thread at work, Qt's own calls would each wait ten times as long to come back to Python.
    sys.setswitchinterval(SWITCH_SECONDS)
    _FirstPicture(window, partial(_go_on, window, [path.resolve() for path in paths]))
    window.show()
    return application.exec()


def share_heaps() -> None:
    """Let all threads share two heaps: of eight for each core, as glibc makes, most is gaps in the end."""
    allocator = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if allocator is not None:
        allocator(_HEAPS_AT_MOST, HEAPS)


class _FirstPicture(QObject):
    """Does something as soon as a window has been painted for the first time: what takes long waits so long.

    A timer does not: what it waits for may come before the screen has asked for the picture.
    """

    def __init__(self, window: QWidget, then: Callable[[], object]) -> None:
        super().__init__(window)
        self._then = then
        window.installEventFilter(self)

    def eventFilter(self, window: QObject, event: QEvent) -> bool:
        """Wait for the picture."""
        if event.type() == QEvent.Type.Paint:
            window.removeEventFilter(self)
            QTimer.singleShot(0, window, self._then)
        return False


def _make_application() -> QApplication:
    """Make the application; where Qt can open no display, it would end the program without an error."""
    chosen = os.environ.get("QT_QPA_PLATFORM", "")
    on_screen = sys.platform == "linux" and chosen in ("", "xcb", "wayland")
    if not on_screen:
        return QApplication(sys.argv[:1])
    first = chosen or ("wayland;xcb" if os.environ.get("WAYLAND_DISPLAY") else "xcb")
    os.environ["QT_QPA_PLATFORM"] = f"{first};offscreen"
    qInstallMessageHandler(lambda *_: None)  # Qt's own lines about the display: one sentence says it
    application = QApplication(sys.argv[:1])
    qInstallMessageHandler(None)
    if application.platformName() == "offscreen":
        raise InputError(
            "Qt cannot open the display; is it there, and are the libraries that `scripts/environment` lists?"
        )
    return application


def _go_on(window: MainWindow, paths: Sequence[Path]) -> None:
    """Load what a study needs, and not only when one is opened; then do what was wanted from the start.

    It takes half a second and more, for which the window would not answer: a thread of its own does it. None
    of those modules makes an object of Qt when it is loaded.
    """
    loading = window.jobs.start("Loading", _load, quiet=True)
    for over in (loading.finished, loading.failed):  # what cannot be loaded is told when it is wanted
        over.connect(partial(_begin, window, paths))


def _load(watch: Watch) -> None:
    for done, workspace in enumerate(WORKSPACES.values()):
        watch(done / len(WORKSPACES), "loading")
        workspace.load()
    import numpy.ma  # noqa: F401 - which NumPy loads by itself when it first sorts out equal values


def _begin(window: MainWindow, paths: Sequence[Path], _loaded: object) -> None:
    # All of that stays for good: looking through it for garbage again and again would hold the window up.
    gc.freeze()
    if paths:
        window.open_paths(paths)
    else:
        window.session_restore.offer()
    if QApplication.platformName() != "offscreen":  # tests and pictures end before it would be of use
        prepare_algorithms(window.jobs)


def prepare_algorithms(jobs: Jobs) -> Job | None:
    """Compile all algorithms in the background, on the first start; None if they are compiled."""
    from raterscope.app.compiled import is_prepared, prepare
    from raterscope.app.workers import processors

    if is_prepared():
        return None
    work = partial(prepare, jobs=max(1, processors() - 1), gently=True)
    return jobs.start("Preparing the algorithms (first start only)", work)
