"""What `raterscope demo` does with labels: the sample fused, its results written, and what to say of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.progress import Watch, part
from raterscope.app.command_line.results import make_folder
from raterscope.app.kinds.labels.command import summary_of
from raterscope.app.kinds.labels.comparing import assessed
from raterscope.app.kinds.labels.results import QuestionOutput, run_record, write_question
from raterscope.app.kinds.labels.running import Answer, Inputs, digest_of, fuse_inputs, gather, keep
from raterscope.app.kinds.labels.sample import STUDY, make_sample
from raterscope.app.sample_files import Demonstrated, Tools, keep_once
from raterscope.app.study import Study

__all__ = ["METHODS", "REPORT", "demonstrate"]

REPORT = "labels-report.html"
METHODS = ("majority", "pooled", "dynibcc")
"""The last is what the window shows."""


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of labels where there is none yet, fuse it, write its results and a report."""
    study_path = make_sample(folder, tools.import_files, watch=part(watch, 0.0, 0.4))
    with Study.open(study_path) as study:
        inputs = gather([question.id for question in study.questions()], study, part(watch, 0.4, 0.45))
        answers = _fused(study, inputs, part(watch, 0.45, 0.8))
        judged = _judged(answers)
        _write(results / "labels", answers, judged, part(watch, 0.8, 0.9))
        tools.write_report(study, results / REPORT, part(watch, 0.9, 1.0))
    words = [f"{study_path}: simulated cells, and what a simulated crowd says of them"]
    shown = answers[METHODS[-1]]
    words += summary_of(shown, shown.seconds, judged)
    outcomes = [outcome for one in answers.values() for outcome in one.outcomes.values()]
    return Demonstrated(study_path, words, outcomes)


def _fused(study: Study, inputs: Inputs, watch: Watch) -> dict[str, Answer]:
    answers = {}
    for done, method in enumerate(METHODS):
        step = part(watch, done / len(METHODS), (done + 1) / len(METHODS))
        answer = answers[method] = fuse_inputs(inputs, LabelPlan.make(method), step)
        keep_once(study, answer, digest_of(inputs.given), keep)
    return answers


def _judged(answers: Mapping[str, Answer]) -> dict[str, dict[str, Assessment]]:
    """Judge every method by the truths, for each question."""
    judged: dict[str, dict[str, Assessment]] = {}
    for method, answer in answers.items():
        for name, outcome in answer.outcomes.items():
            if outcome.fusion is not None:
                one = assessed(outcome.fusion, answer.inputs.given[name])
                if one is not None:
                    judged.setdefault(name, {})[method] = one
    return judged


def _write(
    folder: Path,
    answers: Mapping[str, Answer],
    judged: Mapping[str, Mapping[str, Assessment]],
    watch: Watch,
) -> None:
    """Write a folder for each method."""
    for done, (method, answer) in enumerate(answers.items()):
        for name, outcome in answer.outcomes.items():
            if outcome.fusion is None:
                continue
            here = folder / method
            make_folder(here)
            record = run_record(answer, name, [{"file": STUDY, "question": name, "simulated": True}])
            question = answer.inputs.given[name]
            output = QuestionOutput(question, answer.plan, outcome.fusion, record, judged.get(name, {}))
            write_question(here, output, part(watch, done / len(answers), (done + 1) / len(answers)))
