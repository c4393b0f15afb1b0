"""`raterscope fuse labels` on files."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.cli import main
from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.kinds.labels.made import (
    CLASSES,
    GOOD,
    LAZY,
    LIAR,
    PEOPLE,
    make_study,
    truth,
    write_truth,
    write_votes,
)
from tests.app.tables import rows_of, write

SVG = "{http://www.w3.org/2000/svg}"
TRUE = {f"t{t}": CLASSES[number] for t, number in enumerate(truth())}


@pytest.fixture
def votes(tmp_path):
    return write_votes(tmp_path / "votes.csv")


def test_annotators_are_grouped_by_the_tasks_that_they_share(fuse, tmp_path):
    """Two shifts that answer alike and never meet: one community by behaviour, two by common tasks."""
    rows = [
        (f"{shift}{index}", f"{shift}-t{task}", CLASSES[task % 2])
        for shift in "ab" for index in range(8) for task in range(20)
    ]  # fmt: skip
    votes = write(tmp_path / "shifts.csv", ("annotator", "task", "label"), rows)
    shared, _ = fuse(votes, "--set", "communities=tasks", "community_method=louvain")
    groups = {row["annotator"]: row["community"] for row in rows_of(shared / "annotators.csv")}
    assert len(set(groups.values())) == 2
    assert all(groups[f"a{index}"] == groups["a0"] != groups[f"b{index}"] for index in range(8))
    record = json.loads((shared / "run.json").read_text(encoding="utf-8"))
    assert record["settings"]["about"]["communities"] == "tasks"
    alike, _ = fuse(votes, "--set", "communities=behaviour")
    assert len(rows_of(alike / "communities.csv")) == 1


def test_runs_of_earlier_versions_name_communities_by_yes_and_no():
    stored = LabelPlan.make("majority").as_dict()
    for former, setting in ((True, "behaviour"), (False, "no")):
        plan = LabelPlan.from_dict({**stored, "about": {**stored["about"], "communities": former}})
        assert plan.about.communities == setting


def test_the_tables_hold_what_was_planted(fuse, votes):
    out, _ = fuse(votes, "--algorithm", "ibcc")
    labels = rows_of(out / "labels.csv")
    assert list(labels[0]) == ["task", "label", *CLASSES, "entropy", "votes"]
    assert {row["task"]: row["label"] for row in labels} == TRUE
    for row in labels:
        assert float(row["cat"]) + float(row["dog"]) == pytest.approx(1)
        assert row["votes"] == str(len(PEOPLE))
    people = {row["annotator"]: row for row in rows_of(out / "annotators.csv")}
    assert list(people) == list(PEOPLE)
    assert all(0.8 < float(people[name]["accuracy"]) < 0.95 for name in GOOD)
    assert float(people[LIAR]["accuracy"]) < 0.1
    assert {people[name]["community"] for name in GOOD}.isdisjoint(
        {people[name]["community"] for name in (LIAR, LAZY)}
    )
    entries = {(row["annotator"], row["true"], row["given"]): row for row in rows_of(out / "confusion.csv")}
    assert len(entries) == 4 * len(PEOPLE)
    lazy = entries[LAZY, "dog", "cat"]
    # 80 dogs, all labelled as cats: the annotator's own mistakes are the prior's too.
    assert float(lazy["low"]) > 0.8
    assert float(lazy["probability"]) > 0.97
    assert float(lazy["low"]) < 81 / 83 < float(lazy["high"])
    assert lazy["step"] == "120"
    groups = rows_of(out / "communities.csv")
    assert sum(int(row["members"]) for row in groups) == len(PEOPLE)
    assert sum(float(row["share_of_votes"]) for row in groups) == pytest.approx(1)
    assert all(people[row["most_central"]]["community"] == row["community"] for row in groups)
    assert not (out / "evaluation.csv").exists()


def test_the_record_holds_settings_and_input(fuse, votes):
    options = ("--algorithm", "ibcc", "--set", "prior_strength=7", "communities=no", "--prior", "3 1; 1 3")
    out, _ = fuse(votes, *options)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["settings"]["settings"]["prior_strength"] == 7
    assert record["prior"] == [[3, 1], [1, 3]]
    assert record["stands_for"] == {"cat": "cat", "dog": "dog"}
    assert record["inputs"][0]["file"] == "votes.csv"
    assert record["questions"][0]["converged"] is True
    assert not (out / "communities.csv").exists()


@pytest.mark.parametrize("known", [False, True])
def test_every_warning_is_in_the_record(fuse, tmp_path, known):
    rng = np.random.default_rng(5)
    right = rng.integers(0, 3, 200)
    votes = np.where(rng.random((200, 8)) < 0.75, right[:, None], rng.integers(0, 3, (200, 8)))
    votes[:, 4] = np.where(rng.random(200) < 0.97, votes[:, 3], votes[:, 4])
    rows = [[f"t{t}", f"a{k}", f"c{votes[t, k]}"] for t in range(200) for k in range(8)]
    table = write(tmp_path / "copied.csv", ["task", "annotator", "label"], rows)
    truths = write(
        tmp_path / "true.csv", ["task", "truth"], [[f"t{t}", f"c{number}"] for t, number in enumerate(right)]
    )
    out, _ = fuse(table, *(["--truth", truths] if known else []))
    (record,) = json.loads((out / "run.json").read_text())["questions"]
    copied = [sentence for sentence in record["notices"] if "may copy from each other: a3, a4" in sentence]
    assert len(copied) == 1


def test_without_options_the_consensus_is_pooled(fuse, votes):
    out, _ = fuse(votes)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["settings"]["algorithm"] == "pooled"
    assert {row["task"]: row["label"] for row in rows_of(out / "labels.csv")} == TRUE


@pytest.mark.parametrize("text", ["3,1\n1,3\n", "cat,dog\n3,1\n1,3\n", ",cat,dog\ncat,3,1\ndog,1,3\n"])
def test_a_prior_may_be_a_file_with_names_or_without(fuse, votes, tmp_path, text):
    (tmp_path / "prior.csv").write_text(text)
    out, _ = fuse(votes, "--set", "communities=no", "--prior", tmp_path / "prior.csv")
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["prior"] == [[3, 1], [1, 3]]


def test_every_method_is_judged_by_the_truth(fuse, votes, tmp_path):
    out, output = fuse(votes, "--truth", write_truth(tmp_path / "truth.csv"), "--compare")
    rows = {row["method"]: row for row in rows_of(out / "evaluation.csv")}
    assert set(rows) == set(LABELLERS)
    assert all(row["tasks"] == "120" for row in rows.values())
    assert float(rows["ibcc"]["accuracy"]) == 1.0
    assert float(rows["ibcc"]["accuracy_low"]) == pytest.approx(1 / (1 + 1.959964**2 / 120), abs=1e-6)
    assert float(rows["ibcc"]["auc"]) == 1.0
    assert "majority vote against the truth of 120 tasks" in output


def test_truths_of_a_single_class_have_no_area_under_a_curve(fuse, votes, tmp_path):
    truth_file = write(tmp_path / "truth.csv", ["task", "label"], [["t1", "dog"], ["t2", "dog"]])
    out, output = fuse(votes, "--truth", truth_file)
    assert "accuracy 1.000" in output
    assert "nan" not in output
    assert rows_of(out / "evaluation.csv")[0]["auc"] == ""
    json.loads((out / "run.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


@pytest.mark.parametrize(("option", "judged", "fixed"), [("--folds", 60, 0), ("--hold-truth", None, 60)])
def test_truths_are_held_fixed_or_by_turns(fuse, votes, tmp_path, option, judged, fixed):
    out, output = fuse(votes, "--truth", write_truth(tmp_path / "truth.csv", step=2), option)
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))["questions"][0]
    assert record["held_fixed"] == fixed
    assert record["change_by_iteration"][-1] == record["last_change"]
    if judged is None:
        assert not (out / "evaluation.csv").exists()
        assert "--folds" in output
    else:
        assert {row["tasks"] for row in rows_of(out / "evaluation.csv")} == {str(judged)}


def test_roc_curves_of_all_methods_are_written_and_shown_in_the_report(fuse, votes, tmp_path):
    truths = write_truth(tmp_path / "truth.csv")
    out, output = fuse(votes, "--truth", truths, "--roc-curves", "methods=fast", "folds=3")
    rows = {row["method"]: row for row in rows_of(out / "roc_areas.csv")}
    assert rows.keys() == LABELLERS.keys() - {"gibbs", "ebcc", "dynibcc"}
    assert float(rows["ibcc"]["auc"]) == float(rows["ibcc"]["fold 3"]) == 1.0
    assert float(rows["majority"]["low"]) < float(rows["majority"]["auc"])
    curves = {row["curve"] for row in rows_of(out / "roc_curves.csv")}
    assert curves == {"pooled", "fold 1", "fold 2", "fold 3", "mean of folds"}
    picture = ElementTree.parse(out / "roc_curves.svg").getroot()
    assert any("IBCC, AUC 1.000" in (text.text or "") for text in picture.iter(f"{SVG}text"))
    assert "ROC by 3-fold cross-validation of 120 known tasks" in output
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["roc_curves"]["folds"] == 3
    fuse(votes, "--truth", truths)
    assert not (out / "roc_curves.svg").exists()
    study = make_study(tmp_path / "s.rscope", votes, truths)
    assert run("run", study, "majority") == 0
    assert run("report", study, "--roc-curves", "methods=fast", "-o", tmp_path / "r.html") == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "ROC curves by 5-fold cross-validation" in page
    assert "AUC, mean of folds" in page


def test_rates_over_time_are_written_for_a_class(fuse, votes, tmp_path):
    truths = write_truth(tmp_path / "truth.csv")
    out, _ = fuse(votes, "--truth", truths, "--algorithm", "majority", "--rates-over-time", "cat")
    rows = rows_of(out / "rates_over_time.csv")
    last = {row["annotator"]: row for row in rows if row["step"] == "11" and row["method"] == "batch"}
    assert set(last) == {"", *PEOPLE}
    assert float(last[LIAR]["sensitivity"]) < 0.1 < float(last[GOOD[0]]["sensitivity"])
    assert float(last[LAZY]["specificity"]) < 0.1
    decisions = rows_of(out / "decisions_over_time.csv")
    assert {row["method"] for row in decisions} == {"recursive", "batch", "majority", "map"}
    assert (out / "rates_over_time.svg").read_bytes().startswith(b"<svg ")


def test_the_subsample_alone_is_fused(fuse, votes, tmp_path, capsys):
    truths = write_truth(tmp_path / "truth.csv", step=2)
    out, output = fuse(votes, "--truth", truths, "--subsample", "20", "11")
    assert len(rows_of(out / "labels.csv")) == 120
    assert "Subsample: 120 of 120 tasks, with 1,320 votes by 11 annotators" in output
    assert run("fuse", "labels", votes, "--truth", truths, "--subsample", "21", "1", "-o", out) == 1
    assert "the maximum is 20" in capsys.readouterr().err


def test_an_earlier_evaluation_does_not_outlive_its_truth(fuse, votes, tmp_path):
    out, _ = fuse(votes, "--truth", write_truth(tmp_path / "truth.csv"))
    assert (out / "evaluation.csv").exists()
    fuse(votes)
    assert not (out / "evaluation.csv").exists()


def test_the_matrices_of_a_dynamic_model_are_written_step_by_step(fuse, tmp_path):
    votes = write_votes(tmp_path / "votes.csv", times=True)
    for steps, expected in (("last", [120]), ("all", list(range(1, 121))), ("4", [1, 41, 80, 120])):
        out, _ = fuse(votes, "--algorithm", "dynibcc", "--steps", steps, "--set", "communities=no")
        results = {int(row["step"]) for row in rows_of(out / "confusion.csv") if row["annotator"] == LIAR}
        assert sorted(results) == expected


def test_votes_of_two_files_are_one_crowd(fuse, votes, tmp_path):
    lines = votes.read_text(encoding="utf-8").splitlines()
    halves = []
    for number, rows in enumerate((lines[1:600], lines[600:])):
        halves.append(tmp_path / f"half{number}.csv")
        halves[-1].write_text("\n".join([lines[0], *rows]), encoding="utf-8")
    out, _ = fuse(votes)
    contents = [(out / name).read_bytes() for name in ("labels.csv", "annotators.csv", "confusion.csv")]
    out, output = fuse(*halves)
    assert "1,320 votes by 11 annotators on 120 tasks" in output
    assert [
        (out / name).read_bytes() for name in ("labels.csv", "annotators.csv", "confusion.csv")
    ] == contents


def test_a_file_that_is_named_twice_holds_its_votes_once(fuse, votes):
    _, output = fuse(votes, votes)
    assert "1,320 votes" in output


def test_a_table_too_large_to_open_is_skipped_with_a_notice(fuse, votes, monkeypatch):
    out, _ = fuse(votes)
    assert (out / "confusion.csv").exists()
    monkeypatch.setattr("raterscope.app.kinds.labels.fusion_tables.MAX_ENTRIES", 43)
    out, output = fuse(votes)
    assert "confusion.csv is not written: it would have 44 rows" in output
    assert not (out / "confusion.csv").exists()


def test_each_of_several_questions_has_a_folder(fuse, tmp_path):
    files = [write_votes(tmp_path / f"{name}.csv", question=name) for name in ("first?", "second?")]
    out, output = fuse(*files)
    assert "of 2 questions" in output
    folders = sorted(path for path in out.iterdir() if path.is_dir())
    assert len(folders) == 2
    for folder in folders:
        assert {row["task"]: row["label"] for row in rows_of(folder / "labels.csv")} == TRUE
    _, output = fuse(*files, "--question", "SECOND?")
    assert "on 120 tasks, fused" in output


def test_scores_stand_for_classes_as_assigned(fuse, tmp_path):
    """Three people who say -1 of a no, and 1 or 3 of a yes; who hesitates says 0."""
    true = np.arange(40) % 2
    rows = [[f"w{k}", f"t{t}", ("-1", str(1 + 2 * (k == 1)))[true[t]]] for t in range(40) for k in range(3)]
    rows += [["w3", f"t{t}", "0"] for t in range(40)]
    path = write(tmp_path / "scores.csv", ["worker", "item", "score"], rows)
    options = ["--classes", "no,yes", "--stands", "-1=no", "0=", "1=yes", "3=yes"]
    out, _ = fuse(path, "--outputs", "-1,0,1,3", *options)
    assert [row["label"] for row in rows_of(out / "labels.csv")] == [("no", "yes")[number] for number in true]
    entries = [row for row in rows_of(out / "confusion.csv") if row["annotator"] == "w1"]
    assert [(row["true"], row["given"]) for row in entries][:4] == [
        ("no", value) for value in ("-1", "0", "1", "3")
    ]
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert record["stands_for"] == {"-1": "no", "0": None, "1": "yes", "3": "yes"}


def test_assumed_meanings_of_outputs_are_reported(fuse, tmp_path):
    rows = [[f"w{k}", f"t{t}", str((t % 2) * (1 + 2 * (k == 1)))] for t in range(40) for k in range(3)]
    path = write(tmp_path / "scores.csv", ["worker", "item", "score"], rows)
    guessed = "assumed to mean: 0 for no, 1 for no, 3 for yes; --stands output=class changes it"
    assert guessed in fuse(path, "--classes", "no,yes")[1]
    assert "assumed to mean" not in fuse(path, "--classes", "no,yes", "--stands", "0=no", "1=yes", "3=yes")[1]
    rows = [
        [annotator, task, "dog" if label == "3" else "cat" if label == "0" else "?"]
        for annotator, task, label in rows
    ]
    path = write(tmp_path / "words.csv", ["worker", "item", "label"], rows)
    assert "? for none, cat for Cat, dog for Dog" in fuse(path, "--classes", "Cat,Dog")[1]


def test_the_next_vote_is_on_the_most_disputed_task(fuse, votes):
    lines = votes.read_text(encoding="utf-8").splitlines()
    scarce = [lines[0], *(line for line in lines[1:] if ",t7," not in line), "good 0,t7,cat", "good 1,t7,dog"]
    votes.write_text("\n".join(scarce), encoding="utf-8")
    out, _ = fuse(votes)
    first = rows_of(out / "next_votes.csv")[0]
    assert first["task"] == "t7"
    assert first["votes"] == "2"
    assert first["annotator"] == LIAR  # who never fails to say the other class
    assert float(first["gain"]) > 0.5


class TestStudy:
    @pytest.fixture
    def study(self, votes, tmp_path):
        """A study with a decision, an exclusion, and a run as the window makes it."""
        path = make_study(tmp_path / "s.rscope", votes)
        with Study.open(path) as study:
            (question,) = [question.id for question in study.questions()]
            wrong = CLASSES[1 - truth()[5]]
            decided = TaskSubject(task="t5", label=wrong)
            study.record(Decision(verb="label", item=question, subject=decided))
            study.record(Decision(verb="exclude", annotators=(LIAR,), reason="asleep"))
            keep(fuse_inputs(gather([question], study), LabelPlan.make("pooled")), study)
        return path

    @pytest.mark.parametrize("options", [(), ("--run", "1")])
    def test_the_result_is_the_window_s(self, fuse, study, tmp_path, options):
        out, output = fuse(study, *options)
        assert "1 truth held fixed" in output
        for name in ("labels", "annotators", "confusion", "communities"):
            exported = tmp_path / f"{name}.csv"
            assert run("export", study, "--what", name, "-o", exported) == 0
            assert (out / f"{name}.csv").read_bytes() == exported.read_bytes()
        record = json.loads((out / "run.json").read_text(encoding="utf-8"))
        assert record["inputs"][0]["file"] == "s.rscope"
        assert record["inputs"][0].get("run") == (1 if options else None)

    def test_options_of_files_are_refused(self, refusal, study, votes):
        assert "expected no other file with it" in refusal(study, votes)
        assert "expected no --classes" in refusal(study, "--classes", "cat,dog")
        assert "has no run number 7" in refusal(study, "--run", "7")
        assert "--run names a run of a study" in refusal(votes, "--run", "1")
        assert "expected no --set" in refusal(study, "--run", "1", "--set", "iterations=9")


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--algorithm", "oem"], "oem is no algorithm for labels"),
            (["--set", "iterations=none"], "--set iterations is 'none'; expected a whole number"),
            (["--hold-truth"], "--truth"),
            (["--hold-truth", "--folds"], "exclude each other"),
            (["--outputs", "cat,cow"], "dog was given by annotators"),
            (["--stands", "cat=cow"], "cow is no class; expected one of cat, dog"),
            (["--prior", "1 2 3; 1 2 3"], "2 rows of 3 numbers; expected 2 of 2"),
            (["--prior", "2 1; 1 -2"], "row 2 of the prior has -2; expected numbers above 0"),
            (["--prior", "1 x; 2 1"], "1 x; 2 1: cannot be read as a prior"),
            (["--question", "which?"], "there is no question which?; expected one of labels"),
            (["--steps", "some"], "neither last, nor all, nor a number"),
        ],
    )  # fmt: skip
    def test_options_that_do_not_fit(self, refusal, votes, arguments, words):
        assert words in refusal(votes, *arguments)

    def test_files_that_do_not_fit(self, refusal, votes, tmp_path):
        (tmp_path / "empty.csv").write_text("annotator,task,label\n")
        assert refusal(tmp_path / "empty.csv").startswith("empty.csv: ")
        other_truth = write(tmp_path / "other.csv", ["task", "label"], [["elsewhere", "cat"]])
        assert refusal(votes, "--truth", other_truth).startswith("other.csv: has the truth of no task")
        write(tmp_path / "odd.csv", ["wer", "was", "wie"], [["a", "b", "c"]])
        assert "by --map column=field" in refusal(tmp_path / "odd.csv")
        assert refusal(tmp_path / "gone.csv").startswith("gone.csv: ")

    def test_columns_are_named_by_hand(self, fuse, tmp_path):
        path = write(tmp_path / "odd.csv", ["wer", "was", "wie"], [["a", "b", "c"], ["d", "b", "c"]])
        out, _ = fuse(path, "--map", "wer=annotator", "was=task", "wie=label")
        assert [row["label"] for row in rows_of(out / "labels.csv")] == ["c"]


def test_help_and_settings_are_those_of_labels_alone(capsys):
    assert main(["fuse", "labels", "--help"]) == 0
    output = capsys.readouterr().out
    assert "dynibcc: dynamic IBCC" in output
    assert "staple" not in output
    assert main(["fuse", "labels", "--list-settings"]) == 0
    assert "truths=measure" in capsys.readouterr().out
