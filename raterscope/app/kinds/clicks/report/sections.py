"""The part of clicks in a report: images, counts, ground truth, annotators and pictures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
from raterscope.algorithms.clicks.robustness import run_notices
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.convergence import of_clicks
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.kinds.clicks.report.tables import (
    CountedImage,
    against_truth,
    annotators_table,
    counts_table,
    crowd_size_section,
    kept_section,
    measurements_table,
    parasitaemia_table,
    read_counted,
)
from raterscope.app.kinds.clicks.runs import counted_in, others_in_words
from raterscope.app.kinds.kind import Report, ReportPart, ReportRequest
from raterscope.app.page.contents import Block, Facts, Gallery, Notices, Picture, Section, Swatch
from raterscope.app.page.pictures import photograph, scale_bar
from raterscope.app.page.units import run_in_words, significant
from raterscope.app.review import Measures, ReviewState, read_measures
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.digests import digest_of_file
from raterscope.figures.colours import DARK

_SIDE = 560  # pixels of a picture's longer side
_RADIUS = 6
_MOST = 30
"""Images that are shown."""


def images_found(
    study: Study, found: Sequence[CountedImage], measures: Measures, watch: Watch = silent
) -> Gallery | None:
    """Show the images, of many those with the most spots in dispute; None where no file is at hand."""
    order = sorted(range(len(found)), key=lambda at: -int(found[at].disputed.sum()))
    shown = [found[at] for at in sorted(order[:_MOST])]
    pictures = []
    for done, one in enumerate(shown):
        watch(done / len(shown), f"drawing {plain(one.entry.name)}")
        picture = _picture(study, one, measures.pixel_size(one.entry.id, one.entry.pixel_size))
        if picture is not None:
            pictures.append(picture)
    if not pictures:
        return None
    legend = (
        Swatch(DARK.accent, "present: circles"),
        Swatch(DARK.disputed, "in dispute, present or not: squares"),
    )
    lost = len(shown) - len(pictures)
    note = []
    if len(shown) < len(found):
        note.append(f"Of {len(found):,} images those with the most spots in dispute are shown.")
    if lost:
        note.append(f"The files of {counted(lost, 'image')} cannot be read.")
    return Gallery("Images with what was found", pictures, legend, " ".join(note))


def _picture(study: Study, one: CountedImage, pixel_size: float | None) -> Picture | None:
    from raterscope.app.formats.pyramids import is_large, load_overview

    place = study.locate(one.entry)
    if place is None or place.is_dir():
        return None
    try:
        large = is_large(one.entry.width, one.entry.height)  # kept by its content, as the window does
        pixels = load_overview(place, _SIDE, digest_of_file(place) if large else None)
    except (InputError, MemoryError):
        return None
    image = Image.fromarray(pixels).convert("RGB")
    width, height = one.entry.width, one.entry.height
    scale = min(1.0, _SIDE / max(width, height))
    image = image.resize((max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BOX)
    brush = ImageDraw.Draw(image)
    for x, y, present, disputed in zip(
        one.spots.x * scale, one.spots.y * scale, one.spots.present, one.disputed, strict=True
    ):
        if not (present or disputed):
            continue
        draw = brush.rectangle if disputed else brush.ellipse
        for radius, colour, line in (
            (_RADIUS + 1, "#000000", 1),
            (_RADIUS, DARK.disputed if disputed else DARK.accent, 2),
        ):
            draw((x - radius, y - radius, x + radius, y + radius), outline=colour, width=line)
    words = f"{int(one.spots.present.sum()):,} found"
    disputed = int(one.disputed.sum())
    words += f", {disputed:,} in dispute" if disputed else ""
    if pixel_size is not None:
        words += f"; bar {scale_bar(image, scale / pixel_size, 'µm')}"
    elif scale < 1:
        words += f"; shown at {significant(100 * scale, 2)} % of its size"
    return photograph(image, plain(one.entry.name), words)


def clicks_section(
    study: Study,
    found: Sequence[CountedImage],
    measures: Measures,
    excluded: Mapping[str, str],
    watch: Watch = silent,
) -> Section:
    """Tell of all images of clicks that were fused; `excluded` gives the reason of each as it stands now."""
    last = max((one.run for one in found), key=lambda run: run.id)
    weighed = counted_in(last, study.decisions())
    people = annotators_table(found, weighed, excluded, part(watch, 0.0, 0.2))
    blocks: list[Block | None] = [_unsettled(found), _facts(found, measures), counts_table(found)]
    blocks += against_truth(found, study.settings.matching_radius())
    blocks += [parasitaemia_table(found, measures), people, measurements_table(found, measures)]
    blocks.append(images_found(study, found, measures, part(watch, 0.2, 1.0)))
    return Section("Clicks", [block for block in blocks if block is not None], breaks=True)


def _unsettled(found: Sequence[CountedImage]) -> Notices | None:
    """Say which results did not converge or are not settled by the votes, with advice; None where none."""
    of: dict[str, list[str]] = {}
    for one in found:
        words = of_clicks(one.fusion, one.run.settings)
        if words:
            of.setdefault(words, []).append(plain(one.entry.name))
    sentences = []
    for words, names in of.items():
        others = f" and {counted(len(names) - 1, 'other image')}" if len(names) > 1 else ""
        sentences.append(f"{names[0]}{others}: {words}")
    sentences += run_notices([one.fusion for one in found])
    logs = {one.run.id: one.run.log for one in found}
    sentences += [words for words in map(others_in_words, logs.values()) if words]
    return Notices(sentences) if sentences else None


def _facts(found: Sequence[CountedImage], measures: Measures) -> Facts:
    looked = np.array([len(one.annotators) for one in found])
    least, most = int(looked.min()), int(looked.max())
    each = f"{least:,} to {most:,} an image" if least < most else f"{most:,} an image"
    people = counted(len({name for one in found for name in one.annotators}), "annotator")
    clicks = sum(int(one.fusion.rates.clicks.sum()) for one in found)
    twice = sum(len(one.fusion.mark) for one in found) - clicks
    each = (f", {each}" if len(found) > 1 else "") + (
        f"; {counted(twice, 'duplicate click')} at the same position by the same annotator not counted"
        if twice > 0
        else ""
    )
    sizes = {(round(one.entry.width), round(one.entry.height)) for one in found}
    scales = {measures.pixel_size(one.entry.id, one.entry.pixel_size) for one in found}
    facts = [
        ("Images", f"{counted(len(found), 'image')}, {_sizes(sizes)}"),
        ("Pixel size", _scales(scales)),
        ("Clicks", f"{counted(clicks, 'click')} by {people}{each}"),
    ]
    known = [len(one.truth) for one in found if one.truth.known]
    if known:
        facts.append(("Ground truth", f"{sum(known):,} on {counted(len(known), 'image')}"))
    runs = {one.run.id: one.run for one in found}
    return Facts([*facts, *(("Run", run_in_words(run)) for run in runs.values())])


def _sizes(sizes: set[tuple[int, int]]) -> str:
    small, *_, large = sorted(sizes, key=lambda size: size[0] * size[1]) * 2
    words = f"{small[0]:,} x {small[1]:,}"
    return words + (f" to {large[0]:,} x {large[1]:,} px" if len(sizes) > 1 else " px")


def _scales(scales: set[float | None]) -> str:
    known = sorted(scale for scale in scales if scale is not None)
    if not known:
        return "not known"
    words = f"{known[0]:.4g}" + (f" to {known[-1]:.4g}" if len(known) > 1 else "")
    return f"{words} µm" + (", of some images not known" if None in scales else "")


_TEACHING = (
    " With the crowd's prior, decisions teach the other spots by their likelihood. It allows for wrong "
    "decisions, and for an expert who records rejections only or acceptances only: which it is, is inferred "
    "from the spots that were viewed and left without a decision. Without a record of views, the most "
    "disputed spots are taken to be viewed first. As far as decisions were recorded by their outcome, the "
    "model of the votes is not fitted to them, as the spots recorded are no sample of those alike."
)


_SCORED = ("images", "detections")


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Count on the images; with the option `crowd_size`, measure against the number of annotators too."""
    study, state = request.study, request.state
    crowd_size = request.options.get("crowd_size")
    ids = {one.id for one in request.items}
    entries = [entry for entry in study.images() if entry.id in ids]
    found, runs = [], {}
    for done, entry in enumerate(entries):
        watch(0.5 * done / len(entries), f"counting on {plain(entry.name)}")
        one = read_counted(study, entry, state.spots(entry.id))
        if one is not None:
            found.append(one)
            runs[one.run.id] = one.run
    measures = read_measures(study.decisions(), state)
    last = 1.0 if crowd_size is None else 0.6
    sections = [clicks_section(study, found, measures, state.excluded, part(watch, 0.5, last))]
    views = {image: some for image, some in study.views.by_image().items() if image in ids}
    if found and crowd_size is None:
        kept = kept_section(study)
        sections += [] if kept is None else [kept]
    elif found and crowd_size is not None:
        run = max((one.run for one in found), key=lambda run: run.id)
        images = [one.entry.id for one in found]
        sections.append(crowd_size_section(study, images, run, crowd_size, part(watch, last, 1.0)))
    return ReportPart(sections, runs, views=views)


def held_fixed(
    run: RunEntry, then: ReviewState, names: Mapping[tuple[str, int], str], fixed: bool
) -> tuple[str, str]:
    """Describe control images, viewed spots, scores and other images of a run; see `Report.held_fixed`."""
    controls = _controls(run, then, names)
    words = _TEACHING if fixed else ""
    viewed = run.log.get("viewed")
    if isinstance(viewed, int) and viewed > 0:
        words += (
            f" {counted(viewed, 'spot')} {'was' if viewed == 1 else 'were'} known to have been viewed and "
            "left without a decision."
        )
    words += controls + _scores(run)
    others = run.log.get("others")
    if isinstance(others, int) and others > 0:
        words += f" {counted(others, 'other image')}, as fused in earlier runs, taught the crowd's rates too."
    return "No decided spot was held fixed." if controls else "Nothing was held fixed.", words


def _scores(run: RunEntry) -> str:
    """Say that a program's scores were weighed in a run of clicks; empty where none were."""
    found = run.log.get("scores")
    if not isinstance(found, dict) or not all(isinstance(found.get(one), int) for one in _SCORED):
        return ""
    images, detections = (found[one] for one in _SCORED)
    return (
        f" The scores of a program, {counted(detections, 'detection')} on {counted(images, 'image')}, were "
        "weighed as one more observer: the posterior by the votes was multiplied by the likelihood ratio of "
        "the score, or of a missing detection. The ratio was learned from the decisions and the votes "
        "together ([@raykar2010]), by the ranks of the scores, with normal distributions ([@metz1978]) that "
        "may depend on the votes."
    )


def _controls(run: RunEntry, then: ReviewState, items: Mapping[tuple[str, int], str]) -> str:
    """Name the control images of a run of clicks; empty where it has none."""
    said = []
    for kind, holds, rule in (
        ("Positive", True, "a run without any structure is excluded by them"),
        (
            "Negative",
            False,
            "their clusters are held to be artefacts, and as many are expected on the others",
        ),
    ):
        marks = {image: then.control(image) for image in run.items}
        names = [
            plain(items.get(("clicks", image), f"image {image}"), 40)
            for image, mark in marks.items()
            if mark is not None and mark.holds == holds
        ]
        if names:
            said.append(f" {kind} control images: {', '.join(names)}; {rule}.")
    return "".join(said)


def _read_options(options: argparse.Namespace) -> dict[str, Any]:
    if options.by_crowd_size is None:
        return {}
    return {"crowd_size": CrowdSizeSettings.from_text(dict(options.by_crowd_size))}


REPORT = Report(gather_part, _read_options, held_fixed)
