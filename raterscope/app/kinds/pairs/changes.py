"""Changes of an item of pairs from one run to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raterscope.app.comparison import ComparedItem, Differences
from raterscope.app.errors import plain
from raterscope.app.review import fold
from raterscope.app.review.tasks import Judged


def compare_runs(at: ComparedItem, found: Differences) -> None:
    """Compare the item by two runs and fill in the differences."""
    before, after = at.then, at.now
    names = at.study.annotators()
    old = _flags(before, at.study.comparison_set(at.item, at.earlier.imported).annotator_ids)
    new = _flags(after, at.study.comparison_set(at.item, at.later.imported).annotator_ids)
    then = fold([one for one in at.study.decisions() if one.id <= at.earlier.known])
    judged, earlier = at.state.judged(at.item), then.judged(at.item)
    found.disputed_before += _count_flagged(old, names, earlier)
    found.decided += sum(
        name not in earlier or earlier[name].verb != one.verb for name, one in judged.items()
    )
    found.disputed_after += _count_flagged(new, names, judged)
    for who, (flag, bias) in new.items():
        if who in old and old[who][0] != flag and names[who] not in judged:
            state = "flagged now" if flag else "not flagged any more"
            biases = f"{old[who][1]:+.2f} \N{RIGHTWARDS ARROW} {bias:+.2f}"
            words = f"{state}: {plain(names[who])} (bias {biases})"
            found.changes.append(at.change(words, abs(np.nan_to_num(bias)), name=names[who]))
    if len(before.corrected) == len(after.corrected):
        ranks = [np.argsort(np.argsort(-one.corrected, kind="stable")) for one in (before, after)]
        found.ranks += int((ranks[0] != ranks[1]).sum())


def _flags(fusion: Any, people: np.ndarray) -> dict[int, tuple[bool, float]]:
    flags = zip(people.tolist(), fusion.flagged.tolist(), fusion.bias.tolist(), strict=False)
    return {who: (flag, bias) for who, flag, bias in flags}


def _count_flagged(
    flags: Mapping[int, tuple[bool, float]], names: Sequence[str], judged: Mapping[str, Judged]
) -> int:
    """Count who is flagged with the expert's word in place of the run's."""
    return sum(
        judged[names[who]].verb == "flag" if names[who] in judged else flag
        for who, (flag, _) in flags.items()
    )
