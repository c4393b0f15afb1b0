"""In blind mode no annotator is named: on screen, in tooltips, to screen readers, in saved figures."""

import pytest
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QMessageBox,
    QTabWidget,
    QWidget,
)

from raterscope.app.window.command_palette import study_commands
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.widgets.figure_menu import FigureMenu, paint_svg
from tests.app.driving import idle, open_study, press
from tests.app.window.everything import NAMES

NAME = NAMES[0].split()[0]
PROPERTIES = (
    "text", "title", "toolTip", "statusTip", "whatsThis", "accessibleName", "accessibleDescription",
    "placeholderText", "currentText", "windowTitle", "plainText",
)  # fmt: skip
ROLES = (
    Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole,
    Qt.ItemDataRole.AccessibleDescriptionRole, Qt.ItemDataRole.EditRole,
)  # fmt: skip
MAX_ROWS, TOP = 40, QModelIndex()


def cells(model: QAbstractItemModel):
    for column in range(1 if isinstance(model, QAbstractListModel) else model.columnCount(TOP)):
        yield model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.DisplayRole)
        for row in range(min(model.rowCount(TOP), MAX_ROWS)):
            yield from map(model.index(row, column).data, ROLES)


def texts(window):
    """All texts of widgets, actions, lists and figures, each with what it belongs to."""
    elsewhere = {each for each in window.findChildren(WorkspaceLayout) if each is not window.workspace}
    for part in (
        *window.findChildren(QWidget),
        *window.findChildren(QAction),
        *QApplication.topLevelWidgets(),
    ):
        if is_inside(part, elsewhere):
            continue
        for name in PROPERTIES:
            value = part.property(name)
            if isinstance(value, str) and value:
                yield part, value
        if isinstance(part, QTabWidget):
            yield from ((part, part.tabText(at)) for at in range(part.count()))
        if isinstance(part, QComboBox):
            yield from ((part, part.itemText(at)) for at in range(part.count()))
        if isinstance(part, QAbstractItemView) and part.model() is not None:
            yield from ((part, str(cell)) for cell in cells(part.model()) if cell)
    for menu in window.findChildren(FigureMenu):
        if menu._place.isVisible():
            yield menu._place, " ".join(menu._figure.heading())
            if menu._with_svg:
                yield menu._place, bytes(paint_svg(menu._figure, menu.caption())).decode()
            if menu._table is not None:
                yield menu._place, str(menu._table())


def is_inside(part, workspaces):
    while part is not None and part not in workspaces:
        part = part.parent()
    return part is not None


def named(window):
    return {
        f"{type(part).__name__} {part.objectName() or part.property('accessibleName') or ''}: {text[:90]}"
        for part, text in texts(window)
        if NAME in text
    }


KEYS = {
    "clicks": (Qt.Key.Key_Tab, Qt.Key.Key_A, Qt.Key.Key_X),
    "masks": (Qt.Key.Key_Tab, Qt.Key.Key_A, Qt.Key.Key_X),
    "labels": (Qt.Key.Key_Tab, Qt.Key.Key_2, Qt.Key.Key_Tab),
    "pairs": (Qt.Key.Key_Tab, Qt.Key.Key_F, Qt.Key.Key_C),
    "annotators": (Qt.Key.Key_F, Qt.Key.Key_P),
}


@pytest.mark.parametrize("kind", ["clicks", "masks", "labels", "pairs", "annotators"])
def test_no_name_is_seen_heard_or_copied_in_blind_mode(kind, window, qtbot, everything, monkeypatch):
    open_study(window, qtbot, everything)
    window.show_workspace(kind)
    idle(window, qtbot)
    workspace = window.workspace
    if workspace.blind_mode is not None:
        workspace.core.toggle_blind()
    else:
        window.document.hide_names(True, "clicks")
    idle(window, qtbot)
    workspace.choose_annotator(NAMES[0])
    found = set()
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *given, **_: (asked.extend(given[1:3]), ("", ""))[1]
    )
    for title, show in workspace.panels():
        show()
        idle(window, qtbot)
        found |= {f"[{title}] {each}" for each in named(window)}
        for menu in window.findChildren(FigureMenu):
            if menu._place.isVisible():
                menu.png.trigger()
    for key in KEYS[kind]:
        press(window, qtbot, key, on=workspace.table.view if key == Qt.Key.Key_X else workspace.queue.view)
        found |= {f"after {key.name}: {each}" for each in named(window)}
    for dialog in window.findChildren(QDialog):
        dialog.close()
    idle(window, qtbot)
    found |= {f"proposed: {text}" for text in asked if NAME in text}
    palette = study_commands(window.document.contents, workspace, kind)
    found |= {f"palette: {command.text}" for command in palette if NAME in command.text}
    assert NAME not in QGuiApplication.clipboard().text()
    assert not found, "\n".join(sorted(found))


def test_a_file_that_names_annotators_is_written_after_a_question_only(
    window, qtbot, everything, monkeypatch
):
    open_study(window, qtbot, everything)
    window.show_workspace("masks")
    idle(window, qtbot)
    window.workspace.core.toggle_blind()
    asked = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (asked.append("file"), ("", ""))[1])
    exports = {action.text(): action for action in window.menus.export_menu.actions()}
    for action in (exports["Annotators…"], exports["Disputed regions…"]):
        action.trigger()
        idle(window, qtbot)
        (box,) = window.findChildren(QMessageBox)
        assert "names annotators" in box.informativeText()
        assert "choose Export, De-identified" in box.informativeText()
        box.reject()
        box.deleteLater()
        qtbot.waitUntil(lambda: not window.findChildren(QMessageBox))
    assert asked == []
    deidentified = {action.text(): action for action in window.menus.deidentified_menu.actions()}
    deidentified["Annotators, de-identified…"].trigger()
    idle(window, qtbot)
    assert asked == ["file"]
