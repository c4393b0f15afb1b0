"""Labels for the next program: tables of our own and in the layouts of crowd-kit, each whole or not at all.

Names that a spreadsheet would run get an apostrophe, in every table the same; see `export.harmless`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import ClassArray, Confusion, Drift, FloatArray, Labels
from raterscope.algorithms.labels.rates import Rates, credible
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.export import harmless, replacing, write_table

__all__ = [
    "ANNOTATORS",
    "CONFUSION",
    "DECIDED",
    "DecidedLabel",
    "write_annotators",
    "write_confusion",
    "write_crowdkit_confusion",
    "write_crowdkit_probabilities",
    "write_crowdkit_truth",
    "write_crowdkit_votes",
    "write_decided",
    "write_labels",
    "write_votes",
]

ANNOTATORS = (
    "annotator", "votes", "accuracy", "accuracy_low", "accuracy_high", "community", "change_p", "copies",
    "excluded_votes",
)  # fmt: skip
CONFUSION = ("annotator", "step", "true", "given", "probability", "low", "high")
DECIDED = ("task", "label", "who", "when", "reason")

_ROWS = 1 << 14
"""As many are written at a time: some 50 ms of work."""

Columns = Sequence[Sequence[object]]


@dataclass(frozen=True)
class DecidedLabel:
    """What somebody decided of a task.

    Attributes
    ----------
    task : str
    label : str
        Empty for a task that was found to have none.
    who : str
    when : datetime, optional
    reason : str
    """

    task: str
    label: str
    who: str = ""
    when: datetime | None = None
    reason: str = ""


def write_labels(
    path: Path,
    tasks: Sequence[str],
    classes: Sequence[str],
    posterior: FloatArray,
    label: ClassArray,
    entropy: FloatArray,
    votes: NDArray[np.integer],
    watch: Watch = silent,
) -> Path:
    """Write a row a task: task, label, the probability of each class, entropy, votes.

    Parameters
    ----------
    path : Path
    tasks, classes : sequence of N and J names
    posterior : (N, J) float64
    label : (N,) int16
        Index into `classes`; below 0 for none.
    entropy : (N,) float64
    votes : (N,) integer
    watch : Watch

    Raises
    ------
    InputError
        When it cannot be written.
    """
    fixed = ("task", "label", "entropy", "votes")
    header = ("task", "label", *_class_columns(classes, fixed), "entropy", "votes")
    chosen = [*map(harmless, classes), ""]

    def block(rows: slice) -> Columns:
        index = np.where(label[rows] < 0, len(classes), label[rows])
        shares = [_figures(posterior[rows, j], 12) for j in range(len(classes))]
        doubt = _figures(entropy[rows], 6)
        return [_names(tasks[rows]), _of(chosen, index), *shares, doubt, votes[rows].tolist()]

    return _write(path, header, _blocks(len(tasks), block, watch))


def write_annotators(
    path: Path,
    annotators: Sequence[str],
    votes: NDArray[np.integer],
    accuracy: tuple[FloatArray, FloatArray, FloatArray],
    community: Sequence[str],
    change: FloatArray,
    copies: Sequence[str],
    excluded: NDArray[np.integer],
) -> Path:
    """Write a row an annotator: votes, accuracy with its 95 % interval, groups, tests.

    Parameters
    ----------
    path : Path
    annotators : sequence of K names
    votes : (K,) integer
        Votes that count.
    accuracy : tuple of three (K,) float64
        With the ends of its interval; empty where they are not finite.
    community, copies : sequence of K numbers
        The annotator's community, and the group that may copy from each other; empty for none.
    change : (K,) float64
        p-value of the test for a change over time; empty where it is not finite.
    excluded : (K,) integer
        Votes of an excluded annotator, which do not count.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    figures = [_figures(values, 6) for values in (*accuracy, change)]
    columns = (annotators, votes.tolist(), *figures[:3], community, figures[3], copies, excluded.tolist())
    return write_table(path, ANNOTATORS, zip(*columns, strict=True))


def write_confusion(
    path: Path,
    annotators: Sequence[str],
    outputs: Sequence[str],
    classes: Sequence[str],
    rates: Rates,
    votes: NDArray[np.integer],
    *,
    drift: Drift | None = None,
    steps: int | None = 1,
    watch: Watch = silent,
) -> Path:
    """Write every entry of the confusion matrices with its 95 % interval, a row each.

    Parameters
    ----------
    path : Path
    annotators, outputs, classes : sequence of K, L and J names
    rates : Rates
    votes : (K,) integer
        The step that is told where nothing moves: the number of the annotator's votes.
    drift : Drift, optional
        Where it is given, the matrices are those after some of the annotator's votes, counted from 1; who has
        no votes keeps the row of `rates`, at step 0, as does everybody's last vote.
    steps : int, optional
        At most so many steps an annotator, evenly spaced, the first and the last one among them; 1 is the
        last one alone, None all.
    watch : Watch

    Raises
    ------
    InputError
        When it cannot be written.
    """
    who, step, at = _chosen_steps(votes, drift, steps)
    people, true, given = [list(map(harmless, names)) for names in (annotators, classes, outputs)]
    entries = len(classes) * len(outputs)
    truths = np.repeat(np.arange(len(classes)), len(outputs))
    gifts = np.tile(np.arange(len(outputs)), len(classes))

    def block(rows: slice) -> Columns:
        these = rates.chosen(who[rows])
        values = [these.mean.copy(), *these.interval()]
        if drift is not None:
            before = (at[rows] >= 0) & (at[rows] < drift.start[who[rows] + 1] - 1)
            then = Confusion(drift.alpha[at[rows][before]].astype(np.float64), np.ones(entries))
            for value, then_value in zip(values, (then.mean(), *credible(then)), strict=True):
                value[before] = then_value
        count = len(these.votes)
        return [
            _of(people, np.repeat(who[rows], entries)), np.repeat(step[rows], entries).tolist(),
            _of(true, np.tile(truths, count)), _of(given, np.tile(gifts, count)),
            *(_figures(value.ravel(), 6) for value in values),
        ]  # fmt: skip

    # An interval takes ten times as long as a row.
    size = max(1, _ROWS // (10 * entries))
    return _write(path, CONFUSION, _blocks(len(who), block, watch, size))


def write_votes(path: Path, labels: Labels, watch: Watch = silent) -> Path:
    """Write the votes in the order in which they came: task, annotator, label, and time where there is one.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    columns = (
        ("task", "annotator", "label") if labels.time is None else ("task", "annotator", "label", "time")
    )
    return _write_votes(path, columns, labels, watch)


def write_crowdkit_votes(path: Path, labels: Labels, watch: Watch = silent) -> Path:
    """Write the votes as crowd-kit takes them: task, worker, label.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    return _write_votes(path, ("task", "worker", "label"), labels, watch)


def write_crowdkit_truth(
    path: Path, tasks: Sequence[str], classes: Sequence[str], label: ClassArray, watch: Watch = silent
) -> Path:
    """Write the classes of tasks as crowd-kit takes and gives them: task, label.

    Parameters
    ----------
    path : Path
    tasks, classes : sequence of N and J names
    label : (N,) int16
        Index into `classes`; tasks below 0 are left out.
    watch : Watch

    Raises
    ------
    InputError
        When it cannot be written.
    """
    known = np.flatnonzero(np.asarray(label) >= 0)
    names = list(map(harmless, classes))

    def block(rows: slice) -> Columns:
        here = known[rows]
        return [_names(tasks[task] for task in here.tolist()), _of(names, label[here])]

    return _write(path, ("task", "label"), _blocks(len(known), block, watch))


def write_crowdkit_probabilities(
    path: Path, tasks: Sequence[str], classes: Sequence[str], posterior: FloatArray, watch: Watch = silent
) -> Path:
    """Write the probabilities as crowd-kit's `fit_predict_proba` gives them: task, then a column a class.

    Raises
    ------
    InputError
        When it cannot be written.
    """

    def block(rows: slice) -> Columns:
        return [_names(tasks[rows]), *(_figures(posterior[rows, j], 12) for j in range(len(classes)))]

    header = ("task", *_class_columns(classes, ("task",)))
    return _write(path, header, _blocks(len(tasks), block, watch))


def write_crowdkit_confusion(
    path: Path,
    annotators: Sequence[str],
    outputs: Sequence[str],
    classes: Sequence[str],
    mean: FloatArray,
    watch: Watch = silent,
) -> Path:
    """Write confusion matrices as crowd-kit's `errors_`: worker, label as given, then a column a true class.

    Parameters
    ----------
    path : Path
    annotators, outputs, classes : sequence of K, L and J names
    mean : (K, J, L) float64
    watch : Watch

    Raises
    ------
    InputError
        When it cannot be written.
    """
    given = list(map(harmless, outputs))

    def block(rows: slice) -> Columns:
        people = _names(annotators[rows])
        names = [name for name in people for _ in given]
        shares = [_figures(mean[rows, j].ravel(), 12) for j in range(len(classes))]
        return [names, given * len(people), *shares]

    header = ("worker", "label", *_class_columns(classes, ("worker", "label")))
    size = max(1, _ROWS // len(outputs))
    return _write(path, header, _blocks(len(annotators), block, watch, size))


def write_decided(path: Path, decided: Iterable[DecidedLabel]) -> Path:
    """Write what was decided of tasks, and by whom: task, label, who, when, reason.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    rows = (
        (one.task, one.label, one.who, one.when and one.when.isoformat(timespec="seconds"), one.reason)
        for one in decided
    )
    return write_table(path, DECIDED, rows)


def _write_votes(path: Path, header: Sequence[str], labels: Labels, watch: Watch) -> Path:
    tasks, people, outputs = [
        np.array([harmless(name) for name in names], dtype=object)
        for names in (labels.tasks, labels.annotators, labels.outputs)
    ]

    def block(rows: slice) -> Columns:
        columns = [tasks[labels.task[rows]], people[labels.annotator[rows]], outputs[labels.label[rows]]]
        if len(header) > len(columns):
            assert labels.time is not None
            return [*(column.tolist() for column in columns), _figures(labels.time[rows], 15)]
        return [column.tolist() for column in columns]

    return _write(path, header, _blocks(len(labels), block, watch))


def _chosen_steps(
    votes: NDArray[np.integer], drift: Drift | None, steps: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Give for every matrix to write the annotator, the step told, and where it is in the drift, or -1."""
    if drift is None:
        nowhere = np.full(len(votes), -1, dtype=np.int64)
        return np.arange(len(votes)), np.asarray(votes, dtype=np.int64), nowhere
    count = np.diff(drift.start)
    many = np.maximum(count if steps is None else np.minimum(count, steps), 1)
    who = np.repeat(np.arange(len(many)), many)
    place = np.arange(len(who)) - np.repeat(np.cumsum(many) - many, many)
    gaps = many[who] - 1
    # Rounded half up, so that no step comes twice.
    own = (2 * place * (count[who] - 1) + gaps) // np.maximum(2 * gaps, 1)
    own = np.where(gaps > 0, own, count[who] - 1)
    return who, own + 1, np.where(own < 0, -1, drift.start[who] + own)


def _blocks(
    rows: int, block: Callable[[slice], Columns], watch: Watch, size: int = _ROWS
) -> Iterator[Columns]:
    for low in range(0, rows, size):
        watch(low / rows, "writing a table")
        yield block(slice(low, low + size))


def _write(path: Path, header: Sequence[str], blocks: Iterable[Columns]) -> Path:
    """Write columns, a block after the other; their cells are made harmless already, the header is not."""
    with replacing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_names(header))
        for columns in blocks:
            writer.writerows(zip(*columns, strict=True))
    return path


def _class_columns(classes: Sequence[str], others: Sequence[str]) -> list[str]:
    """Name the classes' columns after them, or "label (class)" where a column has that name already."""
    return [f"{name} (class)" if name in others else name for name in classes]


def _names(names: Iterable[str]) -> list[str]:
    return list(map(harmless, names))


def _of(names: Sequence[str], index: NDArray[np.integer]) -> list[object]:
    return list(np.array(names, dtype=object)[index])


def _figures(values: NDArray[np.floating], digits: int) -> list[str]:
    """Write numbers with so many significant digits; those that are not finite are empty."""
    form = f"%.{digits}g"
    if np.isfinite(values).all():
        return [form % value for value in values.tolist()]
    return [form % value if math.isfinite(value) else "" for value in values.tolist()]
