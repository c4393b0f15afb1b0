"""Scores of a program beside the votes of clicks: of a detector simulated on the clusters of each crowd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.dem import DEMSettings, posterior_by_votes
from raterscope.algorithms.progress import silent
from tests.benchmarks.calibration import Row
from tests.benchmarks.calibration.clicks import PLAN, REJECTED, Run, crowds, fused, log_loss

AREAS = {0.5: 0.0, 0.8: 1.19, 0.95: 2.33}
"""Areas under the ROC curve among detections, and how far apart two normal distributions have them."""

FOUND = (0.9, 0.5)
"""Share of structures and of others with a detection; for the area .5 as many of both."""


def rows() -> list[Row]:
    """Measure log loss by votes alone and with scores, without decisions and after the most disputed."""
    results: list[Row] = []
    for name, groups in crowds().items():
        results += list(_rows_of(name, [fused(images) for images in groups]))
    return results


def _rows_of(name: str, runs: Sequence[Run]) -> Iterator[Row]:
    alone = [run.posteriors() for run in runs]
    verdicts = [_decided(run, posterior) for run, posterior in zip(runs, alone, strict=True)]
    after = [_started(run, verdict).posteriors(verdict) for run, verdict in zip(runs, verdicts, strict=True)]
    for area in AREAS:
        scored = [_scored(run, area, seed) for seed, run in enumerate(runs)]
        now = [run.posteriors() for run in scored]
        then = [run.posteriors(verdict) for run, verdict in zip(scored, verdicts, strict=True)]
        every = [np.ones(len(item), dtype=bool) for item in alone]
        left = [verdict < 0 for verdict in verdicts]
        for words, before, with_scores, kept in (
            ("votes > with scores", alone, now, every),
            (f"the same, k = {REJECTED}", after, then, left),
        ):
            label, count = f"scores, AUC {area:g}: loss, {words}", sum(int(item.sum()) for item in kept)
            losses = _loss(runs, before, kept), _loss(runs, with_scores, kept)
            yield Row("clicks", label, name, *losses, count)
        if not any(true.any() for run in runs for true in run.true):
            undecided = np.concatenate([item[rows] for item, rows in zip(then, left, strict=True)])
            yield Row(
                "clicks", f"scores, AUC {area:g}: false detections, k = {REJECTED}", name, 0.1,
                float(np.mean(undecided >= 0.5)), len(undecided),
            )  # fmt: skip


def _scored(run: Run, area: float, seed: int) -> Run:
    """Draw a score for each cluster, normal with a distance between true and false ones, or none."""
    rng, votes = np.random.default_rng([16, seed]), []
    for item, true in zip(run.votes, run.true, strict=True):
        score = rng.normal(AREAS[area] * true, 1.0)
        there = np.where(true | (AREAS[area] == 0), *FOUND)
        votes.append(replace(item, score=np.where(rng.random(len(true)) < there, score, np.nan)))
    return replace(run, votes=votes)


def _started(run: Run, verdict: np.ndarray) -> Run:
    """Let learning start from posteriors after the decisions, as it does where scores are given."""
    settings = PLAN.detection
    assert isinstance(settings, DEMSettings)
    parts = np.split(verdict.astype(np.int8), np.cumsum([len(item) for item in run.true])[:-1])
    alone = []
    for fusion, votes, part in zip(run.alone, run.votes, parts, strict=True):
        posterior = posterior_by_votes(replace(votes, verdict=part), settings, silent)
        alone.append(replace(fusion, detection=replace(fusion.detection, posterior=posterior)))
    return replace(run, alone=alone)


def _decided(run: Run, posterior: FloatArray) -> np.ndarray:
    """Decide the most disputed spots correctly."""
    true = np.concatenate(run.true)
    verdict = np.full(len(true), -1)
    order = np.argsort(abs(posterior - 0.5), kind="stable")[:REJECTED]
    verdict[order] = true[order]
    return verdict


def _loss(runs: Sequence[Run], posteriors: Sequence[FloatArray], kept: Sequence[np.ndarray]) -> float:
    chosen = np.concatenate([item[rows] for item, rows in zip(posteriors, kept, strict=True)])
    true = np.concatenate([np.concatenate(run.true)[rows] for run, rows in zip(runs, kept, strict=True)])
    return log_loss(chosen, true)
