"""Fusion of the votes on one question by any of the algorithms.

A model of the annotators may infer a class without votes, for example if annotators confuse two classes in
one direction. Without evidence that their votes indicate that class, such a result is mostly an artefact of
the model. It is therefore accepted only with support from confident cases: known tasks, or tasks where a
class with votes is almost certain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.common_tasks import CommonTaskSettings, common_task_communities
from raterscope.algorithms.annotators.communities import METHODS, Communities, CommunitySettings, communities
from raterscope.algorithms.annotators.names import read_notices
from raterscope.algorithms.array_operations import sum_rows
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.constancy import changes_in_words, constancy
from raterscope.algorithms.labels.copying import copying_in_words, find_copies
from raterscope.algorithms.labels.cross_validation import cross_validate
from raterscope.algorithms.labels.crowd_votes import class_votes
from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    LabelFusion,
    Labels,
    PriorSettings,
    has_own_matrices,
)
from raterscope.algorithms.labels.ordinal import is_ordinal
from raterscope.algorithms.labels.pooled import PooledSettings
from raterscope.algorithms.labels.programs import Program, combine
from raterscope.algorithms.labels.rates import rates_of
from raterscope.algorithms.labels.result import LabelResult, with_unused, without_unused
from raterscope.algorithms.labels.tempering import choose_tempering, is_modelled, tempered
from raterscope.algorithms.progress import Background, Watch, part, silent, wrapping
from raterscope.algorithms.settings import (
    Plan,
    Settings,
    SettingsError,
    choice,
    integer,
    number,
    settings_from_texts,
    switch,
)

CASES = 10
"""Minimum number of votes on confident cases that support a class without votes."""

_CONFIDENT = 0.9
"""Minimum posterior, for a class with votes, of a confident case."""

_BAR = 0.8
"""Minimum posterior of a class without votes."""

_BELOW = 1e-6
"""Relative distance of an excluded class's probability below that of the best class with votes."""


def unvoted_tasks(labels: Labels, fusion: LabelFusion) -> NDArray[np.int64]:
    """List the undecided tasks whose most probable class has no vote while other classes have some.

    Tasks restricted to a set of classes count as decided.
    """
    votes, label = class_votes(labels, np.float32), fusion.label()
    tasks = np.arange(len(label))
    voted, total = votes[tasks, label] > 0, sum_rows(votes)
    named = total > 0
    if is_ordinal(labels):
        up_to = votes.cumsum(axis=1)[tasks, label]
        voted |= (up_to > votes[tasks, label]) & (up_to < total)
    return np.flatnonzero(named & ~voted & (fusion.known == OPEN) & (labels.known_classes() == OPEN))


def exclude_unvoted(labels: Labels, fusion: LabelFusion) -> LabelFusion:
    """Allow a class without votes as consensus only if confident cases support it.

    Ordered classes between two classes with votes count as having votes. Another class stays if its posterior
    is 0.8 or more, and the same annotators gave the same labels in at least `CASES` votes on confident cases
    of that class, more than on those of any class with votes. Otherwise its probability is reduced to just
    below that of the most probable class with votes.

    `labels`: input of the fusion, its repeated votes resolved or not. Notices list the tasks of both kinds.
    """
    doubtful = unvoted_tasks(labels, fusion)
    if not len(doubtful):
        return fusion
    assert labels.meaning is not None
    classes, tasks = len(fusion.classes), len(fusion.posterior)
    row_of = np.full(tasks, OPEN)
    row_of[doubtful] = np.arange(len(doubtful))
    votes = np.flatnonzero(row_of[labels.task] != OPEN)
    row = row_of[labels.task[votes]]
    support = _support(labels, fusion, votes, row, len(doubtful))
    meant = labels.meaning[labels.label[votes]]
    voted = np.zeros((len(doubtful), classes), dtype=bool)
    voted[row[meant != OPEN], meant[meant != OPEN]] = True
    if is_ordinal(labels):
        rising = np.maximum.accumulate(voted, axis=1)
        voted = rising & np.maximum.accumulate(voted[:, ::-1], axis=1)[:, ::-1]
    index = np.arange(len(doubtful))
    best = fusion.label()[doubtful]
    own = support[index, best]
    kept = (
        (fusion.posterior[doubtful, best] >= _BAR)
        & (own >= CASES)
        & (own > np.where(voted, support, 0).max(axis=1))
    )
    posterior = fusion.posterior.copy()
    barred, of = doubtful[~kept], voted[~kept]
    limit = np.where(of, posterior[barred], 0.0).max(axis=1, keepdims=True)
    limit = np.maximum(limit, _BELOW)
    changed = np.where(of, posterior[barred], np.minimum(posterior[barred], limit * (1 - _BELOW)))
    first = np.where(of, posterior[barred], -1.0).argmax(axis=1)
    changed[np.arange(len(barred)), first] = limit[:, 0]
    posterior[barred] = changed / changed.sum(axis=1, keepdims=True)
    return replace(
        fusion, posterior=posterior, notices=(*fusion.notices, *_notices(int(kept.sum()), len(barred)))
    )


def _support(
    labels: Labels, fusion: LabelFusion, votes: NDArray[np.int64], row: NDArray[np.int64], rows: int
) -> NDArray[np.int64]:
    """Count the votes on confident cases of each class with the same annotators and labels, (rows, J).

    `votes`, `row`: (M,), votes on the uncertain tasks, and the row of each vote's task.
    """
    assert labels.meaning is not None
    tasks, outputs = len(fusion.posterior), len(fusion.outputs)
    label = fusion.label()
    agreed = np.bincount(labels.task, labels.meaning[labels.label] == label[labels.task], minlength=tasks) > 0
    sure = fusion.posterior[np.arange(tasks), label] >= _CONFIDENT
    confident = (fusion.known != OPEN) | (sure & agreed)
    pair = labels.annotator.astype(np.int64) * outputs + labels.label
    wanted, at = np.unique(pair[votes], return_inverse=True)
    cases = np.flatnonzero(confident[labels.task])
    nearest = np.minimum(np.searchsorted(wanted, pair[cases]), len(wanted) - 1)
    same = wanted[nearest] == pair[cases]
    table = np.zeros((len(wanted), len(fusion.classes)), dtype=np.int64)
    np.add.at(table, (nearest[same], label[labels.task[cases[same]]]), 1)
    support = np.zeros((rows, len(fusion.classes)), dtype=np.int64)
    np.add.at(support, row, table[at])
    return support


def _notices(kept: int, barred: int) -> list[str]:
    notices = []
    if kept:
        notices.append(
            f"{_tasks(kept)} a class without votes on that task: its annotators gave the same labels in at"
            f" least {CASES} votes on confident cases of that class, more than of any class with votes."
        )
    if barred:
        notices.append(
            f"{_tasks(barred)} the most probable class with votes: a class without votes was more probable,"
            " but not supported by enough votes on confident cases."
        )
    return notices


def _tasks(count: int) -> str:
    return "1 task gets" if count == 1 else f"{count:,} tasks get"


_OVERRIDDEN = "The prior set for the question replaces that of the settings."
_IN_FULL = (
    "Each vote counts in full: this algorithm has no prior of the annotators, and cannot down-weight votes."
)
_TEMPERED = "The pooled consensus itself weights correlated votes: the setting for this has no effect."
SCORING = ("weighted-sum", "mean-score")
_WITH_PRIOR = ("pooled", "ibcc", "gibbs", "ebcc")
"""Algorithms whose prior depends on the number of classes; dynamic IBCC keeps matrices of all classes."""
_FUSED = 0.7  # share of the time, the rest goes to communities
_GROUPED = 0.9  # from there on annotators are compared, who may copy
_MODELLED = 0.8  # of that, the rest goes to what each vote counts for

TRUTHS = {
    "measure": "the answer is measured against them",
    "hold": "they are held fixed, as decisions are",
    "folds": "a fifth of them at a time is measured while the others are held fixed",
}

COUNTS = {
    "full": "in full, as in the model",
    "predictive": "in part, by prediction of held-out votes",
}

BASES = {
    "behaviour": "by behaviour: similar confusion matrices",
    "tasks": "by common tasks",
    "no": "not looked for",
}

_FORMER_COMMUNITIES = {True: "behaviour", False: "no"}
"""Values of `communities` in the runs of earlier versions."""

_FORMER_COUNT = "foretold"
"""Name of "predictive" in the runs of earlier versions."""


@dataclass(frozen=True)
class QuestionSettings(Settings):
    """Settings of a question other than the algorithm's: known truths, votes, annotators."""

    truths: str = choice(
        "measure",
        "Known truths",
        "Use of imported truths. Your decisions are always held fixed.",
        TRUTHS,
    )
    counting: str = choice(
        "full",
        "Each vote counts",
        "Annotators make the same errors on hard tasks, which makes a model overconfident. In part: with "
        "the weight that best predicts held-out votes from the other votes on their task. The order of "
        "tasks hardly changes, but probabilities are better calibrated. For models with a prior of the "
        "annotators.",
        COUNTS,
    )
    communities: str = choice(
        "behaviour",
        "Communities",
        "Group the annotators and look for copied answers. Takes seconds for thousands of annotators.",
        BASES,
    )
    community_method: str = choice(
        "nmf", "Community method", "Method that divides the network of annotators.", METHODS, advanced=True
    )
    community_scale: float | None = number(
        None, "Similarity scale", "How fast similarity falls with distance; 1 is equation 32 as published. "
        "A larger scale separates finer differences, but may split communities by chance. Empty: estimated "
        "from "
        "the data. For communities by behaviour.",
        minimum=0.01, maximum=1000, advanced=True,
    )  # fmt: skip
    community_evidence: float | None = number(
        None, "Community evidence", "Number of observations that an annotator's links count as: a larger "
        "number splits communities, a smaller one joins them. Empty: 40 by behaviour; by common tasks, the "
        "value with the highest modularity.",
        minimum=1, maximum=1e5, advanced=True, left_open="usual",
    )  # fmt: skip
    community_min_votes: int = integer(
        10, "Minimum votes", "Annotators with fewer votes, or tasks, belong to no community.",
        minimum=0, advanced=True,
    )  # fmt: skip
    community_max_votes: float | None = number(
        None, "Maximum votes", "Annotators with more votes, or tasks, belong to none. Empty: no limit.",
        minimum=1, advanced=True, left_open="no limit",
    )  # fmt: skip

    community_as_published: bool = switch(
        False, "Communities as published", "Uncorrected published version: equation 32 with scale 1 and the "
        "printed updates of the factorisation, which depend on the number of annotators and find fewer "
        "communities. The scale can still be set; the evidence has no effect.",
        advanced=True,
    )  # fmt: skip

    def unused(self) -> Collection[str]:
        """Return the settings of communities that have no effect."""
        if self.communities == "no":
            return [name for name in self.names() if name.startswith("community_")]
        return ("community_scale",) if self.communities == "tasks" else ()

    def by_behaviour(self) -> CommunitySettings:
        """Return the settings of communities by behaviour."""
        settings = CommunitySettings(
            method=self.community_method, min_votes=self.community_min_votes,
            max_votes=self.community_max_votes, scale=self.community_scale,
            as_published=self.community_as_published,
        )  # fmt: skip
        evidence = self.community_evidence
        return settings if evidence is None else replace(settings, evidence=evidence)

    def by_common_tasks(self) -> CommonTaskSettings:
        """Return the settings of communities by common tasks."""
        return CommonTaskSettings(
            method=self.community_method, min_tasks=max(self.community_min_votes, 1),
            max_tasks=self.community_max_votes, evidence=self.community_evidence,
            as_published=self.community_as_published,
        )  # fmt: skip


@dataclass(frozen=True)
class LabelPlan(Plan):
    """Algorithm of `LABELLERS` that fuses labels, with its settings; see `Plan`."""

    catalogue = LABELLERS
    noun = "algorithm for labels"

    algorithm: str = "pooled"
    settings: Settings = field(default_factory=PooledSettings)
    about: QuestionSettings = field(default_factory=QuestionSettings)  # settings of the question

    @classmethod
    def make(cls, algorithm: str | None = None, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan as `Plan.make` does; pairs may also set `QuestionSettings`."""
        name = cls.algorithm if algorithm is None else algorithm
        return cls(name, *settings_from_texts(texts or {}, cls.of(name).settings, QuestionSettings))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from the result of `as_dict`; see `Plan.from_dict`.

        Raises `SettingsError` for unknown names or values, or if the use of truths is missing.
        """
        about = values.get("about")
        if not isinstance(about, Mapping):
            raise SettingsError("a plan for labels must state the use of truths.")
        if about.get("counting") == _FORMER_COUNT:
            about = {**about, "counting": "predictive"}
        if isinstance(former := about.get("communities"), bool):
            about = {**about, "communities": _FORMER_COMMUNITIES[former]}
        return replace(super().from_dict(values), about=QuestionSettings.from_dict(about))

    def as_dict(self) -> dict[str, Any]:
        """Return the plan, ready for JSON."""
        return super().as_dict() | {"about": self.about.as_dict()}

    def in_words(self) -> str:
        """Describe the plan, for the methods section."""
        algorithm = LABELLERS[self.algorithm]
        return (
            f"Labels were fused by {algorithm.title} ({algorithm.source}): {self.settings.in_words()}. "
            f"Known truths: {TRUTHS[self.about.truths]}. Each vote counts {COUNTS[self.about.counting]}. "
            f"Groups of annotators: {self.about.in_words(('truths', 'counting'))}."
        )


def run(labels: Labels, plan: LabelPlan, watch: Watch = silent) -> LabelFusion:
    """Fuse labels by the plan's algorithm, known truths held fixed, votes weighted by the plan.

    A class without votes becomes the consensus only if `exclude_unvoted` finds support for it. Means of
    scores are exempt, because they lie between the classes with votes.
    """
    fusion = _modelled(labels, plan, watch)
    if plan.algorithm in SCORING:
        return fusion
    return exclude_unvoted(labels.settled(getattr(plan.settings, "repeats", "all")), fusion)


def run_with_programs(
    plan: LabelPlan, programs: Sequence[Program], labels: Labels, watch: Watch = silent
) -> LabelFusion:
    """Fuse labels as `run` does, and combine the consensus with the class probabilities of programs."""
    if not programs:
        return run(labels, plan, watch)
    fusion, _ = combine(run(labels, plan, part(watch, 0.0, 0.95)), programs, part(watch, 0.95, 1.0))
    labels.keep_to_sets(fusion.posterior)
    return fusion


def _modelled(labels: Labels, plan: LabelPlan, watch: Watch) -> LabelFusion:
    fusion: LabelFusion
    fully = LABELLERS[plan.algorithm].weight_notices(labels.weights)
    if fully:
        fusion = _modelled(replace(labels, weights=None), plan, watch)
        return replace(fusion, notices=(*fusion.notices, *fully))
    used = labels.used_classes()
    if not used.all() and plan.algorithm in _WITH_PRIOR:

        def restored(fusion: object) -> LabelFusion:
            assert isinstance(fusion, LabelFusion)
            return with_unused(labels.settled(getattr(plan.settings, "repeats", "all")), used, fusion)

        in_part = watch if watch is silent else wrapping(watch, restored)
        return restored(_modelled(without_unused(labels, used), plan, in_part))
    if plan.about.counting == "full":
        fusion = LABELLERS[plan.algorithm].run(labels, plan.settings, watch=watch)
        return fusion
    fusion = LABELLERS[plan.algorithm].run(labels, plan.settings, watch=part(watch, 0.0, _MODELLED))
    if not is_modelled(fusion):
        words = _TEMPERED if plan.algorithm == "pooled" else _IN_FULL
        return replace(fusion, notices=(*fusion.notices, words))
    labels = labels.settled(getattr(plan.settings, "repeats", "all"))
    tempering = choose_tempering(labels, fusion, part(watch, _MODELLED, 1.0))
    return fusion if tempering.power == 1.0 else tempered(labels, fusion, tempering.power)


def fuse(
    labels: Labels, plan: LabelPlan | None = None, truth: ClassArray | None = None, watch: Watch = silent
) -> LabelResult:
    """Fuse the votes on a question, and group the annotators.

    `labels`: their known classes are held fixed by every plan. `plan`: by default the pooled consensus.
    `truth`: (N,), known truths, used as in the plan; `OPEN` where unknown.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.label_crowds import simulate_labels
    >>> from raterscope.algorithms.simulation.label_crowds import staging_crowd
    >>> crowd = simulate_labels(staging_crowd(tasks=150, annotators=12), seed=1)
    >>> result = fuse(crowd.labels)
    >>> float(round((result.fusion.posterior.argmax(axis=1) == crowd.truth).mean(), 2))
    0.92
    """
    plan = plan or LabelPlan()
    use = plan.about.truths if truth is not None and bool((truth != OPEN).any()) else "measure"
    grouped = plan.about.communities != "no" and has_own_matrices(labels)
    step = part(watch, 0.0, _FUSED) if grouped else watch
    known = labels.known_classes()
    if truth is not None:
        truth = np.where(known == OPEN, truth, OPEN).astype(np.int16)
    if truth is not None and use == "folds":
        crossed = cross_validate(labels, truth, lambda folded, w: run(folded, plan, w), watch=step)
        fusion = replace(crossed.fusion, posterior=crossed.posterior, known=np.maximum(known, OPEN))
    elif truth is not None and use == "hold":
        held = np.where(known == OPEN, truth, known).astype(np.int16)
        fusion = run(replace(labels, known=held), plan, step)
    else:
        fusion = run(labels, plan, step)
    voters = [labels.annotators[at] for at in np.flatnonzero(labels.votes_of_annotators()).tolist()]
    fusion = replace(fusion, notices=(*fusion.notices, *read_notices(voters)))
    if labels.prior is not None and _has_prior(plan.settings):
        fusion = replace(fusion, notices=(*fusion.notices, _OVERRIDDEN))
    if fusion.drift is not None:
        changed = changes_in_words(constancy(labels, fusion, step), labels, fusion)
        fusion = replace(fusion, notices=(*fusion.notices, *changed))
    groups = found = None
    if grouped:
        with Background() as beside:
            copies = beside.start(partial(find_copies, labels, fusion, beside.watch))
            groups = find_communities(
                labels, rates_of(labels, fusion).mean, plan.about, part(watch, _FUSED, _GROUPED)
            )
            found = copies(partial(watch, _GROUPED, "comparing annotators"))
        copying = copying_in_words(found, labels)
        fusion = replace(fusion, notices=(*fusion.notices, *copying))
    return LabelResult(fusion, use, groups, copying=found)


def find_communities(
    labels: Labels, mean: FloatArray, settings: QuestionSettings, watch: Watch = silent
) -> Communities:
    """Group the annotators of a question by behaviour or by common tasks.

    `mean`: (K, J, L), expected confusion matrices, see `rates_of`. `settings`: its `communities` must not be
    "no".
    """
    if settings.communities == "tasks":
        many = len(labels.tasks), len(labels.annotators)
        by_tasks = settings.by_common_tasks()
        return common_task_communities(labels.task, labels.annotator, *many, by_tasks, watch, mean)
    votes, used = labels.votes_of_annotators(), labels.used_classes()
    return communities(mean, votes, settings.by_behaviour(), watch, used)


def _has_prior(settings: Settings) -> bool:
    return isinstance(settings, PriorSettings) and (
        settings.prior_strength is not None or settings.prior_accuracy is not None
    )
