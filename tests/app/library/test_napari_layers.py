"""A study becomes layers of napari, at napari's positions; its manifest is valid."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raterscope as rs
from raterscope.app.library.napari_layers import get_reader, read_layers
from raterscope.app.study import Study
from tests.app.commands import run

MANIFEST = Path(rs.__file__).parent / "resources" / "napari.yaml"


def by_kind(layers, kind):
    return [(data, arguments) for data, arguments, of in layers if of == kind]


def test_clicks_and_detections_are_points_in_row_and_column(study_fused, tmp_path):
    path = shutil.copy(study_fused, tmp_path / "study.rscope")
    reader = get_reader(str(path))
    assert reader is not None
    assert get_reader(str(tmp_path / "a.png")) is None
    layers = reader(str(path))
    with Study.open(path, to_read=True) as study:
        entry = next(entry for entry in study.images() if len(study.clicks(entry.id).x))
        clicks = study.clicks(entry.id)
    points = {arguments["name"]: (data, arguments) for data, arguments in by_kind(layers, "points")}
    data, arguments = points[f"{entry.name} clicks"]
    np.testing.assert_allclose(data[:, ::-1] + 0.5, np.column_stack((clicks.x, clicks.y)))
    assert len(arguments["features"]["annotator"]) == len(data)
    with rs.open_study(path) as opened:
        frame = opened.to_frame("detections", item=entry.name)
    found = frame["detected"] == 1
    data, _ = points[f"{entry.name} detections"]
    expected = np.column_stack((frame["x"][found], frame["y"][found]))
    np.testing.assert_allclose(np.sort(data[:, ::-1] + 0.5, axis=0), np.sort(expected, axis=0), atol=0.01)


def test_masks_are_labels_in_millimetres_and_disputed_regions_are_boxes(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    affine = np.diag([0.5, 0.5, 2.0, 1.0])
    files = []
    for number, name in enumerate("abc"):
        mask = np.zeros((40, 30, 6), dtype=np.uint8)
        mask[8 : 16 + 10 * number, 10:20, 1:5] = 1
        files.append(tmp_path / f"case_{name}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(mask, affine), files[-1])
    path = tmp_path / "study.rscope"
    assert run("import", path, *files) == 0
    assert run("run", path, "majority") == 0
    layers = read_layers(str(path))
    labels = by_kind(layers, "labels")
    assert [arguments["name"].rsplit(" ", 1)[-1] for _, arguments in labels] == ["a", "b", "c", "consensus"]
    assert {(data.shape, arguments["scale"]) for data, arguments in labels} == {
        ((6, 30, 40), (2.0, 0.5, 0.5))
    }
    assert [int(data.sum()) for data, _ in labels] == [320, 720, 1120, 720]
    ((boxes, arguments),) = by_kind(layers, "shapes")
    assert len(boxes) == len(arguments["features"]["region"]) > 0
    assert all(box.shape == (4, 3) for box in boxes)


def test_the_manifest_is_valid_and_names_the_reader():
    if importlib.util.find_spec("npe2") is None:
        pytest.skip("npe2 is not installed")  # it is not imported: its warnings are errors here
    command = [sys.executable, "-m", "npe2", "validate", str(MANIFEST)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "valid" in done.stdout, done.stderr
    assert f"python_name: {get_reader.__module__}:{get_reader.__name__}\n" in MANIFEST.read_text()
