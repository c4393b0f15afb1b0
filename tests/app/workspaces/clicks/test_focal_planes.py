"""Planes and times of a stack are stepped through by wheel and key, projected, and searched for focus."""

import numpy as np
import pytest
import tifffile
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter

from raterscope.app.errors import InputError
from raterscope.app.formats.images import load_planes, open_planes
from tests.app.driving import LONG, idle, press

ALT, SHIFT = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ShiftModifier
SHARP = 3


def write_stack(path, **how):
    """Write two times of five planes of two channels; plane 4 is sharp."""
    sharp = np.random.default_rng(4).integers(0, 4000, (2, 2, 90, 120)).astype(float)
    stack = np.stack([gaussian_filter(sharp, (0, 0, s, s)) for s in (3, 2, 1, 0, 1)], axis=1)
    stack = stack.astype(np.uint16)
    tifffile.imwrite(path, stack, metadata={"axes": "TZCYX"}, **how)
    return stack


@pytest.mark.parametrize(
    "how", [{"ome": True}, {"ome": True, "compression": "zlib", "tile": (64, 64)}, {"imagej": True}]
)
def test_planes_and_times_are_read_as_written(tmp_path, how):
    stack = write_stack(tmp_path / "a.ome.tif", **how)
    with open_planes(tmp_path / "a.ome.tif") as reader:
        assert (reader.times, reader.planes) == (2, 5)
        for time in range(2):
            for plane in range(5):
                for channel, values in zip(reader.read(time, plane), stack[time, plane], strict=True):
                    np.testing.assert_array_equal(channel.values, values)


def test_a_stack_in_colour_has_planes(tmp_path):
    stack = np.random.default_rng(5).integers(0, 255, (4, 30, 40, 3), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "a.ome.tif", stack, photometric="rgb", metadata={"axes": "ZYXS"})
    with open_planes(tmp_path / "a.ome.tif") as reader:
        np.testing.assert_array_equal(reader.read(0, 3)[0].values, stack[3])


def test_a_stack_that_is_cut_short_is_refused_by_name(tmp_path):
    write_stack(tmp_path / "a.ome.tif", ome=True)
    content = (tmp_path / "a.ome.tif").read_bytes()
    (tmp_path / "a.ome.tif").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"a\.ome\.tif"), open_planes(tmp_path / "a.ome.tif") as reader:
        reader.read(1, 4)


def wheel(canvas, notches, modifier):
    position = QPointF(90, 90)
    event = QWheelEvent(
        position, canvas.mapToGlobal(position), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        modifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas, event)


@pytest.fixture
def stacked(window, qtbot, tmp_path):
    """A window with clicks on a stack, and the stack."""
    stack = write_stack(tmp_path / "stack.ome.tif", ome=True)
    lines = [f"v{k},stack.ome.tif,{30 + k},{40 + k}" for k in range(4)]
    (tmp_path / "clicks.csv").write_text("\n".join(["annotator,image,x,y", *lines]) + "\n", encoding="utf-8")
    window.open_paths([tmp_path / "stack.ome.tif", tmp_path / "clicks.csv"])
    qtbot.waitUntil(
        lambda: window.workspace is not None and getattr(window.workspace, "display", None) is not None
        and window.workspace.display.loaded is not None,
        timeout=LONG,
    )  # fmt: skip
    idle(window, qtbot)
    return window, stack


def shown(window):
    return [plane.values for plane in window.workspace.display.loaded.planes]


def test_planes_are_stepped_projected_and_searched(stacked, qtbot):
    window, stack = stacked
    canvas, before = window.workspace.canvas, window.workspace.canvas.viewport
    assert canvas._plane == "z 1 of 5, t 1 of 2"
    np.testing.assert_array_equal(shown(window), stack[0, 0])
    wheel(canvas, 2, ALT)
    wheel(canvas, 1, SHIFT)
    idle(window, qtbot)
    assert canvas._plane == "z 3 of 5, t 2 of 2"
    assert "z 3 of 5" in canvas.accessibleDescription()
    np.testing.assert_array_equal(shown(window), stack[1, 2])
    press(window, qtbot, Qt.Key.Key_Down, ALT)
    np.testing.assert_array_equal(shown(window), stack[1, 1])
    press(window, qtbot, Qt.Key.Key_P)
    idle(window, qtbot)
    assert canvas._plane == "maximum of 5 planes, t 2 of 2"
    np.testing.assert_array_equal(shown(window), stack[1].max(axis=0))
    press(window, qtbot, Qt.Key.Key_P, SHIFT)
    idle(window, qtbot)
    assert canvas._plane == f"z {SHARP + 1} of 5, t 2 of 2"
    np.testing.assert_array_equal(shown(window), stack[1, SHARP])
    wheel(canvas, 99, ALT)
    idle(window, qtbot)
    assert canvas._plane == "z 5 of 5, t 2 of 2"
    assert canvas.viewport == before


def test_an_image_of_one_plane_has_nothing_to_step_through(fused, qtbot):
    canvas, messages = fused.workspace.canvas, []
    fused.workspace.message.connect(messages.append)
    wheel(canvas, 1, ALT)
    press(fused, qtbot, Qt.Key.Key_P, SHIFT)
    assert messages == ["The image has one focal plane."] * 2
    assert canvas._plane == ""
    assert len(load_planes(fused.workspace.session.scene.path)) == 1
