"""Bookmarked regions are starred in the views and in the queue, and visited by key."""

from PySide6.QtCore import Qt

from tests.app.driving import idle, press


def test_bookmarked_regions_are_marked_and_visited(fused_masks, qtbot):
    window, workspace = fused_masks, fused_masks.workspace
    review = workspace.reviewing
    for index in (None, 0):
        review.select(index)
        plain = workspace.volume.grab().toImage()
        press(window, qtbot, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
        idle(window, qtbot)
        assert workspace.comments.mark.isVisible()
    assert workspace.volume.grab().toImage() != plain
    visited = []
    for _ in range(2):
        press(window, qtbot, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
        idle(window, qtbot)
        visited.append(review.current)
    assert visited == [None, 0]
    workspace.queue.choice.setCurrentText("bookmarked")
    assert [line.counts["bookmarks"] for line in workspace.queue.view.lines] == [2]
    assert not window.document.contents.stale
