"""After a crash the window offers to go back to where one was."""

import signal
import subprocess
import sys

import pytest
from PySide6.QtCore import Qt

from raterscope.app import memory
from raterscope.app.main_window import MainWindow
from raterscope.app.whereabouts import Place, Whereabouts, left_by_crash
from tests.app.driving import LONG, idle

AT_WORK = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from raterscope.app.main_window import MainWindow

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
second = window.document.contents.images[1].id
window.workspace.go_to(second)
until(lambda: window.status._text.text().startswith("two.png") and not window.jobs.busy)
print("there", flush=True)
until(lambda: False)
"""


@pytest.fixture
def killed(study_file, tmp_path):
    """A study that another process had open, at its second image, when it was killed."""
    run = [sys.executable, "-c", AT_WORK, str(study_file), str(tmp_path / "settings")]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "there\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    return study_file


def _is_at(window, name):
    return window.workspace is not None and window.status._text.text().startswith(name)


def test_a_killed_window_is_reopened_at_the_image_it_showed(killed, window, qtbot):
    window.reopening.offer()
    assert window.offer.isVisible()
    assert "Go back to small.rscope, workspace Clicks" in window.offer.words.text()
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: _is_at(window, "two.png"), timeout=LONG)
    idle(window, qtbot)
    assert _is_at(window, "two.png")
    assert window.workspace.queueing.current == window.document.contents.images[1].id
    assert not window.offer.isVisible()


def test_who_declines_is_not_asked_again(killed, window, qtbot):
    window.reopening.offer()
    qtbot.mouseClick(window.offer.decline, Qt.MouseButton.LeftButton)
    assert not window.offer.isVisible()
    window.reopening.offer()
    assert not window.offer.isVisible()


def test_a_window_that_was_closed_offers_nothing(opened, qtbot):
    assert list((memory.folder() / "whereabouts").glob("*.json"))
    opened.close()
    again = MainWindow()
    qtbot.addWidget(again)
    again.reopening.offer()
    assert not again.offer.isVisibleTo(again)
    assert not list((memory.folder() / "whereabouts").iterdir())


def test_a_window_that_is_still_open_is_no_crash(opened, qtbot):
    second = MainWindow()
    qtbot.addWidget(second)
    second.reopening.offer()
    assert not second.offer.isVisibleTo(second)
    second.close()


@pytest.mark.parametrize(
    "note",
    ["", "no json", "[]", '{"study": 3, "kind": "clicks"}', '{"study": "/nowhere", "kind": "x"}'],
)
def test_a_note_that_was_not_written_whole_offers_nothing(tmp_path, note):
    (tmp_path / "1-1.json").write_text(note)
    assert left_by_crash(tmp_path) is None


def test_a_place_that_cannot_be_written_down_bothers_nobody(tmp_path, study_file):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    whereabouts = Whereabouts(blocked / "whereabouts")
    whereabouts.be_at(Place(study_file, "clicks", 1))
    whereabouts.end()
