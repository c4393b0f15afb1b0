"""What a report says of clicks."""

import numpy as np
import pytest

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.app.clicks.running import fuse_inputs, gather, keep
from raterscope.app.formats.records import ClickTable
from raterscope.app.review import (
    CountingSubject,
    Decision,
    ScaleSubject,
    ShapeSubject,
    SpotSubject,
    WeightSubject,
)
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


def test_it_says_who_counted_how_much_and_why(crowd, page):
    for verb, name, subject, reason in (
        ("weigh", "w3", WeightSubject(weight=0.5), "hasty"),
        ("exclude", "w5", None, "sleeps"),
    ):
        crowd.record(Decision(verb=verb, annotators=(name,), subject=subject, reason=reason))
    assert "Weight" not in page(crowd).text  # of the run, which they came after
    keep(fuse_inputs(gather([1], crowd), FusionPlan()), crowd)
    crowd.record(Decision(verb="include", annotators=("w3",)))
    made = page(crowd)
    assert made.row("w3", 6)[5] == "½: hasty"
    assert made.row("w4", 6)[5] == "1"
    assert made.row("w5", 6)[1:] == ["–", "–", "–", "–", "left out: sleeps"]
    assert "Counted as a part of an annotator: w3 as ½ (hasty)." in made.text
    assert "Decisions were made after run 2" in made.text


def test_parasitaemia_is_told_with_its_formula_and_measurements_with_their_scale(crowd, page):
    assert "type in how many leukocytes were counted" in page(crowd).text
    assert "Measurements" not in page(crowd).text
    places = ((10.0, 10.0), (40.0, 50.0))
    for verb, subject in (
        ("count", CountingSubject(leukocytes=150)),
        ("scale", ScaleSubject(pixel_size=0.2, everywhere=True)),
        ("measure", ShapeSubject(shape="length", points=places, number=1)),
        ("measure", ShapeSubject(shape="area", points=(*places, (10.0, 50.0)), number=2)),
    ):
        crowd.record(Decision(verb=verb, item=1, subject=subject, who="anna"))
    for number, (x, y) in enumerate(crowd.result(1, 1).clustering.mean.tolist(), start=1):
        crowd.record(Decision(verb="accept", item=1, run=1, subject=SpotSubject(x=x, y=y, number=number)))
    made = page(crowd)
    density = made.row("Per microlitre, by leukocytes", 4)
    assert density[1] == "160 /µl"
    assert density[3] == "3 × 8,000 /µl / 150 leukocytes"
    assert "MM-SOP-09" in made.text
    lengths, areas = (row for row in made.rows if len(row) == 6 and row[5] == "anna")
    assert lengths[1:5] == ["length 1", "50.0 px", "10.0 µm", "0.2"]
    assert areas[1:4] == ["area 2", "600 px²", "24.0 µm²"]
