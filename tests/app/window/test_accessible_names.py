"""Accessible names of focusable widgets, their tab order, and what is spoken."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QMenu, QTabWidget, QWidget

from raterscope.app.window.command_palette import CommandPalette, ShortcutSheet
from raterscope.app.window.guide import GuideView, pages
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets import parts
from raterscope.widgets.hints import KeyHelp
from tests.app.driving import LONG, idle


def _within(widget, kinds):
    parent = widget.parentWidget()
    return parent is not None and (isinstance(parent, kinds) or _within(parent, kinds))


def nameless(position):
    """List what takes the keys and says nothing of itself; inner parts of choices and menus are left out."""
    results = []
    for widget in position.findChildren(QWidget):
        takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None
        if not takes or _within(widget, (QComboBox, QAbstractSpinBox, QMenu)) or isinstance(widget, QMenu):
            continue
        interface = QAccessible.queryAccessibleInterface(widget)
        if not interface.text(QAccessible.Text.Name).strip():
            results.append(f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}")
    return results


def test_what_takes_the_keys_in_the_window_has_a_name(fused, qtbot):
    CommandPalette([], fused)
    assert nameless(fused) == []


def test_sheet_and_guide_have_names(qtbot):
    for created in (ShortcutSheet((KeyHelp("Review", (("A", "Accept"),)),)), GuideView(pages())):
        qtbot.addWidget(created)
        assert nameless(created) == []


@pytest.mark.parametrize("bare_workspace", list(WORKSPACES), indirect=True)
def test_what_takes_the_keys_has_a_name_and_tab_goes_from_left_to_right_and_from_top_to_bottom(
    bare_workspace,
):
    _, workspace = bare_workspace
    assert nameless(workspace) == []
    order, widget = [], workspace.nextInFocusChain()
    while widget is not workspace:
        order.append(widget)
        widget = widget.nextInFocusChain()
    regions = (workspace.queue, workspace.upper, workspace.bottom)
    firsts = [
        next(at for at, part in enumerate(order) if region.isAncestorOf(part) and _takes(part))
        for region in regions
    ]
    assert firsts == sorted(firsts)


def _takes(widget):
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and not isinstance(widget, QTabWidget)


@pytest.fixture
def spoken(monkeypatch):
    """Return the text that a screen reader speaks."""
    texts = []
    monkeypatch.setattr(parts.QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(parts.QAccessible, "updateAccessibility", lambda event: texts.append(event.message()))
    return texts


def test_selection_decision_errors_and_messages_are_spoken_while_the_picture_has_the_keyboard(
    fused, qtbot, spoken
):
    qtbot.keyClick(fused.workspace.canvas, Qt.Key.Key_Tab)
    qtbot.waitUntil(lambda: any(text.startswith("spot ") for text in spoken), timeout=LONG)
    spoken.clear()
    qtbot.keyClick(fused.workspace.canvas, Qt.Key.Key_A)
    qtbot.waitUntil(lambda: any(text.startswith("accept spot ") for text in spoken), timeout=LONG)
    idle(fused, qtbot)

    fused.status.show_message("Exported.")
    fused.notice.show_error("The disk is full.")
    assert spoken[-2:] == ["Exported.", "The disk is full."]
