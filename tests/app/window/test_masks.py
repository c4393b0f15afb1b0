"""Import of volumes and masks in the window."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.app.coding import Code
from raterscope.app.exports import FORMATS
from raterscope.app.formats.masks import read_masks
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.review import described_structures
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from raterscope.app.window.command_palette import CommandPalette
from raterscope.widgets.dialogs.import_dialogs import AnnotatorNamesDialog
from raterscope.widgets.dialogs.output_dialogs import DeidentifiedExportDialog
from raterscope.widgets.dialogs.review_dialogs import StructureDialog
from tests.app.driving import LONG, idle, open_study, press
from tests.app.kinds.masks.dicom_cases import a_patient, two_raters
from tests.app.kinds.masks.made import a_ball, a_volume, four_raters, write
from tests.reading import visible_words


def test_a_volume_and_masks_dropped_together_become_a_study_with_messages_of_its_own(window, qtbot, folder):
    window.open_paths([*four_raters(folder), a_volume(folder / "chest.nii.gz")])
    qtbot.waitUntil(
        lambda: "4 masks in 4 files on 1 image by 4 annotators" in window.status.message, timeout=LONG
    )
    idle(window, qtbot)
    contents = window.document.contents
    assert window.workspace.current_item() == contents.images[0].id
    assert [entry.name for entry in contents.of("masks")] == ["chest.nii.gz"]
    assert contents.annotators == ("anna", "ben", "carl", "dora")

    other = folder / "other.rscope"
    Study.create(other).close()
    window.open_paths([other])
    qtbot.waitUntil(lambda: window.document.contents.path == other, timeout=LONG)
    idle(window, qtbot)
    assert window.status.message == ""


def test_masks_that_are_imported_after_their_volume_are_counted_in_the_queue(window, qtbot, folder):
    def described():
        return [item.detail for item in window.workspace.queue.shown()]

    window.open_paths([a_volume(folder / "chest.nii.gz")])
    qtbot.waitUntil(lambda: window.workspace is not None and described() == ["no masks yet"], timeout=LONG)
    idle(window, qtbot)
    assert "Import the masks of several raters (Ctrl+I)" in visible_words(window.workspace.region_panel)
    window.open_paths(four_raters(folder))
    qtbot.waitUntil(lambda: described() == ["4 raters, not fused yet"], timeout=LONG)
    idle(window, qtbot)
    assert "Press Fuse (F5) to find disputed regions." in visible_words(window.workspace.region_panel)


def test_an_import_is_taken_while_no_case_is_on_screen(window, qtbot, folder):
    window.open_paths([a_volume(folder / "chest.nii.gz")])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    idle(window, qtbot)
    window.workspace.session.show(None)
    window.open_paths(four_raters(folder))  # an exception in a slot fails the test
    qtbot.waitUntil(lambda: "4 masks" in window.status.message, timeout=LONG)
    idle(window, qtbot)


def test_the_annotator_of_a_file_is_requested(window, qtbot, folder):
    window.open_paths([write(folder / "mask.nii.gz", a_ball())])
    qtbot.waitUntil(lambda: window.findChild(AnnotatorNamesDialog) is not None, timeout=LONG)
    dialog = window.findChild(AnnotatorNamesDialog)
    dialog.table.item(0, 1).setText("Anna")
    dialog.accept()
    qtbot.waitUntil(lambda: "1 mask on 1 image" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.annotators == ("Anna",)


def test_a_cancelled_question_imports_nothing(window, qtbot, folder):
    window.open_paths([write(folder / "mask.nii.gz", a_ball())])
    qtbot.waitUntil(lambda: window.findChild(AnnotatorNamesDialog) is not None, timeout=LONG)
    window.findChild(AnnotatorNamesDialog).reject()
    assert "Nothing was imported" in window.status.message
    assert window.document.contents is None


@pytest.mark.parametrize("resample", [True, False])
def test_masks_on_another_grid_need_confirmation_before_a_study_is_created(window, qtbot, folder, resample):
    files = [a_volume(folder / "chest.nii.gz"), write(folder / "chest_anna.nii.gz", a_ball(), shift=-3)]
    window.open_paths(files)
    qtbot.waitUntil(lambda: window.findChild(QMessageBox) is not None, timeout=LONG)
    assert window.document.contents is None
    box = window.findChild(QMessageBox)
    assert "does not lie on chest.nii.gz" in box.text()
    (box.accept if resample else box.reject)()
    if resample:
        qtbot.waitUntil(lambda: "resampled to the grid of the image" in window.status.message, timeout=LONG)
        idle(window, qtbot)
        path = window.document.contents.path
        window.close()
        with Study.open(path) as study:
            assert len(mask_entries(study)) == 1
    else:
        assert "Nothing was imported" in window.status.message


@pytest.fixture
def fused_masks(window, qtbot, folder):
    """The window on two cases whose masks are fused."""
    path = folder / "cases.rscope"
    for case in ("case1_", "case2_"):
        four_raters(folder, case)
    with Study.create(path) as study:
        store(read_files([folder]), study)
        images = [entry.id for entry in study.images()]
        keep(fuse_inputs(gather(images, study), MaskPlan.make("laplace")), study)
    window.open_paths([path])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    window.show_workspace("masks")
    qtbot.waitUntil(lambda: window.workspace.current_item() is not None, timeout=LONG)
    idle(window, qtbot)
    return window


def test_the_consensus_leaves_as_chosen_and_the_palette_goes_to_cases_and_raters(
    fused_masks, qtbot, tmp_path, monkeypatch
):
    words = [action.text() for action in fused_masks.menus.export_menu.actions()]
    assert {"Consensus…", "De-identified", "Raters' weights…", "Decisions…"} <= set(words)
    assert "Detections…" not in words
    requests = []

    def answer(_parent, _title, proposed, filters):
        requests.append(proposed)
        chosen = next(choice for choice in filters.split(";;") if "seg.nrrd" in choice)
        return str(tmp_path / "mine"), chosen

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    fused_masks.menus.export_menu.actions()[words.index("Consensus…")].trigger()
    qtbot.waitUntil(lambda: "Exported consensus of run" in fused_masks.status.message, timeout=LONG)
    idle(fused_masks, qtbot)
    item = fused_masks.document.contents.image(fused_masks.workspace.current_item())
    assert item.name in requests[0]
    (mask,) = read_masks(tmp_path / "mine.seg.nrrd").masks
    assert mask.values.any()

    requests = []

    def answer(_parent, _title, proposed, _filters):
        requests.append(proposed)
        return str(tmp_path / "seg.dcm"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    dialog = deidentified_dialog(fused_masks, qtbot)
    assert dialog.images.isHidden()  # these cases have masks alone
    dialog.formats.setCurrentText(FORMATS["dicom-seg"].text)
    dialog.accepting.click()
    assert Path(requests[0]).name == "case-001-consensus_seg.dcm"
    qtbot.waitUntil(fused_masks.notice.isVisible, timeout=LONG)
    idle(fused_masks, qtbot)
    assert "without the DICOM series" in fused_masks.notice.text
    assert not (tmp_path / "seg.dcm").exists()

    here = fused_masks.workspace.current_item()
    there = next(item for item in fused_masks.document.contents.of("masks") if item.id != here)
    for typed in (there.name, "carl annotator"):
        fused_masks.window_actions.show_palette()
        palette = next(palette for palette in fused_masks.findChildren(CommandPalette) if palette.isVisible())
        qtbot.keyClicks(palette.line, typed)
        qtbot.keyClick(palette.line, Qt.Key.Key_Return)
        idle(fused_masks, qtbot)
    assert fused_masks.workspace.current_item() == there.id
    assert fused_masks.workspace.raters.current == "carl"


def test_all_cases_leave_into_a_folder_each_in_its_usual_format(window, qtbot, folder, monkeypatch):
    volume = a_patient(folder / "ct")
    other = folder / "mr"
    other.mkdir()
    path = folder / "s.rscope"
    with Study.create(path) as study:
        store(read_files(four_raters(other, "case1_")), study)
        for file in two_raters(folder, volume):
            reading = MaskOptions(annotator=file.stem)
            store(read_files([volume.path, file], reading=reading), study)
        images = [entry.id for entry in study.images()]
        assert len(images) == 2
        keep(fuse_inputs(gather(images, study), MaskPlan.make("majority")), study)
    open_study(window, qtbot, path)
    out = folder / "out"
    out.mkdir()
    offered = []
    monkeypatch.setattr(
        QInputDialog, "getItem", lambda *given: (offered.extend(given[3]) or given[3][0], True)
    )
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(out))
    assert window.menus.all_cases_menu.menuAction().isVisible()
    actions = window.menus.all_cases_menu.actions()
    next(action for action in actions if action.text() == "Consensus, all cases…").trigger()
    qtbot.waitUntil(lambda: "Exported consensus of run" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert FORMATS["dicom-seg"].text in offered
    names = sorted(file.name for file in out.iterdir())
    assert [name.endswith("_consensus_seg.dcm") for name in names].count(True) == 1
    assert [name.endswith("_consensus.nii.gz") for name in names].count(True) == 1
    window.status.show_message("")
    next(action for action in actions if action.text() == "Consensus, all cases, de-identified…").trigger()
    qtbot.waitUntil(lambda: "Exported consensus of run" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    more = sorted({file.name for file in out.iterdir()} - {*names})
    assert more.pop() == "consensus-2.run.json"  # beside the record of the first export
    assert [name[:9] for name in more] == ["case-001_", "case-002_"]
    assert {name[9:] for name in more} == {"consensus_seg.dcm", "consensus.nii.gz"}


def deidentified_dialog(window, qtbot):
    actions = window.menus.deidentified_menu.actions()
    next(action for action in actions if action.text() == "Consensus, de-identified…").trigger()
    results = []

    def there():
        results[:] = [
            dialog for dialog in window.findChildren(DeidentifiedExportDialog) if dialog.isVisible()
        ]
        return bool(results)

    qtbot.waitUntil(there, timeout=LONG)
    return results[0]


def test_a_series_leaves_with_its_images_and_without_names(window, qtbot, folder, monkeypatch):
    volume = a_patient(folder / "ct")
    path = folder / "s.rscope"
    with Study.create(path) as study:
        for file in two_raters(folder, volume):
            reading = MaskOptions(annotator=file.stem)
            store(read_files([volume.path, file], reading=reading), study)
        keep(fuse_inputs(gather([1], study), MaskPlan.make("majority")), study)
    window.open_paths([path])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    window.show_workspace("masks")
    qtbot.waitUntil(lambda: window.workspace.current_item() is not None, timeout=LONG)
    idle(window, qtbot)
    out = folder / "out"
    out.mkdir()
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(out))
    dialog = deidentified_dialog(window, qtbot)
    assert dialog.format == FORMATS["dicom-seg"].text  # of a DICOM case
    dialog.images.click()
    dialog.accepting.click()
    qtbot.waitUntil(lambda: "6 more." in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert (out / "case-001_consensus_seg.dcm").is_file()
    assert len(list((out / "case-001_images").iterdir())) == volume.grid.shape[0]

    # What a structure stands for is chosen beside it, and taken back by undo.
    press(window, qtbot, Qt.Key.Key_K, on=window.workspace.volume)
    qtbot.waitUntil(lambda: window.findChild(StructureDialog) is not None, timeout=LONG)
    dialog = window.findChild(StructureDialog)
    qtbot.waitUntil(dialog.search.isEnabled, timeout=LONG)
    assert "Heart" in dialog.chosen_label.text()
    dialog.search.setText("liver")
    dialog.codes.setCurrentRow(0)
    dialog.role.setCurrentText("AVOIDANCE")
    dialog.accepting.click()
    qtbot.waitUntil(lambda: len(window.document.contents.decisions) == 1, timeout=LONG)
    idle(window, qtbot)
    contents = window.document.contents
    assert contents.text_of(contents.decisions[0]) == "describe pump as Liver, AVOIDANCE"
    coding = described_structures(contents.decisions, contents.review)["pump"]
    assert coding.type == Code("10200004", "SCT", "Liver")
    assert coding.colour == (206, 110, 84)  # the file's
    window.document.undo()
    qtbot.waitUntil(lambda: len(window.document.contents.decisions) == 2, timeout=LONG)
    idle(window, qtbot)
    contents = window.document.contents
    assert described_structures(contents.decisions, contents.review) == {}
