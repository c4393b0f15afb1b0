"""The clicks workspace: connects queue, canvas, evidence and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtWidgets import QMenu

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.clicks.voting import AssignmentSettings
from raterscope.app.assessment import MATTERS, Change
from raterscope.app.contents import Contents
from raterscope.app.kinds.clicks.image_fusion import Draft
from raterscope.app.kinds.clicks.runs import explain_not_converged
from raterscope.app.review import Decision, SampledItem, SpotSubject
from raterscope.app.study import RunEntry
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.annotators import Agreement, AnnotatorCourses, Annotators, Exclusion
from raterscope.app.workspaces.clicks.batch_review import BatchReview, ListedSpot
from raterscope.app.workspaces.clicks.canvas_view import CanvasContent, SpotMenu, ViewLog
from raterscope.app.workspaces.clicks.evidence import Evidence
from raterscope.app.workspaces.clicks.image_display import FocalPlanes, ImageDisplay
from raterscope.app.workspaces.clicks.image_notes import ControlMarks, ImageFlags, ImageOrder, RunNotices
from raterscope.app.workspaces.clicks.measurements import Measurements, Parasitaemia
from raterscope.app.workspaces.clicks.plots import ActiveLearning, CrowdSizeCurves, LinkedPlots
from raterscope.app.workspaces.clicks.run_comparison import ChannelDivider, RunComparison, RunDivider
from raterscope.app.workspaces.clicks.scene import ClicksSession, Crops, Scene, load_pixels, read_scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksScreen
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import Spot, read_outlines, read_results, summarize
from raterscope.app.workspaces.clicks.streaming import Streaming
from raterscope.app.workspaces.comments import Comments, Renaming
from raterscope.app.workspaces.layout import ActionEntry
from raterscope.app.workspaces.navigation import ItemNavigation, PixelLoader
from raterscope.app.workspaces.review_order import next_unit
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.app.workspaces.run_history import Calibration
from raterscope.app.workspaces.screen import BlindTexts, three_numbers
from raterscope.text import percent
from raterscope.widgets.canvas.image_canvas import ZOOM_STEP
from raterscope.widgets.panels.class_bars import keys_of
from raterscope.widgets.panels.fuse_panel import RunRequest
from raterscope.widgets.parts import without_checked

BLIND = BlindTexts(
    "Blind mode: hide names and votes until you decide",
    "Names, votes and the model's answers are hidden until you decide.",
    "Names, votes and the model's answers are shown.",
)
COVERAGES = (0.5, 0.68, 0.95, 0.99)
"""Possible shares of a cluster's clicks within its ellipse."""


class ClicksWorkspace(ClicksScreen):
    """Review of clicks: images, their spots, the evidence for each, and the expert's decisions."""

    def build(self) -> Iterator[None]:
        """Make the widgets, then connect them with the study."""
        yield from super().build()
        document, jobs = self._document, self._jobs
        self.session = ClicksSession(self)
        self.session.scene_changed.connect(self._prepare_canvas)
        self.core = core = ClicksCore(self, document, jobs, self.session, "clicks", BLIND)
        loading = partial(load_pixels, lambda: dict(document.displays))
        self.loader = PixelLoader(document, jobs, loading, self)
        self.planes = FocalPlanes(core, self.loader)
        self.display = ImageDisplay(core, self.loader, self.planes)
        self.reviewing = SpotReview(document, self.session, core.sample, self._go_elsewhere, self)
        self.review_queue = ReviewQueue(
            document, self.queue, "clicks", read_results, summarize, self, outline=read_outlines,
            nouns=("image", "spot"),
            tip=f"A decision matters where the answer is wrong with a probability of {MATTERS:g} or more: "
            f"the posterior lies between {MATTERS:g} and {1 - MATTERS:g}.",
        )  # fmt: skip
        self.session.blind_changed.connect(self.queue.set_covered)
        self.navigation = ItemNavigation(
            document, jobs, core.runs, "an image", read_scene, self.review_queue, self.loader, self.canvas
        )
        self.annotators = Annotators(core)
        self.run_comparison = RunComparison(core)
        yield
        self.crowd_sizes = CrowdSizeCurves(core)
        self.streaming = Streaming(core, self.review_queue)
        self.active_learning = ActiveLearning(core, self.review_queue)
        self.flagging = ImageFlags(core)
        self.order = ImageOrder(core)
        self.run_divider = RunDivider(core, self.reviewing)
        self.channel_divider = ChannelDivider(core, self.display)
        self.controls = ControlMarks(core)
        self.measurements = Measurements(core)
        self.parasite_counts = Parasitaemia(core, self.review_queue, self.measurements)
        self.batch_review = BatchReview(core, self.review_queue, self.reviewing)
        self.comments = Comments(core, self.evidence, lambda: self.reviewing.subject)
        yield
        self.menu = SpotMenu(
            core, self.reviewing, self.batch_review, self.measurements, self.comments, self._decide
        )
        self._to_find: Spot | SpotSubject | None = None
        """Spot to select once its image is on screen."""
        self.crops = Crops(jobs, self)
        self.canvas_view = CanvasContent(core, self.reviewing, self.loader, self.display, self.crops)
        self.viewing = ViewLog(document, self.canvas, self.crops, self.reviewing, self.batch_review)
        self.run_notices = RunNotices(core, self.review_queue)
        self.renaming = Renaming(core, self._selected_class)
        self.renaming.renamed.connect(self.navigation.read_all_again)
        self.reviewing.selected.connect(self.comments.refresh)
        self.spot_evidence = Evidence(core, self.crops, self.reviewing, COVERAGES[-2])
        self.right_tabs.addTab(self.run_comparison, "Truth")
        self.calibration = Calibration(document, self.trust, self.queue, "clicks")
        self.agreement = Agreement(core, self.review_queue, self.annotators)
        self.exclusion = Exclusion(core, self.reviewing)
        self.over_images = AnnotatorCourses(core, self.review_queue, self.annotators)
        self.plots = LinkedPlots(
            core, self.review_queue, self.reviewing, self.run_comparison, self.annotators
        )
        self._connect()
        core.connect_screen(self.navigation)
        yield
        self._make_actions()

    def _connect(self) -> None:
        self.evidence.about.runs.chosen.connect(self.runs.choose)
        self.canvas.layers.refused.connect(self._on_image_refused)
        self.loader.refused.connect(self.refused)
        self.reviewing.spots_changed.connect(self._on_spots)
        self.reviewing.exhausted.connect(self._on_exhausted)
        self.core.sample.chosen.connect(self._go_to_sampled)
        self.canvas.spot_clicked.connect(self.reviewing.select)
        self.canvas.place_chosen.connect(self._on_place_chosen)
        self.canvas.place_double_clicked.connect(self._on_place_chosen)
        self.canvas.spot_moved.connect(self.reviewing.move)
        for panel in (self.evidence, self.grid):
            panel.accept_requested.connect(partial(self._decide, "accept"))
            panel.reject_requested.connect(partial(self._decide, "reject"))
            panel.skip_requested.connect(partial(self._decide, "skip"))
        self.grid.left.connect(self._toggle_grid)
        self.batch_review.looked_at.connect(self._on_looked_at)
        self.batch_review.opened.connect(self._show_spot)
        self.display.changed.connect(self.batch_review.cut_again)
        self.exclusion.opened.connect(self._show_spot)
        self.exclusion.message.connect(self.message)
        self.controls.message.connect(self.message)
        self.controls.flag_requested.connect(self._on_flag)
        self.batch_review.message.connect(self.message)
        self.evidence.add_requested.connect(partial(self._set_mode, "add"))
        self.evidence.move_requested.connect(partial(self._set_mode, "move"))
        self.evidence.undo_requested.connect(self._document.undo)
        self.evidence.about.voters.chosen.connect(self.annotators.choose)
        self.evidence.classes.decided.connect(self._decide_class)
        self.annotators.shown_changed.connect(self.canvas.layers.set_annotators_shown)
        self.runs.ended.connect(self._on_no_fusion)
        self.crowd_sizes.refused.connect(self.refused)
        self.run_comparison.not_measurable.connect(self._show_beside)
        self.streaming.moved.connect(self._show_again)
        self.measurements.scale_changed.connect(self._show_again)
        self.measurements.refused.connect(self.refused)
        for tabs in (self.middle_tabs, self.right_tabs):
            tabs.currentChanged.connect(self.annotators.refresh_stale)
        self.reviewing.message.connect(self.message)
        self.session.blind_changed.connect(self._on_names_hidden)

    def _make_actions(self) -> None:
        review = self.reviewing
        described: tuple[ActionEntry, ...] = (
            ("Next disputed spot", "Tab", partial(review.next_disputed, 1)),
            ("Previous disputed spot", "Shift+Tab", partial(review.next_disputed, -1)),
            ("Accept", "A", partial(self._decide, "accept")),
            ("Reject", "R", partial(self._decide, "reject")),
            ("Skip", "S", partial(self._decide, "skip")),
            ("Add a spot", "N", partial(self._set_mode, "add")),
            ("Move the spot", "M", partial(self._set_mode, "move")),
            ("Review many spots at once", "G", self._toggle_grid),
            ("Compare with another run, side by side", "V", partial(self._compare, self.run_divider)),
            ("Compare two channels, side by side", "Shift+V", partial(self._compare, self.channel_divider)),
            ("Set the scale by a line", "L", partial(self.measurements.begin, "scale")),
            ("Measure a length", "D", partial(self.measurements.begin, "length")),
            ("Measure an area", "O", partial(self.measurements.begin, "area")),
            ("Exclude or down-weight the annotator", "X", self.exclusion.exclude_chosen),
            ("Exclude or include the program's scores", "Shift+X", self.exclusion.toggle_program),
            ("Brightness and contrast", "W", self.display.toggle),
            ("Automatic contrast", "Shift+W", self.display.automatic),
            ("Next focal plane", "Alt+Up", partial(self.planes.step, 1)),
            ("Previous focal plane", "Alt+Down", partial(self.planes.step, -1)),
            ("Next time", "Alt+Shift+Up", partial(self.planes.step_time, 1)),
            ("Previous time", "Alt+Shift+Down", partial(self.planes.step_time, -1)),
            ("Maximum projection of the focal planes", "P", self.planes.toggle_projection),
            ("Sharpest focal plane", "Shift+P", self.planes.find_sharpest),
            ("Zoom in", "", partial(self.canvas.zoom, ZOOM_STEP)),
            ("Zoom out", "", partial(self.canvas.zoom, 1 / ZOOM_STEP)),
            ("Show the whole image", "", self.canvas.fit),
            ("Sort images by dispute, focus or saturation", "I", self.order.step),
            ("Flag the image", "F", partial(self._on_flag, None)),
            ("Mark or unmark a positive control", "C", partial(self._on_control, "positive")),
            ("Mark or unmark a negative control", "Shift+C", partial(self._on_control, "negative")),
            ("Rename or merge a class…", Renaming.KEY, self.renaming.start),
            *self.comments.actions,
            *self.core.navigation_actions("image"),
            ("Leave the mode or the panel", "Esc", self._leave),
        )
        self.add_actions(described, (self.canvas, self.evidence, self.queue.view))
        ellipses = QMenu("Ellipses hold", self)
        for coverage in COVERAGES:
            action = ellipses.addAction(f"{percent(coverage)} of a spot's clicks")
            action.triggered.connect(without_checked(partial(self.set_coverage, coverage)))
        self.actions_made.append(ellipses.menuAction())
        self.add_digits(self._on_digit, "Accept the spot as this class, or show one annotator only")

    # Navigation

    @property
    def has_to_leave(self) -> bool:
        """Whether there is a mode or a panel for Esc to leave."""
        return self._in_a_mode or self.streaming.replay.on

    @property
    def _in_a_mode(self) -> bool:
        drawing = self.canvas.mode != "look" or self.measurements.busy
        compared = self.run_divider.on or self.channel_divider.on
        return super().has_to_leave or drawing or self.grid_shown or self.display.is_open or compared

    def show_change(self, change: Change) -> None:
        """Select a spot whose answer differs in another run, or a bookmark."""
        if change.point is None:
            self.reviewing.select(None)
        else:
            self._show_spot(change.item, SpotSubject(x=change.point[0], y=change.point[1]))

    def annotators_on_screen(self) -> Sequence[str]:
        """Return the annotators who viewed the image."""
        return self.session.scene.clicks.annotators if self.session.shown else ()

    def choose_annotator(self, name: str) -> None:
        """Choose an annotator everywhere."""
        self.annotators.choose(self._document.numbers[name])

    def view_state(self) -> dict[str, Any]:
        """Return spot, annotator and view too."""
        spot, annotator, view = self.reviewing.spot, self.table.current, self.canvas.viewport
        contents = self._document.contents
        return {
            **super().view_state(),
            "spot": None if spot is None else spot.number,
            "annotator": None if annotator is None or contents is None else contents.annotators[annotator],
            "view": None if self.canvas.fitted else [*view.centre, view.scale],
        }

    def restore_view(self, state: Mapping[str, Any]) -> None:
        """Select spot and annotator, and restore the view of the image."""
        super().restore_view(state)
        if state.get("annotator") in self.annotators_on_screen():
            self.choose_annotator(state["annotator"])
        numbers = [spot.number for spot in self.reviewing.spots]
        if state.get("spot") in numbers:
            self.reviewing.go_to(numbers.index(state["spot"]))
        view = three_numbers(state.get("view"))
        if view is not None and view[2] > 0:
            self.canvas.look_from(*view)

    # Display

    def set_coverage(self, coverage: float) -> None:
        """Draw ellipses that contain this share of a cluster's clicks."""
        self.canvas.layers.set_coverage(coverage)
        self.spot_evidence.set_coverage(coverage)

    def forget_study(self) -> None:
        """Drop all data of the previous study."""
        self.run_comparison.forget()
        self.batch_review.forget()
        self.show_grid(False)
        self.crops.set_image(None)

    def show_undoable(self, text: str) -> None:
        """Offer to undo the last decision."""
        self.evidence.set_undoable(bool(text), text)

    def _show_again(self) -> None:
        """Show the image on screen again, after a change of stream or scale."""
        if self.streaming.as_read is not None:
            self.show_scene(self.streaming.as_read)

    def show_scene(self, scene: Scene | None, _analysis: None = None) -> None:
        """Show an image with the state of the stream and the scale."""
        if scene is None:
            self.session.clear()
            return
        if not self._document.numbers.keys() >= set(scene.clicks.annotators):
            return  # annotators were added meanwhile: the image is read again with the study's contents
        self.session.show(self.measurements.with_pixel_size(self.streaming.with_stream_state(scene)))

    def on_cleared(self) -> None:
        """Show that there is no image."""
        self.canvas_view.clear()
        self._to_find = None
        if self.grid_shown:
            self.batch_review.refresh()
        self.calibration.show(None, ())

    def _prepare_canvas(self, scene: Scene) -> None:
        """Prepare the canvas before other parts of the screen show the scene."""
        self.canvas_view.begin(scene)

    def on_scene(self, scene: Scene) -> None:
        """Show an image and the notes of its run."""
        if self._to_find is not None:
            self.reviewing.go_to(self.reviewing.find(self._to_find))
            self._to_find = None
        if self.grid_shown:
            self.batch_review.refresh()
        self.canvas_view.show()
        if scene.problem is not None:
            self.refused.emit(scene.problem.sentence)
        fusion, run = scene.fusion, scene.run
        self.show_not_converged(explain_not_converged(fusion, run.settings) if fusion and run else "")
        self._calibrate()

    def _calibrate(self) -> None:
        """Update the calibration of the run on screen."""
        as_read = self.streaming.as_read
        run = None if as_read is None else as_read.run
        title = "" if run is None else run_title(run)
        self.calibration.show(run, () if run is None else run.items, title)

    def _on_names_hidden(self) -> None:
        self.canvas_view.show_clicks()
        if self.grid_shown:
            self.batch_review.list_again()

    def _on_image_refused(self, sentence: str) -> None:
        self.refused.emit(sentence)
        self.loader.load_again()

    def _on_spots(self) -> None:
        session = self.session
        self.status_changed.emit(view.status(session.scene, self.reviewing.spots) if session.shown else "")

    def _go_elsewhere(self, step: int, skipped: bool, _finish: bool) -> bool:
        """Continue with the next image that has undecided spots; return whether there is one."""
        current = self.core.item
        unit = next_unit(self.review_queue.units(), (current, ""), step, skipped=skipped)
        if unit is not None:
            self.navigation.visit(unit[0], partial(self.reviewing.enter, step, skipped))
        return unit is not None

    def _go_to_sampled(self, sampled: SampledItem, by_hand: bool) -> None:
        """Go to a spot of the acceptance sample."""
        assert sampled.x is not None
        assert sampled.y is not None
        spot = SpotSubject(x=sampled.x, y=sampled.y, number=sampled.number)
        if by_hand:
            self._show_spot(sampled.item, spot)
        elif self.core.item == sampled.item:
            self.reviewing.go_to(self.reviewing.find(spot))
        else:
            self._to_find = spot
            self.navigation.show(sampled.item)

    def _on_exhausted(self) -> None:
        self.message.emit(self.core.sample.nothing_left() or self.review_queue.nothing_left())

    # Decisions

    def on_decided(self, decision: Decision, contents: Contents) -> None:
        """Show a decision that was stored; after undo, select its spot."""
        self.calibration.set_decided(len(contents.decisions))
        images = contents.items_of(decision, "clicks")
        self.review_queue.decided(*images)
        subject = contents.brought_back(decision)
        restored = subject if isinstance(subject, SpotSubject) else None
        if not images:
            self.annotators.refresh()
        elif self.session.shown and self.core.item not in images:
            if not self.grid_shown:
                self._to_find = restored
                self.navigation.show(images[0])
        else:
            self.spot_evidence.remember(decision)
            self.reviewing.refresh()
            added = decision.subject if decision.verb == "add" else None
            to_find = added if isinstance(added, SpotSubject) else restored
            if to_find is not None and not self.grid_shown:
                self.reviewing.go_to(self.reviewing.find(to_find))
        if self.grid_shown:
            self.batch_review.refresh()

    def _on_place_chosen(self, x: float, y: float) -> None:
        self.canvas.set_mode("look")
        self.reviewing.add(x, y)

    def _decide(self, verb: str, label: str = "") -> None:
        if self.grid_shown:
            self.batch_review.decide(verb, label)
        else:
            self.reviewing.decide(verb, label)

    def _on_digit(self, position: int) -> None:
        """Decide the class of a digit; without classes, show only the annotator in that row."""
        names = self.reviewing.class_names
        digits = keys_of(names)
        if not names:
            self.annotators.solo(position)
        elif str(position + 1) in digits:
            self._decide_class(digits.index(str(position + 1)))

    def _decide_class(self, index: int) -> None:
        self._decide("accept", self.reviewing.class_names[index])

    def _show_beside(self, runs: Sequence[int]) -> None:
        self.channel_divider.leave()
        self.run_divider.show_beside(runs)

    def _compare(self, divider: RunDivider | ChannelDivider) -> None:
        """Compare runs or channels, not both at once."""
        for other in (self.run_divider, self.channel_divider):
            if other is not divider:
                other.leave()
        divider.toggle()

    def _set_mode(self, mode: str) -> None:
        self.show_grid(False)
        self.canvas.set_mode(mode)

    def _toggle_grid(self) -> None:
        self.show_grid(not self.grid_shown)
        if self.grid_shown:
            self.batch_review.list_again()
            self.grid.setFocus()

    def _on_looked_at(self, listed: ListedSpot) -> None:
        if self.core.item == listed.image:
            self.reviewing.select(self.reviewing.find(listed.spot))
        else:
            self.reviewing.select(None)
            result = self.review_queue.results.get(listed.image)
            if result is not None:
                self.spot_evidence.show_elsewhere(listed, result, self.batch_review.cache)

    def _show_spot(self, image: int, spot: Spot | SpotSubject) -> None:
        """Show a spot on its image."""
        self.show_grid(False)
        self.canvas.setFocus()
        if self.core.item == image:
            self.reviewing.select(self.reviewing.find(spot))
        else:
            self._to_find = spot
            self.navigation.show(image)

    def _on_flag(self, image: int | None) -> None:
        contents, number = self._document.contents, self.review_queue.current if image is None else image
        if contents is not None and number is not None:
            self.flagging.toggle(contents.image(number))

    def _on_control(self, verb: str) -> None:
        self.controls.toggle(verb, self.review_queue.current)

    def _selected_class(self) -> str:
        spot = self.reviewing.spot
        return "" if spot is None else spot.class_name

    def _leave(self) -> None:
        if not self._in_a_mode:
            self.streaming.leave_replay()
        self.run_divider.leave()
        self.channel_divider.leave()
        if self.display.is_open:
            self.display.close()
        self.measurements.leave()
        self.canvas.set_mode("look")
        if self.grid_shown and not self.fuse_panel.isVisible():
            self._toggle_grid()
        self.close_fuse_panel()

    # Fusing

    def request_of(self, run: RunEntry) -> RunRequest:
        """Return the request that repeats a run."""
        plan = FusionPlan.from_dict(run.settings)
        return RunRequest(
            algorithm=plan.algorithm,
            settings=plan.clustering,
            detector=plan.detector,
            detection=plan.detection,
            assignment=plan.assignment,
            hold_truth=bool(run.log.get("truth_held")),
        )

    def make_plan(self, request: RunRequest) -> FusionPlan:
        """Return the plan of a run that was requested in the Fuse panel."""
        if request.detection is None or not isinstance(request.assignment, AssignmentSettings):
            raise TypeError("clicks are fused in two steps with an assignment between them")
        return FusionPlan(
            request.algorithm, request.detector, request.settings, request.detection, request.assignment
        )

    def show_draft(self, draft: Draft) -> None:
        """Draw the clusters found so far."""
        self.canvas_view.show_draft(draft.clustering)
        self.plots.show_trace(draft.clustering)

    def show_comparison(self, runs: Sequence[int]) -> None:
        """Compare runs with each other."""
        self.right_tabs.setCurrentWidget(self.run_comparison)
        self.run_comparison.compare(runs)

    def _on_no_fusion(self) -> None:
        self.canvas_view.show_draft(None)
        fusion = self.session.scene.fusion if self.session.shown else None
        self.plots.show_trace(None if fusion is None else fusion.clustering)
