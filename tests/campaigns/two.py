"""Two processes work on one study at a time: one opens it, the other gets a message, and nothing is lost.

Usage: python -m tests.campaigns.two [--seed N] [--seconds N] [--cases N]

Each case forks two processes. Both import into the same study, which neither has made yet; then they open it,
decide, export and close it again and again, and report what is done. What was reported must be there, a
decision of one must not replace one of the other, a refusal is one sentence, and one plain file remains.
"""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from raterscope.app.cli import main as raterscope
from raterscope.app.errors import InputError
from raterscope.app.exports import Request, write_export
from raterscope.app.kinds.registry import find_export
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study
from tests.app.tables import write
from tests.campaigns.harness import Summary, cases, parser, random_of, sentence_defect

__all__ = ["main"]

STEPS = 8
NAME = "shared.rscope"
CLICKS = 30


def work(folder: Path, worker: int, seed: int, case: int) -> None:
    """Import into the study, then decide and export, and report what is done."""
    random = random_of("two", seed, case, worker)
    time.sleep(random.random() * 0.02)
    path = folder / NAME
    table = folder / f"{worker}.csv"
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(io.StringIO()):
        status = raterscope(["import", str(path), str(table), "--extent", "100", "100"])
    _report("imported" if status == 0 else "refused", output.getvalue().strip().removeprefix("raterscope: "))
    for step in range(STEPS):
        try:
            if random.random() < 0.3:
                with Study.open(path, to_read=True) as study:
                    request = Request("clicks", "csv", folder / f"out {worker} {step}.csv")
                    write_export(find_export("clicks", ["clicks"]), study, request)
                _report("exported", request.path.name)
                continue
            with Study.open(path) as study:
                for _ in range(random.randrange(1, 4)):
                    spot = SpotSubject(x=random.random(), y=random.random())
                    done = study.record(Decision(verb="accept", item=1, subject=spot, who=f"{worker}"))
                    _report("decision", f"{done.id} {worker} {spot.x!r}")
                time.sleep(random.random() * 0.01)
        except InputError as error:
            _report("refused", str(error))
        time.sleep(random.random() * 0.01)


def _report(*words: str) -> None:
    os.write(1, (" ".join(words).replace("\n", "\\n") + "\n").encode())


def _run_both(folder: Path, seed: int, case: int) -> tuple[list[str], list[str]]:
    """Fork both processes and return what they report, and what ended them."""
    reading, writing = os.pipe()
    children = []
    for worker in range(2):
        child = os.fork()
        if child == 0:
            try:
                os.dup2(writing, 1)
                work(folder, worker, seed, case)
            except BaseException:
                _report("broken", traceback.format_exc(limit=-3))
                os._exit(1)
            os._exit(0)
        children.append(child)
    os.close(writing)
    with os.fdopen(reading) as lines:
        reports = lines.read().splitlines()
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return reports, [f"a process ended with status {status}" for status in statuses if status]


def try_case(folder: Path, seed: int, case: int, summary: Summary) -> list[str]:
    """Let two processes loose on a study, and describe what is wrong afterwards."""
    for worker in range(2):
        rows = [(f"w{at % 3}", f"image {worker}", at, 2 * at) for at in range(CLICKS)]
        write(folder / f"{worker}.csv", ("annotator", "image", "x", "y"), rows)
    reports, wrong = _run_both(folder, seed, case)
    counts = summary.counts["study"]
    decisions, imports = [], 0
    for line in reports:
        kind, _, words = line.partition(" ")
        counts[{"decision": "decisions"}.get(kind, kind)] += 1
        if kind == "broken":
            wrong.append(words)
        elif kind == "decision":
            decisions.append(words)
        elif kind == "imported":
            imports += 1
        elif kind == "refused":
            wrong += [defect] if (defect := sentence_defect(words, [NAME])) else []
        elif kind == "exported" and not (folder / words).exists():
            wrong.append(f"{words} was written and is not there")
    return wrong + _compared(folder, decisions, imports)


def _compared(folder: Path, decisions: list[str], imports: int) -> list[str]:
    path = folder / NAME
    if not path.exists():
        return [f"the study is not there after {imports} imports"] if imports else []
    wrong = []
    with Study.open(path) as study:
        stored = [
            f"{file_path.id} {file_path.who} {file_path.subject.x!r}" for file_path in study.decisions()
        ]  # type: ignore[union-attr]
        if sorted(stored) != sorted(decisions):
            wrong.append(f"{len(set(decisions) - set(stored))} of {len(decisions)} decisions are missing")
        total = [entry.name for entry in study.images() if len(study.clicks(entry.id)) == CLICKS]
        if len(total) != imports or len(study.images()) != imports:
            wrong.append(f"{len(study.images())} images after {imports} imports, {len(total)} of them whole")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
    if answer != "ok":
        wrong.append(f"integrity_check: {answer}")
    left = [file_path.name for file_path in folder.iterdir() if file_path.name.startswith((".", f"{NAME}-"))]
    if left:
        wrong.append(f"left {', '.join(left)}")
    return wrong


def _warm_up(folder: Path) -> None:
    random = Random(0)
    folder.mkdir()
    rows = [(f"w{at % 3}", "a", random.random(), 1) for at in range(9)]
    table = write(folder / "warm.csv", ("annotator", "image", "x", "y"), rows)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        raterscope(["import", str(folder / NAME), str(table), "--extent", "9", "9"])
        raterscope(["export", str(folder / NAME), "--what", "clicks", "-o", str(folder / "out.csv")])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options = parser("two", __doc__).parse_args(arguments)
    summary = Summary("Two processes on one study", options.seed)
    with TemporaryDirectory() as name:
        _warm_up(Path(name) / "warm")
        for case in cases(options):
            folder = Path(name) / str(case)
            folder.mkdir()
            wrong = try_case(folder, options.seed, case, summary)
            summary.counts["study"]["cases"] += 1
            for words in wrong:
                summary.fail("study", case, words)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
