"""No Qt here."""

from pathlib import Path

import pytest

from raterscope.app.study import Study
from tests.app.without_qt import nothing_is_left

__all__ = ["nothing_is_left"]


@pytest.fixture
def study(tmp_path: Path):
    (tmp_path / "studies").mkdir()
    with Study.create(tmp_path / "studies" / "smears.rscope") as study:
        yield study
