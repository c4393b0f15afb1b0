"""Use by keyboard alone: every widget is reached, focus is visible, Esc returns to the canvas."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QWidget

from raterscope.widgets import theme
from tests.app.driving import idle, press

MAX_STEPS = 60


def _ready(window, qtbot):
    theme.apply_theme(QApplication.instance(), theme.DARK)
    press(window, qtbot, Qt.Key.Key_Tab)
    assert window.workspace.reviewing.spot is not None
    return window.workspace


def _takers(workspace):
    return [
        widget
        for widget in workspace.findChildren(QWidget)
        if widget.isVisible()
        and widget.isEnabled()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
    ]


def _press(qtbot, key, modifiers=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(QApplication.focusWidget(), key, modifiers)
    QApplication.processEvents()


def test_all_that_takes_keys_is_reached_visibly_and_esc_moves_to_the_canvas(fused, qtbot):
    workspace = _ready(fused, qtbot)
    reached = set()
    for _ in range(8):
        _press(qtbot, Qt.Key.Key_F6)
        first = QApplication.focusWidget()
        for _ in range(MAX_STEPS):
            reached.add(QApplication.focusWidget())
            _press(qtbot, Qt.Key.Key_F6, Qt.KeyboardModifier.ControlModifier)
            if QApplication.focusWidget() is first:
                break
    takers = _takers(workspace)
    assert len(takers) > 15
    assert [taker.accessibleName() for taker in takers if taker not in reached] == []

    for widget in takers:
        fused.bar.help.setFocus()
        box = QRect(widget.mapTo(fused, widget.rect().topLeft()), widget.size()).adjusted(-2, -2, 2, 2)
        before = fused.grab(box).toImage()
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        QApplication.processEvents()
        name = widget.accessibleName()
        assert name or widget.property("text"), widget
        assert fused.grab(box).toImage() != before, name
        _press(qtbot, Qt.Key.Key_Escape)
        holder = QApplication.focusWidget()
        assert holder is workspace.canvas or workspace.canvas.isAncestorOf(holder), name


def test_esc_leaves_the_full_screen_from_the_canvas_and_z_takes_the_last_decision_back(fused, qtbot):
    workspace = _ready(fused, qtbot)
    fused.menus.full_screen_requested.emit()
    assert fused.isFullScreen()
    workspace.history.view.setFocus()
    _press(qtbot, Qt.Key.Key_Escape)
    assert fused.isFullScreen()
    _press(qtbot, Qt.Key.Key_Escape)
    assert not fused.isFullScreen()
    idle(fused, qtbot)

    number = workspace.reviewing.spot.number
    press(fused, qtbot, Qt.Key.Key_R)
    assert fused.menus.undo_action.text() == f"Undo reject spot {number}"
    press(fused, qtbot, Qt.Key.Key_Z)
    assert fused.document.contents.review.undoable is None
    assert fused.menus.redo_action.text() == f"Redo reject spot {number}"
    workspace.queue.filter.setFocus()
    qtbot.keyClicks(workspace.queue.filter, "z")
    assert workspace.queue.filter.text() == "z"


def test_sides_fold_and_panels_are_enlarged_and_reached_by_name_and_come_back(fused, qtbot):
    workspace = _ready(fused, qtbot)
    workspace.whole.setSizes([300, workspace.whole.width() - 300])
    sides = ((Qt.Key.Key_F2, workspace.whole, 0), (Qt.Key.Key_F3, workspace.upper, 1))
    for key, splitter, index in (*sides, (Qt.Key.Key_F4, workspace.middle, 1)):
        before = splitter.sizes()
        press(fused, qtbot, key)
        assert splitter.sizes()[index] == 0
        press(fused, qtbot, key)
        assert splitter.sizes() == before
    workspace.evidence.setFocus()
    press(fused, qtbot, Qt.Key.Key_F3)
    assert workspace.canvas.hasFocus()

    before = workspace.layout_state()
    workspace.table.setFocus()
    _press(qtbot, Qt.Key.Key_F8)
    assert workspace.table.isVisible()
    assert not workspace.canvas.isVisible()
    assert workspace.table.width() > 0.9 * workspace.width()
    _press(qtbot, Qt.Key.Key_Escape)
    if not workspace.canvas.isVisible():
        _press(qtbot, Qt.Key.Key_Escape)
    assert workspace.canvas.isVisible()
    assert workspace.evidence.isVisible()
    assert workspace.layout_state() == before

    press(fused, qtbot, Qt.Key.Key_F4)
    panels = dict(workspace.panels())
    panels["Parasitaemia"]()
    QApplication.processEvents()
    assert workspace.parasitaemia.isVisible()
    assert workspace.middle.sizes()[1] > 0

    tabs = workspace.right_tabs
    bar = tabs.tabBar()
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(1).center())
    _press(qtbot, Qt.Key.Key_F8)
    assert tabs.isVisible()
    assert not workspace.canvas.isVisible()
