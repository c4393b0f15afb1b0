"""Evidence panel for one annotator of a pairs study: bias with its interval, tests, and decision keys."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QWidget

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.text import UNKNOWN, decimals, figure, percent
from raterscope.widgets import theme
from raterscope.widgets.figures.position_bias import BAD, UGLY, BiasOverTime
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import STRETCH, horizontal, stacked, vertical
from raterscope.widgets.panels.pair_browser import CLEARED, DECISIONS, OPEN, PairGrid
from raterscope.widgets.parts import ElidedLabel, Header, plain_label, rule
from raterscope.widgets.theme import set_lengths

NARROWEST = 300
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
    "swapped": "when A and B are swapped",
}


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
    # match, crowd_match, match_original: share of answers that agree with the corrected ranking: of this
    # annotator, of all, and of this annotator with the ranking of all answers
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
    # q_value, detectable: of the flip test: q value, and smallest detectable bias
    q_value: float = math.nan
    detectable: float = math.nan
    # whether the smallest detectable bias was computed; it is NaN if no number of choices suffices
    has_detectable: bool = False
    by_flips: bool = False  # whether the p value is that of the flip test
    untested: str = ""  # why the annotator was not tested; empty if it was
    sentence: str = ""  # conclusion in words
    swapped: str = ""  # how often the choice stays when the sides are swapped; empty without such comparisons

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
        if math.isfinite(self.match_original) and not self.swapped:  # there is no room for both
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
        set_lengths(self, minimumWidth=NARROWEST)
        self.header = Header("Annotator")
        set_lengths(self.header, minimumHeight=20)
        self.over_time = BiasOverTime()
        set_lengths(self.over_time, minimumHeight=86, maximumHeight=170)
        self.pairs = PairGrid()
        set_lengths(self.pairs, minimumHeight=48)
        nothing = plain_label(
            "Select an annotator, or press Tab for the next disputed one, "
            "to see the evidence for and against a bias.",
            "second",
            wrap=True,
        )
        nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        nothing.setContentsMargins(12, 0, 12, 0)
        self._pages = stacked(nothing, self._annotator())
        top = vertical(self.header, margins=(12, 12, 12, 4))
        vertical(top, (self._pages, 1), inside=self)
        self.show_annotator(None)

    def show_annotator(self, view: BiasView | None) -> None:
        """Show an annotator; None shows the empty state."""
        self._pages.setCurrentIndex(int(view is not None))
        for button in (self.flag, self.clear, self.skip):
            button.setEnabled(view is not None)
        if view is None:
            self.header.set_title("Annotator")
            self.header.set_aside("")
            return
        self.header.set_title("Annotator", view.name)
        aside = {"plain": "small"}.get(view.tone, view.tone)
        self.header.set_aside(view.state, aside)
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
            value.setText(texts.get(key, ""))
            name.setVisible(key in texts)
            value.setVisible(key in texts)
        sentence = " ".join(part for part in (view.untested, view.sentence) if part)
        self._sentence.setText(sentence)
        self._sentence.setVisible(bool(sentence))

    def _annotator(self) -> QWidget:
        self._number = plain_label("", "number-plain", selectable=True)
        set_lengths(self._number, minimumHeight=38)
        self._caption = ElidedLabel("", "second")
        self._interval = ElidedLabel("", "second")
        self._sentence = plain_label("", "second", wrap=True, selectable=True)
        beside = vertical(STRETCH, self._caption, self._interval, STRETCH)
        number = horizontal(self._number, (beside, 1), spacing=16)
        facts = QGridLayout()
        facts.setHorizontalSpacing(12)
        facts.setVerticalSpacing(3)
        facts.setColumnStretch(0, 1)
        self._facts = {}
        for row, (key, words) in enumerate(FACTS.items()):
            name, value = ElidedLabel(words, "second"), plain_label()
            value.setAlignment(Qt.AlignmentFlag.AlignRight)
            facts.addWidget(name, row, 0)
            facts.addWidget(value, row, 1)
            self._facts[key] = name, value
        layout = vertical(number, facts, self._sentence, margins=(12, 0, 12, 8), spacing=8)
        page = QWidget()
        vertical(layout, rule(), self.over_time, self._keys(), rule(), (self.pairs, 1), inside=page)
        return page

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
    """Describe which side is preferred, if the interval excludes 0."""
    if not math.isfinite(view.bias):
        return "bias unknown"
    if view.low > 0 or view.high < 0:
        return "bias (prefers left)" if view.bias > 0 else "bias (prefers right)"
    return "bias (either side)"


def _interval(view: BiasView) -> str:
    if not (math.isfinite(view.low) and math.isfinite(view.high)):
        return ""
    digits = decimals(view.low, view.high)
    return f"{view.low:.{digits}f} to {view.high:.{digits}f}, 95 %"
