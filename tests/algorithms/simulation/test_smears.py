import numpy as np
import pytest

from raterscope.algorithms.simulation.smears import STAGES, draw_cell, render_smear


@pytest.fixture(scope="module")
def smear():
    return render_smear(7, parasites=12, artefacts=8, width=800, height=600)


def darkness(smear, positions, radius=12):
    """How much darker the darkest pixel near each place is than the film, in grey levels."""
    grey = smear.image.mean(axis=2)
    film = np.median(grey)
    result = []
    for x, y in positions:
        left, top = max(0, int(x) - radius), max(0, int(y) - radius)
        result.append(film - grey[top : int(y) + radius, left : int(x) + radius].min())
    return np.array(result)


def test_image_has_the_size_that_was_requested(smear):
    assert smear.image.shape == (600, 800, 3)
    assert smear.image.dtype == np.uint8
    assert smear.extent == (0.0, 0.0, 800.0, 600.0)


def test_the_same_seed_gives_the_same_picture(smear):
    second = render_smear(7, parasites=12, artefacts=8, width=800, height=600)
    assert np.array_equal(second.image, smear.image)
    assert np.array_equal(second.parasites, smear.parasites)
    other = render_smear(8, parasites=12, artefacts=8, width=800, height=600)
    assert not np.array_equal(other.image, smear.image)


def test_everything_requested_is_there_within_the_image_and_apart(smear):
    assert len(smear.parasites) == len(smear.clarity) == 12
    assert len(smear.artefacts) == len(smear.allure) == 8
    positions = np.concatenate([smear.parasites, smear.artefacts])
    assert (positions > 0).all()
    assert (positions < [800, 600]).all()
    gaps = np.hypot(*(positions[:, None] - positions[None]).transpose(2, 0, 1))
    gaps[np.diag_indices(len(positions))] = np.inf
    assert gaps.min() >= 30


def test_every_parasite_is_darker_than_the_film(smear):
    assert (darkness(smear, smear.parasites) > 30).all()


def test_parasites_are_bluer_than_the_film(smear):
    red, blue = smear.image[..., 0].astype(int), smear.image[..., 2].astype(int)
    film = np.median(blue - red)
    assert len(smear.parasites)
    for x, y in smear.parasites:
        patch = np.s_[int(y) - 10 : int(y) + 10, int(x) - 10 : int(x) + 10]
        assert (blue - red)[patch].max() > film + 20


def test_a_plainer_parasite_is_darker():
    faint, plain = [], []
    for seed in range(2):
        smear = render_smear(seed, parasites=20, artefacts=0, width=900, height=700)
        dark = darkness(smear, smear.parasites)
        order = np.argsort(smear.clarity)
        faint.extend(dark[order[:5]])
        plain.extend(dark[order[-5:]])
    assert np.mean(plain) > np.mean(faint) + 10


def test_film_is_pinkish_lilac_and_lit_unevenly(smear):
    red, green, blue = np.median(smear.image.reshape(-1, 3), axis=0)
    assert green < red
    assert green < blue
    assert 140 < green < 225
    grey = smear.image.mean(axis=2)
    middle = np.median(grey[200:400, 250:550])
    corners = np.median(np.concatenate([grey[:60, :60].ravel(), grey[-60:, -60:].ravel()]))
    assert middle > corners + 5


def test_a_crowded_picture_holds_fewer_and_keeps_them_apart():
    smear = render_smear(1, parasites=100, artefacts=0, width=200, height=150)
    assert 5 < len(smear.parasites) < 100
    assert len(smear.clarity) == len(smear.parasites)


def test_a_smear_without_parasites_is_possible():
    smear = render_smear(3, parasites=0, artefacts=0, width=200, height=200)
    assert smear.parasites.shape == (0, 2)
    assert smear.artefacts.shape == (0, 2)


@pytest.mark.parametrize(("size", "count"), [((40, 600), 3), ((600, 40), 3), ((600, 600), -1)])
def test_impossible_smears_are_refused(size, count):
    with pytest.raises(ValueError, match="smear"):
        render_smear(1, parasites=count, width=size[0], height=size[1])


SEEDS = range(12)


def stained(stage: str, difficulty: float) -> float:
    """Tell how much darker than the cell its darkest part is, in green light, which chromatin absorbs."""
    depth = []
    for seed in SEEDS:
        inside = draw_cell(seed, stage, difficulty)[20:60, 20:60, 1].astype(float)
        depth.append(np.median(inside) - np.quantile(inside, 0.01))
    return float(np.mean(depth))


def test_same_arguments_give_the_same_picture_and_others_another() -> None:
    picture = draw_cell(3, "ring", 0.4, 96)
    assert picture.shape == (96, 96, 3)
    assert picture.dtype == np.uint8
    np.testing.assert_array_equal(picture, draw_cell(3, "ring", 0.4, 96))
    assert not np.array_equal(picture, draw_cell(4, "ring", 0.4, 96))


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_parasite_is_dark_and_the_fainter_the_harder(stage: str) -> None:
    plain, hard = stained(stage, 0.0), stained(stage, 0.9)
    assert plain > 4 * stained("uninfected", 0.0)
    assert hard < 0.7 * plain


def test_a_hard_cell_without_parasite_has_something_like_one() -> None:
    assert stained("uninfected", 0.9) > 2 * stained("uninfected", 0.0)


def test_the_cell_is_in_the_middle_and_darker_than_the_film() -> None:
    for seed in SEEDS:
        green = draw_cell(seed, "uninfected")[..., 1].astype(float)
        assert np.median(green[35:45, 35:45]) < np.quantile(green, 0.95) - 10


@pytest.mark.parametrize(
    ("stage", "difficulty", "size"), [("egg", 0.0, 80), ("ring", 1.5, 80), ("ring", 0.0, 20)]
)
def test_what_cannot_be_drawn(stage: str, difficulty: float, size: int) -> None:
    with pytest.raises(ValueError, match=r"cannot be drawn"):
        draw_cell(1, stage, difficulty, size)
