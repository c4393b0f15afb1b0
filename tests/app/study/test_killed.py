"""Killed in the middle of edits and runs, a study loses nothing that was shown as done."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from raterscope.algorithms.clicks.result import Fusion
from raterscope.app.study import Study
from tests.app.study.made import a_fusion
from tests.app.study.worker import place_of

KILLS = 15
MAX_DONE = 6
LONGEST_AFTER = 0.02


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    path = tmp_path / "killed.rscope"
    Study.create(path).close()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.app.study.worker", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_lose_nothing_that_was_shown_as_done(worker: subprocess.Popen[str], tmp_path: Path) -> None:
    random = Random(20)
    decisions: dict[int, list[str]] = {}
    runs: set[int] = set()
    imports = 0
    for life in range(KILLS):
        answers = live_and_die(worker, life, random.randint(0, MAX_DONE), random.uniform(0.0, LONGEST_AFTER))
        assert not [words for words in answers if words[0] == "broken"]
        decisions.update({int(words[1]): words[2:] for words in answers if words[0] == "decision"})
        fresh = {int(words[1]) for words in answers if words[0] == "run"}
        imports = max([imports, *(int(words[1]) for words in answers if words[0] == "import")])
        runs |= fresh
        with Study.open(tmp_path / "killed.rscope") as study:
            stored = {item.id: item for item in study.decisions()}
            assert list(stored) == list(range(1, len(stored) + 1))
            for number, words in decisions.items():
                item = stored[number]
                assert words == [item.verb, str(item.undoes or 0), *place_of(item)]
            assert imports <= study.last_import() <= imports + 1
            imports = study.last_import()
            there = {entry.id: entry for entry in study.runs.all()}
            assert runs <= set(there)
            for number in set(there) - runs | fresh:
                assert_whole(study, number)
            runs = set(there)
            decisions.update(
                {item.id: [item.verb, str(item.undoes or 0), *place_of(item)] for item in stored.values()}
            )
            total = len(study.images())
            assert total == 3 * imports
    assert min(len(decisions), len(runs), imports) > KILLS / 5


def live_and_die(worker: subprocess.Popen[str], life: int, done: int, seconds: float) -> list[list[str]]:
    """Let a process work, kill it some time after it has done some things, and return all that it printed."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{life}\n")
    worker.stdin.flush()
    begin = worker.stdout.readline().split()
    assert begin[0] == "begin"
    texts = [worker.stdout.readline().split() for _ in range(done)]
    timer = threading.Timer(seconds, os.kill, (int(begin[1]), signal.SIGKILL))
    timer.start()
    while (words := worker.stdout.readline().split()) != ["end"]:
        texts.append(words)
    timer.join()
    return texts


def assert_whole(study: Study, number: int) -> None:
    """Every result of a run is there, and is what was computed."""
    entry = study.runs.get(number)
    assert sorted(entry.log["images"]) == list(entry.items)
    for image in entry.items:
        result = study.runs.result(number, image)
        expected = a_fusion(study.clicks(image, entry), seed=entry.log["seed"], clusters=40)
        assert isinstance(result, Fusion)
        np.testing.assert_array_equal(result.clustering.mean, expected.clustering.mean)
        np.testing.assert_array_equal(result.marked, expected.marked)
        np.testing.assert_array_equal(result.mark, expected.mark)
