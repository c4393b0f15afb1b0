"""Charts are drawn the same as pixels and as SVG."""

from xml.etree import ElementTree

import numpy as np
import pytest

from raterscope.figures.canvas import Pen, PixelCanvas, VectorCanvas
from raterscope.figures.colours import DARK
from raterscope.figures.description import Axis, Chart, Key, Line, Points
from raterscope.figures.drawing import PaperChart, draw_axes, image_of, line_chart, paper_line, sheet
from raterscope.figures.layout import SCREEN, Box, Style, compact, lay_out, number_text

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
        ((-21_000.0, -21_000.0), ["−21,000", "−21,000"]),
        ((-450_000.0,), ["−450k"]),
        ((-1_250_000.0,), ["−1.25M"]),
    ],
)
def test_large_numbers_are_written_in_thousands_or_millions(values, texts):
    assert [words for _, words in compact([(value, number_text(value, 1.0)) for value in values])] == texts


def test_a_lone_large_number_at_an_axis_is_not_cut():
    line = Line(x=np.arange(40.0), y=np.linspace(-485_000.0, -415_000.0, 40))
    chart = Chart("Bound", Axis("iteration"), Axis("bound"), (line,))
    for height in range(60, 140, 5):
        layout = lay_out(chart, Box(0, 0, 110, height), lambda words, size: 0.6 * size * len(words))
        texts = [text for _, text in layout.up]
        assert all(text.endswith("k") for text in texts), texts
        assert len(set(texts)) == len(texts)


def test_a_narrow_chart_of_large_numbers_leaves_room_for_the_name_of_its_axis():
    values = np.linspace(-1_290_000.0, -1_080_000.0, 30)
    line = Line(x=np.arange(30.0), y=values)
    chart = Chart("Bound", Axis("iteration"), Axis("bound"), (line,))
    layout = lay_out(chart, Box(0, 0, 160, 170), lambda words, size: 0.55 * size * len(words))
    widest = max(0.55 * 11 * len(words) for _, words in layout.up)
    assert layout.box.left >= widest + 1.5 * 11
    narrower = lay_out(chart, Box(0, 0, 100, 110), lambda words, size: 0.55 * size * len(words))
    assert narrower.chart.y.label == ""


def measure(text: str, size: float) -> float:
    return 0.55 * size * len(text)


ROOM = Box(0, 0, 400, 200)


def test_a_falling_axis_has_its_largest_value_at_the_left():
    line = Line(x=np.array([30.0, 3.0, 0.3]), y=np.arange(3.0))
    chart = Chart("", Axis("lambda", scale="log", padding=0.0, falling=True), Axis("bias"), (line,))
    layout = lay_out(chart, ROOM, measure)
    x = layout.x_pixels(line.x)
    assert x[0] == pytest.approx(layout.box.left)
    assert x[2] == pytest.approx(layout.box.right)
    assert np.diff(x)[0] == pytest.approx(np.diff(x)[1])
    assert [text for _, text in sorted(layout.across)][:2] == ["20", "10"]


def test_a_root_axis_keeps_the_sign_and_spreads_small_values():
    axis = Axis("W", -4.0, 16.0, "root", 0.0)
    layout = lay_out(Chart("", Axis(""), axis), ROOM, measure)
    low, zero, high = layout.y_pixels(np.array([-4.0, 0.0, 16.0]))
    assert (zero - high) == pytest.approx(2 * (low - zero))
    assert "0" in {text for _, text in layout.up}
    assert axis.backward(float(axis.forward(-4.0))) == pytest.approx(-4.0)


@pytest.mark.parametrize("legend_at", ["right", "above", "ends"])
def test_a_legend_overlaps_neither_the_plot_nor_its_other_rows(legend_at):
    keys = tuple(Key(f"output {row}", "accent", value=0.5, short=str(row)) for row in range(4))
    line = Line(x=np.arange(3.0), y=np.arange(3.0))
    layout = lay_out(Chart("", Axis("x"), Axis("y"), (line,), keys, legend_at=legend_at), ROOM, measure)
    assert len(layout.legend) == 4
    if legend_at == "above":
        assert all(row.middle < layout.box.top for row in layout.legend)
        assert [row.left for row in layout.legend] == sorted({row.left for row in layout.legend})
    else:
        assert all(row.left > layout.box.right for row in layout.legend)
        assert np.diff(sorted(row.middle for row in layout.legend)).min() > 11


def test_a_line_of_many_points_is_filled_and_shows_every_spike():
    y = np.zeros(50_000)
    y[31_234] = 1.0
    chart = Chart("", Axis("x", padding=0.0), Axis("y"), (Line(x=np.arange(50_000.0), y=y, ink="#ff0000"),))
    paper = PaperChart(chart, 400, 200, SCREEN)
    image = np.asarray(image_of(paper)).astype(int)
    red = (image[..., 0] - image[..., 2]) > 90
    across = np.flatnonzero(red[:80].any(axis=0))
    box = lay_out(chart, ROOM, PixelCanvas(1, 1).width_of, SCREEN).box
    assert len(across) > 0
    assert np.abs(across - (box.left + box.width * 31_234 / 50_000)).max() < 3


def test_points_below_an_axis_are_not_clipped():
    marks = (Points(x=np.array([1.0, 2.0]), y=np.full(2, -np.inf), symbol="square", ink="#ff0000", size=6.0),)
    chart = Chart("", Axis("", 0.0, 3.0), Axis("", 0.0, 1.0), marks)
    image = np.asarray(image_of(PaperChart(chart, 400, 200, SCREEN))).astype(int)
    bottom = lay_out(chart, ROOM, PixelCanvas(1, 1).width_of, SCREEN).box.bottom
    red = np.flatnonzero(((image[..., 0] - image[..., 2]) > 90).any(axis=1))
    assert red.min() < bottom + 4 < red.max() + 2


def test_a_symbol_at_the_end_of_an_axis_is_whole_and_none_is_beyond():
    marks = (
        Points(x=np.array([1.0, 2.0]), y=np.array([1.0, 1.5]), symbol="square", ink="#ff0000", size=9.0),
    )
    chart = Chart("", Axis("", 0.0, 3.0), Axis("", 0.0, 1.0, padding=0.0), marks)
    image = np.asarray(image_of(PaperChart(chart, 400, 200, SCREEN))).astype(int)
    red = (image[..., 0] - image[..., 2]) > 90
    rows, columns = (np.flatnonzero(red.any(axis=side)) for side in (1, 0))
    assert len(rows) == pytest.approx(len(columns), abs=1)
    assert rows.min() < lay_out(chart, ROOM, PixelCanvas(1, 1).width_of, SCREEN).box.top - 2


def test_numbers_beside_the_axis_are_never_cut():
    for letters in (11.0, 18.0, 24.0):
        for high in np.linspace(2, 60, 30):
            chart = Chart("", Axis("x", 0.0, 9.0, ticks=()), Axis("", 0.0, float(high), "root", 0.0))
            for height in range(60, 300, 8):
                room = Box(height / 7, 0, 600, height)
                layout = lay_out(chart, room, measure, Style(letters=letters))
                assert layout.box.left - room.left > max(measure(text, letters) for _, text in layout.up)


def test_a_word_that_does_not_fit_beside_its_axis_is_left_out():
    line = Line(x=np.arange(9.0), y=np.arange(9.0))
    chart = Chart("Bound", Axis("iteration"), Axis("objective"), (line,))
    for height, shown in ((160, True), (70, False)):
        canvas = VectorCanvas(200, height)
        draw_axes(canvas, lay_out(chart, Box(0, 0, 200, height), canvas.width_of), DARK)
        assert ("objective" in canvas.svg().decode()) == shown
        assert "…" not in canvas.svg().decode()
