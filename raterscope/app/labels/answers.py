"""A run's answer to a question, with the votes that it was made from, as a study has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.communities import Communities, all_in_words
from raterscope.algorithms.labels.data import OPEN, ClassArray, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.result import LabelResult
from raterscope.app.labels.running import Question
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import labels_of
from raterscope.app.study.records import QuestionEntry
from raterscope.app.study.votes import renumbered

__all__ = ["Answered", "Groups", "as_it_was", "groups_of", "read_answer", "truth_as_it_was"]


@dataclass(frozen=True, eq=False)
class Answered:
    """A question, the latest answer to it, and the votes that went into that, without what was held fixed.

    Attributes
    ----------
    entry : QuestionEntry
        As it is now.
    run : RunEntry
    result : LabelResult
    question : Question
        Outputs, classes and truths counted as the answer does.
    """

    entry: QuestionEntry
    run: RunEntry
    result: LabelResult
    question: Question


def read_answer(study: Study, entry: QuestionEntry) -> Answered | None:
    """Read the latest answer to a question; None before there is one."""
    latest = study.latest_result(entry.id, "labels")
    if latest is None:
        return None
    run, result = latest
    labels = as_it_was(labels_of(study, entry.id, run), result.fusion)
    truth = truth_as_it_was(study.crowd(entry.id, run.imported).truth, entry.scheme.classes, result.fusion)
    return Answered(entry, run, result, Question(labels, truth))


def truth_as_it_was(truth: ClassArray, classes: Sequence[str], fusion: LabelFusion) -> ClassArray:
    """Count true classes as an answer from before other classes were set does."""
    return truth if fusion.classes == tuple(classes) else renumbered(truth, classes, fusion.classes)


def as_it_was(labels: Labels, fusion: LabelFusion) -> Labels:
    """Count outputs and classes as an answer from before another order was set does."""
    if (labels.outputs, labels.classes) == (fusion.outputs, fusion.classes):
        return labels
    assert labels.meaning is not None
    stands = {
        output: labels.classes[at] if at != OPEN else ""
        for output, at in zip(labels.outputs, labels.meaning.tolist(), strict=True)
    }
    place = {name: number for number, name in enumerate(fusion.classes)}
    meaning = np.array([place.get(stands.get(name, ""), OPEN) for name in fusion.outputs], dtype=np.int16)
    return replace(
        labels,
        label=renumbered(labels.label, labels.outputs, fusion.outputs),
        outputs=fusion.outputs,
        classes=fusion.classes,
        meaning=meaning,
        known=None,
        prior=None,
    )


@dataclass(frozen=True, eq=False)
class Groups:
    """Communities with what is said of them.

    Attributes
    ----------
    found : Communities
    names : tuple of C words
    of : (K,) int16
        Each annotator's, -1 for none.
    votes : (C,) float
        Share of all votes.
    accuracy : (C,) float
        Expected share of right votes.
    """

    found: Communities
    names: tuple[str, ...]
    of: NDArray[np.int16]
    votes: FloatArray
    accuracy: FloatArray


def groups_of(labels: Labels, result: LabelResult, accuracy: FloatArray) -> Groups | None:
    """Say of an answer's communities what there is to say; None where there are none.

    Parameters
    ----------
    labels : Labels
    result : LabelResult
    accuracy : (K,) float64
        Of every annotator; a community's is the mean over its votes.
    """
    found, fusion = result.communities, result.fusion
    if found is None or not found.count:
        return None
    assert labels.meaning is not None
    of = found.of(len(labels.annotators))
    given = labels.votes_of_annotators()
    weight = [given[of == number] for number in range(found.count)]
    return Groups(
        found=found,
        names=all_in_words(found.prototype, fusion.classes, fusion.outputs, labels.meaning.tolist()),
        of=of,
        votes=np.array([one.sum() for one in weight]) / max(int(given.sum()), 1),
        accuracy=np.array(
            [
                np.average(accuracy[of == number], weights=one) if one.sum() else np.nan
                for number, one in enumerate(weight)
            ]
        ),
    )
