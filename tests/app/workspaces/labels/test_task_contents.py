"""The task in the centre: pictures and texts, without anything that a file could load or run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox

from raterscope.app.formats.records import TaskContents
from raterscope.app.study import Study
from raterscope.app.study.labels import add_contents
from raterscope.widgets import theme
from raterscope.widgets.panels.task_content import ContentBrowser
from tests.app.driving import idle, open_study

TEXTS = {
    "prompt": "How are cells <b>counted</b>?",
    "response_a": "By hand.",
    "response_b": "By a program.",
    "html": '<b>Bold</b><script>alert(1)</script><img src="file:///etc/hostname">',
    "url": "https://example.org/cells?a=1&b=2",
    "record": '{"age": 7, "sex": "f"}',
}


@pytest.fixture
def with_texts(labels_study):
    with Study.open(labels_study) as study:
        fields = {name: {"cell-001": text} for name, text in TEXTS.items()}
        add_contents(study, TaskContents(labels_study, fields))
    return labels_study


def show_task(qtbot, window, name: str):
    """Select a task and press D."""
    workspace = window.workspace
    workspace.tasks.go_to(workspace.session.scene.labels.tasks.index(name))
    qtbot.keyClick(workspace.queue.view, Qt.Key.Key_D)
    idle(window, qtbot)
    return workspace.content


def test_the_picture_of_a_task_fills_the_centre_and_d_returns(window, qtbot, labels_study) -> None:
    open_study(window, qtbot, labels_study)
    content = show_task(qtbot, window, "cell-002")
    qtbot.waitUntil(lambda: content.picture.isVisible() and content.picture.extent[2] == 40)
    assert window.workspace.middle_tabs.currentWidget() is content
    qtbot.keyClick(window.workspace.queue.view, Qt.Key.Key_D)
    assert window.workspace.middle_tabs.currentIndex() == 0


def test_the_texts_of_a_task_are_shown_as_they_are(window, qtbot, with_texts) -> None:
    open_study(window, qtbot, with_texts)
    content = show_task(qtbot, window, "cell-001")
    qtbot.waitUntil(content.texts.isVisible)
    shown = content.texts.toPlainText()
    for words in (
        "How are cells <b>counted</b>?",
        "By hand.",
        "By a program.",
        "response a",
        "Bold",
        "age: 7",
    ):
        assert words in shown
    assert "alert" not in shown
    assert TEXTS["url"] in shown


def test_a_text_alone_is_formatted_and_follows_the_text_size(qapp, qtbot) -> None:
    browser = ContentBrowser()
    qtbot.addWidget(browser)
    browser.show_texts({"markdown": "A **bold** word"})
    assert browser.toPlainText() == "A bold word"
    browser.show_texts({"text": "Large"})
    before = browser.textCursor().charFormat().font().pixelSize()
    theme.set_text_size(2.0)
    try:
        theme.apply_theme(qapp, theme.current())
        assert browser.textCursor().charFormat().font().pixelSize() == 2 * before
    finally:
        theme.set_text_size(1.0)
        theme.apply_theme(qapp, theme.current())


def test_nothing_is_loaded_from_an_address_in_a_text(window, qtbot, with_texts) -> None:
    open_study(window, qtbot, with_texts)
    content = show_task(qtbot, window, "cell-001")
    assert content.texts.loadResource(2, QUrl("file:///etc/hostname")) is None
    assert content.texts.loadResource(2, QUrl("http://example.org/x.png")) is None


def test_a_link_opens_only_after_a_question(window, qtbot, with_texts, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    open_study(window, qtbot, with_texts)
    content = show_task(qtbot, window, "cell-001")
    content.texts.anchorClicked.emit(QUrl("file:///etc/passwd"))
    assert not content.findChildren(QMessageBox)
    content.texts.anchorClicked.emit(QUrl(TEXTS["url"]))
    (question,) = content.findChildren(QMessageBox)
    assert question.textFormat() == Qt.TextFormat.PlainText
    assert not opened
    question.accept()
    assert opened == [TEXTS["url"]]


def test_a_task_without_contents_shows_its_name_as_text(window, qtbot, labels_study) -> None:
    open_study(window, qtbot, labels_study)
    content = show_task(qtbot, window, "cell-003")
    qtbot.waitUntil(content.texts.isVisible)
    assert content.texts.toPlainText() == "cell-003"


def test_a_damaged_picture_is_called_damaged_and_a_missing_one_no_image(window, qtbot, labels_study):
    (labels_study.parent / "cell-000.png").write_bytes(b"nonsense")
    (labels_study.parent / "cell-002.png").unlink()
    whole = (labels_study.parent / "cell-006.png").read_bytes()
    (labels_study.parent / "cell-006.png").write_bytes(whole[:20] + bytes(len(whole) - 20))
    workspace = open_study(window, qtbot, labels_study).workspace
    captions = []
    for name in ("cell-000", "cell-002", "cell-004", "cell-006"):
        workspace.tasks.select(workspace.session.scene.number_of[name])
        idle(window, qtbot)
        captions.append(workspace.task_panel._picture.accessibleName())
    damaged = "Image damaged or replaced"
    assert captions == [damaged, "No image", "Image of the task", damaged]
