"""Charts are drawn the same as pixels and as SVG."""

from xml.etree import ElementTree

import numpy as np
import pytest

from raterscope.figures.canvas import Pen, PixelCanvas, VectorCanvas
from raterscope.figures.description import Axis, Chart, Key, Line
from raterscope.figures.layout import Box, lay_out
from raterscope.figures.paper import line_chart, paper_line
from raterscope.figures.sheet import image_of, sheet
from raterscope.figures.ticks import compact, number_text

SVG = "{http://www.w3.org/2000/svg}"


def root(data: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(data)


def test_a_chart_of_lines_names_its_axes_and_lines():
    x = np.linspace(0, 1, 5)
    lines = [
        paper_line(x, x, "#112233", low=x / 2, high=x),
        paper_line(x, x**2, "#445566", dots=True, dashes=(4, 2)),
    ]
    chart = line_chart(lines, "across <b>", "up", diagonal=True)
    keys = [Key("one & all", "#112233"), Key("bad \x00", "#445566", (4, 2))]
    page = root(sheet([("A title", chart)], keys))
    texts = {text.text for text in page.iter(f"{SVG}text")}
    assert {"A title", "across <b>", "up", "one & all", "bad "} <= texts
    strokes = [line.get("stroke-dasharray") for line in page.iter(f"{SVG}polyline")]
    assert strokes.count("8.8 4.4") == 1
    assert len(list(page.iter(f"{SVG}circle"))) == 5
    image = np.asarray(image_of(chart))
    assert (image == (0x44, 0x55, 0x66)).all(axis=2).any()


def test_dashes_leave_gaps_of_their_length():
    canvas = PixelCanvas(100, 20)
    canvas.line([(0, 10), (60, 10), (100, 10)], Pen("#000000", 2, (10, 10)))
    dark = np.asarray(canvas.pixels())[10, :, 0] < 128
    assert [bool(dark[x]) for x in (5, 15, 25, 35, 45, 55, 65, 75, 85, 95)] == [True, False] * 5


def test_what_is_written_upwards_is_tall():
    canvas = PixelCanvas(60, 120)
    canvas.text((30, 60), "sensitivity", "#000000", 16, turn=-90)
    down, across = np.nonzero(np.asarray(canvas.pixels())[:, :, 0] < 128)
    assert np.ptp(down) > 3 * np.ptp(across)
    vector = VectorCanvas(60, 120)
    vector.text((30, 60), "up", "#000000", 16, turn=-90)
    assert "rotate(-90" in vector.svg().decode()


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((-1_250_000.0, -1_200_000.0, -1_150_000.0), ["−1.25M", "−1.20M", "−1.15M"]),
        ((0.0, 20_000.0, 40_000.0), ["0", "20k", "40k"]),
        ((0.0, 2_000.0, 4_000.0), ["0", "2,000", "4,000"]),
    ],
)
def test_large_numbers_are_written_in_thousands_or_millions(values, texts):
    assert [words for _, words in compact([(value, number_text(value, 1.0)) for value in values])] == texts


def test_a_narrow_chart_of_large_numbers_leaves_room_for_the_name_of_its_axis():
    values = np.linspace(-1_290_000.0, -1_080_000.0, 30)
    line = Line(x=np.arange(30.0), y=values)
    chart = Chart("Bound", Axis("iteration"), Axis("bound"), (line,))
    layout = lay_out(chart, Box(0, 0, 160, 170), lambda words, size: 0.55 * size * len(words))
    widest = max(0.55 * 11 * len(words) for _, words in layout.up)
    assert layout.box.left >= widest + 1.5 * 11
