"""The 3-D view: camera, keys, clicks, arrangement; its picture where there is a virtual display."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.algorithms.masks.surface import extract_surface
from raterscope.widgets.volume import surface_view
from raterscope.widgets.volume.surface_view import NO_OPENGL, Camera, SurfaceModel, Wireframe
from tests.widgets.pixels import pixels_of
from tests.widgets.volume.viewing import GRID, LEFT, ball, drag


def model(title="nodule"):
    surface = extract_surface(ball(), (0, 0, 0), GRID)
    colours = np.full(surface.corners.shape, (1.0, 0.0, 0.0), dtype=np.float32)
    wire = Wireframe("ann", "#00ff00", surface.corners, surface.edges)
    return SurfaceModel(title, surface, colours, None, (wire,))


@pytest.fixture
def opened(view):
    view.open_surface().set_model(model(), GRID)
    return view


def test_the_camera_looks_from_the_front_and_turns():
    camera = Camera((10.0, 20.0, 30.0), 50.0)
    size = (200, 100)
    left, head = camera.project(np.array([[20.0, 20, 30], [10, 20, 40]]), size)
    assert left[:2] == pytest.approx([110, 50])
    assert head[:2] == pytest.approx([100, 40])
    nose, neck = camera.project(np.array([[10.0, 10, 30], [10, 30, 30]]), size)
    assert nose[2] > neck[2]
    turned = camera.turned(70, 25).zoomed(2).panned(13, -7, size)
    point = np.array([[3.0, 44.0, 12.0]])
    x, y, depth = turned.project(point, size)[0]
    assert turned.unproject(x, y, depth, size) == pytest.approx(point[0])
    clip = turned.matrix(size) @ np.append(point[0], 1)
    assert clip[:2] == pytest.approx([2 * x / size[0] - 1, 1 - 2 * y / size[1]])
    assert np.allclose(turned.axes @ turned.axes.T, np.eye(3))


def test_a_click_on_the_surface_moves_the_slices_there(opened, qtbot):
    surface = opened.surface
    opened.go_to((2, 2, 2))
    qtbot.mouseClick(surface, LEFT, pos=QPoint(surface.width() // 2, surface.height() // 2))
    index, row, column = opened.crosshair
    assert (index, column) == pytest.approx((10, 40), abs=1)
    assert row == pytest.approx(30 - 12, abs=1)  # the front of the ball, 12 mm from its centre
    before = opened.crosshair
    qtbot.mouseClick(surface, LEFT, pos=QPoint(2, surface.height() // 2))
    assert opened.crosshair == before


def test_keys_and_drags_turn_zoom_and_reset(opened, qtbot):
    surface, home = opened.surface, opened.surface.camera
    qtbot.keyClick(surface, Qt.Key.Key_Left)
    qtbot.keyClick(surface, Qt.Key.Key_Down)
    qtbot.keyClick(surface, Qt.Key.Key_Plus)
    assert (surface.camera.azimuth, surface.camera.elevation) == (15, 15)
    assert surface.camera.zoom > home.zoom
    before = opened.crosshair
    drag(qtbot, surface, QPoint(40, 40), QPoint(30, 0))
    assert surface.camera.azimuth == pytest.approx(0)
    assert opened.crosshair == before
    qtbot.keyClick(surface, Qt.Key.Key_0)
    assert surface.camera == home
    qtbot.keyClick(surface, Qt.Key.Key_Space)
    assert surface.shown == {"raters": False, "slices": True}


def test_the_camera_stays_for_the_same_structure_and_resets_for_another(opened):
    surface = opened.surface
    surface.set_camera(surface.camera.turned(30, 0))
    surface.set_model(model(), GRID)
    assert surface.camera.azimuth == 30
    surface.set_model(model("vessel"), GRID)
    assert surface.camera.azimuth == 0


def test_it_takes_the_fourth_quarter_or_half_and_is_gone_when_closed(opened, qtbot):
    def places():
        shown = [opened.view(name) for name in opened.planes if opened.view(name).isVisible()]
        return [part.geometry() for part in (*shown, opened.surface)]

    for layout, count in (("three", 4), ("coronal", 2)):
        opened.set_layout(layout)
        rects = places()
        assert len(rects) == count
        assert not any(a.intersects(b) for n, a in enumerate(rects) for b in rects[:n])
        assert all(opened.rect().contains(rect) for rect in rects)
    qtbot.keyClick(opened.surface, Qt.Key.Key_Return)
    assert opened.surface.geometry() == opened.rect()
    opened.next_layout()
    assert opened.surface.geometry() != opened.rect()
    opened.set_layout("three")
    opened.close_surface()
    assert opened.surface is None
    assert opened.view("axial").geometry().bottom() == opened.view("sagittal").geometry().bottom()


def test_without_opengl_a_message_is_shown_and_the_slices_work(opened, qtbot, monkeypatch):
    monkeypatch.setattr(surface_view.SurfaceRenderer, "draw", lambda *_args, **_more: None)
    qtbot.keyClick(opened.surface, Qt.Key.Key_Left)  # else a picture of before stays
    opened.surface.repaint()
    assert opened.surface.accessibleDescription() == NO_OPENGL
    assert len(np.unique(pixels_of(opened.surface.grab().toImage()))) > 2
    qtbot.keyClick(opened.view("axial"), Qt.Key.Key_Up)
    assert opened.crosshair == (11, 30, 40)


def test_a_platform_without_opengl_is_recognised(opened):
    if opened.surface._draw() is not None:
        pytest.skip("this platform has OpenGL")
    opened.surface.repaint()
    assert opened.surface.accessibleDescription() == NO_OPENGL


PICTURES = """
from PySide6.QtWidgets import QApplication
app = QApplication([])
import numpy as np
from raterscope.widgets.volume.volume_view import VolumeView
from tests.widgets.volume.test_surface_view import model
from tests.widgets.volume.viewing import GRID, SHAPE
from raterscope.widgets.volume.scene import Outline
view = VolumeView()
view.resize(900, 560)
view.show()
view.set_volume(np.full(SHAPE, 190, dtype=np.int16), GRID, modality="CT", window=(90, 200))
surface = view.open_surface()
surface.set_model(model(), GRID)
middle = surface.width() // 2 + 25, surface.height() // 2 + 20
def pixel(x, y):
    return surface._draw().pixelColor(x, y).getRgb()[:3]
if surface._draw() is None:
    raise SystemExit("no OpenGL")
view.go_to((10, 59, 40))
print(*pixel(*middle))
view.go_to((10, 0, 40))
print(*pixel(*middle))
surface._on_chip("slices", False)
print(*pixel(*middle), *pixel(3, 9))
before = surface._draw()
view.set_outlines([Outline("ann", "ann", "#00ff00", np.zeros((1, 1, 1), bool))])
surface._on_chip("raters", True)
print(int(surface._draw() != before))
view.hide()
view.show()
print(*pixel(*middle))
view.close_surface()
app.processEvents()
"""


def test_the_picture_has_surface_slices_and_raters():
    if shutil.which("xvfb-run") is None:
        pytest.skip("xvfb-run is not installed: the picture of the 3-D view is not tested")
    environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "LIBGL_ALWAYS_SOFTWARE": "1"}
    command = ["xvfb-run", "-a", "-s", "-screen 0 1440x900x24 +extension GLX", sys.executable, "-c", PICTURES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "no OpenGL" in done.stderr or "xcb" in done.stderr:
        pytest.skip(f"no OpenGL under xvfb: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    behind, front, bare, wires, again = (
        [int(word) for word in line.split()] for line in done.stdout.splitlines()
    )
    for seen in (behind, bare):
        assert seen[0] > 200
        assert max(seen[1:3]) < 90
    assert min(front) > 60  # the coronal slice, light grey, lies before the surface
    assert max(bare[3:]) < 40  # the background
    assert wires == [1]
    assert again[0] > 100  # drawn again after it was hidden
