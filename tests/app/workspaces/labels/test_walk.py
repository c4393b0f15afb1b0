"""One queue through the tasks of all questions: digits reach everything and overwrite nothing."""

from collections import Counter

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from tests.app.driving import open_study, press
from tests.app.workspaces.labels.driving import fuse, key
from tests.app.workspaces.walking import decisions, left, nothing_left, walk

QUESTIONS = ("Is it infected?", "Is it torn?")
DISPUTED = {QUESTIONS[0]: (0, 3, 4), QUESTIONS[1]: (1, 5)}
TASKS = 7


@pytest.fixture
def walked(window, qtbot, tmp_path):
    """Two questions about seven tasks, on some of which two of five people say otherwise."""
    rows = ["annotator,question,task,label"]
    for question, disputed in DISPUTED.items():
        for task in range(TASKS):
            for annotator in range(5):
                label = "no" if task in disputed and annotator < 2 else "yes"
                rows.append(f'ann {annotator},"{question}",cell-{task},{label}')
        rows.append(f'ann 5,"{question}",cell-6,yes')
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    path = tmp_path / "two.rscope"
    with Study.create(path) as study:
        store(read_files([tmp_path / "votes.csv"]), study)
        requested = [question.id for question in study.questions()]
        keep(fuse_inputs(gather(requested, study), LabelPlan.make("majority")), study)
    open_study(window, qtbot, path)
    return window, path


def check_counts(window):
    workspace = window.workspace
    text = workspace.queue._progress.accessibleName()
    here = workspace.tasks.waiting
    assert f"of 2: {int((workspace.tasks.decided >= 0).sum())} decided, {here} disputed left" in text
    assert f"{here} disputed and undecided" in window.status.text.text()
    if nothing_left(window):
        assert left(window) == 0


def test_digits_alone_reach_every_disputed_task_of_both_questions_once(walked, qtbot):
    window, path = walked
    total = sum(map(len, DISPUTED.values()))
    assert left(window) == total
    view = window.workspace.queue.view
    visited = walk(window, qtbot, [Qt.Key.Key_1, Qt.Key.Key_2], view, lambda: check_counts(window))
    assert visited[-1] == 0
    for index in (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_S):
        press(window, qtbot, index, on=view)
        assert "decided already" in window.status.message
    recorded = decisions(window, path)
    assert len(recorded) == total
    assert max(Counter((decision.item, decision.subject.task) for decision in recorded).values()) == 1
    assert {decision.subject.task for decision in recorded} == {
        f"cell-{n}" for few in DISPUTED.values() for n in few
    }


def test_skipped_tasks_come_last_and_a_decided_one_is_changed_when_it_is_chosen(walked, qtbot):
    window, path = walked
    workspace, view = window.workspace, window.workspace.queue.view
    first = workspace.tasks.current
    name = workspace.session.scene.labels.tasks[first]
    press(window, qtbot, Qt.Key.Key_S, on=view)
    assert "1 skipped" in workspace.queue._progress.accessibleName()
    walk(window, qtbot, [Qt.Key.Key_1], view, lambda: check_counts(window))
    workspace.queue.chosen.emit(workspace.tasks.current)
    press(window, qtbot, Qt.Key.Key_2, on=view)
    recorded = decisions(window, path)
    assert [decision.verb for decision in recorded] == ["skip", *["label"] * 6]
    assert recorded[5].subject.task == recorded[6].subject.task == name
    assert recorded[5].subject.label != recorded[6].subject.label


def test_tab_walks_through_both_questions(walked, qtbot):
    window, _ = walked
    workspace = window.workspace
    calls = []
    for _ in range(10):
        press(window, qtbot, Qt.Key.Key_Tab, on=workspace.wall)
        calls.append((workspace.session.scene.question.name, workspace.tasks.current))
    assert len(set(calls)) == 5
    assert calls[:5] == calls[5:]
    assert np.unique([name for name, _ in calls]).size == 2


def test_decisions_still_count_above_the_list_once_the_next_run_holds_them_fixed(walked, qtbot):
    window, _ = walked
    workspace, progress = window.workspace, window.workspace.queue._progress
    assert "of 2: 0 decided, 3 disputed left, 5 of 5 disputed tasks matter" in progress.accessibleName()
    key(window, qtbot, Qt.Key.Key_1)
    undisputed = workspace.session.scene.number_of["cell-1"]
    workspace.tasks.select(undisputed)
    key(window, qtbot, Qt.Key.Key_2)
    assert "of 2: 2 decided, 2 disputed left" in progress.accessibleName()
    fuse(window, qtbot)
    assert "of 2: 2 decided, 2 disputed left" in progress.accessibleName()
