import numpy as np
import pytest
from PySide6.QtCore import QPointF, QThreadPool

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.plane import planes_of
from raterscope.widgets.volume.scene import Outliner, Shape, path_on

SHAPE = (10, 40, 40)
AXIAL = planes_of(Grid.plain(SHAPE, (3.0, 2.0, 0.5), calibrated=True))["axial"]


def block(width: int) -> Shape:
    return Shape(np.ones((6, 10, width), dtype=bool), (2, 5, 7))


@pytest.fixture
def outliner(qtbot):
    instance = Outliner()
    yield instance
    instance.stop()


def outlines_of(outliner, qtbot, index, keys):
    with qtbot.waitSignal(outliner.ready):
        outliner.paths(AXIAL, index, keys)
    return outliner.paths(AXIAL, index, keys)


def test_an_outline_is_in_millimetres_of_the_plane():
    box = path_on(block(20), AXIAL, 4).boundingRect()
    # Halfway between the middles of the voxels inside and outside is where the voxels meet.
    assert (box.left(), box.top(), box.right(), box.bottom()) == (3.5, 10.0, 13.5, 30.0)
    assert path_on(block(20), AXIAL, 1).isEmpty()


def test_between_two_levels_is_a_ring():
    away = np.hypot(np.arange(40)[:, None] * 2.0 - 40, np.arange(40) * 0.5 - 10)
    values = np.clip(1 - away / 8, 0, 1).astype(np.float32)[None]
    path = path_on(Shape(values, (4, 0, 0), (0.25, 0.75)), AXIAL, 4)
    middle = QPointF(10.25, 41.0)
    assert not path.contains(middle)
    assert path.contains(middle + QPointF(4.0, 0))
    assert not path.contains(middle + QPointF(7.0, 0))


def test_neighbouring_slices_are_there_before_they_are_requested(outliner, qtbot):
    outliner.set_shapes({"a": block(20)})
    assert set(outlines_of(outliner, qtbot, 4, ["a"])) == {"a"}
    qtbot.waitUntil(lambda: "a" in outliner.paths(AXIAL, 5, ["a"]))


def test_a_slice_that_is_expected_next_is_there_before_it_is_requested(outliner, qtbot):
    outliner.set_shapes({"a": Shape(np.ones((10, 10, 20), dtype=bool), (0, 5, 7))})
    outliner.expect(AXIAL, 1, 8, ["a"])
    qtbot.waitUntil(lambda: (AXIAL.name, 8, "a") in outliner._paths)
    assert (AXIAL.name, 6, "a") not in outliner._paths
    with qtbot.assertNotEmitted(outliner.ready, wait=50):
        assert set(outliner.paths(AXIAL, 8, ["a"])) == {"a"}


def test_an_answer_about_a_mask_that_has_changed_is_dropped(outliner, qtbot):
    widths = []

    def look(_plane):
        widths.append(outliner.paths(AXIAL, 4, ["a"])["a"].boundingRect().width())

    outliner.ready.connect(look)
    outliner.set_shapes({"a": block(20)})
    outliner.paths(AXIAL, 4, ["a"])
    outliner.findChild(QThreadPool).waitForDone()
    outliner.set_shapes({"a": block(10)})
    outliner.paths(AXIAL, 4, ["a"])
    qtbot.waitUntil(lambda: bool(widths))
    assert set(widths) == {5.0}


def test_the_old_line_stays_until_the_new_one_is_found_and_goes_with_its_mask(outliner, qtbot):
    outliner.set_shapes({"a": block(20), "b": block(8)})
    outlines_of(outliner, qtbot, 4, ["a", "b"])
    outliner.set_shapes({"a": block(10)})
    there = outliner.paths(AXIAL, 4, ["a", "b"])
    assert set(there) == {"a"}
    assert there["a"].boundingRect().width() == 10.0
    with qtbot.waitSignal(outliner.ready):
        pass
    assert outliner.paths(AXIAL, 4, ["a"])["a"].boundingRect().width() == 5.0


def test_outlines_do_not_cross_a_gap_of_missing_slices():
    offsets = (0.0, 2.0, 4.0, 14.0, 16.0, 18.0)
    grid = Grid.from_matrix((6, 9, 9), np.diag([1.0, 1.0, -2.0, 1.0]), slice_offsets=offsets)
    plane = planes_of(grid)["coronal"]
    mask = np.zeros((6, 9, 9), dtype=bool)
    mask[1:5, 3:6, 3:6] = True
    path = path_on(Shape(mask, (0, 0, 0)), plane, 4)
    assert path.contains(QPointF(4.5, 5.9))
    assert not path.contains(QPointF(4.5, 10.0))
    assert path.contains(QPointF(4.5, 15.0))
    box = path.boundingRect()
    assert (box.top(), box.bottom()) == pytest.approx((2.0, 18.0), abs=0.6)


def test_a_mask_that_changes_elsewhere_keeps_its_line_on_this_slice(outliner, qtbot):
    before = block(20)
    outliner.set_shapes({"a": before})
    line = outlines_of(outliner, qtbot, 4, ["a"])["a"]
    elsewhere, here = before.values.copy(), before.values.copy()
    elsewhere[5] = False
    here[2, 0] = False
    with qtbot.assertNotEmitted(outliner.ready, wait=50):
        outliner.set_shapes({"a": Shape(elsewhere, before.origin)})
        assert outliner.paths(AXIAL, 4, ["a"])["a"] is line
        outliner.findChild(QThreadPool).waitForDone()
    outliner.set_shapes({"a": Shape(here, before.origin)})
    assert outlines_of(outliner, qtbot, 4, ["a"])["a"].boundingRect().top() == 12.0


def test_masks_that_are_set_again_need_no_new_lines(outliner, qtbot):
    before = block(20)
    outliner.set_shapes({"a": before})
    line = outlines_of(outliner, qtbot, 4, ["a"])["a"]
    outliner.findChild(QThreadPool).waitForDone()
    with qtbot.assertNotEmitted(outliner.ready, wait=50):
        outliner.set_shapes({"a": Shape(before.values, before.origin)})
        assert outliner.paths(AXIAL, 4, ["a"])["a"] is line
