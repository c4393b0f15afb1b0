"""The window with masks in it, as they came and fused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks import Masks
from raterscope.algorithms.masks.fusion import fuse
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.report import report_on
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.masks.driving import go_to, key
from tests.app.workspaces.masks.made import READERS, SHAPE, SPACING, ball, drawn


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse once, so that no test waits for the compiler."""
    masks = Masks(np.array(list(drawn().values())), READERS, SPACING)
    report_on(fuse(masks), masks)


@pytest.fixture
def masks_study(tmp_path) -> Path:
    """Two cases by the same four readers: one with its volume, one of masks alone."""
    nibabel = pytest.importorskip("nibabel")
    rng = np.random.default_rng(3)
    values = np.where(ball(8.5), 60, -80) + rng.integers(-20, 20, SHAPE)
    image = nibabel.Nifti1Image(values.astype(np.int16).transpose(2, 1, 0), np.diag([-1.0, -1.0, 2.0, 1.0]))
    nibabel.save(image, tmp_path / "first.nii.gz")
    path = tmp_path / "readers.rscope"
    with Study.create(path) as study:
        (volume,) = find_volumes(tmp_path / "first.nii.gz")
        (first,) = study.add_volumes([replace(volume, modality="CT")])
        second = add_case(study, "second", Grid.plain(SHAPE, SPACING, calibrated=True))
        origin = (0, 0, 0)
        masks = [PlacedMask(first.id, name, "nodule", origin, mask) for name, mask in drawn().items()]
        masks += [PlacedMask(second.id, name, "nodule", origin, ball(8.0)) for name in READERS]
        add_masks(study, masks, "masks")
    return path


@pytest.fixture
def opened_masks(window, qtbot, masks_study):
    return open_study(window, qtbot, masks_study)


@pytest.fixture
def fused_masks(opened_masks, qtbot):
    key(opened_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened_masks.document.contents.runs), timeout=LONG)
    idle(opened_masks, qtbot)
    go_to(opened_masks, qtbot, "first")
    return opened_masks
