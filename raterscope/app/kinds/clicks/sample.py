"""The sample study of clicks: files, study, fusion and results of the demo."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.simulation.click_crowds import gather_annotators, simulate_clicks
from raterscope.algorithms.simulation.smears import render_smear
from raterscope.app.kinds.clicks.command import summary_of
from raterscope.app.kinds.clicks.evaluation import evaluate_outcomes
from raterscope.app.kinds.clicks.exports import Results, write_results
from raterscope.app.kinds.clicks.runs import fuse_inputs, keep, run_record
from raterscope.app.kinds.clicks.runs import gather as gather_input
from raterscope.app.kinds.kind import Sample
from raterscope.app.sample_files import (
    Demonstrated,
    ImportFiles,
    Tools,
    keep_once,
    made_whole,
    write_picture,
    write_rows,
)
from raterscope.app.study import Study, digest_of

STUDY = "sample.rscope"
CLICKS = "simulated_clicks.csv"
TRUTH = "simulated_truth.csv"
RADIUS = 8.0
"""Largest distance of a detection from a simulated parasite, pixels: about a ring's radius."""

_SEED = 1905
_LOOKS = 0.5  # share of the smears that an annotator views
_TEXT = """\
The blood smears are drawn by a program, and the clicks are those of a simulated crowd. Nothing comes
from a patient or a volunteer.

simulated_smear_*.png   thick blood smears with parasites and with artefacts that look like them
{clicks:<23} clicks: annotator, image, x, y in pixels, time in seconds; a row without x and y
                        stands for an annotator who viewed the image and marked nothing
{truth:<23} true positions of the parasites: image, x, y
{study:<23} the study that Raterscope opens
"""


def make_sample(
    folder: Path, import_files: ImportFiles, *, smears: int = 12, annotators: int = 51, watch: Watch = silent
) -> Path:
    """Make the sample study and its files; return the study.

    `folder`: created if it does not exist. Existing files of the sample are replaced; an existing sample
    study is kept with its decisions.
    """
    study_path = folder / STUDY
    if study_path.exists():
        return study_path
    paths = write_files(folder, smears=smears, annotators=annotators, watch=part(watch, 0.0, 0.9))
    with made_whole(study_path) as study:
        import_files(study, [*paths, folder / CLICKS, folder / TRUTH], part(watch, 0.9, 1.0))
        study.settings.set_matching_radius(RADIUS)
    return study_path


def write_files(folder: Path, *, smears: int = 12, annotators: int = 51, watch: Watch = silent) -> list[Path]:
    """Write the smears, the clicks and the truth; return the smears' files."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(_SEED)
    crowd = gather_annotators(annotators, _SEED)
    paths, clicks, truth = [], [], []
    for number in range(1, smears + 1):
        name = f"simulated_smear_{number:02d}.png"
        watch((number - 1) / smears, f"drawing smear {number} of {smears}")
        # The third smear shows no parasites.
        parasites = 0 if number == 3 else int(rng.integers(4, 36))
        smear = render_smear(_SEED + number, parasites=parasites, artefacts=int(rng.integers(5, 14)))
        looked = tuple(annotator for annotator in crowd if rng.random() < _LOOKS) or crowd
        write_picture(folder / name, smear.image, "blood smear")
        clicks += _click_rows(name, simulate_clicks(smear, looked, _SEED + number))
        truth += [(name, f"{x:.1f}", f"{y:.1f}") for x, y in smear.parasites]
        paths.append(folder / name)
    write_rows(folder / CLICKS, ("annotator", "image", "x", "y", "time"), clicks)
    write_rows(folder / TRUTH, ("image", "x", "y"), truth)
    return paths


def about() -> str:
    """Describe the sample, which is simulated completely."""
    return _TEXT.format(clicks=CLICKS, truth=TRUTH, study=STUDY)


def _click_rows(name: str, clicks: Clicks) -> list[tuple[str, ...]]:
    assert clicks.time is not None
    rows: list[tuple[str, ...]] = [
        (clicks.annotators[annotator], name, f"{x:.1f}", f"{y:.1f}", f"{when:.2f}")
        for annotator, x, y, when in zip(clicks.annotator, clicks.x, clicks.y, clicks.time, strict=True)
    ]
    idle = np.flatnonzero(clicks.counts() == 0)
    return rows + [(clicks.annotators[annotator], name, "", "", "") for annotator in idle]


REPORT = "clicks-report.html"


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of clicks if it does not exist, fuse it, and write its results and a report."""
    clock = time.perf_counter()
    study_path = make_sample(folder, tools.import_files, watch=part(watch, 0.0, 0.6))
    with Study.open(study_path) as study:
        images = [entry.id for entry in study.images()]
        inputs = gather_input(images, study, part(watch, 0.6, 0.65))
        answer = fuse_inputs(inputs, FusionPlan(), watch=part(watch, 0.65, 0.9))
        digest = digest_of(inputs.given)
        keep_once(study, answer, digest, keep, part(watch, 0.9, 0.95))
        tools.write_report(study, results / REPORT, part(watch, 0.95, 1.0))
        radius = study.settings.matching_radius()
        true_positions = {name: study.truth(number).positions for name, number in inputs.items.items()}
    evaluations = evaluate_outcomes(answer.outcomes, true_positions, radius)
    record = run_record(
        answer.plan, inputs.given, answer.outcomes.values(), started=answer.started, seconds=answer.seconds,
        digest=digest, inputs=[{"file": STUDY, "simulated": True}], weights=inputs.weights,
    )  # fmt: skip
    write_results(results, Results(inputs.given, answer.outcomes, answer.plan, record, evaluations))
    words = [f"{study_path}: simulated smears, and clicks by a simulated crowd"]
    words += summary_of(inputs.given, answer.outcomes, evaluations, time.perf_counter() - clock, radius)
    return Demonstrated(study_path, words, list(answer.outcomes.values()))


SAMPLE = Sample(demonstrate, lambda _path: about(), "window.png", 0.4)
