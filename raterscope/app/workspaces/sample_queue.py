"""Queues across questions: an acceptance sample until its verdict, and disputed items of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton

from raterscope.algorithms.annotators.acceptance import AcceptanceSettings
from raterscope.algorithms.progress import Watch
from raterscope.app.annotators.acceptance import draw_sample, list_undecided, plan_in_words
from raterscope.app.contents import Contents
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import Decision, SampledItem, SampleProgress, SampleSubject, read_sample
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.app.workspaces.review_order import RemainingQuestions
from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.dialogs.review_dialogs import AcceptanceDialog
from raterscope.widgets.panels.queue_items import QueueItem, chance_of_error
from raterscope.widgets.panels.queue_panel import FILTERS, QueueFrame, QueuePanel

if TYPE_CHECKING:
    from raterscope.app.workspaces.screen import WorkspaceScreen


class SampleQueue(QObject):
    """The open sample of a kind, shown instead of its queue.

    `queue`: the queue of the workspace.
    """

    # item, by_hand: the sampled item to show, and whether it was selected in the list
    chosen = Signal(object, bool)

    def __init__(
        self, document: Document, jobs: Jobs, screen: WorkspaceLayout, queue: QueueFrame, kind: str
    ) -> None:
        super().__init__(screen)
        self._document, self._jobs, self._screen, self._queue = document, jobs, screen, queue
        self._kind = kind
        self._panel: QueuePanel | None = None
        self._shown: tuple[tuple[object, ...], Mapping[int, tuple[int, bool]]] = (), {}
        """The sample that the panel lists, and its re-read items."""
        self._task = LatestTask()
        self.dialog: AcceptanceDialog | None = None
        self._drawn: Decision | None = None
        self._end_action: QAction | None = None
        for signal in (document.replaced, document.changed, document.decided, document.names_changed):
            signal.connect(self._show)
        self._show()

    @property
    def progress(self) -> SampleProgress | None:
        """The open sample; None without one."""
        return read_sample(self._document.review, self._kind)

    @property
    def active(self) -> bool:
        """Return whether the review follows a sample."""
        return self._document.review.sample(self._kind) is not None

    def nothing_left(self) -> str:
        """Return the message that the sample has a verdict or is re-read; empty without one."""
        progress = self.progress
        if progress is None:
            return ""
        verdict = progress.verdict_in_words()
        if verdict:
            return f"{verdict}: {progress.count_in_words()}. Review > End the acceptance plan."
        return "The other items of the sample are re-read."

    def go(self, step: int) -> bool:
        """Go to the next item to re-read; return whether there is one. None after the verdict."""
        progress = self.progress
        if progress is None or progress.verdict != "continue":
            return False
        count = len(progress.subject.items)
        current = None if self._panel is None else self._panel.current
        at = current if isinstance(current, int) else (-1 if step > 0 else count)
        following = ((at + step * far) % count for far in range(1, count + 1))
        position = next(
            (position for position in following if position not in progress.right and position != current),
            None,
        )
        if position is None:
            return False
        self._go_to(position, by_hand=False)
        return True

    # Begin and end

    def begin(self) -> None:
        """Count the undecided answers, and ask for the plan."""
        if self._document.contents is None:
            return
        job = self._document.read_beside("Listing answers", partial(list_undecided, self._kind), quiet=True)
        self._task.follow(job, self._on_listed)

    def end(self) -> None:
        """End the plan; the queue is the whole study again."""
        if self.active:
            self._document.record(Decision(verb="close", subject=SampleSubject(of=self._kind)))

    def set_end_action(self, action: QAction) -> None:
        """Set the action that ends the plan; it is enabled while a plan is open."""
        self._end_action = action
        action.setEnabled(self.active)

    def _on_listed(self, listed: Sequence[SampledItem]) -> None:
        noun = KINDS[self._kind].nouns.detail
        self.dialog = dialog = AcceptanceDialog(
            f"{counted(len(listed), f'undecided {noun}')} in the runs shown", AcceptanceSettings,
            self._screen.window(),
        )  # fmt: skip
        dialog.form.changed.connect(partial(self._plan, listed))
        dialog.accepted.connect(self._on_accepted)
        dialog.finished.connect(self._on_closed)
        dialog.open()
        self._plan(listed)

    def _plan(self, listed: Sequence[SampledItem]) -> None:
        """Draw the sample with the entered settings, and show its plan."""
        dialog, self._drawn = self.dialog, None
        self._task.cancel()
        if dialog is None or dialog.form.error():
            if dialog is not None:
                dialog.show_plan("", ready=False)
            return
        settings = dialog.form.settings()
        assert isinstance(settings, AcceptanceSettings)
        job = self._jobs.start("Planning", partial(_draw, self._kind, listed, settings), quiet=True)
        self._task.follow(job, self._on_drawn)

    def _on_drawn(self, drawn: tuple[Decision | None, str]) -> None:
        self._drawn, words = drawn
        if self.dialog is not None:
            self.dialog.show_plan(words, ready=self._drawn is not None)

    def _on_accepted(self) -> None:
        if self._drawn is not None:
            self._document.record(self._drawn).finished.connect(self._on_recorded)

    def _on_recorded(self) -> None:
        self.go(1)

    def _on_closed(self) -> None:
        self._task.cancel()
        self.dialog = None

    # Display

    def _show(self) -> None:
        """Show the sample instead of the queue, or the queue."""
        if self._end_action is not None:
            self._end_action.setEnabled(self.active)
        progress, contents = self.progress, self._document.contents
        if progress is None or contents is None:
            self._shown = (), {}
            if self._panel is not None:
                self._queue.show_instead(None)
            return
        if self._panel is None:
            self._panel = self._make_panel()
        present = (contents.path, progress.decision, contents.hidden), progress.right
        if present != self._shown:
            if self._shown[:1] != present[:1]:
                self._panel.set_current(None)
                opened = []
            else:
                opened = [position for position in self._shown[1] if position not in progress.right]
            self._shown = present
            self._fill(self._panel, progress, contents)
            if opened:  # by undo, which the workspace follows
                self._panel.set_current(opened[-1])
        self._queue.show_instead(self._panel)

    def _make_panel(self) -> QueuePanel:
        panel = QueuePanel("Acceptance sample", FILTERS)
        panel.filter.hide()
        end = QPushButton("End the plan")
        theme.set_role(end, "link")
        end.setToolTip("The queue shows the whole study again; the sample stays in the history.")
        end.clicked.connect(self.end)
        panel.add_below(end)
        panel.item_chosen.connect(partial(self._go_to, by_hand=True))
        for action in self._screen.actions_made:
            if "Tab" in action.shortcut().toString():
                panel.view.addAction(action)
        return panel

    def _fill(self, panel: QueuePanel, progress: SampleProgress, contents: Contents) -> None:
        names = {item.id: item.name for item in contents.of(self._kind)}
        items = []
        for position, sampled in enumerate(progress.subject.items):
            _, right = progress.right.get(position, (0, None))
            detail = "not re-read" if right is None else "confirmed" if right else "error"
            title, where = self._title(sampled, contents), names.get(sampled.item, "")
            if sampled.number is not None:
                title, where = where, title
            several = sampled.number is not None or len(names) > 1
            items.append(
                QueueItem(
                    position, title, f"{detail}, {where}" if several else detail, None, right is not None,
                    flag="error" if right is False else None,
                )
            )  # fmt: skip
        panel.set_items(items)
        verdict = progress.verdict_in_words()
        panel.set_progress(
            len(progress.right) / len(items), progress.count_in_words(),
            f"{verdict} by the plan" if verdict else "Not decided yet",
            tip=plan_in_words(progress.subject.plan),
        )  # fmt: skip

    def _title(self, sampled: SampledItem, contents: Contents) -> str:
        if contents.hidden and KINDS[self._kind].nouns.detail == "annotator":
            return f"annotator {contents.numbers.get(sampled.name, 0) + 1}"
        return sampled.in_words()

    def _go_to(self, position: object, *, by_hand: bool) -> None:
        progress = self.progress
        if progress is None or not isinstance(position, int) or self._panel is None:
            return
        self._panel.set_current(position)
        self.chosen.emit(progress.subject.items[position], by_hand)


def _draw(
    kind: str, listed: Sequence[SampledItem], settings: AcceptanceSettings, watch: Watch
) -> tuple[Decision | None, str]:
    """Draw a sample; return the decision and a description of the plan, or None and why there is no plan."""
    watch(0.0, "planning")
    try:
        drawn = draw_sample(kind, listed, settings)
    except ValueError as problem:
        sentence = str(problem)
        return None, f"{sentence[0].upper()}{sentence[1:]}"
    assert isinstance(drawn.subject, SampleSubject)
    return drawn, plan_in_words(drawn.subject.plan)


Key = tuple[int, str]
"""Question and name of an item."""


class StudyQueue(QObject):
    """Queue of the items of all questions, by the probability of a wrong result.

    This probability is comparable between questions with different answers and annotators. The queue is a tab
    of the workspace in gathered studies of several questions. In other studies, a question is finished before
    the next one.

    `remaining`: source of the disputed and the decided items. `is_blind`: returns whether the queue must be
    hidden.
    """

    # question, name, by_hand: the item to show, and whether it was selected in the list
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
        return bool(self._order) and self._document.contents is not None

    def reset(self) -> None:
        """Drop everything, because another study is open."""
        self._begun = False
        self._order, self._ranks, self._done = [], {}, []
        self.show_tab()

    def begin_elsewhere(self) -> None:
        """Begin with the item on screen, instead of the most disputed one."""
        self._begun = True

    def select(self, question: int, name: str | None) -> None:
        """Mark the item that is on screen."""
        if self.active:
            self.panel.set_current(None if name is None else (question, name))

    def go(self, question: int, name: str | None, step: int) -> bool:
        """Go to the next undecided item, skipped ones last; return whether there is one."""
        key = next(self._following(question, name, step), None)
        if key is not None:
            self.chosen.emit(*key, False)
        return key is not None

    def _following(self, question: int, name: str | None, step: int) -> Iterator[Key]:
        current = (question, name or "")
        at = self._ranks.get(current, -1 if step > 0 else len(self._order))
        ahead = range(at + 1, len(self._order)) if step > 0 else range(at - 1, -1, -1)
        behind = range(at) if step > 0 else range(len(self._order) - 1, at, -1)
        settled = self._remaining.settled
        for skipped in (False, True):
            for rank in chain(ahead, behind):
                of, item = self._order[rank]
                if not self._done[rank] and (item in settled[of][1]) == skipped:
                    yield self._order[rank]

    def _on_read(self) -> None:
        contents, disputed = self._document.contents, self._remaining.disputed
        if contents is None or not contents.cohort or sum(map(bool, disputed.values())) < 2:
            disputed = {}
        scored = [
            (-score, (question, name))
            for question, scores in disputed.items()
            for name, score in scores.items()
        ]
        scored.sort(key=lambda item: item[0])
        self._order = [key for _, key in scored]
        self._ranks = {key: rank for rank, key in enumerate(self._order)}
        names, settled = self._remaining.names, self._remaining.settled
        self._done = [name in settled[question][0] for question, name in self._order]
        items = [
            QueueItem(key, key[1], names[key[0]], -score, done, amount=chance_of_error(-score))
            for (score, key), done in zip(scored, self._done, strict=True)
        ]
        self.panel.set_items(items)
        self.show_tab()
        if self.active and not self._begun:
            self._begun = True
            self._tabs.setCurrentWidget(self.panel)
            self.go(0, None, 1)

    def _on_changed(self) -> None:
        """Update the lines of items that were decided or reopened."""
        if not self.active:
            return
        names, disputed, settled = self._remaining.names, self._remaining.disputed, self._remaining.settled
        for rank, (question, name) in enumerate(self._order):
            done = name in settled[question][0]
            if done != self._done[rank]:
                self._done[rank] = done
                score = disputed[question][name]
                amount = chance_of_error(score)
                item = QueueItem((question, name), name, names[question], score, done, amount=amount)
                self.panel.update_item(item)

    def show_tab(self) -> None:
        """Show the tab, except in blind mode, because it shows annotators' names and doubt about answers."""
        at, shown = self._tabs.indexOf(self.panel), self.active and not self._is_blind()
        if shown and at < 0:  # a hidden tab would take room
            self._tabs.insertTab(0, self.panel, "All questions")
        elif not shown and at >= 0:
            self._tabs.removeTab(at)

    def _on_chosen(self, key: Key) -> None:
        self.begin_elsewhere()
        self.chosen.emit(*key, True)
