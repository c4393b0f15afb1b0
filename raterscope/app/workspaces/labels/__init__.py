"""The labels workspace."""

from raterscope.app.workspaces.labels.workspace import LabelsWorkspace

__all__ = ["LabelsWorkspace"]
