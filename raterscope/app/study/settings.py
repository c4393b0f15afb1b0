"""Settings of a study that hold for the window, exports, reports and the command line alike."""

from __future__ import annotations

import math

from raterscope.algorithms.matching import RADIUS
from raterscope.app.study.asked import StudyQuestions
from raterscope.app.study.records import StudyError

__all__ = ["LARGEST_RADIUS", "StudySettings"]

LARGEST_RADIUS = 10_000.0
_RADIUS = "matching_radius"


class StudySettings(StudyQuestions):
    """The settings; what was never set has its default."""

    def matching_radius(self) -> float:
        """Give the pixels within which a detection matches a true place."""
        with self.sound():
            row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (_RADIUS,)).fetchone()
        if row is None:
            return RADIUS
        radius = _number(row[0])
        if not 0 < radius <= LARGEST_RADIUS:
            raise StudyError(
                f"is damaged: settings, {_RADIUS}: expected a number above 0, at most {LARGEST_RADIUS:g}",
                file=self.path,
            )
        return radius

    def set_matching_radius(self, radius: float) -> None:
        """Match detections with true places within a radius from now on, in pixels."""
        if not 0 < radius <= LARGEST_RADIUS:
            raise StudyError(
                f"cannot match within {radius:g} px; expected above 0, at most {LARGEST_RADIUS:g}",
                file=self.path,
            )
        with self.change():
            self._connection.execute(
                "INSERT INTO settings(name, value) VALUES (?, ?) "
                "ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (_RADIUS, repr(float(radius))),
            )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
