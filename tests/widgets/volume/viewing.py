"""Helpers for tests of the volume view."""

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.scene import Outline
from tests.widgets.pixels import pixels_of

SHAPE = (20, 60, 80)
GRID = Grid.plain(SHAPE, (2.0, 1.0, 0.75), calibrated=True)
LEFT, MIDDLE, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton


def ball(centre=(10, 30, 40), radius=12.0):
    away = np.indices(SHAPE) - np.array(centre)[:, None, None, None]
    return np.sqrt(sum((a * s) ** 2 for a, s in zip(away, GRID.spacing, strict=True))) < radius


def screen(part, index) -> QPoint:
    return QPointF(*part.viewport.to_screen(*part.plane.position_of(index))).toPoint()


def colour(part, index, beside=(0, 0)) -> tuple[int, int, int]:
    picture, point = part.grab().toImage(), screen(part, index) + QPoint(*beside)
    return picture.pixelColor(point).getRgb()[:3]


def colours(part) -> set[str]:
    return {f"#{word:06x}" for word in np.unique(pixels_of(part.grab().toImage()))}


def turn(part, notches, keys=Qt.KeyboardModifier.NoModifier, at=(100, 100)):
    point = QPointF(*at)
    event = QWheelEvent(
        point, point, QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton, keys,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(part, event)


def drag(qtbot, part, start, way, button=LEFT):
    qtbot.mousePress(part, button, pos=start)
    qtbot.mouseMove(part, start + way / 2)
    qtbot.mouseMove(part, start + way)
    qtbot.mouseRelease(part, button, pos=start + way)


def outlined(view, qtbot, **more):
    view.set_outlines([Outline("r1", "rater 1", "#e69f00", ball(), width=1.0, **more)])
    axial = view.view("axial")
    qtbot.waitUntil(lambda: "#e69f00" in colours(axial))
