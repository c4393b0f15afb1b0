"""The false discovery rate: the slider asks, the answer moves the cut; bars are walked and chosen."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel

from raterscope.algorithms.pairs.data import HIGHEST_RATE
from raterscope.widgets import theme
from raterscope.widgets.figures.position_bias import KnockoffBars, RateCut, StatisticsView
from tests.reading import visible_words

LEFT = Qt.MouseButton.LeftButton
STATISTIC = np.array([[9.0, -1.0, 4.0, np.nan, 0.5], [8.0, 1.0, 5.0, np.nan, -0.5]])


def cut(rate: float, words: str = "") -> RateCut:
    """Nobody below 0.1; from there on the two largest, in either draw."""
    at = np.full(2, 4.0 if rate >= 0.1 else np.inf)
    share = np.where(np.isnan(STATISTIC[0]), np.nan, (at[:, None] <= STATISTIC).mean(axis=0))
    return RateCut(rate, share, at, np.nan_to_num(share) >= 0.5, words)


def view(**more) -> StatisticsView:
    fields = {
        "statistic": STATISTIC,
        "names": ("ann", "bob", "<b>cy</b>", "dee", "eve"),
        "numbers": np.array([70, 21, 12, 3, 5]),
        "min_share": 0.5,
        "cut": cut(0.1),
    }
    return StatisticsView(**{**fields, **more})


@pytest.fixture
def bars(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = KnockoffBars()
    qtbot.addWidget(widget)
    widget.resize(815, 204)
    widget.show()
    widget.rates, widget.selections = [], []
    widget.rate_changed.connect(widget.rates.append)
    widget.chosen.connect(widget.selections.append)
    widget.show_statistics(view())
    return widget


def column(figure, position: int) -> float:
    """The middle of a bar, in pixels."""
    return float(figure.plans[0].x_pixels(np.array([position]))[0])


def words(bars) -> list[str]:
    return [label.text() for label in bars.findChildren(QLabel) if label.isVisible()]


def test_moving_the_slider_requests_a_rate_and_shows_how_many_are_flagged(bars, qtbot):
    assert bars.rates == []  # what is shown was not asked for
    assert {"q = 0.10", "2 flagged"} <= {*words(bars)}
    qtbot.keyClick(bars.slider, Qt.Key.Key_Left)
    assert bars.rates == [0.09]
    assert "q = 0.09" in words(bars)
    bars.set_cut(cut(0.09, "fewer than 10 cannot be told"))
    assert {"0 flagged", "fewer than 10 cannot be told"} <= {*words(bars)}
    qtbot.keyClick(bars.slider, Qt.Key.Key_End)
    assert bars.rate == bars.rates[-1] == HIGHEST_RATE


def test_bars_stand_from_the_largest_statistic_to_the_least_without_the_untested(bars, qtbot):
    qtbot.keyClick(bars.figure, Qt.Key.Key_Right)
    for _ in range(5):
        qtbot.keyClick(bars.figure, Qt.Key.Key_Return)
        qtbot.keyClick(bars.figure, Qt.Key.Key_Right)
    order = list(dict.fromkeys(bars.selections))
    assert order[:2] == [70, 12]
    assert {*order[2:]} == {21, 5}


def test_the_order_stays_when_the_rate_changes(bars):
    texts = [bars.figure.text_of((0, index)).split(":")[0] for index in range(4)]
    bars.set_cut(cut(0.02))
    assert [bars.figure.text_of((0, index)).split(":")[0] for index in range(4)] == texts


def test_a_click_on_a_bars_column_chooses_its_annotator(bars, qtbot):
    figure = bars.figure
    point = QPoint(round(column(figure, 1)), 40)
    assert figure.text_of(figure.part_at(point.toPointF())) == "<b>cy</b>: selected in 2 of 2 draws, flagged"
    qtbot.mouseClick(figure, LEFT, pos=point)
    assert bars.selections == [12]
    bars.select(70)
    assert bars.selections == [12]


def test_the_statistic_of_one_draw_is_shown_on_demand(bars, qtbot):
    assert not bars.draw.isVisible()
    bars.modes.set_mode("draw")
    assert bars.draw.isVisible()
    assert bars.figure.text_of((0, 0)) == "ann: W 9.00 in draw 1, flagged"
    qtbot.keyClick(bars.draw, Qt.Key.Key_Up)
    assert bars.figure.text_of((0, 0)) == "ann: W 8.00 in draw 2, flagged"
    losers = [bars.figure.text_of((0, point)) for point in (2, 3)]
    assert "eve: W −0.50 in draw 2, the knockoff won" in losers
    bars.show_statistics(view())  # draw and mode stay
    assert bars.figure.text_of((0, 0)) == "ann: W 8.00 in draw 2, flagged"


def test_flagged_bars_differ_in_colour_and_bear_a_mark_below(bars):
    figure, box = bars.figure, bars.figure.plans[0].box
    picture = figure.grab().toImage()
    for position, marked in ((0, True), (1, True), (2, False)):
        x = round(column(figure, position))
        mark = picture.pixelColor(x, round(box.bottom) + 4)
        assert (mark == QColor(theme.DARK.rejected)) is marked


def test_of_more_annotators_than_pixels_every_one_can_be_reached_and_a_flagged_one_is_seen(bars, qtbot):
    count = 3000
    statistic = np.linspace(5, -5, count)[None]
    flagged = np.arange(count) == 1500
    all_at = RateCut(0.1, flagged.astype(float), np.array([0.0]), flagged)
    bars.show_statistics(
        StatisticsView(statistic, tuple(f"a{n}" for n in range(count)), np.arange(count), 0.5, all_at)
    )
    figure, box = bars.figure, bars.figure.plans[0].box
    picture = figure.grab().toImage()
    strip = [picture.pixelColor(x, round(box.bottom) + 4) for x in range(round(box.left), picture.width())]
    assert QColor(theme.DARK.rejected) in strip
    bars.select(1499)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Return):
        qtbot.keyClick(figure, key)
    assert bars.selections == [1500]


def test_a_message_is_shown_without_tests_or_fusion(bars, qtbot):
    none = np.full((1, 5), np.nan)
    empty = RateCut(0.1, none[0], np.array([np.inf]), np.zeros(5, bool))
    bars.show_statistics(view(statistic=none, cut=empty))
    assert "0 flagged" in words(bars)
    for mode in ("share", "draw"):
        bars.modes.set_mode(mode)
        assert not bars.grab().isNull()
    bars.show_statistics(None)
    assert any("Press Fuse (F5)" in text for text in words(bars))
    bars.set_cut(empty)
    with pytest.raises(ValueError, match="cuts for 2 draws"):
        view(cut=RateCut(0.1, cut(0.1).share, np.zeros(3), cut(0.1).flagged))


def test_the_name_of_the_threshold_lies_within_the_chart(bars):
    bars.resize(815, 130)
    bars.modes.set_mode("draw")
    limit = np.full(2, 9.0)
    bars.show_statistics(
        view(cut=RateCut(0.1, np.array([0.5, 0.0, 0.0, np.nan, 0.0]), limit, STATISTIC[0] >= 9.0))
    )
    chart = bars.figure.plans[0].chart
    assert [note.text for note in chart.notes] == ["threshold 9"]
    assert chart.y.high == 9.0
    assert chart.notes[0].shift[1] > 0  # downwards, since there is no room above


def test_the_number_before_decisions_is_stated_where_decisions_change_it(bars):
    bars.show_statistics(view())
    assert "before your decisions" not in visible_words(bars)
    bars.set_cut(replace(cut(0.1), by_test=19))
    assert "19 before your decisions" in visible_words(bars)
