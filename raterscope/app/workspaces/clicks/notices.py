"""Notes above the image: what the votes of a run do not settle, and which images it was fused without.

See `absence_notice`, `decision_notice`, `score_notice`, `grouping_notice`, `isolation_notice` and
`others_in_words`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from raterscope.algorithms.clicks.fusion import FusionPlan, isolation_notice
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import (
    absence_notice,
    decision_notice,
    grouping_notice,
    score_notice,
)
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.clicks.other_images import others_in_words
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.review_queue import ReviewQueue

__all__ = ["RunNotices"]

NOTE = "Perhaps artefacts only"
DECIDED = "Decisions contradict votes"
SCORED = "Scores contradict votes"
GROUPED = "Depends on grouping"
ISOLATED = "Some images only"
OTHERS = "Other images used"


class RunNotices(ClicksPart):
    """Looks at the results of all images once they are read, and keeps the note while they are shown."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue) -> None:
        super().__init__(core)
        self._notes, self._review_queue = core.screen.notes, review_queue
        self._task = LatestTask()
        review_queue.all_read.connect(self._look)
        core.document.replaced.connect(self._forget)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        for tag in (ISOLATED, OTHERS):
            self._notes.set_note(tag, "")

    def _on_scene(self, scene: Scene) -> None:
        """Say of the run on screen which other images taught it, and whether others could have."""
        run, contents = scene.run, self._document.contents
        words = None
        if run is not None and contents is not None:
            entries = [one for one in contents.runs_of("clicks") if one.id == run.id]
            fused, taught = len(entries[0].items) if entries else 0, run.log.get("others")
            if fused:
                fused += taught if isinstance(taught, int) else 0
                words = isolation_notice(
                    FusionPlan.from_dict(run.settings), fused, len(contents.of("clicks"))
                )
        self._notes.set_note(ISOLATED, words or "")
        self._notes.set_note(OTHERS, "" if run is None else others_in_words(run.log))

    def _forget(self) -> None:
        self._task.cancel()
        for tag in (NOTE, DECIDED, SCORED, GROUPED):
            self._notes.set_note(tag, "")

    def _look(self) -> None:
        fusions = [one.fusion for one in self._review_queue.results.values() if one.fusion is not None]
        job = self._jobs.start("Looking for signs of structures", partial(_look, fusions), quiet=True)
        self._task.follow(job, self._on_looked)

    def _on_looked(self, notices: Mapping[str, str | None]) -> None:
        for tag, notice in notices.items():
            self._notes.set_note(tag, notice or "")


def _look(fusions: Sequence[Fusion], watch: Watch) -> dict[str, str | None]:
    watch(0.0, "comparing the votes with those on artefacts")
    return {
        NOTE: absence_notice(fusions),
        DECIDED: decision_notice(fusions),
        SCORED: score_notice(fusions),
        GROUPED: grouping_notice(fusions),
    }
