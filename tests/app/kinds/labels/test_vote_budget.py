"""Assignments and cost of labels, as the command line writes them."""

import csv
import shutil
from collections import Counter

import numpy as np
import pytest

from raterscope.algorithms.labels.active_learning import OPEN, NextVotes
from raterscope.app.cli.program import main
from raterscope.app.kinds.labels.vote_budget import Assignments, Budget, read_prices, stored_budget
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study

ANNOTATORS, TASKS = 12, 60


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("assignments")
    rng = np.random.default_rng(4)
    rows = ["annotator,task,label,time"]
    for task in range(TASKS):
        for annotator in rng.choice(ANNOTATORS, 4, replace=False).tolist():
            right = rng.random() < 0.6 + 0.03 * annotator
            rows.append(f"ann {annotator},t{task},{'yes' if right == bool(task % 2) else 'no'},{task * 20}")
    (folder / "votes.csv").write_text("\n".join(rows) + "\n")
    study = folder / "study.rscope"
    assert main(["import", str(study), str(folder / "votes.csv")]) == 0
    assert main(["run", str(study), "pooled"]) == 0
    return study


@pytest.fixture(scope="module")
def counted(original):
    """The same votes with a majority vote, which is fused many times in a moment."""
    study = shutil.copy(original, original.with_name("counted.rscope"))
    assert main(["run", str(study), "majority"]) == 0
    return study


def export(study, path, *more):
    return main(["export", str(study), "--what", "assignments", "-o", str(path), *more])


def read(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_a_budget_is_distributed_within_its_limits(original, tmp_path, capsys):
    costs = tmp_path / "costs.csv"
    costs.write_text("annotator,cost,most\nann 3,4,\nann 11,1,2\n")
    limits = ["--set", "votes=40", "each=6", "per_task=2", "--costs", str(costs)]
    assert export(original, tmp_path / "a.csv", *limits) == 0
    rows = read(tmp_path / "a.csv")
    assert 0 < len(rows) <= 40
    load = Counter(row["annotator"] for row in rows)
    assert max(number for name, number in load.items() if name) <= 6
    assert load["ann 11"] <= 2
    assert {row["cost"] for row in rows if row["annotator"] == "ann 3"} <= {"4"}
    assert "Cost measures" in capsys.readouterr().err
    with Study.open(original, to_read=True) as study:
        assert stored_budget(study) == Budget()  # an export changes nothing


def test_decided_tasks_and_excluded_annotators_are_left_out(original, tmp_path):
    assert export(original, tmp_path / "before.csv", "--set", "votes=60") == 0
    first = read(tmp_path / "before.csv")[0]
    study_path = tmp_path / "study.rscope"
    study_path.write_bytes(original.read_bytes())
    with Study.open(study_path) as study:
        subject = TaskSubject(task=first["task"], label="yes")
        study.record(Decision(verb="label", item=1, subject=subject))
        study.record(Decision(verb="exclude", annotators=(first["annotator"],), reason="careless"))
    assert main(["run", str(study_path), "pooled"]) == 0
    assert export(study_path, tmp_path / "after.csv", "--set", "votes=60") == 0
    after = read(tmp_path / "after.csv")
    assert after
    assert first["task"] not in {row["task"] for row in after}
    assert first["annotator"] not in {row["annotator"] for row in after}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("annotator,cost\nann 1,0\n", "line 2: expected a cost above 0"),
        ("annotator,cost\nann 1,1\nann 1,2\n", "line 3: ann 1 is listed twice"),
        ("annotator,cost\nann 1,cheap\n", "line 2: expected numbers"),
        ("name,price\nann 1,1\n", "no columns annotator and cost"),
    ],
)
def test_a_wrong_table_of_costs_names_its_line(original, tmp_path, capsys, table, words):
    costs = tmp_path / "costs.csv"
    costs.write_text(table)
    assert export(original, tmp_path / "a.csv", "--costs", str(costs)) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "a.csv").exists()


def test_settings_of_a_budget_are_for_assignments_alone(original, tmp_path, capsys):
    other = ["export", str(original), "--what", "labels", "-o", str(tmp_path / "l.csv"), "--set", "votes=3"]
    assert main(other) == 1
    assert "--set and --costs are for exports of assignments" in capsys.readouterr().err


def test_prices_need_no_cost(tmp_path):
    path = tmp_path / "load.csv"
    path.write_text("annotator;most\nkim;3\nlee;\n")
    prices = read_prices(path)
    assert (prices["kim"].cost, prices["kim"].most, prices["lee"].most) == (1.0, 3, None)


def test_the_table_of_costs_has_the_curve_and_the_stop_rule(counted, tmp_path):
    path = tmp_path / "cost.csv"
    assert main(["export", str(counted), "--what", "cost", "-o", str(path)]) == 0
    rows = read(path)
    curve = [row for row in rows if row["what"] == "curve"]
    assert float(curve[-1]["votes_per_task"]) == 4
    assert {row["accuracy"] for row in rows if row["what"] != "gain"} == {"not known"}  # without gold tasks
    assert all(row["expected_accuracy"] == "" for row in rows if row["what"] == "stopped")
    assert [row["limit"] for row in rows if row["what"] == "stopped"] == ["0.8", "0.9", "0.95", "0.99"]


def test_the_report_has_the_cost_on_request(counted, tmp_path):
    for name, more in (("plain", []), ("cost", ["--cost"])):
        assert main(["report", str(counted), *more, "-o", str(tmp_path / f"{name}.html")]) == 0
    plain, cost = ((tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in ("plain", "cost"))
    assert "Accuracy against votes" not in plain
    assert "One more vote per task would gain about" in cost
    assert "votes do not reveal mistakes that annotators share" in cost  # no gold tasks


def test_votes_for_new_annotators_alone_count_no_others():
    def in_words(*annotators):
        gain = np.ones(len(annotators))
        votes = NextVotes(np.arange(len(annotators)), np.array(annotators), gain, gain)
        return Assignments(votes, len(annotators)).in_words()

    assert in_words(OPEN, OPEN).startswith("2 votes by new annotators. ")
    assert in_words(0, OPEN).startswith("2 votes by 1 annotator, 1 each at most, 1 by new annotators. ")
