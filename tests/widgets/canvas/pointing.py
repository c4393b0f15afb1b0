"""How a test points, clicks and drags on a canvas, in pixels of its image."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

LEFT = Qt.MouseButton.LeftButton


def at(canvas, x, y):
    return QPoint(*(round(value) for value in canvas.viewport.to_screen(x, y)))


def click(canvas, x, y):
    QTest.mouseClick(canvas, LEFT, pos=at(canvas, x, y))


def drag(canvas, *places, release=True):
    QTest.mousePress(canvas, LEFT, pos=at(canvas, *places[0]))
    for place in places[1:]:
        QTest.mouseMove(canvas, at(canvas, *place))
    if release:
        QTest.mouseRelease(canvas, LEFT, pos=at(canvas, *places[-1]))
