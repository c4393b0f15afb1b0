"""Lines of a review queue: summaries of its items in order, and sums over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from raterscope.app.memory import free_gradually
from raterscope.app.workspaces.review_order import Part
from raterscope.widgets.panels.queue_items import QueuedItems, QueueItem

Unit = tuple[tuple[int, str], Part]
"""A part that is reviewed in one go, with its image and name."""


class Summary(Protocol):
    """Summary of an image for its line in the queue."""

    @property
    def fused(self) -> bool:
        """Whether the image is fused."""

    @property
    def disputed(self) -> int:
        """Number of disputed items that are left."""

    @property
    def parts(self) -> Sequence[Part]:
        """Parts that are reviewed in one go each; none if it is not fused."""

    @property
    def doubt(self) -> float:
        """Sort key of the lines."""

    @property
    def amount(self) -> str:
        """The doubt with its unit, which is the same in all lines."""

    @property
    def contested(self) -> int:
        """Number of items on which several experts differ."""

    @property
    def done(self) -> bool:
        """Whether nothing is left to settle."""

    @property
    def flag(self) -> str | None:
        """Why it was flagged; None if it is not."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers by which the queue can be filtered."""

    def in_words(self) -> str:
        """Describe the image in a line."""


@dataclass
class Totals:
    """Sums over the images of a queue, kept up to date so that a decision changes one image only."""

    fused: int = 0
    done: int = 0
    disputed: int = 0
    parts: int = 0
    open: int = 0
    skipped: int = 0
    matter: int = 0
    with_matter: int = 0
    contested: int = 0

    def add(self, summary: Summary, parts: Sequence[Part], sign: int = 1) -> None:
        """Add the numbers of an image."""
        self.fused += sign * summary.fused
        self.done += sign * summary.done
        self.disputed += sign * summary.disputed
        self.contested += sign * summary.contested
        for part in parts:
            self.parts += sign * part.total
            self.open += sign * part.open
            self.skipped += sign * part.skipped
            self.matter += sign * (part.matter or 0)
            self.with_matter += sign * (part.matter is not None)

    def subtract(self, summary: Summary, parts: Sequence[Part]) -> None:
        """Subtract the numbers of an image."""
        self.add(summary, parts, -1)

    def part(self) -> Part:
        """Return the sum of all parts as one part."""
        matter = self.matter if self.with_matter else None
        return Part("", self.parts, self.open, self.skipped, matter)


class QueueLines:
    """Summaries of the images of a queue, their order, and the sums over all.

    For 10,000 images this takes longer than a frame: make them in another thread.

    `names`: names of the images. `unknown`: summary of an image without a result. `summaries`: summaries of
    the other images; there may be more than names. `short`: short names, as in earlier lines.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        unknown: Summary,
        summaries: Mapping[int, Summary],
        short: Mapping[str, str],
    ) -> None:
        self.names = names
        self._unknown = unknown
        self.summaries = dict(summaries)
        self.totals = Totals()
        self._parts: dict[int, tuple[Part, ...]] = {}
        self._items: dict[int, QueueItem] = {}
        for image in names:
            summary = self.of(image)
            self._parts[image] = tuple(summary.parts)
            self.totals.add(summary, self._parts[image])
            self._items[image] = self._line(image)
        self.sort(short)
        self.units()

    def release(self) -> None:
        """Release the data of the images; the lines are not used any more."""
        free_gradually(self.summaries, self._parts, self._items)

    def sort(self, short: Mapping[str, str]) -> None:
        """Sort by dispute, the most disputed first; before them those on which several experts differ."""
        self.order = tuple(sorted(self.names, key=self._rank))
        self._position = {image: position for position, image in enumerate(self.order)}
        self.queued = QueuedItems([self._items[image] for image in self.order], short)
        self._units: list[Unit] | None = None
        self._first_unit: dict[int, int] = {}

    def _rank(self, image: int) -> tuple[bool, float, str]:
        summary = self.of(image)
        return not summary.contested, -summary.doubt, self.names[image]

    def of(self, image: int) -> Summary:
        """Return the summary of an image."""
        return self.summaries.get(image, self._unknown)

    def line(self, image: int) -> QueueItem:
        """Return the line of an image."""
        return self._items[image]

    def parts(self, image: int) -> tuple[Part, ...]:
        """Return the parts of an image."""
        return self._parts[image]

    def position(self, image: int | None) -> int | None:
        """Return the position of an image; None if it is not in the queue."""
        return None if image is None else self._position.get(image)

    def update(self, summaries: Mapping[int, Summary]) -> list[int]:
        """Replace summaries, but not the order, and return the images whose summaries changed."""
        changed = [image for image, summary in summaries.items() if summary != self.summaries.get(image)]
        for image in changed:
            before, summary = self.of(image), summaries[image]
            self.summaries[image] = summary
            if image in self._parts:
                parts = self._parts[image]
                self.totals.subtract(before, parts)
                self._parts[image] = tuple(summary.parts)
                self.totals.add(summary, self._parts[image])
                self._items[image] = self._line(image)
                self._replace_units(image, len(parts))
        return changed

    def units(self) -> Sequence[Unit]:
        """Return the parts by image and name, in the order of the queue."""
        if self._units is None:
            self._units = []
            for image in self.order:
                self._first_unit[image] = len(self._units)
                self._units += self._units_of(image)
        return self._units

    def most_disputed(self) -> int | None:
        """Return the first image that still has something disputed."""
        return next((image for image in self.order if self.of(image).disputed), None)

    def _replace_units(self, image: int, before: int) -> None:
        units, first = self._units_of(image), self._first_unit.get(image)
        if self._units is None or first is None or len(units) != before:
            self._units = None
        else:
            self._units[first : first + before] = units

    def _units_of(self, image: int) -> list[Unit]:
        return [((image, part.name), part) for part in self._parts[image]]

    def _line(self, image: int) -> QueueItem:
        summary = self.of(image)
        return QueueItem(
            key=image,
            title=self.names[image],
            detail=summary.in_words(),
            score=summary.doubt if summary.fused else None,
            done=summary.done,
            flag=summary.flag,
            counts=summary.counts,
            amount=summary.amount if summary.fused and not summary.done else "",
        )
