"""Evidence on raters from masks: bias, overlap, distance and weight over cases, effect of an exclusion.

Tables of raters: values, agreement and disputes, and clusters over cases by overlap, or by the share of cases
in which raters follow the same consensus.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.similarity import (
    CaseAgreement,
    RaterTree,
    cluster_raters,
    same_consensus,
)
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import OPEN, FloatArray, MaskFusion, overlap
from raterscope.algorithms.masks.fusion import CaseResult, MaskPlan, Report, fuse
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison, in_common_frame
from raterscope.algorithms.masks.mixture import mixture
from raterscope.algorithms.masks.programs import ProgramWeights
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.annotator_evidence import (
    Agreement,
    AnnotatorFunctions,
    ChangedAnswer,
    Consequences,
    Course,
    Evidence,
    Measure,
    Measurements,
    Pool,
    read_shown,
)
from raterscope.app.errors import plain
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.kinds.masks.excluded_raters import ExcludedRater
from raterscope.app.kinds.masks.runs import Case, Inputs, combine_in_case, followed_consensus, read_case
from raterscope.app.review import ReviewState
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import read_masks, read_program_masks, settled_of
from raterscope.app.study.records import ImageEntry
from raterscope.text import counted, percent

HALF = 0.5
LISTED = 200
"""Maximum number of changed structures in a preview."""


def _measures(unit: str) -> tuple[Measure, ...]:
    return (
        Measure(
            f"bias_{unit}", "bias", "How far the rater's outline lies beyond the consensus's, on average "
            "over cases and structures", unit, ideal=0.0, is_signed=True,
        ),
        Measure(
            "dice", "Dice", "Overlap with the consensus, mean over cases", ideal=1.0, is_share=True,
            is_reliability=True,
        ),
        Measure(
            f"hausdorff95_{unit}", "HD95", "95 % Hausdorff distance to the consensus, mean over cases", unit,
            ideal=0.0,
        ),
        Measure("weight", "weight", "Mean share of the consensus where raters differ", is_share=True),
    )  # fmt: skip


def _figures(report: Report) -> FloatArray:
    """Return bias, Dice, HD95 and weight of each rater without intervals, (P, 4, 3).

    Programs follow the raters; they have only Dice and HD95.
    """
    compared = (*report.compared, *report.programs_compared)
    figures = np.full((len(compared), 4, 3), np.nan)
    figures[: len(report.compared), 0, 0] = report.offset
    figures[:, 1, 0] = [rater.dice for rater in compared]
    figures[:, 2, 0] = [rater.hausdorff_95 for rater in compared]
    figures[: len(report.compared), 3, 0] = report.weight
    return figures


def _keep_one_unit(cases: Sequence[tuple[Grid, FloatArray]]) -> str:
    """Return the unit of lengths; where some cases have mm, remove the lengths of those in pixels.

    `cases`: with figures, (..., 4, 3), see `_figures`.
    """
    if not any(grid.calibrated for grid, _ in cases):
        return "px"
    for grid, figures in cases:
        if not grid.calibrated:
            figures[..., [0, 2], :] = np.nan
    return "mm"


def _results(study: Study, watch: Watch) -> Iterator[tuple[ImageEntry, RunEntry, MaskFusion, Report]]:
    images = study.items()["masks"]
    for entry, (run, result) in read_shown(images, lambda item: study.shown.result(item.id, "masks"), watch):
        assert isinstance(result, CaseResult)
        assert isinstance(entry, ImageEntry)
        for fusion, report in zip(result.fusions, result.reports, strict=True):
            yield entry, run, fusion, report


def _outlined(fusion: MaskFusion, report: Report) -> tuple[str, ...]:
    """List the raters of a structure, then the programs."""
    return (*fusion.annotators, *(() if report.programs is None else report.programs.names))


def evidence(study: Study, watch: Watch) -> Evidence | None:
    """Return the figures of exports and reports, as means over cases; see `AnnotatorFunctions`."""
    state = study.review_state()
    pool = Pool(state.aliases, 4)
    verdicts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    cases: list[tuple[Grid, FloatArray]] = []
    for entry, run, fusion, report in _results(study, watch):
        names, figures = _outlined(fusion, report), _figures(report)
        cases.append((entry.lattice, figures))
        pool.add(names, figures, np.ones(len(names)))
        verdicts.append(_verdicts(study, entry, run, (fusion.structures[0], names), state))
    if not verdicts:
        return None
    unit = _keep_one_unit(cases)
    values = pool.mean()
    values[:, 1:, 1] = np.maximum(values[:, 1:, 1], 0.0)
    for share in (1, 3):
        values[:, share, 2] = np.minimum(values[:, share, 2], 1.0)
    marks, items = pool.counted()
    return Evidence(
        kind="masks",
        marks_are="masks",
        names=pool.names,
        marks=marks,
        items=items,
        measures=_measures(unit),
        values=values,
        accepted=pool.total([accepted for accepted, _ in verdicts]),
        rejected=pool.total([rejected for _, rejected in verdicts]),
    )


def _verdicts(
    study: Study, entry: ImageEntry, run: RunEntry, drawn: tuple[str, Sequence[str]], state: ReviewState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the decided regions in which each mask mostly agrees with the decision, and the other ones.

    `drawn`: a structure, and the raters and programs that outlined it.
    """
    structure, names = drawn
    accepted, rejected = np.zeros((2, len(names)), dtype=np.int64)
    regions = [
        region
        for region in state.regions(entry.id)
        if region.voxels is not None and region.subject.structure == structure
    ]
    if not regions:
        return accepted, rejected
    masks = read_masks(study, entry.id, structure, run)
    masks |= read_program_masks(study, entry.id, structure, run)
    for settled in settled_of(study, regions).values():
        known = settled.value != OPEN
        if not known.any():
            continue
        for p, name in enumerate(names):
            inside = np.zeros(settled.value.shape, dtype=bool)
            if name in masks and masks[name].values.size:
                there, own = overlap(
                    settled.origin, settled.value.shape, masks[name].origin, masks[name].values.shape
                )
                inside[there] = masks[name].values[own] > HALF
            right = float((inside == (settled.value == 1))[known].mean())
            accepted[p] += right > HALF
            rejected[p] += right <= HALF
    return accepted, rejected


def courses(study: Study, names: Collection[str], watch: Watch) -> Sequence[Course]:
    """Return bias, Dice and HD95 by case and structure; see `AnnotatorFunctions`."""
    points, cases = [], []
    several = len({fusion.structures[0] for *_, fusion, _ in _results(study, part(watch, 0.0, 0.5))}) > 1
    for entry, _, fusion, report in _results(study, part(watch, 0.5, 1.0)):
        for p in [p for p, name in enumerate(_outlined(fusion, report)) if name in names][:1]:
            points.append(f"{entry.name}, {fusion.structures[0]}" if several else entry.name)
            cases.append((entry.lattice, _figures(report)[p]))
    unit = _keep_one_unit(cases)
    table = np.array([figures for _, figures in cases]).reshape(len(points), 4, 3)
    return [
        Course("masks", measure, tuple(points), "case", table[:, at])
        for at, measure in enumerate(_measures(unit))
        if np.isfinite(table[:, at, 0]).any()
    ]


def preview(study: Study, names: Collection[str], weight: float | None, watch: Watch) -> Consequences | None:
    """Fuse the cases shown again without raters, or with a weight; see `AnnotatorFunctions`."""
    affected = []
    for entry in study.items()["masks"]:
        shown = study.shown.result(entry.id, "masks")
        if shown is not None and any(
            not set(names).isdisjoint(_outlined(fusion, report))
            for fusion, report in zip(shown[1].fusions, shown[1].reports, strict=True)
        ):
            affected.append((entry, shown[0].id))
    changed = total = 0
    changes: list[ChangedAnswer] = []
    notes: dict[str, None] = {}
    for (entry, run), step in steps_of(watch, affected):
        fused = gather_case(run, entry.id, study, part(step, 0.0, 0.1))
        if fused is None:
            continue
        notes |= dict.fromkeys(FUSERS[fused.plan.algorithm].weight_notices(weight))
        for change in fuse_without(fused, names, part(step, 0.1, 1.0), weight):
            changed += change.changed
            total += change.before
            if change.changed and len(changes) < LISTED:
                name = f"{entry.name}, {plain(change.structure)}"
                changes.append(ChangedAnswer(name, f"{change.before:,}", f"{change.after:,}"))
    return Consequences("masks", "voxel", changed, total, tuple(changes), tuple(notes)) if affected else None


def measurements(study: Study, watch: Watch) -> Sequence[Measurements]:
    """Return the volumes of observer variability, by structure; see `AnnotatorFunctions`."""
    from raterscope.app.kinds.masks.variability import FLAT, measure_variability

    return [
        Measurements(
            f"{plain(of.structure)} {'area' if of.unit in FLAT else 'volume'}", of.unit, of.measurements
        )
        for of in measure_variability(study, watch=watch)
    ]  # fmt: skip


def agreement(study: Study, names: Collection[str], watch: Watch) -> Sequence[Agreement]:
    """Return Krippendorff's alpha of raters on voxels, by structure; see `AnnotatorFunctions`."""
    from raterscope.algorithms.annotators.agreement import alpha_over_cases, voxel_units

    state = study.review_state()
    units: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}
    images = study.items()["masks"]
    for done, entry in enumerate(images):
        watch(done / len(images), f"comparing the raters of {entry.name}")
        case = read_case(study.image(entry.id), study, state)
        if case is None:
            continue
        for structure, raters in case.records.items():
            chosen = {name: mask for name, mask in raters.items() if not names or name in names}
            if len(chosen) > 1:
                own = replace(case, records={structure: chosen}).masks(structure)
                units.setdefault(structure, []).append(voxel_units(own))
    return [
        Agreement(plain(structure), alpha_over_cases(cases), counted(len(cases), "case"))
        for structure, cases in units.items()
    ]


ANNOTATORS = AnnotatorFunctions(evidence, courses, preview, measurements, agreement)


@dataclass(frozen=True, eq=False)
class FusedCase:
    """A case with the annotations of a run, and its result."""

    plan: MaskPlan
    case: Case
    fusions: Sequence[MaskFusion]
    programs: Mapping[str, ProgramWeights] = field(default_factory=dict)  # by structure

    def drew(self, structure: str, names: Collection[str]) -> bool:
        """Return whether an annotator with one of these names outlined a structure."""
        masks = (self.case.records, self.case.programs)
        return any(not of.get(structure, {}).keys().isdisjoint(names) for of in masks)


@dataclass(frozen=True)
class ConsensusChange:
    """Voxels of the consensus of a structure that change."""

    structure: str
    changed: int  # number of voxels inside only one of the consensuses
    # before, after: number of voxels inside
    before: int
    after: int


def gather_case(run: int, image: int, study: Study, watch: Watch = silent) -> FusedCase | None:
    """Read a case with the annotations of a run and the current decisions; None if the run has no result."""
    watch(0.0, "reading the masks")
    entry = study.runs.get(run)
    state = study.review_state(entry.known)
    case, result = read_case(study.image(image), study, state), study.runs.result(run, image)
    if case is None or result is None:
        return None
    programs = {
        fusion.structures[0]: report.programs
        for fusion, report in zip(result.fusions, result.reports, strict=True)
        if report.programs is not None
    }
    plan, now = MaskPlan.from_dict(entry.settings), study.review_state()
    regions = now.regions(image)
    records = {
        structure: {name: mask for name, mask in raters.items() if name not in now.excluded}
        for structure, raters in case.records.items()
    }
    case = replace(
        case, records=records, regions=regions, settled=settled_of(study, regions), weights=now.weights
    )
    return FusedCase(plan, case, result.fusions, programs)


def fuse_without(
    fused: FusedCase, raters: Collection[str], watch: Watch = silent, weight: float | None = None
) -> tuple[ConsensusChange, ...]:
    """Fuse a case again without raters, or with a weight, and compare each consensus with the one on screen.

    The consensus on screen is that of the run with the expert's decisions, which the fusion holds fixed.
    Structures without these raters stay unchanged. A structure that no other rater marked becomes empty.
    Programs keep the weights of the run; they can be excluded too.
    """
    case, changes = fused.case, []
    marked = [fusion for fusion in fused.fusions if fused.drew(fusion.structures[0], raters)]
    for old, step_watch in steps_of(watch, marked):
        structure = old.structures[0]
        records = case.records[structure]
        others = {name: mask for name, mask in records.items() if weight or name not in raters}
        if not others:
            voxels = int(np.count_nonzero(old.mask[0]))
            changes.append(ConsensusChange(structure, voxels, voxels, 0))
            continue
        weights = {**case.weights, **dict.fromkeys(raters, weight)} if weight else case.weights
        programs = case.programs.get(structure, {})
        programs = {name: mask for name, mask in programs.items() if weight or name not in raters}
        without = replace(
            case, records={**case.records, structure: others}, weights=weights, programs={structure: programs}
        )
        masks = without.masks(structure)
        new = fuse(masks, fused.plan, part(step_watch, 0.0, 0.8))
        if structure in fused.programs:
            new = combine_in_case(new, without, masks, fused.programs[structure], part(step_watch, 0.8, 1.0))
        origin, before, after = in_common_frame(old, new)
        if masks.known is not None:
            to, take = overlap(origin, before.shape, masks.origin, masks.shape)
            np.copyto(before[to], masks.known[take] == 1, where=masks.known[take] != OPEN)
        changed = int(np.count_nonzero(before != after))
        inside = int(np.count_nonzero(before)), int(np.count_nonzero(after))
        changes.append(ConsensusChange(structure, changed, *inside))
    return tuple(changes)


Row = Sequence[object]

AGREEMENT = ("annotator", "other", "dice", "hausdorff95")


def volume_unit(*, calibrated: bool) -> str:
    """Return the unit of volumes in tables: voxels if their size is unknown."""
    return "ml" if calibrated else "voxels"


def units_per_ml(grid: Grid) -> float:
    """Return the units of volumes in tables in a millilitre; see `volume_unit`."""
    return 1.0 if grid.calibrated else 1000.0 / grid.voxel_volume


def tables_of(grid: Grid) -> dict[str, tuple[Sequence[str], Callable[[MaskFusion, Report], Iterator[Row]]]]:
    """Return the tables of a case by name: the columns, and a function for the rows of a structure."""
    calibrated = grid.calibrated
    return {
        "annotators": (annotator_columns(calibrated=calibrated), annotator_rows),
        "agreement": (AGREEMENT, agreement_rows),
        "disputes": (
            dispute_columns(calibrated=calibrated),
            partial(dispute_rows, per_ml=units_per_ml(grid)),
        ),
    }


def dispute_columns(*, calibrated: bool) -> tuple[str, ...]:
    """Name the columns of disputes.csv."""
    unit = volume_unit(calibrated=calibrated)
    return (
        "region", "first_slice", "last_slice", "first_row", "last_row", "first_column", "last_column", unit,
        f"doubt_{unit}", "beyond", "short", "farthest", "reach", "weight", "slices_from_1",
    )  # fmt: skip


DICE, CONSENSUS = "dice", "consensus"

BASES = {DICE: "Dice overlap", CONSENSUS: "Shared consensus"}
"""Bases of the distance between raters, by name."""

DISTANCES = ("basis", "annotator", "other", "cases", "distance")
TREE = ("basis", "distance", "annotators")


def agreements_of_runs(runs: Sequence[RunEntry], basis: str) -> list[CaseAgreement]:
    """Return the similarity of the raters of every case and structure, by the latest run of the case.

    Structures of earlier runs that have been renamed or merged since are omitted.
    `runs`: runs of masks, the latest last. Only runs of the mixture have shared consensuses. `basis`: a key
    of `BASES`.
    """
    latest: dict[str, list[Any]] = {}
    for run in runs:
        for case in run.log.get("images", ()):
            structures = case.get("structures", ())
            kept = [structure for structure in structures if basis == DICE or structure.get("follows")]
            if kept:
                latest[str(case.get("image"))] = kept
    agreements = []
    for structure in chain.from_iterable(latest.values()):
        names = tuple(map(str, structure.get("raters", ())))
        if basis == CONSENSUS:
            follows = np.array(structure["follows"], dtype=np.int64)
            values = (follows[:, None] == follows).astype(float)
        else:
            table = structure.get("pair_dice", ())
            values = np.array(
                [[np.nan if value is None else value for value in row] for row in table], dtype=float
            )
        if len(names) > 1 and values.shape == (len(names), len(names)):
            agreements.append(CaseAgreement(names, values))
    return agreements


def agreements_of_results(results: Iterable[CaseResult], basis: str) -> list[CaseAgreement]:
    """Return the similarity of raters in new results; by consensus only for the mixture."""
    agreements = []
    for result in results:
        for fusion, report in zip(result.fusions, result.reports, strict=True):
            if len(fusion.annotators) < 2:
                continue
            if basis == DICE:
                agreements.append(CaseAgreement(fusion.annotators, report.pair_dice))
            elif followed_consensus(fusion) is not None:
                agreements.append(_by_consensus(fusion))
    return agreements


def follow_consensuses(inputs: Inputs, watch: Watch = silent) -> list[CaseAgreement]:
    """Fit the mixture of consensuses to every case and structure (robust fusion paper, section 4.3).

    `inputs`: cases of masks.
    """
    work = [(case, name) for case in inputs.given.values() for name in case.records]
    agreements = []
    for (case, name), step in steps_of(watch, work):
        masks = case.masks(name, partial(step, 0.0, "assembling the masks"))
        if len(masks.annotators) > 1:
            agreements.append(_by_consensus(mixture(masks, watch=step)))
    return agreements


def _by_consensus(fusion: MaskFusion) -> CaseAgreement:
    alternatives = [alternative.responsibility for alternative in fusion.alternatives]
    return CaseAgreement(fusion.annotators, same_consensus(alternatives or [np.ones(len(fusion.annotators))]))


def clusters_in_words(tree: RaterTree) -> str:
    """Describe in a sentence which raters always follow the same consensus, and which join last."""
    together = [cluster for cluster in tree.cut(0.0) if len(cluster) > 1]
    groups = "; ".join(
        ", ".join(plain(name, 40) for name in sorted(cluster_names)) for cluster_names in together
    )
    always = f"always the same consensus: {groups}" if groups else "no two raters always share a consensus"
    if not len(tree.linkage) or tree.linkage[-1, 2] == 0:
        return always
    fewer = min(tree.cut(float(np.nextafter(tree.linkage[-1, 2], -1))), key=len)
    names = ", ".join(plain(name, 40) for name in sorted(fewer))
    apart = f"{percent(tree.linkage[-1, 2])} of cases" if tree.linkage[-1, 2] <= 1 else "no case in common"
    return f"{always}; joined last: {names} ({apart})"


def write_clusters(folder: Path, tables: dict[str, list[CaseAgreement]]) -> list[Path]:
    """Write rater_distances.csv, distances over cases, and rater_tree.csv, the groups by complete linkage."""
    trees = {basis: cluster_raters(cases) for basis, cases in tables.items() if cases}
    return [
        write_table(folder / "rater_distances.csv", DISTANCES, _distances(trees)),
        write_table(folder / "rater_tree.csv", TREE, _joins(trees)),
    ]


def _distances(trees: dict[str, RaterTree]) -> Iterator[tuple[object, ...]]:
    for basis, tree in trees.items():
        for a, b in combinations(range(len(tree.names)), 2):
            yield (
                basis,
                tree.names[a],
                tree.names[b],
                int(tree.common[a, b]),
                format_number(tree.distance[a, b]),
            )


def _joins(trees: dict[str, RaterTree]) -> Iterator[tuple[object, ...]]:
    for basis, tree in trees.items():
        members: list[tuple[str, ...]] = [(name,) for name in tree.names]
        for first, second, height, _ in tree.linkage:
            members.append(members[int(first)] + members[int(second)])
            yield basis, format_number(height) if height <= 1 else "", "; ".join(sorted(members[-1]))


def annotator_columns(*, calibrated: bool) -> tuple[str, ...]:
    """Name the columns of annotators.csv; lengths are in mm, or in pixels without a voxel size.

    The bias is that of window and report: the mean distance of the rater's outline outside the consensus's
    (`Report.offset`), above 0 for a rater who marks more. Sensitivity and specificity are by the consensus,
    too; those of the model are STAPLE's estimates. The model's bias is another quantity, estimated
    over all voxels, most of them where all raters agree. So are the square root of Sigma, the standard
    deviation, the degrees of freedom and the scale tau (`MaskFusion`). Programs follow the raters: their
    `program` is 1, and `counts_as` is the number of raters that they count as near the outline. Raters that
    the run excludes come last: their `excluded` is 1, and the consensus is that of the others.
    """
    unit = "mm" if calibrated else "px"
    return (
        "annotator", f"bias_{unit}", f"spread_{unit}", f"model_bias_{unit}", f"model_sigma_{unit}",
        f"model_sd_{unit}", "dof", "tau", "dice", "hausdorff", "hausdorff95", "sensitivity", "specificity",
        "model_sensitivity", "model_specificity", "program", "counts_as", "excluded",
    )  # fmt: skip


def annotator_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Return the rows of annotators.csv for one structure; see `annotator_columns`."""
    undefined = np.full(len(fusion.annotators), np.nan)
    sigma = undefined if fusion.sigma is None else np.sqrt(fusion.sigma[0])
    tau = undefined if report.tau is None else report.tau
    for p, name in enumerate(fusion.annotators):
        model = (report.offset[p], report.spread[p], fusion.bias[0, p], sigma[p],
                 np.sqrt(fusion.variance[0, p]), fusion.dof[0, p], tau[p])  # fmt: skip
        compared = report.compared[p]
        shares = (fusion.sensitivity[0, p], fusion.specificity[0, p])
        yield (name, *map(format_number, (*model, *_compared(compared), *shares)), 0, "", 0)
    if report.programs is not None:
        rows = zip(report.programs.names, report.programs.near, report.programs_compared, strict=True)
        for name, near, compared in rows:
            figures = map(format_number, _compared(compared))
            yield (name, *[""] * 7, *figures, "", "", 1, format_number(near), 0)


def excluded_rows(raters: Mapping[str, ExcludedRater]) -> Iterator[Row]:
    """Return the rows of annotators.csv of excluded raters of one structure; see `annotator_columns`."""
    for name, rater in raters.items():
        own, figures = (rater.offset, rater.spread), _compared(rater.compared)
        yield (name, *map(format_number, own), *[""] * 5, *map(format_number, figures), "", "", 0, "", 1)


def _compared(comparison: Comparison) -> tuple[float, ...]:
    return (
        comparison.dice, comparison.hausdorff, comparison.hausdorff_95,
        comparison.sensitivity, comparison.specificity,
    )  # fmt: skip


def agreement_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Return the rows of agreement.csv for one structure, one per pair of raters."""
    for p, name in enumerate(fusion.annotators):
        for q in range(p + 1, len(fusion.annotators)):
            figures = (report.pair_dice[p, q], report.pair_hausdorff_95[p, q])
            yield (name, fusion.annotators[q], *map(format_number, figures))


def dispute_rows(fusion: MaskFusion, report: Report, per_ml: float = 1.0) -> Iterator[Row]:
    """Return the rows of disputes.csv for one structure; voxels count from 0, ends are inclusive.

    `per_ml`: units of `dispute_columns` in a millilitre.

    Only the last column counts slices from 1, as the window and the report do.
    """
    names = fusion.annotators
    for number, dispute in enumerate(report.disputes, start=1):
        box = [v for at, n in zip(dispute.origin, dispute.shape, strict=True) for v in (at, at + n - 1)]
        figures = (dispute.volume_ml * per_ml, dispute.doubt_ml * per_ml)
        beyond, short = ("; ".join(names[p] for p in raters) for raters in (dispute.beyond, dispute.short))
        rest = (names[dispute.leader], format_number(dispute.reach), format_number(dispute.weight))
        slices = f"{box[0] + 1} to {box[1] + 1}"
        yield (number, *box, *map(format_number, figures), beyond, short, *rest, slices)
