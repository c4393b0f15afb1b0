"""`raterscope fuse labels STUDY`: the questions of a study fused, or one of its runs written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.progress import Watch, part
from raterscope.app.command_line.items import chosen
from raterscope.app.command_line.results import make_folder
from raterscope.app.errors import InputError
from raterscope.app.formats.records import STUDY_SUFFIX
from raterscope.app.kinds.labels.answers import plan_of, read_answer
from raterscope.app.kinds.labels.running import Answer, Inputs, fuse_inputs, gather
from raterscope.app.outcome import Outcome
from raterscope.app.study import Study

__all__ = ["fuse_study", "is_study"]

_OF_FILES = {
    "truth": "--truth",
    "outputs": "--outputs",
    "classes": "--classes",
    "stands": "--stands",
    "prior": "--prior",
    "annotator": "--annotator",
    "subsample": "--subsample",
    "mapping": "--map",
}
"""Options that a study has answered already."""


def is_study(paths: Sequence[Path]) -> bool:
    """Tell whether a study is named, by its suffix."""
    return any(path.suffix.casefold() == STUDY_SUFFIX for path in paths)


def fuse_study(
    options: argparse.Namespace, plan: LabelPlan, watch: Watch
) -> tuple[Answer, list[dict[str, object]]]:
    """Fuse the questions of a study as its window does, or read the results of a run.

    Decisions are held fixed and excluded annotators are left out. The study is not changed.

    Parameters
    ----------
    options : argparse.Namespace
        The command line's.
    plan : LabelPlan
        Without effect where `options.run` names a run.
    watch : Watch

    Returns
    -------
    Answer
    list of dict
        What it is made from, for run.json.

    Raises
    ------
    InputError
        When other files are named beside the study, for options of files, and for unknown runs or questions.
    """
    path: Path = options.labels[0]
    if len(options.labels) > 1:
        raise InputError("is a study; expected no other file beside it", file=path)
    given = next((option for name, option in _OF_FILES.items() if getattr(options, name)), None)
    if given is not None:
        raise InputError(f"is a study, which has what {given} would say; expected no {given}", file=path)
    if options.run is not None and (options.settings or options.hold_truth or options.folds):
        raise InputError("--run writes what was fused; expected no --set, --hold-truth or --folds beside it")
    names = [] if options.question is None else [options.question]
    with Study.open(path, to_read=True) as study, study.shown.only(options.run):
        questions = [entry.id for entry in chosen(study, names, "labels", by_question=True)]
        make_folder(options.output)
        if options.run is not None:
            answer = _run_shown(study, options.run, questions)
        else:
            answer = fuse_inputs(gather(questions, study, part(watch, 0.0, 0.2)), plan, part(watch, 0.2, 1))
    inputs = answer.inputs
    source = {"file": path.name, "last_decision": inputs.decision, "excluded": list(inputs.excluded)}
    return answer, [source | ({} if options.run is None else {"run": options.run})]


def _run_shown(study: Study, number: int, questions: Sequence[int]) -> Answer:
    """Read the results of a run, with the votes that it was made from."""
    run = study.run(number)
    plan = plan_of(run) if run.kind == "labels" else None
    if plan is None:
        what = (
            f"run {number} is of {run.kind}"
            if run.kind != "labels"
            else f"run {number} is of another version"
        )
        raise InputError(f"{what}; expected a run of labels", file=study.path)
    items, given, outcomes = {}, {}, {}
    for question in questions:
        answered = read_answer(study, study.question(question))
        if answered is not None:
            name = answered.entry.name
            items[name], given[name] = question, answered.question
            outcomes[name] = Outcome(name, answered.result, "", "", run.seconds)
    if not outcomes:
        raise InputError(f"run {number} has no result for this question", file=study.path)
    inputs = Inputs(items, given, run.known, run.imported or 0, run.excluded)
    return Answer(plan, inputs, outcomes, run.started, run.seconds)
