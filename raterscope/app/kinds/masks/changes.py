"""Changes of an item of masks from one run to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from raterscope.algorithms.masks.data import OPEN as UNSETTLED
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.disputes import least_volume, tolerance_of
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.masks.metrics import placed
from raterscope.app.comparison import Box, ComparedItem, Differences
from raterscope.app.errors import counted, plain
from raterscope.app.review import Region, known_voxels
from raterscope.app.study.masks import settled_of


def compare_runs(at: ComparedItem, found: Differences) -> None:
    """Compare the item by two runs and fill in the differences."""
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


def _decided_regions(at: ComparedItem, regions: Sequence[Region]) -> set[tuple[str, int | None]]:
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
