import math
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu

from raterscope.figures.description import PlotTable
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.figure_menu import FigureMenu, paint_svg, paint_to_image
from raterscope.widgets.panels.evidence_panel import CropView
from tests.widgets.pixels import pixels_of
from tests.widgets.plotted import FIGURES
from tests.widgets.pointing import click_on_value, ringed

pytestmark = pytest.mark.usefixtures("dark")

SVG = "{http://www.w3.org/2000/svg}"
opens_a_menu = pytest.mark.qt_log_ignore(
    "This plugin does not support raise", "This plugin does not support grabbing", extend=True
)
"""The offscreen platform says so of itself."""

WITH_IMAGES = {"alike", "agreement", "matrix", "weight"}
"""The similarity of thousands is an image, so are voxels, and so is the bar of a colour scale."""


@pytest.fixture(params=FIGURES)
def figure(request, qtbot):
    widget = FIGURES[request.param]()
    widget.key = request.param
    qtbot.addWidget(widget)
    if request.param != "strip":
        widget.resize(900 if request.param == "course" else 420, 300)
    widget.show()
    qtbot.waitExposed(widget)
    if request.param == "path":
        qtbot.waitUntil(lambda: widget.figure._lines.finished)
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


def test_an_svg_has_lines_and_words_not_pixels(figure):
    leaving = left(menu_of(figure), menu_of(figure).svg)
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


def test_a_png_is_as_sharp_as_twice_the_screen_and_looks_like_it(figure):
    menu = menu_of(figure)
    image = left(menu, menu.png).content
    size = menu._figure.picture_size()
    assert image.width() >= 2 * size.width()
    assert image.height() >= 2 * size.height()
    assert len(np.unique(pixels_of(image)[::3, ::3])) > 3


def test_the_table_has_a_row_a_mark_in_plain_numbers(figure):
    table = left(menu_of(figure), menu_of(figure).csv).content
    rows = list(table.rows())
    assert rows
    assert all(len(row) == len(table.columns) for row in rows)
    assert len(set(table.columns)) == len(table.columns)
    assert {type(cell) for row in rows for cell in row} <= {int, float, str, bool}
    assert repr(rows) == repr(list(table.rows()))


@opens_a_menu
def test_a_right_click_offers_all_four(figure, qtbot):
    menu = menu_of(figure)
    widget = menu.parent()
    surface = widget.viewport() if hasattr(widget, "viewport") else widget
    middle = surface.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, middle, surface.mapToGlobal(middle))
    QApplication.sendEvent(surface, event)
    assert menu.menu.isVisible()
    words = [action.text() for action in menu.menu.actions() if not action.isSeparator()]
    assert words == ["Copy as image", "Save as SVG…", "Save as PNG…", "Save data as CSV…"]
    menu.menu.close()


@opens_a_menu
def test_a_right_click_anywhere_on_a_figure_opens_its_menu_and_no_other(figure, qtbot):
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
        menu.menu.close()


@opens_a_menu
def test_the_keys_reach_it_too(figure, qtbot):
    menu = menu_of(figure)
    widget = menu.parent()
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


def test_what_is_pointed_at_is_not_in_the_picture(qtbot):
    widget = FIGURES["shares"]()
    qtbot.addWidget(widget)
    widget.resize(420, 300)
    widget.show()
    before = paint_svg(widget.figure)
    widget.figure.point((1, 0))
    assert paint_svg(widget.figure) == before
    assert widget.figure.pointed == (1, 0)


def test_a_picture_leaves_the_figure_as_it_was(figure):
    menu = menu_of(figure)
    before = figure.grab().toImage()
    paint_svg(menu._figure)
    paint_to_image(menu._figure, 3.0)
    assert figure.grab().toImage() == before


def test_names_of_strangers_are_words_in_the_svg(qtbot):
    widget = FIGURES["tree"]()
    qtbot.addWidget(widget)
    widget.resize(500, 300)
    root = ElementTree.fromstring(paint_svg(widget.figure))
    assert "a <b> & co" in {"".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")}


def test_a_drawing_has_its_letters_and_its_cells_where_our_font_is_not(qtbot):
    widget = FIGURES["agreement"]()
    qtbot.addWidget(widget)
    widget.resize(500, 400)
    root = ElementTree.fromstring(paint_svg(widget.figure))
    families = {part.get("font-family") for part in root.iter() if part.get("font-family")}
    assert families
    assert all(family.endswith(", sans-serif") for family in families)
    images = list(root.iter(f"{SVG}image"))
    assert images
    assert all("pixelated" in image.get("style", "") for image in images)


def test_the_last_figure_of_an_axis_is_drawn(qtbot):
    plot = FIGURES["curves"]()
    qtbot.addWidget(plot)
    plot.resize(320, 240)
    plot.show()
    root = ElementTree.fromstring(paint_svg(plot.figure))
    texts = ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]
    assert texts.count("1.0") == 2  # across and up


def test_the_numbers_are_those_that_were_given():
    table = FIGURES["objective"]().table()
    assert table.columns == ("iteration", "objective", "components", "weakest removed", "kept")
    assert list(table.rows())[2] == (3, -3.5, 8, False, True)
    table = FIGURES["agreement"]().figure.table()
    cells = {(row[0], row[1]): row[2] for row in table.rows()}
    assert cells["Bert", "Cora"] == 0.9
    assert math.isnan(cells["a <b> & co", "Bert"])
    assert math.isnan(cells["Bert", "Bert"])


def test_the_weights_leave_with_their_places_in_the_slice():
    table = FIGURES["weight"]()._map.table()
    rows = list(table.rows())
    assert table.columns == ("row", "column", "weight")
    assert (rows[0], rows[-1]) == ((21, 31, 0.0), (26, 40, 1.0))


@opens_a_menu
def test_the_crop_of_a_spot_leaves_with_its_ellipse(qtbot):
    crop = CropView()
    qtbot.addWidget(crop)
    crop.show()
    red = np.full((40, 40, 3), (200, 40, 40), np.uint8)
    crop.show_crop(red, 20.0, np.diag([9.0, 4.0]), 0.95, "disputed", "Spot 12")
    crop.activateWindow()
    qtbot.waitUntil(crop.isActiveWindow)
    crop.setFocus()
    qtbot.keyClick(crop, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(crop.menu.menu.isVisible)
    words = [action.text() for action in crop.menu.menu.actions()]
    crop.menu.menu.close()
    assert words == ["Copy as image", "Save as SVG…", "Save as PNG…"]
    leaving = left(crop.menu, crop.menu.svg)
    assert (leaving.title, leaving.of_image) == ("Spot 12", True)
    root = ElementTree.fromstring(leaving.content)
    drawn = [element for kind in ("path", "ellipse") for element in root.iter(SVG + kind)]
    assert drawn
    assert list(root.iter(f"{SVG}image"))
    image = left(crop.menu, crop.menu.png).content
    assert image.width() >= 2 * crop.width()
    middle = image.pixelColor(image.width() // 2, image.height() // 2)
    assert (middle.red(), middle.green(), middle.blue()) == (200, 40, 40)


def test_the_curves_are_exported_as_they_are_chosen(qtbot):
    plot = FIGURES["curves"]()
    qtbot.addWidget(plot)
    plot.kind.choose("precision-recall")
    assert plot.table().columns == ("curve", "sensitivity", "precision")
    assert list(plot.table().rows())[1] == ("OEM", math.sqrt(0.1), 0.95)
    assert plot.heading()[0] == "Precision-recall"


def test_columns_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="different lengths"):
        PlotTable.of({"a": [1, 2], "b": np.arange(3)})


def test_cells_are_reported_with_their_places():
    table = PlotTable.of_cells(
        {"row": ["x", "y"], "column": ["u", "v"]}, {"value": np.arange(4).reshape(2, 2), "none": None}
    )
    assert table.columns == ("row", "column", "value")
    assert list(table.rows()) == [("x", "u", 0), ("x", "v", 1), ("y", "u", 2), ("y", "v", 3)]


def test_the_canvas_is_copied_with_what_is_in_sight(qtbot):
    canvas = ImageCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(300, 200)
    canvas.show()
    canvas.set_image(np.full((100, 150, 3), (200, 40, 40), np.uint8), (0, 0, 150, 100))
    QGuiApplication.clipboard().clear()
    canvas.menu.copy.trigger()
    image = QGuiApplication.clipboard().image()
    middle = image.pixelColor(image.width() // 2, image.height() // 2)
    assert (middle.red(), middle.green(), middle.blue()) == (200, 40, 40)
    words = [action.text() for action in canvas.menu.menu.actions()]
    assert words == ["Copy as image", "Save as PNG…"]


def test_a_click_near_the_curve_chooses_its_threshold_and_a_posterior_is_ringed(qtbot):
    from raterscope.figures.evaluation import Curve
    from raterscope.widgets.figures.evaluation_plots import CurvesPlot

    plot = CurvesPlot()
    qtbot.addWidget(plot)
    plot.resize(420, 320)
    plot.show()
    rate, hits = np.array([0.0, 0.0, 0.5, 1.0]), np.array([0.0, 0.6, 0.8, 1.0])
    thresholds = np.array([np.inf, 0.9, 0.4, 0.1])
    plot.set_curves([Curve("OEM", rate, hits, hits, 1 - rate / 2, threshold=thresholds)])
    messages = []
    plot.threshold_chosen.connect(messages.append)
    for x, y in ((0.5, 0.8), (0.02, 0.62)):
        click_on_value(qtbot, plot.figure, x, y)
    assert messages == [0.4, 0.9]
    plot.mark(0.4)
    assert ringed(plot.figure) == [(0.5, 0.8)]
    plot.mark(None)
    assert not ringed(plot.figure)


def test_a_click_on_a_dot_of_the_calibration_chooses_its_bin(qtbot):
    plot = FIGURES["calibration"]()
    qtbot.addWidget(plot)
    plot.resize(420, 320)
    plot.show()
    messages = []
    plot.bin_chosen.connect(lambda *ends: messages.append(ends))
    click_on_value(qtbot, plot.figure, 0.8, 0.9)
    assert messages == [(pytest.approx(2 / 3), 1.0)]
    plot.mark(0.95)
    assert ringed(plot.figure) == [(0.8, 0.9)]
    plot.mark(0.5)
    assert not ringed(plot.figure)
