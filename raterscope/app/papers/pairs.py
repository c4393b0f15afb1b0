"""Experiments of the position bias paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.data import BoolArray
from raterscope.algorithms.simulation.pair_crowds import study_crowd
from raterscope.app.papers.experiments import Experiment, Measures, Paper, Row, pairs_of

_P1, _P2 = (0.1, 0.2, 0.3, 0.4), (0.4, 0.5, 0.6, 0.7)

_RATES = {
    "iss": (
        (0.0959, 0.0833, 0.1198, 0.1229), (0.0917, 0.0989, 0.0935, 0.1006),
        (0.0919, 0.0991, 0.0921, 0.0854), (0.1062, 0.1034, 0.0998, 0.1184),
    ),
    "lasso": (
        (0.0711, 0.1326, 0.1433, 0.1256), (0.0998, 0.0954, 0.0970, 0.0780),
        (0.1044, 0.0918, 0.1093, 0.1061), (0.0843, 0.1035, 0.1063, 0.0941),
    ),
}  # fmt: skip
"""Mean false discovery proportion of Tables 1a and 2a, a row for each p1, a column for each p2."""

_FOUND = {
    "iss": ((49.95, 50, 50, 50), (49.90, 50, 50, 50), (49.80, 50, 50, 50), (49.75, 49.95, 50, 50)),
    "lasso": ((49.95, 50, 50, 50), (49.90, 50, 50, 50), (49.90, 50, 50, 50), (49.85, 50, 50, 50)),
}
"""Mean number of true discoveries of Tables 1b and 2b."""

_TABLE_8 = {
    "56": (17, 0), "75": (0, 3), "101": (26, 0), "115": (34, 0), "145": (0, 27), "166": (35, 0),
    "209": (127, 0), "222": (0, 2), "245": (0, 34), "256": (0, 21), "267": (45, 0), "268": (148, 0),
    "275": (1, 0), "289": (35, 0), "299": (31, 0), "321": (33, 0), "323": (35, 0), "338": (0, 21),
    "25": (17, 6), "59": (9, 29), "87": (11, 62), "122": (13, 9), "134": (20, 7), "140": (12, 4),
    "156": (189, 67), "189": (2, 12), "191": (23, 7), "202": (2, 8), "207": (23, 10), "208": (10, 2),
    "239": (11, 2), "258": (2, 13), "270": (20, 70), "276": (16, 54), "320": (253, 324), "330": (4, 10),
}  # fmt: skip
"""Annotators in Table 8, with their left and right clicks."""


def _knockoff(path: str, run: int, least: int = 5) -> PairPlan:
    """Make a plan of the paper's filter: one draw of the plain knockoff."""
    texts = {
        "rule": "knockoffs",
        "plus": "no",
        "draws": "1",
        "local": "no",
        "seed": str(run),
        "min_comparisons": str(least),
    }
    return PairPlan.make(path, texts)


def _study(path: str) -> Experiment:
    def measure(cell: str, run: int, data: Path) -> Measures:  # noqa: ARG001 - simulated
        p1, p2 = map(float, cell.split())
        crowd = study_crowd(p1, p2, run)
        result: dict[str, float] = {}
        for name, plan in (("printed", _knockoff(path, run)), ("default", PairPlan.make(path))):
            flagged = fuse(crowd.pairs, plan).flagged
            right = int((flagged & crowd.biased).sum())
            wrong = int((flagged & ~crowd.biased).sum())
            result |= {f"{name} rate": wrong / max(right + wrong, 1), f"{name} found": float(right)}
        return result

    number = {"iss": 1, "lasso": 2}[path]
    title = {"iss": "ISS", "lasso": "LASSO"}[path]
    cells = [(f"{p1} {p2}", i, j) for i, p1 in enumerate(_P1) for j, p2 in enumerate(_P2)]
    labels = {cell: "p1 = {}, p2 = {}".format(*cell.split()) for cell, _, _ in cells}
    rates = (
        Row(f"{labels[cell]}: false discovery rate", cell, "printed rate", float(_RATES[path][i][j]),
            default="default rate", better="lower")
        for cell, i, j in cells
    )  # fmt: skip
    result = (
        Row(f"{labels[cell]}: true discoveries of 50", cell, "printed found", float(_FOUND[path][i][j]),
            default="default found", digits=2)
        for cell, i, j in cells
    )  # fmt: skip
    return Experiment(
        name=f"pairs-table-{number}",
        title=f"Table {number}: knockoff with q = 10 % by {title}, simulated study",
        cells=tuple(cell for cell, _, _ in cells),
        measure=measure,
        rows=(*rates, *result),
        runs=100, quick=5, paper_runs=100,
        method="The set-up of section 3.1. As published: one draw of the plain knockoff. The default is the "
        "flip test. The rate that both promise is 0.1.",
        command="raterscope simulate bias --p1 0.1 --p2 0.4 -o x && raterscope fuse pairs x/pairs.csv "
        f"--path {path} --set rule=knockoffs plus=no draws=1 local=no -o x/fused",
        remark="As published the rate is above 0.1, and above the paper's, where p1 and p2 are large: those "
        "who answer by side are then less noisy than the good annotators, while all knockoffs have one "
        "noise in common. Knockoffs of each annotator's own noise (local=yes) and the flip test keep it.",
    )  # fmt: skip


def _colleges(cell: str, run: int, data: Path) -> Measures:
    pairs = pairs_of(data, "worldcollege")
    annotator_index = {name: number for number, name in enumerate(pairs.annotators)}
    listed: BoolArray = np.isin(pairs.annotators, list(_TABLE_8))
    sides_left, right = (
        np.bincount(pairs.annotator[side], minlength=len(annotator_index))
        for side in (pairs.choice > 0, pairs.choice < 0)
    )
    equal_counts = sum(
        (sides_left[annotator_index[name]], right[annotator_index[name]]) == clicks
        for name, clicks in _TABLE_8.items()
    )
    result = {
        "comparisons": len(pairs),
        "annotators": len(annotator_index),
        "items": len(pairs.items),
        "counts": equal_counts,
    }
    default = fuse(pairs, PairPlan.make(cell)).flagged
    for name, flagged in (
        ("printed", fuse(pairs, _knockoff(cell, run, least=1)).flagged), ("default", default)
    ):  # fmt: skip
        result |= {f"{name} flagged": int(flagged.sum()), f"{name} listed": int((flagged & listed).sum())}
    return {key: float(value) for key, value in result.items()}


_COLLEGES = Experiment(
    name="pairs-table-8",
    title="Table 8 and Figure 1(d): annotators with a position bias, WorldCollege",
    cells=("iss", "lasso"),
    measure=_colleges,
    rows=(
        Row("comparisons", "iss", "comparisons", 8823, better="", digits=0),
        Row("annotators", "iss", "annotators", 340, better="", digits=0),
        Row("colleges", "iss", "items", 261, better="", digits=0),
        Row("of Table 8, left and right clicks as published", "iss", "counts", 36, better="", digits=0),
        Row("flagged by ISS", "iss", "printed flagged", 36, default="default flagged", better="", digits=1),
        Row("flagged by ISS, of the 36 listed", "iss", "printed listed", 36, default="default listed",
            better="", digits=1),
        Row("flagged by LASSO", "lasso", "printed flagged", 36, default="default flagged", better="",
            digits=1),
        Row("flagged by LASSO, of the 36 listed", "lasso", "printed listed", 36, default="default listed",
            better="", digits=1),
    ),
    runs=50, quick=5, paper_runs=1,
    method="The paper's own data. Each run is another draw of the knockoffs, of which the paper took one.",
    command="raterscope fuse pairs data/pairs/worldcollege.csv --set rule=knockoffs plus=no draws=1 "
    "local=no min_comparisons=1 -o x",
    remark="One draw of knockoffs is a lottery: of 50 draws, each flags from 23 to 46 annotators, and one in "
    "ten the paper's 36 or more. The default flags those whose bias the data reveal without any draw.",
    needs="pairs/worldcollege.csv",
)  # fmt: skip

PAIRS = Paper(
    name="pairs",
    title="Pairs: the position bias paper",
    reference="xu2016",
    experiments=(_study("iss"), _study("lasso"), _COLLEGES),
    unpublished=(
        ("Tables 3 to 5, Figure 1(a): human age, 14,011 comparisons of 30 faces", "the simulated study"),
        ("Table 6, Figure 1(b): reading level, 8,000 comparisons of 490 documents", "the simulated study"),
        ("Table 7, Figure 1(c): image quality, 52,043 comparisons of 240 images", "the simulated study"),
    ),
)
