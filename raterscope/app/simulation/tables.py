"""Draw a set-up and write its data, with the truth beside it, in the formats that the program reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, repeating
from raterscope.algorithms.simulation.label_crowds import CHANGES, simulate_labels
from raterscope.algorithms.simulation.label_plans import scoring_crowd
from raterscope.algorithms.simulation.mixtures import (
    JOINING,
    STREAMS,
    CrowdOfClicks,
    CrowdOfVotes,
    decide_again,
    overlapping_crowd,
    separated_crowd,
    voting_crowd,
)
from raterscope.algorithms.simulation.pair_crowds import study_crowd
from raterscope.algorithms.simulation.raters import gather_raters, simulate_case
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.write_nifti import write_array
from raterscope.app.sample_files import BEGUN, write_rows
from raterscope.app.simulation.setups import (
    BiasSettings,
    CrowdSettings,
    OverlappingSettings,
    ProstateSettings,
    SeparatedSettings,
    StreamSettings,
    VotingSettings,
)

__all__ = ["WRITERS", "Drawn"]

ABSENT, PRESENT = "absent", "present"
JOINED = 50
"""Annotators at the end of the thesis's section 5.2."""
_OVERLAPPING_TOLERANCE = 0.3
"""How far a centre found may lie from a true one, in the paper's units; the paper does not state it."""
_SEPARATED_TOLERANCE = 50.0
"""The same of the thesis's set-up, pixels; the thesis does not state it either."""


@dataclass(frozen=True)
class Drawn:
    """The files of a simulation.

    Attributes
    ----------
    data : tuple of Path
        The annotations, and what they were made on.
    truth : tuple of Path
        The truth that can be imported, and compared with by `fuse --truth`.
    beside : tuple of Path
        What else is true: of annotators, of components, of the order of items.
    radius : float, optional
        How far a detection may lie from a true place, pixels.
    classes : mapping of output to class
        What outputs stand for, where they are not the classes themselves.
    """

    data: tuple[Path, ...]
    truth: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    radius: float | None = None
    classes: Mapping[str, str] = field(default_factory=dict)


def _overlapping(settings: OverlappingSettings, folder: Path, watch: Watch) -> Drawn:
    watch(0.0, "drawing clicks")
    crowd = overlapping_crowd(settings.annotators, settings.seed, settings.fewest, settings.most)
    return _write_clicks(
        crowd, "overlapping", settings.scale, _OVERLAPPING_TOLERANCE * settings.scale, folder, watch
    )


def _separated(settings: SeparatedSettings, folder: Path, watch: Watch) -> Drawn:
    watch(0.0, "drawing clicks")
    crowd = separated_crowd(
        settings.annotators, settings.seed, settings.components, settings.side, settings.spread,
        settings.separation, settings.fewest, settings.most,
    )  # fmt: skip
    return _write_clicks(crowd, "separated", 1.0, _SEPARATED_TOLERANCE, folder, watch)


def _write_clicks(
    crowd: CrowdOfClicks, image: str, scale: float, radius: float, folder: Path, watch: Watch
) -> Drawn:
    """Write a crowd in pixels from the upper left corner of the image."""
    left, top, right, bottom = crowd.clicks.extent
    size = f"{(right - left) * scale:.6g}", f"{(bottom - top) * scale:.6g}"
    corner, names = np.array([left, top]), _names(len(crowd.clicks.annotators))
    data, truth = folder / "clicks.csv", folder / "truth.csv"
    beside = folder / "true_annotators.csv", folder / "true_components.csv", folder / "true_clicks.csv"
    watch(0.3, "writing clicks")
    points = (crowd.clicks.points - corner) * scale
    who = crowd.clicks.annotator.tolist()
    write_rows(
        data,
        ("annotator", "image", "x", "y", "width", "height"),
        ((names[one], image, *_places(point), *size) for one, point in zip(who, points, strict=True)),
    )
    watch(0.7, "writing the truth")
    mean, covariance = (crowd.mean - corner) * scale, crowd.covariance * scale**2
    write_rows(truth, ("image", "x", "y"), ((image, *_places(one)) for one in mean))
    write_rows(
        beside[0],
        ("annotator", "reliability"),
        zip(names, map(_number, crowd.reliability), strict=True),
    )
    write_rows(
        beside[1],
        ("image", "component", "x", "y", "sxx", "sxy", "syy", "weight"),
        (
            (image, str(m + 1), *_places(mean[m]), *map(_number, covariance[m][np.triu_indices(2)]),
             _number(crowd.weight[m]))
            for m in range(len(mean))
        ),
    )  # fmt: skip
    write_rows(
        beside[2],
        ("row", "annotator", "component"),
        (
            (str(row), names[one], str(m + 1) if m >= 0 else "")
            for row, (one, m) in enumerate(zip(who, crowd.component.tolist(), strict=True), start=1)
        ),
    )
    return Drawn((data,), (truth,), beside, radius)


def _voting(settings: VotingSettings, folder: Path, watch: Watch) -> Drawn:
    watch(0.0, "drawing votes")
    crowd = voting_crowd(
        settings.annotators, settings.clusters, settings.seed, settings.sensitivity, settings.specificity,
        settings.prevalence, settings.concentration,
    )  # fmt: skip
    return _write_votes(crowd, crowd.votes.marked[None], None, folder, watch)


def _streams(settings: StreamSettings, folder: Path, watch: Watch) -> Drawn:
    watch(0.0, "drawing decisions")
    joins = settings.scenario.startswith("joining-")
    if joins:
        scenario = JOINING[settings.scenario.removeprefix("joining-")]
        annotators, (clusters, *rates) = JOINED, scenario
    else:
        annotators, clusters, *rates = STREAMS[settings.scenario]
    crowd = voting_crowd(
        settings.annotators or annotators, settings.clusters or clusters, settings.seed,
        rates[0] if settings.sensitivity is None else settings.sensitivity,
        rates[1] if settings.specificity is None else settings.specificity, settings.prevalence,
    )  # fmt: skip
    if joins:
        return _write_votes(crowd, crowd.votes.marked[None], np.arange(len(crowd.sensitivity)), folder, watch)
    return _write_votes(crowd, decide_again(crowd, settings.times, settings.seed), None, folder, watch)


def _write_votes(crowd: CrowdOfVotes, marked: Any, joined: Any, folder: Path, watch: Watch) -> Drawn:
    """Write (T, R, M) decisions in the order of time: a second for each step, or for each who joins."""
    times, annotators, clusters = marked.shape
    data, truth, beside = folder / "labels.csv", folder / "truth.csv", folder / "true_annotators.csv"
    who = _names(annotators)
    tasks = _names(clusters, "cluster ")
    timed = times > 1 or joined is not None

    def rows() -> Iterable[Sequence[str]]:
        for t in range(times):
            watch(0.2 + 0.7 * t / times, "writing votes")
            for r in range(annotators):
                time = [str(joined[r] + 1 if joined is not None else t + 1)] if timed else []
                for m in range(clusters):
                    yield (who[r], tasks[m], PRESENT if marked[t, r, m] else ABSENT, *time)

    write_rows(data, ("annotator", "task", "label", *(["time"] if timed else [])), rows())
    write_rows(
        truth,
        ("task", "label"),
        zip(tasks, np.where(crowd.present, PRESENT, ABSENT).tolist(), strict=True),
    )
    rates = zip(who, map(_number, crowd.sensitivity), map(_number, crowd.specificity), strict=True)
    write_rows(beside, ("annotator", "sensitivity", "specificity"), rates)
    return Drawn((data,), (truth,), (beside,))


def _prostate(settings: ProstateSettings, folder: Path, watch: Watch) -> Drawn:
    shape = settings.slices, settings.rows, settings.columns
    spacing = settings.thickness, settings.pixel, settings.pixel
    raters = gather_raters(settings.raters, settings.seed, wider=settings.wider)
    case = simulate_case(
        settings.seed, shape, spacing, raters, subject="prostate", watch=part(watch, 0.0, 0.7)
    )
    if not case.truth.any():
        raise InputError("the volume is too small for a prostate; expected more slices, rows or columns")
    grid = Grid.plain(shape, spacing, calibrated=True)
    names = [rater.name.lower() for rater in case.raters]  # as they are read from the files' names
    arrays = {"prostate": case.volume}
    arrays |= {
        f"prostate_{name.replace(' ', '_')}": mask.astype(np.uint8)
        for name, mask in zip(names, case.masks, strict=True)
    }
    arrays["prostate_truth"] = case.truth.astype(np.uint8)
    paths = []
    for done, (name, values) in enumerate(arrays.items()):
        report, look = repeating(watch)
        report(0.7 + 0.3 * done / len(arrays), f"writing {name}.nii.gz")
        paths.append(folder / f"{name}.nii.gz")
        write_array(paths[-1], values, grid, look=look)
    beside = folder / "true_annotators.csv"
    write_rows(
        beside,
        ("annotator", "bias", "scatter", "leaks", "second_school"),
        (
            (name, _number(one.bias), _number(one.scatter), _yes(one.leaks), _yes(one.wider))
            for name, one in zip(names, case.raters, strict=True)
        ),
    )
    return Drawn(tuple(paths[:-1]), (paths[-1],), (beside,))


def _crowd(settings: CrowdSettings, folder: Path, watch: Watch) -> Drawn:
    watch(0.0, "drawing votes")
    crowd = simulate_labels(
        scoring_crowd(
            settings.tasks, settings.annotators, fewest=settings.fewest, most=settings.tasks,
            tail=settings.tail, shares=(1 - settings.prevalence, settings.prevalence),
            changing=settings.changing, hard=settings.hard, cohorts=min(6, settings.tasks),
            prefix="candidate", classes=("not supernova", "supernova"),
        ),
        settings.seed,
    )  # fmt: skip
    labels = crowd.labels
    data, truth = folder / "labels.csv", folder / "truth.csv"
    beside = folder / "true_annotators.csv", folder / "true_confusion.csv"
    write_rows(data, ("annotator", "task", "label", "time"), _label_rows(labels, part(watch, 0.3, 0.8)))
    watch(0.8, "writing the truth")
    classes = (labels.classes[one] for one in crowd.truth.tolist())
    write_rows(truth, ("task", "label"), zip(labels.tasks, classes, strict=True))
    counts = np.bincount(labels.annotator, minlength=len(labels.annotators)).tolist()
    write_rows(
        beside[0],
        ("annotator", "votes", "community", "change", "first_changed_vote"),
        (
            (name, str(votes), crowd.behaviours[group], CHANGES[change], str(moment + 1) if change else "")
            for name, votes, group, change, moment in zip(
                labels.annotators, counts, crowd.community.tolist(), crowd.change.tolist(),
                crowd.moment.tolist(), strict=True,
            )
        ),
    )  # fmt: skip
    write_rows(
        beside[1],
        ("annotator", "when", "true", "given", "probability"),
        (
            (labels.annotators[k], when, labels.classes[j], labels.outputs[said], _number(rows[k, j, said]))
            for k in range(len(labels.annotators))
            for when, rows in (("first", crowd.early), ("last", crowd.late))
            for j in range(len(labels.classes))
            for said in range(len(labels.outputs))
        ),
    )
    assert labels.meaning is not None
    meant = (labels.classes[one] for one in labels.meaning.tolist())
    stands = dict(zip(labels.outputs, meant, strict=True))
    return Drawn((data,), (truth,), beside, classes=stands)


def _label_rows(labels: Labels, watch: Watch) -> Iterable[Sequence[str]]:
    assert labels.time is not None
    votes = zip(
        labels.annotator.tolist(), labels.task.tolist(), labels.label.tolist(), labels.time.tolist(),
        strict=True,
    )  # fmt: skip
    for number, (who, task, said, when) in enumerate(votes):
        if number % 10_000 == 0:
            watch(number / len(labels.task), "writing votes")
        yield labels.annotators[who], labels.tasks[task], labels.outputs[said], f"{BEGUN + when:.1f}"


def _bias(settings: BiasSettings, folder: Path, watch: Watch) -> Drawn:
    watch(0.0, "drawing comparisons")
    crowd = study_crowd(
        settings.p1, settings.p2, settings.seed, settings.items, settings.good, settings.biased
    )
    pairs = crowd.pairs
    who, items = _names(len(pairs.annotators)), _names(len(pairs.items), "item ")
    data, truth, beside = folder / "pairs.csv", folder / "true_ranking.csv", folder / "true_annotators.csv"
    compared = zip(
        pairs.annotator.tolist(), pairs.left.tolist(), pairs.right.tolist(), pairs.choice.tolist(),
        strict=True,
    )  # fmt: skip
    watch(0.4, "writing comparisons")
    write_rows(
        data,
        ("annotator", "left", "right", "choice"),
        ((who[one], items[a], items[b], "left" if said > 0 else "right") for one, a, b, said in compared),
    )
    watch(0.9, "writing the truth")
    order = np.argsort(-crowd.score, kind="stable").tolist()
    write_rows(
        truth,
        ("item", "rank", "score"),
        ((items[at], str(rank), _number(crowd.score[at])) for rank, at in enumerate(order, start=1)),
    )
    sides = {1: "left", -1: "right", 0: ""}
    write_rows(
        beside,
        ("annotator", "biased", "side"),
        ((name, _yes(side != 0), sides[side]) for name, side in zip(who, crowd.side.tolist(), strict=True)),
    )
    return Drawn((data,), (truth,), (beside,))


def _names(count: int, prefix: str = "a") -> list[str]:
    """Give names by number, short enough for narrow columns."""
    width = len(str(count))
    return [f"{prefix}{number:0{width}d}" for number in range(1, count + 1)]


def _places(point: Any) -> tuple[str, str]:
    return f"{point[0]:.4f}", f"{point[1]:.4f}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


WRITERS: Mapping[str, Callable[[Any, Path, Watch], Drawn]] = {
    "overlapping": _overlapping,
    "separated": _separated,
    "voting": _voting,
    "streams": _streams,
    "prostate": _prostate,
    "crowd": _crowd,
    "bias": _bias,
}
"""Of each set-up what draws it and writes it into a folder."""
