"""What leaving annotators out, or letting them count less, would change: one line a change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind

__all__ = ["Change", "ChangeKind", "ExclusionPreview", "Preview"]


@dataclass(frozen=True, slots=True)
class Change:
    """One answer that would change: of what, what it is now and then; `key` is told when it is chosen."""

    key: int
    name: str
    before: str
    after: str


class Preview(Protocol):
    """What an exclusion, or a weight, would change."""

    def summary(self) -> str:
        """Say how much: "would change 4 of 963 labels"."""

    def changes(self) -> Sequence[Change]:
        """List it, what is surest first."""


@dataclass(frozen=True, eq=False)
class ExclusionPreview:
    """The labels that an exclusion would change.

    Attributes
    ----------
    tasks : (M,) int
        Whose label would change.
    before, after : (M,) int
        Its class now and then.
    names : sequence of N str
        Of all tasks.
    classes : tuple of J str
    """

    tasks: NDArray[np.integer]
    before: NDArray[np.integer]
    after: NDArray[np.integer]
    names: Sequence[str]
    classes: tuple[str, ...]

    def summary(self) -> str:
        """Say how many: "would change 4 of 963 labels"."""
        if not len(self.tasks):
            return f"would change none of {count(len(self.names), 'label')}"
        return f"would change {len(self.tasks):,} of {count(len(self.names), 'label')}"

    def changes(self) -> Sequence[Change]:
        """List them."""
        return _Changes(self)


class _Changes(Sequence[Change]):
    """The changes of a preview, made one by one."""

    def __init__(self, preview: ExclusionPreview) -> None:
        self._preview = preview

    def __len__(self) -> int:
        return len(self._preview.tasks)

    @overload
    def __getitem__(self, row: int) -> Change: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Change]: ...
    def __getitem__(self, row: int | slice) -> Change | Sequence[Change]:
        if isinstance(row, slice):
            return [self[place] for place in range(*row.indices(len(self)))]
        of = self._preview
        task = int(of.tasks[row])
        return Change(task, of.names[task], of.classes[int(of.before[row])], of.classes[int(of.after[row])])


class ChangeKind(LineKind[Change]):
    """How a change is told: of what, from what, to what."""

    height = 24

    def key(self, line: Change) -> Hashable:
        """Tell lines apart by all that they say."""
        return line

    def words(self, line: Change) -> str:
        """Say the change."""
        return f"{line.name}: {line.before} becomes {line.after}"

    def paint_line(self, painter: QPainter, box: QRectF, line: Change) -> None:
        """Paint name, before and after in columns."""
        look, middle = theme.current(), Qt.TextElideMode.ElideMiddle
        painter.setFont(theme.font())
        inner = box.adjusted(4, 0, -8, 0)
        half, arrow = inner.width() * 0.4, 20.0
        each = (inner.width() - half - arrow) / 2
        name = QRectF(inner.left(), inner.top(), half - 8, inner.height())
        paint_words(painter, name, line.name, look.text, elide=middle)
        before = QRectF(inner.left() + half, inner.top(), each, inner.height())
        paint_words(painter, before, line.before, look.second, side=Qt.AlignmentFlag.AlignRight, elide=middle)
        painter.drawText(
            QRectF(before.right(), inner.top(), arrow, inner.height()), Qt.AlignmentFlag.AlignCenter, "→"
        )
        after = QRectF(before.right() + arrow, inner.top(), each, inner.height())
        paint_words(painter, after, line.after, look.text, elide=middle)
