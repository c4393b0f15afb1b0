"""Fusions with the methods of crowd-kit's aggregators, so that they fit into its benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Self

from raterscope.app.errors import plain
from raterscope.app.library.fusion import fuse_labels, fuse_pairs
from raterscope.app.library.inputs import DataError, Frame, TableLike, cell_text
from raterscope.app.library.results import LabelResult, PairResult


class Labels:
    """Labels of tasks from votes, as the aggregators of crowd-kit.

    Parameters
    ----------
    method : str, optional
        Name of an algorithm; see `fuse_labels`.
    **settings
        Its settings.

    Attributes
    ----------
    result_ : LabelResult
        Result of the last fit.

    Examples
    --------
    >>> import raterscope as rs
    >>> votes = {"task": [1, 1, 1, 2, 2, 2], "worker": list("abc") * 2, "label": [0, 0, 1, 1, 1, 1]}
    >>> rs.Labels(method="majority").fit_predict(votes)
    {1: 0, 2: 1}
    """

    result_: LabelResult

    def __init__(self, method: str | None = None, **settings: Any) -> None:
        self.method = method
        self.settings = settings

    def fit(self, data: TableLike) -> Self:
        """Fuse votes: columns task, worker and label. Raises `DataError` for a table that cannot be used."""
        self.result_ = fuse_labels(data, algorithm=self.method, **self.settings)
        if len(self.result_.answer.inputs.given) > 1:
            raise DataError("the table has several questions; expected one.")
        return self

    def fit_predict(self, data: TableLike) -> Any:
        """Return the label of each task: a series of pandas for a table of pandas, else a dictionary.

        Tasks and labels are the values of the table, for example numbers.
        """
        frame = self.fit(data).to_frame()
        tasks, labels = (_originals(data, name) for name in ("task", "label"))
        values = [labels[label] for label in frame["label"].tolist()]
        return _series(data, [tasks[task] for task in frame["task"].tolist()], values, "task", "agg_label")

    def fit_predict_proba(self, data: TableLike) -> Any:
        """Return the probability of each label: a data frame with a row for each task, or a dictionary.

        The dictionary has a dictionary of label to probability for each task.
        """
        self.fit(data)
        ((name, fused),) = self.result_.answer.fusions.items()
        tasks, labels = (_originals(data, column) for column in ("task", "label"))
        index = [tasks[task] for task in self.result_.answer.inputs.given[name].labels.tasks]
        columns = [labels.get(label, label) for label in fused.fusion.classes]
        posterior = fused.fusion.posterior
        pandas = _pandas(data)
        if pandas is not None:
            return pandas.DataFrame(posterior, index=pandas.Index(index, name="task"), columns=columns)
        rows = (dict(zip(columns, row, strict=True)) for row in posterior.tolist())
        return dict(zip(index, rows, strict=True))

    def to_frame(self, table: str | None = None) -> Frame:
        """Return a table of the last result; see `Result.to_frame`."""
        return self.result_.to_frame(table)


class Pairs:
    """Scores of items from comparisons, as the aggregators of crowd-kit.

    Parameters
    ----------
    method : str, optional
        Name of a path; see `fuse_pairs`.
    **settings
        Its settings.

    Attributes
    ----------
    result_ : PairResult
        Result of the last fit.
    """

    result_: PairResult

    def __init__(self, method: str | None = None, **settings: Any) -> None:
        self.method = method
        self.settings = settings

    def fit(self, data: TableLike) -> Self:
        """Fuse comparisons: columns worker, left, right, and the preferred item in label.

        Raises `DataError` for a table that cannot be used.
        """
        self.result_ = fuse_pairs(data, algorithm=self.method, **self.settings)
        if len(self.result_.answer.inputs.given) > 1:
            raise DataError("the table has several questions; expected one.")
        return self

    def fit_predict(self, data: TableLike) -> Any:
        """Return the score of each item without biases: a series of pandas, or a dictionary; the best first.

        Scores of items that nothing ties together cannot be compared; `to_frame` has their `component`.
        """
        frame = self.fit(data).to_frame()
        items = _originals(data, "left") | _originals(data, "right")
        index = [items[item] for item in frame["item"].tolist()]
        return _series(data, index, frame["score_corrected"].tolist(), "label", "agg_score")

    def to_frame(self, table: str | None = None) -> Frame:
        """Return a table of the last result; see `Result.to_frame`."""
        return self.result_.to_frame(table)


def _originals(data: Any, column: str) -> dict[str, Any]:
    """Return the values of a column by their text."""
    try:
        values = data[column]
    except Exception as error:  # KeyError, or an exception of polars, which is not imported here
        raise DataError(f"there is no column {plain(column)}; expected one of this name.") from error
    to_list = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    return {cell_text(cell, column).strip(): cell for cell in (values if to_list is None else to_list())}


def _pandas(data: Any) -> Any:
    """Return pandas if a table is of it."""
    return sys.modules.get("pandas") if type(data).__module__.partition(".")[0] == "pandas" else None


def _series(data: Any, index: Sequence[Any], values: Sequence[Any], name: str, title: str) -> Any:
    pandas = _pandas(data)
    if pandas is None:
        return dict(zip(index, values, strict=True))
    return pandas.Series(values, index=pandas.Index(index, name=name), name=title)
