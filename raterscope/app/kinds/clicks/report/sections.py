"""Section on clicks in a report: images, counts, ground truth, annotators and pictures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
from raterscope.algorithms.clicks.robustness import run_notices
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.clicks.annotators import rate_excluded
from raterscope.app.kinds.clicks.evaluation import EarlierRuns
from raterscope.app.kinds.clicks.report.tables import (
    CountedImage,
    annotators_table,
    counts_table,
    crowd_size_section,
    measurements_table,
    parasitaemia_table,
    read_counted_image,
    stored_crowd_size_section,
    truth_blocks,
)
from raterscope.app.kinds.clicks.runs import (
    copies_in_words,
    explain_not_converged,
    others_in_words,
    reduced_weights,
)
from raterscope.app.kinds.clicks.variability import variability_section
from raterscope.app.kinds.kind import Report, ReportPart, ReportRequest
from raterscope.app.page.contents import (
    Block,
    Facts,
    Gallery,
    Notices,
    Picture,
    Section,
    Swatch,
    photograph,
    run_in_words,
    scale_bar,
    significant,
)
from raterscope.app.page.variability import READERS
from raterscope.app.review import Measures, ReviewState, read_measures
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.references import digest_of_image
from raterscope.figures.canvas import Pen, PixelCanvas
from raterscope.figures.colours import DARK, Symbol
from raterscope.text import counted

_SIDE = 560  # pixels of a picture's longer side
_RADIUS = 6
_MOST = 30
"""Maximum number of images shown."""


def detections_gallery(
    study: Study, images: Sequence[CountedImage], measures: Measures, watch: Watch = silent
) -> Gallery | None:
    """Show the images, the most disputed ones if there are many; None without readable files."""
    order = sorted(range(len(images)), key=lambda at: -int(images[at].disputed.sum()))
    shown_images = [images[at] for at in sorted(order[:_MOST])]
    pictures = []
    for done, image in enumerate(shown_images):
        watch(done / len(shown_images), f"drawing {plain(image.entry.name)}")
        picture = _picture(study, image, measures.pixel_size(image.entry.id, image.entry.pixel_size))
        if picture is not None:
            pictures.append(picture)
    if not pictures:
        return None
    legend = (
        Swatch(DARK.accent, "present: circles"),
        Swatch(DARK.disputed, "disputed, present or not: squares"),
    )
    lost = len(shown_images) - len(pictures)
    note = []
    if len(shown_images) < len(images):
        note.append(f"Of {len(images):,} images the most disputed ones are shown.")
    if lost:
        note.append(f"The files of {counted(lost, 'image')} cannot be read.")
    return Gallery("Images with detections", pictures, legend, " ".join(note))


def _picture(study: Study, counted_image: CountedImage, pixel_size: float | None) -> Picture | None:
    from raterscope.app.formats.image_heads import load_overview
    from raterscope.app.formats.pyramids import is_large

    path = study.locate(counted_image.entry)
    if path is None or path.is_dir():
        return None
    try:
        large = is_large(
            counted_image.entry.width, counted_image.entry.height
        )  # with the key of the file's contents, as in the window
        digest = digest_of_image(path) if large else None
        pixels = load_overview(path, _SIDE, digest, study.settings.displays)
    except (InputError, MemoryError):
        return None
    image = Image.fromarray(pixels).convert("RGB")
    width, height = counted_image.entry.width, counted_image.entry.height
    scale = min(1.0, _SIDE / max(width, height))
    image = image.resize((max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BOX)
    canvas = PixelCanvas.over(image)
    for x, y, present, disputed in zip(
        counted_image.spots.x * scale,
        counted_image.spots.y * scale,
        counted_image.spots.present,
        counted_image.disputed,
        strict=True,
    ):
        if not (present or disputed):
            continue
        symbol: Symbol = "square" if disputed else "disc"
        centre = np.array([[x, y]])
        for radius, pen in (
            (_RADIUS + 1, Pen("#000000", 1.0)),
            (_RADIUS, Pen(DARK.disputed if disputed else DARK.accent, 2.0)),
        ):
            canvas.symbols(centre, symbol, np.array([2.0 * radius]), pen, "")
    text = f"{int(counted_image.spots.present.sum()):,} found"
    disputed = int(counted_image.disputed.sum())
    text += f", {disputed:,} in dispute" if disputed else ""
    if pixel_size is not None:
        text += f"; bar {scale_bar(canvas, scale / pixel_size, 'µm')}"
    elif scale < 1:
        text += f"; shown at {significant(100 * scale, 2)} % of its size"
    return photograph(canvas.pixels(), plain(counted_image.entry.name), text)


def clicks_section(
    study: Study,
    images: Sequence[CountedImage],
    measures: Measures,
    excluded: Mapping[str, str],
    watch: Watch = silent,
) -> Section:
    """Report on all fused images of clicks; `excluded` gives the current reason of each exclusion."""
    last = max((image.run for image in images), key=lambda run: run.id)
    weighed = reduced_weights(last, study)
    results = ((image.entry.id, image.run, image.fusion) for image in images)
    outside = rate_excluded(results, study, study.review_state().aliases)
    annotators = annotators_table(images, weighed, excluded, outside, part(watch, 0.0, 0.2))
    blocks: list[Block | None] = [
        _convergence_notices(images),
        _facts(images, measures),
        counts_table(images),
    ]
    blocks += truth_blocks(images, study.settings.matching_radius())
    blocks += [parasitaemia_table(images, measures), annotators, measurements_table(images, measures)]
    blocks.append(detections_gallery(study, images, measures, part(watch, 0.2, 1.0)))
    return Section("Clicks", [block for block in blocks if block is not None], breaks=True)


def _convergence_notices(images: Sequence[CountedImage]) -> Notices | None:
    """List results that did not converge or that the votes do not settle; None without any."""
    images_by_words: dict[str, list[str]] = {}
    for image in images:
        text = explain_not_converged(image.fusion, image.run.settings)
        if text:
            images_by_words.setdefault(text, []).append(plain(image.entry.name))
    sentences = []
    for text, names in images_by_words.items():
        more_text = f" and {counted(len(names) - 1, 'other image')}" if len(names) > 1 else ""
        sentences.append(f"{names[0]}{more_text}: {text}")
    sentences += run_notices([image.fusion for image in images])
    logs = {image.run.id: image.run.log for image in images}
    for log in logs.values():
        sentences += [text for text in (copies_in_words(log.get("copies", ())), others_in_words(log)) if text]
    return Notices(sentences) if sentences else None


def _facts(images: Sequence[CountedImage], measures: Measures) -> Facts:
    looked = np.array([len(image.annotators) for image in images])
    smallest, largest = int(looked.min()), int(looked.max())
    annotators_per_image = (
        f"{smallest:,} to {largest:,} an image" if smallest < largest else f"{largest:,} an image"
    )
    annotators = counted(len({name for image in images for name in image.annotators}), "annotator")
    clicks = sum(int(image.fusion.rates.clicks.sum()) for image in images)
    repeated = sum(len(image.fusion.mark) for image in images) - clicks
    annotators_per_image = (f", {annotators_per_image}" if len(images) > 1 else "") + (
        f"; {counted(repeated, 'duplicate click')} at the same position by the same annotator not counted"
        if repeated > 0
        else ""
    )
    sizes = {(round(image.entry.width), round(image.entry.height)) for image in images}
    scales = {measures.pixel_size(image.entry.id, image.entry.pixel_size) for image in images}
    facts = [
        ("Images", f"{counted(len(images), 'image')}, {_sizes(sizes)}"),
        ("Pixel size", _scales(scales)),
        ("Clicks", f"{counted(clicks, 'click')} by {annotators}{annotators_per_image}"),
    ]
    truth_counts = [len(image.truth) for image in images if image.truth.known]
    if truth_counts:
        facts.append(("Ground truth", f"{sum(truth_counts):,} on {counted(len(truth_counts), 'image')}"))
    runs = {image.run.id: image.run for image in images}
    return Facts([*facts, *(("Run", run_in_words(run)) for run in runs.values())])


def _sizes(sizes: set[tuple[int, int]]) -> str:
    small, *_, large = sorted(sizes, key=lambda size: size[0] * size[1]) * 2
    text = f"{small[0]:,} x {small[1]:,}"
    return text + (f" to {large[0]:,} x {large[1]:,} px" if len(sizes) > 1 else " px")


def _scales(scales: set[float | None]) -> str:
    known_scales = sorted(scale for scale in scales if scale is not None)
    if not known_scales:
        return "not known"
    text = f"{known_scales[0]:.4g}" + (f" to {known_scales[-1]:.4g}" if len(known_scales) > 1 else "")
    return f"{text} µm" + (", of some images unknown" if None in scales else "")


_TEACHING = (
    " With the crowd's prior, decisions inform the other spots by their likelihood. It allows for wrong "
    "decisions, and for an expert who records rejections only or acceptances only: the spots that were "
    "viewed and left without a decision show which. Without a record of views, the most disputed spots are "
    "assumed to be viewed first. Decisions that were recorded depending on their outcome do not enter the "
    "fit of the votes, because such spots are not a random sample."
)


_SCORED = ("images", "detections")

_CLASSES = (
    "Classes of clicks",
    "The classes of the clicks in a cluster are votes on its class; an annotator without a click there has "
    "none. A pooled hierarchical Dawid-Skene model of the votes on all images ([@dawid1979], [@paun2018]) "
    "estimates every annotator's confusion matrix and the probability of each class. A spot counts for a "
    "class with the product of its posterior and that probability.",
)


_VARIABILITY = (
    "Observer variability of clicks",
    "Marks of two readers are matched one to one within the matching radius; detection agreement is "
    "twice the matched marks over the marks of both. Lin's concordance correlation of counts: "
    f"[@lin1989], [@lin2000]. {READERS}",
)


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Report the counts on the images; with the option `crowd_size`, also accuracy by crowd size."""
    study, state = request.study, request.state
    crowd_size = request.options.get("crowd_size")
    ids = {item.id for item in request.items}
    entries = [entry for entry in study.images() if entry.id in ids]
    counted_images, runs, earlier = [], {}, EarlierRuns(study)
    for done, entry in enumerate(entries):
        watch(0.5 * done / len(entries), f"counting on {plain(entry.name)}")
        counted_image = read_counted_image(study, entry, state, earlier)
        if counted_image is not None:
            counted_images.append(counted_image)
            runs[counted_image.run.id] = counted_image.run
    measures = read_measures(study.decisions(), state)
    last = 1.0 if crowd_size is None else 0.6
    sections = [clicks_section(study, counted_images, measures, state.excluded, part(watch, 0.5, last))]
    protocol = request.options.get("variability")
    if protocol is not None:
        sections.append(
            variability_section(study, [entry.id for entry in entries], protocol, part(watch, last, last))
        )
    views = {image: image_views for image, image_views in study.views.by_image().items() if image in ids}
    if counted_images and crowd_size is None:
        crowd_section = stored_crowd_size_section(study)
        sections += [] if crowd_section is None else [crowd_section]
    elif counted_images and crowd_size is not None:
        run = max((counted_image.run for counted_image in counted_images), key=lambda run: run.id)
        images = [counted_image.entry.id for counted_image in counted_images]
        sections.append(crowd_size_section(study, images, run, crowd_size, part(watch, last, 1.0)))
    methods = () if protocol is None else (_VARIABILITY,)
    if any(counted_image.fusion.classes is not None for counted_image in counted_images):
        methods = (*methods, _CLASSES)
    return ReportPart(sections, runs, methods, views=views)


def held_fixed(
    run: RunEntry, state: ReviewState, names: Mapping[tuple[str, int], str], fixed: bool
) -> tuple[str, str]:
    """Describe control images, viewed spots, scores and other images of a run; see `Report.held_fixed`."""
    controls = _controls(run, state, names)
    words = _TEACHING if fixed else ""
    viewed = run.log.get("viewed")
    if isinstance(viewed, int) and viewed > 0:
        words += (
            f" {counted(viewed, 'spot')} {'was' if viewed == 1 else 'were'} known to have been viewed and "
            "left without a decision."
        )
    words += controls + _scores(run)
    other_images = run.log.get("others")
    if isinstance(other_images, int) and other_images > 0:
        images = counted(other_images, "other image")
        words += f" {images}, as fused in earlier runs, informed the crowd's rates too."
    return "No decided spot was held fixed." if controls else "Nothing was held fixed.", words


def _scores(run: RunEntry) -> str:
    """Describe how a program's scores were used in a run; empty without scores."""
    scores = run.log.get("scores")
    if not isinstance(scores, dict) or not all(isinstance(scores.get(key), int) for key in _SCORED):
        return ""
    images, detections = (scores[key] for key in _SCORED)
    return (
        f" The scores of a program, {counted(detections, 'detection')} on {counted(images, 'image')}, were "
        "weighed as one more observer: the posterior by the votes was multiplied by the likelihood ratio of "
        "the score, or of a missing detection. The ratio was learned from the decisions and the votes "
        "together ([@raykar2010]), by the ranks of the scores, with normal distributions ([@metz1978]) that "
        "may depend on the votes."
    )


def _controls(run: RunEntry, state: ReviewState, items: Mapping[tuple[str, int], str]) -> str:
    """Name the control images of a run; empty without any."""
    sentences = []
    for kind, holds, rule in (
        ("Positive", True, "a run without any structure is excluded by them"),
        (
            "Negative",
            False,
            "their clusters are assumed to be artefacts, and as many are expected on the others",
        ),
    ):
        marks = {image: state.control(image) for image in run.items}
        names = [
            plain(items.get(("clicks", image), f"image {image}"), 40)
            for image, mark in marks.items()
            if mark is not None and mark.holds == holds
        ]
        if names:
            sentences.append(f" {kind} control images: {', '.join(names)}; {rule}.")
    return "".join(sentences)


def _read_options(options: argparse.Namespace) -> dict[str, Any]:
    if options.by_crowd_size is None:
        return {}
    return {"crowd_size": CrowdSizeSettings.from_text(dict(options.by_crowd_size))}


REPORT = Report(gather_part, _read_options, held_fixed)
