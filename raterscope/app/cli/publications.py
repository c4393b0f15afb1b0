"""Commands on publications: `references` lists them, `simulate` draws set-ups, `papers` measures figures.

The heavy modules are imported by the commands that need them.
"""

from __future__ import annotations

import argparse
import shlex
import sys

from raterscope.algorithms.progress import part
from raterscope.app.command_line.output import ProgressLine, one_line, print_files, print_results
from raterscope.app.errors import InputError, plain
from raterscope.resources.bibliography import bibliography, references_text


def references(options: argparse.Namespace) -> int:
    """List all works, or those of the keys that are named, as text or as BibTeX."""
    works = bibliography()
    missing = [key for key in options.keys if key not in works]
    if missing:
        raise InputError(f"there is no reference {plain(missing[0], 40)}; `raterscope references` lists all")
    keys = options.keys or list(works)
    if options.bibtex:
        print("\n\n".join(works[key].source for key in keys))
    else:
        for key, line in zip(keys, references_text(keys), strict=True):
            print(f"{key}\t{line}")
    return 0


def simulate_files(options: argparse.Namespace) -> int:
    """Draw a set-up, write its files, and print the commands that fuse and import them."""
    from raterscope.app.simulation.setups import find_setup
    from raterscope.app.simulation.simulate import commands_in_words, simulate, study_in

    setup = find_setup(options.setup)
    settings = {
        spec.name: vars(options)[spec.name] for spec in setup.settings.specs() if spec.name in options
    }
    folder = options.output
    with ProgressLine(sys.stderr) as watch:
        files_drawn = simulate(setup, setup.settings(**settings), folder, part(watch, 0.0, 0.8))
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


def papers(options: argparse.Namespace) -> int:
    """Measure the papers' figures that are not stored yet, and write the page."""
    from raterscope.app.papers.page import make_page

    with ProgressLine(sys.stderr) as watch:
        page = make_page(
            options.output, watch, names=options.only, full=options.full, data=options.data,
            measuring=not options.page,
        )  # fmt: skip
    print(one_line(str(page)))
    return 0
