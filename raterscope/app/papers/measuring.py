"""Run experiments: the figures of every run are kept in the folder, so that an interrupted page goes on."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from raterscope import __version__
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.formats.drafts import draft_for
from raterscope.app.papers.experiments import Experiment, Measures, Paper, Results

__all__ = ["CELLS", "MARK", "available", "check_folder", "measure", "measured"]

MARK = "papers.json"
"""A file by which a folder of this program's is known again."""
CELLS = "cells"
_EVERY = 2.0
"""Seconds of work that a crash may lose, besides the run that is being measured."""
_ODD = re.compile(r"[^A-Za-z0-9.]+")


def check_folder(folder: Path) -> None:
    """Make the folder of the page, or take up one that this program began.

    Raises
    ------
    InputError
        For a folder with other files in it: nothing of them is overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; expected a folder", file=folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError("is not empty; expected a new folder, or one of an earlier page", file=folder)
    try:
        (folder / CELLS).mkdir(parents=True, exist_ok=True)
        (folder / MARK).write_text(json.dumps({"raterscope": __version__}) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written to: {error.strerror}", file=folder) from error


def available(experiment: Experiment, data: Path | None) -> bool:
    """Tell whether the data that an experiment needs are there."""
    return not experiment.needs or (data is not None and (data / experiment.needs).exists())


def measure(
    papers: Sequence[Paper], folder: Path, watch: Watch, *, full: bool = False, data: Path | None = None
) -> None:
    """Measure what is still missing, run by run.

    Parameters
    ----------
    papers : sequence of Paper
    folder : Path
        As `check_folder` left it.
    watch : Watch
        Called before every run; what was measured is kept when it raises.
    full : bool
        As many runs as the papers took, or as there are; else the first few.
    data : Path, optional
        The folder of open data; without it, experiments that need it are left out.
    """
    work = [
        (experiment, cell)
        for paper in papers
        for experiment in paper.experiments
        if available(experiment, data)
        for cell in experiment.cells
    ]
    total = sum(_wanted(one, full) for one, _ in work)
    done = 0
    for experiment, cell in work:
        path = _file(folder, experiment, cell)
        runs, wanted = _read(path), _wanted(experiment, full)
        kept, fresh = time.monotonic(), False
        try:
            for run in range(len(runs), wanted):
                watch((done + run) / total, f"{experiment.title.partition(':')[0]}, {cell}, run {run + 1}")
                runs.append(dict(experiment.measure(cell, run, data or Path())))
                fresh = True
                if time.monotonic() - kept > _EVERY:
                    _write(path, runs)
                    kept, fresh = time.monotonic(), False
        finally:
            if fresh:
                _write(path, runs)
        done += wanted


def measured(experiment: Experiment, folder: Path) -> Results:
    """Read what has been measured of an experiment."""
    return {cell: _read(_file(folder, experiment, cell)) for cell in experiment.cells}


def _wanted(experiment: Experiment, full: bool) -> int:
    return experiment.runs if full else min(experiment.quick, experiment.runs)


def _file(folder: Path, experiment: Experiment, cell: str) -> Path:
    return folder / CELLS / f"{experiment.name}-{_ODD.sub('_', cell)}.json"


def _read(path: Path) -> list[Measures]:
    """Read the runs of a cell; those of another version of the program do not count, nor a damaged file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(record, dict) or record.get("raterscope") != __version__:
        return []
    runs = record.get("runs")
    if not isinstance(runs, list) or not all(isinstance(one, dict) for one in runs):
        return []
    return [{name: _number(value) for name, value in one.items()} for one in runs]


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def _write(path: Path, runs: Sequence[Mapping[str, float]]) -> None:
    record = {
        "raterscope": __version__,
        "runs": [
            {key: value if math.isfinite(value) else None for key, value in one.items()} for one in runs
        ],
    }
    draft = draft_for(path)
    draft.write_text(json.dumps(record), encoding="utf-8")
    draft.replace(path)
