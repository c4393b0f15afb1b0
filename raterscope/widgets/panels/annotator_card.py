"""Panels of an annotator: card over all kinds, for one or two annotators; position bias with tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QWidget

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.text import UNKNOWN, decimals, figure, percent, with_minus
from raterscope.widgets import theme
from raterscope.widgets.figures.position_bias import BAD, UGLY, BiasOverTime
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import STRETCH, ScrollRegion, horizontal, rule, stacked, vertical
from raterscope.widgets.painting import paint_text
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.panels.pair_browser import CLEARED, DECISIONS, OPEN, PairGrid
from raterscope.widgets.parts import ElidedLabel, Header, Placeholder, plain_label
from raterscope.widgets.tables.rows import paint_interval
from raterscope.widgets.theme import set_lengths

NARROWEST = 260
NOTHING = "Select an annotator, or press Tab for the next unusual one. Select two to compare them."

Figures = tuple[float, float, float]


@dataclass(frozen=True)
class CardLine:
    """A line of the card: a kind's heading, or a value of one or two annotators."""

    title: str
    texts: tuple[str, ...] = ()  # a value for each annotator; for a heading, one text at the right
    figures: tuple[Figures, ...] = ()  # (value, low, high) of shares, drawn as bars; otherwise empty
    marked: tuple[bool, ...] = ()  # values that are unusual
    heading: bool = False
    help: str = ""


@dataclass(frozen=True)
class CardView:
    """Everything on the card."""

    names: tuple[str, ...]  # one or two
    subtitle: str = ""  # state: "excluded", "one-sided"
    tone: str = "plain"  # {"plain", "rejected", "disputed"}
    # number, caption, interval: the most unusual value, or that with the most marks; empty while two
    # annotators are compared
    number: str = ""
    caption: str = ""
    interval: str = ""
    sentences: tuple[str, ...] = ()
    lines: tuple[CardLine, ...] = ()
    out: bool = False  # whether all are excluded
    selected: int = 1  # number of selected annotators
    joined: bool = False  # whether one of them has joined names
    flagged: bool = False  # whether all are flagged
    program: bool = False  # whether all are programs


class CardLineKind(LineKind[CardLine]):
    """Painting of the lines of a card."""

    height = 30

    def text_of(self, line: CardLine) -> str:
        """Return the text of a line."""
        return (
            f"{line.title}: {', '.join(text or 'unknown' for text in line.texts)}"
            if line.texts
            else line.title
        )

    def tip(self, line: CardLine) -> str:
        """Return the definition of a value."""
        return f"{self.text_of(line)}. {line.help}" if line.help else self.text_of(line)

    def paint_line(self, painter: QPainter, box: QRectF, line: CardLine) -> None:
        """Paint a title at the left, and a column for each annotator."""
        palette, right = theme.current(), Qt.AlignmentFlag.AlignRight
        inner = box.adjusted(12, 0, -12, 0)
        if line.heading:
            painter.setFont(theme.font(theme.CAPTION))
            paint_text(painter, inner.adjusted(0, 6, 0, 0), line.title.upper(), palette.second)
            paint_text(painter, inner.adjusted(0, 6, 0, 0), " · ".join(line.texts), palette.third, side=right)
            return
        painter.setFont(theme.font())
        columns = max(len(line.texts), 1)
        name = inner.width() * (0.3 if columns == 1 else 0.28)
        paint_text(
            painter, QRectF(inner.left(), inner.top(), name, inner.height()), line.title, palette.second
        )
        width = (inner.width() - name) / columns
        for at, text in enumerate(line.texts):
            cell = QRectF(inner.left() + name + at * width + 8, inner.top(), width - 8, inner.height())
            marked = at < len(line.marked) and line.marked[at]
            colour = palette.rejected if marked else palette.text if text else palette.third
            figures = line.figures[at] if line.figures else (math.nan,) * 3
            bar = math.isfinite(figures[0])
            words = QRectF(cell.left(), cell.top(), cell.width(), cell.height() - (7 if bar else 0))
            paint_text(painter, words, text or "–", colour)
            if bar:
                line_box = QRectF(cell.left(), cell.bottom() - 5, cell.width(), 2)
                ink = palette.accent if colour == palette.text else colour
                paint_interval(painter, line_box, figures[0], (figures[1], figures[2]), ink)


def _below(header: Header, nothing: str, page: QWidget, panel: QWidget, *pinned: QWidget) -> QStackedWidget:
    """Lay out a panel: below its header, a text while it is empty, otherwise the page.

    `pinned`: widgets at the bottom; with large text, the page scrolls above them.
    """
    label = Placeholder(nothing)
    label.setContentsMargins(12, 0, 12, 0)
    pages = stacked(label, page)
    shown = ScrollRegion(pages) if pinned else pages
    vertical(vertical(header, margins=(12, 12, 12, 4)), (shown, 1), *pinned, inside=panel)
    return pages


def _number_row() -> tuple[QLabel, ElidedLabel, ElidedLabel, QHBoxLayout]:
    """Create the deciding number, its caption and interval, and the row that holds them."""
    number, caption, interval = (
        plain_label("", "number-plain", selectable=True), ElidedLabel("", "second"), ElidedLabel("", "second")
    )  # fmt: skip
    set_lengths(number, minimumHeight=38)
    beside = vertical(STRETCH, caption, interval, STRETCH)
    return number, caption, interval, horizontal(number, (beside, 1), spacing=16)


class AnnotatorCard(QWidget):
    """Panel with the card and the keys; these are drawn, not bound."""

    exclude_requested = Signal()
    weigh_requested = Signal()
    flag_requested = Signal()
    program_requested = Signal()
    join_requested = Signal()
    separate_requested = Signal()
    feedback_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        set_lengths(self, minimumWidth=NARROWEST)
        self.header = Header("Annotator")
        set_lengths(self.header, minimumHeight=20)
        self._key_rows = QWidget()
        vertical(rule(), self._keys(), inside=self._key_rows)
        self._pages = _below(self.header, NOTHING, self._card(), self, self._key_rows)
        self.show_card(None)

    def show_card(self, view: CardView | None) -> None:
        """Show a card; None shows the empty state."""
        self._pages.setCurrentIndex(int(view is not None))
        self._key_rows.setVisible(view is not None)
        if view is None:
            self.header.set_title("Annotator")
            self.header.set_subtitle("")
            return
        self.header.set_title("Annotator" if len(view.names) == 1 else "Compare", ", ".join(view.names))
        self.header.set_subtitle(view.subtitle, {"plain": "small"}.get(view.tone, view.tone))
        theme.set_role(self._number, f"number-{view.tone}")
        for label, text in ((self._number, view.number), (self._caption, view.caption),
                            (self._interval, view.interval)):  # fmt: skip
            label.setText(text)
            label.setVisible(bool(text))
        self._number.setAccessibleName(f"{view.names[0]}, {view.caption} {view.number}, {view.interval}")
        self._sentence.setText("\n".join(view.sentences))
        self._sentence.setVisible(bool(view.sentences))
        self.lines.set_lines(view.lines)
        restore = ("restore", "accent", "Count their marks again from the next fusions on")
        exclude = ("exclude…", "rejected", "Show what would change in all kinds, then exclude with a reason")
        self.exclude.set_word(*(restore if view.out else exclude))
        self.weigh.setEnabled(not view.out)
        self.join.setEnabled(view.selected > 1)
        self.separate.setEnabled(view.joined)
        flag = ("flag…", "rejected", "Mark for attention, with a reason; fusions do not change")
        self.flag.set_word(*(("unflag", "second", "Remove the flag") if view.flagged else flag))
        program = ("program", "second", "Fusions calibrate a program, and do not count it as one more voter")
        person = ("person", "second", "Count the answers as votes again")
        self.program.set_word(*(person if view.program else program))
        self.feedback.setEnabled(view.selected == 1)

    def set_sentences(self, sentences: Sequence[str]) -> None:
        """Replace the sentences, for example when the effect of an exclusion is known."""
        self._sentence.setText("\n".join(sentences))
        self._sentence.setVisible(bool(sentences))

    def _card(self) -> QWidget:
        self._number, self._caption, self._interval, number = _number_row()
        self._sentence = plain_label("", "second", wrap=True, selectable=True)
        top = vertical(number, self._sentence, margins=(12, 0, 12, 8), spacing=8)
        self.lines: LineList[CardLine] = LineList(CardLineKind(), "Values of the annotator")
        page = QWidget()
        vertical(top, rule(), (self.lines, 1), inside=page)
        return page

    def _keys(self) -> QHBoxLayout:
        self.exclude = KeyButton("X", "exclude…", "rejected")
        self.weigh = KeyButton("W", "down-weight…", "second", "Count their marks in part, in all kinds")
        self.join = KeyButton(
            "J", "join", "accent", "The selected names are one annotator; the first is the main name"
        )
        self.separate = KeyButton(
            "U", "separate", "second", "The joined names are annotators of their own again"
        )
        self.flag = KeyButton("F", "flag…", "rejected")
        self.program = KeyButton("M", "program", "second")
        rows = vertical(margins=(12, 8, 12, 8), spacing=8)
        first = (self.exclude, self.exclude_requested), (self.weigh, self.weigh_requested)
        self.feedback = KeyButton(
            "P", "feedback…", "second", "Write a page for this annotator: strengths and clearest mistakes"
        )
        second = (self.join, self.join_requested), (self.separate, self.separate_requested)
        third = (
            (self.flag, self.flag_requested),
            (self.program, self.program_requested),
            (self.feedback, self.feedback_requested),
        )
        for several in (first, second, third):
            row = horizontal(spacing=20 if len(several) == 2 else 8)
            for button, request in several:
                button.clicked.connect(request)
                row.addWidget(button, 1)
            rows.addLayout(row)
        outer = QHBoxLayout()
        outer.addLayout(rows)
        return outer


NARROWEST_BIAS = 300
FACTS = {
    "counts": "left / right",
    "match": "agrees with the crowd",
    "original": "with the original ranking",
    "draws": "flagged in",
    "flips": "flip test",
    "detectable": "smallest detectable bias",
    "test": "t test, Benjamini-Hochberg",
    "doubtful": "when doubtful (close pairs)",
    "clear": "when clear (far pairs)",
    "swapped": "with sides swapped",
}
GATHERED = ("doubtful", "clear")
"""Rows whose values are computed later than the others."""


@dataclass(frozen=True, eq=False)
class BiasView:
    """Bias evidence for one annotator."""

    name: str  # name of the annotator
    left: int
    right: int
    ties: int = 0
    behaviour: int = -1  # number in `BEHAVIOURS`; -1 before a fusion and for untested annotators
    flagged: bool = False
    decided: int = OPEN  # `OPEN`, `FLAGGED` or `CLEARED`, as in the queue
    # bias, low, high: bias and its 95 % interval, positive for left; NaN if unknown
    bias: float = math.nan
    low: float = math.nan
    high: float = math.nan
    # match, crowd_match, match_original: share of answers that agree with the corrected ranking, of this
    # annotator and of all; and of this annotator with the ranking of all answers
    match: float = math.nan
    crowd_match: float = math.nan
    match_original: float = math.nan
    # selected, draws: number of knockoff draws that select the annotator, and number of draws
    selected: int = 0
    draws: int = 0
    # whether the t test with Benjamini-Hochberg flags the annotator too; None without a test
    test_flags: bool | None = None
    p_value: float = math.nan
    # doubtful_left, clear_left: share of left answers among comparisons of close and of distant items
    doubtful_left: float = math.nan
    clear_left: float = math.nan
    gathering: bool = False  # whether the shares of close and distant items are still being computed
    # q_value, detectable: of the flip test: q value, and smallest detectable bias
    q_value: float = math.nan
    detectable: float = math.nan
    # whether the smallest detectable bias was computed; it is NaN if no number of choices suffices
    has_detectable: bool = False
    by_flips: bool = False  # whether the p value is that of the flip test
    untested: str = ""  # why the annotator was not tested; empty if it was
    sentence: str = ""  # conclusion in words
    swapped: str = ""  # consistency with swapped sides, in words; empty without such comparisons

    @property
    def state(self) -> str:
        """State of the annotator in words: "leaning, flagged"."""
        if self.decided != OPEN:
            return DECISIONS[self.decided]
        if self.behaviour < 0:
            return "not tested" if self.untested else ""
        return BEHAVIOUR_WORDS[self.behaviour] + (", flagged" if self.flagged else "")

    @property
    def tone(self) -> str:
        """Colour role of the number."""
        if self.decided == CLEARED or self.behaviour not in (UGLY, BAD):
            return "plain"
        return "disputed" if self.behaviour == UGLY else "rejected"

    def facts(self) -> dict[str, str]:
        """Values for each row of `FACTS`; rows without a value are omitted."""
        texts = {"counts": f"{self.left:,} / {self.right:,}" + (f", {self.ties:,} tied" if self.ties else "")}
        if math.isfinite(self.match):
            texts["match"] = percent(self.match)
            if math.isfinite(self.crowd_match):
                texts["match"] += f", crowd {percent(self.crowd_match)}"
        if math.isfinite(self.match_original) and not self.swapped:  # both do not fit
            texts["original"] = percent(self.match_original)
        if self.draws and not self.untested:
            texts["draws"] = f"{self.selected:,} of {self.draws:,} draws"
        if self.test_flags is not None:
            texts["test"] = "flagged" if self.test_flags else "not flagged"
            if math.isfinite(self.p_value) and not self.by_flips:
                texts["test"] += f", p {_small(self.p_value)}"
        if self.by_flips and math.isfinite(self.p_value):
            texts["flips"] = f"p {_small(self.p_value)}, q {_small(self.q_value)}"
        if self.has_detectable and not self.untested:
            reached = math.isfinite(self.detectable)
            texts["detectable"] = f"{self.detectable:.2f}" if reached else "none: too few answers"
        for key, left in (("doubtful", self.doubtful_left), ("clear", self.clear_left)):
            if math.isfinite(left):
                texts[key] = f"left in {percent(left)}" if left >= 0.5 else f"right in {percent(1 - left)}"
        if self.swapped:
            texts["swapped"] = self.swapped
        return texts


NO_BIAS = (
    "Select an annotator, or press Tab for the next disputed one, to see the evidence for and against a bias."
)


class BiasPanel(QWidget):
    """Bias evidence for one annotator: deciding number, counts, tests, course over time, comparisons.

    Keys are drawn, not bound.
    """

    flag_requested = Signal()
    clear_requested = Signal()
    skip_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        set_lengths(self, minimumWidth=NARROWEST_BIAS)
        self.header = Header("Annotator")
        set_lengths(self.header, minimumHeight=20)
        page = QWidget()
        self._pages = _below(self.header, NO_BIAS, page, self)
        self._fill(page)
        self.show_annotator(None)

    def show_annotator(self, view: BiasView | None) -> None:
        """Show an annotator; None shows the empty state."""
        self._pages.setCurrentIndex(int(view is not None))
        for button in (self.flag, self.clear, self.skip):
            button.setEnabled(view is not None)
        if view is None:
            self.header.set_title("Annotator")
            self.header.set_subtitle("")
            return
        self.header.set_title("Annotator", view.name)
        subtitle = {"plain": "small"}.get(view.tone, view.tone)
        self.header.set_subtitle(view.state, subtitle)
        number = figure(view.bias, view.low, view.high)
        self._number.setText("–" if number == UNKNOWN else number)
        theme.set_role(self._number, f"number-{view.tone}")
        self._caption.setText(_caption(view))
        self._interval.setText(_interval(view))
        self._number.setAccessibleName(
            f"{view.name}, {view.state}, {self._caption.text()} {self._number.text()}, {_interval(view)}"
        )
        texts = view.facts()
        for key, (name, value) in self._facts.items():
            # Hiding a row for a moment would make all rows below it jump.
            kept = view.gathering and key in GATHERED and not name.isHidden()
            value.setText(texts.get(key, ""))
            name.setVisible(key in texts or kept)
            value.setVisible(key in texts or kept)
        sentence = " ".join(part for part in (view.untested, view.sentence) if part)
        self._sentence.setText(sentence)
        self._sentence.setVisible(bool(sentence))

    def _fill(self, page: QWidget) -> None:
        """Make the contents, parents first, because Qt restyles all descendants of a moved widget."""
        scrolled, evidence = QWidget(), QWidget()
        below = vertical(ScrollRegion(scrolled, always=True), inside=page)
        self.over_time = BiasOverTime()
        set_lengths(self.over_time, maximumHeight=170)
        vertical(evidence, rule(), self.over_time, inside=scrolled)
        self._number, self._caption, self._interval, number = _number_row()
        self._sentence = plain_label("", "second", wrap=True, selectable=True)
        self._facts = {key: (ElidedLabel(words, "second"), plain_label()) for key, words in FACTS.items()}
        rows = [horizontal((name, 1), value, spacing=12) for name, value in self._facts.values()]
        facts = vertical(*rows, spacing=3)
        vertical(number, facts, self._sentence, inside=evidence, margins=(12, 0, 12, 8), spacing=8)
        self.pairs = PairGrid()
        set_lengths(self.pairs, minimumHeight=48)
        below.addLayout(self._keys())
        below.addWidget(rule())
        below.addWidget(self.pairs, 1)

    def _keys(self) -> QHBoxLayout:
        self.flag = KeyButton("F", "flag", "rejected", "Flag this annotator as biased")
        self.clear = KeyButton("C", "clear", "accent", "Clear this annotator: not biased")
        self.skip = KeyButton("S", "skip", "second", "Leave undecided and go to the next annotator")
        keys = horizontal(margins=(12, 4, 12, 8), spacing=20)
        for button, request in (
            (self.flag, self.flag_requested),
            (self.clear, self.clear_requested),
            (self.skip, self.skip_requested),
        ):
            button.clicked.connect(request)
            keys.addWidget(button)
        keys.addStretch(1)
        return keys


def _small(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"


def _caption(view: BiasView) -> str:
    """Describe the preferred side, if the interval excludes 0."""
    if not math.isfinite(view.bias):
        return "bias unknown"
    if view.low > 0 or view.high < 0:
        return "bias (prefers left)" if view.bias > 0 else "bias (prefers right)"
    return "bias (either side)"


def _interval(view: BiasView) -> str:
    if not (math.isfinite(view.low) and math.isfinite(view.high)):
        return ""
    digits = decimals(view.low, view.high)
    return with_minus(f"{view.low:.{digits}f} to {view.high:.{digits}f}, 95 %")
