"""Files of masks read with the images at hand that they may have been drawn on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file
from raterscope.app.formats.records import ImageFile, MaskTable, VolumeFile
from raterscope.app.formats.sources import Sources
from raterscope.app.kinds.masks.placing import Site
from raterscope.app.study import ImageEntry
from raterscope.app.study.records import Item
from raterscope.app.study.references import locate


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
