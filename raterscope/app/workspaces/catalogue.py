"""Catalogue of workspaces, one per kind and one for the annotators; each is imported when first opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.nouns import NOUNS
from raterscope.app.workspaces.layout import WorkspaceLayout

if TYPE_CHECKING:
    from raterscope.app.contents import Contents


_SHARED_MODULES = (
    "raterscope.widgets.panels.activity_panels",
    "raterscope.widgets.panels.evaluation_panels",
    "raterscope.widgets.panels.queue_panel",
    "raterscope.widgets.dialogs.review_dialogs",
    "raterscope.widgets.canvas.image_painting",
    "raterscope.app.workspaces.runs",
    "raterscope.app.workspaces.screen",
)
"""Modules of all workspaces that take long to import, in the order of their dependencies."""

_SHARED_LIBRARIES = (
    "raterscope.algorithms.clicks.crowd_size",
    "raterscope.algorithms.labels.roc_curves",
    "raterscope.app.annotators.acceptance",
    "raterscope.app.formats.pyramids",
    "raterscope.figures.courses",
)
"""Modules without Qt that several workspaces need."""


@dataclass(frozen=True)
class WorkspaceKind:
    """A workspace that may not have been created yet."""

    kind: str  # the kind of annotation, or "annotators"
    load: Callable[[], Callable[[Document, Jobs, QWidget], WorkspaceLayout]]  # imports the workspace's class
    fuse: str  # effect of Fuse, for its tooltip
    # belongs, first_step: title and sentence of its empty page, for a study without such annotations
    belongs: str
    first_step: str
    # returns whether a study has contents for the workspace; by default, items of the kind
    present: Callable[[Contents], bool] | None = None
    # modules without Qt that the workspace needs besides the functions of its kind
    libraries: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Title of the tab."""
        return KINDS[self.kind].title if self.kind in KINDS else self.kind.title()

    @property
    def item(self) -> str:
        """Name of one of its items."""
        return NOUNS[self.kind].item.capitalize() if self.kind in NOUNS else "Annotator"

    def load_libraries(self) -> None:
        """Import the modules without Qt that the workspace needs; in any thread."""
        for module in (*_SHARED_LIBRARIES, *self.libraries):
            import_module(module)
        if self.kind in KINDS:
            kind = KINDS[self.kind]
            for load in (kind.load_functions, kind.load_annotators):
                if load is not None:
                    load()

    def load_in_steps(self) -> Iterator[None]:
        """Import the workspace's modules, a few in each step; only in the GUI thread.

        They define subclasses of Qt classes. On Python 3.11 PySide keeps all such classes in one table, which
        Qt reads without Python's lock: a class defined by another thread meanwhile can crash the program.
        """
        for module in (*_SHARED_MODULES, f"{__package__}.{self.kind}.view"):
            import_module(module)
            yield
        self.load()
        yield

    def begin(
        self, document: Document, jobs: Jobs, parent: QWidget
    ) -> tuple[WorkspaceLayout, Iterator[None]]:
        """Create the workspace, and return the steps that make its parts."""
        workspace = self.load()(document, jobs, parent)
        return workspace, workspace.build()

    def make(self, document: Document, jobs: Jobs, parent: QWidget) -> WorkspaceLayout:
        """Create the workspace with all its parts."""
        workspace, steps = self.begin(document, jobs, parent)
        for _ in steps:
            pass
        return workspace

    def holds(self, contents: Contents) -> bool:
        """Return whether a study has items for this workspace."""
        return bool(contents.of(self.kind)) if self.present is None else self.present(contents)


def _clicks() -> type[WorkspaceLayout]:
    from raterscope.app.workspaces.clicks.workspace import ClicksWorkspace

    return ClicksWorkspace


def _masks() -> type[WorkspaceLayout]:
    from raterscope.app.workspaces.masks.workspace import MasksWorkspace

    return MasksWorkspace


def _labels() -> type[WorkspaceLayout]:
    from raterscope.app.workspaces.labels.workspace import LabelsWorkspace

    return LabelsWorkspace


def _pairs() -> type[WorkspaceLayout]:
    from raterscope.app.workspaces.pairs.workspace import PairsWorkspace

    return PairsWorkspace


def _annotators() -> type[WorkspaceLayout]:
    from raterscope.app.workspaces.annotators.workspace import AnnotatorsWorkspace

    return AnnotatorsWorkspace


WORKSPACES = {
    workspace.kind: workspace
    for workspace in (
        WorkspaceKind(
            "clicks",
            _clicks,
            "Join the annotators' clicks into detections (F5)",
            "No clicks in this study yet",
            "Drop images and a table of clicks here: annotator, image, x, y.",
            libraries=("raterscope.app.kinds.clicks.live_source",),
        ),
        WorkspaceKind(
            "masks",
            _masks,
            "Join the raters' masks into a consensus (F5)",
            "No masks in this study yet",
            "Drop a CT or MR volume and its raters' masks here: DICOM, NIfTI, NRRD, contours.",
            libraries=("raterscope.algorithms.masks.surface", "raterscope.app.kinds.masks.run_comparison"),
        ),
        WorkspaceKind(
            "labels",
            _labels,
            "Join the annotators' labels into an answer (F5)",
            "No labels in this study yet",
            "Drop a table of labels here: annotator, task, label; known truths and pictures beside it.",
            libraries=("raterscope.app.formats.sounds", "scipy.sparse"),
        ),
        WorkspaceKind(
            "pairs",
            _pairs,
            "Find annotators who prefer a side, and rank the items without their bias (F5)",
            "No pairs in this study yet",
            "Drop a table of comparisons here: annotator, left, right, choice; pictures of items beside it.",
        ),
        WorkspaceKind(
            "annotators",
            _annotators,
            "",
            "No annotators in this study yet",
            "Import what annotators marked: clicks, masks, labels or pairs. All are then listed here.",
            present=lambda contents: bool(contents.annotators),
        ),
    )
}
"""Workspaces by kind, in the order of the tabs; the annotators of all kinds come last."""
