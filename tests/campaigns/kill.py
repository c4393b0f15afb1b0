"""Kill a process at random times while it works on a study; whatever it reported as done must be there.

Usage: python -m tests.campaigns.kill [--seed N] [--seconds N] [--cases N]

Each case forks a process that decides, undoes, views spots, imports, fuses, exports and follows a growing
source, and writes a line for everything that is done. Once it is killed, the study is opened again and
compared with those lines; runs and imports are whole or absent, exported files are whole, and SQLite finds
no damage. A new study is begun every 40 kills. The moment of the kill does not repeat exactly; what must hold
does.
"""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app import importing
from raterscope.app.exports import Request, write_export
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest
from raterscope.app.kinds.clicks.live_watching import WatchPlan
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.kinds.registry import find_export
from raterscope.app.review import Decision, SpotSubject, View, fold
from raterscope.app.study import Study
from raterscope.app.study.kinds import mismatch_of
from tests.app.tables import write
from tests.campaigns.harness import Summary, cases, parser, random_of
from tests.campaigns.studies import make_study

__all__ = ["main"]

LIVES = 40
"""Kills of one study."""

MAX_DONE = 12
LONGEST_AFTER = 0.05
"""Seconds between the last report that is waited for and the kill."""

IMAGES = 2
ROWS = 60
EXPORTED = ("decisions", "clicks", "detections")
PLAN = FusionPlan.make("oem", {"detector": "majority"})
HEADER = ("annotator", "image", "x", "y")


def report(*words: object) -> None:
    """Report a finished step to the parent process in one write."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(folder: Path, life: int, seed: int) -> None:
    """Work at random until the process is killed."""
    random = random_of("kill", seed, life)
    study = Study.open(folder / "killed.rscope")
    following = None
    for step in range(1_000_000):
        choice = random.random()
        images = [entry.id for entry in study.items()["clicks"]]
        if choice < 0.1 or len(images) < 2:
            table = _write_clicks(folder, f"{life} {step}", random)
            importing.store(importing.read_files([table]), study, extent=(100.0, 100.0))
            report("import", study.last_import())
        elif choice < 0.2:
            chosen = random.sample(images, 2)
            run = keep(fuse_inputs(gather(chosen, study), PLAN, jobs=1), study)
            report("run", run, *sorted(chosen))
        elif choice < 0.3 and study.runs.all():
            export = random.choice(EXPORTED)
            out = folder / f"{life}_{step}_{export}.csv"
            write_export(find_export(export, ["clicks"]), study, Request(export, "csv", out))
            report("export", out.name)
        elif choice < 0.45:
            source = folder / "growing.csv"
            with source.open("a") as file:
                annotator = random.randrange(5)
                file.writelines(f"w{annotator},watched,{at},{random.randrange(100)}\n" for at in range(5))
            following = following or LiveSource(
                study, WatchRequest(source, WatchPlan.make({}), {}, (100.0, 100.0))
            )
            growth = following.look()
            following.store(study, growth)
            report("rows", study_rows(study))
        elif choice < 0.5:
            study.close()
            study, following = Study.open(study.path), None
        elif choice < 0.6:
            views = [
                View(image=image, x=float(step), y=random.random() * 100, seconds=1.0) for image in images[:2]
            ]
            for done in study.views.record(views):
                report("view", done.id, *words_of_view(done))
        else:
            done = study.record(_decision(study, images, step, random))
            report("decision", done.id, *words_of(done))


def _write_clicks(folder: Path, name: str, random: Random) -> Path:
    def place() -> int:
        return 10 * random.randrange(10)

    rows = [(f"w{random.randrange(6)}", f"{name} {at % IMAGES}", place(), place()) for at in range(ROWS)]
    return write(folder / f"{name}.csv", HEADER, rows)


def _decision(study: Study, images: Sequence[int], step: int, random: Random) -> Decision:
    before = study.decisions()
    state = fold(before)
    standing = [decision.id for decision in before if state.in_effect(decision.id)]
    if standing and random.random() < 0.2:
        return Decision(verb="undo", undoes=random.choice(standing))
    spot = SpotSubject(number=step, x=random.random() * 100, y=random.random() * 100)
    verb = random.choice(("accept", "reject", "skip", "add"))
    return Decision(verb=verb, item=random.choice(images), subject=spot)


def words_of(decision: Decision) -> list[str]:
    """Write what a decision is to the last digit."""
    spot = decision.subject
    subject = [repr(spot.x), repr(spot.y)] if isinstance(spot, SpotSubject) else []
    return [decision.verb, str(decision.undoes or 0), str(decision.item or 0), *subject]


def words_of_view(view: View) -> list[str]:
    """Write what was viewed to the last digit."""
    return [str(view.image), repr(view.x), repr(view.y)]


def study_rows(study: Study) -> int:
    """Count the clicks on the image of the growing source."""
    return sum(len(study.clicks(entry.id)) for entry in study.images() if entry.name == "watched")


class Campaign:
    """A study in a folder, and what was reported of it so far."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        folder.mkdir()
        self._path = folder / "killed.rscope"
        Study.create(self._path).close()
        (folder / "growing.csv").write_text(",".join(HEADER) + "\n")
        self.decisions: dict[int, list[str]] = {}
        self.views: dict[int, list[str]] = {}
        self.runs: dict[int, list[int]] = {}
        self.exports: set[str] = set()
        self.imports = self.rows = 0

    def try_case(self, life: int) -> list[str]:
        """Let a process live and die, and describe what is wrong with what it leaves."""
        random = random_of("kill times", self._seed, life)
        reports = self._live_and_die(life, random.randint(0, MAX_DONE), random.uniform(0.0, LONGEST_AFTER))
        broken = [" ".join(words[1:]) for words in reports if words[0] == "broken"]
        wrong = [f"the process ended by itself: {words}" for words in broken]
        for kind, *words in reports:
            if kind == "decision":
                self.decisions[int(words[0])] = words[1:]
            elif kind == "view":
                self.views[int(words[0])] = words[1:]
            elif kind == "run":
                self.runs[int(words[0])] = [int(measurement) for measurement in words[1:]]
            elif kind == "export":
                self.exports.add(words[0])
            elif kind == "import":
                self.imports = max(self.imports, int(words[0]))
            elif kind == "rows":
                self.rows = max(self.rows, int(words[0]))
        with Study.open(self._path) as study:
            wrong += self._compare(study)
        wrong += self._look_at_files()
        return wrong

    def _live_and_die(self, life: int, done: int, seconds: float) -> list[list[str]]:
        """Fork, read some reports, kill some time later, and return all reports."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.dup2(writing, 1)
                work(self._folder, life, self._seed)
            except BaseException as error:  # an end that nobody asked for is reported
                report("broken", repr(error))
            os._exit(1)
        os.close(writing)
        reports: list[list[str]] = []
        with os.fdopen(reading) as lines:
            for line in lines:
                reports.append(line.split())
                if len(reports) > done:
                    break
            timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
            timer.start()
            reports += [line.split() for line in lines]
            timer.join()
        os.waitpid(child, 0)
        return [words for words in reports if words]

    def _compare(self, study: Study) -> list[str]:
        wrong = []
        stored = {decision.id: words_of(decision) for decision in study.decisions()}
        if list(stored) != list(range(1, len(stored) + 1)):
            wrong.append("the numbers of the decisions have gaps")
        wrong += [
            f"decision {number} was shown as {words} and is {stored.get(number)}"
            for number, words in self.decisions.items() if stored.get(number) != words
        ]  # fmt: skip
        self.decisions = stored
        views = {
            decision.id: words_of_view(decision)
            for some in study.views.by_image().values()
            for decision in some
        }
        wrong += [
            f"view {number} was shown as {words} and is {views.get(number)}"
            for number, words in self.views.items() if views.get(number) != words
        ]  # fmt: skip
        self.views = views
        runs = {entry.id: entry for entry in study.runs.all()}
        for number, items in self.runs.items():
            if number not in runs or list(runs[number].items) != items:
                wrong.append(f"run {number} of items {items} is not there")
        for number, entry in runs.items():
            for item in entry.items:
                result = study.runs.result(number, item)
                misfit = "it is missing" if result is None else mismatch_of(study, entry, item, result)
                if misfit:
                    wrong.append(f"run {number}, item {item}: {misfit}")
            self.runs[number] = list(entry.items)
        if study.last_import() < self.imports:
            wrong.append(f"import {self.imports} was shown as done and the last is {study.last_import()}")
        for entry in study.images():
            clicks = len(study.clicks(entry.id))
            if entry.name != "watched" and clicks != ROWS // IMAGES:
                wrong.append(f"{clicks} clicks on {entry.name} in place of {ROWS // IMAGES}")
        if study_rows(study) < self.rows:
            wrong.append(f"{self.rows} clicks of the source were taken in and {study_rows(study)} are there")
        return wrong

    def _look_at_files(self) -> list[str]:
        wrong = []
        connection = sqlite3.connect(self._path)
        try:
            answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
        finally:
            connection.close()
        if answer != "ok":
            wrong.append(f"integrity_check: {answer}")
        for name in self.exports:
            path = self._folder / name
            if not path.exists():
                wrong.append(f"{name} was shown as written and is not there")
        for path in self._folder.glob("[!.]*_*.csv"):
            with path.open(newline="") as file:
                widths = {len(row) for row in csv.reader(file)}
            if len(widths) != 1 or not path.read_bytes().endswith(b"\n"):
                wrong.append(f"{path.name} is cut short")
            path.unlink()
            self.exports.discard(path.name)
        for path in self._folder.glob("[!.]*.csv"):
            if path.name != "growing.csv":
                path.unlink()
        return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options = parser("kill", __doc__).parse_args(arguments)
    summary = Summary("Killed processes", options.seed)
    counts = summary.counts["study"]
    campaign = None
    with TemporaryDirectory() as name:
        _warm_up(Path(name))
        for life in cases(options):
            if campaign is None or life % LIVES == 0:
                _count(campaign, summary)
                campaign = Campaign(Path(name) / str(life), options.seed)
            for words in campaign.try_case(life):
                summary.fail("study", life, words)
            counts["kills"] += 1
        _count(campaign, summary)
    return summary.end()


def _count(campaign: Campaign | None, summary: Summary) -> None:
    """Add what a study has come to."""
    if campaign is not None:
        counts = summary.counts["study"]
        counts["decisions"] += len(campaign.decisions)
        counts["views"] += len(campaign.views)
        counts["runs"] += len(campaign.runs)
        counts["imports"] += campaign.imports
        counts["watched clicks"] += campaign.rows


def _warm_up(folder: Path) -> None:
    """Do everything once, so that no forked process spends its life on loading modules."""
    path = make_study(folder / "warm", "clicks", "oem + majority")
    with Study.open(path) as study:
        source = folder / "warm" / "files" / "clicks.csv"
        following = LiveSource(study, WatchRequest(source, WatchPlan.make({}), {}))
        following.store(study, following.look())
        for export in EXPORTED:
            request = Request(export, "csv", folder / "warm" / f"{export}.csv")
            write_export(find_export(export, ["clicks"]), study, request)


if __name__ == "__main__":
    sys.exit(main())
