"""What annotators saw of a task, large: a picture that can be zoomed, and texts that wrap and scroll."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLength,
    QTextTableFormat,
)
from PySide6.QtWidgets import QPushButton, QTextBrowser, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.image_canvas import MarkingCanvas
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import horizontal, stacked, vertical
from raterscope.widgets.panels.sound_view import Player, SoundView
from raterscope.widgets.parts import Header, placeholder, plain_label

SAFE_MARKDOWN = (
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
)
_NOTHING = "Select a task, or press Tab for the next disputed one, to see it here."
_MARGIN = 12


@dataclass(frozen=True, eq=False)
class TaskContent:
    """What annotators saw of one task."""

    name: str
    has_picture: bool = False  # whether an image of the study shows the task
    pixels: NDArray[np.uint8] | None = None  # (rows, columns, 3): the picture, once it is read
    texts: Mapping[str, str] = field(default_factory=dict)  # by field: in order; empty if the file held none
    # pair of fields: two fields that are shown side by side, as those whose names end in a and b
    sides: tuple[str, str] = ("", "")
    problem: str = ""  # why a picture, sound or film cannot be shown, in a sentence
    film: str = ""  # name of a film, which the system's player shows


class ContentBrowser(QTextBrowser):
    """Texts of a task. Nothing is loaded, run or followed: links are reported.

    `size`, `margin`: of the letters, and around the text.
    """

    link_chosen = Signal(str)  # address of a link to the web

    def __init__(
        self, parent: QWidget | None = None, *, size: int = theme.FIGURE, margin: int = _MARGIN
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName("Text of the task")
        self.setOpenLinks(False)
        self.anchorClicked.connect(self._on_link)
        self.document().setDocumentMargin(margin)
        self._size = size
        self._shown: tuple[Mapping[str, str], tuple[str, str]] = {}, ("", "")
        theme.notifier().changed.connect(self._on_theme)

    def loadResource(self, _type: int, _address: QUrl | str) -> Any:
        """Load nothing: texts come from untrusted files."""
        return None

    def show_texts(self, texts: Mapping[str, str], sides: tuple[str, str] = ("", "")) -> None:
        """Show texts, with their fields as headings if there are several.

        A field called html or markdown is formatted, without scripts, pictures and styles of other files. A
        JSON record is shown as its fields.
        """
        self._shown = texts, sides
        self.clear()
        self.document().setDefaultFont(theme.widget_font(self._size))
        cursor = QTextCursor(self.document())
        names = list(texts)
        at = 0
        while at < len(names):
            two = names[at : at + 2]
            row = two if tuple(two) == sides or _are_sides(two) else names[at : at + 1]
            if len(row) == 2:
                table = cursor.insertTable(1, 2, _side_by_side())
                for column, name in enumerate(row):
                    self._insert_field(table.cellAt(0, column).firstCursorPosition(), name, texts[name], True)
                cursor.movePosition(QTextCursor.MoveOperation.End)
            else:
                if at:
                    cursor.insertBlock(_paragraph())
                self._insert_field(cursor, row[0], texts[row[0]], len(texts) > 1)
            at += len(row)
        cursor.movePosition(QTextCursor.MoveOperation.Start)
        self.setTextCursor(cursor)

    def _insert_field(self, cursor: QTextCursor, name: str, text: str, is_headed: bool) -> None:
        if is_headed:
            cursor.insertText(name.replace("_", " "), _letters(theme.current().third, theme.BODY))
            cursor.insertBlock(QTextBlockFormat())
        lower = name.casefold()
        if "html" in lower:
            cursor.insertHtml(text)
        elif "markdown" in lower:
            cursor.insertMarkdown(text, SAFE_MARKDOWN)
        elif text.startswith(("http://", "https://")) and not any(letter.isspace() for letter in text):
            address = html.escape(text, quote=True)
            cursor.insertHtml(f'<a href="{address}">{address}</a>')
        else:
            record = _record(text)
            lines = [text] if record is None else [f"{key}: {value}" for key, value in record.items()]
            cursor.insertText("\n".join(lines), _letters(theme.current().text, self._size))

    def _on_theme(self) -> None:
        self.show_texts(*self._shown)

    def _on_link(self, address: QUrl) -> None:
        if address.scheme() in ("http", "https"):
            self.link_chosen.emit(address.toString())


def _letters(colour: str, size: int) -> QTextCharFormat:
    letters = QTextCharFormat()
    letters.setForeground(QColor(colour))
    letters.setFont(theme.widget_font(size))
    return letters


def _paragraph() -> QTextBlockFormat:
    paragraph = QTextBlockFormat()
    paragraph.setTopMargin(_MARGIN)
    return paragraph


def _side_by_side() -> QTextTableFormat:
    half = QTextLength(QTextLength.Type.PercentageLength, 50)
    table = QTextTableFormat()
    table.setColumnWidthConstraints([half, half])
    table.setTopMargin(_MARGIN)
    table.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
    table.setCellPadding(_MARGIN / 2)
    table.setBorderBrush(QColor(theme.current().line))
    return table


def _are_sides(names: list[str]) -> bool:
    """Return whether two fields are alternatives: "answer_a" and "answer_b", "text1" and "text2"."""
    if len(names) < 2 or names[0][:-1].casefold() != names[1][:-1].casefold():
        return False
    return (names[0][-1:] + names[1][-1:]).casefold() in ("ab", "12")


def _record(text: str) -> dict[str, Any] | None:
    """Return the fields of a text that is a JSON object; None for any other."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


class TaskContentView(QWidget):
    """A task, large."""

    back_wanted = Signal()  # the key of the layout was clicked
    link_chosen = Signal(str)
    film_wanted = Signal()  # the film is to be shown by the system's player

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        title: str = "Task",
        back: str = "annotators",
        nothing: str = _NOTHING,
    ) -> None:
        super().__init__(parent)
        self._title = title
        self.header = Header(title)
        self.back = KeyButton("D", back, "second", f"Back to the {back}")
        self.back.clicked.connect(self.back_wanted)
        self.picture = MarkingCanvas(marks=False)
        self.picture.setAccessibleName("Image of the task")
        self.texts = ContentBrowser()
        self.texts.link_chosen.connect(self.link_chosen)
        self._pages = stacked(placeholder(nothing), self.picture, self.texts)
        self.sound = SoundView()
        self.film = QPushButton("Open in the system's player")
        self.film.clicked.connect(self.film_wanted)
        self.problem = plain_label("", "rejected", wrap=True)
        for part in (self.sound, self.film, self.problem):
            part.hide()
        top = horizontal((self.header, 1), self.back, spacing=8)
        vertical(
            top,
            self.sound,
            self.film,
            self.problem,
            (self._pages, 1),
            inside=self,
            margins=(12, 8, 12, 8),
            spacing=6,
        )
        self._shown: tuple[str, bool] | None = None

    def show_content(self, content: TaskContent | None) -> None:
        """Show a task; None shows the empty state."""
        self.sound.hide()
        self.film.setVisible(content is not None and bool(content.film))
        self.problem.setVisible(content is not None and bool(content.problem))
        if content is None:
            self._shown = None
            self.header.set_title(self._title)
            self._pages.setCurrentIndex(0)
            return
        film = content.film.replace("&", "&&")
        self.film.setText(f"Open {film} in the system's player")
        self.problem.setText(content.problem)
        is_named = content.has_picture or bool(content.texts)
        self.header.set_title(self._title, content.name if is_named else "")
        if content.has_picture:
            self._show_picture(content)
            self._pages.setCurrentWidget(self.picture)
        else:
            self.texts.show_texts(content.texts or {"": content.name}, content.sides)
            self._pages.setCurrentWidget(self.texts)

    def show_sound(self, player: Player, levels: NDArray[np.float32], seconds: float) -> None:
        """Show the sound of the task."""
        self.sound.show_sound(player, levels, seconds)
        self.sound.show()

    def _show_picture(self, content: TaskContent) -> None:
        pixels = content.pixels
        height, width = (1, 1) if pixels is None else pixels.shape[:2]
        self.picture.set_image(pixels, (0.0, 0.0, float(width), float(height)))
        if self._shown != (content.name, pixels is not None):
            self._shown = content.name, pixels is not None
            self.picture.fit()
