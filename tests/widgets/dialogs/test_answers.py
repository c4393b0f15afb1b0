"""The dialog that says what answers mean: order, classes, meaning and prior."""

import numpy as np
import pytest
from PySide6.QtWidgets import QPushButton

from raterscope.widgets.dialogs.answers import Answers, AnswersDialog

CROWD = Answers(("no", "yes", "maybe"), ("healthy", "infected"), (0, 1, -1))


@pytest.fixture
def dialog(qtbot):
    instance = AnswersDialog("Infected?", CROWD)
    qtbot.addWidget(instance)
    return instance


def press(dialog, words):
    (button,) = (button for button in dialog.findChildren(QPushButton) if button.text() == words)
    button.click()


def move(dialog, words, beside):
    """Press Up or Down below the list of outputs or of classes."""
    of_outputs, of_classes = (button for button in dialog.findChildren(QPushButton) if button.text() == words)
    (of_outputs if beside is dialog.outputs else of_classes).click()


def may_accept(dialog):
    return dialog.accepting.isEnabled()


def test_nothing_changed_gives_the_same_answers_and_no_prior(dialog):
    answers = dialog.answers
    assert (answers.outputs, answers.classes, answers.meaning) == (
        CROWD.outputs,
        CROWD.classes,
        CROWD.meaning,
    )
    assert answers.prior is None
    assert may_accept(dialog)


def test_an_output_moves_with_its_meaning_and_not_beyond_the_ends(dialog):
    move(dialog, "Up", dialog.outputs)
    assert dialog.answers.outputs == ("no", "yes", "maybe")
    dialog.outputs.setCurrentCell(2, 0)
    move(dialog, "Up", dialog.outputs)
    assert dialog.answers.outputs == ("no", "maybe", "yes")
    assert dialog.answers.meaning == (0, -1, 1)
    assert dialog.outputs.currentRow() == 1
    move(dialog, "Down", dialog.outputs)
    move(dialog, "Down", dialog.outputs)
    assert dialog.answers.outputs == ("no", "yes", "maybe")


def test_a_class_moves_and_outputs_keep_what_they_stand_for(dialog):
    dialog.classes.setCurrentRow(0)
    move(dialog, "Down", dialog.classes)
    assert dialog.answers.classes == ("infected", "healthy")
    assert dialog.answers.meaning == (1, 0, -1)


def test_an_output_can_stand_for_another_class_or_for_none(dialog):
    box = dialog.outputs.cellWidget(2, 1)
    box.setCurrentIndex(box.findText("infected"))
    assert dialog.answers.meaning == (0, 1, 1)
    box = dialog.outputs.cellWidget(0, 1)
    box.setCurrentIndex(box.findText("none of them"))
    assert dialog.answers.meaning == (-1, 1, 1)


def test_a_renamed_class_stays_the_meaning_of_its_outputs(dialog):
    dialog.classes.item(1).setText("malaria")
    assert dialog.answers.classes == ("healthy", "malaria")
    assert dialog.answers.meaning == (0, 1, -1)
    assert dialog.outputs.cellWidget(1, 1).currentText() == "malaria"


def test_added_classes_have_names_of_their_own(dialog):
    press(dialog, "Add")
    press(dialog, "Add")
    assert dialog.answers.classes == ("healthy", "infected", "class 3", "class 4")
    assert dialog.outputs.cellWidget(0, 1).findText("class 4") >= 0


def test_outputs_of_a_removed_class_stand_for_none_and_one_class_stays(dialog):
    dialog.classes.setCurrentRow(1)
    press(dialog, "Remove")
    assert dialog.answers.classes == ("healthy",)
    assert dialog.answers.meaning == (0, -1, -1)
    dialog.classes.setCurrentRow(0)
    press(dialog, "Remove")
    assert dialog.answers.classes == ("healthy",)


@pytest.mark.parametrize(
    ("name", "words"),
    [(" ", "A class has no name."), ("healthy", "Two classes have the same name.")],
)
def test_names_that_cannot_be_distinguished_are_refused(dialog, name, words):
    dialog.classes.item(1).setText(name)
    assert dialog._error.text() == words
    assert not may_accept(dialog)
    dialog.classes.item(1).setText("infected")
    assert dialog._error.text() == ""
    assert may_accept(dialog)


def test_a_prior_set_for_the_question_is_shown_and_given_back(qtbot):
    prior = np.array([[8.0, 2.0, 1.0], [1.0, 9.0, 3.0]])
    dialog = AnswersDialog("Infected?", Answers(CROWD.outputs, CROWD.classes, CROWD.meaning, prior))
    qtbot.addWidget(dialog)
    np.testing.assert_array_equal(dialog.answers.prior, prior)
    press(dialog, "Add")
    assert dialog.answers.prior is None


def test_classes_are_declared_ordered(qtbot):
    dialog = AnswersDialog("Grade?", Answers(tuple("123"), tuple("123"), (0, 1, 2), ordered=True))
    qtbot.addWidget(dialog)
    assert dialog.answers.ordered
    dialog.ordered.setChecked(False)
    assert not dialog.answers.ordered
