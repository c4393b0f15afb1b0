"""What stands above a workspace as long as it holds: blind mode, and a result that did not converge."""

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.widgets.panels.fuse_panel import RunRequest
from tests.app.driving import LONG, idle, press
from tests.app.workspaces.masks.conftest import compiled, masks_study, opened_masks
from tests.app.workspaces.masks.driving import go_to

__all__ = ["compiled", "masks_study", "opened_masks"]


@pytest.mark.parametrize("bare_workspace", ["clicks", "masks", "labels", "pairs"], indirect=True)
def test_blind_mode_is_seen_in_every_workspace_as_long_as_it_is_on(bare_workspace, qtbot):
    _, workspace = bare_workspace
    place = workspace.parentWidget()
    place.show()
    qtbot.waitExposed(place)
    assert not workspace.notes.isVisible()
    workspace.hiding.toggle()
    assert workspace.notes.isVisible()
    assert "hidden" in workspace.notes.notes()["Blind"]
    assert "H shows" in workspace.notes.notes()["Blind"]
    workspace.hiding.toggle()
    assert not workspace.notes.isVisible()


def test_non_convergence_stands_beside_the_result_with_advice_and_goes_with_it(opened_masks, qtbot):
    workspace = opened_masks.workspace
    for iterations, said in (("1", True), ("500", False)):
        plan = MaskPlan.make("laplace", {"max_iterations": iterations})
        before = len(opened_masks.document.contents.runs)
        workspace.fuse_panel.run_requested.emit(RunRequest(plan.algorithm, plan.settings, all_items=True))
        qtbot.waitUntil(lambda: len(opened_masks.document.contents.runs) > before, timeout=LONG)  # noqa: B023
        idle(opened_masks, qtbot)
        go_to(opened_masks, qtbot, "first")
        words = workspace.notes.notes().get("Not converged", "")
        assert bool(words) == said
        assert workspace.notes.isVisible() == said
        if said:
            assert "“Iterations”" in words
            press(opened_masks, qtbot, Qt.Key.Key_Tab)  # news come and go: the note stays
            assert workspace.notes.notes()["Not converged"] == words
