"""The part of clicks in a report: counts on images, and what a run was given besides clicks."""

from __future__ import annotations

from collections.abc import Mapping

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.clicks.report.counted_image import read_counted
from raterscope.app.kinds.clicks.report.crowd_size import crowd_size_section, kept_section
from raterscope.app.kinds.clicks.report.section import clicks_section
from raterscope.app.kinds.kind import ReportPart, ReportRequest
from raterscope.app.review import ReviewState, read_measures
from raterscope.app.study import RunEntry

__all__ = ["gather_part", "held_fixed"]

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
