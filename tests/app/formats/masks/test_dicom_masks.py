"""Segmentations and structure sets of other programs."""

from collections.abc import Callable
from pathlib import Path

import highdicom
import nrrd
import numpy as np
import pydicom
import pytest
from pydicom.sr.codedict import codes
from pydicom.uid import generate_uid

from raterscope.app.errors import InputError
from raterscope.app.formats.masks import holds_masks, read_masks
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.dicom_builder import disc, disc_mask, write_contours, write_series

SHAPE = (4, 20, 30)
Edit = Callable[[pydicom.Dataset], None]


@pytest.fixture
def contours(tmp_path: Path, series: Callable[..., VolumeFile]):
    """Write a structure set with two squares in two slices, each at its own place, edited."""
    volume = series(SHAPE)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[1, 5:9, 6:12] = True
    mask[2, 3:7, 8:14] = True

    def make(edit: Edit) -> Path:
        (path,) = write_masks(
            tmp_path / "a", "rtstruct", [Structure("liver_anna", mask)], volume.grid, source=volume
        )
        dataset = pydicom.dcmread(path)
        edit(dataset)
        dataset.save_as(path)
        return path

    return make, volume, mask


def first(dataset: pydicom.Dataset) -> pydicom.Dataset:
    return dataset.ROIContourSequence[0].ContourSequence[0]


def shifted(dataset: pydicom.Dataset, by: float, axis: int = 2) -> None:
    positions = np.array(first(dataset).ContourData, dtype=float).reshape(-1, 3)
    positions[:, axis] += by
    first(dataset).ContourData = [f"{value:.3f}" for value in positions.ravel()]


def test_whose_contours_they_are(contours) -> None:
    make, volume, mask = contours
    path = make(lambda _: None)
    assert holds_masks(path) is True
    (rater_mask,) = read_masks(path, [volume], annotator="cy").masks
    assert (rater_mask.annotator, rater_mask.structure) == ("cy", "liver_anna")
    (rater_mask,) = read_masks(path, [volume], naming="{structure}_{annotator}").masks
    assert (rater_mask.annotator, rater_mask.structure) == ("anna", "liver")
    path = make(lambda dataset: setattr(dataset, "OperatorsName", "Bob^B"))
    assert read_masks(path, [volume]).masks[0].annotator == "Bob B"
    np.testing.assert_array_equal(rater_mask.whole(), mask)


@pytest.mark.parametrize("kind", ["rtstruct", "dicom-seg"])
@pytest.mark.parametrize(
    ("names", "words"),
    [((), ""), (("PatientID",), "patient ID"), (("FrameOfReferenceUID",), "frame of reference"),
     (("PatientID", "FrameOfReferenceUID"), "patient ID and frame of reference")],
)  # fmt: skip
def test_masks_of_another_patient_are_placed_with_a_notice(
    tmp_path: Path, series: Callable[..., VolumeFile], kind: str, names: tuple[str, ...], words: str
) -> None:
    volume, mask = series(SHAPE), np.zeros(SHAPE, dtype=bool)
    mask[1, 5:9, 6:12] = True
    (path,) = write_masks(tmp_path / "a", kind, [Structure("liver", mask)], volume.grid, source=volume)
    dataset = pydicom.dcmread(path)
    for element in dataset.iterall():
        if element.keyword.removeprefix("Referenced") in names:
            element.value = "1.2.3"
    dataset.save_as(path)
    table = read_masks(path, [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), mask)
    notices = [notice for notice in table.notices if notice.startswith("Has another")]
    assert len(notices) == bool(names)
    assert all(notice.startswith(f"Has another {words} than ") for notice in notices)


def test_the_series_is_requested(contours, series: Callable[..., VolumeFile]) -> None:
    make, volume, mask = contours
    path = make(lambda _: None)
    for volumes in ([], [series((4, 20, 30), PatientID="x"), series((2, 9, 9))]):
        with pytest.raises(InputError, match=f"drawn on the series {volume.identifier}"):
            read_masks(path, volumes)
    with pytest.raises(InputError, match="the available volumes are others"):
        read_masks(path, [series((2, 9, 9))])
    fitting = read_masks(path, [series(SHAPE, FrameOfReferenceUID=volume.frame_of_reference)])
    np.testing.assert_array_equal(fitting.masks[0].whole(), mask)
    assert "every contour fits" in fitting.notices[0]


def test_contours_between_slices(contours) -> None:
    make, volume, mask = contours
    table = read_masks(make(lambda dataset: shifted(dataset, 1.0)), [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), mask)
    assert table.notices == ("1 contour is between slices and was moved to the nearest slice.",)


def test_a_contour_belongs_to_the_slice_it_refers_to(contours) -> None:
    make, volume, mask = contours
    table = read_masks(make(lambda dataset: shifted(dataset, 100.0)), [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), mask)
    assert table.notices == (
        "1 contour is off the slice that it refers to, and was placed on that slice "
        "(liver_anna, contour 1 at 157.50 mm, 100.00 mm from the slice).",
    )


def test_a_contour_beyond_the_slices_is_listed(contours) -> None:
    make, volume, _ = contours

    def beyond(dataset: pydicom.Dataset) -> None:
        shifted(dataset, 100.0)
        del first(dataset).ContourImageSequence

    table = read_masks(make(beyond), [volume])
    assert table.masks[0].whole().any(axis=(1, 2)).tolist() == [False, False, True, False]
    assert table.notices == (
        "1 contour could not be placed: it is beyond the image's slices "
        "(liver_anna, contour 1 at 157.50 mm).",
    )


def test_what_is_no_closed_contour_is_left_out(contours) -> None:
    make, volume, _ = contours
    path = make(lambda dataset: setattr(first(dataset), "ContourGeometricType", "OPEN_PLANAR"))
    table = read_masks(path, [volume])
    assert table.masks[0].values.shape[0] == 1
    assert table.notices == ("Skipped: open contours 1.",)

    def points(dataset: pydicom.Dataset) -> None:
        for contour in dataset.ROIContourSequence[0].ContourSequence:
            contour.ContourGeometricType = "POINT"

    with pytest.raises(InputError, match=r"no closed contours .*\(points 2\)"):
        read_masks(make(points), [volume])

    def upright(dataset: pydicom.Dataset) -> None:
        first(dataset).ContourData = ["-20", "20", "55", "-20", "20", "62", "-20", "25", "60"]

    assert read_masks(make(upright), [volume]).notices == ("Skipped: contours across the slices 1.",)


@pytest.mark.parametrize(("kind", "is_hole"), [("CLOSED_PLANAR", False), ("CLOSEDPLANAR_XOR", True)])
def test_a_contour_that_occurs_twice_is_no_hole(contours, kind: str, is_hole: bool) -> None:
    make, volume, mask = contours

    def twice(dataset: pydicom.Dataset) -> None:
        first(dataset).ContourGeometricType = kind
        dataset.ROIContourSequence[0].ContourSequence.append(first(dataset))

    table = read_masks(make(twice), [volume])
    expected = mask & (np.arange(SHAPE[0]) != 1)[:, None, None] if is_hole else mask
    np.testing.assert_array_equal(table.masks[0].whole(), expected)
    notice = (
        "1 contour occurs a second time in the file and was read once (liver_anna, contour 3 at 57.50 mm)."
    )
    assert table.notices == (() if is_hole else (notice,))


def test_positions_that_are_none(contours) -> None:
    make, volume, _ = contours
    with pytest.raises(InputError, match="field ContourData"):
        read_masks(make(lambda dataset: setattr(first(dataset), "ContourData", ["1", "2"])), [volume])


def test_contours_of_a_phantom(real_data: Path) -> None:
    """A ring's two contours leave a hole; the areas are those of the polygons to a hundredth."""
    folder = real_data / "formats/dicom/rtstruct"
    volumes = find_volumes(folder)
    dataset = pydicom.dcmread(folder / "dummy_rt.dcm")
    table = read_masks(folder / "dummy_rt.dcm", volumes)
    for roi, mask in zip(dataset.ROIContourSequence, table.masks, strict=True):
        if len(roi.ContourSequence) == 3:
            area = 0.0
            for contour in roi.ContourSequence:
                x, y, z = np.array(contour.ContourData, dtype=float).reshape(-1, 3).T
                area += (z[0] < 66) * abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2
            pixel = mask.grid.spacing[1] * mask.grid.spacing[2]
            assert mask.values.sum() * pixel == pytest.approx(area, rel=0.01)


def test_segmentations_and_their_nrrd_twins(real_data: Path) -> None:
    folder = real_data / "formats/dicom/seg_dcmqi"
    volumes = find_volumes(folder)
    (liver,) = read_masks(folder / "liver.dcm", volumes).masks
    assert (liver.structure, liver.annotator) == ("Liver", "SlicerEditor")
    np.testing.assert_array_equal(liver.whole(), nrrd.read(str(folder / "liver_seg.nrrd"))[0].T == 1)
    assert liver.grid.same_as(volumes[0].grid)
    assert read_masks(folder / "liver_seg.nrrd").masks[0].grid.same_as(volumes[0].grid)
    parts = read_masks(folder / "partial_overlaps.dcm", volumes).masks
    twin = nrrd.read(str(folder / "partial_overlaps-1.nrrd"))[0].T
    for label in (1, 4, 5):
        np.testing.assert_array_equal(parts[label - 1].whole(), twin == label)
    assert (parts[0].whole() & parts[1].whole()).any()


@pytest.mark.parametrize("name", ["seg_image_ct_binary", "seg_image_ct_true_fractional"])
def test_segmentations_as_highdicom_reads_them(real_data: Path, name: str) -> None:
    path = real_data / f"formats/dicom/seg_highdicom/{name}.dcm"
    (mask,) = read_masks(path).masks
    volume = highdicom.seg.segread(path).get_volume(combine_segments=False)
    array = volume.array[..., 0]
    order = [volume.map_indices_to_reference(np.array([[at, 0, 0]]))[0] for at in range(len(array))]
    for at, position in enumerate(order):
        index = mask.grid.to_index(position)
        np.testing.assert_allclose(index[1:], 0, atol=1e-3)
        np.testing.assert_allclose(mask.whole()[round(float(index[0]))], array[at], atol=1e-6)


def test_a_label_map_with_missing_slices(real_data: Path) -> None:
    path = real_data / "formats/dicom/seg_dcmqi/sparse-labelmap-ppv5.dcm"
    (liver,) = read_masks(path).masks
    assert (liver.structure, liver.annotator, liver.grid.shape) == ("Liver", "Doe John", (3, 38, 24))
    assert liver.whole().any(axis=(1, 2)).tolist() == [True, False, True]
    seg = highdicom.seg.segread(path)
    volume = seg.get_volume(combine_segments=False, allow_missing_positions=True)
    array = volume.array[..., list(seg.segment_numbers).index(1)]
    for at in range(len(array)):
        index = liver.grid.to_index(volume.map_indices_to_reference(np.array([[at, 0, 0]]))[0])
        np.testing.assert_allclose(index, np.rint(index), atol=1e-3)
        np.testing.assert_array_equal(liver.whole()[round(float(index[0]))], array[at] > 0)


def test_a_label_map_of_several_segments(tmp_path: Path, series: Callable[..., VolumeFile], blobs) -> None:
    needed = ("PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID", "StudyTime")
    volume = series(SHAPE, ReferringPhysicianName="", **dict.fromkeys(needed, ""))
    labels = np.where(blobs(SHAPE), 1, 0).astype(np.uint8)
    labels[2:, 14:, 20:] = 2
    segments = [
        highdicom.seg.SegmentDescription(
            number, name, codes.SCT.AnatomicalStructure, code, "MANUAL",
            display_color=highdicom.color.CIELabColor.from_rgb(*colour),
        )
        for number, name, code, colour in (
            (1, "pump", codes.SCT.Heart, (200, 10, 20)), (2, "left kidney", codes.SCT.Kidney, (5, 90, 250))
        )
    ]  # fmt: skip
    seg = highdicom.seg.Segmentation(
        [pydicom.dcmread(file) for file in volume.files], labels, "LABELMAP", segments,
        series_instance_uid=generate_uid(), series_number=7, sop_instance_uid=generate_uid(),
        instance_number=1, manufacturer="Maker", manufacturer_model_name="Model", software_versions="1",
        device_serial_number="1",
    )  # fmt: skip
    seg.save_as(tmp_path / "map.dcm")
    read = read_masks(tmp_path / "map.dcm", [volume]).masks
    assert [
        (rater_mask.structure, rater_mask.coding.type.meaning, rater_mask.coding.colour)
        for rater_mask in read
    ] == [
        ("pump", "Heart", (200, 10, 20)),
        ("left kidney", "Kidney", (5, 90, 250)),
    ]
    for label, mask in enumerate(read, 1):
        assert mask.grid.same_as(volume.grid)
        np.testing.assert_array_equal(mask.whole(), labels == label)


@pytest.mark.parametrize("kind", ["BINARY", "LABELMAP"])
def test_segments_without_a_description_are_named(
    tmp_path: Path, series: Callable[..., VolumeFile], kind: str
) -> None:
    volume = series(SHAPE)
    box = np.zeros((2, *SHAPE), dtype=bool)
    box[0, :2], box[1, 2:] = True, True
    structures = [Structure("a", box[0]), Structure("b", box[1])]
    (path,) = write_masks(tmp_path / "a", "dicom-seg", structures, volume.grid, source=volume)
    dataset = pydicom.dcmread(path)
    if kind == "LABELMAP":
        dataset.SegmentationType, dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = kind, 8, 8, 7
        labels = np.where(np.arange(dataset.NumberOfFrames) < 2, 1, 2).astype(np.uint8)
        dataset.PixelData = np.broadcast_to(labels[:, None, None], (len(labels), *SHAPE[1:])).tobytes()
    del dataset.SegmentSequence[1]
    dataset.save_as(path)
    table = read_masks(path, [volume])
    assert [mask.structure for mask in table.masks] == ["a"]
    assert table.notices[0] == "Skipped: segment 2, which the file marks but does not describe."


@pytest.mark.parametrize(("shift", "is_same"), [((0, 0, 1.2), True), ((3, 0, 0), False), ((0, 0.1, 0), True)])
def test_frames_beside_the_images_that_they_refer_to(
    tmp_path: Path, series: Callable[..., VolumeFile], shift: tuple[float, ...], is_same: bool
) -> None:
    """A shift along the normal may come from another slice distance, one within the plane may not."""
    volume = series(SHAPE)
    mask = [Structure("a", np.ones(SHAPE, dtype=bool))]
    (path,) = write_masks(tmp_path / "a", "dicom-seg", mask, volume.grid, source=volume)
    dataset = pydicom.dcmread(path)
    for frame in dataset.PerFrameFunctionalGroupsSequence:
        position = frame.PlanePositionSequence[0]
        shifted = np.array(position.ImagePositionPatient, dtype=float) + shift
        position.ImagePositionPatient = [f"{value:.4f}" for value in shifted]
    dataset.save_as(path)
    (read,) = read_masks(path, [volume]).masks
    assert read.grid.same_as(volume.grid) is is_same
    moved = read.grid.to_patient(np.zeros(3)) - volume.grid.to_patient(np.zeros(3))
    np.testing.assert_allclose(moved, np.zeros(3) if is_same else shift, atol=1e-3)


def test_slides_are_refused(real_data: Path) -> None:
    path = real_data / "formats/dicom/seg_highdicom/seg_image_sm_control.dcm"
    with pytest.raises(InputError, match="tiles of a slide"):
        read_masks(path)


def test_a_segmentation_that_is_damaged(tmp_path: Path, series: Callable[..., VolumeFile]) -> None:
    volume = series(SHAPE)
    mask = [Structure("a", np.ones(SHAPE, dtype=bool))]
    (path,) = write_masks(tmp_path / "a", "dicom-seg", mask, volume.grid, source=volume)

    def edited(edit: Edit) -> Path:
        dataset = pydicom.dcmread(path)
        edit(dataset)
        dataset.save_as(tmp_path / "edited.dcm")
        return tmp_path / "edited.dcm"

    def cut(dataset: pydicom.Dataset) -> None:
        dataset.PixelData = dataset.PixelData[:40]

    def uneven(dataset: pydicom.Dataset) -> None:
        frame = dataset.PerFrameFunctionalGroupsSequence[1].PlanePositionSequence[0]
        frame.ImagePositionPatient = [-30, 12, 56.9]

    def turned(dataset: pydicom.Dataset) -> None:
        own = pydicom.Dataset()
        own.ImageOrientationPatient = [0, 1, 0, 0, 0, 1]
        dataset.PerFrameFunctionalGroupsSequence[1].PlaneOrientationSequence = [own]

    for edit, words in (
        (cut, "cut short"),
        (uneven, "uneven distances"),
        (turned, "not parallel"),
        (lambda dataset: setattr(dataset, "Rows", 60_000), "cut short"),
        (lambda dataset: setattr(dataset, "NumberOfFrames", 2_000_000_000), "claims 2,000,000,000 frames"),
        (lambda dataset: delattr(dataset, "SegmentSequence"), "damaged"),
        (lambda dataset: dataset.SegmentSequence.append(dataset.SegmentSequence[0]), "several segments"),
    ):
        with pytest.raises(InputError, match=words):
            read_masks(edited(edit))
    assert holds_masks(volume.files[0]) is False


@pytest.mark.parametrize(
    ("radius", "column", "kind", "is_listed"),
    [
        (4.0, 24.0, "CLOSED_PLANAR", True),
        (4.0, 24.0, "CLOSEDPLANAR_XOR", False),  # the file states the rule
        (3.0, 19.5, "CLOSED_PLANAR", False),  # a hole
        (3.0, 30.0, "CLOSED_PLANAR", False),  # a second part
    ],
)
def test_contours_that_overlap_in_part_are_listed(
    tmp_path: Path, radius: float, column: float, kind: str, is_listed: bool
) -> None:
    series = write_series(tmp_path / "ct")
    discs = [disc(series, 5, 6.0), disc(series, 5, radius, (15.5, column)), disc(series, 6, 6.0)]
    path = write_contours(tmp_path / "a.dcm", series, {"tumour": discs}, rater="anna")
    dataset = pydicom.dcmread(path)
    for contour in dataset.ROIContourSequence[0].ContourSequence:
        contour.ContourGeometricType = kind
    dataset.save_as(path)
    table = read_masks(path, find_volumes(series.folder))
    both = disc_mask((32, 40), 6.0) ^ disc_mask((32, 40), radius, (15.5, column))
    np.testing.assert_array_equal(table.masks[0].whole()[5], both)
    assert [notice.partition(".")[0] for notice in table.notices] == [
        "2 contours of one structure and slice overlap in part"
    ] * is_listed
    assert not is_listed or "tumour by anna: contour 1 at 52.50 mm, contour 2" in table.notices[0]


def test_structures_without_contours_are_listed(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct")
    drawn = {"tumour": [disc(series, 5, 6.0)], "node": [], "heart": []}
    path = write_contours(tmp_path / "a.dcm", series, drawn, rater="anna")
    table = read_masks(path, find_volumes(series.folder))
    assert [mask.structure for mask in table.masks] == ["tumour"]
    (notice,) = table.notices
    assert notice.startswith("Not read, because no contour marks a pixel: node by anna, heart by anna.")


@pytest.mark.parametrize("kind", ["rtstruct", "dicom-seg"])
def test_masks_of_another_series_and_frame_of_reference_are_refused(
    tmp_path: Path, series: Callable[..., VolumeFile], kind: str
) -> None:
    volume, mask = series(SHAPE), np.zeros(SHAPE, dtype=bool)
    mask[1, 5:9, 6:12] = True
    (path,) = write_masks(tmp_path / "a", kind, [Structure("liver", mask)], volume.grid, source=volume)
    of_patient = series(SHAPE, FrameOfReferenceUID=volume.frame_of_reference)
    assert read_masks(path, [of_patient]).masks
    other = series(SHAPE, FrameOfReferenceUID="1.2.3")
    with pytest.raises(
        InputError, match=f"drawn on the series {volume.identifier}; the available volumes are"
    ):
        read_masks(path, [other])


def test_a_segmentation_without_a_series_belongs_to_its_frame_of_reference(
    tmp_path: Path, series: Callable[..., VolumeFile]
) -> None:
    patients, mask = [series(SHAPE), series(SHAPE)], np.zeros(SHAPE, dtype=bool)
    mask[1, 5:9, 6:12] = True
    for volume in patients:
        (path,) = write_masks(
            tmp_path / "a", "dicom-seg", [Structure("liver", mask)], volume.grid, source=volume
        )
        dataset = pydicom.dcmread(path)
        del dataset.ReferencedSeriesSequence
        for frame in dataset.PerFrameFunctionalGroupsSequence:
            del frame.DerivationImageSequence
        dataset.save_as(path)
        assert read_masks(path, patients).masks[0].item == volume.identifier
