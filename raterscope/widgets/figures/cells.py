"""Common parts of figures: cells of rates, colour bars, community marks, and tiles of matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPaintEngine, QPainter, QPen

from raterscope.figures.colours import ANNOTATOR_SYMBOLS, Theme, community_colour_on, contrast_of
from raterscope.text import with_minus
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_text, symbol_path

BAR_HEIGHT = 24
THICKNESS = 6


def colours_of(
    values: NDArray[np.floating], low: float, high: float, table: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return the colours of values by a table, (..., 3).

    `values`: (...); NaN gets the colour of the low end. `low`, `high`: values of the first and the last
    colour. `table`: (256, 3).
    """
    share = (np.asarray(values, dtype=float) - low) / ((high - low) or 1.0)
    return table[np.round(255 * np.clip(np.nan_to_num(share), 0, 1)).astype(np.uint8)]


def paint_colour_bar(
    painter: QPainter, box: QRectF, table: NDArray[np.uint8], low: float, high: float, words: str
) -> None:
    """Paint a colour bar along the top of a box, and below it the values of its ends and the quantity.

    `box`: box of height `BAR_HEIGHT`. `table`: (256, 3). `words`: the quantity, with its unit.
    """
    palette = theme.current()
    colours = np.ascontiguousarray(table)
    bar = QImage(colours.data, len(colours), 1, 3 * len(colours), QImage.Format.Format_RGB888)
    painter.drawImage(QRectF(box.left(), box.top(), box.width(), THICKNESS), bar)
    painter.setFont(theme.font(theme.CAPTION))
    painter.setPen(QColor(palette.second))
    under = box.adjusted(0, THICKNESS + 2, 0, 0)
    sides = (
        (Qt.AlignmentFlag.AlignLeft, _end(low)),
        (Qt.AlignmentFlag.AlignHCenter, words),
        (Qt.AlignmentFlag.AlignRight, _end(high)),
    )
    for side, text in sides:
        painter.drawText(under, side | Qt.AlignmentFlag.AlignTop, text)


def _end(value: float) -> str:
    return with_minus(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")


def community_text_colour(number: int) -> QColor:
    """Return a community's colour for text: mixed with the text colour until it is readable."""
    return QColor(community_colour_on(theme.current(), number))


def community_word(number: int) -> str:
    """Name a community, counted from 1; a negative number is none."""
    return f"community {number + 1}" if number >= 0 else "no community"


def paint_community(painter: QPainter, centre: QPointF, number: int, radius: float) -> None:
    """Paint a community's shape in its colour."""
    painter.save()
    painter.translate(centre)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(community_text_colour(number))
    painter.drawPath(symbol_path(ANNOTATOR_SYMBOLS[max(number, 0) % len(ANNOTATOR_SYMBOLS)], radius))
    painter.restore()


def contrast(first: QColor, second: QColor) -> float:
    """Return the contrast of two colours, 1 to 21, as the accessibility guidelines (WCAG 2.1) define it."""
    return contrast_of(first.name(), second.name())


def mixed(first: QColor, second: QColor, share: float) -> QColor:
    """Mix two colours; `share` of the second one, 0 to 1."""
    return QColor.fromRgbF(
        (1 - share) * first.redF() + share * second.redF(),
        (1 - share) * first.greenF() + share * second.greenF(),
        (1 - share) * first.blueF() + share * second.blueF(),
    )


def ink_on(ground: QColor) -> QColor:
    """Return black or white, whichever contrasts more with a background."""
    black, white = QColor(theme.DARK.canvas), QColor("#ffffff")
    return black if contrast(black, ground) >= contrast(white, ground) else white


FAINTEST = 0.10
"""Share of the accent in the colour of rate 0, so that a cell stands out from the background."""


def rate_table() -> NDArray[np.uint8]:
    """Return the colours of rates 0 to 1 in the current theme, (256, 3), from its surface to its accent."""
    return _ramp(theme.current())


def short_rate(value: float) -> str:
    """Format a rate with two decimals in a short form: ".83", "1.0"; empty for NaN."""
    if not np.isfinite(value):
        return ""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text[:3]


def cell_gap(side: float) -> float:
    """Return the gap between cells of a size, in pixels; small cells have none."""
    return 0.0 if side < 5 else 1.0 if side < 14 else 2.0 if side < 40 else 4.0


Cell = tuple[int, int]
"""Row and column of a matrix."""


def cell_at(position: QPointF, grid: QRectF, rows: int, columns: int) -> Cell | None:
    """Return the cell of a matrix under a position; None outside its rectangle."""
    if not rows or not columns or not grid.contains(position):
        return None
    row = int((position.y() - grid.top()) / max(grid.height(), 1e-9) * rows)
    column = int((position.x() - grid.left()) / max(grid.width(), 1e-9) * columns)
    return min(row, rows - 1), min(column, columns - 1)


def cell_beside(cell: Cell, across: int, down: int, rows: int, columns: int) -> Cell:
    """Return the next cell in the direction of an arrow key."""
    return min(max(cell[0] + down, 0), rows - 1), min(max(cell[1] + across, 0), columns - 1)


def paint_cell(painter: QPainter, box: QRectF, ground: QColor) -> None:
    """Paint one cell's background, with round corners if there is space."""
    if box.width() < 12 or box.height() < 12:
        painter.fillRect(box, ground)
        return
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    painter.drawRoundedRect(box, 3, 3)


def paint_small_cells(painter: QPainter, grid: QRectF, colours: NDArray[np.uint8]) -> None:
    """Paint cells without gaps as one picture; cells smaller than a pixel are averaged.

    `grid`: rectangle of all cells. `colours`: (J, L, 3).
    """
    rows, columns = colours.shape[:2]
    if painter.paintEngine().type() == QPaintEngine.Type.SVG:  # a viewer would blur so small an image
        _paint_cells(painter, grid, colours.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32))
        return
    pixels = np.ascontiguousarray(colours)
    image = QImage(pixels.data, columns, rows, 3 * columns, QImage.Format.Format_RGB888)
    painter.save()
    if min(grid.width() / columns, grid.height() / rows) < 1:
        image = image.scaled(
            max(int(grid.width()), 1),
            max(int(grid.height()), 1),
            mode=Qt.TransformationMode.SmoothTransformation,
        )
    painter.drawImage(grid, image)
    painter.restore()


def paint_rates(painter: QPainter, room: QRectF, rates: NDArray[np.floating]) -> None:
    """Paint rates (J, L) as large as a box allows, from its upper left, with numbers where they fit.

    NaN is painted as background.
    """
    rows, columns = rates.shape
    side = min(room.width() / columns, room.height() / rows)
    gap = cell_gap(side)
    colours = colours_of(rates, 0.0, 1.0, rate_table())
    if gap == 0:
        line = QColor(theme.current().line)
        colours[~np.isfinite(rates)] = line.red(), line.green(), line.blue()
        paint_small_cells(painter, QRectF(room.left(), room.top(), columns * side, rows * side), colours)
        return
    font = theme.font(theme.CAPTION)
    painter.setFont(font)
    numbers = QFontMetrics(font).horizontalAdvance(".00") + 4 <= side - gap and side >= 18
    for row in range(rows):
        for column in range(columns):
            box = QRectF(room.left() + column * side, room.top() + row * side, side - gap, side - gap)
            known = bool(np.isfinite(rates[row, column]))
            ground = QColor(*map(int, colours[row, column])) if known else QColor(theme.current().line)
            paint_cell(painter, box, ground)
            if numbers:
                painter.setPen(ink_on(ground))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, short_rate(float(rates[row, column])))


@lru_cache(maxsize=4)
def _ramp(palette: Theme) -> NDArray[np.uint8]:
    ground, accent = QColor(palette.surface), QColor(palette.accent)
    ends = np.array([[c.red(), c.green(), c.blue()] for c in (ground, accent)], dtype=float)
    share = np.linspace(FAINTEST, 1.0, 256)[:, None]
    return np.asarray(np.round((1 - share) * ends[0] + share * ends[1]), dtype=np.uint8)


NAME_ROOM, BAR_ROOM = 16, 5
NAME_GAP = 6
"""Gap between the names of two tiles, in pixels."""
NAMES_FROM = 44
GAPS_FROM = 6
MIN_SHARE = 0.6
"""Width of the matrix with the fewest votes, relative to that with the most votes."""
DIMMED = 0.22
UNKNOWN = 256


@dataclass(frozen=True, eq=False)
class Tiles:
    """The matrices of M annotators."""

    mean: NDArray[np.floating]  # (M, J, L)
    size: NDArray[np.floating]  # (M,): size of each matrix within its cell, 0 to 1
    excluded: NDArray[np.bool_]  # (M,)
    community: NDArray[np.integer]  # (M,)


@dataclass(frozen=True)
class Grid:
    """Positions of the tiles, in pixels."""

    columns: int
    # across, down: distance from tile to tile
    across: int
    down: int
    # gap, caption: gap between tiles, and height of the name below each
    gap: int
    caption: int
    # width, height: size of the largest matrix
    width: float
    height: float

    @classmethod
    def of(cls, side: int, rows: int, cells: int, room: int) -> Grid:
        """Lay out matrices of J rows and L columns in a width; `side`: longer side of the largest matrix."""
        width = max(8.0, side * cells / max(rows, cells))
        height = max(8.0, side * rows / max(rows, cells))
        gap = max(4, round(0.2 * side))
        caption = NAME_ROOM if width >= NAMES_FROM else BAR_ROOM
        columns = max(1, room // (round(width) + gap))
        spread = min(max(room // columns, 1), round(1.3 * width) + gap)
        across = max(spread, round(width) + gap)
        return cls(columns, across, round(height) + gap + caption, gap, caption, width, height)


class TilePainter:
    """Painter of tiles that caches the colours of painted tiles."""

    def __init__(self, tiles: Tiles, captions: Sequence[str]) -> None:
        self.tiles, self.captions = tiles, captions
        self._pixels: NDArray[np.uint32] = np.empty(tiles.mean.shape, np.uint32)
        self._ready = np.zeros(len(tiles.mean), bool)
        self._look: Theme | None = None

    def paint(
        self,
        painter: QPainter,
        grid: Grid,
        indices: NDArray[np.int64],
        first: int,
        top: int,
        chosen: set[int],
        lit: frozenset[int] | None,
    ) -> None:
        """Paint tiles one after another.

        `indices`: (S,), rows of the `Tiles`. `first`: position of the first one in the grid. `top`: top of
        the grid, in pixels. `chosen`: selected rows, never dimmed. `lit`: other rows that are not dimmed;
        None dims none.
        """
        self._colour(indices)
        targets = self._targets(grid, first, top, indices)
        rows = indices.tolist()
        boxes = list(zip(rows, targets, strict=True))
        clear = set(rows) if lit is None else lit | chosen
        dim = [pair for pair in boxes if pair[0] not in clear]
        bright = [pair for pair in boxes if pair[0] in clear]
        for pairs, opacity in ((dim, DIMMED), (bright, 1.0)):
            if pairs:
                painter.setOpacity(opacity)
                self._paint_matrices(painter, pairs)
                self._paint_captions(painter, grid, pairs, chosen)
        painter.setOpacity(1.0)
        self._cross_out(painter, grid, boxes)

    def _colour(self, indices: NDArray[np.int64]) -> None:
        """Compute the colours of matrices that are visible for the first time in this theme."""
        palette = theme.current()
        if self._look is not palette:
            self._look = palette
            self._ready[:] = False
        new = indices[~self._ready[indices]]
        if not len(new):
            return
        unknown = QColor(palette.line)
        colours = np.vstack([rate_table(), [unknown.red(), unknown.green(), unknown.blue()]]).astype(
            np.uint32
        )
        table = (255 << 24) | (colours[:, 0] << 16) | (colours[:, 1] << 8) | colours[:, 2]
        rates = np.asarray(self.tiles.mean[new], dtype=np.float32)
        shades = np.where(np.isnan(rates), UNKNOWN, np.clip(rates, 0, 1) * 255 + 0.5)
        self._pixels[new] = table.astype(np.uint32)[shades.astype(np.int16)]
        self._ready[new] = True

    def _targets(self, grid: Grid, first: int, top: int, indices: NDArray[np.int64]) -> list[QRectF]:
        """Return the rectangle of each matrix, scaled by votes, at the lower left of its tile."""
        _, rows, cells = self.tiles.mean.shape
        share = MIN_SHARE + (1 - MIN_SHARE) * np.asarray(self.tiles.size, dtype=float)[indices]
        width, height = grid.width * share / cells, grid.height * share / rows
        gaps = np.minimum(width, height) >= GAPS_FROM
        width, height = np.where(gaps, np.floor(width), width), np.where(gaps, np.floor(height), height)
        line, column = np.divmod(np.arange(first, first + len(indices)), grid.columns)
        left = column * grid.across + grid.gap // 2
        bottom = top + (line + 1) * grid.down - grid.gap // 2 - grid.caption
        heads = np.round(bottom - height * rows)
        return [
            QRectF(*box)
            for box in zip(
                left.tolist(), heads.tolist(), (width * cells).tolist(), (height * rows).tolist(), strict=True
            )
        ]

    def _paint_matrices(self, painter: QPainter, pairs: list[tuple[int, QRectF]]) -> None:
        _, rows, cells = self.tiles.mean.shape
        pixels, stride, colours = self._pixels, 4 * cells, QImage.Format.Format_RGB32
        gaps: list[QRectF] = []
        sharp = painter.paintEngine().type() == QPaintEngine.Type.SVG
        for tile, box in pairs:
            if sharp:  # a viewer of an SVG would blur so small an image
                _paint_cells(painter, box, pixels[tile])
            else:
                image = QImage(pixels[tile].data, cells, rows, stride, colours)
                if min(box.width() / cells, box.height() / rows) < 1:  # no row may be omitted
                    size = box.size().toSize()
                    image = image.scaled(size, mode=Qt.TransformationMode.SmoothTransformation)
                painter.drawImage(box, image)
            across, down = box.width() / cells, box.height() / rows
            if min(across, down) >= GAPS_FROM:
                left, top, width, height = box.left(), box.top(), box.width(), box.height()
                gaps += [QRectF(left + step * across - 1, top, 1, height) for step in range(1, cells)]
                gaps += [QRectF(left, top + step * down - 1, width, 1) for step in range(1, rows)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.current().window))
        painter.drawRects(gaps)

    def _paint_captions(
        self, painter: QPainter, grid: Grid, pairs: list[tuple[int, QRectF]], chosen: set[int]
    ) -> None:
        indices = [row for row, _ in pairs]
        communities = self.tiles.community[indices].tolist()
        named = grid.caption == NAME_ROOM
        bars: dict[int, list[QRectF]] = defaultdict(list)
        for (_, box), community in zip(pairs, communities, strict=True):
            if community >= 0:
                left, under = box.left(), box.bottom()
                bars[community].append(
                    QRectF(left, under + 3, 3, 11) if named else QRectF(left, under + 2, grid.width, 3)
                )
        painter.setPen(Qt.PenStyle.NoPen)
        for community, boxes in bars.items():
            painter.setBrush(community_text_colour(community))
            painter.drawRects(boxes)
        if named:
            self._write_names(painter, grid, pairs, communities, chosen)

    def _write_names(
        self,
        painter: QPainter,
        grid: Grid,
        pairs: list[tuple[int, QRectF]],
        communities: list[int],
        chosen: set[int],
    ) -> None:
        palette = theme.current()
        painter.setFont(theme.font(theme.CAPTION))
        middle = Qt.TextElideMode.ElideMiddle
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for (row, box), community in zip(pairs, communities, strict=True):
            left, right = box.left(), box.left() + grid.across - min(grid.gap, NAME_GAP)
            if community >= 0:
                paint_community(painter, QPointF(left + 11, box.bottom() + NAME_ROOM / 2), community, 4)
                left += 18
            tone = (
                palette.rejected
                if self.tiles.excluded[row]
                else palette.text
                if row in chosen
                else palette.second
            )
            room = QRectF(left, box.bottom(), right - left, NAME_ROOM)
            paint_text(painter, room, self.captions[row], tone, elide=middle)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)

    def _cross_out(self, painter: QPainter, grid: Grid, pairs: list[tuple[int, QRectF]]) -> None:
        lines = [
            line
            for row, box in pairs
            if self.tiles.excluded[row]
            for line in (QLineF(box.topLeft(), box.bottomRight()), QLineF(box.bottomLeft(), box.topRight()))
        ]
        if lines:
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(theme.current().rejected), 1.6 if grid.width >= 32 else 1.2))
            painter.drawLines(lines)
            painter.restore()


def _paint_cells(painter: QPainter, box: QRectF, pixels: NDArray[np.uint32]) -> None:
    rows, cells = pixels.shape
    across, down = box.width() / cells, box.height() / rows
    for (row, cell), colour in np.ndenumerate(pixels):
        target = QRectF(box.left() + cell * across, box.top() + row * down, across, down)
        painter.fillRect(target, QColor.fromRgb(int(colour)))
