"""Image on screen: its layers on the canvas, context menu of spots and shapes, log of viewed spots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.clicks.result import Clustering
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.review import LONG_ENOUGH, View, is_bookmarked
from raterscope.app.session import while_shown
from raterscope.app.study import Study
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.batch_review import BatchReview, ListedSpot
from raterscope.app.workspaces.clicks.image_display import ImageDisplay
from raterscope.app.workspaces.clicks.measurements import Measurements
from raterscope.app.workspaces.clicks.scene import Crops, Image, Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import Spot
from raterscope.app.workspaces.comments import Comments
from raterscope.app.workspaces.navigation import UNREADABLE, PixelLoader
from raterscope.widgets.canvas.viewport import ClickMarks
from raterscope.widgets.parts import Menu, without_checked


class CanvasContent(ClicksPart):
    """Contents of the canvas: the scene, its pixels, and the state of its spots."""

    def __init__(
        self,
        core: ClicksCore,
        reviewing: SpotReview,
        loader: PixelLoader,
        display: ImageDisplay,
        crops: Crops,
    ) -> None:
        super().__init__(core)
        self._canvas, self._reviewing, self._crops = core.screen.canvas, reviewing, crops
        display.rendered.connect(self._on_pixels)
        loader.loading.connect(self._canvas.set_waiting)
        loader.refused.connect(lambda _: self._canvas.set_waiting(UNREADABLE))
        reviewing.spots_changed.connect(self._on_spots)
        reviewing.selected.connect(self._on_selected)

    def clear(self) -> None:
        """Show no image."""
        self._crops.set_image(None)
        self._canvas.clear_image()
        self._canvas.set_pixel_size(None)
        self._canvas.layers.set_clicks(ClickMarks.none())
        self.show_draft(None)

    def begin(self, scene: Scene) -> None:
        """Clear drafts, and the pixels of another image, before a scene is shown."""
        previous = self._session.previous
        if previous is None or scene.image.id != previous.image.id:
            self._crops.set_image(None)
            self._canvas.set_image(None, scene.image.extent)
        self._canvas.set_pixel_size(scene.image.pixel_size)
        self.show_draft(None)

    @while_shown
    def show(self) -> None:
        """Draw the clicks and the ground truth of the scene, or state that its image is missing."""
        scene = self._session.scene
        self._canvas.layers.set_truth(scene.truth[:, 0], scene.truth[:, 1])
        if scene.problem is not None and not self._crops.has_image:
            self._canvas.set_waiting(scene.problem.label)
        self.show_clicks()

    @while_shown
    def show_clicks(self) -> None:
        """Draw the clicks; in blind mode only those on decided spots."""
        session, spots = self._session, self._reviewing.spots
        marks = view.click_marks(session.scene, self._document.numbers, spots, blind=session.blind)
        self._canvas.layers.set_clicks(marks)

    def show_draft(self, clustering: Clustering | None) -> None:
        """Draw the clusters of a partial result, or none."""
        if clustering is None:
            self._canvas.set_partial(None, None)
        else:
            self._canvas.set_partial(clustering.mean, clustering.covariance)

    @while_shown
    def _on_pixels(self, image: int, pixels: Image) -> None:
        scene = self._session.scene
        if scene.image.id == image:
            is_first = not self._crops.has_image
            self._canvas.set_image(pixels, scene.image.extent, pixel_size=scene.image.pixel_size)
            self._crops.set_image(pixels)
            if is_first:  # another plane or contrast keeps the view
                self._on_selected(self._reviewing.current)

    def _on_spots(self) -> None:
        spots, blind = self._reviewing.spots, self._reviewing.blind
        self._canvas.set_detections(view.detection_marks(spots, self._core.bookmarks, blind=blind))
        if blind:  # decided spots are uncovered
            self.show_clicks()

    def _on_selected(self, index: int | None) -> None:
        spot = self._reviewing.spot
        self._canvas.select(index)
        if spot is not None:
            self._canvas.look_at(spot.x, spot.y, view.radius_of(spot))


Key = tuple[int, int | None, int]
MAX_CLASSES = 20
"""Maximum number of classes in the menu of a spot."""


@dataclass(frozen=True, eq=False)
class _Selected:
    """Selected spot with its study, image and run."""

    study: object
    image: int
    run: int | None
    spot: Spot

    @property
    def key(self) -> tuple[object, int, int | None, int]:
        return self.study, self.image, self.run, self.spot.number


class ViewLog(QObject):
    """Record of spots that the expert viewed, on the canvas or in the grid, and left undecided.

    `canvas`: while it is hidden, its spots are not viewed. `crops`: without loaded pixels no spot is viewed.
    """

    def __init__(
        self,
        document: Document,
        canvas: QWidget,
        crops: Crops,
        reviewing: SpotReview,
        batch_review: BatchReview,
    ) -> None:
        super().__init__(reviewing)
        self._document, self._canvas, self._crops = document, canvas, crops
        self._reviewing, self._batch_review = reviewing, batch_review
        self.clock = time.monotonic  # returns seconds
        self._selected: _Selected | None = None
        self._seconds = 0.0
        self._since: float | None = None
        """When the selected spot became visible; None while it is hidden."""
        self._listed_since = 0.0
        self._recorded: set[Key] = set()
        """Spots of the grid that are recorded already, because they stay visible over several decisions."""
        reviewing.selected.connect(self._on_selected)
        crops.arrived.connect(self._follow_visible)
        canvas.installEventFilter(self)
        batch_review.listed_elsewhere.connect(self._on_listed)
        batch_review.left_open.connect(self._on_left_open)
        document.replaced.connect(self._recorded.clear)

    def eventFilter(self, _canvas: QObject, event: QEvent) -> bool:
        """Start or stop the clock when the canvas is shown or hidden."""
        if event.type() in (QEvent.Type.Show, QEvent.Type.Hide):
            self._follow_visible()
        return False

    def _on_selected(self, _index: int | None) -> None:
        current = self._now_selected()
        previous = self._selected
        if previous is not None and (current is None or current.key != previous.key):
            self._stop()
            self._leave(previous, self._seconds)
            self._seconds = 0.0
        self._selected = current
        self._follow_visible()

    def _now_selected(self) -> _Selected | None:
        """Return the selected spot if it is undecided and can be decided."""
        session, spot, contents = self._reviewing.session, self._reviewing.spot, self._document.contents
        if spot is None or contents is None or session.scene.replayed:
            return None
        if spot.decided or spot.skipped:
            return None
        scene = session.scene
        return _Selected(contents.path, scene.image.id, None if scene.run is None else scene.run.id, spot)

    def _follow_visible(self) -> None:
        if self._selected is not None and self._canvas.isVisible() and self._crops.has_image:
            self._since = self.clock() if self._since is None else self._since
        else:
            self._stop()

    def _stop(self) -> None:
        if self._since is not None:
            self._seconds += self.clock() - self._since
            self._since = None

    def _leave(self, selected: _Selected, seconds: float) -> None:
        contents = self._document.contents
        if contents is None or contents.path != selected.study or seconds < LONG_ENOUGH:
            return
        spot = selected.spot
        if any(
            other.number == spot.number and (other.decided or other.skipped)
            for other in self._spots(selected)
        ):
            return
        view = View(
            image=selected.image,
            x=spot.x,
            y=spot.y,
            number=spot.number,
            run=selected.run,
            seconds=round(seconds, 3),
        )
        self._record([view])

    def _spots(self, selected: _Selected) -> Sequence[Spot]:
        """Return the current spots of the image if it is still on screen."""
        session = self._reviewing.session
        return self._reviewing.spots if session.shown and session.scene.image.id == selected.image else ()

    def _on_listed(self) -> None:
        self._listed_since = self.clock()

    def _on_left_open(self, undecided: Sequence[ListedSpot]) -> None:
        """Record the spots of the grid that were visible while others were decided."""
        seconds = self.clock() - self._listed_since
        if seconds < LONG_ENOUGH:
            return
        views = []
        for item in undecided:
            key = (item.image, item.run, item.spot.number)
            if key not in self._recorded and not (item.spot.decided or item.spot.skipped):
                self._recorded.add(key)
                views.append(
                    View(
                        image=item.image, x=item.spot.x, y=item.spot.y, number=item.spot.number, run=item.run,
                        how="listed", seconds=round(seconds, 3),
                    )
                )  # fmt: skip
        self._record(views)

    def _record(self, views: Sequence[View]) -> None:
        if views:
            self._document.ask("Recording what was viewed", partial(_write, views))


def _write(views: Sequence[View], study: Study, watch: Watch) -> None:
    watch(0.0, "writing")
    study.views.record(views)


Entry = tuple[str, Callable[[], object]]


class SpotMenu(ClicksPart):
    """Context menu of a spot or shape on the canvas or in the grid, by right button or menu key."""

    def __init__(
        self,
        core: ClicksCore,
        reviewing: SpotReview,
        batch_review: BatchReview,
        measuring: Measurements,
        comments: Comments,
        decide: Callable[..., None],
    ) -> None:
        super().__init__(core)
        self._reviewing = reviewing
        self._batch_review = batch_review
        self._measuring = measuring
        self._comments = comments
        self._decide = decide
        core.screen.canvas.installEventFilter(self)
        core.screen.grid.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        core.screen.grid.view.customContextMenuRequested.connect(self._on_grid)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the canvas's menu: for the object under the mouse, or by key for the selected one."""
        if watched is not self._screen.canvas or not isinstance(event, QContextMenuEvent):
            return super().eventFilter(watched, event)
        self._on_canvas(event.pos(), by_key=event.reason() == QContextMenuEvent.Reason.Keyboard)
        return True

    def _on_canvas(self, position: QPoint, *, by_key: bool) -> None:
        canvas, reviewing = self._screen.canvas, self._reviewing
        if not reviewing.session.shown:
            return
        shape = None if by_key else self._measuring.choose_at(QPointF(position))
        if shape is not None:
            entries: Sequence[Entry] = (
                ("Delete", partial(self._measuring.delete, shape.key)),
                ("Copy the measurement", partial(_copy, shape.value)),
            )
            self._open(f"{shape.title.capitalize()}, {shape.value}", entries, canvas.mapToGlobal(position))
            return
        if by_key and reviewing.spot is not None:
            screen_position = canvas.viewport.to_screen(reviewing.spot.x, reviewing.spot.y)
            position = QPoint(round(screen_position[0]), round(screen_position[1]))
        x, y = canvas.viewport.to_image(position.x(), position.y())
        if not by_key:
            under = canvas.spot_at(x, y)
            if under != reviewing.current:
                reviewing.select(under)
        size, spot = reviewing.session.scene.image.pixel_size, reviewing.spot
        if spot is None:
            text = view.place_in_words(x, y, size)
            adding = [("Add a spot here", partial(reviewing.add, x, y))] if canvas.is_inside(x, y) else []
            entries = (*adding, ("Copy the position", partial(_copy, text)))
            self._open(f"{reviewing.session.scene.image.name}, {text}", entries, canvas.mapToGlobal(position))
            return
        text = view.place_in_words(spot.x, spot.y, size)
        entries = (
            *self._verdicts(),
            ("Move", partial(canvas.set_mode, "move")),
            (
                "Remove the bookmark"
                if is_bookmarked(self._core.bookmarks, reviewing.subject)
                else "Bookmark",
                self._comments.toggle_bookmark,
            ),
            ("Comment", self._comments.begin),
            ("Show neighbours", partial(self._bring, self._screen.evidence.about.bring_neighbours)),
            ("Show other runs", partial(self._bring, self._screen.evidence.about.bring_runs)),
            ("Copy the position", partial(_copy, text)),
        )
        self._open(f"Spot {spot.number}, {text}", entries, canvas.mapToGlobal(position))

    def _bring(self, show: Callable[[], object]) -> None:
        """Show a tab of the evidence, also if it is folded."""
        self._screen.unfold(self._screen.upper)
        show()

    def _on_grid(self, position: QPoint) -> None:
        grid = self._screen.grid
        index = grid.view.indexAt(position)
        if index.isValid() and not grid.view.selectionModel().isSelected(index):
            grid.view.setCurrentIndex(index)
        chosen = grid.selected
        number = grid.number_at(index) if index.isValid() else next(iter(chosen), None)
        item = None if number is None else self._batch_review.listed(number)
        if item is None:
            return
        count = len(chosen)
        title = f"{count:,} spots" if count > 1 else f"Spot {item.spot.number}"
        entries: Sequence[Entry] = (
            *self._verdicts(),
            ("Show on the image", partial(grid.opened.emit, number)),
            (
                "Copy the position" if count == 1 else "Copy the positions",
                partial(_copy, self._batch_review.positions_text(chosen)),
            ),
        )
        self._open(title, entries, grid.view.viewport().mapToGlobal(position), picture=False)

    def _verdicts(self) -> Sequence[Entry]:
        verdicts = [(verb.capitalize(), partial(self._decide, verb)) for verb in ("accept", "reject", "skip")]
        names = self._reviewing.class_names[:MAX_CLASSES]
        as_class = [(f"Accept as {name}", partial(self._decide, "accept", name)) for name in names]
        return [*verdicts[:1], *as_class, *verdicts[1:]]

    def _open(self, title: str, entries: Sequence[Entry], position: QPoint, *, picture: bool = True) -> None:
        menu = Menu(self._screen)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(title.replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        for words, act in entries:
            menu.addAction(words).triggered.connect(without_checked(act))
        if picture:
            menu.addSeparator()
            menu.addActions(self._screen.canvas.menu.menu.actions())
        menu.popup(position)


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
