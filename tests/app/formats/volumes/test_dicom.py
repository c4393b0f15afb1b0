"""DICOM series: order, geometry, values, and notices about unusual ones."""

import io
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
import SimpleITK
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.uid import UID

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats.volumes import find_volumes, load_volume
from tests.app.formats.volumes.made_dicom import COLUMNS, ROWS, enhanced, image, save

RNG = np.random.default_rng(3)
SLICES = RNG.integers(-1000, 2000, (6, ROWS, COLUMNS)).astype(np.int16)
NAMES = "fcadbe"


def series(folder: Path, heights=(0.0, 2.0, 4.0, 6.0, 8.0, 10.0), **tags) -> Path:
    """Write slices under names and numbers that tell nothing of their order."""
    for k, height in enumerate(heights):
        own = {"RescaleSlope": 1, "RescaleIntercept": -24, "InstanceNumber": 7 - k, **tags}
        save(image(SLICES[k], (1.0, 2.0, height), **own), folder / f"{NAMES[k]}.dcm")
    return folder


def only(path: Path):
    volumes = find_volumes(path)
    assert len(volumes) == 1
    return volumes[0]


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        find_volumes(path)
    words = str(caught.value)
    assert words.endswith(".")
    assert "\n" not in words
    return words


def itk_series(paths) -> SimpleITK.Image:
    reader = SimpleITK.ImageSeriesReader()
    reader.SetFileNames([str(path) for path in paths])
    return reader.Execute()


def itk_affine(volume: SimpleITK.Image) -> np.ndarray:
    rank = volume.GetDimension()
    turned = np.array(volume.GetDirection()).reshape(rank, rank) * volume.GetSpacing()
    return np.column_stack([turned, volume.GetOrigin()])


def test_slices_are_sorted_by_place_and_rescaled(tmp_path: Path) -> None:
    file = only(series(tmp_path))
    volume = load_volume(file)
    assert volume.values.dtype == np.int16
    np.testing.assert_array_equal(volume.values, SLICES - 24)
    assert file.grid.spacing == pytest.approx((2.0, 0.5, 0.25))
    np.testing.assert_allclose(file.grid.to_patient(np.array([5, 1, 2])), [1.5, 2.5, 10.0])
    assert [pydicom.dcmread(path).SOPInstanceUID for path in file.files] == list(file.instances)
    assert file.identifier == "1.2.3.4"
    assert file.modality == volume.modality == "CT"
    assert not file.notices


def test_itk_reads_the_same(tmp_path: Path) -> None:
    file = only(series(tmp_path))
    theirs = itk_series(file.files)
    np.testing.assert_array_equal(load_volume(file).values, SimpleITK.GetArrayFromImage(theirs))
    np.testing.assert_allclose(itk_affine(theirs), file.grid.matrix[:3], atol=1e-6)


def test_one_slice_opens_its_series_and_no_other(tmp_path: Path) -> None:
    series(tmp_path)
    save(image(SLICES[0], SeriesInstanceUID="1.2.3.5"), tmp_path / "other.dcm")
    assert only(tmp_path / "a.dcm").grid.shape == (6, ROWS, COLUMNS)
    assert only(tmp_path / "other.dcm").grid.shape == (1, ROWS, COLUMNS)
    assert len(find_volumes(tmp_path)) == 2


def test_the_patient_is_not_named(tmp_path: Path) -> None:
    file = only(series(tmp_path))
    assert file.name == "thorax 3"
    for hidden in ("Secret", "Person", "PID-4711"):
        assert hidden not in repr(file)


def test_missing_slices_are_named_by_place(tmp_path: Path) -> None:
    file = only(series(tmp_path, (0.0, 2.0, 4.0, 10.0, 12.0, 14.0)))
    (notice,) = file.notices
    assert (
        "2 slices are missing between 4.0 and 10.0 mm. Contours near the gap may be misplaced; "
        "volumes leave the gap out." in notice
    )
    assert file.grid.spacing[0] == pytest.approx(2.0)
    assert file.grid.gaps == ((2, 2),)
    np.testing.assert_allclose(file.grid.to_patient(np.array([3, 0, 0])), [1.0, 2.0, 10.0])


def test_uneven_distances_are_reported(tmp_path: Path) -> None:
    file = only(series(tmp_path, (0.0, 1.1, 4.0, 7.4, 9.0, 12.0)))
    (notice,) = file.notices
    assert "Slice distance varies from 1.10 to 3.40 mm." in notice
    assert file.grid.spacing[0] == pytest.approx(2.9)
    for slice_, height in enumerate((0.0, 1.1, 4.0, 7.4, 9.0, 12.0)):
        np.testing.assert_allclose(file.grid.to_patient(np.array([slice_, 0, 0])), [1.0, 2.0, height])


def test_tilt_is_reported_and_kept(tmp_path: Path) -> None:
    for k in range(6):
        save(image(SLICES[k], (0.0, 1.0 * k, 2.0 * k)), tmp_path / f"{k}.dcm")
    file = only(tmp_path)
    (notice,) = file.notices
    assert "tilted by 26.6 degrees" in notice
    for k in range(6):
        np.testing.assert_allclose(file.grid.to_patient(np.array([k, 0, 0])), [0, k, 2 * k], atol=1e-9)


def test_copies_are_skipped_with_a_notice(tmp_path: Path) -> None:
    series(tmp_path)
    (tmp_path / "copy.dcm").write_bytes((tmp_path / "a.dcm").read_bytes())
    file = only(tmp_path)
    assert file.grid.shape[0] == 6
    assert "1 file is a copy" in file.notices[0]


def test_a_repeated_scan_is_as_many_volumes(tmp_path: Path) -> None:
    series(tmp_path, AcquisitionNumber=1)
    for k in range(6):
        repeated = image(SLICES[k] + 1, (1.0, 2.0, 2.0 * k), AcquisitionNumber=2)
        save(repeated, tmp_path / f"again{k}.dcm")
    first, second = find_volumes(tmp_path)
    np.testing.assert_array_equal(load_volume(first).values, SLICES - 24)
    np.testing.assert_array_equal(load_volume(second).values, SLICES + 1)
    assert "2 images have the same position everywhere" in first.notices[0]
    assert first.name != second.name


def test_slices_that_share_an_identifier_are_kept(tmp_path: Path) -> None:
    series(tmp_path, SOPInstanceUID="1.2.3.4.5")
    file = only(tmp_path)
    assert file.grid.shape[0] == 6
    assert "different positions have one identifier" in file.notices[0]


def test_two_patients_in_one_series_are_two_volumes(tmp_path: Path) -> None:
    for k in range(6):
        patient = "A" if k < 3 else "B"
        save(image(SLICES[k], (1.0, 2.0, 2.0 * k), PatientID=patient), tmp_path / f"{k}.dcm")
    first, second = find_volumes(tmp_path)
    assert "mixes images of 2 patients: it is 2 volumes" in first.notices[0]
    np.testing.assert_array_equal(load_volume(first).values, SLICES[:3])
    np.testing.assert_array_equal(load_volume(second).values, SLICES[3:])


def test_two_modalities_in_one_series_are_two_volumes(tmp_path: Path) -> None:
    for k in range(6):
        modality = "CT" if k < 3 else "PT"
        save(image(SLICES[k], (1.0, 2.0, 2.0 * k), Modality=modality), tmp_path / f"{k}.dcm")
    volumes = find_volumes(tmp_path)
    assert [volume.modality for volume in volumes] == ["CT", "PT"]
    assert all(
        "mixes images of several modalities (CT, PT): it is 2 volumes" in v.notices[0] for v in volumes
    )


@pytest.mark.parametrize(
    ("slope", "words"),
    [(0, "states a rescale slope of 0"), (None, "states a rescale intercept without a slope")],
)
def test_a_scale_without_a_usable_slope_gives_a_notice(tmp_path: Path, slope, words: str) -> None:
    folder = series(tmp_path, RescaleIntercept=10)
    for path in folder.iterdir():
        data = pydicom.dcmread(path)
        data.RescaleSlope = slope
        data.save_as(path)
    file = only(folder)
    assert file.notices == (f"thorax 3: {words}; slope 1 is used, check the values.",)
    assert int(load_volume(file).values[0, 0, 0]) == int(SLICES[0, 0, 0]) + 10


def test_an_unknown_compression_is_named_before_pixels_are_read(tmp_path: Path) -> None:
    file = only(packed(tmp_path / "a.dcm", b"\0" * 99, "1.2.840.10008.1.2.4.102"))
    assert "unsupported compression MPEG-4 AVC/H.264 High Profile" in file.notices[-1]
    with pytest.raises(InputError, match="unsupported compression MPEG-4"):
        load_volume(file)


def test_a_slice_at_the_place_of_another_is_skipped_with_a_notice(tmp_path: Path) -> None:
    series(tmp_path)
    save(image(SLICES[0], (1.0, 2.0, 4.0), InstanceNumber=90), tmp_path / "z.dcm")
    file = only(tmp_path)
    assert file.grid.shape[0] == 6
    assert "4.00 mm" in file.notices[0]


def test_a_scout_in_the_series_is_a_volume_of_its_own(tmp_path: Path) -> None:
    series(tmp_path)
    scout = image(SLICES[0], (0.0, 0.0, 0.0), ImageOrientationPatient=[0, 1, 0, 0, 0, -1])
    save(scout, tmp_path / "scout.dcm")
    volumes = find_volumes(tmp_path)
    assert [file.grid.shape[0] for file in volumes] == [6, 1]
    assert all("mixes" in file.notices[0] for file in volumes)


def test_images_without_a_place_are_taken_by_number(tmp_path: Path) -> None:
    for k in range(3):
        save(image(SLICES[k], None, InstanceNumber=3 - k), tmp_path / f"{k}.dcm")
    file = only(tmp_path)
    assert not file.grid.calibrated
    assert "does not contain the positions" in file.notices[0]
    np.testing.assert_array_equal(load_volume(file).values, SLICES[2::-1])


def test_frames_have_their_own_place_and_scale(tmp_path: Path) -> None:
    data = enhanced(SLICES[:4], [6.0, 2.0, 4.0, 0.0], [1, 2, 3, 4])
    file = only(save(data, tmp_path / "frames.dcm"))
    assert file.grid.spacing == pytest.approx((2.0, 0.5, 0.25))
    np.testing.assert_allclose(file.grid.to_patient(np.zeros(3)), [1.0, 2.0, 0.0])
    expected = SLICES[[3, 1, 2, 0]] + np.array([4, 2, 3, 1])[:, None, None]
    np.testing.assert_array_equal(load_volume(file).values, expected)


def test_frames_of_two_times_are_two_volumes(tmp_path: Path) -> None:
    data = enhanced(SLICES, [0.0, 2.0, 4.0, 0.0, 2.0, 4.0], [0] * 6)
    first, second = find_volumes(save(data, tmp_path / "frames.dcm"))
    np.testing.assert_array_equal(load_volume(first).values, SLICES[:3])
    np.testing.assert_array_equal(load_volume(second).values, SLICES[3:])


def test_overlays_in_unused_bits_are_not_shown(tmp_path: Path) -> None:
    pixels = RNG.integers(-2048, 2048, (ROWS, COLUMNS))
    stored = ((pixels & 0xFFF) | 0x7000).astype(np.uint16)
    data = image(stored, BitsStored=12, HighBit=11, PixelRepresentation=1)
    np.testing.assert_array_equal(load_volume(only(save(data, tmp_path / "o.dcm"))).values[0], pixels)


def test_values_of_16_bits_are_kept(tmp_path: Path) -> None:
    pixels = np.array([[0, 1, 40000, 65535]], dtype=np.uint16)
    volume = load_volume(only(save(image(pixels, Modality="MR"), tmp_path / "m.dcm")))
    np.testing.assert_array_equal(volume.values[0], pixels)
    ct = load_volume(only(save(image(pixels, SeriesInstanceUID="1.9"), tmp_path / "c.dcm")))
    np.testing.assert_array_equal(ct.values[0], [[0, 1, 32767, 32767]])


def test_scales_that_are_no_whole_numbers_give_floats(tmp_path: Path) -> None:
    series(tmp_path, RescaleSlope=0.5, Modality="PT")
    values = load_volume(only(tmp_path)).values
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, SLICES * 0.5 - 24)


def test_bright_is_high_in_monochrome1_and_the_window_goes_with_it(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 4096, (ROWS, COLUMNS)).astype(np.uint16)
    tags = {"PhotometricInterpretation": "MONOCHROME1", "BitsStored": 12, "HighBit": 11, "Modality": "CR"}
    data = image(pixels, **tags, WindowCenter=1000, WindowWidth=400)
    file = only(save(data, tmp_path / "m.dcm"))
    np.testing.assert_array_equal(load_volume(file).values[0], 4095 - pixels)
    assert file.window == (3095.0, 400.0)


def test_colours_come_in_rgb(tmp_path: Path) -> None:
    colours = RNG.integers(0, 256, (ROWS, COLUMNS, 3)).astype(np.uint8)
    file = only(save(image(colours, None, Modality="OT"), tmp_path / "rgb.dcm"))
    np.testing.assert_array_equal(load_volume(file).values, colours[None])
    planes = image(colours, None, Modality="OT", PlanarConfiguration=1)
    planes.PixelData = np.moveaxis(colours, -1, 0).tobytes()
    planes.SeriesInstanceUID = "1.7"
    file = only(save(planes, tmp_path / "planes.dcm"))
    np.testing.assert_array_equal(load_volume(file).values, colours[None])


PACKED = {
    "1.2.840.10008.1.2.4.70": lambda a: imagecodecs.ljpeg_encode(a, bitspersample=12),
    "1.2.840.10008.1.2.4.80": imagecodecs.jpegls_encode,
    "1.2.840.10008.1.2.4.90": lambda a: imagecodecs.jpeg2k_encode(a, codecformat="j2k", reversible=True),
}


@pytest.mark.parametrize("syntax", PACKED, ids=lambda syntax: UID(syntax).name)
def test_packed_pixels_are_the_same(tmp_path: Path, syntax: str) -> None:
    pixels = RNG.integers(0, 4096, (2, 16, 24)).astype(np.uint16)
    for k in range(2):
        data = image(pixels[k], (0, 0, 2.0 * k), BitsStored=12, HighBit=11, RescaleIntercept=-1000)
        data.RescaleSlope = 1
        data.PixelData = encapsulate([PACKED[syntax](pixels[k])])
        data["PixelData"].VR = "OB"
        data["PixelData"].is_undefined_length = True
        save(data, tmp_path / f"{k}.dcm", syntax)
    np.testing.assert_array_equal(load_volume(only(tmp_path)).values, pixels.astype(int) - 1000)


def packed(path: Path, stream: bytes, syntax: str, claimed: int = 16) -> Path:
    data = image(np.zeros((claimed, claimed), np.uint8))
    data.PixelData = encapsulate([stream])
    data["PixelData"].VR = "OB"
    data["PixelData"].is_undefined_length = True
    return save(data, path, syntax)


def test_an_unknown_codec_is_named(tmp_path: Path) -> None:
    file = only(packed(tmp_path / "v.dcm", b"\0" * 32, "1.2.840.10008.1.2.4.100"))
    with pytest.raises(InputError, match="MPEG2"):
        load_volume(file)


def test_a_damaged_stream_is_a_sentence(tmp_path: Path) -> None:
    good = imagecodecs.jpegls_encode(np.zeros((16, 16), np.uint8))
    file = only(packed(tmp_path / "d.dcm", good[:20] + b"\xff" * 20, "1.2.840.10008.1.2.4.80"))
    with pytest.raises(InputError, match="damaged"):
        load_volume(file)


def test_a_stream_larger_than_its_header_is_not_decoded(tmp_path: Path) -> None:
    large = imagecodecs.jpeg2k_encode(np.zeros((640, 640), np.uint8), codecformat="j2k")
    file = only(packed(tmp_path / "l.dcm", large, "1.2.840.10008.1.2.4.90"))
    with pytest.raises(InputError, match="another shape"):
        load_volume(file)


def test_one_decoder_reads_file_after_file_until_one_is_damaged(tmp_path: Path) -> None:
    def read(name: str, stream: bytes) -> set[int]:
        (tmp_path / name).mkdir()
        file = only(packed(tmp_path / name / "a.dcm", stream, "1.2.840.10008.1.2.4.80"))
        with suppress(InputError):
            load_volume(file)
        return {process.pid for process in multiprocessing.active_children() if process.pid}

    good = imagecodecs.jpegls_encode(np.zeros((16, 16), np.uint8))
    first = read("a", good)
    assert read("b", good) == first != set()
    assert not read("c", good[:20] + b"\xff" * 20) & first
    (again,) = read("d", good)
    os.kill(again, signal.SIGKILL)
    while any(process.pid == again for process in multiprocessing.active_children()):
        time.sleep(0.01)
    assert read("e", good) != {again}


def _die(path: str, frames: list[int]) -> None:
    os._exit(1)


def test_a_decoder_that_dies_leaves_the_program_alive(tmp_path: Path, monkeypatch) -> None:
    stream = imagecodecs.jpegls_encode(np.zeros((16, 16), np.uint8))
    file = only(packed(tmp_path / "k.dcm", stream, "1.2.840.10008.1.2.4.80"))
    monkeypatch.setattr("raterscope.app.formats.volumes.dicom.decode_frames", _die)
    with pytest.raises(InputError, match="crashed its decoder"):
        load_volume(file)


def test_a_file_cut_short_is_left_out_of_its_series_and_named(tmp_path: Path) -> None:
    series(tmp_path)
    full = (tmp_path / "e.dcm").read_bytes()
    (tmp_path / "e.dcm").write_bytes(full[:-10])
    file = only(tmp_path)
    assert file.grid.shape[0] == 5
    assert any("e.dcm" in notice and "cut short" in notice for notice in file.notices)
    assert "cut short: 60 of 70 bytes" in refusal(tmp_path / "e.dcm")


def test_a_claim_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    data = image(SLICES[0], Rows=60000, Columns=60000)
    assert "60000 x 60000" in refusal(save(data, tmp_path / "b.dcm"))
    data = image(SLICES[0], NumberOfFrames=2_000_000_000)
    assert "2000000000 frames" in refusal(save(data, tmp_path / "f.dcm"))


def test_a_deflated_bomb_is_refused_and_a_deflated_image_read(tmp_path: Path, monkeypatch) -> None:
    deflated = "1.2.840.10008.1.2.1.99"
    path = save(image(SLICES[0]), tmp_path / "a.dcm", deflated)
    np.testing.assert_array_equal(load_volume(only(path)).values[0], SLICES[0])
    monkeypatch.setattr("raterscope.app.formats.volumes.dicom_headers._LONGEST_HEAD", 100)
    assert "before its pixels" in refusal(path)


def test_a_deflated_file_unpacks_to_no_more_than_its_pixels(tmp_path: Path) -> None:
    data = image(SLICES[0], DataSetTrailingPadding=bytes(2 << 20))
    path = save(data, tmp_path / "a.dcm", "1.2.840.10008.1.2.1.99")
    file = only(path)
    with pytest.raises(InputError, match="unpacks to more"):
        load_volume(file)


@pytest.mark.parametrize(
    "tags",
    [
        {"BitsAllocated": 2041, "BitsStored": 2041},
        {"RescaleSlope": "1E300", "RescaleIntercept": "1E300"},
        {"PixelSpacing": [0, 0]},
        {"ImageOrientationPatient": [0, 0, 0, 0, 0, 0]},
    ],
    ids=str,
)
def test_odd_values_are_a_sentence_or_a_notice(tmp_path: Path, tags: dict) -> None:
    path = save(image(SLICES[0], **tags), tmp_path / "a.dcm")
    try:
        file = only(path)
        load_volume(file)
    except InputError as error:
        message = str(error)
    else:
        message = file.notices[0]
    assert message.endswith(".")


def test_no_pixels_and_no_preamble(tmp_path: Path) -> None:
    data = image(SLICES[0])
    del data.PixelData
    assert "no pixels" in refusal(save(data, tmp_path / "n.dcm"))
    bare = image(SLICES[0])
    stream = io.BytesIO()
    pydicom.dcmwrite(stream, bare, implicit_vr=True, little_endian=True)
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "bare"
    path.write_bytes(stream.getvalue())
    np.testing.assert_array_equal(load_volume(only(path)).values[0], SLICES[0])


def dicomdir(folder: Path, *names: list[str]) -> Path:
    listing = Dataset()
    listing.SOPClassUID, listing.SOPInstanceUID = "1.2.840.10008.1.3.10", "1.2.3"
    records = []
    for name in names:
        record = Dataset()
        record.DirectoryRecordType, record.ReferencedFileID = "IMAGE", name
        records.append(record)
    listing.DirectoryRecordSequence = records
    return save(listing, folder / "DICOMDIR")


@pytest.mark.filterwarnings("ignore:Invalid value for VR CS")
def test_a_dicomdir_gives_what_it_lists(tmp_path: Path) -> None:
    series(tmp_path / "A")
    path = dicomdir(tmp_path, *(["A", f"{name}.dcm"] for name in NAMES), ["A", "GONE"])
    assert only(path).grid.shape[0] == 6


@pytest.mark.filterwarnings("ignore:Invalid value for VR CS")
def test_a_dicomdir_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    save(image(SLICES[0]), tmp_path / "secret.dcm")
    inside = tmp_path / "disc"
    assert "own folder" in refusal(dicomdir(inside, ["..", "secret.dcm"]))
    (inside / "link").symlink_to(tmp_path)
    assert "own folder" in refusal(dicomdir(inside, ["link", "secret.dcm"]))
    assert "lists no existing file" in refusal(dicomdir(inside, ["A", "B"]))


def test_reading_is_cancelled_between_slices(tmp_path: Path) -> None:
    file = only(series(tmp_path))

    def stop(fraction: float, words: str, **_) -> None:
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        load_volume(file, stop)


@pytest.mark.parametrize(
    "folder",
    [
        "volumes/mr_t1",
        "formats/dicom/oriented_series",
        "formats/dicom/rtstruct",
        "formats/dicom/seg_dcmqi",
        "formats/dicom/pydicom/dicomdir_77654033/CR1",
    ],
)
def test_real_series_as_itk_reads_them(real_data: Path, folder: str) -> None:
    file = only(real_data / folder)
    theirs = itk_series(file.files)
    values = SimpleITK.GetArrayFromImage(theirs)
    np.testing.assert_allclose(load_volume(file).values, values, rtol=1e-6, atol=1e-4)
    if file.grid.calibrated:
        np.testing.assert_allclose(itk_affine(theirs), file.grid.matrix[:3], atol=1e-4)


def test_the_tilted_uneven_ct(real_data: Path) -> None:
    file = only(real_data / "volumes" / "ct_ge")
    notice = " ".join(file.notices)
    assert "Slice distance varies from 1.08 to 7.00 mm (1.14 to 7.38 mm along the table)." in notice
    positions = [pydicom.dcmread(path, stop_before_pixels=True).ImagePositionPatient for path in file.files]
    index = np.array([[at, 0, 0] for at in range(len(positions))])
    np.testing.assert_allclose(file.grid.to_patient(index), np.array(positions, dtype=float), atol=1e-6)
    assert "tilted by 18.5 degrees" in notice
    for path, values in zip(file.files, load_volume(file).values, strict=True):
        np.testing.assert_array_equal(values, SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))[0])
    even = only(real_data / "formats" / "dicom" / "ct_series_ge")
    for k, path in enumerate(even.files):
        position = pydicom.dcmread(path, stop_before_pixels=True).ImagePositionPatient
        np.testing.assert_allclose(even.grid.to_patient(np.array([k, 0, 0])), position, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["JPEG2000", "MR_small_RLE", "MR_small_jp2klossless", "CT_small", "emri_small"]
)
def test_real_files_as_itk_reads_them(real_data: Path, name: str) -> None:
    path = real_data / "formats" / "dicom" / "pydicom" / f"{name}.dcm"
    theirs = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))
    np.testing.assert_array_equal(load_volume(find_volumes(path)[0]).values, theirs)


def test_real_jpeg_in_colour_as_itk_reads_it(real_data: Path) -> None:
    path = real_data / "formats" / "dicom" / "pydicom" / "SC_rgb_jpeg_dcmtk.dcm"
    ours = load_volume(find_volumes(path)[0]).values.astype(int)
    theirs = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path))).reshape(ours.shape)
    assert np.abs(ours - theirs).max() <= 3  # two decoders round differently


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pydicom/MR_truncated.dcm", "cut short"),
        ("pydicom/badVR.dcm", "dose"),
        ("pydicom/reportsi.dcm", "report"),
        ("pydicom/rtplan.dcm", "plan"),
        ("pydicom/rtstruct.dcm", "contours"),
        ("seg_dcmqi/liver.dcm", "segmentation"),
        ("seg_highdicom/sm_image.dcm", "slide"),
        ("seg_highdicom/sm_annotations.dcm", "annotations"),
    ],
)
def test_real_files_without_a_volume(real_data: Path, name: str, words: str) -> None:
    assert words in refusal(real_data / "formats" / "dicom" / name)
