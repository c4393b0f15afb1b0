"""Agreement of raters over the cases of a study, in a report: differences, distances and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from raterscope.algorithms.annotators.similarity import RaterTree, cluster_raters
from raterscope.algorithms.masks.metrics import SignedRank, wilcoxon
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.masks.rater_clusters import (
    BASES,
    CONSENSUS,
    agreements_of_runs,
    clusters_in_words,
)
from raterscope.app.kinds.masks.report.case_figures import Figures
from raterscope.app.kinds.masks.report.slices import colour_of
from raterscope.app.page.charts import draw_paper
from raterscope.app.page.contents import Block, Cell, Gallery, Picture, Section, Swatch, Table
from raterscope.app.page.units import NONE, p_value, share, signed, units_of
from raterscope.app.study import RunEntry
from raterscope.figures.description import Axis, Chart, Line
from raterscope.figures.paper import PaperChart

LEAST_CASES = 6
"""Fewer pairs cannot show a difference at 5 %: the smallest two-sided p of five is 1/16."""

_MOST_RATERS = 12
"""Every pair of more raters would fill pages."""


def agreement_section(cases: Sequence[Sequence[Figures]], numbers: Mapping[str, int]) -> Section:
    """Tell of the agreement of all raters on every structure, case by case and over the cases."""
    structures = dict.fromkeys(one.structure for found in cases for one in found)
    inner = []
    for structure in structures:
        found = [one for case in cases for one in case if one.structure == structure]
        blocks: list[Block] = [_by_case(found)]
        if len(found) > 1:
            blocks.append(_by_rater(found, numbers))
        tests = list(_tests(found))
        if tests:
            blocks.append(_tests_table(tests))
        inner.append(Section(plain(structure), blocks))
    title = "Agreement of the raters" + (" over all cases" if len(cases) > 1 else "")
    if len(inner) == 1:
        return Section(title, inner[0].blocks, breaks=len(cases) > 1)
    return Section(title, sections=inner, breaks=len(cases) > 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by Holm's step-down method; NaN stays.

    References
    ----------
    .. [holm1979] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
       of Statistics 6 (1979) 65-70.
    """
    known = [i for i, p in enumerate(p_values) if not np.isnan(p)]
    adjusted = [float("nan")] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(known, key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(known) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def _by_case(found: Sequence[Figures]) -> Table:
    rows: list[list[str]] = []
    columns: list[list[float]] = [[], [], []]
    for figures in found:
        dice = _pairs(figures)
        agreement = figures.agreement
        values = [_mean(dice), agreement.fleiss, agreement.krippendorff]
        for column, value in zip(columns, values, strict=True):
            column.append(value)
        rows.append(
            [
                plain(figures.entry.name),
                str(len(figures.fusion.annotators)),
                share(values[0]),
                _range(dice),
                share(values[1]),
                share(values[2]),
                f"{agreement.voxels:,}",
            ]
        )
    if len(found) > 1:
        means = [_mean(np.array(column)) for column in columns]
        rows.append(
            ["mean of cases", "", share(means[0]), _range(np.array(columns[0])), *map(share, means[1:]), ""]
        )
    domains = dict.fromkeys(figures.agreement.domain for figures in found)
    what = "pixels" if all(one.entry.lattice.flat for one in found) else "voxels"
    note = (
        f"Kappa and alpha compare labels {what[:-1]} by {what[:-1]}, background included, over "
        f"{' or '.join(domains)}: the more agreed background counts, the higher they are. "
        "Dice does not depend on it."
    )
    return Table(
        "Case by case",
        (
            "Case",
            "Raters",
            "Dice of pairs",
            "Range",
            "Fleiss' kappa",
            "Krippendorff's alpha",
            what.capitalize(),
        ),
        rows,
        note,
    )


def _by_rater(found: Sequence[Figures], numbers: Mapping[str, int]) -> Table:
    rows: list[list[Cell | str]] = []
    unit = units_of(found[0].entry.lattice).length
    for name in _names(found):
        here = [(one, one.fusion.annotators.index(name)) for one in found if name in one.fusion.annotators]
        dice = np.array([one.report.compared[p].dice for one, p in here])
        far = np.array([one.report.compared[p].hausdorff_95 for one, p in here])
        farthest = np.array([one.report.compared[p].hausdorff for one, p in here])
        bias = np.array([one.report.offset[p] for one, p in here])
        swatch = colour_of(numbers[name]) if name in numbers else ""
        rows.append(
            [
                Cell(plain(name, 40), swatch=swatch),
                str(len(here)),
                share(_mean(dice)),
                _range(dice),
                _length(_median(far)),
                _length(_median(farthest)),
                signed(_mean(bias), places=2),
            ]
        )
    columns = (
        "Rater",
        "Cases",
        "Mean Dice",
        "Range",
        f"Median HD95, {unit}",
        f"Median HD, {unit}",
        f"Mean bias, {unit}",
    )
    note = (
        "Against the consensus of each case; bias above 0 for who marks more. A rater counts as the same in "
        "all cases where the name is the same."
    )
    return Table("Rater by rater", columns, rows, note)


def _tests(found: Sequence[Figures]) -> Iterator[tuple[str, str, SignedRank]]:
    """Compare pairs of raters by Dice, and each rater's volumes with the consensus's, case by case."""
    names = _names(found)[:_MOST_RATERS]
    known = all(one.truth is not None for one in found)
    what = "Dice with the truth" if known else "Dice with the consensus"
    for a, b in combinations(names, 2):
        both = [one for one in found if {a, b} <= set(one.fusion.annotators)]
        if len(both) >= LEAST_CASES:
            yield (
                what,
                f"{plain(a, 30)} \N{MINUS SIGN} {plain(b, 30)}",
                wilcoxon(_dice(both, a, known), _dice(both, b, known)),
            )
    for name in names:
        here = [one for one in found if name in one.fusion.annotators]
        if len(here) >= LEAST_CASES:
            own = [one.volumes[one.fusion.annotators.index(name)] for one in here]
            whole = [one.report.volume_ml for one in here]
            relative = np.array(own) / np.maximum(whole, 1e-12)
            yield (
                f"{units_of(here[0].entry.lattice).extent.lower()}, relative",
                f"{plain(name, 30)} \N{MINUS SIGN} consensus",
                wilcoxon(relative, np.ones(len(here))),
            )


def _tests_table(tests: Sequence[tuple[str, str, SignedRank]]) -> Table:
    adjusted = holm([test.p_value for _, _, test in tests])
    rows = [
        (
            pair,
            what,
            str(test.pairs + test.zeros),
            signed(test.median_difference, lambda value: f"{value:.3f}"),
            p_value(test.p_value),
            p_value(p),
        )
        for (what, pair, test), p in zip(tests, adjusted, strict=True)
    ]
    note = (
        "Wilcoxon's signed-rank test over cases, two-sided; cases without a difference are left out. "
        "Adjusted: by Holm for the number of tests in this table. Relative: the rater's share of what the "
        "consensus holds, less 1. Dice with a consensus favours those whom it follows."
    )
    columns = ("Difference of", "in", "Cases", "Median", "p", "p, adjusted")
    return Table("Differences over cases", columns, rows, note, frozenset({1}))


def _dice(found: Sequence[Figures], name: str, known: bool) -> list[float]:
    values = []
    for one in found:
        p = one.fusion.annotators.index(name)
        compared = one.truth.raters if known and one.truth is not None else one.report.compared
        values.append(compared[p].dice)
    return values


def _names(found: Sequence[Figures]) -> list[str]:
    return list(dict.fromkeys(name for one in found for name in one.fusion.annotators))


def _pairs(figures: Figures) -> np.ndarray:
    return figures.report.pair_dice[np.triu_indices(len(figures.fusion.annotators), 1)]


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _median(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _range(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return f"{share(float(known.min()))} to {share(float(known.max()))}" if len(known) else NONE


def _length(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else NONE


_MOST_IN_TREE = 30


def rater_trees_section(runs: Sequence[RunEntry], numbers: Mapping[str, int]) -> Section | None:
    """Tell who outlines alike over the cases; None for fewer than two cases or three raters.

    Parameters
    ----------
    runs : sequence of RunEntry
        Runs of masks, the latest last.
    numbers : mapping of rater to number
        Of their colours.
    """
    blocks: list[Block] = []
    trees = {}
    for basis in BASES:
        tables = agreements_of_runs(runs, basis)
        if len(tables) > 1:
            tree = cluster_raters(tables)
            if 3 <= len(tree.names) <= _MOST_IN_TREE:
                trees[basis] = (tree, len(tables))
    if not trees:
        return None
    names = next(iter(trees.values()))[0].names
    pictures = [
        draw_tree(tree, BASES[basis], f"{counted(cases, 'case')}, complete linkage")
        for basis, (tree, cases) in trees.items()
    ]
    legend = [
        Swatch(colour_of(numbers.get(name, 0)), f"{at}: {plain(name, 40)}")
        for at, name in enumerate(names, start=1)
    ]
    blocks.append(Gallery("Who outlines alike", pictures, legend))
    blocks.append(_distances(trees))
    return Section("Raters over the cases", blocks)


def _distances(trees: Mapping[str, tuple[RaterTree, int]]) -> Table:
    pairs = dict.fromkeys(pair for tree, _ in trees.values() for pair in combinations(tree.names, 2))
    rows = []
    for first, second in pairs:
        cells = []
        for basis in BASES:
            value, common = NONE, NONE
            if basis in trees:
                tree = trees[basis][0]
                if first in tree.names and second in tree.names:
                    a, b = tree.names.index(first), tree.names.index(second)
                    common = str(int(tree.common[a, b]))
                    value = f"{tree.distance[a, b]:.3f}" if tree.common[a, b] else NONE
            cells += [value, common]
        rows.append([f"{plain(first, 40)} \N{EN DASH} {plain(second, 40)}", *cells])
    note = (
        "Dice overlap: 1 less the mean Dice of two raters. Shared consensus: the share of cases in which the "
        "two follow different consensuses of the mixture (Audelan et al. 2022, section 4.3), each rater with "
        "the one of the highest responsibility; it needs a run of the mixture."
    )
    if CONSENSUS in trees:
        note += f" By consensus: {clusters_in_words(trees[CONSENSUS][0])}."
    columns = ("Raters", "Dice distance", "Cases", "Consensus distance", "Cases")
    return Table("Distances of the raters", columns, rows, note)


def draw_tree(tree: RaterTree, title: str, words: str = "") -> Picture:
    """Draw a dendrogram; the leaves have the raters' places in `tree.names`, from 1 on."""
    x = {int(leaf): float(at) for at, leaf in enumerate(tree.order)}
    y = dict.fromkeys(range(len(tree.names)), 0.0)
    high = max([1e-6, *(float(height) for height in tree.linkage[:, 2] if height <= 1)]) * 1.1
    corners = []
    for row, (left, right, height, _) in enumerate(tree.linkage):
        a, b, at = int(left), int(right), min(float(height), high)
        corners += [(x[a], y[a]), (x[a], at), (x[b], at), (x[b], y[b]), (np.nan, np.nan)]
        x[len(tree.names) + row], y[len(tree.names) + row] = (x[a] + x[b]) / 2, at
    across, up = np.array(corners).T
    axis = Axis("rater", names=tuple(str(int(leaf) + 1) for leaf in tree.order))
    line = Line(x=across, y=up, ink="text", width=2.0)
    return draw_paper(
        PaperChart(Chart("", axis, Axis("distance", 0.0, high, padding=0.0), (line,))), title, words
    )
