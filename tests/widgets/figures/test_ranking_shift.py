"""The ranking before and after: who stands where, which lines cross, what is chosen and asked for."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage

from raterscope.algorithms.pairs.ranking import ranks
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import paint_svg
from raterscope.widgets.figures.ranking_painter import AFTER, BEFORE, PAD, RankingView
from raterscope.widgets.figures.ranking_shift import WIDEST, RankingShift
from tests.reading import visible_words

LEFT = Qt.MouseButton.LeftButton
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def view(before, after=None, component=None, pictures=False) -> RankingView:
    before = np.asarray(before, dtype=float)
    after = before if after is None else np.asarray(after, dtype=float)
    count = len(before)
    component = np.zeros(count, np.int32) if component is None else np.asarray(component, np.int32)
    return RankingView(
        tuple(f"item {item}" for item in range(count)),
        before,
        after,
        np.stack([before - 0.5, before + 0.5]),
        np.stack([after - 0.5, after + 0.5]),
        component,
        ranks(before, component),
        ranks(after, component),
        pictures,
    )


SWAP = view([5.0, 4.0, 3.0, 2.0], [5.0, 3.0, 4.0, 2.0])


@pytest.fixture
def ranking(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = RankingShift()
    qtbot.addWidget(widget)
    widget.resize(720, 212)
    widget.show()
    widget.items, widget.pairs, widget.picture_requested = [], [], []
    widget.item_chosen.connect(widget.items.append)
    widget.pair_chosen.connect(lambda *pair: widget.pairs.append(pair))
    widget.pictures.picture_requested.connect(widget.picture_requested.append)
    return widget


class Resizes(QObject):
    """Counts how often something changes its size."""

    number = 0

    def eventFilter(self, watched, event):
        self.number += event.type() == QEvent.Type.Resize
        return False


def click(ranking, qtbot, point: QPointF, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    qtbot.mouseClick(ranking.figure.viewport(), LEFT, modifier, point.toPoint())


def middle(ranking, item, row=BEFORE) -> QPointF:
    return ranking.figure.rows().card(item, row).center()


def test_items_stand_by_their_scores_and_how_many_swap_is_reported(ranking):
    ranking.show_ranking(SWAP)
    across = [[middle(ranking, item, row).x() for item in range(4)] for row in (BEFORE, AFTER)]
    assert np.argsort(across[0]).tolist() == [0, 1, 2, 3]
    assert np.argsort(across[1]).tolist() == [0, 2, 1, 3]
    assert across[0][0] == across[1][0]
    assert "2 items swap" in visible_words(ranking)
    ranking.show_ranking(view([3.0, 2.0, 1.0]))
    assert "no item swaps" in visible_words(ranking)
    assert not ranking.next.isVisible()


def test_components_stand_apart_and_are_ranked_each_by_itself(ranking):
    shown = view([1.0, 5.0, 2.0, 4.0, np.nan], component=[0, 1, 0, 1, -1])
    ranking.show_ranking(shown)
    assert shown.rank_before.tolist() == [2, 1, 1, 2, 0]
    x = {item: middle(ranking, item).x() for item in range(4)}
    assert x[2] < x[0] < x[1] < x[3]
    assert x[1] - x[0] > x[3] - x[1]
    assert "no item swaps, 1 never compared" in visible_words(ranking)
    assert shown.text_of(4) == "item 4, never compared"
    ranking.select(4)
    assert not ranking.grab().isNull()


def test_a_click_on_a_card_in_either_row_chooses_the_item(ranking, qtbot):
    ranking.show_ranking(SWAP)
    click(ranking, qtbot, middle(ranking, 1))
    click(ranking, qtbot, middle(ranking, 1, AFTER))
    click(ranking, qtbot, middle(ranking, 3, AFTER))
    assert ranking.items == [1, 1, 3]
    assert ranking.figure.text_of((1,)) == "item 1: rank 2 before, 3 after; score 3.00 (2.50 to 3.50)"


def test_where_two_lines_cross_the_pair_is_chosen_and_beside_it_one_item(ranking, qtbot):
    ranking.show_ranking(SWAP)
    crossing = (
        middle(ranking, 1) + middle(ranking, 2, AFTER) + middle(ranking, 2) + middle(ranking, 1, AFTER)
    ) / 4
    click(ranking, qtbot, crossing)
    assert [{*pair} for pair in ranking.pairs] == [{1, 2}]
    rows = ranking.figure.rows()
    click(ranking, qtbot, QPointF(middle(ranking, 1).x(), rows.top(BEFORE) + rows.side + 6))
    assert ranking.items == [1]
    click(ranking, qtbot, QPointF(middle(ranking, 3).x() + 200, crossing.y()))  # the ground
    assert len(ranking.pairs) + len(ranking.items) == 2


def test_a_second_item_is_added_by_ctrl_click_or_with_shift_and_an_arrow(ranking, qtbot):
    ranking.show_ranking(SWAP)
    click(ranking, qtbot, middle(ranking, 0), CONTROL)  # nobody to add it to
    click(ranking, qtbot, middle(ranking, 3), CONTROL)
    assert ranking.items == [0]
    assert ranking.pairs == [(0, 3)]
    ranking.select(2)
    qtbot.keyClick(ranking.figure, Qt.Key.Key_Right, SHIFT)
    assert ranking.pairs[-1] == (2, 3)


def test_arrows_walk_along_the_row_that_the_keys_are_in(ranking, qtbot):
    ranking.show_ranking(SWAP)
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_End):
        qtbot.keyClick(ranking.figure, key)
    assert ranking.items == [0, 1, 2, 3]  # in the lower row, 2 is left of 1


def test_the_next_swap_is_gone_to_wherever_it_is(ranking, qtbot):
    before = -np.arange(400.0)
    after = before.copy()
    after[[300, 301]] = after[[301, 300]]
    ranking.show_ranking(view(before, after))
    assert not ranking.figure.rows().visible(BEFORE)[300]
    ranking.next.click()
    assert ranking.items == [300]
    assert ranking.figure.rows().visible(BEFORE)[300]
    assert ranking.figure.rows().visible(AFTER)[300]
    for _ in range(2):
        qtbot.keyClick(ranking.figure, Qt.Key.Key_N)
    assert ranking.items == [300, 301, 300]


def _picture(ranking, item):
    """Return the middle of the picture of an item, which is at the left of its card."""
    card = ranking.figure.rows().card(item, BEFORE)
    return QPointF(card.left() + card.height() / 2, card.center().y())


def test_names_are_whole_up_to_a_width(ranking):
    names = ("vicuna-13b-v1.2", "a", "b", "c")
    ranking.show_ranking(replace(SWAP, names=names))
    rows = ranking.figure.rows()
    metrics = QFontMetricsF(theme.font(theme.CAPTION))
    assert rows.card(1, BEFORE).width() - 2 * PAD >= metrics.horizontalAdvance(names[0])
    ranking.show_ranking(replace(SWAP, names=("x" * 400, "a", "b", "c")))
    assert ranking.figure.rows().card_width < 240


def test_pictures_are_requested_in_sight_alone_and_once(ranking, qtbot):
    ranking.show_ranking(view(-np.arange(500.0), pictures=True))
    qtbot.waitUntil(lambda: len(ranking.picture_requested) > 3)
    assert max(ranking.picture_requested) < 30
    picture = QImage(40, 30, QImage.Format.Format_RGB32)
    picture.fill(QColor("#ff0000"))
    for item in ranking.picture_requested:
        ranking.pictures.keep(item, picture if item else None)
    drawn = ranking.figure.viewport().grab().toImage()
    assert drawn.pixelColor(_picture(ranking, 1).toPoint()).name() == "#ff0000"
    assert drawn.pixelColor(_picture(ranking, 0).toPoint()).name() != "#ff0000"
    count = len(ranking.picture_requested)
    ranking.figure.horizontalScrollBar().setValue(ranking.figure.horizontalScrollBar().maximum())
    qtbot.waitUntil(lambda: len(ranking.picture_requested) > count)
    assert min(ranking.picture_requested[count:]) > 470
    assert len({*ranking.picture_requested}) == len(ranking.picture_requested)
    ranking.pictures.forget()
    qtbot.waitUntil(lambda: len(ranking.picture_requested) > 2 * count)


def test_without_pictures_none_is_requested(ranking, qtbot):
    ranking.show_ranking(view(-np.arange(20.0)))
    qtbot.wait(80)
    assert ranking.picture_requested == []


def test_rows_that_just_fit_come_to_rest(ranking, qapp):
    ranking.show_ranking(replace(view(-np.arange(12.0)), names=("a",) * 12))
    bar, visited = ranking.figure.horizontalScrollBar(), set()
    for height in range(180, 230):
        ranking.resize(720, height)
        for _ in range(3):
            qapp.processEvents()
        counted = Resizes()
        ranking.figure.viewport().installEventFilter(counted)
        qapp.processEvents()
        assert counted.number == 0
        visited.add(bar.isVisible())
    assert visited == {True, False}


def test_intervals_stand_above_and_below_on_demand(ranking):
    ranking.show_ranking(SWAP)
    rows = ranking.figure.rows()
    assert rows.strip == 0
    ranking.modes.set_mode("intervals")
    rows = ranking.figure.rows()
    picture = ranking.figure.viewport().grab().toImage()
    ground = QColor(theme.DARK.surface)
    x = round(middle(ranking, 0).x())
    for span in (
        range(round(rows.top(BEFORE)) - 1),
        range(round(rows.top(AFTER) + rows.side) + 2, round(rows.height)),
    ):
        assert any(picture.pixelColor(x, y) != ground for y in span)


def test_items_of_equal_scores_share_a_rank_and_swap_with_no_annotator(ranking):
    nearly = 3.0 + 1e-13
    ranking.show_ranking(view([5.0, 3.0, nearly, 1.0], [5.0, nearly, 3.0, 1.0]))
    assert ranking.figure.view.rank_before.tolist() == ranking.figure.view.rank_after.tolist() == [1, 2, 2, 4]
    assert not ranking.figure.view.crosses(1, 2)
    assert "no item swaps" in visible_words(ranking)


def test_thousands_of_items_and_none_are_shown(ranking):
    rng = np.random.default_rng(0)
    ranking.show_ranking(view(rng.normal(size=3000), rng.normal(size=3000)))
    for mode in ("cards", "intervals"):
        ranking.modes.set_mode(mode)
        assert not ranking.grab().isNull()
    ranking.show_ranking(view([]))
    assert not ranking.grab().isNull()
    ranking.show_ranking(None)
    assert "Press Fuse (F5)" in visible_words(ranking)


def test_scores_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="items"):
        RankingView(("a",), *np.zeros((2, 2)), *np.zeros((2, 2, 2)), *np.zeros((3, 2), int))
    with pytest.raises(ValueError, match="intervals"):
        RankingView(("a",), *np.zeros((4, 1)), *np.zeros((3, 1), int))


def test_a_saved_picture_has_the_items_out_of_sight_too(ranking):
    count = 60
    ranking.show_ranking(view(np.arange(count, 0, -1.0)))
    words_of = ElementTree.fromstring(paint_svg(ranking)).iter("{http://www.w3.org/2000/svg}text")
    drawn = {"".join(element.itertext()).strip() for element in words_of}
    assert {str(rank) for rank in range(1, count + 1)} <= drawn
    ranking.show_ranking(view(np.arange(5000, 0, -1.0)))
    ranking.select(4999)
    assert ranking.picture_size().width() == WIDEST
    words_of = ElementTree.fromstring(paint_svg(ranking)).iter("{http://www.w3.org/2000/svg}text")
    assert "5,000" in {"".join(element.itertext()).strip() for element in words_of}
