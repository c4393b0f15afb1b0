"""Export of labels: tables of this program and in the layouts of crowd-kit, complete or not at all.

Names that a spreadsheet would run as a formula get an apostrophe in every table; see
`output_files.escape_formula`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.labels.data import ClassArray, Confusion, Drift, FloatArray, Labels
from raterscope.algorithms.labels.ordinal import grade_summary
from raterscope.algorithms.labels.rates import Rates, credible
from raterscope.algorithms.progress import THREADS, Watch, silent
from raterscope.app.formats.output_files import open_output, quoted, write_table

ANNOTATORS = (
    "annotator", "votes", "accuracy", "accuracy_low", "accuracy_high", "community", "change_p", "copies",
    "excluded_votes",
)  # fmt: skip
CONFUSION = ("annotator", "step", "true", "given", "probability", "low", "high")
DECIDED = ("task", "label", "who", "when", "reason")

_ROWS = 1 << 14
"""Number of rows of one block, about 50 ms of work."""

_NUMBERS = 1 << 17
"""Number of values in one block of labels.csv."""


_INTERPOLATED_FROM = 200_000
"""Minimum number of values for interpolating the ends of intervals."""

_COMPILED_FROM = 1_000_000
"""Minimum number of values for compiled code; for fewer, loading it takes longer."""

_BYTES = 21
"""Maximum length of a number of twelve digits with the comma before it, bytes."""

_POWERS = np.array([10.0**power for power in range(23)])
"""Powers of ten that are exact in double precision."""


@dataclass(frozen=True)
class DecidedLabel:
    """The expert's decision on a task."""

    task: str
    label: str  # empty for a task without a label
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
    *,
    ordered: bool = False,
) -> Path:
    """Write one row per task: task, label, the probability of each class, entropy, votes.

    With ordered classes, median and 95 % interval follow the label; see `grade_summary`. With classes that
    are paths, the most probable parent follows, with its probability (the sum over its children).

    Raises `InputError` if it cannot be written.

    `tasks`, `classes`: N and J names.
    `posterior`: (N, J).
    `label`: (N,), index into `classes`; below 0 for none.
    `entropy`: (N,).
    `votes`: (N,) integer.
    `ordered`: whether the classes are grades.
    """
    header = label_columns(classes, ordered=ordered)
    chosen = _texts([*classes, ""])

    tree = class_tree(tuple(classes))
    parents = _texts(() if tree is None else tree.parents)
    digits = (12,) * (len(classes) + (tree is not None)) + (6, 12)
    rows_at_once = max(1, _NUMBERS // len(digits))
    many = len(tasks) * len(digits) >= _COMPILED_FROM

    def block(rows: slice) -> bytes | memoryview:
        index = np.where(label[rows] < 0, len(classes), label[rows])
        names = _texts(tasks[rows])
        heads = [(names, np.arange(len(names))), (chosen, index)]
        if ordered:
            heads += [(chosen, grade) for grade in grade_summary(posterior[rows])]
        values = [*posterior[rows].T, entropy[rows], votes[rows]]
        if tree is not None:
            sums = tree.sums(posterior[rows])
            heads.append((parents, sums.argmax(axis=1)))
            values = [sums.max(axis=1), *values]
        return _rows(heads, values, digits, many=many)

    return _write(path, header, _blocks(len(tasks), block, watch, rows_at_once))


def label_columns(classes: Sequence[str], *, ordered: bool = False) -> tuple[str, ...]:
    """Name the columns of labels.csv."""
    added: tuple[str, ...] = ("median", "low", "high") if ordered else ()
    added += ("parent", "parent_probability") if class_tree(tuple(classes)) is not None else ()
    fixed = ("task", "label", *added, "entropy", "votes")
    return ("task", "label", *added, *_class_columns(classes, fixed), "entropy", "votes")


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
    """Write one row per annotator: votes, accuracy with its 95 % interval, groups, tests.

    Raises `InputError` if it cannot be written.

    `annotators`: (K,).
    `votes`: (K,) integer, votes that count.
    `accuracy`: three of (K,), the accuracy and the ends of its interval; empty if not finite.
    `community`, `copies`: each annotator's community, and group of annotators who may copy from each other;
        empty for none.
    `change`: (K,), p-value of the test for a change over time; empty if not finite. `excluded`: (K,) integer,
    votes of excluded annotators, which do not count.
    """
    columns = [
        _texts(annotators), _figures(votes, 12), *(_figures(values, 6) for values in accuracy),
        _texts(community), _figures(change, 6), _texts(copies), _figures(excluded, 12),
    ]  # fmt: skip
    return _write(path, ANNOTATORS, [_lines(columns)])


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
    """Write one row per entry of the confusion matrices, with its 95 % interval.

    Raises `InputError` if it cannot be written.

    `annotators`, `outputs`, `classes`: K, L and J names.
    `votes`: (K,) integer, number of the annotator's votes; the step of a matrix that does not change.
    `drift`: with it, the matrices are those after some of the annotator's votes, counted from 1. The last
    vote of an annotator, and annotators without votes (step 0), have the matrix of `rates`.
    `steps`: largest number of steps per annotator, evenly spaced, including the first and the last; 1 means
        only the last one, None all.
    """
    annotator, step, at = _chosen_steps(votes, drift, steps)
    names, true, given = (_texts(texts) for texts in (annotators, classes, outputs))
    entries = len(classes) * len(outputs)
    row, column = np.divmod(np.arange(entries), len(outputs))
    cells = _joined([true.take(row), given.take(column)])
    interpolated = 3 * entries * len(annotator) >= _INTERPOLATED_FROM
    many = 3 * entries * len(annotator) >= _COMPILED_FROM

    def block(rows: slice) -> bytes | memoryview:
        selected = rates.chosen(annotator[rows])
        values = [selected.mean, *selected.interval(interpolated=interpolated)]
        if drift is not None:
            values = [value.copy() for value in values]  # annotators may share their rows
            is_earlier = (at[rows] >= 0) & (at[rows] < drift.start[annotator[rows] + 1] - 1)
            earlier = Confusion(drift.alpha[at[rows][is_earlier]].astype(np.float64), np.ones(entries))
            for value, earlier_value in zip(values, (earlier.mean(), *credible(earlier)), strict=True):
                value[is_earlier] = earlier_value
        matrix, entry = np.divmod(np.arange(values[0].size), entries)
        heads = _joined([names.take(annotator[rows]), _figures(step[rows], 12)])
        figures = [value.ravel() for value in values]
        return _rows(((heads, matrix), (cells, entry)), figures, (6, 6, 6), many=many)

    # An interval that is not interpolated takes ten times as long as a row.
    size = max(1, _ROWS // (entries if interpolated else 10 * entries))
    return _write(path, CONFUSION, _blocks(len(annotator), block, watch, size))


def write_votes(path: Path, labels: Labels, watch: Watch = silent) -> Path:
    """Write the votes in their order: task, annotator, label, and time if there is one.

    Raises `InputError` if it cannot be written.
    """
    columns = (
        ("task", "annotator", "label") if labels.time is None else ("task", "annotator", "label", "time")
    )
    return _write_votes(path, columns, labels, watch)


def write_crowdkit_votes(path: Path, labels: Labels, watch: Watch = silent) -> Path:
    """Write the votes in crowd-kit's layout: task, worker, label.

    Raises `InputError` if it cannot be written.
    """
    return _write_votes(path, ("task", "worker", "label"), labels, watch)


def write_crowdkit_truth(
    path: Path, tasks: Sequence[str], classes: Sequence[str], label: ClassArray, watch: Watch = silent
) -> Path:
    """Write the classes of tasks in crowd-kit's layout: task, label.

    Raises `InputError` if it cannot be written.

    `tasks`, `classes`: N and J names. `label`: (N,), index into `classes`; tasks below 0 are skipped.
    """
    known = np.flatnonzero(np.asarray(label) >= 0)
    names = _texts(classes)

    def block(rows: slice) -> bytes:
        selected = known[rows]
        return _lines([_texts(tasks[task] for task in selected.tolist()), names.take(label[selected])])

    return _write(path, ("task", "label"), _blocks(len(known), block, watch))


def write_crowdkit_probabilities(
    path: Path, tasks: Sequence[str], classes: Sequence[str], posterior: FloatArray, watch: Watch = silent
) -> Path:
    """Write the probabilities in the layout of crowd-kit's `fit_predict_proba`: task, one column per class.

    Raises `InputError` if it cannot be written.
    """

    def block(rows: slice) -> bytes:
        return _lines([_texts(tasks[rows]), *(_figures(values, 12) for values in posterior[rows].T)])

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
    """Write confusion matrices in the layout of crowd-kit's `errors_`: worker, label, a column per class.

    Raises `InputError` if it cannot be written.

    `annotators`, `outputs`, `classes`: K, L and J names. `mean`: (K, J, L).
    """
    output_names = _texts(outputs)

    def block(rows: slice) -> bytes:
        names = _texts(annotators[rows])
        annotator, output = np.divmod(np.arange(len(names) * len(outputs)), len(outputs))
        shares = mean[rows].transpose(1, 0, 2).reshape(len(classes), -1)
        figures = [_figures(values, 12) for values in shares]
        return _lines([names.take(annotator), output_names.take(output), *figures])

    header = ("worker", "label", *_class_columns(classes, ("worker", "label")))
    size = max(1, _ROWS // len(outputs))
    return _write(path, header, _blocks(len(annotators), block, watch, size))


def write_decisions(path: Path, decided: Iterable[DecidedLabel]) -> Path:
    """Write the expert's decisions on tasks: task, label, who, when, reason.

    Raises `InputError` if it cannot be written.
    """
    rows = (
        (
            decision.task,
            decision.label,
            decision.who,
            decision.when and decision.when.isoformat(timespec="seconds"),
            decision.reason,
        )
        for decision in decided
    )
    return write_table(path, DECIDED, rows)


def _write_votes(path: Path, header: Sequence[str], labels: Labels, watch: Watch) -> Path:
    votes = (
        (_texts(labels.tasks), labels.task),
        (_texts(labels.annotators), labels.annotator),
        (_texts(labels.outputs), labels.label),
    )

    def block(rows: slice) -> bytes:
        columns = [names.take(index[rows]) for names, index in votes]
        if "time" in header:
            assert labels.time is not None
            columns.append(_figures(labels.time[rows], 15))
        return _lines(columns)

    return _write(path, header, _blocks(len(labels), block, watch))


def _chosen_steps(
    votes: NDArray[np.integer], drift: Drift | None, steps: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the annotator, the step, and the index in the drift (or -1) of every matrix."""
    if drift is None:
        no_index = np.full(len(votes), -1, dtype=np.int64)
        return np.arange(len(votes)), np.asarray(votes, dtype=np.int64), no_index
    count = np.diff(drift.start)
    number = np.maximum(count if steps is None else np.minimum(count, steps), 1)
    annotator = np.repeat(np.arange(len(number)), number)
    rank = np.arange(len(annotator)) - np.repeat(np.cumsum(number) - number, number)
    gaps = number[annotator] - 1
    # Rounded half up, so that no step occurs twice.
    step = (2 * rank * (count[annotator] - 1) + gaps) // np.maximum(2 * gaps, 1)
    step = np.where(gaps > 0, step, count[annotator] - 1)
    return annotator, step + 1, np.where(step < 0, -1, drift.start[annotator] + step)


def _blocks(
    rows: int, block: Callable[[slice], bytes | memoryview], watch: Watch, size: int = _ROWS
) -> Iterator[bytes | memoryview]:
    """Format the blocks of a table in other threads, a few in advance."""
    with ThreadPoolExecutor(THREADS) as pool:
        pending: deque[Future[bytes | memoryview]] = deque()
        for low in range(0, rows, size):
            watch(low / rows, "writing a table")
            pending.append(pool.submit(block, slice(low, low + size)))
            if len(pending) > THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _write(path: Path, header: Sequence[str], blocks: Iterable[bytes | memoryview]) -> Path:
    """Write formatted lines, block after block."""
    with open_output(path) as file:
        file.write((",".join(quoted(header)) + "\n").encode())
        for lines in blocks:
            file.write(lines)
    return path


def _class_columns(classes: Sequence[str], others: Sequence[str]) -> list[str]:
    """Name the columns of classes; "label (class)" if another column has that name."""
    return [f"{name} (class)" if name in others else name for name in classes]


def _rows(
    heads: Sequence[tuple[Any, NDArray[np.integer]]],
    values: Sequence[NDArray[Any]],
    digits: Sequence[int],
    *,
    many: bool,
) -> bytes | memoryview:
    """Format rows of texts and some numbers.

    `heads`: pairs of an Arrow column of texts and the text of each row.
    `values`: (N,) each.
    `digits`: significant digits of each column.
    `many`: whether the table is large enough for compiled code.
    """
    texts = [names.take(index) for names, index in heads]
    if many:
        from raterscope.app.formats._kernels import write_rows

        _, ends, joined = _joined(texts).buffers()
        head_ends = np.frombuffer(ends, dtype=np.int32)[: len(values[0]) + 1]
        numbers = np.stack(values, axis=1, dtype=np.float64)
        lines = np.empty(int(head_ends[-1]) + numbers.size * _BYTES + len(numbers), dtype=np.uint8)
        head = np.frombuffer(joined, dtype=np.uint8)
        used = write_rows(head_ends, head, numbers, np.array(digits), _POWERS, lines)
        if used >= 0:
            return lines[:used].data
    return _lines([*texts, *(_figures(column, count) for column, count in zip(values, digits, strict=True))])


def _lines(columns: Sequence[Any]) -> bytes:
    """Join Arrow columns of texts to lines, with commas between the cells."""
    lines = _joined(columns, "\n")
    _, ends, text = lines.buffers()
    return bytes(text[: np.frombuffer(ends, dtype=np.int32)[len(lines)]])


def _joined(columns: Sequence[Any], end: str = "") -> Any:
    """Join Arrow columns of texts, with commas between the cells."""
    from pyarrow import compute

    cells = [part for column in columns for part in (column, ",")]
    return compute.binary_join_element_wise(*cells[:-1], end, "")


def _texts(names: Iterable[str]) -> Any:
    """Return names as cells: safe for spreadsheets, and quoted if necessary."""
    import pyarrow

    return pyarrow.array(quoted(list(names)), pyarrow.string())


def _figures(values: NDArray[Any], digits: int) -> Any:
    """Format numbers with `digits` significant digits; empty if not finite."""
    import pyarrow

    rounded = _round(values.astype(np.float64), digits)
    return pyarrow.array(rounded, mask=~np.isfinite(rounded)).cast(pyarrow.string()).fill_null("")


def _round(values: FloatArray, digits: int) -> FloatArray:
    """Round to `digits` significant digits, so that the shortest decimal text has no more digits."""
    used = np.isfinite(values) & (values != 0)
    exponent = np.floor(np.log10(np.abs(values), where=used, out=np.zeros(len(values)))).astype(np.int64)
    shift = digits - 1 - exponent
    exact = np.abs(shift) < len(_POWERS)
    power = _POWERS[np.where(exact, np.abs(shift), 0)]
    rounded = np.where(shift >= 0, np.rint(values * power) / power, np.rint(values / power) * power)
    for at in np.flatnonzero(used & ~exact).tolist():
        rounded[at] = float(f"{values[at]:.{digits}g}")
    return np.asarray(rounded)
