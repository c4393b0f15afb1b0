"""The sample study of pairs: files, study, fusion and results of the demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs import PairFusion
from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.algorithms.pairs.data import Pairs
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.simulation.pair_crowds import (
    WAYS,
    PairCrowd,
    SimulatedPairs,
    draw_item,
    simulate_pairs,
)
from raterscope.app.command_line.output import make_folder
from raterscope.app.formats.image_heads import read_image
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.kinds.kind import Sample
from raterscope.app.kinds.pairs.command import other_results_of, summary_of
from raterscope.app.kinds.pairs.exports import QuestionOutput, run_record, write_question
from raterscope.app.kinds.pairs.runs import Answer, OtherResults, digest_of, fuse_inputs, gather, keep
from raterscope.app.sample_files import (
    BEGUN,
    Demonstrated,
    Tools,
    keep_once,
    made_whole,
    write_pictures,
    write_rows,
)
from raterscope.app.study import Study
from raterscope.app.study.labels import link_pictures
from raterscope.app.study.pairs import add_pairs

STUDY = "pairs.rscope"
COMPARISONS = "simulated_pairs.csv"
PICTURES = "simulated_pair_cells"
QUESTION = "Simulated: which cell is more infected?"

_SEED = 5
_CROWD = PairCrowd(lopsided=0.8)
"""The simulated crowd. Some cells are more often on the left: a position bias changes the ranking."""

_TEXT = """\
{study:<23} the study of pairs. The cells are drawn by a program, and the crowd is simulated:
                        {annotators} annotators chose {comparisons:,} times which of two of {items} cells is
                        more infected, left or right. {biased} of them prefer a side:
                        {ways}
{file:<23} comparisons: annotator, left, right, choice, time in seconds, question
{pictures:<23} pictures of the {items} cells
"""


def make_sample(folder: Path, watch: Watch = silent) -> Path:
    """Make the sample study and its files; return the study.

    `folder`: created if it does not exist. Existing files of the sample are replaced; an existing sample
    study is kept with its decisions.
    """
    study_path = folder / STUDY
    if study_path.exists():
        return study_path
    watch(0.0, "simulating a crowd that compares pairs")
    crowd = simulate_crowd()
    folder.mkdir(parents=True, exist_ok=True)
    _write_comparisons(folder / COMPARISONS, crowd.pairs)
    draw = partial(draw_item, crowd)
    pictures = write_pictures(folder / PICTURES, crowd.pairs.items, draw, part(watch, 0.1, 0.7))
    with made_whole(study_path) as study:
        (table,) = read_pairs(folder / COMPARISONS, watch=part(watch, 0.7, 0.8))
        add_pairs(study, table, part(watch, 0.8, 0.9))
        study.add_images([read_image(path) for path in pictures], part(watch, 0.9, 1.0))
        link_pictures(study)
    return study_path


@cache
def simulate_crowd() -> SimulatedPairs:
    """Simulate the crowd of the sample."""
    return simulate_pairs(_CROWD, _SEED)


def about() -> str:
    """Describe the sample, which is simulated completely."""
    crowd = simulate_crowd()
    counts = np.bincount(crowd.way, minlength=len(WAYS)).tolist()
    always, mostly, doubt, tiring = counts[1:]
    moves = (
        f"{always} always, {mostly} mostly, {doubt} when in doubt,\n"
        f"{'':24}{tiring} as they begin to tire; {int((crowd.side > 0).sum())} the left one"
    )
    return _TEXT.format(
        study=STUDY, file=COMPARISONS, pictures=f"{PICTURES}/", annotators=_CROWD.annotators,
        comparisons=len(crowd.pairs), items=_CROWD.items, biased=int(crowd.biased.sum()), ways=moves,
    )  # fmt: skip


def _write_comparisons(path: Path, pairs: Pairs) -> None:
    assert pairs.time is not None
    rows = zip(
        pairs.annotator.tolist(), pairs.left.tolist(), pairs.right.tolist(), pairs.choice.tolist(),
        pairs.time.tolist(), strict=True,
    )  # fmt: skip
    write_rows(
        path,
        ("annotator", "left", "right", "choice", "time", "question"),
        (
            (
                pairs.annotators[annotator], pairs.items[left], pairs.items[right],
                "left" if choice > 0 else "right", f"{BEGUN + when:.1f}", QUESTION,
            )
            for annotator, left, right, choice, when in rows
        ),
    )  # fmt: skip


REPORT = "pairs-report.html"


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of pairs if it does not exist, fuse it, and write its results and a report."""
    study_path = make_sample(folder, part(watch, 0.0, 0.4))
    with Study.open(study_path) as study:
        inputs = gather([question.id for question in study.pair_questions()], study, part(watch, 0.4, 0.45))
        answer = fuse_inputs(inputs, PairPlan(), part(watch, 0.45, 0.7))
        keep_once(study, answer, digest_of(inputs.given), keep)
        other_results = other_results_of(answer, part(watch, 0.7, 0.75))
        _write(results / "pairs", answer, other_results, part(watch, 0.75, 0.8))
        tools.write_report(study, results / REPORT, part(watch, 0.8, 1.0))
    words = [f"{study_path}: simulated cells, compared in pairs by a simulated crowd"]
    words += summary_of(answer, other_results)
    words += [
        _against_truth(fusion, inputs.given[name].annotators) for name, fusion in answer.fusions.items()
    ]
    return Demonstrated(study_path, words, list(answer.outcomes.values()))


def _against_truth(fusion: PairFusion, annotators: Sequence[str]) -> str:
    """Compare the flagged annotators with the simulated ones who prefer a side."""
    crowd = simulate_crowd()
    biased = {name for name, flag in zip(crowd.pairs.annotators, crowd.biased.tolist(), strict=True) if flag}
    flagged = {name for name, flag in zip(annotators, fusion.flagged.tolist(), strict=True) if flag}
    return (
        f"{len(flagged & biased)} of the {len(biased)} simulated annotators who prefer a side are flagged, "
        f"and {len(flagged - biased)} who do not"
    )


def _write(folder: Path, answer: Answer, other_results: Mapping[str, OtherResults], watch: Watch) -> None:
    for name, fusion in answer.fusions.items():
        make_folder(folder)
        source = {"file": STUDY, "question": name, "simulated": True}
        record = run_record(answer, name, [source], other_results[name])
        write_question(folder, QuestionOutput(answer.inputs.given[name], answer.plan, fusion, record), watch)


SAMPLE = Sample(demonstrate, lambda _path: about(), "window-pairs.png", 0.1)
