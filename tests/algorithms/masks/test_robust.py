"""The robust fusion: the figures of an independent implementation, and what any likelihood must hold to."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

from raterscope.algorithms.masks.data import OPEN, MaskFusion, Masks, MasksError
from raterscope.algorithms.masks.distance import domain, signed_distance
from raterscope.algorithms.masks.robust import (
    GaussianSettings,
    GDPSettings,
    LaplaceSettings,
    StudentSettings,
    gaussian,
    gdp,
    laplace,
    student,
)
from raterscope.algorithms.progress import Cancelled

MODELS = {
    "gaussian": (gaussian, GaussianSettings),
    "laplace": (laplace, LaplaceSettings),
    "student": (student, StudentSettings),
    "gdp": (gdp, GDPSettings),
}
CLIP = float(np.log((1 - 1e-6) / 1e-6) / 5)


def run(name: str, masks: Masks, **values: object) -> MaskFusion:
    function, settings = MODELS[name]
    return function(masks, settings(**values))


def distances(masks: Masks, settings: LaplaceSettings) -> np.ndarray:
    """Measure every rater's signed distances, mm."""
    return np.stack([signed_distance(values, masks.spacing, settings.clip) for values in masks.values])


def crowd(shape: tuple[int, int, int] = (14, 22, 24), raters: int = 4, seed: int = 0) -> Masks:
    """Raters who see one ellipsoid, each with a boundary that wavers and an offset of his own."""
    generator = np.random.default_rng(seed)
    z, y, x = (np.arange(size) - (size - 1) / 2 for size in shape)
    away = 1 - np.sqrt((z[:, None, None] / 5) ** 2 + (y[:, None] / 7) ** 2 + (x / 8) ** 2)
    width = [0 if size == 1 else 2 for size in shape]
    values = [
        away + gaussian_filter(generator.normal(size=shape), width) + generator.normal(0, 0.05) > 0
        for _ in range(raters)
    ]
    return Masks(np.array(values), tuple("abcdefgh"[:raters]), (1.5, 1.0, 0.8))


@pytest.fixture(scope="session")
def nodule(real_data: Path) -> Masks:
    with np.load(real_data / "masks/lidc/nodulebin/nodulebin_03.npz", allow_pickle=False) as file:
        return Masks(file["masks"].astype(bool), ("1", "2", "3", "4"))


@pytest.mark.parametrize(
    ("name", "smooth", "bound", "voxels"),
    [
        ("gaussian", False, -785600.996, 6699),
        ("laplace", False, -598665.375, 6786),
        ("student", False, 943749.509, 6938),
        ("gdp", False, 431054.254, 7330),
        ("gaussian", True, -950599.005, 6588),
        ("laplace", True, -705771.108, 6229),
        ("student", True, 631816.063, 6561),
        ("gdp", True, 99467.690, 6677),
    ],
)
def test_as_printed_twenty_iterations_on_a_nodule_give_the_known_bound(nodule, name, smooth, bound, voxels):
    values = {"clip": CLIP, "floor": False, "max_iterations": 20, "tolerance": 0.0}
    if smooth:
        values |= {"spatial_prior": True, "spatial_spacing": 4.0, "spatial_radius": 12.0}
    result = run(name, nodule, **values)
    assert result.traces[0].objective[-1] == pytest.approx(bound, rel=1e-6)
    assert int(result.mask.sum()) == voxels
    assert len(result.traces[0].objective) == 20


@pytest.mark.parametrize(
    ("name", "bound", "voxels"),
    [("gaussian", -786068.073, 6799), ("laplace", -657992.767, 6781), ("student", -679717.434, 6796),
     ("gdp", -694779.547, 7469)],
)  # fmt: skip
def test_with_the_floor_a_nodule_converges_to_the_known_bound(nodule, name, bound, voxels):
    result = run(name, nodule, clip=CLIP, tolerance=2e-9, max_iterations=500)
    assert result.traces[0].converged
    assert result.traces[0].objective[-1] == pytest.approx(bound, rel=1e-6)
    assert abs(int(result.mask.sum()) - voxels) <= 5


@pytest.mark.parametrize("name", MODELS)
def test_a_settled_part_neither_delays_convergence_nor_moves_the_outline_elsewhere(nodule, name):
    before = run(name, nodule, clip=CLIP)
    known = np.full(nodule.shape, OPEN, dtype=np.int8)
    part = nodule.values.any(axis=0) & ~nodule.values.all(axis=0)
    part[:22], part[26:] = False, False
    known[part] = nodule.values[0][part]  # as with "use rater"
    after = run(name, replace(nodule, known=known), clip=CLIP)
    assert len(after.traces[0].objective) < 2 * len(before.traces[0].objective)
    assert after.traces[0].converged
    assert np.abs(after.bias.mean()) < 1e-3
    changed = (after.mask[0] != before.mask[0]) & ~part
    assert changed.sum() <= 0.02 * before.mask.sum()


@pytest.mark.parametrize("name", ["gaussian", "laplace", "student"])
def test_settling_certain_voxels_does_not_change_the_bound(name):
    masks, values = crowd(seed=3), {"clip": 20.0, "tolerance": 1e-10, "max_iterations": 600}
    free = run(name, masks, **values)
    known = np.full(masks.shape, OPEN, dtype=np.int8)
    window = tuple(slice(begin, begin + size) for begin, size in zip(free.origin, free.shape, strict=True))
    known[window][free.probability[0] > 1 - 1e-5] = 1
    assert (known == 1).sum() > 600
    settled = run(name, replace(masks, known=known), **values)
    assert settled.traces[0].objective[-1] == pytest.approx(free.traces[0].objective[-1], rel=1e-8)


@pytest.mark.parametrize(("floor", "smooth"), [(True, False), (False, True)])
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_never_falls(name, floor, smooth):
    values = {"dof": None} if name == "student" else {"shape": None} if name == "gdp" else {}
    masks = domain(crowd(seed=3), 2.763)
    known = np.full(masks.shape, OPEN, dtype=np.int8)
    known[3:5, 8:11, 8:11] = 1
    known[7, 2:9, 2:6] = 0
    for rows in (masks, replace(masks, known=known)):
        result = run(
            name, rows, floor=floor, spatial_prior=smooth, max_iterations=20, tolerance=0.0, **values
        )
        objective = result.traces[0].objective
        assert np.diff(objective).min() > -1e-9 * np.abs(objective).max()
        if floor:
            assert result.bias.mean() == pytest.approx(0, abs=1e-6)


def plain_double_pareto(data, floor, rounds, nu=2.0):
    """Eqs. 17 to 21, 26 and 27 in float64 with both scales stored, each updated once a round."""
    from scipy.special import pbdv

    raters, voxels = data.shape
    t = data.mean(axis=0)
    sigma = np.maximum(((data - t) ** 2).mean(axis=1), floor)
    s = np.full(voxels, sigma.mean() / raters)
    bias, beta, z2 = np.zeros(raters), 1 / sigma.mean(), np.ones(data.shape)
    doubt = 1 / (beta + voxels / sigma)
    for _ in range(rounds):
        e = ((data - t - bias[:, None]) ** 2 + s + doubt[:, None]) / sigma[:, None]
        for _ in range(6):  # tau and z, so that the rounds are as many as with the joint form
            tau, inverse = np.sqrt(z2 / e), np.sqrt(e / z2) + 1 / z2  # Table 2, C.9
            x = nu / np.sqrt(inverse)
            z2 = (nu + 2) * (nu + 3) / inverse * pbdv(-nu - 4, x)[0] / pbdv(-nu - 2, x)[0]  # A.14, K = 1
        precision = tau / sigma[:, None]
        s = 1 / precision.sum(axis=0)
        t = s * (precision * (data - bias[:, None])).sum(axis=0)
        doubt = 1 / (beta + precision.sum(axis=1))
        bias = doubt * (precision * (data - t)).sum(axis=1)
        remaining = (data - t - bias[:, None]) ** 2 + s + doubt[:, None]
        sigma = np.maximum((tau * remaining).mean(axis=1), floor)
        shift = bias.mean()
        bias, t = bias - shift, t + shift
        beta = raters / (bias**2 + doubt).sum()
    return t, bias, sigma


def test_the_papers_double_pareto_factorises_its_scales():
    masks = crowd((4, 10, 11), 3)
    result = run("gdp", masks, scales="factorised", max_iterations=30, tolerance=0.0)
    slope, h = 5.0, (1.5**2 + 1 + 0.8**2) / 3
    data = distances(masks, GDPSettings()).reshape(3, -1).astype(float) * slope
    t, bias, _ = plain_double_pareto(data, slope**2 * h / 12, 30)
    assert np.allclose(result.distance.ravel() * slope, t, atol=5e-3)
    assert np.allclose(result.bias[0] * slope, bias, atol=1e-3)
    joint = run("gdp", masks, max_iterations=30, tolerance=0.0)
    assert joint.traces[0].objective[-1] > result.traces[0].objective[-1]
    assert np.diff(result.traces[0].objective).min() > -1e-9 * abs(result.traces[0].objective[-1])


def test_ratios_of_parabolic_cylinder_functions_come_from_the_continued_fraction():
    from scipy.special import pbdv

    from raterscope.algorithms.masks.robust import ratio

    x = np.array([0.3, 1.0, 3.0, 8.0])
    for order in (0.5, 1.0, 3.0, 6.7):
        expected = [pbdv(-order - 2, item)[0] / pbdv(-order - 1, item)[0] for item in x]
        assert np.allclose(ratio(order, x), expected, rtol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_the_raters_does_not_matter(name):
    masks = crowd()
    order = [2, 0, 3, 1]
    other = replace(masks, values=masks.values[order], annotators=tuple(masks.annotators[p] for p in order))
    first, second = run(name, masks), run(name, other)
    assert np.allclose(second.distance, first.distance, atol=1e-3)
    assert np.allclose(second.bias[0], first.bias[0, order], atol=1e-4)
    assert np.allclose(second.variance[0], first.variance[0, order], rtol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_flipped_volume_gives_a_flipped_consensus(name):
    masks = crowd()
    other = replace(masks, values=np.ascontiguousarray(masks.values[:, ::-1, :, ::-1]))
    first, second = run(name, masks), run(name, other)
    assert np.allclose(second.distance[:, ::-1, :, ::-1], first.distance, atol=1e-3)


def test_the_slope_moves_no_contour():
    masks = crowd()
    first = run("laplace", masks, tolerance=1e-11)
    second = run("laplace", masks, tolerance=1e-11, slope=1.0)
    assert np.allclose(first.distance, second.distance, atol=2e-3)
    assert np.allclose(first.variance, second.variance, rtol=1e-2)


def plain_laplace(data: np.ndarray, floor: float, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The update equations in float64, voxel by voxel and with the scales stored: t, bias, Sigma."""
    raters, voxels = data.shape
    t = data.mean(axis=0)
    sigma = np.maximum(((data - t) ** 2).mean(axis=1), floor)
    s = np.full(voxels, sigma.mean() / raters)
    bias, beta = np.zeros(raters), 1 / sigma.mean()
    doubt = 1 / (beta + voxels / sigma)
    for _ in range(rounds):
        square = ((data - t - bias[:, None]) ** 2 + s + doubt[:, None]) / sigma[:, None]
        tau = 0.5 / np.sqrt(square)
        s = 1 / (tau / sigma[:, None]).sum(axis=0)
        t = s * (tau / sigma[:, None] * (data - bias[:, None])).sum(axis=0)
        doubt = 1 / (beta + tau.sum(axis=1) / sigma)
        bias = doubt * (tau * (data - t)).sum(axis=1) / sigma
        remaining = (data - t - bias[:, None]) ** 2 + s + doubt[:, None]
        sigma = np.maximum((tau * remaining).mean(axis=1), floor)
        t, bias = t + bias.mean(), bias - bias.mean()
        beta = raters / (bias**2 + doubt).sum()
    return t, bias, sigma


def test_float32_and_merged_voxels_give_what_float64_gives():
    from raterscope.algorithms.masks.robust import side_length

    masks = crowd(seed=5)
    settings = LaplaceSettings(max_iterations=30, tolerance=0.0)
    result = laplace(masks, settings)
    data = 5.0 * distances(masks, settings).astype(np.float64).reshape(4, -1)
    floor = (5 * side_length(masks.spacing, masks.shape)) ** 2 / 96
    t, bias, sigma = plain_laplace(data, floor, 30)
    assert np.allclose(result.distance.ravel() * 5, t, atol=1e-3)
    assert np.array_equal(result.mask.ravel(), t > 0)
    assert np.allclose(result.bias[0] * 5, bias, rtol=1e-4, atol=1e-5)
    assert np.allclose(result.variance[0] * 25 / 8, sigma, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_tau_is_the_mean_of_its_distribution_in_the_papers_table_2(name):
    masks = crowd()
    values = masks.values.copy()
    values[1, 5:9, 3:9, 16:23] = True
    leaky = replace(masks, values=values)
    result = run(name, leaky)
    if name == "gaussian":
        assert result.tau is None
        assert np.allclose(result.variance, result.sigma)
        return
    bias, sigma, nu = (figures[0][:, None, None, None] for figures in (result.bias, result.sigma, result.dof))
    away = distances(leaky, LaplaceSettings()) - result.distance[0] - bias
    square = (away**2 + result.deviation[0] ** 2) / sigma
    tau = {
        "laplace": 1 / (2 * np.sqrt(square)),
        "student": (nu + 1) / (nu + square),
        "gdp": (nu + 1) / (np.sqrt(square) * (nu + np.sqrt(square))),
    }[name]
    assert np.allclose(result.tau[0], tau, rtol=3e-3)
    alone = values[1] & ~values[[0, 2, 3]].any(axis=0)
    assert np.median(result.tau[0, 1][alone]) < 0.5 * np.median(result.tau[0, [0, 2, 3]][:, alone])


@pytest.mark.parametrize("name", MODELS)
def test_shares_add_up_to_all_and_a_leak_costs_the_rater_his_weight_there(name):
    masks = crowd(raters=4)
    values = masks.values.copy()
    values[1, 5:9, 3:9, 16:23] = True
    result = run(name, replace(masks, values=values))
    assert (result.weight[0].sum(axis=0, dtype=int) == 255).all()
    alone = values[1] & ~values[[0, 2, 3]].any(axis=0)
    edge = np.abs(result.distance[0]) < 1
    if name != "gaussian":
        assert result.weight[0, 1][alone].mean() < 0.5 * result.weight[0, 1][edge & ~alone].mean()


def test_a_rater_who_marks_too_much_has_a_bias_above_zero():
    masks = crowd(raters=4)
    from scipy.ndimage import binary_dilation

    values = masks.values.copy()
    values[3] = binary_dilation(values[3], iterations=2)
    result = run("gaussian", replace(masks, values=values))
    assert result.bias[0].argmax() == 3
    assert result.bias[0, 3] > 0.2


@pytest.mark.parametrize("name", MODELS)
def test_an_inverted_mask_or_the_whole_volume_hardly_moves_the_contour(name):
    """The mean of all biases, with one of several millimetres, moved it by a fifth of that."""
    masks = crowd((14, 40, 40), raters=5)
    usual = run(name, replace(masks, values=masks.values[:4], annotators=masks.annotators[:4]))
    for wrong in (~masks.values[4], np.ones_like(masks.values[4])):
        values = np.concatenate([masks.values[:4], wrong[None]])
        result = run(name, replace(masks, values=values))
        both = (result.mask & usual.mask).sum()
        assert 2 * both / (result.mask.sum() + usual.mask.sum()) > (0.9 if name == "gdp" else 0.95)
        assert result.bias[0, :4].mean() == pytest.approx(0, abs=1e-6)
        assert any("1 rater with outlines far from the others'" in notice for notice in result.notices)
    assert not any("far from" in notice for notice in usual.notices)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_settled_stays_and_teaches(name, smooth):
    masks = crowd(raters=5)
    free = run(name, masks, spatial_prior=smooth, max_iterations=20)
    worst = int(free.variance[0].argmax())
    known = np.full(masks.shape, OPEN, dtype=np.int8)
    known[masks.values[worst]] = 1
    known[~masks.values[worst]] = 0
    known[:, :, 13:] = OPEN
    result = run(name, replace(masks, known=known), spatial_prior=smooth, max_iterations=20)
    assert result.mask[0][known == 1].all()
    assert not result.mask[0][known == 0].any()
    assert (result.probability[0][known == 1] == 1).all()
    if name in {"gaussian", "student"}:  # those of the others rest on the floor
        assert result.variance[0, worst] < free.variance[0, worst]


def test_raters_who_agree_do_not_break_it():
    masks = crowd(raters=2)
    values = masks.values[[0, 0, 0, 1]]
    for name in MODELS:
        result = run(name, Masks(values, tuple("abcd"), masks.spacing))
        assert np.isfinite(result.distance).all()
        assert (result.variance > 0).all()
        assert np.isfinite(result.variance).all()
        assert (result.mask[0] != values[0]).mean() < 0.01


def test_distance_deviation_and_probability_can_be_computed_by_hand_of_the_gaussian():
    """All raters have equal weights everywhere: a weighted mean, its error, and the raters' spread."""
    masks, settings = crowd(raters=5, seed=2), GaussianSettings(tolerance=1e-10, max_iterations=2000)
    result = gaussian(masks, settings)
    unbiased = distances(masks, settings).astype(np.float64) - result.bias[0][:, None, None, None]
    certainty = 1 / result.variance[0]
    mean = np.average(unbiased, axis=0, weights=certainty)
    assert result.distance[0] == pytest.approx(mean, abs=1e-5)
    assert result.deviation == pytest.approx(certainty.sum() ** -0.5)
    scatter = ((unbiased - mean) ** 2).sum(axis=0) / (5 * 4)
    expected = norm.cdf(mean / np.sqrt(1 / certainty.sum() + scatter))
    assert result.probability[0] == pytest.approx(expected, abs=1e-5)


def test_two_raters_give_a_notice_that_only_the_sum_is_certain():
    assert "sum of the variances" in run("laplace", crowd(raters=2)).notices[0]


def test_one_slice_and_probabilities():
    masks = crowd(shape=(1, 30, 30))
    soft = 1 / (1 + np.exp(-5.0 * (masks.values.astype(np.float32) - 0.5)))
    assert run("student", masks).mask.any()
    result = run("laplace", Masks(soft, masks.annotators))
    votes = masks.values.sum(axis=0)
    assert result.mask[0][votes == 4].all()
    assert not result.mask[0][votes == 0].any()


def test_several_structures_are_refused():
    masks = Masks(np.zeros((2, 1, 4, 4), dtype=np.uint8), ("a", "b"), structures=("one", "two"))
    with pytest.raises(MasksError, match="one at a time"):
        laplace(masks)


def test_it_can_be_cancelled_and_shows_what_it_has():
    calls: list[object] = []

    def watch(fraction, words, *, objective=None, partial=None):
        if partial is not None and objective is not None:
            calls.append(partial())
            if len(calls) == 3:
                raise Cancelled

    with pytest.raises(Cancelled):
        laplace(crowd(), LaplaceSettings(tolerance=0.0), watch)
    assert all(isinstance(result, MaskFusion) and result.mask.any() for result in calls)


def test_the_probability_is_calibrated(real_data: Path):
    with np.load(real_data / "masks/synth_prostate.npz", allow_pickle=False) as file:
        shape = tuple(int(size) for size in file["shape"])
        values = np.unpackbits(file["masks"], count=int(np.prod(shape))).reshape(shape).view(bool)
        truth = np.unpackbits(file["truth"], count=int(np.prod(shape[1:]))).reshape(shape[1:]).view(bool)
        spacing = tuple(float(step) for step in file["spacing"])
    masks = domain(Masks(values, tuple("abcdefg"), spacing), 2.763)
    result = laplace(masks)
    box = tuple(slice(at, at + size) for at, size in zip(masks.origin, masks.shape, strict=True))
    inside, share = truth[box], result.probability[0]
    for low in (0.05, 0.3, 0.7):
        subset = (share >= low) & (share < low + 0.25)
        assert inside[subset].mean() == pytest.approx(share[subset].mean(), abs=0.12)
    overlap = 2 * (result.mask[0] & inside).sum() / (result.mask.sum() + inside.sum())
    assert overlap == pytest.approx(0.9769, abs=0.001)


def test_the_chosen_bumps_do_not_round_off_a_nodule(nodule):
    votes = nodule.values.sum(axis=0) > 2

    def dice(fusion: MaskFusion) -> float:
        return float(2 * (fusion.mask[0] & votes).sum() / (fusion.mask.sum() + votes.sum()))

    printed = run("laplace", nodule, spatial_prior=True, spatial_spacing=4.0, spatial_radius=12.0)
    assert dice(run("laplace", nodule, spatial_prior=True)) > dice(printed) + 0.01


@pytest.mark.parametrize("fuser", [gaussian, laplace, student])
def test_two_raters_who_cancel_each_other_out_leave_background(fuser):
    first = np.zeros((1, 60, 60), dtype=bool)
    first[0, 5:25, 5:25] = True
    alone = first.copy()
    alone[0, 30:55, 20:55] = True  # far from the outline of the other rater
    for raters in ((first, alone), (alone, first)):
        fused = fuser(Masks(np.stack(raters), ("a", "b"), (1.0, 1.0, 1.0)))
        assert fused.probability[0, 0, 40, 40] == 0.5
        assert not fused.mask[0, 0, 30:55, 20:55].any()
        assert fused.mask[0, 0, 10:20, 10:20].all()
        (number,) = (notice.split()[0] for notice in fused.notices if "tied" in notice)
        assert int(number.replace(",", "")) == (fused.probability == 0.5).sum() > 100
