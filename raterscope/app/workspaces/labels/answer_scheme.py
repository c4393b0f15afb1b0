"""Classes, outputs and prior of a question, between the study and the dialog that edits them."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.study import Study
from raterscope.app.study.labels import set_scheme
from raterscope.app.study.records import Scheme
from raterscope.widgets.dialogs.answers import Answers

__all__ = ["answers_of", "store_answers"]


def answers_of(scheme: Scheme) -> Answers:
    """Give a scheme as the dialog shows it."""
    prior = None if scheme.prior is None else np.array(scheme.prior)
    return Answers(scheme.outputs, scheme.classes, scheme.meaning, prior)


def store_answers(question: int, answers: Answers, study: Study, watch: Watch) -> None:
    """Keep what the dialog says."""
    watch(0.0, "keeping the answers")
    prior = None if answers.prior is None else tuple(tuple(row) for row in answers.prior.tolist())
    set_scheme(study, question, Scheme(answers.outputs, answers.classes, answers.meaning, prior))
