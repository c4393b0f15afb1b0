"""Spreadsheets as tables: what openpyxl writes is read, and what is damaged is refused in one sentence."""

import zipfile
from datetime import datetime

import openpyxl
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats import read, workbooks
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.table_files import read_table
from raterscope.app.importing import read_files


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


def test_the_sheet_with_a_table_is_read_and_the_others_are_named(tmp_path):
    clicks = [["annotator", "image", "x", "y"], ["kim", "s.png", 3, 4]]
    book = openpyxl.load_workbook(
        workbook(tmp_path / "a.xlsx", [["Clicks of May"], ["by Kim"]], clicks, clicks)
    )
    book.create_sheet("hidden").append(["a", "b"])
    book["hidden"].sheet_state = "hidden"
    book.save(tmp_path / "a.xlsx")
    readings = read_files([tmp_path / "a.xlsx"])
    assert [len(table) for table in readings.clicks] == [1]
    (notice,) = readings.notices
    assert notice.startswith('a.xlsx: only the sheet "sheet 1" was read, not "sheet 0", "sheet 2". ')
    workbook(tmp_path / "a.xlsx", clicks)
    assert read_files([tmp_path / "a.xlsx"]).notices == ()


def test_a_bad_cell_is_named_by_its_row_in_the_sheet(tmp_path):
    rows = [["user", "image", "x", "y"], ["kim", "s.png", 3, 4], [], ["lee", "s.png", "here", 4]]
    with pytest.raises(InputError, match="line 4, field x"):
        read(workbook(tmp_path / "clicks.xlsx", rows))


def test_damaged_empty_and_unbounded_files_are_refused(tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.xlsx"
    damaged.write_bytes(workbook(tmp_path / "a.xlsx", [["a", "b"], [1, 2]]).read_bytes()[:900])
    with pytest.raises(InputError, match="damaged spreadsheet"):
        read_table(damaged)
    with pytest.raises(InputError, match="is empty"):
        read_table(workbook(tmp_path / "empty.xlsx", []))
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (6 << 20))
    monkeypatch.setattr(workbooks, "_LARGEST_UNPACKED", 5 << 20)
    with pytest.raises(InputError, match="unpacks to 6 MB"):
        read_table(bomb)


def test_cells_far_apart_are_refused_before_the_sheet_is_allocated(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = 1, 2
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(
        InputError, match=r"has 1,048,576 rows and 16,384 columns .* delete the cells far from"
    ):
        read_table(tmp_path / "far.xlsx")


def test_a_sheet_of_opendocument_is_read_within_the_limit_of_cells(tmp_path, monkeypatch):
    names = "urn:oasis:names:tc:opendocument:xmlns"
    header, cells = (
        "".join(
            f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'
            for text in texts
        )
        for texts in (("task", "label"), ("t1", "cat"))
    )
    path = tmp_path / "a.ods"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{names}:office:1.0" xmlns:table="{names}:table:1.0" '
            f'xmlns:text="{names}:text:1.0"><office:body><office:spreadsheet><table:table table:name="S">'
            f"<table:table-row>{header}</table:table-row>"
            f'<table:table-row table:number-rows-repeated="2">{cells}</table:table-row>'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    table = read_table(path)
    assert (table.header, [list(column) for column in table.columns]) == (
        ("task", "label"), [["t1"] * 2, ["cat"] * 2],
    )  # fmt: skip
    monkeypatch.setattr(workbooks, "_MAX_CELLS", 5)
    with pytest.raises(InputError, match="has 3 rows and 2 columns"):
        read_table(path)


def test_a_formula_without_a_stored_value_is_named_with_its_sheet(tmp_path):
    rows = [["annotator", "image", "x", "y"], ["kim", "s.png", 3, 4], ["kim", "s.png", "=C2+1", 4]]
    path = workbook(tmp_path / "a.xlsx", rows)
    with pytest.raises(InputError, match=r'a\.xlsx: cell C3 of the sheet "sheet 0" holds a formula without'):
        read(path)
    other = workbook(tmp_path / "b.xlsx", rows[:2], rows)  # in a sheet that is not read
    assert read(other).x.tolist() == [3.0]


def test_a_formula_with_a_stored_value_is_that_value(tmp_path):
    rows = [["annotator", "image", "x", "y"], ["kim", "s.png", "=1+1", 4], ["kim", "=1", "", ""]]
    path = workbook(tmp_path / "a.xlsx", rows)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    sheet = sheet.replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>").replace(
        b"<f>1</f><v />", b"<f>1</f><v>7</v>"
    )
    empty = b'<c r="E2" t="str"><f>IF(C2=2,"","x")</f><v></v></c></row><row r="3"'
    parts["xl/worksheets/sheet1.xml"] = sheet.replace(b'</row><row r="3"', empty)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    clicks = read(path)
    assert (clicks.x.tolist(), clicks.images) == ([2.0], ("s.png", "7"))
