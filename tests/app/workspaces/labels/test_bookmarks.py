"""Bookmarked tasks are starred in the queue, listed by its filter, and visited by key."""

from PySide6.QtCore import Qt

from tests.app.driving import idle, press


def test_bookmarked_tasks_are_listed_and_visited(fused, qtbot):
    workspace, queue = fused.workspace, fused.workspace.queue
    first, _, third = (int(task) for task in queue.order[:3])
    for task in (third, first):
        workspace.tasks.select(task)
        press(fused, qtbot, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
        idle(fused, qtbot)
    visited = set()
    for _ in range(2):
        press(fused, qtbot, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
        idle(fused, qtbot)
        visited.add(workspace.tasks.current)
        assert workspace.comments.mark.isVisible()
    assert visited == {first, third}
    queue.choice.setCurrentText("bookmarked")
    idle(fused, qtbot)
    assert set(queue.order.tolist()) == {first, third}
    assert queue.view.model().index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole).endswith(", bookmarked")
    assert workspace.tasks.decided.max() == -1
