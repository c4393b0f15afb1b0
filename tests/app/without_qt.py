"""For tests that use no Qt: looking for what Qt has left behind would take longer than the tests."""

import pytest

__all__ = ["nothing_is_left"]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Look for nothing."""
