"""Clusters of similar raters over cases that some raters annotated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.annotators.similarity import CaseAgreement, cluster_raters, same_consensus
from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.mixture import mixture


def _case(sides: dict[str, int]) -> CaseAgreement:
    of = np.array(list(sides.values()))
    return CaseAgreement(tuple(sides), (of[:, None] == of).astype(float))


def test_the_distance_is_the_share_of_common_cases_in_another_consensus() -> None:
    cases = [_case({"a": 0, "b": 0, "c": 1}), _case({"a": 0, "b": 1, "c": 1}), _case({"a": 0, "b": 0})]
    tree = cluster_raters(cases)
    assert tree.names == ("a", "b", "c")
    np.testing.assert_allclose(tree.distance, [[0, 1 / 3, 1], [1 / 3, 0, 1 / 2], [1, 1 / 2, 0]])
    np.testing.assert_array_equal(tree.common, [[3, 3, 2], [3, 3, 2], [2, 2, 2]])
    np.testing.assert_allclose(tree.linkage[:, 2], [1 / 3, 1.0])
    assert not tree.notices


def test_cutting_gives_the_groups_of_that_height() -> None:
    cases = [_case({"a": 0, "d": 0, "b": 1, "c": 1}), _case({"a": 0, "d": 0, "b": 1, "c": 2})]
    tree = cluster_raters(cases)
    assert {frozenset(group) for group in tree.cut(0.1)} == {frozenset("ad"), frozenset("b"), frozenset("c")}
    assert {frozenset(group) for group in tree.cut(0.5)} == {frozenset("ad"), frozenset("bc")}
    assert {frozenset(group) for group in tree.cut(1.0)} == {frozenset("abcd")}
    assert [name for group in tree.cut(0.5) for name in group] == [tree.names[at] for at in tree.order]


def test_raters_who_never_met_are_joined_last_with_a_notice() -> None:
    tree = cluster_raters([_case({"a": 0, "b": 1}), _case({"b": 0, "c": 0})])
    assert np.isnan(tree.distance[0, 2])
    assert tree.common[0, 2] == 0
    assert tree.linkage[-1, 2] > 1
    assert tree.cut(1.0) == (("a",), ("b", "c")) or tree.cut(1.0) == (("b", "c"), ("a",))
    assert "a and c" in tree.notices[0]


def test_the_order_of_cases_and_raters_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    cases = [_case({name: int(rng.integers(2)) for name in "abcdef"}) for _ in range(7)]
    turned = []
    for case in reversed(cases):
        order = rng.permutation(6)
        names = tuple(case.annotators[at] for at in order)
        turned.append(CaseAgreement(names, case.similarity[np.ix_(order, order)]))
    first, other = cluster_raters(cases), cluster_raters(turned)
    np.testing.assert_allclose(first.distance, other.distance)
    np.testing.assert_allclose(first.linkage, other.linkage)


def test_a_rater_follows_the_consensus_of_the_highest_responsibility() -> None:
    same = same_consensus([np.array([0.9, 0.4, 0.2]), np.array([0.1, 0.6, 0.8])])
    np.testing.assert_array_equal(same, [[1, 0, 0], [0, 1, 1], [0, 1, 1]])


def test_one_rater_is_a_tree_of_one_leaf() -> None:
    tree = cluster_raters([_case({"a": 0})])
    assert tree.cut(0.5) == (("a",),)
    assert tree.linkage.shape == (0, 4)


@pytest.mark.parametrize(
    ("names", "similarity"),
    [(("a", "b"), np.eye(3)), (("a", "a"), np.eye(2)), (("a", "b"), [[1, 0.2], [0.3, 1]]), (("a",), [[2.0]])],
)
def test_similarities_that_are_invalid_are_refused(names: tuple[str, ...], similarity: object) -> None:
    with pytest.raises(ValueError, match=r"similarit"):
        CaseAgreement(names, np.array(similarity, dtype=float))
    with pytest.raises(ValueError, match="no case"):
        cluster_raters([])


def test_experts_agree_more_with_each_other_than_with_the_crowd(real_data: Path) -> None:
    cases = []
    for path in sorted((real_data / "masks/bubil/ds1").glob("*.npz"))[:12]:
        masks, names = [], []
        with np.load(path) as file:
            for kind in ("expert", "crowd"):
                shape = tuple(file[f"{kind}_shape"])
                masks.append(np.unpackbits(file[kind], count=int(np.prod(shape))).reshape(shape[0], -1))
                names += [f"{kind} {number}" for number in range(shape[0])]
        flat = np.concatenate(masks).astype(np.float32)
        sizes = flat.sum(axis=1)
        dice = 2 * (flat @ flat.T) / (sizes[:, None] + sizes)
        cases.append(CaseAgreement(tuple(names), dice.astype(float)))
    tree = cluster_raters(cases)
    expert = np.array([name.startswith("expert") for name in tree.names])
    among = tree.distance[np.ix_(expert, expert)][np.triu_indices(expert.sum(), 1)].mean()
    assert among < tree.distance[np.ix_(expert, ~expert)].mean()
    assert (tree.common == 12).all()


def test_a_mixture_of_each_case_feeds_the_tree() -> None:
    z, y, x = np.mgrid[:1, :40, :40]
    first = (y - 20) ** 2 + (x - 16) ** 2 < 100
    other = (y - 20) ** 2 + ((x - 22) / 1.3) ** 2 < 100
    cases = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        masks = np.stack(
            [np.roll(mask, rng.integers(-1, 2, 2), (1, 2)) for mask in (first,) * 3 + (other,) * 2]
        )
        fusion = mixture(Masks(masks, tuple("abcde")))
        shares = [alternative.responsibility for alternative in fusion.alternatives] or [np.ones(5)]
        cases.append(CaseAgreement(fusion.annotators, same_consensus(shares)))
    assert z.size
    assert cluster_raters(cases).distance[:3, 3:].mean() > cluster_raters(cases).distance[:3, :3].mean()
