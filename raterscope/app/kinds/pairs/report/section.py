"""The questions of pairs in a report: who is biased to a side, and the ranking without the biases."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.pairs import PairFusion
from raterscope.algorithms.pairs.selection import wrong_probabilities
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.disputes import matters_in_words
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.pairs.comparing import not_promised
from raterscope.app.kinds.pairs.report.charts import COLOURS, draw_path, draw_sides
from raterscope.app.kinds.pairs.report.compared_question import ComparedQuestion
from raterscope.app.kinds.pairs.report.tables import flagged_table, ranking_table, truth_table
from raterscope.app.page.contents import Block, Facts, Gallery, Notices, Section, Swatch
from raterscope.app.page.runs import run_in_words
from raterscope.app.page.units import share
from raterscope.text.numbers import percent

__all__ = ["compared_section"]


def compared_section(found: ComparedQuestion, watch: Watch = silent) -> Section:
    """Tell of one question."""
    watch(0.0, "drawing")
    blocks: list[Block] = [_facts(found)]
    if found.later:
        blocks.append(
            Notices(
                [
                    f"{counted(found.later, 'comparison')} came after run {found.run.id}: its figures do not "
                    "rest on them. Fuse again to have them told."
                ]
            )
        )
    truth = truth_table(found)
    blocks += [_charts(found), flagged_table(found), ranking_table(found), *([truth] if truth else [])]
    return Section(plain(found.entry.name), blocks, breaks=True)


def _facts(found: ComparedQuestion) -> Facts:
    pairs, fusion = found.pairs, found.fusion
    left, right, ties = (int(one.sum()) for one in pairs.counts())
    many = np.bincount(pairs.annotator, minlength=len(pairs.annotators))
    many = many[many > 0]
    spread = f"; {many.min():,} to {many.max():,} each, median {np.median(many):g}" if len(many) > 1 else ""
    sides = f"{left:,} left and {right:,} right"
    if left + right:
        sides += f": {100 * left / (left + right):.1f} % left"
    facts = [
        (
            "Comparisons",
            f"{counted(len(pairs), 'comparison')} by {counted(len(many), 'annotator')}{spread}",
        ),
        ("Items", _items(fusion)),
        ("Choices", sides + (f"; {counted(ties, 'tie')}" if ties else "")),
        ("Flagged", _flagged(found)),
        ("Decisions", _matters(found)),
        ("Promise", _promise(found)),
        ("Other test", _other_test(found)),
        ("What a ranking explains", _explained(found)),
        ("Run", run_in_words(found.run)),
    ]
    return Facts([*facts, *(("Note", plain(sentence, 400)) for sentence in fusion.notices)])


def _items(fusion: PairFusion) -> str:
    compared = int((fusion.component >= 0).sum())
    groups = int(fusion.component.max(initial=-1)) + 1
    words = f"{compared:,}"
    if groups > 1:
        words += f" in {groups:,} groups that no comparison links, each ranked by itself"
    never = len(fusion.component) - compared
    return words + (f"; {never:,} never compared" if never else "")


def _flagged(found: ComparedQuestion) -> str:
    fusion = found.fusion
    tested = int((fusion.untested == 0).sum())
    words = f"{int(fusion.flagged.sum()):,} of {counted(tested, 'tested annotator')}"
    draws = len(fusion.statistic)
    if fusion.rule == "flip":
        words += f", by the flip test (p value of the crowd {fusion.crowd_p:.2g}, limit {fusion.gate:g})"
    elif draws > 1:
        words += f", each selected by {100 * fusion.share:g} % of {draws:,} draws of knockoffs or more"
    untested = int((fusion.untested > 1).sum())  # those without comparisons are nobody's business
    if untested:
        words += f"; {untested:,} could not be tested"
    if fusion.decidable is not None:
        open_ = int((~fusion.decidable & ~fusion.flagged & (fusion.untested == 0)).sum())
        words += f"; {open_:,} not decidable" if open_ else ""
    more = int((found.flagged & ~fusion.flagged).sum())
    fewer = int((fusion.flagged & ~found.flagged).sum())
    expert = [f"{many:,} {what}" for many, what in ((more, "more flagged"), (fewer, "cleared")) if many]
    return words + (f". By the expert {' and '.join(expert)}" if expert else "")


def _matters(found: ComparedQuestion) -> str:
    pairs = found.pairs
    left = [at for at in np.unique(pairs.annotator).tolist() if pairs.annotators[at] not in found.judged]
    if not left:
        return "all annotators are decided"
    return matters_in_words(wrong_probabilities(found.fusion)[left], "undecided annotator")


def _promise(found: ComparedQuestion) -> str:
    fusion, doubt = found.fusion, not_promised(found.plan, found.fusion)
    wrongly = f"{100 * fusion.rate:g} %"
    if doubt:
        return f"That at most {wrongly} of the flagged are flagged wrongly is not promised: {doubt}"
    if fusion.rule == "flip":
        return (
            f"Of those the test flags, on average at most {wrongly} are flagged wrongly, if sides "
            "were drawn at random; simulated crowds show it. It is a mean over crowds, and nothing is "
            "promised of any one annotator"
        )
    words = f"Of those the draws flag, on average at most {wrongly} are flagged wrongly"
    if len(fusion.statistic) > 1:
        words += "; it is proved of a single draw, and simulated crowds show it of many"
    return f"{words}. It is a mean over crowds, and nothing is promised of any one annotator"


def _other_test(found: ComparedQuestion) -> str:
    by_test = found.beside.by_t_test
    both = int((by_test & found.fusion.flagged).sum())
    words = (
        f"the t test with Benjamini-Hochberg at {100 * found.fusion.rate:g} % finds {int(by_test.sum()):,}"
    )
    return words + (f", {both:,} of them flagged too" if by_test.any() else "")


def _explained(found: ComparedQuestion) -> str:
    split = found.beside.consistency
    if not (found.fusion.left.any() or found.fusion.right.any()):
        return "all choices are ties: there is nothing to rank by"
    words = (
        f"{percent(split.ranking)} of the choices; {percent(split.disagreement)} is disagreement on the "
        f"same pairs, {percent(split.cyclic)} is cyclic. Inconsistency "
        f"{share(found.fusion.inconsistency, 2)}"
    )
    if np.isfinite(found.crowd_match):
        words += f". {percent(found.crowd_match)} of all answers agree with the corrected ranking"
    return words


def _charts(found: ComparedQuestion) -> Gallery:
    shown = np.where(found.flagged, found.behaviour, 0).astype(np.int8)
    pictures = [draw_sides(found.pairs, shown)]
    fusion = found.fusion
    if (fusion.path_at > 0).any() and fusion.path.size:
        pictures.append(draw_path(fusion, shown, found.run.algorithm))
    words = ("not flagged", "flagged, leaning", "flagged, one-sided")
    return Gallery(
        "Annotators",
        pictures,
        [Swatch(colour, name) for colour, name in zip(COLOURS, words, strict=True)],
    )
