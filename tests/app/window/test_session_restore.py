"""Session restore: after a crash the window offers to reopen the last study."""

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from raterscope.app.window import preferences
from raterscope.app.window.main_window import MainWindow
from raterscope.app.window.preferences import Position, SessionNote, crashed_session
from tests.app.driving import LONG, idle, open_study

AT_WORK = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from raterscope.app.window import preferences
from raterscope.app.window.main_window import MainWindow

QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, sys.argv[2])
application = QApplication([])
window = MainWindow()
window.show()
window.open_paths([Path(sys.argv[1])])

def until(done):
    while not done():
        application.processEvents()
        time.sleep(0.005)

until(lambda: window.workspace is not None and window.workspace.current_item() is not None)
workspace = window.workspace
workspace.go_to(window.document.contents.images[1].id)
until(lambda: window.status.text.text().startswith("two.png") and not window.busy)
workspace.reviewing.next_disputed()
workspace.annotators.choose(3)
workspace.canvas.look_from(120.0, 60.0, 6.0)
workspace.left_tabs.setCurrentWidget(workspace.stream)
(note,) = (preferences.folder() / "whereabouts").glob("*.json")
until(lambda: "Stream" in note.read_text())
until(lambda: '"spot": null' not in note.read_text() and '"view": null' not in note.read_text())
print(workspace.reviewing.spot.number, flush=True)
until(lambda: False)
"""


def _killed(study, settings):
    """Run a window in a process of its own until it is at a spot, kill it, and return the spot's number."""
    run = [sys.executable, "-c", AT_WORK, str(study), str(settings)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        number = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
        process.wait()
    return number


def _write_note(study):
    """Leave the note of a window that did not close."""
    folder = preferences.folder() / "whereabouts"
    folder.mkdir(parents=True)
    (folder / "1-1.json").write_text(json.dumps({"study": str(study), "kind": "clicks", "item": 1}))


def offered(window, qtbot):
    """Let a window look where one was, and offer to go there if it has to."""
    window.session_restore.offer()
    idle(window, qtbot)


def test_a_killed_window_is_reopened_at_the_spot_as_it_was_looked_at(
    study_file, study_fused, tmp_path, window, qtbot
):
    shutil.copy(study_fused, study_file)
    number = _killed(study_file, tmp_path / "settings")
    offered(window, qtbot)
    assert window.reopen_bar.isVisible()
    assert "Reopen small.rscope, workspace Clicks" in window.reopen_bar.label.text()
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Space)
    qtbot.waitUntil(
        lambda: window.workspace is not None and window.workspace.reviewing.spot is not None, timeout=LONG
    )
    idle(window, qtbot)
    workspace = window.workspace
    assert window.status.text.text().startswith("two.png")
    assert workspace.review_queue.current == window.document.contents.images[1].id
    assert not window.reopen_bar.isVisible()
    assert str(workspace.reviewing.spot.number) == number
    assert workspace.table.current == 3
    view = workspace.canvas.viewport
    assert view.scale == pytest.approx(6.0)
    assert view.centre == pytest.approx((120.0, 60.0), abs=1)
    assert workspace.left_tabs.currentWidget() is workspace.stream


def test_a_note_with_missing_objects_is_ignored(fused):
    before = fused.workspace.canvas.viewport
    for within in (
        {"spot": "x", "annotator": 7, "view": [1, 2], "tabs": 3},
        {"spot": 10**9, "annotator": "nobody", "view": [1, 2, 0], "tabs": "none\nsuch"},
        {"view": ["a", None, float("nan")], "spot": [1], "annotator": []},
    ):
        fused.workspace.restore_view(within)
        assert fused.workspace.canvas.viewport == before


def test_a_declined_offer_is_not_repeated(study_file, window, qtbot):
    _write_note(study_file)
    offered(window, qtbot)
    assert window.reopen_bar.isVisible()
    qtbot.mouseClick(window.reopen_bar.decline, Qt.MouseButton.LeftButton)
    assert not window.reopen_bar.isVisible()
    offered(window, qtbot)
    assert not window.reopen_bar.isVisible()


@pytest.mark.parametrize(
    "note",
    ["", "no json", "[]", '{"study": 3, "kind": "clicks"}', '{"study": "/nowhere", "kind": "x"}'],
)
def test_an_incomplete_note_offers_nothing(tmp_path, note):
    (tmp_path / "1-1.json").write_text(note)
    assert crashed_session(tmp_path) is None


def test_an_unwritable_note_raises_no_error(tmp_path, study_file):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    whereabouts = SessionNote(blocked / "whereabouts")
    whereabouts.note_position(Position(study_file, "clicks", 1))
    whereabouts.end()


def test_a_drive_that_does_not_answer_holds_no_window_up(qtbot, monkeypatch):
    """Neither at the start, where one was and lately was, nor when the menu is opened."""
    answers, requests = threading.Event(), []

    def hangs(path):
        requests.append(path)
        assert answers.wait(300)
        return False

    destination = Path("/unplugged/drive/s.rscope")
    preferences.remember_recent(destination)
    _write_note(destination)
    monkeypatch.setattr(Path, "is_file", hangs)
    monkeypatch.setattr("raterscope.app.window.preferences.DRIVE_TIMEOUT_MS", 50)
    window = MainWindow()
    qtbot.addWidget(window)
    window.session_restore.offer()
    window.menus.menu.aboutToShow.emit()
    qtbot.waitUntil(lambda: requests == [destination, destination], timeout=LONG)
    offered = [action.text() for action in window.menus.recent_menu.actions()]
    assert offered == [str(destination)]
    assert window.files.folder() == ""
    qtbot.waitUntil(lambda: not window.busy, timeout=LONG)  # it is waited for no longer
    answers.set()
    window.close()


def test_no_offer_of_a_study_that_is_open_was_closed_or_has_gone(opened, qtbot, tmp_path):
    gone = tmp_path / "gone.rscope"
    preferences.remember_recent(gone)
    opened.menus.menu.aboutToShow.emit()
    idle(opened, qtbot)
    recent = [action.text() for action in opened.menus.recent_menu.actions()]
    assert recent == [str(opened.document.contents.path)]

    second = MainWindow()
    qtbot.addWidget(second)
    offered(second, qtbot)
    assert not second.reopen_bar.isVisibleTo(second)
    second.close()

    assert list((preferences.folder() / "whereabouts").glob("*.json"))
    opened.close()
    second = MainWindow()
    qtbot.addWidget(second)
    offered(second, qtbot)
    assert not second.reopen_bar.isVisibleTo(second)
    assert not list((preferences.folder() / "whereabouts").iterdir())


def test_a_moved_study_opens_at_the_same_place_again(window, qtbot, everything):
    open_study(window, qtbot, everything)
    window.show_workspace("labels")
    idle(window, qtbot)
    second = window.document.contents.of("labels")[1].id
    window.workspace.go_to(second)
    idle(window, qtbot)
    window.note_position()
    moved = everything.rename(everything.with_name("moved.rscope"))
    qtbot.waitUntil(lambda: window.document.file_state.path == moved, timeout=LONG)
    window.moved_study.continue_there()
    qtbot.waitUntil(lambda: getattr(window.document.contents, "path", None) == moved, timeout=LONG)
    idle(window, qtbot)
    assert (window._kind, window.workspace.current_item()) == ("labels", second)
