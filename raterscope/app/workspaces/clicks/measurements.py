"""Scale, lengths and areas drawn on the canvas, and parasite counts per field, volume of blood and cells."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import islice

import numpy as np
from PySide6.QtCore import QPointF, Signal

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.geometry import area_of, crosses_itself, length_of
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import plain
from raterscope.app.kinds.clicks.parasitaemia import (
    SOURCE,
    Field,
    compute_quantities,
    count_field,
    count_groups,
    counted_noun,
    describe_intervals,
)
from raterscope.app.review import (
    CountingSubject,
    Decision,
    Measures,
    ScaleSubject,
    Shape,
    ShapeSubject,
    Spot,
    is_measure,
)
from raterscope.app.session import while_shown
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import ImageResult
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.text import counted
from raterscope.widgets.canvas.shape_marks import Drawing, ShapeMark
from raterscope.widgets.canvas.shapes import Shapes
from raterscope.widgets.dialogs.review_dialogs import ScaleDialog
from raterscope.widgets.panels.measurement_panels import (
    FIELDS,
    NOT_FUSED,
    REMOVE_SCALE,
    USE_FILE,
    Counted,
    FigureLine,
    ShapeLine,
)

COLUMNS = ("image", "number", "shape", "length px", "area px²", "length µm", "area µm²")
CROSSED = "The outline crosses itself and has no inside. Draw it again."
CROSSED_NOW = "The outline would cross itself. It was not changed."
TOO_SHORT = "The line is shorter than a pixel: draw it longer."
SHORTEST = 1.0


class Measurements(ClicksPart):
    """Controller that draws, changes, records and lists scale, lengths and areas on the image on screen."""

    scale_changed = Signal()  # the size of a pixel changed
    refused = Signal(str)  # why a drawing was not recorded

    def __init__(self, core: ClicksCore) -> None:
        super().__init__(core)
        self._file_size: float | None = None
        """Micrometres per pixel, by the file of the image on screen."""
        self.measures = Measures()  # current scales, lengths and areas
        self.shapes = Shapes(core.screen.canvas, self._words_of)
        self.drawing = Drawing(core.screen.canvas, self._text)
        self.drawing.drawn.connect(self._on_drawn)
        self.drawing.mode_changed.connect(self._on_mode)
        self.shapes.chosen.connect(core.screen.measure.choose)
        self.shapes.changed.connect(self._on_shape_changed)
        self.shapes.delete_requested.connect(self.delete)
        core.document.replaced.connect(self._read)
        core.document.changed.connect(self._read)
        core.document.decided.connect(self._on_decided)
        panel = core.screen.measure
        panel.mode_requested.connect(self.begin)
        panel.unscale.clicked.connect(self._on_unscale)
        panel.shape_chosen.connect(self._on_chosen)
        panel.delete_requested.connect(self.delete)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)
        self._read()

    @while_shown
    def begin(self, mode: str) -> None:
        """Start to draw a "scale", a "length" or an "area"; the same mode again stops."""
        if self._screen.grid_shown:
            self._screen.show_grid(False)
        self.deselect()
        self.drawing.set_mode("" if mode == self.drawing.mode else mode)
        self._screen.canvas.setFocus()

    @property
    def busy(self) -> bool:
        """Whether a drawing mode is on or a shape is selected."""
        return bool(self.drawing.mode) or self.shapes.selected is not None

    def leave(self) -> None:
        """Stop drawing, cancel a change of a shape, or deselect it."""
        if self.drawing.mode:
            self.drawing.set_mode("")
        else:
            self.shapes.leave()

    def deselect(self) -> None:
        """Deselect the shape."""
        self._screen.measure.choose(None)

    def with_pixel_size(self, scene: Scene) -> Scene:
        """Return a scene with the pixel size that is set, before it is shown."""
        self._file_size = scene.image.pixel_size
        size = self.measures.pixel_size(scene.image.id, self._file_size)
        return replace(scene, image=replace(scene.image, pixel_size=size))

    def _clear(self) -> None:
        self.drawing.set_mode("")
        self.deselect()
        self._show()

    def _on_scene(self, scene: Scene) -> None:
        previous = self._session.previous
        if previous is None or previous.image.id != scene.image.id:
            self._clear()
        else:
            self._show()

    def choose_at(self, position: QPointF) -> ShapeLine | None:
        """Select the shape at a position of the canvas, and return its line; None without one."""
        key = self.shapes.at(position)
        if key is not None:
            self.shapes.select(key)
            self._screen.measure.choose(key)
        return None if key is None else self._screen.measure.current

    def delete(self, key: Hashable) -> None:
        """Delete a shape."""
        shape = self._find(key)
        if shape is not None:
            self._decide("delete", shape, shape.subject)

    # Drawing

    @while_shown
    def _on_drawn(self, mode: str, points: FloatArray) -> None:
        if mode == "scale":
            self._ask_length(points)
        elif mode == "area" and crosses_itself(points):
            self.refused.emit(CROSSED)
        else:
            self._keep(mode, points)

    def _ask_length(self, points: FloatArray) -> None:
        scene, pixels = self._session.scene, length_of(points)
        if pixels < SHORTEST:
            self.refused.emit(TOO_SHORT)
            return
        mark = ShapeMark("scale", points, closed=False, text="?", fixed=True)
        self.shapes.set_shapes((*self._marks(), mark))
        self.shapes.select("scale")
        dialog = ScaleDialog(pixels, len(self._document.items("clicks")), self._screen)
        dialog.accepted.connect(partial(self._on_length, scene.image.id, points, dialog))
        dialog.finished.connect(self._show)
        dialog.open()

    def _on_length(self, image: int, points: FloatArray, dialog: ScaleDialog) -> None:
        (left, top), (right, bottom) = points.tolist()
        subject = ScaleSubject(
            pixel_size=dialog.length / length_of(points),
            everywhere=dialog.everywhere,
            line=(left, top, right, bottom),
            length=dialog.length,
        )
        self._document.record(Decision(verb="scale", item=image, subject=subject))

    def _keep(self, mode: str, points: FloatArray) -> None:
        contents, scene = self._document.contents, self._session.scene
        assert contents is not None
        subject = ShapeSubject(
            shape="area" if mode == "area" else "length",
            points=_rounded(points),
            number=self.measures.next_number(scene.image.id, contents.decisions),
        )
        self._document.record(Decision(verb="measure", item=scene.image.id, subject=subject))

    def _on_shape_changed(self, key: Hashable, verb: str, points: FloatArray) -> None:
        shape = self._find(key)
        if shape is None:
            return
        if shape.area is not None and crosses_itself(points):
            self.shapes.restore()
            self.refused.emit(CROSSED_NOW)
        else:
            self._decide(verb, shape, replace(shape.subject, points=_rounded(points)))

    def _decide(self, verb: str, shape: Shape, subject: ShapeSubject) -> None:
        decision = Decision(verb=verb, item=shape.made.item, subject=subject, about=shape.made.id)
        self._document.record(decision).failed.connect(self.shapes.restore)

    def _on_mode(self, mode: str) -> None:
        self.shapes.still = bool(mode)

    def _on_chosen(self, key: Hashable) -> None:
        """Show the shape selected in the list."""
        if key != self.shapes.selected:
            self.shapes.select(key)
            self.shapes.show(key)

    @while_shown
    def _on_unscale(self) -> None:
        scene = self._session.scene
        set_by = self.measures.scale_of(scene.image.id)
        if set_by is not None:
            assert isinstance(set_by.subject, ScaleSubject)
            subject = ScaleSubject(everywhere=set_by.subject.everywhere)
            self._document.record(Decision(verb="unscale", item=scene.image.id, subject=subject))

    # Display

    def _on_decided(self, decision: Decision) -> None:
        contents = self._document.contents
        if contents is not None and is_measure(contents.target(decision)):
            self._read()

    def _read(self) -> None:
        contents, previous = self._document.contents, self.measures
        self.measures = measures = Measures() if contents is None else contents.measures
        self._show()
        if {key: scale.id for key, scale in measures.scales.items()} != {
            key: scale.id for key, scale in previous.scales.items()
        }:
            self.scale_changed.emit()

    def _shapes(self) -> Sequence[Shape]:
        if not self._session.shown:
            return ()
        return self.measures.shapes.get(self._session.scene.image.id, ())

    def _find(self, key: Hashable) -> Shape | None:
        return next((shape for shape in self._shapes() if _key(shape) == key), None)

    def _marks(self) -> Sequence[ShapeMark]:
        return [
            ShapeMark(
                _key(shape),
                shape.points,
                shape.area is not None,
                f"{shape.subject.number}  {self._measured(shape.length, shape.area)}",
            )
            for shape in self._shapes()
        ]

    def _words_of(self, mark: ShapeMark, points: FloatArray) -> str:
        """Describe the measurement of a shape with changed points."""
        number = mark.text.split(maxsplit=1)[0]
        return f"{number}  {self._text('area' if mark.closed else 'length', points)}"

    def _show(self) -> None:
        self.shapes.set_shapes(self._marks())
        self._screen.measure.show_lines(COLUMNS, [self._line(shape) for shape in self._shapes()])
        words, is_set = self._scale_in_words()
        removal = REMOVE_SCALE if self._file_size is None else USE_FILE
        self._screen.measure.show_scale(words, removal if is_set else "")

    def _line(self, shape: Shape) -> ShapeLine:
        number, size = shape.subject.number, self._size
        outline = shape.area is not None
        in_micrometres = ("", "")
        if size is not None:
            in_micrometres = f"{shape.length * size:.4g}", f"{shape.area * size**2:.4g}" if shape.area else ""
        return ShapeLine(
            key=_key(shape),
            title=f"{shape.subject.shape} {number}",
            value=self._measured(shape.length, shape.area),
            detail=f"outline {self._measured(shape.length)}" if outline else "",
            cells=(
                self._session.scene.image.name,
                str(number),
                "outline" if outline else "line",
                f"{shape.length:.2f}",
                f"{shape.area:.1f}" if shape.area is not None else "",
                *in_micrometres,
            ),
        )

    @property
    def _size(self) -> float | None:
        if not self._session.shown:
            return None
        return self.measures.pixel_size(self._session.scene.image.id, self._file_size)

    def _scale_in_words(self) -> tuple[str, bool]:
        if not self._session.shown:
            return "", False
        size = self._size
        decision = self.measures.scale_of(self._session.scene.image.id)
        if decision is None:
            if size is None:
                return "The file does not state the size of a pixel.", False
            return f"{size:.4g} µm a pixel, from the file", False
        when = "" if decision.at is None else f", {decision.at.astimezone():%Y-%m-%d %H:%M}"
        assert isinstance(decision.subject, ScaleSubject)
        where = "all images" if decision.subject.everywhere else "this image"
        return f"{size:.4g} µm a pixel, set for {where} by {decision.who}{when}", True

    def _text(self, mode: str, points: FloatArray) -> str:
        """Describe the measurement of a drawing."""
        if mode == "scale":
            return f"{length_of(points):,.1f} px"
        if mode == "area" and len(points) > 2:
            return self._measured(length_of(points, closed=True), area_of(points))
        return self._measured(length_of(points))

    def _measured(self, length: float, area: float | None = None) -> str:
        """Format a length, or an area if there is one, in micrometres or pixels."""
        size = self._size
        if area is None:
            return _figure(length, "px") if size is None else _figure(length * size, "µm")
        return _figure(area, "px²") if size is None else _figure(area * size**2, "µm²")


def _key(shape: Shape) -> Hashable:
    """Return the key of a shape, unique in the study."""
    return shape.made.item, shape.subject.number


def _rounded(points: FloatArray) -> tuple[tuple[float, float], ...]:
    return tuple((round(x, 3), round(y, 3)) for x, y in points.tolist())


def _figure(value: float, unit: str) -> str:
    decimals = max(0, 2 - int(np.floor(np.log10(max(value, 1e-3))))) if value < 100 else 0
    return f"{value:,.{min(decimals, 4)}f} {unit}"


MAX_GROUPS = 40
"""Maximum number of groups of images listed."""

NOT_HERE = "This image is not fused yet."
COUNTING = "Counting…"

Made = tuple[ImageEntry, ImageResult, tuple[Spot, ...], float | None]


class Parasitaemia(ClicksPart):
    """Parasite counts, computed while the panel is visible; only changed images are counted again."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, measuring: Measurements) -> None:
        super().__init__(core)
        self._review_queue, self._measuring = review_queue, measuring
        self._panel = core.screen.parasitaemia
        self._fields: dict[int, tuple[Made, Field | None]] = {}
        self._under_way = False
        self._again = self._is_read = False
        core.document.replaced.connect(self._on_replaced)
        core.document.changed.connect(self.refresh)
        core.session.scene_changed.connect(self.refresh)
        core.session.cleared.connect(self.refresh)
        core.document.decided.connect(self.refresh)
        review_queue.all_read.connect(self._on_read)
        core.screen.middle_tabs.currentChanged.connect(self.refresh)
        self._panel.scope_chosen.connect(self.refresh)
        self._panel.counted.connect(self._on_counted)

    def refresh(self) -> None:
        """Update the figures, if they are visible."""
        contents = self._document.contents
        if contents is None or self._screen.middle_tabs.currentWidget() is not self._panel:
            return
        self._show_counted()
        if self._under_way:
            self._again = True
            return
        measures, inputs = self._measuring.measures, {}
        entries = {entry.id: entry for entry in contents.images}
        for image, result in self._review_queue.results.items():
            if image in entries:
                size = measures.pixel_size(image, entries[image].pixel_size)
                inputs[image] = (entries[image], result, tuple(contents.review.spots(image)), size)
        if not inputs and not self._is_read and contents.runs_of("clicks"):
            return
        self._under_way = True
        groups = contents.groups if self._image is None else {}
        work = partial(_compute_table, inputs, dict(self._fields), measures, self._image, groups)
        job = self._jobs.start("Working out parasitaemia", work, quiet=True)
        job.finished.connect(self._on_computed)
        job.ended.connect(self._on_ended)

    @property
    def _image(self) -> int | None:
        """The only image to count; None for all."""
        if self._panel.scope.mode == "all":
            return None
        return self._session.scene.image.id if self._session.shown else -1

    def _show_counted(self) -> None:
        image, of_all = self._image, self._measuring.measures.counting.get(None, CountingSubject())
        counting = (
            of_all if image is None else self._measuring.measures.counting.get(image, CountingSubject())
        )
        values = {
            name: getattr(of_all if field.of_all else counting, name, None) for name, field in FIELDS.items()
        }
        fields = [field for _, field in self._fields.values() if field is not None]
        noun = counted_noun(fields, self._measuring.measures)
        self._panel.show_counted(Counted(**values, noun=of_all.noun), noun)

    def _on_counted(self, counted: Counted) -> None:
        contents, image = self._document.contents, self._image
        shown = self._session.shown
        if contents is None or (image is not None and not shown):
            return
        values = asdict(counted)
        if image is not None:
            values |= {name: None for name, field in FIELDS.items() if field.of_all} | {"noun": ""}
        elif shown:
            image, values = self._session.scene.image.id, {**values, "everywhere": True}
        if image is None:
            image = contents.of("clicks")[0].id
        subject = CountingSubject(**{"everywhere": False, **values})
        self._document.record(Decision(verb="count", item=image, subject=subject))

    def _on_computed(
        self, answer: tuple[dict[int, tuple[Made, Field | None]], list[FigureLine], str, int | None]
    ) -> None:
        self._fields, lines, note, image = answer
        self._show_counted()
        if image != self._image:
            return
        self._panel.show_figures(lines, f"{note} {SOURCE}.", NOT_FUSED if image is None else NOT_HERE)

    def _on_read(self) -> None:
        self._is_read = True
        self.refresh()

    def _on_ended(self) -> None:
        self._under_way = False
        if self._again:
            self._again = False
            self.refresh()

    def _on_replaced(self) -> None:
        self._fields, self._is_read, is_fused = {}, False, bool(self._document.runs_of("clicks"))
        self._panel.show_figures((), "", COUNTING if is_fused else NOT_FUSED)
        self._panel.show_counted(Counted(), "")


def _compute_table(
    inputs: Mapping[int, Made],
    previous: Mapping[int, tuple[Made, Field | None]],
    measures: Measures,
    image: int | None,
    groups: Mapping[int, str],
    watch: Watch,
) -> tuple[dict[int, tuple[Made, Field | None]], list[FigureLine], str, int | None]:
    fields: dict[int, tuple[Made, Field | None]] = {}
    for done, (number, item) in enumerate(inputs.items()):
        watch(done / len(inputs), "counting")
        same = number in previous and _same(previous[number][0], item)
        entry, result, spots, _ = item
        fields[number] = (
            previous[number] if same else (item, count_field(entry, result.fusion, spots, measures))
        )
    counted = [field for _, field in fields.values() if field is not None]
    note = describe_intervals(counted, measures, image) if counted else ""
    lines = [
        FigureLine(figure.title, figure.in_words(), figure.interval(), figure.formula)
        for figure in compute_quantities(counted, measures, image)
    ]
    by_group = _group_lines(counted, measures, groups)
    if by_group:
        known = [line for line in lines if line.value]
        lines = [*known, *by_group, *(line for line in lines if not line.value)]
    return fields, lines, note, image


def _group_lines(fields: Sequence[Field], measures: Measures, groups: Mapping[int, str]) -> list[FigureLine]:
    """Return the known figures of each group of images, up to `MAX_GROUPS` groups."""
    lines = []
    for name, images, figures in islice(count_groups(fields, measures, groups), MAX_GROUPS):
        for figure in figures:
            title = f"{plain(name, 40)}: {figure.title.lower()}"
            formula = f"{counted(images, 'image')}; {figure.formula}"
            lines.append(FigureLine(title, figure.in_words(), figure.interval(), formula))
    if len(set(groups.values())) > MAX_GROUPS:
        lines.append(FigureLine("More groups", "", "", "in raterscope export --what counts --groups study"))
    return lines


def _same(previous: Made, current: Made) -> bool:
    return previous[1] is current[1] and previous[0] == current[0] and previous[2:] == current[2:]
