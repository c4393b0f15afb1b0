"""A second series is found by its position, resampled, and shown over the case."""

import nibabel
import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import silent
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.masks.slice_view import find_series, read_series, shared_extent
from tests.app.driving import idle

COARSE = Grid((10, 16, 16), (4.0, 0, 0, 10, 0, 4.0, 0, -20, 0, 0, 6.0, 5))
FINE = Grid((30, 32, 32), (2.0, 0, 0, 9, 0, 2.0, 0, -21, 0, 0, 2.0, 3))
ELSEWHERE = Grid((10, 16, 16), (4.0, 0, 0, 500, 0, 4.0, 0, -20, 0, 0, 6.0, 5))


def entry(number, grid, name="a.nii"):
    return ImageEntry(number, name, name, grid.shape[2], grid.shape[1], grid=grid, modality="PT")


def test_series_at_the_same_position_are_offered_and_others_are_not():
    plain = Grid.plain((10, 16, 16))
    images = [entry(1, FINE), entry(2, COARSE), entry(3, ELSEWHERE), entry(4, plain)]
    assert [image.id for image in find_series(images, images[0])] == [2]
    assert shared_extent(FINE, FINE) == pytest.approx(1)
    assert shared_extent(FINE, ELSEWHERE) == 0


def test_a_linear_series_keeps_its_values_at_every_voxel(tmp_path):
    index = np.moveaxis(np.indices(COARSE.shape, dtype=float), 0, -1)
    x, y, z = np.moveaxis(COARSE.to_patient(index), -1, 0)
    values = (500 + 3 * x + 2 * y + 4 * z).astype(np.float32)
    affine = np.diag([-1.0, -1, 1, 1]) @ COARSE.matrix
    nibabel.save(nibabel.Nifti1Image(values.transpose(2, 1, 0), affine), tmp_path / "pet.nii.gz")
    heat = read_series(entry(2, COARSE, "pet.nii.gz"), tmp_path / "pet.nii.gz", FINE, silent)
    assert heat.values.shape == FINE.shape
    inside = (slice(3, 25), slice(3, 28), slice(3, 28))
    index = np.moveaxis(np.indices(FINE.shape, dtype=float), 0, -1)
    x, y, z = np.moveaxis(FINE.to_patient(index), -1, 0)
    expected = np.minimum(500 + 3 * x + 2 * y + 4 * z, heat.high)
    shown = heat.values.astype(float) * heat.scale
    assert np.abs(shown - expected)[inside].max() <= heat.high / 255


def test_a_series_imported_beside_the_case_on_screen_is_offered_at_once(fused_masks, qtbot, tmp_path):
    case = fused_masks.workspace.session.scene.image
    affine = np.diag([-1.0, -1, 1, 1]) @ case.grid.matrix
    nibabel.save(
        nibabel.Nifti1Image(
            np.random.default_rng(1).uniform(0, 900, case.grid.shape[::-1]).astype(np.float32), affine
        ),
        tmp_path / "pet.nii.gz",
    )
    before = fused_masks.workspace.maps.map.count()
    fused_masks.open_paths([tmp_path / "pet.nii.gz"])
    idle(fused_masks, qtbot)
    assert fused_masks.workspace.maps.map.count() == before + 1
