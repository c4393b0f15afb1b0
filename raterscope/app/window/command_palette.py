"""Commands from the menus: palette, sheet of keyboard shortcuts, and the keys that the user chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import shorten
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt
from PySide6.QtGui import (
    QAction,
    QColor,
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFrame,
    QLabel,
    QLineEdit,
    QMenu,
    QScrollArea,
    QStyle,
    QWidget,
)

from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.app.workspaces.run_history import run_lines
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton, KeyHelp, cap_width, key_help_in, paint_key
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.names import SearchPage, SearchText
from raterscope.widgets.painting import paint_text
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import pixels, set_lengths

if TYPE_CHECKING:
    from raterscope.app.contents import Contents


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the command palette."""

    text: str  # effect, or item to show
    where: str  # title of its menu, or kind of the item
    do: Callable[[], object]
    keys: str = ""  # its keyboard shortcuts as text; empty without any
    possible: bool = True  # whether it is enabled now
    page: SearchPage | None = None  # page that it opens, which is searched too


def shortcut_text(action: QAction) -> str:
    """Write the keyboard shortcuts of an action."""
    form = QKeySequence.SequenceFormat.NativeText
    return ", ".join(keys.toString(form) for keys in action.shortcuts() if not keys.isEmpty())


def menu_actions(menu: QMenu, where: str) -> Iterator[tuple[str, QAction]]:
    """List the actions of a menu and its enabled submenus, each with the title of its menu."""
    for action in menu.actions():
        inner = _opened_by(action)
        if inner is not None:
            if action.isEnabled():
                yield from menu_actions(inner, action.text())
        elif not action.isSeparator():
            yield where, action


def _opened_by(action: QAction) -> QMenu | None:
    """Return the menu that an action opens. ``action.menu()`` would delete it with the returned wrapper."""
    menu = action.parent()
    return menu if isinstance(menu, QMenu) and menu.menuAction() is action else None


def menu_commands(menu: QMenu, where: str) -> Iterator[Command]:
    """Make commands from all actions of a menu and its submenus."""
    for menu_title, action in menu_actions(menu, where):
        yield Command(action.text(), menu_title, action.trigger, shortcut_text(action), action.isEnabled())


def study_commands(contents: Contents, workspace: WorkspaceLayout, kind: str) -> Iterator[Command]:
    """Make commands that show the items, runs and annotators of a workspace."""
    title = WORKSPACES[kind].item
    for item in contents.of(kind):
        yield Command(item.name, title, partial(workspace.go_to, item.id))
    for name, show in workspace.panels():
        yield Command(name, "Panel", show)
    for run in run_lines(contents, kind, None):
        if isinstance(run.key, int) and isinstance(workspace, WorkspaceScreen):
            yield Command(f"{run.title}, {run.text}", "Run", partial(workspace.runs.choose, run.key))
    if not contents.hidden:
        yield from _annotators(workspace.annotators_on_screen(), workspace)


def _annotators(names: Sequence[str], workspace: WorkspaceLayout) -> Iterator[Command]:
    for name in names:
        yield Command(name, "Annotator", partial(workspace.choose_annotator, name))


WIDTH, ROWS, FROM_TOP = 640, 12, 64
MOST = 100
"""Maximum number of matches listed."""
SHORTEST = 3
"""Letters of a word that is searched in pages of the guide."""
STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: ROWS, Qt.Key.Key_PageUp: -ROWS}


class CommandPalette(QFrame):
    """Search field in the middle of a window, with the matching commands. It closes when it loses focus."""

    def __init__(self, commands: Sequence[Command], window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName("Commands")
        theme.set_role(self, "popover")
        self._window = window
        self._commands = [command for command in commands if command.possible]
        self._texts = [f"{command.text} {command.where}".casefold() for command in self._commands]
        self._pages = {
            row: command.page for row, command in enumerate(self._commands) if command.page is not None
        }
        self._came_from = QApplication.focusWidget()
        self.line = QLineEdit()
        self.line.setPlaceholderText("A command, a panel, an image, an annotator, a run, a page of the guide")
        self.line.setAccessibleName("Search commands, images, annotators, runs and guide pages")
        self._kind = _CommandKind()
        self.view: LineList[Command] = LineList(self._kind, "Matches")
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._no_matches = plain_label("No matches", "second")
        self._no_matches.setContentsMargins(8, 4, 8, 4)
        vertical(self.line, self.view, self._no_matches, inside=self, margins=(8, 8, 8, 8), spacing=8)
        self.line.textChanged.connect(self._find)
        self.line.installEventFilter(self)
        self.view.clicked.connect(self._do)
        self._find("")
        window.installEventFilter(self)
        self._arrange()
        self.show()
        self.raise_()
        self.line.setFocus()

    @property
    def chosen(self) -> Command | None:
        """The command that Return runs."""
        row = self.view.currentIndex().row()
        return self.view.lines[row] if row >= 0 else None

    def _find(self, text: str) -> None:
        typed = SearchText(text)
        matches = self._matches(typed)
        self._kind.typed = typed
        self.view.viewport().update()
        self.view.set_lines([self._commands[index] for index in matches])
        self.view.setVisible(bool(matches))
        self._no_matches.setVisible(not matches)
        if matches:
            self.view.setCurrentIndex(self.view.model().index(0, 0))
            self.view.scrollToTop()
        self._arrange()

    def _matches(self, typed: SearchText) -> list[int]:
        """Return the best matches: names with the words, then pages with them, then fuzzy matches."""
        matches = typed.best(self._texts, MOST)
        if not any(len(word) >= SHORTEST for word in typed.words):
            return matches
        ranks = {row: rank for row, page in self._pages.items() if (rank := page.rank(typed.words))}
        pages = sorted(ranks, key=lambda row: ranks[row])
        named = [row for row in matches if all(word in self._texts[row] for word in typed.words)]
        return list(dict.fromkeys([*named, *pages, *matches]))[:MOST]

    def _arrange(self) -> None:
        window = self._window
        rows = min(ROWS, len(self.view.lines))
        set_lengths(self.view, height=rows * self._kind.height + 2 * self.view.frameWidth())
        width = min(pixels(WIDTH), window.width() - 32)
        self.setGeometry((window.width() - width) // 2, FROM_TOP, width, self.sizeHint().height())

    def _do(self) -> None:
        chosen = self.chosen
        self.leave()
        if chosen is not None:
            chosen.do()

    def leave(self) -> None:
        """Close, and restore the focus of the previous widget."""
        came_from, self._came_from = self._came_from, None
        self.line.removeEventFilter(self)
        self.close()
        if came_from is not None and came_from.isVisible():
            came_from.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle arrow keys, loss of focus and resizing of the window."""
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._on_key(Qt.Key(event.key()))
        if watched is self.line and isinstance(event, QFocusEvent) and event.lostFocus():
            if event.reason() not in (
                Qt.FocusReason.PopupFocusReason,
                Qt.FocusReason.ActiveWindowFocusReason,
            ):
                self._came_from = None
                self.leave()
        elif watched is self._window and isinstance(event, QResizeEvent):
            self._arrange()
        return super().eventFilter(watched, event)

    def _on_key(self, key: Qt.Key) -> bool:
        if key in STEPS:
            last = len(self.view.lines) - 1
            row = min(max(self.view.currentIndex().row() + STEPS[key], 0), last)
            self.view.setCurrentIndex(self.view.model().index(row, 0))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._do()
        elif key == Qt.Key.Key_Escape:
            self.leave()
        else:
            return key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)
        return True


class _CommandKind(LineKind[Command]):
    height = 30
    typed = SearchText("")

    def text_of(self, line: Command) -> str:
        keys = f", {line.keys}" if line.keys else ""
        return f"{line.text}, {line.where}{keys}"

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        super().paint_ground(painter, box, state)
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(QRectF(box.left(), box.top(), 3, box.height()), QColor(theme.current().accent))

    def paint_line(self, painter: QPainter, box: QRectF, line: Command) -> None:
        colours, right = theme.current(), box.right() - 8
        for key in reversed(line.keys.split(", ") if line.keys else []):
            width = cap_width(key)
            paint_key(painter, QRectF(right - width, box.center().y() - 11, width, 22), key)
            right -= width + 6
        painter.setFont(theme.font(theme.CAPTION))
        where = QFontMetrics(painter.font()).horizontalAdvance(line.where) + 12
        side = QRectF(right - where, box.top(), where, box.height())
        painter.setPen(QColor(colours.third))
        painter.drawText(side, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignHCenter, line.where)
        painter.setFont(theme.font())
        room = box.adjusted(12, 0, side.left() - box.right() - 8, 0)
        paint_text(painter, room, line.text, colours.text)
        self._underline(painter, room, line.text)

    def _underline(self, painter: QPainter, room: QRectF, words: str) -> None:
        """Underline the letters that match, as far as they are visible."""
        metrics = QFontMetrics(theme.font())
        under = room.center().y() + metrics.ascent() / 2 + 3
        painter.setPen(QColor(theme.current().accent))
        for index in self.typed.matched_indices(words):
            left = room.left() + metrics.horizontalAdvance(words[:index])
            right = room.left() + metrics.horizontalAdvance(words[: index + 1])
            if right <= room.right():
                painter.drawLine(round(left), round(under), round(right) - 1, round(under))


COLUMNS = 3
LONGEST = 40
"""Maximum length of a description; that of Undo may be long."""
CAPTION_ROWS = 2  # height of a caption, in rows
SIZE = QSize(1080, 680)
EDGE, BETWEEN, SCROLL_BAR = 20, 32, 12


def shortcut_groups(commands: Sequence[Command], workspace: QWidget | None) -> tuple[KeyHelp, ...]:
    """Group the shortcuts by menu: those of the commands, then those of the widgets on screen.

    Without a workspace, keys that need a study are omitted.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for command in commands:
        if command.keys and (command.possible or workspace is not None):
            groups.setdefault(command.where, []).append((command.keys, command.text))
    if workspace is not None:
        if isinstance(workspace, WorkspaceScreen) and workspace.digits is not None:
            groups.setdefault("Review", []).extend(workspace.digits.keys)
        for key_help in key_help_in(workspace):
            groups.setdefault(key_help.where, []).extend(key_help.keys)
    return tuple(KeyHelp(title, tuple(keys)) for title, keys in groups.items())


class ShortcutSheet(QDialog):
    """Keyboard shortcuts available here, in columns, with a search field."""

    def __init__(self, groups: Sequence[KeyHelp], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keyboard shortcuts")
        self.line = QLineEdit(placeholderText="Find a key or an action")
        self.line.setAccessibleName("Find a key or an action")
        self.line.setClearButtonEnabled(True)
        self._groups = [_Group(group) for group in groups]
        self._no_matches = plain_label("No matches", "second")
        self._no_matches.hide()
        sheet = QWidget(accessibleName="Keyboard shortcuts")
        columns = horizontal(inside=sheet, margins=(EDGE, 4, EDGE, 16), spacing=BETWEEN)
        room = QSize(pixels(SIZE.width()), pixels(SIZE.height()))
        if parent is not None:
            room = room.boundedTo(parent.size() - QSize(24, 48))
        for part in _fitting(self._groups, room.width()):
            column = vertical(*part, STRETCH, spacing=16)
            columns.addLayout(column, 1)
        area = QScrollArea()
        area.setWidget(sheet)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setAccessibleName("Keyboard shortcuts")
        top = vertical(self.line, self._no_matches, margins=(20, 16, 20, 4), spacing=None)
        vertical(top, (area, 1), inside=self, spacing=None)
        self.resize(room)
        self.line.textChanged.connect(self._find)
        self.line.setFocus()

    def shown(self) -> tuple[tuple[str, str], ...]:
        """Return the visible keys and their descriptions."""
        return tuple(key for group in self._groups for key in group.shown())

    def _find(self, text: str) -> None:
        typed = SearchText(text)
        matches = [group.narrow(typed) for group in self._groups]
        self._no_matches.setVisible(not any(matches))


class _Group(QWidget):
    def __init__(self, group: KeyHelp) -> None:
        super().__init__()
        self._title = group.where.casefold()
        self._rows = [(_row(keys, words), keys, words) for keys, words in group.keys]
        caption: QLabel = plain_label(group.where.upper(), "caption")
        column = vertical(caption, inside=self, spacing=4)
        for row, _, _ in self._rows:
            column.addWidget(row)

    @property
    def height_in_rows(self) -> int:
        return len(self._rows) + CAPTION_ROWS

    def shown(self) -> Iterator[tuple[str, str]]:
        return ((keys, words) for row, keys, words in self._rows if not row.isHidden())

    def narrow(self, typed: SearchText) -> bool:
        matches = False
        for row, keys, text in self._rows:
            fits = typed.fit(f"{text} {keys} {self._title}".casefold()) is not None
            row.setVisible(fits)
            matches = matches or fits
        self.setVisible(matches)
        return matches


def _row(keys: str, text: str) -> KeyButton:
    """Create a label of a key, without a button's behaviour."""
    row = KeyButton(keys, shorten(text, LONGEST, placeholder=" …"))
    row.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    row.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    return row


def _fitting(groups: Sequence[_Group], room: int) -> list[list[_Group]]:
    """Distribute groups over as many columns as fit into the width."""
    for count in range(COLUMNS, 1, -1):
        columns = _in_columns(groups, count)
        wide = [max((group.minimumSizeHint().width() for group in column), default=0) for column in columns]
        if sum(wide) + BETWEEN * (len(columns) - 1) + 2 * EDGE + SCROLL_BAR <= room:
            return columns
    return _in_columns(groups, 1)


def _in_columns(groups: Sequence[_Group], count: int) -> list[list[_Group]]:
    """Distribute groups, in order, over columns of about the same height."""
    total = sum(group.height_in_rows for group in groups)
    columns: list[list[_Group]] = [[]]
    filled = 0
    for group in groups:
        if columns[-1] and len(columns) < count and filled + group.height_in_rows / 2 > total / count:
            columns.append([])
            filled = 0
        columns[-1].append(group)
        filled += group.height_in_rows
    return columns
