"""Import of masks: reads files, and finds image and structure of each mask; see `attribution` for raters.

A mask is placed by its series, name, grid or folder. It is resampled only if the user allows it; otherwise
only the order and directions of its axes are adapted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import box_around, slices_of
from raterscope.algorithms.masks.grid import Grid, plane_grid
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.ambiguous_files import words_of
from raterscope.app.errors import InputError, SkippedFiles, plain, plain_names
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.collector import crop
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.masks.naming import (
    strip_suffixes,
)
from raterscope.app.formats.records import ImageFile, MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.untrusted import MAX_VOXELS
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.formats.volumes.resampling import OtherGrid, explain_difference, resample
from raterscope.app.kinds.masks.attribution import DEFAULT_MASK_OPTIONS, NAMELESS, AttributedMask, MaskOptions
from raterscope.app.study import ImageEntry
from raterscope.app.study.masks import PlacedMask
from raterscope.app.study.records import Item
from raterscope.app.study.references import locate, volume_of

_HALF = 0.5


@dataclass(frozen=True)
class StudyImages:
    """The study's images that new files may belong to."""

    entries: tuple[ImageEntry, ...] = ()  # images that masks may lie on
    study: Path = Path()
    # names of tasks and items, and of the picture files named for them
    tasks: tuple[str, ...] = ()
    # names of images with clicks whose files are still missing
    clicked: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)  # names of structures by those in files

    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """Return the images' shapes."""
        return tuple(entry.lattice.shape for entry in self.entries)

    def series(self, watch: Watch = silent) -> list[VolumeFile]:
        """Find the DICOM series of the study, which contours need; missing ones are skipped."""
        volumes_found: list[VolumeFile] = []
        for entry in self.entries:
            path = locate(entry, self.study) if entry.identifier else None
            if path is not None:
                try:
                    volumes = find_volumes(path, watch)
                except InputError:
                    continue
                own = volume_of(entry, volumes)
                same = [volume for volume in volumes if volume.identifier == entry.identifier]
                volumes_found += same if own is None else [replace(own, name=entry.name)]
        return volumes_found


def images_without_file(items: Mapping[str, Sequence[Item]]) -> tuple[str, ...]:
    """Name the clicked images of a study whose files are still missing."""
    return tuple(item.name for item in items["clicks"] if isinstance(item, ImageEntry) and item.path is None)


NOTHING = StudyImages()
"""Images without an open study: none."""


def read_mask_files(
    paths: Sequence[Path],
    volumes: Sequence[VolumeFile],
    reading: MaskOptions = DEFAULT_MASK_OPTIONS,
    at_hand: StudyImages = NOTHING,
    *,
    skipped: SkippedFiles,
    sources: Sources | None = None,
    watch: Watch = silent,
) -> tuple[MaskTable, ...]:
    """Read the masks of files.

    `volumes`: volumes imported with the masks.
    `sources`: sources of files that may be open already; each is released after it is read.
    """
    known_volumes: list[VolumeFile] | None = None
    sources = Sources() if sources is None else sources
    tables = []
    for path, step in steps_of(watch, paths):
        step(0.0, f"reading {plain(path.name)}")
        all_volumes = list(volumes)
        if not (is_voxel_file(path) or is_plain_image(path)):  # contours, drawn on a series
            known_volumes = at_hand.series(step) if known_volumes is None else known_volumes
            own = {volume.identifier for volume in volumes if volume.identifier}
            all_volumes += [volume for volume in known_volumes if volume.identifier not in own]
        with skipped.reading(path):
            tables.append(
                read_masks(
                    sources.open(path), all_volumes, naming=reading.naming, annotator=reading.annotator,
                    structure=reading.structure, watch=step,
                )
            )  # fmt: skip
        sources.release(path)
    return tuple(tables)


_CHANNEL = re.compile(
    r"0\d{3}|t1|t2|t1w|t2w|t1c|t1ce|t1gd|pd|flair|dwi|adc|dce|swi|bold|ct|pet|mr|mri|suv|pp"
)
"""Words in a file's name for one of several series of a case: case_0001 of nnU-Net, case_flair, case_t2."""

_SMALL_LABEL = re.compile(r"label \d{1,2}")


@dataclass(frozen=True)
class Site:
    """An image that masks may belong to."""

    name: str
    grid: Grid
    identifier: str = ""  # the series' UID
    number: int | None = None  # number in the study, if it is there already
    fresh: bool = False  # whether it is imported with the masks
    folder: Path | None = None  # of its file, if known


@dataclass(frozen=True, eq=False)
class Placement:
    """Masks with their images."""

    sites: tuple[Site, ...]  # given images, then cases without an image
    where: tuple[int, ...]  # each mask's site
    masks: tuple[AttributedMask, ...]
    notices: tuple[str, ...] = ()


def place_masks(
    masks: Sequence[AttributedMask], sites: Sequence[Site] = (), *, may_resample: bool = False
) -> Placement:
    """Find the image of every mask.

    The image of a mask is the one that its series or name identifies, or else the only one on its grid, or
    else the only one of its shape if one of the two has no position. If there are several, it is the one
    whose folder is nearest to the mask's, or the first series of a case with several.
    A mask without a matching image becomes a case, with all masks of its name, or of its folder if names are
    ambiguous; its grid covers segments that are cropped. Ground truth without a name belongs to the
    only case on its grid. An unnamed structure gets the name of the only named structure of the image, if
    there is one, or label 1 beside other labels. A rater's files with one slice each are joined. Raises
    `OtherGrid` for a mask on another grid than its image. Raises `InputError` for a mask that fits several
    images, or occurs twice.

    `may_resample`: accept masks on another grid than their image, if the series or name identifies the image,
    or there is only one.
    """
    site_list = list(sites)
    if not masks:  # indexing many images takes long
        return Placement(tuple(site_list), (), ())
    candidates = _Sites(sites)
    cases: dict[str, int] = {}
    where: list[int] = []
    placed: list[AttributedMask] = []
    # The ground truth comes last, and joins the cases of raters' masks.
    for attributed in sorted(masks, key=lambda mask: mask.annotator is None):
        at, structure = candidates.site_of(attributed, may_resample)
        if at is None:
            name = attributed.item or attributed.hint or attributed.file.resolve().parent.name or "case"
            at = cases.get(name)
            if at is None and attributed.annotator is None:
                at = _marked_alone(attributed, placed, where, site_list)
            if at is None:
                at = cases[name] = len(site_list)
                site_list.append(Site(name, attributed.mask.grid))
            elif not site_list[at].grid.same_voxels(attributed.mask.grid):
                first = placed[where.index(at)].file
                extended = site_list[at].grid.extended_to(attributed.mask.grid)
                if extended is not None and _may_crop(first, attributed.file, extended):
                    site_list[at] = replace(site_list[at], grid=extended)
                elif not (may_resample and attributed.mask.grid.calibrated and site_list[at].grid.calibrated):
                    raise _other_grid(attributed, replace(site_list[at], name=first.name))
            elif not site_list[at].grid.calibrated:
                site_list[at] = replace(site_list[at], grid=attributed.mask.grid)
        where.append(at)
        placed.append(replace(attributed, structure=structure))
    placed, numbered = _number_structures(_named_structures(placed, where), where)
    placed, where, joined = _join_slices(placed, where)
    _refuse_twice(placed, where, site_list)
    notices = (*numbered, *joined, *_apart(placed, where, sites), *_of_other_series(placed, where, site_list))
    return Placement(tuple(site_list), tuple(where), tuple(placed), notices)


def _may_crop(first: Path, second: Path, extended: Grid) -> bool:
    """Return whether one of two files may be cropped to what it marks, like segments of DICOM and Slicer."""
    may_crop = any(not is_voxel_file(path) or path.name.endswith(".seg.nrrd") for path in (first, second))
    return may_crop and math.prod(extended.shape) <= MAX_VOXELS


def prepare_mask(attributed: AttributedMask, image: int, grid: Grid) -> PlacedMask:
    """Prepare a mask for storage on an image's grid; resampled if its own grid differs.

    Resampling to the same voxels in another order changes no value. A mask of the same slices at simplified
    positions is placed slice by slice. Raises `InputError` if no marked voxel lies on that grid.
    """
    mask = attributed.mask
    if mask.grid.same_as(grid):
        return PlacedMask(
            image, attributed.annotator, attributed.structure, mask.origin, mask.voxels, mask.coding
        )
    drawn_on = next((even for even in (grid, *grid.simplified) if even.same_voxels(mask.grid)), grid)
    origin, values = crop(resample(mask.whole(), mask.grid, drawn_on))
    if mask.values.any() and not values.any():
        raise InputError("marks nothing within the image it is resampled to", file=attributed.file)
    return PlacedMask(image, attributed.annotator, attributed.structure, origin, values, mask.coding)


def explain_change_of_grid(mask: RaterMask, target: Grid) -> str:
    """Explain how a mask changes that is placed on another grid; empty if it does not."""
    source = mask.grid
    if source.same_voxels(target):
        return ""
    if source.is_part_of(target):
        return "placed on the part of the image that the file covers"
    if target.same_slices(source):
        return "placed slice by slice: slices are even in the file, uneven or tilted in the image"
    text = "resampled to the grid of the image; edges may shift slightly"
    marked = outside = 0
    for at, values in enumerate(mask.values):
        positions = np.argwhere(values >= _HALF)
        on_slice = np.insert(positions, 0, at, axis=1) + mask.origin
        index = target.to_index(source.to_patient(on_slice.astype(np.float64)))
        marked += len(index)
        outside += int(((index < -_HALF) | (index > np.array(target.shape) - _HALF)).any(axis=1).sum())
    if not outside:
        return text
    return f"{text}; {outside / marked:.0%} of the marked voxels are outside the image and were cut off"


class _Sites:
    """Search for the image of a mask among the given ones, by series, name or grid.

    Words of names and shapes are indexed once, because there may be thousands of images and masks.
    """

    def __init__(self, sites: Sequence[Site]) -> None:
        self._sites = sites
        self._fresh = [site for site in sites if site.fresh]
        self._exact: dict[str, list[int]] = {}
        self._by_words: dict[tuple[str, ...], list[int]] = {}
        self._by_first_words: dict[tuple[str, ...], list[int]] = {}
        self._by_folder: dict[tuple[str, ...], list[int]] = {}
        self._by_shape: dict[tuple[int, ...], list[int]] = {}
        for at, site in enumerate(sites):
            for name in {site.identifier, site.name}:
                self._exact.setdefault(name, []).append(at)
            words = tuple(words_of(site.name))
            self._by_words.setdefault(words, []).append(at)
            for n in range(1, len(words)):
                self._by_first_words.setdefault(words[:n], []).append(at)
            if site.folder is not None:
                self._by_folder.setdefault(tuple(words_of(site.folder.name)), []).append(at)
            self._by_shape.setdefault(tuple(sorted(site.grid.shape)), []).append(at)

    def site_of(self, mask: AttributedMask, may_resample: bool) -> tuple[int | None, str]:
        """Return a mask's image, or None for a new case, and its structure's name."""
        sites, grid = self._sites, mask.mask.grid
        named = self._named(mask.item) or self._named(mask.hint)
        if named:
            same = self._nearest(mask, [at for at in named if sites[at].grid.same_slices(grid)])
            if len(same) > 1:
                raise _ambiguous_image(mask, [sites[at] for at in same])
            if same:
                return same[0], mask.structure
            parts = [at for at in named if grid.is_part_of(sites[at].grid)]
            if len(parts) == 1:
                return parts[0], mask.structure
            if may_resample and grid.calibrated and sites[named[0]].grid.calibrated:
                return named[0], mask.structure
            raise _other_grid(mask, sites[named[0]])
        series = _is_series(mask.item)
        is_named = mask.item is not None and not series
        guessed = mask.hint is not None and any(map(str.isdigit, mask.hint)) and not self._fresh
        if is_named or guessed or not sites:
            return None, mask.structure
        shape = tuple(sorted(grid.shape))
        fits = [at for at in self._by_shape.get(shape, ()) if sites[at].grid.same_slices(grid)]
        sure = [at for at in fits if grid.calibrated and sites[at].grid.calibrated]
        new_sites = [at for at in fits if sites[at].fresh]
        chosen = next((few for few in (sure, new_sites, fits) if len(few) == 1), None)
        if chosen is not None:
            # The assumed name of the image is that of another structure.
            return chosen[0], mask.structure if mask.hint is None or mask.mask.structure else mask.hint
        nearest = self._nearest(mask, fits)
        if len(nearest) == 1:
            return nearest[0], mask.structure
        if nearest:
            raise _ambiguous_image(mask, [sites[at] for at in nearest])
        if series or len(self._fresh or sites) > 1:
            return None, mask.structure
        only = sites.index(self._fresh[0]) if self._fresh else 0
        resamplable = may_resample and grid.calibrated and sites[only].grid.calibrated
        if resamplable or grid.is_part_of(sites[only].grid):
            return only, mask.structure
        raise _other_grid(mask, sites[only])

    def _nearest(self, mask: AttributedMask, fits: Sequence[int]) -> list[int]:
        """Choose the images whose folder is nearest to a mask's, as in CASE/ct.nii and CASE/rater.nii."""
        if len(fits) < 2:
            return list(fits)
        folder = mask.file.resolve().parent
        nearness = {at: _nearness(folder, self._sites[at].folder) for at in fits}
        best = max(nearness.values())
        nearest = [at for at in fits if nearness[at] == best]
        names = [strip_suffixes(Path(self._sites[at].name)).casefold() for at in nearest]
        cases = {  # without the words for one of several series
            tuple(word for word in re.findall(r"[^\W_]+", name) if not _CHANNEL.fullmatch(word))
            for name in names
            for name in names
        }
        grid = self._sites[nearest[0]].grid
        is_one_case = len(cases) == 1 and all(self._sites[at].grid.same_voxels(grid) for at in nearest)
        return nearest[:1] if is_one_case else nearest

    def _named(self, name: str | None) -> list[int]:
        """Find the images that match a name or a series UID, by the strictest rule that finds any."""
        if name is None:
            return []
        words = tuple(words_of(name))
        named = self._exact.get(name)
        if named is None and words:
            named = self._by_words.get(words) or self._by_first_words.get(words) or self._by_folder.get(words)
        return named or []


def _nearness(folder: Path, other: Path | None) -> tuple[int, int]:
    """Count the leading folders that two paths share, then the names that their other folders share."""
    if other is None:
        return 0, 0
    parts, others = folder.parts, other.resolve().parts
    shared = next((n for n, pair in enumerate(zip(parts, others, strict=False)) if len(set(pair)) > 1), None)
    begin = min(len(parts), len(others)) if shared is None else shared
    return begin, len(set(parts[begin:]) & set(others[begin:]))


def _ambiguous_image(mask: AttributedMask, sites: Sequence[Site]) -> InputError:
    names = plain_names((site.name for site in sites), 3, 40)
    return InputError(
        f"fits several images ({names}); name the image in the file's name, or import one at a time",
        file=mask.file,
    )


def _marked_alone(
    truth: AttributedMask, masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]
) -> int | None:
    """Find the only case on a truth's grid, if not both are named."""
    stated = truth.item or truth.hint
    cases = {
        at
        for mask, at in zip(masks, where, strict=True)
        if sites[at].grid.same_voxels(truth.mask.grid) and not (stated and (mask.item or mask.hint))
    }
    return cases.pop() if len(cases) == 1 else None


def _named_structures(masks: Sequence[AttributedMask], where: Sequence[int]) -> list[AttributedMask]:
    """Name unnamed structures after the other structures on the image.

    They get the name of the only structure that other masks mark. If other masks have labels with small
    numbers, they become label 1, because a file with only that label looks like a mask.
    """
    names: dict[int, set[str]] = {}
    for mask, at in zip(masks, where, strict=True):
        names.setdefault(at, set()).add(mask.structure)

    def name_on(at: int) -> str:
        named = names[at] - {NAMELESS}
        if named and all(map(_SMALL_LABEL.fullmatch, named)):
            return "label 1"
        return named.pop() if len(named) == 1 else NAMELESS

    return [
        replace(mask, structure=name_on(at)) if mask.structure == NAMELESS else mask
        for mask, at in zip(masks, where, strict=True)
    ]


def _number_structures(
    masks: Sequence[AttributedMask], where: Sequence[int]
) -> tuple[list[AttributedMask], list[str]]:
    """Distinguish structures with the same name in a file by numbers; return also notices."""
    used: dict[tuple[Path, int, str | None], set[str]] = {}
    numbered, files = [], dict[tuple[Path, str], None]()
    for mask, at in zip(masks, where, strict=True):
        names, name, number = used.setdefault((mask.file, at, mask.annotator), set()), mask.structure, 1
        while name in names:
            number += 1
            name = f"{mask.structure} {number}"
        if number > 1:
            files[mask.file, mask.structure] = None
        names.add(name)
        numbered.append(replace(mask, structure=name))
    return numbered, [
        f"{plain(file.name)} has several structures named {plain(name)}; they are numbered in its order."
        for file, name in files
    ]


def _apart(masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]) -> Iterator[str]:
    """Report masks imported with images that fit none of them, with the difference from the nearest image."""
    fresh = [site for site in sites if site.fresh]
    pairs = zip(masks, where, strict=True)
    apart = {
        plain(mask.file.name): mask.mask.grid
        for mask, at in pairs
        if fresh and at >= len(sites) and mask.item is None
    }
    for name, grid in apart.items():
        nearest = min(
            fresh, key=lambda site: (site.grid.shape != grid.shape, site.grid.spacing != grid.spacing)
        )
        difference = explain_difference(grid, nearest.grid)
        yield (
            f"{name} fits none of the images imported with it and becomes a case of its own: compared with "
            f"{plain(nearest.name)}, {difference[:1].lower()}{difference[1:]}"
        )


def _of_other_series(
    masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]
) -> Iterator[str]:
    """Report, by image, masks that name another DICOM series than that of their image."""
    files: dict[int, dict[str, None]] = {}
    for mask, at in zip(masks, where, strict=True):
        series = sites[at].identifier
        if _is_series(mask.item) and series and series != mask.item:
            files.setdefault(at, {})[mask.file.name] = None
    for at, names in files.items():
        yield (
            f"{plain_names(names, 3, 40)}: drawn on another DICOM series, placed on {plain(sites[at].name)} "
            "because the grid is the same. Check that the outlines fit."
        )


def _is_series(name: str | None) -> bool:
    """Return whether the name of a mask's image is the UID of a DICOM series."""
    return name is not None and name.replace(".", "").isdigit()


def _join_slices(
    masks: Sequence[AttributedMask], where: Sequence[int]
) -> tuple[list[AttributedMask], list[int], list[str]]:
    """Join masks by one rater of one structure that are on different slices, one slice in each file."""
    groups: dict[tuple[int, str | None, str], list[AttributedMask]] = {}
    for mask, at in zip(masks, where, strict=True):
        groups.setdefault((at, mask.annotator, mask.structure), []).append(mask)
    joined, sites, words = [], [], []
    for (at, annotator, structure), group in groups.items():
        if _is_slice_each([mask.mask for mask in group]):
            words.append(f"{structure} by {annotator or 'the truth'} ({len(group):,})")
            group = [replace(group[0], mask=_joined([mask.mask for mask in group]))]
        joined += group
        sites += [at] * len(group)
    notice = f"Files with one slice each are joined to one mask: {plain_names(words, longest=60)}."
    return joined, sites, [notice] if words else []


def _is_slice_each(masks: Sequence[RaterMask]) -> bool:
    slices = [mask.origin[0] for mask in masks if len(mask.values)]
    return (
        len(set(slices)) == len(slices) > 1
        and all(len(mask.values) <= 1 for mask in masks)
        and all(mask.grid.same_as(masks[0].grid) for mask in masks[1:])
    )


def _joined(masks: Sequence[RaterMask]) -> RaterMask:
    marked = [mask for mask in masks if len(mask.values)]
    origin, shape = box_around([(mask.origin, mask.values.shape) for mask in marked])
    voxels = np.zeros(shape, dtype=np.result_type(*(mask.values for mask in marked)))
    for mask in marked:
        voxels[slices_of(mask.origin, mask.values.shape, origin)] = mask.values
    return replace(masks[0], origin=origin, voxels=voxels)


def _refuse_twice(masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]) -> None:
    first: dict[tuple[int, str | None, str], Path] = {}
    for mask, at in zip(masks, where, strict=True):
        earlier_file = first.setdefault((at, mask.annotator, mask.structure), mask.file)
        if earlier_file != mask.file:
            alike = earlier_file.name == mask.file.name
            other = str(Path(earlier_file.parent.name, earlier_file.name)) if alike else earlier_file.name
            rater = "the truth" if mask.annotator is None else plain(mask.annotator)
            raise InputError(
                f"holds {plain(mask.structure)} by {rater} on {plain(sites[at].name)}, and so does "
                f"{plain(other)}; expected one mask by each annotator",
                file=mask.file,
            )


def _other_grid(mask: AttributedMask, site: Site) -> OtherGrid:
    return OtherGrid(mask.mask.grid, site.grid, site.name, mask.file)


def list_sites(
    entries: Sequence[ImageEntry], images: Sequence[ImageFile] = (), volumes: Sequence[VolumeFile] = ()
) -> list[Site]:
    """List the images that masks may belong to: imported ones in order, then the study's."""
    sites = [
        Site(image.name, plane_grid(image.height, image.width), fresh=True, folder=image.path.parent)
        for image in images
    ]
    for volume in volumes:
        folder = (volume.files or (volume.path,))[0].parent
        sites.append(Site(volume.name, volume.grid, volume.identifier, fresh=True, folder=folder))
    new_sites = {(site.name, site.identifier) for site in sites}
    for entry in entries:
        if (entry.name, entry.identifier) not in new_sites:
            home = None if entry.path is None else Path(entry.path).parent
            sites.append(Site(entry.name, entry.lattice, entry.identifier, entry.id, folder=home))
    return sites
