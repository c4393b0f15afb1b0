"""Import of masks: reads files, assigns raters and structures, and places each mask on its image.

A mask belongs to an image by its series, by its name or by its grid. It is never resampled unasked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.annotator_names import TRUTH_WORD, UnknownAnnotators, is_truth, names_by, words_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.collector import cropped
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.masks.naming import Named, bare
from raterscope.app.formats.records import ImageFile, MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.volumes.resampling import OtherGrid, resample
from raterscope.app.study import ImageEntry
from raterscope.app.study.masks import PlacedMask
from raterscope.app.study.records import Item
from raterscope.app.study.references import locate

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


_SMALL_LABEL = re.compile(r"label \d{1,2}")


@dataclass(frozen=True)
class Site:
    """An image that masks may lie on.

    Attributes
    ----------
    name : str
    grid : Grid
    identifier : str
        The series' UID.
    number : int or None
        In the study, where it is there already.
    fresh : bool
        Whether it came with the masks.
    """

    name: str
    grid: Grid
    identifier: str = ""
    number: int | None = None
    fresh: bool = False


@dataclass(frozen=True, eq=False)
class Placement:
    """Where masks lie.

    Attributes
    ----------
    sites : tuple of Site
        Those that were given, then those that only the masks tell of.
    where : tuple of int
        Each mask's site.
    masks : tuple of AttributedMask
    notices : tuple of str
    """

    sites: tuple[Site, ...]
    where: tuple[int, ...]
    masks: tuple[AttributedMask, ...]
    notices: tuple[str, ...] = ()


def place(
    masks: Sequence[AttributedMask], sites: Sequence[Site] = (), *, may_resample: bool = False
) -> Placement:
    """Find the image of every mask.

    A mask's image is the one whose series or name it tells; else the only one on its grid; else the only one
    of its shape, where one of both does not say where it lies. A mask that came without an image, or fits
    none of several, makes a case of its own, with all others of its name or, where names tell nothing, of its
    folder; the truth that names tell nothing of comes to the only case on its grid. What nobody named is the
    one structure that others named on the image, where there is one, or label 1 beside other labels.

    Parameters
    ----------
    masks : sequence of AttributedMask
    sites : sequence of Site
    may_resample : bool
        Let masks lie on an image of another grid that its series or name tells, or that is the only one.

    Raises
    ------
    OtherGrid
        For a mask on another grid than its image.
    InputError
        For a mask that may lie on several images, or is there twice.
    """
    every = list(sites)
    given = _Sites(sites)
    cases: dict[str, int] = {}
    where: list[int] = []
    found: list[AttributedMask] = []
    for one in sorted(masks, key=lambda one: one.annotator is None):  # the truth comes to what raters marked
        at, structure = given.site_of(one, may_resample)
        if at is None:
            name = one.item or one.hint or one.file.resolve().parent.name or "case"
            at = cases.get(name)
            if at is None and one.annotator is None:
                at = _marked_alone(one, found, where, every)
            if at is None:
                at = cases[name] = len(every)
                every.append(Site(name, one.mask.grid))
            elif not every[at].grid.same_as(one.mask.grid):
                if not (may_resample and one.mask.grid.calibrated and every[at].grid.calibrated):
                    raise _other_grid(one, replace(every[at], name=_first_on(found, where, at)))
            elif not every[at].grid.calibrated:
                every[at] = replace(every[at], grid=one.mask.grid)
        where.append(at)
        found.append(replace(one, structure=structure))
    found = _named_structures(found, where)
    _refuse_twice(found, where, every)
    return Placement(tuple(every), tuple(where), tuple(found), _apart(found, where, sites))


def placed_mask(one: AttributedMask, image: int, grid: Grid) -> PlacedMask:
    """Make a mask ready to be stored on an image's grid; taken there from its own where that is another.

    Raises
    ------
    InputError
        When nothing of what it marks lies on that grid.
    """
    mask = one.mask
    if mask.grid.same_as(grid):
        return PlacedMask(image, one.annotator, one.structure, mask.origin, mask.values, mask.coding)
    origin, values = cropped(resample(mask.whole(), mask.grid, grid))
    if mask.values.any() and not values.any():
        raise InputError("marks nothing that lies within the image it is taken to", file=one.file)
    return PlacedMask(image, one.annotator, one.structure, origin, values, mask.coding)


class _Sites:
    """Finds the image of a mask among those given, by series, by name, by grid.

    Words of names and shapes are looked up once, for there may be thousands of images and masks.
    """

    def __init__(self, sites: Sequence[Site]) -> None:
        self._sites = sites
        self._fresh = [site for site in sites if site.fresh]
        self._exact: dict[str, list[int]] = {}
        self._by_words: dict[tuple[str, ...], list[int]] = {}
        self._by_first_words: dict[tuple[str, ...], list[int]] = {}
        self._by_shape: dict[tuple[int, int, int], list[int]] = {}
        for at, site in enumerate(sites):
            for name in {site.identifier, site.name}:
                self._exact.setdefault(name, []).append(at)
            words = tuple(words_of(site.name))
            self._by_words.setdefault(words, []).append(at)
            for n in range(1, len(words)):
                self._by_first_words.setdefault(words[:n], []).append(at)
            self._by_shape.setdefault(site.grid.shape, []).append(at)

    def site_of(self, one: AttributedMask, may_resample: bool) -> tuple[int | None, str]:
        """Find a mask's image, None for a case of its own; and its structure's name."""
        sites, grid = self._sites, one.mask.grid
        named = self._named(one.item) or self._named(one.hint)
        if named:
            same = [at for at in named if sites[at].grid.same_as(grid)]
            if len(same) > 1:
                raise _several(one, [sites[at] for at in same])
            if same:
                return same[0], one.structure
            if may_resample and grid.calibrated and sites[named[0]].grid.calibrated:
                return named[0], one.structure
            raise _other_grid(one, sites[named[0]])
        series = one.item is not None and one.item.replace(".", "").isdigit()
        told = one.item is not None and not series
        guessed = one.hint is not None and any(map(str.isdigit, one.hint)) and not self._fresh
        if told or guessed or not sites:
            return None, one.structure
        fits = [at for at in self._by_shape.get(grid.shape, ()) if sites[at].grid.same_as(grid)]
        sure = [at for at in fits if grid.calibrated and sites[at].grid.calibrated]
        came = [at for at in fits if sites[at].fresh]
        chosen = next((few for few in (sure, came, fits) if len(few) == 1), None)
        if chosen is not None:
            # What looked like the image's name is another structure's.
            return chosen[0], one.structure if one.hint is None or one.mask.structure else one.hint
        if fits:
            raise _several(one, [sites[at] for at in fits])
        if series or len(self._fresh or sites) > 1:
            return None, one.structure
        nearest = sites.index(self._fresh[0]) if self._fresh else 0
        if may_resample and grid.calibrated and sites[nearest].grid.calibrated:
            return nearest, one.structure
        raise _other_grid(one, sites[nearest])

    def _named(self, name: str | None) -> list[int]:
        """Find the images that a name or a series' UID means, the surest way that finds any."""
        if name is None:
            return []
        words = tuple(words_of(name))
        named = self._exact.get(name)
        if named is None and words:
            named = self._by_words.get(words) or self._by_first_words.get(words)
        return named or []


def _several(one: AttributedMask, sites: Sequence[Site]) -> InputError:
    names = ", ".join(plain(site.name, 40) for site in sites[:3])
    more = f" and {len(sites) - 3:,} more" if len(sites) > 3 else ""
    return InputError(
        f"fits several images ({names}{more}); name the image in the file's name, or bring one at a time",
        file=one.file,
    )


def _marked_alone(
    truth: AttributedMask, masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]
) -> int | None:
    """Find the only case that may be meant by a truth: of its grid, and not both of them are named."""
    told = truth.item or truth.hint
    cases = {
        at
        for one, at in zip(masks, where, strict=True)
        if sites[at].grid.same_as(truth.mask.grid) and not (told and (one.item or one.hint))
    }
    return cases.pop() if len(cases) == 1 else None


def _named_structures(masks: Sequence[AttributedMask], where: Sequence[int]) -> list[AttributedMask]:
    """Give what nobody named a name, by what others marked on the image.

    It is the one structure that others marked; but where they marked labels with small numbers, it is label
    1, as the file of one who marked no other label looks like a mask.
    """
    names: dict[int, set[str]] = {}
    for one, at in zip(masks, where, strict=True):
        names.setdefault(at, set()).add(one.structure)

    def name_on(at: int) -> str:
        others = names[at] - {NAMELESS}
        if others and all(map(_SMALL_LABEL.fullmatch, others)):
            return "label 1"
        return others.pop() if len(others) == 1 else NAMELESS

    return [
        replace(one, structure=name_on(at)) if one.structure == NAMELESS else one
        for one, at in zip(masks, where, strict=True)
    ]


def _apart(masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]) -> tuple[str, ...]:
    """Say which masks came with images and fit none of them."""
    if not any(site.fresh for site in sites):
        return ()
    pairs = zip(masks, where, strict=True)
    files = dict.fromkeys(plain(one.file.name) for one, at in pairs if at >= len(sites) and one.item is None)
    return tuple(
        f"{name} fits none of the images that came with it: it is a case of its own." for name in files
    )


def _refuse_twice(masks: Sequence[AttributedMask], where: Sequence[int], sites: Sequence[Site]) -> None:
    first: dict[tuple[int, str | None, str], Path] = {}
    for one, at in zip(masks, where, strict=True):
        other = first.setdefault((at, one.annotator, one.structure), one.file)
        if other != one.file:
            who = "the truth" if one.annotator is None else plain(one.annotator)
            raise InputError(
                f"holds {plain(one.structure)} by {who} on {plain(sites[at].name)}, and so does "
                f"{plain(other.name)}; expected one mask by each annotator",
                file=one.file,
            )


def _first_on(masks: Sequence[AttributedMask], where: Sequence[int], at: int) -> str:
    return next(one.file.name for one, place in zip(masks, where, strict=True) if place == at)


def _other_grid(one: AttributedMask, site: Site) -> OtherGrid:
    return OtherGrid(one.mask.grid, site.grid, site.name, one.file)


@dataclass(frozen=True)
class MaskReading:
    """What is told of masks by hand.

    Attributes
    ----------
    annotator : str, optional
        Who drew all of them.
    naming : str, optional
        What the files' names tell: "{item}_{annotator}".
    structure : str, optional
        What is called so that no file names.
    by_hand : mapping of file to annotator
        See `raters.sign`.
    """

    annotator: str | None = None
    naming: str | None = None
    structure: str | None = None
    by_hand: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AtHand:
    """What the study has that files come to.

    Attributes
    ----------
    entries : tuple of ImageEntry
        Images that masks may lie on.
    study : Path
    tasks : tuple of names
        Of tasks and items that annotators judged, and of the files that are said to show them.
    clicked : tuple of names
        Of images that annotators clicked on and that are not there yet.
    """

    entries: tuple[ImageEntry, ...] = ()
    study: Path = Path()
    tasks: tuple[str, ...] = ()
    clicked: tuple[str, ...] = ()

    def shapes(self) -> tuple[tuple[int, int, int], ...]:
        """Give the images' shapes."""
        return tuple(entry.lattice.shape for entry in self.entries)

    def series(self, watch: Watch = silent) -> list[VolumeFile]:
        """Find the DICOM series of the study again, which contours need; those that are gone are left out."""
        from raterscope.app.formats.volumes import find_volumes

        found: list[VolumeFile] = []
        for entry in self.entries:
            place = locate(entry, self.study) if entry.identifier else None
            if place is not None:
                try:
                    volumes = find_volumes(place, watch)
                except InputError:
                    continue
                found += [one for one in volumes if one.identifier == entry.identifier]
        return found


def clicked_without_file(items: Mapping[str, Sequence[Item]]) -> tuple[str, ...]:
    """Name the images of a study that were clicked on and whose files are still to come."""
    return tuple(one.name for one in items["clicks"] if isinstance(one, ImageEntry) and one.path is None)


TELLING = MaskReading()
"""The files themselves tell all."""

NOTHING = AtHand()
"""No study is open."""


def read_mask_files(
    paths: Sequence[Path],
    volumes: Sequence[VolumeFile],
    reading: MaskReading = TELLING,
    at_hand: AtHand = NOTHING,
    optional: frozenset[Path] = frozenset(),
    sources: Sources | None = None,
    watch: Watch = silent,
) -> tuple[tuple[MaskTable, ...], list[InputError]]:
    """Read the masks of some files.

    Parameters
    ----------
    paths : sequence of Path
    volumes : sequence of VolumeFile
        Those that come with the masks.
    reading : MaskReading
    at_hand : AtHand
    optional : frozenset of Path
        Files without which it goes on.
    sources : Sources, optional
        Where the files are open already; each is released when it is read.
    watch : Watch

    Returns
    -------
    tables : tuple of MaskTable
    refused : list of InputError
        Why others of the optional files were left out.

    Raises
    ------
    InputError
        For the first file that cannot be read and is not optional.
    """
    known: list[VolumeFile] | None = None
    sources = Sources() if sources is None else sources
    tables, refused = [], []
    for done, path in enumerate(paths):
        step = part(watch, done / len(paths), (done + 1) / len(paths))
        step(0.0, f"reading {plain(path.name)}")
        every = list(volumes)
        if not (is_voxel_file(path) or is_plain_image(path)):  # contours, drawn on a series
            known = at_hand.series(step) if known is None else known
            mine = {volume.identifier for volume in volumes if volume.identifier}
            every += [volume for volume in known if volume.identifier not in mine]
        try:
            tables.append(
                read_masks(
                    sources.open(path), every, naming=reading.naming, annotator=reading.annotator,
                    structure=reading.structure, watch=step,
                )
            )  # fmt: skip
        except InputError as error:
            if path not in optional:
                raise
            refused.append(error)
        sources.release(path)
    return tuple(tables), refused


def sites_of(
    entries: Sequence[ImageEntry], images: Sequence[ImageFile] = (), volumes: Sequence[VolumeFile] = ()
) -> list[Site]:
    """List the images that masks may lie on: those that come with them, in order, then the study's others."""
    from raterscope.algorithms.masks.grid import Grid

    found = [Site(one.name, Grid.plain((1, one.height, one.width)), fresh=True) for one in images]
    found += [Site(one.name, one.grid, one.identifier, fresh=True) for one in volumes]
    came = {(site.name, site.identifier) for site in found}
    found += [
        Site(entry.name, entry.lattice, entry.identifier, entry.id)
        for entry in entries
        if (entry.name, entry.identifier) not in came
    ]
    return found
