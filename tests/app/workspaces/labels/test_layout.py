"""Layout of the labels screen in a large and in a small window."""

from itertools import pairwise

import pytest
from PySide6.QtCore import Qt

from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.labels.driving import key, preview_exclusion
from tests.app.workspaces.labels.made import LIAR

SMALL, USUAL = (960, 640), (1440, 900)


def sized(window, qtbot, size):
    window.resize(*size)
    idle(window, qtbot)
    return window.workspace


def parts(widget) -> list:
    """Return the panel's visible parts with their places, none of which may cover another."""
    layout = widget.layout()
    results = [layout.itemAt(index).widget() for index in range(layout.count())]
    return [part for part in results if part is not None and part.isVisible()]


def test_the_matrix_has_room_for_its_intervals_in_a_window_of_the_usual_size(qtbot, window, labels_study):
    window.resize(*USUAL)
    open_study(window, qtbot, labels_study)
    key(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) == 1, timeout=LONG)
    idle(window, qtbot)
    workspace = window.workspace
    workspace.annotator_detail.choose((LIAR,))
    idle(window, qtbot)
    figure = workspace.matrix.figure
    _, width, height, _ = figure._grid()
    assert figure._lettering(width - 3, height - 3).under
    assert workspace.middle.sizes()[1] < 240  # the evidence is the largest
    assert workspace.wall.height() > workspace.cards.height()


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_an_exclusion_has_room_for_all_it_asks(fused, qtbot, size):
    workspace = sized(fused, qtbot, size)
    workspace.annotator_detail.choose((LIAR, 3))
    panel = preview_exclusion(fused, qtbot)
    shown = parts(panel)
    assert panel.changes in shown
    for above, below in pairwise(shown):
        assert above.geometry().bottom() < below.geometry().top()
    assert panel.exclude.visibleRegion().boundingRect().height() > 20


def test_in_a_small_window_the_grouping_can_be_read_and_chosen(fused, qtbot):
    workspace = sized(fused, qtbot, SMALL)
    grouping = workspace.annotator_detail.grouping
    for switch in (grouping.bases, grouping.methods):
        for button in switch.buttons.values():
            assert button.width() >= button.sizeHint().width()
            assert button.visibleRegion().boundingRect().width() == button.width()
