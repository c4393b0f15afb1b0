"""A CT with missing slices from import to export: everything stays where the patient has it."""

import json

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK

from raterscope.app.cli import main
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.study import Study
from tests.app.formats.dicom_builder import disc, disc_mask, write_contours, write_series

SHAPE, MISSING = (60, 32, 40), range(20, 30)
SPOTS = (12, 15, 18, 19, 20, 21, 25, 30)
RATERS = {"anna": 6.3, "bo": 6.3, "cy": 8.2}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A CT of which 10 of 60 slices are missing, and three raters' structure sets."""
    folder = tmp_path_factory.mktemp("missing")
    series = write_series(folder / "ct", SHAPE, missing=MISSING)
    files = []
    for name, radius in RATERS.items():
        discs = [disc(series, at, radius) for at in SPOTS]
        if name == "cy":
            discs.append(disc(series, 4, radius, missing=True))
        files.append(write_contours(folder / f"{name}.dcm", series, {"tumour": discs}, rater=name))
    study = folder / "case.rscope"
    assert main(["import", str(study), str(series.folder), *map(str, files)]) == 0
    assert main(["run", str(study), "majority"]) == 0
    return folder, series, files, study


def expected(series) -> np.ndarray:
    mask = np.zeros((len(series.uids), *SHAPE[1:]), dtype=bool)
    mask[list(SPOTS)] = disc_mask(SHAPE[1:], 6.3)
    return mask


def test_what_is_missing_and_what_could_not_be_placed_is_reported(case, capsys, tmp_path) -> None:
    _, series, files, _ = case
    capsys.readouterr()
    assert main(["import", str(tmp_path / "a.rscope"), str(series.folder), *map(str, files)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert (
        "10 slices are missing between 87.5 and 115.0 mm. Contours near the gap may be misplaced; "
        "volumes leave the gap out." in output
    )
    assert (
        "could not be placed: the image has no slice there (tumour by cy, contour 9 at 100.00 mm)" in output
    )


def test_masks_and_volumes_are_those_of_the_slices(case) -> None:
    _, series, _, study = case
    with Study.open(study) as opened:
        (entry,) = opened.images()
        assert entry.lattice.gaps == ((19, 10),)
        result = opened.shown.result(entry.id, "masks")[1]
    fusion, report = result.fusions[0], result.reports[0]
    area = 0.8 * 0.8
    assert report.volume_ml == pytest.approx(expected(series).sum() * area * 2.5 / 1000)
    assert fusion.slice_positions == pytest.approx(entry.lattice.positions)


def test_exported_contours_lie_on_their_slices(case, tmp_path) -> None:
    _, series, _, study = case
    out = tmp_path / "out.dcm"
    export = ["export", str(study), "--what", "consensus", "--format", "rtstruct", "-o", str(out)]
    assert main(export) == 0
    contours = pydicom.dcmread(out).ROIContourSequence[0].ContourSequence
    filled = np.zeros((len(series.uids), *SHAPE[1:]), dtype=bool)
    for contour in contours:
        at = series.uids.index(contour.ContourImageSequence[0].ReferencedSOPInstanceUID)
        points = np.array(contour.ContourData, dtype=float).reshape(-1, 3)
        assert np.abs(points[:, 2] - series.places[at][2]).max() < 1e-3
        from skimage.measure import grid_points_in_poly

        outline = (points[:, 1::-1] - series.places[at][1::-1]) / 0.8
        filled[at] ^= grid_points_in_poly(SHAPE[1:], outline)
    np.testing.assert_array_equal(filled, expected(series))


def test_exported_segments_lie_on_their_slices(case, tmp_path) -> None:
    _, series, _, study = case
    out = tmp_path / "seg.dcm"
    export = ["export", str(study), "--what", "consensus", "--format", "dicom-seg", "-o", str(out)]
    assert main(export) == 0
    segmentation = highdicom.seg.segread(out)
    assert segmentation.NumberOfFrames == len(SPOTS)
    for frame, pixels in zip(
        segmentation.PerFrameFunctionalGroupsSequence, segmentation.pixel_array, strict=True
    ):
        position = np.array(frame.PlanePositionSequence[0].ImagePositionPatient, dtype=float)
        at = int(np.abs(series.places - position).max(axis=1).argmin())
        assert np.abs(series.places[at] - position).max() < 1e-3
        np.testing.assert_array_equal(pixels.astype(bool), expected(series)[at])


def test_nifti_is_refused_or_resampled(case, tmp_path, capsys) -> None:
    _, series, _, study = case
    out = tmp_path / "out.nii.gz"
    export = ["export", str(study), "--what", "consensus", "-o", str(out)]
    assert main(export) == 1
    assert "--resample" in capsys.readouterr().err
    assert not out.exists()
    assert main([*export, "--resample"]) == 0
    image = SimpleITK.ReadImage(out)
    values = SimpleITK.GetArrayFromImage(image)
    assert values.shape == SHAPE
    for at, position in enumerate(series.places):
        index = image.TransformPhysicalPointToIndex(position.tolist())
        index_position = np.array(image.TransformIndexToPhysicalPoint(index))
        assert np.abs(index_position - position).max() < 1e-3
        np.testing.assert_array_equal(values[index[2]].astype(bool), expected(series)[at])
    assert not values[list(MISSING)].any()


def test_each_case_has_its_usual_format_or_none_is_written(case, tmp_path, capsys) -> None:
    _, series, files, _ = case
    study, out = tmp_path / "a.rscope", tmp_path / "out"
    nifti = []
    for rater in RATERS:
        nifti.append(tmp_path / f"a_first_{rater}.nii.gz")
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(np.ones((3, 4, 5), np.uint8)), nifti[-1])
    assert main(["import", str(study), *map(str, nifti)]) == 0
    assert main(["import", str(study), str(series.folder), *map(str, files)]) == 0
    assert main(["run", str(study), "majority"]) == 0
    export = ["export", str(study), "--what", "consensus", "-o", str(out)]
    capsys.readouterr()
    assert main([*export, "--format", "nifti"]) == 1
    assert "10 slices are missing" in capsys.readouterr().err
    assert not out.exists()
    assert main(export) == 0
    (segmentation,), (label_map,) = out.glob("*_seg.dcm"), out.glob("*.nii.gz")
    assert highdicom.seg.segread(segmentation).NumberOfFrames == len(SPOTS)
    assert SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(label_map)).sum() == 60
    assert json.loads((out / "consensus.run.json").read_text())["format"] == "dicom-seg and nifti"


def test_fusing_files_refuses_or_resamples(case, tmp_path, capsys) -> None:
    _, series, files, _ = case
    fuse = ["fuse", "masks", *map(str, files), "--image", str(series.folder), "--algorithm", "majority"]
    out = tmp_path / "out"
    assert main([*fuse, "-o", str(out)]) == 1
    output = capsys.readouterr().err
    assert "10 slices are missing between 87.5 and 115.0 mm" in output
    assert "--resample" in output
    assert main([*fuse, "-o", str(out), "--resample"]) == 0
    values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(out / "consensus_mask.nii.gz"))
    present = [at for at in range(SHAPE[0]) if at not in MISSING]
    np.testing.assert_array_equal(values[present].astype(bool), expected(series))
    record = json.loads((out / "run.json").read_text())
    assert "10 slices are missing" in record["images"][0]["notices"][0]
    (notice,) = record["notices"]
    assert notice.startswith("cy.dcm: 1 contour could not be placed")


def test_the_report_lists_missing_slices(case, tmp_path) -> None:
    *_, study = case
    assert main(["report", str(study), "-o", str(tmp_path / "report.html")]) == 0
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert page.count("10 slices are missing between 87.5 and 115.0 mm.") == 1


def test_a_study_that_assumed_even_slices_shows_a_notice(case, tmp_path, capsys) -> None:
    from dataclasses import replace

    from raterscope.app.study.masks import PlacedMask, add_masks

    _, series, _, _ = case
    (volume,) = find_volumes(series.folder)
    path = tmp_path / "old.rscope"
    with Study.create(path) as study:
        (entry,) = study.add_images([replace(volume, grid=replace(volume.grid, slice_offsets=None))])
        add_masks(study, [PlacedMask(entry.id, "a", "t", (0, 0, 0), expected(series))], "a")
    assert main(["run", str(path), "majority"]) == 0
    out = str(tmp_path / "out.dcm")
    assert main(["export", str(path), "--what", "consensus", "--format", "rtstruct", "-o", out]) == 1
    assert "assumed even slice distances" in capsys.readouterr().err


def test_series_of_the_same_name_are_distinguished_in_notices_and_in_names_of_files(tmp_path, capsys) -> None:
    for number in (1, 2):
        folder = tmp_path / f"case{number}"
        series = write_series(
            folder / "ct", (12, 32, 40), missing=[5], series=f"1.2.826.0.1.3680043.8.498.{number}"
        )
        for name, radius in RATERS.items():
            discs = [disc(series, at, radius) for at in (3, 4, 6)]
            write_contours(folder / f"{name}.dcm", series, {"tumour": discs}, rater=name)
    study = tmp_path / "two.rscope"
    assert main(["import", str(study), str(tmp_path / "case1"), str(tmp_path / "case2")]) == 0
    notices = capsys.readouterr().out.splitlines()
    with Study.open(study) as opened:
        names = [image.name for image in opened.images()]
    assert len(set(names)) == 2
    assert all(any(line.startswith(f"{name}: 1 slice is missing") for line in notices) for name in names)
    assert main(["run", str(study), "majority"]) == 0
    assert main(["export", str(study), "--what", "consensus", "-o", str(tmp_path / "out")]) == 0
    files = sorted(path.name for path in (tmp_path / "out").glob("*.dcm"))
    assert [name.startswith(f"case{number}-") for number, name in enumerate(files, 1)] == [True, True]
