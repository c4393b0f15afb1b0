"""Fixtures with files to import in the window."""

import pytest


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    return place
