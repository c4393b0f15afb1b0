"""Observer variability of pairs: agreement between annotators, repeated and swapped comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.annotators.agreement import PairConsistency, pair_consistency
from raterscope.algorithms.annotators.names import split_read
from raterscope.algorithms.annotators.vote_agreement import VoteAgreement, vote_agreement
from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.page.contents import NONE, Block, Section, Table, named
from raterscope.app.page.variability import (
    ANOTHER,
    ANY_READER,
    THE_SAME,
    Protocol,
    Statistic,
    last_answers,
    protocol_table,
    write,
)
from raterscope.text import counted

_MOST_ROWS = 30
_CHOICES = 3
"""The right item, neither, or the left one."""


@dataclass(frozen=True, eq=False)
class PairVariability:
    """Variability of the comparisons of a question."""

    question: str
    # of different annotators on the same two items and task, by each annotator's last answer
    agreement: VoteAgreement
    annotators: int
    consistency: list[PairConsistency]  # of all together, then of each person


def measure_pairs(question: str, pairs: Pairs, watch: Watch = silent) -> PairVariability:
    """Measure the agreement of annotators with each other and with themselves."""
    watch(0.0, "measuring agreement")
    agreement = agreement_on_pairs(pairs)
    watch(0.5, "comparing repeated comparisons")
    consistency = consistency_of(pairs)
    people = {split_read(pairs.annotators[at])[0] for at in np.unique(pairs.annotator)}
    return PairVariability(question, agreement, len(people), consistency)


def agreement_on_pairs(pairs: Pairs) -> VoteAgreement:
    """Measure the agreement on the same two items, and task if there are some, by each one's last answer."""
    turned = pairs.left > pairs.right
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    code = low.astype(np.int64) * len(pairs.items) + high
    if pairs.task is not None:
        code += (pairs.task.astype(np.int64) + 1) * len(pairs.items) ** 2
    _, pair = np.unique(code, return_inverse=True)
    answer = (np.where(turned, -1, 1) * np.sign(pairs.choice)).astype(np.int64) + 1
    last = last_answers(pairs.annotators, pairs.annotator, pair)
    return vote_agreement(pair[last], answer[last], _CHOICES)


def consistency_of(pairs: Pairs) -> list[PairConsistency]:
    """Compare repeated comparisons, on the same task where tasks are known."""
    return pair_consistency(
        pairs.annotator, pairs.left, pairs.right, pairs.choice, pairs.annotators, pairs.task
    )


def pair_statistics(variability: PairVariability) -> Iterator[Statistic]:
    """Yield all statistics, for exports and protocols."""
    question, agreement = variability.question, variability.agreement
    for key, value in (("agreement", agreement.percent), ("alpha", agreement.krippendorff)):
        yield Statistic(
            question, key, value, "", ANY_READER, ANOTHER, agreement.tasks, variability.annotators
        )
    for consistency in variability.consistency:
        names = (consistency.person or ANY_READER, consistency.person or THE_SAME)
        for key, value, repeats in (
            ("consistency", consistency.same, consistency.same_repeats),
            ("swapped_consistency", consistency.swapped, consistency.swapped_repeats),
        ):
            if repeats:
                yield Statistic(question, key, value, "", *names, repeats, 1, single=bool(consistency.person))


def variability_section(question: str, pairs: Pairs, protocol: Protocol, watch: Watch = silent) -> Section:
    """Report the variability of the comparisons of a question."""
    variability = measure_pairs(question, pairs, watch)
    limits = protocol_table(protocol, list(pair_statistics(variability)))
    blocks: list[Block] = [] if limits is None else [limits]
    blocks.append(_consistency_table(variability))
    return Section("Observer variability", blocks)


def _consistency_table(variability: PairVariability) -> Table:
    rows = [
        (
            named(consistency.person) if consistency.person else "All",
            f"{consistency.same_repeats:,}",
            write(consistency.same) if consistency.same_repeats else NONE,
            f"{consistency.swapped_repeats:,}",
            write(consistency.swapped) if consistency.swapped_repeats else NONE,
        )
        for consistency in variability.consistency[: _MOST_ROWS + 1]
    ]
    agreement = variability.agreement
    between = (
        f"Between annotators, {write(agreement.percent)} of the answers to the same two items agree "
        f"(Krippendorff's alpha {write(agreement.krippendorff)}; {counted(agreement.tasks, 'comparison')})."
    )
    note = (
        "Each comparison is compared with the one that the same annotator made of the same two items before. "
        "Less consistency after the items changed sides than without shows a bias to a side. Wilson's 95 % "
        f"intervals. {between}"
    )
    if not rows:
        note = f"No annotator compared the same two items twice. {between}"
        rows = [("All", "0", NONE, "0", NONE)]
    if len(variability.consistency) > len(rows):
        note += f" The {_MOST_ROWS} annotators with the most repeats are shown; the export has all."
    heads = ("Annotator", "Same sides", "Equal choice", "Swapped sides", "Equal choice")
    return Table("Repeated comparisons", heads, rows, note)
