"""The images of clicks in a report: what there is, counts, ground truth, the annotators, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raterscope.algorithms.clicks.grouping import run_notices
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.convergence import of_clicks
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.clicks.other_images import others_in_words
from raterscope.app.kinds.clicks.report.counted_image import CountedImage
from raterscope.app.kinds.clicks.report.evaluation import against_truth
from raterscope.app.kinds.clicks.report.pictures import images_found
from raterscope.app.kinds.clicks.report.tables import (
    annotators_table,
    counts_table,
    measurements_table,
    parasitaemia_table,
)
from raterscope.app.kinds.clicks.running import counted_in
from raterscope.app.page.contents import Block, Facts, Notices, Section
from raterscope.app.page.runs import run_in_words
from raterscope.app.review import Measures
from raterscope.app.study import Study

__all__ = ["clicks_section"]


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
