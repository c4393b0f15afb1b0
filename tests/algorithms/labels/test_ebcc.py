"""EBCC: the lower bound, held tasks, subtypes, and limits."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.data import OPEN, LabelsError
from raterscope.algorithms.labels.ebcc import EBCCSettings, ebcc
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.labels.test_pooled import make, of_votes


def test_the_lower_bound_never_falls_and_the_best_start_is_taken():
    labels, truth = make(0, tasks=150)
    first = ebcc(labels, EBCCSettings(starts=1))
    assert (np.diff(first.trace.objective) >= -1e-7 * abs(first.trace.objective[-1])).all()
    more = ebcc(labels, EBCCSettings(starts=6))
    assert more.trace.objective[-1] >= first.trace.objective[-1]
    assert (more.label() == truth).mean() > 0.8
    assert (ebcc(labels, EBCCSettings(starts=6)).posterior == more.posterior).all()


def test_with_one_subtype_it_agrees_with_ibcc():
    labels, _ = make(1, tasks=300, each=8, lookalike=0.0)
    assert (ebcc(labels, EBCCSettings(subtypes=1, starts=1)).label() == ibcc(labels).label()).mean() > 0.97


def test_errors_that_annotators_share_on_a_subtype_are_recognised():
    rng = np.random.default_rng(0)
    rows = []
    for t in range(300):  # half of class 1 looks like class 0 to annotators 0 to 2, not to 3 to 6
        looks = t % 2 if (t % 4 != 3) else 0
        for k in range(7):
            observed = looks if k < 3 else t % 2
            rows.append((t, k, observed if rng.random() < 0.9 else 1 - observed))
    truth = np.arange(300) % 2
    labels = of_votes(rows, 300, 2)
    ours, vote = ((method(labels).label() == truth).mean() for method in (ebcc, majority))
    assert ours > vote + 0.03


def test_known_tasks_are_held():
    labels, truth = make(2, tasks=100)
    known = np.where(np.arange(100) < 30, truth, OPEN).astype(np.int16)
    fusion = ebcc(replace(labels, known=known), EBCCSettings(starts=2))
    assert (fusion.label()[:30] == truth[:30]).all()
    assert fusion.posterior[:30].max(axis=1) == pytest.approx(1.0)


def test_what_does_not_fit_into_memory_is_refused_and_empty_crowds_have_an_answer():
    labels, _ = make(0, tasks=20)
    count = replace(labels, annotators=tuple(map(str, range(500_000))))
    with pytest.raises(LabelsError, match="Take fewer subtypes"):
        ebcc(count, EBCCSettings(subtypes=100))
    assert ebcc(of_votes([], 0, 2)).posterior.shape == (0, 2)
    assert ebcc(of_votes([(0, 0, 1)], 2, 2)).label()[0] == 1


def test_it_is_cancelled():
    labels, _ = make(0, tasks=50)
    calls = []

    def watch(fraction, words, **_):
        assert not calls or fraction >= calls[-1]
        calls.append(fraction)
        if len(calls) > 30:
            raise Cancelled

    with pytest.raises(Cancelled):
        ebcc(labels, watch=watch)
