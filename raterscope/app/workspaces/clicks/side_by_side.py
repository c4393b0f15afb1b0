"""Two runs, or two channels, of the image on screen, left and right of a movable divider."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.image_display import DEFAULT, Displays
from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.image_display import ImageDisplay
from raterscope.app.workspaces.clicks.scene import Image, LoadedImage
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import spots_of
from raterscope.app.workspaces.run_history import run_title
from raterscope.widgets.divider import Side

Other = tuple[RunEntry, Fusion, int]
"""Another run of an image, its result, and the number of its annotators."""


class RunDivider(ClicksPart):
    """Another run of the image right of a divider, at first the latest, until the image is left."""

    def __init__(self, core: ClicksCore, reviewing: SpotReview) -> None:
        super().__init__(core)
        self._canvas = core.screen.canvas
        self._other: Other | None = None
        self._task = LatestTask()
        self._canvas.divider.side_chosen.connect(self._on_side_chosen)
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
        if self.on:
            self._other = None
            self._canvas.set_compared(None, None)

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
        others = self._others(contents)
        if not others:
            self._screen.message.emit("This image has one run. Fuse it again with other settings to compare.")
            return
        self._read(max(run.id for run in others))

    def _others(self, contents: Contents) -> list[RunEntry]:
        """List the runs of the image that are not on screen."""
        scene = self._session.scene
        shown = None if scene.run is None else scene.run.id
        return [run for run in contents.runs_of("clicks") if run.id != shown and scene.image.id in run.items]

    def _read(self, run: int) -> None:
        work = partial(_read, self._session.scene.image.id, run)
        self._task.follow(self._document.ask("Reading another run", work), self._on_read)

    def _on_read(self, other: Other | None) -> None:
        if other is not None:
            self._other = other
            self._show()

    def _on_side_chosen(self, right: int, name: str) -> None:
        """Show another run on the right; the left side is the run on screen."""
        if self.on and right:
            self._read(int(name))

    def _show(self) -> None:
        contents, session = self._document.contents, self._session
        if self._other is None or contents is None or not session.shown or session.scene.run is None:
            return
        run, fusion, annotators = self._other
        spots = spots_of(fusion, annotators, contents.review.spots(session.scene.image.id))
        choices = tuple((str(each.id), _run_words(each)) for each in self._others(contents))
        left = Side(_run_words(session.scene.run))
        marks = view.detection_marks(spots, self._core.bookmarks)
        self._canvas.set_compared(marks, (left, Side(_run_words(run), choices)))


def _run_words(run: RunEntry) -> str:
    return f"run {run.id}: {run_title(run)}"


def _read(image: int, run: int, study: Study, watch: Watch) -> Other | None:
    watch(0.0, "reading")
    entry, fusion = study.shown.run_and_result(image, "clicks", run)
    if entry is None or fusion is None:
        return None
    return entry, fusion, len(study.clicks(image, entry).annotators)


ALL = "all channels"
Rendered = tuple[tuple[str, ...], tuple[Image, Image]]
"""Names of all channels, and the images of the two that are compared."""


class ChannelDivider(ClicksPart):
    """Two channels of the image left and right of a divider, until the image is left."""

    def __init__(self, core: ClicksCore, display: ImageDisplay) -> None:
        super().__init__(core)
        self._canvas, self._display = core.screen.canvas, display
        self._chosen: tuple[int, int] | None = None
        """Positions of the two channels in the file; -1 for all channels."""
        self._task = LatestTask()
        self._canvas.divider.side_chosen.connect(self._on_side_chosen)
        display.rendered.connect(self._on_rendered)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self.leave)
        core.document.replaced.connect(self.leave)

    @property
    def on(self) -> bool:
        """Whether two channels are shown."""
        return self._chosen is not None

    def leave(self) -> None:
        """Show all channels in one image again."""
        self._task.cancel()
        if self.on:
            self._chosen = None
            self._canvas.set_compared_images(None, None)

    def toggle(self) -> None:
        """Show the first two channels, or one image again."""
        if self.on:
            self.leave()
        elif self._display.loaded is None:
            self._screen.message.emit("The image is not loaded, so its channels cannot be compared.")
        else:
            self._render((0, 1))

    def _on_scene(self) -> None:
        previous = self._session.previous
        if previous is None or previous.image.id != self._session.scene.image.id:
            self.leave()

    def _on_rendered(self, _image: int, _pixels: Image) -> None:
        """Show another plane, time or contrast on both sides."""
        if self._chosen is not None:
            self._render(self._chosen)

    def _on_side_chosen(self, right: int, name: str) -> None:
        if self._chosen is not None:
            left_channel, right_channel = self._chosen
            self._render((left_channel, int(name)) if right else (int(name), right_channel))

    def _render(self, chosen: tuple[int, int]) -> None:
        loaded = self._display.loaded
        if loaded is None:
            return
        work = partial(_render_channels, loaded, dict(self._document.displays), chosen)
        job = self._jobs.start("Rendering two channels", work, quiet=True)
        self._task.follow(job, partial(self._on_channels, chosen), failed=self._screen.refused.emit)

    def _on_channels(self, chosen: tuple[int, int], rendered: Rendered | None) -> None:
        if rendered is None:
            self._screen.message.emit("This image has one channel. Only images of several can be compared.")
            return
        names, images = rendered
        choices = (("-1", ALL), *((str(at), name) for at, name in enumerate(names)))
        left, right = (Side(ALL if at < 0 else names[at], choices) for at in chosen)
        self._chosen = chosen
        self._canvas.set_compared_images(images, (left, right))


def _render_channels(
    loaded: LoadedImage, displays: Displays, chosen: tuple[int, int], watch: Watch
) -> Rendered | None:
    """Render each of two channels alone; None if the image has a single channel."""
    watch(0.0, "rendering")
    names = loaded.channels
    if len(names) < 2:
        return None

    def alone(channel: int) -> Image:
        if channel < 0:
            return loaded.image
        shown = {
            name: replace(displays.get(name, DEFAULT), shown=at == channel) for at, name in enumerate(names)
        }
        return loaded.with_displays({**displays, **shown}).image

    return names, (alone(chosen[0]), alone(chosen[1]))
