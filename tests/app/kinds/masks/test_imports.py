"""Volumes and masks into a study: what files are, who drew them, on which image."""

import json

import numpy as np
import pytest
import SimpleITK

from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries, read_masks
from tests.app.formats.dicom_builder import write_series
from tests.app.kinds.masks.made import (
    SHAPE,
    a_ball,
    a_disc,
    a_photograph,
    a_volume,
    four_raters,
    marks,
    painted,
    write,
)


def test_a_volume_and_its_raters_masks_in_any_order(import_files, tmp_path):
    files = four_raters(tmp_path, "chest_")
    output = import_files(*files, a_volume(tmp_path / "chest.nii.gz"))
    assert "1 volume." in output
    assert "4 masks in 4 files on 1 image by 4 annotators" in output
    found_marks = marks(tmp_path)
    assert set(found_marks) == {
        ("chest.nii.gz", name, "structure") for name in ("anna", "ben", "carl", "dora")
    }
    assert found_marks["chest.nii.gz", "ben", "structure"] == a_ball(radius=6.0).sum()


def test_a_folder_imports_what_it_can_and_lists_what_it_skips(import_files, tmp_path):
    folder = tmp_path / "case"
    (folder / "masks").mkdir(parents=True)
    a_volume(folder / "ct.nii.gz")
    four_raters(folder / "masks")
    (folder / "notes.md").write_text("read me")
    (folder / "clicks.csv").write_text("annotator,image,x,y\n")
    (folder / "broken.nii").write_text("nothing")
    output = import_files(folder)
    assert "4 masks in 4 files on 1 image" in output
    assert "clicks.csv: has a header but no rows" in output
    assert "notes.md" in output
    assert "broken.nii" in output
    assert len(marks(tmp_path)) == 4


def test_many_cases_are_distinguished_by_their_names(import_files, tmp_path):
    files = [path for case in ("case1_", "case2_") for path in four_raters(tmp_path, case)]
    assert "8 masks in 8 files on 2 images by 4 annotators" in import_files(*files)
    assert ("case2", "dora", "structure") in marks(tmp_path)


def test_masks_come_to_the_volume_that_the_study_has(import_files, tmp_path):
    import_files(a_volume(tmp_path / "chest.nii.gz"))
    import_files(*four_raters(tmp_path))
    assert {image for image, _, _ in marks(tmp_path)} == {"chest.nii.gz"}


def test_the_volume_may_come_after_its_masks(import_files, tmp_path):
    import_files(*four_raters(tmp_path, "case1_"))
    assert "1 volume" in import_files(a_volume(tmp_path / "case1.nii.gz"))
    with Study.open(tmp_path / "s.rscope") as study:
        (entry,) = study.images()
        assert study.locate(entry) == tmp_path / "case1.nii.gz"
        assert len(mask_entries(study, entry.id)) == 4
    moved = a_ball().astype(np.int16) * 100 - 50
    output = import_files(write(tmp_path / "elsewhere" / "case1.nii.gz", moved, shift=5))
    assert "1 volume" in output
    assert len(marks(tmp_path)) == 4


def test_masks_of_the_next_case_are_not_laid_on_the_last_one(import_files, tmp_path):
    import_files(*four_raters(tmp_path, "case1_"))
    import_files(*four_raters(tmp_path, "case2_"))
    assert {image for image, _, _ in marks(tmp_path)} == {"case1", "case2"}


def test_each_label_of_a_map_is_a_structure(import_files, tmp_path):
    labels = a_ball((6, 8, 8), 4) + 2 * a_ball((6, 18, 18), 4)
    import_files(*(write(tmp_path / f"{name}.nii.gz", labels) for name in ("anna", "ben")))
    assert sorted({structure for _, _, structure in marks(tmp_path)}) == ["label 1", "label 2"]


def test_structures_in_the_names_of_files(import_files, tmp_path):
    volume = a_volume(tmp_path / "ct.nii.gz")
    names = [f"{rater}_{structure}.nii.gz" for rater in ("anna", "ben") for structure in ("liver", "spleen")]
    import_files(volume, *(write(tmp_path / name, a_ball()) for name in names))
    expected = {
        ("ct.nii.gz", rater, structure) for rater in ("anna", "ben") for structure in ("liver", "spleen")
    }
    assert set(marks(tmp_path)) == expected


def test_the_annotator_of_a_single_file_is_required(import_files, tmp_path):
    mask = write(tmp_path / "mask.nii.gz", a_ball())
    output = import_files(mask)
    assert output.startswith("mask.nii.gz: its annotator is unknown")
    assert "--annotator" in output
    assert not (tmp_path / "s.rscope").exists()
    import_files(mask, "--annotator", "Anna", "--structure", "nodule")
    assert {(rater, structure) for _, rater, structure in marks(tmp_path)} == {("Anna", "nodule")}


def test_a_pattern_takes_names_apart(import_files, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    files = [write(folder / f"n{n}-x-{rater}.nii.gz", a_ball()) for n in (1, 2) for rater in ("ab", "cd")]
    import_files(*files, "--naming", "{item}-x-{annotator}")
    expected = {(item, rater, "structure") for item in ("n1", "n2") for rater in ("ab", "cd")}
    assert set(marks(tmp_path)) == expected


@pytest.mark.parametrize("word", ["truth", "ground_truth", "gt"])
@pytest.mark.parametrize("at_once", [True, False])
def test_true_masks_beside_those_of_the_raters_of_several_cases(import_files, tmp_path, word, at_once):
    for case in ("cell01", "cell02"):
        for name in ("anna", "ben", word):
            write(tmp_path / "in" / f"{case}_{name}.nii.gz", a_ball())
    if at_once:
        import_files(tmp_path / "in")
    else:
        import_files(*(tmp_path / "in").glob("*_anna*"), *(tmp_path / "in").glob("*_ben*"))
        import_files(*(tmp_path / "in").glob(f"*_{word}*"))
    assert set(marks(tmp_path)) == {
        (case, name, "structure") for case in ("cell01", "cell02") for name in ("anna", "ben", None)
    }


def test_masks_that_are_the_truth(import_files, tmp_path):
    import_files(write(tmp_path / "ball.nii.gz", a_ball()), "--kind", "truth")
    ((_, rater, _),) = marks(tmp_path)
    assert rater is None


def test_photographs_beside_true_outlines_are_their_images(import_files, tmp_path):
    coco = {
        "images": [{"id": 7, "file_name": "cell.png", "width": 80, "height": 60}],
        "annotations": [{"image_id": 7, "segmentation": [[10, 10, 15, 10, 15, 14, 10, 14]]}],
    }
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    image = a_photograph(tmp_path / "cell.png")
    output = import_files(image, tmp_path / "coco.json", "--kind", "truth")
    assert output.startswith("1 image.\ncoco.json: 1 true mask on 1 image.")


class TestAnotherGrid:
    def test_a_shape_that_does_not_match_is_refused_with_both_named(self, import_files, tmp_path):
        volume = a_volume(tmp_path / "chest.nii.gz")
        longer = write(tmp_path / "chest_anna.nii.gz", a_ball(shape=(14, 24, 24)))
        output = import_files(volume, longer)
        assert output.startswith("chest_anna.nii.gz: does not lie on chest.nii.gz")
        assert "14 x 24 x 24" in output
        assert "12 x 24 x 24" in output
        assert not (tmp_path / "s.rscope").exists()

    @pytest.mark.parametrize("orientation", ["LPS", "PIR"])
    def test_a_mask_cropped_to_what_it_marks_keeps_its_voxels(self, import_files, tmp_path, orientation):
        """3D Slicer stores the extent of its segments only."""
        volume = a_volume(tmp_path / "chest.nii.gz")
        low, high = np.argwhere(a_ball()).min(axis=0), np.argwhere(a_ball()).max(axis=0) + 1
        path = str(write(tmp_path / "chest_anna.nii.gz", a_ball()))
        box = tuple(slice(int(a), int(b)) for a, b in zip(low[::-1], high[::-1], strict=True))
        SimpleITK.WriteImage(SimpleITK.DICOMOrient(SimpleITK.ReadImage(path)[box], orientation), path)
        assert "1 mask placed on the part of the image" in import_files(volume, path)
        with Study.open(tmp_path / "s.rscope") as study:
            record = read_masks(study, study.images()[0].id, "structure")["anna"]
        assert record.origin == tuple(low)
        np.testing.assert_array_equal(record.values, a_ball()[box[::-1]])

    def test_nothing_is_resampled_unless_it_is_requested(self, import_files, tmp_path):
        volume = a_volume(tmp_path / "chest.nii.gz")
        moved = write(tmp_path / "chest_anna.nii.gz", a_ball(), shift=-3.0)
        assert "--resample resamples it" in import_files(volume, moved)
        assert "resampled to the grid of the image" in import_files(volume, moved, "--resample")
        with Study.open(tmp_path / "s.rscope") as study:
            record = read_masks(study, study.images()[0].id, "structure")["anna"]
        where = np.argwhere(a_ball())
        low, high = where.min(axis=0), where.max(axis=0) + 1
        assert record.origin == (low[0], low[1], low[2] + 3)
        inside = a_ball()[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
        np.testing.assert_array_equal(record.values, inside)

    def test_what_is_cut_off_by_resampling_is_named(self, import_files, tmp_path):
        ball = a_ball()
        drawn = np.pad(ball, ((0, 0), (0, 0), (0, 9)))
        drawn[:, :, -1] = ball.any(axis=2)
        path = write(tmp_path / "chest_anna.nii.gz", drawn)
        share = f"{drawn[:, :, -1].sum() / drawn.sum():.0%}"
        output = import_files(a_volume(tmp_path / "chest.nii.gz"), path, "--resample")
        assert f"{share} of the marked voxels are outside the image and were cut off" in output

    @pytest.mark.parametrize("irregular", [{"tilt": 18.5}, {"missing": (3, 4)}, {"tilt": -7, "missing": [5]}])
    def test_masks_drawn_with_itk_on_an_irregular_series_stay_on_their_slices(
        self, import_files, tmp_path, irregular
    ):
        write_series(tmp_path / "ct", (9, 24, 30), (2.5, 0.8, 0.8), **irregular)
        reader = SimpleITK.ImageSeriesReader()
        reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(tmp_path / "ct")))
        even = reader.Execute()
        shape = even.GetSize()[::-1]
        rng = np.random.default_rng(4)
        drawn = {name: rng.integers(0, 2, shape).astype(np.uint8) for name in ("anna", "ben")}
        for name, values in drawn.items():
            image = SimpleITK.GetImageFromArray(values)
            image.CopyInformation(even)
            SimpleITK.WriteImage(image, str(tmp_path / f"m_{name}.nii.gz"))
        assert "placed slice by slice" in import_files(tmp_path / "ct", *tmp_path.glob("*.nii.gz"))
        with Study.open(tmp_path / "s.rscope") as study:
            records = read_masks(study, study.images()[0].id, "m")
        for name, record in records.items():
            assert record.origin == (0, 0, 0)
            np.testing.assert_array_equal(record.values, drawn[name].astype(bool))

    def test_pixels_without_a_place_are_never_resampled(self, import_files, tmp_path):
        small = painted(tmp_path / "cell_anna.png", a_disc((50, 80)))
        output = import_files(a_photograph(tmp_path / "cell.png"), small, "--kind", "masks", "--resample")
        assert "--resample" not in output

    def test_two_raters_on_two_grids(self, import_files, tmp_path):
        files = [
            write(tmp_path / "x_anna.nii.gz", a_ball()),
            write(tmp_path / "y_ben.nii.gz", a_ball(), shift=9),
        ]
        assert "begin at different positions" in import_files(*files)


def test_one_annotator_cannot_have_drawn_the_same_twice(import_files, tmp_path):
    files = four_raters(tmp_path)[:2]
    output = import_files(*files, "--annotator", "anna")
    assert "anna.nii.gz" in output
    assert "ben.nii.gz" in output
    assert "one mask by each annotator" in output


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".mha"])
def test_a_file_of_voxels_that_is_cut_short_is_named_and_the_others_are_read(import_files, tmp_path, suffix):
    folder = tmp_path / "case"
    folder.mkdir()
    four_raters(folder)
    whole = SimpleITK.GetImageFromArray(a_ball().astype(np.uint8))
    SimpleITK.WriteImage(whole, tmp_path / f"whole{suffix}")
    content = (tmp_path / f"whole{suffix}").read_bytes()
    (folder / f"zoe{suffix}").write_bytes(content[: len(content) * 2 // 3])
    output = import_files(folder)
    assert f"zoe{suffix}" in output
    assert "cut short" in output
    assert "zoe" not in {annotator for _, annotator, _ in marks(tmp_path)}


def test_a_mask_that_fits_two_images_is_not_guessed(import_files, tmp_path):
    first, second = (a_volume(tmp_path / f"{name}.nii.gz", n) for n, name in enumerate(("left", "right")))
    output = import_files(first, second, *four_raters(tmp_path)[:2])
    assert "fits several images (left.nii.gz, right.nii.gz)" in output


@pytest.mark.parametrize(
    ("image", "mask", "structure"),
    [
        pytest.param("{case}/CT", "{case}/GTV_{rater}", "GTV", id="a folder for each case"),
        pytest.param("images/{case}/t2", "masks/{case}/lesion_{rater}", "lesion", id="folders of one name"),
        pytest.param("{case}/image", "{case}/task01_{rater}", "task01", id="QUBIQ"),
        pytest.param("imagesTr/{case}_0000", "labels_{rater}/{case}", "structure", id="nnU-Net"),
        pytest.param(
            "sub-{case}/anat/sub-{case}_T1w",
            "derivatives/manual/sub-{case}/anat/sub-{case}_rater-{rater}_desc-tumour_mask",
            "tumour",
            id="BIDS",
        ),
    ],
)
def test_layouts_of_public_data_sets(import_files, tmp_path, image, mask, structure):
    cases, raters = ("p01", "p02", "p03"), {"anna": 5.5, "ben": 6.0, "carl": 7.0}
    expected = {}
    for seed, case in enumerate(cases):
        path = tmp_path / "data" / f"{image.format(case=case)}.nii.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        a_volume(path, seed)
        for rater, radius in raters.items():
            path = tmp_path / "data" / f"{mask.format(case=case, rater=rater)}.nii.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            values = a_ball(radius=radius + seed / 2)
            write(path, values)
            expected[seed, rater, structure] = values.sum()
    import_files(tmp_path / "data")
    with Study.open(tmp_path / "s.rscope") as study:
        case_of = {
            entry.id: next(at for at, case in enumerate(cases) if case in entry.path)
            for entry in study.images()
        }
        found = {(case_of[e.image], e.annotator, e.structure): e.voxels for e in mask_entries(study)}
    assert found == expected


@pytest.mark.parametrize("together", [True, False])
def test_images_of_one_name_are_named_and_matched_by_their_folders(import_files, tmp_path, together):
    cases = {"UKCHLL001": 5.0, "UKCHLL002": 7.0}
    images, masks = [], []
    for seed, (case, radius) in enumerate(cases.items()):
        (tmp_path / "data" / case).mkdir(parents=True)
        images.append(a_volume(tmp_path / "data" / case / "image.nii.gz", seed))
        masks += [
            write(tmp_path / "data" / case / f"annotation_{k}.nii.gz", a_ball(radius=radius)) for k in (1, 2)
        ]
    if together:
        import_files(tmp_path / "data")
    else:
        import_files(*images)
        import_files(*masks)
    assert marks(tmp_path) == {
        (f"{case}/image.nii.gz", f"annotation {k}", "structure"): a_ball(radius=radius).sum()
        for case, radius in cases.items()
        for k in (1, 2)
    }


def test_a_consensus_among_the_raters_is_named(import_files, tmp_path):
    files = [write(tmp_path / f"{name}.nii.gz", a_ball()) for name in ("anna", "ben", "consensus")]
    assert "consensus is read as a rater" in import_files(*files)
    assert "is read as a rater" not in import_files(*files[:2])


def test_masks_of_a_case_with_several_series_lie_on_the_first(import_files, tmp_path):
    files = [
        a_volume(tmp_path / f"training0{case}_{series}.nii.gz")
        for case in (1, 2)
        for series in ("flair", "t2")
    ]
    files += [
        write(tmp_path / f"training0{case}_mask{k}.nii.gz", a_ball()) for case in (1, 2) for k in (1, 2)
    ]
    import_files(*files)
    assert set(marks(tmp_path)) == {
        (f"training0{case}_flair.nii.gz", f"mask{k}", "structure") for case in (1, 2) for k in (1, 2)
    }


@pytest.mark.parametrize("orientation", ["RAS", "LPI", "PIR", "SAL"])
def test_masks_with_other_axes_come_without_loss(import_files, tmp_path, orientation):
    rng = np.random.default_rng(2)
    a_volume(tmp_path / "ct.nii.gz")
    drawn = {name: rng.integers(0, 2, SHAPE).astype(np.uint8) for name in ("anna", "ben")}
    for name, values in drawn.items():
        write(tmp_path / f"m_{name}.nii.gz", values)
    path = str(tmp_path / "m_ben.nii.gz")
    SimpleITK.WriteImage(SimpleITK.DICOMOrient(SimpleITK.ReadImage(path), orientation), path)
    output = import_files(*sorted(tmp_path.glob("*.nii.gz")))
    assert "resampled" not in output
    with Study.open(tmp_path / "s.rscope") as study:
        (entry,) = study.images()
        for name, mask in read_masks(study, entry.id, "m").items():
            whole = np.zeros(SHAPE, dtype=bool)
            ends = [slice(at, at + n) for at, n in zip(mask.origin, mask.values.shape, strict=True)]
            whole[tuple(ends)] = mask.values
            np.testing.assert_array_equal(whole, drawn[name].astype(bool))


def test_a_mask_whose_checksum_is_wrong_is_skipped_and_no_volume(import_files, tmp_path):
    write(tmp_path / "anna.nii.gz", a_ball())
    damaged = bytearray(write(tmp_path / "ben.nii.gz", a_ball(radius=7)).read_bytes())
    damaged[-6] ^= 255
    (tmp_path / "ben.nii.gz").write_bytes(damaged)
    text = import_files(tmp_path, "--annotator", "anna")
    assert "Skipped: ben.nii.gz: cannot be read" in text
    assert "volume" not in text


def test_a_question_about_raters_names_the_files_that_were_skipped(tmp_path, refusal):
    write(tmp_path / "masks" / "anna.nii.gz", a_ball())
    path = write(tmp_path / "masks" / "ben.nii.gz", a_ball(radius=7))
    path.write_bytes(path.read_bytes()[:60])
    message = refusal("import", tmp_path / "s.rscope", tmp_path / "masks")
    assert "its annotator is unknown" in message
    assert "Skipped: ben.nii.gz: " in message


def test_data_files_of_headers_are_not_reported_as_skipped(import_files, tmp_path):
    for name, values in {"anna": a_ball(), "ben": a_ball(radius=7)}.items():
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(values), tmp_path / f"{name}.mhd")
    assert "Skipped" not in import_files(tmp_path)


def test_an_empty_mask_is_a_rater_who_saw_nothing(import_files, tmp_path):
    files = [*four_raters(tmp_path), write(tmp_path / "emil.nii.gz", np.zeros(SHAPE, np.uint8))]
    assert "1 of them empty" in import_files(*files)
    assert next(n for (_, rater, _), n in marks(tmp_path).items() if rater == "emil") == 0


def test_unnamed_masks_are_the_structure_that_others_marked(import_files, tmp_path):
    files = [write(tmp_path / f"nodule_{name}.nii.gz", a_ball()) for name in ("anna", "ben")]
    import_files(*files, write(tmp_path / "gold.nii.gz", a_ball()))
    assert {(rater, structure) for _, rater, structure in marks(tmp_path)} == {
        ("anna", "nodule"),
        ("ben", "nodule"),
        (None, "nodule"),
    }


def test_a_mask_that_fits_none_of_several_images_is_a_case_of_its_own(import_files, tmp_path):
    first, second = (a_volume(tmp_path / f"{name}.nii.gz", n) for n, name in enumerate(("left", "right")))
    elsewhere = write(tmp_path / "elsewhere.nii.gz", a_ball((5, 5, 5), 4, (11, 11, 11)))
    words = import_files(first, second, elsewhere, "--annotator", "anna")
    assert "elsewhere.nii.gz fits none of the images imported with it and becomes a case of its own" in words
    assert "the grids differ in shape: 11 x 11 x 11, " in words


@pytest.mark.parametrize("levels", [16, 200])
def test_an_integer_volume_with_few_values_is_no_mask(import_files, tmp_path, levels):
    rng = np.random.default_rng(1)
    values = np.clip(rng.normal(0.5, 0.2, SHAPE), 0, 1) * (levels - 1)
    scan = write(tmp_path / "t1.nii.gz", values.astype(np.uint8))
    words = import_files(scan, *(write(tmp_path / f"{name}.nii.gz", a_ball()) for name in ("anna", "ben")))
    assert "t1.nii.gz is read as a volume, not as a mask: its " in words
    assert {(rater, structure) for _, rater, structure in marks(tmp_path)} == {
        ("anna", "structure"),
        ("ben", "structure"),
    }


def test_an_atlas_of_many_labels_is_no_volume(import_files, tmp_path):
    z, y, x = np.indices(SHAPE)
    patches = ((z // 4 * 3 + y // 4) * 5 + x // 4) % 199 + 1
    scan = a_volume(tmp_path / "ct.nii.gz", 1)
    atlas = write(tmp_path / "atlas.nii.gz", patches.astype(np.uint8))
    assert f"{len(np.unique(patches))} masks" in import_files(scan, atlas, "--annotator", "anna")


class TestRealFiles:
    def test_contours_come_to_a_series_that_the_study_has(self, import_files, tmp_path, real_data):
        folder = real_data / "formats" / "dicom" / "rtstruct"
        output = import_files(folder / "rt.dcm", "--annotator", "anna")
        assert "add the folder of that series first" in output
        import_files(folder / "ct_1.dcm")
        import_files(folder / "rt.dcm", "--annotator", "anna")
        assert {rater for _, rater, _ in marks(tmp_path)} == {"anna"}

    def test_a_segmentation_as_dicom_and_as_nrrd_is_the_same(self, import_files, tmp_path, real_data):
        folder = real_data / "formats" / "dicom" / "seg_dcmqi"
        import_files(folder / "01.dcm")
        import_files(folder / "liver.dcm", "--annotator", "anna", "--structure", "Liver")
        import_files(folder / "liver_seg.nrrd", "--annotator", "ben", "--structure", "Liver")
        with Study.open(tmp_path / "s.rscope") as study:
            (entry,) = study.images()
            first, second = read_masks(study, entry.id, "Liver").values()
        assert first.origin == second.origin
        np.testing.assert_array_equal(first.values, second.values)

    def test_four_radiologists_of_one_file(self, import_files, tmp_path, real_data):
        import_files(real_data / "formats" / "lidc" / "189_158.xml")
        assert len({rater for _, rater, _ in marks(tmp_path)}) == 4

    def test_a_folder_of_mixed_series_lists_the_inconsistencies(self, import_files, real_data):
        output = import_files(real_data / "formats" / "dicom" / "pydicom")
        assert "MR_truncated.dcm: is cut short" in output
        assert "it is 2 volumes" in output
        assert "rtstruct.dcm: was drawn on the series" in output
