"""What the report says of one question of labels, in numbers and with pictures of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raterscope.algorithms.labels.assessment import Assessment, assess
from raterscope.algorithms.labels.data import OPEN, FloatArray
from raterscope.algorithms.labels.drift import Constancy, constancy, moved, trend
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.labels.answers import (
    VOTE,
    Answered,
    Groups,
    advice_on,
    groups_of,
    judgements,
    plan_of,
    read_answer,
)
from raterscope.app.kinds.labels.exporting import Settled, settled
from raterscope.app.kinds.labels.result_files import accuracies
from raterscope.app.kinds.labels.running import measured
from raterscope.app.page.contents import Picture
from raterscope.app.page.pictures import photograph
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import pictures_of
from raterscope.app.study.records import QuestionEntry

_SIDE = 260  # pixels of a thumbnail's longer side
_LARGEST = 1 << 26
"""Bytes of a file that is worth a thumbnail."""

_MOST_DISPUTED, _LEAST_DOUBT = 20, 0.01
_MOST_THUMBNAILS = 12


@dataclass(frozen=True, eq=False)
class AnsweredQuestion:
    """What the report says of a question, in numbers.

    Attributes
    ----------
    answered : Answered
    now : Settled
    excluded : mapping of annotator to reason
        As the expert has it now.
    judged : mapping of method to Assessment
        The answer's own first, the vote second, then earlier runs; empty without truths.
    advice : tuple of str
    rates : Rates
    groups : Groups or None
    moved, trend : (K,) float64 or None
        Of a dynamic model.
    constancy : Constancy or None
        Of a dynamic model: who changed.
    pictures : mapping of task to Picture
        Of tasks in dispute.
    disputed : list of int
        The most doubtful tasks that nobody decided.
    """

    answered: Answered
    now: Settled
    excluded: Mapping[str, str]
    judged: Mapping[str, Assessment]
    advice: tuple[str, ...]
    rates: Rates
    groups: Groups | None
    moved: FloatArray | None
    trend: FloatArray | None
    constancy: Constancy | None
    pictures: Mapping[int, Picture]
    disputed: Sequence[int]


def read_question(
    study: Study, entry: QuestionEntry, excluded: Mapping[str, str], watch: Watch = silent
) -> AnsweredQuestion | None:
    """Read the answer shown to a question and measure what it does not say; None before there is one."""
    watch(0.0, f"reading {plain(entry.name)}")
    answered = read_answer(study, entry)
    if answered is None:
        return None
    question, result = answered.question, answered.result
    labels, fusion = question.labels, result.fusion
    plan = plan_of(answered.run) or LabelPlan()
    judged, _ = judgements(question, plan, result, watch=part(watch, 0.1, 0.4))
    advised = advice_on(question, result, judged, plan.algorithm)
    if judged:
        judged |= _earlier(study, answered, part(watch, 0.4, 0.6))
    watch(0.6, "measuring annotators")
    rates = answered.rates
    accuracy, _, _ = accuracies(rates)
    drift = fusion.drift
    now = settled(study, answered)
    disputed = _disputed(now, fusion.votes)
    return AnsweredQuestion(
        answered=answered,
        now=now,
        excluded=excluded,
        judged=judged,
        advice=advised,
        rates=rates,
        groups=groups_of(labels, result, accuracy),
        moved=None if drift is None else moved(drift, labels, fusion),
        trend=None if drift is None else trend(drift, labels, fusion),
        constancy=None if drift is None else constancy(labels, fusion),
        pictures=_thumbnails(study, entry, disputed[:_MOST_THUMBNAILS], part(watch, 0.7, 1.0)),
        disputed=disputed,
    )


def _earlier(study: Study, answered: Answered, watch: Watch) -> dict[str, Assessment]:
    """Judge the latest run of every other algorithm by the same truths, unless it was told some of them."""
    kept = measured(answered.result, answered.question.truth)
    found: dict[str, Assessment] = {}
    entry = answered.entry
    latest: dict[str, RunEntry] = {}
    for run in study.runs.all():
        if run.kind == "labels" and entry.id in run.items and run.id != answered.run.id:
            latest[run.algorithm] = run
    for name in (answered.run.algorithm, VOTE):
        latest.pop(name, None)
    for done, (name, run) in enumerate(latest.items()):
        watch(done / len(latest), f"measuring {plain(name)}")
        result = study.runs.result(run.id, entry.id)
        if result is None or result.fusion.classes != answered.result.fusion.classes:
            continue
        if len(result.fusion.posterior) != len(kept):  # from before another import
            continue
        told = (result.fusion.known != OPEN) & (kept != OPEN)
        judged = None if told.any() else assess(result.fusion.posterior, kept, result.fusion.classes)
        if judged is not None:
            found[f"{name} (run {run.id})"] = judged
    return found


def _disputed(now: Settled, votes: NDArray[np.integer]) -> list[int]:
    """List the most doubtful tasks; a certain one is in nobody's way."""
    order = np.argsort(-now.entropy, kind="stable")
    doubtful = [
        int(at) for at in order[: 10 * _MOST_DISPUTED] if now.entropy[at] > _LEAST_DOUBT and votes[at]
    ]
    return doubtful[:_MOST_DISPUTED]


def _thumbnails(study: Study, entry: QuestionEntry, tasks: Sequence[int], watch: Watch) -> dict[int, Picture]:
    """Read small pictures of some tasks; those whose file is not at hand are left out."""
    from raterscope.app.formats.images import load_image

    shown = pictures_of(study, entry.id)
    names = study.vote_set(entry.id).tasks
    found = {}
    for done, task in enumerate(tasks):
        watch(done / len(tasks), "reading pictures of tasks")
        place = study.locate(study.image(shown[task])) if task in shown else None
        try:
            if place is None or not place.is_file() or place.stat().st_size > _LARGEST:
                continue
            image = Image.fromarray(load_image(place)).convert("RGB")
        except (InputError, OSError, MemoryError):
            continue
        image.thumbnail((_SIDE, _SIDE), Image.Resampling.BOX)
        found[task] = photograph(image, plain(names[task], 60))
    return found
