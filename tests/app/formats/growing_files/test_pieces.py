"""However a file's bytes come, in whatever pieces, the same rows come of them."""

import csv
import io
import json
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raterscope.app.formats import ClickTable, read
from tests.app.formats.growing_files.following import Follower, rows_of

NAMES = st.sampled_from(["ann", "Jürgen", "🦎 one", 'O"Brien', "a, b", "two\nlines", "", "'=x", " bob "])
PLACES = st.sampled_from(["1", "2.5", "-0", "1,5", "1e2", "", "nan", "abc", "1_0"])
TIMES = st.sampled_from(["1", "2", "", "2024-01-02 03:04:05 UTC", "soon"])
ROWS = st.lists(st.tuples(NAMES, st.sampled_from("ab"), PLACES, PLACES, TIMES), max_size=12)
BAD = st.sampled_from(['"open,a,1,2,3', "a,b", "", ",,,,", "a,b,c,d,e,f", 'x"y,a,1,2,'])
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])


def followed(data: bytes, cuts: Sequence[int], suffix: str, max_rows: int) -> tuple[object, ...]:
    with tempfile.TemporaryDirectory() as folder:
        follower = Follower(Path(folder) / f"clicks{suffix}", max_rows=max_rows)
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            with follower.source.open("ab") as stream:
                stream.write(data[begin:end])
            follower.catch_up()
        assert follower.position is not None
        (file,) = follower.position.files.values()
        kept = (file.offset, file.line, file.seen, file.latest)
        return follower.rows, follower.looked, follower.sizes, follower.refused, follower.repeated, kept


def same_in_pieces(draw: st.DataObject, data: bytes, suffix: str) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    max_rows = draw.draw(st.sampled_from([1, 2, 1000]))
    assert followed(data, cuts, suffix, max_rows) == followed(data, [], suffix, 1000)


@settings(deadline=None, max_examples=60)
@given(
    rows=ROWS,
    bad=st.lists(BAD, max_size=3),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=3),
    encoding=ENCODINGS,
    draw=st.data(),
)
def test_tables(
    rows: list[tuple[str, ...]], bad: list[str], ends: list[str], encoding: str, draw: st.DataObject
) -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([("annotator", "image", "x", "y", "time"), *rows])
    head, *lines = stream.getvalue().splitlines()
    text = [head, *draw.draw(st.permutations(lines + bad))]
    written = "".join(line + ends[number % len(ends)] for number, line in enumerate(text))
    same_in_pieces(draw, written.encode(encoding), ".csv")


VALUES = st.one_of(
    st.sampled_from(["ann", "ü", "3", "1,5", None, 2, 2.5, True]), st.lists(st.integers(), max_size=2)
)
OBJECTS = st.dictionaries(
    st.sampled_from(["annotator", "user", "image", "x", "y", "cx", "t_ms", "width", "height", "note"]), VALUES
)


@settings(deadline=None, max_examples=40)
@given(objects=st.lists(OBJECTS, max_size=8), bad=st.binary(max_size=12), draw=st.data())
def test_json_lines(objects: list[dict[str, object]], bad: bytes, draw: st.DataObject) -> None:
    good = '{"annotator":"ann","image":"a","x":1,"y":2,"t_ms":%d}'
    lines = (
        [json.dumps(entry).encode() for entry in objects]
        + [(good % time).encode() for time in (5, 4, 4)]
        + [bad]
    )
    first, *others = [(good % 9).encode(), *draw.draw(st.permutations(lines))]
    same_in_pieces(draw, b"\n".join([first, *others]) + b"\n", ".jsonl")


def test_a_real_crowd_in_pieces_is_what_an_import_gives(tmp_path: Path) -> None:
    if "RATERSCOPE_DATA" not in os.environ:
        pytest.skip("set RATERSCOPE_DATA to the folder with the real data")
    source = Path(os.environ["RATERSCOPE_DATA"]) / "clicks/quantius/clicks.csv"
    data, rng = source.read_bytes(), random.Random(3)
    follower = Follower(tmp_path / "clicks.csv")
    at = 0
    with follower.source.open("ab", buffering=0) as stream:
        while at < len(data):
            size = rng.choice([1, 100, 10_000, 50_000])
            stream.write(data[at : at + size])
            at += size
            follower.catch_up()
    full = read(source)
    assert isinstance(full, ClickTable)
    assert len(full) > 39_000
    assert follower.rows == rows_of(full)
    assert follower.refused == follower.repeated == 0
