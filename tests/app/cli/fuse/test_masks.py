"""`raterscope fuse masks` on files."""

import json
import os

import nibabel
import numpy as np
import pytest
from PIL import Image

from raterscope.app.cli import main
from tests.app.kinds.masks.made import SHAPE, SPACING, a_ball, a_volume, four_raters, write
from tests.app.tables import rows_of


def read(path):
    """Read a map back as (Z, Y, X) by another library than wrote it."""
    image = nibabel.load(path)
    return np.asarray(image.dataobj).T, image.affine


def dice(a, b):
    return 2 * np.sum(a & b) / (a.sum() + b.sum())


def test_the_consensus_is_that_of_the_careful_raters_on_the_inputs_grid(fuse, tmp_path):
    files = four_raters(tmp_path)
    out, output = fuse(*files)
    assert "4 masks by 4 annotators on 1 image" in output
    mask, affine = read(out / "consensus_mask.nii.gz")
    np.testing.assert_allclose(affine, nibabel.load(files[0]).affine)
    assert mask.shape == SHAPE
    assert dice(mask > 0, a_ball(radius=6.0) > 0) > 0.9
    probability, _ = read(out / "consensus.nii.gz")
    assert 0 <= probability.min() <= probability.max() <= 1
    assert ((probability > 0.5) == (mask > 0)).all()
    raters = {row["annotator"]: row for row in rows_of(out / "annotators.csv")}
    assert max(raters, key=lambda name: float(raters[name]["bias_mm"])) == "dora"
    assert max(raters, key=lambda name: float(raters[name]["model_sd_mm"])) == "dora"
    assert float(raters["ben"]["dice"]) > float(raters["dora"]["dice"])
    uncertainty, _ = read(out / "uncertainty.nii.gz")
    assert uncertainty.shape == SHAPE
    assert "mm" in json.loads((out / "run.json").read_text())["uncertainty"]


def test_three_products_are_written_each_under_its_own_name(fuse, tmp_path):
    out, _ = fuse(*four_raters(tmp_path))
    record = json.loads((out / "run.json").read_text())
    other_mask, truth, half = (
        read(out / f"{name}.nii.gz")[0] for name in ("another_rater", "true_outline", "uncertainty")
    )
    assert other_mask.shape == truth.shape == half.shape == SHAPE
    assert 0 <= other_mask.min() <= other_mask.max() <= 1
    (structure,) = record["images"][0]["structures"]
    assert structure["calibration"]["band_cases"] == 1
    assert any("assumption" in notice for notice in structure["calibration"]["notices"])
    assert "95 %" in record["maps"]["uncertainty.nii.gz"]["holds"]
    assert half[other_mask > 0].min() > 0


def test_a_single_known_true_outline_is_counted_and_moves_nothing(fuse, tmp_path):
    files = four_raters(tmp_path)
    out, _ = fuse(*files)
    names = ("consensus.nii.gz", "another_rater.nii.gz", "uncertainty.nii.gz")
    values_before = [read(out / name)[0] for name in names]
    out, _ = fuse(*files, "--truth", write(tmp_path / "known.nii.gz", a_ball(radius=4.5)))
    (structure,) = json.loads((out / "run.json").read_text())["images"][0]["structures"]
    assert structure["calibration"]["true_outline_gold_cases"] == 1
    assert structure["calibration"]["true_outline_offset"] == 0
    assert any("(1) do not change it" in notice for notice in structure["calibration"]["notices"])
    for name, values in zip(names, values_before, strict=True):
        np.testing.assert_array_equal(read(out / name)[0], values)


def test_a_single_rater_has_no_uncertainty(fuse, tmp_path):
    fuse(*four_raters(tmp_path))
    out, _ = fuse(write(tmp_path / "anna.nii.gz", a_ball()), "--annotator", "anna")
    assert not (out / "uncertainty.nii.gz").exists()
    assert "two raters" in json.loads((out / "run.json").read_text())["uncertainty"]


def test_raters_weights_share_out_the_consensus(fuse, tmp_path):
    out, _ = fuse(*four_raters(tmp_path))
    weights = [read(out / f"weight_{name}.nii.gz")[0] for name in ("anna", "ben", "carl", "dora")]
    total = np.sum(weights, axis=0)
    inside = read(out / "consensus_mask.nii.gz")[0] > 0
    np.testing.assert_allclose(total[inside], 1.0, atol=0.02)


def test_tau_is_low_where_a_rater_is_far_from_the_others(fuse, tmp_path):
    out, _ = fuse(*four_raters(tmp_path))
    masks = {name: read(tmp_path / f"{name}.nii.gz")[0] > 0 for name in ("anna", "ben", "carl", "dora")}
    differ = np.any(list(masks.values()), axis=0) & ~np.all(list(masks.values()), axis=0)
    raters = {row["annotator"]: row for row in rows_of(out / "annotators.csv")}
    for name, row in raters.items():
        tau = read(out / f"tau_{name}.nii.gz")[0]
        assert float(row["tau"]) == pytest.approx(np.median(tau[differ]), rel=1e-2)
        assert float(row["model_sd_mm"]) == pytest.approx(np.sqrt(8) * float(row["model_sigma_mm"]))
    assert min(raters, key=lambda name: float(raters[name]["tau"])) == "dora"
    record = json.loads((out / "run.json").read_text())
    assert "Sigma" in record["maps"]["tau_dora.nii.gz"]["holds"]
    out, _ = fuse(*four_raters(tmp_path), "--algorithm", "gaussian", "-o", tmp_path / "gaussian")
    assert all(row["tau"] == "" != row["model_sigma_mm"] for row in rows_of(out / "annotators.csv"))


def test_methods_are_compared_with_truth_and_raters(fuse, tmp_path):
    files = four_raters(tmp_path)
    truth = write(tmp_path / "known.nii.gz", a_ball(radius=6.0))
    out, output = fuse(*files, "--truth", truth, "--compare", "laplace", "staple", "majority")
    rows = rows_of(out / "methods.csv")
    methods = {row["name"]: row for row in rows if row["kind"] == "method" and row["reference"] == "truth"}
    assert list(methods) == ["laplace", "staple", "majority"]
    mask, _ = read(out / "consensus_mask.nii.gz")
    assert float(methods["laplace"]["dice"]) == pytest.approx(dice(mask > 0, a_ball(radius=6.0) > 0))
    (judged,) = (row for row in rows_of(out / "evaluation.csv") if row["annotator"] == "consensus")
    assert judged["hausdorff95"] == methods["laplace"]["hausdorff95"]
    structure = json.loads((out / "run.json").read_text())["images"][0]["structures"][0]
    assert float(methods["laplace"]["lower_bound"]) == pytest.approx(structure["objective"])
    assert len(structure["objective_by_iteration"]) == structure["iterations"]
    assert structure["objective_by_iteration"][-1] == structure["objective"]
    assert methods["staple"]["lower_bound"] == "" != methods["staple"]["seconds"]
    raters = [row for row in rows if row["kind"] == "rater" and row["name"] == "anna"]
    assert {row["reference"] for row in raters} == {"truth", "rater ben", "rater carl", "rater dora"}
    picture = (out / "methods.svg").read_text()
    assert "Dice, against the truth" in picture
    assert "lower bound" in picture
    assert "staple: median Dice" in output


def test_methods_without_truth_are_compared_among_the_raters(fuse, tmp_path):
    out, output = fuse(*four_raters(tmp_path), "--compare", "gaussian", "majority")
    assert "among the raters" in output
    assert {row["reference"][:5] for row in rows_of(out / "methods.csv")} == {"rater"}
    assert "pairs of raters" in (out / "methods.svg").read_text()


def test_the_same_input_gives_the_same_files(fuse, tmp_path):
    files = four_raters(tmp_path)
    out, _ = fuse(*files)
    first = [read(out / name)[0] for name in ("consensus.nii.gz", "uncertainty.nii.gz")]
    record = json.loads((out / "run.json").read_text())
    fuse(*files)
    for name, values in zip(("consensus.nii.gz", "uncertainty.nii.gz"), first, strict=True):
        np.testing.assert_array_equal(read(out / name)[0], values)
    second = json.loads((out / "run.json").read_text())
    assert second["digest"] == record["digest"]
    assert second["settings"]["algorithm"] == "laplace"
    assert {source["file"] for source in second["inputs"]} == {path.name for path in files}


def test_majority_of_three_is_what_two_of_them_marked(fuse, tmp_path):
    balls = [a_ball((6, 12, 10 + 2 * n)) for n in range(3)]
    files = [write(tmp_path / f"r{n}.nii.gz", ball) for n, ball in enumerate(balls)]
    out, _ = fuse(*files, "--algorithm", "majority")
    np.testing.assert_array_equal(read(out / "consensus_mask.nii.gz")[0], np.sum(balls, axis=0) >= 2)
    assert not list(out.glob("weight_*"))
    rows = rows_of(out / "annotators.csv")
    assert all(row["model_bias_mm"] == row["model_sigma_mm"] == row["tau"] == "" for row in rows)
    assert float(rows[0]["bias_mm"]) == pytest.approx(float(rows[2]["bias_mm"]), abs=0.1)


def test_sensitivity_and_specificity_are_by_the_consensus_and_those_of_staple_have_their_own_columns(
    fuse, tmp_path
):
    out, _ = fuse(*four_raters(tmp_path), "--algorithm", "staple")
    raters = {row["annotator"]: row for row in rows_of(out / "annotators.csv")}
    assert float(raters["dora"]["model_specificity"]) < float(raters["anna"]["model_specificity"])
    assert float(raters["anna"]["model_sensitivity"]) < float(raters["dora"]["model_sensitivity"])
    consensus = read(out / "consensus_mask.nii.gz")[0] > 0
    dora = read(tmp_path / "dora.nii.gz")[0] > 0
    assert float(raters["dora"]["sensitivity"]) == pytest.approx(dora[consensus].mean(), abs=1e-6)


def test_pairs_of_raters_agree_as_their_voxels_do(fuse, tmp_path):
    out, _ = fuse(*four_raters(tmp_path))
    pairs = {(row["annotator"], row["other"]): float(row["dice"]) for row in rows_of(out / "agreement.csv")}
    assert len(pairs) == 6
    expected = dice(a_ball(radius=5.5) > 0, a_ball(radius=9.0) > 0)
    assert pairs["anna", "dora"] == pytest.approx(expected)


def test_a_lump_that_one_rater_adds_is_a_disputed_region(fuse, tmp_path):
    shape = (12, 40, 40)
    ball = a_ball((6, 14, 14), 7, shape)
    lump = ball | a_ball((6, 14, 26), 5, shape)
    files = [write(tmp_path / f"r{n}.nii.gz", ball) for n in range(3)]
    out, _ = fuse(*files, write(tmp_path / "r3.nii.gz", lump))
    (row,) = rows_of(out / "disputes.csv")
    assert row["beyond"] == "r3"
    assert 14 < int(row["first_column"]) <= 26 <= int(row["last_column"]) < 40


def test_evaluation_against_the_truth(fuse, tmp_path):
    truth = write(tmp_path / "known.nii.gz", a_ball(radius=6.0))
    out, _ = fuse(*four_raters(tmp_path), "--truth", truth)
    rows = {row["annotator"]: row for row in rows_of(out / "evaluation.csv")}
    assert float(rows["ben"]["dice"]) == 1.0
    assert float(rows["ben"]["hausdorff"]) == 0.0
    assert float(rows["dora"]["volume_difference_ml"]) > 0
    difference = (a_ball(radius=9.0).sum() - a_ball(radius=6.0).sum()) * np.prod(SPACING) / 1000
    assert float(rows["dora"]["volume_difference_ml"]) == pytest.approx(difference)
    assert 0.9 < float(rows["consensus"]["dice"]) <= 1.0


def test_sizes_on_pictures_are_pixels(fuse, tmp_path):
    files = {}
    for name, width in {"anna": 20, "ben": 20, "cleo": 30, "truth": 24}.items():
        mask = np.zeros((40, 60), dtype=np.uint8)
        mask[10:30, 10 : 10 + width] = 255
        files[name] = tmp_path / f"cell_{name}.png"
        Image.fromarray(mask).save(files[name])
    raters = [files[name] for name in ("anna", "ben", "cleo")]
    out, _ = fuse(*raters, "--truth", files["truth"], "--algorithm", "majority")
    regions = [(float(row["voxels"]), float(row["doubt_voxels"])) for row in rows_of(out / "disputes.csv")]
    assert 100 < sum(voxels for voxels, _ in regions) <= 200
    assert [doubt for _, doubt in regions] == pytest.approx([voxels * 2 / 3 for voxels, _ in regions])
    rows = {
        row["annotator"]: float(row["volume_difference_voxels"]) for row in rows_of(out / "evaluation.csv")
    }
    assert rows == pytest.approx({"consensus": -80, "anna": -80, "ben": -80, "cleo": 120})
    assert main(["import", str(tmp_path / "s.rscope"), *map(str, raters)]) == 0
    assert main(["run", str(tmp_path / "s.rscope"), "majority"]) == 0
    table = tmp_path / "d.csv"
    assert main(["export", str(tmp_path / "s.rscope"), "--what", "disputes", "-o", str(table)]) == 0
    assert [float(row["voxels"]) for row in rows_of(table)] == [voxels for voxels, _ in regions]


@pytest.mark.parametrize("together", [[], ["--together"]])
def test_three_structures(fuse, tmp_path, together):
    shape = (10, 30, 30)
    centres = {1: (5, 8, 8), 2: (5, 8, 22), 3: (5, 22, 15)}
    for n, name in enumerate(("anna", "ben", "carl")):
        labels = sum(s * a_ball(at, 5 + 0.3 * n, shape) for s, at in centres.items())
        write(tmp_path / f"{name}.nii.gz", labels.astype(np.uint8))
    out, _ = fuse(*(tmp_path / f"{name}.nii.gz" for name in ("anna", "ben", "carl")), *together)
    for s, at in centres.items():
        mask = read(out / f"consensus_mask_label-{s}.nii.gz")[0] > 0
        assert dice(mask, a_ball(at, 5.3, shape) > 0) > 0.9
    rows = rows_of(out / "annotators.csv")
    assert [row["structure"] for row in rows] == [f"label {s}" for s in (1, 2, 3) for _ in range(3)]


def test_structures_that_overlap_are_not_fused_together(refusal, tmp_path):
    for rater in ("anna", "ben"):
        for structure in ("liver", "tumour"):
            write(tmp_path / f"{rater}_{structure}.nii.gz", a_ball())
    files = sorted(tmp_path.glob("*.nii.gz"))
    volume = a_volume(tmp_path / "ct.nii")
    assert "marked a voxel as two structures" in refusal(*files, "--image", volume, "--together")


def test_each_of_several_images_has_a_folder(fuse, tmp_path):
    files = [path for case in ("case1_", "case2_") for path in four_raters(tmp_path, case)]
    out, output = fuse(*files)
    assert "on 2 images" in output
    for case in ("case1", "case2"):
        assert {row["annotator"] for row in rows_of(out / case / "annotators.csv")} >= {"anna", "dora"}
        assert (out / case / "consensus.nii.gz").exists()


def test_outlines_of_a_picture(fuse, tmp_path):
    y, x = np.ogrid[:60, :80]
    for n in range(3):
        disc = 255 * ((y - 30) ** 2 + (x - 40) ** 2 < (14 + n) ** 2)
        Image.fromarray(disc.astype(np.uint8)).save(tmp_path / f"cell_r{n}.png")
    out, output = fuse(*sorted(tmp_path.glob("*.png")))
    mask, _ = read(out / "consensus_mask.nii.gz")
    assert mask.shape == (1, 60, 80)
    assert abs(int(mask.sum()) - np.pi * 15**2) < 60
    assert " ml" not in output
    assert "pixels" in output


class TestOddRaters:
    def test_identical_raters_are_their_own_consensus(self, fuse, tmp_path):
        out, _ = fuse(*(write(tmp_path / f"r{n}.nii.gz", a_ball()) for n in range(3)))
        np.testing.assert_array_equal(read(out / "consensus_mask.nii.gz")[0], a_ball())
        assert rows_of(out / "disputes.csv") == []

    def test_identical_masks_are_named_as_copies(self, fuse, tmp_path):
        balls = {"anna": 6.0, "ben": 7.0, "carl": 6.0, "dora": 8.0}
        files = [write(tmp_path / f"{name}.nii.gz", a_ball(radius=radius)) for name, radius in balls.items()]
        out, output = fuse(*files)
        warning = "Masks of these raters are identical: anna, carl. They are copies"
        assert output.count(warning) == 1
        assert warning in (out / "run.json").read_text()
        _, output = fuse(*files[1:])
        assert "raters are identical" not in output

    def test_a_voxel_without_a_value_is_background_and_named(self, fuse, tmp_path):
        values = a_ball(radius=7.0).astype(np.float32)
        values[3, 3, 3] = np.nan
        _, output = fuse(*four_raters(tmp_path), write(tmp_path / "emil.nii.gz", values))
        assert "emil.nii.gz: 1 voxel without a value (NaN) is read as 0." in output

    def test_a_single_rater_is_returned_as_is(self, fuse, tmp_path):
        mask = write(tmp_path / "mask.nii.gz", a_ball())
        out, output = fuse(mask, "--annotator", "anna")
        np.testing.assert_array_equal(read(out / "consensus_mask.nii.gz")[0], a_ball())
        assert "only one rater" in output

    def test_all_empty(self, fuse, tmp_path):
        empty = np.zeros(SHAPE, np.uint8)
        out, output = fuse(*(write(tmp_path / f"r{n}.nii.gz", empty) for n in range(3)))
        assert not read(out / "consensus_mask.nii.gz")[0].any()
        assert "No rater marked anything" in output

    @pytest.mark.parametrize("algorithm", ["laplace", "gaussian", "staple", "majority", "mixture"])
    def test_raters_who_drew_different_places_are_named_as_such(self, fuse, tmp_path, algorithm):
        places = {"anna": (6, 6, 6), "ben": (6, 18, 18), "carl": (0, 0, 0)}
        masks = {name: a_ball(at, radius=3.0) for name, at in places.items()}
        masks["carl"][:] = 0
        files = [write(tmp_path / f"{name}.nii.gz", mask) for name, mask in masks.items()]
        warning = "No two raters marked a common voxel of structure, so the consensus is no agreement"
        for some in (files, files[:2]):
            out, output = fuse(*some, "--algorithm", algorithm)
            assert output.count(warning) == 1
            (image,) = json.loads((out / "run.json").read_text())["images"]
            assert warning in image["structures"][0]["notices"][0]
        _, output = fuse(files[0], files[2], "--algorithm", algorithm)
        assert warning not in output


class TestRefusals:
    def test_an_algorithm_that_is_none(self, refusal, tmp_path):
        assert refusal(*four_raters(tmp_path), "--algorithm", "oem").startswith(
            "oem is no algorithm for masks"
        )

    def test_text_that_is_called_a_volume(self, refusal, tmp_path):
        (tmp_path / "text.nii").write_text("hello " * 99)
        assert refusal(tmp_path / "text.nii").startswith("text.nii: ")

    def test_masks_on_unlike_grids(self, refusal, tmp_path):
        short = write(tmp_path / "emil.nii.gz", a_ball(shape=(9, 24, 24)))
        output = refusal(*four_raters(tmp_path), short)
        assert "9 x 24 x 24" in output
        assert "12 x 24 x 24" in output
        assert "--resample" in output

    def test_output_that_cannot_be_a_folder(self, refusal, tmp_path):
        (tmp_path / "out").touch()
        assert refusal(*four_raters(tmp_path)).startswith("out: is a file; expected a folder")


def test_help_lists_the_algorithms_of_masks_alone(capsys):
    assert main(["fuse", "masks", "--help"]) == 0
    output = capsys.readouterr().out
    assert "continuous-staple: continuous STAPLE" in output
    assert "oem" not in output


def test_names_that_come_to_the_same_file_name_keep_their_maps(fuse, tmp_path):
    for at, name in enumerate(("A:b", "a;b", "a b", "漢" * 70)):
        write(tmp_path / f"{name}.nii.gz", a_ball(radius=5 + at))
    out, _ = fuse(*sorted(tmp_path.glob("*.nii.gz")), "--naming", "{annotator}")
    maps = json.loads((out / "run.json").read_text(encoding="utf-8"))["maps"]
    assert set(maps) == {path.name for path in out.glob("*.nii.gz")}
    assert len({name.casefold() for name in maps}) == len(maps)
    raters = [entry["annotator"] for entry in maps.values() if "annotator" in entry]
    assert sorted(raters) == sorted(2 * ("A:b", "a;b", "a b", "漢" * 70))  # weight and tau


def test_structures_that_come_to_the_same_file_name_keep_their_maps(fuse, tmp_path):
    for structure, radius in (("x", 7.0), ("mask-x", 4.0), ("X", 5.0)):
        for rater in ("anna", "ben", "carl"):
            write(tmp_path / f"{rater}_{structure}.nii.gz", a_ball(radius=radius))
    out, _ = fuse(
        *tmp_path.glob("*.nii.gz"), "--naming", "{annotator}_{structure}", "--algorithm", "majority"
    )
    maps = json.loads((out / "run.json").read_text(encoding="utf-8"))["maps"]
    files_of = {}
    for name, entry in maps.items():
        if name.startswith("consensus_mask"):
            files_of[entry["structure"]] = np.count_nonzero(read(out / name)[0])
    assert files_of == {name: a_ball(radius=size).sum() for name, size in (("x", 7), ("mask-x", 4), ("X", 5))}


def test_the_truth_of_another_folder_comes_to_the_only_case(fuse, tmp_path):
    for folder in ("raters", "elsewhere"):
        (tmp_path / folder).mkdir()
    truth = write(tmp_path / "elsewhere" / "truth.nii.gz", a_ball(radius=6))
    out, output = fuse(*four_raters(tmp_path / "raters"), "--truth", truth)
    assert "its truth was skipped" not in output
    assert rows_of(out / "evaluation.csv")[0]["annotator"] == "consensus"


def test_who_marked_label_1_alone_is_fused_with_the_others_label_1(fuse, tmp_path):
    first, second = a_ball((6, 8, 8), 4), 2 * a_ball((6, 18, 18), 3)
    for name, labels in (("anna", first + second), ("ben", first + second), ("carl", first)):
        write(tmp_path / f"{name}.nii.gz", labels)
    out, _ = fuse(*tmp_path.glob("*.nii.gz"), "--algorithm", "majority")
    marked = {(row["structure"], row["annotator"]) for row in rows_of(out / "annotators.csv")}
    assert marked == {("label 1", name) for name in ("anna", "ben", "carl")} | {
        ("label 2", name) for name in ("anna", "ben")
    }


def test_label_2_is_not_taken_for_the_mask_of_others(fuse, tmp_path):
    for name, value in (("anna", 1), ("ben", 1), ("carl", 2)):
        write(tmp_path / f"{name}.nii.gz", a_ball() * np.uint8(value))
    out, _ = fuse(*tmp_path.glob("*.nii.gz"))
    structures = {row["annotator"]: row["structure"] for row in rows_of(out / "annotators.csv")}
    assert structures == {"anna": "label 1", "ben": "label 1", "carl": "label 2"}


def test_an_interrupted_fusion_leaves_no_record_of_an_older_one(fuse, tmp_path, monkeypatch):
    files = four_raters(tmp_path)
    out, _ = fuse(*files)
    monkeypatch.setattr("raterscope.app.kinds.masks.case_output.write_table", interrupted)
    assert main(["fuse", "masks", *map(str, files), "-o", str(out), "--algorithm", "majority"]) == 130
    assert (out / "consensus.nii.gz").exists()
    assert not (out / "run.json").exists()


def interrupted(*_):
    raise KeyboardInterrupt


def test_what_is_stated_of_one_structure_alone_names_it(fuse, tmp_path):
    first, second = a_ball((6, 8, 8), 4), 2 * a_ball((6, 18, 18), 3)
    for name, labels in (("anna", first + second), ("ben", first + second), ("carl", first)):
        write(tmp_path / f"{name}.nii.gz", labels)
    _, output = fuse(*tmp_path.glob("*.nii.gz"))
    assert "note: label 2: With two raters" in output


class TestRefusalsOfFiles:
    def test_a_mask_that_resampling_takes_off_the_image(self, refusal, tmp_path):
        files = four_raters(tmp_path)
        files.append(write(tmp_path / "eve.nii.gz", a_ball(), shift=500.0))
        message = "eve.nii.gz: marks nothing within the image it is resampled to."
        assert refusal(*files, "--resample") == message

    def test_a_pipe_is_not_waited_for(self, refusal, tmp_path):
        files = four_raters(tmp_path)
        os.mkfifo(tmp_path / "eve.nii.gz")
        assert refusal(*files, tmp_path / "eve.nii.gz").startswith("eve.nii.gz: is a pipe")

    @pytest.mark.parametrize("option", ["--truth", "--image"])
    def test_a_file_that_is_not_there(self, refusal, tmp_path, option):
        assert refusal(*four_raters(tmp_path), option, tmp_path / "ct") == "ct: does not exist."


def test_a_method_that_is_invalid_is_refused_before_anything_is_fused(tmp_path, capsys):
    files = [str(path) for path in four_raters(tmp_path)]
    assert (
        main(["fuse", "masks", *files, "--compare", "laplace", "lapalce", "-o", str(tmp_path / "out")]) == 1
    )
    assert "'lapalce' is no algorithm for masks" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_rater_is_fused_and_not_compared(fuse, tmp_path):
    out, _ = fuse(write(tmp_path / "anna.nii.gz", a_ball()), "--annotator", "anna", "--compare", "majority")
    assert not (out / "methods.csv").exists()
    assert (out / "consensus.nii.gz").exists()


@pytest.mark.parametrize("ending", [".nii.gz", ".nrrd", ".png", ".dcm"])
def test_a_file_of_no_bytes_is_called_empty(tmp_path, capsys, ending):
    files = [str(path) for path in four_raters(tmp_path)[:2]]
    empty = tmp_path / f"nothing{ending}"
    empty.touch()
    options = ["--naming", "{annotator}", "-o", str(tmp_path / "out")]
    assert main(["fuse", "masks", *files, str(empty), *options]) == 1
    assert f"nothing{ending}: is empty; expected an image or a mask." in capsys.readouterr().err


def test_slices_that_a_rater_skipped_are_named(fuse, tmp_path):
    forgotten = a_ball().copy()
    forgotten[5:7] = 0
    balls = {"anna": a_ball(), "ben": a_ball((6, 12, 13)), "carl": forgotten}
    files = [write(tmp_path / f"{name}.nii.gz", ball) for name, ball in balls.items()]
    out, _ = fuse(*files, "--algorithm", "majority")
    (structure,) = json.loads((out / "run.json").read_text())["images"][0]["structures"]
    (notice,) = structure["notices"]
    assert notice.startswith("carl marked nothing on slices 6 and 7, between")
