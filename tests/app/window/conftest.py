"""Fixtures with files to import in the window."""

import shutil
from pathlib import Path

import pytest

from tests.app.window.everything import make_study


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "in"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def everything_original(tmp_path_factory):
    """A study of all kinds in which every key has something to do, for tests to copy."""
    return make_study(tmp_path_factory.mktemp("everything"))


@pytest.fixture
def everything(everything_original, tmp_path):
    """A copy; its files stay where they are."""
    (tmp_path / "input").symlink_to(everything_original.with_name("input"))
    return Path(shutil.copy(everything_original, tmp_path / "all.rscope"))
