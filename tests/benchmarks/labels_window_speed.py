"""Response times of the labels workspace on large crowds, beside the limits set for each interaction.

Usage: python -m tests.benchmarks.labels_window_speed [small|large ...] [--keep FOLDER]

"small" is 500 annotators with 47,000 votes, "large" 10,000 with a million; both are measured without words.
Each is shown as fused by IBCC, then by dynamic IBCC. `--keep` keeps the studies in a folder for the next
time. `window_driving` says what the columns mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, cycle, repeat
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.simulation.label_crowds import scoring_crowd, simulate_labels
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.labels import add_true_labels, add_votes
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog

from .window_driving import (
    ROUNDS,
    Driven,
    calls_of,
    measure_cancelling,
    measure_deciding_meanwhile,
    measure_fusing,
    measure_fusing_again,
    measure_studies,
    memory,
)

PLANS = {
    "small": scoring_crowd(annotators=500),
    "large": scoring_crowd(tasks=100_000, annotators=10_000, fewest=16),
}
METHODS = ("ibcc", "dynibcc")
DECIDED = 1_000
"""Decisions that the journal holds at the outset."""

FUSIONS = 20


def make_study(path: Path, size: str) -> None:
    """Simulate a crowd, fuse its votes by each method, and decide some tasks."""
    crowd = simulate_labels(PLANS[size], 7)
    labels = crowd.labels
    third = len(labels.tasks) // 3
    with Study.create(path) as study:
        add_votes(study, LabelTable(
            Path("crowd.csv"), "Infected?", labels.annotators, labels.tasks, labels.outputs,
            labels.annotator, labels.task, labels.label, labels.time,
        ))  # fmt: skip
        classes, truth = labels.classes, crowd.truth[:third]
        add_true_labels(
            study, TrueLabels(Path("truth.csv"), "Infected?", labels.tasks[:third], classes, truth)
        )
        (question,) = study.questions()
        for task in labels.tasks[-DECIDED:]:
            subject = TaskSubject(task=task, label=classes[0])
            study.record(Decision(verb="label", item=question.id, subject=subject))
        for method in METHODS:
            keep(fuse_inputs(gather([question.id], study), LabelPlan.make(method)), study)


class Session:
    """The interactions on one study."""

    def __init__(self, driven: Driven, path: Path) -> None:
        self.driven, self.path = driven, path

    def open(self) -> None:
        """Open the study and wait until its tasks, its annotators and its answer are shown."""
        driven = self.driven
        driven.window.open_paths([self.path])
        driven.wait(lambda: driven.work is not None and bool(driven.work.queue.view.lines))
        driven.wait(lambda: driven.work.tasks.current is not None)

    def show(self, method: str) -> None:
        """Show the answer of a method."""
        driven = self.driven
        run = [
            measurement.id
            for measurement in driven.window.document.contents.runs
            if measurement.algorithm == method
        ][-1]
        driven.work.runs.choose(run)
        driven.wait(lambda: driven.work.session.shown and driven.work.session.scene.run.id == run)

    def decide(self) -> None:
        """Walk the queue, decide, undo and redo."""
        driven, work = self.driven, self.driven.work
        before = work.tasks.current

        def press(keys: Iterator[Qt.Key]) -> Callable[[], None]:
            def call() -> None:
                nonlocal before
                before = work.tasks.current
                driven.key(next(keys))

            return driven.deciding(call)

        def moved() -> bool:
            return work.tasks.current != before

        digits = cycle((Qt.Key.Key_1, Qt.Key.Key_2))
        work.tasks.select(int(work.tasks._order[0]))
        driven.settle()
        driven.measure("decided by a digit, on disk, the next task painted", 50, press(digits),
                       lambda: driven.decided() and moved())  # fmt: skip
        driven.measure("next disputed (Tab)", 100, press(repeat(Qt.Key.Key_Tab)), moved)
        document = driven.window.document
        driven.measure("undo", 50, driven.deciding(document.undo), driven.decided)
        driven.measure("redo", 50, driven.deciding(document.redo), driven.decided)

    def people(self) -> None:
        """Choose annotators, communities and cells."""
        driven, work = self.driven, self.driven.work
        tiles = work.wall.tiles
        positions = count(3, 7)

        def choose() -> None:
            tiles._move(next(positions), Qt.KeyboardModifier.NoModifier)

        driven.measure("an annotator chosen in the wall", 100, choose)
        if work.session.scene.fusion.drift is not None:
            self.drift()
        votes = iter(work.task_panel.votes.lines * ROUNDS)
        driven.measure("a voter chosen in the task", 100,
                       lambda: work._on_voter(next(votes).annotator))  # fmt: skip
        groups = cycle(range(work.session.analysis.groups.communities.count))
        driven.measure("a community chosen", 100,
                       lambda: work.annotator_detail.choose_community(next(groups)))  # fmt: skip
        driven.measure("everybody chosen (Ctrl+A)", 100,
                       lambda: tiles._choose(tiles._order.tolist()))  # fmt: skip
        work.annotator_detail.choose_community(None)
        driven.settle()
        cells = cycle([(j, m) for j in range(2) for m in range(3)])
        with calls_of(work.cell_tasks, "show_tasks") as listed:

            def ask_cell() -> None:
                listed.clear()
                work.middle_tabs.setCurrentIndex(0)
                driven.application.processEvents()
                work.matrix.cell_chosen.emit(*next(cells))

            driven.measure("a cell of everybody's matrix, its tasks listed", 100, ask_cell,
                           lambda: bool(listed))  # fmt: skip
            work.annotator_detail.choose(work.wall.shown[:1])
            driven.settle()
            driven.measure("a cell of one annotator, its tasks listed", 100, ask_cell, lambda: bool(listed))
        work.middle_tabs.setCurrentIndex(0)
        driven.settle()

    def drift(self) -> None:
        """Follow annotators through time."""
        driven, work = self.driven, self.driven.work
        chosen = iter(work.wall.shown[3:])
        with calls_of(work.drift, "show_drift") as drawn:

            def follow() -> None:
                drawn.clear()
                work.annotator_detail.choose((next(chosen),))

            driven.measure("an annotator's drift drawn", 100, follow, lambda: bool(drawn))
        most = int(np.argmax(work.session.analysis.votes_of))
        work.annotator_detail.choose((most,))
        driven.settle()
        slider = work.drift.slider
        steps = cycle(range(0, slider.maximum(), max(1, slider.maximum() // 53)))
        driven.measure("drift, a step of the slider", 33, lambda: slider.setValue(next(steps)))
        slider.setValue(0)
        driven.measure("drift, a frame of play", 33, work.drift._on_frame)

    def wall(self) -> None:
        """Scroll the wall of annotators, sort it, search one by name, hide names."""
        driven, work = self.driven, self.driven.work
        wall = work.wall
        driven.scroll("the wall scrolled, a frame", wall.tiles)
        orders = cycle((*range(1, wall.measure.count()), 0))
        driven.measure("the wall sorted by another measure", 100,
                       lambda: wall.measure.setCurrentIndex(next(orders)))  # fmt: skip
        names = cycle(("1", "12", "7", "77", ""))
        driven.measure("an annotator looked for by name, a letter", 50,
                       lambda: wall.filter.setText(next(names)))  # fmt: skip
        wall.filter.setText("")
        driven.measure("names hidden or shown", 100, lambda: driven.key(Qt.Key.Key_H))
        if len(wall.shown) and work.blind_mode.on:
            driven.key(Qt.Key.Key_H)

    def narrow(self) -> None:
        """Narrow the queue of tasks."""
        driven, queue = self.driven, self.driven.work.queue
        with calls_of(queue, "set_tasks") as listed:

            def after(act: Callable[[], object]) -> Callable[[], object]:
                def call() -> None:
                    listed.clear()
                    act()

                return call

            words = cycle(("1", "12", "9", "99", "123", ""))
            kinds = cycle((*range(1, queue.choice.count()), 0))
            driven.measure("tasks looked for by name, a letter", 100,
                           after(lambda: queue.filter.setText(next(words))),
                           lambda: bool(listed))  # fmt: skip
            queue.filter.setText("")
            driven.settle()
            driven.measure("the queue narrowed in another way", 100,
                           after(lambda: queue.choice.setCurrentIndex(next(kinds))),
                           lambda: bool(listed))  # fmt: skip
            queue.choice.setCurrentIndex(0)
            driven.settle()
        driven.scroll("the queue scrolled, a frame", queue.view)

    def look_around(self) -> None:
        """Open views that are computed when first shown."""
        driven, work = self.driven, self.driven.work
        with driven.once("similarity of annotators, drawn"):
            work.middle_tabs.setCurrentIndex(2)
            driven.settle()
        work.middle_tabs.setCurrentIndex(0)
        with driven.once("next annotators, listed"):
            work.left_tabs.setCurrentWidget(work.ask)
            driven.settle()
        work.left_tabs.setCurrentIndex(0)
        driven.settle()

    def leave_out(self) -> None:
        """Preview an exclusion, exclude an annotator, restore them."""
        driven, work, document = self.driven, self.driven.work, self.driven.window.document
        work.wall.measure.setCurrentText("by accuracy")
        work.wall.direction.click()
        item = work.wall.shown[0]
        work.annotator_detail.choose((item,))
        driven.settle()
        with driven.once("what changes without an annotator, shown"):
            driven.key(Qt.Key.Key_X)
            dialog = driven.window.findChild(ExclusionDialog)
            driven.wait(lambda: dialog.panel.state == "shown")
            driven.paint()
        with driven.once("left out, on disk, crossed out on the wall", 50):
            driven.deciding(partial(dialog.panel.decided.emit, "always the same"))()
            driven.wait(driven.decided)
            driven.paint()
        measure_fusing_again(driven, 5)
        document.undo()
        driven.settle()

    def decide_meanwhile(self) -> None:
        """Decide while a fusion is at work, then cancel it."""
        work = self.driven.work
        work.fuse_panel.algorithm.choose("dynibcc")
        measure_deciding_meanwhile(self.driven, lambda: self.driven.key(Qt.Key.Key_1))
        work.fuse_panel.algorithm.choose("ibcc")


def measure(driven: Driven, path: Path) -> None:
    """Measure all there is on one study."""
    session = Session(driven, path)
    with driven.once("study opened, tasks and annotators shown"):
        session.open()
    print(f"    memory with the study open {memory():.0f} MB")
    for method in METHODS:
        print(f"  {method}")
        with driven.once("another run shown"):
            session.show(method)
        session.decide()
        session.people()
        session.wall()
        session.narrow()
        session.look_around()
    driven.work.fuse_panel.algorithm.choose("ibcc")
    session.show("ibcc")
    driven.settle()
    session.decide_meanwhile()
    session.leave_out()
    measure_cancelling(driven)
    measure_fusing(driven, FUSIONS)


if __name__ == "__main__":
    measure_studies(tuple(PLANS), make_study, measure)
