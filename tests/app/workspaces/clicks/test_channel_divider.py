"""Two channels of one image, left and right of a divider."""

import numpy as np
import pytest
import tifffile
from PySide6.QtCore import Qt

from tests.app.driving import LONG, idle, press

SHIFT = Qt.KeyboardModifier.ShiftModifier
BRIGHT, DARK = 200, 30


@pytest.fixture
def two_channels(window, qtbot, tmp_path):
    """A window with clicks on an image whose first channel is bright and whose second is dark."""
    channels = np.stack([np.full((90, 120), value, dtype=np.uint8) for value in (BRIGHT, DARK)])
    tifffile.imwrite(
        tmp_path / "cells.ome.tif", channels, ome=True,
        metadata={"axes": "CYX", "Channel": {"Name": ["actin", "DAPI"]}},
    )  # fmt: skip
    lines = [f"v{k},cells.ome.tif,{30 + k},{40 + k}" for k in range(4)]
    (tmp_path / "clicks.csv").write_text("\n".join(["annotator,image,x,y", *lines]) + "\n", encoding="utf-8")
    window.open_paths([tmp_path / "cells.ome.tif", tmp_path / "clicks.csv"])
    qtbot.waitUntil(
        lambda: getattr(window.workspace, "display", None) is not None
        and window.workspace.display.loaded is not None,
        timeout=LONG,
    )  # fmt: skip
    idle(window, qtbot)
    window.workspace.canvas.set_layer_visible("clicks", False)
    return window


def light(canvas, x, y):
    """Red, green and blue on screen at a position of the image."""
    left, top = canvas.viewport.to_screen(x, y)
    return canvas.grab().toImage().pixelColor(round(left), round(top)).getRgb()[:3]


def test_each_side_shows_one_channel_with_the_contrast_of_the_image(two_channels, qtbot):
    window, canvas = two_channels, two_channels.workspace.canvas
    both = light(canvas, 100, 70)
    press(window, qtbot, Qt.Key.Key_V, SHIFT)
    assert [chip.text() for chip in canvas.divider.chips] == list(window.workspace.display.loaded.channels)
    left, right = light(canvas, 20, 70), light(canvas, 100, 70)
    assert max(left) == BRIGHT
    assert max(right) == DARK
    assert np.minimum(np.add(left, right), 255) == pytest.approx(both, abs=1)
    canvas.divider.chips[1].menu.actions()[0].trigger()
    idle(window, qtbot)
    assert light(canvas, 100, 70) == both
    canvas.divider.move(0.0)
    assert light(canvas, 20, 70) == both
    press(window, qtbot, Qt.Key.Key_Escape)
    assert canvas.divider.sides is None
    assert light(canvas, 20, 70) == light(canvas, 100, 70) == both


def test_one_channel_is_not_compared(fused, qtbot):
    press(fused, qtbot, Qt.Key.Key_V, SHIFT)
    assert fused.workspace.canvas.divider.sides is None
    assert "one channel" in fused.status.message
