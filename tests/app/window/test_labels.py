"""Import of labels in the window: tables, truths and pictures, and questions about unknown headers."""

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from raterscope.app.study.labels import pictures_of
from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog
from tests.app.driving import LONG, idle
from tests.app.kinds.labels.test_imports import digits, truths, votes, written


def brought(window, qtbot, paths, news):
    window.open_paths(list(paths))
    qtbot.waitUntil(lambda: news in window.status.message, timeout=LONG)
    idle(window, qtbot)
    return window.document.contents


def pictures(window, qtbot):
    job = window.document.ask("Looking", lambda study, _: pictures_of(study, 1))
    with qtbot.waitSignal(job.finished, timeout=LONG) as signal:
        pass
    return signal.args[0]


def test_votes_truths_and_pictures_dropped_together_become_a_study(window, qtbot, folder):
    shown = digits(folder / "cells", ["c0.png", "c3.png"])
    contents = brought(window, qtbot, [*shown, truths(folder / "truth.csv"), votes(folder / "votes.csv")],
                       "2 tasks have a picture now")  # fmt: skip
    assert "8 votes by 2 annotators on 4 tasks" in window.status.message
    assert contents.annotators == ("ann", "bob")
    assert window.workspace.current_item() == contents.of("labels")[0].id
    assert not contents.of("clicks")
    assert not contents.of("masks")


def test_pictures_may_come_when_the_study_knows_their_tasks(window, qtbot, folder):
    brought(window, qtbot, [votes(folder / "votes.csv")], "8 votes")
    contents = brought(window, qtbot, digits(folder / "cells", ["c0.png", "c3.png"]), "2 images")
    assert sorted(pictures(window, qtbot)) == [0, 3]
    assert not contents.of("masks")


@pytest.mark.parametrize("kind", ["labels", "true labels"])
def test_an_unknown_header_may_be_of_labels_or_truths(window, qtbot, folder, kind):
    brought(window, qtbot, [votes(folder / "votes.csv")], "8 votes")
    strange = written(folder / "strange.csv", "wer,was,gesagt", "eve,c0,dog", "eve,c2,dog")
    window.open_paths([strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    assert dialog.columns.kind.currentText() == "labels"
    dialog.columns.kind.setCurrentText(kind)
    fields = {"labels": ("annotator", "task", "label"), "true labels": ("", "task", "truth")}[kind]
    for choice, field in zip(dialog.columns.choices, fields, strict=True):
        choice.setCurrentIndex(choice.findData(field))
    dialog.accept()
    news = {"labels": "2 votes by 1 annotator", "true labels": "the truth of 2 tasks"}[kind]
    qtbot.waitUntil(lambda: news in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert ("eve" in window.document.contents.annotators) is (kind == "labels")


def test_a_short_table_is_asked_about_as_one_column_per_annotator(window, qtbot, folder):
    table = written(folder / "short.csv", "task,anna,ben", "c0,cat,dog", "c1,dog,dog", "c2,cat,cat")
    window.open_paths([table])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    assert any("do not show whether anna, ben are" in label.text() for label in dialog.findChildren(QLabel))
    assert dialog.columns.kind.currentText() == "labels, one column per annotator"
    assert dialog.mapping == {"task": "task", "anna": "votes", "ben": "votes"}
    dialog.accept()
    qtbot.waitUntil(lambda: "6 votes by 2 annotators" in window.status.message, timeout=LONG)
    idle(window, qtbot)


def test_a_file_with_unknown_columns_may_be_skipped(window, qtbot, folder):
    strange = written(folder / "strange.csv", "wer,was,gesagt", "eve,c0,dog")
    window.open_paths([votes(folder / "votes.csv"), strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    next(button for button in dialog.findChildren(QPushButton) if button.text() == "Skip this file").click()
    qtbot.waitUntil(lambda: "8 votes" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert "eve" not in window.document.contents.annotators

    window.open_paths([strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    assert "Skip this file" not in [button.text() for button in dialog.findChildren(QPushButton)]
    dialog.reject()
    assert "Nothing was imported" in window.status.message


def test_a_bad_table_of_labels_is_one_sentence_and_leaves_no_study(window, qtbot, folder):
    window.open_paths([written(folder / "votes.csv", "annotator,task,label", "ann,c0,cat", "bob,c0")])
    qtbot.waitUntil(lambda: window.notice.isVisible(), timeout=LONG)
    assert "votes.csv" in window.notice.text
    assert "line 3" in window.notice.text
    assert window.document.contents is None
    assert not list(folder.glob("*.rscope"))
