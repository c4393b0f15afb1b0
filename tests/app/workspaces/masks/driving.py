"""Steps of a user on the masks screen."""

import numpy as np
from PySide6.QtCore import Qt

from tests.app.driving import idle, press
from tests.app.workspaces.masks.made import SHAPE


def key(window, qtbot, name, modifiers=Qt.KeyboardModifier.NoModifier):
    press(window, qtbot, name, modifiers, on=window.workspace.volume)


def go_to(window, qtbot, name):
    items = {item.title: item.key for item in window.workspace.queue.shown()}
    window.workspace.queue.item_chosen.emit(next(at for title, at in items.items() if title.startswith(name)))
    idle(window, qtbot)


def consensus(window) -> np.ndarray:
    """The consensus as it stands, on the whole image."""
    piece = window.workspace.reviewing.consensus
    mask = np.zeros(SHAPE, dtype=bool)
    here = tuple(slice(at, at + n) for at, n in zip(piece.origin, piece.values.shape, strict=True))
    mask[here] = piece.values
    return mask


def states(window):
    return [region.state for region in window.workspace.reviewing.regions]
