"""Scores of a program in the window: named in the evidence, excluded by key, undone."""

import os

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from raterscope.app.formats import read
from raterscope.app.study import Study
from tests.app.driving import LONG, idle, open_study, press

SHIFT = Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def scored(window, qtbot, study_file, study_fused, tmp_path):
    """The window with a study that has scores of a program on the spots of each image."""
    study_file.write_bytes(study_fused.read_bytes())
    with Study.open(study_file) as study:
        lines = ["image,x,y,score"]
        for entry in study.images():
            _, fusion = study.shown.result(entry.id, "clicks")
            lines += [f"{entry.name},{x},{y},{m}" for m, (x, y) in enumerate(fusion.clustering.mean)]
        table = tmp_path / "found.csv"
        table.write_text("\n".join(lines))
        assert study.add_clicks(read(table)).kind == "scores"
    opened = open_study(window, qtbot, study_file)
    opened.workspace.canvas.setFocus()
    return opened


def test_the_evidence_names_the_score_and_a_key_excludes_the_program(scored, qtbot):
    press(scored, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(scored.document.contents.runs) == 2, timeout=LONG)
    idle(scored, qtbot)
    workspace = scored.workspace
    workspace.reviewing.select(0)
    words = " ".join(label.text() for label in workspace.evidence.findChildren(QLabel) if label.isVisible())
    assert "The program's score is " in words
    messages = []
    workspace.message.connect(messages.append)
    press(scored, qtbot, Qt.Key.Key_X, SHIFT)
    assert messages[-1] == "The scores of the program are excluded from the next fusion on (F5)."
    assert scored.document.contents.review.excluded == {"program (scores)": ""}
    if position := os.environ.get("PICTURE"):
        scored.grab().save(position)
    press(scored, qtbot, Qt.Key.Key_Z, CONTROL)
    assert not scored.document.contents.review.excluded
