"""Why the spot looked at stands as it does: evidence, neighbours, other runs; or nothing yet, blind."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject

from raterscope.app.document import Document
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.crop_shelf import CropShelf
from raterscope.app.workspaces.clicks.crops import Crops
from raterscope.app.workspaces.clicks.many import Listed
from raterscope.app.workspaces.clicks.other_runs import OtherRuns
from raterscope.app.workspaces.clicks.reviewing import Reviewing
from raterscope.app.workspaces.clicks.spots import Known
from raterscope.widgets.panels.evidence_panel import CHOOSE, EvidencePanel

__all__ = ["Explaining"]

DECIDED = {"accept": "accepted", "reject": "rejected", "move": "moved"}
FUSE_FIRST = "Press Fuse (F5) to see what was found, and why."
ELSEWHERE = "Return shows the spot on its image, with what other runs say of it."
NO_OTHER = "No other run has this image."


class Explaining(QObject):
    """Fills the evidence pane with what there is to say of the spot that is selected."""

    def __init__(
        self, document: Document, crops: Crops, panel: EvidencePanel, reviewing: Reviewing, coverage: float
    ) -> None:
        super().__init__(panel)
        self._document = document
        self._panel = panel
        self._reviewing = reviewing
        self._crops = crops
        self._coverage = coverage
        self._before = ""
        self.other_runs = OtherRuns(document, reviewing.session, self)
        crops.arrived.connect(self._on_crop)
        reviewing.selected.connect(self.show)
        self.other_runs.read.connect(self._show_runs)
        panel.runs_wanted.connect(self._on_runs_wanted)
        panel.neighbour_chosen.connect(reviewing.select)

    def set_coverage(self, coverage: float) -> None:
        """Draw the ellipse that holds this share of the clicks."""
        self._coverage = coverage
        self.show()

    def remember(self, decision: Decision) -> None:
        """Keep what others say of the spot that was just decided, to tell it beside the next one."""
        spot, verb = self._reviewing.spot, DECIDED.get(decision.verb)
        self._before = ""
        alone = isinstance(decision.subject, SpotSubject)
        if alone and spot is not None and spot.cluster is not None and verb is not None:
            self._before = (
                f"Spot {spot.number}: you {verb} it; {spot.votes} of {spot.looked} marked it, "
                f"the model says {spot.posterior:.2f}."
            )

    def show(self) -> None:
        """Show the spot that is selected, or that none is."""
        reviewing, session, spot = self._reviewing, self._reviewing.session, self._reviewing.spot
        if spot is None or reviewing.current is None:
            unfused = session.shown and session.scene.fusion is None
            self._panel.show_spot(None, FUSE_FIRST if unfused else CHOOSE)
            return
        scene, radius = session.scene, view.radius_of(spot)
        crop = self._crops.of(spot.x, spot.y, radius)
        if reviewing.covers(spot):
            self._panel.show_spot(view.covered(spot, crop, radius, self._coverage, self._before))
            return
        size = scene.image.pixel_size
        near = view.neighbours(reviewing.spots, reviewing.current, size, blind=reviewing.blind)
        who, numbers = scene.clicks.annotators, self._document.numbers
        weights = scene.clicks.weights
        self._panel.show_spot(
            view.evidence(spot, scene.fusion, who, numbers, crop, radius, self._coverage, weights, near)
        )

    def show_elsewhere(self, one: Listed, known: Known, shelf: CropShelf) -> None:
        """Show a spot of an image that is not on screen."""
        spot, crop, half = one.spot, shelf.get(one.number), shelf.half
        if self._reviewing.covers(spot):
            self._panel.show_spot(view.covered(spot, crop, half, self._coverage, self._before))
            return
        numbers, weights = self._document.numbers, known.weights
        told = view.evidence(
            spot, known.fusion, known.annotators, numbers, crop, half, self._coverage, weights
        )
        self._panel.show_spot(replace(told, where=self._name(one.image)))

    def _on_crop(self) -> None:
        if self._reviewing.spot is not None:  # else one of another image may be shown
            self.show()

    def _on_runs_wanted(self) -> None:
        self.other_runs.look()
        self._show_runs()

    def _name(self, image: int) -> str:
        contents = self._document.contents
        entry = contents.image(image) if contents else None
        return entry.name if entry else ""

    def _show_runs(self) -> None:
        spot = self._reviewing.spot
        if spot is None:
            self._panel.show_runs((), ELSEWHERE)
            return
        lines = self.other_runs.lines(spot)
        self._panel.show_runs(None if not lines and self.other_runs.reading else lines, NO_OTHER)
