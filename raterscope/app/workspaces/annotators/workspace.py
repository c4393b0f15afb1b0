"""Workspace of the annotators of all kinds, with panels of their agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QTabWidget

from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.annotator_evidence import Agreement, Course, Measurements
from raterscope.app.annotators.table import effects_of_exclusion, kinds_of, read_annotators, read_courses
from raterscope.app.annotators.writing import RuleError, is_rule, select_rows
from raterscope.app.document import Document
from raterscope.app.exports import REPORTS
from raterscope.app.formats.output_files import file_name_part
from raterscope.app.jobs import Job
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import Decision
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.workspaces import run_history
from raterscope.app.workspaces.annotator_decisions import AnnotatorDecisions
from raterscope.app.workspaces.annotators import view
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.figures.evaluation import bland_altman_chart, forest_chart
from raterscope.text import counted
from raterscope.widgets.figures.agreement_plots import CoursePlot
from raterscope.widgets.figures.chart_figure import ChartChoice, ChartPanel
from raterscope.widgets.layouts import TabPages
from raterscope.widgets.panels.activity_panels import HistoryEntry
from raterscope.widgets.panels.annotator_card import AnnotatorCard, CardView
from raterscope.widgets.panels.queue_items import QueuedItems, QueueFilter
from raterscope.widgets.panels.queue_panel import QueuePanel
from raterscope.widgets.tables.annotator_grid import EMPTY, AnnotatorGridView

SELECT_TWO = "Select two annotators in the table (Ctrl+click) to compare their values."
TOO_FEW = "These two have not measured three cases in common: volumes of masks or counts of clicks."
NO_ALPHA = (
    "Krippendorff's alpha needs two annotators or more on the same spots, voxels, tasks or pairs of items. "
    "Spots need a fusion of clicks."
)
_MIN_CASES = 3


class AgreementPlots(QObject):
    """The two plots for the selected annotators, filled while they are visible.

    `tabs`: gets a tab for each plot. `names`: returns all names of each selected annotator, the main name
    first. `shown`: returns the displayed form of a name.
    """

    def __init__(
        self,
        document: Document,
        tabs: QTabWidget,
        names: Callable[[], Sequence[Sequence[str]]],
        shown: Callable[[str], str],
    ) -> None:
        super().__init__(tabs)
        self._document, self._tabs, self._names, self._shown = document, tabs, names, shown
        self.bland_altman = ChartChoice("Bland-Altman", SELECT_TWO, "Quantity to compare")
        self.alpha = ChartPanel("Krippendorff's alpha", NO_ALPHA)
        tabs.addTab(self.bland_altman, "Bland-Altman")
        tabs.addTab(self.alpha, "Alpha")
        self._measuring, self._comparing = LatestTask(), LatestTask()
        self._measured: Sequence[Measurements] | None = None
        self._compared: tuple[Any, ...] | None = None
        tabs.currentChanged.connect(self.update)

    def forget(self) -> None:
        """Drop the measurements, because annotations or decisions changed."""
        self._measuring.cancel()
        self._comparing.cancel()
        self._measured = self._compared = None

    def update(self) -> None:
        """Measure and compare, for the visible plots."""
        if self._document.contents is None:
            return
        current = self._tabs.currentWidget()
        if current is self.bland_altman:
            self._compare_two()
        elif current is self.alpha:
            self._compare_votes()

    def _compare_two(self) -> None:
        names = self._names()
        if len(names) != 2:
            self.bland_altman.show_charts((), (), SELECT_TWO)
        elif self._measured is None:
            if not self._measuring.busy:
                self.bland_altman.show_charts((), (), "Measuring volumes and counts.")
                job = self._document.read_beside("Measuring observer variability", _measure, quiet=True)
                self._measuring.follow(job, self._on_measured, failed=self._on_failed)
        else:
            first, second = (own[0] for own in names)
            charts, titles = [], []
            for measured in self._measured:
                own, other = measured.values.get(first, {}), measured.values.get(second, {})
                common = sorted(own.keys() & other.keys())
                if len(common) >= _MIN_CASES:
                    a, b = ([of[case] for case in common] for of in (own, other))
                    both = self._shown(first), self._shown(second)
                    charts.append(bland_altman_chart(a, b, both, measured.quantity, measured.unit))
                    titles.append(measured.quantity)
            self.bland_altman.show_charts(charts, titles, TOO_FEW)

    def _on_failed(self, sentence: str) -> None:
        self.bland_altman.show_charts((), (), f"Volumes and counts cannot be measured: {sentence}")

    def _on_measured(self, measured: Sequence[Measurements]) -> None:
        self._measured = measured
        self.update()

    def _compare_votes(self) -> None:
        selected = self._names()
        names = tuple(name for own in selected for name in own) if len(selected) > 1 else ()
        if names == self._compared:
            return
        self._compared = names
        text = f"{len(selected):,} selected annotators" if names else "all annotators"
        job = self._document.read_beside("Measuring agreement", partial(_compare, names), quiet=True)
        self._comparing.follow(job, partial(self._on_compared, text))

    def _on_compared(self, text: str, agreements: Sequence[Agreement]) -> None:
        known = [each for each in agreements if np.isfinite(each.alpha.value)]
        units = ", ".join(f"{each.name} {each.units}" for each in known)
        title = f"Krippendorff's alpha of {text}: {units}"
        names, alphas = [each.name for each in known], [each.alpha for each in known]
        self.alpha.set_chart(forest_chart(names, alphas, title, 0.0) if known else None)


def _measure(study: Study, watch: Watch) -> Sequence[Measurements]:
    return [
        measurements
        for _, functions, step in kinds_of(study, watch)
        for measurements in functions.measurements(study, step)
    ]


def _compare(names: Sequence[str], study: Study, watch: Watch) -> Sequence[Agreement]:
    return [
        agreement
        for _, functions, step in kinds_of(study, watch)
        for agreement in functions.agreement(study, names, step)
    ]


FILTERS = (
    QueueFilter("all", "all"),
    QueueFilter("undecided", "not excluded", "All annotators are excluded."),
)
SETTLED_MS = 120
"""Milliseconds without a change of the selection before courses are read."""
UNFUSED = "Fuse clicks, masks, labels or pairs in their tabs (F5) to see what is known of each annotator."
READING = "Reading the annotators."


class AnnotatorsWorkspace(WorkspaceLayout):
    """Table of the annotators with queue, card, course and history."""

    queue: QueuePanel

    def build(self) -> Iterator[None]:
        """Make the widgets, and connect them with the study."""
        self.table, self.card = AnnotatorGridView(), AnnotatorCard()
        yield
        self.course = CoursePlot()
        queue = QueuePanel("Annotators", FILTERS)
        queue.header.set_subtitle("most unusual")
        queue.filter.hide()
        yield
        self.plots = TabPages()
        yield from self.place_regions(queue, self.table, self.card, (self.plots,), (420, 780))
        self.plots.addTab(self.course, "Over time")
        self.plots.tabBar().setAccessibleName("Course and agreement")
        self.agreement = AgreementPlots(self._document, self.plots, self._selected_names, self._shown_name)
        self._reading, self._preparing = LatestTask(), LatestTask()
        self._course_task, self._effect_task = LatestTask(), LatestTask()
        self._feedback_task = LatestTask()
        self.prepared: view.Prepared | None = None
        self._stale = True
        self._after: tuple[str, ...] = ()
        """Annotators to select after the table is read again."""
        self._courses: dict[str, tuple[Course, ...]] = {}
        self._lines: dict[int, HistoryEntry] = {}
        self._settle = QTimer(self, singleShot=True, interval=SETTLED_MS)
        self._settle.timeout.connect(self._follow_selection)
        self.decisions = AnnotatorDecisions(
            self._document, lambda: self.table.selected, self._shown_name, self
        )
        self._connect()
        self._add_keys()
        self._on_replaced()
        yield

    def _connect(self) -> None:
        document = self._document
        document.replaced.connect(self._on_replaced)
        for signal in (
            document.changed,
            document.run_chosen,
            document.radius_changed,
            document.names_changed,
        ):
            signal.connect(self._on_changed)
        document.decided.connect(self._on_decided)
        self._jobs.updated.connect(self._on_job)
        self.history.undo.clicked.connect(document.undo)
        self.history.redo.clicked.connect(document.redo)
        self.job_list.cancel_requested.connect(self._jobs.cancel)
        self.table.filter.textChanged.connect(self._on_filter)
        self.table.chosen.connect(self._on_chosen)
        self.queue.item_chosen.connect(self._on_queue)
        for request, slot in (
            (self.card.exclude_requested, self.decisions.exclude),
            (self.card.weigh_requested, self.decisions.weigh),
            (self.card.flag_requested, self.decisions.flag),
            (self.card.program_requested, self._mark_programs),
            (self.card.join_requested, self.decisions.join),
            (self.card.separate_requested, self.decisions.separate),
            (self.card.feedback_requested, self.ask_feedback),
        ):
            request.connect(slot)
        self.decisions.message.connect(self.message)
        self.decisions.refused.connect(self.refused)

    def _add_keys(self) -> None:
        self.add_shortcuts(
            (
                ("Exclude annotators, or restore them", "X", self.decisions.exclude),
                ("Down-weight annotators", "W", self.decisions.weigh),
                ("Flag annotators, or remove the flag", "F", self.decisions.flag),
                ("Mark annotators as programs, or as persons", "M", self._mark_programs),
                ("Join names of one annotator", "J", self.decisions.join),
                ("Separate joined names", "U", self.decisions.separate),
                ("Write a feedback page for the annotator", "P", self.ask_feedback),
                ("Next annotator, the most unusual first", "Tab", partial(self.step, 1)),
                ("Previous annotator", "Shift+Tab", partial(self.step, -1)),
                ("Filter annotators", "Ctrl+F", self.table.filter.setFocus),
                ("Back to the table", "Esc", self.table.setFocus),
            ),
            (self.table,),
        )

    # What the window asks

    def annotators_on_screen(self) -> Sequence[str]:
        """Return the names of all annotators."""
        return () if self.prepared is None else self.prepared.table.names

    def choose_annotator(self, name: str) -> None:
        """Select an annotator."""
        self.table.select((name,))

    def view_state(self) -> dict[str, Any]:
        """Return filter and selection too."""
        return {
            **super().view_state(),
            "filter": self.table.filter.text(),
            "selected": list(self.table.selected),
        }

    def restore_view(self, state: Mapping[str, Any]) -> None:
        """Restore filter and selection too."""
        super().restore_view(state)
        text, names = state.get("filter"), state.get("selected")
        if isinstance(text, str):
            self.table.filter.setText(text)
        if isinstance(names, list):
            self._after = tuple(name for name in names if isinstance(name, str))
            self.table.select(self._after)

    def _mark_programs(self) -> None:
        table, names = None if self.prepared is None else self.prepared.table, self.table.selected
        evidence = () if table is None else table.evidence
        kinds = {
            part.kind for part in evidence for name in names
            if table is not None and name in table.index and table.of_kind(name, part.kind)
        }  # fmt: skip
        self.decisions.mark_programs(kinds)

    def ask_feedback(self) -> None:
        """Ask for a file, and write the feedback page of the selected annotator to it."""
        contents, name = self._document.contents, next(iter(self.table.selected), "")
        if contents is None or not name:
            self.message.emit("Select an annotator in the table first.")
            return
        shown = self._shown_name(name)
        proposed = contents.path.with_name(f"{contents.path.stem}-feedback-{file_name_part(shown)}.html")
        title = f"Feedback page for {shown}"
        path, _ = QFileDialog.getSaveFileName(self, title, str(proposed), REPORTS)
        if path:
            work = partial(_write_feedback, name, Path(path))
            job = self._document.read_beside("Writing the feedback page", work, lasting=True)
            self._feedback_task.follow(job, self._on_feedback, failed=self.refused.emit, must_finish=True)

    def _on_feedback(self, path: Path) -> None:
        self.message.emit(f"Feedback page saved to {path}.")

    def step(self, by: int) -> None:
        """Select the next or previous annotator of the queue who is not excluded, the most unusual first."""
        keys = [str(item.key) for item in self.queue.shown() if not item.done]
        if not keys:
            listed = self.queue.shown()
            if not self._reading.busy:
                self.message.emit(
                    "All annotators are excluded." if listed else "The queue lists no annotators."
                )
            return
        self.message.emit("")
        current = self.table.selected[0] if self.table.selected else None
        at = keys.index(current) + by if current in keys else (0 if by > 0 else -1)
        self.table.select((keys[at % len(keys)],))

    # The study

    def showEvent(self, event: QShowEvent) -> None:
        """Read the annotators if anything changed while they were hidden."""
        super().showEvent(event)
        if self._stale:
            self._read()

    def _on_replaced(self) -> None:
        for task in (self._reading, self._preparing, self._course_task, self._effect_task):
            task.cancel()
        self.prepared, self._after, self._lines = None, (), {}
        self._courses.clear()
        self.table.filter.clear()
        self.table.set_grid(EMPTY)
        self.queue.set_items(QueuedItems())
        self._on_changed()

    def _on_changed(self) -> None:
        self._lines = {}
        self._show_history()
        self._stale = True
        if self.isVisible():
            self._read()

    def _read(self) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self._stale = False
        self._preparing.cancel()
        if self.prepared is None:
            self.table.set_nothing(READING)
        job = self._document.read_beside("Reading annotators", partial(_read, contents.hidden), quiet=True)
        self._reading.follow(job, self._on_prepared, failed=self._on_unread)

    def _on_unread(self, sentence: str) -> None:
        self.table.set_nothing(f"The annotators cannot be read: {sentence}")

    def _on_prepared(self, prepared: view.Prepared) -> None:
        self.prepared = prepared
        self._courses.clear()
        self.agreement.forget()
        self.table.set_nothing("" if prepared.table.evidence else UNFUSED)
        passing, _ = self._passing()
        self.table.set_grid(prepared.grid, passing)
        self.queue.set_items(prepared.queued)
        if self._after:
            self.table.select(self._after)
            self._after = ()
        self._show_card()
        self._settle.start()
        self._show_status()

    def _on_decided(self, decision: Decision) -> None:
        self._show_history()
        contents, prepared = self._document.contents, self.prepared
        if contents is None:
            return
        target = contents.target(decision) or decision
        if target.verb == "join" and decision is target:
            self._after = decision.annotators[:1]
        if prepared is None or not target.annotators or self._stale or self._reading.busy:
            self._on_changed()
            return
        table = prepared.table.with_review(contents.review)
        if table is None:
            self._on_changed()
            return
        job = self._jobs.start(
            "Comparing annotators", partial(view.prepare, table, contents.hidden), quiet=True
        )
        self._preparing.follow(job, self._on_prepared)

    def _show_history(self) -> None:
        contents = self._document.contents
        self.history.set_entries(run_history.history(contents, self._lines) if contents else ())
        self.history.set_undoable(*self._document.undo_text)

    def _on_job(self, job: Job) -> None:
        self.job_list.set_job(run_history.job_line(job))

    def _show_status(self) -> None:
        assert self.prepared is not None
        table = self.prepared.table
        kinds = ", ".join(KINDS[evidence.kind].title.lower() for evidence in table.evidence)
        unusual = int((self.prepared.unusual.score > 0).sum())
        parts = [counted(len(table), "annotator"), kinds or "no results yet", f"{unusual:,} unusual"]
        self.status_changed.emit(" | ".join(parts))

    # Filter and selection

    def _passing(self) -> tuple[Any, str]:
        """Return the rows that pass the filter, None for all, and the error of the filter."""
        text = self.table.filter.text().strip()
        if self.prepared is None or not text:
            return None, ""
        table = self.prepared.table
        if self.prepared.shown is not table.names and not is_rule(text):
            return select_rows(
                text, {}, np.array([name.casefold() for name in self.prepared.shown], dtype=object)
            ), ""
        try:
            return select_rows(text, table.columns, table.searched), ""
        except RuleError as error:
            return None, str(error)

    def _on_filter(self) -> None:
        self.table.choose_rows(*self._passing())

    def _on_queue(self, key: object) -> None:
        self.table.select((str(key),))

    def _on_chosen(self, names: tuple[str, ...]) -> None:
        self.queue.set_current(names[0] if names else None)
        self._show_card()
        self._settle.start()

    def _show_card(self) -> None:
        self._effect_task.cancel()
        self.card.show_card(self._card())

    def _card(self) -> CardView | None:
        """Return the card of the selection, with expert, time and reason of an exclusion or flag."""
        shown = None if self.prepared is None else view.card(self.prepared, self.table.selected)
        if shown is None or len(shown.names) > 1:
            return shown
        words = (self._decision_text("exclude", "Excluded"), self._decision_text("mark", "Flagged"))
        return replace(shown, sentences=(*filter(None, words), *shown.sentences))

    def _decision_text(self, verb: str, done: str) -> str:
        """Describe the decision that excluded or flagged the selected annotator; empty without one."""
        contents, name = self._document.contents, next(iter(self.table.selected), "")
        if contents is None:
            return ""
        of_verb = contents.review.excluded if verb == "exclude" else contents.review.flagged
        for decision in reversed(contents.decisions if name in of_verb else ()):
            own = decision.verb == verb and name in decision.annotators
            if own and decision.at is not None and contents.review.stands(decision.id):
                when = f"{decision.at.astimezone():%Y-%m-%d %H:%M}"
                return f"{done} by {decision.who}, {when}: {decision.reason or 'no reason given'}."
        return ""

    def _selected_names(self) -> Sequence[Sequence[str]]:
        """Return all names of each selected annotator, the main name first."""
        prepared = self.prepared
        if prepared is None:
            return ()
        table = prepared.table
        return [table.all_names(name) for name in self.table.selected if name in table.index]

    def _follow_selection(self) -> None:
        """Read the courses of one or two selected annotators, and the effect of an exclusion."""
        self.agreement.update()
        prepared = self.prepared
        if prepared is None or self._document.contents is None:
            return
        selected = [name for name in self.table.selected if name in prepared.table.index]
        names = tuple(selected[:2] if len(selected) == 2 else selected[:1])
        missing = [name for name in names if name not in self._courses]
        if missing:
            every = {name: prepared.table.all_names(name) for name in missing}
            job = self._document.read_beside(
                "Following annotators", partial(_read_courses, every), quiet=True
            )
            self._course_task.follow(job, partial(self._on_courses, names))
        else:
            self._course_task.cancel()
            self._on_courses(names, {})
        if len(names) == 1 and names[0] in prepared.table.excluded:
            every_name = prepared.table.all_names(names[0])
            job = self._document.read_beside(
                "Comparing runs", partial(effects_of_exclusion, every_name), quiet=True
            )
            self._effect_task.follow(job, partial(self._on_effects, names[0]))

    def _on_courses(self, names: tuple[str, ...], courses: Mapping[str, tuple[Course, ...]]) -> None:
        self._courses.update(courses)
        if self.prepared is not None:
            listed = [name for name in names if name in self.prepared.table.index]
            self.course.show_courses(view.courses(self._courses, self.prepared, listed))

    def _on_effects(self, name: str, effects: tuple[str, ...]) -> None:
        if self.prepared is not None and self.table.selected[:1] == (name,):
            now = self._card()
            before = () if now is None else now.sentences
            nothing = ("Not fused without them yet: fuse again (F5) in their tabs.",)
            self.card.set_sentences((*before, *(effects or nothing)))

    def _shown_name(self, name: str) -> str:
        prepared = self.prepared
        return name if prepared is None else prepared.shown[prepared.table.index[name]]


def _write_feedback(name: str, path: Path, study: Study, watch: Watch) -> Path:
    from raterscope.app.annotators.writing import write_feedback  # it loads what reports need

    return write_feedback(study, name, path, watch)


def _read(hidden: bool, study: Study, watch: Watch) -> view.Prepared:
    return view.prepare(read_annotators(study, part(watch, 0.0, 0.95)), hidden, part(watch, 0.95, 1.0))


def _read_courses(
    every: Mapping[str, Sequence[str]], study: Study, watch: Watch
) -> dict[str, tuple[Course, ...]]:
    return {
        name: read_courses(frozenset(names), study, step)
        for (name, names), step in steps_of(watch, every.items())
    }
