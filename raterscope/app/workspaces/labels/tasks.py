"""Tasks of a question: filtered list, selected task, decisions, and tasks that need another vote most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtGui import QImage

from raterscope.algorithms.array_operations import max_rows
from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.labels.data import ClassArray
from raterscope.algorithms.progress import Watch
from raterscope.app.review import Decision, GoldSubject, TaskSubject
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.app.workspaces.review_order import ELSEWHERE, Elsewhere, candidate_rows, next_item
from raterscope.app.workspaces.sample_queue import StudyQueue
from raterscope.app.workspaces.task_pictures import TaskPictures
from raterscope.widgets.panels.queue_items import NOTES
from raterscope.widgets.panels.task_panel import TaskView

FEW = 3
"""Number of votes below which a task passes the filter "few votes"."""

DISPUTED = ("", "undecided")
"""Initial filter: Tab goes to disputed tasks. With another filter, Tab goes to all listed tasks."""


class TaskReview(LabelsPart):
    """Controller of the queue and of the panel of the selected task, which records decisions."""

    selected = Signal(object)  # the selected task
    changed = Signal()  # decisions changed
    exhausted = Signal()  # no undecided task is left, in this or other questions
    message = Signal(str)  # why a decision was refused

    def __init__(
        self, core: LabelsCore, pictures: TaskPictures, elsewhere: Elsewhere, study: StudyQueue
    ) -> None:
        super().__init__(core)
        self._queue, self._panel = core.screen.queue, core.screen.task_panel
        self._pictures, self._elsewhere, self._study = pictures, elsewhere, study
        self._by_hand = False
        """Whether the expert selected the task manually; only then may a decision on it be changed."""
        self._entering: tuple[int, int, bool] | None = None
        """The next question, the step, and whether to begin with skipped tasks."""
        self._entering_task: tuple[int, str, bool] | None = None
        """The next question, its task, and whether it was selected manually."""
        self._order: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._sorting = LatestTask()
        self._filter = DISPUTED
        self._members: frozenset[int] = frozenset()
        self._writing = False
        self._objection = ""
        """Description of what the decision being saved contradicts."""
        self._objected: str | None = None
        """Task whose decision contradicts votes, posterior or ground truth, as shown in the panel."""
        self._begin = False
        self.decided: ClassArray = np.empty(0, dtype=np.int16)
        self._queue.chosen.connect(self.select)
        self._queue.filter_changed.connect(self._on_filter)
        self._panel.classes.decided.connect(self.decide)
        self._panel.clear.clicked.connect(self.clear)
        self._panel.skip.clicked.connect(self.skip)
        self._panel.undo.clicked.connect(self._undo_objected)
        pictures.ready.connect(self._on_picture)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        core.session.blind_changed.connect(self._on_blind)

    @property
    def current(self) -> int | None:
        """The selected task."""
        return self._queue.current

    @property
    def walks_disputed(self) -> bool:
        """Whether Tab goes to disputed tasks, instead of all tasks of a filtered list."""
        return self._filter == DISPUTED

    @property
    def waiting(self) -> int:
        """Number of disputed, undecided tasks."""
        disputed = self._session.analysis.disputed if self._session.shown else None
        if disputed is None:
            return 0
        waits = disputed & (self.decided == OPEN)
        return int(waits.sum()) + sum(not waits[task] for task in self._contested())

    def _clear(self) -> None:
        self._sorting.cancel()
        self._queue.set_view(None)
        self._queue.select(None)
        self._panel.show_task(None)

    def _on_scene(self, scene: Scene) -> None:
        previous = self._session.previous
        self._pictures.set_tasks(scene.pictures)
        is_another = previous is None or previous.question.id != scene.question.id
        is_first = previous is not None and previous.fusion is None and scene.fusion is not None
        if self._entering is not None and self._entering[0] != scene.question.id:
            self._entering = None
        if self._entering_task is not None and self._entering_task[0] != scene.question.id:
            self._entering_task = None
        self._begin = is_another or is_first
        if is_another or previous is None or previous.run != scene.run:
            self._show_objection("", None)  # another run has other posteriors
        self._read_decided()
        self._sort()

    def set_members(self, annotators: frozenset[int]) -> None:
        """Set the annotators of the selected community, for a filter of the queue."""
        if annotators != self._members:
            self._members = annotators
            if self._filter[1] == "community":
                self._sort()

    @while_shown
    def _on_blind(self) -> None:
        """Hide names, and votes until the expert has decided."""
        self._list()
        self._show_task()

    @while_shown
    def refresh(self, item: int | None, back_to: str | None = None) -> None:
        """Read the decisions again, and go to the next task if the last decision was made here.

        After undo or redo, go to the task `back_to`.
        """
        scene = self._session.scene
        if item is not None and item != scene.question.id:
            return
        self._read_decided()
        self._by_hand = False
        if self._writing:
            self._writing = False
            task = self.current
            self._show_objection(self._objection, None if task is None else scene.labels.tasks[task])
            self.go(1, finish=True)
            self._list()  # after the step, because a decided task may leave the list
        else:
            self._show_objection("", None)
            self._list()
            if back_to is not None and back_to in scene.number_of:
                self.go_to(scene.number_of[back_to])
            else:
                self._show_task()
        self.changed.emit()

    def go_to(self, task: int | None) -> None:
        """Select a task."""
        self._by_hand = False
        self._queue.select(task)
        if self._session.shown:
            scene = self._session.scene
            self._study.select(scene.question.id, None if task is None else scene.labels.tasks[task])
        self._show_task()
        self.selected.emit(task)

    def select(self, task: int | None) -> None:
        """Select a task manually; a decision on it may then be changed."""
        self._begin = False
        self.go_to(task)
        self._by_hand = task is not None

    def enter(self, question: int, step: int, skipped: bool) -> None:
        """Begin the next question with its first undecided task."""
        self._entering = question, step, skipped

    def go_to_task(self, question: int, name: str, by_hand: bool) -> bool:
        """Go to a task of this question, or of the next one shown; return whether it is of this question."""
        scene = self._session.scene if self._session.shown else None
        if scene is not None and scene.question.id == question and name in scene.number_of:
            (self.select if by_hand else self.go_to)(scene.number_of[name])
            return True
        self._entering_task = question, name, by_hand
        return False

    def go(self, step: int, *, finish: bool = False) -> None:
        """Go to the next undecided task, of this question or another."""
        if self._core.sample.active:
            following = ELSEWHERE if self._core.sample.go(step) else None
        elif self._filter == DISPUTED and self._study.active and self._session.shown:
            scene, task = self._session.scene, self.current
            name = None if task is None else scene.labels.tasks[task]
            following = ELSEWHERE if self._study.go(scene.question.id, name, step) else None
        else:
            row = self._queue.row
            elsewhere = self._elsewhere if self._filter == DISPUTED else _no_step
            following = next_item(
                lambda skipped: candidate_rows(self._waits(skipped), len(self._queue.order), row, step), int,
                row, step, elsewhere, finish=finish,
            )  # fmt: skip
        if following is None:
            self._show_task()
            self.exhausted.emit()
        elif following != ELSEWHERE:
            self.go_to(int(self._queue.order[following]))

    def _waits(self, skipped: bool) -> Callable[[slice], NDArray[np.bool_]]:
        """Return a function that finds undecided tasks, except the selected one, in rows of the queue."""
        if not self._session.shown:
            return lambda _rows: np.zeros(0, dtype=bool)
        scene, analysis = self._session.scene, self._session.analysis
        known = None if scene.fusion is None else scene.fusion.known
        disputed = analysis.disputed if self._filter == DISPUTED else None
        selected, passed, contested = self.current, list(self._skipped()), list(self._contested())

        def waits(rows: slice) -> NDArray[np.bool_]:
            order = self._queue.order[rows]
            found: NDArray[np.bool_] = (self.decided[order] == OPEN) & (np.isin(order, passed) == skipped)
            if known is not None:
                found &= known[order] == OPEN
            if disputed is not None:
                found &= disputed[order] | np.isin(order, contested)
            return found if selected is None else found & (order != selected)

        return waits

    def decide(self, number: int) -> None:
        """Decide the class of the task, and go to the next task after that is saved."""
        task = self.current
        if task is None:
            self.go(1)
            return
        scene = self._session.scene
        if number < len(scene.decidable) and self._may_decide():
            is_class = number < len(scene.classes)
            self._objection = self._task_view(task).objection(number) if is_class else ""
            self._record(Decision(
                verb="label", item=scene.question.id, run=None if scene.run is None else scene.run.id,
                subject=TaskSubject(task=scene.labels.tasks[task], label=scene.decidable[number]),
            ))  # fmt: skip

    @while_shown
    def decide_parent(self) -> None:
        """Decide for the parent of the most probable class, or of the parent decided before."""
        task = self.current
        if task is None:
            self.go(1)
            return
        scene, tree = self._session.scene, class_tree(self._session.scene.classes)
        shares = self._session.analysis.vote if scene.fusion is None else scene.fusion.posterior
        above = () if tree is None else tree.nodes_above(int(shares[task].argmax()))
        present = "" if self.decided[task] == OPEN else scene.decidable[self.decided[task]]
        above = above[above.index(present) + 1 :] if present in above else above
        if above and above[0] in scene.decidable:
            self.decide(scene.decidable.index(above[0]))
        else:
            self.message.emit("There is no parent class: names such as bird/owl and bird/hawk have one.")

    @while_shown
    def mark_gold(self) -> None:
        """Mark the task as gold with the class that the expert decided, or remove that mark."""
        task = self.current
        if task is None:
            return
        scene = self._session.scene
        name = scene.labels.tasks[task]
        if name in self._document.review.gold_tasks(scene.question.id):
            verb, label = "ungold", ""
        elif 0 <= self.decided[task] < len(scene.classes):
            verb, label = "gold", scene.classes[self.decided[task]]
        elif scene.truth[task] != OPEN:
            known = scene.classes[scene.truth[task]]
            self.message.emit(f"{name} is a gold task: its ground truth was imported ({known}).")
            return
        else:
            self.message.emit(f"Decide the class of {name} first: a gold task has a known class.")
            return
        self._document.record(
            Decision(verb=verb, item=scene.question.id, subject=GoldSubject(task=name, label=label))
        )

    def skip(self) -> None:
        """Skip the task; it is shown again at the end."""
        task = self.current
        if task is None:
            return
        scene = self._session.scene
        if task in self._skipped():
            self.go(1)
        elif self._may_decide(skip=True):
            self._objection = ""
            subject = TaskSubject(task=scene.labels.tasks[task])
            self._record(Decision(verb="skip", item=scene.question.id, subject=subject))

    def _may_decide(self, *, skip: bool = False) -> bool:
        """Refuse to change a decision, unless the expert selected the task manually."""
        scene, task = self._session.scene, self.current
        if task is None or self.decided[task] == OPEN or (self._by_hand and not skip):
            return True
        self.message.emit(
            f"{scene.labels.tasks[task]} is decided already ({scene.decidable[self.decided[task]]}). "
            "Press C to undo that, or select it in the list, to change that; press Tab for the next one."
        )
        return False

    @while_shown
    def clear(self) -> None:
        """Undo the decision about the task."""
        task = self.current
        if task is not None:
            self._undo(self._session.scene.labels.tasks[task])

    @while_shown
    def _undo_objected(self) -> None:
        if self._objected is not None:
            self._undo(self._objected)

    def _undo(self, name: str) -> None:
        if self._writing:
            return
        decision = self._document.review.tasks(self._session.scene.question.id).get(name)
        if decision is not None:
            self._document.record(Decision(verb="undo", undoes=decision.decision))

    def _show_objection(self, text: str, task: str | None) -> None:
        self._objected = task if text else None
        self._panel.show_objection(text)

    def _record(self, decision: Decision) -> None:
        if self._writing:  # the previous decision is not saved yet
            return
        self._writing = True
        self._document.record(decision).failed.connect(self._on_not_written)

    def _on_not_written(self) -> None:
        self._writing = False

    def _read_decided(self) -> None:
        scene = self._session.scene
        decisions = self._document.review.tasks(scene.question.id)
        class_numbers = {name: number for number, name in enumerate(scene.decidable)}
        self.decided = np.full(len(scene.labels.tasks), OPEN, dtype=np.int16)
        for name, number in scene.number_of.numbers(decisions).items():
            label = decisions[name].label
            if label in class_numbers:
                self.decided[number] = class_numbers[label]

    def _skipped(self) -> frozenset[int]:
        scene = self._session.scene
        names = self._document.review.skipped_tasks(scene.question.id)
        return frozenset(scene.number_of.numbers(names).values())

    def _contested(self) -> dict[int, str]:
        """Return the tasks with conflicting decisions of experts, and these decisions."""
        scene = self._session.scene
        reasons = self._document.review.contested_tasks(scene.question.id)
        return {number: reasons[name] for name, number in scene.number_of.numbers(reasons).items()}

    def _notes(self) -> dict[int, dict[str, int]]:
        """Return the numbers of comments and bookmarks, by task."""
        notes = self._core.notes_by_name
        numbers = self._session.scene.number_of.numbers(notes)
        return {number: notes[name] for name, number in numbers.items()}

    def _on_filter(self, text: str, key: str) -> None:
        self._filter = (text, key)
        self._sort()

    @while_shown
    def _sort(self) -> None:
        work = partial(
            in_order,
            self._session.scene,
            self._session.analysis,
            self.decided.copy(),
            *self._filter,
            self._members,
            self._skipped(),
            frozenset(self._contested()),
            self._notes(),
        )
        job = self._jobs.start("Sorting tasks", work, quiet=True)
        self._sorting.follow(job, self._on_sorted)

    def _on_sorted(self, order: NDArray[np.int64]) -> None:
        self._order = order
        self._list()
        entering, self._entering = self._entering, None
        entering_task, self._entering_task = self._entering_task, None
        if entering_task is not None:
            self._begin = False
            self.go_to_task(*entering_task)
        elif self._begin and entering is not None:
            self._begin = False
            self._queue.select(None)
            rows = candidate_rows(self._waits(entering[2]), len(self._queue.order), None, entering[1])
            self.go_to(int(self._queue.order[rows[0]]) if rows else None)
        elif self._begin:
            self._begin = False
            self.go_to(self._queue.first)
        else:
            self._show_task()
        self.changed.emit()

    def _list(self) -> None:
        session, order = self._session, self._order
        if self._filter[1] == "undecided":
            order = order[self.decided[order] == OPEN]
        listed = view.tasks_view(
            session.scene, session.analysis, self.decided, order, frozenset(self._contested()),
            self._notes(), blind=session.blind,
        )  # fmt: skip
        self._queue.set_view(listed)

    def _show_task(self) -> None:
        task = self.current
        self._panel.show_task(None if task is None else self._task_view(task))

    def _task_view(self, task: int) -> TaskView:
        session = self._session
        return view.task_view(
            session.scene, session.analysis, task, int(self.decided[task]), self._pictures.get(task),
            contested=self._contested().get(task, ""), blind=session.blind,
        )  # fmt: skip

    def _on_picture(self, task: int, _picture: QImage | None) -> None:
        if task == self.current:
            self._show_task()


def _no_step(_step: int, _skipped: bool, _finish: bool) -> bool:
    return False


def in_order(
    scene: Scene,
    analysis: Analysis,
    decided: ClassArray,
    text: str,
    key: str,
    members: frozenset[int],
    skipped: frozenset[int],
    contested: frozenset[int],
    notes: Mapping[int, Mapping[str, int]],
    watch: Watch,
) -> NDArray[np.int64]:
    """Filter and sort tasks: conflicting decisions first, then by doubt, skipped tasks last."""
    watch(0.0, "sorting tasks")
    count = len(scene.labels.tasks)
    keep = np.ones(count, dtype=bool)
    if key == "undecided":
        known_labels = np.full(count, OPEN) if scene.fusion is None else scene.fusion.known
        keep &= known_labels == OPEN  # the list omits decided tasks, which return after undo
    elif key == "decided":
        keep &= decided != OPEN
    elif key == "gold":
        keep &= scene.truth != OPEN
    elif key == "disagree":
        labels = analysis.vote.argmax(axis=1) if scene.fusion is None else scene.fusion.label()
        keep &= (scene.truth != OPEN) & (scene.truth != labels)
    elif key == "community":
        of_members = np.zeros(count, dtype=bool)
        for member in members:
            of_members[scene.labels.task[analysis.by_annotator.of(member)]] = True
        keep &= of_members
    elif key == "few":
        keep &= analysis.votes < FEW
    elif key in NOTES:
        keep &= np.isin(np.arange(count), [task for task in notes if NOTES[key] in notes[task]])
    if text:
        part = text.casefold()
        keep &= np.fromiter((part in name.casefold() for name in scene.labels.tasks), bool, count)
    share = analysis.vote if scene.fusion is None else scene.fusion.posterior
    doubt = 1.0 - max_rows(share)
    rows = np.flatnonzero(keep)
    last, first = np.isin(rows, list(skipped)), np.isin(rows, list(contested))
    return rows[np.lexsort((-doubt[rows], ~first, last))]
