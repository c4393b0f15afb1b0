"""One annotator's bias: text, colours, keys, and the course over time."""

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel

from raterscope.widgets import theme
from raterscope.widgets.figures.position_bias import OverTimeView
from raterscope.widgets.layouts import ScrollRegion
from raterscope.widgets.panels.annotator_card import BiasPanel, BiasView
from raterscope.widgets.panels.pair_browser import CLEARED, FLAGGED
from tests.app.large_text import is_whole

LEFT = Qt.MouseButton.LeftButton


def view(**more) -> BiasView:
    fields = {
        "name": "obs_12", "left": 90, "right": 270, "behaviour": 1, "flagged": True, "bias": -0.4172,
        "low": -0.5462, "high": -0.2882, "match": 0.61, "crowd_match": 0.84, "selected": 50, "draws": 50,
        "test_flags": True, "p_value": 1e-9, "doubtful_left": 0.09, "clear_left": 0.42,
        "sentence": "Clicks <b>right</b> when in doubt.",
    }  # fmt: skip
    return BiasView(**{**fields, **more})


def course(windows=6, **more) -> OverTimeView:
    bias = np.linspace(0, -0.5, windows)
    fields = {
        "at": np.arange(windows) * 60.0,
        "bias": bias,
        "low": bias - 0.1,
        "high": bias + 0.1,
        "when": tuple(f"answers {60 * index + 1} to {60 * index + 60}" for index in range(windows)),
        "answers": 360,
    }
    return OverTimeView(**{**fields, **more})


@pytest.fixture
def panel(qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    widget = BiasPanel()
    qtbot.addWidget(widget)
    widget.resize(360, 620)
    widget.show()
    return widget


def visible_labels(widget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible() and label.text()]


def test_the_bias_is_reported_with_its_interval_its_side_and_no_more_digits_than_these_support(panel):
    panel.show_annotator(view())
    assert {
        "ANNOTATOR",
        "obs_12",
        "leaning, flagged",
        "−0.42",
        "bias (prefers right)",
        "−0.55 to −0.29, 95 %",
    } <= {*visible_labels(panel)}
    panel.show_annotator(view(bias=0.02, low=-0.08, high=0.12))
    assert {"0.02", "bias (either side)"} <= {*visible_labels(panel)}


def test_what_speaks_for_it_is_stated_line_by_line(panel):
    panel.show_annotator(view(ties=4))
    words = visible_labels(panel)
    facts = dict(pairwise(words))
    assert facts["left / right"] == "90 / 270, 4 tied"
    assert facts["agrees with the crowd"] == "61 %, crowd 84 %"
    assert facts["flagged in"] == "50 of 50 draws"
    assert facts["t test, Benjamini-Hochberg"] == "flagged, p < 0.001"
    assert facts["when doubtful (close pairs)"] == "right in 91 %"
    assert facts["when clear (far pairs)"] == "right in 58 %"
    assert "Clicks <b>right</b> when in doubt." in words


def test_rows_that_follow_keep_their_place_and_show_no_earlier_value(panel):
    panel.show_annotator(view())
    shares = {"doubtful_left": float("nan"), "clear_left": float("nan")}
    panel.show_annotator(view(name="obs_13", gathering=True, **shares))
    words = visible_labels(panel)
    assert {"when doubtful (close pairs)", "when clear (far pairs)"} <= {*words}
    assert not {"right in 91 %", "right in 58 %"} & {*words}
    panel.show_annotator(view(name="obs_13", **shares))
    panel.show_annotator(view(name="obs_14", gathering=True, **shares))
    assert "when doubtful (close pairs)" not in visible_labels(panel)


def test_what_is_not_known_is_not_stated(panel):
    panel.show_annotator(BiasView("81", 2, 1, untested="Not tested: 3 comparisons are too few."))
    words = visible_labels(panel)
    assert {"not tested", "–", "bias unknown", "2 / 1", "Not tested: 3 comparisons are too few."} <= {*words}
    assert not {"agrees with the crowd", "flagged in", "when doubtful (close pairs)"} & {*words}


@pytest.mark.parametrize(
    ("more", "state", "tone"),
    [
        ({"behaviour": 2}, "one-sided, flagged", "number-rejected"),
        ({"behaviour": 1}, "leaning, flagged", "number-disputed"),
        ({"behaviour": 0, "flagged": False}, "no bias found", "number-plain"),
        ({"behaviour": 2, "decided": CLEARED}, "cleared by you", "number-plain"),
        ({"behaviour": 2, "decided": FLAGGED}, "flagged by you", "number-rejected"),
    ],
)
def test_the_number_has_the_colour_of_how_the_annotator_stands(panel, more, state, tone):
    panel.show_annotator(view(**more))
    assert state in visible_labels(panel)
    number = next(label for label in panel.findChildren(QLabel) if label.text() == "−0.42")
    assert number.property("role") == tone


def test_the_keys_do_nothing_while_no_annotator_is_shown(panel, qtbot):
    requests = []
    for button, request in (("flag", panel.flag_requested), ("clear", panel.clear_requested),
                            ("skip", panel.skip_requested)):  # fmt: skip
        request.connect(lambda what=button: requests.append(what))
    assert "Select an annotator" in " ".join(visible_labels(panel))
    panel.show_annotator(view())
    for button in (panel.flag, panel.clear, panel.skip):
        qtbot.mouseClick(button, LEFT)
    assert requests == ["flag", "clear", "skip"]
    panel.show_annotator(None)
    for button in (panel.flag, panel.clear, panel.skip):
        button.click()
    assert requests == ["flag", "clear", "skip"]
    assert "ANNOTATOR" in visible_labels(panel)


def test_a_window_of_answers_is_pointed_at_stated_and_chosen(panel, qtbot):
    panel.show_annotator(view())
    panel.over_time.show_course(course())
    figure, chosen = panel.over_time.figure, []
    panel.over_time.chosen.connect(chosen.append)
    assert figure.text_of((0, 5)) == "answers 301 to 360: bias −0.50 (−0.60 to −0.40)"
    qtbot.mouseClick(figure, LEFT, pos=QPoint(figure.width() - 8, 30))
    qtbot.keyClick(figure, Qt.Key.Key_Left)
    qtbot.keyClick(figure, Qt.Key.Key_Return)
    assert chosen == [5, 4]
    assert "360 answers" in visible_labels(panel.over_time)


def test_windows_of_one_moment_or_without_an_interval_are_drawn_and_one_alone_is_not(panel):
    panel.show_annotator(view())
    unknown = np.full(6, np.nan)
    for shown in (course(at=np.zeros(6)), course(low=unknown, high=unknown), course(bias=unknown, low=unknown,
                                                                                  high=unknown)):  # fmt: skip
        panel.over_time.show_course(shown)
        assert panel.over_time.filled
        assert not panel.over_time.grab().isNull()
    panel.over_time.show_course(course(1))
    assert not panel.over_time.filled
    with pytest.raises(ValueError, match="windows"):
        course(bias=np.zeros(3))


def test_large_text_scrolls_to_the_whole_course_with_its_dates_above_the_keys(panel, qapp):
    panel.show_annotator(view(q_value=1e-6, by_flips=True, has_detectable=True, swapped="same in 0 %"))
    panel.over_time.show_course(course())
    panel.resize(720, 440)
    theme.set_text_size(2.0)
    try:
        qapp.processEvents()
        (area,) = panel.findChildren(ScrollRegion)
        area.verticalScrollBar().setValue(area.verticalScrollBar().maximum())
        qapp.processEvents()
        figure = panel.over_time.figure
        assert is_whole(figure)
        assert figure.height() >= figure.minimumHeight()
        assert is_whole(panel.flag)
    finally:
        theme.set_text_size(1.0)
