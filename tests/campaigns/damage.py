"""Damaged studies: opened, shown, exported and reported on, or refused in one sentence.

Usage: python -m tests.campaigns.damage [--seed N] [--seconds N] [--kind NAME] [--damage NAME] [--window N]

Values of the wrong kind, NaN in arrays, missing and repeated rows, cut arrays, huge claimed sizes, foreign
triggers, other versions. Each study is worked on in a process under limits of time and memory; one case in
``--window`` is opened in the window too (0: none). ``--keep FOLDER`` keeps the study of every defect.
"""

from __future__ import annotations

import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from raterscope.algorithms.progress import silent
from raterscope.app.review import Decision, fold
from raterscope.app.study import Study, StudyError
from raterscope.app.study.kinds import mismatch_of
from tests.campaigns.damaging import DAMAGES, damage
from tests.campaigns.harness import (
    Limits,
    Outcome,
    Summary,
    error_outcome,
    in_workers,
    parser,
    random_of,
)
from tests.campaigns.studies import KINDS, make_study

__all__ = ["main"]

SEEN = 30.0
"""Seconds for which the window is looked at, at most, until nothing is under way."""


def try_case(studies: str, kind: str, seed: int, case: int, only: str, window: bool, keep: str) -> Outcome:
    """Damage a study and use it."""
    random = random_of("damage", kind, seed, case)
    with TemporaryDirectory(prefix="damage") as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(directory)
        path = Path(shutil.copy(studies, folder / f"{kind}.rscope"))
        done = damage(path, random, (only,) if only else ())
        if keep:
            shutil.copy(path, Path(keep) / f"{kind}-{seed}-{case}.rscope")
        outcome = _use(path, kind, folder, random, window)
        if keep and not outcome.defect:
            (Path(keep) / f"{kind}-{seed}-{case}.rscope").unlink()
    if outcome.defect:
        return Outcome(kind, outcome.column, f"{outcome.defect} [{done}]")
    return outcome


def _use(path: Path, kind: str, folder: Path, random: Random, window: bool) -> Outcome:
    names = (path.name, path.stem, "report", "out")
    try:
        study = Study.open(path)
    except Exception as error:
        return error_outcome(kind, error, [path.name])
    column = "opened"
    steps = _steps(kind, folder, random)
    try:
        with study:
            for name, act in steps:
                try:
                    act(study)
                except Exception as error:
                    named = () if name.startswith("export") else names  # which may name an image alone
                    outcome = error_outcome(kind, error, named)
                    if outcome.defect:
                        return Outcome(kind, "raised", f"{name}: {outcome.defect}")
                    column = "reported later"
    except StudyError as error:  # at its closing
        return error_outcome(kind, error, names)
    if window and (problem := _shown(path)):
        return Outcome(kind, "raised", f"window: {problem}")
    return Outcome(kind, column)


def _steps(kind: str, folder: Path, random: Random) -> list[tuple[str, Callable[[Study], object]]]:
    from raterscope.app.exports import FORMATS, Request, write_export
    from raterscope.app.kinds.registry import exports
    from raterscope.app.report import write_report

    steps: list[tuple[str, Callable[[Study], object]]] = [
        ("list", _list), ("results", _results), ("inputs", lambda study: _inputs(study, kind)),
        ("report", lambda study: write_report(study, folder / "report.html")),
    ]  # fmt: skip
    of_kind = [one for one in exports() if kind in one.kinds]
    for number, export in enumerate(random.sample(of_kind, min(4, len(of_kind)))):
        form = random.choice([one for one in export.formats if FORMATS[one].suffix != ".dcm"])
        request = Request(export.what, form, folder / f"out{number}{FORMATS[form].suffix}")

        def act(study: Study, export: Any = export, request: Any = request) -> object:
            return write_export(export, study, request)

        steps.append((f"export {export.what} {form}", act))
    steps.append(("decide", _decide))
    steps.append(("fuse", lambda study: _fuse(study, kind)))
    return steps


def _list(study: Study) -> None:
    study.images(), study.annotators(), study.questions(), study.pair_questions(), study.items()
    study.names(), study.runs.all(), study.last_import()
    fold(study.decisions())


def _results(study: Study) -> None:
    for run in study.runs.all():
        for item in run.items:
            result = study.runs.result(run.id, item)
            if result is not None:
                mismatch_of(study, run, item, result)
    study.shown.answers()


def _inputs(study: Study, kind: str) -> None:
    from raterscope.app.kinds.clicks import runs as clicks
    from raterscope.app.kinds.labels import runs as labels
    from raterscope.app.kinds.masks import runs as masks
    from raterscope.app.kinds.pairs import runs as pairs

    runnings: dict[str, Any] = {"clicks": clicks, "masks": masks, "labels": labels, "pairs": pairs}
    runnings[kind].gather([entry.id for entry in study.items()[kind]], study)


def _decide(study: Study) -> None:
    """Decide, and look whether anything but the journal has changed."""
    annotators = study.annotators()
    if not annotators:
        return
    before = _counts(study)
    study.record(Decision(verb="exclude", annotators=(annotators[0],)))
    if _counts(study) != (*before[:-1], before[-1] + 1):
        raise AssertionError(f"a decision made {before} marks, chunks and decisions to {_counts(study)}")


def _counts(study: Study) -> tuple[int, ...]:
    tables = ("marks", "masks", "votes", "chunks", "decisions")
    with study.reading() as connection:
        return tuple(
            connection.execute(f"SELECT count(*) FROM {statement}").fetchone()[0] for statement in tables
        )


def _fuse(study: Study, kind: str) -> None:
    KINDS[kind].fuse(study, _FAST[kind], silent)


_FAST = {"clicks": "kmeans + majority", "masks": "majority", "labels": "majority", "pairs": "lasso"}


def _shown(path: Path) -> str:
    """Open a study in the window; return messages that are no sentence."""
    from PySide6.QtCore import QEventLoop
    from PySide6.QtWidgets import QApplication

    import raterscope.app.jobs as jobs
    from raterscope.app.window.main_window import MainWindow

    problems: list[str] = []

    def unexpected(error: Exception, _details: str = "") -> str:
        problems.append(error_outcome("window", error).defect)
        return "internal error."

    before, jobs._unexpected = jobs._unexpected, unexpected
    hook, sys.excepthook = sys.excepthook, lambda _kind, error, _trace: unexpected(error)  # type: ignore[arg-type]
    application = QApplication.instance() or QApplication([])
    window = MainWindow(remembers=False)
    try:
        window.resize(1200, 800)
        window.show()
        window.open_paths([path])
        end, quiet = time.monotonic() + SEEN, time.monotonic()
        while time.monotonic() < end and time.monotonic() - quiet < 0.2:
            application.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
            if window.busy:
                quiet = time.monotonic()
        window.document.close()
        while window.busy and time.monotonic() < end:
            application.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
    except Exception as error:
        unexpected(error)
    finally:
        window.close()
        window.deleteLater()
        application.processEvents()
        jobs._unexpected, sys.excepthook = before, hook
    return problems[0] if problems else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options_parser = parser("damage", __doc__)
    options_parser.add_argument("--kind", choices=sorted(KINDS), help="studies of this kind alone")
    options_parser.add_argument(
        "--damage", choices=sorted(DAMAGES), default="", help="damage of this sort alone"
    )
    options_parser.add_argument(
        "--window", type=int, default=10, help="open one in N in the window (default: 10)"
    )
    options_parser.add_argument("--jobs", type=int, default=1, help="worker processes (default: %(default)s)")
    options_parser.add_argument("--keep", default="", help="keep the study of every defect in this folder")
    options = options_parser.parse_args(arguments)
    kinds = [options.kind] if options.kind else list(KINDS)
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    summary = Summary("Damaged studies", options.seed)
    with TemporaryDirectory() as name:
        paths = {kind: str(make_study(Path(name) / kind, kind)) for kind in kinds}
        end = time.monotonic() + options.seconds

        def tasks() -> Iterator[tuple[int, str, tuple[Any, ...]]]:
            number = 0 if options.case is None else options.case
            while number == 0 or options.case == number or time.monotonic() < end:
                if options.cases is not None and number >= options.cases:
                    return
                for kind in kinds:
                    window = options.window > 0 and (number % options.window == 0 or options.case is not None)
                    yield number, kind, (paths[kind], kind, options.seed, number, options.damage, window,
                                         options.keep)  # fmt: skip
                number += 1

        in_workers(try_case, tasks(), summary, Limits(wall=120.0), options.jobs)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
