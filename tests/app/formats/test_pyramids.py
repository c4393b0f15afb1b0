"""Large images by tiles: the same pixels as the complete image, cached and rebuilt within limits."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import pyramids
from raterscope.app.formats.image_heads import load_overview, read_image
from raterscope.app.formats.images import load_image
from raterscope.app.formats.pyramids import PyramidCache, PyramidReader, open_pyramid
from raterscope.app.formats.pyramids.pyramid import halve

WIDTH, HEIGHT, TALL = 1203, 557, 1057
"""If an image is tall, its half has two rows of tiles, too."""


@pytest.fixture(scope="module")
def tall() -> np.ndarray:
    """Blobs in colour, none alike, that JPEG keeps well, of odd lengths."""
    y, x = np.mgrid[:TALL, :WIDTH]
    waves = [np.sin(x / 37 + y / (50 + 9 * k)) + np.cos(y / 29 - k) for k in range(3)]
    return (127 + 60 * np.stack(waves, axis=-1)).astype(np.uint8)


@pytest.fixture(scope="module")
def colours(tall: np.ndarray) -> np.ndarray:
    """The upper part."""
    return np.ascontiguousarray(tall[:HEIGHT])


@pytest.fixture
def cache(tmp_path: Path) -> PyramidCache:
    return PyramidCache(tmp_path / "cache")


def whole(reader: PyramidReader, level: int = 0) -> np.ndarray:
    """A level put together from its tiles."""
    rows, columns = reader.pyramid.grid(level)
    lines = [np.concatenate([reader.tile(level, r, c) for c in range(columns)], axis=1) for r in range(rows)]
    return np.concatenate(lines)


def save(path: Path, pixels: np.ndarray, kind: str) -> None:
    if kind in ("png", "jpg"):
        Image.fromarray(pixels).save(path, quality=95, compress_level=1)
    elif kind == "turned":
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(pixels).save(path, quality=95, exif=exif)
    else:
        how = {
            "raw": {},
            "strips": {"compression": "zlib", "rowsperstrip": 50},
            "tiles": {"compression": "zlib", "tile": (64, 96)},
            "planes": {"compression": "zlib", "rowsperstrip": 50, "planarconfig": "separate"},
            "white": {"photometric": "miniswhite", "compression": "zlib"},
        }[kind]
        if kind == "planes":
            pixels = np.moveaxis(pixels, -1, 0)
        how.setdefault("photometric", "rgb" if pixels.ndim == 3 else "minisblack")
        tifffile.imwrite(path, pixels, **how)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("png", "a.png"), ("jpg", "a.jpg"), ("turned", "a.jpg"), ("raw", "a.tif"), ("strips", "a.tif"),
     ("tiles", "a.tif"), ("planes", "a.tif")],
)  # fmt: skip
def test_tiles_hold_the_pixels_of_the_whole_image(tmp_path, tall, cache, kind, name):
    path = tmp_path / name
    save(path, tall, kind)
    reader, file = open_pyramid(path, cache=cache), read_image(path)
    assert reader.levels[0] == (file.width, file.height)
    np.testing.assert_array_equal(whole(reader), load_image(path))
    assert max(reader.levels[-1]) <= reader.side
    for level, (width, height) in enumerate(reader.levels):
        assert whole(reader, level).shape == (height, width, 3)
    assert [kept.suffix for kept in cache.folder.glob("*")] == ([] if kind == "tiles" else [".pyramid"])


@pytest.mark.parametrize("kind", ["png", "raw", "strips", "white"])
def test_grey_and_deep_images_are_shown_as_the_whole_is(tmp_path, colours, cache, kind):
    path = tmp_path / ("a.png" if kind == "png" else "a.tif")
    for pixels in (colours[..., 0], colours[..., 1].astype(np.uint16) * 37 + 900):
        save(path, pixels, kind)
        shown, expected = whole(open_pyramid(path, cache=cache)), load_image(path)
        assert shown.shape == expected.shape
        assert np.abs(shown.astype(int) - expected).max() <= (0 if pixels.dtype == np.uint8 else 1)


@pytest.mark.parametrize("form", ["P", "1", "RGBA", "LA"])
def test_palettes_bits_and_transparency_are_shown_as_the_whole_is(tmp_path, colours, cache, form):
    Image.fromarray(colours).convert(form).save(tmp_path / "a.png", compress_level=1)
    np.testing.assert_array_equal(
        whole(open_pyramid(tmp_path / "a.png", cache=cache)), load_image(tmp_path / "a.png")
    )


def test_every_filter_of_png_is_undone(tmp_path, colours, cache):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, colours.shape, dtype=np.uint8)
    # Noise optimized for size has rows of all five filters.
    for pixels, optimize in ((colours, False), (noise, True), (colours[..., 0], False)):
        Image.fromarray(pixels).save(tmp_path / "a.png", compress_level=1, optimize=optimize)
        np.testing.assert_array_equal(whole(open_pyramid(tmp_path / "a.png", cache=cache)), pixels)


def pyramidal(path: Path, pixels: np.ndarray, ome: bool, **how: object) -> list[np.ndarray]:
    copies = [pixels, pixels[::2, ::2], pixels[::8, ::8]]
    with tifffile.TiffWriter(path, ome=ome) as file:
        for copy in copies:
            tags = {"subifds": 2} if ome and copy is pixels else {} if copy is pixels else {"subfiletype": 1}
            file.write(
                copy,
                tile=(128, 128),
                metadata=None if not ome else {"axes": "YXS"[: copy.ndim]},
                **tags,
                **how,
            )
    return copies


@pytest.mark.parametrize("ome", [True, False])
@pytest.mark.parametrize("how", [{}, {"compression": "zlib", "predictor": True}, {"compression": "jpeg2000"}])
def test_a_pyramid_is_read_by_its_own_tiles_and_nothing_is_kept_of_it(tmp_path, colours, cache, ome, how):
    path = tmp_path / ("a.ome.tif" if ome else "a.tif")
    copies = pyramidal(path, colours, ome, photometric="rgb", **how)
    reader = open_pyramid(path, cache=cache)
    np.testing.assert_array_equal(whole(reader), colours)
    np.testing.assert_array_equal(whole(reader, 1), copies[1])
    assert [whole(reader, level).shape[:2][::-1] for level in range(len(reader.levels))] == list(
        reader.levels
    )
    assert not cache.folder.exists()


def test_tiles_in_jpeg_come_in_their_colours(tmp_path, colours, cache):
    path = tmp_path / "a.tif"
    pyramidal(path, colours, False, photometric="rgb", compression="jpeg", compressionargs={"level": 95})
    shown = whole(open_pyramid(path, cache=cache))
    assert np.abs(shown.astype(int) - colours).mean() < 3


def test_a_level_that_the_file_lacks_is_made_of_the_finer_one(tmp_path, colours, cache):
    path = tmp_path / "a.tif"
    copies = pyramidal(path, colours, False, photometric="rgb")
    np.testing.assert_array_equal(whole(open_pyramid(path, cache=cache), 2), halve(copies[1]))


def test_a_deep_pyramid_has_one_contrast_in_all_its_tiles(tmp_path, colours, cache):
    deep = colours[..., 0].astype(np.uint16) * 21 + 300
    pyramidal(tmp_path / "a.tif", deep, False, photometric="minisblack")
    shown = whole(open_pyramid(tmp_path / "a.tif", cache=cache)).astype(float)
    assert np.corrcoef(shown.ravel(), deep.ravel())[0, 1] > 0.9999
    assert shown.min() <= 1
    assert shown.max() >= 254


@pytest.mark.parametrize("copies", [True, False])
def test_channels_are_laid_over_one_another_by_tiles_as_in_the_whole(tmp_path, colours, cache, copies):
    path = tmp_path / "a.ome.tif"
    planes = np.moveaxis(colours, -1, 0)[:2]
    how = {"photometric": "minisblack", "tile": (128, 128), "compression": "zlib"}
    with tifffile.TiffWriter(path, ome=True) as file:
        file.write(planes, subifds=2 if copies else 0, metadata={"axes": "CYX"}, **how)
        for step in (2, 4) if copies else ():
            file.write(planes[:, ::step, ::step], subfiletype=1, **how)
    reader = open_pyramid(path, cache=cache)
    np.testing.assert_array_equal(whole(reader), load_image(path))
    np.testing.assert_array_equal(whole(reader)[..., :2], np.stack([planes[1], planes[0]], axis=-1))
    if copies:
        np.testing.assert_array_equal(whole(reader, 1)[..., 1], planes[0, ::2, ::2])
    assert cache.folder.exists() == (not copies)


def test_a_pyramid_may_claim_more_than_an_image_in_one_piece(tmp_path):
    empty = zlib.compress(bytes(512 * 512), 1)

    def sparse(path: Path, sides: list[int]) -> None:
        with tifffile.TiffWriter(path, bigtiff=True) as file:
            for side in sides:
                tiles = (empty for _ in range((-(-side // 512)) ** 2))
                file.write(
                    tiles, shape=(side, side), dtype=np.uint8, tile=(512, 512), compression="zlib",
                    photometric="minisblack", subfiletype=0 if side == sides[0] else 1,
                )  # fmt: skip

    sparse(tmp_path / "alone.tif", [24_000])
    with pytest.raises(InputError, match="more than 400 million pixels; a pyramidal TIFF may be larger"):
        read_image(tmp_path / "alone.tif")
    sparse(tmp_path / "pyramid.tif", [24_000, 12_000, 3_000])
    assert read_image(tmp_path / "pyramid.tif").width == 24_000
    assert open_pyramid(tmp_path / "pyramid.tif").tile(3, 1, 2).shape == (512, 512)


def test_parts_are_cut_from_any_level_and_end_where_the_image_ends(tmp_path, colours, cache):
    save(tmp_path / "a.png", colours, "png")
    reader = open_pyramid(tmp_path / "a.png", cache=cache)
    np.testing.assert_array_equal(reader.region(0, 500, 490, 40, 50), colours[490:540, 500:540])
    np.testing.assert_array_equal(reader.region(0, -10, 540, 30, 60), colours[540:, :20])
    assert reader.region(0, WIDTH, 0, 10, 10).size == 0
    assert max(reader.overview(300).shape) in range(300, 1203)
    with pytest.raises(IndexError):
        reader.tile(0, 3, 0)


def test_small_things_keep_contrast_where_a_mean_loses_it():
    rng = np.random.default_rng(0)
    ground = np.clip(rng.normal(200, 2, (512, 512)), 0, 255).astype(np.uint8)
    dots = ground.copy()
    for y, x in rng.integers(20, 480, (40, 2)):
        dots[y : y + 5, x : x + 5] = 60
    mean, ours, bare = dots.astype(float), dots, ground
    for _ in range(4):
        mean = mean.reshape(len(mean) // 2, 2, -1, 2).mean(axis=(1, 3))
        ours, bare = halve(ours), halve(bare)
    depth = 200 - ours.astype(float)
    assert depth.max() > 1.5 * (200 - mean).max()
    assert bare.std() < 2
    assert abs(bare.mean() - 200) < 1


# What is kept


def test_a_pyramid_is_made_once_and_known_by_content(tmp_path, colours, cache):
    save(tmp_path / "a.png", colours, "png")
    reported = []
    open_pyramid(
        tmp_path / "a.png", "sha256:1", lambda share, words, **_: reported.append((share, words)), cache=cache
    )
    assert reported[0][1] == "decoding the image"
    assert [share for share, _ in reported] == sorted(share for share, _ in reported)
    assert reported[-1] == (1.0, "building smaller copies of the image")
    (tmp_path / "a.png").rename(tmp_path / "b.png")
    os.utime(tmp_path / "b.png", (1, 1))
    open_pyramid(tmp_path / "b.png", "sha256:1", lambda *_, **__: pytest.fail("built again"), cache=cache)
    save(tmp_path / "b.png", 255 - colours, "png")
    np.testing.assert_array_equal(whole(open_pyramid(tmp_path / "b.png", cache=cache)), 255 - colours)


def test_a_very_long_pyramid_is_made_once(tmp_path, cache):
    path = tmp_path / "strip.tif"
    tifffile.imwrite(path, np.zeros(((1 << 20) + 600, 3), dtype=np.uint8), rowsperstrip=4096)
    open_pyramid(path, cache=cache)
    (kept,) = cache.folder.iterdir()
    before = kept.stat().st_ino
    open_pyramid(path, cache=cache)
    assert [path.stat().st_ino for path in cache.folder.iterdir()] == [before]


@pytest.mark.parametrize("harm", ["cut", "magic", "index", "empty"])
def test_what_was_damaged_is_made_again(tmp_path, colours, cache, harm):
    save(tmp_path / "a.png", colours, "png")
    open_pyramid(tmp_path / "a.png", cache=cache)
    (kept,) = cache.folder.iterdir()
    data = bytearray(kept.read_bytes())
    if harm == "cut":
        data = data[: len(data) // 2]
    elif harm == "empty":
        data = bytearray()
    else:
        data[-3 if harm == "magic" else -100] ^= 255
    kept.write_bytes(data)
    np.testing.assert_array_equal(whole(open_pyramid(tmp_path / "a.png", cache=cache)), colours)


def test_a_tile_that_does_not_agree_with_its_checksum_is_not_shown_and_made_again(tmp_path, colours, cache):
    save(tmp_path / "a.png", colours, "png")
    reader = open_pyramid(tmp_path / "a.png", cache=cache)
    (kept,) = cache.folder.iterdir()
    data = bytearray(kept.read_bytes())
    data[500] ^= 1
    kept.write_bytes(data)
    with pytest.raises(InputError, match="The cached copy of this image was damaged; it is built again"):
        whole(reader)
    np.testing.assert_array_equal(whole(open_pyramid(tmp_path / "a.png", cache=cache)), colours)


def test_what_was_not_looked_at_for_longest_goes_first(tmp_path, colours):
    paths = [tmp_path / f"{n}.png" for n in range(3)]
    for n, path in enumerate(paths):
        save(path, np.roll(colours, n, axis=0), "png")
    roomy = PyramidCache(tmp_path / "cache")
    for n, path in enumerate(paths[:2]):
        open_pyramid(path, cache=roomy)
        (roomy.folder / "x").touch()
        for kept in roomy.folder.glob("*.pyramid"):
            os.utime(kept, (1000 + n, 1000 + n))
    size = max(kept.stat().st_size for kept in roomy.folder.glob("*.pyramid"))
    open_pyramid(paths[0], cache=roomy)  # looked at again: the other is the oldest now
    tight = PyramidCache(roomy.folder, int(2.5 * size))
    open_pyramid(paths[2], cache=tight)
    assert tight.find(paths[0], None) is not None
    assert tight.find(paths[1], None) is None
    assert tight.find(paths[2], None) is not None
    assert (roomy.folder / "x").exists()


def test_nothing_is_left_of_a_pyramid_that_was_cancelled(tmp_path, colours, cache):
    for name, kind in (("a.png", "png"), ("a.tif", "strips")):
        save(tmp_path / name, colours, kind)
        for when in ("decoding the image", "building smaller copies of the image"):

            def watch(share: float, words: str, when: str = when, **_: object) -> None:
                if words == when and share > 0.1:
                    raise Cancelled

            with pytest.raises(Cancelled):
                open_pyramid(tmp_path / name, None, watch, cache=cache)
            assert list(cache.folder.iterdir()) == []


# Refused


def test_what_cannot_be_cut_into_tiles_is_refused_in_a_sentence(tmp_path, colours, cache, monkeypatch):
    save(tmp_path / "a.png", colours, "png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"a\.png: cannot be read: the image is damaged or cut short"):
        open_pyramid(tmp_path / "a.png", cache=cache)
    save(tmp_path / "a.tif", colours, "raw")
    data = (tmp_path / "a.tif").read_bytes()
    (tmp_path / "a.tif").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"a\.tif: cannot be read"):
        open_pyramid(tmp_path / "a.tif", cache=cache)
    tifffile.imwrite(tmp_path / "b.tif", colours, photometric="rgb", compression="zlib", rowsperstrip=HEIGHT)
    monkeypatch.setattr("raterscope.app.formats.pyramids.flat._LARGEST_PIECE", 1 << 20)
    with pytest.raises(InputError, match="compressed in one large piece; save it in tiles or strips"):
        open_pyramid(tmp_path / "b.tif", cache=cache)
    with pytest.raises(InputError, match="does not exist"):
        open_pyramid(tmp_path / "none.png", cache=cache)
    assert list(cache.folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path, colours):
    save(tmp_path / "a.png", colours, "png")
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cache: cannot be written to"):
        open_pyramid(tmp_path / "a.png", cache=PyramidCache(tmp_path / "cache"))


def test_a_broken_tile_of_a_pyramid_is_reported_and_the_others_are_shown(tmp_path, colours, cache):
    path = tmp_path / "a.tif"
    pyramidal(path, colours, False, photometric="rgb", compression="zlib")
    with tifffile.TiffFile(path) as file:
        offset = file.pages[0].dataoffsets[0]
    data = bytearray(path.read_bytes())
    data[offset : offset + 50] = bytes(50)
    path.write_bytes(data)
    reader = open_pyramid(path, cache=cache)
    with pytest.raises(InputError, match="damaged or cut short"):
        reader.tile(0, 0, 0)
    np.testing.assert_array_equal(reader.tile(0, 1, 1), colours[512:, 512:1024])


def test_openslide_s_pixels_are_the_same(tmp_path, colours, cache):
    pytest.importorskip("openslide")
    from raterscope.app.formats.pyramids.pyramid import SlideSource

    path = tmp_path / "a.tif"
    colours = colours[:512, :1200]  # of other lengths OpenSlide moves copies by a part of a pixel
    copies = pyramidal(path, colours, False, photometric="rgb", compression="zlib")
    reader = PyramidReader(SlideSource(path))
    np.testing.assert_array_equal(whole(reader), colours)
    np.testing.assert_array_equal(whole(reader, 1), copies[1])
    np.testing.assert_array_equal(whole(open_pyramid(path, cache=cache)), whole(reader))


def test_a_scanner_s_slide_is_read_through_openslide_with_its_pixel_size(tmp_path, colours, cache):
    pytest.importorskip("openslide")
    from raterscope.app.formats.pyramids.pyramid import is_slide

    path = tmp_path / "a.svs"
    words = "Aperio Image Library v11.2.1\r\n1200x512 (128x128) JPEG/RGB Q=95|AppMag = 40|MPP = 0.2520"
    how = {"photometric": "rgb", "compression": "jpeg", "compressionargs": {"level": 95}, "metadata": None}
    with tifffile.TiffWriter(path) as file:
        for copy in (colours[:512, :1200], colours[:512:4, :1200:4]):
            file.write(copy, tile=(128, 128), description=words, **how)
    assert is_slide(path)
    file = read_image(path)
    assert (file.width, file.height, file.pixel_size) == (1200, 512, 0.252)
    shown = whole(open_pyramid(path, cache=cache))
    assert np.abs(shown.astype(int) - colours[:512, :1200]).mean() < 3
    assert not cache.folder.exists()


def test_an_overview_is_as_fine_as_it_is_requested(tmp_path, colours, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    save(tmp_path / "a.png", colours, "png")
    np.testing.assert_array_equal(load_overview(tmp_path / "a.png", 200), colours)
    monkeypatch.setattr(pyramids, "WHOLE_UP_TO", 1000)
    assert load_overview(tmp_path / "a.png", 200).shape == (140, 301, 3)
    assert load_overview(tmp_path / "a.png", 302).shape == (279, 602, 3)
