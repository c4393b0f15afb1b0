"""Annotators from the names of files, and the question where a name does not tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.naming import Named, bare, by_path, common_parts

__all__ = ["TRUTH_WORD", "UnknownAnnotators", "is_truth", "names_by", "words_of"]

TRUTH_WORD = "truth"
"""In the place of an annotator's name: the marks are the truth."""

_TRUE = {"truth", "groundtruth", "gt", "gold", "goldstandard", "reference"}

_IDLE = {"mask", "masks", "seg", "segmentation", "label", "labels", "annotation", "contour", "contours"}


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


def words_of(name: str) -> list[str]:
    """Cut a file's name into its words: ["case", "07", "ct"] for Case-07_CT.nii.gz."""
    return re.findall(r"\d+|[^\W\d_]+", bare(Path(name)).casefold())


def is_truth(name: str) -> bool:
    """Tell whether an annotator's name says that the marks are the truth."""
    return name.casefold() in _TRUE


def names_by(files: Sequence[Path], images: Sequence[str], naming: str | None = None) -> dict[Path, Named]:
    """Find out what the names of files that came together tell; by a pattern, where one is given and fits.

    Parameters
    ----------
    files : sequence of Path
    images : sequence of str
        Names of the images at hand, which files' names may begin with.
    naming : str, optional
        See `naming.by_pattern`.
    """
    names = _guessed(files, images)
    if naming is not None:
        names |= {path: name for path in names if (name := by_path(path, naming)) is not None}
    return names


def _guessed(files: Sequence[Path], images: Sequence[str]) -> dict[Path, Named]:
    """Guess from the names; those of true masks apart, for they do not follow the raters' pattern."""
    true = {file: None for file in files if _TRUE & _pieces(file)}
    others = [file for file in files if file not in true]
    found = common_parts(others)
    items = [name.item for name in found.values()]
    if len(items) > 1 and len(set(items)) == len(items) and not any(map(_has_number, items)):
        # Words that differ in every name, as the annotators do, name no images.
        found = {file: name._replace(item=None) for file, name in found.items()}
    for file, name in common_parts(true).items():
        raters = not others and len(true) > 1 and name.annotator is not None
        found[file] = name if raters else name._replace(annotator=TRUTH_WORD)
    called = {tuple(words_of(image)): image for image in reversed(images)}
    for file in files:
        image, rest = _image_in(file, called)
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


def _image_in(file: Path, images: Mapping[tuple[str, ...], str]) -> tuple[str | None, list[str]]:
    """Find the image whose words, the most that any has, begin a mask's name; and the name's other words."""
    words = words_of(file.name)
    most = next((n for n in range(len(words), 0, -1) if tuple(words[:n]) in images), None)
    if most is None:
        return None, []
    rest = [word for word in re.split(r"[_\-. ]+", bare(file)) if word]
    while rest and len(words_of("_".join(rest))) > len(words) - most:
        rest.pop(0)
    return images[tuple(words[:most])], [plain(word) for word in rest if word.casefold() not in _IDLE]
