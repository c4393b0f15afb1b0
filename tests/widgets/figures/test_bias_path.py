"""The regularisation path: positions of lines, their description, clicks and keys."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor

from raterscope.figures.drawing import column_spans
from raterscope.widgets import theme
from raterscope.widgets.figures.bias_path import (
    EDGE_STEPS,
    BiasPath,
    PathView,
    cover,
    coverage_image,
    coverage_levels,
)
from raterscope.widgets.figures.figure_panel import QtCanvas
from raterscope.widgets.figures.position_bias import BAD, GOOD, UGLY

LEFT = Qt.MouseButton.LeftButton


def view(**more) -> PathView:
    """A bad one who comes in at 6, an ugly one at 4, a good one at 1, one not tested, one of no bias."""
    at = np.linspace(10, 0.5, 200)
    enter = np.array([6.0, 4.0, 1.0])
    slope = np.array([-0.1, 0.05, 0.02])
    bias = np.full((200, 5), np.nan)
    bias[:, :3] = np.maximum(enter - at[:, None], 0) * slope
    bias[:, 4] = 0
    fields = {
        "at": at,
        "bias": bias,
        "behaviour": np.array([BAD, UGLY, GOOD, GOOD, GOOD]),
        "names": ("ann", "<b>bob</b>", "cy", "dee", "eve"),
        "numbers": np.array([70, 12, 5, 3, 1]),
        "cut": 5.0,
        "axis": "lambda",
    }
    return PathView(**{**fields, **more})


@pytest.fixture
def path(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = BiasPath()
    qtbot.addWidget(widget)
    widget.resize(520, 390)
    widget.show()
    widget.selections = []
    widget.chosen.connect(widget.selections.append)
    return widget


def shown(path, qtbot, view) -> None:
    path.show_path(view)
    qtbot.waitUntil(lambda: path.figure._lines.finished)


def end(path, bias) -> QPointF:
    """The right end of a line that ends at a bias."""
    plan = path.figure.plan
    return QPointF(plan.box.right - 4, float(plan.y_pixels(np.array([bias]))[0]))


def test_a_click_on_a_line_chooses_its_annotator_and_the_words_name_it(path, qtbot):
    shown(path, qtbot, view())
    for bias, number, words in (
        (-0.55, 70, "ann, one-sided: prefers right, enters at lambda 5.9"),
        (0.175, 12, "<b>bob</b>, leaning: prefers left, enters at lambda 3.9"),
    ):
        point = end(path, bias)
        assert path.figure.text_of(path.figure.part_at(point)).startswith(words)
        qtbot.mouseClick(path.figure, LEFT, pos=point.toPoint())
        assert path.selections[-1] == number


def test_before_a_bias_comes_in_its_line_cannot_be_pointed_at(path, qtbot):
    shown(path, qtbot, view())
    zero = end(path, 0.0).y()
    assert path.figure.part_at(QPointF(90, zero)) is None
    assert path.figure.part_at(QPointF(90, zero - 100)) is None


def test_the_keys_walk_over_the_tested_from_the_highest_to_the_lowest(path, qtbot):
    shown(path, qtbot, view())
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(path.figure, key)
    for _ in range(5):
        qtbot.keyClick(path.figure, Qt.Key.Key_Down)
    qtbot.keyClick(path.figure, Qt.Key.Key_Space)
    assert path.selections == [12, 5, 70]


def test_selecting_emits_nothing_and_stays_when_the_path_is_shown_again(path, qtbot):
    shown(path, qtbot, view())
    plain = path.figure.grab().toImage()
    path.select(70)
    lit = path.figure.grab().toImage()
    assert lit != plain
    shown(path, qtbot, view())
    assert path.figure.grab().toImage() == lit
    path.select(None)
    assert path.figure.grab().toImage() == plain
    assert path.selections == []


def test_lines_have_the_colour_of_their_behaviour_and_take_another_when_the_cut_moves(path, qtbot):
    shown(path, qtbot, view())
    point = end(path, float(view().bias[-3, 0])).toPoint()

    def ink() -> QColor:
        return path.figure.grab().toImage().pixelColor(point)

    def near(first: QColor, token: str) -> bool:
        other = QColor(token)
        return abs(first.red() - other.red()) + abs(first.blue() - other.blue()) < 60

    assert near(ink(), theme.DARK.rejected)
    path.figure.set_cut(2.0, np.array([GOOD, GOOD, GOOD, GOOD, GOOD]))
    qtbot.waitUntil(lambda: path.figure._lines.finished)
    assert not near(ink(), theme.DARK.rejected)
    assert path.figure.text_of((0, 0)).startswith("ann, no bias found")


def test_the_window_gets_its_turn_while_a_thousand_lines_are_worked_out(path, qtbot):
    rng = np.random.default_rng(0)
    count, positions = 1000, 2000
    bias = np.cumsum(rng.normal(0, 0.01, (positions, count)), axis=0)
    bias[:, 700] = 100.0  # far above all others
    path.show_path(
        PathView(np.geomspace(20, 0.1, positions), bias, np.zeros(count, int), tuple(map(str, range(count))),
                 np.arange(count))
    )  # fmt: skip
    assert not path.figure._lines.finished
    path.figure.grab()  # what is there so far can be painted
    qtbot.waitUntil(lambda: path.figure._lines.finished)
    assert path.figure.part_at(end(path, 100.0)) == (0, 700)


def test_positions_may_rise_from_0_stand_alone_or_be_linear(path, qtbot):
    rising = view(at=np.linspace(0, 10, 200), bias=np.nan_to_num(view().bias), stepped=True)
    shown(path, qtbot, rising)
    path.scale.set_mode("linear")
    qtbot.waitUntil(lambda: path.figure._lines.finished)
    assert path.figure.part_at(end(path, -0.55)) == (0, 0)
    shown(path, qtbot, view(at=np.array([3.0]), bias=view().bias[-1:]))
    assert path.figure.part_at(end(path, -0.55)) == (0, 0)
    path.show_path(None)
    assert not path.filled


@pytest.mark.parametrize(
    "wrong", [{"at": np.array([1.0, 3.0, 2.0])}, {"at": np.linspace(5, -5, 200)}, {"names": ("one",)}]
)
def test_a_path_that_is_invalid_is_refused(wrong):
    with pytest.raises(ValueError, match=r"path|annotators"):
        view(**wrong)


def test_spans_reach_over_all_that_a_line_does_within_a_column():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 20, 400))
    values = rng.normal(size=(400, 3)).astype(np.float32)
    low, high = column_spans(x, values, 20, stepped=False)
    for column in range(20):
        fine = np.sort(np.concatenate([[column, column + 1], x[(x > column) & (x < column + 1)]]))
        for line in range(3):
            drawn = np.interp(fine, x, values[:, line])
            assert low[column, line] == pytest.approx(drawn.min(), abs=1e-5)
            assert high[column, line] == pytest.approx(drawn.max(), abs=1e-5)


def test_a_held_value_leaps_at_the_next_place():
    x, values = np.array([0.0, 2.5]), np.array([[1.0], [5.0]], np.float32)
    low, high = column_spans(x, values, 5, stepped=True)
    assert low[:, 0].tolist() == [1, 1, 1, 5, 5]
    assert high[:, 0].tolist() == [1, 1, 5, 5, 5]


def test_cover_is_the_area_of_a_line_however_it_lies_over_the_pixels():
    low = np.array([[3.25], [4.0], [-9.0], [9.9]], np.float32)
    values = np.cumsum(cover(low, low, 10, 1.5), axis=1)[:, :-2]
    assert values[0].tolist() == pytest.approx([0, 0, 0.5, 1, 0, 0, 0, 0, 0, 0])
    assert values[1].tolist() == pytest.approx([0, 0, 0, 0.75, 0.75, 0, 0, 0, 0, 0])
    assert values[2].sum() == 0
    assert values[3].sum() == pytest.approx(0.85, abs=1 / EDGE_STEPS)
    twice = np.cumsum(cover(np.repeat(low, 2, axis=1), np.repeat(low, 2, axis=1), 10, 1.5), axis=1)[:, :-2]
    assert np.allclose(twice, 2 * values)


def test_a_leap_is_as_wide_as_its_line():
    low = np.full((12, 1), 40.0, np.float32)
    high = low.copy()
    low[5], low[6:], high[6:] = 10, 10, 10
    values = np.cumsum(cover(low, high, 50, 3.0), axis=1)[:, 25]
    assert values.sum() == pytest.approx(3)


def test_recoloured_lines_look_as_if_drawn_in_their_colours_at_first(path, qtbot):
    rng, number = np.random.default_rng(3), 90
    bias = np.cumsum(rng.normal(0, 0.01, (200, number)), axis=0)
    crowd = {"bias": bias, "names": tuple(f"a{k}" for k in range(number)), "numbers": np.arange(number)}
    behaviours = rng.integers(0, 4, (4, number))
    shown(path, qtbot, view(**crowd, behaviour=behaviours[0]))
    for cut, behaviour in zip((4.0, 3.0, 2.0), behaviours[1:], strict=True):
        path.figure.set_cut(cut, behaviour)
    qtbot.waitUntil(lambda: path.figure._lines.finished)
    recoloured = path.figure._lines.images
    shown(path, qtbot, view(**crowd, behaviour=behaviours[-1], cut=2.0))
    assert len(recoloured) == 4
    assert recoloured == path.figure._lines.images


def test_lines_above_each_other_are_more_opaque_than_one(qapp):
    low = np.full((4, 1), 5.0, np.float32)
    item, three = (
        coverage_image(coverage_levels(times * cover(low, low, 10, 2.0)), "#ffffff", 0.5)
        .pixelColor(1, 5)
        .alphaF()
        for times in (1, 3)
    )
    assert item == pytest.approx(0.5, abs=0.02)
    assert three == pytest.approx(1 - 0.5**3, abs=0.02)


@pytest.mark.parametrize("width", [220, 300, 380, 520])
def test_words_of_the_legend_and_along_the_axes_never_overlap(path, qtbot, monkeypatch, width):
    written = []

    def note(canvas, position, text, _colour, size, anchor="middle", *, turn=0.0):
        wide = canvas.width_of(text, size)
        left = position[0] - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if not turn:
            written.append((text, QRectF(left, position[1] - size / 2, wide, size)))

    path.resize(width, 300)
    shown(path, qtbot, view(axis="time of the path", cut=np.nan))
    monkeypatch.setattr(QtCanvas, "text", note)
    path.figure.redraw()
    path.figure.grab()
    texts = {text for text, _ in written}
    assert ("no bias found" in texts) == (width == 520)
    assert ("no bias" in texts) == (width in (300, 380))
    assert not any("…" in text for text in texts)
    for number, (text, box) in enumerate(written):
        for other, there in written[number + 1 :]:
            assert not box.intersects(there), (text, other)
