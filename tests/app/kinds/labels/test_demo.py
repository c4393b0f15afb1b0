"""What the demo makes of the sample of labels: results, a report, and what it says of them."""

import csv
import json

import pytest

from raterscope.app.importing import import_files
from raterscope.app.kinds.labels.sample import METHODS, QUESTION, REPORT, demonstrate, make_sample
from raterscope.app.report import write_report
from raterscope.app.sample_files import Tools
from raterscope.app.study import Study


def nothing(*_, **__):
    """Watch nothing."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    results = folder / "results"
    results.mkdir()
    make_sample(folder, import_files, tasks=500, annotators=80, pictures=5)
    return folder, results, *demonstrate(folder, results, Tools(import_files, write_report), nothing)


def test_it_says_what_came_out_and_that_it_is_simulated(shown):
    _, _, study, words, outcomes = shown
    assert str(study) in words[0]
    assert "simulated" in words[0]
    assert all(any(line.startswith(f"{method} against the truth") for line in words) for method in METHODS)
    assert len(outcomes) == len(METHODS)
    assert all(outcome.fusion is not None for outcome in outcomes)


def test_each_method_has_a_folder_with_the_same_comparison(shown):
    _, results, *_ = shown
    assert {path.name for path in (results / "labels").iterdir()} == set(METHODS)
    for method in METHODS:
        here = results / "labels" / method
        record = json.loads((here / "run.json").read_text())
        assert record["inputs"][0]["simulated"] is True
        assert record["settings"]["algorithm"] == method
        with (here / "evaluation.csv").open() as file:
            rows = {row["method"]: float(row["log_loss"]) for row in csv.DictReader(file)}
        assert set(rows) == set(METHODS)
        assert rows["pooled"] < rows["majority"]


def test_the_report_tells_the_question(shown):
    _, results, *_ = shown
    assert QUESTION in (results / REPORT).read_text(encoding="utf-8")


def test_runs_are_kept_once_however_often_it_is_shown(shown):
    folder, results, study, *_ = shown
    demonstrate(folder, results, Tools(import_files, write_report), nothing)
    with Study.open(study) as opened:
        assert [run.algorithm for run in opened.runs.all()] == list(METHODS)
