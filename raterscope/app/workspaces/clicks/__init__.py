"""The clicks workspace: the expert reviews the disputed detections of an image."""

from raterscope.app.workspaces.clicks.workspace import COVERAGES, ClicksWorkspace

__all__ = ["COVERAGES", "ClicksWorkspace"]
