import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory
from raterscope.figures.courses import chance_in_words, falling_axis, firm_from, round_up
from raterscope.widgets import theme
from raterscope.widgets.figures.count_plots import CountsPlot, CountsView, StreamCurves, StreamTruth
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")

UNKNOWN = np.nan
CHANCE = StoppingSettings(rule="chance", limit=0.05, more=5)


def history(steps=60, **changes) -> StreamHistory:
    """Thirty detections from the start, less and less in doubt; firm from the 31st annotator on."""
    count = np.arange(1, steps + 1)
    chance = np.exp(-count / 10)
    band = np.stack([np.full(steps, share) for share in (0.9, 0.8, 0.95)], axis=1)
    values = {
        "annotators": count, "clicks": 20 * count, "detections": np.full(steps, 30),
        "changed": (count < 10) * 1, "expected": 2 * chance, "chance": chance,
        "sensitivity": band, "precision": band - 0.1, "firm": count > 30, "refreshed": count % 25 == 0,
    }  # fmt: skip
    return StreamHistory(**{**values, **changes})


@pytest.fixture
def curves(qtbot):
    widget = StreamCurves()
    qtbot.addWidget(widget)
    widget.resize(1100, 210)
    widget.show()
    return widget


def place_of(figure, plot, share):
    box = figure.plans[plot].box
    return QPointF(box.left + share * box.width, (box.top + box.bottom) / 2)


def test_before_there_is_a_stream_it_names_the_next_step(curves):
    assert "Replay these clicks or watch a growing file" in visible_words(curves)
    curves.set_history(history(), CHANCE)
    assert curves.filled
    assert "60 annotators, 1,200 clicks" in visible_words(curves)
    curves.set_history(history(0), CHANCE)
    assert not curves.filled


def test_the_step_under_the_pointer_is_described_with_its_figures(curves):
    truth = np.full(60, UNKNOWN)
    truth[29] = 0.87
    curves.set_history(history(), CHANCE, StreamTruth(truth, truth))
    figure = curves.figure
    part = figure.part_at(place_of(figure, 0, 0.5))
    text = figure.text_of(part)
    assert text.startswith("step 30: 30 annotators, 600 clicks, 30 detections, 0 decisions changed; ")
    assert " 0.90 (0.80 to 0.95), of what this crowd would find in the end, in truth 0.87; " in text
    assert "; 5 more: under 0.1 changes expected (under 1 %); " in text
    assert "95 % interval" not in text
    curves.set_history(history(interval=np.tile([0.0, 4.0], (60, 1))), CHANCE)
    assert "; 95 % interval 0 to 4 changes; " in figure.text_of(part)
    assert text.endswith("5 % chance of a change with 5 more; stop rule not met")
    assert figure.text_of((0, 24)).endswith("fused again; stop rule not met")
    assert figure.text_of((0, 30)).endswith("; stop rule met")


def test_what_was_not_worked_out_is_not_stated_and_the_rest_is_drawn(curves):
    chance = np.exp(-np.arange(60) / 10)
    chance[1::2] = UNKNOWN
    band = np.full((60, 3), UNKNOWN)
    curves.set_history(history(chance=chance, sensitivity=band, precision=band), CHANCE)
    before = curves.figure.grab().toImage()
    assert "chance" in curves.figure.text_of((0, 0))
    assert "chance" not in curves.figure.text_of((0, 1))
    assert "sensitivity" not in curves.figure.text_of((0, 0))
    curves.set_history(history(chance=chance * 2, sensitivity=band, precision=band), CHANCE)
    assert curves.figure.grab().toImage() != before


def test_a_single_step_is_seen(curves):
    pictures = []
    for result in (10, 15):
        curves.set_history(history(1, detections=np.array([result])), CHANCE)
        pictures.append(curves.figure.grab().toImage())
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize("size", [(1100, 210), (480, 330)])
def test_the_three_plots_share_their_steps_and_a_click_goes_there(curves, qtbot, size):
    curves.resize(*size)
    curves.set_history(history(), CHANCE)
    requests = []
    curves.figure.chosen.connect(requests.append)
    for plot in range(3):
        point = place_of(curves.figure, plot, 20 / 60).toPoint()
        qtbot.mouseClick(curves.figure, Qt.MouseButton.LeftButton, pos=point)
    assert requests == [20, 20, 20]


def test_the_plots_stand_side_by_side_where_there_is_room_and_else_above_each_other(curves):
    curves.set_history(history())
    assert len({plan.box.top for plan in curves.figure.plans}) == 1
    curves.resize(480, 330)
    tops = [plan.box.top for plan in curves.figure.plans]
    assert tops == sorted(set(tops))
    assert len({plan.box.left for plan in curves.figure.plans}) == 1
    curves.resize(480, 160)  # too low for three
    assert len({plan.box.top for plan in curves.figure.plans}) == 1


def test_where_clicks_came_from_known_annotators_the_last_of_their_steps_is_meant(curves):
    annotators = np.minimum(np.arange(1, 61), 40)
    curves.set_history(history(annotators=annotators))
    figure = curves.figure
    assert figure.part_at(place_of(figure, 0, 1.0)) == (0, 59)
    curves.axis.set_mode("clicks")
    assert figure.part_at(place_of(figure, 0, 0.75)) == (0, 44)  # of 1,200 clicks the 900th


def test_steps_are_walked_by_keyboard_from_the_one_on_screen(curves, qtbot):
    curves.set_history(history())
    curves.set_position(10)
    requests = []
    curves.figure.chosen.connect(requests.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Return):
        qtbot.keyClick(curves.figure, key)
    qtbot.keyClick(curves.figure, Qt.Key.Key_Down)
    qtbot.keyClick(curves.figure, Qt.Key.Key_Return)
    assert requests == [11, 8]


def test_an_image_is_settled_from_where_it_stayed_so():
    firm = np.zeros(60, dtype=bool)
    assert firm_from(history(firm=firm)) is None
    firm[20:25] = True
    assert firm_from(history(firm=firm)) is None
    firm[40:] = True
    assert firm_from(history(firm=firm)) == 40
    assert firm_from(history(firm=~np.zeros(60, dtype=bool))) == 0


def test_a_spike_among_thousands_of_steps_is_still_seen_and_its_place_found(curves):
    band = np.tile([0.9, 0.8, 0.95], (5000, 1))
    curves.set_history(history(5000, sensitivity=band), CHANCE)
    before = curves.figure.grab().toImage()
    spiked = band.copy()
    spiked[3333] = 0.1
    curves.set_history(history(5000, sensitivity=spiked), CHANCE)
    after = curves.figure.grab().toImage()
    box = curves.figure.plans[1].box
    size = range(after.width()), range(after.height())
    other = {x for x in size[0] for y in size[1] if after.pixel(x, y) != before.pixel(x, y)}
    assert other
    assert all(abs(x - box.left - box.width * 3334 / 5000) < 3 for x in other)


def test_the_position_and_the_theme_are_drawn_again_and_a_step_appended_moves_no_axis(curves, qapp):
    curves.set_history(history(51), CHANCE)
    end = curves.figure.charts[0].x.high
    plain = curves.figure.grab().toImage()
    curves.set_position(7)
    marked = curves.figure.grab().toImage()
    assert marked != plain
    theme.apply_theme(qapp, theme.LIGHT)
    assert curves.figure.grab().toImage() != marked
    curves.set_history(history(52), CHANCE)
    assert curves.figure.charts[0].x.high == end


def test_the_plot_of_what_would_change_follows_the_rule_until_another_is_chosen(curves):
    curves.set_history(history(), CHANCE)
    assert curves.outlook.mode == "chance"
    before = curves.figure.grab().toImage()
    curves.outlook.set_mode("share")
    assert curves.figure.grab().toImage() != before
    curves.set_history(history(), CHANCE)  # the same rule: what was chosen stays
    assert curves.outlook.mode == "share"
    curves.set_history(history(), StoppingSettings(rule="share"))
    curves.set_history(history(), CHANCE)
    assert curves.outlook.mode == "chance"


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0 %"), (0.004, "under 1 %"), (0.12, "12 %"), (0.997, "over 99 %"), (1.0, "100 %"),
     (UNKNOWN, "not known")],
)  # fmt: skip
def test_a_chance_is_neither_none_nor_certain_where_it_is_not(share, words):
    assert chance_in_words(share) == words


def test_an_axis_ends_at_a_round_number_not_far_beyond_what_is_shown():
    ends = [round_up(number) for number in range(1, 6000)]
    assert all(number <= end <= 1.5 * number + 1 for number, end in enumerate(ends, 1))
    assert all(end == int(end) for end in ends)
    assert len(set(ends)) < 40


def test_a_limit_below_the_scale_lengthens_it():
    usual, longer = (falling_axis(limit) for limit in (0.05, 0.0004))
    assert [words for _, words in usual.ticks] == ["0.1 %", "1 %", "10 %", "100 %"]
    assert longer.ticks[0] == (0.0001, "0.01 %")
    assert longer.low < 0.0004


def test_truth_of_another_number_of_steps_is_refused(curves):
    with pytest.raises(ValueError, match="there are steps: 60"):
        curves.set_history(history(), CHANCE, StreamTruth(np.zeros(60), np.zeros(59)))


def test_where_it_is_narrow_and_low_one_plot_stands_with_a_switch(curves, qtbot):
    curves.set_history(history(), CHANCE)
    assert not curves.plot.isVisible()
    curves.resize(340, 240)
    assert curves.plot.isVisible()
    (plan,) = curves.figure.plans
    assert plan.box.width > 200
    requests = []
    curves.figure.chosen.connect(requests.append)
    for name in ("found", "quality", "outlook"):
        before = curves.figure.grab().toImage()
        curves.plot.set_mode("found" if name != "found" else "quality")
        curves.plot.set_mode(name)
        assert name == "found" or curves.figure.grab().toImage() != before
        qtbot.mouseClick(
            curves.figure, Qt.MouseButton.LeftButton, pos=place_of(curves.figure, 0, 20 / 60).toPoint()
        )
    assert requests == [20, 20, 20]
    assert all(
        curves.rect().contains(switch.geometry().translated(switch.parentWidget().mapTo(curves, QPoint())))
        for switch in (curves.axis, curves.outlook, curves.plot)
        if switch.isVisible()
    )
    curves.resize(1100, 210)
    assert not curves.plot.isVisible()
    assert len(curves.figure.plans) == 3


NAN = float("nan")


def view(count=3, **more) -> CountsView:
    fields = {
        "numbers": np.arange(7, 7 + count),
        "names": [f"smear <b>{at}</b>" for at in range(count)],
        "expected": np.array([12.4, 3.0, NAN] * count)[:count],
        "low": np.array([9.0, 3.0, NAN] * count)[:count],
        "high": np.array([15.0, 3.0, NAN] * count)[:count],
        "known": np.array([13.0, NAN, NAN] * count)[:count],
    }
    return CountsView(**{**fields, **more})


@pytest.fixture
def counts(qtbot):
    plot = CountsPlot()
    qtbot.addWidget(plot)
    plot.resize(420, 200)
    plot.show()
    plot.heard = []
    plot.figure.chosen.connect(plot.heard.append)
    return plot


def row_at(plot, row) -> QPoint:
    index = next(y for y in range(plot.figure.height()) if plot.figure.part_at(QPoint(50, y)) == row)
    return QPoint(50, index + 5)


def test_a_click_on_a_row_selects_its_image_and_shows_its_numbers(counts, qtbot):
    counts.show_counts(view())
    qtbot.mouseClick(counts.figure, Qt.MouseButton.LeftButton, pos=row_at(counts, 1))
    assert counts.heard == [8]
    text = "12.4 of its spots expected to be structures, 9 to 15; 13 known"
    assert counts.figure.text_of(0) == f"smear <b>0</b>: {text}"
    assert counts.figure.text_of(2) == "smear <b>2</b>: not fused yet"


def test_arrows_walk_from_the_image_on_screen_and_return_chooses(counts, qtbot):
    counts.show_counts(view())
    counts.select(8)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(counts.figure, key)
    assert counts.heard == [9]


def test_the_image_on_screen_is_brought_in_sight_among_many(counts, qtbot):
    counts.show_counts(view(300))
    qtbot.waitUntil(lambda: counts.figure.height() > 3000)
    assert counts.figure.visibleRegion().boundingRect().height() < 250
    counts.select(7 + 250)
    assert counts.figure.visibleRegion().contains(row_at(counts, 250))


def test_without_any_fusion_there_is_a_sentence(counts):
    counts.show_counts(view(expected=np.full(3, NAN), low=np.full(3, NAN), high=np.full(3, NAN)))
    assert not counts.filled
    counts.show_counts(view())
    assert counts.filled
    counts.show_counts(None)
    assert not counts.filled


def test_the_dot_stands_between_the_ends_of_its_line_and_the_tick_at_what_is_known(counts):
    counts.show_counts(view(1, expected=np.array([10.0]), low=np.array([5.0]), high=np.array([15.0]),
                            known=np.array([20.0])))  # fmt: skip
    room = counts.figure._room()
    image = counts.figure.grab().toImage()
    middle = row_at(counts, 0).y() - 5 + 10

    def differs(number):
        x = round(room.left() + number / 20 * room.width())
        ground = image.pixelColor(round(room.left() + 2 / 20 * room.width()), middle)
        return any(image.pixelColor(x + dx, middle) != ground for dx in (-1, 0, 1) if x + dx < image.width())

    assert [number for number in (3, 6, 10, 14, 17, 20) if differs(number)] == [6, 10, 14, 20]
