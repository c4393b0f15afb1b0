"""Retirement list: images of clicks that need no more annotators, by the stop rule of live watching.

An image retires when few decisions are expected to change with further annotators, and its last annotators
changed no more. The latter is measured by a fusion without them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse
from raterscope.algorithms.clicks.stopping import StoppingSettings, count_changes, predict_outlook
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request
from raterscope.app.formats.output_files import format_number, write_table
from raterscope.app.study import Study
from raterscope.app.study.references import ImageNames

RETIREMENT = (
    "subject", "image", "reason", "annotators", "detections", "expected_changes", "changes_low",
    "changes_high", "unchanged_probability",
)  # fmt: skip


def export_retirement(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the images that need no more annotators; see `exports.Writer`.

    Raises `InputError` if there is no fusion, or a run of another version cannot be repeated.
    """
    settings = StoppingSettings()
    entries = [entry for entry in study.items()["clicks"] if not request.items or entry.id in request.items]
    images = ImageNames(study.images())
    subjects = {
        image.id: subject
        for name, subject in study.settings.subjects().items()
        if (image := images.find(name)) is not None
    }
    rows, fused = [], 0
    for entry, step in steps_of(watch, entries):
        step(0.0, f"checking {plain(entry.name)}")
        result = study.shown.result(entry.id)
        if result is None:
            continue
        fused += 1
        run, fusion = result
        try:
            plan = FusionPlan.from_dict(run.settings)
        except SettingsError as error:
            raise InputError(
                f"run {run.id} was made by another version; fuse again", file=study.path
            ) from error
        clicks = study.clicks(entry.id, run)
        outlook = predict_outlook(clicks, fusion, plan, settings, part(step, 0.0, 0.3))
        if outlook.share > settings.limit or len(clicks.annotators) <= settings.more:
            continue
        late = _count_late_changes(clicks, plan, settings.more, part(step, 0.3, 1.0))
        if late / max(outlook.detections, 1) > settings.limit:
            continue
        reason = (
            f"{settings.more} more annotators would change <= {100 * settings.limit:g} % of the decisions"
        )
        values = (outlook.expected, *outlook.interval.tolist(), 1.0 - outlook.any)
        rows.append((
            subjects.get(entry.id, ""), entry.name, reason, len(clicks.annotators), outlook.detections,
            *map(format_number, values),
        ))  # fmt: skip
    if not fused:
        raise InputError("holds no detections yet; `raterscope run` fuses its clicks", file=study.path)
    request.say(f"Images that need no more annotators: {len(rows):,} of {fused:,}.")
    return [write_table(request.path, RETIREMENT, rows)]


def _count_late_changes(clicks: Clicks, plan: FusionPlan, annotators: int, watch: Watch) -> int:
    """Count the decisions that the last annotators changed, by time or else in the order of the file."""
    order = np.arange(len(clicks.annotators), dtype=np.float64)
    if clicks.time is not None and np.isfinite(clicks.time).all():
        order[:] = -np.inf  # who marked nothing comes first
        np.maximum.at(order, clicks.annotator, clicks.time)
    last = {clicks.annotators[row] for row in np.argsort(order, kind="stable")[-annotators:]}
    before = fuse(clicks.without(last), plan, part(watch, 0.0, 0.5))
    return count_changes(before, fuse(clicks, plan, part(watch, 0.5, 1.0)))
