"""Behaviour of every figure of the window: keyboard, screen reader, menu, export."""

from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from raterscope.widgets.figure_menu import FigureMenu, paint_to_image
from raterscope.widgets.figures.figure_panel import Figure
from tests.widgets.pixels import pixels_of
from tests.widgets.plotted import FIGURES

pytestmark = pytest.mark.usefixtures("dark")

ARROWS = (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up)


def subclasses(kind: type) -> set[type]:
    return {kind for below in kind.__subclasses__() for kind in (below, *subclasses(below))}


SVG = "{http://www.w3.org/2000/svg}"
opens_a_menu = pytest.mark.qt_log_ignore(
    "This plugin does not support raise", "This plugin does not support grabbing", extend=True
)
"""The offscreen platform says so of itself."""

WITH_IMAGES = {"alike", "agreement", "matrix", "weight"}
"""The similarity of thousands is an image, so are voxels, and so is the bar of a colour scale."""


@pytest.fixture(params=FIGURES)
def figure(request, qtbot):
    """The widget of a figure, with the keys at what takes them."""
    widget = FIGURES[request.param]()
    widget.key = request.param
    qtbot.addWidget(widget)
    if request.param != "strip":
        widget.resize(900 if request.param == "course" else 420, 300)
    widget.show()
    qtbot.waitExposed(widget)
    if request.param == "path":
        qtbot.waitUntil(lambda: widget.figure._lines.finished)
    menu_of(widget).parent().setFocus()
    return widget


def menu_of(widget) -> FigureMenu:
    (menu,) = widget.findChildren(FigureMenu)
    return menu


def left(menu, action):
    """Return what leaves when an action is chosen."""
    messages = []
    menu.leaving.connect(messages.append)
    action.trigger()
    (leaving,) = messages
    return leaving


def test_no_class_of_figures_is_missing_here(qtbot):
    """Every class that is shown somewhere is one of those that the other tests walk."""
    shown = set()
    for make in FIGURES.values():
        widget = make()
        qtbot.addWidget(widget)
        shown |= {type(part) for part in (widget, *widget.findChildren(QWidget)) if isinstance(part, Figure)}
    walked = {base for kind in shown for base in kind.__mro__}
    program = {kind for kind in subclasses(Figure) if kind.__module__.startswith("raterscope.")}
    assert program <= walked


def test_arrow_keys_walk_the_points_and_home_and_end_lead_to_the_outer_ones(figure, qtbot):
    widget = menu_of(figure).parent()
    assert widget.accessibleName().strip()
    assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    described = []
    for key in (Qt.Key.Key_Right, *ARROWS):  # the first press may go to the first point
        qtbot.keyClick(widget, key)
        described.append(widget.accessibleDescription())
    assert all(described), described
    assert len({*described}) > 1, described

    qtbot.keyClick(widget, Qt.Key.Key_End)
    last = widget.accessibleDescription()
    qtbot.keyClick(widget, Qt.Key.Key_Right)
    assert widget.accessibleDescription() == last
    qtbot.keyClick(widget, Qt.Key.Key_Home)
    first = widget.accessibleDescription()
    qtbot.keyClick(widget, Qt.Key.Key_Left)
    assert widget.accessibleDescription() == first
    assert first
    assert last
    assert (first != last) == (figure.key != "tree")  # its root is alone in its row


def test_svg_png_and_table_have_what_is_drawn_and_leave_the_figure_as_it_was(figure):
    menu, before = menu_of(figure), figure.grab().toImage()
    leaving = left(menu, menu.svg)
    assert leaving.suffix == ".svg"
    root = ElementTree.fromstring(leaving.content)
    assert root.tag == f"{SVG}svg"
    drawn = {
        kind: list(root.iter(SVG + kind)) for kind in ("path", "polyline", "polygon", "rect", "text", "image")
    }
    assert sum(len(drawn[kind]) for kind in ("path", "polyline", "polygon", "rect")) > (
        0 if figure.key == "weight" else 2
    )
    if figure.key != "strip":
        words = " ".join("".join(text.itertext()) for text in drawn["text"])
        assert leaving.title in words
    assert (len(drawn["image"]) > 0) == (figure.key in WITH_IMAGES)

    image = left(menu, menu.png).content
    size = menu._figure.picture_size()
    assert image.width() >= 2 * size.width()
    assert image.height() >= 2 * size.height()
    assert len(np.unique(pixels_of(image)[::3, ::3])) > 3

    table = left(menu, menu.csv).content
    rows = list(table.rows())
    assert rows
    assert all(len(row) == len(table.columns) for row in rows)
    assert len(set(table.columns)) == len(table.columns)
    assert {type(cell) for row in rows for cell in row} <= {int, float, str, bool}
    assert repr(rows) == repr(list(table.rows()))

    paint_to_image(menu._figure, 3.0)
    assert figure.grab().toImage() == before


@opens_a_menu
def test_a_right_click_anywhere_and_keys_open_the_menu_of_a_figure_and_no_other(figure, qtbot):
    menu = menu_of(figure)
    widget = menu.parent()
    surface = widget.viewport() if hasattr(widget, "viewport") else widget
    wide, high = surface.width(), surface.height()
    for x, y in ((wide // 2, high // 2), (6, high // 2), (wide // 2, high - 6), (wide - 30, high - 40)):
        at = QPoint(x, y)
        qtbot.mousePress(surface, Qt.MouseButton.RightButton, pos=at)
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, surface.mapToGlobal(at))
        QApplication.sendEvent(surface, event)
        qtbot.mouseRelease(surface, Qt.MouseButton.RightButton, pos=at)
        QApplication.processEvents()
        shown = [part for part in QApplication.allWidgets() if isinstance(part, QMenu) and part.isVisible()]
        assert shown == [menu.menu]
        words = [action.text() for action in menu.menu.actions() if not action.isSeparator()]
        assert words == ["Copy as image", "Save as SVG…", "Save as PNG…", "Save data as CSV…"]
        menu.menu.close()

    figure.activateWindow()
    qtbot.waitUntil(figure.isActiveWindow)
    widget.setFocus()
    assert widget.hasFocus()
    qtbot.keyClick(widget, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(menu.menu.isVisible)
    menu.menu.close()
    QApplication.sendEvent(
        widget,
        QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(1, 1), widget.mapToGlobal(QPoint(1, 1))),
    )
    assert menu.menu.isVisible()
    menu.menu.close()
    messages = []
    menu.reported.connect(messages.append)
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(widget, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert messages == ["Copied the image."]
    assert not QGuiApplication.clipboard().image().isNull()
