"""Labels: the input and the result of a fusion, and code that all methods share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import checked_weights, reweighed, weights_by_name
from raterscope.algorithms.array_operations import ROWS_AT_ONCE, sum_rows
from raterscope.algorithms.progress import RefusedError, parts_of
from raterscope.algorithms.settings import Settings, choice, number

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int32]
ClassArray = NDArray[np.int16]
Repeats = Literal["all", "first", "last"]

OPEN = -1
"""In `Labels.known`: a task of unknown class. In `Labels.meaning`: an output that represents no class. `OPEN
- 1 - s` in `Labels.known`: a task whose class is in `Labels.sets[s]`.
"""


class LabelsError(RefusedError):
    """Labels that cannot be fused; the message says why."""


@dataclass(frozen=True, eq=False)
class Labels:
    """V votes of K annotators on N tasks. A vote is one of L outputs; a task has one of J classes.

    Attributes
    ----------
    task, annotator : (V,) int32
        Indices into `tasks` and `annotators`, in the order of the votes.
    label : (V,) int16
        Index into `outputs`.
    tasks, annotators : tuple of N and K names
        Tasks without votes and annotators without votes are allowed.
    outputs, classes : tuple of L and J names
        In the order that the curator set.
    meaning : (L,) int16, optional
        The class that each output represents, `OPEN` for none. By default output l represents class l if
        there are as many outputs as classes; otherwise it is required.
    time : (V,) float64, optional
        Seconds from any origin; NaN where unknown.
    known : (N,) int16, optional
        The known true class of each task, `OPEN` elsewhere. Fusion holds it fixed. Values below `OPEN`
        restrict a task to a set of classes, see `restricted`.
    sets : (S, J) bool, optional
        The sets of classes of restricted tasks.
    prior : (J, L) float64, optional
        Pseudo-counts of every annotator's confusion matrix; by default those of the algorithm's settings.
    ordered : bool
        Whether the classes are grades, from the lowest to the highest.
    aliases : frozenset of str
        Names without own votes: names joined with another name, see `joined`, and programs.
    weights : (K,) float64, optional
        Weight of each annotator, above 0 and at most 1; None where all count fully. The log likelihood of an
        annotator's votes is multiplied by it [ibrahim2000]_.

    References
    ----------
    .. [ibrahim2000] J. G. Ibrahim and M.-H. Chen, "Power prior distributions for regression models",
       Statistical Science 15 (2000) 46-60, doi:10.1214/ss/1009212673.
    """

    task: IndexArray
    annotator: IndexArray
    label: ClassArray
    tasks: tuple[str, ...]
    annotators: tuple[str, ...]
    outputs: tuple[str, ...]
    classes: tuple[str, ...]
    meaning: ClassArray | None = None
    time: FloatArray | None = None
    known: ClassArray | None = None
    prior: FloatArray | None = None
    ordered: bool = False
    aliases: frozenset[str] = frozenset()
    weights: FloatArray | None = None
    sets: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, dtype in (("task", np.int32), ("annotator", np.int32), ("label", np.int16)):
            values = np.ascontiguousarray(getattr(self, name))
            if values.ndim != 1 or not (np.issubdtype(values.dtype, np.integer) or not values.size):
                raise LabelsError(f"{name} is of {values.dtype} and shape {values.shape}; expected indices.")
            object.__setattr__(self, name, values.astype(dtype, copy=False))
        self._check_names()
        self._check_votes()
        self._check_meaning()
        self._check_rest()

    def _check_names(self) -> None:
        for name in ("outputs", "classes"):
            names = getattr(self, name)
            if not names or len(set(names)) != len(names):
                raise LabelsError(f"{name} {names}; expected at least one name, each once.")
        if len(self.outputs) > np.iinfo(np.int16).max or len(self.classes) > np.iinfo(np.int16).max:
            raise LabelsError(f"{len(self.outputs):,} labels; expected at most 32,767.")

    def _check_votes(self) -> None:
        count = len(self.task)
        if len(self.annotator) != count or len(self.label) != count:
            raise LabelsError("task, annotator and label have different lengths.")
        for name, values, many in (
            ("task", self.task, len(self.tasks)),
            ("annotator", self.annotator, len(self.annotators)),
            ("label", self.label, len(self.outputs)),
        ):
            if count and not 0 <= int(values.min()) <= int(values.max()) < many:
                raise LabelsError(f"a vote is of {name} {int(values.max())}; expected 0 to {many - 1}.")

    def _check_meaning(self) -> None:
        if self.meaning is None and len(self.outputs) != len(self.classes):
            raise LabelsError(
                f"{len(self.outputs)} outputs for {len(self.classes)} classes;"
                " expected the class of each output."
            )
        meanings = range(len(self.classes)) if self.meaning is None else self.meaning
        meaning = np.ascontiguousarray(meanings, dtype=np.int16)
        if meaning.shape != (len(self.outputs),) or not OPEN <= meaning.min() <= meaning.max() < len(
            self.classes
        ):
            raise LabelsError("an output represents an unknown class.")
        object.__setattr__(self, "meaning", meaning)

    def _check_rest(self) -> None:
        if self.time is not None:
            time = np.ascontiguousarray(self.time, dtype=np.float64)
            if time.shape != self.task.shape or bool(np.isinf(time).any()):
                raise LabelsError("times of the votes are missing or infinite; expected one a vote.")
            object.__setattr__(self, "time", None if bool(np.isnan(time).all()) else time)
        if self.known is not None:
            known = np.ascontiguousarray(self.known, dtype=np.int16)
            if known.shape != (len(self.tasks),):
                raise LabelsError(f"{known.shape} known classes; expected one a task.")
            least = OPEN if self.sets is None else OPEN - len(self.sets)
            if known.size and not least <= known.min() <= known.max() < len(self.classes):
                raise LabelsError("the known class of a task does not exist.")
            object.__setattr__(self, "known", None if bool((known == OPEN).all()) else known)
        if self.sets is not None and (self.known is None or int(self.known.min()) >= OPEN):
            object.__setattr__(self, "sets", None)
        if self.sets is not None and self.sets.shape[1:] != (len(self.classes),):
            raise LabelsError(f"sets of {self.sets.shape[1:]} classes; expected {len(self.classes)}.")
        if self.prior is not None:
            prior = np.ascontiguousarray(self.prior, dtype=np.float64)
            shape = (len(self.classes), len(self.outputs))
            if prior.shape != shape or not bool((np.isfinite(prior) & (prior > 0)).all()):
                raise LabelsError(f"a prior of {prior.shape}; expected {shape} numbers above 0.")
            object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "weights", checked_weights(self.weights, self.annotators, LabelsError))

    def __len__(self) -> int:
        return len(self.task)

    def restricted(self, classes: Mapping[int, Sequence[int]]) -> Labels:
        """Restrict each task of unknown class to a set of classes; a set of one class is a known class.

        Examples
        --------
        >>> none = np.empty(0, np.int32)
        >>> labels = Labels(none, none, none, ("a", "b", "c"), (), tuple("xyz"), tuple("xyz"))
        >>> restricted = labels.restricted({0: [0, 1], 1: [2], 2: [0, 1, 2]})
        >>> restricted.known.tolist(), restricted.sets.tolist()
        ([-2, 2, -1], [[True, True, False]])
        """
        known = self.known_classes()
        before = () if self.sets is None else map(np.flatnonzero, self.sets)
        rows = {tuple(chosen.tolist()): row for row, chosen in enumerate(before)}
        for task, listed in classes.items():
            chosen = tuple(sorted(set(listed)))
            if not chosen or not 0 <= chosen[0] <= chosen[-1] < len(self.classes):
                raise LabelsError("a task is restricted to classes that do not exist.")
            if known[task] == OPEN and len(chosen) < len(self.classes):
                code = OPEN - 1 - rows.setdefault(chosen, len(rows)) if len(chosen) > 1 else chosen[0]
                known[task] = code
        sets = np.zeros((len(rows), len(self.classes)), dtype=bool)
        for chosen, row in rows.items():
            sets[row, chosen] = True
        return replace(self, known=known, sets=sets if rows else None)

    def keep_to_sets(self, posterior: FloatArray) -> FloatArray:
        """Set the probabilities of restricted tasks, (N, J), to 0 outside their sets, in place."""
        return keep_to_sets(posterior, self.known, self.sets)

    def votes_of_tasks(self) -> NDArray[np.int64]:
        """Count the votes of every task, (N,)."""
        return _count(self.task, len(self.tasks))

    def known_classes(self) -> ClassArray:
        """Return the known class of every task, (N,), as a new array; `OPEN` where unknown."""
        known = np.full(len(self.tasks), OPEN) if self.known is None else self.known
        return known.astype(np.int16)

    def used_classes(self) -> NDArray[np.bool_]:
        """Mark the classes, (J,), that a vote, a known class or a restriction of a task names.

        Ordered classes between two such classes are used too. All are marked if that leaves one class or two
        of an order, or if a prior describes all of them.
        """
        assert self.meaning is not None
        used = np.zeros(len(self.classes) + 1, dtype=bool)  # the last for outputs that represent none
        used[self.meaning[self.votes_of_outputs() > 0]] = True
        used[-1] = False
        if self.known is not None:
            used[self.known[self.known > OPEN]] = True
        if self.sets is not None:
            used[:-1] |= self.sets.any(axis=0)
        if self.ordered and used.any():
            used[used.argmax() : np.flatnonzero(used)[-1]] = True
        if used.sum() < (3 if self.ordered else 2) or self.prior is not None:
            used[:] = True
        return used[:-1]

    def votes_of_annotators(self) -> NDArray[np.int64]:
        """Count the votes of every annotator, (K,)."""
        return self._counted.copy()

    def votes_of_outputs(self) -> NDArray[np.int64]:
        """Count the votes for every output, (L,)."""
        return self._by_output.copy()

    @cached_property
    def _by_output(self) -> NDArray[np.int64]:
        count = np.zeros(len(self.outputs), dtype=np.int64)
        for first, last in parts_of(len(self.label), ROWS_AT_ONCE):  # `bincount` copies to 64 bits per vote
            count += np.bincount(self.label[first:last], minlength=len(count))
        return count

    @cached_property
    def _counted(self) -> NDArray[np.int64]:
        return _count(self.annotator, len(self.annotators))

    def without(self, annotators: Collection[str]) -> Labels:
        """Exclude the votes of some annotators; tasks and annotators keep their indices."""
        left_out = np.array([name in annotators for name in self.annotators], dtype=bool)
        return self.subset(~left_out[self.annotator]) if left_out.any() else self

    def joined(self, names: Mapping[str, str]) -> Labels:
        """Assign the votes of some annotators to others, by name; tasks and annotators keep their indices."""
        if not names:
            return self
        rows = {name: row for row, name in enumerate(self.annotators)}
        stand = np.array([rows[names.get(name, name)] for name in self.annotators])
        return replace(
            self,
            annotator=stand[self.annotator].astype(self.annotator.dtype),
            aliases=self.aliases | {name for name, main in names.items() if main != name},
        )

    def with_weights(self, weights: Mapping[str, float]) -> Labels:
        """Down-weight annotators by name; weight 0 excludes them, and all others count fully."""
        if not weights and self.weights is None:
            return self
        others = self.without({name for name, weight in weights.items() if weight == 0})
        return replace(others, weights=weights_by_name(weights, self.annotators))

    def reweighed(self, annotators: Collection[str], weight: float | None) -> Labels:
        """Set the weight of some annotators; None and 0 exclude them."""
        if not weight:
            return self.without(annotators)
        return replace(self, weights=reweighed(self.weights, self.annotators, annotators, weight))

    def vote_weights(self) -> FloatArray | None:
        """Return the weight of each vote, (V,); None where all count fully."""
        return None if self.weights is None else self.weights[self.annotator]

    def together(self) -> Labels:
        """Assign all votes to one annotator."""
        return replace(self, annotator=np.zeros_like(self.annotator), annotators=("all",), weights=None)

    def subset(self, votes: NDArray[np.bool_]) -> Labels:
        """Keep the votes of a mask (V,)."""
        rows = np.flatnonzero(votes)
        return replace(
            self,
            task=self.task[rows],
            annotator=self.annotator[rows],
            label=self.label[rows],
            time=None if self.time is None else self.time[rows],
        )

    def settled(self, repeats: Repeats) -> Labels:
        """Resolve repeated votes of an annotator on a task.

        Parameters
        ----------
        repeats : "all", "first" or "last"
            Count every vote; or the first or the last one only, by `in_time`.
        """
        if repeats == "all" or not len(self):
            return self
        order = self.in_time()
        if repeats == "last":
            order = order[::-1]
        pair = self.annotator[order].astype(np.int64) * len(self.tasks) + self.task[order]
        _, first = np.unique(pair, return_index=True)
        keep = np.zeros(len(self), dtype=bool)
        keep[order[first]] = True
        return self.subset(keep)

    def in_time(self) -> NDArray[np.int64]:
        """Return (V,) indices that sort the votes by annotator and then by time.

        Ties keep the order of the input; so do all votes of an annotator if any of their times is unknown.
        """
        if self.time is None:
            return np.argsort(self.annotator, kind="stable")
        unknown = np.zeros(len(self.annotators), dtype=bool)
        unknown[self.annotator[np.isnan(self.time)]] = True
        time = np.where(unknown[self.annotator], 0.0, self.time)
        return np.lexsort((time, self.annotator))


_MANY_VOTES = 1_000_000
"""Minimum number of votes for compiled code, which counts without a copy of 64 bits per vote."""


def _count(index: IndexArray, many: int) -> NDArray[np.int64]:
    """Count the votes with each index from 0 to `many` - 1."""
    if len(index) < _MANY_VOTES:
        return np.bincount(index, minlength=many)
    from raterscope.algorithms.labels._ibcc_kernels import count_votes

    count = np.zeros(many, dtype=np.int64)
    count_votes(index, count)
    return count


def default_prior(labels: Labels) -> FloatArray:
    """Return the default pseudo-counts, (J, L).

    One for every output, and one more for outputs that represent the class: 1 + I if outputs are classes.
    With equal pseudo-counts, classes could be swapped.

    Examples
    --------
    >>> none = np.empty(0, np.int32)
    >>> outputs = classes = ("healthy", "infected")
    >>> default_prior(Labels(none, none, none, (), (), outputs, classes))
    array([[2., 1.],
           [1., 2.]])
    """
    assert labels.meaning is not None
    means_class = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    return np.where(means_class, 2.0, 1.0)


IMPOSSIBLE = -1e300
"""Log probability of a class outside a task's set; it is finite, so that 0 times it is 0."""


def keep_to_sets(
    posterior: FloatArray, known: ClassArray | None, sets: NDArray[np.bool_] | None
) -> FloatArray:
    """Set the probabilities of restricted tasks, (N, J), to 0 outside their sets, in place."""
    if known is None or sets is None:
        return posterior
    tasks = np.flatnonzero(known < OPEN)
    allowed = sets[OPEN - 1 - known[tasks]]
    rows = np.where(allowed, posterior[tasks], 0.0)
    total = rows.sum(axis=1, keepdims=True)
    even = allowed / allowed.sum(axis=1, keepdims=True)
    posterior[tasks] = np.where(total > 0, rows / np.where(total > 0, total, 1.0), even)
    return posterior


def split_at_sets(
    first: int,
    last: int,
    known: ClassArray,
    sets: NDArray[np.bool_] | None,
    prior: FloatArray,
    outside: float = 0.0,
) -> Iterator[tuple[int, int, FloatArray]]:
    """Divide a span of tasks at restricted ones, and yield (first, last, prior) of each part.

    `prior`: (J,), prior of the classes, or (J M,), prior of M subtypes of each. `outside`: prior outside the
    set of a restricted task.
    """
    if sets is not None:
        tasks = first + np.flatnonzero(known[first:last] < OPEN)
        allowed = np.repeat(sets[OPEN - 1 - known[tasks]], len(prior) // sets.shape[1], axis=1)
        for task, own in zip(tasks.tolist(), np.where(allowed, prior, outside), strict=True):
            if first < task:
                yield first, task, prior
            yield task, task + 1, own
            first = task + 1
    if first < last:
        yield first, last, prior


@dataclass(frozen=True, eq=False)
class LabelTrace:
    """Record of an iteration.

    Attributes
    ----------
    objective : (T,) float64
        Objective after every iteration; empty if the method has none.
    change : (T,) float64
        The largest change of any task's probability in every iteration.
    converged : bool
    name : str
        Name of the objective: "lower bound", "log-likelihood"; empty if there is none.
    """

    objective: FloatArray
    change: FloatArray
    converged: bool
    name: str = ""


MAX_ENTRIES = 20_000_000
"""Maximum number of entries of all annotators' confusion matrices if each annotator has one: 0.16 GB."""


def has_own_matrices(labels: Labels) -> bool:
    """Return whether the default method estimates a confusion matrix for each annotator.

    For very many classes and annotators it estimates one matrix for all, and each annotator's accuracy.
    """
    return len(labels.annotators) * len(labels.classes) * len(labels.outputs) <= MAX_ENTRIES


def distinct(values: FloatArray) -> FloatArray:
    """Return the values of annotators, (K, ...), or (1, ...) if all annotators share one copy in memory."""
    return values[:1] if len(values) > 1 and values.strides[0] == 0 else values


def repeated(values: FloatArray, annotators: int) -> FloatArray:
    """Repeat the values from `distinct` for a number of annotators."""
    if len(values) == annotators:
        return values
    return np.broadcast_to(values, (annotators, *values.shape[1:]))


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix of every annotator: a Dirichlet distribution for each row.

    Attributes
    ----------
    alpha : (K, J, L) float64
        Parameters: prior pseudo-counts plus expected counts. With very many classes all annotators have their
        mean, a single copy in memory that `distinct` finds.
    prior : (J, L) float64
    """

    alpha: FloatArray
    prior: FloatArray

    def mean(self) -> FloatArray:
        """Return the expected probabilities of the outputs, (K, J, L)."""
        alpha = distinct(self.alpha)
        return repeated(alpha / alpha.sum(axis=2, keepdims=True), len(self.alpha))

    def counts(self) -> FloatArray:
        """Return the expected numbers of votes, (K, J, L)."""
        return repeated(np.maximum(distinct(self.alpha) - self.prior, 0.0), len(self.alpha))


@dataclass(frozen=True, eq=False)
class Drift:
    """Drift of the annotators' confusion matrices, with a step for each vote.

    Attributes
    ----------
    start : (K + 1,) int64
        The steps of annotator k are `start[k]` to `start[k + 1]`, in the order of `Labels.in_time`.
    vote : (V,) int32
        Vote of each step.
    alpha : (V, J, L) float32
        Smoothed Dirichlet parameters after each step.
    """

    start: NDArray[np.int64]
    vote: IndexArray
    alpha: NDArray[np.float32]

    def steps(self, annotator: int) -> slice:
        """Return the slice of an annotator's steps."""
        return slice(int(self.start[annotator]), int(self.start[annotator + 1]))

    def reordered(self, order: NDArray[np.int64]) -> Drift:
        """Return a copy with the annotators in another order, first the annotator at `order[0]`."""
        steps = [np.arange(self.start[annotator], self.start[annotator + 1]) for annotator in order]
        start = np.zeros_like(self.start)
        np.cumsum(np.diff(self.start)[order], out=start[1:])
        step = np.concatenate([np.empty(0, dtype=np.int64), *steps])
        return Drift(start, self.vote[step], self.alpha[step])


@dataclass(frozen=True, eq=False)
class LabelFusion:
    """Result of a fusion of labels; all indices are those of the `Labels`.

    Attributes
    ----------
    algorithm : str
    outputs, classes : tuple of L and J names
    posterior : (N, J) float64
        The probability of each class for every task, rows adding up to 1. A task without votes has the shares
        of the classes; a task with known class has 0 and 1.
    votes : (N,) int32
        Number of votes that count.
    known : (N,) int16
        Classes that were held fixed, `OPEN` elsewhere.
    shares : (J,) float64
        The expected share of each class among all tasks.
    confusion : Confusion
        For a method without a model of the annotators, votes counted by its posterior.
    trace : LabelTrace
    drift : Drift or None
        Drift, only from a dynamic model.
    weight : (K,) float64 or None
        Weight of each annotator's vote, if the method has one.
    notices : tuple of str
        Messages for the user, a sentence each.
    power : float
        Weight of each vote: 1, or less if the votes on a task are correlated.
    """

    algorithm: str
    outputs: tuple[str, ...]
    classes: tuple[str, ...]
    posterior: FloatArray
    votes: IndexArray
    known: ClassArray
    shares: FloatArray
    confusion: Confusion
    trace: LabelTrace
    drift: Drift | None = None
    weight: FloatArray | None = None
    notices: tuple[str, ...] = ()
    power: float = 1.0

    def label(self) -> ClassArray:
        """Return the most probable class of every task, (N,); in a tie, the first."""
        return np.asarray(self.posterior.argmax(axis=1), dtype=np.int16)

    def reordered(self, annotators: NDArray[np.int64], tasks: NDArray[np.int64] | None = None) -> LabelFusion:
        """Put all annotators, and perhaps tasks, into another order: first the one at `annotators[0]`."""
        alpha = distinct(self.confusion.alpha)
        own = alpha[annotators] if len(alpha) > 1 else self.confusion.alpha
        fusion = replace(
            self,
            confusion=replace(self.confusion, alpha=own),
            drift=None if self.drift is None else self.drift.reordered(annotators),
            weight=None if self.weight is None else self.weight[annotators],
        )
        if tasks is None:
            return fusion
        posterior, votes, known = self.posterior[tasks], self.votes[tasks], self.known[tasks]
        return replace(fusion, posterior=posterior, votes=votes, known=known)

    def entropy(self) -> FloatArray:
        """Return the normalised entropy of every task's posterior, (N,), 0 to 1."""
        entropy = np.zeros(len(self.posterior))
        if len(self.classes) < 2:
            return entropy
        for begin, end in parts_of(len(entropy), ROWS_AT_ONCE):
            share = self.posterior[begin:end]
            terms = np.where(share > 0, share, 1.0)
            np.log(terms, out=terms)
            terms *= share
            entropy[begin:end] = np.abs(sum_rows(terms))
        entropy /= np.log(len(self.classes))
        return entropy


REPEATS = {
    "all": "each of them counts",
    "first": "the first of them counts",
    "last": "the last of them counts",
}


@dataclass(frozen=True)
class LabelSettings(Settings):
    """Settings of all methods without time."""

    repeats: Literal["all", "first", "last"] = choice(
        "all", "Repeated votes", "Use of an annotator's repeated votes on one task.", REPEATS
    )


@dataclass(frozen=True)
class PriorSettings(Settings):
    """Prior of every annotator, and of the classes (alpha_0 and nu_0 of the paper)."""

    prior_strength: float | None = number(
        None, "Prior strength",
        "Weight of the prior in votes, for each class. Empty: one vote for every label, and one more for "
        "the correct label. The pooled consensus estimates it from the crowd.",
        unit="votes", minimum=1e-6, maximum=1e8, left_open="usual",
    )  # fmt: skip
    prior_accuracy: float | None = number(
        None, "Prior accuracy",
        "Expected accuracy of an unknown annotator. Empty: slightly above chance.",
        minimum=1e-6, maximum=1 - 1e-6, left_open="usual",
    )  # fmt: skip
    share_strength: float = number(
        1.0, "Prior of the classes' shares", "Pseudo-counts of tasks of each class.",
        unit="tasks", minimum=1e-6, maximum=1e8, advanced=True,
    )  # fmt: skip


def prior_of(labels: Labels, settings: PriorSettings) -> FloatArray:
    """Return the prior pseudo-counts of a confusion matrix by the settings, (J, L).

    The prior accuracy is divided equally among the outputs that represent a class, the rest among the others.
    A class that no output or every output represents has equal pseudo-counts.
    `Labels.prior`, if set, replaces the settings.
    """
    if labels.prior is not None:
        return labels.prior
    default = default_prior(labels)
    if settings.prior_strength is None and settings.prior_accuracy is None:
        return default
    assert labels.meaning is not None
    right = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    many = right.sum(axis=1, keepdims=True)
    chance = default / default.sum(axis=1, keepdims=True)
    if settings.prior_accuracy is not None:
        wrong = right.shape[1] - many
        accuracy = settings.prior_accuracy
        aimed = np.where(right, accuracy / np.maximum(many, 1), (1 - accuracy) / np.maximum(wrong, 1))
        chance = np.where((many == 0) | (wrong == 0), chance, aimed)
    strength = settings.prior_strength
    weight = default.sum(axis=1, keepdims=True) if strength is None else strength
    return np.asarray(chance * weight)
