"""The part of pairs in a report: a section for each question, and definitions of measures."""

from __future__ import annotations

from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.kinds.kind import ReportPart, ReportRequest
from raterscope.app.kinds.pairs.report.compared_question import read_compared
from raterscope.app.kinds.pairs.report.section import compared_section
from raterscope.app.page.contents import Section
from raterscope.app.study import RunEntry

__all__ = ["gather_part"]

_MEASURES = (
    (
        "Model of a choice",
        "The score of the item on the left, less that of the item on the right, and the annotator's bias to "
        "a side, and noise ([@xu2016]). Scores and biases are those of least "
        "squares, intervals those of Student's t at 95 %.",
    ),
    (
        "Flip test",
        "Each answer less what the scores expect, which are those without the annotator's own answers. If "
        "sides were drawn at random, each such residual of an unbiased annotator may as well have the other "
        "sign; their sum is compared with all patterns of signs ([@lugannani1980])"
        ". Where no answer is a tie, this probability is averaged with that of the choice model, which is "
        "sharper with few answers. Flagged is whose q value ([@benjamini1995])"
        " is not above the rate, unless the crowd as a whole shows no bias "
        "([@simes1986], [@fisher1932]). An annotator is not decidable if their answers could not reveal a "
        "bias that matters.",
    ),
    (
        "Draws of knockoffs",
        "Each annotator gets a copy made by chance that is as much like the others and has no bias of its "
        "own. Flagged is whose bias comes in earlier on the path than the copies' do, so far that few of "
        "those who are flagged can be copies' equals ([@barber2015]).",
    ),
    (
        "Decisions on annotators",
        "Whom the expert flags has the bias taken out of the ranking too, whom the expert clears has not. "
        "What is promised is of the run's choice, before the expert's.",
    ),
    (
        "Match and ground truth",
        "The match of an annotator is the share of answers that go with the ranking. [@xu2016], section 3.3, "
        "takes the ranking of all answers; the corrected one, with biases taken out, stands beside it. A "
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
    """Describe each question."""
    study, state = request.study, request.state
    ids = {one.id for one in request.items}
    entries = [entry for entry in study.pair_questions() if entry.id in ids]
    sections: list[Section] = []
    runs: dict[int, RunEntry] = {}
    for done, entry in enumerate(entries):
        step = part(watch, done / len(entries), (done + 1) / len(entries), f"{plain(entry.name)}: ")
        judged = state.judged(entry.id)
        found = read_compared(study, entry, judged, state.excluded, part(step, 0.0, 0.8))
        if found is not None:
            runs[found.run.id] = found.run
            sections.append(compared_section(found, part(step, 0.8, 1.0)))
    return ReportPart(sections, runs, _MEASURES if runs else ())
