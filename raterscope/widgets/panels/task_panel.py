"""Panel of one task of a labelling question: votes, class probabilities, and decision keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from raterscope.algorithms.labels.class_tree import SEPARATOR, ClassTree, class_tree, unfolded_lines
from raterscope.text import counted, with_minus
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import STRETCH, horizontal, stacked, vertical
from raterscope.widgets.names import distinguishing_labels, short_names
from raterscope.widgets.painting import paint_annotator, paint_text, without_picture
from raterscope.widgets.panels.class_bars import (
    FOLDED,
    UNFOLDED,
    ClassBar,
    ClassFinder,
    has_many,
    keys_of,
    listed_order,
    summed_bar,
)
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import Header, Placeholder, plain_label, plain_tip
from raterscope.widgets.theme import set_lengths, text_size

HIDDEN = -1
PROGRAM = " (program)"
"""Suffix of the displayed name of a program."""

WEIGHT, TIME = 44.0, 104.0
LABELLED = 0.62
"""Maximum share of a vote's line for its label, before the annotator's name."""
TIME_FROM = 360.0
"""Minimum width to show the time; in a narrower list it is only in the tooltip."""


@dataclass(frozen=True, slots=True)
class TaskVote:
    """One vote."""

    annotator: int  # index that determines colour and symbol; negative for grey
    # name, label: annotator, and the output given
    name: str
    label: str
    agrees: bool  # whether the output stands for the class that the model finds most probable
    # weight of the vote for that class, in log odds; negative against it; NaN if unknown
    weight: float = math.nan
    time: str = ""  # local time, empty if unknown
    brief: str = ""  # short form of `label` that distinguishes it from other outputs
    brief_name: str = ""  # short form of `name` that distinguishes it from the other annotators
    program: bool = False  # whether it is the answer of a program, with its probability, and no vote
    # whether the output stands for another class than the decision or, without one, the ground truth; None if
    # neither is known
    wrong: bool | None = None

    @property
    def marked(self) -> bool:
        """Whether the vote is drawn as wrong: by decision or ground truth, otherwise by the model."""
        return not self.agrees if self.wrong is None else self.wrong


class TaskVotes(LineList[TaskVote]):
    """Votes on one task, those that disagree with the model first."""

    chosen = Signal(int)  # index of the annotator selected; never while names are hidden

    def __init__(self) -> None:
        self._kind = _VoteKind()
        super().__init__(self._kind, "Votes")
        self._quiet = False
        self.selectionModel().currentChanged.connect(self._on_current)

    def show_votes(self, votes: Sequence[TaskVote], *, blind: bool = False) -> None:
        """Show votes; in blind mode without annotators."""
        ordered = sorted(votes, key=_order)
        if blind:
            ordered = [
                replace(vote, annotator=HIDDEN, name=f"{'program' if vote.program else 'annotator'} {index}")
                for index, vote in enumerate(ordered, start=1)
            ]
        brief = short_names(tuple(vote.name.removesuffix(PROGRAM) for vote in ordered))
        ordered = [replace(vote, brief_name=brief[vote.name.removesuffix(PROGRAM)]) for vote in ordered]
        self._kind.set_widest(ordered)
        self._quiet = True
        self.set_lines(ordered)
        self.setCurrentIndex(QModelIndex())
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            annotator = self.lines[index.row()].annotator
            if annotator != HIDDEN:
                self.chosen.emit(annotator)


def _sign(vote: TaskVote) -> str:
    """Return the symbol of a wrong answer, which must not be marked by colour alone."""
    return "✗ " if vote.marked else ""


def _order(vote: TaskVote) -> tuple[bool, float]:
    """Order votes: disagreeing votes first, then by weight."""
    return vote.agrees, -abs(vote.weight) if math.isfinite(vote.weight) else 0.0


class _VoteKind(LineKind[TaskVote]):
    height = 24
    _widest = ("", "")  # of all lines: name and answer

    def set_widest(self, votes: Sequence[TaskVote]) -> None:
        """Measure the widest texts: either all names are shortened or none."""
        width = QFontMetrics(theme.font()).horizontalAdvance
        names, answers = {vote.name for vote in votes}, {_sign(vote) + vote.label for vote in votes}
        self._widest = max(names, key=width, default=""), max(answers, key=width, default="")

    def text_of(self, line: TaskVote) -> str:
        parts = [line.name, f"answered {line.label}", "wrong" if line.wrong else ""]
        parts.append("" if line.agrees else "against the model")
        if math.isfinite(line.weight):
            parts.append(f"weight {with_minus(f'{line.weight:+.1f}')} (log-odds)")
        return ", ".join(part for part in (*parts, line.time) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: TaskVote) -> None:
        palette, right = theme.current(), box.right() - 10
        paint_annotator(painter, QPointF(box.left() + 8, box.center().y()), line.annotator, 4)
        figure = with_minus(f"{line.weight:+.1f}") if math.isfinite(line.weight) else "–"
        painter.setFont(theme.font())
        room = QRectF(right - WEIGHT, box.top(), WEIGHT, box.height())
        paint_text(painter, room, figure, palette.text, side=Qt.AlignmentFlag.AlignRight)
        right -= WEIGHT + 8
        if box.width() >= TIME_FROM and line.time:
            painter.setFont(theme.font(theme.CAPTION))
            room = QRectF(right - TIME, box.top(), TIME, box.height())
            paint_text(painter, room, line.time, palette.third, side=Qt.AlignmentFlag.AlignRight)
            painter.setFont(theme.font())
            right -= TIME + 8
        left = box.left() + 20
        text, brief = _sign(line) + line.label, _sign(line) + line.brief if line.brief else ""
        metrics = QFontMetrics(painter.font())
        beside = metrics.horizontalAdvance(line.brief_name or line.name) + 10
        most = max(LABELLED * (right - left), right - left - beside)
        width = min(metrics.horizontalAdvance(text) + 2, most)
        room = QRectF(right - width, box.top(), width, box.height())
        paint_text(painter, room, text, palette.rejected if line.marked else palette.text,
                    elide=Qt.TextElideMode.ElideMiddle, brief=brief)  # fmt: skip
        name = QRectF(left, box.top(), right - width - left - 8, box.height())
        middle = Qt.TextElideMode.ElideMiddle
        whole = sum(map(metrics.horizontalAdvance, self._widest)) + 10 <= right - left
        paint_text(painter, name, line.name if whole else line.brief_name, palette.second, elide=middle)


SIDE, NARROW_SIDE = 120, 72
NARROW, LOW = 360, 280
"""Width below which the picture is smaller, and height below which it is with votes underneath.

Below this height, the sentence on the votes moves to the header's tooltip.
"""

BESIDE_FROM, WITHOUT_PICTURE = 560, 460
"""Minimum widths, with and without a picture, to place the votes beside the classes instead of below."""

SHARES = ((7, 3), (5, 4))
"""Shares of classes and votes, stacked and side by side."""

LEAST = QSize(256, 224)
"""Fixed minimum width, so that the layout can adapt when the panel shrinks."""

MIN_VOTES = 24
INDENT = "    "
CERTAIN = 0.95
MAX_CHARACTERS = 24
"""Maximum length of a task's name in the message on a contradiction, because it may be a long text."""


@dataclass(frozen=True, eq=False)
class TaskView:
    """Votes, posterior and decision of one task.

    `decided`, `known`: class decided by the expert, and class known otherwise; -1 for none. From J on,
        `decided` is a parent class.
    """

    name: str  # of the task: "cell-0417"
    classes: tuple[str, ...]  # (J,)
    posterior: NDArray[np.floating] | None  # (J,); None before the first fusion
    votes: tuple[TaskVote, ...] = ()
    picture: QImage | None = None
    pictures: bool = True  # whether tasks have pictures at all; an empty frame is shown where one is missing
    # majority, majority_votes: class with the most votes (-1 for a tie), and their number
    majority: int = -1
    majority_votes: int = 0
    decided: int = -1
    parents: tuple[str, ...] = ()  # parent classes: "bird"
    known: int = -1
    blind: bool = False  # names are hidden
    hidden: bool = False  # votes and the model's answer are hidden until the expert decides
    contested: str = ""  # conflicting decisions of experts: "anna: cat; ben: dog"
    tally: NDArray[np.integer] | None = None  # (J,) or None: number of votes for each class; None if unknown
    fixed: bool = False  # whether the run held the class of the task fixed; its posterior is then no evidence
    # median and bounds of the 95 % interval of ordered classes
    grades: tuple[int, int, int] | None = None

    @property
    def covered(self) -> bool:
        """True while votes and posterior are hidden."""
        return self.hidden and self.decided < 0

    def leading(self) -> int:
        """Most probable class, -1 if unknown."""
        return -1 if self.posterior is None else int(np.argmax(self.posterior))

    def sentence(self) -> str:
        """Describe disagreements of experts, or of votes and model, and any known class."""
        sentences = []
        differ = self.contested and self.decided < 0 and not self.covered
        first = f"Experts differ: {self.contested}.\n" if differ else ""
        lead = self.leading()
        if not self.covered and -1 not in (lead, self.majority) and lead != self.majority:
            model = (
                f", the model {self.classes[lead]}: it gives more weight to {self._against_majority()}"
                if not self.fixed
                else ""
            )
            sentences.append(
                f"The majority says {self.classes[self.majority]} "
                f"({self.majority_votes} of {self.vote_count}){model}."
            )
        if self.known >= 0 and not self.covered:
            sentences.append(f"Ground truth: {self.classes[self.known]}.")
        if self.decided >= 0:
            sentences.append(f"You decided {(*self.classes, *self.parents)[self.decided]}.")
        return (first + " ".join(sentences)).rstrip()

    @property
    def vote_count(self) -> int:
        """Number of votes, without the answers of programs."""
        return sum(not vote.program for vote in self.votes)

    def _against_majority(self) -> str:
        """Return what outweighs the majority: annotators, or programs if only these answered otherwise."""
        those = {vote.program for vote in self.votes if vote.agrees}
        return "the program" if those == {True} else "the annotators who disagree"

    def objection(self, number: int) -> str:
        """Describe what a decision for a class contradicts; empty if nothing, or while votes are hidden.

        It may contradict the ground truth, two or more unanimous votes, or a posterior of at least 0.95.
        """
        if self.blind:
            return ""
        against: dict[int, list[str]] = {}
        if self.known >= 0:
            against.setdefault(self.known, []).append("ground truth")
        if self.tally is not None and int(self.tally.sum()) >= max(2, self.vote_count):
            voted = int(self.tally.argmax())
            if self.tally[voted] == self.tally.sum():
                against.setdefault(voted, []).append(f"all {counted(int(self.tally[voted]), 'vote')}")
        lead = self.leading()
        if self.posterior is not None and not self.fixed and self.posterior[lead] >= CERTAIN:
            share = f"a posterior of {float(self.posterior[lead]):.2f}"
            against.setdefault(lead, []).append(share)
        against.pop(number, None)
        if not against:
            return ""
        reasons = "; against ".join(
            f"{_enumerated(words)} for {self.classes[other]}" for other, words in against.items()
        )
        name = self.name if len(self.name) <= MAX_CHARACTERS else f"{self.name[:MAX_CHARACTERS].rstrip()}…"
        return f"{name.rstrip(' .')}: you decided {self.classes[number]} against {reasons}."


class TaskPanel(QWidget):
    """Panel of one task: leading class, one bar per class, votes. Keys are drawn, not bound."""

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._view: TaskView | None = None
        self._stacked = True
        """Whether the votes are below the classes; these then have low lines."""
        self._toggled: frozenset[tuple[str, ...]] = frozenset()
        """Nodes of the class tree whose folding the user has changed."""
        self._nodes: list[tuple[str, ...]] = []
        """Listed nodes of the class tree."""
        self._lead: tuple[int, str] | None = None
        """Index and name of the class to keep visible."""
        self._header = Header("Task")
        text = "Select a task, or press Tab for the next disputed one, to see its votes."
        nothing = Placeholder(text)
        page = QWidget()
        self._pages = stacked(nothing, page)
        note = self._objection_note()
        vertical(self._header, note, (self._pages, 1), inside=self, margins=(12, 8, 12, 8), spacing=4)
        self._fill(page)
        set_lengths(self, minimumWidth=LEAST.width())
        self.votes.setMinimumHeight(MIN_VOTES)
        self.bars.folded.connect(self._on_folded)
        self.search.clicked.connect(self.find_class)
        self.show_task(None)

    def show_task(self, view: TaskView | None) -> None:
        """Show a task; None shows the empty state."""
        if view is None or self._view is None or (view.name, view.classes) != (
            self._view.name, self._view.classes,
        ):  # fmt: skip
            self.classes.close_field()
            self._toggled = frozenset()
        self._view = view
        self._pages.setCurrentIndex(int(view is not None))
        if view is None:
            self._header.set_title("Task")
            self._header.set_subtitle("")
            return
        self._header.set_title("Task", view.name)
        programs = len(view.votes) - view.vote_count
        votes = counted(view.vote_count, "vote") + (f", {counted(programs, 'program')}" if programs else "")
        many = has_many(view.classes)
        self._header.set_subtitle(f"{_order_text(view)} | {votes}" if many else votes)
        if self._picture.isHidden() == view.pictures:
            self._picture.setVisible(view.pictures)
        self._picture.show_picture(view.picture)
        self._show_number(view)
        sentence = view.sentence()
        self._sentence.setText(sentence)
        self._header.setToolTip(plain_tip(sentence))
        self._arrange()
        self._show_bars()
        self.votes.show_votes(() if view.covered else view.votes, blind=view.blind)
        self._covered.setText("Votes are hidden until you decide." if view.covered else "")
        self._covered.setVisible(view.covered)
        self.votes.setVisible(not view.covered)
        self.clear.setEnabled(view.decided >= 0)
        self.search.setVisible(many)

    def show_objection(self, text: str) -> None:
        """Show what the latest decision contradicts, with a button to undo it; an empty text hides this."""
        self._objection.setText(text)
        self._note.setVisible(bool(text))

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size at which the keys are completely visible."""
        return super().minimumSizeHint().expandedTo(LEAST)

    def hasHeightForWidth(self) -> bool:
        """Allow the lists to shrink with larger text, so that the keys stay visible."""
        return False

    def find_class(self) -> None:
        """Open the field that finds a class by its name."""
        if self._view is not None:
            self.classes.open_field()

    def class_of(self, digit: str) -> int | None:
        """Return the class that a digit selects on the task shown; None if there is none."""
        return None if self._view is None else self.classes.class_of(digit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the votes beside the classes if there is space."""
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
        self._sentence.setVisible(bool(self._sentence.text()) and (beside or high >= LOW))
        small = wide < NARROW or (wide < BESIDE_FROM and high < LOW)
        side = NARROW_SIDE if small else SIDE
        self._picture.setFixedSize(side, side)
        QTimer.singleShot(0, self, self._show_leading)  # once the bars have their room

    def _objection_note(self) -> QWidget:
        self._objection = plain_label("", "small", wrap=True, selectable=True)
        self._objection.setAccessibleName("What the decision contradicts")
        self.undo = KeyButton("Z", "undo", "second", "Undo this decision")
        self._note = QWidget()
        horizontal((self._objection, 1), self.undo, inside=self._note, spacing=8)
        self._note.hide()
        return self._note

    def _fill(self, page: QWidget) -> None:
        """Make the contents, parents first: Qt styles all descendants of a widget that is moved."""
        self._picture = _Picture()
        self._number = plain_label("", "number-plain", selectable=True)
        set_lengths(self._number, minimumHeight=36)
        self._caption = plain_label("", "small", wrap=True)
        self._sentence = plain_label("", "small", wrap=True, selectable=True)
        self.classes = ClassFinder()
        self.bars = self.classes.bars
        self.skip = KeyButton("S", "skip", "second", "Leave undecided and go to the next task")
        self.clear = KeyButton("C", "clear", "second", "Clear the decision on this task")
        self.search = KeyButton("/", "find", "second", "Find a class by its name")
        self.votes = TaskVotes()
        self._covered = Placeholder()
        number = horizontal(self._number, (self._caption, 1), spacing=8)
        keys = horizontal(self.skip, self.clear, self.search, STRETCH, spacing=12)
        middle = vertical(number, (self.classes, 1), keys, spacing=2)
        left = horizontal((self._picture, 0, Qt.AlignmentFlag.AlignTop), (middle, 1), spacing=12)
        header = Header("Votes", "weight, log-odds")
        header.row.setContentsMargins(0, 0, 10, 0)
        right = vertical(self._sentence, 4, header, (self._covered, 1), (self.votes, 1), spacing=4)
        self._sides = QBoxLayout(QBoxLayout.Direction.TopToBottom, page)
        self._sides.setContentsMargins(0, 0, 0, 0)
        self._sides.setSpacing(12)
        self._sides.addLayout(left)
        self._sides.addLayout(right)

    def _show_number(self, view: TaskView) -> None:
        lead = view.leading()
        known = lead >= 0 and not view.covered
        share = float(view.posterior[lead]) if known and view.posterior is not None else math.nan
        self._number.setText(f"{share:.2f}" if known else "–")
        theme.set_role(self._number, f"number-{_tone(share)}")
        caption = f"posterior {view.classes[lead]}" if known else ""
        if known and view.grades is not None:
            median, low, high = (view.classes[grade] for grade in view.grades)
            ends = low if low == high else f"{low} to {high}"
            caption += f" | median {median} ({ends})"
        self._caption.setText(caption)
        self._number.setAccessibleName(f"Task {view.name}, {caption} {self._number.text()}".strip())

    def _show_bars(self) -> None:
        view = self._view
        if view is None:
            return
        shares = np.full(len(view.classes), np.nan)
        if view.posterior is not None and not view.covered:
            shares = np.asarray(view.posterior, dtype=float)
        tone, brief = _tone(float(max(shares, default=math.nan))), _brief_names(view.classes)
        seen = None if view.covered else view.tally
        order = listed_order(view.classes, None if view.covered else view.posterior, seen)
        votes = seen if has_many(view.classes) else None
        names = [view.classes[index] for index in order]
        bars = [
            ClassBar(index, name, float(shares[index]), tone, _note(view, index), digit, brief[name],
                     -1 if votes is None else int(votes[index]))
            for index, name, digit in zip(order, names, keys_of(names), strict=True)
        ]  # fmt: skip
        lead = view.leading()
        self._lead = None if lead < 0 or view.covered else (lead, view.classes[lead])
        tree = class_tree(tuple(view.classes)) if has_many(view.classes) else None
        lines = [] if tree is None else self._tree_lines(tree, bars, shares, lead)
        parents = self._parent_bars({bar.index: bar for bar in bars})
        self.classes.show_bars(bars, low=self._stacked, lines=lines, parents=parents)
        self._show_leading()

    def _parent_bars(self, by_index: Mapping[int, ClassBar]) -> list[ClassBar]:
        """List the parent classes, each with the sums of its classes, for the field that finds a class."""
        view = self._view
        tree = None if view is None else class_tree(tuple(view.classes))
        if view is None or tree is None:
            return []
        bars = []
        for number, name in enumerate(view.parents, len(view.classes)):
            children = [by_index[index] for index in tree.below(name)]
            bars.append(summed_bar(children, number, name, "decided" if view.decided == number else ""))
        return bars

    def _tree_lines(
        self, tree: ClassTree, bars: Sequence[ClassBar], shares: NDArray[np.floating], lead: int
    ) -> list[ClassBar]:
        """List the classes below their nodes; the nodes of the most probable class are initially unfolded."""
        chosen = self._view is not None and self._lead is not None
        path = tree.paths[lead] if chosen else ()
        unfolded = frozenset(path[:end] for end in range(1, len(path) + 1)) ^ self._toggled
        by_index = {bar.index: bar for bar in bars}
        lines, digits, self._nodes = [], iter("123456789"), []
        listed = unfolded_lines(tree, [bar.index for bar in bars], np.nan_to_num(shares), unfolded)
        for line in listed:
            above = max((end for end in range(1, len(line.path)) if line.path[:end] in unfolded), default=0)
            indent, name = INDENT * above, SEPARATOR.join(line.path[above:])
            if line.index >= 0:
                bar = replace(by_index[line.index], name=indent + name, brief="", digit=next(digits, ""))
                if self._lead is not None and line.index == lead:
                    self._lead = line.index, bar.name
            else:
                self._nodes.append(line.path)
                mark = UNFOLDED if line.path in unfolded else FOLDED
                children = [by_index[index] for index in line.children]
                note = self._node_note(line.path)
                bar = summed_bar(children, -len(self._nodes), f"{indent}{mark} {name}", note)
            lines.append(bar)
        return lines

    def _node_note(self, path: tuple[str, ...]) -> str:
        view = self._view
        at = -1 if view is None else view.decided - len(view.classes)
        return "decided" if view is not None and at >= 0 and view.parents[at] == SEPARATOR.join(path) else ""

    def _on_folded(self, node: int) -> None:
        self._toggled ^= {self._nodes[-node - 1]}
        self._show_bars()

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
        self._text = without_picture(False)

    def sizeHint(self) -> QSize:
        return QSize(SIDE, SIDE)

    def show_picture(self, picture: QImage | None) -> None:
        self._picture = picture if picture is not None and not picture.isNull() else None
        self._text = without_picture(picture is not None)
        unreadable = "No image" if picture is None else f"Image {self._text}".replace("\n", " ")
        self.setAccessibleName("Image of the task" if self._picture else unreadable)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        box = QRectF(self.rect())
        with QPainter(self) as painter:
            painter.fillRect(box, QColor(theme.DARK.canvas))
            if self._picture is None:
                painter.setPen(QColor(theme.DARK.second))
                painter.setFont(theme.font(theme.CAPTION))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self._text)
                return
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            size = self._picture.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
            target = QRectF(0, 0, size.width(), size.height())
            target.moveCenter(box.center())
            painter.drawImage(target, self._picture)


_brief_names = lru_cache(maxsize=4)(distinguishing_labels)


def _enumerated(words: Sequence[str]) -> str:
    """Join names: "one", "one and two" or "one, two and three"."""
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def _order_text(view: TaskView) -> str:
    """Describe which classes the digits select, if a task has many."""
    if view.covered:
        return f"1 to 9: the first of {len(view.classes):,} classes"
    best = "most voted" if view.posterior is None else "most probable"
    return f"1 to 9: the {best} of {len(view.classes):,}"


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
