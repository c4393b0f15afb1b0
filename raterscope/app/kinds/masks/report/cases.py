"""The cases of masks in a report: what was fused, the slices in dispute, the raters, what was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raterscope.algorithms.masks.data import volumes_of
from raterscope.algorithms.masks.grid import describe_slices
from raterscope.algorithms.masks.patterns import with_margin
from raterscope.algorithms.progress import Watch, part
from raterscope.app.convergence import of_masks
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.masks.report.case_figures import Figures
from raterscope.app.kinds.masks.report.raters import (
    alternatives_table,
    band_table,
    dice_table,
    disputes_table,
    model_table,
    raters_table,
)
from raterscope.app.kinds.masks.report.slices import (
    CONSENSUS,
    DOUBT,
    TRUTH,
    Layer,
    SliceScene,
    colour_of,
    draw_slice,
    most_disputed,
)
from raterscope.app.kinds.masks.report.volumes import Voxels, window_of
from raterscope.app.page.contents import Block, Facts, Gallery, Notices, Picture, Section, Swatch, Table
from raterscope.app.page.runs import run_in_words
from raterscope.app.page.units import Units, significant, units_of
from raterscope.app.study import ImageEntry
from raterscope.app.study.masks import read_masks
from raterscope.app.study.study import Study

__all__ = ["case_section", "cases_table", "grid_in_words"]

_ROOM = 8.0
"""mm about a structure in which the tissue is looked at to choose the window."""


def case_section(
    study: Study,
    found: Sequence[Figures],
    voxels: Voxels,
    excluded: Mapping[str, str],
    watch: Watch,
) -> Section:
    """Tell of one case.

    Parameters
    ----------
    study : Study
    found : sequence of Figures
        Its structures, at least one.
    voxels : Voxels
    excluded : mapping of annotator to reason
        As the expert has it now.
    watch : Watch
    """
    entry, run = found[0].entry, found[0].run
    numbers = {name: number for number, name in enumerate(study.annotators())}
    inner = []
    for done, figures in enumerate(found):
        step = part(watch, done / len(found), (done + 1) / len(found))
        inner.append(_structure(study, figures, voxels, numbers, excluded, step))
    facts = [("Grid", grid_in_words(entry))]
    if entry.modality:
        facts.append(("Modality", plain(entry.modality)))
    raters = dict.fromkeys(name for one in found for name in one.fusion.annotators)
    facts += [
        ("Raters", f"{len(raters)}: {', '.join(plain(name, 40) for name in raters)}"),
        ("Structures", ", ".join(plain(one.structure) for one in found)),
        ("Run", run_in_words(run)),
    ]
    said = describe_slices(entry.lattice)
    others = [one for one in voxels.notices if not any(sentence.rstrip(".") in one for sentence in said)]
    blocks: list[Block] = [Notices([*said, *others])] if said or others else []
    if len(found) == 1:
        own, *rest = inner[0].blocks
        assert isinstance(own, Facts)
        blocks += [Facts([*facts, *own.rows]), *rest]
        inner = []
    else:
        blocks.append(Facts(facts))
    return Section(plain(entry.name), blocks, inner, breaks=True)


def cases_table(cases: Sequence[Sequence[Figures]]) -> Table:
    """List all cases and structures: how large, how much is disputed, what is left to decide."""
    rows = []
    for found in cases:
        for figures in found:
            units = units_of(figures.entry.lattice)
            said = figures.said_of()
            settled = sum(one.verb != "skip" for one in said.values())
            regions = len(figures.report.disputes)
            dice = figures.report.pair_dice[np.triu_indices(len(figures.fusion.annotators), 1)]
            dice = dice[np.isfinite(dice)]
            rows.append(
                (
                    plain(figures.entry.name),
                    plain(figures.structure),
                    str(len(figures.fusion.annotators)),
                    units.amount(figures.final_ml),
                    f"{dice.mean():.3f}" if len(dice) else "",
                    str(regions),
                    units.amount(figures.report.doubt_ml) if regions else "",
                    f"{settled} of {regions}" if regions else "nothing to settle",
                )
            )
    columns = (
        "Case", "Structure", "Raters", "Consensus", "Mean Dice of pairs", "Disputed regions", "Doubt in them",
        "Settled",
    )  # fmt: skip
    return Table("Cases", columns, rows, words=frozenset({1}))


def grid_in_words(entry: ImageEntry) -> str:
    """Say an image's grid."""
    grid = entry.lattice
    words = grid.in_words()
    names = "rows x columns" if grid.flat else "slices x rows x columns"
    if not grid.calibrated:
        return f"{words} ({names}); nothing tells a pixel's size: lengths are in pixels"
    return f"{words} ({names})"


def _structure(
    study: Study,
    figures: Figures,
    voxels: Voxels,
    numbers: Mapping[str, int],
    excluded: Mapping[str, str],
    watch: Watch,
) -> Section:
    fusion, report = figures.fusion, figures.report
    units = units_of(figures.entry.lattice)
    facts = [("Consensus", units.amount(report.volume_ml))]
    if figures.differs:
        facts.append(("With what the expert settled since", units.amount(figures.final_ml)))
    regions = len(report.disputes)
    facts.append(
        (
            "Disputed",
            f"{counted(regions, 'region')}, {units.amount(report.doubt_ml)} of doubt"
            if regions
            else "no region beyond the tolerance",
        )
    )
    if figures.truth is not None:
        one = figures.truth.consensus
        words = f"Dice {one.dice:.3f}, HD95 {units.mm(one.hausdorff_95)} {units.length}"
        facts.append(("Consensus against the known truth", words))
    facts.append(("Fit", _fit(figures)))
    facts += [("Note", plain(sentence, 400)) for sentence in fusion.notices]
    unsettled = of_masks(fusion, figures.run.settings)
    blocks: list[Block] = [Facts(facts), *([Notices([unsettled])] if unsettled else [])]
    blocks += [_gallery(study, figures, voxels, numbers, units, watch)]
    if regions:
        blocks.append(disputes_table(figures, units))
    blocks.append(raters_table(figures, units, numbers, excluded))
    for table in (
        band_table(figures, units),
        model_table(figures, units, numbers),
        alternatives_table(figures, units),
    ):
        if table is not None:
            blocks.append(table)
    if len(fusion.annotators) > 1:
        blocks.append(dice_table(figures, numbers))
    return Section(plain(figures.structure), blocks)


def _fit(figures: Figures) -> str:
    words = []
    for trace in figures.fusion.traces:
        if not len(trace.objective):
            words.append("no iterations")
            continue
        count = len(trace.objective)
        end = "converged" if trace.converged else "stopped before it converged"
        last = significant(float(trace.objective[-1]), 6)
        words.append(f"{counted(count, 'iteration')}, {trace.name} {last}, {end}")
    return "; ".join(dict.fromkeys(words))


def _gallery(
    study: Study,
    figures: Figures,
    voxels: Voxels,
    numbers: Mapping[str, int],
    units: Units,
    watch: Watch,
) -> Gallery:
    fusion, grid = figures.fusion, figures.entry.lattice
    window, said = (127.5, 255.0), ""
    volume = voxels.volume
    if volume is not None:
        inside, origin = _roomy(figures)
        window, said = window_of(volume, volume.modality or figures.entry.modality, inside, origin)
    records = read_masks(study, figures.entry.id, figures.structure, figures.run)
    raters = [
        Layer(record.origin, record.values, colour_of(numbers[name]))
        for name, record in records.items()
        if name in fusion.annotators and record.values.size
    ]
    truth = figures.truth.truth if figures.truth is not None else None
    scene = SliceScene(
        grid=grid,
        raters=raters,
        consensus=Layer(figures.final.origin, figures.final.values),
        doubt=Layer(figures.masks.origin, figures.doubt),
        regions=[Layer(one.origin, one.voxels()) for one in figures.report.disputes],
        truth=None if truth is None or not truth.values.size else Layer(truth.origin, truth.values),
        voxels=None if volume is None else volume.values,
        window=window,
    )
    chosen = most_disputed(figures.report, scene.doubt, scene.consensus)
    pictures = []
    for done, index in enumerate(chosen):
        watch(done / len(chosen), f"drawing slices of {plain(figures.entry.name)}")
        pictures.append(_slice(scene, figures, units, index))
    legend = [Swatch(colour_of(numbers[name]), plain(name, 40)) for name in fusion.annotators]
    legend.append(
        Swatch(CONSENSUS, "consensus with what the expert settled" if figures.differs else "consensus")
    )
    legend.append(Swatch(DOUBT, "doubt"))
    if scene.truth is not None:
        legend.append(Swatch(TRUTH, "known truth"))
    title = "The image" if grid.flat else "The most disputed slices" if figures.report.disputes else "Slices"
    return Gallery(
        title,
        pictures,
        legend,
        " ".join(word for word in (voxels.why, f"Window: {said}." if said else "") if word),
    )


def _slice(scene: SliceScene, figures: Figures, units: Units, index: int) -> Picture:
    grid = scene.grid
    regions = [
        str(number)
        for number, one in enumerate(figures.report.disputes, start=1)
        if one.origin[0] <= index < one.origin[0] + one.shape[0]
    ]
    at = index - figures.masks.origin[0]
    masks, ml = figures.masks, 0.0
    if 0 <= at < len(figures.doubt):
        here = figures.doubt[at : at + 1]
        ml = float(volumes_of(here, masks.spacing, masks.slice_positions, index)) / 1000.0
    words = [f"{units.amount(ml)} of doubt"]
    if regions:
        words.append(f"region{'' if len(regions) == 1 else 's'} {', '.join(regions)}")
    plane = scene.plane().name if grid.calibrated else ""
    title = "" if grid.flat else f"Slice {index + 1} of {grid.shape[0]}" + (f", {plane}" if plane else "")
    return draw_slice(scene, index, title, ", ".join(words))


def _roomy(figures: Figures) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Give the consensus in a box with some room about it, and the box's origin."""
    grid, piece = figures.entry.lattice, figures.final
    past = [at + n for at, n in zip(piece.origin, piece.values.shape, strict=True)]
    low, high = map(
        np.array,
        with_margin(piece.origin, past, grid.spacing, _ROOM, grid.shape, grid.uneven_positions),
    )
    inside = np.zeros(tuple(high - low), dtype=bool)
    corner = np.array(piece.origin) - low
    inside[tuple(slice(a, a + n) for a, n in zip(corner, piece.values.shape, strict=True))] = piece.values
    return inside, (int(low[0]), int(low[1]), int(low[2]))
