"""Verdicts of a protocol on statistics of observer variability."""

import math

import pytest

from raterscope.algorithms.annotators.agreement_statistics import Coefficient
from raterscope.app.errors import InputError
from raterscope.app.page.variability import (
    Protocol,
    Statistic,
    compared_pairs,
    protocol_table,
    read_protocol,
    verdict,
)


@pytest.mark.parametrize(
    ("key", "figures", "limit", "expected"),
    [
        ("dice", (0.9, 0.85, 0.95), 0.8, "pass"),
        ("dice", (0.9, 0.75, 0.95), 0.8, "undecided"),
        ("dice", (0.7, 0.6, 0.79), 0.8, "fail"),
        ("hausdorff_95", (3.0, 2.0, 4.0), 5.0, "pass"),
        ("hausdorff_95", (3.0, 2.0, 4.0), 1.0, "fail"),
        ("bias", (-0.5, -0.8, -0.2), 1.0, "pass"),
        ("bias", (-2.0, -2.5, -1.5), 1.0, "fail"),
        ("bias", (0.1, -1.5, 1.7), 1.0, "undecided"),
        ("coefficient_of_variation", (0.2, math.nan, math.nan), 0.1, "fail"),
    ],
)
def test_verdicts(key, figures, limit, expected):
    assert verdict(Statistic("", key, Coefficient(*figures)), limit) == expected


def test_single_pairs_are_not_judged():
    statistics = [Statistic("", "dice", Coefficient(0.9, 0.8, 1.0), single=True)]
    assert protocol_table(Protocol(limits={"dice": 0.5}), statistics) is None


def test_pairs_that_are_compared():
    names = ["anna", "ben (read 2)", "ben", "anna (read 3)"]
    assert compared_pairs(names) == [
        ("anna (read 3)", "anna"), ("ben (read 2)", "ben"), ("anna", "ben")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\ndice = 'high'", "expected a number"),
        ("[limits]\ndice = -1", "expected a number"),
        ("limits = 3", "no table"),
        ("tolerance = true", "expected a number"),
        ("readers = 3", "unknown field readers"),
        ("= 3", "not TOML"),
    ],
)
def test_a_bad_protocol_is_refused(text, words, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_protocol(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_protocol(tmp_path / "none.toml")
