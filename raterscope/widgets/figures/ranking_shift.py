"""The ranking before and after: two rows of items, and a line from each one's place to its other."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QStackedWidget, QToolButton, QVBoxLayout, QWidget

from raterscope.figures.table import PlotTable
from raterscope.text.numbers import count
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.figures.ranking_layout import RankingView
from raterscope.widgets.figures.ranking_rows import RankingRows
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["RankingShift"]

TITLE, BRIEF = "Ranking, before and after", "Ranking"
NOTHING = "Press Fuse (F5) to see the ranking without and with the biases corrected."
MODES = {
    "cards": ("ranks", "Items by their rank"),
    "intervals": ("intervals", "Items by their rank, with their scores and 95 % intervals"),
}


class RankingShift(QWidget):
    """The rows with what stands above them: which item is chosen, how many swap, how they are drawn.

    Signals
    -------
    item_chosen : int
    pair_chosen : int, int
        The item chosen before and the one that was added, or the two whose lines cross.
    picture_wanted : int
        An item in sight whose picture is not here; answer with `set_picture`.
    """

    item_chosen = Signal(int)
    pair_chosen = Signal(int, int)
    picture_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Ranking, before and after")
        self.header = Header(TITLE, brief=BRIEF)
        self.next = QToolButton()
        self.next.setText("next swap")
        self.next.setToolTip("Go to the next item that swaps (N)")
        self.next.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        set_lengths(self.next, height=24)
        theme.set_role(self.next, "link")
        self.modes = ModeSwitch(MODES)
        self.header.row.addWidget(self.next)
        self.header.row.addWidget(self.modes)
        self.figure = RankingRows()
        self.menu = FigureMenu(self, self.figure)
        self._pages = QStackedWidget()
        nothing = plain_label(NOTHING, "second", wrap=True)
        nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(nothing)
        self._pages.addWidget(self.figure)
        self.setFocusProxy(self.figure)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 4)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addWidget(self._pages, 1)
        self.modes.chosen.connect(self._on_mode)
        self.next.clicked.connect(self.figure.go_to_next_swap)
        self.figure.item_chosen.connect(self._say_chosen)
        self.figure.pair_chosen.connect(self._say_chosen)
        self.figure.item_chosen.connect(self.item_chosen)
        self.figure.pair_chosen.connect(self.pair_chosen)
        self.figure.pictures.wanted.connect(self.picture_wanted)
        self.show_ranking(None)

    def show_ranking(self, view: RankingView | None) -> None:
        """Show items, or that there is no ranking yet. Pictures, and who is selected, stay."""
        self.figure.show_ranking(view)
        self._pages.setCurrentIndex(int(view is not None))
        swaps = 0 if view is None else int(view.swapped.sum())
        self.modes.setVisible(view is not None)
        self.next.setVisible(swaps > 0)
        told = f"{count(swaps, 'item')} swap" if swaps else "no item swaps"
        left_out = 0 if view is None else int((view.rank_before == 0).sum())
        told += f", {left_out:,} never compared" if left_out else ""
        self.header.set_aside("" if view is None else told)
        self._say_chosen()

    def select(self, *items: int) -> None:
        """Select an item, or a pair, without a signal; none of them selects nothing."""
        self.figure.select(*items)
        self._say_chosen()

    def set_picture(self, item: int, picture: QImage | None) -> None:
        """Give the picture that was asked for; None says that there is none."""
        self.figure.pictures.keep(item, picture)

    def forget_pictures(self) -> None:
        """Drop all pictures: other items bear the numbers now."""
        self.figure.pictures.forget()

    def heading(self) -> tuple[str, str]:
        """Give the title and the word beside it."""
        return self.header.words()

    def picture_size(self) -> QSize:
        """Give how large the rows are, those out of sight too, up to `ranking_rows.WIDEST`."""
        return self.figure.whole()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint all of the rows; of very long ones, from what is in sight on."""
        size = self.picture_size()
        painter.setClipRect(0, 0, size.width(), size.height())
        self.figure.paint_whole(painter)

    def table(self) -> PlotTable:
        """Give a row an item that has a rank, the best before first."""
        view = self.figure.view
        assert view is not None
        order = view.in_order()
        ends = {
            f"{name} {end}": getattr(view, f"{name}_interval")[row, order]
            for name in ("before", "after")
            for row, end in enumerate(("low", "high"))
        }
        return PlotTable.of(
            {
                "item": [view.names[item] for item in order.tolist()],
                "rank before": view.rank_before[order],
                "rank after": view.rank_after[order],
                "score before": view.before[order],
                "score after": view.after[order],
                **{f"score {name}": values for name, values in ends.items()},
            }
        )

    def _say_chosen(self) -> None:
        self.header.set_title(TITLE, " and ".join(self.figure.chosen_names()), brief=BRIEF)

    def _on_mode(self, mode: str) -> None:
        self.figure.set_intervals(mode == "intervals")
