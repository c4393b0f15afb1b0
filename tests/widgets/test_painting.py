"""Text that is broken into lines is elided only where a word alone is too long."""

import pytest
from PySide6.QtGui import QFontMetrics

from raterscope.widgets import theme
from raterscope.widgets.painting import in_lines


@pytest.mark.parametrize("words", ["3 always Wespe", "2 unsure of Würmer", "mostly yes, whatever it is"])
def test_lines_are_elided_only_within_a_word(qapp, words):
    metrics = QFontMetrics(theme.font(bold=True))
    longest = max(metrics.horizontalAdvance(word) for word in words.split())
    for room in range(longest + 2, metrics.horizontalAdvance(words) + 10):
        lines = in_lines(words, metrics, room, 9)
        assert " ".join(lines) == words
        assert all(metrics.horizontalAdvance(line) <= room for line in lines)
