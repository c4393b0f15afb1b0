"""Clicks: posteriors against truth, and what decisions of the expert do to the spots left undecided."""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from raterscope.algorithms.clicks.annotator_rates import pool_rates
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse, learn_from_each_other
from raterscope.algorithms.clicks.image_priors import judge_each, weigh_together
from raterscope.algorithms.clicks.result import Detection, Fusion, Votes
from raterscope.algorithms.clicks.voting import stray_chance
from raterscope.algorithms.evaluation import Evaluation, calibration, evaluate, match, true_detections
from raterscope.algorithms.progress import silent
from raterscope.algorithms.simulation.click_crowds import gather_annotators, simulate_clicks
from raterscope.algorithms.simulation.smears import render_smear
from tests.algorithms.clicks.crowds import displacement, quantius
from tests.benchmarks.calibration import Row

DISPUTED = (0.1, 0.9)
DECIDED = (1, 3, 10, 30, 100_000)
NO_ORDER = ", in no order"
BY_IMAGE = ", image by image"
"""Images in the order of the queue, the disputed spots of each from the most disputed to the least."""
ONE_ACCEPTED = " and one acceptance"
"""Also accept the structure with the largest share of votes; the structures passed stay undecided."""
SMALL = (8, 12, 15, 20)
"""Annotators of small crowds, half of which look at each image."""
FEW = (4, 8, 12)
"""Rejections in small crowds."""
WRONG = (0, 4, 7, 9)
"""Wrong ones among ten rejections."""
REJECTED = 12
"""Rejections that should clear a run of artefacts alone."""
LOSS = "loss, before > after"
DISPUTED_SPOTS = "disputed, before > after"
CROSSING = "crossing .5 wrongly"
UNCHANGED = 1.001
"""Growth of the loss that counts as none: three decisions have a weight of .002."""
PLAN = FusionPlan.make("oem")


@dataclass(frozen=True, eq=False)
class Image:
    """Clicks on an image, the true places, and how far from one a detection may lie.

    With `biased`, the truth may be displaced as a whole: an expert marked it on another screen.
    """

    clicks: Clicks
    truth: FloatArray
    radius: float
    biased: bool = False


@dataclass(frozen=True, eq=False)
class Run:
    """Images of one crowd, fused each by itself, and which clusters are true."""

    images: Sequence[Image]
    alone: Sequence[Fusion]
    votes: Sequence[Votes]
    true: Sequence[np.ndarray]

    def posteriors(
        self, verdict: np.ndarray | None = None, viewed: np.ndarray | None = None, negative: int | None = None
    ) -> FloatArray:
        """Return the posteriors of `detections`, of all images in turn."""
        detections = self.detections(verdict, viewed, negative, rated=False)
        return np.concatenate([image.posterior for image in detections])

    def detections(
        self,
        verdict: np.ndarray | None = None,
        viewed: np.ndarray | None = None,
        negative: int | None = None,
        rated: bool = True,
    ) -> list[Detection]:
        """Fuse together, with verdicts on the clusters of all images in turn.

        Of the clusters `viewed` tells which were left without a decision; `negative` is an image that is
        known to hold no structure.
        """
        votes = list(self.votes)
        ends = np.cumsum([len(image) for image in self.true])[:-1]
        if verdict is not None:
            parts = np.split(verdict.astype(np.int8), ends)
            votes = [replace(image, verdict=part) for image, part in zip(votes, parts, strict=True)]
        if viewed is not None:
            votes = [
                replace(image, viewed=part) for image, part in zip(votes, np.split(viewed, ends), strict=True)
            ]
        if negative is not None:
            none = np.zeros(len(self.true[negative]), dtype=np.int8)
            votes[negative] = replace(votes[negative], control=False, verdict=none)
        settings = PLAN.detection
        assert isinstance(settings, DEMSettings)
        evidence = weigh_together(
            votes,
            [image.clicks.annotators for image in self.images],
            [image.detection.posterior for image in self.alone],
            settings,
            silent,
        )
        return judge_each(evidence, settings, silent, rated=rated)


def rows() -> list[Row]:
    """Measure on simulated smears, and on real crowds where RATERSCOPE_DATA says where they are."""
    results: list[Row] = []
    for name, groups in crowds().items():
        results += list(_rows_of(name, [fused(images) for images in groups]))
        if any(image.biased for images in groups for image in images):
            published = [[replace(image, biased=False) for image in images] for images in groups]
            results += list(_rows_of(f"{name}, truth as published", [fused(images) for images in published]))
    for annotators in SMALL:
        runs = [fused(smears(100 * annotators + seed, 8, annotators)) for seed in range(4)]
        results += list(_rows_of_few(f"smears, crowd of {annotators}", runs))
    return [*results, *_required(results)]


def _required(results: Sequence[Row]) -> Iterator[Row]:
    """Count the rounds of right decisions that miss a goal, by data set.

    The loss of undecided spots may grow by 3 % after one decision, by 10 % after rejections only, otherwise
    not at all; by a tenth of a percent it counts as unchanged. Disputed spots may grow by a tenth. Where all
    of them were decided, none was disputed before among the others, and any change makes some: these rounds
    count only if the loss grew, too.
    """
    goals = (LOSS, DISPUTED_SPOTS, CROSSING)
    rounds: dict[str, dict[str, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in results:
        label, _, goal = row.number.partition(": ")
        if label.startswith("k = ") and "wrong" not in label and goal in goals and row.count:
            rounds[row.data][label][goal] = row
    for data, found in rounds.items():
        missed = dict.fromkeys(goals, 0)
        for label, measured in found.items():
            loss, spots = measured[LOSS], measured[DISPUTED_SPOTS]
            limit = 1.1 if "rejections" in label else 1.03 if label.split(",")[0] == "k = 1" else 1.0
            missed[LOSS] += loss.measured > max(limit, UNCHANGED) * loss.nominal
            worse = loss.measured > UNCHANGED * loss.nominal
            missed[DISPUTED_SPOTS] += spots.measured > 1.1 * spots.nominal and (spots.nominal > 0 or worse)
            missed[CROSSING] += measured[CROSSING].measured > measured[CROSSING].nominal
        for goal, number in missed.items():
            yield Row("clicks", f"rounds that miss: {goal}", data, 0.0, float(number), len(found))


def crowds() -> dict[str, list[list[Image]]]:
    """Gather all crowds: for each name its runs of images."""
    groups = {
        "smears, crowd of 51": [smears(1905, 12, 51)],
        "smears, crowd of 24": [smears(77, 8, 24)],
        "artefacts alone, crowd of 8": [negatives(seed) for seed in range(4)],
    }
    if folder := os.environ.get("RATERSCOPE_DATA"):
        subsets: dict[str, list[Image]] = defaultdict(list)
        for image in quantius(Path(folder)):
            subsets[image.subset].append(Image(image.clicks, image.truth, 4.0, biased=True))
        groups["quantius"] = list(subsets.values())
        groups["iml_malaria, simulated crowd"] = [malaria(Path(folder))]
    return groups


def smears(seed: int, count: int, annotators: int) -> list[Image]:
    """Simulate a crowd on smears, as the sample does."""
    rng, crowd, images = np.random.default_rng(seed), gather_annotators(annotators, seed), []
    for number in range(1, count + 1):
        parasites = 0 if number == 3 else int(rng.integers(4, 36))
        smear = render_smear(seed + number, parasites=parasites, artefacts=int(rng.integers(5, 14)))
        looked = tuple(annotator for annotator in crowd if rng.random() < 0.5) or crowd
        images.append(Image(simulate_clicks(smear, looked, seed + number), smear.parasites, 10.0))
    return images


def negatives(seed: int) -> list[Image]:
    """Simulate four images of artefacts that draw Beta(1, 3) of eight annotators."""
    rng = np.random.default_rng([9, seed])
    none = np.empty((0, 2))
    return [
        Image(
            _clicks(rng, none, rng.uniform(30, 970, (25, 2)), np.zeros(8), (1000.0, 1000.0), 3.0), none, 10.0
        )
        for _ in range(4)
    ]


def malaria(folder: Path, seed: int = 7) -> list[Image]:
    """Simulate a crowd on real cells; healthy ones draw Beta(1, 4) of it, wherever any do."""
    cells: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (folder / "clicks" / "iml_malaria" / "objects.csv").open() as stream:
        for row in csv.DictReader(stream):
            cells[row["image_id"]].append(row)
    rng, images = np.random.default_rng(seed), []
    ability = rng.beta(6, 2, 20)
    for result in cells.values():
        positions = np.array([(float(row["cx"]), float(row["cy"])) for row in result])
        ill = np.array([row["is_parasite"] == "1" for row in result])
        alike = positions[~ill][rng.random(int((~ill).sum())) < 0.12]
        size = float(result[0]["width"]), float(result[0]["height"])
        images.append(
            Image(_clicks(rng, positions[ill], alike, ability, size, 6.0, 4.0), positions[ill], 30.0)
        )
    return images


def _clicks(
    rng: np.random.Generator,
    structures: FloatArray,
    artefacts: FloatArray,
    ability: FloatArray,
    size: tuple[float, float],
    scatter: float,
    repelled: float = 3.0,
) -> Clicks:
    people = len(ability)
    lure = rng.beta(1, repelled, len(artefacts))
    chance = np.vstack([np.tile(ability, (len(structures), 1)), np.tile(lure[:, None], (1, people))])
    position, annotator = np.nonzero(rng.random(chance.shape) < chance)
    points = np.vstack([structures, artefacts])[position] + rng.normal(0, scatter, (len(position), 2))
    strays = int(rng.poisson(0.3 * people))
    points = np.clip(np.vstack([points, rng.uniform(0, size, (strays, 2))]), 0, size)
    annotator = np.append(annotator, rng.integers(0, people, strays))
    return Clicks(
        points[:, 0], points[:, 1], annotator, tuple(f"w{k}" for k in range(people)), (0.0, 0.0, *size)
    )


def fused(images: Sequence[Image]) -> Run:
    """Fuse each image by itself; truth that may be displaced as a whole is aligned with the clusters."""
    kept, alone, votes, true = [], [], [], []
    for image in images:
        fusion = fuse(image.clicks, PLAN, rated=False)
        if len(fusion.clustering):
            if image.biased:
                positions = fusion.clustering.mean
                image = replace(
                    image, truth=image.truth + displacement(positions, image.truth, 2 * image.radius)
                )
            stray = stray_chance(image.clicks.merged()[0], fusion.clustering)
            kept.append(image)
            alone.append(fusion)
            votes.append(Votes(fusion.marked, fusion.clustering.weight, fusion.verdict, *stray))
            true.append(
                true_detections(fusion.clustering.mean, fusion.detection.posterior, image.truth, image.radius)
            )
    return Run(kept, alone, votes, true)


def _rows_of(name: str, runs: Sequence[Run]) -> Iterator[Row]:
    before = [run.posteriors() for run in runs]
    posterior, true = (
        np.concatenate(before),
        np.concatenate([measurement for run in runs for measurement in run.true]),
    )
    share = np.concatenate([measurement.share for run in runs for measurement in run.votes])
    count = len(true)

    def row(number: str, nominal: float, measured: float, count: int = count) -> Row:
        return Row("clicks", number, name, nominal, measured, count)

    yield row("posterior, log loss", 0.17, log_loss(posterior, true))
    yield row("posterior, calibration error", 0.025, calibration(posterior, true).error)
    if len(runs) > 1:
        errors = [
            calibration(measurement, np.concatenate(run.true)).error
            for measurement, run in zip(before, runs, strict=True)
        ]
        worst = before[int(np.argmax(errors))]
        yield row("the same, worst run", 0.05, max(errors), len(worst))
        yield row("the same, of calibrated posteriors in that run", math.nan, _usual_error(worst), len(worst))
    yield row("expected count (nominal: true spots)", float(true.sum()), float(posterior.sum()))
    if true.any() and not true.all():
        yield row("posterior, AUC (nominal: the votes')", _area(share, true), _area(posterior, true))
        together = [_together(run) for run in runs]
        pooled, mean, most = _f_two(runs, together)
        yield row("detections, F2 (over all images)", 0.875, pooled)
        yield row("detections, F2 (mean over images)", 0.875, mean)
        yield row("the same, were all clusters detected", 0.875, most)
        yield row("F2 over all images, were all marked structures detected", 0.875, _marked_f_two(runs))
        yield row("precision of annotators in 95 %", 0.95, *_rates_held(runs, together, "precision"))
        yield row("sensitivity of annotators in 95 %", 0.95, *_rates_held(runs, together, "sensitivity"))
    ways: dict[str, Callable[[FloatArray, np.ndarray], np.ndarray]] = {"": lambda _, right: right}
    for way in (", rejections", ", rejections, views recorded"):
        ways[way] = lambda _, right: right
    ways[", 1/5 wrong"] = lambda seed, right: right ^ (seed < 0.2)
    ways[NO_ORDER] = lambda _, right: right
    few = {"": DECIDED, NO_ORDER: DECIDED[1:3]}
    for way, answer in ways.items():
        for most in few.get(way, DECIDED[2:]):
            yield from _after(runs, before, way, answer, most, row)
    for wrong in WRONG if true.any() else ():
        way = f", {wrong} wrong of ten rejections"
        yield from _after(runs, before, way, lambda _, right: np.zeros_like(right), 10, row)
    if not true.any():
        yield from _after(runs, before, "", ways[""], REJECTED, row)
        others = [run.posteriors(negative=0)[len(run.true[0]) :] for run in runs]
        yield row("one negative control image: false detections", 0.1, *_false(others))


def _rows_of_few(name: str, runs: Sequence[Run]) -> Iterator[Row]:
    """Decide in runs of small crowds, of which votes tell little."""
    before = [run.posteriors() for run in runs]

    def row(number: str, nominal: float, measured: float, count: int) -> Row:
        return Row("clicks", number, name, nominal, measured, count)

    rejections = ("", BY_IMAGE, ", views recorded")
    rounds = [(f", rejections{way}", most) for way in rejections for most in FEW]
    rounds += [(way, most) for way in ("", BY_IMAGE) for most in DECIDED[:4]]
    rounds += [(f", rejections{ONE_ACCEPTED}", most) for most in FEW[1:]]
    for way, most in rounds:
        yield from _after(runs, before, way, lambda _, right: right, most, row)


def _order_of(run: Run, posterior: FloatArray, way: str, most: int) -> np.ndarray:
    """Return the disputed spots in the order in which the expert goes through them."""
    true = np.concatenate(run.true)
    order = np.argsort(abs(posterior - 0.5), kind="stable")
    order = order[_disputed(posterior[order])]
    if NO_ORDER in way:
        return np.random.default_rng([most, len(order)]).permutation(order)
    if BY_IMAGE in way:
        image = np.repeat(np.arange(len(run.true)), [len(clicks) for clicks in run.true])
        doubt = np.bincount(image, np.minimum(posterior, 1 - posterior) * _disputed(posterior))
        rank = np.argsort(np.argsort(-doubt))
        return order[np.argsort(rank[image[order]], kind="stable")]
    if " wrong of " in way:
        wrong = int(way.split(" wrong of ")[0].removeprefix(", "))
        return np.concatenate([order[true[order]][:wrong], order[~true[order]][: most - wrong]])
    return order


def _after(
    runs: Sequence[Run],
    before: Sequence[FloatArray],
    way: str,
    answer: Callable[[FloatArray, np.ndarray], np.ndarray],
    most: int,
    row: Callable[..., Row],
) -> Iterator[Row]:
    """Decide the most disputed spots of each run and fuse again; measure on the undecided."""
    then, now, truth, decided = [], [], [], 0
    for run, posterior in zip(runs, before, strict=True):
        true = np.concatenate(run.true)
        order = _order_of(run, posterior, way, most)
        recorded = ~true[order] if way.startswith(", rejections") else np.ones(len(order), dtype=bool)
        last = int(np.append(np.flatnonzero(recorded)[:most], -1).max()) + 1
        passed, order = order[:last][~recorded[:last]], order[:last][recorded[:last]]
        if ONE_ACCEPTED in way and true.any():
            share = np.concatenate([votes.marked.mean(axis=0) for votes in run.votes])
            order = np.append(order, np.argmax(np.where(true, share, 0)))
        viewed = np.isin(np.arange(len(true)), passed) if "views" in way else None
        verdict = np.full(len(true), -1)
        verdict[order] = answer(np.random.default_rng(most).random(len(order)), true[order])
        left = verdict < 0
        then.append(posterior[left])
        now.append(run.posteriors(verdict, viewed)[left])
        truth.append(true[left])
        decided += len(order)
    old, new, true = np.concatenate(then), np.concatenate(now), np.concatenate(truth)
    label = f"k = {most if most < DECIDED[-1] else 'all'}{way}"
    crossed = np.mean(((old >= 0.5) == true) & ((new >= 0.5) != true)) if len(true) else math.nan
    before_loss, count = log_loss(old, true), len(true)
    yield row(f"{label}: {LOSS}", before_loss, log_loss(new, true), count)
    yield row(f"{label}: {DISPUTED_SPOTS}", float(_disputed(old).sum()), float(_disputed(new).sum()), count)
    yield row(f"{label}: {CROSSING}", 0.01, float(crossed), count)
    if not true.any():
        yield row(f"{label}: false detections", 0.1, float(np.mean(new >= 0.5)), count)


def _usual_error(posterior: FloatArray) -> float:
    """Return the mean calibration error of these posteriors, were they calibrated."""
    rng = np.random.default_rng(0)
    draws = [calibration(posterior, rng.random(len(posterior)) < posterior).error for _ in range(100)]
    return float(np.mean(draws))


def _false(posteriors: Sequence[FloatArray]) -> tuple[float, int]:
    """Return the share of clusters that are called structures, and the number of clusters."""
    every = np.concatenate(posteriors)
    return float(np.mean(every >= 0.5)), len(every)


def _disputed(posterior: FloatArray) -> np.ndarray:
    return (posterior > DISPUTED[0]) & (posterior < DISPUTED[1])


def log_loss(posterior: FloatArray, true: np.ndarray) -> float:
    """Return the mean negative log probability of the truth."""
    chance = np.clip(np.where(true, posterior, 1 - posterior), 1e-6, 1)
    return float(-np.log(chance).mean()) if len(true) else math.nan


def _area(score: FloatArray, true: np.ndarray) -> float:
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(score[true], score[~true]).statistic / (true.sum() * (~true).sum()))


def _together(run: Run) -> list[Fusion]:
    return learn_from_each_other([image.clicks for image in run.images], run.alone, PLAN)


def _f_two(runs: Sequence[Run], together: Sequence[Sequence[Fusion]]) -> tuple[float, float, float]:
    """Return F2 over all images together, its mean over images, and that mean were all clusters detected."""
    results, every = [], []
    for run, fusions in zip(runs, together, strict=True):
        for image, fusion in zip(run.images, fusions, strict=True):
            positions, detected = fusion.clustering.mean, fusion.detection.detected
            results.append(evaluate(positions[detected], image.truth, image.radius))
            every.append(evaluate(positions, image.truth, image.radius))
    pooled = _score(*np.sum([_counts(item) for item in results], axis=0))
    means = [
        float(np.mean([_score(*_counts(item)) for item in some if any(_counts(item))]))
        for some in (results, every)
    ]
    return pooled, means[0], means[1]


def _marked_f_two(runs: Sequence[Run]) -> float:
    """Return F2 over all images without false detections, of the true places that the crowd marked.

    Two annotators marked each, and of two places within the radius, two annotators marked both.
    """
    marked = total = 0
    for image in (image for run in runs for image in run.images):
        total += len(image.truth)
        if not len(image.truth):
            continue
        marks = np.zeros((len(image.clicks.annotators), len(image.truth)), dtype=bool)
        for annotator in range(len(marks)):
            points = image.clicks.points[image.clicks.annotator == annotator]
            marks[annotator, match(points, image.truth, image.radius).truth] = True
        chosen = marks.sum(axis=0) >= 2
        for one, other in cKDTree(image.truth).query_pairs(image.radius):
            if chosen[one] and chosen[other] and (marks[:, one] & marks[:, other]).sum() < 2:
                chosen[one if marks[:, one].sum() < marks[:, other].sum() else other] = False
        marked += int(chosen.sum())
    return _score(marked, 0, total - marked)


def _counts(evaluation: Evaluation) -> tuple[int, int, int]:
    return evaluation.true_positive, evaluation.false_positive, evaluation.false_negative


def _score(hits: int, false: int, missed: int) -> float:
    return 5 * hits / max(5 * hits + 4 * missed + false, 1)


def _rates_held(runs: Sequence[Run], together: Sequence[Sequence[Fusion]], rate: str) -> tuple[float, int]:
    """Return the share of annotators whose true rate is in its interval, and their number.

    The sensitivity is that among the spots that were found.
    """
    inside = []
    for run, fusions in zip(runs, together, strict=True):
        names, rates = pool_rates(fusions, [result.clicks.annotators for result in run.images])
        index = {name: row for row, name in enumerate(names)}
        right, structures = np.zeros(len(names)), np.zeros(len(names))
        for image, fusion, true in zip(run.images, fusions, run.true, strict=True):
            rows = [index[name] for name in image.clicks.annotators]
            right[rows] += fusion.marked @ true.astype(np.float64)
            structures[rows] += true.sum()
        total = rates.marks if rate == "precision" else structures
        is_known = (total >= 10) & (rates.clicks >= 10)
        share = right[is_known] / total[is_known]
        _, low, high = getattr(rates, rate)[is_known].T
        inside += list((low <= share) & (share <= high))
    return float(np.mean(inside)) if inside else math.nan, len(inside)
