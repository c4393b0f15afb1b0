"""Append-only record of the spots that the expert viewed and left without a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from raterscope.app.review import View
from raterscope.app.study.file import StudyFile
from raterscope.app.study.records import StudyError, user_name

_COLUMNS = ("id", "at", "who", "image", "run", "number", "x", "y", "how", "seconds")


class ViewLog:
    """The views of spots in an open study."""

    def __init__(self, file: StudyFile) -> None:
        self._file = file

    def record(self, views: Sequence[View]) -> list[View]:
        """Append views to the record; they are on disk when this returns.

        Returns
        -------
        list of View
            With their numbers, their time, and the user's name where `who` was empty.
        """
        time, user = datetime.now(UTC), user_name()
        with self._file.change() as connection:
            last = self.last()
            written = [
                replace(view, id=number, at=view.at or time, who=view.who or user)
                for number, view in enumerate(views, start=last + 1)
            ]
            connection.executemany(
                f"INSERT INTO viewed({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
                [_row(view) for view in written],
            )
        return written

    def by_image(self, last: int | None = None) -> dict[int, list[View]]:
        """Return the views of spots by image, oldest first, up to a view's number."""
        views: dict[int, list[View]] = {}
        with self._file.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM viewed WHERE id <= ? ORDER BY id",
                (2**62 if last is None else last,),
            ).fetchall()
        for row in rows:
            view = self._view(row)
            views.setdefault(view.image, []).append(view)
        return views

    def last(self) -> int:
        """Return the number of the last view; 0 before the first."""
        with self._file.reading() as connection:
            return int(connection.execute("SELECT ifnull(max(id), 0) FROM viewed").fetchone()[0])

    def _view(self, row: tuple[Any, ...]) -> View:
        values = dict(zip(_COLUMNS, row, strict=True))
        try:
            values["at"] = datetime.fromisoformat(values["at"])
            return View(**values)
        except ValueError as error:
            raise StudyError(f"is damaged: viewed, row {row[0]}: {error}", file=self._file.path) from error


def _row(view: View) -> tuple[Any, ...]:
    assert view.at is not None
    values = {name: getattr(view, name) for name in _COLUMNS}
    values["at"] = view.at.isoformat(timespec="milliseconds")
    return tuple(values.values())
