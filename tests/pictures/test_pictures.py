"""The start page and the four workspaces look as their reference pictures do."""

import io
import shutil

import pytest
from PIL import Image
from PySide6.QtCore import QBuffer, QIODevice, Qt

from tests.app.driving import idle, open_study, press
from tests.pictures.comparing import check, store_reference


def picture(window):
    """Take a picture of the window without a blinking cursor."""
    data = QBuffer()
    data.open(QIODevice.OpenModeFlag.WriteOnly)
    window.grab().toImage().save(data, "PNG")
    return Image.open(io.BytesIO(data.data().data())).convert("RGB")


@pytest.fixture
def compared(request, tmp_path):
    """Compare a window with its reference, or store it as the reference if `--store-pictures` says so."""

    def compare(window, name):
        taken = picture(window)
        if request.config.getoption("--store-pictures"):
            store_reference(taken, name)
        check(taken, name, tmp_path)

    return compare


def test_the_start_page_looks_as_before(picture_window, compared, qtbot):
    window, theme = picture_window
    idle(window, qtbot)
    compared(window, f"start-{theme}")


@pytest.mark.parametrize("kind", ["clicks", "masks", "labels", "pairs"])
def test_a_workspace_looks_as_before(kind, picture_window, studies, compared, qtbot, tmp_path):
    window, theme = picture_window
    study = studies(kind)
    shutil.copytree(study.parent, tmp_path / kind)
    open_study(window, qtbot, tmp_path / kind / study.name)
    press(window, qtbot, Qt.Key.Key_Tab, on=window.workspace.queue.view)
    if kind == "clicks":
        window.workspace.canvas.spot_clicked.emit(6)
        idle(window, qtbot)
    compared(window, f"{kind}-{theme}")
