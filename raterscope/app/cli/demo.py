"""`raterscope demo`: the sample studies, fused; their results; the window, or pictures of it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.progress import part
from raterscope.app.cli.demos.clicks import demonstrate as demonstrate_clicks
from raterscope.app.cli.demos.labels import demonstrate as demonstrate_labels
from raterscope.app.cli.demos.masks import demonstrate as demonstrate_masks
from raterscope.app.cli.demos.pairs import demonstrate as demonstrate_pairs
from raterscope.app.cli.results import failures, make_folder
from raterscope.app.cli.terminal import ProgressLine, has_display
from raterscope.app.errors import InputError, plain
from raterscope.app.samples.clicks import about as about_clicks
from raterscope.app.samples.labels import about as about_labels
from raterscope.app.samples.making import Demonstrate
from raterscope.app.samples.masks import about as about_masks
from raterscope.app.samples.pairs import about as about_pairs
from raterscope.app.study import Study

__all__ = ["demo"]

DEMONSTRATIONS: tuple[tuple[Demonstrate, float], ...] = (
    (demonstrate_clicks, 0.4),
    (demonstrate_masks, 0.4),
    (demonstrate_labels, 0.1),
    (demonstrate_pairs, 0.1),
)
"""With the share of the time that each takes."""

PICTURES = ("window.png", "window-masks.png", "window-labels.png", "window-pairs.png")

_PATIENCE = 480  # seconds for the pictures
_TAKE = """
import sys, pathlib
from raterscope.app.window.screenshot import take
studies, pictures = sys.argv[1::2], sys.argv[2::2]
for study, picture in zip(studies, pictures):
    take(pathlib.Path(study), pathlib.Path(picture))
"""


def demo(options: argparse.Namespace) -> int:
    """Make the sample studies where there are none yet, fuse them, write the results, show them."""
    folder: Path = options.folder
    results = folder / "results"
    make_folder(results)
    with ProgressLine(sys.stderr) as watch:
        shown, begun = [], 0.0
        for demonstrate, share in DEMONSTRATIONS:
            shown.append(demonstrate(folder, results, part(watch, begun, begun + share)))
            begun += share
        with Study.open(shown[1].study) as masks:
            text = f"{about_clicks()}\n{about_labels()}\n{about_pairs()}\n{about_masks(masks)}"
        (folder / "ABOUT.txt").write_text(text, encoding="utf-8")
    for line in [*(line for one in shown for line in one.words), f"the results of all are in {results}"]:
        print(line, flush=True)  # before the window is open, wherever it goes
    outcomes = [outcome for one in shown for outcome in one.outcomes]
    failures({str(number): outcome for number, outcome in enumerate(outcomes)})
    return _show([one.study for one in shown], results)


def _show(studies: Sequence[Path], results: Path) -> int:
    """Open the window on the first study; where it could not be seen, leave a picture of each."""
    if has_display():
        # A process of its own: Qt ends it where the display does not answer.
        window = subprocess.run([sys.executable, "-m", "raterscope", str(studies[0])], check=False)
        if window.returncode == 0:
            return 0
    pictures = [results / name for name in PICTURES]
    _take_pictures(studies, pictures)
    names = ", ".join(picture.name for picture in pictures)
    print(f"there is no display to open the window on; pictures of it are in {results}: {names}")
    return 0


def _take_pictures(studies: Sequence[Path], pictures: Sequence[Path]) -> None:
    """Take a picture of the window with each study in it, in one process: loading Qt takes longest."""
    places = [str(place.resolve()) for both in zip(studies, pictures, strict=True) for place in both]
    done = subprocess.run(
        [sys.executable, "-c", _TAKE, *places],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True, text=True, timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason was given"]
        raise InputError(f"the pictures of the window could not be made: {plain(lines[-1], 200)}")
