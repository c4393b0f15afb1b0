"""Dialog that describes a new reader study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QFrame,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QWidget,
)

from raterscope.widgets.forms import FolderField, FormDialog, form_of
from raterscope.widgets.layouts import STRETCH, horizontal, rule, vertical
from raterscope.widgets.parts import ChoiceBox, let_wheel_pass, plain_label
from raterscope.widgets.theme import set_lengths

_ABOUT = (
    "Writes one file for each reader, with the cases in an order of their own and nobody else's marks, and a "
    "coordinator's file with the key of the pseudonyms."
)
_KINDS = {
    "clicks": "Clicks: mark points",
    "masks": "Masks: outline structures",
    "labels": "Labels: answer by class",
    "pairs": "Pairs: compare two images or texts",
}
_CASES_TIP = "Images, folders or patterns, one a line"
_TEXT_TIPS = {
    "labels": "Images, tables of tasks, studies or patterns, one a line",
    "pairs": "Images, tables of items or comparisons, studies or patterns, one a line",
}
_QUESTION_TIPS = {
    "labels": "One question a line: name: class, class, class",
    "pairs": "One question a line: a name, such as sharper",
}


class ReaderStudyDialog(FormDialog):
    """Dialog that describes a reader study; it stays open until its files are written.

    `folder`: proposed new folder.
    """

    # (dict, str): fields of the protocol as in a TOML file, and the folder
    submitted = Signal(dict, str)

    def __init__(self, folder: str, parent: QWidget | None = None) -> None:
        super().__init__("New reader study", parent, width=620)
        self.name = _line("Name")
        self.kind = ChoiceBox("Kind", _KINDS)
        self.readers = LinesField("Readers", "One name a line", 3)
        self.cases = LinesField("Cases", _CASES_TIP, 3)
        self.structures = LinesField("Structures", "One structure a line", 2)
        self.questions = LinesField("Questions", "", 2)
        self.instruction = _line("Instruction")
        self.instruction.setPlaceholderText("Shown to the reader at all times")
        self.reads = _number("Reads of a case", 1, 9)
        self.repeated = _number("Cases read again", 0, 1_000_000)
        self.repeated.setSpecialValueText("all")
        self.washout = _number("Washout", 0, 3650)
        self.washout.setSuffix(" days")
        self.seed = _number("Seed", 0, 2**31 - 1)
        self.pairs = _number("Pairs", 0, 1_000_000)
        self.pairs.setSpecialValueText("all")
        self.ties = QCheckBox("Allow ties")
        self.ties.setChecked(True)
        self.blinding = QCheckBox("Keep the collected study closed until every reader has finished")
        self.pseudonyms = QCheckBox("Name readers R01, R02 and so on in every file but the coordinator's")
        self.copies = QCheckBox("Copy the images beside the readers' files, under neutral names")
        self.blinding.setChecked(True)
        self.pseudonyms.setChecked(True)
        self.folder_field = FolderField("New folder", inside=True)
        self.folder_field.text = folder
        self.form = form_of({
            "Name": self.name, "Kind": self.kind, "Readers": self.readers, "Cases": self._cases_row(),
            "Structures": self.structures, "Questions": self.questions, "": self.ties, "Pairs": self.pairs,
            "Instruction": self.instruction, "Reads of a case": self.reads,
            "Cases read again": self.repeated, "Washout": self.washout, "Seed": self.seed,
        })  # fmt: skip
        page = QWidget()
        vertical(self.form, self.blinding, self.pseudonyms, self.copies, STRETCH, inside=page,
                 margins=(0, 0, 8, 0), spacing=8)  # fmt: skip
        room = QScrollArea(widgetResizable=True)
        room.setFrameShape(QFrame.Shape.NoFrame)
        room.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        room.setWidget(page)
        set_lengths(room, minimumHeight=160)  # fits a low screen with large text
        self.problems = plain_label("", "error", wrap=True, selectable=True)
        self.problems.setAccessibleName("Problems")
        self.problems.hide()
        self.lay_out(
            "New reader study", _ABOUT, (room, 1), rule(), {"New folder": self.folder_field}, self.problems,
            8, accept="Create files",
        )  # fmt: skip
        self.kind.currentIndexChanged.connect(self._follow)
        self.reads.valueChanged.connect(self._follow)
        self.folder_field.changed.connect(self._follow)
        self._follow()

    def _cases_row(self) -> QWidget:
        row, files, folder = QWidget(), QPushButton("Add files…"), QPushButton("Add folder…")
        for button, slot in ((files, self._add_files), (folder, self._add_folder)):
            button.setAutoDefault(False)
            button.clicked.connect(slot)
        vertical(self.cases, horizontal(files, folder, STRETCH, spacing=8), inside=row, spacing=4)
        return row

    def _add_files(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, "Cases")
        for name in names:
            self.cases.editor.appendPlainText(name)

    def _add_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Folder of a case")
        if name:
            self.cases.editor.appendPlainText(name)

    def accept(self) -> None:
        """Submit the fields; a second call, after the files were written, closes the dialog."""
        if self.result() or not self.accepting.isEnabled() or self.accepting.property("submitted"):
            super().accept()
            return
        self.problems.hide()
        self.accepting.setProperty("submitted", True)
        self.submitted.emit(self.values(), self.folder_field.text)

    def show_problems(self, problems: Sequence[str]) -> None:
        """Show why nothing was written, one reason per line."""
        self.accepting.setProperty("submitted", False)
        self.problems.setText("\n".join(problems))
        self.problems.show()

    def values(self) -> dict[str, Any]:
        """Return the applicable fields of the protocol."""
        kind = str(self.kind.currentData())
        values: dict[str, Any] = {
            "name": self.name.text(), "kind": kind, "readers": self.readers.texts,
            "cases": self.cases.texts, "reads": self.reads.value(), "seed": self.seed.value(),
            "instruction": self.instruction.text(), "blinding": self.blinding.isChecked(),
            "pseudonyms": self.pseudonyms.isChecked(), "copy_images": self.copies.isChecked(),
        }  # fmt: skip
        if self.reads.value() > 1:
            values["washout_days"] = self.washout.value()
            if self.repeated.value():
                values["repeated_cases"] = self.repeated.value()
        if kind == "masks":
            values["structures"] = self.structures.texts
        elif kind == "labels":
            values["questions"] = [_question(text) for text in self.questions.texts]
        elif kind == "pairs":
            ties = self.ties.isChecked()
            values["questions"] = [{"name": text, "ties": ties} for text in self.questions.texts]
            if self.pairs.value():
                values["pairs"] = self.pairs.value()
        return values

    def _follow(self) -> None:
        kind = str(self.kind.currentData())
        self.form.setRowVisible(self.structures, kind == "masks")
        self.form.setRowVisible(self.questions, kind in _QUESTION_TIPS)
        self.form.setRowVisible(self.pairs, kind == "pairs")
        self.form.setRowVisible(self.ties, kind == "pairs")
        self.questions.editor.setPlaceholderText(_QUESTION_TIPS.get(kind, ""))
        self.cases.editor.setPlaceholderText(_TEXT_TIPS.get(kind, _CASES_TIP))
        self.form.setRowVisible(self.repeated, self.reads.value() > 1)
        self.form.setRowVisible(self.washout, self.reads.value() > 1)
        self.accepting.setEnabled(bool(self.folder_field.text))


def _question(text: str) -> dict[str, Any]:
    """Parse a line "name: class, class"."""
    name, _, classes = text.partition(":")
    return {"name": name.strip(), "classes": [word.strip() for word in classes.split(",") if word.strip()]}


def _line(name: str) -> QLineEdit:
    editor = QLineEdit()
    editor.setAccessibleName(name)
    return editor


class LinesField(QWidget):
    """Text editor with one entry per line.

    `rows`: number of visible lines.
    """

    def __init__(self, name: str, hint: str, rows: int) -> None:
        super().__init__()
        self.editor = QPlainTextEdit()
        self.editor.setAccessibleName(name)
        self.editor.setPlaceholderText(hint)
        self.editor.setTabChangesFocus(True)
        self.editor.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFocusProxy(self.editor)
        vertical((self.editor, 1), inside=self)
        # The style sheet of all fields would override a height set on the editor itself.
        set_lengths(self, minimumHeight=18 * rows + 18, maximumHeight=18 * rows + 18)

    @property
    def texts(self) -> list[str]:
        """The lines, without empty ones."""
        return [line.strip() for line in self.editor.toPlainText().splitlines() if line.strip()]


def _number(name: str, least: int, most: int) -> QSpinBox:
    editor = QSpinBox()
    editor.setAccessibleName(name)
    editor.setRange(least, most)
    editor.setGroupSeparatorShown(True)
    let_wheel_pass(editor)
    return editor
