"""Export of labels: tables of this program and in the layouts of crowd-kit, each complete or not at all.

Names that a spreadsheet would run get an apostrophe in every table; see `output_files.escape_formula`.
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
from raterscope.app.formats.output_files import escape_formula, open_output, write_table

ANNOTATORS = (
    "annotator", "votes", "accuracy", "accuracy_low", "accuracy_high", "community", "change_p", "copies",
    "excluded_votes",
)  # fmt: skip
CONFUSION = ("annotator", "step", "true", "given", "probability", "low", "high")
DECIDED = ("task", "label", "who", "when", "reason")

_ROWS = 1 << 14
"""Rows of one block: about 50 ms of work."""

_THREADS = min(4, os.cpu_count() or 1)

_COMPILED_FROM = 200_000
"""From this count of numbers compiled code writes them; for fewer, loading it takes longer."""

_MOST_DIGITS = 12
_POWERS = 10.0 ** np.arange(23)

_QUOTED = re.compile('[,"\n]')
_SPECIAL = (",", '"', "\r", "\n'", "\n=", "\n+", "\n-", "\n@", "\n\t")
"""In names that follow a line feed each: what may need an apostrophe or quotes."""

Columns = Sequence[Sequence[str]]
_Texts = tuple[Sequence[str], NDArray[np.int64]]
"""Texts, and the text of each line."""


@dataclass(frozen=True)
class DecidedLabel:
    """The expert's decision on a task.

    Attributes
    ----------
    label : str
        Empty for a task without a label.
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
    """Write one row per task: task, label, the probability of each class, entropy, votes.

    Raises `InputError` if it cannot be written.

    Parameters
    ----------
    tasks, classes : sequence of N and J names
    posterior : (N, J) float64
    label : (N,) int16
        Index into `classes`; below 0 for none.
    entropy : (N,) float64
    votes : (N,) integer
    """
    fixed = ("task", "label", "entropy", "votes")
    header = ("task", "label", *_class_columns(classes, fixed), "entropy", "votes")
    chosen = [*_names(classes), ""]
    figures = _Figures(posterior.size)

    def block(rows: slice) -> bytes:
        index = np.where(label[rows] < 0, len(classes), label[rows])
        numbers = np.column_stack([posterior[rows], entropy[rows], votes[rows]])
        digits = [12] * len(classes) + [6, 12]
        return figures.lines((_names(tasks[rows]), np.arange(len(index))), (chosen, index), numbers, digits)

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
    """Write one row per annotator: votes, accuracy with its 95 % interval, groups, tests.

    Raises `InputError` if it cannot be written.

    Parameters
    ----------
    annotators : sequence of K names
    votes : (K,) integer
        Votes that count.
    accuracy : tuple of three (K,) float64
        With the ends of its interval; empty if not finite.
    community, copies : sequence of K numbers
        The annotator's community, and the group that may copy from each other; empty for none.
    change : (K,) float64
        p-value of the test for a change over time; empty if not finite.
    excluded : (K,) integer
        Votes of an excluded annotator, which do not count.
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
    """Write one row per entry of the confusion matrices, with its 95 % interval.

    Raises `InputError` if it cannot be written.

    Parameters
    ----------
    annotators, outputs, classes : sequence of K, L and J names
    votes : (K,) integer
        Number of the annotator's votes; the step of a matrix that does not change.
    drift : Drift, optional
        With it, the matrices are those after some of the annotator's votes, counted from 1. The last vote,
        and an annotator without votes (step 0), have the matrix of `rates`.
    steps : int, optional
        Largest number of steps per annotator, evenly spaced, including the first and the last; 1 means only
        the last one, None all.
    """
    annotator, step, at = _chosen_steps(votes, drift, steps)
    annotator_names, true, output_names = [_names(names) for names in (annotators, classes, outputs)]
    entries = len(classes) * len(outputs)
    matrix = [f"{truth},{label}" for truth in true for label in output_names]
    figures = _Figures(3 * entries * len(annotator))

    def block(rows: slice) -> bytes:
        selected = rates.chosen(annotator[rows])
        values = [selected.mean.copy(), *selected.interval(interpolated=figures.compiled)]
        if drift is not None:
            is_earlier = (at[rows] >= 0) & (at[rows] < drift.start[annotator[rows] + 1] - 1)
            earlier = Confusion(drift.alpha[at[rows][is_earlier]].astype(np.float64), np.ones(entries))
            for value, earlier_value in zip(values, (earlier.mean(), *credible(earlier)), strict=True):
                value[is_earlier] = earlier_value
        heads = [
            f"{annotator_names[k]},{count}"
            for k, count in zip(annotator[rows].tolist(), step[rows].tolist(), strict=True)
        ]
        numbers = np.stack([value.ravel() for value in values], axis=1)
        head, entry = np.divmod(np.arange(len(numbers)), entries)
        return figures.lines((heads, head), (matrix, entry), numbers, [6, 6, 6])

    # An interval takes ten times longer than a row.
    size = max(1, _ROWS // (10 * entries))
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

    Parameters
    ----------
    tasks, classes : sequence of N and J names
    label : (N,) int16
        Index into `classes`; tasks below 0 are skipped.
    """
    known = np.flatnonzero(np.asarray(label) >= 0)
    names = _names(classes)

    def block(rows: slice) -> bytes:
        selected = known[rows]
        return _join([_names(tasks[task] for task in selected.tolist()), _select(names, label[selected])])

    return _write(path, ("task", "label"), _blocks(len(known), block, watch))


def write_crowdkit_probabilities(
    path: Path, tasks: Sequence[str], classes: Sequence[str], posterior: FloatArray, watch: Watch = silent
) -> Path:
    """Write the probabilities in the layout of crowd-kit's `fit_predict_proba`: task, one column per class.

    Raises `InputError` if it cannot be written.
    """
    figures = _Figures(posterior.size)

    def block(rows: slice) -> bytes:
        return _join([_names(tasks[rows]), figures.rows(posterior[rows], 12)])

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

    Parameters
    ----------
    annotators, outputs, classes : sequence of K, L and J names
    mean : (K, J, L) float64
    """
    output_names = _names(outputs)
    figures = _Figures(mean.size)

    def block(rows: slice) -> bytes:
        annotator_names = _names(annotators[rows])
        names = [name for name in annotator_names for _ in output_names]
        shares = mean[rows].transpose(0, 2, 1).reshape(-1, len(classes))
        return _join([names, output_names * len(annotator_names), figures.rows(shares, 12)])

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
    tasks, annotator_names, outputs = [
        np.array(_names(names), dtype=object) for names in (labels.tasks, labels.annotators, labels.outputs)
    ]
    figures = _Figures(len(labels))

    def block(rows: slice) -> bytes:
        columns = [
            tasks[labels.task[rows]],
            annotator_names[labels.annotator[rows]],
            outputs[labels.label[rows]],
        ]
        if len(header) > len(columns):
            assert labels.time is not None
            return _join(
                [*(column.tolist() for column in columns), figures.rows(labels.time[rows, None], 15)]
            )
        return _join([column.tolist() for column in columns])

    return _write(path, header, _blocks(len(labels), block, watch))


def _chosen_steps(
    votes: NDArray[np.integer], drift: Drift | None, steps: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for every matrix its annotator, its step, and its index in the drift, or -1."""
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


def _blocks(rows: int, block: Callable[[slice], bytes], watch: Watch, size: int = _ROWS) -> Iterator[bytes]:
    """Format the blocks of a table, a few in advance, in other threads."""
    with ThreadPoolExecutor(_THREADS) as pool:
        pending: deque[Future[bytes]] = deque()
        for low in range(0, rows, size):
            watch(low / rows, "writing a table")
            pending.append(pool.submit(block, slice(low, low + size)))
            if len(pending) > _THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _write(path: Path, header: Sequence[str], blocks: Iterable[bytes]) -> Path:
    """Write formatted lines, block after block."""
    with open_output(path) as file:
        file.write((",".join(_names(header)) + "\n").encode())
        for lines in blocks:
            file.write(lines)
    return path


def _join(columns: Columns) -> bytes:
    """Join columns of formatted cells to lines."""
    return "".join(f"{line}\n" for line in map(",".join, zip(*columns, strict=True))).encode()


def _class_columns(classes: Sequence[str], others: Sequence[str]) -> list[str]:
    """Name the columns of classes; "label (class)" if a column has that name already."""
    return [f"{name} (class)" if name in others else name for name in classes]


def _names(names: Iterable[str]) -> list[str]:
    """Format names as cells: safe for spreadsheets, and quoted if necessary."""
    names = list(names)
    joined = "\n".join(["", *names])
    if joined.count("\n") == len(names) and not any(text in joined for text in _SPECIAL):
        return names
    return [_cell(name) if _QUOTED.search(name) else name for name in map(escape_formula, names)]


def _cell(text: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([text, ""])
    return line.getvalue().removesuffix(",\n")


def _select(names: Sequence[str], index: NDArray[np.integer]) -> list[str]:
    return [names[at] for at in index.tolist()]


def _encode(names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the characters of texts, one after the other, and the ends of the texts from 0 on."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


class _Figures:
    """Formatter of a table's numbers, with compiled code if there are many.

    Parameters
    ----------
    count : int
        Count of the numbers of the complete table.
    """

    def __init__(self, count: int) -> None:
        self.compiled = count >= _COMPILED_FROM

    def lines(self, first: _Texts, second: _Texts, values: FloatArray, digits: Sequence[int]) -> bytes:
        """Format lines of two texts and of numbers (M, C) with significant digits by column."""
        texts = first, second
        if not self.compiled or not values.size:
            columns = [_select(names, index) for names, index in texts]
            return _join([*columns, *(self.rows(values[:, [c]], digits[c]) for c in range(len(digits)))])
        from raterscope.app.formats._figure_kernels import join_lines

        first_text, first_ends = _encode(first[0])
        second_text, second_ends = _encode(second[0])
        cells, lengths = self._cells(values, digits)
        room = int(np.diff(first_ends)[first[1]].sum() + np.diff(second_ends)[second[1]].sum())
        text = np.empty(room + int(lengths.sum()) + len(lengths) + 2 * len(values), dtype=np.uint8)
        join_lines(
            first_text, first_ends, first[1], second_text, second_ends, second[1], cells, lengths,
            values.shape[1], text,
        )  # fmt: skip
        return text.tobytes()

    def rows(self, values: FloatArray, digits: int) -> list[str]:
        """Format rows of numbers (M, C), with commas and `digits` significant digits; empty if not finite."""
        if not self.compiled or digits > _MOST_DIGITS or not values.size:
            form = f"%.{digits}g"
            finite = np.isfinite(values)
            if finite.all():
                line = ",".join([form] * values.shape[1])
                return [line % tuple(row) for row in values.tolist()]
            rows = zip(values.tolist(), finite.tolist(), strict=True)
            return [
                ",".join(form % value if is_finite else "" for value, is_finite in zip(*row, strict=True))
                for row in rows
            ]
        from raterscope.app.formats._figure_kernels import join_cells

        cells, lengths = self._cells(values, [digits] * values.shape[1])
        text = np.empty(int(lengths.sum()) + len(lengths), dtype=np.uint8)
        end = join_cells(cells, lengths, values.shape[1], text)
        return text[: end - 1].tobytes().decode("ascii").split("\n")

    def _cells(
        self, values: FloatArray, digits: Sequence[int]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int16]]:
        """Format numbers as characters, and count those of each."""
        from raterscope.app.formats._figure_kernels import write_cells

        flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
        cells = np.empty((len(flat), max(digits) + 8), dtype=np.uint8)
        lengths = np.empty(len(flat), dtype=np.int16)
        write_cells(flat, np.array(digits, dtype=np.int64), _POWERS, cells, lengths)
        for index in np.flatnonzero(lengths < 0).tolist():
            text = (f"%.{digits[index % len(digits)]}g" % flat[index]).encode()
            cells[index, : len(text)] = list(text)
            lengths[index] = len(text)
        return cells, lengths
