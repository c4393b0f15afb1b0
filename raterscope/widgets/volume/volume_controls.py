"""Controls of a volume: strip of disputes, presets and fields of the window; arrangement of the views."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from raterscope.figures.description import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import FigureMenu, WholeView
from raterscope.widgets.hints import KeyHelp, MenuChip
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.parts import NumberBox, keeps_key, plain_label, plain_tip
from raterscope.widgets.theme import set_lengths
from raterscope.widgets.volume.plane import PRESETS, Levels, Window, automatic_window, in_words, looks_like_ct

WIDTH = 30
MARGIN_TOP = 12
BAR_ROOM = 20.0

WINDOW_DRAG = 300.0
"""Pixels of a drag that change the width of the window by a factor of e, or its level by its width."""

WINDOW_TIP = "Window: width and level of the grey values. Drag with the right button to change them"


class DisputeStrip(WholeView):
    """Strip with a bar for each slice, longer for more dispute, and a mark at the visible slice.

    A click or a drag goes to the slice; Up, Down, Home and End move, and Return goes to the most disputed
    slice.
    """

    slice_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Dispute by slice")
        self.setMouseTracking(True)
        self._dispute: NDArray[np.float64] = np.zeros(1)
        self._upward = False
        self._slice = 0
        self.menu = FigureMenu(self, self, self.table)

    def set_dispute(self, dispute: NDArray[np.floating], *, upward: bool) -> None:
        """Show the dispute of each slice, the first at the top or, with `upward`, at the bottom."""
        self._dispute = np.nan_to_num(np.asarray(dispute, dtype=np.float64)).clip(min=0.0)
        self._upward = upward
        self.set_slice(min(self._slice, len(self._dispute) - 1))

    def set_slice(self, index: int) -> None:
        """Set the visible slice."""
        self._slice = index
        self.setAccessibleDescription(self._text(index))
        self.update()

    def sizeHint(self) -> QSize:
        """Return a narrow size."""
        return QSize(WIDTH, 300)

    def paint_picture(self, painter: QPainter) -> None:
        """Paint bars and mark."""
        palette = theme.DARK
        painter.fillRect(self.rect(), QColor(palette.canvas))
        count, highest = len(self._dispute), float(self._dispute.max())
        rows = self.height() - 2 * MARGIN_TOP
        right = float(self.width() - 5)
        painter.fillRect(QRectF(right - BAR_ROOM, MARGIN_TOP, BAR_ROOM, rows), QColor(palette.window))
        if highest > 0 and rows > 0:
            oriented = self._dispute[::-1] if self._upward else self._dispute
            edges = np.arange(count) * rows / count
            thick = max(1.0, rows / count - (1.0 if rows / count >= 3 else 0.0))
            for index in np.flatnonzero(oriented):
                long = max(1.5, BAR_ROOM * float(oriented[index]) / highest)
                bar = QRectF(right - long, MARGIN_TOP + float(edges[index]), long, thick)
                painter.fillRect(bar, QColor(palette.disputed))
        middle = self._middle(self._slice)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(palette.accent), 2))
        painter.drawLine(QPointF(right - BAR_ROOM, middle), QPointF(right, middle))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.accent))
        tip = right - BAR_ROOM
        painter.drawPolygon(
            QPolygonF([QPointF(tip, middle), QPointF(tip - 5, middle - 4), QPointF(tip - 5, middle + 4)])
        )

    def table(self) -> PlotTable:
        """Return the dispute of each slice."""
        numbers = np.arange(1, len(self._dispute) + 1)
        return PlotTable.of({"slice": numbers, "disputed (ml)": self._dispute})

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go to the slice under the mouse."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._go_to(self._slice_at(event.position().y()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow a drag."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go_to(self._slice_at(event.position().y()))

    KEY_HELP = KeyHelp(
        "On the dispute strip",
        (
            ("Up, Down", "next, previous slice"),
            ("Home, End", "first, last slice"),
            ("Return", "most disputed slice"),
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go up, down, to an end, or to the most disputed slice."""
        last, up = len(self._dispute) - 1, 1 if self._upward else -1
        top = last if self._upward else 0
        to = {
            Qt.Key.Key_Up: self._slice + up,
            Qt.Key.Key_Down: self._slice - up,
            Qt.Key.Key_Home: top,
            Qt.Key.Key_End: last - top,
            Qt.Key.Key_Return: int(self._dispute.argmax()),
            Qt.Key.Key_Enter: int(self._dispute.argmax()),
        }.get(Qt.Key(event.key()))
        if to is None:
            super().keyPressEvent(event)
        else:
            self._go_to(min(max(to, 0), last))

    def event(self, event: QEvent) -> bool:
        """Describe the slice under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self._text(self._slice_at(event.pos().y())), self)
            return True
        return super().event(event)

    def _text(self, index: int) -> str:
        total = float(self._dispute.sum())
        share = 100 * float(self._dispute[index]) / total if total > 0 else 0.0
        most = int(self._dispute.argmax()) + 1
        text = f"slice {index + 1} of {len(self._dispute)}, {share:.2g} % of the dispute"
        return f"{text}; the most disputed is slice {most} (Return)" if total > 0 else text

    def _middle(self, index: int) -> float:
        count, rows = len(self._dispute), self.height() - 2 * MARGIN_TOP
        at = count - 1 - index if self._upward else index
        return MARGIN_TOP + (at + 0.5) * rows / count

    def _slice_at(self, y: float) -> int:
        count, rows = len(self._dispute), max(1, self.height() - 2 * MARGIN_TOP)
        index = min(max(int((y - MARGIN_TOP) * count / rows), 0), count - 1)
        return count - 1 - index if self._upward else index

    def _go_to(self, index: int) -> None:
        if index != self._slice:
            self.slice_chosen.emit(index)


CINE_INTERVAL = 100
"""Milliseconds between two slices of playback."""


class Cine(QTimer):
    """Timer that plays slices."""

    def __init__(self, step: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self.setInterval(CINE_INTERVAL)
        self.timeout.connect(step)

    def play(self, on: bool) -> None:
        """Start or stop."""
        if on:
            self.start()
        else:
            self.stop()


AUTOMATIC, FROM_FILE, FULL = "automatic", "file", "full"
_SAMPLED = 200_000


class WindowChoice:
    """Windows offered for the volume on screen, and the choice, which is kept for further volumes.

    A CT window is kept by its numbers. Values of other modalities have no unit: their window is kept relative
    to the automatic one.
    """

    def __init__(self) -> None:
        self.offered: dict[str, tuple[str, Window]] = {}
        self.preset = ""
        self.modality = ""
        """Modality of the volume; "CT" also if only its values look like CT."""
        self._automatic: Window = (0.0, 1.0)
        self._kept: dict[str, str | Window] = {}

    def offer(self, values: NDArray[np.generic] | None, modality: str, window: Window | None) -> Window:
        """Find the windows of a volume, and return the one to show: the earlier choice, or the default."""
        self.offered, self.preset = {}, ""
        if values is None or values.ndim != 3:
            return 0.5, 1.0
        is_ct = modality == "CT" or (not modality and looks_like_ct(values))
        self.modality = "CT" if is_ct else modality
        self._automatic = automatic_window(values)
        if window is not None:
            self.offered[FROM_FILE] = ("from the file", window)
        if is_ct:
            self.offered |= {p.name: (p.text, (p.centre, p.width)) for p in PRESETS}
        self.offered[AUTOMATIC] = ("automatic", self._automatic)
        if not is_ct:
            self.offered[FULL] = ("full range", _full_window(values))
        kept = self._kept.get(self.modality)
        if isinstance(kept, tuple):
            return self._restored(kept)
        first = FROM_FILE if window is not None else "soft" if modality == "CT" else AUTOMATIC
        self.preset = kept if kept in self.offered and kept is not None else first
        return self.offered[self.preset][1]

    def choose(self, name: str) -> Window | None:
        """Choose a preset; None if it is not offered."""
        if name not in self.offered:
            return None
        self.preset = self._kept[self.modality] = name
        return self.offered[name][1]

    def set(self, centre: float, width: float) -> None:
        """Choose a window by its numbers."""
        self.preset = ""
        if self.modality != "CT":
            middle, wide = self._automatic
            centre, width = (centre - middle) / wide, width / wide
        self._kept[self.modality] = (centre, width)

    def entries(self) -> list[tuple[str, str]]:
        """Return the name and the description of each preset."""
        return [(name, f"{text}   {in_words(*window)}") for name, (text, window) in self.offered.items()]

    def text_of(self, centre: float, width: float) -> str:
        """Describe the window on screen."""
        return f"{in_words(centre, width)} {self.offered[self.preset][0] if self.preset else ''}".strip()

    def _restored(self, kept: Window) -> Window:
        if self.modality == "CT":
            return kept
        middle, wide = self._automatic
        return middle + kept[0] * wide, kept[1] * wide


def _full_window(values: NDArray[np.generic]) -> Window:
    every = max(1, round((values.size / _SAMPLED) ** (1 / 3)))
    sample = np.asarray(values[::every, ::every, ::every], dtype=np.float64)
    sample = sample[np.isfinite(sample)]
    low, high = (float(sample.min()), float(sample.max())) if sample.size else (0.0, 1.0)
    return (low + high) / 2, max(high - low, 1e-6)


class WindowEntry(QWidget):
    """Fields for width and level of the window, over the views."""

    entered = Signal(float, float)  # centre and width
    left = Signal()  # Esc or Return was pressed

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Window by numbers")
        theme.set_role(self, "popover")
        self.width_box, self.level_box = NumberBox(), NumberBox()
        for box, words in ((self.width_box, "Window width"), (self.level_box, "Window level")):
            box.setAccessibleName(words)
            box.setToolTip(plain_tip(words))
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self._on_value)
            set_lengths(box, width=84)
        horizontal(
            plain_label("width"), self.width_box, plain_label("level"), self.level_box,
            inside=self, margins=(12, 8, 12, 8), spacing=8,
        )  # fmt: skip
        self.hide()

    def open_with(self, centre: float, width: float) -> None:
        """Show the numbers, with the focus on the width."""
        digits = max(0, min(6, 2 - math.floor(math.log10(max(width, 1e-9)))))
        for box, value, lowest in ((self.width_box, width, 10.0**-digits), (self.level_box, centre, -1e9)):
            with QSignalBlocker(box):
                box.setDecimals(digits)
                box.setRange(lowest, 1e9)
                box.setSingleStep(max(width / 50, 10.0**-digits))
                box.setValue(value)
        self.adjustSize()
        self.show()
        self.raise_()
        self.width_box.setFocus()
        self.width_box.selectAll()

    def event(self, event: QEvent) -> bool:
        """Keep Tab for the fields, because it is a shortcut over the views."""
        return keeps_key(event, Qt.Key.Key_Tab, Qt.Key.Key_Backtab) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave with Return or Esc."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape):
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def _on_value(self) -> None:
        self.entered.emit(self.level_box.value(), self.width_box.value())


class WindowControl(QObject):
    """Window of a volume view: a chip with presets, fields for numbers, and drags."""

    changed = Signal(float, float)  # centre and width

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self._view = view
        self._choice = WindowChoice()
        self.levels = Levels(0.0, 1.0)
        """Current window."""
        self._dragged_from: Window | None = None
        self.chip = MenuChip("Window", WINDOW_TIP, above=True)
        self.chip.chosen.connect(self.show_preset)
        self.entry = WindowEntry(view)
        self.entry.entered.connect(self.set)
        self.entry.left.connect(self._leave_entry)

    @property
    def window(self) -> Window:
        """Centre and width."""
        return self.levels.centre, self.levels.width

    @property
    def modality(self) -> str:
        """Modality of the volume; "CT" also if only its values look like CT."""
        return self._choice.modality

    @property
    def possible(self) -> bool:
        """Whether the volume has grey values, and therefore a window."""
        return bool(self._choice.offered)

    def offer(self, values: NDArray[np.generic] | None, modality: str, window: Window | None) -> None:
        """Offer the windows of a volume, and show the earlier choice, or the default."""
        first = self._choice.offer(values, modality, window)
        self.chip.set_choices(self._choice.entries())
        self.chip.setVisible(bool(self._choice.offered))
        if not self._choice.offered:
            self.entry.hide()
            first = 0.0, 1.0
        self._show(*first)

    def show_preset(self, name: str) -> None:
        """Choose a window: "automatic", "full", the "file"'s own, or one of the presets of CT."""
        window = self._choice.choose(name)
        if window is not None:
            self._show(*window)

    def set(self, centre: float, width: float) -> None:
        """Choose a window by its numbers."""
        self._choice.set(centre, width)
        self._show(centre, width)

    def toggle_entry(self) -> None:
        """Open fields for width and level, or close them."""
        if self.entry.isVisible():
            self._leave_entry()
        elif self._choice.offered:
            self.entry.open_with(*self.window)

    def drag(self, right: float, up: float) -> str:
        """Change the window by the pixels since a drag began; return its description, empty without one."""
        if not self._choice.offered:
            return ""
        centre, width = self._dragged_from = self._dragged_from or self.window
        self.set(centre + width * up / WINDOW_DRAG, width * float(np.exp(right / WINDOW_DRAG)))
        return self.chip.text()

    def end_drag(self) -> None:
        """End a drag."""
        self._dragged_from = None

    def _leave_entry(self) -> None:
        self.entry.hide()
        self._view.setFocus()

    def _show(self, centre: float, width: float) -> None:
        self.levels = Levels(centre, width)
        self.chip.set_text(self._choice.text_of(*self.window))
        self.changed.emit(*self.window)


LARGE_SHARE = 0.64
"""Share of the width for the large one of three views."""

RULE = 1

STRIP, SURFACE = "strip", "surface"


def arrange(
    width: int, height: int, large: str, others: Sequence[str], *, strip: int, surface: bool
) -> dict[str, QRect]:
    """Return the rectangles of the large view, the others, the strip and the 3-D view, if they are shown.

    `others`: two planes, or none if the large view is alone. `strip`: width of the strip beside the large
    view. `surface`: whether the 3-D view is shown: in the fourth quarter, or beside the only view.
    """
    share = 0.5 if surface else LARGE_SHARE if others else 1.0
    room = round((width - strip) * share)
    left, upper = room + strip + RULE, (height - RULE) // 2
    lower = height - upper - RULE
    right = width - left
    quarters = surface and bool(others)
    high = upper if quarters else height
    places = {large: QRect(0, 0, room, high), STRIP: QRect(room, 0, strip, high)}
    if quarters:
        places[SURFACE] = QRect(left, 0, right, upper)
        places[others[0]] = QRect(0, upper + RULE, room + strip, lower)
        places[others[1]] = QRect(left, upper + RULE, right, lower)
    elif surface:
        places[SURFACE] = QRect(left, 0, right, height)
    elif others:
        places[others[0]] = QRect(left, 0, right, upper)
        places[others[1]] = QRect(left, upper + RULE, right, lower)
    return places
