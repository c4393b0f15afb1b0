"""`raterscope simulate`: the papers' set-ups as files."""

from __future__ import annotations

import argparse
import shlex
import sys

from raterscope.algorithms.progress import part
from raterscope.app.command_line.output import ProgressLine, tell, tell_files
from raterscope.app.simulation.setups import find_setup
from raterscope.app.simulation.simulate import commands_in_words, simulate, study_in

__all__ = ["simulate_files"]


def simulate_files(options: argparse.Namespace) -> int:
    """Draw a set-up and write it; say with which commands to go on."""
    setup = find_setup(options.setup)
    given = {spec.name: vars(options)[spec.name] for spec in setup.settings.specs() if spec.name in options}
    folder = options.output
    with ProgressLine(sys.stderr) as watch:
        drawn = simulate(setup, setup.settings(**given), folder, part(watch, 0.0, 0.8))
        study = study_in(setup, drawn, part(watch, 0.8, 1.0)) if options.study else None
    files = [*drawn.data, *drawn.truth, *drawn.beside, *([study] if study is not None else [])]
    tell_files(files, folder)
    fuse, read = commands_in_words(setup, drawn, folder)
    tell((), [fuse, read if study is None else f"raterscope {shlex.quote(str(study))}"])
    return 0
