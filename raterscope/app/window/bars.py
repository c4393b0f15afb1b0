"""Bars of the window (top, notices, actions, failed cases, status) and its confirmation box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from raterscope.app.document import Document
from raterscope.app.jobs import Job
from raterscope.text import counted, time_left
from raterscope.widgets import theme
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.parts import ElidedLabel, announce, plain_label
from raterscope.widgets.theme import set_lengths

if TYPE_CHECKING:
    from raterscope.app.study.records import CohortCase

STUDIES = "Raterscope studies (*.rscope)"
NAMED_IN_FILE = "Blind mode does not apply to files: this one names annotators and shows votes and results."

TOP_BAR_HEIGHT = 44
STATUS_HEIGHT = 24
TEXT_WIDTH = 180
"""Minimum width of the status line's description beside a long message."""
BUTTON_WIDTH = 112
EDGE, SPACING = 12, 8
PROGRESS_WIDTH, MIN_WORDS = 120, 160
"""Width of the progress bar, and the least for words beside it; in less room they are above it."""
TAB_AROUND = 30
"""Width of a tab's frame and padding on both sides of its title, in pixels."""
PROGRAM, MENU_SIGN = "Raterscope", "\u2261"
"""Text of the menu's button, and the sign that replaces it in a narrow window."""
LARGE_TEXT, TAB_TIGHT = 1.4, 8
"""Text size above which tabs have less padding, to fit into the smallest window; and that padding."""


class TopBar(QWidget):
    """Menu, study name, workspace tabs and Fuse; progress and Cancel replace Fuse while a job runs.

    `workspaces`: kind and title of each tab.
    """

    workspace_chosen = Signal(str)

    def __init__(self, workspaces: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("topBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_lengths(self, height=TOP_BAR_HEIGHT)

        self._menu_button = QToolButton()
        self._menu_button.setObjectName("menuButton")
        self._menu_button.setText(PROGRAM)
        self._menu_button.setAccessibleName(f"{PROGRAM} menu")
        self._menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu_button.setToolTip("Menu: study, import, export, undo, view (F10)")
        self._study = ElidedLabel(elide=Qt.TextElideMode.ElideMiddle)
        self._study.setObjectName("studyName")
        self._tabs = {kind: self._tab(kind, title) for kind, title in workspaces}
        self._fuse_text = ""
        self._progress = QProgressBar(minimum=0, maximum=1000, textVisible=False)
        set_lengths(self._progress, width=PROGRESS_WIDTH)
        self._progress_label = ElidedLabel()
        self._progress_label.setObjectName("progressWords")
        self._progress_label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.cancel = QPushButton("Cancel")
        self.cancel.setMinimumWidth(BUTTON_WIDTH)
        self.fuse = QPushButton("Fuse")
        theme.set_role(self.fuse, "primary")
        self.fuse.setMinimumWidth(BUTTON_WIDTH)
        self.help = QToolButton()
        self.help.setText("?")
        self.help.setToolTip("Keyboard shortcuts (?)")
        self.help.setAccessibleName("Keyboard shortcuts")

        left, right = QHBoxLayout(), QHBoxLayout()
        left.addWidget(self._menu_button)
        left.addWidget(self._study, 1)
        self._working = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._working.addWidget(self._progress_label, 1)
        right_edge = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        self._working.addWidget(self._progress, 0, right_edge)
        right.addLayout(self._working, 1)
        for widget in (self.cancel, self.fuse, self.help):
            right.addWidget(widget)
        right.insertStretch(0)
        horizontal(
            (left, 1),
            *self._tabs.values(),
            (right, 1),
            inside=self,
            margins=(EDGE, 0, EDGE, 0),
            spacing=SPACING,
        )
        theme.notifier().changed.connect(self._fit)
        self._fit()
        self._possible = False
        self.set_fusing(None)
        self.set_study(None)

    def set_menu(self, menu: QMenu) -> None:
        """Set the menu that the button with the program's name opens."""
        self._menu_button.setMenu(menu)

    def open_menu(self) -> None:
        """Open the menu, like a click on its button."""
        self._menu_button.click()

    def set_study(self, path: Path | None) -> None:
        """Show the name of the study, and the tabs if one is open."""
        self._study.setText(path.name if path else "")
        self._study.setToolTip(str(path) if path else "")
        for tab in self._tabs.values():
            tab.setVisible(path is not None)
        self.set_fusing_possible(False)

    def set_fusing_possible(self, possible: bool) -> None:
        """Show or hide Fuse."""
        self._possible = possible
        self.fuse.setVisible(possible and self.cancel.isHidden())

    def set_workspace(self, kind: str, fuse_text: str) -> None:
        """Mark the tab of the workspace on screen, and set the tooltip of Fuse."""
        self._tabs[kind].setChecked(True)
        self._fuse_text = fuse_text
        self.set_stale("")

    def set_stale(self, text: str) -> None:
        """Label the button "Fuse again", with the reason as its tooltip; without a reason, "Fuse"."""
        self.fuse.setText("Fuse again" if text else "Fuse")
        self._fit()
        self.fuse.setToolTip(text or self._fuse_text)

    def set_fusing(self, job: Job | None) -> None:
        """Show the progress of a job instead of the Fuse button, or the button without a job."""
        busy = job is not None
        for widget in (self._progress_label, self._progress, self.cancel):
            widget.setVisible(busy)
        self.fuse.setVisible(not busy and self._possible)
        if job is not None:
            self._progress.setValue(round(1000 * job.fraction))
            remaining = time_left(job.seconds_left)
            self._progress_label.setText(", ".join(part for part in (remaining, job.text) if part))
            self.cancel.setEnabled(job.state == "running")

    def _tab(self, kind: str, title: str) -> QPushButton:
        tab = QPushButton(title)
        tab.setObjectName("workspaceTab")
        tab.setCheckable(True)
        tab.setAutoExclusive(True)
        set_lengths(tab, height=TOP_BAR_HEIGHT - 16)
        tab.clicked.connect(partial(self._on_tab, kind))
        return tab

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the name of the menu in a narrow window."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Make tabs and Fuse wide enough for their titles; the name of the menu takes the remaining width."""
        self._fit_tabs()
        self.fuse.setMinimumWidth(max(BUTTON_WIDTH, self.fuse.sizeHint().width()))
        self._menu_button.setText(PROGRAM)
        widgets = (self._menu_button, *self._tabs.values(), self.fuse, self.help)
        shown = [widget for widget in widgets if not widget.isHidden()]
        needed = sum(max(widget.minimumWidth(), widget.minimumSizeHint().width()) for widget in shown)
        if needed + len(shown) * SPACING + 2 * EDGE > self.width():
            self._menu_button.setText(MENU_SIGN)
        tabs = sum(tab.minimumWidth() + SPACING for tab in self._tabs.values())
        beside = self.cancel.minimumWidth() + self.help.sizeHint().width() + 3 * SPACING + EDGE
        side = (self.width() - tabs) // 2 - beside - self._progress.width()
        narrow = side < MIN_WORDS * theme.text_size()
        directions = QBoxLayout.Direction
        self._working.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        edge = SPACING // 2 if narrow else 0
        self._working.setContentsMargins(0, edge, 0, edge)

    def _fit_tabs(self) -> None:
        """Make every tab wide enough for its title in bold, as when it is checked."""
        bold = QFontMetrics(theme.widget_font(bold=True))
        tight = theme.text_size() > LARGE_TEXT
        for tab in self._tabs.values():
            tab.setStyleSheet(f"padding: 4px {TAB_TIGHT // 2 - 1}px;" if tight else "")
            tab.setMinimumWidth(bold.horizontalAdvance(tab.text()) + (TAB_TIGHT if tight else TAB_AROUND))

    def _on_tab(self, kind: str) -> None:
        self.workspace_chosen.emit(kind)


class NoticeBar(QWidget):
    """Error message under the top bar. It stays until it is dismissed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        tone = _named_label("noticeTone", "Error")
        tone.setProperty("tone", "error")
        self._label = _named_label("noticeWords")
        self._label.setWordWrap(True)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        dismiss = QToolButton()
        dismiss.setText("Dismiss")
        dismiss.clicked.connect(self.hide)
        horizontal(tone, (self._label, 1), dismiss, inside=self, margins=(12, 6, 12, 6), spacing=None)
        self.hide()

    @property
    def text(self) -> str:
        """The message shown."""
        return self._label.text()

    def show_error(self, sentence: str) -> None:
        """Show an error message."""
        self._label.setText(sentence)
        self.show()
        announce(self, sentence, urgent=True)


class StatusLine(QWidget):
    """Status line: item and run on screen, the latest message, background work, and whether all is saved."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusLine")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_lengths(self, height=STATUS_HEIGHT)
        self.text = ElidedLabel()
        self.text.setObjectName("statusText")
        set_lengths(self.text, minimumWidth=TEXT_WIDTH)
        self._message = ElidedLabel("", "accent")
        self._message.setObjectName("statusMessage")
        self._message.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._message.hide()
        self._background = ElidedLabel(elide=Qt.TextElideMode.ElideMiddle)
        self._background.setObjectName("statusBackground")
        self._background.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._background.hide()
        self.saved = _named_label("statusSaved")
        horizontal(
            (self.text, 1),
            self._message,
            self._background,
            self.saved,
            inside=self,
            margins=(12, 0, 12, 0),
            spacing=16,
        )

    @property
    def message(self) -> str:
        """The latest message."""
        return self._message.text()

    def show_message(self, sentence: str) -> None:
        """Show a message about a completed action; an empty message hides the last one."""
        self._message.setText(sentence)
        self._message.setVisible(bool(sentence))
        announce(self, sentence)

    def show_background(self, job: Job) -> None:
        """Show the progress of background work until it ends."""
        self._background.setText(", ".join(part for part in (job.text, time_left(job.seconds_left)) if part))
        self._background.setVisible(not job.over)


def _named_label(name: str, text: str = "") -> QLabel:
    label = plain_label(text)
    label.setObjectName(name)
    return label


class ActionBar(QWidget):
    """Problem of the study, with buttons for possible actions; the first one is recommended.

    `title`: title in front of the text; empty for none. `actions`: the buttons' labels.
    """

    def __init__(self, title: str, actions: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        tone = _named_label("noticeTone", title)
        tone.setProperty("tone", "error")
        if not title:
            tone.hide()
        self.label = plain_label(wrap=True, selectable=True)
        self.buttons = [QPushButton(words) for words in actions]
        theme.set_role(self.buttons[0], "primary")
        row = horizontal(tone, (self.label, 1), inside=self, margins=(12, 6, 12, 6), spacing=8)
        for button in self.buttons:
            button.setAutoDefault(True)  # Return presses it, as in a dialog
            row.addWidget(button)
        self.hide()


def ask_before_file(
    window: QWidget, title: str, subject: str, outdated: Sequence[str], on_done: Callable[[], object],
    *, blind: bool, instead: str = "",
) -> None:  # fmt: skip
    """Write a file; ask first if its result is outdated, or if it shows what blind mode hides.

    `title`: what is done. `subject`: file that is written, in words. `outdated`: reasons. `instead`: how to
    write it without names.
    """
    if not outdated and not blind:
        on_done()
        return
    reasons = [*outdated, *([f"{NAMED_IN_FILE} {instead}".rstrip()] if blind else [])]
    problem = "The result is outdated." if outdated else "You review blind."
    ask(window, title, f"{subject}? {problem}", "\n".join(reasons), f"{title} anyway", "Cancel", on_done)


def ask(
    window: QWidget,
    title: str,
    question: str,
    more: str,
    act: str,
    stay: str,
    on_done: Callable[[], object],
    otherwise: Callable[[], object] | None = None,
) -> QMessageBox:
    """Ask for confirmation in a box over the window, without blocking it. Esc and Return cancel.

    `title`, `question`, `more`: the box's title, its question, and details below it. `act`, `stay`: the
    labels of the buttons; `stay` is the default. `on_done`, `otherwise`: called after `act` was pressed, and
    after it was not.
    """
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(question)
    box.setInformativeText(more)
    box.addButton(act, QMessageBox.ButtonRole.AcceptRole)
    safe = box.addButton(stay, QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(safe)
    box.setEscapeButton(safe)
    box.accepted.connect(on_done)
    if otherwise is not None:
        box.rejected.connect(otherwise)
    box.open()
    return box


class CohortBar(ActionBar):
    """Bar under the top bar that counts the cases without results, with buttons to list and dismiss them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", ("List cases\u2026", "Dismiss"), parent)
        self.list_cases, self.dismiss = self.buttons
        self.dismiss.clicked.connect(self.hide)


class CohortCases(QObject):
    """List of the cases of the open study's cohort that have no results."""

    def __init__(self, document: Document, bar: CohortBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._bar, self._window = document, bar, window
        bar.list_cases.clicked.connect(self.show_list)
        document.replaced.connect(self._on_replaced)

    @property
    def failed(self) -> list[CohortCase]:
        """Cases without results."""
        contents = self._document.contents
        return [case for case in contents.cohort if not case.is_done] if contents is not None else []

    def show_list(self) -> None:
        """Open the list of the cases without results."""
        from raterscope.widgets.dialogs.output_dialogs import FailedCase, FailedCasesDialog

        cases = [FailedCase(case.case, case.kind, case.status, case.reason) for case in self.failed]
        FailedCasesDialog(self._in_words(), cases, self._window).open()

    def _on_replaced(self) -> None:
        self._bar.setVisible(bool(self.failed))
        self._bar.label.setText(self._in_words())

    def _in_words(self) -> str:
        contents, failed = self._document.contents, len(self.failed)
        if contents is None or not failed:
            return ""
        return (
            f"{failed:,} of {counted(len(contents.cohort), 'case')} {'has' if failed == 1 else 'have'} no "
            "results. To add them, correct their files, then run `raterscope batch` and `raterscope gather` "
            "again."
        )
