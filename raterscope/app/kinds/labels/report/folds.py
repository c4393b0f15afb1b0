"""Labels in a report: ROC curves of all methods by cross-validation."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.roc_curves import FoldedCurves, mean_area
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.labels.folded import area_in_words, curve_chart, curve_keys
from raterscope.app.page.contents import Block, Gallery, Notices, Swatch, Table
from raterscope.app.page.pictures import drawing
from raterscope.app.page.units import NONE
from raterscope.figures.sheet import image_of

__all__ = ["folded_blocks"]

_MOST_CLASSES = 6


def folded_blocks(found: FoldedCurves) -> list[Block]:
    """Draw the curves of each class with all methods, and list the areas."""
    blocks: list[Block] = []
    pictures = []
    legend: list[Swatch] = []
    ranked = found.ranked()
    most = sorted(found.shown, key=lambda at: -ranked[0].pooled.curves[at].count)[:_MOST_CLASSES]
    order = [one.name for one in ranked]
    for true in most:
        chart = curve_chart(found, true, order)
        title = f"ROC of {plain(found.classes[true], 40)}"
        pictures.append(drawing(image_of(chart), title, "predictions of all folds together"))
        if not legend:
            legend = [
                Swatch(key.ink, labeller_title(name))
                for key, name in zip(curve_keys(found, true, order), order, strict=True)
            ]
    if pictures:
        note = (
            "Colours come again with dashes, in the order of the table."
            if len(order) > len({one.colour for one in legend})
            else ""
        )
        blocks.append(Gallery(f"ROC curves by {found.folds}-fold cross-validation", pictures, legend, note))
    rows = []
    for one in ranked:
        folds = one.areas()
        known = folds[np.isfinite(folds)]
        spread = f"{known.min():.3f} to {known.max():.3f}" if len(known) else NONE
        rows.append(
            (labeller_title(one.name), area_in_words(one.area()), area_in_words(mean_area(folds)), spread)
        )
    few = "; a subsample, see the methods" if found.settings.subsample else ""
    note = (
        f"{counted(found.truths, 'known task')} of {found.tasks:,}, {counted(found.votes, 'vote')} by "
        f"{counted(found.annotators, 'annotator')}{few}. The truths of all folds but one are given to a "
        "method, which predicts the tasks of that fold (dynamic combination paper, section 4). AUC of all "
        "predictions together with DeLong's 95 % interval, mean over classes of one against the rest; mean "
        f"of the folds with Student's interval, and its least and greatest. {found.settings.in_words()}."
    )
    columns = "Method", "AUC, pooled", "AUC, mean of folds", "Folds"
    blocks.append(Table("Methods by cross-validation", columns, rows, note))
    if found.failed:
        blocks.append(Notices([plain(one, 400) for one in found.failed]))
    return blocks
