"""The clicks workspace: a microscopist walks the disputed detections of a smear."""

from raterscope.app.workspaces.clicks.workspace import COVERAGES, ClicksWorkspace

__all__ = ["COVERAGES", "ClicksWorkspace"]
