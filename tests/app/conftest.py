"""Tests with Qt: nothing may be left behind, and nothing is remembered from one to the next."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.clicks import Clicks, FusionPlan, fuse
from raterscope.app import importing
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.window.main_window import MainWindow
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets.dialogs.import_preview import ImportDialog
from tests.app.annotators.made import make_study
from tests.app.batch.threads import Threads
from tests.app.commands import refusal
from tests.app.driving import accept_import, open_study
from tests.app.import_command import import_files
from tests.qt_leaks import classes_are_watched, nothing_is_left
from tests.waiting import qtbot

__all__ = ["classes_are_watched", "import_files", "nothing_is_left", "qtbot", "refusal"]

PARASITES = ((40, 40), (120, 50), (60, 130), (150, 150), (200, 90))
DISPUTED = (190, 30)
ANNOTATORS = 12


@pytest.fixture(autouse=True)
def forgetful(tmp_path):
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path / "settings"))


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Nothing gives way, as other tests keep the processors busy, and nothing waits for a hand to rest."""
    monkeypatch.setattr("raterscope.app.jobs.NICE_INCREMENT", 0)
    monkeypatch.setattr("raterscope.widgets.painting.SETTLED_MS", 1)
    for module in ("layer_stack", "shapes"):
        monkeypatch.setattr(f"raterscope.widgets.canvas.{module}.SETTLED", 1)
    monkeypatch.setattr("raterscope.app.workspaces.annotators.workspace.SETTLED_MS", 1)


@pytest.fixture(autouse=True)
def imports_confirmed(monkeypatch):
    """Accept the preview of an import as it is; a test of the dialog calls the function that is returned."""
    shown = ImportDialog.open
    monkeypatch.setattr(ImportDialog, "open", accept_import)
    return lambda: monkeypatch.setattr(ImportDialog, "open", shown)


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse once, so that no test waits for the compiler."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(50, 2, 60), rng.normal(50, 2, 60)
    names = tuple(str(annotator) for annotator in range(6))
    fuse(Clicks(x, y, np.arange(60) % 6, names, (0, 0, 100, 100)))


@pytest.fixture
def crowd_files(tmp_path, study_as_it_came) -> list[Path]:
    """Two small images, a table of twelve annotators' clicks on them, and the truth."""
    folder = shutil.copytree(study_as_it_came.with_name("input"), tmp_path / "input")
    return [folder / name for name in ("one.png", "two.png", "clicks.csv", "truth.csv")]


def write_crowd(folder: Path) -> list[Path]:
    folder.mkdir()
    rng = np.random.default_rng(5)
    lines = ["annotator,image,x,y"]
    files = []
    for name in ("one.png", "two.png"):
        Image.fromarray(rng.integers(150, 200, (180, 240, 3), dtype=np.uint8)).save(folder / name)
        files.append(folder / name)
        for annotator in range(ANNOTATORS):
            marked = [*PARASITES, *((DISPUTED,) if annotator < 4 else ())]
            for x, y in marked:
                dx, dy = rng.normal(0, 1.5, 2)
                lines.append(f"volunteer {annotator},{name},{x + dx:.2f},{y + dy:.2f}")
    lines.append("careless,one.png,300,20")
    corners = ((10, 170), (230, 170))
    lines += [f"careless,{name},{x},{y}" for name in ("one.png", "two.png") for x, y in corners]
    table = folder / "clicks.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    truth = folder / "truth.csv"
    positions = [f"{name},{x},{y}" for name in ("one.png", "two.png") for x, y in PARASITES]
    truth.write_text("\n".join(["image,x,y", *positions]) + "\n", encoding="utf-8")
    return [*files, table, truth]


@pytest.fixture(scope="session")
def study_as_it_came(tmp_path_factory) -> Path:
    """A study of the crowd, for tests to copy."""
    folder = tmp_path_factory.mktemp("crowd")
    path = folder / "small.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files(write_crowd(folder / "input")), study)
    return path


@pytest.fixture(scope="session")
def study_fused(study_as_it_came) -> Path:
    """The same, fused with the defaults of the window, for tests to copy."""
    path = study_as_it_came.with_name("fused.rscope")
    shutil.copy(study_as_it_came, path)
    with Study.open(path) as study:
        inputs = gather([entry.id for entry in study.images()], study)
        keep(fuse_inputs(inputs, FusionPlan()), study)
    return path


@pytest.fixture
def study_file(tmp_path, crowd_files, study_as_it_came) -> Path:
    """A study that holds the crowd's files and is closed again."""
    return shutil.copy(study_as_it_came, tmp_path / "small.rscope")


@pytest.fixture
def cases_in_threads(monkeypatch):
    """`raterscope batch` starts no processes."""
    monkeypatch.setattr("raterscope.app.cli.batch.local_executor", lambda jobs: lambda: Threads(jobs))


@pytest.fixture(scope="session")
def four_original(tmp_path_factory) -> Path:
    """A study that holds all four kinds with shared annotators, for tests to copy."""
    return make_study(tmp_path_factory.mktemp("four"))


@pytest.fixture
def four_study(four_original, tmp_path) -> Path:
    """A copy; its images stay where they are."""
    return Path(shutil.copy(four_original, tmp_path / "four.rscope"))


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
def fused(window, qtbot, study_file, study_fused):
    """The window with everything fused."""
    shutil.copy(study_fused, study_file)
    opened = open_study(window, qtbot, study_file)
    opened.workspace.canvas.setFocus()
    return opened


@pytest.fixture
def bare_workspace(request, qtbot):
    """Return a kind and its workspace without a study."""
    widget = QWidget()
    qtbot.addWidget(widget)
    jobs = Jobs(widget)
    instance = WORKSPACES[request.param].make(Document(jobs, widget), jobs, widget)
    instance.setParent(widget)
    yield request.param, instance
    jobs.close()
