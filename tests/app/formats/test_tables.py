"""Tables of clicks and of true places, as spreadsheets and strangers write them."""

import bz2
import csv
import gzip
import io
import lzma
import math
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import ClickTable, PointTable, UnknownColumns, dialects, read, table_files
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.output_files import write_table
from raterscope.app.formats.points.positions import ImageScale
from raterscope.app.formats.tables import NO_NAMES

PLAIN = "annotator,image,x,y\nann,a.png,1.5,2.5\nbob,b.png,3,-4\nann,b.png,1e1,0\n"


def written(path: Path, text: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "clicks.csv"


def read_clicks(path: Path) -> ClickTable:
    table = read(path, "clicks")
    assert isinstance(table, ClickTable)
    return table


def rows(table: ClickTable) -> list[tuple[str, str, float, float]]:
    return [
        (table.annotators[a], table.images[i], x, y)
        for a, i, x, y in zip(table.annotator, table.image, table.x, table.y, strict=True)
    ]


def refusal(path: Path, kind: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(path, kind)
    assert not isinstance(caught.value, UnknownColumns)
    return str(caught.value)


EXPECTED = [("ann", "a.png", 1.5, 2.5), ("bob", "b.png", 3.0, -4.0), ("ann", "b.png", 10.0, 0.0)]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
def test_any_encoding_and_end_of_line(file: Path, encoding: str) -> None:
    for end in ("\n", "\r\n", "\r"):
        text = PLAIN.replace("bob", "Jürgen Müller").replace("\n", end)
        table = read_clicks(written(file, text, encoding))
        assert table.annotators == ("ann", "Jürgen Müller"), end
        assert [row[2:] for row in rows(table)] == [row[2:] for row in EXPECTED], end


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_any_delimiter(file: Path, delimiter: str) -> None:
    assert rows(read_clicks(written(file, PLAIN.replace(",", delimiter)))) == EXPECTED


def test_a_delimiter_that_the_first_line_names(file: Path) -> None:
    assert rows(read_clicks(written(file, "sep=;\n" + PLAIN.replace(",", ";")))) == EXPECTED


@pytest.mark.parametrize(
    "above",
    ['# "made" by a tool, 3.2\n# a, b, c, d\n', "# export\n\n\n", "# a\n#annotator", "# annotator"],
)
@pytest.mark.parametrize("long", [0, 1 << 40])
def test_comments_above_the_header_are_skipped(
    file: Path, monkeypatch: pytest.MonkeyPatch, above: str, long: int
) -> None:
    monkeypatch.setattr(table_files, "LONG", long)
    text = above + PLAIN.removeprefix("annotator") if above.endswith("annotator") else above + PLAIN
    assert rows(read_clicks(written(file, text))) == EXPECTED
    with pytest.raises(InputError) as caught:
        read_clicks(written(file, text + "ann,a.png,1,here\n"))
    assert caught.value.line == text.count("\n") + 1
    votes = "task,annotator,label\nt1,ann,cat\nt2,bob,dog\n"
    if not above.endswith("annotator"):
        (table,) = read_labels(written(file, above + votes))
        assert (table.tasks, table.annotators) == (("t1", "t2"), ("ann", "bob"))


@pytest.mark.parametrize(("name", "is_truth"), [("ann.csv", False), ("truth.csv", True)])
def test_positions_without_an_annotator_are_clicks_of_a_given_one(
    tmp_path: Path, name: str, is_truth: bool
) -> None:
    path = written(tmp_path / name, "image,x,y,time\na.png,1,2,5\na.png,3,4,6\n")
    table = read(path, annotator="ann")
    assert isinstance(table, PointTable) == is_truth
    assert isinstance(read(path), PointTable)
    if not is_truth:
        assert rows(table) == [("ann", "a.png", 1.0, 2.0), ("ann", "a.png", 3.0, 4.0)]
        assert table.time.tolist() == [5.0, 6.0]


def test_whole_numbers_with_decimals_are_the_names_without(file: Path) -> None:
    clicks = "annotator,image,x,y\n{},7,1,2\n3.0,7,1,2\n"
    assert read_clicks(written(file, clicks.format("12.0"))).annotators == ("12", "3")
    assert read_clicks(written(file, clicks.format("12.5"))).annotators == ("12.5", "3.0")
    (table,) = read_labels(written(file, "annotator,task,label\n12.0,1.0,cat\n007.0,2.0,dog\n"))
    assert (table.annotators, table.tasks) == (("12", "007"), ("1", "2"))


@pytest.mark.parametrize("missing", ["nan", "NaN", "<NA>"])
def test_a_missing_value_is_neither_a_name_nor_a_label(file: Path, missing: str) -> None:
    words = rf'line 3, field annotator: "{missing}" is no name, but a missing value'
    with pytest.raises(InputError, match=words):
        read_clicks(written(file, f"annotator,image,x,y\nann,a,1,2\n{missing},a,1,2\n"))
    with pytest.raises(InputError, match=words):
        read_labels(written(file, f"annotator,task,label\nann,a,cat\n{missing},a,dog\n"))
    (table,) = read_labels(written(file, f"annotator,task,label\nann,a,cat\nbob,a,{missing}\nann,b,none\n"))
    assert table.outputs == ("cat", "none")
    assert "1 row skipped: no label." in table.notices


@pytest.mark.parametrize("delimiter", [";", "\t", "quoted"])
def test_decimal_comma(file: Path, delimiter: str) -> None:
    values = [["annotator", "image", "x", "y"], ["ann", "a", "1,5", "2"], ["a, b", "a", "-0,25", "1e1"]]
    stream = io.StringIO()
    csv.writer(stream, delimiter="," if delimiter == "quoted" else delimiter).writerows(values)
    table = read_clicks(written(file, stream.getvalue()))
    assert rows(table) == [("ann", "a", 1.5, 2.0), ("a, b", "a", -0.25, 10.0)]


def test_a_comma_that_groups_thousands_is_not_taken_for_a_decimal(file: Path) -> None:
    written(file, 'annotator,image,x,y\nann,a,"1,204",1.5\nann,a,"1.204,5",1\n')
    assert 'line 2, field x: "1,204" is not a number' in refusal(file)


def test_a_decimal_point_among_commas_is_the_bad_line(file: Path) -> None:
    written(file, "annotator;image;x;y\nann;a;1,5;2\nann;a;2,5;3\nann;a;1.250;4\n")
    assert 'line 4, field x: "1.250" is not a number; expected a position in pixels;' in refusal(file)


@pytest.mark.parametrize("header", ["annotator,image,x,x,y", "annotator,image,x,X,y"])
def test_a_column_that_is_there_twice_is_refused_unless_it_is_the_same(file: Path, header: str) -> None:
    written(file, f"{header}\nann,a,1,2,3\nbob,a,4,4,5\n")
    assert "has several columns x with different values" in refusal(file)
    second = "x (2)" if "x,x" in header else "X"
    chosen = read(file, mapping={second: "x", "x": "ignore"})
    assert (chosen.x.tolist(), chosen.y.tolist()) == ([2.0, 4.0], [3.0, 5.0])
    written(file, f"{header}\nann,a,1,1,3\n")
    assert rows(read_clicks(file)) == [("ann", "a", 1, 3)]


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("worker;image;x;y", ClickTable),
        ("rater_id;Image ID;X;Y", ClickTable),
        ("user_name;user_id;file_name;x;y", ClickTable),
        ("Judge;SubjectId;x_px;y_px", ClickTable),
        ("Rater;Image;Centroid X px;Centroid Y px", ClickTable),  # of QuPath
        ("Rater;Image;Location_Center_X;Location_Center_Y", ClickTable),  # of CellProfiler
        ("annotatorName;imageName;cx;cy", ClickTable),
        ("player_id;filename;x_coord;y_coord", ClickTable),
        ("image_id;x;y", PointTable),
    ],
)
def test_synonyms_are_understood(file: Path, header: str, kind: type) -> None:
    table = read(written(file, f"{header}\n{';'.join(['name'] * (header.count(';') - 1) + ['7', '8'])}\n"))
    assert isinstance(table, kind)
    assert (table.images, table.x.tolist(), table.y.tolist()) == (("name",), [7.0], [8.0])


def test_a_name_goes_before_a_number_and_the_plain_word_before_both(file: Path) -> None:
    written(file, "image_id,image_name,user_id,annotator,x,y\n7,a.png,12,ann,1,2\n")
    assert rows(read_clicks(file)) == [("ann", "a.png", 1.0, 2.0)]


def test_times_are_seconds(file: Path) -> None:
    table = read_clicks(written(file, "annotator,image,x,y,t_ms\na,i,1,2,1500\na,i,3,4,\n"))
    assert table.time is not None
    assert table.time[0] == 1.5
    assert math.isnan(table.time[1])
    dated = "annotator,image,x,y,created_at\na,i,1,2,2024-01-02 03:04:05 UTC\na,i,1,3,2024-01-02T03:04:06Z\n"
    table = read_clicks(written(file, dated))
    assert table.time is not None
    assert np.diff(table.time).tolist() == [1.0]


def test_times_that_are_invalid_are_skipped_with_a_notice(file: Path) -> None:
    table = read_clicks(written(file, "annotator,image,x,y,time\na,i,1,2,3\na,i,1,2,noon\n"))
    assert table.time is None
    assert 'line 3 has "noon"' in table.notices[0]


def test_an_archive_is_named_as_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "clicks.zip", "w") as archive:
        archive.writestr("clicks.csv", "annotator,image,x,y\nann,a,1,2\n")
    with pytest.raises(InputError, match=r"clicks\.zip: is an archive; unpack it and import the folder"):
        read_clicks(tmp_path / "clicks.zip")


def test_a_row_without_a_position_records_a_viewed_image(file: Path) -> None:
    table = read_clicks(written(file, "annotator,image,x,y\nann,a,1,2\nbob,a,,\nbob,b, ,\n"))
    assert rows(table) == [("ann", "a", 1.0, 2.0)]
    assert {(table.annotators[a], table.images[i]) for a, i in table.looked} == {("bob", "a"), ("bob", "b")}


@pytest.mark.parametrize(
    ("header", "box"),
    [
        ("xmin,ymin,xmax,ymax,class", lambda x, y: f"{x - 4},{y - 3},{x + 4},{y + 3},ring"),
        ("x,y,width,height", lambda x, y: f"{x - 4},{y - 3},8,6"),
    ],
)
def test_boxes_become_clicks_at_their_centres(file: Path, header: str, box: Callable[..., str]) -> None:
    places = [(100.0, 50.0), (30.0, 80.0), (60.0, 70.0)]
    lines = [f"a.png,ann,{box(x, y)}" for x, y in places]
    table = read_clicks(written(file, "\n".join([f"filename,annotator,{header}", *lines])))
    assert [row[2:] for row in rows(table)] == places
    assert table.extents == {}
    assert "centres of boxes" in table.notices[0]


def test_shares_of_an_image_become_pixels_if_its_size_is_known(file: Path) -> None:
    lines = ["image,annotator,x,y,width,height", "a.png,ann,0.25,0.5,200,100", "a.png,bob,1,0.1,200,100"]
    table = read_clicks(written(file, "\n".join(lines)))
    assert [row[2:] for row in rows(table)] == [(50.0, 50.0), (200.0, 10.0)]
    without = "\n".join(line.rsplit(",", 2)[0] for line in lines)
    assert "between 0 and 1" in refusal(written(file, without), "clicks")
    named = read(file, "clicks", {"x": "x"})
    assert named.x.tolist() == [0.25, 1.0]


def test_shares_become_pixels_if_the_image_is_known(file: Path) -> None:
    scales = {"a.png": ImageScale(size=(200.0, 100.0))}
    written(file, "image,annotator,x,y\na.png,ann,0.25,0.5\na.png,bob,1,0.1\n")
    table = read(file, "clicks", scales=scales.__getitem__)
    assert list(zip(table.x, table.y, strict=True)) == [(50.0, 50.0), (200.0, 10.0)]
    written(file, "image,annotator,x,y\na.png,ann,25,50\na.png,bob,100,10\n")
    by_hand = {"x": "x_percent", "y": "y_percent"}
    table = read(file, "clicks", by_hand, scales=scales.__getitem__)
    assert list(zip(table.x, table.y, strict=True)) == [(50.0, 50.0), (200.0, 10.0)]
    assert table.columns["x"] == "x_percent"


def test_shares_beside_the_size_on_the_screen_are_shares(file: Path) -> None:
    header = "image,annotator,x,y,naturalWidth,naturalHeight,clientWidth,clientHeight"
    lines = [f"a.png,ann,{x},{y},1000,800,500,400" for x, y in ((0.5, 0.25), (1, 0.75))]
    table = read_clicks(written(file, "\n".join([header, *lines])))
    assert [row[2:] for row in rows(table)] == [(500.0, 200.0), (1000.0, 600.0)]


def shown_in_a_browser(file: Path, places: Sequence[tuple[float, float]]) -> ClickTable:
    """Read clicks on an image of 1000 x 800 pixels, shown at half its size to ann and at a quarter to bob."""
    header = "image,annotator,x,y,naturalWidth,naturalHeight,clientWidth,clientHeight"
    of_ann = [f"a.png,ann,{x / 2},{y / 2},1000,800,500,400" for x, y in places]
    of_bob = [f"a.png,bob,{x / 4},{y / 4},1000,800,250,200" for x, y in places]
    return read_clicks(written(file, "\n".join([header, *of_ann, *of_bob])))


def test_positions_on_the_screen_become_those_in_the_image(file: Path) -> None:
    places = [(990.0, 780.0), (30.0, 80.0), (600.0, 200.0)]
    table = shown_in_a_browser(file, places)
    assert [row[2:] for row in rows(table)] == places * 2
    assert table.extents == {0: (1000, 800)}
    assert "scaled from the size at which images were shown" in table.notices[0]


def test_clicks_of_many_annotators_on_few_structures_may_lie_within_the_screen(file: Path) -> None:
    header = "image,annotator,x,y,naturalWidth,naturalHeight,clientWidth,clientHeight"
    places = [(120 + 2 * who, 90 + at) for who in range(30) for at in (0, 300)]
    lines = [f"a.png,ann {n % 30},{x},{y},1000,800,800,640" for n, (x, y) in enumerate(places)]
    table = read_clicks(written(file, "\n".join([header, *lines])))
    assert [row[2:] for row in rows(table)] == places
    assert "read as pixels of the image" in table.notices[0]


def test_positions_beyond_the_screen_are_those_in_the_image(file: Path) -> None:
    places = [(1980.0, 200.0), (30.0, 80.0), (600.0, 200.0)]
    table = shown_in_a_browser(file, places)
    assert [row[2:] for row in rows(table)][:3] == [(x / 2, y / 2) for x, y in places]
    assert "read as pixels of the image" in table.notices[0]


def test_sizes_of_images_may_stand_in_the_table(file: Path) -> None:
    table = read(
        written(file, "image,width,height,cx,cy\na,640,480,1,2\nb,20,10,3,4\na,640,480,5,6\n"), "truth"
    )
    assert table.extents == {0: (640.0, 480.0), 1: (20.0, 10.0)}
    written(file, "image,width,height,x,y\na,640,480,1,2\na,640,481,3,4\n")
    assert "line 3, field width: gives the image another size" in refusal(file, "truth")


def test_a_table_of_images_shows_sizes_and_who_marked_nothing(file: Path) -> None:
    table = read(
        written(file, "image_id,width,height,n_jobs,n_empty_jobs\na,300,200,20,2\nb,30,20,9,0\nc,3,2,9,1\n")
    )
    assert isinstance(table, ClickTable)
    assert len(table) == 0
    assert table.extents == {0: (300, 200), 1: (30, 20), 2: (3, 2)}
    assert sorted(image for _, image in table.looked) == [0, 0, 2]
    assert len(set(table.annotators)) == 3
    assert "line 2, field n_empty_jobs" in refusal(
        written(file, "image,width,height,n_empty_jobs\na,9,9,-1\n")
    )


def test_empty_rows_and_columns_are_passed_over(file: Path) -> None:
    text = "annotator,image,x,y,,\r\n,,,,,\r\nann,a,1,2,,\r\n\r\nbob,a,3,4,,\r\n,,,,,\r\n"
    assert rows(read_clicks(written(file, text))) == [("ann", "a", 1.0, 2.0), ("bob", "a", 3.0, 4.0)]


def test_lines_are_counted_through_quotes_over_several_lines(file: Path) -> None:
    text = 'annotator,image,x,y,note\nann,a,1,2,"two\nlines"\n\nbob,a,oops,4,\n'
    assert "line 5, field x" in refusal(written(file, text))


# Columns by hand


def test_unknown_columns_ask_with_what_a_dialog_needs(file: Path) -> None:
    text = "who_did,pic,x,y\n" + "ann,a,1,2\n" * 9
    with pytest.raises(UnknownColumns) as caught:
        read(written(file, text))
    error = caught.value
    assert error.header == ("who_did", "pic", "x", "y")
    assert error.rows == (("ann", "a", "1", "2"),) * 5
    assert error.guess == {"x": "x", "y": "y"}
    assert error.missing == ("annotator", "image")
    assert (
        "clicks.csv: no column is recognised as annotator or image; the columns are who_did, pic, x, y"
        in str(error)
    )
    table = read(file, mapping={"who_did": "annotator", "pic": "image"})
    assert len(table) == 9


def test_a_mapping_goes_before_the_header(file: Path) -> None:
    written(file, "annotator,image,x,y,true_x\nann,a,1,2,3\n")
    assert read(file, mapping={"true_x": "x"}).x.tolist() == [3.0]
    with pytest.raises(UnknownColumns, match="recognised as x"):
        read(file, mapping={"x": "ignore"})


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"nothing": "x"}, "there is no column nothing; the columns are annotator, image, x, y"),
        ({"x": "colour"}, "colour is not a field; expected one of annotator, image, x, y"),
        ({"x": "y", "y": "y"}, "two columns are named y: x and y"),
    ],
)
def test_a_mapping_that_cannot_be(file: Path, mapping: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(written(file, PLAIN), mapping=mapping)


def test_a_table_without_a_header_has_numbered_columns(file: Path) -> None:
    written(file, "ann,a.png,12,7\nbob,a.png,3,4\n")
    with pytest.raises(UnknownColumns) as caught:
        read(file)
    assert caught.value.header == ("column 1", "column 2", "column 3", "column 4")
    names = dict(zip(caught.value.header, ("annotator", "image", "x", "y"), strict=True))
    assert rows(read(file, mapping=names)) == [("ann", "a.png", 12.0, 7.0), ("bob", "a.png", 3.0, 4.0)]


def test_positions_with_a_column_of_words_are_not_taken_for_truth(tmp_path: Path) -> None:
    text = "image,x,y,clicked by\na,1,2,ann\n"
    with pytest.raises(UnknownColumns):
        read(written(tmp_path / "clicks.csv", text))
    assert isinstance(
        read(written(tmp_path / "ground_truth.csv", "image,x,y,kind\na,1,2,ring\n")), PointTable
    )
    assert isinstance(read(written(tmp_path / "spots.csv", "image,x,y,snr\na,1,2,3.5\n")), PointTable)


# Refused


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("ann,a,NaN,1", 'line 3, field x: "NaN" is not a number; expected a position in pixels'),
        ("ann,a,1,inf", 'line 3, field y: "inf" is not a number'),
        ("ann,a,twelve,1", 'line 3, field x: "twelve" is not a number'),
        ("ann,a,1_0,1", 'line 3, field x: "1_0" is not a number'),
        ("ann,a,1,", "line 3, field y: is empty"),
        ("ann,a,1,1e300", "line 3, field y: 1e300 is outside any possible image"),
        (",a,1,1", "line 3, field annotator: is empty"),
        ("ann, ,1,1", "line 3, field image: is empty"),
        ("ann,a,1", "line 3: has 3 cells, where the header has 4"),
        ("ann,a,1,2,3", "line 3: has 5 cells, where the header has 4"),
        (f"{'n' * 501},a,1,2", "line 3, field annotator: is longer than 500 letters"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_read(file: Path, row: str, words: str) -> None:
    sentence = refusal(written(file, f"annotator,image,x,y\nann,a,1,2\n{row}\nann,a,3,4\n"))
    assert sentence.startswith(f"clicks.csv, {words}")
    assert sentence.endswith("nothing was imported.")


def test_the_first_bad_line_is_named_and_the_others_are_counted(file: Path) -> None:
    text = "annotator,image,x,y\nann,a,1,2\nann,a,1,b\nann,a,c,d\n,a,1,2\n"
    sentence = refusal(written(file, text))
    assert sentence.startswith('clicks.csv, line 3, field y: "b" is not a number')
    assert "(and 2 more bad lines)" in sentence


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"annotator,image,x,y\n", "no rows"),
        (b"annotator\nann\n", "has no columns"),
        (b"Clicks of May\nannotator,image,x,y\nann,a,1,2\n", "no columns in its first row"),
        (bytes(range(256)) * 40, "is neither text"),
        (b"\x7fELF\x02\x01\x01" + bytes(5000), "is neither text"),
        (b"PK\x03\x04" + b"\x14\x00\x08\x08\x01\x02" * 500, "is neither text"),
        (b'annotator,image,x,y\nann,"a,1,2\n' + b"ann,a,1,2\n" * 2_000_000, "line 2: the line is too long"),
        (b"a" * 20_000_000, "the line is too long"),
        (b"annotator,image,x,y\n" + b"a," * 10_000_000, "line 2: the line is too long"),
        (b"GIF89a\x01\x00\x01\x00\x80" + bytes(100), "or PNG, JPEG, TIFF, BMP or GIF"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(file: Path, data: bytes, words: str) -> None:
    assert words in refusal(written(file, data), "clicks")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.csv") == "none.csv: does not exist."
    assert "is a folder" in refusal(tmp_path)
    assert "is a study; open it" in refusal(written(tmp_path / "a.rscope", "x"))
    with pytest.raises(
        InputError, match="masks is not a kind of table; expected one of clicks, truth, image"
    ):
        read(written(tmp_path / "a.csv", PLAIN), "masks")


@pytest.mark.parametrize(
    "data", [b"", b" \n", b"\xef\xbb\xbf", b"\xff\xfe", b"\x00\x00\xfe\xff", b"\xff\xfe\n\x00"]
)
def test_an_empty_table_is_refused_in_every_encoding(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(data)
    assert refusal(file) == "a.csv: is empty; expected a table."


@pytest.mark.parametrize("data", [b"#", b"# made by hand\n# today\n"])
def test_a_table_of_comments_alone_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(data)
    assert refusal(file) == "a.csv: has comments but no header; expected a header and rows."


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_garbage_is_refused_in_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp() / "garbage.csv", data)
    for start in (b"", b"annotator,image,x,y\n"):
        path.write_bytes(start + data)
        try:
            table = read(path)
        except InputError as error:
            sentence = str(error)
            assert "garbage.csv" in sentence
            assert "\n" not in sentence
        else:
            assert np.isfinite(table.x).all()


# There and back

name = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="\x85"),
    min_size=1,
    max_size=8,
).filter(lambda text: text == text.strip() and text not in NO_NAMES)
place = st.floats(-1e6, 1e6)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(name | st.sampled_from(["=1+1", "'=x", "''@y", "-5", "-a", "+1"]), name, place, place),
        min_size=1,
    )
)
def test_a_table_that_was_written_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, clicks: list[tuple[str, str, float, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "there_and_back.csv"
    clicks.append(("far", "far", 2.0, 2.0))  # else all positions may be shares of an image
    write_table(path, ("annotator", "image", "x", "y"), clicks)
    assert rows(read_clicks(path)) == clicks


# Real data


def test_real_click_tables_read_without_a_mapping(real_data: Path) -> None:
    clicks = read(real_data / "clicks" / "quantius" / "clicks.csv")
    assert isinstance(clicks, ClickTable)
    assert (len(clicks), len(clicks.images)) == (39836, 24)
    assert clicks.time is not None
    assert clicks.time[0] == 4.947
    truth = read(real_data / "clicks" / "quantius" / "gt.csv")
    assert isinstance(truth, PointTable)
    assert (len(truth), truth.images) == (2591, clicks.images)
    sizes = read(real_data / "clicks" / "quantius" / "images.csv")
    assert isinstance(sizes, ClickTable)
    assert set(sizes.images) == set(clicks.images)
    with (real_data / "clicks" / "quantius" / "images.csv").open() as stream:
        listed = list(csv.DictReader(stream))
    assert len(sizes.looked) == sum(int(row["n_empty_jobs"]) for row in listed)
    people = [set(clicks.annotator[clicks.image == clicks.images.index(row["image_id"])]) for row in listed]
    assert sum(map(len, people)) + len(sizes.looked) == sum(int(row["n_jobs"]) for row in listed)
    iguanas = read(real_data / "clicks" / "iguanas" / "clicks.csv")
    assert isinstance(iguanas, ClickTable)
    assert (len(iguanas), len(iguanas.images), len(iguanas.annotators)) == (9413, 149, 1033)
    assert iguanas.images[0] == "GWB01-3_152.jpg"


def test_reading_can_be_cancelled_at_any_report(file: Path) -> None:
    written(file, "annotator,image,x,y\n" + "ann,a,1,2\n" * 25_000)
    reports: list[float] = []
    read(file, watch=lambda fraction, _words, **_: reports.append(fraction))
    assert reports == sorted(reports)
    for stop in reports:

        def watch(fraction: float, _words: str, *, stop: float = stop, **_: object) -> None:
            if fraction >= stop:
                raise Cancelled

        with pytest.raises(Cancelled):
            read(file, watch=watch)


PACKERS = [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]


@pytest.mark.parametrize(("suffix", "compress"), PACKERS)
def test_compressed_tables_are_read(tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    packed = written(tmp_path / f"clicks.csv.{suffix}", compress(PLAIN.encode("utf-16")))
    assert rows(read_clicks(packed)) == rows(read_clicks(written(tmp_path / "clicks.csv", PLAIN)))
    votes = "task,annotator,label\n" + "".join(f"t{n},w{n % 7},{n % 2}\n" for n in range(5000))
    for ending, text in (("tsv", votes.replace(",", "\t")), ("csv", votes + "only one\n")):
        path = written(tmp_path / f"votes.{ending}.{suffix}", compress(text.encode()))
        if "only one" in text:
            with pytest.raises(InputError, match="1 cell, where the header has 3") as caught:
                read_labels(path)
            assert caught.value.line == 5002
        else:
            assert len(read_labels(path)[0].task) == 5000


@pytest.mark.parametrize(("suffix", "compress"), PACKERS)
def test_compressed_tables_are_bounded_and_may_be_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    packed = compress((PLAIN + "ann,a.png,1,2\n" * 100_000).encode())
    for path in (tmp_path / f"clicks.csv.{suffix}", tmp_path / "clicks.csv"):  # by content, not by name
        for damaged in (packed[: len(packed) // 2], packed[:12] + bytes(20) + packed[32:]):
            with pytest.raises(InputError, match="damaged"):
                read_clicks(written(path, damaged))
        monkeypatch.setattr(dialects, "_LONGEST_UNPACKED", 1 << 20)
        with pytest.raises(InputError, match="unpacks to more than 1 MB"):
            read_clicks(written(path, packed))


@pytest.mark.parametrize("missing", ["", "NA", "NaN", " n/a "])
def test_words_for_missing_positions_mean_that_nothing_was_marked(file: Path, missing: str) -> None:
    rows = f"ann,a,1.5,2\nbob,a,{missing},{missing}\n"
    table = read_clicks(written(file, f"annotator,image,x,y\n{rows}"))
    assert (table.x.tolist(), table.looked) == ([1.5], {(1, 0)})
    with pytest.raises(InputError, match="expected a position in pixels"):
        read_clicks(written(file, f"annotator,image,x,y\n{rows}cid,a,{missing},3\n"))


@pytest.mark.parametrize("factor", [1, 1000, 1_000_000, 1_000_000_000])
def test_times_since_1970_are_in_seconds_whatever_their_unit(file: Path, factor: int) -> None:
    times = [1_700_000_000, 1_700_000_012]
    rows = "".join(f"ann,a,1,2,{time * factor}\n" for time in times)
    table = read_clicks(written(file, f"annotator,image,x,y,timestamp\n{rows}"))
    assert table.time.tolist() == times
    rows = "".join(f"w{number},a,yes,{time * factor}\n" for number, time in enumerate(times))
    (votes,) = read_labels(written(file, f"annotator,task,label,timestamp\n{rows}"))
    assert votes.time.tolist() == times


@pytest.mark.parametrize(("column", "start"), [("date", 1_709_640_000), ("time", 45356.5)])
def test_days_of_a_spreadsheet_are_dates_in_a_column_of_dates(file: Path, column: str, start: float) -> None:
    rows = "ann,a,1,2,45356.5\nann,a,3,4,45356.75\n"
    first, second = read_clicks(written(file, f"annotator,image,x,y,{column}\n{rows}")).time.tolist()
    assert (first, second - first) == (start, 21_600 if column == "date" else 0.25)
    rows = "w1,a,yes,45356.5\nw2,a,yes,45356.75\n"
    (votes,) = read_labels(written(file, f"annotator,task,label,{column}\n{rows}"))
    assert votes.time.tolist() == [first, second]


@pytest.mark.parametrize(
    ("column", "cell", "noticed"),
    [("tile_x", 100, True), ("X offset", 5, True), ("roi", 5, False), ("tile_x", 0, False)],
)
def test_positions_of_tiles_beside_clicks_are_noticed(
    file: Path, column: str, cell: int, noticed: bool
) -> None:
    table = read_clicks(written(file, f"annotator,image,x,y,{column}\nann,a,1,2,{cell}\n"))
    assert any(f"{column}: not added" in words for words in table.notices) is noticed
