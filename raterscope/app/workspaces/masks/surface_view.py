"""3-D view of the structure under review: its model is made outside the GUI thread."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.surface import Surface, extract_surface, sample_at
from raterscope.algorithms.progress import Watch, part
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.raters import Raters
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.scene import Piece, Scene
from raterscope.app.workspaces.masks.screen import MAPS, MasksCore, MasksPart
from raterscope.widgets.painting import rater_colour
from raterscope.widgets.volume.scene import HeatMap, heat_colours

if TYPE_CHECKING:
    from raterscope.widgets.volume.surface_view import SurfaceModel

FLAT = "An image in two dimensions has no 3-D view."

_WIRE_TRIANGLES = 3_000
"""Limit of the triangles of a rater's mask: a denser wireframe hides the surface."""

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

    Parameters
    ----------
    raters : mapping of str to str, optional
        Colours of the raters' wireframes; None while masks and results are hidden.
    chosen : str
        The map on screen.
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
    """Return the probability where it agrees with the consensus, which decisions may have changed."""
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
    """Return the map on screen, or that of the uncertainty where there is none."""
    names = _DEFAULT_MAPS if chosen not in MAPS or chosen == "none" else (chosen, *_DEFAULT_MAPS)
    maps = (view.heat_map(scene, structure, name, rater, pair)[0] for name in names)
    return next((heat for heat in maps if heat is not None), None)


def _colours(surface: Surface, heat: HeatMap | None) -> NDArray[np.float32]:
    if heat is None:
        return np.full(surface.corners.shape, _BONE, dtype=np.float32)
    return heat_colours(heat, sample_at(heat.values, heat.origin, surface.indices))
