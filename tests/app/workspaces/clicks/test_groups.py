"""Groups of images in the window: the queue lists those of one patient, with their counts."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from raterscope.app.study import Study
from raterscope.app.study.image_groups import read_groups
from raterscope.widgets.dialogs.output_dialogs import GroupsDialog
from tests.app.driving import idle, open_study, press


@pytest.fixture
def opened(window, qtbot, study_file, study_fused):
    study_file.write_bytes(study_fused.read_bytes())
    return open_study(window, qtbot, study_file)


def request(window, row):
    window.files.group_images()
    dialog = window.findChildren(GroupsDialog)[-1]
    dialog.grouping.setCurrentIndex(row)
    dialog.accept()


def choose(window, qtbot, row):
    request(window, row)
    idle(window, qtbot)


def test_a_table_groups_the_images_of_the_queue_until_it_is_undone(opened, qtbot, tmp_path, monkeypatch):
    queue = opened.workspace.queue
    assert queue.group.isHidden()
    names = {entry.id: entry.name for entry in opened.document.contents.images}
    first, *others = names
    table = tmp_path / "patients.csv"
    rows = [f"{names[first]},patient 10", *(f"{names[image]},patient 9" for image in others)]
    table.write_text("\n".join(["image,patient", *rows]))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(table), ""))
    choose(opened, qtbot, 0)
    assert not queue.group.isHidden()
    assert [queue.group.itemText(row) for row in range(queue.group.count())] == [
        "all groups", "patient 9", "patient 10",
    ]  # fmt: skip
    listed = len(queue.shown())
    queue.group.setCurrentIndex(2)
    assert [item.key for item in queue.shown()] == [first]
    assert "1 in the group" in queue._group_label.text()
    assert "detections" in queue._group_label.text()
    panel = opened.workspace.parasitaemia
    opened.workspace.middle_tabs.setCurrentWidget(panel)
    idle(opened, qtbot)
    line = {line.title: line for line in panel.list.lines}["patient 10: structures"]
    assert line.formula.startswith("1 image; ")
    assert " to " in line.interval
    with Study.open(opened.document.contents.path, to_read=True) as study:
        groups, _ = read_groups(study, Path("study"))
        assert groups["patient 10"] == (first,)
    choose(opened, qtbot, 2)
    assert not any(":" in line.title for line in panel.list.lines)
    assert queue.group.isHidden()
    assert len(queue.shown()) == listed

    queue, document = opened.workspace.queue, opened.document
    tables = []
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tables[-1]), ""))
    for patient in ("A", "B"):
        names = [entry.name for entry in document.contents.images]
        tables.append(tmp_path / f"{patient}.csv")
        tables[-1].write_text("\n".join(["image,patient", *(f"{name},{patient}" for name in names)]))
        choose(opened, qtbot, 0)
    assert set(document.contents.groups.values()) == {"B"}
    lines = [line.text for line in opened.workspace.history.view.lines]
    assert lines[0] == f"group {len(names)} images in 1 group"
    press(opened, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert set(document.contents.groups.values()) == {"A"}
    assert queue.group.itemText(1) == "A"
    press(opened, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert document.contents.groups == {}
    assert queue.group.isHidden()
    for _ in range(2):
        press(opened, qtbot, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    assert queue.group.itemText(1) == "B"


def test_groups_of_a_study_that_was_left_are_not_recorded_in_the_next(opened, qtbot, tmp_path):
    other = tmp_path / "other.rscope"
    other.write_bytes(opened.document.contents.path.read_bytes())
    request(opened, 1)
    opened.document.leave()
    open_study(opened, qtbot, other)
    assert opened.document.contents.path == other
    assert not opened.document.contents.decisions
    assert opened.document.contents.groups == {}


def test_a_table_without_groups_is_refused_and_nothing_is_recorded(opened, qtbot, tmp_path, monkeypatch):
    table = tmp_path / "patients.csv"
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(table), ""))
    before = opened.document.contents.decisions
    for content, problem in (
        ("", "empty"),
        ("image,patient\n", "no rows"),
        ("image,x\na.png,1\n", "no columns of images"),
    ):
        table.write_text(content)
        choose(opened, qtbot, 0)
        assert "patients.csv" in opened.notice.text
        assert problem in opened.notice.text
        assert opened.document.contents.decisions == before
