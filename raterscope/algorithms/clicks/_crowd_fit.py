"""OEM with the crowd model: components are removed one at a time wherever the evidence rises without them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from raterscope.algorithms.clicks._crowd import Crowd, CrowdModel
from raterscope.algorithms.clicks._grid import Cells
from raterscope.algorithms.clicks.results import Clustering, Trace
from raterscope.algorithms.progress import Watch

__all__ = ["fit_crowd"]


def fit_crowd(
    cells: Cells, annotators: int, area: float, model: CrowdModel, watch: Watch
) -> tuple[Clustering, Crowd]:
    """Fit the crowd model from components wherever clicks agree, down to those that the evidence is for.

    Rounds follow each other: EM over all components with the annotators' hands fixed, the trial removal of
    each component, and the renewal of what is known of the annotators. They end when a round removes
    nothing. Within a round every removal raises the evidence.

    Parameters
    ----------
    cells : Cells
    annotators : int
        R.
    area : float
        Of the image.
    model : CrowdModel
    watch : Watch
    """
    crowd = Crowd(cells, annotators, area, model)
    done, words = 0.0, "choosing where clusters begin"

    def tick() -> None:
        watch(done, words)

    crowd.seed(tick)
    initial = max(len(crowd), 1)
    objective: list[float] = []
    components: list[int] = []
    removed: list[bool] = []

    def note(value: float, *, forced: bool = False) -> None:
        objective.append(value)
        components.append(len(crowd))
        removed.append(forced)

    crowd.set_rules()
    crowd.gather(tick)
    words = f"fitting {len(crowd)} components"
    crowd.sweep(2, tick, renew=False)
    crowd.sweep(5, tick)
    crowd.survey(tick)
    crowd.learn()
    converged, value = False, -math.inf
    for turn in range(model.max_rounds):
        words = f"fitting {len(crowd)} components"
        crowd.gather(tick)
        crowd.set_rules()
        crowd.sweep(2, tick, renew=False)
        crowd.sweep(3, tick)
        crowd.survey(tick)
        crowd.set_rules()
        value = crowd.evidence
        note(value)
        start, width = done, (0.9 - done) * (0.6 if turn == 0 else 0.4)

        def tell(gain: float, position: int, start: float = start, width: float = width) -> None:
            nonlocal done, value
            done = start + width * position / initial
            value += gain
            if gain:
                note(value, forced=True)
            watch(
                done, f"removing the weakest of {len(crowd)} components", objective=value,
                partial=partial(crowd.result, Trace.none()),
            )  # fmt: skip

        gone = crowd.prune(tell)
        done = max(done, start + width)
        crowd.sweep(2, tick)
        crowd.survey(tick)
        crowd.learn()
        tick()
        lonely = crowd.drop_lonely()
        tick()
        converged = gone == 0 and not lonely and turn > 1
        if converged:
            break
    words = f"fitting {len(crowd)} components"
    settled = False
    while not settled:
        crowd.gather(tick)
        crowd.set_rules()
        crowd.sweep(2, tick, renew=False)
        crowd.sweep(6, tick)
        crowd.survey(tick)
        settled = not crowd.drop_lonely()
    note(crowd.evidence)
    trace = Trace(
        np.array(objective), np.array(components, dtype=np.int64), np.array(removed, dtype=bool),
        len(objective) - 1, converged,
    )  # fmt: skip
    return crowd.result(trace), crowd
