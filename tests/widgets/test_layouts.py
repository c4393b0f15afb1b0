"""Contents of a hidden widget that are made when it is shown, and tabs."""

from PySide6.QtWidgets import QApplication, QLabel, QTabWidget, QWidget

from raterscope.widgets.layouts import DeferredContent, TabPages, horizontal


def test_a_hidden_widget_is_filled_once_when_shown_and_a_visible_one_at_once(qtbot):
    tabs, label = QTabWidget(), QLabel()
    qtbot.addWidget(tabs)
    tabs.addTab(QWidget(), "first")
    tabs.addTab(label, "second")
    tabs.show()
    content, filled = DeferredContent(label), []
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


class _Counted(QWidget):
    paints = 0

    def paintEvent(self, _event):
        self.paints += 1


def test_a_text_that_changes_in_a_page_of_tabs_does_not_paint_what_is_beside_it(qtbot):
    tabs, page, label, beside = TabPages(), QWidget(), QLabel("none"), _Counted()
    qtbot.addWidget(tabs)
    label.setFixedWidth(80)
    horizontal(label, (beside, 1), inside=page)
    tabs.addTab(page, "first")
    tabs.resize(300, 200)
    with qtbot.waitExposed(tabs):
        tabs.show()
    qtbot.waitUntil(lambda: beside.paints > 0)
    QApplication.processEvents()
    before = beside.paints
    for number in range(3):
        label.setText(f"{number} flagged")
        QApplication.processEvents()
        qtbot.wait(5)
    assert beside.paints == before
    height = beside.height()
    font = tabs.tabBar().font()
    font.setPixelSize(40)
    tabs.tabBar().setFont(font)
    qtbot.waitUntil(lambda: beside.height() < height)
    tabs.tabBar().hide()
    qtbot.waitUntil(lambda: beside.height() > height)
