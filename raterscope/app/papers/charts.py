"""Charts of the page: means over runs as curves, with bands of a standard error."""

from __future__ import annotations

import numpy as np

from raterscope.app.page.charts import LINES, Line, draw_lines
from raterscope.app.page.contents import Gallery, Picture, Swatch
from raterscope.app.papers.experiments import Chart, Experiment, Results, estimate

__all__ = ["draw_charts"]


def draw_charts(experiment: Experiment, results: Results) -> Gallery:
    """Draw the charts of an experiment, which have the same curves; what was not measured is left out."""
    names = [name for name, _ in experiment.charts[0].curves]
    colours = {name: LINES[at % len(LINES)] for at, name in enumerate(names)}
    pictures = [_drawn(chart, colours, results) for chart in experiment.charts]
    legend = [Swatch(colour, name) for name, colour in colours.items()]
    return Gallery("", pictures, legend)


def _drawn(chart: Chart, colours: dict[str, str], results: Results) -> Picture:
    lines, most = [], 1.0
    for name, points in chart.curves:
        found = [(x, estimate(results, cell, measure)) for x, cell, measure in points]
        known = [(x, one.mean, np.nan_to_num(one.error)) for x, one in found if one is not None]
        if not known:
            continue
        x, mean, error = (np.array(values, dtype=np.float64) for values in zip(*known, strict=True))
        low, high = np.clip(mean - error, 0, 1), np.clip(mean + error, 0, 1)
        lines.append(Line(x, np.clip(mean, 0, 1), colours[name], True, low, high))
        most = max(most, float(x.max()))
    return draw_lines(lines, chart.across, chart.up, chart.title, most=most)
