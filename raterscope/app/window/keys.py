"""The sheet of keys: what every key does here, from the actions and the widgets that have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from raterscope.app.window.commands import Command
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets.key_help import KeyButton, KeyHelp, key_help_in
from raterscope.widgets.names import Typed
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import pixels

__all__ = ["KeySheet", "groups_of"]

COLUMNS = 3
LONGEST = 40
"""Letters of what a key does: what was done last and can be undone may be told at length."""
CAPTION_ROWS = 2  # what a caption takes, in rows
SIZE = QSize(1080, 680)
EDGE, BETWEEN, SCROLL_BAR = 20, 32, 12


def groups_of(commands: Sequence[Command], workspace: WorkspaceScreen | None) -> tuple[KeyHelp, ...]:
    """Group the keys of the commands by their menus, then those of a workspace's widgets."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in commands:
        if one.keys:
            groups.setdefault(one.where, []).append((one.keys, one.words))
    if workspace is not None:
        if workspace.digits is not None:
            groups.setdefault("Review", []).extend(workspace.digits.keys)
        for told in key_help_in(workspace):
            groups.setdefault(told.where, []).extend(told.keys)
    return tuple(KeyHelp(title, tuple(keys)) for title, keys in groups.items())


class KeySheet(QDialog):
    """Every key that works here and what it does, in columns, with a line to look for one."""

    def __init__(self, groups: Sequence[KeyHelp], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keyboard shortcuts")
        self.line = QLineEdit()
        self.line.setPlaceholderText("Find a key or an action")
        self.line.setAccessibleName("Find a key or an action")
        self.line.setClearButtonEnabled(True)
        self._groups = [_Group(group) for group in groups]
        self._nothing = plain_label("No matches", "second")
        self._nothing.hide()
        sheet = QWidget()
        sheet.setAccessibleName("Keyboard shortcuts")
        columns = QHBoxLayout(sheet)
        columns.setContentsMargins(EDGE, 4, EDGE, 16)
        columns.setSpacing(BETWEEN)
        room = QSize(pixels(SIZE.width()), pixels(SIZE.height()))
        if parent is not None:
            room = room.boundedTo(parent.size() - QSize(24, 48))
        for part in _fitting(self._groups, room.width()):
            column = QVBoxLayout()
            column.setSpacing(16)
            for group in part:
                column.addWidget(group)
            column.addStretch(1)
            columns.addLayout(column, 1)
        area = QScrollArea()
        area.setWidget(sheet)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setAccessibleName("Keyboard shortcuts")
        top = QVBoxLayout()
        top.setContentsMargins(20, 16, 20, 4)
        top.addWidget(self.line)
        top.addWidget(self._nothing)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addLayout(top)
        whole.addWidget(area, 1)
        self.resize(room)
        self.line.textChanged.connect(self._find)
        self.line.setFocus()

    def shown(self) -> tuple[tuple[str, str], ...]:
        """Give the keys in sight and what they do."""
        return tuple(key for group in self._groups for key in group.shown())

    def _find(self, text: str) -> None:
        typed = Typed(text)
        left = [group.narrow(typed) for group in self._groups]
        self._nothing.setVisible(not any(left))


class _Group(QWidget):
    def __init__(self, group: KeyHelp) -> None:
        super().__init__()
        self._title = group.where.casefold()
        self._rows = [(_Row(keys, words), keys, words) for keys, words in group.keys]
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        caption: QLabel = plain_label(group.where.upper(), "caption")
        column.addWidget(caption)
        for row, _, _ in self._rows:
            column.addWidget(row)

    @property
    def height_in_rows(self) -> int:
        return len(self._rows) + CAPTION_ROWS

    def shown(self) -> Iterator[tuple[str, str]]:
        return ((keys, words) for row, keys, words in self._rows if not row.isHidden())

    def narrow(self, typed: Typed) -> bool:
        found = False
        for row, keys, words in self._rows:
            fits = typed.fit(f"{words} {keys} {self._title}".casefold()) is not None
            row.setVisible(fits)
            found = found or fits
        self.setVisible(found)
        return found


class _Row(KeyButton):
    """A key that is told, not pressed."""

    def __init__(self, keys: str, words: str) -> None:
        super().__init__(keys, shorten(words, LONGEST, placeholder=" …"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)


def _fitting(groups: Sequence[_Group], room: int) -> list[list[_Group]]:
    """Part groups into as many columns as fit beside each other."""
    for most in range(COLUMNS, 1, -1):
        columns = _in_columns(groups, most)
        wide = [max((group.minimumSizeHint().width() for group in column), default=0) for column in columns]
        if sum(wide) + BETWEEN * (len(columns) - 1) + 2 * EDGE + SCROLL_BAR <= room:
            return columns
    return _in_columns(groups, 1)


def _in_columns(groups: Sequence[_Group], most: int) -> list[list[_Group]]:
    """Part groups into columns of about one height, in their order."""
    whole = sum(group.height_in_rows for group in groups)
    columns: list[list[_Group]] = [[]]
    filled = 0
    for group in groups:
        if columns[-1] and len(columns) < most and filled + group.height_in_rows / 2 > whole / most:
            columns.append([])
            filled = 0
        columns[-1].append(group)
        filled += group.height_in_rows
    return columns
