import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from raterscope.widgets.canvas.annotation_layers import FINE_BINS, ClickLayer, DensityLayer, SpotLayer
from raterscope.widgets.canvas.image_painting import ImageLayer, nice_length, paint_scale_bar
from raterscope.widgets.canvas.tiles import TileCache, to_picture
from raterscope.widgets.canvas.viewport import ClickMarks, DetectionMarks, GridIndex, Viewport
from tests.widgets.pixels import pixels_of

coordinate = st.floats(-100, 400, allow_nan=False, width=32)

pytestmark = pytest.mark.usefixtures("qapp")  # nothing is painted without one


@given(
    arrays(np.float64, st.tuples(st.just(2), st.integers(0, 40)), elements=coordinate),
    coordinate, coordinate, st.floats(0, 300), st.floats(0, 300),
)  # fmt: skip
def test_the_grid_finds_what_a_search_through_all_finds(points, left, top, width, height):
    x, y = points
    rect = QRectF(left, top, width, height)
    expected = np.flatnonzero(
        (x >= rect.left()) & (x <= rect.right()) & (y >= rect.top()) & (y <= rect.bottom())
    )
    np.testing.assert_array_equal(GridIndex(x, y).within(rect), expected)


def _spots(**changes):
    values = {
        "x": np.array([50.0, 62.0, 150.0]),
        "y": np.array([50.0, 50.0, 80.0]),
        "covariance": np.array([[[16.0, 0.0], [0.0, 4.0]]] * 2 + [[[0.0, 0.0], [0.0, 0.0]]]),
        "posterior": np.array([0.46, 0.9, np.nan]),
        "state": ("disputed", "detected", "added"),
        "number": np.array([14, 15, 16]),
        "votes": np.array([22, 40, 0]),
        "annotators": 51,
    }
    return DetectionMarks(**{**values, **changes})


def test_the_spot_under_the_mouse_is_the_nearest_whose_ellipse_holds_it():
    layer = SpotLayer()
    layer.set_spots(_spots())
    assert layer.at(51, 50, 1.0) == 0
    assert layer.at(58, 50, 1.0) == 1
    assert layer.at(50, 62, 1.0) is None
    # Without a covariance a spot keeps a size that can be hit.
    assert layer.at(153, 82, 1.0) == 2
    assert layer.at(153, 82, 20.0) is None


def test_a_spot_is_described():
    spots = _spots()
    assert spots.text_of(0) == ("spot 14  0.46", "22 of 51 clicked, disputed")
    assert spots.text_of(2) == ("spot 16", "0 of 51 clicked, added by you")


def test_an_unknown_state_is_refused():
    with pytest.raises(ValueError, match="spot state 'maybe'"):
        _spots(state=("maybe", "detected", "added"))


def test_arrays_become_pictures_pixel_by_pixel():
    grey = np.array([[0, 100], [200, 255], [7, 8]], dtype=np.uint8)
    picture = to_picture(grey[:, ::-1])
    assert [picture.pixelColor(x, 1).red() for x in (0, 1)] == [255, 200]
    colour = np.zeros((2, 3, 3), dtype=np.uint8)
    colour[1, 2] = (10, 20, 30)
    assert to_picture(colour).pixelColor(2, 1).getRgb() == (10, 20, 30, 255)
    for bad in (grey.astype(np.uint16), np.zeros((2, 2, 4), dtype=np.uint8)):
        with pytest.raises(ValueError, match="expected bytes, grey or RGB"):
            to_picture(bad)


def _painted(layer, scale: float, side: int = 200) -> QImage:
    picture = QImage(side, side, QImage.Format.Format_RGB32)
    picture.fill(QColor("#000000"))
    with QPainter(picture) as painter:
        layer.paint(painter, scale, QRectF(0, 0, side / scale, side / scale))
    return picture


def test_an_image_lies_on_its_extent_at_every_scale():
    halves = np.zeros((2048, 2048), dtype=np.uint8)
    halves[:, 1024:] = 255
    layer = ImageLayer()
    layer.set_image(halves, (0.0, 0.0, 100.0, 100.0))
    for scale in (0.5, 2.0):
        picture = _painted(layer, scale)
        edge = round(50 * scale)
        assert picture.pixelColor(edge - 4, 10).red() == 0
        assert picture.pixelColor(edge + 4, 10).red() == 255
        assert picture.pixelColor(min(199, round(100 * scale)) - 2, 10).red() == 255
    assert _painted(layer, 0.5).pixelColor(60, 10).red() == 0


def test_fine_detail_does_not_vanish_when_small():
    speckle = np.zeros((4000, 4000), dtype=np.uint8)
    speckle[::2] = 200
    layer = ImageLayer()
    layer.set_image(speckle, (0.0, 0.0, 4000.0, 4000.0))
    assert _painted(layer, 0.05).pixelColor(100, 100).red() == pytest.approx(100, abs=12)


def _clicks(count: int, annotators: int = 3) -> ClickMarks:
    rng = np.random.default_rng(0)
    return ClickMarks(rng.random(count) * 200, rng.random(count) * 200, np.arange(count) % annotators)


def test_hiding_and_soloing_choose_whose_clicks_are_painted():
    layer = ClickLayer()
    layer.set_clicks(ClickMarks(np.array([50.0, 150.0]), np.array([50.0, 150.0]), np.array([0, 1])))
    layer.set_annotators_shown({1}, None)
    picture = _painted(layer, 1.0)
    assert picture.pixelColor(50, 50).name() == "#e69f00"
    assert picture.pixelColor(150, 150).name() == "#000000"
    layer.set_annotators_shown({1}, 1)
    picture = _painted(layer, 1.0)
    assert picture.pixelColor(50, 50).name() == "#000000"
    assert picture.pixelColor(150, 150).name() == "#56b4e9"


def test_outliers_are_distinguished_by_shape():
    layer = ClickLayer()
    item = np.array([100.0])
    pictures = []
    for outlier in (False, True):
        layer.set_clicks(ClickMarks(item, item, np.array([0]), np.array([outlier])))
        pictures.append(_painted(layer, 4.0, 800))
    assert pictures[0].pixelColor(401, 398).name() == "#e69f00"
    assert pictures[1].pixelColor(401, 398).name() != "#e69f00"


def test_small_integers_may_number_the_annotators():
    layer = ClickLayer()
    layer.set_clicks(ClickMarks(np.array([50.0]), np.array([50.0]), np.array([120], dtype=np.int8)))
    assert _painted(layer, 1.0).pixelColor(50, 50).name() == "#8a96a2"


def test_too_many_clicks_to_show_apart_become_a_density():
    layer = ClickLayer()
    layer.set_clicks(_clicks(100_000))
    assert layer.too_many(Viewport(800, 800, 4.0))
    assert not layer.too_many(Viewport(800, 800, 40.0))
    layer.set_annotators_shown(set(), 0)
    assert layer.too_many(Viewport(800, 800, 4.0))
    layer.set_clicks(_clicks(3000))
    assert not layer.too_many(Viewport(800, 800, 4.0))


def test_clicks_that_lie_close_together_become_a_density_however_empty_the_rest_is():
    layer = ClickLayer()
    crowd, alone = _clicks(8000), np.array([10_000.0])
    marks = ClickMarks(np.append(crowd.x, alone), np.append(crowd.y, alone), np.append(crowd.annotator, 0))
    layer.set_clicks(marks)
    assert layer.too_many(Viewport(800, 800, 4.0))
    assert not layer.too_many(Viewport(800, 800, 4.0).centred(9000, 9000))


def test_a_finer_density_distinguishes_what_a_coarse_one_merges():
    x = np.repeat([9000.0, 9160.0], 5000)
    clicks = ClickMarks(x, np.full(10_000, 9000.0), np.zeros(10_000, dtype=int))
    layer = DensityLayer()
    layer.set_clicks(clicks, np.ones(10_000, dtype=bool), (0.0, 0.0, 20_000.0, 20_000.0), FINE_BINS)
    assert layer.highest_at(1.0) > 10 * layer.highest_at(0.03)

    def painted(position: float) -> float:
        picture = QImage(3, 3, QImage.Format.Format_RGB32)
        picture.fill(QColor("#000000"))
        with QPainter(picture) as painter:
            painter.translate(1 - position, 1 - 9000)
            layer.paint(painter, 1.0, QRectF(position - 1, 8999, 3, 3))
        return picture.pixelColor(1, 1).lightnessF()

    assert painted(9080) < 0.5 * min(painted(9000), painted(9160))


def test_the_density_is_where_the_clicks_that_are_shown_lie():
    clicks = _clicks(5000)
    layer = DensityLayer()
    layer.set_clicks(clicks, np.ones(5000, dtype=bool), (0.0, 0.0, 200.0, 200.0))
    assert layer.highest_at(1.0) > 5000 / 200**2
    picture = _painted(layer, 1.0)
    assert picture.pixelColor(100, 100).name() != "#000000"
    layer.set_clicks(clicks, np.zeros(5000, dtype=bool), (0.0, 0.0, 200.0, 200.0))
    assert layer.highest_at(1.0) == 0
    assert _painted(layer, 1.0).pixelColor(100, 100).name() == "#000000"


@given(st.floats(1e-6, 1e9))
def test_a_scale_bar_is_a_round_length_that_fits(longest):
    length = nice_length(longest)
    assert longest / 2.5000001 <= length <= longest * 1.0000001
    mantissa = length / 10 ** np.floor(np.log10(length) + 1e-9)
    assert min(abs(mantissa - step) for step in (1, 2, 5, 10)) < 1e-6


@pytest.mark.parametrize("room", [60, 140])
def test_a_scale_bar_ends_within_a_small_view(room):
    picture = QImage(400, 60, QImage.Format.Format_RGB32)
    picture.fill(QColor("#000000"))
    with QPainter(picture) as painter:
        paint_scale_bar(painter, QPointF(0, 50), 0.51, 1000.0, room)
    painted = [x for x in range(400) for y in range(60) if picture.pixelColor(x, y).lightness() > 200]
    assert painted
    assert max(painted) < room


def _shown(cache: TileCache, view: Viewport, *, quick: bool = False) -> tuple[QImage, bool]:
    picture = QImage(view.width, view.height, QImage.Format.Format_RGB32)
    picture.fill(QColor("#000000"))
    with QPainter(picture) as painter:
        exact = cache.show(painter, view, 1.0, quick=quick)
    return picture, exact


def test_tiles_fit_without_a_seam_and_are_painted_once():
    painted = []

    def paint(painter, scale, rect):
        painted.append(rect)
        painter.fillRect(QRectF(-2000 * scale, -2000 * scale, 4000 * scale, 4000 * scale), QColor("#204060"))

    cache = TileCache(paint, QColor("#ff0000"))
    view = Viewport(1200, 700, 1.7).centred(33.3, -21.7)
    picture, exact = _shown(cache, view)
    assert exact
    assert np.unique(pixels_of(picture)).tolist() == [0x204060]
    before = len(painted)
    _shown(cache, view.panned(5, 5))
    assert len(painted) <= before + 4
    cache.clear_rect(QRectF(33, -22, 1, 1))
    second = len(painted)
    _shown(cache, view.panned(5, 5))
    assert len(painted) == second + 1


def test_in_a_hurry_slow_tiles_are_stretched_and_then_painted_again(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("raterscope.widgets.canvas.tiles.time.perf_counter", lambda: next(clock))
    scales = []

    def paint(painter, scale, _rect):
        scales.append(scale)
        painter.fillRect(QRectF(10 * scale, 10 * scale, 20 * scale, 20 * scale), QColor("#ffffff"))

    cache = TileCache(paint)
    _shown(cache, Viewport(300, 300, 2.0))
    picture, exact = _shown(cache, Viewport(300, 300, 4.0), quick=True)
    assert not exact
    assert 4.0 not in scales
    assert picture.pixelColor(80, 80).name() == "#ffffff"
    assert picture.pixelColor(20, 80).name() == "#000000"
    picture, exact = _shown(cache, Viewport(300, 300, 4.0))
    assert exact
    assert scales[-1] == 4.0
