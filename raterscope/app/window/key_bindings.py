"""Keys of the commands that the user can change, stored with the settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtGui import (
    QAction,
    QKeySequence,
)
from PySide6.QtWidgets import (
    QWidget,
)

from raterscope.app.window import preferences
from raterscope.widgets.hints import KeyButton

if TYPE_CHECKING:
    from raterscope.widgets.dialogs.settings_dialog import KeyBinding

_KEY = "key_bindings"
_PORTABLE = QKeySequence.SequenceFormat.PortableText


class KeyBindings:
    """Keys of the actions of the window and of the workspace on screen."""

    def __init__(self) -> None:
        self._actions: dict[str, tuple[QAction, str]] = {}
        self._workspace: QWidget | None = None

    def follow(self, where: Mapping[str, Sequence[QAction]], workspace: QWidget | None) -> None:
        """Apply the chosen keys to actions, by "Window" or the title of the workspace."""
        self._actions = {}
        self._workspace = workspace
        for title, actions in where.items():
            for action in actions:
                if action.property("command") is None:
                    action.setProperty("command", action.text())
                    action.setProperty("default_keys", ", ".join(_keys(action)))
                self._actions.setdefault(f"{title}/{action.property('command')}", (action, title))
        self.apply()

    def bindings(self) -> list[KeyBinding]:
        """List the commands whose keys can be changed."""
        from raterscope.widgets.dialogs.settings_dialog import FIXED, KeyBinding

        chosen = read_keys()
        return [
            KeyBinding(command, action.text(), title, _chosen(chosen, command, default), default)
            for command, (action, title) in self._actions.items()
            for default in [_defaults(action)]
            if FIXED.isdisjoint(default)
        ]

    def store(self, changes: Mapping[str, str]) -> None:
        """Store the changed keys of the listed commands, and apply them; other workspaces keep theirs."""
        stored = {command: keys for command, keys in read_keys().items() if command not in self._actions}
        preferences.remember(_KEY, json.dumps({**stored, **changes}))
        self.apply()

    def apply(self) -> None:
        """Set the keys of all actions, and those written on buttons; a workspace's own keys come first.

        A key of the window can be changed while a workspace without this key is on screen.
        """
        chosen = read_keys()
        now: dict[str, str] = {}
        used_keys: set[str] = set()
        for command, (action, title) in reversed(self._actions.items()):
            default = _defaults(action)
            keys = _chosen(chosen, command, default)
            if title == "Window":
                keys = tuple(key for key in keys if key not in used_keys)
            used_keys.update(keys)
            if tuple(_keys(action)) != keys:
                action.setShortcuts([QKeySequence(key) for key in keys])
            now |= {key: keys[0] if keys else "" for key in default if key not in keys}
        buttons = [] if self._workspace is None else self._workspace.findChildren(KeyButton)
        for button in buttons:
            button.set_key(now.get(button.usual_key, button.usual_key))


def read_keys() -> dict[str, str]:
    """Read the keys that were changed, by command; empty if they cannot be read."""
    try:
        stored = json.loads(preferences.recall_text(_KEY) or "{}")
        return {str(command): str(keys) for command, keys in stored.items()}
    except (ValueError, AttributeError):
        return {}


def _chosen(changes: Mapping[str, str], command: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that the user chose for a command, or the usual ones."""
    return tuple(filter(None, changes[command].split(", "))) if command in changes else default


def _keys(action: QAction) -> list[str]:
    return [keys.toString(_PORTABLE) for keys in action.shortcuts() if not keys.isEmpty()]


def _defaults(action: QAction) -> tuple[str, ...]:
    return tuple(filter(None, str(action.property("default_keys")).split(", ")))
