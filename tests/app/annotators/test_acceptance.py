"""Acceptance samples of a study: drawn with a seed, re-read by decisions, undone, exported, reported."""

import csv

import pytest

from raterscope.app.cli.program import main
from raterscope.app.review import Decision, SampleSubject, TaskSubject, fold, read_sample
from raterscope.app.study import Study
from tests.app.commands import run

PLAN = ("--acceptable", "0.05", "--unacceptable", "0.4")


def drawn(path, kind, *more) -> SampleSubject:
    assert run("plan", "sample", str(path), "--kind", kind, *PLAN, *more) == 0
    with Study.open(path, to_read=True) as study:
        return fold(study.decisions()).sample(kind).subject


def another(label: str) -> str:
    return "artefact" if label == "ring" else "ring"


def re_read(study, subject, wrong: int, count: int) -> None:
    for place, item in enumerate(subject.items[:count]):
        label = another(item.answer) if place < wrong else item.answer
        study.record(Decision(verb="label", item=item.item, subject=TaskSubject(task=item.name, label=label)))


@pytest.mark.parametrize("kind", ["clicks", "masks", "labels", "pairs"])
def test_a_seed_draws_the_same_sample_of_every_kind_again(four_study, kind):
    from raterscope.app.annotators.acceptance import list_undecided

    with Study.open(four_study) as study:
        lot = list_undecided(kind, study)
    first = drawn(four_study, kind)
    again = drawn(four_study, kind)
    assert first.items == again.items
    if len(lot) > 20:
        assert drawn(four_study, kind, "--seed", "2").items != first.items
    assert set(first.items) <= set(lot)
    assert len(first.items) == first.single.size <= first.total == len(lot)


def test_decisions_count_until_the_plan_decides_and_undo_takes_one_back(four_study):
    subject = drawn(four_study, "labels")
    accept, size = subject.single.accept, subject.single.size
    with Study.open(four_study) as study:
        re_read(study, subject, wrong=accept, count=size - 1)
        progress = read_sample(fold(study.decisions()), "labels")
        assert (len(progress.right), progress.errors, progress.verdict) == (size - 1, accept, "continue")
        assert progress.count_in_words() == f"{size - 1} of {size} re-read, 1 error, at most {accept}"
        last = subject.items[size - 1]
        wrong = study.record(
            Decision(
                verb="label", item=last.item, subject=TaskSubject(task=last.name, label=another(last.answer))
            )
        )
        assert read_sample(fold(study.decisions()), "labels").verdict == "reject"
        study.record(Decision(verb="undo", undoes=wrong.id))
        assert read_sample(fold(study.decisions()), "labels").verdict == "continue"
        re_read(study, subject, wrong=accept, count=size)
    with Study.open(four_study) as study:
        state = fold(study.decisions())
        assert read_sample(state, "labels").verdict_in_words() == "Accepted"
        study.record(Decision(verb="close", subject=SampleSubject(of="labels")))
        closed = study.decisions()
        assert read_sample(fold(closed), "labels") is None
        assert read_sample(fold(closed, state), "labels") is None
        study.record(Decision(verb="undo", undoes=closed[-1].id))
        assert read_sample(fold(study.decisions()), "labels") is not None


def test_a_sequential_plan_stands_by_its_first_verdict():
    from raterscope.algorithms.annotators.acceptance import sequential_sampling
    from raterscope.app.review import SampledItem, SampleProgress

    plan = sequential_sampling(0.01, 0.1)
    items = tuple(SampledItem(item=1, name=f"t{at}", answer="a") for at in range(plan.most))
    subject = SampleSubject(of="labels", items=items, total=500, sequential=plan)
    right = {at: (at + 2, True) for at in range(30)}
    assert SampleProgress(1, subject, right).verdict == "accept"
    late = {**right, **{at: (at + 2, False) for at in range(30, 36)}}
    assert SampleProgress(1, subject, late).verdict == "accept"
    early = {at: (at + 2, at > 5) for at in range(36)}
    assert SampleProgress(1, subject, early).verdict == "reject"


def test_the_sample_is_exported_reported_and_reported_on_the_command_line(four_study, tmp_path, capsys):
    subject = drawn(four_study, "labels")
    with Study.open(four_study) as study:
        re_read(study, subject, wrong=1, count=3)
    assert run("plan", "progress", str(four_study)) == 0
    printed = capsys.readouterr().out
    assert f"3 of {subject.single.size} re-read, 1 error" in printed
    assert "Not decided yet." in printed
    path = tmp_path / "samples.csv"
    assert run("export", str(four_study), "--what", "acceptance", "-o", str(path)) == 0
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == [item.name for item in subject.items]
    assert [row["right"] for row in rows[:4]] == ["0", "1", "1", ""]
    report = tmp_path / "report.html"
    assert main(["report", str(four_study), "-o", str(report)]) == 0
    assert f"3 of {subject.single.size} re-read, 1 error" in report.read_text(encoding="utf-8")


def test_the_verdict_stays_in_report_and_exports_after_the_plan_is_ended(four_study, tmp_path, capsys):
    subject = drawn(four_study, "labels")
    with Study.open(four_study) as study:
        re_read(study, subject, wrong=0, count=subject.single.size)
        study.record(Decision(verb="close", subject=SampleSubject(of="labels")))
        re_read(study, subject, wrong=9, count=9)  # later decisions are no part of the sample
    outcome = f"{subject.single.size} of {subject.single.size} re-read, 0 errors"
    assert run("plan", "progress", str(four_study)) == 0
    assert f"{outcome}, at most {subject.single.accept}. Accepted." in capsys.readouterr().out
    path, report = tmp_path / "samples.csv", tmp_path / "report.html"
    assert run("export", str(four_study), "--what", "acceptance", "-o", str(path)) == 0
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert {(row["right"], row["verdict"]) for row in rows} == {("1", "accepted")}
    assert main(["report", str(four_study), "-o", str(report)]) == 0
    assert outcome in report.read_text(encoding="utf-8")


def test_a_study_without_a_sample_or_a_result_is_named(four_study, refusal):
    assert "has no acceptance sample" in refusal("plan", "progress", str(four_study))
    assert "--kind is missing" in refusal("plan", "sample", str(four_study), *PLAN)
