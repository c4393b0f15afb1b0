import numpy as np
import pytest

from raterscope.algorithms.simulation.click_crowds import Annotator, gather_annotators, simulate_clicks
from raterscope.algorithms.simulation.smears import Smear


def field(count_parasites=2000, count_artefacts=2000, *, clarity=1.0, allure=0.5):
    """A smear without a picture, so large that shares are sharp."""
    rng = np.random.default_rng(0)
    side = 100_000
    return Smear(
        image=np.broadcast_to(np.zeros((1, 1, 3), dtype=np.uint8), (side, side, 3)),
        parasites=rng.uniform(1000, side - 1000, (count_parasites, 2)),
        clarity=np.full(count_parasites, clarity),
        artefacts=rng.uniform(1000, side - 1000, (count_artefacts, 2)),
        allure=np.full(count_artefacts, allure),
    )


def steady(**changes):
    values = {"sensitivity": 0.8, "specificity": 0.7, "scatter": 3.0, "stray": 0.0, "double": 0.0}
    return Annotator("w-1", **(values | changes))


def nearest(clicks, positions):
    from scipy.spatial import cKDTree

    return cKDTree(positions).query(clicks.points)


def test_annotator_marks_the_shares_it_is_made_for():
    smear = field()
    clicks = simulate_clicks(smear, (steady(),), seed=1)
    on_parasites = (nearest(clicks, smear.parasites)[0] < 20).sum()
    on_artefacts = (nearest(clicks, smear.artefacts)[0] < 20).sum()
    assert on_parasites / 2000 == pytest.approx(0.8, abs=0.04)
    assert on_artefacts / 2000 == pytest.approx(0.3, abs=0.04)


def test_faint_parasites_are_missed_and_likely_artefacts_clicked_more():
    plain = simulate_clicks(field(clarity=1.0, allure=0.9), (steady(),), seed=1)
    faint = simulate_clicks(field(clarity=0.0, allure=0.1), (steady(),), seed=1)
    assert len(faint) < 0.6 * len(plain)


def test_clicks_scatter_and_are_displaced_as_stated():
    smear = field(count_artefacts=0)
    clicks = simulate_clicks(smear, (steady(scatter=3.0, bias=(6.0, -4.0)),), seed=2)
    _, index = nearest(clicks, smear.parasites)
    offset = clicks.points - smear.parasites[index]
    assert offset.mean(axis=0) == pytest.approx([6.0, -4.0], abs=0.4)
    assert offset.std(axis=0) == pytest.approx([3.0, 3.0], abs=0.3)


def test_doubles_are_at_the_very_same_place_and_later():
    clicks = simulate_clicks(field(500, 0), (steady(double=1.0),), seed=3)
    merged, mark = clicks.merged()
    assert len(clicks) == 2 * len(merged)
    for row in range(5):
        first, second = clicks.time[mark == row]
        assert second > first


def test_annotators_without_marks_count_as_viewers():
    crowd = (steady(), Annotator("idle", 0.0, 1.0, 3.0, 0.0))
    clicks = simulate_clicks(field(50, 50), crowd, seed=4)
    assert clicks.annotators == ("w-1", "idle")
    assert clicks.counts()[1] == 0


def test_clicks_stay_on_the_image_and_repeat_with_the_seed():
    crowd = gather_annotators(12, seed=5)
    smear = field(30, 30)
    clicks = simulate_clicks(smear, crowd, seed=6)
    assert not clicks.outside.any()
    second = simulate_clicks(smear, gather_annotators(12, seed=5), seed=6)
    assert np.array_equal(second.points, clicks.points)
    assert np.array_equal(second.time, clicks.time)
    assert len(simulate_clicks(smear, crowd, seed=7)) != len(clicks) or not np.array_equal(
        simulate_clicks(smear, crowd, seed=7).points, clicks.points
    )


def test_crowd_has_its_odd_ones():
    crowd = gather_annotators(51, seed=1)
    assert len({annotator.name for annotator in crowd}) == 51
    assert sum(annotator.stray > 20 for annotator in crowd) == 1
    assert sum(annotator.sensitivity == 0 for annotator in crowd) == 1
    assert sum(annotator.bias != (0.0, 0.0) for annotator in crowd) == 1
    good = [a for a in crowd if a.sensitivity > 0.75 and a.specificity > 0.75]
    assert len(good) > 15


def test_an_empty_crowd_is_refused():
    with pytest.raises(ValueError, match="crowd"):
        gather_annotators(0, seed=1)
