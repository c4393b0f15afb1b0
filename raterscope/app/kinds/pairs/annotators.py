"""Evidence on annotators from pairs: position bias, course over time, effect of an exclusion, agreement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from raterscope.algorithms.annotators.agreement import PairConsistency, pair_consistency
from raterscope.algorithms.annotators.agreement_statistics import Coefficient, VoteAgreement, vote_agreement
from raterscope.algorithms.annotators.names import split_read
from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.pairs.catalogue import fuse
from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.algorithms.pairs.ranking import ranks
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.annotator_evidence import (
    Agreement,
    AnnotatorFunctions,
    ChangedAnswer,
    Consequences,
    Course,
    Evidence,
    Measure,
    Pool,
    blocks,
    read_shown,
)
from raterscope.app.errors import plain
from raterscope.app.kinds.pairs.runs import Answered, apply_decisions, plan_of, read_answer
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
from raterscope.app.review import current_names
from raterscope.app.study import Study
from raterscope.app.study.pairs import pairs_of
from raterscope.text import counted

BIAS = Measure(
    "bias",
    "side bias",
    "Preference of a side in units of the choice, above 0 for the left",
    ideal=0.0,
    is_signed=True,
    flag="flag",
)
MATCH = Measure(
    "match", "match", "Share of choices that agree with the corrected ranking", ideal=1.0, is_share=True,
    is_reliability=True,
)  # fmt: skip
LEFT = Measure("left_share", "left", "Share of the left among choices of a side", is_share=True)
SWAPPED = Measure(
    "swapped_consistency",
    "swapped",
    "Share of equal choices when the same comparison is made again with the sides swapped",
    ideal=1.0,
    is_share=True,
)
MEASURES = (BIAS, MATCH, LEFT, SWAPPED)

MAX_REPEATED = 2_000_000
"""Maximum number of comparisons in which to search for swapped repeats."""

LISTED = 200
"""Maximum number of changed ranks in a preview."""

_MAX_ROWS = 30
_CHOICES = 3
"""Number of answers: the right item, a tie, or the left item."""


def _answers(study: Study, watch: Watch) -> Sequence[Answered]:
    return [answer for _, answer in read_shown(study.pair_questions(), partial(read_answer, study), watch)]


def evidence(study: Study, watch: Watch) -> Evidence | None:
    """Return the figures of exports and reports, of all questions; see `AnnotatorFunctions`."""
    state = study.review_state()
    pool = Pool(state.aliases, len(MEASURES))
    flags: dict[int, str] = {}
    verdicts: dict[int, str] = {}
    answers = _answers(study, part(watch, 0.0, 0.5))
    for answered, step in steps_of(part(watch, 0.5, 1.0), answers):
        names = answered.pairs.annotators
        fusion = apply_decisions(study, answered, step)
        sided = fusion.left + fusion.right
        values = np.full((len(names), len(MEASURES), 3), np.nan)
        values[:, 0] = np.stack([fusion.bias, fusion.bias_low, fusion.bias_high], axis=1)
        for row in np.flatnonzero(sided).tolist():
            left, number = float(fusion.left[row]), int(sided[row])
            values[row, 2] = (left / number, *wilson(left, number))
            answers_of = number + int(fusion.ties[row])
            match = float(fusion.match[row])
            values[row, 1] = (match, *wilson(match * answers_of, answers_of))
        for row, swapped in swapped_consistency(answered.pairs).items():
            values[row, 3] = (swapped.value, swapped.low, swapped.high)
        pool.add(names, values, sided + fusion.ties)
        rows = pool.rows_of(names).tolist()
        for at in np.flatnonzero(fusion.flagged).tolist():
            flags[rows[at]] = BEHAVIOUR_WORDS[int(fusion.behaviour[at])]
        judged = state.judged(answered.question.id)
        verdicts |= {
            row: "flagged" if judged[name].verb == "flag" else "not biased"
            for row, name in zip(rows, names, strict=True)
            if name in judged
        }
    if not answers:
        return None
    marks, items = pool.counted()
    everyone = range(len(pool.names))
    nothing = np.zeros(len(pool.names), dtype=np.int64)
    return Evidence(
        kind="pairs",
        marks_are="comparisons",
        names=pool.names,
        marks=marks,
        items=items,
        measures=MEASURES,
        values=pool.weighted(),
        words={
            "flag": [flags.get(row, "") for row in everyone],
            "verdict": [verdicts.get(row, "") for row in everyone],
        },
        accepted=nothing,
        rejected=nothing,
    )


def swapped_consistency(pairs: Pairs) -> dict[int, Coefficient]:
    """Return the consistency of each annotator who made a comparison in both orders of its items."""
    if len(pairs) > MAX_REPEATED:
        return {}
    rows = {name: row for row, name in enumerate(pairs.annotators)}
    return {
        rows[each.person]: each.swapped
        for each in consistency_of(pairs)
        if each.swapped_repeats and each.person in rows
    }


def courses(study: Study, names: Collection[str], watch: Watch) -> Sequence[Course]:
    """Return the share of the left side by blocks of comparisons in time; see `AnnotatorFunctions`."""
    listed = []
    answers = _answers(study, watch)
    for answered in answers:
        pairs = answered.pairs
        rows = [row for row, name in enumerate(pairs.annotators) if name in names]
        own = np.flatnonzero(np.isin(pairs.annotator, rows))
        if pairs.time is not None:
            own = own[np.argsort(pairs.time[own], kind="stable")]
        if not len(own):
            continue
        points, values = [], []
        for block in blocks(len(own)):
            choice = pairs.choice[own[block]]
            left, sided = float((choice > 0).sum()), int((choice != 0).sum())
            points.append(f"comparisons {block.start + 1:,} to {block.stop:,}")
            share = left / sided if sided else float("nan")
            values.append((share, *wilson(left, sided)))
        about = f", {plain(answered.question.name)}" if len(answers) > 1 else ""
        measure = Measure(
            "left", f"left side{about}", "Share of the left among choices of a side in a block",
            ideal=0.5, is_share=True,
        )  # fmt: skip
        listed.append(Course("pairs", measure, tuple(points), "block of comparisons", np.array(values)))
    return listed


def preview(study: Study, names: Collection[str], weight: float | None, watch: Watch) -> Consequences | None:
    """Fuse the questions shown again without annotators, or with a weight; see `AnnotatorFunctions`."""
    state = study.review_state()
    affected, notes = [], []
    for answered in _answers(study, part(watch, 0.0, 0.1)):
        rows = [row for row, name in enumerate(answered.pairs.annotators) if name in names]
        if not np.isin(answered.pairs.annotator, rows).any():
            continue
        plan = plan_of(answered.run)
        if plan is None:
            notes.append(f"The settings of run {answered.run.id} cannot be read: its changes are unknown.")
        else:
            affected.append((answered, plan))
    if not affected and not notes:
        return None
    changed = total = 0
    changes: list[ChangedAnswer] = []
    for (answered, plan), step in steps_of(part(watch, 0.1, 1.0), affected):
        before = apply_decisions(study, answered, part(step, 0.0, 0.1))
        others = answered.pairs.without(set(state.excluded)).with_weights(state.weights)
        others = others.reweighed(set(names), weight)
        if not len(others):
            notes.append(f"{plain(answered.question.name)} would have no comparisons left.")
            continue
        fused = replace(answered, pairs=others, fusion=fuse(others, plan, part(step, 0.1, 0.9)))
        after = apply_decisions(study, fused, part(step, 0.9, 1.0))
        old, new = ranks(before.corrected, before.component), ranks(after.corrected, after.component)
        moved = np.flatnonzero((old != new) & (before.component >= 0))
        changed, total = changed + len(moved), total + int((before.component >= 0).sum())
        moved = moved[np.argsort(-np.abs(new - old)[moved], kind="stable")]
        changes += [
            ChangedAnswer(answered.pairs.items[at], f"rank {old[at]:g}", f"rank {new[at]:g}")
            for at in moved[: LISTED - len(changes)].tolist()
        ]
    return Consequences("pairs", "rank", changed, total, tuple(changes), tuple(notes))


def agreement(study: Study, names: Collection[str], watch: Watch) -> Sequence[Agreement]:
    """Return Krippendorff's alpha of annotators on the same two items, by question.

    See `AnnotatorFunctions`.
    """
    state, agreements = study.review_state(), []
    for entry, step in steps_of(watch, study.pair_questions()):
        step(0.0, "measuring agreement")
        pairs = pairs_of(study, entry.id)
        pairs = pairs.joined(current_names(pairs.annotators, state.aliases)).without(set(state.excluded))
        if names:
            pairs = pairs.without(set(pairs.annotators) - set(names))
        if len(pairs):
            measured = agreement_on_pairs(pairs)
            units = counted(measured.tasks, "compared pair")
            agreements.append(Agreement(plain(entry.name), measured.krippendorff, units))
    return agreements


ANNOTATORS = AnnotatorFunctions(evidence, courses, preview, agreement=agreement)


@dataclass(frozen=True, eq=False)
class PairVariability:
    """Variability of the comparisons of a question."""

    question: str
    # Krippendorff's alpha on the same two items and task, by each annotator's last answer
    agreement: VoteAgreement
    annotators: int
    consistency: list[PairConsistency]  # pooled, then by reader


def measure_pairs(question: str, pairs: Pairs, watch: Watch = silent) -> PairVariability:
    """Measure the agreement of annotators with each other and with themselves."""
    watch(0.0, "measuring agreement")
    agreement = agreement_on_pairs(pairs)
    watch(0.5, "comparing repeated comparisons")
    consistency = consistency_of(pairs)
    annotators = {split_read(pairs.annotators[at])[0] for at in np.unique(pairs.annotator)}
    return PairVariability(question, agreement, len(annotators), consistency)


def agreement_on_pairs(pairs: Pairs) -> VoteAgreement:
    """Measure the agreement on the same two items, and task if known, by each annotator's last answer."""
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
    """Compare repeated comparisons, on the same task if tasks are known."""
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
        for consistency in variability.consistency[: _MAX_ROWS + 1]
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
        note += f" The {_MAX_ROWS} annotators with the most repeats are shown; the export has all."
    heads = ("Annotator", "Same sides", "Equal choice", "Swapped sides", "Equal choice")
    return Table("Repeated comparisons", heads, rows, note)
