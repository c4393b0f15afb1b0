"""A run over questions of pairs: comparisons fused, one question after the other, and the record of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import BEHAVIOURS, PairsError
from raterscope.algorithms.pairs.fusion import PairPlan, fuse
from raterscope.algorithms.progress import Watch, silent
from raterscope.app import outcome
from raterscope.app.outcome import Outcome, versions
from raterscope.app.review import fold
from raterscope.app.study import RunRecord, Study

__all__ = ["Answer", "Draft", "Inputs", "digest_of", "fuse_questions", "gather", "keep", "question_record"]

Inputs = outcome.Inputs[Pairs]
Draft = outcome.Draft[PairFusion]
Answer = outcome.Answer[PairPlan, Pairs, PairFusion]


def gather(questions: Sequence[int], study: Study, watch: Watch = silent) -> Inputs:
    """Read the comparisons for questions of a study, in this order; those without any are left out."""
    decisions = study.decisions()
    state = fold(decisions)
    names = {one.id: one.name for one in study.pair_questions()}
    found: dict[str, Pairs] = {}
    numbers: dict[str, int] = {}
    for done, number in enumerate(questions):
        watch(done / len(questions), f"reading the comparisons of {names[number]}")
        pairs = study.bench(number).pairs(study.annotators()).without(state.excluded)
        if len(pairs):
            found[names[number]] = pairs
            numbers[names[number]] = number
    if not found:
        raise PairsError("There are no comparisons to fuse here.")
    return Inputs(
        items=numbers,
        given=found,
        decision=decisions[-1].id if decisions else 0,
        imported=study.last_import(),
        excluded=tuple(sorted(state.excluded)),
    )


def fuse_questions(inputs: Inputs, plan: PairPlan, watch: Watch = silent) -> Answer:
    """Fuse one question after the other; none is lost because another fails."""
    return outcome.one_by_one(inputs, plan, fuse, watch)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run whole, without the questions that failed; gives its number."""
    plan, inputs = answer.plan, answer.inputs
    record = RunRecord(
        kind="pairs",
        algorithm=plan.algorithm,
        settings=plan.as_dict(),
        seed=plan.settings.as_dict().get("seed"),
        versions=versions(),
        digest=digest_of(inputs.given),
        started=answer.started,
        seconds=answer.seconds,
        log={
            "questions": [question_record(one, inputs.given[name]) for name, one in answer.outcomes.items()]
        },
        known=inputs.decision,
        imported=inputs.imported,
        excluded=inputs.excluded,
    )
    return study.add_run(record, answer.kept, watch)


def question_record(ended: Outcome[PairFusion], pairs: Pairs) -> dict[str, Any]:
    """Say how the fusion of a question went, ready for JSON."""
    record: dict[str, Any] = {"question": ended.item, "seconds": round(ended.seconds, 4)}
    if ended.fusion is None:
        return record | {"problem": ended.problem}
    fusion = ended.fusion
    left, right = int(fusion.left.sum()), int(fusion.right.sum())
    behaviour = np.bincount(fusion.behaviour[fusion.flagged], minlength=len(BEHAVIOURS))
    return record | {
        "comparisons": len(pairs),
        "annotators": len(np.unique(pairs.annotator)),
        "items": int((fusion.component >= 0).sum()),
        "components": int(fusion.component.max(initial=-1)) + 1,
        "tested": int((fusion.untested == 0).sum()),
        "flagged": int(fusion.flagged.sum()),
        "behaviours": {name: int(behaviour[at]) for at, name in enumerate(BEHAVIOURS) if name != "good"},
        "iterations": len(fusion.path_at),
        "objective": _json(fusion.variance * fusion.freedom),
        "objective_is": "sum of squares that scores and biases leave",
        "noise_variance": _json(fusion.variance),
        "degrees_of_freedom": fusion.freedom,
        "share_of_left": left / (left + right) if left + right else None,
        "inconsistency": _json(fusion.inconsistency),
        "notices": list(fusion.notices),
    }


def digest_of(questions: Mapping[str, Pairs]) -> str:
    """Compute the SHA-256 of the comparisons of some questions."""
    machine = hashlib.sha256()

    def take(*texts: str) -> None:
        for text in texts:
            machine.update(len(text.encode()).to_bytes(8, "little") + text.encode())

    for name, pairs in sorted(questions.items()):
        take(name, *pairs.annotators, "", *pairs.items)
        for array in (pairs.annotator, pairs.left, pairs.right, pairs.choice, pairs.time):
            machine.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return f"sha256:{machine.hexdigest()}"


def _json(value: float) -> float | None:
    """Give a number as JSON has it, which knows no NaN."""
    return float(value) if math.isfinite(value) else None
