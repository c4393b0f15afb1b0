"""NIfTI, NRRD, MetaImage and images as volumes: voxels and geometry as ITK and nibabel have them."""

import contextlib
import gzip
import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats.volumes import find_volumes, load_volume, voxel_head
from raterscope.app.formats.volumes.voxel_files import check_complete, read_all

RNG = np.random.default_rng(11)
SHAPE = (4, 5, 6)
VALUES = RNG.integers(-900, 900, SHAPE).astype(np.int16)
TO_LPS = np.diag([-1.0, -1.0, 1.0, 1.0])


def oblique() -> SimpleITK.Image:
    """A volume that lies askew, with three different spacings."""
    volume = SimpleITK.GetImageFromArray(VALUES)
    volume.SetSpacing((0.5, 0.75, 2.5))
    volume.SetOrigin((-30.0, 12.5, 7.0))
    a, b = 0.3, -0.4
    turned = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]) @ np.array(
        [[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]]
    )
    volume.SetDirection(turned.ravel().tolist())
    return volume


def itk_affine(volume: SimpleITK.Image) -> np.ndarray:
    rank = volume.GetDimension()
    turned = np.array(volume.GetDirection()).reshape(rank, rank) * volume.GetSpacing()
    return np.column_stack([turned, volume.GetOrigin()])[:3]


def loaded(path: Path) -> np.ndarray:
    (file,) = find_volumes(path)
    return load_volume(file).values


def refusal(path: Path) -> str:
    """Errors of unreadable files, detected early or late."""
    with pytest.raises(InputError) as caught:
        loaded(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_tilted_slices_are_reported(tmp_path: Path) -> None:
    affine = np.array([[0.8, 0, 0, 0], [0, 0.8, 0.5, 0], [0, 0, 2.5, 0], [0, 0, 0, 1]])
    nibabel.Nifti1Image(VALUES.T, affine).to_filename(tmp_path / "ct.nii.gz")
    (file,) = find_volumes(tmp_path / "ct.nii.gz")
    assert file.notices[0].startswith("ct.nii.gz: Slices are tilted by 11.3 degrees (gantry tilt)")


@pytest.mark.parametrize("packed", [False, True], ids=["raw", "packed"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".hdr", ".nrrd", ".nhdr", ".mha", ".mhd"])
def test_files_written_by_itk_are_read_unchanged(tmp_path: Path, suffix: str, packed: bool) -> None:
    volume = oblique()
    path = tmp_path / f"a{suffix}"
    SimpleITK.WriteImage(volume, str(path), packed)
    (file,) = find_volumes(path)
    np.testing.assert_array_equal(load_volume(file).values, VALUES)
    np.testing.assert_allclose(file.grid.matrix[:3], itk_affine(volume), atol=1e-4)
    assert file.grid.calibrated
    assert not file.notices


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("uint8", "uint8"),
        ("int8", "int16"),
        ("uint16", "uint16"),
        ("int32", "int16"),
        ("uint32", "int16"),
        ("int64", "int16"),
        ("float32", "float32"),
        ("float64", "float32"),
    ],
)
@pytest.mark.parametrize("suffix", [".nii", ".nrrd", ".mha"])
def test_every_type_of_voxel(tmp_path: Path, suffix: str, kind: str, shown: str) -> None:
    values = RNG.integers(0, 100, SHAPE).astype(kind)
    if kind.startswith("float"):
        values += np.asarray(0.3, dtype=kind)
    path = tmp_path / f"a{suffix}"
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(values), str(path))
    result = loaded(path)
    assert result.dtype == shown
    np.testing.assert_array_equal(result, values.astype(shown))


def test_whole_numbers_too_large_for_16_bits_are_floats(tmp_path: Path) -> None:
    values = np.array([[[-5, 100_000]]], dtype=np.int32)
    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(values), str(tmp_path / "a.nrrd"))
    result = loaded(tmp_path / "a.nrrd")
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, values)


def nifti(path: Path, values: np.ndarray, matrix: np.ndarray, kind=nibabel.Nifti1Image, **fields) -> Path:
    """Write (column, row, slice) values."""
    built = kind(values, matrix)
    for name, value in fields.items():
        built.header[name] = value
    nibabel.save(built, path)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_nifti_2_of_either_byte_order(tmp_path: Path, order: str) -> None:
    matrix = np.array([[-2.0, 0, 0, 9], [0, 1.5, 0.2, 8], [0, -0.1, 3.0, 7], [0, 0, 0, 1]])
    header = nibabel.Nifti2Header(endianness=order)
    header.set_data_dtype(np.int16)
    built = nibabel.Nifti2Image(VALUES.T, matrix, header)
    nibabel.save(built, tmp_path / "a.nii")
    (file,) = find_volumes(tmp_path / "a.nii")
    np.testing.assert_array_equal(load_volume(file).values, VALUES)
    np.testing.assert_allclose(file.grid.matrix, TO_LPS @ matrix, atol=1e-6)


@pytest.mark.parametrize(("unit", "scale"), [(1, 1000.0), (2, 1.0), (3, 0.001)])
def test_units_of_nifti(tmp_path: Path, unit: int, scale: float) -> None:
    path = nifti(tmp_path / "a.nii", VALUES.T, np.diag([1.0, 2.0, 3.0, 1.0]), xyzt_units=unit)
    (file,) = find_volumes(path)
    assert file.grid.spacing == pytest.approx((3 * scale, 2 * scale, scale))


def test_nifti_scale(tmp_path: Path) -> None:
    built = nibabel.Nifti1Image(VALUES.T, np.eye(4))
    built.header.set_slope_inter(0.5, -10.0)
    raw = bytearray(built.to_bytes())
    struct.pack_into("<ff", raw, 112, 0.5, -10.0)
    (tmp_path / "a.nii").write_bytes(raw)
    stored = np.asarray(nibabel.load(tmp_path / "a.nii").dataobj).T
    np.testing.assert_allclose(loaded(tmp_path / "a.nii"), stored)


def test_of_many_points_in_time_the_first_is_shown_and_all_can_be_read(tmp_path: Path) -> None:
    values = RNG.integers(0, 99, (6, 5, 4, 3)).astype(np.int16)
    path = nifti(tmp_path / "a.nii.gz", values, np.eye(4))
    (file,) = find_volumes(path)
    np.testing.assert_array_equal(load_volume(file).values, values[..., 0].T)
    assert "3 volumes; the first is shown" in file.notices[0]
    np.testing.assert_array_equal(read_all(voxel_head(path)), values.T)


def test_volumes_in_colour(tmp_path: Path) -> None:
    colours = RNG.integers(0, 256, (*SHAPE, 3)).astype(np.uint8)
    volume = SimpleITK.GetImageFromArray(colours, isVector=True)
    for suffix in (".nii", ".nrrd", ".mha"):
        SimpleITK.WriteImage(volume, str(tmp_path / f"a{suffix}"))
        np.testing.assert_array_equal(loaded(tmp_path / f"a{suffix}"), colours)


def test_nifti_without_a_position_gives_a_notice(tmp_path: Path) -> None:
    built = nibabel.Nifti1Image(VALUES.T, np.diag([1.0, 2.0, 3.0, 1.0]))
    built.set_sform(None, 0)
    built.set_qform(None, 0)
    nibabel.save(built, tmp_path / "a.nii")
    (file,) = find_volumes(tmp_path / "a.nii")
    assert file.grid.spacing == pytest.approx((3.0, 2.0, 1.0))
    assert "does not contain the patient's orientation" in file.notices[0]


def test_nifti_with_two_positions_gives_a_notice(tmp_path: Path) -> None:
    built = nibabel.Nifti1Image(VALUES.T, np.eye(4))
    built.set_qform(np.diag([2.0, 2.0, 2.0, 1.0]), 1)
    built.set_sform(np.diag([3.0, 3.0, 3.0, 1.0]), 1)
    nibabel.save(built, tmp_path / "a.nii")
    (file,) = find_volumes(tmp_path / "a.nii")
    assert file.grid.spacing == pytest.approx((3.0, 3.0, 3.0))
    assert "disagree" in file.notices[0]


def test_analyze_is_refused(tmp_path: Path) -> None:
    nibabel.save(nibabel.AnalyzeImage(VALUES.T, np.eye(4)), tmp_path / "a.hdr")
    assert "left and right" in refusal(tmp_path / "a.hdr")


def test_half_a_pair_is_refused(tmp_path: Path) -> None:
    SimpleITK.WriteImage(oblique(), str(tmp_path / "a.hdr"))
    (tmp_path / "a.img").unlink()
    assert ".img" in refusal(tmp_path / "a.hdr")


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".nrrd", ".mha"])
@pytest.mark.parametrize("packed", [False, True], ids=["raw", "packed"])
def test_files_cut_short(tmp_path: Path, suffix: str, packed: bool) -> None:
    path = tmp_path / f"a{suffix}"
    SimpleITK.WriteImage(oblique(), str(path), packed)
    full = path.read_bytes()
    for length in (0, 10, len(full) // 2, len(full) - 9):
        path.write_bytes(full[:length])
        refusal(path)


@pytest.mark.parametrize(("suffix", "packed"), [(".mha", False), (".nrrd", False), (".nrrd", True)])
def test_voxels_beyond_those_of_the_header_give_a_notice(tmp_path: Path, suffix: str, packed: bool) -> None:
    path = tmp_path / f"a{suffix}"
    SimpleITK.WriteImage(oblique(), str(path), packed)
    full, (slices, rows, columns) = path.read_bytes(), VALUES.shape
    sizes = f"{columns} {rows} {slices}"
    path.write_bytes(full.replace(sizes.encode(), f"{columns} {rows} {slices - 2}".encode(), 1))
    (volume,) = find_volumes(path)
    assert "holds voxels of 2 slices more than its header claims" in " ".join(volume.notices)
    np.testing.assert_array_equal(load_volume(volume).values, VALUES[:-2])
    path.write_bytes(full)
    assert "more than" not in " ".join(find_volumes(path)[0].notices)


def test_voxels_of_nifti_begin_after_its_header(tmp_path: Path) -> None:
    path = tmp_path / "a.nii"
    SimpleITK.WriteImage(oblique(), str(path))
    whole = path.read_bytes()
    for offset in (-100.0, 1.0, 351.0):
        path.write_bytes(whole[:108] + struct.pack("<f", offset) + whole[112:])
        assert "expected 352 or more" in refusal(path)
    path.write_bytes(whole[:108] + struct.pack("<f", 0.0) + whole[112:])  # not stated
    (volume,) = find_volumes(path)
    np.testing.assert_array_equal(load_volume(volume).values, SimpleITK.GetArrayFromImage(oblique()))


@pytest.mark.parametrize("spacing", ["0 1 2", "nan 1 2", "1 2"])
def test_a_metaimage_without_a_usable_spacing_gives_a_notice(tmp_path: Path, spacing: str) -> None:
    path = tmp_path / "a.mha"
    SimpleITK.WriteImage(oblique(), str(path))
    whole = path.read_bytes()
    begin = whole.index(b"ElementSpacing")
    end = whole.index(b"\n", begin)
    path.write_bytes(whole[:begin] + f"ElementSpacing = {spacing}".encode() + whole[end:])
    (volume,) = find_volumes(path)
    assert "one millimetre is assumed" in " ".join(volume.notices)


@pytest.mark.parametrize("name", ["dim[0]", "0008|0060", "ITK_original_spacing"])
def test_metaimages_with_the_fields_of_another_format(tmp_path: Path, name: str) -> None:
    """ITK writes the fields of NIfTI and DICOM files that it converts."""
    volume = oblique()
    volume.SetMetaData(name, "3")
    SimpleITK.WriteImage(volume, tmp_path / "a.mha")
    assert name.encode() in (tmp_path / "a.mha").read_bytes()
    np.testing.assert_array_equal(loaded(tmp_path / "a.mha"), VALUES)


def test_a_file_packed_in_two_parts_is_complete(tmp_path: Path) -> None:
    whole = nifti(tmp_path / "whole.nii", VALUES, np.eye(4)).read_bytes()
    path = tmp_path / "parts.nii.gz"
    path.write_bytes(gzip.compress(whole[:400]) + gzip.compress(whole[400:]))
    check_complete(voxel_head(path))


def nrrd(path: Path, lines: list[str], data: bytes = b"") -> Path:
    path.write_bytes("\n".join(["NRRD0004", *lines, "", ""]).encode() + data)
    return path


RAW = ["type: short", "dimension: 3", "sizes: 6 5 4", "encoding: raw", "endian: little"]
PLACED = ["space directions: (1,0,0) (0,2,0) (0,0,3)", "space origin: (1,2,3)"]


@pytest.mark.parametrize(
    ("space", "signs"),
    [
        ("left-posterior-superior", (1, 1, 1)),
        ("RAS", (-1, -1, 1)),
        ("left-anterior-superior", (1, -1, 1)),
    ],
)
def test_spaces_of_nrrd(tmp_path: Path, space: str, signs: tuple[int, ...]) -> None:
    (file,) = find_volumes(nrrd(tmp_path / "a.nrrd", [*RAW, f"space: {space}", *PLACED], VALUES.tobytes()))
    np.testing.assert_allclose(file.grid.to_patient(np.array([1, 1, 1])), np.array([2, 4, 6]) * signs)
    np.testing.assert_array_equal(load_volume(file).values, VALUES)


def test_an_unknown_space_shows_no_letters(tmp_path: Path) -> None:
    (file,) = find_volumes(nrrd(tmp_path / "a.nrrd", [*RAW, "space: scanner-xyz", *PLACED], VALUES.tobytes()))
    assert file.grid.letters(0) == ("", "")
    assert "scanner-xyz" in file.notices[0]


def test_a_header_that_names_itself_as_its_data_file_is_refused(tmp_path: Path) -> None:
    words = refusal(nrrd(tmp_path / "a.nhdr", [*RAW, "data file: a.nhdr"]))
    assert "names itself as its data file" in words
    (tmp_path / "a.mhd").write_text(
        "NDims = 2\nDimSize = 4 4\nElementType = MET_UCHAR\nElementDataFile = ./a.mhd\n"
    )
    assert "names itself as its data file" in refusal(tmp_path / "a.mhd")


def test_a_nifti_without_a_usable_spacing_gives_a_notice(tmp_path: Path) -> None:
    path = nifti(tmp_path / "a.nii", VALUES, np.eye(4))
    whole = bytearray(path.read_bytes())
    whole[252:256] = bytes(4)  # neither sform nor qform
    for step, count in ((0.5, 1), (np.nan, 2)):
        whole[80:84] = struct.pack("<f", step)
        path.write_bytes(whole)
        (volume,) = find_volumes(path)
        assert len(volume.notices) == count
    assert "does not contain the size of a voxel; one millimetre is assumed" in volume.notices[1]


@pytest.mark.parametrize("third", ["(nan,nan,nan)", "(0,0,nan)", "(0,0,inf)", "none"])
def test_an_axis_of_space_without_a_direction_is_refused(tmp_path: Path, third: str) -> None:
    lines = ["space: lps", f"space directions: (1,0,0) (0,1,0) {third}", "kinds: domain domain domain"]
    words = refusal(nrrd(tmp_path / "a.nrrd", [*RAW, *lines], VALUES.tobytes()))
    assert "has no direction of axis 3; expected finite numbers" in words


@pytest.mark.parametrize("step", [1e30, 1e-30])
@pytest.mark.parametrize("suffix", [".nii", ".nrrd", ".mha"])
def test_a_spacing_that_no_scan_has_is_refused(tmp_path: Path, suffix: str, step: float) -> None:
    volume = SimpleITK.GetImageFromArray(VALUES)
    volume.SetSpacing((step, 1.0, 1.0))
    SimpleITK.WriteImage(volume, str(tmp_path / f"a{suffix}"))
    assert "has no usable geometry" in refusal(tmp_path / f"a{suffix}")


def test_nrrd_of_every_encoding(tmp_path: Path) -> None:
    import bz2

    big = VALUES.astype(">i2")
    for encoding, data in (
        ("raw", big.tobytes()),
        ("gzip", gzip.compress(big.tobytes())),
        ("bzip2", bz2.compress(big.tobytes())),
        ("ascii", " ".join(map(str, VALUES.ravel())).encode()),
    ):
        lines = ["type: int16", "dimension: 3", "sizes: 6 5 4", f"encoding: {encoding}", "endian: big"]
        np.testing.assert_array_equal(loaded(nrrd(tmp_path / "a.nrrd", lines, data)), VALUES)
    assert "hex" in refusal(nrrd(tmp_path / "a.nrrd", [*RAW[:3], "encoding: hex"]))


def test_layers_before_space_and_after_it(tmp_path: Path) -> None:
    layers = RNG.integers(0, 9, (2, *SHAPE)).astype(np.int16)
    first = ["type: short", "dimension: 4", "sizes: 2 6 5 4", "encoding: raw", "endian: little",
             "space: left-posterior-superior", "kinds: list domain domain domain",
             "space directions: none (1,0,0) (0,2,0) (0,0,3)", "space origin: (1,2,3)"]  # fmt: skip
    last = [*first[:2], "sizes: 6 5 4 2", *first[3:6], "kinds: domain domain domain list",
            "space directions: (1,0,0) (0,2,0) (0,0,3) none", first[8]]  # fmt: skip
    for lines, data in ((first, np.moveaxis(layers, 0, -1)), (last, layers)):
        path = nrrd(tmp_path / "a.nrrd", lines, data.tobytes())
        np.testing.assert_array_equal(read_all(voxel_head(path)), layers)
        np.testing.assert_array_equal(loaded(path), layers[0])


def test_a_detached_header_reads_no_other_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(VALUES.tobytes())
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    head = ["ObjectType = Image", "NDims = 3", "DimSize = 6 5 4", "ElementType = MET_SHORT"]
    for name in ("../secret", str(tmp_path / "secret"), "link", "C:\\secret", "..\\secret", "gone"):
        words = refusal(nrrd(folder / "a.nhdr", [*RAW, f"data file: {name}"]))
        assert "same folder" in words or "not exist" in words
        (folder / "a.mhd").write_text("\n".join([*head, f"ElementDataFile = {name}", ""]))
        words = refusal(folder / "a.mhd")
        assert "same folder" in words or "not exist" in words


def test_claims_are_checked_before_room_is_made(tmp_path: Path) -> None:
    huge = [line.replace("6 5 4", "60000 60000 60000") for line in RAW]
    assert "claims" in refusal(nrrd(tmp_path / "a.nrrd", huge, b"12"))
    large = [line.replace("6 5 4", "1000 1000 1000") for line in RAW]
    assert "claims 2,000,000,000" in refusal(nrrd(tmp_path / "b.nrrd", large, b"12"))
    large[3] = "encoding: gzip"
    assert "claims 2,000,000,000" in refusal(nrrd(tmp_path / "c.nrrd", large, gzip.compress(b"12")))
    header = nibabel.Nifti1Header()
    header.set_data_shape((30000, 30000, 30000))
    (tmp_path / "d.nii").write_bytes(bytes(header.binaryblock) + b"\0" * 8)
    assert "claims" in refusal(tmp_path / "d.nii")


def test_no_more_is_unpacked_than_the_header_claims(tmp_path: Path) -> None:
    data = VALUES.tobytes() + bytes(50 << 20)
    lines = ["ObjectType = Image", "NDims = 3", "DimSize = 6 5 4", "CompressedData = True",
             "ElementType = MET_SHORT", "ElementDataFile = LOCAL", ""]  # fmt: skip
    path = tmp_path / "a.mha"
    path.write_bytes("\n".join(lines).encode() + zlib.compress(data))
    np.testing.assert_array_equal(loaded(path), VALUES)


@cache
def written(suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        SimpleITK.WriteImage(oblique(), str(path))
        return path.read_bytes()


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_damaged_headers_are_a_sentence(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    suffix = data.draw(st.sampled_from([".nii", ".nrrd", ".mha"]))
    path = folder / f"a{suffix}"
    full = bytearray(written(suffix))
    for _ in range(data.draw(st.integers(1, 4))):
        full[data.draw(st.integers(0, min(400, len(full)) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(full)
    with contextlib.suppress(InputError):
        assert loaded(path).ndim in (3, 4)


def test_reading_is_cancelled(tmp_path: Path) -> None:
    SimpleITK.WriteImage(oblique(), str(tmp_path / "a.nrrd"), True)
    (file,) = find_volumes(tmp_path / "a.nrrd")

    def stop(fraction: float, words: str, **_) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        load_volume(file, stop)


def test_pages_of_a_tiff_are_slices(tmp_path: Path) -> None:
    values = RNG.integers(0, 60000, SHAPE).astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="minisblack", compression="zlib")
    (file,) = find_volumes(tmp_path / "a.tif")
    np.testing.assert_array_equal(load_volume(file).values, values)
    assert not file.grid.calibrated


def test_a_tiff_whose_last_page_leads_back_to_the_first_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as file:
        for columns in (4, 5, 6):
            file.write(np.zeros((4, columns), np.uint8), metadata=None)
    with tifffile.TiffFile(path) as file:
        first, last = file.pages[0].offset, file.pages[2].offset
    content = bytearray(path.read_bytes())
    (fields,) = struct.unpack_from("<H", content, last)
    struct.pack_into("<I", content, last + 2 + 12 * fields, first)
    path.write_bytes(content)
    with pytest.raises(InputError, match="more pages than fit in it"):
        find_volumes(path)


def test_imagej_and_ome_show_the_size_of_a_voxel(tmp_path: Path) -> None:
    values = RNG.integers(0, 255, SHAPE).astype(np.uint8)
    tifffile.imwrite(
        tmp_path / "ij.tif",
        values,
        imagej=True,
        resolution=(1 / 0.25, 1 / 0.5),
        metadata={"axes": "ZYX", "spacing": 2.0, "unit": "um"},
    )
    sizes = {"PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 2.0}
    units = {f"{name}Unit": "µm" for name in sizes}
    tifffile.imwrite(tmp_path / "ome.ome.tif", values, metadata={"axes": "ZYX", **sizes, **units})
    for name in ("ij.tif", "ome.ome.tif"):
        (file,) = find_volumes(tmp_path / name)
        np.testing.assert_array_equal(load_volume(file).values, values)
        assert file.grid.spacing == pytest.approx((2e-3, 5e-4, 2.5e-4), rel=1e-3)


def test_of_several_channels_the_first_is_shown_with_a_notice(tmp_path: Path) -> None:
    values = RNG.integers(0, 255, (4, 2, 5, 6)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", values, imagej=True, metadata={"axes": "ZCYX"})
    (file,) = find_volumes(tmp_path / "a.tif")
    np.testing.assert_array_equal(load_volume(file).values, values[:, 0])
    assert "first channel" in file.notices[0]


def test_one_image_is_one_slice(tmp_path: Path) -> None:
    colours = RNG.integers(0, 256, (5, 6, 3)).astype(np.uint8)
    Image.fromarray(colours).save(tmp_path / "c.png")
    np.testing.assert_array_equal(loaded(tmp_path / "c.png"), colours[None])
    deep = RNG.integers(0, 60000, (5, 6)).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "d.png")
    tifffile.imwrite(tmp_path / "d.tif", deep)
    for name in ("d.png", "d.tif"):
        np.testing.assert_array_equal(loaded(tmp_path / name), deep[None])


def test_numbered_images_are_slices_and_others_are_not(tmp_path: Path) -> None:
    planes = RNG.integers(0, 256, (11, 5, 6)).astype(np.uint8)
    numbered, named = tmp_path / "numbered", tmp_path / "named"
    numbered.mkdir()
    named.mkdir()
    for k, plane in enumerate(planes):
        Image.fromarray(plane).save(numbered / f"slice{k}.png")
    (file,) = find_volumes(numbered)
    np.testing.assert_array_equal(load_volume(file).values, planes)
    assert "11 numbered images" in file.notices[0]
    Image.fromarray(planes[0]).save(named / "liver.png")
    Image.fromarray(planes[1]).save(named / "heart.png")
    assert [path.name for path in find_volumes(named)] == ["heart.png", "liver.png"]


def test_a_folder_without_a_volume_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    assert "contains no image" in refusal(tmp_path)
    assert "not an image or volume" in refusal(tmp_path / "a.txt")
    assert "not exist" in refusal(tmp_path / "b.nii")


REAL = [
    "nifti/CT_pitch.nii.gz",
    "nifti/anatomical.nii",
    "nifti/example4d.nii.gz",
    "nifti/functional.nii",
    "nifti/spmMotor.nii.gz",
    "nifti/standard.nii.gz",
    "nrrd/CTChest4.nrrd",
    "nrrd/Segmentation.seg.nrrd",
    "dicom/seg_dcmqi/liver_seg.nrrd",
    "dicom/seg_dcmqi/partial_overlaps-1.nrrd",
]


@pytest.mark.parametrize("name", REAL)
def test_real_files_as_itk_reads_them(real_data: Path, name: str) -> None:
    (file,) = find_volumes(real_data / "formats" / name)
    theirs = SimpleITK.ReadImage(str(real_data / "formats" / name))
    values = SimpleITK.GetArrayFromImage(theirs)
    np.testing.assert_array_equal(load_volume(file).values, values[0] if values.ndim == 4 else values)
    rank = theirs.GetDimension()
    turned = np.array(theirs.GetDirection()).reshape(rank, rank)[:3, :3] * theirs.GetSpacing()[:3]
    np.testing.assert_allclose(file.grid.matrix[:3, :3], turned, atol=1e-4)
    np.testing.assert_allclose(file.grid.matrix[:3, 3], theirs.GetOrigin()[:3], atol=1e-4)


def test_real_nifti_2_as_nibabel_reads_it(real_data: Path) -> None:
    path = real_data / "formats" / "nifti" / "example_nifti2.nii.gz"
    (file,) = find_volumes(path)
    theirs = nibabel.load(path)
    np.testing.assert_array_equal(load_volume(file).values, np.asarray(theirs.dataobj)[..., 0].T)
    np.testing.assert_allclose(file.grid.matrix, TO_LPS @ theirs.affine, atol=1e-5)


def test_values_on_a_surface_are_refused(real_data: Path) -> None:
    assert "surface" in refusal(real_data / "formats" / "nifti" / "row_major.dconn.nii")
