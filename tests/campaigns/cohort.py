"""Kill commands and workers of a cohort at random; no case may be lost, changed or processed twice.

Usage: python -m tests.campaigns.cohort [--seed N] [--seconds N] [--cases N]

Each case is a kill: of a worker, or of one of the commands, of which two may be at the same cohort. A command
that has ended is started again. A result that was there once must stay as it is, and at the end all results
must equal those of an undisturbed run.
"""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from raterscope.app.cli import main as raterscope
from tests.campaigns.harness import Summary, cases, parser, random_of

__all__ = ["main"]

CROWDS = 8
JOBS = 2
POLL = 0.02


def _write_cohort(folder: Path) -> Path:
    rows = []
    for number in range(CROWDS):
        random = random_of("cohort", number)
        with (folder / f"crowd{number}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("task", "annotator", "label"))
            truth = [random.choice("xyz") for _ in range(40)]
            for annotator in range(6):
                votes = (right if random.random() < 0.7 else random.choice("xyz") for right in truth)
                writer.writerows((f"t{task}", f"a{annotator}", vote) for task, vote in enumerate(votes))
        rows.append(f"crowd{number},labels,crowd{number}.csv,majority")
    path = folder / "cases.csv"
    path.write_text("\n".join(["case,kind,files,algorithm", *rows]) + "\n")
    return path


def _arguments(manifest: Path, output: Path, jobs: int) -> list[str]:
    return ["batch", str(manifest), "-o", str(output), "--jobs", str(jobs), "--retries", "1000"]


def _start(manifest: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "raterscope", *_arguments(manifest, output, JOBS)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _run(manifest: Path, output: Path) -> None:
    """Run the command undisturbed, in this process."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        raterscope(_arguments(manifest, output, 1))


def _results(output: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(output)): path.read_bytes()
        for path in sorted(output.glob("cases/*/results/*.csv"))
    }


class Campaign:
    """A cohort at work.

    Parameters
    ----------
    folder : Path
    manifest : Path
    """

    def __init__(self, folder: Path, manifest: Path) -> None:
        self.output, self.manifest = folder, manifest
        self.commands: list[subprocess.Popen[bytes]] = []
        self.done: dict[str, bytes] = {}

    def try_case(self, random: Random) -> list[str]:
        """Kill something once there is progress; describe what is wrong then."""
        while len(self.commands) < random.choice((1, 1, 2)):
            self.commands.append(_start(self.manifest, self.output))
        enough = len(self._records()) + random.randrange(3)
        while len(self._records()) < enough and all(command.poll() is None for command in self.commands):
            time.sleep(POLL)
        time.sleep(random.random() * 0.3)
        victim = random.choice(self.commands)
        workers = _children(victim.pid) if random.random() < 0.5 else []
        if workers:
            with suppress(ProcessLookupError):
                os.kill(random.choice(workers), signal.SIGKILL)
        else:
            victim.kill()
        self.commands = [command for command in self.commands if command.poll() is None]
        return self._changed()

    def finish(self, expected: dict[str, bytes]) -> list[str]:
        """Let the cohort end undisturbed, and compare its results."""
        for command in self.commands:
            command.wait()
        _run(self.manifest, self.output)
        wrong = self._changed()
        if len(self.done) != CROWDS:
            wrong.append(f"only {len(self.done)} of {CROWDS} cases are done")
        if _results(self.output) != expected:
            wrong.append("results differ from those of an undisturbed run")
        if list(self.output.glob(".drafts/*")):
            wrong.append("drafts were left")
        return wrong

    def _changed(self) -> list[str]:
        records = self._records()
        wrong = [
            f"the result of {name} changed" for name in self.done if records.get(name) != self.done[name]
        ]
        self.done = records
        return wrong

    def _records(self) -> dict[str, bytes]:
        contents = {}
        for path in self.output.glob("cases/[!.]*/record.json"):
            with suppress(FileNotFoundError):  # a failure's folder gives way to that of the next attempt
                contents[path.parent.name] = path.read_bytes()
        return {name: content for name, content in contents.items() if b'"status": "done"' in content}


def _children(process: int) -> list[int]:
    words: list[str] = []
    with suppress(OSError):  # it may end meanwhile
        for path in Path(f"/proc/{process}/task").glob("*/children"):  # any thread may have started one
            words += path.read_text().split()
    return [int(word) for word in words]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options = parser("cohort", __doc__).parse_args(arguments)
    summary = Summary("Killed cohorts", options.seed)
    counts = summary.counts["cohort"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        manifest = _write_cohort(folder)
        _run(manifest, folder / "undisturbed")
        expected = _results(folder / "undisturbed")
        campaign = None
        number = 0
        for number in cases(options):
            campaign = campaign or Campaign(folder / str(number), manifest)
            for words in campaign.try_case(random_of("cohort", options.seed, number)):
                summary.fail("cohort", number, words)
            counts["kills"] += 1
            if len(campaign.done) == CROWDS:
                for words in campaign.finish(expected):
                    summary.fail("cohort", number, words)
                counts["cohorts"] += 1
                campaign = None
        if campaign is not None:
            for words in campaign.finish(expected):
                summary.fail("cohort", number, words)
            counts["cohorts"] += 1
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
