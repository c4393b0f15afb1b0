"""Comparison of several methods on the masks of one case or all, and of two sides of a movable divider.

The sides are runs, raters, programs or maps of a structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import Signal

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.fusion import CaseResult, MaskPlan
from raterscope.algorithms.masks.method_comparison import MethodComparison
from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.jobs import Job
from raterscope.app.kinds.masks.methods import (
    BASELINE,
    COLUMNS,
    FIGURES,
    REFERENCES,
    ComparedMethods,
    MethodBox,
    compare_cases,
    compared_title,
    load_methods,
    method_boxes,
    method_rows,
    methods_plans,
    store_methods,
)
from raterscope.app.kinds.masks.runs import Inputs, gather, plan_of
from raterscope.app.review import Region
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.raters import Raters
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.run_comparison import p_value_in_words, stacked
from raterscope.app.workspaces.masks.scene import Piece, Scene, consensus_of
from raterscope.app.workspaces.masks.screen import MAPS, MasksCore, MasksPart
from raterscope.figures.description import PlotTable
from raterscope.figures.evaluation import BoxView, box_chart
from raterscope.text import UNKNOWN, counted, duration, with_minus
from raterscope.widgets.divider import Side
from raterscope.widgets.painting import rater_colour
from raterscope.widgets.panels.task_panel import PROGRAM
from raterscope.widgets.tables.comparison_tables import NOT_KNOWN, ComparisonRow, Figures, Measure
from raterscope.widgets.volume.scene import HeatMap, Layers, Outline

TITLE = "Comparing methods"
WIDTH = 1.8


class MethodComparer(MasksPart):
    """Comparison of methods, on request; the study stores the figures, not the masks."""

    refused = Signal(str)
    message = Signal(str)
    outlines_changed = Signal()  # other outlines must be drawn: see `outlines`

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._panel = core.screen.methods
        self._methods: ComparedMethods | None = None
        self._reading, self._task = LatestTask(), LatestTask()
        self._read = False
        panel = self._panel
        panel.requested.connect(self._on_requested)
        panel.cancelled.connect(self._stop)
        panel.view_changed.connect(self._show)
        panel.outlines_toggled.connect(self.outlines_changed)
        core.document.replaced.connect(self.forget)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._offer_outlines)

    def forget(self) -> None:
        """Drop the comparison, and cancel the current one."""
        self._stop()
        self._methods, self._read = None, False
        self._panel.set_compared(None, truth=True)
        self._show()

    def _on_view(self) -> None:
        """Show another case or structure."""
        if not self._read and not self._session.covered:
            self._read = True
            job = self._document.ask("Reading compared methods", load_methods)
            self._reading.follow(job, self._on_kept)
        self._offer_outlines()

    def _offer_outlines(self) -> None:
        self._panel.set_outlines_available(self._comparison_on_screen() is not None)

    def outlines(self) -> list[Outline] | None:
        """Return the outlines of the selected methods on the case on screen; None while they are hidden."""
        comparison = self._comparison_on_screen()
        if comparison is None or not self._panel.outlines.isChecked():
            return None
        chosen = self._panel.chosen
        return [
            Outline(
                f"\n{fit.method}", FUSERS[fit.method].title, rater_colour(self._panel.number(fit.method)),
                fit.mask, fit.origin, WIDTH,
            )
            for fit in comparison.fits if fit.method in chosen and fit.mask is not None and fit.mask.any()
        ]  # fmt: skip

    def _comparison_on_screen(self) -> MethodComparison | None:
        session = self._session
        if self._methods is None or not session.shown or session.covered:
            return None
        name, structure = session.scene.image.name, session.part
        comparisons = (comparison.compared for comparison in self._methods.cases if comparison.name == name)
        matching = (
            comparison
            for comparison in comparisons
            if comparison.structure == structure and comparison.fits[0].mask is not None
        )
        return next(matching, None)

    def _on_requested(self, methods: Sequence[str], scope: str) -> None:
        if not self._session.shown or self._session.covered:
            self.refused.emit("Open a study of masks first.")
            return
        on_screen = self._session.scene.image.id
        images = [on_screen] if scope == "one" else [item.id for item in self._document.items("masks")]
        plans = [self._plan_of_run(plan) for plan in methods_plans(methods)]
        self._reading.cancel()
        self._panel.set_busy(True)
        self._panel.label.setText("reading the masks")
        job = self._document.ask("Reading masks", partial(gather, images))
        self._task.follow(job, partial(self._on_read, plans), stopped=partial(self._panel.set_busy, False))

    def _plan_of_run(self, plan: MaskPlan) -> MaskPlan:
        """Return the run's plan for the algorithm of the run on screen, else the default plan."""
        run = self._session.scene.run
        if run is None or run.algorithm != plan.algorithm:
            return plan
        return plan_of(run) or plan

    def _on_read(self, plans: Sequence[MaskPlan], inputs: Inputs) -> None:
        job = self._jobs.start(TITLE, partial(compare_cases, inputs, plans), costly=True)
        self._task.follow(
            job, self._on_compared, progressed=self._on_progress, failed=self.refused.emit,
            stopped=partial(self._panel.set_busy, False),
        )  # fmt: skip

    def _stop(self) -> None:
        self._reading.cancel()
        self._task.cancel()
        self._panel.set_busy(False)

    def _on_progress(self, job: Job) -> None:
        self._panel.label.setText(job.text)

    def _on_compared(self, methods: ComparedMethods) -> None:
        self._panel.set_busy(False)
        if not methods.cases:
            self.refused.emit(methods.problems[0])
            return
        self._take(methods)
        self._document.ask("Keeping compared methods", partial(store_methods, methods))
        if methods.problems:
            more_text = f" ({len(methods.problems) - 1} more like it)" if len(methods.problems) > 1 else ""
            self.message.emit(f"{methods.problems[0]}{more_text}")

    def _on_kept(self, methods: ComparedMethods | None) -> None:
        if methods is not None and self._methods is None:
            self._take(methods)

    def _take(self, methods: ComparedMethods) -> None:
        self._methods = methods
        self._panel.set_compared(PlotTable(COLUMNS, partial(method_rows, methods)), truth=methods.truth)
        self._offer_outlines()
        self._show()
        self.outlines_changed.emit()

    def _show(self) -> None:
        methods, panel = self._methods, self._panel
        if methods is None:
            panel.show_boxes(None)
            panel.table.set_rows(())
            return
        figure, reference = panel.measure, panel.reference.mode
        alone = figure in ("bound", "seconds")
        box_list = method_boxes(methods, figure, reference)
        views = [
            BoxView(
                compared_title(box.name, box.rater), box.values, faint=box.rater, starred=box.p_value < 0.05
            )
            for box in box_list
        ]
        title = FIGURES[figure] if alone else f"{FIGURES[figure]} {REFERENCES[reference]}"
        unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, methods.unit)
        star = f", * p < 0.05 against {BASELINE}" if any(view.starred for view in views) else ""
        cases = f"{counted(len(methods.cases), 'case')}{star}"
        panel.show_boxes(box_chart(views, title, unit, cases, logarithmic=figure == "seconds"))
        panel.table.set_rows(
            _rows(methods, reference), f"{REFERENCES[reference]}, {cases}", _measures(methods)
        )


def _rows(methods: ComparedMethods, reference: str) -> list[ComparisonRow]:
    tables = [
        {(box.name, box.rater): box for box in method_boxes(methods, figure, reference)} for figure in FIGURES
    ]
    names = dict.fromkeys(key for table in tables for key in table)
    lines = []
    for name, rater in names:
        figures = [_figures(table.get((name, rater))) for table in tables]
        p_value = tables[0][name, rater].p_value if (name, rater) in tables[0] else math.nan
        lines.append(
            ComparisonRow(name, compared_title(name, rater), "", (*figures, (p_value, math.nan, math.nan)))
        )
    return lines


def _figures(box: MethodBox | None) -> Figures:
    if box is None:
        return NOT_KNOWN
    low, middle, high = np.percentile(box.values, (25, 50, 75)).tolist()
    return (middle, low, high) if len(box.values) > 1 else (middle, math.nan, math.nan)


def _measures(methods: ComparedMethods) -> tuple[Measure, ...]:
    unit = f", {methods.unit}" if methods.unit else ""
    quartiles = "Median; quartiles below."
    return (
        Measure("Dice", f"Overlap: 1 where the masks are the same. {quartiles}", "highest", stacked),
        Measure(f"HD95{unit}", f"95th percentile of their distance. {quartiles}", "lowest", stacked),
        Measure(f"HD{unit}", f"Hausdorff distance of the outlines. {quartiles}", "lowest", stacked),
        Measure(f"surface{unit}", f"Mean distance of the outlines. {quartiles}", "lowest", stacked),
        Measure("bound", "Lower bound less the highest, nats; of the robust models alone, whose bounds are "
                f"comparable. {quartiles}", "highest", _integer),
        Measure("time", f"Seconds of the fusion alone. {quartiles}", "lowest", _seconds),
        Measure("p", f"Wilcoxon's signed-rank test of Dice against {BASELINE}, two-sided, from 6 cases on; "
                "not corrected for the number of methods.", "none", p_value_in_words),
    )  # fmt: skip


def _integer(value: float, _low: float, _high: float) -> str:
    return with_minus(f"{value:,.0f}") if math.isfinite(value) else UNKNOWN


def _seconds(value: float, _low: float, _high: float) -> str:
    return duration(value) if math.isfinite(value) else UNKNOWN


COMPARED_MAPS = ("disagreement", "doubt", "another", "truth", "uncertainty", "probability")
"""Maps that need no selected rater."""

Results = Mapping[int, tuple[RunEntry, CaseResult]]
"""Results of the case by run."""

RUN, RATER, TRUTH, MAP = "run", "rater", "truth", "map"
Choice = tuple[str, str]
"""Content of a side: run, rater, truth or map, with its number or name."""


class SideBySide(MasksPart):
    """Two runs, raters or maps on the slices, until another case is shown."""

    def __init__(self, core: MasksCore, reviewing: RegionReview, raters: Raters) -> None:
        super().__init__(core)
        self._reviewing, self._raters = reviewing, raters
        self._volume = core.screen.volume
        self._task = LatestTask()
        self._chosen: tuple[Choice, Choice] | None = None
        self._results: dict[int, tuple[RunEntry, CaseResult]] = {}
        """Results of the case read so far, without that of the run on screen."""
        self._volume.divider.side_chosen.connect(self._on_side_chosen)
        reviewing.consensus_changed.connect(self._refresh)
        core.session.view_changed.connect(self._on_view)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self.leave)

    @property
    def on(self) -> bool:
        """Whether two sides are shown."""
        return self._chosen is not None

    def leave(self) -> None:
        """Show all outlines on the whole slices again."""
        self._task.cancel()
        self._chosen = None
        self._results.clear()
        self._volume.set_sides(None)

    def toggle(self) -> None:
        """Show two sides, initially the run on screen and the latest other run; or one side again."""
        if self.on:
            self.leave()
            return
        if not self._session.shown or self._session.covered:
            self._screen.message.emit("Show a case outside blind mode first.")
            return
        empty = {(RATER, name) for name in self._session.scene.nothing.get(self._session.part, ())}
        shown = [choice for choice in self._choices() if choice[0] != MAP and choice not in empty]
        if len(shown) < 2:
            self._screen.message.emit("Comparing needs two masks of this structure. Import or fuse another.")
            return
        left = self._run_on_screen() or shown[0]
        others = [choice for choice in shown if choice != left]
        runs = [choice for choice in others if choice[0] == RUN]
        self._show(left, max(runs, key=lambda choice: int(choice[1]), default=others[0]))

    def _run_on_screen(self) -> Choice | None:
        run = self._session.scene.run
        return None if run is None else (RUN, str(run.id))

    def _choices(self) -> dict[Choice, str]:
        """Return the possible contents of a side, with their labels."""
        contents, scene, structure = self._document.contents, self._session.scene, self._session.part
        choices = {} if contents is None else _runs(contents, scene)
        about = dict.fromkeys(scene.nothing.get(structure, ()), f", {view.DREW_NOTHING}")
        about |= dict.fromkeys(scene.programs.get(structure, {}), PROGRAM)
        choices |= {(RATER, name): f"{name}{about.get(name, '')}" for name in scene.drawn(structure)}
        if structure in scene.truth:
            choices[TRUTH, ""] = view.TRUTH
        return choices | {(MAP, name): f"map: {MAPS[name]}" for name in COMPARED_MAPS}

    def _on_scene(self, scene: Scene) -> None:
        previous = self._session.previous
        if previous is None or previous.image.id != scene.image.id:
            self.leave()

    def _on_view(self) -> None:
        """Show another structure or run on both sides."""
        if self._session.covered:
            self.leave()
        else:
            self._refresh()

    def _refresh(self) -> None:
        if self._chosen is not None and self._session.shown:
            choices = self._choices()
            if all(choice in choices for choice in self._chosen):
                self._show(*self._chosen)
            else:
                self.leave()

    def _on_side_chosen(self, right: int, name: str) -> None:
        kind, _, what = name.partition(" ")
        if self._chosen is not None:
            left_choice, right_choice = self._chosen
            chosen = (kind, what)
            self._show(*((left_choice, chosen) if right else (chosen, right_choice)))

    def _show(self, left: Choice, right: Choice) -> None:
        scene = self._session.scene
        self._chosen = left, right
        runs = {int(name) for kind, name in (left, right) if kind == RUN}
        shown = None if scene.run is None else scene.run.id
        missing = runs - self._results.keys() - {shown}
        if missing:
            job = self._document.ask("Reading another run", partial(_read, scene.image.id, tuple(missing)))
            self._task.follow(job, self._on_read, failed=self._on_failed)
        else:
            self._draw()

    def _on_read(self, results: Results) -> None:
        self._results |= results
        self._draw()

    def _on_failed(self, sentence: str) -> None:
        self.leave()
        self._screen.refused.emit(sentence)

    def _draw(self) -> None:
        scene, structure = self._session.scene, self._session.part
        if self._chosen is None:
            return
        regions = self._document.review.regions(scene.image.id)
        colours, chosen = self._document.numbers, self._raters.current
        drawn = {outline.key: outline for outline in view.outlines(scene, structure, None, colours, chosen)}
        shown = None if scene.run is None else scene.run.id
        sides: list[tuple[Callable[[], Outline | None], str]] = []
        for kind, name in self._chosen:
            outline: Callable[[], Outline | None] = partial(_consensus, None)
            if kind == RUN and int(name) == shown:
                outline = partial(_consensus, self._reviewing.consensus)
            elif kind == RUN and int(name) in self._results:
                run, result = self._results[int(name)]
                outline = partial(_fused, replace(scene, run=run, result=result), structure, regions)
            elif kind != MAP:
                outline = partial(drawn.get, name or f"\n{view.TRUTH}")
            sides.append((outline, name if kind == MAP else "none"))
        job = self._jobs.start("Making maps", partial(_make_sides, scene, structure, sides), quiet=True)
        self._task.follow(job, self._on_made, failed=self._on_failed)

    def _on_made(self, made: Sequence[tuple[Outline | None, HeatMap | None, str]]) -> None:
        if self._chosen is None:
            return
        words = self._choices()
        choices = tuple((f"{kind} {name}", title) for (kind, name), title in words.items())
        left, right = (
            Layers(
                words.get(choice, choice[1]),
                () if outline is None else (replace(outline, key=f"\nside {side}"),),
                heat,
            )
            for side, (choice, (outline, heat, _)) in enumerate(zip(self._chosen, made, strict=True))
        )
        self._volume.set_sides((Side(left.title, choices), Side(right.title, choices)), (left, right))
        reason = next((reason for *_, reason in made if reason), "")
        if reason:
            self._screen.message.emit(reason)


def _runs(contents: Contents, scene: Scene) -> dict[Choice, str]:
    return {
        (RUN, str(run.id)): f"run {run.id}: {run_title(run)}"
        for run in contents.runs_of("masks")
        if scene.image.id in run.items
    }


def _consensus(piece: Piece | None) -> Outline | None:
    if piece is None or not piece.values.any():
        return None
    return view.consensus_outline(piece)


def _read(image: int, runs: tuple[int, ...], study: Study, watch: Watch) -> Results:
    results = {}
    for done, run in enumerate(runs):
        watch(done / len(runs), "reading")
        entry, result = study.shown.run_and_result(image, "masks", run)
        if entry is not None and result is not None:
            results[run] = entry, result
    return results


def _fused(scene: Scene, structure: str, regions: list[Region]) -> Outline | None:
    return _consensus(consensus_of(scene, structure, regions))


def _make_sides(
    scene: Scene, structure: str, sides: Sequence[tuple[Callable[[], Outline | None], str]], watch: Watch
) -> list[tuple[Outline | None, HeatMap | None, str]]:
    """Make the outline and the map of each side; return also why a map cannot be shown."""
    watch(0.0, "making maps")
    return [(outline(), *view.heat_map(scene, structure, name, None, None)) for outline, name in sides]
