"""Several questions with the same annotators in one study: chosen, fused, decided, kept apart."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox

from raterscope.app.importing import read_files, store
from raterscope.app.study import Study
from tests.app.driving import idle, open_study, press
from tests.app.workspaces.labels.driving import fuse, key
from tests.reading import accessible_texts

ASKED = {
    "Is this cell infected rather than healthy?": ("healthy", "infected"),
    "Which stage is it?": ("gametocyte", "ring", "schizont", "trophozoite"),
}


@pytest.fixture
def two(window, qtbot, tmp_path):
    """Two questions about ten tasks, six people, who agree but the last."""
    rows = [
        f'ann {annotator},"{question}",cell-{at},{classes[(at + (annotator == 5)) % len(classes)]}'
        for question, classes in ASKED.items()
        for annotator in range(6)
        for at in range(10)
    ]
    truth = [f'"{question}",cell-0,{classes[0]}' for question, classes in ASKED.items()]
    for name, lines in (
        ("votes", ["annotator,question,task,label", *rows]),
        ("truth", ["question,task,label", *truth]),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    with Study.create(tmp_path / "two.rscope") as study:
        store(read_files([tmp_path / "votes.csv", tmp_path / "truth.csv"]), study)
    return open_study(window, qtbot, tmp_path / "two.rscope")


def test_questions_are_chosen_bookmarked_fused_and_decided_each_by_itself(two, monkeypatch, qtbot):
    monkeypatch.setattr(QComboBox, "showPopup", lambda box: None)  # offscreen nothing can hold the keys
    box = two.workspace.question
    box.showPopup()
    wanted = max(box.fontMetrics().horizontalAdvance(words) for words in ASKED)
    assert box.width() < wanted < box.view().minimumWidth()

    workspace = two.workspace
    task = int(workspace.queue.order[4])
    workspace.tasks.select(task)
    press(two, qtbot, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    idle(two, qtbot)
    key(two, qtbot, Qt.Key.Key_PageDown)
    assert workspace.question.currentText() == list(ASKED)[1]
    press(two, qtbot, Qt.Key.Key_PageDown, Qt.KeyboardModifier.AltModifier)
    idle(two, qtbot)
    assert workspace.question.currentText() == next(iter(ASKED))
    assert workspace.tasks.current == task
    assert workspace.comments.mark.isVisible()

    first, second = ASKED
    assert workspace.question.isVisible()
    assert two.status.text.text().startswith(first)
    fuse(two, qtbot)
    assert workspace.session.scene.classes == ASKED[first]
    assert workspace.session.analysis.model.judged == 1
    key(two, qtbot, Qt.Key.Key_2)
    key(two, qtbot, Qt.Key.Key_PageDown)
    assert workspace.question.currentText() == second
    assert two.status.text.text().startswith(second)
    assert workspace.session.scene.fusion is not None  # both were fused at once
    assert workspace.session.scene.classes == ASKED[second]
    assert workspace.session.analysis.model.judged == 1
    assert (workspace.tasks.decided < 0).all()
    assert len(accessible_texts(workspace.task_panel.bars)) == 4
    key(two, qtbot, Qt.Key.Key_4)
    names = [contents.name for contents in two.document.contents.of("labels")]
    ids = [contents.id for contents in two.document.contents.of("labels")]
    assert names == [first, second]
    decided = [list(two.document.contents.review.tasks(item).values()) for item in ids]
    assert [[item.label for item in tasks] for tasks in decided] == [["infected"], ["trophozoite"]]
