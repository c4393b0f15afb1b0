"""Files of tables: long ones are parsed by Arrow: the same as row by row, with the same errors."""

import csv
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.progress import silent
from raterscope.app.errors import InputError
from raterscope.app.formats import table_files
from raterscope.app.formats.records import first_seen
from raterscope.app.formats.table_files import read_long_table, read_table
from raterscope.app.formats.tables import Faults, read_names, read_numbers


def both_readings(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Read a table by Arrow where that is possible, and row by row; an error is a result too."""
    results: list[object] = []
    for long in (0, 1 << 40):
        monkeypatch.setattr(table_files, "LONG", long)
        try:
            table = read_table(path)
        except InputError as error:
            results.append(str(error))
            continue
        numbers = []
        for column in table.header:
            faults = Faults(table)
            names = tuple(first_seen(read_names(table, column, faults))[0])
            values = read_numbers(table, column, faults, empty=True)
            numbers.append((names, values.tobytes(), message_of(faults)))
        results.append((table.header, [list(cells) for cells in table.columns], list(table.lines), numbers))
    return results


def message_of(faults: Faults) -> str:
    try:
        faults.refuse()
    except InputError as error:
        return str(error)
    return ""


CELLS = ("a", " b ", "", "'=x", "1.5", "1e3", "nan", "-7", "2,5", "ä", "1_0", "\u0661", 'q"q', "n" * 501, " ")


def random_table(path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    few = generator.choice(len(CELLS), generator.integers(2, 8), replace=False)
    end = ["\n", "\r\n", "\r"][seed % 3]
    delimiter = ",;\t"[seed % 4 % 3]
    with path.open("w", newline="", encoding="cp1252" if seed % 7 == 6 else "utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(["name", "x", "other"])
        for _ in range(generator.integers(1, 60)):
            cells = [CELLS[at] for at in generator.choice(few, 3)]
            writer.writerow(["row", *cells[1:]] if seed % 2 else cells)
        if seed % 5 == 4:
            file.write(["\n", "only,two\n", '"two\nlines",1,2\n', ",,\n"][seed % 4])


def test_a_long_table_is_read_as_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(40):
        random_table(tmp_path / "table.csv", seed)
        quick, slow = both_readings(tmp_path / "table.csv", monkeypatch)
        assert quick == slow, seed


@pytest.mark.parametrize("long", [0, 1 << 40])
def test_a_header_that_is_repeated_is_skipped(
    long: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_files, "LONG", long)
    path = tmp_path / "clicks.csv"
    header = "annotator,image,x,y\n"
    path.write_text(f"{header}ann,1.png,1,2\n\n{header}ann,1.png,x,4\n{header}bob,1.png,5,6\n")
    table = read_table(path)
    assert list(table.column("annotator")) == ["ann", "ann", "bob"]
    assert list(table.lines) == [2, 5, 7]
    assert table.notices == ("2 lines skipped: they repeat the header (first: line 4).",)


def test_most_tables_without_oddities_are_read_by_arrow(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    path.write_text("annotator,image,x,y\n" + 'ann,"a ""b"".png",1.25,7\n' * 3, encoding="utf-8")
    table = read_long_table(path, path.read_bytes(), silent)
    assert table is not None
    assert table.column("image")[1:] == ['a "b".png'] * 2
