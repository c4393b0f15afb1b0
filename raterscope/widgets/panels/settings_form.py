"""Form generated from the description of an algorithm's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLabel, QLineEdit, QPushButton, QWidget

from raterscope.algorithms.settings import Settings, SettingsError, Spec
from raterscope.widgets import theme
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.parts import ChoiceBox, plain_label, plain_tip
from raterscope.widgets.theme import set_lengths

LABEL_WIDTH = 132


class SettingsForm(QWidget):
    """Form with one row per setting: label and unit, editor, range or error message.

    The rows are built when the form is first shown, because most forms of a window never are. `settings`:
    initial settings; by default the defaults.
    """

    changed = Signal()  # a value was edited, valid or not

    def __init__(self, settings_class: type[Settings], settings: Settings | None = None) -> None:
        super().__init__()
        self._class = settings_class
        self._initial = settings if settings is not None else settings_class()
        self._rows: dict[str, _Row] = {}

    def build(self) -> None:
        """Build the rows now, if the size of the form is needed before it is shown."""
        if self.layout() is not None:
            return
        self._rows = {spec.name: _Row(spec, self) for spec in self._class.specs()}
        plain = [row for row in self._rows.values() if not row.spec.advanced]
        advanced = [row for row in self._rows.values() if row.spec.advanced]
        basic = _grid(plain)
        column = vertical(basic, inside=self, spacing=8)
        basic.show()  # where the form is visible, the layout would show it later
        self._fold = QPushButton()
        theme.set_role(self._fold, "link")
        self._fold.setText(f"{len(advanced)} more settings" if len(advanced) != 1 else "1 more setting")
        self._fold.setCheckable(True)
        self._fold.setToolTip("Settings that rarely need a change")
        self._folded = _grid(advanced)
        self._folded.hide()
        self._fold.toggled.connect(self._folded.setVisible)
        column.addWidget(self._fold, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._folded)
        self._fold.setVisible(bool(advanced))
        self._error = plain_label("", "error", wrap=True)
        self._error.hide()
        column.addWidget(self._error)
        for row in self._rows.values():
            row.edited.connect(self._on_edited)
        self.set_settings(self._initial)

    def showEvent(self, event: QShowEvent) -> None:
        """Build the rows."""
        self.build()
        super().showEvent(event)

    def settings(self) -> Settings:
        """Return the entered settings. Raises `SettingsError` with the message that the form shows."""
        if not self._rows:
            return self._initial
        return self._class(**{name: row.value() for name, row in self._rows.items()})

    def set_settings(self, settings: Settings) -> None:
        """Fill the form."""
        if not self._rows:
            self._initial = settings
            return
        for name, row in self._rows.items():
            row.set_value(getattr(settings, name))
        if any(
            row.spec.advanced and getattr(settings, name) != row.spec.default
            for name, row in self._rows.items()
        ):
            self._fold.setChecked(True)
        self._update_text(self.error())

    def error(self) -> str:
        """Return the error message, empty if all values are valid."""
        try:
            self.settings()
        except SettingsError as error:
            return error.about(error.label)
        return ""

    def editors(self) -> Mapping[str, QWidget]:
        """Editor of each setting."""
        self.build()
        return {name: row.editor for name, row in self._rows.items()}

    def _on_edited(self) -> None:
        self._update_text(self.error())
        self.changed.emit()

    def _update_text(self, sentence: str) -> None:
        beside = [row.refresh() for row in self._rows.values()]
        # An error shown at its row is not repeated for the whole form.
        self._error.setText("" if any(beside) else sentence)
        self._error.setVisible(bool(self._error.text()))


def _grid(rows: list[_Row]) -> QWidget:
    widget = QWidget()
    form = QFormLayout(widget)
    form.setContentsMargins(0, 0, 0, 0)
    form.setHorizontalSpacing(12)
    form.setVerticalSpacing(8)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
    for row in rows:
        form.addRow(row.label, row)
    return widget


class _Row(QWidget):
    edited = Signal()

    def __init__(self, spec: Spec, parent: QWidget) -> None:
        super().__init__(parent)
        self.spec = spec
        self.label = QLabel(textFormat=Qt.TextFormat.PlainText, text=spec.label, wordWrap=True)
        set_lengths(self.label, width=LABEL_WIDTH)
        self.label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.label.setContentsMargins(0, 5, 0, 0)
        self.editor = _editor(spec)
        self.label.setBuddy(self.editor)
        self.editor.setAccessibleName(f"{spec.label}, {spec.unit}" if spec.unit else spec.label)
        self.editor.setAccessibleDescription(spec.help)
        tip = plain_tip(f"{spec.help} {_hint(spec)}".strip())
        self.editor.setToolTip(tip)
        self.label.setToolTip(tip)
        self.estimated = QCheckBox(spec.left_open)
        self.estimated.setToolTip(f"Let the method set it: {spec.help}")
        self.estimated.setAccessibleName(f"{spec.label} is {spec.left_open}")
        self._hint = plain_label(_hint(spec), "hint", wrap=True)
        line = horizontal((self.editor, 1), spacing=8)
        if spec.unit:
            line.addWidget(plain_label(spec.unit, "second"))
        line.addWidget(self.estimated)
        vertical(line, self._hint, inside=self, spacing=2)
        # Shown only now, because a widget shown without a parent would briefly be a separate window.
        self.estimated.setVisible(spec.optional)
        self._hint.setVisible(bool(self._hint.text()))
        self.estimated.toggled.connect(self._on_estimated)
        if isinstance(self.editor, QLineEdit):
            self.editor.textEdited.connect(self.edited)
        elif isinstance(self.editor, QComboBox):
            self.editor.currentIndexChanged.connect(self.edited)
        elif isinstance(self.editor, QCheckBox):
            self.editor.toggled.connect(self.edited)

    def value(self) -> Any:
        """Return the validated value."""
        if self.spec.optional and self.estimated.isChecked():
            return None
        if isinstance(self.editor, QCheckBox):
            return self.editor.isChecked()
        if isinstance(self.editor, QComboBox):
            return self.editor.currentData()
        assert isinstance(self.editor, QLineEdit)
        text = self.editor.text().replace(",", ".").replace("−", "-")
        if not text.strip():
            expected = self.spec.range_in_words()
            raise SettingsError(f"is empty; expected {expected}.", self.spec.name, self.spec.label)
        return self.spec.check(self.spec.parse(text))

    def set_value(self, value: Any) -> None:
        """Show a value, without a signal."""
        for widget in (self.editor, self.estimated):
            widget.blockSignals(True)
        self.estimated.setChecked(value is None)
        content = self.spec.default if value is None else value
        if isinstance(self.editor, QCheckBox):
            self.editor.setChecked(bool(content))
        elif isinstance(self.editor, QComboBox):
            self.editor.setCurrentIndex(self.editor.findData(content))
        elif isinstance(self.editor, QLineEdit):
            self.editor.setText("" if content is None else self.spec.as_text(content))
        self.editor.setEnabled(value is not None or not self.spec.optional)
        for widget in (self.editor, self.estimated):
            widget.blockSignals(False)

    def refresh(self) -> bool:
        """Show the error message or the range; return whether there is an error."""
        try:
            self.value()
        except SettingsError as error:
            wrong = error.about(error.label)
        else:
            wrong = ""
        self._hint.setText(wrong or _hint(self.spec))
        self._hint.setVisible(bool(self._hint.text()))
        theme.set_role(self._hint, "error" if wrong else "hint")
        if self.editor.property("wrong") != bool(wrong):
            self.editor.setProperty("wrong", bool(wrong))
            style = self.editor.style()
            style.unpolish(self.editor)
            style.polish(self.editor)
        return bool(wrong)

    def _on_estimated(self, on: bool) -> None:
        self.editor.setEnabled(not on)
        if not on and isinstance(self.editor, QLineEdit):
            self.editor.setFocus()
        self.edited.emit()


def _editor(spec: Spec) -> QWidget:
    if spec.kind == "switch":
        return QCheckBox()
    if spec.kind == "choice":
        return ChoiceBox("", dict(spec.choices))
    return QLineEdit()


def _hint(spec: Spec) -> str:
    if spec.kind in ("switch", "choice"):
        return ""
    text = spec.range_in_words()
    return "" if text == "a number" else text
