from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage
from PySide6.QtWidgets import QLabel, QSplitter, QWidget

from raterscope.widgets import theme
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.panels.class_bars import ClassBar, keys_of
from raterscope.widgets.panels.task_panel import TaskPanel, TaskView, TaskVote, TaskVotes
from tests.reading import accessible_texts, painted_texts, visible_words

pytestmark = pytest.mark.usefixtures("dark")

VOTES = (
    TaskVote(3, "w-0412", "not", True, 0.4),
    TaskVote(9, "<b>w-7</b>", "supernova", False, -1.2, "2 Jan 12:04"),
    TaskVote(5, "w-0005", "supernova", False, -2.5),
    TaskVote(1, "w-0001", "not", True, 2.9),
)


@pytest.fixture
def panel(qtbot):
    widget = TaskPanel()
    qtbot.addWidget(widget)
    widget.resize(640, 220)
    widget.show()
    return widget


def view(**changes) -> TaskView:
    values = {
        "name": "0417", "classes": ("not", "supernova"), "posterior": np.array([0.51, 0.49]),
        "votes": VOTES,
    }  # fmt: skip
    return TaskView(**{**values, **changes})


def test_the_deciding_number_is_the_largest_text(panel):
    panel.show_task(view())
    labels = [label for label in panel.findChildren(QLabel) if label.isVisible() and label.text()]
    largest = max(labels, key=lambda label: label.fontInfo().pixelSize())
    assert (largest.text(), largest.fontInfo().pixelSize()) == ("0.51", 30)
    assert "posterior not" in visible_words(panel)
    assert "TASK\n0417\n" in visible_words(panel)
    assert "4 votes" in visible_words(panel)


def test_those_who_disagree_come_first_the_weightiest_foremost(panel):
    panel.show_task(view())
    assert accessible_texts(panel.votes) == [
        "w-0005, answered supernova, against the model, weight −2.5 (log-odds)",
        "<b>w-7</b>, answered supernova, against the model, weight −1.2 (log-odds), 2 Jan 12:04",
        "w-0001, answered not, weight +2.9 (log-odds)",
        "w-0412, answered not, weight +0.4 (log-odds)",
    ]


def test_a_vote_for_the_ground_truth_is_not_drawn_as_wrong():
    by_model = TaskVote(0, "kim", "yes", agrees=False, weight=-1.0)
    known = replace(by_model, wrong=False)
    assert (by_model.marked, known.marked) == (True, False)
    assert replace(by_model, agrees=True, wrong=True).marked


def test_a_vote_that_differs_from_the_model_is_reported_and_so_is_the_truth(panel):
    panel.show_task(view(majority=1, majority_votes=3, known=0))
    assert "The majority says supernova (3 of 4), the model not" in visible_words(panel)
    assert "Ground truth: not." in visible_words(panel)
    assert accessible_texts(panel.bars)[0] == "not, 0.51, truth, key 1"
    panel.show_task(view(majority=0, majority_votes=3))
    assert "The majority says" not in visible_words(panel)
    panel.show_task(view(majority=1, majority_votes=3, decided=0, fixed=True))  # the model did not weigh it
    assert "The majority says supernova (3 of 4). You decided not." in visible_words(panel)


def test_a_click_on_a_class_decides_and_return_does(panel, qtbot):
    panel.show_task(view())
    decided = []
    panel.classes.decided.connect(decided.append)
    box = panel.bars.visualRect(panel.bars.model().index(1))
    qtbot.mouseClick(panel.bars.viewport(), Qt.MouseButton.LeftButton, pos=box.center())
    qtbot.keyClick(panel.bars, Qt.Key.Key_Up)
    qtbot.keyClick(panel.bars, Qt.Key.Key_Return)
    assert decided == [1, 0]


def test_a_decision_is_shown_and_can_be_cleared(panel, qtbot):
    panel.show_task(view())
    requests = []
    panel.clear.clicked.connect(lambda: requests.append("cleared"))
    panel.skip.clicked.connect(lambda: requests.append("skipped"))
    panel.clear.click()
    panel.skip.click()
    panel.show_task(view(decided=1))
    panel.clear.click()
    assert requests == ["skipped", "cleared"]
    assert "You decided supernova." in visible_words(panel)
    assert accessible_texts(panel.bars)[1] == "supernova, 0.49, decided, key 2"


def test_only_nine_classes_have_keys(panel):
    classes = tuple(f"class {index}" for index in range(18))
    panel.show_task(view(classes=classes, posterior=np.full(18, 1 / 18)))
    assert "key 9" in accessible_texts(panel.bars)[8]
    assert "key" not in accessible_texts(panel.bars)[9]


def test_blind_nothing_shows_who_voted(panel, qtbot):
    panel.show_task(view(blind=True))
    chosen = []
    panel.votes.chosen.connect(chosen.append)
    qtbot.keyClick(panel.votes, Qt.Key.Key_Down)
    qtbot.keyClick(panel.votes, Qt.Key.Key_Down)
    assert chosen == []
    assert not any("w-" in line for line in accessible_texts(panel.votes))
    assert accessible_texts(panel.votes)[0].startswith("annotator 1, answered supernova")
    panel.show_task(view())
    qtbot.keyClick(panel.votes, Qt.Key.Key_Down)
    assert chosen == [5]


def test_votes_hidden_until_decided_give_nothing_away(panel):
    hidden = view(hidden=True, majority=1, majority_votes=3, known=0)
    panel.show_task(hidden)
    shown = visible_words(panel)
    assert "Votes are hidden until you decide." in shown
    for secret in ("0.51", "The majority says", "Ground truth", "posterior"):
        assert secret not in shown
    assert accessible_texts(panel.bars) == ["not, key 1", "supernova, key 2"]
    assert accessible_texts(panel.votes) == []
    panel.show_task(view(hidden=True, decided=0))
    assert len(accessible_texts(panel.votes)) == 4
    assert "0.51" in visible_words(panel)


def test_a_picture_is_shown_whole_and_its_absence_stated(panel):
    picture = QImage(40, 20, QImage.Format.Format_RGB32)
    picture.fill(QColor("#ff0000"))
    panel.show_task(view(picture=picture))
    shown = panel._picture.grab().toImage()
    middle, side = shown.height() // 2, shown.width()
    assert shown.pixelColor(2, middle) == shown.pixelColor(side - 3, middle) == QColor("#ff0000")
    assert shown.pixelColor(side // 2, 4) == QColor(theme.DARK.canvas)
    panel.show_task(view())
    assert panel._picture.accessibleName() == "No image"


def test_where_tasks_have_no_pictures_their_place_is_the_classes(panel):
    panel.show_task(view())
    with_place = panel.bars.width()
    panel.show_task(view(pictures=False))
    QCoreApplication.sendPostedEvents()
    assert panel.bars.width() > with_place
    panel.resize(480, 224)  # the votes stay beside the classes, which they could not beside a picture
    QCoreApplication.sendPostedEvents()
    assert panel.votes.mapTo(panel, panel.votes.rect().topLeft()).x() > panel.bars.geometry().right()


@pytest.mark.parametrize("many", [2, 4, 5])
def test_so_many_classes_are_seen_at_once_in_the_usual_window(panel, many):
    classes = tuple(f"class {index}" for index in range(many))
    panel.resize(640, 224)
    panel.show_task(view(classes=classes, posterior=np.full(many, 1 / many), known=0, decided=1))
    QCoreApplication.sendPostedEvents()
    for index in range(many):
        line = panel.bars.visualRect(panel.bars.model().index(index))
        assert panel.bars.viewport().rect().contains(line), index


def test_before_a_fusion_one_can_decide_but_reads_no_number(panel):
    panel.show_task(view(posterior=None))
    assert "nan" not in visible_words(panel)
    assert "–" in visible_words(panel).splitlines()
    panel.show_task(None)
    assert "Select a task" in visible_words(panel)


def test_a_narrow_panel_keeps_the_classes_in_sight(panel):
    panel.resize(380, 400)
    panel.show_task(view())
    QCoreApplication.sendPostedEvents()
    assert panel.votes.mapTo(panel, panel.votes.rect().topLeft()).y() > panel.bars.height()
    last = panel.bars.visualRect(panel.bars.model().index(1))
    assert panel.bars.viewport().rect().contains(last)


def test_beside_others_the_panel_can_be_made_narrow_after_it_was_wide(qtbot):
    splitter, panel = QSplitter(), TaskPanel()
    qtbot.addWidget(splitter)
    for part in (panel, QWidget()):
        splitter.addWidget(part)
    splitter.resize(1201, 400)
    splitter.show()
    panel.show_task(view())
    for width in (900, 300):
        splitter.setSizes([width, 1200 - width])
        QCoreApplication.sendPostedEvents()
        assert abs(panel.width() - width) <= splitter.handleWidth()


def test_a_note_leaves_the_name_of_a_class_whole(panel):
    name = "no parasite"
    panel.resize(560, 200)
    bars = panel.bars
    bars.show_bars([ClassBar(0, name, 0.5, "disputed", note) for note in ("", "truth", "decided, truth")])
    bars.setFixedWidth(110 + QFontMetrics(theme.font()).horizontalAdvance(name) + 12)
    QCoreApplication.sendPostedEvents()
    picture = bars.viewport().grab().toImage()
    plain, noted = (picture.copy(0, at * 32 + 3, bars.width() - 60, 16) for at in (0, 1))
    assert plain == noted


def test_classes_that_are_called_by_a_digit_have_it_for_their_key():
    assert keys_of(("0", "1", "3")) == ("0", "1", "3")
    assert keys_of(("no", "yes")) == ("1", "2")
    assert keys_of(("0", "1", "10")) == ("1", "2", "3")
    assert keys_of(tuple("abcdefghijk")) == (*"123456789", "", "")


def test_where_a_name_has_no_room_what_shows_it_apart_stays(panel):
    classes = tuple(f"Plasmodium {kind} at any stage of its life" for kind in ("vivax", "malariae", "ovale"))
    panel.resize(300, 420)
    shown = {}
    for name in classes:  # each alone in the first line, so that nothing but the name differs
        panel.bars.show_bars([ClassBar(0, name, 0.5, "plain", "", "1", distinguishing_labels(classes)[name])])
        QCoreApplication.sendPostedEvents()
        shown[name] = panel.bars.viewport().grab().toImage().copy(0, 0, panel.bars.width() - 60, 20)
    first, second, third = shown.values()
    assert first != second != third != first


@pytest.mark.parametrize("width", range(180, 300, 8))
def test_all_names_of_a_list_are_shortened_or_none(qtbot, width):
    answers = {"reader-16": "no", "reader-18": "not a structure", "reader-7": "no"}
    votes = TaskVotes()
    qtbot.addWidget(votes)
    votes.resize(width, 100)
    votes.show()
    votes.show_votes([TaskVote(index, *vote, agrees=True) for index, vote in enumerate(answers.items())])
    assert painted_texts(votes) & {*answers, "16", "18", "7"} in ({*answers}, {"16", "18", "7"})


SPECIES = tuple(f"class {index}" for index in range(40))


@pytest.fixture
def many(panel):
    """Panel of a task with forty classes: 34 is the most probable, then 7; two annotators chose 20."""
    posterior = np.full(40, 0.001)
    posterior[[34, 7]] = 0.7, 0.262
    tally = np.zeros(40, dtype=int)
    tally[20] = 2
    panel.show_task(view(classes=SPECIES, posterior=posterior, tally=tally))
    return panel


def test_many_classes_are_listed_by_probability_then_votes_then_order(many):
    listed = accessible_texts(many.bars)
    assert [line.split(",")[0] for line in listed[:5]] == [
        "class 34", "class 7", "class 20", "class 0", "class 1",
    ]  # fmt: skip
    assert listed[2] == "class 20, 0.00, 2 votes, key 3"
    assert [many.class_of(digit) for digit in "1234"] == [34, 7, 20, 0]
    assert "1 to 9: the most probable of 40 | 4 votes" in visible_words(many)


def test_hidden_votes_leave_many_classes_in_the_order_of_the_curator(many):
    many.show_task(view(classes=SPECIES, hidden=True, tally=np.arange(40)))
    assert accessible_texts(many.bars)[0] == "class 0, key 1"
    assert "1 to 9: the first of 40 classes" in visible_words(many)


def test_nine_classes_keep_the_order_of_the_curator(panel):
    classes = SPECIES[:9]
    panel.show_task(view(classes=classes, posterior=np.arange(9) / 36, tally=np.arange(9)))
    assert [panel.class_of(str(digit)) for digit in range(1, 10)] == list(range(9))
    assert panel.search.isHidden()


def test_return_decides_for_the_first_match_of_what_is_typed(many, qtbot):
    decided = []
    many.classes.decided.connect(decided.append)
    many.find_class()
    qtbot.keyClicks(many.classes.field, "39")
    assert accessible_texts(many.bars) == ["class 39, 0.00, 0 votes"]
    qtbot.keyClick(many.classes.field, Qt.Key.Key_Return)
    assert decided == [39]
    assert not many.classes.finding
    assert len(accessible_texts(many.bars)) == 40


def test_arrows_choose_another_match_and_escape_leaves(many, qtbot):
    decided = []
    many.classes.decided.connect(decided.append)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
        many.find_class()
        qtbot.keyClicks(many.classes.field, "class 2")
        qtbot.keyClick(many.classes.field, Qt.Key.Key_Down)
        qtbot.keyClick(many.classes.field, key)
        assert not many.classes.finding
    assert decided == [20]
    many.find_class()
    for text in ("", "nothing is called so"):
        many.classes.field.setText(text)
        qtbot.keyClick(many.classes.field, Qt.Key.Key_Return)
    assert decided == [20]


def test_another_task_closes_the_search_and_the_same_does_not(many, qtbot):
    many.find_class()
    many.show_task(view(classes=SPECIES, posterior=None))
    assert many.classes.finding
    many.show_task(view(name="0418", classes=SPECIES, posterior=None))
    assert not many.classes.finding


def test_a_decision_against_a_crowd_that_agrees_is_named():
    crowd = view(votes=VOTES[1:3], posterior=np.array([0.02, 0.98]), tally=np.array([0, 2]))
    assert crowd.objection(1) == ""
    assert crowd.objection(0) == (
        "0417: you decided not against all 2 votes and a posterior of 0.98 for supernova."
    )
    split = view(posterior=np.array([0.1, 0.9]), tally=np.array([2, 2]))
    assert split.objection(0) == ""
    assert view(known=1).objection(0) == "0417: you decided not against ground truth for supernova."
    text = view(known=1, name="12. The parcel was late and cold, and the box was open.")
    assert text.objection(0).startswith("12. The parcel was late…: you decided not against")
    three = view(
        classes=("a", "b", "c"), posterior=np.array([0.0, 0.0, 1.0]), known=1, tally=np.array([0, 0, 4])
    )
    assert three.objection(0) == (
        "0417: you decided a against ground truth for b; against all 4 votes and a posterior of 1.00 for c."
    )
    assert three.objection(1) == "0417: you decided b against all 4 votes and a posterior of 1.00 for c."
    unsure = view(posterior=None, tally=np.array([0, 2]))  # two of four votes name no class
    assert unsure.objection(0) == ""


def test_neither_hidden_votes_nor_an_earlier_decision_object():
    sure, tally = np.array([0.0, 1.0]), np.array([0, 4])
    assert view(posterior=sure, tally=tally, blind=True).objection(0) == ""
    assert "posterior" not in view(posterior=sure, fixed=True).objection(0)


BIRDS = (
    *(f"bird/owl/{name}" for name in ("tawny", "barn", "eagle")),
    *(f"bird/crow/{name}" for name in ("rook", "hooded", "jackdaw")),
    *(f"fish/{name}" for name in ("cod", "ling", "hake", "sole")),
)


@pytest.fixture
def tree(panel):
    posterior = np.array([0.4, 0.2, 0.05, 0.1, 0.02, 0.03, 0.15, 0.03, 0.01, 0.01])
    panel.resize(640, 400)
    panel.show_task(view(
        classes=BIRDS, posterior=posterior, tally=np.zeros(10, dtype=int), parents=("bird", "bird/owl"),
    ))  # fmt: skip
    return panel


def names_of(panel):
    return [line.name.strip() for line in panel.bars.lines]


def test_classes_of_a_hierarchy_fold_but_for_those_of_the_most_probable(tree):
    assert names_of(tree) == ["▾ bird", "▾ owl", "tawny", "barn", "eagle", "▸ crow", "▸ fish"]
    shares = [round(line.share, 2) for line in tree.bars.lines]
    assert shares == [0.8, 0.65, 0.4, 0.2, 0.05, 0.15, 0.2]
    assert [tree.class_of(digit) for digit in "1234"] == [0, 1, 2, None]


def test_a_click_on_a_node_unfolds_it_and_decides_nothing(tree, qtbot):
    decided = []
    tree.classes.decided.connect(decided.append)
    tree.bars.clicked.emit(tree.bars.index_of_row(6))
    assert names_of(tree)[6:] == ["▾ fish", "cod", "ling", "hake", "sole"]
    assert tree.class_of("4") == 6
    tree.bars.clicked.emit(tree.bars.index_of_row(0))
    assert names_of(tree)[0] == "▸ bird"
    assert decided == []
    tree.bars.clicked.emit(tree.bars.index_of_row(2))
    assert decided == [6]


def test_a_folded_class_is_found_by_its_name(tree):
    tree.find_class()
    tree.classes.field.setText("hooded")
    assert names_of(tree)[0] == "bird/crow/hooded"


def test_a_parent_is_found_by_its_name_and_a_decision_for_it_is_explained(tree, qtbot):
    decided = []
    tree.classes.decided.connect(decided.append)
    tree.find_class()
    qtbot.keyClicks(tree.classes.field, "bird")
    assert accessible_texts(tree.bars)[0] == "bird, 0.80, 0 votes"
    qtbot.keyClick(tree.classes.field, Qt.Key.Key_Return)
    assert decided == [len(BIRDS)]
    assert "bird" not in names_of(tree)
    tree.show_task(view(classes=BIRDS, posterior=None, parents=("bird", "bird/owl"), decided=10))
    assert "You decided bird." in visible_words(tree)


def test_median_and_interval_of_a_grade_stand_beside_the_posterior(panel):
    grades = view(classes=tuple("12345"), posterior=np.array([0, 0.1, 0.6, 0.2, 0.1]), grades=(2, 1, 4))
    panel.show_task(grades)
    assert "posterior 3 | median 3 (2 to 5)" in visible_words(panel)
