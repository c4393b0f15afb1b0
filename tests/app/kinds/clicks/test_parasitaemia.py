"""Scales, shapes and counts as a study keeps them and as they leave it."""

import csv
import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import stats

from raterscope.app.cli import main
from raterscope.app.errors import StudyError
from raterscope.app.kinds.clicks.parasitaemia import Field, compute_quantities, describe_intervals
from raterscope.app.review import (
    CountingSubject,
    Decision,
    Measures,
    ScaleSubject,
    ShapeSubject,
    fold,
    read_measures,
    redo,
    undo,
)
from raterscope.app.study import Study


def scale(size, image=1, *, everywhere=False):
    return Decision(verb="scale", item=image, subject=ScaleSubject(pixel_size=size, everywhere=everywhere))


def shape(number, points, image=1, verb="measure"):
    kind = "length" if len(points) == 2 else "area"
    return Decision(
        verb=verb, item=image, subject=ShapeSubject(shape=kind, points=tuple(points), number=number)
    )


def count(image=1, **values):
    return Decision(verb="count", item=image, subject=CountingSubject(**values))


def sure(image, number):
    share = np.ones(number)
    return Field(image, f"field {image}", None, share > 0, share, share, share)


@pytest.fixture
def study(study_file):
    with Study.open(study_file) as study:
        yield study


def measures_of(study):
    decisions = study.decisions()
    return read_measures(decisions, fold(decisions))


def test_the_last_word_on_a_scale_counts_and_undo_takes_it_back(study):
    assert measures_of(study).pixel_size(1, 0.5) == 0.5
    study.record(scale(0.1, everywhere=True))
    study.record(scale(0.2, image=2))
    assert [measures_of(study).pixel_size(image, None) for image in (1, 2)] == [0.1, 0.2]
    study.record(scale(0.3, everywhere=True))
    assert [measures_of(study).pixel_size(image, None) for image in (1, 2)] == [0.3, 0.3]
    study.record(undo(fold(study.decisions())))
    assert [measures_of(study).pixel_size(image, None) for image in (1, 2)] == [0.1, 0.2]
    study.record(redo(fold(study.decisions())))
    study.record(Decision(verb="unscale", item=2, subject=ScaleSubject()))
    assert [measures_of(study).pixel_size(image, 0.7) for image in (1, 2)] == [0.3, 0.7]


def test_who_set_a_scale_and_by_which_line_is_kept(study):
    line = (10.0, 20.0, 110.0, 20.0)
    subject = ScaleSubject(pixel_size=0.1, line=line, length=10.0)
    study.record(Decision(verb="scale", item=1, subject=subject, who="anna"))
    scale = measures_of(study).scale_of(1)
    assert (scale.who, scale.subject.line, scale.subject.length) == ("anna", line, 10.0)
    assert scale.at is not None


def test_a_deleted_shape_is_gone_and_its_number_is_not_given_again(study):
    study.record(shape(1, [(0, 0), (30, 40)]))
    study.record(shape(2, [(0, 0), (10, 0), (10, 20)]))
    study.record(shape(1, [(0, 0), (30, 40)], verb="delete"))
    measures = measures_of(study)
    ((kept,)) = measures.shapes[1]
    assert (kept.subject.number, kept.area) == (2, pytest.approx(100))
    assert measures.next_number(1, study.decisions()) == 3
    study.record(undo(fold(study.decisions())))
    assert {round(drawn.length) for drawn in measures_of(study).shapes[1]} >= {50}


def test_a_shape_lies_where_it_was_moved_last_and_a_change_without_a_shape_makes_none(study):
    study.record(shape(1, [(0, 0), (30, 40)]))
    study.record(shape(2, [(0, 0), (10, 0), (10, 20)]))
    study.record(shape(1, [(0, 0), (30, 0)], verb="reshape"))
    study.record(shape(1, [(5, 5), (35, 5)], verb="move"))
    study.record(shape(7, [(0, 0), (30, 40)], verb="move"))
    first, second = measures_of(study).shapes[1]
    assert (first.subject.number, first.length, first.points.tolist()[0]) == (1, 30, [5, 5])
    assert second.subject.number == 2
    study.record(undo(fold(study.decisions()), first.made.id))
    assert measures_of(study).shapes[1][0].points.tolist() == [[0, 0], [30, 0]]
    study.record(undo(fold(study.decisions()), 1))
    assert [drawn.subject.number for drawn in measures_of(study).shapes[1]] == [2]


def test_a_measure_is_no_decision_on_a_spot_so_nothing_is_to_be_fused_again(study):
    state_before = fold(study.decisions())
    study.record(scale(0.1))
    study.record(shape(1, [(0, 0), (30, 40)]))
    study.record(count(leukocytes=200))
    state_after = fold(study.decisions())
    assert state_after.spots(1) == []
    assert state_after.fixed("clicks", 1) == state_before.fixed("clicks", 1)


@pytest.mark.parametrize(
    "bad", [{"pixel_size": 0.0}, {"pixel_size": float("nan")}, {"pixel_size": 1.0, "line": (0, 0, 1, np.inf)}]
)
def test_what_is_no_scale_is_refused(bad):
    with pytest.raises(ValueError, match="expected"):
        ScaleSubject(**bad)


def test_a_scale_that_was_altered_in_the_file_is_reported(study):
    study.record(scale(0.1))
    row = '{"pixel_size":-3,"everywhere":false,"line":null,"length":null}'
    study._connection.execute("DROP TRIGGER decisions_stay")
    study._connection.execute("UPDATE decisions SET subject = ?", (row,))
    with pytest.raises(StudyError, match="decision 1 cannot be read"):
        study.decisions()


def quantities_of(fields, *decisions, image=None):
    recorded = [
        Decision(**{**vars(decision), "id": number}) for number, decision in enumerate(decisions, start=1)
    ]
    return {
        quantity.title: quantity
        for quantity in compute_quantities(fields, read_measures(recorded, fold(recorded)), image)
    }


def test_a_figure_without_its_inputs_names_what_is_missing():
    quantities = quantities_of([sure(1, 5)])
    assert quantities["Per microlitre, by leukocytes"].rate is None
    assert "leukocytes" in quantities["Per microlitre, by leukocytes"].formula
    assert "thick" in quantities["Per microlitre, by volume"].formula
    assert "scale" in quantities_of([sure(1, 5)], count(thickness=2.0))["Per microlitre, by volume"].formula
    few = quantities_of([sure(1, 5)], count(red_cells=3))["Infected red cells, thin film"]
    assert few.rate is None


def test_disputed_parasites_are_reported_with_the_interval_of_their_distribution():
    """Ten spots that are each as probably one as none make a binomial distribution."""
    half = np.full(10, 0.5)
    rate = quantities_of([Field(1, "field 1", None, np.arange(10) < 7, half, half, half)])["Structures"].rate
    low, high = stats.binom.ppf((0.025, 0.975), 10, 0.5)
    assert (rate.value, rate.low, rate.high) == (pytest.approx(5.0), low, high)


def test_the_formula_stands_beside_the_figure_with_its_numbers():
    quantities = quantities_of([sure(1, 60), sure(2, 60)], count(leukocytes=200))
    density = quantities["Per microlitre, by leukocytes"]
    assert density.rate.value == pytest.approx(4_800)
    assert density.formula == "120 × 8,000 /µl / 200 leukocytes"
    assert density.in_words() == "4,800 /µl"
    assert quantities["Per field"].formula == "120 / 2 fields"
    assert quantities["Per 200 leukocytes"].rate.value == pytest.approx(120)
    more = quantities_of([sure(1, 60), sure(2, 60)], count(leukocytes=500, leukocytes_per_microlitre=6_000))
    assert more["Per microlitre, by leukocytes"].rate.value == pytest.approx(1_440)
    assert more["Per 500 leukocytes"].rate.value == pytest.approx(120)


def test_counts_name_the_structures_of_the_study(study, tmp_path):
    study.record(count(noun="nuclei"))
    assert "Nuclei" in quantities_of([sure(1, 5)], count(noun="nuclei"))
    assert study.decisions()[-1].subject.in_words("count") == "count nuclei alone, all images"
    assert "Structures" in quantities_of([sure(1, 5)], count(image=1, everywhere=False, noun="nuclei"))
    assert "Parasites" in quantities_of([sure(1, 5)], count(leukocytes=200))
    with pytest.raises(ValueError, match="expected 40"):
        CountingSubject(noun="n" * 41)


def test_a_thin_film_shows_the_share_of_red_cells_and_the_parasites_in_a_microlitre():
    result = quantities_of([sure(1, 28), sure(2, 22)], count(red_cells=5_000))
    assert result["Infected red cells, thin film"].in_words() == "1.00 %"
    density = result["Per microlitre, by red cells"]
    assert density.rate.value == pytest.approx(50_000)
    assert density.formula == "50 × 5,000,000 /µl / 5,000 red cells"
    # Jeffreys' interval of 50 of 5,000, by the beta distribution of another library.
    low, high = stats.beta.ppf([0.025, 0.975], 50.5, 4_950.5) * 5e6
    assert (density.rate.low, density.rate.high) == pytest.approx((low, high), rel=1e-3)
    clumped = quantities_of([sure(1, 45), sure(2, 5)], count(red_cells=5_000))[
        "Per microlitre, by red cells"
    ].rate
    assert clumped.high - clumped.low > 2 * (high - low)
    quantities = quantities_of([sure(1, 50)], count(red_cells=5_000, red_cells_per_microlitre=4_000_000))
    assert quantities["Per microlitre, by red cells"].rate.value == pytest.approx(40_000)
    few = quantities_of([sure(1, 5)], count(red_cells=3))["Per microlitre, by red cells"]
    assert few.rate is None
    assert "fewer than the parasites" in few.formula


def test_the_shares_of_all_classes_are_of_the_same_red_cells():
    numbers = {"red blood cell": 900, "ring": 60, "gametocyte": 30, "platelet": 10}
    owner = np.repeat(list(numbers), list(numbers.values()))
    shares = {name: (owner == name).astype(float) for name in numbers}
    result = quantities_of([replace(sure(1, len(owner)), shares=shares)])
    title = "nfected red cells, thin film"
    assert result[f"I{title}"].formula == "90 infected / 990 red cells"
    values = [result[f"{name}: i{title}"].rate.value for name in ("ring", "gametocyte")]
    assert values == pytest.approx([100 * 60 / 990, 100 * 30 / 990])


def note(fields, *decisions):
    recorded = [
        Decision(**{**vars(decision), "id": number}) for number, decision in enumerate(decisions, start=1)
    ]
    return describe_intervals(fields, read_measures(recorded, fold(recorded)))


def test_the_note_names_assumptions_and_when_to_count_more():
    assert "assumed" not in note([sure(1, 50)])
    assert "8,000 leukocytes/µl are assumed" in note([sure(1, 150)], count(leukocytes=200))
    assert "count 500 leukocytes" in note([sure(1, 50)], count(leukocytes=200))
    assert "to be counted" not in note([sure(1, 150)], count(leukocytes=200))
    assert "to be counted" not in note([sure(1, 50)], count(leukocytes=500))
    assert "5,000,000 red cells/µl are assumed" in note([sure(1, 50)], count(red_cells=5_000))
    both = count(red_cells=5_000, red_cells_per_microlitre=4e6, leukocytes=500, leukocytes_per_microlitre=6e3)
    assert "assumed" not in note([sure(1, 50)], both)


def test_what_was_counted_before_red_cells_had_a_density_is_read():
    row = b'{"everywhere":true,"leukocytes":200.0,"leukocytes_per_microlitre":null,"thickness":5.0}'
    assert msgspec.json.decode(row, type=CountingSubject).thickness == 5.0


def test_leukocytes_counted_image_by_image_show_for_those_images_alone():
    decisions = (
        count(1, everywhere=False, leukocytes=50),
        count(2, everywhere=False, leukocytes=150),
    )
    fields = [sure(1, 10), sure(2, 30), sure(3, 500)]
    assert quantities_of(fields, *decisions)["Per 200 leukocytes"].rate.value == pytest.approx(40)
    assert quantities_of(fields, *decisions, image=1)["Per 200 leukocytes"].rate.value == pytest.approx(40)
    assert quantities_of(fields, *decisions, image=3)["Per 200 leukocytes"].rate is None


def test_volume_comes_from_the_scale_and_the_thickness_of_the_film():
    area = 1_280 * 960 * 0.1**2
    posterior = np.ones(4)
    field = Field(1, "one", area, posterior > 0, posterior, posterior, posterior)
    rate = quantities_of([field], count(thickness=5.0))["Per microlitre, by volume"].rate
    assert rate.value == pytest.approx(4 / (area * 5 * 1e-9))


def test_nothing_fused_shows_nothing():
    assert compute_quantities((), Measures()) == ()


def test_counts_and_measurements_are_exported_as_tables(study_file, tmp_path, capsys):
    study = str(study_file)
    assert main(["export", study, "--what", "counts", "-o", str(tmp_path / "counts.csv")]) == 1
    assert main(["export", study, "--what", "measurements", "-o", str(tmp_path / "m.csv")]) == 1
    assert "no detections yet" in capsys.readouterr().err
    with Study.open(study_file) as opened:
        opened.record(scale(0.25, everywhere=True))
        opened.record(shape(1, [(0, 0), (30, 40)]))
        opened.record(shape(1, [(0, 0), (40, 0), (40, 20)], image=2))
        opened.record(count(leukocytes=200))
    assert main(["run", study, "oem"]) == 0
    assert main(["export", study, "--what", "counts", "-o", str(tmp_path / "counts.csv")]) == 0
    with (tmp_path / "counts.csv").open(encoding="utf-8") as file:
        rows = {(row["image"], row["quantity"]): row for row in csv.DictReader(file)}
    density = rows["", "Per microlitre, by leukocytes"]
    assert float(density["low"]) < float(density["value"]) < float(density["high"])
    assert float(density["value"]) == pytest.approx(float(rows["", "Parasites"]["value"]) * 40)
    assert {image for image, _ in rows} == {"", "one.png", "two.png"}
    assert main(["export", study, "--what", "measurements", "-o", str(tmp_path / "m.csv")]) == 0
    with (tmp_path / "m.csv").open(encoding="utf-8") as file:
        line, outline = csv.DictReader(file)
    assert (line["shape"], float(line["length_px"]), float(line["length_um"])) == ("line", 50.0, 12.5)
    assert (outline["image"], float(outline["area_px2"]), float(outline["area_um2"])) == (
        "two.png",
        400.0,
        25.0,
    )
    assert main(["export", study, "--what", "decisions", "-o", str(tmp_path / "d.csv")]) == 0
    with (tmp_path / "d.csv").open(encoding="utf-8") as file:
        assert [row["words"] for row in csv.DictReader(file)][:2] == [
            "set the scale to 0.25 µm a pixel, all images",
            "measure length 1",
        ]


def test_positions_in_micrometres_leave_with_the_detections(study_file, tmp_path):
    study, out = str(study_file), tmp_path / "out"
    out.mkdir()
    with Study.open(study_file) as opened:
        opened.record(scale(0.25))
    assert main(["run", study, "oem"]) == 0
    assert main(["export", study, "--what", "detections", "--format", "geojson", "-o", str(out)]) == 0
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.geojson")))
    assert first["image"]["micrometresPerPixel"] == 0.25
    assert len(first["features"]) >= 5
    for feature in first["features"]:
        x, y = feature["geometry"]["coordinates"]
        measured = feature["properties"]["measurements"]
        assert (measured["X µm"], measured["Y µm"]) == (pytest.approx(x / 4), pytest.approx(y / 4))
    assert "micrometresPerPixel" not in second["image"]
    assert all("X µm" not in feature["properties"]["measurements"] for feature in second["features"])
