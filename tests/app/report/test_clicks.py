"""Report of clicks."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.app.errors import InputError
from raterscope.app.formats.records import ClickTable, PointTable
from raterscope.app.kinds.clicks.evaluation import EarlierRuns
from raterscope.app.kinds.clicks.report import sections as click_pictures
from raterscope.app.kinds.clicks.report.sections import detections_gallery
from raterscope.app.kinds.clicks.report.tables import counts_table, read_counted_image
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.report import write_report
from raterscope.app.review import (
    CountingSubject,
    Decision,
    Measures,
    ScaleSubject,
    ShapeSubject,
    SpotSubject,
    View,
    WeightSubject,
    fold,
    read_measures,
)
from raterscope.app.study import Study
from raterscope.resources.bibliography import cite
from tests.app.commands import run
from tests.app.study.made import a_table
from tests.app.tables import write

SPOTS = np.array([(20.0, 30.0), (70.0, 25.0), (60.0, 80.0)])


@pytest.fixture
def crowd(tmp_path):
    """Ten people who click on three spots, fused."""
    rng = np.random.default_rng(4)
    positions = np.concatenate([SPOTS + rng.normal(0, 0.8, SPOTS.shape) for _ in range(10)])
    table = ClickTable(
        path=tmp_path / "made.csv",
        annotators=tuple(f"w{index}" for index in range(10)),
        images=("smear <one>",),
        annotator=np.repeat(np.arange(10), 3),
        image=np.zeros(30, dtype=np.int64),
        x=positions[:, 0],
        y=positions[:, 1],
        time=None,
        extents={0: (100.0, 100.0)},
    )
    with Study.create(tmp_path / "crowd.rscope") as study:
        study.add_clicks(table)
        answer = fuse_inputs(gather([1], study), FusionPlan())
        keep(answer, study)
        yield study


def test_counts_have_the_experts_word(crowd, page):
    row_before = page(crowd).row("smear <one>", 7)
    assert row_before[1:4] == ["10", "30", "3"]
    mean = crowd.runs.result(1, 1).clustering.mean
    x, y = (float(value) for value in mean[0])
    crowd.record(Decision(verb="reject", item=1, run=1, subject=SpotSubject(x=x, y=y, number=1)))
    for position in (90.0, 95.0):
        crowd.record(Decision(verb="add", item=1, subject=SpotSubject(x=position, y=5.0)))
    row_after = page(crowd).row("smear <one>", 7)
    assert row_after[3] == "4"
    assert row_after[6] == "3"


def test_the_methods_are_those_of_the_run(crowd, page):
    report = page(crowd)
    assert " ".join(cite(FusionPlan().in_words()).split()) in report.text
    assert "w7" in {row[0] for row in report.rows if row}


def test_it_lists_the_weights_of_annotators_with_reasons(crowd, page):
    for verb, name, subject, reason in (
        ("weigh", "w3", WeightSubject(weight=0.5), "hasty"),
        ("exclude", "w5", None, "sleeps"),
    ):
        crowd.record(Decision(verb=verb, annotators=(name,), subject=subject, reason=reason))
    assert "Weight" not in page(crowd).text  # of the run, which they came after
    keep(fuse_inputs(gather([1], crowd), FusionPlan()), crowd)
    crowd.record(Decision(verb="include", annotators=("w3",)))
    report = page(crowd)
    assert report.row("w3", 8)[7] == "½: hasty"
    assert report.row("w4", 8)[7] == "1"
    left_out = report.row("w5", 8)
    assert left_out[1].isdigit()
    assert all(re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", rate) for rate in left_out[2:5])
    assert left_out[5:] == ["–", "–", "excluded: sleeps"]
    assert "Down-weighted annotators: w3 as ½ (hasty)." in report.text
    assert "Decisions were made after run 2" in report.text


def test_left_out_names_only_who_had_a_part_in_the_run(crowd, page):
    crowd.add_clicks(a_table(1, ("elsewhere.png",), annotators=1))
    for name in ("w5", "annotator 0"):
        crowd.record(Decision(verb="exclude", annotators=(name,)))
    keep(fuse_inputs(gather([1], crowd), FusionPlan()), crowd)
    assert set(crowd.runs.all()[-1].excluded) == {"annotator 0", "w5"}
    report = page(crowd)
    assert "Excluded: w5." in report.text
    listed = {row[0] for row in report.rows if row}
    assert "w5" in listed
    assert "annotator 0" not in listed


def test_parasitaemia_is_reported_with_its_formula_and_measurements_with_their_scale(crowd, page):
    assert "Parasitaemia" not in page(crowd).text  # as long as nothing is counted beside them
    assert "Measurements" not in page(crowd).text
    positions = ((10.0, 10.0), (40.0, 50.0))
    for verb, subject in (
        ("count", CountingSubject(leukocytes=150)),
        ("scale", ScaleSubject(pixel_size=0.2, everywhere=True)),
        ("measure", ShapeSubject(shape="length", points=positions, number=1)),
        ("measure", ShapeSubject(shape="area", points=(*positions, (10.0, 50.0)), number=2)),
    ):
        crowd.record(Decision(verb=verb, item=1, subject=subject, who="anna"))
    for number, (x, y) in enumerate(crowd.runs.result(1, 1).clustering.mean.tolist(), start=1):
        crowd.record(Decision(verb="accept", item=1, run=1, subject=SpotSubject(x=x, y=y, number=number)))
    report = page(crowd)
    density = report.row("Per microlitre, by leukocytes", 4)
    assert density[1] == "160 /µl"
    assert density[3] == "3 × 8,000 /µl / 150 leukocytes"
    assert "MM-SOP-09" in report.text
    lengths, areas = (row for row in report.rows if len(row) == 6 and row[5] == "anna")
    assert lengths[1:5] == ["length 1", "50.0 px", "10.0 µm", "0.2"]
    assert areas[1:4] == ["area 2", "600 px²", "24.0 µm²"]


def test_what_is_known_is_compared_with_before_and_after_the_expert(crowd, page, tmp_path):
    assert "Against ground truth" not in page(crowd).text
    positions = np.array([*SPOTS[:2], (5.0, 90.0)])  # the third is found, but is none; one is missed
    crowd.add_clicks(
        PointTable(
            path=tmp_path / "truth.csv", images=("smear <one>",), image=np.zeros(3, dtype=np.int64),
            x=positions[:, 0], y=positions[:, 1],
        )
    )  # fmt: skip
    crowd.record(Decision(verb="add", item=1, subject=SpotSubject(x=6.0, y=91.0)))
    report = page(crowd)
    assert report.row("smear <one>", 7)[1] == "10"
    rows = [row for row in report.rows if len(row) == 7 and row[1] == "3" and not row[0].startswith("w")]
    with_expert, without_expert = rows
    assert with_expert[1:4] == ["3", "4", "3"]
    assert without_expert[1:4] == ["3", "3", "2"]
    assert [float(row[4].split()[0]) for row in rows] == pytest.approx([1, 2 / 3], abs=0.05)
    assert [float(row[5].split()[0]) for row in rows] == pytest.approx([3 / 4, 2 / 3], abs=0.05)
    assert {"Calibration", "Precision and sensitivity"} <= {words.strip() for words in report.texts}


def test_spots_held_fixed_do_not_count_for_the_calibration(crowd, page, tmp_path):
    positions = np.array([*SPOTS[:2], (5.0, 90.0)])
    crowd.add_clicks(
        PointTable(tmp_path / "true.csv", ("smear <one>",), np.zeros(3, int), *positions.T, extents={})
    )
    x, y = SPOTS[2].tolist()
    crowd.record(Decision(verb="reject", item=1, run=1, subject=SpotSubject(x=x, y=y, number=3)))
    assert "3 spots, before the expert's decisions." in page(crowd).text
    keep(fuse_inputs(gather([1], crowd), FusionPlan()), crowd)
    text = page(crowd).text
    assert "2 spots, before the expert's decisions. Left out: 1 spot" in text
    assert "As fused: with the decisions that were held fixed on 1 spot." in text


def test_annotators_who_click_alike_agree(crowd, page):
    report = page(crowd)
    dice = [float(row[5]) for row in report.rows if len(row) == 7 and row[0].startswith("w")]
    assert len(dice) == 10
    assert min(dice) > 0.7
    match = re.search(r"Over all pairs of annotators Dice is (\d\.\d\d)", report.text)
    assert float(match[1]) == pytest.approx(np.mean(dice), abs=0.01)


def test_of_many_images_those_in_dispute_are_shown(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr(click_pictures, "_MOST", 1)
    Image.new("RGB", (100, 100), "pink").save(tmp_path / "two.png")
    entries = [replace(entry, name=name) for name, entry in zip(("a", "b"), crowd.images() * 2, strict=True)]
    counted = [read_counted_image(crowd, entry, fold([]), EarlierRuns(crowd)) for entry in entries]
    doubtful = replace(counted[1], spots=replace(counted[1].spots, posterior=np.full(3, 0.5)))
    monkeypatch.setattr(crowd, "locate", lambda _: tmp_path / "two.png")
    crowd.record(Decision(verb="scale", item=1, subject=ScaleSubject(pixel_size=0.2, everywhere=True)))
    scaled = read_measures(crowd.decisions(), fold(crowd.decisions()))
    (picture,) = detections_gallery(crowd, [counted[0], doubtful], scaled).pictures
    assert picture.text.endswith("bar 5 µm")  # a third of 100 pixels is 6.7 µm
    gallery = detections_gallery(crowd, [counted[0], doubtful], Measures())
    assert [picture.title for picture in gallery.pictures] == ["b"]
    assert gallery.pictures[0].text == "3 found, 3 in dispute"
    assert "Of 2 images" in gallery.note


def test_of_more_images_than_a_table_lists_the_sum_and_those_in_dispute_come_first(crowd):
    counted = read_counted_image(crowd, crowd.images()[0], fold([]), EarlierRuns(crowd))
    doubtful = replace(counted, spots=replace(counted.spots, posterior=np.full(3, 0.5)))
    images = [counted] * 500
    images[450] = replace(doubtful, entry=replace(counted.entry, name="late"))
    table = counts_table(images)
    assert [row[0] for row in table.rows[:2]] == ["all images", "late"]
    assert table.rows[0][3] == "1,500"
    assert table.rows[1][5] == "3"
    assert table.rows[-1][0] == "… and 100 more"
    assert "raterscope export --what counts" in table.note
    assert [row[0] for row in counts_table(images[449:452]).rows] == [
        "smear <one>", "late", "smear <one>", "all images"
    ]  # fmt: skip


def test_thousands_of_decisions_are_summed_up(crowd, page):
    crowd.record(Decision(verb="exclude", annotators=("w1",), reason="asleep", who="Dr B"))
    for number in range(250):
        spot = SpotSubject(x=float(number % 90), y=float(number // 90))
        crowd.record(Decision(verb="add", item=1, subject=spot, who="Dr A", reason="why" * (number == 249)))
    crowd.record(Decision(verb="undo", undoes=2, who="Dr A"))
    report = page(crowd)
    assert report.row("Dr A", 6)[1:3] == ["251", "249"]
    assert report.row("Dr A", 6)[5] == "add 250, undo 1"
    listed = [row for row in report.rows if len(row) == 7 and row[2] in ("Dr A", "Dr B")]
    assert len(listed) == 200
    assert [row[0] for row in listed] == sorted((row[0] for row in listed), key=int)
    assert "exclude annotator w1 (asleep)" in listed[0]
    assert listed[-1][5] == "why"
    assert "Of 252 decisions 200 are listed" in report.text
    assert report.row("Experts", 2)[1] == "Dr B, Dr A"


def test_spots_viewed_and_left_undecided_are_counted(crowd, page):
    assert "left without a decision" not in page(crowd).text
    crowd.views.record([View(image=1, x=float(x), y=float(y), seconds=2.0) for x, y in SPOTS[:2]])
    keep(fuse_inputs(gather([1], crowd), FusionPlan()), crowd)
    crowd.record(
        Decision(verb="reject", item=1, subject=SpotSubject(x=float(SPOTS[0, 0]), y=float(SPOTS[0, 1])))
    )
    words = page(crowd).text
    assert "2 spots were known to have been viewed and left without a decision" in words
    assert "1 spot on 1 image was in sight for 0.5 s or longer and left without a decision" in words


CENTRES = ((30, 40), (150, 60), (90, 150))


@pytest.fixture
def fused_crowd(tmp_path):
    rng = np.random.default_rng(2)
    rows = [
        (f"w{index}", "a.png", round(x + rng.normal(0, 1.5), 1), round(y + rng.normal(0, 1.5), 1), 200, 200)
        for index in range(8)
        for x, y in CENTRES
    ]
    columns = ("annotator", "image", "x", "y", "width", "height")
    path = tmp_path / "s.rscope"
    assert run("import", path, write(tmp_path / "clicks.csv", columns, rows)) == 0
    assert run("run", path, "oem") == 0
    return path


def test_the_report_measures_methods_against_the_number_of_annotators(fused_crowd, tmp_path):
    truth = write(tmp_path / "truth.csv", ("image", "x", "y"), [("a.png", *centre) for centre in CENTRES])
    assert run("import", fused_crowd, truth, "--kind", "truth") == 0
    out = tmp_path / "report.html"
    assert (
        run("report", fused_crowd, "--by-crowd-size", "draws=1", "crowds=2", "min_annotators=4", "-o", out)
        == 0
    )
    page = out.read_text(encoding="utf-8")
    assert "Number of annotators" in page
    assert "Precision after detection" in page
    assert "OEM as published, DEM as published, after detection" in page
    assert "1.000" in page
    plain = tmp_path / "plain.html"
    assert run("report", fused_crowd, "-o", plain) == 0
    assert "Crowds of several sizes" not in plain.read_text(encoding="utf-8")


def test_without_known_positions_it_is_refused(fused_crowd, tmp_path):
    with Study.open(fused_crowd) as opened, pytest.raises(InputError, match="ground truth"):
        write_report(opened, tmp_path / "report.html", options={"crowd_size": CrowdSizeSettings()})
