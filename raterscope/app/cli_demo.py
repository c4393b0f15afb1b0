"""`raterscope demo`: the sample studies, fused; their results; the window, or pictures of it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import Fusion
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.evaluation import Evaluation
from raterscope.algorithms.progress import Watch, part
from raterscope.app.cli_results import failures, make_folder
from raterscope.app.clicks.cli_fuse import evaluations_of, summary_of
from raterscope.app.clicks.results import Results, run_record, write_results
from raterscope.app.clicks.running import Answer, fuse_inputs, gather, keep
from raterscope.app.clicks.sample import STUDY, make_sample
from raterscope.app.clicks.sample import about as about_clicks
from raterscope.app.errors import InputError, plain
from raterscope.app.labels.demo import demonstrate as demonstrate_labels
from raterscope.app.labels.sample import about as about_labels
from raterscope.app.masks.demo import demonstrate as demonstrate_masks
from raterscope.app.masks.sample import about as about_masks
from raterscope.app.outcome import Outcome
from raterscope.app.pairs.demo import demonstrate as demonstrate_pairs
from raterscope.app.pairs.sample import about as about_pairs
from raterscope.app.samples import is_kept
from raterscope.app.study import Study, digest_of
from raterscope.app.terminal import ProgressLine, has_display

__all__ = ["demo"]

RADIUS = 8.0
"""How far from a simulated parasite a detection may lie, pixels: about a ring's radius."""

PICTURES = ("window.png", "window-masks.png", "window-labels.png", "window-pairs.png")

_PATIENCE = 120  # seconds for the picture
_TAKE = """
import sys, pathlib
from raterscope.app.screenshot import take
take(*map(pathlib.Path, sys.argv[1:]))
"""


def demo(options: argparse.Namespace) -> int:
    """Make the sample studies where there are none yet, fuse them, write the results, show them."""
    folder: Path = options.folder
    results = folder / "results"
    make_folder(results)
    with ProgressLine(sys.stderr) as watch:
        clicks, of_clicks, clicked = _clicks(folder, results, part(watch, 0.0, 0.4))
        masks, of_masks, masked = demonstrate_masks(folder, results, part(watch, 0.4, 0.8))
        labels, of_labels, labelled = demonstrate_labels(folder, results, part(watch, 0.8, 0.9))
        pairs, of_pairs, compared = demonstrate_pairs(folder, results, part(watch, 0.9, 1.0))
        with Study.open(masks) as study:
            text = f"{about_clicks()}\n{about_labels()}\n{about_pairs()}\n{about_masks(study)}"
        (folder / "ABOUT.txt").write_text(text, encoding="utf-8")
    for line in [*of_clicks, *of_masks, *of_labels, *of_pairs, f"the results of all are in {results}"]:
        print(line, flush=True)  # before the window is open, wherever it goes
    outcomes: list[Outcome[Any]] = [*clicked, *masked, *labelled, *compared]
    failures({str(number): outcome for number, outcome in enumerate(outcomes)})
    return _show([clicks, masks, labels, pairs], results)


def _clicks(folder: Path, results: Path, watch: Watch) -> tuple[Path, list[str], list[Outcome[Fusion]]]:
    """Make the sample of clicks, fuse it, write the results; gives the study, what to say, the outcomes."""
    clock = time.perf_counter()
    study_path = make_sample(folder, watch=part(watch, 0.0, 0.6))
    with Study.open(study_path) as study:
        images = [entry.id for entry in study.images()]
        inputs = gather(images, study, part(watch, 0.6, 0.65))
        answer = fuse_inputs(inputs, FusionPlan(), watch=part(watch, 0.65, 0.95))
        if not is_kept(study, digest_of(inputs.given), answer.plan.as_dict()):
            keep(answer, study, part(watch, 0.95, 1.0))
        truth = {name: study.truth(number) for name, number in inputs.items.items()}
    places = {name: np.column_stack([points.x, points.y]) for name, points in truth.items()}
    evaluations = evaluations_of(answer.outcomes, places, RADIUS)
    _write(results, answer, evaluations)
    said = [f"{study_path}: simulated smears, clicked on by a simulated crowd"]
    said += summary_of(inputs.given, answer.outcomes, evaluations, time.perf_counter() - clock)
    return study_path, said, list(answer.outcomes.values())


def _write(folder: Path, answer: Answer, evaluations: dict[str, Evaluation]) -> None:
    record = run_record(
        answer.plan, answer.outcomes.values(), started=answer.started, seconds=answer.seconds,
        digest=digest_of(answer.inputs.given), inputs=[{"file": STUDY, "simulated": True}],
    )  # fmt: skip
    write_results(folder, Results(answer.inputs.given, answer.outcomes, answer.plan, record, evaluations))


def _show(studies: Sequence[Path], results: Path) -> int:
    """Open the window on the first study; where it could not be seen, leave a picture of each."""
    if has_display():
        # A process of its own: Qt ends it where the display does not answer.
        window = subprocess.run([sys.executable, "-m", "raterscope", str(studies[0])], check=False)
        if window.returncode == 0:
            return 0
    pictures = [results / name for name in PICTURES]
    for study, picture in zip(studies, pictures, strict=True):
        _picture(study, picture)
    names = ", ".join(picture.name for picture in pictures)
    print(f"there is no display to open the window on; pictures of it are in {results}: {names}")
    return 0


def _picture(study: Path, picture: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TAKE, str(study.resolve()), str(picture.resolve())],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True, text=True, timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason was given"]
        raise InputError(f"the picture of the window could not be made: {plain(lines[-1], 200)}")
