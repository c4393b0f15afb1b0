"""Crowds that the tests of dynamic IBCC fuse."""

import numpy as np

from raterscope.algorithms.labels import Labels


def make(task, annotator, label, classes=2, outputs=None, **options) -> Labels:
    outputs = outputs or classes
    names = [
        tuple(map(str, range(count)))
        for count in (max(task, default=-1) + 1, max(annotator, default=-1) + 1, outputs, classes)
    ]
    return Labels(np.array(task, int), np.array(annotator, int), np.array(label, int), *names, **options)


def crowd(seed=0, tasks=60, annotators=6, classes=3, accuracy=0.7) -> Labels:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    task = np.repeat(np.arange(tasks), annotators)
    annotator = np.tile(np.arange(annotators), tasks)
    right = rng.random(len(task)) < accuracy
    label = np.where(right, truth[task], rng.integers(0, classes, len(task)))
    return make(task, annotator, label, classes)
