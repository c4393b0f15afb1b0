"""Experiments: cells measured in runs, results stored in a folder, and the open data sets that they read."""

from __future__ import annotations

import csv
import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterscope import __version__
from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.evaluation import Evaluation
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.pairs.data import Pairs
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, system_reason
from raterscope.app.formats.output_files import draft_for
from raterscope.app.formats.pairs import read_pairs

Measures = Mapping[str, float]
Measure = Callable[[str, int, Path], Measures]
"""Function that measures one run of a cell: ``measure(cell, run, data)`` with the folder of open data. The
same arguments give the same values. NaN means that a value cannot be measured in this run.
"""

Better = Literal["higher", "lower", "nearer", ""]

Results = Mapping[str, Sequence[Measures]]
"""Measures of all runs of each cell, from run 0."""


@dataclass(frozen=True)
class Row:
    """Row of a table of the page: a figure of the paper beside ours."""

    label: str
    cell: str
    printed: str  # the measure of the method as the paper prints it
    paper: float | None = None  # the paper's figure
    text: str = ""  # statement of the paper, where it gives no figure
    # the measure of this program's default; empty if only one method is measured
    default: str = ""
    # {"higher", "lower", "nearer", ""}: direction in which the default is better than the paper's method;
    # "nearer" to `aim`
    better: Better = "higher"
    aim: float = 0.0
    digits: int = 3  # decimals shown


@dataclass(frozen=True)
class Chart:
    """Curves of means over runs, with bands of a standard error."""

    title: str
    # across, up: names of the axes; the second runs from 0 to 1
    across: str
    up: str
    # tuple of (name, points): a point is a place across, a cell and a measure
    curves: tuple[tuple[str, tuple[tuple[float, str, str], ...]], ...]


@dataclass(frozen=True)
class Experiment:
    """Measurements that reproduce a table or a figure."""

    name: str  # short, of letters, digits and hyphens: files are named so
    title: str  # table or figure of the paper: "Table 1: ..."
    cells: tuple[str, ...]  # measured separately
    measure: Measure  # see `Measure`
    rows: tuple[Row, ...]
    runs: int  # of a cell, in full
    # number of runs of a cell in the quick form, the first of the same runs; 0 if only the full form measures
    # it
    quick: int
    method: str  # quantity that was measured, in a sentence or two
    command: str  # the command that produces one of the figures without the page
    remark: str = ""  # where ours differ, and why
    # number of realizations in the paper's figures; their scatter is assumed to be ours
    paper_runs: int | None = None
    instead: str = ""  # data used in place of unpublished data; empty for the paper's own set-up or data
    needs: str = ""  # a file or folder of the open data, below the data folder; empty for a simulation
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Paper:
    """Paper, and the experiments that reproduce it."""

    name: str  # as the command line has it
    title: str
    reference: str  # its key in the bibliography
    experiments: tuple[Experiment, ...]
    # results that depend on unpublished data, and the replacement that is measured
    unpublished: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Estimate:
    """Mean over runs, its standard error (NaN for a single run), and the standard deviation of the runs."""

    mean: float
    error: float
    deviation: float
    runs: int


def estimate(results: Results, cell: str, measure: str) -> Estimate | None:
    """Average a measure over the runs of a cell; None without measurements."""
    values = np.array([run.get(measure, math.nan) for run in results.get(cell, ())], dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Estimate(float(values.mean()), deviation / math.sqrt(len(values)), deviation, len(values))


def rates(name: str, score: Evaluation) -> dict[str, float]:
    """Return sensitivity (S) and precision (P) of detections as measures; no detections have precision 0."""
    return {f"{name} S": score.sensitivity, f"{name} P": float(np.nan_to_num(score.precision))}


def paired_difference(results: Results, cell: str, measure: str, reference: str) -> Estimate | None:
    """Average the difference of two measures of the same runs; None without measurements."""
    pairs = [
        {"d": run.get(measure, math.nan) - run.get(reference, math.nan)} for run in results.get(cell, ())
    ]
    return estimate({cell: pairs}, cell, "d")


MARK = "papers.json"
"""Name of the file that marks a folder as written by this program."""
CELLS = "cells"
_SAVE_SECONDS = 2.0
"""Maximum work that a crash may lose, in addition to the current run, seconds."""
_UNSAFE = re.compile(r"[^A-Za-z0-9.]+")


def check_folder(folder: Path) -> None:
    """Create the folder of the page, or continue an earlier folder.

    Raises `InputError` for a folder with other files, which are never overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; expected a folder", file=folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError("is not empty; expected a new folder, or one of an earlier page", file=folder)
    try:
        (folder / CELLS).mkdir(parents=True, exist_ok=True)
        (folder / MARK).write_text(json.dumps({"raterscope": __version__}) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written to: {system_reason(error)}", file=folder) from error


def has_data(experiment: Experiment, data: Path | None) -> bool:
    """Return whether the data that an experiment needs are there."""
    return not experiment.needs or (data is not None and (data / experiment.needs).exists())


def measure(
    papers: Sequence[Paper], folder: Path, watch: Watch, *, full: bool = False, data: Path | None = None
) -> None:
    """Measure the missing figures, run by run.

    `folder`: folder prepared by `check_folder`.
    `watch`: called before every run; if it raises, earlier measurements are kept.
    `full`: whether to make the number of runs of the papers, or all that are possible; otherwise only the
    first few. `data`: the folder of open data; without it, experiments that need it are omitted.
    """
    work = [
        (experiment, cell)
        for paper in papers
        for experiment in paper.experiments
        if has_data(experiment, data)
        for cell in experiment.cells
    ]
    total = sum(_run_count(experiment, full) for experiment, _ in work)
    completed = 0
    for experiment, cell in work:
        path = _file(folder, experiment, cell)
        runs, run_count = _read(path), _run_count(experiment, full)
        saved_at, unsaved = time.monotonic(), False
        try:
            for run in range(len(runs), run_count):
                title = experiment.title.partition(":")[0]
                watch((completed + run) / total, f"{title}, {cell}, run {run + 1}")
                runs.append(dict(experiment.measure(cell, run, data or Path())))
                unsaved = True
                if time.monotonic() - saved_at > _SAVE_SECONDS:
                    _write(path, runs)
                    saved_at, unsaved = time.monotonic(), False
        finally:
            if unsaved:
                _write(path, runs)
        completed += run_count


def read_results(experiment: Experiment, folder: Path) -> Results:
    """Read the stored results of an experiment."""
    return {cell: _read(_file(folder, experiment, cell)) for cell in experiment.cells}


def _run_count(experiment: Experiment, full: bool) -> int:
    return experiment.runs if full else min(experiment.quick, experiment.runs)


def _file(folder: Path, experiment: Experiment, cell: str) -> Path:
    return folder / CELLS / f"{experiment.name}-{_UNSAFE.sub('_', cell)}.json"


def _read(path: Path) -> list[Measures]:
    """Read the runs of a cell; runs of another version of the program, and damaged files, do not count."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(record, dict) or record.get("raterscope") != __version__:
        return []
    runs = record.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        return []
    return [
        {name: (float(value) if isinstance(value, (int, float)) else math.nan) for name, value in run.items()}
        for run in runs
    ]


def _write(path: Path, runs: Sequence[Mapping[str, float]]) -> None:
    record = {
        "raterscope": __version__,
        "runs": [
            {key: value if math.isfinite(value) else None for key, value in run.items()} for run in runs
        ],
    }
    draft = draft_for(path)
    draft.write_text(json.dumps(record), encoding="utf-8")
    draft.replace(path)


class ClickedImage(NamedTuple):
    """The clicks on an image, and the true points."""

    name: str
    clicks: Clicks
    truth: FloatArray


@lru_cache(maxsize=2)
def paid_crowd(data: Path) -> tuple[ClickedImage, ...]:
    """Read clicks/quantius: 24 microscope images that a paid crowd clicked on."""
    folder = data / "clicks" / "quantius"
    marks, truth = _by_image(folder / "clicks.csv"), _by_image(folder / "gt.csv")
    sizes = {row["image_id"]: row for row in _rows(folder / "images.csv")}
    result = []
    for name, rows in marks.items():
        size = sizes[name]
        annotators = sorted({row["annotator_id"] for row in rows})
        number = {name: index for index, name in enumerate(annotators)}
        idle = [f"marked nothing {n}" for n in range(int(size["n_jobs"]) - len(annotators))]
        clicks = Clicks(
            _column(rows, "x"), _column(rows, "y"), np.array([number[row["annotator_id"]] for row in rows]),
            (*annotators, *idle), (0.0, 0.0, float(size["width"]), float(size["height"])),
        )  # fmt: skip
        points = np.column_stack([_column(truth[name], "x"), _column(truth[name], "y")])
        result.append(ClickedImage(name, clicks, points))
    return tuple(result)


@lru_cache(maxsize=2)
def pairs_of(data: Path, name: str) -> Pairs:
    """Read the comparisons of pairs/NAME.csv."""
    (table,) = read_pairs(data / "pairs" / f"{name}.csv")
    return Pairs(
        table.annotator, table.left, table.right, table.choice, table.annotators, table.items, table.time
    )


@lru_cache(maxsize=4)
def read_labels_of(data: Path, name: str) -> tuple[Labels, NDArray[np.int16]]:
    """Read the labels of labels/NAME.csv, and the true class of each task or -1."""
    rows = _rows(data / "labels" / f"{name}.csv")
    true = {row["task"]: row["label"] for row in _rows(data / "labels" / f"{name}_truth.csv")}
    tasks, annotators = (tuple(dict.fromkeys(row[key] for row in rows)) for key in ("task", "worker"))
    outputs = tuple(sorted({*(row["label"] for row in rows), *true.values()}))
    task_index, annotator_index, output_index = (
        {name: index for index, name in enumerate(names)} for names in (tasks, annotators, outputs)
    )
    labels = Labels(
        task=np.array([task_index[row["task"]] for row in rows]),
        annotator=np.array([annotator_index[row["worker"]] for row in rows]),
        label=np.array([output_index[row["label"]] for row in rows]),
        tasks=tasks, annotators=annotators, outputs=outputs, classes=outputs,
        meaning=np.arange(len(outputs), dtype=np.int16),
    )  # fmt: skip
    return labels, np.array(
        [output_index[true[task]] if task in true else -1 for task in tasks], dtype=np.int16
    )


@lru_cache(maxsize=2)
def nodules(data: Path) -> tuple[NDArray[np.bool_], ...]:
    """Read masks/lidc/nodulebin: masks of four radiologists on 20 nodules (LIDC-IDRI), (4, Z, Y, X) each."""
    result = []
    for path in sorted((data / "masks" / "lidc" / "nodulebin").glob("*.npz")):
        with np.load(path) as file:
            result.append(file["masks"].astype(np.bool_))
    return tuple(result)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _by_image(path: Path) -> dict[str, list[dict[str, str]]]:
    result: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _rows(path):
        result[row["image_id"]].append(row)
    return result


def _column(rows: Sequence[dict[str, str]], key: str) -> FloatArray:
    return np.array([float(row[key]) for row in rows])
