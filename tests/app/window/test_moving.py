"""A study whose file is moved while it is open: the window says so, and nothing is lost."""

import shutil

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study
from tests.app.driving import LONG, idle, open_study


@pytest.fixture
def decided(window, qtbot, study_file, monkeypatch):
    """The window with a study and one decision in it, which rests often."""
    monkeypatch.setattr("raterscope.app.jobs.REST_SECONDS", 0.02)
    opened = open_study(window, qtbot, study_file)
    decide(opened, qtbot)
    return opened


def decide(window, qtbot):
    decision = Decision(
        verb="add", item=window.document.contents.images[0].id, subject=SpotSubject(x=3.0, y=4.0)
    )
    with qtbot.waitSignal(window.document.decided, timeout=LONG):
        window.document.record(decision)


def kept(window):
    return window.status._kept.text()


def press(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_a_study_is_complete_in_its_own_file_soon_after_a_decision(decided, qtbot, study_file, tmp_path):
    """As for who copies it while it is open."""
    log = study_file.with_name(f"{study_file.name}-wal")
    qtbot.waitUntil(lambda: log.stat().st_size == 0, timeout=LONG)
    copy = shutil.copy(study_file, tmp_path / "copy.rscope")
    with Study.open(copy) as study:
        assert [one.verb for one in study.decisions()] == ["add"]
    assert kept(decided) == "every decision saved"


def test_a_study_that_is_renamed_is_followed_to_its_new_name(decided, qtbot, study_file):
    new = study_file.rename(study_file.with_name("renamed.rscope"))
    qtbot.waitUntil(decided.moved.isVisible, timeout=LONG)
    assert kept(decided) == "not saving: the study was moved to renamed.rscope"
    assert f"It is now {new}. All decisions up to now are saved" in decided.moved.words.text()
    with qtbot.waitSignal(decided.document.refused, timeout=LONG):
        decided.document.record(Decision(verb="exclude", annotators=("kim",), reason="late"))
    with qtbot.waitSignals([decided.document.replaced] * 2, timeout=LONG):
        press(qtbot, decided.moved.there)
    idle(decided, qtbot)
    assert decided.document.contents.path == new
    assert not decided.moved.isVisible()
    assert kept(decided) == "every decision saved"
    decide(decided, qtbot)
    assert [one.verb for one in decided.document.contents.decisions] == ["add", "add"]
    assert not list(study_file.parent.glob(f"{study_file.name}*"))


def test_a_study_that_is_put_back_goes_on(decided, qtbot, study_file):
    new = study_file.rename(study_file.with_name("renamed.rscope"))
    qtbot.waitUntil(decided.moved.isVisible, timeout=LONG)
    new.rename(study_file)
    qtbot.waitUntil(lambda: not decided.moved.isVisible(), timeout=LONG)
    assert kept(decided) == "every decision saved"
    decide(decided, qtbot)
    assert len(decided.document.contents.decisions) == 2


def test_a_study_that_is_deleted_is_saved_again_at_its_place(decided, qtbot, study_file, monkeypatch):
    study_file.unlink()
    qtbot.waitUntil(decided.moved.isVisible, timeout=LONG)
    assert kept(decided) == "not saving: the study file is missing"
    assert not decided.moved.there.isVisible()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *given: (given[2], ""))
    with qtbot.waitSignals([decided.document.replaced] * 2, timeout=LONG):
        press(qtbot, decided.moved.copy)
    idle(decided, qtbot)
    assert decided.document.contents.path == study_file
    assert not decided.moved.isVisible()
    assert [one.verb for one in decided.document.contents.decisions] == ["add"]
    assert "is now open" in decided.status.news
