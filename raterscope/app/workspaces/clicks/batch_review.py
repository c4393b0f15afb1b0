"""Batch review: many spots of one kind, shown as crops in a grid, and decided at once."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from raterscope.algorithms.image_display import Displays
from raterscope.algorithms.progress import Watch
from raterscope.app import review
from raterscope.app.document import Document
from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import escape_formula
from raterscope.app.formats.pyramids import crop_of
from raterscope.app.jobs import Jobs
from raterscope.app.review import Decision, ReviewState, SpotOf, SpotsSubject, SpotSubject
from raterscope.app.session import LatestTask
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.scene import Crop, Scene, load_pixels
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import ImageResult, Spot, spots_of
from raterscope.app.workspaces.navigation import locate_image
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.widgets.canvas.tiles import to_picture
from raterscope.widgets.panels.card_panels import DOUBTFUL_CLASS, OF_CLASS
from raterscope.widgets.panels.cards import Card
from raterscope.widgets.panels.evidence_panel import TONES, WORDS

KEPT_BYTES = 64 * 1024**2
MIN_KEPT = 200
"""Minimum number of cached crops, whatever their size."""
FAR = 1.25
"""Factor of change of the best scale from which all crops are cut again."""
AT_LEAST = 12.0


@dataclass(frozen=True, eq=False)
class SpotPosition:
    """Position of a spot on its image."""

    image: ImageEntry
    x: float
    y: float


class CropCache(QObject):
    """Cache that cuts requested crops, and all crops of an image in memory."""

    ready = Signal(int, object)  # a crop; None if the image is missing, a null image if it is damaged

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._positions: Mapping[int, SpotPosition] = {}
        self._crops: OrderedDict[int, Crop | None] = OrderedDict()
        self._requested: list[int] = []
        self._task = LatestTask()
        self._size: float | None = None
        self.half = AT_LEAST
        """Half the width of a crop in pixels, or in pixels of `_size` micrometres."""

    def forget(self) -> None:
        """Drop everything, because another study is open."""
        self._task.cancel()
        self._positions = {}
        self._crops.clear()
        self._requested.clear()

    def set_scale(self, radii: Sequence[float], size: float | None) -> bool:
        """Choose a width that fits most spots; return whether all crops must be cut again.

        `radii`: best half width of each spot. `size`: common pixel size in micrometres; None to use the
        pixels of each image.
        """
        half = max(AT_LEAST, math.ceil(float(np.median(radii)))) if len(radii) else self.half
        if size == self._size and max(half, self.half) / min(half, self.half) <= FAR and self._crops:
            return False
        self.half, self._size = half, size
        positions = self._positions
        self.forget()
        self._positions = positions
        return True

    def set_places(self, positions: Mapping[int, SpotPosition]) -> None:
        """Set the positions of the spots by number."""
        self._positions = positions

    def get(self, number: int) -> Crop | None:
        """Return a crop if it is cached."""
        return self._crops.get(number)

    def want(self, number: int) -> None:
        """Request a crop; the signal `ready` delivers it."""
        if number in self._crops:
            self._crops.move_to_end(number)
            self._deliver(number)
        elif number in self._positions:
            self._requested.append(number)
            self._cut_on()

    def _cut_on(self) -> None:
        while self._requested and (
            self._requested[-1] not in self._positions or self._requested[-1] in self._crops
        ):
            self._requested.pop()
        if self._task.busy or not self._requested:
            return
        # The latest requests come first, because they are on screen now.
        image = self._positions[self._requested[-1]].image
        on_image = {
            number: position for number, position in self._positions.items() if position.image.id == image.id
        }
        job = self._document.ask("Looking for an image", partial(locate_image, image))
        self._task.follow(
            job,
            partial(self._on_located, image, on_image),
            stopped=partial(self._on_cut, dict.fromkeys(on_image)),
        )

    def _on_located(self, image: ImageEntry, on_image: Mapping[int, SpotPosition], path: Path | None) -> None:
        if path is None:
            self._on_cut(dict.fromkeys(on_image))
            return
        half = self.half * (self._size / image.pixel_size if self._size and image.pixel_size else 1.0)
        requested = [number for number in self._requested if number in on_image]
        work = partial(
            _cut,
            image,
            path,
            {number: (position.x, position.y) for number, position in on_image.items()},
            requested,
            half,
            dict(self._document.displays),
        )
        job = self._jobs.start("Cutting out spots", work, quiet=True)
        self._task.follow(job, self._on_cut, stopped=partial(self._on_cut, dict.fromkeys(on_image)))

    def _on_cut(self, crops: Mapping[int, Crop | None]) -> None:
        requested = set(self._requested)
        for number, crop in crops.items():
            self._crops[number] = crop
            self._crops.move_to_end(number)
            if number in requested:
                self._deliver(number)
        while len(self._crops) > max(MIN_KEPT, KEPT_BYTES / (12 * self.half**2)):
            self._crops.popitem(last=False)
        self._requested = [number for number in self._requested if number not in crops]
        self._cut_on()

    def _deliver(self, number: int) -> None:
        crop = self._crops[number]
        self.ready.emit(number, None if crop is None else to_picture(crop) if crop.size else QImage())


def _cut(
    entry: ImageEntry,
    path: Path,
    positions: Mapping[int, tuple[float, float]],
    requested: Sequence[int],
    half: float,
    displays: Displays,
    watch: Watch,
) -> dict[int, Crop | None]:
    """Cut crops out of an image: all if it is in memory, else only the requested ones."""
    try:
        image = load_pixels(lambda: displays, entry, path, watch).image
    except InputError:
        return dict.fromkeys(positions, np.empty((0, 0, 3), dtype=np.uint8))
    numbers = list(positions) if isinstance(image, np.ndarray) else requested
    return {number: crop_of(image, *positions[number], half) for number in numbers}


@dataclass(frozen=True, eq=False)
class ListedSpot:
    """A spot of the list, with its image and run.

    `number` identifies it in the grid.
    """

    image: int
    run: int | None
    spot: Spot
    number: int = -1


class BatchReview(ClicksPart):
    """Controller of the grid of spots: results of the queue in, decisions out."""

    looked_at = Signal(object)  # the current spot of the grid
    opened = Signal(int, object)  # image and spot to show on the canvas
    message = Signal(str)
    listed_elsewhere = Signal()  # other spots are visible: listed again or scrolled
    left_open = Signal(object)  # spots that were visible and undecided while others were decided

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, reviewing: SpotReview) -> None:
        super().__init__(core)
        self._grid, self._review_queue, self._reviewing = core.screen.grid, review_queue, reviewing
        self._listed: dict[int, ListedSpot] = {}
        self._number_of: dict[tuple[int, int | None, int], int] = {}
        self._read: dict[int, _Read] = {}
        self._task = LatestTask()
        self._writing = False
        self._resets = True
        self.cache = CropCache(core.document, core.jobs, self)
        self.cache.ready.connect(self._on_ready)
        core.session.scene_changed.connect(self._on_scene)
        review_queue.all_read.connect(self._on_read)
        self._grid.pictures.picture_requested.connect(self.cache.want)
        self._grid.filter_changed.connect(self.list_again)
        self._grid.chosen.connect(self._on_chosen)
        self._grid.opened.connect(self._on_opened)
        self._grid.view.verticalScrollBar().valueChanged.connect(self.listed_elsewhere)

    def forget(self) -> None:
        """Drop everything, because another study is open."""
        self._task.cancel()
        self._listed, self._number_of, self._read = {}, {}, {}
        self._writing = False
        self.cache.forget()
        self._grid.pictures.forget()

    def cut_again(self) -> None:
        """Cut all crops again, because the display of the images changed."""
        self.cache.forget()
        self._grid.pictures.forget()
        if self._screen.grid_shown:
            self.list_again()

    def _on_scene(self, scene: Scene) -> None:
        classes = None if scene.fusion is None else scene.fusion.classes
        self._grid.set_classes(() if classes is None else classes.names)

    def _on_read(self) -> None:
        """List the spots of newly read images."""
        if self._screen.grid_shown and self._grid.everywhere:
            self.refresh()

    def list_again(self) -> None:
        """List the spots of the chosen kind, from the first spot."""
        self._resets = True
        self.listed_elsewhere.emit()
        self.refresh()

    def refresh(self) -> None:
        """List the spots of the chosen kind again."""
        session = self._reviewing.session
        self._task.cancel()
        if not self._grid.everywhere:
            listed = self._here(session.scene) if session.shown else []
            self._show(_in_order(listed, self._grid.kind, blind=session.blind))
            return
        results, state = self._review_queue.results, self._document.review
        work = partial(_everywhere, results, self._read, state, self._grid.kind, self._reviewing.blind)
        job = self._jobs.start("Listing spots", work, quiet=True)
        self._task.follow(job, self._on_listed)

    def _here(self, scene: Scene) -> list[ListedSpot]:
        run = None if scene.run is None else scene.run.id
        spots = [spot for spot in self._reviewing.spots if _is(spot, self._grid.kind)]
        return [ListedSpot(scene.image.id, run, spot) for spot in spots]

    def decide(self, verb: str, label: str = "") -> None:
        """Decide all selected spots at once, optionally with their class."""
        chosen = [self._listed[number] for number in self._grid.selected if number in self._listed]
        if not chosen:
            self.message.emit("Select spots first: by a click, with Ctrl or Shift, or all with Ctrl+A.")
        # The previous decision may not be saved yet.
        if not chosen or self._writing or self._reviewing.is_past():
            return
        self._writing = True
        decision = _decision(verb, chosen, label, blind=self._reviewing.blind)
        self._document.record(decision).ended.connect(self._on_written)
        undecided = set(self._grid.visible_items) - set(self._grid.selected)
        self.left_open.emit([self._listed[number] for number in sorted(undecided) if number in self._listed])

    def listed(self, number: int) -> ListedSpot | None:
        """Return a spot by its number in the grid."""
        return self._listed.get(number)

    def positions_text(self, numbers: Sequence[int]) -> str:
        """Write the positions of spots, one per line, for pasting into a table."""
        contents = self._document.contents
        listed = [self._listed[number] for number in numbers if number in self._listed]
        names = {entry.id: entry.name for entry in contents.images} if contents else {}
        rows = [
            f"{escape_formula(names.get(item.image, ''))}\t{item.spot.number}"
            f"\t{item.spot.x:.1f}\t{item.spot.y:.1f}"
            for item in listed
        ]
        return "\n".join(["image\tspot\tx (px)\ty (px)", *rows])

    def _on_written(self) -> None:
        self._writing = False

    def _on_listed(self, answer: tuple[dict[int, _Read], list[ListedSpot]]) -> None:
        self._read = answer[0]
        self._show(answer[1])

    def _show(self, listed: Sequence[ListedSpot]) -> None:
        contents = self._document.contents
        if contents is None:
            return
        wanted_images = {item.image for item in listed}
        images = {
            entry.id: replace(entry, pixel_size=contents.pixel_size(entry))
            for entry in contents.images
            if entry.id in wanted_images
        }
        listed = [item for item in listed if item.image in images]
        self._listed = {
            number: replace(item, number=number) for item in listed for number in [self._number(item)]
        }
        numbers = list(self._listed)
        blind = self._reviewing.blind
        size = view.common_size([images[item.image].pixel_size for item in listed])
        if self.cache.set_scale([view.radius_of(item.spot) for item in listed], size):
            self._grid.pictures.forget()
        self.cache.set_places(
            {
                number: SpotPosition(images[item.image], item.spot.x, item.spot.y)
                for number, item in self._listed.items()
            }
        )
        cards = _Cards(np.array(numbers, dtype=np.int64), self._listed, images, self._grid.everywhere, blind)
        self._grid.show_spots(cards, view.length(2 * self.cache.half, size), reset=self._resets)
        self._resets = False

    def _number(self, item: ListedSpot) -> int:
        key = (item.image, item.run, item.spot.number)
        return self._number_of.setdefault(key, len(self._number_of))

    def _on_ready(self, number: int, picture: QImage | None) -> None:
        self._grid.pictures.keep(number, picture)
        session, item = self._reviewing.session, self._listed.get(number)
        elsewhere = item is not None and not (session.shown and session.scene.image.id == item.image)
        if elsewhere and number == self._grid.current:
            self.looked_at.emit(item)

    def _on_chosen(self, number: int) -> None:
        if number in self._listed:
            self.looked_at.emit(self._listed[number])

    def _on_opened(self, number: int) -> None:
        item = self._listed.get(number)
        if item is not None:
            self.opened.emit(item.image, item.spot)


@dataclass(frozen=True, eq=False)
class _Read:
    """Spots of an image, and the result and decisions that they derive from."""

    known: ImageResult
    decided: list[review.Spot]
    spots: tuple[Spot, ...]


def _everywhere(
    results: Mapping[int, ImageResult], read: Mapping[int, _Read], state: ReviewState, kind: str, blind: bool,
    watch: Watch,
) -> tuple[dict[int, _Read], list[ListedSpot]]:  # fmt: skip
    """List the spots of a kind on all images with results; spots of unchanged images are reused."""
    read_now: dict[int, _Read] = {}
    listed: list[ListedSpot] = []
    for done, (image, result) in enumerate(results.items()):
        watch(done / len(results), "listing spots")
        image_spots, decided = read.get(image), state.spots(image)
        if image_spots is None or image_spots.known is not result or image_spots.decided != decided:
            image_spots = _Read(result, decided, spots_of(result.fusion, len(result.annotators), decided))
        read_now[image] = image_spots
        listed.extend(ListedSpot(image, result.run, spot) for spot in image_spots.spots if _is(spot, kind))
    return read_now, _in_order(listed, kind, blind=blind)


def _is(spot: Spot, kind: str) -> bool:
    if kind == DOUBTFUL_CLASS:
        return spot.class_in_doubt
    if kind.startswith(OF_CLASS):
        return spot.present and spot.class_name == kind.removeprefix(OF_CLASS)
    return spot.decided if kind == "decided" else spot.state == kind


def _in_order(listed: Iterable[ListedSpot], kind: str, *, blind: bool) -> list[ListedSpot]:
    """Sort by probability, or by doubt about the class; skipped spots last. Sort by number in blind mode."""
    by_class = kind == DOUBTFUL_CLASS or kind.startswith(OF_CLASS)

    def rank(item: ListedSpot) -> tuple[float, ...]:
        if blind:
            return item.spot.skipped, item.image, item.spot.number
        if by_class:
            return item.spot.skipped, item.spot.class_share if np.isfinite(item.spot.class_share) else -1.0
        return item.spot.skipped, -item.spot.posterior if np.isfinite(item.spot.posterior) else -2.0

    return sorted(listed, key=rank)


def _decision(verb: str, chosen: Sequence[ListedSpot], label: str, *, blind: bool) -> Decision:
    first = chosen[0]
    hidden = blind and not any(item.spot.decided for item in chosen)
    if len(chosen) == 1:
        spot = first.spot
        subject = SpotSubject(x=spot.x, y=spot.y, number=spot.number, blind=hidden, label=label)
        return Decision(verb=verb, item=first.image, subject=subject, run=first.run, about=spot.decision)
    spots = tuple(
        SpotOf(
            image=item.image, x=item.spot.x, y=item.spot.y, number=item.spot.number, run=item.run,
            about=item.spot.decision,
        )
        for item in chosen
    )  # fmt: skip
    return Decision(verb=verb, item=first.image, subject=SpotsSubject(spots=spots, blind=hidden, label=label))


@dataclass(frozen=True, eq=False)
class _Cards:
    """Listed spots as cards, made on demand; in blind mode without votes and results."""

    numbers: NDArray[np.int64]
    listed: Mapping[int, ListedSpot]
    images: Mapping[int, ImageEntry]
    everywhere: bool
    blind: bool
    pictures: ClassVar[bool] = True

    def card(self, index: int) -> Card:
        """Return the card of a spot, with its votes or decision, and its posterior."""
        item, image = self._at(index)
        spot = item.spot
        title, third = f"spot {spot.number}", image.name if self.everywhere else ""
        if self.blind and not spot.decided:
            return Card(title, "skipped" if spot.skipped else "", "", third)
        state = "skipped" if spot.skipped else WORDS.get(spot.state, f"{spot.votes} of {spot.looked}")
        if spot.class_name and spot.present and not spot.skipped:
            state = (
                f"{spot.class_name}, by you" if spot.label else f"{spot.class_name} {spot.class_share:.2f}"
            )
        figure = f"{spot.posterior:.2f}" if np.isfinite(spot.posterior) else ""
        return Card(title, state, figure, third, TONES[spot.state])

    def text_of(self, index: int) -> str:
        """Describe a spot: number, image, position, state."""
        item, image = self._at(index)
        spot = item.spot
        words = [f"spot {spot.number}", image.name, view.place_in_words(spot.x, spot.y, image.pixel_size)]
        if not self.blind or spot.decided:
            words.append(WORDS.get(spot.state, spot.state))
            if np.isfinite(spot.posterior):
                words.append(f"posterior probability {spot.posterior:.2f}")
                words.append(f"{spot.votes} of {spot.looked} marked it")
            if spot.class_name:
                words.append(f"class {spot.class_name} {spot.class_share:.2f}")
        return ", ".join(words)

    def _at(self, index: int) -> tuple[ListedSpot, ImageEntry]:
        item = self.listed[int(self.numbers[index])]
        return item, self.images[item.image]
