"""Records of arrays in a study's file, and whether a result fits what it was made from."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from raterscope.algorithms.clicks.data import Clicks, Fusion
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.report import CaseResult, Report
from raterscope.app.study.arrays import DamagedError, pack, unpack
from raterscope.app.study.records import StudyError

__all__ = ["RESULTS", "misfit", "misfit_of_masks", "read_object", "remove_object", "write_object"]

RESULTS: dict[str, type[Fusion] | type[CaseResult]] = {"clicks": Fusion, "masks": CaseResult}
"""What a run comes to, by its kind."""

Record = TypeVar("Record")


def write_object(connection: sqlite3.Connection, record: Any) -> int:
    """Store a record within the present transaction and give its number."""
    size, chunks = pack(record)
    number = connection.execute("INSERT INTO objects(size) VALUES (?)", (size,)).lastrowid
    connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?)", ((number, part, data) for part, data in enumerate(chunks))
    )
    assert number is not None
    return number


def read_object(connection: sqlite3.Connection, number: int, kind: type[Record], path: Path) -> Record:
    """Read a record.

    Raises
    ------
    StudyError
        When it is damaged.
    """
    row = connection.execute("SELECT size FROM objects WHERE id = ?", (number,)).fetchone()
    chunks = connection.execute("SELECT data FROM chunks WHERE object = ? ORDER BY part", (number,))
    try:
        if row is None:
            raise DamagedError("a record is missing")
        return unpack(kind, row[0], (data for (data,) in chunks))
    except DamagedError as error:
        raise StudyError(f"is damaged ({error}); open a backup of it", file=path) from error


def remove_object(connection: sqlite3.Connection, number: int) -> None:
    """Remove a record within the present transaction."""
    connection.execute("DELETE FROM objects WHERE id = ?", (number,))


def misfit(fusion: Fusion, clicks: Clicks) -> str | None:
    """Say why a fusion cannot be that of these clicks; None where it can.

    A result that comes with a stranger's file, or one that was made while other clicks arrived, would
    otherwise show itself as an index out of range somewhere on the screen.
    """
    n, r = len(clicks), len(clicks.annotators)
    clustering, detection, rates, trace = (
        fusion.clustering, fusion.detection, fusion.rates, fusion.clustering.trace
    )  # fmt: skip
    m, k, t = len(clustering.mean), len(clustering.inlier), len(trace.objective)
    shapes: list[tuple[str, np.ndarray, tuple[int, ...]]] = [
        ("mark", fusion.mark, (n,)),
        ("marked", fusion.marked, (r, m)),
        ("verdict", fusion.verdict, (m,)),
        ("mean", clustering.mean, (m, 2)),
        ("covariance", clustering.covariance, (m, 2, 2)),
        ("weight", clustering.weight, (m,)),
        ("nearest", clustering.nearest, (k,)),
        ("reliability", clustering.reliability, (r,)),
        ("components", trace.components, (t,)),
        ("removed", trace.removed, (t,)),
        ("clicks", rates.clicks, (r,)),
    ]
    shapes += [(f"rates {name}", getattr(rates, name), (r, 3)) for name in _PER_ANNOTATOR[:2]]
    shapes += [("reliability rate", rates.reliability, (r, 3))]
    shapes += [(name, getattr(detection, name), (m,)) for name in _PER_CLUSTER]
    shapes += [(name, getattr(detection, name), (r,)) for name in _PER_ANNOTATOR]
    for name, array, shape in shapes:
        if array.shape != shape:
            return f"{name} has the shape {array.shape}, not {shape}"
    if n and not 0 <= fusion.mark.min() <= fusion.mark.max() < k:
        return "mark points at a mark that is not there"
    if k and not -1 <= clustering.nearest.min() <= clustering.nearest.max() < m:
        return "nearest points at a cluster that is not there"
    if not np.isfinite(clustering.mean).all() or not np.isfinite(clustering.covariance).all():
        return "a cluster's place is no number"
    return None


def misfit_of_masks(result: CaseResult, frame: tuple[int, int, int]) -> str | None:
    """Say why a fusion of masks cannot be one of an image of this shape; None where it can."""
    if not len(result.fusions) == len(result.reports) > 0:
        return f"{len(result.fusions)} fusions have {len(result.reports)} reports"
    for fusion, report in zip(result.fusions, result.reports, strict=True):
        wrong = _misfit_of_fusion(fusion, frame) or _misfit_of_report(report, len(fusion.annotators), frame)
        if wrong is not None:
            return wrong
    return None


def _misfit_of_report(report: Report, raters: int, frame: tuple[int, int, int]) -> str | None:
    if len(report.compared) != raters:
        return f"{len(report.compared)} raters are compared, not {raters}"
    if report.pair_dice.shape != (raters, raters) or report.by_slice.shape != frame[:1]:
        return "the agreement or the doubt by slice is of another shape"
    for region in report.disputes:
        ends = [at + n for at, n in zip(region.origin, region.shape, strict=True)]
        if min(region.origin) < 0 or min(region.shape) < 1 or any(np.array(ends) > frame):
            return "a disputed region does not lie in the image"
        if len(region.bits) * 8 < np.prod(region.shape) or not 0 <= region.leader < raters:
            return "a disputed region is of another shape"
    return None


def _misfit_of_fusion(fusion: MaskFusion, frame: tuple[int, int, int]) -> str | None:
    s, p, maps = len(fusion.structures), len(fusion.annotators), fusion.mask.shape
    if fusion.mask.ndim != 4 or maps[0] != 1 or s != 1 or not p:
        return f"mask has the shape {maps}, which is not that of one structure"
    shapes: list[tuple[str, np.ndarray | None, tuple[int, ...]]] = [
        ("probability", fusion.probability, maps),
        ("distance", fusion.distance, maps),
        ("deviation", fusion.deviation, maps),
        ("weight", fusion.weight, (s, p, *maps[1:])),
    ]
    shapes += [(name, getattr(fusion, name), (s, p)) for name in _PER_RATER]
    for number, alternative in enumerate(fusion.alternatives, start=1):
        shapes += [
            (f"alternative {number}", alternative.mask, maps),
            (f"alternative {number}", alternative.probability, maps),
            (f"alternative {number}", alternative.responsibility, (p,)),
        ]
    for name, array, shape in shapes:
        if array is not None and array.shape != shape:
            return f"{name} has the shape {array.shape}, not {shape}"
    ends = [at + n for at, n in zip(fusion.origin, maps[1:], strict=True)]
    if fusion.frame != frame or min(fusion.origin) < 0 or any(np.array(ends) > frame):
        return f"its maps lie at {fusion.origin} in {fusion.frame} voxels, not in {frame}"
    if not all(np.isfinite(step) and step > 0 for step in fusion.spacing):
        return "its spacing is no length"
    if not np.isfinite(fusion.probability).all():
        return "a probability is no number"
    return None


_PER_RATER = ("bias", "variance", "dof", "sensitivity", "specificity")
_PER_CLUSTER = ("posterior", "posterior_low", "posterior_high", "detected")
_PER_ANNOTATOR = (
    "sensitivity", "specificity", "true_positive", "false_negative", "true_negative", "false_positive"
)  # fmt: skip
