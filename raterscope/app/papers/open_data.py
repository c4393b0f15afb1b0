"""Open data sets in a folder, laid out as their READMEs say; read once and kept while experiments run."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.pairs.data import Pairs
from raterscope.app.formats.pairs import read_pairs

__all__ = ["ClickedImage", "labelled", "nodules", "paid_crowd", "pairs_of"]


class ClickedImage(NamedTuple):
    """The clicks on an image, and the true places."""

    name: str
    clicks: Clicks
    truth: FloatArray


@lru_cache(maxsize=2)
def paid_crowd(data: Path) -> tuple[ClickedImage, ...]:
    """Read clicks/quantius: 24 microscope images that a paid crowd clicked on."""
    place = data / "clicks" / "quantius"
    marks, truth = _by(place / "clicks.csv", "image_id"), _by(place / "gt.csv", "image_id")
    sizes = {row["image_id"]: row for row in _rows(place / "images.csv")}
    found = []
    for name, rows in marks.items():
        size = sizes[name]
        who = sorted({row["annotator_id"] for row in rows})
        number = {one: at for at, one in enumerate(who)}
        idle = [f"marked nothing {n}" for n in range(int(size["n_jobs"]) - len(who))]
        clicks = Clicks(
            _column(rows, "x"), _column(rows, "y"), np.array([number[row["annotator_id"]] for row in rows]),
            (*who, *idle), (0.0, 0.0, float(size["width"]), float(size["height"])),
        )  # fmt: skip
        places = np.column_stack([_column(truth[name], "x"), _column(truth[name], "y")])
        found.append(ClickedImage(name, clicks, places))
    return tuple(found)


@lru_cache(maxsize=2)
def pairs_of(data: Path, name: str) -> Pairs:
    """Read the comparisons of pairs/NAME.csv."""
    (table,) = read_pairs(data / "pairs" / f"{name}.csv")
    return Pairs(
        table.annotator, table.left, table.right, table.choice, table.annotators, table.items, table.time
    )


@lru_cache(maxsize=4)
def labelled(data: Path, name: str) -> tuple[Labels, NDArray[np.int16]]:
    """Read the labels of labels/NAME.csv, and the true class of each task or -1."""
    rows = _rows(data / "labels" / f"{name}.csv")
    true = {row["task"]: row["label"] for row in _rows(data / "labels" / f"{name}_truth.csv")}
    tasks, annotators = (tuple(dict.fromkeys(row[key] for row in rows)) for key in ("task", "worker"))
    outputs = tuple(sorted({*(row["label"] for row in rows), *true.values()}))
    at = [{one: n for n, one in enumerate(names)} for names in (tasks, annotators, outputs)]
    labels = Labels(
        task=np.array([at[0][row["task"]] for row in rows]),
        annotator=np.array([at[1][row["worker"]] for row in rows]),
        label=np.array([at[2][row["label"]] for row in rows]),
        tasks=tasks, annotators=annotators, outputs=outputs, classes=outputs,
        meaning=np.arange(len(outputs), dtype=np.int16),
    )  # fmt: skip
    return labels, np.array([at[2][true[task]] if task in true else -1 for task in tasks], dtype=np.int16)


@lru_cache(maxsize=2)
def nodules(data: Path) -> tuple[NDArray[np.bool_], ...]:
    """Read masks/lidc/nodulebin: masks of four radiologists on 20 nodules (LIDC-IDRI), (4, Z, Y, X) each."""
    found = []
    for path in sorted((data / "masks" / "lidc" / "nodulebin").glob("*.npz")):
        with np.load(path) as file:
            found.append(file["masks"].astype(np.bool_))
    return tuple(found)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _by(path: Path, key: str) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _rows(path):
        found[row[key]].append(row)
    return found


def _column(rows: Sequence[dict[str, str]], key: str) -> FloatArray:
    return np.array([float(row[key]) for row in rows])
