"""Result of a run on one question, the construction of fusions by all methods, and unused classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.communities import Communities
from raterscope.algorithms.labels.crowd_votes import weighted_counts
from raterscope.algorithms.labels.data import (
    OPEN,
    Confusion,
    Drift,
    FloatArray,
    LabelFusion,
    Labels,
    LabelTrace,
    default_prior,
    has_own_matrices,
    repeated,
)
from raterscope.algorithms.labels.programs import ProgramWeights
from raterscope.text import counted, listed


@dataclass(frozen=True, eq=False)
class Copying:
    """Pairs of annotators who copy each other, or a third annotator."""

    pairs: NDArray[np.int32]  # (P, 2)
    common: NDArray[np.int64]  # (P,): tasks with votes of both
    same: NDArray[np.int64]  # (P,): tasks on which both agree
    expected: FloatArray  # (P,): expected agreement of independent annotators
    outvoting: bool = False  # True if copying cannot be separated from a mistake shared by the rest

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Group annotators who copy directly or indirectly, the largest group first."""
        group: dict[int, set[int]] = {}
        for annotator, other in self.pairs.tolist():
            joined = group.get(annotator, {annotator}) | group.get(other, {other})
            for member in joined:
                group[member] = joined
        groups = {min(members): tuple(sorted(members)) for members in group.values()}
        return tuple(sorted(groups.values(), key=lambda members: (-len(members), members)))

    def reordered(self, order: NDArray[np.int64]) -> Copying:
        """Return a copy with the annotators in another order, first the annotator at `order[0]`."""
        pairs = np.sort(np.argsort(order)[self.pairs], axis=1).astype(self.pairs.dtype)
        return replace(self, pairs=pairs)


@dataclass(frozen=True, eq=False)
class LabelResult:
    """Result of a run on one question."""

    fusion: LabelFusion
    truths: str  # use of known truths, a key of `fusion.TRUTHS`
    communities: Communities | None = None  # communities of the annotators; None if not requested
    programs: ProgramWeights | None = None  # weights of programs; None without programs
    # possible copiers, by the votes alone; None if annotators were not compared, as for `communities`
    copying: Copying | None = None

    def reordered(self, order: NDArray[np.int64]) -> LabelResult:
        """Return a copy with the annotators in another order, first the annotator at `order[0]`.

        `order`: (K,), every annotator once.
        """
        groups = self.communities
        return replace(
            self,
            fusion=self.fusion.reordered(order),
            communities=None if groups is None else groups.reordered(order),
            copying=None if self.copying is None else self.copying.reordered(order),
        )


def make_fusion(
    labels: Labels,
    algorithm: str,
    posterior: FloatArray,
    confusion: Confusion,
    trace: LabelTrace,
    notices: Iterable[str] = (),
    *,
    shares: FloatArray | None = None,
    drift: Drift | None = None,
    weight: FloatArray | None = None,
) -> LabelFusion:
    """Make the result of a method.

    `labels`: the labels that were fused, without repeated votes.
    `posterior`: (N, J), overwritten: known tasks get 0 and 1, tasks without votes the classes' shares; 0
        outside the sets of restricted tasks.
    `notices`: further notices; notices on tasks and annotators without votes, classes without votes, and a
    single annotator are added. `shares`: (J,), by default the mean of the posterior over tasks with votes or
    known classes; equal if there is no such task.
    `weight`: (K,).
    """
    tasks, classes = len(labels.tasks), len(labels.classes)
    votes = labels.votes_of_tasks().astype(np.int32)
    known = np.full(tasks, OPEN, dtype=np.int16) if labels.known is None else np.maximum(labels.known, OPEN)
    fixed = np.flatnonzero(known != OPEN)
    posterior[fixed] = 0.0
    posterior[fixed, known[fixed]] = 1.0
    labels.keep_to_sets(posterior)
    silent = (votes == 0) & (known == OPEN)
    if shares is None:
        present = tasks - int(silent.sum())
        posterior[silent] = 0.0  # with a mask, adding takes twenty times as long
        total = posterior.sum(axis=0)
        shares = total / present if present else np.full(classes, 1 / classes)
    posterior[silent] = shares
    labels.keep_to_sets(posterior)
    return LabelFusion(
        algorithm,
        labels.outputs,
        labels.classes,
        posterior,
        votes,
        known,
        shares,
        confusion,
        trace,
        drift,
        weight,
        (*notices, *_missing_notices(labels, int((votes == 0).sum()), int(silent.sum()))),
    )


def count_confusion(labels: Labels, posterior: FloatArray, prior: FloatArray) -> Confusion:
    """Count each annotator's outputs by class, weighted by a posterior (eq. 10), plus a prior.

    `posterior`: (N, J). `prior`: (J, L), pseudo-counts.
    """
    annotators = len(labels.annotators)
    if has_own_matrices(labels):
        alpha = weighted_counts(labels, posterior)
        alpha += prior
        return Confusion(alpha, prior)
    alpha = weighted_counts(labels.together(), posterior) / annotators + prior
    return Confusion(repeated(alpha, annotators), prior)


def convergence_notices(trace: LabelTrace) -> list[str]:
    """Return a notice if an iteration did not converge."""
    if trace.converged:
        return []
    return [
        f"Did not converge in {counted(len(trace.change), 'iteration', 'iterations')}: a task's probabilities"
        f" still changed by {trace.change[-1]:.2g}."
    ]


def _missing_notices(labels: Labels, voteless: int, silent: int) -> list[str]:
    """Return notices on missing data: `voteless` tasks have no votes, `silent` tasks also no known class."""
    if not len(labels):
        return ["There are no votes: results show only known truths and the prior."]
    sentences = []
    if voteless:
        rest = "" if silent == voteless else f", {voteless - silent:,} of them with a known class"
        sentences.append(
            f"{counted(voteless, 'task has', 'tasks have')} no votes{rest};"
            " without either, a task gets the classes' shares as probabilities."
        )
    present = labels.votes_of_annotators() > 0
    mute = len(present) - int(present.sum()) - len(labels.aliases)
    if mute:
        sentences.append(f"{counted(mute, 'annotator has', 'annotators have')} no votes that count.")
    if present.sum() == 1:
        sentences.append("Only one annotator voted: the accuracy of the votes cannot be estimated.")
    assert labels.meaning is not None
    meant = labels.meaning[labels.votes_of_outputs() > 0]
    if labels.known is not None:
        meant = np.concatenate([meant, labels.known])
    unnamed = [name for j, name in enumerate(labels.classes) if j not in meant]
    if unnamed and len(labels.classes) > 1:
        sentences.append(
            f"No vote represents {counted(len(unnamed), 'class', 'classes')}: {listed(unnamed, 5)}."
        )
    return sentences


def without_unused(labels: Labels, used: NDArray[np.bool_]) -> Labels:
    """Remove the classes that are not used, (J,), and the outputs that represent them.

    The number of classes is part of the priors of annotators and tasks: a class without votes would change
    the probabilities of the others.
    """
    outputs = _used_outputs(labels, used)
    output = np.cumsum(outputs) - 1
    classes, names, meaning = _names(labels, used)
    known = labels.known
    if known is not None:
        known = np.where(known > OPEN, (np.cumsum(used) - 1)[np.maximum(known, 0)], known)
    return replace(
        labels,
        label=output[labels.label].astype(labels.label.dtype),
        outputs=names,
        classes=classes,
        meaning=np.array(meaning, dtype=np.int16),
        known=known,
        sets=None if labels.sets is None else labels.sets[:, used],
    )


def with_unused(labels: Labels, used: NDArray[np.bool_], fusion: LabelFusion) -> LabelFusion:
    """Add the classes that are not used to a result without them.

    Together they have the probability that the next vote is for a new class, 1 / (V + 1) after V votes.
    """
    new = 1 / (len(labels) + 1)
    posterior = np.full((len(fusion.posterior), len(used)), new / np.count_nonzero(~used))
    posterior[:, used] = fusion.posterior * (1 - new)
    shares = np.full(len(used), new / np.count_nonzero(~used))
    shares[used] = fusion.shares * (1 - new)
    prior = default_prior(labels) * fusion.confusion.prior.min()
    prior[used] *= new
    prior[np.ix_(used, _used_outputs(labels, used))] = fusion.confusion.prior
    whole = make_fusion(
        labels, fusion.algorithm, posterior, count_confusion(labels, posterior, prior), fusion.trace,
        shares=shares, weight=fusion.weight,
    )  # fmt: skip
    more = [notice for notice in whole.notices if notice not in fusion.notices]
    return replace(whole, notices=(*fusion.notices, *more), power=fusion.power)


def matrices_in_use(
    labels: Labels, matrices: FloatArray
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...], list[int]]:
    """Return confusion matrices, (..., J, L), of the used classes, with the names and meanings of both."""
    used = labels.used_classes()
    kept = matrices[..., used, :][..., _used_outputs(labels, used)]
    return kept / kept.sum(axis=-1, keepdims=True), *_names(labels, used)


def _used_outputs(labels: Labels, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.append(used, True)[labels.meaning]  # the last for outputs that represent none


def _names(labels: Labels, used: NDArray[np.bool_]) -> tuple[tuple[str, ...], tuple[str, ...], list[int]]:
    """Return the used classes, their outputs, and the class that each output represents."""
    assert labels.meaning is not None
    outputs = np.flatnonzero(_used_outputs(labels, used))
    number = np.append(np.cumsum(used) - 1, OPEN)
    return (
        tuple(labels.classes[at] for at in np.flatnonzero(used).tolist()),
        tuple(labels.outputs[at] for at in outputs.tolist()),
        number[labels.meaning[outputs]].tolist(),
    )
