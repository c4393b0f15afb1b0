"""Settings of a study that hold for the window, exports, reports and the command line alike."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from raterscope.algorithms.evaluation import RADIUS
from raterscope.app.study.file import StudyFile
from raterscope.app.study.records import StudyError

LARGEST_RADIUS = 10_000.0
_RADIUS = "matching_radius"
_CROWDS, _METHODS, _FOLDS = "crowd_sizes", "compared_methods", "label_folds"


class StudySettings:
    """The settings of an open study; a setting that was never set has its default."""

    def __init__(self, file: StudyFile) -> None:
        self._file = file

    def matching_radius(self) -> float:
        """Return the radius, in pixels, within which a detection matches a true point."""
        text = self._setting(_RADIUS)
        if text is None:
            return RADIUS
        radius = _number(text)
        if not 0 < radius <= LARGEST_RADIUS:
            raise StudyError(
                f"is damaged: settings, {_RADIUS}: expected a number above 0, at most {LARGEST_RADIUS:g}",
                file=self._file.path,
            )
        return radius

    def set_matching_radius(self, radius: float) -> None:
        """Set the radius, in pixels, within which detections match true points."""
        if not 0 < radius <= LARGEST_RADIUS:
            raise StudyError(
                f"cannot match within {radius:g} px; expected above 0, at most {LARGEST_RADIUS:g}",
                file=self._file.path,
            )
        self._set(_RADIUS, repr(float(radius)))

    def crowd_sizes(self) -> Mapping[str, Any] | None:
        """Return the last measurement against the number of annotators; None if unreadable."""
        return self._record(_CROWDS)

    def keep_crowd_sizes(self, record: Mapping[str, Any]) -> None:
        """Store the last measurement against the number of annotators."""
        self._set(_CROWDS, json.dumps(record, allow_nan=False))

    def compared_methods(self) -> Mapping[str, Any] | None:
        """Return the last comparison of methods for masks; None if unreadable."""
        return self._record(_METHODS)

    def keep_compared_methods(self, record: Mapping[str, Any]) -> None:
        """Store the last comparison of methods for masks."""
        self._set(_METHODS, json.dumps(record, allow_nan=False))

    def folds(self, question: int) -> Mapping[str, Any] | None:
        """Return the last cross-validation of methods for labels; None if unreadable."""
        return self._record(f"{_FOLDS}_{question}")

    def keep_folds(self, question: int, record: Mapping[str, Any]) -> None:
        """Store the last cross-validation of methods for labels on a question."""
        self._set(f"{_FOLDS}_{question}", json.dumps(record, allow_nan=False))

    def _record(self, name: str) -> Mapping[str, Any] | None:
        text = self._setting(name)
        try:
            record = None if text is None else json.loads(text)
        except (ValueError, RecursionError):
            return None
        return record if isinstance(record, dict) else None

    def _setting(self, name: str) -> str | None:
        with self._file.reading() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set(self, name: str, value: str) -> None:
        with self._file.change() as connection:
            connection.execute(
                "INSERT INTO settings(name, value) VALUES (?, ?) "
                "ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (name, value),
            )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
