"""Gathered cohorts: the same results as in the cases, one table of annotators, failures, resuming."""

import csv
import re
import shutil
from contextlib import ExitStack

import numpy as np
import pytest

from raterscope.app.batch.cohort import gather_cohort
from raterscope.app.batch.manifest import read_manifest
from raterscope.app.batch.task import STUDY, folder_of, run_case, write_status
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.kinds.masks.report import sections
from raterscope.app.review import Decision
from raterscope.app.review.subjects import TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.arrays import pack
from raterscope.app.study.labels import labels_of
from raterscope.app.study.masks import mask_entries, read_masks
from tests.app.batch.test_batch import a_manifest
from tests.app.kinds.masks.made import a_ball, write


def packed(record):
    size, chunks = pack(record)
    return size, b"".join(chunks)


def votes(path, annotators, seed=0):
    """Write the labels of annotators, who appear in the given order."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "annotator", "label"])
        for annotator in annotators:
            for task in range(12):
                writer.writerow([f"t{task}", annotator, "xy"[task % 2 if rng.random() < 0.8 else 0]])


def clicks(path, annotators, seed=0):
    """Write clicks on two images."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(20, 180, (2, 6, 2))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "annotator", "x", "y", "width", "height"])
        for annotator in annotators:
            for image, spots in enumerate(places):
                for x, y in spots[rng.random(len(spots)) < 0.8] + rng.normal(0, 1.5, 2):
                    writer.writerow([f"{image}.png", annotator, round(x, 2), round(y, 2), 200, 200])


def comparisons(path, annotators, seed=0):
    """Write comparisons of items."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["annotator", "left", "right", "choice"])
        for annotator in annotators:
            for _ in range(30):
                left, right = rng.choice(6, 2, replace=False)
                writer.writerow([annotator, f"i{left}", f"i{right}", "left" if left > right else "right"])


def masks(folder, radii):
    """Write a rater's ball each."""
    for name, radius in radii.items():
        write(folder / f"{name}.nii.gz", a_ball(radius=radius))


FIRST, SECOND = ("ann", "bob", "cy", "dee"), ("dee", "eve", "cy", "ann")
"""Annotators of two cases, whose order differs."""


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Two cases of each kind, with the same names of images and questions, and one that fails."""
    folder = tmp_path_factory.mktemp("cohort")
    rows = ["bad,labels,bad.csv,majority,"]
    (folder / "bad.csv").write_text("task,annotator,label\nt1,,x\n")
    for number, annotators in enumerate((FIRST, SECOND), start=1):
        for kind, make in (("labels", votes), ("clicks", clicks), ("pairs", comparisons)):
            make(folder / f"{kind}{number}.csv", annotators, seed=number)
        masks(folder / f"m{number}", dict(zip(annotators, (5.5, 6.0, 6.4, 9.0), strict=True)))
        rows += [
            f"l{number},labels,labels{number}.csv,dynibcc,",
            f"c{number},clicks,clicks{number}.csv,oem,",
            f"p{number},pairs,pairs{number}.csv,,",
            f"m{number},masks,m{number}/*.nii.gz,staple,",
        ]
    cases = read_manifest(a_manifest(folder, *rows))
    for case in cases:
        run_case(case, folder / "out")
    write_status(folder / "out", cases)
    return folder / "out"


@pytest.fixture(scope="module")
def gathered(cohort):
    path = cohort.with_name("cohort.rscope")
    assert main(["gather", str(cohort), "-o", str(path)]) == 0
    with Study.open(path, to_read=True) as study:
        yield study


@pytest.fixture
def both(cohort, gathered):
    """Gives an item in its case and in the gathered study: each with study, item, run and result."""
    with ExitStack() as opened:

        def read(kind, case, item=0):
            study = opened.enter_context(Study.open(folder_of(cohort, case) / STUDY, to_read=True))
            own, items = study.items()[kind][item], gathered.items()[kind]
            there = items[(int(case[1:]) - 1) * (len(items) // 2) + item]
            return (
                (study, own, *study.shown.result(own.id, kind)),
                (gathered, there, *gathered.shown.result(there.id, kind)),
            )

        yield read


def test_annotators_and_names_are_joined(gathered):
    assert sorted(gathered.annotators()) == ["ann", "bob", "cy", "dee", "eve"]
    names = {kind: [item.name for item in items] for kind, items in gathered.items().items()}
    assert names["labels"] == ["l1", "l2"]
    assert names["pairs"] == ["p1", "p2"]
    assert names["clicks"] == ["c1/0.png", "c1/1.png", "c2/0.png", "c2/1.png"]
    assert len(set(names["masks"])) == 2
    runs = {run.kind: run for run in gathered.runs.all()}
    assert len(runs) == len(gathered.runs.all()) == 4
    assert [record["question"] for record in runs["labels"].log["questions"]] == ["l1", "l2"]
    assert [record["image"] for record in runs["masks"].log["images"]] == names["masks"]


@pytest.mark.parametrize("case", ["l1", "l2"])
def test_labels_are_those_of_the_case(both, gathered, case):
    (study, own, run, result), (_, there, new_run, new) = both("labels", case)
    before, after = labels_of(study, own.id, run), labels_of(gathered, there.id, new_run)
    order = [before.annotators.index(name) for name in after.annotators]
    np.testing.assert_array_equal(np.argsort(order)[before.annotator], after.annotator)
    np.testing.assert_array_equal(new.fusion.posterior, result.fusion.posterior)
    np.testing.assert_array_equal(new.fusion.confusion.alpha, result.fusion.confusion.alpha[order])
    for at, name in enumerate(after.annotators):
        steps, own_steps = (
            fusion.drift.steps(number)
            for fusion, number in ((new.fusion, at), (result.fusion, before.annotators.index(name)))
        )
        np.testing.assert_array_equal(new.fusion.drift.vote[steps], result.fusion.drift.vote[own_steps])
        assert (after.annotator[new.fusion.drift.vote[steps]] == at).all()


@pytest.mark.parametrize("case", ["p1", "p2"])
def test_pairs_are_those_of_the_case(both, gathered, case):
    (study, own, _, result), (_, there, _, new) = both("pairs", case)
    before, after = study.comparison_set(own.id), gathered.comparison_set(there.id)
    names, new_names = (
        [one.annotators()[number] for number in given.annotator_ids]
        for one, given in ((study, before), (gathered, after))
    )
    order = [names.index(name) for name in new_names]
    np.testing.assert_array_equal(new.bias, result.bias[order])
    np.testing.assert_array_equal(new.statistic, result.statistic[:, order])
    np.testing.assert_array_equal(new.corrected, result.corrected)


@pytest.mark.parametrize("case", ["c1", "c2"])
@pytest.mark.parametrize("image", [0, 1])
def test_clicks_are_those_of_the_case(both, gathered, case, image):
    (study, own, _, result), (_, there, _, new) = both("clicks", case, image)
    before, after = study.clicks(own.id), gathered.clicks(there.id)
    order = [before.annotators.index(name) for name in after.annotators]
    np.testing.assert_array_equal(np.argsort(order)[before.annotator], after.annotator)
    np.testing.assert_array_equal(new.marked, result.marked[order])
    np.testing.assert_array_equal(new.rates.sensitivity, result.rates.sensitivity[order])
    np.testing.assert_array_equal(new.detection.posterior, result.detection.posterior)
    answers = gathered.shown.answers()[there.id]
    np.testing.assert_array_equal(answers.posterior, result.detection.posterior)


@pytest.mark.parametrize("case", ["m1", "m2"])
def test_masks_are_those_of_the_case(both, gathered, case):
    (study, own, _, result), (_, there, _, new) = both("masks", case)
    assert packed(new) == packed(result)
    (structure,) = {entry.structure for entry in mask_entries(study, own.id)}
    before, after = read_masks(study, own.id, structure), read_masks(gathered, there.id, structure)
    assert {name: packed(mask) for name, mask in before.items()} == {
        name: packed(mask) for name, mask in after.items()
    }


def test_the_report_lists_failed_cases_and_shows_the_most_disputed(gathered, tmp_path, monkeypatch):
    (failed,) = [case for case in gathered.settings.cohort if not case.is_done]
    assert (failed.case, failed.status) == ("bad", "bad input")
    assert "bad.csv, line 2" in failed.reason
    monkeypatch.setattr(sections, "MAX_SHOWN", 1)
    assert main(["report", str(gathered.path), "-o", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text()
    assert "bad.csv, line 2" in text
    assert "9 cases" in text
    names = [item.name for item in gathered.items()["masks"]]
    doubt = {
        item.name: sum(report.doubt_ml for report in gathered.shown.result(item.id, "masks")[1].reports)
        for item in gathered.items()["masks"]
    }
    headings = [name for name in names if re.search(rf"<h\d[^>]*>{name}</h", text)]
    assert headings == [max(names, key=doubt.__getitem__)]
    assert all(f">{name}<" in text for name in names)


def test_a_later_gathering_adds_cases_and_keeps_decisions(tmp_path, capsys):
    for number in (1, 2, 3):
        votes(tmp_path / f"{number}.csv", FIRST, seed=number)
    rows = [f"l{number},labels,{number}.csv,majority," for number in (1, 2, 3)]
    cases, out = read_manifest(a_manifest(tmp_path, *rows)), tmp_path / "out"
    for case in cases[:2]:
        run_case(case, out)
    write_status(out, cases)
    path = tmp_path / "cohort.rscope"
    gather = ["gather", str(out), "-o", str(path)]
    assert main(gather) == 0
    assert "2 of 3 cases" in capsys.readouterr().out
    with Study.open(path) as study:
        question = study.questions()[0].id
        study.record(Decision(verb="label", item=question, subject=TaskSubject(task="t1", label="x")))
    run_case(cases[2], out)
    assert main(gather) == 0
    assert "3 of 3 cases are in" in capsys.readouterr().out
    with Study.open(path) as study:
        assert len(study.decisions()) == 1
        assert [question.name for question in study.questions()][2] in ("l3", "labels")
        assert all(study.shown.result(question.id, "labels") for question in study.questions())
    votes(tmp_path / "3.csv", FIRST, seed=9)
    run_case(cases[2], out)
    assert main(gather) == 0
    assert "l3 changed" in capsys.readouterr().err


def test_decisions_in_the_study_of_a_case_come_along(tmp_path):
    for number in (1, 2):
        votes(tmp_path / f"{number}.csv", FIRST, seed=number)
    cases = read_manifest(
        a_manifest(tmp_path, *(f"l{number},labels,{number}.csv,majority," for number in (1, 2)))
    )
    out = tmp_path / "out"
    for case in cases:
        run_case(case, out)
    write_status(out, cases)
    with Study.open(folder_of(out, "l2") / STUDY) as study:
        question = study.questions()[0].id
        study.record(Decision(verb="exclude", annotators=("ann",)))
        study.record(Decision(verb="label", item=question, subject=TaskSubject(task="t1", label="x")))
        study.record(Decision(verb="label", item=question, subject=TaskSubject(task="t2", label="x")))
        study.record(Decision(verb="undo", undoes=3))
    gather_cohort(out, tmp_path / "cohort.rscope", lambda *_, **__: None)
    with Study.open(tmp_path / "cohort.rscope") as study:
        verbs = [(decision.verb, decision.item, decision.undoes) for decision in study.decisions()]
    assert verbs == [("label", 2, None), ("label", 2, None), ("undo", None, 2)]


def test_an_interrupted_gathering_leaves_no_study_and_goes_on(cohort, tmp_path):
    path = tmp_path / "cohort.rscope"

    def interrupted(fraction, *_, **__):
        if fraction > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gather_cohort(cohort, path, interrupted)
    assert not path.exists()
    gather_cohort(cohort, path, lambda *_, **__: None)
    with Study.open(path) as study:
        assert sum(case.is_done for case in study.settings.cohort) == 8
        assert len(study.images()) == 6
        assert len(study.runs.all()) == 4
    assert [file.name for file in tmp_path.iterdir()] == ["cohort.rscope"]


def test_a_damaged_case_is_listed_and_the_others_are_gathered(cohort, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(cohort, out)
    damaged = folder_of(out, "m1") / STUDY
    damaged.write_bytes(damaged.read_bytes()[:5000])
    gathered = gather_cohort(out, tmp_path / "cohort.rscope", lambda *_, **__: None)
    assert {case.case for case in gathered.failed} == {"bad", "m1"}


def test_another_study_is_not_overwritten(cohort, tmp_path):
    with Study.create(tmp_path / "mine.rscope"):
        pass
    with pytest.raises(InputError, match="not a gathered study"):
        gather_cohort(cohort, tmp_path / "mine.rscope", lambda *_, **__: None)
    with pytest.raises(InputError, match="has no status"):
        gather_cohort(tmp_path, tmp_path / "new.rscope", lambda *_, **__: None)
