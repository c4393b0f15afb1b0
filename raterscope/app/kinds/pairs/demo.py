"""What `raterscope demo` does with pairs: the sample fused, its results written, and what to say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.pairs import PairFusion
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.progress import Watch, part
from raterscope.app.command_line.results import make_folder
from raterscope.app.kinds.pairs.command import summary_of
from raterscope.app.kinds.pairs.comparing import Beside, beside
from raterscope.app.kinds.pairs.results import QuestionOutput, run_record, write_question
from raterscope.app.kinds.pairs.running import Answer, digest_of, fuse_inputs, gather, keep
from raterscope.app.kinds.pairs.sample import STUDY, make_sample, simulated
from raterscope.app.sample_files import Demonstrated, Tools, keep_once
from raterscope.app.study import Study

__all__ = ["REPORT", "demonstrate"]

REPORT = "pairs-report.html"


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of pairs where there is none yet, fuse it, write its results and a report."""
    study_path = make_sample(folder, part(watch, 0.0, 0.4))
    with Study.open(study_path) as study:
        inputs = gather([question.id for question in study.pair_questions()], study, part(watch, 0.4, 0.45))
        answer = fuse_inputs(inputs, PairPlan(), part(watch, 0.45, 0.7))
        keep_once(study, answer, digest_of(inputs.given), keep)
        others = _write(results / "pairs", answer, part(watch, 0.7, 0.8))
        tools.write_report(study, results / REPORT, part(watch, 0.8, 1.0))
    words = [f"{study_path}: simulated cells, compared in pairs by a simulated crowd"]
    words += summary_of(answer, answer.seconds, others)
    words += [
        _against_truth(outcome.fusion, inputs.given[name].annotators)
        for name, outcome in answer.outcomes.items()
        if outcome.fusion is not None
    ]
    return Demonstrated(study_path, words, list(answer.outcomes.values()))


def _against_truth(fusion: PairFusion, annotators: Sequence[str]) -> str:
    """Say who of the simulated crowd was found: it is known who prefers a side."""
    crowd = simulated()
    biased = {name for name, one in zip(crowd.pairs.annotators, crowd.biased.tolist(), strict=True) if one}
    flagged = {name for name, one in zip(annotators, fusion.flagged.tolist(), strict=True) if one}
    return (
        f"{len(flagged & biased)} of the {len(biased)} simulated annotators who prefer a side are flagged, "
        f"and {len(flagged - biased)} who do not"
    )


def _write(folder: Path, answer: Answer, watch: Watch) -> dict[str, Beside]:
    """Write the results; gives what stands beside the fusion of each question."""
    others = {}
    for name, outcome in answer.outcomes.items():
        if outcome.fusion is None:
            continue
        make_folder(folder)
        pairs = answer.inputs.given[name]
        others[name] = beside(pairs, answer.plan, outcome.fusion, part(watch, 0.0, 0.5))
        record = run_record(
            answer, name, [{"file": STUDY, "question": name, "simulated": True}], others[name]
        )
        output = QuestionOutput(pairs, answer.plan, outcome.fusion, record)
        write_question(folder, output, part(watch, 0.5, 1.0))
    return others
