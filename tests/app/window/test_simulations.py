"""Simulations and the page of the papers, started from the menu."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QPushButton

from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window import start_page
from raterscope.widgets.dialogs.output_dialogs import PapersDialog, SimulationDialog
from tests.app.driving import LONG, command, idle


@pytest.fixture
def simulating(window):
    command(window, "Simulate…")
    (dialog,) = window.findChildren(SimulationDialog)
    return dialog


def choose(dialog, name):
    dialog.setup.setCurrentIndex(list(SETUPS).index(name))


def test_a_set_up_is_simulated_and_opened(window, simulating, qtbot, tmp_path):
    choose(simulating, "voting")
    simulating.folder_field.text = str(tmp_path / "x")
    simulating.forms[list(SETUPS).index("voting")].editors()["clusters"].setText("7")
    simulating.accept()
    qtbot.waitUntil(lambda: window.document.contents is not None, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.path == tmp_path / "x" / "voting.rscope"
    (question,) = window.document.contents.of("labels")
    assert window.workspace is not None
    assert len((tmp_path / "x" / "truth.csv").read_text().splitlines()) == 8
    assert question


def test_cancel_leaves_nothing(window, simulating, qtbot, tmp_path):
    choose(simulating, "prostate")
    simulating.folder_field.text = str(tmp_path / "x")
    for name in ("rows", "columns"):
        simulating.forms[list(SETUPS).index("prostate")].editors()[name].setText("200")
    simulating.accept()
    cancel = next(button for button in window.bar.findChildren(QPushButton) if button.text() == "Cancel")
    qtbot.waitUntil(cancel.isVisible, timeout=LONG)
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.jobs.busy and not list(tmp_path.iterdir()), timeout=LONG)
    assert window.document.contents is None


def test_a_folder_with_files_is_refused_in_the_window(window, simulating, qtbot, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    choose(simulating, "voting")
    simulating.folder_field.text = str(tmp_path)
    simulating.accept()
    qtbot.waitUntil(lambda: "is not empty" in window.notice.text, timeout=LONG)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_invalid_settings_cannot_be_accepted(simulating):
    choose(simulating, "overlapping")
    editor = simulating.forms[0].editors()["annotators"]
    for text, possible in (("0", False), ("12", True)):
        editor.setText(text)
        editor.textEdited.emit(text)
        assert simulating.accepting.isEnabled() is possible
    simulating.folder_field.text = ""
    assert not simulating.accepting.isEnabled()


def test_a_folder_that_was_typed_stays_when_another_set_up_is_chosen(simulating):
    choose(simulating, "bias")
    assert simulating.folder.endswith("/simulated-bias")
    simulating.folder_field.text = "/somewhere/else"
    choose(simulating, "crowd")
    assert simulating.folder == "/somewhere/else"


def test_the_page_of_the_papers_is_made_and_opened(window, qtbot, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    requests = []
    monkeypatch.setattr(
        start_page,
        "_measured",
        lambda *arguments: requests.append(arguments[:3]) or tmp_path / "papers.html",
    )
    command(window, "Reproduce the papers…")
    (dialog,) = window.findChildren(PapersDialog)
    dialog.folder_field.text = str(tmp_path)
    dialog.complete.setChecked(True)
    dialog.accept()
    qtbot.waitUntil(lambda: bool(opened), timeout=LONG)
    assert requests == [(tmp_path, None, True)]
    assert opened == [str(tmp_path / "papers.html")]
    assert "Saved the page of the papers to" in window.status.message
