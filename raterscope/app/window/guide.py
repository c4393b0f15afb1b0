"""Guide: its pages, and the page of each widget."""

from __future__ import annotations

from functools import cache
from operator import attrgetter

from PySide6.QtWidgets import QTabWidget, QWidget

from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.resources.bibliography import linked_by_topic, page_text, page_title, topics
from raterscope.widgets.guide_view import GuidePage

PROPERTY = "helpTopic"
FIRST = "window/start"

CHAPTERS = {
    "window": "The window",
    **{kind: workspace.title for kind, workspace in WORKSPACES.items()},
    "papers": "The papers",
}
"""Titles of the chapters by their folders, in the order of the contents."""

EVERYWHERE = {
    "history": "window/history",
    "job_list": "window/jobs",
    "changes_panel": "window/changes",
    "fuse_panel": "window/fuse",
}

TOPICS: dict[str, dict[str, str]] = {
    "clicks": {
        **EVERYWHERE,
        "queue": "clicks/queue",
        "canvas": "clicks/image",
        "grid": "clicks/grid",
        "evidence": "clicks/evidence",
        "stream": "clicks/stream",
        "table": "clicks/annotators",
        "agreement.matrix": "clicks/agreement",
        "counts": "clicks/counts",
        "curves": "clicks/course",
        "parasitaemia": "clicks/parasitaemia",
        "measure": "clicks/measure",
        "crowd_size": "clicks/crowd_size",
        "objective": "clicks/objective",
        "reliability": "clicks/reliability",
        "ask": "clicks/ask",
        "run_comparison": "clicks/truth",
        "run_comparison.plot": "clicks/curves",
        "trust": "clicks/calibration",
    },
    "masks": {
        **EVERYWHERE,
        "queue": "masks/queue",
        "maps": "masks/maps",
        "volume": "masks/views",
        "table": "masks/raters",
        "region_panel": "masks/region",
        "matrix": "masks/agreement",
        "local_weight": "masks/weight",
        "model_table": "masks/model",
        "tree": "masks/tree",
        "tree_panel": "masks/tree",
        "alternatives": "masks/alternatives",
        "run_comparison": "masks/methods",
        "methods": "masks/compare",
        "trust": "masks/trust",
        "bound": "masks/bound",
    },
    "labels": {
        **EVERYWHERE,
        "queue": "labels/queue",
        "question": "labels/question",
        "describe": "labels/question",
        "wall": "labels/wall",
        "cards": "labels/communities",
        "similarity": "labels/similarity",
        "participation": "labels/participation",
        "flow": "labels/flow",
        "triangles": "labels/triangles",
        "cell_tasks": "labels/cell_tasks",
        "matrix": "labels/confusion",
        "drift": "labels/drift",
        "exclusion": "labels/exclusion",
        "task_panel": "labels/task",
        "method_table": "labels/methods",
        "curves": "labels/roc",
        "folds": "labels/folds",
        "cost": "labels/cost",
        "trust": "labels/calibration",
        "ask": "labels/ask",
        "decisions": "labels/rates",
        "progress": "labels/progress",
    },
    "pairs": {
        **EVERYWHERE,
        "queue": "pairs/queue",
        "path": "pairs/path",
        "sides": "pairs/sides",
        "bars": "pairs/draws",
        "evidence": "pairs/bias",
        "ranking": "pairs/ranking",
        "ranking_table": "pairs/ranking",
        "content": "pairs/comparisons",
        "comparisons": "pairs/comparisons",
        "methods": "pairs/methods",
        "trust": "pairs/trust",
    },
    "annotators": {
        "history": "window/history",
        "job_list": "window/jobs",
        "queue": "annotators/queue",
        "table": "annotators/table",
        "card": "annotators/card",
        "course": "annotators/card",
    },
}
"""Guide pages of each workspace's widgets, by the names of the widgets."""


@cache
def pages() -> dict[str, GuidePage]:
    """Read all pages, by topic, in the order of the contents: a chapter's overview, then the others."""
    read = {}
    for topic in topics():
        text = linked_by_topic(topic, page_text(topic))
        chapter = CHAPTERS[topic.partition("/")[0]]
        read[topic] = GuidePage(topic, chapter, page_title(text), text)
    return read


def mark_topics(workspace: WorkspaceLayout, kind: str) -> None:
    """Store on the widgets of a workspace which page describes them."""
    for name, topic in TOPICS[kind].items():
        attrgetter(name)(workspace).setProperty(PROPERTY, topic)
    workspace.setProperty(PROPERTY, f"{kind}/start")


def topic_of(widget: QWidget | None) -> str:
    """Return the page of a widget or of its nearest parent that has one; for tabs, of the visible tab."""
    while widget is not None:
        topic = widget.property(PROPERTY)
        if not topic and isinstance(widget, QTabWidget):
            topic = _topic_within(widget.currentWidget())
        if topic:
            return str(topic)
        widget = widget.parentWidget()
    return FIRST


def _topic_within(page: QWidget) -> str | None:
    """Return the first topic stored on a widget or its children."""
    topics = (widget.property(PROPERTY) for widget in (page, *page.findChildren(QWidget)))
    return next((str(topic) for topic in topics if topic), None)
