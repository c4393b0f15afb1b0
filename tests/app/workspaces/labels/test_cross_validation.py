"""ROC curves of all methods by cross-validation on the labels screen."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from tests.app.driving import LONG, idle


@pytest.fixture
def panel(opened):
    panel = opened.workspace.folds
    tabs = opened.workspace.middle_tabs
    tabs.setCurrentIndex(next(at for at in range(tabs.count()) if tabs.tabText(at) == "Cross-validation"))
    return panel


def measure(panel, qtbot, **values):
    panel.form.set_settings(replace(panel.form.settings(), **values))
    qtbot.mouseClick(panel.button, Qt.MouseButton.LeftButton)


def test_all_methods_are_drawn_with_the_areas_of_their_folds(opened, panel, qtbot):
    measure(panel, qtbot, methods="fast")
    assert panel.cancel.isVisible()
    qtbot.waitUntil(lambda: panel.table.isVisible(), timeout=LONG)
    idle(opened, qtbot)
    assert not panel.cancel.isVisible()
    model = panel.table.view.model()
    assert model.rowCount() == 7
    titles = {curve.title for curve in panel.curves._all}
    assert "pooled consensus" in titles
    assert "majority vote" in titles
    tips = [model.index(row, 0).data(Qt.ItemDataRole.ToolTipRole) for row in range(7)]
    assert all("AUC of each fold: " in tip for tip in tips)
    assert panel.facts.text().startswith("Measured ")


def test_cross_validation_is_cancelled_and_failures_are_reported(opened, panel, qtbot):
    measure(panel, qtbot)
    qtbot.mouseClick(panel.cancel, Qt.MouseButton.LeftButton)
    idle(opened, qtbot)
    assert panel.button.isEnabled()
    assert not panel.table.isVisible()
    with qtbot.waitSignal(opened.workspace.cross_validation.refused, timeout=LONG) as signal:
        measure(panel, qtbot, subsample=True)
    assert "lower one of the two numbers" in signal.args[0]
