"""Leaving annotators out: what that would change, a reason, and the decision."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.dialogs.reason import ReasonField
from raterscope.widgets.figures import count
from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.own_keys import OwnKeys
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LongList
from raterscope.widgets.parts import ElidedLabel, plain_label

__all__ = ["REASONS", "Change", "ExclusionPanel", "ExclusionPreview", "Preview"]

REASONS = ("answers at random", "always the same answer", "misunderstood the task", "a test account")
STEPS = 1000
SEEN = 2
"""So many changes are in sight however little room there is."""


@dataclass(frozen=True, slots=True)
class Change:
    """One answer that would change: of what, what it is now and then; `key` is told when it is chosen."""

    key: int
    name: str
    before: str
    after: str


class Preview(Protocol):
    """What an exclusion would change."""

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


class ExclusionPanel(QWidget):
    """X asks for a preview; Exclude, with a reason, decides; Escape keeps everything as it is.

    Parameters
    ----------
    reasons : sequence of str
        Offered on the keys Alt+1, Alt+2 ... while the preview is shown.
    marks, answers : str
        What is left out, and what that may change: "votes" and "labels".

    Signals
    -------
    preview_wanted
    excluded : str
        With the reason.
    cancelled
        The preview is no longer wanted, whether it was made already or not.
    task_chosen : int
        The key of a change that was gone to: a task whose label would change.
    """

    preview_wanted = Signal()
    excluded = Signal(str)
    cancelled = Signal()
    task_chosen = Signal(int)

    def __init__(
        self,
        reasons: Sequence[str] = REASONS,
        parent: QWidget | None = None,
        *,
        marks: str = "votes",
        answers: str = "labels",
    ) -> None:
        super().__init__(parent)
        self._marks = marks
        self._exclude_word = ("exclude …", "rejected", f"See which {answers} it would change")
        self._again_word = ("take in again", "accent", f"Let their {marks} count in the next fusion")
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Exclude")
        self._who = ""
        self._changes: Sequence[Change] = ()
        self.exclude_key = KeyButton("X", *self._exclude_word)
        self._summary = ElidedLabel("", "small")
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.exclude_key)
        row.addWidget(self._summary, 1)
        self._title = plain_label("", wrap=True)
        self._error = plain_label("", "error", wrap=True)
        self.changes: LongList[Change] = LongList(_ChangeKind(), f"{answers} that would change".capitalize())
        self._working = self._make_working()
        self._asking = self._make_asking(reasons)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(8)
        column.addLayout(row)
        for part in (self._title, self._error, self._working):
            column.addWidget(part)
        column.addWidget(self.changes, 1)
        column.addWidget(self._asking)
        self._rest = QWidget()
        """The room that nothing needs lies beneath, where no list takes it."""
        column.addWidget(self._rest, 1)
        self.exclude_key.clicked.connect(self.preview_wanted)
        self.changes.selectionModel().currentChanged.connect(self._on_change)
        self.set_who("")

    def set_who(self, who: str, summary: str = "", *, out: bool = False) -> None:
        """Be ready to exclude others; whatever was shown goes.

        Parameters
        ----------
        who : str
            "annotator 79142", "community 3, 301 annotators"; empty for nobody.
        summary : str
            What is known already: "would change 4 of 963 labels".
        out : bool
            They are left out already, so that the key takes them in again.
        """
        self.exclude_key.set_word(*(self._again_word if out else self._exclude_word))
        self._who = who
        self._summary.setText(summary)
        self._turn("idle")

    def set_working(self, fraction: float, words: str) -> None:
        """Show how far the preview is."""
        if self.state != "working":
            self._turn("working")
            self._summary.setText("")
            self._cancel.setEnabled(True)
            self._cancel.setText("Cancel")
        self._bar.setValue(round(STEPS * min(max(fraction, 0.0), 1.0)))
        self._words.setText(words)
        self._bar.setAccessibleName(words)

    def show_preview(self, preview: Preview) -> None:
        """Show what would change, and ask for a reason."""
        self._changes = preview.changes()
        self._summary.setText(preview.summary())
        self.changes.set_lines(self._changes)
        self.changes.setMinimumHeight(min(len(self._changes), SEEN) * _ChangeKind.height)
        self.reason.words.clear()
        self._turn("shown")
        self.reason.setFocus()

    def show_failure(self, sentence: str) -> None:
        """Say why there is no preview; X tries again."""
        self._error.setText(sentence)
        self._summary.setText("")
        self._turn("failed")

    def show_unknown(self, sentence: str) -> None:
        """Say why it is not known what would change, and ask for a reason all the same."""
        self._error.setText(sentence)
        self._summary.setText("")
        self.reason.words.clear()
        self._turn("unknown")
        self.reason.setFocus()

    OWN_KEYS = OwnKeys("While somebody is to be left out", (("Esc", "keep everybody"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keep everything with Escape."""
        if event.key() == Qt.Key.Key_Escape and self.state in ("working", "shown", "unknown"):
            self._on_keep()
        else:
            super().keyPressEvent(event)

    def _make_working(self) -> QWidget:
        self._words = ElidedLabel("", "small")
        self._bar = QProgressBar()
        self._bar.setRange(0, STEPS)
        self._bar.setTextVisible(False)
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self._on_keep)
        texts = QVBoxLayout()
        texts.setSpacing(4)
        texts.addWidget(self._words)
        texts.addWidget(self._bar)
        made = QWidget()
        row = QHBoxLayout(made)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addLayout(texts, 1)
        row.addWidget(self._cancel)
        return made

    def _make_asking(self, reasons: Sequence[str]) -> QWidget:
        self.reason = ReasonField(reasons)
        self.exclude = QPushButton("Exclude")
        theme.set_role(self.exclude, "primary")
        self.exclude.setEnabled(False)
        self.keep = QPushButton("Keep")
        self.keep.setToolTip(f"Keep the {self._marks} (Esc)")
        self.reason.changed.connect(self.exclude.setEnabled)
        self.reason.words.returnPressed.connect(self._on_exclude)
        self.exclude.clicked.connect(self._on_exclude)
        self.keep.clicked.connect(self._on_keep)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        row.addWidget(self.keep)
        row.addWidget(self.exclude)
        made = QWidget()
        column = QVBoxLayout(made)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.reason)
        column.addLayout(row)
        return made

    def _turn(self, state: str) -> None:
        self.state = state
        self.exclude_key.setEnabled(bool(self._who) and state in ("idle", "failed"))
        asking = state in ("shown", "unknown")
        stays = f"Without {self._who}. The {self._marks} stay in the study; the next fusion leaves them out."
        self._title.setText(stays if asking else f"Fusing without {self._who}" if state == "working" else "")
        if state != "shown":
            self._changes = ()
        self._title.setVisible(bool(self._title.text()))
        self._error.setVisible(state in ("failed", "unknown"))
        self._working.setVisible(state == "working")
        self.changes.setVisible(len(self._changes) > 0)
        self._asking.setVisible(asking)
        self._rest.setVisible(state != "idle" and self.changes.isHidden())

    def _on_change(self, index: QModelIndex) -> None:
        if index.isValid() and self._changes:
            self.task_chosen.emit(self._changes[index.row()].key)

    def _on_exclude(self) -> None:
        if self.reason.reason:
            self.excluded.emit(self.reason.reason)

    def _on_keep(self) -> None:
        if self.state == "working":
            # It is over when whoever works says so, by `set_who`.
            self._cancel.setEnabled(False)
            self._cancel.setText("Cancelling")
        else:
            self._turn("idle")
        self.cancelled.emit()


class _ChangeKind(LineKind[Change]):
    height = 24

    def key(self, line: Change) -> Hashable:
        return line

    def words(self, line: Change) -> str:
        return f"{line.name}: {line.before} becomes {line.after}"

    def paint_line(self, painter: QPainter, box: QRectF, line: Change) -> None:
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
