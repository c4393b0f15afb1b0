"""The strip beside a volume: how much is in dispute on every slice."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.volume_controls import DisputeStrip
from tests.widgets.volume.viewing import LEFT


def test_the_strip_goes_to_the_slice_that_is_clicked_with_the_head_at_the_top(view, qtbot):
    dispute = np.zeros(20)
    dispute[4] = 2.5
    view.set_dispute(dispute)
    strip = view.findChild(DisputeStrip)
    qtbot.mouseClick(strip, LEFT, pos=QPoint(20, 14))
    assert view.crosshair[0] == 19
    qtbot.mouseClick(strip, LEFT, pos=QPoint(20, strip.height() - 14))
    assert view.crosshair[0] == 0
    qtbot.keyClick(strip, Qt.Key.Key_Return)
    assert view.crosshair[0] == 4
    qtbot.keyClick(strip, Qt.Key.Key_Up)
    assert view.crosshair[0] == 5
    assert "slice 6 of 20" in strip.accessibleDescription()


def test_a_volume_of_more_slices_follows_one_with_a_dispute(view):
    view.set_dispute(np.arange(20.0))
    view.set_volume(None, Grid.plain((48, 30, 30)))
    assert view.crosshair[0] == 24
    view.set_dispute(np.arange(48.0))
    assert "slice 25 of 48" in view.findChild(DisputeStrip).accessibleDescription()


def test_a_dispute_of_other_slices_is_refused(view):
    with pytest.raises(ValueError, match="slices"):
        view.set_dispute(np.zeros(7))
