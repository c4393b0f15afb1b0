"""Merging voxels that all raters labelled alike loses nothing."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.voting import box_of, labels_of, patterns_of
from tests.algorithms.masks.staple_cases import named, noisy


@pytest.mark.parametrize(("raters", "classes"), [(1, 2), (4, 2), (17, 2), (40, 2), (3, 5), (11, 4)])
@pytest.mark.parametrize("settle", [False, True])
def test_every_voxel_gets_its_labels_back(raters, classes, settle):
    labels, _ = noisy(3, raters, classes=classes)
    labels[:, :2] = labels[:, :, -1:] = 0
    known = np.full(labels.shape[1:], OPEN, dtype=np.int8)
    known[4:6, 3, 2:9] = 0
    known[4:6, 5, 2:9] = 1
    masks = named(
        labels,
        structures=tuple(f"s{k}" for k in range(1, classes)),
        known=known if settle else None,
        origin=(1, 2, 3),
        frame=(20, 30, 40),
    )
    patterns = patterns_of(masks)
    box = tuple(slice(at, at + n) for at, n in zip(patterns.origin, patterns.shape, strict=True))
    assert np.array_equal(np.moveaxis(patterns.labels[patterns.row], -1, 0), labels[:, *box])
    assert labels[:, *box].sum() == labels.sum()
    assert np.array_equal(patterns.count, np.bincount(patterns.row.ravel(), minlength=len(patterns.labels)))
    rows = np.column_stack([patterns.labels, patterns.settled])
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert not patterns.labels[0].any()
    assert patterns.settled[0] == OPEN
    if settle:
        assert np.array_equal(patterns.settled[patterns.row], known[box])


def test_probabilities_count_above_one_half_and_above_the_other_structures():
    first = named(np.array([[[[0.5, 0.51]]]], dtype=np.float32))
    assert labels_of(first).ravel().tolist() == [0, 1]
    maps = np.array([[[[[0.4, 0.5, 0.2]]], [[[0.3, 0.1, 0.7]]]]], dtype=np.float32)
    assert labels_of(named(maps, structures=("a", "b"))).ravel().tolist() == [1, 1, 2]


def test_voxels_settled_as_marked_widen_the_box():
    labels = np.zeros((2, 6, 7, 8), dtype=np.uint8)
    known = np.full(labels.shape[1:], OPEN, dtype=np.int8)
    assert box_of(labels, known) is None
    labels[1, 2, 3, 4] = 1
    known[0, 0, 0] = 0
    known[4, 5, 1:3] = 1
    assert box_of(labels, known) == ((2, 3, 1), (3, 3, 4))
