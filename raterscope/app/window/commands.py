"""What can be done now and where one can go, as one list: of the actions that exist, not beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

from raterscope.app.contents import Contents
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.history_lines import run_lines
from raterscope.app.workspaces.screen import WorkspaceScreen

__all__ = ["Command", "actions_of", "keys_of", "of_actions", "of_study"]


@dataclass(frozen=True, slots=True)
class Command:
    """One thing to do.

    Attributes
    ----------
    words : str
        What it does, or where it goes.
    where : str
        The menu in which it stands, or the kind of place it goes to.
    do : callable
    keys : str
        As they are printed; empty without any.
    possible : bool
        Whether it can be done now.
    """

    words: str
    where: str
    do: Callable[[], object]
    keys: str = ""
    possible: bool = True


def keys_of(action: QAction) -> str:
    """Print an action's keys."""
    form = QKeySequence.SequenceFormat.NativeText
    return ", ".join(keys.toString(form) for keys in action.shortcuts() if not keys.isEmpty())


def actions_of(menu: QMenu, where: str) -> Iterator[tuple[str, QAction]]:
    """List the actions of a menu and of those in it that can be opened, each with the menu it stands in."""
    for action in menu.actions():
        inner = _opened_by(action)
        if inner is not None:
            if action.isEnabled():
                yield from actions_of(inner, action.text())
        elif not action.isSeparator():
            yield where, action


def _opened_by(action: QAction) -> QMenu | None:
    """Give the menu that an action opens. Asked of the action itself, it would die with what is returned."""
    menu = action.parent()
    return menu if isinstance(menu, QMenu) and menu.menuAction() is action else None


def of_actions(menu: QMenu, where: str) -> Iterator[Command]:
    """Make commands of all actions of a menu and of the menus in it."""
    for place, action in actions_of(menu, where):
        yield Command(action.text(), place, action.trigger, keys_of(action), action.isEnabled())


def of_study(contents: Contents, workspace: WorkspaceScreen, kind: str) -> Iterator[Command]:
    """Make commands of where one can go in a workspace: its items, its runs, its annotators."""
    title = WORKSPACES[kind].item
    for one in contents.of(kind):
        yield Command(one.name, title, partial(workspace.go_to, one.id))
    for run in run_lines(contents, kind, None):
        if isinstance(run.key, int):
            yield Command(f"{run.title}, {run.words}", "Run", partial(workspace.runs.choose, run.key))
    if not contents.hidden:
        yield from _annotators(workspace.annotators_on_screen(), workspace)


def _annotators(names: Sequence[str], workspace: WorkspaceScreen) -> Iterator[Command]:
    for name in names:
        yield Command(name, "Annotator", partial(workspace.choose_annotator, name))
