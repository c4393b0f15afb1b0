"""Aggregators with the methods of crowd-kit's: values as in the table, series of pandas for pandas."""

import pytest

import raterscope as rs
from tests.app.library.test_fusion import pairs

VOTES = {"task": [1, 1, 1, 2, 2, 2], "worker": list("abc") * 2, "label": [0, 0, 1, 1, 1, 1]}


def comparisons():
    table = pairs()
    sides = zip(table["left"], table["right"], table["choice"], strict=True)
    return {
        "worker": table["annotator"],
        "left": table["left"],
        "right": table["right"],
        "label": [left if choice == "left" else right for left, right, choice in sides],
    }


def test_labels_keep_the_values_of_the_table():
    aggregator = rs.Labels(method="majority")
    assert aggregator.fit_predict(VOTES) == {1: 0, 2: 1}
    probabilities = aggregator.fit_predict_proba(VOTES)
    assert probabilities == {1: pytest.approx({0: 2 / 3, 1: 1 / 3}), 2: {0: 0, 1: 1}}
    assert aggregator.to_frame("annotators")["votes"].tolist() == [2, 2, 2]
    with pytest.raises(rs.DataError, match="no column task"):
        aggregator.fit_predict({"item": [1], "worker": ["a"], "label": [0]})


def test_pairs_are_scored_as_by_the_function():
    scores = rs.Pairs().fit_predict(comparisons())
    frame = rs.fuse_pairs(pairs()).to_frame()
    assert list(scores) == frame["item"].tolist()
    assert list(scores.values()) == frame["score_corrected"].tolist()


def test_tables_of_polars_and_arrow_give_dictionaries():
    pyarrow = pytest.importorskip("pyarrow")
    assert rs.Labels("majority").fit_predict(pyarrow.table(VOTES)) == {1: 0, 2: 1}
    polars = pytest.importorskip("polars")
    assert rs.Labels("majority").fit_predict(polars.DataFrame(VOTES)) == {1: 0, 2: 1}


def test_tables_of_pandas_give_series():
    pandas = pytest.importorskip("pandas")
    labels = rs.Labels("majority").fit_predict(pandas.DataFrame(VOTES))
    assert labels.index.name == "task"
    assert labels.name == "agg_label"
    assert labels.to_dict() == {1: 0, 2: 1}
    probabilities = rs.Labels("majority").fit_predict_proba(pandas.DataFrame(VOTES))
    assert probabilities.loc[2, 1] == 1
    scores = rs.Pairs().fit_predict(pandas.DataFrame(comparisons()))
    assert scores.name == "agg_score"
    assert scores.is_monotonic_decreasing
