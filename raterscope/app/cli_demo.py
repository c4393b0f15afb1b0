"""`raterscope demo`: the sample study, fused; its results; the window, or a picture of it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.evaluation import Evaluation
from raterscope.algorithms.progress import part
from raterscope.app.clicks.cli_fuse import evaluations_of, failures, summary_of
from raterscope.app.clicks.results import Results, run_record, write_results
from raterscope.app.clicks.running import Answer, fuse_inputs, gather, keep
from raterscope.app.clicks.sample import STUDY, make_sample
from raterscope.app.errors import InputError, plain
from raterscope.app.outcome import versions
from raterscope.app.study import Study, digest_of
from raterscope.app.terminal import ProgressLine, has_display

__all__ = ["demo"]

RADIUS = 8.0
"""How far from a simulated parasite a detection may lie, pixels: about a ring's radius."""

_PATIENCE = 120  # seconds for the picture
_TAKE = """
import sys, pathlib
from raterscope.app.screenshot import take
take(*map(pathlib.Path, sys.argv[1:]))
"""


def demo(options: argparse.Namespace) -> int:
    """Make the sample study where there is none yet, fuse it, write the results, show it."""
    folder: Path = options.folder
    clock = time.perf_counter()
    with ProgressLine(sys.stderr) as watch:
        study_path = make_sample(folder, watch=part(watch, 0.0, 0.6))
        with Study.open(study_path) as study:
            images = [entry.id for entry in study.images()]
            inputs = gather(images, study, part(watch, 0.6, 0.65))
            answer = fuse_inputs(inputs, FusionPlan(), watch=part(watch, 0.65, 0.95))
            if not _is_kept(answer, study):
                keep(answer, study, part(watch, 0.95, 1.0))
            truth = {name: study.truth(number) for name, number in inputs.images.items()}
    places = {name: np.column_stack([points.x, points.y]) for name, points in truth.items()}
    evaluations = evaluations_of(answer.outcomes, places, RADIUS)
    results = folder / "results"
    written = _write(results, answer, evaluations)
    print(f"{study_path}: simulated smears, clicked on by a simulated crowd")
    for line in summary_of(inputs.clicks, answer.outcomes, evaluations, time.perf_counter() - clock):
        print(line)
    print(f"{', '.join(path.name for path in written)} in {results}")
    failures(answer.outcomes)
    return _show(study_path, results)


def _write(folder: Path, answer: Answer, evaluations: dict[str, Evaluation]) -> list[Path]:
    record = run_record(
        answer.plan, answer.outcomes.values(), started=answer.started, seconds=answer.seconds,
        digest=digest_of(answer.inputs.clicks), inputs=[{"file": STUDY, "simulated": True}],
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    return write_results(
        folder, Results(answer.inputs.clicks, answer.outcomes, answer.plan, record, evaluations)
    )


def _is_kept(answer: Answer, study: Study) -> bool:
    """Tell whether the study has this very run already: the demo may be shown many times."""
    digest, settings = digest_of(answer.inputs.clicks), answer.plan.as_dict()
    return any(
        (run.digest, run.settings, run.versions) == (digest, settings, versions()) for run in study.runs()
    )


def _show(study: Path, results: Path) -> int:
    """Open the window; where it could not be seen, leave a picture of it."""
    if has_display():
        # A process of its own: Qt ends it where the display does not answer.
        window = subprocess.run([sys.executable, "-m", "raterscope", str(study)], check=False)
        if window.returncode == 0:
            return 0
    picture = results / "window.png"
    done = subprocess.run(
        [sys.executable, "-c", _TAKE, str(study.resolve()), str(picture.resolve())],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True, text=True, timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason was given"]
        raise InputError(f"the picture of the window could not be made: {plain(lines[-1], 200)}")
    print(f"there is no display to open the window on; a picture of it is in {picture}")
    return 0
