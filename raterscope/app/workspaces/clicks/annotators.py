"""The annotators of the image on screen: shown, hidden, compared, followed from image to image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.review import Weighed
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.scene import ClicksSession, Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import Known
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.widgets.figures.evaluation_plots import ReliabilityPlot
from raterscope.widgets.tables.annotator_table import AnnotatorRow, AnnotatorTable, Course

__all__ = [
    "Annotators",
    "OverImages",
    "alias",
]


FULLY = Weighed(1.0, "")


class Annotators(QObject):
    """Joins the annotator table and the reliability plot with the study, which numbers the annotators.

    Signals
    -------
    shown_changed(set, int or None)
        Whose clicks are hidden, and whose alone are shown.
    chosen(int or None)
        The annotator selected in the table or the plot.
    """

    shown_changed = Signal(object, object)
    chosen = Signal(object)

    def __init__(
        self,
        document: Document,
        table: AnnotatorTable,
        plot: ReliabilityPlot,
        session: ClicksSession,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._table = table
        self._plot = plot
        self._session = session
        self._stale = False
        self._hidden: set[int] = set()
        self._solo: int | None = None
        self._courses: Mapping[str, Course] = {}
        table.soloed.connect(self._on_soloed)
        table.hidden_changed.connect(self._on_hidden)
        table.selected.connect(self._on_chosen)
        plot.annotator_chosen.connect(self.choose)
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)
        session.blind_changed.connect(self.refresh)

    def _clear(self) -> None:
        self._stale = False
        self.refresh()

    def _on_scene(self, scene: Scene) -> None:
        """Take another image, run, or step of a stream; those are many, and are not drawn out of sight."""
        seen = self._table.isVisible() or self._plot.isVisible()
        self._stale = scene.told != "" and not seen
        if not self._stale:
            self.refresh()

    def refresh_stale(self) -> None:
        """Draw what was put off, now that somebody looks."""
        if self._stale:
            self._stale = False
            self.refresh()

    def set_courses(self, courses: Mapping[str, Course]) -> None:
        """Take what is said of annotators, by name, on one image after the other."""
        if courses or self._courses:
            self._courses = courses
            self.refresh()

    def forget(self) -> None:
        """Drop the courses of another study, whose annotators are others."""
        self._courses = {}

    def refresh(self) -> None:
        """Draw the rows anew: an exclusion, a weight, another run."""
        contents = self._document.contents
        if contents is None or not self._session.shown:
            self._table.set_rows(())
            self._plot.set_annotators(np.empty(0, dtype=np.int64), np.empty(0))
            return
        scene, counted = self._session.scene, contents.review.counted
        rows = rows_of(scene.clicks, scene.fusion, self._document.numbers, counted)
        rows = tuple(replace(row, course=self._courses.get(row.name)) for row in rows)
        if self._session.blind:
            rows = tuple(replace(row, name=alias(row.index)) for row in rows)
        self._table.set_rows(rows)
        self._plot.set_annotators(
            np.array([row.clicks for row in rows], dtype=np.int64),
            np.array([row.reliability[0] for row in rows]),
            [row.name for row in rows],
            np.array([row.index for row in rows], dtype=np.int64),
            {row.index for row in rows if row.excluded},
        )

    def choose(self, number: int) -> None:
        """Select an annotator everywhere."""
        self._table.select(number)
        self._plot.select(number)
        self.chosen.emit(number)

    def choose_two(self, first: int, second: int) -> None:
        """Select two annotators, who are compared."""
        self.choose(first)
        self._table.select(first, second)

    def solo(self, position: int) -> None:
        """Show only the annotator in a row of the table, counted from 0; the same once more shows all."""
        if position < self._table.model.rowCount():
            self._table.toggle_solo(self._table.model.at(position).index)

    def _on_soloed(self, number: int | None) -> None:
        self._solo = number
        self.shown_changed.emit(self._hidden, self._solo)

    def _on_hidden(self, hidden: set[int]) -> None:
        self._hidden = set(hidden)
        self.shown_changed.emit(self._hidden, self._solo)

    def _on_chosen(self, number: int | None) -> None:
        self._plot.select(number)
        self.chosen.emit(number)


def alias(number: int) -> str:
    """Call an annotator by number, where names are hidden."""
    return f"no. {number + 1}"


def rows_of(
    clicks: Clicks, fusion: Fusion | None, numbers: Mapping[str, int], counted: Mapping[str, Weighed]
) -> tuple[AnnotatorRow, ...]:
    """Say of every annotator who looked, and of the excluded, what the fusion found."""
    unknown = (float("nan"),) * 3
    rates = None if fusion is None else fusion.rates
    counts = clicks.counts() if rates is None else rates.clicks
    nothing = [unknown] * len(clicks.annotators)
    columns = (
        (nothing, nothing, nothing)
        if rates is None
        else (_triples(rates.reliability), _triples(rates.sensitivity), _triples(rates.precision))
    )
    how = [counted.get(name, FULLY) for name in clicks.annotators]
    rows = [
        AnnotatorRow(
            index=numbers[name], name=name, clicks=marked, reliability=reliability, sensitivity=sensitivity,
            precision=precision, weight=one.weight, why=one.reason,
        )
        for name, marked, one, reliability, sensitivity, precision in zip(
            clicks.annotators, counts.tolist(), how, *columns, strict=True
        )
    ]  # fmt: skip
    here = set(clicks.annotators)
    rows.extend(
        AnnotatorRow(numbers[name], name, 0, unknown, unknown, unknown, one.weight, one.reason)
        for name, one in counted.items()
        if one.weight == 0 and name not in here and name in numbers
    )
    return tuple(rows)


def _triples(values: FloatArray) -> list[tuple[float, float, float]]:
    return [(estimate, low, high) for estimate, low, high in values.tolist()]


class OverImages(ClicksPart):
    """Gives the table of annotators its sparklines, in the study's order of images."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, annotators: Annotators) -> None:
        super().__init__(core)
        self._review_queue, self._annotators = review_queue, annotators
        self._task = LatestTask()
        self._stale = True
        review_queue.all_read.connect(self._on_read)
        core.document.replaced.connect(self._on_replaced)
        core.screen.middle_tabs.currentChanged.connect(self._look)

    def _on_replaced(self) -> None:
        self._task.cancel()
        self._annotators.forget()

    def _on_read(self) -> None:
        self._stale = True
        self._look()

    def _look(self) -> None:
        contents = self._document.contents
        seen = self._screen.middle_tabs.currentWidget() is self._screen.table
        if not self._stale or contents is None or not seen:
            return
        self._stale = False
        self._task.cancel()
        results = self._review_queue.results
        fused = [
            (one.name, results[one.id])
            for one in contents.images
            if one.id in results and results[one.id].fusion is not None
        ]
        if len(fused) < 2:
            self._annotators.set_courses({})
            return
        job = self._jobs.start("Following annotators", partial(_courses, fused), quiet=True)
        self._task.follow(job, self._annotators.set_courses)


def _courses(fused: Sequence[tuple[str, Known]], watch: Watch) -> dict[str, Course]:
    """Follow everybody who looked at two images or more."""
    rows: dict[str, list[tuple[str, int, float, float]]] = {}
    for done, (image, known) in enumerate(fused):
        watch(done / len(fused), "following annotators")
        assert known.fusion is not None
        rates = known.fusion.rates
        figures = rates.clicks.tolist(), rates.reliability[:, 0].tolist(), rates.sensitivity[:, 0].tolist()
        for name, *one in zip(known.annotators, *figures, strict=True):
            rows.setdefault(name, []).append((image, *one))
    return {name: _course(mine) for name, mine in rows.items() if len(mine) > 1}


def _course(rows: Sequence[tuple[str, int, float, float]]) -> Course:
    images, clicks, reliability, sensitivity = zip(*rows, strict=True)
    return Course(images, np.array(clicks), np.array(reliability), np.array(sensitivity))
