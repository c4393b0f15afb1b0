"""OEM on crowds whose truth is known, and on everything that a crowd may throw at it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from raterscope.algorithms.clicks.baseline_clustering import CEMSettings, cem
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.clicks.result import Clustering
from raterscope.algorithms.evaluation import match
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.click_crowds import overlapping_crowd, separated_crowd

IMAGE = (0.0, 0.0, 300.0, 300.0)
OBJECTS = np.array([(50.0, 60.0), (100.0, 200.0), (220.0, 80.0), (130.0, 140.0)])
PRINTED = OEMSettings(as_published=True)
REFRESHED = OEMSettings(as_published=True, published_form="refreshed")
PATH = OEMSettings(criterion="observed")


def some(x: object, y: object, annotator: object, count: int, extent: tuple[float, ...] = IMAGE) -> Clicks:
    names = tuple(f"a{number:02d}" for number in range(count))
    return Clicks(np.array(x, float), np.array(y, float), np.array(annotator, int), names, extent)


def crowd(
    objects: np.ndarray, annotators: int, scatter: float, seed: int, *, outliers: int = 2, extent=IMAGE
) -> Clicks:
    """Let every annotator mark each object once with probability .8 and click at random a few times."""
    generator = np.random.default_rng(seed)
    positions, annotator_index = [], []
    for annotator in range(annotators):
        marked = objects[generator.random(len(objects)) < 0.8]
        positions.append(marked + generator.normal(0, scatter, marked.shape))
        positions.append(generator.uniform(extent[:2], extent[2:], (outliers, 2)))
        annotator_index += [annotator] * (len(marked) + outliers)
    x, y = np.concatenate(positions).T
    return some(x, y, annotator_index, annotators, extent)


def with_more(clicks: Clicks, x: object, y: object, annotator: object, count: int) -> Clicks:
    return some(
        np.concatenate([clicks.x, x]), np.concatenate([clicks.y, y]),
        np.concatenate([clicks.annotator, annotator]), count, clicks.extent,
    )  # fmt: skip


def finds(clustering: Clustering, objects: np.ndarray, within: float) -> bool:
    """Return whether there is one cluster for each object and no other."""
    if len(clustering) != len(objects):
        return False
    distance = np.linalg.norm(clustering.mean[:, None] - objects[None], axis=2)
    return bool((distance.min(axis=0) < within).all() and (distance.min(axis=1) < within).all())


@pytest.mark.parametrize("annotators", [20, 50])
@pytest.mark.parametrize("seed", range(4))
def test_the_thesis_set_up_is_found_by_default(annotators, seed):
    truth = separated_crowd(annotators, seed)
    result = oem(truth.clicks)
    distance = np.linalg.norm(result.mean[:, None] - truth.mean[None], axis=2)
    assert (distance.min(axis=0) < 50).all()
    assert len(result) <= 16


@pytest.mark.parametrize("annotators", [11, 31])
def test_the_default_beats_the_literal_algorithm_on_the_papers_set_up(annotators):
    """OEM-DEM paper, section 3.1: harmonic mean of sensitivity and precision, matched one to one."""

    def harmonic(settings: OEMSettings) -> float:
        hits = clusters = 0
        for seed in range(5):
            truth = overlapping_crowd(annotators, seed)
            result = oem(truth.clicks, settings).mean
            hits += len(match(result, truth.mean, 0.3))
            clusters += len(result)
        return 2 * hits / (clusters + 50)

    assert harmonic(OEMSettings()) > harmonic(PRINTED) + 0.05


def test_annotators_are_distinguished():
    truth = separated_crowd(20, seed=3)
    result = oem(truth.clicks)
    assert np.corrcoef(result.reliability, truth.reliability)[0, 1] > 0.9
    assert result.weight.sum() == pytest.approx(1)
    outlier = truth.component < 0
    assert result.inlier[~outlier].mean() > 0.9
    assert result.inlier[outlier].mean() < 0.3


@pytest.mark.parametrize("run", [oem, cem])
def test_no_clicks_give_no_clusters(run):
    result = run(some([], [], [], 3))
    assert len(result) == 0
    assert result.mean.shape == (0, 2)
    assert result.covariance.shape == (0, 2, 2)
    assert np.isnan(result.reliability).all()
    assert result.reliability.shape == (3,)


@pytest.mark.parametrize("settings", [OEMSettings(), PATH, PRINTED])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_hardly_any_clicks(settings, count):
    result = oem(some([5.0] * count, [7.0, 8.0, 9.5][:count], range(count), 3), settings)
    assert len(result) <= 1
    assert np.isfinite(result.inlier).all()
    assert result.nearest.shape == (count,)


@pytest.mark.parametrize("settings", [OEMSettings(), PATH])
def test_identical_points_are_one_cluster(settings):
    result = oem(some([50.0] * 10, [60.5] * 10, range(10), 10), settings)
    assert finds(result, np.array([(50.0, 60.5)]), 1e-6)
    assert np.isfinite(result.covariance).all()
    assert (result.inlier > 0.99).all()


def test_collinear_points():
    generator = np.random.default_rng(0)
    x = np.concatenate([generator.normal(50, 2, 10), generator.normal(150, 2, 10)])
    result = oem(some(x, [60.0] * 20, list(range(10)) * 2, 10))
    assert finds(result, np.array([(50.0, 60.0), (150.0, 60.0)]), 2)
    assert (np.linalg.eigvalsh(result.covariance) > 0).all()


def test_whole_numbers():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    result = oem(some(np.rint(clicks.x), np.rint(clicks.y), clicks.annotator, 12))
    assert finds(result, OBJECTS, 2)


def test_duplicates_are_no_support():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    thrice = some(np.repeat(clicks.x, 3), np.repeat(clicks.y, 3), np.repeat(clicks.annotator, 3), 12)
    merged, _ = thrice.merged()
    np.testing.assert_array_equal(oem(merged).mean, oem(clicks).mean)


def test_near_duplicates_of_one_annotator_are_no_support():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    shake = np.random.default_rng(2).normal(270, 0.5, (20, 2))
    result = oem(with_more(clicks, *shake.T, [3] * 20, 12))
    assert finds(result, OBJECTS, 2)


def test_far_from_the_origin():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    far = some(clicks.x + 1e7, clicks.y + 1e7, clicks.annotator, 12, tuple(edge + 1e7 for edge in IMAGE))
    np.testing.assert_allclose(oem(far).mean - 1e7, oem(clicks).mean, atol=1e-5)


@pytest.mark.parametrize("outliers", [0, 2])
def test_one_object_only(outliers):
    first = np.array([(100.0, 100.0)])
    result = oem(crowd(first, 15, 2.0, 2, outliers=outliers))
    assert finds(result, first, 2)


def test_one_click_far_outside():
    result = oem(with_more(crowd(OBJECTS, 12, 2.0, 1), [1e5], [-1e5], [0], 12))
    assert finds(result, OBJECTS, 2)
    assert result.inlier[-1] < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_strays_alone_are_no_wide_cluster(seed):
    x, y = np.random.default_rng(seed).uniform(0, 300, (2, 10))
    clustering = oem(some(x, y, np.arange(10) % 9, 9))
    assert (np.sqrt(np.linalg.eigvalsh(clustering.covariance)) < 10).all()


def test_clicks_of_a_large_scatter_remain_one_cluster():
    generator = np.random.default_rng(5)
    x, y = np.repeat([(80.0, 90.0), (220.0, 200.0)], 12, axis=0).T + generator.normal(0, 12, (2, 24))
    clustering = oem(some(x, y, np.tile(np.arange(12), 2), 12))
    assert len(clustering) == 2


def test_an_annotator_without_clicks():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    result = oem(some(clicks.x, clicks.y, clicks.annotator, 13))
    assert finds(result, OBJECTS, 2)
    assert np.isnan(result.reliability[12])
    assert np.isfinite(result.reliability[:12]).all()


def test_two_close_objects_in_a_vast_image():
    objects = np.array([(50_000.0, 50_000.0), (50_001.5, 50_000.0)])
    for outliers in (0, 2):
        result = oem(crowd(objects, 25, 0.25, 3, outliers=outliers, extent=(0.0, 0.0, 1e5, 1e5)))
        assert finds(result, objects, 0.3)


@pytest.mark.parametrize("spread", [3.0, 300.0])
def test_one_annotator_with_a_thousand_clicks_is_no_crowd(spread):
    generator = np.random.default_rng(5)
    x, y = np.clip(generator.normal(250, spread, (2, 1000)), 0, 300)
    result = oem(with_more(crowd(OBJECTS, 12, 2.0, 1), x, y, np.full(1000, 12), 13).merged()[0])
    assert finds(result, OBJECTS, 2)


def test_objects_that_annotators_mark_apart_are_distinguished():
    """Two scatters apart look like one cluster; that annotators click twice shows that they are two."""
    pair = np.array([(100.0, 100.0), (105.0, 100.0)])
    clicks = crowd(np.concatenate([OBJECTS, pair]), 25, 2.0, 4)
    assert finds(oem(clicks), np.concatenate([OBJECTS, pair]), 2)


def test_an_annotator_with_an_unsteady_hand_does_not_blur_the_others():
    generator = np.random.default_rng(6)
    steady = crowd(OBJECTS, 8, 1.0, 6)
    wild = np.repeat(OBJECTS, 8, axis=0) + generator.normal(0, 5, (32, 2)) + (4, 0)
    clicks = with_more(steady, *wild.T, np.tile(np.arange(8, 16), 4), 16)
    own = oem(clicks)
    shared = oem(clicks, OEMSettings(per_annotator_scatter=False))

    def error(clustering: Clustering) -> float:
        return float(np.linalg.norm(clustering.mean[:, None] - OBJECTS[None], axis=2).min(axis=0).mean())

    assert error(own) < error(shared)


def test_annotators_who_click_beside_the_structures_do_not_move_them():
    generator = np.random.default_rng(1)
    structures = np.stack(np.meshgrid(*[np.arange(60.0, 541, 80)] * 2), axis=-1).reshape(-1, 2)
    offset = generator.normal(0, 5, (12, 2))
    offset -= offset.mean(axis=0)
    annotator, seen = np.nonzero(generator.random((12, len(structures))) < 0.8)
    x, y = (structures[seen] + offset[annotator] + generator.normal(0, 1, (len(seen), 2))).T
    clicks = Clicks(x, y, annotator.astype(np.int32), tuple(map(str, range(12))), (0, 0, 600, 600))
    errors = []
    for per_annotator_scatter in (True, False):
        mean = oem(clicks, OEMSettings(per_annotator_scatter=per_annotator_scatter)).mean
        assert len(mean) == len(structures)
        errors.append(np.linalg.norm(mean[:, None] - structures, axis=2).min(axis=0).mean())
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("settings", [OEMSettings(), PATH])
def test_neither_order_nor_numbering_of_annotators_matters(settings):
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    generator = np.random.default_rng(7)
    rows, names = generator.permutation(len(clicks)), generator.permutation(12)
    position = np.argsort(names)
    other = Clicks(
        clicks.x[rows], clicks.y[rows], position[clicks.annotator[rows]],
        tuple(clicks.annotators[name] for name in names), clicks.extent,
    )  # fmt: skip
    first, two = oem(clicks, settings), oem(other, settings)
    key = np.lexsort(first.mean.T), np.lexsort(two.mean.T)
    np.testing.assert_allclose(two.mean[key[1]], first.mean[key[0]], rtol=1e-9)
    np.testing.assert_allclose(two.reliability[position], first.reliability, rtol=1e-6)
    np.testing.assert_allclose(two.inlier, first.inlier[rows], atol=1e-6)


def test_a_mirrored_turned_or_larger_image_has_the_same_clusters():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    stray = np.random.default_rng(2).uniform(clicks.extent[:2], clicks.extent[2:], (200, 2))
    # one annotator clicks much more often than the others, and is sampled
    x, y = (np.r_[own, other] for own, other in zip((clicks.x, clicks.y), stray.T, strict=True))
    annotator = np.r_[clicks.annotator, np.zeros(len(stray), dtype=np.int64)]
    left, top, right, bottom = clicks.extent
    first = oem(Clicks(x, y, annotator, clicks.annotators, clicks.extent))
    for to, extent in (
        (lambda x, y: (left + right - x, y), clicks.extent),
        (lambda x, y: (y, x), (top, left, bottom, right)),
        (lambda x, y: (2 * x, 2 * y), tuple(2 * edge for edge in clicks.extent)),
    ):
        other = oem(Clicks(*to(x, y), annotator, clicks.annotators, extent))
        moved = np.stack(to(*first.mean.T), axis=1)
        assert len(other) == len(first)
        assert np.linalg.norm(moved[:, None] - other.mean, axis=2).min(axis=1).max() < 1e-3


@pytest.mark.parametrize("run", [oem, cem, lambda clicks: oem(clicks, PATH)])
def test_the_same_clicks_give_the_same_bits(run):
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    first, two = run(clicks), run(clicks)
    for name in ("mean", "covariance", "weight", "inlier", "nearest", "reliability"):
        np.testing.assert_array_equal(getattr(first, name), getattr(two, name))


@pytest.mark.parametrize("settings", [OEMSettings(), OEMSettings(repeats="often"), PATH, PRINTED, REFRESHED])
def test_small_crowds_of_any_shape_and_size_give_whole_answers(settings):
    generator = np.random.default_rng(11)
    for _ in range(40):
        count, annotators = generator.integers(1, 60), generator.integers(1, 8)
        side = 10.0 ** generator.uniform(-3, 7)
        positions = generator.uniform(0, side, (3, 2))[generator.integers(0, 3, count)]
        points = positions + generator.normal(0, side * 10.0 ** generator.uniform(-7, -1), (count, 2))
        points[generator.random(count) < 0.2] *= generator.choice([1.3, 1e3])
        if generator.random() < 0.3:
            points = np.rint(points)
        annotator = generator.integers(0, annotators, count)
        clicks = some(*points.T, annotator, annotators, (0.0, 0.0, side, side))
        result = oem(clicks, settings)
        for values in (result.mean, result.covariance, result.inlier, result.trace.objective):
            assert np.isfinite(values).all()
        assert ((result.inlier >= 0) & (result.inlier <= 1)).all()
        assert (result.nearest < len(result)).all()
        assert (np.linalg.eigvalsh(result.covariance) > 0).all()
        assert not len(result) or result.weight.sum() == pytest.approx(1)
        np.testing.assert_array_equal(np.isnan(result.reliability), clicks.counts() == 0)


def test_every_removal_raises_the_evidence():
    clicks = separated_crowd(20, seed=2).clicks
    trace = oem(clicks).trace
    assert trace.removed.any()
    assert (np.diff(trace.objective)[trace.removed[1:]] > 0).all()
    assert (np.diff(trace.components) <= 0).all()
    assert trace.converged


def test_removal_ends_at_the_lower_bound():
    clicks = crowd(OBJECTS, 12, 2.0, 1)
    assert oem(clicks, OEMSettings(criterion="observed", lower_bound=2)).trace.components.min() >= 2
    assert oem(clicks, OEMSettings(criterion="observed")).trace.components.min() < 2


def test_iterations_that_run_out_are_reported():
    result = oem(separated_crowd(20, seed=1).clicks, OEMSettings(criterion="expected", max_iterations=10))
    assert not result.trace.converged
    assert len(result.trace.objective) == 10


@pytest.mark.parametrize("settings", [OEMSettings(), PATH, PRINTED])
def test_the_watch_sees_progress_and_may_cancel(settings):
    clicks = separated_crowd(20, seed=1).clicks
    fractions: list[float] = []
    drawn: list[Clustering] = []

    def look(fraction: float, words: str, **more: Callable[[], Clustering]) -> None:
        fractions.append(fraction)
        assert words
        if more.get("partial") is not None:
            drawn.append(more["partial"]())

    watched = oem(clicks, settings, look)
    assert fractions == sorted(fractions)
    assert fractions[0] >= 0
    assert fractions[-1] <= 1
    assert drawn
    assert drawn[0].nearest.max() < len(drawn[0])
    np.testing.assert_array_equal(watched.mean, oem(clicks, settings).mean)

    def refuse(fraction: float, *_: str, **__: object) -> None:
        if fraction > 0.3:
            raise Cancelled

    with pytest.raises(Cancelled):
        oem(clicks, settings, refuse)


@pytest.mark.parametrize(("criterion", "most"), [("observed", 17), ("length", 60)])
def test_cem_has_no_outliers(criterion, most):
    """The message length splits: the thesis, table 2.1, has a precision of .62 to .85."""
    truth = separated_crowd(20, seed=1)
    inside = truth.component >= 0
    clicks = some(
        truth.clicks.x[inside],
        truth.clicks.y[inside],
        truth.clicks.annotator[inside],
        20,
        truth.clicks.extent,
    )
    result = cem(clicks, CEMSettings(criterion=criterion))
    distance = np.linalg.norm(result.mean[:, None] - truth.mean[None], axis=2)
    assert (distance.min(axis=0) < 50).all()
    assert 15 <= len(result) <= most
    np.testing.assert_allclose(result.inlier, 1)
    np.testing.assert_allclose(result.reliability, 1)


@pytest.mark.parametrize("annotators", [20, 90])
def test_fits_in_blocks_and_in_one_call_have_the_same_bits(annotators, monkeypatch):
    clicks = overlapping_crowd(annotators, seed=3).clicks
    whole = oem(clicks)
    assert len(whole) > 3
    monkeypatch.setattr("raterscope.algorithms.clicks._crowd.VISITS", 300)
    blocks = oem(clicks)
    for name in ("mean", "covariance", "weight", "inlier", "nearest", "reliability"):
        assert np.array_equal(getattr(whole, name), getattr(blocks, name), equal_nan=True), name
    assert whole.trace.objective[-1] == pytest.approx(blocks.trace.objective[-1], rel=1e-12)
