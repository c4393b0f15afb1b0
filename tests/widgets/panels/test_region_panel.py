import math

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtGui import QFontMetrics, QImage
from PySide6.QtWidgets import QLabel, QWidget

from raterscope.widgets import theme
from raterscope.widgets.layouts import vertical
from raterscope.widgets.panels.rater_panels import AlternativeCard, AlternativesPanel, LocalWeight
from raterscope.widgets.panels.region_panel import VERDICT, RegionEvidence, RegionPanel, RegionVote
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")


VOTES = (
    RegionVote(3, "rater 4", 0.97, 6.1, 0.03),
    RegionVote(0, "A & B", 0.1, -0.4, 0.95),
    RegionVote(1, "rater 2", 0.0),
)


def region(**changes) -> RegionEvidence:
    values = {
        "title": "Region 1", "state": "undecided", "doubt": 0.83, "sentence": "Rater 4 draws 6 mm beyond.",
        "votes": VOTES, "position": "slices 77 to 84",
    }  # fmt: skip
    return RegionEvidence(**{**values, **changes})


@pytest.fixture
def panel(qtbot):
    widget = RegionPanel()
    qtbot.addWidget(widget)
    widget.resize(360, 480)
    widget.show()
    widget.show_region(region())
    return widget


def test_the_volume_of_doubt_is_the_largest_text(panel):
    labels = [label for label in panel.findChildren(QLabel) if label.isVisible() and label.text()]
    largest = max(labels, key=lambda label: label.fontInfo().pixelSize())
    assert (largest.text(), largest.fontInfo().pixelSize()) == ("0.8", 30)
    words = visible_words(panel)
    for part in (
        "REGION 1",
        "undecided",
        "ml disputed",
        "1 of 3 raters inside",
        "slices 77 to 84",
        "Rater 4 draws",
    ):
        assert part in words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("accepted", "consensus accepted"),
        ("taken", "version of rater 2 used"),
        ("mended", "edited by you"),
        ("skipped", "skipped"),
    ],
)
def test_how_a_region_was_settled_is_reported(panel, state, words):
    panel.show_region(region(state=state, taken_from="rater 2"))
    assert words in visible_words(panel).splitlines()
    assert words in panel._figures.accessibleName()


def test_a_low_panel_shows_the_whole_sentence_and_two_raters(qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    panel, above = RegionPanel(), QWidget()
    above.sizeHint = lambda: QSize(336, 400)
    vertical(above, (panel, 1), inside=widget)
    widget.resize(336, 420)
    widget.show()
    panel.show_region(region(sentence="Rater 4 draws 6.1 mm beyond the consensus, rater 1 stays short. " * 3))
    qtbot.waitUntil(lambda: panel.votes.height() >= 2 * 24)
    sentence = panel._sentence
    assert sentence.height() >= sentence.heightForWidth(sentence.width())


def test_each_rater_is_in_or_out_beyond_or_short():
    assert [vote.direction() for vote in VOTES] == ["6.1 mm beyond", "0.4 mm short", ""]
    assert RegionVote(0, "a", 1.0, 0.01).direction() == "as consensus"


def test_what_is_stated_of_a_rater_is_described(panel):
    model = panel.votes.model()
    text = model.index(0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert text == "rater 4, inside: marks 97 % of the region, 6.1 mm beyond, local weight 0.03"
    assert "nan" not in model.index(2).data(Qt.ItemDataRole.AccessibleTextRole)


def test_the_keys_ask(panel, qtbot):
    requests = []
    pairs = {
        "accept": panel.accept, "brush": panel.brush, "erase": panel.erase, "interpolate": panel.interpolate,
        "skip": panel.skip, "undo": panel.undo,
    }  # fmt: skip
    for name, button in pairs.items():
        getattr(panel, f"{name}_requested").connect(lambda *_, name=name: requests.append(name))
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert requests == list(pairs)
    assert panel.accept.accessibleName() == "consensus (A)"


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_a_rater_to_take_is_chosen_by_the_digit_that_is_the_raters_own(panel, qtbot):
    choices = []
    panel.take_requested.connect(choices.append)
    panel.rater_order = lambda: ("A & B", "rater 2", "rater 3", "rater 4")
    panel.open_take()
    qtbot.keyClick(panel._menu, Qt.Key.Key_4)
    assert choices == ["rater 4"]
    panel.open_take()
    qtbot.keyClick(panel._menu, Qt.Key.Key_Return)
    assert choices == ["rater 4", "A & B"]
    assert not panel._menu.isVisible()


def test_a_rater_is_gone_to_by_keyboard_and_marked_from_outside_in_silence(panel, qtbot):
    chosen = []
    panel.votes.chosen.connect(chosen.append)
    panel.votes.choose("A & B")
    qtbot.keyClick(panel.votes, Qt.Key.Key_Down)
    assert chosen == ["rater 2"]
    panel.votes.choose(None)
    assert chosen == ["rater 2"]


def test_how_far_a_rater_draws_is_read_whole(panel):
    metrics = QFontMetrics(theme.font())
    for away in (0.1, 13.9, -88.8, 99.96, 123.4):
        words = RegionVote(0, "a", 1.0, away).direction()
        assert metrics.horizontalAdvance(words) <= VERDICT, words
    assert RegionVote(0, "a", 1.0, 123.4).direction() == "123 mm beyond"


def test_the_list_of_raters_asks_for_their_room(panel, qtbot):
    lines = [RegionVote(number, f"rater {number}", 1.0) for number in range(7)]
    panel.show_region(region(votes=tuple(lines)))

    def has_room():
        panel.resize(360, panel.sizeHint().height())
        QCoreApplication.sendPostedEvents()
        return panel.votes.verticalScrollBar().maximum() == 0

    qtbot.waitUntil(has_room)


def test_the_tool_in_use_is_lit(panel):
    panel.set_tool("eraser")
    assert (panel.brush.isChecked(), panel.erase.isChecked()) == (False, True)
    panel.set_tool(None)
    assert not panel.erase.isChecked()


def test_without_a_region_nothing_can_be_settled(panel):
    panel.show_region(None)
    assert "Press Tab for the next disputed region" in visible_words(panel)
    assert not any(button.isEnabled() for button in (panel.accept, panel.take, panel.skip))
    panel.open_take()
    assert not panel._menu.isVisible()


def test_what_is_not_known_is_a_dash(panel):
    panel.show_region(region(doubt=math.nan))
    assert "–" in visible_words(panel).splitlines()
    assert "nan" not in visible_words(panel)


def test_a_local_weight_has_its_scale_and_its_range_in_words(qtbot):
    widget = LocalWeight()
    qtbot.addWidget(widget)
    widget.resize(360, 180)
    widget.show()
    widget.show_local("Local weight, rater 4", None)
    assert "Select a rater" in visible_words(widget)
    values = np.ones((12, 40))
    values[4:8, 20:30] = 0.03
    widget.show_local("Local weight, rater 4", values)
    assert widget._map.accessibleName() == "Local weight, rater 4: from 0.03 to 1.00"
    picture = widget._map.grab().toImage()
    low = picture.pixelColor(round(25 * 336 / 40), round(6 * 336 / 40))
    assert low.lightnessF() < picture.pixelColor(3, 3).lightnessF()


@pytest.fixture
def alternatives(qtbot):
    widget = AlternativesPanel()
    qtbot.addWidget(widget)
    widget.resize(460, 320)
    widget.show()
    picture = QImage(20, 20, QImage.Format.Format_RGB32)
    picture.fill("#446655")
    widget.set_alternatives(
        [
            AlternativeCard("Consensus 1", 0.7, [("rater 1", 0, 0.99), ("rater 4", 3, 0.03)], picture),
            AlternativeCard("Consensus 2", 0.3, [("rater 4", 3, 0.97)]),
        ]
    )
    return widget


def test_a_consensus_is_chosen_with_mouse_and_keyboard(alternatives, qtbot):
    chosen = []
    alternatives.alternative_chosen.connect(chosen.append)
    first, second = alternatives.cards
    assert first.isChecked()
    qtbot.mouseClick(second, Qt.MouseButton.LeftButton)
    qtbot.keyClick(first, Qt.Key.Key_Return)
    assert chosen == [1, 0]
    alternatives.select(1)
    assert second.isChecked()
    assert not first.isChecked()
    assert chosen == [1, 0]


def test_the_raters_of_a_consensus_are_named(alternatives):
    assert alternatives.cards[0].accessibleName() == "Consensus 1, weight 0.70: rater 1 99 %, rater 4 3 %"
    assert "2 consensuses" in visible_words(alternatives)


def test_without_alternatives_a_sentence_is_shown(alternatives):
    alternatives.set_alternatives([])
    assert "Fuse with more than one" in visible_words(alternatives)
