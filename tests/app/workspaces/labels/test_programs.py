"""A program as annotator of labels: imported, calibrated, shown, undone, exported and reported."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.progress import silent
from raterscope.app.annotators.table import read_annotators
from raterscope.app.errors import InputError
from raterscope.app.formats.labels import read_labels
from raterscope.app.import_preview import change_names, mark_programs, parse_changes
from raterscope.app.importing import read_files
from raterscope.app.kinds.labels.annotators import preview
from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, fold
from raterscope.app.study import Study
from raterscope.app.study.labels import programs_of
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import analyse, read_scene
from tests.app.commands import run
from tests.app.driving import idle
from tests.app.workspaces.labels.driving import fuse
from tests.app.workspaces.labels.made import CLASSES, TASKS, votes


def write_program(path, share, seed=2):
    """Write the probabilities of a program that is right on a share of the tasks."""
    rng, (truth, _) = np.random.default_rng(seed), votes()
    right = rng.random(TASKS) < share
    infected = np.where(truth == 1, right, ~right) * 0.8 + 0.1
    rows = [(f"cell-{n:03}", f"{1 - p:.2f}", f"{p:.2f}") for n, p in enumerate(infected)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("task", *(f"p({name.title()})" for name in CLASSES)), *rows])
    return path


@pytest.fixture
def net(tmp_path):
    return write_program(tmp_path / "net.csv", 0.9)


def fused_result(path):
    with Study.open(path) as study:
        (question,) = study.questions()
        keep(fuse_inputs(gather([question.id], study), LabelPlan()), study)
        return study.shown.result(question.id, "labels")[1]


def loss(result):
    truth, _ = votes()
    return -np.log(result.fusion.posterior[np.arange(TASKS), truth]).mean()


def test_class_probabilities_make_their_annotator_a_program(labels_study, net, capsys):
    alone = fused_result(labels_study)
    assert run("import", labels_study, net, "--preview") == 0
    assert "programs: net" in capsys.readouterr().out
    assert run("import", labels_study, net) == 0
    assert "Mark annotator net as a program." in capsys.readouterr().out
    result = fused_result(labels_study)
    assert result.fusion.votes.tolist() == alone.fusion.votes.tolist()  # it is no more voter
    assert result.programs.names == ("net",)
    assert result.programs.used
    assert loss(result) < loss(alone)


def test_tasks_without_probabilities_leave_a_table_a_program_s(labels_study, net, tmp_path, capsys):
    lines = net.read_text().splitlines()
    lines[5] = "cell-004,,"
    net.write_text("\n".join(lines))
    long = [f"cell-{n:03},{name},{p}" for n in range(9) for name, p in zip(CLASSES, (0.3, 0.7), strict=True)]
    (tmp_path / "long.csv").write_text("\n".join(["task,label,score", *long, "cell-020,,"]))
    for table in (net, tmp_path / "long.csv"):
        assert run("import", labels_study, table) == 0
        assert f"Mark annotator {table.stem} as a program." in capsys.readouterr().out


def test_a_program_that_guesses_changes_nothing(labels_study, tmp_path):
    alone = fused_result(labels_study)
    assert run("import", labels_study, write_program(tmp_path / "guess.csv", 0.5), "--program", "coin") == 0
    result = fused_result(labels_study)
    assert result.programs.names == ("coin",)
    assert not result.programs.used
    np.testing.assert_array_equal(result.fusion.posterior, alone.fusion.posterior)


def test_the_preview_of_a_change_keeps_the_other_programs(labels_study, net):
    assert run("import", labels_study, net) == 0
    with Study.open(labels_study) as study:
        (question,) = study.questions()
        keep(fuse_inputs(gather([question.id], study), LabelPlan()), study)
        voter = study.vote_set(question.id).labels(study.annotators()).annotators[0]
        assert preview(study, (voter,), 1 - 1e-9, silent).changed == 0
        with_program = study.shown.result(question.id, "labels")[1].fusion.label()
        without = preview(study, ("net",), None, silent).changed
        study.record(Decision(verb="exclude", annotators=("net",)))
        keep(fuse_inputs(gather([question.id], study), LabelPlan()), study)
        alone = study.shown.result(question.id, "labels")[1].fusion.label()
        assert without == (with_program != alone).sum() > 0


def test_two_copies_of_a_program_are_no_two_witnesses(labels_study, net, tmp_path):
    assert run("import", labels_study, net) == 0
    one = fused_result(labels_study)
    (tmp_path / "copy.csv").write_bytes(net.read_bytes())
    assert run("import", labels_study, tmp_path / "copy.csv") == 0
    two = fused_result(labels_study)
    assert two.programs.weight.sum() == pytest.approx(one.programs.weight.sum(), rel=0.01)
    np.testing.assert_allclose(two.fusion.posterior, one.fusion.posterior, atol=0.005)


def test_votes_of_a_marked_annotator_are_answers_of_a_program(labels_study, capsys, tmp_path):
    table = tmp_path / "more.csv"
    table.write_text("annotator,task,label\nbot,cell-000,infected\nbot,cell-001,healthy\n")
    assert run("import", labels_study, table, "--program", "nora") == 1
    assert "there is no annotator nora; expected one of bot" in capsys.readouterr().err
    assert run("import", labels_study, table, "--program", "bot") == 0
    with Study.open(labels_study) as study:
        (question,) = study.questions()
        (program,) = programs_of(study, question.id, ("bot",))
        assert program.probability[:2].tolist() == [[0, 1], [1, 0]]
        assert np.isnan(program.probability[2:]).all()
        inputs = gather([question.id], study)
        assert inputs.given[question.name].excluded.votes_of_annotators().sum() == 2
        assert len(inputs.given[question.name].labels) == TASKS * 12


def test_a_later_import_of_a_program_replaces_its_answers(labels_study, net, tmp_path):
    write_program(net, 0.9)
    assert run("import", labels_study, net) == 0
    assert run("import", labels_study, write_program(net, 0.9, seed=8)) == 0
    with Study.open(labels_study) as study:
        (question,) = study.questions()
        (program,) = programs_of(study, question.id, ("net",))
    (table,) = read_labels(net)
    np.testing.assert_allclose(program.probability, table.probability, atol=1e-6)


def test_names_and_classes_are_changed_with_their_probabilities(net):
    readings = read_files([net])
    changed = change_names(readings, parse_changes(["annotator:net=unet", "class:Healthy=Infected"]))
    assert changed.programs == {"unet"}
    (table,) = changed.labels
    assert table.probability.shape == (TASKS, 1)
    np.testing.assert_allclose(table.probability, 1, atol=1e-6)
    assert mark_programs(replace(readings, programs=frozenset()), ["net"], ["net"]).programs == {"net"}


@pytest.mark.parametrize(
    "text",
    [
        "task,a,b\nt1,0.5,0.6\nt2,0.1,0.9\n",  # they do not add up
        "task,a,b\nt1,1,0\nt2,0,1\n",  # tags, not probabilities
        "task,label,score\nt1,a,0.7\nt2,b,0.3\n",  # one answer a task
    ],
)
def test_other_tables_are_no_probabilities(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    try:
        tables = read_labels(path)
    except InputError:
        return
    assert all(getattr(table, "probability", None) is None for table in tables)


def test_export_and_report_name_the_program(labels_study, net, tmp_path):
    assert run("import", labels_study, net) == 0
    fused_result(labels_study)
    with Study.open(labels_study, to_read=True) as study:
        table = read_annotators(study)
    assert table.columns["program"][table.index["net"]] == 1
    assert np.isfinite(table.columns["labels_accuracy"][table.index["net"]])
    assert run("report", labels_study, "-o", tmp_path / "report.html") == 0
    text = (tmp_path / "report.html").read_text()
    assert "net (program, power " in text
    assert "Programs: net (" in text
    decisions = tmp_path / "decisions.csv"
    assert run("export", labels_study, "--what", "decisions", "-o", decisions) == 0
    with decisions.open() as file:
        assert [row["annotators"] for row in csv.DictReader(file) if row["verb"] == "program"] == ["net"]


def test_the_window_names_the_program_and_undo_makes_it_a_voter(fused, qtbot, net, labels_study):
    fused.open_paths([net])
    qtbot.waitUntil(lambda: "net" in fused.document.contents.review.programs)
    idle(fused, qtbot)
    fuse(fused, qtbot)
    task = fused.workspace.session.scene.number_of["cell-001"]
    fused.workspace.tasks.select(task)
    idle(fused, qtbot)
    panel = fused.workspace.task_panel
    assert [vote.name for vote in panel._view.votes if vote.program] == ["net (program)"]
    fused.menus.undo_action.trigger()
    idle(fused, qtbot)
    assert not fused.document.contents.review.programs
    with Study.open(labels_study, to_read=True) as study:
        (question,) = study.questions()
        scene = read_scene(question.id, None, study, silent)
        lines = view.task_view(scene, analyse(scene, silent), task, -1, blind=True).votes
        assert [line.name for line in lines if line.program] == ["program 13"]
        inputs = gather([question.id], study)
        assert not inputs.programs
        assert len(inputs.given[question.name].labels) == TASKS * 13
        assert fold(study.decisions()).redoable.verb == "program"
