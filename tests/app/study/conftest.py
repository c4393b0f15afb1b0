"""An empty study."""

from pathlib import Path

import pytest

from raterscope.app.study import Study


@pytest.fixture
def study(tmp_path: Path):
    (tmp_path / "studies").mkdir()
    with Study.create(tmp_path / "studies" / "smears.rscope") as study:
        yield study
