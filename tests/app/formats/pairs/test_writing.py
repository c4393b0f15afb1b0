"""Comparisons and rankings as the next program reads them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.pairs.writing import write_annotators, write_pairs, write_path, write_ranking
from tests.app.tables import header_of, rows_of

NAN = float("nan")
PEOPLE = ("ann", "=cmd()", "at")
ITEMS = ("x", '-1+"y"', "z ü", "p", "q", "alone")


def some_pairs() -> Pairs:
    return Pairs(
        np.array([0, 1, 1, 2]), np.array([0, 1, 2, 3]), np.array([1, 2, 0, 4]),
        np.array([1.0, -1.0, 0.0, 1.0]), PEOPLE, ITEMS, np.array([1.7e9 + 0.25, 5.0, NAN, 7.0]),
    )  # fmt: skip


def some_fusion() -> PairFusion:
    score = np.array([0.5, 0.5, -1.0, 2.0, -2.0, NAN])
    corrected = np.array([0.25, 0.75, -1.0, 2.0, -2.0, NAN])
    bias = np.array([0.1234567, -1.0, NAN])
    return PairFusion(
        algorithm="iss", left=np.array([1, 0, 1], np.int32), right=np.array([0, 1, 0], np.int32),
        ties=np.array([0, 1, 0], np.int32), untested=np.array([0, 0, 1], np.int8),
        entry=np.array([0.5, 4.0, NAN]), path_at=np.array([0.0, 1.0, 2.5]),
        path=np.array([[0, 0, 0], [0, -0.5, 0], [0.25, -1, 0]], np.float32),
        statistic=np.array([[-0.5, 4, NAN], [0.25, 3, NAN], [0.3, 3.5, NAN]], np.float32),
        bias=bias, bias_low=bias - 1, bias_high=bias + 1, p_value=np.array([0.4, 1e-9, NAN]),
        rate=0.1, share=0.5, flagged=np.array([False, True, False]), behaviour=np.array([0, 2, 0], np.int8),
        match=np.array([1.0, 0.5, NAN]), component=np.array([0, 0, 0, 1, 1, -1], np.int32),
        score=score, score_low=score - 1, score_high=score + 1,
        corrected=corrected, corrected_low=corrected - 1, corrected_high=corrected + 1,
        variance=0.5, freedom=3, inconsistency=0.2,
    )  # fmt: skip


def test_annotators_have_their_counts_bias_statistic_and_behaviour(tmp_path: Path) -> None:
    path = write_annotators(tmp_path / "annotators.csv", PEOPLE, some_fusion(), np.array([0.0, 1.0, NAN]))
    expected = ["annotator", "left", "right", "ties", "bias", "statistic", "entered", "flagged", "behaviour"]
    assert header_of(path)[: len(expected)] == expected
    first, second, third = rows_of(path)
    assert [first[name] for name in expected] == [
        "ann",
        "1",
        "0",
        "0",
        "0.123457",
        "0.25",
        "0.5",
        "0",
        "good",
    ]
    assert [second[name] for name in expected] == ["'=cmd()", "0", "1", "1", "-1.0", "3.5", "4.0", "1", "bad"]
    assert (second["share"], second["bias_low"], second["bias_high"]) == ("1.0", "-2.0", "0.0")
    assert [third[name] for name in ("bias", "statistic", "entered", "share", "match")] == [""] * 5
    unshared = rows_of(write_annotators(path, PEOPLE, some_fusion()))
    assert {row["share"] for row in unshared} == {""}


def test_a_fusion_without_draws_has_no_statistic(tmp_path: Path) -> None:
    fusion = replace(some_fusion(), statistic=np.empty((0, 3), np.float32))
    rows = rows_of(write_annotators(tmp_path / "annotators.csv", PEOPLE, fusion))
    assert [row["statistic"] for row in rows] == ["", "", ""]


def test_items_are_ranked_before_and_after_within_their_components(tmp_path: Path) -> None:
    path = write_ranking(tmp_path / "ranking.csv", ITEMS, some_fusion())
    expected = ["item", "score", "rank", "score_corrected", "rank_corrected"]
    assert header_of(path)[: len(expected)] == expected
    assert [[row[name] for name in (*expected, "component")] for row in rows_of(path)] == [
        ['\'-1+"y"', "0.5", "1", "0.75", "1", "1"],
        ["x", "0.5", "1", "0.25", "2", "1"],
        ["z ü", "-1.0", "3", "-1.0", "3", "1"],
        ["p", "2.0", "1", "2.0", "1", "2"],
        ["q", "-2.0", "2", "-2.0", "2", "2"],
        ["alone", "", "", "", "", ""],
    ]
    assert rows_of(path)[0]["score_corrected_high"] == "1.75"


@pytest.mark.parametrize("change", ["sides", "graded", "untimed", "called left"])
def test_comparisons_are_read_again_as_they_were(tmp_path: Path, change: str) -> None:
    pairs = some_pairs()
    if change == "graded":
        pairs = replace(pairs, choice=np.array([0.1, -2.75, 0.0, 1 / 3]))
    if change == "untimed":
        pairs = replace(pairs, time=None)
    if change == "called left":
        first = {name: getattr(pairs, name)[:1] for name in ("annotator", "left", "right", "choice", "time")}
        pairs = replace(pairs, items=("right", "left"), annotators=("ann",), **first)
    path = write_pairs(tmp_path / "pairs.csv", pairs)
    (table,) = read_pairs(path)
    assert table.annotators == pairs.annotators
    assert table.items == pairs.items[: 1 + pairs.right.max()]
    for name in ("annotator", "left", "right", "choice", "time"):
        np.testing.assert_array_equal(getattr(table, name), getattr(pairs, name))
    assert (header_of(path)[-1] == "time") == (change != "untimed")


def test_the_path_has_a_column_an_annotator(tmp_path: Path) -> None:
    path = write_path(tmp_path / "path.csv", PEOPLE, some_fusion())
    assert header_of(path) == ["at", "ann", "'=cmd()", "at (annotator)"]
    assert [list(map(float, row.values())) for row in rows_of(path)] == [
        [0, 0, 0, 0], [1, 0, -0.5, 0], [2.5, 0.25, -1, 0],
    ]  # fmt: skip


def test_a_table_is_whole_or_not_there(tmp_path: Path) -> None:
    def cancel(fraction: float, words: str, **_: object) -> None:
        raise Cancelled

    path = tmp_path / "pairs.csv"
    path.write_text("before")
    with pytest.raises(Cancelled):
        write_pairs(path, some_pairs(), cancel)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("pairs.csv", "before")]
    with pytest.raises(InputError, match="cannot be written"):
        write_ranking(tmp_path / "nowhere" / "ranking.csv", ITEMS, some_fusion())
