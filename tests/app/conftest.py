"""Tests with Qt: nothing may be left behind, and nothing is remembered from one to the next."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.clicks import Clicks, fuse
from raterscope.app import importing
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.study import Study
from raterscope.app.window.main_window import MainWindow
from raterscope.app.workspaces.catalogue import WORKSPACES
from tests.app.bringing import bring
from tests.app.commands import refusal
from tests.app.driving import LONG, idle, open_study
from tests.qt_leaks import nothing_is_left

__all__ = ["bring", "nothing_is_left", "refusal"]

PARASITES = ((40, 40), (120, 50), (60, 130), (150, 150), (200, 90))
DISPUTED = (190, 30)
ANNOTATORS = 12


@pytest.fixture(autouse=True)
def forgetful(tmp_path):
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings"))


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse once, so that no test waits for the compiler."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(50, 2, 60), rng.normal(50, 2, 60)
    names = tuple(str(who) for who in range(6))
    fuse(Clicks(x, y, np.arange(60) % 6, names, (0, 0, 100, 100)))


@pytest.fixture
def crowd_files(tmp_path) -> list[Path]:
    """Two small images, a table of twelve annotators' clicks on them, and the truth."""
    folder = tmp_path / "input"
    folder.mkdir()
    rng = np.random.default_rng(5)
    lines = ["annotator,image,x,y"]
    files = []
    for name in ("one.png", "two.png"):
        Image.fromarray(rng.integers(150, 200, (180, 240, 3), dtype=np.uint8)).save(folder / name)
        files.append(folder / name)
        for who in range(ANNOTATORS):
            marked = [*PARASITES, *((DISPUTED,) if who < 4 else ())]
            for x, y in marked:
                dx, dy = rng.normal(0, 1.5, 2)
                lines.append(f"volunteer {who},{name},{x + dx:.2f},{y + dy:.2f}")
    lines.append("careless,one.png,300,20")
    corners = ((10, 170), (230, 170))
    lines += [f"careless,{name},{x},{y}" for name in ("one.png", "two.png") for x, y in corners]
    table = folder / "clicks.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    truth = folder / "truth.csv"
    places = [f"{name},{x},{y}" for name in ("one.png", "two.png") for x, y in PARASITES]
    truth.write_text("\n".join(["image,x,y", *places]) + "\n", encoding="utf-8")
    return [*files, table, truth]


@pytest.fixture
def study_file(tmp_path, crowd_files) -> Path:
    """A study that holds the crowd's files and is closed again."""
    path = tmp_path / "small.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files(crowd_files), study)
    return path


@pytest.fixture
def jobs(qapp):
    jobs = Jobs()
    yield jobs
    jobs.close()
    jobs.deleteLater()


@pytest.fixture
def window(qtbot):
    window = MainWindow()
    window.resize(1280, 800)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    yield window
    window.close()
    window.deleteLater()


@pytest.fixture
def opened(window, qtbot, study_file):
    """The window with the study open and its first image on screen."""
    return open_study(window, qtbot, study_file)


@pytest.fixture
def fused(opened, qtbot):
    """The window with everything fused."""
    opened.workspace.canvas.setFocus()
    qtbot.keyClick(opened.workspace.canvas, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened.document.contents.runs), timeout=LONG)
    idle(opened, qtbot)
    return opened


@pytest.fixture
def bare_workspace(request, qtbot):
    """A workspace of the kind asked for, without a study: the kind, and the workspace."""
    place = QWidget()
    qtbot.addWidget(place)
    jobs = Jobs(place)
    made = WORKSPACES[request.param].make(Document(jobs, place), jobs, place)
    made.setParent(place)
    yield request.param, made
    jobs.close()
