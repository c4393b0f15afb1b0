"""Windows with pairs, unfused and fused."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.pairs.fusion import PairPlan, fuse
from raterscope.app.formats.records import PairTable
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.pairs.driving import key
from tests.app.workspaces.pairs.made import crowd


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse along the paths that are used here once, so that no test waits for the compiler."""
    for path in ("iss", "lasso"):
        fuse(crowd(), PairPlan.make(path, {"draws": "1"}))


@pytest.fixture
def pairs_study(tmp_path) -> Path:
    path, pairs = tmp_path / "faces.rscope", crowd()
    with Study.create(path) as study:
        add_pairs(
            study,
            PairTable(
                tmp_path / "pairs.csv", "Which is worse?", pairs.annotators, pairs.items, pairs.annotator,
                pairs.left, pairs.right, pairs.choice, pairs.time,
            ),
        )  # fmt: skip
    return path


@pytest.fixture
def opened(window, qtbot, pairs_study):
    return open_study(window, qtbot, pairs_study)


@pytest.fixture
def fused(opened, qtbot):
    key(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened.document.contents.runs), timeout=LONG)
    idle(opened, qtbot)
    qtbot.waitUntil(lambda: opened.workspace.rate_cut.ranking is not None, timeout=LONG)
    return opened
