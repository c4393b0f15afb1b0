"""Volumes and masks into a study: what files are, who drew them, on which image."""

import numpy as np
import pydicom
import pytest
import SimpleITK
import tifffile
from PIL import Image

from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.kinds.masks.exports import find_source
from raterscope.app.kinds.masks.report.slices import read_voxels
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries, read_masks
from tests.app.formats.dicom_builder import write_series
from tests.app.formats.volumes.made_dicom import image, save
from tests.app.kinds.masks.dicom_cases import a_patient, box, segmented
from tests.app.kinds.masks.made import SHAPE, a_ball, a_volume, four_raters, write


def marks(tmp_path):
    """Who marked which structure on which image, with the number of voxels."""
    with Study.open(tmp_path / "s.rscope") as study:
        names = {entry.id: entry.name for entry in study.images()}
        return {(names[e.image], e.annotator, e.structure): e.voxels for e in mask_entries(study)}


def painted(path, values, mode=None):
    Image.fromarray(values.astype(np.uint8), mode).save(path)
    return path


def a_photograph(path, shape=(60, 80), seed=1):
    return painted(path, np.random.default_rng(seed).integers(0, 255, shape))


def a_disc(shape=(60, 80), radius=15):
    y, x = np.ogrid[: shape[0], : shape[1]]
    return 255 * ((y - 30) ** 2 + (x - 40) ** 2 < radius**2)


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


def test_photographs_stay_images_and_masks_beside_them_become_masks(import_files, tmp_path):
    photograph = a_photograph(tmp_path / "cell.png")
    masks = [painted(tmp_path / f"cell_{name}.png", a_disc(radius=r)) for name, r in (("a", 12), ("b", 15))]
    gold = painted(tmp_path / "cell_gold.png", a_disc(radius=13))
    output = import_files(photograph, *masks, gold)
    assert "1 image." in output
    found_marks = marks(tmp_path)
    assert set(found_marks) == {("cell.png", name, "structure") for name in ("a", "b", None)}
    assert found_marks["cell.png", "b", "structure"] == (a_disc() > 0).sum()


def a_few_greys(path, levels=6, shape=(24, 25)):
    """A small picture in which neighbours are mostly equal, as in a map of labels."""
    rows = np.repeat(np.arange(levels) + 1, -(-shape[0] // levels))[: shape[0]]
    return painted(path, np.repeat(30 * rows[:, None], shape[1], axis=1))


def small_masks(folder, raters=("anna", "ben"), cases=("c01", "c02")):
    for number, rater in enumerate(raters):
        for case in cases:
            (folder / rater).mkdir(parents=True, exist_ok=True)
            painted(folder / rater / f"{case}.png", 255 * (a_disc((24, 25), 24 + number) > 0))


@pytest.mark.parametrize("pictures", ["images", "Raw", "imagesTr"])
def test_small_pictures_with_few_greys_are_recognised_by_their_folder(import_files, tmp_path, pictures):
    (tmp_path / "set" / pictures).mkdir(parents=True)
    a_few_greys(tmp_path / "set" / pictures / "c01.png")
    a_photograph(tmp_path / "set" / pictures / "c02.png", (24, 25))
    small_masks(tmp_path / "set" / "masks")
    output = import_files(tmp_path / "set")
    assert "2 images." in output
    assert "few greys" not in output
    assert {(image, rater) for image, rater, _ in marks(tmp_path)} == {
        (f"{case}.png", rater) for case in ("c01", "c02") for rater in ("anna", "ben")
    }


def test_a_dark_picture_is_no_mask_if_its_folder_holds_images(import_files, tmp_path):
    (tmp_path / "set" / "images").mkdir(parents=True)
    for case in ("c01", "c02"):
        painted(tmp_path / "set" / "images" / f"{case}.png", 90 * (a_disc((24, 25), 22) > 0))
    small_masks(tmp_path / "set" / "masks")
    output = import_files(tmp_path / "set")
    assert "2 images." in output
    assert "because of the name of the folder; they could be masks: c01.png, c02.png" in output


def test_a_small_picture_that_may_be_a_mask_is_named(import_files, tmp_path):
    files = [a_few_greys(tmp_path / f"c01{name}.png", levels) for name, levels in (("", 6), ("_anna", 4))]
    output = import_files(*files)
    assert "though few greys may also be masks: c01.png, c01_anna.png" in output


def test_masks_among_many_small_pictures_without_compression(import_files, tmp_path):
    random = np.random.default_rng(1)
    for case in range(30):
        tifffile.imwrite(tmp_path / f"c{case:02}.tif", random.integers(0, 255, (24, 25), dtype=np.uint8))
        for rater in ("anna", "ben", "carl"):
            tifffile.imwrite(tmp_path / f"c{case:02}_{rater}.tif", a_disc((24, 25), 24).astype(np.uint8))
    output = import_files(tmp_path)
    assert "30 images." in output
    assert "90 masks in 90 files on 30 images by 3 annotators" in output


def test_plain_pictures_with_a_table_of_clicks_stay_images(import_files, tmp_path):
    picture = painted(tmp_path / "smear.png", a_disc())
    (tmp_path / "clicks.csv").write_text("annotator,image,x,y\nanna,smear.png,5,6\n")
    import_files(picture, tmp_path / "clicks.csv")
    assert marks(tmp_path) == {}


def test_photographs_are_not_decoded_to_find_masks_among_them(import_files, tmp_path, monkeypatch):
    files = [a_photograph(tmp_path / f"smear-{n}.png", seed=n) for n in range(5)]

    def refuse(source, watch):
        raise AssertionError(f"{source.path.name} was decoded")

    monkeypatch.setattr("raterscope.app.formats.masks.label_maps.read_values", refuse)
    assert "5 images." in import_files(*files)


def test_a_tiff_of_many_pages_is_a_volume_or_its_mask(import_files, tmp_path):
    pages = np.random.default_rng(1).integers(0, 4000, SHAPE, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "vol.tif", pages)
    tifffile.imwrite(tmp_path / "vol_anna.tif", 255 * a_ball())
    tifffile.imwrite(tmp_path / "vol_ben.tif", 255 * a_ball(), compression="zlib")
    assert "1 volume." in import_files(*sorted(tmp_path.glob("*.tif")))
    assert marks(tmp_path) == {
        ("vol.tif", name, "structure"): int(a_ball().sum()) for name in ("anna", "ben")
    }


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


class TestAnotherGrid:
    def test_a_shape_that_does_not_match_is_refused_with_both_named(self, import_files, tmp_path):
        volume = a_volume(tmp_path / "chest.nii.gz")
        short = write(tmp_path / "chest_anna.nii.gz", a_ball(shape=(10, 24, 24)))
        output = import_files(volume, short)
        assert output.startswith("chest_anna.nii.gz: does not lie on chest.nii.gz")
        assert "10 x 24 x 24" in output
        assert "12 x 24 x 24" in output
        assert not (tmp_path / "s.rscope").exists()

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


def test_files_of_one_program_are_attributed_by_their_names(import_files, tmp_path):
    volume = a_patient(tmp_path / "ct")
    files = [
        segmented(tmp_path / f"ct_{name}.dcm", volume, [Structure("node", box(1, 4, 5, 15, 5, last))])
        for name, last in (("anna", 15), ("ben", 16))
    ]
    import_files(tmp_path / "ct", *files)
    assert {annotator for _, annotator, _ in marks(tmp_path)} == {"anna", "ben"}


def test_a_given_pattern_precedes_the_name_in_the_file(import_files, tmp_path):
    volume = a_patient(tmp_path / "ct")
    path = segmented(tmp_path / "ct_anna.dcm", volume, [Structure("node", box(1, 4, 5, 15, 5, 15))])
    import_files(tmp_path / "ct", path, "--naming", "{item}_{annotator}")
    assert {annotator for _, annotator, _ in marks(tmp_path)} == {"anna"}


def edited(path, **tags):
    """Set DICOM tags of a file."""
    dataset = pydicom.dcmread(path)
    for keyword, value in tags.items():
        setattr(dataset, keyword, value)
    dataset.save_as(path)
    return path


@pytest.mark.parametrize("algorithm", ["MANUAL", "SEMIAUTOMATIC"])
@pytest.mark.parametrize(
    ("descriptions", "raters"),
    [
        (("Reading A. Able", "Reading B. Baker"), {"Reading A. Able", "Reading B. Baker"}),
        (("Lung", "Lung"), {"series 4", "series 5"}),
        (("Segmentation", "Segmentation"), {"series 4", "series 5"}),
    ],
)
def test_segmentations_without_creator_are_named_after_their_series(
    import_files, tmp_path, descriptions, raters, algorithm
):
    volume = a_patient(tmp_path / "ct")
    for number, (description, last) in enumerate(zip(descriptions, (15, 16), strict=True)):
        path = tmp_path / "ct" / f"seg_{'ab'[number]}.dcm"
        segmented(path, volume, [Structure("node", box(1, 4, 5, 15, 5, last))])
        (segment,) = pydicom.dcmread(path).SegmentSequence
        segment.SegmentAlgorithmType = algorithm
        edited(
            path, ContentCreatorName="", SeriesDescription=description, SeriesNumber=4 + number,
            SegmentSequence=[segment],
        )  # fmt: skip
    output = import_files(tmp_path / "ct")
    assert "2 files name no annotator" in output
    assert {annotator for _, annotator, _ in marks(tmp_path)} == raters


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ({"StructureSetLabel": "Plan Adler"}, "Plan Adler"),
        ({"StructureSetLabel": "RTSTRUCT", "SeriesDescription": "Second read"}, "Second read"),
        ({"StructureSetLabel": "RTSTRUCT", "SeriesDescription": ""}, "series 910"),
    ],
)
def test_contours_of_a_single_file_get_a_derived_name(import_files, tmp_path, tags, name):
    volume = a_patient(tmp_path / "ct")
    path = segmented(tmp_path / "plan.dcm", volume, [Structure("node", box(1, 4, 5, 15, 5, 15))], "rtstruct")
    edited(path, OperatorsName="", StructureSetName="", **{"SeriesDescription": "", **tags})
    output = import_files(tmp_path / "ct", path)
    assert "plan.dcm names no annotator" in output
    assert {annotator for _, annotator, _ in marks(tmp_path)} == {name}


def test_a_segmentation_of_another_series_on_the_same_grid_is_placed_with_a_notice(import_files, tmp_path):
    first = a_patient(tmp_path / "first")
    write_series(tmp_path / "second", first.grid.shape, (2.5, 0.8, 0.8), series="1.2.392.4711.2")
    segmentation = segmented(tmp_path / "Dr Able.dcm", first, [Structure("pump", box(1, 5, 4, 14, 5, 15))])
    own = import_files(tmp_path / "first", segmentation)
    assert "another DICOM series" not in own
    (tmp_path / "s.rscope").unlink()
    other = import_files(tmp_path / "second", segmentation)
    assert "Dr Able.dcm: drawn on another DICOM series, placed on" in other
    assert len(marks(tmp_path)) == 1


def two_repeats(folder):
    for k, repeat in np.ndindex(3, 2):
        pixels = np.full((5, 7), 10 * repeat + k, dtype=np.int16)
        slice_ = image(pixels, (0, 0, 2.0 * k), AcquisitionNumber=repeat)
        slice_.StudyInstanceUID, slice_.FrameOfReferenceUID = "1.2.77", "1.2.78"
        save(slice_, folder / f"{k}{repeat}.dcm")
    return find_volumes(folder)


def test_of_repeats_in_one_series_each_shows_its_own_voxels(import_files, tmp_path):
    two_repeats(tmp_path / "ct")
    assert "2 images have the same position everywhere" in import_files(tmp_path / "ct")
    with Study.open(tmp_path / "s.rscope") as study:
        entries = study.images()
        volumes = [read_voxels(study, entry).volume for entry in entries]
        sources = [find_source(study, entry, needed=True) for entry in entries]
    assert [volume.values[:, 0, 0].tolist() for volume in volumes] == [[0, 1, 2], [10, 11, 12]]
    assert set(sources[0].instances).isdisjoint(sources[1].instances)


@pytest.mark.parametrize("kind", ["dicom-seg", "rtstruct", "seg.nrrd"])
def test_structures_of_one_name_in_a_file_are_numbered(import_files, tmp_path, kind):
    volume = a_patient(tmp_path / "ct")
    boxes = [box(1, 3, 4, 14, 5, 15), box(3, 5, 4, 12, 5, 15), box(2, 4, 16, 20, 18, 24)]
    structures = [Structure("lesion", values) for values in boxes]
    file = segmented(tmp_path / "anna_x", volume, structures, kind)
    output = import_files(volume.path, file, "--annotator", "anna")
    assert "several structures named lesion; they are numbered in its order" in " ".join(output.split())
    voxels = {structure: count for (_, _, structure), count in marks(tmp_path).items()}
    assert voxels == {"lesion": 200, "lesion 2": 160, "lesion 3": 48}


def test_png_masks_of_two_sizes_on_one_image_are_refused(import_files, tmp_path):
    painted(tmp_path / "cell_anna.png", a_disc())
    painted(tmp_path / "cell_ben.png", a_disc((64, 80)))
    output = import_files(tmp_path / "cell_anna.png", tmp_path / "cell_ben.png")
    words = " ".join(output.split())
    assert "cell_ben.png: does not lie on cell_anna.png" in words
    assert "64 x 80 and 60 x 80; masks without positions in mm must have the size of their image" in words


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", ["dicom-seg", "rtstruct"])
def test_masks_of_a_repeat_lie_on_the_slices_that_they_refer_to(import_files, tmp_path, kind, at_once):
    volumes = two_repeats(tmp_path / "ct")
    mask = np.zeros((3, 5, 7), dtype=bool)
    mask[1, 1:4, 2:5] = True
    files = [
        segmented(tmp_path / f"{number}", volume, [Structure("a", mask)], kind)
        for number, volume in enumerate(volumes)
    ]
    for some in ([tmp_path / "ct", *files],) if at_once else ([tmp_path / "ct"], [files[1]], [files[0]]):
        import_files(*some, "--annotator", "anna")
    assert marks(tmp_path) == {(f"thorax 3 ({number} of 2)", "anna", "a"): 9 for number in (1, 2)}


def test_masks_that_refer_to_no_slice_fit_every_repeat(import_files, tmp_path):
    volume, _ = two_repeats(tmp_path / "ct")
    file = segmented(tmp_path / "a", volume, [Structure("a", np.ones((3, 5, 7), dtype=bool))])
    dataset = pydicom.dcmread(file)
    for frame in dataset.PerFrameFunctionalGroupsSequence:
        del frame.DerivationImageSequence
    dataset.save_as(file)
    output = import_files(tmp_path / "ct", file, "--annotator", "anna")
    assert "fits several images (thorax 3 (1 of 2), thorax 3 (2 of 2))" in output
