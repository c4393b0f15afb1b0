"""Guide: its pages, the page of each widget, and the viewer with contents and search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QTextBlockFormat, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QLineEdit,
    QSplitter,
    QTabWidget,
    QTextBrowser,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.resources.bibliography import REFERENCES, linked_by_topic, page_text, page_title, topics
from raterscope.widgets import theme
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.names import SearchPage, SearchText
from raterscope.widgets.parts import plain_label

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

TOPIC = Qt.ItemDataRole.UserRole
SIZE = QSize(860, 640)
SMALLEST = QSize(560, 320)
CONTENTS_WIDTH = 240
MARGIN, INDENT = 24.0, 20.0
LINE_HEIGHT, SMALL_GAP, LARGE_GAP = 125.0, 5.0, 14.0
FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


@cache
def pages() -> dict[str, GuidePage]:
    """Read all pages, by topic, in the order of the contents; the overview of a chapter comes first."""
    read = {}
    for topic in topics():
        text = linked_by_topic(topic, page_text(topic))
        folder = topic.partition("/")[0]
        search = SearchPage(text, is_secondary=folder == "papers" or topic == REFERENCES)
        read[topic] = GuidePage(topic, CHAPTERS[folder], page_title(text), text, search)
    return read


def mark_topics(workspace: WorkspaceLayout, kind: str) -> None:
    """Store on each widget of a workspace the page that describes it."""
    for name, topic in TOPICS[kind].items():
        attrgetter(name)(workspace).setProperty(PROPERTY, topic)
    workspace.setProperty(PROPERTY, f"{kind}/start")


def topic_of(widget: QWidget | None) -> str:
    """Return the page of a widget or of its nearest parent with a page; for tabs, that of the visible tab."""
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


@dataclass(frozen=True, slots=True)
class GuidePage:
    """One page of the guide."""

    topic: str  # identifier, also in links: "clicks/evidence"
    chapter: str
    title: str
    text: str  # markdown, including the title
    search: SearchPage


class GuideView(QWidget):
    """Guide by chapters, with a search that narrows the contents.

    Only the guide's own pages are shown: no pictures, scripts or external links.

    `pages`: pages by topic, in the order of the contents.
    """

    turned = Signal(str)  # topic of the current page

    def __init__(self, pages: Mapping[str, GuidePage], parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle("The guide")
        self.setMinimumSize(SMALLEST)
        self.resize(SIZE)
        self._pages = dict(pages)
        self.line = QLineEdit(placeholderText="Search the guide")
        self.line.setAccessibleName("Search the guide")
        self.line.setClearButtonEnabled(True)
        self.contents = QTreeWidget()
        self.contents.setAccessibleName("Contents of the guide")
        self.contents.setHeaderHidden(True)
        self.contents.setIndentation(12)
        self._nothing = plain_label("No matches", "second")
        self.page = _Page()
        self._items: dict[str, QTreeWidgetItem] = {}
        self._chapters: dict[str, QTreeWidgetItem] = {}
        self._fill()
        left = QWidget()
        column = vertical(
            self.line, self._nothing, self.contents, inside=left, margins=(12, 12, 8, 8), spacing=None
        )
        column.setStretch(2, 1)
        self._nothing.hide()
        parts = QSplitter(handleWidth=1, childrenCollapsible=False)
        parts.addWidget(left)
        parts.addWidget(self.page)
        parts.setSizes([CONTENTS_WIDTH, SIZE.width() - CONTENTS_WIDTH])
        parts.setStretchFactor(1, 1)
        horizontal(parts, inside=self)
        self.line.textChanged.connect(self._find)
        self.line.returnPressed.connect(self.contents.setFocus)
        self.contents.currentItemChanged.connect(self._on_current)
        self.page.anchorClicked.connect(self._on_link)
        theme.notifier().changed.connect(self._on_theme)
        for keys, slot in (("Esc", self.close), ("Ctrl+F", partial(self.line.setFocus))):
            QShortcut(QKeySequence(keys), self).activated.connect(slot)

    @property
    def topic(self) -> str:
        """Topic of the current page; empty without one."""
        item = self.contents.currentItem()
        return "" if item is None else str(item.data(0, TOPIC) or "")

    def open_page(self, topic: str) -> None:
        """Show a page.

        Raises `KeyError` if there is no such page.
        """
        item = self._items[topic]
        if item.isHidden():
            self.line.clear()
        self.contents.setCurrentItem(item)
        self.contents.scrollToItem(item)

    def shown(self) -> tuple[str, ...]:
        """Topics currently listed in the contents."""
        return tuple(topic for topic, item in self._items.items() if not item.isHidden())

    def _fill(self) -> None:
        chapters = self._chapters
        for topic, page in self._pages.items():
            if page.chapter not in chapters:
                chapter = QTreeWidgetItem(self.contents, [page.chapter])
                chapter.setFlags(Qt.ItemFlag.ItemIsEnabled)
                chapters[page.chapter] = chapter
            item = QTreeWidgetItem(chapters[page.chapter], [page.title])
            item.setData(0, TOPIC, topic)
            self._items[topic] = item
        self.contents.expandAll()

    def _find(self, text: str) -> None:
        words = SearchText(text).words
        ranks = {topic: self._pages[topic].search.rank(words) for topic in self._items}
        for topic, item in self._items.items():
            item.setHidden(ranks[topic] is None)
        for chapter in self._chapters.values():
            below = (chapter.child(row).isHidden() for row in range(chapter.childCount()))
            chapter.setHidden(all(below))
        topics = self.shown()
        self._nothing.setVisible(not topics)
        if words and topics:
            self.open_page(min(topics, key=lambda topic: ranks[topic] or ()))
        self.page.mark(words)

    def _on_current(self, item: QTreeWidgetItem | None) -> None:
        topic = "" if item is None else item.data(0, TOPIC)
        if topic:
            self.page.show_text(self._pages[topic].text)
            self.page.mark(SearchText(self.line.text()).words)
            self.turned.emit(topic)

    def _on_link(self, link: QUrl) -> None:
        if link.toString() in self._items:
            self.open_page(link.toString())

    def _on_theme(self) -> None:
        if self.topic:
            self.page.show_text(self._pages[self.topic].text)


class _Page(QTextBrowser):
    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Page of the guide")
        self.setOpenLinks(False)
        self.setStyleSheet("border: none; border-radius: 0;")

    def loadResource(self, _kind: int, _name: QUrl | str) -> object:
        """Load nothing: pages have no resources."""
        return None

    def show_text(self, text: str) -> None:
        document = self.document()
        document.setMarkdown(text, FEATURES)
        document.setDocumentMargin(MARGIN)
        document.setIndentWidth(INDENT)
        block = document.begin()
        while block.isValid():
            form, cursor = block.blockFormat(), QTextCursor(block)
            form.setLineHeight(LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
            form.setTopMargin(LARGE_GAP if form.headingLevel() else SMALL_GAP)
            form.setBottomMargin(SMALL_GAP)
            cursor.setBlockFormat(form)
            block = block.next()
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def mark(self, words: tuple[str, ...]) -> None:
        """Highlight the search words and scroll to the first one."""
        palette = theme.current()
        marks: list[QTextBrowser.ExtraSelection] = []
        for word in words:
            cursor = self.document().find(word)
            while not cursor.isNull():
                mark = QTextBrowser.ExtraSelection()
                mark.cursor = cursor
                mark.format.setBackground(theme.colour(palette.accent, 70))
                marks.append(mark)
                cursor = self.document().find(word, cursor)
        self.setExtraSelections(marks)
