"""`raterscope fuse clicks`: fuse tables of clicks into a folder of results, without a study."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from raterscope.algorithms.annotators.names import read_notices
from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve, CrowdSizeSettings
from raterscope.algorithms.clicks.data import Clicks, FloatArray, KnownSpots
from raterscope.algorithms.clicks.fusion import FusionPlan, isolation_notice
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.evaluation import RADIUS, Evaluation, compare
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import formats
from raterscope.app.ambiguous_files import UnknownAnnotators
from raterscope.app.command_line.output import (
    ProgressLine,
    files_and_digests,
    make_folder,
    print_files,
    print_results,
    raise_failures,
    write_in_folder,
)
from raterscope.app.errors import InputError, SkippedFiles, plain, refuse_unknown
from raterscope.app.formats import ClickTable, ImageFile, PointTable, UnknownColumns
from raterscope.app.formats.points import has_points, read_points, read_scores
from raterscope.app.formats.points.positions import ImageScale, ImageScales, unknown_scales
from raterscope.app.formats.signatures import IMAGE_SUFFIXES, IMAGES_IN_WORDS
from raterscope.app.formats.sources import Source, Sources, may_hold_annotations
from raterscope.app.kinds.clicks.evaluation import (
    crowd_sizes_in_words,
    evaluate_outcomes,
    measure_images,
    write_crowd_sizes,
)
from raterscope.app.kinds.clicks.exports import Results, write_results
from raterscope.app.kinds.clicks.image_fusion import fuse_images, start_processes
from raterscope.app.kinds.clicks.imports import (
    assign_annotators,
    clicks_by_image,
    index_scales,
    points_by_image,
    read_point_files,
    scores_by_image,
    unify_images,
)
from raterscope.app.kinds.clicks.runs import (
    Answer,
    click_notices,
    others_in_words,
    run_record,
    scores_record,
)
from raterscope.app.kinds.kind import Summary
from raterscope.app.outcome import Outcome, successful
from raterscope.app.study import Study, digest_of
from raterscope.app.workers import Workers, processors
from raterscope.text import counted

_TRUE_FIELDS = {"image", "x", "y"}
_LONG = 2_000_000
"""Bytes of click tables from which processes start while the tables are read (about 60,000 clicks)."""


def fuse_clicks(options: argparse.Namespace) -> int:
    """Fuse tables of clicks and write the results, as the options of the command line state."""
    plan = FusionPlan.make(options.algorithm, plan_texts(options))
    radius = options.radius or RADIUS
    if options.hold_truth and not options.truth:
        raise InputError("--hold-truth needs --truth TRUTH, the positions to hold fixed")
    by_size = None if options.by_crowd_size is None else dict(options.by_crowd_size)
    if by_size is not None and not options.truth:
        raise InputError("--by-crowd-size needs --truth TRUTH, the positions to compare with")
    sized = None if by_size is None else CrowdSizeSettings.from_text(by_size)
    curves: tuple[CrowdSizeCurve, ...] = ()
    started, clock = datetime.now(UTC), time.perf_counter()
    with (
        Workers(processors() if options.jobs is None else options.jobs) as workers,
        ProgressLine(sys.stderr) as watch,
    ):
        size = sum(path.stat().st_size for path in options.clicks if path.is_file())
        if size > _LONG:
            start_processes(workers, plan)
        mapping = dict(options.mapping)
        sizes = [_size_source(path, mapping) for path in _expanded(options.images)]
        tables = _clicks_of(options.clicks, mapping, sizes, part(watch, 0.0, 0.05))
        clicks = clicks_by_image(tables, sizes, tuple(options.extent) if options.extent else None)
        if not clicks:
            raise InputError("contains no clicks", file=options.clicks[0])
        truth = _truth_of(options.truth, mapping, list(clicks)) if options.truth else None
        true_positions = points_by_image(truth, clicks) if truth is not None else {}
        if truth is not None and not true_positions:
            raise InputError("contains none of the images with clicks", file=truth.path, field="image")
        if options.hold_truth:
            clicks = {
                name: _with_known(image_clicks, true_positions.get(name))
                for name, image_clicks in clicks.items()
            }
        weights = dict(options.weights)
        refuse_unknown(
            weights, (name for image_clicks in clicks.values() for name in image_clicks.annotators), "weigh"
        )
        clicks = {name: image_clicks.with_weights(weights) for name, image_clicks in clicks.items()}
        clicks = _with_controls(clicks, options.positive, options.negative)
        if options.scores:
            clicks = _with_scores(clicks, options.scores, mapping)
        make_folder(options.output)
        fused = 1.0 if sized is None else 0.3
        outcomes = fuse_images(clicks, plan, watch=part(watch, 0.05, fused), workers=workers)
        if sized is not None:
            crowds = {
                name: replace(image_clicks, known=KnownSpots.none()) for name, image_clicks in clicks.items()
            }
            curves = measure_images(crowds, true_positions, radius, plan, sized, part(watch, fused, 1.0))
    evaluations = evaluate_outcomes(outcomes, true_positions, radius) if truth is not None else None
    record = run_record(
        plan, clicks, outcomes.values(), started=started, seconds=time.perf_counter() - clock,
        digest=digest_of(clicks),
        inputs=files_and_digests(options.clicks), weights=weights,
        controls={
            name: image_clicks.control for name, image_clicks in clicks.items()
            if image_clicks.control is not None
        },
        scores=scores_record(clicks, files_and_digests([options.scores])[0]) if options.scores else None,
    )  # fmt: skip
    order = [table.images[image] for table in tables for image in table.image]
    if sized is not None:
        record["crowd_size"] = sized.as_dict()
    results = Results(clicks, outcomes, plan, record, evaluations, order)
    saved = write_in_folder(
        lambda folder: [*write_crowd_sizes(folder, curves), *write_results(folder, results)], options.output
    )
    notices = [notice for table in tables for notice in table.notices] + record["notices"]
    if truth is not None:
        notices += _left_out(truth, clicks, evaluations or {})
    lines = [
        *summary_of(clicks, outcomes, evaluations, record["seconds"], radius),
        *crowd_sizes_in_words(curves),
    ]
    print_results(notices, lines)
    print_files(saved.answer, saved.path)
    saved.check_path("All results are in")
    raise_failures(outcomes)
    return 0


def plan_texts(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings that the options name, with the detector."""
    return {"detector": options.detector, **dict(options.settings)}


def summarise(answer: Answer, study: Study, _options: argparse.Namespace, _watch: Watch) -> Summary:
    """Describe a run over a study; see `Functions.summarise`."""
    inputs = answer.inputs
    used = len(inputs.items) + len(inputs.others.images)
    notices = [
        *click_notices(inputs.given, answer.outcomes.values(), inputs.others),
        *read_notices({name for image in inputs.given.values() for name in image.annotators}),
        isolation_notice(answer.plan, used, len(study.items()["clicks"])) or "",
        others_in_words(inputs.others.as_log()),
    ]
    lines = summary_of(inputs.given, answer.outcomes, None, answer.seconds)
    return Summary([notice for notice in notices if notice], lines)


def _with_known(clicks: Clicks, positions: FloatArray | None) -> Clicks:
    if positions is None:
        return clicks
    known_spots = KnownSpots(positions[:, 0], positions[:, 1], np.ones(len(positions), dtype=bool))
    return replace(clicks, known=known_spots)


def _with_controls(
    clicks: Mapping[str, Clicks], positive: Sequence[str], negative: Sequence[str]
) -> dict[str, Clicks]:
    """Mark the control images: those known to contain structures, and those known to contain none."""
    both = sorted(set(positive) & set(negative))
    if both:
        raise InputError(f"{plain(both[0])} is named as --positive and as --negative; expected one of them")
    controlled = dict(clicks)
    for control, names in ((True, positive), (False, negative)):
        for name in names:
            if name not in controlled:
                examples = ", ".join(plain(image, 30) for image in list(controlled)[:8])
                raise InputError(f"there is no image {plain(name)} for a control; expected one of {examples}")
            controlled[name] = replace(controlled[name], control=control)
    return controlled


def _with_scores(clicks: Mapping[str, Clicks], path: Path, mapping: Mapping[str, str]) -> dict[str, Clicks]:
    """Add a program's detections to each image. The column mapping of the clicks applies too."""
    try:
        table = read_scores(path)
    except UnknownColumns as unknown:
        fields = {*_TRUE_FIELDS, "score"}
        named = {c: f for c, f in mapping.items() if f in fields and c in unknown.header}
        named_table = read_named(path, "scores", named, silent)
        assert isinstance(named_table, PointTable)
        table = named_table
    scores = scores_by_image(table, clicks)
    if not scores:
        raise InputError("contains none of the images with clicks", file=path, field="image")
    return {name: replace(image_clicks, scores=scores.get(name)) for name, image_clicks in clicks.items()}


def summary_of(
    clicks: Mapping[str, Clicks],
    outcomes: Mapping[str, Outcome[Fusion]],
    evaluations: Mapping[str, Evaluation] | None,
    seconds: float,
    radius: float = RADIUS,
) -> Iterator[str]:
    """Summarise the results in a line or two."""
    fusions = successful(outcomes).values()
    annotators = {name for image_clicks in clicks.values() for name in image_clicks.annotators}
    detections = sum(int(fusion.detection.detected.sum()) for fusion in fusions)
    clusters = sum(len(fusion.clustering) for fusion in fusions)
    yield (
        f"{counted(sum(map(len, clicks.values())), 'click')} by {counted(len(annotators), 'annotator')} on "
        f"{counted(len(clicks), 'image')}: {counted(detections, 'detection')} of "
        f"{counted(clusters, 'cluster')}, in {seconds:.1f} s"
    )
    outside = sum(int(image_clicks.outside.sum()) for image_clicks in clicks.values())
    merged = sum(len(fusion.mark) - len(fusion.clustering.inlier) for fusion in fusions)
    remarks = [f"{counted(outside, 'click')} outside the image"] if outside else []
    if merged:
        remarks.append(
            f"{counted(merged, 'duplicate click')} by the same annotator at the same position, not counted"
        )
    if remarks:
        yield "; ".join(remarks)
    if evaluations:
        (mean,) = compare({"mean": list(evaluations.values())})
        yield (
            f"against the truth, within {radius:g} px, mean over {counted(mean.images, 'image')}: "
            f"sensitivity {mean.sensitivity:.3f}, precision {mean.precision:.3f}, "
            f"F0.5 {mean.f_half:.3f}, F1 {mean.f_one:.3f}, "
            f"F2 {mean.f_two:.3f}"
        )


def read_named(
    path: Path,
    kind: str | None,
    mapping: Mapping[str, str],
    watch: Watch,
    scales: ImageScales = unknown_scales,
) -> ClickTable | PointTable | ImageFile:
    """Read a file. The error for unknown columns explains how to map them."""
    try:
        return formats.read(path, kind, mapping or None, watch, scales)
    except UnknownColumns as unknown:
        raise InputError(f"{unknown.what}, by --map column=field", file=path) from unknown


def _has_annotations(source: Source) -> bool:
    """Return whether a file contains points, or annotations other than a table of clicks."""
    if has_points(source):
        return True
    return may_hold_annotations(source.path) and source.document() is not None


def _clicks_of(
    paths: Sequence[Path],
    mapping: Mapping[str, str],
    sizes: Sequence[ClickTable | PointTable | ImageFile],
    watch: Watch,
) -> list[ClickTable]:
    """Read tables of clicks and files of points. A file without annotator is named after itself."""
    tables, point_files, sources = [], [], Sources()
    scales = index_scales(
        (file.name, ImageScale(file.pixel_size, (file.width, file.height)))
        for file in sizes
        if isinstance(file, ImageFile)
    )
    for path in paths:
        if not mapping and _has_annotations(sources.open(path)):
            point_files.append(path)
            continue
        table = read_named(path, "clicks", mapping, watch, scales)
        assert isinstance(table, ClickTable)
        tables.append(table)
    names = [size.name for size in sizes if isinstance(size, ImageFile)]
    names += [name for table in (*sizes, *tables) if isinstance(table, ClickTable) for name in table.images]
    files = read_point_files(point_files, SkippedFiles(point_files), sources, watch)
    try:
        attributed = assign_annotators(files, names)
    except UnknownAnnotators as unknown:
        attributed = assign_annotators(files, names, by_hand=unknown.guess)
    return unify_images([*tables, *attributed.clicks])


def _truth_of(path: Path, mapping: Mapping[str, str], images: Sequence[str]) -> PointTable:
    """Read the true positions. The column mapping of the clicks applies too."""
    source = Source(path)
    if not mapping and _has_annotations(source):
        (truth,) = assign_annotators([read_points(source)], images, truth=True).truths
        return truth
    try:
        table = formats.read(path, "truth")
    except UnknownColumns as unknown:
        named = {c: f for c, f in mapping.items() if f in _TRUE_FIELDS and c in unknown.header}
        table = read_named(path, "truth", named, silent)
    assert isinstance(table, PointTable)
    return table


def _left_out(
    truth: PointTable, clicks: Mapping[str, Clicks], evaluations: Mapping[str, Evaluation]
) -> Iterator[str]:
    """Report the images that the evaluation skips."""
    without, name = len(clicks) - len(evaluations), plain(truth.path.name)
    if without:
        yield f"the evaluation skips {counted(without, 'image')} without truth in {name}"
    unclicked = len(truth.images) - len(evaluations)
    if unclicked > 0:
        yield f"the evaluation skips {counted(unclicked, 'image')} of {name} without clicks"


def _size_source(path: Path, mapping: Mapping[str, str]) -> ClickTable | ImageFile:
    """Read the size of an image, or a table of sizes."""
    try:
        source = formats.read(path)
    except UnknownColumns as unknown:
        named = {c: f for c, f in mapping.items() if c in unknown.header}
        source = read_named(path, "clicks", named, silent)
    if isinstance(source, PointTable) or (isinstance(source, ClickTable) and not source.extents):
        raise InputError("has no sizes; expected the columns image, width and height", file=path)
    return source


def _expanded(paths: Sequence[Path]) -> list[Path]:
    """Replace folders by the images in them."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        pictures = sorted(entry for entry in path.iterdir() if entry.suffix.lower() in IMAGE_SUFFIXES)
        if not pictures:
            raise InputError(f"is a folder without images; expected {IMAGES_IN_WORDS}", file=path)
        files += pictures
    return files
