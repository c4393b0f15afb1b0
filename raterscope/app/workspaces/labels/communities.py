"""Communities of annotators: which grouping is shown, its cards, who takes part, how alike all are."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QObject, QSignalBlocker, Signal
from PySide6.QtWidgets import QPushButton

from raterscope.app.jobs import Job, Jobs
from raterscope.app.labels.answers import Groups
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.alike import Alike, alike
from raterscope.app.workspaces.labels.grouping import BASES, METHODS, Way, find_groups, way_of
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.text.numbers import percent
from raterscope.widgets import theme
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.figures.participation_bars import ParticipationBars
from raterscope.widgets.panels.community_cards import CommunitiesView, CommunityCards

__all__ = ["Grouping", "Similar", "show_cards", "show_participation"]

IN_WORDS = {"nmf": "non-negative factorisation", "louvain": "Louvain"}
UNFUSED = "Press Fuse (F5) to find communities of annotators who label alike."
STORED: Way = ("behaviour", "nmf")
"""What a run finds."""


class Grouping(QObject):
    """The grouping that is shown: the run's own, or another one, found when it is asked for and then kept.

    Signals
    -------
    changed
        Another grouping is shown: `groups`.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, screen: LabelsScreen, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._screen = screen
        self._scene: Scene | None = None
        self._analysis: Analysis | None = None
        self._kept: dict[Way, Groups] = {}
        self._task = LatestTask()
        self.way = STORED
        self.bases, self.methods = ModeSwitch(BASES), ModeSwitch(METHODS)
        self.bases.setAccessibleName("What communities have in common")
        self.methods.setAccessibleName("How communities are found")
        self.find, self.stop = QPushButton("Find"), QPushButton("Cancel")
        row = screen.cards.header.row
        for button in (self.find, self.stop):
            theme.set_role(button, "link")
            button.hide()
            row.addWidget(button)
        self.find.ensurePolished()
        screen.cards.header.setMinimumHeight(self.find.sizeHint().height())  # also without buttons
        row.addWidget(self.bases)
        row.addWidget(self.methods)
        self.bases.chosen.connect(self._on_switched)
        self.methods.chosen.connect(self._on_switched)
        self.find.clicked.connect(self._find)
        self.stop.clicked.connect(self.cancel)

    @property
    def groups(self) -> Groups | None:
        """The communities shown."""
        groups = self._kept.get(self.way)
        return groups if groups is not None and groups.found.count else None

    @property
    def notices(self) -> tuple[str, ...]:
        """What is to be known of how they were found."""
        if self.way in self._kept:
            return self._kept[self.way].found.notices
        result = None if self._scene is None else self._scene.result
        stored = None if result is None or self.way != STORED else result.communities
        return () if stored is None else stored.notices

    def show(self, scene: Scene | None, analysis: Analysis | None) -> None:
        """Take another question or answer; of the same answer what was found is kept."""
        if _answer_of(scene) != _answer_of(self._scene):
            self.cancel()
            self._kept.clear()
            self.way = STORED
        self._scene, self._analysis = scene, analysis
        if analysis is not None and analysis.groups is not None:
            way = way_of(analysis.groups)
            if not self._kept:
                self.way = way
            self._kept.setdefault(way, analysis.groups)
        able = scene is not None and scene.fusion is not None
        self.bases.setVisible(able)
        self.methods.setVisible(able)
        self._settle()

    def cancel(self) -> None:
        """Give up the search under way; what is shown stays."""
        self._task.stop()

    def _on_switched(self, _mode: str) -> None:
        wanted = (self.bases.mode, self.methods.mode)
        self._task.cancel()
        if wanted in self._kept:
            self._take(wanted)
        else:
            self._find()

    def _find(self) -> None:
        scene, analysis, way = self._scene, self._analysis, (self.bases.mode, self.methods.mode)
        if scene is None or analysis is None or scene.fusion is None:
            return
        title = f"Grouping annotators {_in_words(way)}"
        job = self._jobs.start(title, partial(find_groups, scene, analysis, way))
        self._task.follow(
            job, partial(self._on_found, way), progressed=self._on_progress,
            failed=self._screen.refused.emit, stopped=self._on_stopped,
        )  # fmt: skip
        self.find.hide()
        self.stop.show()
        self._screen.cards.set_working("grouping …")

    def _on_progress(self, job: Job) -> None:
        self._screen.cards.set_working(f"grouping: {percent(job.fraction)}")

    def _on_found(self, way: Way, found: Groups) -> None:
        self._kept[way] = found
        self._take(way)

    def _on_stopped(self) -> None:
        self._screen.cards.set_working("")
        self._settle()

    def _take(self, way: Way) -> None:
        self.way = way
        self._settle()
        self.changed.emit()

    def _settle(self) -> None:
        """Let the switches say what is shown."""
        if not self._task.busy:
            for switch, mode in zip((self.bases, self.methods), self.way, strict=True):
                with QSignalBlocker(switch):
                    switch.set_mode(mode)
        able = self._scene is not None and self._scene.fusion is not None
        self.stop.setVisible(self._task.busy)
        self.find.setVisible(able and not self._task.busy and self.way not in self._kept)


def _answer_of(scene: Scene | None) -> tuple[int, int] | None:
    return None if scene is None or scene.run is None else (scene.question.id, scene.run.id)


def _in_words(way: Way) -> str:
    return f"by {BASES[way[0]][0]}, {IN_WORDS[way[1]]}"


def show_cards(
    cards: CommunityCards,
    scene: Scene | None,
    groups: Groups | None,
    notices: tuple[str, ...],
    chosen: int | None,
    *,
    blind: bool,
) -> None:
    """Show a card a community; where there are none, why."""
    if scene is None or groups is None:
        fused = scene is not None and scene.fusion is not None
        cards.set_nothing(" ".join(notices) if fused else UNFUSED)
        cards.show_communities(None)
        return
    found = groups.found
    words = [_in_words((groups.basis, found.method)), f"modularity {found.modularity:.2f}", *notices]
    cards.show_communities(
        CommunitiesView(
            names=groups.names,
            members=found.sizes(),
            share=groups.votes,
            accuracy=groups.accuracy,
            prototype=found.prototype,
            classes=scene.classes,
            outputs=scene.labels.outputs,
            words=" | ".join(words),
            central=tuple(view.name_of(scene, who, blind=blind) for who in groups.central.tolist()),
        ),
        chosen,
    )


def show_participation(
    bars: ParticipationBars,
    scene: Scene | None,
    groups: Groups | None,
    chosen: tuple[int, ...],
    *,
    blind: bool,
) -> None:
    """Show how much those chosen, or all, take part in each community."""
    if scene is None or groups is None:
        bars.show_participation(np.zeros((0, 0)), (), ())
        return
    found = groups.found
    rows = np.flatnonzero(np.isin(found.members, chosen)) if chosen else np.arange(len(found.members))
    names = tuple(view.name_of(scene, who, blind=blind) for who in found.members[rows].tolist())
    bars.show_participation(found.participation[rows], names, groups.names)


class Similar(QObject):
    """Draws who is like whom, once that is looked at.

    Signals
    -------
    chosen(tuple of int)
        The annotators of a row.
    """

    chosen = Signal(object)

    def __init__(self, jobs: Jobs, screen: LabelsScreen, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._screen = screen
        self._scene: Scene | None = None
        self._analysis: Analysis | None = None
        self._task = LatestTask()
        self._drawn: Alike | None = None
        self._blind = False
        screen.middle_tabs.currentChanged.connect(self._draw)
        screen.similarity.rows_chosen.connect(self._on_rows)

    def show(self, scene: Scene | None, analysis: Analysis | None) -> None:
        """Take another question, answer or grouping."""
        self._task.cancel()
        self._scene, self._analysis = scene, analysis
        self._drawn = None
        self._screen.similarity.clear()
        self._draw()

    def set_blind(self, blind: bool) -> None:
        """Hide the annotators' names."""
        self._blind = blind
        if self._drawn is not None:
            self._show(self._drawn)

    def _draw(self) -> None:
        scene, analysis, seen = self._scene, self._analysis, self._screen.middle_tabs.currentWidget()
        if (
            scene is None or analysis is None or analysis.groups is None or self._drawn is not None
            or seen is None or not seen.isAncestorOf(self._screen.similarity)
        ):  # fmt: skip
            return
        work = partial(alike, scene, analysis, analysis.groups)
        job = self._jobs.start("Comparing annotators", work, quiet=True)
        self._task.follow(job, self._on_alike)

    def _on_alike(self, drawn: Alike) -> None:
        self._drawn = drawn
        self._show(drawn)

    def _show(self, drawn: Alike) -> None:
        assert self._scene is not None
        names = [
            view.name_of(self._scene, int(row[0]), blind=self._blind)
            if len(row) == 1
            else f"{len(row)} annotators"
            for row in drawn.rows
        ]
        community = np.repeat(np.arange(len(drawn.edges) - 1), np.diff(drawn.edges))
        picture = self._screen.similarity
        picture.header.set_title(drawn.title)
        picture.show_similarity(drawn.values, drawn.edges, names, label=drawn.label, high=drawn.high)
        picture.show_graph(drawn.places, drawn.links, drawn.weights, names, community)

    def _on_rows(self, row: int, column: int) -> None:
        if self._drawn is not None:
            both = np.unique(np.concatenate([self._drawn.rows[row], self._drawn.rows[column]]))
            self.chosen.emit(tuple(both.tolist()))
