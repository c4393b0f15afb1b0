"""Dialog of the program's settings (theme, text size, expert's name, cache folder, keys)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QKeySequenceEdit,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QWidget,
)

from raterscope.widgets.forms import FolderField, FormDialog, form_of
from raterscope.widgets.layouts import STRETCH, ScrollRegion, horizontal, vertical
from raterscope.widgets.parts import ChoiceBox, plain_label, plain_tip
from raterscope.widgets.theme import LARGEST, SMALLEST, set_lengths

FIXED = frozenset({"Tab", "Shift+Tab", "Esc"})
"""Keys that navigate lists and leave modes; they cannot be assigned to commands."""


@dataclass(frozen=True)
class KeyBinding:
    """A command and its key."""

    command: str  # its identifier
    # words, where: name of the command, and its workspace or "Window"
    text: str
    where: str
    # keys, default: current and default keys, as in "Ctrl+K"
    keys: tuple[str, ...]
    default: tuple[str, ...]


class KeyTable(QWidget):
    """Table of commands with their keys; a field below it changes the key of the selected command."""

    changed = Signal()  # a key was changed: ask `conflict`

    def __init__(self, bindings: Sequence[KeyBinding]) -> None:
        super().__init__()
        self._bindings = tuple(bindings)
        self._keys = {binding.command: binding.keys for binding in bindings}
        self.line = QLineEdit(placeholderText="Find a command or a key")
        self.line.setAccessibleName("Find a command or a key")
        self.line.setClearButtonEnabled(True)
        self.table = QTableWidget(len(self._bindings), 3)
        self.table.setAccessibleName("Commands and their keys")
        self.table.setHorizontalHeaderLabels(["Command", "Where", "Key"])
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.verticalHeader().hide()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setShowGrid(False)
        set_lengths(self.table, minimumHeight=120)
        for row, binding in enumerate(self._bindings):
            for column, words in enumerate((binding.text, binding.where, "")):
                self.table.setItem(row, column, QTableWidgetItem(words))
        self.editor = QKeySequenceEdit(maximumSequenceLength=1, clearButtonEnabled=True)
        self.editor.setAccessibleName("New key of the selected command")
        self.reset, self.reset_all = QPushButton("Reset"), QPushButton("Reset all")
        self._problem = plain_label("", "second", wrap=True)
        self._nothing = plain_label("No matches", "second")
        self._nothing.hide()
        for button in (self.reset, self.reset_all):
            button.setAutoDefault(False)
        keys = horizontal(
            plain_label("New key"), (self.editor, 1), self.reset, STRETCH, self.reset_all, spacing=8
        )
        vertical(
            self.line,
            self._nothing,
            (self.table, 1),
            keys,
            self._problem,
            inside=self,
            margins=(0, 12, 0, 0),
            spacing=8,
        )
        self.line.textChanged.connect(self._find)
        self.table.currentCellChanged.connect(self._on_row)
        self.editor.keySequenceChanged.connect(self._on_key)
        self.reset.clicked.connect(self._on_reset)
        self.reset_all.clicked.connect(self._on_reset_all)
        self._show()
        self.table.setCurrentCell(0, 0)

    def changes(self) -> dict[str, str]:
        """Return the key of each command whose key differs from the default; empty for none."""
        return {
            binding.command: ", ".join(self._keys[binding.command])
            for binding in self._bindings
            if self._keys[binding.command] != binding.default
        }

    def conflict(self) -> str:
        """Describe two commands with the same key in a sentence; empty if all keys are unique."""
        used: dict[str, KeyBinding] = {}
        for binding in self._bindings:
            for key in self._keys[binding.command]:
                other = used.setdefault(key, binding)
                if other is not binding:
                    return f"{key} is the key of “{other.text}” and of “{binding.text}”. Change one of them."
        return ""

    def _show(self) -> None:
        for row, binding in enumerate(self._bindings):
            item = self.table.item(row, 2)
            if item is not None:
                item.setText(", ".join(self._keys[binding.command]))
        self._problem.setText(self.conflict())
        self.changed.emit()

    def _find(self, text: str) -> None:
        for row, binding in enumerate(self._bindings):
            words = f"{binding.text} {binding.where} {', '.join(self._keys[binding.command])}"
            self.table.setRowHidden(row, text.casefold().strip() not in words.casefold())
        listed = [row for row in range(len(self._bindings)) if not self.table.isRowHidden(row)]
        if self.table.currentRow() not in listed:  # the key of a hidden command is not changed
            self.table.setCurrentCell(listed[0] if listed else -1, 0)
        self._nothing.setVisible(not listed)

    def _selected(self) -> KeyBinding | None:
        row = self.table.currentRow()
        return self._bindings[row] if 0 <= row < len(self._bindings) else None

    def _on_row(self) -> None:
        binding = self._selected()
        self.editor.setEnabled(binding is not None)
        keys = () if binding is None else self._keys[binding.command]
        with QSignalBlocker(self.editor):
            self.editor.setKeySequence(QKeySequence(keys[0] if keys else ""))

    def _on_key(self, sequence: QKeySequence) -> None:
        binding = self._selected()
        if binding is not None:
            key = sequence.toString(QKeySequence.SequenceFormat.PortableText)
            if key in FIXED:
                self._on_row()
                return
            self._set({binding.command: (key,) if key else ()})

    def _on_reset(self) -> None:
        binding = self._selected()
        if binding is not None:
            self._set({binding.command: binding.default})

    def _on_reset_all(self) -> None:
        self._set({binding.command: binding.default for binding in self._bindings})

    def _set(self, keys: Mapping[str, tuple[str, ...]]) -> None:
        self._keys |= keys
        self._show()
        self._on_row()


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
    # key of a kind to name of the algorithm for new studies; empty for the recommended one
    algorithms: Mapping[str, str] = field(default_factory=dict)


class SettingsDialog(FormDialog):
    """Dialog for the program's settings; open it with ``open()`` and read `settings` when accepted.

    `settings`: the current settings. `login`, `cache`: name and folder used if these fields are empty.
    `bindings`: commands and their keys.
    `algorithms`: title of a choice, and titles of the algorithms by name, the recommended one first; by key.
    """

    def __init__(
        self,
        settings: ProgramSettings,
        login: str,
        cache: str,
        bindings: Sequence[KeyBinding],
        algorithms: Mapping[str, tuple[str, Mapping[str, str]]],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Settings", parent, width=560)
        # Filled at their final place, because Qt restyles the contents of a moved widget.
        program, self.tabs = QWidget(), QTabWidget(self)
        self.tabs.tabBar().setAccessibleName("Settings")
        self.tabs.addTab(ScrollRegion(program), "Program")
        self.theme = ChoiceBox("", dict(THEMES))
        self.theme.choose(settings.theme)
        self.text_percent = QSpinBox()
        self.text_percent.setRange(round(100 * SMALLEST), round(100 * LARGEST))
        self.text_percent.setSingleStep(_STEP)
        self.text_percent.setSuffix(" %")
        self.text_percent.setValue(settings.text_percent)
        self.expert = QLineEdit(settings.expert, maxLength=_LONGEST_NAME, placeholderText=login)
        self.expert.setToolTip(plain_tip("Name in the journal of decisions; empty for the login name"))
        self.cache = FolderField("Folder of the copies of large images")
        self.cache.text = settings.cache
        self.cache.editor.setPlaceholderText(cache)
        fields = {
            "Theme": self.theme, "Text size": self.text_percent, "Expert's name": self.expert,
            "Cache folder": self.cache,
        }  # fmt: skip
        note = plain_label("The name is used for decisions from now on.", "small", wrap=True)
        self.algorithms = {key: _algorithm_box(titles) for key, (_, titles) in algorithms.items()}
        for key, box in self.algorithms.items():
            box.choose(settings.algorithms.get(key, ""))
        methods = {words: self.algorithms[key] for key, (words, _) in algorithms.items()}
        scope = plain_label("A study keeps the settings of its last fusion.", "small", wrap=True)
        self.keys = KeyTable(bindings)
        heading = plain_label("ALGORITHMS OF NEW STUDIES", "caption")
        heading.setContentsMargins(0, 8, 0, 0)
        form = form_of({**fields, **methods})
        for row, label in enumerate((note, heading), start=len(fields)):
            form.insertRow(row, label)
        vertical(form, scope, STRETCH, inside=program, margins=(12, 12, 12, 12), spacing=8)
        self.tabs.addTab(self.keys, "Keys")
        self.lay_out("", "", self.tabs, accept="Save")
        self.keys.changed.connect(lambda: self.accepting.setEnabled(not self.keys.conflict()))

    @property
    def settings(self) -> ProgramSettings:
        """The settings entered."""
        return ProgramSettings(
            str(self.theme.key),
            self.text_percent.value(),
            self.expert.text().strip(),
            self.cache.text,
            {key: str(box.key) for key, box in self.algorithms.items()},
        )


def _algorithm_box(titles: Mapping[str, str]) -> ChoiceBox:
    recommended, *others = titles
    entries = {"": f"{titles[recommended]} (recommended)"} | {name: titles[name] for name in others}
    return ChoiceBox("", entries)
