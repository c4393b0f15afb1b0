"""Box plots of methods as one SVG: overlap, distances, lower bound, time."""

from __future__ import annotations

from pathlib import Path

from raterscope.app.formats.output_files import write_whole
from raterscope.app.kinds.masks.methods import BASELINE, FIGURES, REFERENCES, ComparedMethods, boxes
from raterscope.figures.evaluation import BoxView, box_chart
from raterscope.figures.layout import SCREEN
from raterscope.figures.paper import PaperChart
from raterscope.figures.sheet import sheet

_WIDE, _HIGH = 460, 310


def write_plots(path: Path, found: ComparedMethods) -> Path:
    """Write all box plots into one file, whole or not at all."""
    return write_whole(path, draw(found))


def draw(found: ComparedMethods) -> bytes:
    """Draw all box plots as SVG; a star marks methods that differ from the baseline (p < 0.05)."""
    reference = "truth" if found.truth else "raters"
    panels = []
    starred = False
    for figure, words in FIGURES.items():
        shown = boxes(found, figure, reference)
        if not shown:
            continue
        title = words if figure in ("bound", "seconds") else f"{words}, {REFERENCES[reference]}"
        unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, found.unit)
        views = [BoxView(box.name, box.values, box.rater, bool(box.p_value < 0.05)) for box in shown]
        starred = starred or any(view.starred for view in views)
        chart = box_chart(views, words, unit, logarithmic=figure == "seconds")
        panels.append((f"{title}, {unit}" if unit else title, PaperChart(chart, _WIDE, _HIGH, SCREEN)))
    note = f"* differs from {BASELINE}: Wilcoxon signed-rank test, p < 0.05" if starred else ""
    return sheet(panels, note=note)
