"""Painting of many annotators' confusion matrices as tiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter, QPen

from raterscope.figures.colours import Theme
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import community_ink, rate_table
from raterscope.widgets.painting import paint_words

__all__ = ["Grid", "TilePainter", "Tiles"]

NAME_ROOM, BAR_ROOM = 16, 5
NAMES_FROM = 44
GAPS_FROM = 6
LEAST_SHARE = 0.6
"""Width of the matrix with the fewest votes, as a share of that with most votes."""
DIMMED = 0.22
UNKNOWN = 256


@dataclass(frozen=True, eq=False)
class Tiles:
    """The matrices of M annotators.

    Attributes
    ----------
    mean : (M, J, L) float
    size : (M,) float
        How large each matrix is within its place, 0 to 1.
    excluded : (M,) bool
    community : (M,) int
    """

    mean: NDArray[np.floating]
    size: NDArray[np.floating]
    excluded: NDArray[np.bool_]
    community: NDArray[np.integer]


@dataclass(frozen=True)
class Grid:
    """Positions of the tiles, in pixels.

    Attributes
    ----------
    columns : int
    across, down : int
        From tile to tile.
    gap, caption : int
        Between the tiles, and what is kept for the name under each.
    width, height : float
        Of the largest matrix.
    """

    columns: int
    across: int
    down: int
    gap: int
    caption: int
    width: float
    height: float

    @classmethod
    def of(cls, side: int, rows: int, cells: int, room: int) -> Grid:
        """Lay matrices of J rows and L cells, the longer side of the largest `side`, into a width."""
        width = max(8.0, side * cells / max(rows, cells))
        height = max(8.0, side * rows / max(rows, cells))
        gap = max(4, round(0.2 * side))
        caption = NAME_ROOM if width >= NAMES_FROM else BAR_ROOM
        columns = max(1, room // (round(width) + gap))
        spread = min(max(room // columns, 1), round(1.3 * width) + gap)
        across = max(spread, round(width) + gap)
        return cls(columns, across, round(height) + gap + caption, gap, caption, width, height)


class TilePainter:
    """Paints tiles, and keeps the colours of those that it has painted.

    Parameters
    ----------
    tiles : Tiles
    captions : sequence of M str
    """

    def __init__(self, tiles: Tiles, captions: Sequence[str]) -> None:
        self.tiles, self.captions = tiles, captions
        self._pixels: NDArray[np.uint32] = np.empty(tiles.mean.shape, np.uint32)
        self._ready = np.zeros(len(tiles.mean), bool)
        self._look: Theme | None = None

    def paint(
        self,
        painter: QPainter,
        grid: Grid,
        places: NDArray[np.int64],
        first: int,
        top: int,
        chosen: set[int],
        lit: frozenset[int] | None,
    ) -> None:
        """Paint tiles one after another.

        Parameters
        ----------
        places : (S,) int
            Rows of the `Tiles`.
        first : int
            Where in the grid the first of them is.
        top : int
            Where the grid begins, in pixels.
        chosen : set of int
            Places that are selected: they are never dimmed.
        lit : frozenset of int or None
            Places beside which all others are dimmed; None dims none.
        """
        self._colour(places)
        targets = self._targets(grid, first, top, places)
        rows = places.tolist()
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

    def _colour(self, places: NDArray[np.int64]) -> None:
        """Colour the matrices that are seen for the first time in this theme."""
        look = theme.current()
        if self._look is not look:
            self._look = look
            self._ready[:] = False
        new = places[~self._ready[places]]
        if not len(new):
            return
        unknown = QColor(look.line)
        colours = np.vstack([rate_table(), [unknown.red(), unknown.green(), unknown.blue()]]).astype(
            np.uint32
        )
        table = (255 << 24) | (colours[:, 0] << 16) | (colours[:, 1] << 8) | colours[:, 2]
        rates = np.asarray(self.tiles.mean[new], dtype=np.float32)
        shades = np.where(np.isnan(rates), UNKNOWN, np.clip(rates, 0, 1) * 255 + 0.5)
        self._pixels[new] = table.astype(np.uint32)[shades.astype(np.int16)]
        self._ready[new] = True

    def _targets(self, grid: Grid, first: int, top: int, places: NDArray[np.int64]) -> list[QRectF]:
        """Return the rectangle of each matrix: at the lower left of its tile, by size."""
        _, rows, cells = self.tiles.mean.shape
        share = LEAST_SHARE + (1 - LEAST_SHARE) * np.asarray(self.tiles.size, dtype=float)[places]
        width, height = grid.width * share / cells, grid.height * share / rows
        gaps = np.minimum(width, height) >= GAPS_FROM
        width, height = np.where(gaps, np.floor(width), width), np.where(gaps, np.floor(height), height)
        line, column = np.divmod(np.arange(first, first + len(places)), grid.columns)
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
            if sharp:  # who shows an SVG would blur so small an image
                _paint_cells(painter, box, pixels[tile])
            else:
                painter.drawImage(box, QImage(pixels[tile].data, cells, rows, stride, colours))
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
        places = [row for row, _ in pairs]
        communities = self.tiles.community[places].tolist()
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
            painter.setBrush(community_ink(community))
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
        look = theme.current()
        painter.setFont(theme.font(theme.CAPTION))
        middle = Qt.TextElideMode.ElideMiddle
        for (row, box), community in zip(pairs, communities, strict=True):
            left, right = box.left(), box.left() + grid.across - grid.gap
            if community >= 0:
                number = str(community + 1)
                painter.setPen(community_ink(community))
                painter.drawText(
                    QRectF(left + 5, box.bottom(), 16, NAME_ROOM), Qt.AlignmentFlag.AlignVCenter, number
                )
                left += 9 + 7 * len(number)
            tone = look.rejected if self.tiles.excluded[row] else look.text if row in chosen else look.second
            room = QRectF(left, box.bottom(), right - left, NAME_ROOM)
            paint_words(painter, room, self.captions[row], tone, elide=middle)

    def _cross_out(self, painter: QPainter, grid: Grid, pairs: list[tuple[int, QRectF]]) -> None:
        lines = [
            line
            for row, box in pairs
            if self.tiles.excluded[row]
            for line in (
                QLineF(box.topLeft(), box.bottomRight()),
                QLineF(box.bottomLeft(), box.topRight()),
            )
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
