"""The start page and the workspaces look as their reference pictures do."""

import shutil
import time

import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

from raterscope.widgets import theme
from tests.app.driving import idle, open_study, press
from tests.pictures.comparing import check, fits, store_reference
from tests.waiting import LONG

SETTLED = 1000
"""Milliseconds until nothing is drawn any more, before a picture is stored."""
PATIENCE = LONG / 1000
"""Seconds until a picture that does not look as its reference has failed."""


def picture(window):
    """Take a picture of the window without a blinking cursor."""
    image = window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    size = image.width(), image.height()
    return Image.frombytes("RGB", size, bytes(image.constBits()), "raw", "RGB", image.bytesPerLine())


@pytest.fixture
def compared(request, tmp_path, qtbot, qapp):
    """Compare a window in both themes with its references, or store these if `--store-pictures` says so."""

    def compare(window, screen):
        for name, kind in (("dark", theme.DARK), ("light", theme.LIGHT)):
            theme.apply_theme(qapp, kind)
            idle(window, qtbot)
            compare_one(window, f"{screen}-{name}")

    def compare_one(window, name):
        if request.config.getoption("--store-pictures"):
            qtbot.wait(SETTLED)
            store_reference(picture(window), name)
        ends = time.monotonic() + PATIENCE
        while not fits(shown := picture(window), name) and time.monotonic() < ends:
            qtbot.wait(50)  # outlines are traced in a thread of their own
        check(shown, name, tmp_path)

    return compare


def test_the_start_page_looks_as_before(picture_window, compared, qtbot):
    idle(picture_window, qtbot)
    compared(picture_window, "start")


@pytest.mark.parametrize("kind", ["clicks", "masks", "labels", "pairs", "annotators"])
def test_a_workspace_looks_as_before(kind, picture_window, studies, compared, qtbot, tmp_path):
    window = picture_window
    study = studies("labels" if kind == "annotators" else kind)
    shutil.copytree(study.parent, tmp_path / kind)
    open_study(window, qtbot, tmp_path / kind / study.name)
    if kind == "annotators":
        window.show_workspace(kind)
        idle(window, qtbot)
    press(window, qtbot, Qt.Key.Key_Tab, on=window.workspace.queue.view)
    if kind == "clicks":
        window.workspace.canvas.spot_clicked.emit(6)
        idle(window, qtbot)
    compared(window, kind)
