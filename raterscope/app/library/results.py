"""Results of fusions for notebooks and scripts: tables, maps and a short view of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement_statistics import Coefficient
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.labels.ordinal import grade_summary
from raterscope.algorithms.labels.result import LabelResult as LabelFusionResult
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.pairs.data import PairFusion
from raterscope.algorithms.pairs.evidence import match_ratio
from raterscope.algorithms.pairs.selection import draw_shares
from raterscope.app.errors import plain
from raterscope.app.formats.labels.writing import ANNOTATORS as LABEL_ANNOTATORS
from raterscope.app.formats.labels.writing import CONFUSION, label_columns
from raterscope.app.formats.output_files import write_bytes
from raterscope.app.formats.pairs.writing import ANNOTATORS as PAIR_ANNOTATORS
from raterscope.app.formats.pairs.writing import RANKING, annotator_columns, ranking_rows
from raterscope.app.kinds.clicks.exports import Results, annotator_table, click_columns, detection_table
from raterscope.app.kinds.labels import runs as label_runs
from raterscope.app.kinds.labels.fusion_tables import (
    EVALUATION,
    annotator_figures,
    counted_votes,
    evaluation_rows,
)
from raterscope.app.kinds.masks import runs as mask_runs
from raterscope.app.kinds.masks.annotators import tables_of
from raterscope.app.kinds.masks.case_output import on_whole_image, products_of
from raterscope.app.kinds.pairs import runs as pair_runs
from raterscope.app.library.inputs import (
    DataError,
    Frame,
    ImageLayout,
    frame_as_html,
    frame_of_rows,
    make_frame,
    plain_errors,
    stack_frames,
)
from raterscope.app.outcome import Described, Outcome, successful
from raterscope.figures.drawing import PaperChart, sheet
from raterscope.figures.evaluation import forest_chart
from raterscope.text import counted


@dataclass(frozen=True, eq=False, repr=False)
class Result(ABC):
    """Result of a fusion.

    Attributes
    ----------
    notices : tuple of str
        Messages on how the input was read and fused, one sentence each.
    tables : tuple of str
        Names of the tables that `to_frame` returns, the main one first.
    """

    notices: tuple[str, ...]
    tables: ClassVar[tuple[str, ...]]

    def to_frame(self, table: str | None = None) -> Frame:
        """Return a table as a dictionary of column to NumPy array, with the columns of the CSV file.

        `pandas.DataFrame(result.to_frame())` makes a table of pandas of it; `polars.DataFrame` and
        `pyarrow.table` do so too.

        Parameters
        ----------
        table : str, optional
            One of `tables`; by default the first.

        Raises
        ------
        DataError
            If there is no such table.
        """
        name = self.tables[0] if table is None else table
        if name not in self.tables:
            raise DataError(f"there is no table {plain(name)}; expected one of {', '.join(self.tables)}.")
        return self._frame(name)

    def plot(self) -> Figure:
        """Draw the main figure of the annotators, with 95 % intervals where there are any.

        For clicks the sensitivity, for masks the distance of the outlines from the consensus, for labels the
        accuracy, for pairs the bias to the left. If there are many annotators, those that stand out most are
        drawn.
        """
        return plot_annotators(self.to_frame("annotators"), self._drawn)

    @property
    def settings(self) -> dict[str, Any]:
        """Algorithm and settings, ready for JSON."""
        return self._plan.as_dict()

    @property
    def methods(self) -> str:
        """Description of the method, for a paper."""
        return self._plan.in_words()

    @property
    def problems(self) -> dict[str, str]:
        """Why an image, case or question could not be fused, by name; empty if all were."""
        return {name: outcome.problem for name, outcome in self._outcomes.items() if outcome.fusion is None}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return the main figures and the first rows of the main table, escaped, for a notebook."""
        problems = [f"{name}: {problem}" for name, problem in self.problems.items()]
        return frame_as_html(self.to_frame(), self._summary(), [*self.notices, *problems])

    @property
    @abstractmethod
    def _drawn(self) -> Quantity:
        """The quantity that `plot` draws."""

    @property
    @abstractmethod
    def _plan(self) -> Described:
        """The plan."""

    @property
    @abstractmethod
    def _outcomes(self) -> Mapping[str, Outcome[Any]]:
        """The outcomes by item."""

    @abstractmethod
    def _frame(self, table: str) -> Frame:
        """Return one of the tables."""

    @abstractmethod
    def _summary(self) -> str:
        """Summarise the result in one line."""


@dataclass(frozen=True, eq=False, repr=False)
class ClickResult(Result):
    """Spots that the clicks of many annotators mark.

    Its tables are `detections` (all clusters, with `detected` 0 or 1), `annotators` and `clicks`.

    Attributes
    ----------
    clicks : mapping of image to Clicks
        The input.
    plan : FusionPlan
    outcomes : mapping of image to Outcome
        `fusion` of an outcome is the algorithm's own result.
    order : sequence of str
        The image of every row of the input.
    """

    clicks: Mapping[str, Clicks]
    plan: FusionPlan
    outcomes: Mapping[str, Outcome[Fusion]]
    order: Sequence[str] = ()
    tables: ClassVar[tuple[str, ...]] = ("detections", "annotators", "clicks")

    @property
    def _drawn(self) -> Quantity:
        return Quantity("sensitivity", "sensitivity")

    @property
    def _plan(self) -> Described:
        return self.plan

    @property
    def _outcomes(self) -> Mapping[str, Outcome[Any]]:
        return self.outcomes

    def _frame(self, table: str) -> Frame:
        fusions = successful(self.outcomes)
        if table == "detections":
            return frame_of_rows(*detection_table(fusions))
        if table == "annotators":
            return frame_of_rows(*annotator_table(fusions, self.clicks))
        results = Results(self.clicks, self.outcomes, self.plan, {}, order=self.order)
        return make_frame(*click_columns(results, fusions))

    def _summary(self) -> str:
        fusions = successful(self.outcomes).values()
        detected = sum(int(fusion.detection.detected.sum()) for fusion in fusions)
        annotators = {name for clicks in self.clicks.values() for name in clicks.annotators}
        return (
            f"{counted(sum(map(len, self.clicks.values())), 'click')} by "
            f"{counted(len(annotators), 'annotator')} on {counted(len(self.clicks), 'image')}: "
            f"{counted(detected, 'detection')} of "
            f"{counted(sum(len(fusion.clustering) for fusion in fusions), 'cluster')}"
        )


class _AnswerResult(Result):
    """Result of a run over cases or questions."""

    answer: Any

    @property
    def _plan(self) -> Described:
        plan: Described = self.answer.plan
        return plan

    @property
    def _outcomes(self) -> Mapping[str, Outcome[Any]]:
        outcomes: Mapping[str, Outcome[Any]] = self.answer.outcomes
        return outcomes


@dataclass(frozen=True, eq=False, repr=False)
class MaskResult(_AnswerResult):
    """Consensus of the masks of several annotators.

    Its tables are `annotators`, `agreement` (between pairs of annotators) and `disputes` (disputed regions).

    Attributes
    ----------
    answer : runs.Answer
        Input and the algorithm's own results.
    layouts : mapping of case to ImageLayout
        Order of the input's axes, in which maps are returned.
    """

    answer: mask_runs.Answer
    layouts: Mapping[str, ImageLayout] = field(default_factory=dict)
    tables: ClassVar[tuple[str, ...]] = ("annotators", "agreement", "disputes")

    @property
    def mask(self) -> NDArray[np.bool_]:
        """The consensus as a mask, with the axes of the input."""
        return np.asarray(self.to_array("mask"))

    @property
    def probability(self) -> NDArray[np.float32]:
        """The model's probability that a voxel belongs to the structure; not calibrated."""
        return np.asarray(self.to_array("consensus"))

    @property
    def uncertainty(self) -> NDArray[np.float32]:
        """Half-width of the 95 % band of another rater's outline in mm, or in pixels without a spacing.

        0 outside the region that was fused. Raises `DataError` for a single annotator.
        """
        return np.asarray(self.to_array("uncertainty"))

    def structures(self, case: str | None = None) -> tuple[str, ...]:
        """Name the structures of a case."""
        return self._case(case)[1].structures()

    def grid(self, case: str | None = None) -> Grid:
        """Return the grid of a case: shape, spacing and position of the voxels."""
        return self.answer.inputs.given[self._case(case)[0]].grid

    def to_array(
        self, content: str = "mask", structure: str | None = None, case: str | None = None
    ) -> NDArray[Any]:
        """Return a map of the whole image, with the axes of the input.

        Parameters
        ----------
        content : {"mask", "consensus", "another_rater", "true_outline", "uncertainty"}
            The consensus as a mask or probability, the probability that another rater or the true outline
            includes the voxel, or the half-width of the 95 % band of another rater's outline.
        structure, case : str, optional
            Needed where there are several.

        Raises
        ------
        DataError
            If there is no such map.
        """
        name, result = self._case(case)
        structures = result.structures()
        chosen = _choose(structure, structures, "structure")
        at = structures.index(chosen)
        fusion, report = result.fusions[at], result.reports[at]
        if content == "mask":
            values = on_whole_image(fusion, fusion.mask[0])
        elif content == "consensus":
            values = on_whole_image(fusion, fusion.probability[0])
        else:
            makers = products_of(fusion, report)
            if content not in makers:
                known = ", ".join(["mask", "consensus", *makers])
                raise DataError(f"there is no map {plain(content)}; expected one of {known}.")
            values = makers[content]()
        return self.layouts.get(name, ImageLayout()).restore(values)

    def _case(self, case: str | None) -> tuple[str, CaseResult]:
        fusions = self.answer.fusions
        name = _choose(case, tuple(fusions), "case")
        return name, fusions[name]

    @property
    def _drawn(self) -> Quantity:
        unit = "mm" if "bias_mm" in self.to_frame("annotators") else "px"
        return Quantity(f"bias_{unit}", f"outline beyond the consensus, {unit}", 0.0)

    def _frame(self, table: str) -> Frame:
        frames = {}
        for case, result in self.answer.fusions.items():
            header, rows_of = tables_of(self.answer.inputs.given[case].grid)[table]
            frames[case] = stack_frames(
                {
                    fusion.structures[0]: frame_of_rows(header, rows_of(fusion, report))
                    for fusion, report in zip(result.fusions, result.reports, strict=True)
                },
                "structure",
            )
        return stack_frames(frames, "image")

    def _summary(self) -> str:
        parts = []
        for name, result in self.answer.fusions.items():
            calibrated = self.answer.inputs.given[name].grid.calibrated
            for fusion, report in zip(result.fusions, result.reports, strict=True):
                size = (
                    f"{report.volume_ml:.3g} ml" if calibrated else counted(int(fusion.mask.sum()), "voxel")
                )
                disputes = counted(len(report.disputes), "disputed region")
                parts.append(f"{counted(len(fusion.annotators), 'mask')}, consensus {size}, {disputes}")
        return "; ".join(parts[:3]) + (f" and {len(parts) - 3:,} more" if len(parts) > 3 else "")


class _QuestionResult(_AnswerResult):
    """Result by question; the tables of all questions are stacked."""

    def _frame(self, table: str) -> Frame:
        fusions = self.answer.fusions.items()
        return stack_frames(
            {name: self._of_question(table, name, fusion) for name, fusion in fusions}, "question"
        )

    def _of_question(self, table: str, name: str, fusion: Any) -> Frame:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class LabelResult(_QuestionResult):
    """Labels of tasks that many annotators voted on.

    Its tables are `labels` (with the probability of each class), `annotators`, `confusion`, and `evaluation`,
    which has no rows without ground truth.

    Attributes
    ----------
    answer : runs.Answer
        Input and the algorithm's own results, by question.
    assessments : mapping of question to {method: Assessment}
        Comparison with the ground truth.
    """

    answer: label_runs.Answer
    assessments: Mapping[str, Mapping[str, Assessment]] = field(default_factory=dict)
    tables: ClassVar[tuple[str, ...]] = ("labels", "annotators", "confusion", "evaluation")

    @property
    def _drawn(self) -> Quantity:
        return Quantity("accuracy", "accuracy")

    def _of_question(self, table: str, name: str, result: LabelFusionResult) -> Frame:
        question, fusion = self.answer.inputs.given[name], result.fusion
        labels = question.labels
        if table == "labels":
            grades = grade_summary(fusion.posterior) if labels.ordered else ()
            tree = class_tree(fusion.classes)
            parents: tuple[Any, ...] = ()
            if tree is not None:
                sums = tree.sums(fusion.posterior)
                parents = (tree.parents, sums.argmax(axis=1)), sums.max(axis=1)
            columns = (
                list(labels.tasks), ((*fusion.classes, ""), fusion.label()),
                *((fusion.classes, grade) for grade in grades), *parents, *fusion.posterior.T,
                fusion.entropy(), fusion.votes,
            )  # fmt: skip
            return make_frame(label_columns(fusion.classes, ordered=labels.ordered), columns)
        if table == "evaluation":
            rows = evaluation_rows(self.assessments.get(name, {}))
            return frame_of_rows(EVALUATION, (row[: len(EVALUATION)] for row in rows))
        rates = label_runs.rates_for(question, result)
        if table == "annotators":
            accuracy, *rest = annotator_figures(question, result, rates)
            votes = counted_votes(labels, self.answer.plan)
            return make_frame(LABEL_ANNOTATORS, (list(labels.annotators), votes, *accuracy, *rest))
        if rates.shared:
            raise DataError("one confusion matrix is estimated for all annotators of very many classes")
        low, high = rates.interval()
        annotators, true, given = (index.ravel() for index in np.indices(rates.mean.shape))
        columns = (
            (labels.annotators, annotators), (fusion.classes, true), (fusion.outputs, given),
            rates.mean.ravel(), low.ravel(), high.ravel(),
        )  # fmt: skip
        return make_frame([column for column in CONFUSION if column != "step"], columns)

    def _summary(self) -> str:
        given = self.answer.inputs.given.values()
        annotators = {name for question in given for name in question.labels.annotators}
        return (
            f"{counted(sum(len(question.labels) for question in given), 'vote')} by "
            f"{counted(len(annotators), 'annotator')} on "
            f"{counted(sum(len(question.labels.tasks) for question in given), 'task')}, "
            f"fused by {self.answer.plan.algorithm}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PairResult(_QuestionResult):
    """Ranking of items that were compared in pairs, and the annotators who prefer one side.

    Its tables are `ranking` and `annotators`.

    Attributes
    ----------
    answer : runs.Answer
        Input and the algorithm's own results, by question.
    """

    answer: pair_runs.Answer
    tables: ClassVar[tuple[str, ...]] = ("ranking", "annotators")

    @property
    def _drawn(self) -> Quantity:
        return Quantity("bias", "bias to the left", 0.0)

    def _of_question(self, table: str, name: str, fusion: PairFusion) -> Frame:
        pairs = self.answer.inputs.given[name]
        if table == "ranking":
            return frame_of_rows(RANKING, ranking_rows(pairs.items, fusion))
        shares = draw_shares(fusion, self.answer.plan.settings.as_dict()["plus"])
        match = match_ratio(pairs, fusion.score)
        return make_frame(PAIR_ANNOTATORS, annotator_columns(pairs.annotators, fusion, shares, match))

    def _summary(self) -> str:
        given = self.answer.inputs.given.values()
        annotators = {name for pairs in given for name in pairs.annotators}
        flagged = sum(int(fusion.flagged.sum()) for fusion in self.answer.fusions.values())
        return (
            f"{counted(sum(map(len, given)), 'comparison')} of "
            f"{counted(sum(len(pairs.items) for pairs in given), 'item')} by "
            f"{counted(len(annotators), 'annotator')}: {flagged:,} flagged"
        )


def _choose(name: str | None, names: Sequence[str], noun: str) -> str:
    if name is None and len(names) == 1:
        return names[0]
    listed = ", ".join(plain(known, 30) for known in names[:8])
    if name is None:
        raise DataError(f"there are several {noun}s; {noun}=NAME chooses one of {listed}.")
    if name not in names:
        raise DataError(f"there is no {noun} {plain(name)}; expected one of {listed}.")
    return name


_MOST = 40
"""Maximum number of annotators in a figure, those that stand out most."""

_ROW = 20
_AXES = 90
_WIDTH = 560


@dataclass(frozen=True)
class Figure:
    """A figure as SVG.

    Attributes
    ----------
    svg : str
        The file's contents.
    """

    svg: str

    def _repr_svg_(self) -> str:
        """Return the drawing, for a notebook."""
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Save the figure as an SVG file. Raises `DataError` if it cannot be written."""
        with plain_errors():
            return write_bytes(Path(path), self.svg.encode())


@dataclass(frozen=True)
class Quantity:
    """A quantity of annotators that a figure shows.

    Attributes
    ----------
    column : str
        In the table of annotators. The bounds of its interval, if any, are in the columns of this name with
        "_low" and "_high".
    label : str
        With the unit.
    reference : float, optional
        Value of an annotator without errors: those farthest from it stand out most.
    """

    column: str
    label: str
    reference: float | None = None


def plot_annotators(frame: Frame, quantity: Quantity) -> Figure:
    """Draw a quantity of each annotator with its 95 % interval, from the largest to the smallest."""
    values = frame[quantity.column].astype(np.float64)
    none = np.full(len(values), np.nan)
    low, high = (frame.get(f"{quantity.column}_{end}", none) for end in ("low", "high"))
    known = np.flatnonzero(np.isfinite(values))
    distance = np.abs(values[known]) if quantity.reference == 0 else -values[known]
    chosen = known[np.argsort(-distance, kind="stable")[:_MOST]]
    chosen = chosen[np.argsort(-values[chosen], kind="stable")]
    names = [str(frame["annotator"][at]) for at in chosen.tolist()]
    coefficients = [Coefficient(float(values[at]), float(low[at]), float(high[at])) for at in chosen.tolist()]
    chart = forest_chart(names, coefficients, quantity.label, quantity.reference)
    count = f"{len(names)} of {len(values):,} annotators" if len(names) < len(values) else "Annotators"
    drawing = PaperChart(chart, width=_WIDTH, height=_AXES + _ROW * max(len(names), 1))
    return Figure(sheet([(count, drawing)], columns=1).decode())
