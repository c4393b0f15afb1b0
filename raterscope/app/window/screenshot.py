"""Screenshot of the window with a study, without a display."""

from __future__ import annotations

import os
import time
from pathlib import Path

WIDTH, HEIGHT = 1440, 900
PATIENCE = 60.0  # longest wait in seconds
SETTLED = 0.5  # seconds without work


def take(study: Path, picture: Path) -> None:
    """Open a study in an offscreen window, go to the most disputed item, and save a PNG.

    Raises `RuntimeError`: if the study does not open or the picture cannot be written.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtWidgets import QApplication

    from raterscope.app.window.main_window import MainWindow
    from raterscope.app.window.preferences import apply_chosen_theme
    from raterscope.app.workspaces.labels.workspace import LabelsWorkspace
    from raterscope.app.workspaces.pairs.workspace import PairsWorkspace

    application = QApplication.instance() or QApplication(["raterscope"])
    apply_chosen_theme("dark")
    window = MainWindow(remembers=False)
    window.resize(WIDTH, HEIGHT)
    window.show()
    window.open_paths([study.resolve()])

    def settle() -> None:
        deadline, quiet_since = time.monotonic() + PATIENCE, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - quiet_since < SETTLED:
            application.processEvents()
            if window.busy:
                quiet_since = time.monotonic()
            time.sleep(0.01)

    settle()
    if window.workspace is None:
        raise RuntimeError(window.notice.text or f"{study.name} did not open")
    if isinstance(window.workspace, PairsWorkspace):
        window.workspace.bias_review.go(1)
    elif not isinstance(window.workspace, LabelsWorkspace):  # which begins with the most disputed task
        window.workspace.reviewing.next_disputed()
    settle()
    saved = window.grab().save(str(picture))
    window.close()
    if not saved:
        raise RuntimeError(f"{picture} could not be written")
