"""An image by tiles looks as the whole would, and only what is in sight is read, off the GUI thread."""

import threading
import time

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.widgets.canvas import tiles as tiles_module
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.viewport import ClickMarks
from tests.waiting import LONG

SIDE = 64
EXTENT = (0.0, 0.0, 1000.0, 800.0)


class Tiles:
    """The tiles of an array, counted, and held back where a test asks for it."""

    def __init__(self, pixels: np.ndarray, side: int = SIDE) -> None:
        self.side = side
        self.copies = [pixels]
        while max(self.copies[-1].shape[:2]) > side:
            self.copies.append(self.copies[-1][::2, ::2])
        self.levels = [(copy.shape[1], copy.shape[0]) for copy in self.copies]
        self.read: list[tuple[int, int, int]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.finest_held = False
        self.error: Exception | None = None

    def tile(self, level: int, row: int, column: int) -> np.ndarray:
        if level == 0 and self.finest_held:
            self.gate.wait(LONG / 1000)
        self.threads.add(threading.get_ident())
        self.read.append((level, row, column))
        if self.error is not None:
            raise self.error
        window = np.s_[row * self.side : (row + 1) * self.side, column * self.side : (column + 1) * self.side]
        return self.copies[level][window]


@pytest.fixture
def canvas(qtbot):
    widget = ImageCanvas()
    qtbot.addWidget(widget)
    widget.resize(500, 400)
    widget.show()
    yield widget
    widget.set_image(None, EXTENT)


def checked() -> np.ndarray:
    """Fields of 100 x 100 pixels, each in a grey of its own."""
    greys = np.arange(80).reshape(8, 10).astype(np.uint8) * 3 + 10
    return np.kron(greys, np.ones((100, 100), dtype=np.uint8))


def grey(canvas: ImageCanvas, x: float, y: float) -> int:
    point = QPoint(*(round(value) for value in canvas.viewport.to_screen(x, y)))
    return canvas.grab().toImage().pixelColor(point).red()


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0, 150.0])
def test_each_place_shows_its_pixels_at_every_scale(canvas, qtbot, scale):
    canvas.set_image(Tiles(checked()), EXTENT)
    canvas.zoom(scale / canvas.viewport.scale)
    for x, y in ((50, 50), (450, 350), (950, 750)):
        canvas.centre_on(x, y)
        qtbot.waitUntil(lambda x=x, y=y: grey(canvas, x, y) == checked()[y, x])


def test_an_image_by_tiles_looks_as_the_same_image_does_in_memory(canvas, qtbot):
    rng = np.random.default_rng(0)
    pixels = np.kron(rng.integers(0, 255, (100, 125, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    canvas.set_image(pixels, EXTENT)
    canvas.zoom(3.0 / canvas.viewport.scale)
    canvas.centre_on(330, 250)
    expected = canvas.grab().toImage()
    tiles = Tiles(pixels)
    canvas.set_image(tiles, EXTENT)

    def inside(x: int, y: int) -> bool:
        return all(2 < position % SIDE < SIDE - 2 for position in canvas.viewport.to_image(x, y))

    def same() -> bool:
        result = canvas.grab().toImage()
        # Without what lies on top of the image, and the very edges of tiles.
        positions = [(x, y) for x in range(0, 340, 7) for y in range(50, 340, 7) if inside(x, y)]
        away = [abs(result.pixelColor(*p).green() - expected.pixelColor(*p).green()) for p in positions]
        return max(away) <= 3

    qtbot.waitUntil(same)


def test_only_what_lies_about_the_part_in_sight_is_read_and_never_in_the_gui_thread(canvas, qtbot):
    tiles = Tiles(np.zeros((4000, 4000), dtype=np.uint8))
    tiles.finest_held = True
    tiles.gate.clear()
    canvas.set_image(tiles, (0, 0, 4000, 4000))
    canvas.zoom(2.0 / canvas.viewport.scale)
    canvas.centre_on(1000, 1000)
    tiles.gate.set()
    qtbot.waitUntil(lambda: (0, 15, 15) in tiles.read)
    qtbot.wait(100)
    finest = [key for key in tiles.read if key[0] == 0]
    # The readers may have begun in the middle of the image, which was in sight before it was moved.
    far = [key for key in finest if max(abs(key[1] - 15.6), abs(key[2] - 15.6)) >= 6]
    assert len(far) <= tiles_module.THREADS
    assert len(finest) - len(far) < 120
    assert threading.get_ident() not in tiles.threads


def test_a_coarser_copy_is_shown_while_the_tiles_are_read(canvas, qtbot):
    tiles = Tiles(checked())
    tiles.finest_held = True
    tiles.gate.clear()
    canvas.set_image(tiles, EXTENT)
    canvas.zoom(2.0 / canvas.viewport.scale)
    canvas.centre_on(450, 350)
    middle = int(checked()[350, 450])
    qtbot.waitUntil(lambda: abs(grey(canvas, 450, 350) - middle) <= 10)
    assert not [key for key in tiles.read if key[0] == 0]
    tiles.gate.set()
    qtbot.waitUntil(lambda: grey(canvas, 402, 302) == checked()[302, 402])


def test_what_is_no_longer_in_sight_is_not_read_any_more(canvas, qtbot):
    tiles = Tiles(np.zeros((4000, 4000), dtype=np.uint8))
    canvas.set_image(tiles, (0, 0, 4000, 4000))
    qtbot.waitUntil(lambda: len(tiles.read) > 3)
    tiles.finest_held = True
    tiles.gate.clear()
    canvas.zoom(2.0 / canvas.viewport.scale)
    for x in range(200, 3800, 200):
        canvas.centre_on(x, 500)
    tiles.gate.set()
    canvas.centre_on(3700, 3700)
    qtbot.waitUntil(lambda: (0, 57, 57) in tiles.read)
    passed = [key for key in tiles.read if key[0] == 0 and key[1] < 20]
    assert len(passed) <= 3 * tiles_module.THREADS


def test_what_comes_when_it_is_no_longer_wanted_does_not_pile_up(canvas, qtbot, monkeypatch):
    monkeypatch.setattr(tiles_module, "KEPT_BYTES", 12 * SIDE * SIDE * 4)
    canvas.set_image(Tiles(np.full((4000, 4000), 77, dtype=np.uint8)), (0, 0, 4000, 4000))
    store = canvas.layers.image._picture.store
    qtbot.waitUntil(lambda: not store._desk.wanted and not store._desk.reported)
    first, then = ([(0, row, column) for column in range(10)] for row in (0, 1))
    store.want(then)
    qtbot.waitUntil(lambda: all(store.get(key) for key in then))
    store.want(first)
    deadline = time.monotonic() + LONG / 1000
    while store._desk.wanted and time.monotonic() < deadline:
        time.sleep(0.005)  # they are read, and nobody has taken them yet
    store.want(then)
    qtbot.waitUntil(lambda: not store._desk.reported)
    assert all(store.get(key) for key in then)
    assert len(store._tiles) <= 12


def test_memory_is_bounded_and_what_is_in_sight_stays(canvas, qtbot, monkeypatch):
    kept = 90 * SIDE * SIDE * 4
    monkeypatch.setattr(tiles_module, "KEPT_BYTES", kept)
    tiles = Tiles(np.full((4000, 4000), 77, dtype=np.uint8))
    canvas.set_image(tiles, (0, 0, 4000, 4000))
    canvas.zoom(2.0 / canvas.viewport.scale)
    store = canvas.layers.image._picture.store
    for position in (300, 1500, 2700, 300):
        canvas.centre_on(position, position)
        key = (0, position // SIDE, position // SIDE)
        qtbot.waitUntil(lambda key=key: store.get(key) is not None)
        qtbot.waitUntil(lambda: not store._desk.wanted)
        assert store.get(key) is not None
        # In bytes: tiles at an image's edge, and of smaller copies, are smaller.
        assert sum(tile.sizeInBytes() for tile in store._tiles.values()) <= kept
    assert tiles.read.count((0, 300 // SIDE, 300 // SIDE)) == 2


def test_a_tile_that_cannot_be_read_is_reported_once_and_the_rest_is_shown(canvas, qtbot):
    tiles = Tiles(checked())
    canvas.set_image(tiles, EXTENT)
    qtbot.waitUntil(lambda: grey(canvas, 450, 350) > 0)
    messages = []
    canvas.layers.refused.connect(messages.append)
    tiles.error = ValueError("smear.tif: is damaged.")
    canvas.zoom(2.0 / canvas.viewport.scale)
    canvas.centre_on(450, 350)
    qtbot.waitUntil(lambda: bool(messages))
    canvas.centre_on(150, 150)
    qtbot.waitUntil(lambda: abs(grey(canvas, 150, 150) - int(checked()[150, 150])) < 40)
    qtbot.wait(100)
    assert messages == ["smear.tif: is damaged."]


def test_the_readers_end_with_the_image(canvas, qtbot):
    before = threading.active_count()
    for _ in range(4):
        canvas.set_image(Tiles(checked()), EXTENT)
        qtbot.waitUntil(lambda: canvas._minimap.has_picture)
    canvas.set_image(None, EXTENT)
    qtbot.waitUntil(lambda: threading.active_count() <= before)


def test_the_readers_end_with_the_canvas(qtbot):
    before = threading.active_count()
    widget = ImageCanvas()
    widget.resize(300, 200)
    widget.show()
    widget.set_image(Tiles(checked()), EXTENT)
    qtbot.waitUntil(lambda: widget._minimap.has_picture)
    assert threading.active_count() > before
    widget.close()
    widget.deleteLater()
    qtbot.waitUntil(lambda: threading.active_count() <= before)


def test_clicks_lie_on_an_image_by_tiles_after_zooming_and_dragging(canvas, qtbot):
    canvas.set_image(Tiles(checked()), EXTENT)
    canvas.layers.set_clicks(ClickMarks(np.array([450.0]), np.array([350.0]), np.array([0])))
    canvas.zoom(2.0 / canvas.viewport.scale)
    canvas.centre_on(450, 350)
    start = QPoint(100, 100)
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(canvas, start + QPoint(40, 25))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=start + QPoint(40, 25))
    point = QPoint(*(round(value) for value in canvas.viewport.to_screen(450, 350)))
    qtbot.waitUntil(lambda: canvas.grab().toImage().pixelColor(point).name() == "#e69f00")
