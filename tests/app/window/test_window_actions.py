"""Actions of every workspace: command palette, shortcut sheet, guide, copied images, full screen."""

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QScrollArea

from raterscope.app.window.command_palette import CommandPalette, ShortcutSheet
from raterscope.app.window.guide import GuideView, pages
from raterscope.app.window.main_window import MainWindow
from raterscope.widgets.hints import KeyHelp
from tests.app.driving import LONG, idle, press


def _type(qtbot, widget, key, modifiers=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(widget, key, modifiers)


def _open_palette(window, qtbot):
    press(window, qtbot, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    return next(palette for palette in window.findChildren(CommandPalette) if palette.isVisible())


@pytest.fixture
def palette(fused, qtbot):
    return _open_palette(fused, qtbot)


def _words(palette):
    return [line.text for line in palette.view.lines]


def test_the_palette_goes_to_items_and_the_guide_and_hides_names(fused, palette, qtbot):
    qtbot.keyClicks(palette.line, "two.png")
    assert palette.chosen.where == "Image"
    _type(qtbot, palette.line, Qt.Key.Key_Return)
    second = fused.document.contents.images[1].id
    qtbot.waitUntil(lambda: fused.workspace.reviewing.session.scene.image.id == second, timeout=LONG)
    idle(fused, qtbot)
    press(fused, qtbot, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    line = fused.findChild(CommandPalette).line
    qtbot.keyClicks(line, "volunteer 7")
    _type(qtbot, line, Qt.Key.Key_Return)
    chosen = fused.workspace.table.model.at(fused.workspace.table.view.currentIndex().row())
    assert chosen.name == "volunteer 7"
    line = _open_palette(fused, qtbot).line
    qtbot.keyClicks(line, "oem run")
    _type(qtbot, line, Qt.Key.Key_Return)
    idle(fused, qtbot)
    assert fused.workspace.core.session.chosen_run == fused.document.contents.runs[0].id

    line = _open_palette(fused, qtbot).line
    qtbot.keyClicks(line, "false discovery")
    _type(qtbot, line, Qt.Key.Key_Return)
    assert fused.findChild(GuideView).topic == "pairs/draws"

    fused.document.hide_names(True, "clicks")
    assert not [words for words in _words(_open_palette(fused, qtbot)) if "volunteer" in words]


def test_the_palette_lists_every_possible_action_and_runs_one_by_a_few_letters(fused, palette, qtbot):
    offered = {(command.text, command.where) for command in palette._commands}
    for action in fused.workspace.actions_made:
        if not action.menu() and action.isEnabled():
            assert (action.text(), "Review") in offered
    assert {("Copy as image", "View"), ("Detections…", "Export"), ("Dark", "Theme")} <= offered
    assert ("Redo", "Study") not in offered  # nothing is undone yet
    first, second = _words(palette)[:2]
    _type(qtbot, palette.line, Qt.Key.Key_Down)
    assert palette.chosen.text == second
    _type(qtbot, palette.line, Qt.Key.Key_Up)
    assert palette.chosen.text == first
    _type(qtbot, palette.line, Qt.Key.Key_Escape)
    assert fused.focusWidget() is fused.workspace.canvas
    qtbot.waitUntil(lambda: fused.findChild(CommandPalette) is None)
    palette = _open_palette(fused, qtbot)
    qtbot.keyClicks(palette.line, "xyzzy")
    assert palette.chosen is None
    assert palette._no_matches.isVisible()
    _type(qtbot, palette.line, Qt.Key.Key_Return)
    assert not palette.isVisible()
    palette = _open_palette(fused, qtbot)
    qtbot.keyClicks(palette.line, "next disp")
    assert palette.chosen.text == "Next disputed spot"
    assert palette.chosen.keys == "Tab"
    _type(qtbot, palette.line, Qt.Key.Key_Return)
    idle(fused, qtbot)
    assert fused.workspace.reviewing.current is not None
    assert fused.focusWidget() is fused.workspace.canvas


def test_keys_copy_the_focused_figure_fill_the_screen_and_are_listed(fused, qtbot):
    canvas, table = fused.workspace.canvas, fused.workspace.table
    for widget, target in ((canvas, canvas), (table, table.view)):
        target.setFocus()
        modifiers = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        QGuiApplication.clipboard().clear()
        qtbot.keyClick(target, Qt.Key.Key_C, modifiers)
        picture = QGuiApplication.clipboard().image()
        ratio = widget.devicePixelRatioF()
        assert picture.width() >= widget.width() * ratio
        assert fused.status.message.startswith("Copied the image")

    press(fused, qtbot, Qt.Key.Key_F11)
    assert fused.isFullScreen()
    press(fused, qtbot, Qt.Key.Key_N)
    assert fused.workspace.canvas.mode == "add"
    press(fused, qtbot, Qt.Key.Key_Escape)
    assert fused.workspace.canvas.mode == "look"
    assert fused.isFullScreen()
    press(fused, qtbot, Qt.Key.Key_Escape)
    assert not fused.isFullScreen()

    press(fused, qtbot, Qt.Key.Key_Question)
    sheet = fused.findChild(ShortcutSheet)
    shown = dict(sheet.shown())
    for action in fused.workspace.actions_made:
        if not action.shortcut().isEmpty():
            assert shown[action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)] == action.text()
    assert "show one annotator only" in shown["1 ... 9"]
    assert shown["Ctrl+1"] == "Clicks"
    assert shown["+"] == "zoom in"
    qtbot.keyClicks(sheet.line, "zoom")
    assert set(sheet.shown()) == {
        ("+", "zoom in"), ("-", "zoom out"), ("+, -", "zoom"),
        ("Wheel", "zoom; with Alt: focal planes; with Shift: times"),
    }  # fmt: skip
    sheet.line.clear()
    assert len(sheet._groups) > 1
    for group in sheet._groups:
        keys = [keys for keys, _ in group.shown()]
        assert len(keys) == len(set(keys))  # no key means two things in one place
    sheet.close()


def test_a_long_description_leaves_room_for_the_keys(qtbot):
    keys = [(f"F{number}", "Undo count 200 leukocytes, 5,000 red cells, all images") for number in range(9)]
    groups = [KeyHelp(f"Group {number}", (*keys, ("Z", "x" * 400))) for number in range(3)]
    sheet = ShortcutSheet(groups)
    qtbot.addWidget(sheet)
    (area,) = sheet.findChildren(QScrollArea)
    assert area.widget().minimumSizeHint().width() <= sheet.width()


def test_undo_and_guide_follow_the_workspace_and_its_menu_is_whole_after_a_visit_elsewhere(fused, qtbot):
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_R)
    assert fused.menus.undo_action.text() == "Undo reject spot 1"
    assert "reject spot 1" in fused.workspace.history.undo.toolTip()
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert fused.menus.redo_action.text() == "Redo reject spot 1"
    assert "reject spot 1" in fused.workspace.history.redo.toolTip()

    workspace = fused.workspace
    for widget, topic in (
        (workspace.canvas, "clicks/image"),
        (workspace.history.view, "window/history"),
        (workspace.table.view, "clicks/annotators"),
    ):
        fused.activateWindow()
        qtbot.waitUntil(fused.isActiveWindow)
        widget.setFocus()
        qtbot.keyClick(widget, Qt.Key.Key_F1)
        guide = fused.findChild(GuideView)
        assert guide.isVisible()
        assert guide.topic == topic
        assert pages()[topic].title in guide.page.toPlainText()

    def entries():
        return [action.text() for action in fused.menus.review_menu.actions()]

    before = entries()
    fused.show_workspace("annotators")
    idle(fused, qtbot)
    assert entries() != before
    fused.show_workspace("clicks")
    idle(fused, qtbot)
    assert entries() == before
    assert fused.menus.review_menu.actions()[-1].menu().actions()


def test_tabs_and_divisions_are_as_they_were_left(fused, qtbot, study_file):
    fused.workspace.right_tabs.setCurrentWidget(fused.workspace.reliability)
    edge = fused.workspace.whole.handle(1)
    qtbot.mousePress(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 60))
    qtbot.mouseMove(edge, QPoint(100, 60))
    qtbot.mouseRelease(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 60))
    left = fused.workspace.whole.sizes()
    assert left[0] > 300
    fused.close()
    second = MainWindow()
    qtbot.addWidget(second)
    second.resize(1280, 800)
    second.show()
    second.open_paths([study_file])
    qtbot.waitUntil(lambda: second.workspace is not None, timeout=LONG)
    idle(second, qtbot)
    assert second.workspace.right_tabs.currentWidget() is second.workspace.reliability
    assert second.workspace.left_tabs.currentWidget() is second.workspace.history
    assert second.workspace.whole.sizes() == pytest.approx(left, abs=2)
    second.close()


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_the_palette_finds_pages_by_their_words_after_names_and_f10_opens_the_menu(fused, palette, qtbot):
    for typed, text in (
        ("bland-altman", "Observer variability"), ("audit trail", "History"), ("report", "Report…"),
    ):  # fmt: skip
        palette.line.clear()
        qtbot.keyClicks(palette.line, typed)
        assert palette.chosen.text == text
    _type(qtbot, palette.line, Qt.Key.Key_Escape)

    menu, chosen = fused.menus.menu, []

    def choose():
        qtbot.keyClick(menu, Qt.Key.Key_Up)
        chosen.append(menu.activeAction().text())
        qtbot.keyClick(menu, Qt.Key.Key_Escape)

    QTimer.singleShot(0, choose)
    press(fused, qtbot, Qt.Key.Key_F10)
    assert chosen == ["Quit"]


def test_without_a_study_palette_and_guide_open_too_and_the_palette_stays_open_while_one_arrives(
    window, qtbot, study_file
):
    window.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    offered = _words(window.findChild(CommandPalette))
    assert "Open study…" in offered
    assert "Close study" not in offered
    _type(qtbot, window.findChild(CommandPalette).line, Qt.Key.Key_Escape)
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert window.findChild(GuideView).topic == "window/start"
    window.findChild(GuideView).close()
    qtbot.waitUntil(lambda: window.findChild(CommandPalette) is None)

    window.menus.palette_requested.emit()
    line = window.findChild(CommandPalette).line
    window.open_paths([study_file])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    idle(window, qtbot)
    assert line.isVisible()
    assert window.focusWidget() is line
