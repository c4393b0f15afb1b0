"""Inter-observer variability of volumes and outlines over the cases of a study, for each structure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement_statistics import (
    REPEATABILITY,
    Coefficient,
    IntraclassCorrelation,
    LimitsOfAgreement,
    intraclass_correlation,
    limits_of_agreement,
    within_case_variation,
)
from raterscope.algorithms.annotators.reader_study import ReaderComparison, compare_readers, mean_interval
from raterscope.algorithms.masks.observer_variation import TOLERANCE, ObserverVariation, observer_variation
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.runs import read_case
from raterscope.app.page.contents import NONE, Picture, Table, units_of
from raterscope.app.page.variability import (
    ANOTHER,
    ANY_READER,
    ICC,
    THE_SAME,
    Statistic,
    compared_pairs,
    complete_table,
    first_reads,
    forest_picture,
    is_intra,
    reader_statistics,
    write,
)
from raterscope.app.study import Study
from raterscope.app.study.masks import assemble, mask_entries, read_masks
from raterscope.text import figure, percent

Volumes = Mapping[str, Mapping[int, float]]
"""Volumes of each rater, by the number of the case."""

FLAT = ("mm²", "px")
"""Units of areas."""

_MAX_PAIRS = 15


@dataclass(frozen=True, eq=False)
class Variability:
    """Variability of one structure's volumes."""

    # structure, unit: ml for volumes, mm² for images; voxels or px if sizes are unknown
    structure: str
    unit: str
    raters: tuple[str, ...]  # columns of `volumes`
    volumes: NDArray[np.float64]  # (n, k): volumes on the cases that all raters marked
    # deviation, share: within-case standard deviation, absolute and as a share of the mean
    deviation: float
    share: float
    icc: IntraclassCorrelation
    # pair of raters to limits of agreement and number of common cases; of a rater's reads: each less the one
    # before
    pairs: dict[tuple[str, str], tuple[LimitsOfAgreement, int]]
    measurements: Volumes  # annotator to case to volume, including further reads
    readers: ReaderComparison | None


def measure_variability(
    study: Study, items: tuple[int, ...] = (), watch: Watch = silent
) -> list[Variability]:
    """Measure the variability of volumes of each structure that two raters marked in two cases or more.

    Excluded annotators and programs are omitted, and joined names are one rater. If raters marked different
    cases, the raters with the most common volumes are compared.
    """
    by_unit: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    state = study.review_state()
    entries = [entry for entry in mask_entries(study) if not items or entry.image in items]
    for done, entry in enumerate(entries):
        watch(done / len(entries), "measuring volumes")
        if entry.annotator is None or entry.annotator in state.apart:
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
    """Compare raters' volumes of a structure; None unless two raters marked the same two cases."""
    raters, table = complete_table(first_reads(volumes))
    if len(table) < 2:
        return None
    deviation, share = within_case_variation(table)
    icc = intraclass_correlation(table)
    pairs, readers = _pairs(volumes), compare_readers(volumes)
    return Variability(structure, unit, raters, table, deviation, share, icc, pairs, volumes, readers)


def variability_table(variability: Variability) -> Table:
    """Show intraclass correlations and limits of agreement."""
    cases, raters = variability.volumes.shape
    rows: list[tuple[str, ...]] = [
        (title, write(getattr(variability.icc, name)), "", "") for name, title in ICC.items()
    ]
    for names, (limits, both) in islice(variability.pairs.items(), _MAX_PAIRS):
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
    if len(variability.pairs) > _MAX_PAIRS:
        note += f" {_MAX_PAIRS} of {len(variability.pairs)} pairs are shown; the export has all."
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
        coefficient = Coefficient(value, math.nan, math.nan)
        yield Statistic(subject, key, coefficient, of, cases=cases, raters=raters)
    for name, key in ICC.items():
        yield Statistic(subject, key, getattr(variability.icc, name), cases=cases, raters=raters)
    for names, (limits, both) in variability.pairs.items():
        for key, coefficient in (
            ("bias", limits.bias), ("lower limit of agreement", limits.lower),
            ("upper limit of agreement", limits.upper),
        ):  # fmt: skip
            yield Statistic(subject, key, coefficient, unit, *names, cases=both, single=True)
    if variability.readers is not None:
        yield from reader_statistics(subject, unit, variability.readers)


def _pairs(volumes: Volumes) -> dict[tuple[str, str], tuple[LimitsOfAgreement, int]]:
    """Return the limits of agreement of each two raters with three common cases, and the number of these."""
    pairs = {}
    for first, second in compared_pairs(volumes):
        common = sorted(set(volumes[first]) & set(volumes[second]))
        if len(common) >= 3:
            values = [[volumes[name][case] for case in common] for name in (first, second)]
            pairs[first, second] = limits_of_agreement(*values), len(common)
    return pairs


SHARES = ("dice", "surface_dice", "conformity")
LENGTHS = ("mean_surface_distance", "hausdorff_95", "added_path_length", "centroid_shift")

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class OutlineDifferences:
    """Differences between the outlines of one structure."""

    structure: str
    unit: str  # of lengths
    tolerance: float  # of the surface Dice
    # pair to statistic to case to value
    figures: dict[Pair, dict[str, dict[int, float]]] = field(default_factory=dict)
    conformity: dict[int, float] = field(default_factory=dict)  # by case: of the first reads of all readers

    def by_case(self, key: str, *, intra: bool, reader: str = "") -> dict[int, float]:
        """Average a statistic over pairs, case by case.

        `intra`: whether pairs are reads of one reader, or of different readers. `reader`: use only pairs with
        this annotator.
        """
        if key == "conformity":
            return {} if intra else self.conformity
        cases: dict[int, list[float]] = {}
        for pair, figures in self.figures.items():
            if is_intra(*pair) == intra and (not reader or reader in pair):
                for case, value in figures[key].items():
                    cases.setdefault(case, []).append(value)
        return {case: float(np.mean(values)) for case, values in sorted(cases.items())}

    def readers(self) -> list[str]:
        """List the annotators who are compared with others."""
        return list(dict.fromkeys(name for pair in self.figures if not is_intra(*pair) for name in pair))


def measure_differences(
    study: Study, items: Sequence[int] = (), tolerance: float | None = None, watch: Watch = silent
) -> list[OutlineDifferences]:
    """Measure the differences of all structures that two annotators marked.

    Excluded annotators and programs are omitted, and joined names are one rater.
    """
    state = study.review_state()
    marked = {entry.image for entry in mask_entries(study) if entry.annotator is not None}
    entries = [entry for entry in study.images() if entry.id in marked and (not items or entry.id in items)]
    collected: dict[tuple[str, str], OutlineDifferences] = {}
    for entry, step in steps_of(watch, entries):
        case = read_case(entry, study, state)
        if case is None:
            continue
        unit = units_of(entry.lattice).length
        for structure, structure_watch in steps_of(step, case.records):
            records = case.records[structure]
            if len(records) < 2:
                continue
            check = partial(structure_watch, 0.0, f"comparing outlines on {plain(entry.name)}")
            masks = assemble(records, entry.lattice, structure, margin=0.0, check=check)
            variation = observer_variation(
                masks, tolerance=tolerance or TOLERANCE, pairs=compared_pairs(list(records)),
                watch=part(structure_watch, 0.0, 1.0),
            )  # fmt: skip
            differences = collected.setdefault(
                (structure, unit), OutlineDifferences(structure, unit, variation.tolerance)
            )
            _add(differences, entry.id, variation, state.aliases)
    return [differences for differences in collected.values() if differences.figures]


def _add(
    differences: OutlineDifferences, case: int, variation: ObserverVariation, aliases: Mapping[str, str]
) -> None:
    names = [aliases.get(name, name) for name in variation.annotators]
    pairs = [(names[p], names[q]) for p, q in variation.pairs.tolist()]
    for at, pair in enumerate(pairs):
        figures = differences.figures.setdefault(pair, {key: {} for key in (*SHARES[:2], *LENGTHS)})
        for key, cases in figures.items():
            cases[case] = float(getattr(variation, key)[at])
    conformity = variation.conformity([not is_intra(*pair) for pair in pairs])
    if math.isfinite(conformity):
        differences.conformity[case] = conformity


def difference_statistics(differences: OutlineDifferences) -> Iterator[Statistic]:
    """Yield the mean of each statistic over cases, between readers and between reads, and of each pair."""
    readers = len(differences.readers())
    for intra in (False, True):
        for key in (*SHARES, *LENGTHS):
            cases = differences.by_case(key, intra=intra)
            if cases:
                yield Statistic(
                    differences.structure, key, mean_of(key, cases), _unit(differences, key), ANY_READER,
                    THE_SAME if intra else ANOTHER, len(cases), readers,
                )  # fmt: skip
    for pair, figures in differences.figures.items():
        for key, cases in figures.items():
            yield Statistic(
                differences.structure, key, mean_of(key, cases), _unit(differences, key), *pair, len(cases),
                single=True,
            )  # fmt: skip


def mean_of(key: str, cases: Mapping[int, float]) -> Coefficient:
    """Return the mean over cases with its interval: within 0 to 1 for shares, from 0 for lengths."""
    mean = mean_interval(list(cases.values()))
    if not math.isfinite(mean.low):
        return mean
    high = min(1.0, mean.high) if key in SHARES else mean.high
    return Coefficient(mean.value, max(0.0, mean.low), high)


def differences_table(differences: OutlineDifferences) -> Table:
    """Show each statistic between readers, and between the reads of a reader."""
    repeated = any(is_intra(*pair) for pair in differences.figures)
    rows = []
    for key in (*SHARES, *LENGTHS):
        title = _titles(differences)[key]
        cells: list[str] = []
        for intra in (False, True)[: 1 + repeated]:
            of_cases = differences.by_case(key, intra=intra)
            values = list(of_cases.values())
            if not values:
                cells += [NONE, NONE]
                continue
            low, middle, high = np.percentile(values, (25, 50, 75)).tolist()
            width = (low, high) if high > low else (0.0, 1.0)
            quartiles = " to ".join(figure(value, *width) for value in (low, high))
            cells += [write(mean_of(key, of_cases)), f"{figure(middle, *width)} ({quartiles})"]
        rows.append((title, *cells))
    columns = ("Between readers", "Median (quartiles)", "Between reads", "Median (quartiles)")
    cases = differences.by_case("dice", intra=False) or differences.by_case("dice", intra=True)
    note = (
        f"Means over {len(cases):,} cases, after averaging over the pairs of each, with 95 % intervals by "
        "Student's t. Surface Dice: the share of both surfaces within the tolerance of the other. Added path "
        "length: outline of one that the other has not, over all slices. Conformity index: common over joint "
        "volume of all pairs. Raters who drew nothing on a case are left out."
    )
    return Table("Differences between outlines", ("", *columns[: 2 + 2 * repeated]), rows, note)


def dice_picture(differences: OutlineDifferences) -> Picture | None:
    """Draw a forest plot of each reader's Dice with the others; None with fewer than three readers."""
    readers = differences.readers()
    if len(readers) < 3:
        return None
    values = [mean_of("dice", differences.by_case("dice", intra=False, reader=name)) for name in readers]
    names = [plain(name, 40) for name in readers]
    return forest_picture(names, values, "Dice with the others", "Each reader's mean Dice with the others")


def _titles(differences: OutlineDifferences) -> dict[str, str]:
    unit = differences.unit
    return {
        "dice": "Dice",
        "surface_dice": f"Surface Dice at {differences.tolerance:g} {unit}",
        "conformity": "Conformity index",
        "mean_surface_distance": f"Mean surface distance, {unit}",
        "hausdorff_95": f"HD95, {unit}",
        "added_path_length": f"Added path length, {unit}",
        "centroid_shift": f"Centroid shift, {unit}",
    }


def _unit(differences: OutlineDifferences, key: str) -> str:
    if key == "surface_dice":
        return f"at {differences.tolerance:g} {differences.unit}"
    return "" if key in SHARES else differences.unit
