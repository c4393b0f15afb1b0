"""Pictures of slices: which ones, which way round, and what is drawn where."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.formats.records import Volume
from raterscope.app.kinds.masks.report.slices import (
    Layer,
    SliceScene,
    colour_of,
    draw_slice,
    most_disputed,
    window_of,
)
from tests.app.report.conftest import fuse

NOTHING = Layer((0, 0, 0), np.zeros((1, 1, 1), dtype=np.float32))


def drawn(scene, index):
    with Image.open(io.BytesIO(draw_slice(scene, index, "").data)) as image:
        return np.asarray(image.convert("RGB"), dtype=int)


def a_scene(grid, voxels=None, raters=(), consensus=NOTHING):
    return SliceScene(grid, raters, consensus, NOTHING, voxels=voxels, window=(127.5, 255.0))


@pytest.mark.parametrize("turned", [False, True])
def test_the_patients_right_is_at_the_left(turned):
    """A bright corner at the patient's right front, in a file whose columns and rows run either way."""
    across = -1.0 if turned else 1.0
    grid = Grid((3, 40, 40), (across, 0, 0, 0, 0, across, 0, 0, 0, 0, 5.0, 0))
    voxels = np.full((3, 40, 40), 20, dtype=np.uint8)
    corner = np.s_[1, 24:34, 24:34] if turned else np.s_[1, 6:16, 6:16]
    voxels[corner] = 255
    picture = drawn(a_scene(grid, voxels), 1)
    middle = picture[:, :, 1]
    quarter = np.array(middle.shape) // 4
    assert middle[quarter[0], quarter[1]] > 200
    for row, column in ((1, 3), (3, 1), (3, 3)):
        assert middle[row * quarter[0], column * quarter[1]] < 60


def test_slices_that_are_thick_across_keep_their_shape():
    grid = Grid.plain((1, 20, 20), (1.0, 3.0, 1.0), calibrated=True)
    picture = draw_slice(a_scene(grid, np.zeros((1, 20, 20), dtype=np.uint8)), 0, "")
    assert picture.height / picture.width == pytest.approx(3.0, abs=0.02)


def test_a_raters_outline_lies_on_the_masks_edge_in_the_raters_colour():
    grid = Grid.plain((1, 100, 100), calibrated=True)
    block = np.ones((1, 40, 40), dtype=bool)
    scene = a_scene(grid, raters=[Layer((0, 30, 30), block, colour_of(5))])
    frame_left, frame_top, frame_right, _ = scene.frame()
    picture = drawn(scene, 0)
    scale = picture.shape[1] / (frame_right - frame_left)
    hue = np.array([int(colour_of(5)[at : at + 2], 16) for at in (1, 3, 5)])
    near = np.abs(picture - hue).max(axis=2) < 12
    rows, columns = np.nonzero(near)
    # Between the middles of the last voxel within and the first without lies the edge.
    for edges, low in ((columns / scale + frame_left, 30.0), (rows / scale + frame_top, 30.0)):
        assert edges.min() == pytest.approx(low, abs=0.5)
        assert edges.max() == pytest.approx(low + 40.0, abs=0.5)


def test_the_slice_where_raters_part_most_is_shown(study):
    run = fuse(study)
    result = study.runs.result(run, study.images()[0].id)
    dispute = result.reports[0].disputes[0]
    doubt = np.zeros((12, 2, 2), dtype=np.float32)
    doubt[0] = 1.0
    chosen = most_disputed(result.reports[0], Layer((0, 0, 0), doubt), NOTHING, limit=1)
    assert len(chosen) == 1
    assert dispute.origin[0] <= chosen[0] < dispute.origin[0] + dispute.shape[0]
    with_more = most_disputed(result.reports[0], Layer((0, 0, 0), doubt), NOTHING)
    assert {0, *chosen} <= set(with_more)
    assert with_more == sorted(with_more)


def test_without_a_dispute_the_largest_slice_is_shown(study):
    run = fuse(study)
    report = study.runs.result(run, study.images()[0].id).reports[0]
    consensus = np.zeros((4, 5, 5), dtype=bool)
    consensus[2] = True
    consensus[1, 0] = True
    calm = replace(report, disputes=())
    assert most_disputed(calm, NOTHING, Layer((7, 0, 0), consensus)) == [9]


@pytest.mark.parametrize(
    ("within", "about", "words"),
    [(-20, -850, "lung"), (700, 60, "bone"), (50, 40, "soft tissue")],
)
def test_ct_is_shown_in_the_window_of_the_tissue(within, about, words):
    values = np.full((5, 20, 20), about, dtype=np.int16)
    inside = np.zeros((5, 20, 20), dtype=bool)
    inside[2, 8:12, 8:12] = True
    values[inside] = within
    volume = Volume(values, Grid.plain((5, 20, 20), calibrated=True), "CT")
    assert window_of(volume, "CT", inside, (0, 0, 0))[1].endswith(words)


def test_the_display_window_of_a_file_is_used():
    values = np.random.default_rng(3).normal(40, 5, (3, 9, 9)).astype(np.int16)
    volume = Volume(values, Grid.plain((3, 9, 9), calibrated=True), "CT", window=(35.0, 85.0))
    inside = np.zeros((3, 9, 9), dtype=bool)
    inside[1, 4, 4] = True
    assert window_of(volume, "CT", inside, (0, 0, 0))[0] == (35.0, 85.0)
