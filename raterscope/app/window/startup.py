"""Start of the program: with its window until this is closed, or offscreen for a picture of a study."""

from __future__ import annotations

import gc
import linecache
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QThreadPool, QTimer, qInstallMessageHandler
from PySide6.QtGui import QGradient, QIcon
from PySide6.QtWidgets import QApplication, QWidget

from raterscope import __version__, resources
from raterscope.algorithms.plugins import problems
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.jobs import Job, Jobs, in_turns
from raterscope.app.kinds.registry import KINDS, exports
from raterscope.app.window import preferences
from raterscope.app.window.main_window import MainWindow
from raterscope.app.window.preferences import SystemThemeFollower, apply_chosen_theme
from raterscope.app.workers import limit_heaps, processors
from raterscope.app.workspaces.catalogue import WORKSPACES

SWITCH_SECONDS = 0.0001
REST_MS = 1000
"""Milliseconds reserved for the first item of a study before other workspaces are loaded."""

GARBAGE = 10_000, 1, 50
"""Thresholds of Python's garbage collector.

With its default of 700 new objects, reading a study takes twice as long. With its default of ten, collections
of older objects stop the window for 40 ms while a thread loads the compiler.
"""


def main(paths: Sequence[Path] = ()) -> int:
    """Show the window until it is closed, and return the exit status.

    Raises `InputError` if Qt cannot open a display.
    """
    limit_heaps()
    application = _make_application()
    application.setApplicationName("Raterscope")
    application.setApplicationVersion(__version__)
    application.setWindowIcon(QIcon(str(Path(resources.__path__[0]) / "icons" / "raterscope.svg")))
    preferences.apply_names()
    apply_chosen_theme(preferences.chosen_theme())
    SystemThemeFollower(application)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    window = MainWindow()
    prioritise_window()
    _FirstPicture(window, partial(_go_on, window, [path.resolve() for path in paths]))
    window.show()
    return application.exec()


def prioritise_window() -> None:
    """Keep the window responsive while threads work."""
    # Otherwise each call from Qt would wait 50 times as long to return to Python.
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*GARBAGE)


class _FirstPicture(QObject):
    """Event filter that calls a function after a window was painted for the first time.

    A timer does not: it may fire before the screen requests the picture.
    """

    def __init__(self, window: QWidget, on_done: Callable[[], object]) -> None:
        super().__init__(window)
        self._then = on_done
        window.installEventFilter(self)

    def eventFilter(self, window: QObject, event: QEvent) -> bool:
        """Wait for the first paint event."""
        if event.type() == QEvent.Type.Paint:
            window.removeEventFilter(self)
            QTimer.singleShot(0, window, self._then)
        return False


def _make_application() -> QApplication:
    """Create the application; if Qt can open no display, raise instead of aborting."""
    chosen = os.environ.get("QT_QPA_PLATFORM", "")
    on_screen = sys.platform == "linux" and chosen in ("", "xcb", "wayland")
    if not on_screen:
        return QApplication(sys.argv[:1])
    first = chosen or ("wayland;xcb" if os.environ.get("WAYLAND_DISPLAY") else "xcb")
    os.environ["QT_QPA_PLATFORM"] = f"{first};offscreen"
    qInstallMessageHandler(
        lambda *_: None
    )  # hide Qt's messages about the display: the error below replaces them
    application = QApplication(sys.argv[:1])
    qInstallMessageHandler(None)
    if application.platformName() == "offscreen":
        raise InputError(
            "Qt cannot open the display. Check that it exists and that the libraries are installed that "
            "`scripts/environment` lists."
        )
    return application


def _go_on(window: MainWindow, paths: Sequence[Path]) -> None:
    """Offer the last session, load in a thread the modules that open files, then open the paths.

    None of these modules creates a Qt object on import.
    """
    if not paths:
        window.session_restore.offer()
    loading = window.jobs.start("Loading", _load_opening, quiet=True)
    for over in (loading.finished, loading.failed):  # a failure is reported when the module is needed
        over.connect(partial(_begin, window, paths))


def _load_opening(_watch: Watch) -> None:
    """Load the modules that open a study, import files, and list exports."""
    import numpy.ma  # noqa: F401 - NumPy imports it at the first np.unique

    import raterscope.app.annotators.writing
    import raterscope.app.contents
    import raterscope.app.import_preview
    import raterscope.app.importing
    import raterscope.app.study.new_study  # noqa: F401

    exports()


def _begin(window: MainWindow, paths: Sequence[Path], _loaded: object) -> None:
    import raterscope.app.window.import_reading  # noqa: F401 - has dialogs, see `WorkspaceKind.load_in_steps`

    if paths:
        window.open_paths(paths)
    QTimer.singleShot(REST_MS if paths else 0, window, partial(_load_rest, window))


def _load_rest(window: MainWindow) -> None:
    """Load the workspaces once nothing else runs, because opening a study has priority."""
    if window.busy:
        QTimer.singleShot(REST_MS, window, partial(_load_rest, window))
        return
    loading = window.jobs.start("Loading", load_libraries, quiet=True)
    for over in (loading.finished, loading.failed):
        over.connect(lambda _: in_turns(load_workspaces(), window, partial(_on_loaded, window)))


def load_libraries(watch: Watch) -> None:
    """Import the modules without Qt that the workspaces need; in any thread."""
    _load_opening(watch)
    for done, workspace in enumerate(WORKSPACES.values()):
        watch(done / len(WORKSPACES), "loading")
        workspace.load_libraries()
    for kind in KINDS.values():  # plugins are loaded when a catalogue is read
        for catalogue in kind.catalogues:
            len(catalogue.algorithms)
    import scipy.special  # noqa: F401 - SciPy imports it at the first interval


def load_workspaces() -> Iterator[None]:
    """Import the modules of all workspaces, a few in each step; only in the GUI thread."""
    for workspace in WORKSPACES.values():
        yield from workspace.load_in_steps()
    import raterscope.app.page.pdf  # noqa: F401 - has PySide make the classes that it needs

    yield
    QGradient.Preset.NumPresets  # noqa: B018 - PySide makes its enumeration at the first QPainter.fillRect
    linecache.clearcache()  # PySide reads the source of every module: 30 MB


def _on_loaded(window: MainWindow) -> None:
    # These objects stay alive: repeated searches for garbage among them would block the window.
    gc.freeze()
    if sentences := problems():
        window.notice.show_error(" ".join(sentences))
    if QApplication.platformName() != "offscreen":  # tests and pictures end too early
        prepare_algorithms(window.jobs)


def prepare_algorithms(jobs: Jobs) -> Job | None:
    """Compile all algorithms in the background, on the first start; None if they are compiled already."""
    from raterscope.app.compiled import is_prepared, prepare

    if is_prepared():
        return None
    work = partial(prepare, jobs=max(1, processors() - 1), low_priority=True)
    return jobs.start("Compiling the algorithms (once after installation)", work, background=True)


WIDTH, HEIGHT = 1440, 900
PATIENCE = 60.0  # maximum wait in seconds
SETTLED = 0.2  # seconds without work


def take(study: Path, picture: Path) -> None:
    """Open a study in an offscreen window, go to the most disputed item, and save a PNG.

    Raises `RuntimeError` if the study does not open or the picture cannot be written.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from raterscope.app.workspaces.labels.workspace import LabelsWorkspace
    from raterscope.app.workspaces.pairs.workspace import PairsWorkspace

    application = QApplication.instance()
    if application is None:
        application = QApplication(["raterscope"])
        apply_chosen_theme("dark")
    window = MainWindow(remembers=False)
    window.resize(WIDTH, HEIGHT)
    window.show()
    window.open_paths([study.resolve()])

    def settle() -> None:
        deadline, quiet_since = time.monotonic() + PATIENCE, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - quiet_since < SETTLED:
            application.processEvents()
            if window.busy or any(pool.activeThreadCount() for pool in window.findChildren(QThreadPool)):
                quiet_since = time.monotonic()
            time.sleep(0.01)

    settle()
    if window.workspace is None:
        raise RuntimeError(window.notice.text or f"{study.name} did not open")
    if isinstance(window.workspace, PairsWorkspace):
        window.workspace.bias_review.go(1)
    elif not isinstance(window.workspace, LabelsWorkspace):  # labels begin with the most disputed task anyway
        window.workspace.reviewing.next_disputed()
    settle()
    saved = window.grab().save(str(picture))
    window.close()
    if not saved:
        raise RuntimeError(f"{picture} could not be written")
