"""Scene of the labels workspace: votes, a run's result, analysis of both, and similarity. No Qt here.

Similarity: grouping of annotators, pairwise comparison, communities over time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from raterscope.algorithms.annotators.common_tasks import EVENTS, CommunitiesOverTime, common_tasks
from raterscope.algorithms.annotators.communities import CommunitySettings, communities
from raterscope.algorithms.annotators.similarity import fitting_scale, roots_of, similarity_of_roots
from raterscope.algorithms.labels import LabelFusion
from raterscope.algorithms.labels.assessment import Assessment, advice, assess
from raterscope.algorithms.labels.class_tree import class_tree, similar_order
from raterscope.algorithms.labels.constancy import Constancy, constancy
from raterscope.algorithms.labels.data import ClassArray, FloatArray, Labels, LabelsError, distinct
from raterscope.algorithms.labels.drift import row_movement
from raterscope.algorithms.labels.programs import Program
from raterscope.algorithms.labels.rates import Rates, rates_of
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.voting import shares_of_votes
from raterscope.algorithms.progress import Watch, part
from raterscope.app import assessment
from raterscope.app.kinds.labels.community_charts import (
    CommunityCourse,
    communities_by_tasks,
    corners_of,
    follow_communities,
)
from raterscope.app.kinds.labels.community_charts import why_not_over_time as reason
from raterscope.app.kinds.labels.runs import (
    Groups,
    describe_groups,
    groups_of,
    hold_decisions,
    order_like_answer,
    programs_of_run,
    read_truths,
    tempering_for,
    unseen_truths,
)
from raterscope.app.session import Session
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import excluded_votes, labels_of, pictures_of, with_gold
from raterscope.app.study.records import ImageEntry, QuestionEntry
from raterscope.app.study.vote_sets import NameIndex
from raterscope.widgets.figures.community_flow import FlowEvent, FlowView
from raterscope.widgets.figures.community_plots import TrianglesView

SORTED_FROM = 12
"""Number of classes above which they are drawn in the order of their confusions."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A question, the run shown, and its votes; without a run, all votes."""

    question: QuestionEntry
    run: RunEntry | None
    result: LabelResult | None
    labels: Labels  # votes without the classes held fixed
    fixed: Labels  # votes with the classes and parents that the run held fixed
    annotator_ids: NDArray[np.int32]  # (K,): the annotators' numbers in the study
    truth: ClassArray  # (N,): imported truths and marked gold tasks, as indices into `classes`
    pictures: Mapping[int, ImageEntry]  # by task
    later: int = 0  # number of votes that were imported after the run
    # votes of excluded annotators and programs, with the numbering of `labels`
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
        """Classes of the result; without one, those of the question."""
        return self.labels.classes if self.result is None else self.result.fusion.classes

    @cached_property
    def decidable(self) -> tuple[str, ...]:
        """Names of the classes, then of their parent classes."""
        tree = class_tree(self.classes)
        return self.classes if tree is None else (*self.classes, *tree.nodes)


def disputed_tasks(question: int, study: Study) -> dict[str, float] | None:
    """Return the disputed tasks of a question by name, with the probability of a wrong answer.

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
    """Read a question with the result of a run, by default the latest, in the study's thread."""
    watch(0.0, "reading votes")
    entry = study.question(question)
    run_shown, result = study.shown.run_and_result(question, "labels", run)
    vote_set = study.vote_set(question, None if run_shown is None else run_shown.imported)
    labels = labels_of(study, question, run_shown)
    fixed = labels
    truth = with_gold(vote_set, study.review_state().gold_tasks(question))
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
    """Votes grouped by task or annotator: those of the i-th are `votes[start[i]:start[i + 1]]`."""

    start: NDArray[np.int64]
    votes: NDArray[np.integer]

    def of(self, number: int) -> NDArray[np.integer]:
        """Return the votes of a task or annotator, in their order."""
        return self.votes[self.start[number] : self.start[number + 1]]

    @classmethod
    def by(cls, key: NDArray[np.int32], many: int) -> Index:
        """Sort votes by a key of 0 to `many` - 1."""
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
    # (N,) or None: see `assessment.disputed_tasks`. This and the following fields are None without a result.
    disputed: NDArray[np.bool_] | None = None
    rates: Rates | None = None
    mean: FloatArray | None = None  # (K, J, L) or None: mean of the rates
    # tuple of three (K,) or None: expected share of correct votes of each annotator, with its interval
    accuracy: tuple[FloatArray, FloatArray, FloatArray] | None = None
    crowd: FloatArray | None = None  # (J, L) or None
    # tuple of (J,) and (L,), or None: order in which confused classes are neighbours; None for the original
    # order
    class_order: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    # (K,) or None: difference from the crowd, as the mean total variation over classes
    difference: FloatArray | None = None
    moved: FloatArray | None = None  # (K,) or None: change of each annotator, for a dynamic result
    constancy: Constancy | None = None  # test of each annotator for a change, for a dynamic result
    step_of: NDArray[np.int32] | None = None  # (V,) or None: step of each vote, for a dynamic result
    groups: Groups | None = None
    # model, crowd_vote: assessments of the result and of the majority vote
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


MAX_CLASSES = 4
"""Maximum number of classes with a triangle."""

GroupingKey = tuple[str, str]
"""Basis of a grouping (a key of `BASES`) and its method (a key of `METHODS`)."""

BASES = {
    "behaviour": ("behaviour", "Annotators with similar confusion matrices"),
    "tasks": ("common tasks", "Annotators who worked on the same tasks"),
}
METHODS = {
    "nmf": (
        "factorisation",
        "Bayesian non-negative matrix factorisation: estimates their number; annotators may be in several",
    ),
    "louvain": ("Louvain", "Louvain: each annotator belongs to one"),
}


def grouping_key(groups: Groups) -> GroupingKey:
    """Return the basis and method of groups."""
    return groups.basis, groups.communities.method


def find_groups(scene: Scene, analysis: Analysis, method_key: GroupingKey, watch: Watch) -> Groups:
    """Group the annotators of a question that has a result."""
    assert analysis.mean is not None
    assert analysis.accuracy is not None
    if analysis.rates is not None and analysis.rates.shared:
        raise LabelsError(
            "No communities are computed: all annotators share one matrix of very many classes."
        )
    basis, method = method_key
    if basis == "behaviour":
        settings, used = CommunitySettings(method=method), scene.labels.used_classes()
        groups = communities(analysis.mean, analysis.votes_of, settings, watch, used)
    else:
        groups = communities_by_tasks(scene.labels, analysis.mean, None, method, watch)
    return describe_groups(scene.labels, groups, analysis.accuracy[0])


@dataclass(frozen=True, eq=False)
class Course:
    """Communities at several moments."""

    over: CommunitiesOverTime  # communities of the last moment are numbered as in the groups
    view: FlowView
    triangles: TrianglesView

    def block(self, moment: int, community: int) -> tuple[int, ...]:
        """Return the annotators of a community at a moment; beyond the last one, those in none at it."""
        return tuple(np.flatnonzero(self._in(moment, community)).tolist())

    def band(self, moment: int, community: int, goal: int) -> tuple[int, ...]:
        """Return the annotators who move from one community to another at the next moment."""
        both = self._in(moment, community) & self._in(moment + 1, goal)
        return tuple(np.flatnonzero(both).tolist())

    def _in(self, moment: int, community: int) -> NDArray[np.bool_]:
        communities_then = self.over.moments[moment]
        if community < communities_then.count:
            return np.asarray(communities_then.of(self.over.annotators) == community)
        return np.asarray((communities_then.of(self.over.annotators) < 0) & self._ever)

    @property
    def _ever(self) -> NDArray[np.bool_]:
        """Annotators in a community at any moment."""
        ever = np.zeros(self.over.annotators, dtype=bool)
        for moment in self.over.moments:
            ever[moment.members] = True
        return ever


def obstacle(scene: Scene, groups: Groups) -> str:
    """Return why communities cannot be followed over time; empty if they can."""
    return reason(scene.labels, scene.fusion, groups.basis)


def follow_groups(scene: Scene, analysis: Analysis, groups: Groups, watch: Watch) -> Course:
    """Follow communities over time, see `follow_communities`, and lay them out for drawing.

    The triangles show the first, a middle and the last moment, as in Figs. 11 to 13 of the paper.
    """
    assert scene.fusion is not None
    assert analysis.mean is not None
    course = follow_communities(scene.labels, scene.fusion, analysis.mean, groups, watch)
    indices = sorted({0, len(course.titles) // 2, len(course.titles) - 1})
    over = course.over
    moments = _Moments(
        tuple(course.titles[at] for at in indices), tuple(course.prototypes[at] for at in indices),
        tuple(over.moments[at].sizes() for at in indices), tuple(over.identity[at] for at in indices),
        course.names,
    )  # fmt: skip
    return Course(course.over, _view(scene, course), _triangles(scene.labels, moments))


def triangles_now(scene: Scene, groups: Groups) -> TrianglesView:
    """Lay out the communities shown in triangles."""
    communities_found = groups.communities
    numbers = np.arange(communities_found.count)
    return _triangles(
        scene.labels,
        _Moments(
            ("",), (communities_found.prototype,), (communities_found.sizes(),), (numbers,), groups.names
        ),
    )


@dataclass(frozen=True, eq=False)
class _Moments:
    titles: tuple[str, ...]
    prototypes: tuple[FloatArray, ...]
    sizes: tuple[NDArray[np.int64], ...]
    numbers: tuple[NDArray[np.integer], ...]
    names: tuple[str, ...]


def _triangles(labels: Labels, moments: _Moments) -> TrianglesView:
    assert labels.meaning is not None
    mean = np.concatenate(moments.prototypes).mean(axis=0)
    classes = [at for at in range(len(labels.classes)) if (labels.meaning == at).any()][:MAX_CLASSES]
    corners, shares = [], []
    for true in classes:
        names, share = corners_of(labels.outputs, labels.meaning, true, mean[true])
        corners.append(names)
        shares.append([prototype[:, true] @ share for prototype in moments.prototypes])
    by_moment = [
        np.stack([class_shares[at] for class_shares in shares], axis=1) for at in range(len(moments.titles))
    ]
    return TrianglesView(
        moments.titles, tuple(labels.classes[at] for at in classes), tuple(corners), tuple(by_moment),
        moments.sizes, moments.numbers, moments.names,
    )  # fmt: skip


def _view(scene: Scene, course: CommunityCourse) -> FlowView:
    over = course.over
    ever = np.unique(np.concatenate([moment.members for moment in over.moments]))
    flows = []
    for flow in over.flows:
        drawn = flow.copy()
        drawn[-1, -1] -= over.annotators - len(ever)
        flows.append(drawn)
    return FlowView(
        moments=tuple(course.titles),
        caption=course.caption,
        numbers=over.identity,
        flows=tuple(flows),
        names=course.names,
        events=tuple(_events(over, course.names, course.titles)),
        prototypes=course.prototypes,
        classes=scene.classes,
        outputs=scene.labels.outputs,
    )


def _events(over: CommunitiesOverTime, names: tuple[str, ...], titles: Sequence[str]) -> list[FlowEvent]:
    called = [
        name if name.startswith("community ") else f"{number} {name}" for number, name in enumerate(names, 1)
    ]
    return [
        FlowEvent(moment, number, words, EVENTS[kind] in ("ends", "joins"))
        for (moment, kind, number, _), words in zip(
            over.events.tolist(), over.describe_events(called, [f"{title}:" for title in titles]), strict=True
        )
    ]


MAX_ROWS = 500
"""Maximum number of rows; with more annotators, a row stands for several."""

LINKS = 4
"""Number of links of every node in the graph, to its most similar nodes."""

BRIGHTEST = 0.99
"""Quantile of the links with the brightest colour: a few annotators share far more tasks than others."""

CHUNK = 100


@dataclass(frozen=True, eq=False)
class Similarity:
    """Similarity of annotators, ordered by community; a row stands for several if there are many."""

    values: NDArray[np.floating]  # (m, m): 0 to 1; NaN on the diagonal of tasks in common
    edges: NDArray[np.int64]  # (C + 1,): start and end rows of the communities
    rows: tuple[NDArray[np.int64], ...]  # m arrays of annotators
    positions: NDArray[np.float64]  # (m, 2): positions of the rows as marks of a graph
    links: NDArray[np.int64]  # (e, 2): pairs of linked rows
    weights: NDArray[np.float64]  # (e,)
    label: str  # name of the values
    high: float  # value of the brightest colour
    title: str


def similarity_of(scene: Scene, analysis: Analysis, groups: Groups, watch: Watch) -> Similarity:
    """Compare annotators, ordered by community and by participation in it."""
    watch(0.0, "comparing annotators")
    rows, edges = _rows(groups)
    if groups.basis == "tasks":
        values, label, title = _in_common(scene, rows, watch), "share of their tasks", "Tasks in common"
        high = max(float(np.nanquantile(values, BRIGHTEST)) if np.isfinite(values).any() else 0.0, 0.01)
    else:
        assert analysis.mean is not None
        values, label = _similarity(analysis.mean, rows, groups.communities.scale), "similarity"
        title = "Similarity"
        high = 1.0
    return Similarity(values, edges, rows, *_graph(values, edges), label, high, title)


def _rows(groups: Groups) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    communities_found = groups.communities
    participation = communities_found.participation[
        np.arange(len(communities_found.members)), communities_found.community
    ]
    order = np.lexsort((-participation, communities_found.community))
    share = max(1, -(-len(order) // MAX_ROWS))
    rows: list[NDArray[np.int64]] = []
    edges = [0]
    begin = 0
    for size in communities_found.sizes().tolist():
        members = order[begin : begin + size]
        begin += size
        rows += [
            communities_found.members[members[at : at + share]].astype(np.int64)
            for at in range(0, size, share)
        ]
        edges.append(len(rows))
    return tuple(rows), np.array(edges)


def _similarity(
    mean: NDArray[np.float64], rows: tuple[NDArray[np.int64], ...], scale: float
) -> NDArray[np.floating]:
    roots = roots_of(np.array([mean[row].mean(axis=0) for row in rows]))
    classes = mean.shape[1]
    return similarity_of_roots(roots, roots, classes, scale or fitting_scale(roots, classes))


def _in_common(scene: Scene, rows: tuple[NDArray[np.int64], ...], watch: Watch) -> NDArray[np.floating]:
    """Return the mean links between annotators of two rows, equation 34 of the paper."""
    labels = scene.labels
    network = common_tasks(labels.task, labels.annotator, len(labels.tasks), len(labels.annotators))
    chosen = network.of(np.concatenate(rows))
    size = np.array([len(row) for row in rows])
    begin = np.cumsum(size) - size
    to = np.empty((size.sum(), len(rows)), dtype=np.float32)
    for first in range(0, len(to), CHUNK):
        watch(first / len(to), "counting tasks in common")
        chunk = slice(first, min(first + CHUNK, len(to)))
        to[chunk] = np.add.reduceat(chosen.links(chunk), begin, axis=1)
    pairs = size[:, None] * size - np.diag(size)  # annotators are not linked to themselves
    total = np.add.reduceat(to, begin, axis=0).astype(np.float64)
    return np.where(pairs > 0, total / np.maximum(pairs, 1), np.nan)


def _graph(
    values: NDArray[np.floating], edges: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Lay out nodes in discs around a circle, one per community, and link each to its most similar nodes."""
    count = len(edges) - 1
    positions = np.zeros((len(values), 2))
    for at in range(count):
        step = np.arange(edges[at + 1] - edges[at])
        radius = 0.6 * np.sqrt((step + 0.5) / max(len(values), 1)) * min(1.5, count**0.5)
        angle, middle = step * np.pi * (3 - 5**0.5), 2 * np.pi * at / max(count, 1)
        centre = np.array([np.cos(middle), np.sin(middle)]) * (count > 1)
        positions[edges[at] : edges[at + 1]] = centre + radius[:, None] * np.column_stack(
            [np.cos(angle), np.sin(angle)]
        )
    similarity = values.astype(float)
    np.fill_diagonal(similarity, -1.0)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, : min(LINKS, max(len(values) - 1, 0))]
    pairs = np.column_stack([np.repeat(np.arange(len(values)), nearest.shape[1]), nearest.ravel()])
    links = np.unique(np.sort(pairs, axis=1), axis=0)
    weights = similarity[links[:, 0], links[:, 1]]
    joined = weights > 0
    return positions, links[joined], weights[joined]
