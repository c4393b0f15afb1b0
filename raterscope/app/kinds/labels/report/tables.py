"""Tables and charts of one question: methods, ROC curves, the crowd, communities, disputed tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.communities import describe_community
from raterscope.algorithms.labels.assessment import Assessment, compare_accuracy
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.constancy import FALSE_ALARMS
from raterscope.algorithms.labels.data import FloatArray
from raterscope.algorithms.labels.drift import ChangePoint, change_in_words
from raterscope.algorithms.labels.ordinal import grade_summary
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.labels.result import matrices_in_use
from raterscope.algorithms.labels.roc_curves import FoldedCurves, mean_area
from raterscope.app.assessment import DISPUTED, disputed_tasks, matters_in_words
from raterscope.app.errors import plain
from raterscope.app.kinds.labels.evaluation import area_in_words, curve_chart, curve_keys
from raterscope.app.kinds.labels.exports import DecidedAnswer
from raterscope.app.kinds.labels.runs import VOTE, Answered, Groups
from raterscope.app.kinds.labels.vote_budget import Cost, cost_in_words
from raterscope.app.page.contents import (
    NONE,
    Block,
    Cell,
    Gallery,
    Notices,
    Swatch,
    Table,
    drawing,
    named,
    p_value,
    share,
    signed,
)
from raterscope.figures.colours import tint
from raterscope.figures.drawing import image_of
from raterscope.text import counted, estimate, figure, percent

_MAX_CURVES = 6


def folded_blocks(folded: FoldedCurves) -> list[Block]:
    """Draw the curves of each class with all methods, and list the areas."""
    blocks: list[Block] = []
    pictures = []
    legend: list[Swatch] = []
    ranked = folded.ranked()
    shown = sorted(folded.shown, key=lambda at: -ranked[0].pooled.curves[at].count)[:_MAX_CURVES]
    order = [method.name for method in ranked]
    for true in shown:
        chart = curve_chart(folded, true, order)
        title = f"ROC of {plain(folded.classes[true], 40)}"
        pictures.append(drawing(image_of(chart), title, "predictions of all folds together"))
        if not legend:
            legend = [
                Swatch(key.ink, labeller_title(name))
                for key, name in zip(curve_keys(folded, true, order), order, strict=True)
            ]
    if pictures:
        note = (
            "Colours repeat with dashed lines, in the order of the table."
            if len(order) > len({swatch.colour for swatch in legend})
            else ""
        )
        blocks.append(Gallery(f"ROC curves by {folded.folds}-fold cross-validation", pictures, legend, note))
    rows = []
    for method in ranked:
        folds = method.areas()
        finite = folds[np.isfinite(folds)]
        spread = f"{finite.min():.3f} to {finite.max():.3f}" if len(finite) else NONE
        rows.append(
            (
                labeller_title(method.name),
                area_in_words(method.area()),
                area_in_words(mean_area(folds)),
                spread,
            )
        )
    few = "; a subsample, see the methods" if folded.settings.subsample else ""
    note = (
        f"{counted(folded.truths, 'known task')} of {folded.tasks:,}, {counted(folded.votes, 'vote')} by "
        f"{counted(folded.annotators, 'annotator')}{few}. The truths of all folds but one are given to a "
        "method, which predicts the tasks of that fold (dynamic combination paper, section 4). AUC of all "
        "predictions together with DeLong's 95 % interval, mean over classes of one against the rest; mean "
        f"of the folds with Student's interval, and its least and greatest. {folded.settings.in_words()}."
    )
    columns = "Method", "AUC, pooled", "AUC, mean of folds", "Folds"
    blocks.append(Table("Methods by cross-validation", columns, rows, note))
    if folded.failed:
        blocks.append(Notices([plain(failure, 400) for failure in folded.failed]))
    return blocks


_MOST = 10
"""Number of annotators listed from each end of the ranking."""

_ENOUGH = 10
"""Minimum number of votes of a ranked annotator."""

_MAX_CLASSES, _MAX_WITH_INTERVALS = 12, 6
_WITH_INTERVALS = "with 95 % intervals"
_FEWEST = 0.005
"""Minimum probability shown in a cell."""


def share_of(value: float) -> str:
    """Format a share in per cent."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else NONE


def methods_table(answered: Answered, judged: Mapping[str, Assessment]) -> Table:
    """Compare every method with the truths that it did not use, and with the majority vote."""
    vote = judged.get(VOTE)
    rows = []
    for name, assessment in judged.items():
        against = NONE
        if vote is not None and assessment is not vote and assessment.judged == vote.judged:
            ours, theirs, chance = compare_accuracy(assessment, vote)
            against = f"+{ours:,} \N{MINUS SIGN}{theirs:,} (p {p_value(chance)})"
        rows.append(
            (
                plain(labeller_title(name), 60),
                f"{assessment.judged:,}",
                estimate(assessment.accuracy, assessment.accuracy_low, assessment.accuracy_high),
                share(assessment.area),
                share(assessment.log_loss),
                share(assessment.brier),
                share(assessment.calibration.error),
                against,
            )
        )
    use = {"folds": "each from the run without that truth", "hold": "those that were not held fixed"}
    truths_used = use.get(answered.result.truths, "imported truths that no run used")
    note = (
        f"On tasks whose truth is known: {truths_used}. Accuracy with its 95 % interval (Wilson); AUC: mean "
        "over classes of one against the rest; log loss in nats, of probabilities of at least 1e-12; Brier: "
        "0 to 2; calibration: expected error of the most probable class's probability. Against the vote: "
        "tasks that only the method has right, and that only the vote has, with McNemar's exact p."
    )
    columns = (
        "Method", "Tasks", "Accuracy", "AUC", "Log loss", "Brier", "Calibration error", "Against the vote"
    )  # fmt: skip
    return Table("Methods compared", columns, rows, note)


def cost_tables(cost: Cost) -> list[Table]:
    """Show accuracy by votes per task, and the votes that stopping would have saved."""
    curve = cost.curve
    on_gold = curve.accuracy.tolist() if curve.judged else [[math.nan] * 3] * len(curve.most)
    against = [
        (f"{votes:.1f}", estimate(*gold), estimate(*expected))
        for votes, gold, expected in zip(
            curve.votes.tolist(), on_gold, curve.expected.tolist(), strict=True
        )
    ]  # fmt: skip
    stopped = [
        (
            f"{replay.limit:g}", f"{replay.used / max(replay.tasks, 1):.1f}",
            percent(1 - replay.used / max(replay.votes, 1)), percent(replay.stopped / max(replay.tasks, 1)),
            estimate(replay.error, replay.low, replay.high),
        )
        for replay in cost.replays
    ]  # fmt: skip
    return [
        Table("Accuracy against votes", ("Votes per task", "On gold tasks", "By the model"), against,
              cost_in_words(cost)),
        Table("Stopping tasks with enough votes",
              ("Posterior", "Votes per task", "Saved", "Tasks stopped", "Error on gold tasks"), stopped),
    ]  # fmt: skip


def crowd_table(answered: Answered, rates: Rates) -> Table:
    """Show the confusion matrix of all annotators together, darker for more, with intervals."""
    fusion = answered.result.fusion
    together = rates.together(np.flatnonzero(answered.question.labels.votes_of_annotators()))
    mean, (low, high) = together.mean[0], together.interval()
    rows_shown = _largest(fusion.shares)
    same = fusion.outputs == fusion.classes
    columns_shown = rows_shown if same else _largest(together.counts[0].sum(axis=0))
    narrow = len(columns_shown) > _MAX_WITH_INTERVALS
    write = figure if narrow else estimate
    rows: list[list[Cell | str]] = []
    for j in rows_shown:
        cells: list[Cell | str] = [Cell(plain(fusion.classes[j], 40))]
        for m in columns_shown:
            ends = float(low[0, j, m]), float(high[0, j, m])
            cells.append(Cell(write(float(mean[j, m]), *ends), *tint(float(mean[j, m]))))
        rows.append([*cells, f"{together.counts[0, j].sum():,.0f}"])
    heads = [plain(fusion.outputs[m], 24) for m in columns_shown]
    note = "Rows: true class by the answer; columns: label by annotators. Probabilities, "
    note += "with as many digits as their 95 % intervals support" if narrow else _WITH_INTERVALS
    note += ", all annotators' votes together."
    if narrow:
        named = [f"{at} {plain(fusion.outputs[m], 40)}" for at, m in enumerate(columns_shown, start=1)]
        heads = [str(at) for at in range(1, len(heads) + 1)]
        note += f" Answers: {', '.join(named)}."
    if len(rows_shown) < len(fusion.classes) or len(columns_shown) < len(fusion.outputs):
        note += f" The {_MAX_CLASSES} most frequent classes and labels are shown."
    return Table("The crowd's confusion matrix", ("True", *heads, "Votes"), rows, note)


def communities_table(groups: Groups, annotators: Sequence[str]) -> Table:
    """List the communities of annotators."""
    sizes = groups.communities.sizes().tolist()
    rows = [
        (
            str(at + 1),
            plain(name, 80),
            f"{sizes[at]:,}",
            share_of(float(groups.votes[at])),
            share(float(groups.accuracy[at])),
            plain(annotators[groups.central[at]], 40),
        )
        for at, name in enumerate(groups.names)
    ]
    out = len(groups.of) - sum(sizes)
    of_behaviour = groups.basis == "behaviour"
    method = "Bayesian factorisation" if groups.communities.method == "nmf" else "Louvain"
    alike = "their confusion matrices, by {} of their Hellinger similarity"
    shared = "their common tasks, by {} of the shares that two annotators have in common"
    note = (
        f"Annotators are grouped by {(alike if of_behaviour else shared).format(method)}; modularity "
        f"{share(groups.communities.modularity, 2)}. Accuracy: the expected share of correct votes. Most "
        f"central: the member who takes part most.{f' In no community: {out:,}.' if out else ''}"
    )
    name = "Behaviour" if of_behaviour else "Name"
    columns = ("No.", name, "Annotators", "Share of votes", "Accuracy", "Most central")
    return Table("Communities", columns, rows, note, frozenset({1}))


def annotators_table(
    answered: Answered, rates: Rates, groups: Groups | None, excluded: Mapping[str, str]
) -> Table:
    """List the best and the worst annotators, excluded ones and programs."""
    labels, fusion = answered.question.labels, answered.result.fusion
    mean, low, high = rates.accuracies()
    votes = labels.votes_of_annotators()
    ranked = np.flatnonzero(votes >= _ENOUGH)
    if not len(ranked):
        ranked = np.flatnonzero(votes > 0)
    order = ranked[np.argsort(-mean[ranked], kind="stable")]
    indices = order if len(order) <= 2 * _MOST else np.concatenate([order[:_MOST], order[-_MOST:]])
    rows: list[list[Cell | str]] = []
    for row, k in enumerate(indices.tolist()):
        if row == _MOST and len(indices) < len(order):
            rows.append([f"… {len(order) - len(indices):,} between", *[""] * 4])
        name = labels.annotators[k]
        since = " (excluded since)" if name in excluded else ""
        of = "" if groups is None or groups.of[k] < 0 else str(int(groups.of[k]) + 1)
        rows.append(
            [
                plain(name, 40) + since,
                f"{int(votes[k]):,}",
                estimate(float(mean[k]), float(low[k]), float(high[k])),
                of or NONE,
                plain(describe_community(*matrices_in_use(labels, rates.mean[k])), 80),
            ]
        )
    programs = set(answered.run.programs)
    for name in sorted({*answered.run.excluded, *programs} & set(labels.annotators)):
        reason = f"excluded: {plain(excluded.get(name, '')) or 'no reason given'}"
        k = labels.annotators.index(name)
        title = f"{plain(name, 40)} ({_program_text(answered, name) if name in programs else reason})"
        if answered.question.excluded is None or not rates.votes[k]:
            rows.append([title, *[NONE] * 4])
            continue
        out = int((answered.question.excluded.annotator == k).sum())
        right = estimate(float(mean[k]), float(low[k]), float(high[k]))
        text = plain(describe_community(*matrices_in_use(labels, rates.mean[k])), 80)
        rows.append([title, f"{out:,} not counted", right, NONE, text])
    note = (
        "Accuracy: the expected share of right votes among the annotator's own, with its 95 % interval"
        f"{'' if fusion.drift is None else f', at {rates.time}'}."
        f" Ranked are those with at least {_ENOUGH} votes; raterscope export --what "
        "annotators writes all."
    )
    columns = ("Annotator", "Votes", "Accuracy", "Community", "Behaviour")
    return Table("Annotators, the best and the worst", columns, rows, note, frozenset({4}))


def _program_text(answered: Answered, name: str) -> str:
    """Describe a program: whether it is excluded, or the power of its probabilities."""
    weights = answered.result.programs
    if name in answered.run.excluded:
        return "program, excluded"
    if weights is None or name not in weights.names:
        return "program"
    return f"program, power {weights.weight[weights.names.index(name)]:.2f}"


def moved_table(
    answered: Answered,
    order: Sequence[int],
    moved: FloatArray,
    trend: FloatArray,
    points: Mapping[int, Sequence[ChangePoint]],
) -> Table:
    """List the annotators who changed most over their votes, and when."""
    labels, fusion = answered.question.labels, answered.result.fusion
    votes = labels.votes_of_annotators()
    rows = []
    for k in order:
        changes = [
            f"vote {change_point.step + 1:,}: {change_in_words(change_point, fusion)}"
            for change_point in points[k][:3]
        ]
        if len(points[k]) > 3:
            changes.append(f"{len(points[k]) - 3} more")
        rows.append(
            (
                plain(labels.annotators[k], 40),
                f"{int(votes[k]):,}",
                share(float(moved[k]), 2),
                signed(float(trend[k]), digits=2),
                plain("; ".join(changes), 300) or "no abrupt change",
            )
        )
    note = (
        f"Annotators whose share of right votes is not constant, each at p < {FALSE_ALARMS:g}: the same "
        "share of annotators who did not change is listed too. Moved: how far a row of the confusion matrix "
        "went from the first third of the votes to the last, 0 to 1, beyond what chance explains. Trend: by "
        "how much the share of right votes grew. Changes: rows with decisive evidence for one (Bayes factor "
        "over 100), else the share of right votes."
    )
    columns = ("Annotator", "Votes", "Moved", "Trend", "Changes")
    return Table("Annotators who changed the most", columns, rows, note, frozenset({4}))


def disputed_table(answered: Answered, answer: DecidedAnswer, tasks: Sequence[int]) -> Table:
    """List the most disputed undecided tasks: probabilities and votes."""
    labels, fusion = answered.question.labels, answered.result.fusion
    where = np.full(len(labels.tasks), -1, dtype=np.int64)
    where[list(tasks)] = np.arange(len(tasks))
    counts = np.zeros((len(tasks), len(labels.outputs)), dtype=np.int64)
    rows_of_votes: NDArray[np.int64] = where[labels.task]
    voted = rows_of_votes >= 0
    np.add.at(counts, (rows_of_votes[voted], labels.label[voted]), 1)
    grades = grade_summary(answer.posterior[list(tasks)]) if labels.ordered else None
    doubt = answer.doubt
    rows = []
    for row, task in enumerate(tasks):
        rows.append(
            (
                plain(labels.tasks[task], 60),
                *([] if grades is None else [_grade(answer.classes, *(value[row] for value in grades))]),
                _ranked(answer.classes, answer.posterior[task], lambda value: share(value, 2), _FEWEST),
                share(float(doubt[task]), 2),
                _ranked(fusion.outputs, counts[row], lambda value: f"{value:.0f}", 0.5),
            )
        )
    note = "The most disputed tasks without a decision. Doubt: the probability that the answer is wrong."
    rejected = disputed_tasks(fusion) & (doubt > 1 - DISPUTED[1])
    if rejected.any():
        note += " " + matters_in_words(doubt[rejected], "disputed task")
    added = () if grades is None else ("Median (95 % interval)",)
    columns = ("Task", *added, "Probabilities", "Doubt", "Votes")
    wide = frozenset({1 + len(added), 3 + len(added)})
    return Table("Tasks in dispute", columns, rows, note, wide)


def _grade(classes: Sequence[str], median: int, low: int, high: int) -> str:
    ends = named(classes[low]) if low == high else f"{named(classes[low])} to {named(classes[high])}"
    return f"{named(classes[median])} ({ends})"


def _ranked(names: Sequence[str], values: NDArray[Any], write: Callable[[float], str], least: float) -> str:
    order = [int(at) for at in np.argsort(-values, kind="stable") if values[at] > least][:6]
    return ", ".join(f"{named(names[at])}: {write(float(values[at]))}" for at in order)


def _largest(weights: FloatArray) -> list[int]:
    order = np.argsort(-np.asarray(weights), kind="stable")[:_MAX_CLASSES]
    return sorted(int(at) for at in order)
