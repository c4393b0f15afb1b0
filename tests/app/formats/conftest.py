"""No Qt here."""

from tests.app.without_qt import nothing_is_left

__all__ = ["nothing_is_left"]
