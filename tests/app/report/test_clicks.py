"""What a report says of clicks."""

from itertools import product

import numpy as np
import pytest

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.app.clicks.running import fuse_inputs, gather, keep
from raterscope.app.formats.records import ClickTable
from raterscope.app.report.clicks import count_interval
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study

SPOTS = np.array([(20.0, 30.0), (70.0, 25.0), (60.0, 80.0)])


@pytest.fixture
def crowd(tmp_path):
    """Ten people who click on three spots, fused."""
    rng = np.random.default_rng(4)
    places = np.concatenate([SPOTS + rng.normal(0, 0.8, SPOTS.shape) for _ in range(10)])
    table = ClickTable(
        path=tmp_path / "made.csv",
        annotators=tuple(f"w{who}" for who in range(10)),
        images=("smear <one>",),
        annotator=np.repeat(np.arange(10), 3),
        image=np.zeros(30, dtype=np.int64),
        x=places[:, 0],
        y=places[:, 1],
        time=None,
        extents={0: (100.0, 100.0)},
    )
    with Study.create(tmp_path / "crowd.rscope") as study:
        study.add_clicks(table)
        answer = fuse_inputs(gather([1], study), FusionPlan())
        keep(answer, study)
        yield study


def test_counts_have_the_experts_word(crowd, page):
    before = page(crowd).row("smear <one>", 7)
    assert before[1:4] == ["10", "30", "3"]
    mean = crowd.result(1, 1).clustering.mean
    x, y = (float(value) for value in mean[0])
    crowd.record(Decision(verb="reject", item=1, run=1, subject=SpotSubject(x=x, y=y, number=1)))
    for place in (90.0, 95.0):
        crowd.record(Decision(verb="add", item=1, subject=SpotSubject(x=place, y=5.0)))
    after = page(crowd).row("smear <one>", 7)
    assert after[3] == "4"
    assert after[6] == "3"


def test_the_methods_are_those_of_the_run(crowd, page):
    made = page(crowd)
    assert " ".join(FusionPlan().in_words().split()) in made.text
    assert "w7" in {row[0] for row in made.rows if row}


def test_the_interval_of_a_count_is_that_of_independent_spots():
    chances = np.array([0.03, 0.2, 0.5, 0.77, 0.9, 0.999, 1.0, 0.0])
    spread = np.zeros(len(chances) + 1)
    for outcome in product((0, 1), repeat=len(chances)):
        spread[sum(outcome)] += np.prod(np.where(outcome, chances, 1 - chances))
    below = np.cumsum(spread)
    mean, low, high = count_interval(chances)
    assert mean == pytest.approx(chances.sum())
    assert low == np.flatnonzero(below > 0.025)[0]
    assert high == np.flatnonzero(below >= 0.975)[0]


def test_a_count_that_is_certain_has_no_width():
    assert count_interval(np.array([1.0, 1.0, 0.0])) == (2.0, 2, 2)
    assert count_interval(np.empty(0)) == (0.0, 0, 0)
