"""The default rule of a fusion of pairs: few biased annotators are found, none in fair crowds, and
uncertainty is reported."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.data import BEHAVIOURS, RULES, PairSettings
from raterscope.algorithms.pairs.selection import flip_flags
from tests.algorithms.pairs.test_flip_test import crowd

GOOD, UNDECIDABLE = BEHAVIOURS.index("good"), BEHAVIOURS.index("not decidable")


def always_left(pairs: Pairs, *annotators: int) -> Pairs:
    return replace(pairs, choice=np.where(np.isin(pairs.annotator, annotators), 1.0, pairs.choice))


def plan(**texts: str) -> PairPlan:
    return PairPlan.make("iss", texts)


def test_four_judges_of_thirty_are_found_where_knockoffs_can_flag_no_annotator():
    pairs = always_left(crowd(1, votes=200, people=30), 3, 8, 20, 29)
    result = fuse(pairs)
    assert set(np.flatnonzero(result.flagged)) == {3, 8, 20, 29}
    assert (result.behaviour[result.flagged] == BEHAVIOURS.index("bad")).all()
    before = fuse(pairs, plan(rule="knockoffs", draws="10"))
    assert not before.flagged.any()
    assert (before.behaviour[[3, 8, 20, 29]] == UNDECIDABLE).all()


def test_fair_crowds_are_left_alone():
    accused = [fuse(crowd(seed, votes=60, people=30)).flagged.any() for seed in range(40)]
    assert np.mean(accused) <= 0.125  # one in twenty is promised


def test_no_annotator_with_few_choices_is_called_good():
    few, many = fuse(crowd(2, votes=12)), fuse(crowd(2, votes=400))
    assert (few.behaviour == UNDECIDABLE).all()
    assert (many.behaviour == GOOD).mean() > 0.8
    assert np.nanmax(many.detectable) < 0.5
    assert (few.detectable[np.isfinite(few.detectable)] > 0.5).all()
    stricter = fuse(crowd(2, votes=400), plan(relevant="0.05"))
    assert (stricter.behaviour == UNDECIDABLE).all()


def test_a_small_bias_is_not_flagged_however_many_choices_show_it():
    pairs = crowd(3, votes=6000, people=15, bias=(0.15, -0.15, 1.5))
    assert fuse(pairs, plan(effect="0")).flagged[:3].all()
    result = fuse(pairs, plan(effect="0.3"))
    assert result.flagged.tolist() == [False, False, True, *[False] * 12]
    assert result.bias_low[0] < result.bias[0] < result.bias_high[0]


def test_the_crowd_test_reports_that_it_withholds_flags():
    fixed = fuse(crowd(47, votes=60, people=30))
    assert (fixed.q_value <= 0.1).any()
    assert not fixed.flagged.any()
    assert fixed.crowd_p > fixed.gate
    assert "none is flagged. Set the crowd test to 1" in "\n".join(fixed.notices)
    assert (fixed.behaviour[fixed.q_value <= 0.1] == UNDECIDABLE).all()
    assert flip_flags(fixed.q_value, 0.1, fixed.crowd_p, 1.0).any()


def test_flags_at_another_rate_follow_from_the_q_values():
    pairs = crowd(4, votes=80, people=40, bias=(0.8,) * 6)
    result = fuse(pairs)
    for rate in (0.02, 0.05, 0.25):
        known = fuse(pairs, plan(rate=str(rate)))
        flags = flip_flags(result.q_value, rate, result.crowd_p, result.gate)
        assert (flags == known.flagged).all()


def test_stored_settings_without_a_rule_used_knockoffs():
    stored = {name: value for name, value in PairSettings().as_dict().items() if name != "rule"}
    assert PairSettings.from_dict(stored).rule == "knockoffs"
    assert PairSettings.from_dict(PairSettings().as_dict()).rule == "flip"
    assert PairSettings().rule == "flip"


@pytest.mark.parametrize("scale", [1.0, 250.0])
def test_grades_of_any_scale_give_the_same_flags(scale):
    pairs = crowd(5, votes=80, people=20, bias=(2.0, -2.0), graded=True)
    result = fuse(replace(pairs, choice=scale * pairs.choice))
    assert set(np.flatnonzero(result.flagged)) >= {0, 1}
    assert result.bias[0] / scale == pytest.approx(2.0, abs=0.6)
    assert result.bias_low[0] < result.bias[0] < result.bias_high[0]
    assert 0 < result.detectable[2] / scale < 2.0


def test_methods_name_the_rule_and_none_of_the_settings_of_the_other() -> None:
    flips, knockoffs = (plan(rule=rule).in_words() for rule in RULES)
    assert "by the flip test (after [@fisher1935]), and ordered by inverse scale space" in flips
    assert "minimum bias 0.03" in flips
    assert "knockoff" not in flips
    assert "with knockoffs ([@xu2016], section 2.3, as corrected)" in knockoffs
    assert "draws 50" in knockoffs
    assert "minimum bias" not in knockoffs
