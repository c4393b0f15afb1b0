"""How a test drives the masks screen as a person does."""

from PySide6.QtCore import Qt

from tests.app.driving import idle, press


def key(window, qtbot, which, modifiers=Qt.KeyboardModifier.NoModifier):
    press(window, qtbot, which, modifiers, on=window.workspace.volume)


def go_to(window, qtbot, name):
    items = {item.title: item.key for item in window.workspace.queue.shown()}
    window.workspace.queue.item_chosen.emit(next(at for title, at in items.items() if title.startswith(name)))
    idle(window, qtbot)
