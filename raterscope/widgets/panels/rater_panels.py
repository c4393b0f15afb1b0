"""Panels of raters of masks: local weight, dendrogram, and alternative consensuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QPaintEngine, QPainter, QPen
from PySide6.QtWidgets import QButtonGroup, QWidget

from raterscope.figures.description import PlotTable
from raterscope.text import percent
from raterscope.widgets import theme
from raterscope.widgets.canvas.tiles import to_picture
from raterscope.widgets.colour_maps import CIVIDIS
from raterscope.widgets.figures.agreement_plots import Dendrogram
from raterscope.widgets.figures.cells import BAR_HEIGHT, cell_at, colours_of, paint_colour_bar
from raterscope.widgets.figures.figure_panel import Figure, ModeSwitch
from raterscope.widgets.hints import TitledPage
from raterscope.widgets.layouts import STRETCH, Stretch, horizontal, vertical
from raterscope.widgets.painting import paint_rater, paint_text
from raterscope.widgets.panels.cards import CardRow
from raterscope.widgets.parts import ChoiceBox, Header, PaintedButton, plain_label, plain_tip
from raterscope.widgets.theme import enlarge, set_lengths

SHARP = 4.0
"""Pixels per voxel in exported pictures, to keep them sharp."""

NO_RATER = "Select a rater to see where the consensus follows that rater."

MEASURES = {
    "weight": ("weight", "The rater's share of the weight behind the consensus"),
    "tau": ("tau", "Local scale: divides the rater's Sigma. Low where the rater is far from the others"),
}


class LocalWeight(TitledPage):
    """Heat map of a rater's local weight with a colour bar, in unsmoothed voxels.

    It can be copied and saved, with its values.
    """

    def __init__(self) -> None:
        header, self.measures = Header("Local weight"), ModeSwitch(MEASURES)
        header.row.addWidget(self.measures)
        self._map = _Map(header)
        super().__init__(header, self._map, NO_RATER, spacing=6)

    @property
    def measure(self) -> str:
        """Displayed measure, "weight" or "tau"."""
        return self.measures.mode

    def show_local(
        self,
        title: str,
        values: NDArray[np.floating] | None,
        high: float = 1.0,
        aspect: float = 1.0,
        corner: tuple[int, int] = (0, 0),
    ) -> None:
        """Show a crop of a rater's weight or tau.

        `title`: "Local weight, rater 4" or "Local tau, rater 4". `values`: (H, W), or None if there is
        nothing to show. `high`: upper end of the scale, which begins at 0. `aspect`: height of a voxel over
        its width. `corner`: row and column of the slice at which the crop begins.
        """
        self.header.set_title(title)
        known = values is not None and values.size > 0
        self.set_filled(known)
        if values is not None and known:
            self._map.show_map(self.measure, values, 0.0, high, aspect, corner)
            least, most = float(np.nanmin(values)), float(np.nanmax(values))
            self._map.setAccessibleName(f"{title}: from {least:.2f} to {most:.2f}")
            text = "" if self.measure == "tau" else ". 1: the consensus follows the rater, 0: it does not"
            self._map.setToolTip(f"From {least:.2f} to {most:.2f} here{text}")


class _Map(Figure[tuple[int, int]]):
    """Figure of the map; its parts are voxels: row and column."""

    def __init__(self, header: Header) -> None:
        super().__init__("Local weight")
        self.header = header
        self._values: NDArray[np.floating] = np.empty((0, 0))
        self._corner = (0, 0)
        self._picture: QImage | None = None
        self._measure = "weight"
        self._ends = (0.0, 1.0)
        self._aspect = 1.0
        set_lengths(self, minimumHeight=BAR_HEIGHT + 48)

    def sizeHint(self) -> QSize:
        return QSize(336, BAR_HEIGHT + 104)

    def show_map(
        self,
        measure: str,
        values: NDArray[np.floating],
        low: float,
        high: float,
        aspect: float,
        corner: tuple[int, int],
    ) -> None:
        self._measure, self._values, self._corner = measure, values, corner
        self._picture = to_picture(colours_of(values, low, high, CIVIDIS))
        self._ends, self._aspect = (low, high), aspect
        self.point(None)
        self.redraw()

    def text_of(self, part: tuple[int, int]) -> str:
        row, column = part
        position = f"row {self._corner[0] + row + 1}, column {self._corner[1] + column + 1}"
        return f"{position}: {self._measure} {self._values[row, column]:.2f}"

    def part_at(self, position: QPointF) -> tuple[int, int] | None:
        return None if self._picture is None else cell_at(position, self._box(), *self._values.shape)

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int] | None:
        rows, columns = self._values.shape
        if not rows or not columns:
            return None
        if part is None:
            return 0, 0
        row, column = part
        return min(max(row + down, 0), rows - 1), min(max(column + across, 0), columns - 1)

    def choose(self, part: tuple[int, int]) -> None:
        """Ignore the selection of a voxel, because it has no effect elsewhere."""
        self.point(part)

    def table(self) -> PlotTable:
        (down, across), (high, wide) = self._corner, self._values.shape
        rows, columns = np.arange(down + 1, down + 1 + high), np.arange(across + 1, across + 1 + wide)
        return PlotTable.of_cells({"row": rows, "column": columns}, {self._measure: self._values})

    def draw(self, painter: QPainter) -> None:
        if self._picture is None:
            return
        box, picture = self._box(), self._picture
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:  # a viewer would blur so small an image
            picture = picture.scaled((box.size() * SHARP).toSize().expandedTo(picture.size()))
        painter.drawImage(box, picture)
        bar = QRectF(0, box.bottom() + 6, self.room.width(), BAR_HEIGHT)
        paint_colour_bar(painter, bar, CIVIDIS, *self._ends, self._measure)
        if self.pointed is not None:
            (row, column), (rows, columns) = self.pointed, self._values.shape
            wide, high = box.width() / columns, box.height() / rows
            cell = QRectF(box.left() + column * wide, box.top() + row * high, wide, high)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for colour, width in ((theme.current().canvas, 3.0), ("#ffffff", 1.2)):
                painter.setPen(QPen(QColor(colour), width))
                painter.drawRect(cell.adjusted(-1, -1, 1, 1))

    def _box(self) -> QRectF:
        """Return the rectangle of the map, in pixels."""
        assert self._picture is not None
        room = self.room.adjusted(0, 0, 0, -BAR_HEIGHT - 6)
        picture_size = QRectF(0, 0, self._picture.width(), self._picture.height() * self._aspect).size()
        size = picture_size.scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
        return QRectF(room.left(), room.top(), size.width(), size.height())


class RaterTreePanel(QWidget):
    """Dendrogram of the raters with a choice of the distance."""

    basis_chosen = Signal(str)  # name of the distance

    def __init__(self, tree: Dendrogram, bases: Mapping[str, str]) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.choice = ChoiceBox("Distance between raters", bases)
        label = plain_label("Distance", "second")
        label.setBuddy(self.choice)
        row = horizontal(label, self.choice, STRETCH, margins=(12, 6, 12, 0), spacing=8)
        vertical(row, (tree, 1), inside=self)
        self.setFocusProxy(tree)
        self.choice.currentIndexChanged.connect(lambda _at: self.basis_chosen.emit(self.basis))

    @property
    def basis(self) -> str:
        """Name of the selected distance."""
        return str(self.choice.key)


PICTURE, ROW, PAD = 112, 18, 10
WIDTH = 280
MAX_NAMED = 5


NO_ALTERNATIVES = "Fuse with more than one consensus to separate raters who drew different structures."


@dataclass(frozen=True, eq=False)
class AlternativeCard:
    """List entry for one of several consensuses."""

    title: str  # "Consensus 1"
    weight: float  # its share of the mixture, 0 to 1
    # (name, number, responsibility) of the raters; responsibilities are 0 to 1, the largest first
    members: Sequence[tuple[str, int, float]]
    picture: QImage | None = None


class AlternativesPanel(QWidget):
    """Alternative consensuses, one card each. A click or Space shows one in the views."""

    alternative_chosen = Signal(int)  # index of the card

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._header = Header("Alternatives")
        self._nothing = plain_label(NO_ALTERNATIVES, "second", wrap=True)
        self._group = QButtonGroup(self)
        self._row = CardRow[_Card]()
        vertical(
            self._header,
            self._nothing,
            (self._row, 1),
            Stretch(0),
            inside=self,
            margins=(12, 8, 12, 8),
            spacing=6,
        )
        self.set_alternatives(())

    @property
    def cards(self) -> Sequence[_Card]:
        """The cards shown."""
        return self._row.cards

    def set_alternatives(self, alternatives: Sequence[AlternativeCard]) -> None:
        """Show consensuses; the first is the one in the views."""
        for card in self.cards:
            self._group.removeButton(card)
        self._row.set_cards([_Card(alternative) for alternative in alternatives])
        for index, card in enumerate(self.cards):
            self._group.addButton(card, index)
            card.clicked.connect(partial(self.alternative_chosen.emit, index))
        self.select(0)
        self._nothing.setVisible(not self.cards)
        number = len(self.cards)
        self._header.set_subtitle(
            f"{number} consensuses" if number > 1 else "one consensus" if number else ""
        )

    def set_nothing(self, reason: str = "") -> None:
        """Show why the panel is empty; by default the text of the empty state."""
        self._nothing.setText(reason or NO_ALTERNATIVES)

    def select(self, index: int) -> None:
        """Mark the consensus shown in the views, without a signal."""
        if 0 <= index < len(self.cards):
            self.cards[index].setChecked(True)


class _Card(PaintedButton):
    def __init__(self, alternative: AlternativeCard) -> None:
        super().__init__()
        self._shown = alternative
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        members = ", ".join(f"{name} {percent(share)}" for name, _, share in alternative.members)
        text = f"{alternative.title}, weight {alternative.weight:.2f}: {members}"
        self.setAccessibleName(text)
        self.setToolTip(plain_tip(text))
        set_lengths(self, width=WIDTH, height=28 + PICTURE + PAD)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def _paint(self, painter: QPainter) -> None:
        palette, alternative, box = theme.current(), self._shown, enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        lit = self.isChecked() or self.hasFocus()
        painter.setPen(QPen(QColor(palette.accent if lit else palette.line), 2 if self.isChecked() else 1))
        painter.setBrush(QColor(palette.raised))
        painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
        inner = box.adjusted(PAD, 4, -PAD, -4)
        painter.setFont(theme.font(bold=self.isChecked()))
        top = QRectF(inner.left(), inner.top(), inner.width(), 22)
        paint_text(painter, top.adjusted(0, 0, -44, 0), alternative.title, palette.text)
        painter.setFont(theme.font(theme.CAPTION))
        paint_text(
            painter, top, f"{alternative.weight:.2f}", palette.second, side=Qt.AlignmentFlag.AlignRight
        )
        picture = QRectF(inner.left(), top.bottom() + 2, PICTURE, PICTURE)
        painter.fillRect(picture, QColor(palette.canvas))
        if alternative.picture is not None and not alternative.picture.isNull():
            size = (
                alternative.picture.size()
                .toSizeF()
                .scaled(picture.size(), Qt.AspectRatioMode.KeepAspectRatio)
            )
            target = QRectF(0, 0, size.width(), size.height())
            target.moveCenter(picture.center())
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(target, alternative.picture)
        self._paint_members(
            painter, QRectF(picture.right() + 10, picture.top(), WIDTH - PICTURE - 3 * PAD, ROW)
        )

    def _paint_members(self, painter: QPainter, line: QRectF) -> None:
        palette, members = theme.current(), self._shown.members
        for name, number, share in members[:MAX_NAMED]:
            belongs = share >= 0.5
            paint_rater(painter, QRectF(line.left(), line.top(), 16, line.height()), number)
            tone = palette.text if belongs else palette.third
            paint_text(painter, line.adjusted(22, 0, -44, 0), name, tone, elide=Qt.TextElideMode.ElideMiddle)
            paint_text(painter, line, percent(share), tone, side=Qt.AlignmentFlag.AlignRight)
            line = line.translated(0, ROW)
        if len(members) > MAX_NAMED:
            paint_text(painter, line, f"{len(members) - MAX_NAMED} more", palette.second)
