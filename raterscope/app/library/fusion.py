"""Fusion of tables and masks in memory, also with the methods of crowd-kit's aggregators."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.labels.programs import program_of
from raterscope.app.formats.labels.table import (
    find_annotator_columns,
    read_label_table,
    read_true_labels,
    read_wide_table,
)
from raterscope.app.formats.masks.label_maps import masks_of_values
from raterscope.app.formats.masks.naming import NameParts
from raterscope.app.formats.pairs.table import read_pair_table
from raterscope.app.formats.points.tables import read_clicks
from raterscope.app.formats.records import ClickTable, LabelFile, RaterMask
from raterscope.app.formats.tables import FARTHEST
from raterscope.app.kinds.clicks.image_fusion import fuse_images
from raterscope.app.kinds.clicks.imports import clicks_by_image, unify_images
from raterscope.app.kinds.clicks.runs import click_notices
from raterscope.app.kinds.labels.command import judge_answers, notices_of
from raterscope.app.kinds.labels.imports import LabelInterpretation, group_by_question, join_question
from raterscope.app.kinds.labels.runs import Answer as LabelAnswer
from raterscope.app.kinds.labels.runs import Inputs as LabelInputs
from raterscope.app.kinds.labels.runs import fuse_inputs as fuse_questions
from raterscope.app.kinds.masks.runs import Answer as MaskAnswer
from raterscope.app.kinds.masks.runs import Case, with_programs
from raterscope.app.kinds.masks.runs import Inputs as MaskInputs
from raterscope.app.kinds.masks.runs import fuse_inputs as fuse_cases
from raterscope.app.kinds.pairs.command import notices_of as pair_notices
from raterscope.app.kinds.pairs.imports import group_by_question as group_pairs
from raterscope.app.kinds.pairs.imports import join_tables
from raterscope.app.kinds.pairs.runs import Answer as PairAnswer
from raterscope.app.kinds.pairs.runs import Inputs as PairInputs
from raterscope.app.kinds.pairs.runs import fuse_inputs as fuse_comparisons
from raterscope.app.library.inputs import (
    DataError,
    Frame,
    ImageLayout,
    TableLike,
    cell_text,
    head_of,
    plain_errors,
    read_input,
    read_voxels,
)
from raterscope.app.library.results import ClickResult, LabelResult, MaskResult, PairResult
from raterscope.app.outcome import Outcome
from raterscope.app.study.masks import PlacedMask, record_of
from raterscope.app.study.records import MaskRecord

Extent = tuple[float, float]
"""Width and height of an image, pixels."""


def fuse_clicks(
    table: TableLike,
    *,
    extent: Extent | Mapping[str, Extent] | None = None,
    algorithm: str | None = None,
    columns: Mapping[str, str] | None = None,
    jobs: int = 1,
    **settings: object,
) -> ClickResult:
    """Find the spots that the clicks of many annotators mark.

    Parameters
    ----------
    table : table
        One click per row: annotator, image, x, y and perhaps time; other usual names of columns are
        recognised. A row without x and y is an annotator who marked nothing on the image. See `TableLike`.
    extent : (width, height), or mapping of image to (width, height), optional
        Size of the images in pixels; needed unless the table has columns width and height.
    algorithm : str, optional
        Name of the clustering; by default OEM. `raterscope fuse clicks --list-settings` lists all.
    columns : mapping of column to field, optional
        Names columns by hand: ``{"who": "annotator"}``.
    jobs : int
        Maximum number of processes. More than one needs the guard ``if __name__ == "__main__"`` in scripts.
    **settings
        Settings of the algorithm and of the detector: ``detector="majority"``, ``click_scatter=2``.

    Returns
    -------
    ClickResult

    Raises
    ------
    DataError
        For a table, a value or a setting that cannot be used.

    Examples
    --------
    >>> import raterscope as rs
    >>> spots, people = ((20, 30), (70, 60), (50, 10)), range(8)
    >>> rows = [(f"annotator {a}", x + a % 3, y - a % 2) for a in people for x, y in spots]
    >>> annotator, x, y = zip(*rows)
    >>> clicks = {"annotator": annotator, "image": ["smear 1"] * len(rows), "x": x, "y": y}
    >>> result = rs.fuse_clicks(clicks, extent=(100, 80))
    >>> frame = result.to_frame("detections")
    >>> int(frame["detected"].sum())
    3
    """
    with plain_errors():
        plan = FusionPlan.make(algorithm, _texts(settings))
        (clicks_read,) = unify_images([_sized(read_clicks(read_input(table), columns), extent)])
        clicks = clicks_by_image([clicks_read], [])
        if not clicks:
            raise InputError("the table has no clicks")
        outcomes = fuse_images(clicks, plan, jobs=jobs)
    _refuse_failure(outcomes)
    order = [clicks_read.images[image] for image in clicks_read.image.tolist()]
    return ClickResult(
        (*clicks_read.notices, *click_notices(clicks, outcomes.values())), clicks, plan, outcomes, order
    )


def fuse_masks(
    masks: Mapping[str, Any] | Sequence[Any],
    *,
    spacing: Sequence[float] | None = None,
    algorithm: str | None = None,
    programs: Sequence[str] = (),
    **settings: object,
) -> MaskResult:
    """Find the consensus of several annotators' masks of one image or volume.

    Parameters
    ----------
    masks : mapping of annotator to mask, or sequence of masks
        NumPy arrays (row, column) or (slice, row, column), or images of SimpleITK or nibabel, on one grid.
        Values are booleans, probabilities from 0 to 1, or labels; each label is a structure.
    spacing : sequence of float, optional
        Millimetres between rows and columns, or slices, rows and columns, of arrays; images contain theirs.
        Without it lengths are in pixels.
    algorithm : str, optional
        By default the recommended one. `raterscope fuse masks --list-settings` lists all.
    programs : sequence of str, optional
        Names of annotators that are programs. The others are fused alone; their consensus is combined with
        the programs as far as these predict the others.
    **settings
        Settings of the algorithm.

    Returns
    -------
    MaskResult

    Raises
    ------
    DataError
        For a mask or a setting that cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> import raterscope as rs
    >>> masks = {name: np.zeros((40, 40), dtype=bool) for name in ("anna", "ben", "carla")}
    >>> for shift, mask in enumerate(masks.values()):
    ...     mask[10:30, 10 + shift : 30 + shift] = True
    >>> result = rs.fuse_masks(masks, spacing=(0.5, 0.5))
    >>> result.mask.shape, bool(result.mask[20, 20])
    ((40, 40), True)
    >>> result.to_frame("annotators")["annotator"].tolist()
    ['anna', 'ben', 'carla']
    """
    with plain_errors():
        plan = MaskPlan.make(algorithm, _texts(settings))
        case, layout = _case_of(masks, spacing)
        cases = with_programs({case.name: case}, programs)
        answer = fuse_cases(MaskInputs({case.name: 0}, cases, programs=tuple(sorted(programs))), plan)
    _refuse_failure(answer.outcomes)
    return mask_result(answer, {case.name: layout})


def fuse_labels(
    table: TableLike,
    *,
    truth: TableLike | None = None,
    algorithm: str | None = None,
    columns: Mapping[str, str] | None = None,
    ordered: bool | Sequence[str] | None = None,
    classes: Sequence[str] = (),
    stands: Mapping[str, str] | None = None,
    programs: Mapping[str, TableLike] | None = None,
    **settings: object,
) -> LabelResult:
    """Find the labels of tasks from the votes of many annotators.

    Parameters
    ----------
    table : table
        One vote per row: annotator, task, label and perhaps time, truth and question; other usual names of
        columns are recognised. Or one task per row, and one column per annotator. See `TableLike`.
    truth : table, optional
        Ground truth of some tasks: task and label. It measures the result; ``truths="hold"`` holds it fixed.
    algorithm : str, optional
        By default the pooled models. `raterscope fuse labels --list-settings` lists all.
    columns : mapping of column to field, optional
        Names columns by hand: ``{"who": "annotator"}``.
    ordered : bool or sequence of str, optional
        Whether the labels are grades, or the grades from the lowest to the highest. By default this is
        detected for numeric labels. For grades, the table of labels has median and 95 % interval.
    classes : sequence of str, optional
        Possible true classes, if they are not the labels that annotators give.
    stands : mapping of label to class, optional
        The class that a label stands for; an empty class for none.
    programs : mapping of name to table, optional
        Class probabilities of programs: task and a column for each class, or task, label and score. They are
        weighted by how well they predict the votes, and ignored if they do not.
    **settings
        Settings of the algorithm and of the question.

    Returns
    -------
    LabelResult

    Raises
    ------
    DataError
        For a table, a value or a setting that cannot be used.

    Examples
    --------
    >>> import raterscope as rs
    >>> votes = {
    ...     "annotator": ["anna", "ben", "carla"] * 4,
    ...     "task": [task for task in "abcd" for _ in range(3)],
    ...     "label": ["cat", "cat", "cat", "dog", "dog", "cat", "dog", "dog", "dog", "cat", "cat", "dog"],
    ... }
    >>> result = rs.fuse_labels(votes, algorithm="majority")
    >>> dict(zip(result.to_frame()["task"].tolist(), result.to_frame()["label"].tolist()))
    {'a': 'cat', 'b': 'dog', 'c': 'dog', 'd': 'cat'}

    Scores from 1 to 3 for a class that is present or not:

    >>> scores = votes | {"label": [1, 1, 2, 3, 3, 2, 2, 3, 3, 1, 2, 1]}
    >>> result = rs.fuse_labels(scores, classes=["no", "yes"], stands={"1": "no", "2": "no", "3": "yes"})
    >>> result.to_frame()["label"].tolist()
    ['no', 'yes', 'yes', 'no']
    """
    texts = _texts(settings)
    with plain_errors():
        plan = LabelPlan.make(algorithm, texts)
        tables = list(_read_votes(table, columns))
        if truth is not None:
            tables += read_true_labels(head_of(truth, "truth"))
        question_tables, notices = group_by_question(tables)
        questions = {}
        grades = () if ordered is None or isinstance(ordered, bool) else tuple(map(str, ordered))
        understanding = LabelInterpretation(
            grades,
            tuple(map(str, classes)),
            tuple((str(label), str(true)) for label, true in (stands or {}).items()),
            ordered=ordered if isinstance(ordered, bool) or ordered is None else True,
        )
        for files in question_tables:
            questions[files.name], understood = join_question(files, understanding)
            notices += understood
        for name, source in (programs or {}).items():
            for key, question in questions.items():
                labels = question.labels
                program, about = program_of(head_of(source, name).table, name, labels.tasks, labels.classes)
                questions[key] = replace(question, programs=(*question.programs, program))
                notices += [f"{name}: {notice}" for notice in about]
        if plan.about.truths != "measure" and not any((q.truth != OPEN).any() for q in questions.values()):
            raise InputError("there are no truths to hold fixed; expected some in truth")
        answer = fuse_questions(LabelInputs(dict.fromkeys(questions, 0), questions), plan)
        _refuse_failure(answer.outcomes)
        return label_result(answer, texts, [notice for each in tables for notice in each.notices] + notices)


def fuse_pairs(
    table: TableLike,
    *,
    algorithm: str | None = None,
    columns: Mapping[str, str] | None = None,
    **settings: object,
) -> PairResult:
    """Rank items that were compared in pairs, and find the annotators who prefer one side.

    Parameters
    ----------
    table : table
        One comparison per row: annotator, left, right, choice and perhaps time; other usual names of columns
        are recognised. A choice is left, right, tie, the preferred item, or a number. See `TableLike`.
    algorithm : str, optional
        By default the recommended path. `raterscope fuse pairs --list-settings` lists all.
    columns : mapping of column to field, optional
        Names columns by hand: ``{"who": "annotator"}``.
    **settings
        Settings of the algorithm, such as ``rate=0.1``, the false discovery rate.

    Returns
    -------
    PairResult

    Raises
    ------
    DataError
        For a table, a value or a setting that cannot be used.

    Examples
    --------
    >>> import raterscope as rs
    >>> items = "abcd"
    >>> rows = [
    ...     (f"annotator {a}", left, right, "left" if left < right else "right")
    ...     for a in range(6) for left in items for right in items if left != right
    ... ]
    >>> annotator, left, right, choice = zip(*rows)
    >>> comparisons = {"annotator": annotator, "left": left, "right": right, "choice": choice}
    >>> rs.fuse_pairs(comparisons).to_frame("ranking")["item"].tolist()
    ['a', 'b', 'c', 'd']
    """
    with plain_errors():
        plan = PairPlan.make(algorithm, _texts(settings))
        tables = read_pair_table(head_of(table), columns)
        questions = {}
        notices = [notice for each in tables for notice in each.notices]
        for files in group_pairs(tables):
            questions[files.name], joined = join_tables(files.tables)
            notices += joined
        answer = fuse_comparisons(PairInputs(dict.fromkeys(questions, 0), questions), plan)
    _refuse_failure(answer.outcomes)
    return pair_result(answer, notices)


def mask_result(answer: MaskAnswer, layouts: Mapping[str, ImageLayout]) -> MaskResult:
    """Return the result of a run over masks, with its notices."""
    notices = [n for result in answer.fusions.values() for fusion in result.fusions for n in fusion.notices]
    return MaskResult(tuple(dict.fromkeys(notices)), answer, layouts)


def label_result(answer: LabelAnswer, texts: Mapping[str, str], notices: Sequence[str] = ()) -> LabelResult:
    """Return the result of a run over labels, with its notices, compared with the ground truth."""
    judged, failed = judge_answers(answer, texts)
    all_notices = dict.fromkeys([*notices, *failed, *notices_of(answer, judged)])
    return LabelResult(tuple(all_notices), answer, judged)


def pair_result(answer: PairAnswer, notices: Sequence[str] = ()) -> PairResult:
    """Return the result of a run over pairs, with its notices."""
    return PairResult(tuple(dict.fromkeys([*notices, *pair_notices(answer)])), answer)


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as texts, as on the command line."""
    return {name: str(value) for name, value in settings.items()}


def _refuse_failure(outcomes: Mapping[str, Outcome[Any]]) -> None:
    """Raise the first problem if nothing could be fused."""
    if all(outcome.fusion is None for outcome in outcomes.values()):
        raise DataError(next(iter(outcomes.values())).problem)


def _sized(table: ClickTable, extent: Extent | Mapping[str, Extent] | None) -> ClickTable:
    """Add the sizes of the images to a table of clicks; refuse an image of unknown size."""
    extents = dict(table.extents)
    for index, name in enumerate(table.images):
        size = extent.get(name) if isinstance(extent, Mapping) else extent
        if size is not None:
            extents[index] = _checked_extent(name, size)
        if index not in extents:
            raise InputError(
                f"the size of the image {plain(name)} is unknown; expected extent=(width, height), or "
                "columns width and height"
            )
    return replace(table, extents=extents)


def _checked_extent(name: str, size: Any) -> Extent:
    try:
        width, height = (float(side) for side in size)
    except (TypeError, ValueError):
        width = height = 0.0
    if not (0 < width < FARTHEST and 0 < height < FARTHEST):
        raise InputError(
            f"the extent of the image {plain(name)} is {plain(size)}; expected width and height in pixels"
        )
    return width, height


def _read_votes(table: TableLike, columns: Mapping[str, str] | None) -> tuple[LabelFile, ...]:
    head = head_of(table)
    if find_annotator_columns(head.table, columns):
        return tuple(read_wide_table(head.table, columns))
    return read_label_table(head, columns)


_CASE = "image"


def _case_of(
    masks: Mapping[str, Any] | Sequence[Any], spacing: Sequence[float] | None
) -> tuple[Case, ImageLayout]:
    """Read masks as a case. Raises `InputError` for masks on different grids."""
    named = (
        {str(name): mask for name, mask in masks.items()}
        if isinstance(masks, Mapping)
        else {f"annotator {number}": mask for number, mask in enumerate(masks, 1)}
    )
    if not named:
        raise InputError("there are no masks")
    read: list[tuple[str, RaterMask]] = []
    grid, layout, first = None, ImageLayout(), ""
    for name, mask in named.items():
        label = f"mask of {name}"
        values, own_grid, own_layout = read_voxels(mask, label, spacing)
        if grid is None:
            grid, layout, first = own_grid, own_layout, label
        elif not own_grid.same_as(grid):
            raise InputError(
                f"is on another grid than the {plain(first)} ({own_grid.shape} and {grid.shape} voxels); "
                "resample it first", file=label,
            )  # fmt: skip
        parts = NameParts(annotator=name)
        read += [(name, part) for part in masks_of_values(Path(label), values, parts, own_grid)]
    assert grid is not None
    several = any(mask.structure for _, mask in read)
    records: dict[str, dict[str, MaskRecord]] = {}
    for name, mask in read:
        # A map whose only label is 1 is read as a binary mask; beside label maps it is their label 1.
        structure = mask.structure or ("label 1" if several else "structure")
        placed = PlacedMask(0, name, structure, mask.origin, mask.voxels, mask.coding)
        records.setdefault(structure, {})[name] = record_of(placed)
    return Case(_CASE, grid, records), layout


class _Aggregator:
    """Fusion with the interface of crowd-kit's aggregators."""

    result_: LabelResult | PairResult

    def __init__(self, method: str | None = None, **settings: Any) -> None:
        self.method = method
        self.settings = settings

    def _keep(self, result: LabelResult | PairResult) -> Self:
        """Keep the result of a fit. Raises `DataError` for a table with several questions."""
        if len(result.answer.inputs.given) > 1:
            raise DataError("the table has several questions; expected one.")
        self.result_ = result
        return self

    def to_frame(self, table: str | None = None) -> Frame:
        """Return a table of the last result; see `Result.to_frame`."""
        return self.result_.to_frame(table)


class Labels(_Aggregator):
    """Labels of tasks from votes, with the interface of crowd-kit's aggregators.

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

    def fit(self, data: TableLike) -> Self:
        """Fuse votes: columns task, worker and label. Raises `DataError` for a table that cannot be used."""
        return self._keep(fuse_labels(data, algorithm=self.method, **self.settings))

    def fit_predict(self, data: TableLike) -> Any:
        """Return the label of each task: a pandas Series for a pandas table, else a dictionary.

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


class Pairs(_Aggregator):
    """Scores of items from comparisons, with the interface of crowd-kit's aggregators.

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

    Examples
    --------
    >>> import raterscope as rs
    >>> choices = {
    ...     "worker": list("abcabcabc"),
    ...     "left": ["x"] * 3 + ["y"] * 3 + ["z"] * 3,
    ...     "right": ["y"] * 3 + ["z"] * 3 + ["x"] * 3,
    ...     "label": ["x", "x", "y", "y", "y", "y", "x", "x", "x"],
    ... }
    >>> list(rs.Pairs().fit_predict(choices))
    ['x', 'y', 'z']
    """

    result_: PairResult

    def fit(self, data: TableLike) -> Self:
        """Fuse comparisons: columns worker, left, right, and the preferred item in label.

        Raises `DataError` for a table that cannot be used.
        """
        return self._keep(fuse_pairs(data, algorithm=self.method, **self.settings))

    def fit_predict(self, data: TableLike) -> Any:
        """Return the score of each item without biases, the best first: a pandas Series, or a dictionary.

        Scores of items that no comparisons link cannot be compared; `to_frame` has their `component`.
        """
        frame = self.fit(data).to_frame()
        items = _originals(data, "left") | _originals(data, "right")
        index = [items[item] for item in frame["item"].tolist()]
        return _series(data, index, frame["score_corrected"].tolist(), "label", "agg_score")


def _originals(data: Any, column: str) -> dict[str, Any]:
    """Return the original values of a column by their text."""
    try:
        values = data[column]
    except Exception as error:  # KeyError, or an exception of polars, which is not imported here
        raise DataError(f"there is no column {plain(column)}; expected one of this name.") from error
    to_list = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    return {cell_text(cell, column).strip(): cell for cell in (values if to_list is None else to_list())}


def _pandas(data: Any) -> Any:
    """Return the module pandas if a table is one of pandas."""
    return sys.modules.get("pandas") if type(data).__module__.partition(".")[0] == "pandas" else None


def _series(data: Any, index: Sequence[Any], values: Sequence[Any], name: str, title: str) -> Any:
    pandas = _pandas(data)
    if pandas is None:
        return dict(zip(index, values, strict=True))
    return pandas.Series(values, index=pandas.Index(index, name=name), name=title)
