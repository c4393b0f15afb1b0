"""What can be done with a stream of clicks: three buttons, and a sentence for each."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import ElidedLabel, plain_label
from raterscope.widgets.text_size import pixels, set_lengths
from raterscope.widgets.wrapping import WrappingRow

__all__ = ["Offers"]

REPLAY = "Replay the clicks on this image, one annotator after another."
WATCH = "CSV, JSON lines or Zooniverse exports that are still growing."
WIDTH = 300


class Offers(WrappingRow):
    """What can be done with a stream: replay what is there, watch what comes, go on with what was stopped.

    Signals
    -------
    replay_requested, watch_requested, resume_requested
    """

    replay_requested = Signal()
    watch_requested = Signal()
    resume_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        self.replay, self.watch = QPushButton("Replay these clicks"), QPushButton("Watch a file or folder…")
        self.resume = QPushButton("Resume")
        theme.set_role(self.replay, "primary")
        self._replay_words = plain_label(REPLAY, "second", wrap=True)
        self._source = ElidedLabel("", elide=Qt.TextElideMode.ElideMiddle)
        self._resume_words = plain_label("", "second", wrap=True)
        self._resume = _Offer(self.resume, self._source, self._resume_words)
        watch = _Offer(self.watch, plain_label(WATCH, "second", wrap=True))
        replay = _Offer(self.replay, self._replay_words)
        super().__init__((self._resume, replay, watch), 24, 12, parent=parent)
        self._resume.hide()
        self.replay.clicked.connect(self.replay_requested)
        self.watch.clicked.connect(self.watch_requested)
        self.resume.clicked.connect(self.resume_requested)

    def set_replayable(self, why_not: str) -> None:
        """Say why nothing can be replayed; no words where it can."""
        self.replay.setEnabled(not why_not)
        self._replay_words.setText(why_not or REPLAY)
        self._choose_first()

    def set_resumable(self, name: str, words: str) -> None:
        """Offer to go on with a source that was stopped; no name for none."""
        self._source.setText(name)
        self._resume_words.setText(words)
        self.resume.setAccessibleName(f"Resume {name}")
        self._resume.setVisible(bool(name))
        self._choose_first()

    def _choose_first(self) -> None:
        """Let what is likely to be wanted stand out."""
        resume, replay = not self._resume.isHidden(), self.replay.isEnabled()
        theme.set_role(self.resume, "primary" if resume else "")
        theme.set_role(self.replay, "primary" if replay and not resume else "")
        theme.set_role(self.watch, "" if replay or resume else "primary")


class _Offer(QWidget):
    """A button with what is said of it beneath, as wide as a sentence is read well, or narrower."""

    def __init__(self, button: QPushButton, *words: QWidget) -> None:
        super().__init__()
        set_lengths(self, maximumWidth=WIDTH)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        for widget in words:
            column.addWidget(widget)

    def sizeHint(self) -> QSize:
        return QSize(pixels(WIDTH), super().sizeHint().height())
