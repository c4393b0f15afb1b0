"""Clicks that keep coming, for the tests: crowds to be followed, and what of two fusions differs."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import numpy as np

from raterscope.algorithms.clicks import Clicks
from raterscope.algorithms.clicks.stream import StreamPlan, advance_stream, begin_stream
from raterscope.algorithms.evaluation import match
from tests.algorithms.clicks.crowds import in_order, made, until

PLAN = StreamPlan()

HIDDEN = np.array([375.0, 375.0])


def crowd(annotators: int, positions=40, seed=0, stray=2, side=400.0) -> Clicks:
    """Draw annotators who mark each object once or not, and click at random besides."""
    generator = np.random.default_rng(seed)
    objects = np.stack(np.meshgrid(*[np.arange(25, side, side / 8)] * 2), axis=-1).reshape(-1, 2)[:positions]
    points, annotator_index = [], []
    for annotator in range(annotators):
        visible = objects[generator.random(len(objects)) < 0.75]
        own = np.concatenate(
            [visible + generator.normal(0, 2, visible.shape), generator.uniform(0, side, (stray, 2))]
        )
        points.append(generator.permutation(own))
        annotator_index += [annotator] * len(own)
    return made(np.concatenate(points), annotator_index, annotators, (0.0, 0.0, side, side))


def followed(clicks: Clicks, first: int, plan: StreamPlan = PLAN, **more):
    """Let all annotators after the first come one by one; give the state after each step."""
    states = [begin_stream(until(clicks, first), plan, **more)]
    for number in range(first + 1, len(clicks.annotators) + 1):
        states.append(advance_stream(states[-1], until(clicks, number), plan, **more))
    return states


def decided(fusion):
    return fusion.clustering.mean[fusion.detection.detected]


def changed(first, two, radius=4.0) -> int:
    """Count the detections that one of two fusions has alone."""
    result, other = decided(first), decided(two)
    return len(result) + len(other) - 2 * len(match(result, other, radius))


def with_more(clicks: Clicks, points, annotator, names=()) -> Clicks:
    points = np.asarray(points, dtype=float).reshape(-1, 2)
    return replace(
        clicks,
        x=np.append(clicks.x, points[:, 0]),
        y=np.append(clicks.y, points[:, 1]),
        annotator=np.append(clicks.annotator, np.asarray(annotator, dtype=int)),
        annotators=(*clicks.annotators, *names),
    )


def with_hidden(clicks: Clicks, annotators) -> Clicks:
    """Let some annotators click one more object."""
    noise = np.random.default_rng(1).normal(0, 2, (len(annotators), 2))
    more = with_more(clicks, HIDDEN + noise, list(annotators))
    return in_order(more, np.arange(len(clicks.annotators)))


def same(first, two) -> bool:
    if is_dataclass(first):
        return all(same(getattr(first, field.name), getattr(two, field.name)) for field in fields(first))
    if isinstance(first, np.ndarray):
        return first.dtype == two.dtype and first.tobytes() == two.tobytes()
    return first == two or (first != first and two != two)
