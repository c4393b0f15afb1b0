"""`run` and `export` of masks: what leaves a study, and in whose words."""

import contextlib
import io
import json
import shutil

import highdicom
import nibabel
import numpy as np
import pydicom
import pytest
from PIL import Image

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.algorithms.progress import silent
from raterscope.app.cli import main
from raterscope.app.exports import FORMATS
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.export import write_array
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.kinds.masks.case_output import on_whole_image
from raterscope.app.kinds.registry import exports
from raterscope.app.review import Decision, RegionSubject
from raterscope.app.study import Study
from raterscope.app.workspaces.masks.scene import read_scene
from raterscope.app.workspaces.masks.view import rater_rows
from tests.app.kinds.masks.dicom_cases import a_patient, box, segmented
from tests.app.kinds.masks.made import SHAPE, a_ball, a_volume, four_raters, write
from tests.app.tables import rows_of


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return captured.out

    return call


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "s.rscope"
    folder = path.with_name("in")
    folder.mkdir()
    for arguments in (
        ("import", path, a_volume(folder / "chest.nii.gz"), *four_raters(folder)),
        ("run", path, "laplace"),
    ):
        assert main([str(argument) for argument in arguments]) == 0
    return path


@pytest.fixture
def study(tmp_path, original):
    """A copy with its files."""
    return shutil.copytree(original.parent, tmp_path, dirs_exist_ok=True) / original.name


def read(path):
    image = nibabel.load(path)
    return np.asarray(image.dataobj).T


def settle(path, origin, value):
    """Let the expert settle a box."""
    with Study.open(path) as study:
        (entry,) = study.images()
        subject = RegionSubject(structure="structure", origin=origin, shape=value.shape)
        settled = Settled(origin, value.astype(np.int8))
        study.record(Decision(verb="paint", item=entry.id, subject=subject, settled=settled))


def test_a_run_is_kept_with_its_settings(study):
    with Study.open(study) as opened:
        (entry,) = opened.runs.all()
        assert (entry.kind, entry.algorithm) == ("masks", "laplace")
        (image,) = opened.images()
        assert opened.shown.result(image.id, "masks") is not None


@pytest.mark.parametrize(("kind", "name"), [("annotators", "a.nii.gz"), ("consensus", "a.csv")])
def test_a_name_of_another_format_is_refused(study, tmp_path, kind, name, capsys):
    assert main(["export", str(study), "--what", kind, "-o", str(tmp_path / name)]) == 1
    assert "expected a name that ends in" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_what_was_settled_has_the_last_word(study, tmp_path, run):
    out = tmp_path / "c.nii.gz"
    run("export", study, "--what", "consensus", "-o", out)
    values_before = read(out)
    value = np.full((2, 3, 4), OPEN)
    value[0], value[1, 0] = 1, 0
    settle(study, (0, 0, 0), value)
    settle(study, (6, 12, 12), np.zeros((1, 1, 1)))
    run("export", study, "--what", "consensus", "-o", out)
    values_after = read(out)
    expected = values_before.copy()
    expected[0, :3, :4] = 1
    expected[1, 0, :4] = 0
    expected[6, 12, 12] = 0
    assert values_before[6, 12, 12] == 1
    np.testing.assert_array_equal(values_after, expected)
    run("export", study, "--what", "probability", "-o", out)
    probability = read(out)
    assert (probability[0, :3, :4] == 1).all()
    assert probability[6, 12, 12] == 0


@pytest.mark.parametrize("name", ["c.nii.gz", "c.nii", "c.seg.nrrd"])
def test_the_name_shows_the_format_and_what_is_written_reads_back(study, tmp_path, run, name):
    out = tmp_path / name
    assert run("export", study, "--what", "consensus", "-o", out).strip() == str(out)
    (mask,) = read_masks(out).masks
    values = mask.whole()
    assert values.shape == SHAPE
    ball = a_ball() > 0
    assert 2 * (values & ball).sum() / (values.sum() + ball.sum()) > 0.9


def test_each_file_of_several_exports_to_one_folder_is_in_one_record(study, tmp_path, run):
    def recorded():
        files = {}
        for path in tmp_path.glob("*.run.json"):
            record = json.loads(path.read_text(encoding="utf-8"))
            assert record["files"]
            files |= dict.fromkeys(record["files"], (path.name, record["what"]))
        return files

    for name in ("c.nii.gz", "c.seg.nrrd", "c.nii.gz"):
        run("export", study, "--what", "consensus", "-o", tmp_path / name)
    expected = {"c.nii.gz": ("c.run.json", "consensus"), "c.seg.nrrd": ("c-2.run.json", "consensus")}
    assert recorded() == expected
    run("export", study, "--what", "probability", "-o", tmp_path / "c.nii.gz")
    assert recorded() == expected | {"c.nii.gz": ("c.run.json", "probability")}


def test_a_map_of_each_raters_weight(study, tmp_path, run):
    files = run("export", study, "--what", "weights", "-o", tmp_path / "w.nii.gz").split()
    assert len(files) == 4
    total = sum(read(file) for file in files)
    assert total[6, 12, 12] == pytest.approx(1, abs=0.02)


def test_a_map_of_each_raters_tau_and_none_of_a_vote(study, tmp_path, run, refusal):
    files = run("export", study, "--what", "tau", "-o", tmp_path / "t.nii.gz").split()
    dora = next(file for file in files if "dora" in file)
    assert len(files) == 4
    assert read(dora)[read(dora) > 0].min() < 0.2 < read(dora).max()
    run("run", study, "majority")
    assert "no tau" in refusal("export", study, "--what", "tau", "-o", tmp_path / "v.nii.gz")


def test_several_images_go_into_a_folder(tmp_path, run):
    files = [path for case in ("case1_", "case2_") for path in four_raters(tmp_path, case)]
    study, out = tmp_path / "s.rscope", tmp_path / "out"
    run("import", study, *files)
    run("run", study, "majority")
    run("export", study, "--what", "consensus", "-o", out)
    assert {path.name for path in out.glob("*.gz")} == {f"case{n}_consensus.nii.gz" for n in (1, 2)}
    run("export", study, "--what", "consensus", "--item", "case2", "-o", tmp_path / "one.nii.gz")
    np.testing.assert_array_equal(read(tmp_path / "one.nii.gz"), read(out / "case2_consensus.nii.gz"))


def test_empty_masks_are_exported_without_agreement(tmp_path, run):
    folder, study, out = tmp_path / "in", tmp_path / "s.rscope", tmp_path / "out.nii.gz"
    folder.mkdir()
    files = [write(folder / f"rater{number}.nii.gz", np.zeros(SHAPE, np.uint8)) for number in range(3)]
    run("import", study, *files)
    run("run", study, "majority")
    run("export", study, "--what", "consensus", "-o", out)
    assert not read(out).any()


def test_a_refused_export_leaves_no_folder_behind(tmp_path, run, refusal):
    files = [path for case in ("case1_", "case2_") for path in four_raters(tmp_path, case)]
    study, out = tmp_path / "s.rscope", tmp_path / "out"
    run("import", study, *files)
    run("run", study, "majority")
    ask = ("export", study, "--what", "consensus", "--format", "dicom-seg", "-o", out)
    assert "without the DICOM series" in refusal(*ask)
    assert not out.exists()
    out.mkdir()
    refusal(*ask)
    assert out.is_dir()


def test_tables_name_image_and_structure(study, tmp_path, run):
    for table in ("annotators", "agreement", "disputes", "decisions"):
        run("export", study, "--what", table, "-o", tmp_path / f"{table}.csv")
    rows = rows_of(tmp_path / "annotators.csv")
    assert [(row["image"], row["annotator"]) for row in rows] == [
        ("chest.nii.gz", name) for name in ("anna", "ben", "carl", "dora")
    ]
    assert len(rows_of(tmp_path / "agreement.csv")) == 6


def test_the_bias_of_a_table_is_that_of_the_window(study, tmp_path, run):
    run("export", study, "--what", "annotators", "-o", tmp_path / "a.csv")
    with Study.open(study) as opened:
        (image,) = opened.images()
        scene = read_scene(image.id, None, opened, silent)
    biases = {row.name: row.bias_mm for row in rater_rows(scene, "structure", {}, {})}
    rows = rows_of(tmp_path / "a.csv")
    assert {row["annotator"]: float(row["bias_mm"]) for row in rows} == pytest.approx(biases, abs=1e-5)
    assert biases["dora"] > 1.0


def test_refusals(study, tmp_path, refusal):
    def ask(kind, *more, out="x.nii.gz"):
        return refusal("export", study, "--what", kind, "-o", tmp_path / out, *more)

    assert "without the DICOM series" in ask("consensus", out="x.dcm")
    assert "expected one of nifti" in ask("weights", "--format", "rtstruct")
    assert "is a study's name" in ask("consensus", out="s.rscope")
    assert "no alternatives" in ask("alternatives")
    assert "contains no image" in ask("consensus", "--item", "belly")
    assert "--deidentify" in ask("decisions", "--deidentify", out="a.csv")
    assert "needs --deidentify" in ask("consensus", "--with-images", out="a")
    assert "is a table" in ask("annotators", "--deidentify", "--with-images", out="a.csv")
    assert refusal("run", study, "oem").startswith("s.rscope: contains no clicks")
    assert "laplace" in refusal("run", study, "guess")


def test_nothing_leaves_that_was_not_fused(tmp_path, run, refusal):
    study = tmp_path / "s.rscope"
    run("import", study, write(tmp_path / "m.nii.gz", a_ball()), "--annotator", "a")
    output = refusal("export", study, "--what", "consensus", "-o", tmp_path / "c.nii.gz")
    assert "no run of masks yet" in output


def test_every_format_is_used_by_an_export():
    assert {name for export in exports() for name in export.formats} == set(FORMATS)


@pytest.fixture(scope="module")
def fused(tmp_path_factory, real_data):
    folder = tmp_path_factory.mktemp("mr")
    series = real_data / "volumes" / "mr_t1"
    (volume,) = find_volumes(series)
    z, y, x = np.indices(volume.grid.shape)
    files = []
    for n in range(3):
        ball = (z - 24) ** 2 + (y - 190 - n) ** 2 + (x - 130) ** 2 < (15 + n) ** 2
        files.append(folder / f"rater{n}.nii.gz")
        write_array(files[-1], ball.astype(np.uint8), volume.grid)
    study = folder / "mr.rscope"
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main(["import", str(study), str(series), *map(str, files)]) == 0
        assert main(["run", str(study), "majority"]) == 0
    assert "1 volume." in output.getvalue()
    return study, volume


class TestRealSeries:
    """A defaced MR series, of which masks are drawn here."""

    @pytest.mark.parametrize("format_name", ["nifti", "seg.nrrd", "dicom-seg", "rtstruct"])
    @pytest.mark.parametrize("deidentify", [[], ["--deidentify"]])
    def test_every_format_comes_back_voxel_by_voxel(self, fused, tmp_path, run, format_name, deidentify):
        study, volume = fused
        with Study.open(study) as opened:
            (entry,) = opened.images()
            fusion = opened.shown.result(entry.id, "masks")[1].fusions[0]
        out = tmp_path / "out"
        options = ["--what", "consensus", "--format", format_name]
        output = run("export", study, *options, *deidentify, "-o", out).strip()
        (mask,) = read_masks(output, [volume]).masks
        assert mask.grid.same_as(volume.grid)
        np.testing.assert_array_equal(mask.whole(), on_whole_image(fusion, fusion.mask[0]))

    def test_nothing_of_the_patient_stays_where_it_is_not_wanted(self, fused, tmp_path, run):
        study, volume = fused
        head = pydicom.dcmread(volume.files[0], stop_before_pixels=True)
        out = tmp_path / "seg.dcm"
        run("export", study, "--what", "consensus", "--deidentify", "-o", out)
        dataset = pydicom.dcmread(out)
        for keyword in ("StudyDate", "InstitutionName", "PatientBirthDate", "PatientSex"):
            assert not str(dataset.get(keyword) or "")
        assert dataset.PatientID == dataset.PatientName != head.PatientID
        assert dataset.StudyInstanceUID != head.StudyInstanceUID


def test_a_structured_report_states_the_mean_of_the_agreement_table(tmp_path, run):
    """A rater who drew nothing has a Dice of 0 with the others in both, and no distance."""
    volume, study = a_patient(tmp_path / "ct"), tmp_path / "s.rscope"
    boxes = {"anna": box(1, 5, 4, 14, 5, 15), "ben": box(1, 5, 4, 15, 5, 17), "cleo": box(0, 0, 0, 0, 0, 0)}
    files = [
        segmented(tmp_path / f"{name}.nii.gz", volume, [Structure("pump", mask)], "nifti")
        for name, mask in boxes.items()
    ]
    run("import", study, volume.path, *files)
    run("run", study, "majority")
    run("export", study, "--what", "agreement", "-o", tmp_path / "a.csv")
    run("export", study, "--what", "consensus", "--format", "dicom-sr", "-o", tmp_path / "r_sr.dcm")
    dice = [float(row["dice"]) for row in rows_of(tmp_path / "a.csv")]
    report = highdicom.sr.srread(tmp_path / "r_sr.dcm")
    (group,) = report.content.get_volumetric_roi_measurement_groups()
    figures = {measure.name.meaning: float(measure.value) for measure in group.get_measurements()}
    assert sorted(dice) == pytest.approx([0, 0, 2 * 400 / (400 + 528)])
    assert figures.pop("Mean Dice coefficient of pairs of raters") == pytest.approx(np.mean(dice))
    assert figures == {"Volume": pytest.approx(400 * 2.5 * 0.8 * 0.8), "Number of raters": 3}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A study with masks of a volume and of a picture without a pixel size."""
    folder = tmp_path_factory.mktemp("mixed")
    drawn = [a_volume(folder / "chest.nii.gz"), *four_raters(folder, "chest_")]
    yy, xx = np.indices((60, 70))
    drawn.append(folder / "photo.png")
    Image.fromarray((yy + xx).astype(np.uint8)).save(drawn[-1])
    for name, radius in {"anna": 14, "ben": 15, "carl": 15, "dora": 22}.items():
        drawn.append(folder / f"photo_{name}.png")
        disc = (yy - 30) ** 2 + (xx - 35) ** 2 < radius**2
        Image.fromarray(disc.astype(np.uint8) * 255).save(drawn[-1])
    path = folder / "s.rscope"
    for arguments in (
        ("import", path, *drawn, "--naming", "{item}_{annotator}", "--structure", "wound"),
        ("run", path, "laplace"),
    ):
        assert main([str(argument) for argument in arguments]) == 0
    return path


@pytest.mark.parametrize(
    ("table", "columns"),
    [("annotators", ("bias_mm", "bias_px")), ("disputes", ("doubt_ml", "doubt_voxels")),
     ("disputes", ("ml", "voxels"))],
)  # fmt: skip
def test_images_with_and_without_a_size_have_columns_of_their_own(mixed, tmp_path, run, table, columns):
    run("export", mixed, "--what", table, "-o", tmp_path / "t.csv")
    rows = rows_of(tmp_path / "t.csv")
    filled = {(row["image"], bool(row[columns[0]]), bool(row[columns[1]])) for row in rows}
    assert filled == {("chest.nii.gz", True, False), ("photo.png", False, True)}
    with Study.open(mixed) as opened:
        for image in opened.images():
            _, result = opened.shown.result(image.id, "masks")
            volumes = [dispute.volume_ml for dispute in result.reports[0].disputes]
            own = [row for row in rows if row["image"] == image.name]
            if columns[0] == "ml":
                unit, per_ml = ("ml", 1) if image.lattice.calibrated else ("voxels", 1000)
                assert [float(row[unit]) for row in own] == pytest.approx([ml * per_ml for ml in volumes])


def test_means_over_cases_are_of_lengths_in_one_unit(mixed, tmp_path, run):
    run("export", mixed, "--what", "annotators", "-o", tmp_path / "cases.csv")
    run("annotators", mixed, "-o", tmp_path / "means.csv")
    biases = {row["annotator"]: row["bias_mm"] for row in rows_of(tmp_path / "cases.csv") if row["bias_mm"]}
    means = {row["annotator"]: row["masks_bias_mm"] for row in rows_of(tmp_path / "means.csv")}
    assert means == biases
    run("report", mixed, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.count("Mean bias, mm") == page.count("Mean bias, px") == 1


def test_a_record_of_a_picture_without_a_pixel_size_counts_pixels(mixed, tmp_path, run):
    masks = sorted(mixed.parent.glob("photo_*.png"))
    run("fuse", "masks", *masks, "--naming", "{item}_{annotator}", "-o", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    (structure,) = record["images"][0]["structures"]
    mask = nibabel.load(tmp_path / "out" / "consensus_mask.nii.gz").get_fdata()
    assert structure["volume_voxels"] == mask.sum()
    doubts = [float(row["doubt_voxels"]) for row in rows_of(tmp_path / "out" / "disputes.csv")]
    assert structure["disputed_voxels"] == pytest.approx(doubts, abs=1e-3)
    assert not {"volume_ml", "disputed_ml"} & set(structure)
