"""The masks workspace: connects cases, slice views, raters and disputed regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from raterscope.algorithms.masks.data import MaskTrace
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.app.assessment import MATTERS, Change
from raterscope.app.contents import Contents
from raterscope.app.kinds.masks.runs import Draft, explain_not_converged
from raterscope.app.review import CommentSubject, Decision, RegionSubject, SampledItem
from raterscope.app.study.runs import run_title
from raterscope.app.workspaces.comments import Comments, Renaming
from raterscope.app.workspaces.layout import ActionEntry
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.mask_editing import MaskEditing, StructureCoding
from raterscope.app.workspaces.masks.method_comparison import MethodComparer
from raterscope.app.workspaces.masks.raters import Alternatives, Exclusion, Raters
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.run_comparison import RunComparison
from raterscope.app.workspaces.masks.scene import (
    DisputedRegion,
    MasksSession,
    Piece,
    Scene,
    load_pixels,
    read_scene,
    read_summaries,
    summarize,
)
from raterscope.app.workspaces.masks.screen import BOUND, MasksCore, MasksScreen
from raterscope.app.workspaces.masks.second_series import SeriesRegistration
from raterscope.app.workspaces.masks.side_by_side import SideBySide
from raterscope.app.workspaces.masks.volume_views import SliceView, SurfaceModels
from raterscope.app.workspaces.navigation import ItemNavigation, PixelLoader
from raterscope.app.workspaces.review_order import next_unit
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.app.workspaces.run_history import Calibration
from raterscope.app.workspaces.screen import BlindTexts, three_numbers
from raterscope.widgets.panels.region_panel import NO_MASKS, NONE_CHOSEN, NOT_DISPUTED, NOT_FUSED, ONE_RATER
from raterscope.widgets.volume.slice_view import ZOOM_STEP

BLIND = BlindTexts(
    "Blind mode: hide raters' masks until you decide",
    "The raters' masks and the model's answers are hidden until you decide.",
    "The raters' masks and the model's answers are shown.",
)


class MasksWorkspace(MasksScreen):
    """Review of masks: cases, their disputed regions, raters and consensus, and the expert's decisions."""

    PLAN = MaskPlan

    def build(self) -> Iterator[None]:
        """Make the widgets, then connect them with the study."""
        yield from super().build()
        document, jobs = self._document, self._jobs
        self.session = self._session = MasksSession(self)
        self.session.scene_changed.connect(self._begin)
        self.core = core = MasksCore(self, document, jobs, self.session, "masks", BLIND)
        self.loader = PixelLoader(document, jobs, load_pixels, self)
        self.reviewing = RegionReview(document, jobs, self.session, core.sample, self._go_elsewhere, self)
        self.review_queue = ReviewQueue(
            document,
            self.queue,
            "masks",
            read_summaries,
            summarize,
            self,
            outline=read_summaries,
            nouns=("case", "region"),
            tip="A decision matters where the consensus of a region is wrong with a probability of "
            f"{MATTERS:g} or more: the mean over its voxels, by the map of the true outline.",
        )
        self.session.blind_changed.connect(self.review_queue.set_covered)
        self.navigation = ItemNavigation(
            document, jobs, core.runs, "a case", read_scene, self.review_queue, self.loader, self.canvas
        )
        self.run_comparison = RunComparison(core)
        self.tabs.addTab(self.run_comparison, "Runs")
        self.tabs.addTab(self.methods, "Methods")
        self.tabs.addTab(self.trust, "Trust")
        self.method_comparer = MethodComparer(core)
        self.calibration = Calibration(document, self.trust, self.queue, "masks")
        self.raters = Raters(core)
        self.exclusion = Exclusion(core)
        self.structure_coding = StructureCoding(core)
        self.editing = MaskEditing(core, self.reviewing)
        self.alternative_view = Alternatives(self.alternatives, self)
        self.slice_view = SliceView(core, self.reviewing, self.raters, self.loader)
        self.registration = SeriesRegistration(core)
        self.side_by_side = SideBySide(core, self.reviewing, self.raters)
        self.surface_models = SurfaceModels(core, self.reviewing, self.raters)
        self.renaming = Renaming(core, lambda: self.session.part if self.session.shown else "")
        self.slice_view.other_outlines = self.method_comparer.outlines
        self._next_structure: tuple[int, str] | None = None
        """Case being read, and the structure to show first."""
        self._connect()
        core.connect_screen(self.navigation)
        yield
        self._make_actions()

    def _connect(self) -> None:
        self.loader.refused.connect(self.refused)
        review = self.reviewing
        review.regions_changed.connect(self._on_regions)
        review.selected.connect(self._on_selected)
        review.exhausted.connect(self._on_exhausted)
        self.core.sample.chosen.connect(self._go_to_sampled)
        self.comments = Comments(self.core, self.region_panel, self._to_comment)
        review.selected.connect(self.comments.refresh)
        review.evidence_changed.connect(self._show_region)
        review.message.connect(self.message)
        self.exclusion.message.connect(self.message)
        self.session.view_changed.connect(self._on_view)
        self.alternative_view.shown.connect(self.slice_view.show_outlines)
        self.maps.structure_chosen.connect(self._on_structure)
        self.volume.painted.connect(review.paint)
        self.volume.box_clicked.connect(self._on_box)
        panel = self.region_panel
        panel.rater_order = self.annotators_on_screen
        panel.accept_requested.connect(review.accept)
        panel.take_requested.connect(review.take)
        panel.skip_requested.connect(review.skip)
        panel.interpolate_requested.connect(review.interpolate)
        panel.brush_requested.connect(partial(self._toggle_tool, "brush"))
        panel.erase_requested.connect(partial(self._toggle_tool, "eraser"))
        panel.undo_requested.connect(self._document.undo)
        self.method_comparer.refused.connect(self.refused)
        self.method_comparer.message.connect(self.message)
        self.method_comparer.outlines_changed.connect(self.slice_view.show_consensus)
        self.renaming.renamed.connect(self._on_renamed)
        self.structure_coding.refused.connect(self.message)
        self.volume.measured.connect(self.message)
        self.registration.stored.connect(self.slice_view.show_series)
        self.runs.ended.connect(self.slice_view.show_consensus)
        self.runs.ended.connect(self._show_run_trace)

    def _make_actions(self) -> None:
        review = self.reviewing
        described: tuple[ActionEntry, ...] = (
            ("Next disputed region", "Tab", partial(review.next_disputed, 1)),
            ("Previous disputed region", "Shift+Tab", partial(review.next_disputed, -1)),
            ("Accept the consensus", "A", review.accept),
            ("Take a rater's mask", "T", self.region_panel.open_take),
            ("Skip", "S", review.skip),
            ("Exclude the rater", "X", self.exclusion.exclude_chosen),
            ("Brush", "B", partial(self._toggle_tool, "brush")),
            ("Eraser", "E", partial(self._toggle_tool, "eraser")),
            ("Interpolate between painted slices", "I", review.interpolate),
            ("Brush through neighbouring slices", "Shift+B", self.volume.toggle_solid_brush),
            ("Brush only within the window", "Shift+W", self.volume.toggle_windowed_brush),
            ("Fill holes", "G", self.editing.fill_holes),
            ("Smooth the outline", "O", self.editing.smooth),
            ("Add a margin…", "Shift+M", self.editing.ask_margin),
            ("Combine with another mask…", "U", self.editing.ask_combination),
            ("Copy to the next slice", "N", partial(self.editing.copy_slice, 1)),
            ("Copy to the previous slice", "Shift+N", partial(self.editing.copy_slice, -1)),
            ("Next map", "D", self.maps.next_map),
            ("Register second series…", "", self.registration.start),
            ("Checkerboard of case and second series", "", self.slice_view.toggle_checkerboard),
            ("Window width and level", "W", self._type_window),
            ("Show or hide the crosshair", "C", self.volume.toggle_cross_hair),
            ("Next layout of the views", "L", self.volume.next_layout),
            ("Maximum intensity projection", "M", self.volume.next_slab),
            ("3-D view", "V", self.surface_models.toggle),
            ("Compare two runs, raters or maps, side by side", "Shift+V", self.side_by_side.toggle),
            ("Play the slices", "P", self.volume.toggle_cine),
            ("Thicker outlines", ".", partial(self.volume.step_line_width, 1)),
            ("Thinner outlines", ",", partial(self.volume.step_line_width, -1)),
            ("Zoom in", "", partial(self.slice_view.zoom, ZOOM_STEP)),
            ("Zoom out", "", partial(self.slice_view.zoom, 1 / ZOOM_STEP)),
            ("Show whole slices", "", self.slice_view.fit),
            ("Measure lengths and angles", "R", partial(self._toggle_tool, "ruler")),
            ("Measure the values in an ellipse", "Shift+R", partial(self._toggle_tool, "roi")),
            ("Code and colour of the structure", "K", self._describe),
            ("Rename or merge the structure…", Renaming.KEY, self.renaming.start),
            *self.comments.actions,
            *self.core.navigation_actions("case"),
            ("Leave the tool or the panel", "Esc", self._leave),
        )
        self.add_actions(described, (self.volume, self.region_panel, self.queue.view))
        self.add_digits(self.slice_view.solo, "Show one rater only")

    # Display

    @property
    def has_to_leave(self) -> bool:
        """Whether there is a tool or a panel for Esc to leave."""
        busy = self.volume.tool != "look" or self.volume.cine or self.side_by_side.on
        return super().has_to_leave or busy

    def show_change(self, change: Change) -> None:
        """Select a region whose consensus differs in another run, or a bookmark."""
        self._show_structure(change.name)
        regions = [(region.dispute.origin, region.dispute.shape) for region in self.reviewing.regions]
        if change.box is None or change.box in regions:
            self.reviewing.select(None if change.box is None else regions.index(change.box))
        else:
            self.volume.look_at(*change.box)

    def annotators_on_screen(self) -> Sequence[str]:
        """Return the raters of the case."""
        return [row.name for row in self.table.model.rows]

    def choose_annotator(self, name: str) -> None:
        """Choose a rater everywhere."""
        self.raters.choose(name)

    def view_state(self) -> dict[str, Any]:
        """Return structure, region, rater, slices and layout too."""
        region = self.reviewing.region
        return {
            **super().view_state(),
            "structure": self.session.part,
            "region": None if region is None else region.number,
            "rater": self.raters.current,
            "crosshair": list(self.volume.crosshair),
            "layout": self.volume.layout_name,
        }

    def restore_view(self, state: Mapping[str, Any]) -> None:
        """Select structure, region and rater, and show the same slices."""
        super().restore_view(state)
        if isinstance(state.get("structure"), str):
            self._show_structure(state["structure"])
        if state.get("layout") in ("three", *self.volume.planes):
            self.volume.set_layout(state["layout"])
        numbers = [region.number for region in self.reviewing.regions]
        if state.get("region") in numbers:
            self.reviewing.go_to(numbers.index(state["region"]))
        if state.get("rater") in self.annotators_on_screen():
            self.choose_annotator(state["rater"])
        crosshair = three_numbers(state.get("crosshair"))
        if crosshair is not None:
            self.volume.go_to((int(crosshair[0]), int(crosshair[1]), int(crosshair[2])))

    def forget_study(self) -> None:
        """Drop all data of the previous study."""
        self.run_comparison.forget()
        self.table.show_all()

    def show_undoable(self, text: str) -> None:
        """Offer to undo the last decision."""
        self.region_panel.undo.setEnabled(bool(text))

    def show_scene(self, scene: Scene | None, _analysis: None = None) -> None:
        """Show a case with the requested structure, the previous one, or the first."""
        if scene is None:
            self.session.clear()
            return
        structure = self.session.part
        if self._next_structure is not None and self._next_structure[0] == scene.image.id:
            structure = self._next_structure[1]
        self._next_structure = None
        if structure not in scene.structures:
            structure = scene.structures[0] if scene.structures else ""
        self.session.show(scene, part=structure)

    def _is_another(self, scene: Scene) -> bool:
        """Return whether the case on screen has changed, while observers are called."""
        return self.session.previous is None or self.session.previous.image.id != scene.image.id

    def _begin(self, scene: Scene) -> None:
        """Prepare the screen before its parts show the scene."""
        if self._is_another(scene):
            self.slice_view.begin(scene)
        run = scene.run
        self.calibration.show(run, () if run is None else run.items, "" if run is None else run_title(run))
        self.maps.set_structures(scene.structures, self.session.part)
        self.review_queue.select_part(self.session.part)

    def on_cleared(self) -> None:
        """Clear the screen, because there is no case."""
        self._next_structure = None
        self.volume.clear()
        self.calibration.show(None, ())
        self.maps.set_structures((), "")
        self.review_queue.select_part("")
        self.bound.set_nothing(BOUND)
        self._show_trace(MaskTrace())
        self.alternative_view.show(None, {})
        self.region_panel.set_tools_enabled(False, False)
        self.core.show_notices("")

    def _on_view(self, scene: Scene) -> None:
        structure, covered = self.session.part, self.session.covered
        fusion = scene.fusion(structure)
        at_once = fusion is not None and not len(fusion.traces[0].objective)
        self.bound.set_nothing(view.no_iterations(fusion) if fusion and at_once else BOUND)
        self._show_run_trace()
        run = scene.run
        self.show_not_converged(explain_not_converged(fusion, run.settings) if fusion and run else "")
        self.alternative_view.show(None if covered else fusion, self._document.numbers)
        self.region_panel.set_tools_enabled(True, True)

    def on_scene(self, scene: Scene) -> None:
        """Show the notes of another case or run, and go to its structure."""
        if scene.problem is not None:
            self.refused.emit(scene.problem.sentence)
        fusion = scene.fusion(self.session.part)
        self.core.show_notices(" ".join(fusion.notices) if fusion and not self.session.covered else "")
        if self._is_another(scene):
            self.slice_view.go_to_structure()

    def _show_run_trace(self) -> None:
        fusion = self.session.scene.fusion(self.session.part) if self.session.shown else None
        self._show_trace(fusion.traces[0] if fusion else MaskTrace())

    def _show_trace(self, trace: MaskTrace) -> None:
        self.bound.set_trace(trace.objective, converged=trace.converged)

    def _on_structure(self, name: str) -> None:
        self.review_queue.select_part(name)
        self.session.set_part(name)
        self.slice_view.go_to_structure()

    def _on_regions(self) -> None:
        session = self.session
        regions = None if session.covered else self.reviewing.regions
        self.status_changed.emit(view.status(session.scene, session.part, regions) if session.shown else "")

    def _on_selected(self, region: DisputedRegion | None) -> None:
        self._show_region(region)
        fusion = None if region is None else self.session.scene.fusion(self.session.part)
        by_rater = region is not None and region.dispute.leader >= 0
        if by_rater and region is not None and fusion is not None and not self.session.covered:
            leader = fusion.annotators[region.dispute.leader]
            if leader != self.raters.current:  # otherwise all outlines and figures would be made again
                self.raters.choose(leader)

    def _show_region(self, region: DisputedRegion | None) -> None:
        if not self.session.shown:
            self.region_panel.show_region(None)
            return
        scene = self.session.scene
        if self.session.covered:
            evidence = None if region is None else view.covered(region, scene)
            self.region_panel.show_covered(evidence)
        elif region is None:
            self.region_panel.show_region(None, self._why_none(scene))
        else:
            self.region_panel.show_region(view.evidence(region, scene, self._document.numbers))
            self.region_panel.votes.choose(self.raters.current)

    def _why_none(self, scene: Scene) -> str:
        """Return why no region is shown."""
        fusion = scene.fusion(self.session.part)
        if fusion is None:
            return NOT_FUSED if scene.masks else NO_MASKS
        if self.reviewing.regions:
            return NONE_CHOSEN
        return ONE_RATER if len(fusion.annotators) == 1 else NOT_DISPUTED

    def _on_box(self, number: int) -> None:
        self.reviewing.select(number - 1)

    # Decisions

    def on_decided(self, decision: Decision, contents: Contents) -> None:
        """Show a decision that was stored; after undo, go to its case and structure."""
        self.calibration.set_decided(len(contents.decisions))
        image, target = contents.item_of(decision, "masks"), contents.target(decision)
        subject = None if target is None or target is decision else target.subject
        back = subject if isinstance(subject, RegionSubject) and subject.number is not None else None
        self.review_queue.decided(*contents.items_of(decision, "masks"))
        if image is None:
            self.raters.refresh()
        elif image != self.core.item:
            if back is not None and target is not None:
                self._next_structure = image, back.structure
                self.navigation.visit(image, partial(self.reviewing.return_to, target))
            else:
                self.navigation.show(image)
        else:
            if back is not None:
                self._show_structure(back.structure)
            self.reviewing.decided(decision)

    def _go_elsewhere(self, step: int, skipped: bool, finish: bool) -> bool:
        """Continue with the next structure or case that has disputed regions; return whether there is one."""
        current, units = (self.core.item, self.session.part), self.review_queue.units()
        of_case = [unit for unit in units if unit[0][0] == current[0]]
        following = next_unit(of_case, current, step, skipped=skipped) if finish else None
        following = following or next_unit(units, current, step, skipped=skipped)
        if following is None:
            return False
        image, structure = following
        if image == self.core.item:
            self._show_structure(structure)
            self.reviewing.enter(step, skipped)
        else:
            self._next_structure = following
            self.navigation.visit(image, partial(self.reviewing.enter, step, skipped))
        return True

    def _to_comment(self) -> CommentSubject:
        region = self.reviewing.region
        return CommentSubject(of="masks", name=self.session.part) if region is None else region.subject

    def _go_to_sampled(self, sampled: SampledItem, by_hand: bool) -> None:
        """Go to a region of the acceptance sample."""
        if sampled.item == self.core.item:
            self._select_sampled(sampled, by_hand)
        else:
            self._next_structure = sampled.item, sampled.name
            self.navigation.visit(sampled.item, partial(self._select_sampled, sampled, by_hand))

    def _select_sampled(self, sampled: SampledItem, by_hand: bool) -> None:
        self._show_structure(sampled.name)
        run = self.session.scene.run
        if run is None or run.id != sampled.run or sampled.number is None:
            self.message.emit(f"{sampled.in_words()} is of run {sampled.run}: show that run to re-read it.")
        else:
            (self.reviewing.select if by_hand else self.reviewing.go_to)(sampled.number - 1)

    def _show_structure(self, structure: str) -> None:
        """Show a structure of the case on screen, unless it is shown."""
        structures = self.session.scene.structures
        if structure in structures and structure != self.session.part:
            self.maps.set_structures(structures, structure)
            self._on_structure(structure)

    def _on_exhausted(self) -> None:
        self.message.emit(self.core.sample.nothing_left() or self.review_queue.nothing_left())

    def _toggle_tool(self, tool: str) -> None:
        chosen = "look" if self.volume.tool == tool else tool
        self.volume.set_tool(chosen)  # type: ignore[arg-type]
        self.region_panel.set_tool(None if chosen == "look" else chosen)
        self.slice_view.show_edited()
        if chosen != "look":
            self.volume.setFocus()

    def _type_window(self) -> None:
        if not self.volume.windows.possible:
            self.message.emit("There is no window to set: no grey values are loaded.")
        self.volume.type_window()

    def _describe(self) -> None:
        self.structure_coding.start(self.core.item, self.session.part)

    def _on_renamed(self, name: str) -> None:
        if self.core.item is not None:
            self._next_structure = self.core.item, name
        self.navigation.read_all_again()

    def _leave(self) -> None:
        self.volume.set_cine(False)
        self.side_by_side.leave()
        self.volume.set_tool("look")
        self.region_panel.set_tool(None)
        self.slice_view.show_edited()
        self.close_fuse_panel()

    # Fusing

    def show_draft(self, draft: Draft) -> None:
        """Draw the consensus so far, and plot its convergence."""
        fusion = draft.fusion
        if fusion.structures[0] == self.session.part:
            self.slice_view.show_outlines(Piece(fusion.origin, fusion.mask[0]))
            self._show_trace(fusion.traces[0])

    def show_comparison(self, runs: Sequence[int]) -> None:
        """Compare runs with each other."""
        self.tabs.setCurrentWidget(self.run_comparison)
        self.run_comparison.compare(runs)
