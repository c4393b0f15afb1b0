"""Tear the files of an open study as a power loss may: it opens with what was stored, or says what is wrong.

Usage: python -m tests.campaigns.torn [--seed N] [--seconds N] [--cases N]

The main file and its write-ahead log are copied while a study is worked on. Each case cuts one of them,
fills sectors or pages with zeros, or the log with garbage, and opens the study. What it then shows must be
what was recorded, in order; nothing that the main file holds may be missing without an error message; and a
study that is refused must stay as it was found.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study, StudyError
from tests.app.study.made import a_fusion, a_run, a_table
from tests.campaigns.harness import Outcome, Summary, cases, error_outcome, parser, random_of, sentence_defect

__all__ = ["main"]

SECTOR, PAGE = 512, 4096
SNAPSHOTS = 12
STEPS = 8
CLICKS = 400


@dataclass(frozen=True)
class Snapshot:
    """The files of an open study at one moment.

    Attributes
    ----------
    main, log : bytes
    decisions : tuple of str
        The reasons of all that were recorded by then, each its own.
    stored : int
        How many decisions the main file holds without the log.
    images : int
        How many images were imported by then.
    """

    main: bytes
    log: bytes
    decisions: tuple[str, ...]
    stored: int
    images: int


def snapshots(folder: Path, seed: int) -> list[Snapshot]:
    """Work on a study and copy its files now and then."""
    random = random_of("torn", seed)
    path = folder / "torn.rscope"
    choices: list[tuple[bytes, bytes, tuple[str, ...], int]] = []
    with Study.create(path) as study:
        reasons: list[str] = []
        for step in range(SNAPSHOTS):
            study.add_clicks(a_table(step, (f"image {step}",), clicks=CLICKS))
            if step % 3 == 1:
                image = study.images()[-1].id
                result = a_fusion(study.clicks(image), seed=image, clusters=20)
                study.runs.add(a_run(log={"images": [image]}), {image: result})
            for _ in range(random.randrange(STEPS)):
                spot = SpotSubject(x=random.random() * 100, y=random.random() * 100)
                reasons.append(f"{len(reasons)} {random.getrandbits(2000)}")
                study.record(Decision(verb="accept", item=1, subject=spot, reason=reasons[-1]))
            path_of_log = path.with_name("torn.rscope-wal")
            log = path_of_log.read_bytes() if path_of_log.exists() else b""
            choices.append((path.read_bytes(), log, tuple(reasons), step + 1))
            if random.random() < 0.25:
                study.close()
                study = Study.open(path)
    return [Snapshot(main, log, done, _stored(folder, main), images) for main, log, done, images in choices]


def _stored(folder: Path, main: bytes) -> int:
    alone = folder / "alone.rscope"
    alone.write_bytes(main)
    try:
        with Study.open(alone) as study:
            return len(study.decisions())
    except StudyError:
        return 0
    finally:
        alone.unlink()


def _zeroed(data: bytes, random: Random, unit: int) -> bytes:
    start = unit * random.randrange(len(data) // unit + 1)
    blank = bytes(min(unit * random.choice((1, 1, 2, 8)), len(data) - start))
    return data[:start] + blank + data[start + len(blank) :]


def torn(data: bytes, random: Random, *, log: bool) -> bytes:
    """Tear a file's content."""
    choice = random.randrange(5 if log else 4)
    if choice == 0:
        return data[: random.randrange(len(data) + 1)]
    if choice == 1:
        return data[: SECTOR * random.randrange(len(data) // SECTOR + 1)]
    if choice in (2, 3):
        return _zeroed(data, random, SECTOR if choice == 2 else PAGE)
    start = random.randrange(len(data) + 1)
    garbage = random.randbytes(random.choice((1, SECTOR, PAGE)))
    return data[:start] + garbage + data[start + len(garbage) :]


def try_case(snapshot: Snapshot, random: Random, folder: Path) -> Outcome:
    """Tear one of the files, open the study and look what is there."""
    at_log = bool(snapshot.log) and random.random() < 0.5
    row = "log" if at_log else "main file"
    main, log = snapshot.main, snapshot.log
    if at_log:
        log = torn(log, random, log=True)
    else:
        main = torn(main, random, log=False)
    path = folder / "torn.rscope"
    path.write_bytes(main)
    if log:
        path.with_name("torn.rscope-wal").write_bytes(log)
    try:
        study = Study.open(path)
    except StudyError as error:
        if path.read_bytes() != main:
            return Outcome(row, "refused", f"the study was refused, and changed: {error}")
        if main == snapshot.main and not log:
            return Outcome(row, "refused", f"the study was refused for an empty log: {error}")
        return Outcome(row, "refused", sentence_defect(str(error), ["torn.rscope"]))
    except Exception as error:
        return error_outcome(row, error)
    try:
        with study:
            return _compared(row, study, snapshot, snapshot.stored if at_log else len(snapshot.decisions))
    except Exception as error:
        return error_outcome(row, error, ["torn.rscope"])


def _compared(row: str, study: Study, snapshot: Snapshot, least: int) -> Outcome:
    stored = tuple(decision.reason for decision in study.decisions())
    if stored != snapshot.decisions[: len(stored)]:
        return Outcome(row, "opened", "the decisions are not those that were recorded")
    if len(stored) < least:
        return Outcome(row, "opened", f"{len(stored)} decisions of {least} without an error message")
    is_reported = False
    for entry in study.images():
        expected = a_table(int(entry.name.split()[-1]), (entry.name,), clicks=CLICKS)
        try:
            clicks = study.clicks(entry.id)
        except StudyError as error:
            if defect := sentence_defect(str(error), ["torn.rscope"]):
                return Outcome(row, "opened", defect)
            is_reported = True
            continue
        if not np.array_equal(np.sort(clicks.x), np.sort(expected.x)):
            return Outcome(row, "opened", f"the clicks on {entry.name} are not those that were imported")
    if row == "main file" and len(study.images()) < snapshot.images:
        return Outcome(row, "opened", f"{len(study.images())} images of {snapshot.images}")
    return Outcome(row, "reported later" if is_reported else "opened")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options = parser("torn", __doc__).parse_args(arguments)
    summary = Summary("Torn files", options.seed)
    with TemporaryDirectory() as name:
        created = snapshots(Path(name), options.seed)
        for case in cases(options):
            random = random_of("torn", options.seed, case)
            with TemporaryDirectory(dir=name) as folder:
                summary.add(case, try_case(random.choice(created), random, Path(folder)))
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
