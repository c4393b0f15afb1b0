"""A study that holds all four kinds with shared annotators."""

import shutil
from pathlib import Path

import pytest

from tests.app.annotators.made import make_study


@pytest.fixture(scope="session")
def four_original(tmp_path_factory) -> Path:
    return make_study(tmp_path_factory.mktemp("four"))


@pytest.fixture
def four_study(four_original, tmp_path) -> Path:
    """A copy; its images stay where they are."""
    return Path(shutil.copy(four_original, tmp_path / "four.rscope"))
