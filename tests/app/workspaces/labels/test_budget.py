"""The budget of votes to ask for, and the cost of a question, in the window."""

import csv

import numpy as np
from PySide6.QtCore import Qt

from raterscope.app.cli.program import main
from tests.app.driving import idle
from tests.app.workspaces.labels.driving import key
from tests.waiting import LONG


def annotators_asked(workspace):
    return [line.key[1] for line in workspace.ask.list.lines]


def test_a_budget_is_kept_with_the_study_and_exported(fused, qtbot, tmp_path):
    workspace = fused.workspace
    key(fused, qtbot, Qt.Key.Key_B)
    assert workspace.left_tabs.currentWidget() is workspace.ask
    dialog = workspace.active_learning.dialog
    costs = tmp_path / "costs.csv"
    name = workspace.session.scene.labels.annotators[0]
    costs.write_text(f"annotator,cost,most\n{name},1,0\n")
    editors = dialog.form.editors()
    editors["votes"].setText("12")
    editors["enough"].setText("1")
    dialog.set_costs(costs)
    dialog.accept()
    idle(fused, qtbot)
    qtbot.waitUntil(lambda: len(workspace.ask.list.lines) > 0, timeout=LONG)
    lines = workspace.ask.list.lines
    assert len(lines) <= 12
    assert 0 not in annotators_asked(workspace)
    assert "Cost measures" in workspace.ask.facts.text()
    task = lines[-1].key[0]
    workspace.ask.list.setCurrentIndex(workspace.ask.list.index_of(lines[-1].key))
    assert workspace.tasks.current == task
    path = fused.document.contents.path
    fused.document.close()
    idle(fused, qtbot)
    exported = tmp_path / "assignments.csv"
    assert main(["export", str(path), "--what", "assignments", "-o", str(exported)]) == 0
    rows = list(csv.DictReader(exported.read_text(encoding="utf-8").splitlines()))
    assert 0 < len(rows) <= 12
    assert name not in {row["annotator"] for row in rows}


def test_a_wrong_table_of_costs_keeps_the_budget(fused, qtbot, tmp_path):
    workspace = fused.workspace
    key(fused, qtbot, Qt.Key.Key_B)
    dialog = workspace.active_learning.dialog
    (tmp_path / "costs.csv").write_text("annotator,cost\na,none\n")
    dialog.set_costs(tmp_path / "costs.csv")
    dialog.accept()
    idle(fused, qtbot)
    assert "line 2: expected numbers" in fused.notice.text
    assert not workspace.active_learning._budget.prices


def test_the_cost_is_measured_on_request(fused, qtbot, monkeypatch):
    for name in ("_ROUNDS", "_SIZES"):  # they take most of the time
        monkeypatch.setattr(f"raterscope.algorithms.labels.vote_budget.{name}", 2)
    workspace = fused.workspace
    key(fused, qtbot, Qt.Key.Key_D)
    workspace.middle_tabs.setCurrentIndex(workspace.middle_tabs.count() - 1)
    workspace.cost.form.editors()["draws"].setText("1")
    workspace.cost.button.click()
    qtbot.waitUntil(lambda: workspace.cost.curve.filled, timeout=LONG)
    idle(fused, qtbot)
    on_gold, expected = workspace.cost.curve.describe().marks[-2:]
    votes = len(workspace.session.scene.labels) / len(workspace.session.scene.labels.tasks)
    assert on_gold.x[-1] == votes
    assert (expected.low <= expected.y).all()
    assert np.isfinite(on_gold.y).all()
    assert "would have saved" in workspace.cost.facts.text()
