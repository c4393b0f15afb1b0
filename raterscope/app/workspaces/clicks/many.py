"""Many spots of one kind at once: listed, shown as crops, settled by one decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.review import Decision, ReviewState, SpotOf, SpotsSubject, SpotSubject
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.crop_shelf import CropShelf, Place
from raterscope.app.workspaces.clicks.reviewing import Reviewing
from raterscope.app.workspaces.clicks.spots import Known, Spot, spots_of
from raterscope.app.workspaces.queueing import Queueing
from raterscope.widgets.panels.card_view import Card
from raterscope.widgets.panels.evidence_lines import TONES, WORDS
from raterscope.widgets.panels.spot_grid import SpotCards, SpotGrid

__all__ = ["Listed", "Many"]


@dataclass(frozen=True, eq=False)
class Listed:
    """A spot of the list, with its image and the run that says of it what is shown.

    `number` is what the grid knows it by.
    """

    image: int
    run: int | None
    spot: Spot
    number: int = -1


class Many(QObject):
    """Joins the grid of spots with what the queue has read and with the journal.

    Signals
    -------
    looked_at(Listed)
        The spot gone to in the grid.
    opened(int, Spot)
        Image and spot to be shown on the canvas.
    said(str)
    """

    looked_at = Signal(object)
    opened = Signal(int, object)
    said = Signal(str)

    def __init__(
        self, document: Document, jobs: Jobs, grid: SpotGrid, queueing: Queueing, reviewing: Reviewing
    ) -> None:
        super().__init__(grid)
        self._document = document
        self._jobs = jobs
        self._grid = grid
        self._queueing = queueing
        self._reviewing = reviewing
        self._listed: dict[int, Listed] = {}
        self._number_of: dict[tuple[int, int | None, int], int] = {}
        self._asked = 0
        self._writing = False
        self._anew = True
        self.shelf = CropShelf(document, jobs, self)
        self.shelf.ready.connect(self._on_ready)
        grid.picture_wanted.connect(self._on_picture_wanted)
        grid.asked.connect(self.list_anew)
        grid.chosen.connect(self._on_chosen)
        grid.opened.connect(self._on_opened)

    def forget(self) -> None:
        """Begin anew: another study."""
        self._asked += 1
        self._listed, self._number_of = {}, {}
        self._writing = False
        self.shelf.forget()
        self._grid.forget_pictures()

    def list_anew(self) -> None:
        """List the spots that are wanted, from the first on."""
        self._anew = True
        self.refresh()

    def refresh(self) -> None:
        """List the spots that are wanted as they stand now."""
        contents, scene = self._document.contents, self._reviewing.scene
        self._asked += 1
        if contents is None:
            return
        if not self._grid.everywhere:
            run = None if scene is None or scene.run is None else scene.run.id
            spots = () if scene is None else self._reviewing.spots
            found = [Listed(scene.image.id, run, spot) for spot in spots] if scene is not None else []
            self._show(self._asked, _of_kind(found, self._grid.kind, blind=self._reviewing.blind))
            return
        work = partial(
            _everywhere, self._queueing.results, contents.review, self._grid.kind, self._reviewing.blind
        )
        job = self._jobs.start("Listing spots", work, quiet=True)
        job.finished.connect(partial(self._show, self._asked))

    def decide(self, verb: str) -> None:
        """Settle all that are chosen by one decision."""
        chosen = [self._listed[number] for number in self._grid.selected if number in self._listed]
        if not chosen or self._writing:
            if not chosen:
                self.said.emit("Choose spots first: by a click, with Ctrl or Shift, or all with Ctrl+A.")
            return
        self._writing = True
        self._document.record(_decision(verb, chosen, blind=self._reviewing.blind)).ended.connect(
            self._on_written
        )

    def _on_written(self) -> None:
        self._writing = False

    def _show(self, asked: int, found: Sequence[Listed]) -> None:
        contents = self._document.contents
        if asked != self._asked or contents is None:
            return
        images = {entry.id: entry for entry in contents.images}
        found = [one for one in found if one.image in images]
        self._listed = {
            number: replace(one, number=number) for one in found for number in [self._number(one)]
        }
        numbers = list(self._listed)
        blind = self._reviewing.blind
        size = view.common_size([images[one.image].pixel_size for one in found])
        if self.shelf.set_scale([view.radius_of(one.spot) for one in found], size):
            self._grid.forget_pictures()
        self.shelf.set_places(
            {number: Place(images[one.image], one.spot.x, one.spot.y) for number, one in self._listed.items()}
        )
        cards = SpotCards(
            numbers=np.array(numbers, dtype=np.int64),
            cards=[_card(one, images[one.image], self._grid.everywhere, blind=blind) for one in found],
            tips=[_tip(one, images[one.image], blind=blind) for one in found],
        )
        self._grid.show_spots(cards, view.length(2 * self.shelf.half, size), anew=self._anew)
        self._anew = False

    def _number(self, one: Listed) -> int:
        key = (one.image, one.run, one.spot.number)
        return self._number_of.setdefault(key, len(self._number_of))

    def _on_ready(self, number: int, picture: QImage | None) -> None:
        self._grid.set_picture(number, picture)
        scene, one = self._reviewing.scene, self._listed.get(number)
        elsewhere = one is not None and (scene is None or scene.image.id != one.image)
        if elsewhere and number == self._grid.current:
            self.looked_at.emit(one)

    def _on_picture_wanted(self, number: int) -> None:
        self.shelf.want(number)

    def _on_chosen(self, number: int) -> None:
        if number in self._listed:
            self.looked_at.emit(self._listed[number])

    def _on_opened(self, number: int) -> None:
        one = self._listed.get(number)
        if one is not None:
            self.opened.emit(one.image, one.spot)


def _everywhere(
    results: Mapping[int, Known], state: ReviewState, kind: str, blind: bool, watch: Watch
) -> list[Listed]:
    """List the spots of a kind on all images of which something is known."""
    found: list[Listed] = []
    for done, (image, known) in enumerate(results.items()):
        watch(done / len(results), "listing spots")
        spots = spots_of(known.fusion, len(known.annotators), state.spots(image))
        found.extend(Listed(image, known.run, spot) for spot in spots)
    return _of_kind(found, kind, blind=blind)


def _of_kind(listed: Iterable[Listed], kind: str, *, blind: bool) -> list[Listed]:
    """Keep the spots of a kind, the most probable first, those passed over last; blind, in no order."""
    found = [one for one in listed if (one.spot.decided if kind == "decided" else one.spot.state == kind)]
    if blind:
        return sorted(found, key=lambda one: (one.spot.skipped, one.image, one.spot.number))
    return sorted(found, key=lambda one: (one.spot.skipped, -np.nan_to_num(one.spot.posterior, nan=2.0)))


def _decision(verb: str, chosen: Sequence[Listed], *, blind: bool) -> Decision:
    first = chosen[0]
    hidden = blind and not any(one.spot.decided for one in chosen)
    if len(chosen) == 1:
        spot = first.spot
        subject = SpotSubject(x=spot.x, y=spot.y, number=spot.number, blind=hidden)
        return Decision(verb=verb, item=first.image, subject=subject, run=first.run, about=spot.decision)
    spots = tuple(
        SpotOf(
            image=one.image, x=one.spot.x, y=one.spot.y, number=one.spot.number, run=one.run,
            about=one.spot.decision,
        )
        for one in chosen
    )  # fmt: skip
    return Decision(verb=verb, item=first.image, subject=SpotsSubject(spots=spots, blind=hidden))


def _card(one: Listed, image: ImageEntry, everywhere: bool, *, blind: bool) -> Card:
    spot = one.spot
    title, third = f"spot {spot.number}", image.name if everywhere else ""
    if blind and not spot.decided:
        return Card(title, "skipped" if spot.skipped else "", "", third)
    said = "skipped" if spot.skipped else WORDS.get(spot.state, f"{spot.votes} of {spot.looked}")
    figure = f"{spot.posterior:.2f}" if np.isfinite(spot.posterior) else ""
    return Card(title, said, figure, third, TONES[spot.state])


def _tip(one: Listed, image: ImageEntry, *, blind: bool) -> str:
    spot = one.spot
    words = [f"spot {spot.number}", image.name, view.place_in_words(spot.x, spot.y, image.pixel_size)]
    if not blind or spot.decided:
        words.append(WORDS.get(spot.state, spot.state))
        if np.isfinite(spot.posterior):
            words.append(
                f"posterior probability {spot.posterior:.2f}, {spot.votes} of {spot.looked} marked it"
            )
    return ", ".join(words)
