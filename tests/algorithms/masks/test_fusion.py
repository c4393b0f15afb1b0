"""Any algorithm on any masks: plans, what is trivial, several structures, what is settled."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import OPEN, Masks
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, report_on, stack
from raterscope.algorithms.masks.voting import majority
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.settings import SettingsError

NAMES = ("a", "b", "c", "d")


def balls(radii: tuple[float, ...], size: int = 24) -> np.ndarray:
    """Balls about the middle, one a rater, the last one beside it."""
    z, y, x = np.mgrid[:size, :size, :size] - size / 2 + 0.5
    away = np.sqrt(z**2 + y**2 + x**2)
    return np.array([away <= radius for radius in radii])


@pytest.fixture(scope="module")
def masks() -> Masks:
    return Masks(balls((6.0, 6.5, 7.0, 9.0)), NAMES)


def test_the_progress_of_measuring_never_falls_and_any_step_of_it_can_be_cancelled(masks: Masks) -> None:
    fusion, informed = fuse(masks), []
    report_on(fusion, masks, lambda fraction, words, **_: informed.append((fraction, words)))
    fractions = [fraction for fraction, _ in informed]
    assert fractions == sorted(fractions)
    # How often the program waits, and so how many steps it reports, depends on the load of the machine.
    for at in sorted(set(fractions))[::5]:

        def cancel(fraction: float, _words: str, at: float = at, **_: object) -> None:
            if fraction >= at:
                raise Cancelled

        with pytest.raises(Cancelled):
            report_on(fusion, masks, cancel)


@pytest.mark.parametrize("name", FUSERS)
def test_every_algorithm_finds_a_consensus_between_the_raters(name: str, masks: Masks) -> None:
    fusion = fuse(masks, MaskPlan.make(name))
    mask = np.zeros(masks.shape, dtype=bool)
    mask[tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))] = fusion.mask[0]
    assert (masks.values.all(axis=0) <= mask).all()
    assert (mask <= masks.values.any(axis=0)).all()
    assert fusion.frame == masks.shape
    assert fusion.probability.min() >= 0
    assert fusion.probability.max() <= 1


@pytest.mark.parametrize("name", FUSERS)
def test_who_sets_nothing_gets_the_defaults(name: str, masks: Masks) -> None:
    algorithm = FUSERS[name]
    first, other = algorithm.run(masks), algorithm.run(masks, algorithm.settings())
    np.testing.assert_array_equal(first.probability, other.probability)


@pytest.mark.parametrize("name", FUSERS)
def test_a_stored_plan_is_read_back(name: str) -> None:
    plan = MaskPlan.make(name)
    assert MaskPlan.from_dict(plan.as_dict()) == plan
    assert FUSERS[name].title in plan.in_words()


@pytest.mark.parametrize("name", FUSERS)
def test_settled_voxels_are_held(name: str, masks: Masks) -> None:
    known = np.full(masks.shape, OPEN, dtype=np.int8)
    known[12, 12, 21:23], known[12, 12, 11:13] = 1, 0
    fusion = fuse(replace(masks, known=known), MaskPlan.make(name))
    here = np.array([[12, 12, 21], [12, 12, 22], [12, 12, 11], [12, 12, 12]]) - fusion.origin
    assert [bool(fusion.mask[0, z, y, x]) for z, y, x in here] == [True, True, False, False]


def test_what_is_not_known_is_reported() -> None:
    with pytest.raises(SettingsError, match="laplac is no algorithm for masks; expected one of laplace,"):
        MaskPlan.make("laplac")
    with pytest.raises(SettingsError, match="radius is not a setting here"):
        MaskPlan.make("staple", {"radius": "3"})


@pytest.mark.parametrize(
    ("values", "words", "voxels"),
    [
        (balls((6.0,)), "returned unchanged", int(balls((6.0,)).sum())),
        (np.zeros((4, 5, 6, 7), dtype=bool), "No rater marked anything", 0),
        (np.ones((4, 5, 6, 7), dtype=bool), "Every rater marked every voxel", 210),
    ],
)
def test_where_there_is_nothing_to_estimate_that_is_reported(
    values: np.ndarray, words: str, voxels: int
) -> None:
    fusion = fuse(Masks(values, NAMES[: len(values)]))
    assert words in fusion.notices[0]
    assert int(fusion.mask.sum()) == voxels


@pytest.mark.parametrize("name", FUSERS)
def test_several_structures_have_a_consensus_each(name: str, masks: Masks) -> None:
    labels = masks.values.astype(np.uint8)
    labels[:, :, :, 12:] *= 2
    fusion = fuse(Masks(labels, NAMES, structures=("left", "right")), MaskPlan.make(name))
    left, right = fusion.mask.sum(axis=(1, 2, 3))
    assert left == pytest.approx(right, rel=0.02)
    assert fusion.bias.shape == (2, 4)


def test_fusions_of_single_structures_are_laid_together(masks: Masks) -> None:
    first = fuse(masks)
    other = fuse(Masks(np.roll(masks.values, 5, axis=3), NAMES, structures=("other",)))
    both = stack([first, other])
    assert both.structures == ("structure", "other")
    assert both.mask.sum(axis=(1, 2, 3)).tolist() == [first.mask.sum(), other.mask.sum()]
    assert both.weight is not None
    assert both.weight.shape == (2, 4, *both.shape)


def test_the_report_names_raters_who_draw_beyond(masks: Masks) -> None:
    report = report_on(fuse(masks), masks)
    assert (np.diff(report.offset) > 0).all()
    assert report.offset[3] == pytest.approx(2.25, abs=0.5)
    assert report.compared[3].sensitivity == 1.0
    assert report.pair_dice[0, 3] == pytest.approx(2 * 6**3 / (6**3 + 9**3), rel=0.05)
    assert report.weight.sum() == pytest.approx(1.0, abs=0.02)
    assert report.weight.argmin() == 3


def test_the_report_is_the_same_for_masks_cut_to_less_than_the_domain(masks: Masks) -> None:
    plan = MaskPlan.make("laplace", {"clip": "4"})
    cut = Masks(masks.values[:, 2:-2, 2:-2, 2:-2], NAMES, origin=(2, 2, 2), frame=masks.shape)
    whole, part = report_on(fuse(masks, plan), masks), report_on(fuse(cut, plan), cut)
    assert part.tau == pytest.approx(whole.tau)
    assert part.weight == pytest.approx(whole.weight)


def test_the_methods_text_lists_the_differences_from_the_paper():
    printed = MaskPlan.make("gdp", {"scales": "factorised", "floor": "no"}).in_words()
    assert "floor and biases are recentred" not in printed
    assert "fixed point" in printed
    assert "instead of q(tau) q(z) (eq. 21)" in MaskPlan.make("gdp").in_words()
    assert "instead of eq. 28" in MaskPlan.make("student").in_words()
    assert "flat prior" not in MaskPlan.make("laplace", {"spatial_prior": "yes"}).in_words()
    assert "instead of Algorithm 1" in MaskPlan.make("mixture").in_words()
    assert "Algorithm 1;" not in MaskPlan.make("mixture", {"as_published": "yes"}).in_words()
    assert "differences" not in MaskPlan.make("majority").in_words()


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("beyond", [1, -1])
def test_the_bias_is_the_mean_distance_over_the_area_of_the_outline(axis: int, beyond: int) -> None:
    """One side of a box moves: the bias is the move by its share of the surface, except for edges."""
    spacing = (2.4, 0.7, 0.6667)
    box = np.zeros((60, 80, 80), dtype=bool)
    side = [slice(10, 50), slice(10, 70), slice(10, 70)]
    box[tuple(side)] = True
    end = side[axis].stop
    side[axis] = slice(min(end, end + beyond), max(end, end + beyond))
    moved = box.copy()
    moved[tuple(side)] = beyond > 0
    masks = Masks(np.stack([box, box, box, moved]), NAMES, spacing)
    report = report_on(majority(masks), masks)
    lengths = np.array(spacing) * (40, 60, 60)
    areas = lengths.prod() / lengths
    expected = beyond * spacing[axis] * areas[axis] / (2 * areas.sum())
    assert report.offset[:3].tolist() == [0, 0, 0]
    assert report.offset[3] == pytest.approx(expected, rel=0.25)


def test_a_stray_mark_counts_for_the_bias_as_if_it_were_20_mm_away() -> None:
    values = np.zeros((3, 1, 600, 60), dtype=bool)
    values[:, 0, 10:30, 10:30] = True
    values[2, 0, 590:592, 10:12] = True
    masks = Masks(values, NAMES[:3], (1.0, 1.0, 1.0))
    report = report_on(majority(masks), masks)
    assert report.offset[2] == pytest.approx(20 * 8 / (80 + 80 + 8))
