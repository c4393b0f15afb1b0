"""Surfaces of the reading mode, one per kind: they show a case and convert input to marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.app.formats.masks.collector import crop
from raterscope.app.reader_studies.collecting import draw_strokes, pack_stroke
from raterscope.app.reader_studies.protocol import Assignment, Picture, ReadingCase, Side
from raterscope.app.reader_studies.reading_file import CaseMarks
from raterscope.app.workspaces.reading.reader import Pixels
from raterscope.app.workspaces.task_pictures import ask_to_open
from raterscope.text import counted
from raterscope.widgets.canvas.marking_canvas import MarkingCanvas
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.panels.reading_panels import ComparedItems, ReadingKey
from raterscope.widgets.panels.task_content import TEXT_SIZE, ContentBrowser
from raterscope.widgets.theme import annotator_style
from raterscope.widgets.volume.scene import Outline, Stroke
from raterscope.widgets.volume.volume_view import Tool, VolumeView

_FRAME = 12
"""Width of both edges of a text together, in pixels."""
_PICTURES = (Side(has_picture=True), Side(has_picture=True))

Box = tuple[int, int, int]
_NOTHING: tuple[Box, NDArray[np.bool_]] = ((0, 0, 0), np.zeros((0, 0, 0), dtype=np.bool_))

Groups = Sequence[tuple[str, Sequence[ReadingKey]]]

TOOLS = (
    ReadingKey("brush", "B", "brush", "Paint with a disc; with Shift, erase"),
    ReadingKey("contour", "C", "contour", "Draw around an area to fill it; with Shift, to empty it"),
    ReadingKey("eraser", "E", "eraser", "Erase with a disc; with Shift, paint"),
    ReadingKey("look", "V", "move crosshair", "Move through the volume"),
)


class Surface(QWidget):
    """View that shows the case on screen and converts input to marks."""

    marked = Signal(str, dict)  # (str, dict): verb and detail of an operation
    COMPLETES = False
    """Whether the last answer completes a case; the next case follows."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: tuple[Picture, ...] = ()
        """Pictures of the case, from left to right."""
        self.texts: Mapping[str, str] = {}
        self.sides: tuple[Side, ...] = ()
        """Items of a pair, from left to right; empty if both are only pictures."""
        self._swapped = False

    def groups(self) -> Groups:
        """List the keys of the kind, by heading."""
        return ()

    def begin(self, case: ReadingCase, swapped: bool) -> None:
        """Show a case whose pixels are not loaded yet."""
        self._swapped = swapped
        self.pictures = tuple(self._turned(case.pictures))
        self.texts = case.texts
        self.sides = tuple(self._turned(case.sides))
        self.clear()

    def _turned(self, items: Sequence[Any]) -> list[Any]:
        return list(reversed(items)) if self._swapped else list(items)

    def clear(self) -> None:
        """Show the case without pixels and marks."""

    def show_waiting(self, text: str) -> None:
        """Show why there are no pixels yet."""
        for canvas in self.findChildren(MarkingCanvas):
            canvas.set_waiting(text)

    def show_pixels(self, _pixels: list[Pixels]) -> None:
        """Show the pixels of the case, in the order of its pictures."""

    def show_marks(self, _marks: CaseMarks) -> None:
        """Show the reader's marks on the case."""

    def press(self, _name: str) -> None:
        """Handle a key of the kind."""

    def checked(self) -> set[str]:
        """Return the highlighted keys."""
        return set()

    def current_group(self) -> int:
        """Return the group of keys that the digits select from; -1 for none in particular."""
        return -1

    def note(self, _marks: CaseMarks) -> str:
        """Describe the marks in words."""
        return ""


def make_surface(assignment: Assignment) -> Surface:
    """Make the surface of a kind."""
    if assignment.kind == "clicks":
        return ClickSurface()
    if assignment.kind == "masks":
        return MaskSurface(assignment.structures)
    return AnswerSurface(assignment)


def _fill(surface: QWidget, widget: QWidget) -> None:
    vertical(widget, inside=surface, spacing=None)
    surface.setFocusProxy(widget)


def _extent(picture: Picture) -> tuple[float, float, float, float]:
    return 0.0, 0.0, float(picture.width), float(picture.height)


class ClickSurface(Surface):
    """An image on which the reader marks points."""

    def __init__(self) -> None:
        super().__init__()
        self.canvas = MarkingCanvas()
        self.canvas.marked.connect(lambda x, y: self.marked.emit("click", {"x": x, "y": y}))
        self.canvas.unmarked.connect(self._on_unmarked)
        self._points: list[tuple[float, float]] = []
        _fill(self, self.canvas)

    def clear(self) -> None:
        """Show the frame of an image."""
        self.canvas.set_points([])
        self.canvas.set_image(None, _extent(self.pictures[0]))
        self.canvas.fit()

    def show_pixels(self, pixels: list[Pixels]) -> None:
        """Show the image."""
        picture = self.pictures[0]
        self.canvas.set_image(pixels[0], _extent(picture), pixel_size=picture.pixel_size)

    def show_marks(self, marks: CaseMarks) -> None:
        """Show the points."""
        self._points = [(x, y) for x, y, _ in marks.clicks]
        self.canvas.set_points(self._points)

    def note(self, marks: CaseMarks) -> str:
        """Count the points."""
        return f"{counted(len(marks.clicks), 'mark')}. Click to mark; Shift+click removes a mark."

    def _on_unmarked(self, index: int) -> None:
        x, y = self._points[index]
        self.marked.emit("unclick", {"x": x, "y": y})


class MaskSurface(Surface):
    """A volume or image on which the reader outlines structures by brush and contour."""

    def __init__(self, structures: Sequence[str]) -> None:
        super().__init__()
        self.volume = VolumeView()
        self.volume.painted.connect(self._on_painted)
        self._structures = structures
        self.structure = structures[0]
        self._marks = CaseMarks()
        self._shape = (1, 1, 1)
        self._drawn: tuple[int, ...] = ()
        """Strokes that `_masks` includes."""
        self._masks: dict[str, NDArray[np.bool_]] = {}
        self._crops: dict[str, tuple[Box, NDArray[np.bool_]]] = {}
        self.volume.set_tool("brush")
        _fill(self, self.volume)

    def groups(self) -> Groups:
        """List structures and tools."""
        structures = [
            ReadingKey(f"structure {name}", str(number), name, f"Draw {name}")
            for number, name in enumerate(self._structures, start=1)
        ]
        return (("Structure", structures), ("Tool", TOOLS))

    def clear(self) -> None:
        """Show nothing until the volume is loaded."""
        self._shape = (1, 1, 1)
        self._marks = CaseMarks()
        self._drawn, self._masks, self._crops = (), {}, {}
        self.volume.clear()

    def show_pixels(self, pixels: list[Pixels]) -> None:
        """Show the volume with the drawn structures."""
        volume = pixels[0]
        self._shape = volume.grid.shape
        self.volume.set_volume(
            volume.values, volume.grid, modality=volume.modality, window=volume.window, unit=volume.unit
        )
        self.show_marks(self._marks)

    def show_marks(self, marks: CaseMarks) -> None:
        """Show the structures: the selected one as an area, the others as outlines."""
        self._marks = marks
        if self._shape == (1, 1, 1):
            return
        self._draw(marks)
        outlines = []
        for number, name in enumerate(self._structures):
            origin, values = self._crops.get(name, _NOTHING)
            if name == self.structure:
                self.volume.set_edit(values if values.size else None, origin)
            elif values.size:
                outlines.append(Outline(name, name, annotator_style(number)[0], values, origin, width=2.0))
        self.volume.set_outlines(outlines)

    def _draw(self, marks: CaseMarks) -> None:
        """Draw the new strokes; after an undo, all strokes."""
        numbers = tuple(stroke.id for stroke in marks.strokes)
        if numbers[: len(self._drawn)] != self._drawn:
            self._drawn, self._masks, self._crops = (), {}, {}
        new = marks.strokes[len(self._drawn) :]
        draw_strokes(new, self._shape, self._masks)
        for name in {str(stroke.detail["structure"]) for stroke in new}:
            self._crops[name] = crop(self._masks[name])
        self._drawn = numbers

    def press(self, name: str) -> None:
        """Choose a structure or a tool."""
        if name.startswith("structure "):
            self.structure = name.removeprefix("structure ")
            self.show_marks(self._marks)
        elif name in {tool.name for tool in TOOLS}:
            self.volume.set_tool(cast(Tool, name))

    def checked(self) -> set[str]:
        """Return structure and tool."""
        return {f"structure {self.structure}", self.volume.tool}

    def note(self, marks: CaseMarks) -> str:
        """Name the drawn structures."""
        drawn = {stroke.detail.get("structure") for stroke in marks.strokes}
        missing = [name for name in self._structures if name not in drawn]
        text = f"Nothing drawn yet: {', '.join(missing)}. " if missing else ""
        return text + "Wheel: slices. Ctrl+wheel: zoom. [ and ]: size of the brush."

    def _on_painted(self, stroke: Stroke) -> None:
        self.marked.emit("stroke", pack_stroke(self.structure, stroke.origin, stroke.values))


class AnswerSurface(Surface):
    """Pictures and texts, with questions that the reader answers."""

    COMPLETES = True

    def __init__(self, assignment: Assignment) -> None:
        super().__init__()
        self._questions = assignment.questions
        self._marks = CaseMarks()
        self._pair = ComparedItems(TEXT_SIZE) if assignment.kind == "pairs" else None
        most = max((len(case.pictures) for case in assignment.cases), default=0)
        self._canvases = [MarkingCanvas(marks=False) for _ in range(0 if self._pair else most)]
        self.browser = ContentBrowser(size=TEXT_SIZE, margin=24)
        self.browser.link_chosen.connect(partial(ask_to_open, self))
        if self._pair is not None:
            self._pair.chosen.connect(self._answer)
            for browser in self._pair.browsers.values():
                browser.link_chosen.connect(partial(ask_to_open, self))
            vertical(self.browser, (self._pair, 1), inside=self, spacing=2)
        else:
            horizontal(*((part, 1) for part in (*self._canvases, self.browser)), inside=self, spacing=2)
        self.setFocusProxy(self._pair or self.browser)

    @property
    def question(self) -> int:
        """Index of the question to answer: the first without an answer, else the last."""
        answered = [question.name in self._marks.answers for question in self._questions]
        return answered.index(False) if False in answered else len(answered) - 1

    def groups(self) -> Groups:
        """List the answers to each question."""
        return [
            (
                question.text or question.name,
                [
                    ReadingKey(f"answer {number} {name}", self._cap(at, name), name)
                    for at, name in enumerate(question.classes, start=1)
                ],
            )
            for number, question in enumerate(self._questions)
        ]

    def _cap(self, number: int, name: str) -> str:
        arrows = {"left": "←", "right": "→", "tie": "↓"}
        return arrows.get(name, str(number)) if self._pair is not None else str(number)

    def clear(self) -> None:
        """Show the frames of the pictures, or the texts."""
        views = self._views()
        for canvas in self._canvases:
            canvas.setVisible(canvas in views)
        self.browser.setVisible(bool(self.texts))
        self.browser.show_texts(self.texts)
        if self._pair is not None:
            self._pair.set_parts(*((side.texts, side.has_picture) for side in self.sides or _PICTURES))
            self._fit_prompt()
        self.setFocusProxy(self._pair or (self.browser if self.texts or not views else views[0]))
        for view, picture in zip(views, self.pictures, strict=True):
            view.set_image(None, _extent(picture))
            view.fit()

    def show_pixels(self, pixels: list[Pixels]) -> None:
        """Show the pictures."""
        shown = zip(self._views(), self.pictures, self._turned(pixels), strict=True)
        for view, picture, image in shown:
            view.set_image(image, _extent(picture), pixel_size=picture.pixel_size)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the text above both items."""
        super().resizeEvent(event)
        self._fit_prompt()

    def _fit_prompt(self) -> None:
        """Fit the height of the text above both items to its contents, at most a third of the surface."""
        if self._pair is not None:
            document = self.browser.document()
            document.setTextWidth(self.width())
            self.browser.setFixedHeight(min(round(document.size().height()) + _FRAME, self.height() // 3))

    def _views(self) -> list[MarkingCanvas]:
        if self._pair is not None:
            views = self._pair.views.values()
            return [
                view for view, side in zip(views, self.sides or _PICTURES, strict=True) if side.has_picture
            ]
        return self._canvases[: len(self.pictures)]

    def show_marks(self, marks: CaseMarks) -> None:
        """Show the answers."""
        self._marks = marks
        if self._pair is not None:
            self._pair.set_chosen(marks.answers.get(self._questions[-1].name, ""))

    def press(self, name: str) -> None:
        """Give an answer; a digit answers the first open question."""
        words = name.split(" ", 2)
        if words[0] == "answer" and len(words) == 3:
            question = self._questions[int(words[1])]
            self.marked.emit("answer", {"question": question.name, "answer": words[2]})
        elif words[0] == "digit":
            number, question = int(words[1]), self._questions[self.question]
            if number <= len(question.classes):
                self._answer(question.classes[number - 1])
        elif words[0] == "side" and self._pair is not None:
            self._answer(words[1])

    def _answer(self, answer: str) -> None:
        question = self._questions[self.question]
        if answer in question.classes:
            self.marked.emit("answer", {"question": question.name, "answer": answer})

    def checked(self) -> set[str]:
        """Return the answers given."""
        numbers = {question.name: number for number, question in enumerate(self._questions)}
        return {f"answer {numbers[name]} {answer}" for name, answer in self._marks.answers.items()}

    def note(self, _marks: CaseMarks) -> str:
        """Show the consequence of the last answer."""
        return "The next case follows your last answer. Press P to go back and change it."

    def current_group(self) -> int:
        """Return the number of the question that the digits answer."""
        return self.question if len(self._questions) > 1 else -1
