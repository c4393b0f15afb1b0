"""State of a workspace that its views observe, and background work that keeps only the newest answer."""

from __future__ import annotations

from raterscope.app.session.session import Session, while_shown
from raterscope.app.session.tasks import LatestTask, TaskGroup

__all__ = ["LatestTask", "Session", "TaskGroup", "while_shown"]
