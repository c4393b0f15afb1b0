"""Tables of comparisons, as spreadsheets, crowd-kit, arenas and strangers write them."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.pairs import FIELDS, explain_assumed_kind, has_pairs, read_pairs
from raterscope.app.formats.records import PairTable

PLAIN = "annotator,left,right,choice\nann,x,y,left\nZoë,y,z,right\nann,z,x,tie\n"
ROWS = [("ann", "x", "y", 1.0), ("Zoë", "y", "z", -1.0), ("ann", "z", "x", 0.0)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pairs.csv"


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def table_of(path: Path, mapping: dict[str, str] | None = None) -> PairTable:
    (table,) = read_pairs(path, mapping)
    return table


def rows_of(table: PairTable) -> list[tuple[str, str, str, float]]:
    return [
        (table.annotators[a], table.items[left], table.items[right], float(choice))
        for a, left, right, choice in zip(
            table.annotator, table.left, table.right, table.choice, strict=True
        )
    ]  # fmt: skip


def choices(path: Path, *cells: str, items: tuple[str, str] = ("x", "y")) -> list[float]:
    """Read choices between two items, by one annotator each."""
    lines = [f"a{at},{items[0]},{items[1]},{cell}" for at, cell in enumerate(cells)]
    return table_of(written(path, "\n".join(["annotator,left,right,choice", *lines, ""]))).choice.tolist()


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_pairs(path)
    assert not isinstance(caught.value, UnknownColumns)
    assert str(caught.value).count(". ") == 0
    return str(caught.value)


def test_a_header_that_is_repeated_is_skipped(file: Path) -> None:
    header, *rows = PLAIN.splitlines(keepends=True)
    table = table_of(written(file, "".join([header, rows[0], header, *rows[1:]])))
    assert rows_of(table) == ROWS
    assert (set(table.items), table.annotators) == ({"x", "y", "z"}, ("ann", "Zoë"))
    assert table.notices == ("Line 3 skipped: it repeats the header.",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_any_encoding_delimiter_and_end_of_line(file: Path, encoding: str) -> None:
    for end, delimiter in product(("\n", "\r\n"), ",;\t"):
        text = PLAIN.replace("\n", end).replace(",", delimiter)
        assert rows_of(table_of(written(file, text, encoding))) == ROWS, (end, delimiter)


@pytest.mark.parametrize(
    "header",
    ["worker,left,right,label", "judge,model_a,model_b,winner", "user_id,item1,item2,preference",
     "Rater,Item A,Item B,Answer", "worker_id,left_item,right_item,preferred",
     "annotator,image_a,image_b,vote", "user,img_left,img_right,choice",
     "rater,stimulus_1,stimulus_2,response", "participant,left_image,right_image,decision",
     "subject_judge,a,b,choice"],
)  # fmt: skip
def test_the_usual_names_of_columns(file: Path, header: str) -> None:
    path = written(file, PLAIN.replace("annotator,left,right,choice", header))
    assert has_pairs(path)
    mapping = {"subject_judge": "annotator"} if header.startswith("subject") else None
    assert rows_of(table_of(path, mapping)) == ROWS


@pytest.mark.parametrize(
    "header",
    [
        "annotator,task,label",
        "annotator,image,x,y",
        "annotator,image,x,y,a,b",
        "task,rater 1,rater 2",
        "task,truth",
    ],
)
def test_other_tables_are_none_of_pairs(file: Path, header: str) -> None:
    cells = ",".join("1" * (header.count(",") + 1))
    assert not has_pairs(written(file, f"{header}\n{cells}\n"))
    assert not has_pairs(file.with_name("nowhere.csv"))
    assert not has_pairs(written(file, ""))


@pytest.mark.parametrize(
    ("header", "row", "of_pairs"),
    [
        # labels of pictures, beside where a thing begins and ends, or what is seen at its sides
        ("annotator,image,left,right,label", "{who},p{n},{n}2,{n}80,cat", False),
        ("annotator,image,left,right,label", "{who},p{n},{n},{after},{bit}", False),
        ("annotator,task,left,right,answer", "{who},t{n},yes,{yes},a", False),
        ("worker,task,first,second,label", "{who},t{n},{n},5{more},3", False),
        # comparisons, with a number of the pair or a question beside them
        ("annotator,task,left,right,label", "{who},t{n},cell {n},cell {more},left", True),
        ("annotator,task,left,right,label", "{who},t{n},cell {n},cell {more},cell {more}", True),
        ("annotator,question,left,right,choice", "{who},older?,{n},{more},{bit}", True),
        ("annotator,question,left,right,score", "{who},older?,{more},{n},-1", True),
        ("rater,example,response_a,response_b,vote", "{who},e{n},text {n},text {more},A", True),
    ],
)
def test_labels_beside_columns_named_left_and_right_are_recognised_by_their_contents(
    file: Path, header: str, row: str, of_pairs: bool
) -> None:
    lines = [
        row.format(
            who=annotator, n=n, after=n + 2, more=(n + 3) % 9, bit=n % 2, yes=("yes", "no")[n % 3 == 0]
        )
        for annotator in ("ann", "bob")
        for n in range(9)
    ]
    written(file, "\n".join([header, *lines, ""]))
    assert has_pairs(file) is of_pairs
    words = explain_assumed_kind(file)
    assert words.startswith(f"pairs.csv was read as {'pairs' if of_pairs else 'labels'}, because ")
    assert words.endswith(f"--kind {'labels' if of_pairs else 'pairs'}.")
    if not of_pairs:
        assert sum(len(table) for table in read_labels(file)) == len(lines)


def test_a_plain_header_is_taken_without_a_word(file: Path) -> None:
    assert not explain_assumed_kind(written(file, PLAIN))
    assert not explain_assumed_kind(written(file, "annotator,task,label\nann,t,cat\n"))
    assert not explain_assumed_kind(file.with_name("nowhere.csv"))


def test_a_header_may_be_mapped_by_hand(file: Path) -> None:
    path = written(file, PLAIN.replace("annotator,left,right,choice", "who,p,q,what"))
    with pytest.raises(UnknownColumns) as caught:
        read_pairs(path)
    assert set(caught.value.missing) == {"annotator", "left", "right", "choice"}
    mapping = dict(zip(("who", "p", "q", "what"), [word for word, _, _ in FIELDS], strict=False))
    assert rows_of(table_of(path, mapping)) == ROWS


def test_crowd_kits_label_is_the_winner(file: Path) -> None:
    path = written(file, "worker,left,right,label\nw,cat,dog,dog\nv,dog,cow,dog\nw,cow,cat,cow\n")
    assert table_of(path).choice.tolist() == [-1.0, 1.0, 1.0]


def test_an_arenas_winner_is_a_side_or_one_of_two_ties(file: Path) -> None:
    text = "question_id,model_a,model_b,winner,judge,turn\n" + "".join(
        f"8{at},gpt,llama,{winner},author_1,1\n"
        for at, winner in enumerate(("model_a", "model_b", "tie", "tie (bothbad)"))
    )
    assert table_of(written(file, text)).choice.tolist() == [1.0, -1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("Left", "r", "TIE", "equal", " L "), [1, -1, 0, 0, 1]),
        (("first", "second", "both bad", "no difference"), [1, -1, 0, 0]),
        ((">", "<", "="), [1, -1, 0]),
        (("A", "b", "same"), [1, -1, 0]),
        (("x", "y", "draw", "left"), [1, -1, 0, 1]),
        (("-2", "-0", "1", "2"), [-2, 0, 1, 2]),
        (("0.25", "-1e-1", "0"), [0.25, -0.1, 0]),
        (("1", "2", "1"), [1, -1, 1]),
        (("1", "0", "tie"), [1, -1, 0]),
        (("1", "-1"), [1, -1]),
        (("left", "right", "0"), [1, -1, 0]),
        (("[[A>>B]]", "B > A", "A<B", "B=A", "[[A]]", "[[C]]"), [1, -1, -1, 0, 1, 0]),
        (("A is much better", "B slightly better", "Left is better", "equal"), [1, -1, 1, 0]),
    ],
)
def test_choices_are_sides_winners_ties_and_numbers(
    file: Path, cells: tuple[str, ...], values: list[float]
) -> None:
    result = choices(file, *cells)
    assert result == values
    assert not any(value == 0 and np.signbit(value) for value in result)


def test_numbers_may_have_a_decimal_comma(file: Path) -> None:
    path = written(file, "annotator;left;right;choice\na;x;y;1,5\nb;x;y;-0,5\n")
    assert table_of(path).choice.tolist() == [1.5, -0.5]


def test_numbers_may_have_a_typographic_minus(file: Path) -> None:
    path = written(file, "annotator,left,right,choice\na,x,y,1\nb,x,y,\N{MINUS SIGN}2\n")
    assert table_of(path).choice.tolist() == [1.0, -2.0]


def test_names_of_items_win_over_words_and_numbers(file: Path) -> None:
    rows = "annotator,left,right,choice\na,B,A,A\na,A,B,A\nb,B,A,tie\n"
    assert table_of(written(file, rows)).choice.tolist() == [-1.0, 1.0, 0.0]
    table = table_of(written(file, "annotator,left,right,choice\na,2,1,1\na,7,2,7\nb,1,7,7\n"))
    assert table.choice.tolist() == [-1.0, 1.0, -1.0]
    assert "preferred" in table.notices[0]


def test_how_numbers_were_read_is_reported(file: Path) -> None:
    expected = ((("1", "2"), "left and right"), (("1", "0"), "1 and 0"), (("0.5", "2"), "below 0"))
    for cells, words in expected:
        lines = [f"a,x,y,{cell}" for cell in cells]
        table = table_of(written(file, "\n".join(["annotator,left,right,choice", *lines])))
        assert words in table.notices[0]


@pytest.mark.parametrize("tie", ["0.5", "0,5"])
def test_results_of_a_game_are_loss_tie_and_win(file: Path, tie: str) -> None:
    lines = [f'a{at},x,y,"{result}"' for at, result in enumerate(("1", tie, "0", tie))]
    table = table_of(written(file, "\n".join(["annotator,left,right,result", *lines])))
    assert table.choice.tolist() == [1, 0, -1, 0]
    assert "1, 0.5 and 0 are read as left, tie and right" in table.notices[0]


def test_a_scale_without_a_left_end_is_refused(file: Path) -> None:
    lines = [f"a{at},x,y,{at}" for at in (1, 2, 3, 5)]
    message = refusal(written(file, "\n".join(["annotator,left,right,choice", *lines])))
    assert "from 1 to 5" in message
    assert "above 0 for left" in message


def test_probabilities_are_not_read_as_sides(file: Path) -> None:
    lines = [f"a{at},x,y,{value}" for at, value in enumerate((0.9, 0.1, 0.5))]
    assert "subtract 0.5" in refusal(written(file, "\n".join(["annotator,left,right,choice", *lines])))


def test_rows_without_an_answer_are_counted_and_left_out(file: Path) -> None:
    table = table_of(written(file, "annotator,left,right,choice\na,x,y,\nb,x,z,left\nc,y,z,NA\n"))
    assert (table.missing, len(table)) == (2, 1)
    assert table.annotators == ("a", "b", "c")
    assert table.items == ("x", "y", "z")
    assert "2 rows without an answer" in table.notices[0]


@pytest.mark.parametrize(
    ("row", "line", "words"),
    [
        ("a,y,y,left", "line 3", "compares an item with itself"),
        ("a,x,y,maybe", "line 3", 'has the choice "maybe"; expected left, right, tie'),
        ("a,x,y,nan", "line 3", 'has the choice "nan"'),
        ("a,x,y,inf", "line 3", 'has the choice "inf"'),
        ("a,x,y,1e300", "line 3", 'has the choice "1e300"'),
        ("a,x,y,z", "line 3", 'has the choice "z"'),
    ],
)
def test_bad_rows_are_skipped_with_a_notice_unless_all_are_bad(
    file: Path, row: str, line: str, words: str
) -> None:
    table = table_of(written(file, f"annotator,left,right,choice\na,x,y,left\n{row}\nb,z,x,right\n"))
    assert rows_of(table) == [("a", "x", "y", 1.0), ("b", "z", "x", -1.0)]
    assert line in table.notices[0]
    assert words in table.notices[0]
    message = refusal(written(file, f"annotator,left,right,choice\n{row}\n"))
    assert "line 2" in message
    assert "expected" in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("annotator,left,right,choice\n", "no rows"),
        ("annotator,left,right,choice\na,x,y,\n", "has no answers; expected left"),
        ("annotator,left,right,choice\na,x,,left\n", "line 2, field right: is empty; expected a name"),
        ("annotator,left,right,choice\n,x,y,left\n", "line 2, field annotator"),
        ("annotator,left,right,choice\na,x,y,left\na,x\n", "line 3: has 2 cells"),
        (f"annotator,left,right,choice\na,{'x' * 600},y,left\n", "longer than 500 letters"),
        ("annotator,left,right,choice\na,x,y,maybe\na,y,x,what\n", "(and 1 more bad line)"),
    ],
)
def test_what_cannot_be_read_is_stated_in_one_sentence(file: Path, text: str, words: str) -> None:
    assert words in refusal(written(file, text))


def test_repeated_rows_are_kept(file: Path) -> None:
    assert len(table_of(written(file, "annotator,left,right,choice\n" + 3 * "a,x,y,left\n"))) == 3


def test_times_are_seconds_and_what_is_no_time_is_reported(file: Path) -> None:
    text = "annotator,left,right,choice,time\na,x,y,left,2020-01-01 00:01:00\nb,x,y,left,\n"
    table = table_of(written(file, text))
    assert table.time is not None
    np.testing.assert_array_equal(table.time, [1577836860.0, np.nan])
    table = table_of(written(file, text.replace("left,\n", "left,later\n")))
    assert table.time is None
    assert "line 3" in table.notices[0]


def test_pictures_are_the_items_of_either_side(file: Path) -> None:
    text = (
        "annotator,left,right,choice,left_picture,right_picture\n"
        "a,x,y,left,x.png,y.png\na,z,x,right,,other.png\na,y,z,left,,z.png\n"
    )
    table = table_of(written(file, text))
    assert {table.items[at]: name for at, name in table.pictures.items()} == {
        "x": "x.png", "y": "y.png", "z": "z.png",
    }  # fmt: skip


def test_each_question_has_a_table_of_its_own(file: Path) -> None:
    text = (
        "annotator,question,left,right,choice\na,older,x,y,left\nb,sharper,y,z,r\nb,older,z,y,z\nc,,x,y,l\n"
    )
    older, sharper = read_pairs(written(file, text))
    assert (older.question, sharper.question) == ("older", "sharper")
    assert rows_of(older) == [("a", "x", "y", 1.0), ("b", "z", "y", 1.0)]
    assert (sharper.annotators, sharper.items) == (("b",), ("y", "z"))


def test_names_are_in_the_order_of_first_appearance(file: Path) -> None:
    table = table_of(written(file, "annotator,left,right,choice\nb,q,p,left\na,p,r,left\nb,s,q,left\n"))
    assert table.items == ("q", "p", "r", "s")
    assert table.annotators == ("b", "a")


def test_reading_is_cancelled_while_it_runs(file: Path) -> None:
    def cancel(fraction: float, words: str, **_: object) -> None:
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        read_pairs(written(file, PLAIN), watch=cancel)


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\x1c\x1d\x1e\x85  "), max_size=6
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, NAMES, NAMES), min_size=1, max_size=6))
def test_whatever_is_written_is_comparisons_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
) -> None:
    path = tmp_path_factory.mktemp("strange") / "pairs.csv"
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    written(path, "\n".join(["annotator,left,right,choice", *lines, ""]))
    tables, message = (), ""
    try:
        tables = read_pairs(path)
    except InputError as error:
        message = str(error)
    assert bool(tables) != bool(message)
    assert "\n" not in message
    for table in tables:
        columns = (table.annotator, table.left, table.right, table.choice, table.annotators, table.items)
        assert len(Pairs(*columns)) == len(table) > 0


@pytest.mark.parametrize(
    ("name", "rows", "annotators", "items", "ties", "missing"),
    [("worldcollege", 8823, 340, 261, 0, 0), ("lf_quality", 26580, 29, 350, 0, 0),
     ("music_sigir2010", 2805, 79, 118, 1405, 5)],
)  # fmt: skip
def test_real_tables(
    real_data: Path, name: str, rows: int, annotators: int, items: int, ties: int, missing: int
) -> None:
    path = real_data / "pairs" / f"{name}.csv"
    assert has_pairs(path)
    table = table_of(path)
    assert (len(table), len(table.annotators), len(table.items)) == (rows, annotators, items)
    assert ((table.choice == 0).sum(), table.missing) == (ties, missing)


def test_no_other_real_table_is_taken_for_pairs(real_data: Path) -> None:
    others = [path for path in real_data.glob("*/*.csv") if path.parent.name != "pairs"]
    assert others
    assert not [path.name for path in others if has_pairs(path)]


def test_columns_of_winners_are_choices(file: Path) -> None:
    """As in exports of Chatbot Arena for Kaggle, which have no judges."""
    header = "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n"
    path = written(file, f"{header}1,x,y,1,0,0\n2,y,z,0,1,0\n3,z,x,0,0,1\n4,x,z,0,0,0\n")
    assert has_pairs(path)
    table = table_of(path)
    assert table.annotators == ("all annotators",)
    assert table.choice.tolist() == [1.0, -1.0, 0.0]
    assert table.missing == 1
    assert any("No column names the annotators" in notice for notice in table.notices)
    by_hand = {name: field for name, field in table.columns.items() if name != "id"}
    assert table_of(path, {**by_hand, "id": "annotator"}).annotators == ("1", "2", "3", "4")


def test_subjects_are_annotators_if_no_other_column_is(file: Path) -> None:
    path = written(file, "subject,item1,item2,rating\ns1,a,b,2\ns2,b,a,-1\n")
    assert table_of(path).annotators == ("s1", "s2")
