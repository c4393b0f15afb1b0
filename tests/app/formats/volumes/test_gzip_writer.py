"""Packed arrays: one member that other programs unpack, and the same bytes each time."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.formats.volumes import gzip_writer
from raterscope.app.formats.volumes.gzip_writer import write_gzip

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [0, 1, 100, 512, 5000, 5120])
@pytest.mark.parametrize("kind", ["zeros", "noise", "islands"])
def test_unpacked_it_is_what_was_written(tmp_path: Path, monkeypatch, size: int, kind: str) -> None:
    monkeypatch.setattr(gzip_writer, "_BLOCK", 512)
    gzip_writer._packed_zeros.cache_clear()
    gzip_writer._columns_of_zeros.cache_clear()
    values = np.zeros(size, dtype=np.int16)
    if kind == "noise":
        values[:] = RNG.integers(-5, 5, size)
    elif kind == "islands":
        values[size // 3 : size // 3 + 40] = 7
    path = tmp_path / "values.gz"
    write_gzip(path, b"head", values)
    content = path.read_bytes()
    assert gzip.decompress(content) == b"head" + values.tobytes()
    write_gzip(path, b"head", values)
    assert path.read_bytes() == content
    gzip_writer._packed_zeros.cache_clear()
    gzip_writer._columns_of_zeros.cache_clear()


def test_a_look_ends_the_work(tmp_path: Path) -> None:
    def look() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        write_gzip(tmp_path / "values.gz", b"", RNG.random((3, 1 << 16)), look)
