"""Class probabilities of programs on the command line and from Python."""

import csv
import json

import numpy as np
import pytest

import raterscope as rs
from raterscope.algorithms.labels.programs import Program
from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats.labels.programs import read_program
from raterscope.app.kinds.labels.evaluation import cross_validate
from raterscope.app.kinds.labels.runs import Question


@pytest.fixture(scope="module")
def crowd():
    return simulate_labels(staging_crowd(tasks=120, annotators=10), seed=4)


@pytest.fixture(scope="module")
def probability(crowd):
    logits = np.random.default_rng(1).normal(size=(len(crowd.truth), len(crowd.labels.classes)))
    logits[np.arange(len(crowd.truth)), crowd.truth] += 2.5
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, crowd, probability):
    """Tables of votes, truths, and the probabilities of a program in both layouts."""
    folder, labels = tmp_path_factory.mktemp("programs"), crowd.labels
    votes = zip(labels.annotator, labels.task, labels.label, strict=True)
    tables = {
        "votes": [("annotator", "task", "label"),
                  *((labels.annotators[a], labels.tasks[t], labels.outputs[v]) for a, t, v in votes)],
        "truth": [("task", "label"),
                  *((task, labels.classes[c]) for task, c in zip(labels.tasks, crowd.truth, strict=True))],
        "net": [("task", *(f"p({name})" for name in labels.classes)),
                *((task, *row) for task, row in zip(labels.tasks, probability, strict=True))],
        "long": [("task", "label", "probability"),
                 *((task, name, value) for task, row in zip(labels.tasks, probability, strict=True)
                   for name, value in zip(labels.classes, row, strict=True))],
    }  # fmt: skip
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def accuracy(path):
    with (path / "evaluation.csv").open() as file:
        return float(next(csv.DictReader(file))["accuracy"])


def test_both_layouts_are_read_and_give_the_same(folder, crowd, probability):
    labels = crowd.labels
    for name in ("net", "long"):
        program, notices = read_program(folder / f"{name}.csv", labels.tasks, labels.classes)
        assert program.name == name
        assert notices == []
        np.testing.assert_allclose(program.probability, probability, atol=1e-9)


def test_the_command_line_takes_a_program_and_reports_it(folder, tmp_path, capsys):
    plain = ["fuse", "labels", str(folder / "votes.csv"), "--truth", str(folder / "truth.csv")]
    assert main([*plain, "-o", str(tmp_path / "alone")]) == 0
    assert main([*plain, "--program", str(folder / "net.csv"), "-o", str(tmp_path / "with")]) == 0
    assert "The consensus includes the program" in capsys.readouterr().err
    assert accuracy(tmp_path / "with") > accuracy(tmp_path / "alone")
    record = json.loads((tmp_path / "with" / "run.json").read_text())
    assert any("net" in str(source) for source in record["inputs"])
    alone = json.loads((tmp_path / "alone" / "run.json").read_text())
    assert (
        record["input_digest" if "input_digest" in record else "digest"]
        != alone["input_digest" if "input_digest" in alone else "digest"]
    )


def test_python_takes_programs_by_name(folder, crowd, probability):
    labels = crowd.labels
    votes = {
        "annotator": [labels.annotators[a] for a in labels.annotator],
        "task": [labels.tasks[t] for t in labels.task],
        "label": [labels.outputs[v] for v in labels.label],
    }
    columns = {name: probability[:, at] for at, name in enumerate(labels.classes)}
    result = rs.fuse_labels(votes, programs={"net": {"task": list(labels.tasks), **columns}})
    assert any("the program" in notice and "net" in notice for notice in result.notices)


def test_cross_validation_combines_every_method_with_the_programs(crowd, probability):
    few = crowd.labels.subset(np.random.default_rng(2).random(len(crowd.labels)) < 0.3)
    settings = FoldedSettings(methods="paper", folds=3)
    program = Program("net", probability)
    alone, together = (
        cross_validate(Question(few, crowd.truth, programs=programs), settings).methods
        for programs in ((), (program,))
    )
    assert len(alone) > 1
    for without, combined in zip(alone, together, strict=True):
        assert combined.area()[0] > without.area()[0]
    sampled = FoldedSettings(methods="paper", folds=3, subsample=True, class_votes=1, experienced=2)
    weighed = few.with_weights({few.annotators[0]: 0.5})
    folded = cross_validate(Question(weighed, crowd.truth, programs=(program,)), sampled)
    assert folded.tasks < len(few.tasks)
    assert len(folded.methods) == len(alone)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("task", "score"), ("cell 1", "0.4")], "has no class probabilities"),
        ([("task", "label", "score"), ("nowhere", "ring", "0.4")], "has none of the tasks"),
        ([("task", "label", "score"), ("a", "ring", "1.4")], "is not a probability"),
    ],
)
def test_bad_tables_are_refused(tmp_path, rows, words):
    path = tmp_path / "net.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(InputError, match=words):
        read_program(path, ("a", "b"), ("ring", "schizont"))


def test_scores_that_do_not_add_up_are_scaled_and_missing_tasks_named(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("task,ring,schizont\na,0.2,0.2\n")
    program, notices = read_program(path, ("a", "b"), ("ring", "schizont"))
    assert program.probability[0].tolist() == [0.5, 0.5]
    assert np.isnan(program.probability[1]).all()
    assert len(notices) == 2


def test_names_that_begin_like_a_prefix_are_whole(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("task,p(platelet),prob(ring)\na,0.2,0.8\n")
    program, notices = read_program(path, ("a",), ("platelet", "ring"))
    assert program.probability[0] == pytest.approx([0.2, 0.8])
    assert notices == []


@pytest.mark.parametrize("value", ["1.4", "abc", "-0.2"])
def test_a_wrong_value_among_probabilities_is_named_with_line_and_column(value, tmp_path, capsys):
    table = tmp_path / "p.csv"
    table.write_text(f"task,cat,dog\na,0.2,0.8\nb,0.3,0.7\nc,{value},0.1\n")
    assert main(["import", str(tmp_path / "s.rscope"), str(table)]) == 1
    assert f'p.csv, line 4, field cat: "{value}" is not a probability' in capsys.readouterr().err
