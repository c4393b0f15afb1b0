"""Points of other programs in the window: dropped, assigned, and exported."""

import json

import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from raterscope.app.formats.points.writing import Detection, ImageDetections, write_geojson
from raterscope.widgets.dialogs.import_dialogs import AnnotatorNamesDialog
from raterscope.widgets.dialogs.output_dialogs import GroupedExportDialog, GroupsDialog
from tests.app.driving import LONG, idle
from tests.app.formats.points.crowds import feature
from tests.app.tables import rows_of


@pytest.fixture
def marked(tmp_path):
    """A photograph, and a file of points on it by an unknown annotator."""
    folder = tmp_path / "dropped"
    folder.mkdir()
    Image.effect_noise((120, 90), 60).save(folder / "smear.png")
    points = feature({"type": "MultiPoint", "coordinates": [[10, 20], [30.5, 40]]})
    (folder / "smear.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [points]}))
    return [folder / "smear.png", folder / "smear.geojson"]


def test_dropped_points_become_clicks_of_the_chosen_annotator(window, qtbot, marked):
    window.open_paths(marked)
    qtbot.waitUntil(lambda: window.findChild(AnnotatorNamesDialog) is not None, timeout=LONG)
    dialog = window.findChild(AnnotatorNamesDialog)
    dialog.table.item(0, 1).setText("Anna")
    dialog.accept()
    qtbot.waitUntil(lambda: "2 clicks on 1 image by 1 annotator" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.annotators == ("Anna",)
    assert [item.name for item in window.document.contents.of("clicks")] == ["smear.png"]


@pytest.mark.parametrize("as_truth", [True, False])
def test_imported_detections_are_truth_unless_changed_in_the_preview(
    window, qtbot, marked, tmp_path, as_truth
):
    picture, file = marked
    results = [Detection(10.0, 20.0, "accepted", 1, 5, 0.9), Detection(30.5, 40.0, "undecided", 2, 4, 0.7)]
    write_geojson(file, ImageDetections("smear.png", 120, 90, results))
    window.open_paths([picture, file])
    qtbot.waitUntil(lambda: window.findChild(AnnotatorNamesDialog) is not None, timeout=LONG)
    dialog = window.findChild(AnnotatorNamesDialog)
    assert dialog.truths[0].isChecked()
    if not as_truth:
        qtbot.keyClicks(dialog.pattern_field, "clinic B")
    dialog.accept()
    news = "2 true points on 1 image" if as_truth else "2 clicks on 1 image by 1 annotator"
    qtbot.waitUntil(lambda: news in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.annotators == (() if as_truth else ("clinic B",))


def test_detections_in_a_file_called_truth_need_no_question(window, qtbot, marked):
    picture, file = marked
    file = file.rename(file.with_name("smear_truth.geojson"))
    write_geojson(file, ImageDetections("smear.png", 120, 90, [Detection(10.0, 20.0, "accepted", 1, 5, 0.9)]))
    window.open_paths([picture, file])
    qtbot.waitUntil(lambda: "1 true point on 1 image" in window.status.message, timeout=LONG)
    idle(window, qtbot)


def test_detections_of_several_images_leave_into_a_folder(fused, qtbot, tmp_path, monkeypatch):
    def answer(_parent, _title, _proposed, filters):
        return str(tmp_path / "found"), next(choice for choice in filters.split(";;") if "QuPath" in choice)

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    action = next(action for action in fused.menus.export_menu.actions() if action.text() == "Detections…")
    action.trigger()
    qtbot.waitUntil(lambda: "and 1 more." in fused.status.message, timeout=LONG)
    idle(fused, qtbot)
    written = sorted((tmp_path / "found").glob("*.geojson"))
    assert [path.name for path in written] == ["one_detections.geojson", "two_detections.geojson"]
    assert all(len(json.loads(path.read_text())["features"]) >= 5 for path in written)


@pytest.mark.parametrize("stored", [False, True])
def test_a_training_set_asks_for_the_groups_that_stay_together(fused, qtbot, tmp_path, monkeypatch, stored):
    (tmp_path / "patients.csv").write_text("image,patient\none.png,P1\ntwo.png,P2\n")
    proposed = []

    def answer(_parent, _title, path):
        proposed.append(path)
        return str(tmp_path / "set"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / "patients.csv"), ""))
    if stored:
        fused.files.group_images()
        fused.findChild(GroupsDialog).accept()
        qtbot.waitUntil(lambda: bool(fused.document.contents.groups), timeout=LONG)
    actions = fused.menus.export_menu.actions()
    next(action for action in actions if action.text() == "Training set…").trigger()
    qtbot.waitUntil(lambda: fused.findChild(GroupedExportDialog) is not None, timeout=LONG)
    dialog = fused.findChild(GroupedExportDialog)
    dialog.formats.setCurrentIndex(dialog.formats.findText("Crops", Qt.MatchFlag.MatchStartsWith))
    if stored:
        assert dialog.grouping.currentText() == "The groups of the study"
    else:
        dialog.grouping.setCurrentIndex(2)
    dialog.accept()
    qtbot.waitUntil(lambda: "Exported training set" in fused.status.message, timeout=LONG)
    idle(fused, qtbot)
    assert proposed[0].endswith("-training")
    rows = rows_of(tmp_path / "set" / "crops.csv")
    assert {(row["image"], row["group"]) for row in rows} == {("one.png", "P1"), ("two.png", "P2")}
    assert {row["split"] for row in rows} == {"train", "val"}
