"""Spreadsheets as tables: what openpyxl writes is read, and what is damaged is refused in one sentence."""

import zipfile
from datetime import datetime

import openpyxl
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats import read
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.tables import read_table


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_become_text_as_in_csv(tmp_path):
    path = workbook(
        tmp_path / "a.xlsx",
        [
            ["task", "worker", "label", "time"],
            [1, "kim", 0.5, datetime(2024, 5, 1, 12)],
            [2, "lee\nb", True, None],
        ],
    )
    table = read_table(path)
    assert table.header == ("task", "worker", "label", "time")
    assert [list(column) for column in table.columns] == [
        ["1", "2"], ["kim", "lee b"], ["0.5", "True"], ["2024-05-01 12:00:00", ""],
    ]  # fmt: skip
    assert list(table.lines) == [2, 3]


def test_votes_and_clicks_are_read_from_the_first_sheet_with_rows(tmp_path):
    votes = [["task", "annotator", "label"], ["a", "kim", "yes"], [], ["b", "lee", "no"]]
    (table,) = read_labels(workbook(tmp_path / "votes.xlsx", [], votes, [["notes"]]))
    assert [table.outputs[label] for label in table.label] == ["yes", "no"]
    clicks = read(workbook(tmp_path / "clicks.xlsx", [["user", "image", "x", "y"], ["kim", "s.png", 3, 4.5]]))
    assert (clicks.annotators, clicks.x.tolist(), clicks.y.tolist()) == (("kim",), [3.0], [4.5])


def test_a_bad_cell_is_named_by_its_row_in_the_sheet(tmp_path):
    rows = [["user", "image", "x", "y"], ["kim", "s.png", 3, 4], [], ["lee", "s.png", "here", 4]]
    with pytest.raises(InputError, match="line 4, field x"):
        read(workbook(tmp_path / "clicks.xlsx", rows))


def test_damaged_empty_and_unbounded_files_are_refused(tmp_path):
    damaged = tmp_path / "damaged.xlsx"
    damaged.write_bytes(workbook(tmp_path / "a.xlsx", [["a", "b"], [1, 2]]).read_bytes()[:900])
    with pytest.raises(InputError, match="damaged spreadsheet"):
        read_table(damaged)
    with pytest.raises(InputError, match="is empty"):
        read_table(workbook(tmp_path / "empty.xlsx", []))
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (600 << 20))
    with pytest.raises(InputError, match="unpacks to 600 MB"):
        read_table(bomb)
