"""Annotators of a question in detail: confusion matrix, communities, copying, change, exclusion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import Qt, QTimer, Signal

from raterscope.algorithms.labels import drift
from raterscope.algorithms.labels.constancy import FALSE_ALARMS, MIN_VOTES, main_change
from raterscope.algorithms.labels.copying import copying_of
from raterscope.algorithms.labels.cross_validation import ExclusionPreview, preview_exclusion
from raterscope.algorithms.labels.fusion import LabelPlan, run_with_programs
from raterscope.algorithms.labels.result import Copying
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.settings import SettingsError
from raterscope.app.kinds.labels.community_charts import aligned_steps
from raterscope.app.review import Decision
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.annotator_decisions import PreviewedExclusion
from raterscope.app.workspaces.labels import communities, view
from raterscope.app.workspaces.labels.communities import CommunitiesOverTimeView
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.screen import EXCLUDE, RESTORE, LabelsCore, LabelsPart
from raterscope.app.workspaces.labels.view import name_of, time_of
from raterscope.text import MIN_P, counted, percent
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from raterscope.widgets.figures.drift_plots import DriftView
from raterscope.widgets.layouts import DeferredContent
from raterscope.widgets.panels.drift_panel import ChangeLine
from raterscope.widgets.panels.exclusion_panel import REASONS, ExclusionPanel
from raterscope.widgets.panels.exclusion_panel import ExclusionPreview as Preview


class CopyingReport(LabelsPart):
    """Groups of annotators who may copy, below the communities, selected one after the other."""

    chosen = Signal(object)  # annotators of a group

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._cards = core.screen.cards
        self._task = LatestTask()
        self._groups: tuple[tuple[int, ...], ...] = ()
        self._next = 0
        self._cards.copies.clicked.connect(self._on_clicked)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.cancel()
        self._groups, self._next = (), 0
        self._cards.show_copying_link("")

    def _on_scene(self, scene: Scene) -> None:
        self._clear()
        if scene.result is not None:
            job = self._jobs.start("Comparing annotators", partial(_copies, scene), quiet=True)
            self._task.follow(job, self._on_found)

    def _on_found(self, copying: Copying) -> None:
        self._groups = copying.groups()
        self._cards.show_copying_link(copying_in_words(copying))

    def _on_clicked(self) -> None:
        if self._groups:
            self.chosen.emit(self._groups[self._next % len(self._groups)])
            self._next += 1


def copying_in_words(copying: Copying) -> str:
    """Describe how many annotators may copy, and the evidence; empty if none does."""
    groups = copying.groups()
    if not groups:
        return ""
    count = sum(map(len, groups))
    in_groups = f" in {len(groups)} groups" if len(groups) > 1 else ""
    total = float(copying.common.sum())
    same, expected = float(copying.same.sum()) / total, float(np.sum(copying.expected)) / total
    alternative = ", or the others share a mistake" if copying.outvoting else ""
    return (
        f"{count:,} annotators{in_groups} may copy{alternative}: {percent(same)} the same answers, "
        f"{percent(expected)} expected. Choose them"
    )


def _copies(scene: Scene, watch: Watch) -> Copying:
    assert scene.result is not None
    return copying_of(scene.labels, scene.result, watch)


MAX_LISTED = 3
ALIGNED = 5
"""Number of steps marked on the rows of all classes, at the same times."""


@dataclass(frozen=True)
class ChangedAnnotator:
    """An annotator and the largest change of a row of the confusion matrix."""

    annotator: int
    change: drift.ChangePoint
    changes: int
    p: float


def drift_view(scene: Scene, analysis: Analysis, annotator: int) -> DriftView | None:
    """Return an annotator's rates over time; None without votes, or if the run has no drift."""
    fusion = scene.fusion
    if fusion is None or fusion.drift is None:
        return None
    about = fusion.drift, scene.labels, fusion, annotator
    course = drift.row_over_time(*about)
    steps = len(course.mean)
    if not steps:
        return None
    constancy = analysis.constancy
    changed = constancy is not None and constancy.p[annotator] < FALSE_ALARMS
    changes = drift.change_points(*about) if changed else ()
    return DriftView(
        classes=fusion.classes,
        outputs=fusion.outputs,
        mean=course.mean,
        low=course.low,
        high=course.high,
        informed=drift.align_rows(*about),
        changes=tuple((change.step, change.true, _text(change, fusion.outputs)) for change in changes),
        step=steps - 1,
        summary=_summary(scene, analysis, annotator, changes),
        together=_together(scene, annotator),
    )


def _together(scene: Scene, annotator: int) -> tuple[tuple[int, str], ...]:
    """Return the steps at which rows are aligned, with the votes of all annotators until then."""
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    aligned = aligned_steps(scene.labels, scene.fusion.drift, annotator, ALIGNED)
    return tuple(
        (step, f"{votes:,}") for step, votes in zip(*(values.tolist() for values in aligned), strict=True)
    )


def changed_annotators(scene: Scene, analysis: Analysis, watch: Watch) -> tuple[ChangedAnnotator, ...]:
    """List the annotators with a significant change, the largest change first."""
    fusion, constancy = scene.fusion, analysis.constancy
    assert fusion is not None
    assert fusion.drift is not None
    assert constancy is not None
    changed = []
    annotators = constancy.changed().tolist()
    for done, annotator in enumerate(annotators):
        watch(done / len(annotators), "looking for who changed")
        rows = drift.change_points(fusion.drift, scene.labels, fusion, annotator)
        largest = main_change(constancy, scene.labels, fusion, annotator)
        changed.append(ChangedAnnotator(annotator, largest, max(len(rows), 1), float(constancy.p[annotator])))
    return tuple(changed)


def change_line(scene: Scene, changed: ChangedAnnotator, *, blind: bool) -> ChangeLine:
    """Return the list entry of an annotator who changed."""
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    votes = len(scene.fusion.drift.vote[scene.fusion.drift.steps(changed.annotator)])
    return ChangeLine(
        key=changed.annotator,
        annotator=int(scene.annotator_ids[changed.annotator]),
        name=name_of(scene, changed.annotator, blind=blind),
        when=f"vote {changed.change.step + 1:,} of {votes:,}",
        how=_row(scene, changed.change)
        + (f"; {counted(changed.changes - 1, 'change')} more" if changed.changes > 1 else ""),
        brief=_row(scene, changed.change, most=1),
    )


def _summary(scene: Scene, analysis: Analysis, annotator: int, changes: tuple[drift.ChangePoint, ...]) -> str:
    """Describe an annotator's largest change: "Changed at vote 241 (2026-03-01): ring given as ..."."""
    constancy = analysis.constancy
    assert scene.fusion is not None
    assert scene.fusion.drift is not None
    if constancy is None or not np.isfinite(constancy.p[annotator]):
        return f"Too few votes to see a change: at least {MIN_VOTES} are needed."
    p = float(constancy.p[annotator])
    chance = f"p {'<' if p < MIN_P else '='} {max(p, MIN_P):.2g}"
    if p >= FALSE_ALARMS:
        return f"No change beyond chance ({chance})."
    largest = main_change(constancy, scene.labels, scene.fusion, annotator)
    vote = int(scene.fusion.drift.vote[scene.fusion.drift.steps(annotator)][largest.step])
    day = time_of(scene.labels.time, vote)
    when = f"vote {largest.step + 1:,}" + (f" ({day})" if day else "")
    other_votes = [f"{change.step + 1:,}" for change in changes if change.step != largest.step]
    more_text = f" and {len(other_votes) - MAX_LISTED:,} more" if len(other_votes) > MAX_LISTED else ""
    beside = f"; changes too at vote {', '.join(other_votes[:MAX_LISTED])}{more_text}" if other_votes else ""
    return f"Changed at {when}: {_row(scene, largest)}{beside} ({chance})."


def _row(scene: Scene, change: drift.ChangePoint, most: int = 2) -> str:
    """Describe the outputs of a row that changed most: "ring given as ring: 0.88 → 0.34"."""
    assert scene.fusion is not None
    if change.true == drift.RIGHT:
        return f"right {change.before[0]:.2f} → {change.after[0]:.2f}"
    largest = np.argsort(-np.abs(change.after - change.before), kind="stable")[:most]
    text = ", ".join(
        f"as {scene.fusion.outputs[at]}: {change.before[at]:.2f} → {change.after[at]:.2f}"
        for at in largest.tolist()
    )
    return f"{scene.fusion.classes[change.true]} given {text}"


def _text(change: drift.ChangePoint, outputs: tuple[str, ...]) -> str:
    """Describe the labels given more and less often since: "says 3 more often, 1 less"."""
    difference = change.after - change.before
    more, less = outputs[int(difference.argmax())], outputs[int(difference.argmin())]
    return f"says {more} more often, {less} less"


NO_TIMES = "These votes have no times: their order in the file is used instead."
UNFUSED_DRIFT = "Press Fuse (F5) to see how annotators change over time."
UNFUSED_MATRIX = "Press Fuse (F5) to see the confusion matrix of the crowd."
LOOKING = "Looking for annotators who changed."
CHANGED = (
    "These changed (p < 0.05 each: about 1 in 20 who did not change is listed too), those who changed most "
    "first. Select one to plot its rates over time."
)
EXCLUDED = (
    "{name} was excluded from this run: {votes} not counted. To plot the rates over time, restore the "
    "annotator (X) and press Fuse (F5)."
)
VOTELESS = "{name} has no votes in this run: no rates to plot."
UNCHANGED = "No annotator changed beyond chance. Select an annotator to plot their rates over time."


class AnnotatorDetail(LabelsPart):
    """Controller of wall, matrix, communities, similarity and drift, which share a selection."""

    community_chosen = Signal()  # another community is selected, or none: `members`
    cell_chosen = Signal(int, int)  # int true, int given: a cell of the matrix of the selected annotators

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._task = LatestTask()
        self._changed: tuple[ChangedAnnotator, ...] | None = None
        """Annotators who changed over time; None until they are computed."""
        self.community: int | None = None
        self.grouping = communities.Grouping(core)
        self.similar = communities.SimilarityPlot(core)
        self.flowing = CommunitiesOverTimeView(core)
        self.copies = CopyingReport(core)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        core.session.blind_changed.connect(self._on_blind)
        core.session.selection_changed.connect(self._mark)
        core.screen.wall.selection_changed.connect(self._on_wall)
        core.screen.wall.activated.connect(self._go_to)
        core.screen.matrix.cell_chosen.connect(self.cell_chosen)
        core.screen.cards.community_chosen.connect(self.choose_community)
        core.screen.participation.figure.chosen.connect(self.choose_community)
        self._deferred_shares = DeferredContent(core.screen.participation)
        core.screen.triangles.figure.chosen.connect(self._on_triangle)
        core.screen.drift.changed.chosen.connect(self._on_changed_chosen)
        self.grouping.changed.connect(self._on_grouped)
        self.similar.chosen.connect(self.choose)
        self.flowing.chosen.connect(self.choose)
        self.copies.chosen.connect(self.choose)

    @property
    def members(self) -> tuple[int, ...]:
        """Annotators of the selected community."""
        groups = self.grouping.groups
        if groups is None or self.community is None:
            return ()
        return tuple(np.flatnonzero(groups.of == self.community).tolist())

    def names(self, annotators: Iterable[int]) -> tuple[str, ...]:
        """Return the names of annotators."""
        if not self._session.shown:
            return ()
        return tuple(self._session.scene.labels.annotators[annotator] for annotator in annotators)

    def _clear(self) -> None:
        self._task.cancel()
        self._changed = None
        self.grouping.clear()
        self._leave_community()
        self._screen.wall.set_wall(None)
        communities.show_no_cards(self._screen.cards)
        self._show_relations()
        self._screen.matrix.clear()
        self._deferred_shares.cancel()
        self._screen.participation.show_participation(np.zeros((0, 0)), (), ())
        self._screen.drift.show_drift(None)
        self._session.select(())

    def _on_scene(self, scene: Scene) -> None:
        """Show another question or run; the selection is kept while the question stays."""
        previous, count = self._session.previous, len(scene.labels.annotators)
        same = previous is not None and scene.question.id == previous.question.id
        current = (
            tuple(annotator for annotator in self._session.selection if annotator < count) if same else ()
        )
        self._changed = None
        self.grouping.show(scene, self._session.analysis)
        self._leave_community()
        self._session.select(current)
        self._show_wall()
        self._show_cards()
        self._show_relations()

    def refresh(self) -> None:
        """Update the excluded annotators after a decision."""
        self._show_wall()

    def _on_blind(self, _blind: bool) -> None:
        """Hide the annotators' names."""
        self._show_wall()
        self._show_cards()
        self._mark()

    def choose(self, annotators: Sequence[int]) -> None:
        """Select annotators everywhere, or none."""
        self._screen.wall.select(tuple(annotators))
        self._session.select(tuple(annotators))

    def choose_community(self, number: int | None) -> None:
        """Select a community everywhere, or none."""
        self.community = number
        self._screen.cards.select(number)
        self._screen.similarity.select(number)
        self._screen.flow.select(number)
        self._screen.triangles.select(number)
        members = self.members
        self._screen.wall.highlight(members if number is not None else None)
        self.choose(members)
        self.community_chosen.emit()

    def _on_triangle(self, number: int) -> None:
        """Select a community, unless it is an earlier one that has no members now."""
        groups = self.grouping.groups
        if groups is not None and number < groups.communities.count:
            self.choose_community(number)

    def _on_grouped(self) -> None:
        """Show the communities of another grouping everywhere, one widget per turn of the event loop."""
        self._leave_community()
        for step in (self._show_wall, self._show_cards, self._show_relations, self._show_participation):
            QTimer.singleShot(0, self, step)

    def _leave_community(self) -> None:
        self.community = None
        self._screen.wall.highlight(None)

    @while_shown
    def _show_cards(self) -> None:
        grouping, session = self.grouping, self._session
        communities.show_cards(
            self._screen.cards, session.scene, grouping.groups, grouping.notices, self.community,
            order=session.analysis.class_order, blind=session.blind,
        )  # fmt: skip

    def _show_relations(self) -> None:
        self._screen.similarity.select(self.community)
        self._screen.flow.select(self.community)
        self._screen.triangles.select(self.community)
        self.similar.show(self.grouping.groups)
        self.flowing.show(self.grouping.groups)
        self.community_chosen.emit()

    def _go_to(self, annotator: int) -> None:
        """Select an annotator, and move the focus to their matrix."""
        self.choose((annotator,))
        self._screen.matrix.parts.currentWidget().setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_wall(self, annotators: tuple[int, ...]) -> None:
        self._session.select(tuple(annotators))

    @while_shown
    def _show_wall(self) -> None:
        session, excluded = self._session, self._document.review.excluded
        analysis = replace(session.analysis, groups=self.grouping.groups)
        self._screen.wall.set_wall(view.wall_view(session.scene, analysis, excluded, blind=session.blind))
        self._screen.wall.select(session.selection)

    @while_shown
    def _mark(self) -> None:
        """Show matrix, participation and drift of the selected annotators."""
        session = self._session
        matrix = view.matrix_view(session.scene, session.analysis, session.selection, blind=session.blind)
        if matrix is None:
            self._screen.matrix.set_nothing("" if session.scene.fusion else UNFUSED_MATRIX)
            self._screen.matrix.clear()
        else:
            self._screen.matrix.show_matrix(matrix)
        self._show_participation()
        self._show_drift()

    def _show_participation(self) -> None:
        self._deferred_shares.request(self._fill_participation)

    @while_shown
    def _fill_participation(self) -> None:
        bars, groups, session = self._screen.participation, self.grouping.groups, self._session
        communities.show_participation(bars, session.scene, groups, session.selection, blind=session.blind)

    def _show_drift(self) -> None:
        scene, analysis, selection = self._session.scene, self._session.analysis, self._session.selection
        self._task.cancel()
        panel = self._screen.drift
        if scene.fusion is None:
            panel.show_without_votes(UNFUSED_DRIFT)
        elif scene.fusion.drift is None:
            panel.show_static()
        elif len(selection) != 1:
            self._show_changed()
        else:
            work = partial(_drift, scene, analysis, selection[0])
            job = self._jobs.start("Following an annotator", work, quiet=True)
            self._task.follow(job, partial(self._on_drift, scene, analysis, selection[0]))

    def _show_changed(self) -> None:
        """List the annotators who changed, among the selected ones or all."""
        session, panel = self._session, self._screen.drift
        scene, analysis = session.scene, session.analysis
        if analysis.moved is None:
            panel.show_drift(None)
        elif self._changed is None:
            panel.show_changed((), LOOKING)
            work = partial(changed_annotators, scene, analysis)
            job = self._jobs.start("Looking for who changed", work, quiet=True)
            self._task.follow(job, self._on_changed)
        else:
            selection = session.selection
            listed = [changed for changed in self._changed if not selection or changed.annotator in selection]
            lines = [change_line(scene, changed, blind=session.blind) for changed in listed]
            text = CHANGED if lines else UNCHANGED
            panel.show_changed(lines, text if scene.labels.time is not None else f"{text} {NO_TIMES}")

    def _on_changed(self, changed: tuple[ChangedAnnotator, ...]) -> None:
        self._changed = changed
        self._show_changed()

    def _on_changed_chosen(self, annotator: int) -> None:
        self.choose((annotator,))

    def _on_drift(self, scene: Scene, analysis: Analysis, annotator: int, drawn: DriftView | None) -> None:
        if drawn is not None:
            self._screen.drift.show_drift(drawn)
            return
        name = view.name_of(scene, annotator, blind=self._session.blind)
        left_out = int(analysis.left_out[annotator])
        text = (
            EXCLUDED.format(name=name, votes=counted(left_out, "vote"))
            if left_out
            else VOTELESS.format(name=name)
        )
        self._screen.drift.show_without_votes(text)


def _drift(scene: Scene, analysis: Analysis, annotator: int, watch: Watch) -> DriftView | None:
    watch(0.0, "following an annotator")
    return drift_view(scene, analysis, annotator)


class Exclusion(LabelsPart):
    """Exclusion of the selected annotators after a preview, and restoring."""

    message = Signal(str)
    task_chosen = Signal(int)  # a task whose label would change

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._names: tuple[str, ...] = ()
        self._excluding = PreviewedExclusion(core.document, self._show, lambda: None, core.kind)
        core.screen.exclude_key.clicked.connect(self.begin)
        core.session.selection_changed.connect(self.refresh)
        self.refresh()

    @property
    def _chosen(self) -> tuple[str, ...]:
        if not self._session.shown:
            return ()
        names = self._session.scene.labels.annotators
        return tuple(names[annotator] for annotator in self._session.selection)

    def refresh(self) -> None:
        """Show whether the selected annotators are excluded, and why."""
        chosen, excluded = self._chosen, self._document.review.excluded
        reasons = [excluded[name] for name in chosen if name in excluded]
        all_out = bool(reasons) and len(reasons) == len(chosen)
        subject = "" if all_out else f"{len(reasons)} of them "
        why = "; ".join(sorted(set(reasons))[:3])
        self._screen.excluded.setText(f"{subject}excluded: {why}" if reasons else "")
        self._screen.exclude_key.set_word(*(RESTORE if all_out else EXCLUDE))
        self._screen.exclude_key.setEnabled(bool(chosen))

    def begin(self) -> None:
        """Preview and exclude the selected annotators; restore them if all are excluded."""
        chosen, excluded = self._chosen, self._document.review.excluded
        if not chosen:
            self.message.emit("Select an annotator or a community first.")
        elif excluded.keys() >= set(chosen):
            self._document.record(Decision(verb="include", annotators=chosen))
        else:
            session, self._names = self._session, chosen
            one = name_of(session.scene, session.selection[0], blind=session.blind)
            dialog = ExclusionDialog(
                one if len(chosen) == 1 else counted(len(chosen), "annotator"), self._screen.window(),
                reasons=REASONS, marks="votes", answers="labels",
            )  # fmt: skip
            dialog.panel.task_chosen.connect(self.task_chosen)
            self._excluding.open(dialog, tuple(name for name in chosen if name not in excluded))

    def _show(self, panel: ExclusionPanel) -> None:
        scene = self._session.scene if self._session.shown else None
        if scene is None or scene.fusion is None or scene.run is None:
            panel.show_unknown("Press Fuse (F5) first to preview what would change.")
            return
        try:
            plan = LabelPlan.from_dict(scene.run.settings)
        except SettingsError as error:
            panel.show_unknown(f"The run's settings cannot be read: {error.about(error.label)}")
            return
        review = self._document.review
        votes = scene.fixed.without(set(review.excluded)).with_weights(review.weights)
        work = partial(_preview, replace(scene, fixed=votes), plan, frozenset(self._names))
        job = self._jobs.start("Fusing without them", work)
        self._excluding.follow("fusing without them", job, partial(self._on_preview, scene))

    def _on_preview(self, scene: Scene, panel: ExclusionPanel, preview: ExclusionPreview) -> None:
        panel.show_preview(
            Preview(preview.task, preview.before, preview.after, scene.labels.tasks, scene.classes)
        )


def _preview(scene: Scene, plan: LabelPlan, names: frozenset[str], watch: Watch) -> ExclusionPreview:
    assert scene.fusion is not None
    return preview_exclusion(
        scene.fixed, scene.fusion, names, partial(run_with_programs, plan, scene.programs), watch
    )
