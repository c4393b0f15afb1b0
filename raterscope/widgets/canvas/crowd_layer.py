"""All clicks: one by one where they can be told apart, as a density where not, prepared aside where many."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QPainter

from raterscope.widgets.canvas.click_layer import ClickLayer
from raterscope.widgets.canvas.density_layer import BINS, FINE_BINS, DensityLayer
from raterscope.widgets.canvas.marks import ClickMarks
from raterscope.widgets.canvas.viewport import Rect, Viewport

__all__ = ["CrowdLayer"]

AT_ONCE = 20_000
"""Clicks that are sorted and counted within a few milliseconds; more are prepared in a thread."""


@dataclass(frozen=True, eq=False)
class _Wish:
    """What is to be shown."""

    clicks: ClickMarks
    hidden: frozenset[int] = frozenset()
    solo: int | None = None
    extent: Rect = (0.0, 0.0, 1.0, 1.0)

    @property
    def many(self) -> bool:
        return len(self.clicks) > AT_ONCE


class CrowdLayer(QObject):
    """The annotators' clicks.

    Signals
    -------
    prepared
        Clicks that were too many to be sorted at once are shown from now on.
    """

    prepared = Signal()
    _made = Signal(object, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wish = _Wish(ClickMarks.none())
        self._clicks, self._density = ClickLayer(), DensityLayer()
        self._counted = True
        self._scale = 1.0
        self.as_density = False
        self._made.connect(self._on_made, Qt.ConnectionType.QueuedConnection)

    @property
    def many(self) -> bool:
        """Whether painting them takes its time."""
        return self._wish.many

    @property
    def highest(self) -> float:
        """The highest density, clicks a square unit, as it is drawn at the scale looked at."""
        return self._density.highest_at(self._scale)

    def show(
        self,
        *,
        clicks: ClickMarks | None = None,
        shown: tuple[frozenset[int], int | None] | None = None,
        extent: Rect | None = None,
    ) -> None:
        """Show other clicks, those of other annotators (who are hidden, who alone is shown), or elsewhere."""
        before = self._wish
        hidden, solo = (before.hidden, before.solo) if shown is None else shown
        self._wish = _Wish(
            before.clicks if clicks is None else clicks,
            hidden,
            solo,
            before.extent if extent is None else extent,
        )
        sorted_before = self._clicks if self._wish.clicks is self._clicks.clicks else None
        if self._wish.many:
            if clicks is not None:  # those of another image must not lie on this one
                self._clicks, self._density = ClickLayer(), DensityLayer()
            work = (self._wish, sorted_before, self._made)
            threading.Thread(target=_prepare, args=work, name="clicks", daemon=True).start()
        else:
            self._clicks, self._counted = _sorted(self._wish, sorted_before), False

    def look(self, viewport: Viewport, density_wanted: bool) -> bool:
        """Settle what is drawn at a scale; True where it is no longer what was drawn before."""
        self._scale = viewport.scale
        too_many = self._clicks.too_many(viewport)
        changed, self.as_density = too_many != self.as_density, too_many
        if not self._counted and (too_many or density_wanted):
            self._density = _counted(self._wish, self._clicks)
            self._counted = changed = True
        return changed

    def of(self, annotator: int, viewport: Viewport) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Give x and y of an annotator's clicks in sight; none where the density stands for them."""
        if self.as_density:
            return np.empty(0), np.empty(0)
        left, top, right, bottom = viewport.visible
        return self._clicks.of(annotator, QRectF(left, top, right - left, bottom - top))

    def paint(self, painter: QPainter, scale: float, rect: QRectF, *, clicks: bool, density: bool) -> None:
        """Paint what lies in `rect`: the clicks, if asked for, and their density, if asked for or needed."""
        if density or (clicks and self.as_density):
            self._density.paint(painter, scale, rect)
        if clicks and not self.as_density:
            self._clicks.paint(painter, scale, rect)

    def _on_made(self, wish: _Wish, clicks: ClickLayer, density: DensityLayer) -> None:
        if wish is self._wish:
            self._clicks, self._density, self._counted = clicks, density, True
            self.prepared.emit()


def _sorted(wish: _Wish, before: ClickLayer | None) -> ClickLayer:
    layer = ClickLayer()
    layer.set_clicks(wish.clicks, before)
    layer.set_annotators_shown(set(wish.hidden), wish.solo)
    return layer


def _counted(wish: _Wish, clicks: ClickLayer) -> DensityLayer:
    layer = DensityLayer()
    layer.set_clicks(wish.clicks, clicks.shown, wish.extent, FINE_BINS if wish.many else (BINS,))
    return layer


def _prepare(wish: _Wish, before: ClickLayer | None, made: Any) -> None:
    clicks = _sorted(wish, before)
    density = _counted(wish, clicks)
    try:
        made.emit(wish, clicks, density)
    except RuntimeError:  # the window is gone, and the layer with it
        return
