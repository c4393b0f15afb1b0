"""Viewport of an image, a minimap, and marks with a spatial index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.hints import paint_chip_ground

SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 200.0
FIT_MARGIN, LOOK_MARGIN = 12.0, 60.0

SPOT_ON_SCREEN = (14.0, 90.0)
"""Range of a spot's radius on the screen that is easily seen; outside, `looking_at` changes the scale."""

Rect = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Viewport:
    """Visible part of an image: scale and offset."""

    # width, height: size of the widget in its pixels
    width: int
    height: int
    scale: float = 1.0  # widget pixels per unit of the image
    # across, down: the image's origin in the widget, in whole pixels, so that tiles join without a seam.
    across: int = 0
    down: int = 0

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """Convert image coordinates to widget coordinates."""
        return x * self.scale + self.across, y * self.scale + self.down

    def to_image(self, across: float, down: float) -> tuple[float, float]:
        """Convert widget coordinates to image coordinates."""
        return (across - self.across) / self.scale, (down - self.down) / self.scale

    @property
    def visible(self) -> Rect:
        """Left, top, right, bottom of the visible part, in the image's units."""
        return *self.to_image(0, 0), *self.to_image(self.width, self.height)

    @property
    def centre(self) -> tuple[float, float]:
        """Image position at the centre of the widget."""
        return self.to_image(self.width / 2, self.height / 2)

    def panned(self, across: float, down: float) -> Viewport:
        """Pan by some of the widget's pixels."""
        return replace(self, across=self.across + round(across), down=self.down + round(down))

    def centred(self, x: float, y: float, scale: float | None = None) -> Viewport:
        """Centre a position of the image."""
        scale = min(max(self.scale if scale is None else scale, SMALLEST_SCALE), LARGEST_SCALE)
        across, down = round(self.width / 2 - x * scale), round(self.height / 2 - y * scale)
        return replace(self, scale=scale, across=across, down=down)

    def zoomed(self, factor: float, across: float, down: float) -> Viewport:
        """Zoom around a widget position, which keeps its image position."""
        x, y = self.to_image(across, down)
        scale = min(max(self.scale * factor, SMALLEST_SCALE), LARGEST_SCALE)
        return replace(self, scale=scale, across=round(across - x * scale), down=round(down - y * scale))

    def framing(self, rect: Rect, margin: float = 0.0, *, top: float = 0.0) -> Viewport:
        """Show a whole rectangle with a margin, below a covered strip (`top`); in the widget's pixels."""
        left, first, right, last = rect
        top = max(margin, top + margin / 2)
        room_across = max(1.0, self.width - 2 * margin)
        room_down = max(1.0, self.height - margin - top)
        scale = min(room_across / max(right - left, 1e-9), room_down / max(last - first, 1e-9))
        whole = self.centred((left + right) / 2, (first + last) / 2, scale)
        return whole.panned(0, (top - margin) / 2)

    def resized(self, width: int, height: int) -> Viewport:
        """Keep the centre in a widget of another size."""
        x, y = self.centre
        return replace(self, width=width, height=height).centred(x, y)

    def kept_on(self, extent: Rect, margin: float) -> Viewport:
        """Limit panning: at most a margin is visible beside the image; a small image is centred."""

        def keep(origin: int, first: float, last: float, room: int) -> int:
            start, stop = first * self.scale, last * self.scale
            if stop - start + 2 * margin <= room:
                return round((room - start - stop) / 2)
            return round(min(max(origin, room - stop - margin), margin - start))

        across = keep(self.across, extent[0], extent[2], self.width)
        down = keep(self.down, extent[1], extent[3], self.height)
        return replace(self, across=across, down=down)

    def looking_at(
        self, x: float, y: float, radius: float, extent: Rect, *, frame: float = 0.0, top: float = 0.0
    ) -> Viewport:
        """Pan to a spot and its surroundings.

        The scale stays if the spot is easily seen at it; nothing moves if the spot is also well inside the
        view.

        `frame`: pixels between the spot and the frame around it, which is kept inside too. `top`: pixels at
        the top that are covered.
        """
        smallest, largest = SPOT_ON_SCREEN
        on_screen = max(radius, 1e-9) * self.scale
        if not smallest <= on_screen <= largest:
            ideal = (2.5 * smallest if on_screen < smallest else 0.6 * largest) / max(radius, 1e-9)
            scale = max(ideal, self.framing(extent, FIT_MARGIN).scale)
            if scale != self.scale:
                margin = max(LOOK_MARGIN, radius * scale + frame + top)
                return self.centred(x, y, scale).kept_on(extent, margin)
        across, down = self.to_screen(x, y)
        half = on_screen + frame
        lateral, above = max(0.15 * self.width, half), max(0.15 * self.height, half)
        is_inside = (
            lateral < across < self.width - lateral and max(above, half + top) < down < self.height - above
        )
        if is_inside:
            return self
        return self.centred(x, y).kept_on(extent, max(LOOK_MARGIN, half + top))

    def share_of(self, extent: Rect) -> float:
        """Return the share of the image that fits into the widget, at most 1."""
        left, top, right, bottom = extent
        return min(1.0, self.width * self.height / self.scale**2 / ((right - left) * (bottom - top)))

    def held_to(self, extent: Rect) -> Viewport:
        """Limit panning: the centre of the widget stays on the image."""
        x, y = self.centre
        inside_x = min(max(x, extent[0]), extent[2])
        inside_y = min(max(y, extent[1]), extent[3])
        return self if (x, y) == (inside_x, inside_y) else self.centred(inside_x, inside_y)


LONGEST = 128
EDGE = 8
FROM_CORNER = 12
"""Distance of the minimap from the corner of the widget, in pixels."""


class Minimap(QWidget):
    """Overview of the scene; press or drag to move the view."""

    place_chosen = Signal(float, float)  # the new centre

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture: QImage | None = None
        self._extent: Rect = (0.0, 0.0, 1.0, 1.0)
        self._seen: Rect = self._extent
        self.setAccessibleName("Overview of the image")
        self.setToolTip("Visible part of the image. Click or drag to move it")
        self.setCursor(Qt.CursorShape.ArrowCursor)

    def room(self, extent: Rect) -> tuple[int, int]:
        """Return the size of the picture for an extent, without the edge."""
        width, height = extent[2] - extent[0], extent[3] - extent[1]
        factor = LONGEST / max(width, height)
        return max(8, round(width * factor)), max(8, round(height * factor))

    @property
    def has_picture(self) -> bool:
        """True if an image is set."""
        return self._picture is not None

    def set_picture(self, picture: QImage | None, extent: Rect) -> None:
        """Show another image."""
        self._picture, self._extent = picture, extent
        width, height = self.room(extent)
        self.setFixedSize(width + 2 * EDGE, height + 2 * EDGE)
        self.update()

    def follow(self, viewport: Viewport) -> None:
        """Set the visible part; the minimap is hidden if everything is visible."""
        visible = viewport.visible
        left, top, right, bottom = self._extent
        self.setVisible(
            not (visible[0] <= left and visible[1] <= top and visible[2] >= right and visible[3] >= bottom)
        )
        self.move(viewport.width - self.width() - FROM_CORNER, viewport.height - self.height() - FROM_CORNER)
        if visible != self._seen:
            self._seen = visible
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint image and frame."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        paint_chip_ground(painter, QRectF(self.rect()))
        box = self._box()
        if self._picture is None:
            painter.fillRect(box, QColor(theme.DARK.canvas))
        else:
            painter.drawImage(box, self._picture)
        left, top, right, bottom = self._extent
        across, down = box.width() / (right - left), box.height() / (bottom - top)
        frame = QRectF(
            box.left() + (self._seen[0] - left) * across,
            box.top() + (self._seen[1] - top) * down,
            max(4.0, (self._seen[2] - self._seen[0]) * across),
            max(4.0, (self._seen[3] - self._seen[1]) * down),
        ).intersected(box)
        for hue, width in ((theme.DARK.canvas, 3.5), (theme.DARK.accent, 1.6)):
            painter.setPen(QPen(QColor(hue), width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(frame)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the view to the mouse position."""
        self._choose(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow a drag."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose(event.position())

    def _box(self) -> QRectF:
        return QRectF(self.rect()).adjusted(EDGE, EDGE, -EDGE, -EDGE)

    def _choose(self, position: QPointF) -> None:
        box = self._box()
        left, top, right, bottom = self._extent
        x = left + (position.x() - box.left()) / box.width() * (right - left)
        y = top + (position.y() - box.top()) / box.height() * (bottom - top)
        self.place_chosen.emit(min(max(x, left), right), min(max(y, top), bottom))


LAYERS = ("clicks", "ellipses", "detections", "truth", "density")

SPOT_STATES = ("detected", "rejected", "disputed", "accepted", "turned down", "added", "undecided")
"""States of a spot: by the fusion (the first three), by the expert's decision, or neither."""


@dataclass(frozen=True, eq=False)
class ClickMarks:
    """N clicks of some annotators."""

    # x, y: (N,): position in the image's units
    x: NDArray[np.floating]
    y: NDArray[np.floating]
    annotator: NDArray[np.integer]  # (N,): index that determines colour and symbol
    outlier: NDArray[np.bool_] | None = None  # (N,): outliers are drawn as thin strokes

    @classmethod
    def none(cls) -> ClickMarks:
        """No click."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class DetectionMarks:
    """M spots."""

    # x, y: (M,)
    x: NDArray[np.floating]
    y: NDArray[np.floating]
    covariance: NDArray[np.floating]  # (M, 2, 2): square units of the image
    posterior: NDArray[np.floating]  # (M,): probability of a structure; NaN if unknown
    state: tuple[str, ...]  # tuple of M of `SPOT_STATES`
    number: NDArray[np.integer]  # (M,): number of the spot on screen
    votes: NDArray[np.integer] | None = None  # (M,): number of annotators who clicked
    annotators: int = 0  # number of annotators who viewed the image
    labels: tuple[str, ...] = ()  # class of each spot, empty if unknown; () without classes
    bookmarked: frozenset[int] = frozenset()  # numbers of the bookmarked spots
    _known: frozenset[str] = field(default=frozenset(SPOT_STATES), init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = set(self.state) - self._known
        if unknown:
            raise ValueError(f"spot state {sorted(unknown)[0]!r}; expected one of {', '.join(SPOT_STATES)}")
        if not len(self.x) == len(self.y) == len(self.covariance) == len(self.state) == len(self.number):
            raise ValueError("positions, covariances, states and numbers of spots differ in length")

    @classmethod
    def none(cls) -> DetectionMarks:
        """No spot."""
        empty = np.empty(0)
        return cls(empty, empty, np.empty((0, 2, 2)), empty, (), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.x)

    def text_of(self, index: int) -> tuple[str, str]:
        """Describe a spot by a title and a line: "spot 14 0.46", "22 of 51 clicked"."""
        title = f"spot {self.number[index]}"
        if self.state[index] != "added" and np.isfinite(self.posterior[index]):
            title += f"  {self.posterior[index]:.2f}"
        if self.labels and self.labels[index]:
            title += f"  {self.labels[index]}"
        if self.number[index] in self.bookmarked:
            title += ", bookmarked"
        decided = {"accepted": "accepted", "turned down": "rejected by you", "added": "added by you"}
        word = decided.get(self.state[index], self.state[index])
        if self.votes is None or not self.annotators:
            return title, word
        return title, f"{self.votes[index]} of {self.annotators} clicked, {word}"


CELLS = 128


class GridIndex:
    """Points sorted into the cells of a grid.

    `x`, `y`: (N,).
    """

    def __init__(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        self._x, self._y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if not len(self._x):
            return
        self._left, self._top = float(self._x.min()), float(self._y.min())
        self._across = max(float(np.ptp(self._x)), 1e-9) / CELLS
        self._down = max(float(np.ptp(self._y)), 1e-9) / CELLS
        column = np.minimum((self._x - self._left) / self._across, CELLS - 1).astype(np.uint16)
        row = np.minimum((self._y - self._top) / self._down, CELLS - 1).astype(np.uint16)
        cell = row * CELLS + column  # two bytes, which numpy sorts by their digits
        self._order = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=CELLS * CELLS)
        self._start = np.concatenate([[0], np.cumsum(counts)])
        self._before = np.zeros((CELLS + 1, CELLS + 1), dtype=np.int64)
        self._before[1:, 1:] = counts.reshape(CELLS, CELLS).cumsum(axis=0).cumsum(axis=1)

    def count(self, rect: QRectF) -> int:
        """Count the points in the cells that a rectangle touches: an upper bound of the points in it."""
        if not len(self._x):
            return 0
        first_column, last_column, first_row, last_row = self._cells(rect)
        last_column, last_row, before = last_column + 1, last_row + 1, self._before
        outside = before[first_row, last_column] + before[last_row, first_column]
        return int(before[last_row, last_column] - outside + before[first_row, first_column])

    def within(self, rect: QRectF) -> NDArray[np.int64]:
        """Return the rows of the points in a rectangle, in ascending order."""
        if not len(self._x):
            return np.empty(0, dtype=np.int64)
        first_column, last_column, first_row, last_row = self._cells(rect)
        spans = [
            self._order[self._start[row * CELLS + first_column] : self._start[row * CELLS + last_column + 1]]
            for row in range(first_row, last_row + 1)
        ]
        rows = np.concatenate(spans)
        x, y = self._x[rows], self._y[rows]
        inside = (x >= rect.left()) & (x <= rect.right()) & (y >= rect.top()) & (y <= rect.bottom())
        return np.sort(rows[inside])

    def _cells(self, rect: QRectF) -> tuple[int, int, int, int]:
        """Return the first and last column and row of cells that a rectangle touches."""
        return (
            self._clip((rect.left() - self._left) / self._across),
            self._clip((rect.right() - self._left) / self._across),
            self._clip((rect.top() - self._top) / self._down),
            self._clip((rect.bottom() - self._top) / self._down),
        )

    @staticmethod
    def _clip(cell: float) -> int:
        return int(min(max(cell, 0), CELLS - 1))
