"""Import of comparisons in the window: tables and pictures, and questions about unknown headers."""

import pytest
from PySide6.QtWidgets import QFileDialog

from raterscope.app.study.pairs import item_pictures
from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog
from tests.app.driving import LONG, idle
from tests.app.kinds.pairs.made import HEADER
from tests.app.kinds.pairs.test_imports import ROWS, digits
from tests.app.tables import write


def brought(window, qtbot, path, news):
    window.open_paths([path])
    qtbot.waitUntil(lambda: news in window.status.message, timeout=LONG)
    idle(window, qtbot)
    return window.document.contents


def test_comparisons_become_a_study_and_pictures_may_come_later(window, qtbot, folder):
    words = "4 comparisons of 3 items by 2 annotators"
    contents = brought(window, qtbot, write(folder / "better.csv", HEADER, ROWS), words)
    assert window.workspace.current_item() == contents.of("pairs")[0].id
    has_keys = window.focusWidget()
    assert has_keys.isVisible()
    assert window.workspace.isAncestorOf(has_keys)
    pictures = digits(folder / "cells", ["c0.png", "c2.png"])[0].parent
    contents = brought(window, qtbot, pictures, "2 items have a picture now")
    assert not contents.of("masks")
    job = window.document.ask("Looking", lambda study, _: item_pictures(study, 1))
    with qtbot.waitSignal(job.finished, timeout=LONG) as signal:
        pass
    assert sorted(signal.args[0]) == [0, 2]


@pytest.mark.parametrize("header", ["annotator,left,right,gesagt", "wer,p,q,gesagt"])
def test_an_unknown_header_may_be_of_pairs(window, qtbot, folder, header):
    window.open_paths([write(folder / "strange.csv", header.split(","), ROWS)])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    if "left" in header:
        assert dialog.columns.kind.currentText() == "pairs"
    dialog.columns.kind.setCurrentText("pairs")
    for choice, field in zip(dialog.columns.choices, HEADER, strict=True):
        choice.setCurrentIndex(choice.findData(field))
    dialog.accept()
    qtbot.waitUntil(lambda: "4 comparisons of 3 items" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.annotators == ("ann", "bob")


@pytest.mark.parametrize("sure", [True, False])
def test_an_export_of_several_questions_asks_for_a_folder(window, qtbot, folder, tmp_path, monkeypatch, sure):
    rows = [(*row, requests) for row in ROWS for requests in ("older?", "sharper?")]
    brought(window, qtbot, write(folder / "two.csv", (*HEADER, "question"), rows), "4 comparisons")
    out, requests = tmp_path / "out", []
    out.mkdir()

    def answer(_parent, words, _place):
        requests.append(words)
        return str(out) if sure else ""

    monkeypatch.setattr(QFileDialog, "getExistingDirectory", answer)
    menu = {action.text(): action for action in window.menus.export_menu.actions()}
    menu["Comparisons…"].trigger()
    if sure:
        qtbot.waitUntil(lambda: "and 1 more." in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert requests == ["Export comparisons: select a folder for the files of 2 questions"]
    assert sorted(path.name for path in out.iterdir()) == (
        ["older_pairs.csv", "sharper_pairs.csv"] if sure else []
    )


def test_a_study_of_labels_shows_the_comparisons_that_come_later(window, qtbot, folder):
    votes = write(
        folder / "votes.csv", ["annotator", "task", "label"], [["ann", "t", "cat"], ["bob", "t", "dog"]]
    )
    brought(window, qtbot, votes, "2 votes")
    labels = window.workspace
    brought(window, qtbot, write(folder / "better.csv", HEADER, ROWS), "4 comparisons")
    assert window.workspace is not labels
    assert window.workspace.current_item() == window.document.contents.of("pairs")[0].id
    brought(window, qtbot, write(folder / "more.csv", HEADER, ROWS[:1]), "comparison")
    assert window.workspace is not labels
