import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.widgets.panels.card_panels import CommunitiesView, CommunityCards
from tests.reading import visible_words

LEFT = Qt.MouseButton.LeftButton


def view(count=3, **more) -> CommunitiesView:
    fields = {
        "names": ("extremists", "<b>always no</b>", "community 3", *("x",) * 27)[:count],
        "members": np.arange(count) * 1000 + 1,
        "share": np.linspace(0.24, 0.5, count),
        "accuracy": np.array([0.91, np.nan, *[0.5] * 28])[:count],
        "prototype": np.tile([[0.9, 0.03, 0.07], [0.12, 0.05, 0.83]], (count, 1, 1)),
        "classes": ("not", "supernova"),
        "outputs": ("-1", "1", "3"),
        "text": "by behaviour | modularity 0.41",
    }
    return CommunitiesView(**{**fields, **more})


@pytest.fixture
def cards(qtbot):
    widget = CommunityCards()
    qtbot.addWidget(widget)
    widget.resize(640, 220)
    widget.show()
    widget.heard = []
    widget.community_chosen.connect(widget.heard.append)
    return widget


def test_a_card_shows_all_that_is_known(cards):
    cards.show_communities(view())
    texts = [card.accessibleName() for card in cards.cards]
    assert texts[0] == "Community 1, extremists: 1 member, 24 % of votes, accuracy 0.91"
    assert texts[1] == "Community 2, <b>always no</b>: 1,001 members, 37 % of votes, accuracy unknown"
    assert "&lt;b&gt;always no" in cards.cards[1].toolTip()
    assert "true supernova: -1 0.12, 1 0.05, 3 0.83" in cards.cards[0].toolTip()
    assert "3 found | click to select" in visible_words(cards)
    assert "by behaviour | modularity 0.41" in visible_words(cards)


def test_unknown_values_are_skipped(cards):
    unknown = np.full(3, np.nan)
    cards.show_communities(view(accuracy=unknown, share=unknown, prototype=None, text=""))
    assert cards.cards[0].accessibleName() == "Community 1, extremists: 1 member"
    assert not cards.grab().isNull()


def test_a_click_selects_and_a_second_one_clears(cards, qtbot):
    cards.show_communities(view())
    for position in (1, 2, 2):
        qtbot.mouseClick(cards.cards[position], LEFT)
    assert cards.heard == [1, 2, None]
    assert cards.selected is None


def test_the_cards_are_walked_by_keyboard(cards, qtbot):
    cards.show_communities(view())
    cards.cards[0].setFocus()
    for at, key in (
        (0, Qt.Key.Key_Right),
        (1, Qt.Key.Key_Right),
        (2, Qt.Key.Key_Right),
        (2, Qt.Key.Key_Left),
    ):
        assert cards.cards[at].hasFocus()
        qtbot.keyClick(cards.cards[at], key)
    qtbot.keyClick(cards.cards[1], Qt.Key.Key_Return)
    qtbot.keyClick(cards.cards[1], Qt.Key.Key_Space)
    assert cards.heard == [1, None]


def test_selecting_by_program_is_silent_and_thirty_cards_scroll_to_the_one(cards, qtbot):
    cards.show_communities(view(30), chosen=0)
    assert cards.selected == 0
    assert cards.minimumSizeHint().width() < 640
    qtbot.waitUntil(lambda: cards.cards[29].x() > 3000)
    assert cards.cards[29].visibleRegion().isEmpty()
    cards.select(29)
    assert not cards.cards[29].visibleRegion().isEmpty()
    assert cards.selected == 29
    assert cards.heard == []


def test_without_communities_a_sentence_explains_the_empty_panel(cards):
    cards.show_communities(view())
    for empty in (None, view(0, prototype=None)):
        cards.show_communities(empty)
        assert cards.cards == []
        assert "Find communities" in visible_words(cards)
        assert "found |" not in visible_words(cards)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="communities: 3"):
        view(members=np.ones(2, int))
    with pytest.raises(ValueError, match="prototypes"):
        view(classes=("one",))


def test_a_long_name_has_several_lines_and_all_cards_keep_one_height(cards):
    cards.show_communities(view(names=("one", "two", "three")))
    low = cards.cards[0].height()
    cards.show_communities(view(names=("mistakes parasite for no parasite", "right 71 %", "community 3")))
    lines = cards.cards[0].title
    assert {card.height() for card in cards.cards} == {low + 15 * (len(lines) - 1)}
    assert len(lines) > 1
    assert " ".join(lines) == "1 mistakes parasite for no parasite"
    assert cards.cards[1].title == ["2 right 71 %"]
    cards.show_communities(view(names=("right 79 to 84 %, often 2 as 3", "right 71 %", "reliable")))
    assert not any(line.startswith("%") for line in cards.cards[0].title)


def test_names_that_differ_at_their_end_differ_on_the_cards(cards):
    long = "mistakes young trophozoite for ring, more {}"
    names = (long.format("gametocyte of vivax"), long.format("artefact"), long.format("gametocyte of ovale"))
    cards.show_communities(view(names=names))
    titles = [" ".join(card.title) for card in cards.cards]
    assert len({title[2:] for title in titles}) == len(names)
    assert titles[1].endswith("artefact")
