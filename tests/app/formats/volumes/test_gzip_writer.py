"""Packed volumes: one member that other programs unpack, and the same bytes each time."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.formats.volumes import nifti
from raterscope.app.formats.volumes.nifti import blocks_of, write_gzip

RNG = np.random.default_rng(0)


@pytest.fixture(params=[64, 512, 1 << 18])
def block(request, monkeypatch):
    nifti._packed_zeros.cache_clear()
    nifti._columns_of_zeros.cache_clear()
    monkeypatch.setattr(nifti, "_BLOCK", request.param)
    yield
    nifti._packed_zeros.cache_clear()
    nifti._columns_of_zeros.cache_clear()


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 30, 40), (7, 12, 15), (3, 20, 30)])
@pytest.mark.parametrize("origin", [(0, 0, 0), (0, 3, 5), (2, 1, 0), (4, 9, 11)])
def test_unpacked_it_is_what_was_written(tmp_path: Path, shape, origin) -> None:
    whole = np.zeros([at + size + 2 for at, size in zip(origin, shape, strict=True)], dtype=np.int16)
    values = RNG.integers(-5, 5, shape).astype(np.int16)
    whole[tuple(slice(at, at + size) for at, size in zip(origin, shape, strict=True))] = values
    path = tmp_path / "values.gz"
    write_gzip(path, b"head", blocks_of(values, origin, whole.shape))
    content = path.read_bytes()
    assert gzip.decompress(content) == b"head" + whole.tobytes()
    write_gzip(path, b"head", blocks_of(values, origin, whole.shape))
    assert path.read_bytes() == content


def test_a_look_ends_the_work(tmp_path: Path) -> None:
    def look() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        write_gzip(tmp_path / "values.gz", b"", blocks_of(RNG.random((3, 2, 9)), (0, 0, 0), (3, 2, 9)), look)
