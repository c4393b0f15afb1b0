"""Detection of file types from content: tables, points, labels, images, volumes, masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.ambiguous_files import Resolved, Shape, pictures_among, resolve_pictures, resolve_voxels
from raterscope.app.errors import InputError, SkippedFiles, plain
from raterscope.app.formats import is_named_truth
from raterscope.app.formats.coco import CocoDocument
from raterscope.app.formats.labels import find_labels
from raterscope.app.formats.masks import holds_masks
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.pairs import has_pairs
from raterscope.app.formats.pairs.table import holds_ranking
from raterscope.app.formats.points import has_points, holds_scores
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.signatures import IMAGES
from raterscope.app.formats.sources import Source, Sources, may_hold_annotations
from raterscope.app.formats.tables import find_columns
from raterscope.app.formats.untrusted import refuse_special
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.formats.volumes.dicom_headers import DicomFile, NoImageError
from raterscope.app.formats.volumes.voxel_files import check_complete
from raterscope.app.formats.workbooks import WORKBOOKS
from raterscope.text import natural

_DICOMDIR = "dicomdir"
_TABLES = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".tsv", ".parquet", *WORKBOOKS)
_LISTS = {
    "clicks": "tables", "labels": "labels", "true-labels": "labels", "pairs": "pairs",
    "true-ranking": "rankings", "scores": "tables", "image": "images", "masks": "masks",
}  # fmt: skip
"""Fields of files whose kind the user selects."""


@dataclass(frozen=True)
class OtherFiles:
    """Files of a kind of annotation with its own reader."""

    kind: str
    file_kinds: tuple[str, ...]  # what its files may hold
    recognises: Callable[[Source], bool]  # Return whether a file holds annotations of the kind


@dataclass
class ImportCandidates:
    """Files by type, during and after their classification."""

    named: tuple[Path, ...] = ()  # files and folders that were named
    kind: str | None = None
    tables: list[Path] = field(default_factory=list)  # of clicks or true points
    points: list[Path] = field(default_factory=list)  # other files of points
    # files of annotations without any mark: files of points if other files hold points
    bare: list[Path] = field(default_factory=list)
    labels: list[Path] = field(default_factory=list)  # tables and other files, of true labels too
    pairs: list[Path] = field(default_factory=list)
    rankings: list[Path] = field(default_factory=list)  # tables of ground-truth rankings
    # files of marks that also contain labels: answers to questions, choices, tags
    beside: list[Path] = field(default_factory=list)
    images: list[Path] = field(default_factory=list)
    masks: list[Path] = field(default_factory=list)
    volumes: list[VolumeFile] = field(default_factory=list)
    # masks or volumes: `resolve_ambiguous` decides, and also which of the images are masks
    doubtful: list[Path] = field(default_factory=list)
    # skipped files of a folder, among them tables with an ambiguous header; to import one, name it
    left: list[Path] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    readers: Sequence[OtherFiles] = ()
    # by kind: files of the kinds with their own reader, recognised by `readers`
    others: dict[str, list[Path]] = field(default_factory=dict)
    # masks, points and tables of marks in a folder, not named by the user: unreadable ones are skipped
    from_folders: frozenset[Path] = frozenset()
    skipped: SkippedFiles = field(default_factory=SkippedFiles)
    excluded: frozenset[Path] = frozenset()  # files of folders that are not read
    # whether the user declared an image, NIfTI, NRRD or MetaImage file a mask
    are_masks: Mapping[Path, bool] = field(default_factory=dict)
    sources: Sources = field(default_factory=Sources)  # the parsed files of annotations
    # by COCO id: names of images; empty if files disagree
    coco_images: dict[str, str] = field(default_factory=dict)
    _files: set[Path] = field(default_factory=set)

    def put_other(self, path: Path) -> bool:
        """Add a file to the files of a kind with its own reader; return whether it is one."""
        for reader in self.readers:
            named = self.kind in reader.file_kinds
            if named or (self.kind is None and path.is_file() and reader.recognises(self.sources.open(path))):
                self.others.setdefault(reader.kind, []).append(path)
                return True
        return False

    def put_declared(self, path: Path, watch: Watch) -> bool:
        """Add a file that the user declared a mask or a volume; return whether it is one."""
        is_mask = self.are_masks.get(path)
        if is_mask:
            self.masks.append(path)
        elif is_mask is False and is_voxel_file(path):
            self.add_volumes(find_volumes(self.sources.open(path), watch))
        else:
            return False
        return True

    def has(self, path: Path) -> bool:
        """Check whether a file belongs to a volume found earlier."""
        return path in self._files

    def add_part(self, path: Path) -> None:
        """Add a file that is part of a volume, such as the data of a separate header."""
        self._files.add(path)

    def add_volumes(self, volumes: Iterable[VolumeFile]) -> None:
        """Add volumes, except those found earlier."""
        for volume in volumes:
            if not self._files.issuperset(volume.files) or volume not in self.volumes:
                self.volumes.append(volume)
                self._files.update(volume.files)

    def put(self, path: Path, others: list[Path]) -> None:
        """Add a file of annotations to the files of points, of labels, or to others, by its content."""
        if holds_scores(self.sources.open(path)):
            self.tables.append(path)
            return
        if self.put_points(path):
            if path.suffix.casefold() not in (".json", ".xml"):
                return  # there are no labels beside the points
            others = []
        source = self.sources.open(path)
        if find_labels(source, alone=False) is None:
            others.append(path)
        elif find_labels(source) is not None:
            self.labels.append(path)
        else:
            others.append(path)
            self.beside.append(path)

    def put_points(self, path: Path) -> bool:
        """Add a file of points if it contains any; return whether it is not a file of masks."""
        points = has_points(self.sources.open(path))
        self._note_images(path)
        if points == "nothing":
            self.bare.append(path)
        elif points is not None or path.suffix.casefold() == ".geojson":
            self.points.append(path)
            return points != "beside"
        return points == "nothing"

    def _note_images(self, path: Path) -> None:
        """Note the ids of images that a COCO file lists, by which results name them."""
        with suppress(InputError):
            document = self.sources.open(path).document() if path.suffix.casefold() == ".json" else None
            if isinstance(document, CocoDocument):
                for number, name in document.image_names().items():
                    if self.coco_images.setdefault(number, name) != name:
                        self.coco_images[number] = ""

    def add(self, settled: Resolved) -> None:
        """Add the files whose type was ambiguous."""
        self.images += settled.images
        self.masks += settled.masks
        self.add_volumes(settled.volumes)
        self.notices += settled.notices


def sort_files(paths: Sequence[Path], kind: str | None = None, watch: Watch = silent) -> ImportCandidates:
    """Classify each file; for a folder, the files in it and in its subfolders.

    Raises `InputError` for a file that is named and cannot be read, and for a folder without anything to
    read.

    `kind`: one of `formats.KINDS`, if the files do not show it.
    """
    candidates = classify_files(paths, kind, watch=part(watch, 0.0, 0.8))
    resolve_ambiguous(candidates, watch=part(watch, 0.8, 1.0))
    return candidates


def classify_files(
    paths: Sequence[Path],
    kind: str | None = None,
    sources: Sources | None = None,
    watch: Watch = silent,
    *,
    readers: Sequence[OtherFiles] = (),
    skip_unreadable: bool = False,
    excluded: frozenset[Path] = frozenset(),
    are_masks: Mapping[Path, bool] = MappingProxyType({}),
) -> ImportCandidates:
    """Classify each file as far as its own content determines the type; see `sort_files`.

    `skip_unreadable`: whether named files that cannot be read are skipped, as those of folders are.
    `excluded`: files of folders that are not read. `are_masks`: by file, whether the user declared it a mask.
    """
    sources = Sources() if sources is None else sources
    skipped = SkippedFiles(() if skip_unreadable else paths)
    candidates = ImportCandidates(
        tuple(paths), kind, sources=sources, readers=readers, skipped=skipped, excluded=excluded,
        are_masks=are_masks,
    )  # fmt: skip
    reports: list[NoImageError] = []  # folders of reports or plans, fetched with the images of a PACS
    for path, step in steps_of(watch, paths):
        with skipped.reading(path):
            if not path.is_dir():
                _sort_file(path, kind, candidates, step)
                continue
            try:
                _sort_folder(path, kind, candidates, step)
            except NoImageError as error:
                reports.append(error)
    if reports and not _count(candidates):
        raise reports[0]
    candidates.notices += [f"Skipped: {str(error).rstrip('.')}." for error in reports]
    bare = candidates.bare
    if any(path.suffix.casefold() == ".json" for path in candidates.tables):  # results of listed images
        bare = [
            path for path in bare if not isinstance(candidates.sources.open(path).document(), CocoDocument)
        ]
    (candidates.points if candidates.points else candidates.masks).extend(bare)
    return candidates


def resolve_ambiguous(
    candidates: ImportCandidates,
    shapes: Sequence[Shape] = (),
    tasks: Iterable[str] = (),
    clicked: Iterable[str] = (),
    watch: Watch = silent,
) -> None:
    """Decide the type of ambiguous files by the other files of the import.

    A plain image is a mask if its pixels look like one, and there is another image or volume of its size, or
    no other file. If its pixels are ambiguous, the words of its name and folders decide; without such words,
    a notice names the file. It is never a mask if it has the name of a task or item, or if it alone has the
    name of an image with clicks. Photographs are not decoded.

    `shapes`: (slices, rows, columns) of images that are available already. `tasks`: names of tasks and items
    that annotators judged, and of the picture files named for them. `clicked`: names of images that
    annotators clicked on.
    """
    with_others = candidates.kind == "truth" and bool(
        candidates.tables
        or candidates.points
        or candidates.labels
        or any(map(may_hold_annotations, candidates.masks))
    )
    if with_others:  # tables and files of annotations contain the annotations: plain images need not be masks
        candidates.images = [path for path in candidates.masks if candidates.sources.open(path).is_image()]
        candidates.masks = [path for path in candidates.masks if path not in candidates.images]
    if candidates.kind is None or with_others:
        anchors = {*shapes, *(volume.grid.shape for volume in candidates.volumes)}
        candidates.add(resolve_voxels(candidates.doubtful, candidates.masks, anchors, candidates.sources))
        pictures = pictures_among(candidates.images, tasks)
        alone = not (
            candidates.tables
            or candidates.points
            or candidates.labels
            or candidates.pairs
            or candidates.volumes
            or candidates.others
        )
        others = [path for path in candidates.images if path not in pictures]
        candidates.images = [path for path in candidates.images if path in pictures]
        sure = pictures_among(others, clicked, several=False).union(candidates.are_masks)
        candidates.add(resolve_pictures(others, anchors, candidates.sources, sure, alone=alone, watch=watch))
    candidates.from_folders = frozenset([*candidates.masks, *candidates.points]) - set(candidates.named)
    candidates.left = [
        path for path in candidates.left if path not in candidates.named and not candidates.has(path)
    ]


def _holds_nothing(path: Path) -> bool:
    """Check whether a file named like one of voxels is empty."""
    voxels = is_voxel_file(path) or is_plain_image(path) or path.suffix.casefold() == ".dcm"
    return voxels and path.stat().st_size == 0


def _sort_file(path: Path, kind: str | None, candidates: ImportCandidates, watch: Watch) -> None:
    """Classify a file that was named explicitly; its problems are errors."""
    refuse_special(path)
    if kind != "clicks" and not path.is_file():
        problem = "is a pipe or a device; expected a file" if path.exists() else "does not exist"
        raise InputError(problem, file=path)
    if kind in (None, "masks", "volume") and _holds_nothing(path):
        raise InputError("is empty; expected an image or a mask", file=path)
    watch(0.0, f"looking at {plain(path.name)}")
    if candidates.has(path) or candidates.put_declared(path, watch) or candidates.put_other(path):
        return
    source = candidates.sources.open(path)
    source.refuse_unread()
    if kind == "clicks" and may_hold_annotations(path):
        candidates.points.append(path)
    elif kind in ("clicks", "truth") and candidates.put_points(path):
        pass
    elif kind == "truth":
        others = candidates.masks if _may_be_masks(source) else candidates.tables
        (candidates.labels if find_labels(source) else others).append(path)
    elif kind in _LISTS:
        getattr(candidates, _LISTS[kind]).append(path)
    elif kind == "volume" or path.name.casefold() == _DICOMDIR:
        candidates.add_volumes(find_volumes(source, watch, candidates.sources))
    elif path.suffix.casefold() == ".json" and has_pairs(source):
        candidates.pairs.append(path)
    elif may_hold_annotations(path):
        candidates.put(path, candidates.masks)
    elif is_voxel_file(path):
        _sort_voxels(source, candidates, watch)
    elif source.dicom() is not None:
        if holds_masks(source):
            candidates.masks.append(path)
        else:
            candidates.add_volumes(find_volumes(source, watch, candidates.sources))
    elif source.is_image():
        candidates.images.append(path)
    elif has_pairs(source):
        candidates.pairs.append(path)
    elif holds_ranking(source):
        candidates.rankings.append(path)
    else:
        candidates.put(path, candidates.tables)


def _sort_folder(folder: Path, kind: str | None, candidates: ImportCandidates, watch: Watch) -> None:
    """Classify the files of a folder; skip and report those that cannot be read."""
    from raterscope.app.formats.volumes import dicom, find_volumes, walk_files

    if kind == "volume":
        candidates.add_volumes(find_volumes(folder, watch))
        return
    before = _count(candidates)
    files = sorted(walk_files(folder, part(watch, 0.0, 0.02)), key=lambda path: natural(str(path)))
    scans: list[DicomFile] = []
    refused: list[InputError] = []
    pictures = candidates.masks if kind in ("masks", "truth") else candidates.images
    for path, step in steps_of(part(watch, 0.02, 0.95), files):
        step(0.0, f"looking at {plain(path.name)}")
        name = path.name.casefold()
        if path in candidates.excluded:
            continue
        if name == _DICOMDIR or name.endswith((".img", ".img.gz")):
            continue  # the files that it lists are examined instead
        try:
            if candidates.put_declared(path, step) or candidates.put_other(path):
                continue
            source = candidates.sources.open(path)
            if kind in (None, "clicks", "masks", "truth") and may_hold_annotations(path):
                is_of_masks = kind != "clicks" and holds_masks(source)
                others = candidates.masks if is_of_masks else candidates.left
                if kind is None:
                    candidates.put(path, others)
                elif kind == "masks" or not candidates.put_points(path):
                    others.append(path)
            elif is_voxel_file(path) and kind is None:
                _sort_voxels(source, candidates, step)
            elif (scan := source.dicom()) is not None:
                if holds_masks(source):
                    candidates.masks.append(path)
                else:
                    scans.append(scan)
            elif source.is_image():
                source.image()  # a damaged image is skipped
                pictures.append(path)
            elif is_voxel_file(path) and kind in ("masks", "truth"):
                candidates.masks.append(path)
            elif kind is None and _put_table(source, candidates):
                pass
            elif kind not in (None, "clicks", "truth") or not candidates.put_points(path):
                candidates.left.append(path)
        except InputError as error:
            refused.append(error)
    if scans and kind is None:
        try:
            candidates.add_volumes(dicom.find_series(scans, folder, part(watch, 0.95, 1.0)))
        except InputError as error:
            refused.append(error)
    if _count(candidates) == before:
        problem = "is a folder without anything to import; expected images, volumes, masks or tables in it"
        if candidates.excluded.intersection(files):
            problem = "contains nothing that is not in the study already"
        raise refused[0] if refused else InputError(problem, file=folder)
    if refused:
        more = f" and {len(refused) - 1:,} more" if len(refused) > 1 else ""
        candidates.notices.append(f"Skipped: {str(refused[0]).rstrip('.')}{more}.")


def _put_table(source: Source, candidates: ImportCandidates) -> bool:
    """Add a table of a folder if its header is unambiguous; return whether it is.

    A table of truths without annotators must say so in its name. Tables that this program has written are no
    input: results and exports lie beside their run.json, and assignments list proposed votes, not given ones.
    """
    path = source.path
    if (
        not path.name.casefold().endswith(_TABLES)
        or path in candidates.named
        or (path.parent / "run.json").exists()
        or path.with_suffix(".run.json").exists()
    ):
        return False
    try:
        table = source.head().table
    except InputError:
        return False
    if "gain_of_new" in table.header:
        return False
    is_truth = is_named_truth(path)
    if find_columns(table, ("image", "x", "y")) is not None:
        is_sure = is_truth or find_columns(table, ("annotator",)) is not None
        files = candidates.tables
    elif has_pairs(source):
        is_sure, files = True, candidates.pairs
    else:
        labels = find_labels(source)
        is_sure = labels in ("labels", "contents") or (labels == "truth" and is_truth)
        files = candidates.labels
    if is_sure:
        files.append(path)
    return is_sure


def _count(candidates: ImportCandidates) -> int:
    marks = (
        len(candidates.tables)
        + len(candidates.pairs)
        + sum(map(len, candidates.others.values()))
        + len(candidates.points)
        + len(candidates.bare)
        + len(candidates.labels)
        + len(candidates.masks)
    )
    return marks + len(candidates.images) + len(candidates.volumes) + len(candidates.doubtful)


def _may_be_masks(source: Source) -> bool:
    path = source.path
    return may_hold_annotations(path) or is_voxel_file(path) or source.format in ("DICOM", *IMAGES)


def _sort_voxels(source: Source, candidates: ImportCandidates, watch: Watch) -> None:
    head = source.voxels()
    check_complete(head, watch)
    if head.data != source.path:
        candidates.add_part(head.data)
    holds = holds_masks(source, part(watch, 0.0, 0.5), check=True)
    if holds:
        candidates.masks.append(source.path)
    elif holds is None:
        candidates.doubtful.append(source.path)
    else:
        candidates.add_volumes(find_volumes(source, part(watch, 0.5, 1.0)))
