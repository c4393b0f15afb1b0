"""The campaigns' short forms: some cases each, always the same ones."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from raterscope.app.errors import InputError
from tests.app.batch.threads import Threads
from tests.campaigns import cancel, cohort, damage, fuzz, mutate, torn
from tests.campaigns.harness import Outcome, Summary, error_outcome, sentence_defect
from tests.campaigns.samples import READERS, samples_of


@pytest.mark.parametrize("reader", READERS)
def test_every_sample_can_be_read(reader: str, tmp_path: Path) -> None:
    """A sample that is refused as it is would test nothing but its refusal."""
    for number, sample in enumerate(samples_of(reader)):
        folder = tmp_path / str(number)
        for name, content in sample.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert mutate.read_sample(folder, sample) == "read"


def test_mutated_files(capsys) -> None:
    assert mutate.main(["--files", "1", "--made", "--seconds", "600"]) == 0
    assert "total" in capsys.readouterr().out


def test_a_message_is_one_sentence_that_names_the_file() -> None:
    assert not sentence_defect("a.csv, line 3: is empty.", ["a.csv"])
    assert "line break" in sentence_defect("a.csv: is\nempty.")
    assert "no file" in sentence_defect("is empty.", ["a.csv"])
    assert "no sentence" in sentence_defect("KeyError")
    assert not error_outcome("r", InputError("is empty", file="a.csv"), ["a.csv"]).defect
    assert "KeyError" in error_outcome("r", KeyError("x")).defect


def test_defects_set_the_exit_status(capsys) -> None:
    summary = Summary("Made up", 7)
    summary.add(0, Outcome("reader", "read"))
    assert summary.end() == 0
    summary.add(3, Outcome("reader", "raised", "KeyError"))
    assert summary.end() == 1
    shown = capsys.readouterr()
    assert "reader, case 3: KeyError" in shown.out
    assert "--seed 7 --case 3" in shown.err


@pytest.mark.parametrize(
    "operation",
    ["export masks weights nifti", "export clicks detections napari", "import masks", "fuse labels ibcc",
     "report clicks html", "watch clicks"],
)  # fmt: skip
def test_cancelled_operations(operation: str, capsys) -> None:
    """Exports of several files left those that they had written."""
    assert cancel.main(["--operation", operation, "--cases", "1", "--seconds", "600"]) == 0
    assert "cancelled" in capsys.readouterr().out


def test_torn_files(capsys) -> None:
    assert torn.main(["--cases", "60", "--seconds", "600"]) == 0
    assert "main file" in capsys.readouterr().out


def test_damaged_studies(capsys) -> None:
    """In this process: these few cases break no limit, and the mutated files have a process with limits."""
    assert damage.main(["--cases", "1", "--window", "0", "--seconds", "600", "--jobs", "0"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()[1:6]
    assert header.split()[-1] == "defects"
    assert [row.split()[0] for row in rows] == ["clicks", "labels", "masks", "pairs"]
    assert all(sum(map(int, row.split()[1:])) == 1 for row in rows)


ONE_BY_ONE = """
import sys
from importlib import import_module

for line in sys.argv[1:]:
    name, *arguments = line.split()
    if import_module(f"tests.campaigns.{name}").main(arguments):
        sys.exit(f"{name} found a defect")
"""


def ended_well(*campaigns: str) -> str:
    """Run campaigns in one process, not that of the tests, and return what they printed."""
    command = [sys.executable, "-c", ONE_BY_ONE, *campaigns]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_and_a_day_of_review() -> None:
    """Forks of a process with threads may hang: those come first."""
    output = ended_well(
        "kill --cases 2 --seconds 600", "two --cases 1 --seconds 600", "day --decisions 2 --images 2"
    )
    assert all(words in output for words in ("kills", "exported", "largest log"))


def test_killed_cohorts(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Kill one command of two processes; the undisturbed ones start none."""
    monkeypatch.setattr("raterscope.app.cli.batch.local_executor", lambda jobs: lambda: Threads(jobs))
    assert cohort.main(["--seed", "4", "--cases", "1", "--seconds", "600"]) == 0
    assert "cohorts" in capsys.readouterr().out


def test_fuzzed_parsers() -> None:
    pytest.importorskip("atheris")
    assert "run-lengths" in ended_well("fuzz --reader run-lengths --seconds 2")


def test_fuzzing_names_the_missing_package(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert fuzz.main(["--seconds", "1"]) == 0
    assert "atheris is not installed" in capsys.readouterr().out
