"""What a fusion of pairs is written as: tables, and the record of how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.evidence import match
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.pairs.selection import draw_shares
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.formats.output_files import take_away, write_record
from raterscope.app.formats.pairs.writing import write_annotators, write_path, write_ranking
from raterscope.app.kinds.pairs.answers import Beside, not_promised
from raterscope.app.kinds.pairs.running import Answer, digest_of, question_record
from raterscope.app.outcome import record_of

MOST_ENTRIES = 10_000_000
"""Entries of the path up to which path.csv is written."""


@dataclass(frozen=True, eq=False)
class QuestionOutput:
    """All that the folder of one question holds.

    Attributes
    ----------
    pairs : Pairs
        What was fused.
    plan : PairPlan
    fusion : PairFusion
    record : dict
        For run.json.
    """

    pairs: Pairs
    plan: PairPlan
    fusion: PairFusion
    record: Mapping[str, Any]


def write_question(folder: Path, output: QuestionOutput, watch: Watch = silent) -> list[Path]:
    """Write tables and run.json into a folder that is there; gives the files.

    Each file replaces one that is there, whole or not at all; a path that an earlier run wrote and this one
    does not is taken away. run.json comes last, and goes first where there is one: where it is, all that it
    tells of is there.

    Raises
    ------
    InputError
        When something cannot be written.
    """
    pairs, fusion = output.pairs, output.fusion
    take_away(folder / "run.json")
    share = draw_shares(fusion, output.plan.settings.as_dict()["plus"])
    written = [
        write_annotators(
            folder / "annotators.csv", pairs.annotators, fusion, share, match(pairs, fusion.score)
        ),
        write_ranking(folder / "ranking.csv", pairs.items, fusion),
    ]
    if has_path(fusion):
        written.append(write_path(folder / "path.csv", pairs.annotators, fusion, watch))
    else:
        take_away(folder / "path.csv")
    return [*written, write_record(folder / "run.json", output.record)]


def has_path(fusion: PairFusion) -> bool:
    """Tell whether path.csv is of a size that anybody opens."""
    return fusion.path.size <= MOST_ENTRIES


def run_record(
    answer: Answer, name: str, inputs: Sequence[Mapping[str, object]], other: Beside
) -> dict[str, Any]:
    """Make the contents of run.json: all that a question's results are made from, and how it went."""
    outcome, pairs = answer.outcomes[name], answer.inputs.given[name]
    fusion, settings = outcome.fusion, answer.plan.settings.as_dict()
    assert fusion is not None
    doubt = not_promised(answer.plan, fusion)
    record = record_of(
        answer.plan, seed=settings["seed"], digest=digest_of({name: pairs}), inputs=inputs,
        started=answer.started, seconds=outcome.seconds,
    )  # fmt: skip
    return record | {
        "excluded": list(answer.inputs.excluded),
        "rate_promised": not doubt,
        "rate_not_promised_because": doubt or None,
        "questions": [question_record(outcome, pairs) | other.as_dict()],
    }
