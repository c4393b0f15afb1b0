"""Labels for the next program: tables of our own and in the layouts of crowd-kit, each whole or not at all.

Names that a spreadsheet would run get an apostrophe, in every table the same; see `export.harmless`.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import ClassArray, Confusion, Drift, FloatArray, Labels
from raterscope.algorithms.labels.rates import Rates, credible
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.output_files import escape_formula, open_text_output, write_table

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

_THREADS = min(4, os.cpu_count() or 1)

_COMPILED_FROM = 200_000
"""Numbers of a table from which compiled code writes them: loading it takes longer than writing fewer."""

_MOST_DIGITS = 12
_POWERS = 10.0 ** np.arange(23)

_QUOTED = re.compile('[,"\n]')

Columns = Sequence[Sequence[str]]


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
    chosen = [*_names(classes), ""]
    figures = _Figures(posterior.size)

    def block(rows: slice) -> Columns:
        index = np.where(label[rows] < 0, len(classes), label[rows])
        shares, doubt = figures.rows(posterior[rows], 12), figures.rows(entropy[rows, None], 6)
        return [_names(tasks[rows]), _of(chosen, index), shares, doubt, _integers(votes[rows])]

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
    figures = _Figures(len(annotators))
    mean, low, high, change_p = (figures.rows(values[:, None], 6) for values in (*accuracy, change))
    columns = (annotators, votes.tolist(), mean, low, high, community, change_p, copies, excluded.tolist())
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
    people, true, given = [_names(names) for names in (annotators, classes, outputs)]
    entries = len(classes) * len(outputs)
    matrix = [f"{truth},{label}" for truth in true for label in given]
    figures = _Figures(3 * entries * len(who))

    def block(rows: slice) -> Columns:
        these = rates.chosen(who[rows])
        values = [these.mean.copy(), *these.interval()]
        if drift is not None:
            before = (at[rows] >= 0) & (at[rows] < drift.start[who[rows] + 1] - 1)
            then = Confusion(drift.alpha[at[rows][before]].astype(np.float64), np.ones(entries))
            for value, then_value in zip(values, (then.mean(), *credible(then)), strict=True):
                value[before] = then_value
        heads = [
            f"{people[k]},{count}" for k, count in zip(who[rows].tolist(), step[rows].tolist(), strict=True)
        ]
        numbers = figures.rows(np.stack([value.ravel() for value in values], axis=1), 6)
        return [[head for head in heads for _ in matrix], matrix * len(heads), numbers]

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
    names = _names(classes)

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
    figures = _Figures(posterior.size)

    def block(rows: slice) -> Columns:
        return [_names(tasks[rows]), figures.rows(posterior[rows], 12)]

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
    given = _names(outputs)
    figures = _Figures(mean.size)

    def block(rows: slice) -> Columns:
        people = _names(annotators[rows])
        names = [name for name in people for _ in given]
        shares = mean[rows].transpose(0, 2, 1).reshape(-1, len(classes))
        return [names, given * len(people), figures.rows(shares, 12)]

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
        np.array(_names(names), dtype=object) for names in (labels.tasks, labels.annotators, labels.outputs)
    ]
    figures = _Figures(len(labels))

    def block(rows: slice) -> Columns:
        columns = [tasks[labels.task[rows]], people[labels.annotator[rows]], outputs[labels.label[rows]]]
        if len(header) > len(columns):
            assert labels.time is not None
            return [*(column.tolist() for column in columns), figures.rows(labels.time[rows, None], 15)]
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
    """Make the blocks of a table, a few in advance and in other threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[Columns]] = deque()
        for low in range(0, rows, size):
            watch(low / rows, "writing a table")
            waiting.append(pool.submit(block, slice(low, low + size)))
            if len(waiting) > _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _write(path: Path, header: Sequence[str], blocks: Iterable[Columns]) -> Path:
    """Write columns of cells that are ready to be written, a block after the other."""
    with open_text_output(path) as file:
        file.write(",".join(_names(header)) + "\n")
        for columns in blocks:
            file.writelines(f"{line}\n" for line in map(",".join, zip(*columns, strict=True)))
    return path


def _class_columns(classes: Sequence[str], others: Sequence[str]) -> list[str]:
    """Name the classes' columns after them, or "label (class)" where a column has that name already."""
    return [f"{name} (class)" if name in others else name for name in classes]


def _names(names: Iterable[str]) -> list[str]:
    """Return names as cells: harmless to spreadsheets, in quotation marks where they are needed."""
    return [_cell(name) if _QUOTED.search(name) else name for name in map(escape_formula, names)]


def _cell(text: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([text, ""])
    return line.getvalue().removesuffix(",\n")


def _of(names: Sequence[str], index: NDArray[np.integer]) -> list[str]:
    return [names[at] for at in index.tolist()]


def _integers(values: NDArray[np.integer]) -> list[str]:
    return list(map(str, values.tolist()))


class _Figures:
    """Writer of a table's numbers, by compiled code where there are many.

    Parameters
    ----------
    count : int
        Numbers of the whole table.
    """

    def __init__(self, count: int) -> None:
        self._compiled = count >= _COMPILED_FROM

    def rows(self, values: FloatArray, digits: int) -> list[str]:
        """Write rows of numbers (M, C) with so many significant digits; those that are not finite are empty.

        Returns
        -------
        list of M str
            With commas between the numbers.
        """
        form = f"%.{digits}g"
        if not self._compiled or digits > _MOST_DIGITS or not values.size:
            finite = np.isfinite(values)
            if finite.all():
                line = ",".join([form] * values.shape[1])
                return [line % tuple(row) for row in values.tolist()]
            rows = zip(values.tolist(), finite.tolist(), strict=True)
            return [
                ",".join(form % value if there else "" for value, there in zip(*row, strict=True))
                for row in rows
            ]
        from raterscope.app.formats._figure_kernels import join_cells, write_cells

        flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
        cells = np.empty((len(flat), digits + 8), dtype=np.uint8)
        lengths = np.empty(len(flat), dtype=np.int16)
        write_cells(flat, digits, _POWERS, cells, lengths)
        for index in np.flatnonzero(lengths < 0).tolist():
            text = (form % flat[index]).encode()
            cells[index, : len(text)] = list(text)
            lengths[index] = len(text)
        text = np.empty(cells.size + len(flat), dtype=np.uint8)
        end = join_cells(cells, lengths, values.shape[1], text)
        return text[: end - 1].tobytes().decode("ascii").split("\n")
