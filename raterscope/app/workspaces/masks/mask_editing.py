"""Edits of the whole structure on screen: fill holes, smooth, margin, combine, copy; and its code in exports.

The voxels changed by an edit are stored like a painted stroke, and are undone together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import Signal

from raterscope.algorithms.masks.data import OPEN, BoolArray, box_around, overlap, slices_of
from raterscope.algorithms.masks.distance import (
    COMBINATIONS,
    Combination,
    add_margin,
    combine,
    fill_holes,
    smooth,
)
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch
from raterscope.app.coding import ROLES, Code, Coding
from raterscope.app.formats.masks.terminology import (
    CATEGORIES,
    LATERALITIES,
    find_code,
    tg263_name,
    tg263_names,
    usual_category,
)
from raterscope.app.jobs import Job
from raterscope.app.kinds.masks.exports import coding_source, known_coding
from raterscope.app.review import Decision, StructureSubject
from raterscope.app.session import while_shown
from raterscope.app.study import Study
from raterscope.app.study.masks import chosen_codings, imported_codings
from raterscope.app.study.records import MaskRecord
from raterscope.app.workspaces.masks.region_review import RegionReview
from raterscope.app.workspaces.masks.scene import Piece, Scene, consensus_of
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPart
from raterscope.widgets.dialogs.review_dialogs import (
    CodeChoice,
    CombineDialog,
    MarginDialog,
    StructureChoice,
    StructureDialog,
    StructureOffer,
)
from raterscope.widgets.volume.scene import Stroke

Box = tuple[int, int, int]

NOTHING_DRAWN = "There is no mask to edit yet. Press Fuse (F5), or draw with the brush (B)."
UNCHANGED = "This changes no voxel."
_COMBINED = {
    "add": "add the other mask",
    "subtract": "remove the other mask",
    "intersect": "keep the overlap with the other mask",
    "replace": "replace by the other mask",
}
assert tuple(_COMBINED) == COMBINATIONS


class MaskEditing(MasksPart):
    """Editing of the consensus by decisions; in blind mode, of the expert's own drawing."""

    def __init__(self, core: MasksCore, reviewing: RegionReview) -> None:
        super().__init__(core)
        self._reviewing = reviewing
        self._margin = 3.0
        self._waiting: deque[tuple[object, Callable[[], None]]] = deque()
        """Edits that start after the earlier ones are stored, each with its case and structure."""
        self._running = 0

    def fill_holes(self) -> None:
        """Fill holes on each slice."""
        self._edit("fill holes", lambda mask, _grid, _origin: fill_holes(mask))

    def smooth(self) -> None:
        """Smooth the outline a little."""
        self._edit("smooth", lambda mask, grid, _origin: smooth(mask, grid.spacing), room=3.0)

    @while_shown
    def ask_margin(self) -> None:
        """Ask for a margin, and grow or shrink the structure by it."""
        if self._reviewing.edited is None:
            self._screen.message.emit(NOTHING_DRAWN)
            return
        unit = self._session.scene.image.lattice.length_unit
        dialog = MarginDialog(self._session.part, unit, self._margin, self._screen)
        dialog.accepted.connect(lambda: self._add_margin(dialog.margin))
        dialog.open()

    def _add_margin(self, margin: float) -> None:
        self._margin = margin
        unit = self._session.scene.image.lattice.length_unit
        edit = f"add a margin of {margin:g} {unit}"
        self._edit(edit, partial(_with_margin, margin), room=max(margin, 0.0))

    @while_shown
    def ask_combination(self) -> None:
        """Ask for another mask of the case, and combine the structure with it."""
        if self._session.covered:
            self._screen.message.emit("The raters' masks are hidden until you have settled the structure.")
            return
        others = self._others()
        if not others:
            self._screen.message.emit("This case has no other mask.")
            return
        words = {key: words for key, (words, _) in others.items()}
        dialog = CombineDialog(self._session.part, _COMBINED, words, self._screen)
        dialog.accepted.connect(
            lambda: self._combine(
                next(how for how in COMBINATIONS if how == dialog.how), *others[dialog.other]
            )
        )
        dialog.open()

    def _others(self) -> Mapping[str, tuple[str, Piece | MaskRecord]]:
        """Return the raters' masks of the structure and other structures' consensus: keys and labels."""
        scene, structure = self._session.scene, self._session.part
        others: dict[str, tuple[str, Piece | MaskRecord]] = {}
        for rater, record in scene.drawn(structure).items():
            others[f"rater {rater}"] = f"{rater}: {structure}", record
        for other in scene.structures if not self._session.blind else ():
            piece = None if other == structure else consensus_of(scene, other, self._reviewing.decisions())
            if piece is not None:
                others[f"structure {other}"] = f"consensus: {other}", piece
        return others

    def _combine(self, how: Combination, name: str, other: Piece | MaskRecord) -> None:
        origin, values = other.origin, np.asarray(other.values > 0.5)
        edit = _COMBINED[how].replace("the other mask", name)
        self._edit(edit, partial(_combined, how, origin, values), box=(origin, values.shape))

    def copy_slice(self, step: int) -> None:
        """Copy the structure on the slice under the crosshair to the next or previous slice, and go there."""
        self._start(partial(self._copy_slice, step))

    def _copy_slice(self, step: int) -> None:
        piece, at = self._reviewing.edited, self._screen.volume.crosshair
        target = at[0] + step
        slices = self._session.scene.image.lattice.shape[0]
        row = None if piece is None else at[0] - piece.origin[0]
        if piece is None or row is None or not 0 <= row < len(piece.values) or not piece.values[row].any():
            self._screen.message.emit(f"There is nothing to copy on slice {at[0] + 1}.")
        elif not 0 <= target < slices:
            self._screen.message.emit("There is no further slice.")
        else:
            source = piece.values[row]
            other = target - piece.origin[0]
            old = piece.values[other] if 0 <= other < len(piece.values) else np.zeros_like(source)
            origin = (target, piece.origin[1], piece.origin[2])
            self._screen.volume.go_to((target, at[1], at[2]))
            stroke = _difference(old[None], source[None], origin)
            edit = f"copy slice {at[0] + 1}"
            self._store(self._session.scene, self._session.part, edit, stroke)

    def _edit(
        self,
        edit: str,
        change: Callable[[BoolArray, Grid, Box], BoolArray],
        *,
        room: float = 0.0,
        box: tuple[Box, tuple[int, ...]] | None = None,
    ) -> None:
        """Change the mask outside the GUI thread.

        `edit`: description for the history. `room`: maximum growth of the mask, in mm or pixels.
        """
        self._start(partial(self._change, edit, change, room, box))

    @while_shown
    def _start(self, edit: Callable[[], None]) -> None:
        """Start an edit now, or after the running ones, with their result."""
        self._waiting.append((self._key, edit))
        self._start_next()

    @property
    def _key(self) -> object:
        return (self._session.scene.image.id, self._session.part) if self._session.shown else None

    def _start_next(self) -> None:
        while self._waiting and not self._running:
            key, edit = self._waiting.popleft()
            if key == self._key:
                edit()

    def _wait_for(self, job: Job) -> None:
        self._running += 1
        job.ended.connect(self._on_ended)

    def _on_ended(self) -> None:
        self._running -= 1
        self._start_next()

    def _change(
        self,
        edit: str,
        change: Callable[[BoolArray, Grid, Box], BoolArray],
        room: float,
        box: tuple[Box, tuple[int, ...]] | None,
    ) -> None:
        piece, scene = self._reviewing.edited, self._session.scene
        if piece is None or not piece.values.any():
            self._screen.message.emit(NOTHING_DRAWN)
            return
        work = partial(_edited, piece, scene.image.lattice, change, room, box)
        job = self._jobs.start(f"{edit[:1].upper()}{edit[1:]}", work)
        job.finished.connect(partial(self._store, scene, self._session.part, edit))
        job.failed.connect(self._screen.message)
        self._wait_for(job)

    @while_shown
    def _store(self, scene: Scene, structure: str, edit: str, stroke: Stroke | None) -> None:
        if (self._session.scene.image.id, self._session.part) != (scene.image.id, structure):
            return
        if stroke is None:
            self._screen.message.emit(UNCHANGED)
        elif job := self._reviewing.paint(stroke, edit):
            self._wait_for(job)


def _with_margin(margin: float, mask: BoolArray, grid: Grid, origin: Box) -> BoolArray:
    positions = grid.uneven_positions
    if positions is not None:
        positions = positions[origin[0] : origin[0] + len(mask)]
    return add_margin(mask, grid.spacing, margin, positions)


def _combined(
    how: Combination, other_origin: Box, other: BoolArray, mask: BoolArray, _grid: Grid, origin: Box
) -> BoolArray:
    values = np.zeros_like(mask)
    own, others = overlap(origin, mask.shape, other_origin, other.shape)
    values[own] = other[others]
    return combine(mask, values, how)


def _edited(
    piece: Piece,
    grid: Grid,
    change: Callable[[BoolArray, Grid, Box], BoolArray],
    room: float,
    box: tuple[Box, tuple[int, ...]] | None,
    watch: Watch,
) -> Stroke | None:
    """Change a mask in a box with the necessary margin; None if nothing changes."""
    watch(0.0, "editing the mask")
    marked = np.argwhere(piece.values)
    low = np.add(piece.origin, marked.min(axis=0))
    past = np.add(piece.origin, marked.max(axis=0) + 1)
    first, shape = box_around(
        [(low.tolist(), (past - low).tolist()), *([box] if box is not None and min(box[1]) else [])]
    )
    positions = grid.uneven_positions
    thickness = grid.spacing[0] if positions is None else float(np.diff(positions).min())
    steps = (thickness, *grid.spacing[1:])
    reach = [int(np.ceil(room / step)) + 1 for step in steps]
    begin = np.maximum(np.subtract(first, reach), 0)
    end = np.minimum(np.add(np.add(first, shape), reach), grid.shape)
    origin = (int(begin[0]), int(begin[1]), int(begin[2]))
    old = np.zeros(tuple(end - begin), dtype=np.bool_)
    inner, source = overlap(origin, old.shape, piece.origin, piece.values.shape)
    old[inner] = piece.values[source]
    return _difference(old, change(old, grid, origin), origin)


def _difference(old: BoolArray, new: BoolArray, origin: Box) -> Stroke | None:
    """Return the changed voxels as a cropped stroke."""
    changed = old != new
    if not changed.any():
        return None
    places = np.argwhere(changed)
    low, past = places.min(axis=0), places.max(axis=0) + 1
    part = slices_of(low.tolist(), (past - low).tolist())
    values = np.where(changed[part], new[part], OPEN).astype(np.int8)
    z, y, x = np.add(origin, low).tolist()
    return Stroke((z, y, x), values, "axial", z)


_SOURCES = {
    "chosen": "Your choice. Written to DICOM SEG, RTSTRUCT and .seg.nrrd.",
    "file": "From the imported files. Written to DICOM SEG, RTSTRUCT and .seg.nrrd.",
    "name": "Recognised by its name. Written to DICOM SEG, RTSTRUCT and .seg.nrrd.",
    "": "This structure has no code. Search for one to include it in DICOM SEG and RTSTRUCT.",
}


class StructureCoding(MasksPart):
    """Choice of a structure's code, recorded as a decision."""

    refused = Signal(str)  # why there is no structure to describe

    def start(self, item: int | None, structure: str) -> None:
        """Ask for the coding of a structure of the case on screen."""
        if item is None or not structure:
            self.refused.emit("Choose a case with masks first.")
            return
        job = self._document.ask("Reading a structure", partial(_read, structure))
        job.finished.connect(partial(self._open, item, structure))

    def _open(self, item: int, structure: str, answer: tuple[Coding, str]) -> None:
        coding, source = answer
        label = tg263_name(structure)
        offer = StructureOffer(
            categories=tuple(map(_choice, CATEGORIES)),
            roles=ROLES,
            labels=("", *tg263_names()),
            suggested_label=label if label != structure else "",
            sides={side: side for side in LATERALITIES},
        )
        known = {code: side for side, code in LATERALITIES.items()}
        side = "" if coding.modifier is None else known.get(coding.modifier, "")
        chosen = StructureChoice(
            type=None if coding.type is None else _choice(coding.type),
            category=None if coding.category is None else _choice(coding.category),
            side=side, colour=coding.colour, role=coding.role, label=coding.label,
        )  # fmt: skip
        dialog = StructureDialog(structure, chosen, offer, _SOURCES[source], self._screen)
        dialog.accepted.connect(partial(self._on_accepted, item, structure, coding, dialog))
        loading = self._jobs.start("Loading codes", _load, quiet=True)
        loading.finished.connect(dialog.set_search)
        dialog.open()

    def _on_accepted(self, item: int, structure: str, previous: Coding, dialog: StructureDialog) -> None:
        coding = _coding_of(dialog.choice, previous)
        if coding != previous:
            subject = StructureSubject(structure=structure, coding=coding)
            self._document.record(Decision(verb="describe", item=item, subject=subject))


def _read(structure: str, study: Study, _watch: Watch) -> tuple[Coding, str]:
    chosen, imported = chosen_codings(study), imported_codings(study)
    return known_coding(chosen, imported, structure), coding_source(chosen, imported, structure)


def _load(watch: Watch) -> object:
    watch(0.0, "loading codes")
    _search("heart")  # loads the codes before the first search
    return _search


def _search(text: str) -> tuple[CodeChoice, ...]:
    return tuple(_offered(code) for code in find_code(text))


def _offered(code: Code) -> CodeChoice:
    category = usual_category(code)
    return replace(_choice(code), category="" if category is None else _choice(category).code)


def _choice(code: Code) -> CodeChoice:
    return CodeChoice(f"{code.scheme}:{code.value}", code.meaning)


def _code(choice: CodeChoice) -> Code:
    scheme, _, value = choice.code.partition(":")
    return Code(value, scheme, choice.meaning)


def _coding_of(choice: StructureChoice, previous: Coding) -> Coding:
    """Make a coding from the dialog; values that the dialog does not show are kept."""
    kind = None if choice.type is None else _code(choice.type)
    same = kind is not None and kind.same_as(previous.type)
    base = previous if same else replace(previous, modifier=None, region=None)
    side = LATERALITIES.get(choice.side)
    foreign = base.modifier is not None and base.modifier not in LATERALITIES.values()
    return replace(
        base,
        type=kind,
        category=None if kind is None or choice.category is None else _code(choice.category),
        modifier=None if kind is None else side or (base.modifier if foreign else None),
        colour=choice.colour,
        role=choice.role,
        label=choice.label,
    )
