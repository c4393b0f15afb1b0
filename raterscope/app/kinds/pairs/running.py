"""A run over questions of pairs: comparisons fused, one question after the other, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import BEHAVIOURS, PairsError
from raterscope.algorithms.pairs.fusion import PairPlan, fuse
from raterscope.algorithms.progress import Watch, silent
from raterscope.app import outcome, running
from raterscope.app.outcome import Outcome, finite_or_none
from raterscope.app.review import ReviewState
from raterscope.app.study import Study
from raterscope.app.study.digests import Fingerprint

Inputs = outcome.Inputs[Pairs]
Draft = outcome.Draft[PairFusion]
Answer = outcome.Answer[PairPlan, Inputs, PairFusion]


def gather(questions: Sequence[int], study: Study, watch: Watch = silent) -> Inputs:
    """Read the comparisons for questions of a study, in this order; those without any are left out."""
    people = study.annotators()

    def read(number: int, state: ReviewState) -> Pairs | None:
        pairs = study.comparison_set(number).pairs(people).without(state.excluded)
        return pairs if len(pairs) else None

    names = {one.id: one.name for one in study.pair_questions()}
    asked = {number: names[number] for number in questions}
    inputs = running.gather(asked, study, read, watch, words="reading the comparisons of")
    if not inputs.given:
        raise PairsError("There are no comparisons to fuse here.")
    return inputs


def fuse_inputs(inputs: Inputs, plan: PairPlan, watch: Watch = silent) -> Answer:
    """Fuse one question after the other; none is lost because another fails."""
    return outcome.one_by_one(inputs, plan, fuse, watch)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run whole, without the questions that failed; gives its number."""
    plan, given = answer.plan, answer.inputs.given
    return running.keep(
        answer,
        study,
        watch,
        kind="pairs",
        algorithm=plan.algorithm,
        seed=plan.settings.as_dict().get("seed"),
        digest=digest_of(given),
        log={"questions": [question_record(one, given[name]) for name, one in answer.outcomes.items()]},
    )


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
        "rule": fusion.rule,
        "crowd_p_value": finite_or_none(fusion.crowd_p) if fusion.rule == "flip" else None,
        "not_decidable": None if fusion.decidable is None else _undecidable(fusion),
        "behaviours": {
            name: int(behaviour[at]) for at, name in enumerate(BEHAVIOURS) if name in ("ugly", "bad")
        },
        "iterations": len(fusion.path_at),
        "objective": finite_or_none(fusion.variance * fusion.freedom),
        "objective_is": "sum of squares that scores and biases leave",
        "noise_variance": finite_or_none(fusion.variance),
        "degrees_of_freedom": fusion.freedom,
        "share_of_left": left / (left + right) if left + right else None,
        "inconsistency": finite_or_none(fusion.inconsistency),
        "notices": list(fusion.notices),
    }


def _undecidable(fusion: PairFusion) -> int:
    """Count the tested annotators who are neither flagged nor shown to be unbiased."""
    assert fusion.decidable is not None
    return int(((fusion.untested == 0) & ~fusion.flagged & ~fusion.decidable).sum())


def digest_of(questions: Mapping[str, Pairs]) -> str:
    """Compute the SHA-256 of the comparisons of some questions."""
    found = Fingerprint()
    for name, pairs in sorted(questions.items()):
        found.texts(name, *pairs.annotators, "", *pairs.items)
        found.arrays(pairs.annotator, pairs.left, pairs.right, pairs.choice, pairs.time)
    return str(found)
