"""Order of the queue of images: by dispute, or by image quality, which is measured in the background."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from functools import partial

from raterscope.app.kinds.clicks.image_quality import (
    UNREADABLE,
    Located,
    find_unmeasured,
    measure_images,
    store_quality,
)
from raterscope.app.session import LatestTask
from raterscope.app.study.records import ImageQuality
from raterscope.app.workspaces.clicks.screen import IN_FOCUS, ORDERS, ClicksCore, ClicksPart
from raterscope.text import count, percent, small_figure

SORT_SECONDS = 2.0
"""Least time between two sorts while images are measured."""


class ImageOrder(ClicksPart):
    """Sorts the queue as chosen above it; measures images when their quality is needed first."""

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._panel = core.screen.queue
        self._known: dict[int, ImageQuality] = {}
        self._reading, self._measuring = LatestTask(), LatestTask()
        self._sorted = 0.0
        self._panel.order.currentIndexChanged.connect(self._on_order)
        core.document.replaced.connect(self._forget)
        core.document.changed.connect(self._read)

    def step(self) -> None:
        """Choose the next order."""
        box = self._panel.order
        box.setCurrentIndex((box.currentIndex() + 1) % box.count())
        self._screen.message.emit(f"Images sorted: {box.currentText()}.")

    def _forget(self) -> None:
        self._reading.cancel()
        self._measuring.cancel()
        self._known = {}
        self._panel.order.setCurrentIndex(0)

    def _on_order(self) -> None:
        self._sort()
        self._read()

    def _read(self) -> None:
        """Read the stored quality, and measure images without one."""
        if self._panel.order.currentIndex() and self._document.contents and not self._measuring.busy:
            job = self._document.ask("Reading the quality of the images", find_unmeasured)
            self._reading.follow(job, self._on_read)

    def _on_read(self, answer: tuple[dict[int, ImageQuality], Located]) -> None:
        known, unmeasured = answer
        self._known |= known
        located = [pair for pair in unmeasured if pair[0].id not in self._known]
        self._sort()
        if located:
            work = partial(measure_images, located)
            job = self._jobs.start("Measuring focus and saturation", work, background=True)
            job.partial.connect(self._on_some)
            self._measuring.follow(job, self._on_measured, stopped=self._store)

    def _on_some(self, measured: Mapping[int, ImageQuality]) -> None:
        if self._measuring.busy:
            self._known |= measured
            if time.monotonic() > self._sorted + SORT_SECONDS:
                self._sort()

    def _on_measured(self, measured: Mapping[int, ImageQuality]) -> None:
        self._known |= measured
        self._sort()
        self._store()
        unreadable = list(measured.values()).count(UNREADABLE)
        if unreadable:
            self._screen.message.emit(f"{count(unreadable, 'image')} could not be read and come last.")

    def _store(self) -> None:
        if self._document.contents is not None and self._known:
            work = partial(store_quality, dict(self._known))
            self._document.ask("Storing the quality of the images", work)

    def _sort(self) -> None:
        self._sorted = time.monotonic()
        order = self._panel.order.currentIndex()
        if not order:
            self._panel.set_order(None, {})
            return
        rank: dict[Hashable, float] = {}
        measures: dict[Hashable, str] = {}
        for image, quality in self._known.items():
            if ORDERS[order] == IN_FOCUS and quality.focus is not None:
                rank[image], measures[image] = quality.focus, f"focus {_figure(quality.focus)}"
            elif ORDERS[order] != IN_FOCUS and quality.saturation is not None:
                rank[image] = -quality.saturation
                measures[image] = f"{_percent(quality.saturation)} saturated"
        self._panel.set_order(rank, measures)


def _percent(share: float) -> str:
    return "< 0.01 %" if 0 < share < 0.00005 else percent(share, 2)


def _figure(value: float) -> str:
    return count(round(value)) if value >= 10 else small_figure(value)
