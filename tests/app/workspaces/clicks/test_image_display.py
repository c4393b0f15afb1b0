"""Brightness and contrast are changed in a panel, stored in the study, and used by crops and reports."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.image_display import COLOUR, GREY, ChannelDisplay
from raterscope.app.formats import pyramids
from raterscope.app.formats.image_heads import load_overview
from raterscope.app.formats.images import load_image
from raterscope.app.study import Study
from tests.app.driving import LONG, command, idle, open_study, press


def shown_pixels(window):
    return window.workspace.display.loaded.image


def test_the_range_is_set_by_key_and_remembered_by_the_study(fused, qtbot):
    workspace = fused.workspace
    press(fused, qtbot, Qt.Key.Key_W)
    qtbot.waitUntil(lambda: bool(workspace.display.panel.rows), timeout=LONG)
    row = workspace.display.panel.rows[0]
    assert row.name in (COLOUR, GREY)
    before = shown_pixels(fused).copy()
    row.gamma.setValue(0.5)
    row.bar.setFocus()
    qtbot.keyClick(row.bar, Qt.Key.Key_Right)
    assert row.low.value() > 0
    idle(fused, qtbot)
    after = shown_pixels(fused)
    assert after.mean() > before.mean()
    assert after.max() <= 255
    press(fused, qtbot, Qt.Key.Key_Escape)
    assert not workspace.display.is_open
    path, scene = fused.document.contents.path, workspace.session.scene
    qtbot.waitUntil(lambda: not workspace.display._storing.isActive(), timeout=LONG)
    idle(fused, qtbot)
    displays = fused.document.displays
    assert displays[row.name].gamma == 0.5
    np.testing.assert_array_equal(load_image(scene.path, displays), after)
    command(fused, "Close study")
    idle(fused, qtbot)
    open_study(fused, qtbot, path)
    qtbot.waitUntil(lambda: fused.workspace.display.loaded is not None, timeout=LONG)
    idle(fused, qtbot)
    np.testing.assert_array_equal(shown_pixels(fused), after)


def test_reset_brings_the_file_back(fused, qtbot):
    panel = fused.workspace.display.panel
    before = shown_pixels(fused).copy()
    press(fused, qtbot, Qt.Key.Key_W, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: bool(fused.document.displays), timeout=LONG)
    idle(fused, qtbot)
    panel.reset.click()
    idle(fused, qtbot)
    assert not fused.document.displays
    np.testing.assert_array_equal(shown_pixels(fused), before)


def test_a_damaged_setting_shows_the_file_as_it_is(tmp_path):
    with Study.create(tmp_path / "a.rscope") as study:
        study.settings.store("displays", '{"grey": {"gamma": -3}}')
        assert study.settings.displays == {}


@pytest.mark.parametrize("deep", [False, True])
def test_large_images_have_the_same_display_as_small_ones(tmp_path, monkeypatch, deep):
    import tifffile

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    values = np.random.default_rng(3).integers(0, 250, (600, 700)).astype(np.uint16 if deep else np.uint8)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(values, tile=(256, 256), subifds=1, photometric="minisblack")
        file.write(values[::2, ::2], tile=(256, 256), subfiletype=1, photometric="minisblack")
    displays = {GREY: ChannelDisplay(low=50, high=150, gamma=2.0)}
    whole = load_image(tmp_path / "a.tif", displays)
    monkeypatch.setattr(pyramids, "WHOLE_UP_TO", 1000)
    np.testing.assert_array_equal(load_overview(tmp_path / "a.tif", 700, None, displays), whole)


def test_stains_are_normalised_to_the_image_on_screen(fused, qtbot, monkeypatch):
    panel = fused.workspace.display.panel
    stain = (0.65, 0.70, 0.29, 0.07, 0.99, 0.11, 1.5, 1.0)
    module = "raterscope.app.workspaces.clicks.image_display"
    monkeypatch.setattr(f"{module}.estimate_stain", lambda _pixels: stain)
    press(fused, qtbot, Qt.Key.Key_W)
    qtbot.waitUntil(lambda: bool(panel.rows), timeout=LONG)
    if panel.rows[0].name != COLOUR:
        assert panel.stain.isHidden()
        return
    panel.stain.click()
    idle(fused, qtbot)
    assert fused.document.displays[COLOUR].stain == stain
    panel.stain.click()
    idle(fused, qtbot)
    assert not fused.document.displays
