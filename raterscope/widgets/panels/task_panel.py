"""One task: its picture, what the model makes of its votes, who said what, and the keys that settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.panels.class_bars import ClassBar, ClassBars, keys_of
from raterscope.widgets.panels.task_votes import TaskVote, TaskVotes
from raterscope.widgets.parts import ElidedLabel, Header, plain_label
from raterscope.widgets.telling_names import telling_names
from raterscope.widgets.text_size import set_lengths, text_size

__all__ = ["TaskPanel", "TaskView", "TaskVote"]

SIDE, NARROW_SIDE = 120, 72
NARROW, LOW = 360, 280
"""Below this width, or this height with the votes beneath, the picture is smaller."""

BESIDE_FROM, WITHOUT_PICTURE = 560, 460
"""From this width on, votes stand beside the classes, below it beneath them."""

SHARES = ((7, 3), (5, 4))
"""Of the room, for the classes and for the votes: beneath each other, and beside."""

LEAST = QSize(256, 224)
"""Said outright: what the one arrangement needs must not keep the panel from turning to the other."""

LEAST_VOTES = 24
CERTAIN = 0.95


@dataclass(frozen=True, eq=False)
class TaskView:
    """What is known of one task.

    Attributes
    ----------
    name : str
        Of the task: "cell-0417".
    classes : tuple of J str
    posterior : (J,) float or None
        None before there is a fusion.
    votes : tuple of TaskVote
    picture : QImage or None
    pictures : bool
        Whether tasks have pictures at all; the place of one is shown where they do.
    majority, majority_votes : int
        The class that most votes stand for, -1 where none leads, and how many do.
    decided, known : int
        The class that the expert decided, and that known otherwise; -1 for none.
    blind : bool
        Names are hidden.
    hidden : bool
        Votes, and what the model makes of them, are hidden until the expert has decided.
    """

    name: str
    classes: tuple[str, ...]
    posterior: NDArray[np.floating] | None
    votes: tuple[TaskVote, ...] = ()
    picture: QImage | None = None
    pictures: bool = True
    majority: int = -1
    majority_votes: int = 0
    decided: int = -1
    known: int = -1
    blind: bool = False
    hidden: bool = False

    @property
    def covered(self) -> bool:
        """Whether votes and posterior are not to be seen yet."""
        return self.hidden and self.decided < 0

    def leading(self) -> int:
        """Give the most probable class, -1 where nothing is known of it."""
        return -1 if self.posterior is None else int(np.argmax(self.posterior))

    def sentence(self) -> str:
        """Say where the vote and the model differ, and what is known."""
        said = []
        lead = self.leading()
        if not self.covered and -1 not in (lead, self.majority) and lead != self.majority:
            said.append(
                f"The majority says {self.classes[self.majority]} "
                f"({self.majority_votes} of {len(self.votes)}), the model {self.classes[lead]}: "
                "it gives more weight to the annotators who disagree."
            )
        if self.known >= 0 and not self.covered:
            said.append(f"Ground truth: {self.classes[self.known]}.")
        if self.decided >= 0:
            said.append(f"You decided {self.classes[self.decided]}.")
        return " ".join(said)


class TaskPanel(QWidget):
    """The deciding number large, a bar a class, the votes. Keys are drawn, not bound.

    Signals
    -------
    decided : int
        Class that the expert decides for.
    cleared, skipped
    annotator_chosen : int
    """

    decided = Signal(int)
    cleared = Signal()
    skipped = Signal()
    annotator_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._view: TaskView | None = None
        self._stacked = True
        """Whether the votes stand beneath the classes, which then have low lines."""
        self._lead: tuple[int, str] | None = None
        """Place and name of the class that is to be in sight."""
        self._header = Header("Task")
        self._pages = QStackedWidget()
        words = "Select a task, or press Tab for the next disputed one, to see its votes."
        nothing = plain_label(words, "second", wrap=True)
        nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(nothing)
        self._pages.addWidget(self._task())
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(self._header)
        column.addWidget(self._pages, 1)
        set_lengths(self, minimumWidth=LEAST.width(), minimumHeight=LEAST.height())
        set_lengths(self.votes, minimumHeight=LEAST_VOTES)
        self.bars.decided.connect(self.decided)
        self.votes.chosen.connect(self.annotator_chosen)
        self.skip.clicked.connect(self.skipped)
        self.clear.clicked.connect(self.cleared)
        self.show_task(None)

    def show_task(self, view: TaskView | None) -> None:
        """Show a task, or that none is chosen."""
        self._view = view
        self._pages.setCurrentIndex(int(view is not None))
        if view is None:
            self._header.set_title("Task")
            self._header.set_aside("")
            return
        self._header.set_title("Task", view.name)
        self._header.set_aside(count(len(view.votes), "vote"))
        if self._picture.isHidden() == view.pictures:
            self._picture.setVisible(view.pictures)
            self._arrange()
        self._picture.show_picture(view.picture)
        self._show_number(view)
        sentence = view.sentence()
        self._sentence.setText(sentence)
        self._sentence.setVisible(bool(sentence))
        self._show_bars()
        self.votes.show_votes(() if view.covered else view.votes, blind=view.blind)
        self._covered.setText("Votes are hidden until you decide." if view.covered else "")
        self._covered.setVisible(view.covered)
        self.votes.setVisible(not view.covered)
        self.clear.setEnabled(view.decided >= 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the votes beside the classes where there is room."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        wide, high = (length / text_size() for length in (self.width(), self.height()))
        beside = wide >= (WITHOUT_PICTURE if self._picture.isHidden() else BESIDE_FROM)
        if self._stacked == beside:
            self._stacked = not beside
            self._show_bars()
        way = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        self._sides.setDirection(way)
        for side, share in enumerate(SHARES[beside]):
            self._sides.setStretch(side, share)
        small = wide < NARROW or (wide < BESIDE_FROM and high < LOW)
        side = NARROW_SIDE if small else SIDE
        self._picture.setFixedSize(side, side)
        QTimer.singleShot(0, self, self._show_leading)  # once the bars have their room

    def _task(self) -> QWidget:
        self._picture = _Picture()
        self._number = plain_label("", "number-plain", selectable=True)
        set_lengths(self._number, minimumHeight=36)
        self._caption = ElidedLabel("", "small")
        self._sentence = plain_label("", "small", wrap=True, selectable=True)
        self.bars = ClassBars()
        self.skip = KeyButton("S", "skip", "second", "Leave undecided and go to the next task")
        self.clear = KeyButton("C", "clear", "second", "Clear the decision on this task")
        self.votes = TaskVotes()
        self._covered = plain_label("", "second", wrap=True)
        self._covered.setAlignment(Qt.AlignmentFlag.AlignTop)
        number = QHBoxLayout()
        number.setSpacing(8)
        number.addWidget(self._number)
        number.addWidget(self._caption, 1)
        keys = QHBoxLayout()
        keys.setSpacing(12)
        keys.addWidget(self.skip)
        keys.addWidget(self.clear)
        keys.addStretch(1)
        middle = QVBoxLayout()
        middle.setSpacing(2)
        middle.addLayout(number)
        middle.addWidget(self.bars, 1)
        middle.addLayout(keys)
        left = QHBoxLayout()
        left.setSpacing(12)
        left.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        left.addLayout(middle, 1)
        right = QVBoxLayout()
        right.setSpacing(4)
        header = Header("Votes", "weight, log-odds")
        header.row.setContentsMargins(0, 0, 10, 0)
        right.addWidget(self._sentence)
        right.addSpacing(4)
        right.addWidget(header)
        right.addWidget(self._covered, 1)
        right.addWidget(self.votes, 1)
        page = QWidget()
        self._sides = QBoxLayout(QBoxLayout.Direction.TopToBottom, page)
        self._sides.setContentsMargins(0, 0, 0, 0)
        self._sides.setSpacing(12)
        self._sides.addLayout(left)
        self._sides.addLayout(right)
        return page

    def _show_number(self, view: TaskView) -> None:
        lead = view.leading()
        known = lead >= 0 and not view.covered
        share = float(view.posterior[lead]) if known and view.posterior is not None else math.nan
        self._number.setText(f"{share:.2f}" if known else "–")
        theme.set_role(self._number, f"number-{_tone(share)}")
        caption = f"posterior {view.classes[lead]}" if known else ""
        self._caption.setText(caption)
        self._number.setAccessibleName(f"Task {view.name}, {caption} {self._number.text()}".strip())

    def _show_bars(self) -> None:
        view = self._view
        if view is None:
            return
        shares = np.full(len(view.classes), np.nan)
        if view.posterior is not None and not view.covered:
            shares = np.asarray(view.posterior, dtype=float)
        lead, keys, brief = max(shares, default=math.nan), keys_of(view.classes), telling_names(view.classes)
        self.bars.show_bars(
            [
                ClassBar(
                    place,
                    name,
                    float(shares[place]),
                    _tone(float(lead)),
                    _note(view, place),
                    keys[place],
                    brief[name],
                )
                for place, name in enumerate(view.classes)
            ],
            low=self._stacked,
        )
        lead = view.leading()
        self._lead = None if lead < 0 or view.covered else (lead, view.classes[lead])
        self._show_leading()

    def _show_leading(self) -> None:
        """Bring the most probable class in sight."""
        if self._lead is not None:
            self.bars.scrollTo(self.bars.index_of(self._lead))


class _Picture(QWidget):
    """Image of the task, whole, on the ground that images are judged on."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(SIDE, SIDE)
        self._picture: QImage | None = None

    def sizeHint(self) -> QSize:
        return QSize(SIDE, SIDE)

    def show_picture(self, picture: QImage | None) -> None:
        self._picture = picture if picture is not None and not picture.isNull() else None
        self.setAccessibleName("Image of the task" if self._picture else "No image")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        box = QRectF(self.rect())
        with QPainter(self) as painter:
            painter.fillRect(box, QColor(theme.DARK.canvas))
            if self._picture is None:
                painter.setPen(QColor(theme.DARK.second))
                painter.setFont(theme.font(theme.CAPTION))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "no image")
                return
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            size = self._picture.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
            target = QRectF(0, 0, size.width(), size.height())
            target.moveCenter(box.center())
            painter.drawImage(target, self._picture)


def _tone(share: float) -> str:
    """Say whether a most probable class is certain or in doubt."""
    return "plain" if math.isnan(share) else "accent" if share >= CERTAIN else "disputed"


def _note(view: TaskView, place: int) -> str:
    notes = []
    if view.decided == place:
        notes.append("decided")
    if view.known == place and not view.covered:
        notes.append("truth")
    return ", ".join(notes)
