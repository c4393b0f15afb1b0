"""Bookmarked annotators are starred in the queue, listed by its filter, and visited by key."""

from PySide6.QtCore import Qt

from tests.app.driving import idle, press


def test_bookmarked_annotators_are_listed_and_visited(fused, qtbot):
    workspace, queue = fused.workspace, fused.workspace.queue
    first, _, third = (int(annotator) for annotator in queue.order[:3])
    for annotator in (third, first):
        workspace.choose(annotator)
        press(fused, qtbot, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
        idle(fused, qtbot)
        assert workspace.comments.mark.isVisible()
    for expected in (third, first):
        press(fused, qtbot, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
        idle(fused, qtbot)
        assert queue.current == expected
    queue.choice.setCurrentText("bookmarked")
    idle(fused, qtbot)
    assert set(queue.order.tolist()) == {first, third}
    assert (workspace.bias_review.decided == 0).all()
