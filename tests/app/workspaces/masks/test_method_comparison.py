"""Methods compared in the window: background work, plot, table, outlines, cancel."""

import numpy as np
import pytest

from raterscope.app.kinds.masks import methods as comparing
from tests.app.driving import LONG, idle
from tests.app.workspaces.masks.driving import go_to


@pytest.fixture
def panel(fused_masks, qtbot):
    result = fused_masks.workspace.methods
    fused_masks.workspace.tabs.setCurrentWidget(result)
    for name, tick in result.ticks.items():
        tick.setChecked(name in ("laplace", "staple", "majority"))
    return result


def compared(window, panel, qtbot):
    panel.button.click()
    assert panel.button.text() == "Cancel"
    qtbot.waitUntil(lambda: panel.export.isEnabled() and panel.button.text() == "Compare", timeout=LONG)
    idle(window, qtbot)


def drawn(plot) -> dict[str, list[float]]:
    """Return the values of each box, in their order."""
    boxes: dict[str, list[float]] = {}
    for method, value in plot.table().rows():
        boxes.setdefault(method, []).append(value)
    return boxes


def test_methods_are_compared_outlined_and_cancelled(fused_masks, panel, qtbot, monkeypatch):
    workspace = fused_masks.workspace
    assert not panel.outlines.isEnabled()
    compared(fused_masks, panel, qtbot)
    before = [outline.name for outline in workspace.volume._scene.outlines]
    panel.outlines.setChecked(True)
    assert [outline.name for outline in workspace.volume._scene.outlines] == [
        "Laplace",
        "STAPLE",
        "majority vote",
    ]
    assert not panel.ticks["staple"].icon().isNull()
    panel.ticks["staple"].setChecked(False)
    assert [outline.name for outline in workspace.volume._scene.outlines] == ["Laplace", "majority vote"]
    go_to(fused_masks, qtbot, "second")
    assert not panel.outlines.isEnabled()
    go_to(fused_masks, qtbot, "first")
    assert panel.outlines.isEnabled()
    assert [outline.name for outline in workspace.volume._scene.outlines] == before

    panel.ticks["staple"].setChecked(True)
    assert not panel.reference.buttons["truth"].isEnabled()
    boxes = drawn(panel.plot)
    assert list(boxes) == ["Laplace", "STAPLE", "majority vote", "pairs of raters"]
    assert [len(values) for values in boxes.values()][:3] == [4, 4, 4]
    panel.figure.setCurrentIndex(panel.figure.findData("bound"))
    assert drawn(panel.plot) == {"Laplace": [0.0]}
    panel.figure.setCurrentIndex(panel.figure.findData("seconds"))
    assert list(drawn(panel.plot)) == ["Laplace", "STAPLE", "majority vote"]
    panel.view.set_mode("table")
    titles = [row.title for row in panel.table._model.rows]
    assert titles == ["Laplace", "STAPLE", "majority vote", "pairs of raters"]
    assert {row[0] for row in panel._all.rows()} == {"first.nii.gz"}
    assert len(fused_masks.document.contents.runs) == 1

    kept = panel._all

    def slow(masks, plans, truth, watch):
        while True:
            watch(0.5, "laplace: fusing")

    monkeypatch.setattr(comparing, "compare_methods", slow)
    panel.scope.set_mode("all")
    panel.button.click()
    qtbot.waitUntil(lambda: "fusing" in panel.label.text(), timeout=LONG)
    panel.button.click()
    assert panel.button.text() == "Compare"
    idle(fused_masks, qtbot)
    assert panel._all is kept
    assert np.isfinite(next(iter(drawn(panel.plot).values()))).all()


def test_a_comparison_is_restored_when_the_study_is_opened_again(fused_masks, panel, qtbot):
    compared(fused_masks, panel, qtbot)
    before = list(panel._all.rows())
    fused_masks.document.replaced.emit()  # as where another study is opened
    assert not panel.export.isEnabled()
    idle(fused_masks, qtbot)
    go_to(fused_masks, qtbot, "first")
    qtbot.waitUntil(panel.export.isEnabled, timeout=LONG)
    assert list(panel._all.rows()) == before
    assert not panel.outlines.isEnabled()
