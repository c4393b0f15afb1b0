"""Fusion runs over questions of labels, and their answers.

A run reads the votes, fuses them, groups the annotators and keeps the result. An answer holds the votes, the
fusion, the truths and the communities of one question, and is compared with the answers of other methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.communities import Communities, describe_communities
from raterscope.algorithms.labels.assessment import Assessment, advice, assess
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.data import (
    OPEN,
    ClassArray,
    FloatArray,
    LabelFusion,
    Labels,
    LabelsError,
    LabelSettings,
)
from raterscope.algorithms.labels.fusion import LabelPlan, fuse, run
from raterscope.algorithms.labels.programs import Program, combine
from raterscope.algorithms.labels.rates import Rates, rates_of
from raterscope.algorithms.labels.result import LabelResult, matrices_in_use
from raterscope.algorithms.labels.tempering import Tempering, choose_tempering, is_modelled
from raterscope.algorithms.labels.vote_budget import NOTHING, Checked, ExpectedErrors, expected_errors
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import outcome
from raterscope.app.outcome import Outcome, attempt, finite_or_none
from raterscope.app.review import ReviewState, current_names
from raterscope.app.study import RunEntry, Study, StudyError
from raterscope.app.study.arrays import Fingerprint
from raterscope.app.study.labels import (
    decided_classes,
    decided_sets,
    excluded_votes,
    known_truth,
    labels_of,
    programs_of,
    with_gold,
)
from raterscope.app.study.records import QuestionEntry
from raterscope.app.study.vote_sets import class_indices
from raterscope.text import counted


@dataclass(frozen=True, eq=False)
class Question:
    """Input of a fusion: votes and imported truths."""

    labels: Labels  # the expert's decisions held fixed
    truth: ClassArray  # (N,)
    # votes of excluded annotators and programs, which do not count; numbered as in `labels`
    excluded: Labels | None = None
    # class probabilities of programs, combined with the consensus of the votes
    programs: tuple[Program, ...] = ()
    checked: Checked = NOTHING  # decisions held fixed, with what earlier runs of the method stated


Inputs = outcome.Inputs[Question]
Draft = outcome.Draft[LabelFusion]
Answer = outcome.Answer[LabelPlan, Inputs, LabelResult]


def gather(
    questions: Sequence[int], study: Study, watch: Watch = silent, *, algorithm: str = "pooled"
) -> Inputs:
    """Read the votes on questions of a study, in the given order; questions without votes are skipped.

    `algorithm`: algorithm of the fusion; its earlier runs are compared with the decisions.
    """
    annotators = study.annotators()

    def read(number: int, state: ReviewState) -> Question | None:
        crowd = study.vote_set(number)
        labels = crowd.labels(annotators, decided_classes(crowd, state, number))
        labels = labels.restricted(decided_sets(crowd, state, number))
        labels = labels.joined(current_names(labels.annotators, state.aliases)).without(state.apart)
        if not len(labels):
            return None
        aliases = labels.aliases | (state.programs & set(labels.annotators))
        labels = replace(labels.with_weights(state.weights), aliases=aliases)
        programs = programs_of(study, number, tuple(state.programs - state.excluded.keys()))
        truth = with_gold(crowd, state.gold_tasks(number))
        out = excluded_votes(study, number, tuple(state.apart))
        return Question(labels, truth, out, programs, checked_before(study, number, algorithm))

    names = {number: study.question(number).name for number in questions}
    inputs = outcome.gather(names, study, read, watch, text="reading the votes on")
    if not inputs.given:
        raise LabelsError("There are no votes to fuse here.")
    return inputs


def fuse_inputs(inputs: Inputs, plan: LabelPlan, watch: Watch = silent) -> Answer:
    """Fuse the questions one after the other; if one fails, the others are kept."""
    return outcome.one_by_one(inputs, plan, _fuse, watch)


def _fuse(question: Question, plan: LabelPlan, watch: Watch) -> LabelResult:
    result = fuse(question.labels, plan, question.truth, part(watch, 0.0, 0.95))
    if not question.programs:
        return result
    combined, weights = combine(result.fusion, question.programs, part(watch, 0.95, 1.0))
    question.labels.keep_to_sets(combined.posterior)
    return replace(result, fusion=combined, programs=weights)


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run without the questions that failed; return its number."""
    digest = digest_of(answer.inputs.given)
    record = partial(question_record, plan=answer.plan)
    return outcome.keep_questions(answer, study, watch, kind="labels", digest=digest, record=record)


def question_record(ended: Outcome[LabelResult], question: Question, plan: LabelPlan) -> dict[str, Any]:
    """Describe the fusion of a question, ready for JSON."""
    record: dict[str, Any] = {"question": ended.item, "seconds": round(ended.seconds, 4)}
    if ended.fusion is None:
        return record | {"problem": ended.problem}
    fusion, labels = ended.fusion.fusion, question.labels
    trace = fusion.trace
    groups = ended.fusion.communities
    record |= {
        "tasks": len(labels.tasks),
        "annotators": int((labels.votes_of_annotators() > 0).sum()),
        "votes": int(fusion.votes.sum()),
        "held_fixed": int((fusion.known != OPEN).sum()),
        "iterations": len(trace.change),
        "converged": trace.converged,
        "last_change": finite_or_none(trace.change[-1]) if len(trace.change) else None,
        "objective": finite_or_none(trace.objective[-1]) if len(trace.objective) else None,
        "objective_is": trace.name,
        "each_vote_counts": fusion.power,
        "truths": ended.fusion.truths,
        "expected_errors": asdict(errors_of(question, fusion)),
        "communities": None if groups is None else groups.count,
    }
    by_method = judge(question, plan, ended.fusion)
    judged, advised = (
        by_method.get(plan.algorithm),
        advice_on(question, ended.fusion, by_method, plan.algorithm),
    )
    notices = (*fusion.notices, *(() if groups is None else groups.notices), *advised)
    record["notices"] = list(dict.fromkeys(notices))
    if ended.fusion.programs is not None:
        weights = ended.fusion.programs
        record["programs"] = dict(zip(weights.names, weights.weight.tolist(), strict=True))
        record["gain_of_programs"] = finite_or_none(weights.gain)
    if judged is not None:
        record |= {
            "accuracy": judged.accuracy, "auc": finite_or_none(judged.area), "log_loss": judged.log_loss,
            "calibration_error": finite_or_none(judged.calibration.error), "judged": judged.judged,
        }  # fmt: skip
    return record


_TEMPERINGS: WeakKeyDictionary[LabelFusion, Tempering] = WeakKeyDictionary()
_ADVICE: WeakKeyDictionary[LabelFusion, tuple[str, ...]] = WeakKeyDictionary()
_DIGESTS: WeakKeyDictionary[Question, tuple[str, str]] = WeakKeyDictionary()
"""Name and digest of each question, kept as long as the question: files, summary and notices share them."""


def tempering_for(labels: Labels, fusion: LabelFusion) -> Tempering | None:
    """Choose the weight of a vote for a model that counts each vote fully; None for other methods."""
    if fusion.power < 1.0 or not is_modelled(fusion):
        return None
    if fusion not in _TEMPERINGS:
        _TEMPERINGS[fusion] = choose_tempering(labels, fusion)
    return _TEMPERINGS[fusion]


def rates_for(question: Question, result: LabelResult) -> Rates:
    """Return the annotators' rates; those of excluded annotators by the answer of the others."""
    return rates_of(question.labels, result.fusion, question.excluded)


def unseen_truths(result: LabelResult, truth: ClassArray) -> ClassArray:
    """Return the truths that a result was fused without."""
    return np.where(result.fusion.known == OPEN, truth, OPEN).astype(np.int16)


def stated_before(
    study: Study, question: int, by_run: Mapping[int, Sequence[tuple[str, str]]]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return what runs stated on tasks undecided then, and whether their labels were right, (M,) each.

    `by_run`: names of the tasks and their true classes, by the number of the run.
    """
    pairs: list[tuple[float, bool]] = []
    for number, tasks in by_run.items():
        result = study.runs.result(number, question)
        if not isinstance(result, LabelResult):
            continue
        fusion, label = result.fusion, result.fusion.label()
        names = study.vote_set(question, study.runs.get(number).imported).tasks[: len(label)]
        index_of = {name: task for task, name in enumerate(names)}
        for name, true in tasks:
            task = index_of.get(name)
            if task is not None and fusion.known[task] == OPEN:
                pairs.append((float(fusion.posterior[task].max()), fusion.classes[label[task]] == true))
    return np.array([p for p, _ in pairs]), np.array([yes for _, yes in pairs], dtype=bool)


def checked_before(study: Study, question: int, algorithm: str, run: RunEntry | None = None) -> Checked:
    """Return the decisions that a run holds fixed, with the probabilities of the latest run before each.

    `run`: run of the algorithm; by default one that begins now.
    """
    known = study.last_decision() if run is None else run.known
    classes = study.question(question).scheme.classes
    runs = [
        each
        for each in study.runs.all()
        if (each.kind, each.algorithm) == ("labels", algorithm)
        and question in each.items
        and (run is None or each.id < run.id)
    ]
    by_run: dict[int, list[tuple[str, str]]] = {}
    for name, task in study.review_state().tasks(question).items():
        earlier = [each.id for each in runs if each.known < task.decision <= known]
        if earlier and task.label in classes:  # not a parent
            by_run.setdefault(max(earlier), []).append((name, task.label))
    try:
        return Checked.of(*stated_before(study, question, by_run))
    except StudyError:  # an earlier run is damaged
        return NOTHING


def errors_of(question: Question, fusion: LabelFusion) -> ExpectedErrors:
    """Estimate how many labels of a fusion are wrong."""
    return expected_errors(fusion, question.truth, question.checked.held())


def errors_in_words(errors: ExpectedErrors) -> str:
    """Describe how many labels are expected to be wrong; empty if the class of every task is known."""
    if not errors.tasks:
        return ""
    text = (
        f"Of {counted(errors.tasks, 'label')} of unknown truth, {errors.expected:,.0f} are expected to be "
        f"wrong (95 % interval {errors.low:,} to {errors.high:,}"
    )
    differs = f"{errors.stated:,.0f}" != f"{errors.expected:,.0f}"
    return text + (f"; by the probabilities alone {errors.stated:,.0f})." if differs else ").")


def digest_of(questions: Mapping[str, Question]) -> str:
    """Compute the SHA-256 of the votes on questions, with fixed and known truths."""
    fingerprint = Fingerprint()
    for name, question in sorted(questions.items()):
        labels = question.labels
        fingerprint.texts(name, *labels.outputs, *labels.classes, *labels.tasks, *labels.annotators)
        fingerprint.arrays(
            labels.task, labels.annotator, labels.label, labels.meaning, labels.time, labels.known,
            labels.prior, question.truth, *(program.probability for program in question.programs),
        )  # fmt: skip
        if labels.sets is not None:
            fingerprint.arrays(labels.sets)
        if labels.ordered:
            fingerprint.texts("ordered")
        if labels.weights is not None:
            fingerprint.arrays(labels.weights)
    return str(fingerprint)


def digest_once(name: str, question: Question) -> str:
    """Return `digest_of` one question, computed once for a name."""
    known = _DIGESTS.get(question)
    if known is None or known[0] != name:
        known = _DIGESTS[question] = name, digest_of({name: question})
    return known[1]


@dataclass(frozen=True, eq=False)
class Answered:
    """A question with the answer shown, its votes and the truths held fixed."""

    entry: QuestionEntry  # current entry
    run: RunEntry
    result: LabelResult
    question: Question  # with the outputs, classes and truths of the answer

    @cached_property
    def rates(self) -> Rates:
        """The annotators' rates; those of excluded annotators by the answer of the others."""
        return rates_for(self.question, self.result)


def read_answer(study: Study, entry: QuestionEntry) -> Answered | None:
    """Read the answer shown to a question; None without one."""
    run_and_result = study.shown.result(entry.id, "labels")
    if run_and_result is None:
        return None
    run, result = run_and_result
    labels = order_like_answer(labels_of(study, entry.id, run), result.fusion)
    labels = hold_decisions(study, entry.id, run, result.fusion, labels)
    out = excluded_votes(study, entry.id, (*run.excluded, *run.programs), run.imported)
    out = None if out is None else order_like_answer(out, result.fusion)
    programs = programs_of_run(study, entry, run, result)
    truth = read_truths(study, entry, result.fusion)
    return Answered(entry, run, result, Question(labels, truth, out, programs))


def hold_decisions(study: Study, question: int, run: RunEntry, fusion: LabelFusion, labels: Labels) -> Labels:
    """Return the votes of a run with the classes that it held fixed, and the decided parent classes."""
    labels = replace(labels, known=fusion.known)
    if not run.known:
        return labels
    state = study.review_state(run.known)
    crowd = study.vote_set(question, run.imported)
    return labels.restricted(decided_sets(crowd, state, question, fusion.classes))


def programs_of_run(
    study: Study, entry: QuestionEntry, run: RunEntry, result: LabelResult
) -> tuple[Program, ...]:
    """Return the programs of a run; none if the question lost a class of its result."""
    classes, names = entry.scheme.classes, set(run.programs) - set(run.excluded)
    if not names or not set(result.fusion.classes) <= set(classes):
        return ()
    order = [classes.index(name) for name in result.fusion.classes]
    listed = programs_of(study, entry.id, tuple(names), run.imported)
    return tuple(replace(program, probability=program.probability[:, order]) for program in listed)


plan_of = partial(outcome.read_plan, LabelPlan.from_dict)


def read_truths(study: Study, entry: QuestionEntry, fusion: LabelFusion) -> ClassArray:
    """Return the current truths of an answer's tasks, in the answer's numbering of classes."""
    truth = known_truth(study, entry.id)[: len(fusion.known)]
    return class_indices(truth, entry.scheme.classes, fusion.classes)


def order_like_answer(labels: Labels, fusion: LabelFusion) -> Labels:
    """Order outputs and classes as in an older answer, made before their order changed."""
    if (labels.outputs, labels.classes) == (fusion.outputs, fusion.classes):
        return labels
    assert labels.meaning is not None
    class_of = {
        output: labels.classes[at] if at != OPEN else ""
        for output, at in zip(labels.outputs, labels.meaning.tolist(), strict=True)
    }
    index_of = {name: number for number, name in enumerate(fusion.classes)}
    meaning = np.array(
        [index_of.get(class_of.get(name, ""), OPEN) for name in fusion.outputs], dtype=np.int16
    )
    return replace(
        labels,
        label=class_indices(labels.label, labels.outputs, fusion.outputs),
        outputs=fusion.outputs,
        classes=fusion.classes,
        meaning=meaning,
        known=None,
        prior=None,
    )


@dataclass(frozen=True, eq=False)
class Groups:
    """Communities with their names and measures."""

    communities: Communities
    names: tuple[str, ...]  # (C,)
    of: NDArray[np.int16]  # (K,): community of each annotator, -1 for none
    votes: FloatArray  # (C,): share of all votes
    accuracy: FloatArray  # (C,): expected share of right votes
    central: NDArray[np.int32]  # (C,): the most central member, an annotator's number

    @property
    def basis(self) -> str:
        """Basis of the communities: "behaviour" or "tasks"."""
        return self.communities.basis


def groups_of(labels: Labels, result: LabelResult, accuracy: FloatArray) -> Groups | None:
    """Describe the communities of an answer; None without any.

    `accuracy`: (K,), accuracy of every annotator; a community's is the mean over its votes.
    """
    communities_found = result.communities
    return (
        None
        if communities_found is None or not communities_found.count
        else describe_groups(labels, communities_found, accuracy)
    )


def describe_groups(labels: Labels, groups: Communities, accuracy: FloatArray) -> Groups:
    """Name and measure communities.

    `labels`: the votes, with outputs and classes of the communities' prototypes. `accuracy`: (K,), accuracy
    of every annotator; a community's is the mean over its votes.
    """
    of = groups.of(len(labels.annotators))
    vote_counts = labels.votes_of_annotators()
    weight = [vote_counts[of == number] for number in range(groups.count)]
    return Groups(
        communities=groups,
        names=names_of(labels, groups.prototype, groups.basis),
        of=of,
        votes=np.array([member_votes.sum() for member_votes in weight]) / max(int(vote_counts.sum()), 1),
        accuracy=np.array(
            [
                np.average(accuracy[of == number], weights=member_votes) if member_votes.sum() else np.nan
                for number, member_votes in enumerate(weight)
            ]
        ),
        central=groups.central(vote_counts),
    )


def names_of(labels: Labels, prototypes: FloatArray, basis: str, first: int = 0) -> tuple[str, ...]:
    """Name communities by their behaviour, otherwise by number.

    `prototypes`: (C, J, L). `first`: number of the first one, from 0.
    """
    assert labels.meaning is not None
    if basis == "behaviour":
        return describe_communities(*matrices_in_use(labels, prototypes))
    return tuple(f"community {number + 1}" for number in range(first, first + len(prototypes)))


VOTE = "majority"
"""Baseline method of all comparisons."""


def judge(
    question: Question, plan: LabelPlan, result: LabelResult, watch: Watch = silent
) -> dict[str, Assessment]:
    """Assess a result and the majority vote by truths that neither used, by method; empty without any."""
    own = assess_result(result, question)
    if own is None or plan.algorithm == VOTE:
        return {} if own is None else {VOTE: own}
    settings = LabelSettings(repeats=getattr(plan.settings, "repeats", "all"))
    vote = run(replace(question.labels, known=None), LabelPlan(VOTE, settings), watch)
    voted = assess(vote.posterior, unseen_truths(result, question.truth), vote.classes)
    return {plan.algorithm: own} | ({} if voted is None else {VOTE: voted})


def judge_methods(
    question: Question,
    plan: LabelPlan,
    result: LabelResult,
    *,
    texts: Mapping[str, str] | None = None,
    all_methods: bool = False,
    watch: Watch = silent,
) -> tuple[dict[str, Assessment], list[str]]:
    """Assess a result and the majority vote by truths they did not use; return also which methods failed.

    `plan`: plan of the result.
    `texts`: values of given settings, which other methods share if they have them.
    `all_methods`: assess all methods.
    The assessments are by method, the result's first, the majority vote's second; there are none without
    truths. Sentences state which methods failed, and why.
    """
    assessments, problems = judge(question, plan, result, part(watch, 0.0, 0.1)), list[str]()
    methods = [name for name in LABELLERS if name not in assessments] if assessments and all_methods else []
    for done, name in enumerate(methods):
        fields = LABELLERS[name].settings.names()
        shared = {field: text for field, text in (texts or {}).items() if field in fields}
        method_plan = replace(LabelPlan.make(name, shared), about=replace(plan.about, communities="no"))
        step = part(part(watch, 0.1, 1.0), done / len(methods), (done + 1) / len(methods), f"{name}: ")
        judged, problem, _ = attempt(partial(_judge_method, question, method_plan, step))
        if judged is not None:
            assessments[name] = judged
        elif problem:
            problems.append(f"{name} could not be compared: {problem}")
    return assessments, problems


def assess_result(result: LabelResult, question: Question) -> Assessment | None:
    """Assess a result by the truths that it did not use; None without any."""
    return assess(result.fusion.posterior, unseen_truths(result, question.truth), result.fusion.classes)


def advice_on(
    question: Question, result: LabelResult, judged: Mapping[str, Assessment], method: str
) -> tuple[str, ...]:
    """Return reasons not to trust a result; see `advice`. `judged` is None: those of the last call."""
    labels, fusion = question.labels, result.fusion
    if not judged and fusion in _ADVICE:
        return _ADVICE[fusion]
    rates = None if question.excluded is not None else rates_for(question, result)
    tempering = tempering_for(labels, fusion)
    advised = advice(labels, fusion, judged.get(method), judged.get(VOTE), tempering, rates)
    if not judged:
        _ADVICE[fusion] = advised
    return advised


def _judge_method(question: Question, plan: LabelPlan, watch: Watch) -> Assessment | None:
    return assess_result(fuse(question.labels, plan, question.truth, watch), question)


def explain_not_converged(fusion: LabelFusion, plan: Mapping[str, Any]) -> str:
    """Report that a fusion did not converge, with advice; empty if it did.

    `plan`: algorithm and settings, as stored with the run.
    """
    counts = [] if fusion.trace.converged else [len(fusion.trace.change)]
    return outcome.explain_limit(LABELLERS.get(str(plan.get("algorithm"))), plan.get("settings"), counts)
