"""Changes by an exclusion of annotators."""

import numpy as np

from raterscope.algorithms.labels.cross_validation import preview_exclusion
from raterscope.algorithms.labels.data import OPEN, LabelFusion, Labels
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Watch

VOTES = [
    *((0, annotator, 0) for annotator in (0, 1)),
    *((0, annotator, 1) for annotator in (2, 3, 4)),
    *((1, annotator, 1) for annotator in (0, 1, 2)),
    (2, 3, 0),
    (3, 3, 1),
    (4, 0, 0),
    (4, 3, 1),
    (4, 4, 1),
]


def run(labels: Labels, watch: Watch) -> LabelFusion:
    return majority(labels, watch=watch)


def fused(known: list[int] | None = None) -> tuple[Labels, LabelFusion]:
    fixed = None if known is None else np.array(known)
    columns = np.array(VOTES).T
    labels = Labels(*columns, tuple("pqrst"), tuple("abcde"), ("no", "yes"), ("no", "yes"), known=fixed)
    return labels, majority(labels)


def test_changed_and_lost_tasks_are_distinguished() -> None:
    labels, fusion = fused()
    result = preview_exclusion(labels, fusion, {"d", "e"}, run)
    assert result.task.tolist() == [4, 0]  # 4 becomes certain, 0 only two thirds
    assert (result.before.tolist(), result.after.tolist()) == ([1, 1], [0, 0])
    assert result.lost.tolist() == [2, 3]
    assert result.votes == 6
    assert result.fusion.votes.tolist() == [3, 3, 0, 0, 1]


def test_a_known_task_is_not_lost() -> None:
    labels, fusion = fused([OPEN, OPEN, 0, OPEN, OPEN])
    assert preview_exclusion(labels, fusion, {"d", "e"}, run).lost.tolist() == [3]


def test_leaving_no_annotator_out_changes_nothing_and_leaving_all_out_loses_all() -> None:
    labels, fusion = fused()
    nobody = preview_exclusion(labels, fusion, set(), run)
    assert (len(nobody.task), len(nobody.lost), nobody.votes) == (0, 0, 0)
    everybody = preview_exclusion(labels, fusion, set("abcde"), run)
    assert (len(everybody.task), everybody.lost.tolist()) == (0, [0, 1, 2, 3, 4])
