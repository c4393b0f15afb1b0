"""Communities of annotators: grouping, cards, similarity, communities over time."""

from __future__ import annotations

from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QPushButton

from raterscope.app.jobs import Job
from raterscope.app.kinds.labels.runs import Groups
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import (
    BASES,
    METHODS,
    Analysis,
    Course,
    GroupingKey,
    Scene,
    Similarity,
    find_groups,
    follow_groups,
    grouping_key,
    obstacle,
    similarity_of,
    triangles_now,
)
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.text import percent, with_minus
from raterscope.widgets import theme
from raterscope.widgets.figures.community_flow import NOTHING
from raterscope.widgets.figures.community_plots import ParticipationBars
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.panels.card_panels import CommunitiesView, CommunityCards

IN_WORDS = {"nmf": "Bayesian factorisation", "louvain": "Louvain"}
UNFUSED = "Press Fuse (F5) to find communities of annotators who label alike."
STORED: GroupingKey = ("behaviour", "nmf")
"""Grouping that a run stores."""


class Grouping(LabelsPart):
    """Grouping shown: the run's own, or another one, computed on request and cached."""

    changed = Signal()  # another grouping is shown, see `groups`

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._groupings: dict[GroupingKey, Groups] = {}
        self._task = LatestTask()
        self.method_shown = STORED
        self.bases, self.methods = ModeSwitch(BASES), ModeSwitch(METHODS)
        self.bases.setAccessibleName("What communities have in common")
        self.methods.setAccessibleName("How communities are found")
        self.find, self.stop = QPushButton("Find"), QPushButton("Cancel")
        row = core.screen.cards.header.row
        for button in (self.find, self.stop):
            theme.set_role(button, "link")
            button.hide()
            row.addWidget(button)
        self.find.ensurePolished()
        core.screen.cards.header.setMinimumHeight(self.find.sizeHint().height())  # also without buttons
        row.addWidget(self.bases)
        core.screen.cards.second_row.addWidget(self.methods)  # so that all fits beside large text
        self.bases.chosen.connect(self._on_switched)
        self.methods.chosen.connect(self._on_switched)
        self.find.clicked.connect(self._find)
        self.stop.clicked.connect(self.cancel)

    @property
    def groups(self) -> Groups | None:
        """Communities shown."""
        groups = self._groupings.get(self.method_shown)
        return groups if groups is not None and groups.communities.count else None

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about the search for communities."""
        if self.method_shown in self._groupings:
            return self._groupings[self.method_shown].communities.notices
        result = self._session.scene.result if self._session.shown else None
        communities = None if result is None or self.method_shown != STORED else result.communities
        return () if communities is None else communities.notices

    def clear(self) -> None:
        """Drop all groupings: another run is shown, or none."""
        self.cancel()
        self._groupings.clear()
        self.method_shown = STORED
        self._show_switches()

    def show(self, scene: Scene, analysis: Analysis) -> None:
        """Show another question or run; groupings of the same run are kept."""
        previous = self._session.previous
        if previous is None or _answer_of(scene) != _answer_of(previous):
            self.clear()
        if analysis.groups is not None:
            shown = grouping_key(analysis.groups)
            if not self._groupings:
                self.method_shown = shown
            self._groupings.setdefault(shown, analysis.groups)
        self._show_switches()

    @property
    def _able(self) -> bool:
        return self._session.shown and self._session.scene.fusion is not None

    def _show_switches(self) -> None:
        able = self._able
        self.bases.setVisible(able)
        self.methods.setVisible(able)
        self._settle()

    def cancel(self) -> None:
        """Cancel the current search; the grouping shown stays."""
        self._task.stop()

    def _on_switched(self, _mode: str) -> None:
        method = (self.bases.mode, self.methods.mode)
        self._task.cancel()
        if method in self._groupings:
            self._take(method)
        else:
            self._find()

    def _find(self) -> None:
        if not self._able:
            return
        scene, analysis = self._session.scene, self._session.analysis
        method = (self.bases.mode, self.methods.mode)
        title = f"Grouping annotators {_in_words(method)}"
        job = self._jobs.start(title, partial(find_groups, scene, analysis, method))
        self._task.follow(
            job, partial(self._on_found, method), progressed=self._on_progress,
            failed=self._screen.refused.emit, stopped=self._on_stopped,
        )  # fmt: skip
        self.find.hide()
        self.stop.show()
        self._screen.cards.set_working("grouping …")

    def _on_progress(self, job: Job) -> None:
        self._screen.cards.set_working(f"grouping: {percent(job.fraction)}")

    def _on_found(self, method: GroupingKey, groups: Groups) -> None:
        self._groupings[method] = groups
        self._take(method)

    def _on_stopped(self) -> None:
        self._screen.cards.set_working("")
        self._settle()

    def _take(self, method: GroupingKey) -> None:
        self.method_shown = method
        self._settle()
        self.changed.emit()

    def _settle(self) -> None:
        """Set the switches to the basis and method of the grouping shown."""
        if not self._task.busy:
            for switch, mode in zip((self.bases, self.methods), self.method_shown, strict=True):
                with QSignalBlocker(switch):
                    switch.set_mode(mode)
        self.stop.setVisible(self._task.busy)
        self.find.setVisible(self._able and not self._task.busy and self.method_shown not in self._groupings)


def _answer_of(scene: Scene) -> tuple[int, int] | None:
    return None if scene.run is None else (scene.question.id, scene.run.id)


def _in_words(method: GroupingKey) -> str:
    return f"by {BASES[method[0]][0]}, {IN_WORDS[method[1]]}"


def show_cards(
    cards: CommunityCards,
    scene: Scene,
    groups: Groups | None,
    notices: tuple[str, ...],
    chosen: int | None,
    *,
    order: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    blind: bool,
) -> None:
    """Show a card for each community, with classes and outputs in a given order; or why there is none."""
    if groups is None:
        show_no_cards(cards, UNFUSED if scene.fusion is None else " ".join(notices))
        return
    communities = groups.communities
    classes, outputs = order or (np.arange(len(scene.classes)), np.arange(len(scene.labels.outputs)))
    words = [
        _in_words((groups.basis, communities.method)),
        f"modularity {with_minus(f'{communities.modularity:.2f}')}",
        *notices,
    ]
    cards.show_communities(
        CommunitiesView(
            names=groups.names,
            members=communities.sizes(),
            share=groups.votes,
            accuracy=groups.accuracy,
            prototype=communities.prototype[:, classes[:, None], outputs],
            classes=tuple(scene.classes[number] for number in classes.tolist()),
            outputs=tuple(scene.labels.outputs[number] for number in outputs.tolist()),
            text=" | ".join(words),
            central=view.names_of(scene, groups.central, blind=blind),
        ),
        chosen,
    )


def show_no_cards(cards: CommunityCards, reason: str = UNFUSED) -> None:
    """Show why there are no communities."""
    cards.set_nothing(reason)
    cards.show_communities(None)


def show_participation(
    bars: ParticipationBars, scene: Scene, groups: Groups | None, chosen: tuple[int, ...], *, blind: bool
) -> None:
    """Show the participation of the selected annotators, or of all, in each community."""
    if groups is None:
        bars.show_participation(np.zeros((0, 0)), (), ())
        return
    communities = groups.communities
    rows = (
        np.flatnonzero(np.isin(communities.members, chosen))
        if chosen
        else np.arange(len(communities.members))
    )
    names = view.names_of(scene, communities.members[rows], blind=blind)
    bars.show_participation(communities.participation[rows], names, groups.names)


class SimilarityPlot(LabelsPart):
    """Similarity of annotators, drawn while it is visible."""

    chosen = Signal(object)  # annotators of a row

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._groups: Groups | None = None
        self._task = LatestTask()
        self._drawn: Similarity | None = None
        core.screen.middle_tabs.currentChanged.connect(self._draw)
        core.screen.similarity.figure.chosen.connect(self._on_rows)
        core.session.blind_changed.connect(self._show)

    def show(self, groups: Groups | None) -> None:
        """Show another question, run or grouping."""
        self._task.cancel()
        self._groups = groups
        self._drawn = None
        self._screen.similarity.clear()
        self._draw()

    @while_shown
    def _draw(self) -> None:
        groups, shown_tab = self._groups, self._screen.middle_tabs.currentWidget()
        if (
            groups is None or self._drawn is not None
            or shown_tab is None or not shown_tab.isAncestorOf(self._screen.similarity)
        ):  # fmt: skip
            return
        work = partial(similarity_of, self._session.scene, self._session.analysis, groups)
        job = self._jobs.start("Comparing annotators", work, quiet=True)
        self._task.follow(job, self._on_alike)

    def _on_alike(self, similarity: Similarity) -> None:
        self._drawn = similarity
        self._show()

    @while_shown
    def _show(self) -> None:
        scene, drawn = self._session.scene, self._drawn
        if drawn is None:
            return
        names = [
            view.name_of(scene, int(row[0]), blind=self._session.blind)
            if len(row) == 1
            else f"{len(row)} annotators"
            for row in drawn.rows
        ]
        community = np.repeat(np.arange(len(drawn.edges) - 1), np.diff(drawn.edges))
        picture = self._screen.similarity
        picture.header.set_title(drawn.title)
        picture.show_similarity(drawn.values, drawn.edges, names, label=drawn.label, high=drawn.high)
        picture.show_graph(drawn.positions, drawn.links, drawn.weights, names, community)

    def _on_rows(self, row: int, column: int) -> None:
        if self._drawn is not None:
            both = np.unique(np.concatenate([self._drawn.rows[row], self._drawn.rows[column]]))
            self.chosen.emit(tuple(both.tolist()))


STOPPED = "Following the communities was cancelled."


class CommunitiesOverTimeView(LabelsPart):
    """Communities over time; a block or band selects its annotators."""

    chosen = Signal(object)  # annotators of a block or a band

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._groups: Groups | None = None
        self._courses: WeakKeyDictionary[Groups, Course] = WeakKeyDictionary()
        self._task = LatestTask()
        self._stopped = False
        self.follow, self.stop = QPushButton("Follow communities"), QPushButton("Cancel")
        for button in (self.follow, self.stop):
            theme.set_role(button, "link")
            button.hide()
            core.screen.flow.header.row.addWidget(button)
        self.follow.ensurePolished()
        core.screen.flow.header.setMinimumHeight(self.follow.sizeHint().height())  # also without buttons
        self.follow.clicked.connect(self._on_follow)
        self.stop.clicked.connect(self.cancel)
        core.screen.middle_tabs.currentChanged.connect(self._draw)
        core.screen.flow.block_chosen.connect(self._on_block)
        core.screen.flow.band_chosen.connect(self._on_band)

    @property
    def course(self) -> Course | None:
        """Communities over time on screen."""
        return None if self._groups is None else self._courses.get(self._groups)

    def show(self, groups: Groups | None) -> None:
        """Show another question, run or grouping."""
        previous, self._groups = self._groups, groups
        if groups is previous and previous is not None:
            return
        self._task.cancel()
        self._stopped = False
        if groups is None:
            self._screen.triangles.show_triangles(None)
            self._update_text(NOTHING)
        else:
            self._show_groups(groups)
        self._settle()

    def _show_groups(self, groups: Groups) -> None:
        scene = self._session.scene
        self._screen.triangles.show_triangles(triangles_now(scene, groups))
        if groups in self._courses:
            self._show(self._courses[groups])
        else:
            self._update_text(obstacle(scene, groups))
            self._draw()

    def cancel(self) -> None:
        """Cancel the current search."""
        self._task.stop()

    @while_shown
    def _draw(self) -> None:
        scene, groups = self._session.scene, self._groups
        if (
            groups is None or groups in self._courses or self._stopped
            or self._task.busy or obstacle(scene, groups)
            or self._screen.middle_tabs.currentWidget() not in (self._screen.flow, self._screen.triangles)
        ):  # fmt: skip
            return
        work = partial(follow_groups, scene, self._session.analysis, groups)
        job = self._jobs.start("Following communities over time", work)
        self._task.follow(
            job, partial(self._on_followed, groups), progressed=self._on_progress,
            failed=self._screen.refused.emit, stopped=self._on_stopped,
        )  # fmt: skip
        self._update_text("Finding the communities of earlier moments.")
        self._settle()

    def _on_follow(self) -> None:
        self._stopped = False
        self._draw()

    def _on_progress(self, job: Job) -> None:
        self._update_text(f"Finding the communities of earlier moments: {percent(job.fraction)}.")

    def _on_followed(self, groups: Groups, course: Course) -> None:
        self._courses[groups] = course
        self._show(course)
        self._settle()

    def _show(self, course: Course) -> None:
        self._screen.flow.show_flow(course.view)
        self._screen.triangles.show_triangles(course.triangles)

    def _on_stopped(self) -> None:
        self._stopped = True
        self._update_text(STOPPED)
        self._settle()

    def _update_text(self, text: str) -> None:
        self._screen.flow.show_nothing(text or NOTHING)

    def _settle(self) -> None:
        self.stop.setVisible(self._task.busy)
        self.follow.setVisible(self._stopped)

    def _on_block(self, moment: int, community: int) -> None:
        if self.course is not None:
            self.chosen.emit(self.course.block(moment, community))

    def _on_band(self, moment: int, community: int, goal: int) -> None:
        if self.course is not None:
            self.chosen.emit(self.course.band(moment, community, goal))
