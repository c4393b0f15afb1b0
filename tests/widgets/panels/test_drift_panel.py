import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt

from raterscope.widgets import theme
from raterscope.widgets.figures.drift_plots import RowLines, TernaryPlot
from raterscope.widgets.panels.drift_panel import DriftPanel, DriftView
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")

CHANGE = (60, 1, "says 3 less often")


def view(steps=100, outputs=("-1", "1", "3"), classes=("not", "supernova"), step=40, **changes) -> DriftView:
    """Go from no preference to the first output where the class is the first, to the last where it is not."""
    sure = np.linspace(1 / len(outputs), 0.9, steps)
    mean = np.empty((steps, len(classes), len(outputs)))
    mean[:] = ((1 - sure) / (len(outputs) - 1))[:, None, None]
    mean[:, 0, 0] = sure
    mean[:, 1:, -1] = sure[:, None]
    informed = np.zeros((steps, len(classes)))
    informed[np.arange(steps), np.arange(steps) % len(classes)] = 1
    values = {
        "classes": classes, "outputs": outputs, "mean": mean, "low": np.maximum(mean - 0.03, 0),
        "high": np.minimum(mean + 0.03, 1), "informed": informed.cumsum(axis=0), "changes": (CHANGE,),
        "step": step,
    }  # fmt: skip
    return DriftView(**{**values, **changes})


def shown(qtbot, widget):
    qtbot.addWidget(widget)
    widget.resize(360, 320)
    widget.show()
    return widget


@pytest.fixture
def panel(qtbot):
    return shown(qtbot, DriftPanel())


@pytest.fixture
def triangle(qtbot):
    plot = shown(qtbot, TernaryPlot())
    plot.show_drift(view())
    return plot


def places(plot) -> dict:
    results = {}
    for x in range(0, plot.width(), 4):
        for y in range(0, plot.height(), 4):
            results.setdefault(plot.part_at(QPointF(x, y)), []).append((x, y))
    return {part: np.mean(where, axis=0) for part, where in results.items() if part is not None}


def test_each_class_moves_towards_the_corner_of_what_is_stated_of_it(triangle):
    triangle.set_step(99)
    result = places(triangle)
    first, last = result[(0, 99)], result[(1, 99)]
    assert first[0] < 0.3 * triangle.width()
    assert last[0] > 0.7 * triangle.width()
    assert min(first[1], last[1]) > 0.7 * triangle.height()


def test_markers_stand_at_round_numbers_of_votes_and_at_changes():
    shown = view()
    assert shown.informed[shown.milestones(0), 0].tolist() == [1, 2, 5, 10, 20, 50]
    uneven = view(informed=np.stack([np.linspace(0, 3.4, 100), np.zeros(100)], axis=1))
    assert uneven.milestones(1).tolist() == []
    assert len(uneven.milestones(0)) == 2


def test_a_change_is_described_and_a_click_selects_it(triangle, qtbot):
    x, y = places(triangle)[(1, 60)]
    text = triangle.text_of((1, 60))
    assert text.startswith("true supernova, vote 61 (30 of that class): -1 0.")
    assert text.endswith("; after vote 61: says 3 less often")
    requests = []
    triangle.step_chosen.connect(requests.append)
    qtbot.mouseClick(triangle, Qt.MouseButton.LeftButton, pos=QPointF(x, y).toPoint())
    assert requests == [60]


def test_markers_are_walked_by_keyboard_along_a_path_and_across(triangle, qtbot):
    requests = []
    triangle.step_chosen.connect(requests.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Return):
        qtbot.keyClick(triangle, key)
    assert requests == [60]  # of the second class: from the present step on to the change


def test_a_triangle_takes_three_outputs(triangle):
    with pytest.raises(ValueError, match="three corners"):
        triangle.show_drift(view(outputs=("a", "b")))


def test_thirty_thousand_votes_are_drawn_as_few_points_and_end_where_they_end(triangle):
    rng = np.random.default_rng(1)
    noise = rng.dirichlet((4, 2, 2), size=(30_000, 2))
    triangle.show_drift(view(30_000, mean=noise, low=None, high=None, step=29_999))
    assert sum(len(kept) for kept, _ in triangle._paths) < 2000
    corners = triangle._corners
    position = places(triangle)[(0, 29_999)]
    np.testing.assert_allclose(position, noise[-1, 0] @ corners, atol=6)


@pytest.fixture
def lines(qtbot):
    plot = shown(qtbot, RowLines())
    plot.show_drift(view())
    return plot


def test_hover_shows_the_row_with_intervals_and_a_click_selects_it(lines, qtbot):
    figure = lines.figure
    box = figure.plans[1].box
    point = QPointF(box.right - 0.5, (box.top + box.bottom) / 2)
    assert figure.part_at(point) == (1, 99)
    assert "3 0.900 (0.870 to 0.930)" in figure.text_of((1, 99))
    requests = []
    lines.step_chosen.connect(requests.append)
    qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=point.toPoint())
    assert 98 <= requests[0] <= 99


def step_at(figure, plot, share) -> int:
    """The step that is pointed at in a plot."""
    box = figure.plans[plot].box
    return figure.part_at(QPointF(box.left + share * box.width, (box.top + box.bottom) / 2))[1]


def test_aligned_the_same_place_is_the_same_number_of_votes_of_each_class(lines):
    uneven = np.stack([np.arange(100), np.arange(100) // 4], axis=1).astype(float)
    lines.show_drift(view(informed=uneven))
    figure = lines.figure
    lines.axis.set_mode("aligned")
    steps = [step_at(figure, plot, 0.2) for plot in (0, 1)]
    assert uneven[steps[0], 0] == uneven[steps[1], 1] == 20
    lines.axis.set_mode("votes")
    steps = [step_at(figure, plot, 0.2) for plot in (0, 1)]
    assert steps[0] == steps[1]


def test_one_class_of_many_is_shown_at_a_time(lines):
    count = tuple(f"class {index}" for index in range(18))
    lines.show_drift(view(classes=count))
    assert lines.choice.count() == 18
    lines.choice.setCurrentText("true class 7")
    figure = lines.figure
    assert figure.text_of((0, 0)).startswith("true class 7, ")
    lines.show_drift(view(classes=count))  # another annotator: the class stays
    assert figure.text_of((0, 0)).startswith("true class 7, ")


def test_a_spike_among_thousands_of_votes_is_still_seen(lines):
    mean = np.full((20_000, 2, 2), 0.5)
    flat = view(20_000, outputs=("a", "b"), changes=(), low=None, high=None, mean=mean, step=0)
    lines.show_drift(flat)
    before = lines.figure.grab().toImage()
    spiked = mean.copy()
    spiked[10_001, 0] = (1.0, 0.0)
    lines.show_drift(view(20_000, outputs=("a", "b"), changes=(), low=None, high=None, mean=spiked, step=0))
    assert lines.figure.grab().toImage() != before


def test_lines_kept_as_a_picture_follow_the_theme(qapp, lines):
    before = lines.figure.grab().toImage()
    assert lines.figure.grab().toImage() == before
    theme.apply_theme(qapp, theme.LIGHT)
    assert lines.figure.grab().toImage() != before


def test_the_slider_and_the_figures_go_to_the_same_step(panel, qtbot):
    panel.show_drift(view())
    assert "100 votes" in visible_words(panel)
    assert "vote 41" in visible_words(panel)
    steps = []
    panel.step_changed.connect(steps.append)
    qtbot.keyClick(panel.slider, Qt.Key.Key_Right)
    panel.ternary.step_chosen.emit(60)
    assert steps == [41, 60]
    assert "vote 61, supernova: says 3 less often" in visible_words(panel)


def test_only_three_outputs_make_a_triangle(panel):
    panel.show_drift(view())
    assert panel.ternary.isVisible()
    panel.figures.set_mode("lines")
    assert panel.lines.isVisible()
    panel.figures.set_mode("triangle")
    panel.show_drift(view(outputs=("a", "b", "c", "d")))
    assert panel.lines.isVisible()
    assert not panel.figures.isVisible()


def test_play_goes_to_the_last_vote_and_stops(panel, qtbot):
    panel.show_drift(view(steps=4, step=0, changes=()))
    steps = []
    panel.step_changed.connect(steps.append)
    qtbot.keyClick(panel.lines.figure if panel.lines.isVisible() else panel.slider, Qt.Key.Key_Space)
    assert panel.playing
    assert panel.play.text() == "Pause"
    qtbot.waitUntil(lambda: not panel.playing)
    assert steps == [1, 2, 3]
    qtbot.mouseClick(panel.play, Qt.MouseButton.LeftButton)  # from the beginning again
    assert panel.playing
    assert steps[3] == 0
    panel.hide()
    assert not panel.playing


def test_a_model_without_drift_offers_the_one_with(panel, qtbot):
    panel.show_static()
    assert "Fuse with the dynamic model to see how annotators change." in visible_words(panel)
    requests = []
    panel.fuse.clicked.connect(lambda: requests.append(True))
    qtbot.mouseClick(panel.fuse, Qt.MouseButton.LeftButton)
    assert requests == [True]
    panel.show_drift(None)
    assert "Select an annotator" in visible_words(panel)
    assert not panel.fuse.isVisible()


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="low of shape"):
        view(low=np.zeros((3, 2, 3)))
    with pytest.raises(ValueError, match="a change"):
        view(changes=((100, 0, ""),))


def test_a_text_without_room_begins_at_its_top_and_is_whole_in_the_tooltip(panel):
    text = "These changed, those who changed most first. Select one to plot its rates over time."
    panel.show_changed((), text)
    assert panel._nothing.alignment() & Qt.AlignmentFlag.AlignTop
    assert text in panel._header.toolTip()
