"""Agreement of a report's raters over all cases: tables, tests, trees, and observer variability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from raterscope.algorithms.annotators.similarity import RaterTree, cluster_raters
from raterscope.algorithms.annotators.statistics import SignedRank, holm, wilcoxon
from raterscope.algorithms.masks.staple import DOMAINS
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.annotators import (
    BASES,
    CONSENSUS,
    DICE,
    agreements_of_runs,
    clusters_in_words,
)
from raterscope.app.kinds.masks.report.slices import StructureFigures, colour_of
from raterscope.app.kinds.masks.variability import (
    FLAT,
    OutlineDifferences,
    Variability,
    dice_picture,
    difference_statistics,
    differences_table,
    measure_differences,
    measure_variability,
    variability_of,
    variability_statistics,
    variability_table,
)
from raterscope.app.page.contents import (
    MAX_ROWS,
    NONE,
    Block,
    Cell,
    Gallery,
    Notices,
    Picture,
    Section,
    Swatch,
    Table,
    draw_paper,
    p_value,
    share,
    shortened,
    signed,
    units_of,
)
from raterscope.app.page.variability import (
    Protocol,
    Statistic,
    bias_picture,
    bland_altman_pictures,
    protocol_table,
    readers_table,
)
from raterscope.app.study import RunEntry, Study
from raterscope.figures.description import Axis, Chart, Line
from raterscope.figures.drawing import PaperChart
from raterscope.text import counted

MIN_CASES = 6
"""Minimum number of pairs for a test at 5 %: the smallest two-sided p of five pairs is 1/16."""

_MAX_RATERS = 12
"""Maximum number of raters for tables of all pairs."""


def agreement_section(
    cases: Sequence[Sequence[StructureFigures]], numbers: Mapping[str, int], *, volumes: bool = True
) -> Section:
    """Report the agreement of all raters on every structure, case by case and over the cases.

    `volumes`: whether the variability of volumes is shown here.
    """
    structures = dict.fromkeys(figures.structure for case in cases for figures in case)
    inner = []
    for structure in structures:
        structure_figures = [figures for case in cases for figures in case if figures.structure == structure]
        blocks: list[Block] = [_by_case(structure_figures)]
        by_unit: dict[str, list[StructureFigures]] = {}
        for figures in structure_figures:
            by_unit.setdefault(units_of(figures.entry.lattice).size, []).append(figures)
        if len(structure_figures) > 1:
            blocks += [_by_rater(figures_list, numbers) for figures_list in by_unit.values()]
        if volumes:
            compared = (_variability(structure, figures_list) for figures_list in by_unit.values())
            blocks += [variability_table(variability) for variability in compared if variability is not None]
        tests = list(_tests(structure_figures))
        if tests:
            blocks.append(_tests_table(tests))
        inner.append(Section(plain(structure), blocks))
    title = "Agreement of the raters" + (" over all cases" if len(cases) > 1 else "")
    if len(inner) == 1:
        return Section(title, inner[0].blocks, breaks=len(cases) > 1)
    return Section(title, sections=inner, breaks=len(cases) > 1)


def _variability(structure: str, figures_list: Sequence[StructureFigures]) -> Variability | None:
    volumes: dict[str, dict[int, float]] = {}
    units = units_of(figures_list[0].entry.lattice)
    for figures in figures_list:
        for name, volume in zip(figures.fusion.annotators, figures.volumes, strict=True):
            volumes.setdefault(name, {})[figures.entry.id] = float(volume) * units.per_ml
    return variability_of(structure, units.size, volumes)


def _by_case(figures_list: Sequence[StructureFigures]) -> Table:
    rows: list[Sequence[str]] = []
    columns: list[list[float]] = [[], [], []]
    for figures in figures_list:
        dice = figures.report.pair_dice[np.triu_indices(len(figures.fusion.annotators), 1)]
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
    cut = len(rows) > MAX_ROWS
    if cut:
        rows = shortened([rows[row] for row in np.argsort(columns[0]).tolist()])
    if len(figures_list) > 1:
        means = [_mean(np.array(column)) for column in columns]
        rows.insert(
            0 if cut else len(rows),
            ["mean of cases", "", share(means[0]), _range(np.array(columns[0])), *map(share, means[1:]), ""],
        )
    unit = "pixels" if all(figures.entry.lattice.flat for figures in figures_list) else "voxels"
    note = (
        f"Kappa and alpha compare labels {unit[:-1]} by {unit[:-1]}, background included, over "
        f"{DOMAINS['masks']}: the more agreed background counts, the higher they are. "
        "Dice does not depend on it."
    )
    if cut:
        note = f"The least agreement comes first; raterscope export --what agreement writes all. {note}"
    return Table(
        "Case by case",
        (
            "Case",
            "Raters",
            "Dice of pairs",
            "Range",
            "Fleiss' kappa",
            "Krippendorff's alpha",
            unit.capitalize(),
        ),
        rows,
        note,
    )


def _by_rater(figures_list: Sequence[StructureFigures], numbers: Mapping[str, int]) -> Table:
    rows: list[list[Cell | str]] = []
    unit = units_of(figures_list[0].entry.lattice).length
    for name in _names(figures_list):
        rated = [
            (figures, figures.fusion.annotators.index(name))
            for figures in figures_list
            if name in figures.fusion.annotators
        ]
        dice = np.array([figures.report.compared[p].dice for figures, p in rated])
        far = np.array([figures.report.compared[p].hausdorff_95 for figures, p in rated])
        farthest = np.array([figures.report.compared[p].hausdorff for figures, p in rated])
        bias = np.array([figures.report.offset[p] for figures, p in rated])
        swatch = colour_of(numbers[name]) if name in numbers else ""
        rows.append(
            [
                Cell(plain(name, 40), swatch=swatch),
                str(len(rated)),
                share(_mean(dice)),
                _range(dice),
                _length(_median(far)),
                _length(_median(farthest)),
                signed(_mean(bias), digits=2),
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
        "Against the consensus of each case; bias above 0 for raters who mark more. A rater counts as the "
        "same in all cases where the name is the same."
    )
    return Table("Rater by rater", columns, rows, note)


def _tests(figures_list: Sequence[StructureFigures]) -> Iterator[tuple[str, str, SignedRank]]:
    """Compare pairs of raters by Dice, and each rater's volumes with the consensus's, case by case."""
    names = _names(figures_list)[:_MAX_RATERS]
    has_truth = all(figures.truth is not None for figures in figures_list)
    measure = "Dice with the truth" if has_truth else "Dice with the consensus"
    for a, b in combinations(names, 2):
        both = [figures for figures in figures_list if {a, b} <= set(figures.fusion.annotators)]
        if len(both) >= MIN_CASES:
            yield (
                measure,
                f"{plain(a, 30)} \N{MINUS SIGN} {plain(b, 30)}",
                wilcoxon(_dice(both, a, has_truth), _dice(both, b, has_truth)),
            )
    for name in names:
        rated = [figures for figures in figures_list if name in figures.fusion.annotators]
        if len(rated) >= MIN_CASES:
            own_volumes = [figures.volumes[figures.fusion.annotators.index(name)] for figures in rated]
            consensus_volumes = [figures.report.volume_ml for figures in rated]
            relative = np.array(own_volumes) / np.maximum(consensus_volumes, 1e-12)
            yield (
                f"{units_of(rated[0].entry.lattice).extent.lower()}, relative",
                f"{plain(name, 30)} \N{MINUS SIGN} consensus",
                wilcoxon(relative, np.ones(len(rated))),
            )


def _tests_table(tests: Sequence[tuple[str, str, SignedRank]]) -> Table:
    adjusted = holm([test.p_value for _, _, test in tests])
    rows = [
        (
            pair,
            measure,
            str(test.pairs + test.zeros),
            signed(test.median_difference, lambda value: f"{value:.3f}"),
            p_value(test.p_value),
            p_value(p),
        )
        for (measure, pair, test), p in zip(tests, adjusted, strict=True)
    ]
    note = (
        "Wilcoxon's signed-rank test over cases, two-sided; cases without a difference are left out. "
        "Adjusted: by Holm for the number of tests in this table. Relative: extent of the rater's mask "
        "divided by that of the consensus, minus 1. Dice with a consensus favours the raters that it follows."
    )
    columns = ("Difference of", "in", "Cases", "Median", "p", "p, adjusted")
    return Table("Differences over cases", columns, rows, note, frozenset({1}))


def _dice(figures_list: Sequence[StructureFigures], name: str, has_truth: bool) -> list[float]:
    values = []
    for figures in figures_list:
        p = figures.fusion.annotators.index(name)
        compared = (
            figures.truth.raters if has_truth and figures.truth is not None else figures.report.compared
        )
        values.append(compared[p].dice)
    return values


def _names(figures_list: Sequence[StructureFigures]) -> list[str]:
    return list(dict.fromkeys(name for figures in figures_list for name in figures.fusion.annotators))


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _median(values: np.ndarray) -> float:
    finite = values[~np.isnan(values)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _range(values: np.ndarray) -> str:
    finite = values[np.isfinite(values)]
    return f"{share(float(finite.min()))} to {share(float(finite.max()))}" if len(finite) else NONE


def _length(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else NONE


_MAX_IN_TREE = 30


def rater_trees_section(runs: Sequence[RunEntry], numbers: Mapping[str, int]) -> Section | None:
    """Show which raters draw similar outlines over the cases; None for fewer than two cases or three raters.

    `runs`: runs of masks, the latest last. `numbers`: numbers of the raters' colours.
    """
    blocks: list[Block] = []
    trees = {}
    for basis in BASES:
        tables = agreements_of_runs(runs, basis)
        if len(tables) > 1:
            tree = cluster_raters(tables)
            if 3 <= len(tree.names) <= _MAX_IN_TREE:
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
        for tree, _ in trees.values():
            value, common = NONE, NONE
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
    titles = {DICE: "Dice distance", CONSENSUS: "Consensus distance"}
    columns = ("Raters", *(column for basis in trees for column in (titles[basis], "Cases")))
    return Table("Distances of the raters", columns, rows, note)


def draw_tree(tree: RaterTree, title: str, text: str = "") -> Picture:
    """Draw a dendrogram; leaves are numbered from 1, in the order of `tree.names`."""
    x = {int(leaf): float(at) for at, leaf in enumerate(tree.order)}
    y = dict.fromkeys(range(len(tree.names)), 0.0)
    high = max([1e-6, *(float(height) for height in tree.linkage[:, 2] if height <= 1)]) * 1.1
    corners = []
    for row, (first, second, height, _) in enumerate(tree.linkage):
        a, b, at = int(first), int(second), min(float(height), high)
        corners += [(x[a], y[a]), (x[a], at), (x[b], at), (x[b], y[b]), (np.nan, np.nan)]
        x[len(tree.names) + row], y[len(tree.names) + row] = (x[a] + x[b]) / 2, at
    across, up = np.array(corners).T
    axis = Axis("rater", names=tuple(str(int(leaf) + 1) for leaf in tree.order))
    line = Line(x=across, y=up, ink="text", width=2.0)
    return draw_paper(
        PaperChart(Chart("", axis, Axis("distance", 0.0, high, padding=0.0), (line,))), title, text
    )


_VARIABILITY = "Observer variability"


def variability_section(
    study: Study, items: Sequence[int], protocol: Protocol, watch: Watch = silent
) -> Section:
    """Report the variability of every structure."""
    of_volumes = measure_variability(study, tuple(items), part(watch, 0.0, 0.1))
    of_outlines = measure_differences(study, items, protocol.tolerance, part(watch, 0.1, 0.9))
    volumes = {variability.structure: variability for variability in of_volumes}
    outlines = {differences.structure: differences for differences in of_outlines}
    sections = [
        _structure_section(structure, volumes.get(structure), outlines.get(structure), protocol)
        for structure in dict.fromkeys((*outlines, *volumes))
    ]
    if not sections:
        return Section(_VARIABILITY, [Notices(["No structure was marked by two raters."])])
    if len(sections) == 1:
        return Section(_VARIABILITY, sections[0].blocks, breaks=True)
    return Section(_VARIABILITY, sections=sections, breaks=True)


def _structure_section(
    structure: str, volumes: Variability | None, outlines: OutlineDifferences | None, protocol: Protocol
) -> Section:
    blocks: list[Block] = []
    statistics: list[Statistic] = []
    pictures = []
    if outlines is not None:
        blocks.append(differences_table(outlines))
        statistics += difference_statistics(outlines)
        forest = dice_picture(outlines)
        pictures += [] if forest is None else [forest]
    if volumes is not None:
        blocks.append(variability_table(volumes))
        statistics += variability_statistics(volumes)
        quantity = "Area" if volumes.unit in FLAT else "Volume"
        if volumes.readers is not None:
            blocks.append(readers_table(volumes.readers, quantity, volumes.unit))
            pictures.append(bias_picture(volumes.readers, quantity, volumes.unit))
        pictures += bland_altman_pictures(volumes.measurements, quantity, volumes.unit)
    limits = protocol_table(protocol, statistics)
    if limits is not None:
        blocks.insert(0, limits)
    if pictures:
        blocks.append(Gallery("Readers compared", pictures))
    return Section(plain(structure), blocks)
