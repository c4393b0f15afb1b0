"""How far to trust the probability of a task's consensus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.result import LabelResult
from raterscope.app.labels.answers import truth_about
from raterscope.app.labels.running import measured
from raterscope.app.review import fold
from raterscope.app.study import Study
from raterscope.app.trust.comparable import comparable_in_words
from raterscope.app.trust.shape import FEW, Trust, trust_from

__all__ = ["trust_in_labels"]


def trust_in_labels(study: Study, question: int) -> Trust | None:
    """Compare the probability of each task's consensus with known truths, else with decisions."""
    shown, result = study.result_shown(question, "labels", None)
    if shown is None or not isinstance(result, LabelResult):
        return None
    fusion = result.fusion
    top, label = fusion.posterior.max(axis=1), fusion.label()
    truth = measured(result, truth_about(study, study.question(question), fusion))
    known = truth != OPEN
    names = study.crowd(question, shown.imported).tasks
    decided = fold(study.decisions()).tasks(question)
    pairs = [
        (top[task], fusion.classes[label[task]] == decided[name].label)
        for task, name in enumerate(names[: len(label)])
        if name in decided and decided[name].decision > shown.known and fusion.known[task] == OPEN
    ]
    by_decision = (np.array([p for p, _ in pairs]), np.array([yes for _, yes in pairs], dtype=bool))
    by_truth = [(top[known], label[known] == truth[known])] if known.any() else []
    trust = trust_from("task", by_truth, [by_decision])
    if trust.judged >= FEW:
        return trust
    crowd = study.crowd(question, shown.imported)
    per_task = len(crowd.task) / max(len(np.unique(crowd.task)), 1)
    return replace(trust, comparable=comparable_in_words("labels", per_task, len(fusion.classes)))
