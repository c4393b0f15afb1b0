"""The guide: its pages, and which of them tells of what has the keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path

from PySide6.QtWidgets import QTabWidget, QWidget

from raterscope import resources
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.resources.bibliography import bibliography, cite, cited_keys, references_text
from raterscope.widgets.guide_view import GuidePage

__all__ = ["REFERENCES", "TOPICS", "mark_topics", "pages", "topic_of"]

PROPERTY = "helpTopic"
FIRST, REFERENCES = "window/start", "window/references"

CHAPTERS = {
    "window": "The window",
    **{kind: one.title for kind, one in WORKSPACES.items()},
    "papers": "The papers",
}
"""Titles of the chapters by their folders, in the order of the contents."""

_SUBJECTS = {**{kind: one.title for kind, one in WORKSPACES.items()}, "program": "The program"}
"""Headings of the list of references, by the first keyword of a reference."""

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
        "agreeing.matrix": "clicks/agreement",
        "counts": "clicks/counts",
        "curves": "clicks/course",
        "parasitaemia": "clicks/parasitaemia",
        "measure": "clicks/measure",
        "crowd_size": "clicks/crowd_size",
        "objective": "clicks/objective",
        "reliability": "clicks/reliability",
        "ask": "clicks/ask",
        "comparing": "clicks/truth",
        "comparing.plot": "clicks/curves",
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
        "comparing": "masks/methods",
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
        "behind": "labels/behind",
        "matrix": "labels/confusion",
        "drift": "labels/drift",
        "exclusion": "labels/exclusion",
        "task_panel": "labels/task",
        "comparing": "labels/methods",
        "curves": "labels/roc",
        "folds": "labels/folds",
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
        "between": "pairs/comparisons",
        "methods": "pairs/methods",
        "trust": "pairs/trust",
    },
}
"""Of each workspace's widgets, by their names in it, the page that tells of them."""


@cache
def pages() -> dict[str, GuidePage]:
    """Read all pages, by topic, in the order of the contents: a chapter's overview, then the others."""
    folder = Path(resources.__path__[0]) / "guide"
    read = {}
    for chapter, words in CHAPTERS.items():
        files = sorted((folder / chapter).glob("*.md"), key=lambda file: (file.stem != "start", file.stem))
        for file in files:
            text = file.read_text(encoding="utf-8")
            title = text.partition("\n")[0].removeprefix("# ").strip()
            topic = f"{chapter}/{file.stem}"
            read[topic] = GuidePage(topic, words, title, with_references(text))
        if chapter == "window":
            read[REFERENCES] = GuidePage(REFERENCES, words, "References", _all_references())
    return read


def with_references(text: str) -> str:
    """Render the citations of a page, with the works that it cites in full at its end."""
    keys = cited_keys([text])
    return cite(text) + (f"\n\n## References\n\n{_list(keys)}\n" if keys else "")


def _all_references() -> str:
    parts = [
        "# References",
        "What Raterscope builds on. Each page of the guide ends with the works it cites.",
    ]
    every = bibliography()
    for words, title in _SUBJECTS.items():
        keys = [key for key, one in every.items() if one.fields["keywords"].split(", ")[0] == words]
        parts += [f"## {title}", _list(keys)]
    return "\n\n".join(parts) + "\n"


def _list(keys: Sequence[str]) -> str:
    return "\n".join(f"- {line.replace('_', chr(92) + '_')}" for line in references_text(keys))


def mark_topics(workspace: WorkspaceScreen, kind: str) -> None:
    """Write on the widgets of a workspace which page tells of them."""
    for name, topic in TOPICS[kind].items():
        attrgetter(name)(workspace).setProperty(PROPERTY, topic)
    workspace.setProperty(PROPERTY, f"{kind}/start")


def topic_of(widget: QWidget | None) -> str:
    """Tell which page is of a widget: its own, or that of the nearest around it; of tabs, that in sight."""
    while widget is not None:
        topic = widget.property(PROPERTY)
        if not topic and isinstance(widget, QTabWidget):
            topic = _topic_within(widget.currentWidget())
        if topic:
            return str(topic)
        widget = widget.parentWidget()
    return FIRST


def _topic_within(page: QWidget) -> str | None:
    """Give the first topic that is written on a page or on what is on it."""
    written = (one.property(PROPERTY) for one in (page, *page.findChildren(QWidget)))
    return next((str(topic) for topic in written if topic), None)
