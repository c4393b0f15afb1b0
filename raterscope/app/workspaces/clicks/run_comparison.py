"""Runs compared with ground truth, and two runs or channels left and right of a movable divider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QStackedWidget

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.evaluation import RADIUS, Curves, curves
from raterscope.algorithms.image_display import DEFAULT, Displays
from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Contents
from raterscope.app.kinds.clicks.evaluation import Accuracy, measure_runs
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.runs import run_title
from raterscope.app.study.state import LARGEST_RADIUS
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.image_display import ImageDisplay
from raterscope.app.workspaces.clicks.scene import Image, LoadedImage
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPanel, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import spots_of
from raterscope.figures.evaluation import Curve
from raterscope.text import counted
from raterscope.widgets.divider import Side
from raterscope.widgets.figures.chart_figure import ChartPanel
from raterscope.widgets.figures.evaluation_plots import NO_CURVES, CurvesPlot
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.parts import ElidedLabel, NumberBox
from raterscope.widgets.tables.comparison_tables import ComparisonRow, ComparisonTable, Measure
from raterscope.widgets.theme import set_lengths

NAN = float("nan")
NARROW = 290
"""Width in pixels below which the radius is hidden, to show the labels of the switch."""
PAGES = {
    "runs": ("runs", "Several runs on all images with ground truth"),
    "roc": ("ROC", "Sensitivity over the false positive rate of the run and the image on screen"),
    "precision-recall": ("PR", "Precision over sensitivity of the run and the image on screen"),
}
IMPORT = {"runs": "Import ground truth to measure the run on screen against it.", "curves": NO_CURVES}
"""Text of empty pages if no image has ground truth."""


def _integer(value: float, _low: float, _high: float) -> str:
    return counted(int(value))


MEASURES = (
    Measure("sensitivity", "Share of the known structures that were found"),
    Measure("precision", "Share of the detections that are known structures"),
    Measure("F0.5", "Sensitivity and precision in one, precision weighing double"),
    Measure("F1", "Sensitivity and precision in one"),
    Measure("F2", "Sensitivity and precision in one, sensitivity weighing double"),
    Measure(
        "ROC area",
        "Probability that a structure ranks above an artefact; structures without a spot rank last",
    ),
    Measure("detections", "Spots that the run detects", "none", _integer),
)


class RunComparison(ClicksPanel):
    """Comparison of runs with the ground truth, within the study's matching radius."""

    not_measurable = Signal(object)  # runs that were to be compared in a study without ground truth

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._drawing, self._measuring = LatestTask(), LatestTask()
        self._runs: tuple[int, ...] = ()
        self._ticked = False
        """Whether the user chose the runs; otherwise the run on screen is measured."""
        self._has_truth = False
        """Whether any image has ground truth."""
        self.pages = ModeSwitch(PAGES)
        self.radius = NumberBox()
        self.radius.setRange(0.1, LARGEST_RADIUS)
        self.radius.setDecimals(1)
        self.radius.setValue(RADIUS)
        self.radius.setSuffix(" px")
        self.radius.setKeyboardTracking(False)
        set_lengths(self.radius, width=76)
        self.radius.setToolTip(
            "A detection matches a true position within this radius, one to one; reports use it too"
        )
        self.radius.setAccessibleName("Matching radius in pixels")
        self.radius.valueChanged.connect(self._on_radius_set)
        self.table = ComparisonTable(MEASURES, IMPORT["runs"])
        self.table.run_chosen.connect(self.run_chosen)
        self.plot = CurvesPlot()
        self._stack = QStackedWidget()
        for page in (self.table, self.plot):
            self._stack.addWidget(page)
        for page in (self.table, self.plot):
            page.header.hide()  # the switch shows its title, `_summary` the rest of its header
        self._summary = ElidedLabel("", "small")
        self._summary.setAlignment(Qt.AlignmentFlag.AlignRight)
        row = horizontal(self.pages, (self._summary, 1), self.radius, margins=(8, 6, 8, 0), spacing=6)
        vertical(row, (self._stack, 1), inside=self)
        self.pages.chosen.connect(self._on_page)
        core.document.changed.connect(self._on_changed)
        core.document.radius_changed.connect(self._on_radius)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._on_scene)
        core.session.blind_changed.connect(self._on_scene)

    def _on_scene(self) -> None:
        """Draw the curves of another image or run, or none."""
        self._draw_curves()
        self._show_missing()
        self._measure_shown()

    def compare(self, runs: Sequence[int]) -> None:
        """Measure runs on all images with ground truth, and show the table."""
        self.pages.set_mode("runs")
        self._ticked = True
        self._measure(runs)

    def _measure_shown(self) -> None:
        """Measure the run on screen while no other runs are chosen and the panel is visible."""
        run = self._session.scene.run if self._session.shown else None
        if self._ticked or not self._has_truth or run is None or not self.isVisible():
            return
        if self._session.blind:  # the number of detections is hidden until they are decided
            self._measuring.cancel()
            self._runs = ()
            self._set_rows(())
            return
        if self._runs != (run.id,):
            self._measure((run.id,))

    def _measure(self, runs: Sequence[int]) -> None:
        self._runs = tuple(runs)
        work = partial(measure_runs, self._runs, self._radius)
        self._measuring.follow(self._document.read_beside("Comparing runs", work), self._on_measured)

    def forget(self) -> None:
        """Drop the comparison, because another study is open."""
        self._measuring.cancel()
        self._runs, self._ticked = (), False
        self._set_rows(())
        self._has_truth = False
        self._show_radius()
        self._show_missing()
        self._look_for_truth()

    def _on_changed(self) -> None:
        """Check again for ground truth after a change of the study."""
        self._show_radius()
        self._look_for_truth()

    def _look_for_truth(self) -> None:
        contents = self._document.contents
        if contents is not None:
            job = self._document.ask("Looking for ground truth", _any_truth)
            job.finished.connect(partial(self._on_truth, contents.path))

    def _on_truth(self, study: Path, has_truth: bool) -> None:
        contents = self._document.contents
        if contents is not None and contents.path == study:
            self._has_truth = has_truth
            self._show_missing()
            self._measure_shown()

    def _show_missing(self) -> None:
        """Show on each empty page the missing input."""
        if not self._has_truth:
            words = IMPORT
        else:
            scene = self._session.scene if self._session.shown else None
            has_truth = scene is not None and len(scene.truth) > 0
            if self._session.blind:
                measure = "Accuracy is hidden in blind mode."
            elif scene is None or scene.run is None:
                measure = "Press Fuse (F5) to measure a run against the ground truth."
            else:
                measure = "The run on screen is being measured."
            words = {
                "runs": measure,
                "curves": "Press Fuse (F5) to see the curves of this image."
                if has_truth
                else "This image has no ground truth. Import some to see its curves.",
            }
        self.table.set_nothing(words["runs"])
        self.plot.set_nothing(words["curves"])

    def _on_page(self, name: str) -> None:
        self._stack.setCurrentWidget(self.table if name == "runs" else self.plot)
        if name != "runs":
            self.plot.kind.choose(name)
        self._update_text()

    def _update_text(self) -> None:
        """Show the summary of the page beside the switch."""
        page = self._stack.currentWidget()
        text = ""
        if isinstance(page, ComparisonTable):
            text = page.header.text()[1]
        elif isinstance(page, ChartPanel) and page.filled:
            room = self.pages.sizeHint().width() + self.radius.width() + 90
            text = page.header.text()[1]
            text = text if self.width() >= room else text.rpartition(" ")[2]
        self._summary.setText(text)
        self.radius.setVisible(self.width() >= NARROW)

    def showEvent(self, event: QShowEvent) -> None:
        """Measure the run on screen."""
        super().showEvent(event)
        self._measure_shown()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the summary to the available width."""
        super().resizeEvent(event)
        self._update_text()

    def _draw_curves(self) -> None:
        self._drawing.cancel()
        scene = self._session.scene if self._session.shown else None
        fusion, run = (None, None) if scene is None else (scene.fusion, scene.run)
        if scene is None or fusion is None or run is None or not len(scene.truth):
            self.plot.set_curves(())
            self._update_text()
            return
        work = partial(_curves, fusion, scene.truth, self._radius)
        job = self._jobs.start("Drawing curves", work, quiet=True)
        self._drawing.follow(job, partial(self._on_curves, run_title(run)), failed=self.refused.emit)

    def _on_curves(self, title: str, drawn: Curves) -> None:
        curve = Curve(
            title=title,
            false_positive_rate=drawn.false_positive_rate,
            true_positive_rate=drawn.sensitivity,
            recall=drawn.sensitivity,
            precision=drawn.precision,
            area=drawn.roc_area,
            threshold=drawn.threshold,
        )
        self.plot.set_curves((curve,))
        self._update_text()

    @property
    def _radius(self) -> float:
        contents = self._document.contents
        return RADIUS if contents is None else contents.matching_radius

    def _show_radius(self) -> None:
        with QSignalBlocker(self.radius):
            self.radius.setValue(self._radius)
        self.radius.setEnabled(self._document.contents is not None)

    def _on_radius_set(self, radius: float) -> None:
        if self._document.contents is not None:
            self._document.set_matching_radius(radius)

    def _on_radius(self) -> None:
        self._show_radius()
        self._draw_curves()
        if self._runs:
            self._measure(self._runs)

    def _on_measured(self, answer: tuple[int, int, tuple[Accuracy, ...]]) -> None:
        positions, images, measured = answer
        if not positions:
            self.table.set_nothing("The ground truth has no positions to measure the run against.")
            if self._ticked:
                self.not_measurable.emit(self._runs)
            return
        subtitle = f"{positions:,} true positions on {images:,} images, within {self._radius:g} px"
        titles = Counter(run_title(accuracy.run) for accuracy in measured)
        alike = {title for title, count in titles.items() if count > 1}
        self._set_rows(tuple(_row(accuracy, alike) for accuracy in measured), subtitle)

    def _set_rows(self, rows: Sequence[ComparisonRow], subtitle: str = "") -> None:
        self.table.set_rows(rows, subtitle)
        self._update_text()


def _row(accuracy: Accuracy, alike: Collection[str]) -> ComparisonRow:
    """Make the row of a run, with its time if it is among the titles that are alike."""
    row = accuracy.row
    values = (
        row.sensitivity, row.precision, row.f_half, row.f_one, row.f_two, accuracy.area,
        float(accuracy.detections),
    )  # fmt: skip
    title, started = run_title(accuracy.run), accuracy.run.started.astimezone().strftime("%H:%M")
    return ComparisonRow(
        key=accuracy.run.id,
        title=title,
        text=started if title in alike else "",
        tip=f"{title}, {started}, {counted(row.images, 'image')}",
        figures=tuple((value, NAN, NAN) for value in values),
    )


def _curves(fusion: Fusion, truth: FloatArray, radius: float, watch: Watch) -> Curves:
    watch(0.0, "matching")
    return curves(fusion.clustering.mean, fusion.detection.posterior, truth, radius)


def _any_truth(study: Study, watch: Watch) -> bool:
    watch(0.0, "looking for ground truth")
    return study.has_truth()


Other = tuple[RunEntry, Fusion, int]
"""Another run of an image, its result, and the number of its annotators."""


class RunDivider(ClicksPart):
    """Another run of the image right of a divider, initially the latest, until another image is shown."""

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
        """Show a second run, or one run again."""
        if self.on:
            self.leave()
        else:
            self.show_beside()

    def show_beside(self, runs: Collection[int] | None = None) -> None:
        """Show the latest other run of the image, or the latest of these runs, right of the divider."""
        contents, session = self._document.contents, self._session
        scene = session.scene if session.shown else None
        if scene is None or contents is None or scene.run is None or session.blind:
            self._screen.message.emit("Show a run of this image first, outside blind mode.")
            return
        others = [run for run in self._others(contents) if runs is None or run.id in runs]
        if not others:
            self._screen.message.emit("This image has one run. Fuse it again with other settings to compare.")
            return
        if runs is not None:
            self._screen.message.emit("There is no ground truth: two runs are shown side by side.")
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
        """Show the chosen run on the right; the left side is the run on screen."""
        if self.on and right:
            self._read(int(name))

    def _show(self) -> None:
        contents, session = self._document.contents, self._session
        if self._other is None or contents is None or not session.shown or session.scene.run is None:
            return
        run, fusion, annotators = self._other
        spots = spots_of(fusion, annotators, contents.review.spots(session.scene.image.id))
        choices = tuple((str(each.id), _run_text(each)) for each in self._others(contents))
        left = Side(_run_text(session.scene.run))
        marks = view.detection_marks(spots, self._core.bookmarks)
        self._canvas.set_compared(marks, (left, Side(_run_text(run), choices)))


def _run_text(run: RunEntry) -> str:
    return f"run {run.id}: {run_title(run)}"


def _read(image: int, run: int, study: Study, watch: Watch) -> Other | None:
    watch(0.0, "reading")
    entry, fusion = study.shown.run_and_result(image, "clicks", run)
    if entry is None or fusion is None:
        return None
    return entry, fusion, len(study.clicks(image, entry).annotators)


ALL = "all channels"
Rendered = tuple[tuple[str, ...], tuple[Image, Image]]
"""Names of all channels, and the images of the two compared channels."""


class ChannelDivider(ClicksPart):
    """Two channels of the image left and right of a divider, until another image is shown."""

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
    """Render each of two channels separately; None if the image has a single channel."""
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
