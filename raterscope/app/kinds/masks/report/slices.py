"""Slices and figures of a case in a report: outlines, consensus and uncertainty, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.algorithms.annotators.agreement import MaskAgreement, mask_agreement
from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    box_around,
    slices_of,
    volumes_of,
)
from raterscope.algorithms.masks.fusion import Report
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, compare, compare_with_reference, place_in_frame
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import Volume
from raterscope.app.kinds.masks.excluded_raters import ExcludedRater, compare_excluded
from raterscope.app.kinds.masks.runs import MARGIN
from raterscope.app.page.contents import Picture, photograph, scale_bar
from raterscope.app.review import Region, known_voxels
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks, settled_of
from raterscope.app.study.records import MaskRecord
from raterscope.app.study.references import volume_of
from raterscope.figures.canvas import FINE, Canvas, Pen, PixelCanvas
from raterscope.figures.colours import ANNOTATOR_COLOURS, DARK
from raterscope.widgets.volume.plane import (
    PRESETS,
    Levels,
    Plane,
    Window,
    automatic_window,
    contours,
    in_words,
    planes_of,
)

Box = tuple[int, int, int]
Frame = tuple[float, float, float, float]

CONSENSUS, DOUBT, TRUTH = "#ffffff", "#ff5f7e", "#00e5c8"
"""Colours of the layers without a rater. No rater's outline has the hue of the uncertainty."""

_SIDE = 560  # pixels of the longer side
_ROOM, _SHARE = 12.0, 0.3  # margin around the masks: mm, or share of their size, whichever is larger
_WORTH = 0.05  # minimum doubt of a slice, relative to the most doubtful slice, for a picture
_MAX_DOUBT = 0.4  # opacity of the tint for maximum doubt


def colour_of(number: int) -> str:
    """Return the colour of an annotator, by the number in the study."""
    return ANNOTATOR_COLOURS[number % len(ANNOTATOR_COLOURS)]


@dataclass(frozen=True, eq=False)
class Layer:
    """Mask or map of a part of the image."""

    origin: Box  # (slice, row, column)
    values: NDArray[Any]  # (Z, Y, X) or float32
    colour: str = ""


@dataclass(frozen=True, eq=False)
class SliceScene:
    """Content of every slice picture of one structure."""

    grid: Grid
    raters: Sequence[Layer]
    consensus: Layer
    doubt: Layer
    # the disputed regions, in the order of their drawn numbers
    regions: Sequence[Layer] = ()
    truth: Layer | None = None
    # (Z, Y, X[, 3]) array: the image; without it the background is empty
    voxels: NDArray[np.generic] | None = None
    window: tuple[float, float] = (127.5, 255.0)  # (centre, width)

    def plane(self) -> Plane:
        """Return the plane of the slices."""
        return next(plane for plane in planes_of(self.grid).values() if plane.normal == 0)

    def frame(self) -> Frame:
        """Return the visible part of the plane: around all masks, with the same shape for all slices."""
        plane = self.plane()
        boxes = [
            _box_of(plane, layer)
            for layer in (*self.raters, self.consensus, *([self.truth] if self.truth else []))
            if layer.values.size and (layer.values > 0.5).any()
        ]
        left_edge, top, right, bottom = plane.extent
        if boxes:
            low, high = np.min(boxes, axis=0)[:2], np.max(boxes, axis=0)[2:]
            side = float((high - low).max())
            room = _ROOM if self.grid.calibrated else 0.0
            side += 2 * max(room, _SHARE * side)
            spans = [
                _span(float(a + b) / 2, side, end)
                for a, b, end in zip(low, high, (right, bottom), strict=True)
            ]
            (left_edge, right), (top, bottom) = spans
        return left_edge, top, right, bottom


def most_disputed(report: Report, doubt: Layer, consensus: Layer, limit: int = 6) -> list[int]:
    """Choose the slices to show, in order.

    First, the slice of each disputed region in which the region is largest; regions with the most doubt come
    first. Then, the slices with the most doubt that are not next to a chosen slice. Without differences, the
    slice with the largest consensus.
    """
    chosen: list[int] = []
    for dispute in report.disputes:
        at = dispute.origin[0] + int(dispute.voxels().sum(axis=(1, 2)).argmax())
        if at not in chosen and len(chosen) < limit:
            chosen.append(at)
    by_slice = doubt.values.sum(axis=(1, 2), dtype=np.float64)
    least = _WORTH * float(by_slice.max(initial=0.0))
    near = max(2, int(np.count_nonzero(by_slice) / (2 * limit)))
    for index in np.argsort(-by_slice, kind="stable"):
        at = doubt.origin[0] + int(index)
        if len(chosen) >= limit or by_slice[index] <= least:
            break
        if all(abs(at - earlier) >= near for earlier in chosen):
            chosen.append(at)
    if not chosen and consensus.values.any():
        chosen.append(consensus.origin[0] + int(consensus.values.sum(axis=(1, 2)).argmax()))
    return sorted(chosen)


def draw_slice(scene: SliceScene, index: int, title: str, text: str = "") -> Picture:
    """Draw one slice in radiological orientation: the left of an axial slice is the patient's right."""
    plane, frame = scene.plane(), scene.frame()
    across, down = frame[2] - frame[0], frame[3] - frame[1]
    scale = _SIDE / max(across, down)
    width, height = max(1, round(across * scale)), max(1, round(down * scale))
    ground = _ground(scene, plane, frame, index, (width * FINE, height * FINE))
    _tint(ground, scene.doubt, plane, frame, index)
    canvas = PixelCanvas(width, height, ground)
    for pen in (Pen("#000000", 6.5), Pen(CONSENSUS, 4.5)):
        _outline(canvas, scene.consensus, plane, frame, scale, index, pen)
    if scene.truth is not None:
        _outline(canvas, scene.truth, plane, frame, scale, index, Pen(TRUTH, 2.0))
    for layer in scene.raters:
        _outline(canvas, layer, plane, frame, scale, index, Pen(layer.colour, 2.0))
    _letters(canvas, plane)
    _numbers(canvas, scene, plane, frame, scale, index)
    scale_bar(canvas, scale, scene.grid.length_unit)
    return photograph(canvas.pixels(), title, text)


def _box_of(plane: Plane, layer: Layer) -> Frame:
    marked = np.argwhere((layer.values > 0.5).any(axis=0))
    low, high = marked.min(axis=0), marked.max(axis=0) + 1
    origin = (0, layer.origin[1] + int(low[0]), layer.origin[2] + int(low[1]))
    return plane.box_of(origin, (1, int(high[0] - low[0]), int(high[1] - low[1])))


def _span(middle: float, side: float, end: float) -> tuple[float, float]:
    """Place an interval of a given length around a centre, within 0 to `end`."""
    side = min(side, end)
    start = min(max(middle - side / 2, 0.0), end - side)
    return start, start + side


def _ground(scene: SliceScene, plane: Plane, frame: Frame, index: int, size: tuple[int, int]) -> Image.Image:
    if scene.voxels is None:
        return Image.new("RGB", size, DARK.canvas)
    cells = Levels(*scene.window).to_bytes(np.ascontiguousarray(plane.cut(scene.voxels, index)))
    image = Image.fromarray(np.ascontiguousarray(cells))
    return image.resize(size, Image.Resampling.BICUBIC, box=_cells(plane, frame)).convert("RGB")


def _cells(plane: Plane, frame: Frame) -> Frame:
    """Convert a part of the plane from lengths to voxels, within the plane."""
    wide, high = plane.spacing[plane.across], plane.spacing[plane.down]
    columns, rows = plane.shape[plane.across], plane.shape[plane.down]
    return (
        max(frame[0] / wide, 0.0), max(frame[1] / high, 0.0),
        min(frame[2] / wide, columns), min(frame[3] / high, rows),
    )  # fmt: skip


def _tint(picture: Image.Image, doubt: Layer, plane: Plane, frame: Frame, index: int) -> None:
    crop = plane.cut_crop(doubt.values, doubt.origin, index)
    if crop is None:
        return
    part, (row, column) = crop
    shape = plane.shape[plane.down], plane.shape[plane.across]
    mask = np.zeros(shape, dtype=np.uint8)
    inside = np.clip(part * (255 * _MAX_DOUBT), 0, 255).astype(np.uint8)
    mask[row : row + part.shape[0], column : column + part.shape[1]] = inside
    opacity = Image.fromarray(mask).resize(picture.size, Image.Resampling.BILINEAR, box=_cells(plane, frame))
    picture.paste(Image.new("RGB", picture.size, DOUBT), (0, 0), opacity)


def _outline(
    canvas: Canvas, layer: Layer, plane: Plane, frame: Frame, scale: float, index: int, pen: Pen
) -> None:
    if not layer.values.size:
        return
    crop = plane.cut_crop(layer.values, layer.origin, index)
    if crop is None:
        return
    part, (row, column) = crop
    wide, high = plane.spacing[plane.across], plane.spacing[plane.down]
    for line in contours(np.ascontiguousarray(part)):
        x = ((line[:, 0] + column + 0.5) * wide - frame[0]) * scale
        y = ((line[:, 1] + row + 0.5) * high - frame[1]) * scale
        points = np.column_stack([x, y])
        canvas.line(np.concatenate([points, points[:2]]), pen)


def _letters(canvas: PixelCanvas, plane: Plane) -> None:
    width, height = canvas.size
    edge = 16
    positions = (
        (edge, height / 2), (width - edge, height / 2), (width / 2, edge), (width / 2, height - edge)
    )  # fmt: skip
    for letter, position in zip(plane.letters, positions, strict=True):
        canvas.text(position, letter, DARK.text, 22, halo="#000000")


def _numbers(
    canvas: PixelCanvas, scene: SliceScene, plane: Plane, frame: Frame, scale: float, index: int
) -> None:
    """Write the number of each disputed region in its middle."""
    wide, high = plane.spacing[plane.across], plane.spacing[plane.down]
    for number, layer in enumerate(scene.regions, start=1):
        crop = plane.cut_crop(layer.values, layer.origin, index)
        if crop is None or not crop[0].any():
            continue
        (rows, columns), (row, column) = np.nonzero(crop[0]), crop[1]
        middle = np.array([columns.mean(), rows.mean()])
        nearest = int(np.argmin((columns - middle[0]) ** 2 + (rows - middle[1]) ** 2))
        x = ((columns[nearest] + column + 0.5) * wide - frame[0]) * scale
        y = ((rows[nearest] + row + 0.5) * high - frame[1]) * scale
        canvas.text((float(x), float(y)), str(number), DARK.disputed, 20, halo="#000000")


_AIRY, _HARD = -350.0, 250.0
"""Maximum Hounsfield units around a structure in the lung, and minimum inside a structure in bone."""


@dataclass(frozen=True, eq=False)
class Voxels:
    """An image's voxels."""

    volume: Volume | None
    why: str = ""  # why there are no voxels, in a sentence; otherwise empty
    notices: tuple[str, ...] = ()  # irregularities of the file: missing, tilted or unevenly spaced slices


def read_voxels(study: Study, entry: ImageEntry, watch: Watch = silent) -> Voxels:
    """Read an image's voxels, or return why there are none."""
    from raterscope.app.formats.volumes import find_volumes, load_volume

    if entry.path is None:
        return Voxels(None, "The study has no image; outlines are drawn on an empty background.")
    path = study.locate(entry)
    if path is None:
        return Voxels(None, "The image's file was not found; outlines are drawn on an empty background.")
    try:
        volume = volume_of(entry, find_volumes(path, part(watch, 0.0, 0.2)))
        if volume is None:
            return Voxels(
                None, "The geometry of the image's file changed; outlines are drawn on an empty background."
            )
        return Voxels(load_volume(volume, part(watch, 0.2, 1.0)), notices=volume.notices)
    except (InputError, MemoryError):
        return Voxels(None, "The image's file cannot be read; outlines are drawn on an empty background.")


def window_of(
    volume: Volume, modality: str, inside: BoolArray, origin: tuple[int, int, int]
) -> tuple[Window, str]:
    """Choose the window for a structure, with its description: "W 1500 L -600, lung".

    For CT, it is the lung or bone window if the structure lies there. Otherwise it is the window of the file,
    then for CT the soft tissue window, then one that covers the values.

    `modality`: as in DICOM.
    `inside`: (Z, Y, X), the structure in its box, with some space around it.
    `origin`: (slice, row, column) of that box in the volume.
    """
    if modality == "CT" and volume.values.ndim == 3:
        preset = _preset(volume.values, inside, origin)
        if preset == "soft" and volume.window is not None:
            return volume.window, in_words(*volume.window)
        chosen = next(window for window in PRESETS if window.name == preset)
        window = (chosen.centre, chosen.width)
        return window, f"{in_words(*window)}, {chosen.text}"
    if volume.values.ndim == 4 or volume.values.dtype == np.uint8:
        return (127.5, 255.0), ""
    window = volume.window or automatic_window(volume.values)
    return window, in_words(*window)


def _preset(values: NDArray[np.generic], inside: BoolArray, origin: tuple[int, int, int]) -> str:
    crop_values = np.asarray(values[slices_of(origin, inside.shape)], dtype=np.float64)
    if inside.any() and np.median(crop_values[inside]) > _HARD:
        return "bone"
    return "lung" if (~inside).any() and np.median(crop_values[~inside]) < _AIRY else "soft"


@dataclass(frozen=True, eq=False)
class Piece:
    """Mask of a part of the image."""

    origin: Box
    values: BoolArray


@dataclass(frozen=True, eq=False)
class AgainstTruth:
    """Raters and consensus compared with the truth."""

    truth: MaskRecord
    raters: tuple[Comparison, ...]  # tuple of P Comparison
    consensus: Comparison


@dataclass(frozen=True, eq=False)
class StructureFigures:
    """Figures of one structure of one case."""

    entry: ImageEntry
    structure: str
    run: RunEntry
    fusion: MaskFusion
    report: Report
    masks: Masks  # the masks without decisions
    agreement: MaskAgreement
    volumes: FloatArray  # (P,): ml that each rater marked
    decided: Sequence[Region]  # the decisions on this structure that are in effect
    final: Piece  # the consensus with settled voxels
    final_ml: float
    differs: bool  # whether decisions since the fusion have changed the consensus
    even: int  # number of voxels with a probability of exactly one half
    # (Z, Y, X): on the grid of the masks: doubt of the model, or disagreement of the raters where that is
    # larger; 0 where the expert decided
    doubt: Float32Array
    # by name: raters of the structure that the run excludes
    left_out: Mapping[str, ExcludedRater] = field(default_factory=dict)
    absent: Sequence[str] = ()  # raters of the case who have no mask of the structure
    truth: AgainstTruth | None = None

    def without_maps(self) -> StructureFigures:
        """Return a copy without the maps, which would fill the memory with many cases."""
        nothing = np.zeros((len(self.fusion.structures), 0, 0, 0), dtype=np.float32)
        fusion = replace(
            self.fusion, mask=nothing > 0, probability=nothing, distance=None, deviation=None, weight=None,
            tau=None, alternatives=(),
        )  # fmt: skip
        masks = replace(
            self.masks, values=self.masks.values[:, :1, :1, :1].copy(), origin=(0, 0, 0), known=None
        )
        final = Piece((0, 0, 0), nothing[0] > 0)
        report = replace(self.report, calibration=None)
        # Copies, because all arrays of a stored result share its memory, maps included.
        fusion, report = deepcopy(fusion), deepcopy(report)
        return replace(self, fusion=fusion, report=report, masks=masks, final=final, doubt=nothing[0])

    def latest_verdicts(self) -> Mapping[int, Region]:
        """Return the latest verdict on each region of the run. Skipping a decided region changes nothing."""
        last: dict[int, Region] = {}
        for decision in self.decided:
            number = decision.subject.number
            if (
                decision.run == self.run.id
                and number is not None
                and (decision.verb != "skip" or number not in last)
            ):
                last[number] = decision
        return last


def read_figures(
    study: Study, entry: ImageEntry, regions: Sequence[Region], watch: Watch = silent
) -> list[StructureFigures]:
    """Read the results shown of every structure of a case, and compute further values; empty if not fused.

    `regions`: the decisions on the case.
    """
    run_and_result = study.shown.result(entry.id, "masks")
    if run_and_result is None:
        return []
    run, result = run_and_result
    entries = mask_entries(study, entry.id)
    truths = {mask.structure for mask in entries if mask.annotator is None}
    of_run = dict.fromkeys(run_mask.annotator for run_mask in mask_entries(study, entry.id, run))
    raters_of_run = [name for name in of_run if name is not None]
    settled = settled_of(study, regions)
    figures = []
    fused = list(zip(result.fusions, result.reports, strict=True))
    for (fusion, report), step in steps_of(watch, fused):
        structure = fusion.structures[0]
        step(0.0, f"measuring {plain(structure)}")
        records = read_masks(study, entry.id, structure, run)
        masks = assemble(
            {name: records[name] for name in fusion.annotators}, entry.lattice, structure, margin=MARGIN
        )
        raters = {mask.annotator for mask in entries if mask.structure == structure}
        decided = [region for region in regions if region.subject.structure == structure]
        pieces = [(fusion.origin, fusion.shape)]
        pieces += [
            (settled[region.voxels].origin, settled[region.voxels].value.shape)
            for region in decided
            if region.voxels is not None
        ]
        origin, shape = box_around(pieces)
        final = place_in_frame(fusion, fusion.mask[0], origin, shape)
        known_values = known_voxels(decided, settled, structure, origin, shape)
        if known_values is not None:
            final = np.where(known_values == OPEN, final, known_values == 1)
        truth = None
        if structure in truths:
            record = read_masks(study, entry.id, structure, truth=True)["truth"]
            truth = _against_truth(fusion, masks, record)
        figures.append(
            StructureFigures(
                entry=entry,
                structure=structure,
                run=run,
                fusion=fusion,
                report=report,
                masks=masks,
                agreement=mask_agreement(masks, watch=step),
                volumes=masks.volumes(masks.values > 0.5) / 1000.0,
                decided=decided,
                final=Piece(origin, final),
                final_ml=float(volumes_of(final, masks.spacing, masks.slice_positions, origin[0])) / 1000.0,
                differs=not np.array_equal(place_in_frame(fusion, fusion.mask[0], origin, shape), final),
                even=int(np.count_nonzero(fusion.probability == 0.5)),
                doubt=_doubt(
                    fusion, masks, known_voxels(decided, settled, structure, masks.origin, masks.shape)
                ),
                left_out=compare_excluded(study, entry.id, run, fusion, entry.lattice, step),
                absent=[name for name in raters_of_run if name not in raters],
                truth=truth,
            )
        )
    return figures


def _doubt(fusion: MaskFusion, masks: Masks, known_values: NDArray[np.int8] | None) -> Float32Array:
    votes = np.mean(masks.values > 0.5, axis=0, dtype=np.float32)
    doubt = np.maximum(
        1 - np.abs(2 * votes - 1), place_in_frame(fusion, fusion.doubt()[0], masks.origin, masks.shape)
    )
    return doubt if known_values is None else np.where(known_values == OPEN, doubt, np.float32(0))


def _against_truth(fusion: MaskFusion, masks: Masks, record: MaskRecord) -> AgainstTruth:
    """Compare within the box that contains the masks and the truth."""
    pieces: list[tuple[Box, tuple[int, ...]]] = [(masks.origin, masks.shape)]
    if record.values.size:
        pieces.append((record.origin, record.values.shape))
    origin, shape = box_around(pieces)
    values = np.zeros((len(masks.annotators), *shape), dtype=np.bool_)
    values[(slice(None), *slices_of(masks.origin, masks.shape, origin))] = masks.values > 0.5
    truth = np.zeros(shape, dtype=np.bool_)
    if record.values.size:
        truth[slices_of(record.origin, record.values.shape, origin)] = record.values > 0.5
    full = Masks(
        values, masks.annotators, masks.spacing, masks.structures, origin=origin, frame=masks.frame,
        slice_positions=masks.slice_positions,
    )  # fmt: skip
    consensus = place_in_frame(fusion, fusion.mask[0], origin, shape)
    return AgainstTruth(
        record, compare_with_reference(full, truth), compare(consensus, truth, masks.spacing, full.positions)
    )
