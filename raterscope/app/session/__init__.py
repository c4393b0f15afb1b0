"""State of a workspace that its views observe, and background work that keeps only the newest answer."""

from __future__ import annotations

from raterscope.app.session.tasks import LatestTask, TaskGroup

__all__ = ["LatestTask", "TaskGroup"]
