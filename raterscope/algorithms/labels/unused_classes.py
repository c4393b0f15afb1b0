"""Fusion without the classes that nobody uses.

The number of classes is part of the priors of annotators and tasks: a class without votes would change the
probabilities of the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, FloatArray, LabelFusion, Labels, default_prior
from raterscope.algorithms.labels.result import count_confusion, make_fusion


def without_unused(labels: Labels, used: NDArray[np.bool_]) -> Labels:
    """Remove the classes that are not used, (J,), and the outputs that represent them."""
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
