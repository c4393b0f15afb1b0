"""Experiments of the dynamic combination paper."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.common_tasks import common_task_communities
from raterscope.algorithms.annotators.communities import CommunitySettings, communities
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.cross_validation import cross_validate
from raterscope.algorithms.labels.data import ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import confusion_at
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.simulation.label_crowds import SimulatedLabels, scoring_crowd, simulate_labels
from raterscope.app.papers.experiments import Experiment, Measures, Paper, Row, read_labels_of

_AREAS = {
    "mean-score": ("mean of scores", 0.7543),
    "weighted-sum": ("weighted sum", 0.7722),
    "majority": ("simple majority", 0.7809),
    "weighted-majority": ("weighted majority", 0.7378),
    "gibbs": ("Gibbs-IBCC", 0.9127),
    "ibcc": ("VB-IBCC", 0.9840),
}
"""AUC of each method in Figure 2(b)."""

_BINARY = ("majority", "weighted-majority")
"""Methods that give classes without a score, as section 4 states: their ROC curve is one point."""

_FASTER = 349 / 13
"""Times of Gibbs sampling and of variational Bayes (section 4), seconds."""

_OPEN = {"bluebirds": "108 bird pictures", "rte": "800 sentence pairs", "sp_amt": "500 film reviews"}


def _crowd(number: int, **changes: float) -> SimulatedLabels:
    """Draw the crowd of `raterscope simulate crowd`."""
    plan = scoring_crowd(
        963, 1705, fewest=8, most=963, tail=2.04, shares=(0.9, 0.1), prefix="candidate", **changes
    )
    return simulate_labels(plan, number)


def _area(posterior: FloatArray, truth: ClassArray, labels: Labels, *, binary: bool) -> float:
    if binary:
        posterior = np.eye(len(labels.classes))[posterior.argmax(axis=1)]
    result = assess(posterior, truth, labels.classes)
    return np.nan if result is None else result.area


def _folded(labels: Labels, truth: ClassArray, seed: int, methods: tuple[str, ...]) -> dict[str, float]:
    """Return the AUC of each method by five-fold cross-validation, and its seconds."""
    result = {}
    for name in methods:
        plan = LabelPlan.make(name)
        run(labels, plan)  # compilation at the first call is not timed
        start_time = time.perf_counter()
        crossed = cross_validate(labels, truth, partial(_fuse, plan), seed=seed)
        result[f"{name} seconds"] = time.perf_counter() - start_time
        judged = np.where(crossed.fold >= 0, truth, -1).astype(np.int16)
        result[name] = _area(crossed.posterior, judged, labels, binary=name in _BINARY)
    return result


def _fuse(plan: LabelPlan, labels: Labels, watch: Watch) -> LabelFusion:
    return run(labels, plan, watch=watch)


def _areas(cell: str, number: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    crowd = _crowd(number)
    result = _folded(crowd.labels, crowd.truth, number, (*_AREAS, "pooled"))
    return result | {"faster": result["gibbs seconds"] / result["ibcc seconds"]}


_FIGURE_2 = Experiment(
    name="labels-figure-2",
    title="Figure 2: areas under the ROC curves, five-fold cross-validation",
    cells=("crowd",),
    measure=_areas,
    rows=(
        *(
            Row(f"AUC, {words}", "crowd", name, area, default="pooled")
            for name, (words, area) in _AREAS.items()
        ),
        Row("seconds of Gibbs sampling over those of VB-IBCC", "crowd", "faster", _FASTER, digits=1),
    ),
    runs=20, quick=2,
    method="963 tasks, 1,705 annotators and about 26,558 votes of -1, 1 and 3 in five communities, a tenth "
    "of the tasks positive. Majority votes give classes alone.",
    command="raterscope simulate crowd --study -o x && raterscope fuse labels x/labels.csv --truth "
    "x/truth.csv --folds --compare --outputs=-1,1,3 --classes 'not supernova',supernova --stands '-1=not "
    "supernova' 1=supernova 3=supernova -o x/fused",
    remark="The simulated annotators follow the model, and their tasks are easier than supernovae: all "
    "methods score higher, and the vote loses less to IBCC.",
    instead="The Galaxy Zoo Supernovae votes are not published. A simulated crowd of the same size.",
)  # fmt: skip


def _on_open_crowd(cell: str, number: int, data: Path) -> Measures:
    labels, truth = read_labels_of(data, cell)
    return _folded(labels, truth, number, ("majority", "ibcc", "pooled"))


_OPEN_CROWDS = Experiment(
    name="labels-open-crowds",
    title="Section 4 on open crowds: areas under the ROC curves",
    cells=tuple(_OPEN),
    measure=_on_open_crowd,
    rows=tuple(
        Row(f"{name} ({words}), {method}", name, key, text="-", default="pooled")
        for name, words in _OPEN.items()
        for key, method in (("majority", "majority"), ("ibcc", "VB-IBCC"))
    ),
    runs=10,
    quick=2,
    method="Real crowds with known truth, which the paper does not have. Each run deals other folds: the "
    "errors are of the folds, not of the tasks.",
    command="raterscope fuse labels data/labels/rte.csv --truth data/labels/rte_truth.csv --folds --compare "
    "-o x",
    needs="labels/rte.csv",
)


def _grouped(cell: str, number: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Find the planted communities of annotators with many votes."""
    crowd = _crowd(number, changing=0.0, hard=0.0)
    labels = crowd.labels
    fusion = run(labels, LabelPlan.make("ibcc"))
    votes = np.bincount(labels.annotator, minlength=len(labels.annotators))
    mean = fusion.confusion.mean()
    result: dict[str, float] = {}
    for name, settings in (
        ("printed", CommunitySettings(scale=1.0, min_votes=30)),
        ("default", CommunitySettings(min_votes=30)),
    ):
        groups = communities(mean, votes, settings)
        result[f"{name} count"] = float(groups.count)
        result[f"{name} agreement"] = _rand(groups.community, crowd.community[groups.members])
    linked = common_task_communities(labels.task, labels.annotator, len(labels.tasks), len(labels.annotators))
    result |= {"linked": float(linked.count), "modularity": linked.modularity}
    return result | {"cohorts": _rand(linked.community, crowd.cohort[linked.members])}


def _rand(first: NDArray[np.integer], second: NDArray[np.integer]) -> float:
    """Return the adjusted Rand index of two groupings."""
    table = np.zeros((int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1))
    np.add.at(table, (first, second), 1)
    in_both, rows, columns, all_pairs = (
        float((counts * (counts - 1) / 2).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), np.array([len(first)]))
    )
    chance = rows * columns / all_pairs if all_pairs else 0.0
    upper = (rows + columns) / 2
    return 1.0 if upper == chance else (in_both - chance) / (upper - chance)


_GROUPS = Experiment(
    name="labels-figure-3",
    title="Figure 3 and section 6: communities of annotators",
    cells=("crowd",),
    measure=_grouped,
    rows=(
        Row("communities by confusion matrices (five are planted)", "crowd", "printed count", 5,
            default="default count", better="nearer", aim=5, digits=1),
        Row("agreement with those planted, adjusted Rand index", "crowd", "printed agreement", text="-",
            default="default agreement"),
        Row("communities by common tasks (six are planted)", "crowd", "linked", 32, better="nearer", aim=6,
            digits=1),
        Row("their modularity", "crowd", "modularity", 0.75),
        Row("their agreement with those planted, adjusted Rand index", "crowd", "cohorts", text="-"),
    ),
    runs=20, quick=2,
    method="The simulated crowd, whose annotators do not change; those with 30 votes or more, whose matrices "
    "are known. As published: eqs. 32 and 33 with the scale 1. The default chooses the scale.",
    command="raterscope simulate crowd --changing 0 --hard 0 --study -o x",
    remark="With the scale 1 all similarities are near 1, and communities merge. The paper's crowd had 32 "
    "communities by common tasks among 2,131 annotators; here there are six cohorts.",
    instead="The Galaxy Zoo Supernovae votes are not published. A simulated crowd of the same size with five "
    "planted behaviours and six cohorts.",
)  # fmt: skip


def _changing(cell: str, number: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Compare the estimated confusion matrix at every vote with the true matrix."""
    plan = scoring_crowd(600, 120, fewest=100, most=600, tail=1.0, changing=1.0, hard=0.0, shares=(0.6, 0.4))
    crowd = simulate_labels(plan, number)
    labels = crowd.labels
    true, changes = crowd.confusion(), crowd.changed[labels.annotator]
    result: dict[str, float] = {}
    for name in ("ibcc", "dynibcc"):
        fusion = run(labels, LabelPlan.make(name))
        error = np.square(matrices_of(fusion, labels) - true).mean(axis=(1, 2))
        result[f"{name} changing"] = float(np.sqrt(error[changes].mean()))
        result[f"{name} steady"] = float(np.sqrt(error[~changes].mean())) if (~changes).any() else np.nan
        result[f"{name} area"] = _area(fusion.posterior, crowd.truth, labels, binary=False)
    return result


def matrices_of(fusion: LabelFusion, labels: Labels) -> FloatArray:
    """Return each vote's annotator's expected matrix at that vote, (V, J, L)."""
    if fusion.drift is None:
        return fusion.confusion.mean()[labels.annotator]
    alpha = np.empty(fusion.drift.alpha.shape)
    alpha[fusion.drift.vote] = fusion.drift.alpha
    return np.asarray(alpha / alpha.sum(axis=2, keepdims=True))


_DYNAMIC = Experiment(
    name="labels-figures-7-8",
    title="Figures 7 and 8: confusion matrices that change, static IBCC against DynIBCC",
    cells=("crowd",),
    measure=_changing,
    rows=(
        Row("error of matrices, annotators who change; as published: static; default: DynIBCC", "crowd",
            "ibcc changing", text="sustained and sudden changes", default="dynibcc changing",
            better="lower"),
        Row("the same, annotators who do not change", "crowd", "ibcc steady", text="-",
            default="dynibcc steady", better="lower"),
        Row("AUC of the same two", "crowd", "ibcc area", text="-", default="dynibcc area"),
    ),
    runs=20, quick=2,
    method="A crowd of 120 annotators with 100 to 600 votes who learn, tire or jump; the root mean squared "
    "error over the entries of the matrix behind each vote. The static model stands for the method as "
    "printed, the dynamic one, with the corrections of its printed equations, for the default.",
    command="raterscope simulate crowd --changing 1 --study -o x && raterscope run x/crowd.rscope dynibcc",
    instead="The Galaxy Zoo Supernovae votes are not published. A simulated crowd whose changes are known.",
)  # fmt: skip

_OBSERVATIONS = (3_000, 12_000, 26_558)
"""Numbers of observations after which communities are searched for (section 9)."""


def _emerging(cell: str, number: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Find communities by behaviour after more and more votes, from each annotator's latest matrix."""
    crowd = _crowd(number, hard=0.0)
    result: dict[str, float] = {}
    for count in _OBSERVATIONS:
        labels = first_votes(crowd.labels, count)
        mean = confusion_at(run(labels, LabelPlan.make("dynibcc")), share=1.0).mean()
        votes = np.bincount(labels.annotator, minlength=len(labels.annotators))
        for name, settings in (
            ("printed", CommunitySettings(scale=1.0, min_votes=10)),
            ("default", CommunitySettings(min_votes=10)),
        ):
            groups = communities(mean, votes, settings)
            result[f"{name} {count}"] = float(groups.count)
            result[f"{name} {count} agreement"] = _rand(groups.community, crowd.community[groups.members])
    return result


def first_votes(labels: Labels, count: int) -> Labels:
    """Keep the first votes in the order of time."""
    return replace(
        labels, task=labels.task[:count], annotator=labels.annotator[:count], label=labels.label[:count],
        time=None if labels.time is None else labels.time[:count],
    )  # fmt: skip


_EMERGING = Experiment(
    name="labels-figures-9-10",
    title="Figures 9 and 10: communities after more and more observations",
    cells=("crowd",),
    measure=_emerging,
    rows=tuple(
        row
        for count, paper in zip(_OBSERVATIONS, (3, 4, 5), strict=True)
        for row in (
            Row(f"communities after {count:,} observations (five are planted)", "crowd", f"printed {count}",
                paper, default=f"default {count}", better="nearer", aim=5, digits=1),
            Row(f"agreement with those planted after {count:,}, adjusted Rand index", "crowd",
                f"printed {count} agreement", text="-", default=f"default {count} agreement"),
        )
    ),
    runs=20, quick=1,
    method="The simulated crowd of the paper's size, of which annotators change; DynIBCC on the votes so "
    "far, and communities by the latest matrix of each annotator with ten votes or more.",
    command="raterscope simulate crowd --hard 0 --study -o x && raterscope run x/crowd.rscope dynibcc",
    remark="Most annotators have fewer than 20 votes, too few to distinguish their behaviours: fewer "
    "communities are found than are planted, and one alone at the scale 1. The paper's volunteers gave up to "
    "29,651 votes.",
    instead="The Galaxy Zoo Supernovae votes are not published. A simulated crowd of the same size.",
)  # fmt: skip

_NETWORKS = {50_000: 0.67, 200_000: 0.69, 493_048: 0.75}
"""Numbers of observations, and modularity of the communities by common tasks (section 10)."""


def _linking(cell: str, number: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
    """Find communities by common tasks after increasing numbers of votes."""
    plan = scoring_crowd(
        6000, 2131, fewest=30, most=6000, tail=0.86, shares=(0.9, 0.1), prefix="candidate", cohorts=32
    )
    crowd = simulate_labels(plan, number)
    result: dict[str, float] = {"votes": float(len(crowd.labels.task))}
    for count in _NETWORKS:
        labels = first_votes(crowd.labels, count)
        groups = common_task_communities(
            labels.task, labels.annotator, len(labels.tasks), len(labels.annotators)
        )
        result |= {
            f"{count} count": float(groups.count), f"{count} modularity": groups.modularity,
            f"{count} agreement": _rand(groups.community, crowd.cohort[groups.members]),
        }  # fmt: skip
    return result


_LINKING = Experiment(
    name="labels-figures-11-13",
    title="Figures 4 and 11 to 13: communities by common tasks, up to 493,048 observations",
    cells=("crowd",),
    measure=_linking,
    rows=(
        Row("communities after all observations (32 cohorts are planted)", "crowd", "493048 count", 32,
            better="nearer", aim=32, digits=1),
        *(
            Row(f"modularity after {count:,} observations", "crowd", f"{count} modularity", paper)
            for count, paper in _NETWORKS.items()
        ),
        Row("agreement with the cohorts after all, adjusted Rand index", "crowd", "493048 agreement",
            text="-"),
    ),
    runs=10, quick=0,
    method="2,131 simulated annotators in 32 cohorts of tasks give about as many votes as the paper's crowd; "
    "those with fewer than ten votes so far are left out.",
    command="raterscope simulate crowd --tasks 6000 --annotators 2131 --fewest 30 --tail 0.86 --study -o x",
    remark="Annotators give 85 % of their votes within their cohort as long as it has tasks; those with many "
    "votes reach into others, so that the modularity falls where the paper's rises.",
    instead="The Galaxy Zoo Supernovae votes are not published. A simulated crowd of the same size.",
)  # fmt: skip

LABELS = Paper(
    name="labels",
    title="Labels: the dynamic combination paper",
    reference="simpson2013",
    experiments=(_FIGURE_2, _OPEN_CROWDS, _GROUPS, _DYNAMIC, _EMERGING, _LINKING),
    unpublished=(
        ("All figures: votes of Galaxy Zoo Supernovae, 493,048 observations", "simulated crowds"),
    ),
)  # fmt: skip
