"""The commands `demo`, which fuses the sample studies and shows them, and `simulate`."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.progress import part
from raterscope.app.command_line.arguments import entered
from raterscope.app.command_line.output import (
    ProgressLine,
    has_display,
    make_folder,
    print_files,
    print_results,
    raise_failures,
)
from raterscope.app.errors import InputError, plain
from raterscope.app.importing import import_files
from raterscope.app.kinds.registry import KINDS
from raterscope.app.report import write_report
from raterscope.app.sample_files import Tools

_PATIENCE = 480  # seconds for the pictures
_TAKE = """
import sys, pathlib
from raterscope.app.window.startup import take
studies, pictures = sys.argv[1::2], sys.argv[2::2]
for study, picture in zip(studies, pictures):
    take(pathlib.Path(study), pathlib.Path(picture))
"""


def demo(options: argparse.Namespace) -> int:
    """Make the sample studies where there are none yet, fuse them, write the results, show them."""
    folder: Path = options.folder
    results = folder / "results"
    make_folder(results)
    samples = [kind.load_sample() for kind in KINDS.values() if kind.load_sample is not None]
    tools, total = Tools(import_files, write_report), sum(sample.share for sample in samples)
    with ProgressLine(sys.stderr) as watch:
        demonstrated, start_time = [], 0.0
        for sample in samples:
            step = part(watch, start_time, start_time + sample.share / total)
            demonstrated.append(sample.demonstrate(folder, results, tools, step))
            start_time += sample.share / total
        text = "\n".join(
            sample.about(entry.study) for sample, entry in zip(samples, demonstrated, strict=True)
        )
        (folder / "ABOUT.txt").write_text(text, encoding="utf-8")
    for line in [
        *(line for sample in demonstrated for line in sample.words),
        f"the results of all are in {results}",
    ]:
        print(line, flush=True)  # before the window is open, wherever it goes
    outcomes = [outcome for sample in demonstrated for outcome in sample.outcomes]
    raise_failures({str(number): outcome for number, outcome in enumerate(outcomes)})
    return _show([sample.study for sample in demonstrated], [results / sample.picture for sample in samples])


def _show(studies: Sequence[Path], pictures: Sequence[Path]) -> int:
    """Open the window on the first study; without a display, save a picture of each."""
    if has_display():
        # In a separate process, because Qt ends it if the display does not answer.
        window = subprocess.run([sys.executable, "-m", "raterscope", str(studies[0])], check=False)
        if window.returncode == 0:
            return 0
    _take_pictures(studies, pictures)
    names = ", ".join(picture.name for picture in pictures)
    print(f"there is no display to open the window on; pictures of it are in {pictures[0].parent}: {names}")
    return 0


def _take_pictures(studies: Sequence[Path], pictures: Sequence[Path]) -> None:
    """Take a picture of the window with each study in it, in one process: loading Qt takes longest."""
    arguments = [str(path.resolve()) for pair in zip(studies, pictures, strict=True) for path in pair]
    process = subprocess.run(
        [sys.executable, "-c", _TAKE, *arguments],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True, text=True, timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if process.returncode:
        lines = process.stderr.strip().splitlines() or ["no reason was given"]
        raise InputError(f"the pictures of the window could not be made: {plain(lines[-1], 200)}")


def simulate_files(options: argparse.Namespace) -> int:
    """Simulate a set-up, write its files, and print the commands that fuse and import them."""
    from raterscope.app.simulation.setups import find_setup
    from raterscope.app.simulation.simulate import commands_in_words, simulate, study_in

    setup = find_setup(options.setup)
    folder = options.output
    with ProgressLine(sys.stderr) as watch:
        files_drawn = simulate(setup, entered(options, setup.settings), folder, part(watch, 0.0, 0.8))
        study = study_in(setup, files_drawn, part(watch, 0.8, 1.0)) if options.study else None
    files = [
        *files_drawn.data,
        *files_drawn.truth,
        *files_drawn.other_truth,
        *([study] if study is not None else []),
    ]
    print_files(files, folder)
    fuse_command, import_command = commands_in_words(setup, files_drawn, folder)
    print_results(
        (), [fuse_command, import_command if study is None else f"raterscope {shlex.quote(str(study))}"]
    )
    return 0
