"""Cards of the annotator communities: size, accuracy and labelling behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from raterscope.text.numbers import count, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import community_ink, paint_community, paint_rates
from raterscope.widgets.painting import in_lines, paint_words
from raterscope.widgets.panels.cards import CardRow
from raterscope.widgets.parts import ElidedLabel, Header, plain_label, plain_tip
from raterscope.widgets.text_size import enlarge, set_lengths

__all__ = ["CommunitiesView", "CommunityCards"]

NOTHING = "Find communities of annotators with similar answers."
WIDTH, PAD = 148, 8
NAME, SECOND_NAME, LINE, MATRIX = 20, 15, 15, 66
SYMBOL = 16
MOST_LINES = 5
MOST_SAID = 12


@dataclass(frozen=True, eq=False)
class CommunitiesView:
    """C communities.

    Attributes
    ----------
    names : tuple of C str
    members : (C,) int
        Number of annotators.
    share : (C,) float
        Share of all votes; NaN if unknown.
    accuracy : (C,) float
        Accuracy of their votes; NaN if unknown.
    prototype : (C, J, L) float or None
        Rate of each output given the true class.
    classes, outputs : tuple of J and L names
    central : tuple of C str
        Most central member; empty if unknown.
    words : str
        Method and quality: "by behaviour, non-negative factorisation | modularity 0.41".
    """

    names: tuple[str, ...]
    members: NDArray[np.integer]
    share: NDArray[np.floating]
    accuracy: NDArray[np.floating]
    prototype: NDArray[np.floating] | None
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    words: str = ""
    central: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.names)
        if {len(self.members), len(self.share), len(self.accuracy)} != {count}:
            raise ValueError(f"not as much of everything as there are communities: {count}")
        shape = (count, len(self.classes), len(self.outputs))
        if self.prototype is not None and self.prototype.shape != shape:
            raise ValueError(f"prototypes of shape {self.prototype.shape}; expected {shape}")


class CommunityCards(QWidget):
    """Cards of communities. A click or Space selects a community; a second one clears the selection.

    Signals
    -------
    community_chosen : int or None
    """

    community_chosen = Signal(object)

    def __init__(self, title: str = "Communities", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(title)
        self.header = Header(title)
        self._words = ElidedLabel(role="small")
        self.copies = QPushButton()
        theme.set_role(self.copies, "link")
        self.copies.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.copies.setToolTip("Select these annotators in all views. Click again for the next group")
        self._nothing = plain_label(NOTHING, "second", wrap=True)
        self._row = CardRow[_Card]()
        self._row.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 4)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addWidget(self._words)
        column.addWidget(self.copies)
        column.addWidget(self._nothing)
        column.addWidget(self._row, 1)
        column.addStretch(0)
        theme.notifier().changed.connect(self._fit_row)
        self.tell_copies("")
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
        count = 0 if view is None else len(view.names)
        self._row.set_cards([] if view is None else [_Card(view, index) for index in range(count)])
        for card in self.cards:
            card.picked.connect(self._on_picked)
            card.walked.connect(self._on_walked)
            card.focused.connect(self._on_focused)
        self._fit_row()
        self.select(chosen)
        self._words.setText(view.words if view is not None else "")
        self._words.setVisible(bool(count and self._words.text()))
        self._nothing.setVisible(not count)
        self.set_working("")

    def set_working(self, words: str) -> None:
        """Show the progress of a search beside the title; an empty text shows the number of communities."""
        count = len(self.cards)
        self.header.set_aside(words or (f"{count:,} found | click to select" if count else ""))

    def tell_copies(self, words: str) -> None:
        """Show a link about annotators who copy; an empty text hides it."""
        self.copies.setText(words)
        self.copies.setAccessibleName(words or "Possible copying")
        self.copies.setVisible(bool(words))

    def set_nothing(self, words: str) -> None:
        """Show why there are no communities."""
        self._nothing.setText(words or NOTHING)

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

    def _on_walked(self, index: int, steps: int) -> None:
        goal = min(max(index + steps, 0), len(self.cards) - 1)
        self.cards[goal].setFocus(Qt.FocusReason.TabFocusReason)

    def _on_focused(self, index: int) -> None:
        self._row.ensureWidgetVisible(self.cards[index])


class _Card(QAbstractButton):
    picked = Signal(int, bool)
    walked = Signal(int, int)
    focused = Signal(int)

    def __init__(self, view: CommunitiesView, index: int) -> None:
        super().__init__()
        self._view, self._place = view, index
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
        longest = max(len(self._title(number)) for number in range(len(view.names)))
        self._name_room = NAME + (longest - 1) * SECOND_NAME  # of all alike, so that they are aligned
        height = 2 * PAD + self._name_room + LINE * len(self._lines()) + matrix
        set_lengths(self, width=WIDTH, height=height)

    def _title(self, index: int) -> list[str]:
        """Return the number and name of a community in a few lines."""
        name = self._view.names[index]
        words = name if name.startswith("community ") else f"{index + 1} {name}"
        room = WIDTH - 2 * PAD - SYMBOL
        return in_lines(words, QFontMetrics(theme.font(bold=True)), room, MOST_LINES)

    def _lines(self) -> list[str]:
        view, index = self._view, self._place
        lines = [count(int(view.members[index]), "member")]
        if np.isfinite(view.share).any():
            lines.append(f"{percent(float(view.share[index]))} of votes")
        if np.isfinite(view.accuracy).any():
            value = view.accuracy[index]
            lines.append(f"accuracy {value:.2f}" if np.isfinite(value) else "accuracy unknown")
        return lines

    def _rates_in_words(self) -> str:
        view = self._view
        if view.prototype is None or view.prototype[0].size > MOST_SAID:
            return ""
        rows = zip(view.classes, view.prototype[self._place], strict=True)
        return "".join(
            f"; true {name}: "
            + ", ".join(f"{output} {rate:.2f}" for output, rate in zip(view.outputs, row, strict=True))
            for name, row in rows
        )

    def _on_clicked(self, checked: bool) -> None:
        self.picked.emit(self._place, checked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.walked.emit(self._place, 1 if key == Qt.Key.Key_Right else -1)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(self._place)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        look, view, index = theme.current(), self._view, self._place
        box = enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        lit = self.isChecked() or self.hasFocus()
        painter.setPen(QPen(QColor(look.accent if lit else look.line), 2 if self.isChecked() else 1))
        painter.setBrush(QColor(look.raised) if self.isChecked() else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
        inner = box.adjusted(PAD, PAD, -PAD, -PAD)
        paint_community(painter, QPointF(inner.left() + 5, inner.top() + NAME / 2 - 1), index, 5)
        painter.setFont(theme.font(bold=True))
        title = QRectF(inner.left() + SYMBOL, inner.top(), inner.width() - SYMBOL, NAME - 2)
        for words in self._title(index):
            paint_words(painter, title, words, community_ink(index).name())
            title.translate(0, SECOND_NAME)
        painter.setFont(theme.font(theme.CAPTION))
        line = QRectF(inner.left(), inner.top() + self._name_room, inner.width(), LINE)
        for text in self._lines():
            paint_words(painter, line, text, look.second)
            line = line.translated(0, LINE)
        if view.prototype is not None:
            paint_rates(
                painter, QRectF(inner.left(), line.top() + 4, inner.width(), MATRIX), view.prototype[index]
            )
