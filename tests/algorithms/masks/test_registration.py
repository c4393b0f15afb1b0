"""A moved volume is registered; what cannot be registered is refused or reported as failed."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.registration import (
    Registration,
    RigidMotion,
    centre_of,
    overlap_of,
    register,
)
from raterscope.algorithms.progress import Cancelled, RefusedError, silent

pytest.importorskip("SimpleITK")

GRID = Grid((24, 32, 32), (2.0, 0, 0, -40, 0, 2.0, 0, 10, 0, 0, 3.0, -60))
TRUTH = RigidMotion((6, -4, 5), (4, -6, 8), centre_of(GRID))


def tissue(grid, motion=None):
    """Sample five blobs, moved, at the voxels of a grid."""
    rng = np.random.default_rng(5)
    back = np.linalg.inv((motion or RigidMotion()).matrix)
    index = np.moveaxis(np.indices(grid.shape, dtype=float), 0, -1)
    position = grid.to_patient(index) @ back[:3, :3].T + back[:3, 3]
    values = np.zeros(grid.shape)
    for number in range(5):
        centre = np.array(centre_of(GRID)) + rng.uniform(-14, 14, 3)
        away = np.square((position - centre) / rng.uniform(6, 12, 3)).sum(axis=-1)
        values += (number + 1) * np.exp(-away / 2)
    return (100 * values).astype(np.float32)


def inverted(values, noise):
    """Invert the contrast and add noise, as another modality may have them."""
    return values.max() - values + np.random.default_rng(1).normal(0, noise, values.shape).astype(np.float32)


def errors(motion, truth=TRUTH):
    """Return how far landmarks are from their true positions after a registration, mm."""
    steps = np.array([[a, b, c] for a in (6, 12, 18) for b in (8, 16, 24) for c in (8, 16, 24)], dtype=float)
    landmarks = GRID.to_patient(steps)
    whole = motion.matrix @ np.linalg.inv(truth.matrix)
    return np.linalg.norm(landmarks @ whole[:3, :3].T + whole[:3, 3] - landmarks, axis=1)


@pytest.fixture(scope="module")
def case():
    return tissue(GRID)


@pytest.fixture(scope="module")
def moved():
    """The same tissue in another position: the registration is the truth."""
    return tissue(GRID, RigidMotion.from_matrix(np.linalg.inv(TRUTH.matrix), TRUTH.centre))


@pytest.fixture(scope="module")
def noisy(moved):
    return inverted(moved, 5)


@pytest.fixture(scope="module")
def registered(case, noisy):
    """Registration of the noisy volume, and its progress."""
    progress = []
    return register(case, GRID, noisy, GRID, lambda fraction, *_, **__: progress.append(fraction)), progress


def test_landmarks_of_a_moved_volume_return_within_a_third_of_a_voxel(registered):
    result, progress = registered
    assert progress == sorted(progress)
    assert 0.8 < progress[-1] <= 1
    assert errors(RigidMotion()).mean() > 5
    assert errors(result.motion).max() < 0.7
    assert result.problems == ()
    assert result.information > result.before


def test_a_position_that_noise_hides_is_reported(case, moved, registered):
    noise = np.random.default_rng(0).normal(0, 150, (2, *GRID.shape)).astype(np.float32)
    result = register(case + noise[0] / 2, GRID, inverted(moved, 0) + noise[1], GRID, silent)
    assert errors(result.motion).mean() > 3 * errors(registered[0].motion).mean()
    assert result.uncertainty > result.tolerance > 5 * registered[0].uncertainty > 0
    assert any("parts of the volume disagree" in problem for problem in result.problems)


def test_a_turned_series_in_another_frame_of_reference_is_registered(case, moved):
    away = RigidMotion((900, -400, 300), (45, -75, 160), centre_of(GRID))
    result = register(case, GRID, moved, away.move(GRID), silent)
    assert result.before == 0
    assert errors(RigidMotion.from_matrix(result.motion.matrix @ away.matrix, TRUTH.centre)).max() < 0.7


def test_a_repeated_search_gives_the_same_motion(case, noisy, registered):
    first, second = registered[0], register(case, GRID, noisy, GRID, silent)
    assert np.abs(first.motion.matrix - second.motion.matrix).max() < 1e-3  # mm; sums are rounded differently


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (Registration(RigidMotion(), 0.8, 0.1, 0.12, True), "only 12 % of the smaller volume overlaps"),
        (Registration(RigidMotion(), 0.03, 0.01, 0.9, True), "mutual information is only 0.03"),
        (Registration(RigidMotion(), 0.5, 0.6, 0.9, True), "mutual information is lower than before"),
        (Registration(RigidMotion(), 0.5, 0.1, 0.9, False), "the search did not converge"),
        (Registration(RigidMotion(), 0.5, 0.1, 0.9, True, 0.47), "another position fits nearly as well"),
        (
            Registration(RigidMotion(), 0.5, 0.1, 0.9, True, 0.1, 3.6, 2.0),
            "a search from a nearby position ended 3.6 mm away",
        ),
        (
            Registration(RigidMotion(), 0.5, 0.1, 0.9, True, 0.1, 0.6, 2.0, 3.1),
            "parts of the volume disagree on the position by 3.1 mm",
        ),
    ],
)
def test_each_failure_is_named(result, problem):
    assert result.problems == (problem,)


def test_bad_volumes_are_refused(case):
    constant = np.full(GRID.shape, 7, dtype=np.float32)
    with pytest.raises(RefusedError, match="The series has the same value everywhere"):
        register(case, GRID, constant, GRID, silent)
    with pytest.raises(RefusedError, match="The series has 1 x 32 x 32 voxels"):
        register(case, GRID, case[:1], replace(GRID, shape=(1, 32, 32)), silent)
    endless = case.copy()
    endless[0, 0, 0] = np.inf
    with pytest.raises(RefusedError, match="The case has values that are not finite"):
        register(endless, GRID, case, GRID, silent)


def test_it_is_cancelled_while_it_searches(case, moved):
    def cancel(_fraction, words, **_):
        if "level 1" in words:
            raise Cancelled

    with pytest.raises(Cancelled):
        register(case, GRID, moved, GRID, cancel)


def test_a_motion_turns_about_its_centre_and_then_shifts():
    motion = RigidMotion((1, 2, 3), (0, 0, 90), (10, 20, 30))
    assert motion.matrix @ [10, 20, 30, 1] == pytest.approx([11, 22, 33, 1])
    assert motion.matrix @ [11, 20, 30, 1] == pytest.approx([11, 23, 33, 1])
    assert motion.angle == pytest.approx(90)
    assert motion.translation == pytest.approx(np.sqrt(14))


def test_an_uneven_grid_keeps_its_slices_when_it_is_moved():
    grid = Grid((3, 4, 4), slice_offsets=(0.0, 1.0, 4.0))
    moved = RigidMotion((5, 0, 0), (90, 0, 0)).move(grid)
    assert moved.to_patient(np.array([2.0, 0, 0])) == pytest.approx([5, -4, 0])


def test_overlap_is_a_share_of_the_smaller_volume():
    half = replace(GRID, shape=(12, 32, 32))
    assert overlap_of(GRID, half) == overlap_of(half, GRID) == 1
    assert overlap_of(RigidMotion((0, 0, 18.0)).move(half), half) == pytest.approx(0.5)
    assert overlap_of(RigidMotion((500, 0, 0)).move(half), half) == 0


def test_a_motion_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="expected three finite numbers"):
        RigidMotion((0, np.nan, 0))


def test_a_search_that_stopped_beside_the_optimum_is_repeated(case):
    """The noise is such that the first search ends 5 mm away; one from a displaced position does not."""
    truth = RigidMotion((5, 0, -3), (66, 58, -26), centre_of(GRID))
    moved = inverted(tissue(GRID, RigidMotion.from_matrix(np.linalg.inv(truth.matrix), truth.centre)), 200)
    result = register(case, GRID, moved, GRID, silent)
    assert errors(result.motion, truth).max() < 2
    assert 0 < result.apart <= result.tolerance
    (problem,) = result.problems  # the noise is twice as strong as the tissue
    assert problem.startswith("parts of the volume disagree on the position by")


def test_searches_that_end_in_different_positions_are_reported():
    """A ball fits equally well in every rotation."""
    grid = Grid((12, 16, 16), (4.0, 0, 0, -40, 0, 4.0, 0, 10, 0, 0, 6.0, -60))
    away = grid.to_patient(np.moveaxis(np.indices(grid.shape, dtype=float), 0, -1)) - centre_of(grid)
    ball = (100 * np.exp(-np.square(away / 10).sum(axis=-1) / 2)).astype(np.float32)
    result = register(ball, grid, ball, grid, silent)
    assert any("a search from a nearby position ended" in problem for problem in result.problems)
