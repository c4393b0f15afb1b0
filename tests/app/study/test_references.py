"""Digests of files: cached for unchanged files, computed again after a change."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raterscope.app.formats.image_heads import read_image
from raterscope.app.study import Study, references


def read_of(path) -> tuple[str, bool]:
    """Return a digest, and whether the file was read for it."""
    messages = []
    return references.digest_of_file(path, lambda *_: messages.append(True)), bool(messages)


def test_a_file_is_read_once_until_it_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(references, "_CLOCK_STEP", 0)
    path = tmp_path / "slide.tif"
    path.write_bytes(b"one slide")
    first, read = read_of(path)
    assert read
    assert read_of(path) == (first, False)
    status = path.stat()
    time.sleep(0.02)  # longer than a disk's clock takes from one time to the next
    path.write_bytes(b"ten slide")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    second, read = read_of(path)
    assert read
    assert second != first
    time.sleep(0.02)
    path.write_bytes(b"one slide")
    assert read_of(path) == (first, True)


def test_what_was_just_written_is_not_taken_for_known(tmp_path):
    path = tmp_path / "slide.tif"
    path.write_bytes(b"one slide")
    assert read_of(path)[1]
    assert read_of(path)[1]


def write_png(path: Path, pixels: np.ndarray) -> None:
    Image.fromarray(pixels).save(path, compress_level=0)  # one pixel changes one byte, and not the size


def test_a_png_is_recognised_without_its_pixels_and_checked_with_them(tmp_path: Path) -> None:
    path = tmp_path / "smear.png"
    pixels = np.zeros((300, 400, 3), dtype=np.uint8)
    write_png(path, pixels)
    digest, size = references.digest_of_image(path), path.stat().st_size
    assert digest.startswith("png:")
    assert references.has_digest(path, digest)
    assert references.has_digest(path, references.digest_of_file(path))  # as earlier versions stored
    pixels[150, 200, 1] = 1
    write_png(path, pixels)
    assert path.stat().st_size == size
    assert references.digest_of_image(path) != digest
    assert not references.has_digest(path, digest)


def test_a_png_with_a_damaged_pixel_is_another(tmp_path: Path) -> None:
    path = tmp_path / "smear.png"
    write_png(path, np.zeros((300, 400), dtype=np.uint8))
    digest = references.digest_of_image(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert not references.has_digest(path, digest)


@pytest.mark.parametrize("cut", [1, 12, 13, 5000])
def test_a_cut_png_is_read_as_a_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "smear.png"
    write_png(path, np.zeros((300, 400), dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:-cut])
    assert references.digest_of_image(path) == references.digest_of_file(path) or cut == 12
    path.write_bytes(path.read_bytes() + b"rest")
    assert references.digest_of_image(path) == references.digest_of_file(path)


def test_a_png_stored_by_an_earlier_version_is_the_same_image(tmp_path: Path) -> None:
    path = tmp_path / "smear.png"
    write_png(path, np.zeros((30, 40), dtype=np.uint8))
    with Study.create(tmp_path / "study.rscope") as study:
        (first,) = study.add_images([replace(read_image(path), digest=references.digest_of_file(path))])
        (second,) = study.add_images([read_image(path)])
        assert second == first
        write_png(path, np.ones((30, 40), dtype=np.uint8))
        (third,) = study.add_images([read_image(path)])
        assert third.id != first.id
