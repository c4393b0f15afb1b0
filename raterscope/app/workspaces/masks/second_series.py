"""Second series over a case: available series, their display and registration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.registration import (
    FEWEST,
    Registration,
    RigidMotion,
    centre_of,
    overlap_of,
    register,
)
from raterscope.algorithms.progress import RefusedError, Watch, part
from raterscope.app.contents import Contents
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.volumes.dicom_headers import SUV
from raterscope.app.formats.volumes.resampling import explain_irregularity, regular_grid, resample
from raterscope.app.review import Decision, RegistrationSubject, registered_series
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import ImageEntry, Study
from raterscope.app.workspaces.masks.scene import Scene, load_pixels
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPart
from raterscope.app.workspaces.navigation import locate_image
from raterscope.widgets.dialogs.review_dialogs import RegistrationDialog
from raterscope.widgets.volume.scene import HeatMap

MISSING = (
    "Registration needs SimpleITK, which is not installed; `pip install 'raterscope[registration]'` installs "
    "it. Without it you can type a shift and a rotation."
)

WORKING_VOXELS = 1_500_000
"""Number of voxels above which volumes are averaged over blocks before registration."""

_ENDS = (0.5, 99.8)
"""Percentiles to which values are limited for registration."""


def check_installed() -> None:
    """Raise `InputError` if SimpleITK is not installed."""
    try:
        import SimpleITK  # noqa: F401
    except ImportError as error:
        raise InputError(MISSING) from error


def register_series(
    case: NDArray[Any], case_grid: Grid, series: NDArray[Any], series_grid: Grid, watch: Watch
) -> Registration:
    """Register a series with a case, each in its own geometry; see `registration.register`.

    Large volumes are averaged over blocks, and uneven or tilted slices are resampled, to limit memory and
    time. Raises `RefusedError` for volumes that cannot be registered.
    """
    for grid, noun in ((case_grid, "case"), (series_grid, "series")):
        if min(grid.shape) < FEWEST:
            sizes = " x ".join(map(str, grid.shape))
            raise RefusedError(f"The {noun} has {sizes} voxels; expected {FEWEST} or more along each axis.")
        if not grid.calibrated:
            raise RefusedError(f"The size and position of the {noun}'s voxels are unknown.")
    watch(0.0, "preparing the case")
    fixed, fixed_grid = prepare(case, case_grid)
    watch(0.1, "preparing the series")
    moving, moving_grid = prepare(series, series_grid)
    return register(fixed, fixed_grid, moving, moving_grid, part(watch, 0.2, 1.0))


def prepare(values: NDArray[Any], grid: Grid) -> tuple[NDArray[np.float32], Grid]:
    """Average over blocks, limit values to their percentiles, and resample to a rectangular grid."""
    factors = _block(grid)
    values, grid = _shrink(values, grid, factors)
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    low, high = np.percentile(values, _ENDS).tolist()
    if low == high:  # a few bright voxels in a constant background
        low, high = float(values.min()), float(values.max())
    values = np.clip(values, low, high) - np.float32(low)
    if explain_irregularity(grid):
        regular = regular_grid(grid)
        return resample(values, grid, regular), regular
    return values, Grid.from_matrix(grid.shape, grid.matrix)


def _block(grid: Grid) -> tuple[int, int, int]:
    """Return the block size (slice, row, column) in voxels; slices at uneven distances are not averaged."""
    fixed = grid.slice_offsets is not None
    target = min(grid.spacing)
    while True:
        factors = [max(1, round(target / step)) for step in grid.spacing]
        sizes = zip(grid.shape, factors, strict=True)
        down, along, across = (min(factor, max(1, size // FEWEST)) for size, factor in sizes)
        block = (1 if fixed else down, along, across)
        voxels = math.prod(size // factor for size, factor in zip(grid.shape, block, strict=True))
        if voxels <= WORKING_VOXELS or target > sum(grid.spacing) * max(grid.shape):
            return block
        target *= 1.1


def _shrink(
    values: NDArray[Any], grid: Grid, block: tuple[int, int, int]
) -> tuple[NDArray[np.float32], Grid]:
    """Average over blocks, slab by slab, so that only the result is added to memory."""
    down, along, across = block
    shape = tuple(size // factor for size, factor in zip(grid.shape, block, strict=True))
    smaller = np.empty(shape, dtype=np.float32)
    for number in range(shape[0]):
        slab = values[number * down : (number + 1) * down, : shape[1] * along, : shape[2] * across]
        slab = slab.astype(np.float32)
        if slab.ndim == 4:
            slab = slab.mean(axis=-1)
        blocks = slab.reshape(down, shape[1], along, shape[2], across)
        smaller[number] = blocks.mean(axis=(0, 2, 4))
    middle = (np.array(block, dtype=float) - 1) / 2
    matrix = grid.matrix @ np.diag([across, along, down, 1.0])
    matrix[:3, 3] = grid.to_patient(middle)
    return smaller, Grid.from_matrix(
        (shape[0], shape[1], shape[2]), matrix, calibrated=grid.calibrated, slice_offsets=grid.slice_offsets
    )


SHARED = 0.3
"""Minimum overlap of two series of one patient, as a share of the smaller volume's extent."""
_BRIGHTEST = 99.8
"""Percentile of the values above 0 with the brightest colour."""
_SUV_BRIGHTEST = 10.0
"""Maximum uptake (SUV) of the colour scale, to show shades of a small lesion; less if no value reaches it."""

_FIELDS = 8
"""Number of checkerboard fields along the longest side of a volume."""


def find_series(
    images: Sequence[ImageEntry], case: ImageEntry, motions: Mapping[int, RigidMotion] | None = None
) -> list[ImageEntry]:
    """Find the other volumes of the study that overlap a case, or were registered with it."""
    registered = motions or {}
    return [
        image
        for image in images
        if image.id != case.id
        and image.grid is not None
        and case.grid is not None
        and (image.id in registered or shared_extent(image.grid, case.grid) >= SHARED)
    ]


def motions_of(contents: Contents | None, case: int) -> dict[int, RigidMotion]:
    """Return the motions of the registered series of a case, by their numbers in the study."""
    if contents is None:
        return {}
    registered = registered_series(contents.decisions, contents.review, case)
    return {number: subject.motion for number, subject in registered.items()}


def shared_extent(first: Grid, second: Grid) -> float:
    """Return the overlap of two volumes' boxes along the patient's axes, as a share of the smaller one."""
    if not (first.calibrated and second.calibrated) or first.flat or second.flat:
        return 0.0
    shared = [
        max(0.0, min(high, other_high) - max(low, other_low))
        for (low, high), (other_low, other_high) in zip(first.extent, second.extent, strict=True)
    ]
    volumes = [math.prod(high - low for low, high in grid.extent) for grid in (first, second)]
    return math.prod(shared) / min(volumes)


def read_series(
    entry: ImageEntry, path: Path, grid: Grid, watch: Watch, motion: RigidMotion | None = None
) -> HeatMap:
    """Read a series and resample it to a grid, as a map from 0 to its brightest values.

    Values below 0 are shown as 0. `motion`: moves the series onto the grid's volume.
    """
    volume = load_pixels(entry, path, part(watch, 0.0, 0.5)).volume
    values = volume.values if volume.values.ndim == 3 else volume.values.mean(axis=-1)
    watch(0.5, "resampling")
    positive = np.maximum(np.nan_to_num(values.astype(np.float32)), 0.0)
    sample = positive.ravel()[:: max(1, positive.size // 200_000)]
    high = float(np.percentile(sample[sample > 0], _BRIGHTEST)) if (sample > 0).any() else 1.0
    if volume.unit == SUV:
        high = min(max(float(positive.max()), high), _SUV_BRIGHTEST)
    shown = np.rint(np.minimum(positive / high, 1.0) * 255).astype(np.uint8)
    resampled = resample(shown, volume.grid if motion is None else motion.move(volume.grid), grid)
    name = plain(entry.name)
    text = name if name.startswith(entry.modality) else f"{entry.modality} {name}"
    text += f", {volume.unit}" if volume.unit else ""
    return HeatMap(resampled, (0, 0, 0), 0.0, high, "doubt", text, high / 255)


def checkered(heat_map: HeatMap, grid: Grid, _watch: Watch) -> HeatMap:
    """Keep a map in every second field of a checkerboard of cubes; the other fields show the case."""
    sides = np.multiply(grid.shape, grid.spacing)
    fields = [
        np.arange(size) * spacing // (sides.max() / _FIELDS)
        for size, spacing in zip(grid.shape, grid.spacing, strict=True)
    ]
    down, along, across = (field.astype(np.int8) for field in fields)
    values = heat_map.values.copy()
    for number, layer in enumerate(values):
        layer[(down[number] + along[:, None] + across) % 2 == 1] = 0
    return replace(heat_map, values=values)


class SeriesRegistration(MasksPart):
    """Registration of a second series with the case: by SimpleITK or by typed values, as a decision."""

    stored = Signal(int)  # number of the series whose position was decided

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._task = LatestTask()
        self._dialog: RegistrationDialog | None = None
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._leave)
        core.document.decided.connect(self._show_present)

    def _on_scene(self, scene: Scene) -> None:
        previous = self._session.previous
        if previous is None or previous.image.id != scene.image.id:
            self._leave()

    def _leave(self) -> None:
        self._task.cancel()
        if self._dialog is not None:
            self._dialog.close()

    @while_shown
    def start(self) -> None:
        """Ask for a series, and offer to register it or to type its position."""
        contents, case = self._document.contents, self._session.scene.image
        if contents is None or case.grid is None or not case.grid.calibrated:
            self._screen.message.emit("The size and position of this case's voxels are unknown.")
            return
        near = {entry.id for entry in find_series(contents.images, case)}
        others = [
            entry for entry in contents.images
            if entry.id != case.id and entry.path and entry.grid is not None
            and entry.grid.calibrated and not entry.grid.flat
        ]  # fmt: skip
        if not others:
            self._screen.message.emit("The study has no other volume. Import the second series first.")
            return
        others.sort(key=lambda entry: (entry.id not in near, entry.name))
        if self._dialog is not None:
            self._dialog.close()
        shown = self._screen.maps.series
        names = {entry.id: plain(entry.name) for entry in others}
        dialog = self._dialog = RegistrationDialog(plain(case.name), names, shown, self._screen)
        dialog.series_chosen.connect(self._show_present)
        dialog.register_requested.connect(self._register)
        dialog.apply_requested.connect(self._apply)
        dialog.reset_requested.connect(self._reset)
        dialog.finished.connect(self._on_closed)
        self._show_present()
        dialog.show()

    def _on_closed(self) -> None:
        self._dialog = None

    @while_shown
    def _show_present(self) -> None:
        """Show the current position of the chosen series in the dialog."""
        contents, dialog = self._document.contents, self._dialog
        if dialog is None or contents is None:
            return
        case, series = self._session.scene.image.id, dialog.series
        motion = motions_of(contents, case).get(series)
        text = describe_position(contents, case, series)
        shown = motion or RigidMotion()
        dialog.show_motion(shown.shift, shown.rotation, text, moved=motion is not None)

    def _entry(self, series: int) -> ImageEntry | None:
        return None if self._document.contents is None else self._document.contents.image(series)

    @while_shown
    def _apply(self, series: int, shift: tuple[float, ...], rotation: tuple[float, ...]) -> None:
        entry, case = self._entry(series), self._session.scene.image
        if entry is None:
            return
        (x, y, z), (about_x, about_y, about_z) = shift, rotation
        motion = RigidMotion((x, y, z), (about_x, about_y, about_z), centre_of(entry.lattice))
        overlap = overlap_of(case.lattice, motion.move(entry.lattice))
        self._store("register", entry, case.id, motion, None, overlap)

    @while_shown
    def _reset(self, series: int) -> None:
        entry = self._entry(series)
        if entry is not None:
            self._store("unregister", entry, self._session.scene.image.id, RigidMotion(), None, None)

    def _store(
        self, verb: str, entry: ImageEntry, case: int, motion: RigidMotion,
        information: float | None, overlap: float | None,
    ) -> None:  # fmt: skip
        subject = RegistrationSubject(
            series=entry.id, name=plain(entry.name), motion=motion, information=information, overlap=overlap
        )
        job = self._document.record(Decision(verb=verb, item=case, subject=subject))
        job.finished.connect(lambda _: self.stored.emit(entry.id))

    @while_shown
    def _register(self, series: int) -> None:
        entry, scene = self._entry(series), self._session.scene
        if entry is None:
            return
        job = self._document.ask("Looking for a series", partial(_locate_both, scene.image, entry))
        self._task.follow(job, partial(self._on_located, entry, scene))

    def _on_located(self, entry: ImageEntry, scene: Scene, paths: tuple[Path | None, Path | None]) -> None:
        case_path, path = paths
        if case_path is None or path is None:
            missing = scene.image if case_path is None else entry
            self._screen.refused.emit(f"The file of {plain(missing.name)} was not found.")
            return
        motion = motions_of(self._document.contents, scene.image.id).get(entry.id, RigidMotion())
        work = partial(_register, (scene.image, case_path), (entry, path), motion)
        title = f"Registering {plain(entry.name)}"
        job = self._jobs.start(title, work, costly=True)
        self._screen.message.emit(f"{title}: see the tab Jobs.")
        done = partial(self._on_registered, entry, scene)
        self._task.follow(job, done, failed=self._screen.refused.emit)

    def _on_registered(self, entry: ImageEntry, scene: Scene, result: Registration) -> None:
        if result.problems:
            self._screen.refused.emit(
                f"Registration of {plain(entry.name)} failed: {', and '.join(result.problems)}. "
                "Its position is unchanged. Type a shift and a rotation near the right ones, then try again."
            )
            return
        self._store("register", entry, scene.image.id, result.motion, result.information, result.overlap)


def describe_position(contents: Contents | None, case: int, series: int) -> str:
    """Describe the position of a series: shift, rotation, mutual information and overlap."""
    registered = {} if contents is None else registered_series(contents.decisions, contents.review, case)
    subject = registered.get(series)
    if subject is None:
        return "Placed by the positions in the files."
    motion = subject.motion
    text = f"Moved by {motion.translation:.1f} mm and rotated by {motion.angle:.1f}°"
    if subject.information is None:
        text += ", as typed"
    else:
        text += f"; mutual information {subject.information:.2f}"
    if subject.overlap is not None:
        text += f"; {100 * subject.overlap:.0f} % of the smaller volume overlaps"
    return f"{text}."


def _locate_both(
    case: ImageEntry, series: ImageEntry, study: Study, watch: Watch
) -> tuple[Path | None, Path | None]:
    return locate_image(case, study, watch), locate_image(series, study, watch)


def _register(
    case: tuple[ImageEntry, Path], series: tuple[ImageEntry, Path], present: RigidMotion, watch: Watch
) -> Registration:
    """Read two volumes and register them, starting from the current position of the series."""
    check_installed()
    fixed = load_pixels(*case, part(watch, 0.0, 0.1)).volume
    moving = load_pixels(*series, part(watch, 0.1, 0.2)).volume
    result = register_series(
        fixed.values, fixed.grid, moving.values, present.move(moving.grid), part(watch, 0.2, 1.0)
    )
    matrix = result.motion.matrix @ present.matrix
    return replace(result, motion=RigidMotion.from_matrix(matrix, centre_of(moving.grid)))
