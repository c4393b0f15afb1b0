"""Charts are drawn the same as pixels and as SVG."""

from xml.etree import ElementTree

import numpy as np

from raterscope.figures.canvas import PixelCanvas, VectorCanvas
from raterscope.figures.description import Key
from raterscope.figures.paper import line_chart, paper_line
from raterscope.figures.sheet import image_of, sheet

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
    canvas.line([(0, 10), (60, 10), (100, 10)], "#000000", 2, (10, 10))
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
