"""Choosing what a structure stands for."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from raterscope.widgets.dialogs.review_dialogs import (
    CodeChoice,
    StructureChoice,
    StructureDialog,
    StructureOffer,
)

ANATOMY, TISSUE = CodeChoice("SCT:91723000", "Anatomical Structure"), CodeChoice("SCT:85756007", "Tissue")
NOTHING = StructureChoice()
HEART, LIVER = CodeChoice("SCT:80891009", "Heart"), CodeChoice("SCT:10200004", "Liver")
OFFER = StructureOffer(
    (ANATOMY, TISSUE), ("GTV", "ORGAN"), ("", "Heart", "Lung_L"), "Heart", {"left": "left", "right": "right"}
)


@pytest.fixture
def answers():
    return []


@pytest.fixture
def opened(qtbot, answers):
    def make(chosen=NOTHING):
        dialog = StructureDialog("the heart", chosen, OFFER, "Recognised by its name.")
        dialog.accepted.connect(lambda: answers.append(dialog.choice))
        dialog.open()
        return dialog

    return make


def find(text):
    return [item for item in (HEART, LIVER) if text.casefold() in item.meaning.casefold()]


def test_a_code_is_found_and_chosen_by_keyboard(opened, qtbot, answers):
    dialog = opened()
    assert not dialog.search.isEnabled()  # until codes are there
    assert not dialog.side.isEnabled()
    dialog.set_search(find)
    qtbot.keyClicks(dialog.search, "liv")
    assert dialog.codes.count() == 1
    qtbot.keyClick(dialog.codes, Qt.Key.Key_Down)
    assert dialog.side.isEnabled()
    dialog.side.setCurrentText("left")
    dialog.role.setCurrentText("ORGAN")
    dialog.accepting.click()
    assert answers == [StructureChoice(LIVER, ANATOMY, "left", None, "ORGAN", "")]


def test_what_is_known_is_shown_and_stays(opened, answers):
    known = StructureChoice(HEART, CodeChoice("SRT:T-D0050", "Tissue"), "right", (1, 2, 3), "GTV", "H")
    dialog = opened(known)
    assert "Heart" in dialog.chosen_label.text()
    assert dialog.colour.text() == "#010203"
    dialog.accepting.click()
    assert answers == [known]


def test_the_standard_name_is_one_click_away(opened, answers):
    dialog = opened()
    assert dialog.use_label.text() == "Use Heart"
    dialog.use_label.click()
    dialog.choose_colour(QColor("#102030"))
    dialog.choose_colour(QColor())  # cancelled
    dialog.accepting.click()
    assert (answers[0].label, answers[0].colour) == ("Heart", (16, 32, 48))


def test_a_code_can_be_taken_away_and_nothing_found_is_reported(opened, answers):
    dialog = opened(StructureChoice(HEART, ANATOMY))
    dialog.set_search(find)
    dialog.search.setText("spleen")
    assert dialog.codes.item(0).text() == "No matches"
    assert not dialog.codes.item(0).flags()
    dialog.search.setText("")
    dialog.codes.setCurrentRow(0)
    dialog.accepting.click()
    assert answers == [StructureChoice()]


def test_the_category_follows_the_code_where_it_is_known(opened, answers):
    dialog = opened(StructureChoice(HEART, TISSUE))
    dialog.set_search(lambda _text: [CodeChoice(LIVER.code, LIVER.meaning, ANATOMY.code)])
    dialog.search.setText("liver")
    dialog.codes.setCurrentRow(0)
    dialog.accepting.click()
    assert answers == [StructureChoice(LIVER, ANATOMY)]


def test_escape_changes_nothing(opened, qtbot, answers):
    qtbot.keyClick(opened(), Qt.Key.Key_Escape)
    assert answers == []
