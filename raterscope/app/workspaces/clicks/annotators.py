"""Annotators of the image on screen: table, reliability, courses over images, agreement, exclusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal

from raterscope.algorithms.annotators.agreement import ClickAgreement, click_agreement
from raterscope.algorithms.clicks.data import PROGRAM, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import AnnotatorRates, Fusion
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.clicks.annotators import ChangedSpot, Recount, RunInputs, gather_run, recount
from raterscope.app.review import Decision, Weighed
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.annotator_decisions import PreviewedExclusion
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import ImageResult, spots_of
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.text import counted, part_of_one
from raterscope.widgets.dialogs.review_dialogs import HALF, WEIGHTS, ExclusionDialog
from raterscope.widgets.figures.agreement_plots import AgreementMatrix
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.panels.exclusion_panel import Change, ExclusionPanel
from raterscope.widgets.tables.annotator_table import AnnotatorRow, Course

FULLY = Weighed(1.0, "")
_UNKNOWN = (float("nan"),) * 3


class Annotators(ClicksPart):
    """Controller of the annotator table and the reliability plot; the study numbers the annotators."""

    # annotators with hidden clicks, and the only annotator whose clicks are shown
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
        """Show another image, run, or step of a stream. Steps are drawn only if visible: there are many."""
        visible = self._table.isVisible() or self._plot.isVisible()
        self._stale = scene.stream_note != "" and not visible
        if not self._stale:
            self.refresh()

    def refresh_stale(self) -> None:
        """Draw the rows that changed while hidden."""
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
        if not self._session.shown:
            self._table.set_rows(())
            self._plot.set_annotators(np.empty(0, dtype=np.int64), np.empty(0))
            return
        scene, counted = self._session.scene, self._document.review.counted
        rows = annotator_rows(scene.clicks, scene.fusion, self._document.numbers, counted, scene.excluded)
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
    """Return the number that replaces an annotator's name while names are hidden."""
    return f"no. {number + 1}"


def annotator_rows(
    clicks: Clicks,
    fusion: Fusion | None,
    numbers: Mapping[str, int],
    counted: Mapping[str, Weighed],
    excluded: tuple[tuple[str, ...], AnnotatorRates] | None,
) -> tuple[AnnotatorRow, ...]:
    """Make rows for the annotators of an image, with the estimates of the fusion, and the excluded ones.

    `excluded`: those that the fusion leaves out, with their rates by the consensus of the others.
    """
    rates = None if fusion is None else fusion.rates
    rows = _rows(clicks.annotators, clicks.counts() if rates is None else rates.clicks, rates)
    outside = {} if excluded is None else _rows(excluded[0], excluded[1].clicks, excluded[1])
    for name, weighed in counted.items():
        if weighed.weight == 0 and name in outside and name not in rows:
            rows[name] = outside[name]
    return tuple(
        replace(row, index=numbers[name], weight=weighed.weight, why=weighed.reason)
        for name, row in rows.items()
        for weighed in [counted.get(name, FULLY)]
    )


def _rows(names: Sequence[str], counts: IntArray, rates: AnnotatorRates | None) -> dict[str, AnnotatorRow]:
    columns = (
        [[_UNKNOWN] * len(names)] * 3
        if rates is None
        else [_triples(rates.reliability), _triples(rates.sensitivity), _triples(rates.precision)]
    )
    rows = zip(names, counts.tolist(), *columns, strict=True)
    return {name: AnnotatorRow(0, name, *values) for name, *values in rows}


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
    """Collect the estimates of annotators who viewed two or more images."""
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
"""Maximum number of annotators shown: those who agree least with all others."""

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
    """Matrix of one measure between annotators, those who agree least first."""

    measure: str
    names: tuple[str, ...]
    values: NDArray[np.float64]
    clusters: NDArray[np.int64]
    images: NDArray[np.int64]
    total: int

    def text_of(self, row: int, column: int) -> str:
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
        self.matrix.figure.chosen.connect(self._on_pair)
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
            self.matrix.header.set_subtitle("")
            return
        numbers_shown = [numbers[name] for name in page.names]
        names = (
            [pseudonym(number) for number in numbers_shown] if contents and contents.hidden else page.names
        )
        self.matrix.set_matrix(names, numbers_shown, page.values, page.measure, page.text_of)
        count = len(page.names)
        cut = f"{count} of {page.total:,}, the least first" if count < page.total else ""
        self.matrix.header.set_subtitle(cut)

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
    mean_agreement = agreement.mean_agreement(values)
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


AROUND = 12.0
"""Half the width, in pixels, of the view around a position without a spot."""


@dataclass(frozen=True, eq=False)
class _Preview:
    """Decisions that would change, those on the image on screen first; in blind mode only their number."""

    recount: Recount
    image: int
    changed: tuple[ChangedSpot, ...]
    blind: bool

    def summary(self) -> str:
        decisions, image = self.recount.decisions, sum(change.image == self.image for change in self.changed)
        all_of = counted(sum(decisions.values()), "spot")
        if not self.changed:
            text = f"would change none of {all_of} on {counted(len(decisions), 'image')}"
        elif len(decisions) == 1:
            text = f"would change {image:,} of {all_of}"
        else:
            on_image = counted(decisions.get(self.image, 0), "spot")
            text = (
                f"would change {image:,} of {on_image} on this image, "
                f"{len(self.changed):,} of {sum(decisions.values()):,} on all {len(decisions):,}"
            )
        lost = len(self.recount.failed)
        return f"{text}; {counted(lost, 'image')} could not be fused for the preview" if lost else text

    def changes(self) -> Sequence[Change]:
        return [
            Change(key, f"{change.name}  {_position_text(change)}", change.before, change.after)
            for key, change in enumerate(() if self.blind else self.changed)
        ]


class Exclusion(ClicksPart):
    """Exclusion, down-weighting and restoring of annotators, with a preview."""

    opened = Signal(int, object)  # image and spot of the selected change
    message = Signal(str)

    def __init__(self, core: ClicksCore, reviewing: SpotReview) -> None:
        super().__init__(core)
        self._reviewing = reviewing
        self._excluding = PreviewedExclusion(core.document, self._show, self._forget, core.kind)
        self._name = ""
        self._asked_of: Scene | None = None
        """The scene on screen when the dialog was opened; it may have changed since."""
        self._inputs: RunInputs | None = None
        self._recounts: dict[float | None, Recount] = {}
        """Results by weight, while the dialog is open."""
        self._changed: tuple[ChangedSpot, ...] = ()
        core.screen.table.exclude_requested.connect(self.exclude)
        core.screen.table.weigh_requested.connect(self.weigh)
        core.screen.table.include_requested.connect(self.include)

    def exclude_chosen(self) -> None:
        """Open the dialog for the annotator selected in the table, or restore an excluded one.

        Without a selection, focus the table.
        """
        screen, table = self._screen, self._screen.table
        if table.current is not None:
            table.exclude_current()
            return
        screen.unfold(screen.middle)
        screen.middle_tabs.setCurrentWidget(table)
        table.view.setFocus()
        table.view.selectRow(0)
        self.message.emit("Select an annotator with the arrow keys, then press X.")

    def exclude(self, number: int) -> None:
        """Ask whether to exclude an annotator from the next fusion."""
        self._ask(number, None)

    def weigh(self, number: int) -> None:
        """Ask whether to down-weight an annotator in the next fusion."""
        contents = self._document.contents
        if contents is not None:
            self._ask(number, contents.review.weights.get(contents.annotators[number], HALF))

    def toggle_program(self) -> None:
        """Exclude the scores of a program from the next fusion, or include them again."""
        session = self._reviewing.session
        if not session.shown:
            return
        if PROGRAM in self._document.review.excluded:
            self._document.record(Decision(verb="include", annotators=(PROGRAM,)))
            self.message.emit("The scores of the program are included from the next fusion on (F5).")
        elif session.scene.clicks.scores is None:
            self.message.emit("No scores of a program were imported for this image.")
        else:
            self._document.record(Decision(verb="exclude", annotators=(PROGRAM,)))
            self.message.emit("The scores of the program are excluded from the next fusion on (F5).")

    def include(self, number: int) -> None:
        """Restore an annotator with full weight."""
        contents = self._document.contents
        if contents is not None:
            self._document.record(Decision(verb="include", annotators=(contents.annotators[number],)))

    def _ask(self, number: int, weight: float | None) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self._forget()
        self._name = contents.annotators[number]
        session = self._reviewing.session
        self._asked_of = session.scene if session.shown else None
        name = pseudonym(number) if contents.hidden else self._name
        dialog = ExclusionDialog(
            name, self._screen.window(), marks="clicks", answers="decisions", weights=WEIGHTS, weight=weight
        )
        dialog.panel.task_chosen.connect(self._on_change)
        self._excluding.open(dialog, (self._name,))

    def _show(self, panel: ExclusionPanel) -> None:
        """Show the changes of the choice, or start to compute them."""
        scene, weight = self._asked_of, panel.weight
        why_not = _why_not(scene, self._name, weight)
        if scene is None or scene.run is None or why_not:
            self._excluding.cancel()
            panel.show_unknown(why_not)
        elif weight in self._recounts:
            self._excluding.cancel()
            self._on_found(weight, panel, self._recounts[weight])
        elif self._inputs is not None:
            self._recount(panel, self._inputs)
        elif not self._excluding.busy:
            job = self._document.ask("Reading the run", partial(gather_run, scene.run.id))
            self._excluding.follow("reading the run", job, self._recount)

    def _recount(self, panel: ExclusionPanel, inputs: RunInputs) -> None:
        self._inputs, weight, review = inputs, panel.weight, self._document.review
        title = "Fusing without an annotator" if weight is None else "Fusing with a down-weighted annotator"
        job = self._jobs.start(title, partial(recount, inputs, (self._name,), weight, review))
        self._excluding.follow("fusing", job, partial(self._on_found, weight))

    def _on_found(self, weight: float | None, panel: ExclusionPanel, result: Recount) -> None:
        self._recounts[weight] = result
        if self._asked_of is not None:
            image = self._asked_of.image.id
            self._changed = tuple(sorted(result.changed, key=lambda change: change.image != image))
            panel.show_preview(_Preview(result, image, self._changed, blind=self._reviewing.blind))

    def _on_change(self, key: int) -> None:
        change, session = self._changed[key], self._reviewing.session
        if change.cluster is not None and self._inputs is not None:
            self.opened.emit(change.image, spots_of(self._inputs.fusions[change.name], 0, ())[change.cluster])
        elif session.shown and session.scene.image.id == change.image:
            self._screen.canvas.look_at(change.x, change.y, AROUND)
        else:
            self._screen.go_to(change.image)

    def _forget(self) -> None:
        self._asked_of, self._inputs, self._changed, self._recounts = None, None, (), {}


def _why_not(scene: Scene | None, name: str, weight: float | None) -> str:
    """Return why the changes cannot be previewed; empty if they can."""
    if scene is None or scene.run is None or scene.fusion is None:
        return "Press Fuse (F5) first to preview what would change."
    if "stream" in scene.run.settings or scene.stream_note:
        return "This result comes from live watching. Press Fuse (F5) first to preview what would change."
    if name in scene.run.excluded:
        already = "" if weight is None else ": no preview of what would change"
        return f"The run shown excludes these clicks already{already}."
    if weight is not None and weight == scene.run.weights.get(name):
        return f"The run shown counts these clicks at {part_of_one(weight)} already."
    return ""


def _position_text(change: ChangedSpot) -> str:
    return f"at {change.x:.0f}, {change.y:.0f}" if change.cluster is None else f"spot {change.cluster + 1}"
