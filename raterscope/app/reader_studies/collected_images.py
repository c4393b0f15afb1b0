"""Images of a collected reader study: references in the study, and checks that they are unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from raterscope.algorithms.progress import Watch, part, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.images import read_image
from raterscope.app.formats.records import ImageFile, VolumeFile
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.reader_studies.assignment import Coordinator, Picture, locate_picture
from raterscope.app.study import ImageEntry, Study, StudyError
from raterscope.app.study.file_digests import digest_of_images


class CollectedImages:
    """The images of a reader study, added to the collected study where they can be read.

    Attributes
    ----------
    problems : list of str
        Images that were changed or, of masks, are missing, a sentence each.
    """

    def __init__(self, study: Study, coordinator: Coordinator, file: Path, watch: Watch) -> None:
        self.problems: list[str] = []
        self._entries: dict[str, ImageEntry] = {}
        self._unusable: set[str] = set()
        pictures: dict[str, Picture] = {}
        cases: dict[str, list[str]] = {}
        for case in coordinator.cases:
            for name, picture in zip(coordinator.names[case.key], case.pictures, strict=True):
                pictures[name] = picture
                cases.setdefault(name, []).append(case.key)
        present = {entry.name: entry for entry in study.images()}
        sources: dict[str, ImageFile | VolumeFile] = {}
        for (name, picture), step in steps_of(part(watch, 0.0, 0.9), list(pictures.items())):
            problem, source = _check(name, picture, file, step, drawn=coordinator.kind == "masks")
            if problem:
                self.problems.append(problem)
                self._unusable.update(cases[name])
            elif source is not None and (name not in present or present[name].path is None):
                sources[name] = source
        named = [replace(source, name=name) for name, source in sources.items()]
        images = [source for source in named if isinstance(source, ImageFile)]
        volumes = [source for source in named if isinstance(source, VolumeFile)]
        added = study.add_images(images) if images else []
        added += study.add_volumes(volumes) if volumes else []
        names = [*(source.name for source in images), *(source.name for source in volumes)]
        by_name = dict(zip(names, added, strict=True))
        self._entries = present | by_name

    def usable(self, case: str) -> bool:
        """Return whether the images of a case are those with which it was read."""
        return case not in self._unusable

    def entry(self, name: str) -> ImageEntry:
        """Return an image of the study. Raises `StudyError` if the study lacks it."""
        if name not in self._entries:
            raise StudyError(f"{plain(name)} was not found")
        return self._entries[name]


def _check(
    name: str, picture: Picture, file: Path, watch: Watch, *, drawn: bool
) -> tuple[str, ImageFile | VolumeFile | None]:
    """Compare an image on disk with the image that was read; a missing one matters only for masks."""
    watch(0.0, f"checking {plain(name)}")
    path = locate_picture(picture, file)
    if path is None:
        words = f"{plain(name)}: was not found; its masks are not collected"
        return (words if drawn else ""), None
    try:
        source = read_source(picture, path, drawn=drawn)
        if source is not None and digest_of_images([source], watch) == [picture.digest]:
            return "", source
    except InputError:
        pass
    return f"{plain(name)}: has changed since the study was set up; its reads are not collected", None


def read_source(picture: Picture, path: Path, *, drawn: bool) -> ImageFile | VolumeFile | None:
    """Read the header of an image; None for a folder without the volume."""
    if not drawn:
        return read_image(path)
    for volume in find_volumes(path):
        if picture.identifier in ("", volume.identifier) and volume.grid.shape == picture.shape:
            return volume
    return None
