"""Undo of an import in the window, and tables that are imported twice."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox

from raterscope.app.review import Decision
from tests.app.driving import idle, open_study, press
from tests.app.test_reads import opens
from tests.waiting import LONG

__all__ = ["opens"]

FILES = {
    "clicks": "annotator,image,x,y\n" + "".join(f"new{n % 3},one.png,{n},{n}\n" for n in range(9)),
    "votes": "worker,item,answer\n" + "".join(f"w{n % 3},t{n // 3},{'ab'[n % 2]}\n" for n in range(12)),
}


@pytest.fixture
def opened(window, qtbot, study_file):
    return open_study(window, qtbot, study_file)


def box(window, qtbot):
    def shown():
        return [box for box in window.findChildren(QMessageBox) if box.isVisible()]

    qtbot.waitUntil(lambda: len(shown()) == 1, timeout=LONG)
    return shown()[0]


def press_button(window, qtbot, words):
    (button,) = (button for button in box(window, qtbot).buttons() if button.text() == words)
    button.click()
    idle(window, qtbot)


def test_a_folder_with_a_table_that_is_in_the_study_is_asked_about(opened, qtbot, tmp_path, opens):
    folder = tmp_path / "batch" / "deep"
    folder.mkdir(parents=True)
    dropped(opened, qtbot, folder, "clicks")
    opens.clear()
    opened.open_paths([folder.parent])
    assert box(opened, qtbot).text() == "clicks.csv is in the study already."
    assert not opens[folder / "clicks.csv"]
    press_button(opened, qtbot, "Skip")
    qtbot.waitUntil(lambda: "nothing that is not in the study already" in opened.notice.text, timeout=LONG)
    (folder / "votes.csv").write_text(FILES["votes"], encoding="utf-8")
    opened.open_paths([folder.parent])
    press_button(opened, qtbot, "Skip")
    qtbot.waitUntil(lambda: "12 votes" in opened.status.message, timeout=LONG)
    assert "clicks" not in opened.status.message
    assert not opens[folder / "clicks.csv"]
    assert opens[folder / "votes.csv"] <= 2
    opened.open_paths([folder.parent])
    assert box(opened, qtbot).text() == "clicks.csv (and 1 more) are in the study already."
    press_button(opened, qtbot, "Import again")
    assert "clicks.csv counts again" in opened.status.message


def dropped(window, qtbot, folder, *names):
    paths = [folder / f"{name}.csv" for name in names]
    for path in paths:
        if not path.exists():
            path.write_text(FILES[path.stem], encoding="utf-8")
    window.open_paths(paths)
    idle(window, qtbot)


def known(window):
    contents = window.document.contents
    return contents.annotators, {
        kind: [item.name for item in items] for kind, items in contents.items.items()
    }


@pytest.mark.parametrize("names", [("clicks",), ("votes",), ("clicks", "votes")])
def test_undo_takes_an_import_back(opened, qtbot, folder, names):
    before = known(opened)
    dropped(opened, qtbot, folder, *names)
    assert known(opened) != before
    press(opened, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    press_button(opened, qtbot, "Cancel")
    assert known(opened) != before
    assert opened.menus.undo_action.text().startswith(f"Undo import of {names[0]}.csv")
    opened.menus.undo_action.trigger()
    press_button(opened, qtbot, "Undo import")
    qtbot.waitUntil(lambda: "was undone" in opened.status.message, timeout=LONG)
    idle(opened, qtbot)
    assert known(opened) == before
    assert not opened.menus.undo_action.isEnabled()


def test_undo_takes_later_decisions_back_first(opened, qtbot, folder):
    dropped(opened, qtbot, folder, "clicks")
    opened.document.record(Decision(verb="exclude", annotators=("careless",)))
    idle(opened, qtbot)
    assert opened.menus.undo_action.text() == "Undo exclude annotator careless"
    opened.menus.undo_action.trigger()
    idle(opened, qtbot)
    assert opened.menus.undo_action.text() == "Undo import of clicks.csv"


def test_a_fusion_ends_the_offer_to_undo_the_import(opened, qtbot, folder):
    dropped(opened, qtbot, folder, "clicks")
    assert opened.menus.undo_action.isEnabled()
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened.document.runs_of("clicks")), timeout=LONG)
    idle(opened, qtbot)
    assert not opened.menus.undo_action.isEnabled()


def test_a_table_that_is_in_the_study_is_imported_again_or_skipped(opened, qtbot, folder):
    dropped(opened, qtbot, folder, "clicks")
    count = len(opened.document.contents.annotators)
    dropped(opened, qtbot, folder, "clicks")
    assert box(opened, qtbot).text() == "clicks.csv is in the study already."
    press_button(opened, qtbot, "Skip")
    assert opened.status.message == "Nothing was imported: clicks.csv is in the study already."
    dropped(opened, qtbot, folder, "clicks", "votes")
    press_button(opened, qtbot, "Skip")
    assert "12 votes" in opened.status.message
    assert "clicks" not in opened.status.message
    dropped(opened, qtbot, folder, "clicks")
    press_button(opened, qtbot, "Import again")
    assert "clicks.csv counts again" in opened.status.message
    assert len(opened.document.contents.annotators) == count + 3
