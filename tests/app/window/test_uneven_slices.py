"""A case with missing slices in the window: note, views, and the question before an export."""

import numpy as np
import pytest
import SimpleITK
from PySide6.QtWidgets import QFileDialog, QMessageBox

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.widgets.hints import WorkspaceNotes
from raterscope.widgets.volume.volume_view import VolumeView
from tests.app.driving import LONG, idle, open_study
from tests.app.formats.dicom_builder import disc, write_contours, write_series

SENTENCE = (
    "6 slices are missing between 62.5 and 80.0 mm. Contours near the gap may be misplaced; "
    "volumes leave the gap out."
)


@pytest.fixture
def uneven(window, qtbot, tmp_path):
    """The window on a fused case of which 6 of 24 slices are missing."""
    series = write_series(tmp_path / "ct", (24, 32, 40), missing=range(10, 16))
    files = []
    for name, radius in (("anna", 6.3), ("bo", 6.3), ("cy", 9.0)):
        discs = [disc(series, at, radius) for at in range(5, 15)]
        files.append(write_contours(tmp_path / f"{name}.dcm", series, {"tumour": discs}, rater=name))
    path = tmp_path / "case.rscope"
    with Study.create(path) as study:
        store(read_files([series.folder, *files]), study)
        images = [entry.id for entry in study.images()]
        keep(fuse_inputs(gather(images, study), MaskPlan.make("majority")), study)
    return open_study(window, qtbot, path)


def test_a_case_with_missing_slices_asks_before_resampling(uneven, qtbot, tmp_path, monkeypatch):
    notes = next(notes for notes in uneven.findChildren(WorkspaceNotes) if notes.isVisible())
    assert notes.notes()["Slices"] == SENTENCE
    plane = uneven.findChild(VolumeView).planes["coronal"]
    assert plane.extent[3] == pytest.approx(24 * 2.5)
    out = tmp_path / "out.nii.gz"
    chosen = "NIfTI (*.nii.gz *.nii)"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(out), chosen))
    words = [action.text() for action in uneven.menus.export_menu.actions()]
    export = uneven.menus.export_menu.actions()[words.index("Consensus…")]
    export.trigger()
    qtbot.waitUntil(lambda: uneven.findChild(QMessageBox) is not None, timeout=LONG)
    box = uneven.findChild(QMessageBox)
    assert box.text() == "Resample to a regular grid?"
    assert SENTENCE.split(". ")[0] in box.informativeText()
    assert "DICOM SEG and RTSTRUCT" in box.informativeText()
    box.reject()
    idle(uneven, qtbot)
    assert not out.exists()
    uncertainty = uneven.menus.export_menu.actions()[words.index("Uncertainty…")]
    uncertainty.trigger()
    qtbot.waitUntil(lambda: any(box.isVisible() for box in uneven.findChildren(QMessageBox)), timeout=LONG)
    box = next(box for box in uneven.findChildren(QMessageBox) if box.isVisible())
    assert "DICOM" not in box.informativeText()  # it has no such format
    box.reject()
    idle(uneven, qtbot)
    export.trigger()
    qtbot.waitUntil(lambda: any(box.isVisible() for box in uneven.findChildren(QMessageBox)), timeout=LONG)
    next(box for box in uneven.findChildren(QMessageBox) if box.isVisible()).accept()
    qtbot.waitUntil(out.exists, timeout=LONG)
    idle(uneven, qtbot)
    values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(out))
    marked = [at for at in range(24) if 5 <= at < 10 or 16 <= at < 21]
    assert np.flatnonzero(values.any(axis=(1, 2))).tolist() == marked
