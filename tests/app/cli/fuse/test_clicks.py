"""`raterscope fuse clicks`, from the files a user has to the files a user gets."""

import csv
import json

import numpy as np
import pytest

from raterscope.app.cli import main
from tests.app.tables import rows_of, write

CENTRES = {"a.png": [(30.0, 40.0), (150.0, 60.0), (90.0, 150.0)], "b.png": [(60.0, 60.0), (140.0, 140.0)]}


@pytest.fixture
def clicks(tmp_path):
    """Twelve people who click within two pixels of five objects on two images."""
    rng = np.random.default_rng(3)
    rows = [
        (f"w{index:02d}", image, round(x + rng.normal(0, 1.5), 1), round(y + rng.normal(0, 1.5), 1))
        for index in range(12)
        for image, centres in CENTRES.items()
        for x, y in centres
    ]
    return write(tmp_path / "clicks.csv", ("worker", "image", "x", "y"), rows)


@pytest.fixture
def truth(tmp_path):
    rows = [(image, x, y) for image, centres in CENTRES.items() for x, y in centres]
    return write(tmp_path / "truth.csv", ("image", "x", "y"), rows)


def fuse(clicks, out, *more):
    return main(["fuse", "clicks", str(clicks), *map(str, more), "-o", str(out)])


def test_the_files_and_their_columns(clicks, tmp_path):
    out = tmp_path / "results" / "deep"
    assert fuse(clicks, out, "--extent", 200, 200) == 0
    headers = {path.name: path.read_text().splitlines()[0] for path in sorted(out.glob("*.csv"))}
    assert headers == {
        "annotators.csv": "annotator,clicks,reliability,sensitivity,precision,reliability_low,"
        "reliability_high,sensitivity_low,sensitivity_high,precision_low,precision_high",
        "clicks.csv": "annotator,image,x,y,inlier_probability,cluster,vote",
        "detections.csv": "image,cluster,x,y,sxx,sxy,syy,weight,votes,posterior,detected",
    }
    assert sorted(path.name for path in out.iterdir()) == [*headers, "run.json"]
    for row in rows_of(out / "annotators.csv"):
        for name in ("reliability", "sensitivity", "precision"):
            assert float(row[f"{name}_low"]) < float(row[name]) < float(row[f"{name}_high"])


def test_the_objects_are_found(clicks, tmp_path):
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200) == 0
    detected = [row for row in rows_of(tmp_path / "out" / "detections.csv") if row["detected"] == "1"]
    for image, centres in CENTRES.items():
        positions = np.array(
            [(float(row["x"]), float(row["y"])) for row in detected if row["image"] == image]
        )
        assert len(positions) == len(centres)
        for centre in centres:
            assert np.hypot(*(positions - centre).T).min() < 2
    assert min(int(row["votes"]) for row in detected) >= 11


def test_every_click_comes_back_with_its_cluster(clicks, tmp_path):
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200) == 0
    rows_before, rows_after = rows_of(clicks), rows_of(tmp_path / "out" / "clicks.csv")
    assert sorted((r["worker"], r["image"], float(r["x"]), float(r["y"])) for r in rows_before) == sorted(
        (r["annotator"], r["image"], float(r["x"]), float(r["y"])) for r in rows_after
    )
    detections = {
        (r["image"], r["cluster"]): np.array([float(r["x"]), float(r["y"])])
        for r in rows_of(tmp_path / "out" / "detections.csv")
    }
    clustered = [row for row in rows_after if row["cluster"]]
    assert len(clustered) > 0.9 * len(rows_after)
    for row in clustered:
        assert 0.5 <= float(row["inlier_probability"]) <= 1
        centre = detections[row["image"], row["cluster"]]
        assert np.hypot(*(centre - [float(row["x"]), float(row["y"])])) < 10


def test_votes_and_precision_can_be_counted_from_the_clicks(clicks, tmp_path):
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200) == 0
    spots = {(row["image"], row["cluster"]): row for row in rows_of(tmp_path / "out" / "detections.csv")}
    voters: dict[tuple[str, str], set[str]] = {key: set() for key in spots}
    marks: dict[str, int] = {}
    for row in rows_of(tmp_path / "out" / "clicks.csv"):
        marks[row["annotator"]] = marks.get(row["annotator"], 0) + 1
        if row["vote"] == "1":
            voters[row["image"], row["cluster"]].add(row["annotator"])
    assert {key: len(voters_of_spot) for key, voters_of_spot in voters.items()} == {
        key: int(row["votes"]) for key, row in spots.items()
    }
    for row in rows_of(tmp_path / "out" / "annotators.csv"):
        name = row["annotator"]
        hits = sum(
            float(spots[key]["posterior"]) for key, voters_of_spot in voters.items() if name in voters_of_spot
        )
        assert float(row["precision"]) == pytest.approx(hits / marks[name], abs=1e-6)


def test_reliability_can_be_counted_from_the_votes_of_the_clicks(tmp_path):
    places = [(50, 50), (100, 100), (150, 60)]
    rows = [(f"w{n}", x + n % 3, y + n // 3) for n in range(9) for x, y in places] + [("w0", 62, 62)]
    table = tmp_path / "clicks.csv"
    table.write_text("annotator,image,x,y\n" + "".join(f"{who},a,{x},{y}\n" for who, x, y in rows))
    options = ("--algorithm", "kmeans", "--set", "clusters=3")
    assert fuse(table, tmp_path / "out", "--extent", 200, 200, *options) == 0
    clicks = [row for row in rows_of(tmp_path / "out" / "clicks.csv") if row["annotator"] == "w0"]
    votes = sum(row["vote"] == "1" for row in clicks)
    (rates,) = [row for row in rows_of(tmp_path / "out" / "annotators.csv") if row["annotator"] == "w0"]
    assert float(rates["reliability"]) == pytest.approx((votes + 0.5) / (len(clicks) + 1))


def test_an_outlier_has_no_cluster(clicks, tmp_path):
    with clicks.open("a") as file:
        file.write("w00,a.png,5,190\n")
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200) == 0
    (row,) = [row for row in rows_of(tmp_path / "out" / "clicks.csv") if row["y"] == "190"]
    assert row["cluster"] == ""
    assert float(row["inlier_probability"]) < 0.5


def test_annotators_without_marks_count(clicks, tmp_path):
    assert fuse(clicks, tmp_path / "without", "--extent", 200, 200) == 0
    with clicks.open("a") as file:
        file.writelines(f"idle{n},b.png,,\n" for n in range(3))
    assert fuse(clicks, tmp_path / "with", "--extent", 200, 200) == 0
    rows_before = {row["annotator"]: row for row in rows_of(tmp_path / "without" / "annotators.csv")}
    rows_after = {row["annotator"]: row for row in rows_of(tmp_path / "with" / "annotators.csv")}
    assert set(rows_after) - set(rows_before) == {"idle0", "idle1", "idle2"}
    assert rows_after["idle0"]["clicks"] == "0"
    assert rows_after["idle0"]["reliability"] == ""
    assert float(rows_after["idle0"]["sensitivity"]) < float(rows_after["w00"]["sensitivity"]) - 0.2


def test_who_is_weighed_counts_as_a_part_of_one(clicks, tmp_path):
    full, weighed = tmp_path / "full", tmp_path / "weighed"
    assert fuse(clicks, full, "--extent", 200, 200) == 0
    assert fuse(clicks, weighed, "--extent", 200, 200, "--weight", "w00=0.25", "w01=1") == 0
    records = [json.loads((folder / "run.json").read_text()) for folder in (full, weighed)]
    assert [record["weights"] for record in records] == [{}, {"w00": 0.25, "w01": 1.0}]
    assert records[0]["digest"] != records[1]["digest"]
    rows_before, rows_after = (rows_of(folder / "detections.csv") for folder in (full, weighed))
    assert len(rows_before) == len(rows_after)
    assert sorted(row["posterior"] for row in rows_before) != sorted(row["posterior"] for row in rows_after)


def test_control_images_bear_on_the_others_and_are_recorded(clicks, tmp_path):
    out = tmp_path / "out"
    assert fuse(clicks, out, "--extent", 200, 200, "--positive", "a.png", "--negative", "b.png") == 0
    record = json.loads((out / "run.json").read_text())
    assert record["controls"] == {"a.png": True, "b.png": False}
    rows = rows_of(out / "detections.csv")
    assert all(float(row["posterior"]) == 0 for row in rows if row["image"] == "b.png")
    free = tmp_path / "free"
    assert fuse(clicks, free, "--extent", 200, 200) == 0
    assert "controls" not in json.loads((free / "run.json").read_text())
    posteriors_before = [
        float(row["posterior"]) for row in rows_of(free / "detections.csv") if row["image"] == "a.png"
    ]
    posteriors_after = [float(row["posterior"]) for row in rows if row["image"] == "a.png"]
    assert len(posteriors_after) == len(posteriors_before)
    assert posteriors_after != posteriors_before


def test_run_json_holds_what_is_needed_to_repeat_it(clicks, tmp_path):
    out = tmp_path / "out"
    assert fuse(clicks, out, "--extent", 200, 200, "--set", "click_scatter=2", "seed=7") == 0
    record = json.loads((out / "run.json").read_text())
    assert record["settings"]["clustering"]["click_scatter"] == 2.0
    assert record["seed"] == 7
    assert set(record["versions"]) >= {"raterscope", "numpy", "scipy", "numba", "python"}
    assert record["inputs"][0]["file"] == "clicks.csv"
    assert [image["image"] for image in record["images"]] == ["a.png", "b.png"]
    for image in record["images"]:
        curve = image["objective_by_iteration"]
        assert len(curve) == image["iterations"] > 0
        assert curve[image["kept_iteration"]] == image["objective"] is not None
    assert fuse(clicks, tmp_path / "again", "--extent", 200, 200, "--set", "click_scatter=2", "seed=7") == 0
    second = json.loads((tmp_path / "again" / "run.json").read_text())
    assert second["digest"] == record["digest"]
    for name in ("detections.csv", "annotators.csv", "clicks.csv"):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_results_replace_those_of_before_and_leave_nothing_else(clicks, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "detections.csv").write_text("old")
    (out / "mine.txt").write_text("keep")
    assert fuse(clicks, out, "--extent", 200, 200) == 0
    assert (out / "detections.csv").read_text().startswith("image,")
    assert sorted(path.name for path in out.iterdir()) == [
        "annotators.csv",
        "clicks.csv",
        "detections.csv",
        "mine.txt",
        "run.json",
    ]


def test_truth_gives_an_evaluation(clicks, truth, tmp_path, capsys):
    with truth.open("a") as file:
        file.write("b.png,20,180\n")
    out = tmp_path / "out"
    assert fuse(clicks, out, "--extent", 200, 200, "--truth", truth, "--radius", 5) == 0
    a, b, mean = rows_of(out / "evaluation.csv")
    assert list(a) == [
        "image",
        "truths",
        "detections",
        "matched",
        "sensitivity",
        "precision",
        "f0.5",
        "f1",
        "f2",
    ]
    assert (a["image"], b["image"], mean["image"]) == ("a.png", "b.png", "mean")
    assert float(a["sensitivity"]) == 1
    assert float(b["sensitivity"]) == pytest.approx(2 / 3)
    assert float(mean["sensitivity"]) == pytest.approx((1 + 2 / 3) / 2)
    assert float(mean["precision"]) == 1
    assert float(b["f2"]) == pytest.approx(5 * 1 * (2 / 3) / (4 * 1 + 2 / 3))
    assert "sensitivity 0.833, precision 1.000" in capsys.readouterr().out


def test_an_image_that_truly_holds_nothing_counts_what_was_found_on_it(clicks, tmp_path):
    rows = [("a.png", x, y) for x, y in CENTRES["a.png"]]
    truth = write(tmp_path / "truth.csv", ("image", "x", "y"), [*rows, ("b.png", "", "")])
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200, "--truth", truth, "--radius", 5) == 0
    a, b, mean = rows_of(tmp_path / "out" / "evaluation.csv")
    assert (b["image"], b["truths"], b["detections"], b["matched"]) == ("b.png", "0", "2", "0")
    assert float(b["precision"]) == 0
    assert b["sensitivity"] == ""
    assert float(mean["precision"]) == 0.5
    assert float(mean["sensitivity"]) == 1
    for count in ("truths", "detections", "matched"):  # counts are of all images
        assert int(mean[count]) == int(a[count]) + int(b[count])


def test_the_evaluation_of_an_earlier_run_is_removed(clicks, truth, tmp_path):
    judged = ("--extent", 200, 200, "--truth", truth, "--radius", 5)
    assert fuse(clicks, tmp_path / "out", *judged) == 0
    assert fuse(clicks, tmp_path / "out", *judged[:3]) == 0
    assert not (tmp_path / "out" / "evaluation.csv").exists()


def test_images_without_truth_and_truth_without_clicks_are_named(clicks, tmp_path, capsys):
    truth = write(tmp_path / "truth.csv", ("image", "x", "y"), [("a", 30, 40), ("z", 1, 1), ("y", 1, 1)])
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200, "--truth", truth, "--radius", 5) == 0
    assert [row["image"] for row in rows_of(tmp_path / "out" / "evaluation.csv")] == ["a.png", "mean"]
    assert capsys.readouterr().err.splitlines() == [
        "note: the evaluation skips 1 image without truth in truth.csv",
        "note: the evaluation skips 2 images of truth.csv without clicks",
    ]


def test_sizes_come_from_images_found_by_name(clicks, tmp_path):
    from PIL import Image

    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in CENTRES:
        Image.new("L", (200, 180)).save(folder / name)
    for paths in ([folder], sorted(folder.iterdir())):
        assert fuse(clicks, tmp_path / "out", "--images", *paths) == 0
        assert len(rows_of(tmp_path / "out" / "detections.csv")) == 5


def test_sizes_come_from_a_table(clicks, tmp_path):
    sizes = write(tmp_path / "sizes.csv", ("image", "width", "height"), [("a", 200, 180), ("b", 200, 180)])
    assert fuse(clicks, tmp_path / "out", "--images", sizes) == 0
    assert len(rows_of(tmp_path / "out" / "detections.csv")) == 5


def test_several_tables_are_one(clicks, tmp_path):
    lines = clicks.read_text().splitlines(keepends=True)
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("".join(lines[:30]))
    second.write_text("".join([lines[0], *lines[30:]]))
    assert fuse(clicks, tmp_path / "whole", "--extent", 200, 200) == 0
    assert (
        main(["fuse", "clicks", str(first), str(second), "--extent", "200", "200", "-o", f"{tmp_path}/parts"])
        == 0
    )
    for name in ("detections.csv", "annotators.csv", "clicks.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_mapped_columns_apply_to_the_truth_too(tmp_path):
    odd = [(f"w{index}", "p", 50 + index / 5, 50 - index / 5) for index in range(8)]
    clicks = write(tmp_path / "c.csv", ("wer", "bild", "quer", "hoch"), odd)
    truth = write(tmp_path / "t.csv", ("bild", "quer", "hoch"), [("p", 51, 49)])
    mapping = ["--map", "wer=annotator", "bild=image", "quer=x", "--map", "hoch=y"]
    more = ["--extent", "99", "99", "--truth", truth, "--radius", "4", *mapping]
    assert fuse(clicks, tmp_path / "out", *more) == 0
    assert rows_of(tmp_path / "out" / "evaluation.csv")[0]["matched"] == "1"


@pytest.mark.parametrize(
    ("algorithm", "detector"),
    [
        ("oem", "dem"),
        ("cem", "majority"),
        ("kmeans", "share"),
        ("hac", "recursive"),
        ("dbscan", "dem"),
        ("hdbscan", "share"),
    ],
)
def test_every_algorithm_and_every_detector(clicks, tmp_path, algorithm, detector):
    more = ["--extent", 200, 200, "--algorithm", algorithm, "--detector", detector]
    assert fuse(clicks, tmp_path / "out", *more) == 0
    detected = [row for row in rows_of(tmp_path / "out" / "detections.csv") if row["detected"] == "1"]
    assert len(detected) >= 5


def test_text_that_a_spreadsheet_would_run_is_made_harmless(tmp_path):
    rows = [("=HYPERLINK(1)", "i", 10, 10), ("w", "i", 11, 10)]
    clicks = write(tmp_path / "c.csv", ("annotator", "image", "x", "y"), rows)
    assert fuse(clicks, tmp_path / "out", "--extent", 20, 20) == 0
    for name in ("clicks.csv", "annotators.csv"):
        assert "'=HYPERLINK" in (tmp_path / "out" / name).read_text()


def test_list_settings_names_every_setting_with_its_range(capsys):
    from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS

    assert main(["fuse", "clicks", "--list-settings"]) == 0
    text = capsys.readouterr().out
    for algorithm in [*CLUSTERERS.values(), *DETECTORS.values()]:
        assert f"  {algorithm.name}: {algorithm.title}\n" in text
        for spec in algorithm.settings.specs():
            assert f" {spec.name}=" in text
    assert "click_scatter=auto" in text
    assert "outlier_threshold=0.5" in text


@pytest.mark.parametrize("command", [("run",), ("watch",), ("fuse", "clicks"), ("fuse", "labels")])
def test_help_is_short_and_leads_to_what_can_be_set(command, capsys):
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"`raterscope {' '.join(command)} --list-settings` lists the settings." in text
    assert " seed=" not in text
    assert ("  oem: OEM clustering" in text) == (command in {("run",), ("fuse", "clicks")})
    assert main([*command, "--list-settings"]) == 0
    assert "=" in capsys.readouterr().out


class TestRefusals:
    def test_no_size(self, clicks, refusal):
        message = refusal(clicks)
        assert message.startswith("clicks.csv, line 2: the size of this image is unknown")
        assert '"a.png" (and 1 more)' in message
        assert "--extent W H" in message

    def test_missing_file(self, refusal, tmp_path):
        message = refusal(tmp_path / "gone.csv", "--extent", 9, 9)
        assert message.startswith("gone.csv: ")

    def test_boxes_of_coco(self, refusal, tmp_path):
        box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 5, 5]}
        images = [{"id": 1, "file_name": "a.png", "width": 60, "height": 40}]
        path = tmp_path / "boxes.json"
        path.write_text(json.dumps({"images": images, "annotations": [box], "categories": []}))
        assert "(it has boxes 1)" in refusal(path)

    def test_empty_file(self, refusal, tmp_path):
        (tmp_path / "none.csv").touch()
        message = refusal(tmp_path / "none.csv", "--extent", 9, 9)
        assert message == "none.csv: is empty; expected a table."

    def test_unknown_columns(self, refusal, tmp_path):
        table = write(tmp_path / "c.csv", ("who", "what"), [("a", "b")])
        message = refusal(table, "--extent", 9, 9)
        assert message.startswith("c.csv: ")
        assert "who, what" in message
        assert "--map column=field" in message

    def test_not_a_number(self, clicks, refusal):
        lines = clicks.read_text().splitlines()
        lines[4] = "w00,b.png,12,twelve"
        clicks.write_text("\n".join(lines))
        message = refusal(clicks, "--extent", 9, 9)
        assert message.startswith('clicks.csv, line 5, field y: "twelve" is not a number')

    @pytest.mark.parametrize("setting", ["click_scatter=-1", "click_scatter=wide", "colour=red"])
    def test_settings(self, clicks, refusal, tmp_path, setting):
        message = refusal(clicks, "--extent", 9, 9, "--set", setting)
        assert message.startswith(f"--set {setting.partition(chr(61))[0]}")
        assert "expected" in message
        assert not (tmp_path / "out").exists()

    def test_a_control_image_that_is_not_there(self, clicks, refusal):
        options = ("--extent", 200, 200, "--negative", "c.png")
        assert "there is no image c.png for a control; expected one of a.png, b.png" in refusal(
            clicks, *options
        )

    def test_a_control_image_that_is_both(self, clicks, refusal):
        options = ("--extent", 200, 200, "--negative", "a.png", "--positive", "a.png")
        assert "a.png is named as --positive and as --negative; expected one of them" in refusal(
            clicks, *options
        )

    def test_a_weight_of_no_annotator(self, clicks, refusal):
        message = refusal(clicks, "--extent", 200, 200, "--weight", "kim=0.5")
        assert message.startswith("there is no annotator kim to weigh; expected one of w00, w01,")

    @pytest.mark.parametrize("weight", ["w00=0", "w00=2", "w00=half", "w00", "=0.5"])
    def test_a_weight_that_is_none(self, clicks, refusal, weight):
        message = refusal(clicks, "--extent", 200, 200, "--weight", weight)
        assert f"'{weight}' is no weight like NAME=0.5" in message

    @pytest.mark.parametrize("option", ["--algorithm", "--detector"])
    def test_unknown_algorithm(self, clicks, refusal, option):
        message = refusal(clicks, "--extent", 9, 9, option, "magic")
        assert "'magic'" in message
        assert ("oem" if option == "--algorithm" else "majority") in message

    def test_output_that_cannot_be_a_folder(self, clicks, refusal, tmp_path):
        (tmp_path / "taken").touch()
        message = refusal(clicks, "--extent", 9, 9, "-o", tmp_path / "taken")
        assert message == "taken: is a file; expected a folder for the results."

    def test_truth_of_other_images(self, clicks, refusal, tmp_path):
        other_truth = write(tmp_path / "t.csv", ("image", "x", "y"), [("z.png", 1, 1)])
        more = ("--truth", other_truth, "--radius", 3)
        message = refusal(clicks, "--extent", 9, 9, *more)
        assert message == "t.csv, field image: contains none of the images with clicks."

    def test_a_table_without_sizes(self, clicks, truth, refusal):
        message = refusal(clicks, "--images", truth)
        assert message == "truth.csv: has no sizes; expected the columns image, width and height."

    def test_a_folder_without_images(self, clicks, refusal, tmp_path):
        (tmp_path / "bare").mkdir()
        message = refusal(clicks, "--images", tmp_path / "bare")
        assert message.startswith("bare: is a folder without")

    def test_one_image_that_fails_does_not_lose_the_others(self, clicks, capsys, tmp_path, monkeypatch):
        from raterscope.app.kinds.clicks import image_fusion

        sound = image_fusion.fuse

        def fragile(clicks, plan, watch, **more):
            if len(clicks) == 24:  # b.png
                raise ZeroDivisionError("by chance")
            return sound(clicks, plan, watch=watch, **more)

        monkeypatch.setattr(image_fusion, "fuse", fragile)
        assert fuse(clicks, tmp_path / "out", "--extent", 200, 200, "--jobs", 1) == 1
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert "1 of 2 could not be fused, the others were; b.png: internal error" in message
        assert {row["image"] for row in rows_of(tmp_path / "out" / "detections.csv")} == {"a.png"}
        clicks_of_b = [row for row in rows_of(tmp_path / "out" / "clicks.csv") if row["image"] == "b.png"]
        assert len(clicks_of_b) == 24
        assert {row["cluster"] for row in clicks_of_b} == {""}
        record = json.loads((tmp_path / "out" / "run.json").read_text())
        assert "by chance" in record["images"][1]["problem"]


def test_paid_crowd_with_empty_jobs(real_data, tmp_path):
    folder = real_data / "clicks" / "quantius"
    more = ["--images", folder / "images.csv", "--truth", folder / "gt.csv", "--radius", 4]
    subset = tmp_path / "beads.csv"
    with (folder / "clicks.csv").open() as source:
        lines = [line for line in source if line.startswith(("image_id", "beads"))]
    subset.write_text("".join(lines))
    assert fuse(subset, tmp_path / "out", *more) == 0
    _, mean = rows_of(tmp_path / "out" / "evaluation.csv")
    assert float(mean["f2"]) > 0.85
    assert len(rows_of(tmp_path / "out" / "clicks.csv")) == len(lines) - 1


def test_volunteers_without_sizes(real_data, tmp_path):
    folder = real_data / "clicks" / "iguanas"
    with (folder / "expert_counts.csv").open() as file:
        expert = {row["image_name"]: int(row["expert_count"]) for row in list(csv.DictReader(file))[:40]}
    with (folder / "clicks.csv").open() as source:
        header, *lines = source
    subset = tmp_path / "clicks.csv"
    subset.write_text("".join([header, *(line for line in lines if line.split(",")[2] in expert)]))
    assert fuse(subset, tmp_path / "out", "--extent", 1500, 1500) == 0
    counted = dict.fromkeys(expert, 0)
    for row in rows_of(tmp_path / "out" / "detections.csv"):
        counted[row["image"]] += int(row["detected"])
    assert np.mean([abs(counted[name] - expert[name]) for name in expert]) <= 0.85


def test_truth_is_held_fixed_on_request(clicks, truth, tmp_path):
    """A known position without clicks is a detection once it is held fixed."""
    with truth.open("a") as file:
        file.write("a.png,180,180\n")
    more = ("--extent", 200, 200, "--truth", truth, "--radius", 5)
    assert fuse(clicks, tmp_path / "measured", *more) == 0
    assert fuse(clicks, tmp_path / "held", *more, "--hold-truth") == 0
    measured = rows_of(tmp_path / "measured" / "detections.csv")
    rows_held = rows_of(tmp_path / "held" / "detections.csv")
    assert not [row for row in measured if float(row["x"]) > 175]
    (added,) = [row for row in rows_held if float(row["x"]) > 175]
    assert (added["posterior"], added["detected"], added["votes"]) == ("1", "1", "0")


def test_nothing_is_held_without_a_truth(clicks, refusal):
    message = refusal(clicks, "--extent", 200, 200, "--hold-truth")
    assert "--hold-truth needs --truth" in message


def test_the_clicks_come_back_in_the_inputs_order(clicks, tmp_path):
    header, *rows = clicks.read_text().splitlines()
    mixed = sorted(rows, key=lambda row: row.split(",")[::-1])
    clicks.write_text("\n".join([header, *mixed]) + "\n")
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200) == 0
    lines = [
        (row["annotator"], row["image"], float(row["x"]), float(row["y"]))
        for row in rows_of(tmp_path / "out" / "clicks.csv")
    ]
    options = [
        (annotator, image, float(x), float(y)) for annotator, image, x, y in (row.split(",") for row in mixed)
    ]
    assert lines == options


def test_methods_are_measured_against_the_number_of_annotators(clicks, truth, tmp_path, capsys):
    out = tmp_path / "out"
    judged = ("--extent", 200, 200, "--truth", truth, "--radius", 5)
    fields = ("min_annotators=4", "crowds=2", "draws=1", "streamed=yes")
    assert fuse(clicks, out, *judged, "--by-crowd-size", *fields) == 0
    assert "after detection, chosen method: sensitivity/precision" in capsys.readouterr().out
    rows = rows_of(out / "crowd_size.csv")
    assert {row["stage"] for row in rows} == {"clustering", "detection"}
    assert {row["annotators"] for row in rows} == {"4", "12"}
    last = {row["method"]: row for row in rows if row["annotators"] == "12" and row["stage"] == "detection"}
    assert float(last["chosen method"]["sensitivity"]) == 1.0
    assert {"chosen method, streamed", "CEM as published, majority vote"} <= set(last)
    assert last["chosen method"]["crowds"] == "2"
    assert json.loads((out / "run.json").read_text())["crowd_size"]["draws"] == 1
    assert fuse(clicks, out, *judged) == 0
    assert not (out / "crowd_size.csv").exists()


def test_crowds_of_several_sizes_need_the_truth(clicks, tmp_path, capsys):
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200, "--by-crowd-size") == 1
    assert "--by-crowd-size needs --truth" in capsys.readouterr().err


def test_scores_of_a_program_come_into_the_record_and_the_detections(clicks, tmp_path, capsys):
    results = [
        ("a.png", 30.5, 40.5, 7),
        ("a.png", 150.2, 60.1, 3),
        ("a.png", 10, 190, 1),
        ("b.png", "", "", ""),
    ]
    scores = write(tmp_path / "found.csv", ("image", "x", "y", "score"), results)
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200, "--scores", scores) == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (record["scores"]["images"], record["scores"]["detections"]) == (2, 3)
    assert record["scores"]["digest" if "digest" in record["scores"] else "sha256"]
    rows = rows_of(tmp_path / "out" / "detections.csv")
    assert sorted(row["score"] for row in rows) == ["", "", "", "3", "7"]
    capsys.readouterr()
    other_scores = write(tmp_path / "other.csv", ("image", "x", "y", "score"), [("c.png", 1, 2, 3)])
    assert fuse(clicks, tmp_path / "out", "--extent", 200, 200, "--scores", other_scores) == 1
    assert "none of the images with clicks" in capsys.readouterr().err
