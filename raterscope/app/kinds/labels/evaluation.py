"""Evaluation of labels: calibration of the consensus, and changes between runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.assessment import (
    FEW,
    BoolArray,
    ComparedItem,
    Differences,
    FloatArray,
    Trust,
    comparable_in_words,
    disputed_tasks,
    run_before,
    share_in_words,
    step_in_words,
    trust_from,
)
from raterscope.app.errors import plain
from raterscope.app.kinds.labels.runs import read_truths, unseen_truths
from raterscope.app.review import ReviewState, SampledItem, fold
from raterscope.app.study import RunEntry, Study

_MEASURED = {"pooled": "labels", "ibcc": "labels, ibcc"}
"""Kinds in the table of comparable crowds, by method."""

_NOT_MEASURED = "This method was not measured on comparable crowds."


def trust_in_labels(study: Study, question: int, watch: Watch = silent) -> Trust | None:
    """Compare the probability of each task's consensus with known truths, or else with decisions."""
    watch(0.0, "comparing with the ground truth")
    run, result = study.shown.run_and_result(question, "labels", None)
    if run is None or not isinstance(result, LabelResult):
        return None
    fusion = result.fusion
    truth = unseen_truths(result, read_truths(study, study.question(question), fusion))
    model = assess(fusion.posterior, truth, fusion.classes)
    if model is not None:
        trust = Trust("task", True, model.calibration)
    else:
        trust = trust_from("task", [], [_decided(study, question, run)])
    if trust.judged >= FEW:
        return trust
    crowd = study.vote_set(question, run.imported)
    per_task = len(crowd.task) / max(len(np.unique(crowd.task)), 1)
    kind = _MEASURED.get(run.algorithm)
    words = (
        _NOT_MEASURED
        if kind is None
        else comparable_in_words(kind, per_task, ("vote", "task"), len(fusion.classes))
    )
    return replace(trust, comparable=words)


def _decided(study: Study, question: int, shown_run: RunEntry) -> tuple[FloatArray, BoolArray]:
    """Return each decided task's probability before the decision, and whether the consensus was right."""
    runs, classes = study.runs.all(), study.question(question).scheme.classes
    by_run: dict[int, list[tuple[str, str]]] = {}
    for name, decided_task in fold(study.decisions()).tasks(question).items():
        run = run_before(runs, shown_run, question, decided_task.decision)
        if run is not None and decided_task.label in classes:  # not a parent
            by_run.setdefault(run.id, []).append((name, decided_task.label))
    pairs: list[tuple[float, bool]] = []
    for number, tasks in by_run.items():
        result = study.runs.result(number, question)
        if not isinstance(result, LabelResult):
            continue
        fusion, label = result.fusion, result.fusion.label()
        names = study.vote_set(question, study.runs.get(number).imported).tasks[: len(label)]
        index_of = {name: task for task, name in enumerate(names)}
        for name, decided_class in tasks:
            task = index_of.get(name)
            if task is not None and fusion.known[task] == OPEN:
                pairs.append(
                    (float(fusion.posterior[task].max()), fusion.classes[label[task]] == decided_class)
                )
    return np.array([p for p, _ in pairs]), np.array([yes for _, yes in pairs], dtype=bool)


def compare_runs(at: ComparedItem, differences: Differences) -> None:
    """Compare an item's results in two runs and fill in the differences."""
    old_result, new_result = at.then, at.now
    assert isinstance(old_result, LabelResult)
    assert isinstance(new_result, LabelResult)
    old_fusion, new_fusion = old_result.fusion, new_result.fusion
    old_names = at.study.vote_set(at.item, at.earlier.imported).tasks
    new_names = at.study.vote_set(at.item, at.later.imported).tasks
    old_disputed, new_disputed = (disputed_tasks(fusion) for fusion in (old_fusion, new_fusion))
    differences.disputed_before += int(old_disputed.sum())
    differences.disputed_after += int(new_disputed.sum())
    number = {name: task for task, name in enumerate(old_names)}
    was, now_is = old_fusion.label(), new_fusion.label()
    decided = at.state.tasks(at.item)
    for task, name in enumerate(new_names[: len(now_is)]):
        earlier = number.get(name)
        settled = new_fusion.known[task] != OPEN or name in decided
        if settled and earlier is not None and earlier < len(was) and old_disputed[earlier]:
            differences.decided += 1
        if settled or earlier is None or earlier >= len(was):
            continue
        old, new = old_fusion.classes[was[earlier]], new_fusion.classes[now_is[task]]
        shares = (
            float(old_fusion.posterior[earlier, was[earlier]]),
            float(new_fusion.posterior[task, now_is[task]]),
        )
        if old != new:
            classes = f"{plain(old)} \N{RIGHTWARDS ARROW} {plain(new)}"
            words = f"{classes} ({share_in_words(shares[1])}): {plain(name)}"
            differences.changes.append(at.change(words, 1 + shares[1], name=name))
        elif new_disputed[task] and not old_disputed[earlier]:
            differences.newly_disputed += 1
            words = f"{step_in_words(*shares)}, {plain(new)}, disputed now: {plain(name)}"
            differences.changes.append(at.change(words, shares[0] - shares[1], name=name))


def undecided_labels(study: Study, state: ReviewState, watch: Watch = silent) -> list[SampledItem]:
    """List the labels of the runs shown whose tasks are neither decided nor of known truth."""
    listed = []
    for question, step in steps_of(watch, study.questions()):
        step(0.0, "listing labels")
        run, result = study.shown.run_and_result(question.id, "labels", None)
        if run is None or not isinstance(result, LabelResult):
            continue
        fusion, decided = result.fusion, state.tasks(question.id)
        tasks, labels = study.vote_set(question.id, run.imported).tasks, fusion.label()
        listed += [
            SampledItem(item=question.id, name=tasks[task], answer=fusion.classes[labels[task]], run=run.id)
            for task in np.flatnonzero(fusion.known == OPEN).tolist()
            if tasks[task] not in decided
        ]
    return listed
