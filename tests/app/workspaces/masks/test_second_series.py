"""A second series is found by its position, registered, resampled, and shown over the case."""

import sys
from dataclasses import replace

import nibabel
import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.registration import centre_of
from raterscope.algorithms.progress import RefusedError, silent
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.masks.second_series import (
    WORKING_VOXELS,
    find_series,
    prepare,
    read_series,
    register_series,
    shared_extent,
)
from raterscope.widgets.dialogs.review_dialogs import RegistrationDialog
from tests.app.driving import idle
from tests.app.workspaces.masks.driving import go_to

COARSE = Grid((10, 16, 16), (4.0, 0, 0, 10, 0, 4.0, 0, -20, 0, 0, 6.0, 5))
FINE = Grid((30, 32, 32), (2.0, 0, 0, 9, 0, 2.0, 0, -21, 0, 0, 2.0, 3))
ELSEWHERE = Grid((10, 16, 16), (4.0, 0, 0, 500, 0, 4.0, 0, -20, 0, 0, 6.0, 5))


def entry(number, grid, name="a.nii"):
    return ImageEntry(number, name, name, grid.shape[2], grid.shape[1], grid=grid, modality="PT")


def test_series_at_the_same_position_are_offered_and_others_are_not():
    plain = Grid.plain((10, 16, 16))
    images = [entry(1, FINE), entry(2, COARSE), entry(3, ELSEWHERE), entry(4, plain)]
    assert [image.id for image in find_series(images, images[0])] == [2]
    assert shared_extent(FINE, FINE) == pytest.approx(1)
    half = Grid(FINE.shape, (2.0, 0, 0, 9 + 32, 0, 2.0, 0, -21, 0, 0, 2.0, 3))
    assert shared_extent(FINE, half) == pytest.approx(0.5)
    assert shared_extent(FINE, ELSEWHERE) == 0


def test_a_linear_series_keeps_its_values_at_every_voxel(tmp_path):
    index = np.moveaxis(np.indices(COARSE.shape, dtype=float), 0, -1)
    x, y, z = np.moveaxis(COARSE.to_patient(index), -1, 0)
    values = (500 + 3 * x + 2 * y + 4 * z).astype(np.float32)
    affine = np.diag([-1.0, -1, 1, 1]) @ COARSE.matrix
    nibabel.save(nibabel.Nifti1Image(values.transpose(2, 1, 0), affine), tmp_path / "pet.nii.gz")
    heat = read_series(entry(2, COARSE, "pet.nii.gz"), tmp_path / "pet.nii.gz", FINE, silent)
    assert heat.label == "PT pet.nii.gz"  # the file gives no unit
    assert heat.values.shape == FINE.shape
    inside = (slice(3, 25), slice(3, 28), slice(3, 28))
    index = np.moveaxis(np.indices(FINE.shape, dtype=float), 0, -1)
    x, y, z = np.moveaxis(FINE.to_patient(index), -1, 0)
    expected = np.minimum(500 + 3 * x + 2 * y + 4 * z, heat.high)
    shown = heat.values.astype(float) * heat.scale
    assert np.abs(shown - expected)[inside].max() <= heat.high / 255


def test_a_series_imported_beside_the_case_on_screen_is_offered_at_once(fused_masks, qtbot, tmp_path):
    case = fused_masks.workspace.session.scene.image
    affine = np.diag([-1.0, -1, 1, 1]) @ case.grid.matrix
    nibabel.save(
        nibabel.Nifti1Image(
            np.random.default_rng(1).uniform(0, 900, case.grid.shape[::-1]).astype(np.float32), affine
        ),
        tmp_path / "pet.nii.gz",
    )
    before = fused_masks.workspace.maps.map.count()
    fused_masks.open_paths([tmp_path / "pet.nii.gz"])
    idle(fused_masks, qtbot)
    assert fused_masks.workspace.maps.map.count() == before + 1


def save_series(folder, case, shift):
    """Write the case's own tissue, moved along x, as a second series."""
    volume = nibabel.load(folder / "first.nii.gz")
    affine = volume.affine.copy()
    affine[0, 3] -= shift
    nibabel.save(nibabel.Nifti1Image(np.asarray(volume.dataobj), affine), folder / "second_series.nii.gz")
    return folder / "second_series.nii.gz"


@pytest.fixture
def few_starts(monkeypatch):
    """Search from few positions: the search takes most of the time."""
    pytest.importorskip("SimpleITK")
    for name, value in (("_TURNS", ()), ("_TURN_STEP", 180.0), ("_MEASURED_STARTS", 1), ("_RESTARTS", 1)):
        monkeypatch.setattr(f"raterscope.algorithms.masks.registration.{name}", value)


@pytest.fixture
def with_series(fused_masks, qtbot, tmp_path):
    """The fused window with a second series 300 mm away: another frame of reference."""
    case = fused_masks.workspace.session.scene.image
    fused_masks.open_paths([save_series(tmp_path, case, 300.0)])
    idle(fused_masks, qtbot)
    go_to(fused_masks, qtbot, "first")
    return fused_masks


def dialog_of(window):
    (dialog,) = (widget for widget in window.findChildren(RegistrationDialog) if widget.isVisible())
    return dialog


def offered(window):
    return [window.workspace.maps.map.itemText(row) for row in range(window.workspace.maps.map.count())]


def test_typed_values_move_a_series_and_undo_returns_it(with_series, qtbot):
    workspace = with_series.workspace
    assert not any("second_series" in words for words in offered(with_series))
    workspace.registration.start()
    dialog = dialog_of(with_series)
    assert "Placed by the positions in the files" in dialog.position.text()
    dialog.shift[0].setValue(-300)
    qtbot.mouseClick(dialog.applying, Qt.MouseButton.LeftButton)
    idle(with_series, qtbot)
    assert dialog.position.text().startswith("Moved by 300.0 mm and rotated by 0.0°, as typed; 100 %")
    assert workspace.maps.series is not None
    heat = workspace.volume._scene.heat
    case = workspace.volume._scene.values
    assert np.corrcoef(heat.values.ravel(), np.maximum(case, 0).ravel())[0, 1] > 0.99
    workspace.slice_view.toggle_checkerboard()
    idle(with_series, qtbot)
    fields = workspace.volume._scene.heat.values
    assert 0.3 < (fields == heat.values)[heat.values > 0].mean() < 0.7
    with_series.document.undo()
    idle(with_series, qtbot)
    assert workspace.maps.series is None
    assert workspace.volume._scene.heat is None
    assert not dialog.resetting.isEnabled()
    dialog.close()


@pytest.mark.usefixtures("few_starts")
def test_a_series_in_another_frame_is_registered_and_reset(with_series, qtbot):
    workspace = with_series.workspace
    workspace.registration.start()
    qtbot.mouseClick(dialog_of(with_series).registering, Qt.MouseButton.LeftButton)
    idle(with_series, qtbot)
    workspace.registration.start()
    dialog = dialog_of(with_series)
    assert "mutual information" in dialog.position.text()
    assert dialog.shift[0].value() == pytest.approx(-300, abs=0.3)
    assert workspace.maps.series == dialog.series
    qtbot.mouseClick(dialog.resetting, Qt.MouseButton.LeftButton)
    idle(with_series, qtbot)
    assert dialog.shift[0].value() == 0
    assert workspace.maps.series is None
    dialog.close()


def test_without_simpleitk_the_message_names_what_installs_it(with_series, qtbot, monkeypatch):
    monkeypatch.setitem(sys.modules, "SimpleITK", None)
    refusals = []
    with_series.workspace.refused.connect(refusals.append)
    with_series.workspace.registration.start()
    qtbot.mouseClick(dialog_of(with_series).registering, Qt.MouseButton.LeftButton)
    idle(with_series, qtbot)
    assert refusals
    assert "raterscope[registration]" in refusals[0]
    assert with_series.workspace.maps.series is None


def test_volumes_are_prepared_within_limits():
    values = np.random.default_rng(0).integers(-1000, 2000, (40, 300, 300)).astype(np.int16)
    grid = Grid.plain(values.shape, (2.0, 0.5, 0.5), calibrated=True)
    smaller, its_grid = prepare(values, grid)
    assert smaller.size <= WORKING_VOXELS
    assert smaller.shape == its_grid.shape
    assert centre_of(its_grid) == pytest.approx(centre_of(grid), abs=0.5)
    assert smaller.min() == 0


def test_a_flat_image_and_unknown_positions_are_refused():
    values = np.zeros((10, 16, 16), dtype=np.float32)
    with pytest.raises(RefusedError, match="The series has 1 x 16 x 16 voxels"):
        register_series(values, COARSE, values[:1], replace(COARSE, shape=(1, 16, 16)), silent)
    with pytest.raises(RefusedError, match="position of the case's voxels are unknown"):
        register_series(values, Grid.plain(values.shape), values, COARSE, silent)


@pytest.mark.usefixtures("few_starts")
def test_a_failed_registration_is_named_and_changes_nothing(fused_masks, qtbot, tmp_path):
    case = fused_masks.workspace.session.scene.image
    affine = np.diag([-1.0, -1, 1, 1]) @ case.grid.matrix
    noise = np.random.default_rng(4).normal(500, 50, case.grid.shape[::-1]).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(noise, affine), tmp_path / "noise.nii.gz")
    fused_masks.open_paths([tmp_path / "noise.nii.gz"])
    idle(fused_masks, qtbot)
    go_to(fused_masks, qtbot, "first")
    refusals = []
    fused_masks.workspace.refused.connect(refusals.append)
    before = fused_masks.document.contents.decisions
    fused_masks.workspace.registration.start()
    qtbot.mouseClick(dialog_of(fused_masks).registering, Qt.MouseButton.LeftButton)
    idle(fused_masks, qtbot)
    (refusal,) = refusals
    assert "failed: mutual information is only" in refusal
    assert "Its position is unchanged." in refusal
    assert fused_masks.document.contents.decisions == before
