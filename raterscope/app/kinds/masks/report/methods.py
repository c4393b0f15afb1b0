"""Masks in a report: several methods on the same cases, as a table and as box plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import plain
from raterscope.app.kinds.masks.methods import (
    BASELINE,
    FIGURES,
    REFERENCES,
    ComparedMethods,
    MethodBox,
    boxes,
    compare_cases,
    kept_methods,
    methods_plans,
)
from raterscope.app.kinds.masks.running import gather
from raterscope.app.page.charts import draw_paper
from raterscope.app.page.contents import Gallery, Notices, Picture, Section, Table
from raterscope.app.page.units import NONE
from raterscope.app.study import Study
from raterscope.figures.evaluation import BoxView, box_chart
from raterscope.figures.paper import PaperChart
from raterscope.text.numbers import duration, small_figure

_TITLE = "Methods compared"
_TICKS = 4
_HALF = 0.3
_LEAST_SECONDS = 1e-4


def compared_methods_section(
    study: Study, images: Sequence[int], methods: Sequence[str] | None, watch: Watch = silent
) -> Section | None:
    """Compare methods on cases, or show what the study keeps of the last comparison.

    Parameters
    ----------
    study : Study
    images : sequence of int
    methods : sequence of str, optional
        Those to run now, all where it is empty; None for those that the study keeps.
    watch : Watch

    Returns
    -------
    Section or None
        None where nothing is to be shown.
    """
    if methods is None:
        found = kept_methods(study, watch)
        names = {study.image(image).name for image in images}
        cases = () if found is None else tuple(case for case in found.cases if case.name in names)
        if found is None or not cases:
            return None
        return _section(replace(found, cases=cases))
    inputs = gather(images, study, part(watch, 0.0, 0.1))
    found = compare_cases(inputs, methods_plans(methods or tuple(FUSERS)), part(watch, 0.1, 1.0))
    return _section(found) if found.cases else Section(_TITLE, [Notices(found.problems)])


def _section(found: ComparedMethods) -> Section:
    reference = "truth" if found.truth else "raters"
    shown = {figure: boxes(found, figure, reference) for figure in FIGURES}
    names = list(dict.fromkeys((box.name, box.rater) for some in shown.values() for box in some))
    pictures = [_picture(some, figure, found, reference, names) for figure, some in shown.items() if some]
    numbered = ", ".join(f"{at} {plain(_title(*key), 30)}" for at, key in enumerate(names, start=1))
    among = "" if found.truth else " Every rater is part of every consensus."
    note = f"{numbered}. Boxes: quartiles with the median, and every value as a dot.{among}"
    table = _table(found, shown, names, reference)
    return Section(_TITLE, [table, Gallery("Methods side by side", pictures, (), note)])


def _table(
    found: ComparedMethods, shown: dict[str, list[MethodBox]], names: list[tuple[str, bool]], reference: str
) -> Table:
    unit = f", {found.unit}" if found.unit else ""
    heads = {
        "dice": "Dice", "hausdorff_95": f"HD95{unit}", "hausdorff": f"HD{unit}",
        "mean_surface_distance": f"Surface{unit}", "bound": "Bound, nats", "seconds": "Time",
    }  # fmt: skip
    rows = []
    for at, key in enumerate(names, start=1):
        cells = []
        for figure in heads:
            box = next((one for one in shown[figure] if (one.name, one.rater) == key), None)
            cells.append(NONE if box is None else _cell(box, figure))
        judged = next((box.p_value for box in shown["dice"] if (box.name, box.rater) == key), math.nan)
        p_value = "" if math.isnan(judged) else "< 0.001" if judged < 0.001 else f"{judged:.3f}"
        rows.append((f"{at} {plain(_title(*key), 40)}", *cells, p_value))
    note = (
        f"{REFERENCES[reference].capitalize()}: medians, quartiles in brackets. Bound: lower bound less the "
        "highest on that case, of the models whose bounds can be compared. Time of the fusion alone. "
        f"p: Wilcoxon signed-rank test of Dice against {FUSERS[BASELINE].title} over the cases, two-sided, "
        f"not corrected for the number of methods. {plain(found.facts, 4000)}"
    )
    return Table("Methods on the same masks", ("Method", *heads.values(), "p"), rows, note)


def _title(name: str, rater: bool) -> str:
    return name if rater else FUSERS[name].title


def _cell(box: MethodBox, figure: str) -> str:
    low, middle, high = np.percentile(box.values, (25, 50, 75)).tolist()
    write: Callable[[float], str] = {"bound": "{:,.0f}".format, "dice": "{:.3f}".format}.get(
        figure, duration if figure == "seconds" else small_figure
    )
    words = write(middle)
    if len(box.values) > 1 and figure != "seconds":
        words += f" ({write(low)} to {write(high)})"
    return words.replace("-", "\N{MINUS SIGN}")


def _picture(
    shown: Sequence[MethodBox],
    figure: str,
    found: ComparedMethods,
    reference: str,
    names: Sequence[tuple[str, bool]],
) -> Picture:
    alone = figure in ("bound", "seconds")
    unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, found.unit)
    title = FIGURES[figure] if alone else f"{FIGURES[figure]} {REFERENCES[reference]}"
    numbers_of = [str(names.index((box.name, box.rater)) + 1) for box in shown]
    views = [BoxView(number, box.values, box.rater) for number, box in zip(numbers_of, shown, strict=True)]
    chart = box_chart(views, title, unit or FIGURES[figure], across="method", logarithmic=figure == "seconds")
    return draw_paper(PaperChart(chart), title[:1].upper() + title[1:])
