"""Cache of thumbnails: requested when scrolling rests, least recently used ones dropped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QWidget

from raterscope.widgets.text_size import text_size

__all__ = ["PictureShelf"]

MOST_PICTURES = 1000
SETTLED_MS = 40


class PictureShelf(QObject):
    """Thumbnails by number.

    Parameters
    ----------
    side : int
        Longest side of a thumbnail, in device-independent pixels.
    in_sight : callable
        Returns the visible numbers.
    parent : QWidget
        Widget that shows the thumbnails.

    Signals
    -------
    wanted : int
        Number of a missing picture; answer with `keep`.
    changed
        A picture arrived, or all were discarded.
    """

    wanted = Signal(int)
    changed = Signal()

    def __init__(self, side: int, in_sight: Callable[[], Iterable[int]], parent: QWidget) -> None:
        super().__init__(parent)
        self._shower = parent
        self._side, self._in_sight = side, in_sight
        self.kept: OrderedDict[int, QPixmap | None] = OrderedDict()
        self._asked: set[int] = set()
        self._rested = QTimer(self)
        self._rested.setSingleShot(True)
        self._rested.setInterval(SETTLED_MS)
        self._rested.timeout.connect(self._ask)

    def rest(self) -> None:
        """Restart the timer after which visible pictures are requested."""
        self._rested.start()

    def ask_again(self) -> None:
        """Request again what was requested and did not arrive."""
        self._asked.clear()
        self._rested.start()

    def keep(self, number: int, picture: QImage | None) -> None:
        """Store a picture; None if it is not available."""
        small = None
        if picture is not None and not picture.isNull():
            keep, smooth = Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
            ratio = self._shower.devicePixelRatioF() * text_size()
            side = round(self._side * ratio)
            small = QPixmap.fromImage(picture.scaled(side, side, keep, smooth))
            small.setDevicePixelRatio(ratio)
        self.kept[number] = small
        self.kept.move_to_end(number)
        while len(self.kept) > MOST_PICTURES:
            self.kept.popitem(last=False)
        self._asked.discard(number)
        self.changed.emit()

    def forget(self) -> None:
        """Discard all pictures, because the numbers now belong to other items."""
        self.kept.clear()
        self.ask_again()
        self.changed.emit()

    def _ask(self) -> None:
        for number in self._in_sight():
            if number not in self._asked and number not in self.kept:
                self._asked.add(number)
                self.wanted.emit(number)
