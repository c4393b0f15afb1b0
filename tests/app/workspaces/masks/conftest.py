"""Windows with masks, unfused and fused."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.masks import Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, report_on
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from tests.app.driving import open_study
from tests.app.workspaces.masks.driving import go_to
from tests.app.workspaces.masks.made import READERS, SHAPE, SPACING, ball, drawn


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Fuse once, so that no test waits for the compiler."""
    masks = Masks(np.array(list(drawn().values())), READERS, SPACING)
    report_on(fuse(masks), masks)


@pytest.fixture(scope="session")
def masks_original(tmp_path_factory) -> Path:
    """Two cases by the same four readers: one with its volume, one of masks alone; a folder to copy."""
    nibabel = pytest.importorskip("nibabel")
    folder = tmp_path_factory.mktemp("masks")
    rng = np.random.default_rng(3)
    values = np.where(ball(8.5), 60, -80) + rng.integers(-20, 20, SHAPE)
    image = nibabel.Nifti1Image(values.astype(np.int16).transpose(2, 1, 0), np.diag([-1.0, -1.0, 2.0, 1.0]))
    nibabel.save(image, folder / "first.nii.gz")
    path = folder / "readers.rscope"
    with Study.create(path) as study:
        (volume,) = find_volumes(folder / "first.nii.gz")
        (first,) = study.add_images([replace(volume, modality="CT")])
        second = add_case(study, "second", Grid.plain(SHAPE, SPACING, calibrated=True))
        origin = (0, 0, 0)
        masks = [PlacedMask(first.id, name, "nodule", origin, mask) for name, mask in drawn().items()]
        masks += [PlacedMask(second.id, name, "nodule", origin, ball(8.0)) for name in READERS]
        add_masks(study, masks, "masks")
    return path


@pytest.fixture(scope="session")
def masks_original_fused(masks_original, tmp_path_factory) -> Path:
    """The same fused as the window does by default."""
    path = shutil.copy(masks_original, tmp_path_factory.mktemp("fused"))
    with Study.open(path) as study:
        keep(fuse_inputs(gather([entry.id for entry in study.images()], study), MaskPlan()), study)
    return path


@pytest.fixture
def masks_study(tmp_path, masks_original) -> Path:
    shutil.copytree(masks_original.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / masks_original.name


@pytest.fixture
def opened_masks(window, qtbot, masks_study):
    return open_study(window, qtbot, masks_study)


@pytest.fixture
def fused_masks(window, qtbot, masks_study, masks_original_fused):
    shutil.copy(masks_original_fused, masks_study)
    opened = open_study(window, qtbot, masks_study)
    go_to(opened, qtbot, "first")
    opened.workspace.volume.setFocus()
    return opened
