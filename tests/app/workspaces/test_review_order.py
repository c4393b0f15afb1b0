"""Words for what remains to be decided: how many decisions matter, and how many are left."""

import pytest

from raterscope.app.workspaces.review_order import Part, describe_remaining


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Part("", 30, 20, 4, 3), Part("", 5, 0, 0, 0)], "3 of 24 disputed spots matter|4 skipped"),
        ([Part("", 30, 1, 0, 1)], "1 of 1 disputed spot matters"),
        ([Part("", 30, 20, 4, 0)], "0 of 24 disputed spots matter|4 skipped"),
        ([Part("", 30, 20, 4)], "24 left in the study|4 skipped"),
        ([Part("", 30, 0, 0, 0)], "0 left in the study"),
    ],
)
def test_the_header_counts_the_decisions_that_matter(parts, words):
    assert "|".join(describe_remaining(parts, "disputed spot")) == words
