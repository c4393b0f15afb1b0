"""Retirement list: the images of a study that need no more annotators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.replay import replay_last_annotators
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.stopping import StoppingSettings, predict_outlook
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.study import Study
from raterscope.app.study.records import ImageEntry
from raterscope.app.study.references import subjects_of

RETIREMENT = (
    "subject", "image", "reason", "annotators", "detections", "expected_changes", "changes_low",
    "changes_high", "unchanged_probability",
)  # fmt: skip


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
        if words := replay.in_words():
            request.say(words)
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
        raise InputError("holds no detections yet; `raterscope run` fuses its clicks", file=study.path)
    request.say(f"Images that need no more annotators: {len(rows):,} of {fused:,}.")
    return [write_table(request.path, RETIREMENT, rows)]


def _runs(study: Study) -> Iterator[tuple[FusionPlan, list[_Fused]]]:
    """Read the images shown by the run that fused them together."""
    runs, images = {}, defaultdict(list)
    for entry in study.items()["clicks"]:
        result = study.shown.result(entry.id)
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
