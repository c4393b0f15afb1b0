"""Conversion of a question's scene and analysis to the values that widgets draw."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.catalogue import LABELLERS, labeller_title
from raterscope.algorithms.labels.class_tree import ClassTree, class_tree
from raterscope.algorithms.labels.data import ClassArray, FloatArray
from raterscope.algorithms.labels.ordinal import grade_summary
from raterscope.algorithms.labels.rates import Rates, fold_rates
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.text import counted, estimate, figure
from raterscope.widgets.figures.confusion_matrix import MatrixView
from raterscope.widgets.figures.confusion_wall import Measure, WallView
from raterscope.widgets.names import short_class_names
from raterscope.widgets.panels.card_panels import GridView, TasksView
from raterscope.widgets.panels.task_panel import PROGRAM, TaskView, TaskVote

LISTED_VOTES = 500
"""Maximum number of votes of a task that are listed."""


def name_of(scene: Scene, annotator: int, *, blind: bool) -> str:
    """Return the name of an annotator, or a number while names are hidden; programs are called programs."""
    return names_of(scene, [annotator], blind=blind)[0]


def names_of(
    scene: Scene, annotators: Sequence[int] | NDArray[np.integer], *, blind: bool
) -> tuple[str, ...]:
    """Return the names of annotators; see `name_of`. One call for all is much faster."""
    programs = frozenset(() if scene.run is None else scene.run.programs)
    rows = np.asarray(annotators, dtype=np.int64)
    names = tuple(map(scene.labels.annotators.__getitem__, rows.tolist()))
    if not blind and programs.isdisjoint(names):
        return names
    if not blind:
        return tuple(f"{name}{PROGRAM}" if name in programs else name for name in names)
    return tuple(
        f"program {number}" if name in programs else f"annotator {number}"
        for name, number in zip(names, (scene.annotator_ids[rows] + 1).tolist(), strict=True)
    )


def without_names(sentences: Iterable[str], annotators: Iterable[str]) -> tuple[str, ...]:
    """Return those sentences that name no annotator, for blind mode."""
    listed = tuple(annotators)
    return tuple(
        sentence
        for sentence in sentences
        if not any(
            name in sentence and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence) for name in listed
        )
    )


def wall_view(
    scene: Scene, analysis: Analysis, excluded: Mapping[str, str], *, blind: bool = False
) -> WallView | None:
    """Return the wall of the annotators who voted; None without a result."""
    if analysis.mean is None or analysis.accuracy is None or analysis.difference is None:
        return None
    votes = analysis.votes_of + analysis.left_out
    crossed = np.array([name in excluded for name in scene.labels.annotators], dtype=bool)
    annotators = np.flatnonzero((votes > 0) | crossed)
    measures = [
        Measure("accuracy", analysis.accuracy[0][annotators]),
        Measure("votes", votes[annotators].astype(float), ",.0f"),
        Measure("difference from the crowd", analysis.difference[annotators]),
    ]
    if analysis.moved is not None:
        measures.append(Measure("change over time", analysis.moved[annotators]))
    community = np.full(len(annotators), -1, dtype=np.int16)
    if analysis.groups is not None:
        community = analysis.groups.of[annotators]
        measures.append(Measure("community", np.where(community < 0, np.nan, -1.0 - community), ".0f"))
    classes, outputs = scene.classes, scene.labels.outputs
    if analysis.rates is not None and analysis.rates.shared:  # one matrix for all: only accuracies differ
        right = analysis.accuracy[0][annotators]
        mean = np.stack([right, 1 - right], axis=1)[:, None]
        classes, outputs = ("any class",), ("right", "wrong")
    else:
        mean = analysis.mean[annotators]
    if analysis.class_order is not None and len(classes) > 1:  # as in the matrix beside
        rows, columns = analysis.class_order
        mean = mean[:, rows[:, None], columns]
        classes = tuple(classes[row] for row in rows.tolist())
        outputs = tuple(outputs[column] for column in columns.tolist())
    return WallView(
        numbers=annotators,
        names=names_of(scene, annotators, blind=blind),
        mean=mean,
        votes=votes[annotators],
        measures=tuple(measures),
        excluded=crossed[annotators],
        community=community,
        classes=classes,
        outputs=outputs,
    )


def matrix_view(
    scene: Scene, analysis: Analysis, annotators: Sequence[int], *, blind: bool = False
) -> MatrixView | None:
    """Return the confusion matrix of some annotators, by default of the crowd."""
    fusion = scene.fusion
    if fusion is None or analysis.rates is None:
        return None
    several = np.array(annotators if len(annotators) else np.flatnonzero(analysis.votes_of), dtype=np.int64)
    rates = analysis.rates.together(several)
    if len(several) == 1:
        number = int(several[0])
        title = "Annotator"
        name = str(scene.annotator_ids[number] + 1) if blind else name_of(scene, number, blind=False)
    else:
        title, name = (counted(len(several), "annotator") if len(annotators) else "The crowd"), ""
    low, high = rates.interval()
    matrix = " | matrix of the crowd" if analysis.rates.shared and len(annotators) else ""
    accuracy = [float(value[0]) for value in rates.accuracies()]
    votes = int(analysis.votes_of[several].sum())
    if fusion.drift is not None and votes:  # with drift, the matrix is of one time
        when = rates.time.removeprefix("the ")
        title, name = (title, f"{name}, {when}") if name else (f"{title}, {when}", "")
    out = int(analysis.left_out[several].sum()) if len(annotators) else 0
    numbers = [counted(votes, "vote")] if votes or not out else []
    programs = () if scene.run is None else scene.run.programs
    is_program = len(several) == 1 and scene.labels.annotators[int(several[0])] in programs
    text = (
        f"{counted(out, 'answer')}, not counted as votes"
        if is_program
        else f"{counted(out, 'vote')} excluded"
    )
    numbers += [text] if out else []
    tree = class_tree(scene.classes) if scene.labels.outputs == scene.classes else None
    return MatrixView(
        title=title,
        name=name,
        folded=None if tree is None else _folded(title, tree, fold_rates(rates, tree.parent)),
        subtitle=f"{', '.join(numbers)} | accuracy {estimate(*accuracy)}{matrix}",
        classes=scene.classes,
        outputs=scene.labels.outputs,
        mean=rates.mean[0],
        low=low[0],
        high=high[0],
        counts=rates.counts[0],
        crowd=analysis.crowd if len(annotators) else None,
        meaning=scene.labels.meaning,
        order=analysis.class_order,
    )


def _folded(title: str, tree: ClassTree, rates: Rates) -> MatrixView:
    low, high = rates.interval()
    values = rates.mean[0], low[0], high[0], rates.counts[0]
    return MatrixView(title, "", tree.parents, tree.parents, *values)


def tasks_view(
    scene: Scene, analysis: Analysis, decided: ClassArray, order: NDArray[np.integer],
    contested: frozenset[int] = frozenset(), notes: Mapping[int, Mapping[str, int]] | None = None, *,
    blind: bool = False,
) -> TasksView:  # fmt: skip
    """Return the queue of tasks in an order; in blind mode without answer and doubt."""
    fusion = scene.fusion
    known_labels = np.full(len(decided), OPEN, dtype=np.int16) if fusion is None else fusion.known
    return TasksView(
        names=scene.labels.tasks,
        order=order,
        classes=scene.classes,
        votes=analysis.votes,
        decided=decided,
        known=known_labels if fusion is None else _imported_labels(fusion.known, decided, scene),
        posterior=None if fusion is None or blind else fusion.posterior,
        contested=contested,
        notes=notes or {},
        parents=scene.decidable[len(scene.classes) :],
    )


def _imported_labels(known: ClassArray, decided: ClassArray, scene: Scene) -> ClassArray:
    """Return the imported labels that were held fixed, without undone decisions."""
    return np.where((decided == OPEN) & (scene.truth == known), known, OPEN).astype(np.int16)


def weights_of(scene: Scene, analysis: Analysis, votes: NDArray[np.integer], leading: int) -> FloatArray:
    """Return the weights of votes for a class, as log odds against the other classes; NaN if unknown.

    The odds compare the expected probabilities of the given label; the other classes are weighted by the
    result's shares. Down-weighting of votes or annotators reduces the weights accordingly.
    """
    fusion, labels = scene.fusion, scene.labels
    if fusion is None or len(fusion.classes) < 2:
        return np.full(len(votes), np.nan)
    if fusion.drift is not None and analysis.step_of is not None:
        alpha = fusion.drift.alpha[analysis.step_of[votes]].astype(float)
    else:
        alpha = fusion.confusion.alpha[labels.annotator[votes]]
    probability = (alpha / alpha.sum(axis=2, keepdims=True))[np.arange(len(votes)), :, labels.label[votes]]
    other_shares = np.delete(fusion.shares, leading)
    against = np.delete(probability, leading, axis=1) @ (other_shares / max(other_shares.sum(), 1e-300))
    own, algorithm = labels.vote_weights(), LABELLERS.get(fusion.algorithm.replace("_", "-"))
    log_odds = fusion.power * (np.log(probability[:, leading]) - np.log(against))
    if own is not None and algorithm is not None and algorithm.weighs:
        log_odds = log_odds * own[votes]
    return np.asarray(log_odds)


def task_view(
    scene: Scene,
    analysis: Analysis,
    task: int,
    decided: int,
    picture: QImage | None = None,
    *,
    contested: str = "",
    blind: bool = False,
) -> TaskView:
    """Return votes, answer and decision of a task.

    `decided`: class or parent decided by the expert, of `Scene.decidable`; `OPEN` for none. `contested`:
    conflicting decisions of experts. `blind`: hide names, and votes until the expert has decided.
    """
    labels, fusion = scene.labels, scene.fusion
    assert labels.meaning is not None
    votes = analysis.by_task.of(task)
    posterior = None if fusion is None else fusion.posterior[task]
    vote = analysis.vote[task]
    leading = int(np.argmax(vote if posterior is None else posterior))
    known = int(scene.truth[task])
    right = decided if 0 <= decided < len(scene.classes) else known
    listed = votes[:LISTED_VOTES]
    weight, brief = weights_of(scene, analysis, listed, leading), short_class_names(labels.outputs)
    lines = [
        TaskVote(
            annotator=int(scene.annotator_ids[labels.annotator[index]]),
            name=name_of(scene, int(labels.annotator[index]), blind=blind),
            label=labels.outputs[labels.label[index]],
            agrees=posterior is None or int(labels.meaning[labels.label[index]]) == leading,
            wrong=None if right == OPEN else int(labels.meaning[labels.label[index]]) != right,
            weight=float(log_odds),
            time=time_of(labels.time, int(index)),
            brief=brief[labels.outputs[labels.label[index]]],
        )
        for index, log_odds in zip(listed.tolist(), weight.tolist(), strict=True)
    ]
    lines += _program_lines(scene, task, leading, right, blind=blind)
    classes_voted = labels.meaning[labels.label[votes]]
    tally = np.bincount(classes_voted[classes_voted >= 0], minlength=len(labels.classes))
    leading_vote = int(tally.argmax()) if len(votes) else -1
    is_unique = len(votes) > 0 and int((tally == tally.max()).sum()) == 1
    return TaskView(
        name=labels.tasks[task],
        classes=scene.classes,
        posterior=posterior,
        votes=tuple(sorted(lines, key=lambda line: line.agrees)),
        majority=leading_vote if is_unique else -1,
        majority_votes=int(tally.max()) if is_unique else 0,
        decided=decided,
        parents=scene.decidable[len(scene.classes) :],
        known=known,
        picture=picture,
        pictures=bool(scene.pictures),
        blind=blind,
        hidden=blind,
        contested=contested,
        tally=tally,
        fixed=fusion is not None and int(fusion.known[task]) != OPEN,
        grades=_grades(posterior) if labels.ordered else None,
    )


def _program_lines(scene: Scene, task: int, leading: int, right: int, *, blind: bool) -> list[TaskVote]:
    """Return the lines of the programs with probabilities for a task: most probable class and its weight."""
    result, labels = scene.result, scene.labels
    if result is None or result.programs is None:
        return []
    rows = {name: row for row, name in enumerate(labels.annotators)}
    lines = []
    for program in scene.programs:
        probability = program.probability[task]
        if program.name not in rows or not np.isfinite(probability).all():
            continue
        best, row = int(probability.argmax()), rows[program.name]
        name = scene.classes[best]
        lines.append(
            TaskVote(
                annotator=int(scene.annotator_ids[row]),
                name=name_of(scene, row, blind=blind),
                label=f"{name} {probability[best]:.2f}",
                agrees=best == leading,
                wrong=None if right == OPEN else best != right,
                weight=result.programs.log_odds(program, task, leading, result.fusion.shares),
                program=True,
            )
        )
    return lines


def _grades(posterior: FloatArray | None) -> tuple[int, int, int] | None:
    """Return median and interval of a task's grade."""
    if posterior is None:
        return None
    median, low, high = (int(value[0]) for value in grade_summary(posterior[None]))
    return median, low, high


def time_of(times: FloatArray | None, vote: int) -> str:
    """Format the time of a vote; empty if unknown."""
    if times is None or not np.isfinite(times[vote]):
        return ""
    try:
        return datetime.fromtimestamp(float(times[vote])).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):  # seconds from another origin than 1970
        return f"{times[vote]:g} s"


def status(scene: Scene, analysis: Analysis, waiting: int, *, several: bool = False) -> str:
    """Describe question, run, its convergence and the progress of the review for the status line."""
    labels = scene.labels
    count_annotators = int(np.count_nonzero(analysis.votes_of))
    words = [
        *([scene.question.name] if several else []),
        counted(len(labels.tasks), "task"),
        f"{counted(len(labels), 'vote')} by {counted(count_annotators, 'annotator')}",
    ]
    if scene.run is None or scene.fusion is None:
        return "  |  ".join([*words, "not fused yet"])
    trace = scene.fusion.trace
    ended = f"run {scene.run.id}: {labeller_title(scene.run.algorithm)}"
    if len(trace.change):
        state = "converged" if trace.converged else "did not converge"
        ended += f", {state} in {counted(len(trace.change), 'iteration')}"
    words.append(ended)
    if analysis.model is not None:
        model = analysis.model
        words.append(f"accuracy {figure(model.accuracy, model.accuracy_low, model.accuracy_high)}")
        words.append(f"calibration error {analysis.model.calibration.error:.2f}")
    words.append(f"{waiting:,} disputed and undecided")
    if scene.later:
        words.append(f"{counted(scene.later, 'vote')} imported since: fuse again (F5)")
    return "  |  ".join(words)


def cell_tasks(
    scene: Scene, annotators: tuple[int, ...], true: int, output: int, *, blind: bool = False
) -> GridView:
    """Return the tasks of a cell of a confusion matrix: tasks of a class with a label given by annotators.

    `scene`: a scene with a result. `annotators`: annotators of the matrix; empty for all. `true`, `output`:
    class, known or most probable, and label. `blind`: hide names.
    """
    labels, fusion = scene.labels, scene.fusion
    assert fusion is not None
    is_chosen = np.ones(len(labels.annotators), dtype=bool)
    if annotators:
        is_chosen[:] = False
        is_chosen[list(annotators)] = True
    is_class = np.where(scene.truth >= 0, scene.truth, fusion.label()) == true
    task_lists = []
    for source in (labels, *([scene.excluded] if scene.excluded is not None and annotators else [])):
        votes = (source.label == output) & is_class[source.task] & is_chosen[source.annotator]
        task_lists.append(source.task[votes])
    tasks, counts = np.unique(np.concatenate(task_lists), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    name = name_of(scene, annotators[0], blind=blind) if len(annotators) == 1 else "the annotators"
    if not annotators:
        name = "any annotator"
    return GridView(
        title=f"{name} answered {labels.outputs[output]} where {fusion.classes[true]} is true",
        tasks=tasks[order],
        names=labels.tasks,
        classes=fusion.classes,
        posterior=fusion.posterior,
        outputs=labels.outputs,
        answers=np.full(len(tasks), output, dtype=np.int16),
        pictures=bool(scene.pictures),
    )
