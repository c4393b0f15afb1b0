"""Annotators who may copy are listed below the communities, and can be selected and excluded."""

import numpy as np

from raterscope.app.study import Study
from raterscope.app.study.labels import add_votes
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.labels.driving import fuse
from tests.app.workspaces.labels.made import table, votes


def test_two_copying_annotators_are_listed_and_selected(window, qtbot, tmp_path):
    _, answers = votes()
    answers = answers.copy()
    wrong = np.random.default_rng(4).random(len(answers)) < 0.35
    answers[wrong, 3] = 1 - answers[wrong, 3]
    answers[:, 8] = answers[:, 3]
    with Study.create(tmp_path / "copied.rscope") as study:
        add_votes(study, table(tmp_path, answers))
    open_study(window, qtbot, tmp_path / "copied.rscope")
    cards = window.workspace.cards
    assert not cards.copies.isVisible()
    fuse(window, qtbot)
    qtbot.waitUntil(cards.copies.isVisible, timeout=LONG)
    assert cards.copies.text().startswith("2 annotators may copy: 100 % the same answers, ")
    cards.copies.click()
    idle(window, qtbot)
    assert window.workspace.session.selection == (3, 8)


def test_without_copying_nothing_is_listed(fused, qtbot):
    idle(fused, qtbot)
    assert not fused.workspace.cards.copies.isVisible()
