"""Communities and traces as drawings and tables."""

from xml.etree import ElementTree

import numpy as np
import pytest

from raterscope.app.kinds.labels.community_charts import CHART_FILES, corners_of
from raterscope.figures.canvas import VectorCanvas
from raterscope.figures.courses import TernaryChart, TernaryPoint, share_bars
from raterscope.figures.drawing import PaperChart
from tests.app.commands import run
from tests.app.kinds.labels.made import LIAR, PEOPLE, write_votes
from tests.app.tables import rows_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fused by the dynamic model, so that communities can be followed."""
    path = tmp_path_factory.mktemp("charts")
    votes = write_votes(path / "votes.csv", times=True)
    assert run("fuse", "labels", votes, "--algorithm", "dynibcc", "--charts", "-o", path / "out") == 0
    return path / "out"


def test_every_chart_and_its_table_is_written(folder):
    assert all((folder / name).stat().st_size for name in CHART_FILES)
    for name in CHART_FILES:
        if name.endswith(".svg"):
            page = ElementTree.parse(folder / name).getroot()
            assert len(list(page.iter(f"{SVG}text"))) > 3, name


def test_participation_adds_up_to_one_at_every_moment(folder):
    total: dict[tuple[str, str], float] = {}
    for row in rows_of(folder / "participation.csv"):
        key = row["moment"], row["annotator"]
        total[key] = total.get(key, 0.0) + float(row["participation"])
    assert len({moment for moment, _ in total}) == 5
    assert {annotator for _, annotator in total} == set(PEOPLE)
    np.testing.assert_allclose(list(total.values()), 1, atol=0.003)


def test_communities_keep_their_mean_over_time(folder):
    """The liar and the careful do so from the start: their communities hardly move."""
    rows = [
        row for row in rows_of(folder / "communities_over_time.csv") if row["name"] == "the wrong way round"
    ]
    assert len(rows) >= 3
    assert max(float(row["cat: cat"]) for row in rows) < 0.35


def test_traces_are_aligned_by_the_votes_of_all(folder):
    rows = [row for row in rows_of(folder / "traces.csv") if row["annotator"] == LIAR]
    assert rows[-1]["vote"] == "120"
    steps = sorted({(int(row["vote"]), int(row["votes_of_all"])) for row in rows})
    assert len(steps) == 20
    assert all(all_votes == (vote - 1) * len(PEOPLE) + 10 for vote, all_votes in steps)
    last = {(row["true"], row["given"]): float(row["probability"]) for row in rows if row["vote"] == "120"}
    assert last["cat", "cat"] + last["cat", "dog"] == pytest.approx(1)
    assert last["cat", "cat"] < 0.2


def test_without_what_it_takes_they_are_left_out(tmp_path):
    votes = write_votes(tmp_path / "votes.csv")
    assert run("fuse", "labels", votes, "--algorithm", "ibcc", "--charts", "-o", tmp_path / "out") == 0
    assert {name for name in CHART_FILES if (tmp_path / "out" / name).exists()} == {"communities.svg"}


def test_three_answers_are_the_corners_and_of_others_the_right_one_is_the_first():
    names, share = corners_of(("a", "b", "c"), np.array([0, 1, 2]), 1, np.array([0.2, 0.7, 0.1]))
    assert names == ("a", "b", "c")
    np.testing.assert_array_equal(share, np.eye(3))
    names, share = corners_of(tuple("abcd"), np.array([0, 1, 2, 3]), 1, np.array([0.1, 0.6, 0.1, 0.2]))
    assert names == ("b", "all others", "d")
    np.testing.assert_allclose(np.array([0.1, 0.6, 0.1, 0.2]) @ share, (0.6, 0.2, 0.2))
    _, share = corners_of(("x", "y"), np.array([0, 1]), 0, np.array([0.9, 0.1]))
    np.testing.assert_allclose(np.array([0.9, 0.1]) @ share, (0.9, 0, 0.1))


def test_a_share_of_one_is_a_corner_and_bars_are_as_long_as_shares():
    chart = TernaryChart(("a", "b", "c"), [TernaryPoint(row, "#000000") for row in np.eye(3)])
    canvas = VectorCanvas(chart.width, chart.height)
    chart.draw(canvas)
    page = ElementTree.fromstring(canvas.svg())
    positions = {
        (float(circle.get("cx", 0)), float(circle.get("cy", 0))) for circle in page.iter(f"{SVG}circle")
    }
    (low, left_end), (_, right_end) = sorted((y, x) for x, y in positions if y > 100)
    assert right_end - left_end == pytest.approx(380)
    top = min(positions, key=lambda position: position[1])
    assert top == pytest.approx(((left_end + right_end) / 2, low - 380 * 3**0.5 / 2), abs=0.01)
    inks = ["#111111", "#222222"]
    bars = PaperChart(share_bars(np.array([[0.25, 0.75]]), ["now"], ["one", "other"], inks=inks))
    canvas = VectorCanvas(bars.width, bars.height)
    bars.draw(canvas)
    page = ElementTree.fromstring(canvas.svg())
    wide = []
    for polygon in page.iter(f"{SVG}polygon"):
        across = [float(pair.split(",")[0]) for pair in polygon.get("points", "").split()]
        wide.append(max(across) - min(across))
    assert wide[1] == pytest.approx(3 * wide[0], rel=0.01)
