"""Images: what is shown of them, and what is refused."""

import contextlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats import ImageFile, read
from raterscope.app.formats.image_heads import read_image
from raterscope.app.formats.images import load_image
from raterscope.app.formats.volumes import image_file

HEIGHT, WIDTH = 30, 40


@pytest.fixture
def pixels() -> np.ndarray:
    """A picture in colour, no two corners alike."""
    rng = np.random.default_rng(0)
    return np.kron(rng.integers(0, 256, (3, 4, 3)), np.ones((10, 10, 1))).astype(np.uint8)


def png(width: int, height: int, data: bytes) -> bytes:
    """A grey PNG that claims a size, whatever its data is."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_image(path)
    with pytest.raises(InputError):
        load_image(path)
    assert path.name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["png", "tif", "bmp", "gif"])
def test_colour_and_grey_come_back_exactly(tmp_path: Path, pixels: np.ndarray, suffix: str) -> None:
    for name, array in (("colour", pixels), ("grey", pixels[..., 0])):
        path = tmp_path / f"{name}.{suffix}"
        if suffix != "tif":
            Image.fromarray(array).save(path)
        else:
            tifffile.imwrite(path, array)
        file = read(path)
        assert file == ImageFile(path.name, path, WIDTH, HEIGHT)
        np.testing.assert_array_equal(load_image(path), array)
        np.testing.assert_array_equal(load_image(file.path), array)


def test_jpeg_comes_back_about_so(tmp_path: Path, pixels: np.ndarray) -> None:
    for array in (pixels, pixels[..., 1]):
        Image.fromarray(array).save(tmp_path / "a.jpg", quality=95, subsampling=0)
        shown = load_image(tmp_path / "a.jpg")
        assert shown.shape == array.shape
        assert np.abs(shown.astype(int) - array).mean() < 5


def test_palette_and_transparency_are_shown_in_colour(tmp_path: Path, pixels: np.ndarray) -> None:
    Image.fromarray(pixels).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / "p.png")
    np.testing.assert_array_equal(load_image(tmp_path / "p.png"), pixels)
    alpha = np.dstack([pixels, np.full((HEIGHT, WIDTH), 9, dtype=np.uint8)])
    Image.fromarray(alpha).save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_image(tmp_path / "a.png"), pixels)
    tifffile.imwrite(tmp_path / "a.tif", alpha, photometric="rgb", extrasamples=["unassalpha"])
    np.testing.assert_array_equal(load_image(tmp_path / "a.tif"), pixels)


@pytest.mark.parametrize("options", [
    {}, {"compression": "lzw"}, {"compression": "zlib"}, {"tile": (16, 16)}, {"byteorder": ">"},
    {"bigtiff": True}, {"planarconfig": "separate"},
])  # fmt: skip
def test_tiff_in_its_many_forms(tmp_path: Path, pixels: np.ndarray, options: dict) -> None:
    array = np.moveaxis(pixels, -1, 0) if "planarconfig" in options else pixels
    tifffile.imwrite(tmp_path / "a.tif", array, photometric="rgb", **options)
    np.testing.assert_array_equal(load_image(tmp_path / "a.tif"), pixels)


def test_tiff_with_inverted_grey_and_with_a_palette(tmp_path: Path, pixels: np.ndarray) -> None:
    grey = pixels[..., 0]
    tifffile.imwrite(tmp_path / "white.tif", 255 - grey, photometric="miniswhite")
    np.testing.assert_array_equal(load_image(tmp_path / "white.tif"), grey)
    colours = np.random.default_rng(1).integers(0, 256, (3, 256)).astype(np.uint16) * 257
    tifffile.imwrite(tmp_path / "palette.tif", grey, photometric="palette", colormap=colours)
    np.testing.assert_array_equal(
        load_image(tmp_path / "palette.tif"), np.moveaxis(colours[:, grey] >> 8, 0, -1)
    )


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_sixteen_bit_is_stretched_robustly(tmp_path: Path, suffix: str) -> None:
    """A ramp over a narrow range, with a hot and a dead pixel that must not flatten it."""
    ramp = np.linspace(2000, 3000, 100 * 200).astype(np.uint16).reshape(100, 200)
    ramp[0, 0], ramp[50, 50] = 65535, 0
    path = tmp_path / f"a.{suffix}"
    if suffix == "png":
        Image.fromarray(ramp).save(path)
    else:
        tifffile.imwrite(path, ramp)
    shown = load_image(path).astype(int)
    assert shown.shape == (100, 200)
    expected = np.linspace(0, 255, ramp.size).reshape(ramp.shape)
    difference = np.abs(shown - expected)
    difference[0, 0] = difference[50, 50] = 0
    assert difference.max() < 2
    assert (shown[0, 0], shown[50, 50]) == (255, 0)


def test_sixteen_bit_colour_keeps_its_hue(tmp_path: Path) -> None:
    values = np.zeros((50, 50, 3), dtype=np.uint16)
    values[..., 0], values[..., 1] = 4000, np.linspace(0, 2000, 50)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="rgb")
    shown = load_image(tmp_path / "a.tif")
    assert (shown[..., 0] == 255).all()
    assert shown[:, -1, 1].tolist() == pytest.approx([127.5] * 50, abs=1)
    assert (shown[..., 2] == 0).all()


def test_an_image_of_one_value_and_floats_with_nan_are_shown(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "flat.tif", np.full((5, 5), 700, dtype=np.uint16))
    assert load_image(tmp_path / "flat.tif").tolist() == np.zeros((5, 5)).tolist()
    floats = np.linspace(-1, 1, 400, dtype=np.float32).reshape(20, 20)
    floats[3, 3] = np.nan
    tifffile.imwrite(tmp_path / "float.tif", floats)
    shown = load_image(tmp_path / "float.tif")
    assert (shown[0, 0], shown[3, 3], shown[-1, -1]) == (0, 0, 255)


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "tif"])
def test_orientation_is_followed(tmp_path: Path, pixels: np.ndarray, turn: int, suffix: str) -> None:
    """The reference is what the EXIF standard says: which edge of the picture row 0 and column 0 are."""
    shown = pixels
    stored = {
        1: shown, 2: shown[:, ::-1], 3: shown[::-1, ::-1], 4: shown[::-1], 5: shown.swapaxes(0, 1),
        6: np.rot90(shown, 1), 7: np.rot90(shown, 2).swapaxes(0, 1), 8: np.rot90(shown, -1),
    }[turn]  # fmt: skip
    path = tmp_path / f"a.{suffix}"
    if suffix == "jpg":
        exif = Image.Exif()
        exif[0x0112] = turn
        Image.fromarray(stored).save(path, exif=exif, quality=95, subsampling=0)
    else:
        tifffile.imwrite(path, stored, photometric="rgb", extratags=[(274, "H", 1, turn, True)])
    file = read_image(path)
    assert (file.width, file.height) == (WIDTH, HEIGHT)
    assert np.abs(load_image(path).astype(int) - shown).mean() < 5


def test_the_size_of_a_pixel_is_read_from_a_microscopes_file(tmp_path: Path) -> None:
    grey = np.zeros((9, 9), dtype=np.uint8)
    tifffile.imwrite(tmp_path / "j.tif", grey, imagej=True, resolution=(4, 4), metadata={"unit": "um"})
    tifffile.imwrite(tmp_path / "inch.tif", grey, imagej=True, resolution=(4, 4), metadata={"unit": "inch"})
    tifffile.imwrite(tmp_path / "dpi.tif", grey, resolution=(300, 300), resolutionunit="INCH")
    tifffile.imwrite(tmp_path / "none.tif", grey, resolution=(40_000, 40_000), resolutionunit="NONE")
    tifffile.imwrite(tmp_path / "cm.tif", grey, resolution=(40_000, 40_000), resolutionunit="CENTIMETER")
    tifffile.imwrite(tmp_path / "fine.tif", grey, resolution=(50_800, 50_800), resolutionunit="INCH")
    sizes = {"axes": "YX", "PhysicalSizeX": 0.325, "PhysicalSizeXUnit": "µm"}
    tifffile.imwrite(tmp_path / "o.ome.tif", grey, metadata=sizes)
    nanometres = {"axes": "YX", "PhysicalSizeX": 325, "PhysicalSizeXUnit": "nm"}
    tifffile.imwrite(tmp_path / "n.ome.tif", grey, metadata=nanometres)
    result = {path.name: read_image(path).pixel_size for path in tmp_path.iterdir() if path.is_file()}
    expected = {"j.tif": 0.25, "cm.tif": 0.25, "fine.tif": 0.5, "o.ome.tif": 0.325, "n.ome.tif": 0.325}
    assert result == pytest.approx(expected | dict.fromkeys(("inch.tif", "dpi.tif", "none.tif")))


@pytest.mark.parametrize("form", ["ome", "imagej"])
def test_channels_of_one_plane_are_one_image_in_colours(tmp_path: Path, form: str) -> None:
    """Three bright squares, a channel each, of which each has a brightness of its own."""
    planes = np.zeros((3, 60, 90), dtype=np.uint16)
    for number in range(3):
        planes[number, 20:40, 30 * number + 5 : 30 * number + 25] = 500 * 10**number
    path = tmp_path / f"a.{form}.tif"
    how = {"metadata": {"axes": "CYX", "mode": "composite"}, "photometric": "minisblack"}
    tifffile.imwrite(path, planes, imagej=form == "imagej", ome=form == "ome", **how)
    file = read_image(path)
    assert (file.width, file.height) == (90, 60)
    shown = load_image(path)
    np.testing.assert_array_equal(shown[30, [15, 45, 75]], np.diag([255, 255, 255]))
    assert not shown[:10].any()
    assert image_file(path).grid.shape == (1, 60, 90)


def test_channels_have_the_colours_of_the_file_and_slices_are_no_channels(tmp_path: Path) -> None:
    planes = np.zeros((2, 40, 40), dtype=np.uint8)
    planes[0, :20], planes[1, 10:] = 200, 100
    cyan, yellow = (0x00FFFFFF, int(np.uint32(0xFFFF00FF).astype(np.int32)))
    expected = {"axes": "CYX", "Channel": {"Name": ["DAPI", "GFP"], "Color": [cyan, yellow]}}
    tifffile.imwrite(tmp_path / "a.ome.tif", planes, photometric="minisblack", metadata=expected)
    shown = load_image(tmp_path / "a.ome.tif")
    np.testing.assert_array_equal(shown[[5, 15, 30], 5], [(0, 200, 200), (100, 255, 200), (100, 100, 0)])
    tifffile.imwrite(tmp_path / "b.ome.tif", planes, photometric="minisblack", metadata={"axes": "CYX"})
    np.testing.assert_array_equal(load_image(tmp_path / "b.ome.tif")[5, 5], (0, 200, 0))
    for names, colour in ((["DAPI", "FITC"], (0, 0, 200)), (["DAPI", "membrane"], (0, 200, 0))):
        dyes = {"axes": "CYX", "Channel": {"Name": names}}
        tifffile.imwrite(tmp_path / "d.ome.tif", planes, photometric="minisblack", metadata=dyes)
        np.testing.assert_array_equal(load_image(tmp_path / "d.ome.tif")[5, 5], colour)
    tifffile.imwrite(tmp_path / "z.ome.tif", planes, photometric="minisblack", metadata={"axes": "ZYX"})
    assert load_image(tmp_path / "z.ome.tif").ndim == 2
    assert image_file(tmp_path / "z.ome.tif").grid.shape == (2, 40, 40)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr"])
def test_inks_and_luminance_are_shown_in_their_colours(tmp_path: Path, pixels: np.ndarray, mode: str) -> None:
    """As Pillow 12 writes them without compression."""
    Image.fromarray(pixels).convert(mode).save(tmp_path / "a.tif")
    assert np.abs(load_image(tmp_path / "a.tif").astype(int) - pixels).max() < 4


# Refused


def test_what_is_in_other_colours_or_strangely_compressed_is_reported(
    tmp_path: Path, pixels: np.ndarray
) -> None:
    Image.fromarray(pixels).convert("LAB").save(tmp_path / "lab.tif")
    assert "is in CIELAB; expected grey or RGB" in refusal(tmp_path / "lab.tif")
    tifffile.imwrite(tmp_path / "odd.tif", pixels, photometric="rgb", compression="zlib")
    with tifffile.TiffFile(tmp_path / "odd.tif") as file:
        offset = file.pages[0].tags[259].offset + 8
    data = bytearray((tmp_path / "odd.tif").read_bytes())
    data[offset : offset + 2] = struct.pack("<H", 32_999)
    (tmp_path / "odd.tif").write_bytes(data)
    assert "has an unsupported compression, 32999" in refusal(tmp_path / "odd.tif")


def test_bombs_are_refused_before_a_pixel_is_decoded(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    bomb.write_bytes(png(50_000, 50_000, b""))
    assert "claims more than 400 million pixels" in refusal(bomb)
    small = tifffile.imwrite
    path = tmp_path / "bomb.tif"
    small(path, np.zeros((64, 64), dtype=np.uint8), tile=(16, 16), compression="zlib")
    for most, tags in ((400, (256, 257)), (179, (322, 323))):
        with tifffile.TiffFile(path) as file:
            positions = [file.pages[0].tags[tag].offset + 8 for tag in tags]
        data = bytearray(path.read_bytes())
        for position in positions:
            data[position : position + 4] = struct.pack("<H2x", 60_000)
        other = tmp_path / f"bomb{tags[0]}.tif"
        other.write_bytes(data)
        assert f"claims more than {most} million pixels" in refusal(other)


def test_what_is_too_large_to_be_decoded_as_a_whole_is_an_image_still(tmp_path: Path) -> None:
    path = tmp_path / "mosaic.png"
    path.write_bytes(png(20_000, 20_000, b""))
    file = read_image(path)
    assert (file.width, file.height) == (20_000, 20_000)
    with pytest.raises(InputError, match="more than 179 million pixels"):
        load_image(path)


def test_a_size_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.png"
    path.write_bytes(png(2000, 2000, b"\0" * 100))
    with pytest.raises(InputError, match=r"short\.png: cannot be read: the image is damaged or cut short"):
        load_image(path)


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    for name, data, words in (
        ("a.txt", b"annotator,image", "is not an image; expected PNG, JPEG, TIFF, BMP or GIF"),
        ("a.csv", b"BMI,age\n25.3,61\n", "is not an image"),
        ("a.gif", b"GIF89a" + bytes(100), "damaged"),
        ("a.bmp", b"BM" + bytes(100), "damaged"),
        ("a.png", b"", "is empty"),
        ("b.png", b"\x89PNG\r\n\x1a\n", "damaged"),
        ("c.tif", b"II*\0" + bytes(100), "damaged"),
        ("d.tif", b"II*\0\xff\xff\xff\x7f", "damaged"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert words in refusal(path)
    assert "does not exist" in refusal(tmp_path / "none.png")
    assert "is a folder" in refusal(tmp_path)
    tifffile.imwrite(
        tmp_path / "channels.tif",
        np.zeros((9, 9, 7), np.uint8),
        photometric="minisblack",
        planarconfig="contig",
    )
    assert "has 7 channels; expected grey or RGB" in refusal(tmp_path / "channels.tif")
    tifffile.imwrite(tmp_path / "complex.tif", np.zeros((9, 9), np.complex128))
    assert "unknown type" in refusal(tmp_path / "complex.tif")


def saved(kind: str) -> bytes:
    stream = io.BytesIO()
    array = np.random.default_rng(0).integers(0, 255, (20, 20), dtype=np.uint8)
    if kind == "tif":
        tifffile.imwrite(stream, array, compression="zlib", tile=(16, 16))
    else:
        Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


SAVED = {kind: saved(kind) for kind in ("png", "jpeg", "tif")}


@pytest.mark.parametrize("kind", SAVED)
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_damaged_images_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    broken = bytearray(SAVED[kind])
    for _ in range(data.draw(st.integers(1, 5))):
        broken[data.draw(st.integers(4, len(broken) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"broken.{kind}"
    path.write_bytes(broken[: data.draw(st.integers(5, len(broken)))])
    with contextlib.suppress(InputError):
        file = read_image(path)
        shown = load_image(path)
        assert shown.shape[:2] == (file.height, file.width)
        assert shown.dtype == np.uint8


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_images_that_are_cut_short_are_named_by_the_import(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 300, 3), dtype=np.uint8))
    thumbnail, data = io.BytesIO(), io.BytesIO()
    picture.resize((60, 40)).save(thumbnail, "JPEG")
    if kind == "TIFF":  # its directory comes before the pixels
        tifffile.imwrite(data, np.asarray(picture))
    else:
        picture.save(data, kind, comment=thumbnail.getvalue())
    folder = tmp_path / "in"
    folder.mkdir()
    whole, short, longer = (folder / f"{name}.{kind.casefold()}" for name in ("whole", "short", "longer"))
    whole.write_bytes(data.getvalue())
    short.write_bytes(data.getvalue()[:-2000])
    longer.write_bytes(data.getvalue() + bytes(5_000))
    assert main(["import", str(tmp_path / "a.rscope"), str(folder)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert f"{short.name} is cut short: its last part is missing." in output
    assert output.count("cut short") == 1


def test_real_photographs(real_data: Path) -> None:
    file = read(real_data / "clicks" / "iml_malaria" / "images" / "PA171690.JPG")
    assert isinstance(file, ImageFile)
    assert (file.width, file.height) == (1280, 960)
    assert load_image(file.path).shape == (960, 1280, 3)
