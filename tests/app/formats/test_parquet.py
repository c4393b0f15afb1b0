"""Parquet tables give what the same CSV gives."""

import csv
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from raterscope.app.errors import InputError
from raterscope.app.importing import read_files

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


def test_a_column_of_lists_is_refused_by_its_name(tmp_path: Path) -> None:
    rows = [{"annotator": ["a"], "task": "t", "label": "cat"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="field annotator: holds no text"):
        read_files([tmp_path / "a.parquet"], kind="labels")
