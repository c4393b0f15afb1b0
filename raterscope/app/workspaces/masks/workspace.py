"""The masks workspace: cases, three views, raters and disputed regions of one study, joined."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.masks.data import MaskTrace
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.masks.running import Answer, Draft, Inputs, fuse_cases, gather, keep
from raterscope.app.review import Decision
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces.fusing import FusionWork
from raterscope.app.workspaces.loading import SceneLoader
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.alternatives import Alternatives
from raterscope.app.workspaces.masks.comparing import Comparing
from raterscope.app.workspaces.masks.maps import heat_map
from raterscope.app.workspaces.masks.raters import Raters
from raterscope.app.workspaces.masks.regions import DisputedRegion, read_summaries, summarize
from raterscope.app.workspaces.masks.reviewing import Reviewing
from raterscope.app.workspaces.masks.scene import LoadedVolume, Piece, Scene, load_pixels, read_scene
from raterscope.app.workspaces.masks.screen import MasksScreen
from raterscope.app.workspaces.queueing import Queueing
from raterscope.app.workspaces.runs import Runs
from raterscope.app.workspaces.walk import Walk
from raterscope.widgets.panels.fuse_panel import RunRequest
from raterscope.widgets.volume.layers import HeatMap

__all__ = ["MasksWorkspace"]


class MasksWorkspace(MasksScreen):
    """One screen: which case, which region, who drew what, what the expert decides."""

    def __init__(self, document: Document, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self.loader = SceneLoader(document, jobs, read_scene, load_pixels, self)
        self.reviewing = Reviewing(document, jobs, self)
        self.queueing = Queueing(
            document, self.queue, "masks", read_summaries, summarize, self, nouns=("case", "region")
        )
        self.runs = Runs(document, jobs, self, "masks")
        self.fusing = self.runs.fusing
        self.walk = Walk(document, self.queueing, self.loader, self.runs, "masks")
        self.comparing = Comparing(document, jobs)
        self.tabs.addTab(self.comparing, "Runs")
        self.raters = Raters(document, self)
        self.consensuses = Alternatives(self.alternatives, self)
        self._structure = ""
        self._solo: str | None = None
        self._notices = ""
        self._maps_asked = 0
        self._connect()
        self._make_actions()
        self._on_replaced()

    def _connect(self) -> None:
        self._document.replaced.connect(self._on_replaced)
        self._document.changed.connect(self._on_changed)
        self._document.decided.connect(self._on_decided)
        self.queue.item_chosen.connect(self._on_item_chosen)
        self.walk.arrived.connect(self._show_scene)
        self.walk.disputed_wanted.connect(self.reviewing.next_disputed)
        self.loader.pixels.connect(self._on_pixels)
        self.loader.refused.connect(self.refused)
        review = self.reviewing
        review.regions_changed.connect(self._on_regions)
        review.selected.connect(self._on_selected)
        review.consensus_changed.connect(self._on_consensus)
        review.exhausted.connect(self._on_exhausted)
        review.said.connect(self.said)
        self.raters.chosen.connect(self._on_rater)
        self.raters.pair_chosen.connect(self._on_pair)
        self.consensuses.shown.connect(self._on_alternative)
        self.maps.structure_chosen.connect(self._on_structure)
        self.maps.map_chosen.connect(self._show_map)
        self.maps.band_chosen.connect(self._show_band)
        self.maps.opacity_chosen.connect(self.volume.set_opacity)
        self.volume.painted.connect(review.paint)
        self.volume.box_clicked.connect(self._on_box)
        self.volume.crosshair_moved.connect(self._show_weight)
        panel = self.region_panel
        panel.accept_requested.connect(review.accept)
        panel.take_requested.connect(review.take)
        panel.skip_requested.connect(review.skip)
        panel.interpolate_requested.connect(review.interpolate)
        panel.brush_requested.connect(partial(self._toggle_tool, "brush"))
        panel.erase_requested.connect(partial(self._toggle_tool, "eraser"))
        panel.undo_requested.connect(self._document.undo)
        self.fuse_panel.run_requested.connect(self._on_run_requested)
        self.fuse_panel.compare_requested.connect(self._on_compare_requested)
        self.comparing.refused.connect(self.refused)
        self.comparing.run_chosen.connect(self.runs.choose)
        self.runs.ended.connect(self._on_no_fusion)
        self.fusing.partial.connect(self._on_partial)

    def _make_actions(self) -> None:
        review = self.reviewing
        described = (
            ("Next disputed region", "Tab", partial(review.next_disputed, 1)),
            ("Previous disputed region", "Shift+Tab", partial(review.next_disputed, -1)),
            ("Accept the consensus", "A", review.accept),
            ("Take a rater's version", "T", self.region_panel.open_take),
            ("Skip", "S", review.skip),
            ("Brush", "B", partial(self._toggle_tool, "brush")),
            ("Eraser", "E", partial(self._toggle_tool, "eraser")),
            ("Interpolate between painted slices", "I", review.interpolate),
            ("Undo", "U", self._document.undo),
            ("Next map", "D", self.maps.next_map),
            ("Next case", "PgDown", partial(self.queueing.step, 1)),
            ("Previous case", "PgUp", partial(self.queueing.step, -1)),
            ("Leave the tool or the panel", "Esc", self._leave),
        )
        self.add_actions(described, (self.volume, self.region_panel, self.queue.view))
        self.add_digits(self.solo, "One rater alone")

    # What is shown

    def current_item(self) -> int | None:
        """Give the study's number of the case on screen."""
        return None if self.reviewing.scene is None else self.reviewing.scene.image.id

    @property
    def has_to_leave(self) -> bool:
        """Whether Esc has a tool or a panel to leave."""
        return super().has_to_leave or self.volume.tool != "look"

    def go_to(self, item: int) -> None:
        """Show a case."""
        self.walk.choose(item)

    def annotators_here(self) -> Sequence[str]:
        """Name the raters of the case."""
        return [row.name for row in self.table.model.rows]

    def choose_annotator(self, name: str) -> None:
        """Choose a rater everywhere."""
        self.raters.choose(name)

    def solo(self, number: int) -> None:
        """Show one rater's outline beside the consensus, counted among those of the case; again shows all."""
        rows = self.table.model.rows
        if number >= len(rows):
            return
        name = rows[number].name
        self._solo = None if self._solo == name else name
        self.volume.set_solo(self._solo, beside=(f"\n{view.CONSENSUS}",))
        if self._solo is not None:
            self.raters.choose(self._solo)

    def _on_replaced(self) -> None:
        self.runs.forget()
        self.comparing.forget()
        self._structure = ""
        self._show_scene(None)
        self.walk.reset()
        self._on_changed()

    def _on_changed(self) -> None:
        self.region_panel.set_undoable(self.runs.show_history())
        self.walk.refresh()
        self.tell_stale()

    def _on_item_chosen(self, image: int) -> None:
        self.walk.choose(image)
        self.volume.setFocus()

    def _show_scene(self, scene: Scene | None) -> None:
        before = self.reviewing.scene
        if scene is not None and (before is None or scene.image.id != before.image.id):
            self.volume.set_volume(None, scene.image.lattice, modality=scene.image.modality)
            self._solo = None
        structures = () if scene is None else scene.structures
        if self._structure not in structures:
            self._structure = structures[0] if structures else ""
        self.maps.set_structures(structures, self._structure)
        self.reviewing.show(scene, self._structure)
        self._show_structure()
        if scene is not None and scene.missing:
            self.refused.emit(scene.missing)
        fusion = None if scene is None else scene.fusion(self._structure)
        notices = " ".join(fusion.notices) if fusion else ""
        if notices != self._notices:
            self._notices = notices
            self.said.emit(notices)
        if scene is not None and (before is None or scene.image.id != before.image.id):
            self._look_at_structure()

    def _show_structure(self) -> None:
        scene = self.reviewing.scene
        self.raters.show(scene, self._structure)
        self.comparing.show_scene(scene, self._structure)
        fusion = None if scene is None else scene.fusion(self._structure)
        report = None if scene is None else scene.report(self._structure)
        self.volume.set_dispute(None if report is None else report.by_slice)
        self._show_trace(fusion.traces[0] if fusion else MaskTrace())
        numbers = self._document.numbers
        self.consensuses.show(fusion, numbers)
        self._show_map()
        self._show_band()
        self._show_weight()
        self.region_panel.set_tools_enabled(scene is not None, scene is not None)

    def _look_at_structure(self) -> None:
        """Begin where the structure is, the most disputed slice under the cross-hair."""
        scene, consensus = self.reviewing.scene, self.reviewing.consensus
        if scene is None:
            return
        records = [one for one in scene.masks.get(self._structure, {}).values() if one.values.size]
        if consensus is not None:
            self.volume.go_to(_middle(consensus))
        elif records:
            self.volume.go_to(_middle(records[0]))

    def _show_trace(self, trace: MaskTrace) -> None:
        self.bound.set_trace(trace.objective, converged=trace.converged)

    def _on_pixels(self, image: int, loaded: LoadedVolume) -> None:
        if image == self.current_item():
            volume = loaded.volume
            self.volume.set_pixels(volume.values, modality=volume.modality, window=volume.window)

    def _on_structure(self, name: str) -> None:
        self._structure = name
        self.reviewing.show(self.reviewing.scene, name)
        self._show_structure()
        self._look_at_structure()

    def _on_consensus(self) -> None:
        self._show_outlines(self.reviewing.consensus)
        self._show_mended()

    def _show_mended(self) -> None:
        """Fill the consensus while a tool changes it."""
        consensus = self.reviewing.consensus
        if consensus is None or self.volume.tool == "look":
            self.volume.set_edit(None)
        else:
            self.volume.set_edit(consensus.values, consensus.origin)

    def _show_outlines(self, consensus: Piece | None) -> None:
        scene = self.reviewing.scene
        numbers = self._document.numbers
        found = []
        if scene is not None:
            found = view.outlines(scene, self._structure, consensus, numbers, self.raters.current)
        self.volume.set_outlines(found)

    def _on_regions(self) -> None:
        self._show_boxes()
        words = view.status(self.reviewing.scene, self._structure, self.reviewing.regions)
        self.status_changed.emit(words)

    def _show_boxes(self) -> None:
        scene = self.reviewing.scene
        fusion = None if scene is None else scene.fusion(self._structure)
        names = () if fusion is None else fusion.annotators
        region = self.reviewing.region
        boxes = view.region_boxes(self.reviewing.regions, region, names)
        self.volume.set_boxes(boxes, None if region is None else region.number)

    def _on_selected(self, region: DisputedRegion | None) -> None:
        scene = self.reviewing.scene
        self._show_boxes()
        if region is None or scene is None:
            self.region_panel.show_region(None)
            return
        numbers = self._document.numbers
        self.region_panel.show_region(view.evidence(region, scene, numbers))
        self.volume.look_at(region.dispute.origin, region.dispute.shape)
        fusion = scene.fusion(self._structure)
        if fusion is not None:
            self.raters.choose(fusion.annotators[region.dispute.leader])

    def _on_box(self, number: int) -> None:
        self.reviewing.select(number - 1)

    def _on_rater(self) -> None:
        self._on_consensus()
        if self.maps.chosen == "weight":
            self._show_map()
        self._show_weight()

    def _on_pair(self, _first: str, _second: str) -> None:
        self.maps.choose_map("difference")
        self._show_map()

    def _on_alternative(self, piece: Piece | None) -> None:
        self._show_outlines(piece if piece is not None else self.reviewing.consensus)

    def _show_map(self) -> None:
        scene = self.reviewing.scene
        self._maps_asked += 1
        if scene is None or self.maps.chosen == "none":
            self.volume.set_heat_map(None)
            return
        asked = (scene, self._structure, self.maps.chosen, self.raters.current, self.raters.pair)
        job = self._jobs.start("Making a map", partial(_make_map, *asked), quiet=True)
        job.finished.connect(partial(self._on_map, self._maps_asked))

    def _on_map(self, asked: int, answer: tuple[HeatMap | None, str]) -> None:
        if asked == self._maps_asked:
            found, why = answer
            self.volume.set_heat_map(found)
            if why:
                self.said.emit(why)

    def _show_band(self) -> None:
        scene = self.reviewing.scene
        fusion = None if scene is None else scene.fusion(self._structure)
        covered = self.maps.covered
        if fusion is None or not covered:
            self.volume.set_band(None)
        else:
            low, high = (1 - covered) / 2, (1 + covered) / 2
            self.volume.set_band(fusion.probability[0], low, high, fusion.origin)

    def _show_weight(self) -> None:
        scene, rater = self.reviewing.scene, self.raters.current
        if scene is None or rater is None:
            self.local_weight.show_weight("Local weight", None)
            return
        at = self.volume.crosshair[0]
        values = view.local_weight(scene, self._structure, rater, self.reviewing.region, at)
        _, down, across = scene.image.lattice.spacing
        top = min(1.0, 2 / max(len(scene.masks.get(self._structure, {})), 2))
        title = f"Local weight, {rater}"
        self.local_weight.show_weight(title, values, high=top, aspect=down / across)

    # What the expert does

    def _on_decided(self, decision: Decision) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self.region_panel.set_undoable(self.runs.show_history())
        image = contents.item_of(decision, "masks")
        self.queueing.decided(*contents.items_of(decision, "masks"))
        if image is None:
            self.raters.show(self.reviewing.scene, self._structure)
        elif image != self.current_item():
            self.walk.show(image)
        else:
            self.reviewing.decided(decision)
        self.tell_stale()

    def _on_exhausted(self) -> None:
        """Go on with the next disputed image, when there is one."""
        scene = self.reviewing.scene
        if not self.walk.go_on() and scene is not None and scene.result is not None:
            self.said.emit("Nothing disputed is left in this study.")

    def _toggle_tool(self, tool: str) -> None:
        chosen = "look" if self.volume.tool == tool else tool
        self.volume.set_tool(chosen)  # type: ignore[arg-type]
        self.region_panel.set_tool(None if chosen == "look" else chosen)
        self._show_mended()
        if chosen != "look":
            self.volume.setFocus()

    def _leave(self) -> None:
        self.volume.set_tool("look")
        self.region_panel.set_tool(None)
        self._show_mended()
        self.close_fuse_panel()

    # Fusing

    def _on_run_requested(self, wanted: RunRequest) -> None:
        plan = MaskPlan(wanted.algorithm, wanted.settings)
        work = FusionWork("masks", "case", gather, partial(_fuse, plan), keep)
        self.runs.start(wanted, work, self.queueing.current)

    def _on_partial(self, image: int, draft: Draft) -> None:
        fusion = draft.fusion
        if image == self.current_item() and fusion.structures[0] == self._structure:
            self._show_outlines(Piece(fusion.origin, fusion.mask[0]))
            self._show_trace(fusion.traces[0])

    def _on_compare_requested(self, runs: Sequence[int]) -> None:
        self.close_fuse_panel()
        self.tabs.setCurrentWidget(self.comparing)
        self.comparing.compare(runs)

    def _on_no_fusion(self) -> None:
        self._on_consensus()


def _make_map(
    scene: Scene, structure: str, name: str, rater: str | None, pair: tuple[str, str] | None, _watch: Watch
) -> tuple[HeatMap | None, str]:
    return heat_map(scene, structure, name, rater, pair)


def _middle(piece: Piece | MaskRecord) -> tuple[int, int, int]:
    middle = np.add(piece.origin, np.array(piece.values.shape) // 2)
    return int(middle[0]), int(middle[1]), int(middle[2])


def _fuse(plan: MaskPlan, inputs: Inputs, watch: Watch) -> Answer:
    return fuse_cases(inputs, plan, watch)
