"""Tests with Qt: nothing may be left behind."""

import pytest

from raterscope.widgets import theme
from tests.qt_leaks import nothing_is_left
from tests.waiting import qtbot

__all__ = ["nothing_is_left", "qtbot"]


@pytest.fixture
def dark(qapp):
    """The program in its dark colours, whatever the system has."""
    theme.apply_theme(qapp, theme.DARK)
