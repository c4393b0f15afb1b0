"""Speed of finding biased annotators, beside knockpy and crowd-kit in the same run, and in how much memory.

Usage: OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.pairs_speed [full]

Crowds are drawn in the sizes of the position bias paper's data, and one of a million comparisons. Each figure
is of a process of its own; the best of three. "One draw" is a fit with a single draw of knockoffs, "50 draws"
the default, whose draws are followed in threads, one for each processor to four. knockpy gets what it needs,
the columns with the items projected out, which has a row a comparison; it makes fixed-X knockoffs of maximum
entropy and follows the LASSO path by LARS, once. crowd-kit's noisy Bradley-Terry learns skills and biases of
annotators, without any control of who is called biased. Both skip the largest
crowds without "full": one runs out of memory, the other does not end.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from tests.benchmarks.measuring import Watcher, most_memory

CASES = ((14_011, 94, 30), (8_823, 340, 261), (52_043, 342, 240), (1_000_000, 1_000, 1_000))
"""Comparisons, annotators, items."""

PEERS_TO = {"knockpy": 10_000, "crowd-kit": 60_000}
"""Comparisons up to which they are measured without being asked for."""


def crowd(comparisons: int, annotators: int, items: int, seed: int = 0) -> Pairs:
    """Draw comparisons of random pairs; the bias of one annotator in eight is half the noise."""
    generator = np.random.default_rng(seed)
    annotator = generator.integers(0, annotators, comparisons)
    left = generator.integers(0, items, comparisons)
    right = (left + generator.integers(1, items, comparisons)) % items
    score = generator.normal(size=items)
    biased = np.arange(annotators) < annotators // 8
    bias = np.where(biased, generator.choice([-0.5, 0.5], annotators), 0.0)
    observed = score[left] - score[right] + bias[annotator] + generator.normal(size=comparisons)
    return Pairs(
        annotator,
        left,
        right,
        np.sign(observed),
        tuple(f"annotator {k}" for k in range(annotators)),
        tuple(f"item {i}" for i in range(items)),
    )


def fit(pairs: Pairs, draws: int) -> dict[str, float]:
    watch = Watcher()
    start = time.perf_counter()
    fuse(pairs, PairPlan.make("iss", {"rule": "knockoffs", "draws": str(draws)}), watch)
    return {"seconds": time.perf_counter() - start, "silence": watch.longest}


def from_file(pairs: Pairs) -> dict[str, float]:
    """Read a table and fuse it, as a user waits for it."""
    from raterscope.app.formats.pairs import read_pairs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(("annotator", "left", "right", "choice"))
            for annotator, left, right, choice in zip(
                pairs.annotator, pairs.left, pairs.right, pairs.choice, strict=True
            ):
                side = "left" if choice > 0 else "right" if choice < 0 else "tie"
                table.writerow((pairs.annotators[annotator], pairs.items[left], pairs.items[right], side))
        start = time.perf_counter()
        (read,) = read_pairs(path)
        reading = time.perf_counter() - start
        fuse(Pairs(read.annotator, read.left, read.right, read.choice, read.annotators, read.items))
        return {"seconds": time.perf_counter() - start, "reading": reading}


def knockpy(pairs: Pairs) -> dict[str, float]:
    from knockpy.knockoff_filter import KnockoffFilter
    from knockpy.knockoffs import FXSampler

    start = time.perf_counter()
    rows = np.arange(len(pairs))
    difference = np.zeros((len(pairs), len(pairs.items)))
    difference[rows, pairs.left] = 1.0
    difference[rows, pairs.right] = -1.0
    columns = np.zeros((len(pairs), len(pairs.annotators)))
    columns[rows, pairs.annotator] = 1.0
    inverse = np.linalg.pinv(difference.T @ difference)
    both = np.column_stack((columns, pairs.choice))
    both -= difference @ (inverse @ (difference.T @ both))
    design = np.ascontiguousarray(both[:, :-1]) / np.linalg.norm(both[:, :-1], axis=0)
    KnockoffFilter(ksampler=FXSampler(design, method="maxent"), fstat="lasso").forward(
        X=design, y=both[:, -1].copy(), fdr=0.1, fstat_kwargs={"zstat": "lars_path", "antisym": "sm"}
    )
    return {"seconds": time.perf_counter() - start}


def crowd_kit(pairs: Pairs) -> dict[str, float]:
    import pandas
    from crowdkit.aggregation import NoisyBradleyTerry

    table = pandas.DataFrame(
        {
            "worker": pairs.annotator,
            "left": pairs.left,
            "right": pairs.right,
            "label": np.where(pairs.choice > 0, pairs.left, pairs.right),
        }
    )
    start = time.perf_counter()
    NoisyBradleyTerry().fit(table)
    return {"seconds": time.perf_counter() - start}


METHODS = {
    "one draw": lambda pairs: fit(pairs, 1),
    "50 draws": lambda pairs: fit(pairs, 50),
    "from file": from_file,
    "knockpy": knockpy,
    "crowd-kit": crowd_kit,
}


def measure(method: str, *size: int) -> None:
    """Measure one of `METHODS` and print the figures."""
    pairs = crowd(*size)
    times = 1
    if method not in PEERS_TO:
        fuse(crowd(2_000, 20, 10), PairPlan.make("iss", {"rule": "knockoffs", "draws": "2"}))
        times = 3
    result = min((METHODS[method](pairs) for _ in range(times)), key=lambda item: item["seconds"])
    result["memory"] = most_memory()
    print(json.dumps(result))


def apart(method: str, *size: int) -> dict[str, float] | None:
    """Measure in a process of its own; None where it is stopped."""
    program = f"from tests.benchmarks import pairs_speed; pairs_speed.measure({method!r}, *{size!r})"
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if not done.returncode else None


def main() -> None:
    full = "full" in sys.argv[1:]
    known = {
        "knockpy": importlib.util.find_spec("knockpy"), "crowd-kit": importlib.util.find_spec("crowdkit")
    }  # fmt: skip
    for name, spec in known.items():
        if spec is None:
            print(f"{name} is not installed: pip install 'raterscope[bench]' to measure beside it")
    print(f"{'comparisons':>12s}{'annotators':>12s}{'items':>7s}  {'method':12s}{'time':>10s}{'silence':>9s}"
          f"{'memory':>9s}{'to one draw':>13s}")  # fmt: skip
    for size in CASES:
        first = None
        for method in METHODS:
            peer = method in PEERS_TO
            if peer and (known[method] is None or not (full or size[0] <= PEERS_TO[method])):
                continue
            if method == "from file" and size[0] < 1_000_000:
                continue
            result = apart(method, *size)
            words = f"{size[0]:12,d}{size[1]:12,d}{size[2]:7,d}  {method:12s}"
            if result is None:
                print(f"{words}  stopped", flush=True)
                continue
            first = first or result["seconds"]
            print(
                f"{words}{result['seconds']:9.3f}s"
                + (f"{result['silence'] * 1e3:7.0f}ms" if "silence" in result else " " * 9)
                + f"{result['memory']:7.0f}MB{result['seconds'] / first:12.1f}x"
                + (f", {result['reading']:.2f} s of it reading" if "reading" in result else ""),
                flush=True,
            )
    print("targets: one draw .01, .1, .1 and 1.6 to 3.4 s in 361 MB; 50 draws in under 5 times that; "
          "from file 3 s and 500 MB; 10 times knockpy")  # fmt: skip


if __name__ == "__main__":
    main()
