"""Cost of a question: votes to ask for within a budget, and accuracy by votes, measured on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import Signal

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.data import ClassArray
from raterscope.algorithms.labels.vote_budget import BudgetSettings, CostSettings
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.labels.runs import plan_of, unseen_truths
from raterscope.app.kinds.labels.vote_budget import (
    Assignments,
    Budget,
    Cost,
    assign,
    cost_in_words,
    enough_in_words,
    measure_cost,
    read_prices,
    stored_budget,
)
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import Study
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.method_comparison import question_of
from raterscope.app.workspaces.labels.scene import Scene
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.app.workspaces.labels.tasks import TaskReview
from raterscope.figures.courses import CourseLine
from raterscope.widgets.dialogs.review_dialogs import BudgetDialog
from raterscope.widgets.panels.lists import Suggestion
from raterscope.widgets.tables.comparison_tables import NOT_KNOWN, ComparisonRow

LEAST = 0.005
"""Minimum information gain, in bits, of a listed vote."""

LOOKING = "Looking for the most informative votes."
NONE_NEEDED = "No further vote is expected to change much: every task is settled."


class ActiveLearning(LabelsPart):
    """List of votes to ask for within the study's budget; filled while visible."""

    refused = Signal(str)

    def __init__(self, core: LabelsCore, tasks: TaskReview) -> None:
        super().__init__(core)
        self._tasks = tasks
        self._task, self._storing = LatestTask(), LatestTask()
        self._assigned: Assignments | None = None
        self._budget = Budget()
        core.screen.left_tabs.currentChanged.connect(self._update)
        core.screen.ask.budget.clicked.connect(self.ask_budget)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        core.session.blind_changed.connect(self._show)
        self.dialog: BudgetDialog | None = None

    def _clear(self) -> None:
        self._task.cancel()
        self._assigned = None
        self._screen.ask.show_lines(())
        self._screen.ask.budget.setEnabled(False)

    def _on_scene(self, scene: Scene) -> None:
        self._clear()
        self._screen.ask.budget.setEnabled(scene.fusion is not None)
        if scene.fusion is not None:
            self._screen.ask.show_lines((), LOOKING)
        self._update()

    @while_shown
    def _update(self) -> None:
        scene = self._session.scene
        visible = self._screen.left_tabs.currentWidget() is self._screen.ask
        if not visible or scene.fusion is None or self._assigned is not None:
            return
        work = partial(_assign, scene, self._tasks.decided.copy())
        job = self._document.read_beside("Looking for votes to ask for", work, quiet=True)
        self._task.follow(job, self._on_assigned)

    def _on_assigned(self, assigned: tuple[Budget, Assignments]) -> None:
        self._budget, self._assigned = assigned
        self._show()

    @while_shown
    def _show(self) -> None:
        scene, assigned = self._session.scene, self._assigned
        if assigned is None:
            return
        votes = assigned.votes
        rows = zip(
            votes.task.tolist(), votes.annotator.tolist(), votes.gain.tolist(), votes.gain_of_new.tolist(),
            strict=True,
        )  # fmt: skip
        lines = [
            Suggestion(
                key=(task, annotator),
                name=scene.labels.tasks[task],
                why=f"ask {self._annotator_name(scene, annotator)}",
                gain=gain,
                more=f"A new annotator would contribute {gain_of_new:.2f} bit.",
            )
            for task, annotator, gain, gain_of_new in rows
            if gain >= LEAST
        ]
        assert scene.result is not None
        truth = unseen_truths(scene.result, scene.truth)
        limit = self._budget.settings.enough
        enough = enough_in_words(scene.result.fusion, truth, limit, self._tasks.decided)
        self._screen.ask.show_lines(lines, NONE_NEEDED, f"{assigned.in_words()} {enough}")

    def _annotator_name(self, scene: Scene, annotator: int) -> str:
        if annotator == OPEN:
            return "a new annotator"
        return view.name_of(scene, annotator, blind=self._session.blind)

    @while_shown
    def ask_budget(self) -> None:
        """Open the dialog for the budget."""
        if self._session.scene.fusion is None:
            self.refused.emit("Fuse the labels first (F5).")
            return
        self._screen.left_tabs.setCurrentWidget(self._screen.ask)
        costs = self._budget.prices
        text = f"Costs of {len(costs):,} annotators" if costs else "All votes cost the same"
        self.dialog = dialog = BudgetDialog(self._budget.settings, text, self._screen.window())
        dialog.accepted.connect(partial(self._on_budget, dialog))
        dialog.open()

    def _on_budget(self, dialog: BudgetDialog) -> None:
        settings = dialog.form.settings()
        assert isinstance(settings, BudgetSettings)
        work = partial(_store, settings, dialog.costs, dialog.cleared)
        job = self._document.ask("Keeping the budget", work)
        self._storing.follow(job, self._on_stored, failed=self.refused.emit)

    def _on_stored(self, _: None) -> None:
        self._assigned = None
        self._screen.ask.show_lines((), LOOKING)
        self._update()


def _assign(scene: Scene, decided: ClassArray, study: Study, watch: Watch) -> tuple[Budget, Assignments]:
    assert scene.fusion is not None
    budget = stored_budget(study)
    return budget, assign(scene.labels, scene.fusion, budget, decided, watch)


def _store(settings: BudgetSettings, costs: Path | None, cleared: bool, study: Study, watch: Watch) -> None:
    watch(0.0, "keeping the budget")
    budget = replace(stored_budget(study), settings=settings)
    if cleared or costs is not None:
        budget = replace(budget, prices={} if costs is None else read_prices(costs))
    study.settings.vote_budget = budget.as_record()


class CostMeasurement(LabelsPart):
    """Cost of the question on screen, measured on request."""

    refused = Signal(str)

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._panel = core.screen.cost
        self._task = LatestTask()
        self._costs: Mapping[object, Cost] = {}
        """Measurement of the scene shown."""
        self._panel.button.clicked.connect(self._on_requested)
        self._panel.cancel.clicked.connect(self._task.stop)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.stop()
        self._costs = {}
        self._show(None)

    def _on_scene(self, scene: Scene) -> None:
        if _rests_on(scene) not in self._costs:
            self._clear()

    def _on_requested(self) -> None:
        settings = self._panel.form.settings()
        if not self._session.shown or not isinstance(settings, CostSettings):
            self.refused.emit("Open a study of labels first.")
            return
        scene = self._session.scene
        plan = None if scene.run is None else plan_of(scene.run)
        job = self._jobs.start(
            "Measuring accuracy against votes", partial(measure_cost, question_of(scene), plan, settings),
            costly=True,
        )  # fmt: skip
        measured = partial(self._on_measured, _rests_on(scene))
        self._task.measure(job, self._panel, measured, self.refused.emit)

    def _on_measured(self, key: object, cost: Cost) -> None:
        self._costs = {key: cost}
        self._show(cost)

    def _show(self, cost: Cost | None) -> None:
        if cost is None:
            self._panel.show_cost((), ())
            self._panel.set_facts("")
            return
        curve = cost.curve
        lines = [CourseLine("expected by the model", 3, curve.votes, *curve.expected.T)]
        if curve.judged:
            lines.insert(0, CourseLine("on gold tasks", 0, curve.votes, *curve.accuracy.T))
        rows = [
            ComparisonRow(
                replay.limit, f"{replay.limit:g}", "",
                (
                    _alone(replay.used / max(replay.tasks, 1)),
                    _alone(1 - replay.used / max(replay.votes, 1)),
                    _alone(replay.stopped / max(replay.tasks, 1)),
                    (replay.error, replay.low, replay.high),
                ),
            )
            for replay in cost.replays
        ]  # fmt: skip
        self._panel.show_cost(lines, rows)
        self._panel.set_facts(cost_in_words(cost))


def _alone(value: float) -> tuple[float, float, float]:
    return (value, *NOT_KNOWN[1:])


def _rests_on(scene: Scene) -> tuple[object, ...]:
    run = None if scene.run is None else scene.run.id
    return scene.question.id, run, len(scene.labels), np.asarray(scene.truth).tobytes()
