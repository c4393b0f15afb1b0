"""Inter-observer variability of volumes over the cases of a study, for each structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice

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
from raterscope.algorithms.annotators.vote_agreement import Coefficient
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import plain
from raterscope.app.formats.output_files import format_number
from raterscope.app.page.contents import Table
from raterscope.app.page.units import units_of
from raterscope.app.review import fold
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries, read_masks
from raterscope.text import estimate, percent

VARIABILITY = ("structure", "statistic", "first", "second", "value", "low", "high", "unit", "cases", "raters")
Volumes = Mapping[str, Mapping[int, float]]
"""Of each rater, by the number of the case."""

_MOST_PAIRS = 15

ICC = {
    "one_way": "ICC(1,1)", "absolute": "ICC(2,1)", "consistency": "ICC(3,1)",
    "one_way_mean": "ICC(1,k)", "absolute_mean": "ICC(2,k)", "consistency_mean": "ICC(3,k)",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Variability:
    """Variability of one structure's volumes.

    Attributes
    ----------
    structure, unit : str
        ml, on images mm²; voxels or px if sizes are not known.
    raters : tuple of str
        Those of `volumes`.
    volumes : (n, k) float64
        Of the cases that all of them marked.
    deviation, share : float
        Within-case standard deviation, and it as a share of the mean.
    icc : IntraclassCorrelation
    pairs : dict of (str, str) to (LimitsOfAgreement, int)
        Of each two raters, with the number of cases that both marked.
    """

    structure: str
    unit: str
    raters: tuple[str, ...]
    volumes: NDArray[np.float64]
    deviation: float
    share: float
    icc: IntraclassCorrelation
    pairs: dict[tuple[str, str], tuple[LimitsOfAgreement, int]]


def measure_variability(
    study: Study, items: tuple[int, ...] = (), watch: Watch = silent
) -> list[Variability]:
    """Measure the variability of volumes of each structure that two raters marked in two cases or more.

    Excluded annotators are left out. Of raters with different cases, those are compared who have the most
    volumes together.
    """
    by_unit: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    excluded = fold(study.decisions()).excluded
    entries = [entry for entry in mask_entries(study) if not items or entry.image in items]
    for done, entry in enumerate(entries):
        watch(done / len(entries), "measuring volumes")
        if entry.annotator is None or entry.annotator in excluded:
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
        raters.setdefault(entry.annotator, {})[entry.image] = volume / 1000 * units.per_ml
    variabilities = (variability_of(*key, volumes) for key, volumes in by_unit.items())
    return [variability for variability in variabilities if variability is not None]


def variability_of(structure: str, unit: str, volumes: Volumes) -> Variability | None:
    """Compare raters' volumes of a structure; None without two raters of the same two cases."""
    raters, table = _complete(volumes)
    if len(table) < 2:
        return None
    deviation, share = within_case_variation(table)
    icc = intraclass_correlation(table)
    return Variability(structure, unit, raters, table, deviation, share, icc, _pairs(volumes))


def variability_table(variability: Variability) -> Table:
    """Show intraclass correlations and limits of agreement."""
    cases, raters = variability.volumes.shape
    rows: list[tuple[str, ...]] = [
        (name, _estimate(getattr(variability.icc, field)), "", "") for field, name in ICC.items()
    ]
    for names, (limits, both) in islice(variability.pairs.items(), _MOST_PAIRS):
        title = " \N{MINUS SIGN} ".join(plain(name, 30) for name in names) + f" ({both:,} cases)"
        rows.append((title, *map(_estimate, (limits.bias, limits.lower, limits.upper))))
    mean, deviation = float(variability.volumes.mean()), variability.deviation
    note = (
        f"Volumes in {variability.unit} of {cases:,} cases that {raters} raters all marked: mean {mean:.3g}, "
        f"within-case standard deviation {deviation:.3g} ({percent(variability.share, 1)} of the mean), "
        f"repeatability coefficient {REPEATABILITY * deviation:.3g}. Estimates with 95 % intervals. "
        "ICC(1,.) if each case has raters of its own, ICC(2,.) if raters are a sample and their offsets "
        "count, ICC(3,.) if offsets do not count; k: of the raters' mean. Then Bland-Altman bias and limits "
        "of agreement of two raters."
    )
    if len(variability.pairs) > _MOST_PAIRS:
        note += f" {_MOST_PAIRS} of {len(variability.pairs)} pairs are shown; the export has all."
    return Table("Variability of the volumes", ("", "ICC or bias", "Lower limit", "Upper limit"), rows, note)


def _estimate(coefficient: Coefficient) -> str:
    return estimate(coefficient.value, coefficient.low, coefficient.high)


def variability_rows(variability: Variability) -> Iterator[tuple[object, ...]]:
    """Yield the rows of `VARIABILITY`."""
    cases, raters = variability.volumes.shape
    no_interval = (float("nan"), float("nan"))
    plain_figures = {
        "mean volume": (float(variability.volumes.mean()), variability.unit),
        "within-case standard deviation": (variability.deviation, variability.unit),
        "coefficient of variation": (variability.share, ""),
        "repeatability coefficient": (REPEATABILITY * variability.deviation, variability.unit),
    }
    for name, (value, unit) in plain_figures.items():
        yield _row(variability, name, Coefficient(value, *no_interval), unit, cases, raters)
    for field, name in ICC.items():
        yield _row(variability, name, getattr(variability.icc, field), "", cases, raters)
    for names, (limits, both) in variability.pairs.items():
        for name, coefficient in (
            ("bias", limits.bias), ("lower limit of agreement", limits.lower),
            ("upper limit of agreement", limits.upper),
        ):  # fmt: skip
            yield _row(variability, name, coefficient, variability.unit, both, 2, names)


def _row(
    variability: Variability, name: str, coefficient: Coefficient, unit: str, cases: int, raters: int,
    pair: tuple[str, str] = ("", ""),
) -> tuple[object, ...]:  # fmt: skip
    figures = map(format_number, (coefficient.value, coefficient.low, coefficient.high))
    return (variability.structure, name, *pair, *figures, unit, cases, raters)


def _complete(volumes: Volumes) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Choose the raters, from the busiest on, who have the most volumes of cases that all of them marked."""
    busiest = sorted(volumes, key=lambda name: -len(volumes[name]))
    best: tuple[tuple[str, ...], list[int]] = ((), [])
    for count in range(2, len(busiest) + 1):
        names = busiest[:count]
        common = sorted(set.intersection(*(set(volumes[name]) for name in names)))
        if len(common) >= 2 and len(common) * count > len(best[0]) * len(best[1]):
            best = (tuple(names), common)
    order = tuple(name for name in volumes if name in best[0])
    return order, np.array([[volumes[name][case] for name in order] for case in best[1]], dtype=np.float64)


def _pairs(
    volumes: Volumes,
) -> dict[tuple[str, str], tuple[LimitsOfAgreement, int]]:
    pairs = {}
    for first, second in combinations(volumes, 2):
        common = sorted(set(volumes[first]) & set(volumes[second]))
        if len(common) >= 3:
            values = [[volumes[name][case] for case in common] for name in (first, second)]
            pairs[first, second] = limits_of_agreement(*values), len(common)
    return pairs
