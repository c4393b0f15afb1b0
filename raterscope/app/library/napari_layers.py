"""Reader of studies for napari: images, clicks, detections, masks and disputed regions as layers.

The manifest is ``raterscope/resources/napari.yaml``. napari itself is not imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.masks.data import Box, FloatArray
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.formats.images import load_image
from raterscope.app.formats.volumes import find_volumes, load_volume
from raterscope.app.kinds.clicks.exports import read_detections
from raterscope.app.kinds.masks.exports import fused_cases, settled_consensus
from raterscope.app.program_files import STUDY_SUFFIX
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.masks import mask_entries, read_masks
from raterscope.app.study.references import volume_of

Layer = tuple[Any, dict[str, Any], str]
"""Data, arguments and type of a layer, as in napari."""

_MAX_IMAGES = 20
_HALF = 0.5
"""Offset of coordinates: napari's origin is the centre of a pixel, a study's the corner."""


def get_reader(path: str | list[str]) -> Callable[[str | list[str]], list[Layer]] | None:
    """Return the function that reads a study; None for other files."""
    paths = [path] if isinstance(path, str) else path
    return read_layers if all(name.endswith(STUDY_SUFFIX) for name in paths) else None


def read_layers(path: str | list[str]) -> list[Layer]:
    """Return the layers of a study; those of the first image are visible."""
    layers: list[Layer] = []
    for name in [path] if isinstance(path, str) else path:
        with Study.open(Path(name), to_read=True) as study:
            entries = study.images()
            if len(entries) > _MAX_IMAGES:
                warnings.warn(f"{_MAX_IMAGES} of {len(entries):,} images are shown", stacklevel=2)
            for entry in entries[:_MAX_IMAGES]:
                shown = not layers
                for data, arguments, kind in _layers_of(study, entry):
                    title = f"{entry.name} {arguments.pop('name', '')}".strip()
                    layers.append((data, {"name": title, "visible": shown, **arguments}, kind))
    return layers


def _layers_of(study: Study, entry: ImageEntry) -> Iterator[Layer]:
    grid = entry.lattice
    structures = tuple(dict.fromkeys(mask.structure for mask in mask_entries(study, entry.id)))
    scale = (1.0, 1.0) if entry.grid is None else grid.spacing
    try:
        yield from _image(study, entry, scale)
    except InputError as error:
        warnings.warn(str(error), stacklevel=2)
    yield from _points(study, entry)
    for structure in structures:
        for annotator, record in read_masks(study, entry.id, structure).items():
            values = np.zeros(grid.shape, dtype=np.uint8)
            box = tuple(slice(at, at + n) for at, n in zip(record.origin, record.values.shape, strict=True))
            values[box] = record.values >= _HALF
            arguments = {"name": f"{structure} by {annotator}", "visible": False}
            yield values[0] if entry.grid is None else values, {**arguments, "scale": scale}, "labels"
    if structures and study.shown.result(entry.id, "masks") is not None:
        yield from _consensus(study, entry, scale)


def _image(study: Study, entry: ImageEntry, scale: tuple[float, ...]) -> Iterator[Layer]:
    path = study.locate(entry)
    if path is None:
        return
    if entry.grid is None:
        yield load_image(path), {"rgb": True}, "image"
        return
    volume = volume_of(entry, find_volumes(path))
    if volume is not None:
        values = load_volume(volume).values
        yield values, {"scale": scale, "rgb": values.ndim == 4}, "image"


def _points(study: Study, entry: ImageEntry) -> Iterator[Layer]:
    clicks = study.clicks(entry.id)
    if not len(clicks.x):
        return
    names = np.array(clicks.annotators)[clicks.annotator]
    arguments = {"name": "clicks", "features": {"annotator": names}, "face_color": "annotator", "size": 5}
    yield np.column_stack((clicks.y, clicks.x)) - _HALF, arguments, "points"
    if study.shown.result(entry.id, "clicks") is None:
        return
    for image in read_detections(study, Request("detections", "napari", study.path, (entry.id,))):
        spots = image.detections
        if spots:
            positions = np.array([(spot.y, spot.x) for spot in spots]) - _HALF
            features = {"posterior": np.array([spot.score for spot in spots], dtype=float)}
            look = {"symbol": "cross", "size": 12, "face_color": "red"}
            yield positions, {"name": "detections", "features": features, **look}, "points"


def _consensus(study: Study, entry: ImageEntry, scale: tuple[float, ...]) -> Iterator[Layer]:
    """Return the consensus of each structure, with decisions applied, and boxes around disputed regions."""
    for case in fused_cases(study, (entry.id,)):
        for fusion, report in zip(case.result.fusions, case.result.reports, strict=True):
            structure = fusion.structures[0]
            values = settled_consensus(study, fusion, case.regions).astype(np.uint8)
            consensus = {"name": f"{structure} consensus", "scale": scale}
            yield values[0] if entry.grid is None else values, consensus, "labels"
            if not report.disputes:
                continue
            boxes = [_box(dispute.origin, dispute.shape, entry) for dispute in report.disputes]
            features = {
                "region": np.arange(1, len(boxes) + 1),
                "ml": np.array([dispute.volume_ml for dispute in report.disputes]),
            }
            arguments = {"name": f"{structure} disputed regions", "shape_type": "rectangle", "scale": scale}
            look = {"edge_color": "yellow", "face_color": "transparent", "edge_width": 1}
            yield boxes, {**arguments, **look, "features": features}, "shapes"


def _box(origin: Box, shape: Box, entry: ImageEntry) -> FloatArray:
    """Return the corners of a region's box, (4, 2) or in its middle slice (4, 3)."""
    (first, *corner), (slices, *lengths) = origin, shape
    top, left = np.array(corner) - _HALF
    bottom, right = np.array(corner) + lengths - _HALF
    corners = np.array([(top, left), (top, right), (bottom, right), (bottom, left)])
    return corners if entry.grid is None else np.insert(corners, 0, first + slices // 2, axis=1)
