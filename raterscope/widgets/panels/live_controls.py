"""What has come of a source of clicks that is watched, and when."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QElapsedTimer, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from raterscope.text.numbers import count, duration
from raterscope.widgets import theme
from raterscope.widgets.parts import ElidedLabel, plain_label
from raterscope.widgets.text_size import set_lengths
from raterscope.widgets.wrapping import WrappingRow, beside

__all__ = ["LiveControls", "LiveLine"]

TICK_MS = 1000
FIGURE_WIDTH = 80


@dataclass(frozen=True, slots=True)
class LiveLine:
    """What has come of a source that is watched.

    Attributes
    ----------
    name : str
        The source's.
    words : str
        What is being done: "reading", "waiting for new clicks".
    paused : bool
    since : float or None
        Seconds since something came; None where nothing has.
    clicks, annotators, images : int
        So far.
    refused : int
        Lines that were left out because something is wrong in them.
    notice : str
        What is to be known of how the source was read, last.
    """

    name: str
    words: str
    paused: bool
    since: float | None
    clicks: int
    annotators: int
    images: int
    refused: int = 0
    notice: str = ""


class LiveControls(QWidget):
    """What has come, when last, Pause and Stop.

    Signals
    -------
    pause_toggled : bool
    stop_requested
    """

    pause_toggled = Signal(bool)
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._line: LiveLine | None = None
        self._heard = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tell_since)
        names = ("last arrival", "clicks", "annotators", "images", "rejected lines")
        self._figures = {name: plain_label() for name in names}
        cells = [_cell(figure, name) for name, figure in self._figures.items()]
        self.pause, self.stop = QPushButton("Pause"), QPushButton("Stop")
        set_lengths(self.pause, minimumWidth=84)
        self.stop.setToolTip("Save the current result as a run. You can resume it later")
        self._notice = ElidedLabel("", "disputed")
        groups = WrappingRow((beside(self.pause, self.stop), *cells), 8, 6)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(groups)
        column.addWidget(self._notice)
        self.setFocusProxy(self.pause)
        self.pause.clicked.connect(self.toggle)
        self.stop.clicked.connect(self.stop_requested)

    def set_line(self, line: LiveLine) -> None:
        """Show what has come."""
        self._line = line
        self._heard.start()
        for name in ("clicks", "annotators", "images"):
            self._figures[name].setText(count(getattr(line, name)))
        refused = self._figures["rejected lines"]
        refused.setText(count(line.refused))
        theme.set_role(refused, "rejected" if line.refused else "")
        self._notice.setText(line.notice)
        self.pause.setText("Resume" if line.paused else "Pause")
        self._tell_since()
        self._settle()

    def toggle(self) -> None:
        """Ask to pause, or to go on."""
        if self._line is not None:
            self.pause_toggled.emit(not self._line.paused)

    def showEvent(self, event: QShowEvent) -> None:
        """Tell how long ago something came, as long as it is seen."""
        super().showEvent(event)
        self._settle()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing ticks unseen."""
        super().hideEvent(event)
        self._timer.stop()

    def _settle(self) -> None:
        if self.isVisible() and self._line is not None and self._line.since is not None:
            self._tell_since()
            self._timer.start()
        else:
            self._timer.stop()

    def _tell_since(self) -> None:
        line = self._line
        since = None if line is None or line.since is None else line.since + self._heard.elapsed() / 1000
        words = "none yet" if since is None else "just now" if since < 1 else f"{duration(since)} ago"
        self._figures["last arrival"].setText(words)


def _cell(figure: QWidget, name: str) -> QWidget:
    set_lengths(figure, minimumWidth=FIGURE_WIDTH)
    figure.setAccessibleDescription(name)
    block = QWidget()
    column = QVBoxLayout(block)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(figure)
    column.addWidget(plain_label(name, "hint"))
    return block
