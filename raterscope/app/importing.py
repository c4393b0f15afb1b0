"""Files into a study, in an order that works: images and volumes, then sizes and clicks, truth, masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import counted, plain
from raterscope.app.formats import ClickTable, ImageFile, PointTable, read
from raterscope.app.formats.mask_records import MaskTable, VolumeFile
from raterscope.app.masks.placing import Placement, Site, place, placed_mask
from raterscope.app.masks.raters import SignedMask, sign
from raterscope.app.masks.reading import NOTHING, TELLING, AtHand, MaskReading, read_mask_files, sites_of
from raterscope.app.sorting import sort_files
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.masks import add_case, add_masks

__all__ = ["TABLES", "Readings", "read_files", "store"]

TABLES = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Readings:
    """What was read from some files, each kind in the order of the files.

    `signed` are the masks of all files with who drew them. `left` are files that lie in a folder and were not
    read: which tables are meant, only their own names tell.
    """

    images: tuple[ImageFile, ...] = ()
    clicks: tuple[ClickTable, ...] = ()
    truths: tuple[PointTable, ...] = ()
    left: tuple[Path, ...] = ()
    volumes: tuple[VolumeFile, ...] = ()
    masks: tuple[MaskTable, ...] = ()
    signed: tuple[SignedMask, ...] = ()
    notices: tuple[str, ...] = ()


def read_files(
    paths: Sequence[Path],
    *,
    kind: str | None = None,
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    reading: MaskReading = TELLING,
    at_hand: AtHand = NOTHING,
    watch: Watch = silent,
) -> Readings:
    """Read files; of a folder, its images, volumes and masks.

    Parameters
    ----------
    paths : sequence of Path
    kind : str, optional
        One of `formats.KINDS`, where the files do not show it.
    mappings : mapping of file to {column: field}, optional
    reading : MaskReading
        What is told of the masks by hand.
    at_hand : AtHand
        The images that the masks may have been drawn on, besides those that are read.
    watch : Watch

    Raises
    ------
    UnknownColumns
        When a table's columns must be named by hand.
    UnknownAnnotators
        When it must be told by hand who drew the masks.
    InputError
        For the first file that cannot be read; nothing of the others is lost, for nothing is stored yet.
    """
    lot = sort_files(paths, kind, at_hand.shapes(), part(watch, 0.0, 0.2))
    files = [*lot.images, *lot.tables]
    found: list[ImageFile | ClickTable | PointTable] = []
    share = 0.7 if not lot.masks else 0.3
    for done, file in enumerate(files):
        step = part(watch, 0.2 + share * done / len(files), 0.2 + share * (done + 1) / len(files))
        step(0.0, f"reading {plain(file.name)}")
        found.append(read(file, "image" if file in lot.images else kind, (mappings or {}).get(file), step))
    images = tuple(image for image in found if isinstance(image, ImageFile))
    masks, refused = read_mask_files(
        lot.masks, lot.volumes, reading, at_hand, lot.walked, part(watch, 0.2 + share, 1.0)
    )
    if refused and not (found or lot.volumes or masks):
        raise refused[0]
    names = [site.name for site in sites_of(at_hand.entries, images, lot.volumes)]
    tables = [table for table in found if isinstance(table, ClickTable)]
    return Readings(
        images=images,
        # A table without clicks tells the sizes of images, which tables of clicks may need.
        clicks=tuple(sorted(tables, key=_has_clicks)),
        truths=tuple(table for table in found if isinstance(table, PointTable)),
        left=lot.left,
        volumes=lot.volumes,
        masks=masks,
        signed=tuple(sign(masks, names, reading.by_hand, naming=reading.naming, truth=kind == "truth")),
        notices=(*lot.notices, *(f"Left out: {error}" for error in refused[:3]), *_more(refused[3:])),
    )


def store(
    readings: Readings,
    study: Study,
    watch: Watch = silent,
    *,
    extent: tuple[float, float] | None = None,
    may_resample: bool = False,
) -> list[str]:
    """Take up what was read.

    Parameters
    ----------
    readings : Readings
    study : Study
    watch : Watch
    extent : (width, height), optional
        Size of images that nothing else tells the size of.
    may_resample : bool
        Take masks to the grid of their image where they were made on another.

    Returns
    -------
    list of str
        What came in, a sentence or more each.

    Raises
    ------
    OtherGrid
        For masks on another grid than their image; nothing is stored then.
    """
    sites = sites_of(study.images(), readings.images, readings.volumes)
    placement = place(readings.signed, sites, may_resample=may_resample)
    sentences = []
    tables: tuple[ClickTable | PointTable, ...] = (*readings.clicks, *readings.truths)
    share = 0.5 if tables or readings.masks else 1.0
    entries: list[ImageEntry] = []
    before = {entry.id for entry in study.images() if entry.path is not None}
    if readings.images:
        entries += study.add_images(readings.images, part(watch, 0.0, share / 2))
        sentences.append(_came("image", {entry.id for entry in entries}, before, len(entries)))
    if readings.volumes:
        added = study.add_volumes(readings.volumes, part(watch, share / 2, share))
        sentences.append(_came("volume", {entry.id for entry in added}, before, len(added)))
        sentences += [notice for volume in readings.volumes for notice in volume.notices]
        entries += added
    parts = len(tables) + len(readings.masks)
    for done, table in enumerate(tables):
        step = part(watch, share + (1 - share) * done / parts, share + (1 - share) * (done + 1) / parts)
        if isinstance(table, ClickTable):
            summary = study.add_clicks(table, step, extent=extent)
        else:
            summary = study.add_truth(table, step, extent=extent)
        sentences.append(f"{table.path.name}: {summary.in_words()}")
    told: list[str] = []
    numbers = _numbers(study, placement.sites, entries)
    grids = {entry.id: entry.lattice for entry in study.images()}
    for done, file in enumerate(readings.masks, start=len(tables)):
        step = part(watch, share + (1 - share) * done / parts, share + (1 - share) * (done + 1) / parts)
        pairs = zip(placement.masks, placement.where, strict=True)
        mine = [(one, numbers[at]) for one, at in pairs if one.file == file.path]
        moved = sum(not one.mask.grid.same_as(grids[number]) for one, number in mine)
        notices = [*file.notices, *_moved_in_words(moved)]
        masks = [placed_mask(one, number, grids[number]) for one, number in mine]
        said = add_masks(study, masks, file.path.name, notices, step)
        told.append(f"{plain(file.path.name)}: {said}")
    sentences += _in_words(told, placement)
    sentences += [*placement.notices, *readings.notices]
    tables_left = [path for path in readings.left if path.suffix.casefold() in TABLES[:2]]
    if tables_left:
        sentences.append(f"Of a folder no tables are read; import {_listed(tables_left)} by name.")
    others = [path for path in readings.left if path not in tables_left]
    if others:
        sentences.append(f"Left, for there is nothing in it to read here: {_listed(others)}.")
    return sentences


def _in_words(told: Sequence[str], placement: Placement) -> list[str]:
    """Say what came of files of masks, in few words where there are many files and nothing is odd."""
    plainly = ("annotator.", "annotators.", "image.")
    odd = [words for words in told if "(" in words or not words.endswith(plainly)]
    if len(told) - len(odd) < 3:
        return list(told)
    raters = {one.annotator for one in placement.masks} - {None}
    true = sum(one.annotator is None for one in placement.masks)
    images = counted(len(set(placement.where)), "image")
    words = (
        f"{len(placement.masks):,} masks in {len(told):,} files on {images}"
        f" by {counted(len(raters), 'annotator')}{f', {true:,} of them the truth' if true else ''}."
    )
    return [words, *odd]


def _listed(paths: Sequence[Path]) -> str:
    names = ", ".join(plain(path.name, 40) for path in paths[:3])
    return names + (f" and {len(paths) - 3:,} more" if len(paths) > 3 else "")


def _more(refused: Sequence[object]) -> list[str]:
    return [f"{len(refused):,} more files of masks were left out."] if refused else []


def _numbers(study: Study, sites: Sequence[Site], added: Sequence[ImageEntry]) -> list[int]:
    """Give every site's number in the study: those that came are `added`, in their order."""
    came = iter(added)
    numbers = []
    for site in sites:
        if site.number is not None:
            numbers.append(site.number)
        else:
            entry = next(came) if site.fresh else add_case(study, site.name, site.grid)
            numbers.append(entry.id)
    return numbers


def _has_clicks(table: ClickTable) -> bool:
    return len(table) > 0


def _came(noun: str, entries: set[int], before: set[int], named: int) -> str:
    new = len(entries - before)
    words = counted(new, noun)
    known = named - new
    return f"{words}, {known} known already." if known else f"{words}."


def _moved_in_words(moved: int) -> list[str]:
    if not moved:
        return []
    return [f"{moved:,} of them were taken from another grid to the image's."]
