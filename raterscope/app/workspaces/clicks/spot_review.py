"""Review of spots: the selected spot, the next disputed spot, and decisions."""

from __future__ import annotations

import math

from PySide6.QtCore import QObject, Signal

from raterscope.app.assessment import DISPUTED
from raterscope.app.document import Document
from raterscope.app.review import CommentSubject, Decision, SpotSubject
from raterscope.app.session import while_shown
from raterscope.app.workspaces.clicks.scene import ClicksSession, Scene
from raterscope.app.workspaces.clicks.spots import Spot, spots_of
from raterscope.app.workspaces.review_order import ELSEWHERE, Elsewhere, next_item
from raterscope.app.workspaces.sample_queue import SampleQueue

NEAR = 20.0


class SpotReview(QObject):
    """Spots of the image on screen, the selected one, and decisions about it.

    `sample`: leads through an open acceptance sample. `elsewhere`: continues with other images; see
    `next_item`.
    """

    spots_changed = Signal()  # the spots were read again: another image, another run, a decision
    selected = Signal(object)  # index of the selected spot
    exhausted = Signal()  # no other disputed spot is left, here or on other images
    message = Signal(str)  # why a decision is not possible

    def __init__(
        self,
        document: Document,
        session: ClicksSession,
        sample: SampleQueue,
        elsewhere: Elsewhere,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._sample = document, sample
        self.session = self._session = session  # `while_shown` needs `_session`
        self._elsewhere = elsewhere
        self._go_on = False
        self._by_hand = False
        """Whether the expert selected the spot manually; only then may a decision on it be changed."""
        self._last_visited: tuple[bool, float, int] | None = None
        """Rank of the last disputed spot that was selected; the next one follows it."""
        self.spots: tuple[Spot, ...] = ()
        self.current: int | None = None
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)
        session.blind_changed.connect(self._on_blind)

    @property
    def spot(self) -> Spot | None:
        """The selected spot."""
        return None if self.current is None else self.spots[self.current]

    @property
    def blind(self) -> bool:
        """Whether votes and results are hidden until a spot is decided."""
        return self._session.blind

    @property
    def class_names(self) -> tuple[str, ...]:
        """Classes that spots may have; () without classes."""
        fusion = self._session.scene.fusion if self._session.shown else None
        return () if fusion is None or fusion.classes is None else fusion.classes.names

    def covers(self, spot: Spot) -> bool:
        """Return whether votes and results of a spot are hidden."""
        return self.blind and not spot.decided

    def _on_blind(self) -> None:
        self.spots_changed.emit()
        self.selected.emit(self.current)

    def _clear(self) -> None:
        self._last_visited = None
        self.spots = ()
        self.current = None
        self.spots_changed.emit()
        self.go_to(None)

    def _on_scene(self, scene: Scene) -> None:
        """Read the spots of another image or run."""
        previous = self._session.previous
        same = previous is not None and scene.image.id == previous.image.id
        spot = self.spot if same else None
        if not same:
            self._last_visited = None
        self._read()
        self.go_to(self._nearest(spot.x, spot.y) if spot is not None else None)

    def refresh(self) -> None:
        """Read the spots again after a decision, and select the next one if the decision was made here."""
        spot = self.spot
        self._by_hand = False
        self._read()
        self.current = self._same(spot) if spot is not None else None
        if self._go_on:
            self._go_on = False
            self.next_disputed(finish=True)
        else:
            self.selected.emit(self.current)

    def find(self, spot: Spot | SpotSubject) -> int | None:
        """Find the spot of a position in another run, or of a decision before a move."""
        index = self._nearest(spot.x, spot.y)
        if index is None and isinstance(spot, SpotSubject) and spot.from_x is not None:
            index = self._nearest(spot.from_x, spot.from_y or 0.0)
        return index

    def go_to(self, index: int | None) -> None:
        """Select a spot, or none."""
        self._by_hand = False
        self.current = index if index is not None and 0 <= index < len(self.spots) else None
        spot = self.spot
        if spot is not None and (spot.contested or DISPUTED[0] < spot.posterior < DISPUTED[1]):
            self._last_visited = self._rank(self.current or 0)
        self.selected.emit(self.current)

    @property
    def subject(self) -> CommentSubject:
        """Subject of comments and bookmarks: the selected spot, or the image."""
        return CommentSubject(of="clicks") if self.spot is None else self.spot.subject

    def select(self, index: int | None) -> None:
        """Select a spot manually; a decision on it may then be changed."""
        self.go_to(index)
        self._by_hand = self.current is not None

    def next_disputed(self, step: int = 1, *, finish: bool = False) -> None:
        """Select the next disputed spot, the most disputed first, then those of other images."""
        if self._sample.active:
            following = ELSEWHERE if self._sample.go(step) else None
        else:
            following = next_item(
                self._waiting, self._rank, self._last_visited, step, self._elsewhere, finish=finish
            )
        if following is None:
            self.selected.emit(self.current)
            self.exhausted.emit()
        elif following != ELSEWHERE:
            self.go_to(following)

    def enter(self, step: int, skipped: bool) -> None:
        """Select the first disputed spot of a new image, or the last one."""
        waiting = sorted(self._waiting(skipped), key=self._rank)
        self.go_to(waiting[0 if step > 0 else -1] if waiting else None)

    def _waiting(self, skipped: bool) -> list[int]:
        """List the undecided disputed spots, without the selected one."""
        return [
            i
            for i, spot in enumerate(self.spots)
            if spot.state == "disputed" and spot.skipped == skipped and i != self.current
        ]

    def _rank(self, index: int) -> tuple[bool, float, int]:
        """Return the sort key of a spot for review: conflicting decisions first, then by doubt."""
        spot = self.spots[index]
        return not spot.contested, -min(spot.posterior, 1 - spot.posterior), spot.number

    def decide(self, verb: str, label: str = "") -> None:
        """Accept, reject or skip the spot, and select the next disputed one after the decision is saved.

        `label`: class of an accepted spot. A spot without a decided class may get one at any time.
        """
        spot = self.spot
        if self._go_on or self.is_past():  # the previous decision is not saved yet
            return
        if spot is None or (verb == "skip" and spot.skipped):
            self.next_disputed()
            return
        adds_class = bool(label) and not spot.label and spot.state != "turned down"
        if spot.decided and not adds_class and (verb == "skip" or not self._by_hand):
            self.message.emit(
                f"Spot {spot.number} is decided already ({spot.state}). Undo, or click it, to change that; "
                "press Tab for the next one."
            )
            return
        self._go_on = True
        self._by_hand = False
        blind = self.covers(spot)
        subject = SpotSubject(x=spot.x, y=spot.y, number=spot.number, blind=blind, label=label)
        job = self._document.record(self._decision(verb, subject, spot))
        job.ended.connect(self._on_written)

    @while_shown
    def add(self, x: float, y: float) -> None:
        """Add a spot that the annotators missed."""
        if not self.is_past():
            number = max((spot.number for spot in self.spots), default=0) + 1
            added = SpotSubject(x=x, y=y, number=number)
            self._document.record(self._decision("add", added))

    def move(self, index: int, x: float, y: float) -> None:
        """Move a spot to its right position, which also accepts it."""
        if not 0 <= index < len(self.spots) or self.is_past():
            return
        spot = self.spots[index]
        moved = SpotSubject(
            x=x, y=y, number=spot.number, from_x=spot.x, from_y=spot.y, blind=self.covers(spot)
        )
        self._document.record(self._decision("move", moved, spot))

    def _decision(self, verb: str, subject: SpotSubject, spot: Spot | None = None) -> Decision:
        """Make a decision in the run on screen, on a spot or, without one, on a position."""
        scene = self._session.scene
        run = None if scene.run is None else scene.run.id
        about = None if spot is None else spot.decision
        return Decision(verb=verb, item=scene.image.id, subject=subject, run=run, about=about)

    def is_past(self) -> bool:
        """Return whether a replay is shown; if so, show a message that it allows no decisions."""
        past = self._session.shown and self._session.scene.replayed
        if past:
            self.message.emit("This is a replay. Leave it (Esc) to decide.")
        return past

    def _on_written(self) -> None:
        self._go_on = False

    @while_shown
    def _read(self) -> None:
        scene = self._session.scene
        decided = self._document.review.spots(scene.image.id)
        self.spots = spots_of(scene.fusion, len(scene.clicks.annotators), decided)
        self.current = None
        self.spots_changed.emit()

    def _same(self, previous: Spot) -> int | None:
        """Find a spot again after a decision, which may have moved it."""
        same = (
            index
            for index, spot in enumerate(self.spots)
            if previous.cluster is not None and spot.cluster == previous.cluster
        )
        return next(same, self._nearest(previous.x, previous.y))

    def _nearest(self, x: float, y: float) -> int | None:
        distances = [math.hypot(spot.x - x, spot.y - y) for spot in self.spots]
        nearest = min(range(len(distances)), key=distances.__getitem__, default=None)
        return nearest if nearest is not None and distances[nearest] <= NEAR else None
