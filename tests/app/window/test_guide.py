"""Guide: a page for every widget, an entry for every number."""

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QTableView, QTabWidget, QWidget

from raterscope.app.window.guide import CHAPTERS, TOPICS, GuideView, mark_topics, pages, topic_of
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.clicks.run_comparison import MEASURES as OF_CLICKS
from raterscope.app.workspaces.labels.screen import MEASURES as OF_LABELS
from raterscope.app.workspaces.masks.screen import MAPS
from raterscope.app.workspaces.pairs.screen import MEASURES as OF_PAIRS
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.panels.annotator_card import FACTS
from raterscope.widgets.tables.annotator_table import COLUMNS as OF_ANNOTATORS
from raterscope.widgets.tables.rater_table import HELP as OF_RATERS
from tests.app.driving import idle

WHO = {"annotator", "other annotator", "rater", "other rater", "image", "run", "curve", "method", "iteration"}
"""Columns that say whose a number is."""

PICTURES = re.compile(r"!\[|<\w|https?:")


def _entries(topic):
    return " ".join(re.findall(r"\*\*(.+?)\*\*", pages()[topic].text)).casefold()


def _links(text):
    return re.findall(r"\]\(([^)]+)\)", text)


def test_every_topic_that_a_widget_names_has_a_page_and_every_page_a_way_to_it():
    named = {topic for topics in TOPICS.values() for topic in topics.values()}
    starts = {f"{chapter}/start" for chapter in CHAPTERS}
    linked = {link for page in pages().values() for link in _links(page.text)}
    assert named | starts | linked == set(pages())


def test_pages_hold_words_of_the_programs_own_alone():
    for topic, page in pages().items():
        assert page.title, topic
        assert page.text.startswith(f"# {page.title}\n"), topic
        assert not PICTURES.search(page.text), topic
        assert len(page.text) > 150, topic


@pytest.mark.parametrize("bare_workspace", list(WORKSPACES), indirect=True)
def test_every_part_of_a_workspace_has_a_page_of_its_own(bare_workspace):
    kind, instance = bare_workspace
    mark_topics(instance, kind)
    parts = [
        tabs.widget(index)
        for tabs in instance.findChildren(QTabWidget)
        if topic_of(tabs.parentWidget()) == f"{kind}/start"
        for index in range(tabs.count())
    ]
    for splitter in instance.findChildren(QSplitter):
        parts += [splitter.widget(index) for index in range(splitter.count())]
    without = [
        part
        for part in parts
        if topic_of(part) == f"{kind}/start"
        and not any(topic_of(inner) != f"{kind}/start" for inner in part.findChildren(QWidget))
    ]
    assert without == []


@pytest.mark.parametrize("bare_workspace", list(WORKSPACES), indirect=True)
def test_the_pages_show_of_every_column_of_every_table(bare_workspace):
    kind, instance = bare_workspace
    mark_topics(instance, kind)
    for view in instance.findChildren(QTableView):
        header = view.horizontalHeader()
        if not header.isHidden():
            columns = range(view.model().columnCount())
            heads = [str(view.model().headerData(at, Qt.Orientation.Horizontal)) for at in columns]
            names = [head.rstrip(" ▴▾") for head in heads]
            entries = _entries(topic_of(view))
            assert {name for name in names if name.casefold() not in entries} <= WHO


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("clicks/annotators", OF_ANNOTATORS),
        ("clicks/truth", [measure.name for measure in OF_CLICKS]),
        ("masks/raters", list(OF_RATERS)),
        ("masks/maps", list(MAPS.values())),
        ("masks/methods", ["Dice", "HD95", "surface", "volume", "p"]),
        ("labels/methods", [measure.name for measure in OF_LABELS]),
        ("labels/wall", ["accuracy", "votes", "difference from the crowd", "change over time", "community"]),
        ("pairs/methods", [measure.name for measure in OF_PAIRS]),
        ("pairs/bias", list(FACTS.values())),
    ],
)
def test_every_measure_has_an_entry(topic, names):
    missing = {name for name in names if name.casefold() not in _entries(topic)}
    assert missing <= WHO | {"no map"}


def test_every_number_of_the_plots_of_clicks_has_an_entry(fused, qtbot):
    mark_topics(fused.workspace, "clicks")
    missing = {}
    for tabs in fused.workspace.findChildren(QTabWidget):
        for index in range(tabs.count()):
            tabs.setCurrentIndex(index)
            idle(fused, qtbot)
            for menu in tabs.findChildren(FigureMenu):
                if menu._place.isVisible() and menu.csv is not None:
                    topic, columns = topic_of(menu._place), menu._figure.table().columns
                    missing[topic] = {
                        column for column in columns if column.casefold() not in _entries(topic)
                    } - WHO
    assert {"clicks/objective", "clicks/reliability", "clicks/counts"} <= set(missing)
    assert {topic: names for topic, names in missing.items() if names} == {}


@pytest.fixture
def guide(qtbot):
    view = GuideView(pages())
    qtbot.addWidget(view)
    with qtbot.waitActive(view):
        view.show()
        view.activateWindow()
    return view


def test_every_page_opens_and_is_shown(guide):
    for topic, page in pages().items():
        guide.open_page(topic)
        assert guide.topic == topic
        assert guide.page.toPlainText().startswith(page.title)


def test_a_word_narrows_the_contents_and_is_marked_on_the_page(guide, qtbot):
    qtbot.keyClicks(guide.line, "knockoff")
    assert "pairs/draws" in guide.shown()
    assert not [topic for topic in guide.shown() if topic.startswith("masks")]
    assert all("knockoff" in pages()[topic].text.casefold() for topic in guide.shown())
    assert guide.page.extraSelections()
    guide.line.clear()
    assert len(guide.shown()) == len(pages())
    qtbot.keyClicks(guide.line, "xyzzy")
    assert guide.shown() == ()
    guide.open_page("clicks/queue")
    assert guide.topic == "clicks/queue"


TYPED = {
    "excel": "window/formats", "column names": "window/formats", "qupath": "window/formats",
    "zooniverse": "window/formats", "export csv": "window/formats", "python": "window/command_line",
    "import": "window/import", "backup": "window/study_file", "missing images": "window/study_file",
    "font size": "window/start", "pacs": "window/pacs", "undo": "window/history",
    "second reader": "window/history", "interobserver": "window/variability",
    "sample size": "window/variability", "icc": "window/variability",
    "acceptance sampling": "window/variability", "malaria": "clicks/parasitaemia",
    "parasitemia": "clicks/parasitaemia", "white blood cells": "clicks/parasitaemia",
    "scale bar": "clicks/image", "z-stack": "clicks/image", "blurred": "clicks/quality",
    "patients": "clicks/groups", "bounding box": "clicks/grid",
    "how many annotators": "clicks/crowd_size", "anonymize": "masks/export", "dicom seg": "masks/export",
    "hounsfield": "masks/views", "mip": "masks/views", "registration": "masks/second_series",
    "brush": "masks/region", "staple": "masks/methods", "confusion matrix": "labels/confusion",
    "spammer": "labels/wall", "bad annotators": "annotators/start", "drift": "labels/drift",
    "cheating": "labels/communities", "active learning": "labels/ask",
    "cross-validation": "labels/folds", "how many votes": "labels/cost",
    "false discovery rate": "pairs/draws", "position bias": "pairs/start", "llm judge": "pairs/start",
}  # fmt: skip
"""Words that users type, with the page about them."""


def test_words_that_users_type_open_the_page_about_them():
    def first(found):
        return min(pages(), key=lambda each: pages()[each].search.rank(found) or (9,))

    assert {words: first(words.split()) for words in TYPED} == TYPED


def test_a_link_leads_to_another_page_and_nowhere_else(guide):
    guide.open_page("window/start")
    guide.page.anchorClicked.emit("window/jobs")
    assert guide.topic == "window/jobs"
    guide.page.anchorClicked.emit("https://example.org/")
    assert guide.topic == "window/jobs"


def test_words_between_angles_are_no_markup(guide):
    guide.page.show_text("# Title\n\n<b>bold</b> <img src='file:///etc/passwd'>\n\n![x](file:///etc/passwd)")
    assert "<b>bold</b>" in guide.page.toPlainText()
