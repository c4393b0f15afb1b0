"""What every figure of the window does: keyboard, screen reader, copy and export."""

import pytest
from PySide6.QtCore import QBuffer, QIODevice, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QWidget

from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.figures.figure_panel import Figure
from tests.widgets.plotted import FIGURES

pytestmark = pytest.mark.usefixtures("dark")

ARROWS = (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up)


def subclasses(kind: type) -> set[type]:
    return {kind for below in kind.__subclasses__() for kind in (below, *subclasses(below))}


@pytest.fixture(params=FIGURES)
def figure(request, qtbot):
    """The widget that has the keys of a figure."""
    widget = FIGURES[request.param]()
    qtbot.addWidget(widget)
    if request.param != "strip":
        widget.resize(900 if request.param == "course" else 420, 300)
    widget.show()
    qtbot.waitExposed(widget)
    if request.param == "path":
        qtbot.waitUntil(lambda: widget.figure._lines.finished)
    (menu,) = widget.findChildren(FigureMenu)
    owner = menu.parent()
    assert isinstance(owner, QWidget)
    owner.setFocus()
    yield owner, menu
    widget.hide()  # it lives until here


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


def test_arrow_keys_walk_the_points_and_each_is_described(figure, qtbot):
    widget, _ = figure
    assert widget.accessibleName().strip()
    assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    described = []
    for key in (Qt.Key.Key_Right, *ARROWS):  # the first press may go to the first point
        qtbot.keyClick(widget, key)
        described.append(widget.accessibleDescription())
    assert all(described), described
    assert len({*described}) > 1, described


def test_home_and_end_go_to_the_first_and_the_last_point(figure, qtbot, request):
    widget, _ = figure
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
    assert (first != last) == ("tree" not in request.node.name)  # its root is alone in its row


def test_it_is_exported_as_svg_png_and_csv_and_as_a_copy(figure, qtbot):
    _, menu = figure
    leaving = {}
    menu.leaving.connect(lambda item: leaving.__setitem__(item.suffix, item.content))
    for action in (menu.svg, menu.png, menu.csv):
        action.trigger()
    assert leaving[".svg"].startswith(b"<?xml")
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    assert isinstance(leaving[".png"], QImage)
    assert leaving[".png"].save(buffer, "PNG")
    assert list(leaving[".csv"].rows())
    QGuiApplication.clipboard().clear()
    menu.copy.trigger()
    assert not QGuiApplication.clipboard().image().isNull()
