"""Records of arrays, there and back."""

import contextlib
import json
import zlib
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from raterscope.algorithms.clicks.data import Clicks, KnownSpots
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.masks.disputes import Dispute
from raterscope.app.study.arrays import CHUNK, DamagedError, pack, unpack
from tests.app.study.made import a_fusion


@dataclass(frozen=True)
class Inner:
    values: np.ndarray
    word: str | None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    other: Inner | None
    names: tuple[str, ...]
    number: float
    count: int
    flag: bool
    array: np.ndarray


def same(first: Any, two: Any) -> bool:
    if is_dataclass(first):
        return type(first) is type(two) and all(
            same(getattr(first, field.name), getattr(two, field.name)) for field in fields(first)
        )
    if isinstance(first, np.ndarray):
        return first.dtype == two.dtype and first.shape == two.shape and first.tobytes() == two.tobytes()
    return first == two or (first != first and two != two)


any_array = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint16, np.bool_]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
any_inner = st.builds(Inner, any_array, st.none() | st.text(max_size=5))


@settings(max_examples=60, deadline=None)
@given(
    st.builds(
        Outer, any_inner, st.none() | any_inner, st.lists(st.text(max_size=4)).map(tuple), st.floats(),
        st.integers(-(2**53), 2**53), st.booleans(), any_array,
    )
)  # fmt: skip
def test_a_record_is_read_back_unchanged(record: Outer) -> None:
    size, chunks = pack(record)
    assert same(record, unpack(Outer, size, list(chunks)))


@dataclass(frozen=True)
class Longer(Inner):
    """As a later version has it."""

    later: np.ndarray | None = None


def test_what_an_older_version_did_not_write_has_its_default() -> None:
    older = Inner(np.arange(3.0), "w")
    assert same(unpack(Longer, *pack(older)), Longer(older.values, "w", None))
    with pytest.raises(DamagedError, match="does not have the fields"):
        unpack(Inner, *pack(Longer(older.values, "w", np.ones(2))))


def test_real_results_and_large_arrays_come_back() -> None:
    n = CHUNK // 4
    rng = np.random.default_rng(0)
    clicks = Clicks(
        rng.random(n), rng.random(n), rng.integers(0, 3, n), ("=a", "ü", ""), (0, 0, 1, 1),
        known=KnownSpots(np.array([1.0]), np.array([2.0]), np.array([True])),
    )  # fmt: skip
    size, chunks = pack(clicks)
    pieces = list(chunks)
    assert len(pieces) > 3
    assert same(clicks, unpack(Clicks, size, pieces))
    fusion = a_fusion(clicks.without({"ü"}))
    assert same(fusion, unpack(Fusion, *pack(fusion)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_wrong_bytes_are_damage_and_nothing_else(data: st.DataObject) -> None:
    record = Outer(Inner(np.arange(5.0), "a"), None, ("b",), float("nan"), 3, True, np.eye(2))
    size, chunks = pack(record)
    raw = bytearray(zlib.decompress(b"".join(chunks)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DamagedError):
        unpack(Outer, size, [zlib.compress(bytes(raw))])


@pytest.mark.parametrize("declared", [7, 2**40, -1])
def test_a_record_that_declares_an_absurd_size_is_damage(declared: int) -> None:
    _, chunks = pack(Inner(np.zeros(3), None))
    with pytest.raises(DamagedError, match="declares"):
        unpack(Inner, declared, chunks)


def test_an_array_that_declares_more_than_is_there_is_damage() -> None:
    header = json.dumps({"values": {"array": ["<f8", [10**6, 10**6], 0]}, "word": None}).encode()
    raw = len(header).to_bytes(8, "little") + header
    with pytest.raises(DamagedError, match="more than is there"):
        unpack(Inner, len(raw), [zlib.compress(raw)])


def test_numbers_of_a_list_that_are_not_known_come_back_as_such():
    dispute = Dispute(
        structure=0, origin=(0, 0, 0), shape=(1, 1, 1), bits=np.zeros(1, dtype=np.uint8), volume_ml=1.0,
        doubt_ml=1.0, beyond=(0,), short=(), leader=0, reach=1.0, weight=0.5, away=(2.5, float("nan")),
    )  # fmt: skip
    size, chunks = pack(dispute)
    second = unpack(Dispute, size, chunks)
    assert second.away[0] == 2.5
    assert np.isnan(second.away[1])


@pytest.mark.parametrize("rows", [1, 3])
def test_a_large_array_of_one_repeated_number_comes_back(rows: int) -> None:
    number = np.full((1, 1, 1), 7, dtype=np.uint8)
    large = Inner(np.broadcast_to(number, (rows, 1024, 1025)), None)
    assert large.values.strides[0] == 0
    size, chunks = pack(large)
    assert same(unpack(Inner, size, chunks), large)


def test_an_array_that_older_versions_stored_as_repeated_once_is_read() -> None:
    """As the weights of continuous STAPLE on one structure of a megavoxel or more."""
    header = json.dumps({"values": {"repeated": [1, ["|u1", [1, 3], 0]]}, "word": None}).encode()
    raw = len(header).to_bytes(8, "little") + header + bytes([4, 5, 6])
    record = unpack(Inner, len(raw), [zlib.compress(raw)])
    assert record.values.tolist() == [[4, 5, 6]]
