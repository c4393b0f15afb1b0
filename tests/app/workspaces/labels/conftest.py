"""Windows with labels, unfused and fused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.dynamic import dynibcc
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import pooled
from raterscope.app.formats.image_heads import read_image
from raterscope.app.formats.records import TrueLabels
from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.study.labels import add_true_labels, add_votes, link_pictures
from tests.app.driving import open_study
from tests.app.workspaces.labels.made import CLASSES, TASKS, table, votes


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse once, so that no test waits for the compiler."""
    few = np.array([0, 0, 1, 1], dtype=np.int32)
    labels = Labels(few, few[::-1].copy(), np.array([0, 1, 1, 0]), ("a", "b"), ("x", "y"), CLASSES, CLASSES)
    ibcc(labels)
    pooled(labels)
    dynibcc(labels)


@pytest.fixture(scope="session")
def labels_original(tmp_path_factory) -> Path:
    """A study with pictures of some of its tasks, in a folder for tests to copy."""
    folder = tmp_path_factory.mktemp("labels")
    truth, _ = votes()
    path = folder / "cells.rscope"
    with Study.create(path) as study:
        add_votes(study, table(folder, votes()[1]))
        known = tuple(range(0, TASKS, 3))
        add_true_labels(
            study,
            TrueLabels(
                folder / "truth.csv", "Infected?", tuple(f"cell-{n:03}" for n in known), CLASSES,
                truth[list(known)].astype(np.int16),
            ),
        )  # fmt: skip
        for number in range(0, TASKS, 2):
            Image.new("RGB", (40, 30), (number * 4, 60, 90)).save(folder / f"cell-{number:03}.png")
        study.add_images([read_image(path) for path in sorted(folder.glob("cell-*.png"))])
        link_pictures(study)
    return path


@pytest.fixture(scope="session")
def labels_original_fused(labels_original, tmp_path_factory) -> Path:
    """The same fused as the window does by default."""
    path = shutil.copy(labels_original, tmp_path_factory.mktemp("fused"))
    with Study.open(path) as study:
        inputs = gather([question.id for question in study.questions()], study)
        keep(fuse_inputs(inputs, LabelPlan()), study)
    return path


@pytest.fixture
def labels_study(tmp_path, labels_original) -> Path:
    shutil.copytree(labels_original.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / labels_original.name


@pytest.fixture
def opened(window, qtbot, labels_study):
    return open_study(window, qtbot, labels_study)


@pytest.fixture
def fused(window, qtbot, labels_study, labels_original_fused):
    shutil.copy(labels_original_fused, labels_study)
    opened = open_study(window, qtbot, labels_study)
    opened.workspace.queue.view.setFocus()
    return opened
