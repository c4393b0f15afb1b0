"""Accuracy by number of annotators, measured on the clicks screen."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from raterscope.app.errors import InputError
from raterscope.app.kinds.clicks.evaluation import load_crowd_sizes, read_crowds
from raterscope.app.kinds.clicks.report.tables import stored_crowd_size_section
from raterscope.app.study import Study
from raterscope.widgets.panels.evaluation_panels import CrowdSizePanel
from tests.app.driving import LONG, idle


def measure(window, qtbot, scope="one"):
    panel = window.workspace.crowd_size
    window.workspace.middle_tabs.setCurrentWidget(panel)
    panel.form.set_settings(replace(panel.form.settings(), min_annotators=4, crowds=2, draws=1))
    panel.scope.set_mode(scope)
    QTest.mouseClick(panel.button, Qt.MouseButton.LeftButton)
    return panel


def test_methods_are_drawn_against_the_number_of_annotators(fused, qtbot):
    panel = measure(fused, qtbot)
    assert not panel.button.isEnabled()
    qtbot.waitUntil(lambda: panel.plot.filled, timeout=LONG)
    qtbot.waitUntil(panel.button.isEnabled, timeout=LONG)
    rows = list(panel.plot.table().source())
    chosen = [row for row in rows if row[0] == "chosen method"]
    assert chosen[0][1] == 4
    assert chosen[-1][1] > 11
    assert chosen[-1][2] == pytest.approx(1.0)
    panel.plot.stage.setCurrentIndex(panel.plot.stage.findText("after majority"))
    assert any(row[0] == "k-means, majority vote" for row in panel.plot.table().source())
    assert not any("DEM" in row[0] for row in panel.plot.table().source())
    panel.plot.measure.setCurrentIndex(1)
    assert "precision" in panel.plot.table().columns
    assert panel.plot.heading()[0] == "precision after majority"
    qtbot.waitUntil(lambda: panel.facts.text().startswith("Measured 2"), timeout=LONG)
    assert "on 1 image within" in panel.facts.text()
    path, facts = fused.document.contents.path, panel.facts.text()
    fused.files.close_study()
    idle(fused, qtbot)
    assert not panel.plot.filled
    fused.files.open_study(path)
    qtbot.waitUntil(lambda: panel.plot.filled, timeout=LONG)
    panel.plot.stage.setCurrentIndex(0)
    assert len([row for row in panel.plot.table().source() if row[0] == "chosen method"]) == 2
    fused.files.close_study()
    idle(fused, qtbot)
    with Study.open(path) as study:
        section = stored_crowd_size_section(study)
    assert section.blocks[0].note.startswith(facts)


def test_a_message_reports_missing_known_positions(tmp_path):
    with Study.create(tmp_path / "empty.rscope") as study, pytest.raises(InputError, match="ground truth"):
        read_crowds([1], study)


@pytest.mark.parametrize("text", ["{", "[]", '{"facts": "x", "curves": [{"method": "a"}]}', '{"curves": 3}'])
def test_damaged_measurements_are_not_shown(text, tmp_path):
    with Study.create(tmp_path / "one.rscope") as study:
        study.settings.store("crowd_sizes", text)
        assert load_crowd_sizes(study) is None


def test_invalid_settings_cannot_be_measured(qtbot):
    panel = CrowdSizePanel()
    qtbot.addWidget(panel)
    editor = panel.form.editors()["draws"]
    editor.selectAll()
    qtbot.keyClicks(editor, "none")
    assert not panel.button.isEnabled()
    editor.selectAll()
    qtbot.keyClicks(editor, "3")
    assert panel.button.isEnabled()
