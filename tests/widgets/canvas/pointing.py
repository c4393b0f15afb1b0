"""Pointing, clicking and dragging on a canvas, in pixels of its image."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

LEFT = Qt.MouseButton.LeftButton


def at(canvas, x, y):
    return QPoint(*(round(value) for value in canvas.viewport.to_screen(x, y)))


def click(canvas, x, y):
    QTest.mouseClick(canvas, LEFT, pos=at(canvas, x, y))


def drag(canvas, *positions, release=True):
    QTest.mousePress(canvas, LEFT, pos=at(canvas, *positions[0]))
    for position in positions[1:]:
        QTest.mouseMove(canvas, at(canvas, *position))
    if release:
        QTest.mouseRelease(canvas, LEFT, pos=at(canvas, *positions[-1]))
