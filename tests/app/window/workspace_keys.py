"""Keys of the window and of each workspace, with their effects."""

import numpy as np

from raterscope.app.window.command_palette import CommandPalette
from raterscope.app.window.preferences import change_text_size
from raterscope.widgets import theme
from raterscope.widgets.volume.scene import Stroke
from tests.app.window.hands import (
    CHANGED,
    Effect,
    a_decision,
    annotator,
    clipboard,
    decided_class,
    disputed_spot,
    first_disputed,
    focus_region,
    folded,
    go_to,
    item,
    joined,
    region,
    task,
    two,
    undone,
    with_bookmark,
    with_fuse_panel,
)


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
    ("Review", "Blind mode: hide names and votes until you decide"): Effect(lambda h: h.screen.blind_mode.on),
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
    ("Review", "Blind mode: hide raters' masks until you decide"): Effect(lambda h: h.screen.blind_mode.on),
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
    ("Review", "Blind mode: hide names, and votes until you decide"): Effect(
        lambda h: h.screen.blind_mode.on
    ),
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
    ("Review", "Blind mode: hide names"): Effect(lambda h: h.screen.blind_mode.on),
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
