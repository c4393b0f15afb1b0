"""Scene of the labels workspace: votes, a run's result, and the analysis of both. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels import LabelFusion, Labels
from raterscope.algorithms.labels.assessment import Assessment, advice, assess
from raterscope.algorithms.labels.class_tree import class_tree, similar_order
from raterscope.algorithms.labels.data import ClassArray, FloatArray, distinct
from raterscope.algorithms.labels.drift import Constancy, constancy, row_movement
from raterscope.algorithms.labels.programs import Program
from raterscope.algorithms.labels.rates import Rates, rates_of
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.voting import shares_of_votes
from raterscope.algorithms.progress import Watch, part
from raterscope.app import assessment
from raterscope.app.kinds.labels.runs import (
    Groups,
    groups_of,
    hold_decisions,
    order_like_answer,
    programs_of_run,
    read_truths,
    tempering_for,
    unseen_truths,
)
from raterscope.app.review import fold
from raterscope.app.session import Session
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import excluded_votes, labels_of, pictures_of, with_gold
from raterscope.app.study.records import ImageEntry, QuestionEntry
from raterscope.app.study.vote_sets import NameIndex

SORTED_FROM = 12
"""More classes than these are drawn in the order of their confusions."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A question, the run shown, and its votes; without a run, all votes."""

    question: QuestionEntry
    run: RunEntry | None
    result: LabelResult | None
    labels: Labels  # without classes that were held fixed
    fixed: Labels  # with the classes and parents that the run held fixed
    annotator_ids: NDArray[np.int32]  # (K,): the annotators' numbers in the study
    truth: ClassArray  # (N,): imported truths and marked gold tasks, as indices into `classes`
    pictures: Mapping[int, ImageEntry]  # by task
    later: int = 0  # number of votes that were imported after the run
    # the votes of annotators that the run excluded and of programs, with the numbering of `labels`
    excluded: Labels | None = None
    # class probabilities of the run's programs, with the classes of its result
    programs: tuple[Program, ...] = ()

    @property
    def item(self) -> QuestionEntry:
        """The question."""
        return self.question

    @cached_property
    def number_of(self) -> NameIndex:
        """Numbers of the tasks by name."""
        return NameIndex(self.labels.tasks)

    @property
    def fusion(self) -> LabelFusion | None:
        """The result shown."""
        return None if self.result is None else self.result.fusion

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of the result, or without one of the question."""
        return self.labels.classes if self.result is None else self.result.fusion.classes

    @cached_property
    def decidable(self) -> tuple[str, ...]:
        """Names of the classes, and then of the parents in their hierarchy."""
        tree = class_tree(self.classes)
        return self.classes if tree is None else (*self.classes, *tree.nodes)


def disputed_tasks(question: int, study: Study) -> dict[str, float] | None:
    """Return the disputed tasks of a question by name, with the probability that the answer is wrong.

    None without a result.
    """
    entry, result = study.shown.run_and_result(question, "labels", None)
    if entry is None or result is None:
        return None
    fusion = result.fusion
    names = study.vote_set(question, entry.imported).tasks
    waits = np.flatnonzero(assessment.disputed_tasks(fusion))
    wrong = 1 - fusion.posterior[waits].max(axis=1, initial=0.0)
    return {names[task]: chance for task, chance in zip(waits.tolist(), wrong.tolist(), strict=True)}


def read_scene(question: int, run: int | None, study: Study, watch: Watch) -> Scene:
    """Read a question with the result of a run, or of the latest, in the study's thread."""
    watch(0.0, "reading votes")
    entry = study.question(question)
    run_shown, result = study.shown.run_and_result(question, "labels", run)
    vote_set = study.vote_set(question, None if run_shown is None else run_shown.imported)
    labels = labels_of(study, question, run_shown)
    fixed = labels
    truth = with_gold(vote_set, fold(study.decisions()).gold_tasks(question))
    if result is not None:
        truth = read_truths(study, entry, result.fusion)
        labels = fixed = order_like_answer(labels, result.fusion)
        if run_shown is not None:
            fixed = hold_decisions(study, question, run_shown, result.fusion, labels)
    entries = {picture.id: picture for picture in study.images()}
    pictures = {task: entries[image] for task, image in pictures_of(study, question).items()}
    later = 0 if run_shown is None else len(study.vote_set(question).task) - len(vote_set.task)
    excluded = None
    if run_shown is not None:
        apart = (*run_shown.excluded, *run_shown.programs)
        excluded = excluded_votes(study, question, apart, run_shown.imported)
    excluded = excluded if excluded is None or result is None else order_like_answer(excluded, result.fusion)
    programs = () if run_shown is None or result is None else programs_of_run(study, entry, run_shown, result)
    return Scene(
        entry, run_shown, result, labels, fixed, vote_set.annotator_ids, truth, pictures, later, excluded,
        programs,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Index:
    """Votes by task or by annotator: those of the i-th are `votes[start[i]:start[i + 1]]`."""

    start: NDArray[np.int64]
    votes: NDArray[np.integer]

    def of(self, number: int) -> NDArray[np.integer]:
        """Return the votes of a task or annotator, in their order."""
        return self.votes[self.start[number] : self.start[number + 1]]

    @classmethod
    def by(cls, key: NDArray[np.int32], many: int) -> Index:
        """Sort votes by a key of 0 to `many` - 1."""
        from scipy import sparse

        # A matrix with one entry in each row is sorted by columns in a single pass.
        ones, rows = np.ones(len(key), dtype=np.bool_), np.arange(len(key) + 1)
        columns = sparse.csr_array((ones, key, rows), shape=(len(key), many)).tocsc()
        return cls(columns.indptr.astype(np.int64), columns.indices)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Analysis of a question's votes and result."""

    by_task: Index
    by_annotator: Index
    votes_of: NDArray[np.int64]  # (K,)
    vote: FloatArray  # (N, J): shares of the votes
    votes: NDArray[np.int64]  # (N,): number of votes per task
    left_out: NDArray[np.int64]  # (K,): number of votes by excluded annotators, which do not count
    # (N,) or None: see `assessment.disputed_tasks`. This and the following are None without a result.
    disputed: NDArray[np.bool_] | None = None
    rates: Rates | None = None
    mean: FloatArray | None = None  # (K, J, L) or None: mean of the rates
    # tuple of three (K,) or None: expected share of correct votes of each annotator, with its interval
    accuracy: tuple[FloatArray, FloatArray, FloatArray] | None = None
    crowd: FloatArray | None = None  # (J, L) or None
    # tuple of (J,) and (L,), or None: order in which classes that are confused are neighbours; None for the
    # curator's order
    class_order: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    # (K,) or None: difference from the crowd: total variation, mean over classes
    difference: FloatArray | None = None
    moved: FloatArray | None = None  # (K,) or None: change of each annotator, for a dynamic result
    constancy: Constancy | None = None  # test of each annotator for a change, for a dynamic result
    step_of: NDArray[np.int32] | None = None  # (V,) or None: step of each vote, for a dynamic result
    groups: Groups | None = None
    # model, crowd_vote: assessments of the result and of the vote
    model: Assessment | None = None
    crowd_vote: Assessment | None = None
    advice: tuple[str, ...] = ()
    err_together: bool = False  # whether annotators share errors while their votes have full weight


LabelsSession = Session[Scene, Analysis]
"""Session of the labels workspace."""


def analyse(scene: Scene, watch: Watch) -> Analysis:
    """Compute the analysis of a scene, in a background thread."""
    labels, fusion = scene.labels, scene.fusion
    watch(0.0, "sorting votes")
    assert scene.number_of is not None  # computed here, in the background
    by_task = Index.by(labels.task, len(labels.tasks))
    watch(0.2, "sorting votes")
    by_annotator = Index.by(labels.annotator, len(labels.annotators))
    vote = shares_of_votes(replace(labels, known=None), part(watch, 0.3, 0.5))
    plainly = partial(
        Analysis,
        by_task,
        by_annotator,
        np.diff(by_annotator.start),
        vote,
        np.diff(by_task.start),
        left_out=np.zeros(len(labels.annotators), dtype=np.int64)
        if scene.excluded is None
        else scene.excluded.votes_of_annotators(),
    )
    if fusion is None or scene.result is None:
        return plainly()
    watch(0.5, "measuring annotators")
    rates = rates_of(labels, fusion, scene.excluded, part(watch, 0.5, 0.7))
    mean, accuracy = rates.mean, rates.accuracies()
    crowd = rates.together(np.flatnonzero(np.diff(by_annotator.start))).mean[0]
    truths = unseen_truths(scene.result, scene.truth)
    watch(0.8, "measuring the answer")
    model = assess(fusion.posterior, truths, fusion.classes)
    by_vote = assess(vote, truths, fusion.classes)
    tempering = tempering_for(labels, fusion)
    return plainly(
        disputed=assessment.disputed_tasks(fusion),
        rates=rates,
        mean=mean,
        accuracy=accuracy,
        crowd=crowd,
        class_order=_class_order(crowd, labels),
        difference=np.broadcast_to(np.abs(distinct(mean) - crowd).sum(axis=2).mean(axis=1) / 2, len(mean)),
        moved=None if fusion.drift is None else row_movement(fusion.drift, labels, fusion),
        constancy=None if fusion.drift is None else constancy(labels, fusion),
        step_of=None if fusion.drift is None else _steps(fusion.drift.vote),
        groups=groups_of(labels, scene.result, accuracy[0]),
        model=model,
        crowd_vote=by_vote,
        advice=tuple(advice(labels, fusion, model, by_vote, tempering, rates)),
        err_together=tempering is not None and tempering.dependent,
    )


def _class_order(crowd: FloatArray, labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    assert labels.meaning is not None
    return similar_order(crowd, labels.meaning) if len(crowd) > SORTED_FROM and not labels.ordered else None


def _steps(vote: NDArray[np.int32]) -> NDArray[np.int32]:
    step = np.empty(len(vote), dtype=np.int32)
    step[vote] = np.arange(len(vote), dtype=np.int32)
    return step
