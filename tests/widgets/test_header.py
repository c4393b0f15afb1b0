"""The top of a panel: what gives way where there is little room, and how names stand in it."""

from PySide6.QtCore import QCoreApplication, QSize
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.parts import Header

MODES = {"one": ("by behaviour", ""), "two": ("common tasks", "")}


def test_a_header_with_a_long_word_at_the_right_leaves_its_switch_whole(qtbot):
    header = Header("Communities", "5 found | click to select one of them")
    switch = ModeSwitch(MODES)
    header.row.addWidget(switch)
    qtbot.addWidget(header)
    header.resize(QSize(300, 24))
    header.show()
    for button in switch.buttons.values():
        assert button.width() >= button.sizeHint().width()
    assert header._subtitle.width() < header._subtitle.sizeHint().width()
    assert header._subtitle.toolTip()


def test_a_long_name_is_shortened_and_whole_in_the_tooltip(qtbot):
    header = Header("Task", "11 votes")
    qtbot.addWidget(header)
    header.resize(QSize(200, 24))
    header.show()
    header.set_title("Task", "cell-1887")
    assert (header._title.text(), header._name.text(), header._name.toolTip()) == ("TASK", "cell-1887", "")
    header.set_title("Task", "<b>" + 40 * "cell ")
    assert "&lt;b&gt;cell" in header._name.toolTip()


def test_where_there_is_too_little_room_the_name_stays_and_the_title_goes(qtbot):
    header = Header("Annotator")
    header.row.addWidget(ModeSwitch(MODES))
    qtbot.addWidget(header)
    header.show()
    header.set_title("Annotator", "v-7062")
    for width, titled in ((420, True), (250, False), (420, True)):
        header.resize(QSize(width, 24))
        QCoreApplication.sendPostedEvents()
        assert header._title.isVisible() == titled
        assert header._name.toolTip() == ""  # it fits
    header.resize(QSize(250, 24))
    header.set_title("3 annotators")
    assert header._title.isVisible()


def test_a_title_has_a_brief_form_for_where_there_is_too_little_room_for_it(qtbot):
    header = Header("Regularisation path", brief="Path")
    switch = ModeSwitch(MODES)
    header.row.addWidget(switch)
    qtbot.addWidget(header)
    header.show()
    for width, title in ((460, "REGULARISATION PATH"), (240, "PATH"), (460, "REGULARISATION PATH")):
        header.resize(QSize(width, 24))
        QCoreApplication.sendPostedEvents()
        assert header._title.text() == title
    header.resize(QSize(240, 24))
    switch.hide()
    QCoreApplication.sendPostedEvents()
    assert header._title.text() == "REGULARISATION PATH"


def test_the_word_at_the_right_gives_way_before_the_name_does(qtbot):
    header = Header("Ranking, before and after", "15 items swap, 3 never compared", brief="Ranking")
    header.row.addWidget(ModeSwitch(MODES))
    qtbot.addWidget(header)
    header.show()
    header.set_title("Ranking, before and after", "cell-33", brief="Ranking")
    header.resize(QSize(320, 24))
    QCoreApplication.sendPostedEvents()
    assert header._name.isVisible()
    assert header._name.toolTip() == ""  # it fits
    assert header._subtitle.width() < header._subtitle.sizeHint().width()


def test_a_title_that_repeats_its_tab_is_hidden_and_so_is_an_otherwise_empty_header(qtbot):
    tabs, page = QTabWidget(), QWidget()
    header = Header("Methods", parent=page)
    QVBoxLayout(page).addWidget(header)
    tabs.addTab(page, "Methods")
    qtbot.addWidget(tabs)
    tabs.show()
    assert not header._title.isVisible()
    assert header.height() == 0
    header.set_subtitle("2 runs")
    qtbot.waitUntil(lambda: header.height() > 0)
    assert not header._title.isVisible()
    assert header.text() == ("Methods", "2 runs")
    header.set_title("Model estimates")
    assert header._title.isVisible()


def test_a_state_is_shortened_before_it_is_cut(qtbot):
    header = Header("Evidence")
    qtbot.addWidget(header)
    header.resize(QSize(400, 24))
    header.show()
    header.set_title("Spot 12", "x 1,204, y 310")
    header.set_subtitle("accepted by you", brief="accepted")
    QCoreApplication.processEvents()
    assert header._subtitle.text() == "accepted by you"
    header.resize(QSize(230, 24))
    QCoreApplication.processEvents()
    assert header._subtitle.text() == "accepted"
    assert header.text()[1] == "accepted by you"
    header.resize(QSize(400, 24))
    QCoreApplication.processEvents()
    assert header._subtitle.text() == "accepted by you"
