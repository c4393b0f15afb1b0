import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication

from raterscope.widgets import theme
from tests.widgets.volume.viewing import RIGHT, drag


@pytest.mark.qt_log_ignore(
    "This plugin does not support raise", "This plugin does not support grabbing", extend=True
)
def test_a_right_click_offers_copies_and_a_right_drag_changes_the_window(view, qtbot):
    part = view.view("axial")
    before = view.window_levels
    drag(qtbot, part, QPoint(60, 60), QPoint(40, 10), RIGHT)
    assert not part.menu.menu.isVisible()
    assert view.window_levels != before
    qtbot.mouseClick(part, RIGHT, pos=QPoint(60, 60))
    assert part.menu.menu.isVisible()
    assert [one.text() for one in part.menu.menu.actions()] == ["Copy as image", "Save as PNG…"]
    part.menu.menu.close()


def test_the_copy_is_what_is_in_sight_without_the_frame_of_the_keys(view, qtbot):
    part = view.view("axial")
    view.activateWindow()
    qtbot.waitUntil(view.isActiveWindow)
    part.setFocus()
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(part, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().image()
    shown = part.grab().toImage()
    assert copied.size() == shown.size()
    middle = QPoint(shown.width() // 2 + 30, shown.height() // 2 + 30)
    assert copied.pixelColor(middle) == shown.pixelColor(middle)
    edge = [QPoint(x, shown.height() // 3) for x in range(3)]
    assert theme.DARK.accent in {shown.pixelColor(place).name() for place in edge}
    assert theme.DARK.accent not in {copied.pixelColor(place).name() for place in edge}
