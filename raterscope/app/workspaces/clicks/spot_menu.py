"""Context menu of a spot or a shape under the mouse, or of the selected spot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication

from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.batch_review import BatchReview
from raterscope.app.workspaces.clicks.measuring import Measuring
from raterscope.app.workspaces.clicks.reviewing import Reviewing
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.widgets.parts import Menu, without_checked

__all__ = ["SpotMenu"]

Entry = tuple[str, Callable[[], object]]


class SpotMenu(ClicksPart):
    """Opens a menu on the canvas and in the grid, by the right button or the menu key."""

    def __init__(
        self,
        core: ClicksCore,
        reviewing: Reviewing,
        many: BatchReview,
        measuring: Measuring,
        decide: Callable[[str], None],
    ) -> None:
        super().__init__(core)
        self._reviewing = reviewing
        self._many = many
        self._measuring = measuring
        self._decide = decide
        core.screen.canvas.installEventFilter(self)
        core.screen.grid.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        core.screen.grid.view.customContextMenuRequested.connect(self._on_grid)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the canvas's menu: by the mouse of what lies under it, by the key of what is selected."""
        if watched is not self._screen.canvas or not isinstance(event, QContextMenuEvent):
            return super().eventFilter(watched, event)
        self._on_canvas(event.pos(), by_key=event.reason() == QContextMenuEvent.Reason.Keyboard)
        return True

    def _on_canvas(self, place: QPoint, *, by_key: bool) -> None:
        canvas, reviewing = self._screen.canvas, self._reviewing
        if not reviewing.session.shown:
            return
        shape = None if by_key else self._measuring.choose_at(QPointF(place))
        if shape is not None:
            entries: Sequence[Entry] = (
                ("Delete", partial(self._measuring.delete, shape.key)),
                ("Copy what it measures", partial(_copy, shape.value)),
            )
            self._open(f"{shape.title.capitalize()}, {shape.value}", entries, canvas.mapToGlobal(place))
            return
        if by_key and reviewing.spot is not None:
            at = canvas.viewport.to_screen(reviewing.spot.x, reviewing.spot.y)
            place = QPoint(round(at[0]), round(at[1]))
        x, y = canvas.viewport.to_image(place.x(), place.y())
        if not by_key:
            under = canvas.spot_at(x, y)
            if under != reviewing.current:
                reviewing.select(under)
        size, spot = reviewing.session.scene.image.pixel_size, reviewing.spot
        if spot is None:
            words = view.place_in_words(x, y, size)
            entries = (
                ("Add a spot here", partial(reviewing.add, x, y)),
                ("Copy the place", partial(_copy, words)),
            )
            self._open(f"{reviewing.session.scene.image.name}, {words}", entries, canvas.mapToGlobal(place))
            return
        words = view.place_in_words(spot.x, spot.y, size)
        entries = (
            *self._verdicts(),
            ("Move", partial(canvas.set_mode, "move")),
            ("Show what lies near", self._screen.evidence.show_neighbours),
            ("Show what other runs say", self._screen.evidence.show_other_runs),
            ("Copy the place", partial(_copy, words)),
        )
        self._open(f"Spot {spot.number}, {words}", entries, canvas.mapToGlobal(place))

    def _on_grid(self, place: QPoint) -> None:
        grid = self._screen.grid
        index = grid.view.indexAt(place)
        if index.isValid() and not grid.view.selectionModel().isSelected(index):
            grid.view.setCurrentIndex(index)
        chosen = grid.selected
        number = grid.number_at(index) if index.isValid() else next(iter(chosen), None)
        one = None if number is None else self._many.listed(number)
        if one is None:
            return
        many = len(chosen)
        title = f"{many:,} spots" if many > 1 else f"Spot {one.spot.number}"
        entries: Sequence[Entry] = (
            *self._verdicts(),
            ("Show on the image", partial(grid.opened.emit, number)),
            ("Copy the place" if many == 1 else "Copy the places", partial(_copy, self._many.places(chosen))),
        )
        self._open(title, entries, grid.view.viewport().mapToGlobal(place), picture=False)

    def _verdicts(self) -> Sequence[Entry]:
        return [(verb.capitalize(), partial(self._decide, verb)) for verb in ("accept", "reject", "skip")]

    def _open(self, title: str, entries: Sequence[Entry], place: QPoint, *, picture: bool = True) -> None:
        menu = Menu(self._screen)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(title.replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        for words, act in entries:
            menu.addAction(words).triggered.connect(without_checked(act))
        if picture:
            menu.addSeparator()
            menu.addActions(self._screen.canvas.menu.menu.actions())
        menu.popup(place)


def _copy(words: str) -> None:
    QGuiApplication.clipboard().setText(words)
