"""Items of a review queue: their lines, filters, and display order."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from raterscope.widgets.names import distinguishing_labels


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One line of the queue."""

    key: Hashable  # identity of the item; equal keys are the same item
    # title, detail: name, and state in a few words
    title: str
    detail: str
    score: float | None  # doubt, 0 and more; None before there is any
    done: bool  # True where nothing is left to decide
    flag: str | None = None  # why it was flagged; None where it is not
    counts: Mapping[str, int] = field(default_factory=dict)  # by what filters may ask for more than so many
    amount: str = ""  # the doubt with its unit, as shown: "0.93 errors"


def chance_of_error(doubt: float) -> str:
    """Write the probability that a result is wrong."""
    return f"{100 * doubt:.0f} %"


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Filter of a queue."""

    key: str  # "all", "undecided", "flagged", "commented", or one of an item's counts
    words: str
    empty: str = ""  # text for an empty list

    @property
    def counts(self) -> bool:
        """True if the filter has a minimum count."""
        return self.key not in ("all", "undecided", "flagged", "commented")

    def passes(self, item: QueueItem, minimum: int) -> bool:
        """Return whether an item passes."""
        if self.key == "commented":
            return item.counts.get("comments", 0) > 0
        if self.counts:
            return item.counts.get(self.key, 0) > minimum
        return self.key == "all" or (not item.done if self.key == "undecided" else item.flag is not None)


class QueuedItems:
    """Items of a queue, finished ones last, prepared for display.

    For 10,000 items this takes longer than a frame: another thread can do it.

    `short`: short titles, as of earlier items; they are made again for other titles. `done_last`: whether
    finished items come last.
    """

    def __init__(
        self,
        items: Sequence[QueueItem] = (),
        short: Mapping[str, str] | None = None,
        *,
        done_last: bool = True,
    ) -> None:
        self._done_last = done_last
        self._rank = {item.key: rank for rank, item in enumerate(items)}
        """Positions of the items as they were given."""
        self._known = {item.key: item for item in items}
        self._items = sorted(items, key=self._sort_key)
        self._scores = sorted(item.score for item in items if item.score is not None)
        titles = {item.title for item in items}
        self.short = short if short is not None and titles == short.keys() else distinguishing_labels(titles)

    @property
    def listed(self) -> Sequence[QueueItem]:
        """All items in display order."""
        return self._items

    @property
    def most(self) -> float:
        """Score that fills the bar of a line."""
        return max(1.0, self._scores[-1]) if self._scores else 1.0

    def sorted_by(self, rank: Mapping[Hashable, float]) -> QueuedItems:
        """Return the items by rank, finished or not, and those without a rank after them."""
        items = sorted(self._items, key=lambda item: rank.get(item.key, math.inf))
        return QueuedItems(items, self.short, done_last=False)

    def of(self, key: Hashable) -> QueueItem | None:
        """Return an item by its key."""
        return self._known.get(key)

    def replace(self, item: QueueItem) -> None:
        """Replace an item by a changed one."""
        before = self._known[item.key]
        del self._items[self.row_in(self._items, before)]
        self._items.insert(self.row_in(self._items, item), item)
        self._known[item.key] = item
        if before.score is not None:
            del self._scores[bisect_left(self._scores, before.score)]
        if item.score is not None:
            insort(self._scores, item.score)

    def row_in(self, lines: Sequence[QueueItem], item: QueueItem) -> int:
        """Return the row at which an item is listed, or belongs."""
        return bisect_left(lines, self._sort_key(item), key=self._sort_key)

    def _sort_key(self, item: QueueItem) -> tuple[bool, int]:
        return item.done and self._done_last, self._rank[item.key]


def is_named(item: QueueItem, words: Sequence[str]) -> bool:
    """Return whether a line contains all words."""
    text = f"{item.title} {item.detail} {item.flag or ''}".casefold()
    return all(word in text for word in words)
