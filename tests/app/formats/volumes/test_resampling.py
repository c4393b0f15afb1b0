"""From one grid to another, as ITK does it."""

import numpy as np
import pytest
import SimpleITK

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.formats.volumes.resampling import explain_difference, resample

RNG = np.random.default_rng(5)


def placed(shape, spacing, origin, angle=0.0) -> Grid:
    c, s = np.cos(angle), np.sin(angle)
    matrix = np.column_stack([np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) * spacing[::-1], origin])
    return Grid.from_matrix(shape, matrix)


def as_itk(values: np.ndarray, grid: Grid) -> SimpleITK.Image:
    image = SimpleITK.GetImageFromArray(values)
    image.SetSpacing(grid.spacing[::-1])
    image.SetOrigin(grid.matrix[:3, 3].tolist())
    image.SetDirection((grid.matrix[:3, :3] / np.array(grid.spacing[::-1])).ravel().tolist())
    return image


def test_slices_at_other_positions_are_named() -> None:
    even = placed((3, 5, 6), (2.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    uneven = Grid.from_matrix(even.shape, even.matrix, slice_offsets=(0.0, 2.0, 7.0))
    words = explain_difference(even, uneven)
    assert words.startswith("The grids differ in the positions of their slices, by up to 3 mm: ")
    assert not explain_difference(uneven, uneven)


SOURCE = placed((9, 12, 14), (2.0, 1.0, 0.8), (3.0, -4.0, 5.0))
INSIDE = placed((8, 7, 9), (1.3, 1.1, 0.7), (4.5, -1.0, 7.0), 0.2)


def test_inside_the_source_it_is_what_itk_has() -> None:
    values = RNG.normal(size=SOURCE.shape).astype(np.float32)
    inside = as_itk(np.zeros(INSIDE.shape, np.float32), INSIDE)
    theirs = SimpleITK.Resample(as_itk(values, SOURCE), inside, SimpleITK.Transform(), SimpleITK.sitkLinear)
    ours = resample(values, SOURCE, INSIDE)
    np.testing.assert_allclose(ours, SimpleITK.GetArrayFromImage(theirs), atol=1e-4)


def test_a_linear_field_stays_what_it_is() -> None:
    def field(grid: Grid) -> np.ndarray:
        index = np.stack(np.meshgrid(*map(np.arange, grid.shape), indexing="ij"), axis=-1)
        return grid.to_patient(index) @ [0.5, -0.3, 0.2]

    np.testing.assert_allclose(resample(field(SOURCE), SOURCE, INSIDE), field(INSIDE), atol=1e-9)


def test_a_shift_by_one_voxel_is_exact_and_empty_beyond() -> None:
    mask = RNG.random(SOURCE.shape) < 0.5
    matrix = SOURCE.matrix.copy()
    matrix[:3, 3] = SOURCE.to_patient(np.array([1.0, -2.0, 3.0]))
    shifted = Grid.from_matrix(SOURCE.shape, matrix)
    expected = np.zeros_like(mask)
    expected[:-1, 2:, :-3] = mask[1:, :-2, 3:]
    result = resample(mask, SOURCE, shifted)
    assert result.dtype == bool
    np.testing.assert_array_equal(result, expected)


def test_a_mask_on_a_finer_grid_keeps_its_volume() -> None:
    index = np.stack(np.meshgrid(*map(np.arange, (20, 20, 20)), indexing="ij"), axis=-1)
    coarse = placed((20, 20, 20), (2.0, 2.0, 2.0), (0.0, 0.0, 0.0))
    ball = np.linalg.norm(coarse.to_patient(index) - 19.0, axis=-1) < 12.0
    fine = placed((40, 40, 40), (1.0, 1.0, 1.0), (-0.5, -0.5, -0.5))
    volume = resample(ball, coarse, fine).sum() * fine.voxel_volume
    assert volume == pytest.approx(ball.sum() * coarse.voxel_volume, rel=0.02)


@pytest.mark.parametrize("is_uneven", [False, True])
@pytest.mark.parametrize("fine", [(1.0, 1.0, 1.0), (1.0, 2.0, 2.0), (2.0, 2.0, 1.0)])
def test_a_mask_on_a_grid_of_twice_the_spacing_keeps_its_volume(
    fine: tuple[float, float, float], is_uneven: bool
) -> None:
    shape = tuple(int(40 / step) for step in fine)
    grid = placed(shape, fine, tuple(step / 2 - 1.0 for step in fine[::-1]))
    ball = np.linalg.norm(grid.to_patient(np.moveaxis(np.indices(shape), 0, -1)) - 19.0, axis=-1) < 12.0
    offsets = tuple(2.0 * at + (at == 19) for at in range(20)) if is_uneven else None
    coarse = placed((20, 20, 20), (2.0, 2.0, 2.0), (0.0, 0.0, 0.0))
    coarse = Grid.from_matrix(coarse.shape, coarse.matrix, slice_offsets=offsets)
    volume = resample(ball, grid, coarse).sum() * coarse.voxel_volume
    assert volume == pytest.approx(ball.sum() * grid.voxel_volume, rel=0.03)


def test_grids_without_a_place_are_not_matched() -> None:
    values = np.zeros(SOURCE.shape)
    with pytest.raises(ValueError, match="has no position"):
        resample(values, SOURCE, Grid.plain(SOURCE.shape))
    with pytest.raises(ValueError, match="on a grid"):
        resample(values[1:], SOURCE, INSIDE)


def test_a_difference_is_named() -> None:
    assert explain_difference(SOURCE, SOURCE) == ""
    shape = explain_difference(SOURCE, INSIDE)
    assert "9 x 12 x 14" in shape
    assert "8 x 7 x 9" in shape
    spacing = explain_difference(SOURCE, placed(SOURCE.shape, (2.5, 1.0, 0.8), (3.0, -4.0, 5.0)))
    assert "2 x 1 x 0.8 mm" in spacing
    assert "2.5 x 1 x 0.8 mm" in spacing
    turned = explain_difference(SOURCE, placed(SOURCE.shape, (2.0, 1.0, 0.8), (3.0, -4.0, 5.0), 0.1))
    assert "5.73 degrees" in turned
    moved = explain_difference(SOURCE, placed(SOURCE.shape, (2.0, 1.0, 0.8), (3.0, -4.0, 15.0)))
    assert "10 mm apart" in moved
