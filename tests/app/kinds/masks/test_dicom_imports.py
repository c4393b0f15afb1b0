"""DICOM masks into a study: raters by fields of the files, repeats of a series, structures of one name."""

import numpy as np
import pydicom
import pytest

from raterscope.algorithms.masks.data import slices_of
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.kinds.masks.exports import find_source
from raterscope.app.kinds.masks.report.slices import read_voxels
from raterscope.app.study import Study
from raterscope.app.study.masks import read_masks
from tests.app.formats.dicom_builder import write_series
from tests.app.formats.volumes.made_dicom import image, save
from tests.app.kinds.masks.dicom_cases import a_patient, box, segmented
from tests.app.kinds.masks.made import marks


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


@pytest.mark.parametrize("kind", ["dicom-seg", "rtstruct"])
def test_two_series_of_one_name_in_a_folder_are_numbered(import_files, tmp_path, kind):
    volumes = [a_patient(tmp_path / name, SeriesInstanceUID=f"1.2.3.{name}") for name in "12"]
    path = segmented(tmp_path / "anna.dcm", volumes[1], [Structure("heart", box(2, 4, 5, 9, 6, 12))], kind)
    for volume in volumes:
        for file in volume.files:
            file.rename(tmp_path / "1" / f"{volume.path.name} {file.name}")
    import_files(tmp_path / "1", path, "--annotator", "anna")
    with Study.open(tmp_path / "s.rscope") as study:
        names = {entry.identifier: entry.name for entry in study.images()}
    folder = tmp_path.name
    assert sorted(names.values()) == [f"{folder}/SECRETDESC 401", f"{folder}/SECRETDESC 401 (2)"]
    assert {key[0] for key in marks(tmp_path)} == {names["1.2.3.2"]}


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


@pytest.mark.parametrize("kind", ["dicom-seg", "rtstruct"])
def test_files_with_one_slice_each_are_joined(import_files, tmp_path, kind):
    volume = a_patient(tmp_path / "ct")
    files = [
        segmented(tmp_path / f"{z}.dcm", volume, [Structure("node", box(z, z + 1, 5, 15, 5, 9 + z))], kind)
        for z in (4, 1, 2)
    ]
    output = import_files(tmp_path / "ct", *files, "--annotator", "anna")
    assert "joined to one mask: node by anna (3)." in output
    assert "0 masks" not in output
    assert list(marks(tmp_path).values()) == [10 * (5 + 6 + 8)]
    joined = box(1, 2, 5, 15, 5, 10) | box(2, 3, 5, 15, 5, 11) | box(4, 5, 5, 15, 5, 13)
    with Study.open(tmp_path / "s.rscope") as study:
        stored = read_masks(study, study.images()[0].id, "node")["anna"]
    np.testing.assert_array_equal(stored.values, joined[slices_of(stored.origin, stored.values.shape)])


def test_two_files_of_one_rater_on_a_slice_or_on_several_slices_are_refused(import_files, tmp_path):
    volume = a_patient(tmp_path / "ct")
    first = segmented(tmp_path / "1.dcm", volume, [Structure("node", box(1, 2, 5, 15, 5, 15))])
    for begin, end in ((1, 2), (2, 4)):
        second = segmented(tmp_path / "2.dcm", volume, [Structure("node", box(begin, end, 5, 9, 5, 9))])
        output = import_files(tmp_path / "ct", first, second, "--annotator", "anna")
        assert "expected one mask by each annotator" in output


def test_without_their_series_segmentations_of_different_slices_are_one_case(import_files, tmp_path):
    volume = a_patient(tmp_path / "ct")
    boxes = {"anna": box(2, 4, 5, 15, 5, 15), "ben": box(1, 3, 5, 15, 5, 15), "carl": box(3, 5, 5, 15, 5, 15)}
    files = [
        edited(
            segmented(tmp_path / f"{name}.dcm", volume, [Structure("node", mask)]), ContentCreatorName=name
        )
        for name, mask in boxes.items()
    ]
    import_files(*files)
    with Study.open(tmp_path / "s.rscope") as study:
        (image,) = study.images()
        stored = read_masks(study, image.id, "node")
    first = image.lattice.to_patient(np.zeros(3))
    np.testing.assert_allclose(first, volume.grid.to_patient(np.array([1.0, 0.0, 0.0])), atol=1e-3)
    assert image.lattice.shape == (4, *volume.grid.shape[1:])
    for name, mask in boxes.items():
        origin, values = stored[name].origin, stored[name].values
        assert values.sum() == mask.sum()
        np.testing.assert_array_equal(values, mask[1:5][slices_of(origin, values.shape)])
