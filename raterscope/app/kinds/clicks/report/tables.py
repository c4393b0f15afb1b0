"""The tables of images of clicks: counts, parasitaemia, what was measured, the annotators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from raterscope.algorithms.annotators.agreement import ClickAgreement, click_agreement
from raterscope.algorithms.clicks.counting import expected_count
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.fusion import pool_rates
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.disputes import matters_in_words
from raterscope.app.errors import plain
from raterscope.app.kinds.clicks.parasitaemia import SOURCE, field_of, note_of, tell
from raterscope.app.kinds.clicks.report.measures import CountedImage
from raterscope.app.page.contents import Table, shortened
from raterscope.app.page.units import NONE, share, significant
from raterscope.app.review import Measures, Weighed
from raterscope.text.numbers import estimate, part_of_one

_MOST_ANNOTATORS = 60
_MOST_COMPARED = 1000
"""Annotators every two of whom are compared: a million pairs."""


def counts_table(found: Sequence[CountedImage]) -> Table:
    """Tell how many structures are on each image and on all together."""
    rows = shortened([_counts(plain(one.entry.name), [one]) for one in found])
    if len(found) > 1:
        rows.append(_counts("all images", found))
    note = (
        "Found: spots that count as structures, the expert's decisions included. Expected: the sum of the "
        "probabilities that a spot is a structure, with the interval that holds the number with 95 %; errors "
        "of the probabilities are taken to go all the same way, since the same annotators are behind them. "
        "It knows nothing of structures that nobody clicked on."
    )
    doubtful = np.concatenate([one.spots.posterior[one.disputed] for one in found])
    if len(doubtful):
        note += " " + matters_in_words(np.minimum(doubtful, 1 - doubtful), "disputed spot")
    columns = ("Image", "Annotators", "Clicks", "Found", "Expected (95 %)", "In dispute", "Decided")
    return Table("Counts", columns, rows, note)


def _counts(name: str, found: Sequence[CountedImage]) -> Sequence[str]:
    posterior, low, high = (
        np.concatenate([getattr(one.spots, each) for one in found]) for each in ("posterior", "low", "high")
    )
    return (
        name,
        f"{len({who for one in found for who in one.annotators}):,}",
        f"{sum(int(one.fusion.rates.clicks.sum()) for one in found):,}",
        f"{sum(int(one.spots.present.sum()) for one in found):,}",
        estimate(*expected_count(posterior, low, high)),
        f"{sum(int(one.disputed.sum()) for one in found):,}",
        f"{sum(int(one.spots.decided.sum()) for one in found):,}",
    )


def parasitaemia_table(found: Sequence[CountedImage], measures: Measures) -> Table | None:
    """Tell the parasitaemia; None where nothing was counted that parasites are told for."""
    if not measures.counting:
        return None
    fields = [
        field for one in found if (field := field_of(one.entry, one.fusion, one.judged, measures)) is not None
    ]
    rows = [
        (told.title, told.in_words(), told.interval() or NONE, told.formula)
        for told in tell(fields, measures)
        if told.rate is not None
    ]
    note = f"All images together, as fields of one film. {note_of(fields, measures)} Source: {SOURCE}."
    columns = ("Parasites", "Value", "95 % interval", "Formula")
    return Table("Parasitaemia", columns, rows, note, words=frozenset({3}))


def measurements_table(found: Sequence[CountedImage], measures: Measures) -> Table | None:
    """List what was drawn on the images, where something was."""
    rows = []
    for one in found:
        size = measures.pixel_size(one.entry.id, one.entry.pixel_size)
        for shape in measures.shapes.get(one.entry.id, ()):
            pixels = f"{shape.length:,.1f} px" if shape.area is None else f"{shape.area:,.0f} px²"
            known = NONE
            if size is not None:
                length, area = shape.length * size, (shape.area or 0.0) * size**2
                known = f"{significant(length)} µm" if shape.area is None else f"{significant(area)} µm²"
            name = f"{shape.subject.shape} {shape.subject.number}"
            scale = NONE if size is None else f"{size:.4g}"
            rows.append((plain(one.entry.name), name, pixels, known, scale, plain(shape.made.who, 40)))
    columns = ("Image", "What", "Pixels", "Micrometres", "µm a pixel", "By")
    return Table("Measurements", columns, shortened(rows), words=frozenset({1, 5})) if rows else None


def annotators_table(
    found: Sequence[CountedImage],
    weighed: Mapping[str, Weighed],
    excluded: Mapping[str, str],
    watch: Watch = silent,
) -> Table:
    """List who clicked most: how reliable they are, how far they agree with the others, how much they count.

    Parameters
    ----------
    found : sequence of CountedImage
    weighed : mapping of annotator to Weighed
        Whoever did not count fully in the last run; they are listed in any case.
    excluded : mapping of annotator to reason
        As the expert has it now.
    watch : Watch
    """
    names, rates = pool_rates([one.fusion for one in found], [one.annotators for one in found])
    order = np.argsort(-rates.clicks, kind="stable").tolist()
    agreement = _agreement(found, {names[r] for r in order[:_MOST_COMPARED]}, watch)
    standing = [
        dict(zip(agreement.names, agreement.standing(each).tolist(), strict=True))
        for each in (agreement.dice, agreement.kappa)
    ]
    rows: list[Sequence[str]] = []
    for place, r in enumerate(order):
        name = names[r]
        if place < _MOST_ANNOTATORS or name in weighed:
            since = " (excluded since)" if name in excluded else ""
            figures = (_rate(each[r]) for each in (rates.reliability, rates.sensitivity, rates.precision))
            means = (share(each.get(name, math.nan), 2) for each in standing)
            clicks = f"{int(rates.clicks[r]):,}"
            rows.append((plain(name, 40) + since, clicks, *figures, *means, _weight(weighed.get(name))))
    left_out = [name for name in weighed if name not in set(names)]
    rows += [(plain(name, 40), *[NONE] * 6, _weight(weighed[name])) for name in left_out]
    columns = ["Annotator", "Clicks", "Reliability", "Sensitivity", "Precision", "Dice", "Kappa", "Weight"]
    note = _note_of(agreement, len(names))
    if weighed:
        note += " Weight: as how much of an annotator one counted in the last run."
    else:
        columns.pop()
        rows = [row[:-1] for row in rows]
    return Table("Annotators", columns, rows, note, words=frozenset({7}))


def _weight(one: Weighed | None) -> str:
    if one is None:
        return "1"
    how = part_of_one(one.weight) if one.weight else "left out"
    return f"{how}: {plain(one.reason) or 'no reason given'}"


def _note_of(agreement: ClickAgreement, many: int) -> str:
    note = (
        "Over all images, with 95 % intervals. Reliability: share of clicks that are no outliers. Dice and "
        "kappa (Cohen's): agreement with the others on which spots are there, on the images that both "
        "looked at, the mean over the others weighted by the spots in common."
    )
    means = {
        name: _mean_of_pairs(agreement, each)
        for name, each in (("Dice", agreement.dice), ("kappa", agreement.kappa))
    }
    said = [f"{name} is {share(mean, 2)}" for name, mean in means.items() if math.isfinite(mean)]
    if said:
        note += f" Over all pairs of annotators {' and '.join(said)}."
    if len(agreement.names) < many:
        note += f" Compared are the {len(agreement.names):,} who clicked most."
    if many > _MOST_ANNOTATORS:
        note += (
            f" Shown are the {_MOST_ANNOTATORS} who clicked most, of {many:,}; "
            "`raterscope export --what annotators` writes all."
        )
    return note


def _agreement(found: Sequence[CountedImage], these: set[str], watch: Watch) -> ClickAgreement:
    kept = [[r for r, name in enumerate(one.annotators) if name in these] for one in found]
    marked = [one.fusion.marked[rows] for one, rows in zip(found, kept, strict=True)]
    names = [[one.annotators[r] for r in rows] for one, rows in zip(found, kept, strict=True)]
    return click_agreement(marked, names, watch)


def _mean_of_pairs(agreement: ClickAgreement, measure: FloatArray) -> float:
    """Give the mean over pairs, weighted by the spots in common; NaN without a pair."""
    pairs = np.triu(np.isfinite(measure) & (agreement.clusters > 0), 1)
    return float(np.average(measure[pairs], weights=agreement.clusters[pairs])) if pairs.any() else math.nan


def _rate(three: FloatArray) -> str:
    return estimate(*map(float, three)) if math.isfinite(three[0]) else NONE
