"""Text size of the interface: chosen in the window, applied everywhere, stored."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QTableView

from raterscope.app.window import preferences
from raterscope.app.window.command_palette import ShortcutSheet
from raterscope.app.window.preferences import apply_chosen_theme, change_text_size
from raterscope.widgets import theme
from raterscope.widgets.forms import FormDialog
from raterscope.widgets.layouts import ScrollRegion
from raterscope.widgets.panels.lists import LineList
from raterscope.widgets.theme import set_text_size, text_size
from tests.app.driving import command, idle
from tests.app.large_text import check_keys, is_whole

CONTROL_SHIFT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(autouse=True)
def usual(qapp):
    theme.apply_theme(qapp, theme.DARK)
    yield
    set_text_size(1.0)
    theme.apply_theme(qapp, theme.DARK)


def _press(window, qtbot, key):
    window.activateWindow()
    qtbot.keyClick(window.workspace.canvas, key, CONTROL_SHIFT)
    QApplication.processEvents()


def _heights(window):
    """Return the heights of what a line of text makes so high: rows of lists and tables, labels, buttons."""
    workspace = window.workspace
    lists = {kind.accessibleName(): kind.sizeHintForRow(0) for kind in workspace.findChildren(LineList)
             if kind.model().rowCount()}  # fmt: skip
    tables = {view.accessibleName(): view.rowHeight(0) for view in workspace.findChildren(QTableView)
              if view.model() is not None and view.model().rowCount() and view.isVisible()}  # fmt: skip
    labels = {label.text(): label.fontMetrics().height() for label in window.findChildren(QLabel)
              if label.text() and label.isVisible()}  # fmt: skip
    return {**lists, **tables, **labels, "fuse": window.bar.fuse.height(), "top": window.bar.height()}


def test_text_and_layout_grow_by_steps_and_go_back_and_keys_of_spots_stay_visible(fused, qtbot):
    workspace = fused.workspace
    fused.resize(1280, 1000)  # in a low window the bottom is as low as its parts allow
    idle(fused, qtbot)
    edge = workspace.upper.handle(1)
    qtbot.mousePress(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 60))
    qtbot.mouseMove(edge, QPoint(-60, 60))
    qtbot.mouseRelease(edge, Qt.MouseButton.LeftButton, pos=QPoint(0, 60))
    divided = (workspace.whole, workspace.upper, workspace.middle)
    sizes = np.array([splitter.sizes() for splitter in divided])
    before = _heights(fused)
    assert {"Annotators", "Images"} <= set(before)
    change_text_size(2)
    _press(fused, qtbot, Qt.Key.Key_Equal)
    assert fused.status.message == "Text size 130 %."
    assert workspace.upper.sizes()[1] > sizes[1, 1]
    after = _heights(fused)
    same = [name for name in before if name in after]
    assert len(same) > 12
    for name in same:
        assert after[name] > 1.1 * before[name], name
    _press(fused, qtbot, Qt.Key.Key_Minus)
    assert fused.status.message == "Text size 120 %."
    _press(fused, qtbot, Qt.Key.Key_0)
    assert text_size() == 1
    second = _heights(fused)
    assert {name: second[name] for name in same if name in second} == {
        name: before[name] for name in same if name in second
    }
    assert np.array([splitter.sizes() for splitter in divided]) == pytest.approx(sizes, abs=1)

    names = ("accept", "reject", "skip", "add", "move_key", "undo")
    check_keys(fused, qtbot, workspace.evidence, names)


def test_the_size_has_ends_and_is_remembered(qapp):
    assert [change_text_size(1) for _ in range(12)][-2:] == [200, 200]
    assert text_size() == 2
    set_text_size(1.0)
    apply_chosen_theme(preferences.chosen_theme())  # as the program does when it starts
    assert text_size() == 2
    assert qapp.font().pixelSize() == 2 * theme.BODY
    assert [change_text_size(-1) for _ in range(14)][-2:] == [80, 80]
    preferences.remember("text_percent", "large")
    assert preferences.text_percent() == 100


def test_the_smallest_window_scrolls_with_twice_the_text_and_layouts_and_folded_sides_are_restored(
    fused, qtbot
):
    for _ in range(2):  # 150 % and 200 %
        change_text_size(5)
        fused.window_actions.show_keys()
        (sheet,) = [sheet for sheet in fused.findChildren(ShortcutSheet) if sheet.isVisible()]
        (area,) = sheet.findChildren(QScrollArea)
        assert area.widget().width() <= area.viewport().width()
        assert area.widget().minimumSizeHint().width() <= area.viewport().width()
        sheet.done(0)
        sheet.deleteLater()
        QApplication.processEvents()
    fused.resize(960, 640)
    idle(fused, qtbot)
    assert fused.width() == 960
    assert fused.height() == 640
    workspace = fused.workspace
    assert workspace.canvas.width() >= 240
    assert workspace.canvas.height() >= 180
    for part in (workspace.whole, workspace.middle):  # they were folded
        workspace.unfold(part)
    idle(fused, qtbot)
    regions = [region for region in workspace.findChildren(ScrollRegion) if region.isVisible()]
    assert len(regions) >= 4
    for region in regions:
        beyond = region.widget().size() - region.viewport().size()
        assert region.horizontalScrollBar().maximum() == max(beyond.width(), 0)
        assert region.verticalScrollBar().maximum() == max(beyond.height(), 0)
        assert fused.rect().contains(region.mapTo(fused, QPoint(region.width() - 1, region.height() - 1)))
    shown = [fused.bar.fuse, fused.bar.help]
    boxes = [region.geometry() for region in shown]
    assert all(fused.bar.rect().contains(position) for position in boxes)
    assert not boxes[0].intersects(boxes[1])
    change_text_size(0)
    fused.resize(948, 498)  # a screen of 960 x 540, less the frame
    idle(fused, qtbot)
    assert (fused.width(), fused.height()) == (948, 498)
    for region in workspace.findChildren(ScrollRegion):
        for bar in (region.horizontalScrollBar(), region.verticalScrollBar()):
            assert not bar.isVisible()
            assert bar.maximum() == 0  # nor can it be scrolled away by key

    fused.resize(1440, 900)
    idle(fused, qtbot)
    usual = workspace.layout_state()
    change_text_size(10)
    idle(fused, qtbot)
    before = workspace.upper.sizes()
    assert before[1] > 600
    for name, stored in workspace.layout_state().items():
        workspace.restore_layout(name, stored)
    workspace._cramped = False  # as in a new window
    workspace._divide()
    idle(fused, qtbot)
    assert workspace.upper.sizes() == pytest.approx(before, abs=2)

    fused.bar.set_stale("Your decisions would change the result.")
    fuse = fused.bar.fuse
    assert fuse.text() == "Fuse again"
    for width in (1280, 1000, 960):
        fused.resize(width, 720)
        idle(fused, qtbot)
        assert fuse.width() >= fuse.sizeHint().width()
        assert not fuse.geometry().intersects(fused.bar.help.geometry())
        assert is_whole(fuse)
    assert workspace.whole.sizes()[0] == 0
    state = workspace.layout_state()
    assert workspace.whole.sizes()[0] == 0
    workspace.restore_layout("whole", state["whole"])
    assert workspace.whole.sizes()[0] > 0
    assert set(state) == set(usual)


def test_dialogs_of_the_menu_fit_a_small_screen_with_twice_the_text(window, qtbot):
    set_text_size(2.0)
    commands = ("Settings…", "Simulate…", "Fetch from PACS…", "New reader study…")
    for words in commands:
        command(window, words)
        qtbot.waitUntil(lambda: any(dialog.isVisible() for dialog in window.findChildren(FormDialog)))
        (dialog,) = (dialog for dialog in window.findChildren(FormDialog) if dialog.isVisible())
        assert dialog.width() <= 1280, words
        assert dialog.height() <= 690, words
        assert dialog.rect().contains(dialog.accepting.geometry()), words
        dialog.reject()
        idle(window, qtbot)
