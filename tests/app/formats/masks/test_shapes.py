"""Polygons and run lengths."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raterscope.app.formats.masks.shapes import (
    Drawing,
    column_major,
    decode_coco_counts,
    decode_studio_runs,
    fill,
    read_runs,
    rectangle,
    row_major,
    trace_outlines,
)

SHAPE = (12, 15)


def drawn(*polygons: object, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    full = np.zeros(shape, dtype=bool)
    patch = fill([np.array(polygon, dtype=float) for polygon in polygons], shape)
    if patch is not None:
        top, left, mask = patch
        full[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    return full


def pixels_of(drawing: Drawing, shape: tuple[int, int]) -> np.ndarray:
    full = np.zeros(shape, dtype=bool)
    if (patch := drawing.draw()) is not None:
        top, left, mask = patch
        assert mask.size <= drawing.pixels
        full[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    return full


def is_inside(x: float, y: float, polygon: list[tuple[float, float]]) -> bool:
    """Count the edges that a ray to the left crosses, one pixel at a time."""
    inside = False
    for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (y1 <= y < y2) or (y2 <= y < y1):
            inside ^= x1 + Fraction(y - y1) / Fraction(y2 - y1) * Fraction(x2 - x1) <= x
    return inside


lengths = st.integers(-40, 160).map(lambda eighths: eighths / 8)
places = st.tuples(lengths, lengths)


@given(st.lists(places, min_size=3, max_size=8))
def test_a_pixel_belongs_when_its_centre_is_inside(polygon: list[tuple[float, float]]) -> None:
    expected = [[is_inside(x, y, polygon) for x in range(SHAPE[1])] for y in range(SHAPE[0])]
    np.testing.assert_array_equal(drawn(polygon), expected)


@given(places, places, places, places)
def test_polygons_that_share_an_edge_share_no_pixel(a, b, c, d) -> None:
    """Triangles a b c and a c d have the even-odd sum of the polygon a b c d."""
    np.testing.assert_array_equal(drawn([a, b, c]) ^ drawn([a, c, d]), drawn([a, b, c, d]))


def test_a_polygon_within_another_is_a_hole() -> None:
    ring = drawn(rectangle(0.5, 0.5, 8, 8), rectangle(2.5, 2.5, 3, 3))
    assert ring.sum() == 64 - 9
    assert not ring[4, 4]


def test_what_lies_beyond_the_image_is_cut_off() -> None:
    assert drawn(rectangle(-100, -100, 1e9, 1e9)).all()
    assert not drawn(rectangle(50, 50, 3, 3)).any()
    with pytest.raises(ValueError, match="not a position"):
        drawn([[0, 0], [1, float("nan")], [2, 2]])


def test_an_outline_that_crosses_its_rows_without_end_is_refused() -> None:
    zigzag = np.stack([np.arange(30_000) % 7, np.arange(30_000) % 2 * 1e5], axis=1)
    with pytest.raises(ValueError, match="too often"):
        fill([zigzag], (100_000, 10))


@given(arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_outlines_give_the_mask_again(mask: np.ndarray) -> None:
    np.testing.assert_array_equal(drawn(*trace_outlines(mask), shape=mask.shape), mask)


def test_pixels_that_touch_at_a_corner_have_outlines_of_their_own() -> None:
    result = trace_outlines(np.eye(3, dtype=bool))
    assert [len(outline) for outline in result] == [4, 4, 4]


@given(arrays(bool, st.tuples(st.integers(1, 7), st.integers(1, 7))))
def test_runs_down_the_columns_and_along_the_rows(mask: np.ndarray) -> None:
    down = column_major(read_runs(runs(mask.T.ravel()), mask.size), mask.shape)
    along = row_major(read_runs(runs(mask.ravel()), mask.size), mask.shape)
    for drawing in (down, along):
        np.testing.assert_array_equal(pixels_of(drawing, mask.shape), mask)
        if not mask.any():
            assert drawing.pixels == 0


def test_the_box_of_runs_is_no_larger_than_their_pixels() -> None:
    mask = np.zeros((30, 40), dtype=bool)
    mask[5:9, 11:14] = True
    assert column_major(read_runs(runs(mask.T.ravel()), mask.size), mask.shape).box == (5, 11, 4, 3)
    assert row_major(read_runs(runs(mask.ravel()), mask.size), mask.shape, (2, 1)).box == (7, 12, 4, 3)


def runs(values: np.ndarray) -> list[int]:
    counts, now = [0], False
    for value in values.tolist():
        if value != now:
            counts.append(0)
            now = value
        counts[-1] += 1
    return counts


@pytest.mark.parametrize("counts", [[3], [0, 10], [-1, 10], [4, 5.0], ["9"], [2**70, 1], [True] * 9])
def test_runs_that_do_not_fill_the_mask_are_refused(counts: list[object]) -> None:
    with pytest.raises(ValueError, match="run lengths"):
        read_runs(counts, 9)


def packed(counts: list[int]) -> str:
    """Pack run lengths as COCO's tools do."""
    text = ""
    for at, count in enumerate(counts):
        value, more = count - counts[at - 2] if at > 2 else count, True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            text += chr(48 + (bits | 32 if more else bits))
    return text


@given(st.lists(st.integers(0, 10**6), max_size=30))
def test_packed_run_lengths(counts: list[int]) -> None:
    assert decode_coco_counts(packed(counts)) == counts


@pytest.mark.parametrize("text", ["P", "\n", "é", "o" * 40, "@"])
def test_packed_run_lengths_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="packed run lengths"):
        decode_coco_counts(text)


def brush(values: list[int], *, repeat: bool) -> list[int]:
    """Pack values as Label Studio does, one run of each kind at a time."""
    bits = f"{len(values):032b}{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16))
    at = 0
    while at < len(values):
        same = 1
        while at + same < len(values) and values[at + same] == values[at]:
            same += 1
        if repeat and same > 1:
            bits += f"111{same - 1:016b}{values[at]:08b}"
            at += same
        else:
            some = values[at : at + 7]
            bits += f"000{len(some) - 1:03b}" + "".join(f"{value:08b}" for value in some)
            at += len(some)
    bits += "0" * (-len(bits) % 8)
    return [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]


@given(st.lists(st.sampled_from([0, 17, 255]), min_size=4, max_size=60), st.booleans())
def test_brushes(values: list[int], repeat: bool) -> None:
    values = values[: len(values) // 4 * 4]
    shape = (1, len(values) // 4)
    result = pixels_of(row_major(decode_studio_runs(brush(values, repeat=repeat), shape[1]), shape), shape)
    assert result.ravel().tolist() == [value > 0 for value in values[3::4]]


def test_a_brush_is_not_believed() -> None:
    good = brush([0] * 40, repeat=True)
    for bad, pixels in ((good, 11), (good[:-1], 10), (good[:5], 10), ([*good[:3], 41, *good[4:]], 10)):
        with pytest.raises(ValueError, match="packed runs"):
            decode_studio_runs(bad, pixels)
    with pytest.raises(ValueError, match="not bytes"):
        decode_studio_runs([256], 1)
