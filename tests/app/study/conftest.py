"""An empty study, and a closed one with something of everything."""

import shutil
from pathlib import Path

import pytest

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study
from tests.app.study.made import a_fusion, a_run, a_table


@pytest.fixture
def study(tmp_path: Path):
    (tmp_path / "studies").mkdir()
    with Study.create(tmp_path / "studies" / "smears.rscope") as study:
        yield study


@pytest.fixture(scope="session")
def closed_original(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("closed") / "smears.rscope"
    with Study.create(path) as study:
        study.add_clicks(a_table(1, ("a.png", "b.png"), clicks=3000))
        study.runs.add(a_run(), {1: a_fusion(study.clicks(1))})
        study.record(Decision(verb="accept", item=1, subject=SpotSubject(number=2, x=3.0, y=4.0)))
    return path


@pytest.fixture
def closed(tmp_path: Path, closed_original: Path) -> Path:
    """A study with something of everything, closed; a copy for each test."""
    return Path(shutil.copy(closed_original, tmp_path))
