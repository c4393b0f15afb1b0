import sys

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.widgets.panels.card_panels import TaskList, TasksView, posterior_text
from tests.reading import accessible_text, visible_words

pytestmark = pytest.mark.usefixtures("dark")


@pytest.fixture
def tasks(qtbot):
    panel = TaskList()
    qtbot.addWidget(panel)
    panel.resize(236, 600)
    panel.show()
    return panel


def view(count=5, order=None, **changes) -> TasksView:
    posterior = np.linspace(0.51, 0.99, count)
    values = {
        "names": [f"task {index:04}" for index in range(count)],
        "order": np.arange(count) if order is None else np.asarray(order),
        "classes": ("not", "supernova"),
        "votes": np.full(count, 14),
        "decided": np.full(count, -1, dtype=np.int16),
        "known": np.full(count, -1, dtype=np.int16),
        "posterior": np.stack([posterior, 1 - posterior], axis=1),
    }
    return TasksView(**{**values, **changes})


def test_a_line_shows_the_posterior_and_the_decision(tasks):
    decided, known = np.full(5, -1), np.full(5, -1)
    decided[1], known[2], known[1] = 1, 0, 0
    tasks.set_view(view(decided=decided, known=known))
    assert accessible_text(tasks.view, 0) == "task 0000, posterior 0.51 / 0.49"
    assert accessible_text(tasks.view, 1) == "task 0001, decided: supernova, done"
    assert accessible_text(tasks.view, 2) == "task 0002, truth: not, done"


def test_of_many_classes_the_two_likeliest_are_named(tasks):
    assert posterior_text(("0", "1", "2", "3"), np.array([0.04, 0.96, 0.0, 0.0])) == "1: 0.96, 0: 0.04"
    posterior = np.array([[0.02, 0.31, 0.62, 0.05]])
    tasks.set_view(view(1, classes=("newt", "toad", "frog", "eft"), posterior=posterior))
    assert accessible_text(tasks.view, 0) == "task 0000, frog 0.62, toad 0.31"


def test_classes_of_a_hierarchy_are_listed_by_their_last_part(tasks):
    classes = ("bird/owl/eagle", "bird/owl/little", "bird/tit/blue", "mammal/cat/lynx")
    tasks.set_view(view(1, classes=classes, posterior=np.array([[0.44, 0.32, 0.2, 0.04]])))
    assert accessible_text(tasks.view, 0) == "task 0000, eagle 0.44, little 0.32"


def test_before_a_fusion_the_votes_are_reported(tasks):
    tasks.set_view(view(1, posterior=None))
    assert accessible_text(tasks.view, 0) == "task 0000, 14 votes"


def test_a_million_tasks_are_walked_and_gone_to_without_a_line_each(tasks, qtbot):
    count = 1_000_000
    names = np.char.mod("t%07d", np.arange(count))
    order = np.random.default_rng(0).permutation(count)
    before = sys.getallocatedblocks()
    tasks.set_view(view(count, order, names=names))
    assert sys.getallocatedblocks() - before < 10_000
    chosen = []
    tasks.chosen.connect(chosen.append)
    tasks.select(int(order[777_777]))
    assert chosen == []
    qtbot.keyClick(tasks.view, Qt.Key.Key_Down)
    qtbot.keyClick(tasks.view, Qt.Key.Key_Up)
    assert chosen == [int(order[777_778]), int(order[777_777])]
    assert tasks.view.rowAt(100) > 777_000


def test_what_is_current_stays_when_the_order_changes(tasks):
    tasks.set_view(view(400))
    tasks.select(300)
    chosen = []
    tasks.chosen.connect(chosen.append)
    tasks.set_view(view(400, np.arange(400)[::-1]))
    assert tasks.current == 300
    assert tasks.view.currentIndex().row() == 99
    tasks.set_view(view(400, [1, 2]))
    assert chosen == []
    tasks.go(1)  # what was current is filtered away: on with the first
    assert chosen == [1]


def test_going_on_passes_the_done_ones_and_stops_at_the_end(tasks):
    decided = np.array([-1, 0, 1, -1, 0])
    tasks.set_view(view(decided=decided))
    chosen = []
    tasks.chosen.connect(chosen.append)
    for by in (1, 1, 1, -1):
        tasks.go(by)
    assert chosen == [0, 3, 0]


def test_the_filter_is_requested_with_its_words_and_its_choice(tasks, qtbot):
    tasks.set_view(view())
    requests = []
    tasks.filter_changed.connect(lambda *arguments: requests.append(arguments))
    qtbot.keyClicks(tasks.filter, "41")
    tasks.choice.setCurrentIndex(tasks.choice.findData("few"))
    assert requests == [("4", "undecided"), ("41", "undecided"), ("41", "few")]
    tasks.set_view(view(order=[]))
    assert "No name under “few votes” contains “41”" in visible_words(tasks)
    assert "0 of 5" in visible_words(tasks)
    tasks.set_view(None)
    assert "No items yet." in visible_words(tasks)


def test_steps_show_what_follows_and_seldom_scroll(tasks):
    tasks.set_view(view(200))
    tasks.select(0)
    bar, rows, positions = tasks.view.verticalScrollBar(), tasks.view.viewport().height(), set()
    for row in range(1, 100):
        tasks.go(1)
        assert tasks.current == row
        assert 0 <= tasks.view.rowViewportPosition(row) <= rows - tasks.view.rowHeight(row)
        positions.add(bar.value())
    assert 2 < len(positions) < 30
