"""The small matrices beside the full ones, and the paper's own data."""

import csv
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.pairs import Pairs, PairsError
from raterscope.algorithms.pairs import paths as grams_module
from raterscope.algorithms.pairs.paths import gram_matrices, least_squares, scale_grams


def read(root: Path, name: str) -> Pairs:
    """Read a real crowd without what was left open; annotators in the order of their numbers."""
    with (root / f"pairs/{name}.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["choice"]]
    annotators = sorted(
        {row["annotator"] for row in rows}, key=lambda word: (not word.isdigit(), word.zfill(9))
    )
    if not annotators[0].isdigit():
        annotators.sort()
    items = sorted({row[side] for row in rows for side in ("left", "right")})
    annotator = {word: index for index, word in enumerate(annotators)}
    item = {word: index for index, word in enumerate(items)}
    number = {"left": 1.0, "right": -1.0, "tie": 0.0}
    return Pairs(
        np.array([annotator[row["annotator"]] for row in rows]),
        np.array([item[row["left"]] for row in rows]),
        np.array([item[row["right"]] for row in rows]),
        np.array([number[row["choice"]] for row in rows]),
        tuple(annotators),
        tuple(items),
    )


def scattered(
    seed: int = 0, annotators: int = 12, items: int = 9, count: int = 400, groups: int = 1, biased: int = 3
) -> Pairs:
    """Draw graded comparisons within groups of items, the first annotators biased to the left."""
    generator = np.random.default_rng(seed)
    annotator = generator.integers(0, annotators, count)
    group = generator.integers(0, groups, count)
    size = items // groups
    left = generator.integers(0, size, count)
    right = (left + generator.integers(1, size, count)) % size
    left, right = left + group * size, right + group * size
    score, bias = generator.normal(size=items), np.where(np.arange(annotators) < biased, 1.0, 0.0)
    choice = score[left] - score[right] + bias[annotator] + generator.normal(size=count)
    return Pairs(
        annotator,
        left,
        right,
        choice,
        tuple(f"annotator {k}" for k in range(annotators)),
        tuple(f"item {i}" for i in range(items)),
    )


def full(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Build delta0 and A with a row a comparison."""
    rows = np.arange(len(pairs))
    difference = np.zeros((len(pairs), len(pairs.items)))
    difference[rows, pairs.left] = 1.0
    difference[rows, pairs.right] = -1.0
    people = np.zeros((len(pairs), len(pairs.annotators)))
    people[rows, pairs.annotator] = 1.0
    return difference, people


@pytest.mark.parametrize("groups", [1, 3])
def test_the_small_matrices_are_those_of_the_full_form(groups):
    pairs = scattered(groups, groups=groups)
    difference, people = full(pairs)
    hat = difference @ np.linalg.pinv(difference)
    remaining = people - hat @ people
    small = gram_matrices(pairs)
    assert small.gram == pytest.approx(people.T @ remaining, abs=1e-11)
    assert small.pull == pytest.approx(remaining.T @ pairs.choice, abs=1e-11)
    assert small.square == pytest.approx(pairs.choice @ (pairs.choice - hat @ pairs.choice))
    assert small.rank == np.linalg.matrix_rank(difference)


def test_least_squares_is_that_of_all_columns_at_once():
    pairs = scattered(2, groups=3)
    design = np.hstack(full(pairs))
    fitted, *_ = np.linalg.lstsq(design, pairs.choice)
    small = gram_matrices(pairs)
    problem, informed = scale_grams(small)
    result = least_squares(small, problem)
    assert informed.all()
    assert result.scaled / problem.length == pytest.approx(fitted[9:], abs=1e-10)
    assert result.residual == pytest.approx(((pairs.choice - design @ fitted) ** 2).sum())
    assert result.freedom == len(pairs) - np.linalg.matrix_rank(design)
    assert np.linalg.norm(problem.gram, axis=0).min() >= 1.0


@pytest.mark.parametrize(
    ("name", "freedom", "variance", "smallest"),
    [
        ("worldcollege", 8223, 0.6906549182058102, 0.8921333632889475),
        ("lf_quality", 26215, 0.7103822955665889, 0.9919070312064637),
        ("music_sigir2010", 2619, 0.35257315976560183, 0.4231947481319105),
    ],
)
def test_real_crowds_have_the_noise_that_is_known(real_data, name, freedom, variance, smallest):
    small = gram_matrices(read(real_data, name))
    problem, informed = scale_grams(small)
    result = least_squares(small, problem)
    assert informed.all()
    assert result.freedom == freedom
    assert result.variance == pytest.approx(variance, abs=1e-9)
    assert np.linalg.eigvalsh(problem.gram)[0] == pytest.approx(smallest, abs=1e-8)


def test_who_is_alone_on_items_cannot_be_reported():
    """The bias of the only annotator of an item fits its score as well; the others are as without them."""
    pairs = scattered(3)
    alone = Pairs(
        np.append(pairs.annotator, [12] * 6),
        np.append(pairs.left, [9] * 6),
        np.append(pairs.right, [10] * 6),
        np.append(pairs.choice, [1.0, 0.5, 1.0, 2.0, 1.0, 0.7]),
        (*pairs.annotators, "alone"),
        (*pairs.items, "one", "other"),
    )
    small = gram_matrices(alone)
    problem, informed = scale_grams(small)
    assert informed.tolist() == [True] * 12 + [False]
    without = gram_matrices(pairs)
    assert problem.pull == pytest.approx(scale_grams(without)[0].pull, abs=1e-12)


def test_items_always_on_the_same_side_leave_no_annotator_to_show():
    """All biases together are then the same as a difference of scores; one who is not tested changes that."""
    pairs = scattered(4, items=8)
    left, right = pairs.left % 4, 4 + pairs.right % 4
    fixed = Pairs(pairs.annotator, left, right, pairs.choice, pairs.annotators, pairs.items)
    small = gram_matrices(fixed)
    assert not scale_grams(small)[1].any()
    remaining = scale_grams(gram_matrices(fixed, among=np.arange(12) > 0))[0]
    assert remaining.tested.tolist() == list(range(1, 12))


def test_a_fit_without_noise_leaves_none():
    pairs = scattered(5)
    perfect = Pairs(
        pairs.annotator, pairs.left, pairs.right, (pairs.left - pairs.right) * 1.0, pairs.annotators,
        pairs.items,
    )  # fmt: skip
    small = gram_matrices(perfect)
    assert least_squares(small, scale_grams(small)[0]).residual == 0.0


def test_more_linked_items_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr(grams_module, "MAX_LINKED", 8)
    with pytest.raises(PairsError, match="9 items are linked by comparisons; expected at most 8"):
        gram_matrices(scattered())


def test_more_annotators_than_fit_are_refused_unless_they_are_not_tested(monkeypatch):
    monkeypatch.setattr(grams_module, "MAX_TESTED", 11)
    pairs = scattered()
    with pytest.raises(PairsError, match="12 annotators are to be tested; expected at most 11"):
        gram_matrices(pairs)
    assert len(gram_matrices(pairs, among=np.arange(12) > 0).annotators) == 11
