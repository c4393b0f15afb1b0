"""Windows with pairs, unfused and fused."""

import shutil
from pathlib import Path

import pytest

from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.app.formats.records import PairTable
from raterscope.app.kinds.pairs.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs
from tests.app.driving import LONG, open_study
from tests.app.workspaces.pairs.made import crowd


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse along the paths that are used here once, so that no test waits for the compiler."""
    for path in ("iss", "lasso"):
        fuse(crowd(), PairPlan.make(path, {"draws": "1"}))


@pytest.fixture(scope="session")
def pairs_original(tmp_path_factory) -> Path:
    """A study of the crowd, for tests to copy."""
    folder = tmp_path_factory.mktemp("pairs")
    path, pairs = folder / "faces.rscope", crowd()
    with Study.create(path) as study:
        add_pairs(
            study,
            PairTable(
                folder / "pairs.csv", "Which is worse?", pairs.annotators, pairs.items, pairs.annotator,
                pairs.left, pairs.right, pairs.choice, pairs.time,
            ),
        )  # fmt: skip
    return path


@pytest.fixture(scope="session")
def pairs_original_fused(pairs_original, tmp_path_factory) -> Path:
    """The same fused as the window does by default."""
    path = shutil.copy(pairs_original, tmp_path_factory.mktemp("fused"))
    with Study.open(path) as study:
        inputs = gather([question.id for question in study.pair_questions()], study)
        keep(fuse_inputs(inputs, PairPlan()), study)
    return path


@pytest.fixture
def pairs_study(tmp_path, pairs_original) -> Path:
    return shutil.copy(pairs_original, tmp_path / "faces.rscope")


@pytest.fixture
def opened(window, qtbot, pairs_study):
    return open_study(window, qtbot, pairs_study)


@pytest.fixture
def fused(window, qtbot, pairs_study, pairs_original_fused):
    shutil.copy(pairs_original_fused, pairs_study)
    opened = open_study(window, qtbot, pairs_study)
    qtbot.waitUntil(lambda: opened.workspace.rate_cut.ranking is not None, timeout=LONG)
    return opened
