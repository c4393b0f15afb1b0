"""Words for what remains to be decided: how many decisions matter, and how many are left."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QObject, Signal

from raterscope.app.contents import Contents
from raterscope.app.workspaces import review_order
from raterscope.app.workspaces.review_order import (
    Part,
    QueueLines,
    RemainingQuestions,
    candidate_rows,
    describe_remaining,
)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Part("", 30, 20, 4, 3), Part("", 5, 0, 0, 0)], "3 of 24 disputed spots matter"),
        ([Part("", 30, 1, 0, 1)], "1 of 1 disputed spot matters"),
        ([Part("", 30, 20, 4, 0)], "0 of 24 disputed spots matter"),
        ([Part("", 30, 20, 4)], "24 left in the study"),
        ([Part("", 30, 0, 0, 0)], "0 left in the study"),
    ],
)
def test_the_header_counts_the_decisions_that_matter(parts, words):
    assert "|".join(describe_remaining(parts, "disputed spot")) == words


def test_images_of_equal_dispute_are_listed_as_they_were_imported():
    def summary(doubt):
        return SimpleNamespace(
            fused=doubt > 0, disputed=0, parts=(), doubt=doubt, amount="", contested=0, done=False, flag=None,
            counts={}, in_words=str,
        )  # fmt: skip

    names = {1: "smear 9.png", 2: "smear 10.png", 3: "smear 11.png"}
    assert QueueLines(names, summary(0.0), {}, {}).order == (1, 2, 3)
    assert QueueLines(names, summary(0.0), {3: summary(0.5)}, {}).order == (3, 1, 2)


@pytest.mark.parametrize("block", [1, 3, 100])
def test_the_candidates_are_the_next_row_ahead_and_the_first_of_all(monkeypatch, block):
    monkeypatch.setattr(review_order, "BLOCK", block)
    generator = np.random.default_rng(1)
    for count, current, step in product((0, 1, 10), (None, 0, 4, 9), (1, -1)):
        waits = generator.random(count) < 0.3
        rows = np.flatnonzero(waits)[::step]
        ahead = [row for row in rows if current is None or (row - current) * step > 0]
        expected = sorted({*ahead[:1], *rows[:1]})
        assert candidate_rows(lambda some, waits=waits: waits[some], count, current, step) == expected


class _Runs(QObject):
    changed = Signal()
    run_chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.session = self


def _count(disputed, decided, skipped, contested) -> Part:
    remaining = RemainingQuestions(
        None, _Runs(), None, "labels", lambda *_: disputed, lambda *_: (decided, skipped),
        lambda *_: dict.fromkeys(contested, ""), noun="task",
    )  # fmt: skip
    read = review_order._read_all(remaining._read_one, (1,), None, lambda *_: None)
    return remaining._part(Contents(*[None] * 8), 1, read[1])


@pytest.mark.parametrize("chances", [True, False])
def test_the_parts_count_every_disputed_contested_and_decided_item_once(qapp, chances):
    generator = np.random.default_rng(2)
    names = np.array([f"t{number}" for number in range(12)])
    for _ in range(50):
        disputed, decided, skipped, contested = (names[generator.random(12) < 0.4].tolist() for _ in range(4))
        chance = dict(zip(disputed, generator.choice([0.0, 0.5], len(disputed)).tolist(), strict=True))
        part = _count(chance if chances else disputed, decided, skipped, contested)
        known = {*disputed, *contested, *decided}
        waiting = known - {*decided}
        assert part.total == len(known)
        assert part.skipped == len(waiting & {*skipped})
        assert part.open == len(waiting - {*skipped})
        matter = {name for name in waiting if name in contested or chance.get(name)}
        assert part.matter == (len(matter) if chances else None)
