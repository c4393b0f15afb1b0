"""Who drew each mask of a lot of files, of which structure, on which image: as files and their names tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raterscope.app.annotator_names import TRUTH_WORD, UnknownAnnotators, is_truth, names_by
from raterscope.app.formats.masks.naming import Named, bare
from raterscope.app.formats.records import MaskTable, RaterMask

NAMELESS = "structure"
"""What a structure is called that nobody named."""


@dataclass(frozen=True, eq=False)
class AttributedMask:
    """A mask of which is known who drew it.

    Attributes
    ----------
    file : Path
    annotator : str or None
        None for the truth.
    structure : str
    item : str or None
        The image, as the file itself tells.
    hint : str or None
        The image, as the names of the files let guess.
    mask : RaterMask
    """

    file: Path
    annotator: str | None
    structure: str
    item: str | None
    hint: str | None
    mask: RaterMask


def assign_raters(
    tables: Sequence[MaskTable],
    images: Sequence[str] = (),
    by_hand: Mapping[Path, str] | None = None,
    *,
    naming: str | None = None,
    truth: bool = False,
) -> list[AttributedMask]:
    """Find out who drew every mask.

    What is told by hand goes before what a file says of itself, and that before what the names of all files
    together let guess. A file called truth, gt or gold holds the truth.

    Parameters
    ----------
    tables : sequence of MaskTable
    images : sequence of str
        Names of the images at hand, which names of masks may begin with.
    by_hand : mapping of file to annotator, optional
        `TRUTH_WORD` for the truth.
    naming : str, optional
        A pattern that tells all that there is in a name of that pattern, see `naming.by_pattern`.
    truth : bool
        All of them are the truth.

    Raises
    ------
    UnknownAnnotators
        Where nothing tells.
    InputError
        Where two files hold the same annotator's mask of the same structure on the same image.
    """
    names = names_by([table.path for table in tables], images, naming)
    given = by_hand or {}
    found: list[AttributedMask] = []
    unknown: dict[Path, str] = {}
    for table in tables:
        name = names.get(table.path, Named())
        for mask in table.masks:
            who = TRUTH_WORD if truth else given.get(table.path) or mask.annotator or name.annotator
            if who is None:
                unknown.setdefault(table.path, bare(table.path))
            structure = mask.structure or name.structure or NAMELESS
            annotator = None if who is None or is_truth(who) else who
            found.append(AttributedMask(table.path, annotator, structure, mask.item, name.item, mask))
    if unknown:
        raise UnknownAnnotators(tuple(unknown), unknown)
    return found
