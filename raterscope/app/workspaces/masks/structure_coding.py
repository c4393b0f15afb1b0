"""Code, side and colour of a structure in exports, read from the study and set in a dialog."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import Signal

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
from raterscope.app.kinds.masks.exports import coding_source, known_coding
from raterscope.app.review import Decision, StructureSubject
from raterscope.app.study import Study
from raterscope.app.study.masks import chosen_codings, imported_codings
from raterscope.app.workspaces.masks.screen import MasksPart
from raterscope.widgets.dialogs.review_dialogs import (
    CodeChoice,
    StructureChoice,
    StructureDialog,
    StructureOffer,
)

_SOURCES = {
    "chosen": "As you chose it. It is stated in DICOM SEG, RTSTRUCT and .seg.nrrd.",
    "file": "As the imported files say. It is stated in DICOM SEG, RTSTRUCT and .seg.nrrd.",
    "name": "Recognised by its name. It is stated in DICOM SEG, RTSTRUCT and .seg.nrrd.",
    "": "This structure has no code. Search for one to include it in DICOM SEG and RTSTRUCT.",
}


class StructureCoding(MasksPart):
    """Asks for the code of a structure and records it."""

    refused = Signal(str)  # why there is no structure to describe

    def start(self, item: int | None, structure: str) -> None:
        """Ask about a structure of the case on screen."""
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
    """Make a coding from the dialog; values that it does not show are kept."""
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
