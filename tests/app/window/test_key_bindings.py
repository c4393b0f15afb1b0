"""Keys of commands are changed in the settings, named where they conflict, kept, and reset."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence

from raterscope.app.window import menus, preferences
from raterscope.widgets.dialogs.settings_dialog import SettingsDialog
from tests.app.driving import command, idle, press


@pytest.fixture(autouse=True)
def usual():
    yield
    preferences.remember("key_bindings", "")


def open_keys(window):
    command(window, "Settings…")
    dialog = window.findChildren(SettingsDialog)[-1]
    dialog.tabs.setCurrentWidget(dialog.keys)
    return dialog, dialog.keys


def choose(keys, words):
    rows = [keys.table.item(row, 0).text() for row in range(keys.table.rowCount())]
    keys.table.setCurrentCell(rows.index(words), 0)


def test_a_changed_key_works_at_once_and_is_written_on_the_button(fused, qtbot):
    dialog, keys = open_keys(fused)
    choose(keys, "Accept")
    keys.editor.setKeySequence(QKeySequence("J"))
    dialog.accept()
    idle(fused, qtbot)
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_A)
    assert not fused.document.contents.decisions
    press(fused, qtbot, Qt.Key.Key_J)
    idle(fused, qtbot)
    assert [decision.verb for decision in fused.document.contents.decisions] == ["accept"]
    assert "(J)" in fused.workspace.evidence.accept.accessibleName()
    assert menus.read_keys() == {"Clicks/Accept": "J"}
    dialog, keys = open_keys(fused)
    keys.reset_all.click()
    dialog.accept()
    assert menus.read_keys() == {}
    assert "(A)" in fused.workspace.evidence.accept.accessibleName()


def test_the_list_is_searched_conflicts_are_named_and_unreadable_settings_are_ignored(fused, qtbot):
    preferences.remember("key_bindings", "[1")
    assert menus.read_keys() == {}
    dialog, keys = open_keys(fused)
    keys.line.setText("palette")
    shown = [row for row in range(keys.table.rowCount()) if not keys.table.isRowHidden(row)]
    assert [keys.table.item(row, 0).text() for row in shown] == ["Command palette"]
    assert keys.table.currentRow() == shown[0]
    keys.line.setText("no such command")
    assert not keys.editor.isEnabled()
    assert keys._nothing.isVisibleTo(keys)
    keys.line.setText("")
    assert not keys._nothing.isVisibleTo(keys)
    dialog.reject()

    dialog, keys = open_keys(fused)
    choose(keys, "Fuse again")
    keys.editor.setKeySequence(QKeySequence("Ctrl+K"))
    assert (
        keys.conflict() == "Ctrl+K is the key of “Command palette” and of “Fuse again”. Change one of them."
    )
    assert not dialog.accepting.isEnabled()
    keys.reset.click()
    assert dialog.accepting.isEnabled()
    dialog.reject()


def test_a_key_of_the_window_gives_way_in_a_workspace_that_has_it(fused, qtbot):
    preferences.remember("key_bindings", '{"Window/Full screen": "A"}')
    fused.menus.key_bindings.apply()
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_A)
    idle(fused, qtbot)
    assert [decision.verb for decision in fused.document.contents.decisions] == ["accept"]
    dialog, keys = open_keys(fused)
    assert keys.conflict() == "A is the key of “Full screen” and of “Accept”. Change one of them."
    choose(keys, "Full screen")
    keys.editor.setKeySequence(QKeySequence("Esc"))
    assert keys.editor.keySequence() == QKeySequence("A")
    dialog.reject()
