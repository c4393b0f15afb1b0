"""Sets of tags from the import to the export: a question each, one table of all."""

import numpy as np
import pytest

from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.tables import rows_of, write

TAGS = ("crime", "sport", "war")
TASKS = 60


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Six annotators, each wrong about a tenth of the tags; the expert adds a tag to the first task."""
    random = np.random.default_rng(3)
    truth = random.random((TASKS, 3)) < 0.4
    rows = []
    for task, true in enumerate(truth):
        for annotator in range(6):
            given = true ^ (random.random(3) < 0.1)
            tags = [tag for tag, has in zip(TAGS, given, strict=True) if has]
            rows.append([f"a{annotator}", f"t{task}", "|".join(tags)])
    folder = tmp_path_factory.mktemp("tags")
    path = folder / "s.rscope"
    assert run("import", path, write(folder / "votes.csv", ["annotator", "task", "tags"], rows)) == 0
    assert run("run", path, "ibcc") == 0
    truth[0, 1] = not truth[0, 1]
    with Study.open(path) as opened:
        (sport,) = [entry.id for entry in opened.questions() if entry.name == "tags: sport"]
        subject = TaskSubject(task="t0", label="present" if truth[0, 1] else "absent")
        opened.record(Decision(verb="label", item=sport, subject=subject))
    return path, truth


def test_one_table_has_the_tags_of_each_task_after_decisions(study, tmp_path):
    path, truth = study
    out = tmp_path / "tags.csv"
    assert run("export", path, "--what", "tags", "-o", out) == 0
    rows = rows_of(out)
    assert list(rows[0]) == ["task", "tags", *(f"p({tag})" for tag in TAGS)]
    assert len(rows) == TASKS
    written = np.array([[tag in row["tags"].split("; ") for tag in TAGS] for row in rows])
    assert (written == truth).mean() > 0.97
    assert float(rows[0]["p(sport)"]) == truth[0, 1]
    for row in rows:
        assert row["tags"] == "; ".join(tag for tag in TAGS if float(row[f"p({tag})"]) > 0.5)


def test_agreement_over_sets_is_exported_beside_that_of_each_tag_and_reported(study, tmp_path):
    path, _ = study
    assert run("export", path, "--what", "agreement", "-o", tmp_path / "agreement") == 0
    assert len(list((tmp_path / "agreement").iterdir())) == len(TAGS) + 1
    rows = {row["coefficient"]: row for row in rows_of(tmp_path / "agreement" / "tags_agreement.csv")}
    alpha = rows["Krippendorff's alpha"]
    assert 0.3 < float(alpha["low"]) < float(alpha["value"]) < float(alpha["high"]) < 0.9
    assert alpha["votes"] == str(6 * TASKS)
    assert run("report", path, "-o", tmp_path / "report.html") == 0
    assert "Agreement over sets of tags" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_study_without_tags_has_no_table_of_them(tmp_path, capsys):
    votes = write(tmp_path / "v.csv", ["annotator", "task", "label"], [["a", "t", "x"], ["b", "t", "y"]])
    path = tmp_path / "s.rscope"
    assert run("import", path, votes) == 0
    assert run("run", path, "ibcc") == 0
    assert run("export", path, "--what", "tags", "-o", tmp_path / "tags.csv") != 0
    assert "no votes with several tags" in capsys.readouterr().err


def test_tags_of_earlier_files_are_absent_on_the_tasks_of_a_later_file(tmp_path):
    header, path = ["annotator", "task", "tags"], tmp_path / "s.rscope"
    first = [[f"a{number}", f"t{task}", "war|sport"] for number in range(2) for task in range(4)]
    later = [["a3", "t1", "war"], ["a3", "t9", "war"]]
    assert run("import", path, write(tmp_path / "first.csv", header, first)) == 0
    assert run("import", path, write(tmp_path / "later.csv", header, later)) == 0
    with Study.open(path) as study:
        votes = {
            entry.name: study.vote_set(entry.id).labels(study.annotators()) for entry in study.questions()
        }
    assert sorted(votes) == ["tags: sport", "tags: war"]
    for question, given in (("tags: sport", "absent"), ("tags: war", "present")):
        labels = votes[question]
        by_a3 = labels.annotator == labels.annotators.index("a3")
        tasks = [labels.tasks[task] for task in labels.task[by_a3]]
        assert sorted(tasks) == ["t1", "t9"]
        assert {labels.outputs[label] for label in labels.label[by_a3]} == {given}
        assert len(labels.task) == len(first) + 2
