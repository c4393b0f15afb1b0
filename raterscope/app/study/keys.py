"""The secret key of a study, from which de-identified exports make identifiers that are always the same."""

from __future__ import annotations

from raterscope.app.study.migration import EXPORT_KEY, KEY_BYTES
from raterscope.app.study.records import StudyError
from raterscope.app.study.study import Study

__all__ = ["export_key"]


def export_key(study: Study) -> bytes:
    """Give the key of de-identified exports.

    Raises
    ------
    StudyError
        For a file of an older version that cannot be written: a key made for it would be lost.
    """
    with study.sound() as connection:
        row = connection.execute("SELECT value FROM keys WHERE name = ?", (EXPORT_KEY,)).fetchone()
    if row is None:
        raise StudyError(
            "has no key for de-identified exports, and cannot be written; open a copy that can be written",
            file=study.path,
        )
    if len(row[0]) != KEY_BYTES:
        raise StudyError("is damaged: its key for de-identified exports cannot be read", file=study.path)
    return bytes(row[0])
