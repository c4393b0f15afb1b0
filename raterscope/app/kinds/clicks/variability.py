"""Observer variability of clicks: counts on each image, and agreement of the marks themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement import DetectionAgreement, detection_agreement
from raterscope.algorithms.annotators.agreement_statistics import (
    Coefficient,
    IntraclassCorrelation,
    LimitsOfAgreement,
    concordance_correlation,
    intraclass_correlation,
    limits_of_agreement,
)
from raterscope.algorithms.annotators.reader_study import (
    ReaderComparison,
    compare_readers,
    mean_interval,
    mean_over_pairs,
)
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request
from raterscope.app.formats.output_files import write_table
from raterscope.app.page.contents import Block, Gallery, Notices, Section, Table
from raterscope.app.page.variability import (
    ANOTHER,
    ANY_READER,
    COLUMNS,
    ICC,
    THE_SAME,
    Protocol,
    Statistic,
    bias_picture,
    bland_altman_pictures,
    compared_pairs,
    complete_table,
    first_reads,
    forest_picture,
    is_intra,
    person_of,
    protocol_table,
    reader_statistics,
    readers_table,
    statistic_rows,
    write,
)
from raterscope.app.review import current_names
from raterscope.app.study import Study
from raterscope.text import counted

_MAX_READERS = 12
_MIN_IMAGES = 3

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """Agreement of two annotators, or of two reads."""

    limits: LimitsOfAgreement  # of the counts on the images that both viewed
    concordance: Coefficient  # Lin's, of these counts
    detection: DetectionAgreement  # of the marks


@dataclass(frozen=True, eq=False)
class CountVariability:
    """Variability of the annotators' counts."""

    # annotator to image to count, for the compared annotators
    counts: dict[str, dict[int, float]]
    readers: ReaderComparison | None
    icc: IntraclassCorrelation | None  # of the first reads of images that `complete` annotators all viewed
    complete: tuple[int, int]  # number of these images and annotators
    pairs: dict[Pair, PairAgreement]  # by (str, str)
    radius: float  # pixels within which marks match
    left_out: int  # number of annotators not compared


def measure_counts(study: Study, items: Sequence[int] = (), watch: Watch = silent) -> CountVariability | None:
    """Compare the counts and marks of the annotators who viewed the most images; None without two of them."""
    state = study.review_state()
    marks: dict[str, dict[int, NDArray[np.float64]]] = {}
    images = [entry for entry in study.images() if not items or entry.id in items]
    for done, entry in enumerate(images):
        watch(0.5 * done / len(images), f"counting on {plain(entry.name)}")
        clicks = study.clicks(entry.id)
        clicks = clicks.joined(current_names(clicks.annotators, state.aliases)).without(state.apart)
        points = np.column_stack([clicks.x, clicks.y])
        for number, name in enumerate(clicks.annotators):
            main = state.aliases.get(name, name)
            marks.setdefault(main, {})[entry.id] = np.unique(points[clicks.annotator == number], axis=0)
    busiest = sorted(first_reads(marks), key=lambda name: -len(marks[name]))[:_MAX_READERS]
    annotators = {person_of(name) for name in busiest}
    chosen = {name: of for name, of in marks.items() if person_of(name) in annotators}
    if len(chosen) < 2:
        return None
    counts = {name: {image: float(len(of)) for image, of in own.items()} for name, own in chosen.items()}
    radius, pairs = study.settings.matching_radius(), {}
    to_compare = compared_pairs(counts)
    for done, (first, second) in enumerate(to_compare):
        watch(0.5 + 0.5 * done / len(to_compare), "comparing annotators")
        common = sorted(set(counts[first]) & set(counts[second]))
        if len(common) >= _MIN_IMAGES:
            a, b = ([counts[name][image] for image in common] for name in (first, second))
            own, other = ([chosen[name][image] for image in common] for name in (first, second))
            pairs[first, second] = PairAgreement(
                limits_of_agreement(a, b), concordance_correlation(a, b),
                detection_agreement(own, other, radius),
            )  # fmt: skip
    _, table = complete_table(first_reads(counts))
    icc = intraclass_correlation(table) if len(table) > 1 else None
    left_out = len(first_reads(marks)) - len(busiest)
    shape = (len(table), len(table.T))
    return CountVariability(counts, compare_readers(counts), icc, shape, pairs, radius, left_out)


def count_statistics(variability: CountVariability) -> Iterator[Statistic]:
    """Yield all statistics, for exports and protocols."""
    images, readers = variability.complete
    if variability.icc is not None:
        for name, key in ICC.items():
            yield Statistic("count", key, getattr(variability.icc, name), cases=images, raters=readers)
    for intra in (False, True):
        own = [pair for pair in variability.pairs if is_intra(*pair) == intra]
        for key in ("concordance", "detection_agreement"):
            if own:
                value = _mean_of(variability, own, key)
                images = sum(variability.pairs[pair].detection.images for pair in own)
                other = THE_SAME if intra else ANOTHER
                yield Statistic("count", key, value, "", ANY_READER, other, images, len(own))
    for pair, agreement in variability.pairs.items():
        for key, value in (
            ("bias", agreement.limits.bias), ("lower limit of agreement", agreement.limits.lower),
            ("upper limit of agreement", agreement.limits.upper), ("concordance", agreement.concordance),
            ("detection_agreement", agreement.detection.share),
        ):  # fmt: skip
            yield Statistic("count", key, value, "", *pair, agreement.detection.images, single=True)
    if variability.readers is not None:
        yield from reader_statistics("count", "", variability.readers)


def export_variability(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the observer variability of clicks; see `exports.Writer`."""
    variability = measure_counts(study, request.items, watch)
    if variability is None:
        raise InputError("contains no clicks of two annotators", file=study.path)
    return [write_table(request.path, COLUMNS, statistic_rows(count_statistics(variability)))]


def variability_section(
    study: Study, items: Sequence[int], protocol: Protocol, watch: Watch = silent
) -> Section:
    """Report the variability of counts and marks."""
    title = "Observer variability"
    variability = measure_counts(study, items, part(watch, 0.0, 0.9))
    if variability is None:
        return Section(title, [Notices(["The images were viewed by one annotator alone."])])
    limits = protocol_table(protocol, list(count_statistics(variability)))
    blocks: list[Block] = [] if limits is None else [limits]
    if variability.left_out:
        shown = len(first_reads(variability.counts))
        others = counted(variability.left_out, "other")
        text = f"The {shown} annotators who viewed the most images are compared, without {others}."
        blocks.append(Notices([text]))
    blocks.append(_pairs_table(variability))
    pictures = []
    if variability.readers is not None:
        blocks.append(readers_table(variability.readers, "Clicks on an image", ""))
        pictures.append(bias_picture(variability.readers, "Clicks on an image", ""))
    names = list(first_reads(variability.counts))
    values = [_agreement_with_others(variability, name) for name in names]
    if len(names) > 2:
        shown_names = [plain(name, 40) for name in names]
        pictures.append(
            forest_picture(
                shown_names, values, "agreement with the others", "Detection agreement of each reader"
            )
        )
    pictures += bland_altman_pictures(variability.counts, "Clicks on an image", "")
    blocks.append(Gallery("Readers compared", pictures))
    return Section(title, blocks, breaks=True)


def _pairs_table(variability: CountVariability) -> Table:
    rows = [
        (
            " \N{MINUS SIGN} ".join(plain(name, 30) for name in pair),
            f"{agreement.detection.images:,}",
            write(agreement.limits.bias),
            write(agreement.limits.lower),
            write(agreement.limits.upper),
            write(agreement.concordance),
            write(agreement.detection.share),
        )
        for pair, agreement in list(variability.pairs.items())[: 2 * _MAX_READERS]
    ]
    images, readers = variability.complete
    note = (
        "Clicks on each image that both viewed: Bland-Altman bias and limits of agreement, and Lin's "
        "concordance correlation. Detections: share of the marks of both that match within "
        f"{variability.radius:g} px. With 95 % intervals."
    )
    if variability.icc is not None:
        icc = variability.icc
        note += (
            f" Of {counted(images, 'image')} that {readers} readers all viewed: ICC(1,1) "
            f"{write(icc.one_way)}, ICC(2,1) {write(icc.absolute)}, ICC(3,1) {write(icc.consistency)}, "
            f"ICC(2,k) {write(icc.absolute_mean)}."
        )
    if len(variability.pairs) > len(rows):
        note += f" {len(rows)} of {len(variability.pairs)} pairs are shown; the export has all."
    heads = ("", "Images", "Bias", "Lower limit", "Upper limit", "Concordance", "Detections")
    return Table("Counts and detections of two readers", heads, rows, note)


def _mean_of(variability: CountVariability, pairs: Sequence[Pair], key: str) -> Coefficient:
    """Average a coefficient over pairs of readers, or over the reads of readers."""
    values = {
        pair: agreement.concordance if key == "concordance" else agreement.detection.share
        for pair, agreement in ((pair, variability.pairs[pair]) for pair in pairs)
    }
    if len(values) == 1:
        return next(iter(values.values()))
    estimates = {pair: value.value for pair, value in values.items()}
    intra = all(is_intra(*pair) for pair in pairs)
    mean = mean_interval(list(estimates.values())) if intra else mean_over_pairs(estimates)
    return Coefficient(mean.value, mean.low, min(1.0, mean.high))


def _agreement_with_others(variability: CountVariability, name: str) -> Coefficient:
    """Average the detection agreement of a reader with each of the others, taken as independent."""
    shares = [
        agreement.detection.share.value
        for pair, agreement in variability.pairs.items()
        if name in pair and not is_intra(*pair)
    ]
    mean = mean_interval(shares)
    return Coefficient(mean.value, max(0.0, mean.low), min(1.0, mean.high))
