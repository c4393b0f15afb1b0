"""Views of a volume: layers of the three slice views, and the 3-D view of the structure under review.

Layers: outlines, regions, map, band, the edited mask, and a second series. Models in 3-D are made outside the
GUI thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import TWO_RATERS
from raterscope.algorithms.masks.grid import describe_slices
from raterscope.algorithms.masks.registration import RigidMotion
from raterscope.algorithms.masks.surface import Surface, extract_surface, sample_at
from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.review import Decision, RegistrationSubject
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.raters import Raters
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.scene import DisputedRegion, LoadedVolume, Piece, Scene
from raterscope.app.workspaces.masks.screen import MAPS, MasksCore, MasksPart
from raterscope.app.workspaces.masks.second_series import (
    checkered,
    describe_position,
    find_series,
    motions_of,
    read_series,
)
from raterscope.app.workspaces.navigation import UNREADABLE, PixelLoader, locate_image
from raterscope.widgets.painting import rater_colour
from raterscope.widgets.volume.scene import HeatMap, Outline, heat_colours

if TYPE_CHECKING:
    from raterscope.widgets.volume.surface_view import SurfaceModel

SLICES = "Slices"
"""Tag of the note on missing, uneven or tilted slices."""

_RAISED = 100.0
"""Offset of the band's values: 0 beyond them is then outside of the band."""


class SliceView(MasksPart):
    """Contents of the three views: the case, its consensus and regions, and the selected rater."""

    def __init__(self, core: MasksCore, reviewing: RegionReview, raters: Raters, loader: PixelLoader) -> None:
        super().__init__(core)
        self._reviewing, self._raters = reviewing, raters
        self._volume, self._maps = core.screen.volume, core.screen.maps
        self._task = LatestTask()
        self._series: tuple[int, int, RigidMotion, HeatMap] | None = None
        """Case, number, motion and map of the series that was resampled last."""
        self._checkered = False
        self.other_outlines: Callable[[], list[Outline] | None] = lambda: None
        """Function that returns outlines to draw instead of the raters' outlines; None to draw these."""
        loader.pixels.connect(self._on_pixels)
        loader.refused.connect(lambda _: self._volume.set_problem(UNREADABLE))
        reviewing.regions_changed.connect(self._show_boxes)
        reviewing.selected.connect(self._on_selected)
        reviewing.consensus_changed.connect(self.show_consensus)
        raters.chosen.connect(self._on_rater)
        raters.pair_chosen.connect(self._on_pair)
        self._maps.map_chosen.connect(self._show_map)
        self._maps.band_chosen.connect(self._show_band)
        self._maps.opacity_chosen.connect(self._volume.set_opacity)
        self._maps.truth.toggled.connect(self._show_hidden)
        self._volume.crosshair_moved.connect(self._show_weight)
        core.screen.local_weight.measures.chosen.connect(self._show_weight)
        core.screen.table.soloed.connect(self._on_soloed)
        core.screen.table.hidden_changed.connect(self._show_hidden)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._clear)
        core.document.changed.connect(self._on_document)
        core.document.decided.connect(self._on_decided)

    def begin(self, scene: Scene) -> None:
        """Clear the volume of the previous case."""
        self._volume.set_volume(None, scene.image.lattice, modality=scene.image.modality)
        if scene.problem is not None:
            self._volume.set_problem(scene.problem.label)
        self._list_series(scene)
        self._screen.notes.set_note(SLICES, " ".join(describe_slices(scene.image.lattice)))
        self._screen.table.leave_solo()
        self._show_hidden()

    @while_shown
    def _on_document(self) -> None:
        self._list_series(self._session.scene)

    @while_shown
    def _on_decided(self, decision: Decision) -> None:
        """Show bookmarks, and a series at its position after a registration or its undo."""
        self._volume.paint_large_first()
        self._show_boxes()
        target = self._document.contents and self._document.contents.target(decision)
        if target and isinstance(target.subject, RegistrationSubject):
            before = self._maps.series
            self._list_series(self._session.scene)
            if before is not None:
                self._show_map()

    def _list_series(self, scene: Scene) -> None:
        contents = self._document.contents
        series = []
        if contents is not None:
            motions = motions_of(contents, scene.image.id)
            series = find_series(contents.images, scene.image, motions)
        self._maps.set_series({entry.id: f"series {entry.name}" for entry in series})

    def _clear(self) -> None:
        self._series = None
        self._maps.set_series({})
        self._maps.set_possible(True)
        self._maps.truth.setVisible(False)
        self._volume.set_dispute(None)
        self._task.cancel()
        self._volume.set_heat_map(None)
        self._volume.set_band(None)
        panel = self._screen.local_weight
        panel.set_nothing(view.nothing_local(None, panel.measure))
        panel.show_local(f"Local {panel.measure}", None)

    def _on_view(self, scene: Scene) -> None:
        """Draw the structure under review."""
        structure, covered = self._session.part, self._session.covered
        report = scene.report(structure)
        self._maps.set_possible(not covered)
        self._maps.truth.setVisible(structure in scene.truth and not covered)
        if covered:
            self._screen.table.leave_solo()
            self._volume.set_solo(None)
        self._volume.set_dispute(None if report is None or covered else report.by_slice)
        self._show_map()
        self._show_band()
        self._show_weight()

    @while_shown
    def go_to_structure(self) -> None:
        """Go to the middle of the structure, on the most disputed slice unless that is hidden."""
        scene, structure, consensus = self._session.scene, self._session.part, self._reviewing.consensus
        records = [record for record in scene.drawn(structure).values() if record.values.size]
        if consensus is None and not records:
            return
        piece = records[0] if consensus is None else consensus
        middle = np.add(piece.origin, np.array(piece.values.shape) // 2)
        at, row, column = int(middle[0]), int(middle[1]), int(middle[2])
        report = scene.report(structure)
        if report is not None and report.by_slice.any() and not self._session.covered:
            at = int(report.by_slice.argmax())
        self._volume.go_to((at, row, column))

    def zoom(self, factor: float) -> None:
        """Zoom all views around the crosshair."""
        for name in self._volume.planes:
            self._volume.view(name).zoom(factor)

    def fit(self) -> None:
        """Show whole slices in all views."""
        for name in self._volume.planes:
            self._volume.view(name).fit()

    def solo(self, number: int) -> None:
        """Show only the consensus and the outline of one rater of the case; a second call shows all."""
        rows = self._screen.table.model.rows
        if number >= len(rows):  # none while they are hidden
            return
        self._screen.table.toggle_solo(rows[number].name)

    def _on_soloed(self, name: str | None) -> None:
        self._volume.set_solo(name, beside=(f"\n{view.CONSENSUS}",))
        if name is not None:
            self._raters.choose(name)

    def _show_hidden(self) -> None:
        """Hide the outlines that the expert hides, and the truth unless it is switched on."""
        truth = () if self._maps.truth.isChecked() else (f"\n{view.TRUTH}",)
        self._volume.set_hidden({*self._screen.table.model.hidden, *truth})

    def show_consensus(self) -> None:
        """Draw the outlines with decisions, and the mask under a tool."""
        self.show_outlines(None)
        self.show_edited()

    def show_outlines(self, consensus: Piece | None) -> None:
        """Draw the outlines with another consensus, such as a partial result, or with the current one."""
        outlines = []
        if self._session.covered:
            outlines = view.drawn_outline(self._reviewing.drawn)
        elif self._session.shown:
            outlines = view.outlines(
                self._session.scene, self._session.part, consensus or self._reviewing.consensus,
                self._document.numbers, self._raters.current,
            )  # fmt: skip
            other_outlines = self.other_outlines()
            if other_outlines is not None:
                outlines = [*other_outlines, *(outline for outline in outlines if outline.name == view.TRUTH)]
        self._volume.set_outlines(outlines)

    def show_edited(self) -> None:
        """Fill the mask while a tool changes it."""
        consensus = self._reviewing.edited
        if consensus is None or self._volume.tool in ("look", "ruler", "roi"):
            self._volume.set_edit(None)
        else:
            self._volume.set_edit(consensus.values, consensus.origin)

    @while_shown
    def _on_pixels(self, image: int, loaded: LoadedVolume) -> None:
        if self._session.scene.image.id == image:
            volume = loaded.volume
            self._volume.set_pixels(
                volume.values, modality=volume.modality, window=volume.window, unit=volume.unit
            )

    def _show_boxes(self) -> None:
        region, session = self._reviewing.region, self._session
        fusion = session.scene.fusion(session.part) if session.shown else None
        names = () if fusion is None else fusion.annotators
        blind = self._session.covered
        regions = self._reviewing.regions
        boxes = view.region_boxes(regions, region, names, self._core.bookmarks, self._core.run, blind=blind)
        self._volume.set_boxes(boxes, None if region is None else region.number)

    def _on_selected(self, region: DisputedRegion | None) -> None:
        self._volume.paint_large_first()
        self._show_boxes()
        if region is not None:
            before = self._volume.crosshair
            self._volume.look_at(region.dispute.origin, region.dispute.shape)
            if self._volume.crosshair == before:
                self._show_weight()  # another region at the same position
            following = self._reviewing.following
            if following is not None:
                self._volume.expect(following.dispute.origin, following.dispute.shape)

    def _on_rater(self) -> None:
        self.show_consensus()
        if self._maps.chosen in ("weight", "tau"):
            self._show_map()
        self._show_weight()

    def _on_pair(self, _first: str, _second: str) -> None:
        self._maps.map.choose("difference")
        self._show_map()

    @while_shown
    def _show_map(self) -> None:
        scene, structure = self._session.scene, self._session.part
        self._task.cancel()
        if self._maps.chosen == "none" or self._session.covered:
            self._volume.set_heat_map(None)
            return
        if self._maps.series is not None:
            self._show_series(self._maps.series, scene)
            return
        request = (scene, structure, self._maps.chosen, self._raters.current, self._raters.pair)
        job = self._jobs.start("Making a map", partial(_make_map, *request), quiet=True)
        self._task.follow(job, self._on_map)

    def show_series(self, number: int) -> None:
        """Show a second series over the case."""
        if self._maps.series == number:
            self._show_map()
        self._maps.map.choose(number)

    @while_shown
    def toggle_checkerboard(self) -> None:
        """Show second series and case in alternate fields of a checkerboard, or the series everywhere."""
        if self._maps.series is None:
            self._screen.message.emit("Choose a second series in the list of maps first.")
            return
        self._checkered = not self._checkered
        self._show_map()

    def _show_series(self, number: int, scene: Scene) -> None:
        contents = self._document.contents
        entry = None if contents is None else contents.image(number)
        if entry is None:
            return
        motion = motions_of(contents, scene.image.id).get(number, RigidMotion())
        if self._series is not None and self._series[:3] == (scene.image.id, number, motion):
            self._draw_series(self._series[3], scene)
            return
        job = self._document.ask("Looking for a series", partial(locate_image, entry))
        self._task.follow(job, partial(self._on_located, entry, scene, motion))

    def _on_located(self, entry: ImageEntry, scene: Scene, motion: RigidMotion, path: Path | None) -> None:
        if path is None:
            self._on_map((None, f"The file of {plain(entry.name)} was not found."))
            return
        work = partial(read_series, entry, path, scene.image.lattice, motion=motion)
        job = self._jobs.start(f"Resampling {plain(entry.name)}", work)
        done = partial(self._on_series, entry, scene, motion)
        self._task.follow(job, done, failed=self._screen.refused.emit)

    def _on_series(self, entry: ImageEntry, scene: Scene, motion: RigidMotion, heat_map: HeatMap) -> None:
        self._series = scene.image.id, entry.id, motion, heat_map
        self._draw_series(heat_map, scene)
        position = describe_position(self._document.contents, scene.image.id, entry.id)
        self._screen.message.emit(f"{position} Check that both series fit.")

    def _draw_series(self, heat_map: HeatMap, scene: Scene) -> None:
        if not self._checkered:
            self._on_map((heat_map, ""))
            return
        work = partial(checkered, heat_map, scene.image.lattice)
        self._task.follow(self._jobs.start("Making a checkerboard", work, quiet=True), self._on_checkered)

    def _on_checkered(self, heat_map: HeatMap) -> None:
        self._on_map((heat_map, ""))

    def _on_map(self, answer: tuple[HeatMap | None, str]) -> None:
        heat_map, reason = answer
        self._volume.set_heat_map(heat_map)
        if reason:
            self._screen.message.emit(reason)

    @while_shown
    def _show_band(self) -> None:
        scene, structure, covered = self._session.scene, self._session.part, self._maps.covered
        fusion, report = scene.fusion(structure), scene.report(structure)
        calibration = None if report is None else report.calibration
        if fusion is None or not covered or self._session.covered:
            self._volume.set_band(None)
        elif calibration is None:
            self._volume.set_band(None)
            self._screen.message.emit("This run has no band: a band needs two raters. Press Fuse (F5) again.")
        else:
            reach = calibration.multiplier(covered)
            raised = calibration.ratio + np.float32(_RAISED)
            self._volume.set_band(raised, _RAISED - reach, _RAISED + reach, calibration.origin)
            if calibration.raters == 2:
                self._screen.message.emit(f"Bands of two raters are rough. {TWO_RATERS}")

    @while_shown
    def _show_weight(self) -> None:
        scene, rater, panel = self._session.scene, self._raters.current, self._screen.local_weight
        structure, at, measure = self._session.part, self._volume.crosshair[0], panel.measure
        fusion, covered = scene.fusion(structure), self._session.covered
        nothing = view.nothing_local(fusion, measure)
        if rater in scene.excluded.get(structure, {}):
            nothing = f"{rater} is excluded from this run. Press X to restore."
        panel.set_nothing(view.HIDDEN if covered else nothing)
        if fusion is None or rater is None or covered:
            panel.show_local(f"Local {measure}", None)
            return
        weight = view.local_weight(scene, structure, rater, self._reviewing.region, at, measure)
        values, corner = (None, (0, 0)) if weight is None else weight
        _, down, across = scene.image.lattice.spacing
        top = min(1.0, 2 / max(len(scene.masks.get(structure, {})), 2))
        if measure == "tau":
            top = view.highest_tau(fusion)
        panel.show_local(f"Local {measure}, {rater}", values, high=top, aspect=down / across, corner=corner)


def _make_map(
    scene: Scene, structure: str, name: str, rater: str | None, pair: tuple[str, str] | None, _watch: Watch
) -> tuple[HeatMap | None, str]:
    return view.heat_map(scene, structure, name, rater, pair)


FLAT = "An image in two dimensions has no 3-D view."

_WIRE_TRIANGLES = 3_000
"""Maximum number of triangles of a rater's mask, because a denser wireframe hides the surface."""

_BONE = (0.82, 0.80, 0.76)
_DEFAULT_MAPS = ("uncertainty", "disagreement")
_RATER_MAPS = ("weight", "tau", "difference")


class SurfaceModels(MasksPart):
    """The 3-D view and its contents: the case, its consensus and the map."""

    def __init__(self, core: MasksCore, reviewing: RegionReview, raters: Raters) -> None:
        super().__init__(core)
        self._reviewing, self._raters = reviewing, raters
        self._volume, self._maps = core.screen.volume, core.screen.maps
        self._task = LatestTask()
        reviewing.consensus_changed.connect(self._refresh)
        raters.chosen.connect(self._on_rater)
        raters.pair_chosen.connect(self._on_rater)
        self._maps.map_chosen.connect(self._refresh)
        core.session.view_changed.connect(self._refresh)
        core.session.cleared.connect(self._refresh)

    def toggle(self) -> None:
        """Open the 3-D view, or close it."""
        if self._volume.surface is not None:
            self._task.cancel()
            self._volume.close_surface()
        elif self._session.shown and self._session.scene.image.lattice.flat:
            self._screen.message.emit(FLAT)
        else:
            self._volume.open_surface().setFocus()
            self._refresh()

    def _on_rater(self) -> None:
        if self._maps.chosen in _RATER_MAPS:
            self._refresh()

    def _refresh(self) -> None:
        surface, session = self._volume.surface, self._session
        self._task.cancel()
        if surface is None:
            return
        if not session.shown or session.scene.image.lattice.flat:
            self._volume.close_surface()
            return
        scene, structure = session.scene, session.part
        if session.covered or surface.grid != scene.image.lattice:
            surface.set_model(None, scene.image.lattice)
        raters: Mapping[str, str] | None = None
        if not session.covered:
            numbers = self._document.numbers
            raters = {name: rater_colour(numbers.get(name, 0)) for name in scene.drawn(structure)}
        request = (
            scene, structure, self._reviewing.edited, raters,
            self._maps.chosen, self._raters.current, self._raters.pair,
        )  # fmt: skip
        job = self._jobs.start("Making the 3-D view", partial(_make_model, *request), quiet=True)
        self._task.follow(job, self._on_model, failed=self._screen.refused.emit)

    def _on_model(self, model: SurfaceModel | None) -> None:
        surface = self._volume.surface
        if surface is not None and self._session.shown:
            from raterscope.widgets.volume.surface_view import EMPTY

            words = view.HIDDEN if self._session.covered else EMPTY
            surface.set_model(model, self._session.scene.image.lattice, words)


def _make_model(
    scene: Scene,
    structure: str,
    consensus: Piece | None,
    raters: Mapping[str, str] | None,
    chosen: str,
    rater: str | None,
    pair: tuple[str, str] | None,
    watch: Watch,
) -> SurfaceModel | None:
    """Make the surface of the consensus with its colours, and of the raters' masks.

    `raters`: mapping of str to str, colours of the raters' wireframes; None while masks and results are
        hidden.
    `chosen`: the map on screen.
    """
    from raterscope.widgets.volume.surface_view import SurfaceModel, Wireframe

    if consensus is None or not consensus.values.any():
        return None
    grid = scene.image.lattice
    values = consensus.values if raters is None else _posterior(scene, structure, consensus)
    surface = extract_surface(values, consensus.origin, grid, watch=part(watch, 0.0, 0.5))
    if surface is None:
        return None
    heat = None if raters is None else _heat_map(scene, structure, chosen, rater, pair)
    wireframes = []
    masks = scene.drawn(structure)
    for done, (name, colour) in enumerate((raters or {}).items()):
        step = part(watch, 0.5 + 0.5 * done / len(masks), 0.5 + 0.5 * (done + 1) / len(masks))
        record = masks[name]
        wire = extract_surface(record.values, record.origin, grid, triangles=_WIRE_TRIANGLES, watch=step)
        if wire is not None:
            wireframes.append(Wireframe(name, colour, wire.corners, wire.edges))
    return SurfaceModel(structure, surface, _colours(surface, heat), heat, tuple(wireframes))


def _posterior(scene: Scene, structure: str, consensus: Piece) -> NDArray[np.floating] | NDArray[np.bool_]:
    """Return the probability where it agrees with the consensus after decisions."""
    fusion = scene.fusion(structure)
    if fusion is None:
        return consensus.values
    values = consensus.values.astype(np.float32)
    corner = np.subtract(fusion.origin, consensus.origin)
    box = tuple(slice(at, at + n) for at, n in zip(corner, fusion.shape, strict=True))
    probability = fusion.probability[0]
    np.copyto(values[box], probability, where=(probability > 0.5) == consensus.values[box])
    return values


def _heat_map(
    scene: Scene, structure: str, chosen: str, rater: str | None, pair: tuple[str, str] | None
) -> HeatMap | None:
    """Return the map on screen, or the uncertainty without one."""
    names = _DEFAULT_MAPS if chosen not in MAPS or chosen == "none" else (chosen, *_DEFAULT_MAPS)
    maps = (view.heat_map(scene, structure, name, rater, pair)[0] for name in names)
    return next((heat for heat in maps if heat is not None), None)


def _colours(surface: Surface, heat: HeatMap | None) -> NDArray[np.float32]:
    if heat is None:
        return np.full(surface.corners.shape, _BONE, dtype=np.float32)
    return heat_colours(heat, sample_at(heat.values, heat.origin, surface.indices))
