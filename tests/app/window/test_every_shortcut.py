"""Each key of the sheet of keyboard shortcuts does what the sheet says; none is missing there."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from raterscope.app.window.command_palette import shortcut_groups
from tests.app.driving import open_study
from tests.app.window.widget_keys import TABLES
from tests.app.window.workspace_keys import LAST, WINDOW

MENUS = ("Review", "Study", "View", "Text size", "Help")
LATE = ("Fuse again", *LAST)
OF_EACH_WORKSPACE = ("Undo", "Redo", "Copy as image", "Guide to this view")
"""Keys of the window that act on the workspace; the others are pressed on the start page and in clicks."""


def parts(keys, where):
    """The presses of "Ctrl+Left, Right", where the modifier counts for both, or of "Ctrl+Z, Z" in a menu."""
    if keys == "Arrows":
        return ["Left", "Right", "Up", "Down"]
    if " ... " in keys:
        first, last = keys.split(" ... ")
        return [str(digit) for digit in range(int(first), int(last) + 1)]
    pressed = keys.split(", ")
    modifier = pressed[0].rpartition("+")[0]
    if where not in MENUS and modifier:
        pressed[1:] = [each if "+" in each else f"{modifier}+{each}" for each in pressed[1:]]
    return pressed


def shortcuts(window):
    """Each enabled action and shortcut, with its owners, where it answers, and its keys."""
    for each in (*window.findChildren(QAction), *window.findChildren(QShortcut)):
        of_action = isinstance(each, QAction)
        owners = each.associatedObjects() if of_action else [each.parent()]
        widgets = [owner for owner in owners if isinstance(owner, QWidget)]
        context = each.shortcutContext() if of_action else each.context()
        keys = each.shortcuts() if of_action else each.keys()
        if each.isEnabled():
            yield each, widgets, context, [key.toString() for key in keys if not key.isEmpty()]


def assigned(found, window, focus):
    """The actions and shortcuts that answer to each key while a widget has the focus."""
    contexts = Qt.ShortcutContext
    reached = {
        contexts.WidgetShortcut: lambda owner: owner is focus,
        contexts.WidgetWithChildrenShortcut: lambda owner: owner is focus or owner.isAncestorOf(focus),
        contexts.WindowShortcut: lambda owner: owner.isVisible() and owner.window() is window,
    }
    answers = {}
    for each, owners, context, keys in found:
        if any(map(reached[context], owners)):
            for key in keys:
                answers.setdefault(key, set()).add(each)
    return answers


def faults(window, listed):
    """Keys that are assigned twice where they reach the same widget, and keys that the list lacks."""
    keys = {QKeySequence(key).toString() for (where, _), text in listed.items() for key in parts(text, where)}
    found, problems = list(shortcuts(window)), set()
    for focus in (window, *window.findChildren(QWidget)):
        if focus.isVisible() and focus.focusPolicy() != Qt.FocusPolicy.NoFocus:
            for key, answers in assigned(found, window, focus).items():
                if len(answers) > 1:
                    problems.add(f"{key} is assigned {len(answers)} times in {focus.accessibleName()}")
                if key not in keys:
                    problems.add(f"{key} is not in the list")
    return sorted(problems)


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
@pytest.mark.parametrize("hands", TABLES, indirect=True)
def test_each_listed_key_does_what_the_list_says(hands, window, qtbot, everything):
    if hands.kind:
        open_study(window, qtbot, everything)
        window.show_workspace(hands.kind)
        hands.idle()
    listed = {
        (group.where, words): keys
        for group in shortcut_groups(window.window_actions.commands(), window.workspace)
        for keys, words in group.keys
    }
    table = {**WINDOW, **TABLES[hands.kind]}
    if not hands.kind:
        table = {
            row: effect
            for row, effect in table.items()
            if row[0] != "View" or row[1] in ("Copy as image", "Full screen")
        }
        for words in ("Close study", "Undo", "Redo"):
            del table["Study", words]
    problems = [f"no effect in the table: {row}" for row in listed if row not in table]
    problems += [f"not in the list: {row}" for row in table if row not in listed]
    problems += faults(window, listed)
    rows = [row for row in listed if row in table]
    if hands.kind not in ("", "clicks"):
        rows = [row for row in rows if row not in WINDOW or row[1] in OF_EACH_WORKSPACE]
    for where, words in sorted(rows, key=lambda row: LATE.index(row[1]) + 1 if row[1] in LATE else 0):
        effect, keys = table[where, words], listed[where, words]
        for key in [keys] if effect.do else effect.keys.split(" ") if effect.keys else parts(keys, where):
            try:
                hands.check(effect, key)
            except (AssertionError, AttributeError, LookupError, TimeoutError) as error:
                problems.append(f"{where}, {words} ({key}): {error!r:.300}")
            if words not in LAST:
                hands.put_back()
    assert not problems, "\n".join(problems)
