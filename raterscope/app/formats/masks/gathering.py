"""Marks of one file put together: one mask for each annotator, image and structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.volumes.records import RaterMask

__all__ = ["Gathering", "by_label", "cropped", "part_of"]

_MOST_KEPT = 2_000_000_000
_MOST_STRUCTURES = 20
_MOST_BOXES = 1_000_000

Origin = tuple[int, int, int]
Voxel = TypeVar("Voxel", np.bool_, np.float32)


def cropped(values: NDArray[Voxel], origin: Origin = (0, 0, 0)) -> tuple[Origin, NDArray[Voxel]]:
    """Cut a mask to the box around what is not 0; of no voxels where there is nothing."""
    bounds = []
    for axis in range(3):
        marked = np.flatnonzero(values.any(axis=tuple(other for other in range(3) if other != axis)))
        if not len(marked):
            return (0, 0, 0), values[:0, :0, :0].copy()
        bounds.append((int(marked[0]), int(marked[-1]) + 1))
    box = tuple(slice(low, high) for low, high in bounds)
    at = tuple(start + low for start, (low, _) in zip(origin, bounds, strict=True))
    return (at[0], at[1], at[2]), np.ascontiguousarray(values[box])


def part_of(
    annotator: str | None, item: str | None, structure: str, grid: Grid, values: NDArray[Voxel],
    origin: Origin = (0, 0, 0),
) -> RaterMask:  # fmt: skip
    """Make a mask on a grid, or on a part of it from `origin`, into a record."""
    at, kept = cropped(values, origin)
    return RaterMask(annotator, item, structure, grid, at, kept)


def by_label(
    values: NDArray[np.integer], labels: Sequence[int], watch: Watch = silent
) -> Iterator[tuple[int, Origin, NDArray[np.bool_]]]:
    """Give the voxels of each label as a mask within the box around them; no voxels where there are none.

    Looking for all boxes at once spares looking through the whole volume for every label.
    """
    from scipy.ndimage import find_objects

    highest = max(labels, default=0)
    boxes = find_objects(values, highest) if 0 < highest <= _MOST_BOXES else None
    for at, label in enumerate(labels):
        watch(at / len(labels), "looking at labels")
        box = (
            boxes[label - 1] if boxes is not None and label > 0 else tuple(slice(0, n) for n in values.shape)
        )
        if box is None:
            yield label, (0, 0, 0), np.zeros((0, 0, 0), dtype=np.bool_)
        else:
            yield label, (box[0].start, box[1].start, box[2].start), values[box] == label


@dataclass
class _Mark:
    origin: Origin
    values: NDArray[np.bool_]


@dataclass
class Gathering:
    """Collects the marks of a file.

    Attributes
    ----------
    path : Path
        For sentences.
    """

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    _marks: dict[tuple[str | None, str | None, str], _Mark] = field(default_factory=dict)
    _boxes: list[tuple[tuple[str | None, str | None, str], Origin, NDArray[np.bool_]]] = field(
        default_factory=list
    )
    _looks: dict[tuple[str | None, str | None], Grid] = field(default_factory=dict)
    _kept: int = 0

    def look(self, annotator: str | None, item: str | None, grid: Grid) -> None:
        """Note that somebody looked at an image."""
        self._looks.setdefault((annotator, item), grid)

    def add(
        self, annotator: str | None, item: str | None, structure: str, origin: Origin,
        values: NDArray[np.bool_], *, box: bool = False,
    ) -> None:  # fmt: skip
        """Add a mark to what the annotator marked as that structure on an image that was looked at.

        A box says where something is and not what shape it has: boxes count only in a file of boxes alone.

        Raises
        ------
        InputError
            When all marks together have more voxels than are kept.
        """
        key = (annotator, item, structure)
        if not values.any():
            self._marks.setdefault(key, _Mark((0, 0, 0), np.zeros((0, 0, 0), dtype=np.bool_)))
            return
        origin, part = cropped(values, origin)
        self._count(part.size)
        if box:
            self._boxes.append((key, origin, part.astype(np.bool_, copy=False)))
            return
        self._unite(key, origin, part.astype(np.bool_, copy=False))

    def _unite(
        self, key: tuple[str | None, str | None, str], origin: Origin, part: NDArray[np.bool_]
    ) -> None:
        before = self._marks.get(key)
        if before is None or not before.values.size:
            self._marks[key] = _Mark(origin, part)
            return
        low = np.minimum(before.origin, origin)
        high = np.maximum(np.add(before.origin, before.values.shape), np.add(origin, part.shape))
        shape = tuple((high - low).tolist())
        if shape == before.values.shape:
            both = before.values
        else:
            self._count(int(np.prod(shape)) - before.values.size)
            both = np.zeros(shape, dtype=np.bool_)
            both[_within(low, before.origin, before.values.shape)] = before.values
        both[_within(low, origin, part.shape)] |= part
        self._marks[key] = _Mark((int(low[0]), int(low[1]), int(low[2])), both)

    def _count(self, voxels: int) -> None:
        self._kept += voxels
        if self._kept > _MOST_KEPT:
            raise InputError(
                f"marks more than {_MOST_KEPT // 1_000_000} million pixels in all; cut it into smaller files",
                file=self.path,
            )

    def masks(self) -> tuple[RaterMask, ...]:
        """Give the masks.

        Who looked at an image and did not mark a structure that others of the file marked there has an empty
        mask of it; on an image where nobody marked anything that holds for all structures of the file.
        """
        if not self._marks:
            for key, origin, part in self._boxes:
                self._unite(key, origin, part)
            filled = len(self._boxes)
            self._boxes = []
            if filled:
                self.left_out["filled boxes"] = 0
        marked: dict[str | None, dict[str, None]] = {}
        for _, item, structure in self._marks:
            marked.setdefault(item, {})[structure] = None
        every = dict.fromkeys(structure for _, _, structure in self._marks)
        boxed = {key for key, _, _ in self._boxes}
        fallback = every if 0 < len(every) <= _MOST_STRUCTURES else {}
        found = []
        none = np.zeros((0, 0, 0), dtype=np.bool_)
        for (annotator, item), grid in self._looks.items():
            for structure in marked.get(item, fallback):
                mark = self._marks.get((annotator, item, structure))
                if mark is None and (annotator, item, structure) in boxed:
                    continue  # there is something, of a shape that is not known
                origin, values = ((0, 0, 0), none) if mark is None else (mark.origin, mark.values)
                found.append(RaterMask(annotator, item, structure, grid, origin, values))
        return tuple(found)

    def notices(self) -> list[str]:
        """Say what was left out."""
        said = []
        if "filled boxes" in self.left_out:
            said.append("The file holds boxes alone: each was taken for a mask, filled.")
        if self._boxes:
            self.left_out["boxes"] += len(self._boxes)
        found = [f"{name} {count:,}" for name, count in self.left_out.items() if count]
        if found:
            said.append(f"Left out, for they are no masks: {', '.join(found)}.")
        return said


def _within(low: NDArray[np.int64], origin: Origin, shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(
        slice(int(at - first), int(at - first) + size)
        for first, at, size in zip(low, origin, shape, strict=True)
    )
