"""Contents of a hidden widget that are made when it is shown."""

from PySide6.QtWidgets import QLabel, QTabWidget, QWidget

from raterscope.widgets.layouts import LateContent


def test_a_hidden_widget_is_filled_once_when_shown_and_a_visible_one_at_once(qtbot):
    tabs, label = QTabWidget(), QLabel()
    qtbot.addWidget(tabs)
    tabs.addTab(QWidget(), "first")
    tabs.addTab(label, "second")
    tabs.show()
    content, filled = LateContent(label), []
    for number in (1, 2):
        content.request(lambda number=number: filled.append(number))
    assert filled == []
    tabs.setCurrentIndex(1)
    assert filled == [2]
    tabs.setCurrentIndex(0)
    tabs.setCurrentIndex(1)
    assert filled == [2]
    content.request(lambda: filled.append(3))
    assert filled == [2, 3]
    tabs.setCurrentIndex(0)
    content.request(lambda: filled.append(4))
    content.cancel()
    tabs.setCurrentIndex(1)
    assert filled == [2, 3]
