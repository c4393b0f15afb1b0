"""Files of clicks that are written to while they are read."""

import io
import os
from pathlib import Path

import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns, read
from raterscope.app.formats.growing_files import Position, look, source
from tests.app.formats.growing_files.following import Follower, looks_of, rows_of

HEADER = "annotator,image,x,y\n"
TIMED = "annotator,image,x,y,time\n"
ANN, BOB = ("ann", "a.png", 1.0, 2.0, None), ("bob", "a.png", 3.0, 4.0, None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "clicks.csv"


@pytest.fixture
def follower(file: Path) -> Follower:
    return Follower(file)


def grow(path: Path, text: str | bytes) -> None:
    with path.open("ab") as stream:
        stream.write(text if isinstance(text, bytes) else text.encode())


def replace(path: Path, text: str) -> None:
    other = path.with_name("other.tmp")
    other.write_text(text, encoding="utf-8")
    other.replace(path)


def test_what_is_not_there_yet_is_waited_for(file: Path, follower: Follower) -> None:
    follower.look()
    follower.look()
    assert follower.notices == ["clicks.csv does not exist yet; it is read when it appears."]
    grow(file, "")
    assert follower.catch_up() == []
    grow(file, HEADER + "ann,a.png,1,2\n")
    assert follower.catch_up() == [ANN]
    file.unlink()
    assert follower.catch_up() == []
    assert follower.notices[1:] == ["clicks.csv no longer exists; it is read when it appears."]
    grow(file, HEADER + "ann,a.png,1,2\nbob,a.png,3,4\n")
    assert follower.catch_up() == [BOB]


def test_comments_above_the_header_are_skipped(file: Path, follower: Follower) -> None:
    grow(file, "# tool 3.2\n")
    assert follower.catch_up() == []
    grow(file, "# of today\n" + HEADER + "ann,a.png,1,2\n")
    assert follower.catch_up() == [ANN]


@pytest.mark.parametrize(
    ("first", "second", "row"),
    [
        ("annotator,ima", "ge,x,y\nann,a.png,1,2\n", ANN),
        (HEADER + "ann,a.png,1,2", "5\n", ("ann", "a.png", 1.0, 25.0, None)),
        (HEADER + "ann,a.png,1,2\r", "\n", ANN),
        (HEADER.encode() + b"J\xc3", b"\xbcrgen,a.png,1,2\n", ("Jürgen", "a.png", 1.0, 2.0, None)),
        (HEADER + '"ann\n', 'ann",a.png,1,2\n', ("ann\nann", "a.png", 1.0, 2.0, None)),
        ('{"annotator":"ann","image":"a.png","x":1,"y":2', "}\n", ANN),
    ],
)
def test_a_half_written_line_is_left_for_the_next_look(
    file: Path, follower: Follower, first: str | bytes, second: str | bytes, row: object
) -> None:
    grow(file, first)
    assert follower.catch_up() == []
    grow(file, second)
    assert follower.catch_up() == [row]
    assert follower.notices == []


def test_a_last_line_without_an_end_is_read_when_nothing_more_comes(file: Path, follower: Follower) -> None:
    grow(file, HEADER + "ann,a.png,1,2\nbob,a.png,3,4")
    assert follower.catch_up() == [ANN]
    assert follower.catch_up(ended=True) == [BOB]
    assert follower.catch_up(ended=True) == []


def test_a_look_that_was_not_stored_is_repeated(file: Path, follower: Follower) -> None:
    grow(file, HEADER + "ann,a.png,1,2\n")
    follower.catch_up()
    grow(file, "bob,a.png,3,4\n,,\nann,a.png,1,2\n")
    lost, second = look(file, follower.position), look(file, follower.position)
    assert rows_of(lost.table) == rows_of(second.table) == [BOB, ANN]
    assert lost.position == second.position
    assert lost.notices == second.notices


def test_a_look_that_is_cancelled_changes_nothing(file: Path, follower: Follower) -> None:
    def impatient(fraction: float, words: str, **_: object) -> None:
        raise Cancelled

    grow(file, HEADER + "ann,a.png,1,2\n")
    with pytest.raises(Cancelled):
        look(file, follower.position, watch=impatient)
    assert follower.catch_up() == [ANN]


def test_who_marked_nothing_has_looked(file: Path, follower: Follower) -> None:
    grow(file, "annotator,image,x,y,width,height\nann,a.png,,,640,480\n")
    growth = follower.look()
    assert looks_of(growth.table) == {("ann", "a.png")}
    assert growth.table is not None
    assert growth.table.extents == {0: (640.0, 480.0)}
    assert len(growth.table) == 0


def test_a_repeated_header_is_skipped_with_a_notice(file: Path, follower: Follower) -> None:
    grow(file, f"{HEADER}ann,a.png,1,2\n{HEADER}bob,a.png,3,4\n")
    assert follower.catch_up() == [ANN, BOB]
    grow(file, HEADER.replace(",", " , ") + HEADER)
    assert follower.catch_up() == []
    assert follower.notices == [
        "clicks.csv: Line 3 skipped: it repeats the header.",
        "clicks.csv: 2 lines skipped: they repeat the header (first: line 5).",
    ]
    assert follower.refused == 0


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("bob,a.png,abc,2", 'line 3, field x: "abc" is not a number; expected a position in pixels.'),
        ("bob,a.png,nan,2", 'line 3, field x: "nan" is not a number; expected a position in pixels.'),
        ("bob,a.png,1,inf", 'line 3, field y: "inf" is not a number; expected a position in pixels.'),
        ("bob,a.png,1,", "line 3, field y: is empty; expected a position in pixels."),
        (",a.png,1,2", "line 3, field annotator: is empty; expected a name."),
        ("bob,a.png,1", "line 3: has 3 cells, where the header has 4."),
        ("bob,a.png,1,2,3", "line 3: has 5 cells, where the header has 4."),
        ('"bob,a.png,1,2', "line 3: has a quote that is never closed, or is longer than 4 MB."),
        ("bob\x00,a.png,1,2", "line 3, field annotator: is no text."),
        ("b" * 501 + ",a.png,1,2", "line 3, field annotator: is longer than 500 letters; expected a name."),
    ],
)
def test_one_bad_line_is_refused_and_the_others_go_on(
    file: Path, follower: Follower, line: str, text: str
) -> None:
    remaining = "".join(f'"ann",a.png,{x},2\n' for x in range(3))
    grow(file, f"{HEADER}ann,a.png,1,2\n{line}\n{remaining}")
    assert follower.catch_up() == [ANN] + [("ann", "a.png", float(x), 2.0, None) for x in range(3)]
    assert follower.notices == [f"clicks.csv, {text}"]
    assert follower.refused == 1


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[1, 2]", "is not an object"),
        ('{"annotator": "bob"', "is not JSON"),
        ('{"annotator": ' + "[" * 9000 + "]" * 9000 + "}", "nested too deeply"),
        ('{"annotator": {"name": "bob"}, "image": "a.png", "x": 1, "y": 2}', "annotator is neither text nor"),
        ('{"annotator": "bob", "image": "a.png", "x": NaN, "y": 2}', "is not a number"),
        ('{"annotator": "bob", "image": "a.png", "x": 1' + "0" * 400 + ', "y": 2}', "with too many digits"),
        ('{"annotator": "bob", "image": "a.png", "x": 1' + "0" * 5000 + ', "y": 2}', "is not a number"),
        ('{"annotator": "bob", "image": "a.png", "x": 1, "y": 2, "time_ms": 1' + "0" * 400 + "}", "digits"),
        ('{"annotator": "bob", "image": "a.png", "x": true, "y": 2}', "x is neither text nor a number"),
        ('{"image": "a.png", "x": 1, "y": 2}', "has no annotator"),
        ('{"annotator": "bob", "image": "a.png", "left": 1, "top": 2}', "the unknown keys left, top"),
        ('{"annotator": "bob", "image": "' + "a" * 2_000_000 + '"}', "is longer than 1 MB"),
    ],
)
def test_one_bad_object_is_refused_and_the_others_go_on(tmp_path: Path, line: str, text: str) -> None:
    file = tmp_path / "clicks.jsonl"
    grow(file, f'{{"annotator":"ann","image":"a.png","x":1,"y":2}}\n{line}\n')
    grow(file, '{"worker":"bob","img":"a.png","cx":3,"cy":4}\n{"worker":"cy","img":"a.png"}\n')
    follower = Follower(file)
    assert follower.catch_up() == [ANN, BOB]
    assert follower.looked == {("cy", "a.png")}
    assert len(follower.notices) == follower.refused == 1
    assert follower.notices[0].startswith("clicks.jsonl, line 2")
    assert text in follower.notices[0]


def test_many_bad_lines_are_counted(file: Path, follower: Follower) -> None:
    grow(file, HEADER + "bob,a.png,1,2,3\n" * 50 + "ann,a.png,1,2\n")
    assert follower.catch_up() == [ANN]
    assert follower.refused == 50
    assert len(follower.notices) == 11
    assert follower.notices[-1] == "clicks.csv: 40 more bad lines skipped."


def test_a_line_that_is_too_long_is_passed_over_however_it_comes(file: Path, follower: Follower) -> None:
    grow(file, HEADER + "ann,a.png,1,2\nbob,")
    follower.catch_up()
    for _ in range(6):
        grow(file, b"\xc3\xbc" * 500_000)
        follower.catch_up()
    grow(file, ",1,2\nbob,a.png,3,4\ncy,a.png,1\n")
    follower.catch_up()
    assert follower.rows == [ANN, BOB]
    assert follower.notices == [
        "clicks.csv, line 3: is longer than 4 MB.",
        "clicks.csv, line 5: has 3 cells, where the header has 4.",
    ]


def test_times_that_go_back_are_taken_and_reported_once(file: Path, follower: Follower) -> None:
    grow(file, TIMED + "ann,a.png,1,2,50\n")
    follower.catch_up()
    grow(file, "ann,a.png,2,2,40\nann,a.png,3,2,30\n")
    follower.catch_up()
    grow(file, "ann,a.png,4,2,20\nann,a.png,5,2,soon\n")
    follower.catch_up()
    assert [row[4] for row in follower.rows] == [50, 40, 30, 20, None]
    assert follower.notices == [
        "clicks.csv, line 3: this time is earlier than the previous one; "
        "rows are used in the order of the file.",
        'clicks.csv, line 6: "soon" is not a time; the row is kept without one.',
    ]


def test_a_row_with_a_time_that_comes_again_is_left_out(file: Path, follower: Follower) -> None:
    grow(file, TIMED + "ann,a.png,1,2,50\nann,a.png,1,2,51\nann,a.png,1,2,50\n")
    follower.catch_up()
    grow(file, "ann,a.png,1.0,2.0,50\n")
    follower.catch_up()
    assert [row[4] for row in follower.rows] == [50, 51]
    assert follower.notices == ["clicks.csv: 1 row skipped: they were read before."] * 2


def test_clicks_at_one_place_without_a_time_are_several(file: Path, follower: Follower) -> None:
    grow(file, HEADER + "ann,a.png,1,2\nann,a.png,1,2\n")
    assert follower.catch_up() == [ANN, ANN]
    replace(file, HEADER + "ann,a.png,1,2\nbob,a.png,3,4\nann,a.png,1,2\nann,a.png,1,2\n")
    assert follower.catch_up() == [BOB, ANN]
    replace(file, HEADER + "ann,a.png,1,2\n")
    assert follower.catch_up() == []
    grow(file, "ann,a.png,1,2\n" * 3)
    assert follower.catch_up() == [ANN]


@pytest.mark.parametrize("how", ["renamed", "truncated", "emptied first", "same size and time"])
def test_a_file_that_was_replaced_gives_only_what_is_new(file: Path, follower: Follower, how: str) -> None:
    grow(file, HEADER + "ann,a.png,1,2\nann,a.png,5,6\n")
    follower.catch_up()
    status = file.stat()
    changed = HEADER + "ann,a.png,1,2\nbob,a.png,3,4\n"
    if how == "renamed":
        replace(file, changed + "ann,a.png,5,6\n")
    elif how == "truncated":
        os.truncate(file, len(HEADER))
        follower.catch_up()
        grow(file, "bob,a.png,3,4\nann,a.png,1,2\n")
    elif how == "emptied first":
        file.write_text("")
        follower.catch_up()
        grow(file, changed)
    else:
        file.write_text(changed)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert file.stat().st_size == status.st_size
    follower.catch_up()
    assert follower.rows == [ANN, ("ann", "a.png", 5.0, 6.0, None), BOB]
    assert follower.notices[0] == "clicks.csv was replaced and is read from its beginning."


def test_a_file_that_is_rewritten_under_the_look_is_left_for_the_next(
    file: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(file, HEADER + "ann,a.png,1,2\n")
    follower.catch_up()
    grow(file, "ann,a.png,5,6\n")
    really_opened = source.open_if_present

    class Rewritten(io.FileIO):
        def read(self, size=-1, /):
            some = super().read(size)
            if b"5,6" in some:
                file.write_text(HEADER + "ann,a.png,1,2\nbob,a.png,3,4\n")
            return some

    def rewritten(path: Path) -> Rewritten:
        really_opened(path).close()
        return Rewritten(path)

    monkeypatch.setattr(source, "open_if_present", rewritten)
    assert follower.catch_up() == []
    assert follower.catch_up() == [BOB]


def test_the_order_of_columns_and_the_dialect_may_change_with_the_file(
    file: Path, follower: Follower
) -> None:
    grow(file, HEADER + "ann,a.png,1,2\n")
    follower.catch_up()
    replace(file, "y;x;image;worker\n2;1;a.png;ann\n4,0;3,0;a.png;bob\n")
    assert follower.catch_up() == [BOB]
    replace(
        file, '{"annotator":"bob","image":"a.png","x":3,"y":4}\n{"annotator":"cy","image":"b","x":0,"y":0}\n'
    )
    assert follower.catch_up() == [("cy", "b", 0.0, 0.0, None)]


def test_a_column_named_by_hand_may_be_in_the_encoding_of_old_spreadsheets(file: Path) -> None:
    file.write_bytes("Pr\u00fcfer;Bild;x;y\nann;a.png;1;2\n".encode("cp1252"))
    follower = Follower(file, mapping={"Pr\u00fcfer": "annotator", "Bild": "image"})
    assert follower.catch_up() == [ANN]


def test_a_look_takes_no_more_rows_than_it_may(file: Path, follower: Follower) -> None:
    grow(file, HEADER + "".join(f"ann,a.png,{x},2\n" for x in range(25)))
    follower.max_rows = 10
    counts = []
    more = True
    while more:
        growth = follower.look()
        counts.append(0 if growth.table is None else len(growth.table))
        more = growth.more
    assert counts == [10, 10, 5]
    assert [row[2] for row in follower.rows] == list(range(25))
    replace(file, HEADER + "".join(f"ann,a.png,{x},2\n" for x in range(27)))
    assert [row[2] for row in follower.catch_up()] == [25, 26]


def test_no_more_is_read_than_can_be_distinguished(
    file: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_KEPT", 3)
    grow(file, HEADER + "".join(f"ann,a.png,{column},2\n" for column in range(3)))
    assert len(follower.catch_up()) == 3
    for x in (7, 8):
        grow(file, f"ann,a.png,{x},2\n")
        assert follower.catch_up() == []
    (notice,) = follower.notices
    assert notice.startswith("clicks.csv: more than")
    monkeypatch.undo()
    assert [row[2] for row in follower.catch_up()] == [7, 8]


def test_of_a_file_that_grew_only_the_end_is_read(
    file: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_bytes: list[int] = []
    really_opened = source.open_if_present

    class Counting(io.FileIO):
        def read(self, size=-1, /):
            some = super().read(size)
            read_bytes.append(len(some))
            return some

    def counting(path: Path) -> Counting:
        really_opened(path).close()
        return Counting(path)

    grow(file, HEADER + "".join(f"ann,a.png,{x},2\n" for x in range(100_000)))
    follower.catch_up()
    os.utime(file, ns=(1, 1))
    follower.catch_up()
    monkeypatch.setattr(source, "open_if_present", counting)
    grow(file, "bob,a.png,3,4\n")
    assert follower.catch_up() == [BOB]
    assert 0 < sum(read_bytes) < 200_000


def test_what_is_no_table_of_clicks_is_refused(file: Path, tmp_path: Path) -> None:
    grow(file, "first,second\na,b\n")
    with pytest.raises(UnknownColumns) as error:
        look(file)
    assert error.value.header == ("first", "second")
    replace(file, "first,second,x,y\nann,a.png,1,2\n")
    assert rows_of(look(file, mapping={"first": "annotator", "second": "image"}).table) == [ANN]
    for content in (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, b"one column\n1\n"):
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"clicks\.csv"):
            look(file)
    study = tmp_path / "some.rscope"
    study.write_bytes(b"SQLite format 3\x00")
    with pytest.raises(InputError, match="is a study"):
        look(study)


@pytest.mark.parametrize(
    "text",
    [
        None,
        [],
        {"files": 3},
        {"files": {"a.csv": {"offset": -1}}},
        {"files": {"a.csv": {"line": 0}}},
        {"files": {"a.csv": {"kind": "picture"}}},
        {"files": {"a.csv": {"codec": "rot13"}}},
        {"files": {"a.csv": {"seen": "?"}}},
        {"files": {"a.csv": {"seen": "AAAA"}}},
        {"files": {"a.csv": {"header": [1, 2]}}},
        {"files": {"a.csv": {"kind": "table", "delimiter": "ab"}}},
        {"files": {"a.csv": {"kind": "table", "codec": "utf-8", "header": ["x", "y"]}}},
        {"files": {"a.csv": {"kind": "export", "codec": "utf-8", "delimiter": ",", "header": ["x", "y"]}}},
        {"files": {"a.csv": {"kind": "json", "codec": "utf-8", "header": ["x", "y"]}}},
        {"exports": {"waiting": [["a"]]}},
    ],
)
def test_a_position_that_is_invalid_is_refused(text: object) -> None:
    with pytest.raises(InputError, match="is not a position"):
        Position.from_dict(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "cp1252"])
def test_a_whole_file_reads_as_an_import_of_it_does(file: Path, encoding: str, ending: str) -> None:
    text = 'image_id;worker;x;y;t_ms;note\na.png;Jürgen;"1,5";2;100;"two\nlines"\nb.png;Zoë;,5;-3;;\n'
    file.write_bytes(text.replace("\n", ending).encode(encoding))
    follower = Follower(file)
    assert follower.catch_up(ended=True) == rows_of(read(file))
    assert follower.rows[0] == ("Jürgen", "a.png", 1.5, 2.0, 0.1)
    assert follower.notices == []
