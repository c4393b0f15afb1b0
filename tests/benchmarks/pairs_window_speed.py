"""Response times of the pairs workspace on large crowds, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.pairs_window_speed [small|large ...] [--keep FOLDER]

"small" is 1,000 annotators with 120,000 comparisons of 300 items, "large" a million comparisons of 1,000
items; both are measured without words. `--keep` keeps the studies in a folder for the next time.
`window_driving` says what the columns mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count, cycle
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt

from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.app.formats.records import PairTable
from raterscope.app.kinds.pairs.runs import fuse_inputs, gather, keep
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs

from .pairs_speed import crowd
from .window_driving import (
    Driven,
    calls_of,
    measure_cancelling,
    measure_deciding_meanwhile,
    measure_fusing,
    measure_studies,
    memory,
)

SIZES = {"small": (120_000, 1_000, 300), "large": (1_000_000, 1_000, 1_000)}
"""Comparisons, annotators, items."""

DECIDED = 200
"""Decisions that the journal holds at the outset."""

FUSIONS = 10


def make_study(path: Path, size: str) -> None:
    """Draw a crowd, fuse its comparisons, and decide some of its annotators."""
    pairs = crowd(*SIZES[size], seed=7)
    pairs = replace(pairs, time=1.6e9 + 10.0 * np.arange(len(pairs)))
    with Study.create(path) as study:
        add_pairs(study, PairTable(
            Path("crowd.csv"), "Which is worse?", pairs.annotators, pairs.items, pairs.annotator,
            pairs.left, pairs.right, pairs.choice, pairs.time,
        ))  # fmt: skip
        (question,) = study.pair_questions()
        for name in pairs.annotators[-DECIDED:]:
            study.record(Decision(verb="clear", item=question.id, subject=BiasSubject(annotator=name)))
        keep(fuse_inputs(gather([question.id], study), PairPlan.make("iss", {"rule": "knockoffs"})), study)


class Session:
    """The interactions on one study."""

    def __init__(self, driven: Driven, path: Path) -> None:
        self.driven, self.path = driven, path

    def open(self) -> None:
        """Open the study and wait until its annotators, its path and its ranking are shown."""
        driven = self.driven
        driven.window.open_paths([self.path])
        driven.wait(lambda: driven.work is not None and driven.work.rate_cut.ranking is not None)

    def move_cut(self) -> None:
        """Drag the slider of the false discovery rate."""
        driven, work = self.driven, self.driven.work
        slider = work.bars.slider
        steps = cycle((*range(11, 25), *range(25, 5, -1), *range(7, 11)))
        driven.measure("a step of the slider, the cut moved everywhere", 16,
                       lambda: slider.setValue(next(steps)))  # fmt: skip
        far = cycle((5, 25))
        awaited = False
        with calls_of(work.ranking, "show_ranking") as ranked:

            def leap() -> None:
                nonlocal awaited
                before = work.flagged
                ranked.clear()
                slider.setValue(next(far))
                awaited = not np.array_equal(before, work.flagged)

            driven.measure("a leap of the slider, the items ranked again", 100, leap,
                           lambda: bool(ranked) or not awaited)  # fmt: skip
        slider.setValue(10)
        driven.settle()

    def choose(self) -> None:
        """Choose annotators in the path, in the queue, among dots and bars."""
        driven, work = self.driven, self.driven.work
        parts = count(0, 7)
        for name, figure in (("the path", work.path.figure), ("the counts", work.sides.figure),
                             ("the bars", work.bars.figure)):  # fmt: skip
            driven.measure(f"an annotator chosen in {name}", 100, partial(self._choose, figure, parts))

        def shown() -> bool:
            return work._evidence is not None

        driven.measure("the same until its evidence is gathered", 100,
                       partial(self._choose, work.bars.figure, parts), shown)  # fmt: skip
        driven.measure("next annotator (Tab)", 100, lambda: driven.key(Qt.Key.Key_Tab), shown)
        driven.measure("next annotator (Down)", 100, lambda: driven.key(Qt.Key.Key_Down), shown)

    def _choose(self, figure: object, parts: count[int]) -> None:
        figure.choose((0, next(parts) % 900))  # type: ignore[attr-defined]

    def decide(self) -> None:
        """Flag and clear as when a reason has been given, undo and redo."""
        driven, work = self.driven, self.driven.work
        work.choose(int(work.queue.view.lines[0].key))
        driven.settle()
        before = work.queue.current

        def judging(verb: str) -> Callable[[], None]:
            def call() -> None:
                nonlocal before
                before = work.queue.current
                work.bias_review.record(
                    verb, work.session.scene.pairs.annotators[before], "always chooses one side"
                )

            return driven.deciding(call)

        def moved() -> bool:
            return driven.decided() and work.queue.current != before

        driven.measure("flagged with a reason, on disk, the next one painted", 50, judging("flag"),
                       moved)  # fmt: skip
        driven.measure("cleared with a reason, on disk, the next one painted", 50, judging("clear"),
                       moved)  # fmt: skip
        driven.measure("passed over (S), the next one painted", 50,
                       driven.deciding(lambda: driven.key(Qt.Key.Key_S)), driven.decided)  # fmt: skip
        document = driven.window.document
        driven.measure("undo", 50, driven.deciding(document.undo), driven.decided)
        driven.measure("redo", 50, driven.deciding(document.redo), driven.decided)
        driven.settle()

    def look(self) -> None:
        """Look at pairs of items and at the ranking, narrow the queue, see one draw."""
        driven, work = self.driven, self.driven.work
        items = cycle([(k, k + 1) for k in range(0, 250, 9)])
        driven.measure("comparisons of two items of the ranking", 100,
                       lambda: work.ranking.pair_chosen.emit(*next(items)))  # fmt: skip
        modes = cycle(("intervals", "cards"))
        driven.measure("the ranking drawn in another way", 100,
                       lambda: work.ranking.modes.set_mode(next(modes)))  # fmt: skip
        driven.scroll("the ranking scrolled, a frame", work.ranking.figure, across=True)
        words = cycle(("1", "12", "9", "99", "123", ""))
        queue = work.queue
        driven.measure("annotators looked for by name, a letter", 50,
                       lambda: queue.filter.setText(next(words)))  # fmt: skip
        queue.filter.setText("")
        kinds = cycle((*range(1, queue.choice.count()), 0))
        driven.measure("the queue narrowed in another way", 50,
                       lambda: queue.choice.setCurrentIndex(next(kinds)))  # fmt: skip
        queue.choice.setCurrentIndex(0)
        driven.scroll("the queue scrolled, a frame", queue.view)
        draws = cycle(range(1, 51))
        work.bars.modes.set_mode("draw")
        driven.measure("another draw of knockoffs", 50, lambda: work.bars.draw.setValue(next(draws)))
        work.bars.modes.set_mode("share")
        driven.settle()

    def decide_meanwhile(self) -> None:
        """Decide while a fusion is at work, then cancel it."""
        measure_deciding_meanwhile(self.driven, lambda: self.driven.key(Qt.Key.Key_S))


def measure(driven: Driven, path: Path) -> None:
    """Measure all there is on one study."""
    session = Session(driven, path)
    with driven.once("study opened, path and ranking shown"):
        session.open()
    print(f"    memory with the study open {memory():.0f} MB")
    session.move_cut()
    session.choose()
    session.decide()
    session.look()
    session.decide_meanwhile()
    measure_cancelling(driven)
    measure_fusing(driven, FUSIONS)


if __name__ == "__main__":
    measure_studies(tuple(SIZES), make_study, measure)
