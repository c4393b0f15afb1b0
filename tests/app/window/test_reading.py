"""Reading mode in the window: cases of all kinds, by mouse and key, until the session is finished."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from raterscope.app.reader_studies.collecting import draw_strokes
from raterscope.app.reader_studies.reading_file import ReadingFile
from raterscope.app.workspaces.reading.screen import CaseClock
from raterscope.widgets.dialogs.reader_study_dialog import ReaderStudyDialog
from raterscope.widgets.panels.drift_panel import ConfusionPanel
from raterscope.widgets.panels.queue_panel import LongQueue
from raterscope.widgets.panels.reading_panels import ReadingKey, ReadingPanel
from tests.app.driving import LONG, command, idle
from tests.app.reader_studies.making import comparisons, images, make, read, texts


@pytest.fixture
def reading(request, window, qtbot, tmp_path):
    """The reading mode on the first case of a reader's file."""
    path = make(request.param, tmp_path, reads=2, washout_days=28) / "readers" / "R01.rsread"
    screen = open_file(window, qtbot, path)
    press_button(screen, "Start reading")
    qtbot.waitUntil(lambda: screen._has_pixels, timeout=LONG)
    idle(window, qtbot)
    return window, screen, path


def open_file(window, qtbot, path):
    window.open_paths([path])
    qtbot.waitUntil(lambda: window.reading.screen is not None and titles(window.reading.screen), timeout=LONG)
    idle(window, qtbot)
    return window.reading.screen


def titles(screen):
    message = screen._pages.currentWidget()
    return message is screen._message and bool(message.buttons)


def press_button(screen, words):
    button = next(button for button in screen._message.buttons if button.text() == words)
    button.click()


def key(window, qtbot, widget, name):
    QTest.keyClick(widget, name)
    idle(window, qtbot)


def click_at(canvas, x, y, modifiers=Qt.KeyboardModifier.NoModifier):
    place = QPoint(*map(round, canvas.viewport.to_screen(x, y)))
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, modifiers, place)


def stored(window, path):
    """Close the file and return what it has."""
    window.reading.close()
    return ReadingFile.open(path, to_read=True)


@pytest.mark.parametrize("reading", ["clicks"], indirect=True)
def test_points_are_marked_removed_and_undone(reading, qtbot):
    window, screen, path = reading
    canvas = screen.surface.canvas
    for x, y in ((10, 12), (30, 20), (45, 30)):
        click_at(canvas, x, y)
        idle(window, qtbot)
    click_at(canvas, 30, 20, Qt.KeyboardModifier.ShiftModifier)
    idle(window, qtbot)
    assert [round(x) for x, _, _ in screen.reader.marks.clicks] == [10, 45]
    key(window, qtbot, canvas, Qt.Key.Key_Z)
    assert len(screen.reader.marks.clicks) == 3
    key(window, qtbot, canvas, Qt.Key.Key_Y)
    assert len(screen.reader.marks.clicks) == 2
    key(window, qtbot, canvas, Qt.Key.Key_Right)  # the crosshair of the keyboard
    key(window, qtbot, canvas, Qt.Key.Key_Return)
    assert len(screen.reader.marks.clicks) == 3
    key(window, qtbot, canvas, Qt.Key.Key_N)
    assert screen.header.text == "Case 2 of 4, session 1 of 2"
    assert screen.reader.marks.clicks == ()
    key(window, qtbot, canvas, Qt.Key.Key_P)
    assert len(screen.reader.marks.clicks) == 3
    with stored(window, path) as file:
        assert len(file.marks(0).clicks) == 3
        assert file.sessions()[0].done == {0}


@pytest.mark.parametrize("reading", ["clicks"], indirect=True)
def test_no_answer_is_on_screen(reading):
    window, screen, _ = reading
    assert not screen.findChildren(LongQueue)
    assert not screen.findChildren(ConfusionPanel)
    assert not screen.surface.canvas._chips.isVisible()
    assert not window.bar.isVisible()
    assert window.document.contents is None
    assert "smear" not in screen.header.text


@pytest.mark.parametrize("reading", ["masks"], indirect=True)
def test_structures_are_drawn_by_brush_and_contour(reading, qtbot):
    window, screen, _ = reading
    view = screen.surface.volume.view("axial")
    shape = screen.reader.case.pictures[0].shape

    def at(x, y):
        return QPoint(*map(round, view.viewport.to_screen(x, y)))

    def drag(*places):
        QTest.mousePress(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at(*places[0]))
        for place in places[1:]:
            QTest.mouseMove(view, at(*place))
        QTest.mouseRelease(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at(*places[-1]))
        idle(window, qtbot)

    drag((10, 10), (20, 10))
    key(window, qtbot, view, Qt.Key.Key_2)
    key(window, qtbot, view, Qt.Key.Key_C)
    assert screen.surface.checked() == {"structure cell", "contour"}
    drag((5, 5), (40, 5), (40, 25), (5, 25))
    masks = draw_strokes(screen.reader.marks.strokes, shape)
    assert masks["nucleus"][0, 10, 10:20].all()
    rows, columns = np.nonzero(masks["cell"][0])
    assert (rows.min(), columns.min()) == pytest.approx((5, 5), abs=1)
    assert (rows.max(), columns.max()) == pytest.approx((24, 39), abs=1)
    assert masks["cell"].sum() == pytest.approx(35 * 20, rel=0.1)
    key(window, qtbot, view, Qt.Key.Key_Z)
    assert set(draw_strokes(screen.reader.marks.strokes, shape)) == {"nucleus"}


@pytest.mark.parametrize("reading", ["labels"], indirect=True)
def test_digits_answer_the_questions_in_turn_and_go_on(reading, qtbot):
    window, screen, path = reading
    key(window, qtbot, screen.surface.focusProxy(), Qt.Key.Key_3)
    assert screen.surface.checked() == {"answer 0 unsure"}
    key(window, qtbot, screen.surface.focusProxy(), Qt.Key.Key_9)
    assert screen.header.text.startswith("Case 1 of 4")
    key(window, qtbot, screen.surface.focusProxy(), Qt.Key.Key_2)
    assert screen.header.text.startswith("Case 2 of 4")
    key(window, qtbot, screen.surface.focusProxy(), Qt.Key.Key_P)
    screen.panel.buttons["answer 0 yes"].click()  # a change of mind
    idle(window, qtbot)
    with stored(window, path) as file:
        assert file.marks(0).answers == {"infected": "yes", "sharp": "2"}


def test_texts_are_shown_as_in_the_task_view_and_answered_by_digits(window, qtbot, tmp_path):
    out = make("labels", tmp_path, cases=[str(texts(tmp_path))])
    screen = open_file(window, qtbot, out / "readers" / "R01.rsread")
    press_button(screen, "Start reading")
    shown = set()
    for _ in range(4):
        qtbot.waitUntil(lambda: screen._has_pixels)
        idle(window, qtbot)
        browser = screen.surface.browser
        assert browser.isVisible()
        assert screen.surface.focusWidget() is browser
        shown.add(browser.toPlainText())
        for name in (Qt.Key.Key_3, Qt.Key.Key_2):
            key(window, qtbot, browser, name)
    assert screen._message.accessibleName() == "Finish session 1?"
    assert shown == {
        "Text 0, on\ntwo lines",
        "A bold answer",
        "\nresponse a\nFirst answer\nresponse b\nSecond answer\n",
        "Text 3, on\ntwo lines",
    }
    with stored(window, out / "readers" / "R01.rsread") as file:
        assert [file.marks(place).answers for place in range(4)] == [{"infected": "unsure", "sharp": "2"}] * 4


def test_pictures_of_a_task_are_beside_its_text(window, qtbot, tmp_path):
    (tmp_path / "tasks.csv").write_text(
        "task,text,front,side\na,Fever,smear0.png,smear1.png\nb,,smear2.png,\nc,Cough,,\n"
    )
    out = make("labels", tmp_path, cases=["tasks.csv"])
    screen = open_file(window, qtbot, out / "readers" / "R01.rsread")
    press_button(screen, "Start reading")
    shown = set()
    for _ in range(3):
        qtbot.waitUntil(lambda: screen._has_pixels)
        idle(window, qtbot)
        browser = screen.surface.browser
        heights = [view.extent[3] for view in screen.surface._canvases if view.isVisible()]
        shown.add((browser.toPlainText() if browser.isVisible() else "", *heights))
        for name in (Qt.Key.Key_1, Qt.Key.Key_2):
            key(window, qtbot, browser, name)
    assert shown == {("Fever", 40, 41), ("", 42), ("Cough",)}
    assert screen._message.accessibleName() == "Finish session 1?"


def test_the_keys_of_the_current_question_are_in_sight(qtbot):
    groups = [(name, [ReadingKey(f"{name} {at}", str(at), "x") for at in range(8)]) for name in ("a", "b")]
    panel = ReadingPanel("Instruction", groups)
    qtbot.addWidget(panel)
    panel.resize(288, 400)
    panel.show()
    for number, name in ((1, "b"), (0, "a")):
        panel.set_current_group(number)
        assert not panel.buttons[f"{name} 7"].visibleRegion().isEmpty()
        assert not panel.headings[number].visibleRegion().isEmpty()


def test_page_keys_scroll_a_long_text(window, qtbot, tmp_path):
    (tmp_path / "long.csv").write_text("task,text\na," + "word " * 9000 + "\nb,short\n")
    out = make("labels", tmp_path, cases=["long.csv"], seed=3)
    screen = open_file(window, qtbot, out / "readers" / "R01.rsread")
    press_button(screen, "Start reading")
    qtbot.waitUntil(lambda: screen._has_pixels)
    idle(window, qtbot)
    if "short" in screen.surface.browser.toPlainText():
        key(window, qtbot, screen.surface.browser, Qt.Key.Key_N)
    before = screen.header.text
    key(window, qtbot, screen.surface.browser, Qt.Key.Key_PageDown)
    assert screen.surface.browser.verticalScrollBar().value() > 0
    assert screen.header.text == before


@pytest.mark.parametrize("reading", ["pairs"], indirect=True)
def test_arrows_choose_a_side(reading, qtbot):
    window, screen, path = reading
    for name in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Down):
        key(window, qtbot, screen.surface.focusProxy(), name)
    assert screen.header.text.startswith("Case 4 of 6")
    with stored(window, path) as file:
        answers = [file.marks(place).answers["sharper"] for place in range(3)]
    assert answers == ["left", "right", "tie"]


def test_texts_of_a_pair_are_on_the_sides_drawn_for_the_reader(window, qtbot, tmp_path):
    path = make("pairs", tmp_path, cases=[comparisons(tmp_path).name], seed=1) / "readers" / "R01.rsread"
    screen = open_file(window, qtbot, path)
    press_button(screen, "Start reading")
    assignment = screen.reader.assignment
    assert {scheduled.swapped for scheduled in assignment.places} == {True, False}
    for scheduled in assignment.places:
        qtbot.waitUntil(lambda: screen._has_pixels)
        idle(window, qtbot)
        case = assignment.case(scheduled.case)
        shown = [browser.toPlainText() for browser in screen.surface._pair.browsers.values()]
        expected = [side.texts["text"] for side in case.sides]
        assert shown == (expected[::-1] if scheduled.swapped else expected)
        assert screen.surface.browser.toPlainText() == case.texts["prompt"]
        assert not any(view.isVisible() for view in screen.surface._pair.views.values())
        key(window, qtbot, screen.surface.focusProxy(), Qt.Key.Key_Right)
    assert screen._message.accessibleName() == "Finish session 1?"
    with stored(window, path) as file:
        assert [file.marks(place).answers for place in range(3)] == [{"sharper": "right"}] * 3


@pytest.mark.parametrize("reading", ["labels"], indirect=True)
def test_a_session_is_finished_after_confirmation_and_the_next_waits(reading, qtbot):
    window, screen, path = reading
    key(window, qtbot, screen.surface.focusProxy(), Qt.Key.Key_F)
    assert "4 cases are not read" in screen._message.accessibleName()
    press_button(screen, "Go to the first of them")
    qtbot.waitUntil(lambda: screen._has_pixels, timeout=LONG)
    idle(window, qtbot)
    for _ in range(4):
        for name in (Qt.Key.Key_1, Qt.Key.Key_1):
            key(window, qtbot, screen.surface.focusProxy(), name)
    assert screen._message.accessibleName() == "Finish session 1?"
    press_button(screen, "Finish session")
    idle(window, qtbot)
    assert screen._message.accessibleName().startswith("Session 2 opens on ")
    press_button(screen, "Close")
    assert window.reading.screen is None
    assert window.bar.isVisible()
    with stored(window, path) as file:
        assert file.sessions()[0].finished is not None


def test_a_file_that_was_read_is_confirmed(window, qtbot, tmp_path):
    path = make("clicks", tmp_path) / "readers" / "R01.rsread"
    read(path)
    screen = open_file(window, qtbot, path)
    assert screen._message.accessibleName() == "All sessions are finished"


@pytest.mark.parametrize("reading", ["clicks"], indirect=True)
def test_a_changed_image_is_not_shown(reading, qtbot, tmp_path):
    window, screen, _ = reading
    images(tmp_path / "other", 6)
    for image in (tmp_path / "smears").iterdir():
        image.write_bytes((tmp_path / "other" / "smear5.png").read_bytes())
    screen.reader._pixels.clear()
    screen.press("next")
    idle(window, qtbot)
    assert "has changed since the study was set up" in screen.problem.text()
    click_at(screen.surface.canvas, 10, 10)
    idle(window, qtbot)
    assert screen.reader.marks.clicks == ()


def test_a_file_that_is_none_is_refused_in_a_sentence(window, qtbot, tmp_path):
    (tmp_path / "torn.rsread").write_text("torn")
    window.open_paths([tmp_path / "torn.rsread"])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    assert "torn.rsread: is not a reading file" in window.notice.text
    assert window.bar.isVisible()


def test_time_counts_only_while_the_case_is_on_screen(qtbot, window):
    now, active, times = [0.0], [True], []
    clock = CaseClock(lambda: active[0], window, clock=lambda: now[0])
    clock.elapsed.connect(lambda place, seconds: times.append((place, seconds)))
    clock.start(3)
    clock._timer.stop()
    now[0] = 1.0
    clock.tick()
    active[0] = False
    now[0] = 1.5
    clock.tick()
    now[0] = 500.0
    clock.tick()
    active[0] = True
    clock.tick()
    now[0] = 500.25
    clock.stop()
    assert times == [(3, 1.75)]


def test_the_dialog_lists_every_problem_and_then_makes_the_files(window, qtbot, tmp_path):
    command(window, "New reader study…")
    (dialog,) = window.findChildren(ReaderStudyDialog)
    dialog.kind.setCurrentIndex(dialog.kind.findData("labels"))
    dialog.folder_field.text = str(tmp_path / "out")
    dialog.accept()
    qtbot.waitUntil(dialog.problems.isVisible, timeout=LONG)
    for name in ("name", "readers", "cases", "questions"):
        assert f"field {name}" in dialog.problems.text()
    assert not (tmp_path / "out").exists()
    images(tmp_path / "smears")
    dialog.name.setText("Cells")
    dialog.readers.editor.setPlainText("Anna\nBen\n")
    dialog.cases.editor.setPlainText(f"{tmp_path}/smears/*.png")
    dialog.questions.editor.setPlainText("infected: yes, no")
    dialog.accept()
    qtbot.waitUntil(lambda: (tmp_path / "out" / "coordinator.json").exists(), timeout=LONG)
    idle(window, qtbot)
    assert sorted(path.name for path in (tmp_path / "out" / "readers").iterdir()) == [
        "R01.rsread",
        "R02.rsread",
    ]
    assert "key of the pseudonyms" in window.status.message


def test_files_are_collected_from_the_menu_and_the_study_opens_with_the_last_reader(window, qtbot, tmp_path):
    out, target = make("clicks", tmp_path), tmp_path / "all.rscope"
    one, two = sorted((out / "readers").iterdir())
    read(one)
    window.reading.collect(out, target)
    qtbot.waitUntil(lambda: "R02, read 1: 0 of 4 cases" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents is None
    window.open_paths([target])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    assert "is blinded until every reader has finished" in window.notice.text
    read(two)
    window.reading.collect(out, target)
    qtbot.waitUntil(lambda: window.document.contents is not None, timeout=LONG)
    idle(window, qtbot)
    exports = [action.text() for action in window.menus.export_menu.actions()]
    assert "Reads of a reader study…" in exports
    window.reading.collect(out, target)  # while it is open
    qtbot.waitUntil(lambda: window.status.message.startswith("0 cases added"), timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents is not None
    assert not window.notice.isVisible()
