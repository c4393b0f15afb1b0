"""Main window: studies, files, menus, messages."""

import csv
import gc
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QMimeData, QPointF, QSize, Qt, QTimer, QUrl
from PySide6.QtGui import QDropEvent, QScreen
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from raterscope.algorithms import plugins
from raterscope.app.kinds.registry import KINDS
from raterscope.app.study import Study
from raterscope.app.window import startup
from raterscope.app.window.exporting import StudyExporter
from raterscope.app.window.main_window import MainWindow
from raterscope.app.workspaces.annotators.workspace import AnnotatorsWorkspace
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog
from tests.app.driving import LONG, Appeared, idle, press


def test_an_empty_window_names_the_first_step(window):
    words = " ".join(label.text() for label in window.findChildren(QLabel) if label.isVisible())
    assert "Drop images and annotations anywhere in this window" in words
    assert "No study is open" in words


def test_without_its_study_the_window_is_empty_again_and_offers_it(opened, qtbot):
    path = opened.document.contents.path
    opened.document.close()
    idle(opened, qtbot)
    words = [label.text() for label in opened.findChildren(QLabel) if label.isVisible()]
    assert "No study is open" in words
    assert "Review your annotators' work" in words
    assert not any("clicks by" in word for word in words)
    assert str(path) in [action.text() for action in opened.menus.recent_menu.actions()]


def test_the_window_answers_and_nothing_else_appears_while_a_study_opens(window, qtbot, study_file, qapp):
    appeared, answered, heart = Appeared(), [], QTimer()
    views, document = partial(window.findChildren, WorkspaceScreen), window.document
    heart.timeout.connect(lambda: answered.append(bool(views()) and document.contents is None))
    qapp.installEventFilter(appeared)
    heart.start(0)
    window.open_paths([study_file])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    heart.stop()
    assert sum(answered) > 5
    idle(window, qtbot)
    qapp.removeEventFilter(appeared)
    assert appeared.windows == []


def test_a_workspace_is_complete_before_the_turn_that_shows_its_study(window, qtbot, study_file, monkeypatch):
    show, complete = window.document._replace, []
    monkeypatch.setattr(
        window.document, "_replace", lambda *a: (complete.append(bool(window._workspaces)), show(*a))
    )
    window.open_paths([study_file])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    idle(window, qtbot)
    assert complete == [True]


def test_no_search_for_garbage_visits_more_than_30_000_objects_made_meanwhile(monkeypatch):
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    before, visited = gc.get_threshold(), []

    def note(phase, _info):
        if phase == "start":
            visited.append(len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))

    gc.collect()
    gc.callbacks.append(note)
    try:
        startup.prioritise_window()
        kept = [[number] for number in range(250_000)]
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
    assert len(kept) > 8 * max(visited)
    assert len(visited) < 30


def test_a_file_that_cannot_be_opened_delays_no_workspace(window, qtbot, tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(startup, "load_libraries", loaded.append)
    monkeypatch.setattr(startup, "REST_MS", 10)
    startup._begin(window, [tmp_path / "missing.rscope"], None)
    qtbot.waitUntil(lambda: bool(loaded))
    idle(window, qtbot)
    assert window.notice.isVisibleTo(window)


def test_the_last_session_is_offered_before_modules_are_loaded(window, qtbot, monkeypatch):
    steps = []
    monkeypatch.setattr(window.session_restore, "offer", lambda: steps.append("offer"))
    monkeypatch.setattr(startup, "_load_opening", lambda _watch: steps.append("open"))
    monkeypatch.setattr(startup, "load_libraries", lambda _watch: steps.append("libraries"))
    monkeypatch.setattr(startup, "load_workspaces", lambda: iter(steps.append("workspaces") for _ in "ab"))
    startup._go_on(window, [])
    qtbot.waitUntil(lambda: steps[-2:] == ["workspaces"] * 2)
    idle(window, qtbot)
    assert steps == ["offer", "open", "libraries", "workspaces", "workspaces"]


def test_the_first_picture_and_the_window_load_what_they_need_and_libraries_no_classes_of_qt(tmp_path):
    code = (
        "import sys; from raterscope.app.cli.program import main; from raterscope.app.window import startup\n"
        "def on_painted(*_): print(*sys.modules); startup.QApplication.quit()\n"
        "startup._go_on = on_painted; sys.argv = ['raterscope']; main()\n"
        "qt = ('raterscope.widgets', 'raterscope.app.workspaces', 'raterscope.app.page.pdf')\n"
        "long = ('raterscope.', 'numpy', 'scipy')\n"
        "first = set(sys.modules); startup.load_libraries(lambda *_: None)\n"
        "libraries = set(sys.modules); list(startup.load_workspaces())\n"
        "print(*(name for name in libraries - first if name.startswith(qt)))\n"
        "late = sys.modules.keys() - libraries\n"
        "print(*(name for name in late if name.startswith(long) and not name.startswith(qt)))"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stderr.strip() == ""
    at_first_picture, of_qt_beside, long_in_window = done.stdout.splitlines()
    assert (of_qt_beside, long_in_window) == ("", "")
    loaded = set(at_first_picture.split())
    assert "raterscope.app.window.files" in loaded
    assert not {"numpy", "PIL", "msgspec", "sqlite3", "jinja2", "ssl", "importlib.metadata"} & loaded
    parts = "|".join(KINDS)
    of_studies = r"raterscope\.(algorithms|app\.(study|review|formats|page|report|kinds))\b"
    needed = (
        r"raterscope\.(algorithms(\.(plugins|progress|settings))?"
        rf"|app\.kinds(\.registry|(\.({parts}))?(\.kind)?))"
    )
    late = [name for name in loaded if re.match(of_studies, name) and not re.fullmatch(needed, name)]
    assert not late


def test_the_plugin_that_is_skipped_is_named(window, monkeypatch):
    monkeypatch.setattr(plugins, "_problems", {("raterscope.algorithms", "labels.bad"): "It is <b>bad</b>."})
    startup._on_loaded(window)
    assert window.notice.isVisibleTo(window)
    assert window.notice.text == "It is <b>bad</b>."


def test_dropped_files_become_a_study_beside_them(window, qtbot, crowd_files):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in crowd_files])
    event = QDropEvent(
        QPointF(100, 100), Qt.DropAction.CopyAction | Qt.DropAction.MoveAction, mime,
        Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier,
    )  # fmt: skip
    assert event.proposedAction() == Qt.DropAction.MoveAction
    window.dropEvent(event)
    assert event.dropAction() == Qt.DropAction.CopyAction  # else a file manager deletes what it gave
    qtbot.waitUntil(lambda: "truth.csv" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.path == crowd_files[0].with_name("input.rscope")
    assert [entry.name for entry in window.document.contents.images] == ["one.png", "two.png"]
    assert "clicks.csv" in window.status.message
    assert "1 outside the image" in window.status.message
    shown = window.workspace.reviewing.session.scene
    assert shown.image.name == "one.png"
    assert len(shown.clicks.annotators) == 13
    assert "Next disputed spot" in {
        command.text for command in window.window_actions.commands() if command.where == "Review"
    }


def test_an_import_without_a_study_is_shown_and_can_be_cancelled(window, qtbot, crowd_files):
    window.open_paths(crowd_files)
    cancel = next(button for button in window.bar.findChildren(QPushButton) if button.text() == "Cancel")
    assert cancel.isVisible()
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(cancel.isHidden, timeout=LONG)
    assert window.status.message == "The import was cancelled. Nothing was imported."
    assert window.document.contents is None
    assert not list(crowd_files[0].parent.glob("*.rscope"))


def test_work_in_the_background_leaves_fuse_on_screen(window, qtbot, study_file):
    go_on = threading.Event()

    def work(watch):
        while not go_on.wait(0.01):
            watch(0.25, "compiling")

    window.jobs.start("Compiling", work, background=True)
    window.open_paths([study_file])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    shown = window.status.findChild(QLabel, "statusBackground")
    qtbot.waitUntil(lambda: shown.isVisible() and shown.text().startswith("compiling"), timeout=LONG)
    assert window.bar.fuse.isVisible()
    go_on.set()
    qtbot.waitUntil(lambda: not shown.isVisible(), timeout=LONG)
    idle(window, qtbot)


def test_closing_while_a_fusion_runs_is_clean(opened, qtbot):
    opened.workspace.canvas.setFocus()
    qtbot.keyClick(opened.workspace.canvas, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: opened.workspace.fusing.job is not None, timeout=LONG)
    opened.close()
    assert not opened.isVisible()


def test_columns_of_an_unknown_header_are_requested(window, qtbot, crowd_files):
    strange = crowd_files[0].with_name("strange.csv")
    with strange.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["wer", "was", "waagrecht", "senkrecht"])
        writer.writerows([["anna", "one.png", 5, 6], ["ben", "one.png", 7, 8]])
    window.open_paths([crowd_files[0], strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    for choice, field in zip(dialog.columns.choices, ("annotator", "image", "x", "y"), strict=True):
        choice.setCurrentIndex(choice.findData(field))
    dialog.accept()
    qtbot.waitUntil(lambda: "2 clicks" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.annotators == ("anna", "ben")


def test_refused_files_change_nothing_and_a_filter_ends_with_its_study(opened, qtbot, tmp_path, study_file):
    bad = tmp_path / "bad.csv"
    bad.write_text("annotator,image,x,y\nanna,one.png,5,6\nanna,one.png,left,6\n")
    before = opened.document.contents
    opened.open_paths([bad])
    qtbot.waitUntil(opened.notice.isVisible, timeout=LONG)
    idle(opened, qtbot)
    assert "bad.csv, line 3, field x" in opened.notice.text
    assert opened.document.contents.annotators == before.annotators

    other = tmp_path / "other.rscope"
    other_study = Study.create(other)
    opened.open_paths([other])
    qtbot.waitUntil(lambda: "other.rscope" in opened.notice.text, timeout=LONG)
    idle(opened, qtbot)
    assert opened.document.contents.path.name == "small.rscope"
    other_study.close()

    opened.workspace.queue.filter.setText("nothing is called this")
    other = study_file.with_stem("next")
    shutil.copy(study_file, other)
    opened.open_paths([other])
    qtbot.waitUntil(lambda: opened.document.contents.path == other)
    assert opened.workspace.queue.filter.text() == ""


def test_a_damaged_study_is_reported(window, qtbot, tmp_path):
    broken = tmp_path / "broken.rscope"
    broken.write_bytes(b"no study at all" * 100)
    window.open_paths([broken])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "broken.rscope" in window.notice.text
    assert window.document.contents is None


def test_a_moved_image_is_reported_and_found_in_another_folder(
    window, qtbot, study_file, crowd_files, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in crowd_files[:2]:
        file.rename(elsewhere / file.name)
    window.open_paths([study_file])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "one.png was not found" in window.notice.text
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(elsewhere))
    window.files.find_images()
    qtbot.waitUntil(lambda: "2 images found" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.workspace.reviewing.session.scene.path == elsewhere / "one.png"
    assert not window.notice.isVisible()


def test_every_export_in_the_menu_writes_its_table_replaces_no_study_and_is_cancelled(
    fused, qtbot, tmp_path, monkeypatch, study_file
):
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_A)
    for kind in ("detections", "annotators", "decisions", "clicks"):
        out = tmp_path / f"{kind}.csv"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, out=out: (str(out), ""))
        action = next(a for a in fused.menus.export_menu.actions() if a.text() == f"{kind.capitalize()}…")
        action.trigger()
        qtbot.waitUntil(lambda kind=kind: f"Exported {kind}" in fused.status.message, timeout=LONG)
        idle(fused, qtbot)
        with out.open(newline="", encoding="utf-8") as file:
            assert len(list(csv.reader(file))) > 1

    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(study_file), ""))
    next(a for a in fused.menus.export_menu.actions() if a.text() == "Detections…").trigger()
    qtbot.waitUntil(fused.notice.isVisible, timeout=LONG)
    idle(fused, qtbot)
    assert "small.rscope" in fused.notice.text
    assert not fused.status.message  # no longer "the tab Jobs shows the progress"
    assert study_file.read_bytes().startswith(b"SQLite format 3")

    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "x.csv"), ""))
    messages = []
    fused.findChild(StudyExporter).message.connect(messages.append)
    fused.jobs.updated.connect(lambda job: job.cancel() if job.title == "Exporting detections" else None)
    next(a for a in fused.menus.export_menu.actions() if a.text() == "Detections…").trigger()
    qtbot.waitUntil(lambda: len(messages) == 2, timeout=LONG)
    assert messages == [
        "Exporting detections: the tab Jobs shows the progress.", "Exporting detections was cancelled.",
    ]  # fmt: skip
    assert not list(tmp_path.glob("x*"))


def test_untrusted_names_are_shown_as_plain_text(window, qtbot, crowd_files):
    evil = crowd_files[0].with_name("evil.csv")
    evil.write_text("annotator,image,x,y\n<img src=x><b>bold</b>,one.png,5,6\n")
    window.open_paths([crowd_files[0], evil])
    qtbot.waitUntil(lambda: "1 click " in window.status.message, timeout=LONG)
    idle(window, qtbot)
    for label in window.findChildren(QLabel):
        if "<b>" in label.text():
            assert label.textFormat() == Qt.TextFormat.PlainText


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4 no table", b"II*\0damaged"])
def test_a_file_that_cannot_be_read_leaves_no_study_behind(window, qtbot, tmp_path, content):
    wrong = tmp_path / "wrong.csv"
    wrong.write_bytes(content)
    window.open_paths([wrong])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "wrong.csv" in window.notice.text
    assert window.document.contents is None
    assert list(tmp_path.glob("*.rscope*")) == []


def test_unassigned_columns_import_nothing_with_a_message(window, qtbot, crowd_files):
    strange = crowd_files[0].with_name("strange.csv")
    strange.write_text("wer,was,waagrecht,senkrecht\nanna,one.png,5,6\n")
    window.open_paths([crowd_files[0], strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    window.findChild(ColumnMappingDialog).reject()
    idle(window, qtbot)
    assert "strange.csv" in window.status.message
    assert window.document.contents is None
    assert list(strange.parent.glob("*.rscope*")) == []


def test_of_a_folder_the_images_are_read_and_the_tables_named(window, qtbot, crowd_files):
    window.open_paths([crowd_files[0].parent])
    qtbot.waitUntil(lambda: "2 images" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert "clicks.csv" in window.status.message
    assert len(window.document.contents.images) == 2


def test_the_first_window_fits_the_screen_with_its_frame(qapp, monkeypatch):
    monkeypatch.setattr(QScreen, "availableSize", lambda _screen: QSize(1280, 800))
    window = MainWindow(remembers=False)
    assert window.width() <= 1280 - 10
    assert window.height() <= 800 - 40
    window.deleteLater()


@pytest.mark.parametrize("same_size", [True, False])
def test_a_changed_image_is_reported_and_not_shown(window, qtbot, study_file, crowd_files, same_size):
    content = crowd_files[0].read_bytes()
    crowd_files[0].write_bytes(content[:-30] + bytes(30) if same_size else content[:-30])
    window.open_paths([study_file])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "one.png" in window.notice.text
    assert "no longer the image that was added" in window.notice.text
    visible = window.workspace.canvas.grab().toImage().scaled(60, 40)
    light = [visible.pixelColor(x, y).lightness() for x in range(60) for y in range(40)]
    assert sorted(light)[len(light) // 2] < 100  # the photograph's greys are 150 and more


def test_a_study_that_is_taken_away_takes_no_decision(fused, qtbot, study_file):
    away = study_file.with_name("away.rscope")
    study_file.rename(away)
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_R)
    assert "moved, renamed or deleted" in fused.notice.text
    assert fused.document.contents.decisions == ()
    away.rename(study_file)
    press(fused, qtbot, Qt.Key.Key_R)
    assert [decision.verb for decision in fused.document.contents.decisions] == ["reject"]


def test_the_top_bar_shows_the_time_left(window):
    job = SimpleNamespace(fraction=0.5, text="fitting", seconds_left=80.0, state="running")
    window.bar.set_fusing(job)
    words = [label.text() for label in window.bar.findChildren(QLabel)]
    assert "1 min 20 s left, fitting" in words


def test_tabs_stay_where_they_are_during_a_fusion_and_the_last_one_chosen_is_shown(fused, qtbot):
    fused.resize(1200, 800)
    idle(fused, qtbot)
    tabs = [button for button in fused.bar.findChildren(QPushButton) if button.isCheckable()]
    before = [tab.x() for tab in tabs]
    words = "a_photograph_with_a_name_as_microscopes_give_them_0001.tif: removing the weakest component"
    fused.bar.set_fusing(SimpleNamespace(fraction=0.5, text=words, seconds_left=80.0, state="running"))
    idle(fused, qtbot)
    assert [tab.x() for tab in tabs] == before
    cancel = next(button for button in fused.bar.findChildren(QPushButton) if button.text() == "Cancel")
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    fused.bar.set_fusing(None)
    assert fused.workspace.isAncestorOf(fused.focusWidget())

    clicks = fused.workspace
    fused.bar.workspace_chosen.emit("annotators")
    assert fused.workspace is clicks  # the other one is made step by step
    fused.bar.workspace_chosen.emit("clicks")
    qtbot.waitUntil(lambda: hasattr(fused.findChild(AnnotatorsWorkspace), "decisions"))
    qtbot.wait(10)
    assert fused.workspace is clicks
    fused.bar.workspace_chosen.emit("annotators")
    qtbot.waitUntil(lambda: isinstance(fused.workspace, AnnotatorsWorkspace))
    assert fused.workspace.isVisible()
    assert fused.bar._tabs["annotators"].isChecked()
    qtbot.waitUntil(lambda: not fused.busy)
