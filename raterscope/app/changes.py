"""Changes from one run to the next: what a fusion after decisions made of the items that are undecided.

What the expert decided is no change: it is known to them, and the run is held to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import ndimage

from raterscope.algorithms.evaluation import match
from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.masks.data import OPEN as UNSETTLED
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.disputes import least_volume, tolerance_of
from raterscope.algorithms.masks.metrics import placed
from raterscope.algorithms.masks.report import CaseResult
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.disputes import DISPUTED, disputed_tasks
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.clicks.deciding import decided_on
from raterscope.app.review import Region, ReviewState, fold, known_voxels
from raterscope.app.review.biases import Judged
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import settled_of

__all__ = ["MOST_LISTED", "Change", "Changes", "changes_of_run", "previous_run"]

MOST_LISTED = 500
"""Changes that are listed; all are counted."""

_NOUN = {"clicks": "detection", "masks": "region", "labels": "task", "pairs": "annotator"}

Box = tuple[int, int, int]


@dataclass(frozen=True)
class Change:
    """One item that another run sees otherwise.

    Attributes
    ----------
    item : int
        The image or question.
    words : str
        "0.44 -> 0.93, a detection now: spot at (140, 30), smear_2".
    size : float
        By which changes are ordered, the largest first.
    point : (x, y), optional
        Of a spot, pixels.
    name : str
        The structure, task or annotator; empty for a spot.
    box : (origin, shape), optional
        Of a region, voxels.
    """

    item: int
    words: str
    size: float
    point: tuple[float, float] | None = None
    name: str = ""
    box: tuple[Box, Box] | None = None


@dataclass(frozen=True)
class Changes:
    """What changed from one run to another.

    Attributes
    ----------
    kind : str
    before, after : RunEntry
    disputed_before, disputed_after : int
        Disputed items; of pairs, flagged annotators.
    count : int
        How many items are seen otherwise: detections, regions, classes, flags.
    newly_disputed : int
        How many more are seen as before, but are disputed now.
    listed : tuple of Change
        The first `MOST_LISTED` by size.
    ranks : int
        Of pairs: items that changed their place in the corrected ranking.
    decided : int
        How many items were disputed before and are decided by the expert since; of pairs, annotators that
        the expert flagged or cleared since.
    """

    kind: str
    before: RunEntry
    after: RunEntry
    disputed_before: int
    disputed_after: int
    count: int
    newly_disputed: int
    listed: tuple[Change, ...]
    ranks: int = 0
    decided: int = 0

    def in_words(self) -> str:
        """Say it in one line: "12 -> 3 disputed (5 decided), 4 detections changed"."""
        state = "flagged" if self.kind == "pairs" else "disputed"
        arrow = "\N{RIGHTWARDS ARROW}"
        noun = _NOUN[self.kind]
        many = f"{counted(self.count, noun)} changed" if self.count else f"no {noun} changed"
        decided = f" ({self.decided:,} decided)" if self.decided else ""
        words = f"{self.disputed_before:,} {arrow} {self.disputed_after:,} {state}{decided}, {many}"
        if self.newly_disputed:
            words += f", {self.newly_disputed:,} newly disputed"
        return words + (f", {counted(self.ranks, 'item')} changed rank" if self.ranks else "")


@dataclass
class _Found:
    disputed_before: int = 0
    disputed_after: int = 0
    ranks: int = 0
    newly_disputed: int = 0
    decided: int = 0
    changes: list[Change] = field(default_factory=list)


def previous_run(runs: Sequence[RunEntry], run: RunEntry, chosen: int | None) -> dict[int, RunEntry]:
    """Give the run that was shown of each item before a run came; items without one are left out.

    Parameters
    ----------
    runs : sequence of RunEntry
        All of the study, the oldest first.
    run : RunEntry
    chosen : int or None
        The run that was chosen to be shown when the fusion began.
    """
    earlier = [one for one in runs if one.kind == run.kind and one.id < run.id]
    earlier.sort(key=lambda one: one.id == chosen)
    return {item: one for one in earlier for item in one.items if item in run.items}


def changes_of_run(number: int, chosen: int | None, study: Study, watch: Watch = silent) -> Changes | None:
    """Compare a run with what was shown before it, item by item; None where nothing was.

    Parameters
    ----------
    number : int
        The run that came.
    chosen : int or None
        See `previous_run`.
    study : Study
    watch : Watch
    """
    run = study.run(number)
    before = previous_run(study.runs(), run, chosen)
    if not before:
        return None
    state = fold([one for one in study.decisions() if one.id <= run.known])
    names = {one.id: one.name for one in study.items()[run.kind]}
    found = _Found()
    compare = _COMPARED[run.kind]
    for done, (item, earlier) in enumerate(before.items()):
        watch(done / len(before), "comparing with the run before")
        then, now = study.result(earlier.id, item), study.result(run.id, item)
        if then is not None and now is not None:
            where = f", {plain(names.get(item, ''))}" if len(names) > 1 else ""
            compare(_Compared(study, state, item, where, earlier, run, then, now), found)
    found.changes.sort(key=lambda one: -one.size)
    return Changes(
        kind=run.kind,
        before=max(before.values(), key=lambda one: one.id if chosen is None else one.id == chosen),
        after=run,
        disputed_before=found.disputed_before,
        disputed_after=found.disputed_after,
        count=len(found.changes) - found.newly_disputed,
        newly_disputed=found.newly_disputed,
        listed=tuple(found.changes[:MOST_LISTED]),
        ranks=found.ranks,
        decided=found.decided,
    )


@dataclass(frozen=True, eq=False)
class _Compared:
    """One item and what the two runs say of it."""

    study: Study
    state: ReviewState
    item: int
    where: str
    earlier: RunEntry
    later: RunEntry
    then: Any
    now: Any

    def change(self, words: str, size: float, **about: Any) -> Change:
        return Change(self.item, f"{words}{self.where}", float(size), **about)


def _compare_clicks(at: _Compared, found: _Found) -> None:
    spots = at.state.spots(at.item)
    then, now = at.then, at.now
    old, new = then.detection.posterior, now.detection.posterior
    low, high = DISPUTED
    old_disputed, new_disputed = ((one > low) & (one < high) for one in (old, new))
    found.disputed_before += int(old_disputed.sum())
    found.disputed_after += int(new_disputed.sum())
    pairs = match(then.clustering.mean, now.clustering.mean, at.study.settings.matching_radius())
    settled_then = decided_on(then, spots).decided[: len(old)]
    settled_now = decided_on(now, spots).decided[: len(new)]
    found.decided += int((old_disputed & settled_then).sum())
    for i, j in zip(pairs.found.tolist(), pairs.truth.tolist(), strict=True):
        if settled_now[j] or settled_then[i]:
            continue
        flipped = then.detection.detected[i] != now.detection.detected[j]
        if flipped:
            state = "a detection now" if now.detection.detected[j] else "no detection any more"
        elif new_disputed[j] and not old_disputed[i]:
            state = "disputed now"
            found.newly_disputed += 1
        else:
            continue
        x, y = map(float, now.clustering.mean[j])
        words = f"{_step(old[i], new[j])}, {state}: spot at ({x:.0f}, {y:.0f})"
        found.changes.append(at.change(words, flipped + abs(new[j] - old[i]), point=(x, y)))
    for fusion, settled, matched, state in (
        (then, settled_then, pairs.found, "gone"),
        (now, settled_now, pairs.truth, "new detection"),
    ):
        alone = fusion.detection.detected & ~settled
        alone[matched] = False
        for m in np.flatnonzero(alone).tolist():
            x, y = map(float, fusion.clustering.mean[m])
            found.changes.append(at.change(f"{state}: spot at ({x:.0f}, {y:.0f})", 2.0, point=(x, y)))


def _compare_masks(at: _Compared, found: _Found) -> None:
    then, now = at.then, at.now
    assert isinstance(then, CaseResult)
    assert isinstance(now, CaseResult)
    found.disputed_before += sum(len(one.disputes) for one in then.reports)
    found.disputed_after += sum(len(one.disputes) for one in now.reports)
    regions = at.state.regions(at.item)
    settled = settled_of(at.study, regions)
    found.decided += len(_decided_regions(at, regions))
    earlier = {one.structures[0]: one for one in then.fusions}
    for fusion in now.fusions:
        structure = fusion.structures[0]
        before = earlier.get(structure)
        if before is None:
            continue
        low = tuple(np.minimum(before.origin, fusion.origin).tolist())
        high = np.maximum(np.add(before.origin, before.shape), np.add(fusion.origin, fusion.shape))
        shape = tuple(np.subtract(high, low).tolist())
        inside = placed(fusion, fusion.mask[0], low, shape) > 0
        differs = inside != (placed(before, before.mask[0], low, shape) > 0)
        known = known_voxels(regions, settled, structure, low, shape)
        if known is not None:
            differs &= known == UNSETTLED
        labels, _ = ndimage.label(differs, structure=np.ones((3, 3, 3)))
        sizes = np.bincount(labels.ravel())
        boxes = ndimage.find_objects(labels)
        small = np.flatnonzero((sizes < _least_voxels(fusion, before)) & (sizes > 0))
        small = small[small > 0]
        if len(small):
            largest = boxes[int(small[np.argmax(sizes[small])]) - 1]
            start, size = _corner_and_size(largest, low)
            words = f"{counted(int(sizes[small].sum()), 'voxel')} in {counted(len(small), 'small region')}"
            words += f": {plain(structure)}"
            found.changes.append(at.change(words, int(sizes[small].sum()), name=structure, box=(start, size)))
        for number in np.setdiff1d(np.arange(1, len(boxes) + 1), small).tolist():
            box = boxes[number - 1]
            here = labels[box] == number
            added = int((inside[box] & here).sum())
            removed = int(sizes[number]) - added
            words = " and ".join(
                f"{counted(many, 'voxel')} {how}"
                for many, how in ((added, "now inside"), (removed, "now outside"))
                if many
            )
            start, size = _corner_and_size(box, low)
            words += f": {plain(structure)}, slice {start[0] + size[0] // 2 + 1}"
            found.changes.append(at.change(words, int(sizes[number]), name=structure, box=(start, size)))


def _decided_regions(at: _Compared, regions: Sequence[Region]) -> set[tuple[str, int | None]]:
    """Give structure and number of the regions of the earlier run that the expert decided."""
    return {
        (one.subject.structure, one.subject.number)
        for one in regions
        if one.run == at.earlier.id and one.subject.number is not None and one.voxels is not None
    }


def _corner_and_size(box: tuple[slice, ...], low: tuple[int, ...]) -> tuple[Box, Box]:
    """Give where a box begins in the whole image, and its size."""
    first, second, third = (int(one.start + at) for one, at in zip(box, low, strict=True))
    depth, height, width = (int(one.stop - one.start) for one in box)
    return (first, second, third), (depth, height, width)


def _least_voxels(fusion: MaskFusion, before: MaskFusion) -> float:
    """Give how many voxels a changed region needs to be listed by itself, as a disputed region does."""
    inside = next((one.mask[0] > 0 for one in (fusion, before) if one.mask[0].any()), None)
    if inside is None:
        return 0.0
    voxel = float(np.prod(fusion.spacing))
    tolerance = tolerance_of(inside, fusion.spacing)
    flat = fusion.frame[0] == 1
    return least_volume(tolerance, fusion.spacing, inside.sum() * voxel, flat=flat) / voxel


def _compare_labels(at: _Compared, found: _Found) -> None:
    then, now = at.then, at.now
    assert isinstance(then, LabelResult)
    assert isinstance(now, LabelResult)
    before, after = then.fusion, now.fusion
    old_names = at.study.crowd(at.item, at.earlier.imported).tasks
    new_names = at.study.crowd(at.item, at.later.imported).tasks
    old_disputed, new_disputed = (disputed_tasks(one) for one in (before, after))
    found.disputed_before += int(old_disputed.sum())
    found.disputed_after += int(new_disputed.sum())
    number = {name: task for task, name in enumerate(old_names)}
    was, now_is = before.label(), after.label()
    decided = at.state.tasks(at.item)
    for task, name in enumerate(new_names[: len(now_is)]):
        earlier = number.get(name)
        settled = after.known[task] != OPEN or name in decided
        if settled and earlier is not None and earlier < len(was) and old_disputed[earlier]:
            found.decided += 1
        if settled or earlier is None or earlier >= len(was):
            continue
        old, new = before.classes[was[earlier]], after.classes[now_is[task]]
        shares = float(before.posterior[earlier, was[earlier]]), float(after.posterior[task, now_is[task]])
        if old != new:
            classes = f"{plain(old)} \N{RIGHTWARDS ARROW} {plain(new)}"
            words = f"{classes} ({_share(shares[1])}): {plain(name)}"
            found.changes.append(at.change(words, 1 + shares[1], name=name))
        elif new_disputed[task] and not old_disputed[earlier]:
            found.newly_disputed += 1
            words = f"{_step(*shares)}, {plain(new)}, disputed now: {plain(name)}"
            found.changes.append(at.change(words, shares[0] - shares[1], name=name))


def _compare_pairs(at: _Compared, found: _Found) -> None:
    before, after = at.then, at.now
    names = at.study.annotators()
    old = _flags(before, at.study.bench(at.item, at.earlier.imported).people)
    new = _flags(after, at.study.bench(at.item, at.later.imported).people)
    then = fold([one for one in at.study.decisions() if one.id <= at.earlier.known])
    judged, earlier = at.state.judged(at.item), then.judged(at.item)
    found.disputed_before += _count_flagged(old, names, earlier)
    found.decided += sum(
        name not in earlier or earlier[name].verb != one.verb for name, one in judged.items()
    )
    found.disputed_after += _count_flagged(new, names, judged)
    for who, (flag, bias) in new.items():
        if who in old and old[who][0] != flag and names[who] not in judged:
            state = "flagged now" if flag else "not flagged any more"
            biases = f"{old[who][1]:+.2f} \N{RIGHTWARDS ARROW} {bias:+.2f}"
            words = f"{state}: {plain(names[who])} (bias {biases})"
            found.changes.append(at.change(words, abs(np.nan_to_num(bias)), name=names[who]))
    if len(before.corrected) == len(after.corrected):
        ranks = [np.argsort(np.argsort(-one.corrected, kind="stable")) for one in (before, after)]
        found.ranks += int((ranks[0] != ranks[1]).sum())


def _flags(fusion: Any, people: np.ndarray) -> dict[int, tuple[bool, float]]:
    flags = zip(people.tolist(), fusion.flagged.tolist(), fusion.bias.tolist(), strict=False)
    return {who: (flag, bias) for who, flag, bias in flags}


def _count_flagged(
    flags: Mapping[int, tuple[bool, float]], names: Sequence[str], judged: Mapping[str, Judged]
) -> int:
    """Count who is flagged with the expert's word in place of the run's."""
    return sum(
        judged[names[who]].verb == "flag" if names[who] in judged else flag
        for who, (flag, _) in flags.items()
    )


def _step(old: float, new: float) -> str:
    return f"{_share(old)} \N{RIGHTWARDS ARROW} {_share(new)}"


def _share(value: float) -> str:
    return f"{value:.2f}"


_COMPARED: Mapping[str, Callable[[_Compared, _Found], None]] = {
    "clicks": _compare_clicks,
    "masks": _compare_masks,
    "labels": _compare_labels,
    "pairs": _compare_pairs,
}
