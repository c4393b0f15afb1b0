"""Fixtures with files to import in the window."""

import pytest


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "in"
    path.mkdir()
    return path
