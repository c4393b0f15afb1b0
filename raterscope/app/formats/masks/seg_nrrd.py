"""The .seg.nrrd of 3D Slicer: named segments, in one or several layers of labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.coded import terminology_coding
from raterscope.app.formats.masks.gathering import by_label, part_of
from raterscope.app.formats.masks.naming import NOTHING, Named
from raterscope.app.formats.strangers import text_of
from raterscope.app.formats.volumes.nrrd_files import read_head
from raterscope.app.formats.volumes.records import MaskTable, RaterMask
from raterscope.app.formats.volumes.voxel_files import read_all

__all__ = ["has_segments", "read_seg_nrrd"]

_FIELD = re.compile(r"Segment(\d{1,6})_(Name|LabelValue|Layer|Color|Tags)")
_MOST_SEGMENTS = 10_000


def has_segments(path: Path) -> bool:
    """Tell by its header whether an NRRD file has segments."""
    return any(_FIELD.fullmatch(str(key)) for key in read_head(path).fields)


def read_seg_nrrd(path: Path, names: Named = NOTHING, watch: Watch = silent) -> MaskTable:
    """Read each segment as a structure.

    A segment without a label has its number plus one, as files had before segments could share a layer:
    there, layer and segment were one.

    Raises
    ------
    InputError
        For a file without segments, and for a segment in a layer that is not there.
    """
    head = read_head(path)
    segments = _segments(path, head.fields)
    layers = read_all(head, part(watch, 0.0, 0.7))
    if layers.dtype.kind not in "iu":
        layers = np.rint(layers).astype(np.int64)
    placed: dict[int, dict[int, int]] = {}
    for number, segment in segments.items():
        alone = "LabelValue" not in segment and len(layers) > 1
        layer = _number(path, segment.get("Layer"), number if alone else 0)
        if not 0 <= layer < len(layers):
            raise InputError(
                f"has {len(layers)} layers; expected one for each segment", file=path,
                field=f"Segment{number}_Layer",
            )  # fmt: skip
        label = _number(path, segment.get("LabelValue"), 1 if len(layers) > 1 else number + 1)
        placed.setdefault(layer, {})[number] = label
    found: dict[int, RaterMask] = {}
    for order, (layer, labels) in enumerate(placed.items()):
        step = part(watch, 0.7 + 0.3 * order / len(placed), 0.7 + 0.3 * (order + 1) / len(placed))
        masks = by_label(layers[layer], list(labels.values()), step)
        for number, (_, origin, mask) in zip(labels, masks, strict=True):
            name = text_of(segments[number].get("Name", "")) or f"segment {number + 1}"
            coding = terminology_coding(segments[number].get("Tags", ""), segments[number].get("Color", ""))
            found[number] = part_of(names.annotator, names.item, name, head.grid, mask, origin, coding)
    notices = tuple(f"{plain(path.name)}: {one}." for one in head.notices)
    return MaskTable(path, tuple(found[number] for number in sorted(found)), notices)


def _segments(path: Path, header: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    segments: dict[int, dict[str, str]] = {}
    for key, value in header.items():
        match = _FIELD.fullmatch(str(key))
        if match:
            segments.setdefault(int(match[1]), {})[match[2]] = str(value)
    if not segments or len(segments) > _MOST_SEGMENTS:
        raise InputError(f"has {len(segments):,} segments; expected some", file=path)
    return segments


def _number(path: Path, text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        words = f'has "{plain(text, 20)}"; expected a number of a layer or label'
        raise InputError(words, file=path) from None
