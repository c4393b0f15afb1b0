"""Inter-observer variability of volumes over the cases of a study, for each structure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.measurements import (
    REPEATABILITY,
    IntraclassCorrelation,
    LimitsOfAgreement,
    intraclass_correlation,
    limits_of_agreement,
    within_case_variation,
)
from raterscope.algorithms.annotators.reader_study import ReaderComparison, compare_readers
from raterscope.algorithms.annotators.vote_agreement import Coefficient
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import plain
from raterscope.app.page.contents import Table
from raterscope.app.page.units import units_of
from raterscope.app.page.variability import (
    ICC,
    Statistic,
    compared_pairs,
    complete_table,
    first_reads,
    reader_statistics,
    write,
)
from raterscope.app.review import fold
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries, read_masks
from raterscope.text import percent

Volumes = Mapping[str, Mapping[int, float]]
"""Of each rater, by the number of the case."""

FLAT = ("mm²", "px")
"""Units of areas."""

_MOST_PAIRS = 15


@dataclass(frozen=True, eq=False)
class Variability:
    """Variability of one structure's volumes."""

    # structure, unit: ml, on images mm²; voxels or px if sizes are not known
    structure: str
    unit: str
    raters: tuple[str, ...]  # those of `volumes`
    volumes: NDArray[np.float64]  # (n, k): of the cases that all of them marked
    # deviation, share: within-case standard deviation, and it as a share of the mean
    deviation: float
    share: float
    icc: IntraclassCorrelation
    # by (str, str): of each two raters, with the number of cases that both marked; of a rater's reads, each
    # less the one before
    pairs: dict[tuple[str, str], tuple[LimitsOfAgreement, int]]
    measurements: Volumes  # mapping of annotator to mapping of case to volume: all, also of further reads
    readers: ReaderComparison | None


def measure_variability(
    study: Study, items: tuple[int, ...] = (), watch: Watch = silent
) -> list[Variability]:
    """Measure the variability of volumes of each structure that two raters marked in two cases or more.

    Excluded annotators are left out, and joined names are one rater. Of raters with different cases, those
    are compared who have the most volumes together.
    """
    by_unit: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    state = fold(study.decisions())
    entries = [entry for entry in mask_entries(study) if not items or entry.image in items]
    for done, entry in enumerate(entries):
        watch(done / len(entries), "measuring volumes")
        if entry.annotator is None or entry.annotator in state.excluded:
            continue
        grid = study.image(entry.image).lattice
        if grid.uneven:
            mask = read_masks(study, entry.image, entry.structure)[entry.annotator]
            slices = (mask.values > 0.5).sum(axis=(1, 2))
            bounds = grid.bounds[mask.origin[0] : mask.origin[0] + len(slices)]
            volume = float(slices @ np.diff(bounds, axis=1)[:, 0]) * grid.spacing[1] * grid.spacing[2]
        else:
            volume = entry.voxels * grid.voxel_volume
        units = units_of(grid)
        raters = by_unit.setdefault((entry.structure, units.size), {})
        name = state.aliases.get(entry.annotator, entry.annotator)
        own = raters.setdefault(name, {})
        if name == entry.annotator or entry.image not in own:
            own[entry.image] = volume / 1000 * units.per_ml
    variabilities = (variability_of(*key, volumes) for key, volumes in by_unit.items())
    return [variability for variability in variabilities if variability is not None]


def variability_of(structure: str, unit: str, volumes: Volumes) -> Variability | None:
    """Compare raters' volumes of a structure; None without two raters of the same two cases."""
    raters, table = complete_table(first_reads(volumes))
    if len(table) < 2:
        return None
    deviation, share = within_case_variation(table)
    icc = intraclass_correlation(table)
    return Variability(
        structure,
        unit,
        raters,
        table,
        deviation,
        share,
        icc,
        _pairs(volumes),
        volumes,
        compare_readers(volumes),
    )


def variability_table(variability: Variability) -> Table:
    """Show intraclass correlations and limits of agreement."""
    cases, raters = variability.volumes.shape
    rows: list[tuple[str, ...]] = [
        (name, write(getattr(variability.icc, field)), "", "") for field, name in ICC.items()
    ]
    for names, (limits, both) in islice(variability.pairs.items(), _MOST_PAIRS):
        title = " \N{MINUS SIGN} ".join(plain(name, 30) for name in names) + f" ({both:,} cases)"
        rows.append((title, *map(write, (limits.bias, limits.lower, limits.upper))))
    mean, deviation = float(variability.volumes.mean()), variability.deviation
    noun = "areas" if variability.unit in FLAT else "volumes"
    note = (
        f"{noun.capitalize()} in {variability.unit} of {cases:,} cases that {raters} raters all marked: mean "
        f"{mean:.3g}, within-case standard deviation {deviation:.3g} ({percent(variability.share, 1)} of the "
        f"mean), reproducibility coefficient {REPEATABILITY * deviation:.3g}. Estimates with 95 % intervals. "
        "ICC(1,.) if each case has raters of its own, ICC(2,.) if raters are a sample and their offsets "
        "count, ICC(3,.) if offsets do not count; k: of the raters' mean. Then Bland-Altman bias and limits "
        "of agreement of two raters."
    )
    if len(variability.pairs) > _MOST_PAIRS:
        note += f" {_MOST_PAIRS} of {len(variability.pairs)} pairs are shown; the export has all."
    return Table(f"Variability of the {noun}", ("", "ICC or bias", "Lower limit", "Upper limit"), rows, note)


def variability_statistics(variability: Variability) -> Iterator[Statistic]:
    """Yield all statistics of the volumes, for exports and protocols."""
    subject, unit = variability.structure, variability.unit
    cases, raters = variability.volumes.shape
    plain_figures = {
        "mean volume": (float(variability.volumes.mean()), unit),
        "within-case standard deviation": (variability.deviation, unit),
        "coefficient_of_variation": (variability.share, ""),
        "reproducibility coefficient": (REPEATABILITY * variability.deviation, unit),
    }
    for key, (value, of) in plain_figures.items():
        figure = Coefficient(value, math.nan, math.nan)
        yield Statistic(subject, key, figure, of, cases=cases, raters=raters)
    for name, key in ICC.items():
        yield Statistic(subject, key, getattr(variability.icc, name), cases=cases, raters=raters)
    for names, (limits, both) in variability.pairs.items():
        for key, figure in (
            ("bias", limits.bias), ("lower limit of agreement", limits.lower),
            ("upper limit of agreement", limits.upper),
        ):  # fmt: skip
            yield Statistic(subject, key, figure, unit, *names, cases=both, single=True)
    if variability.readers is not None:
        yield from reader_statistics(subject, unit, variability.readers)


def _pairs(
    volumes: Volumes,
) -> dict[tuple[str, str], tuple[LimitsOfAgreement, int]]:
    pairs = {}
    for first, second in compared_pairs(volumes):
        common = sorted(set(volumes[first]) & set(volumes[second]))
        if len(common) >= 3:
            values = [[volumes[name][case] for case in common] for name in (first, second)]
            pairs[first, second] = limits_of_agreement(*values), len(common)
    return pairs
