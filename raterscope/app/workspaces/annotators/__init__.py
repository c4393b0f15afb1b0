"""Workspace of the annotators of all kinds."""

from raterscope.app.workspaces.annotators.workspace import AnnotatorsWorkspace

__all__ = ["AnnotatorsWorkspace"]
