"""Grades from a table to the study, the command line and Python: detected, declared, exported, kept."""

import csv

import numpy as np
import pytest

import raterscope as rs
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.cli import main
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.labels.runs import digest_of, fuse_inputs, gather, keep
from raterscope.app.kinds.labels.variability import scales_of
from raterscope.app.study import Study
from raterscope.app.study.labels import set_scheme


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Grades 1 to 5 by twelve annotators, some with a bias, and the truth."""
    rng = np.random.default_rng(4)
    truth = rng.integers(1, 6, 80)
    bias, rows = rng.choice([-1, 0, 0, 1], 12), []
    for task, grade in enumerate(truth):
        for annotator in rng.choice(12, 4, replace=False):
            vote = int(np.clip(np.rint(grade + bias[annotator] + 0.6 * rng.standard_normal()), 1, 5))
            rows.append((f"t{task:02}", f"ann {annotator}", vote))
    path = tmp_path_factory.mktemp("grades") / "grades.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("task", "annotator", "label"), *rows])
    return path, rows


def fuse(folder, path, *options):
    assert main(["fuse", "labels", str(path), "--set", "communities=no", *options, "-o", str(folder)]) == 0
    with (folder / "labels.csv").open() as file:
        return list(csv.DictReader(file))


def test_detected_grades_have_median_and_interval_in_the_table(votes, tmp_path, capsys):
    rows = fuse(tmp_path / "detected", votes[0])
    assert all(int(row["low"]) <= int(row["median"]) <= int(row["high"]) for row in rows)
    assert "grades from 1 to 5" in capsys.readouterr().err
    plain = fuse(tmp_path / "codes", votes[0], "--no-ordered")
    assert "median" not in plain[0]
    assert [row["1"] for row in rows] != [row["1"] for row in plain]


def test_words_are_declared_ordered(votes, tmp_path, capsys):
    path, words = tmp_path / "words.csv", ("none", "mild", "some", "much", "severe")
    with path.open("w", newline="") as file:
        named = [(task, annotator, words[vote - 1]) for task, annotator, vote in votes[1]]
        csv.writer(file).writerows([("task", "annotator", "label"), *named])
    rows = fuse(tmp_path / "out", path, "--outputs", ",".join(words), "--ordered")
    numbers = fuse(tmp_path / "numbers", votes[0])
    assert [words[int(row["median"]) - 1] for row in numbers] == [row["median"] for row in rows]
    assert fuse(tmp_path / "grades", path, "--grades", ",".join(words)) == rows
    command = ["fuse", "labels", str(path), "-o", str(tmp_path / "x"), "--grades"]
    assert main([*command, "none,mild,much,severe"]) == 1
    assert "some was given by annotators; expected it among --grades" in capsys.readouterr().err
    assert main([*command, ",".join(words), "--no-ordered"]) == 1
    assert "expected no --outputs, --classes or --ordered" in capsys.readouterr().err
    (tmp_path / "truth.csv").write_text("task,label\nt00,fatal\n")
    assert main([*command, ",".join(words), "--truth", str(tmp_path / "truth.csv")]) == 1
    assert "fatal is the true class of a task; expected it among --grades" in capsys.readouterr().err
    study = str(tmp_path / "s.rscope")
    assert main(["import", study, str(path), "--grades", "none,mild,much,severe"]) == 0
    assert "it lacks the class some" in capsys.readouterr().out
    assert main(["import", study, str(path), "--grades", ",".join(words)]) == 0
    with Study.open(tmp_path / "s.rscope", to_read=True) as opened:
        assert opened.questions()[0].scheme.classes == words
        assert opened.questions()[0].scheme.ordered


def test_python_takes_and_gives_grades(votes):
    table = dict(zip(("task", "annotator", "label"), zip(*votes[1], strict=True), strict=True))
    table = {name: list(values) for name, values in table.items()}
    frame = rs.fuse_labels(table, communities="no").to_frame()
    declared = rs.fuse_labels(table, ordered=["1", "2", "3", "4", "5"], communities="no").to_frame()
    assert frame["median"].tolist() == declared["median"].tolist()
    with pytest.raises(KeyError):
        rs.fuse_labels(table, ordered=False, communities="no").to_frame()["median"]


def test_a_study_keeps_the_declaration(votes, tmp_path):
    with Study.create(tmp_path / "grades.rscope") as study:
        store(read_files([votes[0]]), study)
        (question,) = study.questions()
        assert study.vote_set(question.id).ordered
        inputs = gather([question.id], study)
        assert set(scales_of(inputs.given[question.name].labels)) == {
            "nominal", "ordinal", "linear", "interval",
        }  # fmt: skip
        before = digest_of(inputs.given)
        keep(fuse_inputs(inputs, LabelPlan()), study)
        scheme = question.scheme
        set_scheme(
            study, question.id, type(scheme)(scheme.outputs, scheme.classes, scheme.meaning, None, False)
        )
    with Study.open(tmp_path / "grades.rscope") as study:
        assert not study.vote_set(question.id).ordered
        assert digest_of(gather([question.id], study).given) != before
        result = study.shown.result(question.id, "labels")
        assert any("grades from 1 to 5" in words for words in result[1].fusion.notices)


def test_pairs_of_annotators_have_weighted_kappa(votes, tmp_path):
    with Study.create(tmp_path / "grades.rscope") as study:
        store(read_files([votes[0]]), study)
    out = tmp_path / "variability.csv"
    assert main(["export", str(tmp_path / "grades.rscope"), "--what", "variability", "-o", str(out)]) == 0
    with out.open() as file:
        kappa = {
            row["statistic"]: float(row["value"])
            for row in csv.DictReader(file)
            if "kappa" in row["statistic"]
        }
    assert {"linear kappa", "quadratic kappa"} <= set(kappa)


def test_parents_are_beside_the_labels(tmp_path):
    path = tmp_path / "birds.csv"
    kinds = ("bird/owl", "bird/crow", "fish/cod")
    rows = [(f"t{task}", f"a{person}", kinds[(task + (person == task % 4)) % 3])
            for task in range(12) for person in range(4)]  # fmt: skip
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("task", "annotator", "label"), *rows])
    for row in fuse(tmp_path / "out", path):
        bird = float(row["bird/owl"]) + float(row["bird/crow"])
        assert float(row["parent_probability"]) == pytest.approx(max(bird, 1 - bird), abs=1e-9)
        assert row["parent"] == ("bird" if bird > 0.5 else "fish")
