"""Annotators of the image on screen: table, reliability plot, sparklines over images, pairwise agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal

from raterscope.algorithms.annotators.agreement import ClickAgreement, click_agreement
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch
from raterscope.app.review import Weighed
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import ImageResult
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.text import counted
from raterscope.widgets.figures.agreement_plots import AgreementMatrix
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.tables.annotator_table import AnnotatorRow
from raterscope.widgets.tables.course import Course

FULLY = Weighed(1.0, "")


class Annotators(ClicksPart):
    """Controller of the annotator table and the reliability plot; the study numbers the annotators."""

    # annotators whose clicks are hidden, and the only one whose clicks are shown
    shown_changed = Signal(object, object)
    chosen = Signal(object)  # the annotator selected in the table or the plot

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._table, self._plot = core.screen.table, core.screen.reliability
        self._stale = False
        self._hidden: set[int] = set()
        self._solo: int | None = None
        self._courses: Mapping[str, Course] = {}
        self._table.soloed.connect(self._on_soloed)
        self._table.hidden_changed.connect(self._on_hidden)
        self._table.selected.connect(self._on_chosen)
        self._plot.annotator_chosen.connect(self.choose)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        core.session.blind_changed.connect(self.refresh)

    def _clear(self) -> None:
        self._stale = False
        self.refresh()

    def _on_scene(self, scene: Scene) -> None:
        """Show another image, run, or step of a stream. Steps are many, and are drawn only if visible."""
        visible = self._table.isVisible() or self._plot.isVisible()
        self._stale = scene.stream_note != "" and not visible
        if not self._stale:
            self.refresh()

    def refresh_stale(self) -> None:
        """Draw the rows that were not drawn while hidden."""
        if self._stale:
            self._stale = False
            self.refresh()

    def set_courses(self, courses: Mapping[str, Course]) -> None:
        """Set the sparklines of annotators over images, by name."""
        if courses or self._courses:
            self._courses = courses
            self.refresh()

    def forget(self) -> None:
        """Drop the sparklines of another study."""
        self._courses = {}

    def refresh(self) -> None:
        """Draw the rows again after an exclusion, a weight, or another run."""
        contents = self._document.contents
        if contents is None or not self._session.shown:
            self._table.set_rows(())
            self._plot.set_annotators(np.empty(0, dtype=np.int64), np.empty(0))
            return
        scene, counted = self._session.scene, contents.review.counted
        rows = annotator_rows(scene.clicks, scene.fusion, self._document.numbers, counted)
        rows = tuple(replace(row, course=self._courses.get(row.name)) for row in rows)
        if self._session.blind:
            rows = tuple(replace(row, name=pseudonym(row.index)) for row in rows)
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
        """Select two annotators to compare."""
        self.choose(first)
        self._table.select(first, second)

    def solo(self, position: int) -> None:
        """Show only the annotator in a row of the table, counted from 0; the same row again shows all."""
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


def pseudonym(number: int) -> str:
    """Return the name of an annotator while names are hidden: a number."""
    return f"no. {number + 1}"


def annotator_rows(
    clicks: Clicks, fusion: Fusion | None, numbers: Mapping[str, int], counted: Mapping[str, Weighed]
) -> tuple[AnnotatorRow, ...]:
    """Make rows for the annotators of an image and the excluded ones, with the estimates of the fusion."""
    unknown = (float("nan"),) * 3
    rates = None if fusion is None else fusion.rates
    counts = clicks.counts() if rates is None else rates.clicks
    nothing = [unknown] * len(clicks.annotators)
    columns = (
        (nothing, nothing, nothing)
        if rates is None
        else (_triples(rates.reliability), _triples(rates.sensitivity), _triples(rates.precision))
    )
    parts = [counted.get(name, FULLY) for name in clicks.annotators]
    rows = [
        AnnotatorRow(
            index=numbers[name], name=name, clicks=marked, reliability=reliability, sensitivity=sensitivity,
            precision=precision, weight=weighed.weight, why=weighed.reason,
        )
        for name, marked, weighed, reliability, sensitivity, precision in zip(
            clicks.annotators, counts.tolist(), parts, *columns, strict=True
        )
    ]  # fmt: skip
    names = set(clicks.annotators)
    rows.extend(
        AnnotatorRow(numbers[name], name, 0, unknown, unknown, unknown, weighed.weight, weighed.reason)
        for name, weighed in counted.items()
        if weighed.weight == 0 and name not in names and name in numbers
    )
    return tuple(rows)


def _triples(values: FloatArray) -> list[tuple[float, float, float]]:
    return [(estimate, low, high) for estimate, low, high in values.tolist()]


class AnnotatorCourses(ClicksPart):
    """Sparklines of the annotator table, in the study's order of images."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, annotators: Annotators) -> None:
        super().__init__(core)
        self._review_queue, self._annotators = review_queue, annotators
        self._task = LatestTask()
        self._stale = True
        review_queue.all_read.connect(self._on_read)
        core.document.replaced.connect(self._on_replaced)
        core.screen.middle_tabs.currentChanged.connect(self._update)

    def _on_replaced(self) -> None:
        self._task.cancel()
        self._annotators.forget()

    def _on_read(self) -> None:
        self._stale = True
        self._update()

    def _update(self) -> None:
        contents = self._document.contents
        visible = self._screen.middle_tabs.currentWidget() is self._screen.table
        if not self._stale or contents is None or not visible:
            return
        self._stale = False
        self._task.cancel()
        results = self._review_queue.results
        fused = [
            (image.name, results[image.id])
            for image in contents.images
            if image.id in results and results[image.id].fusion is not None
        ]
        if len(fused) < 2:
            self._annotators.set_courses({})
            return
        job = self._jobs.start("Following annotators", partial(_courses, fused), quiet=True)
        self._task.follow(job, self._annotators.set_courses)


def _courses(fused: Sequence[tuple[str, ImageResult]], watch: Watch) -> dict[str, Course]:
    """Collect the estimates of annotators who looked at two images or more."""
    rows: dict[str, list[tuple[str, int, float, float]]] = {}
    for done, (image, result) in enumerate(fused):
        watch(done / len(fused), "following annotators")
        assert result.fusion is not None
        rates = result.fusion.rates
        figures = rates.clicks.tolist(), rates.reliability[:, 0].tolist(), rates.sensitivity[:, 0].tolist()
        for name, *values in zip(result.annotators, *figures, strict=True):
            rows.setdefault(name, []).append((image, *values))
    return {name: _course(rows_of_name) for name, rows_of_name in rows.items() if len(rows_of_name) > 1}


def _course(rows: Sequence[tuple[str, int, float, float]]) -> Course:
    images, clicks, reliability, sensitivity = zip(*rows, strict=True)
    return Course(images, np.array(clicks), np.array(reliability), np.array(sensitivity))


MOST = 24
"""Largest number of annotators shown: those who agree the least with all others."""

MEASURES = {
    "Dice": ("Dice", "Positive agreement: twice what both marked over the sum of what each marked"),
    "kappa": ("kappa", "Cohen's kappa: agreement beyond chance on which spots are marked"),
}
SCOPES = {
    "image": ("image", "On the image on screen"),
    "study": ("study", "On all images that both viewed, each by its latest fusion"),
}
NOTHING = "Press Fuse (F5) on an image with two or more annotators to see their pairwise agreement."


@dataclass(frozen=True, eq=False)
class _Page:
    """Matrix of one measure between annotators, those who agree the least first."""

    measure: str
    names: tuple[str, ...]
    values: NDArray[np.float64]
    clusters: NDArray[np.int64]
    images: NDArray[np.int64]
    total: int

    def words(self, row: int, column: int) -> str:
        """Describe a cell."""
        value, images = self.values[row, column], int(self.images[row, column])
        if not images:
            return "no image in common"
        spots = counted(int(self.clusters[row, column]), "spot")
        where = f"{spots} on {counted(images, 'image')} that both viewed"
        if np.isfinite(value):
            return f"{self.measure} {value:.2f}, of {where}"
        if self.measure == "Dice":
            return f"neither marked any of {where}"
        return f"kappa is not defined: both marked all, or none, of {where}"


class Agreement(ClicksPart):
    """Matrix of agreement, filled while it is visible."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, annotators: Annotators) -> None:
        super().__init__(core)
        self._review_queue, self._annotators = review_queue, annotators
        self.matrix = AgreementMatrix("Pairwise agreement", nothing=NOTHING, noun="annotator")
        self.measures, self.scopes = ModeSwitch(MEASURES), ModeSwitch(SCOPES)
        for switch in (self.measures, self.scopes):
            self.matrix.header.row.addWidget(switch)
        self._task = LatestTask()
        self._made_from: Mapping[int, ImageResult] | None = None
        self._pages: dict[str, _Page] = {}
        core.screen.middle_tabs.addTab(self.matrix, "Agreement")
        core.screen.middle_tabs.currentChanged.connect(self._update)
        self.measures.chosen.connect(self._show)
        self.scopes.chosen.connect(self._update)
        self.matrix.pair_chosen.connect(self._on_pair)
        annotators.chosen.connect(self._on_chosen)
        review_queue.all_read.connect(self._update)
        core.document.names_changed.connect(self._show)
        core.session.scene_changed.connect(self._update)
        core.session.cleared.connect(self._update)

    def _update(self) -> None:
        """Compare again if the matrix is visible and results changed."""
        if self._screen.middle_tabs.currentWidget() is not self.matrix:
            return
        results = self._compared_results()
        if self._made_from is not None and _same(results, self._made_from):
            return
        self._made_from = results
        job = self._jobs.start("Comparing annotators", partial(_compare, results), quiet=True)
        self._task.follow(job, self._on_compared)

    def _compared_results(self) -> Mapping[int, ImageResult]:
        if self.scopes.mode == "study":
            return self._review_queue.results
        if not self._session.shown:
            return {}
        scene = self._session.scene
        return {scene.image.id: ImageResult(scene.fusion, scene.clicks.annotators)}

    def _on_compared(self, pages: dict[str, _Page]) -> None:
        self._pages = pages
        self._show()

    def _show(self) -> None:
        page, contents = self._pages.get(self.measures.mode), self._document.contents
        numbers = self._document.numbers
        if page is None or not numbers.keys() >= set(page.names):
            self.matrix.set_matrix((), (), np.empty((0, 0)), self.measures.mode)
            self.matrix.header.set_aside("")
            return
        numbers_shown = [numbers[name] for name in page.names]
        names = (
            [pseudonym(number) for number in numbers_shown] if contents and contents.hidden else page.names
        )
        self.matrix.set_matrix(names, numbers_shown, page.values, page.measure, page.words)
        count = len(page.names)
        cut = f"{count} of {page.total:,}, the least first" if count < page.total else ""
        self.matrix.header.set_aside(cut)

    def _on_pair(self, first: str, second: str) -> None:
        names = list(self.matrix.figure.names)
        page, contents = self._pages.get(self.measures.mode), self._document.contents
        if page is not None and contents is not None:
            pair = [contents.annotators.index(page.names[names.index(name)]) for name in (first, second)]
            self._annotators.choose_two(*pair)

    def _on_chosen(self, number: int | None) -> None:
        contents = self._document.contents
        if contents is None or number is None:
            self.matrix.select(None)
        else:
            self.matrix.select(pseudonym(number) if contents.hidden else contents.annotators[number])


def _same(first: Mapping[int, ImageResult], second: Mapping[int, ImageResult]) -> bool:
    return first.keys() == second.keys() and all(first[key].fusion is second[key].fusion for key in first)


def _compare(results: Mapping[int, ImageResult], watch: Watch) -> dict[str, _Page]:
    fused = [
        (result.fusion.marked, result.annotators) for result in results.values() if result.fusion is not None
    ]
    agreement = click_agreement([marked for marked, _ in fused], [names for _, names in fused], watch)
    return {
        "Dice": _page("Dice", agreement, agreement.dice),
        "kappa": _page("kappa", agreement, agreement.kappa),
    }


def _page(measure: str, agreement: ClickAgreement, values: NDArray[np.float64]) -> _Page:
    mean_agreement = agreement.standing(values)
    order = np.argsort(mean_agreement, kind="stable")[:MOST]  # NaN comes last
    block = np.ix_(order, order)
    return _Page(
        measure=measure,
        names=tuple(agreement.names[row] for row in order.tolist()),
        values=values[block],
        clusters=agreement.clusters[block],
        images=agreement.images[block],
        total=len(agreement.names),
    )
