"""The scene of the clicks workspace: one image as read from the study, and its pixels from the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch, part
from raterscope.app.formats.images import load_image
from raterscope.app.formats.pyramids import is_large, open_pyramid
from raterscope.app.session import Session
from raterscope.app.study import ImageEntry, RunEntry, Study, StudyError
from raterscope.app.study.digests import digest_of_file
from raterscope.app.workspaces.clicks.crops import Image
from raterscope.app.workspaces.navigation import missing_file_message, own_memory

__all__ = ["ClicksSession", "Scene", "load_pixels", "read_scene"]


@dataclass(frozen=True, eq=False)
class Scene:
    """One image, the fusion shown, the clicks that went into it (without one, all), the imported truth.

    `missing` says why there is no file to show, where there should be one; `told` what is shown instead of a
    run, as clicks come or are replayed; `replayed` that it is past, so that nothing can be decided on it;
    `later` counts the clicks on the image that were imported after the run.
    """

    image: ImageEntry
    path: Path | None
    missing: str
    clicks: Clicks
    run: RunEntry | None
    fusion: Fusion | None
    truth: FloatArray
    told: str = ""
    replayed: bool = False
    later: int = 0

    @property
    def item(self) -> ImageEntry:
        """The image."""
        return self.image


ClicksSession = Session[Scene, None]
"""What the clicks workspace shows: the scene as the stream and the scale have it."""


def read_scene(image: int, run: int | None, study: Study, watch: Watch) -> Scene:
    """Read a scene from the study."""
    watch(0.0, "reading")
    entry = study.image(image)
    shown, fusion = study.shown.run_and_result(image, "clicks", run)
    return Scene(
        image=entry,
        path=study.locate(entry),
        missing=missing_file_message(entry, study),
        clicks=study.clicks(image, shown),
        run=shown,
        fusion=fusion,
        truth=study.truth(image).places,
        later=_imported_since(image, shown, study),
    )


def _imported_since(image: int, run: RunEntry | None, study: Study) -> int:
    if run is None or run.imported is None or run.imported >= (study.last_import() or 0):
        return 0
    return len(study.clicks(image)) - len(study.clicks(image, replace(run, excluded=(), weights={})))


def load_pixels(entry: ImageEntry, path: Path, watch: Watch) -> Image:
    """Load an image, or make it ready to be read by tiles, having looked whether it is still the same."""
    watch(0.0, "loading")
    digest = digest_of_file(path, part(watch, 0.0, 0.1), "loading")
    if entry.digest not in (None, digest):
        raise StudyError("is no longer the image that was added: its content differs", file=path)
    if is_large(entry.width, entry.height):
        return open_pyramid(path, digest, part(watch, 0.1, 1.0))
    return own_memory(load_image(path))
