"""The start page: what can be done first, recent studies with work left, samples, the tour, dropped files."""

import shutil
import time
from datetime import date

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent
from PySide6.QtWidgets import QFileDialog

from raterscope.app.study import Study
from raterscope.app.window import preferences, start_page
from raterscope.app.window.main_window import MainWindow
from tests.app.driving import command, idle, open_study, press
from tests.waiting import LONG


def drag_over(window, path):
    data = QMimeData()
    data.setUrls([QUrl(path) if isinstance(path, str) else QUrl.fromLocalFile(str(path))])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dragEnterEvent(QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, buttons, keys))


def test_a_folder_is_imported_from_the_start_page_and_the_menu(window, qtbot, crowd_files, monkeypatch):
    folder = crowd_files[0].parent
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(folder))
    command(window, "Import folder or DICOM…")
    qtbot.waitUntil(lambda: "2 images" in window.status.message, timeout=LONG)
    assert window.document.contents.path.parent == folder


def test_the_window_is_highlighted_while_files_are_dragged_over_it(window, crowd_files):
    drag_over(window, crowd_files[0])
    assert window.drop_overlay.isVisible()
    window.dragLeaveEvent(QDragLeaveEvent())
    assert not window.drop_overlay.isVisible()


def test_a_link_cannot_be_dropped(window):
    drag_over(window, "https://example.org/a.png")
    assert not window.drop_overlay.isVisible()


def test_recent_studies_show_what_is_left_and_open(qtbot, study_fused, tmp_path):
    path = shutil.copy(study_fused, tmp_path / "mine.rscope")
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    open_study(window, qtbot, path)
    press(window, qtbot, Qt.Key.Key_Tab)
    press(window, qtbot, Qt.Key.Key_S)
    idle(window, qtbot)
    assert window.workspace.queue._progress.accessibleName().endswith(", 1 skipped")
    window.close()
    share, words, day = preferences.work_left()[str(path)]
    assert 0 <= share <= 1
    assert words == "0 of 2 disputed spots matter, 0 of 2 images settled"
    assert day == date.today().isoformat()
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    (card,) = window.start.page.cards
    card.click()
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    assert window.document.contents.path == path
    idle(window, qtbot)
    window.close()


def test_recent_studies_of_one_name_are_listed_with_their_folder(qtbot, tmp_path):
    for name in ("monday/cells", "tuesday/cells", "tuesday/nuclei"):
        path = tmp_path / f"{name}.rscope"
        path.parent.mkdir(exist_ok=True)
        Study.create(path).close()
        preferences.remember_recent(path)
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    listed = ["nuclei.rscope", "tuesday/cells.rscope", "monday/cells.rscope"]
    qtbot.waitUntil(lambda: [card.text() for card in window.start.page.cards] == listed)
    window.close()


def test_a_study_that_was_deleted_leaves_the_start_page(qtbot, tmp_path):
    here, gone = tmp_path / "here.rscope", tmp_path / "gone.rscope"
    for path in (here, gone):
        Study.create(path).close()
        preferences.remember_recent(path)
    gone.unlink()
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: [card.text() for card in window.start.page.cards] == ["here.rscope"])
    here.unlink()
    window.start.page.cards[0].click()
    qtbot.waitUntil(lambda: not window.start.page.cards)
    qtbot.waitUntil(lambda: "here.rscope: does not exist" in window.notice.text)
    window.close()


@pytest.mark.parametrize("stored", ["nonsense", "[]", '{"a": 3}', '{"a": ["x", "y", "z"]}'])
def test_damaged_preferences_show_no_work(stored):
    preferences.remember("work_left", stored)
    assert preferences.work_left() == {}


def test_the_tour_of_a_sample_goes_on_with_enter_and_can_be_left(
    window, qtbot, study_fused, tmp_path, monkeypatch
):
    made = shutil.copy(study_fused, tmp_path / "sample.rscope")
    monkeypatch.setattr(start_page, "_make", lambda _kind, _folder, _watch: made)
    window.start.page.tour.click()
    qtbot.waitUntil(window.tour.isVisible, timeout=LONG)
    first = window.tour.title.text()
    qtbot.keyClick(window.tour, Qt.Key.Key_Return)
    assert window.tour.title.text() != first
    qtbot.keyClick(window.tour, Qt.Key.Key_Escape)
    assert not window.tour.isVisible()
    command(window, "One-minute tour")
    for _ in range(5):
        assert window.tour.isVisible()
        window.tour.next_button.click()
    assert not window.tour.isVisible()
    idle(window, qtbot)


def test_only_the_sample_that_was_chosen_last_opens(window, qtbot, study_fused, tmp_path, monkeypatch):
    made = []

    def make(kind, _folder, watch):
        made.append(kind)
        for step in range(20):
            watch(0.05 * step, "making")
            time.sleep(0.02)
        return shutil.copy(study_fused, tmp_path / f"{kind}.rscope")

    monkeypatch.setattr(start_page, "_make", make)
    cards = dict(zip((offer.kind for offer in start_page.SAMPLES), window.start.page.samples, strict=True))
    pairs, clicks = cards["pairs"], cards["clicks"]
    pairs.click()
    pairs.click()
    assert "Being made" in pairs.accessibleName()
    clicks.click()
    assert "Being made" in clicks.accessibleName()
    assert "Being made" not in pairs.accessibleName()
    qtbot.waitUntil(lambda: made == ["pairs", "clicks"], timeout=LONG)
    assert window.bar.cancel.isVisible()
    qtbot.waitUntil(lambda: window.document.contents is not None, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.path.stem == "clicks"
    assert made == ["pairs", "clicks"]
    assert "Being made" not in clicks.accessibleName()


def test_a_simulated_sample_opens_from_the_menu_and_is_kept(window, qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr(start_page, "samples_folder", lambda: tmp_path)
    (tmp_path / "judges").mkdir()  # a simulation that was cancelled
    (tmp_path / "judges" / "pairs.csv").write_text("kept")
    for _ in range(2):
        command(window, "Judges of language models")
        qtbot.waitUntil(lambda: window.document.contents is not None, timeout=LONG)
        idle(window, qtbot)
        assert window.document.contents.path == tmp_path / "judges-2" / "judges.rscope"
        command(window, "Close study")
        qtbot.waitUntil(lambda: window.document.contents is None, timeout=LONG)
    assert (tmp_path / "judges" / "pairs.csv").read_text() == "kept"
    assert len(list(tmp_path.glob("judges*"))) == 2
