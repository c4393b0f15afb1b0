"""The 3-D view of the structure under review, from its key to its end."""

import subprocess
import sys

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.volume_views import FLAT
from tests.app.driving import idle
from tests.app.workspaces.masks.driving import go_to, key


def open_view(window, qtbot):
    key(window, qtbot, "V")
    idle(window, qtbot)
    return window.workspace.volume.surface


def middle(surface):
    return surface.model.surface.corners.mean(axis=0)


def test_the_surface_is_in_millimetres_and_follows_maps_decisions_cases_and_blind_mode(fused_masks, qtbot):
    assert fused_masks.workspace.volume.surface is None
    surface = open_view(fused_masks, qtbot)
    assert QApplication.focusWidget() is surface
    case = fused_masks.workspace.session.scene.image
    assert middle(surface) == pytest.approx(case.grid.to_patient(np.array([8.0, 20, 20])), abs=1.5)
    size = np.ptp(surface.model.surface.corners, axis=0)
    assert size == pytest.approx(16.5, abs=2.5)  # balls of 8 to 8.75 mm
    assert [wire.key for wire in surface.model.wireframes] == ["ann", "ben", "cat", "dan"]
    assert np.ptp(surface.model.wireframes[3].corners[:, 0]) > size[0] + 3
    key(fused_masks, qtbot, "V")
    assert fused_masks.workspace.volume.surface is None

    surface = open_view(fused_masks, qtbot)
    assert surface.model.heat.label == "half-width of another rater's 95 % band, mm"
    heat = surface.model.heat
    fused_masks.workspace.maps.map.choose("weight")  # no rater is chosen: there is no such map
    idle(fused_masks, qtbot)
    assert surface.model.heat.label == heat.label
    fused_masks.workspace.maps.map.choose("disagreement")
    idle(fused_masks, qtbot)
    assert surface.model.heat.label == "disagreement of the raters"
    assert np.ptp(surface.model.colours, axis=0).max() > 0.3

    key(fused_masks, qtbot, "H")
    idle(fused_masks, qtbot)
    assert surface.model is None
    assert surface.text == view.HIDDEN
    key(fused_masks, qtbot, "H")
    idle(fused_masks, qtbot)
    assert len(surface.model.wireframes) == 4

    before = surface.model
    workspace = fused_masks.workspace
    workspace.reviewing.go_to(0)
    workspace.reviewing.take("dan")
    idle(fused_masks, qtbot)
    assert np.ptp(surface.model.surface.corners[:, 0]) > np.ptp(before.surface.corners[:, 0]) + 2
    fused_masks.document.undo()
    idle(fused_masks, qtbot)
    assert np.allclose(surface.model.surface.corners, before.surface.corners)
    go_to(fused_masks, qtbot, "second")
    assert surface.grid == workspace.session.scene.image.lattice
    assert len(surface.model.wireframes) == 4


def test_a_study_without_a_fusion_names_the_next_step(opened_masks, qtbot):
    surface = open_view(opened_masks, qtbot)
    assert "Press Fuse (F5)" in surface.text
    opened_masks.document.close()
    idle(opened_masks, qtbot)


def test_it_is_closed_with_the_window_while_its_model_is_made(fused_masks, qtbot):
    fused_masks.workspace.volume.setFocus()
    key(fused_masks, qtbot, "V")
    fused_masks.close()


def test_an_image_in_two_dimensions_has_none(fused_masks, qtbot, monkeypatch):
    messages = []
    fused_masks.workspace.message.connect(messages.append)
    monkeypatch.setattr(type(fused_masks.workspace.session.scene.image.lattice), "flat", True)
    key(fused_masks, qtbot, "V")
    assert messages == [FLAT]
    assert fused_masks.workspace.volume.surface is None


def test_opengl_is_imported_when_the_view_is_opened_and_not_before():
    code = "import raterscope.app.workspaces.masks.workspace, sys; print('PySide6.QtOpenGL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
