"""Records that went to another process as columns are the records that were sent."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass, replace

import numpy as np

from raterscope.algorithms.clicks import fuse
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from raterscope.app.kinds.clicks.image_fusion import RecordBatch
from raterscope.app.outcome import Outcome


def same(first, second):
    if is_dataclass(first):
        return type(first) is type(second) and all(
            same(getattr(first, field.name), getattr(second, field.name)) for field in fields(first)
        )
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=first.dtype != bool)
    return first == second


def sent(records):
    return pickle.loads(pickle.dumps(RecordBatch.of(records))).records()


def test_fusions_of_different_sizes_and_failures_arrive_as_they_were():
    clicks = [separated_crowd(annotators, seed=annotators).clicks for annotators in (2, 5, 9)]
    fusions = [fuse(each) for each in clicks]
    fusions[1] = replace(fusions[1], score=np.zeros(len(fusions[1].clustering)))
    outcomes = [Outcome(str(number), fusion, "", "", 0.5) for number, fusion in enumerate(fusions)]
    for records in (clicks, fusions, outcomes, [*outcomes, Outcome("failed", None, "why", "", 0.1)]):
        assert all(map(same, sent(records), records))


def test_arrays_in_another_order_of_memory_or_of_other_types_arrive_too():
    (clicks,) = [separated_crowd(4, seed=1).clicks]
    fusion = fuse(clicks)
    turned = replace(fusion, marked=np.asfortranarray(fusion.marked))
    whole = replace(fusion, halves=np.ones((2, 3), dtype=np.int64))
    assert all(map(same, sent([fusion, turned, whole]), [fusion, turned, whole]))
