"""Tables for the next program."""

import csv
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import (
    DECISIONS,
    decision_rows,
    escape_formula,
    format_number,
    open_text_output,
    write_columns,
    write_table,
)
from raterscope.app.review import Decision, SpotOf, SpotsSubject, SpotSubject, WeightSubject


def test_cells_are_written_plainly(tmp_path: Path) -> None:
    cells = [
        1,
        2.5,
        np.float64(0.1),
        np.int64(-3),
        True,
        np.bool_(False),
        None,
        float("nan"),
        np.inf,
        "a,b",
        "ü\n",
    ]
    path = write_table(tmp_path / "t.csv", [f"c{n}" for n in range(len(cells))], [cells])
    with path.open(newline="", encoding="utf-8") as stream:
        header, row = csv.reader(stream)
    assert header[0] == "c0"
    assert row == ["1", "2.5", "0.1", "-3", "1", "0", "", "", "", "a,b", "ü\n"]


@pytest.mark.parametrize("text", ["=1+1", '=HYPERLINK("x")', "+cmd", "-2+3", "@SUM", "\tx", "\r=1", "'=1"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert escape_formula(text) == "'" + text


def test_a_header_that_a_spreadsheet_would_run_gets_an_apostrophe(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", ["=1+1: yes", "x"], [["=2", 1]])
    assert path.read_text() == "'=1+1: yes,x\n'=2,1\n"


def test_a_table_by_columns_is_the_same_file_as_by_rows(tmp_path: Path) -> None:
    texts = ["plain", "", 'a "quoted" one', "two\nlines", "a,b", "=1+1", "'=2", "-3", " x", "ü"]
    index, numbers = np.array([*range(len(texts)), 0, 5]), np.array([0.1, -2.5e-12, np.nan, 1 / 3] * 3)
    rows = [
        (texts[text], format_number(number)) for text, number in zip(index, numbers.tolist(), strict=True)
    ]
    by_rows = write_table(tmp_path / "rows.csv", ["=text", "number"], rows)
    by_columns = write_columns(tmp_path / "columns.csv", ["=text", "number"], [(texts, index), numbers])
    assert by_columns.read_bytes() == by_rows.read_bytes()


@pytest.mark.parametrize("text", ["", "ann", "a=b", "-5", "+1.5e-3", "-.5", "'tis", "O'Neil", "#1"])
def test_other_text_and_numbers_stay(text: str) -> None:
    assert escape_formula(text) == text


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", ["a"], [[1]])

    def rows():
        yield [2]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_table(path, ["a"], rows())
    assert path.read_text() == "a\n1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv: cannot be written: there is no folder .*none"):
        write_table(tmp_path / "none" / "t.csv", ["a"], [])
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", Path()):
        with pytest.raises(InputError, match="is a folder"), open_text_output(path):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_is_write_protected_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("kept")
    path.chmod(0o444)
    if os.access(path, os.W_OK):  # the superuser may write anything
        monkeypatch.setattr(os, "access", lambda item, _: item != path)
    with pytest.raises(InputError, match="write-protected"):
        write_table(path, ["a"], [])
    assert path.read_text() == "kept"


def test_decisions_are_written_with_what_became_of_them(tmp_path: Path) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    decisions = [
        Decision(verb="reject", item=2, subject=SpotSubject(number=12, x=1.5, y=-2.0), run=4, who="@dr"),
        Decision(verb="exclude", annotators=("=W1",), reason="-bored"),
        Decision(verb="undo", undoes=1),
        Decision(verb="weigh", annotators=("W2",), subject=WeightSubject(weight=0.25), reason="hasty"),
    ]
    decisions = [replace(decision, id=n, at=at) for n, decision in enumerate(decisions, start=1)]
    path = write_table(
        tmp_path / "decisions.csv", DECISIONS, decision_rows(decisions, {("clicks", 2): "a.png"})
    )
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    first, second, third, fourth = rows
    assert first["at"] == "2026-01-02T03:04:05.678+00:00"
    assert (first["item"], first["spot"], first["x"], first["y"]) == ("a.png", "12", "1.5", "-2.0")
    assert (first["who"], second["annotators"], second["reason"]) == ("'@dr", "'=W1", "'-bored")
    assert [row["in_effect"] for row in rows] == ["0", "1", "1", "1"]
    assert third["undoes"] == "1"
    assert (fourth["annotators"], fourth["weight"], fourth["reason"]) == ("W2", "0.25", "hasty")


def test_a_decision_on_several_spots_has_a_row_for_each(tmp_path: Path) -> None:
    spots = (SpotOf(image=1, x=1, y=2, number=5, run=3), SpotOf(image=2, x=8, y=9, number=6, run=4, about=1))
    together = SpotsSubject(spots=spots, blind=True)
    decision = Decision(verb="reject", item=1, subject=together, id=2, who="dr")
    names = {("clicks", 1): "a.png", ("clicks", 2): "b.png"}
    path = write_table(tmp_path / "decisions.csv", DECISIONS, decision_rows([decision], names))
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    message = [
        (row["decision"], row["item"], row["spot"], row["x"], row["run"], row["about"]) for row in rows
    ]
    assert message == [("2", "a.png", "5", "1", "3", ""), ("2", "b.png", "6", "8", "4", "1")]
    assert {(row["verb"], row["blind"]) for row in rows} == {("reject", "1")}
