import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets.figures.community_plots import CommunityTriangles, ParticipationBars, TrianglesView
from raterscope.widgets.theme import text_size
from tests.widgets.pointing import centre

LEFT = Qt.MouseButton.LeftButton
LEGEND = 24  # pixels of it, in which parts are named
COMMUNITIES = ("careful", "<i>hasty</i>", "community 3")
SHARES = np.array([[0.7, 0.3, 0.0], [0.1, 0.1, 0.8]])


@pytest.fixture
def bars(qtbot):
    widget = ParticipationBars()
    qtbot.addWidget(widget)
    widget.resize(400, 200)
    widget.show()
    widget.heard = []
    widget.figure.chosen.connect(widget.heard.append)
    return widget


def test_a_part_shows_memberships_and_selects_the_community(bars, qtbot):
    bars.show_participation(SHARES, ("ann", "<b>ben</b>"), COMMUNITIES)
    assert bars.figure.text_of((0, 0)) == "ann: 70 % careful (community 1)"
    assert bars.figure.text_of((2, 1)) == "<b>ben</b>: 80 % community 3"
    qtbot.mouseClick(bars.figure, LEFT, pos=centre(bars.figure, (1, 0), LEGEND))
    qtbot.mouseClick(bars.figure, LEFT, pos=centre(bars.figure, (2, 1), LEGEND))
    assert bars.heard == [1, 2]
    assert bars.figure.accessibleDescription() == "<b>ben</b>: 80 % community 3"


def test_a_part_is_as_wide_as_its_share(bars):
    bars.show_participation(SHARES, ("ann", "ben"), COMMUNITIES)
    line = centre(bars.figure, (0, 0), LEGEND).y()
    parts = [bars.figure.part_at(QPoint(x, line)) for x in range(bars.figure.width())]
    wide = [parts.count((community, 0)) for community in range(3)]
    assert wide[0] / sum(wide) == pytest.approx(0.7, abs=0.02)
    assert wide[2] <= 1


def test_the_legend_chooses_too(bars, qtbot):
    bars.show_participation(SHARES, ("ann", "ben"), COMMUNITIES)
    qtbot.mouseClick(bars.figure, LEFT, pos=QPoint(5, 8))
    assert bars.heard == [0]


def test_the_bars_are_walked_by_keyboard(bars, qtbot):
    bars.show_participation(SHARES, ("ann", "ben"), COMMUNITIES)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, *[Qt.Key.Key_Right] * 5, Qt.Key.Key_Space):
        qtbot.keyClick(bars.figure, key)
    assert bars.heard == [2]
    assert bars.figure.accessibleDescription().startswith("ben: 80 %")


def test_many_are_one_area_in_which_those_of_a_community_stand_together(bars, qtbot):
    shares = np.random.default_rng(0).dirichlet(np.full(3, 0.4), 5000)
    bars.show_participation(shares, [f"user {row}" for row in range(5000)], COMMUNITIES)
    figure = bars.figure
    height = figure.height()
    # Of every column that which most belongs to: it rises from the first community to the last.
    main = []
    for x in range(4, figure.width() - 6, 4):
        column = [figure.part_at(QPoint(x, y)) for y in range(24, height - 6)]
        results = [part[0] for part in column if part is not None]
        main.append(int(np.bincount(results).argmax()))
    assert main == sorted(main)
    assert set(main) == {0, 1, 2}
    part = figure.part_at(QPoint(figure.width() // 2, height // 2))
    assert "annotators from user " in figure.text_of(part)
    qtbot.mouseClick(figure, LEFT, pos=QPoint(figure.width() - 16, height - 10))
    assert bars.heard == [2]


def test_the_area_follows_the_size_of_the_window(bars):
    bars.show_participation(np.full((700, 3), 1 / 3), [f"user {row}" for row in range(700)], COMMUNITIES)
    few = bars.figure.part_at(QPoint(bars.figure.width() - 14, 60))
    bars.resize(1200, 200)
    count = bars.figure.part_at(QPoint(bars.figure.width() - 14, 60))
    assert count[1] > few[1]
    assert bars.figure.text_of(count) == "user 699: 33 % careful (community 1)"


def test_a_community_is_set_off(bars):
    for count in (2, 50):
        bars.show_participation(SHARES[np.arange(count) % 2], ["x"] * count, COMMUNITIES)
        bars.select(None)
        plain = bars.figure.grab().toImage()
        bars.select(1)
        assert bars.figure.grab().toImage() != plain
    assert bars.heard == []


def test_an_annotator_without_votes_has_no_bar(bars):
    bars.show_participation(np.array([[np.nan] * 3, SHARES[0]]), ("ann", "ben"), COMMUNITIES)
    assert bars.figure.text_of((0, 0)).startswith("ben: 70 %")
    bars.show_participation(np.full((2, 3), np.nan), ("ann", "ben"), COMMUNITIES)
    assert not bars.filled
    bars.show_participation(np.empty((0, 3)), (), COMMUNITIES)
    assert not bars.filled


def test_thirty_communities_are_painted(bars):
    bars.show_participation(
        np.full((20, 30), 1 / 30), ["x"] * 20, [f"community {index + 1}" for index in range(30)]
    )
    assert not bars.figure.grab().isNull()


def test_what_does_not_fit_is_refused(bars):
    with pytest.raises(ValueError, match="for 1 annotators"):
        bars.show_participation(SHARES, ("ann",), COMMUNITIES)


FIRST = np.array([[[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], [[0.1, 0.8, 0.1], [0.3, 0.4, 0.3]]])


def view() -> TrianglesView:
    return TrianglesView(
        ("at 20 %", "at 100 %"), ("no", "<b>yes</b>"), (("-1", "1", "3"), ("-1", "1", "3")),
        (FIRST, FIRST[:1]), (np.array([5, 2]), np.array([7])), (np.array([1, 0]), np.array([1])),
        ("fair", "reliable"),
    )  # fmt: skip


@pytest.fixture
def panel(qtbot):
    widget = CommunityTriangles()
    qtbot.addWidget(widget)
    widget.resize(700, 500)
    widget.show()
    widget.show_triangles(view())
    return widget


def test_a_symbol_shows_its_community_and_a_click_selects_it(panel, qtbot):
    figure = panel.figure
    for part, point in figure._symbols():
        assert figure.part_at(point) == part
    assert len(figure._symbols()) == 6
    words = figure.text_of((0, 1, 0))
    assert words == "at 20 %: community 2, reliable, 5 annotators; true <b>yes</b>: -1 0.10, 1 0.10, 3 0.80"
    point = dict(figure._symbols())[0, 0, 1] * text_size()
    with qtbot.waitSignal(panel.figure.chosen) as chosen:
        qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=QPoint(round(point.x()), round(point.y())))
    assert chosen.args == [0]
    assert not panel.grab().isNull()


def test_near_a_corner_its_share_is_large(panel):
    positions = dict(panel.figure._symbols())
    assert positions[0, 0, 0].x() < positions[0, 0, 1].x()
    assert positions[0, 0, 1].y() < positions[0, 0, 0].y()
    assert positions[0, 1, 0].x() > positions[0, 1, 1].x()


def test_arrow_keys_walk_and_the_table_has_every_share(panel):
    figure = panel.figure
    assert figure.step(None, 1, 0) == (0, 0, 0)
    assert figure.step((0, 0, 0), 1, 0) == (0, 0, 1)
    assert figure.step((0, 0, 1), 1, 0) == (1, 0, 0)
    assert figure.step((1, 0, 0), 0, 1) == (1, 1, 0)
    assert figure.step((1, 1, 0), 1, 1) == (1, 1, 0)
    rows = list(figure.table().source())
    assert len(rows) == 18
    panel.show_triangles(None)
    assert not panel.filled
    assert figure.step(None, 1, 0) is None
