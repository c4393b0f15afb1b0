"""Surfaces against the sphere, marching cubes of scikit-image, and the lattice of the volume."""

import numpy as np
import pytest
from skimage.measure import marching_cubes, mesh_surface_area

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.surface import extract_surface, nearest_hit, sample_at
from raterscope.algorithms.progress import Cancelled

SHAPE, SPACING, CENTRE, RADIUS = (36, 60, 60), (2.0, 1.0, 1.0), np.array([30.0, 30.0, 36.0]), 17.0


def distance(grid):
    index = np.moveaxis(np.indices(grid.shape, dtype=float), 0, -1)
    return np.linalg.norm(grid.to_patient(index) - CENTRE, axis=-1)


def tilted():
    """Uneven slices of a tilted gantry, rows from the left to the right."""
    offsets = tuple(np.cumsum([0.0, *np.tile([1.0, 2.5, 4.0], 8)]).tolist())
    matrix = np.array([[-1.0, 0, 0, 60], [0, 1.0, 0.4, -8], [0, 0, 2.0, 4]])
    return Grid.from_matrix((25, 80, 60), matrix, slice_offsets=offsets)


@pytest.mark.parametrize(
    "grid", [Grid.plain(SHAPE, SPACING, calibrated=True), tilted()], ids=["even", "uneven"]
)
@pytest.mark.parametrize("soft", [False, True], ids=["mask", "posterior"])
def test_the_surface_of_a_ball_is_a_sphere_within_half_a_voxel(grid, soft):
    away = distance(grid)
    values = (1 / (1 + np.exp(away - RADIUS))).astype(np.float32) if soft else away < RADIUS
    surface = extract_surface(values, (0, 0, 0), grid)
    radii = np.linalg.norm(surface.corners - CENTRE, axis=1)
    step = np.diff(grid.positions).max()
    assert np.abs(radii - RADIUS).max() < step / 2
    assert radii.mean() == pytest.approx(RADIUS, abs=0.25)
    outward = (surface.corners - CENTRE) / radii[:, None]
    aligned = (outward * surface.normals).sum(axis=1)
    assert np.abs(np.median(aligned)) > 0.97
    assert (np.sign(aligned) == np.sign(aligned[0])).mean() > 0.99


def test_area_and_place_are_those_of_marching_cubes():
    grid = Grid.plain(SHAPE, SPACING, calibrated=True)
    values = (1 / (1 + np.exp(distance(grid) - RADIUS))).astype(np.float32)
    surface = extract_surface(values, (0, 0, 0), grid)
    corners, faces, _, _ = marching_cubes(values, 0.5, spacing=SPACING)
    area = mesh_surface_area(surface.corners, surface.triangles)
    assert area == pytest.approx(mesh_surface_area(corners, faces), rel=0.02)
    assert np.allclose(surface.corners.mean(axis=0), corners.mean(axis=0)[::-1], atol=0.1)


def test_every_edge_has_two_faces_also_at_the_edge_of_the_volume():
    rng = np.random.default_rng(2)
    values = rng.uniform(size=(6, 9, 11)) < 0.5
    surface = extract_surface(values, (0, 0, 0), Grid.plain(values.shape))
    ends = np.concatenate([surface.quads[:, [k, (k + 1) % 4]] for k in range(4)])
    _, count = np.unique(np.sort(ends, axis=1), axis=0, return_counts=True)
    assert (count % 2 == 0).all()
    assert len(surface.edges) == len(count)


def test_a_part_lies_where_it_is_in_the_volume():
    grid = Grid.plain(SHAPE, SPACING, calibrated=True)
    values = distance(grid) < RADIUS
    whole = extract_surface(values, (0, 0, 0), grid)
    part = extract_surface(values[4:, 7:50, 9:], (4, 7, 9), grid)
    assert np.allclose(np.sort(whole.corners, axis=0), np.sort(part.corners, axis=0), atol=1e-4)


def test_triangles_are_limited_and_thin_structures_stay():
    grid = Grid.plain(SHAPE, SPACING, calibrated=True)
    fewer = extract_surface(distance(grid) < RADIUS, (0, 0, 0), grid, triangles=1000)
    assert 300 < len(fewer.triangles) <= 1000
    assert np.linalg.norm(fewer.corners - CENTRE, axis=1).mean() == pytest.approx(RADIUS, abs=1.0)
    thin = np.zeros(SHAPE, dtype=bool)
    thin[:, 20, 20] = True
    assert extract_surface(thin, (0, 0, 0), grid, triangles=50) is not None
    assert extract_surface(np.zeros(SHAPE, dtype=bool), (0, 0, 0), grid) is None


def test_it_is_cancelled_at_its_progress():
    def watch(*_args, **_more):
        raise Cancelled

    with pytest.raises(Cancelled):
        extract_surface(np.ones((4, 4, 4), dtype=bool), (0, 0, 0), Grid.plain((4, 4, 4)), watch=watch)


def test_values_are_linear_between_voxels():
    z, y, x = np.indices((5, 6, 7))
    values = (z + 10 * y + 100 * x).astype(np.float32)
    assert sample_at(values, (2, 3, 4), np.array([[3.5, 4.25, 6.0]])) == pytest.approx(1.5 + 12.5 + 200)
    assert sample_at(values, (2, 3, 4), np.array([[0.0, 3.0, 4.0]])) == pytest.approx(0)


def test_the_nearest_of_two_triangles_is_hit():
    square = np.array([[0, 0], [10, 0], [0, 10]], dtype=float)
    corners = np.concatenate([np.column_stack([square, [1, 1, 1]]), np.column_stack([square, [5, 7, 5]])])
    triangles = np.array([[0, 1, 2], [3, 4, 5]])
    assert nearest_hit(corners, triangles, 5, 1) == pytest.approx(6)
    assert nearest_hit(corners, triangles, 9, 9) is None
