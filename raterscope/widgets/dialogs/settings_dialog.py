"""Dialog of the program's settings: theme, text size, expert's name, cache folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QDialog, QFormLayout, QLineEdit, QSpinBox, QTabWidget, QWidget

from raterscope.widgets.dialogs.key_bindings import KeyBinding, KeyTable
from raterscope.widgets.dialogs.parts import FolderField, lay_out
from raterscope.widgets.layouts import STRETCH, vertical
from raterscope.widgets.parts import ChoiceBox, plain_label, plain_tip
from raterscope.widgets.theme import LARGEST, SMALLEST, set_lengths

THEMES = (("system", "System"), ("dark", "Dark"), ("light", "Light"))
_STEP = 10
_LONGEST_NAME = 80


@dataclass(frozen=True)
class ProgramSettings:
    """Settings of the program."""

    theme: str = "system"  # {"system", "dark", "light"}
    text_percent: int = 100  # size of the interface's text
    expert: str = ""  # name in the journal of decisions; empty for the login name
    cache: str = ""  # folder of the copies of large images; empty for that of the system


class SettingsDialog(QDialog):
    """Change the program's settings; open it with ``open()`` and read `settings` when accepted.

    `settings`: the present ones. `login`, `cache`: what an empty name and an empty folder stand for.
    `bindings`: commands and their keys.
    """

    def __init__(
        self,
        settings: ProgramSettings,
        login: str,
        cache: str,
        bindings: Sequence[KeyBinding],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Settings")
        set_lengths(self, minimumWidth=560)
        self.theme = ChoiceBox()
        for name, words in THEMES:
            self.theme.addItem(words, name)
        self.theme.setCurrentIndex(max(self.theme.findData(settings.theme), 0))
        self.text_percent = QSpinBox()
        self.text_percent.setRange(round(100 * SMALLEST), round(100 * LARGEST))
        self.text_percent.setSingleStep(_STEP)
        self.text_percent.setSuffix(" %")
        self.text_percent.setButtonSymbols(QSpinBox.ButtonSymbols.NoButtons)
        self.text_percent.setValue(settings.text_percent)
        self.expert = QLineEdit(settings.expert)
        self.expert.setMaxLength(_LONGEST_NAME)
        self.expert.setPlaceholderText(login)
        self.expert.setToolTip(plain_tip("Name in the journal of decisions; empty for the login name"))
        self.cache = FolderField("Folder of the copies of large images")
        self.cache.text = settings.cache
        self.cache.editor.setPlaceholderText(cache)
        form = QFormLayout()
        for words, field in (
            ("Theme", self.theme), ("Text size", self.text_percent), ("Expert's name", self.expert),
            ("Cache folder", self.cache),
        ):  # fmt: skip
            form.addRow(words, field)
            if not field.accessibleName():
                field.setAccessibleName(words)
        note = plain_label("The name is used for decisions from now on.", "small", wrap=True)
        program, self.keys = QWidget(), KeyTable(bindings)
        vertical(form, note, STRETCH, inside=program, margins=(12, 12, 12, 12), spacing=8)
        self.tabs = QTabWidget()
        self.tabs.tabBar().setAccessibleName("Settings")
        self.tabs.addTab(program, "Program")
        self.tabs.addTab(self.keys, "Keys")
        self.accepting = lay_out(self, self.tabs, accept="Save")
        self.keys.changed.connect(lambda: self.accepting.setEnabled(not self.keys.conflict()))

    @property
    def settings(self) -> ProgramSettings:
        """The settings entered."""
        return ProgramSettings(
            str(self.theme.currentData()),
            self.text_percent.value(),
            self.expert.text().strip(),
            self.cache.text,
        )
