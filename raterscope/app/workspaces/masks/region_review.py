"""Review of a case: disputed regions, decisions about them, and painted corrections."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.algorithms.masks.distance import interpolate
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch
from raterscope.app.contents import Written
from raterscope.app.document import Document
from raterscope.app.jobs import Job, Jobs
from raterscope.app.review import Decision, Region, RegionSubject
from raterscope.app.session import while_shown
from raterscope.app.study.masks import settle_by
from raterscope.app.workspaces.masks.scene import (
    DisputedRegion,
    MasksSession,
    Piece,
    Scene,
    consensus_of,
    drawn_whole,
    read_settled,
    regions_of,
)
from raterscope.app.workspaces.review_order import ELSEWHERE, Elsewhere, next_item
from raterscope.app.workspaces.sample_queue import SampleQueue
from raterscope.widgets.volume.scene import Stroke

DRAW_FIRST = "Draw it first with the brush (B), or erase (E). Then press A to settle it as you drew it."
UNCOVERED = "The masks of the raters and the result of the model are visible now. Press Tab to continue."


class RegionReview(QObject):
    """Disputed regions of the structure on screen, the selected one, and the consensus with decisions.

    `sample`: leads through an open acceptance sample. `elsewhere`: continues with other structures and cases;
    see `next_item`.
    """

    regions_changed = Signal()  # another case, run or structure, or a decision
    selected = Signal(object)  # another region is selected
    evidence_changed = Signal(object)  # the selected region has other evidence
    consensus_changed = Signal()  # the consensus with decisions changed
    exhausted = Signal()  # no other disputed region is left, here or elsewhere
    message = Signal(str)  # why a decision was refused

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        session: MasksSession,
        sample: SampleQueue,
        elsewhere: Elsewhere,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._sample = document, sample
        self._jobs = jobs
        self.session = self._session = session
        self._elsewhere = elsewhere
        self._go_on = False
        self._by_hand = False
        """Whether the expert selected the region manually; only then may a decision on it be changed."""
        self._strokes: set[int] = set()
        """Decisions painted on one slice since the last interpolation."""
        self._stroked = ""
        """The structure of these decisions."""
        self._unsaved: deque[Settled] = deque()
        self.regions: tuple[DisputedRegion, ...] = ()
        self.current: int | None = None
        self.consensus: Piece | None = None
        self.drawn: Piece | None = None
        """Settled voxels of the structure, kept while it is covered."""
        session.scene_changed.connect(self._on_scene)
        session.part_changed.connect(self._on_structure)
        session.cleared.connect(self._clear)
        session.blind_changed.connect(self._refresh)

    @property
    def region(self) -> DisputedRegion | None:
        """The selected region."""
        return None if self.current is None else self.regions[self.current]

    @property
    def following(self) -> DisputedRegion | None:
        """The region of this structure that comes after the selected one is settled; None without."""
        if self.current is None:
            return None
        index = next_item(
            self._waiting, self._rank, self._rank(self.current), 1, lambda *_: False, finish=True
        )
        return None if index is None else self.regions[index]

    @property
    def covered(self) -> bool:
        """Whether masks and results of the structure are hidden: in blind mode until all is settled."""
        return self._session.covered

    @property
    def edited(self) -> Piece | None:
        """Mask that brush and eraser change: the consensus with decisions, or the expert's own drawing."""
        return self.drawn if self.covered else self.consensus

    def covers(self, region: DisputedRegion) -> bool:
        """Return whether masks and results of a region are hidden."""
        return self.covered and region.unsettled

    # Selection

    def _clear(self) -> None:
        self._unsaved.clear()
        self._strokes.clear()
        self._stroked = ""
        with self._session.change():
            self._session.set_covered(False)
            self.regions, self.consensus, self.drawn, self.current = (), None, None, None
            self.regions_changed.emit()
            self.consensus_changed.emit()
        self.go_to(None)

    def _on_scene(self, scene: Scene) -> None:
        """Show another case or run."""
        previous, structure = self._session.previous, self._session.part
        same = previous is not None and previous.image.id == scene.image.id
        index = self.current if same and structure == self._stroked else None
        if not same:
            self._unsaved.clear()
        if not same or structure != self._stroked:
            self._strokes.clear()
            self._stroked = structure
        self._read()
        self.go_to(index if index is not None and index < len(self.regions) else None)

    def _on_structure(self, structure: str) -> None:
        if structure != self._stroked:
            self._strokes.clear()
            self._stroked = structure
            self.current = None
        index = self.current
        self._read()
        self.go_to(index)

    def go_to(self, index: int | None) -> None:
        """Select a region, or none."""
        self._by_hand = False
        self.current = index if index is not None and 0 <= index < len(self.regions) else None
        self.selected.emit(self.region)

    def select(self, index: int | None) -> None:
        """Select a region manually; a decision on it may then be changed."""
        self.go_to(index)
        self._by_hand = self.current is not None

    def next_disputed(self, step: int = 1, *, finish: bool = False) -> None:
        """Go to the next disputed region, of this structure or of other structures and cases."""
        if self._sample.active:
            following = ELSEWHERE if self._sample.go(step) else None
        else:
            current = None if self.current is None else self._rank(self.current)
            following = next_item(self._waiting, self._rank, current, step, self._elsewhere, finish=finish)
        if following is None:
            self.selected.emit(self.region)
            self.exhausted.emit()
        elif following != ELSEWHERE:
            self.go_to(following)
        elif finish:  # the decision shows until the other case is read
            self.evidence_changed.emit(self.region)

    def enter(self, step: int, skipped: bool) -> None:
        """Select the first undecided region of a new structure, or the last one."""
        waiting = sorted(self._waiting(skipped), key=self._rank)
        self.go_to(waiting[0 if step > 0 else -1] if waiting else None)

    def _waiting(self, skipped: bool) -> list[int]:
        """List the undecided regions, without the selected one."""
        state = "skipped" if skipped else "undecided"
        return [i for i, region in enumerate(self.regions) if region.state == state and i != self.current]

    def _rank(self, index: int) -> tuple[bool, int]:
        """Return the sort key of a region for review: conflicting decisions first."""
        return not self.regions[index].contested, index

    def return_to(self, target: Decision) -> None:
        """Select the region of a decision that was undone or redone, unless it was a stroke."""
        subject = target.subject
        if not isinstance(subject, RegionSubject) or subject.number is None or not self._session.shown:
            return
        if target.verb == "paint" and not subject.blind:
            return
        run = self._session.scene.run
        is_shown = run is not None and run.id == target.run
        if is_shown and subject.structure == self._session.part and subject.number - 1 != self.current:
            self.go_to(subject.number - 1)

    # Decisions

    def _may_decide(self) -> bool:
        """Refuse to change a decision, unless the expert selected the region manually."""
        region = self.region
        if region is None or region.unsettled or self._by_hand:
            return True
        state = f"taken from {region.rater}" if region.rater and not self.covered else region.state
        self.message.emit(
            f"Region {region.number} is settled already ({state}). Undo, or click its box, to change that; "
            "press Tab for the next one."
        )
        return False

    def accept(self) -> None:
        """Accept the consensus in the region; while covered, settle the region or structure as drawn."""
        region = self.region
        if self.covered and (region is None or region.unsettled):
            self._settle_drawn(region)
        elif region is None or self.consensus is None:
            self.next_disputed()
        elif self._may_decide():
            self._decide(
                "accept", region, settle_by(region.dispute, self.consensus.origin, self.consensus.values)
            )

    def take(self, rater: str) -> None:
        """Settle the region by the mask of one rater."""
        region = self.region
        masks = self._session.scene.drawn(self._session.part) if region is not None else {}
        if region is None or rater not in masks or self.covers(region):
            self.message.emit("Select a disputed region first. Tab goes to the next.")
            return
        if not self._may_decide():
            return
        self._decide(
            "take", region, settle_by(region.dispute, masks[rater].origin, masks[rater].values), rater
        )

    def skip(self) -> None:
        """Skip the region; it is shown again at the end."""
        if self.region is None or self.region.state == "skipped":
            self.next_disputed()
        elif not self.region.unsettled:
            self._by_hand = False  # a settled region cannot be skipped
            self._may_decide()
        else:
            self._decide("skip", self.region, None)

    def paint(self, stroke: Stroke, edit: str = "") -> Job | None:
        """Settle the voxels of a stroke or another edit; return the job that stores them."""
        touched = np.argwhere(stroke.values != OPEN)
        if not len(touched) or not self._session.shown:
            return None
        settled = _trimmed(Settled(stroke.origin, stroke.values))
        region = self.region
        if region is not None and (self.covers(region) or not _touches(region, settled)):
            region = None  # in blind mode, only an explicit decision settles a region, not the first stroke
        if not edit and not (settled.value == 1).any():
            edit = "erase"
        job = self._record("paint", settled, region, edit=edit)
        if stroke.values.shape[0] == 1:
            job.finished.connect(self._on_stroke)
        return job

    def interpolate(self) -> None:
        """Interpolate between the last painted slices, within the painted area."""
        consensus = self.edited
        settled = self._session.scene.settled if self._session.shown else {}
        voxel_ids = [decision.voxels for decision in self.decisions() if decision.decision in self._strokes]
        strokes = [settled[voxels] for voxels in voxel_ids if voxels is not None and voxels in settled]
        painted = sorted({stroke.origin[0] for stroke in strokes})
        if consensus is None or len(painted) < 2:
            self.message.emit("Paint on two slices of the large view first, to interpolate between them.")
            return
        if painted[-1] - painted[0] + 1 == len(painted):
            self.message.emit("There is no slice between those that you painted.")
            return
        scene = self._session.scene
        work = partial(_interpolated, strokes, consensus, scene.image.lattice)
        job = self._jobs.start("Filling in slices", work, quiet=True)
        job.finished.connect(partial(self._on_interpolated, scene))
        job.failed.connect(self.message)

    @while_shown
    def decided(self, decision: Decision) -> None:
        """Show a decision that was stored, undone or redone."""
        target = self._document.contents and self._document.contents.target(decision)
        if not target:
            return
        scene = self._session.scene
        if decision is not target:
            self.return_to(target)
        if decision is target and decision.voxels is not None and self._unsaved:
            self._on_settled(scene, decision.voxels, self._unsaved.popleft())
        elif target.voxels is not None and target.voxels not in scene.settled:
            job = self._document.ask("Reading settled voxels", partial(read_settled, target.voxels))
            job.finished.connect(partial(self._on_settled, scene, target.voxels))
        else:
            self._refresh()

    def _settle_drawn(self, region: DisputedRegion | None) -> None:
        drawn = self.drawn
        if region is None and drawn is None and self.regions:
            self.next_disputed()
        elif drawn is None:
            self.message.emit(DRAW_FIRST)
        elif region is not None:
            self._decide("paint", region, settle_by(region.dispute, drawn.origin, drawn.values))
        elif not self._go_on:
            self._go_on = True
            scene, structure = self._session.scene, self._session.part
            work = partial(_all_as_drawn, drawn, scene, structure)
            job = self._jobs.start("Settling your drawing", work, quiet=True)
            job.finished.connect(partial(self._on_whole, scene, structure))
            job.failed.connect(self.message)
            job.ended.connect(self._on_ended)

    def _on_whole(self, scene: Scene, structure: str, settled: Settled) -> None:
        if self._is_of(scene) and structure == self._session.part and self.covered:
            job = self._record("paint", settled, None, whole_structure=True)
            job.finished.connect(self._on_whole_written)

    def _is_of(self, scene: Scene) -> bool:
        """Return whether the case of a scene is still on screen."""
        return self._session.shown and self._session.scene.image.id == scene.image.id

    def _on_whole_written(self, _written: object) -> None:
        self.message.emit(UNCOVERED)

    def _decide(self, verb: str, region: DisputedRegion, settled: Settled | None, rater: str = "") -> None:
        if self._go_on:  # the previous decision is not saved yet
            return
        self._go_on = True
        self._by_hand = False
        covered = self.covered
        job = self._record(verb, settled, region, rater)
        job.finished.connect(partial(self._on_written, region, covered))
        job.ended.connect(self._on_ended)

    def _record(
        self,
        verb: str,
        settled: Settled | None,
        region: DisputedRegion | None,
        rater: str = "",
        *,
        whole_structure: bool = False,
        edit: str = "",
    ) -> Job:
        scene = self._session.scene
        if region is not None and (settled is None or verb != "paint"):
            origin, shape = region.dispute.origin, region.dispute.shape
        else:
            assert settled is not None
            z, y, x = settled.value.shape
            origin, shape = settled.origin, (z, y, x)
        subject = RegionSubject(
            structure=self._session.part, origin=origin, shape=shape, rater=rater,
            number=None if region is None else region.number, whole=whole_structure, blind=self.covered,
            edit=edit,
        )  # fmt: skip
        job = self._document.record(
            Decision(
                verb=verb, item=scene.image.id, subject=subject, settled=settled,
                run=None if scene.run is None else scene.run.id,
                about=None if region is None else region.decision,
            )
        )  # fmt: skip
        if settled is not None:
            self._unsaved.append(settled)
            job.failed.connect(partial(self._on_not_written, settled))
        return job

    def _on_ended(self) -> None:
        if self._go_on:  # it failed, and another decision may be shown
            self._go_on = False
            self.evidence_changed.emit(self.region)

    def _on_written(self, region: DisputedRegion, covered: bool, _written: object) -> None:
        """Go to the next region, unless the expert selected another one or the structure was uncovered."""
        now = self.region
        self._go_on = False
        if now is None or (now.structure, now.number) != (region.structure, region.number):
            self.evidence_changed.emit(now)
        elif covered and not self.covered:
            self.evidence_changed.emit(now)
            self.message.emit(UNCOVERED)
        else:
            self.next_disputed(finish=True)

    def _on_not_written(self, settled: Settled, _sentence: str) -> None:
        self._unsaved = deque(unwritten for unwritten in self._unsaved if unwritten is not settled)

    def _on_settled(self, scene: Scene, voxels: int, settled: Settled) -> None:
        if self._is_of(scene):
            scene_now = self._session.scene
            self._session.amend(replace(scene_now, settled={**scene_now.settled, voxels: settled}))
            self._refresh()

    def _on_interpolated(self, scene: Scene, settled: Settled | None) -> None:
        if not self._is_of(scene):
            return
        if settled is None:
            self.message.emit("The slices between need no change.")
            return
        self._strokes.clear()
        self._record("paint", settled, None, edit="interpolate")

    def _on_stroke(self, written: Written) -> None:
        self._strokes.add(written.decision.id)

    @while_shown
    def _refresh(self) -> None:
        self._read()
        if not self._go_on:  # otherwise the next region follows, and is shown once
            self.evidence_changed.emit(self.region)

    def _read(self) -> None:
        scene, structure, decided = self._session.scene, self._session.part, self.decisions()
        self.regions = regions_of(scene, structure, decided)
        consensus = consensus_of(scene, structure, decided)
        if self.consensus is None or consensus is None or not self.consensus.matches(consensus):
            self.consensus = consensus  # the same object keeps its outlines
        settled = bool(self.regions) and not any(region.unsettled for region in self.regions)
        covered = self._session.blind and not settled and not drawn_whole(decided, structure)
        self.drawn = consensus_of(replace(scene, result=None), structure, decided) if covered else None
        if self.current is not None and self.current >= len(self.regions):
            self.current = None
        with self._session.change():
            self._session.set_covered(covered)
            self.regions_changed.emit()
            self.consensus_changed.emit()

    def decisions(self) -> list[Region]:
        """List the decisions on the case, oldest first."""
        if not self._session.shown:
            return []
        return self._document.review.regions(self._session.scene.image.id)


def _trimmed(settled: Settled) -> Settled:
    """Crop a mask to its settled voxels."""
    touched = np.argwhere(settled.value != OPEN)
    low, high = touched.min(axis=0), touched.max(axis=0) + 1
    origin = np.add(settled.origin, low)
    part = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    return Settled((int(origin[0]), int(origin[1]), int(origin[2])), settled.value[part].copy())


def _all_as_drawn(drawn: Piece, scene: Scene, structure: str, watch: Watch) -> Settled:
    """Settle a structure wherever any annotator marked it: inside the expert's drawing, outside elsewhere."""
    watch(0.0, "settling your drawing")
    pieces: list[tuple[tuple[int, ...], tuple[int, ...]]] = [(drawn.origin, drawn.values.shape)]
    pieces += [
        (mask.origin, mask.values.shape) for mask in scene.masks[structure].values() if mask.values.size
    ]
    fusion = scene.fusion(structure)
    if fusion is not None:
        pieces.append((fusion.origin, fusion.shape))
    low = np.min([origin for origin, _ in pieces], axis=0)
    high = np.max([np.add(origin, shape) for origin, shape in pieces], axis=0)
    value = np.zeros(tuple(high - low), dtype=np.int8)
    corner = np.subtract(drawn.origin, low)
    box = tuple(slice(at, at + n) for at, n in zip(corner, drawn.values.shape, strict=True))
    value[box] = drawn.values
    return Settled((int(low[0]), int(low[1]), int(low[2])), value)


def _touches(region: DisputedRegion, settled: Settled) -> bool:
    low = np.maximum(region.dispute.origin, settled.origin)
    high = np.minimum(
        np.add(region.dispute.origin, region.dispute.shape), np.add(settled.origin, settled.value.shape)
    )
    return bool((high > low).all())


def _interpolated(strokes: Sequence[Settled], consensus: Piece, grid: Grid, watch: Watch) -> Settled | None:
    """Settle the slices between strokes, within the painted area; None if nothing changes.

    Added and removed areas are each interpolated from slice to slice (see `interpolate`).
    """
    watch(0.0, "filling in slices")
    low = np.min([stroke.origin for stroke in strokes], axis=0)
    high = np.max([np.add(stroke.origin, stroke.value.shape) for stroke in strokes], axis=0)
    painted = np.full(tuple(high - low), OPEN, dtype=np.int8)
    for stroke in strokes:  # the latest one decides
        box = _within(stroke.origin, stroke.value.shape, low)
        np.copyto(painted[box], stroke.value, where=stroke.value != OPEN)
    first, keys = int(low[0]), [int(at) for at in np.flatnonzero((painted != OPEN).any(axis=(1, 2)))]
    value = np.full(painted.shape, OPEN, dtype=np.int8)
    for put_in in (0, 1):
        slices = {first + at: np.asarray(painted[at] == put_in) for at in keys}
        for at, area in interpolate(slices, grid.spacing, grid.uneven_positions).items():
            value[at - first][area] = put_in
    current = np.zeros(value.shape, dtype=np.bool_)
    low_shared = np.maximum(low, consensus.origin)
    high_shared = np.minimum(high, np.add(consensus.origin, consensus.values.shape))
    if (high_shared > low_shared).all():
        extent = tuple(int(n) for n in high_shared - low_shared)
        current[_within(low_shared, extent, low)] = consensus.values[
            _within(low_shared, extent, consensus.origin)
        ]
    if not ((value != OPEN) & (value != current)).any():
        return None
    return _trimmed(Settled((int(low[0]), int(low[1]), int(low[2])), value))


def _within(
    origin: Sequence[int] | NDArray[np.integer],
    shape: Sequence[int],
    corner: Sequence[int] | NDArray[np.integer],
) -> tuple[slice, ...]:
    """Return the index slices of a box within a part of the image with a given origin."""
    begins = np.subtract(origin, corner)
    return tuple(slice(int(at), int(at) + n) for at, n in zip(begins, shape, strict=True))
