"""The disputed items of all questions of a gathered study in one queue, the most disputed first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from PySide6.QtCore import QObject, Signal

from raterscope.app.document import Document
from raterscope.app.workspaces.review_order import RemainingQuestions
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets.panels.queue_items import QueueItem, chance_of_error
from raterscope.widgets.panels.queue_panel import FILTERS, QueuePanel

Key = tuple[int, str]
"""Question and name of an item."""


class StudyQueue(QObject):
    """Orders the items of all questions by the probability that their result is wrong.

    That probability can be compared between questions with other answers and other annotators. The queue is a
    tab of the workspace, only in gathered studies of several questions; in others, a question is finished
    before the next one.

    `remaining`: knows the disputed items and what is decided. `is_blind`: returns whether the queue must be
    hidden.
    """

    # question, name, by_hand: the item to go to, and whether it was selected in the list
    chosen = Signal(int, str, bool)

    def __init__(
        self,
        document: Document,
        screen: WorkspaceScreen,
        remaining: RemainingQuestions,
        is_blind: Callable[[], bool],
    ) -> None:
        super().__init__(screen)
        self._document, self._remaining, self._is_blind = document, remaining, is_blind
        self._tabs = screen.left_tabs
        self.panel = QueuePanel("All questions", FILTERS[:1])
        self.panel.filter.hide()  # the tab is low
        self.panel.choice.hide()
        self.panel.setParent(screen)
        self.panel.hide()
        self._order: list[Key] = []
        self._ranks: dict[Key, int] = {}
        self._done: list[bool] = []
        self._begun = False
        self.panel.item_chosen.connect(self._on_chosen)
        remaining.read.connect(self._on_read)
        remaining.changed.connect(self._on_changed)

    @property
    def active(self) -> bool:
        """Whether the review follows this queue."""
        contents = self._document.contents
        several = len({question for question, _ in self._order}) > 1
        return several and contents is not None and bool(contents.cohort)

    def reset(self) -> None:
        """Drop everything: another study is open."""
        self._begun = False
        self._order, self._ranks, self._done = [], {}, []
        self._show_tab()

    def begin_elsewhere(self) -> None:
        """Begin with the item on screen, not with the most disputed one."""
        self._begun = True

    def select(self, question: int, name: str | None) -> None:
        """Mark the item that is on screen."""
        if self.active:
            self.panel.set_current(None if name is None else (question, name))

    def go(self, question: int, name: str | None, step: int) -> bool:
        """Go to the next item to be decided, skipped ones last; returns whether there is one."""
        key = next(self._following(question, name, step), None)
        if key is not None:
            self.chosen.emit(*key, False)
        return key is not None

    def _following(self, question: int, name: str | None, step: int) -> Iterator[Key]:
        here = (question, name or "")
        at = self._ranks.get(here, -1 if step > 0 else len(self._order))
        ahead = range(at + 1, len(self._order)) if step > 0 else range(at - 1, -1, -1)
        behind = range(at) if step > 0 else range(len(self._order) - 1, at, -1)
        for skipped in (False, True):
            for rank in chain(ahead, behind):
                if not self._done[rank] and self._remaining.is_skipped(*self._order[rank]) == skipped:
                    yield self._order[rank]

    def _on_read(self) -> None:
        disputed = self._remaining.disputed
        scored = [
            (-score, (question, name))
            for question, scores in disputed.items()
            for name, score in scores.items()
        ]
        scored.sort(key=lambda item: item[0])
        self._order = [key for _, key in scored]
        self._ranks = {key: rank for rank, key in enumerate(self._order)}
        self._done = [self._remaining.is_decided(*key) for key in self._order]
        names = self._remaining.names
        items = [
            QueueItem(key, key[1], names[key[0]], -score, done, amount=chance_of_error(-score))
            for (score, key), done in zip(scored if self.active else (), self._done, strict=False)
        ]
        self.panel.set_items(items)
        self._show_tab()
        if self.active and not self._begun:
            self._begun = True
            self._tabs.setCurrentWidget(self.panel)
            self.go(0, None, 1)

    def _on_changed(self) -> None:
        """Update the lines of items that were decided or opened again."""
        if not self.active:
            return
        names, disputed = self._remaining.names, self._remaining.disputed
        for rank, (question, name) in enumerate(self._order):
            done = self._remaining.is_decided(question, name)
            if done != self._done[rank]:
                self._done[rank] = done
                score = disputed[question][name]
                amount = chance_of_error(score)
                item = QueueItem((question, name), name, names[question], score, done, amount=amount)
                self.panel.update_item(item)

    def _show_tab(self) -> None:
        at, shown = self._tabs.indexOf(self.panel), self.active and not self._is_blind()
        if shown and at < 0:  # a hidden tab would take room
            self._tabs.insertTab(0, self.panel, "All questions")
        elif not shown and at >= 0:
            self._tabs.removeTab(at)

    def on_blind_changed(self) -> None:
        """Hide the queue in blind mode: it names annotators and the doubt about answers."""
        self._show_tab()

    def _on_chosen(self, key: Key) -> None:
        self.begin_elsewhere()
        self.chosen.emit(*key, True)
