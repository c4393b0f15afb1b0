"""Panels of measurements on an image, and of parasitaemia."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QKeySequence, QPainter
from PySide6.QtWidgets import QFormLayout, QLineEdit, QPushButton, QSizePolicy, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.hints import KeyButton, KeyHelp
from raterscope.widgets.layouts import Pair, Stretch, WrappingRow, scroll_area, vertical
from raterscope.widgets.painting import paint_text
from raterscope.widgets.panels.lists import LineKind, LineList
from raterscope.widgets.parts import (
    ElidedLabel,
    Header,
    NumberBox,
    Placeholder,
    let_wheel_pass,
    plain_label,
    plain_tip,
)
from raterscope.widgets.theme import set_lengths

NO_SHAPES = "Draw a line or an outline on the image. Measurements are listed here and saved."


@dataclass(frozen=True, slots=True)
class ShapeLine:
    """List entry for a measured line or outline."""

    key: Hashable  # identifies the shape
    title: str  # "area 3"
    value: str  # "12.4 µm²"
    detail: str  # additional text: "outline 13.1 µm"
    cells: tuple[str, ...]  # cells of a copied row


REMOVE_SCALE, USE_FILE = "Remove scale", "Use the file's scale"
REMOVALS = {
    REMOVE_SCALE: "Remove your scale: the file states none, so that lengths are in pixels",
    USE_FILE: "Remove your scale and use the one in the image file",
}
"""Texts of the button that removes a scale, and their tooltips."""


class MeasurePanel(QWidget):
    """Scale, drawing tools, and list of measurements."""

    mode_requested = Signal(str)  # "scale", "length" or "area"
    shape_chosen = Signal(object)  # key of the selected line; None for none
    delete_requested = Signal(object)

    KEY_HELP = KeyHelp(
        "On the selected measurement",
        (
            ("Arrows", "move; with Shift ten times as far"),
            (".", "select next point"),
            (",", "select previous point"),
            ("Del", "delete"),
            ("Ctrl+C", "copy as a table"),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._header = Header("Measure")
        self.scale_label = ElidedLabel("", "second")
        self.scale = KeyButton("L", "set scale", "second", "Draw along a known length and enter it")
        self.unscale = QPushButton(REMOVE_SCALE)
        self.length = KeyButton("D", "length", "second", "Draw a line")
        self.area = KeyButton("O", "area", "second", "Draw an outline")
        self.list: LineList[ShapeLine] = LineList(_ShapeKind(), "Measurements")
        set_lengths(self.list, minimumHeight=48)
        self._columns: tuple[str, ...] = ()
        self._nothing = Placeholder(NO_SHAPES)
        vertical(
            self._header,
            self.scale_label,
            WrappingRow((self.scale, self.length, self.area, self.unscale), 12, 4),
            (self._nothing, 1),
            (self.list, 1),
            inside=self,
            margins=(12, 8, 12, 8),
            spacing=4,
        )
        self.setFocusProxy(self.list)
        for button in (self.scale, self.length, self.area):
            button.clicked.connect(self._on_mode)
        self.delete = self._action("Delete", QKeySequence.StandardKey.Delete, self._on_delete)
        self.copy = self._action("Copy as a table", QKeySequence.StandardKey.Copy, self.copy_table)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.show_scale("", "")
        self.show_lines((), ())

    def show_scale(self, text: str, removal: str) -> None:
        """Show the pixel size and its source, and the button that removes a scale; an empty text hides it."""
        self.scale_label.setText(text)
        self.unscale.setText(removal or REMOVE_SCALE)
        self.unscale.setToolTip(REMOVALS.get(removal, ""))
        self.unscale.setVisible(bool(removal))

    def show_lines(self, columns: Sequence[str], lines: Sequence[ShapeLine]) -> None:
        """Show the measurements; the columns are those of a copied table."""
        self._columns = tuple(columns)
        self.list.set_lines(lines)
        self.list.setVisible(bool(lines))
        self._nothing.setVisible(not lines)
        self._header.set_subtitle(f"{len(lines):,} on this image" if lines else "")
        self._on_current()

    def choose(self, key: Hashable) -> None:
        """Select a line; None clears the selection."""
        self.list.setCurrentIndex(self.list.index_of(key))

    def copy_table(self) -> None:
        """Copy all lines as a table for a spreadsheet."""
        rows = [self._columns, *(line.cells for line in self.list.lines)]
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in rows) + "\n")

    @property
    def current(self) -> ShapeLine | None:
        """Key of the selected line."""
        row = self.list.currentIndex().row()
        return self.list.lines[row] if 0 <= row < len(self.list.lines) else None

    def _action(self, text: str, keys: QKeySequence.StandardKey, slot: Callable[[], None]) -> QAction:
        action = QAction(text, self.list)
        action.setShortcut(keys)
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(slot)
        self.list.addAction(action)
        return action

    def _on_mode(self) -> None:
        modes = {self.scale: "scale", self.length: "length", self.area: "area"}
        self.mode_requested.emit(next(mode for button, mode in modes.items() if button is self.sender()))

    def _on_current(self, _index: QModelIndex | None = None) -> None:
        current = self.current
        self.delete.setEnabled(current is not None)
        self.shape_chosen.emit(None if current is None else current.key)

    def _on_delete(self) -> None:
        if self.current is not None:
            self.delete_requested.emit(self.current.key)


class _ShapeKind(LineKind[ShapeLine]):
    height = 24

    def text_of(self, line: ShapeLine) -> str:
        return ", ".join(part for part in (line.title, line.value, line.detail) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: ShapeLine) -> None:
        palette = theme.current()
        painter.setFont(theme.font())
        third = box.width() / 3
        left = QRectF(box.left() + 6, box.top(), third - 12, box.height())
        paint_text(painter, left, line.title, palette.second)
        middle = QRectF(box.left() + 0.75 * third, box.top(), third, box.height())
        paint_text(painter, middle, line.value, palette.text, side=Qt.AlignmentFlag.AlignRight)
        painter.setFont(theme.font(theme.CAPTION))
        right = QRectF(middle.right() + 12, box.top(), box.right() - middle.right() - 18, box.height())
        paint_text(painter, right, line.detail, palette.third)


SCOPES = {
    "all": ("all images", "All images together, as fields of one film"),
    "one": ("this image", "Only the image on screen"),
}
NOT_FUSED = "Press Fuse (F5) to compute the parasitaemia."
FORM_WIDTH, SIDE_BY_SIDE_FROM = 252, 460
NARROWEST = 148
ROW, FRAME = 42, 6
LONGEST_NOUN = 40


@dataclass(frozen=True, slots=True)
class Counted:
    """Quantities counted besides parasites; None if not counted."""

    leukocytes: float | None = None
    red_cells: float | None = None
    leukocytes_per_microlitre: float | None = None
    red_cells_per_microlitre: float | None = None
    thickness: float | None = None  # thickness of the film in micrometres
    noun: str = ""  # plural name of the structures that are counted


@dataclass(frozen=True, slots=True)
class FigureLine:
    """Derived value with its formula."""

    # title, value, interval, formula: without a value, the formula states the missing input
    title: str
    value: str
    interval: str
    formula: str


@dataclass(frozen=True, slots=True)
class _Field:
    text: str
    nothing: str
    suffix: str
    decimals: int
    tip: str
    of_all: bool = False


FIELDS = {
    "leukocytes": _Field("Leukocytes", "not counted", "", 0, "Leukocytes counted on the same fields"),
    "leukocytes_per_microlitre": _Field(
        "Leukocytes/µl",
        "8,000 assumed",
        "",
        0,
        "The patient's leukocytes per microlitre of blood",
        of_all=True,
    ),
    "red_cells": _Field(
        "Red cells", "not counted", "", 0, "Red cells counted on the same fields of a thin film"
    ),
    "red_cells_per_microlitre": _Field(
        "Red cells/µl",
        "5 million assumed",
        "",
        0,
        "The patient's red cells per microlitre of blood",
        of_all=True,
    ),
    "thickness": _Field(
        "Film",
        "unknown",
        " µm thick",
        2,
        "Thickness of the film. Area times thickness is the volume",
        of_all=True,
    ),
}


class ParasitaemiaPanel(QWidget):
    """Form for counted quantities, and the derived values with their formulas."""

    scope_chosen = Signal(str)  # "all" images, or "one"
    counted = Signal(object)  # the values were edited

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.scope = ModeSwitch(SCOPES)
        header = WrappingRow((plain_label("PARASITAEMIA", "caption"), self.scope), 12, 2, last_right=True)
        self.fields = {name: _field(field) for name, field in FIELDS.items()}
        form, self._labels = QWidget(), {}
        rows = QFormLayout(form)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setVerticalSpacing(4)
        rows.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.noun, self._noun = QLineEdit(), ""
        self.noun.setMaxLength(LONGEST_NOUN)
        self.noun.setToolTip("Plural name of the structures that are counted, in figures and reports")
        self.noun.setAccessibleName("Name of the counted structures")
        self._noun_label = plain_label("Counted", "second")
        rows.addRow(self._noun_label, self.noun)
        self.noun.editingFinished.connect(self._on_noun)
        for name, field in FIELDS.items():
            self._labels[name] = plain_label(field.text, "second")
            rows.addRow(self._labels[name], self.fields[name])
            self.fields[name].valueChanged.connect(self._on_value)
        set_lengths(form, maximumWidth=FORM_WIDTH)
        self.list: LineList[FigureLine] = LineList(_FigureKind(), "Parasitaemia")
        self.list.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._note = plain_label("", "small", wrap=True)
        self._nothing = plain_label(NOT_FUSED, "second", wrap=True)
        side = QWidget()
        vertical(self._nothing, self.list, self._note, Stretch(0), inside=side, spacing=4)
        inner = QWidget()
        vertical(scroll_area(inner), inside=self)
        vertical(
            header,
            (Pair(form, side, SIDE_BY_SIDE_FROM, 20, 8), 1),
            inside=inner,
            margins=(12, 8, 12, 8),
            spacing=6,
        )
        self.setFocusProxy(self.fields["leukocytes"])
        self.scope.chosen.connect(self._on_scope)
        self.show_figures((), "")

    def show_counted(self, counted: Counted, noun: str) -> None:
        """Show the stored counts; `noun`: noun of the counted structures in figures."""
        self.noun.setPlaceholderText(noun)
        if counted.noun != self._noun:  # otherwise a name that is being entered stays
            self._noun = counted.noun
            self.noun.setText(counted.noun)
        for name, box in self.fields.items():
            blocked = box.blockSignals(True)
            box.setValue(getattr(counted, name) or 0.0)
            box.blockSignals(blocked)

    def show_figures(self, lines: Sequence[FigureLine], note: str, nothing: str = NOT_FUSED) -> None:
        """Show derived values with formulas and notes, or why there are none."""
        self.list.set_lines(lines)
        set_lengths(self.list, height=max(1, len(lines)) * ROW + FRAME)
        self._note.setText(note)
        self._nothing.setText(nothing)
        self._nothing.setVisible(not lines)
        self.list.setVisible(bool(lines))
        self._note.setVisible(bool(lines))

    @property
    def values(self) -> Counted:
        """Values entered in the form."""
        numbers = {name: box.value() or None for name, box in self.fields.items()}
        return Counted(**numbers, noun=self.noun.text().strip())

    def _on_noun(self) -> None:
        if self.values.noun != self._noun:
            self._noun = self.values.noun
            self._on_value()

    def _on_value(self) -> None:
        self.counted.emit(self.values)

    def _on_scope(self, scope: str) -> None:
        self.noun.setVisible(scope == "all")
        self._noun_label.setVisible(scope == "all")
        for name, field in FIELDS.items():
            for part in (self.fields[name], self._labels[name]):
                part.setVisible(scope == "all" or not field.of_all)
        self.scope_chosen.emit(scope)


def _field(field: _Field) -> NumberBox:
    box = NumberBox(minimum=0.0, maximum=1e7, decimals=field.decimals)
    box.setGroupSeparatorShown(True)
    box.setSpecialValueText(field.nothing)
    box.setSuffix(field.suffix)
    box.setKeyboardTracking(False)
    set_lengths(box, minimumWidth=NARROWEST)
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setToolTip(plain_tip(field.tip))
    box.setAccessibleName(field.tip)
    let_wheel_pass(box)
    return box


class _FigureKind(LineKind[FigureLine]):
    height = ROW

    def key(self, line: FigureLine) -> Hashable:
        return line.title

    def text_of(self, line: FigureLine) -> str:
        if not line.value:
            return f"{line.title}: {line.formula}"
        return f"{line.title}: {line.value}, {line.interval}. {line.formula} = {line.value}"

    def paint_line(self, painter: QPainter, box: QRectF, line: FigureLine) -> None:
        palette = theme.current()
        half = box.height() / 2
        upper = QRectF(box.left() + 6, box.top() + 2, box.width() - 12, half - 2)
        lower = QRectF(box.left() + 6, box.top() + half, box.width() - 12, half - 3)
        painter.setFont(theme.font(bold=bool(line.value)))
        wide = QFontMetrics(painter.font()).horizontalAdvance(line.value)
        right = Qt.AlignmentFlag.AlignRight
        paint_text(painter, upper, line.value, palette.text, side=right)
        painter.setFont(theme.font())
        title = upper.adjusted(0, 0, -(wide + 12), 0)
        paint_text(painter, title, line.title, palette.second if line.value else palette.third)
        painter.setFont(theme.font(theme.CAPTION))
        wide = QFontMetrics(painter.font()).horizontalAdvance(line.interval)
        paint_text(painter, lower, line.interval, palette.second, side=right)
        paint_text(painter, lower.adjusted(0, 0, -(wide + 12), 0), line.formula, palette.third)
