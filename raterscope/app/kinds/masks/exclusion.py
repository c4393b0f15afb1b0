"""Effect of excluding raters on the consensus of a case."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.metrics import in_common_frame
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.kinds.masks.runs import Case, read_case
from raterscope.app.review import fold
from raterscope.app.study import Study


@dataclass(frozen=True, eq=False)
class FusedCase:
    """A case as a run had it, with its result."""

    plan: MaskPlan
    case: Case
    fusions: Sequence[MaskFusion]


@dataclass(frozen=True)
class ConsensusChange:
    """Voxels of the consensus of a structure that change.

    Attributes
    ----------
    changed : int
        Voxels that are inside in one consensus only.
    before, after : int
        Voxels inside.
    """

    structure: str
    changed: int
    before: int
    after: int


def gather_case(run: int, image: int, study: Study, watch: Watch = silent) -> FusedCase | None:
    """Read a case as a run had it, with the decisions that it held fixed; None if the run has no result."""
    watch(0.0, "reading the masks")
    entry = study.runs.get(run)
    state = fold([decision for decision in study.decisions() if decision.id <= entry.known])
    case, result = read_case(study.image(image), study, state), study.runs.result(run, image)
    if case is None or result is None:
        return None
    return FusedCase(MaskPlan.from_dict(entry.settings), case, result.fusions)


def fuse_without(
    fused: FusedCase, raters: Collection[str], watch: Watch = silent
) -> tuple[ConsensusChange, ...]:
    """Fuse a case again without raters, and compare the consensus of each structure with the run's.

    Structures without these raters stay as they are. A structure that nobody else marked becomes empty.
    """
    case, changes = fused.case, []
    marked = [
        fusion
        for fusion in fused.fusions
        if not case.records.get(fusion.structures[0], {}).keys().isdisjoint(raters)
    ]
    for old, step_watch in steps_of(watch, marked):
        structure, before = old.structures[0], int(np.count_nonzero(old.mask[0]))
        others = {name: mask for name, mask in case.records[structure].items() if name not in raters}
        if not others:
            changes.append(ConsensusChange(structure, before, before, 0))
            continue
        without = replace(case, records={**case.records, structure: others})
        new = fuse(without.masks(structure), fused.plan, step_watch)
        _, inside_before, inside_after = in_common_frame(old, new)
        changed = int(np.count_nonzero(inside_before != inside_after))
        changes.append(ConsensusChange(structure, changed, before, int(np.count_nonzero(inside_after))))
    return tuple(changes)
