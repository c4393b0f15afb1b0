"""Whom to trust: the annotators of a question; who is chosen in one place is chosen in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.labels import communities, view
from raterscope.app.workspaces.labels.copying import Copies
from raterscope.app.workspaces.labels.drifting import Changed, change_line, drift_view, who_changed
from raterscope.app.workspaces.labels.flowing import Flowing
from raterscope.app.workspaces.labels.scene import Analysis, LabelsSession, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.text.numbers import count
from raterscope.widgets.figures.row_lines import DriftView

__all__ = ["People"]

NO_TIMES = "These votes have no times: the order in which they came is taken for it."
LOOKING = "Looking for who changed."
CHANGED = (
    "These changed (p < 0.05 each: 1 in 20 who did not change is listed too), those who changed most first. "
    "Select one to plot its rates over time."
)
EXCLUDED = (
    "{name} was excluded from this run: {votes} not counted. To plot the rates over time, restore the "
    "annotator (X) and press Fuse (F5)."
)
VOTELESS = "{name} has no votes in this run: no rates to plot."
UNCHANGED = "Nobody changed beyond chance. Select an annotator to plot their rates over time."


class People(QObject):
    """Joins wall, matrix, communities, similarity and drift: who is chosen in one is chosen in all.

    Signals
    -------
    community_chosen
        Another community is chosen, or none: `members`.
    cell_chosen(int true, int given)
        A cell of the matrix of those chosen.
    """

    community_chosen = Signal()
    cell_chosen = Signal(int, int)

    def __init__(self, document: Document, jobs: Jobs, screen: LabelsScreen, session: LabelsSession) -> None:
        super().__init__(screen)
        self._document = document
        self._jobs = jobs
        self._screen = screen
        self._session = session
        self._task = LatestTask()
        self._changed: tuple[Changed, ...] | None = None
        """Who changed over time; None until somebody has looked."""
        self.community: int | None = None
        self.grouping = communities.Grouping(jobs, screen, session, self)
        self.similar = communities.Similar(jobs, screen, session, self)
        self.flowing = Flowing(jobs, screen, session, self)
        self.copies = Copies(jobs, screen, session)
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)
        session.blind_changed.connect(self._on_blind)
        session.selection_changed.connect(self._mark)
        screen.wall.selection_changed.connect(self._on_wall)
        screen.matrix.cell_chosen.connect(self.cell_chosen)
        screen.cards.community_chosen.connect(self.choose_community)
        screen.participation.community_chosen.connect(self.choose_community)
        screen.triangles.community_chosen.connect(self._on_triangle)
        screen.drift.annotator_chosen.connect(self._on_changed_chosen)
        self.grouping.changed.connect(self._on_grouped)
        self.similar.chosen.connect(self.choose)
        self.flowing.chosen.connect(self.choose)
        self.copies.chosen.connect(self.choose)

    @property
    def members(self) -> tuple[int, ...]:
        """The annotators of the chosen community."""
        groups = self.grouping.groups
        if groups is None or self.community is None:
            return ()
        return tuple(np.flatnonzero(groups.of == self.community).tolist())

    def names(self, annotators: Iterable[int]) -> tuple[str, ...]:
        """Give the names of annotators."""
        if not self._session.shown:
            return ()
        return tuple(self._session.scene.labels.annotators[one] for one in annotators)

    def _clear(self) -> None:
        self._task.cancel()
        self._changed = None
        self.grouping.clear()
        self._leave_community()
        self._screen.wall.set_wall(None)
        communities.show_no_cards(self._screen.cards)
        self._show_relations()
        self._screen.matrix.clear()
        self._screen.participation.show_participation(np.zeros((0, 0)), (), ())
        self._screen.drift.show_drift(None)
        self._session.select(())

    def _on_scene(self, scene: Scene) -> None:
        """Take another question or answer; who was chosen stays chosen while the question does."""
        before, people = self._session.before, len(scene.labels.annotators)
        same = before is not None and scene.question.id == before.question.id
        current = tuple(one for one in self._session.selection if one < people) if same else ()
        self._changed = None
        self.grouping.show(scene, self._session.analysis)
        self._leave_community()
        self._session.select(current)
        self._show_wall()
        self._show_cards()
        self._show_relations()

    def refresh(self) -> None:
        """Show who is left out after a decision."""
        self._show_wall()

    def _on_blind(self, blind: bool) -> None:
        """Hide the annotators' names."""
        self._screen.wall.set_blind(blind)
        self._show_cards()
        self._mark()

    def choose(self, annotators: Sequence[int]) -> None:
        """Choose annotators everywhere, or nobody."""
        self._screen.wall.select(tuple(annotators))
        self._session.select(tuple(annotators))

    def choose_community(self, number: int | None) -> None:
        """Choose a community everywhere, or none."""
        self.community = number
        self._screen.cards.select(number)
        self._screen.similarity.select_community(number)
        self._screen.flow.select_community(number)
        self._screen.triangles.select_community(number)
        members = self.members
        self._screen.wall.highlight(members if number is not None else None)
        self.choose(members)
        self.community_chosen.emit()

    def _on_triangle(self, number: int) -> None:
        """Choose a community that is still there; one that is gone has no members now."""
        groups = self.grouping.groups
        if groups is not None and number < groups.found.count:
            self.choose_community(number)

    def _on_grouped(self) -> None:
        """Show the communities of another grouping everywhere, one after the other: there may be many."""
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
            blind=session.blind,
        )  # fmt: skip

    def _show_relations(self) -> None:
        self._screen.similarity.select_community(self.community)
        self._screen.flow.select_community(self.community)
        self._screen.triangles.select_community(self.community)
        self.similar.show(self.grouping.groups)
        self.flowing.show(self.grouping.groups)
        self.community_chosen.emit()

    def _on_wall(self, annotators: tuple[int, ...]) -> None:
        self._session.select(tuple(annotators))

    @while_shown
    def _show_wall(self) -> None:
        contents = self._document.contents
        if contents is None:
            return
        analysis = replace(self._session.analysis, groups=self.grouping.groups)
        self._screen.wall.set_wall(view.wall_view(self._session.scene, analysis, contents.review.excluded))
        self._screen.wall.select(self._session.selection)

    @while_shown
    def _mark(self) -> None:
        """Show what is known of those selected."""
        session = self._session
        matrix = view.matrix_view(session.scene, session.analysis, session.selection, blind=session.blind)
        if matrix is None:
            self._screen.matrix.clear()
        else:
            self._screen.matrix.show_matrix(matrix)
        self._show_participation()
        self._show_drift()

    @while_shown
    def _show_participation(self) -> None:
        bars, groups, session = self._screen.participation, self.grouping.groups, self._session
        communities.show_participation(bars, session.scene, groups, session.selection, blind=session.blind)

    def _show_drift(self) -> None:
        scene, analysis, selection = self._session.scene, self._session.analysis, self._session.selection
        self._task.cancel()
        panel = self._screen.drift
        if scene.fusion is None:
            panel.show_drift(None)
        elif scene.fusion.drift is None:
            panel.show_static()
        elif len(selection) != 1:
            self._show_changed()
        else:
            work = partial(_drift, scene, analysis, selection[0])
            job = self._jobs.start("Following an annotator", work, quiet=True)
            self._task.follow(job, partial(self._on_drift, scene, analysis, selection[0]))

    def _show_changed(self) -> None:
        """Show who of those chosen changed, or of all where nobody is."""
        session, panel = self._session, self._screen.drift
        scene, analysis = session.scene, session.analysis
        if analysis.moved is None:
            panel.show_drift(None)
        elif self._changed is None:
            panel.show_changed((), LOOKING)
            work = partial(who_changed, scene, analysis)
            job = self._jobs.start("Looking for who changed", work, quiet=True)
            self._task.follow(job, self._on_changed)
        else:
            some = session.selection
            among = [one for one in self._changed if not some or one.annotator in some]
            lines = [change_line(scene, one, blind=session.blind) for one in among]
            words = CHANGED if lines else UNCHANGED
            panel.show_changed(lines, words if scene.labels.time is not None else f"{words} {NO_TIMES}")

    def _on_changed(self, found: tuple[Changed, ...]) -> None:
        self._changed = found
        self._show_changed()

    def _on_changed_chosen(self, annotator: int) -> None:
        self.choose((annotator,))

    def _on_drift(self, scene: Scene, analysis: Analysis, annotator: int, drawn: DriftView | None) -> None:
        if drawn is not None:
            self._screen.drift.show_drift(drawn)
            return
        name = view.name_of(scene, annotator, blind=self._session.blind)
        left_out = int(analysis.left_out[annotator])
        words = (
            EXCLUDED.format(name=name, votes=count(left_out, "vote"))
            if left_out
            else VOTELESS.format(name=name)
        )
        self._screen.drift.show_without_votes(words)


def _drift(scene: Scene, analysis: Analysis, annotator: int, watch: Watch) -> DriftView | None:
    watch(0.0, "following an annotator")
    return drift_view(scene, analysis, annotator)
