"""Who drew each mask of a lot of files, of which structure, on which image: as files and their names tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.mask_records import MaskTable, RaterMask
from raterscope.app.formats.masks.naming import Named, bare, by_path, common_parts

__all__ = [
    "NAMELESS", "TRUTH_WORD", "SignedMask", "UnknownAnnotators", "is_truth", "names_by", "sign", "words_of",
]  # fmt: skip

TRUTH_WORD = "truth"
"""In the place of an annotator's name: the masks are the truth."""

NAMELESS = "structure"
"""What a structure is called that nobody named."""

_TRUE = {"truth", "groundtruth", "gt", "gold", "goldstandard", "reference"}


class UnknownAnnotators(InputError):  # noqa: N818 - a question to the person, rather than an error
    """Masks or points of which nothing tells who marked them.

    Attributes
    ----------
    files : tuple of Path
        All such files of the lot.
    guess : dict of file to str
        A name to begin with.
    detections : frozenset of Path
        Those of them that hold detections which left this program: rather the truth.
    """

    def __init__(
        self, files: Sequence[Path], guess: Mapping[Path, str], detections: Collection[Path] = ()
    ) -> None:
        self.files = tuple(files)
        self.guess = dict(guess)
        self.detections = frozenset(detections)
        more = f", nor {len(files) - 1:,} more file{'' if len(files) == 2 else 's'}" if len(files) > 1 else ""
        super().__init__(f"nothing tells who marked it{more}", file=files[0])


@dataclass(frozen=True, eq=False)
class SignedMask:
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


def words_of(name: str) -> list[str]:
    """Cut a file's name into its words: ["case", "07", "ct"] for Case-07_CT.nii.gz."""
    return re.findall(r"\d+|[^\W\d_]+", bare(Path(name)).casefold())


def sign(
    tables: Sequence[MaskTable],
    images: Sequence[str] = (),
    by_hand: Mapping[Path, str] | None = None,
    *,
    naming: str | None = None,
    truth: bool = False,
) -> list[SignedMask]:
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
    found: list[SignedMask] = []
    unknown: dict[Path, str] = {}
    for table in tables:
        name = names.get(table.path, Named())
        for mask in table.masks:
            who = TRUTH_WORD if truth else given.get(table.path) or mask.annotator or name.annotator
            if who is None:
                unknown.setdefault(table.path, bare(table.path))
            structure = mask.structure or name.structure or NAMELESS
            annotator = None if who is None or is_truth(who) else who
            found.append(SignedMask(table.path, annotator, structure, mask.item, name.item, mask))
    if unknown:
        raise UnknownAnnotators(tuple(unknown), unknown)
    return found


def is_truth(name: str) -> bool:
    """Tell whether an annotator's name says that the marks are the truth."""
    return name.casefold() in _TRUE


def names_by(files: Sequence[Path], images: Sequence[str], naming: str | None = None) -> dict[Path, Named]:
    """Find out what the names of files that came together tell, by a pattern where one fits; see `sign`."""
    names = _guessed(files, images)
    if naming is not None:
        names |= {path: name for path in names if (name := by_path(path, naming)) is not None}
    return names


def _guessed(files: Sequence[Path], images: Sequence[str]) -> dict[Path, Named]:
    """Guess from the names; those of true masks apart, for they do not follow the raters' pattern."""
    true = [file for file in files if _TRUE & _pieces(file)]
    others = [file for file in files if file not in true]
    found = common_parts(others)
    items = [name.item for name in found.values()]
    if len(items) > 1 and len(set(items)) == len(items) and not any(map(_has_number, items)):
        # Words that differ in every name, as the annotators do, name no images.
        found = {file: name._replace(item=None) for file, name in found.items()}
    for file, name in common_parts(true).items():
        raters = not others and len(true) > 1 and name.annotator is not None
        found[file] = name if raters else name._replace(annotator=TRUTH_WORD)
    for file in files:
        image, rest = _image_in(file, images)
        if image is not None:
            name = found.get(file, Named())
            annotator = name.annotator or (rest[0] if len(rest) == 1 else None)
            structure = name.structure
            if structure is not None and set(words_of(structure)) <= set(words_of(image)):
                structure = None
            found[file] = Named(image, annotator, structure)
    return found


def _has_number(text: str | None) -> bool:
    return text is None or any(map(str.isdigit, text))


def _pieces(file: Path) -> set[str]:
    return set(re.split(r"[_\-. \d]+", bare(file).casefold()))


def _image_in(file: Path, images: Sequence[str]) -> tuple[str | None, list[str]]:
    """Find the image whose name a mask's name begins with, and what else the name says."""
    words = words_of(file.name)
    best: tuple[int, str] | None = None
    for image in images:
        start = words_of(image)
        if start and words[: len(start)] == start and (best is None or len(start) > best[0]):
            best = len(start), image
    if best is None:
        return None, []
    rest = [word for word in re.split(r"[_\-. ]+", bare(file)) if word]
    while rest and len(words_of("_".join(rest))) > len(words) - best[0]:
        rest.pop(0)
    return best[1], [plain(word) for word in rest if word.casefold() not in _IDLE]


_IDLE = {"mask", "masks", "seg", "segmentation", "label", "labels", "annotation", "contour", "contours"}
