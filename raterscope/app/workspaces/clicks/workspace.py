"""The clicks workspace: joins queue, canvas, evidence and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtWidgets import QMenu, QWidget

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.clicks.assignment import AssignmentSettings
from raterscope.algorithms.progress import Watch
from raterscope.app.comparison import Change
from raterscope.app.convergence import of_clicks
from raterscope.app.disputes import MATTERS
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.clicks.batch import Draft
from raterscope.app.kinds.clicks.running import Answer, Inputs, fuse_inputs, gather, keep
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import RunEntry
from raterscope.app.workspaces.blind_mode import BlindMode
from raterscope.app.workspaces.calibration import Calibration
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.active_learning import ActiveLearning
from raterscope.app.workspaces.clicks.agreement import Agreement
from raterscope.app.workspaces.clicks.annotators import Annotators, OverImages
from raterscope.app.workspaces.clicks.batch_review import BatchReview, Listed
from raterscope.app.workspaces.clicks.canvas_view import CanvasView, Viewing
from raterscope.app.workspaces.clicks.crops import Crops
from raterscope.app.workspaces.clicks.crowd_size import CrowdSizeMeasuring
from raterscope.app.workspaces.clicks.evidence import Evidence
from raterscope.app.workspaces.clicks.exclusion import Exclusion
from raterscope.app.workspaces.clicks.image_controls import Controls, Flagging
from raterscope.app.workspaces.clicks.measuring import Measuring
from raterscope.app.workspaces.clicks.notices import RunNotices
from raterscope.app.workspaces.clicks.parasitaemia import Parasitaemia
from raterscope.app.workspaces.clicks.plots import Plots
from raterscope.app.workspaces.clicks.reviewing import Reviewing
from raterscope.app.workspaces.clicks.run_comparison import RunComparison
from raterscope.app.workspaces.clicks.scene import ClicksSession, Scene, load_pixels, read_scene
from raterscope.app.workspaces.clicks.screen import ClicksScreen
from raterscope.app.workspaces.clicks.spot_menu import SpotMenu
from raterscope.app.workspaces.clicks.spots import Spot
from raterscope.app.workspaces.clicks.streaming import Streaming
from raterscope.app.workspaces.clicks.summaries import read_outlines, read_results, summarize
from raterscope.app.workspaces.history_lines import run_title
from raterscope.app.workspaces.item_navigation import ItemNavigation, SceneLoader
from raterscope.app.workspaces.review_order import next_unit
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.app.workspaces.runs import FusionWork, Runs
from raterscope.app.workspaces.session_restore import numbers_in
from raterscope.widgets.panels.fuse_panel import RunRequest
from raterscope.widgets.parts import without_checked

__all__ = ["COVERAGES", "ClicksWorkspace"]

COVERAGES = (0.5, 0.68, 0.95, 0.99)
"""Shares of a cluster's clicks that its ellipse may be drawn to hold."""


class ClicksWorkspace(ClicksScreen):
    """One screen: which image, which spot, what is said of it, what the expert decides."""

    def __init__(self, document: Document, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs

        self.session = ClicksSession(self)
        self.session.scene_changed.connect(self._begin)
        self.hiding = BlindMode(
            document, "clicks", self, "Hide names and votes until you decide",
            "Names, votes and the model's answers are hidden until you decide.",
            "Names, votes and the model's answers are shown.",
        )  # fmt: skip
        self.loader = SceneLoader(document, jobs, read_scene, load_pixels, self)
        self.reviewing = Reviewing(document, self.session, self._go_elsewhere, self)
        self.queueing = ReviewQueue(
            document, self.queue, "clicks", read_results, summarize, self, outline=read_outlines,
            nouns=("image", "spot"),
            tip=f"A decision matters where the answer is wrong with a probability of {MATTERS:g} or more: "
            f"the posterior lies between {MATTERS:g} and {1 - MATTERS:g}.",
        )  # fmt: skip
        self.runs = Runs(document, jobs, self, "clicks", _request_of)
        self.fusing = self.runs.fusing
        self.walk = ItemNavigation(document, self.queueing, self.loader, self.runs, "clicks", self.canvas)
        self.annotators = Annotators(document, self.table, self.reliability, self.session, self)
        self.comparing = RunComparison(document, jobs, self.session)
        self.crowd_sizes = CrowdSizeMeasuring(document, jobs, self, self.session)
        self.streaming = Streaming(document, jobs, self, self.session, self.queueing)
        self.asking = ActiveLearning(document, jobs, self, self.session, self.queueing)
        self.flagging = Flagging(document, self)
        self.controls = Controls(document, self)
        self.measuring = Measuring(document, self, self.session)
        self.parasites = Parasitaemia(document, jobs, self, self.session, self.queueing, self.measuring)
        self.many = BatchReview(document, jobs, self.grid, self.queueing, self.reviewing)
        self.menu = SpotMenu(self, self.reviewing, self.many, self.measuring, self._decide)
        self._to_find: Spot | SpotSubject | None = None
        """The spot to be looked at once its image is on screen."""
        self.crops = Crops(jobs, self)
        self.on_canvas = CanvasView(document, self.canvas, self.reviewing, self.loader, self.crops)
        self.viewing = Viewing(document, self.canvas, self.crops, self.reviewing, self.many)
        self.absence = RunNotices(document, jobs, self, self.session, self.queueing)
        self.explaining = Evidence(document, self.crops, self.evidence, self.reviewing, COVERAGES[-2])
        self.right_tabs.addTab(self.comparing, "Truth")
        self.trusting = Calibration(document, self.trust, self.queue, "clicks")
        self.agreeing = Agreement(document, jobs, self, self.session, self.queueing, self.annotators)
        self.excluding = Exclusion(document, jobs, self, self.reviewing)
        self.over_images = OverImages(document, jobs, self, self.queueing, self.annotators)
        self.plotting = Plots(
            document, jobs, self, self.queueing, self.reviewing, self.comparing, self.annotators
        )
        self._connect()
        self._make_actions()
        self._on_replaced()

    def _connect(self) -> None:
        self._document.replaced.connect(self._on_replaced)
        self._document.changed.connect(self._on_changed)
        self._document.decided.connect(self._on_decided)
        self.queue.item_chosen.connect(self._on_item_chosen)
        self.walk.arrived.connect(self._show_scene)
        self.evidence.run_chosen.connect(self.runs.choose)
        self.canvas.image_refused.connect(self._on_image_refused)
        self.loader.refused.connect(self.refused)
        self.reviewing.spots_changed.connect(self._on_spots)
        self.reviewing.exhausted.connect(self._on_exhausted)
        self.canvas.spot_clicked.connect(self.reviewing.select)
        self.canvas.place_chosen.connect(self._on_place_chosen)
        self.canvas.place_double_clicked.connect(self._on_place_chosen)
        self.canvas.spot_moved.connect(self.reviewing.move)
        for place in (self.evidence, self.grid):
            place.accept_requested.connect(partial(self._decide, "accept"))
            place.reject_requested.connect(partial(self._decide, "reject"))
            place.skip_requested.connect(partial(self._decide, "skip"))
        self.grid.left.connect(self._toggle_grid)
        self.many.looked_at.connect(self._on_looked_at)
        self.many.opened.connect(self._go_to_spot)
        self.excluding.opened.connect(self._go_to_spot)
        self.excluding.said.connect(self.said)
        self.controls.said.connect(self.said)
        self.controls.flag_requested.connect(self._on_flag)
        self.many.said.connect(self.said)
        self.evidence.add_requested.connect(partial(self._set_mode, "add"))
        self.evidence.move_requested.connect(partial(self._set_mode, "move"))
        self.evidence.undo_requested.connect(self._document.undo)
        self.evidence.voter_chosen.connect(self.annotators.choose)
        self.annotators.shown_changed.connect(self.canvas.set_annotators_shown)
        self.fuse_panel.run_requested.connect(self._on_run_requested)
        self.fuse_panel.compare_requested.connect(self._on_compare_requested)
        self.runs.ended.connect(self._on_no_fusion)
        self.fusing.partial.connect(self._on_partial)
        self.comparing.refused.connect(self.refused)
        self.crowd_sizes.refused.connect(self.refused)
        self.comparing.run_chosen.connect(self.runs.choose)
        self.streaming.moved.connect(self._show_again)
        self.measuring.scale_changed.connect(self._show_again)
        self.measuring.refused.connect(self.refused)
        for tabs in (self.middle_tabs, self.right_tabs):
            tabs.currentChanged.connect(self.annotators.refresh_stale)
        self.reviewing.said.connect(self.said)
        self.hiding.changed.connect(self.session.set_blind)
        self.session.scene_changed.connect(self._on_scene)
        self.session.cleared.connect(self._on_cleared)
        self.session.blind_changed.connect(self._on_names_hidden)

    def _make_actions(self) -> None:
        review = self.reviewing
        described = (
            ("Next disputed spot", "Tab", partial(review.next_disputed, 1)),
            ("Previous disputed spot", "Shift+Tab", partial(review.next_disputed, -1)),
            ("Accept", "A", partial(self._decide, "accept")),
            ("Reject", "R", partial(self._decide, "reject")),
            ("Skip", "S", partial(self._decide, "skip")),
            ("Add a spot", "N", partial(self._set_mode, "add")),
            ("Move the spot", "M", partial(self._set_mode, "move")),
            ("Many spots at once", "G", self._toggle_grid),
            ("Set the scale by a line", "L", partial(self.measuring.begin, "scale")),
            ("Measure a length", "D", partial(self.measuring.begin, "length")),
            ("Measure an area", "O", partial(self.measuring.begin, "area")),
            ("Exclude or down-weight the annotator", "X", self.excluding.exclude_chosen),
            ("Exclude the scores of the program, or include them", "Shift+X", self.excluding.toggle_program),
            ("Flag the image", "F", partial(self._on_flag, None)),
            ("Mark the image as a positive control, or not", "C", partial(self._on_control, "positive")),
            (
                "Mark the image as a negative control, or not",
                "Shift+C",
                partial(self._on_control, "negative"),
            ),
            self.hiding.action,
            ("Next image", "PgDown", partial(self.queueing.step, 1)),
            ("Previous image", "PgUp", partial(self.queueing.step, -1)),
            ("Leave the mode or the panel", "Esc", self._leave),
        )
        self.add_actions(described, (self.canvas, self.evidence, self.queue.view))
        ellipses = QMenu("Ellipses hold", self)
        for coverage in COVERAGES:
            action = ellipses.addAction(f"{coverage:.0%} of a spot's clicks")
            action.triggered.connect(without_checked(partial(self.set_coverage, coverage)))
        self.actions_made.append(ellipses.menuAction())
        self.add_digits(self.annotators.solo, "One annotator alone")

    # Where one can go

    @property
    def has_to_leave(self) -> bool:
        """Whether Esc has a mode or a panel to leave."""
        return self._in_a_mode or self.streaming.replay.on

    @property
    def _in_a_mode(self) -> bool:
        drawing = self.canvas.mode != "look" or self.measuring.busy
        return super().has_to_leave or drawing or self.grid_shown

    def current_item(self) -> int | None:
        """Give the study's number of the image on screen."""
        return self.queueing.current

    def _image_here(self) -> int | None:
        """Give the study's number of the image that is drawn."""
        return self.session.scene.image.id if self.session.shown else None

    def go_to(self, item: int) -> None:
        """Show an image."""
        self.walk.choose(item)

    def go_to_change(self, change: Change) -> None:
        """Look at a spot that another run sees otherwise."""
        if change.point is None:
            return
        self._look_at_place(change.item, SpotSubject(x=change.point[0], y=change.point[1]))

    def annotators_here(self) -> Sequence[str]:
        """Name the annotators who looked at the image."""
        return self.session.scene.clicks.annotators if self.session.shown else ()

    def choose_annotator(self, name: str) -> None:
        """Choose an annotator everywhere."""
        self.annotators.choose(self._document.numbers[name])

    def whereabouts(self) -> dict[str, Any]:
        """Tell spot, annotator and view too."""
        spot, annotator, view = self.reviewing.spot, self.table.current, self.canvas.viewport
        contents = self._document.contents
        return {
            **super().whereabouts(),
            "spot": None if spot is None else spot.number,
            "annotator": None if annotator is None or contents is None else contents.annotators[annotator],
            "view": None if self.canvas.fitted else [*view.centre, view.scale],
        }

    def return_to(self, told: Mapping[str, Any]) -> None:
        """Select spot and annotator, and look from where one did."""
        super().return_to(told)
        if told.get("annotator") in self.annotators_here():
            self.choose_annotator(told["annotator"])
        numbers = [spot.number for spot in self.reviewing.spots]
        if told.get("spot") in numbers:
            self.reviewing.go_to(numbers.index(told["spot"]))
        place = numbers_in(told.get("view"), 3)
        if place is not None and place[2] > 0:
            self.canvas.look_from(*place)

    # What is shown

    def set_coverage(self, coverage: float) -> None:
        """Draw ellipses that hold this share of a cluster's clicks."""
        self.canvas.set_coverage(coverage)
        self.explaining.set_coverage(coverage)

    def _on_replaced(self) -> None:
        self.runs.forget()
        self.comparing.forget()
        self.many.forget()
        self.show_grid(False)
        self.crops.set_image(None)
        self.session.clear()
        self.walk.reset()
        self._on_changed()

    def _on_changed(self) -> None:
        self._show_undoable()
        self.walk.refresh()
        self.tell_stale()

    def _show_undoable(self) -> None:
        undoable, contents = self.runs.show_history(), self._document.contents
        last = contents.review.undoable if contents else None
        self.evidence.set_undoable(undoable, contents.words(last) if contents and last else "")

    def _on_item_chosen(self, image: int) -> None:
        self.walk.choose(image)
        self.canvas.setFocus()

    def _show_again(self) -> None:
        """Show the image on screen as the stream has it now."""
        if self.streaming.as_read is not None:
            self._show_scene(self.streaming.as_read)

    def _show_scene(self, scene: Scene) -> None:
        if not self._document.numbers.keys() >= set(scene.clicks.annotators):
            return  # somebody came meanwhile: it is read again once the study's contents are
        self.session.show(self.measuring.scaled(self.streaming.dressed(scene)))

    def _begin(self, scene: Scene) -> None:
        """Make way for a scene, before its parts show theirs."""
        self.on_canvas.begin(scene)

    def _on_cleared(self) -> None:
        self.on_canvas.clear()
        self._to_find = None
        if self.grid_shown:
            self.many.refresh()
        self.say_converged("")
        self.trusting.show(None, ())

    def _on_scene(self, scene: Scene) -> None:
        if self._to_find is not None:
            self.reviewing.go_to(self.reviewing.find(self._to_find))
            self._to_find = None
        if self.grid_shown:
            self.many.refresh()
        self.on_canvas.show()
        if scene.missing:
            self.refused.emit(scene.missing)
        fusion, run = scene.fusion, scene.run
        self.say_converged(of_clicks(fusion, run.settings) if fusion and run else "")
        self._calibrate()

    def _calibrate(self) -> None:
        """Compare the run on screen with what is known of all its images."""
        as_read = self.streaming.as_read
        run = None if as_read is None else as_read.run
        title = "" if run is None else run_title(run)
        self.trusting.show(run, () if run is None else run.items, title)

    def _on_names_hidden(self) -> None:
        self.on_canvas.show_clicks()
        if self.grid_shown:
            self.many.list_anew()

    def _on_image_refused(self, sentence: str) -> None:
        self.refused.emit(sentence)
        self.loader.load_again()

    def _on_spots(self) -> None:
        session = self.session
        self.status_changed.emit(view.status(session.scene, self.reviewing.spots) if session.shown else "")

    def _go_elsewhere(self, step: int, skipped: bool, _finish: bool) -> bool:
        """Go on with the next image that has something to be decided; tells whether there is one."""
        here = self._image_here()
        found = next_unit(self.queueing.units(), (here, ""), step, skipped=skipped)
        if found is not None:
            self.walk.visit(found[0], partial(self.reviewing.enter, step, skipped))
        return found is not None

    def _on_exhausted(self) -> None:
        self.said.emit(self.queueing.nothing_left())

    # What the expert does

    def _on_decided(self, decision: Decision) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self._show_undoable()
        self.trusting.set_decided(len(contents.decisions))
        images = contents.items_of(decision, "clicks")
        self.queueing.decided(*images)
        back = contents.brought_back(decision)
        back_to = back if isinstance(back, SpotSubject) else None
        if not images:
            self.annotators.refresh()
        elif self.session.shown and self._image_here() not in images:
            if not self.grid_shown:
                self._to_find = back_to
                self.walk.show(images[0])
        else:
            self.explaining.remember(decision)
            self.reviewing.refresh()
            added = decision.subject if decision.verb == "add" else None
            to_find = added if isinstance(added, SpotSubject) else back_to
            if to_find is not None and not self.grid_shown:
                self.reviewing.go_to(self.reviewing.find(to_find))
        if self.grid_shown:
            self.many.refresh()
        self.tell_stale()

    def _on_place_chosen(self, x: float, y: float) -> None:
        self.canvas.set_mode("look")
        self.reviewing.add(x, y)

    def _decide(self, verb: str) -> None:
        if self.grid_shown:
            self.many.decide(verb)
        else:
            self.reviewing.decide(verb)

    def _set_mode(self, mode: str) -> None:
        self.show_grid(False)
        self.canvas.set_mode(mode)

    def _toggle_grid(self) -> None:
        self.show_grid(not self.grid_shown)
        if self.grid_shown:
            self.many.list_anew()
            self.grid.setFocus()

    def _on_looked_at(self, one: Listed) -> None:
        if self._image_here() == one.image:
            self.reviewing.select(self.reviewing.find(one.spot))
        else:
            self.reviewing.select(None)
            known = self.queueing.results.get(one.image)
            if known is not None:
                self.explaining.show_elsewhere(one, known, self.many.shelf)

    def _go_to_spot(self, image: int, spot: Spot) -> None:
        self._look_at_place(image, spot)

    def _look_at_place(self, image: int, spot: Spot | SpotSubject) -> None:
        """Show a spot on its image."""
        self.show_grid(False)
        self.canvas.setFocus()
        if self._image_here() == image:
            self.reviewing.select(self.reviewing.find(spot))
        else:
            self._to_find = spot
            self.walk.show(image)

    def _on_flag(self, image: int | None) -> None:
        contents, number = self._document.contents, self.queueing.current if image is None else image
        if contents is not None and number is not None:
            self.flagging.toggle(contents.image(number))

    def _on_control(self, verb: str) -> None:
        self.controls.toggle(verb, self.queueing.current)

    def _leave(self) -> None:
        if not self._in_a_mode:
            self.streaming.leave_replay()
        self.measuring.leave()
        self.canvas.set_mode("look")
        if self.grid_shown and not self.fuse_panel.isVisible():
            self._toggle_grid()
        self.close_fuse_panel()

    # Fusing

    def _on_run_requested(self, wanted: RunRequest) -> None:
        if wanted.detection is None or not isinstance(wanted.assignment, AssignmentSettings):
            raise TypeError("clicks are fused in two steps with an assignment between them")
        plan = FusionPlan(
            wanted.algorithm, wanted.detector, wanted.settings, wanted.detection, wanted.assignment
        )
        reading = partial(gather, hold_truth=wanted.hold_truth, plan=plan)
        work = FusionWork("clicks", "image", reading, partial(_fuse, plan), keep)
        self.runs.start(wanted, work, self.queueing.current)

    def _on_partial(self, image: int, draft: Draft) -> None:
        if self._image_here() == image:
            self.on_canvas.show_draft(draft.clustering)
            self.plotting.show_trace(draft.clustering)

    def _on_compare_requested(self, runs: Sequence[int]) -> None:
        self.close_fuse_panel()
        self.right_tabs.setCurrentWidget(self.comparing)
        self.comparing.compare(runs)

    def _on_no_fusion(self) -> None:
        self.on_canvas.show_draft(None)


def _fuse(plan: FusionPlan, inputs: Inputs, watch: Watch) -> Answer:
    return fuse_inputs(inputs, plan, watch=watch)


def _request_of(run: RunEntry) -> RunRequest:
    plan = FusionPlan.from_dict(run.settings)
    return RunRequest(
        algorithm=plan.algorithm,
        settings=plan.clustering,
        detector=plan.detector,
        detection=plan.detection,
        assignment=plan.assignment,
        hold_truth=bool(run.log.get("truth_held")),
    )
