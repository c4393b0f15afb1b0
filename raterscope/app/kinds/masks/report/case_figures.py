"""What the report says of one structure of one case, in numbers: read once, told in several places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement import MaskAgreement, mask_agreement
from raterscope.algorithms.masks.data import (
    OPEN,
    BoolArray,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    volumes_of,
)
from raterscope.algorithms.masks.fusion import Report
from raterscope.algorithms.masks.metrics import Comparison, against, compare, placed
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.running import MARGIN
from raterscope.app.review import Region, known_voxels
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks, settled_of
from raterscope.app.study.records import MaskRecord

Box = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Piece:
    """A mask on a part of the image."""

    origin: Box
    values: BoolArray


@dataclass(frozen=True, eq=False)
class AgainstTruth:
    """How raters and consensus stand to a truth that is known.

    Attributes
    ----------
    truth : MaskRecord
    raters : tuple of P Comparison
    consensus : Comparison
    """

    truth: MaskRecord
    raters: tuple[Comparison, ...]
    consensus: Comparison


@dataclass(frozen=True, eq=False)
class Figures:
    """One structure of one case.

    Attributes
    ----------
    entry : ImageEntry
    structure : str
    run : RunEntry
    fusion : MaskFusion
    report : Report
    masks : Masks
        What was fused, without what was settled.
    agreement : MaskAgreement
    volumes : (P,) float64
        ml that each rater marked.
    decided : sequence of Region
        What the expert decided on this structure and stands.
    final : Piece
        The consensus with what was settled laid over it.
    final_ml : float
    differs : bool
        Whether what was settled since the fusion has changed the consensus.
    even : int
        Voxels whose probability is just one half.
    doubt : (Z, Y, X) float32
        On the grid of the masks: what the model doubts or, where that is more, how divided the raters are;
        0 where the expert settled it.
    left_out : sequence of str
        Raters of the structure whom the expert had excluded.
    absent : sequence of str
        Raters of the case who have no mask of the structure.
    truth : AgainstTruth, optional
    """

    entry: ImageEntry
    structure: str
    run: RunEntry
    fusion: MaskFusion
    report: Report
    masks: Masks
    agreement: MaskAgreement
    volumes: FloatArray
    decided: Sequence[Region]
    final: Piece
    final_ml: float
    differs: bool
    even: int
    doubt: Float32Array
    left_out: Sequence[str] = ()
    absent: Sequence[str] = ()
    truth: AgainstTruth | None = None

    def without_maps(self) -> Figures:
        """Leave out what pictures are drawn from: of many cases together it would fill the memory."""
        nothing = np.zeros((len(self.fusion.structures), 0, 0, 0), dtype=np.float32)
        fusion = replace(
            self.fusion, mask=nothing > 0, probability=nothing, distance=None, deviation=None, weight=None,
            alternatives=(),
        )  # fmt: skip
        masks = replace(
            self.masks, values=self.masks.values[:, :1, :1, :1].copy(), origin=(0, 0, 0), known=None
        )
        final = Piece((0, 0, 0), nothing[0] > 0)
        report = replace(self.report, calibration=None)
        return replace(self, fusion=fusion, report=report, masks=masks, final=final, doubt=nothing[0])

    def said_of(self) -> Mapping[int, Region]:
        """Give the last word on each region of the run; to pass over a settled one changes nothing."""
        last: dict[int, Region] = {}
        for one in self.decided:
            number = one.subject.number
            if one.run == self.run.id and number is not None and (one.verb != "skip" or number not in last):
                last[number] = one
        return last


def read_figures(
    study: Study, entry: ImageEntry, regions: Sequence[Region], watch: Watch = silent
) -> list[Figures]:
    """Read what the run shown says of every structure of a case, and measure what it does not say.

    Parameters
    ----------
    study : Study
    entry : ImageEntry
    regions : sequence of Region
        What the expert decided on the case.
    watch : Watch

    Returns
    -------
    list of Figures
        None where the case was not fused.
    """
    shown = study.shown.result(entry.id, "masks")
    if shown is None:
        return []
    run, result = shown
    every = mask_entries(study, entry.id)
    truths = {one.structure for one in every if one.annotator is None}
    of_run = dict.fromkeys(one.annotator for one in mask_entries(study, entry.id, run))
    everybody = [name for name in of_run if name is not None]
    settled = settled_of(study, regions)
    found = []
    for done, (fusion, report) in enumerate(zip(result.fusions, result.reports, strict=True)):
        structure = fusion.structures[0]
        step = part(watch, done / len(result.fusions), (done + 1) / len(result.fusions))
        step(0.0, f"measuring {plain(structure)}")
        records = read_masks(study, entry.id, structure, run)
        masks = assemble(
            {name: records[name] for name in fusion.annotators}, entry.lattice, structure, margin=MARGIN
        )
        raters = {one.annotator for one in every if one.structure == structure}
        decided = [one for one in regions if one.subject.structure == structure]
        pieces = [(fusion.origin, fusion.shape)]
        pieces += [
            (settled[one.voxels].origin, _shape(settled[one.voxels].value))
            for one in decided
            if one.voxels is not None
        ]
        origin, shape = _around(pieces)
        final = placed(fusion, fusion.mask[0], origin, shape)
        known = known_voxels(decided, settled, structure, origin, shape)
        if known is not None:
            final = np.where(known == OPEN, final, known == 1)
        truth = None
        if structure in truths:
            record = read_masks(study, entry.id, structure, truth=True)["truth"]
            truth = _against_truth(fusion, masks, record)
        found.append(
            Figures(
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
                differs=not np.array_equal(placed(fusion, fusion.mask[0], origin, shape), final),
                even=int(np.count_nonzero(fusion.probability == 0.5)),
                doubt=_doubt(
                    fusion, masks, known_voxels(decided, settled, structure, masks.origin, masks.shape)
                ),
                left_out=[name for name in run.excluded if name in raters],
                absent=[name for name in everybody if name not in raters],
                truth=truth,
            )
        )
    return found


def _doubt(fusion: MaskFusion, masks: Masks, known: NDArray[np.int8] | None) -> Float32Array:
    votes = np.mean(masks.values > 0.5, axis=0, dtype=np.float32)
    doubt = np.maximum(
        1 - np.abs(2 * votes - 1), placed(fusion, fusion.doubt()[0], masks.origin, masks.shape)
    )
    return doubt if known is None else np.where(known == OPEN, doubt, np.float32(0))


def _against_truth(fusion: MaskFusion, masks: Masks, record: MaskRecord) -> AgainstTruth:
    """Compare on the box that holds the masks and the truth."""
    pieces = [(masks.origin, masks.shape)]
    if record.values.size:
        pieces.append((record.origin, _shape(record.values)))
    origin, shape = _around(pieces)
    values = np.zeros((len(masks.annotators), *shape), dtype=np.bool_)
    values[(slice(None), *_within(origin, masks.origin, masks.shape))] = masks.values > 0.5
    truth = np.zeros(shape, dtype=np.bool_)
    if record.values.size:
        truth[_within(origin, record.origin, _shape(record.values))] = record.values > 0.5
    whole = Masks(
        values, masks.annotators, masks.spacing, masks.structures, origin=origin, frame=masks.frame,
        slice_positions=masks.slice_positions,
    )  # fmt: skip
    consensus = placed(fusion, fusion.mask[0], origin, shape)
    return AgainstTruth(
        record, against(whole, truth), compare(consensus, truth, masks.spacing, whole.positions)
    )


def _around(pieces: Sequence[tuple[Box, Box]]) -> tuple[Box, Box]:
    """Give origin and shape of the box about some boxes."""
    low = np.min([origin for origin, _ in pieces], axis=0)
    high = np.max([np.add(origin, shape) for origin, shape in pieces], axis=0)
    z, y, x = (int(at) for at in low)
    deep, tall, wide = (int(n) for n in high - low)
    return (z, y, x), (deep, tall, wide)


def _within(origin: Box, at: Box, shape: Box) -> tuple[slice, slice, slice]:
    z, y, x = (slice(a - o, a - o + n) for o, a, n in zip(origin, at, shape, strict=True))
    return z, y, x


def _shape(values: np.ndarray) -> Box:
    deep, tall, wide = values.shape
    return deep, tall, wide
