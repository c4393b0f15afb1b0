"""Parasitaemia: what was counted beside the parasites, and what follows, with the formula of each figure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QDoubleSpinBox, QFormLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.painting import paint_words
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import let_wheel_pass, plain_label, plain_tip
from raterscope.widgets.text_size import set_lengths
from raterscope.widgets.wrapping import Pair, WrappingRow

__all__ = ["ASKED", "Counted", "FigureLine", "ParasitaemiaPanel"]

SCOPES = {
    "all": ("all images", "All images together, as fields of one film"),
    "one": ("this image", "Only the image on screen"),
}
NOTHING = "Press Fuse (F5) to compute the parasitaemia."
FORM_WIDTH, SIDE_BY_SIDE_FROM = 252, 500
NARROWEST = 148
ROW, FRAME = 42, 6


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted beside the parasites; None for what was not.

    Attributes
    ----------
    leukocytes, red_cells : float or None
    leukocytes_per_microlitre, red_cells_per_microlitre : float or None
    thickness : float or None
        Of the film, micrometres.
    """

    leukocytes: float | None = None
    red_cells: float | None = None
    leukocytes_per_microlitre: float | None = None
    red_cells_per_microlitre: float | None = None
    thickness: float | None = None


@dataclass(frozen=True, slots=True)
class FigureLine:
    """A figure with the formula that it comes from.

    Attributes
    ----------
    title, value, interval, formula : str
        Without a value the formula says what is missing.
    """

    title: str
    value: str
    interval: str
    formula: str


@dataclass(frozen=True, slots=True)
class _Asked:
    words: str
    nothing: str
    suffix: str
    decimals: int
    tip: str
    of_all: bool = False


ASKED = {
    "leukocytes": _Asked("Leukocytes", "not counted", "", 0, "Leukocytes counted on the same fields"),
    "leukocytes_per_microlitre": _Asked(
        "Leukocytes/µl",
        "8,000 assumed",
        "",
        0,
        "The patient's leukocytes per microlitre of blood",
        of_all=True,
    ),
    "red_cells": _Asked(
        "Red cells", "not counted", "", 0, "Red cells counted on the same fields of a thin film"
    ),
    "red_cells_per_microlitre": _Asked(
        "Red cells/µl",
        "5 million assumed",
        "",
        0,
        "The patient's red cells per microlitre of blood",
        of_all=True,
    ),
    "thickness": _Asked(
        "Film",
        "unknown",
        " µm thick",
        2,
        "Thickness of the film. Area times thickness is the volume",
        of_all=True,
    ),
}


class ParasitaemiaPanel(QWidget):
    """A form for what was counted, and the figures with their formulas.

    Signals
    -------
    scope_chosen : str
        "all" images, or "one".
    counted : Counted
        Something else was typed in.
    """

    scope_chosen = Signal(str)
    counted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.scope = ModeSwitch(SCOPES)
        header = WrappingRow((plain_label("PARASITAEMIA", "caption"), self.scope), 12, 2, last_right=True)
        self.fields = {name: _field(asked) for name, asked in ASKED.items()}
        form, self._labels = QWidget(), {}
        rows = QFormLayout(form)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setVerticalSpacing(4)
        rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for name, asked in ASKED.items():
            self._labels[name] = plain_label(asked.words, "second")
            rows.addRow(self._labels[name], self.fields[name])
            self.fields[name].valueChanged.connect(self._on_value)
        set_lengths(form, maximumWidth=FORM_WIDTH)
        self.list: LineList[FigureLine] = LineList(_FigureKind(), "Parasitaemia")
        self.list.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._note = plain_label("", "small", wrap=True)
        self._nothing = plain_label(NOTHING, "second", wrap=True)
        told = QWidget()
        right = QVBoxLayout(told)
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(4)
        for part in (self._nothing, self.list, self._note):
            right.addWidget(part)
        right.addStretch(0)
        inner = QWidget()
        theme.set_role(inner, "panel")
        inner.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addWidget(header)
        column.addWidget(Pair(form, told, SIDE_BY_SIDE_FROM, 20, 8), 1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inner)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)
        self.setFocusProxy(self.fields["leukocytes"])
        self.scope.chosen.connect(self._on_scope)
        self.show_figures((), "")

    def show_counted(self, counted: Counted) -> None:
        """Show what was counted, as it is kept."""
        for one in fields(counted):
            box = self.fields[one.name]
            blocked = box.blockSignals(True)
            box.setValue(getattr(counted, one.name) or 0.0)
            box.blockSignals(blocked)

    def show_figures(self, lines: Sequence[FigureLine], note: str, nothing: str = NOTHING) -> None:
        """Show figures with their formulas, what is to be known of them, or why there are none."""
        self.list.set_lines(lines)
        set_lengths(self.list, height=max(1, len(lines)) * ROW + FRAME)
        self._note.setText(note)
        self._nothing.setText(nothing)
        self._nothing.setVisible(not lines)
        self.list.setVisible(bool(lines))
        self._note.setVisible(bool(lines))

    @property
    def values(self) -> Counted:
        """What is typed in."""
        return Counted(**{name: box.value() or None for name, box in self.fields.items()})

    def _on_value(self) -> None:
        self.counted.emit(self.values)

    def _on_scope(self, scope: str) -> None:
        for name, asked in ASKED.items():
            for part in (self.fields[name], self._labels[name]):
                part.setVisible(scope == "all" or not asked.of_all)
        self.scope_chosen.emit(scope)


def _field(asked: _Asked) -> QDoubleSpinBox:
    box = QDoubleSpinBox()
    box.setRange(0.0, 1e7)
    box.setDecimals(asked.decimals)
    box.setGroupSeparatorShown(True)
    box.setSpecialValueText(asked.nothing)
    box.setSuffix(asked.suffix)
    box.setButtonSymbols(QDoubleSpinBox.ButtonSymbols.NoButtons)
    box.setKeyboardTracking(False)
    set_lengths(box, minimumWidth=NARROWEST)
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setToolTip(plain_tip(asked.tip))
    box.setAccessibleName(asked.tip)
    let_wheel_pass(box)
    return box


class _FigureKind(LineKind[FigureLine]):
    height = ROW

    def key(self, line: FigureLine) -> Hashable:
        return line.title

    def words(self, line: FigureLine) -> str:
        if not line.value:
            return f"{line.title}: {line.formula}"
        return f"{line.title}: {line.value}, {line.interval}. {line.formula} = {line.value}"

    def paint_line(self, painter: QPainter, box: QRectF, line: FigureLine) -> None:
        look = theme.current()
        half = box.height() / 2
        upper = QRectF(box.left() + 6, box.top() + 2, box.width() - 12, half - 2)
        lower = QRectF(box.left() + 6, box.top() + half, box.width() - 12, half - 3)
        painter.setFont(theme.font(bold=bool(line.value)))
        wide = QFontMetrics(painter.font()).horizontalAdvance(line.value)
        right = Qt.AlignmentFlag.AlignRight
        paint_words(painter, upper, line.value, look.text, side=right)
        painter.setFont(theme.font())
        title = upper.adjusted(0, 0, -(wide + 12), 0)
        paint_words(painter, title, line.title, look.second if line.value else look.third)
        painter.setFont(theme.font(theme.CAPTION))
        wide = QFontMetrics(painter.font()).horizontalAdvance(line.interval)
        paint_words(painter, lower, line.interval, look.second, side=right)
        paint_words(painter, lower.adjusted(0, 0, -(wide + 12), 0), line.formula, look.third)
