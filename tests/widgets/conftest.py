"""Tests with Qt: nothing may be left behind."""

from tests.qt_leaks import nothing_is_left

__all__ = ["nothing_is_left"]
