"""Parasitaemia against what is published of it, and against chance."""

import numpy as np
import pytest
from scipy import stats

from raterscope.algorithms.clicks.counting import (
    LEUKOCYTES_PER_MICROLITRE,
    dispersion,
    infected_share,
    per_field,
    per_leukocyte,
    per_volume,
    volume_of,
)


def counted(number):
    """A number that is not in doubt."""
    chance = np.zeros(number + 1)
    chance[number] = 1.0
    return chance


def spread_of(rate):
    return (rate.high - rate.low) / (2 * 1.96)


@pytest.mark.parametrize(
    ("parasites", "leukocytes", "density"),
    [(1, 200, 40), (1, 500, 16), (100, 200, 4_000), (99, 500, 1_584), (400, 200, 16_000)],
)
def test_thick_films_are_reported_by_the_formula_of_the_world_health_organization(
    parasites, leukocytes, density
):
    rate = per_leukocyte(counted(parasites), leukocytes, LEUKOCYTES_PER_MICROLITRE)
    assert rate.value == pytest.approx(density)
    assert rate.low < density < rate.high


@pytest.mark.parametrize(
    ("leukocytes", "published"),
    [
        (200, {200: 89.1, 1_000: 200.1, 5_000: 565.1, 10_000: 904.6, 16_000: 1_357.9}),
        (500, {200: 57.0, 1_000: 133.8, 5_000: 354.2, 10_000: 579.5, 16_000: 883.0}),
    ],
)
def test_intervals_are_as_wide_as_repeated_readings_scatter(leukocytes, published):
    """Standard deviations of 1,000 readings each: doi 10.1186/s12936-020-03352-z, table 3 (2020)."""
    for density, scatter in published.items():
        parasites = round(density * leukocytes / 8_000)
        rate = per_leukocyte(counted(parasites), leukocytes, 8_000)
        assert spread_of(rate) == pytest.approx(scatter, rel=0.09)


@pytest.mark.parametrize("result", [1, 4, 30])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_the_interval_of_a_count_is_that_of_jeffreys(result, spread):
    """The gamma distribution with half a parasite more than was seen: Brown, Cai and DasGupta (2003)."""
    rate = per_volume(counted(result), 0.02, spread)
    shape, scale = result / spread + 0.5, spread / 0.02
    assert (rate.low, rate.high) == pytest.approx(
        stats.gamma.ppf((0.025, 0.975), shape, scale=scale), rel=1e-4
    )


def test_a_field_of_two_thousandths_of_a_microlitre_makes_a_parasite_five_hundred():
    """Greenwood and Armstrong (1991): one oil immersion field is 0.002 microlitres of blood."""
    assert per_volume(counted(30), 10 * 0.002).value == pytest.approx(30 / 10 * 500)
    assert volume_of(1_000_000.0, 2.0) == pytest.approx(0.002)


def test_a_thin_film_is_reported_in_infected_red_cells():
    share = infected_share(counted(10), 1_000)
    assert share.value == pytest.approx(0.01)
    jeffreys = stats.beta(10.5, 990.5).interval(0.95)
    assert (share.low, share.high) == pytest.approx(jeffreys, rel=1e-3)
    with pytest.raises(ValueError, match="at least the 20"):
        infected_share(counted(20), 12)


def test_nothing_found_is_reported_as_nothing_up_to_something():
    rate = per_leukocyte(counted(0), 200, 8_000)
    assert rate.value == rate.low == 0.0
    assert 40 < rate.high < 160


def test_twice_the_fields_keep_the_density_and_narrow_its_interval():
    def of_fields(times):
        chance, leukocytes = counted(60 * times), 150.0 * times
        yield per_field(chance, 20 * times)
        yield per_leukocyte(chance, leukocytes, 8_000)
        yield per_volume(chance, 0.04 * times)
        yield infected_share(chance, 5_000 * times)

    for once, twice in zip(of_fields(1), of_fields(2), strict=True):
        assert twice.value == pytest.approx(once.value)
        assert spread_of(twice) == pytest.approx(spread_of(once) / np.sqrt(2), rel=0.05)


def test_doubt_of_the_detections_widens_the_interval():
    sure, doubtful = counted(50), np.zeros(101)
    doubtful[40:61] = 1 / 21
    for give in (
        lambda chance: per_field(chance, 10),
        lambda chance: per_leukocyte(chance, 200, 8_000),
        lambda chance: infected_share(chance, 4_000),
    ):
        assert give(doubtful).value == pytest.approx(give(sure).value)
        assert spread_of(give(doubtful)) > spread_of(give(sure))


def test_intervals_of_clumped_parasites_hold_the_truth():
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        counts = rng.poisson(rng.gamma(2.0, 4.0 / 2.0, 30))
        rate = per_field(counted(int(counts.sum())), 30, dispersion(counts))
        covered += rate.low <= 4.0 <= rate.high
    assert covered >= 270


def test_fields_that_vary_by_chance_are_not_called_clumped():
    rng = np.random.default_rng(2)
    assert dispersion(rng.poisson(5.0, 2_000)) == pytest.approx(1.0, abs=0.1)
    assert dispersion(np.array([0.0, 20.0, 0.0, 20.0])) > 10
    assert dispersion(np.array([7.0])) == dispersion(np.zeros(5)) == 1.0
