"""A queue whose lines change one by one shows the same as one that is filled again."""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtGui import QFontMetrics

from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.panels.queue_items import QueueFilter, QueueItem, shortened_title
from raterscope.widgets.panels.queue_panel import LongQueue, QueuePanel
from tests.widgets.test_names import SPOTS

FILTERS = (QueueFilter("all", "all"), QueueFilter("undecided", "undecided", "Everything is decided."))


def shown(panel):
    index = panel.view.currentIndex()
    return (
        list(panel.shown()), index.row(),
        panel.header.text(),
        panel._kind.most, panel.current,
    )  # fmt: skip


@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize("words", ["", "1 disputed"])
def test_lines_changed_one_by_one_are_as_if_filled_again(qtbot, chosen, words):
    draw = random.Random(3)
    changed, filled = QueuePanel("Images", FILTERS), QueuePanel("Images", FILTERS)
    items = [QueueItem(key, f"image {key}", "1 disputed", 1.0 + key % 3, done=False) for key in range(40)]
    for panel in (changed, filled):
        qtbot.addWidget(panel)
        panel.choice.setCurrentIndex(chosen)
        panel.filter.setText(words)
        panel.set_items(items)
        panel.set_current(5)
    for _ in range(200):
        number = draw.randrange(len(items))
        left = draw.choice((0, 0, 1, 2))
        items[number] = replace(
            items[number], done=left == 0, detail=f"{left} disputed", score=draw.choice((0.0, 0.5, 2.0, 7.0))
        )
        changed.update_item(items[number])
        filled.set_items(items)
        assert shown(changed) == shown(filled)
        assert all(changed.row_of(item.key) == row for row, item in enumerate(changed.shown()))


def test_a_long_sentence_above_the_queue_takes_two_lines(qtbot):
    panel = QueuePanel()
    qtbot.addWidget(panel)
    panel.resize(236, 600)
    panel.show()
    panel.set_progress(0.2, "Image 1 of 2: 0 decided", "56,366 of 69,799 disputed spots matter")
    low = panel._progress.height()
    assert not any("…" in line for line, _ in panel._progress._lines)
    panel.resize(500, 600)
    qtbot.waitUntil(lambda: panel._progress.height() < low)


def test_a_line_shows_its_doubt_with_a_unit(qtbot):
    panel = QueuePanel("Cases")
    qtbot.addWidget(panel)
    panel.set_items([QueueItem(1, "case 1", "2 disputed regions", 12.34, False, amount="12.34 ml")])
    kind = panel._kind
    assert "12.34 ml" in kind.tip(QueueItem(1, "case 1", "", 12.34, False, amount="12.34 ml"))
    assert "ml" not in kind.tip(QueueItem(1, "case 1", "", 12.34, True, amount="12.34 ml"))


def test_counts_of_a_group_follow_its_items(qtbot):
    panel = QueuePanel("Images", FILTERS)
    qtbot.addWidget(panel)
    item = QueueItem(1, "image 1", "2 disputed", 1.0, done=False, counts={"disputed": 2})
    panel.set_items([item])
    panel.set_groups({1: "patient 1"})
    panel.group.setCurrentIndex(1)
    panel.update_item(replace(item, counts={"disputed": 1}))
    assert panel._group_label.text() == "1 in the group | 0 decided | 1 disputed"


def test_names_of_a_pattern_stay_distinct_in_a_narrow_queue(qtbot):
    titles = [f"cells__MAX_nspots{spots}_snr5_img.png" for spots in (50, 150)]
    panel = QueuePanel("Images", FILTERS)
    qtbot.addWidget(panel)
    panel.resize(236, 400)
    items = [
        QueueItem(title, title, "10 disputed", 3.0, done=False, amount="3.01 errors") for title in titles
    ]
    panel.set_items([*items, QueueItem("c", "cells__MAX_nspots150_snr20_img.png", "", 1.0, done=False)])
    panel.show()
    lines = [panel.view.visualRect(panel.view.model().index(row, 0)) for row in range(2)]
    pictures = [panel.view.viewport().grab(line.adjusted(12, 0, 0, 0)).toImage() for line in lines]
    assert pictures[0] != pictures[1]


def test_the_current_item_stays_visible_when_another_run_sorts_the_queue(qtbot):
    def view(order):
        return SimpleNamespace(
            names=[], total=len(order), order=order,
            item=lambda number: QueueItem(number, f"t{number}", "", 1.0, done=False),
        )  # fmt: skip

    queue = LongQueue("Tasks", {"all": "all"})
    qtbot.addWidget(queue)
    queue.resize(236, 600)
    queue.show()
    numbers = np.arange(500)
    queue.set_view(view(numbers))
    queue.select(300)
    assert queue.view.is_line_visible(300)
    queue.set_view(view(numbers[::-1]))
    assert queue.row == 199
    assert queue.view.is_line_visible(199)
    queue.view.scrollToBottom()
    queue.set_view(view(numbers))
    assert queue.row == 300
    assert not queue.view.is_line_visible(300)  # the user looked elsewhere


def test_a_title_is_elided_at_most_once(qtbot):
    panel = QueuePanel()
    qtbot.addWidget(panel)
    metrics = QFontMetrics(panel.font())
    names = [SPOTS.format(spots, noise) for spots in (50, 100) for noise in (5, 20)]
    labels = distinguishing_labels(names) | {"beads__beads_300pxroi.png": "beads__beads_300pxroi.png"}
    for room in range(30, 600, 3):
        shown = [shortened_title(name, brief, metrics, room) for name, brief in labels.items()]
        assert all(text.count("…") <= 1 and metrics.horizontalAdvance(text) <= room for text in shown)
    assert shown == list(labels)
