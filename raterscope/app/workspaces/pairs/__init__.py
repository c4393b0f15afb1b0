"""The pairs workspace."""

from raterscope.app.workspaces.pairs.workspace import PairsWorkspace

__all__ = ["PairsWorkspace"]
