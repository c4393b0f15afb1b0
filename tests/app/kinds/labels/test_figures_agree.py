"""Every figure of an annotator is the same in the window, in the files and in the report."""

import json
import re

import numpy as np
import pytest

from raterscope.algorithms.labels.constancy import FALSE_ALARMS
from raterscope.algorithms.labels.copying import find_copies
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.progress import silent
from raterscope.app.kinds.labels.evaluation import errors_shown, trust_in_labels
from raterscope.app.kinds.labels.runs import errors_in_words, fuse_inputs, gather, keep
from raterscope.app.report import write_report
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from raterscope.app.workspaces.labels import annotator_detail, view
from raterscope.app.workspaces.labels.scene import analyse, read_scene
from raterscope.text import estimate
from tests.app.commands import run
from tests.app.kinds.labels.made import make_study
from tests.app.tables import rows_of, write

TASKS, PEOPLE = 240, 12
RING, TIRED, OUT = ("a0", "a1", "a2"), "a5", "a11"


@pytest.fixture
def path(tmp_path):
    """A crowd of which three copy, one tires after half of the votes, and one is excluded."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, TASKS)
    right = np.full((TASKS, PEOPLE), 0.8)
    right[TASKS // 2 :, 5] = 0.2
    answers = np.where(rng.random(right.shape) < right, truth[:, None], rng.integers(0, 3, right.shape))
    answers[:, 1:3] = answers[:, :1]
    rows = [[f"t{t}", f"a{k}", f"c{answers[t, k]}", t * 60] for t in range(TASKS) for k in range(PEOPLE)]
    votes = write(tmp_path / "votes.csv", ["task", "annotator", "label", "time"], rows)
    study_path = make_study(tmp_path / "s.rscope", votes)
    with Study.open(study_path) as study:
        study.record(Decision(verb="exclude", annotators=(OUT,), reason="asleep"))
        questions = [question.id for question in study.questions()]
        keep(fuse_inputs(gather(questions, study), LabelPlan.make("dynibcc")), study)
    return study_path


def test_accuracies_changes_rings_and_exclusions_agree(path, tmp_path, capsys):
    assert run("fuse", "labels", path, "--algorithm", "dynibcc", "-o", tmp_path / "out") == 0
    notices = capsys.readouterr().err
    rows = {row["annotator"]: row for row in rows_of(tmp_path / "out" / "annotators.csv")}
    record = (tmp_path / "out" / "run.json").read_text(encoding="utf-8")
    with Study.open(path) as study:
        scene = read_scene(study.questions()[0].id, None, study, silent)
        page = write_report(study, tmp_path / "report.html").read_text(encoding="utf-8")
        page = page.replace("\xa0", " ")
    analysis = analyse(scene, silent)
    in_report: dict[str, list[str]] = {}
    for line in re.findall("<tr.*?</tr>", page, re.S):
        cells = [re.sub("<[^>]*>", "", cell).strip() for cell in re.findall("<td.*?</td>", line, re.S)]
        in_report.setdefault(cells[0].split(" ")[0] if cells else "", []).extend(cells)
    for at, name in enumerate(scene.labels.annotators):
        accuracy = estimate(
            *(float(rows[name][column]) for column in ("accuracy", "accuracy_low", "accuracy_high"))
        )
        matrix = view.matrix_view(scene, analysis, [at])
        assert matrix is not None
        assert matrix.subtitle.endswith(f"accuracy {accuracy}")
        assert accuracy in in_report[name]
        assert int(rows[name]["excluded_votes"]) == analysis.left_out[at] == (TASKS if name == OUT else 0)
    changed = {change.annotator for change in annotator_detail.changed_annotators(scene, analysis, silent)}
    named = [scene.labels.annotators[at] for at in changed]
    assert named == [name for name, row in rows.items() if float(row["change_p"] or 1) < FALSE_ALARMS]
    assert TIRED in named
    tired = next(notice for notice in scene.fusion.notices if "changed during their votes" in notice)
    assert all(f"{name} (vote" in tired for name in named)
    found_copies = scene.result.copying
    np.testing.assert_array_equal(found_copies.pairs, find_copies(scene.labels, scene.fusion).pairs)
    assert [
        tuple(scene.labels.annotators[member] for member in group) for group in found_copies.groups()
    ] == [RING]
    assert {name for name, row in rows.items() if row["copies"] == "1"} == set(RING)
    assert annotator_detail.copying_in_words(found_copies).startswith("3 annotators may copy")
    ring = next(notice for notice in scene.fusion.notices if "may copy from each other" in notice)
    for sentence in (tired, ring):
        assert all(sentence in " ".join(text.split()) for text in (record, notices))
        assert sentence in page.replace("&lt;", "<")
    assert f"{OUT} (excluded: asleep)" in page


def test_expected_errors_agree_and_follow_decisions(path, tmp_path, capsys):
    def everywhere(study):
        run_shown, result = study.shown.run_and_result(1, "labels", None)
        errors = errors_shown(study, 1, run_shown, result.fusion)
        words = errors_in_words(errors)
        assert trust_in_labels(study, 1).in_words().startswith(words)
        page = write_report(study, tmp_path / "report.html").read_text(encoding="utf-8")
        assert words in page.replace("\xa0", " ")
        return errors, words

    def by_command(words, *options):
        capsys.readouterr()
        assert run("fuse", "labels", path, *options, "-o", tmp_path / "out") == 0
        record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
        assert words in capsys.readouterr().out
        return record["questions"][0]["expected_errors"]

    with Study.open(path) as study:
        number = keep(fuse_inputs(gather([1], study), LabelPlan.make("pooled")), study)
        before, words = everywhere(study)
    assert before.tasks == TASKS
    assert by_command(words)["high"] == before.high
    with Study.open(path) as study:
        fusion = study.runs.result(number, 1).fusion
        label, names = fusion.label(), study.vote_set(1).tasks
        for task in np.argsort(fusion.posterior.max(axis=1))[:20].tolist():
            wrong = TaskSubject(task=names[task], label=fusion.classes[(label[task] + 1) % 3])
            study.record(Decision(verb="label", item=1, subject=wrong, run=number))
        decided, _ = everywhere(study)
        assert (decided.tasks, decided.known) == (TASKS - 20, 20)
        assert decided.expected > decided.stated
        number = keep(fuse_inputs(gather([1], study), LabelPlan.make("pooled")), study)
        after, words = everywhere(study)
    assert (after.tasks, after.known) == (TASKS - 20, 20)
    for options in ((), ("--run", number)):
        record = by_command(words, *options)
        assert (record["low"], record["high"], record["known"]) == (after.low, after.high, 20)
