"""Type of ambiguous files (mask, image or volume), and annotators from the names of files."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.images import MAX_PIXELS
from raterscope.app.formats.masks.label_maps import is_jpeg, is_plain_image, is_voxel_file
from raterscope.app.formats.masks.naming import (
    NameParts,
    compare_names,
    parse_bids,
    parse_path,
    parse_reads,
    strip_suffixes,
)
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.sources import Source, Sources
from raterscope.app.formats.untrusted import check_shape
from raterscope.app.formats.volumes import find_volumes

MAX_DECODED = 64_000_000
"""Maximum bytes of uncompressed images to decode in search of masks; beyond it, only names are considered."""

_DENSE = 0.15
"""Compressed bytes per pixel and channel above which an image is a photograph, not a mask."""

_HEAD = 4096
"""Bytes allowed in a file besides its pixels."""

_LARGE = 64_000_000
"""Number of voxels above which a file is classified by its compressed bytes per voxel alone."""

_MASK_WORDS = re.compile(r"mask|seg|label|contour|annot|rater|reader|observer|truth", re.IGNORECASE)

_GREY_WORDS = re.compile(
    r"(?<![a-z])(masks?|segs?|segmentations?|prob(abilit(y|ies))?s?)(?![a-z])", re.IGNORECASE
)

_PICTURE_WORDS = re.compile(
    r"(?<![a-z])(images?|imgs?|raw|photos?|pictures?|originals?|inputs?)(tr|ts)?(?![a-z])", re.IGNORECASE
)

_ANNOTATION = re.compile(r"annotations? \d+", re.IGNORECASE)

Shape = tuple[int, int, int]
"""Numbers of slices, rows and columns."""


@dataclass
class Resolved:
    """Ambiguous files, sorted by the type they were resolved to."""

    images: list[Path] = field(default_factory=list)
    masks: list[Path] = field(default_factory=list)
    volumes: list[VolumeFile] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def resolve_voxels(
    doubtful: Sequence[Path], masks: Sequence[Path], anchors: set[Shape], sources: Sources
) -> Resolved:
    """Decide which doubtful files are masks and which are volumes, by their values, names and shapes.

    `doubtful`: NIfTI, NRRD and MetaImage files. `masks`: files that are certainly masks. `anchors`: shapes of
    available images and volumes.
    """

    def shape_of(path: Path) -> Shape:
        return sources.open(path).voxels().grid.shape

    shapes = {path: shape_of(path) for path in doubtful}
    large = {path for path, shape in shapes.items() if math.prod(shape) > _LARGE}
    marked = {shape_of(path) for path in masks if is_voxel_file(path)} | anchors
    count = Counter(shape for path, shape in shapes.items() if path not in large)
    settled = Resolved()
    for path, shape in shapes.items():
        greys = ""
        if path in large:
            is_volume = path.stat().st_size / math.prod(shape) >= _DENSE
        else:
            is_volume = shape not in marked and count[shape] < 2
            greys = "" if _GREY_WORDS.search(path.name) else sources.open(path).label_map().describe_greys()
        if not greys and (not is_volume or _MASK_WORDS.search(path.name)):
            settled.masks.append(path)
            continue
        volumes = find_volumes(sources.open(path))
        if path not in large:
            reason = f", not as a mask: {greys}" if greys else ", though it may be a label map"
            text = f"{plain(path.name)} is read as a volume{reason}."
            volumes = (replace(volumes[0], notices=(*volumes[0].notices, text)), *volumes[1:])
        settled.volumes += volumes
    return settled


def pictures_among(paths: Sequence[Path], tasks: Iterable[str], *, several: bool = True) -> set[Path]:
    """Find the images with the names of tasks, or of files that are known to show tasks.

    `several`: whether to return all images of the same name; otherwise none of them.
    """
    named: dict[str, set[Path]] = {}
    for path in paths:
        named.setdefault(path.name.casefold(), set()).add(path)
        named.setdefault(strip_suffixes(path).casefold(), set()).add(path)
    pictures: set[Path] = set()
    for task in tasks if named else ():
        # A table may contain addresses, and paths of any operating system.
        name = task.replace("\\", "/").rpartition("/")[2].casefold()
        meant = named.get(name) or named.get(name.rpartition(".")[0]) or set()
        pictures |= meant if several or len(meant) == 1 else set()
    return pictures


def resolve_pictures(
    paths: Sequence[Path],
    anchors: set[Shape],
    sources: Sources,
    sure: Collection[Path] = (),
    *,
    alone: bool,
    watch: Watch = silent,
) -> Resolved:
    """Find the masks among plain images, and the volumes among TIFFs.

    Greys are probabilities only if the file's name says so. Where the values of a file fit a mask and an
    image, the words of its name and folders decide. Without such words, it is a mask if there is an image of
    its size.

    `anchors`: shapes of available images and volumes.
    `sure`: files that are certainly no masks.
    `alone`: whether they are imported without tables and volumes.
    """
    pictures = []
    named = _named_types(paths)
    for done, path in enumerate(paths):
        watch(0.5 * done / len(paths), f"looking at {plain(path.name)}")
        picture = _picture(sources.open(path))
        is_photograph = path in sure or (is_jpeg(path) and named[path] != "mask")
        pictures.append(replace(picture, dense=True) if is_photograph else picture)
    count = Counter(picture.shape for picture in pictures)
    seen = {picture.shape for picture in pictures if picture.dense} | anchors
    candidates = [
        candidate
        for candidate in pictures
        if not candidate.dense
        and (candidate.shape in seen or (not candidate.colours and (alone or count[candidate.shape] > 1)))
    ]
    if sum(candidate.path.stat().st_size for candidate in candidates if not candidate.packed) > MAX_DECODED:
        candidates = [
            candidate for candidate in candidates if candidate.packed or named[candidate.path] == "mask"
        ]
    holds, several = {}, set()
    for done, candidate in enumerate(candidates):
        watch(0.5 + 0.5 * done / len(candidates), f"looking into {plain(candidate.path.name)}")
        source = sources.open(candidate.path)
        holds[candidate.path] = _holds(source)
        if holds[candidate.path] is None and not source.label_map().is_binary():
            several.add(candidate.path)
    seen |= {candidate.shape for candidate in pictures if holds.get(candidate.path) is False}
    outlined = {strip_suffixes(path) for path, holds_mask in holds.items() if holds_mask is not False
                and named[path] != "image"}  # fmt: skip
    settled, doubtful, dark = Resolved(), list[Path](), list[Path]()
    for candidate in pictures:
        path = candidate.path
        is_mask = holds.get(path, False)
        if is_mask and named[path] == "image" and strip_suffixes(path) in outlined:
            is_mask = False
            dark.append(path)
        elif is_mask is None:
            is_mask = named[path] == "mask" or (named[path] is None and candidate.shape in seen)
            if named[path] is None and path in several:
                doubtful.append(path)
        if is_mask:
            settled.masks.append(path)
        elif candidate.shape[0] > 1:
            settled.volumes += find_volumes(sources.open(path))
        else:
            settled.images.append(path)
    settled.notices += _explain_doubtful(doubtful, set(settled.masks))
    blurred = [path for path in settled.images if is_jpeg(path) and _is_called_mask(path)]
    if blurred:
        settled.notices.append(
            f"Imported as images, though named as masks: {list_names(blurred)}. A JPEG is read as a mask "
            "if it is black and white, and has the size of an image; save other masks as PNG."
        )
    if dark:
        settled.notices.append(
            f"Imported as images because of the name of the folder; they could be masks: {list_names(dark)}. "
            "If they are, check them in the tab Types, or import them with --kind masks."
        )
    return settled


def _is_called_mask(path: Path) -> bool:
    return _GREY_WORDS.search(f"{path.parent.name}/{path.stem}") is not None


def _named_types(paths: Sequence[Path]) -> dict[Path, str | None]:
    """Return "mask" or "image" by the words of a file's name, otherwise of its folders, the nearest first.

    Folders that all files share are ignored, and so is the word image in the name of a file.
    """
    shared = os.path.commonpath([path.parent for path in paths]) if paths else ""
    level = len(Path(shared).parts)
    types: dict[Path, str | None] = {}
    for path in paths:
        folders = reversed(path.parent.parts[level:])
        types[path] = "mask" if _MASK_WORDS.search(path.name) else None
        for folder in folders if types[path] is None else ():
            if _MASK_WORDS.search(folder):
                types[path] = "mask"
            elif _PICTURE_WORDS.search(folder):
                types[path] = "image"
            if types[path] is not None:
                break
    return types


def _explain_doubtful(doubtful: Sequence[Path], masks: Collection[Path]) -> list[str]:
    """Name the files with few grey values whose type neither values nor names show."""
    read_as = (("masks", [path for path in doubtful if path in masks], "images", "image"),
               ("images", [path for path in doubtful if path not in masks], "masks", "masks"))  # fmt: skip
    return [
        f"Imported as {taken}, though few greys may also be {other}: {list_names(paths)}. "
        f"If they are, change them in the tab Types, or import them with --kind {kind}."
        for taken, paths, other, kind in read_as
        if paths
    ]


def list_names(paths: Sequence[Path]) -> str:
    """List the first names of files and count the others."""
    return plain_names((path.name for path in paths), 3, 40)


def _holds(source: Source) -> bool | None:
    """Check whether a plain image holds masks; None if other images of its size must decide."""
    try:
        label_map = source.label_map()
    except InputError:
        return False
    holds = label_map.looks_marked()
    if holds is not False and label_map.has_greys():
        holds = _GREY_WORDS.search(source.path.stem) is not None
    if holds is False:
        source.release()
    return holds


@dataclass(frozen=True)
class _Picture:
    """Header of a plain image; `dense` if it cannot be a mask, or is too large to check."""

    path: Path
    shape: Shape
    colours: bool
    dense: bool
    packed: bool


def _picture(source: Source) -> _Picture:
    path, head = source.path, source.image()
    file = head.file
    if file.width * file.height > MAX_PIXELS:  # shown by tiles; never decoded as a whole, as a mask is
        return _Picture(path, (1, file.height, file.width), colours=True, dense=True, packed=True)
    pages = head.checked_pages()
    shape = (1 if pages is None else pages.slices, file.height, file.width)
    check_shape(path, shape)
    channels, packed = head.channels, head.is_compressed
    density = _DENSE * (1 if is_jpeg(path) else channels)
    heavy = path.stat().st_size > density * math.prod(shape) + _HEAD if packed else channels > 1
    return _Picture(path, shape, channels > 1, heavy or not is_plain_image(path), packed)


TRUTH_WORD = "truth"
"""Annotator's name that stands for the ground truth."""

_TRUE = {"truth", "groundtruth", "gt", "gold", "goldstandard", "reference"}

_TRUTH_WORDS = _TRUE | {"ground", "standard"}

_IDLE = {"mask", "masks", "seg", "segmentation", "label", "labels", "annotation", "contour", "contours"}


class UnknownAnnotators(InputError):  # noqa: N818 - a question to the user, not an error
    """Masks or points whose annotator is unknown."""

    is_question = True

    def __init__(
        self, files: Sequence[Path], guess: Mapping[Path, str], detections: Collection[Path] = ()
    ) -> None:
        self.files = tuple(files)  # all such files
        self.guess = dict(guess)  # by file: initial name
        # files of detections that this program exported: probably ground truth
        self.detections = frozenset(detections)
        self.skipped: tuple[str, ...] = ()  # notices of skipped files
        more = f", nor {len(files) - 1:,} more file{'' if len(files) == 2 else 's'}" if len(files) > 1 else ""
        super().__init__(f"its annotator is unknown{more}", file=files[0])


def words_of(name: str) -> list[str]:
    """Cut a file's name into its words: ["case", "07", "ct"] for Case-07_CT.nii.gz."""
    return re.findall(r"\d+|[^\W\d_]+", strip_suffixes(Path(name)).casefold())


def is_truth(name: str) -> bool:
    """Check whether an annotator's name marks ground truth."""
    return name.casefold() in _TRUE


def names_by(
    files: Sequence[Path], images: Sequence[str], naming: str | None = None
) -> dict[Path, NameParts]:
    """Parse the names of files that came together, by a pattern if one is given and fits.

    `images`: names of available images, with which files' names may begin. `naming`: see `naming.parse_name`.
    """
    names = _guessed(files, images) if files else {}
    if naming is not None:
        names |= {path: name for path in names if (name := parse_path(path, naming)) is not None}
    return names


def _guessed(files: Sequence[Path], images: Sequence[str]) -> dict[Path, NameParts]:
    """Guess the parts of names; ground truth separately, because it does not follow the raters' pattern."""
    words = {file: set(re.split(r"[_\-. \d]+", strip_suffixes(file).casefold())) for file in files}
    true = {file: None for file in files if _TRUE & words[file]}
    others = [file for file in files if file not in true]
    of_bids = {file: parts for file in others if (parts := parse_bids(file)) is not None}
    of_bids |= parse_reads(others)
    parts_by_file = compare_names([file for file in others if file not in of_bids])
    items = [name.item for name in parts_by_file.values()]
    if len(items) > 1 and len(set(items)) == len(items) and not any(map(_has_number, items)):
        # Words that differ in every name are annotators, not images.
        parts_by_file = {file: name._replace(item=None) for file, name in parts_by_file.items()}
    cases = {tuple(words_of(name.item)): name.item for name in parts_by_file.values() if name.item}
    for file, name in compare_names(true).items():
        raters = not others and len(true) > 1 and name.annotator is not None
        parts_by_file[file] = name if raters else _parts_of_truth(file, name, cases)
    parts_by_file |= _cases_in_folders(parts_by_file, images)
    called = {tuple(words_of(image)): image for image in reversed(images)}
    begun = {words[:n] for words in called for n in range(1, len(words))}
    for file in files:
        image, rest = _image_in(file, called)
        if image is not None:
            name = parts_by_file.get(file, NameParts())
            annotator = _not_in(image, name.annotator, name.item) or (rest[0] if len(rest) == 1 else None)
            if file in true and {word.casefold() for word in rest} <= _TRUTH_WORDS:
                annotator = TRUTH_WORD
            parts_by_file[file] = NameParts(image, annotator, _structure_beside(image, name))
        elif any(map(str.isdigit, stem := strip_suffixes(file))) and tuple(words_of(stem)) in begun:
            name = parts_by_file.get(file, NameParts())
            parts_by_file[file] = NameParts(stem, name.annotator, _structure_beside(stem, name))
    return parts_by_file | of_bids


def _parts_of_truth(file: Path, name: NameParts, cases: Mapping[tuple[str, ...], str]) -> NameParts:
    """Return the parts of the name of a ground truth mask, without the words for truth."""
    item = cases.get(tuple(word for word in words_of(file.name) if word not in _TRUTH_WORDS))
    return NameParts(item or name.item, TRUTH_WORD, _structure_beside(item or "", name))


def _cases_in_folders(names: Mapping[Path, NameParts], images: Sequence[str]) -> dict[Path, NameParts]:
    """Return other parts for files whose folders look like annotators, but are cases.

    Such folders have the names of images, or of the images' folders. Without images, a folder with
    "annotation 1" is a case, a folder with "mask 1" an annotator.
    """
    image_of: dict[str, list[str]] = {}
    for image in images:
        folder = image.rpartition("/")[0].rpartition("/")[2] or strip_suffixes(Path(image))
        image_of.setdefault(folder.casefold(), []).append(image)
    files = [file for file, name in names.items() if name.item and name.annotator == file.parent.name]
    if not images and all(_ANNOTATION.fullmatch(names[file].item or "") for file in files):
        image_of = {file.parent.name.casefold(): [file.parent.name] for file in files}
    cases = [image_of.get(file.parent.name.casefold(), []) for file in files]
    if any(len(case) != 1 for case in cases):
        return {}
    return {
        file: names[file]._replace(item=image, annotator=names[file].item)
        for file, (image,) in zip(files, cases, strict=True)
    }


def _structure_beside(image: str, name: NameParts) -> str | None:
    """Return the structure in a file's name; None if its words name the image or the truth."""
    structure = _not_in(image, name.structure)
    return None if structure is None or set(words_of(structure)) <= _TRUTH_WORDS else structure


def _not_in(image: str, text: str | None, instead: str | None = None) -> str | None:
    """Return a part of a file's name, or `instead` if all its words are those of the image."""
    if text is None or not set(words_of(text)) <= set(words_of(image)):
        return text
    return None if instead is None else _not_in(image, instead)


def _has_number(text: str | None) -> bool:
    return text is None or any(map(str.isdigit, text))


def _image_in(file: Path, images: Mapping[tuple[str, ...], str]) -> tuple[str | None, list[str]]:
    """Find the image whose name is the longest beginning of a mask's name; return the remaining words too."""
    words = words_of(file.name)
    most = next((n for n in range(len(words), 0, -1) if tuple(words[:n]) in images), None)
    if most is None:
        return None, []
    rest = [word for word in re.split(r"[_\-. ]+", strip_suffixes(file)) if word]
    while rest and len(words_of("_".join(rest))) > len(words) - most:
        rest.pop(0)
    return images[tuple(words[:most])], [plain(word) for word in rest if word.casefold() not in _IDLE]
