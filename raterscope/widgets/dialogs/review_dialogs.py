"""Dialogs of a review: exclusion, reason, scale, coding, mask edits, series, acceptance plan, budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import (
    QCheckBox,
    QColorDialog,
    QComboBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from raterscope.algorithms.settings import Settings
from raterscope.widgets import theme
from raterscope.widgets.forms import FormDialog, form_of
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.panels.exclusion_panel import COMMON_REASONS, ExclusionPanel, ReasonField
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, NumberBox, plain_label
from raterscope.widgets.theme import set_lengths

HALF = 0.5
WEIGHTS = (0.75, HALF, 0.25, 0.1)
"""Weights offered for down-weighting."""

LARGEST_SHIFT = 5_000.0
"""Maximum shift that can be entered, in mm."""

_AXES = ("x, to the left", "y, to the back", "z, to the head")


class ExclusionDialog(FormDialog):
    """Dialog with the exclusion `panel`; open it with ``open()``; it can be accepted once there is a reason.

    `annotator`: name of the annotator to exclude or down-weight. `weight`: initial weight; None for
    exclusion. `reasons`, `marks`, `answers`, `weights`: see `ExclusionPanel`.
    """

    def __init__(
        self,
        annotator: str,
        parent: QWidget | None = None,
        *,
        reasons: Sequence[str] = COMMON_REASONS,
        marks: str,
        answers: str,
        weights: Sequence[float] = (),
        weight: float | None = None,
    ) -> None:
        super().__init__(
            f"Exclude{' or down-weight' if weights else ''} an annotator",
            parent,
            width=480,
            height=460 if weights else 360,
        )
        self.reason = ""
        self.panel = ExclusionPanel(annotator, reasons, marks=marks, answers=answers, weights=weights)
        self.panel.set_weight(weight)
        vertical(self.panel, inside=self)
        self.panel.decided.connect(self._on_decided)
        self.panel.cancelled.connect(self._on_cancelled)

    def _on_decided(self, reason: str) -> None:
        self.reason = reason
        self.accept()

    def _on_cancelled(self) -> None:
        if self.panel.state != "working":
            self.reject()


class ReasonDialog(FormDialog):
    """Dialog that asks for the reason of a decision; open it with ``open()`` and read `reason` when accepted.

    `annotator`: name of the subject. `reasons`: reasons offered on the keys Alt+1, Alt+2 ... `act`,
    `subject`: action and its object: "Exclude" and "an annotator". `hint`: consequence in one sentence.
    """

    def __init__(
        self,
        annotator: str,
        reasons: Sequence[str] = COMMON_REASONS,
        parent: QWidget | None = None,
        *,
        act: str = "Exclude",
        hint: str = "The marks stay in the study but do not count in fusions.",
        subject: str = "an annotator",
    ) -> None:
        super().__init__(f"{act} {subject}", parent, width=380)
        self._field = ReasonField(reasons)
        self.buttons, self.edit = self._field.buttons, self._field.edit
        self.lay_out(f"{act} {annotator}", hint, 4, self._field, 8, accept=act)
        self.accepting.setEnabled(False)
        self._field.changed.connect(self.accepting.setEnabled)
        self.edit.setFocus()

    @property
    def reason(self) -> str:
        """The reason given."""
        return self._field.reason


UNITS = {"nm": 1e-3, "µm": 1.0, "mm": 1e3}
"""Units of length, in micrometres."""


class ScaleDialog(FormDialog):
    """Dialog for a length; open it with ``open()`` and read `length` and `everywhere` when accepted.

    `pixels`: length of the line. `images`: number of images in the study.
    """

    def __init__(self, pixels: float, images: int, parent: QWidget | None = None) -> None:
        super().__init__("Set the scale", parent, width=360)
        self._pixels = pixels
        self.number = NumberBox(minimum=0.0, maximum=1e6, decimals=3)
        self.number.setSpecialValueText(" ")
        self.number.setAccessibleName("Length of the line")
        self.unit = QComboBox()
        self.unit.addItems(list(UNITS))
        self.unit.setCurrentText("µm")
        self.unit.setAccessibleName("Unit")
        self.all_images = QCheckBox(f"Use for all {images:,} images")
        self.all_images.setChecked(True)
        self.all_images.setVisible(images > 1)
        self._explanation = plain_label("", "second")
        row = horizontal((self.number, 1), self.unit, spacing=None)
        self.lay_out(
            "How long is this line?", f"It is {pixels:,.1f} pixels long.", row, self._explanation,
            self.all_images, 8, accept="Set the scale",
        )  # fmt: skip
        self.number.valueChanged.connect(self._show_pixel_size)
        self.unit.currentTextChanged.connect(self._show_pixel_size)
        self._show_pixel_size()
        self.number.setFocus()
        self.number.selectAll()

    @property
    def length(self) -> float:
        """The length in micrometres."""
        return self.number.value() * UNITS[self.unit.currentText()]

    @property
    def everywhere(self) -> bool:
        """True if the scale applies to all images."""
        return self.all_images.isChecked()

    def _show_pixel_size(self) -> None:
        known = self.length > 0
        self.accepting.setEnabled(known)
        self._explanation.setText(f"A pixel is {self.length / self._pixels:.4g} µm." if known else " ")


Find = Callable[[str], Sequence["CodeChoice"]]

_NO_CODE = "No code (exported as Tissue)"


@dataclass(frozen=True)
class CodeChoice:
    """A coded concept: "SCT:80891009", its meaning, and the code of its usual category."""

    code: str
    meaning: str
    category: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """Meaning and code."""
        return f"{self.meaning}   {self.code}"


@dataclass(frozen=True)
class StructureChoice:
    """Selected properties of a structure."""

    type: CodeChoice | None = None
    category: CodeChoice | None = None
    side: str = ""  # a key of `StructureOffer.sides`; empty for none
    colour: tuple[int, int, int] | None = None  # (red, green, blue): 0 to 255
    role: str = ""  # RT ROI interpreted type; empty for none
    label: str = ""  # name in exports; empty for the structure's own


@dataclass(frozen=True)
class StructureOffer:
    """Codes and properties offered for a structure."""

    categories: tuple[CodeChoice, ...]  # the default first
    roles: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()  # standard names
    suggested_label: str = ""  # standard name of this structure; empty if there is none
    sides: dict[str, str] = field(default_factory=dict)  # dict of key to words


class StructureDialog(FormDialog):
    """Dialog for codes and properties; open it with ``open()`` and read `choice` when accepted.

    Codes can be searched after `set_search`.

    `name`: name of the structure. `chosen`: current choice. `source`: source of the codes, in one sentence.
    """

    def __init__(
        self, name: str, chosen: StructureChoice, offer: StructureOffer, source: str,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__("Code and colour of a structure", parent, width=460)
        self._find: Find | None = None
        self._type = chosen.type
        self._colour = chosen.colour
        self._offer = offer
        self.search = QLineEdit(placeholderText="Loading codes…")
        self.search.setAccessibleName("Search codes")
        self.search.setEnabled(False)
        self.codes = QListWidget()
        self.codes.setAccessibleName("Codes found")
        set_lengths(self.codes, minimumHeight=150)
        self.chosen_label = plain_label()
        self.category = QComboBox()
        for choice in offer.categories:
            self.category.addItem(choice.text, choice)
        if chosen.category is not None:
            if chosen.category not in offer.categories:
                self.category.addItem(chosen.category.text, chosen.category)
            self.category.setCurrentIndex(self.category.findText(chosen.category.text))
        self.side = QComboBox()
        self.side.addItem("none", "")
        for key, words in offer.sides.items():
            self.side.addItem(words, key)
        self.side.setCurrentIndex(max(self.side.findData(chosen.side), 0))
        self.role = QComboBox()
        self.role.addItem("none", "")
        for role in offer.roles:
            self.role.addItem(role, role)
        self.role.setCurrentIndex(max(self.role.findData(chosen.role), 0))
        self.label = QComboBox(editable=True)
        self.label.addItems(list(offer.labels))
        self.label.setCurrentText(chosen.label)
        edit = self.label.lineEdit()
        assert edit is not None
        edit.setMaxLength(64)
        edit.setPlaceholderText(name)
        self.use_label = QPushButton(f"Use {offer.suggested_label}")
        self.use_label.setVisible(offer.suggested_label not in ("", chosen.label))
        self.use_label.clicked.connect(self._use_label)
        self.colour = QPushButton()
        self.colour.setAccessibleName("Colour")
        self.colour.clicked.connect(self._ask_colour)
        self._put_in_place(name, source)
        self._show_type()
        self._show_colour()
        self.search.textChanged.connect(self._on_search)
        self.codes.currentItemChanged.connect(self._on_code)

    def _put_in_place(self, name: str, source: str) -> None:
        for choice in (self.side, self.role, self.label):
            choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        form = form_of({
            "Code": self.chosen_label, "Search": self.search, "": self.codes, "Category": self.category,
            "Side of the body": self.side, "Role in radiotherapy": self.role, "Name in exports": self.label,
            " ": self.use_label, "Colour": self.colour,
        })  # fmt: skip
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        self.lay_out(name, source, form, 8, accept="Apply")
        for button in (self.use_label, self.colour):
            button.setAutoDefault(False)

    @property
    def choice(self) -> StructureChoice:
        """Selected properties."""
        return StructureChoice(
            type=self._type,
            category=None if self._type is None else self.category.currentData(),
            side=self.side.currentData(),
            colour=self._colour,
            role=self.role.currentData(),
            label=self.label.currentText().replace("\\", "/").strip(),
        )

    def set_search(self, find: Find) -> None:
        """Enable the code search by `find`, which returns the best matches first."""
        self._find = find
        self.search.setEnabled(True)
        self.search.setPlaceholderText("Words, or a code such as 80891009")
        self.search.setFocus()
        self._on_search(self.search.text())

    def choose_colour(self, colour: QColor) -> None:
        """Set the colour."""
        if colour.isValid():
            self._colour = (colour.red(), colour.green(), colour.blue())
            self._show_colour()

    def _on_search(self, text: str) -> None:
        with QSignalBlocker(self.codes):
            self.codes.clear()
            if text.strip() and self._find is not None:
                for choice in self._find(text):
                    item = QListWidgetItem(choice.text)
                    item.setData(Qt.ItemDataRole.UserRole, choice)
                    self.codes.addItem(item)
                if not self.codes.count():
                    nothing = QListWidgetItem("No matches")
                    nothing.setFlags(Qt.ItemFlag.NoItemFlags)
                    self.codes.addItem(nothing)
            else:
                self.codes.addItem(_NO_CODE)
            self.codes.setCurrentRow(-1)

    def _on_code(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self._type = item.data(Qt.ItemDataRole.UserRole)
            usual = "" if self._type is None else self._type.category
            known = [self.category.itemData(index).code for index in range(self.category.count())]
            if usual in known:
                self.category.setCurrentIndex(known.index(usual))
            self._show_type()

    def _show_type(self) -> None:
        self.chosen_label.setText(_NO_CODE if self._type is None else self._type.text)
        for widget in (self.category, self.side):
            widget.setEnabled(self._type is not None)

    def _show_colour(self) -> None:
        if self._colour is None:
            self.colour.setText("Choose a colour…")
            return
        shade = QColor(*self._colour)
        swatch = QPixmap(QSize(28, 16))
        swatch.fill(shade)
        self.colour.setIcon(QIcon(swatch))
        self.colour.setIconSize(QSize(28, 16))
        self.colour.setText(shade.name())

    def _ask_colour(self) -> None:
        dialog = QColorDialog(QColor(*self._colour) if self._colour else QColor("#e69f00"), self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setOption(QColorDialog.ColorDialogOption.DontUseNativeDialog)
        dialog.colorSelected.connect(self.choose_colour)
        dialog.open()

    def _use_label(self) -> None:
        self.label.setCurrentText(self._offer.suggested_label)
        self.use_label.hide()


class BudgetDialog(FormDialog):
    """Dialog for a budget; open it with ``open()``.

    `settings`: initial settings. `costs`: description of the current costs.
    """

    def __init__(self, settings: Settings, costs: str, parent: QWidget | None = None) -> None:
        super().__init__("Budget of votes", parent, width=460)
        self.costs: Path | None = None  # the chosen table of costs; None to keep the current ones
        self.cleared = False  # whether to reset all annotators to equal costs
        self.form = SettingsForm(type(settings), settings)
        self.form.build()
        self._label = plain_label(costs, "second", wrap=True)
        self.choose, self.clear = QPushButton("Read costs…"), QPushButton("Equal costs")
        self.choose.setToolTip("A table with the columns annotator, cost of a vote, and most")
        for button in (self.choose, self.clear):
            button.setAutoDefault(False)
        self.choose.clicked.connect(self._on_choose)
        self.clear.clicked.connect(self._on_clear)
        row = horizontal((self._label, 1), self.choose, self.clear, spacing=8)
        self.lay_out("", "", self.form, row, accept="Assign votes")
        self.form.changed.connect(lambda: self.accepting.setEnabled(not self.form.error()))

    def set_costs(self, path: Path) -> None:
        """Choose a table of costs."""
        self.costs, self.cleared = path, False
        self._label.setText(f"Costs of {path.name}")

    def _on_choose(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Costs of annotators", "", "Tables (*.csv *.tsv)")
        if name:
            self.set_costs(Path(name))

    def _on_clear(self) -> None:
        self.costs, self.cleared = None, True
        self._label.setText("All votes cost the same")


HINT = (
    "The queue then shows a random sample of them. Decide each: an answer that you change is an error, and "
    "their number accepts or rejects all of them."
)

LINES = 3
"""Number of lines of a plan, for which the dialog reserves space."""


class AcceptanceDialog(FormDialog):
    """Dialog for a plan; open it with ``open()``, and show the plan whenever `form` changes.

    `lot`: items from which the sample is drawn: "840 undecided tasks in the runs shown".
    """

    def __init__(self, lot: str, settings: type[Settings], parent: QWidget | None = None) -> None:
        super().__init__("Start an acceptance plan", parent, width=460)
        self.form = SettingsForm(settings)
        self.form.build()
        self._plan = plain_label("", wrap=True)
        set_lengths(self._plan, minimumHeight=LINES * 18)
        self.lay_out(lot, HINT, 4, self.form, 8, self._plan, accept="Draw the sample")
        self.accepting.setEnabled(False)

    def show_plan(self, text: str, *, ready: bool) -> None:
        """Show a plan, or why there is none."""
        self._plan.setText(text)
        self.accepting.setEnabled(ready)
        self.adjustSize()


LARGEST_MARGIN = 100.0


class MarginDialog(FormDialog):
    """Dialog for a margin; open it with ``open()`` and read `margin` when accepted.

    `unit`: mm, or px if sizes are unknown. `margin`: initial margin.
    """

    def __init__(self, structure: str, unit: str, margin: float, parent: QWidget | None = None) -> None:
        super().__init__("Add a margin", parent, width=360)
        self.editor = NumberBox(
            minimum=-LARGEST_MARGIN, maximum=LARGEST_MARGIN, decimals=1, value=margin, suffix=f" {unit}"
        )
        self.editor.setAccessibleName("Margin; negative to shrink")
        text = "Grows the structure in all directions; a negative margin shrinks it."
        self.lay_out(structure, text, {"Margin": self.editor}, 8, accept="Apply")
        self.editor.valueChanged.connect(lambda value: self.accepting.setEnabled(value != 0))
        self.editor.selectAll()
        self.editor.setFocus()

    @property
    def margin(self) -> float:
        """The margin; below 0 to shrink."""
        return self.editor.value()


class CombineDialog(FormDialog):
    """Dialog for a combination; open it with ``open()`` and read `how` and `other` when accepted.

    `structure`: structure that changes. `combinations`: combinations by name. `masks`: other masks by key.
    """

    def __init__(
        self,
        structure: str,
        combinations: Mapping[str, str],
        masks: Mapping[str, str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Combine with another mask", parent, width=420)
        self.how_box, self.other_box = ChoiceBox("Change", combinations), ChoiceBox("Other mask", masks)
        fields = {box.accessibleName(): box for box in (self.how_box, self.other_box)}
        self.lay_out(structure, "", fields, 8, accept="Apply")
        self.other_box.setFocus()

    @property
    def how(self) -> str:
        """Name of the combination."""
        return str(self.how_box.key)

    @property
    def other(self) -> str:
        """Key of the other mask."""
        return str(self.other_box.key)


class RegistrationDialog(QDialog):
    """Dialog beside the slices that stays open while values are applied; open it with ``show()``.

    `case`: name of the case. `series`: other volumes by their numbers. `selected`: the first to show.
    """

    series_chosen = Signal(int)
    register_requested = Signal(int)  # number of the series
    apply_requested = Signal(int, tuple, tuple)  # series, shift (x, y, z) in mm, rotation in degrees
    reset_requested = Signal(int)

    def __init__(
        self, case: str, series: Mapping[int, str], selected: int | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Register second series")
        self.series_box = ChoiceBox("Series to move", series)
        self.series_box.choose(selected)
        self.position = plain_label("", "second", wrap=True)
        values = QWidget()
        grid = QGridLayout(values)
        grid.setContentsMargins(0, 0, 0, 0)
        for column, axis in enumerate(_AXES, start=1):
            grid.addWidget(plain_label(axis, "small"), 0, column)
        self.shift = self._editors(grid, 1, "Shift", LARGEST_SHIFT, " mm")
        self.rotation = self._editors(grid, 2, "Rotation", 180.0, "°")
        self.registering = _button("Register", self._on_register)
        theme.set_role(self.registering, "primary")
        self.applying = _button("Apply values", self._on_apply)
        self.resetting = _button("Reset position", self._on_reset)
        close = _button("Close", self.reject)
        vertical(
            plain_label(f"Move a series onto {case}", "title", wrap=True), self.series_box, self.position, 4,
            values, 8, horizontal(self.resetting, STRETCH, close, self.applying, self.registering, spacing=8),
            inside=self, margins=(16, 16, 16, 16), spacing=8,
        )  # fmt: skip
        self.registering.setDefault(True)
        self.series_box.currentIndexChanged.connect(lambda _index: self.series_chosen.emit(self.series))
        self.series_box.setFocus()

    def _editors(self, grid: QGridLayout, row: int, noun: str, largest: float, unit: str) -> list[NumberBox]:
        grid.addWidget(plain_label(noun), row, 0)
        editors = []
        for column, axis in enumerate(_AXES, start=1):
            editor = NumberBox(minimum=-largest, maximum=largest, decimals=2, suffix=unit)
            about = axis.partition(",")[0]
            editor.setAccessibleName(f"Rotation about {about}" if noun == "Rotation" else f"Shift {axis}")
            editor.valueChanged.connect(self._on_typed)
            set_lengths(editor, minimumWidth=110)
            grid.addWidget(editor, row, column)
            editors.append(editor)
        return editors

    @property
    def series(self) -> int:
        """Number of the chosen series."""
        return int(self.series_box.key)

    def show_motion(self, shift: Sequence[float], rotation: Sequence[float], text: str, moved: bool) -> None:
        """Show the current position of the series.

        `shift`: (x, y, z) in mm. `rotation`: around x, y and z, in degrees. `moved`: whether it can be reset.
        """
        for editor, value in zip((*self.shift, *self.rotation), (*shift, *rotation), strict=True):
            with QSignalBlocker(editor):
                editor.setValue(value)
        self.position.setText(text)
        layout = self.layout()
        if layout is not None:  # a longer sentence takes more lines
            layout.activate()
            self.resize(self.width(), max(self.height(), layout.totalHeightForWidth(self.width())))
        self.resetting.setEnabled(moved)
        self.applying.setEnabled(False)

    def _on_typed(self) -> None:
        self.applying.setEnabled(True)

    def _on_register(self) -> None:
        self.register_requested.emit(self.series)
        self.accept()

    def _on_apply(self) -> None:
        shift, rotation = (tuple(editor.value() for editor in row) for row in (self.shift, self.rotation))
        self.apply_requested.emit(self.series, shift, rotation)

    def _on_reset(self) -> None:
        self.reset_requested.emit(self.series)


def _button(text: str, pressed: object) -> QPushButton:
    button = QPushButton(text, autoDefault=False)
    button.clicked.connect(pressed)
    return button
