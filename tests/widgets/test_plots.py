import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtWidgets import QLabel

from raterscope.widgets import theme
from raterscope.widgets.figures.curves_plot import Curve, CurvesPlot
from raterscope.widgets.figures.objective_plot import ObjectivePlot
from raterscope.widgets.figures.reliability_plot import ReliabilityPlot
from raterscope.widgets.picturing import paint_to_image
from raterscope.widgets.text_size import set_text_size


def scatters(plot) -> dict[str, list[tuple[float, float]]]:
    found = {}
    for item in plot.item.items:
        scatter = getattr(item, "scatter", item)
        if hasattr(scatter, "points"):
            for point in scatter.points():
                found.setdefault(point.symbol(), []).append((point.pos().x(), point.pos().y()))
    return found


def test_removals_and_the_iteration_kept_are_marked(qtbot):
    plot = ObjectivePlot()
    qtbot.addWidget(plot)
    assert not plot.filled
    plot.set_trace(
        np.array([-9.0, -5.0, -6.0, -4.0]),
        np.array([4, 3, 2, 2]),
        np.array([False, False, True, False]),
        3,
        True,
    )
    assert plot.filled
    marks = scatters(plot)
    assert marks["x"] == [(3.0, -6.0)]  # removed by force
    assert marks["|"] == [(2.0, -5.0)]  # died out
    assert marks["o"] == [(4.0, -4.0)]  # kept
    plot.set_trace(np.empty(0), np.empty(0, dtype=int), np.empty(0, dtype=bool), -1)
    assert not plot.filled


def test_a_bound_without_components_is_a_line(qtbot):
    plot = ObjectivePlot("bound", "What the fusion maximised is drawn here once a case is fused.")
    qtbot.addWidget(plot)
    bound = np.array([-90.0, -50.0, -42.0, -41.0])
    plot.set_trace(bound, converged=True)
    (line,) = (one for one in plot.item.listDataItems() if isinstance(one, pg.PlotDataItem))
    assert line.getData()[1].tolist() == bound.tolist()
    assert scatters(plot) == {}
    said = {label.text() for label in plot.findChildren(QLabel)}
    assert {"BOUND BY ITERATION", "converged"} <= said


@pytest.fixture
def dots(qtbot):
    plot = ReliabilityPlot()
    qtbot.addWidget(plot)
    plot.resize(420, 320)
    plot.show()
    plot.set_annotators(
        np.array([10, 40, 5]), np.array([0.2, 0.9, np.nan]), ["a", "<b>", "c"], np.array([4, 7, 9]), {4}
    )
    return plot


def test_a_click_on_a_dot_selects_the_annotator(dots, qtbot):
    chosen = []
    dots.annotator_chosen.connect(chosen.append)
    QCoreApplication.sendPostedEvents()  # the layout
    dots.grab()
    scene = dots.item.vb.mapViewToScene(dots._dots.points()[1].pos())
    place = dots.plot.mapFromScene(scene)
    qtbot.mouseMove(dots.plot.viewport(), QPoint(5, 5))
    qtbot.mouseClick(dots.plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert chosen == [7]


def test_the_unknown_has_no_dot_and_the_excluded_a_cross(dots):
    assert scatters(dots) == {"x": [(10.0, 0.2)], "o": [(40.0, 0.9)]}


def test_the_selected_annotator_is_ringed(dots):
    dots.select(7)
    assert [(p.pos().x(), p.pos().y()) for p in dots._ring.points()] == [(40.0, 0.9)]
    dots.select(None)
    assert len(dots._ring.points()) == 0


def test_names_in_tips_are_plain_text(dots):
    tip = dots._dots.opts["tip"](x=40, y=0.9, data=7)
    assert "&lt;b&gt;: 40 clicks, reliability 0.90" in tip


def test_curves_change_with_their_kind(qtbot):
    plot = CurvesPlot()
    qtbot.addWidget(plot)
    rate = np.linspace(0, 1, 5)
    plot.set_curves(
        [Curve("OEM", rate, rate**0.5, rate, 1 - rate, 0.7), Curve("<i>", rate, rate, rate, rate)]
    )

    def drawn():
        return [item.getData() for item in plot.item.listDataItems() if item.name()]

    assert [curve[1].tolist() for curve in drawn()] == [(rate**0.5).tolist(), rate.tolist()]
    plot.kind.setCurrentIndex(1)
    assert drawn()[0][1].tolist() == (1 - rate).tolist()
    assert plot.item.getAxis("left").labelText == "precision"
    assert [line.words for line in plot.legend.lines] == ["OEM", "<i>"]


def test_several_curves_each_say_their_area_and_none_looks_like_another(qtbot):
    plot = CurvesPlot("Import known truths.")
    qtbot.addWidget(plot)
    rate, nothing = np.linspace(0, 1, 5), np.empty(0)
    areas = [*np.linspace(0.95, 0.98, 7), np.nan]
    plot.set_curves(
        [Curve(f"class {place}", rate, rate, nothing, nothing, area) for place, area in enumerate(areas)]
    )
    lines = [item for item in plot.item.listDataItems() if item.name()]
    assert [line.name() for line in lines][::7] == ["class 0 0.950", "class 7"]
    assert (
        len({(line.opts["pen"].color().name(), tuple(line.opts["pen"].dashPattern())) for line in lines}) == 8
    )
    said = {label.text() for label in plot.findChildren(QLabel)}
    assert {"ROC", "area 0.950 to 0.980"} <= said
    assert plot.kind.isHidden()  # there is nothing but the ROC
    plot.set_curves([Curve("OEM", rate, rate, rate, rate, 0.7)])
    assert not plot.kind.isHidden()
    assert "area 0.700" in {label.text() for label in plot.findChildren(QLabel)}


def test_of_many_classes_one_is_drawn_at_a_time_every_run_beside_the_others(qtbot):
    plot = CurvesPlot()
    qtbot.addWidget(plot)
    rate = np.linspace(0, 1, 5)

    def of(kind, bend):
        return [Curve(run, rate, rate**bend, rate, 1 - rate, 0.9, of=kind) for run in ("IBCC", "the vote")]

    names = ["mean of 40 classes", *(f"class {at}" for at in range(40))]
    plot.set_curves([curve for name in names for curve in of(name, 1 / (2 + len(name)))])
    assert len(plot.legend.lines) == 2
    plot.of.setCurrentIndex(plot.of.findText("class 7"))
    (heights, _) = (item.getData()[1] for item in plot.item.listDataItems() if item.name())
    assert heights.tolist() == (rate ** (1 / 9)).tolist()
    assert plot.heading()[0] == "ROC, class 7"
    plot.set_curves([curve for name in names[1:] for curve in of(name, 1)])
    assert plot.of.currentText() == "class 7"
    plot.set_curves(of("", 1))
    assert plot.of.isHidden()


@pytest.mark.parametrize("size", [1.0, 2.0])
def test_a_legend_covers_no_curve_and_does_not_take_the_plots_room(qtbot, qapp, size):
    set_text_size(size)
    theme.apply_theme(qapp, theme.DARK)
    try:
        plot = CurvesPlot()
        qtbot.addWidget(plot)
        plot.resize(round(540 * size), round(170 * size))
        plot.show()
        rate = np.linspace(0, 1, 5)
        many = [Curve(f"weighted majority vote of run {at}", rate, rate, rate, rate) for at in range(12)]
        plot.set_curves(many)
        qapp.processEvents()
        drawn, told = (item.sceneBoundingRect() for item in (plot.item.getViewBox(), plot.legend))
        assert drawn.right() <= told.left() + 1
        assert drawn.width() > 0.5 * plot.width()
        plot.set_curves(many[:1])
        qapp.processEvents()
        assert plot.item.getViewBox().sceneBoundingRect().width() > drawn.width() + 100 * size
    finally:
        set_text_size(1.0)
        theme.apply_theme(qapp, theme.DARK)


def test_a_plot_follows_the_theme(qapp, dots):
    theme.apply_theme(qapp, theme.LIGHT)
    try:
        assert dots.plot.backgroundBrush().color().name() == theme.LIGHT.surface
    finally:
        theme.apply_theme(qapp, theme.DARK)
    assert dots.plot.backgroundBrush().color().name() == theme.DARK.surface


def test_lines_are_as_wide_in_a_larger_picture_and_the_screen_stays(qtbot):
    plot = CurvesPlot()
    qtbot.addWidget(plot)
    plot.resize(360, 260)
    plot.show()
    x = np.linspace(0, 1, 50)
    plot.set_curves((Curve("a", x, x**0.3, x, 1 - x**2),))
    before = [plot.grab().toImage() for _ in range(2)][1]

    def share(scale: float) -> float:
        """Give how much of a picture is as blue as the line."""
        image = paint_to_image(plot, scale)
        pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
        blue, red = pixels[..., 0].astype(int), pixels[..., 2].astype(int)
        return float((blue - red > 90).mean())

    assert share(4) == pytest.approx(share(1), rel=0.25)
    assert plot.grab().toImage() == before


def test_figures_along_an_axis_have_a_true_minus_and_iterations_are_whole(qtbot, qapp):
    plot = ObjectivePlot("bound")
    qtbot.addWidget(plot)
    plot.resize(400, 220)
    plot.show()
    plot.set_trace(np.array([-47500.0, -45600.0, -45510.0]))
    qapp.processEvents()
    left, below = (plot.item.getAxis(side) for side in ("left", "bottom"))
    (spacing, values), *_ = left.tickValues(-47500, -45500, 180)
    assert left.tickStrings(values, 1.0, spacing)[0] == f"−{-values[0]:,.0f}"
    assert left.tickStrings([-0.5, 0.25], 1.0, 0.05) == ["−0.50", "0.25"]
    assert [step for step, _ in below.tickSpacing(1, 3, 360)] == [1]
