"""What the expert decides about spots: which one is looked at, the next disputed one, the decision on it."""

from __future__ import annotations

import math

from PySide6.QtCore import QObject, Signal

from raterscope.app.document import Document
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.spots import Spot, spots_of

__all__ = ["Reviewing"]

NEAR = 20.0


class Reviewing(QObject):
    """The spots of the image on screen and the one selected.

    Signals
    -------
    spots_changed
        The spots were read anew: another image, another run, a decision.
    selected(int or None)
        Index of the spot looked at.
    exhausted
        Nothing disputed is left on this image.
    vain(str)
        Why nothing can be decided here now.
    """

    spots_changed = Signal()
    selected = Signal(object)
    exhausted = Signal()
    vain = Signal(str)

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._go_on = False
        self.blind = False
        """What others say of a spot is hidden until it is decided."""
        self.scene: Scene | None = None
        self.spots: tuple[Spot, ...] = ()
        self.current: int | None = None

    @property
    def spot(self) -> Spot | None:
        """The spot looked at."""
        return None if self.current is None else self.spots[self.current]

    def covers(self, spot: Spot) -> bool:
        """Tell whether what others say of a spot is hidden."""
        return self.blind and not spot.decided

    def set_blind(self, blind: bool) -> None:
        """Hide what others say of spots that are not decided, or show it."""
        self.blind = blind
        self.spots_changed.emit()
        self.selected.emit(self.current)

    def show(self, scene: Scene | None) -> None:
        """Take another image, or the same with another run."""
        same = self.scene is not None and scene is not None and scene.image.id == self.scene.image.id
        kept = self.spot if same else None
        self.scene = scene
        self._read()
        self.select(self._nearest(kept.x, kept.y) if kept is not None else None)

    def refresh(self) -> None:
        """Read the spots anew after a decision, and go on to the next where the decision asked for it."""
        kept = self.spot
        self._read()
        self.current = self._same(kept) if kept is not None else None
        if self._go_on:
            self._go_on = False
            self.next_disputed()
        else:
            self.selected.emit(self.current)

    def find(self, spot: Spot | SpotSubject) -> int | None:
        """Find a spot that was listed elsewhere or decided, as another run may have it or before a move."""
        here = self._nearest(spot.x, spot.y)
        if here is None and isinstance(spot, SpotSubject) and spot.from_x is not None:
            here = self._nearest(spot.from_x, spot.from_y or 0.0)
        return here

    def select(self, index: int | None) -> None:
        """Look at a spot, or at none."""
        self.current = index if index is not None and 0 <= index < len(self.spots) else None
        self.selected.emit(self.current)

    def next_disputed(self, step: int = 1) -> None:
        """Go to the next disputed spot, the most doubtful first, round the end; skipped ones come last."""
        order = sorted(
            (i for i, spot in enumerate(self.spots) if spot.state == "disputed" and i != self.current),
            key=self._rank,
        )
        if not order:
            self.selected.emit(self.current)
            if self.spot is None or self.spot.state != "disputed":
                self.exhausted.emit()
            return
        if self.current is None:
            self.select(order[0 if step > 0 else -1])
            return
        here = self._rank(self.current)
        ahead = [i for i in order if (self._rank(i) > here) == (step > 0)]
        self.select((ahead or order)[0 if step > 0 else -1])

    def _rank(self, index: int) -> tuple[bool, float, int]:
        spot = self.spots[index]
        return spot.skipped, -min(spot.posterior, 1 - spot.posterior), spot.number

    def decide(self, verb: str) -> None:
        """Accept, reject or skip the spot, and go on to the next disputed one when that is on disk."""
        spot, scene = self.spot, self.scene
        if self._go_on or self.is_past():  # the last one is still on its way to the disk
            return
        if spot is None or scene is None:
            self.next_disputed()
            return
        self._go_on = True
        subject = SpotSubject(x=spot.x, y=spot.y, number=spot.number, blind=self.covers(spot))
        job = self._document.record(
            Decision(
                verb=verb, item=scene.image.id, subject=subject,
                run=None if scene.run is None else scene.run.id, about=spot.decision,
            )
        )  # fmt: skip
        job.ended.connect(self._on_written)

    def add(self, x: float, y: float) -> None:
        """Add a spot that the crowd missed."""
        if self.scene is not None and not self.is_past():
            number = max((spot.number for spot in self.spots), default=0) + 1
            added = SpotSubject(x=x, y=y, number=number)
            self._document.record(Decision(verb="add", item=self.scene.image.id, subject=added))

    def move(self, index: int, x: float, y: float) -> None:
        """Put a spot in its right place, which also says that it is there."""
        scene = self.scene
        if scene is None or not 0 <= index < len(self.spots) or self.is_past():
            return
        spot = self.spots[index]
        moved = SpotSubject(
            x=x, y=y, number=spot.number, from_x=spot.x, from_y=spot.y, blind=self.covers(spot)
        )
        self._document.record(
            Decision(
                verb="move", item=scene.image.id, subject=moved,
                run=None if scene.run is None else scene.run.id, about=spot.decision,
            )
        )  # fmt: skip

    def is_past(self) -> bool:
        """Tell whether what is shown is past, and say that nothing can be decided on it."""
        past = self.scene is not None and self.scene.replayed
        if past:
            self.vain.emit("This is a replay: leave it (Esc) to decide.")
        return past

    def _on_written(self) -> None:
        self._go_on = False

    def _read(self) -> None:
        scene, contents = self.scene, self._document.contents
        if scene is None or contents is None:
            self.spots = ()
        else:
            self.spots = spots_of(
                scene.fusion, len(scene.clicks.annotators), contents.review.spots(scene.image.id)
            )
        self.current = None
        self.spots_changed.emit()

    def _same(self, kept: Spot) -> int | None:
        """Find a spot again that a decision may have moved."""
        same = (
            index
            for index, spot in enumerate(self.spots)
            if kept.cluster is not None and spot.cluster == kept.cluster
        )
        return next(same, self._nearest(kept.x, kept.y))

    def _nearest(self, x: float, y: float) -> int | None:
        distances = [math.hypot(spot.x - x, spot.y - y) for spot in self.spots]
        nearest = min(range(len(distances)), key=distances.__getitem__, default=None)
        return nearest if nearest is not None and distances[nearest] <= NEAR else None
