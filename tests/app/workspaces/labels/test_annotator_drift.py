"""Annotators who changed, with time and kind of the change, before one is selected."""

from datetime import UTC, datetime

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from raterscope.app.formats.records import LabelTable
from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.study.labels import add_votes
from raterscope.widgets import theme
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.labels.driving import fuse, key

TASKS, PEOPLE, JUMPER, JUMP = 160, 9, 3, 90
CLASSES = ("artefact", "ring", "trophozoite")


@pytest.fixture
def drifting(window, qtbot, tmp_path):
    """Nine annotators; one takes rings for trophozoites from the 91st vote on."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 3, TASKS)
    answers = np.where(
        rng.random((TASKS, PEOPLE)) < 0.85, truth[:, None], rng.integers(0, 3, (TASKS, PEOPLE))
    )
    late = np.arange(TASKS) >= JUMP
    answers[late, JUMPER] = np.array([0, 2, 1])[answers[late, JUMPER]]
    task, annotator = np.divmod(np.arange(TASKS * PEOPLE), PEOPLE)
    start = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
    table = LabelTable(
        tmp_path / "votes.csv", "Which?", tuple(f"ann {n:02}" for n in range(PEOPLE)),
        tuple(f"cell-{n:03}" for n in range(TASKS)), CLASSES, annotator.astype(np.int32),
        task.astype(np.int32), answers.ravel().astype(np.int16), start + 86400.0 * task,
    )  # fmt: skip
    with Study.create(tmp_path / "drift.rscope") as study:
        add_votes(study, table)
    open_study(window, qtbot, tmp_path / "drift.rscope")
    window.workspace.drift.fuse.click()
    fuse(window, qtbot)
    qtbot.waitUntil(lambda: window.workspace.drift.changed.isVisible(), timeout=LONG)
    return window


def test_a_changed_annotator_is_listed_with_the_vote_and_can_be_selected(drifting, qtbot):
    panel, people = drifting.workspace.drift, drifting.workspace.annotator_detail
    (line,) = panel.changed.lines
    assert line.name == f"ann {JUMPER:02}"
    vote = int(line.when.split()[1])
    assert abs(vote - JUMP) < 12
    assert line.when.endswith(f"of {TASKS}")
    assert " given as " in line.how
    assert line.how.startswith(line.brief)
    metrics = QFontMetrics(theme.font(theme.CAPTION))
    assert metrics.horizontalAdvance(line.brief) < panel.changed.viewport().width() - 40
    assert panel._header._subtitle.text() == "1 annotator changed"
    row = panel.changed.visualRect(panel.changed.model().index(0))
    qtbot.mouseClick(panel.changed.viewport(), Qt.MouseButton.LeftButton, pos=row.center())
    idle(drifting, qtbot)
    assert drifting.workspace.session.selection == (JUMPER,)
    assert f"vote {vote} (2026-0" in panel._summary.text()
    people.choose((JUMPER + 1,))
    idle(drifting, qtbot)
    assert panel._summary.text().startswith("No change beyond chance (p = ")


def test_changed_annotators_of_a_selection_are_listed_also_blind(drifting, qtbot):
    panel, people = drifting.workspace.drift, drifting.workspace.annotator_detail
    people.choose((0, 1))
    assert panel.changed.lines == ()
    assert not panel.changed.isVisible()
    people.choose((0, JUMPER))
    assert len(panel.changed.lines) == 1
    key(drifting, qtbot, Qt.Key.Key_H)
    assert panel.changed.lines[0].name == f"annotator {JUMPER + 1}"


def test_blind_no_advice_names_an_annotator(drifting, qtbot):
    advice = drifting.workspace.method_table.advice
    assert f"ann {JUMPER:02}" in advice.text()
    key(drifting, qtbot, Qt.Key.Key_H)
    assert "ann " not in advice.text() + advice.accessibleDescription()
    key(drifting, qtbot, Qt.Key.Key_H)
    assert f"ann {JUMPER:02}" in advice.text()


def test_an_excluded_annotator_has_no_drift(drifting, qtbot):
    panel, people = drifting.workspace.drift, drifting.workspace.annotator_detail
    name = f"ann {JUMPER:02}"
    drifting.document.record(Decision(verb="exclude", annotators=(name,), reason="another key"))
    idle(drifting, qtbot)
    fuse(drifting, qtbot)
    people.choose((JUMPER,))
    idle(drifting, qtbot)
    assert panel._nothing.text().startswith(f"{name} was excluded from this run: {TASKS} votes not counted.")
