"""The window, driven as a person drives it."""

import csv
import time
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import QDropEvent, QScreen
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QPlainTextEdit

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app import batch, importing
from raterscope.app.main_window import MainWindow
from raterscope.app.running import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.widgets.dialogs.column_mapping import ColumnMappingDialog
from raterscope.widgets.dialogs.reason import ReasonDialog

LONG = 20_000


@pytest.fixture
def window(qtbot):
    window = MainWindow()
    window.resize(1280, 800)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    yield window
    window.close()
    window.deleteLater()


@pytest.fixture
def opened(window, qtbot, study_file):
    """The window with the study open and its first image on screen."""
    window.open_paths([study_file])
    qtbot.waitUntil(
        lambda: window.workspace is not None and window.workspace.reviewing.scene is not None, timeout=LONG
    )
    idle(window, qtbot)
    return window


@pytest.fixture
def fused(opened, qtbot):
    """The window with everything fused."""
    opened.workspace.canvas.setFocus()
    qtbot.keyClick(opened.workspace.canvas, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened.document.contents.runs), timeout=LONG)
    idle(opened, qtbot)
    return opened


class Appeared(QObject):
    """Notes every window that is shown."""

    def __init__(self):
        super().__init__()
        self.windows = []

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Show and watched.isWidgetType() and watched.isWindow():
            self.windows.append(type(watched).__name__)
        return False


def idle(window, qtbot):
    quiet_since = time.monotonic()

    def settled():
        nonlocal quiet_since
        if window.jobs.busy:
            quiet_since = time.monotonic()
        return time.monotonic() - quiet_since > 0.1

    qtbot.waitUntil(settled, timeout=LONG)


def states(window):
    return [spot.state for spot in window.workspace.reviewing.spots]


def press(window, qtbot, key, modifiers=Qt.KeyboardModifier.NoModifier):
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.workspace.canvas.setFocus()
    qtbot.keyClick(window.workspace.canvas, key, modifiers)
    idle(window, qtbot)


def test_an_empty_window_says_what_to_do_first(window):
    words = " ".join(label.text() for label in window.findChildren(QLabel) if label.isVisible())
    assert "Drop image files and a table of clicks here" in words
    assert "No study is open" in words


def test_nothing_but_the_window_appears_while_a_study_opens(window, qtbot, study_file, qapp):
    appeared = Appeared()
    qapp.installEventFilter(appeared)
    window.open_paths([study_file])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    idle(window, qtbot)
    qapp.removeEventFilter(appeared)
    assert appeared.windows == []


def test_dropped_files_become_a_study_beside_them(window, qtbot, crowd_files):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in crowd_files])
    event = QDropEvent(
        QPointF(100, 100), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    window.dropEvent(event)
    qtbot.waitUntil(lambda: "truth.csv" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.path == crowd_files[0].with_suffix(".rscope")
    assert [entry.name for entry in window.document.contents.images] == ["one.png", "two.png"]
    assert "clicks.csv" in window.status.news
    assert "1 outside the image" in window.status.news
    shown = window.workspace.reviewing.scene
    assert shown.image.name == "one.png"
    assert len(shown.clicks.annotators) == 13


def test_fusing_finds_the_clear_spots_and_puts_the_disputed_image_first(fused):
    scene = fused.workspace.reviewing.scene
    assert scene.fusion is not None
    assert states(fused).count("detected") >= 5
    assert "OEM + DEM" in fused.status._text.text()
    assert len(fused.document.contents.runs) == 1


def test_accept_reject_undo_and_redo_by_key_are_on_disk_at_once(fused, qtbot, study_file):
    reviewing = fused.workspace.reviewing
    reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_R)
    assert reviewing.spots[0].state == "turned down"
    reviewing.select(1)
    press(fused, qtbot, Qt.Key.Key_A)
    assert reviewing.spots[1].state == "accepted"
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert reviewing.spots[1].state == "detected"
    assert reviewing.spots[0].state == "turned down"
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert reviewing.spots[1].state == "accepted"
    fused.document.close()
    with Study.open(study_file) as study:
        assert [decision.verb for decision in study.decisions()] == ["reject", "accept", "undo", "undo"]


def test_deciding_asks_for_a_new_fusion_which_holds_the_decision_fixed(fused, qtbot):
    reviewing = fused.workspace.reviewing
    assert fused.bar.fuse.text() == "Fuse"
    place = next(i for i, spot in enumerate(reviewing.spots) if spot.state == "detected")
    x, y = reviewing.spots[place].x, reviewing.spots[place].y
    reviewing.select(place)
    press(fused, qtbot, Qt.Key.Key_R)
    assert fused.bar.fuse.text() == "Fuse again"
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert fused.bar.fuse.text() == "Fuse"
    spot = min(reviewing.spots, key=lambda one: (one.x - x) ** 2 + (one.y - y) ** 2)
    assert spot.state == "turned down"
    assert spot.posterior == 0.0
    assert not fused.workspace.reviewing.scene.fusion.detection.detected[spot.cluster]


def test_a_missed_spot_is_added_where_the_expert_clicks_and_can_be_moved(fused, qtbot):
    workspace = fused.workspace
    before = len(workspace.reviewing.spots)
    press(fused, qtbot, Qt.Key.Key_N)
    workspace.canvas.place_chosen.emit(100.0, 160.0)
    idle(fused, qtbot)
    assert states(fused).count("added") == 1
    added = next(i for i, spot in enumerate(workspace.reviewing.spots) if spot.state == "added")
    workspace.canvas.spot_moved.emit(added, 104.0, 158.0)
    idle(fused, qtbot)
    assert len(workspace.reviewing.spots) == before + 1
    moved = next(spot for spot in workspace.reviewing.spots if spot.state == "added")
    assert (moved.x, moved.y) == (104.0, 158.0)


def test_tab_walks_the_disputed_spots_and_goes_on_to_the_next_image(fused, qtbot):
    workspace = fused.workspace
    seen = set()
    for _ in range(12):
        press(fused, qtbot, Qt.Key.Key_Tab)
        spot = workspace.reviewing.spot
        if spot is None or spot.state != "disputed":
            break
        seen.add((workspace.reviewing.scene.image.name, spot.number))
        press(fused, qtbot, Qt.Key.Key_R)
    disputed = sum(summary.disputed for summary in workspace.queueing._summaries.values())
    assert disputed == 0
    assert len(seen) == len({*seen})


def test_letters_typed_into_a_filter_decide_nothing(fused, qtbot):
    field = fused.workspace.queue.findChild(QLineEdit)
    field.setFocus()
    qtbot.keyClicks(field, "ars")
    idle(fused, qtbot)
    assert field.text() == "ars"
    assert fused.document.contents.decisions == ()


def test_an_annotator_is_excluded_with_a_reason_and_left_out_of_the_next_fusion(fused, qtbot):
    workspace = fused.workspace
    number = fused.document.contents.annotators.index("careless")
    workspace.annotators.exclude(number)
    dialog = fused.findChild(ReasonDialog)
    dialog.words.setText("clicks corners")
    dialog.accept()
    idle(fused, qtbot)
    assert fused.document.contents.review.excluded == {"careless": "clicks corners"}
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert "careless" not in workspace.reviewing.scene.clicks.annotators
    excluded = [row for row in workspace.table.model.rows if row.excluded is not None]
    assert [(row.name, row.excluded) for row in excluded] == [("careless", "clicks corners")]
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert fused.document.contents.review.excluded == {}


def test_cancelling_a_fusion_leaves_the_study_as_it_was(opened, qtbot):
    opened.workspace.canvas.setFocus()
    qtbot.keyClick(opened.workspace.canvas, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: opened.workspace.fusing.job is not None, timeout=LONG)
    opened.bar.cancel_requested.emit()
    qtbot.waitUntil(lambda: opened.workspace.fusing.job is None, timeout=1000)
    idle(opened, qtbot)
    assert opened.document.contents.runs == ()
    assert "cancelled" in opened.status.news


def test_closing_while_a_fusion_runs_is_clean(opened, qtbot):
    opened.workspace.canvas.setFocus()
    qtbot.keyClick(opened.workspace.canvas, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: opened.workspace.fusing.job is not None, timeout=LONG)
    opened.close()
    assert not opened.isVisible()


def test_an_unknown_header_is_asked_about_and_then_read(window, qtbot, crowd_files):
    strange = crowd_files[0].with_name("strange.csv")
    with strange.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["wer", "was", "waagrecht", "senkrecht"])
        writer.writerows([["anna", "one.png", 5, 6], ["ben", "one.png", 7, 8]])
    window.open_paths([crowd_files[0], strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    dialog = window.findChild(ColumnMappingDialog)
    for choice, field in zip(dialog.choices, ("annotator", "image", "x", "y"), strict=True):
        choice.setCurrentIndex(choice.findData(field))
    dialog.accept()
    qtbot.waitUntil(lambda: "2 clicks" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.annotators == ("anna", "ben")


def test_a_bad_file_is_one_sentence_and_nothing_is_lost(opened, qtbot, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("annotator,image,x,y\nanna,one.png,5,6\nanna,one.png,left,6\n")
    before = opened.document.contents
    opened.open_paths([bad])
    qtbot.waitUntil(opened.notice.isVisible, timeout=LONG)
    idle(opened, qtbot)
    assert "bad.csv, line 3, field x" in opened.notice.text
    assert opened.document.contents.annotators == before.annotators


def test_a_study_that_is_open_elsewhere_is_refused_and_the_present_one_stays(opened, qtbot, tmp_path):
    other = tmp_path / "other.rscope"
    held = Study.create(other)
    opened.open_paths([other])
    qtbot.waitUntil(opened.notice.isVisible, timeout=LONG)
    idle(opened, qtbot)
    assert "other.rscope" in opened.notice.text
    assert opened.document.contents.path.name == "small.rscope"
    held.close()


def test_a_damaged_study_is_reported(window, qtbot, tmp_path):
    broken = tmp_path / "broken.rscope"
    broken.write_bytes(b"no study at all" * 100)
    window.open_paths([broken])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "broken.rscope" in window.notice.text
    assert window.document.contents is None


def test_an_image_that_moved_is_said_and_found_in_another_folder(
    window, qtbot, study_file, crowd_files, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in crowd_files[:2]:
        file.rename(elsewhere / file.name)
    window.open_paths([study_file])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "one.png is not where it was" in window.notice.text
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(elsewhere))
    window.find_images()
    qtbot.waitUntil(lambda: "2 images found" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert window.workspace.reviewing.scene.path == elsewhere / "one.png"


@pytest.mark.parametrize("what", ["detections", "annotators", "decisions", "clicks"])
def test_every_export_in_the_menu_writes_its_table(fused, qtbot, tmp_path, monkeypatch, what):
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_A)
    out = tmp_path / f"{what}.csv"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(out), ""))
    action = next(a for a in fused.export_menu.actions() if a.text() == f"{what.capitalize()}…")
    action.trigger()
    qtbot.waitUntil(lambda: "is written" in fused.status.news, timeout=LONG)
    idle(fused, qtbot)
    with out.open(newline="", encoding="utf-8") as file:
        assert len(list(csv.reader(file))) > 1


def test_runs_are_compared_against_the_imported_truth(fused, qtbot):
    run = fused.document.contents.runs[0].id
    fused.workspace.fuse_panel.compare_requested.emit((run,))
    table = fused.workspace.comparing.table
    qtbot.waitUntil(lambda: table._model.rowCount() == 1, timeout=LONG)
    idle(fused, qtbot)
    row = table._model.rows[0]
    assert row.sensitivity[0] == 1.0


def test_recent_studies_are_offered_again(fused, qtbot):
    name = fused.document.contents.path
    assert str(name) in [action.text() for action in fused.recent_menu.actions()]


def test_what_the_window_shows_of_a_strangers_name_is_plain_text(window, qtbot, crowd_files):
    evil = crowd_files[0].with_name("evil.csv")
    evil.write_text("annotator,image,x,y\n<img src=x><b>bold</b>,one.png,5,6\n")
    window.open_paths([crowd_files[0], evil])
    qtbot.waitUntil(lambda: "1 click " in window.status.news, timeout=LONG)
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


def test_columns_left_unnamed_import_nothing_and_say_so(window, qtbot, crowd_files):
    strange = crowd_files[0].with_name("strange.csv")
    strange.write_text("wer,was,waagrecht,senkrecht\nanna,one.png,5,6\n")
    window.open_paths([crowd_files[0], strange])
    qtbot.waitUntil(lambda: window.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    window.findChild(ColumnMappingDialog).reject()
    idle(window, qtbot)
    assert "strange.csv" in window.status.news
    assert window.document.contents is None
    assert list(strange.parent.glob("*.rscope*")) == []


def test_of_a_folder_the_images_are_read_and_the_tables_named(window, qtbot, crowd_files):
    window.open_paths([crowd_files[0].parent])
    qtbot.waitUntil(lambda: "2 images" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert "clicks.csv" in window.status.news
    assert len(window.document.contents.images) == 2


def test_the_first_window_fits_the_screen(qapp, monkeypatch):
    monkeypatch.setattr(QScreen, "availableSize", lambda _screen: QSize(1280, 800))
    window = MainWindow(remembers=False)
    assert window.width() <= 1280
    assert window.height() <= 800
    window.deleteLater()


def test_ellipses_hold_the_share_that_is_chosen(fused, qtbot):
    fused.workspace.reviewing.select(0)
    usual = fused.workspace.canvas._spots.radius(0)
    action = next(one for one in fused.ellipse_menu.actions() if one.text().startswith("50%"))
    action.trigger()
    idle(fused, qtbot)
    # Half of a plane Gaussian lies within sqrt(2 ln 2) standard deviations, 95 % within sqrt(2 ln 20).
    assert fused.workspace.canvas._spots.radius(0) / usual == pytest.approx(1.17741 / 2.44775, rel=1e-4)


def test_a_spot_that_was_moved_far_stays_selected(fused, qtbot):
    reviewing = fused.workspace.reviewing
    place = next(i for i, spot in enumerate(reviewing.spots) if spot.state == "detected")
    spot = reviewing.spots[place]
    reviewing.select(place)
    reviewing.move(place, spot.x + 35, spot.y + 35)
    idle(fused, qtbot)
    assert reviewing.spot is not None
    assert (reviewing.spot.x, reviewing.spot.y) == (spot.x + 35, spot.y + 35)


@pytest.mark.parametrize("key", [Qt.Key.Key_N, Qt.Key.Key_M])
def test_escape_leaves_adding_and_moving(fused, qtbot, key):
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, key)
    assert fused.workspace.canvas.mode != "look"
    press(fused, qtbot, Qt.Key.Key_Escape)
    assert fused.workspace.canvas.mode == "look"
    assert fused.document.contents.decisions == ()


def test_keys_go_to_the_canvas_once_the_fuse_panel_closes(fused, qtbot):
    workspace = fused.workspace
    workspace.toggle_fuse_panel()
    assert workspace.fuse_panel.isAncestorOf(fused.focusWidget())
    qtbot.keyClick(fused.focusWidget(), Qt.Key.Key_Escape)
    assert not workspace.fuse_panel.isVisible()
    assert fused.focusWidget() is workspace.canvas
    workspace.toggle_fuse_panel()
    workspace.fuse_panel.run.setFocus()
    qtbot.keyClick(workspace.fuse_panel.run, Qt.Key.Key_Space)
    assert fused.focusWidget() is workspace.canvas
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)


@pytest.mark.parametrize("same_size", [True, False])
def test_an_image_that_was_changed_is_said_and_not_shown(window, qtbot, study_file, crowd_files, same_size):
    content = crowd_files[0].read_bytes()
    crowd_files[0].write_bytes(content[:-30] + bytes(30) if same_size else content[:-30])
    window.open_paths([study_file])
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "one.png" in window.notice.text
    assert "no longer the image that was added" in window.notice.text
    assert window.workspace._pixels is None


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


def test_a_table_never_replaces_a_study(fused, qtbot, study_file, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(study_file), ""))
    fused.export("detections")
    qtbot.waitUntil(fused.notice.isVisible, timeout=LONG)
    idle(fused, qtbot)
    assert "small.rscope" in fused.notice.text
    assert study_file.read_bytes().startswith(b"SQLite format 3")


def test_a_fusion_that_fails_inside_is_one_sentence_with_details_on_demand(opened, qtbot, monkeypatch):
    def broken(*_, **__):
        raise KeyError("inner trouble")

    monkeypatch.setattr(batch, "fuse", broken)
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(opened.notice.isVisible, timeout=LONG)
    assert "could not be fused" in opened.notice.text
    assert "\n" not in opened.notice.text
    lines = opened.workspace.job_list.findChildren(QPlainTextEdit)
    assert any("inner trouble" in line.toPlainText() for line in lines)
    assert opened.document.contents.runs == ()


def test_every_part_of_the_queue_is_reached_by_tab_and_the_table_by_region(fused, qtbot):
    queue = fused.workspace.queue
    queue.filter.setFocus()
    qtbot.keyClick(queue.filter, Qt.Key.Key_Tab)
    assert fused.focusWidget() is queue.undecided
    qtbot.keyClick(queue.undecided, Qt.Key.Key_Tab)
    assert fused.focusWidget() is queue.view
    fused.workspace.left_tabs.setFocus()
    seen = []
    for _ in range(6):
        qtbot.keyClick(fused.focusWidget(), Qt.Key.Key_F6)
        seen.append(fused.focusWidget())
    assert fused.workspace.table.view in seen
    assert fused.workspace.canvas in seen
    assert queue.filter in seen


def test_the_top_bar_tells_the_time_left(window):
    job = SimpleNamespace(fraction=0.5, words="fitting", seconds_left=80.0, state="running")
    window.bar.set_fusing(job)
    words = [label.text() for label in window.bar.findChildren(QLabel)]
    assert "fitting, 1 min 20 s left" in words


def test_a_fused_study_opens_on_the_image_that_is_most_disputed(window, qtbot, tmp_path, crowd_files):
    one, two, table, _ = crowd_files
    header, *rows = table.read_text().splitlines()
    doubtful = ("one.png,18", "one.png,19")
    clear = [row for row in rows if not any(begin in row for begin in doubtful)]
    table.write_text("\n".join([header, *clear]) + "\n")
    path = tmp_path / "fused.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files([one, two, table]), study)
        keep(fuse_inputs(gather([entry.id for entry in study.images()], study), FusionPlan()), study)
    window.open_paths([path])
    qtbot.waitUntil(
        lambda: window.workspace is not None and window.workspace.reviewing.scene is not None, timeout=LONG
    )
    idle(window, qtbot)
    doubts = {item.title: item.score for item in window.workspace.queue.shown()}
    assert doubts["two.png"] > doubts["one.png"]
    assert window.workspace.reviewing.scene.image.name == "two.png"
