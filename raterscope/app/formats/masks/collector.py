"""Collector of the marks of one file: one mask for each annotator, image and structure."""

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
from raterscope.app.coding import NOTHING_CODED, Coding
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.shapes import Box, Drawing
from raterscope.app.formats.volumes.records import RaterMask

__all__ = ["Gathering", "by_label", "cropped", "part_of", "refuse_total"]

_MOST_KEPT = 2_000_000_000
_ALWAYS_KEPT = 300_000_000
_KEPT_A_BYTE = 20
_MOST_STRUCTURES = 20
_MOST_BOXES = 1_000_000

Origin = tuple[int, int, int]
Voxel = TypeVar("Voxel", np.bool_, np.float32)


def cropped(values: NDArray[Voxel], origin: Origin = (0, 0, 0)) -> tuple[Origin, NDArray[Voxel]]:
    """Cut a mask to the box around what is not 0; of no voxels where there is nothing."""
    part, first = values, list(origin)
    for axis in range(3):
        others = tuple(other for other in range(3) if other != axis)
        largest = part.dtype.kind == "u" and part.size > 0  # which is several times faster to find
        marked = np.flatnonzero(part.max(axis=others) if largest else part.any(axis=others))
        if not len(marked):
            return (0, 0, 0), values[:0, :0, :0].copy()
        first[axis] += int(marked[0])
        part = part[(slice(None),) * axis + (slice(marked[0], marked[-1] + 1),)]
    return (first[0], first[1], first[2]), np.ascontiguousarray(part)


def part_of(
    annotator: str | None, item: str | None, structure: str, grid: Grid, values: NDArray[Voxel],
    origin: Origin = (0, 0, 0), coding: Coding = NOTHING_CODED,
) -> RaterMask:  # fmt: skip
    """Make a mask on a grid, or on a part of it from `origin`, into a record."""
    at, kept = cropped(values, origin)
    return RaterMask(annotator, item, structure, grid, at, kept, coding)


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


def refuse_total(path: Path, voxels: int) -> None:
    """Refuse marks that have more voxels in all than a file of its size may ask for.

    Parameters
    ----------
    path : Path
        The file; a small one may ask for 300 million, and for 20 more with each byte that it has.
    voxels : int
        In the boxes of all its marks together, counted before any is drawn.

    Raises
    ------
    InputError
    """
    most = min(_MOST_KEPT, _ALWAYS_KEPT + _KEPT_A_BYTE * path.stat().st_size)
    if voxels > most:
        words = f"marks {voxels / 1e6:,.0f} million pixels in all"
        raise InputError(f"{words}; expected {most // 1_000_000:,} million at most, cut it up", file=path)


Key = tuple[str | None, str | None, str]
"""Annotator, image and structure."""


@dataclass
class Gathering:
    """Collects the marks of a file, and draws them once it is known what they add up to.

    Attributes
    ----------
    path : Path
        For sentences.
    """

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    _marks: dict[Key, list[tuple[str, Drawing]]] = field(default_factory=dict)
    _boxes: dict[Key, list[tuple[str, Drawing]]] = field(default_factory=dict)
    _looks: dict[tuple[str | None, str | None], Grid] = field(default_factory=dict)

    def look(self, annotator: str | None, item: str | None, grid: Grid) -> None:
        """Note that somebody looked at an image."""
        self._looks.setdefault((annotator, item), grid)

    def add(
        self, annotator: str | None, item: str | None, structure: str, drawing: Drawing, field: str = "",
        *, box: bool = False,
    ) -> None:  # fmt: skip
        """Add a mark to what the annotator marked as that structure on an image that was looked at.

        A box says where something is and not what shape it has: boxes count only in a file of boxes alone.
        `field` says where in the file the mark is, for sentences.
        """
        marks = self._boxes if box and drawing.pixels else self._marks
        marks.setdefault((annotator, item, structure), []).append((field, drawing))

    def _drawn(self, pieces: list[tuple[str, Drawing]]) -> tuple[Origin, NDArray[np.bool_]]:
        """Draw what one annotator marked as a structure on an image."""
        whole = _around(pieces)
        values = np.zeros((1, whole[2], whole[3]), dtype=np.bool_)
        for where, drawing in pieces:
            try:
                patch = drawing.draw()
            except ValueError as error:
                raise InputError(
                    f"cannot be read: it has {error}", file=self.path, field=where or None
                ) from None
            if patch is not None:
                row, column, mask = patch[0] - whole[0], patch[1] - whole[1], patch[2]
                values[0, row : row + mask.shape[0], column : column + mask.shape[1]] |= mask
        return cropped(values, (0, whole[0], whole[1]))

    def masks(self, watch: Watch = silent) -> tuple[RaterMask, ...]:
        """Give the masks.

        Who looked at an image and did not mark a structure that others of the file marked there has an empty
        mask of it; on an image where nobody marked anything that holds for all structures of the file.

        Raises
        ------
        InputError
            For a mark that cannot be drawn, and for more pixels in all than the file may ask for.
        """
        if not self._marks and self._boxes:
            self._marks, self._boxes = self._boxes, {}
            self.left_out["filled boxes"] = 0
        refuse_total(self.path, sum(map(_pixels_of, self._marks.values())))
        marked: dict[str | None, dict[str, None]] = {}
        for _, item, structure in self._marks:
            marked.setdefault(item, {})[structure] = None
        every = dict.fromkeys(structure for _, _, structure in self._marks)
        fallback = every if 0 < len(every) <= _MOST_STRUCTURES else {}
        found = []
        for at, ((annotator, item), grid) in enumerate(self._looks.items()):
            watch(at / len(self._looks), "drawing marks")
            for structure in marked.get(item, fallback):
                key = (annotator, item, structure)
                if key not in self._marks and key in self._boxes:
                    continue  # there is something, of a shape that is not known
                origin, values = self._drawn(self._marks.get(key, []))
                found.append(RaterMask(annotator, item, structure, grid, origin, values))
        return tuple(found)

    def notices(self) -> list[str]:
        """Say what was left out."""
        said = []
        if "filled boxes" in self.left_out:
            said.append("The file holds boxes alone: each was taken for a mask, filled.")
        if self._boxes:
            self.left_out["boxes"] += sum(map(len, self._boxes.values()))
        found = [f"{name} {count:,}" for name, count in self.left_out.items() if count]
        if found:
            said.append(f"Left out, for they are no masks: {', '.join(found)}.")
        return said


def _around(pieces: list[tuple[str, Drawing]]) -> Box:
    boxes = [drawing.box for _, drawing in pieces if drawing.pixels]
    if not boxes:
        return 0, 0, 0, 0
    top, left = (min(box[k] for box in boxes) for k in (0, 1))
    bottom, right = (max(box[k] + box[k + 2] for box in boxes) for k in (0, 1))
    return top, left, bottom - top, right - left


def _pixels_of(pieces: list[tuple[str, Drawing]]) -> int:
    """Count the pixels that are drawn, and those of the mask that they make together."""
    whole = _around(pieces)
    return sum(drawing.pixels for _, drawing in pieces) + (whole[2] * whole[3] if len(pieces) > 1 else 0)
