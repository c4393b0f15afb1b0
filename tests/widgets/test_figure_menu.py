"""The menu of a figure: what leaves, in which form, and what a click on a plot chooses."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from raterscope.figures.description import PlotTable
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.figure_menu import paint_svg
from raterscope.widgets.panels.evidence_panel import CropView
from tests.widgets.plotted import FIGURES
from tests.widgets.pointing import click_on_value, ringed
from tests.widgets.test_every_figure import SVG, left, opens_a_menu

pytestmark = pytest.mark.usefixtures("dark")


def test_what_is_pointed_at_is_not_in_the_picture(qtbot):
    widget = FIGURES["shares"]()
    qtbot.addWidget(widget)
    widget.resize(420, 300)
    widget.show()
    before = paint_svg(widget.figure)
    widget.figure.point((1, 0))
    assert paint_svg(widget.figure) == before
    assert widget.figure.pointed == (1, 0)


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
