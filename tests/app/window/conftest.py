"""Fixtures with files to import in the window, and the hands of an expert."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from raterscope.app.workspaces.labels.workspace import SoundPlayer
from tests.app.window.everything import make_study
from tests.app.window.hands import Hands
from tests.app.window.test_media import Device


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "in"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def everything_original(tmp_path_factory):
    """A study of all kinds in which every key has something to do, for tests to copy.

    Tests that run in several processes share the one that is ready first.
    """
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "everything.rscope"
    if not shared.exists():
        study = make_study(tmp_path_factory.mktemp("everything"))
        with suppress(FileExistsError):
            shared.symlink_to(study)
    return shared.resolve()


@pytest.fixture
def everything(everything_original, tmp_path):
    """A copy; its files stay where they are."""
    (tmp_path / "input").symlink_to(everything_original.with_name("input"))
    return Path(shutil.copy(everything_original, tmp_path / "all.rscope"))


@pytest.fixture
def hands(window, qtbot, monkeypatch, request):
    hands = Hands(window, qtbot, request.param)

    def ask(_parent, title, *_):
        hands.asked = title
        return "", ""

    for name in ("getOpenFileName", "getOpenFileNames", "getSaveFileName", "getExistingDirectory"):
        result = (lambda *given: ask(*given)[0]) if name == "getExistingDirectory" else ask
        monkeypatch.setattr(QFileDialog, name, result)
    monkeypatch.setattr(
        "raterscope.app.workspaces.labels.workspace.SoundPlayer", lambda sound: SoundPlayer(sound, Device)
    )
    if hands.kind:  # the start page is styled again; a workspace takes long to, and only the size is read
        monkeypatch.setattr("raterscope.widgets.theme.apply_theme", lambda *_: None)
    yield hands
    for name in ("shown", "shown_matrix"):  # a figure that is kept would outlive its window
        vars(hands).pop(name, None)
