"""Cards of spots, tasks and communities: grids to decide on many at once, and a filtered list of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFontMetrics, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from raterscope.text import counted, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import community_text_colour, paint_community, paint_rates
from raterscope.widgets.hints import KeyButton, KeyHelp
from raterscope.widgets.layouts import STRETCH, Stretch, horizontal, vertical
from raterscope.widgets.names import short_class_names
from raterscope.widgets.painting import in_lines, paint_text
from raterscope.widgets.panels.cards import Card, CardGrid, CardRow, Cards
from raterscope.widgets.panels.queue_items import QueueItem
from raterscope.widgets.panels.queue_panel import NOTED, LongQueue
from raterscope.widgets.parts import (
    ChoiceBox,
    ElidedLabel,
    Header,
    PaintedButton,
    Placeholder,
    plain_label,
    plain_tip,
)
from raterscope.widgets.theme import enlarge, set_lengths

PICTURE = 112

KINDS = {"disputed": "disputed", "detected": "detected", "rejected": "rejected", "decided": "decided by you"}
"""Lists of spots, by key."""

DOUBTFUL_CLASS, OF_CLASS = "class in doubt", "class "
"""Keys of further lists, if spots have classes; the class name follows the second key."""

WHERE = {"image": "on this image", "study": "on all images"}

EMPTY = {
    "disputed": "No disputed spots {}.",
    "detected": "No detected spots {} wait for your decision.",
    "rejected": "No rejected spots {} wait for your decision.",
    "decided": "No decisions {} yet.",
}


class SpotGrid(CardGrid):
    """Spots of one list as crops at the same scale."""

    KEY_HELP = KeyHelp(
        "In the grid of spots",
        (
            ("Click, Shift, Ctrl", "select several"),
            ("Ctrl+A", "select all"),
            ("Return", "show the spot on its image"),
        ),
    )

    filter_changed = Signal()  # other spots are requested: `kind` or `everywhere` changed
    opened = Signal(int)  # the spot that was double-clicked, or selected with Return
    accept_requested = Signal()
    reject_requested = Signal()
    skip_requested = Signal()
    left = Signal()  # the user wants the image again

    def __init__(self) -> None:
        super().__init__("Spots", picture=PICTURE, several=True)
        self.kind_choice = ChoiceBox("List of spots", KINDS)
        self.where_choice = ChoiceBox("Images of the spots", WHERE)
        for box in (self.kind_choice, self.where_choice):
            box.currentIndexChanged.connect(self.filter_changed)
        self._chosen = plain_label("", "small")
        self.accept = KeyButton("A", "accept", "accent", "Accept all selected spots")
        self.reject = KeyButton("R", "reject", "rejected", "Reject all selected spots")
        self.skip = KeyButton(
            "S", "skip", "second", "Leave the selected spots undecided and move them to the end"
        )
        back = KeyButton("G", "image", "second", "Return to the image")
        for button, signal in (
            (self.accept, self.accept_requested), (self.reject, self.reject_requested),
            (self.skip, self.skip_requested), (back, self.left),
        ):  # fmt: skip
            button.clicked.connect(signal)
        for index, box in enumerate((self.kind_choice, self.where_choice)):
            box.setMinimumContentsLength(9)
            self._header.row.insertWidget(1 + index, box)
        row = horizontal(
            self.accept, self.reject, self.skip, back, STRETCH, self._chosen, margins=(0, 0, 8, 4), spacing=8
        )
        self._column.insertLayout(1, row)
        self.view.returned.connect(self._on_opened)
        self.view.doubleClicked.connect(self._on_opened)
        self.view.selectionModel().selectionChanged.connect(self._on_selection)
        self._on_selection()

    def set_classes(self, names: Sequence[str]) -> None:
        """Offer lists by class, if there are any."""
        box, kinds = self.kind_choice, [DOUBTFUL_CLASS, *(OF_CLASS + name for name in names)]
        if [box.itemData(row) for row in range(len(KINDS), box.count())] == (kinds if names else []):
            return
        current = self.kind
        of_classes = {kind: kind.removeprefix(OF_CLASS) if kind != DOUBTFUL_CLASS else kind for kind in kinds}
        box.offer(KINDS, of_classes if names else {})
        if self.kind != current:
            self.filter_changed.emit()

    @property
    def kind(self) -> str:
        """Key of the selected list, see `KINDS`."""
        return str(self.kind_choice.key)

    @property
    def everywhere(self) -> bool:
        """True if spots of all images are listed."""
        return bool(self.where_choice.key == "study")

    def show_spots(self, spots: Cards, scale: str, *, reset: bool) -> None:
        """Show spots.

        `scale`: width of each crop: "40 px". `reset`: whether to scroll to the first spot; otherwise the
        position is kept.
        """
        where = "on any image" if self.everywhere else "on this image"
        total = len(spots.numbers)
        wide = f"each {scale} wide" if total > 1 else f"{scale} wide"
        self._header.set_subtitle(f"{counted(total, 'spot')}, {wide}" if total else "")
        show = self.show_cards if reset else self.exchange
        nothing = EMPTY.get(self.kind, "No spots of this list {}.").format(where)
        show(spots, nothing, f"Spots {self.kind_choice.currentText()} {where}")
        self._on_selection()

    def _on_selection(self) -> None:
        count = len(self.view.selectionModel().selectedIndexes())
        self._chosen.setText(f"{count:,} selected" if count else "")
        for button in (self.accept, self.reject, self.skip):
            button.setEnabled(bool(count))

    def _on_opened(self, index: QModelIndex) -> None:
        current = self.current
        if index.isValid() and current is not None:
            self.opened.emit(current)


NOTHING = "Find communities of annotators with similar answers."
WIDTH, PAD = 148, 8
NAME, SECOND_NAME, LINE, MATRIX = 20, 15, 15, 66
SYMBOL = 16
MAX_LINES = 5
MAX_RATES_IN_TIP = 12


@dataclass(frozen=True, eq=False)
class CommunitiesView:
    """C communities."""

    names: tuple[str, ...]  # (C,)
    members: NDArray[np.integer]  # (C,): number of annotators
    share: NDArray[np.floating]  # (C,): share of all votes; NaN if unknown
    accuracy: NDArray[np.floating]  # (C,): accuracy of their votes; NaN if unknown
    prototype: NDArray[np.floating] | None  # (C, J, L) or None: rate of each output given the true class
    # classes, outputs: tuple of J and L names
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    text: str = ""  # method and quality: "by behaviour, Bayesian factorisation | modularity 0.41"
    central: tuple[str, ...] = ()  # (C,): most central member; empty if unknown

    def __post_init__(self) -> None:
        count = len(self.names)
        if {len(self.members), len(self.share), len(self.accuracy)} != {count}:
            raise ValueError(f"not as much of everything as there are communities: {count}")
        shape = (count, len(self.classes), len(self.outputs))
        if self.prototype is not None and self.prototype.shape != shape:
            raise ValueError(f"prototypes of shape {self.prototype.shape}; expected {shape}")


class CommunityCards(QWidget):
    """Cards of communities. A click or Space selects a community; a second one clears the selection."""

    community_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.setAccessibleName("Communities")
        self.header = Header("Communities")
        self._label = ElidedLabel(role="small")
        self.copies = QPushButton()
        theme.set_role(self.copies, "link")
        self.copies.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.copies.setToolTip("Select these annotators in all views. Click again for the next group")
        self._nothing = Placeholder(NOTHING)
        self._row = CardRow[_Card]()
        self._row.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.second_row = horizontal((self._label, 1), spacing=8)
        vertical(
            self.header,
            self.second_row,
            self.copies,
            self._nothing,
            (self._row, 1),
            Stretch(0),
            inside=self,
            margins=(12, 8, 12, 4),
            spacing=4,
        )
        theme.notifier().changed.connect(self._fit_row)
        self.show_copying_link("")
        self.show_communities(None)

    @property
    def cards(self) -> Sequence[_Card]:
        """The cards shown."""
        return self._row.cards

    def _fit_row(self) -> None:
        room = self._row.horizontalScrollBar().sizeHint().height() + 2
        self._row.setMinimumHeight(self.cards[0].height() + room if self.cards else 0)

    def show_communities(self, view: CommunitiesView | None, chosen: int | None = None) -> None:
        """Show communities with one selected, without a signal; None shows none."""
        titles = [] if view is None else [_title(name, index) for index, name in enumerate(view.names)]
        longest = max(map(len, titles), default=0)
        self._row.set_cards(
            [] if view is None else [_Card(view, index, lines, longest) for index, lines in enumerate(titles)]
        )
        for card in self.cards:
            card.picked.connect(self._on_picked)
            card.stepped.connect(self._on_stepped)
            card.focused.connect(self._on_focused)
        self._fit_row()
        self.select(chosen)
        self._label.setText(view.text if view is not None else "")
        self._nothing.setVisible(not titles)
        self.set_working("")

    def set_working(self, text: str) -> None:
        """Show the progress of a search beside the title; an empty text shows the number of communities."""
        count = len(self.cards)
        self.header.set_subtitle(text or (f"{count:,} found | click to select" if count else ""))

    def show_copying_link(self, text: str) -> None:
        """Show a link about annotators who copy; an empty text hides it."""
        self.copies.setText(text)
        self.copies.setAccessibleName(text or "Possible copying")
        self.copies.setVisible(bool(text))

    def set_nothing(self, text: str) -> None:
        """Show why there are no communities."""
        self._nothing.setText(text or NOTHING)

    def select(self, index: int | None) -> None:
        """Select a community without a signal; None selects none."""
        for number, card in enumerate(self.cards):
            card.setChecked(number == index)
        if index is not None and 0 <= index < len(self.cards):
            self._row.ensureWidgetVisible(self.cards[index])

    @property
    def selected(self) -> int | None:
        """The community selected."""
        return next((index for index, card in enumerate(self.cards) if card.isChecked()), None)

    def _on_picked(self, index: int, checked: bool) -> None:
        self.select(index if checked else None)
        self.community_chosen.emit(index if checked else None)

    def _on_stepped(self, index: int, steps: int) -> None:
        goal = min(max(index + steps, 0), len(self.cards) - 1)
        self.cards[goal].setFocus(Qt.FocusReason.TabFocusReason)

    def _on_focused(self, index: int) -> None:
        self._row.ensureWidgetVisible(self.cards[index])


def _title(name: str, index: int) -> list[str]:
    """Return the number and name of a community, broken into lines."""
    text = name if name.startswith("community ") else f"{index + 1} {name}"
    return in_lines(text, QFontMetrics(theme.font(bold=True)), WIDTH - 2 * PAD - SYMBOL, MAX_LINES)


class _Card(PaintedButton):
    picked = Signal(int, bool)
    stepped = Signal(int, int)
    focused = Signal(int)

    def __init__(self, view: CommunitiesView, index: int, title: list[str], longest: int) -> None:
        super().__init__()
        self._view, self._index, self.title = view, index, title
        self.setCheckable(True)
        self.clicked.connect(self._on_clicked)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        lines = ", ".join(self._lines())
        name = view.names[index]
        called = f"Community {index + 1}" + ("" if name == f"community {index + 1}" else f", {name}")
        self.setAccessibleName(f"{called}: {lines}")
        central = f"; most central: {view.central[index]}" if view.central else ""
        self.setToolTip(plain_tip(self.accessibleName() + central + self._rates_in_words()))
        matrix = MATRIX + PAD if view.prototype is not None else 0
        self._name_room = NAME + (longest - 1) * SECOND_NAME  # equal for all cards, to align them
        height = 2 * PAD + self._name_room + LINE * len(self._lines()) + matrix
        set_lengths(self, width=WIDTH, height=height)

    def _lines(self) -> list[str]:
        view, index = self._view, self._index
        lines = [counted(int(view.members[index]), "member")]
        if np.isfinite(view.share).any():
            lines.append(f"{percent(float(view.share[index]))} of votes")
        if np.isfinite(view.accuracy).any():
            value = view.accuracy[index]
            lines.append(f"accuracy {value:.2f}" if np.isfinite(value) else "accuracy unknown")
        return lines

    def _rates_in_words(self) -> str:
        view = self._view
        if view.prototype is None or view.prototype[0].size > MAX_RATES_IN_TIP:
            return ""
        rows = zip(view.classes, view.prototype[self._index], strict=True)
        return "".join(
            f"; true {name}: "
            + ", ".join(f"{output} {rate:.2f}" for output, rate in zip(view.outputs, row, strict=True))
            for name, row in rows
        )

    def _on_clicked(self, checked: bool) -> None:
        self.picked.emit(self._index, checked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(self._index, 1 if key == Qt.Key.Key_Right else -1)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(self._index)

    def _paint(self, painter: QPainter) -> None:
        palette, view, index = theme.current(), self._view, self._index
        box = enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        lit = self.isChecked() or self.hasFocus()
        painter.setPen(QPen(QColor(palette.accent if lit else palette.line), 2 if self.isChecked() else 1))
        painter.setBrush(QColor(palette.raised) if self.isChecked() else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
        inner = box.adjusted(PAD, PAD, -PAD, -PAD)
        paint_community(painter, QPointF(inner.left() + 5, inner.top() + NAME / 2 - 1), index, 5)
        painter.setFont(theme.font(bold=True))
        title = QRectF(inner.left() + SYMBOL, inner.top(), inner.width() - SYMBOL, NAME - 2)
        for words in self.title:
            paint_text(painter, title, words, community_text_colour(index).name())
            title.translate(0, SECOND_NAME)
        painter.setFont(theme.font(theme.CAPTION))
        line = QRectF(inner.left(), inner.top() + self._name_room, inner.width(), LINE)
        for text in self._lines():
            paint_text(painter, line, text, palette.second)
            line = line.translated(0, LINE)
        if view.prototype is not None:
            paint_rates(
                painter, QRectF(inner.left(), line.top() + 4, inner.width(), MATRIX), view.prototype[index]
            )


FILTERS = {
    "undecided": "undecided",
    "all": "all tasks",
    "decided": "decided",
    "gold": "gold tasks",
    "disagree": "disagree with truth",
    "community": "of selected community",
    "few": "few votes",
    "bookmarked": "bookmarked",
    "commented": "with comment",
}
"""Filters of the queue: key and text."""

NO_MATCHES = {
    "undecided": "Every task is decided or has ground truth.",
    "decided": "No decisions yet.",
    "gold": "No gold tasks: import true classes, or decide a task and press G.",
    "disagree": "No answer disagrees with the ground truth.",
    "community": "Select a community to list the tasks of its members.",
    "few": "Every task has more than a few votes.",
    **{note.key: note.empty for note in NOTED},
}
"""Message for an empty list, by filter."""

MIN_SHARE = 0.005
"""Minimum probability to show the second class."""

WHOLE_ROW = 3
"""Maximum number of classes to show all posteriors; with more, only the two largest."""


@dataclass(frozen=True, eq=False)
class TasksView:
    """Tasks as arrays; list lines are created on demand."""

    names: Sequence[str]  # (N,)
    order: NDArray[np.integer]  # (M,): tasks shown, in display order
    classes: tuple[str, ...]  # (J,)
    votes: NDArray[np.integer]  # (N,)
    # decided, known: (N,): class decided by the expert, and class known otherwise; -1 for none
    decided: NDArray[np.integer]
    known: NDArray[np.integer]
    posterior: NDArray[np.floating] | None = None  # (N, J); None before the first fusion
    contested: frozenset[int] = frozenset()  # tasks with conflicting decisions of experts
    # task to its numbers of comments and bookmarks
    notes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    # parent classes; in `decided`, they are numbered after the classes
    parents: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Number of tasks."""
        return len(self.names)

    @cached_property
    def _brief(self) -> tuple[str, ...]:
        """Class names shortened to the distinguishing words, for narrow lines."""
        brief = short_class_names(self.classes)
        return tuple(brief[name] for name in self.classes)

    def item(self, task: int) -> QueueItem:
        """Return the list line of a task."""
        settled = max(int(self.decided[task]), int(self.known[task]))
        if self.decided[task] >= 0:
            detail = f"decided: {(*self.classes, *self.parents)[self.decided[task]]}"
        elif settled >= 0:
            detail = f"truth: {self.classes[settled]}"
        elif self.posterior is not None:
            detail = posterior_text(self._brief, self.posterior[task])
        else:
            detail = counted(int(self.votes[task]), "vote")
        if task in self.contested:
            detail = f"contested, {detail}"
        doubt = None if self.posterior is None else 1.0 - float(self.posterior[task].max())
        amount = "" if doubt is None else f"doubt {doubt:.2f}"
        counts = self.notes.get(task, {})
        return QueueItem(task, self.names[task], detail, doubt, settled >= 0, counts=counts, amount=amount)


def posterior_text(classes: Sequence[str], posterior: NDArray[np.floating]) -> str:
    """Format a posterior: "posterior 0.51 / 0.49", "frog .62, toad .31", "grade 2: .62"."""
    if len(classes) <= WHOLE_ROW:
        return "posterior " + " / ".join(f"{share:.2f}" for share in posterior)
    two = np.argsort(-posterior, kind="stable")[:2]
    two = two[[True, posterior[two[1]] >= MIN_SHARE]]
    return ", ".join(f"{_apart(classes[index])} {posterior[index]:.2f}" for index in two)


def _apart(name: str) -> str:
    """Separate a name that ends in a digit from the following number."""
    return f"{name}:" if name[-1:].isdigit() else name


class TaskList(LongQueue):
    """Tasks in the given order, to be decided one after the other."""

    def __init__(self) -> None:
        super().__init__("Tasks", FILTERS, empty=NO_MATCHES)


@dataclass(frozen=True, eq=False)
class GridView:
    """Tasks as arrays for the grid; cards are created on demand."""

    title: str  # common property: "ann 11 answered 3 where not is true"
    tasks: NDArray[np.integer]  # (M,): tasks, in display order
    names: Sequence[str]  # (N,): names of all tasks
    classes: tuple[str, ...]  # (J,)
    posterior: NDArray[np.floating] | None = None  # (N, J)
    outputs: tuple[str, ...] = ()  # (L,)
    # (M,): output given to each of `tasks`; -1 for none
    answers: NDArray[np.integer] | None = None
    pictures: bool = True  # whether the tasks have pictures

    @property
    def numbers(self) -> NDArray[np.integer]:
        """Task numbers, which identify their pictures."""
        return self.tasks

    def card(self, index: int) -> Card:
        """Return the card of a task: the given output and the posterior."""
        likeliest, share = self._model(index)
        return Card(self.names[self.tasks[index]], likeliest, share, self._answer_text(index))

    def text_of(self, index: int) -> str:
        """Return the text of a task: "task 12, answered 3, not 0.93"."""
        model = " ".join(self._model(index)).strip()
        parts = (self.names[self.tasks[index]], self._answer_text(index), model)
        return ", ".join(part for part in parts if part)

    def _answer_text(self, index: int) -> str:
        output = -1 if self.answers is None else int(self.answers[index])
        return f"answered {self.outputs[output]}" if output >= 0 else ""

    def _model(self, index: int) -> tuple[str, str]:
        if self.posterior is None:
            return "", ""
        row = self.posterior[self.tasks[index]]
        return self.classes[int(row.argmax())], f"{row.max():.2f}"


class TaskGrid(CardGrid):
    """Grid of tasks.

    A click or an arrow key selects a task; pictures are requested when they come into view.
    """

    def __init__(self) -> None:
        super().__init__("Tasks")
        self.show_tasks(None)

    def show_tasks(self, view: GridView | None) -> None:
        """Show tasks, or how to get some. Known pictures are kept."""
        self._header.set_title("Tasks", "" if view is None else view.title)
        self._header.set_subtitle("" if view is None else counted(len(view.tasks), "task"))
        nothing = (
            "Select a cell of a confusion matrix to see its tasks."
            if view is None
            else "No tasks in this cell."
        )
        self.show_cards(view, nothing, "Tasks" if view is None else view.title)
