import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QLabel

from raterscope.figures.description import Line, Points
from raterscope.figures.evaluation import Curve
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import paint_to_image
from raterscope.widgets.figures.evaluation_plots import ConvergencePlot, CurvesPlot, ReliabilityPlot
from raterscope.widgets.theme import set_text_size
from tests.widgets.pointing import click_on_value, ringed


def symbols(plot) -> dict[str, list[tuple[float, float]]]:
    """Return where symbols stand, by their shapes."""
    results = {}
    for mark in plot.figure.chart.marks:
        if isinstance(mark, Points) and len(mark.x):
            results[mark.symbol] = list(zip(mark.x.tolist(), mark.y.tolist(), strict=True))
    return results


def lines(plot) -> list[Line]:
    return [mark for mark in plot.figure.chart.marks if isinstance(mark, Line)]


def test_removals_and_the_iteration_kept_are_marked(qtbot):
    plot = ConvergencePlot()
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
    marks = symbols(plot)
    assert marks["cross"] == [(3.0, -6.0)]  # removed by force
    assert marks["tick"] == [(2.0, -5.0)]  # died out
    assert marks["disc"] == [(4.0, -4.0)]  # kept
    plot.set_trace(np.empty(0), np.empty(0, dtype=int), np.empty(0, dtype=bool), -1)
    assert not plot.filled


def test_a_bound_without_components_is_a_line(qtbot):
    plot = ConvergencePlot("bound", "What the fusion maximised is drawn here once a case is fused.")
    qtbot.addWidget(plot)
    bound = np.array([-90.0, -50.0, -42.0, -41.0])
    plot.set_trace(bound, converged=True)
    (line,) = lines(plot)
    assert line.y.tolist() == bound.tolist()
    assert symbols(plot) == {}
    texts = {label.text() for label in plot.findChildren(QLabel)}
    assert {"CONVERGENCE", "converged"} <= texts


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
    click_on_value(qtbot, dots.figure, 40, 0.9)
    click_on_value(qtbot, dots.figure, 10, 0.2)
    click_on_value(qtbot, dots.figure, 25, 0.5)  # nobody is there
    assert chosen == [7, 4]


def test_the_keys_walk_the_dots_and_choose_one(dots, qtbot):
    chosen = []
    dots.annotator_chosen.connect(chosen.append)
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Return, Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(dots.figure, key)
    assert chosen == [7, 4]
    assert dots.figure.accessibleDescription() == "a: 10 clicks, reliability 0.20, excluded"


def test_the_unknown_has_no_dot_and_the_excluded_a_cross(dots):
    assert symbols(dots) == {"cross": [(10.0, 0.2)], "disc": [(40.0, 0.9)]}


def test_the_selected_annotator_is_ringed(dots):
    dots.select(7)
    assert ringed(dots.figure) == [(40.0, 0.9)]
    dots.select(4)
    assert ringed(dots.figure) == [(10.0, 0.2)]
    dots.select(None)
    assert not ringed(dots.figure)


def test_names_are_plain_text(dots):
    assert dots.figure.text_of((0, 0)) == "<b>: 40 clicks, reliability 0.90"


def test_curves_change_with_their_kind(qtbot):
    plot = CurvesPlot()
    qtbot.addWidget(plot)
    rate = np.linspace(0, 1, 5)
    plot.set_curves(
        [Curve("OEM", rate, rate**0.5, rate, 1 - rate, 0.7), Curve("<i>", rate, rate, rate, rate)]
    )
    assert [line.y.tolist() for line in lines(plot)] == [(rate**0.5).tolist(), rate.tolist()]
    plot.kind.setCurrentIndex(1)
    assert lines(plot)[0].y.tolist() == (1 - rate).tolist()
    assert plot.figure.chart.y.label == "precision"
    assert [key.text for key in plot.figure.chart.legend] == ["OEM", "<i>"]


def test_several_curves_show_their_areas_in_distinct_styles(qtbot):
    plot = CurvesPlot("Import known truths.")
    qtbot.addWidget(plot)
    rate, empty = np.linspace(0, 1, 5), np.empty(0)
    areas = [*np.linspace(0.95, 0.98, 7), np.nan]
    plot.set_curves(
        [Curve(f"class {index}", rate, rate, empty, empty, area) for index, area in enumerate(areas)]
    )
    assert [key.text for key in plot.figure.chart.legend][::7] == ["class 0 0.950", "class 7"]
    assert len({(line.ink, line.dashes) for line in lines(plot)}) == 8
    texts = {label.text() for label in plot.findChildren(QLabel)}
    assert {"ROC", "area 0.950 to 0.980"} <= texts
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
    assert len(plot.figure.chart.legend) == 2
    plot.of.setCurrentIndex(plot.of.findText("class 7"))
    assert lines(plot)[0].y.tolist() == (rate ** (1 / 9)).tolist()
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
        count = [Curve(f"weighted majority vote of run {at}", rate, rate, rate, rate) for at in range(12)]
        plot.set_curves(count)
        qapp.processEvents()
        drawn, legend = plot.figure.plan.box, plot.figure.plan.legend
        assert all(drawn.right <= row.left for row in legend)
        assert drawn.width > 0.5 * plot.figure.room.width() - 24
        assert len(legend) == 12 or legend[-1].key.text == f"and {13 - len(legend)} more"
        plot.set_curves(count[:1])
        assert plot.figure.plan.box.width > drawn.width + 100
    finally:
        set_text_size(1.0)
        theme.apply_theme(qapp, theme.DARK)


@pytest.mark.parametrize("look", [theme.DARK, theme.LIGHT])
def test_a_plot_follows_the_theme(qapp, dots, look):
    theme.apply_theme(qapp, look)
    try:
        image = dots.grab().toImage()
        colours = {image.pixelColor(x, 200).name() for x in range(60, 400)}
        assert look.surface in colours
    finally:
        theme.apply_theme(qapp, theme.DARK)


def test_lines_are_as_wide_in_a_larger_picture_and_the_screen_stays(qtbot):
    plot = CurvesPlot()
    qtbot.addWidget(plot)
    plot.resize(360, 260)
    plot.show()
    x = np.linspace(0, 1, 50)
    plot.set_curves((Curve("a", x, x**0.3, x, 1 - x**2),))
    before = [plot.grab().toImage() for _ in range(2)][1]

    def share(scale: float) -> float:
        """Return how much of a picture is as blue as the line."""
        image = paint_to_image(plot.figure, scale)
        pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
        blue, red = pixels[..., 0].astype(int), pixels[..., 2].astype(int)
        return float((blue - red > 90).mean())

    assert share(4) == pytest.approx(share(1), rel=0.25)
    assert plot.grab().toImage() == before


def test_numbers_along_an_axis_have_a_true_minus_and_iterations_are_whole(qtbot):
    plot = ConvergencePlot("bound")
    qtbot.addWidget(plot)
    plot.resize(400, 220)
    plot.show()
    plot.set_trace(np.array([-47500.0, -45600.0, -45510.0]))
    plan = plot.figure.plan
    assert {"−47,000", "−46,000"} <= {words for _, words in plan.up}
    assert [words for _, words in plan.across] == ["1", "2", "3"]


def drag(figure, start, end):
    for kind, position in (
        (QEvent.Type.MouseButtonPress, start),
        (QEvent.Type.MouseMove, end),
        (QEvent.Type.MouseButtonRelease, end),
    ):
        button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
        held = (
            Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else Qt.MouseButton.LeftButton
        )
        event = QMouseEvent(
            kind, position, figure.mapToGlobal(position), button, held, Qt.KeyboardModifier.NoModifier
        )
        QApplication.sendEvent(figure, event)


def test_plus_zooms_about_the_point_a_drag_pans_and_minus_shows_all_again(dots, qtbot):
    figure = dots.figure
    initial = figure.plan.view
    qtbot.keyClick(figure, Qt.Key.Key_End)
    for _ in range(4):
        qtbot.keyClick(figure, Qt.Key.Key_Plus)
    near = figure.plan.view
    assert near.right - near.left == pytest.approx((initial.right - initial.left) * 0.8**4)
    assert near.left <= 40 <= near.right
    middle = QPointF((figure.plan.box.left + figure.plan.box.right) / 2, figure.plan.box.bottom - 60)
    drag(figure, middle, middle + QPointF(30, 0))
    assert figure.plan.view.left < near.left
    assert figure.plan.view.right - figure.plan.view.left == pytest.approx(near.right - near.left)
    for _ in range(9):
        qtbot.keyClick(figure, Qt.Key.Key_Minus)
    assert figure.plan.view == initial


def test_walking_beyond_what_is_shown_brings_the_point_into_view(dots, qtbot):
    figure = dots.figure
    qtbot.keyClick(figure, Qt.Key.Key_Home)
    for _ in range(8):
        qtbot.keyClick(figure, Qt.Key.Key_Plus)
    assert not figure.plan.box.contains(*(float(part[0]) for part in figure._mark_pixels(1)))
    qtbot.keyClick(figure, Qt.Key.Key_Down)
    point = figure.position_of(figure.pointed)
    assert figure.plan.box.contains(point.x(), point.y())
