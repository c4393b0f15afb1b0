"""The workspaces that the window offers, one per kind of annotation. Each is imported when it is opened."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from raterscope.app.contents import Contents
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.workspaces.screen import WorkspaceScreen

__all__ = ["WORKSPACES", "WorkspaceKind"]


@dataclass(frozen=True)
class WorkspaceKind:
    """One workspace before it is made.

    Attributes
    ----------
    kind, title : str
        The kind of annotation, and the word on the tab.
    place : str
        Module and class, "package.module:Class".
    item : str
        What one of its items is called.
    fuse : str
        What Fuse does there.
    belongs, first_step : str
        What belongs here, in a few words and in a sentence, for a study that holds none of it.
    """

    kind: str
    title: str
    place: str
    item: str
    fuse: str
    belongs: str
    first_step: str

    def load(self) -> Callable[[Document, Jobs, QWidget], WorkspaceScreen]:
        """Import the workspace's class, and with it what it draws with."""
        module, name = self.place.split(":")
        found: Callable[[Document, Jobs, QWidget], WorkspaceScreen]
        found = getattr(importlib.import_module(module), name)
        return found

    def make(self, document: Document, jobs: Jobs, parent: QWidget) -> WorkspaceScreen:
        """Make the workspace."""
        return self.load()(document, jobs, parent)

    def holds(self, contents: Contents) -> bool:
        """Tell whether a study has something for this workspace."""
        return bool(contents.of(self.kind))


WORKSPACES = {
    workspace.kind: workspace
    for workspace in (
        WorkspaceKind(
            "clicks",
            "Clicks",
            "raterscope.app.workspaces.clicks:ClicksWorkspace",
            "Image",
            "Join the annotators' clicks into detections (F5)",
            "No clicks in this study yet",
            "Drop images and a table of clicks here: annotator, image, x, y.",
        ),
        WorkspaceKind(
            "masks",
            "Masks",
            "raterscope.app.workspaces.masks:MasksWorkspace",
            "Case",
            "Join the raters' masks into a consensus (F5)",
            "No masks in this study yet",
            "Drop a CT or MR volume and its raters' masks here: DICOM, NIfTI, NRRD, contours.",
        ),
        WorkspaceKind(
            "labels",
            "Labels",
            "raterscope.app.workspaces.labels:LabelsWorkspace",
            "Question",
            "Join the annotators' labels into an answer (F5)",
            "No labels in this study yet",
            "Drop a table of labels here: annotator, task, label; known truths and pictures beside it.",
        ),
        WorkspaceKind(
            "pairs",
            "Pairs",
            "raterscope.app.workspaces.pairs:PairsWorkspace",
            "Question",
            "Find annotators who prefer a side, and rank the items without their bias (F5)",
            "No pairs in this study yet",
            "Drop a table of comparisons here: annotator, left, right, choice; pictures of items beside it.",
        ),
    )
}
"""By kind, in the order of the tabs."""
