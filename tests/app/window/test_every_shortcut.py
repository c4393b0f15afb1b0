"""Each key of the sheet of keyboard shortcuts does what the sheet says; none is missing there."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QShortcut, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QWidget

from raterscope.app.window.command_palette import CommandPalette, shortcut_groups
from raterscope.app.window.guide import GuideView
from raterscope.app.window.preferences import change_text_size
from raterscope.app.workspaces.labels.workspace import SoundPlayer
from raterscope.widgets import theme
from raterscope.widgets.figures.chart_figure import ChartFigure
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.panels.class_bars import ClassBars
from raterscope.widgets.volume.scene import Stroke
from raterscope.widgets.volume.volume_controls import DisputeStrip
from tests.app.driving import LONG, idle, open_study
from tests.app.window.everything import NAMES
from tests.app.window.test_media import Device

LEFT = Qt.MouseButton.LeftButton
CHANGED = object()
"""In place of a value: each press changes the value."""


@dataclass(frozen=True)
class Effect:
    """How the effect of a key is read."""

    read: Callable[["Hands"], object]
    then: object = CHANGED
    ready: Callable[["Hands"], object] | None = None  # before each press
    on: Callable[["Hands"], QWidget] | None = (
        None  # widget with the focus; by default the middle of the screen
    )
    do: Callable[["Hands"], object] | None = None  # in place of a key
    keys: str = ""  # in place of what the sheet writes, such as "Arrows"


class Hands:
    """What an expert does in the window."""

    def __init__(self, window, qtbot, kind):
        self.window, self.qtbot = window, qtbot
        self.kind, self.asked, self.menu = kind, "", False
        self.runs = 0
        self.panel_of = {}

    @property
    def screen(self):
        return self.window.workspace

    @property
    def contents(self):
        return self.window.document.contents

    @property
    def verb(self):
        return self.contents.decisions[-1].verb if self.contents.decisions else ""

    @property
    def dialogs(self):
        return [type(each).__name__ for each in QApplication.topLevelWidgets() if _is_open(each)]

    def idle(self):
        idle(self.window, self.qtbot)

    @property
    def plane(self):
        return self.screen.planes._chosen[self.screen.current_item()]

    def newer_run(self):
        if self.runs:  # F5 was pressed
            self.qtbot.waitUntil(lambda: len(self.contents.runs) > self.runs, timeout=20_000)
        self.runs = len(self.contents.runs)
        return self.runs

    def check(self, effect, key):
        """Press a key, and compare its effect with what it was before, or shall be."""
        self.window.activateWindow()
        self.qtbot.waitUntil(self.window.isActiveWindow)
        self.asked, self.menu = "", False
        on = (effect.on or middle)(self)
        on.setFocus()
        if effect.ready is not None:
            effect.ready(self)
            self.idle()
            on.setFocus()
        before = effect.read(self)
        QTimer.singleShot(0, self._close_menu)
        if effect.do is None:
            self.press(key)
        else:
            effect.do(self)
        after = effect.read(self)
        if effect.do is None and self.window.isVisible():
            self.release(key)
        if effect.then is CHANGED:
            assert after != before, f"still {before!r}"
        else:
            assert after == effect.then, f"{after!r} instead of {effect.then!r}; {self.window.status.message}"

    def _close_menu(self):
        menu = QApplication.activePopupWidget()
        if menu is not None:
            self.menu = True
            menu.close()

    def press(self, keys, on=None):
        if on is not None:
            self.window.activateWindow()
            self.qtbot.waitUntil(self.window.isActiveWindow)
            on.setFocus()
            assert on.hasFocus() or on.focusProxy() is not None, f"{on} does not take the focus"
        combined = QKeySequence(keys)[0]
        QTest.keyPress(QApplication.focusWidget(), combined.key(), combined.keyboardModifiers())
        self.idle()

    def release(self, keys):
        combined = QKeySequence(keys)[0]
        QTest.keyRelease(QApplication.focusWidget(), combined.key(), combined.keyboardModifiers())

    def show(self, panel):
        dict(self.screen.panels())[panel]()
        self.idle()

    def undo_all(self):
        while self.contents.review.undoable is not None:
            self.window.document.undo()
            self.idle()

    def put_back(self):
        """Close dialogs, modes and panels, undo decisions, and show the first item."""
        for each in QApplication.topLevelWidgets():
            if _is_open(each):
                each.close()
        for palette in self.window.findChildren(CommandPalette):
            palette.leave()
        if theme.text_size() != 1:
            change_text_size(0)
        if self.contents is None or self.screen is None:
            return
        if self.window._kind != self.kind:
            self.window.show_workspace(self.kind)
        self.undo_all()
        if self.screen.blind_mode is not None and self.screen.blind_mode.on:
            self.screen.core.toggle_blind()
        for splitter in self.screen._sides:
            self.screen.unfold(splitter)
        while self.screen._enlarged is not None:
            self.screen.enlarge()
        if self.kind != "annotators" and item(self) != 0:
            go_to(self)
        if self.kind == "clicks":
            self.screen.queue.order.setCurrentIndex(0)
            self.screen.show_grid(False)
            self.screen.streaming.leave_replay()
        for _ in range(3):
            if self.screen.has_to_leave:
                self.press("Esc", self.window.focusWidget() or middle(self))


def _is_open(widget):
    return widget.isVisible() and isinstance(widget, (QDialog, GuideView))


# What the effects are read from


def first_disputed(h, at=0):
    disputed = [i for i, spot in enumerate(h.screen.reviewing.spots) if spot.state == "disputed"]
    h.screen.reviewing.select(disputed[at])


def disputed_spot(h):
    """Number of the disputed spot of the image on screen, or None."""
    disputed = [spot.number for spot in h.screen.reviewing.spots if spot.state == "disputed"]
    spot = h.screen.reviewing.spot
    return disputed.index(spot.number) if spot is not None and spot.number in disputed else None


def decided_class(h):
    decision = h.contents.decisions[-1] if h.contents.decisions else None
    return (decision.verb, getattr(decision.subject, "label", "")) if decision else None


def region(h, at=0):
    h.screen.reviewing.select(at)


def task(h, at=0):
    h.screen.tasks.select(at)


def annotator(h, at=0):
    h.screen.choose_annotator(h.screen.annotators_on_screen()[at])


def middle(h):
    return MIDDLE[h.kind](h)


def item(h):
    items = [entry.id for entry in h.contents.of(h.kind)]
    return items.index(h.screen.current_item())


def go_to(h, at=0):
    h.screen.go_to(h.contents.of(h.kind)[at].id)
    h.idle()


def folded(h, name):
    splitter = getattr(h.screen, name)
    return splitter.sizes()[h.screen._sides[splitter][0]] == 0


def focus_region(h):
    return h.screen.region_of(h.window.focusWidget())


def clipboard(h):
    size = QGuiApplication.clipboard().image().width()
    QGuiApplication.clipboard().clear()
    return size > 0


def with_bookmark(h):
    go_to(h, 1)
    h.screen.comments.toggle_bookmark()
    h.idle()
    go_to(h, 0)


def with_fuse_panel(h):
    if not h.screen.fuse_panel.isVisible():
        h.screen.toggle_fuse_panel()


def a_decision(h):
    """Decide something, as if by hand."""
    if h.kind == "annotators":
        joined(h)
    else:
        with_bookmark(h)
    assert h.verb in ("bookmark", "join")


def two(h):
    """Select annotators without masks, which may be joined."""
    h.screen.table.select(NAMES[-2:])


def joined(h):
    two(h)
    h.screen.decisions.join()
    h.idle()


def undone(h):
    a_decision(h)
    h.window.document.undo()
    h.idle()


def fused_anew(h):
    runs = len(h.contents.runs)
    h.qtbot.waitUntil(lambda: len(h.contents.runs) > h.runs, timeout=LONG)
    h.idle()
    return runs


def visible(h, kind, panel=""):
    """The first visible widget of a class, in a panel that is brought to the front."""
    if panel:
        h.show(panel)
    return next(each for each in h.screen.findChildren(kind) if each.isVisible())


MIDDLE = {
    "clicks": lambda h: h.screen.canvas,
    "masks": lambda h: h.screen.volume.view("axial"),
    "labels": lambda h: h.screen.queue.view,
    "pairs": lambda h: h.screen.queue.view,
    "annotators": lambda h: h.screen.table.view,
    "": lambda h: h.window,
}


def shared(noun):
    """Effects of the keys that all workspaces with results have."""
    return {
        ("Review", "Comment on the selection"): Effect(lambda h: h.screen.comments.field.hasFocus(), True),
        ("Review", "Bookmark the selection, or remove the bookmark"): Effect(lambda h: h.verb, "bookmark"),
        ("Review", "Next bookmark"): Effect(item, 1, with_bookmark),
        ("Review", "Previous bookmark"): Effect(item, 1, with_bookmark),
        ("Review", f"Next {noun}"): Effect(item, 1, go_to),
        ("Review", f"Previous {noun}"): Effect(item, 0, lambda h: go_to(h, 1)),
        ("Review", "Start an acceptance plan…"): Effect(lambda h: h.dialogs, ["AcceptanceDialog"]),
        ("Review", "Next change of the last fusion"): Effect(
            lambda h: h.window.status.message[:9], "Change 1 "
        ),
        ("Review", "Previous change of the last fusion"): Effect(
            lambda h: h.window.status.message[:7], "Change "
        ),
        ("Review", "Show the previous run, or the latest again"): Effect(lambda h: h.screen.run_on_screen.id),
        ("Review", "Fuse again"): Effect(lambda h: h.newer_run()),
    }


LAYOUT = {
    ("Review", "Next region of the window"): Effect(focus_region),
    ("Review", "Previous region of the window"): Effect(focus_region),
    ("Review", "Fold or show the queue"): Effect(lambda h: folded(h, "whole")),
    ("Review", "Fold or show the evidence"): Effect(lambda h: folded(h, "upper")),
    ("Review", "Fold or show the panels below"): Effect(lambda h: folded(h, "middle")),
    ("Review", "Enlarge the panel, or show all again"): Effect(lambda h: h.screen._enlarged is None),
    ("Review", "Next part of the region"): Effect(lambda h: h.window.focusWidget()),
    ("Review", "Previous part of the region"): Effect(lambda h: h.window.focusWidget()),
}
WINDOW = {
    ("Study", "New study…"): Effect(lambda h: h.asked, "New study"),
    ("Study", "Open study…"): Effect(lambda h: h.asked, "Open a study"),
    ("Study", "Import files…"): Effect(lambda h: h.asked, "Import"),
    ("Study", "Import folder or DICOM…"): Effect(lambda h: h.asked, "Import a folder"),
    ("Study", "Close study"): Effect(lambda h: h.contents, None),
    ("Study", "Settings…"): Effect(lambda h: h.dialogs, ["SettingsDialog"]),
    ("Study", "Quit"): Effect(lambda h: h.window.isVisible(), False),
    ("Study", "Undo"): Effect(lambda h: h.contents.review.undoable, None, a_decision),
    ("Study", "Redo"): Effect(lambda h: h.contents.review.undoable is None, False, undone),
    **{
        ("View", title): Effect(lambda h: h.window._kind, kind)
        for kind, title in {
            "clicks": "Clicks",
            "masks": "Masks",
            "labels": "Labels",
            "pairs": "Pairs",
            "annotators": "Annotators",
        }.items()
    },
    ("View", "Copy as image"): Effect(clipboard, True, clipboard),
    ("View", "Full screen"): Effect(lambda h: h.window.isFullScreen()),
    ("Text size", "Larger text"): Effect(lambda h: theme.text_size() > 1, True),
    ("Text size", "Smaller text"): Effect(lambda h: theme.text_size(), 1.0, lambda _: change_text_size(1)),
    ("Text size", "Normal text size"): Effect(
        lambda h: theme.text_size(), 1.0, lambda _: change_text_size(2)
    ),
    ("Help", "Guide to this view"): Effect(lambda h: h.dialogs, ["GuideView"]),
    ("Help", "Keyboard shortcuts"): Effect(lambda h: h.dialogs, ["ShortcutSheet"]),
    ("Help", "Open the menu"): Effect(lambda h: h.menu, True),
    ("Help", "Command palette"): Effect(lambda h: len(h.window.findChildren(CommandPalette)), 1),
}
LAST = ("Close study", "Quit")
"""These end what the others need."""

CLICKS = {
    ("Review", "Next disputed spot"): Effect(disputed_spot, 1, first_disputed),
    ("Review", "Previous disputed spot"): Effect(disputed_spot, 0, lambda h: first_disputed(h, 1)),
    ("Review", "Accept"): Effect(lambda h: h.verb, "accept", first_disputed),
    ("Review", "Reject"): Effect(lambda h: h.verb, "reject", first_disputed),
    ("Review", "Skip"): Effect(lambda h: h.verb, "skip", first_disputed),
    ("Review", "Add a spot"): Effect(lambda h: h.screen.canvas.mode, "add"),
    ("Review", "Move the spot"): Effect(lambda h: h.screen.canvas.mode, "move", first_disputed),
    ("Review", "Review many spots at once"): Effect(lambda h: h.screen.grid_shown),
    ("Review", "Compare with another run, side by side"): Effect(lambda h: h.screen.run_divider.on),
    ("Review", "Compare two channels, side by side"): Effect(lambda h: h.screen.channel_divider.on),
    ("Review", "Set the scale by a line"): Effect(lambda h: h.screen.measurements.drawing.mode, "scale"),
    ("Review", "Measure a length"): Effect(lambda h: h.screen.measurements.drawing.mode, "length"),
    ("Review", "Measure an area"): Effect(lambda h: h.screen.measurements.drawing.mode, "area"),
    ("Review", "Exclude or down-weight the annotator"): Effect(
        lambda h: h.dialogs, ["ExclusionDialog"], annotator
    ),
    ("Review", "Exclude or include the program's scores"): Effect(
        lambda h: list(h.contents.review.excluded), ["program (scores)"]
    ),
    ("Review", "Brightness and contrast"): Effect(lambda h: h.screen.display.is_open),
    ("Review", "Automatic contrast"): Effect(
        lambda h: h.screen.display.panel.rows[0].bar._ends,
        CHANGED,
        lambda h: (
            h.screen.display.toggle(),
            h.idle(),
            h.screen.display.panel.rows[0].low.setValue(900),
            h.idle(),
        ),
    ),
    ("Review", "Next focal plane"): Effect(lambda h: h.plane),
    ("Review", "Previous focal plane"): Effect(lambda h: h.plane, CHANGED, lambda h: h.screen.planes.step(2)),
    ("Review", "Next time"): Effect(lambda h: h.plane),
    ("Review", "Previous time"): Effect(lambda h: h.plane, CHANGED, lambda h: h.screen.planes.step_time(1)),
    ("Review", "Maximum projection of the focal planes"): Effect(lambda h: h.plane),
    ("Review", "Sharpest focal plane"): Effect(lambda h: "is the sharpest" in h.window.status.message, True),
    ("Review", "Sort images by dispute, focus or saturation"): Effect(
        lambda h: h.screen.queue.order.currentText()
    ),
    ("Review", "Flag the image"): Effect(lambda h: h.dialogs, ["ReasonDialog"]),
    ("Review", "Mark or unmark a positive control"): Effect(lambda h: h.verb, "positive"),
    ("Review", "Mark or unmark a negative control"): Effect(lambda h: h.verb, "negative"),
    ("Review", "Rename or merge a class…"): Effect(lambda h: h.dialogs, ["NameDialog"], first_disputed),
    ("Review", "Hide names and votes until you decide"): Effect(lambda h: h.screen.blind_mode.on),
    ("Review", "Leave the mode or the panel"): Effect(
        lambda h: h.screen.canvas.mode, "look", lambda h: h.screen.canvas.set_mode("add")
    ),
    ("Review", "Accept the spot as this class, or show one annotator only"): Effect(
        decided_class, ("accept", "schizont"), first_disputed, keys="2"
    ),
}


def scene(h):
    return h.screen.volume._scene


def painted(h):
    """Paint on two slices, two apart."""
    for at in (2, 4):
        h.screen.volume.painted.emit(Stroke((at, 2, 2), np.ones((1, 4, 4), dtype=np.int8), "axial", at))
        h.idle()


MASKS = {
    ("Review", "Next disputed region"): Effect(lambda h: h.screen.reviewing.region.number, 2, region),
    ("Review", "Previous disputed region"): Effect(
        lambda h: h.screen.reviewing.region.number, 1, lambda h: region(h, 1)
    ),
    ("Review", "Accept the consensus"): Effect(lambda h: h.verb, "accept", region),
    ("Review", "Take a rater's mask"): Effect(lambda h: h.menu, True, region),
    ("Review", "Skip"): Effect(lambda h: h.verb, "skip", region),
    ("Review", "Exclude the rater"): Effect(lambda h: h.dialogs, ["ExclusionDialog"], annotator),
    ("Review", "Brush"): Effect(lambda h: h.screen.volume.tool == "brush"),
    ("Review", "Eraser"): Effect(lambda h: h.screen.volume.tool == "eraser"),
    ("Review", "Interpolate between painted slices"): Effect(
        lambda h: len(h.contents.decisions), CHANGED, painted
    ),
    ("Review", "Brush through neighbouring slices"): Effect(lambda h: scene(h).solid),
    ("Review", "Brush only within the window"): Effect(lambda h: scene(h).windowed),
    ("Review", "Fill holes"): Effect(lambda h: h.window.status.message, "This changes no voxel."),
    ("Review", "Smooth the outline"): Effect(lambda h: h.verb, "paint"),
    ("Review", "Add a margin…"): Effect(lambda h: h.dialogs, ["MarginDialog"]),
    ("Review", "Combine with another mask…"): Effect(lambda h: h.dialogs, ["CombineDialog"]),
    ("Review", "Copy to the next slice"): Effect(lambda h: h.screen.volume.crosshair[0], CHANGED, region),
    ("Review", "Copy to the previous slice"): Effect(lambda h: h.screen.volume.crosshair[0], CHANGED, region),
    ("Review", "Next map"): Effect(lambda h: h.screen.maps.chosen),
    ("Review", "Window width and level"): Effect(lambda h: h.screen.volume.windows.entry.isVisible(), True),
    ("Review", "Show or hide the crosshair"): Effect(lambda h: scene(h).cross_hair),
    ("Review", "Next layout of the views"): Effect(lambda h: h.screen.view_state()["layout"]),
    ("Review", "Maximum intensity projection"): Effect(lambda h: scene(h).slab),
    ("Review", "3-D view"): Effect(lambda h: h.screen.volume.surface is not None),
    ("Review", "Compare two runs, raters or maps, side by side"): Effect(lambda h: h.screen.side_by_side.on),
    ("Review", "Play the slices"): Effect(lambda h: h.screen.volume.cine),
    ("Review", "Thicker outlines"): Effect(lambda h: scene(h).line_width > 1, True),
    ("Review", "Thinner outlines"): Effect(
        lambda h: scene(h).line_width < 1, True, lambda h: h.screen.volume.step_line_width(-1)
    ),
    ("Review", "Measure lengths and angles"): Effect(lambda h: h.screen.volume.tool == "ruler"),
    ("Review", "Measure the values in an ellipse"): Effect(lambda h: h.screen.volume.tool == "roi"),
    ("Review", "Code and colour of the structure"): Effect(lambda h: h.dialogs, ["StructureDialog"]),
    ("Review", "Rename or merge the structure…"): Effect(lambda h: h.dialogs, ["NameDialog"]),
    ("Review", "Hide raters' masks until you decide"): Effect(lambda h: h.screen.blind_mode.on),
    ("Review", "Leave the tool or the panel"): Effect(
        lambda h: h.screen.volume.tool, "look", lambda h: h.screen.volume.set_tool("ruler")
    ),
    ("Review", "Show one rater only"): Effect(lambda h: scene(h).solo, keys="2"),
}
LABELS = {
    ("Review", "Next disputed task"): Effect(lambda h: h.screen.tasks.current, CHANGED, task),
    ("Review", "Previous disputed task"): Effect(lambda h: h.screen.tasks.current, CHANGED, task),
    ("Review", "Skip"): Effect(lambda h: h.verb, "skip", task),
    ("Review", "Undo the decision on the task"): Effect(
        lambda h: h.screen.tasks.decided[0] < 0,
        True,
        lambda h: (task(h), h.screen.tasks.decide(1), h.idle(), task(h)),
    ),
    ("Review", "Decide for the parent class"): Effect(decided_class, ("label", "cell"), lambda h: task(h, 0)),
    ("Review", "Mark the task as gold, or remove the mark"): Effect(
        lambda h: h.verb, "gold", lambda h: (task(h), h.screen.tasks.decide(1), h.idle(), task(h))
    ),
    ("Review", "Find a class by its name"): Effect(
        lambda h: h.window.focusWidget().metaObject().className(), CHANGED, task
    ),
    ("Review", "Show the task large, or the annotators again"): Effect(
        lambda h: h.screen.content.isVisible(), CHANGED, task
    ),
    ("Review", "Budget of votes to ask for"): Effect(lambda h: h.dialogs, ["BudgetDialog"]),
    ("Review", "Exclude selected annotators"): Effect(lambda h: h.dialogs, ["ExclusionDialog"], annotator),
    ("Review", "Hide names, and votes until you decide"): Effect(lambda h: h.screen.blind_mode.on),
    ("Review", "Leave the panel"): Effect(lambda h: h.screen.fuse_panel.isVisible(), False, with_fuse_panel),
    ("Review", "Label the task with this class"): Effect(
        decided_class, ("label", "cell/ring"), task, keys="1"
    ),
}
PAIRS = {
    ("Review", "Next annotator"): Effect(lambda h: h.screen.queue.current, CHANGED, annotator),
    ("Review", "Previous annotator"): Effect(lambda h: h.screen.queue.current, CHANGED, annotator),
    ("Review", "Flag as biased"): Effect(lambda h: h.dialogs, ["ReasonDialog"], annotator),
    ("Review", "Clear of bias"): Effect(lambda h: h.dialogs, ["ReasonDialog"], annotator),
    ("Review", "Skip"): Effect(lambda h: h.verb, "skip", annotator),
    ("Review", "Exclude flagged annotators"): Effect(lambda h: h.dialogs, ["ExclusionDialog"]),
    ("Review", "Exclude annotator, or restore"): Effect(lambda h: h.dialogs, ["ExclusionDialog"], annotator),
    ("Review", "Show the comparison large, or the biases again"): Effect(
        lambda h: h.screen.content.isVisible()
    ),
    ("Review", "Hide names"): Effect(lambda h: h.screen.blind_mode.on),
    ("Review", "Leave the panel"): Effect(lambda h: h.screen.fuse_panel.isVisible(), False, with_fuse_panel),
}
ANNOTATORS = {
    ("Review", "Exclude annotators, or restore them"): Effect(
        lambda h: h.dialogs, ["ExclusionDialog"], annotator
    ),
    ("Review", "Down-weight annotators"): Effect(lambda h: h.dialogs, ["ExclusionDialog"], annotator),
    ("Review", "Flag annotators, or remove the flag"): Effect(
        lambda h: h.dialogs, ["ReasonDialog"], annotator
    ),
    ("Review", "Mark annotators as programs, or as persons"): Effect(lambda h: h.verb, "program", annotator),
    ("Review", "Join names of one annotator"): Effect(lambda h: h.verb, "join", two),
    ("Review", "Separate joined names"): Effect(lambda h: h.verb, "separate", joined),
    ("Review", "Write a feedback page for the annotator"): Effect(
        lambda h: h.asked[:13], "Feedback page", annotator
    ),
    ("Review", "Next annotator, the most unusual first"): Effect(
        lambda h: h.screen.table.selected, CHANGED, annotator
    ),
    ("Review", "Previous annotator"): Effect(lambda h: h.screen.table.selected, CHANGED, annotator),
    ("Review", "Filter annotators"): Effect(lambda h: h.screen.table.filter.hasFocus(), True),
    ("Review", "Back to the table"): Effect(
        lambda h: h.screen.table.view.hasFocus(), True, on=lambda h: h.screen.queue.view
    ),
}


def figure(h, kind):
    """A figure that has parts to point at, brought to the front."""
    h.window.show_workspace(h.kind)
    for panel, show in ((h.panel_of.get(kind), None), *h.screen.panels()):
        if show is not None:
            show()
            h.idle()
        elif panel is not None:
            h.show(panel)
        for each in h.screen.findChildren(kind):
            if each.isVisible() and each.isEnabled() and each.end(None, -1) is not None:
                if show is not None:
                    h.panel_of[kind] = panel
                h.shown = each
                return each
    raise AssertionError(f"no {kind.__name__} with parts")


def chosen(h):
    """Count the parts that the figure is asked to choose."""
    h.count = 0
    h.shown.choose = lambda _part: setattr(h, "count", h.count + 1)


def plot(h):
    return figure(h, ChartFigure)


def plain(h):
    return figure(h, Figure)


def row(h, model="table"):
    h.screen.table.view.selectRow(0)


def replay(h):
    h.show("Stream")
    if h.screen.stream.offers.isVisible():
        h.screen.stream.offers.replay.click()
        h.idle()


def grid(h):
    h.screen.show_grid(True)
    h.screen.batch_review.list_again()
    h.idle()
    h.screen.grid.view.setCurrentIndex(h.screen.grid.view.model().index(0, 0))


def measured(h):
    """Draw a length and select it."""
    h.press("D", h.screen.canvas)
    canvas = h.screen.canvas
    ends = [QPoint(*map(round, canvas.viewport.to_screen(*at))) for at in ((20, 100), (60, 100), (90, 100))]
    QTest.mousePress(canvas, LEFT, pos=ends[0])
    for end in ends[1:]:
        QTest.mouseMove(canvas, end)
    QTest.mouseRelease(canvas, LEFT, pos=ends[-1])
    h.idle()
    h.screen.measure.choose(h.screen.measure.list.lines[-1].key)
    h.idle()


def compared(h):
    h.screen.run_divider.toggle()
    h.idle()


def wheel(h, modifiers=Qt.KeyboardModifier.NoModifier):
    widget = middle(h)
    position = QPointF(widget.rect().center())
    event = QWheelEvent(
        position, widget.mapToGlobal(position), QPoint(), QPoint(0, -120), Qt.MouseButton.NoButton, modifiers,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
    h.idle()


def clicks_on(h, widget, *positions, modifiers=Qt.KeyboardModifier.NoModifier):
    for position in positions:
        QTest.mouseClick(widget, LEFT, modifiers, position)
    h.idle()


def select_cards(h):
    view = h.screen.grid.view
    for at, modifiers in ((0, Qt.KeyboardModifier.NoModifier), (1, Qt.KeyboardModifier.ControlModifier)):
        QTest.mouseClick(view.viewport(), LEFT, modifiers, view.visualRect(view.model().at(at)).center())


def bars(h):
    first_disputed(h) if h.kind == "clicks" else task(h)
    h.idle()
    widget = class_bars(h)
    widget.setCurrentIndex(widget.model().index(1, 0))


def class_bars(h):
    return next(each for each in h.screen.findChildren(ClassBars) if each.isVisible())


def pointing(where, on, point):
    """Effects of the keys of a figure."""

    def at_end(h):
        h.shown.point(h.shown.end(None, 1))

    return {
        (where, f"go from {point} to {point}"): Effect(lambda h: h.shown.pointed, CHANGED, at_start, on),
        (where, f"go to the first, the last{' point' if point == 'point' else ''}"): Effect(
            lambda h: h.shown.pointed, CHANGED, lambda h: h.shown.point(None), on
        ),
        (where, "choose what is pointed at"): Effect(
            lambda h: h.count, 1, lambda h: (at_end(h), chosen(h)), on
        ),
    }


def at_start(h):
    h.shown.point(None)


FIGURE_ROWS = {
    **pointing("In a plot", plot, "point"),
    **pointing("In a figure", plain, "part"),
    ("In a plot", "zoom"): Effect(
        lambda h: h.shown.plan.view, CHANGED, lambda h: (h.press("+", h.shown), h.press("+", h.shown)), plot
    ),
    ("On a figure or an image", "copy, save"): Effect(lambda h: h.menu, True, on=plot),
    ("On a figure or an image", "copy as image"): Effect(clipboard, True, clipboard, plot),
}
TABLE_ROWS = {
    "show alone, show all": Effect(
        lambda h: h.screen.table.model.solo, CHANGED, row, lambda h: h.screen.table.view
    ),
    "hide, show": Effect(lambda h: h.screen.table.model.hidden, CHANGED, row, lambda h: h.screen.table.view),
    "exclude, restore": Effect(lambda h: h.dialogs, ["ExclusionDialog"], row, lambda h: h.screen.table.view),
}
CLICKS_WIDGETS = {
    **{("In the annotator table", words): effect for words, effect in TABLE_ROWS.items()},
    ("On the selected measurement", "move; with Shift ten times as far"): Effect(
        lambda h: h.screen.measurements.shapes._seen.points.tolist(), CHANGED, measured
    ),
    ("On the selected measurement", "select next point"): Effect(
        lambda h: h.screen.measurements.shapes._point, CHANGED, measured
    ),
    ("On the selected measurement", "select previous point"): Effect(
        lambda h: h.screen.measurements.shapes._point, CHANGED, measured
    ),
    ("On the selected measurement", "delete"): Effect(
        lambda h: len(h.screen.measure.list.lines), 0, measured
    ),
    ("On the selected measurement", "copy as a table"): Effect(
        lambda h: "length" in QGuiApplication.clipboard().text(),
        True,
        lambda h: (measured(h), QGuiApplication.clipboard().clear(), h.show("Measure")),
        lambda h: h.screen.measure.list,
    ),
    ("In the stream", "play, pause"): Effect(
        lambda h: h.screen.streaming.replay.playing,
        CHANGED,
        replay,
        lambda h: (replay(h), h.screen.stream)[1],
    ),
    ("In the stream", "start, end of the replay"): Effect(
        lambda h: h.screen.stream.replay.slider.value(),
        CHANGED,
        lambda h: h.screen.stream.replay.slider.setValue(3),
        lambda h: (replay(h), h.screen.stream)[1],
    ),
    ("In the classes of a task", "decide for this class"): Effect(
        decided_class, ("accept", "schizont"), bars, lambda h: (bars(h), class_bars(h))[1]
    ),
    ("In the grid of spots", "select several"): Effect(
        lambda h: len(h.screen.grid.view.selectionModel().selectedIndexes()), 2, grid, do=select_cards
    ),
    ("In the grid of spots", "select all"): Effect(
        lambda h: len(h.screen.grid.view.selectionModel().selectedIndexes()) > 1,
        True,
        grid,
        lambda h: (grid(h), h.screen.grid.view)[1],
    ),
    ("In the grid of spots", "show the spot on its image"): Effect(
        lambda h: (h.screen.grid_shown, h.screen.reviewing.spot is not None),
        (False, True),
        grid,
        lambda h: (grid(h), h.screen.grid.view)[1],
    ),
    ("On the image", "pan; with Shift: small steps"): Effect(
        lambda h: h.screen.canvas.viewport.centre, CHANGED, lambda h: h.screen.canvas.zoom(4)
    ),
    ("On the image", "move the divider between two sides"): Effect(
        lambda h: h.screen.canvas.divider.share, CHANGED, compared
    ),
    ("On the image", "zoom in"): Effect(lambda h: h.screen.canvas.viewport.scale),
    ("On the image", "zoom out"): Effect(lambda h: h.screen.canvas.viewport.scale),
    ("On the image", "show whole image"): Effect(
        lambda h: h.screen.canvas.fitted, True, lambda h: h.screen.canvas.zoom(4)
    ),
    ("On the image", "hide marks while held"): Effect(lambda h: h.screen.canvas.layers.bare),
    ("On the image", "select the position"): Effect(
        lambda h: h.verb, "add", lambda h: (h.screen.canvas.set_mode("add"), h.press("Left", h.screen.canvas))
    ),
    ("On the image", "zoom; with Alt: focal planes; with Shift: times"): Effect(
        lambda h: h.screen.canvas.viewport.scale, do=wheel
    ),
}
SLICES, STRIP = "In the views of a volume", "On the dispute strip"


def strip(h):
    h.screen.volume.set_layout("axial")
    h.idle()
    return next(each for each in h.screen.findChildren(DisputeStrip) if each.isVisible())


def in_middle(h):
    h.screen.volume.go_to((4, 12, 12))


MASKS_WIDGETS = {
    **{("In the rater table", words): effect for words, effect in TABLE_ROWS.items()},
    (SLICES, "scroll through slices"): Effect(lambda h: h.screen.volume.crosshair[0], CHANGED, in_middle),
    (SLICES, "move crosshair by one voxel"): Effect(
        lambda h: h.screen.volume.crosshair[1:], CHANGED, in_middle
    ),
    (SLICES, "move the divider between two sides"): Effect(
        lambda h: scene(h).divider, CHANGED, lambda h: h.screen.side_by_side.toggle()
    ),
    (SLICES, "zoom in"): Effect(lambda h: middle(h).viewport.scale),
    (SLICES, "zoom out"): Effect(lambda h: middle(h).viewport.scale),
    (SLICES, "show whole slice"): Effect(
        lambda h: middle(h).viewport.scale, CHANGED, lambda h: middle(h).zoom(4)
    ),
    (SLICES, "smaller, larger brush"): Effect(lambda h: scene(h).radius, keys="[ ]"),
    (SLICES, "hide marks while held"): Effect(lambda h: scene(h).bare),
    (SLICES, "this view alone; with a brush, paint"): Effect(lambda h: h.screen.view_state()["layout"]),
    (SLICES, "zoom"): Effect(
        lambda h: middle(h).viewport.scale, do=lambda h: wheel(h, Qt.KeyboardModifier.ControlModifier)
    ),
    (SLICES, "crosshair; right button: window, middle: pan"): Effect(
        lambda h: h.screen.volume.crosshair,
        CHANGED,
        in_middle,
        do=lambda h: drag(h, middle(h)),
    ),
    (STRIP, "next, previous slice"): Effect(
        lambda h: h.screen.volume.crosshair[0], CHANGED, in_middle, strip
    ),
    (STRIP, "first, last slice"): Effect(lambda h: h.screen.volume.crosshair[0], CHANGED, in_middle, strip),
    (STRIP, "most disputed slice"): Effect(
        lambda h: h.screen.volume.crosshair[0], CHANGED, lambda h: h.screen.volume.go_to((0, 12, 12)), strip
    ),
}
WALL = "On the wall of annotators"


def wall(h):
    h.show("Annotators")
    return h.screen.wall.tiles


def one_chosen(h):
    h.screen.wall.tiles._choose((0,))
    h.screen.wall.tiles.select((0,)) if hasattr(h.screen.wall.tiles, "select") else None


def sound(h):
    go_to(h, 1)
    task(h)
    h.show("Task")
    h.qtbot.waitUntil(h.screen.content.sound.isVisible, timeout=5000)
    return h.screen.content.sound.button


def picture(h):
    if h.kind == "labels":
        task(h)
        h.show("Task")
    else:
        h.show("Comparison")
        h.screen.contents.show(0)
    h.qtbot.waitUntil(h.screen.content.picture.isVisible, timeout=5000)
    return h.screen.content.picture


def dynamic(h):
    if h.screen.run_on_screen.algorithm != "dynibcc":
        h.press("Ctrl+B", h.screen.queue.view)
    annotator(h)
    h.show("Over time")
    return h.screen.drift


def matrix(h):
    go_to(h, 1)
    annotator(h)
    h.idle()
    h.screen.matrix.modes.buttons["rates"].click()
    return h.screen.matrix.figure


IMAGE_ROWS = {
    ("On the image", "pan; with Shift: small steps"): Effect(
        lambda h: h.screen.content.picture.viewport.centre,
        CHANGED,
        lambda h: h.screen.content.picture.zoom(8),
        picture,
    ),
    ("On the image", "zoom in"): Effect(
        lambda h: h.screen.content.picture.viewport.scale,
        CHANGED,
        lambda h: h.screen.content.picture.fit(),
        picture,
    ),
    ("On the image", "zoom out"): Effect(lambda h: h.screen.content.picture.viewport.scale, on=picture),
    ("On the image", "show whole image"): Effect(
        lambda h: h.screen.content.picture.fitted, True, lambda h: h.screen.content.picture.zoom(4), picture
    ),
    ("On the image", "pan"): Effect(
        lambda h: h.screen.content.picture.viewport.centre,
        CHANGED,
        lambda h: picture(h).zoom(8),
        do=lambda h: drag(h, picture(h)),
    ),
}


def drag(h, widget):
    middle = widget.rect().center()
    QTest.mousePress(widget, LEFT, pos=middle)
    QTest.mouseMove(widget, middle + QPoint(20, 20))
    QTest.mouseMove(widget, middle + QPoint(40, 40))
    QTest.mouseRelease(widget, LEFT, pos=middle + QPoint(40, 40))


LABELS_WIDGETS = {
    **{row: effect for row, effect in IMAGE_ROWS.items() if row[1] != "show whole image"},
    ("In the classes of a task", "decide for this class"): Effect(
        decided_class, ("label", "cell/schizont"), bars, lambda h: (bars(h), class_bars(h))[1]
    ),
    ("In the drift plot", "play through the votes"): Effect(lambda h: h.screen.drift.playing, on=dynamic),
    ("In a matrix of many classes", "zoom into a block"): Effect(
        lambda h: str(h.shown_matrix._block),
        CHANGED,
        lambda h: (h.press("+", matrix(h)), h.press("+", matrix(h))),
        lambda h: (setattr(h, "shown_matrix", matrix(h)), h.shown_matrix)[1],
    ),
    ("On a sound", "play, pause"): Effect(lambda h: h.screen.content.sound._player.playing, on=sound),
    ("On a sound", "5 seconds back, on"): Effect(
        lambda h: h.screen.content.sound._position,
        CHANGED,
        lambda h: h.screen.content.sound.go_to(0.2),
        sound,
    ),
    (WALL, "walk; with Shift select"): Effect(
        lambda h: h.screen.wall.tiles.current,
        CHANGED,
        lambda h: h.press("Home", h.screen.wall.tiles),
        wall,
        keys="Right Down",
    ),
    (WALL, "all annotators"): Effect(lambda h: len(h.screen.wall.tiles.selected), 8, on=wall),
    (WALL, "larger matrices"): Effect(lambda h: h.screen.wall.tiles.side, on=wall),
    (WALL, "smaller matrices"): Effect(lambda h: h.screen.wall.tiles.side, on=wall),
    (WALL, "matrices at normal size"): Effect(
        lambda h: h.screen.wall.tiles.side, CHANGED, lambda h: h.screen.wall.tiles.zoom(1), wall
    ),
    (WALL, "go to the annotator"): Effect(
        lambda h: h.window.focusWidget() is h.screen.wall.tiles,
        False,
        lambda h: h.press("Home", h.screen.wall.tiles),
        wall,
    ),
    (WALL, "select, or no longer"): Effect(
        lambda h: h.screen.wall.tiles.selected, CHANGED, lambda h: h.press("Home", h.screen.wall.tiles), wall
    ),
    (WALL, "find a name"): Effect(lambda h: type(h.window.focusWidget()).__name__, "_Filter", on=wall),
    (WALL, "clear selection"): Effect(
        lambda h: h.screen.wall.tiles.selected, (), lambda h: h.press("Ctrl+A", h.screen.wall.tiles), wall
    ),
}


def ranking(h):
    h.window.show_workspace("pairs")
    rows = h.screen.ranking.figure
    h.qtbot.waitUntil(lambda: rows.view is not None, timeout=5000)
    return rows


PAIRS_WIDGETS = {
    **IMAGE_ROWS,
    ("In the ranking", "previous, next item"): Effect(
        lambda h: ranking(h)._chosen,
        CHANGED,
        lambda h: (h.press("Home", ranking(h)), h.press("Right"), h.press("Right")),
        ranking,
    ),
    ("In the ranking", "items between two"): Effect(
        lambda h: ranking(h)._chosen,
        CHANGED,
        lambda h: (h.press("Home", ranking(h)), h.press("Right"), h.press("Right")),
        ranking,
    ),
    ("In the ranking", "row before, after"): Effect(
        lambda h: ranking(h)._row, CHANGED, lambda h: setattr(ranking(h), "_row", 5), ranking
    ),
    ("In the ranking", "next items that swap"): Effect(lambda h: ranking(h)._chosen, CHANGED, on=ranking),
}
GRID = "In the table of annotators"
ANNOTATORS_WIDGETS = {
    (GRID, "previous, next annotator"): Effect(
        lambda h: h.screen.table.selected, CHANGED, lambda h: h.screen.table.view.selectRow(2)
    ),
    (GRID, "select several"): Effect(
        lambda h: len(h.screen.table.selected), 2, lambda h: h.screen.table.view.selectRow(2)
    ),
    (GRID, "select all"): Effect(lambda h: len(h.screen.table.selected), 12),
}
NO_FIGURE = {row: effect for row, effect in FIGURE_ROWS.items() if row[0] != "In a figure"}
TABLES = {
    "": {},
    "clicks": {**CLICKS, **shared("image"), **LAYOUT, **FIGURE_ROWS, **CLICKS_WIDGETS},
    "masks": {**MASKS, **shared("case"), **LAYOUT, **FIGURE_ROWS, **MASKS_WIDGETS},
    "labels": {**LABELS, **shared("question"), **LAYOUT, **FIGURE_ROWS, **LABELS_WIDGETS},
    "pairs": {**PAIRS, **shared("question"), **LAYOUT, **FIGURE_ROWS, **PAIRS_WIDGETS},
    "annotators": {**ANNOTATORS, **LAYOUT, **NO_FIGURE, **ANNOTATORS_WIDGETS},
}


MENUS = ("Review", "Study", "View", "Text size", "Help")
LATE = ("Fuse again", *LAST)


def parts(keys, where):
    """The presses of "Ctrl+Left, Right", where the modifier counts for both, or of "Ctrl+Z, Z" in a menu."""
    if keys == "Arrows":
        return ["Left", "Right", "Up", "Down"]
    if " ... " in keys:
        first, last = keys.split(" ... ")
        return [str(digit) for digit in range(int(first), int(last) + 1)]
    pressed = keys.split(", ")
    modifier = pressed[0].rpartition("+")[0]
    if where not in MENUS and modifier:
        pressed[1:] = [each if "+" in each else f"{modifier}+{each}" for each in pressed[1:]]
    return pressed


def assigned(window, focus):
    """The actions and shortcuts that answer to each key while a widget has the focus."""
    answers = {}
    for each in (*window.findChildren(QAction), *window.findChildren(QShortcut)):
        of_action = isinstance(each, QAction)
        owners = each.associatedObjects() if of_action else [each.parent()]
        context = each.shortcutContext() if of_action else each.context()
        contexts = Qt.ShortcutContext
        reached = {
            contexts.WidgetShortcut: lambda owner: owner is focus,
            contexts.WidgetWithChildrenShortcut: lambda owner: owner is focus or owner.isAncestorOf(focus),
            contexts.WindowShortcut: lambda owner: owner.isVisible() and owner.window() is window,
        }[context]
        if each.isEnabled() and any(isinstance(owner, QWidget) and reached(owner) for owner in owners):
            for keys in each.shortcuts() if of_action else each.keys():
                if not keys.isEmpty():
                    answers.setdefault(keys.toString(), set()).add(each)
    return answers


def faults(window, listed):
    """Keys that are assigned twice where they reach the same widget, and keys that the list lacks."""
    keys = {QKeySequence(key).toString() for (where, _), text in listed.items() for key in parts(text, where)}
    problems = set()
    for focus in (window, *window.findChildren(QWidget)):
        if focus.isVisible() and focus.focusPolicy() != Qt.FocusPolicy.NoFocus:
            for key, answers in assigned(window, focus).items():
                if len(answers) > 1:
                    problems.add(f"{key} is assigned {len(answers)} times in {focus.accessibleName()}")
                if key not in keys:
                    problems.add(f"{key} is not in the list")
    return sorted(problems)


@pytest.fixture
def hands(window, qtbot, monkeypatch, request):
    hands = Hands(window, qtbot, request.param)

    def ask(_parent, title, *_):
        hands.asked = title
        return "", ""

    for name in ("getOpenFileName", "getOpenFileNames", "getSaveFileName", "getExistingDirectory"):
        result = (lambda *given: ask(*given)[0]) if name == "getExistingDirectory" else ask
        monkeypatch.setattr(QFileDialog, name, result)
    monkeypatch.setattr(
        "raterscope.app.workspaces.labels.workspace.SoundPlayer", lambda sound: SoundPlayer(sound, Device)
    )
    yield hands
    for name in ("shown", "shown_matrix"):  # a figure that is kept would outlive its window
        vars(hands).pop(name, None)


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
@pytest.mark.parametrize("hands", TABLES, indirect=True)
def test_each_listed_key_does_what_the_list_says(hands, window, qtbot, everything):
    if hands.kind:
        open_study(window, qtbot, everything)
        window.show_workspace(hands.kind)
        hands.idle()
    listed = {
        (group.where, words): keys
        for group in shortcut_groups(window.window_actions.commands(), window.workspace)
        for keys, words in group.keys
    }
    table = {**WINDOW, **TABLES[hands.kind]}
    if not hands.kind:
        table = {
            row: effect
            for row, effect in table.items()
            if row[0] != "View" or row[1] in ("Copy as image", "Full screen")
        }
        for words in ("Close study", "Undo", "Redo"):
            del table["Study", words]
    problems = [f"no effect in the table: {row}" for row in listed if row not in table]
    problems += [f"not in the list: {row}" for row in table if row not in listed]
    problems += faults(window, listed)
    rows = [row for row in listed if row in table]
    for where, words in sorted(rows, key=lambda row: LATE.index(row[1]) + 1 if row[1] in LATE else 0):
        effect, keys = table[where, words], listed[where, words]
        for key in [keys] if effect.do else effect.keys.split(" ") if effect.keys else parts(keys, where):
            try:
                hands.check(effect, key)
            except (AssertionError, AttributeError, LookupError, TimeoutError) as error:
                problems.append(f"{where}, {words} ({key}): {error!r:.300}")
            if words not in LAST:
                hands.put_back()
    assert not problems, "\n".join(problems)
