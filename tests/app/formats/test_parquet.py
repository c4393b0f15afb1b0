"""Parquet tables give what the same CSV gives."""

import csv
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from raterscope.algorithms.progress import silent
from raterscope.app.errors import InputError
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.labels.columns import read_columns
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.table_files import read_head, read_table
from raterscope.app.importing import read_files
from raterscope.app.library.inputs import read_input

TABLES = {
    "clicks": [
        {"annotator": f"w{n % 3}", "image": "a.png", "x": n + 0.5, "y": 2 * n, "time": n} for n in range(12)
    ],
    "labels": [
        {"worker": n % 3, "task": f"t{n // 3}", "label": ("cat", "dog")[n % 2],
         "time": datetime(2024, 1, 2, 3, n)} for n in range(12)
    ],
    "wide labels": [{"task": f"t{n}", "rater 1": n % 2, "rater 2": None if n == 3 else 1} for n in range(6)],
    "pairs": [
        {"judge": f"w{n % 3}", "left": f"i{n % 4}", "right": "i9", "choice": ["left", "tie"][n % 2]}
        for n in range(12)
    ],
    "ranking": [{"item": f"i{n}", "rank": n + 1} for n in range(4)],
}  # fmt: skip


def written(folder: Path, rows: list[dict]) -> tuple[Path, Path]:
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, folder / "table.parquet", row_group_size=5)
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, table.column_names)
        writer.writeheader()
        writer.writerows(rows)
    return folder / "table.csv", folder / "table.parquet"


def as_values(table: object) -> dict:
    values = {name: value for name, value in vars(table).items() if name not in ("path", "lines")}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()
    }


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_without_a_dictionary_are_read(tmp_path: Path, encoding: str) -> None:
    table = pyarrow.table({"task": ["a", "b", "a"], "label": ["cat", None, "cat"]})
    options = {"use_dictionary": False, "column_encoding": dict.fromkeys(table.column_names, encoding)}
    parquet.write_table(table, tmp_path / "a.parquet", **options)
    columns = read_table(tmp_path / "a.parquet", is_parquet=True).columns
    assert list(map(list, columns)) == [["a", "b", "a"], ["cat", "", "cat"]]


def test_texts_that_share_their_beginnings_do_not_unpack_without_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raterscope.app.formats.untrusted._ALWAYS_UNPACKED", 24 << 20)
    rows = 600
    table = pyarrow.table({"task": ["a" * (1 << 16)] * rows, "label": ["cat"] * rows})
    options = {"use_dictionary": False, "column_encoding": {"task": "DELTA_BYTE_ARRAY", "label": "PLAIN"}}
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd", **options)
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    with pytest.raises(InputError, match="unpacks to more than its size allows"):
        read_table(tmp_path / "a.parquet", is_parquet=True)


def test_texts_in_another_encoding_are_refused(tmp_path: Path) -> None:
    buffers = pyarrow.array([b"cat", b"k\xe4fer"]).buffers()
    table = pyarrow.table(
        {"task": ["a", "b"], "label": pyarrow.Array.from_buffers(pyarrow.string(), 2, buffers)}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet, field label: contains text that is not UTF-8"):
        read_files([tmp_path / "a.parquet"])
    with pytest.raises(InputError, match="field label: contains text that is not UTF-8"):
        read_input(table)
    named = pyarrow.table({"task": ["a", "b"], "answer": ["cat", "dog"]})
    parquet.write_table(named, tmp_path / "b.parquet", store_schema=False)
    content = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(content.replace(b"answer", b"answ\xe4r"))
    with pytest.raises(InputError, match="expected a Parquet table"):
        read_files([tmp_path / "b.parquet"])


@pytest.mark.parametrize("name", list(TABLES))
def test_parquet_gives_what_csv_gives(tmp_path: Path, name: str) -> None:
    text, binary = (read_files([path]) for path in written(tmp_path, TABLES[name]))
    for kind in ("clicks", "labels", "pairs", "rankings"):
        ours, theirs = (list(map(as_values, getattr(result, kind))) for result in (binary, text))
        assert ours == theirs
    assert any((binary.clicks, binary.labels, binary.pairs, binary.rankings))


def test_a_row_that_cannot_be_read_is_named_by_its_number(tmp_path: Path) -> None:
    rows = [{"annotator": "a", "image": "a.png", "x": "1", "y": "2"} for _ in range(4)]
    rows[2]["x"] = "far"
    _, path = written(tmp_path, rows)
    with pytest.raises(InputError, match=r'line 3, field x: "far" is not a number'):
        read_files([path])


@pytest.mark.parametrize("keep", [8, 200, -20])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    _, path = written(tmp_path, TABLES["clicks"])
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"table\.parquet"):
        read_files([path])


def test_lists_are_read_as_those_of_json_lines(tmp_path: Path) -> None:
    rows = [
        {"annotator": "ann", "task": "t", "label": ["cat", "dog"]},
        {"annotator": "bob", "task": "t", "label": []},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (table,) = read_labels(tmp_path / "a.parquet")
    assert (table.outputs, table.missing) == (("cat + dog",), 1)
    talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    battle = {"question_id": "q", "model_a": "x", "model_b": "y", "winner": "tie", "judge": "ann"}
    battle |= {"conversation_a": talk, "conversation_b": talk, "scores": [{"harm": 0.5}]}
    parquet.write_table(pyarrow.Table.from_pylist([battle]), tmp_path / "b.parquet")
    (tmp_path / "b.jsonl").write_text(json.dumps(battle))
    ours, theirs = (read_pairs(tmp_path / f"b.{ending}")[0] for ending in ("parquet", "jsonl"))
    assert (ours.items, ours.choice.tolist()) == (("x", "y"), [0.0])
    assert ours.contents.fields == theirs.contents.fields


def test_a_missing_text_is_empty_and_texts_come_in_the_order_of_their_rows(tmp_path: Path) -> None:
    """Also where the file stores texts in another order, or texts that no row has."""
    stored = pyarrow.DictionaryArray.from_arrays([3, None, 1, 0, None, 3], ["", "unused", "no row", "dog"])
    rows = pyarrow.table({"task": list("abcdef"), "label": stored})
    parquet.write_table(rows, tmp_path / "a.parquet", row_group_size=4)
    table = read_table(tmp_path / "a.parquet", is_parquet=True)
    assert list(table.column("label")) == ["dog", "", "unused", "", "", "dog"]
    assert table.column("label").names == ["dog", "", "unused"]


def test_a_text_stored_once_for_many_rows_takes_its_memory_once(tmp_path: Path) -> None:
    """A file of 1 KB that would unpack to 24 GB."""
    count = 1 << 17
    text = pyarrow.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), ["x" * (1 << 16)])
    parquet.write_table(
        pyarrow.table({"task": text, "annotator": text, "label": text}), tmp_path / "a.parquet"
    )
    assert (tmp_path / "a.parquet").stat().st_size < 20_000
    before = pyarrow.default_memory_pool().max_memory()
    columns = read_columns(read_head(tmp_path / "a.parquet", is_parquet=True), {"task": "task"}, silent)
    assert len(columns.coded["task"].numbers) == count
    assert pyarrow.default_memory_pool().max_memory() - before < 100 << 20
