"""Rules that select annotators."""

import numpy as np
import pytest

from raterscope.app.annotators.writing import DEEPEST, RuleError, select_rows

COLUMNS = {
    "annotator": np.array(["Kim", "lee", "Max Moor"], dtype=object),
    "labels_accuracy": np.array([0.5, 0.9, np.nan]),
    "labels_votes": np.array([80.0, 90.0, 10.0]),
    "masks_bias_mm": np.array([np.nan, 1.0, -2.0]),
    "pairs_bias": np.array([0.1, np.nan, 3.0]),
    "pairs_flag": np.array(["", "one-sided", ""], dtype=object),
    "excluded": np.array([0.0, 1.0, 0.0]),
}
TEXTS = np.array(["kim", "lee one-sided", "max moor"], dtype=object)


@pytest.mark.parametrize(
    ("rule", "selected"),
    [
        ("", "KLM"),
        ("moor max", "M"),
        ("accuracy < .6 and votes >= 50", "K"),
        ("accuracy<60% or votes<50", "KM"),
        ("not (accuracy < .6)", "LM"),
        ("not accuracy < .6 and votes > 50", "L"),
        ("votes > 5 or votes < 0 and accuracy > 2", "KLM"),
        ("pairs_bias > -1e3", "KM"),
        ("masks_bias_mm < 0", "M"),
        ("flag = one-sided", "L"),
        ("flag != 'one-sided'", "KM"),
        ('annotator = "max moor"', "M"),
        ("excluded = yes", "L"),
        ("accuracy != 0.5", "L"),
    ],
)
def test_a_rule_selects_rows(rule, selected):
    chosen = select_rows(rule, COLUMNS, TEXTS)
    assert "".join(name for name, there in zip("KLM", chosen, strict=True) if there) == selected


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("bias > 1", "bias is masks_bias_mm or pairs_bias"),
        ("skill > 1", "There is no column skill"),
        ("accuracy <", "Expected a value after <"),
        ("accuracy < good", "accuracy is a number"),
        ("flag < 3", "flag is a text"),
        ("(votes > 1", "A parenthesis is not closed"),
        ("votes > 1 votes < 3", "Expected and, or, or the end before votes"),
        ("< 3", "Expected a column before <"),
        ("votes > 1 and", "Expected a column at the end"),
        ("votes > nan", "votes is a number"),
        ("(" * (DEEPEST + 1) + "votes > 1", "Too many parentheses"),
        ('votes > "', "is not understood"),
    ],
)
def test_what_is_wrong_with_a_rule_is_stated(rule, words):
    with pytest.raises(RuleError, match=words):
        select_rows(rule, COLUMNS, TEXTS)


def test_a_name_that_several_columns_end_with_is_refused():
    columns = {"a_bias": np.zeros(1), "b_bias": np.zeros(1)}
    with pytest.raises(RuleError, match="bias is a_bias or b_bias"):
        select_rows("bias > 1", columns, np.array(["x"], dtype=object))


def test_nothing_is_run_as_code():
    with pytest.raises(RuleError):
        select_rows("__import__('os').system('x') = 1", COLUMNS, TEXTS)
