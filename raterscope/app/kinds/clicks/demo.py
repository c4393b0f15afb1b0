"""What `raterscope demo` does with clicks: the sample fused, its results written, and what to say of them."""

from __future__ import annotations

import time
from pathlib import Path

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch, part
from raterscope.app.kinds.clicks.accuracy import evaluate_outcomes
from raterscope.app.kinds.clicks.command import summary_of
from raterscope.app.kinds.clicks.results import Results, run_record, write_results
from raterscope.app.kinds.clicks.running import fuse_inputs, gather, keep
from raterscope.app.kinds.clicks.sample import STUDY, make_sample
from raterscope.app.sample_files import Demonstrated, Tools, keep_once
from raterscope.app.study import Study, digest_of

__all__ = ["demonstrate"]

REPORT = "clicks-report.html"


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of clicks where there is none yet, fuse it, write its results and a report."""
    clock = time.perf_counter()
    study_path = make_sample(folder, tools.import_files, watch=part(watch, 0.0, 0.6))
    with Study.open(study_path) as study:
        images = [entry.id for entry in study.images()]
        inputs = gather(images, study, part(watch, 0.6, 0.65))
        answer = fuse_inputs(inputs, FusionPlan(), watch=part(watch, 0.65, 0.9))
        digest = digest_of(inputs.given)
        keep_once(study, answer, digest, keep, part(watch, 0.9, 0.95))
        tools.write_report(study, results / REPORT, part(watch, 0.95, 1.0))
        radius = study.settings.matching_radius()
        places = {name: study.truth(number).places for name, number in inputs.items.items()}
    evaluations = evaluate_outcomes(answer.outcomes, places, radius)
    record = run_record(
        answer.plan, answer.outcomes.values(), started=answer.started, seconds=answer.seconds, digest=digest,
        inputs=[{"file": STUDY, "simulated": True}], weights=inputs.weights,
    )  # fmt: skip
    write_results(results, Results(inputs.given, answer.outcomes, answer.plan, record, evaluations))
    words = [f"{study_path}: simulated smears, clicked on by a simulated crowd"]
    words += summary_of(inputs.given, answer.outcomes, evaluations, time.perf_counter() - clock, radius)
    return Demonstrated(study_path, words, list(answer.outcomes.values()))
