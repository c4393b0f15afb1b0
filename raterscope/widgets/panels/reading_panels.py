"""Parts of the reading mode: progress of a session, keys and instruction, and two items to compare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QToolTip, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.marking_canvas import MarkingCanvas
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.layouts import horizontal, rule, scroll_area, vertical
from raterscope.widgets.panels.task_content import ContentBrowser
from raterscope.widgets.parts import ElidedLabel, plain_label
from raterscope.widgets.theme import pixels, set_lengths

STRIP_HEIGHT = 14
WIDTH = 288
_TEXT_MARGIN = 16


class CaseStrip(QWidget):
    """Strip of the cases of a session, in order: read, not read, and the case on screen."""

    chosen = Signal(int)  # index of a case

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Cases")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._count, self._done, self._current = 0, frozenset[int](), -1

    def set_cases(self, count: int, done: Collection[int], current: int) -> None:
        """Show a session; `current` is -1 without a case on screen."""
        self._count, self._done, self._current = count, frozenset(done), current
        self.setAccessibleDescription(f"{len(self._done)} of {count} cases are read")
        self.update()

    def sizeHint(self) -> QSize:
        """Return a low size."""
        return QSize(pixels(200), pixels(STRIP_HEIGHT))

    def _box(self, index: int) -> QRectF:
        wide = self.width() / max(self._count, 1)
        gap = 2.0 if wide >= 6 else 0.0
        return QRectF(index * wide, 0, max(wide - gap, 1.0), self.height())

    def _index_at(self, x: float) -> int:
        return min(max(int(x * self._count / max(self.width(), 1)), 0), self._count - 1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint a box for each case."""
        palette = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for index in range(self._count):
                box = self._box(index).adjusted(0, 4, 0, -4)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(palette.accent if index in self._done else palette.line))
                if index == self._current:
                    box = self._box(index).adjusted(1, 1, -1, -1)
                    painter.setPen(QPen(QColor(palette.text), 2))
                painter.drawRoundedRect(box, 2, 2)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the case under the mouse."""
        if event.button() == Qt.MouseButton.LeftButton and self._count:
            self.chosen.emit(self._index_at(event.position().x()))

    def event(self, event: QEvent) -> bool:
        """Name the case under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip and self._count:
            index = self._index_at(event.pos().x())
            state = "read" if index in self._done else "not read"
            QToolTip.showText(event.globalPos(), f"case {index + 1}: {state}", self)
            return True
        return super().event(event)


class ReadingHeader(QWidget):
    """Name of the study, case and session on screen, and the button to leave."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("topBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._study = ElidedLabel("", "second")
        self._case = plain_label("", "title")
        self._session = plain_label("", "second")
        self.strip = CaseStrip()
        self.close_button = QPushButton("Close")
        self.close_button.setToolTip("Close the file. Your marks are saved; go on at any time")
        self._case.setMinimumWidth(0)
        horizontal(
            self._case, 16, self._session, 16, (self.strip, 3), 16, (self._study, 2), 12, self.close_button,
            inside=self, margins=(16, 8, 12, 8),
        )  # fmt: skip

    def set_study(self, name: str) -> None:
        """Set the name of the study."""
        self._study.setText(name)

    def set_progress(self, case: str, session: str) -> None:
        """Set "Case 7 of 40" and "read 1 of 2"."""
        self._case.setText(case)
        self._session.setText(session)
        self.strip.setVisible(bool(case))

    @property
    def text(self) -> str:
        """Description of case and session."""
        return f"{self._case.text()}, {self._session.text()}"


class ReadingKey(NamedTuple):
    """A key of the reading mode."""

    name: str  # name of the command
    # key, word, tip: key cap, action, and its effect in a sentence
    key: str
    word: str
    tip: str = ""


class ReadingPanel(QWidget):
    """Instruction, and the keys of the case on screen, in groups."""

    pressed = Signal(str)  # name of a command

    def __init__(self, instruction: str, groups: Sequence[tuple[str, Sequence[ReadingKey]]]) -> None:
        super().__init__()
        set_lengths(self, minimumWidth=WIDTH, maximumWidth=WIDTH)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.buttons: dict[str, KeyButton] = {}
        page = QWidget()
        column = vertical(inside=page, margins=(16, 14, 12, 12), spacing=6)
        if instruction:
            column.addWidget(plain_label(instruction, wrap=True))
            column.addSpacing(8)
        self.headings: list[QLabel] = []
        self._lasts: list[QWidget] = []
        """The last key of each group."""
        for title, keys in groups:
            heading = plain_label(title, wrap=True)
            self.headings.append(heading)
            column.addWidget(heading)
            for key in keys:
                button = KeyButton(key.key, key.word, tip=key.tip)
                button.clicked.connect(self._on_clicked)
                button.setObjectName(key.name)
                self.buttons[key.name] = button
                column.addWidget(button)
            self._lasts.append(button if keys else heading)
            column.addSpacing(10)
        self.note = plain_label("", "second", wrap=True)
        column.addWidget(self.note)
        column.addStretch(1)
        self._footer = vertical(margins=(16, 10, 12, 12), spacing=6)
        self._scroll = scroll_area(page)
        vertical((self._scroll, 1), rule(), self._footer, inside=self)

    def add_to_footer(self, keys: Sequence[ReadingKey]) -> None:
        """Add keys below the list, which are always visible."""
        for key in keys:
            button = KeyButton(key.key, key.word, "accent" if key.name == "next" else "second", key.tip)
            button.clicked.connect(self._on_clicked)
            button.setObjectName(key.name)
            self.buttons[key.name] = button
            self._footer.addWidget(button)

    def set_checked(self, names: Collection[str]) -> None:
        """Highlight the keys of the chosen answers."""
        for name, button in self.buttons.items():
            button.setCheckable(True)
            button.setChecked(name in names)
            button.update()

    def set_current_group(self, number: int) -> None:
        """Highlight the heading of a group, and scroll to its keys; -1 highlights none."""
        for index, heading in enumerate(self.headings):
            theme.set_role(heading, "accent" if index == number else "second")
        if number >= 0:
            self._scroll.verticalScrollBar().setValue(0)  # show the instruction, if both fit
            self._scroll.ensureWidgetVisible(self._lasts[number], 0, 0)
            self._scroll.ensureWidgetVisible(self.headings[number], 0, 0)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Enable or disable a key."""
        self.buttons[name].setEnabled(enabled)

    def _on_clicked(self) -> None:
        button = self.sender()
        self.pressed.emit(button.objectName())


class ComparedItems(QWidget):
    """Two items side by side, each a picture, a text or both; the chosen item has a frame."""

    chosen = Signal(str)  # "left" or "right": a picture was double-clicked

    def __init__(self, text_size: int) -> None:
        super().__init__()
        sides = ("left", "right")
        self.views = {side: MarkingCanvas(marks=False) for side in sides}
        self.browsers = {side: ContentBrowser(size=text_size, margin=_TEXT_MARGIN) for side in sides}
        self._frames = {side: _Frame(self.views[side], self.browsers[side]) for side in sides}
        for side, view in self.views.items():
            view.setAccessibleName(f"{side.capitalize()} picture")
            self.browsers[side].setAccessibleName(f"{side.capitalize()} text")
            for part in (view, self.browsers[side]):
                part.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # a focus frame would look like a choice
            view.place_double_clicked.connect(lambda _x, _y, side=side: self.chosen.emit(side))
        horizontal(*((frame, 1) for frame in self._frames.values()), inside=self, spacing=2)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Items to compare")

    def set_parts(self, left: tuple[Mapping[str, str], bool], right: tuple[Mapping[str, str], bool]) -> None:
        """Set the texts of both items, and whether they have a picture."""
        for side, (texts, has_picture) in zip(self.views, (left, right), strict=True):
            self.views[side].setVisible(has_picture)
            self.browsers[side].setVisible(bool(texts))
            self.browsers[side].show_texts(texts)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll both texts by page keys."""
        if event.key() not in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            super().keyPressEvent(event)
            return
        for browser in self.browsers.values():
            bar = browser.verticalScrollBar()
            sign = 1 if event.key() == Qt.Key.Key_PageDown else -1
            bar.setValue(bar.value() + sign * bar.pageStep())

    def set_chosen(self, answer: str) -> None:
        """Frame the chosen item; both for a tie, none without an answer."""
        for side, frame in self._frames.items():
            frame.set_frame_visible(answer in (side, "tie"))


class _Frame(QWidget):
    def __init__(self, view: MarkingCanvas, browser: ContentBrowser) -> None:
        super().__init__()
        self._lit, self._view = False, view
        vertical((view, 1), (browser, 1), inside=self, margins=(4, 4, 4, 4))

    def set_frame_visible(self, lit: bool) -> None:
        """Show or hide the frame."""
        self._lit = lit
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the frame."""
        with QPainter(self) as painter:
            around = theme.DARK.canvas if self._view.isVisible() else theme.current().window
            painter.fillRect(self.rect(), QColor(theme.current().accent if self._lit else around))
