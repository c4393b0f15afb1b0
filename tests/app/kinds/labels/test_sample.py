"""The sample of labels: it says what it is, holds what it says, and keeps what was decided in it."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.app.importing import import_files
from raterscope.app.kinds.labels.sample import (
    METHODS,
    QUESTION,
    REPORT,
    STUDY,
    about,
    demonstrate,
    make_sample,
    simulate_crowd,
)
from raterscope.app.report import write_report
from raterscope.app.review import Decision
from raterscope.app.sample_files import BEGUN, Tools
from raterscope.app.study import Study
from raterscope.app.study.labels import labels_of, pictures_of

TASKS, ANNOTATORS, PICTURES = 600, 80, 20


def nothing(*_, **__):
    """Watch nothing."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    results = folder / "results"
    results.mkdir()
    make_sample(folder, import_files, tasks=TASKS, annotators=ANNOTATORS, pictures=PICTURES)
    return folder, results, *demonstrate(folder, results, Tools(import_files, write_report), nothing)


@pytest.fixture
def folder(shown):
    return shown[0]


@pytest.fixture
def study(folder):
    with Study.open(folder / STUDY) as study:
        yield study


def test_every_file_is_marked_as_simulated(folder, study):
    (question,) = study.questions()
    assert question.name.startswith("Simulated")  # where there is little room, the end is cut off
    other_files = [path.name for path in folder.iterdir() if path.name.startswith("simulated_")]
    assert len(other_files) == 3
    assert all(name in about() for name in other_files)
    for path in (folder / "simulated_cells").iterdir():
        with Image.open(path) as picture:
            assert "simulated" in picture.text["Description"]


def test_the_study_holds_the_crowd_that_was_simulated(study):
    crowd, (question,) = simulate_crowd(TASKS, ANNOTATORS).labels, study.questions()
    labels = labels_of(study, question.id)
    assert (labels.outputs, labels.classes) == (crowd.outputs, crowd.classes)
    assert labels.meaning.tolist() == crowd.meaning.tolist()
    named = [
        sorted(zip(np.round(votes.time - started, 1), [votes.annotators[k] for k in votes.annotator],
                   [votes.tasks[t] for t in votes.task], votes.label, strict=True))
        for votes, started in ((labels, BEGUN), (crowd, 0.0))
    ]  # fmt: skip
    assert named[0] == named[1]


def test_some_truths_are_given_and_all_are_true(study):
    crowd, (question,) = simulate_crowd(TASKS, ANNOTATORS), study.questions()
    votes = study.vote_set(question.id)
    true = dict(zip(crowd.labels.tasks, crowd.truth.tolist(), strict=True))
    true_labels = {
        name: label for name, label in zip(votes.tasks, votes.truth.tolist(), strict=True) if label >= 0
    }
    assert 100 < len(true_labels) < len(votes.tasks)
    assert all(true[name] == label for name, label in true_labels.items())


def test_pictures_show_what_the_crowd_agrees_on_least(study):
    (question,) = study.questions()
    pictures = pictures_of(study, question.id)
    assert len(pictures) == len(study.images()) == PICTURES
    assert all(study.locate(entry) is not None for entry in study.images())
    assert not study.items()["clicks"]
    labels = labels_of(study, question.id)
    counts = np.bincount(labels.task, np.asarray(labels.meaning)[labels.label], len(labels.tasks))
    share = counts / np.maximum(labels.votes_of_tasks(), 1)
    split = np.minimum(share, 1 - share)
    assert split[list(pictures)].mean() > 1.2 * split.mean()


def test_the_votes_are_a_plain_table(folder):
    with (folder / "simulated_votes.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(simulate_crowd(TASKS, ANNOTATORS).labels)
    assert {row["question"] for row in rows} == {QUESTION}


def test_the_summary_gives_results_and_that_it_is_simulated(shown):
    _, _, study, words, outcomes = shown
    assert str(study) in words[0]
    assert "simulated" in words[0]
    titles = [labeller_title(method) for method in METHODS]
    assert all(any(line.startswith(f"{title} against the truth") for line in words) for title in titles)
    assert len(outcomes) == len(METHODS)
    assert all(outcome.fusion is not None for outcome in outcomes)


def test_each_method_has_a_folder_with_the_same_comparison(shown):
    _, results, *_ = shown
    assert {path.name for path in (results / "labels").iterdir()} == set(METHODS)
    for method in METHODS:
        subfolder = results / "labels" / method
        record = json.loads((subfolder / "run.json").read_text())
        assert record["inputs"][0]["simulated"] is True
        assert record["settings"]["algorithm"] == method
        with (subfolder / "evaluation.csv").open() as file:
            rows = {row["method"]: float(row["log_loss"]) for row in csv.DictReader(file)}
        assert set(rows) == set(METHODS)
        assert rows["pooled"] < rows["majority"]


def test_the_report_shows_the_question(shown):
    _, results, *_ = shown
    assert QUESTION in (results / REPORT).read_text(encoding="utf-8")


def test_runs_are_kept_once_and_decisions_stay_however_often_it_is_shown(shown):
    folder, results, path, *_ = shown
    with Study.open(path) as study:
        name = study.annotators()[0]
        study.record(Decision(verb="exclude", annotators=(name,)))
        study.record(Decision(verb="include", annotators=(name,)))
    demonstrate(folder, results, Tools(import_files, lambda *_: results), nothing)
    with Study.open(path) as study:
        assert [run.algorithm for run in study.runs.all()] == list(METHODS)
        assert len(study.decisions()) == 2
