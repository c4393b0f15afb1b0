"""Folders to which files come, and in which they grow."""

from pathlib import Path

import pytest

from raterscope.app.formats.growing_files import look
from tests.app.formats.growing_files.following import Follower

HEADER = "annotator,image,x,y\n"


def row(person: str, x: float = 1.0) -> tuple[str, str, float, float, None]:
    return (person, "a.png", x, 2.0, None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "crowd"


@pytest.fixture
def follower(folder: Path) -> Follower:
    return Follower(folder)


def write(path: Path, *people: str, header: str = HEADER) -> Path:
    with path.open("a", encoding="utf-8") as stream:
        if not stream.tell():
            stream.write(header)
        stream.writelines(f"{person},a.png,1,2\n" for person in people)
    return path


def test_files_are_read_by_name_as_they_come_and_grow(folder: Path, follower: Follower) -> None:
    follower.catch_up()
    folder.mkdir()
    follower.catch_up()
    assert follower.notices == ["crowd does not exist yet; it is read when it appears."]
    write(folder / "b.csv", "bob")
    write(folder / "c.tsv", header="annotator\timage\tx\ty\n")
    (folder / "a.jsonl").write_text('{"annotator":"ann","image":"a.png","x":1,"y":2}\n')
    assert follower.catch_up() == [row("ann"), row("bob")]
    write(folder / "a.csv", "zoe")
    write(folder / "b.csv", "bea")
    growth = look(folder, follower.position)
    assert growth.table is not None
    assert growth.table.path == folder
    assert follower.catch_up() == [row("zoe"), row("bea")]
    write(folder / "b.csv", "bo")
    growth = look(folder, follower.position)
    assert growth.table is not None
    assert (growth.table.path, growth.table.lines) == (folder / "b.csv", (4,))


@pytest.mark.parametrize(
    "name",
    [".a.csv", "a.csv.tmp", "a.csv.part", "a.part.csv", "~a.csv", "a.csv~", "~$a.csv", "notes.md", "a"],
)
def test_what_is_hidden_or_on_its_way_is_left_out(folder: Path, follower: Follower, name: str) -> None:
    folder.mkdir()
    write(folder / name, "ann")
    assert follower.catch_up() == []
    (folder / name).rename(folder / "done.csv")
    assert follower.catch_up() == [row("ann")]
    assert follower.notices == []


def test_a_file_that_went_and_came_back_goes_on_where_it_was(folder: Path, follower: Follower) -> None:
    folder.mkdir()
    file = write(folder / "a.csv", "ann", "ann")
    write(folder / "b.csv", "bob")
    follower.catch_up()
    file.rename(folder / "a.away")
    assert follower.catch_up() == []
    (folder / "a.away").rename(file)
    write(file, "ann")
    assert follower.catch_up() == [row("ann")]
    assert follower.notices == []


def test_files_of_no_use_are_named_once_and_tried_again_when_they_change(
    folder: Path, follower: Follower
) -> None:
    folder.mkdir()
    write(folder / "a.csv", header="first,second\na,b\n")
    (folder / "b.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (folder / "c.csv").mkdir()
    write(folder / "d.csv", "ann")
    assert follower.catch_up() == [row("ann")]
    assert follower.catch_up() == []
    first, second = follower.notices
    assert first.startswith("a.csv: no column is recognised as annotator")
    assert second.startswith("b.csv: has no columns")
    (folder / "b.csv").unlink()
    write(folder / "b.csv", "bob")
    assert follower.catch_up() == [row("bob")]


def test_columns_named_by_hand_open_a_file_that_was_left_out(folder: Path, follower: Follower) -> None:
    folder.mkdir()
    (folder / "a.csv").write_text("who,what,x,y\nann,a.png,1,2\n")
    assert follower.catch_up() == []
    follower.mapping = {"who": "annotator", "what": "image"}
    assert follower.catch_up() == [row("ann")]


def test_a_longer_copy_under_another_name_gives_only_what_is_new(folder: Path, follower: Follower) -> None:
    folder.mkdir()
    write(folder / "monday.csv", "ann", "ann", "bob")
    follower.catch_up()
    write(folder / "tuesday.csv", "ann", "ann", "bob", "cy")
    assert follower.catch_up() == [row("cy")]
    write(folder / "tuesday.csv", "ann")
    assert follower.catch_up() == [row("ann")]
    assert follower.notices == ["tuesday.csv: 3 rows skipped: they were read before."]


def test_a_look_at_a_folder_takes_no_more_rows_than_it_may(folder: Path, follower: Follower) -> None:
    folder.mkdir()
    for number in range(4):
        write(folder / f"{number}.csv", *(f"{number}{index}" for index in range(3)))
    follower.max_rows = 5
    counts = [len(follower.look().position.files) for _ in range(3)]
    assert counts == [2, 4, 4]
    assert [person for person, *_ in follower.rows] == [
        f"{n}{number}" for n in range(4) for number in range(3)
    ]
