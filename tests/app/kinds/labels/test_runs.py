"""Runs over the questions of a study: input, stored result, and output."""

import json

import numpy as np
import pytest

from raterscope.algorithms.labels.data import OPEN, LabelsError
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.formats.labels import read_labels
from raterscope.app.kinds.labels.runs import (
    VOTE,
    digest_of,
    fuse_inputs,
    gather,
    judge,
    keep,
    unseen_truths,
)
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.labels import add_true_labels, add_votes
from tests.app.kinds.labels.made import CLASSES, LIAR, TASKS, make_study, truth, write_truth, write_votes
from tests.app.tables import write


@pytest.fixture
def study(tmp_path):
    files = [write_votes(tmp_path / "votes.csv"), write_truth(tmp_path / "truth.csv", step=4)]
    with Study.open(make_study(tmp_path / "s.rscope", *files)) as opened:
        yield opened


def decide(study, task, label):
    question = study.questions()[0].id
    return study.record(Decision(verb="label", item=question, subject=TaskSubject(task=task, label=label)))


def run(study, **texts):
    inputs = gather([question.id for question in study.questions()], study)
    answer = fuse_inputs(inputs, LabelPlan.make("ibcc", texts))
    return inputs, answer, keep(answer, study)


def test_what_is_kept_is_what_was_fused(study):
    _, answer, number = run(study)
    question = study.questions()[0]
    stored = study.runs.result(number, question.id)
    fused = answer.outcomes[question.name].fusion
    np.testing.assert_array_equal(stored.fusion.posterior, fused.fusion.posterior)
    np.testing.assert_array_equal(stored.communities.community, fused.communities.community)
    np.testing.assert_array_equal(stored.fusion.label(), truth())
    (record,) = study.runs.get(number).log["questions"]
    assert record["judged"] == TASKS / 4
    assert record["accuracy"] == 1.0


def test_decisions_are_held_fixed_and_the_excluded_left_out(study):
    undone = decide(study, "t0", CLASSES[1 - truth()[0]])
    study.record(Decision(verb="undo", undoes=undone.id))
    wrong = CLASSES[1 - truth()[5]]
    last = decide(study, "t5", wrong)
    excluded = study.record(Decision(verb="exclude", annotators=(LIAR,), reason="asleep"))
    inputs, answer, number = run(study)
    (outcome,) = answer.outcomes.values()
    assert np.flatnonzero(outcome.fusion.fusion.known != OPEN).tolist() == [5]
    assert outcome.fusion.fusion.classes[outcome.fusion.fusion.label()[5]] == wrong
    entry = study.runs.get(number)
    assert (entry.known, entry.excluded) == (excluded.id, (LIAR,))
    assert last.id < excluded.id
    (question,) = inputs.given.values()
    votes = question.labels.votes_of_annotators()
    assert votes[question.labels.annotators.index(LIAR)] == 0
    assert sorted(votes)[1] == TASKS


@pytest.mark.parametrize(
    ("truths", "truths_used", "left"), [("measure", 0, 30), ("folds", 0, 30), ("hold", 30, 0)]
)
def test_truths_measure_only_runs_that_did_not_use_them(study, truths, truths_used, left):
    inputs, answer, _ = run(study, truths=truths)
    (question,), (outcome,) = inputs.given.values(), answer.outcomes.values()
    assert int((outcome.fusion.fusion.known != OPEN).sum()) == truths_used
    assert int((unseen_truths(outcome.fusion, question.truth) != OPEN).sum()) == left


def test_a_question_that_cannot_be_fused_does_not_lose_the_others(study, tmp_path, monkeypatch):
    other_file = write_votes(tmp_path / "more.csv", question="other?")
    make_study(tmp_path / "two.rscope", tmp_path / "votes.csv", other_file)
    from raterscope.app.kinds.labels import runs

    fuse_all = runs.fuse

    def failing(labels, plan, truth, watch):
        if len(calls) == 0:
            calls.append(labels)
            raise LabelsError("These votes cannot be fused.")
        return fuse_all(labels, plan, truth, watch)

    calls: list = []
    monkeypatch.setattr(runs, "fuse", failing)
    with Study.open(tmp_path / "two.rscope") as two:
        _, answer, number = run(two)
        first, second = two.questions()
        assert answer.outcomes[first.name].problem == "These votes cannot be fused."
        assert two.runs.get(number).items == (second.id,)


def test_the_digest_knows_votes_from_votes(study):
    inputs, _, _ = run(study)
    digest_before = digest_of(inputs.given)
    assert digest_of(gather([study.questions()[0].id], study).given) == digest_before
    decide(study, "t9", "cat")
    assert digest_of(gather([study.questions()[0].id], study).given) != digest_before


def test_the_log_is_json_whatever_the_truths_are(tmp_path):
    """Of truths of a single class there is no AUC."""
    truth_file = tmp_path / "truth.csv"
    truth_file.write_text("task,label\nt1,dog\n")
    votes = write_votes(tmp_path / "votes.csv")
    with Study.open(make_study(tmp_path / "s.rscope", votes, truth_file)) as study:
        _, _, number = run(study)
        (record,) = study.runs.get(number).log["questions"]
        assert record["auc"] is None
        json.dumps(record, allow_nan=False)


def test_without_votes_there_is_nothing_to_fuse(study):
    people = tuple(study.annotators())
    study.record(Decision(verb="exclude", annotators=people, reason="all of them"))
    with pytest.raises(LabelsError, match="no votes to fuse"):
        gather([study.questions()[0].id], study)


@pytest.mark.parametrize(("repeats", "accuracy"), [("first", 1.0), ("all", 0.0)])
def test_the_majority_vote_beside_a_method_counts_repeated_votes_as_it_does(
    tmp_path, repeats: str, accuracy: float
) -> None:
    right = [(name, f"t{task}", CLASSES[task % 2]) for name in "abc" for task in range(20)]
    wrong = [(name, task, CLASSES[label == CLASSES[0]]) for name, task, label in right]
    votes = write(tmp_path / "votes.csv", ("annotator", "task", "label"), [*right, *wrong, *wrong])
    known = write(tmp_path / "truth.csv", ("task", "truth"), [row[1:] for row in right[:20]])
    with Study.create(tmp_path / "s.rscope") as study:
        add_votes(study, *read_labels(votes))
        add_true_labels(study, *read_labels(known))
        (question,) = gather([1], study).given.values()
        plan = LabelPlan.make("ibcc", {"repeats": repeats})
        (result,) = fuse_inputs(gather([1], study), plan).fusions.values()
        assert judge(question, plan, result)[VOTE].accuracy == accuracy
