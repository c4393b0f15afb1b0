"""Keys of figures, tables, images and other widgets, with their effects."""

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from raterscope.widgets.figures.chart_figure import ChartFigure
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.panels.class_bars import ClassBars
from raterscope.widgets.volume.volume_controls import DisputeStrip
from tests.app.window.hands import (
    CHANGED,
    LEFT,
    Effect,
    annotator,
    clipboard,
    decided_class,
    first_disputed,
    go_to,
    middle,
    task,
)
from tests.app.window.workspace_keys import ANNOTATORS, CLICKS, LABELS, LAYOUT, MASKS, PAIRS, scene, shared


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
        h.screen.stream.replay.batch_chosen.emit(4)  # few steps are soon computed
        h.idle()


def paused_at_a_step(h):
    if h.screen.streaming.replay.playing:
        h.screen.stream.replay.toggle()
        h.idle()
    h.screen.stream.replay.slider.setValue(1)


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
        lambda h: (h.screen.streaming.replay.playing, h.screen.stream.replay.slider.value()),  # or has played
        CHANGED,
        paused_at_a_step,
        lambda h: (replay(h), h.screen.stream)[1],
    ),
    ("In the stream", "start, end of the replay"): Effect(
        lambda h: h.screen.stream.replay.slider.value(),
        CHANGED,
        paused_at_a_step,
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
    ("On the image", "zoom in"): Effect(
        lambda h: h.screen.canvas.viewport.scale, CHANGED, lambda h: h.screen.canvas.fit()
    ),
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


def sound(h):
    go_to(h, 1)
    task(h)
    h.show("Task")
    h.qtbot.waitUntil(h.screen.content.sound.isVisible)
    return h.screen.content.sound.button


def picture(h):
    if h.kind == "labels":
        task(h)
        h.show("Task")
    else:
        h.show("Comparison")
        h.screen.contents.show(0)
    h.qtbot.waitUntil(h.screen.content.picture.isVisible)
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
    h.qtbot.waitUntil(lambda: rows.view is not None)
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
