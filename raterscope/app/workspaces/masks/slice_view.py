"""Layers of the three slice views: outlines, regions, map, band, the edited mask, and a second series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.calibration import TWO_RATERS
from raterscope.algorithms.masks.grid import Grid, describe_slices
from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.formats.volumes.resampling import resample
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import ImageEntry
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.raters import Raters
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.scene import DisputedRegion, LoadedVolume, Piece, Scene, load_pixels
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPart
from raterscope.app.workspaces.navigation import PixelLoader, locate_image
from raterscope.widgets.volume.scene import HeatMap, Outline

SLICES = "Slices"
"""Tag of the note on slices that are missing, uneven or tilted."""

_RAISED = 100.0
"""Added to the band's values, so that 0 beyond them is outside of the band."""


class SliceView(MasksPart):
    """Contents of the three views: the case, its consensus and regions, and the selected rater."""

    def __init__(self, core: MasksCore, reviewing: RegionReview, raters: Raters, loader: PixelLoader) -> None:
        super().__init__(core)
        self._reviewing, self._raters = reviewing, raters
        self._volume, self._maps = core.screen.volume, core.screen.maps
        self._task = LatestTask()
        self._series: tuple[int, int, HeatMap] | None = None
        """Case, number and map of the series that was resampled last."""
        self.other_outlines: Callable[[], list[Outline] | None] = lambda: None
        """Returns outlines to draw instead of the raters'; None for the raters'."""
        loader.pixels.connect(self._on_pixels)
        reviewing.regions_changed.connect(self._show_boxes)
        reviewing.selected.connect(self._on_selected)
        reviewing.consensus_changed.connect(self.show_consensus)
        raters.chosen.connect(self._on_rater)
        raters.pair_chosen.connect(self._on_pair)
        self._maps.map_chosen.connect(self._show_map)
        self._maps.band_chosen.connect(self._show_band)
        self._maps.opacity_chosen.connect(self._volume.set_opacity)
        self._maps.truth_chosen.connect(self._show_hidden)
        self._volume.crosshair_moved.connect(self._show_weight)
        core.screen.local_weight.measure_chosen.connect(self._show_weight)
        core.screen.table.soloed.connect(self._on_soloed)
        core.screen.table.hidden_changed.connect(self._show_hidden)
        core.session.view_changed.connect(self._on_view)
        core.session.cleared.connect(self._clear)
        core.document.changed.connect(self._on_document)

    def begin(self, scene: Scene) -> None:
        """Clear the volume of the previous case."""
        self._volume.set_volume(None, scene.image.lattice, modality=scene.image.modality)
        self._list_series(scene)
        self._screen.notes.set_note(SLICES, " ".join(describe_slices(scene.image.lattice)))
        self._screen.table.leave_solo()
        self._show_hidden()

    def _on_document(self) -> None:
        if self._session.scene is not None:
            self._list_series(self._session.scene)

    def _list_series(self, scene: Scene) -> None:
        contents = self._document.contents
        series = find_series(contents.images, scene.image) if contents is not None else []
        self._maps.set_series({entry.id: f"series {entry.name}" for entry in series})

    def _clear(self) -> None:
        self._series = None
        self._maps.set_series({})
        self._maps.set_possible(True)
        self._maps.set_truth_there(False)
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
        self._maps.set_truth_there(structure in scene.truth and not covered)
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
        at, row, column = _middle(records[0] if consensus is None else consensus)
        report = scene.report(structure)
        if report is not None and report.by_slice.any() and not self._session.covered:
            at = int(report.by_slice.argmax())
        self._volume.go_to((at, row, column))

    def zoom(self, factor: float) -> None:
        """Zoom all views about the crosshair."""
        for name in self._volume.planes:
            self._volume.view(name).zoom(factor)

    def fit(self) -> None:
        """Show whole slices in all views."""
        for name in self._volume.planes:
            self._volume.view(name).fit()

    def solo(self, number: int) -> None:
        """Show only the outline of one rater of the case beside the consensus; again shows all."""
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
            self._volume.set_pixels(volume.values, modality=volume.modality, window=volume.window)

    def _show_boxes(self) -> None:
        region, session = self._reviewing.region, self._session
        fusion = session.scene.fusion(session.part) if session.shown else None
        names = () if fusion is None else fusion.annotators
        blind = self._session.covered
        boxes = view.region_boxes(self._reviewing.regions, region, names, blind=blind)
        self._volume.set_boxes(boxes, None if region is None else region.number)

    def _on_selected(self, region: DisputedRegion | None) -> None:
        self._show_boxes()
        if region is not None:
            self._volume.look_at(region.dispute.origin, region.dispute.shape)

    def _on_rater(self) -> None:
        self.show_consensus()
        if self._maps.chosen in ("weight", "tau"):
            self._show_map()
        self._show_weight()

    def _on_pair(self, _first: str, _second: str) -> None:
        self._maps.choose_map("difference")
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

    def _show_series(self, number: int, scene: Scene) -> None:
        contents = self._document.contents
        entry = None if contents is None else contents.image(number)
        if entry is None:
            return
        if self._series is not None and self._series[:2] == (scene.image.id, number):
            self._volume.set_heat_map(self._series[2])
            return
        job = self._document.ask("Looking for a series", partial(locate_image, entry))
        self._task.follow(job, partial(self._on_located, entry, scene))

    def _on_located(self, entry: ImageEntry, scene: Scene, path: Path | None) -> None:
        if path is None:
            self._on_map((None, f"The file of {plain(entry.name)} was not found."))
            return
        work = partial(read_series, entry, path, scene.image.lattice)
        job = self._jobs.start(f"Resampling {plain(entry.name)}", work)
        self._task.follow(job, partial(self._on_series, entry, scene), failed=self._screen.refused.emit)

    def _on_series(self, entry: ImageEntry, scene: Scene, heat_map: HeatMap) -> None:
        self._series = scene.image.id, entry.id, heat_map
        self._on_map((heat_map, "Placed by the positions in the files. Check that both series fit."))

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
        panel.set_nothing(view.HIDDEN if covered else view.nothing_local(fusion, measure))
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


def _middle(piece: Piece | MaskRecord) -> tuple[int, int, int]:
    middle = np.add(piece.origin, np.array(piece.values.shape) // 2)
    return int(middle[0]), int(middle[1]), int(middle[2])


SHARED = 0.3
"""Least share of the smaller volume's extent that two series of one patient have in common."""
_BRIGHTEST = 99.8


def find_series(images: Sequence[ImageEntry], case: ImageEntry) -> list[ImageEntry]:
    """Find the other volumes of the study that lie at the position of a case."""
    return [
        image
        for image in images
        if image.id != case.id
        and image.grid is not None
        and case.grid is not None
        and shared_extent(image.grid, case.grid) >= SHARED
    ]


def shared_extent(first: Grid, second: Grid) -> float:
    """Return the share of the smaller volume's box, along the patient's axes, that both have in common."""
    if not (first.calibrated and second.calibrated) or first.flat or second.flat:
        return 0.0
    (low, high), (other_low, other_high) = _box(first), _box(second)
    shared = np.minimum(high, other_high) - np.maximum(low, other_low)
    smaller = min(np.prod(high - low), np.prod(other_high - other_low))
    return float(np.prod(np.maximum(shared, 0.0)) / smaller)


def _box(grid: Grid) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = [(-0.5, size - 0.5) for size in grid.shape]
    corners = grid.to_patient(np.array(list(product(*ends))))
    return corners.min(axis=0), corners.max(axis=0)


def read_series(entry: ImageEntry, path: Path, grid: Grid, watch: Watch) -> HeatMap:
    """Read a series and resample it to a grid, as a map from 0 to its brightest values.

    Values below 0 are shown as 0.
    """
    volume = load_pixels(entry, path, part(watch, 0.0, 0.5)).volume
    values = volume.values if volume.values.ndim == 3 else volume.values.mean(axis=-1)
    watch(0.5, "resampling")
    positive = np.maximum(np.nan_to_num(values.astype(np.float32)), 0.0)
    sample = positive.ravel()[:: max(1, positive.size // 200_000)]
    high = float(np.percentile(sample[sample > 0], _BRIGHTEST)) if (sample > 0).any() else 1.0
    shown = np.rint(np.minimum(positive / high, 1.0) * 255).astype(np.uint8)
    resampled = resample(shown, volume.grid, grid)
    words = " ".join(dict.fromkeys(part for part in (entry.modality, plain(entry.name)) if part))
    return HeatMap(resampled, (0, 0, 0), 0.0, high, "doubt", words, high / 255)
