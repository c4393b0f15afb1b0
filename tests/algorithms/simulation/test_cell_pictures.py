"""Pictures of cells show what they are said to show."""

import numpy as np
import pytest

from raterscope.algorithms.simulation.cell_pictures import STAGES, draw_cell

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
