"""The sample study of labels: files, study, fusion and results of the demo."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.assessment import Assessment
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.simulation.label_crowds import (
    CHANGES,
    SimulatedLabels,
    scoring_crowd,
    simulate_labels,
)
from raterscope.algorithms.simulation.smears import draw_cell
from raterscope.app.command_line.output import make_folder
from raterscope.app.kinds.kind import Sample
from raterscope.app.kinds.labels.command import summary_of
from raterscope.app.kinds.labels.fusion_tables import QuestionOutput, run_record, write_question
from raterscope.app.kinds.labels.runs import (
    Answer,
    Inputs,
    assess_result,
    digest_of,
    fuse_inputs,
    gather,
    keep,
)
from raterscope.app.sample_files import (
    BEGUN,
    Demonstrated,
    ImportFiles,
    Tools,
    keep_once,
    made_whole,
    write_pictures,
    write_rows,
)
from raterscope.app.study import Study
from raterscope.app.study.labels import set_scheme
from raterscope.app.study.records import Scheme

STUDY = "labels.rscope"
VOTES = "simulated_votes.csv"
TRUTH = "simulated_cells_truth.csv"
PICTURES = "simulated_cells"
QUESTION = "Simulated: is there a parasite?"

_SEED = 7
_TASKS, _ANNOTATORS = 3200, 500
_KNOWN = 400  # tasks with known truth
_SHOWN = 400  # tasks with a picture, the most disputed
_STAGES = ("ring", "trophozoite", "schizont", "gametocyte")
_TEXT = """\
{study:<23} the study of labels. The cells are drawn by a program, and the crowd is simulated:
                        {annotators} annotators labelled {tasks:,} cells as -1 (no parasite), 1 (perhaps) or
                        3 (certainly a parasite). There are {kinds} kinds of annotators:
                        {behaviours};
                        {changing} of them change meanwhile: they learn, tire, or jump to another kind
{votes:<23} votes: annotator, task, label, time in seconds, question
{truth:<23}
                        the truth of {known} of these cells; the file does not list the others
{pictures:<23} pictures of {shown} cells, those on which the crowd agrees least
"""


def make_sample(
    folder: Path,
    import_files: ImportFiles,
    *,
    tasks: int = _TASKS,
    annotators: int = _ANNOTATORS,
    pictures: int = _SHOWN,
    watch: Watch = silent,
) -> Path:
    """Make the sample study and its files; return the study.

    `folder`: created if it does not exist. Existing files of the sample are replaced; an existing sample
    study is kept with its decisions. `pictures`: number of tasks with a picture.
    """
    study_path = folder / STUDY
    if study_path.exists():
        return study_path
    watch(0.0, "simulating a crowd")
    crowd = simulate_crowd(tasks, annotators)
    files = _write_tables(folder, crowd)
    doubt = ibcc(crowd.labels, watch=part(watch, 0.1, 0.3)).entropy()
    disputed = np.asarray(np.sort(np.argsort(-doubt, kind="stable")[:pictures]))
    files += _write_pictures(folder / PICTURES, crowd, disputed, part(watch, 0.3, 0.8))
    with made_whole(study_path) as study:
        import_files(study, files, part(watch, 0.8, 1.0))
        labels = crowd.labels
        assert labels.meaning is not None
        meaning = tuple(labels.meaning.tolist())
        for question in study.questions():
            set_scheme(study, question.id, Scheme(labels.outputs, labels.classes, meaning))
    return study_path


def simulate_crowd(tasks: int = _TASKS, annotators: int = _ANNOTATORS) -> SimulatedLabels:
    """Simulate the crowd of the sample."""
    return simulate_labels(scoring_crowd(tasks, annotators), _SEED)


def about() -> str:
    """Describe the sample, which is simulated completely."""
    crowd = simulate_crowd()
    return _TEXT.format(
        study=STUDY, votes=VOTES, truth=TRUTH, pictures=f"{PICTURES}/", tasks=_TASKS, annotators=_ANNOTATORS,
        kinds=len(crowd.behaviours), behaviours=", ".join(crowd.behaviours),
        changing=int((crowd.change != CHANGES.index("steady")).sum()), known=_KNOWN, shown=_SHOWN,
    )  # fmt: skip


def _write_tables(folder: Path, crowd: SimulatedLabels) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    labels = crowd.labels
    assert labels.time is not None
    votes = zip(
        labels.annotator.tolist(), labels.task.tolist(), labels.label.tolist(),
        (BEGUN + labels.time).tolist(),
        strict=True,
    )  # fmt: skip
    write_rows(
        folder / VOTES,
        ("annotator", "task", "label", "time", "question"),
        (
            (labels.annotators[annotator], labels.tasks[task], labels.outputs[label], f"{when:.1f}", QUESTION)
            for annotator, task, label, when in votes
        ),
    )
    chosen = np.random.default_rng(_SEED).permutation(len(labels.tasks))[:_KNOWN]
    known_truths = ((labels.tasks[at], labels.classes[crowd.truth[at]]) for at in np.sort(chosen).tolist())
    write_rows(folder / TRUTH, ("task", "label"), known_truths)
    return [folder / VOTES, folder / TRUTH]


def _write_pictures(
    folder: Path, crowd: SimulatedLabels, tasks: NDArray[np.int64], watch: Watch
) -> list[Path]:
    def draw(number: int) -> NDArray[np.uint8]:
        task = int(tasks[number])
        stage = _STAGES[task % len(_STAGES)] if crowd.truth[task] else "uninfected"
        return draw_cell(task, stage, float(crowd.difficulty[task]))

    return write_pictures(folder, [crowd.labels.tasks[task] for task in tasks.tolist()], draw, watch)


REPORT = "labels-report.html"
METHODS = ("majority", "pooled", "dynibcc")
"""Algorithms of the demo; the window shows the result of the last."""


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of labels if it does not exist, fuse it, and write its results and a report."""
    study_path = make_sample(folder, tools.import_files, watch=part(watch, 0.0, 0.4))
    with Study.open(study_path) as study:
        inputs = gather([question.id for question in study.questions()], study, part(watch, 0.4, 0.45))
        answers = _fused(study, inputs, part(watch, 0.45, 0.8))
        judged = _judged(answers)
        _write(results / "labels", answers, judged, part(watch, 0.8, 0.9))
        tools.write_report(study, results / REPORT, part(watch, 0.9, 1.0))
    words = [f"{study_path}: simulated cells, and labels by a simulated crowd"]
    answer = answers[METHODS[-1]]
    words += summary_of(answer, judged)
    outcomes = [outcome for answer in answers.values() for outcome in answer.outcomes.values()]
    return Demonstrated(study_path, words, outcomes)


def _fused(study: Study, inputs: Inputs, watch: Watch) -> dict[str, Answer]:
    answers = {}
    for method, step in steps_of(watch, METHODS):
        answer = answers[method] = fuse_inputs(inputs, LabelPlan.make(method), step)
        keep_once(study, answer, digest_of(inputs.given), keep)
    return answers


def _judged(answers: Mapping[str, Answer]) -> dict[str, dict[str, Assessment]]:
    """Assess every method by the truths, for each question."""
    judged: dict[str, dict[str, Assessment]] = {}
    for method, answer in answers.items():
        for name, result in answer.fusions.items():
            assessment = assess_result(result, answer.inputs.given[name])
            if assessment is not None:
                judged.setdefault(name, {})[method] = assessment
    return judged


def _write(
    folder: Path, answers: Mapping[str, Answer], judged: Mapping[str, Mapping[str, Assessment]], watch: Watch
) -> None:
    """Write one folder per method."""
    for (method, answer), step in steps_of(watch, answers.items()):
        for name, result in answer.fusions.items():
            make_folder(folder / method)
            source = {"file": STUDY, "question": name, "simulated": True}
            record = partial(run_record, answer, name, [source])
            question = answer.inputs.given[name]
            output = QuestionOutput(question, answer.plan, result, record, judged.get(name, {}))
            write_question(folder / method, output, step)


SAMPLE = Sample(demonstrate, lambda _path: about(), "window-labels.png", 0.1)
