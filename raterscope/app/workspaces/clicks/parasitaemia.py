"""Parasite counts per field, volume of blood and cells, computed while their panel is visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.clicks.parasitaemia import SOURCE, Field, Told, field_of, note_of, tell
from raterscope.app.review import CountingSubject, Decision, Measures, Spot
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.clicks.measuring import Measuring
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import Known
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.widgets.panels.measurement_panels import ASKED, NOT_FUSED, Counted, FigureLine

__all__ = ["Parasitaemia"]

NOT_HERE = "This image is not fused yet."

Made = tuple[ImageEntry, Known, tuple[Spot, ...], float | None]


class Parasitaemia(ClicksPart):
    """Keeps the panel in step with queue, decisions and scale; only images that changed are counted anew."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, measuring: Measuring) -> None:
        super().__init__(core)
        self._review_queue, self._measuring = review_queue, measuring
        self._panel = core.screen.parasitaemia
        self._fields: dict[int, tuple[Made, Field | None]] = {}
        self._under_way = False
        self._again = False
        core.document.replaced.connect(self._on_replaced)
        core.session.scene_changed.connect(self.refresh)
        core.session.cleared.connect(self.refresh)
        core.document.decided.connect(self.refresh)
        review_queue.all_read.connect(self.refresh)
        core.screen.middle_tabs.currentChanged.connect(self.refresh)
        self._panel.scope_chosen.connect(self.refresh)
        self._panel.counted.connect(self._on_counted)

    def refresh(self) -> None:
        """Bring the figures up to date, where they are looked at."""
        contents = self._document.contents
        if contents is None or self._screen.middle_tabs.currentWidget() is not self._panel:
            return
        self._show_counted()
        if self._under_way:
            self._again = True
            return
        measures, made = self._measuring.measures, {}
        entries = {entry.id: entry for entry in contents.images}
        for image, known in self._review_queue.results.items():
            if image in entries:
                size = measures.pixel_size(image, entries[image].pixel_size)
                made[image] = (entries[image], known, tuple(contents.review.spots(image)), size)
        self._under_way = True
        work = partial(_reckon, made, dict(self._fields), measures, self._image)
        job = self._jobs.start("Working out parasitaemia", work, quiet=True)
        job.finished.connect(self._on_reckoned)
        job.ended.connect(self._on_ended)

    @property
    def _image(self) -> int | None:
        """The only image to tell of; None for all."""
        if self._panel.scope.mode == "all":
            return None
        return self._session.scene.image.id if self._session.shown else -1

    def _show_counted(self) -> None:
        image, of_all = self._image, self._measuring.measures.counting.get(None, CountingSubject())
        here = of_all if image is None else self._measuring.measures.counting.get(image, CountingSubject())
        values = {
            name: getattr(of_all if asked.of_all else here, name, None) for name, asked in ASKED.items()
        }
        self._panel.show_counted(Counted(**values))

    def _on_counted(self, counted: Counted) -> None:
        contents, image = self._document.contents, self._image
        shown = self._session.shown
        if contents is None or (image is not None and not shown):
            return
        values = asdict(counted)
        if image is not None:
            values |= {name: None for name, asked in ASKED.items() if asked.of_all}
        elif shown:
            image, values = self._session.scene.image.id, {**values, "everywhere": True}
        if image is None:
            image = contents.of("clicks")[0].id
        subject = CountingSubject(**{"everywhere": False, **values})
        self._document.record(Decision(verb="count", item=image, subject=subject))

    def _on_reckoned(
        self, answer: tuple[dict[int, tuple[Made, Field | None]], Sequence[Told], str, int | None]
    ) -> None:
        self._fields, told, note, image = answer
        if image != self._image:
            return
        lines = [FigureLine(one.title, one.in_words(), one.interval(), one.formula) for one in told]
        self._panel.show_figures(lines, f"{note} {SOURCE}.", NOT_FUSED if image is None else NOT_HERE)

    def _on_ended(self) -> None:
        self._under_way = False
        if self._again:
            self._again = False
            self.refresh()

    def _on_replaced(self) -> None:
        self._fields = {}
        self._panel.show_figures((), "")
        self._panel.show_counted(Counted())


def _reckon(
    made: Mapping[int, Made],
    before: Mapping[int, tuple[Made, Field | None]],
    measures: Measures,
    image: int | None,
    watch: Watch,
) -> tuple[dict[int, tuple[Made, Field | None]], Sequence[Told], str, int | None]:
    fields: dict[int, tuple[Made, Field | None]] = {}
    for done, (number, one) in enumerate(made.items()):
        watch(done / len(made), "counting")
        same = number in before and _same(before[number][0], one)
        entry, known, spots, _ = one
        fields[number] = before[number] if same else (one, field_of(entry, known.fusion, spots, measures))
    found = [field for _, field in fields.values() if field is not None]
    note = note_of(found, measures, image) if found else ""
    return fields, tell(found, measures, image), note, image


def _same(before: Made, now: Made) -> bool:
    return before[1] is now[1] and before[0] == now[0] and before[2:] == now[2:]
