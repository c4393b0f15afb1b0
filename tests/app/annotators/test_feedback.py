"""The feedback page of an annotator: mistakes, values, and no names of others."""

import csv
import re

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.annotators.agreement_statistics import agreement_by_annotator
from raterscope.app.annotator_evidence import Measure
from raterscope.app.annotators.table import read_annotators
from raterscope.app.annotators.writing import write_feedback
from raterscope.app.cli.program import main
from raterscope.app.errors import InputError
from raterscope.app.review import Decision, GoldSubject, TaskSubject
from raterscope.app.study import Study
from tests.app.annotators.made import PEOPLE


def words_of(path) -> str:
    return re.sub(
        r"<[^>]+>", " ", re.sub(r"<style.*?</style>", "", path.read_text(encoding="utf-8"), flags=re.S)
    )


def test_the_page_has_values_and_mistakes_of_both_kinds_and_no_other_name(four_study, tmp_path):
    with Study.open(four_study) as study:
        (question,) = study.questions()
        votes = study.vote_set(question.id)
        eve = votes.annotator_ids.tolist().index(study.annotators().index("eve"))
        task = int(votes.task[votes.annotator == eve][0])
        given = votes.scheme.outputs[votes.label[(votes.annotator == eve) & (votes.task == task)][0]]
        other = next(name for name in votes.scheme.classes if name != given)
        study.record(
            Decision(verb="gold", item=question.id, subject=GoldSubject(task=votes.tasks[task], label=other))
        )
        page = write_feedback(study, "eve", tmp_path / "eve.html")
    text = words_of(page)
    assert "Feedback for eve" in text
    assert "Where you differ from the others" in text  # eve is the worst of all
    clicks, labels = (
        text.index("Your clearest mistakes, clicks"),
        text.index("Your clearest mistakes, labels"),
    )
    assert "missed" in text[clicks:labels] or "no structure" in text[clicks:labels]
    assert votes.tasks[task] in text[labels:]
    assert "gold task" in text[labels:]
    assert "data:image/" in page.read_text(encoding="utf-8")
    for name in (*PEOPLE, "Anna K."):
        assert name == "eve" or not re.search(rf"\b{re.escape(name)}\b", text)


@pytest.mark.usefixtures("qapp")
def test_the_command_writes_a_pdf_by_any_joined_name(four_study, tmp_path, capsys):
    with Study.open(four_study) as study:
        study.record(Decision(verb="join", annotators=("anna", "Anna K.")))
    page = tmp_path / "anna.pdf"
    assert main(["report", str(four_study), "--annotator", "Anna K.", "-o", str(page)]) == 0
    assert page.read_bytes().startswith(b"%PDF")
    assert main(["report", str(four_study), "--annotator", "zoe", "-o", str(page)]) == 1
    assert "there is no annotator zoe to report on; expected one of anna" in capsys.readouterr().err
    assert main(["report", str(four_study), "--annotator", "eve", "-o", str(tmp_path / "eve.txt")]) == 1
    assert "ends in .html or .pdf" in capsys.readouterr().err


def test_pictures_and_texts_of_mistakes_are_shown(tmp_path):
    Image.new("RGB", (40, 30), (200, 60, 90)).save(tmp_path / "t1.png")
    rows = [("annotator", "task", "label", "text")]
    for task in range(6):
        for annotator in ("kim", "lee", "max", "zoe"):
            label = "yes" if annotator == "zoe" and task == 1 else "no"
            rows.append((annotator, f"t{task}", label, f"The <b>text</b> number {task}"))
    with (tmp_path / "votes.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    (tmp_path / "truth.csv").write_text("task,truth\nt1,no\n")
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), *map(str, (tmp_path / "t1.png", tmp_path / "votes.csv"))]) == 0
    assert main(["import", str(path), str(tmp_path / "truth.csv"), "--kind", "true-labels"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        page = write_feedback(study, "zoe", tmp_path / "zoe.html")
        assert "No clear mistake" in words_of(write_feedback(study, "kim", tmp_path / "kim.html"))
    html = page.read_text(encoding="utf-8")
    assert "data:image/" in html
    assert "The &lt;b&gt;text&lt;/b&gt; number 1" in html
    assert "number 2" not in html


def test_a_gold_task_that_the_expert_decides_otherwise_names_both_answers(tmp_path):
    votes = [f"{name},t{task},yes" for task in range(4) for name in ("kim", "lee", "max")]
    votes += [f"zoe,t{task},{answer}" for task, answer in enumerate(("no", "maybe", "yes", "yes"))]
    (tmp_path / "votes.csv").write_text("\n".join(("annotator,task,label", *votes)))
    (tmp_path / "truth.csv").write_text("task,truth\nt0,yes\nt1,yes\n")
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), str(tmp_path / "votes.csv")]) == 0
    assert main(["import", str(path), str(tmp_path / "truth.csv"), "--kind", "true-labels"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        for task in ("t0", "t1"):
            subject = TaskSubject(task=task, label="no")
            study.record(Decision(verb="label", item=study.questions()[0].id, subject=subject))
        text = words_of(write_feedback(study, "zoe", tmp_path / "zoe.html"))
    mistakes = text[text.index("Your clearest mistakes") :]
    assert "t0" not in mistakes  # the expert gave the same answer as zoe
    assert "gold task; the expert decided no" in mistakes
    assert "Right answer" not in text


def test_an_answer_below_the_parent_that_the_expert_decided_is_no_mistake(tmp_path):
    owls = ("bird/owl/tawny", "bird/owl/barn", "mammal/cat/lynx")
    votes = [f"{name},t{task},{owls[0]}" for task in range(4) for name in ("kim", "lee", "max")]
    votes += [f"zoe,t{task},{owls[at]}" for task, at in enumerate((1, 1, 2, 0))]
    (tmp_path / "votes.csv").write_text("\n".join(("annotator,task,label", *votes)))
    (tmp_path / "truth.csv").write_text(f"task,truth\nt1,{owls[0]}\n")
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), str(tmp_path / "votes.csv")]) == 0
    assert main(["import", str(path), str(tmp_path / "truth.csv"), "--kind", "true-labels"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        for task in ("t0", "t1", "t2"):
            subject = TaskSubject(task=task, label="bird/owl")
            study.record(Decision(verb="label", item=study.questions()[0].id, subject=subject))
        text = words_of(write_feedback(study, "zoe", tmp_path / "zoe.html"))
    mistakes = text[text.index("Your clearest mistakes") :]
    assert "t0" not in mistakes  # a barn owl is an owl
    assert "t1" in mistakes
    assert "the expert decided" not in mistakes  # the parent agrees with the ground truth
    assert "t2" in mistakes
    assert "decided by the expert" in mistakes


def test_numbers_have_no_more_digits_than_they_need():
    seconds = Measure("seconds", "time per vote", "", "s")
    assert seconds.in_words(500.0, 500.0, 500.0) == "500 (500 to 500) s"
    assert seconds.in_words(12.34) == "12.3 s"
    assert Measure("gold", "gold answered", "", is_count=True).in_words(600.0) == "600"


def test_without_a_result_there_is_no_page(tmp_path):
    (tmp_path / "votes.csv").write_text("annotator,task,label\nkim,t1,a\nlee,t1,b\n")
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), str(tmp_path / "votes.csv")]) == 0
    with Study.open(path) as study, pytest.raises(InputError, match="fuse first"):
        write_feedback(study, "kim", tmp_path / "kim.html")


def test_agreement_drift_and_time_have_intervals(four_study):
    with Study.open(four_study, to_read=True) as study:
        columns = read_annotators(study).columns
    for name in ("agreement", "drift"):
        value, low, high = (columns[f"labels_{name}{end}"] for end in ("", "_low", "_high"))
        known = np.isfinite(value)
        assert known.sum() == len(PEOPLE)
        assert ((low <= value) & (value <= high))[known].all()
    assert np.nanmedian(columns["labels_seconds_per_vote"]) == 1.0


@pytest.mark.parametrize("step", [1, 1000])  # few and many possible answers
def test_agreement_is_that_of_all_pairs(step):
    rng = np.random.default_rng(0)
    task, annotator = (each.ravel() for each in np.indices((40, 6)))
    answer = step * rng.integers(0, 3, len(task))
    found = agreement_by_annotator(task, answer, annotator, 7)
    table = answer.reshape(40, 6)
    for k in range(6):
        others = np.delete(table, k, axis=1)
        assert found[k, 0] == pytest.approx((others == table[:, [k]]).mean())
        assert found[k, 1] < found[k, 0] < found[k, 2]
    assert np.isnan(found[6]).all()
