"""Bars of the window (top, notices, actions, status) and its confirmation box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QToolButton,
    QWidget,
)

from raterscope.app.jobs import Job
from raterscope.text.numbers import time_left
from raterscope.widgets import theme
from raterscope.widgets.parts import ElidedLabel, plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["ActionBar", "NoticeBar", "StatusLine", "TopBar", "ask"]


TOP_BAR_HEIGHT = 44
STATUS_HEIGHT = 24
BUTTON_WIDTH = 112
TAB_AROUND = 30
"""What a tab's frame and padding take at both sides of its word."""


class TopBar(QWidget):
    """Menu, study, workspaces, Fuse; while something is fused, its progress and Cancel stand for Fuse.

    Parameters
    ----------
    workspaces : sequence of (kind, title)
        The tabs.
    """

    workspace_chosen = Signal(str)
    fuse_requested = Signal()
    cancel_requested = Signal()
    help_requested = Signal()

    def __init__(self, workspaces: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("topBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_lengths(self, height=TOP_BAR_HEIGHT)

        self._menu_button = QToolButton()
        self._menu_button.setObjectName("menuButton")
        self._menu_button.setText("Raterscope")
        self._menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu_button.setToolTip("Menu: study, import, export, undo, view")
        self._study = _plain_label("studyName")
        self._tabs = {kind: self._tab(kind, title) for kind, title in workspaces}
        self._fuse_words = ""
        self._progress = QProgressBar()
        self._progress.setRange(0, 1000)
        self._progress.setTextVisible(False)
        set_lengths(self._progress, width=120)
        self._progress_words = ElidedLabel(elide=Qt.TextElideMode.ElideMiddle)
        self._progress_words.setObjectName("progressWords")
        self._progress_words.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._cancel = QPushButton("Cancel")
        self._cancel.setMinimumWidth(BUTTON_WIDTH)
        self._cancel.clicked.connect(self.cancel_requested)
        self.fuse = QPushButton("Fuse")
        self.fuse.setObjectName("primary")
        self.fuse.setMinimumWidth(BUTTON_WIDTH)
        self.fuse.clicked.connect(self.fuse_requested)
        self.help = QToolButton()
        self.help.setText("?")
        self.help.setToolTip("Keyboard shortcuts (?)")
        self.help.setAccessibleName("Keyboard shortcuts")
        self.help.clicked.connect(self.help_requested)

        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(8)
        left, right = QHBoxLayout(), QHBoxLayout()
        left.addWidget(self._menu_button)
        left.addWidget(self._study, 1)
        right.addWidget(self._progress_words, 1)
        for widget in (self._progress, self._cancel, self.fuse, self.help):
            right.addWidget(widget)
        right.insertStretch(0)
        row.addLayout(left, 1)
        for tab in self._tabs.values():
            row.addWidget(tab)
        row.addLayout(right, 1)
        theme.notifier().changed.connect(self._fit_tabs)
        self._fit_tabs()
        self._possible = False
        self.set_fusing(None)
        self.set_study(None)

    def set_menu(self, menu: QMenu) -> None:
        """Give the menu that the program's name opens."""
        self._menu_button.setMenu(menu)

    def set_study(self, path: Path | None) -> None:
        """Name the study."""
        self._study.setText(path.name if path else "")
        self._study.setToolTip(str(path) if path else "")
        for tab in self._tabs.values():
            tab.setVisible(path is not None)
        self.set_fusing_possible(False)

    def set_fusing_possible(self, possible: bool) -> None:
        """Offer Fuse where there is something to fuse."""
        self._possible = possible
        self.fuse.setVisible(possible and self._cancel.isHidden())

    def set_workspace(self, kind: str, fuse_words: str) -> None:
        """Mark the workspace that is on screen; the words are Fuse's tooltip there."""
        self._tabs[kind].setChecked(True)
        self._fuse_words = fuse_words
        self.set_stale("")

    def set_stale(self, words: str) -> None:
        """Ask for a new fusion, and say why; with no words, ask for none."""
        self.fuse.setText("Fuse again" if words else "Fuse")
        self.fuse.setToolTip(words or self._fuse_words)

    def set_fusing(self, job: Job | None) -> None:
        """Show a job in the place of the Fuse button, or the button."""
        busy = job is not None
        for widget in (self._progress_words, self._progress, self._cancel):
            widget.setVisible(busy)
        self.fuse.setVisible(not busy and self._possible)
        if job is not None:
            self._progress.setValue(round(1000 * job.fraction))
            left = time_left(job.seconds_left)
            self._progress_words.setText(", ".join(part for part in (job.words, left) if part))
            self._cancel.setEnabled(job.state == "running")

    def _tab(self, kind: str, title: str) -> QPushButton:
        tab = QPushButton(title)
        tab.setObjectName("workspaceTab")
        tab.setCheckable(True)
        tab.setAutoExclusive(True)
        set_lengths(tab, height=TOP_BAR_HEIGHT - 16)
        tab.clicked.connect(partial(self._on_tab, kind))
        return tab

    def _fit_tabs(self) -> None:
        """Give every tab room for its word in bold, as when it is chosen: a button reckons with plain."""
        bold = QFontMetrics(theme.widget_font(bold=True))
        for tab in self._tabs.values():
            tab.setMinimumWidth(bold.horizontalAdvance(tab.text()) + TAB_AROUND)

    def _on_tab(self, kind: str) -> None:
        self.workspace_chosen.emit(kind)


class NoticeBar(QWidget):
    """One sentence under the top bar: why something could not be done. It stays until it is dismissed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        tone = _plain_label("noticeTone")
        tone.setProperty("tone", "error")
        tone.setText("Error")
        self._words = _plain_label("noticeWords")
        self._words.setWordWrap(True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        dismiss = QToolButton()
        dismiss.setText("Dismiss")
        dismiss.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.addWidget(tone)
        row.addWidget(self._words, 1)
        row.addWidget(dismiss)
        self.hide()

    @property
    def text(self) -> str:
        """The sentence shown."""
        return self._words.text()

    def show_error(self, sentence: str) -> None:
        """Say what could not be done."""
        self._words.setText(sentence)
        self.show()


class StatusLine(QWidget):
    """What is shown, which run, how it ended; then the last news; at the right, that all is kept."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusLine")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_lengths(self, height=STATUS_HEIGHT)
        self._text = ElidedLabel()
        self._text.setObjectName("statusText")
        self._news = ElidedLabel("", "accent")
        self._news.setObjectName("statusNews")
        self._news.hide()
        self._kept = _plain_label("statusKept")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(16)
        row.addWidget(self._text, 3)
        row.addWidget(self._news, 2)
        row.addWidget(self._kept)

    def set_text(self, text: str) -> None:
        """Say what is shown."""
        self._text.setText(text)

    @property
    def news(self) -> str:
        """The last news."""
        return self._news.text()

    def set_news(self, sentence: str) -> None:
        """Say what was done."""
        self._news.setText(sentence)
        self._news.setVisible(bool(sentence))

    def set_kept(self, text: str) -> None:
        """Say whether all is on disk."""
        self._kept.setText(text)


def _plain_label(name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


class ActionBar(QWidget):
    """Hidden until there is something to say; the first button is the recommended one.

    Parameters
    ----------
    title : str
    actions : sequence of str
        The buttons' words.
    parent : QWidget, optional
    """

    def __init__(self, title: str, actions: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        tone = plain_label(title)
        tone.setObjectName("noticeTone")
        tone.setProperty("tone", "error")
        self.words = plain_label(wrap=True, selectable=True)
        self.buttons = [QPushButton(words) for words in actions]
        theme.set_role(self.buttons[0], "primary")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(tone)
        row.addWidget(self.words, 1)
        for button in self.buttons:
            button.setAutoDefault(True)  # Return presses it, as in a dialog
            row.addWidget(button)
        self.hide()


def ask(
    window: QWidget,
    title: str,
    question: str,
    more: str,
    act: str,
    stay: str,
    then: Callable[[], object],
    otherwise: Callable[[], object] | None = None,
) -> QMessageBox:
    """Ask something, while all behind goes on.

    Parameters
    ----------
    window : QWidget
    title, question, more : str
        The question, and what there is to know for the answer.
    act, stay : str
        The buttons; the second is the safe answer.
    then, otherwise : callable
        Called when the first was pressed, and when not.
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
    box.accepted.connect(then)
    if otherwise is not None:
        box.rejected.connect(otherwise)
    box.open()
    return box
