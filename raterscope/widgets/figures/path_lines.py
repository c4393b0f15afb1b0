"""Every line of a path, worked out some at a time and painted into an image for each behaviour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QImage

from raterscope.widgets.figures.behaviours import BEHAVIOUR_WORDS, behaviour_colour
from raterscope.widgets.figures.line_raster import column_spans, cover, coverage_image

__all__ = ["STYLES", "PathFrame", "PathLines"]

STYLES = ((1.1, 0.55, None), (1.7, 0.95, (10.0, 15.0)), (2.2, 0.95, None), (1.1, 0.55, (2.0, 6.0)))
"""Width, opacity and dash of the lines of each behaviour."""

TOGETHER = 64
"""So many lines are worked out at once; then the window gets its turn."""


@dataclass(frozen=True, eq=False)
class PathFrame:
    """Where the lines of p annotators run over T places.

    Attributes
    ----------
    x : (T,) float
        How far along the axis the places lie, 0 to 1.
    bias : (T, p) float
    held : bool
        Whether a bias holds until the next place.
    drawn : (p,) bool
        Who has a line.
    behaviour : (p,) int
        Numbers in `BEHAVIOURS`.
    least, most : float
        The biases at the lower and the upper edge.
    columns, rows : int
        Of the picture's own pixels.
    height : float
        What of its rows the biases fill.
    scale : float
        Its pixels to one of the screen's, by which pens are wider.
    """

    x: NDArray[np.floating]
    bias: NDArray[np.floating]
    held: bool
    drawn: NDArray[np.bool_]
    behaviour: NDArray[np.integer]
    least: float
    most: float
    columns: int
    rows: int
    height: float
    scale: float


class PathLines(QObject):
    """Works lines out in turns of the event loop, so that a path of thousands never holds the window up.

    Attributes
    ----------
    low, high : (columns, p) float32
        The least and the largest bias of each line in every column of the picture; 0 where none has come in.
    done : int
        So many lines are known.
    images : list of QImage
        One a behaviour, once all lines are in them.

    Signals
    -------
    changed
        There is more to be drawn.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.low = self.high = np.empty((0, 0), np.float32)
        self.done = 0
        self.images: list[QImage] = []
        self._frame: PathFrame | None = None
        self._covers: list[NDArray[np.float64]] = []
        self._next, self._kept = 0, False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._work)

    @property
    def finished(self) -> bool:
        """Whether all lines are in the picture."""
        return not self._timer.isActive()

    def clear(self) -> None:
        """Show no line."""
        self._timer.stop()
        self._frame, self.images = None, []

    def start(self, frame: PathFrame, *, recoloured: bool = False) -> None:
        """Begin to work the picture out; recoloured, the lines run as they did."""
        self._timer.stop()
        many = frame.bias.shape[1]
        self._frame = frame
        self._kept = recoloured and self.done == many
        if not self._kept:
            self.low = np.zeros((frame.columns, many), np.float32)
            self.high = np.zeros((frame.columns, many), np.float32)
            self.done = 0
        self._next = 0
        self._covers = [np.zeros((frame.columns, frame.rows + 2)) for _ in BEHAVIOUR_WORDS]
        self._timer.start()
        if not recoloured:
            self._work()

    def paint(self) -> None:
        """Paint the images anew: other colours."""
        if self._frame is not None and self.finished:
            self.images = [
                coverage_image(found, behaviour_colour(behaviour), STYLES[behaviour][1])
                for behaviour, found in enumerate(self._covers)
            ]
        self.changed.emit()

    def _work(self) -> None:
        """Work some lines out; the last ones finish the picture."""
        frame = self._frame
        assert frame is not None
        many = frame.bias.shape[1]
        some = slice(self._next, self._next + TOGETHER)
        if not self._kept:
            bias = np.nan_to_num(np.asarray(frame.bias[:, some], dtype=np.float32))
            x = np.maximum.accumulate(np.clip(frame.x, 0, 1)) * frame.columns
            self.low[:, some], self.high[:, some] = column_spans(x, bias, frame.columns, held=frame.held)
        least, largest = self.low[:, some], self.high[:, some]
        per_bias = frame.height / (frame.most - frame.least)
        top = np.asarray((frame.most - largest) * per_bias, dtype=np.float32)
        bottom = np.asarray((frame.most - least) * per_bias, dtype=np.float32)
        # Before an annotator's bias comes in, its line would lie on everybody's.
        hidden = (least == 0) & (largest == 0)
        for behaviour, (width, _, dash) in enumerate(STYLES):
            of = frame.drawn[some] & (frame.behaviour[some] == behaviour)
            if of.any():
                dashes = None if dash is None else (dash[0] * frame.scale, dash[1] * frame.scale)
                found = cover(
                    top[:, of], bottom[:, of], frame.rows, width * frame.scale, dashes, hidden[:, of]
                )
                self._covers[behaviour] += found
        self._next += TOGETHER
        self.done = max(self.done, min(self._next, many))
        if self._next >= many:
            self._timer.stop()
            self.paint()
