"""Communities over time: layout, description, clicks and keys."""

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt

from raterscope.widgets import theme
from raterscope.widgets.figures.community_flow import BLOCK, CommunityFlow, FlowEvent, FlowView

pytestmark = pytest.mark.usefixtures("dark")

LEFT = Qt.MouseButton.LeftButton
CAREFUL, HASTY, NEW = 0, 1, 2


def view(**more) -> FlowView:
    """Two communities whose order turns round, a third that begins later, five who come late."""
    fields = {
        "moments": ("at 50 %", "at 100 %"),
        "caption": "of each one's votes",
        "numbers": (np.array([CAREFUL, HASTY]), np.array([HASTY, CAREFUL, NEW])),
        "flows": (np.array([[4, 16, 0, 0], [20, 0, 0, 0], [0, 0, 5, 0]]),),
        "names": ("careful", "<b>hasty</b>", "new"),
        "events": (FlowEvent(1, NEW, "At 100 %: 3 new begins."),),
    }
    return FlowView(**{**fields, **more})


@pytest.fixture
def flow(qtbot):
    widget = CommunityFlow()
    qtbot.addWidget(widget)
    widget.resize(520, 380)
    widget.show()
    widget.blocks, widget.bands = [], []
    widget.block_chosen.connect(lambda *part: widget.blocks.append(part))
    widget.band_chosen.connect(lambda *part: widget.bands.append(part))
    widget.show_flow(view())
    return widget


def middle(figure, part) -> QPointF:
    return figure.placement.path(part).boundingRect().center()


def test_blocks_and_bands_are_as_high_as_they_have_annotators_and_those_of_one_number_in_order(flow):
    placement = flow.figure.placement
    high = {part: block.box.height() for part, block in placement.blocks.items()}
    item = high[0, 2, BLOCK] / 5
    assert high[0, 0, BLOCK] == pytest.approx(20 * item)
    assert high[1, 0, BLOCK] == pytest.approx(24 * item)
    assert placement.bands[0, 0, 0][2] == pytest.approx(4 * item)
    assert (1, 3, BLOCK) not in high  # everybody is in a community in the end
    last = [block for part, block in placement.blocks.items() if part[0] == 1]
    assert [block.number for block in sorted(last, key=lambda item: item.box.top())] == [CAREFUL, HASTY, NEW]
    for moment in (0, 1):
        boxes = sorted(
            (b.box for p, b in placement.blocks.items() if p[0] == moment), key=lambda box: box.top()
        )
        assert all(up.bottom() <= down.top() for up, down in pairwise(boxes))
        assert boxes[-1].bottom() <= flow.figure.height()


def test_bands_leave_a_block_side_by_side_and_fill_it(flow):
    placement = flow.figure.placement
    for moment, community, begin in ((0, 0, 0), (1, 0, 1)):
        block = placement.blocks[moment, community, BLOCK].box
        if begin == 0:
            ends = [
                (here, here + thick)
                for (m, c, _), (here, _, thick) in placement.bands.items()
                if c == community
            ]
        else:
            ends = [
                (there, there + thick)
                for (*_, g), (_, there, thick) in placement.bands.items()
                if g == community
            ]
        ends.sort()
        assert ends[0][0] == pytest.approx(block.top())
        assert ends[-1][1] == pytest.approx(block.bottom())
        assert all(up[1] == pytest.approx(down[0]) for up, down in pairwise(ends))


def test_a_click_on_a_block_or_a_band_chooses_it(flow, qtbot):
    figure = flow.figure
    qtbot.mouseClick(figure, LEFT, pos=middle(figure, (0, 1, BLOCK)).toPoint())
    assert flow.blocks == [(0, 1)]
    left, width = figure.placement.columns[0]
    here, _, thick = figure.placement.bands[0, 0, 1]
    point = QPointF(left + width + 3, here + thick / 2)
    qtbot.mouseClick(figure, LEFT, pos=point.toPoint())
    assert flow.bands == [(0, 0, 1)]
    qtbot.mouseClick(figure, LEFT, pos=middle(figure, (0, 2, BLOCK)).toPoint())
    assert flow.blocks[-1] == (0, 2)


def test_where_bands_cross_the_thinner_one_is_pointed_at(flow):
    both = np.array([CAREFUL, HASTY])
    flow.show_flow(view(numbers=(both, both), flows=(np.array([[0, 20, 0], [3, 0, 0], [0, 0, 0]]),)))
    placement = flow.figure.placement
    crossing = placement.path((0, 1, 0)).intersected(placement.path((0, 0, 1))).boundingRect().center()
    assert placement.path((0, 0, 1)).contains(crossing)
    assert flow.figure.part_at(crossing) == (0, 1, 0)


def test_what_is_pointed_at_is_described(flow):
    words = flow.figure.text_of
    assert words((0, 0, BLOCK)) == "at 50 %: community 1, careful, 20 annotators"
    assert words((0, 0, 1)) == "at 50 %, then at 100 %: 16 annotators stay in community 1, careful"
    text = words((0, 0, 0))
    assert (
        text == "at 50 %, then at 100 %: 4 annotators from community 1, careful to community 2, <b>hasty</b>"
    )
    assert words((0, 2, 2)).endswith("5 annotators from no community to community 3, new")
    assert words((1, 2, BLOCK)).endswith("At 100 %: 3 new begins.")
    flow.figure.point((0, 1, 0))
    assert flow.figure.accessibleDescription() == words((0, 1, 0))


def test_prototypes_are_stated_and_drawn_where_there_is_room(flow):
    plain = flow.grab().toImage()
    rates = (np.tile([[0.9, 0.1], [0.25, 0.75]], (2, 1, 1)), np.tile([[0.5, 0.5], [0.2, 0.8]], (3, 1, 1)))
    flow.show_flow(view(prototypes=rates, classes=("no", "yes"), outputs=("0", "1")))
    assert "true yes: 0 0.25, 1 0.75" in flow.figure.text_of((0, 0, BLOCK))
    assert "true" not in flow.figure.text_of((0, 2, BLOCK))
    assert flow.grab().toImage() != plain


def test_the_keys_walk_from_block_along_its_broadest_band_to_the_next_and_choose(flow, qtbot):
    figure = flow.figure
    walked = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left):
        qtbot.keyClick(figure, key)
        walked.append(figure.pointed)
    assert walked == [(0, 0, BLOCK), (0, 0, 1), (1, 1, BLOCK), (1, 0, BLOCK), (0, 1, 0)]
    qtbot.keyClick(figure, Qt.Key.Key_Return)
    assert flow.bands == [(0, 1, 0)]
    qtbot.keyClick(figure, Qt.Key.Key_Left)
    qtbot.keyClick(figure, Qt.Key.Key_Space)
    assert flow.blocks == [(0, 1)]
    for _ in range(5):
        qtbot.keyClick(figure, Qt.Key.Key_Down)
    assert figure.pointed == (0, 2, BLOCK)


def test_a_community_that_is_set_off_dims_the_others(flow):
    all_alike = flow.grab().toImage()
    flow.select(CAREFUL)
    assert flow.grab().toImage() != all_alike
    flow.select(None)
    assert flow.grab().toImage() == all_alike


def test_what_happens_is_reported_below_many_events_in_short(flow):
    assert flow.summary == "At 100 %: 3 new begins."
    count = tuple(FlowEvent(1, NEW, f"Event {number}.") for number in range(6))
    flow.show_flow(view(events=count))
    assert flow.summary == "Event 0. Event 1. Event 2. Event 3. And 2 more."
    flow.show_flow(view(events=()))
    assert flow.summary == "Every community goes on from the first moment to the last."
    flow.show_nothing("Fuse with <b>time</b>.")
    assert not flow.filled
    assert flow.summary == "Fuse with <b>time</b>."
    assert flow.figure.part_at(QPointF(30, 60)) is None
    assert flow.figure.step(None, 1, 0) is None


def test_it_follows_the_theme(flow, qapp):
    dark = flow.figure.grab().toImage()
    theme.apply_theme(qapp, theme.LIGHT)
    light = flow.figure.grab().toImage()
    point = middle(flow.figure, (0, 0, BLOCK)).toPoint()
    assert light.pixelColor(point).lightnessF() > dark.pixelColor(point).lightnessF() + 0.3


def test_it_is_drawn_with_forty_communities_in_little_room_and_with_none(flow):
    count = np.eye(41, dtype=int)
    numbers = np.arange(40)
    crowd = view(numbers=(numbers, numbers), flows=(count,), names=tuple(map(str, numbers)), events=())
    flow.resize(250, 200)
    for shown in (crowd, view(numbers=(np.array([], int),) * 2, flows=(np.array([[7]]),), events=())):
        flow.show_flow(shown)
        assert not flow.grab().isNull()
    assert list(flow.figure.placement.blocks) == [(0, 0, BLOCK), (1, 0, BLOCK)]


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="flow 0"):
        view(flows=(np.zeros((2, 2), int),))
    with pytest.raises(ValueError, match="moments"):
        view(moments=("now",))
    with pytest.raises(ValueError, match="no name"):
        view(names=("careful",))
    with pytest.raises(ValueError, match="prototypes"):
        view(prototypes=(np.zeros((2, 1, 1)), np.zeros((3, 1, 1))), classes=("a",), outputs=("b", "c"))
