"""De-identified exports of a study: one set of identifiers, images that references resolve to, no names."""

import shutil
from collections import Counter
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest

from raterscope.app.cli import main
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.volumes import find_volumes, load_volume
from raterscope.app.study import Study, StudyError
from raterscope.app.study.masks import mask_entries
from raterscope.app.study.masks import read_masks as masks_in
from raterscope.app.study.new_study import export_key
from tests.app.kinds.masks.dicom_cases import SECRETS, SHAPE, a_patient, box, segmented, two_raters
from tests.app.kinds.masks.made import a_ball, a_volume, write
from tests.app.tables import rows_of


@pytest.fixture
def call(capsys):
    def run(*arguments, fails=False):
        status = main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        assert status == (1 if fails else 0), output.err
        return output

    return run


def a_study(path, call, volume, files):
    for file in files:
        call("import", path, volume.path, file, "--annotator", file.stem)
    call("run", path, "majority")
    return path


def succeed(*arguments):
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    return a_patient(tmp_path_factory.mktemp("patient") / "ct of Zorgenfri")


@pytest.fixture(scope="module")
def original(tmp_path_factory, series):
    folder = tmp_path_factory.mktemp("original")
    return a_study(folder / "s.rscope", succeed, series, two_raters(folder, series))


@pytest.fixture
def study(tmp_path, original):
    """A copy; its images stay where they are."""
    return Path(shutil.copy(original, tmp_path))


@pytest.fixture(scope="module")
def exported(original, tmp_path_factory):
    """Segmentation, structure set and images, of two calls."""
    out = tmp_path_factory.mktemp("exported")
    for kind in ("dicom-seg", "rtstruct"):
        options = ("--what", "consensus", "--format", kind, "--deidentify", "--with-images")
        succeed("export", original, *options, "-o", out)
    return out


def datasets(folder):
    return {path: pydicom.dcmread(path) for path in sorted(folder.rglob("*.dcm"))}


def uids_in(dataset, keyword):
    return [str(element.value) for element in dataset.iterall() if element.keyword == keyword]


def test_names_of_files_identify_no_patient(exported):
    names = sorted(path.relative_to(exported).as_posix() for path in exported.rglob("*.dcm"))
    images = [f"case-001_images/{number:04d}.dcm" for number in range(1, SHAPE[0] + 1)]
    assert names == ["case-001_consensus_rtstruct.dcm", "case-001_consensus_seg.dcm", *images]


def test_no_identifier_is_left_anywhere(exported):
    paths = list(exported.rglob("*.dcm"))
    assert paths
    for path in paths:
        content = path.read_bytes()
        assert [secret for secret in SECRETS if secret.encode() in content] == [], path.name


def test_two_exports_are_of_one_space_and_refer_to_the_images_beside_them(exported):
    datasets_by_path = datasets(exported)
    images = {
        str(dataset.SOPInstanceUID): dataset
        for path, dataset in datasets_by_path.items()
        if path.parent != exported
    }
    seg, contours = (
        datasets_by_path[exported / f"case-001_consensus_{kind}.dcm"] for kind in ("seg", "rtstruct")
    )
    frames = {str(dataset.FrameOfReferenceUID) for dataset in datasets_by_path.values()}
    assert len(frames) == 1
    assert next(iter(frames)).startswith("2.25.")
    assert len({str(dataset.StudyInstanceUID) for dataset in datasets_by_path.values()}) == 1
    assert (
        len({(str(dataset.PatientID), str(dataset.PatientName)) for dataset in datasets_by_path.values()})
        == 1
    )
    source = uids_in(seg.PerFrameFunctionalGroupsSequence[0], "ReferencedSOPInstanceUID")
    assert source
    assert set(uids_in(seg, "ReferencedSOPInstanceUID")) <= set(images)
    of_contours = [
        uid for roi in contours.ROIContourSequence for uid in uids_in(roi, "ReferencedSOPInstanceUID")
    ]
    assert of_contours
    assert set(of_contours) <= set(images)
    (series,) = {str(image.SeriesInstanceUID) for image in images.values()}
    assert uids_in(seg.ReferencedSeriesSequence[0], "SeriesInstanceUID") == [series]
    for path, dataset in datasets_by_path.items():
        assert dataset.file_meta.MediaStorageSOPInstanceUID == dataset.SOPInstanceUID, path


def test_pixels_and_positions_are_as_they_were(exported, series):
    (copy,) = find_volumes(exported / "case-001_images")
    assert copy.grid == series.grid
    np.testing.assert_array_equal(load_volume(copy).values, load_volume(series).values)


def test_what_was_exported_opens_again_with_the_same_masks(exported, study, tmp_path, call):
    second = tmp_path / "again.rscope"
    call("import", second, exported)
    with Study.open(study) as old, Study.open(second) as new:
        fusions = old.shown.result(1, "masks")[1].fusions
        entries = mask_entries(new)
        assert len(entries) == 4
        assert len({entry.image for entry in entries}) == 1
        (image,) = new.images()
        for entry in entries:
            fusion = next(f for f in fusions if f.structures[0] == entry.structure)
            record = masks_in(new, image.id, entry.structure)[entry.annotator]
            assert entry.voxels == int(fusion.mask[0].sum()) == np.count_nonzero(record.values)


def test_the_files_state_the_profile_and_its_options(exported):
    counts = Counter()
    for path, dataset in datasets(exported).items():
        kind = "image" if path.parent != exported else "masks"
        assert dataset.PatientIdentityRemoved == "YES"
        assert dataset.LongitudinalTemporalInformationModified == "REMOVED"
        values = tuple(item.CodeValue for item in dataset.DeidentificationMethodCodeSequence)
        assert all(
            item.CodingSchemeDesignator == "DCM" for item in dataset.DeidentificationMethodCodeSequence
        )
        counts[kind, values] += 1
    # Pixels are not cleaned, dates and devices not retained: only names of structures are kept, cleaned.
    assert counts == {("image", ("113100",)): SHAPE[0], ("masks", ("113100", "113105")): 2}


def test_identifiers_are_the_same_in_every_export_and_others_in_another_study(
    exported, original, study, series, tmp_path, call
):
    first = pydicom.dcmread(exported / "case-001_consensus_seg.dcm")
    call("export", study, "--what", "consensus", "--deidentify", "-o", tmp_path / "later.dcm")
    later = pydicom.dcmread(tmp_path / "later.dcm")
    other_study = a_study(tmp_path / "t.rscope", call, series, [original.with_name("Dr Able.dcm")])
    call("export", other_study, "--what", "consensus", "--deidentify", "-o", tmp_path / "other.dcm")
    foreign = pydicom.dcmread(tmp_path / "other.dcm")
    for keyword in ("FrameOfReferenceUID", "StudyInstanceUID", "PatientID"):
        assert first[keyword].value == later[keyword].value != foreign[keyword].value
    assert first.SOPInstanceUID != later.SOPInstanceUID


def test_personal_names_in_names_of_structures_are_removed(tmp_path, call, series):
    """A contour called after who drew it, and one after the patient."""
    mask = box(1, 4, 4, 14, 5, 15)
    files = [
        segmented(tmp_path / f"{rater}.dcm", series,
                  [Structure("GTV Dr Able", mask), Structure("tumour ZORGENFRI", mask)])
        for rater in ("Dr Able", "Dr Baker")
    ]  # fmt: skip
    study = a_study(tmp_path / "s.rscope", call, series, files)
    for kind, name in (("dicom-seg", "a.dcm"), ("rtstruct", "b.dcm"), ("seg.nrrd", "c.seg.nrrd")):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        call("export", study, "--what", "consensus", "--format", kind, "--deidentify", "-o", out / name)
        structures = [mask.structure for mask in read_masks(out / name, [series]).masks]
        assert structures == ["GTV rater-1", "structure 2"]
        content = (out / name).read_bytes().upper()
        assert b"ZORGENFRI" not in content
        assert b"ABLE" not in content


def test_tables_do_not_name_the_patient_either(tmp_path, call, series):
    structures = [Structure("tumour ZORGENFRI", box(1, 4, 4, 14, 5, 15))]
    file = segmented(tmp_path / "Dr Able.dcm", series, structures)
    study = a_study(tmp_path / "s.rscope", call, series, [file])
    call("export", study, "--what", "annotators", "--deidentify", "-o", tmp_path / "a.csv")
    assert [row["structure"] for row in rows_of(tmp_path / "a.csv")] == ["structure 1"]


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("GTV_Dr_Able", "GTV_rater-1"),
        ("gtv dr able 2", "gtv rater-1 2"),
        ("GTV JD", "GTV rater-2"),
        ("Able", "Able"),  # no rater is called so
        ("JDistal", "JDistal"),
        ("rater-2", "rater-3"),  # as a rater was called before
    ],
)
def test_only_whole_names_are_replaced_and_each_once(name, clean):
    by = Deidentifier(
        b"k" * 32, {"Dr Able": "rater-1", "JD": "rater-2", "rater-2": "rater-3", "L": "rater-4"}
    )
    assert by.text(name) == clean
    assert by.text(f"{name} left L") == f"{clean} left L"


def test_weights_and_tables_name_raters_by_number(study, tmp_path, call):
    call("run", study, "laplace")
    out = tmp_path / "w"
    output = call("export", study, "--what", "weights", "--deidentify", "-o", out / "x.nii.gz", fails=True)
    assert "no folder" in output.err
    out.mkdir()
    lines = call("export", study, "--what", "weights", "--deidentify", "-o", out).out.split()
    names = [path.name for path in sorted(out.glob("*.nii.gz"))]
    assert len(lines) == len(names) == 4
    assert all("rater-" in name and "Able" not in name for name in names)
    for table in ("annotators", "agreement", "disputes"):
        call("export", study, "--what", table, "--deidentify", "-o", out / f"{table}.csv")
        content = (out / f"{table}.csv").read_text()
        assert "Able" not in content
        assert "SECRETDESC" not in content
    assert {row["annotator"] for row in rows_of(out / "annotators.csv")} == {"rater-1", "rater-2"}
    assert {row["image"] for row in rows_of(out / "annotators.csv")} == {"case-001"}


def test_plain_volumes_leave_without_their_names_too(tmp_path, call):
    folder = tmp_path / "in"
    folder.mkdir()
    masks = [write(folder / f"SMITH_JOHN_{name}.nii.gz", a_ball(radius=size)) for name, size in
             (("anna", 5), ("ben", 6))]  # fmt: skip
    study, out = tmp_path / "s.rscope", tmp_path / "out"
    call("import", study, a_volume(folder / "SMITH_JOHN.nii.gz"), *masks)
    call("run", study, "majority")
    call("export", study, "--what", "consensus", "--deidentify", "--with-images", "-o", out)
    assert sorted(path.name for path in out.iterdir()) == [
        "case-001_consensus.nii.gz",
        "case-001_image.nii.gz",
        "consensus.run.json",
    ]
    image = nibabel.load(out / "case-001_image.nii.gz")
    original = nibabel.load(folder / "SMITH_JOHN.nii.gz")
    np.testing.assert_allclose(image.affine, original.affine, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(image.dataobj), np.asarray(original.dataobj))
    assert image.header["descrip"].tobytes().strip(b"\0") == b""


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({"BurnedInAnnotation": "YES"}, "text is burned into its pixels"),
        ({"Modality": "US"}, "modality US"),
        ({"ImageType": ["DERIVED", "SECONDARY", "SCREEN SAVE"]}, "captured screen"),
    ],
)
def test_text_in_the_pixels_is_warned_of(tmp_path, call, tags, words):
    volume = a_patient(tmp_path / "ct", **tags)
    study = a_study(tmp_path / "s.rscope", call, volume, two_raters(tmp_path, volume)[:1])
    ask = ("export", study, "--what", "consensus", "--deidentify", "-o", tmp_path / "out")
    output = call(*ask, "--with-images").err
    assert "note:" in output
    assert words in output
    assert f"{SHAPE[0]} of {SHAPE[0]} images" in output
    images = [dataset for path, dataset in datasets(tmp_path / "out").items() if "images" in str(path)]
    assert {image.PatientIdentityRemoved for image in images} == {"NO"}


def test_an_answer_that_nothing_is_burned_in_is_accepted(tmp_path, call):
    volume = a_patient(tmp_path / "ct", BurnedInAnnotation="NO", Modality="US")
    study = a_study(tmp_path / "s.rscope", call, volume, two_raters(tmp_path, volume)[:1])
    output = call(
        "export", study, "--what", "consensus", "--deidentify", "--with-images", "-o", tmp_path / "out"
    )
    assert "note:" not in output.err


class TestFormat:
    def test_a_dicom_case_is_exported_as_dicom(self, study, tmp_path, call):
        lines = call("export", study, "--what", "consensus", "-o", tmp_path / "out").out.strip()
        assert pydicom.dcmread(lines).Modality == "SEG"

    def test_the_name_or_the_option_takes_precedence(self, study, tmp_path, call):
        call("export", study, "--what", "consensus", "-o", tmp_path / "out.nii.gz")
        assert nibabel.load(tmp_path / "out.nii.gz").shape == SHAPE[::-1]
        call("export", study, "--what", "consensus", "--format", "seg.nrrd", "-o", tmp_path / "other")
        assert (tmp_path / "other.seg.nrrd").is_file()

    def test_maps_that_dicom_does_not_hold_are_exported_as_nifti(self, study, tmp_path, call):
        call("export", study, "--what", "uncertainty", "-o", tmp_path / "u")
        assert any(path.name.endswith(".nii.gz") for path in tmp_path.iterdir())


class TestKey:
    def test_it_is_secret_of_each_study_and_stays(self, tmp_path):
        keys = []
        for name in ("a", "b"):
            with Study.create(tmp_path / f"{name}.rscope") as study:
                keys.append(export_key(study))
            with Study.open(tmp_path / f"{name}.rscope") as study:
                assert export_key(study) == keys[-1]
        assert keys[0] != keys[1]
        assert len(keys[0]) == 32

    @pytest.mark.parametrize(
        ("change", "words"),
        [("DELETE FROM keys", "has no key"), ("UPDATE keys SET value = x'00'", "is damaged")],
    )
    def test_a_study_without_it_is_refused_with_a_message(self, tmp_path, change, words):
        with Study.create(tmp_path / "a.rscope") as study:
            with study.change() as connection:
                connection.execute(change)
            with pytest.raises(StudyError, match=words):
                export_key(study)
