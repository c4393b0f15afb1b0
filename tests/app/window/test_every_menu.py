"""Each enabled entry of the context menus has an effect."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu

from raterscope.widgets.figure_menu import FigureMenu
from tests.app.driving import open_study
from tests.app.window.hands import first_disputed, go_to, middle
from tests.app.window.widget_keys import TABLES, grid, measured, row, strip


def on_row(view):
    def ready(h):
        shown = view(h)
        shown.setCurrentIndex(shown.model().index(0, 0))
        return shown

    return ready


def on_canvas(ready):
    """Return the canvas, and the position of what is to be clicked."""

    def place(h):
        ready(h)
        canvas, spot = h.screen.canvas, h.screen.reviewing.spot
        x, y = canvas.viewport.to_screen(*((5, 5) if spot is None else (spot.x, spot.y)))
        return canvas, QPoint(round(x), round(y))

    return place


def on_measurement(h):
    measured(h)
    x, y = h.screen.canvas.viewport.to_screen(40, 100)
    return h.screen.canvas, QPoint(round(x), round(y))


PLACES = {
    "clicks": {
        "image": on_canvas(lambda h: h.screen.reviewing.select(None)),
        "spot": on_canvas(first_disputed),
        "measurement": on_measurement,
        "queue": on_row(lambda h: h.screen.queue.view),
        "grid": lambda h: (grid(h), h.screen.grid.view)[1],
        "annotators": lambda h: (h.show("Annotators"), row(h), h.screen.table.view)[2],
    },
    "masks": {
        "slice": middle,
        "strip": strip,
        "raters": lambda h: (row(h), h.screen.table.view)[1],
    },
    "pairs": {"annotators": on_row(lambda h: h.screen.queue.view)},
    "annotators": {"columns": lambda h: h.screen.table.view.horizontalHeader()},
}


def observed(h):
    """Return the state that an entry may change."""
    screen = h.screen
    model = getattr(getattr(screen, "table", None), "model", None)
    header = screen.table.view.horizontalHeader() if h.kind == "annotators" else None
    return (
        len(h.contents.decisions), h.dialogs, h.asked, h.window.status.message, h.window.focusWidget(),
        QGuiApplication.clipboard().text(), QGuiApplication.clipboard().image().width(),
        getattr(model, "solo", None), getattr(model, "hidden", None),
        getattr(screen.canvas, "mode", ""), getattr(screen, "grid_shown", False),
        tuple(tabs.currentIndex() for tabs in screen._tabs),
        header and tuple(header.isSectionHidden(at) for at in range(header.count())),
    )  # fmt: skip


def popup(h, place):
    """Open the context menu of a widget."""
    widget = PLACES[h.kind][place](h)
    h.idle()
    widget, position = widget if isinstance(widget, tuple) else (widget, widget.rect().center())
    if isinstance(widget, QAbstractItemView):
        widget, position = widget.viewport(), widget.visualRect(widget.currentIndex()).center()
    reasons = QContextMenuEvent.Reason
    reason = reasons.Keyboard if place == "slice" else reasons.Mouse  # a right drag sets the window
    QApplication.sendEvent(widget, QContextMenuEvent(reason, position, widget.mapToGlobal(position)))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu), f"no menu in {place}"
    return menu


def entries(menu):
    return [action for action in menu.actions() if action.isEnabled() and not action.isSeparator()]


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
@pytest.mark.parametrize("hands", PLACES, indirect=True)
def test_each_entry_of_a_context_menu_has_an_effect(hands, window, qtbot, everything):
    open_study(window, qtbot, everything)
    window.show_workspace(hands.kind)
    hands.idle()
    dead = []
    for place in PLACES[hands.kind]:
        menu = popup(hands, place)
        count = len(entries(menu))
        menu.close()
        assert count, f"nothing to choose in {place}"
        for at in range(count):
            menu = popup(hands, place)
            entry = entries(menu)[at]
            text, is_set = entry.text(), entry.isCheckable() and entry.isChecked()
            QGuiApplication.clipboard().clear()
            hands.asked = ""
            before = observed(hands)
            entry.trigger()
            menu.close()
            hands.idle()
            if observed(hands) == before and not is_set:
                dead.append(f"{place}: {text}")
            hands.put_back()
    assert not dead


@pytest.mark.parametrize("hands", [kind for kind in TABLES if kind], indirect=True)
def test_each_figure_is_copied_and_saved(hands, window, qtbot, everything):
    open_study(window, qtbot, everything)
    window.show_workspace(hands.kind)
    hands.idle()
    if hands.kind != "annotators":
        go_to(hands)
    seen, dead = set(), []
    for panel, show in list(hands.screen.panels()):
        show()
        hands.idle()
        for menu in hands.screen.findChildren(FigureMenu):
            if menu in seen or not menu._place.isVisible():
                continue
            seen.add(menu)
            for action in menu.menu.actions():
                QGuiApplication.clipboard().clear()
                hands.asked = ""
                action.trigger()
                saved = hands.asked or QGuiApplication.clipboard().image().width()
                if not action.isSeparator() and not saved:
                    dead.append(f"{panel}, {menu._place.accessibleName()}: {action.text()}")
    assert seen
    assert not dead
