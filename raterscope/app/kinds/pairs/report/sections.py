"""Sections on pairs in a report: biased annotators, the ranking without biases, definitions."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.pairs import PairFusion
from raterscope.algorithms.pairs.selection import wrong_probabilities
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.assessment import matters_in_words
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import Report, ReportPart, ReportRequest
from raterscope.app.kinds.pairs.annotators import variability_section
from raterscope.app.kinds.pairs.report.tables import (
    COLOURS,
    ComparedQuestion,
    draw_path,
    draw_sides,
    flagged_table,
    ranking_table,
    read_compared,
    swapped_table,
    truth_table,
    wins_table,
)
from raterscope.app.kinds.pairs.runs import t_test_in_words, why_not_guaranteed
from raterscope.app.page.contents import Block, Facts, Gallery, Notices, Section, Swatch, run_in_words, share
from raterscope.app.page.variability import ANSWERS
from raterscope.app.study import RunEntry
from raterscope.text import counted, percent


def compared_section(question: ComparedQuestion, watch: Watch = silent) -> Section:
    """Report on one question."""
    watch(0.0, "drawing")
    blocks: list[Block] = [_facts(question)]
    if question.later:
        blocks.append(
            Notices(
                [
                    f"{counted(question.later, 'comparison')} came after run {question.run.id} and are not "
                    "included. Fuse again to include them."
                ]
            )
        )
    truth, swapped = truth_table(question), swapped_table(question)
    blocks += [
        _charts(question),
        flagged_table(question),
        *([swapped] if swapped else []),
        ranking_table(question),
        wins_table(question),
        *([truth] if truth else []),
    ]
    return Section(plain(question.entry.name), blocks, breaks=True)


def _facts(question: ComparedQuestion) -> Facts:
    pairs, fusion = question.pairs, question.fusion
    left, right, ties = (int(side_counts.sum()) for side_counts in pairs.counts())
    votes_each = np.bincount(pairs.annotator, minlength=len(pairs.annotators))
    votes_each = votes_each[votes_each > 0]
    spread = (
        f"; {votes_each.min():,} to {votes_each.max():,} each, median {np.median(votes_each):g}"
        if len(votes_each) > 1
        else ""
    )
    sides = f"{left:,} left and {right:,} right"
    if left + right:
        sides += f": {100 * left / (left + right):.1f} % left"
    facts = [
        (
            "Comparisons",
            f"{counted(len(pairs), 'comparison')} by {counted(len(votes_each), 'annotator')}{spread}",
        ),
        ("Items", _items(fusion)),
        ("Choices", sides + (f"; {counted(ties, 'tie')}" if ties else "")),
        ("Flagged", _flagged(question)),
        ("Decisions", _matters(question)),
        ("Promise", _promise(question)),
        ("Other test", t_test_in_words(question.fusion, question.beside.by_t_test)),
        ("What a ranking explains", _explained(question)),
        ("Run", run_in_words(question.run)),
    ]
    return Facts([*facts, *(("Note", plain(sentence, 1000)) for sentence in fusion.notices)])


def _items(fusion: PairFusion) -> str:
    compared = int((fusion.component >= 0).sum())
    groups = int(fusion.component.max(initial=-1)) + 1
    text = f"{compared:,}"
    if groups > 1:
        text += f" in {groups:,} groups that no comparison links, each ranked by itself"
    never = len(fusion.component) - compared
    return text + (f"; {never:,} never compared" if never else "")


def _flagged(question: ComparedQuestion) -> str:
    fusion = question.fusion
    tested = int((fusion.untested == 0).sum())
    text = f"{int(fusion.flagged.sum()):,} of {counted(tested, 'tested annotator')}"
    draws = len(fusion.statistic)
    if fusion.rule == "flip":
        text += f", by the flip test (p value of the crowd {fusion.crowd_p:.2g}, limit {fusion.gate:g})"
    elif draws > 1:
        text += f", each selected by {100 * fusion.share:g} % of {draws:,} draws of knockoffs or more"
    untested = int((fusion.untested > 1).sum())  # annotators without comparisons are not counted
    if untested:
        text += f"; {untested:,} could not be tested"
    if fusion.decidable is not None:
        open_ = int((~fusion.decidable & ~fusion.flagged & (fusion.untested == 0)).sum())
        text += f"; {open_:,} not decidable" if open_ else ""
    more = int((question.flagged & ~fusion.flagged).sum())
    fewer = int((fusion.flagged & ~question.flagged).sum())
    expert = [f"{count:,} {text}" for count, text in ((more, "more flagged"), (fewer, "cleared")) if count]
    return text + (f". By the expert {' and '.join(expert)}" if expert else "")


def _matters(question: ComparedQuestion) -> str:
    pairs = question.pairs
    undecided = [
        at for at in np.unique(pairs.annotator).tolist() if pairs.annotators[at] not in question.judged
    ]
    if not undecided:
        return "all annotators are decided"
    return matters_in_words(wrong_probabilities(question.fusion)[undecided], "undecided annotator")


def _promise(question: ComparedQuestion) -> str:
    fusion, doubt = question.fusion, why_not_guaranteed(question.plan, question.fusion)
    wrongly = f"{100 * fusion.rate:g} %"
    if doubt:
        return f"A rate of at most {wrongly} false flags is not guaranteed: {doubt}"
    if fusion.rule == "flip":
        return (
            f"On average at most {wrongly} of the flags are false, if sides were drawn at random; simulated "
            "crowds confirm it. This is a mean over crowds and guarantees nothing about a single annotator"
        )
    text = f"On average at most {wrongly} of the flags are false"
    if len(fusion.statistic) > 1:
        text += "; this is proved for a single draw, and simulated crowds confirm it for many"
    return f"{text}. This is a mean over crowds and guarantees nothing about a single annotator"


def _explained(question: ComparedQuestion) -> str:
    split = question.beside.consistency
    if not (question.fusion.left.any() or question.fusion.right.any()):
        return "all choices are ties: there is nothing to rank by"
    text = (
        f"{percent(split.ranking)} of the choices; {percent(split.disagreement)} is disagreement on the "
        f"same pairs, {percent(split.cyclic)} is cyclic. Inconsistency "
        f"{share(question.fusion.inconsistency, 2)}"
    )
    if np.isfinite(question.crowd_match):
        text += f". {percent(question.crowd_match)} of all answers agree with the corrected ranking"
    return text


def _charts(question: ComparedQuestion) -> Gallery:
    behaviour = np.where(question.flagged, question.behaviour, 0).astype(np.int8)
    pictures = [draw_sides(question.pairs, behaviour)]
    fusion = question.fusion
    if (fusion.path_at > 0).any() and fusion.path.size:
        pictures.append(draw_path(fusion, behaviour, question.run.algorithm))
    words = ("not flagged", "flagged, leaning", "flagged, one-sided")
    return Gallery(
        "Annotators", pictures, [Swatch(colour, name) for colour, name in zip(COLOURS, words, strict=True)]
    )


_VARIABILITY = ("Observer variability of pairs", ANSWERS)

_MEASURES = (
    (
        "Model of a choice",
        "The score of the item on the left, less that of the item on the right, and the annotator's bias to "
        "a side, and noise ([@xu2016]). Scores and biases are those of least "
        "squares, intervals those of Student's t at 95 %. A tie is half a choice for either item, as in the "
        "sufficient statistics of [@davidson1970].",
    ),
    (
        "Flip test",
        "The residual of an answer is its difference from the expectation of the scores, which exclude the "
        "annotator's own answers. If sides were drawn at random, each residual of an unbiased annotator is "
        "as likely to have the other sign; their sum is compared with all patterns of signs "
        "([@lugannani1980]). Where no answer is a tie, this probability is averaged with that of the choice "
        "model, which is sharper with few answers. Flagged: annotators whose q value ([@benjamini1995])"
        " is not above the rate, unless the crowd as a whole shows no bias "
        "([@simes1986], [@fisher1932]). An annotator is not decidable if their answers could not reveal a "
        "bias that matters.",
    ),
    (
        "Draws of knockoffs",
        "Each annotator gets a knockoff: a random copy without bias that resembles the others as much. "
        "Flagged: knockoff statistic above the threshold for the chosen false discovery rate "
        "([@barber2015]).",
    ),
    (
        "Decisions on annotators",
        "The ranking also removes the bias of annotators that the expert flags, and keeps that of cleared "
        "ones. The guarantee covers the run's flags, before the expert's decisions.",
    ),
    (
        "Match and ground truth",
        "The match of an annotator is the share of answers that go with the ranking. [@xu2016], section 3.3, "
        "takes the ranking of all answers; the corrected one, without biases, is listed beside it. A "
        "ranking is compared with a known one by Kendall's tau-b ([@kendall1938]).",
    ),
    (
        "Inconsistency",
        "The share of the choices' sum of squares that no scores explain: annotators contradict each other "
        "on the same two items, or a beats b, b beats c and c beats a ([@jiang2011])"
        ".",
    ),
)


def gather_part(request: ReportRequest, watch: Watch) -> ReportPart:
    """Report on each question."""
    study, state = request.study, request.state
    ids = {item.id for item in request.items}
    entries = [entry for entry in study.pair_questions() if entry.id in ids]
    sections: list[Section] = []
    runs: dict[int, RunEntry] = {}
    for entry, entry_watch in steps_of(watch, entries):
        step = part(entry_watch, 0.0, 1.0, f"{plain(entry.name)}: ")
        judged = state.judged(entry.id)
        compared = read_compared(study, entry, judged, state.excluded, part(step, 0.0, 0.8))
        if compared is not None:
            runs[compared.run.id] = compared.run
            sections.append(compared_section(compared, part(step, 0.8, 1.0)))
            protocol = request.options.get("variability")
            if protocol is not None:
                sections.append(variability_section(entry.name, compared.pairs, protocol))
    measures = _MEASURES if request.options.get("variability") is None else (*_MEASURES, _VARIABILITY)
    return ReportPart(sections, runs, measures if runs else ())


REPORT = Report(gather_part)
