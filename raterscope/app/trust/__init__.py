"""How far to trust what a run claims: a module for each kind, one shape for all."""

from __future__ import annotations

from collections.abc import Sequence

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.study import Study
from raterscope.app.trust.clicks import trust_in_clicks
from raterscope.app.trust.labels import trust_in_labels
from raterscope.app.trust.masks import trust_in_masks
from raterscope.app.trust.pairs import trust_in_pairs
from raterscope.app.trust.shape import FEW, Trust

__all__ = [
    "FEW", "Trust", "trust_in_clicks", "trust_in_labels", "trust_in_masks", "trust_in_pairs", "trust_of",
]  # fmt: skip


def trust_of(kind: str, items: Sequence[int], study: Study, watch: Watch = silent) -> Trust | None:
    """Compare what the runs shown of some items claim with what is known; None without items or measure.

    Parameters
    ----------
    kind : str
    items : sequence of int
        Images of clicks, cases of masks, or one question of labels or pairs.
    study : Study
    watch : Watch
    """
    if not items:
        return None
    if kind == "clicks":
        return trust_in_clicks(study, items, watch)
    if kind == "masks":
        return trust_in_masks(study, items, watch)
    if kind == "labels":
        watch(0.0, "comparing with what is known")
        return trust_in_labels(study, items[0])
    if kind == "pairs":
        return trust_in_pairs(study, items[0], watch)
    return None
