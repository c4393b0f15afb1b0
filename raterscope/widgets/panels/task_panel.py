"""One task of a labelling question: votes, class probabilities, and decision keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QBoxLayout, QStyle, QWidget

from raterscope.text import count
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton, KeyHelp, paint_key
from raterscope.widgets.layouts import STRETCH, horizontal, stacked, vertical
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.painting import paint_annotator, paint_bar, paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import Header, placeholder, plain_label
from raterscope.widgets.theme import set_lengths, text_size

NOBODY = -1
WEIGHT, TIME = 44.0, 104.0
TIME_FROM = 360.0
"""Width below which the time is in the tooltip only."""


@dataclass(frozen=True, slots=True)
class TaskVote:
    """One vote.

    Attributes
    ----------
    annotator : int
        Index that gives colour and symbol; negative for grey.
    name, label : str
        Annotator, and the output given.
    agrees : bool
        Whether the output stands for the class that the model finds most probable.
    weight : float
        What the vote weighs for that class, as a natural logarithm of odds: below 0 it speaks against it. NaN
        if unknown.
    time : str
        Local time, empty if unknown.
    brief : str
        Short form of `label` that distinguishes it from other outputs.
    """

    annotator: int
    name: str
    label: str
    agrees: bool
    weight: float = math.nan
    time: str = ""
    brief: str = ""


class TaskVotes(LineList[TaskVote]):
    """Votes on one task, those that disagree with the model first.

    Signals
    -------
    chosen : int
        Index of the annotator selected; never while names are hidden.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(_VoteKind(), "Votes", parent)
        self._quiet = False
        self.selectionModel().currentChanged.connect(self._on_current)

    def show_votes(self, votes: Sequence[TaskVote], *, blind: bool = False) -> None:
        """Show votes; in blind mode without annotators."""
        ordered = sorted(votes, key=_order)
        if blind:
            ordered = [replace(vote, annotator=NOBODY, name=f"annotator {index}")
                       for index, vote in enumerate(ordered, start=1)]  # fmt: skip
        self._quiet = True
        self.set_lines(ordered)
        self.setCurrentIndex(QModelIndex())
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            annotator = self.lines[index.row()].annotator
            if annotator != NOBODY:
                self.chosen.emit(annotator)


def _order(vote: TaskVote) -> tuple[bool, float]:
    """Order: disagreeing votes first, then by weight."""
    return vote.agrees, -abs(vote.weight) if math.isfinite(vote.weight) else 0.0


class _VoteKind(LineKind[TaskVote]):
    height = 24

    def key(self, line: TaskVote) -> Hashable:
        return line

    def words(self, line: TaskVote) -> str:
        parts = [line.name, f"answered {line.label}", "" if line.agrees else "against the model"]
        if math.isfinite(line.weight):
            parts.append(f"weight {line.weight:+.1f} (log-odds)")
        return ", ".join(part for part in (*parts, line.time) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: TaskVote) -> None:
        look, right = theme.current(), box.right() - 10
        paint_annotator(painter, QPointF(box.left() + 8, box.center().y()), line.annotator, 4)
        figure = f"{line.weight:+.1f}".replace("-", "−") if math.isfinite(line.weight) else "–"
        painter.setFont(theme.font())
        room = QRectF(right - WEIGHT, box.top(), WEIGHT, box.height())
        paint_words(painter, room, figure, look.text, side=Qt.AlignmentFlag.AlignRight)
        right -= WEIGHT + 8
        if box.width() >= TIME_FROM and line.time:
            painter.setFont(theme.font(theme.CAPTION))
            room = QRectF(right - TIME, box.top(), TIME, box.height())
            paint_words(painter, room, line.time, look.third, side=Qt.AlignmentFlag.AlignRight)
            painter.setFont(theme.font())
            right -= TIME + 8
        left = box.left() + 20
        # An answer against the model is marked by its sign too, not by its colour alone.
        sign = "" if line.agrees else "✗ "
        text, brief = sign + line.label, sign + line.brief if line.brief else ""
        width = min(QFontMetrics(painter.font()).horizontalAdvance(text) + 2, (right - left) / 2)
        room = QRectF(right - width, box.top(), width, box.height())
        paint_words(painter, room, text, look.text if line.agrees else look.rejected,
                    elide=Qt.TextElideMode.ElideMiddle, brief=brief)  # fmt: skip
        name = QRectF(left, box.top(), right - width - left - 8, box.height())
        paint_words(painter, name, line.name, look.second, elide=Qt.TextElideMode.ElideMiddle)


CAP, FIGURE_ROOM = 26.0, 40.0
HIGH, LOW_BAR = 32, 23
"""Layouts of a line: bar below the name, or beside it."""
FEW = 3
"""Largest number of classes with high lines."""
NAME_SHARE = 0.45
"""Share of a low line for the name."""


@dataclass(frozen=True, slots=True)
class ClassBar:
    """One class of a task.

    Attributes
    ----------
    index : int
        Index of the class, from 0.
    share : float
        Its probability; NaN where it is not known or not to be seen.
    tone : {"accent", "disputed", "plain"}
        Of the bar.
    note : str
        "decided", "truth" or nothing.
    digit : str
        The key that decides for it; empty where there is none.
    brief : str
        Short form of the name that differs from the others, for narrow places.
    """

    index: int
    name: str
    share: float
    tone: str
    note: str = ""
    digit: str = ""
    brief: str = ""


def keys_of(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the digit that selects each class: its name if all names are digits, else 1 to 9 in order.

    Classes beyond the ninth have none, and are selected by a click or with Return.
    """
    if all(len(name) == 1 and name in "0123456789" for name in classes):
        return tuple(classes)
    return tuple(str(index) if index < 10 else "" for index in range(1, len(classes) + 1))


class ClassBars(LineList[ClassBar]):
    """Class probabilities as bars. A click on a line, or Return, decides for its class.

    Signals
    -------
    decided : int
        Index of the class.
    """

    decided = Signal(int)

    def __init__(self) -> None:
        super().__init__(_BarKind(), "Classes, with their decision keys")
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.clicked.connect(self._on_clicked)

    def show_bars(self, bars: Sequence[ClassBar], *, low: bool = False) -> None:
        """Show the classes of a task, optionally always in low lines."""
        self.set_height(HIGH if len(bars) <= FEW and not low else LOW_BAR)
        self.set_lines(bars)
        set_lengths(self, minimumHeight=HIGH + 2 * self.frameWidth())

    KEY_HELP = KeyHelp("In the classes of a task", (("Return", "decide for this class"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Decide for the current class with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._on_clicked(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _on_clicked(self, index: QModelIndex) -> None:
        self.decided.emit(self.lines[index.row()].index)


class _BarKind(LineKind[ClassBar]):
    height = HIGH

    def key(self, line: ClassBar) -> Hashable:
        return line.index, line.name

    def words(self, line: ClassBar) -> str:
        share = f"{line.share:.2f}" if math.isfinite(line.share) else ""
        key = f"key {line.digit}" if line.digit else ""
        return ", ".join(part for part in (line.name, share, line.note, key) if part)

    def tip(self, line: ClassBar) -> str:
        key = f" ({line.digit})" if line.digit else ""
        return f"Decide for {line.name}{key}"

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        if state & QStyle.StateFlag.State_MouseOver or (
            state & QStyle.StateFlag.State_Selected and state & QStyle.StateFlag.State_HasFocus
        ):
            painter.fillRect(box, theme.colour(theme.current().raised, 160))

    def paint_line(self, painter: QPainter, box: QRectF, line: ClassBar) -> None:
        look = theme.current()
        low = self.height == LOW_BAR
        if line.digit:
            size = min(CAP, box.height() - 3)
            cap = QRectF(box.left() + 2, box.center().y() - size / 2, CAP, size)
            paint_key(painter, cap, line.digit, lit=line.note == "decided")
        left, right = box.left() + CAP + 12, box.right() - 8
        painter.setFont(theme.font())
        known = math.isfinite(line.share)
        room = QRectF(right - FIGURE_ROOM, box.top(), FIGURE_ROOM, box.height())
        figure = f"{line.share:.2f}" if known else "–"
        paint_words(painter, room, figure, look.text if known else look.third,
                    side=Qt.AlignmentFlag.AlignRight)  # fmt: skip
        right -= FIGURE_ROOM + 8
        name = QRectF(left, box.top() + 3, right - left, 17)
        bar = QRectF(left, box.bottom() - 10, right - left, 5)
        if low:
            name = QRectF(left, box.top(), NAME_SHARE * (right - left), box.height())
            bar = QRectF(name.right() + 8, box.center().y() - 2.5, right - name.right() - 8, 5)
        if line.note:
            # Beside the name where there is room for both, else at the end of the bar: the name comes first.
            needed = painter.fontMetrics().horizontalAdvance(line.name) + 8
            painter.setFont(theme.font(theme.CAPTION))
            width = min(painter.fontMetrics().horizontalAdvance(line.note) + 4.0, bar.width())
            beside = not low and needed + width <= name.width()
            note = QRectF(right - width, name.top() if beside else bar.center().y() - 7, width, 14)
            if beside:
                note.setHeight(name.height())
                name.setRight(note.left() - 8)
            else:
                bar.setRight(note.left() - 4)
            paint_words(painter, note, line.note, look.accent, side=Qt.AlignmentFlag.AlignRight)
            painter.setFont(theme.font())
        middle = Qt.TextElideMode.ElideMiddle
        paint_words(painter, name, line.name, look.text, elide=middle, brief=line.brief)
        tones = {"accent": look.accent, "disputed": look.disputed, "plain": look.third}
        if bar.width() > bar.height():
            paint_bar(painter, bar, line.share, tones[line.tone])


SIDE, NARROW_SIDE = 120, 72
NARROW, LOW = 360, 280
"""Width below which, or height below which with votes underneath, the picture is smaller."""

BESIDE_FROM, WITHOUT_PICTURE = 560, 460
"""Width from which the votes are beside the classes instead of below."""

SHARES = ((7, 3), (5, 4))
"""Share of the classes and the votes, stacked and side by side."""

LEAST = QSize(256, 224)
"""Fixed minimum width, so that the layout can change when the panel shrinks."""

LEAST_VOTES = 24
CERTAIN = 0.95


@dataclass(frozen=True, eq=False)
class TaskView:
    """Votes, posterior and decision of one task.

    Attributes
    ----------
    name : str
        Of the task: "cell-0417".
    classes : tuple of J str
    posterior : (J,) float or None
        None before there is a fusion.
    votes : tuple of TaskVote
    pictures : bool
        Whether tasks have pictures at all; an empty frame is shown where one is missing.
    majority, majority_votes : int
        The class that most votes stand for, -1 where none leads, and how many do.
    decided, known : int
        The class that the expert decided, and that known otherwise; -1 for none.
    blind : bool
        Names are hidden.
    hidden : bool
        Votes, and what the model makes of them, are hidden until the expert has decided.
    contested : str
        What several experts decided differently: "anna: cat; ben: dog".
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
    contested: str = ""

    @property
    def covered(self) -> bool:
        """True while votes and posterior are hidden."""
        return self.hidden and self.decided < 0

    def leading(self) -> int:
        """Most probable class, -1 if unknown."""
        return -1 if self.posterior is None else int(np.argmax(self.posterior))

    def sentence(self) -> str:
        """Describe where experts, or votes and model, differ, and any known class."""
        sentences = []
        differ = self.contested and self.decided < 0 and not self.covered
        first = f"Experts differ: {self.contested}.\n" if differ else ""
        lead = self.leading()
        if not self.covered and -1 not in (lead, self.majority) and lead != self.majority:
            sentences.append(
                f"The majority says {self.classes[self.majority]} "
                f"({self.majority_votes} of {len(self.votes)}), the model {self.classes[lead]}: "
                "it gives more weight to the annotators who disagree."
            )
        if self.known >= 0 and not self.covered:
            sentences.append(f"Ground truth: {self.classes[self.known]}.")
        if self.decided >= 0:
            sentences.append(f"You decided {self.classes[self.decided]}.")
        return (first + " ".join(sentences)).rstrip()


class TaskPanel(QWidget):
    """Panel of one task: leading class, a bar per class, votes. Keys are drawn, not bound.

    Signals
    -------
    decided : int
        Class that the expert decides for.
    """

    decided = Signal(int)
    cleared = Signal()
    skipped = Signal()
    annotator_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._view: TaskView | None = None
        self._stacked = True
        """Whether the votes are below the classes, which then have low lines."""
        self._lead: tuple[int, str] | None = None
        """Index and name of the class to keep visible."""
        self._header = Header("Task")
        words = "Select a task, or press Tab for the next disputed one, to see its votes."
        nothing = placeholder(words)
        self._pages = stacked(nothing, self._task())
        vertical(self._header, (self._pages, 1), inside=self, margins=(12, 8, 12, 8), spacing=4)
        set_lengths(self, minimumWidth=LEAST.width(), minimumHeight=LEAST.height())
        set_lengths(self.votes, minimumHeight=LEAST_VOTES)
        self.bars.decided.connect(self.decided)
        self.votes.chosen.connect(self.annotator_chosen)
        self.skip.clicked.connect(self.skipped)
        self.clear.clicked.connect(self.cleared)
        self.show_task(None)

    def show_task(self, view: TaskView | None) -> None:
        """Show a task; None shows the empty state."""
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
        """Put the votes beside the classes if there is room."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        wide, high = (length / text_size() for length in (self.width(), self.height()))
        beside = wide >= (WITHOUT_PICTURE if self._picture.isHidden() else BESIDE_FROM)
        if self._stacked == beside:
            self._stacked = not beside
            self._show_bars()
        direction = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        self._sides.setDirection(direction)
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
        self._caption = plain_label("", "small", wrap=True)
        self._sentence = plain_label("", "small", wrap=True, selectable=True)
        self.bars = ClassBars()
        self.skip = KeyButton("S", "skip", "second", "Leave undecided and go to the next task")
        self.clear = KeyButton("C", "clear", "second", "Clear the decision on this task")
        self.votes = TaskVotes()
        self._covered = placeholder()
        number = horizontal(self._number, (self._caption, 1), spacing=8)
        keys = horizontal(self.skip, self.clear, STRETCH, spacing=12)
        middle = vertical(number, (self.bars, 1), keys, spacing=2)
        left = horizontal((self._picture, 0, Qt.AlignmentFlag.AlignTop), (middle, 1), spacing=12)
        header = Header("Votes", "weight, log-odds")
        header.row.setContentsMargins(0, 0, 10, 0)
        right = vertical(self._sentence, 4, header, (self._covered, 1), (self.votes, 1), spacing=4)
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
        tone, keys = _tone(float(max(shares, default=math.nan))), keys_of(view.classes)
        brief = distinguishing_labels(view.classes)
        bars = [
            ClassBar(index, name, float(shares[index]), tone, _note(view, index), keys[index], brief[name])
            for index, name in enumerate(view.classes)
        ]
        self.bars.show_bars(bars, low=self._stacked)
        lead = view.leading()
        self._lead = None if lead < 0 or view.covered else (lead, view.classes[lead])
        self._show_leading()

    def _show_leading(self) -> None:
        """Scroll to the most probable class."""
        if self._lead is not None:
            self.bars.scrollTo(self.bars.index_of(self._lead))


class _Picture(QWidget):
    """Image of the task on a neutral background."""

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
    """Return the colour role of the leading class: certain or disputed."""
    return "plain" if math.isnan(share) else "accent" if share >= CERTAIN else "disputed"


def _note(view: TaskView, index: int) -> str:
    notes = []
    if view.decided == index:
        notes.append("decided")
    if view.known == index and not view.covered:
        notes.append("truth")
    return ", ".join(notes)
