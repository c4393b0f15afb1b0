"""Speed of labels fused, beside crowd-kit's Dawid-Skene in the same run, and in how much memory.

Usage: OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.labels_speed [full]

"full" adds crowd-kit on ten million votes, which takes it minutes and more than 2 GB. Each figure is of a
process of its own that draws the votes, fuses a few, and then all of them; the best of three where they are a
million. Each method goes on until it finds that it has converged: ours when no task's probabilities change by
the tolerance, crowd-kit's when its bound rises by less than 1e-5 a vote, which is sooner.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time

import numpy as np

from raterscope.algorithms.annotators.communities import communities
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.dynamic import DynamicSettings, dynibcc
from raterscope.algorithms.labels.ibcc import dawid_skene, ibcc
from raterscope.algorithms.labels.pooled import pooled
from tests.benchmarks.measuring import Watcher, most_memory

CASES = ((1_000_000, 2), (1_000_000, 5), (10_000_000, 2), (10_000_000, 5))

FEW = 20_000
"""Votes that are fused first: libraries are loaded, and what is compiled comes from its cache."""

METHODS = {
    "pooled": pooled,
    "ibcc": ibcc,
    "dawid_skene": dawid_skene,
    "dynibcc, 2 iterations": lambda labels, watch: dynibcc(labels, DynamicSettings(iterations=2), watch),
    "dynibcc, 12 iterations": lambda labels, watch: dynibcc(labels, DynamicSettings(iterations=12), watch),
}


def crowd(
    votes: int, classes: int, seed: int = 0, annotators: int | None = None
) -> tuple[Labels, np.ndarray]:
    """Draw ten votes a task in no order, a thousand an annotator by default, right 55 to 95 % of the time.

    Of more than two classes the worst annotators are right 40 % of the time.
    """
    generator = np.random.default_rng(seed)
    tasks, annotators = votes // 10, annotators or max(10, votes // 1_000)
    truth = generator.integers(0, classes, tasks, dtype=np.int16)
    task = generator.permutation(np.repeat(np.arange(tasks, dtype=np.int32), 10))
    annotator = generator.integers(0, annotators, votes, dtype=np.int32)
    accuracy = generator.uniform(0.55 if classes == 2 else 0.4, 0.95, annotators)
    wrong = generator.random(votes, dtype=np.float32) > accuracy[annotator]
    label = truth[task]
    label[wrong] += generator.integers(1, classes, int(wrong.sum()), dtype=np.int16)
    label %= classes
    names = tuple(f"class {j}" for j in range(classes))
    labels = Labels(
        task,
        annotator,
        label,
        tuple(f"task {i}" for i in range(tasks)),
        tuple(f"annotator {k}" for k in range(annotators)),
        names,
        names,
    )
    return labels, truth


def measure(method: str, votes: int, classes: int) -> None:
    """Fuse with one of ours, or with crowd-kit, and print the figures."""
    few, _ = crowd(FEW, classes)
    labels, truth = crowd(votes, classes)
    run = peer if method == "crowd-kit" else ours
    run(few, method)
    times = 3 if votes <= 1_000_000 else 1
    result = min((run(labels, method) for _ in range(times)), key=lambda measurement: measurement["seconds"])
    result["memory"] = most_memory() / 2**10
    result["accuracy"] = float((np.array(result.pop("label")) == truth).mean())
    print(json.dumps(result))


def ours(labels: Labels, method: str) -> dict[str, object]:
    watch = Watcher()
    start = time.perf_counter()
    fusion = METHODS[method](labels, watch=watch)
    return {
        "seconds": time.perf_counter() - start,
        "silence": watch.longest,
        "iterations": len(fusion.trace.change),
        "label": fusion.label(),
    }


def peer(labels: Labels, _: str) -> dict[str, object]:
    import pandas
    from crowdkit.aggregation import DawidSkene

    table = pandas.DataFrame({"task": labels.task, "worker": labels.annotator, "label": labels.label})
    start = time.perf_counter()
    model = DawidSkene(100).fit(table)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "iterations": len(model.loss_history_),
        "label": model.labels_.sort_index().to_numpy(),
    }


def apart(method: str, votes: int, classes: int) -> dict[str, float]:
    """Measure in a process of its own."""
    program = (
        f"from tests.benchmarks import labels_speed; labels_speed.measure({method!r}, {votes}, {classes})"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def planted(annotators: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the confusion matrices of five kinds of annotators, and which kind each is of."""
    generator = np.random.default_rng(0)
    prototypes = generator.dirichlet(np.ones(3), (5, 3))
    kind = generator.integers(0, 5, annotators)
    draws = generator.standard_gamma(60 * prototypes[kind])
    return draws / draws.sum(axis=2, keepdims=True), kind


def main() -> None:
    full = "full" in sys.argv[1:]
    known = importlib.util.find_spec("crowdkit") is not None
    if not known:
        print("crowd-kit is not installed: pip install 'raterscope[bench]' to measure beside it")
    few, _ = crowd(FEW, 2)
    start = time.perf_counter()
    ibcc(few)
    print(f"first call, compilation or its cache: {time.perf_counter() - start:.2f} s")
    columns = ("votes", 12), ("classes", 8), ("method", 16), ("time", 9), ("turns", 7), ("right", 8)
    print(
        "".join(f"{name:>{width}s}" for name, width in (*columns, ("silence", 9), ("memory", 9), ("peer", 7)))
    )
    for votes, classes in CASES:
        beside = known and (full or votes <= 1_000_000)
        other = apart("crowd-kit", votes, classes) if beside else None
        methods = [(name, apart(name, votes, classes)) for name in ("pooled", "ibcc", "dawid_skene")]
        for name, groups in [*methods, *([("crowd-kit", other)] if other else [])]:
            print(
                f"{votes:12,d}{classes:8d}{name:>16s}{groups['seconds']:8.2f}s{groups['iterations']:7d}"
                f"{groups['accuracy']:8.4f}"
                + (f"{groups['silence'] * 1e3:7.0f}ms" if "silence" in groups else " " * 9)
                + f"{groups['memory']:7.2f}GB"
                + (f"{other['seconds'] / groups['seconds']:6.0f}x" if other else ""),
                flush=True,
            )
    print("targets: 10 times crowd-kit's Dawid-Skene at both sizes, 1 GB at ten million votes")
    for classes in (2, 5):
        brief, long = (apart(f"dynibcc, {turns} iterations", 1_000_000, classes) for turns in (2, 12))
        turn = (long["seconds"] - brief["seconds"]) / (long["iterations"] - brief["iterations"])
        print(
            f"dynamic, 1,000,000 votes, {classes} classes: {turn:.3f} s an iteration"
            + (", target 0.3 s" if classes == 2 else "")
            + f"; silence {long['silence'] * 1e3:.0f} ms; {long['memory']:.2f} GB",
            flush=True,
        )
    mean, kind = planted(10_000)
    start = time.perf_counter()
    groups = communities(mean, np.full(len(mean), 60))
    seconds = time.perf_counter() - start
    planted_kinds = len(np.unique(kind))
    print(
        f"communities of 10,000 annotators: {seconds:.1f} s, target 30 s; {groups.count} of {planted_kinds}"
    )


if __name__ == "__main__":
    main()
