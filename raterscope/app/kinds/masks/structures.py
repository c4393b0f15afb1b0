"""What the structures of a study stand for in exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from raterscope.app.coding import NOTHING_CODED, Coding, merged
from raterscope.app.formats.masks.terminology import suggested
from raterscope.app.study import Study
from raterscope.app.study.masks import chosen_codings, imported_codings

__all__ = ["codings_of", "known_coding", "source_of"]


def codings_of(study: Study) -> Callable[[str], Coding]:
    """Give what tells each structure's coding: as the expert chose, else as files and its name say."""
    chosen, imported = chosen_codings(study), imported_codings(study)
    return lambda structure: known_coding(chosen, imported, structure)


def known_coding(chosen: Mapping[str, Coding], imported: Mapping[str, Coding], structure: str) -> Coding:
    """Give the coding of one structure: the expert's, else what files say, else what its name suggests.

    That something is tissue is what programs state where nobody chose a code: a usual name tells more.
    """
    if structure in chosen:
        return chosen[structure]
    return merged(imported.get(structure, NOTHING_CODED), suggested(structure))


def source_of(chosen: Mapping[str, Coding], imported: Mapping[str, Coding], structure: str) -> str:
    """Say where a structure's codes come from: "chosen", "file", "name", or "" for none."""
    if structure in chosen:
        return "chosen"
    of_files, of_name = imported.get(structure, NOTHING_CODED), suggested(structure)
    if of_files.specific or (of_files.type is not None and of_name.type is None):
        return "file"
    return "name" if of_name.type is not None else ""
