"""The masks workspace."""

from raterscope.app.workspaces.masks.workspace import MasksWorkspace

__all__ = ["MasksWorkspace"]
