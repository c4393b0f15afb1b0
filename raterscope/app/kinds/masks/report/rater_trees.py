"""Raters clustered over the cases of a study: distances, groups and the dendrogram of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from raterscope.algorithms.annotators.similarity import RaterTree, cluster_raters
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.masks.rater_clusters import (
    BASES,
    CONSENSUS,
    agreements_of_runs,
    clusters_in_words,
)
from raterscope.app.kinds.masks.report.slices import colour_of
from raterscope.app.page.charts import draw_paper
from raterscope.app.page.contents import Block, Gallery, Picture, Section, Swatch, Table
from raterscope.app.page.units import NONE
from raterscope.app.study import RunEntry
from raterscope.figures.description import Axis, Chart, Line
from raterscope.figures.paper import PaperChart

__all__ = ["draw_tree", "rater_trees_section"]

_MOST_RATERS = 30


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
            if 3 <= len(tree.names) <= _MOST_RATERS:
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
