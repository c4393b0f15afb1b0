"""Communities over time, as streams of annotators between columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPen

from raterscope.figures.colours import Theme, community_colour
from raterscope.figures.description import PlotTable
from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.figures.cells import community_text_colour, mixed, paint_rates
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.painting import in_two_lines, paint_text
from raterscope.widgets.parts import plain_label, plain_tip
from raterscope.widgets.theme import set_lengths

Part = tuple[int, int, int]
"""A moment, a community (their number stands for none), and a community at the next moment or `BLOCK`."""

BLOCK = -1
"""Marks the community itself, instead of the annotators who move to another community."""

NARROWEST, WIDEST = 76.0, 132.0
GAP, LEAST = 6.0, 1.5
REACH = 3.0


@dataclass(frozen=True)
class Block:
    """A community at a moment."""

    moment: int
    community: int
    number: int  # persistent number, -1 for annotators in none
    box: QRectF


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks and bands in pixels."""

    columns: tuple[tuple[float, float], ...]  # (left, width) of the column of each moment
    blocks: dict[Part, Block]  # by part, moment by moment, downwards
    # by part: bands with annotators, except those in no community at both moments
    bands: dict[Part, tuple[float, float, float]]

    def path(self, part: Part) -> QPainterPath:
        """Return the outline of a block or a band."""
        outline = QPainterPath()
        if part[2] == BLOCK:
            outline.addRoundedRect(self.blocks[part].box, 4, 4)
            return outline
        (first, width), (last, _) = self.columns[part[0]], self.columns[part[0] + 1]
        start, end, thick = self.bands[part]
        left, middle = first + width, (first + width + last) / 2
        outline.moveTo(left, start)
        outline.cubicTo(middle, start, middle, end, last, end)
        outline.lineTo(last, end + thick)
        outline.cubicTo(middle, end + thick, middle, start + thick, left, start + thick)
        outline.closeSubpath()
        return outline

    def part_at(self, position: QPointF) -> Part | None:
        """Return the part at a position; a block has priority over bands, a thin band over wider ones."""
        for moment, (left, width) in enumerate(self.columns):
            if left <= position.x() <= left + width:
                return self._block_at(moment, position)
            if position.x() < left:
                return self._band_at(moment - 1, position)
        return None

    def _block_at(self, moment: int, position: QPointF) -> Part | None:
        for part, block in self.blocks.items():
            if part[0] == moment and block.box.top() - REACH <= position.y() <= block.box.bottom() + REACH:
                return part
        return None

    def _band_at(self, moment: int, position: QPointF) -> Part | None:
        candidates = [
            part
            for part, (start, end, thick) in self.bands.items()
            if part[0] == moment and min(start, end) <= position.y() <= max(start, end) + thick
        ]
        hit = [part for part in candidates if self.path(part).contains(position)]
        return min(hit, key=lambda part: self.bands[part][2], default=None)

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        """Move sideways from a block to its widest band and on to its goal, or down a column."""
        if part is None or not (part in self.blocks or part in self.bands):
            return next(iter(self.blocks), None)
        moment, community, goal = part
        if down:
            kind = self.blocks if goal == BLOCK else self.bands
            column = [neighbour for neighbour in kind if neighbour[0] == moment]
            return column[min(max(column.index(part) + down, 0), len(column) - 1)]
        if goal != BLOCK:
            return (moment + 1, goal, BLOCK) if across > 0 else (moment, community, BLOCK)
        if across > 0:
            moves = [band for band in self.bands if band[:2] == (moment, community)]
        else:
            moves = [band for band in self.bands if (band[0] + 1, band[2]) == (moment, community)]
        return max(moves, key=lambda band: self.bands[band][2], default=part)


def lay_out(
    numbers: Sequence[NDArray[np.integer]], flows: Sequence[NDArray[np.integer]], room: QRectF
) -> Layout:
    """Lay out communities by their persistent numbers, in the same order everywhere; none comes last.

    `numbers`: (C_t,) for each of T moments. `flows`: (C_t + 1, C_t+1 + 1) for each except the last.
    """
    sizes = [*(flow.sum(axis=1) for flow in flows), flows[-1].sum(axis=0)]
    orders = [[*np.argsort(part, kind="stable").tolist(), len(part)] for part in numbers]
    moments = len(numbers)
    width = min(1.15 * room.width() / (2 * moments - 1), WIDEST)
    width = max(width, min(NARROWEST, room.width() / (1.4 * moments)))
    apart = (room.width() - width) / (moments - 1)
    columns = tuple((room.left() + moment * apart, width) for moment in range(moments))
    blocks_at_most = max(len(order) for order in orders)
    gap = min(GAP, 0.25 * room.height() / blocks_at_most)
    total = max(int(part.sum()) for part in sizes)
    scale = max(room.height() - gap * (blocks_at_most - 1), 1.0) / max(total, 1)
    blocks: dict[Part, Block] = {}
    for moment, order in enumerate(orders):
        top = room.top()
        for community in order:
            size = int(sizes[moment][community])
            if not size:
                continue
            high = max(size * scale, LEAST)
            none = community == len(numbers[moment])
            number = -1 if none else int(numbers[moment][community])
            box = QRectF(columns[moment][0], top, width, high)
            blocks[moment, community, BLOCK] = Block(moment, community, number, box)
            top += high + gap
    bands: dict[Part, tuple[float, float, float]] = {}
    for moment, flow in enumerate(flows):
        entered = dict.fromkeys(orders[moment + 1], 0.0)
        for community in orders[moment]:
            left = 0.0
            for goal in orders[moment + 1]:
                thick = float(flow[community, goal]) * scale
                if not thick:
                    continue
                start = blocks[moment, community, BLOCK].box.top() + left
                end = blocks[moment + 1, goal, BLOCK].box.top() + entered[goal]
                left += thick
                entered[goal] += thick
                if (community, goal) != (len(numbers[moment]), len(numbers[moment + 1])):
                    bands[moment, community, goal] = start, end, thick
    return Layout(columns, blocks, bands)


NOTHING = "Find communities to see how they change over time."
SAME = "Every community goes on from the first moment to the last."
MAX_LISTED = 4
"""Maximum number of events listed; the others are in the tooltip."""

HEAD = 20.0
LINE = 15.0
STRIP, PAD = 4.0, 5.0
MIN_LINE, MIN_MATRIX = 11.0, 24.0
BAND, FAINT = 120, 36
TINT = 0.1
"""Opacity of a block's background; text in its colour stays readable on it."""

MAX_RATES = 12


@dataclass(frozen=True)
class FlowEvent:
    """A change of a community."""

    moment: int
    number: int  # persistent number
    text: str  # a sentence
    leaves: bool = False  # whether it existed only at the previous moment


@dataclass(frozen=True, eq=False)
class FlowView:
    """Communities at T moments."""

    moments: tuple[str, ...]  # (T,): names of the moments: "at 40 %"
    caption: str  # unit of the moments: "of each one's votes"
    # T arrays, (C_t,): persistent number of each community at a moment, from 0
    numbers: tuple[NDArray[np.integer], ...]
    # T - 1 arrays, (C_t + 1, C_t+1 + 1): numbers of annotators who move between communities; the last row and
    # column stand for none
    flows: tuple[NDArray[np.integer], ...]
    names: tuple[str, ...]  # by lasting number
    events: tuple[FlowEvent, ...] = ()
    prototypes: tuple[NDArray[np.floating], ...] | None = None  # T arrays, (C_t, J, L)
    # classes, outputs: J and L names of rows and columns of the prototypes
    classes: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    # T arrays, (C_t,): sizes of the communities, computed from the flows
    sizes: tuple[NDArray[np.integer], ...] = field(init=False)

    def __post_init__(self) -> None:
        moments = len(self.moments)
        if moments < 2 or len(self.numbers) != moments or len(self.flows) != moments - 1:
            raise ValueError(
                f"{moments} moments, {len(self.numbers)} of numbers, {len(self.flows)} flows between"
            )
        for moment, flow in enumerate(self.flows):
            shape = len(self.numbers[moment]) + 1, len(self.numbers[moment + 1]) + 1
            if flow.shape != shape:
                raise ValueError(f"flow {moment} of shape {flow.shape}; expected {shape}")
        if any(len(part) and not 0 <= part.min() <= part.max() < len(self.names) for part in self.numbers):
            raise ValueError("a community's number has no name")
        if self.prototypes is not None:
            for part, numbers in zip(self.prototypes, self.numbers, strict=True):
                if part.shape != (len(numbers), len(self.classes), len(self.outputs)):
                    raise ValueError(f"prototypes of shape {part.shape} for {len(numbers)} communities")
        sizes = (*(flow.sum(axis=1) for flow in self.flows), self.flows[-1].sum(axis=0))
        object.__setattr__(self, "sizes", sizes)


class CommunityFlow(FigurePanel):
    """Communities over time. A click on a block or band selects its annotators."""

    # int moment, int community: number within the moment; the number of communities stands for none
    block_chosen = Signal(int, int)
    # int moment, int community, int goal: annotators who move from a community to one at the next moment
    band_chosen = Signal(int, int, int)

    def __init__(self) -> None:
        self.figure = _Flow("Communities over time")
        super().__init__("Communities over time", self.figure, NOTHING)
        self._summary = plain_label("", "small", wrap=True)
        column = self.layout()
        assert column is not None
        column.addWidget(self._summary)
        self.figure.chosen.connect(self._on_chosen)
        self.show_nothing(NOTHING)

    def show_flow(self, view: FlowView) -> None:
        """Show communities over time."""
        self.figure.show_flow(view)
        sentences = [event.text for event in view.events]
        more = "" if len(sentences) <= MAX_LISTED else f" And {len(sentences) - MAX_LISTED:,} more."
        self._summary.setText(" ".join(sentences[:MAX_LISTED]) + more or SAME)
        self._summary.setToolTip(plain_tip(" ".join(sentences)) if more else "")
        self._summary.show()
        self.header.set_subtitle(view.caption)
        self.set_filled(True)

    def show_nothing(self, text: str) -> None:
        """Show a sentence instead of the figure."""
        self.figure.show_flow(None)
        self._nothing.setText(text)
        self._summary.hide()
        self.header.set_subtitle("")
        self.set_filled(False)

    @property
    def summary(self) -> str:
        """Text below or instead of the figure."""
        return self._summary.text() if self.filled else self._nothing.text()

    def _on_chosen(self, moment: int, community: int, goal: int) -> None:
        if goal == BLOCK:
            self.block_chosen.emit(moment, community)
        else:
            self.band_chosen.emit(moment, community, goal)


class _Flow(Figure[Part]):
    """The drawing; a part is a moment, a community at it, and the next community of a band or `BLOCK`."""

    chosen = Signal(int, int, int)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        set_lengths(self, minimumWidth=240, minimumHeight=140)
        self._view: FlowView | None = None
        self._layout: tuple[QRectF, Layout] | None = None

    def show_flow(self, view: FlowView | None) -> None:
        self._view = view
        self._layout = None
        self.point(None)
        self.redraw()

    @property
    def placement(self) -> Layout | None:
        """The layout."""
        if self._view is None:
            return None
        if self._layout is None or self._layout[0] != self.room:
            room = QRectF(1, HEAD, max(self.room.width() - 2, 1), max(self.room.height() - HEAD - 2, 1))
            self._layout = self.room, lay_out(self._view.numbers, self._view.flows, room)
        return self._layout[1]

    def part_at(self, position: QPointF) -> Part | None:
        return None if self.placement is None else self.placement.part_at(position)

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        return None if self.placement is None else self.placement.step(part, across, down)

    def choose(self, part: Part) -> None:
        self.chosen.emit(*part)

    def text_of(self, part: Part) -> str:
        view = self._view
        assert view is not None
        moment, community, goal = part
        if goal == BLOCK:
            text = f"{view.moments[moment]}: {self._called(moment, community)}, "
            text += counted(int(view.sizes[moment][community]), "annotator") + self._rates(moment, community)
            return text + "".join(f"; {words}" for words in self._events_of(moment, community))
        annotators = counted(int(view.flows[moment][community, goal]), "annotator")
        start, end = self._called(moment, community), self._called(moment + 1, goal)
        when = f"{view.moments[moment]}, then {view.moments[moment + 1]}"
        if self._number(moment, community) == self._number(moment + 1, goal):
            return f"{when}: {annotators} stay in {end}"
        return f"{when}: {annotators} from {start} to {end}"

    def table(self) -> PlotTable:
        view = self._view
        assert view is not None
        bands = [
            (moment, community, goal, int(view.flows[moment][community, goal]))
            for moment in range(len(view.flows))
            for community, goal in np.argwhere(view.flows[moment]).tolist()
        ]
        return PlotTable.of(
            {
                "from": [view.moments[moment] for moment, *_ in bands],
                "community": [self._called(moment, community) for moment, community, *_ in bands],
                "to": [view.moments[moment + 1] for moment, *_ in bands],
                "other community": [self._called(moment + 1, goal) for moment, _, goal, _ in bands],
                "annotators": [annotators for *_, annotators in bands],
            }
        )

    def _number(self, moment: int, community: int) -> int:
        assert self._view is not None
        numbers = self._view.numbers[moment]
        return int(numbers[community]) if community < len(numbers) else -1

    def _called(self, moment: int, community: int) -> str:
        assert self._view is not None
        number = self._number(moment, community)
        if number < 0:
            return "no community"
        plain, name = f"community {number + 1}", self._view.names[number]
        return plain if name == plain else f"{plain}, {name}"

    def _rates(self, moment: int, community: int) -> str:
        view = self._view
        assert view is not None
        if view.prototypes is None or community == len(view.numbers[moment]):
            return ""
        matrix = view.prototypes[moment][community]
        if matrix.size > MAX_RATES:
            return ""
        rows = zip(view.classes, matrix, strict=True)
        return "".join(
            f"; true {name}: "
            + ", ".join(f"{output} {rate:.2f}" for output, rate in zip(view.outputs, row, strict=True))
            for name, row in rows
        )

    def _events_of(self, moment: int, community: int) -> list[str]:
        assert self._view is not None
        number = self._number(moment, community)
        return [
            event.text
            for event in self._view.events
            if event.number == number and event.moment - event.leaves == moment
        ]

    def draw(self, painter: QPainter) -> None:
        if self._view is None:
            return
        self.paint_still(painter, self._draw_all)
        if self.pointed is not None and self.placement is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.current().text), 1.5))
            painter.drawPath(self.placement.path(self.pointed))

    def _draw_all(self, painter: QPainter) -> None:
        placement, view = self.placement, self._view
        assert placement is not None
        assert view is not None
        palette = theme.current()
        painter.setFont(theme.font(theme.CAPTION))
        for moment, (left, width) in enumerate(placement.columns):
            paint_text(painter, QRectF(left, 0, width, HEAD - 4), view.moments[moment], palette.second)
        painter.setPen(Qt.PenStyle.NoPen)
        for part in placement.bands:
            painter.setBrush(self._band_colour(part))
            painter.drawPath(placement.path(part))
        for block in placement.blocks.values():
            self._draw_block(painter, block)

    def _band_colour(self, part: Part) -> QColor:
        moment, community, goal = part
        start, end = self._number(moment, community), self._number(moment + 1, goal)
        colour = QColor(theme.current().third if start < 0 else community_colour(start))
        lit = self._selected is None or self._selected in (start, end)
        colour.setAlpha(FAINT if not lit or start < 0 or end < 0 else BAND)
        return colour

    def _draw_block(self, painter: QPainter, block: Block) -> None:
        view, palette, box = self._view, theme.current(), block.box
        assert view is not None
        painter.setOpacity(1.0 if self._selected is None or block.number == self._selected else 0.3)
        hue = QColor(palette.third if block.number < 0 else community_colour(block.number))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_ground(palette, hue.name()))
        painter.drawRoundedRect(box, 4, 4)
        painter.fillRect(QRectF(box.left(), box.top(), STRIP, box.height()), hue)
        for event in view.events:
            if event.number == block.number and event.moment - event.leaves == block.moment:
                x = box.right() if event.leaves else box.left()
                painter.fillRect(QRectF(x - 2, box.top() - 2, 4, box.height() + 4), QColor(palette.text))
        self._write(painter, block)
        painter.setOpacity(1.0)

    def _write(self, painter: QPainter, block: Block) -> None:
        """Draw number and size on a block, below them its name, then its matrix, if they fit."""
        view, palette = self._view, theme.current()
        assert view is not None
        inner = block.box.adjusted(STRIP + PAD, 0, -PAD, 0)
        if inner.height() < MIN_LINE:
            return
        line = QRectF(inner.left(), inner.top() + 1, inner.width(), min(LINE, inner.height() - 1))
        size = f"{int(view.sizes[block.moment][block.community]):,}"
        name = "none" if block.number < 0 else f"{block.number + 1}"
        ink = palette.second if block.number < 0 else community_text_colour(block.number).name()
        painter.setFont(theme.font(theme.CAPTION))
        paint_text(painter, line, size, palette.second, side=Qt.AlignmentFlag.AlignRight)
        room = inner.width() - QFontMetrics(painter.font()).horizontalAdvance(size) - 4
        painter.setFont(theme.font(theme.CAPTION, bold=True))
        paint_text(painter, QRectF(line.left(), line.top(), room, line.height()), name, ink)
        if block.number < 0:
            return
        painter.setFont(theme.font(theme.CAPTION))
        remaining = inner.bottom() - 3
        matrix = MIN_MATRIX if view.prototypes is not None else 0.0
        for words in self._name(block, int((remaining - line.bottom() - matrix) / LINE)):
            line.translate(0, LINE - 1)
            paint_text(painter, line, words, ink)
        left = QRectF(inner.left(), line.bottom() + 2, inner.width(), remaining - line.bottom() - 2)
        if view.prototypes is not None and left.height() >= MIN_MATRIX - 2:
            paint_rates(painter, left, view.prototypes[block.moment][block.community])

    def _name(self, block: Block, lines: int) -> list[str]:
        """Return a community's name in one or two lines; the last one may be too long."""
        assert self._view is not None
        name = self._view.names[block.number]
        room = block.box.width() - STRIP - 2 * PAD
        if name == f"community {block.number + 1}" or block.box.height() < 2 * LINE:
            return []
        metrics = QFontMetrics(theme.font(theme.CAPTION))
        return [name] if lines < 2 else in_two_lines(name, metrics, room)


@lru_cache(maxsize=64)
def _ground(palette: Theme, hue: str) -> QColor:
    return mixed(QColor(palette.surface), QColor(hue), TINT)
