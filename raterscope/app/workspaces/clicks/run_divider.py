"""Two runs on one image with a movable divider: left the run on screen, right another one."""

from __future__ import annotations

from functools import partial

from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import spots_of
from raterscope.app.workspaces.run_history import run_title

Other = tuple[RunEntry, Fusion, int]
"""Another run of an image, its result, and the number of its annotators."""


class RunDivider(ClicksPart):
    """Shows the latest other run of the image right of a divider, until the image is left."""

    def __init__(self, core: ClicksCore, reviewing: SpotReview) -> None:
        super().__init__(core)
        self._canvas = core.screen.canvas
        self._other: Other | None = None
        self._task = LatestTask()
        reviewing.spots_changed.connect(self._show)
        for signal in (core.session.scene_changed, core.session.blind_changed, core.session.cleared):
            signal.connect(self.leave)

    @property
    def on(self) -> bool:
        """Whether two runs are shown."""
        return self._other is not None

    def leave(self) -> None:
        """Show one run again."""
        self._task.cancel()
        self._other = None
        self._canvas.set_compared(None, ("", ""))

    def toggle(self) -> None:
        """Show another run too, or one run again."""
        if self.on:
            self.leave()
            return
        contents, session = self._document.contents, self._session
        scene = session.scene if session.shown else None
        if scene is None or contents is None or scene.run is None or session.blind:
            self._screen.message.emit("Show a run of this image first, outside blind mode.")
            return
        shown, image = scene.run.id, scene.image.id
        others = [run.id for run in contents.runs_of("clicks") if run.id != shown and image in run.items]
        if not others:
            self._screen.message.emit("This image has one run. Fuse it again with other settings to compare.")
            return
        work = partial(_read, image, max(others))
        self._task.follow(self._document.ask("Reading another run", work), self._on_read)

    def _on_read(self, other: Other | None) -> None:
        self._other = other
        self._show()

    def _show(self) -> None:
        contents, session = self._document.contents, self._session
        if self._other is None or contents is None or not session.shown or session.scene.run is None:
            return
        run, fusion, looked = self._other
        spots = spots_of(fusion, looked, contents.review.spots(session.scene.image.id))
        left, right = (f"run {each.id}: {run_title(each)}" for each in (session.scene.run, run))
        self._canvas.set_compared(view.detection_marks(spots), (left, right))


def _read(image: int, run: int, study: Study, watch: Watch) -> Other | None:
    watch(0.0, "reading")
    entry, fusion = study.shown.run_and_result(image, "clicks", run)
    if entry is None or fusion is None:
        return None
    return entry, fusion, len(study.clicks(image, entry).annotators)
