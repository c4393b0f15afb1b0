"""Exclude or down-weight an annotator: preview of the changes, reason, decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QLineEdit, QProgressBar, QPushButton, QWidget

from raterscope.text import counted, part_of_one
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.painting import paint_text
from raterscope.widgets.panels.lists import LineKind, LinesOnDemand, LongList
from raterscope.widgets.parts import ElidedLabel, plain_label
from raterscope.widgets.theme import set_lengths

COMMON_REASONS = ("clicks everywhere", "marks very little", "misunderstood the task", "a test account")


class ReasonField(QWidget):
    """Field for the reason of a decision: common reasons on keys, and a line of free text.

    `reasons`: reasons offered on the keys Alt+1, Alt+2 ...
    """

    changed = Signal(bool)  # whether there is a reason now

    def __init__(self, reasons: Sequence[str] = COMMON_REASONS) -> None:
        super().__init__()
        column = vertical(plain_label("REASON", "caption"), inside=self, spacing=8)
        self.buttons: list[QPushButton] = []
        for index, reason in enumerate(reasons, start=1):
            button = QPushButton(f"Alt+{index}   {reason}")
            button.setShortcut(f"Alt+{index}")
            button.setAccessibleName(reason)
            button.setAutoDefault(False)
            button.setProperty("reason", reason)
            button.setStyleSheet("text-align: left;")
            button.clicked.connect(self._on_common)
            self.buttons.append(button)
            column.addWidget(button)
        self.edit = QLineEdit(placeholderText="or enter another reason", maxLength=200)
        self.edit.setAccessibleName("Reason")
        self.edit.textChanged.connect(self._on_text)
        column.addWidget(self.edit)
        self.setFocusProxy(self.edit)

    @property
    def reason(self) -> str:
        """The reason given."""
        return self.edit.text().strip()

    def _on_common(self) -> None:
        self.edit.setText(str(self.sender().property("reason")))
        self.edit.setFocus()

    def _on_text(self, text: str) -> None:
        self.changed.emit(bool(text.strip()))


@dataclass(frozen=True, slots=True)
class Change:
    """An answer that would change: item, value before and after; `key` is emitted when it is selected."""

    key: int
    name: str
    before: str
    after: str


class Preview(Protocol):
    """Preview of the changes by an exclusion or a weight."""

    def summary(self) -> str:
        """Summarise the changes: "would change 4 of 963 labels"."""

    def changes(self) -> Sequence[Change]:
        """Return the changes, the most certain first."""


@dataclass(frozen=True, eq=False)
class ExclusionPreview:
    """Preview of the labels that an exclusion would change."""

    tasks: NDArray[np.integer]  # (M,): tasks whose label would change
    # before, after: (M,): class before and after
    before: NDArray[np.integer]
    after: NDArray[np.integer]
    names: Sequence[str]  # (N,): names of all tasks
    classes: tuple[str, ...]  # (J,)

    def summary(self) -> str:
        """Summarise the changes: "would change 4 of 963 labels"."""
        if not len(self.tasks):
            return f"would change none of {counted(len(self.names), 'label')}"
        return f"would change {len(self.tasks):,} of {counted(len(self.names), 'label')}"

    def changes(self) -> Sequence[Change]:
        """Return the changes."""
        return LinesOnDemand(np.arange(len(self.tasks)), self._change)

    def _change(self, row: int) -> Change:
        task = int(self.tasks[row])
        before, after = (self.classes[int(classes[row])] for classes in (self.before, self.after))
        return Change(task, self.names[task], before, after)


class ChangeKind(LineKind[Change]):
    """List line of a change: item, value before, value after."""

    height = 24

    def text_of(self, line: Change) -> str:
        """Return the text of a change."""
        return f"{line.name}: {line.before} becomes {line.after}"

    def paint_line(self, painter: QPainter, box: QRectF, line: Change) -> None:
        """Paint name, before and after in columns."""
        palette, middle = theme.current(), Qt.TextElideMode.ElideMiddle
        painter.setFont(theme.font())
        inner = box.adjusted(4, 0, -8, 0)
        named, arrow = inner.width() * NAMED, 20.0
        width = (inner.width() - named - arrow) / 2
        name = QRectF(inner.left(), inner.top(), named - 8, inner.height())
        paint_text(painter, name, line.name, palette.text, elide=middle)
        before = QRectF(inner.left() + named, inner.top(), width, inner.height())
        paint_text(
            painter, before, line.before, palette.second, side=Qt.AlignmentFlag.AlignRight, elide=middle
        )
        painter.drawText(
            QRectF(before.right(), inner.top(), arrow, inner.height()), Qt.AlignmentFlag.AlignCenter, "→"
        )
        after = QRectF(before.right() + arrow, inner.top(), width, inner.height())
        paint_text(painter, after, line.after, palette.text, elide=middle)


NAMED = 0.56
"""Share of a line for the name of a changed item."""
REASONS = ("answers at random", "always the same answer", "misunderstood the task", "a test account")
OUT = "out"
STEPS = 1000
STEPS_OF_CHOICE = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
SEEN = 2
"""Minimum number of visible changes."""


class ExclusionPanel(QWidget):
    """Preview of an exclusion. Exclude with a reason decides, Esc cancels.

    `subject`: the annotators to exclude, such as "annotator 79142" or "301 annotators". `reasons`: reasons
    offered on the keys Alt+1, Alt+2 ... while the preview is shown. `marks`, `answers`: nouns of the excluded
    annotations, and of the answers that may change: "votes" and "labels". `weights`: weights that can replace
    an exclusion.
    """

    choice_changed = Signal()  # another choice was made, see `weight`; a preview of it is requested
    decided = Signal(str)  # the choice `weight` was confirmed, with this reason
    cancelled = Signal()  # the preview is no longer needed
    task_chosen = Signal(int)  # key of the selected change

    def __init__(
        self,
        subject: str,
        reasons: Sequence[str] = REASONS,
        *,
        marks: str = "votes",
        answers: str = "labels",
        weights: Sequence[float] = (),
    ) -> None:
        super().__init__()
        self._subject, self._marks = subject, marks
        self._weights = {OUT: None, **{str(weight): weight for weight in weights}}
        self._again = False
        """Whether the preview follows another choice in the open panel; a given reason is then kept."""
        theme.set_role(self, "panel")
        self.setAccessibleName("Exclude")
        self._changes: Sequence[Change] = ()
        self._summary = plain_label("", "title", wrap=True)
        self.also = ""
        """Text on changes that have another cause than this exclusion."""
        choosing = self._make_choosing()
        choosing.setHidden(not weights)
        self._title = plain_label("", "second", wrap=True)
        self._error = plain_label("", "error", wrap=True)
        self.changes: LongList[Change] = LongList(ChangeKind(), f"{answers} that would change".capitalize())
        self._working = self._make_working()
        self._form = self._make_form(reasons)
        self._rest = QWidget()
        """Space below, used if no list takes it."""
        vertical(
            choosing,
            self._summary,
            self._title,
            self._error,
            self._working,
            (self.changes, 1),
            self._form,
            (self._rest, 1),
            inside=self,
            margins=(12, 8, 12, 8),
            spacing=8,
        )
        self.changes.selectionModel().currentChanged.connect(self._on_change)
        self._set_state("idle")

    @property
    def weight(self) -> float | None:
        """Selected weight; None means exclusion."""
        return self._weights[self.choice.mode]

    def set_weight(self, weight: float | None) -> None:
        """Select one of the offered weights; any other value selects exclusion."""
        name = str(weight)
        self.choice.set_mode(name if name in self._weights else OUT)

    def set_working(self, fraction: float, text: str) -> None:
        """Show the progress of the preview."""
        if self.state != "working":
            self._set_state("working")
            self._summary.setText("")
            self._cancel.setEnabled(True)
            self._cancel.setText("Cancel")
        self._bar.setValue(round(STEPS * min(max(fraction, 0.0), 1.0)))
        self._label.setText(text)
        self._bar.setAccessibleName(text)

    def show_preview(self, preview: Preview) -> None:
        """Show the changes and ask for a reason."""
        self._changes = preview.changes()
        summary = preview.summary()
        self._summary.setText(f"{summary[:1].upper()}{summary[1:]}{self.also}")
        self.changes.set_lines(self._changes)
        set_lengths(self.changes, minimumHeight=min(len(self._changes), SEEN) * ChangeKind.height)
        self._ask("shown")

    def show_unknown(self, sentence: str) -> None:
        """Show why the changes are unknown, and ask for a reason nevertheless."""
        self._error.setText(sentence)
        self._summary.setText("")
        self._ask("unknown")

    KEY_HELP = KeyHelp("While an exclusion is open", (("Esc", "cancel"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Cancel with Escape; move between choices with Alt and an arrow key."""
        if event.key() == Qt.Key.Key_Escape and self.state in ("working", "shown", "unknown"):
            self._on_cancel()
        elif event.key() in STEPS_OF_CHOICE and event.modifiers() & Qt.KeyboardModifier.AltModifier:
            names = list(self._weights)
            index = names.index(self.choice.mode) + STEPS_OF_CHOICE[Qt.Key(event.key())]
            self.choice.set_mode(names[min(max(index, 0), len(names) - 1)])
        else:
            super().keyPressEvent(event)

    def _make_choosing(self) -> QWidget:
        offers = {name: _offer(weight, self._marks) for name, weight in self._weights.items()}
        self.choice = ModeSwitch(offers)
        self.choice.chosen.connect(self._on_choice)
        page = QWidget()
        horizontal(plain_label("WEIGHT", "caption"), self.choice, STRETCH, inside=page, spacing=12)
        return page

    def _make_working(self) -> QWidget:
        self._label = ElidedLabel("", "small")
        self._bar = QProgressBar(minimum=0, maximum=STEPS, textVisible=False)
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self._on_cancel)
        texts = vertical(self._label, self._bar, spacing=4)
        page = QWidget()
        horizontal((texts, 1), self._cancel, inside=page, spacing=12)
        return page

    def _make_form(self, reasons: Sequence[str]) -> QWidget:
        self.reason = ReasonField(reasons)
        self.exclude = QPushButton("Exclude")
        theme.set_role(self.exclude, "primary")
        self.exclude.setEnabled(False)
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Close without excluding (Esc)")
        self.reason.changed.connect(self._show_possible)
        self.reason.edit.returnPressed.connect(self._on_exclude)
        self.exclude.clicked.connect(self._on_exclude)
        self.cancel.clicked.connect(self._on_cancel)
        row = horizontal(STRETCH, self.exclude, self.cancel, spacing=8)
        page = QWidget()
        vertical(self.reason, row, inside=page, spacing=8)
        return page

    def _ask(self, state: str) -> None:
        """Ask for a reason; keep a reason that was given before another choice."""
        keep_reason, self._again = self._again, False
        self._set_state(state)
        if not keep_reason:
            self.reason.edit.clear()
            self.reason.setFocus()

    def _set_state(self, state: str) -> None:
        self.state = state
        known = state in ("shown", "unknown")
        self._title.setText(self._consequence() if known else self._fusing() if state == "working" else "")
        if state != "shown":
            self._changes = ()
        self._title.setVisible(bool(self._title.text()))
        self._error.setVisible(state == "unknown")
        self._working.setVisible(state == "working")
        self.changes.setVisible(len(self._changes) > 0)
        self._form.setVisible(known or (state == "working" and self._again))
        self.exclude.setText("Exclude" if self.weight is None else f"Set weight {part_of_one(self.weight)}")
        self._show_possible()
        self._rest.setVisible(state != "idle" and self.changes.isHidden())

    def _consequence(self) -> str:
        if self.weight is None:
            return (
                f"Without {self._subject}. The {self._marks} stay in the study but do not count in fusions."
            )
        if self.weight == 1:
            return f"{self._subject} at full weight again. From the next fusion on, all {self._marks} count."
        part = part_of_one(self.weight)
        return (
            f"{self._subject} at weight {part}. From the next fusion on, the evidence of all that is marked "
            f"or left unmarked is multiplied by {part}."
        )

    def _fusing(self) -> str:
        progress_text = (
            f"without {self._subject}"
            if self.weight is None
            else f"with {self._subject} at weight {part_of_one(self.weight)}"
        )
        return f"Fusing {progress_text}"

    def _show_possible(self) -> None:
        self.exclude.setEnabled(bool(self.reason.reason) and self.state in ("shown", "unknown"))

    def _on_choice(self) -> None:
        self._again = self.state in ("shown", "unknown") or self._again
        if self.state == "working":
            self._title.setText(self._fusing())
        self.choice_changed.emit()

    def _on_change(self, index: QModelIndex) -> None:
        if index.isValid() and self._changes:
            self.task_chosen.emit(self._changes[index.row()].key)

    def _on_exclude(self) -> None:
        if self.exclude.isEnabled():
            self.decided.emit(self.reason.reason)

    def _on_cancel(self) -> None:
        if self.state == "working":
            # The caller then ends the preview by `show_unknown`.
            self._cancel.setEnabled(False)
            self._cancel.setText("Cancelling")
        self.cancelled.emit()


def _offer(weight: float | None, marks: str) -> tuple[str, str]:
    """Return the text and tooltip of a choice."""
    keys = "(Alt+Up, Alt+Down)"
    if weight is None:
        return "exclude", f"The {marks} do not count {keys}"
    part = part_of_one(weight)
    return f"× {part}", f"Counts as {part} of an annotator {keys}"
