"""Panel of an image's display: value range, gamma, colour and visibility of each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QCheckBox, QPushButton, QSizePolicy, QToolButton, QWidget

from raterscope.algorithms.image_display import (
    COLOUR,
    DEFAULT,
    HIGHEST_GAMMA,
    LOWEST_GAMMA,
    ChannelDisplay,
    ChannelRange,
    Colour,
    Displays,
    Stain,
)
from raterscope.text import with_minus
from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, horizontal, scroll_area, vertical
from raterscope.widgets.painting import paint_focus_frame
from raterscope.widgets.parts import Menu, NumberBox, plain_label, plain_tip
from raterscope.widgets.theme import enlarge, pixels, set_lengths, usual

COLOURS: dict[str, Colour] = {
    "grey": (255, 255, 255), "red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255),
    "cyan": (0, 255, 255), "magenta": (255, 0, 255), "yellow": (255, 255, 0), "orange": (255, 140, 0),
}  # fmt: skip
WIDTH, BAR_HEIGHT, SWATCH = 268, 46, 14
EDGE, FROM_TOP = 12, 48
KEY_STEP = 0.01
"""Step of an arrow key, as a share of the range."""


class RangeBar(QWidget):
    """Histogram of a channel with the two ends of its displayed range.

    A drag moves the nearer end. The arrows move the darker end, with Shift the brighter one.
    """

    changed = Signal(float, float)

    def __init__(self, values: ChannelRange) -> None:
        super().__init__()
        self._values = values
        self._ends = [values.low, values.high]
        self._dragged: int | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(f"Range of {values.name}")
        self.setToolTip(plain_tip("Histogram. Drag an end; arrows move black, Shift+arrows white"))
        self.set_ends(values.low, values.high)

    def set_ends(self, low: float, high: float) -> None:
        """Set the values shown as black and as full brightness."""
        self._ends = [low, high]
        self.setAccessibleDescription(f"{with_minus(f'{low:.6g}')} to {with_minus(f'{high:.6g}')}")
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size at the current text scale."""
        return QSize(pixels(WIDTH), pixels(BAR_HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint histogram and ends."""
        colours = theme.current()
        with QPainter(self) as painter:
            box = enlarge(painter, self.rect())
            painter.fillRect(box, QColor(colours.window))
            bins = self._values.histogram
            most = math.log1p(max(bins, default=0)) or 1.0
            step = box.width() / len(bins)
            for index, count in enumerate(bins):
                high = (box.height() - 4) * math.log1p(count) / most
                bar = QRectF(index * step, box.height() - high, max(step, 1.0), high)
                painter.fillRect(bar, QColor(colours.third))
            x, y = (self._x(value, box.width()) for value in self._ends)
            painter.fillRect(QRectF(x, 0, y - x, box.height()), theme.colour(colours.accent, 40))
            painter.setPen(QPen(QColor(colours.accent), 2))
            for end in (x, y):
                painter.drawLine(QPointF(end, 0), QPointF(end, box.height()))
            if self.hasFocus():
                paint_focus_frame(painter, box, colours)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Grab the nearer end."""
        x, wide = usual(event.position()).x(), self.width() / theme.text_size()
        away = [abs(self._x(value, wide) - x) for value in self._ends]
        self._dragged = 0 if away[0] <= away[1] else 1
        self._move(self._dragged, self._value(x, wide))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move the end."""
        if self._dragged is not None:
            wide = self.width() / theme.text_size()
            self._move(self._dragged, self._value(usual(event.position()).x(), wide))

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """Release the end."""
        self._dragged = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move an end."""
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: -1, Qt.Key.Key_Up: 1}
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        end = 1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 0
        extent = self._values.highest - self._values.lowest
        self._move(end, self._ends[end] + step * KEY_STEP * extent)

    def _x(self, value: float, wide: float) -> float:
        share = (value - self._values.lowest) / (self._values.highest - self._values.lowest)
        return min(max(share, 0.0), 1.0) * wide

    def _value(self, x: float, wide: float) -> float:
        share = min(max(x / wide, 0.0), 1.0)
        return self._values.lowest + share * (self._values.highest - self._values.lowest)

    def _move(self, end: int, value: float) -> None:
        ends = [*self._ends]
        ends[end] = min(value, ends[1]) if end == 0 else max(value, ends[0])
        self.set_ends(*ends)
        self.changed.emit(*ends)


class _ChannelRow(QWidget):
    """One channel: visibility, colour, range and gamma."""

    changed = Signal(str, object)

    def __init__(self, values: ChannelRange, display: ChannelDisplay, *, several: bool) -> None:
        super().__init__()
        self._values, self.display = values, display
        self.shown = QCheckBox(values.name.replace("&", "&&"), self)
        self.shown.setVisible(several)
        self.shown.setToolTip(plain_tip(f"Show {values.name}"))
        self.colour = QToolButton(self)
        self.colour.setVisible(values.name != COLOUR)
        self.colour.setAccessibleName(f"Colour of {values.name}")
        self.colour.setToolTip(plain_tip(f"Colour of {values.name}"))
        self._menu = Menu(self)
        for name, colour in COLOURS.items():
            action = self._menu.addAction(_swatch(colour), name)
            action.triggered.connect(partial(self._change, colour=colour))
        self.colour.clicked.connect(self._on_colour)
        self.bar = RangeBar(values)
        digits = max(0, min(6, 2 - math.floor(math.log10(values.highest - values.lowest))))
        self.low, self.high, self.gamma = (NumberBox() for _ in range(3))
        for box, text in ((self.low, "Black"), (self.high, "White"), (self.gamma, "Gamma")):
            box.setAccessibleName(f"{text} of {values.name}")
            box.setKeyboardTracking(False)
            set_lengths(box, width=60)
        for box in (self.low, self.high):
            box.setDecimals(digits)
            box.setRange(-1e12, 1e12)
            box.setSingleStep((values.highest - values.lowest) / 100)
        self.gamma.setRange(LOWEST_GAMMA, HIGHEST_GAMMA)
        self.gamma.setSingleStep(0.1)
        self.gamma.setToolTip(plain_tip("Gamma: below 1 brightens dark parts"))
        numbers = horizontal(
            plain_label("black", "small"), self.low, STRETCH,
            plain_label("white", "small"), self.high, STRETCH,
            plain_label("gamma", "small"), self.gamma, spacing=4,
        )  # fmt: skip
        top = horizontal(self.shown if several else plain_label(values.name), STRETCH, spacing=8)
        if values.name != COLOUR:
            top.addWidget(self.colour)
        vertical(top, self.bar, numbers, inside=self, spacing=4)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_display(display)
        self.shown.toggled.connect(lambda on: self._change(shown=on))
        self.bar.changed.connect(self._on_range)
        self.low.valueChanged.connect(self._on_numbers)
        self.high.valueChanged.connect(self._on_numbers)
        self.gamma.valueChanged.connect(lambda value: self._change(gamma=value))

    @property
    def name(self) -> str:
        """Name of the channel."""
        return self._values.name

    @property
    def automatic(self) -> ChannelDisplay:
        """Display with the darkest and the brightest thousandth as black and white."""
        low, high = self._values.automatic
        return replace(self.display, low=low, high=high, gamma=1.0)

    def set_display(self, display: ChannelDisplay) -> None:
        """Show a display without a signal."""
        self.display = display
        low = self._values.low if display.low is None else display.low
        high = self._values.high if display.high is None else display.high
        self.bar.set_ends(low, high)
        for box, value in ((self.low, low), (self.high, high), (self.gamma, display.gamma)):
            with QSignalBlocker(box):
                box.setValue(value)
        with QSignalBlocker(self.shown):
            self.shown.setChecked(display.shown)
        self.colour.setIcon(_swatch(display.colour or self._values.colour or COLOURS["grey"]))

    def _change(self, _checked: bool = False, **values: object) -> None:
        self.set_display(replace(self.display, **values))  # type: ignore[arg-type]
        self.changed.emit(self.name, self.display)

    def _on_range(self, low: float, high: float) -> None:
        self._change(low=low, high=high)

    def _on_numbers(self) -> None:
        self._change(low=self.low.value(), high=max(self.low.value(), self.high.value()))

    def _on_colour(self) -> None:
        self._menu.popup(self.colour.mapToGlobal(self.colour.rect().bottomLeft()))


class DisplayPanel(QWidget):
    """Panel over an image with the display of its channels.

    `over`: the image. `parent`: widget that contains the image, with space for the panel.
    """

    changed = Signal(object)  # changed displays of channels, by name
    left = Signal()  # close was pressed

    def __init__(self, over: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = over
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Brightness and contrast")
        theme.set_role(self, "popover")
        self.rows: list[_ChannelRow] = []
        close = QToolButton()
        close.setText("Close")
        close.clicked.connect(self.left)
        page = QWidget()
        self._column = vertical(inside=page, spacing=12)
        self._area = scroll_area(page)
        self.automatic, self.reset = QPushButton("Automatic"), QPushButton("Reset")
        self.automatic.setToolTip(plain_tip("Show the darkest thousandth as black, the brightest as white"))
        self.reset.setToolTip(plain_tip("Show all channels as in the file"))
        self.automatic.clicked.connect(self._on_automatic)
        self.reset.clicked.connect(self._on_reset)
        self.stain = QCheckBox("Normalise stain")
        self.stain.setToolTip(
            plain_tip("Show all images of the study with the two stains (H&E, Giemsa) of the image on screen")
        )
        buttons = horizontal(self.automatic, self.reset, STRETCH, close, spacing=8)
        vertical(
            plain_label("BRIGHTNESS AND CONTRAST", "caption"), (self._area, 1), self.stain, buttons,
            inside=self, margins=(12, 8, 12, 12), spacing=8,
        )  # fmt: skip
        over.installEventFilter(self)
        self.hide()

    def set_channels(
        self, channels: Sequence[ChannelRange], displays: Displays, *, has_stain: bool = False
    ) -> None:
        """Show the channels of an image; `has_stain` offers to normalise its stain."""
        self.stain.setVisible(has_stain)
        self.set_stain(displays.get(COLOUR, DEFAULT).stain)
        for row in self.rows:
            self._column.removeWidget(row)
            row.deleteLater()
        self.rows = [
            _ChannelRow(values, displays.get(values.name, DEFAULT), several=len(channels) > 1)
            for values in channels
        ]
        for row in self.rows:
            row.changed.connect(self._on_row)
            self._column.addWidget(row)
            row.show()
        self.place()

    def set_stain(self, stain: Stain | None) -> None:
        """Show whether stains are normalised, without a signal."""
        with QSignalBlocker(self.stain):
            self.stain.setChecked(stain is not None)
        for row in self.rows:
            row.set_display(replace(row.display, stain=stain if row.name == COLOUR else None))

    def place(self) -> None:
        """Stay in the upper left corner of the image, below the chips; rows scroll if necessary."""
        parent, layout = self.parentWidget(), self.layout()
        if parent is None or layout is None:
            return
        corner = self._over.mapTo(parent, QPoint(EDGE, pixels(FROM_TOP)))
        room = parent.size() - QSize(corner.x() + EDGE, corner.y() + EDGE)
        self._column.activate()  # rows may be new
        rows = self._column.sizeHint()
        self._area.setMinimumWidth(min(rows.width(), room.width() - 2 * EDGE))
        self._area.setFixedHeight(rows.height())
        layout.activate()
        over = self.sizeHint().height() - room.height()
        if over > 0:
            self._area.setFixedHeight(max(rows.height() - over, 1))
            layout.activate()
        self.setGeometry(QRect(corner, self.sizeHint().boundedTo(room)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of the image, and hide with it."""
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self.place()
        elif event.type() == QEvent.Type.Hide and self.isVisible():
            self.hide()
        return super().eventFilter(watched, event)

    def _on_row(self, name: str, display: ChannelDisplay) -> None:
        self.changed.emit({name: display})

    def _on_automatic(self) -> None:
        self._set({row.name: row.automatic for row in self.rows})

    def _on_reset(self) -> None:
        self.set_stain(None)
        self._set({row.name: DEFAULT for row in self.rows})

    def _set(self, displays: dict[str, ChannelDisplay]) -> None:
        for row in self.rows:
            row.set_display(displays[row.name])
        self.changed.emit(displays)


def _swatch(colour: Colour) -> QPixmap:
    picture = QPixmap(pixels(SWATCH), pixels(SWATCH))
    picture.fill(QColor(*colour))
    return picture
