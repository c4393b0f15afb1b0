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
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.labels import communities, view
from raterscope.app.workspaces.labels.copying import Copies
from raterscope.app.workspaces.labels.drifting import Changed, change_line, drift_view, who_changed
from raterscope.app.workspaces.labels.flowing import Flowing
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.text.numbers import count
from raterscope.widgets.figures.drift_view import DriftView

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
    chosen
        Others are chosen: `current`.
    community_chosen
        Another community is chosen, or none: `members`.
    cell_chosen(int true, int given)
        A cell of the matrix of those chosen.
    """

    chosen = Signal()
    community_chosen = Signal()
    cell_chosen = Signal(int, int)

    def __init__(self, document: Document, jobs: Jobs, screen: LabelsScreen) -> None:
        super().__init__(screen)
        self._document = document
        self._jobs = jobs
        self._screen = screen
        self._scene: Scene | None = None
        self._analysis: Analysis | None = None
        self._task = LatestTask()
        self._changed: tuple[Changed, ...] | None = None
        """Who changed over time; None until somebody has looked."""
        self.current: tuple[int, ...] = ()
        self.community: int | None = None
        self.blind = False
        self.grouping = communities.Grouping(jobs, screen, self)
        self.similar = communities.Similar(jobs, screen, self)
        self.flowing = Flowing(jobs, screen, self)
        self.copies = Copies(jobs, screen)
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
        if self._analysis is None or self._analysis.groups is None or self.community is None:
            return ()
        return tuple(np.flatnonzero(self._analysis.groups.of == self.community).tolist())

    def names(self, annotators: Iterable[int]) -> tuple[str, ...]:
        """Give the names of annotators."""
        return () if self._scene is None else tuple(self._scene.labels.annotators[one] for one in annotators)

    def show(self, scene: Scene | None, analysis: Analysis | None) -> None:
        """Take another question or answer; who was chosen stays chosen while the question does."""
        same = self._scene is not None and scene is not None and scene.question.id == self._scene.question.id
        self._scene, self._analysis, self._changed = scene, analysis, None
        people = 0 if scene is None else len(scene.labels.annotators)
        self.current = tuple(one for one in self.current if one < people) if same else ()
        self.grouping.show(scene, analysis)
        self.copies.show(scene)
        self._take_groups()
        self._show_wall()
        self._show_cards()
        self._show_relations()
        self._mark()

    def refresh(self) -> None:
        """Show who is left out after a decision."""
        self._show_wall()

    def set_blind(self, blind: bool) -> None:
        """Hide the annotators' names."""
        self.blind = blind
        self._screen.wall.set_blind(blind)
        self.similar.set_blind(blind)
        self._show_cards()
        self._mark()

    def choose(self, annotators: Sequence[int]) -> None:
        """Choose annotators everywhere, or nobody."""
        self.current = tuple(annotators)
        self._screen.wall.select(self.current)
        self._mark()

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
        self._take_groups()
        for step in (self._show_wall, self._show_cards, self._show_relations, self._show_participation):
            QTimer.singleShot(0, self, step)

    def _take_groups(self) -> None:
        if self._analysis is not None:
            self._analysis = replace(self._analysis, groups=self.grouping.groups)
        self.community = None
        self._screen.wall.highlight(None)

    def _show_cards(self) -> None:
        grouping = self.grouping
        communities.show_cards(
            self._screen.cards, self._scene, grouping.groups, grouping.notices, self.community,
            blind=self.blind,
        )  # fmt: skip

    def _show_relations(self) -> None:
        self._screen.similarity.select_community(self.community)
        self._screen.flow.select_community(self.community)
        self._screen.triangles.select_community(self.community)
        self.similar.show(self._scene, self._analysis)
        self.flowing.show(self._scene, self._analysis)
        self.community_chosen.emit()

    def _on_wall(self, annotators: tuple[int, ...]) -> None:
        self.current = tuple(annotators)
        self._mark()

    def _show_wall(self) -> None:
        contents = self._document.contents
        if self._scene is None or self._analysis is None or contents is None:
            self._screen.wall.set_wall(None)
            return
        wall = view.wall_view(self._scene, self._analysis, contents.review.excluded)
        self._screen.wall.set_wall(wall)
        self._screen.wall.select(self.current)

    def _mark(self) -> None:
        """Show what is known of those chosen."""
        scene, analysis = self._scene, self._analysis
        matrix = None
        if scene is not None and analysis is not None:
            matrix = view.matrix_view(scene, analysis, self.current, blind=self.blind)
        if matrix is None:
            self._screen.matrix.clear()
        else:
            self._screen.matrix.show_matrix(matrix)
        self._show_participation()
        self._show_drift()
        self.chosen.emit()

    def _show_participation(self) -> None:
        bars, groups = self._screen.participation, self.grouping.groups
        communities.show_participation(bars, self._scene, groups, self.current, blind=self.blind)

    def _show_drift(self) -> None:
        scene = self._scene
        self._task.cancel()
        panel = self._screen.drift
        if scene is None or scene.fusion is None:
            panel.show_drift(None)
        elif scene.fusion.drift is None:
            panel.show_static()
        elif len(self.current) != 1 or self._analysis is None:
            self._show_changed()
        else:
            work = partial(_drift, scene, self._analysis, self.current[0])
            job = self._jobs.start("Following an annotator", work, quiet=True)
            self._task.follow(job, partial(self._on_drift, scene, self._analysis, self.current[0]))

    def _show_changed(self) -> None:
        """Show who of those chosen changed, or of all where nobody is."""
        scene, analysis, panel = self._scene, self._analysis, self._screen.drift
        if scene is None or analysis is None or analysis.moved is None:
            panel.show_drift(None)
        elif self._changed is None:
            panel.show_changed((), LOOKING)
            work = partial(who_changed, scene, analysis)
            job = self._jobs.start("Looking for who changed", work, quiet=True)
            self._task.follow(job, self._on_changed)
        else:
            among = [one for one in self._changed if not self.current or one.annotator in self.current]
            lines = [change_line(scene, one, blind=self.blind) for one in among]
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
        name = view.name_of(scene, annotator, blind=self.blind)
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
