"""Known classes make a consensus as sure as it may be, where they tell of tasks that look alike."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.pooled import pooled, sharpened
from tests.algorithms.labels.test_independence import make
from tests.algorithms.labels.test_pooled import make as look_alikes


def applied(posterior: np.ndarray, known: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Sharpen tasks of unknown class by others of known class."""
    whole = np.concatenate([known, posterior])
    return sharpened(whole, known, truth, np.arange(len(known)))[len(known) :]


def two(share: np.ndarray) -> np.ndarray:
    return np.stack([share, 1 - share], axis=1)


def test_a_consensus_that_is_too_modest_becomes_surer_and_one_too_sure_more_modest() -> None:
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.5, 0.99, 400)
    truth = (rng.random(400) > chance).astype(np.int16)
    for power in (0.5, 2.0):
        claimed = chance**power / (chance**power + (1 - chance) ** power)
        error = np.abs(applied(two(claimed), two(claimed), truth)[:, 0] - chance).mean()
        assert error < 0.7 * np.abs(claimed - chance).mean()
    same = applied(two(chance), two(chance), truth)[:, 0]
    assert np.abs(same - chance).mean() < 0.03


def test_known_tasks_tell_only_of_tasks_that_look_as_clear() -> None:
    disputed, clear = two(np.full(30, 0.55)), two(np.array([0.97, 0.995]))
    right = np.zeros(30, dtype=np.int16)
    assert applied(clear, disputed, right) == pytest.approx(clear, abs=1e-3)
    assert applied(disputed, disputed, right)[0, 0] > 0.56


def test_decided_doubtful_tasks_do_not_make_clear_ones_doubtful() -> None:
    """Three in ten decisions contradict the crowd on tasks of 0.8 to 0.9; those above were not decided."""
    doubtful, clear = two(np.linspace(0.8, 0.9, 200)), two(np.linspace(0.93, 0.99, 200))
    decided = (np.arange(200) % 10 < 3).astype(np.int16)
    assert applied(clear, doubtful, decided)[:, 0].mean() > clear[:, 0].mean() - 0.01
    both = np.concatenate([doubtful, clear])
    known = applied(both, both[::4], np.resize(decided, 100))
    assert known[200:, 0].mean() < clear[:, 0].mean() - 0.03


def test_one_mistake_among_known_tasks_changes_little() -> None:
    share = two(np.full(20, 0.9))
    truth = np.zeros(20, dtype=np.int16)
    mistaken = truth.copy()
    mistaken[0] = 1
    assert applied(share, share, mistaken)[0, 0] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("sure", [False, True])
def test_known_classes_of_some_tasks_calibrate_the_others(sure: bool) -> None:
    before, after = [], []
    for seed in range(3):
        labels, truth = look_alikes(seed, 5, each=15, lookalike=0.3) if sure else make(seed, 5)
        known = np.full(len(truth), OPEN, dtype=np.int16)
        known[:150] = truth[:150]
        judged = np.where(known == OPEN, truth, OPEN).astype(np.int16)
        for given, found in ((None, before), (known, after)):
            fusion = pooled(replace(labels, known=given))
            found.append(assess(fusion.posterior, judged, labels.classes))
        assert (fusion.label()[:150] == truth[:150]).all()
        assert (fusion.posterior[:150].max(axis=1) == 1.0).all()
    errors = [np.mean([one.calibration.error for one in each]) for each in (before, after)]
    assert errors[1] < errors[0] - 0.015
    assert np.mean([one.log_loss for one in after]) < np.mean([one.log_loss for one in before])
