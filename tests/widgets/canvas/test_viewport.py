import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raterscope.widgets.canvas.viewport import Viewport

places = st.floats(-2000, 2000)
scales = st.floats(0.05, 50)


@given(places, places, scales, st.integers(-3000, 3000), st.integers(-3000, 3000))
def test_screen_and_image_are_each_other_s_way_back(x, y, scale, across, down):
    view = Viewport(800, 600, scale, across, down)
    assert view.to_image(*view.to_screen(x, y)) == pytest.approx((x, y), abs=1e-6)


@given(scales, st.floats(0.2, 5), st.floats(0, 800), st.floats(0, 600))
def test_zoom_keeps_what_lies_under_the_mouse(scale, factor, across, down):
    view = Viewport(800, 600, scale, 37, -80)
    x, y = view.to_image(across, down)
    assert view.zoomed(factor, across, down).to_screen(x, y) == pytest.approx((across, down), abs=0.51)


def test_framing_shows_the_whole_in_the_middle():
    view = Viewport(800, 600).framing((100, 50, 1380, 1010), margin=10)
    left, top, right, bottom = view.visible
    assert left <= 100
    assert top <= 50
    assert right >= 1380
    assert bottom >= 1010
    assert view.to_screen(740, 530) == pytest.approx((400, 300), abs=0.51)


def test_the_image_cannot_be_lost_from_sight():
    extent = (0.0, 0.0, 100.0, 100.0)
    view = Viewport(200, 200, 1.0).panned(5000, -4000).held_to(extent)
    x, y = view.centre
    assert 0 <= x <= 100
    assert 0 <= y <= 100


def test_resizing_keeps_the_middle():
    view = Viewport(800, 600, 2.0).centred(120, 90)
    assert view.resized(1000, 400).centre == pytest.approx((120, 90), abs=0.3)


@given(places, places, st.floats(2, 20))
def test_looking_near_the_edge_shows_the_image_not_the_ground(x, y, scale):
    extent = (0.0, 0.0, 1280.0, 960.0)
    view = Viewport(800, 600, scale).centred(x, y).kept_on(extent, 60)
    left, top, right, bottom = view.visible
    slack = 60.51 / scale
    assert left >= -slack
    assert top >= -slack
    assert right <= 1280 + slack
    assert bottom <= 960 + slack
    if 500 < x < 700 and 400 < y < 500:
        assert view.centre == pytest.approx((x, y), abs=1 / scale)


def test_an_image_smaller_than_the_view_is_kept_in_the_middle():
    view = Viewport(800, 600, 2.0, across=-500, down=900).kept_on((0, 0, 100, 100), 60)
    assert view.centre == pytest.approx((50, 50), abs=0.5)


def test_a_spot_that_is_looked_at_lies_inside_with_its_frame_below_what_is_covered():
    extent, frame, top = (0.0, 0.0, 400.0, 300.0), 24.0, 40.0
    rng = np.random.default_rng(8)
    for width, height in ((900, 600), (300, 260)):
        view = Viewport(width, height).framing(extent, margin=12)
        for x, y in [(0.0, 0.0), (400.0, 300.0), *rng.uniform((0, 0), (400, 300), (50, 2))]:
            view = view.looking_at(x, y, 9.0, extent, frame=frame, top=top)
            half = 9.0 * view.scale + frame
            across, down = view.to_screen(x, y)
            assert half - 1 <= across <= width - half + 1
            assert half + top - 1 <= down <= height - half + 1
            assert view.looking_at(x, y, 9.0, extent, frame=frame, top=top).scale == view.scale
