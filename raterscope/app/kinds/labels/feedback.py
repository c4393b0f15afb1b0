"""The clearest mistakes of one annotator of labels, for their feedback page."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.labels.exports import apply_decisions
from raterscope.app.kinds.labels.report.sections import thumbnails
from raterscope.app.kinds.labels.runs import Answered, read_answer
from raterscope.app.page.contents import Block, Gallery, Picture, Section, Table
from raterscope.app.study import Study
from raterscope.app.study.task_contents import read_contents

MISTAKES = 5
CLEAR = 0.9
"""Posterior of another class from which an answer counts as a clear mistake."""
_LONGEST = 600


def mistakes(study: Study, names: Collection[str], watch: Watch) -> list[Section]:
    """List up to five clear mistakes of an annotator on each question, the certain ones first."""
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
    contested = fixed & (gold != OPEN) & (gold != label)
    agrees = (given == true) | (contested & (given == label))
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
