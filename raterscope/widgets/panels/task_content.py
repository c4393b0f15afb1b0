"""Content of a task at full size: picture, texts and sound."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QLineF, QObject, QPointF, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QHideEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QShortcut,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLength,
    QTextTableFormat,
)
from PySide6.QtWidgets import QPushButton, QTextBrowser, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.marking_canvas import MarkingCanvas
from raterscope.widgets.hints import KeyButton, KeyHelp
from raterscope.widgets.layouts import STRETCH, horizontal, stacked, vertical
from raterscope.widgets.parts import Header, Placeholder, plain_label
from raterscope.widgets.theme import enlarge, pixels

_HEIGHT, _TICK_MS, _STEP = 140, 40, 5.0
TEXT_SIZE = 18
"""Font size of a task's text, in pixels."""


class Player(Protocol):
    """Player of a sound."""

    @property
    def position(self) -> float:
        """Seconds played so far."""

    @property
    def playing(self) -> bool:
        """Return whether the sound is being played."""

    def play(self, start: float) -> None:
        """Play from a given time. Raises OSError if there is no sound device."""

    def pause(self) -> None:
        """Stop at the current position."""


class SoundView(QWidget):
    """Waveform of a sound with a key that plays it."""

    def __init__(self) -> None:
        super().__init__()
        self.KEY_HELP: KeyHelp | None = KeyHelp(
            "On a sound", (("Space", "play, pause"), ("Left, Right", "5 seconds back, on"))
        )
        self.wave = _Waveform(self)
        self.button = KeyButton("Space", "play", "accent", "Play or pause the sound")
        self.button.clicked.connect(self.toggle)
        self.button.installEventFilter(self)
        self.label = plain_label("", "second")
        self.problem = plain_label("", "rejected", wrap=True)
        vertical(
            self.wave,
            horizontal(self.button, self.label, STRETCH, spacing=12),
            self.problem,
            inside=self,
            spacing=6,
        )
        QShortcut(QKeySequence(Qt.Key.Key_Space), self, self.toggle)  # of the window, while this is shown
        self._player: Player | None = None
        self.seconds = self._position = 0.0
        self._timer = QTimer(self, interval=_TICK_MS)
        self._timer.timeout.connect(self._follow)
        self.show_sound(None, np.empty((0, 2), dtype=np.float32), 0.0)

    def show_sound(self, player: Player | None, levels: NDArray[np.float32], seconds: float) -> None:
        """Show another sound, or none."""
        self.stop()
        self._player, self.seconds, self._position = player, seconds, 0.0
        self.problem.hide()
        self.wave.show_levels(levels)
        self._show_position()

    def toggle(self) -> None:
        """Play, or pause."""
        player = self._player
        if player is None:
            return
        if player.playing:
            self._position = player.position
            self.stop()
        else:
            self._play(0.0 if self._position >= self.seconds - 0.01 else self._position)

    def stop(self) -> None:
        """Stop playing."""
        self._timer.stop()
        if self._player is not None:
            self._player.pause()
        self.button.set_word("play", "accent", "Play the sound")

    def go_to(self, seconds: float) -> None:
        """Go to a time; continue playing if the sound is being played."""
        self._position = min(max(seconds, 0.0), self.seconds)
        if self._player is not None and self._player.playing:
            self._player.pause()
            self._play(self._position)
        self._show_position()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop when another task or view is shown."""
        super().hideEvent(event)
        self.stop()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the arrow keys from the button, which would move the focus."""
        arrows = Qt.Key.Key_Left, Qt.Key.Key_Right
        pressed = event.type() == QEvent.Type.KeyPress
        if pressed and isinstance(event, QKeyEvent) and event.key() in arrows:
            self.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go back or forward with the arrow keys."""
        steps = {Qt.Key.Key_Left: -_STEP, Qt.Key.Key_Right: _STEP}
        if event.key() in steps:
            self.go_to(self._position + steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def _play(self, start: float) -> None:
        assert self._player is not None
        try:
            self._player.play(start)
        except OSError as error:
            self.problem.setText(f"The sound cannot be played: {error}")
            self.problem.show()
            return
        self.button.set_word("pause", "accent", "Pause the sound")
        self._timer.start()

    def _follow(self) -> None:
        player = self._player
        if player is None:
            return
        self._position = min(player.position, self.seconds)
        if not player.playing:
            self._position = self.seconds
            self.stop()
        self._show_position()

    def _show_position(self) -> None:
        self.label.setText(f"{_clock(self._position)} of {_clock(self.seconds)}")
        self.wave.show_share(self._position / self.seconds if self.seconds else 0.0)
        self.setAccessibleName(f"Sound of {self.seconds:.0f} s")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class _Waveform(QWidget):
    """Levels over time, with a line at the position."""

    def __init__(self, view: SoundView) -> None:
        super().__init__()
        self._view = view
        self._levels = np.empty((0, 2), dtype=np.float32)
        self._share = 0.0
        self.setMinimumHeight(pixels(_HEIGHT))
        self.setAccessibleName("Waveform")

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        return QSize(pixels(400), pixels(_HEIGHT))

    def show_levels(self, levels: NDArray[np.float32]) -> None:
        """Show other levels, lowest and highest by column."""
        self._levels = levels
        self.update()

    def show_share(self, share: float) -> None:
        """Show the position as a share of the length."""
        self._share = share
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the time under the pointer."""
        self._view.go_to(event.position().x() / max(self.width(), 1) * self._view.seconds)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the waveform."""
        with QPainter(self) as painter:
            palette, box = theme.current(), enlarge(painter, self.rect())
            painter.fillRect(box, QColor(theme.DARK.canvas))
            count = len(self._levels)
            if not count:
                return
            middle, half = box.center().y(), box.height() / 2 - 4
            x = np.linspace(box.left(), box.right(), count)
            top, bottom = middle - half * self._levels[:, 1], middle - half * self._levels[:, 0]
            ends = np.column_stack((x, top - 0.5, x, bottom + 0.5)).tolist()  # silence, too, has a height
            pen = QPen(QColor(theme.DARK.accent), max(1.0, box.width() / count))
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            painter.setPen(pen)
            painter.drawLines([QLineF(*line) for line in ends])
            at = box.left() + self._share * box.width()
            painter.setPen(QPen(QColor(palette.disputed if palette.dark else theme.DARK.disputed), 2))
            painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()))


SAFE_MARKDOWN = (
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
)
_NOTHING = "Select a task, or press Tab for the next disputed one, to see it here."
_MARGIN = 12


@dataclass(frozen=True, eq=False)
class TaskContent:
    """Content of one task that annotators saw."""

    name: str
    has_picture: bool = False  # whether an image of the study shows the task
    pixels: NDArray[np.uint8] | None = None  # (rows, columns, 3): the picture; None until it is read
    texts: Mapping[str, str] = field(default_factory=dict)  # by field, in order; empty without texts
    # pair of fields to show side by side, such as fields whose names end in a and b
    sides: tuple[str, str] = ("", "")
    problem: str = ""  # why a picture, sound or video cannot be shown, in a sentence
    film: str = ""  # name of a video, which the system's player shows


class ContentBrowser(QTextBrowser):
    """Browser of a task's texts.

    It loads, executes and follows nothing; links are reported. `size`, `margin`: font size, and margin around
    the text.
    """

    link_chosen = Signal(str)  # address of a link to the web

    def __init__(self, *, size: int = theme.FIGURE, margin: int = _MARGIN) -> None:
        super().__init__()
        self.setAccessibleName("Text of the task")
        self.setOpenLinks(False)
        self.anchorClicked.connect(self._on_link)
        self.document().setDocumentMargin(margin)
        self._size = size
        self._shown: tuple[Mapping[str, str], tuple[str, str]] = {}, ("", "")
        theme.notifier().changed.connect(self._on_theme)

    def loadResource(self, _type: int, _address: QUrl | str) -> Any:
        """Load nothing, because texts come from untrusted files."""
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
                    paragraph = QTextBlockFormat()
                    paragraph.setTopMargin(_MARGIN)
                    cursor.insertBlock(paragraph)
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
    """Large view of a task.

    `sounds`: whether tasks may have a sound.
    """

    def __init__(
        self,
        *,
        title: str = "Task",
        back: str = "annotators",
        nothing: str = _NOTHING,
        sounds: bool = True,
    ) -> None:
        super().__init__()
        self._title = title
        self.header = Header(title)
        self.back = KeyButton("D", back, "second", f"Back to the {back}")
        self.picture = MarkingCanvas(marks=False)
        self.picture.setAccessibleName("Image of the task")
        self.texts = ContentBrowser(size=TEXT_SIZE, margin=24)
        self._pages = stacked(Placeholder(nothing), self.picture, self.texts)
        self.sound = SoundView()
        if not sounds:
            self.sound.KEY_HELP = None
        self.film = QPushButton("Open in the system's player")
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
