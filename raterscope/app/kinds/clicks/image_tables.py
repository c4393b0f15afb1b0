"""Tables of a study's images: their quality, measured once and stored, and the images to retire."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.replay import replay_last_annotators
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import StoppingSettings, predict_outlook
from raterscope.algorithms.image_display import measure_focus, measure_saturation
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.formats.image_heads import load_overview
from raterscope.app.formats.images import load_planes
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.formats.pyramids import is_large
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.image_groups import subjects_of
from raterscope.app.study.records import ImageQuality

OVERVIEW = 2048
"""Longer side, in pixels, of the reduced copy in which the focus of a large image is measured."""
UNREADABLE = ImageQuality(None, None)
COLUMNS = ("image", "focus", "saturated_percent")

RETIREMENT = (
    "subject", "image", "reason", "annotators", "detections", "expected_changes", "changes_low",
    "changes_high", "unchanged_probability",
)  # fmt: skip


def measure_image(entry: ImageEntry, path: Path) -> ImageQuality:
    """Measure an image; of a stack, the first plane. Raises `InputError` if it cannot be read.

    The focus of an image that is shown by tiles is that of a reduced copy; its saturation is not measured.
    """
    if is_large(entry.width, entry.height):
        return ImageQuality(_finite(measure_focus(load_overview(path, OVERVIEW, entry.digest))), None)
    values = [plane.values for plane in load_planes(path)]
    shares = [share for share in map(measure_saturation, values) if share is not None]
    return ImageQuality(_finite(math.fsum(map(measure_focus, values))), max(shares, default=None))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rounded(value: float | None, times: int = 1) -> float | None:
    return None if value is None else float(f"{times * value:.6g}")


Located = Sequence[tuple[ImageEntry, Path]]


def find_unmeasured(study: Study, watch: Watch = silent) -> tuple[dict[int, ImageQuality], Located]:
    """Return the quality of the measured images, and the other images with their files, if available."""
    watch(0.0, "reading")
    known = dict(study.settings.image_quality)
    entries = [entry for entry in study.images() if entry.grid is None and entry.id not in known]
    located = [(entry, path) for entry in entries if (path := study.locate(entry)) is not None]
    return known, located


def measure_images(located: Located, watch: Watch = silent) -> dict[int, ImageQuality]:
    """Measure images; those that cannot be read are `UNREADABLE`."""
    measured: dict[int, ImageQuality] = {}
    for done, (entry, path) in enumerate(located):
        watch(done / len(located), f"image {done + 1:,} of {len(located):,}", partial=lambda: dict(measured))
        try:
            measured[entry.id] = measure_image(entry, path)
        except InputError:
            measured[entry.id] = UNREADABLE
    return measured


def store_quality(measured: Mapping[int, ImageQuality], study: Study, watch: Watch = silent) -> None:
    """Store the quality of images that could be read."""
    watch(0.0, "writing")
    readable = {image: quality for image, quality in measured.items() if quality != UNREADABLE}
    study.settings.image_quality = {**study.settings.image_quality, **readable}


def export_quality(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write focus and saturation of each image; see `exports.Writer`.

    Raises `InputError` when no image can be read.
    """
    known, located = find_unmeasured(study)
    requested = [entry for entry in study.images() if not request.items or entry.id in request.items]
    numbers = {entry.id for entry in requested}
    known |= measure_images([pair for pair in located if pair[0].id in numbers], watch)
    rows = [
        (entry.name, _rounded(quality.focus), _rounded(quality.saturation, 100))
        for entry in requested
        if (quality := known.get(entry.id, UNREADABLE)) != UNREADABLE
    ]
    if not rows:
        raise InputError("has no image that can be read, so none can be measured", file=study.path)
    return [write_table(request.path, COLUMNS, rows)]


class _Fused(NamedTuple):
    entry: ImageEntry
    clicks: Clicks
    fusion: Fusion


def export_retirement(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the images that need no more annotators; see `exports.Writer`.

    Raises `InputError` if there is no fusion, or a run of another version cannot be repeated.
    """
    settings = StoppingSettings()
    subjects = {image.id: subject for image, subject in subjects_of(study, study.images())}
    reason = f"{settings.more} more annotators would change <= {100 * settings.limit:g} % of the decisions"
    rows, fused = [], 0
    for (plan, images), step in steps_of(watch, list(_runs(study))):
        replay = replay_last_annotators(
            [image.clicks for image in images], [image.fusion for image in images], plan, settings,
            part(step, 0.0, 0.8),
        )  # fmt: skip
        if text := replay.in_words():
            request.say(text)
        looking = steps_of(part(step, 0.8, 1.0), images)
        for late, ((entry, clicks, fusion), look) in zip(replay.late.tolist(), looking, strict=True):
            if request.items and entry.id not in request.items:
                continue
            fused += 1
            if late < 0:
                continue
            outlook = predict_outlook(clicks, fusion, plan, settings, look, correct=replay.additional)
            if max(outlook.share, late / max(outlook.detections, 1)) > settings.limit:
                continue
            values = (outlook.expected, *outlook.interval.tolist(), 1.0 - outlook.any)
            rows.append((
                subjects.get(entry.id, ""), entry.name, reason, len(clicks.annotators), outlook.detections,
                *map(format_number, values),
            ))  # fmt: skip
    if not fused:
        raise InputError("contains no detections yet; `raterscope run` fuses its clicks", file=study.path)
    request.say(f"Images that need no more annotators: {len(rows):,} of {fused:,}.")
    return [write_table(request.path, RETIREMENT, rows)]


def _runs(study: Study) -> Iterator[tuple[FusionPlan, list[_Fused]]]:
    """Read the images shown, grouped by the run that fused them together."""
    runs, images = {}, defaultdict(list)
    for entry in study.items()["clicks"]:
        result = study.shown.result(entry.id, "clicks")
        if result is not None and isinstance(entry, ImageEntry):
            run, fusion = result
            runs[run.id] = run
            images[run.id].append(_Fused(entry, study.clicks(entry.id, run), fusion))
    for number, run in runs.items():
        try:
            plan = FusionPlan.from_dict(run.settings)
        except SettingsError as error:
            raise InputError(
                f"run {number} was made by another version; fuse again", file=study.path
            ) from error
        yield plan, images[number]
