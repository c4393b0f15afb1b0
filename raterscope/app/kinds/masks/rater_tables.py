"""Tables of raters of masks: their figures, agreement and disputes, and clusters over cases.

Clusters are by overlap, or by the share of cases in which raters follow one consensus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.annotators.similarity import (
    CaseAgreement,
    RaterTree,
    cluster_raters,
    same_consensus,
)
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.masks.mixture import mixture
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import plain
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.kinds.masks.runs import Inputs, followed_consensus
from raterscope.app.study import RunEntry
from raterscope.text import percent

Row = Sequence[object]

AGREEMENT = ("annotator", "other", "dice", "hausdorff95")
DISPUTES = (
    "region", "first_slice", "last_slice", "first_row", "last_row", "first_column", "last_column", "ml",
    "doubt_ml", "beyond", "short", "farthest", "reach", "weight", "slices_from_1",
)  # fmt: skip

DICE, CONSENSUS = "dice", "consensus"

BASES = {DICE: "Dice overlap", CONSENSUS: "Shared consensus"}
"""Bases of the distance between raters, by name."""

DISTANCES = ("basis", "annotator", "other", "cases", "distance")
TREE = ("basis", "distance", "annotators")


def agreements_of_runs(runs: Sequence[RunEntry], basis: str) -> list[CaseAgreement]:
    """Return the similarity of the raters of every case and structure, by the latest run that has it.

    `runs`: runs of masks, the latest last. Only runs of the mixture have shared consensuses. `basis`: a key
    of `BASES`.
    """
    latest: dict[tuple[str, str], Any] = {}
    for run in runs:
        for case in run.log.get("images", ()):
            for structure in case.get("structures", ()):
                if basis == DICE or structure.get("follows"):
                    latest[str(case.get("image")), str(structure.get("structure"))] = structure
    agreements = []
    for structure in latest.values():
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
    """Name the raters who always follow the same consensus, and who is joined last, in a sentence."""
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

    The bias is that of window and report: how far the rater's outline lies beyond the consensus's on average
    along it (`Report.offset`), above 0 for a rater who marks more. The model's bias is another quantity,
    estimated over all voxels, mostly where all raters agree; so are Sigma (its square root), the
    standard deviation, the degrees of freedom and the scale tau (`MaskFusion`).
    """
    unit = "mm" if calibrated else "px"
    return (
        "annotator", f"bias_{unit}", f"spread_{unit}", f"model_bias_{unit}", f"model_sigma_{unit}",
        f"model_sd_{unit}", "dof", "tau", "dice", "hausdorff", "hausdorff95", "sensitivity", "specificity",
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
        figures = (compared.dice, compared.hausdorff, compared.hausdorff_95)
        shares = (fusion.sensitivity[0, p], fusion.specificity[0, p])
        yield (name, *map(format_number, (*model, *figures, *shares)))


def agreement_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Return the rows of agreement.csv for one structure: every pair of raters once."""
    for p, name in enumerate(fusion.annotators):
        for q in range(p + 1, len(fusion.annotators)):
            figures = (report.pair_dice[p, q], report.pair_hausdorff_95[p, q])
            yield (name, fusion.annotators[q], *map(format_number, figures))


def dispute_rows(fusion: MaskFusion, report: Report) -> Iterator[Row]:
    """Return the rows of disputes.csv for one structure; voxels count from 0, ends are inclusive.

    Only the last column counts slices from 1, as the window and the report do.
    """
    names = fusion.annotators
    for number, dispute in enumerate(report.disputes, start=1):
        box = [v for at, n in zip(dispute.origin, dispute.shape, strict=True) for v in (at, at + n - 1)]
        figures = (dispute.volume_ml, dispute.doubt_ml)
        beyond, short = ("; ".join(names[p] for p in raters) for raters in (dispute.beyond, dispute.short))
        rest = (names[dispute.leader], format_number(dispute.reach), format_number(dispute.weight))
        slices = f"{box[0] + 1} to {box[1] + 1}"
        yield (number, *box, *map(format_number, figures), beyond, short, *rest, slices)
