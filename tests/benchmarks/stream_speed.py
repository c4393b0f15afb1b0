"""Time of one more annotator, or one more click, in a stream, beside fusing everything again.

Usage: OPENBLAS_NUM_THREADS=1 [RATERSCOPE_DATA=FOLDER] python -m tests.benchmarks.stream_speed

With RATERSCOPE_DATA also on real images, from 1,000 clicks on. Steps that find all clusters
again are listed apart. Times are processor times, so that other users make no difference.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import fuse
from raterscope.algorithms.clicks.stream import StreamState, advance_stream, begin_stream
from tests.algorithms.clicks.crowds import in_order, quantius, until
from tests.benchmarks.clicks_speed import marked_once

TARGET = 15.0
"""Milliseconds for a new annotator of 50 clicks after 1,000 clicks."""


def timed(work: Callable[[], StreamState]) -> tuple[float, StreamState]:
    start = time.process_time()
    state = work()
    return (time.process_time() - start) * 1e3, state


def with_one(clicks: Clicks) -> Clicks:
    """Let the first annotator click once more, beside the last click of all."""
    return replace(
        clicks,
        x=np.append(clicks.x, clicks.x[-1] + 0.5),
        y=np.append(clicks.y, clicks.y[-1] + 0.5),
        annotator=np.append(clicks.annotator, 0),
    )


def steps(clicks: Clicks, earlier: int, most: int) -> Iterator[tuple[str, float, float]]:
    """Let annotators come from so many clicks on; return what each step was, its time and that of a batch."""
    first = int(np.searchsorted(np.cumsum(clicks.counts()), earlier)) + 1
    state = begin_stream(until(clicks, first))
    for number in range(first + 1, min(len(clicks.annotators), first + most) + 1):
        now = until(clicks, number)
        item = with_one(until(clicks, number - 1))
        yield "click", timed(lambda state=state, item=item: advance_stream(state, item))[0], np.nan
        times, state = timed(lambda state=state, now=now: advance_stream(state, now))
        total = time.process_time()
        fuse(now)
        yield "again" if state.refreshed else "annotator", times, (time.process_time() - total) * 1e3


def report(name: str, crowds: Iterable[Clicks], earlier: int, most: int) -> None:
    results = [step for clicks in crowds for step in steps(clicks, earlier, most)]
    for kind, words in (
        ("annotator", "one more annotator"), ("again", "same, all found again"), ("click", "one more click")
    ):  # fmt: skip
        times = np.array([step[1:] for step in results if step[0] == kind])
        if not len(times):
            continue
        own, batch = times.T
        line = f"{name if kind == 'annotator' else '':34s}{words:22s}{len(own):6d}{np.median(own):9.1f}"
        line += f"{np.quantile(own, 0.95):9.1f}{own.max():9.1f}"
        if kind != "click":
            line += f"{np.median(batch):10.1f}{np.median(batch / own):8.1f}x"
        print(line, flush=True)


def main() -> None:
    warm = marked_once(500, 20, 500.0, 20)
    advance_stream(begin_stream(until(warm, 10)), warm)
    print(f"target: {TARGET:g} ms, the median for one more annotator after 1,000 clicks\n")
    print(
        f"{'milliseconds':34s}{'':22s}{'steps':>6s}{'median':>9s}{'95 %':>9s}{'most':>9s}{'batch':>10s}"
        f"{'ratio':>9s}"
    )
    created = [marked_once(1_500, 55, 700.0, 30, seed) for seed in range(8)]
    report("1,000 clicks, 55 objects", created, 1_000, 8)
    created = [marked_once(11_000, objects, 2_000.0, 220) for objects in (60, 300)]
    report("10,000 clicks, 60 and 300 objects", created, 10_000, 15)
    folder = os.environ.get("RATERSCOPE_DATA")
    if folder:
        real = []
        for number, image in enumerate(quantius(Path(folder))):
            order = np.random.default_rng(number).permutation(len(image.clicks.annotators))
            real.append(in_order(image.clicks, order))
        report("real images, from 1,000 clicks", real, 1_000, 4)


if __name__ == "__main__":
    main()
