"""Evidence on annotators from labels: accuracy, worst class, community, change, effect of an exclusion.

The clearest mistakes of an annotator are for their feedback page.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement_statistics import agreement_by_annotator
from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.labels.constancy import constancy, half_change
from raterscope.algorithms.labels.copying import copying_of
from raterscope.algorithms.labels.cross_validation import preview_exclusion
from raterscope.algorithms.labels.data import OPEN, FloatArray
from raterscope.algorithms.labels.fusion import run_with_programs
from raterscope.algorithms.labels.vote_budget import seconds_per_vote
from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.annotator_evidence import (
    Agreement,
    AnnotatorFunctions,
    ChangedAnswer,
    Consequences,
    Course,
    Evidence,
    Measure,
    Pool,
    blocks,
    read_shown,
)
from raterscope.app.errors import plain
from raterscope.app.kinds.labels.exports import apply_decisions
from raterscope.app.kinds.labels.fusion_tables import accuracies, counted_votes
from raterscope.app.kinds.labels.report.sections import thumbnails
from raterscope.app.kinds.labels.runs import (
    Answered,
    Question,
    groups_of,
    plan_of,
    programs_of_run,
    read_answer,
)
from raterscope.app.kinds.labels.variability import last_votes, measure_agreement
from raterscope.app.page.contents import Block, Gallery, Picture, Section, Table
from raterscope.app.study import Study
from raterscope.app.study.labels import decided_classes, labels_of_voters, read_contents
from raterscope.app.study.vote_sets import class_indices
from raterscope.text import counted

ACCURACY = Measure(
    "accuracy", "accuracy", "Expected share of right votes, by the answers of the run shown", ideal=1.0,
    is_share=True, is_reliability=True,
)  # fmt: skip
WORST = Measure(
    "worst_class_right", "worst class", "Expected share of right votes on the class on which it is lowest",
    ideal=1.0, is_share=True,
)  # fmt: skip
CHANGE = Measure(
    "change_p", "change", "p value of the test for a change over time, of dynamic methods", unit="p"
)
GOLD = Measure(
    "gold", "gold tasks", "Share of right votes on gold tasks, whose class is imported or marked (G)",
    ideal=1.0, is_share=True,
)  # fmt: skip
AGREEMENT = Measure(
    "agreement", "agreement", "Share of the others' votes on the same tasks that agree", is_share=True
)
DRIFT = Measure(
    "drift", "drift", "Expected share of right votes in the later half of the votes, minus that in the "
    "earlier half", is_signed=True,
)  # fmt: skip
SECONDS = Measure(
    "seconds_per_vote", "time per vote", "Median time between two votes, without pauses of half an hour", "s"
)
GOLD_ANSWERED = Measure("gold_answered", "gold answered", "Number of votes on gold tasks", is_count=True)
MEASURES = (ACCURACY, AGREEMENT, GOLD, WORST, DRIFT, SECONDS, CHANGE, GOLD_ANSWERED)

FEWEST = 3.0
"""Minimum expected number of votes on a class for the worst class."""
LISTED = 200
"""Maximum number of changed labels in a preview."""


def _answers(study: Study, watch: Watch) -> Sequence[Answered]:
    return [answer for _, answer in read_shown(study.questions(), partial(read_answer, study), watch)]


def _half_change(study: Study, answered: Answered, watch: Watch) -> NDArray[np.float64]:
    """Return `half_change` of an answer, which fits a consensus; computed once, also after decisions."""
    compute = partial(half_change, answered.question.labels, answered.result.fusion, watch)
    return study.derived("half_change", answered.entry.id, answered.run.digest, compute)


def evidence(study: Study, watch: Watch) -> Evidence | None:
    """Return the values of exports and reports over all questions; see `AnnotatorFunctions`."""
    state = study.review_state()
    pool = Pool(state.aliases, len(MEASURES))
    verdicts, gold = [], []
    worst: dict[int, tuple[list[float], str]] = {}
    community: dict[int, list[str]] = {}
    copies: dict[int, list[str]] = {}
    copying = 0
    answers = _answers(study, part(watch, 0.0, 0.3))
    for answered, step in steps_of(part(watch, 0.3, 1.0), answers):
        labels, fusion = answered.question.labels, answered.result.fusion
        accuracy = accuracies(answered.rates)
        values = np.full((len(labels.annotators), len(MEASURES), 3), np.nan)
        values[:, 0] = np.stack(accuracy, axis=1)
        task, answer, annotator = last_votes(labels)
        agreement = agreement_by_annotator(task, answer, annotator, len(values))
        values[:, MEASURES.index(AGREEMENT)] = agreement
        values[:, MEASURES.index(DRIFT)] = _half_change(study, answered, part(step, 0.0, 0.5))
        values[:, MEASURES.index(SECONDS)] = seconds_per_vote(labels)
        worst_at, change_at = MEASURES.index(WORST), MEASURES.index(CHANGE)
        values[:, worst_at], lowest = _worst_class(answered)
        if fusion.drift is not None:
            values[:, change_at, 0] = constancy(labels, fusion).p
        pool.add(labels.annotators, values, _votes(answered))
        rows = pool.rows_of(labels.annotators).tolist()
        for row, value, at in zip(rows, values[:, worst_at].tolist(), lowest.tolist(), strict=True):
            if at >= 0 and value[0] < worst.get(row, ([2.0], ""))[0][0]:
                worst[row] = value, fusion.classes[at]
        for members in copying_of(labels, answered.result, part(step, 0.5, 1.0)).groups():
            copying += 1
            for row in pool.rows_of([labels.annotators[member] for member in members]).tolist():
                copies.setdefault(row, []).append(str(copying))
        groups = groups_of(labels, answered.result, accuracy[0])
        if groups is not None:
            for row, at in zip(rows, groups.of.tolist(), strict=True):
                if at >= 0:
                    community.setdefault(row, []).append(groups.names[at])
        crowd = study.vote_set(answered.entry.id, answered.run.imported)
        decided = decided_classes(crowd, state, answered.entry.id)
        decided = class_indices(decided, crowd.scheme.classes, labels.classes)
        verdicts.append(_verdicts(answered.question, decided))
        gold.append(_verdicts(answered.question, answered.question.truth))
    if not answers:
        return None
    pooled = pool.weighted()
    for row, (value, _) in worst.items():
        pooled[row, MEASURES.index(WORST)] = value
    right, wrong = (pool.total([each[at] for each in gold]) for at in (0, 1))
    pooled[:, MEASURES.index(GOLD)] = _shares(right, right + wrong)
    if (right + wrong).any():
        pooled[:, MEASURES.index(GOLD_ANSWERED), 0] = right + wrong
    marks, items = pool.counted()
    everyone = range(len(pool.names))
    return Evidence(
        kind="labels",
        marks_are="votes",
        names=pool.names,
        marks=marks,
        items=items,
        measures=MEASURES,
        values=pooled,
        words={
            "worst_class": [worst.get(row, ([], ""))[1] for row in everyone],
            "community": [", ".join(dict.fromkeys(community.get(row, ()))) for row in everyone],
            "copy_group": [", ".join(copies.get(row, ())) for row in everyone],
        },
        accepted=pool.total([accepted for accepted, _ in verdicts]),
        rejected=pool.total([rejected for _, rejected in verdicts]),
    )


def _votes(answered: Answered) -> np.ndarray:
    """Count each annotator's votes as exports do; for excluded annotators, the votes that would count."""
    labels, plan = answered.question.labels, plan_of(answered.run)
    votes = labels.votes_of_annotators() if plan is None else counted_votes(labels, plan)
    excluded = answered.question.excluded
    return votes if excluded is None else votes + excluded.votes_of_annotators()


def _worst_class(answered: Answered) -> tuple[FloatArray, np.ndarray]:
    """Return the lowest share of right votes on a class, (K, 3), and the class; NaN and -1 with few votes.

    There is an interval if a single output stands for the class.
    """
    labels, rates = answered.question.labels, answered.rates
    assert labels.meaning is not None
    means_class = labels.meaning[None, :] == np.arange(len(labels.classes))[:, None]
    if rates.shared:
        return np.full((len(rates.votes), 3), np.nan), np.full(len(rates.votes), -1)
    right = (rates.mean * means_class).sum(axis=2)
    known = (rates.counts.sum(axis=2) >= FEWEST) & means_class.any(axis=1)
    right = np.where(known, right, np.inf)
    if not right.shape[1]:
        return np.full((len(right), 3), np.nan), np.full(len(right), -1)
    rows, lowest = np.arange(len(right)), right.argmin(axis=1)
    some = np.isfinite(right[rows, lowest])
    output = means_class.argmax(axis=1)[lowest]
    low, high = (end[rows, lowest, output] for end in rates.interval())
    several = means_class.sum(axis=1)[lowest] > 1
    values = np.stack([right[rows, lowest], low, high], axis=1)
    values[several, 1:] = values[~some] = np.nan
    return values, np.where(some, lowest, -1)


def _covered_classes(names: Sequence[str], classes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return the classes of each name, (len(names), J): itself, or the descendants of a parent class."""
    tree = class_tree(classes)
    covers = np.zeros((len(names), len(classes)), dtype=bool)
    for row, name in enumerate(names):
        covers[row, [classes.index(name)] if name in classes else tree.below(name) if tree else []] = True
    return covers


def _verdicts(question: Question, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count each annotator's votes that agree with a task's class, and that contradict it.

    Votes of excluded annotators count too. `truth`: (N,), `OPEN` where not known.
    """
    right, wrong = np.zeros((2, len(question.labels.annotators)), dtype=np.int64)
    for labels in filter(None, (question.labels, question.excluded)):
        assert labels.meaning is not None
        true = truth[labels.task]
        agrees = labels.meaning[labels.label] == true
        for counts, votes in ((right, agrees), (wrong, ~agrees)):
            counts += np.bincount(labels.annotator[votes & (true != OPEN)], minlength=len(counts))
    return right, wrong


def _shares(hits: np.ndarray, number: np.ndarray) -> FloatArray:
    """Return the share of hits of each annotator with Wilson's interval, (K, 3); NaN without votes."""
    shares = np.full((len(hits), 3), np.nan)
    for row in np.flatnonzero(number).tolist():
        low, high = wilson(float(hits[row]), int(number[row]))
        shares[row] = hits[row] / number[row], low, high
    return shares


def courses(study: Study, names: Collection[str], watch: Watch) -> Sequence[Course]:
    """Return the expected share of right votes by blocks of votes in time, and the share on gold tasks.

    See `AnnotatorFunctions`.
    """
    listed = []
    answers = _answers(study, watch)
    for answered in answers:
        source = answered.question.labels
        rows = [row for row, name in enumerate(source.annotators) if name in names]
        if answered.question.excluded is not None and not np.isin(source.annotator, rows).any():
            source = answered.question.excluded
        assert source.meaning is not None
        order = source.in_time()
        own = order[np.isin(source.annotator[order], rows)]
        if not len(own):
            continue
        meant = source.meaning[source.label[own]]
        right = np.where(meant >= 0, answered.result.fusion.posterior[source.task[own], meant], 0.0)
        about = f", {plain(answered.entry.name)}" if len(answers) > 1 else ""
        measure = Measure(
            "right", f"right votes{about}", "Expected share of right votes in a block of votes", ideal=1.0,
            is_share=True,
        )  # fmt: skip
        listed.append(_course(measure, right, "votes"))
        truth = answered.question.truth[source.task[own]]
        if (truth != OPEN).any():
            measure = Measure(
                "gold", f"gold tasks{about}", "Share of right votes on gold tasks in a block of votes",
                ideal=1.0, is_share=True,
            )  # fmt: skip
            on_gold = truth != OPEN
            listed.append(_course(measure, (meant == truth)[on_gold].astype(float), "gold votes"))
    return listed


def _course(measure: Measure, right: FloatArray, noun: str) -> Course:
    """Return the share of right votes by blocks in time, with Wilson's interval."""
    titles, values = [], []
    for block in blocks(len(right)):
        hits, number = float(right[block].sum()), block.stop - block.start
        titles.append(f"{noun} {block.start + 1:,} to {block.stop:,}")
        values.append((hits / number, *wilson(hits, number)))
    return Course("labels", measure, tuple(titles), f"block of {noun}", np.array(values))


def preview(study: Study, names: Collection[str], weight: float | None, watch: Watch) -> Consequences | None:
    """Fuse the questions shown again without annotators, or with a weight; see `AnnotatorFunctions`."""
    state = study.review_state()
    affected, notes = [], []
    for answered in _answers(study, part(watch, 0.0, 0.1)):
        labels = answered.question.labels
        rows = [row for row, name in enumerate(labels.annotators) if name in names]
        programs = programs_of_run(study, answered.entry, answered.run, answered.result)
        remaining = tuple(program for program in programs if weight or program.name not in names)
        if not np.isin(labels.annotator, rows).any() and len(remaining) == len(programs):
            continue
        plan = plan_of(answered.run)
        if plan is None:
            notes.append(f"The settings of run {answered.run.id} cannot be read: its changes are unknown.")
        else:
            affected.append((answered, plan, remaining))
    if not affected and not notes:
        return None
    changed = total = 0
    changes: list[ChangedAnswer] = []
    for (answered, plan, remaining), step in steps_of(part(watch, 0.1, 1.0), affected):
        labels = answered.question.labels
        result = preview_exclusion(
            labels.without(set(state.excluded)).with_weights(state.weights),
            answered.result.fusion,
            set(names),
            partial(run_with_programs, plan, remaining),
            step,
            weight,
        )
        changed, total = changed + len(result.task), total + len(labels.tasks)
        classes = answered.result.fusion.classes
        for task, before, after in zip(
            result.task.tolist(), result.before.tolist(), result.after.tolist(), strict=True
        ):
            if len(changes) < LISTED:
                changes.append(ChangedAnswer(labels.tasks[task], classes[before], classes[after]))
        notes += LABELLERS[plan.algorithm].weight_notices(weight)
        if len(result.lost):
            notes.append(f"{len(result.lost):,} tasks of {plain(answered.entry.name)} would lose all votes.")
    return Consequences("labels", "label", changed, total, tuple(changes), tuple(dict.fromkeys(notes)))


def agreement(study: Study, names: Collection[str], watch: Watch) -> Sequence[Agreement]:
    """Return Krippendorff's alpha of annotators, nominal, by question; see `AnnotatorFunctions`."""
    state, agreements = study.review_state(), []
    for entry, step in steps_of(watch, study.questions()):
        step(0.0, "measuring agreement")
        labels = labels_of_voters(study, entry.id, state)
        if names:
            labels = labels.without(set(labels.annotators) - set(names))
        if len(labels):
            measured = measure_agreement(labels)["nominal"]
            units = counted(measured.tasks, "task")
            agreements.append(Agreement(plain(entry.name), measured.krippendorff, units))
    return agreements


MISTAKES = 5
CLEAR = 0.9
"""Minimum posterior of another class for an answer to be a clear mistake."""
_LONGEST = 600


def mistakes(study: Study, names: Collection[str], watch: Watch) -> list[Section]:
    """List up to five clear mistakes of an annotator on each question, the most certain first."""
    sections = []
    questions = study.questions()
    for entry, step in steps_of(watch, questions):
        answered = read_answer(study, entry)
        if answered is None:
            continue
        title = "Your clearest mistakes"
        title += f": {plain(entry.name, 80)}" if len(questions) > 1 else ""
        blocks = _blocks(study, answered, names, step)
        if blocks:
            sections.append(Section(title, blocks))
    return sections


def _blocks(study: Study, answered: Answered, names: Collection[str], watch: Watch) -> list[Block]:
    question, entry = answered.question, answered.entry
    labels = question.labels
    rows = [row for row, name in enumerate(labels.annotators) if name in names]
    if question.excluded is not None and not np.isin(labels.annotator, rows).any():
        labels = question.excluded
    own = np.flatnonzero(np.isin(labels.annotator, rows))
    if not len(own):
        return []
    decided = apply_decisions(study, answered)
    assert labels.meaning is not None
    task, given = labels.task[own], labels.meaning[labels.label[own]]
    gold, fixed = question.truth[task], np.array([at in decided.decided for at in task.tolist()], dtype=bool)
    posterior, label = decided.posterior[task], decided.label[task]
    true = np.where(gold != OPEN, gold, posterior.argmax(axis=1))
    sure = np.where((gold != OPEN) | fixed, 2.0, posterior.max(axis=1, initial=0.0))
    covers = _covered_classes(decided.classes, answered.result.fusion.classes)
    contested = fixed & (gold != OPEN) & ~covers[label, gold]
    agrees = (given >= 0) & (covers[true, given] | (contested & covers[label, given]))
    wrong = np.flatnonzero(~agrees & (sure >= CLEAR))
    of_answer = np.where(given >= 0, answered.result.fusion.posterior[task, given], 0.0)
    chosen = wrong[np.lexsort((of_answer[wrong], -sure[wrong]))]
    _, first = np.unique(task[chosen], return_index=True)  # a repeated answer is one mistake
    chosen = chosen[np.sort(first)]
    if not len(chosen):
        return [Table("", ("",), [(f"No clear mistake among your {counted(len(own), 'answer')}.",)])]
    total, chosen = len(chosen), chosen[:MISTAKES]
    rows_of_table: list[tuple[str, ...]] = []
    pictures = []
    photographs = thumbnails(study, entry, task[chosen].tolist(), part(watch, 0.0, 1.0))
    for at in chosen.tolist():
        number = int(task[at])
        why = (
            f"gold task; the expert decided {plain(decided.classes[label[at]], 60)}" if contested[at]
            else "gold task" if gold[at] != OPEN else "decided by the expert" if fixed[at]
            else f"consensus, probability {posterior[at].max():.2f}"
        )  # fmt: skip
        answers = (labels.outputs[labels.label[own[at]]], decided.classes[true[at]], why)
        shown = photographs.get(number)
        if shown is not None:
            words = f"you: {plain(answers[0], 60)}; expected: {plain(answers[1], 60)} ({why})"
            pictures.append(Picture(shown.data, shown.width, shown.height, shown.title, words))
        texts = read_contents(study, entry.id, labels.tasks[number]).values()
        text = plain(" | ".join(texts), _LONGEST) if texts else ""
        rows_of_table.append((plain(labels.tasks[number], 80), *(plain(each, 60) for each in answers), text))
    columns = 5 if any(row[-1] for row in rows_of_table) else 4
    heads = ("Task", "Your answer", "Expected answer", "Known from", "Text")[:columns]
    rows_of_table = [row[:columns] for row in rows_of_table]
    note = (
        f"The clearest of {counted(total, 'task')} on which another answer is certain or has a probability "
        f"of {CLEAR:g} or more; you answered {counted(len(np.unique(task)), 'task')}."
    )
    table = Table("", heads, rows_of_table, note, frozenset(range(1, len(heads))))
    return [table, Gallery("", pictures)] if pictures else [table]


ANNOTATORS = AnnotatorFunctions(evidence, courses, preview, agreement=agreement, mistakes=mistakes)
