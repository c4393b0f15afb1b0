"""Tasks that need another vote most, and the annotator to ask, by expected information gain."""

from __future__ import annotations

from functools import partial

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.active_learning import NextVotes, next_votes
from raterscope.algorithms.progress import Watch
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import Scene
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.widgets.panels.lists import AskLine

__all__ = ["ActiveLearning"]

MOST = 200

LEAST = 0.005
"""Bits: a vote that tells less is not worth asking for."""

LOOKING = "Looking for the most informative votes."
NONE_NEEDED = "No further vote is expected to change much: every task is settled."


class ActiveLearning(LabelsPart):
    """Fills the list of votes to request while it is visible."""

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._task = LatestTask()
        self._found: NextVotes | None = None
        core.screen.left_tabs.currentChanged.connect(self._look)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        core.session.blind_changed.connect(self._show)

    def _clear(self) -> None:
        self._task.cancel()
        self._found = None
        self._screen.ask.show_lines(())

    def _on_scene(self, scene: Scene) -> None:
        self._clear()
        if scene.fusion is not None:
            self._screen.ask.show_lines((), LOOKING)
        self._look()

    @while_shown
    def _look(self) -> None:
        scene = self._session.scene
        seen = self._screen.left_tabs.currentWidget() is self._screen.ask
        if not seen or scene.fusion is None or self._found is not None:
            return
        job = self._jobs.start("Looking for votes to ask for", partial(_ask, scene), quiet=True)
        self._task.follow(job, self._on_found)

    def _on_found(self, found: NextVotes) -> None:
        self._found = found
        self._show()

    @while_shown
    def _show(self) -> None:
        scene, found = self._session.scene, self._found
        if found is None:
            return
        rows = zip(
            found.task.tolist(), found.annotator.tolist(), found.gain.tolist(), found.gain_of_new.tolist(),
            strict=True,
        )  # fmt: skip
        self._screen.ask.show_lines(
            [
                AskLine(
                    key=task,
                    name=scene.labels.tasks[task],
                    why=f"ask {self._whom(scene, who)}",
                    gain=gain,
                    more=f"Somebody of whom nothing is known would tell {gain_of_new:.2f} bit.",
                )
                for task, who, gain, gain_of_new in rows
                if gain >= LEAST
            ],
            NONE_NEEDED,
        )

    def _whom(self, scene: Scene, who: int) -> str:
        return "somebody new" if who == OPEN else view.name_of(scene, who, blind=self._session.blind)


def _ask(scene: Scene, watch: Watch) -> NextVotes:
    assert scene.fusion is not None
    return next_votes(scene.labels, scene.fusion, MOST, watch=watch)
