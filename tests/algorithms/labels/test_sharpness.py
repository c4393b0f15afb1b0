"""Known classes make a consensus as sure as it may be, where they tell of tasks that look alike."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels._sharpness import sharpened
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.labels.pooled import pooled
from tests.algorithms.labels.test_independence import make
from tests.algorithms.labels.test_pooled import make as look_alikes


def two(share: np.ndarray) -> np.ndarray:
    return np.stack([share, 1 - share], axis=1)


def test_a_consensus_that_is_too_modest_becomes_surer_and_one_too_sure_more_modest() -> None:
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.5, 0.99, 400)
    truth = (rng.random(400) > chance).astype(np.int16)
    for power in (0.5, 2.0):
        claimed = chance**power / (chance**power + (1 - chance) ** power)
        error = np.abs(sharpened(two(claimed), two(claimed), truth)[:, 0] - chance).mean()
        assert error < 0.5 * np.abs(claimed - chance).mean()
    same = sharpened(two(chance), two(chance), truth)[:, 0]
    assert np.abs(same - chance).mean() < 0.03


def test_known_tasks_tell_only_of_tasks_that_look_as_clear() -> None:
    disputed, clear = two(np.full(30, 0.55)), two(np.array([0.97, 0.995]))
    right = np.zeros(30, dtype=np.int16)
    assert sharpened(clear, disputed, right) == pytest.approx(clear, abs=1e-3)
    assert sharpened(disputed, disputed, right)[0, 0] > 0.57


def test_one_mistake_among_known_tasks_changes_little() -> None:
    share = two(np.full(20, 0.9))
    truth = np.zeros(20, dtype=np.int16)
    mistaken = truth.copy()
    mistaken[0] = 1
    assert sharpened(share, share, mistaken)[0, 0] == pytest.approx(0.9, abs=0.05)


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
