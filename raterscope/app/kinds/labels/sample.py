"""The sample of labels: what a simulated crowd says of simulated cells, the truth of some, and a study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.simulation.cell_pictures import draw_cell
from raterscope.algorithms.simulation.label_crowds import (
    CHANGES,
    SimulatedLabels,
    scoring_crowd,
    simulate_labels,
)
from raterscope.app.sample_files import BEGUN, ImportFiles, made_whole, write_pictures, write_rows
from raterscope.app.study.labels import set_scheme
from raterscope.app.study.records import Scheme

__all__ = ["QUESTION", "STUDY", "about", "make_sample", "simulated"]

STUDY = "labels.rscope"
VOTES = "simulated_votes.csv"
TRUTH = "simulated_cells_truth.csv"
PICTURES = "simulated_cells"
QUESTION = "Simulated: is there a parasite?"

_SEED = 7
_TASKS, _ANNOTATORS = 3200, 500
_KNOWN = 400  # tasks whose truth is told
_SHOWN = 400  # tasks with a picture, the most disputed
_STAGES = ("ring", "trophozoite", "schizont", "gametocyte")
_TEXT = """\
{study:<23} the study of labels. Simulated are the cells, which are drawn by a program, and
                        the annotators, who are random numbers: {annotators} of them said of {tasks:,} cells
                        -1 (no parasite), 1 (perhaps) or 3 (surely a parasite). They are of {kinds}
                        kinds: {behaviours};
                        {changing} of them change meanwhile: they learn, tire, or jump to another kind
{votes:<23} who said what of which cell: annotator, task, label, time in seconds, question
{truth:<23}
                        the truth of {known} of these cells; that of the others is not told
{pictures:<23} pictures of {shown} cells, those that the crowd agrees on least
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
    """Make the sample study and its files.

    Parameters
    ----------
    folder : Path
        Made where it does not exist. Files of the sample that are there are replaced; a sample study that is
        there is kept with all that was decided in it.
    import_files : ImportFiles
    tasks, annotators : int
    pictures : int
        As many of the tasks have one.
    watch : Watch

    Returns
    -------
    Path
        The study.
    """
    study_path = folder / STUDY
    if study_path.exists():
        return study_path
    watch(0.0, "simulating a crowd")
    crowd = simulated(tasks, annotators)
    files = _write_tables(folder, crowd)
    shown = _disputed(crowd, pictures, part(watch, 0.1, 0.3))
    files += _write_pictures(folder / PICTURES, crowd, shown, part(watch, 0.3, 0.8))
    with made_whole(study_path) as study:
        import_files(study, files, part(watch, 0.8, 1.0))
        labels = crowd.labels
        assert labels.meaning is not None
        meaning = tuple(labels.meaning.tolist())
        for question in study.questions():
            set_scheme(study, question.id, Scheme(labels.outputs, labels.classes, meaning))
    return study_path


def simulated(tasks: int = _TASKS, annotators: int = _ANNOTATORS) -> SimulatedLabels:
    """Draw the crowd of the sample, with all that is true of it."""
    return simulate_labels(scoring_crowd(tasks, annotators), _SEED)


def about() -> str:
    """Say what in the sample is simulated: all of it."""
    crowd = simulated()
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
            (labels.annotators[who], labels.tasks[task], labels.outputs[said], f"{when:.1f}", QUESTION)
            for who, task, said, when in votes
        ),
    )
    chosen = np.random.default_rng(_SEED).permutation(len(labels.tasks))[:_KNOWN]
    known = ((labels.tasks[at], labels.classes[crowd.truth[at]]) for at in np.sort(chosen).tolist())
    write_rows(folder / TRUTH, ("task", "label"), known)
    return [folder / VOTES, folder / TRUTH]


def _disputed(crowd: SimulatedLabels, count: int, watch: Watch) -> NDArray[np.int64]:
    """Give the tasks that the crowd leaves in most doubt."""
    doubt = ibcc(crowd.labels, watch=watch).entropy()
    return np.asarray(np.sort(np.argsort(-doubt, kind="stable")[:count]))


def _write_pictures(
    folder: Path, crowd: SimulatedLabels, tasks: NDArray[np.int64], watch: Watch
) -> list[Path]:
    def draw(number: int) -> NDArray[np.uint8]:
        task = int(tasks[number])
        stage = _STAGES[task % len(_STAGES)] if crowd.truth[task] else "uninfected"
        return draw_cell(task, stage, float(crowd.difficulty[task]))

    return write_pictures(folder, [crowd.labels.tasks[task] for task in tasks.tolist()], draw, watch)
